"""A saved trace of any kind for a terminal: its rule, its steps, its chart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rebalance_verifier.base.text import clean, fold, page_width
from rebalance_verifier.base.verdict import Level
from rebalance_verifier.explore.groups.runs import SavedRun
from rebalance_verifier.gate.search.counterexamples import Trace
from rebalance_verifier.model.group.setup import letter
from rebalance_verifier.pipeline.audit.records import Recording
from rebalance_verifier.properties.group.metrics import figures
from rebalance_verifier.properties.group.own import clause_named
from rebalance_verifier.report.diagram.diagram import OwnershipDiagram
from rebalance_verifier.report.diagram.log_diagram import of_recording
from rebalance_verifier.report.diagram.run_diagram import of_run
from rebalance_verifier.report.diagram.scenario_diagram import of_trace
from rebalance_verifier.report.diagram.text import chart, draw
from rebalance_verifier.report.frame import labelled
from rebalance_verifier.report.terminal.exploration import run_lines, settings
from rebalance_verifier.report.times import lasted
from rebalance_verifier.traces.runs import run_id


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedTrace:
    """A saved trace of any kind: the clause that it breaks, its picture, its text.

    ``kind`` says where it comes from, ``subject`` which target or scenario. ``is_situation``: its clause is
    one that a run is asked to show. ``lines`` makes the text, with Unicode or without.
    """

    path: Path
    kind: str
    id: str
    clause: str
    level: Level
    rule: str
    source: str
    subject: str
    sentence: str
    draw: Callable[[], OwnershipDiagram]
    lines: Callable[[bool], list[str]]
    link: str = ""
    because: tuple[str, ...] = ()
    is_situation: bool = False


def named(path: Path, saved: Trace | SavedRun | Recording, metrics: bool = False) -> NamedTrace:
    """Return what a file holds by name; with ``metrics`` its text has what the run cost."""
    if isinstance(saved, Recording):
        finding = saved.finding
        return NamedTrace(
            path=path, kind="a recording of a log", id=finding.id, clause=finding.check,
            level=Level(finding.level), rule=saved.rule, source=saved.source,
            subject=f"group {finding.group}", sentence=finding.sentence,
            draw=partial(of_recording, saved), lines=partial(recording, saved),
        )  # fmt: skip
    if isinstance(saved, SavedRun):
        clause = clause_named(saved.clause)
        return NamedTrace(
            path=path, kind="a run of Kafka's code" if saved.on else "a run of the model", id=run_id(saved),
            clause=clause.id, level=clause.level, rule=clause.sentence, source=clause.source,
            subject=str(saved.origin.get("scenario", "group")), sentence=saved.sentence,
            draw=partial(of_run, saved), lines=partial(run_of_group, saved, metrics),
            is_situation=clause.kind == "sometimes",
        )  # fmt: skip
    of_assignor = saved.clause.under(saved.protocol)
    return NamedTrace(
        path=path, kind="a counterexample of an assignor", id=saved.id, clause=of_assignor.id,
        level=of_assignor.level, rule=of_assignor.sentence, source=of_assignor.rule, link=of_assignor.link,
        subject=saved.target.spec, sentence=saved.summary, because=saved.because,
        draw=partial(of_trace, saved), lines=partial(counterexample, saved),
    )  # fmt: skip


def run_of_group(run: SavedRun, metrics: bool, unicode: bool) -> list[str]:
    clause = clause_named(run.clause)
    heading = fold(clean(f"{run_id(run)}  {clause.id}  {run.sentence}"), page_width())
    rule = labelled("rule", f"{clause.sentence} ({clause.source})", most=6)
    lines = chart(of_run(run), unicode)
    drawn = ["", *(f"  {line}".rstrip() for line in lines)] if lines else []
    origin = "  ".join(f"{key}={value}" for key, value in settings(run.origin).items())
    source = labelled("from", origin, most=6) if origin else []
    more = ["", *_metrics(run)] if metrics else []
    return [*heading, *rule, *source, "", *run_lines(run), *drawn, *more]


def counterexample(trace: Trace, unicode: bool) -> list[str]:
    clause = trace.clause.under(trace.protocol)
    facts = [
        ("rule", f"{clause.sentence} ({clause.rule})"),
        ("", clause.link),
        ("target", " ".join(filter(None, (trace.target.spec, trace.target.version)))),
        *(("because" if at == 0 else "", reason) for at, reason in enumerate(trace.because)),
        ("expected", trace.expected),
        ("actual", trace.actual),
    ]
    lines = fold(clean(f"{trace.id}  {clause.id}  {trace.summary}"), page_width())
    for name, text in facts:
        lines += labelled(name, text, most=6, width=10) if text else []
    drawn = draw(of_trace(trace), unicode)
    if not trace.calls:
        drawn.append("(no recording of the answers in the file: `rebalance replay -v` makes them again)")
    return [*lines, "", *(f"  {line}".rstrip() for line in drawn), ""]


def recording(found: Recording, unicode: bool) -> list[str]:
    finding = found.finding
    heading = fold(clean(f"{finding.id}  {finding.check}  {finding.sentence}"), page_width())
    about = "  ".join(filter(None, (f"group {finding.group}", finding.about, lasted(finding))))
    paths = "  ".join(map(str, found.origin.get("paths", [])))
    rows = (("rule", f"{found.rule} ({found.source})"), ("where", about), ("from", paths))
    facts = [line for name, text in rows if text for line in labelled(name, text, most=6)]
    drawn = draw(of_recording(found), unicode)
    return [*heading, *facts, "", *(f"  {line}".rstrip() for line in drawn), ""]


def _metrics(run: SavedRun) -> list[str]:
    """The metrics of each member under the names that Kafka has for them, and partitions without a reader."""
    cost = figures(run.setup, run.events)
    names = [*(letter(slot) for slot in run.setup.slots), "group"]
    columns = [one.named for one in (*cost.members, cost.group)]
    lines = [f"  {'':<26}" + "".join(f"{name:>8}" for name in names)]
    lines += [f"  {name:<26}" + "".join(f"{one[name]:>8}" for one in columns) for name in cost.group.named]
    spent = f"{cost.rebalancing} of {cost.steps} steps in {cost.rebalances} rebalances"
    unread = f"partitions x steps without a reader: {cost.paused} during them, {cost.idle} at other times"
    return [*lines, f"  {spent}; {unread}"]
