"""Where an interrupted check stands, on disk, so that ``--resume`` goes on instead of starting again.

It is signed with the key of this user: it may have come with somebody's directory, and what it says that was
played is believed.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections import Counter
from pathlib import Path
from typing import Any

from rebalance_verifier.base.files import write_whole
from rebalance_verifier.base.processes.signing import seal_of
from rebalance_verifier.base.reading import json_of, word
from rebalance_verifier.gate.scenarios.player import Found
from rebalance_verifier.gate.search.causes.attribution import BreakingScenario
from rebalance_verifier.gate.search.plan import CheckPlan, count
from rebalance_verifier.gate.search.progress import COUNTERS, CheckProgress, CheckTally, Passing
from rebalance_verifier.gate.search.result import TargetInfo
from rebalance_verifier.model.values import RebalanceProtocol
from rebalance_verifier.properties.assignors.clause import Breach
from rebalance_verifier.properties.assignors.clauses import CLAUSES
from rebalance_verifier.properties.assignors.played import from_json, to_json

NUMBERS = ("first", "done", "questions", "claims", "moved", "seconds")
"""The fields of ``CheckProgress`` that are numbers."""


def key(target: TargetInfo, plan: CheckPlan) -> str:
    """Name the search that can be resumed: same target and version, clauses, protocols, profile, seed."""
    parts = (
        target.spec,
        target.version,
        plan.profile.name,
        plan.seed,
        [str(p) for p in plan.protocols or ()],
        [c.id for c in plan.clauses],
        *([plan.without] if plan.without else []),
        *([plan.beside] if plan.beside else []),
        *([plan.topics, "topics"] if plan.topics else []),
    )
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:12]


def unfinished(progress: CheckProgress, plan: CheckPlan, target: TargetInfo) -> bool:
    """Check whether scenarios of the plan are left to play."""
    protocols = [p for p in RebalanceProtocol if p in target.protocols and p in (plan.protocols or [p])]
    return progress.done < count(plan.profile, protocols, plan.without)


def save(path: Path, progress: CheckProgress) -> None:
    """Write ``progress``; the file is complete or absent, never half written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    written = _written(progress)
    write_whole(path, json.dumps({"signed": seal_of(path.name, written), "progress": written}))


def _written(progress: CheckProgress) -> dict[str, Any]:
    data: dict[str, Any] = {name: getattr(progress, name) for name in (*NUMBERS, *COUNTERS)}
    data["breaking"] = {
        key: [
            [
                one.found.clause.id,
                one.found.breach.summary,
                one.found.breach.kind,
                one.found.round,
                to_json(one.scenario),
                one.number,
            ]
            for one in broken
        ]
        for key, broken in progress.breaking.items()
    }
    data["along"] = {
        key: [tally.scenarios, tally.broken, tally.witnesses] for key, tally in progress.along.items()
    }
    data["samples"] = {
        key: [to_json(passing.scenario), passing.number, passing.worth]
        for key, passing in progress.samples.items()
    }
    data["ahead"] = [_written(part) for part in progress.ahead]
    return data


def load(path: Path) -> CheckProgress:
    """Return what ``save`` wrote, or a new start when there is nothing to resume.

    Raises ``ValueError`` for a file that is damaged or of another version of the suite.
    """
    try:
        data = json_of(path)
        progress = _parse(data["progress"])
        if not hmac.compare_digest(seal_of(path.name, data["progress"]), word(data["signed"])):
            raise ValueError("no check of yours has saved it")
        return progress
    except (FileNotFoundError, NotADirectoryError):
        return CheckProgress()
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} cannot be resumed, delete it: {error!r}") from error


def _parse(data: dict[str, Any]) -> CheckProgress:
    progress = CheckProgress(**{name: data[name] for name in NUMBERS})
    for name in COUNTERS:
        setattr(progress, name, Counter(data[name]))
    for key, broken in data["breaking"].items():
        progress.breaking[key] = [
            BreakingScenario(
                from_json(scenario),
                Found(CLAUSES[clause], Breach(summary=summary, kind=kind), round_),
                number,
            )
            for clause, summary, kind, round_, scenario, number in broken
        ]
    for key, (scenarios, broken, witnesses) in data["along"].items():
        progress.along[key] = CheckTally(scenarios, Counter(broken), Counter(witnesses))
    for key, (scenario, number, worth) in data["samples"].items():
        progress.samples[key] = Passing(from_json(scenario), number, worth)
    progress.ahead = [_parse(part) for part in data["ahead"]]
    return progress
