"""The coordinator: the classic group on the broker, as ``GroupMetadataManager`` and ``ClassicGroup`` do it.

A timer has no length here. One that nobody can prevent may fire at any time; one that fires although its
owner is at work is a fault.
"""

from __future__ import annotations

from rebalance_verifier.specs.classic import vocabulary as v
from rebalance_verifier.specs.classic.wire import put, refuse
from rebalance_verifier.specs.logic.language import After, State, Term
from z3 import And, Exists, ForAll, If, Implies, Not, Or

# -- words ---------------------------------------------------------------------------------------------


def fresh(s: State, c: Term, m: Term) -> Term:
    """Describe a member id for ``c`` that is in use nowhere."""
    used = [s.member(m), s.pending(m), s.log_member(m), s.id(m), s.names(m), s.stray_names(m)]
    late = [s.left(m), Exists([v.G], s.left_sync(m, v.G))]
    return And(v.of(m) == c, Not(Or(*used, *late)))


def at_work(s: State, m: Term) -> Term:
    """State that the owner of the id can still join and sync in time; it may learn its id only from the
    answer."""
    c = v.of(m)
    return And(s.life(c) == v.UP, s.subscribes(c), Or(s.id(m), s.names(m)))


def has_record(s: State, c: Term) -> Term:
    """State that the coordinator knows a member of that consumer."""
    return Exists([v.N], And(v.of(v.N) == c, s.member(v.N)))


def park(s: State, t: After, c: Term, m: Term) -> None:
    """The JoinGroup of ``c`` goes into the purgatory as that of ``m``, and the group into a rebalance."""
    await_others(t, m)
    t.claim[m, v.P] = s.sent(c, v.P)
    t.supports[m, v.A] = s.sent_list(c, v.A)
    t.topics[m, v.P] = s.sent_topics(c, v.P)
    overtake(s, t, m)
    put(s, t, c, v.JOIN_PARKED, names=m == v.M)


def await_others(t: After, m: Term) -> None:
    """A JoinGroup of ``m`` is in the purgatory, and the group in a rebalance."""
    t.member[m] = True
    t.joined[m] = True
    t.given_up[m] = False
    t.silent[m] = False
    t.group = v.PREPARING


def overtake(s: State, t: After, m: Term) -> None:
    """A JoinGroup is handled as that of ``m``: what its sender left behind before is believed no more.

    The sender is known by its member id, or by its instance id.
    """
    c = v.of(m)
    old = Or(m == v.M, And(v.static(c), v.of(v.M) == c))
    t.left[v.M] = And(s.left(v.M), Not(old))
    t.left_claim[v.M, v.P] = If(old, v.none, s.left_claim(v.M, v.P))
    t.left_list[v.M, v.A] = And(s.left_list(v.M, v.A), Not(old))
    t.left_new[c] = And(s.left_new(c), Not(v.static(c)))
    t.left_new_list[c, v.A] = And(s.left_new_list(c, v.A), Not(v.static(c)))


def remove(s: State, t: After, gone: Term) -> None:
    """``removeMemberAndUpdateGroup``: those M of which ``gone`` holds leave the group, which rebalances
    if it was settled and one of them was a member. ``gone`` holds of one M at most."""
    t.member[v.M] = And(s.member(v.M), Not(gone))
    t.pending[v.M] = And(s.pending(v.M), Not(gone))
    t.leads[v.M] = And(s.leads(v.M), Not(gone))
    for flag in ("joined", "synced", "silent", "given_up"):
        getattr(t, flag)[v.M] = And(getattr(s, flag)(v.M), Not(gone))
    t.claim[v.M, v.P] = If(gone, v.none, s.claim(v.M, v.P))
    t.supports[v.M, v.A] = And(s.supports(v.M, v.A), Not(gone))
    t.topics[v.M, v.P] = And(s.topics(v.M, v.P), Not(gone))
    t.assigned[v.M, v.P] = And(s.assigned(v.M, v.P), Not(gone))
    left = Exists([v.M], And(gone, s.member(v.M)))
    t.group = If(And(left, Or(s.group == v.SETTLED, s.group == v.COMPLETING)), v.PREPARING, s.group)


# -- JoinGroup -----------------------------------------------------------------------------------------


def join_refused_without_id(s: State, t: After, c: Term, m: Term) -> None:
    """A dynamic consumer joins without an id, and is given one to join with (KIP-394)."""
    t.when(s.wire(c) == v.JOIN_NEW, Not(v.static(c)), fresh(s, c, m))
    t.pending[m] = True
    put(s, t, c, v.JOIN_REFUSED, names=m == v.M, error=v.ID_REQUIRED)


