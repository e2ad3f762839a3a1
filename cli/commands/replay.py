"""``rebalance replay``: saved counterexamples again, on their targets, on the model, or on real clients."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rebalance_verifier.base.saved import ROOT
from rebalance_verifier.base.text import clean
from rebalance_verifier.base.verdict import Exit
from rebalance_verifier.cli.console.progress import staged
from rebalance_verifier.cli.console.terminal import (
    UsageError,
    make_directory,
    print_err,
    print_text,
    unicode,
    usage_errors,
    write,
)
from rebalance_verifier.cli.console.terminal import clean as clean_lines
from rebalance_verifier.cli.shared import traces
from rebalance_verifier.cli.shared.options import CONFINED, add_options, refuse_protocol
from rebalance_verifier.cli.shared.targets import resolved, session
from rebalance_verifier.cli.shared.values import duration, whole
from rebalance_verifier.live.clients.clusters.defaults import PATIENCE

if TYPE_CHECKING:
    from rebalance_verifier.explore.groups.runs import SavedRun
    from rebalance_verifier.gate.scenarios.player import PlayedHistory
    from rebalance_verifier.gate.search.counterexamples import Trace
    from rebalance_verifier.live.clients.replay.verdict import Replayed

REPLAYS = "replays"
KIND = "replay"
SCHEMA = 1

KEPT = (
    *("client", "version", "verdict", "naming", "steps", "done", "broken", "unforced", "stopped", "differs"),
    *("shown", "events"),
)
"""What the recording of a replay has of what came of it, in this order."""


def add(commands: Any) -> argparse.ArgumentParser:
    """Add the command to the parser's ``commands``."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "replay",
        description="Play counterexamples again: those of assignors on their targets, runs of a group on the "
        "model or, with --on, on real clients.",
    )
    parser.add_argument("traces", nargs="*", metavar="ID|FILE|DIR", help="default: all saved failures")
    add_options(parser, "--target", "--trust")
    parser.add_argument("--as-pytest", type=Path, metavar="OUT.py",
                        help="write one counterexample as a stand-alone test instead")  # fmt: skip
    add_options(parser, *CONFINED, "--verbose", "--no-color", "--no-progress")
    live = parser.add_argument_group(
        "against real clients (runs of the group only)",
        "Play the environment and the coordinator of a run of `rebalance explore` or "
        "`rebalance bugs` against real consumers. Exit 1 if they break its clause or another "
        "one, 0 if none, 3 if the trace could not be forced to its end. Recordings go to "
        ".rebalance/replays, or to --out.",
    )
    add_options(live, "--on")
    live.add_argument("--patience", type=duration, default=PATIENCE, metavar="TIME", help="how long to wait "
                      f"for the next step of a client in the trace ({PATIENCE:g})")  # fmt: skip
    live.add_argument("--attempts", type=whole, metavar="N", help="how many orders of member ids to try "
                      "until the leader decides as in the trace (all)")  # fmt: skip
    add_options(live, "--out")
    return parser


def run(options: argparse.Namespace) -> int:
    """The command."""
    from rebalance_verifier.base import saved as files
    from rebalance_verifier.explore.groups.runs import SavedRun
    from rebalance_verifier.gate.search import counterexamples
    from rebalance_verifier.pipeline.audit.records import Recording
    from rebalance_verifier.traces import kinds

    paths = traces.found(options.traces or [str(ROOT / files.FAILURES)])
    if options.on:
        if options.as_pytest or options.target:
            raise UsageError("--as-pytest and --target go with assignors, --on with runs of the group")
        return _on_clients(options, paths)
    if options.as_pytest and len(paths) != 1:
        raise UsageError(f"--as-pytest takes one trace, {len(paths)} were named")
    worst = 0
    for path in paths:
        try:
            trace = kinds.load(path, trusted=options.trust)
            if isinstance(trace, Recording):
                raise UsageError(f"{path} is a recording of a log, which `rebalance show` draws")
            if isinstance(trace, SavedRun):
                if options.as_pytest or options.target:
                    raise UsageError(
                        f"{path} is a run of the group: --as-pytest and --target go with assignors"
                    )
                if trace.on:
                    raise UsageError(f"{path} is a run of Kafka's code: say --on {trace.on} or another")
                worst = max(worst, _replay_run(trace, options))
                continue
        except files.NewerSchema as error:
            print_err(f"skipped  {error}")
            continue
        except ValueError as error:
            print_text(f"error    {clean(str(error))}")
            worst = max(worst, Exit.USAGE)
            continue
        if options.as_pytest:
            with usage_errors(ValueError):
                _may_run(trace, options)
            if options.target:
                trace = replace(trace, target=replace(trace.target, spec=options.target))
            write(options.as_pytest, counterexamples.as_pytest(trace), "--as-pytest")
            print_text(f"written  {options.as_pytest}")
        else:
            worst = max(worst, _replay_trace(trace, options))
    return worst


