"""Invariants that the machine proposes: templates, less what some run refutes, less what is not inductive.

The templates are sentences of two literals about one element and what belongs to it ("never both"), and of
uniqueness ("one at most"). What survives all states of some random runs goes to Houdini (Flanagan and Leino,
2001): assume all candidates, drop those that a step breaks, until no step breaks any. That is done on small
groups, where the solver is quick; what remains is proved for groups of any size.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product

import z3
from rebalance.specs.bounded import Steps
from rebalance.specs.concrete import Stepper
from rebalance.specs.logic import NEXT, Symbol, Term, Vocabulary
from rebalance.specs.protocol import Specification
from rebalance.specs.theorems import INVARIANTS, theorems
from rebalance.specs.universe import Structure, Universe, Value

LIMIT = 2.0
"""Seconds for one question about groups of any size; what takes longer counts as not proved."""

Frame = Mapping[str, tuple[str, str]]
"""For each sort the one term that literals may use: a fixed function or "", and a letter."""


@dataclass(frozen=True)
class Literal:
    """A symbol of ``terms`` has ``value``, the name of one or "" for true; or it has not."""

    symbol: str
    terms: tuple[tuple[str, str], ...]
    value: str
    positive: bool

    @property
    def terms_of(self) -> tuple[str, tuple[tuple[str, str], ...]]:
        """Of what it states the value."""
        return self.symbol, self.terms

    def formula(self, vocabulary: Vocabulary) -> Term:
        symbol = vocabulary.symbols[self.symbol]
        arguments = []
        for function, letter in self.terms:
            term = vocabulary.letters[letter]
            arguments.append(vocabulary.symbols[function].of()(term) if function else term)
        formula = symbol.of()(*arguments)
        if self.value:
            formula = formula == _value(vocabulary, symbol, self.value)
        return formula if self.positive else z3.Not(formula)

    def among(self, universe: Universe, states: Sequence[Structure], letters: Mapping[str, Value]) -> str:
        """For each of the states "1" if the literal holds for these values of the letters, else "0"."""
        place = tuple(_fixed(universe, f, letters[x]) if f else letters[x] for f, x in self.terms)
        expected = _fixed(universe, self.value) if self.value in universe.tables else self.value or True
        yes, no = "10" if self.positive else "01"
        if self.symbol in universe.tables:
            return (yes if _fixed(universe, self.symbol, *place) == expected else no) * len(states)
        position, offset = universe.positions[self.symbol], universe.places[self.symbol][place]
        return "".join([yes if state[position][offset] == expected else no for state in states])


def frames(vocabulary: Vocabulary) -> list[Frame]:
    """One for each sort: its elements, what a fixed function makes of them, and all other sorts that no
    fixed function maps to these."""
    unbounded = [name for name in vocabulary.sorts if name not in vocabulary.values]
    letters = {sort: _letters(vocabulary, sort)[0] for sort in unbounded}
    functions = [s for s in vocabulary.symbols.values() if s.fixed and len(s.arguments) == 1]
    found: list[Frame] = []
    for base in unbounded:
        frame = {base: ("", letters[base])}
        for function in functions:
            if function.arguments[0].name() == base and function.value.name() in unbounded:
                frame[function.value.name()] = (function.name, letters[base])
        owners = {f.arguments[0].name() for f in functions if f.value.name() in unbounded}
        frame |= {sort: ("", letters[sort]) for sort in unbounded if sort not in frame and sort not in owners}
        if frame not in found:
            found.append(frame)
    return found


def literals(vocabulary: Vocabulary, frame: Frame, among: Iterable[str] | None = None) -> list[Literal]:
    """All literals of the frame, over the symbols ``among``."""
    wanted = list(vocabulary.symbols) if among is None else list(among)
    found = []
    for name in wanted:
        symbol = vocabulary.symbols[name]
        sorts = [sort.name() for sort in symbol.arguments]
        if not all(sort in frame for sort in sorts) or (symbol.fixed and not sorts):
            continue
        terms = tuple(frame[sort] for sort in sorts)
        for value in _values(vocabulary, symbol):
            found += [Literal(name, terms, value, True), Literal(name, terms, value, False)]
    return found


def candidates(
    spec: Specification,
    samples: Mapping[Universe, Sequence[Structure]],
    among: Iterable[str] | None = None,
    guard: str = "",
) -> dict[str, Term]:
    """The sentences of the templates that are true of all samples, closed.

    ``among``: symbols that may occur. ``guard``: a fixed relation; what is true only of elements of which it
    is true is proposed for these.
    """
    vocabulary = spec.vocabulary
    among = None if among is None else list(among)
    found: dict[str, Term] = {}
    for frame in frames(vocabulary):
        own = {letter for function, letter in frame.values() if function}
        known = literals(vocabulary, frame, among)
        bits = _bits(known, frame, samples)
        assumed: list[tuple[int, list[Term]]] = [(-1, [])]
        assumed += [
            (_bits([one], frame, samples)[0], [one.formula(vocabulary)])
            for one in (literals(vocabulary, frame, [guard]) if guard else ())
            if one.positive
        ]
        seen = [i for i, found_at in enumerate(bits) if found_at]
        for i, j in combinations(seen, 2):
            a, b = known[i], known[j]
            if a.terms_of == b.terms_of or (own and not any(("", x) in a.terms + b.terms for x in own)):
                continue
            for holds, formulas in assumed:
                if not bits[i] & bits[j] & holds:
                    both = (*formulas, a.formula(vocabulary), b.formula(vocabulary))
                    _propose(found, vocabulary, z3.Not(z3.And(both)))
                    break
        for literal, found_at in zip(known, bits, strict=True):
            if not found_at:
                _propose(found, vocabulary, z3.Not(literal.formula(vocabulary)))
    steppers = {universe: Stepper(universe, []) for universe in samples}
    for sentence in _unique(vocabulary, among):
        if all(steppers[universe].holds(sentence, s) for universe, states in samples.items() for s in states):
            _propose(found, vocabulary, sentence)
    return found


@dataclass(frozen=True)
class Inferred:
    """What came of it. ``proposed``: candidates that no sample refutes; ``kept``: those of them that no step
    breaks in small groups; ``rounds``: in how many goes the others were dropped. ``invariants``: those of
    the kept ones that imply the rest, proved inductive in groups of any size, with what was given."""

    proposed: int
    kept: int
    rounds: int
    invariants: Mapping[str, Term]


def houdini(
    spec: Specification,
    proposed: Mapping[str, Term],
    sizes: Mapping[str, int],
    given: Mapping[str, Term] | None = None,
) -> Inferred:
    """The most of ``proposed`` that holds at first and that every step keeps.

    ``given`` is assumed before each step; whether it is kept is for others to prove.
    """
    given = given or {}
    kept, rounds = _small(spec, proposed, sizes, given)
    left = _independent(spec, kept, sizes, given)
    while True:
        rounds += 1
        lost = {name for _, name in unproved(spec, {**given, **left}, left)}
        if not lost:
            return Inferred(len(proposed), len(kept), rounds, left)
        left = {name: formula for name, formula in left.items() if name not in lost}


def unproved(
    spec: Specification, formulas: Mapping[str, Term], goals: Collection[str], limit: float = LIMIT
) -> Iterator[tuple[str, str]]:
    """Those (action, formula) of the ``goals`` that are not proved to be kept if all ``formulas`` held
    before; the action is "" for what does not hold at first."""
    theorem = next(one for one in theorems(replace(spec, invariants=formulas)) if one.name == INVARIANTS)
    for case in theorem.cases:
        wanted = [name for name in case.goals if name in goals]
        solver = z3.SimpleSolver()
        solver.set("random_seed", 0)
        solver.set("timeout", int(limit * 1000))
        solver.add(*case.facts().values(), *case.given.values())
        if wanted and solver.check(z3.Or([z3.Not(case.goals[name]()) for name in wanted])) != z3.unsat:
            for name in wanted:
                if solver.check(z3.Not(case.goals[name]())) != z3.unsat:
                    yield case.name, name


def implied(spec: Specification, by: Mapping[str, Term], formulas: Mapping[str, Term]) -> list[str]:
    """Names of the ``formulas`` that follow, in groups of any size; not those for which time is up."""
    solver = z3.SimpleSolver()
    solver.set("random_seed", 0)
    solver.set("timeout", int(LIMIT * 1000))
    solver.add(*spec.axioms.values(), *by.values())
    return [name for name, formula in formulas.items() if solver.check(z3.Not(formula)) == z3.unsat]


def _independent(
    spec: Specification, formulas: Mapping[str, Term], sizes: Mapping[str, int], given: Mapping[str, Term]
) -> dict[str, Term]:
    """Formulas that imply the others in groups of these sizes; the later ones go first."""
    steps = Steps(spec, sizes)
    solver = z3.SimpleSolver()
    solver.set("random_seed", 0)
    solver.add(*steps.facts(), *map(steps.stated, given.values()))
    marks = {name: z3.Bool(f"holds {i}") for i, name in enumerate(formulas)}
    fails = {name: z3.Bool(f"fails {i}") for i, name in enumerate(formulas)}
    for name, formula in formulas.items():
        stated = steps.stated(formula)
        solver.add(z3.Implies(marks[name], stated), z3.Implies(fails[name], z3.Not(stated)))
    left = dict(formulas)
    for name in reversed(list(formulas)):
        others = (marks[other] for other in left if other != name)
        if solver.check(fails[name], *others) == z3.unsat:
            del left[name]
    return left


def _small(
    spec: Specification, proposed: Mapping[str, Term], sizes: Mapping[str, int], given: Mapping[str, Term]
) -> tuple[dict[str, Term], int]:
    """Houdini on groups of these sizes: what no step breaks there; and how many steps broke something."""
    steps = Steps(spec, sizes)
    solver = z3.SimpleSolver()
    solver.set("random_seed", 0)
    solver.add(*steps.facts(), *map(steps.stated, given.values()), steps.any_relation())
    parameters = {str(c): c for action in spec.actions for c in action.parameters}
    solver.add(*map(steps.an_element, parameters.values()))
    for symbol in spec.vocabulary.mutable:
        solver.add(*steps.closed(symbol, NEXT))
    names = list(proposed)
    before = {name: steps.stated(proposed[name]) for name in names}
    after = {name: _next(spec.vocabulary, before[name]) for name in names}
    holds = {name: z3.Bool(f"holds {i}") for i, name in enumerate(names)}
    breaks = {name: z3.Bool(f"breaks {i}") for i, name in enumerate(names)}
    for name in names:
        solver.add(z3.Implies(holds[name], before[name]), z3.Implies(breaks[name], z3.Not(after[name])))
    rounds = 0
    while True:
        broken = z3.Bool(f"broken {rounds}")
        solver.add(z3.Implies(broken, z3.Or([breaks[name] for name in names])))
        if solver.check(broken, *(holds[name] for name in names)) != z3.sat:
            return {name: proposed[name] for name in names}, rounds
        model = solver.model()
        names = [name for name in names if z3.is_true(model.eval(after[name], model_completion=True))]
        rounds += 1


def _next(vocabulary: Vocabulary, formula: Term) -> Term:
    pairs = [
        (symbol.of(), symbol.of(NEXT)(*(z3.Var(i, sort) for i, sort in enumerate(symbol.arguments))))
        for symbol in vocabulary.mutable
    ]
    return z3.substitute_funs(formula, *pairs)


# -- templates -----------------------------------------------------------------------------------------


def _unique(vocabulary: Vocabulary, among: Iterable[str] | None) -> Iterator[Term]:
    """ "One at most" of each relation of one element; and for each value of a fixed function of it."""
    for name in vocabulary.symbols if among is None else among:
        symbol = vocabulary.symbols[name]
        if symbol.fixed or symbol.value != z3.BoolSort() or not symbol.arguments:
            continue
        sort, *rest = symbol.arguments
        letters = [vocabulary.letters[x] for x in _letters(vocabulary, sort.name())]
        if len(letters) < 2 or any(other == sort or not _letters(vocabulary, other.name()) for other in rest):
            continue
        x, y = letters[:2]
        others = [vocabulary.letters[_letters(vocabulary, other.name())[0]] for other in rest]
        both = z3.And(symbol.of()(x, *others), symbol.of()(y, *others))
        yield vocabulary.close(z3.Implies(both, x == y))
        for function in vocabulary.symbols.values():
            of_one = function.fixed and [s.name() for s in function.arguments] == [sort.name()]
            if of_one and function.value != z3.BoolSort():
                same = function.of()(x) == function.of()(y)
                yield vocabulary.close(z3.Implies(z3.And(both, same), x == y))


def _propose(found: dict[str, Term], vocabulary: Vocabulary, sentence: Term) -> None:
    closed = vocabulary.close(sentence)
    found.setdefault(" ".join(str(closed).split()), closed)


def _letters(vocabulary: Vocabulary, sort: str) -> list[str]:
    return [letter for letter, constant in vocabulary.letters.items() if constant.sort().name() == sort]


def _values(vocabulary: Vocabulary, symbol: Symbol) -> Iterator[str]:
    """Names of the values that a literal may speak of."""
    sort = symbol.value.name()
    if sort == "Bool":
        yield ""
    elif sort in vocabulary.values:
        yield from vocabulary.values[sort]
    else:
        for constant in vocabulary.symbols.values():
            if constant.fixed and not constant.arguments and constant.value.name() == sort:
                yield constant.name


def _value(vocabulary: Vocabulary, symbol: Symbol, name: str) -> Term:
    values = vocabulary.values.get(symbol.value.name(), ())
    return (
        symbol.value.constructor(values.index(name))() if name in values else vocabulary.symbols[name].of()()
    )


def _fixed(universe: Universe, name: str, *place: Value) -> Value:
    return universe.tables[name][universe.places[name][place]]


def _bits(
    known: Sequence[Literal], frame: Frame, samples: Mapping[Universe, Sequence[Structure]]
) -> list[int]:
    """Of each literal one number: a bit for each sample and all values of the letters, whether it holds."""
    letters = {letter: sort for sort, (function, letter) in frame.items() if not function}
    rows = [["0"] for _ in known]
    for universe, states in samples.items():
        for values in product(*(universe.domains[sort] for sort in letters.values())):
            place = dict(zip(letters, values, strict=True))
            for row, literal in zip(rows, known, strict=True):
                row.append(literal.among(universe, states, place))
    return [int("".join(row), 2) for row in rows]
