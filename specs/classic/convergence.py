"""Convergence: once nothing goes wrong any more, the group settles.

Three things are proved, and together they are it.

1. *Calm* is kept: a state without leftovers of faults (dead members, lost answers, changed metadata) stays
   one, whatever step is taken that is not a fault. Members may still be joining.
2. Every such step makes the measure smaller. The measure is a list of sets, compared from the first on;
   one step may let later sets grow, never earlier ones. Sets of a finite group cannot shrink for ever.
3. Where no step is possible, the group is settled: every subscribed partition is owned, nobody is between
   two callbacks, nobody has anything to give back.

A group that has not started is calm, and so it is whenever a consumer starts or calls enforceRebalance. That
one becomes calm after faults is proved in part: what is late, paused or out of date ends (``leftovers``).
That members and coordinator then come to agree is searched for, in small groups
(tests/specs/classic/test_calm.py).

Fairness is thereby no more than: a step that is possible is taken some time. Assumed of the assignor are
the clauses ``contract.LIVENESS``, and that it answers.
"""

from __future__ import annotations

from collections.abc import Mapping

import z3
from rebalance_verifier.specs.classic.contract import same_members
from rebalance_verifier.specs.classic.coordinator import fresh
from rebalance_verifier.specs.classic.member import owns
from rebalance_verifier.specs.classic.safety import deciding
from rebalance_verifier.specs.classic.vocabulary import (
    COMPLETING,
    DOWN,
    EMPTY,
    ID_REQUIRED,
    IDLE,
    IN_PROGRESS,
    JOIN,
    JOIN_NEW,
    JOIN_OK,
    JOIN_PARKED,
    JOIN_REFUSED,
    JOINING,
    NO_STRAY,
    PREPARING,
    SETTLED,
    STABLE,
    SYNC,
    SYNC_OK,
    SYNC_PARKED,
    SYNC_REFUSED,
    SYNCING,
    UNJOINED,
    UP,
    VOCABULARY,
    Assignor,
    C,
    G,
    L,
    M,
    N,
    P,
    honest,
    lt,
    none,
    of,
)
from rebalance_verifier.specs.classic.wire import wire_in
from rebalance_verifier.specs.logic.language import State, Term
from rebalance_verifier.specs.logic.ranking import RankingSet, Situation
from z3 import And, Exists, ForAll, Implies, Not, Or

common = z3.Const("common", Assignor)
"""In a calm group, an assignor that everybody lists."""