def join_with_given_id(s: State, t: After, c: Term, m: Term) -> None:
    """It joins with the id that it was given."""
    t.when(s.wire(c) == v.JOIN, v.of(m) == c, s.names(m), s.pending(m))
    t.pending[m] = False
    park(s, t, c, m)


def join_of_static(s: State, t: After, c: Term, m: Term) -> None:
    """An instance joins that the coordinator does not know."""
    t.when(s.wire(c) == v.JOIN_NEW, v.static(c), fresh(s, c, m))
    t.when(ForAll([v.N], Implies(v.of(v.N) == c, Not(s.member(v.N)))))
    park(s, t, c, m)


def join_of_member(s: State, t: After, c: Term, m: Term) -> None:
    """A member joins, and the group rebalances."""
    t.when(s.wire(c) == v.JOIN, v.of(m) == c, s.names(m), s.member(m))
    park(s, t, c, m)


def join_again(s: State, t: After, c: Term, m: Term) -> None:
    """A member says again what it said, and is answered with the present generation."""
    t.when(s.wire(c) == v.JOIN, v.of(m) == c, s.names(m), s.member(m))
    t.when(Or(s.group == v.COMPLETING, And(s.group == v.SETTLED, Not(s.leads(m)))))
    t.when(ForAll([v.P], And(s.claim(m, v.P) == s.sent(c, v.P), s.topics(m, v.P) == s.sent_topics(c, v.P))))
    t.when(ForAll([v.A], s.supports(m, v.A) == s.sent_list(c, v.A)))
    overtake(s, t, m)
    put(s, t, c, v.JOIN_OK, names=s.names(v.M), generation=s.current, leading=s.leads(m))


def hand_over(s: State, t: After, m: Term, n: Term) -> None:
    """``replaceStaticMember``: the entry of ``n`` moves to ``m``, with assignment and leadership."""
    remove(s, t, n == v.M)
    t.group = s.group
    t.member[m] = True
    t.assigned[m, v.P] = s.assigned(n, v.P)
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
    t.claim[m, v.P] = s.sent(c, v.P)
    t.supports[m, v.A] = s.sent_list(c, v.A)
    t.topics[m, v.P] = s.sent_topics(c, v.P)
    put(s, t, c, v.JOIN_OK, names=m == v.M, generation=s.current)
    log_return(s, t, m, n)
    log_sent(s, t, c, m)


def returns(s: State, t: After, c: Term, m: Term, n: Term) -> None:
    """A static member returns as ``m`` to a stable group that it does not change."""
    t.when(
        s.wire(c) == v.JOIN_NEW, v.static(c), fresh(s, c, m), v.of(n) == c, s.member(n), s.group == v.SETTLED
    )
    t.when(ForAll([v.P], s.topics(n, v.P) == s.sent_topics(c, v.P)))
    t.when(ForAll([v.P], Implies(s.claim(n, v.P) != v.none, s.assigned(n, v.P))))
    t.when(ForAll([v.A], Implies(s.chosen(v.A), s.sent_list(c, v.A))))


def log_sent(s: State, t: After, c: Term, m: Term) -> None:
    """The log learns what ``m`` says of itself."""
    t.log_claim[m, v.P] = s.sent(c, v.P)
    t.log_supports[m, v.A] = s.sent_list(c, v.A)
    t.log_topics[m, v.P] = s.sent_topics(c, v.P)


def log_return(s: State, t: After, m: Term, n: Term) -> None:
    """The log learns that ``m`` has taken the place of ``n``; what ``m`` says of itself is not yet in it."""
    t.log_group = v.SETTLED
    t.log_current = s.current
    t.log_chosen[v.A] = s.chosen(v.A)
    t.log_leads[v.M] = Or(And(s.leads(v.M), n != v.M), And(m == v.M, s.leads(n)))
    t.log_member[v.M] = Or(And(s.member(v.M), n != v.M), m == v.M)
    t.log_claim[v.M, v.P] = If(n == v.M, v.none, s.claim(v.M, v.P))
    t.log_supports[v.M, v.A] = And(s.supports(v.M, v.A), n != v.M)
    t.log_topics[v.M, v.P] = And(s.topics(v.M, v.P), n != v.M)
    t.log_assigned[v.M, v.P] = If(m == v.M, s.assigned(n, v.P), And(s.assigned(v.M, v.P), n != v.M))


