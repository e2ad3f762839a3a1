"""The whole protocol in logic: how a group begins, and every step that it can take."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import z3
from rebalance.specs import coordinator, environment, member, safety
from rebalance.specs.contract import SAFETY, Clause
from rebalance.specs.logic import Action, State, Term, Vocabulary
from rebalance.specs.vocabulary import (
    AXIOMS,
    DOWN,
    EMPTY,
    IDLE,
    NO_ERROR,
    NO_STRAY,
    UNJOINED,
    VOCABULARY,
    A,
    C,
    cooperative,
    none,
    zero,
)
from z3 import And, Implies, Not

MODULES = (member, coordinator, environment)

Effect = Callable[..., None]


@dataclass(frozen=True)
class Specification:
    """A protocol: what is known of the sorts, how it begins, what it can do, what is to be proved of it.

    Formulas are closed. ``invariants`` are proved by induction over ``actions``, ``properties`` follow.
    """

    vocabulary: Vocabulary
    axioms: Mapping[str, Term]
    initial: Term
    actions: tuple[Action, ...]
    invariants: Mapping[str, Term]
    properties: Mapping[str, Term]

    def action(self, name: str) -> Action:
        """The action of that name. Raises KeyError when there is none."""
        return next(action for action in self.actions if action.name == name)


def specification(*instead: Effect, contract: Mapping[str, Clause] = SAFETY) -> Specification:
    """The protocol; with actions ``instead`` of those of the same name, and with another ``contract``.

    Raises ValueError for one that takes the place of no action.
    """
    effects = {effect.__name__: effect for effect in (*_effects(), member.lead_under(contract))}
    for effect in instead:
        if effect.__name__ not in effects:
            raise ValueError(f"no action {effect.__name__!r} to be replaced")
        effects[effect.__name__] = effect
    faults = {effect.__name__ for module in MODULES for effect in module.FAULTS}
    return Specification(
        VOCABULARY,
        {name: VOCABULARY.close(axiom) for name, axiom in AXIOMS.items()},
        initial(VOCABULARY.state()),
        tuple(VOCABULARY.action(effect, fault=name in faults) for name, effect in effects.items()),
        {name: VOCABULARY.close(formula) for name, formula in safety.INVARIANTS.items()},
        {name: VOCABULARY.close(formula) for name, formula in safety.PROPERTIES.items()},
    )


def _effects() -> Iterator[Effect]:
    """Every action, in the order of the files."""
    return (effect for module in MODULES for effect in (*module.STEPS, *module.FAULTS))


def initial(s: State) -> Term:
    """Nobody has started and there is no group. What a consumer lists, and so its protocol, is open."""
    defaults = {
        "life": DOWN, "state": UNJOINED, "prepare": True, "rejoin": True, "wire": IDLE, "error": NO_ERROR,
        "stray": NO_STRAY, "stray_error": NO_ERROR, "group": EMPTY, "log_group": EMPTY, "current": zero,
        "log_current": zero,
    }  # fmt: skip
    stated = []
    for symbol in VOCABULARY.mutable:
        if symbol.name in ("lists", "eager"):
            continue
        places = [z3.Const(f"x{i}", sort) for i, sort in enumerate(symbol.arguments)]
        here = getattr(s, symbol.name)(*places) if places else getattr(s, symbol.name)
        empty = none if symbol.value == none.sort() else False
        value = defaults.get(symbol.name, empty)
        stated.append(z3.ForAll(places, here == value) if places else here == value)
    eager = VOCABULARY.close(Implies(And(s.lists(C, A), Not(cooperative(A))), s.eager(C)))
    return And(*stated, eager)
