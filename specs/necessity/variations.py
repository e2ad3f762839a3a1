"""What if: actions of the protocol, each with one decision of its design made otherwise.

A variation takes the place of the action that it varies, so it does what that one does and then differs. The
names of the functions are ids of ``rebalance.model.bugs.decisions`` where such a switch stands for the same.
"""

from __future__ import annotations

import z3
from rebalance.specs.logic.language import ANY, NEXT, After, State, Term, symbols_of
from rebalance.specs.necessity.varying import Effect, afterwards, around, instead_of, without
from rebalance.specs.protocol import connections, coordinator, failover, heartbeats, member, process
from rebalance.specs.protocol.contract import Offer
from rebalance.specs.protocol.member import NO, YES, drop, owns, reset
from rebalance.specs.protocol.vocabulary import (
    ANSWER,
    COMPLETING,
    DOWN,
    FATAL,
    HUNG,
    IDLE,
    ILLEGAL,
    IN_PROGRESS,
    JOIN,
    JOIN_NEW,
    JOINING,
    PREPARING,
    SETTLED,
    SYNC,
    SYNC_REFUSED,
    SYNCING,
    UNJOINED,
    UNKNOWN,
    UP,
    VOCABULARY,
    A,
    C,
    L,
    M,
    N,
    P,
    Q,
    cooperative,
    honest,
    lt,
    none,
    of,
    static,
)
from rebalance.specs.protocol.wire import clear, clear_stray, refuse
from z3 import And, Exists, ForAll, If, Implies, Not, Or

# -- the contract --------------------------------------------------------------------------------------


def max_generation_only(s: State, offer: Offer) -> Term:
    """Of claims only those of the newest generation that anybody claims count (2.8.1 to 3.4.0)."""
    older = Exists([L, Q], And(s.member(L), lt(s.claim(N, P), s.claim(L, Q))))
    other = And(s.member(N), M != N, s.claim(N, P) != none, Not(older))
    return Implies(And(s.chosen(A), cooperative(A), offer(M, P), other), lt(s.claim(N, P), s.claim(M, P)))


def trusted_once(s: State, offer: Offer) -> Term:
    """A partition is offered to one member, or to several that all claim it (2.5.1 to 2.8.0)."""
    both = And(s.claim(M, P) != none, s.claim(N, P) != none)
    return Implies(And(offer(M, P), offer(N, P)), Or(M == N, both))


def trusted_claim(s: State, offer: Offer) -> Term:
    """COOPERATIVE: what somebody else claims is offered only to a member that claims it too."""
    other = And(s.member(N), M != N, s.claim(N, P) != none)
    return Implies(And(s.chosen(A), cooperative(A), offer(M, P), other), s.claim(M, P) != none)


# -- the member: what it claims ------------------------------------------------------------------------


@around(member.join)
def claims_always_empty(effect: Effect, s: State, t: After, c: Term) -> None:
    effect(s, t, c)
    t.sent[c, P] = none


@around(member.join)
def keep_owned_on_sync_rip(effect: Effect, s: State, t: After, c: Term) -> None:
    """What was kept through a refused SyncGroup is claimed since the generation joined last."""
    effect(s, t, c)
    t.sent[c, P] = If(owns(s, c, P), s.generation(c), none)


@around(member.join)
def rejoin_flag_not_latched(effect: Effect, s: State, t: After, c: Term) -> None:
    effect(s, t, c)
    t.rejoin[c] = s.rejoin(c)


# -- the member: how a membership ends -----------------------------------------------------------------


@afterwards
def loses_nothing(s: State, t: After, c: Term, *_: Term) -> None:
    """A reset of the membership without another onJoinPrepare if one had its turn."""
    t.prepare[c] = s.prepare(c)


@afterwards
def forgets(s: State, t: After, c: Term, *_: Term) -> None:
    """A reset of the membership by which the member id is forgotten in any case."""
    t.identified[c] = False
    t.id[M] = And(s.id(M), of(M) != c)


@afterwards
def leaves_join_behind(s: State, t: After, c: Term, *_: Term) -> None:
    """A reset by which the member id is forgotten; the JoinGroup of a static member stays under way."""
    t.identified[c] = False
    t.id[M] = And(s.id(M), of(M) != c)
    connections.join_stays(s, t, c, And(static(c), s.wire(c) == JOIN, s.names(M), of(M) == c))
    connections.new_join_stays(s, t, c, And(static(c), s.wire(c) == JOIN_NEW))