def static_replaced(s: State, t: After, c: Term, m: Term, n: Term) -> None:
    """A static member returns, and the group rebalances."""
    t.when(s.wire(c) == v.JOIN_NEW, v.static(c), fresh(s, c, m), v.of(n) == c, s.member(n))
    hand_over(s, t, m, n)
    park(s, t, c, m)


def join_of_unknown(s: State, t: After, c: Term, m: Term) -> None:
    """UNKNOWN_MEMBER_ID."""
    t.when(s.wire(c) == v.JOIN, v.of(m) == c, s.names(m), Not(s.member(m)), Not(s.pending(m)))
    refuse(s, t, c, v.JOIN_REFUSED, v.UNKNOWN)


def join_of_fenced(s: State, t: After, c: Term, m: Term) -> None:
    """FENCED_INSTANCE_ID."""
    t.when(s.wire(c) == v.JOIN, v.of(m) == c, s.names(m), Not(s.member(m)), v.static(c), has_record(s, c))
    refuse(s, t, c, v.JOIN_REFUSED, v.FATAL)


def join_inconsistent(s: State, t: After, c: Term) -> None:
    """INCONSISTENT_GROUP_PROTOCOL: no assignor is on its list and supported by every member."""
    t.when(Or(s.wire(c) == v.JOIN_NEW, s.wire(c) == v.JOIN), s.group != v.EMPTY)
    alone = Exists([v.M], And(s.member(v.M), Not(s.supports(v.M, v.A))))
    t.when(ForAll([v.A], Implies(s.sent_list(c, v.A), alone)))
    refuse(s, t, c, v.JOIN_REFUSED, v.FATAL)


def group_full(s: State, t: After, c: Term) -> None:
    """GROUP_MAX_SIZE_REACHED."""
    t.when(Or(s.wire(c) == v.JOIN_NEW, s.wire(c) == v.JOIN))
    refuse(s, t, c, v.JOIN_REFUSED, v.FATAL)


# -- the end of the join phase -------------------------------------------------------------------------


def stays(s: State, m: Term) -> Term:
    """In the group after the join phase: it came, or it is static."""
    return And(s.member(m), Or(s.joined(m), v.static(v.of(m))))


def join_phase_ends(s: State, t: After, g: Term, l: Term, a: Term) -> None:  # noqa: E741
    """``completeClassicGroupJoin``: everybody came or was given up, and the generation rises.

    ``l`` leads: the leader if it came, else any that did. ``a`` is an assignor that all support. A static
    member that did not come is represented by what it claimed last, and as specified by what it was
    assigned since, as of the last generation.
    """
    t.when(s.group == v.PREPARING, v.lt(s.current, g), ForAll([v.M], _came(s, v.M)))
    t.when(s.member(l), s.joined(l), Or(s.leads(l), ForAll([v.M], Implies(s.leads(v.M), Not(s.joined(v.M))))))
    t.when(ForAll([v.M], Implies(stays(s, v.M), s.supports(v.M, a))))
    t.group = v.COMPLETING
    t.current = g
    t.leads[v.M] = l == v.M
    t.chosen[v.A] = a == v.A
    t.member[v.M] = stays(s, v.M)
    t.joined[v.M] = False
    t.given_up[v.M] = False
    t.synced[v.M] = False
    t.silent[v.M] = And(stays(s, v.M), Not(s.joined(v.M)))
    t.assigned[v.M, v.P] = And(s.assigned(v.M, v.P), stays(s, v.M), Not(s.joined(v.M)))
    held = Or(s.assigned(v.M, v.P), s.claim(v.M, v.P) != v.none)
    represented = Exists([v.Q], s.assigned(v.M, v.Q))
    claimed = If(Or(s.joined(v.M), Not(represented)), s.claim(v.M, v.P), If(held, s.current, v.none))
    t.claim[v.M, v.P] = If(stays(s, v.M), claimed, v.none)
    t.supports[v.M, v.A] = And(s.supports(v.M, v.A), stays(s, v.M))
    t.topics[v.M, v.P] = And(s.topics(v.M, v.P), stays(s, v.M))


def join_phase_ends_empty(s: State, t: After, g: Term) -> None:
    """Nobody came and nobody stays."""
    t.when(s.group == v.PREPARING, v.lt(s.current, g), ForAll([v.M], _came(s, v.M)))
    t.when(ForAll([v.M], Not(stays(s, v.M))))
    t.group = v.EMPTY
    t.current = g
    t.chosen[v.A] = False
    t.claim[v.M, v.P] = v.none
    for relation in ("member", "leads", "joined", "given_up", "synced", "silent"):
        getattr(t, relation)[v.M] = False
    t.supports[v.M, v.A] = False
    t.topics[v.M, v.P] = False
    t.assigned[v.M, v.P] = False
    log_nobody(t, g)


