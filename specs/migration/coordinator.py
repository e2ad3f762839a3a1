"""The coordinator of a group between the protocols: the classic group, classic members of a consumer group,
and the conversions. As ``model.consumer.conversion`` and ``migration.classic_group`` do it.

In a consumer group a JoinGroup is a heartbeat that shows everything: ``presents`` makes one of it, the steps
of the consumer protocol handle that, and ``returns`` answers.
"""

from __future__ import annotations

from rebalance_verifier.specs.consumer import coordinator
from rebalance_verifier.specs.consumer.coordinator import gone, raised
from rebalance_verifier.specs.consumer.member import NO, YES, put
from rebalance_verifier.specs.consumer.vocabulary import (
    ANSWER,
    BEAT,
    IDLE,
    JOIN,
    REFUSAL,
    STABLE,
    UNREVOKED,
    M,
    N,
    P,
    lt,
    none,
)
from rebalance_verifier.specs.logic.language import ANY, After, State, Term
from rebalance_verifier.specs.migration.member import calls
from rebalance_verifier.specs.migration.vocabulary import (
    CLASSIC,
    COMPLETING,
    CONSUMER,
    EMPTY,
    JOIN_GROUP,
    JOIN_OK,
    JOIN_WAITS,
    NO_GROUP,
    PREPARING,
    REFUSED,
    SETTLED,
    SYNC,
    SYNC_OK,
    SYNC_WAITS,
)
from z3 import And, Exists, ForAll, If, Implies, Not, Or


def nobody(s: State) -> Term:
    """State that the group has no member."""
    return ForAll([N], Not(s.member(N)))


def right(s: State, m: Term, p: Term) -> Term:
    """Return what nobody else may be given: what is assigned, to be revoked, or claimed in a classic
    group."""
    return And(s.member(m), Or(s.assigned(m, p), s.pending(m, p), s.claimed(m, p)))


def shown(s: State, m: Term) -> Term:
    """State that a consumer group is handling its JoinGroup."""
    return And(s.wire(m) != IDLE, s.call(m) == JOIN_WAITS)


def idle(s: State) -> Term:
    """It is handling no JoinGroup: what happens to one there is one step, and several in the logic."""
    return ForAll([N], Not(shown(s, N)))


def may_enter(s: State, m: Term) -> Term:
    """Describe a JoinGroup of a member, or of one that does not come with a generation: who comes with one
    under an id that is not known still has what it had under it."""
    return And(s.call(m) == JOIN_GROUP, Or(s.member(m), s.call_epoch(m) == none))


# -- the classic group ---------------------------------------------------------------------------------


def rebalances(s: State, t: After) -> None:
    """A rebalance begins; one that is interrupted while it assigns leaves nobody an assignment."""
    t.phase = PREPARING
    t.assigned[M, P] = And(s.assigned(M, P), s.phase != COMPLETING)


def enters(s: State, t: After, m: Term) -> None:
    """JoinGroup reaches a classic group, or one of nobody, which is a classic one then."""
    t.when(may_enter(s, m), Or(s.kind == CLASSIC, And(nobody(s), idle(s))))
    rebalances(s, t)
    t.kind = CLASSIC
    t.member[m] = True
    t.classic[m] = True
    t.joined[m] = True
    t.claimed[m, P] = s.call_parts(m, P)
    t.subscribed[m, P] = ANY
    t.call[m] = JOIN_WAITS


def phase_ends(s: State, t: After, g: Term) -> None:
    """Every member has joined: a new generation."""
    t.when(s.kind == CLASSIC, s.phase == PREPARING, lt(s.group_epoch, g), Not(nobody(s)))
    t.when(ForAll([M], Implies(s.member(M), s.joined(M))))
    next_generation(s, t, g)


def next_generation(s: State, t: After, g: Term) -> None:
    """Whose JoinGroup waits is answered."""
    waits = s.call(M) == JOIN_WAITS
    t.group_epoch = g
    t.target_epoch = g
    t.phase = COMPLETING
    t.joined[M] = False
    t.call[M] = If(waits, JOIN_OK, s.call(M))
    t.call_epoch[M] = If(waits, g, s.call_epoch(M))
    t.call_parts[M, P] = And(s.call_parts(M, P), Not(waits))


