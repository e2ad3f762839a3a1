"""The coordinator: the classic group on the broker, as ``GroupMetadataManager`` and ``ClassicGroup`` do it.

A timer has no length here. One that nobody can prevent may fire at any time; one that fires although its
owner is at work is a fault.
"""

from __future__ import annotations

import z3
from rebalance.specs.logic.language import After, State, Term
from rebalance.specs.protocol.member import remove
from rebalance.specs.protocol.vocabulary import (
    ANSWER,
    COMMIT,
    COMPLETING,
    EMPTY,
    FATAL,
    HEARTBEAT,
    HUNG,
    ID_REQUIRED,
    ILLEGAL,
    IN_PROGRESS,
    JOIN,
    JOIN_NEW,
    JOIN_OK,
    JOIN_PARKED,
    JOIN_REFUSED,
    PREPARING,
    RETRIABLE,
    SETTLED,
    STABLE,
    SYNC,
    SYNC_OK,
    SYNC_PARKED,
    SYNC_REFUSED,
    SYNCING,
    UNKNOWN,
    UP,
    A,
    C,
    M,
    N,
    P,
    Q,
    lt,
    none,
    of,
    static,
    zero,
)
from rebalance.specs.protocol.wire import clear_stray, put, put_stray, refuse_join, refuse_sync
from z3 import And, If, Implies, Not, Or

# -- words ---------------------------------------------------------------------------------------------


def fresh(s: State, c: Term, m: Term) -> Term:
    """A member id for ``c`` that is in use nowhere."""
    used = [s.member(m), s.pending(m), s.log_member(m), s.id(m), s.names(m), s.stray_names(m)]
    return And(of(m) == c, Not(Or(used)))


def at_work(s: State, m: Term) -> Term:
    """The owner of the id can still join and sync in time; it may learn its id only from the answer."""
    c = of(m)
    return And(s.life(c) == UP, s.subscribes(c), Or(s.id(m), s.names(m)))


def has_record(s: State, c: Term) -> Term:
    """The coordinator knows a member of that consumer."""
    return z3.Exists([N], And(of(N) == c, s.member(N)))


def park(s: State, t: After, c: Term, m: Term) -> None:
    """The JoinGroup of ``c`` goes into the purgatory as that of ``m``, and the group into a rebalance."""
    t.member[m] = True
    t.joined[m] = True
    t.given_up[m] = False
    t.silent[m] = False
    t.claim[m, P] = s.sent(c, P)
    t.supports[m, A] = s.sent_list(c, A)
    t.topics[m, P] = s.sent_topics(c, P)
    t.group = PREPARING
    put(s, t, c, JOIN_PARKED, names=m == M)


# -- JoinGroup -----------------------------------------------------------------------------------------


def join_refused_without_id(s: State, t: After, c: Term, m: Term) -> None:
    """A dynamic consumer joins without an id, and is given one to join with (KIP-394)."""
    t.when(s.wire(c) == JOIN_NEW, Not(static(c)), fresh(s, c, m))
    t.pending[m] = True
    put(s, t, c, JOIN_REFUSED, names=m == M, error=ID_REQUIRED)


def join_with_given_id(s: State, t: After, c: Term, m: Term) -> None:
    """It joins with the id that it was given."""
    t.when(s.wire(c) == JOIN, of(m) == c, s.names(m), s.pending(m))
    t.pending[m] = False
    park(s, t, c, m)


def join_of_static(s: State, t: After, c: Term, m: Term) -> None:
    """An instance joins that the coordinator does not know."""
    t.when(s.wire(c) == JOIN_NEW, static(c), fresh(s, c, m))
    t.when(z3.ForAll([N], Implies(of(N) == c, Not(s.member(N)))))
    park(s, t, c, m)


def join_of_member(s: State, t: After, c: Term, m: Term) -> None:
    """A member joins, and the group rebalances."""
    t.when(s.wire(c) == JOIN, of(m) == c, s.names(m), s.member(m))
    park(s, t, c, m)


