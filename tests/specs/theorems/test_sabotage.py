"""Guards of the protocol left out, one at a time: the proof breaks where the guard is needed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from rebalance.specs.logic.language import After, State, Term
from rebalance.specs.logic.prover import ProofVerdict, prove
from rebalance.specs.protocol.vocabulary import SETTLED, SYNC, SYNC_OK, SYNC_PARKED, M, P, of
from rebalance.specs.protocol.wire import put
from rebalance.specs.theorems.safety import specification
from rebalance.specs.theorems.theorems import INVARIANTS, theorems

Effect = Callable[..., None]


def refuted(effect: Effect) -> set[str]:
    """The invariants that an action breaks which takes the place of the one of its name."""
    spec = specification(effect)
    invariants = next(theorem for theorem in theorems(spec) if theorem.name == INVARIANTS)
    case = next(case for case in invariants.cases if case.name == effect.__name__)
    outcomes = next(prove([replace(invariants, cases=(case,))]))
    return {outcome.goal for outcome in outcomes if outcome.verdict is not ProofVerdict.PROVED}


def sync_parked_answered(s: State, t: After, c: Term, m: Term) -> None:
    """A SyncGroup that waited is answered in any generation; its sender knows of its own only."""
    t.when(s.wire(c) == SYNC_PARKED, of(m) == c, s.names(m), s.member(m), s.group == SETTLED)
    put(s, t, c, SYNC_OK, names=s.names(M), generation=s.wire_generation(c), granted=s.assigned(m, P))


def sync_of_settled(s: State, t: After, c: Term, m: Term) -> None:
    """An old SyncGroup is answered with the present assignment."""
    t.when(s.wire(c) == SYNC, of(m) == c, s.names(m), s.member(m), s.group == SETTLED)
    t.synced[m] = True
    put(s, t, c, SYNC_OK, names=s.names(M), generation=s.wire_generation(c), granted=s.assigned(m, P))


@pytest.mark.slow
@pytest.mark.parametrize("effect", [sync_parked_answered, sync_of_settled])
def test_an_answer_to_syncgroup_is_of_the_generation_that_was_asked_for(effect):
    """It has no generation of its own: without the guard an old request gets the present assignment."""
    assert {"known since", "not ahead"} <= refuted(effect)
