"""A measure of what is still to be done: sets, the weightiest first, and what is to be shown of each step.

A step may let a set grow only where a weightier one becomes smaller. Sets of a finite group cannot shrink for
ever.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import z3
from rebalance_verifier.specs.logic.language import SpecAction, Term, symbols_of
from rebalance_verifier.specs.logic.specification import PROGRESS, ProofCase, Specification

MEASURE = "measure"
"""Kind of a case: a step makes the measure smaller."""


class RankingSet(NamedTuple):
    """One set of the measure: the tuples of ``letters`` of which ``formula`` holds."""

    name: str
    letters: tuple[Term, ...]
    formula: Term


class Situation(NamedTuple):
    """Where the group is not settled, one of ``steps`` is possible, with these parameters.

    ``given`` says of whom it speaks; what exists there follows from what is known.
    """

    name: str
    given: Term
    steps: Mapping[str, tuple[Term, ...]]


def alone(goals: Collection[str]) -> Mapping[str, tuple[str, ...]]:
    """Nothing is tried before all hypotheses are."""
    return {}


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """A measure of the states of which all that is ``given`` holds. ``near``: which hypotheses the goals of
    these names are tried with first."""

    spec: Specification
    measure: tuple[RankingSet, ...]
    given: Mapping[str, Term]
    near: Callable[[Collection[str]], Mapping[str, tuple[str, ...]]] = alone

    def keeps(self, kind: str, action: SpecAction, formulas: Mapping[str, Term]) -> ProofCase:
        """That formulas about what the action changes hold after it."""
        kept = {
            name: partial(action.after, self.spec.vocabulary, formula)
            for name, formula in formulas.items()
            if symbols_of(formula) & set(action.updates)
        }
        return self._case(kind, action, kept)

    def decreases(self, action: SpecAction, smaller: Sequence[str], in_vain: Term | None = None) -> ProofCase:
        """That it makes one of the sets named smaller and lets none grow that is weightier; or that it is
        ``in_vain``, and lets none grow at all."""
        shrinks: list[Term] = []
        waiting = list(smaller)
        goals: dict[str, Callable[[], Term]] = {}
        for ranking in self.measure:
            if symbols_of(ranking.formula) & set(action.updates):
                goals[f"no more of: {ranking.name}"] = partial(
                    self._not_larger, action, ranking, tuple(shrinks)
                )
            if waiting and ranking.name == waiting[0]:
                shrinks.append(self._smaller(action, ranking))
                waiting.pop(0)
            if not waiting and in_vain is None:
                break
        idle = [] if in_vain is None else [in_vain]
        goals[f"less of: {' or '.join(smaller) or 'nothing'}"] = partial(z3.Or, *shrinks, *idle)
        return self._case(MEASURE, action, goals)

    def possible(self, situation: Situation) -> ProofCase:
        """That one of the steps can be taken where the situation is given."""
        guards = [self.spec.action(name).guard_of(*who) for name, who in situation.steps.items()]
        goals = {situation.name: partial(z3.Or, *guards)}
        return self.spec.case(
            PROGRESS, goals, facts={"given": situation.given}, given=self.given, near=self.near(goals)
        )

    def _case(self, kind: str, action: SpecAction, goals: Mapping[str, Callable[[], Term]]) -> ProofCase:
        return self.spec.case(kind, goals, action=action, given=self.given, near=self.near(goals))

    def _not_larger(self, action: SpecAction, ranking: RankingSet, unless: tuple[Term, ...]) -> Term:
        """State that the set does not grow, unless a weightier one has shrunk."""
        grows = z3.And(action.after(self.spec.vocabulary, ranking.formula), z3.Not(ranking.formula))
        grown = z3.Exists([*ranking.letters], grows) if ranking.letters else grows
        return z3.Or(z3.Not(grown), *unless)

    def _smaller(self, action: SpecAction, ranking: RankingSet) -> Term:
        """Something is in the set before the step and not after it."""
        less = z3.And(ranking.formula, z3.Not(action.after(self.spec.vocabulary, ranking.formula)))
        return z3.Exists([*ranking.letters], less) if ranking.letters else less
