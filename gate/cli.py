"""The ``rebalance`` command. Parsing and printing only; engines are imported by the command that runs."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rebalance.gate.check import Plan, Progress
    from rebalance.gate.result import Result
    from rebalance.gate.session import Session
    from rebalance.gate.targets import Target

EXITS = (
    "exit codes: 0 conformant, 1 violation (or a stale known failure), 2 usage or target cannot start, "
    "3 inconclusive, 4 internal error, 130 interrupted"
)
ROOT = Path(".rebalance")


class UsageError(Exception):
    """Something the user can put right; printed as one message, exit code 2."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code (``rebalance.gate.result.Exit``)."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    words, command = _split(words)
    parser = _parser()
    try:
        options = parser.parse_args(words)
    except SystemExit as stop:  # argparse has printed what is wrong
        return int(stop.code or 0)
    if command and options.run not in (_check, _smoke):
        return _complain(f"`-- {command[0]}` goes with check and smoke only")
    options.command = command
    run: Callable[[argparse.Namespace], int] = options.run
    try:
        return run(options)
    except UsageError as error:
        return _complain(str(error))
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # `rebalance clauses | head`
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    except Exception as error:
        import traceback

        traceback.print_exc()
        print(f"internal error: {error!r}; this is a bug of the suite, please report it", file=sys.stderr)
        return 4


def _split(words: list[str]) -> tuple[list[str], tuple[str, ...]]:
    if "--" not in words:
        return words, ()
    at = words.index("--")
    return words[:at], tuple(words[at + 1 :])


def _complain(message: str) -> int:
    print(f"rebalance: {message}", file=sys.stderr)
    return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="rebalance", description="A verdict for any Kafka partition assignor.", epilog=EXITS
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
    _target_options(check)
    check.add_argument("--clause", action="append", default=[], metavar="PATH", help="only clauses at or "
                       "below this path, such as kip429 or kip429/leader/4; repeatable")  # fmt: skip
    check.add_argument("--protocol", choices=("eager", "cooperative", "auto"), default="auto",
                       help="default: all that the target supports")  # fmt: skip
    check.add_argument("--level", choices=("safety", "liveness", "quality"), default="liveness",
                       help="the weakest level that fails the run; the others only inform")  # fmt: skip
    check.add_argument("--profile", choices=("smoke", "ci", "nightly", "deep"), default="ci")
    check.add_argument("--seed", type=int, help="default: 0, or a new one for nightly and deep")
    check.add_argument("--budget", type=float, metavar="SECONDS", help="stop searching after this time; "
                       "an unfinished search is inconclusive")  # fmt: skip
    check.add_argument("--fail-fast", action="store_true", help="stop at the first violation")
    check.add_argument("--known-failing", action="append", default=[], metavar="PATTERN|@FILE",
                       help="violations to expect; an entry that is not needed any more fails")  # fmt: skip
    check.add_argument("--known-flaky", action="append", default=[], metavar="PATTERN|@FILE",
                       help="violations to accept, and not to miss when they are absent")  # fmt: skip
    check.add_argument("--write-known", metavar="FILE", type=Path, help="write the list of known failures "
                       "that would let this run pass")  # fmt: skip
    check.add_argument("--report", default="text", metavar="FORMAT[,...]", help="text, json, junit, markdown")
    check.add_argument("--report-dir", type=Path, metavar="DIR", help="default: .rebalance/<time>")
    check.add_argument("--ci", choices=("github", "none"), default="none",
                       help="github: annotations and a step summary")  # fmt: skip
    check.add_argument("--resume", action="store_true", help="go on where the last interrupted check of "
                       "this target, profile and seed stopped")  # fmt: skip
    _text_options(check)

    replay = commands.add_parser("replay", help="run saved counterexamples again", epilog=EXITS)
    replay.set_defaults(run=_replay)
    replay.add_argument("traces", nargs="*", metavar="ID|FILE|DIR", help="default: all saved failures")
    replay.add_argument("--target", metavar="TARGET", help="instead of the target named in the trace")
    replay.add_argument("--as-pytest", type=Path, metavar="OUT.py", help="write a stand-alone test")
    _limit_options(replay)
    _text_options(replay)

    smoke = commands.add_parser("smoke", help="try an adapter: handshake and three assignments", epilog=EXITS)
    smoke.set_defaults(run=_smoke)
    _target_options(smoke)
    smoke.add_argument("--validate", action="store_true", help="hold every message against the JSON Schema")

    clauses = commands.add_parser("clauses", help="list the clauses, or show some", epilog=EXITS)
    clauses.set_defaults(run=_clauses)
    clauses.add_argument("paths", nargs="*", metavar="PATH")
    clauses.add_argument("--format", choices=("text", "md", "json"), default="text")

    targets = commands.add_parser("targets", help="list the targets and design switches known by name")
    targets.set_defaults(run=_targets)
    return parser


