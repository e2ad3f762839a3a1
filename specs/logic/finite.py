"""Small models: do these formulas have one with at most so many elements of each sort, and which is plainest?

Every quantifier is written out over the elements, so the solver has nothing to guess and always knows the
answer soon. Elements may be equal, so that "at most" is one question for all smaller sizes.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import z3
from rebalance_verifier.specs.logic.grounding import Grounding
from rebalance_verifier.specs.logic.language import Term, Vocabulary, parts
from rebalance_verifier.specs.logic.limit import Budget

Preference = Callable[[tuple[int, ...]], Sequence[int]]
"""At these arguments (numbers of elements), which values to try first. A truth value is 0 or 1."""


@dataclass(frozen=True)
class Model:
    """Elements of each sort by number, the values of enumerations among them, and what is true of them."""

    finite: Finite
    elements: Mapping[str, tuple[Term, ...]]
    _model: Any

    def value(self, term: Term) -> int:
        """Return the number of the element that ``term``, over elements, stands for; 0 or 1 of a formula."""
        value = self._evaluated(self.finite.grounded(term))
        if z3.is_bool(value):
            return int(z3.is_true(value))
        same = [self._evaluated(element) for element in self.elements[value.sort().name()]]
        return next(i for i, element in enumerate(same) if element.eq(value))

    def _evaluated(self, term: Term) -> Term:
        return self._model.eval(term.translate(self.finite.context), model_completion=True)

    def places(self, sorts: Sequence[Any]) -> Iterator[tuple[int, ...]]:
        """Yield all tuples of elements of these sorts, as numbers."""
        return product(*(range(len(self.elements[sort.name()])) for sort in sorts))

    def at(self, sorts: Sequence[Any], indices: tuple[int, ...]) -> list[Term]:
        """Return the elements of these numbers."""
        return [self.elements[sort.name()][i] for sort, i in zip(sorts, indices, strict=True)]


class Finite:
    """Formulas over finitely many elements. ``most``: how many there are of each unbounded sort.

    The solver has a context of its own, so that what it costs depends on these formulas alone.
    """

    def __init__(self, vocabulary: Vocabulary, most: Mapping[str, int]) -> None:
        self.vocabulary = vocabulary
        self.grounding = Grounding(vocabulary, most)
        self.elements, self.grounded = self.grounding.elements, self.grounding.grounded
        self.most = {name: len(elements) for name, elements in self.grounding.unbounded.items()}
        self.context = z3.Context()
        self._begin(z3.SimpleSolver(ctx=self.context))
        self._own = {str(element) for elements in self.grounding.unbounded.values() for element in elements}
        self.symbols: dict[str, Any] = {}
        """What the formulas speak of: declarations by name, also of parameters."""

    def _begin(self, solver: Any) -> None:
        self.solver = solver
        self.solver.set("random_seed", 0)
        self.solver.set("ctrl_c", False)  # or Ctrl-C would be a "no"

    def copy(self) -> Finite:
        """Return the same formulas in a context of their own: what is asked of one costs another one
        nothing."""
        other = copy.copy(self)
        other.context, other.symbols = z3.Context(), dict(self.symbols)
        other._begin(self.solver.translate(other.context))
        return other

    def add(self, *formulas: Term) -> None:
        """These hold."""
        for formula in formulas:
            for part in parts(formula):
                if z3.is_app(part) and part.decl().kind() == z3.Z3_OP_UNINTERPRETED:
                    self.know(part.decl())
            self._assert(self.grounded(formula))

    def know(self, symbol: Any) -> None:
        """The symbol belongs to the model, whether a formula speaks of it or not."""
        if symbol.name() in self.symbols or symbol.name() in self._own:
            return
        self.symbols[symbol.name()] = symbol
        if symbol.range().name() in self.most:
            for arguments in self.grounding.tuples(_arguments(symbol)):
                here = symbol(*arguments)
                self._assert(z3.Or([here == e for e in self.elements[symbol.range().name()]]))

    @contextlib.contextmanager
    def supposing(self, *formulas: Term) -> Iterator[None]:
        """These hold meanwhile."""
        before = dict(self.symbols)
        self.solver.push()
        try:
            self.add(*formulas)
            yield
        finally:
            self.solver.pop()
            self.symbols = before

    def possible(self, budget: Budget, *assumptions: Term) -> bool:
        """Check whether there is such a model. False also when the budget is used up."""
        translated = [assumption.translate(self.context) for assumption in assumptions]
        return bool(budget.check(self.solver, *translated) == z3.sat)

    def _assert(self, *formulas: Term) -> None:
        self.solver.add(*(formula.translate(self.context) for formula in formulas))

    # -- the plainest model ------------------------------------------------------------------------------

    def plainest(
        self,
        budget: Budget,
        *,
        together: Mapping[str, str],
        prefer: Mapping[str, Preference],
        first: Sequence[str] = (),
    ) -> Model | None:
        """Return a model of fewest elements; of those the one where, symbol by symbol, everything is as
        preferred.

        ``together``: sorts of which there should be as many elements as of another, and that do not count.
        ``first``: symbols that are made plain first. Which model it is depends on the formulas only, as long
        as the budget suffices; None if there is none or it does not suffice to find one.
        """
        sizes = self._fewest(budget, together)
        if sizes is None:
            return None
        self.solver.push()
        try:
            elements = self._pin_sizes(sizes, budget)
            self._pin_values(elements, budget, prefer, first)
            if not self.possible(budget):
                return None
            return Model(self, elements, self.solver.model())
        finally:
            self.solver.pop()

    def _fewest(self, budget: Budget, together: Mapping[str, str]) -> dict[str, int] | None:
        counted = [name for name in self.most if name not in together]
        every = product(*(range(1, self.most[name] + 1) for name in counted))
        if not self.possible(budget):
            return None
        for sizes in sorted(every, key=lambda sizes: (sum(sizes), sizes)):
            found = dict(zip(counted, sizes, strict=True))
            found |= {name: min(found[other], self.most[name]) for name, other in together.items()}
            if self.possible(budget, *(f for name in self.most for f in self._at_most(name, found[name]))):
                return found
        return None

    def _at_most(self, name: str, size: int) -> list[Term]:
        first, *_ = elements = self.elements[name]
        return [element == first for element in elements[size:]]

    def _pin_sizes(self, sizes: Mapping[str, int], budget: Budget) -> dict[str, tuple[Term, ...]]:
        kept = dict(self.elements)
        for name in self.most:
            self._assert(*self._at_most(name, sizes[name]))
        for name in self.most:
            size = sizes[name]
            while size > 1 and not self.possible(budget, z3.Distinct(*self.elements[name][:size])):
                size -= 1
            kept[name] = self.elements[name][:size]
            if size > 1:
                self._assert(z3.Distinct(*kept[name]))
            self._assert(*self._at_most(name, size))
        return kept

    def _pin_values(
        self,
        elements: Mapping[str, tuple[Term, ...]],
        budget: Budget,
        prefer: Mapping[str, Preference],
        first: Sequence[str],
    ) -> None:
        order = [name for name in first if name in self.symbols]
        for name in [*order, *(name for name in self.symbols if name not in order)]:
            symbol = self.symbols[name]
            sorts = _arguments(symbol)
            for indices in product(*(range(len(elements[sort.name()])) for sort in sorts)):
                here = symbol(*(elements[sort.name()][i] for sort, i in zip(sorts, indices, strict=True)))
                self._pin(here, elements, list(prefer.get(name, _as_listed)(indices)), budget)

    def _pin(
        self, here: Term, elements: Mapping[str, tuple[Term, ...]], values: list[int], budget: Budget
    ) -> None:
        """Give the term the first value that is possible, in the order preferred."""
        among = (z3.BoolVal(False), z3.BoolVal(True)) if z3.is_bool(here) else elements[here.sort().name()]
        values = [i for i in values if i < len(among)]
        for i in [*values, *(i for i in range(len(among)) if i not in values)]:
            if self.possible(budget, here == among[i]):
                self._assert(here == among[i])
                return


def _as_listed(indices: tuple[int, ...]) -> Sequence[int]:
    return ()


def _arguments(symbol: Any) -> list[Any]:
    return [symbol.domain(i) for i in range(symbol.arity())]
