"""Every successor of a state of the logic, and breadth-first search from there, on finite structures.

What holds the logic against hand-written machines, against the solver's searches and against TLC, and what
``tools.witness_search`` walks in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

from rebalance_verifier.specs.logic.compiled import (
    Binding,
    Exists,
    FunctionWriter,
    Node,
    Not,
    conjuncts,
    negation,
    translate,
)
from rebalance_verifier.specs.logic.concrete import Parameters, Stepper, tuple_of
from rebalance_verifier.specs.logic.language import NEXT, SpecAction, Term, free
from rebalance_verifier.specs.logic.universe import Structure, Universe, Value


@dataclass(frozen=True)
class _Check:
    """One condition on what is open. ``variables`` may have any values; each makes an instance of its own."""

    holds: Callable[..., bool]
    variables: tuple[Binding, ...]


@dataclass(frozen=True)
class _Search:
    """What it takes to find the steps by one action."""

    enabled: Callable[[Structure], list[Parameters]]
    checks: tuple[_Check, ...]
    open: tuple[str, ...]
    """Symbols with something that is ``ANY``."""


class StateSpace(Stepper):
    """The stepper, which also finds what it is not given."""

    def __init__(self, universe: Universe, actions: Iterable[SpecAction]) -> None:
        super().__init__(universe, actions)
        self._searches: dict[str, _Search] = {}

    def successors(self, state: Structure) -> Iterator[tuple[str, Parameters, Structure]]:
        """Every step from ``state``: action, parameters, state after. In the order of the actions."""
        for name in self.actions:
            for parameters in self._search(name).enabled(state):
                for after in self._afters(name, state, parameters):
                    yield name, parameters, after

    def states(self, formula: Term) -> Iterator[Structure]:
        """All states of which ``formula`` holds, in lexicographic order."""
        node = translate(self.universe.vocabulary.close(formula), self.universe, ("",), ())
        state = _Partial(self.universe, self.universe.positions, [_ANYTHING] * len(self.universe.positions))
        checks = [self._check(part, 1, ()) for part in conjuncts(node)]
        return state.completions(_instances(checks, state.entries))

    def _search(self, name: str) -> _Search:
        if name not in self._searches:
            action = self._rule(name).action
            variables = self._bindings(action.parameters)
            names = tuple(parameter for parameter, _ in variables)
            guard = translate(action.guard, self.universe, ("",), names)
            where = translate(action.where_, self.universe, ("", NEXT), names)
            writer = FunctionWriter(self.universe)
            found = f"[{tuple_of(names)} {writer.loops(variables, guard)}]"
            self._searches[name] = _Search(
                writer.function(1, (), found),
                tuple(self._check(part, 2, names) for part in conjuncts(where)),
                tuple(symbol for symbol, update in action.updates.items() if update.open),
            )
        return self._searches[name]

    def _check(self, condition: Node, states: int, names: tuple[str, ...]) -> _Check:
        """A condition "for all", one instance at a time: one is decided sooner than all of them."""
        variables: tuple[Binding, ...] = ()
        if isinstance(condition, Not) and isinstance(condition.of, Exists):
            variables, condition = condition.of.variables, negation(condition.of.body)
        writer, every = FunctionWriter(self.universe), (*names, *(name for name, _ in variables))
        return _Check(writer.function(states, every, writer.expression(condition)), variables)

    def _afters(self, name: str, before: Structure, parameters: Parameters) -> Iterator[Structure]:
        rule, search = self._rule(name), self._search(name)
        if not search.open:
            whole = rule.effect(before, None, *parameters)
            if rule.where(before, whole, *parameters):
                yield whole
            return
        after = _Partial(self.universe, search.open, rule.effect(before, _ANYTHING, *parameters))
        yield from after.completions(_instances(search.checks, before, after.entries, *parameters))


def _instances(checks: Iterable[_Check], *arguments: Any) -> list[Callable[[], bool]]:
    return [
        partial(check.holds, *arguments, *values)
        for check in checks
        for values in product(*(domain for _, domain in check.variables))
    ]


class _Unfilled(Exception):
    """What is asked for is still open."""

    def __init__(self, hole: tuple[str, int]) -> None:
        self.hole = hole


class _Entry(dict[int, Value]):
    """An entry of a state of which something is open."""

    symbol: str

    def __missing__(self, i: int) -> Value:
        raise _Unfilled((self.symbol, i))


class _Anything:
    """A state of which every entry, and every value, is this object."""

    def __getitem__(self, _: int) -> _Anything:
        return self


_ANYTHING: Any = _Anything()

Hole = tuple[str, int]
"""A symbol and a position in its entry."""


class _Partial:
    """A state while what is open in it is filled. Open may be only something of ``symbols``."""

    def __init__(self, universe: Universe, symbols: Iterable[str], entries: Iterable[Any]) -> None:
        self.entries: list[Any] = list(entries)
        self.holes: list[Hole] = []
        self._universe = universe
        self._positions = {symbol: universe.positions[symbol] for symbol in symbols}
        for symbol, position in self._positions.items():
            values = [self.entries[position][i] for i in range(len(universe.places[symbol]))]
            self.holes += [(symbol, i) for i, value in enumerate(values) if value is _ANYTHING]
            entry = _Entry((i, value) for i, value in enumerate(values) if value is not _ANYTHING)
            entry.symbol = symbol
            self.entries[position] = entry

    def complete(self) -> Structure:
        """The state, once nothing is open."""
        whole = list(self.entries)
        for position in self._positions.values():
            entry = whole[position]
            whole[position] = tuple([entry[i] for i in range(len(entry))])
        return tuple(whole)

    def completions(self, checks: Iterable[Callable[[], bool]]) -> Iterator[Structure]:
        """All ways to fill it that fulfil the checks, in lexicographic order.

        A check that finds a hole waits for that one, so that a branch ends with the first that fails.
        """
        waiting = _undecided([(check, None) for check in checks], None)
        if waiting is None:
            return
        if not self.holes:
            yield self.complete()
            return
        domains = [self._universe.domain_of(symbol) for symbol, _ in self.holes]
        stack = [(iter(domains[0]), waiting)]
        while stack:
            values, waiting = stack[-1]
            symbol, i = hole = self.holes[len(stack) - 1]
            entry = self.entries[self._positions[symbol]]
            for value in values:
                entry[i] = value
                left = _undecided(waiting, hole)
                if left is None:
                    continue
                if len(stack) < len(self.holes):
                    stack.append((iter(domains[len(stack)]), left))
                    break
                yield self.complete()
            else:
                del entry[i]
                stack.pop()


_Waiting = list[tuple[Callable[[], bool], Hole | None]]
"""Checks, each with the hole that it waits for."""


def _undecided(waiting: _Waiting, filled: Hole | None) -> _Waiting | None:
    """What still waits now that this hole is filled; None if a check fails."""
    left: _Waiting = []
    for check, hole in waiting:
        if hole == filled:
            try:
                if not check():
                    return None
            except _Unfilled as unfilled:
                left.append((check, unfilled.hole))
        else:
            left.append((check, hole))
    return left


@dataclass(frozen=True)
class InvariantBreach:
    """An invariant that does not hold, for these letters, after these steps from an initial state."""

    invariant: str
    letters: Mapping[str, Value]
    initial: Structure
    steps: tuple[tuple[str, Parameters, Structure], ...]


@dataclass(frozen=True, kw_only=True)
class Counts:
    """What a search saw, counted as TLC counts: initial states are generated too, and have depth 1."""

    distinct: int
    generated: int
    depth: int
    actions: Mapping[str, tuple[int, int]]
    """For each action: new states, steps."""
    end: str
    """"complete", "limit", or "breach"."""
    breach: InvariantBreach | None = None


def explore(
    space: StateSpace,
    initial: Iterable[Structure],
    invariants: Mapping[str, Term] | None = None,
    limit: int = 1_000_000,
) -> Counts:
    """Breadth-first search. Ends at the first state that breaks an invariant, and as soon as it has seen
    ``limit`` distinct states and another one would follow."""
    origins: dict[Structure, tuple[Structure, str, Parameters] | None] = {}
    entries: dict[tuple[Value, ...], tuple[Value, ...]] = {}
    new, taken = dict.fromkeys(space.actions, 0), dict.fromkeys(space.actions, 0)
    generated = depth = 0
    letters = space.universe.vocabulary.letters.values()
    checked = {name: (formula, free(formula, letters)) for name, formula in (invariants or {}).items()}

    def counts(end: str, breach: InvariantBreach | None = None) -> Counts:
        actions = {name: (new[name], taken[name]) for name in space.actions}
        return Counts(
            distinct=len(origins), generated=generated, depth=depth, actions=actions, end=end, breach=breach
        )

    def broken(state: Structure) -> InvariantBreach | None:
        for name, (formula, among) in checked.items():
            values = space.breach(formula, among, state)
            if values is not None:
                steps = []
                while (origin := origins[state]) is not None:
                    steps.append((*origin[1:], state))
                    state = origin[0]
                return InvariantBreach(name, values, state, tuple(reversed(steps)))
        return None

    def steps() -> Iterator[tuple[Structure, tuple[Structure, str, Parameters] | None]]:
        """Of the next level, all that is generated."""
        for state in frontier:
            for name, parameters, after in space.successors(state):
                taken[name] += 1
                yield after, (state, name, parameters)

    frontier: list[Structure] = []
    level: Iterable[tuple[Structure, tuple[Structure, str, Parameters] | None]]
    level = ((state, None) for state in initial)
    while True:
        found = []
        for after, origin in level:
            generated += 1
            if after in origins:
                continue
            if len(origins) == limit:
                return counts("limit")
            after = tuple([entries.setdefault(entry, entry) for entry in after])  # states share their entries
            origins[after] = origin
            found.append(after)
            if origin is not None:
                new[origin[1]] += 1
            if (breach := broken(after)) is not None:
                depth += 1
                return counts("breach", breach)
        if not found:
            return counts("complete")
        depth += 1
        frontier = found
        level = steps()
