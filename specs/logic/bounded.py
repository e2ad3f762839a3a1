"""Runs of a state machine along a given path of actions, found by the solver.

Every step has its own copies of the symbols that it assigns; what it leaves alone keeps its name, so a path
needs no frame axioms. On finitely many elements every quantifier is written out, which leaves the solver
nothing to guess: a path of twenty actions takes it a few hundredths of a second.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import z3
from rebalance_verifier.specs.logic.concrete import Stepper
from rebalance_verifier.specs.logic.grounding import Grounding
from rebalance_verifier.specs.logic.language import NEXT, OPEN, SpecAction, Symbol, Term
from rebalance_verifier.specs.logic.limit import LIMIT, Budget
from rebalance_verifier.specs.logic.specification import Specification
from rebalance_verifier.specs.logic.universe import Structure, Universe, Value


@dataclass(frozen=True)
class SpecRun:
    """States, and the steps between them: action, parameters, state after."""

    universe: Universe
    initial: Structure
    steps: tuple[tuple[str, tuple[Value, ...], Structure], ...]


@dataclass(frozen=True)
class SearchAnswer:
    """``verdict`` is "run", "none" or, when the units were used up, "unknown"."""

    verdict: str
    run: SpecRun | None = None


class StepRelations:
    """The steps of a specification, each as a relation between a state and the next, marked ``NEXT``.

    ``sizes``: how many elements each unbounded sort has.
    """

    def __init__(self, spec: Specification, sizes: Mapping[str, int]) -> None:
        self.spec = spec
        self.vocabulary = spec.vocabulary
        self.grounding = Grounding(spec.vocabulary, sizes)
        self._relations: dict[str, Term] = {}

    def facts(self) -> Iterator[Term]:
        """Yield what is known of every run: the axioms, and which elements there are."""
        for elements in self.grounding.unbounded.values():
            if len(elements) > 1:
                yield z3.Distinct(*elements)
        for symbol in self.vocabulary.symbols.values():
            yield from self.closed(symbol)
        for axiom in self.spec.axioms.values():
            yield self.stated(axiom)

    def closed(self, symbol: Symbol, mark: str = "") -> Iterator[Term]:
        """Return that the values of a symbol are elements."""
        if symbol.value.name() in self.grounding.unbounded:
            for arguments in self.grounding.tuples(symbol.arguments):
                yield self.an_element(symbol.of(mark)(*arguments))

    def an_element(self, term: Term) -> Term:
        """``term`` is one of the elements."""
        return z3.Or([term == element for element in self.grounding.unbounded[term.sort().name()]])

    def stated(self, formula: Term) -> Term:
        """Return the formula, for all of its capital letters, as the solver gets it."""
        return self.grounding.grounded(self.vocabulary.close(formula))

    def relation(self, action: SpecAction) -> Term:
        """Return the step between two states, but for what it leaves alone."""
        if action.name not in self._relations:
            parts = [action.guard, action.where_]
            for name, update in action.updates.items():
                symbol = self.vocabulary.symbols[name]
                equal = symbol.of(NEXT)(*update.places) == update.body
                parts.append(z3.ForAll(update.places, equal) if update.places else equal)
            closed = (
                fact
                for name, update in action.updates.items()
                if update.open
                for fact in self.closed(self.vocabulary.symbols[name], OPEN)
            )
            self._relations[action.name] = z3.And(*map(self.stated, parts), *closed)
        return self._relations[action.name]


class Unrolling:
    """A run of unknown states, one step after the other.

    The solver has a context of its own, so that what it costs depends on this run alone.
    """

    def __init__(self, steps: StepRelations) -> None:
        self.steps = steps
        self.context = z3.Context()
        self.solver = z3.Solver(ctx=self.context)
        self.solver.set("random_seed", 0)
        self.add(*self.steps.facts())
        self.marks: list[dict[str, str]] = [{symbol.name: "" for symbol in steps.vocabulary.mutable}]
        """For each state, the marks of its symbols."""
        self.taken: list[tuple[str, tuple[Term, ...]]] = []
        """For each step, the action and its parameters."""

    def add(self, *formulas: Term) -> None:
        """All of these hold, of the parameters of the steps and of what never changes."""
        self.solver.add(*(formula.translate(self.context) for formula in formulas))

    def require(self, *formulas: Term) -> None:
        """All of these hold of the last state, for all of their capital letters."""
        self.add(*(self._now(self.steps.stated(formula)) for formula in formulas))

    def step(self, action: SpecAction) -> tuple[Term, ...]:
        """That action follows; the constants for its parameters."""
        step = len(self.taken)
        constants = tuple(
            z3.Const(f"{parameter}@{step}", parameter.sort()) for parameter in action.parameters
        )
        self.add(*map(self.steps.an_element, constants))
        relation = z3.substitute(self.steps.relation(action), *zip(action.parameters, constants, strict=True))
        after = {**self.marks[-1], **dict.fromkeys(action.updates, f"@{step + 1}")}
        pairs = []
        for symbol in self.steps.vocabulary.mutable:
            pairs += [_renamed(symbol, NEXT, after[symbol.name]), _renamed(symbol, OPEN, f"{OPEN}@{step}")]
        self.add(self._now(z3.substitute_funs(relation, *pairs)))
        self.marks.append(after)
        self.taken.append((action.name, constants))
        return constants

    def answer(self, goal: Term | None = None, limit: int = LIMIT) -> SearchAnswer:
        """Check whether there is such a run, whose last state has ``goal``; ``limit`` is in units."""
        self.solver.push()
        if goal is not None:
            self.require(goal)
        verdict = Budget(limit).check(self.solver)
        run = self._run(self.solver.model()) if verdict == z3.sat else None
        self.solver.pop()
        return SearchAnswer("run" if run else "none" if verdict == z3.unsat else "unknown", run)

    def _now(self, formula: Term) -> Term:
        """Return a formula of the unmarked state as one of the last state."""
        marks = self.marks[-1]
        marked = [symbol for symbol in self.steps.vocabulary.mutable if marks[symbol.name]]
        pairs = [_renamed(symbol, "", marks[symbol.name]) for symbol in marked]
        return z3.substitute_funs(formula, *pairs) if pairs else formula

    # -- what the solver found ---------------------------------------------------------------------------

    def _run(self, model: Any) -> SpecRun:
        found = _Found(self.steps, model, self.context)
        states = [
            tuple(found.entry(symbol, marks[symbol.name]) for symbol in self.steps.vocabulary.mutable)
            for marks in self.marks
        ]
        steps = [
            (name, tuple(map(found.value, parameters)), state)
            for (name, parameters), state in zip(self.taken, states[1:], strict=True)
        ]
        return SpecRun(found.universe, states[0], tuple(steps))


def run_by(steps: StepRelations, path: Iterable[str], *last: Term) -> SpecRun | None:
    """Return a run from the beginning by these actions, of whose last state these formulas hold; None if
    there is none.

    The solver finds it, the explicit evaluator checks it: raises ValueError where they disagree.
    """
    spec, names = steps.spec, tuple(path)
    unrolling = Unrolling(steps)
    unrolling.require(spec.initial)
    for name in names:
        unrolling.step(spec.action(name))
    unrolling.require(*last)
    run = unrolling.answer().run
    if run is not None and (wrong := _disagrees(run, spec, last)):
        raise ValueError(f"{' '.join(names)}: {wrong}")
    return run


def _disagrees(run: SpecRun, spec: Specification, last: Iterable[Term]) -> str | None:
    stepper = Stepper(run.universe, spec.actions)
    if not stepper.holds(spec.initial, run.initial):
        return "it does not begin as specified"
    if found := first_deviation(run, spec.actions):
        return found[1]
    end = run.steps[-1][2] if run.steps else run.initial
    return None if all(stepper.holds(formula, end) for formula in last) else "it does not end as wanted"


def first_deviation(run: SpecRun, actions: Iterable[SpecAction]) -> tuple[int, str] | None:
    """Return the number of the first step that is none of these actions, and why."""
    stepper, before = Stepper(run.universe, actions), run.initial
    for number, (name, parameters, after) in enumerate(run.steps, 1):
        if wrong := stepper.allowed(before, name, parameters, after):
            return number, wrong
        before = after
    return None


class _Found:
    """The elements of a solver's model, numbered."""

    def __init__(self, steps: StepRelations, model: Any, context: z3.Context) -> None:
        self._model = model
        self._context = context
        self._entries: dict[tuple[str, str], tuple[Value, ...]] = {}
        self._values: dict[str, list[Term]] = {}  # kept, or their ids would be those of others
        self._numbers: dict[str, dict[int, int]] = {}
        self._elements = steps.grounding.elements
        vocabulary = steps.vocabulary
        for name, elements in steps.grounding.unbounded.items():
            self._values[name] = [self._evaluated(element) for element in elements]
            self._numbers[name] = {value.get_id(): i for i, value in enumerate(self._values[name])}
        self.universe = Universe(
            vocabulary,
            {name: len(numbers) for name, numbers in self._numbers.items()},
            {symbol.name: self._table(symbol) for symbol in vocabulary.symbols.values() if symbol.fixed},
        )

    def entry(self, symbol: Symbol, mark: str = "") -> tuple[Value, ...]:
        known = self._entries.get((symbol.name, mark))
        if known is not None:  # most states share most of their entries
            return known
        declared = symbol.of(mark)
        places = product(*(self._elements[sort.name()] for sort in symbol.arguments))
        found = tuple(self.value(declared(*arguments)) for arguments in places)
        self._entries[symbol.name, mark] = found
        return found

    def value(self, term: Term) -> Value:
        value = self._evaluated(term)
        sort = term.sort().name()
        if sort in self._numbers:
            return self._numbers[sort][value.get_id()]
        return z3.is_true(value) if z3.is_bool(value) else str(value.decl().name())

    def _table(self, symbol: Symbol) -> Any:
        entries = iter(self.entry(symbol))
        return lambda *_: next(entries)  # asked in the order of the places

    def _evaluated(self, term: Term) -> Term:
        return self._model.eval(term.translate(self._context), model_completion=True)


def _renamed(symbol: Symbol, old: str, new: str) -> tuple[Any, Term]:
    """For ``substitute_funs``."""
    return symbol.of(old), symbol.anywhere(new)