def _target_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "target",
        nargs="?",
        metavar="TARGET",
        help="a reference assignor (default: cooperative-sticky), +SWITCH to break it, module:attribute, "
        "ADAPTER:NAME such as kafka-python:sticky; or `-- COMMAND ...` that speaks the JSON-lines protocol",
    )
    _limit_options(parser)


def _limit_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--call-seconds", type=_positive, default=10.0, metavar="S", help="per answer (10)")
    parser.add_argument("--memory-mib", type=int, default=2048, metavar="N", help="of the target (2048)")


def _text_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-v", "--verbose", action="count", default=0)
    parser.add_argument("--no-color", action="store_true")
    parser.add_argument("--no-progress", action="store_true")


def _positive(text: str) -> float:
    value = float(text)
    if value <= 0:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number of seconds")
    return value


# --- check ----------------------------------------------------------------------------------------


def _check(options: argparse.Namespace) -> int:
    from rebalance.gate import resume, traces
    from rebalance.gate.check import Progress, check, describe
    from rebalance.gate.judgement import allow

    formats = _formats(options.report)
    plan, known, flaky = (
        _plan(options),
        _known(options.known_failing, "--known-failing"),
        _known(options.known_flaky, "--known-flaky"),
    )
    target = _resolve(options.target, options.command)
    with _session(target, options) as session:
        info = describe(target.spec, session.hello)
        saved = ROOT / "resume" / f"{resume.key(info, plan)}.json"
        progress = resume.load(saved) if options.resume else Progress()
        with _ticker(options) as tell:
            result = check(plan, session, info, progress=progress, tell=tell, fresh=session.close)
    if result.interrupted or result.missed:
        resume.save(saved, progress)
    else:
        saved.unlink(missing_ok=True)
    result = allow(result, known, flaky, date.today())
    result = traces.save_all(result, ROOT)
    _report(result, formats, options)
    if options.write_known:
        from rebalance.gate import known as lists

        options.write_known.write_text(lists.write(result.clauses, known, date.today()))
        print(f"known failures written to {options.write_known}", file=sys.stderr)
    if result.interrupted:
        print("interrupted; what was found is saved, --resume goes on from here", file=sys.stderr)
    return int(result.exit)


def _plan(options: argparse.Namespace) -> Plan:
    from rebalance.gate.check import PROFILES, Plan
    from rebalance.model.values import RebalanceProtocol
    from rebalance.properties.clauses import Level, select

    seed = options.seed
    if seed is None:
        seed = 0 if options.profile in ("smoke", "ci") else int.from_bytes(os.urandom(4))
    try:
        clauses = select(options.clause)
    except ValueError as error:
        raise UsageError(str(error)) from error
    return Plan(
        clauses,
        None if options.protocol == "auto" else (RebalanceProtocol(options.protocol),),
        PROFILES[options.profile],
        seed,
        Level(options.level),
        options.budget,
        options.fail_fast,
    )


def _formats(text: str) -> list[str]:
    from rebalance.gate.report import WRITERS

    formats = [name.strip() for name in text.split(",") if name.strip()]
    for name in formats:
        if name not in WRITERS:
            raise UsageError(f"--report: no format is called {name!r}; known: {', '.join(WRITERS)}")
    return formats


def _known(options: list[str], name: str) -> Any:
    from rebalance.gate import known

    try:
        return known.read(options, name)
    except (ValueError, OSError) as error:
        raise UsageError(str(error)) from error


def _report(result: Result, formats: list[str], options: argparse.Namespace) -> None:
    from rebalance.gate import traces
    from rebalance.gate.report import WRITERS, github, text

    files = [name for name in formats if name != "text"]
    if files or options.report_dir:
        directory = options.report_dir or traces.run_directory(ROOT, datetime.now(UTC))
        directory.mkdir(parents=True, exist_ok=True)
        for name in files:
            file, write = WRITERS[name]
            (directory / file).write_text(write(result), encoding="utf-8")
        print(f"reports: {directory}", file=sys.stderr)
    if "text" in formats:
        print(text.render(result, color=_color(options), verbose=options.verbose, unicode=_unicode()))
    if options.ci == "github":
        print(*github.commands(result), sep="\n")
        github.summarise(result)


def _color(options: argparse.Namespace) -> bool:
    return not options.no_color and "NO_COLOR" not in os.environ and sys.stdout.isatty()


def _unicode() -> bool:
    try:
        "█▒░◀".encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True


