"""The options that mean the same wherever they are taken: one name, one kind of value, one sentence each.

A command adds those that it takes by their names; tests/cli/test_vocabulary.py walks all parsers.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from rebalance_verifier.base.names import unknown
from rebalance_verifier.base.verdict import Level
from rebalance_verifier.cli.console.terminal import UsageError
from rebalance_verifier.cli.shared.values import amount, comma_separated, duration, natural, whole

Option = dict[str, Any]
"""What ``add_argument`` takes."""


def _value(kind: Callable[[str], Any], metavar: str, meaning: str, default: Any = None) -> Option:
    return {"type": kind, "metavar": metavar, "help": meaning, "default": default}


def _several(metavar: str, meaning: str) -> Option:
    return {"action": "append", "default": [], "metavar": metavar, "help": f"{meaning}; repeatable"}


def _one_of(choices: Sequence[str], meaning: str, default: str | None = None) -> Option:
    return {"choices": tuple(choices), "help": meaning, "default": default}


def _flag(meaning: str) -> Option:
    return {"action": "store_true", "help": meaning}


SHARED: dict[str, Option] = {
    # how much is searched
    "--profile": _one_of(
        ("smoke", "ci", "nightly", "deep"),
        "search effort: smoke (seconds), ci (a minute), nightly (an hour), deep (until --time-limit)",
    ),
    "--time-limit": _value(
        duration,
        "TIME",
        "stop the search after 90s, 5m or 2h; confirming and shrinking may add half of it, and 10 s",
    ),
    "--each-limit": _value(duration, "TIME", "limit of one scenario (%(default)g s)"),
    "--solver-units": _value(
        whole,
        "N",
        "limit of one obligation in z3 resource units, equal on every machine (%(default)d)",
    ),
    "--states": _value(whole, "N", "stop after N states"),
    "--depth": _value(natural, "N", "stop at N steps; the length of random walks"),
    "--memory": _value(amount, "SIZE", "stop before the search needs more memory: 500M, 4G"),
    "--seed": _value(natural, "N", "random seed; same seed, same run"),
    "--walks": _value(whole, "N", "number of random walks (%(default)d)"),
    "--jobs": _value(whole, "N", "number of processes (one per core); any number gives the same result"),
    "--resume": _flag("continue where this command was interrupted"),
    "--granularity": _one_of(
        ("atomic", "fine"), "fine: each request and response is a step, with many more states", "atomic"
    ),
    # the group
    "--scenario": _value(
        str,
        "NAME|FILE",
        "name of `rebalance list scenarios`; explore takes a file too (record: scale-out; conform: dynamic)",
    ),
    "--members": _value(whole, "N", "number of consumers"),
    "--partitions": _value(whole, "N", "number of partitions, over all topics"),
    "--release": _several(
        "RELEASE[,RELEASE...]",
        "release of the members, in turn: 4.1.0, or a name of `rebalance list releases`",
    )
    | {"type": comma_separated},
    "--broker": _value(
        str,
        "RELEASE",
        "release of the coordinator: 4.1.0, or a name of `rebalance list releases`",
    ),
    "--faults": _value(str, "FAULT[,FAULT...]|all|none", "kinds of faults to inject"),
    "--max-faults": _value(natural, "N", "limit of faults in one run"),
    "--switch": _several("ID", "bug switch of `rebalance bugs`, for all members"),
    # what is judged
    "--clause": _several("PATH", "only clauses below this path, such as kip429 or kip429/leader/4"),
    "--protocol": _one_of(
        ("eager", "cooperative", "consumer", "share", "tasks", "streams", "auto"),
        "only this rebalance protocol (auto: all that the target supports)",
        "auto",
    ),
    "--group-protocol": _one_of(
        ("classic", "consumer", "migration"),
        "classic, consumer (KIP-848), or migration between both (%(default)s)",
        "classic",
    ),
    "--level": _one_of(
        tuple(map(str, Level)),
        "weakest level that fails the run (liveness)",
        "liveness",
    ),
    "--without": _several(
        "NAME",
        "leave out a kind of input, such as unequal (check), or a clause of the contract (prove)",
    ),
    "--group": _several("NAME", "only this group of a log"),
    "--settle": _value(duration, "TIME", "time that a rebalance may take to settle (%(default)g s)"),
    "--on": _value(
        str,
        "CLIENT",
        "confluent, kafka-python, aiokafka, java:VERSION, code:RELEASE, coordinator:RELEASE,consumer:RELEASE",
    ),
    "--code": _value(
        str,
        "RELEASES",
        "releases of Kafka's own code: newest, or coordinator:RELEASE,consumer:RELEASE[,consumer:RELEASE...]",
    ),
    # a target
    "--target": _value(
        str,
        "TARGET",
        "use this assignor instead, given as for `rebalance check`",
    ),
    "--trust": _flag("run the command, module or jar that an unsigned file names"),
    "--call-seconds": _value(
        duration, "TIME", "limit of CPU time for one answer, and of time without any (10 s)", 10.0
    ),
    "--memory-mib": _value(whole, "N", "memory limit of the target (2048 MiB)", 2048),
    "--env": _several("NAME", "environment variable to pass to the target"),
    "--sandbox": _flag("deny the target network, sockets, other processes and your files"),
    "--maven": _several("GROUP:ARTIFACT:VERSION", "artifact that holds the class; its dependencies follow"),
    "--classpath": _several("A.jar:B.jar", "extra class path: jars and directories"),
    "--config": _several("KEY=VALUE", "setting for Configurable.configure"),
    "--lags": _flag("give the class a broker to ask for offsets and lags (bootstrap.servers)"),
    "--promise": _several(
        "PROMISE",
        "promise of the assignor, such as balanced or sticky (Kafka's own: as known; others: none)",
    ),
    "--master": _value(
        str,
        "URL",
        "Spark master: local[N], spark://HOST:PORT, or sc://HOST:PORT for Spark Connect (local[*])",
    ),
    # what is shown and written
    "--format": _value(str, "FORMAT", "output format (text)", "text"),
    "--out": _value(str, "PATH", "write results here"),
    "--report": _value(
        str,
        "FORMAT[,FORMAT...]",
        "reports to write: html, json, junit, sarif, markdown, as far as the command has them",
    ),
    "--report-dir": _value(Path, "DIR", "directory of the reports (.rebalance/<time>)"),
    "--ci": _one_of(("github", "none"), "github: write annotations and a step summary (none)", "none"),
    "--verbose": {"action": "count", "default": 0, "help": "more detail; -vv for most"},
    "--no-progress": _flag("hide the progress line"),
    "--no-color": _flag("no colors (or set NO_COLOR; FORCE_COLOR=1 forces them in a pipe)"),
}
"""Option -> what it means. The defaults may be others in one command."""

REPORTS = ("--report", "--report-dir", "--ci")
LIMITS = ("--call-seconds", "--memory-mib")
CONFINED = (*LIMITS, "--env", "--sandbox")


def add_options(group: Any, *names: str, **defaults: Any) -> None:
    """Add the options of these names to a parser or a group of its arguments, in this order.

    ``defaults``: those that are others here, by destination.
    """
    for name in names:
        given = dict(SHARED[name])
        destination = name[2:].replace("-", "_")
        if destination in defaults:
            given["default"] = defaults[destination]
        group.add_argument(*(("-v",) if name == "--verbose" else ()), name, **given)


def refuse(options: argparse.Namespace, names: Iterable[str], why: str) -> None:
    """Raise UsageError for one of the options ``names`` that was given another value than its default."""
    for name in names:
        destination = name[2:].replace("-", "_")
        if getattr(options, destination) != options.default_of(destination):
            raise UsageError(f"{name} {why}")


def refuse_protocol(command: str, protocol: str) -> None:
    """Raise UsageError where ``command``, as `model.protocols` lists it, takes no groups of ``protocol``."""
    from rebalance_verifier.model.protocols import PROTOCOLS

    if refusal := PROTOCOLS[protocol].refusal(command):
        raise UsageError(refusal)


def add_java(parser: argparse.ArgumentParser) -> None:
    """Add the options that say where a Java assignor is, for commands that take a TARGET."""
    group = parser.add_argument_group("for TARGET java:CLASS")
    add_options(group, "--maven", "--classpath", "--config", "--lags", "--promise")


def add_format(parser: Any, *more: str) -> None:
    """Add ``--format`` for text, json and ``more``, which alone the command then takes."""
    add_options(parser, "--format")
    parser.set_defaults(formats=("text", "json", *more))


def check_format(options: argparse.Namespace) -> None:
    """Raises UsageError for a format in which the command does not print."""
    known: Sequence[str] = getattr(options, "formats", ())
    if known and options.format not in known:
        raise UsageError(f"--format: {unknown('format', options.format, known)}")
