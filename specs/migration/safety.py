"""A group between the protocols, what is proved of every state and step of it, and the invariants for it.

Who may have a partition is one notion for both kinds of group, ``right``: it is assigned to the member, or to
be revoked by it, or claimed by it in a classic group. A conversion changes which of these it is, for nobody
whether it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import wraps

from rebalance_verifier.specs.consumer import coordinator
from rebalance_verifier.specs.consumer import member as client
from rebalance_verifier.specs.consumer.coordinator import held, held_in, stored
from rebalance_verifier.specs.consumer.member import has
from rebalance_verifier.specs.consumer.safety import initial, participates
from rebalance_verifier.specs.consumer.vocabulary import (
    ANSWER,
    AXIOMS,
    BEAT,
    FENCED,
    IDLE,
    INSIDE,
    JOIN,
    JOINING,
    OUT,
    STABLE,
    UNREVOKED,
    G,
    M,
    N,
    P,
    lt,
    none,
)
from rebalance_verifier.specs.logic.language import NEXT, After, Effect, State, Term
from rebalance_verifier.specs.logic.specification import Specification
from rebalance_verifier.specs.migration import coordinator as group
from rebalance_verifier.specs.migration import member as classic
from rebalance_verifier.specs.migration.coordinator import right, shown
from rebalance_verifier.specs.migration.vocabulary import (
    CLASSIC,
    COMPLETING,
    CONSUMER,
    EMPTY,
    JOIN_GROUP,
    JOIN_OK,
    JOIN_WAITS,
    NO_GROUP,
    NOTHING,
    PREPARING,
    SYNC_OK,
    VOCABULARY,
)
from z3 import And, Implies, Not, Or


def of_new(effect: Effect) -> Effect:
    """Return what a client of the consumer protocol does, or is done to it."""

    @wraps(effect)
    def narrowed(s: State, t: After, m: Term) -> None:
        t.when(Not(s.old(m)))
        effect(s, t, m)

    return narrowed


def start(s: State, t: After, m: Term) -> None:
    """A process of the consumer protocol starts."""
    t.when(s.call(m) == NOTHING)
    client.start(s, t, m)


def ends(s: State, t: After, m: Term) -> None:
    """A process of either protocol ends. What left may still arrive."""
    client.ends(s, t, m)
    t.old[m] = False


_OF_CLIENT = (
    client.join, client.heartbeat, client.full_heartbeat, client.answered, client.unheard, client.refused,
    client.lose, client.begin, client.revoke, client.assign, client.acknowledge,
)  # fmt: skip

STEPS: tuple[Effect, ...] = (
    *map(of_new, _OF_CLIENT),
    classic.join_claiming, classic.join_eager, classic.join_answered, classic.sync_answered,
    classic.expelled, group.enters, group.phase_ends, group.sync_waits, group.sync_of_settled, group.decides,
    group.presents, group.returns, group.returns_nothing, group.sync_of_epoch, group.upgraded,
    group.not_found, group.founded, group.retargeted, group.joined, group.expired, coordinator.unknown,
    coordinator.nothing_new, coordinator.must_drop, coordinator.has_dropped, coordinator.must_revoke,
    coordinator.given, coordinator.commit_stored, coordinator.commit_refused,
)  # fmt: skip
"""What clients and coordinator do by themselves."""

FAULTS: tuple[Effect, ...] = (
    start, classic.start_old, ends,
    *map(of_new, (client.subscribe, client.unsubscribe, client.poll_too_late)),
    of_new(client.disconnected), classic.refuses, classic.dropped, client.commit_late, client.commits_end,
    group.leaves, group.downgraded, group.dissolved, group.raises, group.subscribed, group.removed,
)  # fmt: skip
"""What is done to them."""


def invariants_of(s: State) -> dict[str, Term]:
    """Return every invariant by name, with its capital letters."""
    inside, new = s.state(M) == INSIDE, And(s.runs(M), Not(s.old(M)))
    asks = s.call(M) == JOIN_GROUP
    shows = And(s.runs(M), Or(asks, s.call(M) == JOIN_WAITS))
    return {
        "held once": Implies(And(right(s, M, P), right(s, N, P)), M == N),
        "what it has is held": Implies(And(s.member(M), inside, has(s, M, P)), right(s, M, P)),
        "what it hears of is held": Implies(
            And(s.member(M), s.wire(M) == ANSWER, s.granted(M, P)), held(s, M, P)
        ),
        "what SyncGroup assigns is held": Implies(
            And(s.member(M), s.call(M) == SYNC_OK, s.call_parts(M, P)), right(s, M, P)
        ),
        "what JoinGroup claims is held": Implies(And(s.member(M), asks, s.call_parts(M, P)), right(s, M, P)),
        "a heartbeat claims all": Implies(
            And(s.wire(M) == BEAT, s.carries(M), has(s, M, P)), s.sent(M, P)
        ),
        "JoinGroup claims all": Implies(And(shows, s.old(M), has(s, M, P)), s.call_parts(M, P)),
        "JoinGroup of a new one claims nothing": Implies(
            And(Or(asks, s.call(M) == JOIN_WAITS), s.call_epoch(M) == none), Not(s.call_parts(M, P))
        ),
        "who joins has nothing": Implies(has(s, M, P), Or(inside, s.state(M) == FENCED)),
        "a process that ended is in no state": Implies(
            Not(s.runs(M)), And(s.state(M) == OUT, Not(s.old(M)))
        ),
        "who is fenced expects nothing": Implies(Or(s.goal(M, P), s.received(M, P)), inside),
        "an old client owns and no more": Implies(
            s.old(M), And(Not(s.goal(M, P)), Not(s.received(M, P)), Not(s.claim(M, P)))
        ),
        "an old client is in or joins": Implies(s.old(M), Or(inside, s.state(M) == JOINING)),
        "only an old client calls": Implies(
            And(s.runs(M), s.call(M) != NOTHING), s.old(M)
        ),
        "an epoch inside": (s.epoch(M) != none) == inside,
        "a join is of one who joins": Implies(And(s.wire(M) == JOIN, new), s.state(M) == JOINING),
        "a heartbeat is of one inside": Implies(And(s.wire(M) == BEAT, new), inside),
        "an answer is heard": Implies(And(s.wire(M) != IDLE, new), Or(inside, s.state(M) == JOINING)),
        "a heartbeat or a JoinGroup": Implies(
            s.wire(M) != IDLE, Or(s.call(M) == NOTHING, s.call(M) == JOIN_WAITS)
        ),
        "a heartbeat of an old client is its JoinGroup": Implies(
            And(s.wire(M) != IDLE, Or(s.old(M), s.classic(M))), s.call(M) == JOIN_WAITS
        ),
        "JoinGroup is a heartbeat in a consumer group": Implies(shown(s, M), s.kind == CONSUMER),
        "a classic member is an old client": Implies(
            And(s.member(M), s.runs(M)), s.classic(M) == s.old(M)
        ),
        "an answered JoinGroup has a generation": Implies(s.call(M) == JOIN_OK, s.call_epoch(M) != none),
        "an answer has an epoch": Implies(s.wire(M) == ANSWER, s.wire_epoch(M) != none),
        "a heartbeat has its epoch": Implies(And(s.wire(M) == BEAT, new), s.wire_epoch(M) == s.epoch(M)),
        "an answer is not older": Implies(
            And(s.wire(M) == ANSWER, inside, new), Not(lt(s.wire_epoch(M), s.epoch(M)))
        ),
        "who joined holds nothing": Implies(
            And(s.kind == CONSUMER, s.member(M), s.at(M) == none),
            And(s.record(M) == STABLE, Not(held(s, M, P)), s.previous(M) == none),
        ),
        "a classic group has no epochs": Implies(
            s.kind != CONSUMER,
            And(s.at(M) == none, s.previous(M) == none, s.record(M) == STABLE, Not(s.pending(M, P))),
        ),
        "a classic group is of classic members": Implies(And(s.kind == CLASSIC, s.member(M)), s.classic(M)),
        "no group has no members": Implies(s.kind == NO_GROUP, Not(s.member(M))),
        "claims are of a classic group": Implies(Or(s.claimed(M, P), s.joined(M)), s.kind == CLASSIC),
        "who joined claims all": Implies(And(s.joined(M), has(s, M, P)), s.claimed(M, P)),
        "who joined claims no more": Implies(And(s.joined(M), asks, s.call_parts(M, P)), s.claimed(M, P)),
        "who joined is not answered": Implies(
            s.joined(M), And(s.call(M) != SYNC_OK, s.phase == PREPARING)
        ),
        "while it is decided all is claimed": Implies(
            And(s.kind == CLASSIC, s.phase == COMPLETING, s.member(M), inside, has(s, M, P)), s.claimed(M, P)
        ),
        "while it is decided no more is claimed": Implies(
            And(s.kind == CLASSIC, s.phase == COMPLETING, s.member(M), asks, s.call_parts(M, P)),
            s.claimed(M, P),
        ),
        "while it is decided nobody is answered": Implies(
            And(s.kind == CLASSIC, s.phase == COMPLETING, s.member(M)), s.call(M) != SYNC_OK
        ),
        "the target has an epoch": s.target_epoch != none,
        "only members have a record": Implies(
            Or(
                held_in(s, M, P), s.at(M) != none, s.previous(M) != none, s.record(M) != STABLE,
                s.classic(M), s.joined(M), s.claimed(M, P),
            ),
            s.member(M),
        ),
        "a join has no epoch": Implies(
            s.wire(M) == JOIN, And(s.wire_epoch(M) == none, Not(And(shown(s, M), s.call_parts(M, P))))
        ),
        "only who revokes has pending": Implies(s.pending(M, P), s.record(M) == UNREVOKED),
        "previous before own": Not(lt(s.at(M), s.previous(M))),
        "own before target": Not(lt(s.target_epoch, s.at(M))),
        "target before group": Not(lt(s.group_epoch, s.target_epoch)),
    }  # fmt: skip


def properties_of(s: State) -> dict[str, Term]:
    """Return what is wanted, and follows."""
    both = And(participates(s, M), participates(s, N))
    about_to = Or(And(s.wire(N) == ANSWER, s.granted(N, P)), And(s.call(N) == SYNC_OK, s.call_parts(N, P)))
    late = And(s.kind == CONSUMER, s.late(M, G, P), stored(s, M, G, P))
    ordered = And(
        Not(lt(s.at(M), s.previous(M))),
        Not(lt(s.target_epoch, s.at(M))),
        Not(lt(s.group_epoch, s.target_epoch)),
    )
    return {
        "exclusive ownership": Implies(And(both, s.owned(M, P), s.owned(N, P)), M == N),
        "revoke before assign": Implies(
            And(participates(s, M), s.member(N), s.owned(M, P), Or(right(s, N, P), about_to)), M == N
        ),
        "what is read is known": Implies(And(participates(s, M), s.owned(M, P)), right(s, M, P)),
        "commit fencing": Implies(And(late, participates(s, N), s.owned(N, P)), M == N),
        "order of epochs": Implies(s.member(M), ordered),
    }


def _steps(s: State, t: State) -> dict[str, Term]:
    """Return what holds of every step, from ``s`` to ``t``."""
    stays = And(s.member(M), t.member(M))
    up = And(s.kind == CLASSIC, t.kind == CONSUMER)
    down = And(s.kind == CONSUMER, t.kind == CLASSIC)
    within = And(s.kind == CONSUMER, t.kind == CONSUMER)
    gains = And(stays, right(t, M, P), Not(right(s, M, P)))
    return {
        "nothing is lost or given by a conversion": Implies(
            And(Or(up, down), s.member(M), t.member(M)), right(s, M, P) == right(t, M, P)
        ),
        "nobody joins by going up, and nobody leaves": Implies(up, s.member(M) == t.member(M)),
        "one leaves by going down, and nobody joins": Implies(
            And(down, s.member(N), t.member(M)), And(s.member(M), s.classic(M))
        ),
        "a member is at its generation": Implies(And(up, s.member(M)), t.at(M) == s.group_epoch),
        "the generation is the group's epoch": Implies(
            And(down, s.member(N)), And(t.group_epoch == s.group_epoch, t.target_epoch == s.group_epoch)
        ),
        "the group's epoch grows": Not(lt(t.group_epoch, s.group_epoch)),
        "the target's epoch grows": Not(lt(t.target_epoch, s.target_epoch)),
        "a member's epoch grows": Implies(And(stays, within), Not(lt(t.at(M), s.at(M)))),
        "given when it is free": Implies(And(gains, participates(s, N), M != N), Not(has(s, N, P))),
    }


STEPS_KEEP: Mapping[str, Term] = _steps(VOCABULARY.state(), VOCABULARY.state(NEXT))
"""What holds of every step by name; the state after it is marked."""


# -- together ------------------------------------------------------------------------------------------


def specification(*instead: Effect) -> Specification:
    """Return the protocol and what is to be proved of it, with actions ``instead`` of those of the same name.

    Raises ValueError for one that takes the place of no action.
    """
    state = VOCABULARY.state()
    return Specification(
        vocabulary=VOCABULARY,
        axioms=VOCABULARY.closed(AXIOMS),
        initial=initial(state, {"kind": NO_GROUP, "phase": EMPTY, "call": NOTHING}),
        actions=VOCABULARY.actions((*STEPS, *FAULTS), FAULTS, instead),
        invariants=VOCABULARY.closed(invariants_of(state)),
        properties=VOCABULARY.closed(properties_of(state)),
    )
