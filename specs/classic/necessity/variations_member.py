"""What if: actions of a member, each with one decision of its design made otherwise.

A variation takes the place of the action that it varies, so it does what that one does and then differs. The
names of the functions are ids of ``model.bugs.decisions`` where such a switch stands for the same.
"""

from __future__ import annotations

import z3
from rebalance_verifier.specs.classic import connections, heartbeats, member, process
from rebalance_verifier.specs.classic import vocabulary as v
from rebalance_verifier.specs.classic.member import NO, YES, drop, owns, reset
from rebalance_verifier.specs.classic.wire import clear, clear_stray
from rebalance_verifier.specs.logic.language import ANY, After, Effect, State, Term
from rebalance_verifier.specs.logic.varying import afterwards, around, instead_of, without
from z3 import And, Exists, ForAll, If, Implies, Not, Or

# -- the member: what it claims ------------------------------------------------------------------------


@around(member.join)
def claims_always_empty(effect: Effect, s: State, t: After, c: Term) -> None:
    effect(s, t, c)
    t.sent[c, v.P] = v.none


@around(member.join)
def keep_owned_on_sync_rip(effect: Effect, s: State, t: After, c: Term) -> None:
    """Partitions kept through a refused SyncGroup are claimed since the generation joined last."""
    effect(s, t, c)
    t.sent[c, v.P] = If(owns(s, c, v.P), s.generation(c), v.none)


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
    t.id[v.M] = And(s.id(v.M), v.of(v.M) != c)


@afterwards
def leaves_join_behind(s: State, t: After, c: Term, *_: Term) -> None:
    """A reset by which the member id is forgotten; the JoinGroup of a static member stays under way."""
    t.identified[c] = False
    t.id[v.M] = And(s.id(v.M), v.of(v.M) != c)
    connections.join_stays(s, t, c, And(v.static(c), s.wire(c) == v.JOIN, s.names(v.M), v.of(v.M) == c))
    connections.new_join_stays(s, t, c, And(v.static(c), s.wire(c) == v.JOIN_NEW))


@afterwards
def stays_out(s: State, t: After, c: Term, *_: Term) -> None:
    """A reset of the membership without another JoinGroup."""
    t.rejoin[c] = False


@instead_of(member.expelled)
def expelled_by_old_errors(s: State, t: After, c: Term) -> None:
    """An error of JoinGroup or SyncGroup resets the membership even if it is for an older one."""
    t.when(member.refused(s, c), Or(s.error(c) == v.UNKNOWN, s.error(c) == v.ILLEGAL))
    reset(s, t, c, keep_id=s.error(c) == v.ILLEGAL)
    clear(s, t, c)


@instead_of(heartbeats.late_answer_expels)
def expelled_by_old_answers(s: State, t: After, c: Term) -> None:
    """So does an error of a heartbeat or a commit."""
    t.when(s.stray(c) == v.ANSWER, Or(s.life(c) == v.UP, s.life(c) == v.HUNG))
    t.when(Or(s.stray_error(c) == v.UNKNOWN, s.stray_error(c) == v.ILLEGAL))
    reset(s, t, c, keep_id=s.stray_error(c) == v.ILLEGAL)
    clear_stray(s, t, c)


@around(heartbeats.heartbeat_of_unknown)
def commit_of_unknown(effect: Effect, s: State, t: After, c: Term, m: Term) -> None:
    """The refused request may be the commit before a join, and JoinGroup leaves all the same, as prepared."""
    effect(s, t, c, m)
    _join_may_leave(s, t, c, keeps=NO)


@around(heartbeats.heartbeat_of_old)
def commit_of_old(effect: Effect, s: State, t: After, c: Term, m: Term) -> None:
    """ILLEGAL_GENERATION refuses the commit before a join, and keeps the member id."""
    effect(s, t, c, m)
    _join_may_leave(s, t, c, keeps=YES)


