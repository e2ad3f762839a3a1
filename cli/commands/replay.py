"""``rebalance replay``: saved counterexamples again, on their targets, on the model, or on real clients."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
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
    print_json,
    print_text,
    unicode,
    usage_errors,
    write,
)
from rebalance_verifier.cli.console.terminal import clean as clean_lines
from rebalance_verifier.cli.shared import traces
from rebalance_verifier.cli.shared.options import (
    CONFINED,
    REPORTS,
    add_format,
    add_options,
    refuse,
    refuse_protocol,
)
from rebalance_verifier.cli.shared.reports import Reports
from rebalance_verifier.cli.shared.targets import resolved, session
from rebalance_verifier.cli.shared.values import duration, whole
from rebalance_verifier.live.clients.clusters.defaults import PATIENCE

if TYPE_CHECKING:
    from rebalance_verifier.explore.groups.runs import SavedRun
    from rebalance_verifier.gate.scenarios.player import PlayedHistory
    from rebalance_verifier.gate.search.counterexamples import Trace
    from rebalance_verifier.live.clients.replay.verdict import Replayed
    from rebalance_verifier.report.terminal.replayed import ReplayOutcome, Replays

REPLAYS = "replays"
KIND = "replay"
SCHEMA = 1

OF_ASSIGNORS = "{} is a run of the group: --as-pytest and --target go with assignors"

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
    add_options(parser, *CONFINED)
    add_format(parser)
    add_options(parser, *REPORTS, "--verbose", "--no-color", "--no-progress")
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
    """Run the command; return its exit code."""
    from rebalance_verifier.base import saved as files
    from rebalance_verifier.report.terminal.replayed import Replays

    paths = traces.found(options.traces or [str(ROOT / files.FAILURES)])
    if options.on and (options.as_pytest or options.target):
        raise UsageError("--as-pytest and --target go with assignors, --on with runs of the group")
    if options.as_pytest:
        refuse(options, ("--format", *REPORTS), "does not go with --as-pytest")
        if len(paths) != 1:
            raise UsageError(f"--as-pytest takes one trace, {len(paths)} were named")
        return _as_pytest(paths[0], options)
    reports, replays = Reports.of_cases(options), Replays(on=options.on or "")
    try:
        for outcome in _on_clients(options, paths) if options.on else _again(options, paths):
            replays.outcomes.append(outcome)
            if options.format == "text":
                _print(outcome)
    except (UsageError, KeyboardInterrupt) as error:
        replays.stopped, replays.interrupted = str(error), isinstance(error, KeyboardInterrupt)
        if replays.outcomes:  # what was played is not lost
            _finish(reports, replays, options)
        raise
    _finish(reports, replays, options)
    return replays.exit


def _print(outcome: ReplayOutcome) -> None:
    if outcome.word == "skipped":
        print_err(outcome.line)
    else:
        print_text("\n".join([outcome.line, *outcome.text]))


def _finish(reports: Reports, replays: Replays, options: argparse.Namespace) -> None:
    """Write the reports, and print the document where it was asked for."""
    from rebalance_verifier.report.ci import document, trace_reports

    if options.format == "json":
        print_json(document.to_json(trace_reports.replayed(replays)))
    reports.finish_cases(
        lambda: trace_reports.replayed(replays),
        lead="This page shows whether counterexamples that were found before still fail.",
    )


def _again(options: argparse.Namespace, paths: Sequence[Path]) -> Iterator[ReplayOutcome]:
    """Play each trace again, on what it is from."""
    from rebalance_verifier.explore.groups.runs import SavedRun
    from rebalance_verifier.report.terminal.replayed import ReplayOutcome

    for path in paths:
        saved = _loaded(path, options)
        if isinstance(saved, ReplayOutcome):
            yield saved
        elif isinstance(saved, SavedRun):
            if saved.on:
                raise UsageError(f"{path} is a run of Kafka's code: say --on {saved.on} or another")
            if options.target:
                raise UsageError(OF_ASSIGNORS.format(path))
            yield _replay_run(path, saved, options)
        else:
            yield _replay_trace(path, saved, options)


def _loaded(path: Path, options: argparse.Namespace) -> Trace | SavedRun | ReplayOutcome:
    """Return what is in a file, or that it cannot be played. Raises UsageError for a recording."""
    from rebalance_verifier.base import saved as files
    from rebalance_verifier.pipeline.audit.records import Recording
    from rebalance_verifier.report.terminal.replayed import ERROR, SKIPPED, ReplayOutcome
    from rebalance_verifier.traces import kinds

    try:
        saved = kinds.load(path, trusted=options.trust)
    except files.NewerSchema as error:
        return ReplayOutcome(word=SKIPPED, exit=Exit.CONFORMANT, path=path, sentence=str(error))
    except ValueError as error:
        return ReplayOutcome(word=ERROR, exit=Exit.USAGE, path=path, sentence=clean(str(error)))
    if isinstance(saved, Recording):
        raise UsageError(f"{path} is a recording of a log, which `rebalance show` draws")
    return saved


def _as_pytest(path: Path, options: argparse.Namespace) -> int:
    """Write a trace as a test; the exit code."""
    from rebalance_verifier.explore.groups.runs import SavedRun
    from rebalance_verifier.gate.search import counterexamples
    from rebalance_verifier.report.terminal.replayed import ReplayOutcome

    trace = _loaded(path, options)
    if isinstance(trace, ReplayOutcome):
        _print(trace)
        return trace.exit
    if isinstance(trace, SavedRun):
        raise UsageError(OF_ASSIGNORS.format(path))
    with usage_errors(ValueError):
        _may_run(trace, options)
    if options.target:
        trace = replace(trace, target=replace(trace.target, spec=options.target))
    write(options.as_pytest, counterexamples.as_pytest(trace), "--as-pytest")
    print_text(f"written  {options.as_pytest}")
    return Exit.CONFORMANT


def _replay_trace(path: Path, saved: Trace, options: argparse.Namespace) -> ReplayOutcome:
    """Play a counterexample on its target again."""
    from rebalance_verifier.gate.search.search import replay
    from rebalance_verifier.report.terminal.replayed import ERROR, FAILING, FIXED, ReplayOutcome
    from rebalance_verifier.report.terminal.trace import named

    spec = options.target or saved.target.spec
    trace = replace(named(path, saved), subject=spec)
    outcome = partial(ReplayOutcome, path=path, trace=trace)
    try:
        with usage_errors(ValueError):
            _may_run(saved, options)
        with (
            staged(options, f"replaying {trace.id}  {trace.clause}  {clean(spec)}"),
            session(resolved(spec, (), options), options) as talk,
        ):
            record = replay(talk, saved.scenario, saved.clause)
    except UsageError as error:
        return outcome(word=ERROR, exit=Exit.USAGE, sentence=clean_lines(str(error)))
    if record.skipped is not None:
        return outcome(word=ERROR, exit=Exit.USAGE, sentence=f"declined: {clean(record.skipped)}")
    broken = record.breach_of(saved.clause.id)
    if broken is None:
        return outcome(word=FIXED, exit=Exit.CONFORMANT)
    text = (*_shown(saved, record), "") if options.verbose else ()
    sentence = clean(broken.breach.summary)
    return outcome(word=FAILING, exit=Exit.VIOLATION, sentence=sentence, text=text)


def _may_run(trace: Trace, options: argparse.Namespace) -> None:
    """Raise TraceError where what the file names is neither signed nor named on the command line."""
    from rebalance_verifier.gate.targets import trust

    if not options.target:
        trust.check(trace.path or Path(), trace.target.spec, trusted=options.trust, target=True)


def _shown(trace: Trace, record: PlayedHistory) -> list[str]:
    """Return the events of a replay, as in the report of the check that found it."""
    from rebalance_verifier.gate.search.result import ClauseResult, Status
    from rebalance_verifier.report.terminal.check import block

    broken = record.breach_of(trace.clause.id)
    assert broken is not None
    finding = trace.finding(broken, record.scenario, record.calls)
    row = ClauseResult(clause=trace.clause, protocol=trace.protocol, status=Status.VIOLATED, finding=finding)
    return ["", *block("VIOLATION", row, unicode())]


def _replay_run(path: Path, run: SavedRun, options: argparse.Namespace) -> ReplayOutcome:
    """Play a run on the model again."""
    from rebalance_verifier.explore.groups.runs import play
    from rebalance_verifier.model.machine import CannotHappenError
    from rebalance_verifier.properties.group.own import InvariantError
    from rebalance_verifier.report.terminal.exploration import run_lines
    from rebalance_verifier.report.terminal.replayed import ERROR, FAILING, FIXED, SHOWN, ReplayOutcome
    from rebalance_verifier.report.terminal.trace import named

    trace = named(path, run)
    outcome = partial(ReplayOutcome, path=path, trace=trace)
    try:
        with staged(options, f"replaying {trace.id}  {trace.clause}  {clean(trace.subject)}"):
            played = play(run)
    except (CannotHappenError, InvariantError) as error:
        return outcome(word=ERROR, exit=Exit.USAGE, sentence=clean_lines(str(error)))
    if played.sentence is None:
        return outcome(word=FIXED, exit=Exit.CONFORMANT, sentence=played.why)
    early = f", after {played.after} of {len(run.events)} steps" if played.after < len(run.events) else ""
    return outcome(
        word=SHOWN if trace.is_situation else FAILING,
        exit=Exit.CONFORMANT if trace.is_situation else Exit.VIOLATION,
        sentence=clean(played.sentence) + early,
        text=("", *run_lines(run), "") if options.verbose else (),
    )


# -- on real clients -----------------------------------------------------------------------------------


def _on_clients(options: argparse.Namespace, paths: Sequence[Path]) -> Iterator[ReplayOutcome]:
    """Replay each of ``paths`` on real clients, or on Kafka's own code."""
    from rebalance_verifier.base import saved as files
    from rebalance_verifier.base.processes.tools import ToolError
    from rebalance_verifier.explore.groups.runs import SavedRun
    from rebalance_verifier.live.clients.clusters.cluster import Unsupported
    from rebalance_verifier.live.clients.consumers.member import ClientProfile
    from rebalance_verifier.live.code.lockstep.replayers import player
    from rebalance_verifier.live.code.replay.attempts import peer
    from rebalance_verifier.report.terminal.replayed import on_clients
    from rebalance_verifier.report.terminal.trace import named
    from rebalance_verifier.traces import kinds

    with usage_errors(ValueError, option="--on"):
        on = peer(options.on)
    if options.out is None:
        files.make_root(ROOT)
    directory = make_directory(Path(options.out or ROOT / REPLAYS), "--out")
    limits = {name: getattr(options, name) for name in ("patience", "attempts")}
    report_progress = print_err if options.verbose else lambda _: None
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
                    if saved.setup.warmups:
                        raise ValueError(
                            f"{path} is a run of Kafka Streams, whose stores --on does not play: leave it out"
                        )
                    if saved.setup.has_patterns and saved.setup.protocol == "classic":
                        raise ValueError(
                            f"{path} has members that subscribe by pattern, --on plays names: leave it out"
                        )
                    if isinstance(on, ClientProfile):
                        refuse_protocol("replay --on CLIENT", saved.setup.protocol)
                    with staged(options, f"replaying {path} on {options.on}"):
                        result = play(saved)
                    with usage_errors(OSError, option="--out"):
                        written = save(saved, result, directory)
                    yield on_clients(named(path, saved), result, written, verbose=options.verbose)
                    if result.interrupted:
                        raise KeyboardInterrupt
    except (ToolError, Unsupported) as error:
        raise UsageError(f"--on {on}: {clean(str(error))}") from error


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
