"""The coordinator of a group between the protocols: the classic group, classic members of a consumer group,
and the conversions. As ``model.consumer.conversion`` and ``migration.classic_group`` do it.

In a consumer group a JoinGroup is a heartbeat that shows everything: ``presents`` makes one of it, the steps
of the consumer protocol handle that, and ``returns`` answers.
"""

from __future__ import annotations

from rebalance_verifier.specs.consumer import coordinator
from rebalance_verifier.specs.consumer import vocabulary as v
from rebalance_verifier.specs.consumer.coordinator import gone, raised
from rebalance_verifier.specs.consumer.member import NO, YES, put
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
    return ForAll([v.N], Not(s.member(v.N)))


def right(s: State, m: Term, p: Term) -> Term:
    """Return what nobody else may be given: what is assigned, to be revoked, or claimed in a classic
    group."""
    return And(s.member(m), Or(s.assigned(m, p), s.pending(m, p), s.claimed(m, p)))


def shown(s: State, m: Term) -> Term:
    """State that a consumer group is handling its JoinGroup."""
    return And(s.wire(m) != v.IDLE, s.call(m) == JOIN_WAITS)


def idle(s: State) -> Term:
    """It is handling no JoinGroup: what happens to one there is one step, and several in the logic."""
    return ForAll([v.N], Not(shown(s, v.N)))


def may_enter(s: State, m: Term) -> Term:
    """Describe a JoinGroup of a member, or of one that does not come with a generation: who comes with one
    under an id that is not known still has what it had under it."""
    return And(s.call(m) == JOIN_GROUP, Or(s.member(m), s.call_epoch(m) == v.none))


# -- the classic group ---------------------------------------------------------------------------------


def rebalances(s: State, t: After) -> None:
    """A rebalance begins; one that is interrupted while it assigns leaves nobody an assignment."""
    t.phase = PREPARING
    t.assigned[v.M, v.P] = And(s.assigned(v.M, v.P), s.phase != COMPLETING)


def enters(s: State, t: After, m: Term) -> None:
    """JoinGroup reaches a classic group, or one of nobody, which is a classic one then."""
    t.when(may_enter(s, m), Or(s.kind == CLASSIC, And(nobody(s), idle(s))))
    rebalances(s, t)
    t.kind = CLASSIC
    t.member[m] = True
    t.classic[m] = True
    t.joined[m] = True
    t.claimed[m, v.P] = s.call_parts(m, v.P)
    t.subscribed[m, v.P] = ANY
    t.call[m] = JOIN_WAITS


def phase_ends(s: State, t: After, g: Term) -> None:
    """Every member has joined: a new generation."""
    t.when(s.kind == CLASSIC, s.phase == PREPARING, v.lt(s.group_epoch, g), Not(nobody(s)))
    t.when(ForAll([v.M], Implies(s.member(v.M), s.joined(v.M))))
    next_generation(s, t, g)


def next_generation(s: State, t: After, g: Term) -> None:
    """JoinGroups that wait are answered."""
    waits = s.call(v.M) == JOIN_WAITS
    t.group_epoch = g
    t.target_epoch = g
    t.phase = COMPLETING
    t.joined[v.M] = False
    t.call[v.M] = If(waits, JOIN_OK, s.call(v.M))
    t.call_epoch[v.M] = If(waits, g, s.call_epoch(v.M))
    t.call_parts[v.M, v.P] = And(s.call_parts(v.M, v.P), Not(waits))


def sync_waits(s: State, t: After, m: Term) -> None:
    """SyncGroup arrives before the decision."""
    t.when(s.call(m) == SYNC, s.kind == CLASSIC, s.phase == COMPLETING)
    t.when(s.member(m), s.call_epoch(m) == s.group_epoch)
    t.call[m] = SYNC_WAITS


def sync_of_settled(s: State, t: After, m: Term) -> None:
    """SyncGroup arrives behind it."""
    t.when(s.call(m) == SYNC, s.kind == CLASSIC, s.phase == SETTLED)
    t.when(s.member(m), s.call_epoch(m) == s.group_epoch)
    calls(t, m, SYNC_OK, epoch=s.group_epoch, parts=s.assigned(m, v.P))


def awaited(s: State, m: Term) -> Term:
    """State that its SyncGroup waits for the decision."""
    return And(s.member(m), s.call(m) == SYNC_WAITS, s.call_epoch(m) == s.group_epoch)


def decides(s: State, t: After) -> None:
    """The leader's decision: nobody is given what another one claims (the contract of the assignor)."""
    t.when(s.kind == CLASSIC, s.phase == COMPLETING, Exists([v.M], awaited(s, v.M)))
    t.phase = SETTLED
    t.assigned[v.M, v.P] = ANY
    t.where(Implies(t.assigned(v.M, v.P), s.member(v.M)))
    t.where(Implies(And(t.assigned(v.M, v.P), t.assigned(v.N, v.P)), v.M == v.N))
    t.where(Implies(And(t.assigned(v.M, v.P), s.member(v.N), s.claimed(v.N, v.P)), v.M == v.N))
    announces(s, t)


def announces(s: State, t: After) -> None:
    """SyncGroups that wait hear of the decision."""
    t.call[v.M] = If(awaited(s, v.M), SYNC_OK, s.call(v.M))
    t.call_parts[v.M, v.P] = ANY
    t.where(t.call_parts(v.M, v.P) == If(awaited(s, v.M), t.assigned(v.M, v.P), s.call_parts(v.M, v.P)))