@around(heartbeats.late_answer_expels)
def commit_answered_late(effect: Effect, s: State, t: After, c: Term) -> None:
    """A commit that was under way for a while is refused, and JoinGroup leaves all the same."""
    effect(s, t, c)
    _join_may_leave(s, t, c, keeps=s.stray_error(c) == v.ILLEGAL)


def _join_may_leave(s: State, t: After, c: Term, *, keeps: Term) -> None:
    """The membership that ends may have gone on to prepare a join, not yet as one that is over."""
    gone = Or(s.eager(c), Not(s.subscribed(c, v.P)))
    sends = t.wire(c) != s.wire(c)
    for open_ in ("wire", "state", "resubscribed"):
        getattr(t, open_)[c] = ANY
    for open_ in ("sent", "sent_topics", "since", "told"):
        getattr(t, open_)[c, v.P] = ANY
    t.names[v.M] = ANY
    t.sent_list[c, v.A] = ANY
    kind = If(And(s.identified(c), keeps), v.JOIN, v.JOIN_NEW)
    commits = And(member.can_join(s, c), s.prepare(c), s.generation(c) != v.none, v.honest(c))
    t.where(Implies(sends, And(commits, t.wire(c) == kind)))
    t.where(t.names(v.M) == If(And(sends, v.of(v.M) == c), And(s.id(v.M), keeps), s.names(v.M)))
    t.where(t.sent_list(c, v.A) == If(sends, s.lists(c, v.A), s.sent_list(c, v.A)))
    t.where(t.sent_topics(c, v.P) == If(sends, s.subscribed(c, v.P), s.sent_topics(c, v.P)))
    t.where(t.sent(c, v.P) == If(sends, If(gone, v.none, s.since(c, v.P)), s.sent(c, v.P)))
    t.where(t.since(c, v.P) == If(And(sends, gone), v.none, s.since(c, v.P)))
    t.where(t.told(c, v.P) == And(s.told(c, v.P), Not(And(sends, gone, owns(s, c, v.P)))))
    t.where(t.state(c) == If(sends, v.JOINING, v.UNJOINED))
    t.where(t.resubscribed(c) == And(s.resubscribed(c), Not(sends)))


@instead_of(member.partitions_lost)
def lost_under_way(s: State, t: After, c: Term) -> None:
    """onJoinPrepare may find JoinGroup under way that left unprepared."""
    t.when(_prepares(s, c), s.generation(c) == v.none)
    drop(s, t, c, YES)
    t.prepare[c] = False


@instead_of(member.partitions_revoked_to_join)
def revoked_under_way(s: State, t: After, c: Term) -> None:
    """A membership ends when JoinGroup is answered by then."""
    t.when(_prepares(s, c), s.generation(c) != v.none)
    drop(s, t, c, Or(s.eager(c), Not(s.subscribed(c, v.P))))
    t.prepare[c] = False


@around(member.partitions_lost)
def lost_only_without_id(effect: Effect, s: State, t: After, c: Term) -> None:
    """A consumer that has a member id by then counts as a member, whose membership goes on."""
    effect(s, t, c)
    kept = And(s.identified(c), Not(s.eager(c)), s.subscribed(c, v.P))
    t.since[c, v.P] = If(kept, s.since(c, v.P), v.none)
    t.told[c, v.P] = And(s.told(c, v.P), Or(kept, Not(owns(s, c, v.P))))


def _prepares(s: State, c: Term) -> Term:
    under_way = And(s.life(c) == v.UP, s.subscribes(c), s.wire(c) != v.IDLE, Not(s.received(c)))
    joins = Or(s.state(c) == v.JOINING, s.state(c) == v.SYNCING)
    return And(s.prepare(c), Or(member.can_join(s, c), And(under_way, joins)))


@instead_of(heartbeats.late_answer)
def commit_error_no_rejoin(s: State, t: After, c: Term) -> None:
    """An error of a late request may change nothing, whatever it is."""
    t.when(s.stray(c) == v.ANSWER, Or(s.life(c) == v.UP, s.life(c) == v.HUNG))
    clear_stray(s, t, c)


