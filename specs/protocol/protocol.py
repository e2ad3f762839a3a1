"""The whole protocol in logic: how a group begins, and every step that it can take."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import z3
from rebalance.specs.logic.language import State, Term
from rebalance.specs.logic.specification import Specification
from rebalance.specs.protocol import coordinator, environment, member
from rebalance.specs.protocol.contract import SAFETY, ContractClause
from rebalance.specs.protocol.vocabulary import (
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


def protocol(*instead: Effect, contract: Mapping[str, ContractClause] = SAFETY) -> Specification:
    """The protocol, of which nothing is stated yet.

    With actions ``instead`` of those of the same name, and of an assignor that keeps ``contract``.

    Raises ValueError for one that takes the place of no action.
    """
    effects = {effect.__name__: effect for effect in (*_effects(), member.lead_under(contract))}
    for effect in instead:
        if effect.__name__ not in effects:
            raise ValueError(f"no action {effect.__name__!r} to be replaced")
        effects[effect.__name__] = effect
    faults = {effect.__name__ for module in MODULES for effect in module.FAULTS}
    return Specification(
        vocabulary=VOCABULARY,
        axioms={name: VOCABULARY.close(axiom) for name, axiom in AXIOMS.items()},
        initial=initial(VOCABULARY.state()),
        actions=tuple(VOCABULARY.action(effect, fault=name in faults) for name, effect in effects.items()),
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
