"""A specification: a state machine in logic, and what is to be shown of it.

Formulas are closed but for the parameters of an action, which are constants. They are built when somebody
needs them; their names are there at once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from rebalance_verifier.specs.logic.language import SpecAction, Term, Vocabulary

ASSUMPTIONS, INIT, STEP, IMPLIES, PROGRESS = "assumptions", "init", "step", "implies", "progress"
"""Kinds of cases, the last one that something can be done; others may be added by whoever makes a theorem."""


@dataclass(frozen=True, kw_only=True)
class Specification:
    """A protocol: what is known of the sorts, how it begins, what it can do, what is to be proved of it.

    ``invariants`` are proved by induction over ``actions``, ``properties`` follow.
    """

    vocabulary: Vocabulary
    axioms: Mapping[str, Term]
    initial: Term
    actions: tuple[SpecAction, ...]
    invariants: dict[str, Term] = field(default_factory=dict)
    properties: dict[str, Term] = field(default_factory=dict)

    def action(self, name: str) -> SpecAction:
        """Return the action of that name. Raises KeyError when there is none."""
        return {action.name: action for action in self.actions}[name]

    def facts(self, action: SpecAction | None = None) -> dict[str, Term]:
        """Return by name the axioms, and the facts about a step by that action."""
        facts = {f"axiom: {name}": formula for name, formula in self.axioms.items()}
        if action is not None:
            facts |= {"guard": action.guard, "what is open": action.where(self.vocabulary)}
        return facts

    def case(
        self,
        kind: str,
        goals: Mapping[str, Callable[[], Term]],
        *,
        name: str = "",
        action: SpecAction | None = None,
        facts: Mapping[str, Term] | None = None,
        given: Mapping[str, Term] | None = None,
        near: Mapping[str, Collection[str]] | None = None,
        possible: bool = False,
    ) -> ProofCase:
        """Return a case about that action, or about any state; ``facts`` come on top of those that are known,
        and what is ``given`` is by default the invariants."""
        return ProofCase(
            kind=kind,
            name=name or (action.name if action else ""),
            facts=lambda: {**self.facts(action), **(facts or {})},
            goals=goals,
            given=self.invariants if given is None else given,
            near=near or {},
            action=action,
            possible=possible,
        )


@dataclass(frozen=True, kw_only=True)
class ProofCase:
    """Goals that share their hypotheses. ``name`` is that of the action, if the case is about one.

    ``facts`` are hypotheses, and so is all that is ``given``; for a goal that is named in ``near``, those
    listed there are tried alone first: fewer are quicker, and what follows from fewer follows from all. In a
    ``possible`` case the goals are to be consistent with the hypotheses, not to follow.
    """

    kind: str
    name: str
    facts: Callable[[], Mapping[str, Term]]
    goals: Mapping[str, Callable[[], Term]]
    given: Mapping[str, Term] = field(default_factory=dict)
    near: Mapping[str, Collection[str]] = field(default_factory=dict)
    action: SpecAction | None = None
    possible: bool = False


@dataclass(frozen=True, kw_only=True)
class Theorem:
    """A sentence, who demands it, and all that has to be shown for it.

    ``upon`` are the theorems whose statements are given here: without them this one is worth nothing.
    """

    name: str
    sentence: str
    source: str
    vocabulary: Vocabulary
    cases: tuple[ProofCase, ...]
    upon: tuple[str, ...] = ()

    @property
    def goals(self) -> list[tuple[ProofCase, str]]:
        """Return every obligation, by its case and its goal."""
        return [(case, goal) for case in self.cases for goal in case.goals]

    @property
    def obligations(self) -> int:
        """Return how many there are."""
        return len(self.goals)
