"""``rebalance show``: a trace of any kind, drawn."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
from rebalance_verifier.cli.shared.options import REPORTS, add_format, add_options, refuse
from rebalance_verifier.cli.shared.reports import Reports

if TYPE_CHECKING:
    from rebalance_verifier.explore.groups.runs import SavedRun
    from rebalance_verifier.report.diagram.diagram import OwnershipDiagram
    from rebalance_verifier.report.terminal.trace import NamedTrace


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
    add_options(parser, *REPORTS)
    return parser


def run(options: argparse.Namespace) -> int:
    """Run the command; return its exit code."""
    from rebalance_verifier.model.machine import CannotHappenError
    from rebalance_verifier.report.ci import trace_reports

    paths = traces.found(options.traces)
    if len(paths) > 1 and (options.out or options.format != "text"):
        option = f"--out {options.out}" if options.out else f"--format {options.format}"
        raise UsageError(f"{option} is for one trace, these are {len(paths)}: {paths[0]}, {paths[1]} ...")
    if options.step:
        if len(paths) > 1 or options.out or options.format != "text" or options.metrics:
            raise UsageError("--step is for one trace, without --out, --format and --metrics")
        refuse(options, REPORTS, "does not go with --step")
        with usage_errors(ValueError), usage_errors(CannotHappenError, option=str(paths[0])):
            _step_through(paths[0], options.trust)
        return 0
    reports, shown = Reports.of_cases(options), []
    for path in paths:
        with usage_errors(ValueError), usage_errors(CannotHappenError, option=str(path)):
            trace, model_run = _named(path, options)
            drawn = _drawn(trace, model_run, options.format)
        shown.append(trace)
        if options.out:
            write(Path(options.out), drawn + "\n", "--out")
        else:
            (print_text if options.format == "text" else print_out)(drawn)
    reports.finish_cases(
        lambda: trace_reports.shown(shown),
        lead="This page draws which member of a group owned which partition, and when.",
    )
    return 0


def _named(path: Path, options: argparse.Namespace) -> tuple[NamedTrace, SavedRun | None]:
    """Return a trace, and the run of the model that it is, if any. Raises ValueError for a file that is none,
    and UsageError."""
    from rebalance_verifier.explore.groups.runs import SavedRun
    from rebalance_verifier.report.terminal.trace import named
    from rebalance_verifier.traces import kinds

    saved = kinds.load(path, trusted=options.trust)
    trace = named(path, saved, options.metrics)
    model_run = saved if isinstance(saved, SavedRun) and not saved.on else None
    if options.metrics and (model_run is None or options.format != "text"):
        reason = (
            "goes with --format text" if model_run else f"is for runs of the model; {path} is {trace.kind}"
        )
        raise UsageError(f"--metrics {reason}")
    if options.format == "itf" and not model_run:
        raise UsageError(
            f"--format itf is for runs of the model, which have states; {path} is {trace.kind}: use svg, "
            "mermaid, text or json"
        )
    return trace, model_run


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


def _drawn(trace: NamedTrace, model_run: SavedRun | None, wanted: str) -> str:
    """Return a trace in the format that is wanted."""
    from rebalance_verifier.explore.groups import itf

    if wanted == "text":
        return "\n".join(trace.lines(unicode()))
    if wanted == "itf" and model_run:
        return json_text(itf.of_run(model_run), 1)
    return _picture(trace.draw(), wanted)


def _picture(drawn: OwnershipDiagram, wanted: str) -> str:
    from rebalance_verifier.report.diagram import diagram, mermaid, svg

    if wanted == "svg":
        return svg.render(drawn, standalone=True).rstrip("\n")
    if wanted == "mermaid":
        return mermaid.render(drawn).rstrip("\n")
    return json_text(diagram.to_json(drawn), 1)