def leaves(s: State, t: After, m: Term) -> None:
    """A member of a classic group is removed."""
    t.when(s.kind == CLASSIC, s.member(m))
    rebalances(s, t)
    t.phase = If(ForAll([v.N], Implies(s.member(v.N), m == v.N)), EMPTY, PREPARING)
    erased(t, m)


def erased(t: After, m: Term) -> None:
    """There is no record of it."""
    for flag in ("member", "classic", "joined"):
        getattr(t, flag)[m] = False
    t.at[m] = v.none
    t.previous[m] = v.none
    t.record[m] = v.STABLE
    for relation in ("assigned", "pending", "target", "subscribed", "claimed"):
        getattr(t, relation)[m, v.P] = False


# -- classic members of a consumer group ---------------------------------------------------------------


def presents(s: State, t: After, m: Term) -> None:
    """JoinGroup reaches a consumer group: a heartbeat at the member's own epoch that shows everything."""
    t.when(may_enter(s, m), s.kind == CONSUMER, Not(nobody(s)), s.wire(m) == v.IDLE)
    shows(s, t, m)


def shows(s: State, t: After, m: Term) -> None:
    """Its JoinGroup is handled as a heartbeat."""
    known = s.member(m)
    put(t, m, If(known, v.BEAT, v.JOIN), epoch=s.at(m), carries=YES, asks=known, sent=s.call_parts(m, v.P))
    t.call[m] = JOIN_WAITS


def returns(s: State, t: After, m: Term) -> None:
    """It is handled, and answered at once."""
    t.when(s.call(m) == JOIN_WAITS, s.wire(m) == v.ANSWER)
    calls(t, m, JOIN_OK, epoch=s.wire_epoch(m))
    put(t, m, v.IDLE)


def returns_nothing(s: State, t: After, m: Term) -> None:
    """The group has become another one in between."""
    t.when(s.call(m) == JOIN_WAITS, s.wire(m) == v.REFUSAL)
    calls(t, m, REFUSED)
    put(t, m, v.IDLE)


def sync_of_epoch(s: State, t: After, m: Term) -> None:
    """SyncGroup of a classic member in a consumer group is for its own epoch."""
    t.when(s.call(m) == SYNC, s.kind == CONSUMER, s.member(m), s.call_epoch(m) == s.at(m))
    calls(t, m, SYNC_OK, epoch=s.at(m), parts=s.assigned(m, v.P))


# -- conversion ----------------------------------------------------------------------------------------


def upgraded(s: State, t: After, m: Term, g: Term) -> None:
    """A client of the consumer protocol joins a classic group. Its members are where their generation is,
    hold what was assigned to them, and have to revoke what they claimed and nobody was assigned."""
    t.when(s.kind == CLASSIC, s.wire(m) == v.JOIN, Not(s.member(m)))
    converts(s, t, g, And(s.claimed(v.M, v.P), ForAll([v.N], Not(s.assigned(v.N, v.P)))))


def converts(s: State, t: After, g: Term, pending: Term) -> None:
    """The classic group becomes a consumer group in which this is pending."""
    raised(s, t, g)
    t.kind = CONSUMER
    t.phase = EMPTY
    t.target_epoch = s.group_epoch
    t.at[v.M] = If(s.member(v.M), s.group_epoch, v.none)
    t.previous[v.M] = If(s.member(v.M), s.group_epoch, v.none)
    t.pending[v.M, v.P] = pending
    t.record[v.M] = If(Exists([v.P], pending), v.UNREVOKED, v.STABLE)
    t.target[v.M, v.P] = s.assigned(v.M, v.P)
    t.joined[v.M] = False
    t.claimed[v.M, v.P] = False


def downgraded(s: State, t: After, m: Term) -> None:
    """The last member of the consumer protocol is removed: a classic group, in the generation of its epoch,
    that rebalances. What a member held, to be revoked or not, is assigned to it."""
    t.when(s.kind == CONSUMER, s.member(m), Not(s.classic(m)), idle(s))
    t.when(ForAll([v.N], Implies(And(s.member(v.N), m != v.N), s.classic(v.N))))
    t.when(Exists([v.N], And(s.member(v.N), m != v.N)))
    t.kind = CLASSIC
    t.phase = PREPARING
    t.target_epoch = s.group_epoch
    for function in ("at", "previous"):
        getattr(t, function)[v.M] = v.none
    t.record[v.M] = v.STABLE
    t.assigned[v.M, v.P] = Or(s.assigned(v.M, v.P), s.pending(v.M, v.P))
    t.pending[v.M, v.P] = NO
    t.target[v.M, v.P] = NO
    erased(t, m)


def not_found(s: State, t: After, m: Term) -> None:
    """A client of the consumer protocol is turned away from a classic group, by the broker's policy."""
    t.when(s.kind == CLASSIC, s.wire(m) == v.JOIN)
    put(t, m, v.REFUSAL)


def founded(s: State, t: After, m: Term) -> None:
    """A client of the consumer protocol joins where there is no group."""
    t.when(s.kind == NO_GROUP, s.wire(m) == v.JOIN)
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
    t.when(gone(s, m), s.wire(m) == v.IDLE)
    removed(s, t, m, g)