def log_nobody(t: After, g: Term) -> None:
    """In the log is a group without members, of generation ``g``."""
    t.log_group = v.EMPTY
    t.log_current = g
    t.log_chosen[v.A] = False
    t.log_leads[v.M] = False
    t.log_member[v.M] = False
    t.log_claim[v.M, v.P] = v.none
    t.log_supports[v.M, v.A] = False
    t.log_topics[v.M, v.P] = False
    t.log_assigned[v.M, v.P] = False


def _came(s: State, m: Term) -> Term:
    return Implies(s.member(m), Or(s.joined(m), s.given_up(m)))


def join_answered(s: State, t: After, c: Term, m: Term) -> None:
    """The answer to a JoinGroup whose phase has ended."""
    t.when(s.wire(c) == v.JOIN_PARKED, v.of(m) == c, s.names(m), s.member(m), Not(s.joined(m)))
    put(s, t, c, v.JOIN_OK, names=m == v.M, generation=s.current, leading=s.leads(m))


def join_of_removed(s: State, t: After, c: Term, m: Term) -> None:
    """A parked JoinGroup whose member was removed: UNKNOWN_MEMBER_ID."""
    t.when(s.wire(c) == v.JOIN_PARKED, v.of(m) == c, s.names(m), Not(s.member(m)))
    refuse(s, t, c, v.JOIN_REFUSED, v.UNKNOWN)


def join_of_replaced(s: State, t: After, c: Term, m: Term) -> None:
    """A parked JoinGroup whose instance has another id: FENCED_INSTANCE_ID."""
    t.when(
        s.wire(c) == v.JOIN_PARKED, v.of(m) == c, s.names(m), Not(s.member(m)), v.static(c), has_record(s, c)
    )
    refuse(s, t, c, v.JOIN_REFUSED, v.FATAL)


# -- SyncGroup -----------------------------------------------------------------------------------------


def _syncs(s: State, c: Term, m: Term) -> Term:
    return And(s.wire(c) == v.SYNC, v.of(m) == c, s.names(m))


def sync_of_unknown(s: State, t: After, c: Term, m: Term) -> None:
    """UNKNOWN_MEMBER_ID."""
    t.when(_syncs(s, c, m), Or(s.group == v.EMPTY, Not(s.member(m))))
    refuse(s, t, c, v.SYNC_REFUSED, v.UNKNOWN)


def sync_of_fenced(s: State, t: After, c: Term, m: Term) -> None:
    """FENCED_INSTANCE_ID."""
    t.when(_syncs(s, c, m), Not(s.member(m)), v.static(c), has_record(s, c))
    refuse(s, t, c, v.SYNC_REFUSED, v.FATAL)


def sync_of_old(s: State, t: After, c: Term, m: Term) -> None:
    """ILLEGAL_GENERATION."""
    t.when(_syncs(s, c, m), s.member(m), s.wire_generation(c) != s.current)
    refuse(s, t, c, v.SYNC_REFUSED, v.ILLEGAL)


def sync_in_rebalance(s: State, t: After, c: Term, m: Term) -> None:
    """REBALANCE_IN_PROGRESS."""
    t.when(_syncs(s, c, m), s.member(m), s.wire_generation(c) == s.current, s.group == v.PREPARING)
    refuse(s, t, c, v.SYNC_REFUSED, v.IN_PROGRESS)


def sync_parks(s: State, t: After, c: Term, m: Term) -> None:
    """It waits for the leader's."""
    t.when(_syncs(s, c, m), s.member(m), s.wire_generation(c) == s.current, s.group == v.COMPLETING)
    t.when(Not(And(s.leads(m), s.leading(c))))
    t.synced[m] = True
    put(s, t, c, v.SYNC_PARKED, names=s.names(v.M), generation=s.current)


def sync_of_settled(s: State, t: After, c: Term, m: Term) -> None:
    """The group has settled already: the stored assignment."""
    t.when(_syncs(s, c, m), s.member(m), s.wire_generation(c) == s.current, s.group == v.SETTLED)
    t.synced[m] = True
    put(s, t, c, v.SYNC_OK, names=s.names(v.M), generation=s.wire_generation(c), granted=s.assigned(m, v.P))