@contextlib.contextmanager
def _ticker(options: argparse.Namespace) -> Iterator[Callable[[Progress, int], None]]:
    """A progress line with rate and estimate, on a terminal only, a few times a second."""
    shown = 0.0

    def tell(progress: Progress, total: int) -> None:
        nonlocal shown
        now = time.monotonic()
        if now - shown < 0.3:
            return
        shown = now
        rate = progress.done / max(progress.seconds, 1e-9)
        left = (total - progress.done) / max(rate, 1e-9)
        broken = f", {len(progress.best)} clauses broken" if progress.best else ""
        line = f"{progress.done}/{total} scenarios, {rate:.0f}/s, about {left:.0f} s left{broken}"
        print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)

    quiet = options.no_progress or not sys.stderr.isatty()
    try:
        yield (lambda progress, total: None) if quiet else tell
    finally:
        if shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _resolve(spec: str | None, command: Sequence[str] = ()) -> Target:
    from rebalance.gate.targets import TargetError, resolve

    try:
        return resolve(spec, command)
    except TargetError as error:
        raise UsageError(str(error)) from error


@contextlib.contextmanager
def _session(target: Target, options: argparse.Namespace) -> Iterator[Session]:
    from rebalance.gate.session import Session
    from rebalance.gate.targets import TargetError

    try:
        session = Session(target, options.call_seconds, memory_mib=options.memory_mib).__enter__()
    except TargetError as error:
        raise UsageError(str(error)) from error
    with contextlib.closing(session):
        yield session


# --- the other commands ---------------------------------------------------------------------------


def _replay(options: argparse.Namespace) -> int:
    from rebalance.gate import traces
    from rebalance.gate.check import replay
    from rebalance.gate.targets import TargetError

    paths = [path for name in options.traces or [str(ROOT / "failures")] for path in _find(name)]
    if options.as_pytest and len(paths) != 1:
        raise UsageError(f"--as-pytest takes one trace, {len(paths)} were named")
    worst = 0
    for path in paths:
        try:
            trace = traces.load(path)
        except traces.NewerSchema as error:
            print(f"skipped  {error}", file=sys.stderr)
            continue
        except ValueError as error:
            print(f"error    {error}")
            worst = max(worst, 2)
            continue
        if options.as_pytest:
            options.as_pytest.write_text(traces.as_pytest(trace), encoding="utf-8")
            print(f"written  {options.as_pytest}")
            return 0
        spec = options.target or trace.target.spec
        try:
            with _session(_resolve(spec), options) as session:
                record = replay(session, trace.scenario, trace.clause)
        except (UsageError, TargetError) as error:
            print(f"error    {trace.id}  {trace.clause.id}  {spec}: {error}")
            worst = max(worst, 2)
            continue
        found = record.breach_of(trace.clause.id)
        if record.skipped is not None:
            print(f"error    {trace.id}  {trace.clause.id}  {spec} declined: {record.skipped}")
            worst = max(worst, 2)
        elif found:
            print(f"failing  {trace.id}  {trace.clause.id}  {spec}: {found.breach.summary}")
            worst = max(worst, 1)
        else:
            print(f"fixed    {trace.id}  {trace.clause.id}  {spec}")
    return worst


def _find(name: str) -> list[Path]:
    from rebalance.gate import traces

    try:
        return traces.find(name, ROOT)
    except (LookupError, ValueError, OSError) as error:
        raise UsageError(str(error.args[0] if error.args else error)) from error


def _smoke(options: argparse.Namespace) -> int:
    from rebalance.gate.smoke import smoke

    target = _resolve(options.target, options.command)
    limits = {"call_seconds": options.call_seconds, "memory_mib": options.memory_mib}
    steps = smoke(target, options.validate, **limits)
    for step in steps:
        print(f"{'ok  ' if step.ok else 'FAIL'}  {step.title}")
        for line in step.lines:
            print(f"      {line}")
    return 0 if all(step.ok for step in steps) else 1


def _clauses(options: argparse.Namespace) -> int:
    from rebalance.gate.report import catalogue
    from rebalance.properties.clauses import select

    try:
        chosen = select(options.paths)
    except ValueError as error:
        raise UsageError(str(error)) from error
    if options.format == "json":
        print(json.dumps(catalogue.to_json(chosen), indent=2))
    else:
        print(catalogue.render(chosen, markdown=options.format == "md", full=bool(options.paths)))
    return 0


def _targets(options: argparse.Namespace) -> int:
    from rebalance.gate.targets import known
    from rebalance.model.switches import SWITCHES

    for name in known():
        print(name)
    print("\ndesign switches, added to a reference assignor as NAME+SWITCH:")
    for switch in SWITCHES.values():
        print(f"  {switch.assignor}+{switch.id}  [{switch.entry}] {switch.sentence} ({switch.shipped})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
