"""Finite structures: what a vocabulary's sorts and symbols stand for when everything can be counted.

A universe fixes the elements of the sorts and the fixed symbols. A structure is one state: a tuple with one
entry for each mutable symbol, in the vocabulary's order; an entry is the tuple of the symbol's values at all
its places, in row-major order. So states are immutable, hash and compare in C, and share the entries that
a step leaves alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import Any

from rebalance_verifier.specs.logic.language import Vocabulary

Value = bool | int | str
"""An element: truth value, number of an element of an unbounded sort, name of an enumeration's value."""

Structure = tuple[tuple[Value, ...], ...]
"""One state; see above."""


class Universe:
    """The elements of each sort, and the fixed symbols over them.

    ``sizes`` says how many elements each unbounded sort has (at least one), ``fixed`` gives each fixed
    symbol's value, or a function of its arguments. Raises ValueError if one of them is missing, unknown
    or not an element of its sort.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        sizes: Mapping[str, int],
        fixed: Mapping[str, Value | Callable[..., Value]] | None = None,
    ) -> None:
        self.vocabulary = vocabulary
        self.domains: dict[str, tuple[Value, ...]] = {"Bool": (False, True)}
        """The elements of each sort."""
        unbounded = [name for name in vocabulary.sorts if name not in vocabulary.values]
        _same("sizes", unbounded, sizes)
        for name in vocabulary.sorts:
            self.domains[name] = vocabulary.values.get(name) or tuple(range(sizes.get(name, 0)))
            if not self.domains[name]:
                raise ValueError(f"sort {name} needs at least one element")
        self.places: dict[str, dict[tuple[Value, ...], int]] = {
            symbol.name: {
                arguments: i for i, arguments in enumerate(product(*map(self.domain, symbol.arguments)))
            }
            for symbol in vocabulary.symbols.values()
        }
        """Where each symbol has a value: argument tuples in row-major order, with their position."""
        self.positions = {symbol.name: i for i, symbol in enumerate(vocabulary.mutable)}
        """The entry of each mutable symbol."""
        given = fixed or {}
        _same("fixed", [symbol.name for symbol in vocabulary.symbols.values() if symbol.fixed], given)
        self.tables: dict[str, tuple[Value, ...]] = {}
        """The entries of the fixed symbols."""
        for name, value in given.items():
            self.tables[name] = tuple(
                self.element(name, value(*arguments) if callable(value) else value)
                for arguments in self.places[name]
            )

    def domain(self, sort: Any) -> tuple[Value, ...]:
        """Return the elements of a z3 sort. Raises ValueError if it is not one of the vocabulary's."""
        if sort.name() not in self.domains:
            raise ValueError(f"sort {sort.name()} is not in the vocabulary")
        return self.domains[sort.name()]

    def domain_of(self, symbol: str) -> tuple[Value, ...]:
        """Return the elements that are values of a symbol."""
        return self.domain(self.vocabulary.symbols[symbol].value)

    def element(self, symbol: str, value: Value) -> Value:
        """``value``. Raises ValueError if it is not one of the symbol's."""
        domain = self.domain_of(symbol)
        if value not in domain or type(value) is not type(domain[0]):  # True == 1, but is not element 1
            raise ValueError(f"{value!r} is no value of {symbol}")
        return value

    def read(self, state: Structure, name: str, *arguments: Value) -> Value:
        """Return the value of ``name(*arguments)``. Raises KeyError if there is none."""
        return state[self.positions[name]][self.places[name][arguments]]

    def differences(
        self, left: Structure, right: Structure
    ) -> Iterator[tuple[str, tuple[Value, ...], Value, Value]]:
        """Yield where two states differ: symbol, arguments, both values; in the vocabulary's order."""
        for name, position in self.positions.items():
            if left[position] != right[position]:
                for arguments, i in self.places[name].items():
                    if left[position][i] != right[position][i]:
                        yield name, arguments, left[position][i], right[position][i]


def call(name: str, arguments: tuple[Value, ...]) -> str:
    """Return how a symbol, or an action, at these arguments is written.

    >>> call("owned", (0, 1)), call("group", ())
    ('owned(0, 1)', 'group')
    """
    return f"{name}({', '.join(map(str, arguments))})" if arguments else name


def _same(what: str, expected: list[str], given: Mapping[str, object]) -> None:
    wrong = [name for name in expected if name not in given] + [
        name for name in given if name not in expected
    ]
    if wrong:
        raise ValueError(f"{what}: missing or unknown: {', '.join(wrong)}")
