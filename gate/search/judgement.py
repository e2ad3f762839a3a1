"""From the rows of a finished check to its verdict, with and without lists of known failures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date

from rebalance_verifier.base.verdict import Exit, Level, Verdict
from rebalance_verifier.gate.search.known import KnownFailure, causes_of, match, unmatched
from rebalance_verifier.gate.search.result import ClauseResult, Result, Status, TargetInfo
from rebalance_verifier.model.assignor import Promise
from rebalance_verifier.properties.assignors.clauses import TABLE


def judge(result: Result) -> Result:
    """Return the verdict and exit code that follow from the rows of ``result``."""
    rows = result.clauses
    violated = any(r.status is Status.VIOLATED and r.clause.level.gates(Level(result.level)) for r in rows)
    stale = bool(result.stale_known) or any(r.status is Status.FIXED for r in rows)
    if violated:
        verdict, code = Verdict.VIOLATION, Exit.VIOLATION
    elif result.doubts or result.interrupted:
        verdict, code = Verdict.INCONCLUSIVE, Exit.INCONCLUSIVE
    else:
        verdict, code = Verdict.CONFORMANT, Exit.VIOLATION if stale else Exit.CONFORMANT
    return replace(result, verdict=verdict, exit=Exit.INTERRUPTED if result.interrupted else code)


def allow(
    result: Result, failing: Sequence[KnownFailure], flaky: Sequence[KnownFailure], today: date
) -> Result:
    """``result`` judged again with these lists: known violations pass, needless entries do not.

    A row is known if each of its causes is; of the others the first that is new is its finding. An entry of
    ``failing`` is needless when something that it means was judged and all of that held in
    a search that came to its end; it is stale when it means no clause that applies to the target, run
    today or not. One of ``flaky`` is neither.
    """
    violated = [row for row in result.clauses if row.status is Status.VIOLATED]
    seen = [name for row in violated for name in causes_of(row)]
    needless = () if result.interrupted or result.missed else unmatched(failing, seen)
    rows = tuple(_allowed(row, failing, flaky, needless, today) for row in result.clauses)
    stale = [str(entry) for entry in unmatched(failing, _applicable(result.target), by_cause=False)]
    explained = [row.id for row in violated if not row.unattributed]
    stale += [str(e) for e in needless if e.cause and any(map(e.about, explained))]
    return judge(replace(result, clauses=rows, stale_known=tuple(stale)))


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
        entries = [match(failing, name, today) for name in causes_of(row)]
        marked = zip(row.findings, entries, strict=False)
        findings = [replace(found, known=str(entry)) if entry else found for found, entry in marked]
        findings.sort(key=lambda found: bool(found.known))
        if findings:
            row = replace(row, finding=findings[0], others=tuple(findings[1:]))
        if entries[0] is not None and all(entries):
            row = replace(row, status=Status.KNOWN, note=entries[0].comment)
        return row
    entry = match(needless, row.id, today)
    return replace(row, status=Status.FIXED, note=str(entry)) if entry else row
