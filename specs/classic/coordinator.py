"""The coordinator: the classic group on the broker, as ``GroupMetadataManager`` and ``ClassicGroup`` do it.

A timer has no length here. One that nobody can prevent may fire at any time; one that fires although its
owner is at work is a fault.
"""

from __future__ import annotations

from rebalance_verifier.specs.classic.vocabulary import (
    COMPLETING,
    EMPTY,
    FATAL,
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
    G,
    M,
    N,
    P,
    Q,
    lt,
    none,
    of,
    static,
)
from rebalance_verifier.specs.classic.wire import put, refuse
from rebalance_verifier.specs.logic.language import After, State, Term
from z3 import And, Exists, ForAll, If, Implies, Not, Or

# -- words ---------------------------------------------------------------------------------------------


def fresh(s: State, c: Term, m: Term) -> Term:
    """Describe a member id for ``c`` that is in use nowhere."""
    used = [s.member(m), s.pending(m), s.log_member(m), s.id(m), s.names(m), s.stray_names(m)]
    late = [s.left(m), Exists([G], s.left_sync(m, G))]
    return And(of(m) == c, Not(Or(*used, *late)))


def at_work(s: State, m: Term) -> Term:
    """State that the owner of the id can still join and sync in time; it may learn its id only from the
    answer."""
    c = of(m)
    return And(s.life(c) == UP, s.subscribes(c), Or(s.id(m), s.names(m)))


def has_record(s: State, c: Term) -> Term:
    """State that the coordinator knows a member of that consumer."""
    return Exists([N], And(of(N) == c, s.member(N)))


def park(s: State, t: After, c: Term, m: Term) -> None:
    """The JoinGroup of ``c`` goes into the purgatory as that of ``m``, and the group into a rebalance."""
    await_others(t, m)
    t.claim[m, P] = s.sent(c, P)
    t.supports[m, A] = s.sent_list(c, A)
    t.topics[m, P] = s.sent_topics(c, P)
    overtake(s, t, m)
    put(s, t, c, JOIN_PARKED, names=m == M)


def await_others(t: After, m: Term) -> None:
    """A JoinGroup of ``m`` is in the purgatory, and the group in a rebalance."""
    t.member[m] = True
    t.joined[m] = True
    t.given_up[m] = False
    t.silent[m] = False
    t.group = PREPARING


def overtake(s: State, t: After, m: Term) -> None:
    """A JoinGroup is handled as that of ``m``: what its sender left behind before is believed no more.

    The sender is known by its member id, or by its instance id.
    """
    c = of(m)
    old = Or(m == M, And(static(c), of(M) == c))
    t.left[M] = And(s.left(M), Not(old))
    t.left_claim[M, P] = If(old, none, s.left_claim(M, P))
    t.left_list[M, A] = And(s.left_list(M, A), Not(old))
    t.left_new[c] = And(s.left_new(c), Not(static(c)))
    t.left_new_list[c, A] = And(s.left_new_list(c, A), Not(static(c)))


def remove(s: State, t: After, gone: Term) -> None:
    """``removeMemberAndUpdateGroup``: those M of which ``gone`` holds leave the group, which rebalances
    if it was settled and one of them was a member. ``gone`` holds of one M at most."""
    t.member[M] = And(s.member(M), Not(gone))
    t.pending[M] = And(s.pending(M), Not(gone))
    t.leads[M] = And(s.leads(M), Not(gone))
    for flag in ("joined", "synced", "silent", "given_up"):
        getattr(t, flag)[M] = And(getattr(s, flag)(M), Not(gone))
    t.claim[M, P] = If(gone, none, s.claim(M, P))
    t.supports[M, A] = And(s.supports(M, A), Not(gone))
    t.topics[M, P] = And(s.topics(M, P), Not(gone))
    t.assigned[M, P] = And(s.assigned(M, P), Not(gone))
    left = Exists([M], And(gone, s.member(M)))
    t.group = If(And(left, Or(s.group == SETTLED, s.group == COMPLETING)), PREPARING, s.group)


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
    t.when(ForAll([N], Implies(of(N) == c, Not(s.member(N)))))
    park(s, t, c, m)


def join_of_member(s: State, t: After, c: Term, m: Term) -> None:
    """A member joins, and the group rebalances."""
    t.when(s.wire(c) == JOIN, of(m) == c, s.names(m), s.member(m))
    park(s, t, c, m)


def join_again(s: State, t: After, c: Term, m: Term) -> None:
    """A member says again what it said, and is answered with the present generation."""
    t.when(s.wire(c) == JOIN, of(m) == c, s.names(m), s.member(m))
    t.when(Or(s.group == COMPLETING, And(s.group == SETTLED, Not(s.leads(m)))))
    t.when(ForAll([P], And(s.claim(m, P) == s.sent(c, P), s.topics(m, P) == s.sent_topics(c, P))))
    t.when(ForAll([A], s.supports(m, A) == s.sent_list(c, A)))
    overtake(s, t, m)
    put(s, t, c, JOIN_OK, names=s.names(M), generation=s.current, leading=s.leads(m))


