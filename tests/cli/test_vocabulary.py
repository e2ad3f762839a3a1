"""One word means one thing in all commands."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import pytest
from rebalance_verifier.base.installation import how_to_get
from rebalance_verifier.cli.console.terminal import UsageError
from rebalance_verifier.cli.main import build_parser

FOURTEEN = (
    *("check", "compare", "explore", "upgrade", "prove", "bugs", "record", "conform", "replay", "show"),
    *("audit", "campaign", "list", "init"),
)


def parsers() -> dict[str, argparse.ArgumentParser]:
    """The parser of each command."""
    (commands,) = (one for one in build_parser()._actions if isinstance(one, argparse._SubParsersAction))
    return dict(commands.choices)


def options() -> Iterator[tuple[str, argparse.Action]]:
    """Every option of every command."""
    for name, parser in parsers().items():
        for action in parser._actions:
            if action.option_strings:
                yield name, action


def meaning(action: argparse.Action) -> tuple[Any, ...]:
    """All that an option means, but what is taken where it is not given."""
    return (
        *(type(action), action.dest, action.type, action.nargs, action.metavar, action.help),
        tuple(action.choices or ()),
    )


def test_there_are_fourteen_commands() -> None:
    assert tuple(parsers()) == FOURTEEN


def test_an_option_means_the_same_in_every_command() -> None:
    """But for `init --ci`: there it is the CI of a file, in the others the one they run in."""
    known: dict[str, tuple[str, tuple[Any, ...]]] = {}
    for command, action in options():
        if command == "init" and action.dest == "ci":
            continue
        for name in action.option_strings:
            first, meant = known.setdefault(name, (command, meaning(action)))
            assert meant == meaning(action), f"{name} of {command} is another than that of {first}"


def test_a_meaning_has_one_name() -> None:
    names: dict[str, tuple[str, ...]] = {}
    for command, action in options():
        known = names.setdefault(action.dest, tuple(action.option_strings))
        assert known == tuple(action.option_strings), f"{action.dest} of {command}"


def test_every_option_and_command_says_what_it_does() -> None:
    assert [(command, action.dest) for command, action in options() if not action.help] == []
    assert [name for name, parser in parsers().items() if not parser.description] == []


@pytest.mark.parametrize(("package", "extra"), [("pyspark", "spark"), ("py4j.java_gateway", "spark")])
def test_a_missing_extra_is_one_line_that_says_how_to_get_it(rebalance, monkeypatch, package, extra) -> None:
    def missing(options: argparse.Namespace) -> int:
        raise ModuleNotFoundError(f"No module named {package!r}", name=package)

    monkeypatch.setattr("rebalance_verifier.cli.commands.audit.run", missing)
    ran = rebalance("audit", "logs")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert how_to_get(extra) in ran.err
    assert extra in how_to_get(extra) or f"py{extra}" in how_to_get(extra)


def repeated() -> Iterator[tuple[str, argparse.Action]]:
    """The options that take one value or are a switch."""
    several = (argparse._AppendAction, argparse._CountAction, argparse._HelpAction)
    return ((command, action) for command, action in options() if not isinstance(action, several))


def test_no_single_option_may_be_given_twice() -> None:
    parser = build_parser()
    seen = 0
    for command, action in repeated():
        for name in action.option_strings:
            with pytest.raises(UsageError, match="given twice, say it once"):
                parser.refuse_repeated([command, name, "1", f"{name}=2"])
            parser.refuse_repeated([command, name, "1"])
            seen += 1
    assert seen > 150


def test_what_is_repeatable_says_so_and_may_be_repeated() -> None:
    parser = build_parser()
    for command, action in options():
        if isinstance(action, argparse._AppendAction):
            parser.refuse_repeated(
                [command, *(f"{name}=1" for name in (*action.option_strings, *action.option_strings))]
            )
