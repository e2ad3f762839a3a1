"""The member: ConsumerCoordinator and AbstractCoordinator of one consumer, as ``model`` does it.

Each function is one action, a formula over the state before (``s``) and after (``t``) for one consumer
``c``; ``specs.logic.language`` tells how to read it. A callback of the listener is a step of its own, so that
what happens between two callbacks is seen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import z3
from rebalance_verifier.specs.classic import contract
from rebalance_verifier.specs.classic.vocabulary import (
    COMPLETING,
    DOWN,
    FATAL,
    ID_REQUIRED,
    IDLE,
    ILLEGAL,
    IN_PROGRESS,
    JOIN,
    JOIN_NEW,
    JOIN_OK,
    JOIN_REFUSED,
    JOINING,
    RETRIABLE,
    SETTLED,
    STABLE,
    SYNC,
    SYNC_OK,
    SYNC_REFUSED,
    SYNCING,
    UNJOINED,
    UNKNOWN,
    UP,
    A,
    M,
    P,
    honest,
    none,
    of,
)
from rebalance_verifier.specs.classic.wire import clear, put
from rebalance_verifier.specs.logic.language import ANY, After, State, Term
from z3 import And, ForAll, If, Implies, Not, Or

YES, NO = z3.BoolVal(True), z3.BoolVal(False)

# -- words ---------------------------------------------------------------------------------------------


def owns(s: State, c: Term, p: Term) -> Term:
    """``c`` owns ``p``."""
    return s.since(c, p) != none


def participates(s: State, m: Term) -> Term:
    """State that the consumer of ``m`` is the member ``m`` of the group, and has not been told otherwise."""
    return And(s.id(m), s.member(m), s.generation(of(m)) != none)


def reset(s: State, t: After, c: Term, *, keep_id: Term) -> None:
    """``resetStateAndGeneration``: the membership is gone, what it owned is lost at the next poll."""
    t.state[c] = UNJOINED
    t.generation[c] = none
    t.identified[c] = And(s.identified(c), keep_id)
    t.id[M] = And(s.id(M), Implies(of(M) == c, keep_id))
    t.rejoin[c] = True
    t.prepare[c] = True


def drop(s: State, t: After, c: Term, gone: Term) -> None:
    """A callback takes away those P of which ``gone`` holds; the listener is told of what was owned."""
    t.since[c, P] = If(gone, none, s.since(c, P))
    t.told[c, P] = And(s.told(c, P), Not(And(gone, owns(s, c, P))))


def blank(s: State, t: After, c: Term, *, keep_id: Term = NO) -> None:
    """Nothing is left of the consumer's state but its configuration, and its id where it keeps that."""
    reset(s, t, c, keep_id=keep_id)
    t.since[c, P] = none
    t.told[c, P] = False
    t.resubscribed[c] = False
    t.outdated[c] = False
    t.subscribes[c] = False
    t.subscribed[c, P] = False
    t.received[c] = False
    t.got[c, P] = False


def same_id(s: State, c: Term) -> Term:
    """State that what is under way carries the member id that the consumer has now."""
    return ForAll([M], Implies(of(M) == c, s.id(M) == s.names(M)))


# -- onJoinPrepare and JoinGroup -----------------------------------------------------------------------


def can_join(s: State, c: Term) -> Term:
    """It polls, wants to join, and waits for nothing."""
    wants = And(s.subscribes(c), Or(s.rejoin(c), s.resubscribed(c), s.outdated(c)))
    return And(s.life(c) == UP, wants, s.wire(c) == IDLE, Not(s.received(c)))


def partitions_lost(s: State, t: After, c: Term) -> None:
    """onJoinPrepare without a membership: onPartitionsLost of everything."""
    t.when(can_join(s, c), s.prepare(c), s.generation(c) == none)
    drop(s, t, c, YES)
    t.prepare[c] = False


def partitions_revoked_to_join(s: State, t: After, c: Term) -> None:
    """onJoinPrepare of a member: EAGER revokes everything, COOPERATIVE what left the subscription."""
    t.when(can_join(s, c), s.prepare(c), s.generation(c) != none)
    drop(s, t, c, Or(s.eager(c), Not(s.subscribed(c, P))))
    t.prepare[c] = False


def join(s: State, t: After, c: Term) -> None:
    """JoinGroup leaves, and claims what is owned, since when it is owned."""
    t.when(honest(c))
    send_join(s, t, c)
    t.sent[c, P] = s.since(c, P)


def join_with_any_claim(s: State, t: After, c: Term) -> None:
    """The same of a consumer whose claims are not to be relied on: stale, invented, or of any age."""
    t.when(Not(honest(c)))
    send_join(s, t, c)
    t.sent[c, P] = ANY


