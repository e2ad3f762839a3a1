"""The ``rebalance`` command. Parsing and printing only; engines are imported by the command that runs."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import date
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rebalance.gate.cli import java_options, report_options
from rebalance.gate.cli.commands import (
    audit,
    bugs,
    campaign,
    compare,
    conform,
    explore,
    prove,
    schemas,
    show,
    upgrade,
)
from rebalance.gate.cli.commands import (
    record as record_cli,
)
from rebalance.gate.cli.commands import (
    replay as replay_cli,
)
from rebalance.gate.cli.console.terminal import (
    EXITS,
    ROOT,
    UsageError,
    clean,
    color,
    draw,
    positive,
    print_err,
    print_out,
    unicode,
    whole,
)

if TYPE_CHECKING:
    from rebalance.gate.check.known import KnownFailure
    from rebalance.gate.check.plan import CheckPlan
    from rebalance.gate.check.progress import CheckProgress
    from rebalance.gate.check.result import Result
    from rebalance.gate.targets.resolve import Target
    from rebalance.gate.targets.session import Session
    from rebalance.gate.traces.counterexamples import Trace
    from rebalance.properties.assignors.histories import PlayedHistory


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code (``rebalance.properties.verdict.Exit``)."""
    argv = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # names come from outside: print all of them somehow
            stream.reconfigure(errors="backslashreplace")
    _end_like_ctrl_c()
    try:
        argv, command = _split(argv)
    except UsageError as error:
        return _complain(str(error))
    parser = build_parser()
    if not argv:
        parser.print_help(sys.stderr)
        return _complain("what shall it do? `rebalance check` is a start")
    try:
        options = parser.parse_args(argv)
    except SystemExit as stop:  # argparse has printed what is wrong
        return int(stop.code or 0)
    if command and options.run not in (_check, _smoke, campaign.run):
        return _complain(f"`-- {command[0]}` goes with check, smoke and campaign only")
    options.command = command
    run: Callable[[argparse.Namespace], int] = options.run
    try:
        return run(options)
    except UsageError as error:
        return _complain(str(error))
    except KeyboardInterrupt:
        print_err("interrupted")
        return 130
    except Exception as error:
        import traceback

        traceback.print_exc()
        print(f"internal error: {error!r}; this is a bug of the suite, please report it", file=sys.stderr)
        return 4


def _end_like_ctrl_c() -> None:
    """Let the signals of a closed terminal and a cancelled job end the target and save what was found."""
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        with contextlib.suppress(ValueError):  # not in the main thread
            if number and signal.getsignal(number) == signal.SIG_DFL:
                signal.signal(number, signal.default_int_handler)


def _split(argv: list[str]) -> tuple[list[str], tuple[str, ...]]:
    if "--" not in argv:
        return argv, ()
    at = argv.index("--")
    if at + 1 == len(argv):
        raise UsageError("nothing follows `--`: it takes a command, such as `-- java -jar adapter.jar`")
    return argv[:at], tuple(argv[at + 1 :])


def _complain(message: str) -> int:
    print_err(f"rebalance: {message}")
    return 2