def sync_waits(s: State, t: After, m: Term) -> None:
    """SyncGroup arrives before the decision."""
    t.when(s.call(m) == SYNC, s.kind == CLASSIC, s.phase == COMPLETING)
    t.when(s.member(m), s.call_epoch(m) == s.group_epoch)
    t.call[m] = SYNC_WAITS


def sync_of_settled(s: State, t: After, m: Term) -> None:
    """SyncGroup arrives behind it."""
    t.when(s.call(m) == SYNC, s.kind == CLASSIC, s.phase == SETTLED)
    t.when(s.member(m), s.call_epoch(m) == s.group_epoch)
    calls(t, m, SYNC_OK, epoch=s.group_epoch, parts=s.assigned(m, P))


def awaited(s: State, m: Term) -> Term:
    """State that its SyncGroup waits for the decision."""
    return And(s.member(m), s.call(m) == SYNC_WAITS, s.call_epoch(m) == s.group_epoch)


def decides(s: State, t: After) -> None:
    """The leader's decision: nobody is given what another one claims (the contract of the assignor)."""
    t.when(s.kind == CLASSIC, s.phase == COMPLETING, Exists([M], awaited(s, M)))
    t.phase = SETTLED
    t.assigned[M, P] = ANY
    t.where(Implies(t.assigned(M, P), s.member(M)))
    t.where(Implies(And(t.assigned(M, P), t.assigned(N, P)), M == N))
    t.where(Implies(And(t.assigned(M, P), s.member(N), s.claimed(N, P)), M == N))
    announces(s, t)


def announces(s: State, t: After) -> None:
    """Whose SyncGroup waits hears of the decision."""
    t.call[M] = If(awaited(s, M), SYNC_OK, s.call(M))
    t.call_parts[M, P] = ANY
    t.where(t.call_parts(M, P) == If(awaited(s, M), t.assigned(M, P), s.call_parts(M, P)))


def leaves(s: State, t: After, m: Term) -> None:
    """A member of a classic group is removed."""
    t.when(s.kind == CLASSIC, s.member(m))
    rebalances(s, t)
    t.phase = If(ForAll([N], Implies(s.member(N), m == N)), EMPTY, PREPARING)
    erased(t, m)


def erased(t: After, m: Term) -> None:
    """There is no record of it."""
    for flag in ("member", "classic", "joined"):
        getattr(t, flag)[m] = False
    t.at[m] = none
    t.previous[m] = none
    t.record[m] = STABLE
    for relation in ("assigned", "pending", "target", "subscribed", "claimed"):
        getattr(t, relation)[m, P] = False


# -- classic members of a consumer group ---------------------------------------------------------------


def presents(s: State, t: After, m: Term) -> None:
    """JoinGroup reaches a consumer group: a heartbeat at the member's own epoch that shows everything."""
    t.when(may_enter(s, m), s.kind == CONSUMER, Not(nobody(s)), s.wire(m) == IDLE)
    shows(s, t, m)


def shows(s: State, t: After, m: Term) -> None:
    """Its JoinGroup is handled as a heartbeat."""
    known = s.member(m)
    put(t, m, If(known, BEAT, JOIN), epoch=s.at(m), carries=YES, asks=known, sent=s.call_parts(m, P))
    t.call[m] = JOIN_WAITS


def returns(s: State, t: After, m: Term) -> None:
    """It is handled, and answered at once."""
    t.when(s.call(m) == JOIN_WAITS, s.wire(m) == ANSWER)
    calls(t, m, JOIN_OK, epoch=s.wire_epoch(m))
    put(t, m, IDLE)


def returns_nothing(s: State, t: After, m: Term) -> None:
    """The group has become another one in between."""
    t.when(s.call(m) == JOIN_WAITS, s.wire(m) == REFUSAL)
    calls(t, m, REFUSED)
    put(t, m, IDLE)


def sync_of_epoch(s: State, t: After, m: Term) -> None:
    """SyncGroup of a classic member in a consumer group is for its own epoch."""
    t.when(s.call(m) == SYNC, s.kind == CONSUMER, s.member(m), s.call_epoch(m) == s.at(m))
    calls(t, m, SYNC_OK, epoch=s.at(m), parts=s.assigned(m, P))