def calm(s: State) -> dict[str, Term]:
    """Nothing is left of any fault."""
    c = of(M)
    new = And(s.names(M), Not(s.identified(c)), s.state(c) == JOINING)
    return {
        "everybody is honest": honest(C),
        "up or down": Or(s.life(C) == UP, s.life(C) == DOWN),
        "down sends nothing": Implies(s.life(C) == DOWN, s.wire(C) == IDLE),
        "nothing is late": s.stray(C) == NO_STRAY,
        "nothing is left behind": And(
            Not(s.left(M)), Not(s.left_new(C)), Not(s.left_sync(M, G)), Not(s.left_decision(M, G))
        ),
        "everybody subscribes": Implies(s.life(C) == UP, s.subscribes(C)),
        "nothing is out of date": And(
            Not(s.unseen(C)), Not(s.outdated(C)), Implies(s.resubscribed(C), s.state(C) == UNJOINED)
        ),
        "members are there": Implies(
            Or(s.member(M), s.pending(M)),
            And(
                s.life(c) == UP,
                Or(s.id(M), And(new, wire_in(s, c, JOIN_REFUSED, JOIN_PARKED, JOIN_OK))),
            ),
        ),
        "no zombies": Implies(Or(s.id(M), s.names(M)), Or(s.member(M), s.pending(M))),
        "who has an id has one": Implies(s.identified(C), Exists([M], And(of(M) == C, s.id(M)))),
        "what is under way has a name": Implies(
            wire_in(s, C, JOIN, JOIN_PARKED, JOIN_OK, JOIN_REFUSED, SYNC, SYNC_PARKED, SYNC_OK),
            Exists([M], And(of(M) == C, s.names(M))),
        ),
        "all is in the log": Implies(
            s.group == SETTLED,
            And(
                s.member(M) == s.log_member(M),
                s.assigned(M, P) == s.log_assigned(M, P),
                s.claim(M, P) == s.log_claim(M, P),
            ),
        ),
        # A static member that came back too late for a join phase is silent until the next one ends.
        "nobody is given up": And(Not(s.given_up(M)), Implies(s.silent(M), s.group != COMPLETING)),
        "a refused JoinGroup": Implies(
            s.wire(C) == JOIN_REFUSED,
            And(s.error(C) == ID_REQUIRED, s.state(C) == JOINING, Not(s.identified(C))),
        ),
        "a refused name is pending": Implies(And(s.names(M), s.wire(c) == JOIN_REFUSED), s.pending(M)),
        "a refused SyncGroup": Implies(
            s.wire(C) == SYNC_REFUSED,
            And(s.error(C) == IN_PROGRESS, s.state(C) == SYNCING, s.group == PREPARING),
        ),
        "the present generation": Implies(
            And(s.life(C) == UP, Or(s.state(C) == SYNCING, s.state(C) == STABLE)),
            s.generation(C) == s.current,
        ),
        "answers of the present generation": Implies(
            wire_in(s, C, JOIN_OK, SYNC, SYNC_PARKED, SYNC_OK), s.wire_generation(C) == s.current
        ),
        "JoinGroup while joining": Implies(
            wire_in(s, C, JOIN_NEW, JOIN, JOIN_PARKED, JOIN_OK), s.state(C) == JOINING
        ),
        "SyncGroup while syncing": Implies(wire_in(s, C, SYNC, SYNC_PARKED, SYNC_OK), s.state(C) == SYNCING),
        "joining under a pending id": Implies(
            And(s.id(M), s.state(c) == JOINING, s.wire(c) == IDLE), s.pending(M)
        ),
        "joining under some id": Implies(And(s.state(C) == JOINING, s.wire(C) == IDLE), s.identified(C)),
        "refused and rejoining": Implies(
            And(s.state(C) == SYNCING, s.wire(C) == IDLE), And(s.rejoin(C), s.group == PREPARING)
        ),
        "not joined yet": Implies(
            s.state(C) == UNJOINED,
            And(Not(s.identified(C)), s.generation(C) == none, s.wire(C) == IDLE, s.rejoin(C)),
        ),
        "joining means to": Implies(s.state(C) == JOINING, s.rejoin(C)),
        "stable waits for nothing": Implies(s.state(C) == STABLE, And(wire_in(s, C, IDLE))),
        "an id is on its way as such": Implies(
            And(s.id(M), wire_in(s, c, JOIN, JOIN_PARKED, JOIN_OK, SYNC, SYNC_PARKED, SYNC_OK)), s.names(M)
        ),
        "a name is an id": Implies(And(s.names(M), s.identified(c)), s.id(M)),
        "a pending id has not joined": Implies(
            And(s.pending(M), s.id(M)), And(s.state(c) == JOINING, wire_in(s, c, IDLE, JOIN))
        ),
        "parked members": Implies(And(s.names(M), wire_in(s, c, JOIN_PARKED, JOIN_OK)), s.member(M)),
        "joined is parked": Implies(s.joined(M), And(s.wire(c) == JOIN_PARKED, s.names(M))),
        "received when stable": Implies(s.received(C), s.state(C) == STABLE),
        "between join and sync": Implies(
            And(s.group == COMPLETING, s.member(M)), wire_in(s, c, JOIN_PARKED, JOIN_OK, SYNC, SYNC_PARKED)
        ),
        "settled and syncing": Implies(
            And(s.group == SETTLED, s.member(M), s.state(c) == SYNCING),
            wire_in(s, c, SYNC, SYNC_PARKED, SYNC_OK),
        ),
        "somebody leads": Implies(s.group == COMPLETING, Exists([L], s.leads(L))),
        "the leader is at it": Implies(
            And(s.group == COMPLETING, s.leads(L)),
            And(
                s.member(L),
                Or(
                    s.wire(of(L)) == JOIN_PARKED,
                    And(wire_in(s, of(L), JOIN_OK, SYNC), s.leading(of(L))),
                ),
            ),
        ),
        "the leader is a member": Implies(s.leads(M), s.member(M)),
        "everybody lists a common assignor": s.lists(C, common),
        "every member supports it": Implies(s.member(M), s.supports(M, common)),
        "JoinGroup lists it": Implies(wire_in(s, C, JOIN, JOIN_NEW), s.sent_list(C, common)),
        "subscriptions are known": Implies(s.member(M), s.topics(M, P) == s.subscribed(c, P)),
        "subscriptions are sent": Implies(
            wire_in(s, C, JOIN, JOIN_NEW), s.sent_topics(C, P) == s.subscribed(C, P)
        ),
        "assigned to subscribers": Implies(s.assigned(M, P), s.topics(M, P)),
        "offered to subscribers": Implies(
            And(s.group == COMPLETING, s.wire(C) == SYNC, s.leading(C), s.offer(C, M, P)), s.topics(M, P)
        ),
        "got by subscribers": Implies(Or(s.got(C, P), s.granted(C, P)), s.subscribed(C, P)),
        "received is not prepared": Implies(s.received(C), Not(s.prepare(C))),
        "received in EAGER owns nothing": Implies(And(s.received(C), s.eager(C)), Not(owns(s, C, P))),
        "JoinGroup claims what is owned": Implies(s.wire(C) == JOIN, s.sent(C, P) == s.since(C, P)),
        "got as in the log": Implies(
            And(s.member(M), s.id(M), s.received(c)), s.got(c, P) == s.log_assigned(M, P)
        ),
        "granted as in the log": Implies(
            And(s.member(M), s.names(M), s.wire(c) == SYNC_OK), s.granted(c, P) == s.log_assigned(M, P)
        ),
        "what is claimed is owned": Implies(
            And(s.member(M), Or(s.joined(M), And(s.group != PREPARING, _before_handling(s)))),
            (s.claim(M, P) != none) == owns(s, c, P),
        ),
        "what is handled is owned": Implies(
            And(s.group == SETTLED, s.member(M), s.id(M), s.state(c) == STABLE, Not(s.received(c))),
            Or(
                s.rejoin(c),
                And(owns(s, c, P) == s.assigned(M, P), Implies(s.claim(M, P) != none, s.assigned(M, P))),
            ),
        ),
        "what was assigned stays": Implies(
            same_members(s),
            ForAll(
                [L, M, P],
                Implies(
                    And(deciding(s), s.member(M), s.claim(M, P) != none, s.log_assigned(M, P)),
                    s.offer(of(L), M, P),
                ),
            ),
        ),
        "what is free is offered": Implies(
            And(deciding(s), _free(s)), Exists([M], And(s.member(M), s.offer(of(L), M, P)))
        ),
        "what is free is assigned": Implies(
            And(s.group == SETTLED, _free(s)), Exists([M], And(s.member(M), s.assigned(M, P)))
        ),
    }


