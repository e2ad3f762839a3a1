"""Options in a file: ``rebalance.toml``, or ``[tool.rebalance]`` of pyproject.toml, where the command runs.

A table for each command holds its options by their names without the dashes, and its argument by its own.
What is typed comes after, so it wins; of an option that may be repeated both count.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rebalance_verifier.base.names import unknown
from rebalance_verifier.base.reading import Unparsed, Unreadable, toml_of
from rebalance_verifier.cli.console.terminal import UsageError, print_err
from rebalance_verifier.cli.parser import Parser

TYPED = {"replay": ("--trust", "--target"), "show": ("--trust",)}
"""Command -> options that count only where they are typed: a file of options comes along with the traces."""

FILES = (Path("rebalance.toml"), Path("pyproject.toml"))


def completed(parser: Parser, argv: Sequence[str], command: Sequence[str]) -> list[str]:
    """``argv`` with what the file says of its command. Raises UsageError.

    ``command``: what was typed after ``--``; then the file's argument does not count.
    """
    if not argv or argv[0] not in parser.commands():
        return list(argv)
    where, tables = _read()
    for name in tables:
        if name not in parser.commands():
            raise UsageError(f"{where}: {unknown('command', name, parser.commands())}")
    table = tables.get(argv[0], {})
    if not isinstance(table, Mapping):
        raise UsageError(f"{where}: {argv[0]} is a table of options")
    own = parser.commands()[argv[0]]
    argument = next((one for one in own._actions if not one.option_strings), None)
    named = [(name, value) for name, value in table.items() if not _is(argument, name)]
    texts = [word for name, value in named for word in _texts(name, value, where)]
    try:
        parser.refuse_repeated([argv[0], *texts])
        typed = parser.parse([argv[0], *texts, *argv[1:]])
    except UsageError as error:
        if not texts:
            raise
        parser.parse(argv)  # what is typed wrong is not the file's fault
        raise UsageError(f"{where}: {error}") from error
    given = command or (argument is not None and getattr(typed, argument.dest))
    values = [] if given else [value for name, value in table.items() if _is(argument, name)]
    arguments = [str(one) for value in values for one in (value if isinstance(value, list) else [value])]
    for word in (*texts, *arguments):
        if (option := word.partition("=")[0]) in TYPED.get(argv[0], ()):
            raise UsageError(f"{where}: {option} lets a file name what is run: type it, if you know that")
    if texts or arguments:
        print_err(f"{where}: {' '.join([argv[0], *arguments, *texts])}")
    return [argv[0], *texts, *argv[1:], *arguments]


def _is(argument: argparse.Action | None, name: str) -> bool:
    return argument is not None and name in (argument.dest, str(argument.metavar).lower())


def _read() -> tuple[str, Mapping[str, Any]]:
    """Return the file that counts, and its tables; none without one. Raises UsageError."""
    for path in FILES:
        try:
            whole = toml_of(path)
        except OSError:
            continue
        except Unparsed as error:
            if path == FILES[0]:
                raise UsageError(str(error)) from error
            continue  # whoever owns pyproject.toml will say so
        except Unreadable as error:
            raise UsageError(str(error)) from error
        tools = whole.get("tool")
        found = whole if path == FILES[0] else tools.get("rebalance") if isinstance(tools, dict) else None
        if found is not None and not isinstance(found, dict):
            raise UsageError(f"{path}: tool.rebalance is a table, with a table for each command")
        if found is not None:
            return str(path), found
    return "", {}


def _texts(name: str, value: Any, where: str) -> Iterator[str]:
    if value is True:
        yield f"--{name}"
    elif isinstance(value, list):
        for one in value:
            yield from _texts(name, one, where)
    elif isinstance(value, str | int | float) and value is not False:
        yield f"--{name}={value}"
    elif value is not False:
        raise UsageError(f"{where}: {name}: expected text, a number, true, or several of them")