def send_join(s: State, t: After, c: Term) -> None:
    """JoinGroup leaves, whatever it claims."""
    t.when(can_join(s, c), Not(s.prepare(c)))
    kind = If(s.identified(c), JOIN, JOIN_NEW)
    put(s, t, c, kind, names=s.id(M), sent_list=s.lists(c, A), sent_topics=s.subscribed(c, P))
    t.state[c] = JOINING
    t.rejoin[c] = True
    t.resubscribed[c] = False


def joined(s: State, t: After, c: Term) -> None:
    """The generation is the new one before anything was assigned in it."""
    t.state[c] = SYNCING
    t.identified[c] = True
    t.id[M] = If(of(M) == c, s.names(M), s.id(M))
    t.generation[c] = s.wire_generation(c)
    t.outdated[c] = False


# -- JoinGroup's answer and SyncGroup ------------------------------------------------------------------


def join_answer_too_late(s: State, t: After, c: Term) -> None:
    """JoinGroup is answered after a reset, and the answer is ignored."""
    t.when(s.life(c) == UP, s.wire(c) == JOIN_OK, s.state(c) != JOINING)
    clear(s, t, c)


def follow(s: State, t: After, c: Term) -> None:
    """JoinGroup's answer; an empty SyncGroup follows."""
    t.when(s.life(c) == UP, s.wire(c) == JOIN_OK, s.state(c) == JOINING, Not(s.leading(c)))
    joined(s, t, c)
    put(s, t, c, SYNC, names=s.names(M), generation=s.wire_generation(c))


def lead_under(clauses: Mapping[str, contract.ContractClause]) -> Callable[[State, After, Term], None]:
    """Return the action ``lead`` of a group whose assignor keeps ``clauses``."""

    def lead(s: State, t: After, c: Term) -> None:
        """onLeaderElected: SyncGroup carries the assignor's answer. Of that only the contract is known."""
        t.when(_elected(s, c), _in_time(s, c))
        joined(s, t, c)
        put(s, t, c, SYNC, names=s.names(M), generation=s.wire_generation(c), leading=True)
        t.offer[c, M, P] = ANY
        for clause in clauses.values():
            t.where(clause(s, lambda m, p: t.offer(c, m, p)))

    return lead


lead = lead_under(contract.SAFETY)


def lead_too_late(s: State, t: After, c: Term) -> None:
    """The group has moved on: the decision would be refused unread, an empty SyncGroup stands for it."""
    t.when(_elected(s, c), Not(_in_time(s, c)))
    joined(s, t, c)
    put(s, t, c, SYNC, names=s.names(M), generation=s.wire_generation(c))


def lead_in_vain(s: State, t: After, c: Term) -> None:
    """The assignor throws: no SyncGroup, and poll throws."""
    t.when(_elected(s, c), _in_time(s, c))
    joined(s, t, c)
    clear(s, t, c)
    t.rejoin[c] = True


def _elected(s: State, c: Term) -> Term:
    return And(s.life(c) == UP, s.wire(c) == JOIN_OK, s.state(c) == JOINING, s.leading(c))


def _in_time(s: State, c: Term) -> Term:
    return And(Or(s.group == COMPLETING, s.group == SETTLED), s.current == s.wire_generation(c))


# -- SyncGroup's answer and onJoinComplete -------------------------------------------------------------


def sync_answered(s: State, t: After, c: Term) -> None:
    """SyncGroup's answer for the present membership: the assignment waits for the poll thread."""
    t.when(s.life(c) == UP, s.wire(c) == SYNC_OK, _for_present(s, c))
    t.state[c] = STABLE
    t.rejoin[c] = False
    t.received[c] = True
    t.got[c, P] = s.granted(c, P)
    clear(s, t, c)


def sync_answer_too_late(s: State, t: After, c: Term) -> None:
    """SyncGroup's answer after a reset."""
    t.when(s.life(c) == UP, s.wire(c) == SYNC_OK, Not(_for_present(s, c)))
    t.rejoin[c] = True
    clear(s, t, c)


def _for_present(s: State, c: Term) -> Term:
    return And(s.state(c) == SYNCING, s.generation(c) == s.wire_generation(c), same_id(s, c))


def complete_after_reset(s: State, t: After, c: Term) -> None:
    """A reset came between SyncGroup's answer and the poll thread: no callback, a new start."""
    t.when(s.life(c) == UP, s.received(c), Not(_complete(s, c)))
    reset(s, t, c, keep_id=NO)
    _handled(t, c)


def complete_of_old_subscription(s: State, t: After, c: Term, p: Term) -> None:
    """The assignment has what is not subscribed to any more: ignored, rejoin."""
    t.when(s.life(c) == UP, s.received(c), _complete(s, c), s.got(c, p), Not(s.subscribed(c, p)))
    t.prepare[c] = True
    t.rejoin[c] = True
    _handled(t, c)


