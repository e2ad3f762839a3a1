"""For every action how a run comes to it, or why none does.

A run is given by its actions alone; the solver finds the consumers and the rest, the explicit evaluator
checks what it found: ``specs.classic.necessity.vacuity``. ``python -m tools.witness_search`` finds
``witnesses.json`` anew; a few are shorter here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from rebalance_verifier.specs.classic import vocabulary as v
from rebalance_verifier.specs.logic.language import State, Term
from z3 import And, Exists, Implies, Not, Or

WITNESSES: Mapping[str, str] = json.loads(Path(__file__).with_name("witnesses.json").read_text())
"""Actions from which the action is possible; the first of them begins where its own run ends, and so on."""


def path_to(action: str, witnesses: Mapping[str, str] = WITNESSES) -> tuple[str, ...]:
    """Return the whole run, without the action itself.

    >>> path_to("join")
    ('start', 'partitions_lost')
    """
    first, *rest = witnesses[action].split() or [""]
    return (*path_to(first, witnesses), first, *rest) if first else ()


def _lemmas(s: State) -> dict[str, Term]:
    recorded = And(v.static(v.of(v.M)), s.member(v.N), v.of(v.M) == v.of(v.N))
    kinds = (v.JOIN, v.JOIN_PARKED, v.JOIN_OK, v.SYNC, v.SYNC_PARKED, v.SYNC_OK)
    under_way = And(s.names(v.M), Or(*(s.wire(v.of(v.M)) == kind for kind in kinds)))
    fenced = And(s.stray(v.C) == v.ANSWER, s.stray_error(v.C) == v.FATAL)
    return {
        "a JoinGroup without id is of one that has none": Implies(
            s.wire(v.C) == v.JOIN_NEW, Not(s.identified(v.C))
        ),
        "what is late has a generation": Implies(
            s.stray(v.C) != v.NO_STRAY, s.stray_generation(v.C) != v.none
        ),
        "an instance is given no id": Not(And(v.static(v.C), s.error(v.C) == v.ID_REQUIRED)),
        "no instance is pending": Not(And(s.pending(v.M), v.static(v.of(v.M)))),
        "one record of an instance": Implies(And(recorded, s.member(v.M)), v.M == v.N),
        "who left one without id behind has none": Implies(
            And(v.static(v.of(v.M)), s.left_new(v.of(v.M))), Not(Or(s.id(v.M), under_way))
        ),
        "the record is of the id in use": Implies(And(recorded, s.id(v.M)), v.M == v.N),
        "the record is of the id under way": Implies(And(recorded, under_way), v.M == v.N),
        "only an instance is fenced": Implies(
            fenced, And(v.static(v.C), Exists([v.M], And(v.of(v.M) == v.C, s.stray_names(v.M))))
        ),
        "a fenced id is out of use": Implies(
            And(fenced, s.stray_names(v.M), v.of(v.M) == v.C), Not(Or(s.id(v.M), under_way))
        ),
    }


LEMMAS: Mapping[str, Term] = _lemmas(v.VOCABULARY.state())
"""Invariants that safety does not need: with them it is proved that some actions are never possible."""

_FENCED = ("the record is of the id in use",)
_FENCED_UNDER_WAY = ("the record is of the id under way",)

NEVER: Mapping[str, tuple[str, ...]] = {
    "heartbeat_of_fenced": _FENCED,
    "late_answer_fails": ("only an instance is fenced", "a fenced id is out of use"),
    "join_of_fenced": _FENCED_UNDER_WAY,
    "join_of_replaced": _FENCED_UNDER_WAY,
    "sync_of_fenced": _FENCED_UNDER_WAY,
}
"""Actions that no run comes to, and the lemmas that show it.

FENCED_INSTANCE_ID is for the elder of two processes with one ``group.instance.id``. Here a consumer has one
process at a time and one request under way, so what is fenced is over; it stays here, as in the executable
model, for whoever adds the second process.
"""