@afterwards
def stays_out(s: State, t: After, c: Term, *_: Term) -> None:
    """A reset of the membership without another JoinGroup."""
    t.rejoin[c] = False


@instead_of(member.expelled)
def expelled_by_old_errors(s: State, t: After, c: Term) -> None:
    """An error of JoinGroup or SyncGroup resets the membership even if it is for an older one."""
    t.when(member.refused(s, c), Or(s.error(c) == UNKNOWN, s.error(c) == ILLEGAL))
    reset(s, t, c, keep_id=s.error(c) == ILLEGAL)
    clear(s, t, c)


@instead_of(heartbeats.late_answer_expels)
def expelled_by_old_answers(s: State, t: After, c: Term) -> None:
    """So does an error of a heartbeat or a commit."""
    t.when(s.stray(c) == ANSWER, Or(s.life(c) == UP, s.life(c) == HUNG))
    t.when(Or(s.stray_error(c) == UNKNOWN, s.stray_error(c) == ILLEGAL))
    reset(s, t, c, keep_id=s.stray_error(c) == ILLEGAL)
    clear_stray(s, t, c)


@around(heartbeats.heartbeat_of_unknown)
def commit_of_unknown(effect: Effect, s: State, t: After, c: Term, m: Term) -> None:
    """What is refused may be the commit before a join, and JoinGroup leaves all the same, as prepared."""
    effect(s, t, c, m)
    _join_may_leave(s, t, c, keeps=NO)


@around(heartbeats.heartbeat_of_old)
def commit_of_old(effect: Effect, s: State, t: After, c: Term, m: Term) -> None:
    """The same with ILLEGAL_GENERATION, which keeps the member id."""
    effect(s, t, c, m)
    _join_may_leave(s, t, c, keeps=YES)


@around(heartbeats.late_answer_expels)
def commit_answered_late(effect: Effect, s: State, t: After, c: Term) -> None:
    """The same of a commit that was under way for a while."""
    effect(s, t, c)
    _join_may_leave(s, t, c, keeps=s.stray_error(c) == ILLEGAL)


def _join_may_leave(s: State, t: After, c: Term, *, keeps: Term) -> None:
    """The membership that ends may have gone on to prepare a join, not yet as one that is over."""
    gone = Or(s.eager(c), Not(s.subscribed(c, P)))
    sends = t.wire(c) != s.wire(c)
    for open_ in ("wire", "state", "resubscribed"):
        getattr(t, open_)[c] = ANY
    for open_ in ("sent", "sent_topics", "since", "told"):
        getattr(t, open_)[c, P] = ANY
    t.names[M] = ANY
    t.sent_list[c, A] = ANY
    kind = If(And(s.identified(c), keeps), JOIN, JOIN_NEW)
    commits = And(member.can_join(s, c), s.prepare(c), s.generation(c) != none, honest(c))
    t.where(Implies(sends, And(commits, t.wire(c) == kind)))
    t.where(t.names(M) == If(And(sends, of(M) == c), And(s.id(M), keeps), s.names(M)))
    t.where(t.sent_list(c, A) == If(sends, s.lists(c, A), s.sent_list(c, A)))
    t.where(t.sent_topics(c, P) == If(sends, s.subscribed(c, P), s.sent_topics(c, P)))
    t.where(t.sent(c, P) == If(sends, If(gone, none, s.since(c, P)), s.sent(c, P)))
    t.where(t.since(c, P) == If(And(sends, gone), none, s.since(c, P)))
    t.where(t.told(c, P) == And(s.told(c, P), Not(And(sends, gone, owns(s, c, P)))))
    t.where(t.state(c) == If(sends, JOINING, UNJOINED))
    t.where(t.resubscribed(c) == And(s.resubscribed(c), Not(sends)))


@instead_of(member.partitions_lost)
def lost_under_way(s: State, t: After, c: Term) -> None:
    """onJoinPrepare may find JoinGroup under way that left unprepared."""
    t.when(_prepares(s, c), s.generation(c) == none)
    drop(s, t, c, YES)
    t.prepare[c] = False


@instead_of(member.partitions_revoked_to_join)
def revoked_under_way(s: State, t: After, c: Term) -> None:
    """The same when JoinGroup is answered by then."""
    t.when(_prepares(s, c), s.generation(c) != none)
    drop(s, t, c, Or(s.eager(c), Not(s.subscribed(c, P))))
    t.prepare[c] = False


