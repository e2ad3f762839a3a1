"""The member: ConsumerCoordinator and AbstractCoordinator of one consumer, as ``model`` does it.

Each function is one action, a formula over the state before (``s``) and after (``t``) for one consumer
``c``; ``specs.logic.language`` tells how to read it. A callback of the listener is a step of its own, so that
what happens between two callbacks is seen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import z3
from rebalance_verifier.specs.classic import contract
from rebalance_verifier.specs.classic import vocabulary as v
from rebalance_verifier.specs.classic.wire import clear, put
from rebalance_verifier.specs.logic.language import ANY, After, State, Term
from z3 import And, ForAll, If, Implies, Not, Or

YES, NO = z3.BoolVal(True), z3.BoolVal(False)

# -- words ---------------------------------------------------------------------------------------------


def owns(s: State, c: Term, p: Term) -> Term:
    """``c`` owns ``p``."""
    return s.since(c, p) != v.none


def participates(s: State, m: Term) -> Term:
    """State that the consumer of ``m`` is the member ``m`` of the group, and has not been told otherwise."""
    return And(s.id(m), s.member(m), s.generation(v.of(m)) != v.none)


def reset(s: State, t: After, c: Term, *, keep_id: Term) -> None:
    """``resetStateAndGeneration``: the membership is gone, what it owned is lost at the next poll."""
    t.state[c] = v.UNJOINED
    t.generation[c] = v.none
    t.identified[c] = And(s.identified(c), keep_id)
    t.id[v.M] = And(s.id(v.M), Implies(v.of(v.M) == c, keep_id))
    t.rejoin[c] = True
    t.prepare[c] = True


def drop(s: State, t: After, c: Term, gone: Term) -> None:
    """A callback takes away those P of which ``gone`` holds; the listener is told of what was owned."""
    t.since[c, v.P] = If(gone, v.none, s.since(c, v.P))
    t.told[c, v.P] = And(s.told(c, v.P), Not(And(gone, owns(s, c, v.P))))


def blank(s: State, t: After, c: Term, *, keep_id: Term = NO) -> None:
    """Nothing is left of the consumer's state but its configuration, and its id where it keeps that."""
    reset(s, t, c, keep_id=keep_id)
    t.since[c, v.P] = v.none
    t.told[c, v.P] = False
    t.resubscribed[c] = False
    t.outdated[c] = False
    t.subscribes[c] = False
    t.subscribed[c, v.P] = False
    t.received[c] = False
    t.got[c, v.P] = False


def same_id(s: State, c: Term) -> Term:
    """State that what is under way carries the member id that the consumer has now."""
    return ForAll([v.M], Implies(v.of(v.M) == c, s.id(v.M) == s.names(v.M)))


# -- onJoinPrepare and JoinGroup -----------------------------------------------------------------------


def can_join(s: State, c: Term) -> Term:
    """It polls, wants to join, and waits for nothing."""
    wants = And(s.subscribes(c), Or(s.rejoin(c), s.resubscribed(c), s.outdated(c)))
    return And(s.life(c) == v.UP, wants, s.wire(c) == v.IDLE, Not(s.received(c)))


def partitions_lost(s: State, t: After, c: Term) -> None:
    """onJoinPrepare without a membership: onPartitionsLost of everything."""
    t.when(can_join(s, c), s.prepare(c), s.generation(c) == v.none)
    drop(s, t, c, YES)
    t.prepare[c] = False


def partitions_revoked_to_join(s: State, t: After, c: Term) -> None:
    """onJoinPrepare of a member: EAGER revokes everything, COOPERATIVE what left the subscription."""
    t.when(can_join(s, c), s.prepare(c), s.generation(c) != v.none)
    drop(s, t, c, Or(s.eager(c), Not(s.subscribed(c, v.P))))
    t.prepare[c] = False


def join(s: State, t: After, c: Term) -> None:
    """JoinGroup leaves, and claims what is owned, since when it is owned."""
    t.when(v.honest(c))
    send_join(s, t, c)
    t.sent[c, v.P] = s.since(c, v.P)


def join_with_any_claim(s: State, t: After, c: Term) -> None:
    """A consumer joins whose claims are not to be relied on: stale, invented, or of any age."""
    t.when(Not(v.honest(c)))
    send_join(s, t, c)
    t.sent[c, v.P] = ANY


def send_join(s: State, t: After, c: Term) -> None:
    """JoinGroup leaves, whatever it claims."""
    t.when(can_join(s, c), Not(s.prepare(c)))
    kind = If(s.identified(c), v.JOIN, v.JOIN_NEW)
    put(s, t, c, kind, names=s.id(v.M), sent_list=s.lists(c, v.A), sent_topics=s.subscribed(c, v.P))
    t.state[c] = v.JOINING
    t.rejoin[c] = True
    t.resubscribed[c] = False


