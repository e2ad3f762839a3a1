"""``rebalance show``: a trace of any kind, drawn."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rebalance_verifier.base.text import clean, fold, page_width
from rebalance_verifier.cli.console.terminal import (
    UsageError,
    json_text,
    print_out,
    print_text,
    unicode,
    usage_errors,
    write,
)
from rebalance_verifier.cli.shared import traces
from rebalance_verifier.cli.shared.options import add_format, add_options
from rebalance_verifier.report.frame import labelled

if TYPE_CHECKING:
    from rebalance_verifier.explore.groups.runs import SavedRun
    from rebalance_verifier.gate.search.counterexamples import Trace
    from rebalance_verifier.pipeline.audit.records import Recording
    from rebalance_verifier.report.diagram.diagram import OwnershipDiagram


def add(commands: Any) -> argparse.ArgumentParser:
    """Add the command to the parser's ``commands``."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "show",
        description="Draw a result of `rebalance check`, `rebalance explore` or `rebalance audit`: which "
        "member owned which partition when, generations, messages, callbacks. A run that "
        "never ends has its loop marked. Formats: text for the terminal, svg (a picture), "
        "mermaid (a sequence diagram for a pull request), itf (for trace viewers), json.",
    )
    parser.add_argument("traces", nargs="+", metavar="ID|FILE|DIR")
    add_format(parser, "svg", "mermaid", "itf")
    add_options(parser, "--out", "--trust")
    parser.add_argument("--step", action="store_true", help="go through it step by step, forward and "
                        "back; in a run of the model any step that can happen can be taken")  # fmt: skip
    parser.add_argument("--metrics", action="store_true", help="and what it cost: the metrics of KIP-429, "
                        "counted in steps")  # fmt: skip
    return parser


def run(options: argparse.Namespace) -> int:
    """The command."""
    from rebalance_verifier.model.machine import CannotHappenError

    paths = traces.found(options.traces)
    if len(paths) > 1 and (options.out or options.format != "text"):
        option = f"--out {options.out}" if options.out else f"--format {options.format}"
        raise UsageError(f"{option} is for one trace, these are {len(paths)}: {paths[0]}, {paths[1]} ...")
    if options.step:
        if len(paths) > 1 or options.out or options.format != "text" or options.metrics:
            raise UsageError("--step is for one trace, without --out, --format and --metrics")
        with usage_errors(ValueError), usage_errors(CannotHappenError, option=str(paths[0])):
            _step_through(paths[0], options.trust)
        return 0
    for path in paths:
        with usage_errors(ValueError), usage_errors(CannotHappenError, option=str(path)):
            text = _shown(path, options.format, options.metrics, options.trust)
        if options.out:
            write(Path(options.out), text + "\n", "--out")
        else:
            (print_text if options.format == "text" else print_out)(text)
    return 0


def _shown(path: Path, wanted: str, metrics: bool, trusted: bool) -> str:
    """One trace in the format that is wanted. Raises ValueError for a file that is none, and UsageError."""
    from rebalance_verifier.explore.groups import itf
    from rebalance_verifier.explore.groups.runs import SavedRun
    from rebalance_verifier.pipeline.audit.records import Recording
    from rebalance_verifier.report.diagram.log_diagram import of_recording
    from rebalance_verifier.report.diagram.run_diagram import of_run
    from rebalance_verifier.report.diagram.scenario_diagram import of_trace
    from rebalance_verifier.traces import kinds

    saved = kinds.load(path, trusted=trusted)
    draw: Callable[[], OwnershipDiagram]
    lines: Callable[[], list[str]]
    if isinstance(saved, Recording):
        kind, draw, lines = "a recording of a log", partial(of_recording, saved), partial(_recording, saved)
    elif isinstance(saved, SavedRun):
        kind = "a run of Kafka's code" if saved.on else "a run of the model"
        draw, lines = partial(of_run, saved), partial(_run_of_group, saved, metrics)
    else:
        kind = "a counterexample of an assignor"
        draw, lines = partial(of_trace, saved), partial(_counterexample, saved)
    model_run = saved if isinstance(saved, SavedRun) and not saved.on else None
    if metrics and (model_run is None or wanted != "text"):
        reason = "goes with --format text" if model_run else f"is for runs of the model; {path} is {kind}"
        raise UsageError(f"--metrics {reason}")
    if wanted == "text":
        return "\n".join(lines())
    if wanted == "itf" and model_run:
        return json_text(itf.of_run(model_run), 1)
    if wanted == "itf":
        raise UsageError(
            f"--format itf is for runs of the model, which have states; {path} is {kind}: use svg, "
            "mermaid, text or json"
        )
    return _drawn(draw(), wanted)


