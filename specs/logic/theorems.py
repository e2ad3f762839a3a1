"""What is to be proved of any protocol: that it is no contradiction, its invariants, and its properties."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import partial

import z3
from rebalance_verifier.base.names import unknown
from rebalance_verifier.specs.logic.language import NEXT, SpecAction, Term, across, symbols_of
from rebalance_verifier.specs.logic.outline import RESTS_ON
from rebalance_verifier.specs.logic.specification import (
    ASSUMPTIONS,
    IMPLIES,
    INIT,
    STEP,
    ProofCase,
    Specification,
    Theorem,
)

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


def theorems(spec: Specification) -> tuple[Theorem, ...]:
    """Return the theorems: the protocol is no contradiction, and its invariants and properties hold."""
    symbols = {name: symbols_of(formula) for name, formula in spec.invariants.items()}
    possible = Theorem(
        name="possibility",
        sentence="nothing assumed contradicts itself, and every action can be taken where the invariants "
        "hold",
        source="so that no obligation is fulfilled for want of a group",
        vocabulary=spec.vocabulary,
        cases=(_beginning(spec), taken(spec)),
    )
    invariants = Theorem(
        name=INVARIANTS,
        sentence=f"{len(spec.invariants)} invariants hold at first, and every action keeps them",
        source="induction",
        vocabulary=spec.vocabulary,
        cases=(_initially(spec), *(kept_by(spec, action, symbols) for action in spec.actions)),
    )
    return possible, invariants, *(_property(spec, name) for name in spec.properties)


def chosen(among: Collection[Theorem], names: Collection[str]) -> tuple[Theorem, ...]:
    """Return those of the given names, and what they rest upon; without names all. ``-`` does for a space.

    Raises ValueError for a name that is not there.
    """
    known = {theorem.name: theorem for theorem in among}
    wanted: list[str] = []
    waiting = list(names)
    while waiting:
        name = waiting.pop().replace("-", " ")
        if name not in known:
            raise ValueError(unknown("theorem", name, known, "rebalance list obligations"))
        if name not in wanted:
            wanted.append(name)
            waiting += known[name].upon
    return tuple(theorem for theorem in among if not names or theorem.name in wanted)


def _beginning(spec: Specification) -> ProofCase:
    return spec.case(ASSUMPTIONS, {"the initial state": lambda: spec.initial}, given={}, possible=True)


def taken(spec: Specification) -> ProofCase:
    """That every action can be taken, in one case: what is given is written out once for all of them."""
    goals = {f"{action.name} can be taken": partial(_enabled, spec, action) for action in spec.actions}
    return spec.case(ASSUMPTIONS, goals, possible=True)


def _enabled(spec: Specification, action: SpecAction) -> Term:
    return z3.And(action.guard, action.where(spec.vocabulary))


def _initially(spec: Specification) -> ProofCase:
    goals = {name: partial(spec.invariants.__getitem__, name) for name in spec.invariants}
    return spec.case(INIT, goals, facts={"initial state": spec.initial}, given={})


def kept_by(spec: Specification, action: SpecAction, symbols: Mapping[str, set[str]]) -> ProofCase:
    """That the action keeps the invariants; one of whose ``symbols`` it assigns none needs no proof."""
    touched = [name for name in spec.invariants if symbols[name] & set(action.updates)]
    goals = {name: partial(action.after, spec.vocabulary, spec.invariants[name]) for name in touched}
    near = {name: (name, *RESTS_ON.get(name, ())) for name in touched}
    return spec.case(STEP, goals, action=action, near=near)


def inductive(
    spec: Specification, own: Mapping[str, Term], known: Mapping[str, Term] = {}
) -> Iterator[ProofCase]:
    """Yield the obligations that formulas of a theorem hold at first and stay true, given the invariants and
    what is ``known`` besides."""
    goals = {name: partial(own.__getitem__, name) for name in own}
    yield spec.case(INIT, goals, facts={"initial state": spec.initial}, given={})
    symbols = {name: symbols_of(formula) for name, formula in own.items()}
    for action in spec.actions:
        kept = {
            name: partial(action.after, spec.vocabulary, formula)
            for name, formula in own.items()
            if symbols[name] & set(action.updates)
        }
        if kept:
            near = {name: (name, *RESTS_ON.get(name, ())) for name in kept}
            given = {**spec.invariants, **known, **own}
            yield spec.case(STEP, kept, action=action, given=given, near=near)


def every_step(
    spec: Specification, name: str, sentence: str, source: str, formulas: Mapping[str, Term]
) -> Theorem:
    """That the formulas hold of every step: of two states, the one after it marked ``NEXT``."""
    closed = spec.vocabulary.closed(formulas)
    cases = []
    for action in (*spec.actions, None):
        goals = {
            name: partial(_across, spec, action, formula)
            for name, formula in closed.items()
            if action is None or _changes(action, formula)
        }
        if goals:
            other = "" if action else "any step that changes none of it"
            cases.append(spec.case(STEP, goals, name=other, action=action))
    return Theorem(
        name=name,
        sentence=sentence,
        source=source,
        vocabulary=spec.vocabulary,
        cases=tuple(cases),
        upon=(INVARIANTS,),
    )


def _changes(action: SpecAction, formula: Term) -> bool:
    return any(name + NEXT in symbols_of(formula) for name in action.updates)


def _across(spec: Specification, action: SpecAction | None, formula: Term) -> Term:
    return action.across(spec.vocabulary, formula) if action else across(spec.vocabulary, formula, {})


def _property(spec: Specification, name: str) -> Theorem:
    sentence, source = SENTENCES.get(name, (name, ""))
    return Theorem(
        name=name,
        sentence=sentence,
        source=source,
        vocabulary=spec.vocabulary,
        cases=(spec.case(IMPLIES, {name: lambda: spec.properties[name]}),),
        upon=(INVARIANTS,),
    )