def _before_handling(s: State) -> Term:
    """State that the member ``M`` has yet to revoke and own what the present generation assigns to it."""
    c = of(M)
    return Or(
        wire_in(s, c, JOIN_PARKED, JOIN_OK, SYNC, SYNC_PARKED, SYNC_OK),
        And(s.received(c), Not(s.rejoin(c))),
    )


def _free(s: State) -> Term:
    """State that some member subscribes to ``P`` and none claims it."""
    wanted = Exists([M], And(s.member(M), s.topics(M, P)))
    return And(wanted, ForAll([N], Implies(s.member(N), s.claim(N, P) == none)))


CALM: Mapping[str, Term] = calm(VOCABULARY.state())


# -- the measure ---------------------------------------------------------------------------------------


def measure(s: State) -> tuple[RankingSet, ...]:
    """Return what is still to be done, the weightiest first."""
    c = of(M)
    outside = And(s.life(C) == UP, ForAll([M], Implies(of(M) == C, Not(s.member(M)))))
    back = And(s.member(M), s.id(M), owns(s, c, P), Not(s.log_assigned(M, P)))
    again = And(
        s.group == SETTLED,
        s.member(M),
        s.id(M),
        Or(And(s.state(c) == STABLE, s.rejoin(c)), s.wire(c) == JOIN),
    )
    return (
        RankingSet("consumers outside the group", (C,), outside),
        RankingSet("members the last assignment did not know", (M,), s.member(M) != s.log_member(M)),
        RankingSet(
            "subscriptions the last assignment did not know", (M, P),
            And(s.member(M), s.topics(M, P) != s.log_topics(M, P)),
        ),
        RankingSet("partitions to be given back", (M, P), back),
        RankingSet("members that will start a rebalance", (M,), again),
        RankingSet("a join phase", (), s.group == PREPARING),
        RankingSet("a phase of assigning", (), Or(s.group == PREPARING, s.group == COMPLETING)),
        *(
            RankingSet(name, (C,), And(s.life(C) == UP, before))
            for name, before in _stages(s)
        ),
    )  # fmt: skip