@around(member.try_again)
def reset_on_retriable(effect: Effect, s: State, t: After, c: Term) -> None:
    effect(s, t, c)
    reset(s, t, c, keep_id=z3.BoolVal(False))


@around(member.told_to_rejoin)
def reset_on_sync_rip(effect: Effect, s: State, t: After, c: Term) -> None:
    """REBALANCE_IN_PROGRESS from SyncGroup resets the membership, but for the member id."""
    effect(s, t, c)
    of_sync = s.wire(c) == v.SYNC_REFUSED
    t.state[c] = If(of_sync, v.UNJOINED, s.state(c))
    t.generation[c] = If(of_sync, v.none, s.generation(c))
    t.prepare[c] = Or(of_sync, s.prepare(c))


@instead_of(member.fails)
def join_rip_fatal(s: State, t: After, c: Term) -> None:
    """REBALANCE_IN_PROGRESS from JoinGroup may end the consumer too."""
    t.when(member.refused(s, c), Or(s.error(c) == v.FATAL, s.error(c) == v.IN_PROGRESS))
    member.fail(s, t, c)
    clear(s, t, c)


@instead_of(process.unsubscribe)
def no_leave_on_unsubscribe(s: State, t: After, c: Term) -> None:
    t.when(s.life(c) == v.UP, s.subscribes(c))
    clear(s, t, c)
    member.blank(s, t, c, keep_id=v.static(c))


@instead_of(process.close)
def no_leave_on_close(s: State, t: After, c: Term) -> None:
    t.when(s.life(c) == v.UP)
    clear(s, t, c)
    member.blank(s, t, c)
    t.unseen[c] = False
    t.life[c] = v.DOWN


# -- the member: what it does between ------------------------------------------------------------------


@around(member.partitions_revoked_to_join)
def protocol_flag_inconsistent(effect: Effect, s: State, t: After, c: Term) -> None:
    """EAGER revokes nothing before it joins but what left the subscription."""
    effect(s, t, c)
    drop(s, t, c, Not(s.subscribed(c, v.P)))


@around(member.partitions_revoked_to_join)
def unsubscribed_are_kept(effect: Effect, s: State, t: After, c: Term) -> None:
    """COOPERATIVE revokes nothing before it joins."""
    effect(s, t, c)
    drop(s, t, c, s.eager(c))


@instead_of(process.reconfigure)
def no_revoke_on_protocol_downgrade(s: State, t: After, c: Term) -> None:
    """One assignor that can do COOPERATIVE is enough not to be EAGER."""
    t.when(s.life(c) == v.DOWN)
    t.lists[c, v.A] = ANY
    t.eager[c] = ANY
    t.where(t.eager(c) != Exists([v.A], And(t.lists(c, v.A), v.cooperative(v.A))))


@around(member.partitions_revoked)
def no_rejoin_after_revoke(effect: Effect, s: State, t: After, c: Term, p: Term) -> None:
    effect(s, t, c, p)
    t.rejoin[c] = s.rejoin(c)


@around(member.partitions_assigned)
def leave_on_empty_assignment(effect: Effect, s: State, t: After, c: Term) -> None:
    """Assigned nothing it may forget that it is a member."""
    effect(s, t, c)
    nothing = ForAll([v.P], Not(s.got(c, v.P)))
    t.state[c] = If(nothing, v.UNJOINED, s.state(c))
    t.generation[c] = If(nothing, v.none, s.generation(c))
    t.identified[c] = And(s.identified(c), Not(nothing))
    t.id[v.M] = And(s.id(v.M), Implies(v.of(v.M) == c, Not(nothing)))


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
    t.since[c, v.P] = s.since(c, v.P)
    t.received[c] = False
    t.got[c, v.P] = False


@around(process.close)
def clear_before_leave_prepare(effect: Effect, s: State, t: After, c: Term) -> None:
    """Owned partitions go without a word to the listener."""
    effect(s, t, c)
    t.told[c, v.P] = s.told(c, v.P)
