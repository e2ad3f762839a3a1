"""Traces of every kind on the command line: ``rebalance show``, and ``rebalance replay`` of a run."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rebalance.gate.cli.console.terminal import EXITS, ROOT, UsageError, print_out, unicode, usage, write

if TYPE_CHECKING:
    from rebalance.explore.groups.runs import SavedRun
    from rebalance.gate.report.diagram.diagram import OwnershipDiagram
    from rebalance.gate.traces.counterexamples import Trace
    from rebalance.pipeline.audit.records import Recording


FORMATS = ("text", "svg", "mermaid", "itf", "json")


def add(commands: Any) -> None:
    """Add ``show`` to the parser's ``commands``."""
    parser = commands.add_parser(
        "show",
        help="draw a trace: who owned what when, and the messages between",
        epilog=EXITS,
        description="Draw what `rebalance check`, `rebalance explore` or `rebalance audit` found: who owned "
        "which partition when, generations, messages, callbacks. A run that never ends has its loop marked.",
    )
    parser.set_defaults(run=show)
    parser.add_argument("traces", nargs="+", metavar="ID|FILE|DIR")
    parser.add_argument("--format", choices=FORMATS, default="text", help="text for the terminal; an SVG "
                        "picture; a Mermaid sequence diagram for a pull request; a run as ITF for trace "
                        "viewers; the picture as JSON")  # fmt: skip
    parser.add_argument("--out", type=Path, metavar="FILE", help="write there instead of to the terminal")
    parser.add_argument("--metrics", action="store_true", help="and what it cost: the metrics of KIP-429, "
                        "counted in steps")  # fmt: skip


def show(options: argparse.Namespace) -> int:
    """The command."""
    from rebalance.gate.traces import files
    from rebalance.model.machine import CannotHappenError

    paths: list[Path] = []
    for name in options.traces:
        try:
            paths += files.find(name, ROOT)
        except (ValueError, OSError) as error:
            raise usage(error) from error
    if len(paths) > 1 and (options.out or options.format != "text"):
        option = f"--out {options.out}" if options.out else f"--format {options.format}"
        raise UsageError(f"{option} is for one trace, these are {len(paths)}: {paths[0]}, {paths[1]} ...")
    for path in paths:
        try:
            text = _shown(path, options.format, options.metrics)
        except CannotHappenError as error:
            raise UsageError(f"{path}: {error}") from error
        except ValueError as error:
            raise usage(error) from error
        if options.out:
            write(options.out, text + "\n", "--out")
        else:
            print_out(text)
    return 0


def _shown(path: Path, wanted: str, metrics: bool) -> str:
    """One trace in the format that is wanted. Raises ValueError for a file that is none, and UsageError."""
    from rebalance.explore.groups.runs import SavedRun
    from rebalance.gate.report.diagram.log_diagram import of_recording
    from rebalance.gate.report.diagram.run_diagram import of_run
    from rebalance.gate.report.diagram.scenario_diagram import of_trace
    from rebalance.gate.traces import itf, kinds
    from rebalance.pipeline.audit.records import Recording

    saved = kinds.load(path)
    if isinstance(saved, Recording):
        kind = "a recording of a log"
        if wanted == "text" and not metrics:
            return "\n".join(_recording(saved))
        drawn = of_recording(saved)
    elif isinstance(saved, SavedRun):
        kind = "a run of the model"
        if wanted == "text":
            return "\n".join(_run(saved, metrics))
        if wanted == "itf" and not metrics:
            return json.dumps(itf.of_run(saved), indent=1)
        drawn = of_run(saved)
    else:
        kind = "a counterexample of an assignor"
        if wanted == "text" and not metrics:
            return "\n".join(_counterexample(saved))
        drawn = of_trace(saved)
    if metrics:
        raise UsageError(
            f"--metrics is for runs of the model; {path} is {kind}"
            if "model" not in kind
            else "--metrics goes with --format text"
        )
    if wanted == "itf":
        raise UsageError(
            f"--format itf is for runs of the model, which have states; {path} is {kind}: use svg, "
            "mermaid, text or json"
        )
    return _drawn(drawn, wanted)


def _drawn(drawn: OwnershipDiagram, wanted: str) -> str:
    if wanted == "svg":
        from rebalance.gate.report.diagram import svg

        return svg.render(drawn, standalone=True).rstrip("\n")
    if wanted == "mermaid":
        from rebalance.gate.report.diagram import mermaid

        return mermaid.render(drawn).rstrip("\n")
    from rebalance.gate.report.diagram.diagram import to_json

    return json.dumps(to_json(drawn), indent=1)


def _run(run: SavedRun, metrics: bool) -> list[str]:
    from rebalance.gate.cli.console.text import clean, fold
    from rebalance.gate.report.diagram.run_diagram import of_run
    from rebalance.gate.report.diagram.text import chart
    from rebalance.gate.report.terminal.exploration import run_lines
    from rebalance.gate.traces.runs import run_id
    from rebalance.properties.group.clauses import CLAUSES

    clause = CLAUSES[run.clause]
    heading = fold(clean(f"{run_id(run)}  {clause.id}  {run.sentence}"), 110)
    rule = [f"  rule     {line}" for line in fold(f"{clause.sentence} ({clause.source})", 99)]
    lines = chart(of_run(run), unicode())
    drawn = ["", *(f"  {line}".rstrip() for line in lines)] if lines else []
    more = ["", *_metrics(run)] if metrics else []
    return [*heading, *rule, *_origin(run), "", *run_lines(run), *drawn, *more]


