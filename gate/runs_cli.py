"""Saved runs of the group on the command line: ``rebalance show``, and ``rebalance replay`` of one."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rebalance.gate.terminal import EXITS, ROOT, UsageError, say, usage

if TYPE_CHECKING:
    from rebalance.gate.runs import SavedRun


def add(commands: Any) -> None:
    """Add ``show`` to the parser's ``commands``."""
    parser = commands.add_parser(
        "show",
        help="print the steps of a saved run of the group",
        epilog=EXITS,
        description="Print a run that `rebalance explore` saved, step by step: callbacks, generations, who "
        "owns what. A run that never ends has its loop marked.",
    )
    parser.set_defaults(run=show)
    parser.add_argument("traces", nargs="+", metavar="ID|FILE|DIR")


def show(options: argparse.Namespace) -> int:
    """The command."""
    from rebalance.gate import runs, traces
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
            say("\n".join([*heading, *rule, *_origin(run), "", *lines]))
    return 0


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