def _replay_trace(trace: Trace, options: argparse.Namespace) -> int:
    """Play a trace again, say what came of it; the exit code it deserves."""
    from rebalance_verifier.gate.search.search import replay

    spec = options.target or trace.target.spec
    name = f"{trace.id}  {trace.clause.id}  {clean(spec)}"
    try:
        with usage_errors(ValueError):
            _may_run(trace, options)
        with (
            staged(options, f"replaying {name}"),
            session(resolved(spec, (), options), options) as talk,
        ):
            record = replay(talk, trace.scenario, trace.clause)
    except UsageError as error:
        print_text(f"error    {name}: {clean_lines(str(error))}")
        return Exit.USAGE
    if record.skipped is not None:
        print_text(f"error    {name} declined: {clean(record.skipped)}")
        return Exit.USAGE
    found = record.breach_of(trace.clause.id)
    if found is None:
        print_text(f"fixed    {name}")
        return 0
    print_text(f"failing  {name}: {clean(found.breach.summary)}")
    if options.verbose:
        print_text("\n".join(_shown(trace, record)) + "\n")
    return Exit.VIOLATION


def _may_run(trace: Trace, options: argparse.Namespace) -> None:
    """Raise TraceError where what the file names is neither signed nor named on the command line."""
    from rebalance_verifier.gate.targets import trust

    if not options.target:
        trust.check(trace.path or Path(), trace.target.spec, trusted=options.trust, target=True)


def _shown(trace: Trace, record: PlayedHistory) -> list[str]:
    """Return the events of a replay, as in the report of the check that found it."""
    from rebalance_verifier.gate.search.result import ClauseResult, Status
    from rebalance_verifier.report.terminal.check import block

    found = record.breach_of(trace.clause.id)
    assert found is not None
    finding = trace.finding(found, record.scenario, record.calls)
    row = ClauseResult(clause=trace.clause, protocol=trace.protocol, status=Status.VIOLATED, finding=finding)
    return ["", *block("VIOLATION", row, unicode())]


def _replay_run(run: SavedRun, options: argparse.Namespace) -> int:
    """Play a run on the model again and say what came of it; the exit code it deserves."""
    from rebalance_verifier.explore.groups.runs import play
    from rebalance_verifier.model.machine import CannotHappenError
    from rebalance_verifier.properties.group.own import InvariantError, clause_named
    from rebalance_verifier.report.terminal.exploration import run_lines
    from rebalance_verifier.traces import runs

    name = f"{runs.run_id(run)}  {run.clause}  {clean(str(run.origin.get('scenario', 'group')))}"
    try:
        with staged(options, f"replaying {name}"):
            played = play(run)
    except (CannotHappenError, InvariantError) as error:
        print_text(f"error    {name}: {clean_lines(str(error))}")
        return Exit.USAGE
    if played.sentence is None:
        print_text(f"fixed    {name}" + (f": {played.why}" if played.why else ""))
        return 0
    early = f", after {played.after} of {len(run.events)} steps" if played.after < len(run.events) else ""
    witness = clause_named(run.clause).kind == "sometimes"
    print_text(f"{'shown   ' if witness else 'failing '} {name}: {clean(played.sentence)}{early}")
    if options.verbose:
        print_text("\n".join(["", *run_lines(run), ""]))
    return Exit.CONFORMANT if witness else Exit.VIOLATION


