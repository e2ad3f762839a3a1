"""Formulas of the protocol that the proof would rest upon as well if they asked or said too much."""

from __future__ import annotations

import pytest
import z3
from rebalance_verifier.specs.classic.contract import held_back
from rebalance_verifier.specs.classic.safety import specification
from rebalance_verifier.specs.classic.vocabulary import (
    FATAL,
    ILLEGAL,
    IN_PROGRESS,
    JOIN_REFUSED,
    RETRIABLE,
    SYNC_REFUSED,
    UNKNOWN,
    C,
    M,
    N,
    P,
    none,
    of,
)
from rebalance_verifier.specs.classic.wire import refuse
from rebalance_verifier.specs.logic.language import After

VOCABULARY = specification().vocabulary
BEFORE = VOCABULARY.state()


def possible(*formulas):
    """Whether there are values of which all these hold."""
    solver = z3.Solver()
    solver.add(*formulas)
    return solver.check() == z3.sat


SILENT, CLAIMED = BEFORE.silent(N), BEFORE.claim(N, P) != none


@pytest.mark.parametrize(
    ("about", "allowed"),
    [
        ((SILENT, CLAIMED), False),
        ((SILENT, z3.Not(CLAIMED)), True),
        ((z3.Not(SILENT), CLAIMED), True),
        ((SILENT, CLAIMED, M == N), True),
        ((SILENT, CLAIMED, z3.Not(BEFORE.member(N))), True),
    ],
)
def test_only_what_another_silent_member_claims_is_held_back(about, allowed):
    """A clause that asked more would prove as much, and refuse leaders that do no harm."""
    offer = z3.Function("offered", M.sort(), P.sort(), z3.BoolSort())
    others = () if any(str(one) == "M == N" for one in about) else (M != N,)
    members = () if any(z3.is_not(one) and "member" in str(one) for one in about) else (BEFORE.member(N),)
    given = (held_back(BEFORE, offer), offer(M, P), *others, *members, *about)
    assert possible(*given) is allowed


@pytest.mark.parametrize(
    ("kind", "error", "named", "dated"),
    [
        (JOIN_REFUSED, UNKNOWN, True, False),
        (JOIN_REFUSED, FATAL, True, False),
        (JOIN_REFUSED, IN_PROGRESS, False, False),
        (JOIN_REFUSED, RETRIABLE, False, False),
        (SYNC_REFUSED, UNKNOWN, True, True),
        (SYNC_REFUSED, ILLEGAL, True, True),
        (SYNC_REFUSED, IN_PROGRESS, False, False),
        (SYNC_REFUSED, RETRIABLE, False, False),
    ],
)
def test_an_error_names_whom_it_may_cost_a_membership(kind, error, named, dated):
    after = After(VOCABULARY)
    refuse(BEFORE, after, C, kind, error)
    ((_, names),) = after._assigned["names"]
    ((_, generation),) = after._assigned["wire_generation"]
    ((_, now),) = after._assigned["wire"]
    assert now is kind
    assert possible(of(M) == C, names) is named
    assert not possible(of(M) == C, BEFORE.names(M), names != named)
    assert possible(generation != none) is dated
    assert not possible(generation != (BEFORE.wire_generation(C) if dated else none))
    assert not possible(of(M) != C, names != BEFORE.names(M)), "what others are named stays"
