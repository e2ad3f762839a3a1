"""Guards of the protocol left out, one at a time: the proof breaks where the guard is needed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from rebalance_verifier.specs.classic import failover as moves
from rebalance_verifier.specs.classic import heartbeats, member, process
from rebalance_verifier.specs.classic import vocabulary as v
from rebalance_verifier.specs.classic.coordinator import remove
from rebalance_verifier.specs.classic.safety import specification
from rebalance_verifier.specs.classic.wire import clear, put
from rebalance_verifier.specs.classic.zombies import zombies
from rebalance_verifier.specs.logic.language import After, State, Term
from rebalance_verifier.specs.logic.prover import ProofVerdict, prove
from rebalance_verifier.specs.logic.specification import PROGRESS
from rebalance_verifier.specs.logic.theorems import INVARIANTS, theorems
from z3 import And, Not, Or

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
    t.when(s.wire(c) == v.SYNC_PARKED, v.of(m) == c, s.names(m), s.member(m), s.group == v.SETTLED)
    put(s, t, c, v.SYNC_OK, names=s.names(v.M), generation=s.wire_generation(c), granted=s.assigned(m, v.P))


def sync_of_settled(s: State, t: After, c: Term, m: Term) -> None:
    """An old SyncGroup is answered with the present assignment."""
    t.when(s.wire(c) == v.SYNC, v.of(m) == c, s.names(m), s.member(m), s.group == v.SETTLED)
    t.synced[m] = True
    put(s, t, c, v.SYNC_OK, names=s.names(v.M), generation=s.wire_generation(c), granted=s.assigned(m, v.P))


@pytest.mark.nightly
@pytest.mark.parametrize("effect", [sync_parked_answered, sync_of_settled])
def test_an_answer_to_syncgroup_is_of_the_generation_that_was_asked_for(effect):
    """It has no generation of its own: without the guard an old request gets the present assignment."""
    assert {"known since", "not ahead"} <= refuted(effect)


def failover(s: State, t: After) -> None:
    """The new coordinator goes on with what is parked at the old one."""
    moves.load(s, t)


@pytest.mark.slow
def test_that_a_failover_ends_what_is_parked_is_not_needed_for_safety():
    assert not refuted(failover)


# -- zombies -------------------------------------------------------------------------------------------


def open_of_zombies(effect: Effect) -> set[tuple[str, str]]:
    """What is not proved of zombies with that action in place of the one of its name: case and goal."""
    theorem = zombies(specification(effect))
    cases = [case for case in theorem.cases if effect.__name__ in case.name or case.kind == PROGRESS]
    outcomes = prove([replace(theorem, cases=tuple(cases))])
    return {
        (one.case, one.goal) for some in outcomes for one in some if one.verdict is not ProofVerdict.PROVED
    }


def heartbeat_of_unknown(s: State, t: After, c: Term, m: Term) -> None:
    """UNKNOWN_MEMBER_ID is not listened to: what is owned is read for ever."""
    t.when(heartbeats.beats(s, c), v.of(m) == c, s.id(m), Not(s.member(m)))
    t.rejoin[c] = True


def never_beats(s: State, t: After, c: Term, m: Term) -> None:
    """A settled member sends no heartbeats."""
    heartbeats.heartbeat_of_unknown(s, t, c, m)
    t.when(s.state(c) == v.SYNCING)


never_beats.__name__ = "heartbeat_of_unknown"


def poll_too_late(s: State, t: After, c: Term) -> None:
    """It leaves the group, and goes on as if it had not."""
    t.when(s.life(c) == v.UP, Or(s.state(c) == v.SYNCING, s.state(c) == v.STABLE))
    remove(s, t, And(v.of(v.M) == c, s.id(v.M), Not(v.static(c))))


def unsubscribe(s: State, t: After, c: Term) -> None:
    """The same of who unsubscribes."""
    t.when(s.life(c) == v.UP, s.subscribes(c))
    remove(s, t, And(v.of(v.M) == c, s.id(v.M)))
    clear(s, t, c)


def expelled(s: State, t: After, c: Term) -> None:
    """An error of JoinGroup ends the membership, and nothing is to be lost before the next one."""
    member.expelled(s, t, c)
    t.prepare[c] = False


def partitions_lost(s: State, t: After, c: Term) -> None:
    """It prepares, and keeps what it has."""
    t.when(member.can_join(s, c), s.prepare(c), s.generation(c) == v.none)
    t.prepare[c] = False


@pytest.mark.slow
@pytest.mark.covering
@pytest.mark.parametrize(
    ("effect", "expected"),
    [
        (heartbeat_of_unknown, ("heartbeat_of_unknown", "it is out, and prepares")),
        (never_beats, ("it beats", "it beats")),
        (poll_too_late, ("poll_too_late by itself", "who is out by a step of its own knows")),
        (unsubscribe, ("unsubscribe by itself", "who is out by a step of its own knows")),
        (expelled, ("expelled", "it is out, and prepares")),
        (partitions_lost, ("partitions_lost", "it owns nothing")),
    ],
)
def test_a_zombie_that_is_not_noticed_or_made_by_itself_is_found(effect, expected):
    assert expected in open_of_zombies(effect)


@pytest.mark.slow
@pytest.mark.parametrize("effect", [heartbeat_of_unknown, poll_too_late])
def test_exclusive_ownership_says_nothing_of_zombies(effect):
    """Why the theorem is needed: among members all is well."""
    assert not refuted(effect)


def test_nothing_is_open_of_zombies_as_specified():
    assert not open_of_zombies(process.poll_too_late)
