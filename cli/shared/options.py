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
        "how much is searched: smoke (seconds), ci (about a minute), nightly (about an hour), deep (as long "
        "as you like, with --time-limit)",
    ),
    "--time-limit": _value(
        duration,
        "TIME",
        "stop searching after this time, such as 90, 90s, 5m or 2h; confirming what is known by then and "
        "making it small end within 1.5 times as long, and 10 s",
    ),
    "--each-limit": _value(duration, "TIME", "how long one scenario may take (%(default)g s)"),
    "--solver-units": _value(
        whole,
        "N",
        "how many resource units of the solver (z3's rlimit) one obligation may take, the same on every "
        "machine (%(default)d)",
    ),
    "--states": _value(whole, "N", "stop after so many states"),
    "--depth": _value(natural, "N", "no deeper than N steps, or walks of N steps"),
    "--memory": _value(amount, "SIZE", "stop before this is exceeded: 500M, 4G"),
    "--seed": _value(natural, "N", "random seed; same seed, same run"),
    "--walks": _value(whole, "N", "how many random walks (%(default)d)"),
    "--jobs": _value(whole, "N", "how many processes (as many as processors); the result is the same"),
    "--resume": _flag("go on where the same command stopped before its end"),
    "--granularity": _one_of(
        ("atomic", "fine"), "fine: every request and response is a step (many more states)", "atomic"
    ),
    # the group
    "--scenario": _value(
        str,
        "NAME|FILE",
        "what happens: `rebalance list scenarios [--of recording]`; explore takes a group "
        "of yours in TOML too (record: scale-out; conform: dynamic)",
    ),
    "--members": _value(whole, "N", "how many consumers"),
    "--partitions": _value(whole, "N", "how many partitions in all"),
    "--release": _several(
        "RELEASE[,RELEASE...]",
        "what the members behave like, in turn: a release of Kafka such as 4.1.0, or one of "
        "`rebalance list releases`",
    )
    | {"type": comma_separated},
    "--broker": _value(
        str,
        "RELEASE",
        "what the coordinator behaves like: a release of Kafka such as 4.1.0, or one of "
        "`rebalance list releases`",
    ),
    "--faults": _value(str, "FAULT[,FAULT...]|all|none", "kinds of faults that may happen"),
    "--max-faults": _value(natural, "N", "how many faults may happen in one run"),
    "--switch": _several("ID", "a design switch of `rebalance bugs` for everybody"),
    # what is judged
    "--clause": _several("PATH", "only clauses at or below this path, such as kip429 or kip429/leader/4"),
    "--protocol": _one_of(
        ("eager", "cooperative", "consumer", "auto"),
        "only this one (auto: all that the target supports)",
        "auto",
    ),
    "--group-protocol": _one_of(
        ("classic", "consumer", "migration"),
        "consumer is KIP-848, of java and confluent on Kafka; migration groups between both (%(default)s)",
        "classic",
    ),
    "--level": _one_of(
        tuple(map(str, Level)),
        "the weakest level that fails the run; the others only inform (liveness)",
        "liveness",
    ),
    "--without": _several("CLAUSE", "do not assume this clause of the assignor's contract: what is it for?"),
    "--group": _several("NAME", "only the group of this name, where a log has several"),
    "--settle": _value(
        duration, "TIME", "how long a rebalance may take until the group is at rest (%(default)g s)"
    ),
    "--on": _value(
        str,
        "CLIENT",
        "confluent, kafka-python, aiokafka, java:VERSION, or Kafka's own code: code:RELEASE, "
        "coordinator:RELEASE,consumer:RELEASE",
    ),
    "--code": _value(
        str,
        "RELEASES",
        "of Kafka: 4.4.0, or coordinator:RELEASE,consumer:RELEASE and more consumers, which the members have "
        "in turn",
    ),
    # a target
    "--target": _value(
        str,
        "TARGET",
        "an assignor, as `rebalance check` takes it, in place of the named or built-in one",
    ),
    "--trust": _flag("run what a file names and no run of yours here has signed: a command, a module, a jar"),
    "--call-seconds": _value(
        duration, "TIME", "CPU time that one answer may take, or time without any (10)", 10.0
    ),
    "--memory-mib": _value(whole, "N", "how much memory the target may use (2048)", 2048),
    "--env": _several("NAME", "environment variable to pass to the target"),
    "--sandbox": _flag(
        "no network for the target, no socket, no other process, of your files only its own program"
    ),
    "--maven": _several("GROUP:ARTIFACT:VERSION", "where the class is, with all that it needs"),
    "--classpath": _several("A.jar:B.jar", "extra class path: jars and directories"),
    "--config": _several("KEY=VALUE", "given to Configurable.configure"),
    "--promise": _several(
        "PROMISE",
        "what the assignor claims to be, such as balanced or sticky (what is known of Kafka's own, else "
        "nothing)",
    ),
    "--master": _value(
        str,
        "URL",
        "where Spark runs: local[N], spark://HOST:PORT, or sc://HOST:PORT for Spark Connect (local[*], all "
        "cores of this machine)",
    ),
    # what is shown and written
    "--format": _value(str, "FORMAT", "how the answer is printed (text)", "text"),
    "--out": _value(str, "PATH", "where what the command makes is kept"),
    "--report": _value(
        str,
        "FORMAT[,FORMAT...]",
        "which reports are written: html, json, junit, sarif, markdown, as far as the command has them",
    ),
    "--report-dir": _value(Path, "DIR", "where reports go (.rebalance/<time>)"),
    "--ci": _one_of(("github", "none"), "github: annotations and a step summary", "none"),
    "--verbose": {"action": "count", "default": 0, "help": "more detail; -vv for most"},
    "--no-progress": _flag("no progress line on the terminal"),
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
    """Raises UsageError for one of the options ``names`` that was given another value than its default."""
    for name in names:
        destination = name[2:].replace("-", "_")
        if getattr(options, destination) != options.default_of(destination):
            raise UsageError(f"{name} {why}")


def add_java(parser: argparse.ArgumentParser) -> None:
    """Add the options that say where a Java assignor is, for commands that take a TARGET."""
    group = parser.add_argument_group("for TARGET java:CLASS")
    add_options(group, "--maven", "--classpath", "--config", "--promise")


def add_format(parser: Any, *more: str) -> None:
    """Add ``--format`` for text, json and ``more``, which alone the command then takes."""
    add_options(parser, "--format")
    parser.set_defaults(formats=("text", "json", *more))


def check_format(options: argparse.Namespace) -> None:
    """Raises UsageError for a format in which the command does not print."""
    known: Sequence[str] = getattr(options, "formats", ())
    if known and options.format not in known:
        raise UsageError(f"--format: {unknown('format', options.format, known)}")