def join_again(s: State, t: After, c: Term, m: Term) -> None:
    """A member says again what it said, and is answered with the present generation."""
    t.when(s.wire(c) == JOIN, of(m) == c, s.names(m), s.member(m))
    t.when(Or(s.group == COMPLETING, And(s.group == SETTLED, Not(s.leads(m)))))
    t.when(z3.ForAll([P], And(s.claim(m, P) == s.sent(c, P), s.topics(m, P) == s.sent_topics(c, P))))
    t.when(z3.ForAll([A], s.supports(m, A) == s.sent_list(c, A)))
    put(s, t, c, JOIN_OK, names=s.names(M), generation=s.current, leading=s.leads(m))


def _hand_over(s: State, t: After, m: Term, n: Term) -> None:
    """``replaceStaticMember``: the entry of ``n`` moves to ``m``, with assignment and leadership."""
    remove(s, t, n == M)
    t.group = s.group
    t.member[m] = True
    t.assigned[m, P] = s.assigned(n, P)
    t.leads[m] = s.leads(n)
    for flag in ("joined", "synced", "given_up"):
        getattr(t, flag)[m] = getattr(s, flag)(n)


def static_returns(s: State, t: After, c: Term, m: Term, n: Term) -> None:
    """A static member returns to a stable group that it does not change: no rebalance (KIP-345).

    As specified that takes that the old process had nothing to revoke (U9), and the log learns the new id.
    """
    t.when(s.wire(c) == JOIN_NEW, static(c), fresh(s, c, m), of(n) == c, s.member(n), s.group == SETTLED)
    t.when(z3.ForAll([P], s.topics(n, P) == s.sent_topics(c, P)))
    t.when(z3.ForAll([P], Implies(s.claim(n, P) != none, s.assigned(n, P))))
    t.when(z3.ForAll([A], Implies(s.chosen(A), s.sent_list(c, A))))
    _hand_over(s, t, m, n)
    t.silent[m] = False
    t.claim[m, P] = s.sent(c, P)
    t.supports[m, A] = s.sent_list(c, A)
    t.topics[m, P] = s.sent_topics(c, P)
    put(s, t, c, JOIN_OK, names=m == M, generation=s.current)
    t.log_group = SETTLED
    t.log_current = s.current
    t.log_chosen[A] = s.chosen(A)
    t.log_leads[M] = Or(And(s.leads(M), n != M), And(m == M, s.leads(n)))
    t.log_member[M] = Or(And(s.member(M), n != M), m == M)
    t.log_claim[M, P] = If(m == M, s.sent(c, P), If(n == M, none, s.claim(M, P)))
    t.log_supports[M, A] = If(m == M, s.sent_list(c, A), And(s.supports(M, A), n != M))
    t.log_topics[M, P] = If(m == M, s.sent_topics(c, P), And(s.topics(M, P), n != M))
    t.log_assigned[M, P] = If(m == M, s.assigned(n, P), And(s.assigned(M, P), n != M))


def static_replaced(s: State, t: After, c: Term, m: Term, n: Term) -> None:
    """A static member returns, and the group rebalances."""
    t.when(s.wire(c) == JOIN_NEW, static(c), fresh(s, c, m), of(n) == c, s.member(n))
    _hand_over(s, t, m, n)
    park(s, t, c, m)


def join_of_unknown(s: State, t: After, c: Term, m: Term) -> None:
    """UNKNOWN_MEMBER_ID."""
    t.when(s.wire(c) == JOIN, of(m) == c, s.names(m), Not(s.member(m)), Not(s.pending(m)))
    refuse_join(s, t, c, UNKNOWN)


def join_of_fenced(s: State, t: After, c: Term, m: Term) -> None:
    """FENCED_INSTANCE_ID."""
    t.when(s.wire(c) == JOIN, of(m) == c, s.names(m), Not(s.member(m)), static(c), has_record(s, c))
    refuse_join(s, t, c, FATAL)