def hand_over(s: State, t: After, m: Term, n: Term) -> None:
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
    returns(s, t, c, m, n)
    hand_over(s, t, m, n)
    overtake(s, t, m)
    t.silent[m] = False
    t.claim[m, P] = s.sent(c, P)
    t.supports[m, A] = s.sent_list(c, A)
    t.topics[m, P] = s.sent_topics(c, P)
    put(s, t, c, JOIN_OK, names=m == M, generation=s.current)
    log_return(s, t, m, n)
    log_sent(s, t, c, m)


def returns(s: State, t: After, c: Term, m: Term, n: Term) -> None:
    """A static member returns as ``m`` to a stable group that it does not change."""
    t.when(s.wire(c) == JOIN_NEW, static(c), fresh(s, c, m), of(n) == c, s.member(n), s.group == SETTLED)
    t.when(ForAll([P], s.topics(n, P) == s.sent_topics(c, P)))
    t.when(ForAll([P], Implies(s.claim(n, P) != none, s.assigned(n, P))))
    t.when(ForAll([A], Implies(s.chosen(A), s.sent_list(c, A))))


def log_sent(s: State, t: After, c: Term, m: Term) -> None:
    """The log learns what ``m`` says of itself."""
    t.log_claim[m, P] = s.sent(c, P)
    t.log_supports[m, A] = s.sent_list(c, A)
    t.log_topics[m, P] = s.sent_topics(c, P)


def log_return(s: State, t: After, m: Term, n: Term) -> None:
    """The log learns that ``m`` has taken the place of ``n``; what ``m`` says of itself is not yet in it."""
    t.log_group = SETTLED
    t.log_current = s.current
    t.log_chosen[A] = s.chosen(A)
    t.log_leads[M] = Or(And(s.leads(M), n != M), And(m == M, s.leads(n)))
    t.log_member[M] = Or(And(s.member(M), n != M), m == M)
    t.log_claim[M, P] = If(n == M, none, s.claim(M, P))
    t.log_supports[M, A] = And(s.supports(M, A), n != M)
    t.log_topics[M, P] = And(s.topics(M, P), n != M)
    t.log_assigned[M, P] = If(m == M, s.assigned(n, P), And(s.assigned(M, P), n != M))


def static_replaced(s: State, t: After, c: Term, m: Term, n: Term) -> None:
    """A static member returns, and the group rebalances."""
    t.when(s.wire(c) == JOIN_NEW, static(c), fresh(s, c, m), of(n) == c, s.member(n))
    hand_over(s, t, m, n)
    park(s, t, c, m)


def join_of_unknown(s: State, t: After, c: Term, m: Term) -> None:
    """UNKNOWN_MEMBER_ID."""
    t.when(s.wire(c) == JOIN, of(m) == c, s.names(m), Not(s.member(m)), Not(s.pending(m)))
    refuse(s, t, c, JOIN_REFUSED, UNKNOWN)


def join_of_fenced(s: State, t: After, c: Term, m: Term) -> None:
    """FENCED_INSTANCE_ID."""
    t.when(s.wire(c) == JOIN, of(m) == c, s.names(m), Not(s.member(m)), static(c), has_record(s, c))
    refuse(s, t, c, JOIN_REFUSED, FATAL)


def join_inconsistent(s: State, t: After, c: Term) -> None:
    """INCONSISTENT_GROUP_PROTOCOL: no assignor is on its list and supported by every member."""
    t.when(Or(s.wire(c) == JOIN_NEW, s.wire(c) == JOIN), s.group != EMPTY)
    alone = Exists([M], And(s.member(M), Not(s.supports(M, A))))
    t.when(ForAll([A], Implies(s.sent_list(c, A), alone)))
    refuse(s, t, c, JOIN_REFUSED, FATAL)


def group_full(s: State, t: After, c: Term) -> None:
    """GROUP_MAX_SIZE_REACHED."""
    t.when(Or(s.wire(c) == JOIN_NEW, s.wire(c) == JOIN))
    refuse(s, t, c, JOIN_REFUSED, FATAL)


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
    t.when(s.group == PREPARING, lt(s.current, g), ForAll([M], _came(s, M)))
    t.when(s.member(l), s.joined(l), Or(s.leads(l), ForAll([M], Implies(s.leads(M), Not(s.joined(M))))))
    t.when(ForAll([M], Implies(stays(s, M), s.supports(M, a))))
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
    represented = Exists([Q], s.assigned(M, Q))
    claimed = If(Or(s.joined(M), Not(represented)), s.claim(M, P), If(held, s.current, none))
    t.claim[M, P] = If(stays(s, M), claimed, none)
    t.supports[M, A] = And(s.supports(M, A), stays(s, M))
    t.topics[M, P] = And(s.topics(M, P), stays(s, M))