def _counterexample(trace: Trace) -> list[str]:
    from rebalance.gate.cli.console.text import clean, fold
    from rebalance.gate.report.diagram.scenario_diagram import of_trace
    from rebalance.gate.report.diagram.text import draw

    clause = trace.clause
    facts = [
        ("rule", f"{clause.sentence} ({clause.rule})"),
        ("", clause.link),
        ("target", " ".join(filter(None, (trace.target.spec, trace.target.version)))),
        *(("because" if at == 0 else "", reason) for at, reason in enumerate(trace.because)),
        ("expected", trace.expected),
        ("actual", trace.actual),
    ]
    lines = fold(clean(f"{trace.id}  {clause.id}  {trace.summary}"), 110)
    for name, text in facts:
        for at, line in enumerate(fold(clean(text), 98) if text else []):
            lines.append(f"  {name if at == 0 else '':<9} {line}")
    drawn = draw(of_trace(trace), unicode())
    without = (
        []
        if trace.calls
        else ["  (no recording of the answers in the file: `rebalance replay -v` makes them again)"]
    )
    return [*lines, "", *(f"  {line}".rstrip() for line in drawn), *without, ""]


def _recording(recording: Recording) -> list[str]:
    from rebalance.gate.cli.console.text import clean, fold
    from rebalance.gate.report.diagram.log_diagram import of_recording
    from rebalance.gate.report.diagram.text import draw
    from rebalance.gate.report.times import lasted

    found = recording.finding
    heading = fold(clean(f"{found.id}  {found.check}  {found.sentence}"), 110)
    rule = fold(clean(f"{recording.rule} ({recording.source})"), 99)
    about = fold(clean("  ".join(filter(None, (f"group {found.group}", found.about, lasted(found))))), 99)
    paths = fold(clean("  ".join(map(str, recording.origin.get("paths", [])))), 99)
    labelled = [("rule", rule), ("where", about), ("from", paths)]
    facts = [
        f"  {name if at == 0 else '':<8} {line}"
        for name, lines in labelled
        for at, line in enumerate(lines)
        if line
    ]
    drawn = draw(of_recording(recording), unicode())
    return [*heading, *facts, "", *(f"  {line}".rstrip() for line in drawn), ""]


def _metrics(run: SavedRun) -> list[str]:
    """The metrics of each member under the names that Kafka has for them, and partitions without a reader."""
    from rebalance.model.protocol.setup import letter
    from rebalance.properties.group.metrics import figures

    cost = figures(run.setup, run.events)
    names = [*(letter(slot) for slot in run.setup.slots), "group"]
    columns = [*cost.members, cost.group]
    rows: dict[str, list[object]] = {
        "rebalance-total": [m.rebalance_total for m in columns],
        "failed-rebalance-total": [m.failed_rebalance_total for m in columns],
        "rebalance-latency-avg": [f"{m.rebalance_latency_avg:.1f}" for m in columns],
        "rebalance-latency-max": [m.rebalance_latency_max for m in columns],
        "partition-revoked calls": [m.revoked.calls for m in columns],
        "partition-assigned calls": [m.assigned.calls for m in columns],
        "partition-lost calls": [m.lost.calls for m in columns],
    }
    lines = [f"  {'':<26}" + "".join(f"{name:>8}" for name in names)]
    lines += [f"  {title:<26}" + "".join(f"{v!s:>8}" for v in values) for title, values in rows.items()]
    spent = f"{cost.rebalancing} of {cost.steps} steps in {cost.rebalances} rebalances"
    unread = f"partitions x steps without a reader: {cost.paused} during them, {cost.idle} besides"
    return [*lines, f"  {spent}; {unread}"]


def _origin(run: SavedRun) -> list[str]:
    from rebalance.gate.cli.console.text import clean, fold

    settings = [
        f"{key}={','.join(map(str, value)) if isinstance(value, list) else value}"
        for key, value in run.origin.items()
        if key != "faults"
    ]
    return [f"  from     {line}" for line in fold(clean("  ".join(settings)), 99)] if settings else []


def replay(path: Path, *, verbose: int = 0) -> int:
    """Play the run in a file again and say what came of it; the exit code it deserves.

    ``gate.traces.files.NewerSchema`` is raised for the caller to skip it.
    """
    from rebalance.explore.groups.runs import play
    from rebalance.gate.cli.console.text import clean
    from rebalance.gate.report.terminal.exploration import run_lines
    from rebalance.gate.traces import files, runs
    from rebalance.model.machine import CannotHappenError

    try:
        run = runs.load(path)
    except files.NewerSchema:
        raise
    except ValueError as error:
        print_out(f"error    {clean(str(error))}")
        return 2
    name = f"{runs.run_id(run)}  {run.clause}  {clean(str(run.origin.get('scenario', 'group')))}"
    try:
        played = play(run)
    except CannotHappenError as error:
        print_out(f"error    {name}: {error}")
        return 2
    if played.sentence is None:
        print_out(f"fixed    {name}" + (f": {played.why}" if played.why else ""))
        return 0
    early = f", after {played.after} of {len(run.events)} steps" if played.after < len(run.events) else ""
    print_out(f"failing  {name}: {clean(played.sentence)}{early}")
    if verbose:
        print_out("\n".join(["", *run_lines(run), ""]))
    return 1
