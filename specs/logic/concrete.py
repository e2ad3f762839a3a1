"""A state machine of ``specs.logic.language`` executed on finite structures, in plain Python.

The ``Stepper`` says of one step whether it is allowed and where it leads, and of one state what holds. It is
what holds the logic against runs of the model and against the solver's, so it shares nothing with the solver
but the formulas. ``tools.state_space`` searches with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import z3
from rebalance_verifier.specs.logic.compiled import Binding, FunctionWriter, negation, shown, translate
from rebalance_verifier.specs.logic.language import ANY, NEXT, SpecAction, Term, leaves
from rebalance_verifier.specs.logic.universe import Structure, Universe, Value, call

Parameters = tuple[Value, ...]


@dataclass(frozen=True, kw_only=True)
class _CompiledAction:
    """An action, compiled. The functions take the state before, for ``effect`` and ``where`` also the one
    after, and the parameters."""

    action: SpecAction
    names: tuple[str, ...]
    """Of the parameters."""
    guard: Callable[..., bool]
    effect: Callable[..., Structure]
    """The state after; what is ``ANY`` is read in the second state, of which it needs nothing else."""
    where: Callable[..., bool]


class Stepper:
    """``actions`` of a vocabulary on a universe. Actions are named by their names.

    Compiles each action when it is first used. Raises ValueError for a
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

    def allowed(self, before: Structure, name: str, parameters: Parameters, after: Structure) -> str | None:
        """Return None if the step is one of that action; else why not, as a sentence."""
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
        self, before: Structure, name: str, parameters: Parameters, towards: Structure | None = None
    ) -> Structure:
        """Return the state after the action. What it leaves open is as in ``towards``, if that is given.

        Raises ValueError if the action is not possible so, saying why.
        """
        rule = self._rule(name)
        if not rule.guard(before, *parameters):
            raise ValueError(self._failed(rule, before, parameters))
        for symbol, update in rule.action.updates.items():
            if update.open and towards is None:
                raise ValueError(f"{call(name, parameters)}: {symbol} is open")
        after = rule.effect(before, before if towards is None else towards, *parameters)
        if not rule.where(before, after, *parameters):
            raise ValueError(self._violated(rule, before, after, parameters))
        return after

    def holds(self, formula: Term, state: Structure) -> bool:
        """Check whether ``formula`` is true, for all of its capital letters."""
        if (known := self._closed.get(formula.get_id())) is None:
            closed = self.universe.vocabulary.close(formula)
            known = self._closed[formula.get_id()] = formula, self.compiled(closed, ("",), ())
        answer: bool = known[1](state)
        return answer

    def breach(self, formula: Term, letters: Sequence[Term], state: Structure) -> dict[str, Value] | None:
        """Return values of ``letters`` that make ``formula`` false, by their names."""
        names = tuple(str(letter) for letter in letters)
        key = (formula.get_id(), names)
        if key not in self._breaches:
            writer, node = FunctionWriter(self.universe), translate(formula, self.universe, ("",), names)
            loops = writer.loops(self._bindings(letters), negation(node))
            found = f"next(({tuple_of(names)} {loops}), None)"
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
        names = tuple(map(str, action.parameters))
        return _CompiledAction(
            action=action,
            names=names,
            guard=self.compiled(action.guard, ("",), names),
            effect=self._effect(action, names),
            where=self.compiled(action.where_, ("", NEXT), names),
        )

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

    def compiled(self, formula: Term, marks: Sequence[str], names: Sequence[str]) -> Callable[..., Any]:
        """Return the formula as a function of states, one for each mark, and of constants of these names."""
        writer = FunctionWriter(self.universe)
        node = translate(formula, self.universe, marks, names)
        return writer.function(len(marks), names, writer.expression(node))

    def _bindings(self, constants: Iterable[Term]) -> tuple[Binding, ...]:
        return tuple((str(constant), self.universe.domain(constant.sort())) for constant in constants)

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
        """Return the first of the conditions that does not hold. Searches ask this as often as they ask for
        steps, and z3 is slow in printing: the texts are kept."""
        key = (rule.action.name, verb)
        if key not in self._conditions:
            marks = ("", NEXT)[: len(states)]
            self._conditions[key] = [
                (f"{verb} {shown(condition)}", self.compiled(condition, marks, rule.names))
                for condition in conditions
            ]
        for text, holds in self._conditions[key]:
            if not holds(*states, *parameters):
                values = ", ".join(f"{n}={v}" for n, v in zip(rule.names, parameters, strict=True))
                return f"{rule.action.name}({values}) {text}"
        raise AssertionError(f"{rule.action.name}: all conditions hold, but not together")


def tuple_of(names: Sequence[str]) -> str:
    """Python source of the tuple of these variables."""
    return f"({''.join(f'{FunctionWriter.variable(name)}, ' for name in names)})"
