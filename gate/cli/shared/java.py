"""The options that say where a Java assignor is, for every command that takes a TARGET."""

from __future__ import annotations

import argparse

from rebalance.gate.cli.console.terminal import UsageError


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options to the parser of a command."""
    group = parser.add_argument_group("for TARGET java:CLASS")
    group.add_argument("--maven", action="append", default=[], metavar="GROUP:ARTIFACT:VERSION",
                       help="where the class is, with all that it needs; repeatable")  # fmt: skip
    group.add_argument("--classpath", action="append", default=[], metavar="A.jar:B.jar",
                       help="the same as jars and directories; both may be given")  # fmt: skip
    group.add_argument("--config", action="append", default=[], metavar="KEY=VALUE",
                       help="given to Configurable.configure; repeatable")  # fmt: skip
    group.add_argument("--promise", action="append", default=[], metavar="PROMISE",
                       help="what the assignor claims to be, such as balanced or sticky; repeatable "
                       "(default: what is known of Kafka's own, else nothing)")  # fmt: skip


def spec(what: str | None, options: argparse.Namespace) -> str | None:
    """TARGET with these options in it: one string that names all of it. Raises UsageError."""
    given = (options.maven, options.classpath, options.config, options.promise)
    if not any(given):
        return what
    from rebalance.gate.targets.java import JAVA, spelled
    from rebalance.live.processes.tools import ToolError

    if what is None or not what.startswith(JAVA):
        raise UsageError(f"--maven, --classpath, --config and --promise go with java:CLASS, not {what!r}")
    try:
        return spelled(what, *given)
    except ToolError as error:
        raise UsageError(str(error)) from error
