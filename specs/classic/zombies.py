"""Zombies: consumers that own something, are no members any more, and have not noticed.

Exclusive ownership is about the members of the group, ``member.participates``; a zombie goes on reading. What
can be said of it:

1. No commit that it sends is accepted.
2. None is made by a step of the consumer: who leaves, or learns that it is out, knows it. It is the
   coordinator that removes a member and cannot tell it.
3. It is noticed. As long as it runs, a step is possible that tells it, or a step on the way there: its
   heartbeat is answered UNKNOWN_MEMBER_ID; where it does not beat because it joins, its JoinGroup is.
4. These answers end its membership, and what it owned is lost before it joins again.

A process that is paused, and a thread that hangs in a JoinGroup, notice nothing; they read nothing either.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import z3
from rebalance_verifier.specs.classic.convergence import calm
from rebalance_verifier.specs.classic.heartbeats import accepts, beats
from rebalance_verifier.specs.classic.member import owns, participates
from rebalance_verifier.specs.classic.protocol import MEMBER, MEMBER_FAULTS
from rebalance_verifier.specs.classic.vocabulary import (
    HUNG,
    ID_REQUIRED,
    IDLE,
    ILLEGAL,
    JOIN,
    JOIN_NEW,
    JOIN_OK,
    JOIN_PARKED,
    JOIN_REFUSED,
    JOINING,
    NO_ERROR,
    PAUSED,
    SYNC,
    SYNC_OK,
    SYNC_PARKED,
    SYNC_REFUSED,
    UNJOINED,
    UNKNOWN,
    UP,
    VOCABULARY,
    C,
    M,
    P,
    none,
    of,
)
from rebalance_verifier.specs.classic.wire import wire_in
from rebalance_verifier.specs.logic.language import NEXT, State, Term, symbols_of
from rebalance_verifier.specs.logic.specification import (
    ASSUMPTIONS,
    IMPLIES,
    PROGRESS,
    STEP,
    ProofCase,
    Specification,
    Theorem,
)
from rebalance_verifier.specs.logic.theorems import INVARIANTS, inductive
from z3 import And, Exists, Implies, Not, Or

EFFECT = "effect"
"""Kind of the cases that say what comes of a step."""


def _invariants(s: State) -> dict[str, Term]:
    named = Exists([M], And(of(M) == C, s.names(M)))
    speaks = Or(*(s.error(C) == error for error in (ID_REQUIRED, UNKNOWN, ILLEGAL)))
    return {
        **{name: calm(s)[name] for name in ("who has an id has one", "joining means to")},
        "what is under way has a name": Implies(
            wire_in(s, C, JOIN, JOIN_PARKED, JOIN_OK, SYNC, SYNC_PARKED, SYNC_OK), named
        ),
        "what is refused has a name": Implies(And(s.wire(C) == JOIN_REFUSED, speaks), named),
        "refused under its id": Implies(
            And(s.state(of(M)) == JOINING, s.identified(of(M)), s.names(M), s.wire(of(M)) == JOIN_REFUSED),
            s.id(M),
        ),
        "a refusal has an error": Implies(wire_in(s, C, JOIN_REFUSED, SYNC_REFUSED), s.error(C) != NO_ERROR),
        "not joined has no generation": Implies(s.state(C) == UNJOINED, s.generation(C) == none),
        "JoinGroup while joining": Implies(
            s.state(C) == JOINING, wire_in(s, C, IDLE, JOIN_NEW, JOIN, JOIN_PARKED, JOIN_OK, JOIN_REFUSED)
        ),
        "lost means to rejoin": Implies(s.generation(C) == none, s.rejoin(C)),
        "who takes part subscribes": Implies(s.state(C) != UNJOINED, s.subscribes(C)),
        "who owns subscribes": Implies(owns(s, C, P), s.subscribes(C)),
    }


INVARIANTS_OF_ZOMBIES: Mapping[str, Term] = _invariants(VOCABULARY.state())
"""What every consumer keeps besides; safety does without it."""


def unaware(s: State, m: Term) -> Term:
    """State that the consumer of ``m`` takes itself for that member of the group, and the coordinator does
    not."""
    return And(s.id(m), Not(s.member(m)), s.generation(of(m)) != none)


def _facts(s: State) -> dict[str, Term]:
    """Of every state."""
    out = And(owns(s, C, P), Not(Exists([M], And(of(M) == C, participates(s, M)))))
    joins = And(s.state(C) == JOINING, Or(s.life(C) == UP, s.life(C) == HUNG))
    return {
        "it is a member of nothing and does not know, or it knows": Implies(
            out, Or(s.generation(C) == none, Exists([M], And(of(M) == C, unaware(s, M))))
        ),
        "it beats, joins, hangs in joining, or is paused": Implies(
            And(owns(s, C, P), of(M) == C, unaware(s, M)), Or(beats(s, C), joins, s.life(C) == PAUSED)
        ),
        "no commit of it is accepted": Implies(
            And(s.id(M), Not(participates(s, M))), Not(accepts(s, M, s.generation(of(M))))
        ),
    }


def _situations(s: State) -> dict[str, tuple[Term, Mapping[str, Sequence[Term]]]]:
    """Return where a zombie may be, and of the steps that lead out of there one is possible."""
    c, m, p = (VOCABULARY.parameter(letter) for letter in "cmp")
    zombie = And(owns(s, c, p), of(m) == c, unaware(s, m))
    refused = And(s.wire(c) == JOIN_REFUSED, s.error(c) == UNKNOWN)
    knows = And(owns(s, c, p), s.generation(c) == none)
    return {
        "it beats": (And(zombie, beats(s, c)), {"heartbeat_of_unknown": (c, m)}),
        "it joins": (
            And(zombie, s.life(c) == UP, s.state(c) == JOINING),
            {
                "partitions_revoked_to_join": (c,), "join": (c,), "join_with_any_claim": (c,),
                "join_of_unknown": (c, m), "join_of_removed": (c, m), "follow": (c,), "lead": (c,),
                "lead_too_late": (c,), "id_given_too_late": (c,), "try_again": (c,), "told_to_rejoin": (c,),
                "expelled": (c,), "fails": (c,),
            },
        ),
        "it is told": (And(zombie, s.life(c) == UP, s.state(c) == JOINING, refused), {"expelled": (c,)}),
        "it is paused": (And(zombie, s.life(c) == PAUSED), {"resume": (c,)}),
        "it knows and waits for nothing": (
            And(knows, s.life(c) == UP, s.wire(c) == IDLE),
            {"partitions_lost": (c,), "complete_after_reset": (c,)},
        ),
    }  # fmt: skip


_s, _t = VOCABULARY.state(), VOCABULARY.state(NEXT)
_c = VOCABULARY.parameter("c")

ENDS = ("heartbeat_of_unknown", "heartbeat_of_old", "expelled", "late_answer_expels", "complete_after_reset")
"""The steps by which a consumer learns that it is out."""

EFFECTS: Mapping[str, Mapping[str, Term]] = {
    **{name: {"it is out, and prepares": And(_t.generation(_c) == none, _t.prepare(_c))} for name in ENDS},
    **{
        name: {"UNKNOWN_MEMBER_ID is under way": And(_t.wire(_c) == JOIN_REFUSED, _t.error(_c) == UNKNOWN)}
        for name in ("join_of_unknown", "join_of_removed")
    },
    "partitions_lost": {"it owns nothing": Not(owns(_t, _c, P))},
    **{
        name: {"it claims nothing of a membership that is lost": Not(And(_s.generation(_c) == none, lost))}
        for name in ("join", "join_with_any_claim")
        for lost in [owns(_s, _c, P)]
    },
}
"""What comes of a step."""

BY_ITSELF = Implies(And(participates(_s, M), Not(participates(_t, M))), _t.generation(of(M)) == none)
"""Who does not take part any more after a step of its own knows it."""


def zombies(spec: Specification) -> Theorem:
    """Return what is true of consumers that are members no more."""
    own = spec.vocabulary.closed(INVARIANTS_OF_ZOMBIES)
    given = {**spec.invariants, **own}
    return Theorem(
        name="zombies",
        sentence="who was removed is refused every commit, is told while it runs, and loses what it owned "
        "before it joins again",
        source="KIP-447; AbstractCoordinator.HeartbeatResponseHandler",
        vocabulary=spec.vocabulary,
        cases=(
            *inductive(spec, own),
            _there_are(spec, given),
            _everywhere(spec, given),
            *_noticed(spec, given),
            *_effects(spec, given),
            *_by_itself(spec, given),
        ),
        upon=(INVARIANTS,),
    )


def _there_are(spec: Specification, given: Mapping[str, Term]) -> ProofCase:
    goal = z3.Exists([M, P], And(owns(_s, of(M), P), unaware(_s, M), _s.life(of(M)) == UP))
    return spec.case(ASSUMPTIONS, {"there are zombies": lambda: goal}, given=given, possible=True)


def _everywhere(spec: Specification, given: Mapping[str, Term]) -> ProofCase:
    goals = {name: partial(spec.vocabulary.close, formula) for name, formula in _facts(_s).items()}
    return spec.case(IMPLIES, goals, given=given)


def _noticed(spec: Specification, given: Mapping[str, Term]) -> Iterator[ProofCase]:
    for name, (there, steps) in _situations(_s).items():
        goal = partial(z3.Or, *(spec.action(step).guard_of(*who) for step, who in steps.items()))
        yield spec.case(PROGRESS, {name: goal}, name=name, facts={"given": there}, given=given)


def _effects(spec: Specification, given: Mapping[str, Term]) -> Iterator[ProofCase]:
    for name, formulas in EFFECTS.items():
        action = spec.action(name)
        goals = {
            what: partial(action.across, spec.vocabulary, spec.vocabulary.close(f))
            for what, f in formulas.items()
        }
        yield spec.case(EFFECT, goals, action=action, given=given)


def _by_itself(spec: Specification, given: Mapping[str, Term]) -> Iterator[ProofCase]:
    formula = spec.vocabulary.close(BY_ITSELF)
    names = [effect.__name__ for effect in (*MEMBER, *MEMBER_FAULTS)]
    for action in map(spec.action, names):
        if any(name + NEXT in symbols_of(formula) for name in action.updates):
            goals = {
                "who is out by a step of its own knows": partial(action.across, spec.vocabulary, formula)
            }
            yield spec.case(STEP, goals, name=f"{action.name} by itself", action=action, given=given)