def join_inconsistent(s: State, t: After, c: Term) -> None:
    """INCONSISTENT_GROUP_PROTOCOL: no assignor is on its list and supported by every member."""
    t.when(Or(s.wire(c) == JOIN_NEW, s.wire(c) == JOIN), s.group != EMPTY)
    alone = z3.Exists([M], And(s.member(M), Not(s.supports(M, A))))
    t.when(z3.ForAll([A], Implies(s.sent_list(c, A), alone)))
    refuse_join(s, t, c, FATAL)


def group_full(s: State, t: After, c: Term) -> None:
    """GROUP_MAX_SIZE_REACHED."""
    t.when(Or(s.wire(c) == JOIN_NEW, s.wire(c) == JOIN))
    refuse_join(s, t, c, FATAL)


def append_fails(s: State, t: After, c: Term, m: Term) -> None:
    """The append to the log takes too long, and a JoinGroup is told to try again (KAFKA-10870)."""
    t.when(s.wire(c) == JOIN_PARKED, of(m) == c, s.names(m))
    t.joined[m] = False
    refuse_join(s, t, c, IN_PROGRESS)


# -- the end of the join phase -------------------------------------------------------------------------


def stays(s: State, m: Term) -> Term:
    """In the group after the join phase: it came, or it is static."""
    return And(s.member(m), Or(s.joined(m), static(of(m))))


def join_phase_ends(s: State, t: After, g: Term, l: Term, a: Term) -> None:  # noqa: E741
    """``completeClassicGroupJoin``: everybody came or was given up, and the generation rises.

    ``l`` leads: the leader if it came, else any that did. ``a`` is an assignor that all support. A static
    member that did not come is represented by what it claimed last, and as specified by what it was
    assigned since, as of the last generation.
    """
    t.when(s.group == PREPARING, lt(s.current, g), z3.ForAll([M], _came(s, M)))
    t.when(s.member(l), s.joined(l), Or(s.leads(l), z3.ForAll([M], Implies(s.leads(M), Not(s.joined(M))))))
    t.when(z3.ForAll([M], Implies(stays(s, M), s.supports(M, a))))
    t.group = COMPLETING
    t.current = g
    t.leads[M] = l == M
    t.chosen[A] = a == A
    t.member[M] = stays(s, M)
    t.joined[M] = False
    t.given_up[M] = False
    t.synced[M] = False
    t.silent[M] = And(stays(s, M), Not(s.joined(M)))
    t.assigned[M, P] = And(s.assigned(M, P), stays(s, M), Not(s.joined(M)))
    held = Or(s.assigned(M, P), s.claim(M, P) != none)
    represented = z3.Exists([Q], s.assigned(M, Q))
    claimed = If(Or(s.joined(M), Not(represented)), s.claim(M, P), If(held, s.current, none))
    t.claim[M, P] = If(stays(s, M), claimed, none)
    t.supports[M, A] = And(s.supports(M, A), stays(s, M))
    t.topics[M, P] = And(s.topics(M, P), stays(s, M))


def join_phase_ends_empty(s: State, t: After, g: Term) -> None:
    """Nobody came and nobody stays."""
    t.when(s.group == PREPARING, lt(s.current, g), z3.ForAll([M], _came(s, M)))
    t.when(z3.ForAll([M], Not(stays(s, M))))
    t.group = EMPTY
    t.current = g
    t.chosen[A] = False
    t.claim[M, P] = none
    for relation in ("member", "leads", "joined", "given_up", "synced", "silent"):
        getattr(t, relation)[M] = False
    t.supports[M, A] = False
    t.topics[M, P] = False
    t.assigned[M, P] = False
    t.log_group = EMPTY
    t.log_current = g
    t.log_chosen[A] = False
    t.log_leads[M] = False
    t.log_member[M] = False
    t.log_claim[M, P] = none
    t.log_supports[M, A] = False
    t.log_topics[M, P] = False
    t.log_assigned[M, P] = False


