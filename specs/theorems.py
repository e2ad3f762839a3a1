"""What is to be proved of a protocol: theorems, the cases of their proofs, and the obligations of each case.

Formulas are closed but for the parameters of an action, which are constants. They are built when somebody
needs them; their names are there at once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial

import z3
from rebalance.specs.logic import Action, Term, Vocabulary, symbols_of
from rebalance.specs.outline import RESTS_ON
from rebalance.specs.protocol import Specification

ASSUMPTIONS, INIT, STEP, IMPLIES = "assumptions", "init", "step", "implies"
"""Kinds of cases; others may be added by whoever makes a theorem."""

INVARIANTS = "invariants"
"""Name of the theorem that the properties rest upon."""

SENTENCES = {
    "exclusive ownership": ("no partition is owned by two members of the group", "KIP-429"),
    "exclusive belief of the listeners": (
        "what the callbacks told two listeners adds up to no common partition", "KIP-429",
    ),
    "revoke before assign": ("what one member owns is on its way to no other one", "KIP-429"),
    "commit fencing": ("no late commit is accepted for a partition that another member owns", "KIP-447"),
}  # fmt: skip
"""Of each property of the protocol: what it says, and who demands it."""


@dataclass(frozen=True)
class Case:
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
    action: Action | None = None
    possible: bool = False


@dataclass(frozen=True)
class Theorem:
    """A sentence, who demands it, and all that has to be shown for it.

    ``upon`` are the theorems whose statements are given here: without them this one is worth nothing.
    """

    name: str
    sentence: str
    source: str
    vocabulary: Vocabulary
    cases: tuple[Case, ...]
    upon: tuple[str, ...] = ()

    @property
    def obligations(self) -> int:
        """How many there are."""
        return sum(len(case.goals) for case in self.cases)


def theorems(spec: Specification) -> tuple[Theorem, ...]:
    """That the protocol is no contradiction, its invariants, and each of its properties."""
    symbols = {name: symbols_of(formula) for name, formula in spec.invariants.items()}
    possible = Theorem(
        "possibility",
        "nothing assumed contradicts itself, and every action can be taken where the invariants hold",
        "so that no obligation is fulfilled for want of a group",
        spec.vocabulary,
        (_beginning(spec), _taken(spec)),
    )
    invariants = Theorem(
        INVARIANTS,
        f"{len(spec.invariants)} invariants hold at first, and every action keeps them",
        "induction",
        spec.vocabulary,
        (_initially(spec), *(_step(spec, action, symbols) for action in spec.actions)),
    )
    return possible, invariants, *(_property(spec, name) for name in spec.properties)


def chosen(among: Collection[Theorem], names: Collection[str]) -> tuple[Theorem, ...]:
    """Those of the given names, and what they rest upon; without names all. ``-`` does for a space.

    Raises ValueError for a name that is not there.
    """
    known = {theorem.name: theorem for theorem in among}
    wanted: list[str] = []
    waiting = list(names)
    while waiting:
        name = waiting.pop().replace("-", " ")
        if name not in known:
            raise ValueError(f"no theorem is called {name!r}; there are: {', '.join(known)}")
        if name not in wanted:
            wanted.append(name)
            waiting += known[name].upon
    return tuple(theorem for theorem in among if not names or theorem.name in wanted)


def _beginning(spec: Specification) -> Case:
    goals = {"the initial state": lambda: spec.initial}
    return Case(ASSUMPTIONS, "", lambda: _axioms(spec), goals, possible=True)


def _taken(spec: Specification) -> Case:
    """All actions in one case: what is given is written out once for all of them."""
    goals = {f"{action.name} can be taken": partial(_enabled, spec, action) for action in spec.actions}
    return Case(ASSUMPTIONS, "", lambda: _axioms(spec), goals, given=spec.invariants, possible=True)


def _enabled(spec: Specification, action: Action) -> Term:
    return z3.And(action.guard, action.where(spec.vocabulary))


def _axioms(spec: Specification) -> dict[str, Term]:
    return {f"axiom: {name}": formula for name, formula in spec.axioms.items()}


def _initially(spec: Specification) -> Case:
    return Case(
        INIT,
        "",
        lambda: {**_axioms(spec), "initial state": spec.initial},
        {name: partial(spec.invariants.__getitem__, name) for name in spec.invariants},
    )


def _step(spec: Specification, action: Action, symbols: Mapping[str, set[str]]) -> Case:
    """An invariant of whose ``symbols`` the action assigns none stays true, and needs no proof."""
    touched = [name for name in spec.invariants if symbols[name] & set(action.updates)]
    return Case(
        STEP,
        action.name,
        lambda: {**_axioms(spec), "guard": action.guard, "what is open": action.where(spec.vocabulary)},
        {name: partial(action.after, spec.vocabulary, spec.invariants[name]) for name in touched},
        given=spec.invariants,
        near={name: (name, *RESTS_ON.get(name, ())) for name in touched},
        action=action,
    )


def _property(spec: Specification, name: str) -> Theorem:
    sentence, source = SENTENCES.get(name, (name, ""))
    case = Case(
        IMPLIES,
        "",
        lambda: _axioms(spec),
        {name: lambda: spec.properties[name]},
        given=spec.invariants,
    )
    return Theorem(name, sentence, source, spec.vocabulary, (case,), upon=(INVARIANTS,))
