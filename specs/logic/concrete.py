"""A state machine of ``specs.logic.language`` executed on finite structures, in plain Python.

The ``Stepper`` answers three questions about one step: is it allowed, where does it lead, what else could
happen. It is what holds the logic against runs of the model and against TLC, so it shares nothing with the
solver but the formulas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import z3
from rebalance.specs.logic.compiled import (
    Binding,
    Exists,
    FunctionWriter,
    Node,
    Not,
    conjuncts,
    negation,
    shown,
    translate,
)
from rebalance.specs.logic.language import ANY, NEXT, SpecAction, Term, free, leaves
from rebalance.specs.logic.universe import Sparse, Structure, Universe, Value, call

__all__ = ["Counts", "InvariantBreach", "Sparse", "Stepper", "Structure", "Universe", "Value", "explore"]

Parameters = tuple[Value, ...]


@dataclass(frozen=True)
class _Check:
    """One condition on what is open. ``variables`` may have any values; each makes an instance of its own."""

    holds: Callable[..., bool]
    variables: tuple[Binding, ...]


@dataclass(frozen=True, kw_only=True)
class _CompiledAction:
    """An action, compiled. The functions take the state before, for ``effect`` and ``where`` also the one
    after, and the parameters."""

    action: SpecAction
    names: tuple[str, ...]
    """Of the parameters."""
    enabled: Callable[[Structure], list[Parameters]]
    guard: Callable[..., bool]
    effect: Callable[..., Structure]
    """The state after; what is ``ANY`` is read in the second state, of which it needs nothing else."""
    where: Callable[..., bool]
    checks: tuple[_Check, ...]
    open: tuple[str, ...]
    """Symbols with something that is ``ANY``."""


class Stepper:
    """``actions`` of a vocabulary on a universe. Actions are named by their names.

    Compiles each action when it is first used; ``compile_all`` does it at once. Raises ValueError for a
    formula that cannot be executed: with a capital letter that nothing binds, or a symbol marked ``NEXT``
    outside ``where``.
    """

    def __init__(self, universe: Universe, actions: Iterable[SpecAction]) -> None:
        self.universe = universe
        self.actions = {action.name: action for action in actions}
        self._rules: dict[str, _CompiledAction] = {}
        # Compiled formulas by z3's id, which is theirs as long as they live: so they are kept.
        self._closed: dict[int, tuple[Term, Callable[..., Any]]] = {}
        self._breaches: dict[tuple[int, tuple[str, ...]], tuple[Term, Callable[..., Any]]] = {}
        self._conditions: dict[tuple[str, str], list[tuple[str, Callable[..., bool]]]] = {}

    def compile_all(self) -> None:
        for name in self.actions:
            self._rule(name)

    def allowed(self, before: Structure, name: str, parameters: Parameters, after: Structure) -> str | None:
        """None if the step is one of that action; else why not, as a sentence."""
        rule = self._rules.get(name) or self._rule(name)
        if not rule.guard(before, *parameters):
            return self._failed(rule, before, parameters)
        expected = rule.effect(before, after, *parameters)
        if expected != after:
            symbol, arguments, right, wrong = next(self.universe.differences(expected, after))
            old = self.universe.read(before, symbol, *arguments)
            where = f"{call(name, parameters)}: {call(symbol, arguments)}"
            return f"{where} was {old}, is {wrong}, should be {right}"
        if not rule.where(before, after, *parameters):
            return self._violated(rule, before, after, parameters)
        return None

    def apply(
        self, before: Structure, name: str, parameters: Parameters, opened: Sparse | None = None
    ) -> Structure:
        """The state after the action; ``opened`` says what becomes of all that is ``ANY``.

        Raises ValueError if the action is not possible so, saying why.
        """
        rule = self._rule(name)
        if not rule.guard(before, *parameters):
            raise ValueError(self._failed(rule, before, parameters))
        open_ = self._open(rule, before, parameters)
        given = {
            (symbol, self.universe.offset(symbol, key)): value
            for symbol, values in (opened or {}).items()
            for key, value in values.items()
        }
        for symbol, i in sorted(given.keys() ^ set(open_.holes)):
            arguments = list(self.universe.places[symbol])[i]
            problem = "is not open" if (symbol, i) in given else "is open and not given"
            raise ValueError(f"{call(name, parameters)}: {call(symbol, arguments)} {problem}")
        for (symbol, i), value in given.items():
            open_.fill((symbol, i), self.universe.element(symbol, value))
        after = open_.complete()
        if not rule.where(before, after, *parameters):
            raise ValueError(self._violated(rule, before, after, parameters))
        return after

    def successors(self, state: Structure) -> Iterator[tuple[str, Parameters, Structure]]:
        """Every step from ``state``: action, parameters, state after. In the order of the actions."""
        for name in self.actions:
            rule = self._rules.get(name) or self._rule(name)
            for parameters in rule.enabled(state):
                for after in self._afters(rule, state, parameters):
                    yield name, parameters, after

    def states(self, formula: Term) -> Iterator[Structure]:
        """All states of which ``formula`` holds, in lexicographic order."""
        node = translate(self.universe.vocabulary.close(formula), self.universe, ("",), ())
        state = _Partial(self.universe, self.universe.positions, [_ANYTHING] * len(self.universe.positions))
        checks = [self._check(part, 1, ()) for part in conjuncts(node)]
        return state.completions(_instances(checks, state.entries))

    def holds(self, formula: Term, state: Structure) -> bool:
        """Whether ``formula`` is true, for all of its capital letters."""
        if (known := self._closed.get(formula.get_id())) is None:
            closed = self.universe.vocabulary.close(formula)
            known = self._closed[formula.get_id()] = formula, self._function(closed, ("",), ())
        answer: bool = known[1](state)
        return answer

    def breach(self, formula: Term, letters: Sequence[Term], state: Structure) -> dict[str, Value] | None:
        """Values of ``letters`` that make ``formula`` false, by their names."""
        names = tuple(str(letter) for letter in letters)
        key = (formula.get_id(), names)
        if key not in self._breaches:
            writer, node = FunctionWriter(self.universe), translate(formula, self.universe, ("",), names)
            loops = writer.loops(self._bindings(letters), negation(node))
            found = f"next(({_tuple(names)} {loops}), None)"
            self._breaches[key] = formula, writer.function(1, (), found)
        values = self._breaches[key][1](state)
        return None if values is None else dict(zip(names, values, strict=True))

    # -- compiling ---------------------------------------------------------------------------------------

    def _rule(self, name: str) -> _CompiledAction:
        if name not in self._rules:
            if name not in self.actions:
                raise ValueError(f"no action {name!r}")
            self._rules[name] = self._compile(self.actions[name])
        return self._rules[name]

    def _compile(self, action: SpecAction) -> _CompiledAction:
        variables = self._bindings(action.parameters)
        names = tuple(name for name, _ in variables)
        guard = translate(action.guard, self.universe, ("",), names)
        where = translate(action.where_, self.universe, ("", NEXT), names)
        writer = FunctionWriter(self.universe)
        enabled = writer.function(1, (), f"[{_tuple(names)} {writer.loops(variables, guard)}]")
        return _CompiledAction(
            action=action,
            names=names,
            enabled=enabled,
            guard=self._written(guard, 1, names),
            effect=self._effect(action, names),
            where=self._written(where, 2, names),
            checks=tuple(self._check(part, 2, names) for part in conjuncts(where)),
            open=tuple(
                symbol for symbol, parts in action.assigned.items() if any(value is ANY for _, value in parts)
            ),
        )

    def _check(self, condition: Node, states: int, names: tuple[str, ...]) -> _Check:
        """A condition "for all", one instance at a time: one is decided sooner than all of them."""
        variables: tuple[Binding, ...] = ()
        if isinstance(condition, Not) and isinstance(condition.of, Exists):
            variables, condition = condition.of.variables, negation(condition.of.body)
        return _Check(self._written(condition, states, (*names, *(name for name, _ in variables))), variables)

    def _effect(self, action: SpecAction, names: tuple[str, ...]) -> Callable[..., Structure]:
        writer, lines = FunctionWriter(self.universe), ["after = list(s0)"]
        for symbol, parts in action.assigned.items():
            position = self.universe.positions[symbol]
            lines.append(f"new = list(s0[{position}])")
            for key, value in parts:
                lines += self._assignment(writer, names, symbol, key, value)
            lines.append(f"after[{position}] = tuple(new)")
        return writer.function(2, names, "tuple(after)", lines)

    def _assignment(
        self, writer: FunctionWriter, names: tuple[str, ...], symbol: str, key: tuple[Term, ...], value: Any
    ) -> Iterator[str]:
        """``new[key] = value`` for all of the letters in the key."""
        letters = [term for term in key if any(term is a for a in self.universe.vocabulary.letters.values())]
        variables = self._bindings(letters)
        bound = tuple(name for name, _ in variables)
        if len(set(bound)) < len(bound):
            raise ValueError(f"{symbol}: a letter occurs twice in the key {key}")
        for term in key:  # SpecAction.updates would not bind the letter there
            if str(term) not in bound and set(bound) & {str(leaf) for leaf in leaves(term)}:
                raise ValueError(f"{symbol}: {shown(term)} in the key depends on a letter of the key")
        margin = ""
        for name, domain in variables:
            yield f"{margin}for {writer.variable(name)} in {domain!r}:"
            margin += "    "
        places = [translate(term, self.universe, ("",), (*names, *bound)) for term in key]
        offset = writer.offset(symbol, places)
        if value is ANY:
            source = f"s1[{self.universe.positions[symbol]}][{offset}]"
        else:
            term = value if z3.is_expr(value) else z3.BoolVal(value)
            source = writer.expression(translate(term, self.universe, ("",), (*names, *bound)))
        yield f"{margin}new[{offset}] = {source}"

    def _written(self, node: Node, states: int, names: Sequence[str]) -> Callable[..., Any]:
        writer = FunctionWriter(self.universe)
        return writer.function(states, names, writer.expression(node))

    def _function(self, formula: Term, marks: Sequence[str], names: Sequence[str]) -> Callable[..., Any]:
        return self._written(translate(formula, self.universe, marks, names), len(marks), names)

    def _bindings(self, constants: Iterable[Term]) -> tuple[Binding, ...]:
        return tuple((str(constant), self.universe.domain(constant.sort())) for constant in constants)

    # -- what is open ------------------------------------------------------------------------------------

    def _afters(
        self, rule: _CompiledAction, before: Structure, parameters: Parameters
    ) -> Iterator[Structure]:
        if not rule.open:
            whole = rule.effect(before, None, *parameters)
            if rule.where(before, whole, *parameters):
                yield whole
            return
        after = self._open(rule, before, parameters)
        yield from after.completions(_instances(rule.checks, before, after.entries, *parameters))

    def _open(self, rule: _CompiledAction, before: Structure, parameters: Parameters) -> _Partial:
        return _Partial(self.universe, rule.open, rule.effect(before, _ANYTHING, *parameters))

    # -- why not -----------------------------------------------------------------------------------------

    def _failed(self, rule: _CompiledAction, before: Structure, parameters: Parameters) -> str:
        return self._reason(rule, rule.action.guards, "needs", parameters, before)

    def _violated(
        self, rule: _CompiledAction, before: Structure, after: Structure, parameters: Parameters
    ) -> str:
        conditions = rule.action.where_.children() or [rule.action.where_]
        return self._reason(rule, conditions, "has to lead to", parameters, before, after)

    def _reason(
        self,
        rule: _CompiledAction,
        conditions: Iterable[Term],
        verb: str,
        parameters: Parameters,
        *states: Structure,
    ) -> str:
        """The first of the conditions that does not hold. Searches ask this as often as they ask for steps,
        and z3 is slow in printing: the texts are kept."""
        key = (rule.action.name, verb)
        if key not in self._conditions:
            marks = ("", NEXT)[: len(states)]
            self._conditions[key] = [
                (f"{verb} {shown(condition)}", self._function(condition, marks, rule.names))
                for condition in conditions
            ]
        for text, holds in self._conditions[key]:
            if not holds(*states, *parameters):
                values = ", ".join(f"{n}={v}" for n, v in zip(rule.names, parameters, strict=True))
                return f"{rule.action.name}({values}) {text}"
        raise AssertionError(f"{rule.action.name}: all conditions hold, but not together")


def _tuple(names: Sequence[str]) -> str:
    """Python source of the tuple of these variables."""
    return f"({''.join(f'{FunctionWriter.variable(name)}, ' for name in names)})"


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

    def fill(self, hole: Hole, value: Value) -> None:
        symbol, i = hole
        self.entries[self._positions[symbol]][i] = value

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
    stepper: Stepper,
    initial: Iterable[Structure],
    invariants: Mapping[str, Term] | None = None,
    limit: int = 1_000_000,
) -> Counts:
    """Breadth-first search. Ends at the first state that breaks an invariant, and as soon as it has seen
    ``limit`` distinct states and another one would follow."""
    origins: dict[Structure, tuple[Structure, str, Parameters] | None] = {}
    entries: dict[tuple[Value, ...], tuple[Value, ...]] = {}
    new, taken = dict.fromkeys(stepper.actions, 0), dict.fromkeys(stepper.actions, 0)
    generated = depth = 0
    letters = stepper.universe.vocabulary.letters.values()
    checked = {name: (formula, free(formula, letters)) for name, formula in (invariants or {}).items()}

    def counts(end: str, breach: InvariantBreach | None = None) -> Counts:
        actions = {name: (new[name], taken[name]) for name in stepper.actions}
        return Counts(
            distinct=len(origins), generated=generated, depth=depth, actions=actions, end=end, breach=breach
        )

    def broken(state: Structure) -> InvariantBreach | None:
        for name, (formula, among) in checked.items():
            values = stepper.breach(formula, among, state)
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
            for name, parameters, after in stepper.successors(state):
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
