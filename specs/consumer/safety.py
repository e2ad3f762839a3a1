"""The whole consumer protocol, what is proved of every state and step, and the invariants that carry it.

The heart is ``held once`` and ``what it has is held``: the coordinator counts a partition as held by one
member at most, to be revoked or not, and whatever a member of the group has, may come to have, or is about to
hear of, is among what it holds. So nothing is assumed of the assignor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache

import z3
from rebalance_verifier.specs.consumer import coordinator
from rebalance_verifier.specs.consumer import member as client
from rebalance_verifier.specs.consumer.coordinator import held, held_in, stored
from rebalance_verifier.specs.consumer.member import has
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
    VOCABULARY,
    G,
    M,
    N,
    P,
    lt,
    none,
    zero,
)
from rebalance_verifier.specs.logic.language import NEXT, Effect, State, Term
from rebalance_verifier.specs.logic.specification import Specification
from z3 import And, Implies, Not, Or

IsStored = Callable[[State, Term, Term, Term], Term]
"""Whether a commit of a member, with an epoch, for a partition would be stored."""

STEPS = (
    client.join, client.heartbeat, client.full_heartbeat, client.answered, client.unheard, client.refused,
    client.lose, client.begin, client.revoke, client.assign, client.acknowledge, coordinator.retargeted,
    coordinator.joined, coordinator.expired, coordinator.unknown, coordinator.nothing_new,
    coordinator.must_drop, coordinator.has_dropped, coordinator.must_revoke, coordinator.given,
    coordinator.commit_stored, coordinator.commit_refused,
)  # fmt: skip
"""What client and coordinator do by themselves."""

FAULTS = (
    client.start, client.subscribe, client.unsubscribe, client.poll_too_late, client.ends,
    client.disconnected, client.commit_late, client.commits_end, coordinator.raised,
    coordinator.subscribed, coordinator.resolved, coordinator.removed, coordinator.goes_away,
    coordinator.replaces, coordinator.unreleased,
)  # fmt: skip
"""What is done to them."""


# -- what is proved ------------------------------------------------------------------------------------


def participates(s: State, m: Term) -> Term:
    """``m`` is a member of the group, and has not been told otherwise."""
    return And(s.member(m), s.epoch(m) != none)


def invariants_of(s: State) -> dict[str, Term]:
    """Return every invariant by name, with its capital letters."""
    inside = s.state(M) == INSIDE
    return {
        "held once": Implies(And(held(s, M, P), held(s, N, P)), M == N),
        "what it has is held": Implies(And(s.member(M), inside, has(s, M, P)), held(s, M, P)),
        "what it hears of is held": Implies(
            And(s.member(M), s.wire(M) == ANSWER, s.granted(M, P)), held(s, M, P)
        ),
        "a heartbeat claims all": Implies(
            And(s.wire(M) == BEAT, s.carries(M), has(s, M, P)), s.sent(M, P)
        ),
        "who joins has nothing": Implies(has(s, M, P), Or(inside, s.state(M) == FENCED)),
        "a process that ended is in no state": Implies(Not(s.runs(M)), s.state(M) == OUT),
        "who is fenced expects nothing": Implies(
            Or(s.goal(M, P), s.received(M, P)), inside
        ),
        "an epoch inside": (s.epoch(M) != none) == inside,
        "a join is of one who joins": Implies(
            And(s.wire(M) == JOIN, s.runs(M)), s.state(M) == JOINING
        ),
        "a heartbeat is of one inside": Implies(And(s.wire(M) == BEAT, s.runs(M)), inside),
        "an answer is heard": Implies(
            And(s.wire(M) != IDLE, s.runs(M)), Or(inside, s.state(M) == JOINING)
        ),
        "an answer has an epoch": Implies(s.wire(M) == ANSWER, s.wire_epoch(M) != none),
        "a heartbeat has its epoch": Implies(
            And(s.wire(M) == BEAT, s.runs(M)), s.wire_epoch(M) == s.epoch(M)
        ),
        "an answer is not older": Implies(
            And(s.wire(M) == ANSWER, inside), Not(lt(s.wire_epoch(M), s.epoch(M)))
        ),
        "who joins gives all up": Implies(s.wire(M) == JOIN, And(s.carries(M), Not(s.sent(M, P)))),
        "the target has an epoch": s.target_epoch != none,
        "only members have a record": Implies(
            Or(held_in(s, M, P), s.at(M) != none, s.previous(M) != none, s.record(M) != STABLE),
            s.member(M),
        ),
        "a join has no epoch": Implies(s.wire(M) == JOIN, s.wire_epoch(M) == none),
        "only who revokes has pending": Implies(s.pending(M, P), s.record(M) == UNREVOKED),
        "previous before own": Not(lt(s.at(M), s.previous(M))),
        "own before target": Not(lt(s.target_epoch, s.at(M))),
        "target before group": Not(lt(s.group_epoch, s.target_epoch)),
    }  # fmt: skip


def properties_of(s: State, is_stored: IsStored = stored) -> dict[str, Term]:
    """Return what is wanted, and follows, where these commits are stored."""
    both = And(participates(s, M), participates(s, N))
    about_to = And(s.wire(N) == ANSWER, s.granted(N, P))
    late = And(s.late(M, G, P), is_stored(s, M, G, P))
    ordered = And(
        Not(lt(s.at(M), s.previous(M))),
        Not(lt(s.target_epoch, s.at(M))),
        Not(lt(s.group_epoch, s.target_epoch)),
    )
    return {
        "exclusive ownership": Implies(And(both, s.owned(M, P), s.owned(N, P)), M == N),
        "revoke before assign": Implies(
            And(participates(s, M), s.member(N), s.owned(M, P), Or(held(s, N, P), about_to)), M == N
        ),
        "commit fencing": Implies(And(late, participates(s, N), s.owned(N, P)), M == N),
        "order of epochs": Implies(s.member(M), ordered),
    }


def _steps(s: State, t: State) -> dict[str, Term]:
    """Return what holds of every step, from ``s`` to ``t``."""
    stays = And(s.member(M), t.member(M))
    news = And(t.assigned(M, P), Not(held(s, M, P)))
    inside = And(s.state(M) == INSIDE, t.state(M) == INSIDE)
    return {
        "the group's epoch grows": Not(lt(t.group_epoch, s.group_epoch)),
        "the target's epoch grows": Not(lt(t.target_epoch, s.target_epoch)),
        "a member's epoch grows": Implies(And(stays, t.at(M) != none), Not(lt(t.at(M), s.at(M)))),
        "a client's epoch grows": Implies(inside, Not(lt(t.epoch(M), s.epoch(M)))),
        "given when it is free": Implies(
            And(news, participates(s, N), M != N), Not(has(s, N, P))
        ),
    }  # fmt: skip


STEPS_KEEP: Mapping[str, Term] = _steps(VOCABULARY.state(), VOCABULARY.state(NEXT))
"""What holds of every step by name; the state after it is marked."""


# -- together ------------------------------------------------------------------------------------------


def specification(*instead: Effect) -> Specification:
    """Return the protocol and what is to be proved of it, with actions ``instead`` of those of the same name.

    Raises ValueError for one that takes the place of no action.
    """
    return replace(_stated(), actions=VOCABULARY.actions((*STEPS, *FAULTS), FAULTS, instead))


@cache
def _stated() -> Specification:
    state = VOCABULARY.state()
    return Specification(
        vocabulary=VOCABULARY,
        axioms=VOCABULARY.closed(AXIOMS),
        initial=initial(state),
        actions=(),
        invariants=VOCABULARY.closed(invariants_of(state)),
        properties=VOCABULARY.closed(properties_of(state)),
    )


def initial(s: State, besides: Mapping[str, Term] = {}) -> Term:
    """No process has started, and there is no group; ``besides`` are the values of further symbols."""
    defaults = {"state": OUT, "wire": IDLE, "record": STABLE, "group_epoch": zero, "target_epoch": zero}
    defaults |= besides
    stated = []
    for symbol in s.vocabulary.mutable:
        places = [z3.Const(f"x{i}", sort) for i, sort in enumerate(symbol.arguments)]
        here = getattr(s, symbol.name)(*places) if places else getattr(s, symbol.name)
        empty = none if symbol.value == none.sort() else False
        value = defaults.get(symbol.name, empty)
        stated.append(z3.ForAll(places, here == value) if places else here == value)
    return And(*stated)
