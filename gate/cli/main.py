"""The ``rebalance`` command: the parser, and running what it parses; a command imports its engine itself."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import signal
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Any

from rebalance.gate.cli.commands import (
    audit,
    bugs,
    campaign,
    check,
    compare,
    conform,
    explore,
    listing,
    prove,
    record,
    replay,
    show,
    upgrade,
)
from rebalance.gate.cli.console.terminal import EXIT_CODES, UsageError, print_err
from rebalance.gate.cli.shared.old_spellings import correction
from rebalance.gate.cli.shared.options import check_format
from rebalance.gate.targets import HASH_SEED
from rebalance.properties.verdict import Exit

COMMANDS = (
    *(check, compare, explore, upgrade, prove, bugs, record, conform, replay, show, audit, campaign),
    listing,
)

OF_EXTRAS = {
    **dict.fromkeys(("pyspark", "py4j", "pyarrow", "pandas"), "spark"),
    "duckdb": "audit",
    **dict.fromkeys(("kafka", "aiokafka", "confluent_kafka"), "targets"),
}
"""Packages that are not required -> the extra that brings them."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code (``rebalance.properties.verdict.Exit``)."""
    argv = list(sys.argv[1:] if arguments is None else arguments)
    if arguments is None and argv[:1] == ["check"]:
        _with_hash_seed_of_targets()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # names come from outside: print all of them somehow
            stream.reconfigure(errors="backslashreplace")
    _end_like_ctrl_c()
    before = signal.getsignal(signal.SIGINT)
    try:
        return _run(argv)
    except UsageError as error:
        return _complain(str(error))
    except SystemExit as stop:  # argparse has printed what is wrong
        return int(stop.code or 0)
    except KeyboardInterrupt:
        print_err("interrupted")
        return Exit.INTERRUPTED
    except Exception as error:
        extra = OF_EXTRAS.get((error.name or "").partition(".")[0]) if isinstance(error, ImportError) else ""
        if extra:
            return _complain(f"{argv[0]} needs more: pip install 'rebalance-verifier[{extra}]' ({error})")
        import traceback

        traceback.print_exc()
        print(f"internal error: {error!r}; this is a bug of the suite, please report it", file=sys.stderr)
        return Exit.INTERNAL
    finally:
        if arguments is not None:  # whoever called goes on, and gets Ctrl-C again
            with contextlib.suppress(ValueError):  # not in the main thread
                signal.signal(signal.SIGINT, before)


def _run(argv: list[str]) -> int:
    argv, command = _split(argv)
    parser = build_parser()
    if not argv:
        parser.print_help(sys.stderr)
        raise UsageError("what shall it do? `rebalance check` is a start")
    if now := correction(argv):
        print_err(now)
        return Exit.USAGE
    options = parser.parse_args(argv)
    if command and not options.takes_command:
        raise UsageError(f"`-- {command[0]}` goes with check and campaign only")
    options.command = command
    check_format(options)
    run: Callable[[argparse.Namespace], int] = options.run
    return run(options)


def _with_hash_seed_of_targets() -> None:
    """Begin again where sets have another order than in a target's own process: what is forked from this one
    is then as good."""
    asked_for = os.environ.get("PYTHONHASHSEED") == HASH_SEED  # and not granted: python -E
    if sys.flags.hash_randomization and not asked_for and hasattr(os, "fork"):
        os.environ["PYTHONHASHSEED"] = HASH_SEED
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


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
    return Exit.USAGE


class _Parser(argparse.ArgumentParser):
    """Takes options by their full names only: a beginning that is unique today is not tomorrow."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(allow_abbrev=False, **arguments)


def build_parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    parser = _Parser(
        prog="rebalance",
        description="A verdict for any Kafka partition assignor, and for the consumer group around it.",
        epilog="`rebalance COMMAND --help` shows the options of a command. exit codes: "
        + ", ".join(f"{int(code)} {meaning}" for code, meaning in EXIT_CODES.items()),
    )
    parser.add_argument("--version", action="version", version=f"rebalance {version('rebalance-verifier')}")
    commands = parser.add_subparsers(dest="name", required=True, metavar="COMMAND")
    for module in COMMANDS:
        added = module.add(commands)
        takes_command = module in (check, campaign)
        added.set_defaults(run=module.run, takes_command=takes_command, default_of=added.get_default)
    return parser


if __name__ == "__main__":
    sys.exit(main())