def joined(s: State, t: After, c: Term) -> None:
    """The generation is the new one before anything was assigned in it."""
    t.state[c] = v.SYNCING
    t.identified[c] = True
    t.id[v.M] = If(v.of(v.M) == c, s.names(v.M), s.id(v.M))
    t.generation[c] = s.wire_generation(c)
    t.outdated[c] = False


# -- JoinGroup's answer and SyncGroup ------------------------------------------------------------------


def join_answer_too_late(s: State, t: After, c: Term) -> None:
    """JoinGroup is answered after a reset, and the answer is ignored."""
    t.when(s.life(c) == v.UP, s.wire(c) == v.JOIN_OK, s.state(c) != v.JOINING)
    clear(s, t, c)


def follow(s: State, t: After, c: Term) -> None:
    """JoinGroup's answer; an empty SyncGroup follows."""
    t.when(s.life(c) == v.UP, s.wire(c) == v.JOIN_OK, s.state(c) == v.JOINING, Not(s.leading(c)))
    joined(s, t, c)
    put(s, t, c, v.SYNC, names=s.names(v.M), generation=s.wire_generation(c))


def lead_under(clauses: Mapping[str, contract.ContractClause]) -> Callable[[State, After, Term], None]:
    """Return the action ``lead`` of a group whose assignor keeps ``clauses``."""

    def lead(s: State, t: After, c: Term) -> None:
        """onLeaderElected: SyncGroup carries the assignor's answer. Of that only the contract is known."""
        t.when(_elected(s, c), _in_time(s, c))
        joined(s, t, c)
        put(s, t, c, v.SYNC, names=s.names(v.M), generation=s.wire_generation(c), leading=True)
        t.offer[c, v.M, v.P] = ANY
        for clause in clauses.values():
            t.where(clause(s, lambda m, p: t.offer(c, m, p)))

    return lead


lead = lead_under(contract.SAFETY)


def lead_too_late(s: State, t: After, c: Term) -> None:
    """The group has moved on: the decision would be refused unread, an empty SyncGroup stands for it."""
    t.when(_elected(s, c), Not(_in_time(s, c)))
    joined(s, t, c)
    put(s, t, c, v.SYNC, names=s.names(v.M), generation=s.wire_generation(c))


def lead_in_vain(s: State, t: After, c: Term) -> None:
    """The assignor throws: no SyncGroup, and poll throws."""
    t.when(_elected(s, c), _in_time(s, c))
    joined(s, t, c)
    clear(s, t, c)
    t.rejoin[c] = True


def _elected(s: State, c: Term) -> Term:
    return And(s.life(c) == v.UP, s.wire(c) == v.JOIN_OK, s.state(c) == v.JOINING, s.leading(c))


def _in_time(s: State, c: Term) -> Term:
    return And(Or(s.group == v.COMPLETING, s.group == v.SETTLED), s.current == s.wire_generation(c))


# -- SyncGroup's answer and onJoinComplete -------------------------------------------------------------


def sync_answered(s: State, t: After, c: Term) -> None:
    """SyncGroup's answer for the present membership: the assignment waits for the poll thread."""
    t.when(s.life(c) == v.UP, s.wire(c) == v.SYNC_OK, _for_present(s, c))
    t.state[c] = v.STABLE
    t.rejoin[c] = False
    t.received[c] = True
    t.got[c, v.P] = s.granted(c, v.P)
    clear(s, t, c)


def sync_answer_too_late(s: State, t: After, c: Term) -> None:
    """SyncGroup's answer after a reset."""
    t.when(s.life(c) == v.UP, s.wire(c) == v.SYNC_OK, Not(_for_present(s, c)))
    t.rejoin[c] = True
    clear(s, t, c)


def _for_present(s: State, c: Term) -> Term:
    return And(s.state(c) == v.SYNCING, s.generation(c) == s.wire_generation(c), same_id(s, c))


def complete_after_reset(s: State, t: After, c: Term) -> None:
    """A reset came between SyncGroup's answer and the poll thread: no callback, a new start."""
    t.when(s.life(c) == v.UP, s.received(c), Not(_complete(s, c)))
    reset(s, t, c, keep_id=NO)
    _handled(t, c)


def complete_of_old_subscription(s: State, t: After, c: Term, p: Term) -> None:
    """The assignment has what is not subscribed to any more: ignored, rejoin."""
    t.when(s.life(c) == v.UP, s.received(c), _complete(s, c), s.got(c, p), Not(s.subscribed(c, p)))
    t.prepare[c] = True
    t.rejoin[c] = True
    _handled(t, c)


def partitions_revoked(s: State, t: After, c: Term, p: Term) -> None:
    """onJoinComplete, first part: onPartitionsRevoked of what is not assigned any more, then rejoin."""
    t.when(s.life(c) == v.UP, s.received(c), _complete(s, c), _in_subscription(s, c))
    t.when(owns(s, c, p), Not(s.got(c, p)))
    drop(s, t, c, Not(s.got(c, v.P)))
    t.rejoin[c] = Or(s.rejoin(c), Not(s.eager(c)))