def _prepares(s: State, c: Term) -> Term:
    under_way = And(s.life(c) == UP, s.subscribes(c), s.wire(c) != IDLE, Not(s.received(c)))
    joins = Or(s.state(c) == JOINING, s.state(c) == SYNCING)
    return And(s.prepare(c), Or(member.can_join(s, c), And(under_way, joins)))


@instead_of(heartbeats.late_answer)
def commit_error_no_rejoin(s: State, t: After, c: Term) -> None:
    """An error of a late request may change nothing, whatever it is."""
    t.when(s.stray(c) == ANSWER, Or(s.life(c) == UP, s.life(c) == HUNG))
    clear_stray(s, t, c)


@around(member.try_again)
def reset_on_retriable(effect: Effect, s: State, t: After, c: Term) -> None:
    effect(s, t, c)
    reset(s, t, c, keep_id=z3.BoolVal(False))


@around(member.told_to_rejoin)
def reset_on_sync_rip(effect: Effect, s: State, t: After, c: Term) -> None:
    """REBALANCE_IN_PROGRESS from SyncGroup resets the membership, but for the member id."""
    effect(s, t, c)
    of_sync = s.wire(c) == SYNC_REFUSED
    t.state[c] = If(of_sync, UNJOINED, s.state(c))
    t.generation[c] = If(of_sync, none, s.generation(c))
    t.prepare[c] = Or(of_sync, s.prepare(c))


@instead_of(member.fails)
def join_rip_fatal(s: State, t: After, c: Term) -> None:
    """REBALANCE_IN_PROGRESS from JoinGroup may end the consumer too."""
    t.when(member.refused(s, c), Or(s.error(c) == FATAL, s.error(c) == IN_PROGRESS))
    member.fail(s, t, c)
    clear(s, t, c)


@instead_of(process.unsubscribe)
def no_leave_on_unsubscribe(s: State, t: After, c: Term) -> None:
    t.when(s.life(c) == UP, s.subscribes(c))
    clear(s, t, c)
    member.blank(s, t, c, keep_id=static(c))


@instead_of(process.close)
def no_leave_on_close(s: State, t: After, c: Term) -> None:
    t.when(s.life(c) == UP)
    clear(s, t, c)
    member.blank(s, t, c)
    t.unseen[c] = False
    t.life[c] = DOWN


# -- the member: what it does between ------------------------------------------------------------------


@around(member.partitions_revoked_to_join)
def protocol_flag_inconsistent(effect: Effect, s: State, t: After, c: Term) -> None:
    """EAGER revokes nothing before it joins but what left the subscription."""
    effect(s, t, c)
    drop(s, t, c, Not(s.subscribed(c, P)))


@around(member.partitions_revoked_to_join)
def unsubscribed_are_kept(effect: Effect, s: State, t: After, c: Term) -> None:
    """COOPERATIVE revokes nothing before it joins."""
    effect(s, t, c)
    drop(s, t, c, s.eager(c))


@instead_of(process.reconfigure)
def no_revoke_on_protocol_downgrade(s: State, t: After, c: Term) -> None:
    """One assignor that can do COOPERATIVE is enough not to be EAGER."""
    t.when(s.life(c) == DOWN)
    t.lists[c, A] = ANY
    t.eager[c] = ANY
    t.where(t.eager(c) != Exists([A], And(t.lists(c, A), cooperative(A))))


@around(member.partitions_revoked)
def no_rejoin_after_revoke(effect: Effect, s: State, t: After, c: Term, p: Term) -> None:
    effect(s, t, c, p)
    t.rejoin[c] = s.rejoin(c)


@around(member.partitions_assigned)
def leave_on_empty_assignment(effect: Effect, s: State, t: After, c: Term) -> None:
    """Assigned nothing it may forget that it is a member."""
    effect(s, t, c)
    nothing = ForAll([P], Not(s.got(c, P)))
    t.state[c] = If(nothing, UNJOINED, s.state(c))
    t.generation[c] = If(nothing, none, s.generation(c))
    t.identified[c] = And(s.identified(c), Not(nothing))
    t.id[M] = And(s.id(M), Implies(of(M) == c, Not(nothing)))


# -- the member: its listener --------------------------------------------------------------------------


