"""Targets on the command line: which one, and a conversation with it."""

from __future__ import annotations

import argparse
import contextlib
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rebalance_verifier.cli.console.terminal import UsageError, usage_errors
from rebalance_verifier.cli.shared.values import unless_all
from rebalance_verifier.traces.recognise import right_command

if TYPE_CHECKING:
    from rebalance_verifier.gate.targets.resolve import Target
    from rebalance_verifier.gate.targets.session import Session
    from rebalance_verifier.model.values import RebalanceProtocol
    from rebalance_verifier.properties.assignors.clause import Clause


def target_of(options: argparse.Namespace) -> Target:
    """Return what TARGET with its options, or the command after ``--``, names. Raises UsageError."""
    return resolved(spec(options.target, options), options.command, options)


def resolved(
    spec: str | None, command: Sequence[str] = (), options: argparse.Namespace | None = None
) -> Target:
    """Return the target that is spelled so, confined as the ``options`` have it. Raises UsageError."""
    from rebalance_verifier.gate.targets.hosts.hosted import TargetError
    from rebalance_verifier.gate.targets.resolve import resolve

    if not command:
        refuse_files(spec)
    with usage_errors(TargetError):
        target = resolve(spec, command)
    given = vars(options) if options else {}
    return replace(target, variables=tuple(given.get("env", ())), sandbox=given.get("sandbox", False))


def refuse_files(spec: str | None) -> None:
    """Raise UsageError for a file or a directory in the place of a target that another command takes. The
    name of a target stays one where a directory happens to be called so."""
    if spec and (os.sep in spec or not Path(spec).is_dir()) and (other := right_command(Path(spec))):
        raise UsageError(other)


@contextlib.contextmanager
def session(target: Target, options: argparse.Namespace) -> Iterator[Session]:
    """Yield a conversation within the limits of the options. Raises UsageError where the target does not
    start."""
    from rebalance_verifier.gate.search.time_limit import TimeLimits
    from rebalance_verifier.gate.targets.hosts.hosted import TargetError
    from rebalance_verifier.gate.targets.session import START_SECONDS, Session

    end = TimeLimits.of(vars(options).get("time_limit"), options.began).end
    start = min(START_SECONDS, max(0.0, end - time.monotonic()))
    with usage_errors(TargetError):
        started = Session(
            target, options.call_seconds, start_seconds=start, memory_mib=options.memory_mib
        ).__enter__()
    with contextlib.closing(started):
        yield started


def clauses(paths: Sequence[str]) -> tuple[Clause, ...]:
    """Return the clauses of assignors that ``--clause`` names. Raises UsageError."""
    from rebalance_verifier.properties.assignors.clauses import select

    with usage_errors(ValueError, option="--clause"):
        return tuple(select(unless_all(paths)))


def protocols(options: argparse.Namespace) -> tuple[RebalanceProtocol, ...]:
    """Return the protocols that ``--protocol`` names."""
    from rebalance_verifier.model.values import RebalanceProtocol

    every = tuple(RebalanceProtocol)
    return every if options.protocol == "auto" else (RebalanceProtocol(options.protocol),)


def spec(what: str | None, options: argparse.Namespace) -> str | None:
    """TARGET with these options in it: one string that names all of it. Raises UsageError."""
    if not any((options.maven, options.classpath, options.config, options.lags, options.promise)):
        return what
    from rebalance_verifier.base.processes.tools import ToolError
    from rebalance_verifier.gate.targets.hosts.java import LAGS, is_java, spelled

    if what is None or not is_java(what):
        java = "java:CLASS and streams:RELEASE"
        raise UsageError(f"--maven, --classpath, --config, --lags and --promise go with {java}, not {what!r}")
    for other, why in (("sandbox", "which denies it the network"), ("in_group", "where there is none")):
        if options.lags and vars(options).get(other):
            option = f"--{other.replace('_', '-')}"
            raise UsageError(f"--lags gives the target a broker to ask: it does not go with {option}, {why}")
    config = [*options.config, *([LAGS] if options.lags else [])]
    with usage_errors(ToolError):
        return spelled(what, options.maven, options.classpath, config, options.promise)