def join_phase_ends_empty(s: State, t: After, g: Term) -> None:
    """Nobody came and nobody stays."""
    t.when(s.group == PREPARING, lt(s.current, g), ForAll([M], _came(s, M)))
    t.when(ForAll([M], Not(stays(s, M))))
    t.group = EMPTY
    t.current = g
    t.chosen[A] = False
    t.claim[M, P] = none
    for relation in ("member", "leads", "joined", "given_up", "synced", "silent"):
        getattr(t, relation)[M] = False
    t.supports[M, A] = False
    t.topics[M, P] = False
    t.assigned[M, P] = False
    log_nobody(t, g)


def log_nobody(t: After, g: Term) -> None:
    """In the log is a group without members, of generation ``g``."""
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
    refuse(s, t, c, JOIN_REFUSED, UNKNOWN)


def join_of_replaced(s: State, t: After, c: Term, m: Term) -> None:
    """A parked JoinGroup whose instance has another id: FENCED_INSTANCE_ID."""
    t.when(s.wire(c) == JOIN_PARKED, of(m) == c, s.names(m), Not(s.member(m)), static(c), has_record(s, c))
    refuse(s, t, c, JOIN_REFUSED, FATAL)


# -- SyncGroup -----------------------------------------------------------------------------------------


def _syncs(s: State, c: Term, m: Term) -> Term:
    return And(s.wire(c) == SYNC, of(m) == c, s.names(m))


def sync_of_unknown(s: State, t: After, c: Term, m: Term) -> None:
    """UNKNOWN_MEMBER_ID."""
    t.when(_syncs(s, c, m), Or(s.group == EMPTY, Not(s.member(m))))
    refuse(s, t, c, SYNC_REFUSED, UNKNOWN)


def sync_of_fenced(s: State, t: After, c: Term, m: Term) -> None:
    """FENCED_INSTANCE_ID."""
    t.when(_syncs(s, c, m), Not(s.member(m)), static(c), has_record(s, c))
    refuse(s, t, c, SYNC_REFUSED, FATAL)


def sync_of_old(s: State, t: After, c: Term, m: Term) -> None:
    """ILLEGAL_GENERATION."""
    t.when(_syncs(s, c, m), s.member(m), s.wire_generation(c) != s.current)
    refuse(s, t, c, SYNC_REFUSED, ILLEGAL)


def sync_in_rebalance(s: State, t: After, c: Term, m: Term) -> None:
    """REBALANCE_IN_PROGRESS."""
    t.when(_syncs(s, c, m), s.member(m), s.wire_generation(c) == s.current, s.group == PREPARING)
    refuse(s, t, c, SYNC_REFUSED, IN_PROGRESS)


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
    put(s, t, c, SYNC_OK, names=s.names(M), generation=s.wire_generation(c), granted=s.assigned(m, P))


def leader_syncs(s: State, t: After, c: Term, m: Term) -> None:
    """The leader's SyncGroup in time: stored and appended to the log."""
    decides(s, t, c, m)
    t.group = SETTLED
    t.synced[m] = True
    t.assigned[M, P] = And(s.member(M), s.offer(c, M, P))
    put(s, t, c, SYNC_OK, names=s.names(M), generation=s.current, granted=s.offer(c, m, P))
    log_decision(s, t, c)


def decides(s: State, t: After, c: Term, m: Term) -> None:
    """The leader's SyncGroup arrives in time."""
    t.when(_syncs(s, c, m), s.member(m), s.wire_generation(c) == s.current, s.group == COMPLETING)
    t.when(s.leads(m), s.leading(c))


def log_decision(s: State, t: After, c: Term) -> None:
    """The log learns what the SyncGroup of ``c`` assigns."""
    log_members(s, t)
    t.log_assigned[M, P] = And(s.member(M), s.offer(c, M, P))


def log_members(s: State, t: After) -> None:
    """The log learns who is in the group as it settles, and what they claim."""
    t.log_group = SETTLED
    t.log_current = s.current
    t.log_chosen[A] = s.chosen(A)
    t.log_leads[M] = s.leads(M)
    t.log_member[M] = s.member(M)
    t.log_claim[M, P] = s.claim(M, P)
    t.log_supports[M, A] = s.supports(M, A)
    t.log_topics[M, P] = s.topics(M, P)


def sync_parked_answered(s: State, t: After, c: Term, m: Term) -> None:
    """The answer to a SyncGroup that waited for the leader's."""
    t.when(s.wire(c) == SYNC_PARKED, of(m) == c, s.names(m), s.member(m))
    t.when(s.group == SETTLED, s.wire_generation(c) == s.current)
    put(s, t, c, SYNC_OK, names=s.names(M), generation=s.wire_generation(c), granted=s.assigned(m, P))


def sync_parked_refused(s: State, t: After, c: Term) -> None:
    """A parked SyncGroup whose generation will not be settled any more: REBALANCE_IN_PROGRESS."""
    over = Or(s.group == PREPARING, s.group == EMPTY, s.current != s.wire_generation(c))
    t.when(s.wire(c) == SYNC_PARKED, over)
    refuse(s, t, c, SYNC_REFUSED, IN_PROGRESS)


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