@around(member.partitions_assigned)
def assign_before_revoke_cb(effect: Effect, s: State, t: After, c: Term) -> None:
    """The assignment is owned before the listener has heard of what is not assigned any more."""
    without("since", effect)(s, t, c)


no_snapshot_before_callback = without("state", member.partitions_assigned)
"""The assignment is handled with whatever the generation is by then."""


@around(member.partitions_revoked)
def abort_on_callback_exception(effect: Effect, s: State, t: After, c: Term, p: Term) -> None:
    """The listener throws: it was told, and the consumer goes on as if it had not been."""
    effect(s, t, c, p)
    t.since[c, P] = s.since(c, P)
    t.received[c] = False
    t.got[c, P] = False


@around(process.close)
def clear_before_leave_prepare(effect: Effect, s: State, t: After, c: Term) -> None:
    """What is owned goes without a word to the listener."""
    effect(s, t, c)
    t.told[c, P] = s.told(c, P)


# -- the coordinator: JoinGroup ------------------------------------------------------------------------


@instead_of(coordinator.join_refused_without_id)
def ghost_on_retry(s: State, t: After, c: Term, m: Term) -> None:
    """A dynamic consumer that joins without an id becomes a member at once."""
    t.when(s.wire(c) == JOIN_NEW, Not(static(c)), coordinator.fresh(s, c, m))
    coordinator.park(s, t, c, m)


@instead_of(coordinator.join_of_unknown)
def unknown_member_rejoins(s: State, t: After, c: Term, m: Term) -> None:
    """A member id that was removed joins again as if nothing had happened."""
    t.when(s.wire(c) == JOIN, of(m) == c, s.names(m), Not(s.member(m)), Not(s.pending(m)))
    coordinator.park(s, t, c, m)


@instead_of(coordinator.join_of_static)
def static_replace_only_stable(s: State, t: After, c: Term, m: Term) -> None:
    """In the join phase an instance that is known already becomes another member."""
    t.when(s.wire(c) == JOIN_NEW, static(c), coordinator.fresh(s, c, m))
    t.when(Or(s.group == PREPARING, ForAll([N], Implies(of(N) == c, Not(s.member(N))))))
    coordinator.park(s, t, c, m)


static_rejoin_ignores_subscription = without("topics", coordinator.static_returns)
"""A static member returns to a stable group whatever it subscribes to."""

static_replace_drops_revocation = without("claim", coordinator.static_returns)
"""A static member returns to a stable group although the old process had something to revoke."""


@around(coordinator.static_returns)
def static_replace_not_persisted(effect: Effect, s: State, t: After, c: Term, m: Term, n: Term) -> None:
    """The log keeps the old id of a static member that returns."""
    effect(s, t, c, m, n)
    _log_stays(t)


@around(coordinator.static_returns)
def static_replace_in_completing_no_rebalance(
    effect: Effect, s: State, t: After, c: Term, m: Term, n: Term
) -> None:
    """A static member may also return while the leader assigns, and no rebalance follows.

    Its id is new, so it is in no assignment that is under way; the log does not learn of it.
    """
    without("group", effect)(s, t, c, m, n)
    unassigned = And(s.group == COMPLETING, ForAll([C, P], Not(s.offer(C, m, P))))
    t.when(Or(s.group == SETTLED, unassigned))
    _log_stays(t, unless=s.group == SETTLED)


def _log_stays(t: After, unless: Term = NO) -> None:
    letters = {letter.sort(): letter for letter in (A, M, P)}
    for symbol in VOCABULARY.mutable:
        if symbol.name.startswith("log_"):
            places = tuple(letters[sort] for sort in symbol.arguments)
            kept = [(places, symbol.of()(*places))]
            written = t._assigned.get(symbol.name, kept)
            t._assigned[symbol.name] = [(to, If(unless, value, symbol.of()(*to))) for to, value in written]


_BAG = ("left", "left_claim", "left_list", "left_new", "left_new_list")


def _nothing_of_the_bag(t: After) -> None:
    """What the step does to the JoinGroups that were left behind, it does not."""
    for name in _BAG:
        t._assigned.pop(name, None)
    after = {name + NEXT for name in _BAG}
    t._wheres[:] = [where for where in t._wheres if after.isdisjoint(symbols_of(where))]


@afterwards
def believes(s: State, t: After, *_: Term) -> None:
    """A JoinGroup is handled, and what its sender left behind before may arrive as if it were news."""
    _nothing_of_the_bag(t)