def _stages(s: State) -> list[tuple[str, Term]]:
    """Return the way of one consumer through a round, as what it has still ahead: everything up to each
    point."""
    joined = Exists([M], And(of(M) == C, s.names(M), s.joined(M)))
    points = [
        ("JoinGroup is answered", And(s.wire(C) == JOIN_PARKED, Not(joined))),
        ("the answer arrives", s.wire(C) == JOIN_OK),
        ("SyncGroup arrives", s.wire(C) == SYNC),
        ("SyncGroup is answered", s.wire(C) == SYNC_PARKED),
        ("that answer arrives", wire_in(s, C, SYNC_OK, SYNC_REFUSED)),
        ("it hears of the rebalance before it handles its assignment", And(s.received(C), Not(s.rejoin(C)))),
        ("its assignment is handled", s.received(C)),
        ("it hears of the rebalance", And(s.wire(C) == IDLE, Not(s.received(C)), Not(s.rejoin(C)))),
        ("it has prepared", And(s.wire(C) == IDLE, s.rejoin(C), s.prepare(C))),
        ("it asks for an id", And(s.wire(C) == IDLE, s.rejoin(C), Not(s.prepare(C)), Not(s.identified(C)))),
        ("that request arrives", s.wire(C) == JOIN_NEW),
        ("it has the id", s.wire(C) == JOIN_REFUSED),
        ("JoinGroup leaves", And(s.wire(C) == IDLE, s.rejoin(C), Not(s.prepare(C)), s.identified(C))),
        ("JoinGroup arrives", s.wire(C) == JOIN),
    ]
    return [(name, Or(*(here for _, here in points[: i + 1]))) for i, (name, _) in enumerate(points)]


MEASURE = measure(VOCABULARY.state())


def _at_rest(s: State, c: Term) -> Term:
    """State that the consumer waits for nothing and wants nothing."""
    return And(s.state(c) == STABLE, s.wire(c) == IDLE, Not(s.received(c)), Not(s.rejoin(c)))


def settled(s: State) -> dict[str, Term]:
    """Nothing is left to be done."""
    c = of(M)
    return {
        "everybody is stable": Implies(s.life(C) == UP, _at_rest(s, C)),
        "everybody is a member": Implies(s.id(M), s.member(M)),
        "the group is stable or empty": Or(s.group == SETTLED, s.group == EMPTY),
        "everybody owns what is assigned": Implies(s.member(M), owns(s, c, P) == s.assigned(M, P)),
        "every subscribed partition is owned": Implies(
            And(s.member(M), s.topics(M, P)), Exists([N], And(s.member(N), owns(s, of(N), P)))
        ),
    }


def at_first(s: State) -> Term:
    """Return what makes a group that has not started a calm one: an assignor on every list, and honesty."""
    return ForAll([C], And(s.lists(C, common), honest(C)))


GENTLE = ("start", "subscribe", "enforce_rebalance")
"""Perturbations that leave nothing behind: after them the group is as calm as before."""

DECREASES: Mapping[str, tuple[str, ...]] = {
    "partitions_lost": ("it has prepared",),
    "partitions_revoked_to_join": ("it has prepared",),
    "join": ("it asks for an id", "JoinGroup leaves"),
    "follow": ("the answer arrives",),
    "lead": ("the answer arrives",),
    "lead_too_late": ("the answer arrives",),
    "sync_answered": ("that answer arrives",),
    "partitions_revoked": ("partitions to be given back",),
    "partitions_assigned": (
        "it hears of the rebalance before it handles its assignment",
        "its assignment is handled",
    ),
    "id_given": ("it has the id",),
    "told_to_rejoin": ("that answer arrives",),
    "heartbeat_in_rebalance": (
        "it hears of the rebalance before it handles its assignment",
        "it hears of the rebalance",
    ),
    "join_refused_without_id": ("that request arrives",),
    "join_with_given_id": ("consumers outside the group",),
    "join_of_static": ("consumers outside the group",),
    "join_of_member": ("members that will start a rebalance", "JoinGroup arrives"),
    "join_again": ("members that will start a rebalance",),
    "join_phase_ends": ("a join phase",),
    "join_phase_ends_empty": ("a join phase",),
    "join_answered": ("JoinGroup is answered",),
    "sync_in_rebalance": ("SyncGroup arrives",),
    "sync_parks": ("SyncGroup arrives",),
    "sync_of_settled": ("SyncGroup arrives",),
    "leader_syncs": (
        "members the last assignment did not know",
        "subscriptions the last assignment did not know",
        "a phase of assigning",
    ),
    "sync_parked_answered": ("SyncGroup is answered",),
    "sync_parked_refused": ("SyncGroup is answered",),
}
"""Which set each step makes smaller: the first of these that it does not leave as it is. The steps that are
not named are not possible in a calm group."""


