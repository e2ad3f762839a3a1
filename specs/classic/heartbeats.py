"""Heartbeats and commits, from both ends: what they tell the member, also when they are late."""

from __future__ import annotations

from rebalance_verifier.specs.classic.coordinator import has_record
from rebalance_verifier.specs.classic.member import NO, YES, fail, owns, reset
from rebalance_verifier.specs.classic.vocabulary import (
    ANSWER,
    COMMIT,
    COMPLETING,
    EMPTY,
    FATAL,
    HEARTBEAT,
    HUNG,
    ILLEGAL,
    IN_PROGRESS,
    NO_STRAY,
    PREPARING,
    STABLE,
    SYNCING,
    UNKNOWN,
    UP,
    M,
    P,
    none,
    of,
    static,
)
from rebalance_verifier.specs.classic.wire import clear_stray, put_stray
from rebalance_verifier.specs.logic.language import After, State, Term
from z3 import And, ForAll, If, Implies, Not, Or

# -- heartbeats ----------------------------------------------------------------------------------------


def beats(s: State, c: Term) -> Term:
    """State that the heartbeat thread is at work."""
    at_work = And(Or(s.life(c) == UP, s.life(c) == HUNG), s.identified(c), s.generation(c) != none)
    return And(at_work, Or(s.state(c) == STABLE, s.state(c) == SYNCING))


def heartbeat_of_unknown(s: State, t: After, c: Term, m: Term) -> None:
    """UNKNOWN_MEMBER_ID."""
    t.when(beats(s, c), of(m) == c, s.id(m), Or(s.group == EMPTY, Not(s.member(m))))
    reset(s, t, c, keep_id=NO)


def heartbeat_of_fenced(s: State, t: After, c: Term, m: Term, n: Term) -> None:
    """FENCED_INSTANCE_ID: the instance has another member id now; poll throws."""
    t.when(beats(s, c), static(c), of(m) == c, s.id(m), Not(s.member(m)), of(n) == c, s.member(n))
    fail(s, t, c)


def heartbeat_of_old(s: State, t: After, c: Term, m: Term) -> None:
    """ILLEGAL_GENERATION."""
    t.when(beats(s, c), of(m) == c, s.id(m), s.member(m), s.generation(c) != s.current)
    reset(s, t, c, keep_id=YES)


def heartbeat_in_rebalance(s: State, t: After, c: Term, m: Term) -> None:
    """REBALANCE_IN_PROGRESS: rejoin, and keep what is owned."""
    t.when(beats(s, c), of(m) == c, s.id(m), s.member(m), s.generation(c) == s.current)
    t.when(s.group == PREPARING, s.state(c) == STABLE, Not(s.rejoin(c)))
    t.rejoin[c] = True


# -- late heartbeats and commits: the member --------------------------------------------------------------


def heartbeat_late(s: State, t: After, c: Term) -> None:
    """A heartbeat leaves and does not arrive yet."""
    t.when(beats(s, c), s.stray(c) == NO_STRAY)
    put_stray(s, t, c, HEARTBEAT, names=s.id(M), generation=s.generation(c))


def commit_late(s: State, t: After, c: Term) -> None:
    """A commit leaves and does not arrive yet. One that is answered at once changes nothing."""
    t.when(beats(s, c), s.life(c) == UP, s.state(c) == STABLE, s.stray(c) == NO_STRAY)
    put_stray(s, t, c, COMMIT, names=s.id(M), generation=s.generation(c), committed=owns(s, c, P))


def late_answer(s: State, t: After, c: Term) -> None:
    """A late answer that costs nothing: to an older membership, or REBALANCE_IN_PROGRESS."""
    t.when(s.stray(c) == ANSWER, Or(s.life(c) == UP, s.life(c) == HUNG))
    t.when(Or(s.stray_error(c) == IN_PROGRESS, Not(_stray_of_present(s, c))))
    must_rejoin = And(s.stray_error(c) == IN_PROGRESS, s.state(c) == STABLE)
    t.rejoin[c] = Or(s.rejoin(c), must_rejoin)
    clear_stray(s, t, c)


def late_answer_expels(s: State, t: After, c: Term) -> None:
    """A late answer for the present membership: it is gone."""
    t.when(s.stray(c) == ANSWER, Or(s.life(c) == UP, s.life(c) == HUNG), _stray_of_present(s, c))
    t.when(Or(s.stray_error(c) == UNKNOWN, s.stray_error(c) == ILLEGAL))
    reset(s, t, c, keep_id=s.stray_error(c) == ILLEGAL)
    clear_stray(s, t, c)


def late_answer_fails(s: State, t: After, c: Term) -> None:
    """A late FENCED_INSTANCE_ID."""
    t.when(s.stray(c) == ANSWER, Or(s.life(c) == UP, s.life(c) == HUNG), _stray_of_present(s, c))
    t.when(s.stray_error(c) == FATAL)
    fail(s, t, c)
    clear_stray(s, t, c)


def _stray_of_present(s: State, c: Term) -> Term:
    same = ForAll([M], Implies(of(M) == c, s.id(M) == s.stray_names(M)))
    return And(s.generation(c) == s.stray_generation(c), same)


# -- late heartbeats and commits: the coordinator ---------------------------------------------------------


def accepts(s: State, m: Term, g: Term) -> Term:
    """State that a commit of ``m`` in generation ``g`` would be accepted; between join and sync one of a
    transaction."""
    return And(s.group != EMPTY, s.member(m), g == s.current)


def _late(s: State, c: Term, m: Term) -> Term:
    return And(Or(s.stray(c) == HEARTBEAT, s.stray(c) == COMMIT), of(m) == c, s.stray_names(m))


def late_request_accepted(s: State, t: After, c: Term, m: Term) -> None:
    """It is answered without an error, which has no effect."""
    heartbeat = And(
        s.stray(c) == HEARTBEAT, s.group != PREPARING, s.member(m), s.stray_generation(c) == s.current
    )
    t.when(_late(s, c, m), Or(And(s.stray(c) == COMMIT, accepts(s, m, s.stray_generation(c))), heartbeat))
    clear_stray(s, t, c)


def late_request_of_unknown(s: State, t: After, c: Term, m: Term) -> None:
    """UNKNOWN_MEMBER_ID."""
    t.when(_late(s, c, m), Or(s.group == EMPTY, Not(s.member(m))))
    _answer(s, t, c, UNKNOWN)


def late_request_of_fenced(s: State, t: After, c: Term, m: Term) -> None:
    """FENCED_INSTANCE_ID."""
    t.when(_late(s, c, m), Not(s.member(m)), static(c), has_record(s, c))
    _answer(s, t, c, FATAL)


def late_request_of_old(s: State, t: After, c: Term, m: Term) -> None:
    """ILLEGAL_GENERATION."""
    t.when(_late(s, c, m), s.member(m), s.stray_generation(c) != s.current)
    _answer(s, t, c, ILLEGAL)


def late_request_in_rebalance(s: State, t: After, c: Term, m: Term) -> None:
    """REBALANCE_IN_PROGRESS: to a heartbeat in the join phase, to a commit between join and sync."""
    t.when(_late(s, c, m), s.member(m), s.stray_generation(c) == s.current)
    phase = If(s.stray(c) == HEARTBEAT, PREPARING, COMPLETING)
    t.when(s.group == phase)
    _answer(s, t, c, IN_PROGRESS)


def _answer(s: State, t: After, c: Term, error: Term) -> None:
    put_stray(s, t, c, ANSWER, names=s.stray_names(M), generation=s.stray_generation(c), error=error)