def _came(s: State, m: Term) -> Term:
    return Implies(s.member(m), Or(s.joined(m), s.given_up(m)))


def join_answered(s: State, t: After, c: Term, m: Term) -> None:
    """The answer to a JoinGroup whose phase has ended."""
    t.when(s.wire(c) == JOIN_PARKED, of(m) == c, s.names(m), s.member(m), Not(s.joined(m)))
    put(s, t, c, JOIN_OK, names=m == M, generation=s.current, leading=s.leads(m))


def join_of_removed(s: State, t: After, c: Term, m: Term) -> None:
    """A parked JoinGroup whose member was removed: UNKNOWN_MEMBER_ID."""
    t.when(s.wire(c) == JOIN_PARKED, of(m) == c, s.names(m), Not(s.member(m)))
    refuse_join(s, t, c, UNKNOWN)


def join_of_replaced(s: State, t: After, c: Term, m: Term) -> None:
    """A parked JoinGroup whose instance has another id: FENCED_INSTANCE_ID."""
    t.when(s.wire(c) == JOIN_PARKED, of(m) == c, s.names(m), Not(s.member(m)), static(c), has_record(s, c))
    refuse_join(s, t, c, FATAL)


# -- SyncGroup -----------------------------------------------------------------------------------------


def _syncs(s: State, c: Term, m: Term) -> Term:
    return And(s.wire(c) == SYNC, of(m) == c, s.names(m))


def sync_of_unknown(s: State, t: After, c: Term, m: Term) -> None:
    """UNKNOWN_MEMBER_ID."""
    t.when(_syncs(s, c, m), Or(s.group == EMPTY, Not(s.member(m))))
    refuse_sync(s, t, c, UNKNOWN)


def sync_of_fenced(s: State, t: After, c: Term, m: Term) -> None:
    """FENCED_INSTANCE_ID."""
    t.when(_syncs(s, c, m), Not(s.member(m)), static(c), has_record(s, c))
    refuse_sync(s, t, c, FATAL)


def sync_of_old(s: State, t: After, c: Term, m: Term) -> None:
    """ILLEGAL_GENERATION."""
    t.when(_syncs(s, c, m), s.member(m), s.wire_generation(c) != s.current)
    refuse_sync(s, t, c, ILLEGAL)


def sync_in_rebalance(s: State, t: After, c: Term, m: Term) -> None:
    """REBALANCE_IN_PROGRESS."""
    t.when(_syncs(s, c, m), s.member(m), s.wire_generation(c) == s.current, s.group == PREPARING)
    refuse_sync(s, t, c, IN_PROGRESS)


def sync_parks(s: State, t: After, c: Term, m: Term) -> None:
    """It waits for the leader's."""
    t.when(_syncs(s, c, m), s.member(m), s.wire_generation(c) == s.current, s.group == COMPLETING)
    t.when(Not(And(s.leads(m), s.leading(c))))
    t.synced[m] = True
    put(s, t, c, SYNC_PARKED, names=s.names(M), generation=s.current)


def sync_of_settled(s: State, t: After, c: Term, m: Term) -> None:
    """The group has settled already: the stored assignment."""
    t.when(_syncs(s, c, m), s.member(m), s.wire_generation(c) == s.current, s.group == SETTLED)
    t.synced[m] = True
    put(s, t, c, SYNC_OK, names=s.names(M), generation=s.current, granted=s.assigned(m, P))


