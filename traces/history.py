"""The runs that were made here: a line each in ``.rebalance/runs.jsonl``, and what follows from them."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rebalance_verifier.base import reading
from rebalance_verifier.base import saved as files
from rebalance_verifier.base.saved import TraceError
from rebalance_verifier.gate.search.result import Status
from rebalance_verifier.model import codec

FILE = "runs.jsonl"
MAX_RUNS = 500
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
    """Add a run to those that were made, and return the newest ``MAX_RUNS`` of all. The caller locks
    ``root``. Raises ``OSError``."""
    records = [*_records(root), {"schema": SCHEMA, "kind": KIND, **codec.to_json(run)}][-MAX_RUNS:]
    files.write(root / FILE, "".join(f"{json.dumps(one)}\n" for one in records))
    return _runs(records)


def load(root: Path) -> list[PastRun]:
    """Return the runs that are remembered, in order; what is no run, or is of a newer suite, is left out.
    Raises ``OSError``."""
    return _runs(_records(root)[-MAX_RUNS:])


def _records(root: Path) -> list[dict[str, Any]]:
    """Return the lines that some suite has written, also a newer one."""
    path, found = root / FILE, []
    try:
        text = reading.contents(path).decode("utf-8", "replace")
    except FileNotFoundError:
        return []
    except reading.Unreadable as error:
        raise OSError(str(error)) from error
    for line in text.splitlines():
        with contextlib.suppress(ValueError):
            if line.startswith("{") and "schema" in (data := reading.parsed_json(line, str(path))):
                found.append(data)
    return found


def _runs(records: Iterable[dict[str, Any]]) -> list[PastRun]:
    found = []
    for data in records:
        if data["schema"] == SCHEMA:
            with contextlib.suppress(TraceError):
                found.append(codec.from_json(PastRun, data))
    return found


def open_findings(runs: Iterable[PastRun]) -> Sequence[OpenFinding]:
    """Return what is broken now, the new ones first: of each command and subject by the last run that
    asked."""
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
