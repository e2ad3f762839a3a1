"""Where an interrupted check stands, on disk, so that ``--resume`` goes on instead of starting again."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

from rebalance.gate.check import Passing, Progress, Tally
from rebalance.gate.plan import Plan, count
from rebalance.gate.result import TargetInfo
from rebalance.model.values import RebalanceProtocol
from rebalance.properties.clauses import CLAUSES, Breach
from rebalance.properties.histories import Found
from rebalance.properties.scenarios import from_json, to_json

COUNTERS = ("skipped", "witnesses", "judged", "broken")
NUMBERS = ("done", "asked", "claims", "moved", "seconds")


def key(target: TargetInfo, plan: Plan) -> str:
    """Names the search that can be resumed: same target and version, clauses, protocols, profile, seed."""
    parts = (
        target.spec,
        target.version,
        plan.profile.name,
        plan.seed,
        [str(p) for p in plan.protocols or ()],
        [c.id for c in plan.clauses],
    )
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:12]


def unfinished(progress: Progress, plan: Plan, target: TargetInfo) -> bool:
    """Whether scenarios of the plan are left to play."""
    protocols = [p for p in RebalanceProtocol if p in target.protocols and p in (plan.protocols or [p])]
    return progress.done < count(plan.profile, protocols)


def save(path: Path, progress: Progress) -> None:
    """Write ``progress``; the file is complete or absent, never half written."""
    data: dict[str, Any] = {name: getattr(progress, name) for name in NUMBERS}
    data |= {name: dict(getattr(progress, name)) for name in COUNTERS}
    data["best"] = {
        key: {
            "clause": found.clause.id,
            "summary": found.breach.summary,
            "round": found.round,
            "number": number,
            "scenario": to_json(scenario),
        }
        for key, (scenario, found, number) in progress.best.items()
    }
    data["along"] = {
        key: [tally.scenarios, tally.broken, tally.witnesses] for key, tally in progress.along.items()
    }
    data["samples"] = {
        key: [to_json(passing.scenario), passing.number, passing.worth]
        for key, passing in progress.samples.items()
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(json.dumps(data), encoding="utf-8")
    part.replace(path)


def load(path: Path) -> Progress:
    """What ``save`` wrote, or a new start when there is nothing to resume.

    Raises ``ValueError`` for a file that is damaged or of another version of the suite.
    """
    if not path.exists():
        return Progress()
    try:
        return _parse(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} cannot be resumed, delete it: {error!r}") from error


def _parse(data: dict[str, Any]) -> Progress:
    progress = Progress(**{name: data[name] for name in NUMBERS})
    for name in COUNTERS:
        setattr(progress, name, Counter(data[name]))
    for key, best in data["best"].items():
        found = Found(CLAUSES[best["clause"]], Breach(best["summary"]), best["round"])
        progress.best[key] = (from_json(best["scenario"]), found, best["number"])
    for key, (scenarios, broken, witnesses) in data["along"].items():
        progress.along[key] = Tally(scenarios, Counter(broken), Counter(witnesses))
    for key, (scenario, number, worth) in data["samples"].items():
        progress.samples[key] = Passing(from_json(scenario), number, worth)
    return progress
