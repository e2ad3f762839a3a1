"""The options that mean the same wherever they are taken: one name, one kind of value, one sentence each.

A command adds those that it takes by their names; tests/gate/cli/test_vocabulary.py walks all parsers.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rebalance.gate.cli.console.terminal import UsageError
from rebalance.gate.cli.shared.values import amount, comma_separated, duration, natural, whole
from rebalance.properties.verdict import Level

SHARED: dict[str, dict[str, Any]] = {
    # how much is searched
    "--profile": {
        "choices": ("smoke", "ci", "nightly", "deep"),
        "help": "how much is searched: smoke (seconds), ci (about a minute), nightly (about an hour), deep "
        "(as long as you like, with --time-limit)",
    },
    "--time-limit": {
        "type": duration,
        "metavar": "TIME",
        "help": "stop after this time, such as 90, 90s, 5m or 2h; an unfinished search is inconclusive",
    },
    "--each-limit": {
        "type": duration,
        "metavar": "TIME",
        "help": "how long one obligation or scenario may take (%(default)g s)",
    },
    "--states": {"type": whole, "metavar": "N", "help": "stop after so many states"},
    "--depth": {"type": natural, "metavar": "N", "help": "no deeper than N steps, or walks of N steps"},
    "--memory": {"type": amount, "metavar": "SIZE", "help": "stop before this is exceeded: 500M, 4G"},
    "--seed": {"type": natural, "metavar": "N", "help": "of what is drawn: an equal seed, an equal run"},
    "--jobs": {
        "type": whole,
        "metavar": "N",
        "help": "how many processes (as many as processors); the result is the same",
    },
    "--resume": {"action": "store_true", "help": "go on where the same command stopped before its end"},
    "--granularity": {
        "choices": ("atomic", "fine"),
        "default": "atomic",
        "help": "fine: every request and response is a step (many more states)",
    },
    # the group
    "--members": {"type": whole, "metavar": "N", "help": "how many consumers"},
    "--partitions": {"type": whole, "metavar": "N", "help": "how many partitions in all"},
    "--release": {
        "type": comma_separated,
        "action": "append",
        "default": [],
        "metavar": "RELEASE[,RELEASE...]",
        "help": "what the members behave like, in turn: `rebalance list releases`; repeatable",
    },
    "--broker": {
        "metavar": "RELEASE",
        "help": "what the coordinator behaves like: `rebalance list releases`",
    },
    "--faults": {"metavar": "FAULT[,FAULT...]|all|none", "help": "kinds of faults that may happen"},
    "--max-faults": {"type": natural, "metavar": "N", "help": "how many faults may happen in one run"},
    "--switch": {
        "action": "append",
        "default": [],
        "metavar": "ID",
        "help": "a design switch of `rebalance bugs` for everybody; repeatable",
    },
    # what is judged
    "--clause": {
        "action": "append",
        "default": [],
        "metavar": "PATH",
        "help": "only clauses at or below this path, such as kip429 or kip429/leader/4; repeatable",
    },
    "--protocol": {
        "choices": ("eager", "cooperative", "auto"),
        "default": "auto",
        "help": "only this one (auto: all that the target supports)",
    },
    "--level": {
        "choices": tuple(map(str, Level)),
        "default": "liveness",
        "help": "the weakest level that fails the run; the others only inform (liveness)",
    },
    "--without": {
        "action": "append",
        "default": [],
        "metavar": "CLAUSE",
        "help": "do not assume this clause of the assignor's contract: what is it for? repeatable",
    },
    "--group": {
        "action": "append",
        "default": [],
        "metavar": "NAME",
        "help": "only the group of this name, where a log has several",
    },
    "--settle": {
        "type": duration,
        "metavar": "TIME",
        "help": "how long a rebalance may take until the group is at rest (%(default)g s)",
    },
    # a target
    "--target": {
        "metavar": "TARGET",
        "help": "an assignor, as `rebalance check` takes it, in place of the one that is named or built in",
    },
    "--call-seconds": {
        "type": duration,
        "default": 10.0,
        "metavar": "TIME",
        "help": "how long the target may take for one answer (10)",
    },
    "--memory-mib": {
        "type": whole,
        "default": 2048,
        "metavar": "N",
        "help": "how much memory the target may use (2048)",
    },
    "--maven": {
        "action": "append",
        "default": [],
        "metavar": "GROUP:ARTIFACT:VERSION",
        "help": "where the class is, with all that it needs; repeatable",
    },
    "--classpath": {
        "action": "append",
        "default": [],
        "metavar": "A.jar:B.jar",
        "help": "the same as jars and directories; both may be given",
    },
    "--config": {
        "action": "append",
        "default": [],
        "metavar": "KEY=VALUE",
        "help": "given to Configurable.configure; repeatable",
    },
    "--promise": {
        "action": "append",
        "default": [],
        "metavar": "PROMISE",
        "help": "what the assignor claims to be, such as balanced or sticky; repeatable (default: what is "
        "known of Kafka's own, else nothing)",
    },
    "--master": {
        "metavar": "URL",
        "help": "where Spark runs: local[N], spark://HOST:PORT, or sc://HOST:PORT for Spark Connect "
        "(local[*], all cores of this machine)",
    },
    # what is shown and written
    "--format": {"default": "text", "metavar": "FORMAT", "help": "how the answer is printed (text)"},
    "--out": {"metavar": "PATH", "help": "where what the command makes is kept"},
    "--report": {
        "metavar": "FORMAT[,FORMAT...]",
        "help": "which reports are written: html, json, junit, sarif, markdown, as far as "
        "the command has them",
    },
    "--report-dir": {"type": Path, "metavar": "DIR", "help": "where reports go (.rebalance/<time>)"},
    "--ci": {
        "choices": ("github", "none"),
        "default": "none",
        "help": "github: annotations and a step summary",
    },
    "--verbose": {"action": "count", "default": 0, "help": "say more; twice: still more"},
    "--no-progress": {"action": "store_true", "help": "no progress line on the terminal"},
    "--no-color": {"action": "store_true", "help": "also by the variable NO_COLOR"},
}
"""Option -> what ``add_argument`` takes. The defaults may be others in one command."""

REPORTS = ("--report", "--report-dir", "--ci")
LIMITS = ("--call-seconds", "--memory-mib")


def add(group: Any, *names: str, **defaults: Any) -> None:
    """Add the options of these names to a parser or a group of its arguments, in this order.

    ``defaults``: those that are others here, by destination.
    """
    for name in names:
        given = dict(SHARED[name])
        destination = name[2:].replace("-", "_")
        if destination in defaults:
            given["default"] = defaults[destination]
        group.add_argument(*(("-v",) if name == "--verbose" else ()), name, **given)


def add_java(parser: argparse.ArgumentParser) -> None:
    """Add the options that say where a Java assignor is, for commands that take a TARGET."""
    group = parser.add_argument_group("for TARGET java:CLASS")
    add(group, "--maven", "--classpath", "--config", "--promise")


def add_format(parser: Any, *more: str) -> None:
    """Add ``--format`` for text, json and ``more``, which alone the command then takes."""
    add(parser, "--format")
    parser.set_defaults(formats=("text", "json", *more))


def check_format(options: argparse.Namespace) -> None:
    """Raises UsageError for a format in which the command does not print."""
    known: Sequence[str] = getattr(options, "formats", ())
    if known and options.format not in known:
        raise UsageError(f"--format: no format is called {options.format!r}; known: {', '.join(known)}")