# -- on real clients -----------------------------------------------------------------------------------


def _on_clients(options: argparse.Namespace, paths: Sequence[Path]) -> int:
    """Replay each of ``paths`` on real clients, or on Kafka's own code; the exit code."""
    from rebalance_verifier.base import saved as files
    from rebalance_verifier.base.processes.tools import ToolError
    from rebalance_verifier.explore.groups.runs import SavedRun
    from rebalance_verifier.live.clients.clusters.cluster import Unsupported
    from rebalance_verifier.live.clients.consumers.member import ClientProfile
    from rebalance_verifier.live.code.lockstep.replayers import player
    from rebalance_verifier.live.code.replay.attempts import peer
    from rebalance_verifier.traces import kinds

    with usage_errors(ValueError, option="--on"):
        on = peer(options.on)
    if options.out is None:
        files.make_root(ROOT)
    directory = make_directory(Path(options.out or ROOT / REPLAYS), "--out")
    limits = {name: getattr(options, name) for name in ("patience", "attempts")}
    report_progress = print_err if options.verbose else lambda _: None
    codes = []
    try:
        with ExitStack() as running:
            with staged(options, f"starting {options.on}"):
                started = player(on, **limits, log_dir=directory, report_progress=report_progress)
                play = running.enter_context(started)
            for path in paths:
                with usage_errors(ValueError):
                    saved = kinds.load(path, trusted=options.trust)
                    if not isinstance(saved, SavedRun):
                        raise ValueError(f"{path}: not a run of the group")
                    if "assignor" in saved.origin and saved.on:
                        again = f"rebalance check {saved.origin['assignor']} --in-group"
                        raise ValueError(f"{path} needs its assignor: `{again}` plays it again")
                    if saved.on and isinstance(on, ClientProfile):
                        raise ValueError(f"{path} is a run of Kafka's code, not for {on}: --on code:RELEASE")
                    if isinstance(on, ClientProfile):
                        refuse_protocol("replay --on CLIENT", saved.setup.protocol)
                    with staged(options, f"replaying {path} on {options.on}"):
                        result = play(saved)
                    codes.append(_kept(saved, result, directory, options.verbose))
    except (ToolError, Unsupported) as error:
        raise UsageError(f"--on {on}: {clean(str(error))}") from error
    return next((code for code in (Exit.VIOLATION, Exit.INCONCLUSIVE) if code in codes), Exit.CONFORMANT)


def _kept(saved: SavedRun, result: Replayed, directory: Path, verbose: int) -> int:
    """Save and print the result of a replay; the exit code."""
    from rebalance_verifier.report.terminal.replayed import render

    with usage_errors(OSError, option="--out"):
        path = save(saved, result, directory)
    print_text(render(saved, result, verbose=verbose))
    print_text(f"  saved    {path}")
    if result.interrupted:
        raise KeyboardInterrupt
    return result.exit


def save(saved: SavedRun, result: Replayed, directory: Path) -> Path:
    """Write the recording as ``<id of the run>-<client>.json``. Raises OSError."""
    from rebalance_verifier.base.saved import SUITE, dump, write
    from rebalance_verifier.model.codec import to_json
    from rebalance_verifier.traces.runs import run_id

    document: dict[str, Any] = {
        "schema": SCHEMA,
        "kind": KIND,
        "suite": SUITE,
        "run": run_id(saved),
        "clause": saved.clause,
        **{name: to_json(getattr(result, name)) for name in KEPT},
        "frames": [json.loads(line) for line in result.frames],
    }
    name = f"{run_id(saved)}-{result.client.replace(':', '-')}.json"
    return write(directory / name, dump(document) + "\n")
