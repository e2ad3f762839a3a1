"""Heartbeats and commits, from both ends: what they tell the member, also when they are late."""

from __future__ import annotations

from rebalance_verifier.specs.classic import vocabulary as v
from rebalance_verifier.specs.classic.coordinator import has_record
from rebalance_verifier.specs.classic.member import NO, YES, fail, owns, reset
from rebalance_verifier.specs.classic.wire import clear_stray, put_stray
from rebalance_verifier.specs.logic.language import After, State, Term
from z3 import And, ForAll, If, Implies, Not, Or

# -- heartbeats ----------------------------------------------------------------------------------------


def beats(s: State, c: Term) -> Term:
    """State that the heartbeat thread is at work."""
    at_work = And(Or(s.life(c) == v.UP, s.life(c) == v.HUNG), s.identified(c), s.generation(c) != v.none)
    return And(at_work, Or(s.state(c) == v.STABLE, s.state(c) == v.SYNCING))


def heartbeat_of_unknown(s: State, t: After, c: Term, m: Term) -> None:
    """UNKNOWN_MEMBER_ID."""
    t.when(beats(s, c), v.of(m) == c, s.id(m), Or(s.group == v.EMPTY, Not(s.member(m))))
    reset(s, t, c, keep_id=NO)


def heartbeat_of_fenced(s: State, t: After, c: Term, m: Term, n: Term) -> None:
    """FENCED_INSTANCE_ID: the instance has another member id now; poll throws."""
    t.when(beats(s, c), v.static(c), v.of(m) == c, s.id(m), Not(s.member(m)), v.of(n) == c, s.member(n))
    fail(s, t, c)


def heartbeat_of_old(s: State, t: After, c: Term, m: Term) -> None:
    """ILLEGAL_GENERATION."""
    t.when(beats(s, c), v.of(m) == c, s.id(m), s.member(m), s.generation(c) != s.current)
    reset(s, t, c, keep_id=YES)


def heartbeat_in_rebalance(s: State, t: After, c: Term, m: Term) -> None:
    """REBALANCE_IN_PROGRESS: rejoin, and keep what is owned."""
    t.when(beats(s, c), v.of(m) == c, s.id(m), s.member(m), s.generation(c) == s.current)
    t.when(s.group == v.PREPARING, s.state(c) == v.STABLE, Not(s.rejoin(c)))
    t.rejoin[c] = True


# -- late heartbeats and commits: the member --------------------------------------------------------------


def heartbeat_late(s: State, t: After, c: Term) -> None:
    """A heartbeat leaves and does not arrive yet."""
    t.when(beats(s, c), s.stray(c) == v.NO_STRAY)
    put_stray(s, t, c, v.HEARTBEAT, names=s.id(v.M), generation=s.generation(c))


def commit_late(s: State, t: After, c: Term) -> None:
    """A commit leaves and does not arrive yet. One that is answered at once changes nothing."""
    t.when(beats(s, c), s.life(c) == v.UP, s.state(c) == v.STABLE, s.stray(c) == v.NO_STRAY)
    put_stray(s, t, c, v.COMMIT, names=s.id(v.M), generation=s.generation(c), committed=owns(s, c, v.P))


def late_answer(s: State, t: After, c: Term) -> None:
    """A late answer that costs nothing: to an older membership, or REBALANCE_IN_PROGRESS."""
    t.when(s.stray(c) == v.ANSWER, Or(s.life(c) == v.UP, s.life(c) == v.HUNG))
    t.when(Or(s.stray_error(c) == v.IN_PROGRESS, Not(_stray_of_present(s, c))))
    must_rejoin = And(s.stray_error(c) == v.IN_PROGRESS, s.state(c) == v.STABLE)
    t.rejoin[c] = Or(s.rejoin(c), must_rejoin)
    clear_stray(s, t, c)


def late_answer_expels(s: State, t: After, c: Term) -> None:
    """A late answer for the present membership: it is gone."""
    t.when(s.stray(c) == v.ANSWER, Or(s.life(c) == v.UP, s.life(c) == v.HUNG), _stray_of_present(s, c))
    t.when(Or(s.stray_error(c) == v.UNKNOWN, s.stray_error(c) == v.ILLEGAL))
    reset(s, t, c, keep_id=s.stray_error(c) == v.ILLEGAL)
    clear_stray(s, t, c)


def late_answer_fails(s: State, t: After, c: Term) -> None:
    """A late FENCED_INSTANCE_ID."""
    t.when(s.stray(c) == v.ANSWER, Or(s.life(c) == v.UP, s.life(c) == v.HUNG), _stray_of_present(s, c))
    t.when(s.stray_error(c) == v.FATAL)
    fail(s, t, c)
    clear_stray(s, t, c)


def _stray_of_present(s: State, c: Term) -> Term:
    same = ForAll([v.M], Implies(v.of(v.M) == c, s.id(v.M) == s.stray_names(v.M)))
    return And(s.generation(c) == s.stray_generation(c), same)


# -- late heartbeats and commits: the coordinator ---------------------------------------------------------


def accepts(s: State, m: Term, g: Term) -> Term:
    """State that a commit of ``m`` in generation ``g`` would be accepted; between join and sync one of a
    transaction."""
    return And(s.group != v.EMPTY, s.member(m), g == s.current)


def _late(s: State, c: Term, m: Term) -> Term:
    return And(Or(s.stray(c) == v.HEARTBEAT, s.stray(c) == v.COMMIT), v.of(m) == c, s.stray_names(m))


def late_request_accepted(s: State, t: After, c: Term, m: Term) -> None:
    """It is answered without an error, which has no effect."""
    heartbeat = And(
        s.stray(c) == v.HEARTBEAT, s.group != v.PREPARING, s.member(m), s.stray_generation(c) == s.current
    )
    t.when(_late(s, c, m), Or(And(s.stray(c) == v.COMMIT, accepts(s, m, s.stray_generation(c))), heartbeat))
    clear_stray(s, t, c)


def late_request_of_unknown(s: State, t: After, c: Term, m: Term) -> None:
    """UNKNOWN_MEMBER_ID."""
    t.when(_late(s, c, m), Or(s.group == v.EMPTY, Not(s.member(m))))
    _answer(s, t, c, v.UNKNOWN)


def late_request_of_fenced(s: State, t: After, c: Term, m: Term) -> None:
    """FENCED_INSTANCE_ID."""
    t.when(_late(s, c, m), Not(s.member(m)), v.static(c), has_record(s, c))
    _answer(s, t, c, v.FATAL)


def late_request_of_old(s: State, t: After, c: Term, m: Term) -> None:
    """ILLEGAL_GENERATION."""
    t.when(_late(s, c, m), s.member(m), s.stray_generation(c) != s.current)
    _answer(s, t, c, v.ILLEGAL)


def late_request_in_rebalance(s: State, t: After, c: Term, m: Term) -> None:
    """REBALANCE_IN_PROGRESS: to a heartbeat in the join phase, to a commit between join and sync."""
    t.when(_late(s, c, m), s.member(m), s.stray_generation(c) == s.current)
    phase = If(s.stray(c) == v.HEARTBEAT, v.PREPARING, v.COMPLETING)
    t.when(s.group == phase)
    _answer(s, t, c, v.IN_PROGRESS)


def _answer(s: State, t: After, c: Term, error: Term) -> None:
    put_stray(s, t, c, v.ANSWER, names=s.stray_names(v.M), generation=s.stray_generation(c), error=error)