def leader_syncs(s: State, t: After, c: Term, m: Term) -> None:
    """The leader's SyncGroup in time: stored and appended to the log."""
    decides(s, t, c, m)
    t.group = v.SETTLED
    t.synced[m] = True
    t.assigned[v.M, v.P] = And(s.member(v.M), s.offer(c, v.M, v.P))
    put(s, t, c, v.SYNC_OK, names=s.names(v.M), generation=s.current, granted=s.offer(c, m, v.P))
    log_decision(s, t, c)


def decides(s: State, t: After, c: Term, m: Term) -> None:
    """The leader's SyncGroup arrives in time."""
    t.when(_syncs(s, c, m), s.member(m), s.wire_generation(c) == s.current, s.group == v.COMPLETING)
    t.when(s.leads(m), s.leading(c))


def log_decision(s: State, t: After, c: Term) -> None:
    """The log learns what the SyncGroup of ``c`` assigns."""
    log_members(s, t)
    t.log_assigned[v.M, v.P] = And(s.member(v.M), s.offer(c, v.M, v.P))


def log_members(s: State, t: After) -> None:
    """The log learns who is in the group as it settles, and what they claim."""
    t.log_group = v.SETTLED
    t.log_current = s.current
    t.log_chosen[v.A] = s.chosen(v.A)
    t.log_leads[v.M] = s.leads(v.M)
    t.log_member[v.M] = s.member(v.M)
    t.log_claim[v.M, v.P] = s.claim(v.M, v.P)
    t.log_supports[v.M, v.A] = s.supports(v.M, v.A)
    t.log_topics[v.M, v.P] = s.topics(v.M, v.P)


def sync_parked_answered(s: State, t: After, c: Term, m: Term) -> None:
    """The answer to a SyncGroup that waited for the leader's."""
    t.when(s.wire(c) == v.SYNC_PARKED, v.of(m) == c, s.names(m), s.member(m))
    t.when(s.group == v.SETTLED, s.wire_generation(c) == s.current)
    put(s, t, c, v.SYNC_OK, names=s.names(v.M), generation=s.wire_generation(c), granted=s.assigned(m, v.P))


def sync_parked_refused(s: State, t: After, c: Term) -> None:
    """A parked SyncGroup whose generation will not be settled any more: REBALANCE_IN_PROGRESS."""
    over = Or(s.group == v.PREPARING, s.group == v.EMPTY, s.current != s.wire_generation(c))
    t.when(s.wire(c) == v.SYNC_PARKED, over)
    refuse(s, t, c, v.SYNC_REFUSED, v.IN_PROGRESS)


# -- timeouts ------------------------------------------------------------------------------------------


def session_expires(s: State, t: After, m: Term) -> None:
    """The session of an id whose owner is not there."""
    t.when(Or(s.member(m), s.pending(m)), Not(at_work(s, m)), Not(_beats(s, m)))
    remove(s, t, m == v.M)


def _beats(s: State, m: Term) -> Term:
    at_state = Or(s.state(v.of(m)) == v.STABLE, s.state(v.of(m)) == v.SYNCING)
    return And(s.life(v.of(m)) == v.HUNG, s.id(m), at_state)


def session_lost(s: State, t: After, m: Term) -> None:
    """The session of one who is at work: its heartbeats did not arrive."""
    t.when(Or(s.member(m), s.pending(m)))
    remove(s, t, m == v.M)


def _misses_join(s: State, m: Term) -> Term:
    return And(s.group == v.PREPARING, s.member(m), Not(s.joined(m)), Not(s.given_up(m)))


def rebalance_timeout(s: State, t: After, m: Term) -> None:
    """The rebalance timeout passes for a member that cannot come."""
    t.when(_misses_join(s, m), Not(at_work(s, m)))
    t.given_up[m] = True


def too_slow_to_join(s: State, t: After, m: Term) -> None:
    """It passes for one that is at work."""
    t.when(_misses_join(s, m))
    t.given_up[m] = True


def _misses_sync(s: State, m: Term) -> Term:
    waits = Or(s.group == v.COMPLETING, s.group == v.SETTLED)
    return And(waits, s.member(m), Not(s.synced(m)), Not(s.silent(m)))


def sync_timeout(s: State, t: After, m: Term) -> None:
    """A member that does not sync is removed (KAFKA-12890), but for a static one that is away."""
    t.when(_misses_sync(s, m), Not(at_work(s, m)))
    remove(s, t, m == v.M)


def too_slow_to_sync(s: State, t: After, m: Term) -> None:
    """A member that is at work misses the timeout for SyncGroup."""
    t.when(_misses_sync(s, m))
    remove(s, t, m == v.M)
