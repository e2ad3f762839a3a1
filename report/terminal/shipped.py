"""What is proved of the protocol as shipped, as text and as JSON: theorems, the runs, the fixes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.metadata import version
from typing import Any

from rebalance_verifier.base.saved import SUITE
from rebalance_verifier.base.text import count
from rebalance_verifier.model.classic.describe import event_text
from rebalance_verifier.report.frame import aligned, labelled, painted
from rebalance_verifier.specs.classic.necessity.necessity import BESIDE, NECESSITY
from rebalance_verifier.specs.classic.necessity.repairs import (
    ShippedFindings,
    ShippedProof,
    ShippedRun,
    ShippedTheorem,
)
from rebalance_verifier.specs.logic.prover import ProofVerdict, solver_version

SCHEMA = 1
OPEN = "open"


def verdict_text(verdict: ProofVerdict) -> str:
    """As it is written: what is neither proved nor refuted by a run is open."""
    return OPEN if verdict is ProofVerdict.UNKNOWN else verdict.value


def render(report: ShippedProof, *, verbose: int = 0, color: bool = False) -> str:
    """Return the whole report. ``verbose``: every run, and what is not proved."""
    lines = [headline(report), *_header(report), "", *_table(report)]
    for title, findings in report.groups:
        lines += _runs(title, findings, verbose)
        lines += _repairs(title, findings)
    lines += ["", f"{verdict_text(report.verdict).upper()}, exit {int(report.exit)}"]
    return painted(lines, color)


def headline(report: ShippedProof) -> str:
    """Return the verdict, the releases, and how much is proved in which groups."""
    begun = " interrupted," if report.interrupted else ""
    total = max(len(findings.theorems) for findings in report.findings)
    proved = ", ".join(
        f"{sum(one.verdict is ProofVerdict.PROVED for one in findings.theorems)} of {noun} with {title}"
        for noun, (title, findings) in zip((count(total, "theorem"), f"{total}"), report.groups, strict=False)
    )
    names = " with ".join(report.releases)
    return f"{verdict_text(report.verdict).upper()}  {names}:{begun} proved {proved}"


def _header(report: ShippedProof) -> Iterator[str]:
    protocol = report.findings[0].protocol
    yield f"rebalance {version('rebalance-verifier')}  z3 {solver_version()}  limit={report.limit:,} units"
    yield from labelled("assumed", f"of the assignor: {', '.join(protocol.contract) or 'nothing'}")
    yield from labelled("differs", ", ".join(one.name for one in protocol.variations) or "in nothing")
    if protocol.beside:
        yield from labelled("neutral", f"no effect on the logic: {', '.join(protocol.beside)}")
    for title, findings in report.groups:
        if findings.idle:
            yield from labelled(
                "unused", f"not known to be possible with {title}: {', '.join(findings.idle)}"
            )


def _table(report: ShippedProof) -> list[str]:
    verdicts = [
        {one.theorem.name: verdict_text(one.verdict) for one in findings.theorems}
        for findings in report.findings
    ]
    rows = [("theorem", *(title for title, _ in report.groups))]
    rows += [(f"  {name}", *(found.get(name, "not tried") for found in verdicts)) for name in verdicts[0]]
    return aligned(rows)


def _runs(title: str, findings: ShippedFindings, verbose: int) -> Iterator[str]:
    """Yield each run once, with all theorems that it refutes."""
    runs: dict[str, tuple[ShippedRun, list[str]]] = {}
    for one in findings.theorems:
        if one.run is not None:
            runs.setdefault(one.run.variation, (one.run, []))[1].append(one.theorem.name)
    for name, (run, theorems) in runs.items():
        played = run.replay
        yield ""
        yield f"REFUTED {', '.join(theorems)}: {title}"
        yield from labelled(
            "breaks", f"{played.clause}, after {len(played.events)} events: {played.sentence}"
        )
        yield from labelled("because", f"{name}: {NECESSITY[name].sentence}")
        yield from labelled("without", f"it, {played.without}")
        for number, event in enumerate(played.events, 1):
            yield f"   {number:>3} {event_text(event)}"
    for one in findings.theorems if verbose else ():
        for outcome in one.failed:
            yield f"  not proved  {one.theorem.name}: {outcome.case}: {outcome.goal} ({outcome.verdict})"


def _repairs(title: str, findings: ShippedFindings) -> Iterator[str]:
    """Yield the fixes, theorems that need the same ones together."""
    same: dict[tuple[str, ...], list[ShippedTheorem]] = {}
    for one in findings.theorems:
        if one.verdict is not ProofVerdict.PROVED:
            same.setdefault(one.repair.mended if one.repair else (), []).append(one)
    for mended, theorems in same.items():
        yield ""
        yield f"FIX for {', '.join(one.theorem.name for one in theorems)}: {title}"
        if not mended:
            yield from labelled("", "no set of fixes is known with which it is proved")
        needed = {name for one in theorems if one.repair for name in one.repair.needed}
        for name in mended:
            yield from labelled("", f"{name}: {_why(name, needed)}")


def _why(name: str, needed: Iterable[str]) -> str:
    if name in needed:
        return "needed, a run breaks it with the others fixed"
    return "not proved with it, and no run is known"


# -- as JSON -------------------------------------------------------------------------------------------


def data(report: ShippedProof) -> dict[str, Any]:
    """Return the result as plain JSON values."""
    protocol = report.findings[0].protocol
    return {
        "schema": SCHEMA,
        "suite": {"name": SUITE, "version": version("rebalance-verifier")},
        "solver": {"name": "z3", "version": solver_version()},
        "releases": list(report.releases),
        "limit": report.limit,
        "contract": list(protocol.contract),
        "variations": [
            {"name": one.name, "about": one.about, "sentence": one.sentence} for one in protocol.variations
        ],
        "beside": [{"switch": name, "why": BESIDE.get(name)} for name in protocol.beside],
        "verdict": verdict_text(report.verdict),
        "exit": int(report.exit),
        "interrupted": report.interrupted,
        "groups": [
            {
                "members": title.split()[0],
                "impossible": list(findings.idle),
                "theorems": [_theorem(one) for one in findings.theorems],
            }
            for title, findings in report.groups
        ],
    }


def _theorem(one: ShippedTheorem) -> dict[str, Any]:
    return {
        "name": one.theorem.name,
        "sentence": one.theorem.sentence,
        "verdict": verdict_text(one.verdict),
        "not_proved": [
            {"case": outcome.case, "goal": outcome.goal, "verdict": outcome.verdict.value}
            for outcome in one.failed
        ],
        "left_out": list(one.left_out),
        "run": _run(one.run) if one.run else None,
        "repair": {
            "mended": list(one.repair.mended),
            "needed": {name: _run(run) for name, run in one.repair.needed.items()},
        }
        if one.repair
        else None,
    }


def _run(run: ShippedRun) -> dict[str, Any]:
    return {
        "variation": run.variation,
        "mended": list(run.mended),
        "breaks": list(run.breaks),
        "clause": run.replay.clause,
        "sentence": run.replay.sentence,
        "events": [event_text(event) for event in run.replay.events],
        "without": run.replay.without,
    }
