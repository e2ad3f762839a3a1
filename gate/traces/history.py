"""The runs that were made here: a line each in ``.rebalance/runs.jsonl``, and what follows from them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from rebalance.explore.engine.drafts import alone
from rebalance.gate.check.result import Status
from rebalance.gate.traces import codec, files

FILE = "runs.jsonl"
MOST = 500
"""Runs that are remembered."""

SCHEMA = 1
KIND = "run"

BROKEN = (Status.VIOLATED, Status.KNOWN)
"""What becomes of a rule that is broken, on a list or not."""

_HOLDS = (Status.PASSED, Status.FIXED)


@dataclass(frozen=True, slots=True, kw_only=True)
class PastRun:
    """One run. ``when`` in UTC as the name of its ``directory`` has it; ``cases``: rule -> what came of it;
    ``findings``: rule -> [what is wrong, the command that shows it again or ""] of those that are broken."""

    when: str
    directory: str
    command: str
    subject: str
    verdict: str
    headline: str
    cases: dict[str, str] = field(default_factory=dict)
    findings: dict[str, tuple[str, str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenFinding:
    """A rule that is broken in the last run that asked it: ``since`` which, in how many ``runs`` without a
    break; ``new``: it held in the run before. ``known``: it is on a list."""

    command: str
    subject: str
    rule: str
    message: str
    again: str
    since: PastRun
    runs: int
    new: bool
    known: bool


def remember(run: PastRun, root: Path) -> list[PastRun]:
    """Add a run to those that were made, and return the newest ``MOST`` of all. Raises ``OSError``."""
    with alone(root):
        runs = [*load(root), run][-MOST:]
        lines = ({"schema": SCHEMA, "kind": KIND, **codec.to_json(one)} for one in runs)
        files.write(root / FILE, "".join(f"{json.dumps(line)}\n" for line in lines))
    return runs


def load(root: Path) -> list[PastRun]:
    """The runs that are remembered, in order; what cannot be read, or is of a newer suite, is left out."""
    try:
        lines = (root / FILE).read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return []
    found = []
    for line in lines[-MOST:]:
        try:
            data = json.loads(line)
            if data["schema"] == SCHEMA:
                found.append(
                    codec.from_json(PastRun, {k: data[k] for k in data if k not in ("schema", "kind")})
                )
        except (KeyError, RecursionError, TypeError, ValueError):
            continue
    return found


def open_findings(runs: Iterable[PastRun]) -> Sequence[OpenFinding]:
    """What is broken now, the new ones first: of each command and subject by the last run that asked."""
    now: dict[tuple[str, str, str], OpenFinding] = {}
    held = set()
    for run in runs:
        for rule, status in run.cases.items():
            key = (run.command, run.subject, rule)
            if status in BROKEN:
                before = now.get(key)
                message, command = run.findings.get(rule, ("", ""))
                fresh = OpenFinding(
                    command=run.command, subject=run.subject, rule=rule, message=message, again=command,
                    since=run, runs=1, new=key in held, known=status == Status.KNOWN,
                )  # fmt: skip
                if before:
                    fresh = replace(fresh, since=before.since, runs=before.runs + 1, new=False)
                now[key] = fresh
            elif status in _HOLDS:
                now.pop(key, None)
                held.add(key)
    return sorted(now.values(), key=lambda one: (not one.new, one.known, one.command, one.subject, one.rule))