def partitions_revoked(s: State, t: After, c: Term, p: Term) -> None:
    """onJoinComplete, first part: onPartitionsRevoked of what is not assigned any more, then rejoin."""
    t.when(s.life(c) == UP, s.received(c), _complete(s, c), _in_subscription(s, c))
    t.when(owns(s, c, p), Not(s.got(c, p)))
    drop(s, t, c, Not(s.got(c, P)))
    t.rejoin[c] = Or(s.rejoin(c), Not(s.eager(c)))


def partitions_assigned(s: State, t: After, c: Term) -> None:
    """onJoinComplete, second part: the assignment is owned, onPartitionsAssigned of what is new."""
    t.when(s.life(c) == UP, s.received(c), _complete(s, c), _in_subscription(s, c))
    t.when(ForAll([P], Implies(owns(s, c, P), s.got(c, P))))
    t.since[c, P] = If(s.got(c, P), s.generation(c), none)
    t.told[c, P] = Or(s.told(c, P), And(s.got(c, P), Not(owns(s, c, P))))
    t.prepare[c] = True
    _handled(t, c)


def assigned_and_thrown(s: State, t: After, c: Term) -> None:
    """The same, and the listener throws: the next poll completes the join once more, unprepared."""
    partitions_assigned(s, t, c)
    t.prepare[c] = s.prepare(c)
    t.received[c] = s.received(c)
    t.got[c, P] = s.got(c, P)


def _complete(s: State, c: Term) -> Term:
    return And(s.state(c) == STABLE, s.generation(c) != none)


def _in_subscription(s: State, c: Term) -> Term:
    return ForAll([P], Implies(s.got(c, P), s.subscribed(c, P)))


def _handled(t: After, c: Term) -> None:
    t.received[c] = False
    t.got[c, P] = False


# -- errors of JoinGroup and SyncGroup -----------------------------------------------------------------


def refused(s: State, c: Term) -> Term:
    """State that an error has come back for its JoinGroup or SyncGroup."""
    return And(s.life(c) == UP, Or(s.wire(c) == JOIN_REFUSED, s.wire(c) == SYNC_REFUSED))


def _of_present(s: State, c: Term) -> Term:
    """State that the error is for the present membership (KAFKA-9823)."""
    join = And(s.wire(c) == JOIN_REFUSED, s.state(c) == JOINING)
    return And(
        Or(join, And(s.wire(c) == SYNC_REFUSED, s.generation(c) == s.wire_generation(c))), same_id(s, c)
    )


def id_given(s: State, t: After, c: Term) -> None:
    """MEMBER_ID_REQUIRED: the id to join with (KIP-394)."""
    t.when(refused(s, c), s.error(c) == ID_REQUIRED, s.state(c) == JOINING, Not(s.identified(c)))
    t.identified[c] = True
    t.id[M] = If(of(M) == c, s.names(M), s.id(M))
    t.generation[c] = none
    clear(s, t, c)


def id_given_too_late(s: State, t: After, c: Term) -> None:
    """The same after a reset, or when it has an id by now."""
    t.when(refused(s, c), s.error(c) == ID_REQUIRED, Not(And(s.state(c) == JOINING, Not(s.identified(c)))))
    clear(s, t, c)


def try_again(s: State, t: After, c: Term) -> None:
    """An error that a retry cures: nothing is given up."""
    t.when(refused(s, c), s.error(c) == RETRIABLE)
    clear(s, t, c)


def told_to_rejoin(s: State, t: After, c: Term) -> None:
    """REBALANCE_IN_PROGRESS: rejoin with what is owned."""
    t.when(refused(s, c), s.error(c) == IN_PROGRESS)
    t.rejoin[c] = True
    clear(s, t, c)


def expelled(s: State, t: After, c: Term) -> None:
    """UNKNOWN_MEMBER_ID or ILLEGAL_GENERATION: the membership is gone; the latter keeps the id."""
    t.when(refused(s, c), Or(s.error(c) == UNKNOWN, s.error(c) == ILLEGAL), _of_present(s, c))
    reset(s, t, c, keep_id=s.error(c) == ILLEGAL)
    clear(s, t, c)


def expelled_before(s: State, t: After, c: Term) -> None:
    """The same for a membership that is over already."""
    t.when(refused(s, c), Or(s.error(c) == UNKNOWN, s.error(c) == ILLEGAL), Not(_of_present(s, c)))
    t.rejoin[c] = True
    clear(s, t, c)


def fails(s: State, t: After, c: Term) -> None:
    """An error that no application handles: the consumer closes, without a word to the coordinator."""
    t.when(refused(s, c), s.error(c) == FATAL)
    fail(s, t, c)
    clear(s, t, c)


def polls_on(s: State, t: After, c: Term) -> None:
    """The same, and the application, which should close the consumer, polls on."""
    t.when(refused(s, c), s.error(c) == FATAL)
    t.rejoin[c] = True
    clear(s, t, c)


def fail(s: State, t: After, c: Term) -> None:
    """A request under way may still arrive, as after a crash."""
    blank(s, t, c)
    t.unseen[c] = False
    t.life[c] = DOWN