# -- conversion ----------------------------------------------------------------------------------------


def upgraded(s: State, t: After, m: Term, g: Term) -> None:
    """A client of the consumer protocol joins a classic group. Its members are where their generation is,
    hold what was assigned to them, and have to revoke what they claimed and nobody was assigned."""
    t.when(s.kind == CLASSIC, s.wire(m) == JOIN, Not(s.member(m)))
    converts(s, t, g, And(s.claimed(M, P), ForAll([N], Not(s.assigned(N, P)))))


def converts(s: State, t: After, g: Term, pending: Term) -> None:
    """The classic group becomes a consumer group in which this is pending."""
    raised(s, t, g)
    t.kind = CONSUMER
    t.phase = EMPTY
    t.target_epoch = s.group_epoch
    t.at[M] = If(s.member(M), s.group_epoch, none)
    t.previous[M] = If(s.member(M), s.group_epoch, none)
    t.pending[M, P] = pending
    t.record[M] = If(Exists([P], pending), UNREVOKED, STABLE)
    t.target[M, P] = s.assigned(M, P)
    t.joined[M] = False
    t.claimed[M, P] = False


def downgraded(s: State, t: After, m: Term) -> None:
    """The last member of the consumer protocol is removed: a classic group, in the generation of its epoch,
    that rebalances. What a member held, to be revoked or not, is assigned to it."""
    t.when(s.kind == CONSUMER, s.member(m), Not(s.classic(m)), idle(s))
    t.when(ForAll([N], Implies(And(s.member(N), m != N), s.classic(N))))
    t.when(Exists([N], And(s.member(N), m != N)))
    t.kind = CLASSIC
    t.phase = PREPARING
    t.target_epoch = s.group_epoch
    for function in ("at", "previous"):
        getattr(t, function)[M] = none
    t.record[M] = STABLE
    t.assigned[M, P] = Or(s.assigned(M, P), s.pending(M, P))
    t.pending[M, P] = NO
    t.target[M, P] = NO
    erased(t, m)


def not_found(s: State, t: After, m: Term) -> None:
    """A client of the consumer protocol is turned away from a classic group, by the broker's policy."""
    t.when(s.kind == CLASSIC, s.wire(m) == JOIN)
    put(t, m, REFUSAL)


def founded(s: State, t: After, m: Term) -> None:
    """A client of the consumer protocol joins where there is no group."""
    t.when(s.kind == NO_GROUP, s.wire(m) == JOIN)
    t.kind = CONSUMER


def dissolved(s: State, t: After) -> None:
    """A group of nobody is deleted."""
    t.when(nobody(s), idle(s))
    t.kind = NO_GROUP


# -- steps of a consumer group, where it is one --------------------------------------------------------


def joined(s: State, t: After, m: Term, g: Term) -> None:
    """A new member of a consumer group."""
    t.when(s.kind == CONSUMER)
    coordinator.joined(s, t, m, g)
    t.classic[m] = s.call(m) == JOIN_WAITS


def retargeted(s: State, t: After) -> None:
    """A target of a consumer group is computed."""
    t.when(s.kind == CONSUMER)
    coordinator.retargeted(s, t)


def raises(s: State, t: After, g: Term) -> None:
    """The epoch of a consumer group grows."""
    t.when(s.kind == CONSUMER)
    raised(s, t, g)


def subscribed(s: State, t: After, m: Term, g: Term) -> None:
    """A heartbeat brings another subscription to a consumer group."""
    t.when(s.kind == CONSUMER)
    coordinator.subscribed(s, t, m, g)


def removed(s: State, t: After, m: Term, g: Term) -> None:
    """A member of a consumer group is removed, which stays one."""
    t.when(s.kind == CONSUMER)
    coordinator.removed(s, t, m, g)
    t.classic[m] = False


def expired(s: State, t: After, m: Term, g: Term) -> None:
    """The session ends of one that is gone."""
    t.when(gone(s, m), s.wire(m) == IDLE)
    removed(s, t, m, g)