class _Parser(argparse.ArgumentParser):
    """Takes options by their full names only: a beginning that is unique today is not tomorrow."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(allow_abbrev=False, **arguments)


def build_parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="rebalance",
        description="A verdict for any Kafka partition assignor, and for the consumer group around it.",
        epilog=f"`rebalance COMMAND --help` shows the options of a command. {EXITS}",
    )
    parser.add_argument("--version", action="version", version=f"rebalance {version('rebalance-verifier')}")
    commands = parser.add_subparsers(dest="name", required=True, metavar="COMMAND")

    check = commands.add_parser(
        "check",
        help="judge an assignor",
        epilog=EXITS,
        description="Search for inputs and histories on which TARGET breaks the contract of an assignor.",
    )
    check.set_defaults(run=_check)
    _target_option(check)
    check.add_argument("--clause", action="append", default=[], metavar="PATH", help="only clauses at or "
                       "below this path, such as kip429 or kip429/leader/4; repeatable")  # fmt: skip
    check.add_argument("--protocol", choices=("eager", "cooperative", "auto"), default="auto",
                       help="default: all that the target supports")  # fmt: skip
    check.add_argument("--level", choices=("safety", "liveness", "quality"), default="liveness",
                       help="the weakest level that fails the run; the others only inform")  # fmt: skip
    check.add_argument("--profile", choices=("smoke", "ci", "nightly", "deep"), default="ci",
                       help="how much is searched: smoke (seconds), ci (about a minute, the default), "
                       "nightly (about an hour), deep (as long as you like, with --budget)")  # fmt: skip
    check.add_argument("--seed", type=int, help="default: 0, or a new one for nightly and deep")
    check.add_argument("--budget", type=positive, metavar="SECONDS", help="stop searching after this time; "
                       "an unfinished search is inconclusive")  # fmt: skip
    check.add_argument("--fail-fast", action="store_true", help="stop at the first violation")
    check.add_argument("--known-failing", action="append", default=[], metavar="PATTERN|@FILE",
                       help="violations to expect; an entry that is not needed any more fails")  # fmt: skip
    check.add_argument("--known-flaky", action="append", default=[], metavar="PATTERN|@FILE",
                       help="violations to accept, and not to miss when they are absent")  # fmt: skip
    check.add_argument("--write-known", metavar="FILE", type=Path, help="write the list of known failures "
                       "that would let this run pass")  # fmt: skip
    report_options.add(check, "text, html, json, junit, sarif, markdown (text,html); text alone writes "
                  "nothing")  # fmt: skip
    check.add_argument("--resume", action="store_true", help="go on where the last interrupted check of "
                       "this target, profile and seed stopped")  # fmt: skip
    check.add_argument("--jobs", type=whole, metavar="N", help="how many processes search, each with a "
                       "target of its own (as many as processors); the result is the same")  # fmt: skip
    _limit_options(check)
    _text_options(check)
    check.add_argument("--no-progress", action="store_true", help="no progress line on the terminal")

    replay = commands.add_parser("replay", help="run saved counterexamples again", epilog=EXITS)
    replay.set_defaults(run=_replay)
    replay.add_argument("traces", nargs="*", metavar="ID|FILE|DIR", help="default: all saved failures")
    replay.add_argument("--target", metavar="TARGET", help="instead of the target named in the trace")
    replay.add_argument("--as-pytest", type=Path, metavar="OUT.py",
                        help="write one counterexample as a stand-alone test instead")  # fmt: skip
    _limit_options(replay)
    _text_options(replay)
    replay_cli.add_options(replay)

    smoke = commands.add_parser("smoke", help="try an adapter: handshake and three assignments", epilog=EXITS)
    smoke.set_defaults(run=_smoke)
    _target_option(smoke)
    _limit_options(smoke)
    smoke.add_argument("--validate", action="store_true", help="hold every message against the JSON Schema")

    clauses = commands.add_parser("clauses", help="list the clauses, or show some", epilog=EXITS)
    clauses.set_defaults(run=_clauses)
    clauses.add_argument("paths", nargs="*", metavar="PATH")
    clauses.add_argument("--format", choices=("text", "md", "json"), default="text")

    explore.add(commands)
    show.add(commands)
    bugs.add(commands)
    record_cli.add(commands)
    upgrade.add(commands)
    conform.add(commands)
    prove.add(commands)
    campaign.add(commands)
    compare.add(commands)
    audit.add(commands)
    schemas.add(commands)

    targets = commands.add_parser("targets", help="list the targets and design switches known by name")
    targets.set_defaults(run=_targets)
    return parser


def _target_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "target",
        nargs="?",
        metavar="TARGET",
        help="a reference assignor (default: cooperative-sticky), +SWITCH to break it, module:attribute, "
        "ADAPTER:NAME such as kafka-python:sticky, java:CLASS; or `-- COMMAND ...` that speaks the "
        "JSON-lines protocol",
    )
    java_options.add(parser)


def _limit_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--call-seconds", type=positive, default=10.0, metavar="S",
                        help="how long the target may take for one answer (10)")  # fmt: skip
    parser.add_argument("--memory-mib", type=whole, default=2048, metavar="N",
                        help="how much memory the target may use (2048)")  # fmt: skip


def _text_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-v", "--verbose", action="count", default=0, help="say more; twice: still more")
    parser.add_argument("--no-color", action="store_true", help="also by the variable NO_COLOR")


# --- check ----------------------------------------------------------------------------------------


def _check(options: argparse.Namespace) -> int:
    from rebalance.gate.check import resume
    from rebalance.gate.check.judgement import allow
    from rebalance.gate.check.progress import CheckProgress
    from rebalance.gate.check.search import check, describe
    from rebalance.gate.cli.writers import WRITERS
    from rebalance.live.processes.workers import processors

    formats = report_options.formats(options, WRITERS, ("text", "html"))
    failing = _known(options.known_failing, "--known-failing")
    flaky = _known(options.known_flaky, "--known-flaky")
    plan = _plan(options, (*failing, *flaky))
    target = _resolve(java_options.spec(options.target, options), options.command)
    if options.write_known and not options.write_known.parent.is_dir():
        raise UsageError(f"--write-known: no directory {str(options.write_known.parent)!r}")
    with _session(target, options) as session:
        info = describe(target.spec, session.hello)
        directory = report_options.directory(formats, options)  # a target that does not start leaves none
        saved = ROOT / "resume" / f"{resume.key(info, plan)}.json"
        progress = _resumed(saved) if options.resume else CheckProgress()
        with _ticker(options) as report_progress:
            result = check(
                plan,
                session,
                info,
                progress=progress,
                report_progress=report_progress,
                fresh=session.close,
                jobs=int(options.jobs or processors()),
            )
    result = allow(result, failing, flaky, date.today())
    result = _save(result)
    _report(result, formats, directory, options)
    if options.write_known:
        _write_known(result, failing, options.write_known)
    _keep(saved, progress, result, resume.unfinished(progress, plan, info))
    return int(result.exit)


def _resumed(saved: Path) -> CheckProgress:
    from rebalance.gate.check import resume

    try:
        progress = resume.load(saved)
    except ValueError as error:
        raise UsageError(str(error)) from error
    print_err(
        f"going on after scenario {progress.done}" if progress.done else "nothing to resume: a new start"
    )
    return progress


def _keep(saved: Path, progress: CheckProgress, result: Result, unfinished: bool) -> None:
    """Leave behind where an unfinished search stands, and nothing of a finished one."""
    from rebalance.gate.check import resume
    from rebalance.gate.traces import files

    try:
        if not (result.interrupted or unfinished):
            saved.unlink(missing_ok=True)
            return
        files.make_root(ROOT)
        resume.save(saved, progress)
        print_err("interrupted; " * result.interrupted + "the same command with --resume goes on from here")
    except OSError as error:
        print_err(f"where the search stands cannot be saved: {error}")


def _save(result: Result) -> Result:
    """Save the counterexamples; a place that cannot be written to does not cost the verdict."""
    from rebalance.gate.traces import counterexamples

    try:
        return counterexamples.save_all(result, ROOT)
    except OSError as error:
        print_err(f"the counterexamples cannot be saved: {error}")
        return result


def _write_known(result: Result, old: Sequence[KnownFailure], path: Path) -> None:
    from rebalance.gate.check import known
    from rebalance.gate.check.judgement import gates
    from rebalance.gate.check.result import Status
    from rebalance.properties.verdict import Level

    if result.interrupted or result.missed:
        print_err(f"{path} is not written: the search did not come to its end")
        return
    try:
        # What only informs passes without being on the list.
        level = Level(result.level)
        rows = [r for r in result.clauses if r.status is not Status.VIOLATED or gates(r.clause, level)]
        path.write_text(known.write(rows, old, date.today()), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--write-known: {error}") from error
    print_err(f"known failures written to {path}")


def _plan(options: argparse.Namespace, expected: Sequence[KnownFailure]) -> CheckPlan:
    from rebalance.gate.check.known import match
    from rebalance.gate.check.plan import PROFILES, CheckPlan
    from rebalance.model.values import RebalanceProtocol
    from rebalance.properties.assignors.clauses import select
    from rebalance.properties.verdict import Level

    seed = options.seed
    if seed is None:
        seed = 0 if options.profile in ("smoke", "ci") else int.from_bytes(os.urandom(4))
    try:
        clauses = select(options.clause)
    except ValueError as error:
        raise UsageError(f"--clause: {error}") from error
    today = date.today()
    return CheckPlan(
        clauses=clauses,
        protocols=None if options.protocol == "auto" else (RebalanceProtocol(options.protocol),),
        profile=PROFILES[options.profile],
        seed=seed,
        level=Level(options.level),
        budget=options.budget,
        fail_fast=options.fail_fast,
        expected=lambda key: match(expected, key, today) is not None,
    )


def _known(options: list[str], name: str) -> tuple[KnownFailure, ...]:
    from rebalance.gate.check import known

    try:
        return known.read(options, name)
    except (ValueError, OSError) as error:
        raise UsageError(str(error)) from error


def _report(
    result: Result, formats: Sequence[str], directory: Path | None, options: argparse.Namespace
) -> None:
    from rebalance.gate.cli.writers import WRITERS
    from rebalance.gate.report.ci import ci_reports
    from rebalance.gate.report.terminal import check as text

    result = replace(result, run_dir=str(directory or ""), page=report_options.page(directory, formats))
    if "text" in formats:
        shown = text.render(result, color=color(options), verbose=options.verbose, unicode=unicode())
        print_out(shown.rstrip("\n"))
    own = {name: (file, partial(render, result)) for name, (file, render) in WRITERS.items()}
    noted = "text" not in formats
    report_options.finish(lambda: ci_reports.result(result), directory, formats, own, options, noted=noted)


@contextlib.contextmanager
def _ticker(options: argparse.Namespace) -> Iterator[Callable[[CheckProgress, int], None]]:
    """A progress line with rate and estimate, on a terminal only, a few times a second."""
    shown = 0.0

    def report_progress(progress: CheckProgress, total: int) -> None:
        nonlocal shown
        now = time.monotonic()
        if now - shown < 0.3:
            return
        shown = now
        rate = progress.played / max(progress.seconds, 1e-9)
        left = (total - progress.played) / max(rate, 1e-9)
        broken = f", {len(progress.best)} clauses broken" if progress.best else ""
        line = f"{progress.played}/{total} scenarios, {rate:.0f}/s, about {left:.0f} s left{broken}"
        draw(line)

    quiet = options.no_progress or not sys.stderr.isatty()
    try:
        yield (lambda progress, total: None) if quiet else report_progress
    finally:
        if shown:
            draw()


def _resolve(spec: str | None, command: Sequence[str] = ()) -> Target:
    from rebalance.gate.targets.resolve import TargetError, resolve

    try:
        return resolve(spec, command)
    except TargetError as error:
        raise UsageError(str(error)) from error


@contextlib.contextmanager
def _session(target: Target, options: argparse.Namespace) -> Iterator[Session]:
    from rebalance.gate.targets.resolve import TargetError
    from rebalance.gate.targets.session import Session

    try:
        session = Session(target, options.call_seconds, memory_mib=int(options.memory_mib)).__enter__()
    except TargetError as error:
        raise UsageError(str(error)) from error
    with contextlib.closing(session):
        yield session


# --- the other commands ---------------------------------------------------------------------------


def _replay(options: argparse.Namespace) -> int:
    from rebalance.explore.groups.runs import SavedRun
    from rebalance.gate.traces import files, kinds
    from rebalance.pipeline.audit.records import Recording

    paths = [path for name in options.traces or [str(ROOT / "failures")] for path in _find(name)]
    if options.on:
        if options.as_pytest or options.target:
            raise UsageError("--as-pytest and --target go with assignors, --on with runs of the group")
        return replay_cli.run(options, paths)
    if options.as_pytest and len(paths) != 1:
        raise UsageError(f"--as-pytest takes one trace, {len(paths)} were named")
    worst = 0
    for path in paths:
        try:
            trace = kinds.load(path)
            if isinstance(trace, Recording):
                raise UsageError(f"{path} is a recording of a log, which `rebalance show` draws")
            if isinstance(trace, SavedRun):
                if options.as_pytest or options.target:
                    raise UsageError(
                        f"{path} is a run of the group: --as-pytest and --target go with assignors"
                    )
                worst = max(worst, show.replay(path, verbose=options.verbose))
                continue
        except files.NewerSchema as error:
            print_err(f"skipped  {error}")
            continue
        except ValueError as error:
            print_out(f"error    {error}")
            worst = max(worst, 2)
            continue
        if options.as_pytest:
            if options.target:
                trace = replace(trace, target=replace(trace.target, spec=options.target))
            return _as_pytest(trace, options.as_pytest)
        worst = max(worst, _replay_one(trace, options))
    return worst


def _as_pytest(trace: Trace, out: Path) -> int:
    from rebalance.gate.traces import counterexamples

    try:
        out.write_text(counterexamples.as_pytest(trace), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--as-pytest: {error}") from error
    print_out(f"written  {out}")
    return 0


def _replay_one(trace: Trace, options: argparse.Namespace) -> int:
    """Play a trace again, say what came of it; the exit code it deserves."""
    from rebalance.gate.check.search import replay
    from rebalance.gate.cli.console.text import clean

    spec = options.target or trace.target.spec
    name = f"{trace.id}  {trace.clause.id}  {clean(spec)}"
    try:
        with _session(_resolve(spec), options) as session:
            record = replay(session, trace.scenario, trace.clause)
    except UsageError as error:
        print_out(f"error    {name}: {error}")
        return 2
    if record.skipped is not None:
        print_out(f"error    {name} declined: {clean(record.skipped)}")
        return 2
    found = record.breach_of(trace.clause.id)
    if found is None:
        print_out(f"fixed    {name}")
        return 0
    print_out(f"failing  {name}: {clean(found.breach.summary)}")
    if options.verbose:
        print_out("\n".join(_shown(trace, record)) + "\n")
    return 1


def _shown(trace: Trace, record: PlayedHistory) -> list[str]:
    """What happened in a replay, as in the report of the check that found it."""
    from rebalance.gate.check.result import ClauseResult, Finding, Status
    from rebalance.gate.report.terminal.check import block

    found = record.breach_of(trace.clause.id)
    assert found is not None
    finding = Finding(
        clause=trace.clause,
        protocol=trace.protocol,
        breach=found.breach,
        scenario=record.scenario,
        round=found.round,
        calls=record.calls,
        seed=trace.seed,
        number=trace.number,
        found_size=trace.found_size,
        confirmed=True,
        trace_id=trace.id,
        path=str(trace.path or ""),
    )
    row = ClauseResult(clause=trace.clause, protocol=trace.protocol, status=Status.VIOLATED, finding=finding)
    return ["", *block("VIOLATION", row, unicode())]


def _find(name: str) -> list[Path]:
    from rebalance.gate.traces import files

    try:
        return files.find(name, ROOT)
    except (LookupError, ValueError, OSError) as error:
        raise UsageError(str(error.args[0] if error.args else error)) from error


def _smoke(options: argparse.Namespace) -> int:
    from rebalance.gate.targets.smoke import smoke

    target = _resolve(java_options.spec(options.target, options), options.command)
    limits = {"call_seconds": options.call_seconds, "memory_mib": int(options.memory_mib)}
    steps = smoke(target, options.validate, **limits)
    for step in steps:
        lines = [f"{'ok  ' if step.ok else 'FAIL'}  {step.title}", *step.lines]
        print_out("\n      ".join(map(clean, lines)))
    return 0 if all(step.ok for step in steps) else 1


def _clauses(options: argparse.Namespace) -> int:
    from rebalance.gate.report.terminal import catalogue
    from rebalance.properties.assignors.clauses import select

    try:
        chosen = select(options.paths)
    except ValueError as error:
        raise UsageError(str(error)) from error
    if options.format == "json":
        print_out(json.dumps(catalogue.to_json(chosen), indent=2))
    else:
        print_out(catalogue.render(chosen, markdown=options.format == "md", full=bool(options.paths)))
    return 0


def _targets(options: argparse.Namespace) -> int:
    from rebalance.gate.targets.resolve import known
    from rebalance.model.bugs.switches import SWITCHES

    switches = [f"  {s.assignor}+{s.id}  [{s.entry}] {s.sentence} ({s.shipped})" for s in SWITCHES.values()]
    print_out("\n".join(known()))
    print_out("\ndesign switches, added to a reference assignor as NAME+SWITCH to break it:")
    print_out("\n".join(switches))
    return 0


if __name__ == "__main__":
    sys.exit(main())