def leader_syncs(s: State, t: After, c: Term, m: Term) -> None:
    """The leader's SyncGroup in time: stored and appended to the log."""
    t.when(_syncs(s, c, m), s.member(m), s.wire_generation(c) == s.current, s.group == COMPLETING)
    t.when(s.leads(m), s.leading(c))
    t.group = SETTLED
    t.synced[m] = True
    t.assigned[M, P] = And(s.member(M), s.offer(c, M, P))
    put(s, t, c, SYNC_OK, names=s.names(M), generation=s.current, granted=s.offer(c, m, P))
    t.log_group = SETTLED
    t.log_current = s.current
    t.log_chosen[A] = s.chosen(A)
    t.log_leads[M] = s.leads(M)
    t.log_member[M] = s.member(M)
    t.log_claim[M, P] = s.claim(M, P)
    t.log_supports[M, A] = s.supports(M, A)
    t.log_topics[M, P] = s.topics(M, P)
    t.log_assigned[M, P] = And(s.member(M), s.offer(c, M, P))


def sync_parked_answered(s: State, t: After, c: Term, m: Term) -> None:
    """The answer to a SyncGroup that waited for the leader's."""
    t.when(s.wire(c) == SYNC_PARKED, of(m) == c, s.names(m), s.member(m))
    t.when(s.group == SETTLED, s.wire_generation(c) == s.current)
    put(s, t, c, SYNC_OK, names=s.names(M), generation=s.current, granted=s.assigned(m, P))


def sync_parked_refused(s: State, t: After, c: Term) -> None:
    """A parked SyncGroup whose generation will not be settled any more: REBALANCE_IN_PROGRESS."""
    over = Or(s.group == PREPARING, s.group == EMPTY, s.current != s.wire_generation(c))
    t.when(s.wire(c) == SYNC_PARKED, over)
    refuse_sync(s, t, c, IN_PROGRESS)


# -- late heartbeats and commits -----------------------------------------------------------------------


def accepts(s: State, m: Term, g: Term) -> Term:
    """A commit of ``m`` in generation ``g`` would be accepted."""
    return And(s.group != EMPTY, s.group != COMPLETING, s.member(m), g == s.current)


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


# -- timeouts ------------------------------------------------------------------------------------------


def session_expires(s: State, t: After, m: Term) -> None:
    """The session of an id whose owner is not there."""
    t.when(Or(s.member(m), s.pending(m)), Not(at_work(s, m)), Not(_beats(s, m)))
    remove(s, t, m == M)


def _beats(s: State, m: Term) -> Term:
    at_state = Or(s.state(of(m)) == STABLE, s.state(of(m)) == SYNCING)
    return And(s.life(of(m)) == HUNG, s.id(m), at_state)


def session_lost(s: State, t: After, m: Term) -> None:
    """The session of one who is at work: its heartbeats did not arrive."""
    t.when(Or(s.member(m), s.pending(m)))
    remove(s, t, m == M)


def _misses_join(s: State, m: Term) -> Term:
    return And(s.group == PREPARING, s.member(m), Not(s.joined(m)), Not(s.given_up(m)))


def rebalance_timeout(s: State, t: After, m: Term) -> None:
    """The rebalance timeout passes for a member that cannot come."""
    t.when(_misses_join(s, m), Not(at_work(s, m)))
    t.given_up[m] = True


def too_slow_to_join(s: State, t: After, m: Term) -> None:
    """It passes for one that is at work."""
    t.when(_misses_join(s, m))
    t.given_up[m] = True


def _misses_sync(s: State, m: Term) -> Term:
    waits = Or(s.group == COMPLETING, s.group == SETTLED)
    return And(waits, s.member(m), Not(s.synced(m)), Not(s.silent(m)))


def sync_timeout(s: State, t: After, m: Term) -> None:
    """A member that does not sync is removed (KAFKA-12890), but for a static one that is away."""
    t.when(_misses_sync(s, m), Not(at_work(s, m)))
    remove(s, t, m == M)


def too_slow_to_sync(s: State, t: After, m: Term) -> None:
    """The same for one that is at work."""
    t.when(_misses_sync(s, m))
    remove(s, t, m == M)


# -- failover ------------------------------------------------------------------------------------------