def partitions_assigned(s: State, t: After, c: Term) -> None:
    """onJoinComplete, second part: the assignment is owned, onPartitionsAssigned of what is new."""
    t.when(s.life(c) == v.UP, s.received(c), _complete(s, c), _in_subscription(s, c))
    t.when(ForAll([v.P], Implies(owns(s, c, v.P), s.got(c, v.P))))
    t.since[c, v.P] = If(s.got(c, v.P), s.generation(c), v.none)
    t.told[c, v.P] = Or(s.told(c, v.P), And(s.got(c, v.P), Not(owns(s, c, v.P))))
    t.prepare[c] = True
    _handled(t, c)


def assigned_and_thrown(s: State, t: After, c: Term) -> None:
    """A member is assigned partitions, and the listener throws: the next poll completes the join once more,
    unprepared."""
    partitions_assigned(s, t, c)
    t.prepare[c] = s.prepare(c)
    t.received[c] = s.received(c)
    t.got[c, v.P] = s.got(c, v.P)


def _complete(s: State, c: Term) -> Term:
    return And(s.state(c) == v.STABLE, s.generation(c) != v.none)


def _in_subscription(s: State, c: Term) -> Term:
    return ForAll([v.P], Implies(s.got(c, v.P), s.subscribed(c, v.P)))


def _handled(t: After, c: Term) -> None:
    t.received[c] = False
    t.got[c, v.P] = False


# -- errors of JoinGroup and SyncGroup -----------------------------------------------------------------


def refused(s: State, c: Term) -> Term:
    """State that an error has come back for its JoinGroup or SyncGroup."""
    return And(s.life(c) == v.UP, Or(s.wire(c) == v.JOIN_REFUSED, s.wire(c) == v.SYNC_REFUSED))


def _of_present(s: State, c: Term) -> Term:
    """State that the error is for the present membership (KAFKA-9823)."""
    join = And(s.wire(c) == v.JOIN_REFUSED, s.state(c) == v.JOINING)
    return And(
        Or(join, And(s.wire(c) == v.SYNC_REFUSED, s.generation(c) == s.wire_generation(c))), same_id(s, c)
    )


def id_given(s: State, t: After, c: Term) -> None:
    """MEMBER_ID_REQUIRED: the id to join with (KIP-394)."""
    t.when(refused(s, c), s.error(c) == v.ID_REQUIRED, s.state(c) == v.JOINING, Not(s.identified(c)))
    t.identified[c] = True
    t.id[v.M] = If(v.of(v.M) == c, s.names(v.M), s.id(v.M))
    t.generation[c] = v.none
    clear(s, t, c)


def id_given_too_late(s: State, t: After, c: Term) -> None:
    """A member id arrives after a reset, or when the consumer has an id by now."""
    t.when(
        refused(s, c), s.error(c) == v.ID_REQUIRED, Not(And(s.state(c) == v.JOINING, Not(s.identified(c))))
    )
    clear(s, t, c)


def try_again(s: State, t: After, c: Term) -> None:
    """An error that a retry cures: nothing is given up."""
    t.when(refused(s, c), s.error(c) == v.RETRIABLE)
    clear(s, t, c)


def told_to_rejoin(s: State, t: After, c: Term) -> None:
    """REBALANCE_IN_PROGRESS: rejoin with what is owned."""
    t.when(refused(s, c), s.error(c) == v.IN_PROGRESS)
    t.rejoin[c] = True
    clear(s, t, c)


def expelled(s: State, t: After, c: Term) -> None:
    """UNKNOWN_MEMBER_ID or ILLEGAL_GENERATION: the membership is gone; the latter keeps the id."""
    t.when(refused(s, c), Or(s.error(c) == v.UNKNOWN, s.error(c) == v.ILLEGAL), _of_present(s, c))
    reset(s, t, c, keep_id=s.error(c) == v.ILLEGAL)
    clear(s, t, c)


def expelled_before(s: State, t: After, c: Term) -> None:
    """An error ends a membership that is over already."""
    t.when(refused(s, c), Or(s.error(c) == v.UNKNOWN, s.error(c) == v.ILLEGAL), Not(_of_present(s, c)))
    t.rejoin[c] = True
    clear(s, t, c)


def fails(s: State, t: After, c: Term) -> None:
    """An error that no application handles: the consumer closes, without a word to the coordinator."""
    t.when(refused(s, c), s.error(c) == v.FATAL)
    fail(s, t, c)
    clear(s, t, c)


def polls_on(s: State, t: After, c: Term) -> None:
    """A fatal error reaches the application, which should close the consumer and polls on."""
    t.when(refused(s, c), s.error(c) == v.FATAL)
    t.rejoin[c] = True
    clear(s, t, c)


def fail(s: State, t: After, c: Term) -> None:
    """A request under way may still arrive, as after a crash."""
    blank(s, t, c)
    t.unseen[c] = False
    t.life[c] = v.DOWN
