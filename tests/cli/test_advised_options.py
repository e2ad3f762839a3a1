"""Advice can be taken: each option that a text of a command names is one of the command it speaks of."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from rebalance_verifier.cli.main import __file__ as main

from tests.cli.test_vocabulary import parsers
from tests.test_layers import FLOORS

ROOT = Path(main).parents[1]

OPTION = re.compile(r"(?<![\w-])--(?!rebalance-)[a-z][a-z0-9-]*")
"""Those of the pytest plugin begin with --rebalance-."""

OF_COMMAND = re.compile(rf"\brebalance ({'|'.join(parsers())})\b([^`;:\n]*)")

OF = {
    "code_search": ("explore", "check"),
    "lockstep": ("conform",),
    "listing": ("list", "explore"),
    "bugs": ("bugs", "explore"),
}
"""Module of commands -> the commands that it is a part of, or whose options it writes down for people to
copy."""


@cache
def options() -> dict[str, frozenset[str]]:
    """The options of each command."""
    return {name: frozenset(one._option_string_actions) for name, one in parsers().items()}


def texts(tree: ast.AST) -> Iterator[str]:
    """Every text below a node but docstrings, those of an f-string with a space for what is put in."""
    inside: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            inside.add(node.value)
        if isinstance(node, ast.JoinedStr):
            inside.update(node.values)
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else " " for part in node.values)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in inside:
            yield node.value


def not_there(text: str, own: frozenset[str]) -> list[str]:
    """The options that a text names and nobody has: its ``own`` command, or another that it names."""
    wrong = []
    for command, said in OF_COMMAND.findall(text):
        wrong += [f"{command} {one}" for one in OPTION.findall(said) if one not in options()[command]]
    rest = OF_COMMAND.sub("", text)
    return wrong + [one for one in OPTION.findall(rest) if one not in own]


COMMANDS = sorted((ROOT / "cli/commands").glob("[!_]*.py"))


@pytest.mark.parametrize("path", COMMANDS, ids=lambda path: path.stem)
def test_a_command_names_options_that_it_has(path: Path) -> None:
    own = frozenset().union(*(options()[command] for command in OF.get(path.stem, (path.stem,))))
    tree = ast.parse(path.read_text())
    assert {wrong for text in texts(tree) for wrong in not_there(text, own)} == set()


@pytest.mark.parametrize("part", FLOORS)
def test_errors_name_options_that_there_are(part: str) -> None:
    """Elsewhere a text is of several commands: what is raised names an option that one of them has."""
    own = frozenset().union(*options().values())
    found = [
        (path.name, wrong)
        for path in sorted((ROOT / part).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Raise)
        for text in texts(node)
        for wrong in not_there(text, own)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("say --naming given", ["--naming"]),
        ("`rebalance explore --naming given`, or --members 2", []),
        ("`rebalance upgrade --naming given`", ["upgrade --naming"]),
        ("more with --members 3", []),
    ],
)
def test_it_is_seen_where_one_is_not_there(text: str, wrong: list[str]) -> None:
    assert not_there(text, options()["upgrade"]) == wrong


@pytest.mark.parametrize("command", ["explore dynamic", "explore consumer"])
def test_too_many_names_are_advised_of_an_option_where_there_is_one(rebalance, command: str) -> None:
    ran = rebalance(*command.split(), "--members", 6, "--partitions", 6)
    assert ran.code == 2
    assert "or --naming given" in ran.err


def test_and_of_none_where_there_is_none(rebalance) -> None:
    """`rebalance upgrade --members 6` said: fewer, or naming 'given'."""
    argv = ("--members", 6, "--partitions", 6, "--scenarios", 10, "--out", "c")
    ran = rebalance("campaign", "consumer", *argv)
    assert ran.code == 2
    assert "naming" not in ran.err.replace("namings", "")
    assert "fewer members or partitions" in ran.err