# -- something can always be done ----------------------------------------------------------------------


def situations(s: State) -> tuple[Situation, ...]:
    """Return every way not to be settled.

    What exists there follows from calm: the id of a consumer that has one, the leader, a partition to be
    revoked if there is one. That there is an id not in use and a generation to come is what unbounded means.
    """
    c, m, l, f, p, g = (  # noqa: E741
        VOCABULARY.parameter(name) for name in ("c", "m", "l", "n", "p", "g")
    )
    of_member = {
        "join_answered": (c, m), "follow": (c,), "lead": (c,), "lead_too_late": (c,),
        "sync_in_rebalance": (c, m), "sync_parks": (c, m), "sync_of_settled": (c, m),
        "sync_parked_answered": (c, m), "sync_parked_refused": (c,), "sync_answered": (c,),
        "told_to_rejoin": (c,), "partitions_revoked": (c, p), "partitions_assigned": (c,),
        "heartbeat_in_rebalance": (c, m), "partitions_revoked_to_join": (c,), "join": (c,),
        "join_of_member": (c, m),
    }  # fmt: skip
    revokes = Or(ForAll([P], Implies(owns(s, c, P), s.got(c, P))), And(owns(s, c, p), Not(s.got(c, p))))
    at_rest = _at_rest(s, c)
    member = And(s.member(m), of(m) == c, revokes)
    return (
        Situation(
            "a consumer outside the group",
            And(
                s.life(c) == UP,
                ForAll([M], Implies(of(M) == c, Not(s.member(M)))),
                Implies(s.identified(c), And(of(m) == c, s.id(m))),
                fresh(s, c, f),
            ),
            {
                "partitions_lost": (c,), "join": (c,), "join_refused_without_id": (c, f),
                "join_of_static": (c, f), "id_given": (c,), "join_with_given_id": (c, m),
            },
        ),
        Situation(
            "a member that has to join", And(s.group == PREPARING, member, Not(s.joined(m))), of_member
        ),
        Situation(
            "everybody has joined",
            And(
                s.group == PREPARING, ForAll([M], Implies(s.member(M), s.joined(M))), lt(s.current, g),
                s.member(l), Or(s.leads(l), ForAll([M], Not(s.leads(M)))),
            ),
            {"join_phase_ends": (g, l, common)},
        ),
        Situation(
            "a join phase of nobody",
            And(s.group == PREPARING, ForAll([M], Not(s.member(M))), lt(s.current, g)),
            {"join_phase_ends_empty": (g,)},
        ),
        Situation(
            "the leader assigns",
            And(s.group == COMPLETING, s.leads(m), of(m) == c),
            {"join_answered": (c, m), "lead": (c,), "leader_syncs": (c, m)},
        ),
        Situation(
            "a member that is not at rest", And(s.group == SETTLED, member, Not(at_rest)), of_member
        ),
    )  # fmt: skip


SITUATIONS = situations(VOCABULARY.state())


def nothing_to_do(s: State) -> tuple[Term, ...]:
    """Return None of the situations: what follows from it is ``settled``."""
    c = of(M)
    at_rest = _at_rest(s, c)
    return (
        s.group != PREPARING,
        s.group != COMPLETING,
        ForAll([C], Implies(s.life(C) == UP, Exists([M], And(of(M) == C, s.member(M))))),
        ForAll([M], Implies(And(s.group == SETTLED, s.member(M)), at_rest)),
    )