def _step_through(path: Path, trusted: bool) -> None:
    """Ask for a step after the other until the input ends. Raises ValueError and UsageError as above."""
    from rebalance_verifier.explore.groups.runs import SavedRun, run_views
    from rebalance_verifier.gate.scenarios.round_view import round_views
    from rebalance_verifier.model.protocols import machine
    from rebalance_verifier.model.steps import SteppedRun
    from rebalance_verifier.pipeline.audit.records import Recording, recording_views
    from rebalance_verifier.report.diagram.scenario_diagram import recorded
    from rebalance_verifier.report.terminal.stepping import KEYS, shown
    from rebalance_verifier.traces import kinds, runs

    saved = kinds.load(path, trusted=trusted)
    if isinstance(saved, Recording):
        stepper = SteppedRun(list(recording_views(saved)))
    elif not isinstance(saved, SavedRun):
        rounds = round_views(saved.scenario, recorded(saved).calls, saved.round, saved.summary)
        stepper = SteppedRun(list(rounds))
    else:
        views, model = list(run_views(saved, len(saved.events))), not saved.on
        stepper = SteppedRun(views, machine(saved.setup), saved.events) if model else SteppedRun(views)
    print_text(KEYS)
    everything = False
    while True:
        print_text("\n".join(shown(stepper, everything)))
        try:
            typed = input("> ").split()
        except EOFError:
            return
        everything = typed == ["c"]
        match typed:
            case []:
                stepper.go(stepper.at + 1)
            case ["b"]:
                stepper.go(stepper.at - 1)
            case ["c"]:
                continue
            case ["q"]:
                return
            case ["g", number] if number.isdecimal():
                stepper.go(int(number))
            case ["w", name] if isinstance(saved, SavedRun) and not saved.on:
                write(Path(name), runs.to_text(replace(saved, events=tuple(stepper.events), loop=None)), "w")
            case [number] if number.isdecimal() and 0 < int(number) <= len(found := stepper.choices()):
                stepper.take(*found[int(number) - 1])
            case _:
                print_text(KEYS)


def _drawn(drawn: OwnershipDiagram, wanted: str) -> str:
    from rebalance_verifier.report.diagram import diagram, mermaid, svg

    if wanted == "svg":
        return svg.render(drawn, standalone=True).rstrip("\n")
    if wanted == "mermaid":
        return mermaid.render(drawn).rstrip("\n")
    return json_text(diagram.to_json(drawn), 1)


def _run_of_group(run: SavedRun, metrics: bool) -> list[str]:
    from rebalance_verifier.properties.group.own import clause_named
    from rebalance_verifier.report.diagram.run_diagram import of_run
    from rebalance_verifier.report.diagram.text import chart
    from rebalance_verifier.report.terminal.exploration import run_lines, settings
    from rebalance_verifier.traces.runs import run_id

    clause = clause_named(run.clause)
    heading = fold(clean(f"{run_id(run)}  {clause.id}  {run.sentence}"), page_width())
    rule = labelled("rule", f"{clause.sentence} ({clause.source})", most=6)
    lines = chart(of_run(run), unicode())
    drawn = ["", *(f"  {line}".rstrip() for line in lines)] if lines else []
    origin = "  ".join(f"{key}={value}" for key, value in settings(run.origin).items())
    source = labelled("from", origin, most=6) if origin else []
    more = ["", *_metrics(run)] if metrics else []
    return [*heading, *rule, *source, "", *run_lines(run), *drawn, *more]


def _counterexample(trace: Trace) -> list[str]:
    from rebalance_verifier.report.diagram.scenario_diagram import of_trace
    from rebalance_verifier.report.diagram.text import draw

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
    drawn = draw(of_trace(trace), unicode())
    if not trace.calls:
        drawn.append("(no recording of the answers in the file: `rebalance replay -v` makes them again)")
    return [*lines, "", *(f"  {line}".rstrip() for line in drawn), ""]


def _recording(recording: Recording) -> list[str]:
    from rebalance_verifier.report.diagram.log_diagram import of_recording
    from rebalance_verifier.report.diagram.text import draw
    from rebalance_verifier.report.times import lasted

    found = recording.finding
    heading = fold(clean(f"{found.id}  {found.check}  {found.sentence}"), page_width())
    about = "  ".join(filter(None, (f"group {found.group}", found.about, lasted(found))))
    paths = "  ".join(map(str, recording.origin.get("paths", [])))
    rows = (("rule", f"{recording.rule} ({recording.source})"), ("where", about), ("from", paths))
    facts = [line for name, text in rows if text for line in labelled(name, text, most=6)]
    drawn = draw(of_recording(recording), unicode())
    return [*heading, *facts, "", *(f"  {line}".rstrip() for line in drawn), ""]


def _metrics(run: SavedRun) -> list[str]:
    """The metrics of each member under the names that Kafka has for them, and partitions without a reader."""
    from rebalance_verifier.model.group.setup import letter
    from rebalance_verifier.properties.group.metrics import figures

    cost = figures(run.setup, run.events)
    names = [*(letter(slot) for slot in run.setup.slots), "group"]
    columns = [one.named for one in (*cost.members, cost.group)]
    lines = [f"  {'':<26}" + "".join(f"{name:>8}" for name in names)]
    lines += [f"  {name:<26}" + "".join(f"{one[name]:>8}" for one in columns) for name in cost.group.named]
    spent = f"{cost.rebalancing} of {cost.steps} steps in {cost.rebalances} rebalances"
    unread = f"partitions x steps without a reader: {cost.paused} during them, {cost.idle} besides"
    return [*lines, f"  {spent}; {unread}"]
