"""Runs of a state machine, found by the solver: along a given path, by any path up to a depth, or from any
state at all.

Every step has its own copies of the symbols that it assigns; what it leaves alone keeps its name, so a path
needs no frame axioms. On finitely many elements every quantifier is written out, which leaves the solver
nothing to guess: a path of twenty actions takes it a few hundredths of a second.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import z3
from rebalance.specs.logic.language import NEXT, OPEN, SpecAction, Symbol, Term, symbols_of
from rebalance.specs.logic.limit import check
from rebalance.specs.logic.specification import Specification
from rebalance.specs.logic.universe import Structure, Universe, Value

SortSizes = Universe | Mapping[str, int] | None
"""How many elements each unbounded sort has: a universe, which also fixes the fixed symbols; sizes only, the
fixed symbols being anything that the axioms allow; or None, any number."""

LIMIT = 60.0
"""Seconds that one question to the solver may take."""


@dataclass(frozen=True)
class SpecRun:
    """States, and the steps between them: action, parameters, state after."""

    universe: Universe
    initial: Structure
    steps: tuple[tuple[str, tuple[Value, ...], Structure], ...]


@dataclass(frozen=True)
class SearchAnswer:
    """``verdict`` is "run", "none" or, when the time was up, "unknown"."""

    verdict: str
    run: SpecRun | None = None


def follow(
    spec: Specification,
    path: Iterable[str],
    finite: SortSizes = None,
    goal: Term | None = None,
    limit: float = LIMIT,
) -> SearchAnswer:
    """Is there a run by exactly these actions, that ends in a state with ``goal``?

    A step is an action with names for its parameters, ``"join_with_given_id(c, m)"``, or without them. The
    same name is the same element, two names may be the same or not; ``goal`` may use them as constants. It
    holds for all of its capital letters. Raises KeyError for an action that is not there, ValueError for too
    many or too few names.
    """
    unrolling = Unrolling(spec, finite)
    unrolling.require(spec.initial)
    for step in path:
        unrolling.step(*_parsed(spec, step))
    if goal is not None:
        unrolling.require(goal)
    return unrolling.answer(limit)


def reach(
    spec: Specification, goal: Term, depth: int, finite: SortSizes, limit: float = LIMIT
) -> tuple[SearchAnswer, int]:
    """A shortest run to a state with ``goal`` of up to ``depth`` steps, by any actions; and its length.

    "none" says that there is none of up to ``depth`` steps. "unknown" says that there is none shorter than
    the length that comes with it.
    """
    unrolling = Unrolling(spec, finite)
    unrolling.require(spec.initial)
    for length in range(depth + 1):
        answer = unrolling.answer(limit, goal)
        if answer.verdict != "none" or length == depth:
            return answer, length
        unrolling.any_step()
    raise ValueError(f"depth is {depth}")


@dataclass(frozen=True)
class Induction:
    """Whether a formula follows by k-induction. ``verdict`` is "proved", "refuted" with the path of a run,
    or "open" with the paths of k steps that break it from a state that may be out of reach."""

    verdict: str
    k: int
    paths: tuple[tuple[str, ...], ...] = ()


def k_induction(
    spec: Specification, formula: Term, k: int, given: Sequence[Term] = (), limit: float = LIMIT
) -> Induction:
    """Is ``formula`` true in every reachable state, of any size, because no run breaks it that was clean for
    ``k`` states before?

    ``given`` is known to be true of every reachable state. Paths are searched backwards from the action
    that breaks the formula; most actions break nothing, so few paths are ever made.
    """
    steps = StepRelations(spec, None)
    broken = z3.Not(spec.vocabulary.close(formula))

    def possible(
        path: Sequence[str], *, start: Sequence[Term] = (), clean: bool = True, end: Term = broken
    ) -> bool:
        unrolling = Unrolling(spec, None, steps)
        unrolling.require(*start)
        for name in path:
            if clean:
                unrolling.require(*given, formula)
            unrolling.step(spec.action(name))
        unrolling.require(end)
        return bool(unrolling.check(limit) != z3.unsat)

    names = [action.name for action in spec.actions]
    runs: list[tuple[str, ...]] = [()]
    for length in range(k):
        if length:
            longer = ((*run, name) for run in runs for name in names)
            runs = [run for run in longer if possible(run, start=[spec.initial], end=z3.BoolVal(True))]
        refuted = tuple(run for run in runs if possible(run, start=[spec.initial], clean=False))
        if refuted:
            return Induction("refuted", k, refuted)
    symbols = symbols_of(formula)
    paths: list[tuple[str, ...]] = [
        (action.name,) for action in spec.actions if symbols & set(action.updates)
    ]
    paths = [path for path in paths if possible(path)]
    for _ in range(1, k):
        longer = ((name, *path) for path in paths for name in names)
        paths = [path for path in longer if possible(path)]
    return Induction("open" if paths else "proved", k, tuple(paths))


class StepRelations:
    """The steps of a specification, each as a relation between a state and the next, marked ``NEXT``."""

    def __init__(self, spec: Specification, finite: SortSizes) -> None:
        self.spec = spec
        self.vocabulary = spec.vocabulary
        self.universe = finite if isinstance(finite, Universe) else None
        self.elements: dict[str, tuple[Term, ...]] = {}
        """Of each sort, if there are finitely many."""
        if finite is not None:
            sizes = (
                {name: len(finite.domains[name]) for name in self.vocabulary.sorts}
                if isinstance(finite, Universe)
                else finite
            )
            for name, sort in self.vocabulary.sorts.items():
                values = self.vocabulary.values.get(name)
                self.elements[name] = (
                    tuple(sort.constructor(i)() for i in range(len(values)))
                    if values
                    else tuple(z3.Const(f"{name}!{i}", sort) for i in range(sizes[name]))
                )
        self._grounded: dict[int, tuple[Term, Term]] = {}
        self._relations: dict[str, Term] = {}
        self.chosen = {action.name: z3.Bool(f"{action.name}{OPEN}") for action in spec.actions}
        """Which action a step is, in ``any_relation``."""

    def facts(self) -> Iterator[Term]:
        """What is known of every run: the axioms, and which elements there are."""
        for name, elements in self.elements.items():
            if name not in self.vocabulary.values and len(elements) > 1:
                yield z3.Distinct(*elements)
        for symbol in self.vocabulary.symbols.values():
            yield from self.closed(symbol)
            if self.universe and symbol.fixed:
                for arguments, i in self.universe.places[symbol.name].items():
                    here = symbol.of()(
                        *(self._element(*pair) for pair in zip(symbol.arguments, arguments, strict=True))
                    )
                    yield here == self._element(symbol.value, self.universe.tables[symbol.name][i])
        for axiom in self.spec.axioms.values():
            yield self.stated(axiom)

    def closed(self, symbol: Symbol, mark: str = "") -> Iterator[Term]:
        """The values of a symbol are elements."""
        if self._listed(symbol.value):
            for arguments in product(*(self.elements[sort.name()] for sort in symbol.arguments)):
                yield self.an_element(symbol.of(mark)(*arguments))

    def an_element(self, term: Term) -> Term:
        """``term`` is one of the elements, if they are finitely many."""
        if not self._listed(term.sort()):
            return z3.BoolVal(True)
        return z3.Or([term == element for element in self.elements[term.sort().name()]])

    def stated(self, formula: Term) -> Term:
        """The closed formula as the solver gets it: without quantifiers where elements are finitely many."""
        formula = self.vocabulary.close(formula)
        return self._ground(formula) if self.elements else formula

    def relation(self, action: SpecAction) -> Term:
        """The step between two states, but for what it leaves alone."""
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

    def any_relation(self) -> Term:
        """The step by any action, with all that it leaves alone; ``chosen`` says by which."""
        if "" not in self._relations:
            kept = {symbol.name: self._kept(symbol) for symbol in self.vocabulary.mutable}
            cases = [
                z3.Implies(
                    self.chosen[action.name],
                    z3.And(
                        self.relation(action), *(kept[name] for name in kept if name not in action.updates)
                    ),
                )
                for action in self.spec.actions
            ]
            self._relations[""] = z3.And(z3.Or(*self.chosen.values()), *cases)
        return self._relations[""]

    def _kept(self, symbol: Symbol) -> Term:
        places = [z3.Const(f"x{i}", sort) for i, sort in enumerate(symbol.arguments)]
        equal = symbol.of(NEXT)(*places) == symbol.of()(*places)
        return self.stated(z3.ForAll(places, equal) if places else equal)

    def _listed(self, sort: Any) -> bool:
        """It is an unbounded sort, and its elements are listed here."""
        return sort.name() in self.elements and sort.name() not in self.vocabulary.values

    def _element(self, sort: Any, value: Value) -> Term:
        if isinstance(value, bool):
            return z3.BoolVal(value)
        assert self.universe
        return self.elements[sort.name()][self.universe.domain(sort).index(value)]

    def _ground(self, term: Term) -> Term:
        known = self._grounded.get(term.get_id())
        if known is None:
            known = self._grounded[term.get_id()] = term, self._written_out(term)
        return known[1]

    def _written_out(self, term: Term) -> Term:
        if z3.is_quantifier(term):
            domains = (self.elements[term.var_sort(i).name()] for i in range(term.num_vars()))
            cases = [
                self._ground(z3.substitute_vars(term.body(), *reversed(values)))
                for values in product(*domains)
            ]
            return z3.And(cases) if term.is_forall() else z3.Or(cases)
        if not z3.is_app(term) or not term.num_args():
            return term
        return term.decl()(*map(self._ground, term.children()))


class Unrolling:
    """A run of unknown states, one step after the other."""

    def __init__(self, spec: Specification, finite: SortSizes, steps: StepRelations | None = None) -> None:
        self.spec = spec
        self.steps = steps or StepRelations(spec, finite)
        self.solver = z3.Solver()
        self.solver.set("random_seed", 0)
        self.solver.add(*self.steps.facts())
        self.marks: list[dict[str, str]] = [{symbol.name: "" for symbol in spec.vocabulary.mutable}]
        """For each state, the marks of its symbols."""
        self.taken: list[dict[str, tuple[Term, tuple[Term, ...]]]] = []
        """For each step, the actions that it may be: whether it is, and the parameters."""

    def require(self, *formulas: Term) -> None:
        """All of these hold of the last state, for all of their capital letters."""
        self.solver.add(*(self._now(self.steps.stated(formula)) for formula in formulas))

    def step(self, action: SpecAction, names: Sequence[str] = ()) -> None:
        """That action follows; ``names`` of its parameters, new ones if there are none."""
        step = len(self.taken)
        names = names or [f"{parameter}@{step}" for parameter in action.parameters]
        constants = tuple(
            z3.Const(name, parameter.sort()) for name, parameter in zip(names, action.parameters, strict=True)
        )
        self.solver.add(*map(self.steps.an_element, constants))
        relation = z3.substitute(self.steps.relation(action), *zip(action.parameters, constants, strict=True))
        self._advance(relation, action.updates)
        self.taken.append({action.name: (z3.BoolVal(True), constants)})

    def any_step(self) -> None:
        """One of the actions follows."""
        step = len(self.taken)

        def here(constant: Term) -> Term:
            return z3.Const(f"{constant}@{step}", constant.sort())

        actions = self.spec.actions
        parameters = {str(constant): constant for action in actions for constant in action.parameters}
        self.solver.add(*(self.steps.an_element(here(constant)) for constant in parameters.values()))
        constants = (*self.steps.chosen.values(), *parameters.values())
        pairs = [(constant, here(constant)) for constant in constants]
        self._advance(z3.substitute(self.steps.any_relation(), *pairs), self.marks[0])
        self.taken.append(
            {
                action.name: (here(self.steps.chosen[action.name]), tuple(map(here, action.parameters)))
                for action in actions
            }
        )

    def check(self, limit: float) -> Any:
        """What the solver says: ``z3.sat``, ``z3.unsat`` or ``z3.unknown``."""
        return check(self.solver, limit)

    def answer(self, limit: float, goal: Term | None = None) -> SearchAnswer:
        """Whether there is such a run, whose last state has ``goal``."""
        self.solver.push()
        if goal is not None:
            self.require(goal)
        verdict = self.check(limit)
        run = self._run(self.solver.model()) if verdict == z3.sat else None
        self.solver.pop()
        return SearchAnswer("run" if run else "none" if verdict == z3.unsat else "unknown", run)

    def _advance(self, relation: Term, assigned: Iterable[str]) -> None:
        step = len(self.taken)
        after = {**self.marks[-1], **dict.fromkeys(assigned, f"@{step + 1}")}
        pairs = []
        for symbol in self.spec.vocabulary.mutable:
            pairs += [_renamed(symbol, NEXT, after[symbol.name]), _renamed(symbol, OPEN, f"{OPEN}@{step}")]
        self.solver.add(self._now(z3.substitute_funs(relation, *pairs)))
        self.marks.append(after)

    def _now(self, formula: Term) -> Term:
        """A formula of the unmarked state as one of the last state."""
        marks = self.marks[-1]
        marked = [symbol for symbol in self.spec.vocabulary.mutable if marks[symbol.name]]
        pairs = [_renamed(symbol, "", marks[symbol.name]) for symbol in marked]
        return z3.substitute_funs(formula, *pairs) if pairs else formula

    # -- what the solver found ---------------------------------------------------------------------------

    def _run(self, model: Any) -> SpecRun:
        found = _Found(self.steps, model)
        states = [
            tuple(found.entry(symbol, marks[symbol.name]) for symbol in self.spec.vocabulary.mutable)
            for marks in self.marks
        ]
        steps = []
        for taken, state in zip(self.taken, states[1:], strict=True):
            name, (_, parameters) = next(
                item for item in taken.items() if z3.is_true(model.eval(item[1][0], model_completion=True))
            )
            steps.append((name, tuple(map(found.value, parameters)), state))
        return SpecRun(found.universe, states[0], tuple(steps))


class _Found:
    """The elements of a solver's model, numbered."""

    def __init__(self, steps: StepRelations, model: Any) -> None:
        self._model = model
        self._entries: dict[tuple[str, str], tuple[Value, ...]] = {}
        self._numbers: dict[str, dict[int, int]] = {}
        self._elements: dict[str, list[Term]] = {}
        vocabulary = steps.vocabulary
        for name, sort in vocabulary.sorts.items():
            if name in vocabulary.values:
                self._elements[name] = [sort.constructor(i)() for i in range(sort.num_constructors())]
                continue
            elements = steps.elements.get(name) or model.get_universe(sort) or [z3.Const("any", sort)]
            self._elements[name] = [self._evaluated(element) for element in elements]
            self._numbers[name] = {element.get_id(): i for i, element in enumerate(self._elements[name])}
        self.universe = steps.universe or Universe(
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
        return self._model.eval(term, model_completion=True)


def _renamed(symbol: Symbol, old: str, new: str) -> tuple[Any, Term]:
    """For ``substitute_funs``."""
    return symbol.of(old), symbol.anywhere(new)


def _parsed(spec: Specification, step: str) -> tuple[SpecAction, list[str]]:
    name, _, rest = step.partition("(")
    action = {action.name: action for action in spec.actions}[name.strip()]
    names = [part.strip() for part in rest.rstrip(") ").split(",") if part.strip()]
    if names and len(names) != len(action.parameters):
        raise ValueError(f"{step}: {action.name} has {len(action.parameters)} parameters")
    return action, names
