"""Formulas of the protocol that the proof would rest upon as well if they asked or said too much."""

from __future__ import annotations

import pytest
import z3
from rebalance_verifier.specs.classic import vocabulary as v
from rebalance_verifier.specs.classic.contract import held_back
from rebalance_verifier.specs.classic.safety import specification
from rebalance_verifier.specs.classic.wire import refuse
from rebalance_verifier.specs.logic.language import After

VOCABULARY = specification().vocabulary
BEFORE = VOCABULARY.state()


def possible(*formulas):
    """Whether there are values of which all these hold."""
    solver = z3.Solver()
    solver.add(*formulas)
    return solver.check() == z3.sat


SILENT, CLAIMED = BEFORE.silent(v.N), BEFORE.claim(v.N, v.P) != v.none


@pytest.mark.parametrize(
    ("about", "allowed"),
    [
        ((SILENT, CLAIMED), False),
        ((SILENT, z3.Not(CLAIMED)), True),
        ((z3.Not(SILENT), CLAIMED), True),
        ((SILENT, CLAIMED, v.M == v.N), True),
        ((SILENT, CLAIMED, z3.Not(BEFORE.member(v.N))), True),
    ],
)
def test_only_what_another_silent_member_claims_is_held_back(about, allowed):
    """A clause that asked more would prove as much, and refuse leaders that do no harm."""
    offer = z3.Function("offered", v.M.sort(), v.P.sort(), z3.BoolSort())
    others = () if any(str(one) == "M == N" for one in about) else (v.M != v.N,)
    members = () if any(z3.is_not(one) and "member" in str(one) for one in about) else (BEFORE.member(v.N),)
    given = (held_back(BEFORE, offer), offer(v.M, v.P), *others, *members, *about)
    assert possible(*given) is allowed


@pytest.mark.parametrize(
    ("kind", "error", "named", "dated"),
    [
        (v.JOIN_REFUSED, v.UNKNOWN, True, False),
        (v.JOIN_REFUSED, v.FATAL, True, False),
        (v.JOIN_REFUSED, v.IN_PROGRESS, False, False),
        (v.JOIN_REFUSED, v.RETRIABLE, False, False),
        (v.SYNC_REFUSED, v.UNKNOWN, True, True),
        (v.SYNC_REFUSED, v.ILLEGAL, True, True),
        (v.SYNC_REFUSED, v.IN_PROGRESS, False, False),
        (v.SYNC_REFUSED, v.RETRIABLE, False, False),
    ],
)
def test_an_error_names_whom_it_may_cost_a_membership(kind, error, named, dated):
    after = After(VOCABULARY)
    refuse(BEFORE, after, v.C, kind, error)
    ((_, names),) = after._assigned["names"]
    ((_, generation),) = after._assigned["wire_generation"]
    ((_, now),) = after._assigned["wire"]
    assert now is kind
    assert possible(v.of(v.M) == v.C, names) is named
    assert not possible(v.of(v.M) == v.C, BEFORE.names(v.M), names != named)
    assert possible(generation != v.none) is dated
    assert not possible(generation != (BEFORE.wire_generation(v.C) if dated else v.none))
    assert not possible(v.of(v.M) != v.C, names != BEFORE.names(v.M)), "what others are named stays"