def _load(s: State, t: After) -> None:
    """Another broker knows what is in the log. As specified a static id that was removed stays so (U8)."""

    def known(m: Term) -> Term:
        return And(s.log_member(m), Or(Not(static(of(m))), s.member(m)))

    purged = z3.Exists([M], And(s.log_member(M), static(of(M)), Not(s.member(M))))
    t.group = If(purged, PREPARING, s.log_group)
    t.current = s.log_current
    t.leads[M] = s.log_leads(M)
    t.chosen[A] = s.log_chosen(A)
    t.member[M] = known(M)
    t.synced[M] = known(M)
    for relation in ("pending", "joined", "silent", "given_up"):
        getattr(t, relation)[M] = False
    t.claim[M, P] = If(known(M), s.log_claim(M, P), none)
    t.supports[M, A] = And(known(M), s.log_supports(M, A))
    t.topics[M, P] = And(known(M), s.log_topics(M, P))
    t.assigned[M, P] = And(known(M), s.log_assigned(M, P))


def _cut(s: State, t: After, sync_error: Term) -> None:
    """Requests at the old coordinator are lost; answers that left it may still arrive."""

    def joins(c: Term) -> Term:
        return Or(s.wire(c) == JOIN, s.wire(c) == JOIN_NEW, s.wire(c) == JOIN_PARKED)

    def syncs(c: Term) -> Term:
        return Or(s.wire(c) == SYNC, s.wire(c) == SYNC_PARKED)

    cut = Or(joins(C), syncs(C))
    of_cut = Or(joins(of(M)), syncs(of(M)))
    t.wire[C] = If(joins(C), JOIN_REFUSED, If(syncs(C), SYNC_REFUSED, s.wire(C)))
    error = If(s.wire(C) == SYNC, sync_error, RETRIABLE)
    t.error[C] = If(cut, error, s.error(C))
    t.names[M] = And(s.names(M), Not(of_cut))
    t.wire_generation[C] = If(cut, none, s.wire_generation(C))
    t.leading[C] = And(s.leading(C), Not(cut))
    t.sent[C, P] = If(cut, none, s.sent(C, P))
    t.sent_list[C, A] = And(s.sent_list(C, A), Not(cut))
    t.sent_topics[C, P] = And(s.sent_topics(C, P), Not(cut))
    t.offer[C, M, P] = And(s.offer(C, M, P), Not(cut))


def failover(s: State, t: After) -> None:
    """The group moves to another broker. Lost: the phase of a rebalance, parked requests, pending ids,
    generations and removals since the last append. A generation may thus come twice."""
    _load(s, t)
    _cut(s, t, RETRIABLE)


def failover_while_loading(s: State, t: After) -> None:
    """The same; a SyncGroup arrives while the group is loaded, and is told that it rebalances."""
    _load(s, t)
    _cut(s, t, IN_PROGRESS)


def group_expires(s: State, t: After) -> None:
    """An empty group is deleted; the next one of that name starts at the first generation."""
    t.when(s.group == EMPTY)
    t.current = zero


STEPS = (
    join_refused_without_id, join_with_given_id, join_of_static, join_of_member, join_again,
    static_returns, static_replaced, join_of_unknown, join_of_fenced, join_inconsistent,
    join_phase_ends, join_phase_ends_empty, join_answered, join_of_removed, join_of_replaced,
    sync_of_unknown, sync_of_fenced, sync_of_old, sync_in_rebalance, sync_parks, sync_of_settled,
    leader_syncs, sync_parked_answered, sync_parked_refused,
    late_request_accepted, late_request_of_unknown, late_request_of_fenced, late_request_of_old,
    late_request_in_rebalance, session_expires, rebalance_timeout, sync_timeout,
)  # fmt: skip
"""What the coordinator does by itself."""

FAULTS = (
    group_full, append_fails, session_lost, too_slow_to_join, too_slow_to_sync,
    failover, failover_while_loading, group_expires,
)  # fmt: skip
"""What goes wrong there."""
