"""Saved traces and bugs that were shown or replayed, as cases: one function a command. See ``cases``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from rebalance_verifier.base.text import clean, count
from rebalance_verifier.base.verdict import Exit, Level, Verdict
from rebalance_verifier.explore.groups.bugs import SHOWN
from rebalance_verifier.explore.groups.matrix import Cell
from rebalance_verifier.gate.search.result import Status
from rebalance_verifier.model.bugs.observed import Difference
from rebalance_verifier.properties.group.clauses import CLAUSES
from rebalance_verifier.report.ci import ci_reports
from rebalance_verifier.report.ci.cases import CiCase, CiReport, CiRule, Evidence
from rebalance_verifier.report.terminal import bugs, matrix
from rebalance_verifier.report.terminal import replayed as replays_text
from rebalance_verifier.report.terminal.bugs import Reproduction
from rebalance_verifier.report.terminal.matrix import Observed
from rebalance_verifier.report.terminal.replayed import ReplayOutcome, Replays
from rebalance_verifier.report.terminal.trace import NamedTrace, named

READABLE = CiRule(
    id="replay/trace", level=Level.SAFETY, sentence="the file holds a trace that can be replayed"
)

_STATUS = {Verdict.CONFORMANT: Status.PASSED, Verdict.VIOLATION: Status.VIOLATED}


# -- show --------------------------------------------------------------------------------------------------


def shown(traces: Sequence[NamedTrace]) -> CiReport:
    """Return a finished ``rebalance show``: a case for each trace, none of which fails it."""
    what = f"{count(len(traces), 'trace')}: {', '.join(dict.fromkeys(trace.clause for trace in traces))}"
    broken = any(not trace.is_situation for trace in traces)
    return CiReport(
        command="show",
        subject=", ".join(str(trace.path) for trace in traces),
        headline=f"SHOWN  {what}",
        verdict=Verdict.VIOLATION if broken else Verdict.INCONCLUSIVE,
        exit=Exit.CONFORMANT,
        cases=tuple(map(_drawn, traces)),
        variants="id",
        facts=(("shown", what),),
    )


def _drawn(trace: NamedTrace) -> CiCase:
    return CiCase(
        rule=_rule(trace),
        status=Status.PASSED if trace.is_situation else Status.VIOLATED,
        gates=False,
        excuse="show judges nothing",
        variant=trace.id,
        evidence=(_evidence(trace, f"rebalance show {trace.path}"),),
    )


def _rule(trace: NamedTrace) -> CiRule:
    return CiRule(
        id=trace.clause, level=trace.level, sentence=trace.rule, source=trace.source, link=trace.link
    )


def _evidence(trace: NamedTrace, command: str) -> Evidence:
    return Evidence(
        message=trace.sentence,
        id=trace.id,
        path=str(trace.path),
        because=trace.because,
        facts=(("from", trace.kind), ("subject", trace.subject)),
        chart=lambda: trace.lines(True),
        command=command,
        draw=trace.draw,
    )


# -- replay ------------------------------------------------------------------------------------------------


def replayed(replays: Replays) -> CiReport:
    """Return a finished ``rebalance replay``: a case for each trace."""
    missing = [
        f"{one.path}: {one.sentence}" for one in replays.outcomes if one.verdict is Verdict.INCONCLUSIVE
    ]
    on = (("on", replays.on),) if replays.on else ()
    return CiReport(
        command="replay",
        subject=", ".join(str(one.path) for one in replays.outcomes),
        headline=replays_text.headline(replays),
        verdict=replays.verdict,
        exit=replays.exit,
        cases=tuple(_replayed(one, replays.on) for one in replays.outcomes),
        variants="id",
        facts=(("replayed", count(len(replays.outcomes), "trace")), *on),
        properties=on,
        missed=(*missing, *filter(None, [replays.stopped])),
        interrupted=replays.interrupted,
    )


def _replayed(one: ReplayOutcome, on: str) -> CiCase:
    if one.trace is None:
        return CiCase(rule=READABLE, status=Status.UNTESTED, variant=one.path.stem, note=one.sentence)
    status = _STATUS.get(one.verdict, Status.UNTESTED)
    command = " ".join(filter(None, (f"rebalance replay {one.path}", on and f"--on {on}")))
    found = _evidence(one.trace, command)
    found = replace(found, message=one.sentence, facts=(*found.facts, *one.facts))
    is_shown = status is Status.VIOLATED or one.word == replays_text.SHOWN
    return CiCase(
        rule=_rule(one.trace),
        status=status,
        variant=one.trace.id,
        note=one.sentence if status is Status.UNTESTED else "",
        evidence=(found,) if is_shown else (),
        text=lambda: [clean(line) for line in (one.line, *one.text)],
    )


# -- bugs --------------------------------------------------------------------------------------------------


def reproduced(reproductions: Sequence[Reproduction], *, interrupted: bool = False) -> CiReport:
    """Return ``rebalance bugs`` with IDs, finished or interrupted: a case for each switch, which passes where
    it shows."""
    failed = any(one.fails for one in reproductions)
    is_shown = not failed and not interrupted and any(one.is_shown for one in reproductions)
    names = ", ".join(dict.fromkeys(one.entry.id for one in reproductions))
    return CiReport(
        command="bugs",
        subject=names,
        headline=bugs.headline(reproductions),
        verdict=Verdict.CONFORMANT if is_shown else Verdict.INCONCLUSIVE,
        exit=Exit.INTERRUPTED if interrupted else Exit.VIOLATION if failed else Exit.CONFORMANT,
        interrupted=interrupted,
        cases=tuple(map(_reproduced, reproductions)),
        variants="switch",
        facts=(("bugs", names), ("about", bugs.about())),
    )


def _reproduced(one: Reproduction) -> CiCase:
    """Return a switch as a case."""
    entry = one.entry
    rule = CiRule(
        id=f"bugs/{entry.id}",
        level=one.level,
        sentence=f"this bug is shown: {entry.title}",
        source=f"{entry.project}: {entry.affected}",
    )
    case = partial(CiCase, rule=rule, variant=one.switch)
    if one.how == "not":
        return case(status=Status.UNTESTED, note=f"not expressed: {one.what}")
    facts = (("switch", f"{one.switch}: {one.sentence}"),)
    if one.row and one.row.finding:
        evidence = ci_reports.finding_evidence(one.row, one.row.finding)
        evidence = replace(evidence, command=one.command)
    elif one.run:
        command = f"rebalance replay {one.path}" if one.path else one.command
        evidence = replace(_evidence(named(Path(one.path), one.run), command), path=one.path)
    else:
        return case(status=Status.VIOLATED, evidence=(Evidence(message=one.why_not, facts=facts),))
    return case(status=Status.PASSED, evidence=(replace(evidence, facts=(*facts, *evidence.facts)),))


# -- the matrix of bugs ------------------------------------------------------------------------------------


def compared(cells: Sequence[Cell], observed: Observed) -> CiReport:
    """Return a finished ``rebalance bugs --matrix``: a case for each switch and release, which passes where
    the model, Kafka's code and the catalogue say the same."""
    failed = matrix.unexplained(cells, observed)
    switches = {cell.switch for cell in cells}
    differing = (_difference(one, observed) for one in matrix.differences(switches, observed))
    verdict = Verdict.VIOLATION if failed else Verdict.CONFORMANT
    return CiReport(
        command="bugs",
        subject="--matrix",
        headline=f"{verdict.upper()}  {matrix.tally(cells)}",
        verdict=verdict,
        exit=Exit.of(verdict),
        cases=(*map(_cell, cells), *differing),
        variants="release",
        facts=(("about", matrix.ABOUT),),
    )


def _cell(cell: Cell) -> CiCase:
    clause = CLAUSES[SHOWN[cell.switch].clause]
    rule = CiRule(
        id=f"matrix/{cell.switch}",
        level=clause.level,
        sentence="the model breaks this clause in the releases that the catalogue says, and in no other: "
        f"{clause.sentence}",
        source=clause.source,
    )
    case = partial(CiCase, rule=rule, variant=cell.profile.name)
    if cell.agrees:
        return case(status=Status.PASSED)
    evidence = (Evidence(message=matrix.differs(cell)),)
    return case(status=Status.VIOLATED, gates=not cell.why, excuse="it is explained", evidence=evidence)


def _difference(one: Difference, observed: Observed) -> CiCase:
    rule = CiRule(
        id=f"observed/{one.switch}",
        level=Level.SAFETY,
        sentence=f"Kafka's own code ({one.part}) has this bug in the releases that the catalogue says",
    )
    evidence = (Evidence(message=matrix.observed_text(one, observed)),)
    variant = observed[one.part].spans(one.releases)
    return CiCase(
        rule=rule, status=Status.VIOLATED, gates=not one.why, excuse="it is explained", variant=variant,
        evidence=evidence,
    )  # fmt: skip