@afterwards
def believes_any(s: State, t: After, *_: Term) -> None:
    """What was left behind is lost or arrives, in any order: some of it, old or young, is left."""
    _nothing_of_the_bag(t)
    for places in (
        (t.left, M),
        (t.left_claim, M, P),
        (t.left_list, M, A),
        (t.left_new, C),
        (t.left_new_list, C, A),
    ):
        symbol, *letters = places
        symbol[tuple(letters)] = ANY
    t.where(Implies(t.left(M), s.left(M)), t.left_list(M, A) == And(t.left(M), s.left_list(M, A)))
    t.where(Implies(t.left_claim(M, P) != none, And(t.left(M), t.left_claim(M, P) == s.left_claim(M, P))))
    t.where(*connections.fewer_new(s, t, C))


@around(connections.left_join_arrives)
def left_join_believed(effect: Effect, s: State, t: After, m: Term) -> None:
    """It claims some of what all claim that were left behind, and not what its sender does by now."""
    believes_any(effect)(s, t, m)
    t._wheres[:] = [where for where in t._wheres if "claim" + NEXT not in symbols_of(where)]
    t.where(Implies(honest(of(m)), Or(t.claim(m, P) == none, t.claim(m, P) == s.left_claim(m, P))))


# -- the coordinator: the end of the join phase --------------------------------------------------------


@around(coordinator.join_phase_ends)
def no_generation_bump(effect: Effect, s: State, t: After, g: Term, l: Term, a: Term) -> None:  # noqa: E741
    """The generation stays what it was."""
    without("lt", effect)(s, t, g, l, a)
    t.when(g == s.current)


@around(coordinator.join_phase_ends)
def silent_static_claims_stale(effect: Effect, s: State, t: After, g: Term, l: Term, a: Term) -> None:  # noqa: E741
    """A static member that did not come is represented by what it claimed last, and nothing else."""
    effect(s, t, g, l, a)
    t.claim[M, P] = If(coordinator.stays(s, M), s.claim(M, P), none)


rebalance_timeout_zero = without("given_up", coordinator.join_phase_ends)
"""The join phase ends although members have yet to come."""


@around(coordinator.join_phase_ends)
def evict_static_on_rebalance_timeout(effect: Effect, s: State, t: After, g: Term, l: Term, a: Term) -> None:  # noqa: E741
    """Static members that did not come are removed."""
    without("supports", effect)(s, t, g, l, a)
    t.when(ForAll([M], Implies(s.joined(M), s.supports(M, a))))
    t.member[M] = s.joined(M)
    t.silent[M] = False
    t.assigned[M, P] = False
    t.claim[M, P] = If(s.joined(M), s.claim(M, P), none)
    t.supports[M, A] = And(s.joined(M), s.supports(M, A))
    t.topics[M, P] = And(s.joined(M), s.topics(M, P))


# -- the coordinator: SyncGroup and the log ------------------------------------------------------------


@around(coordinator.leader_syncs)
def assignment_not_logged(effect: Effect, s: State, t: After, c: Term, m: Term) -> None:
    """The log learns who is in the group, and not what was assigned to them."""
    effect(s, t, c, m)
    t.log_assigned[M, P] = s.assigned(M, P)


@around(coordinator.leader_syncs)
def persist_selected_protocol_only(effect: Effect, s: State, t: After, c: Term, m: Term) -> None:
    effect(s, t, c, m)
    t.log_supports[M, A] = And(s.supports(M, A), s.chosen(A))


@afterwards
def static_removal_not_persisted(s: State, t: After) -> None:
    """A failover, after which a static id that was removed since the last append is back."""
    t.group = s.log_group
    t.member[M] = s.log_member(M)
    t.synced[M] = s.log_member(M)
    t.claim[M, P] = s.log_claim(M, P)
    t.supports[M, A] = s.log_supports(M, A)
    t.topics[M, P] = s.log_topics(M, P)
    t.assigned[M, P] = s.log_assigned(M, P)


@instead_of(failover.sync_while_loading)
def sync_load_error_raw(s: State, t: After, c: Term) -> None:
    """A SyncGroup that arrives while the group is loaded is told what ends the client."""
    t.when(s.wire(c) == SYNC)
    refuse(s, t, c, SYNC_REFUSED, FATAL)
