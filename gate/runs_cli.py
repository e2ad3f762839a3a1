"""Runs and recordings on the command line: ``rebalance show``, and ``rebalance replay`` of a run."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rebalance.gate.terminal import EXITS, ROOT, UsageError, say, unicode, usage

if TYPE_CHECKING:
    from rebalance.gate.recordings import Recording
    from rebalance.gate.runs import SavedRun


def add(commands: Any) -> None:
    """Add ``show`` to the parser's ``commands``."""
    parser = commands.add_parser(
        "show",
        help="print the steps of a saved run of the group, or draw what an audit found",
        epilog=EXITS,
        description="Print a run that `rebalance explore` saved, step by step: callbacks, generations, who "
        "owns what. A run that never ends has its loop marked. Of what `rebalance audit` found in a log, "
        "draw who owned the partition when.",
    )
    parser.set_defaults(run=show)
    parser.add_argument("traces", nargs="+", metavar="ID|FILE|DIR")
    parser.add_argument("--metrics", action="store_true", help="and what it cost: the metrics of KIP-429, "
                        "counted in steps")  # fmt: skip


def show(options: argparse.Namespace) -> int:
    """The command."""
    from rebalance.gate import recordings, runs, traces
    from rebalance.gate.report.exploration import run_lines
    from rebalance.gate.report.steps import CannotHappenError
    from rebalance.gate.report.words import clean, fold
    from rebalance.properties.protocol import CLAUSES

    for name in options.traces:
        try:
            paths = traces.find(name, ROOT)
        except (ValueError, OSError) as error:
            raise usage(error) from error
        for path in paths:
            if recordings.is_recording(path):
                if options.metrics:
                    raise UsageError(f"--metrics is for runs of the model; {path} is a recording of a log")
                try:
                    say("\n".join(_recording(recordings.load(path))))
                except ValueError as error:
                    raise usage(error) from error
                continue
            if not runs.is_run(path):
                raise UsageError(
                    f"{path} is no run of the group; a counterexample of an assignor is shown by "
                    f"`rebalance replay -v {name}`"
                )
            try:
                run = runs.load(path)
                lines = run_lines(run)
            except CannotHappenError as error:
                raise UsageError(f"{path}: {error}") from error
            except ValueError as error:
                raise usage(error) from error
            clause = CLAUSES[run.clause]
            heading = fold(clean(f"{run.id}  {clause.id}  {run.sentence}"), 110)
            rule = [f"  rule     {line}" for line in fold(f"{clause.sentence} ({clause.source})", 99)]
            more = ["", *_metrics(run)] if options.metrics else []
            say("\n".join([*heading, *rule, *_origin(run), "", *lines, *more]))
    return 0


def _recording(recording: Recording) -> list[str]:
    from rebalance.gate.report.timeline import chart, lasted
    from rebalance.gate.report.words import clean, fold

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
    return [*heading, *facts, "", *chart(recording, unicode=unicode()), ""]


def _metrics(run: SavedRun) -> list[str]:
    """The metrics of each member under the names that Kafka has for them, and partitions without a reader."""
    from rebalance.model.protocol.setup import letter
    from rebalance.properties.metrics import figures

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
    from rebalance.gate.report.words import clean, fold

    said = [
        f"{key}={','.join(map(str, value)) if isinstance(value, list) else value}"
        for key, value in run.origin.items()
        if key != "faults"
    ]
    return [f"  from     {line}" for line in fold(clean("  ".join(said)), 99)] if said else []


def replay(path: Path, *, verbose: int = 0) -> int:
    """Play the run in a file again and say what came of it; the exit code it deserves.

    ``gate.traces.NewerSchema`` is raised for the caller to skip it.
    """
    from rebalance.gate import runs, traces
    from rebalance.gate.report.exploration import run_lines
    from rebalance.gate.report.steps import CannotHappenError
    from rebalance.gate.report.words import clean

    try:
        run = runs.load(path)
    except traces.NewerSchema:
        raise
    except ValueError as error:
        say(f"error    {clean(str(error))}")
        return 2
    name = f"{run.id}  {run.clause}  {clean(str(run.origin.get('scenario', 'group')))}"
    try:
        played = runs.play(run)
    except CannotHappenError as error:
        say(f"error    {name}: {error}")
        return 2
    if played.sentence is None:
        say(f"fixed    {name}" + (f": {played.why}" if played.why else ""))
        return 0
    early = f", after {played.after} of {len(run.events)} steps" if played.after < len(run.events) else ""
    say(f"failing  {name}: {clean(played.sentence)}{early}")
    if verbose:
        say("\n".join(["", *run_lines(run), ""]))
    return 1
