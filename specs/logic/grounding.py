"""Formulas written out over finitely many elements, so that a solver has nothing to guess."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import z3
from rebalance_verifier.specs.logic.language import Term, Vocabulary


class Grounding:
    """The elements of each sort: of an unbounded one as many as ``sizes`` says, else its values."""

    def __init__(self, vocabulary: Vocabulary, sizes: Mapping[str, int]) -> None:
        self.elements: dict[str, tuple[Term, ...]] = {}
        for name, sort in vocabulary.sorts.items():
            if name in vocabulary.values:
                values = range(len(vocabulary.values[name]))
                self.elements[name] = tuple(sort.constructor(i)() for i in values)
            else:
                self.elements[name] = tuple(z3.Const(f"{name} {i}", sort) for i in range(sizes[name]))
        self.unbounded = {
            name: self.elements[name] for name in vocabulary.sorts if name not in vocabulary.values
        }
        """Those of the unbounded sorts."""
        self._grounded: dict[int, tuple[Term, Term]] = {}

    def tuples(self, sorts: Sequence[Any]) -> Iterator[tuple[Term, ...]]:
        """Yield all tuples of elements of these sorts."""
        return product(*(self.elements[sort.name()] for sort in sorts))

    def grounded(self, term: Term) -> Term:
        """``term`` without quantifiers."""
        known = self._grounded.get(term.get_id())
        if known is None:  # the term is kept, or its id would be that of another
            known = self._grounded[term.get_id()] = term, self._written_out(term)
        return known[1]

    def _written_out(self, term: Term) -> Term:
        if z3.is_quantifier(term):
            sorts = [term.var_sort(i) for i in range(term.num_vars())]
            cases = [
                self.grounded(z3.substitute_vars(term.body(), *reversed(values)))
                for values in self.tuples(sorts)
            ]
            return z3.And(cases) if term.is_forall() else z3.Or(cases)
        if not z3.is_app(term) or not term.num_args():
            return term
        return term.decl()(*map(self.grounded, term.children()))
