"""The ``rebalance`` command: the parser, and running what it parses; a command imports its engine itself."""

from __future__ import annotations

import argparse
import contextlib
import errno
import io
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import Any

from rebalance_verifier.base.processes.supervision import hide_process_memory
from rebalance_verifier.base.text import WIDEST, page_of
from rebalance_verifier.base.verdict import Exit
from rebalance_verifier.cli.completion import SCRIPTS, candidates
from rebalance_verifier.cli.config import completed
from rebalance_verifier.cli.console.terminal import EXIT_CODES, UsageError, print_err, print_out
from rebalance_verifier.cli.parser import Commands, Parser
from rebalance_verifier.cli.shared.options import check_format
from rebalance_verifier.gate.targets import HASH_SEED

COMMANDS = {
    "check": ("commands.check", "judge an assignor"),
    "compare": ("commands.compare", "compare targets: releases x clauses, releases x bugs"),
    "explore": ("commands.explore", "search every state of a consumer group (model checking)"),
    "upgrade": ("commands.upgrade", "find the safe way from one assignor list to another"),
    "prove": ("commands.prove", "prove the protocol safe for groups of any size"),
    "bugs": ("commands.bugs", "known Kafka rebalance bugs: list, reproduce, compare releases"),
    "record": ("commands.record", "record real consumers on a real coordinator"),
    "conform": ("commands.conform", "check a recording, or Kafka's code, against the model"),
    "replay": ("commands.replay", "run saved counterexamples again"),
    "show": ("commands.show", "draw a trace: who owned what when, and the messages between"),
    "audit": ("commands.audit", "check the logs of groups that ran"),
    "campaign": ("commands.campaign", "play any number of scenarios, on all cores or on Spark"),
    "list": (
        "commands.listing",
        "list clauses, targets, scenarios, releases, faults, checks, obligations, schemas",
    ),
    "init": ("init.command", "write a CI job that judges an assignor"),
}
"""Command -> its module below ``cli``, loaded when the command is meant, and what the command does."""

TAKE_A_COMMAND = ("check", "campaign", "init")
"""Commands whose target may be a command line behind ``--``."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code (``base.verdict.Exit``)."""
    began = time.monotonic()
    argv = list(sys.argv[1:] if arguments is None else arguments)
    if arguments is None and argv[:1] == ["check"]:
        _with_hash_seed_of_targets()
    if arguments is None and hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    if arguments is None:
        hide_process_memory()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # names come from outside: print all of them somehow
            stream.reconfigure(errors="backslashreplace")
    _end_like_ctrl_c()
    before = signal.getsignal(signal.SIGINT)
    try:
        return _run(argv, began)
    except UsageError as error:
        return _complain(str(error))
    except SystemExit as stop:  # argparse has printed what is wrong
        return int(stop.code or 0)
    except KeyboardInterrupt as stop:  # which may say how to go on
        print_err(str(stop) or "interrupted")
        return Exit.INTERRUPTED
    except Exception as error:
        if trouble := _not_ours(error):
            return _complain(f"{argv[0]} {trouble}")
        import traceback

        traceback.print_exc()
        print(f"internal error: {error!r}; this is a bug of the suite, please report it", file=sys.stderr)
        return Exit.INTERNAL
    finally:
        if arguments is not None:  # whoever called goes on, and gets Ctrl-C again
            with contextlib.suppress(ValueError):  # not in the main thread
                signal.signal(signal.SIGINT, before)


def _not_ours(error: Exception) -> str:
    """Return what is wrong where it is with the installation or with a disk; "" where the suite is."""
    from rebalance_verifier.base.installation import OF_EXTRAS, how_to_get

    if isinstance(error, ImportError):
        package = (error.name or "").partition(".")[0]
        if package in OF_EXTRAS:
            return f"needs more: {how_to_get(OF_EXTRAS[package])} ({error})"
        if isinstance(error, ModuleNotFoundError) and package not in ("", "rebalance"):
            return f"needs the package {package}, which is not there: {how_to_get()}"
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS):
        return f"cannot write: {error}"
    return ""


def _run(argv: list[str], began: float) -> int:
    parser = build_parser()
    if argv[:1] == ["--complete"]:
        print_out("\n".join(candidates(parser, argv[1:])))
        return Exit.CONFORMANT
    argv, command = _split(argv)
    if not argv:
        every = ", ".join(parser.commands())
        raise UsageError(
            f"which command? `rebalance check TARGET` is a start, `rebalance --help` has all: {every}"
        )
    parser.refuse_repeated(argv)
    options = parser.parse(completed(parser, argv, command))
    if command and not options.takes_command:
        raise UsageError(f"`-- {command[0]}` goes with check, campaign and init only")
    options.command, options.began = command, began
    check_format(options)
    run: Callable[[argparse.Namespace], int] = options.run
    with page_of(shutil.get_terminal_size().columns if sys.stdout.isatty() else WIDEST):
        return run(options)


def _with_hash_seed_of_targets() -> None:
    """Begin again where sets have another order than in a target's own process: what is forked from this one
    is then as good."""
    asked_for = os.environ.get("PYTHONHASHSEED") == HASH_SEED  # and not granted: python -E
    if sys.flags.hash_randomization and not asked_for and hasattr(os, "fork"):
        os.environ["PYTHONHASHSEED"] = HASH_SEED
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # until there is somebody to hear it
        with contextlib.suppress(OSError):  # it may not be started: what cannot be either says so
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
    """Print what is wrong, but not all of a file of garbage: so many lines of so many letters."""
    lines = [line[:1000] + "..." * (len(line) > 1000) for line in f"rebalance: {message}".splitlines()]
    more = [f"and {len(lines) - 20:,} lines more"] if len(lines) > 20 else []
    print_err("\n".join(lines[:20] + more))
    return Exit.USAGE


class _Version(argparse.Action):
    """Prints the version, for which the installation is read only when somebody asks."""

    def __call__(self, parser: argparse.ArgumentParser, options: Any, values: Any, name: Any = None) -> None:
        from importlib.metadata import version

        print_out(f"rebalance {version('rebalance-verifier')}")
        parser.exit()


class _Completion(argparse.Action):
    """Prints the script of a shell, and that is all."""

    def __call__(self, parser: argparse.ArgumentParser, options: Any, shell: Any, name: Any = None) -> None:
        print_out(SCRIPTS[shell])
        parser.exit()


def build_parser() -> Parser:
    """Return the parser of all commands."""
    parser = Parser(
        prog="rebalance",
        description="Find bugs in Kafka consumer group rebalancing: assignors, clients, protocol, logs.",
        epilog="`rebalance COMMAND --help` shows the options of a command. Exit codes: "
        + ", ".join(f"{int(code)} {meaning}" for code, meaning in EXIT_CODES.items()),
    )
    parser.add_argument("--version", nargs=0, action=_Version, help="show program's version number and exit")
    parser.add_argument("--completion", choices=tuple(SCRIPTS), action=_Completion, help="print a completion "
                        "script, for eval")  # fmt: skip
    commands: Any = parser.add_subparsers(
        dest="name", required=True, metavar="COMMAND", title="commands", action=Commands
    )
    for name, (module, sentence) in COMMANDS.items():
        commands.offer(name, sentence, partial(_load, module, name))
    return parser


def _load(module: str, name: str, commands: Any) -> None:
    """Add the parser of a command to ``commands``."""
    command = import_module(f"rebalance_verifier.cli.{module}")
    added = command.add(commands)
    added.set_defaults(run=command.run, takes_command=name in TAKE_A_COMMAND, default_of=added.get_default)


if __name__ == "__main__":
    sys.exit(main())
