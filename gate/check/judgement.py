"""From the rows of a finished check to its verdict, with and without lists of known failures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date

from rebalance.gate.check.known import KnownFailure, match, unmatched
from rebalance.gate.check.result import ClauseResult, Result, Status, TargetInfo
from rebalance.model.assignor import Promise
from rebalance.properties.assignors.clauses import TABLE
from rebalance.properties.verdict import Exit, Level, Verdict


def judge(result: Result) -> Result:
    """The verdict and exit code that follow from the rows of ``result``."""
    rows = result.clauses
    violated = any(r.status is Status.VIOLATED and r.clause.level.gates(Level(result.level)) for r in rows)
    stale = bool(result.stale_known) or any(r.status is Status.FIXED for r in rows)
    if violated:
        verdict, code = Verdict.VIOLATION, Exit.VIOLATION
    elif result.missed or result.interrupted:
        verdict, code = Verdict.INCONCLUSIVE, Exit.INCONCLUSIVE
    else:
        verdict, code = Verdict.CONFORMANT, Exit.VIOLATION if stale else Exit.CONFORMANT
    return replace(result, verdict=verdict, exit=Exit.INTERRUPTED if result.interrupted else code)


def allow(
    result: Result, failing: Sequence[KnownFailure], flaky: Sequence[KnownFailure], today: date
) -> Result:
    """``result`` judged again with these lists: known violations pass, needless entries do not.

    An entry of ``failing`` is needless when something that it means was judged and all of that held in
    a search that came to its end; it is stale when it means no clause that applies to the target, run
    today or not. One of ``flaky`` is neither.
    """
    violated = [row.id for row in result.clauses if row.status is Status.VIOLATED]
    needless = () if result.interrupted or result.missed else unmatched(failing, violated)
    rows = tuple(_allowed(row, failing, flaky, needless, today) for row in result.clauses)
    stale = tuple(str(entry) for entry in unmatched(failing, _applicable(result.target)))
    return judge(replace(result, clauses=rows, stale_known=stale))


def _applicable(target: TargetInfo) -> list[str]:
    promises = tuple(Promise(p) for p in target.promises)
    return [
        f"{clause.id}-{protocol}"
        for clause in TABLE
        for protocol in clause.protocols
        if protocol in target.protocols and clause.applies(protocol, promises)
    ]


def _allowed(
    row: ClauseResult,
    failing: Sequence[KnownFailure],
    flaky: Sequence[KnownFailure],
    needless: Sequence[KnownFailure],
    today: date,
) -> ClauseResult:
    if row.status not in (Status.PASSED, Status.VIOLATED):
        return row
    if entry := match(flaky, row.id, today):
        return replace(row, status=Status.FLAKY, note=entry.comment)
    if row.status is Status.VIOLATED:
        entry = match(failing, row.id, today)
        return replace(row, status=Status.KNOWN, note=entry.comment) if entry else row
    entry = match(needless, row.id, today)
    return replace(row, status=Status.FIXED, note=str(entry)) if entry else row
