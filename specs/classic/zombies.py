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
from rebalance_verifier.specs.classic import vocabulary as v
from rebalance_verifier.specs.classic.convergence import calm
from rebalance_verifier.specs.classic.heartbeats import accepts, beats
from rebalance_verifier.specs.classic.member import owns, participates
from rebalance_verifier.specs.classic.protocol import MEMBER, MEMBER_FAULTS
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
    named = Exists([v.M], And(v.of(v.M) == v.C, s.names(v.M)))
    speaks = Or(*(s.error(v.C) == error for error in (v.ID_REQUIRED, v.UNKNOWN, v.ILLEGAL)))
    return {
        **{name: calm(s)[name] for name in ("who has an id has one", "joining means to")},
        "what is under way has a name": Implies(
            wire_in(s, v.C, v.JOIN, v.JOIN_PARKED, v.JOIN_OK, v.SYNC, v.SYNC_PARKED, v.SYNC_OK), named
        ),
        "what is refused has a name": Implies(And(s.wire(v.C) == v.JOIN_REFUSED, speaks), named),
        "refused under its id": Implies(
            And(
                s.state(v.of(v.M)) == v.JOINING,
                s.identified(v.of(v.M)),
                s.names(v.M),
                s.wire(v.of(v.M)) == v.JOIN_REFUSED,
            ),
            s.id(v.M),
        ),
        "a refusal has an error": Implies(
            wire_in(s, v.C, v.JOIN_REFUSED, v.SYNC_REFUSED), s.error(v.C) != v.NO_ERROR
        ),
        "not joined has no generation": Implies(s.state(v.C) == v.UNJOINED, s.generation(v.C) == v.none),
        "JoinGroup while joining": Implies(
            s.state(v.C) == v.JOINING,
            wire_in(s, v.C, v.IDLE, v.JOIN_NEW, v.JOIN, v.JOIN_PARKED, v.JOIN_OK, v.JOIN_REFUSED),
        ),
        "lost means to rejoin": Implies(s.generation(v.C) == v.none, s.rejoin(v.C)),
        "who takes part subscribes": Implies(s.state(v.C) != v.UNJOINED, s.subscribes(v.C)),
        "who owns subscribes": Implies(owns(s, v.C, v.P), s.subscribes(v.C)),
    }


INVARIANTS_OF_ZOMBIES: Mapping[str, Term] = _invariants(v.VOCABULARY.state())
"""What every consumer keeps besides; safety does without it."""


def unaware(s: State, m: Term) -> Term:
    """State that the consumer of ``m`` takes itself for that member of the group, and the coordinator does
    not."""
    return And(s.id(m), Not(s.member(m)), s.generation(v.of(m)) != v.none)


def _facts(s: State) -> dict[str, Term]:
    """Of every state."""
    out = And(owns(s, v.C, v.P), Not(Exists([v.M], And(v.of(v.M) == v.C, participates(s, v.M)))))
    joins = And(s.state(v.C) == v.JOINING, Or(s.life(v.C) == v.UP, s.life(v.C) == v.HUNG))
    return {
        "it is a member of nothing and does not know, or it knows": Implies(
            out, Or(s.generation(v.C) == v.none, Exists([v.M], And(v.of(v.M) == v.C, unaware(s, v.M))))
        ),
        "it beats, joins, hangs in joining, or is paused": Implies(
            And(owns(s, v.C, v.P), v.of(v.M) == v.C, unaware(s, v.M)),
            Or(beats(s, v.C), joins, s.life(v.C) == v.PAUSED),
        ),
        "no commit of it is accepted": Implies(
            And(s.id(v.M), Not(participates(s, v.M))), Not(accepts(s, v.M, s.generation(v.of(v.M))))
        ),
    }


def _situations(s: State) -> dict[str, tuple[Term, Mapping[str, Sequence[Term]]]]:
    """Return where a zombie may be, and of the steps that lead out of there one is possible."""
    c, m, p = (v.VOCABULARY.parameter(letter) for letter in "cmp")
    zombie = And(owns(s, c, p), v.of(m) == c, unaware(s, m))
    refused = And(s.wire(c) == v.JOIN_REFUSED, s.error(c) == v.UNKNOWN)
    knows = And(owns(s, c, p), s.generation(c) == v.none)
    return {
        "it beats": (And(zombie, beats(s, c)), {"heartbeat_of_unknown": (c, m)}),
        "it joins": (
            And(zombie, s.life(c) == v.UP, s.state(c) == v.JOINING),
            {
                "partitions_revoked_to_join": (c,), "join": (c,), "join_with_any_claim": (c,),
                "join_of_unknown": (c, m), "join_of_removed": (c, m), "follow": (c,), "lead": (c,),
                "lead_too_late": (c,), "id_given_too_late": (c,), "try_again": (c,), "told_to_rejoin": (c,),
                "expelled": (c,), "fails": (c,),
            },
        ),
        "it is told": (And(zombie, s.life(c) == v.UP, s.state(c) == v.JOINING, refused), {"expelled": (c,)}),
        "it is paused": (And(zombie, s.life(c) == v.PAUSED), {"resume": (c,)}),
        "it knows and waits for nothing": (
            And(knows, s.life(c) == v.UP, s.wire(c) == v.IDLE),
            {"partitions_lost": (c,), "complete_after_reset": (c,)},
        ),
    }  # fmt: skip


_s, _t = v.VOCABULARY.state(), v.VOCABULARY.state(NEXT)
_c = v.VOCABULARY.parameter("c")

ENDS = ("heartbeat_of_unknown", "heartbeat_of_old", "expelled", "late_answer_expels", "complete_after_reset")
"""The steps by which a consumer learns that it is out."""

EFFECTS: Mapping[str, Mapping[str, Term]] = {
    **{name: {"it is out, and prepares": And(_t.generation(_c) == v.none, _t.prepare(_c))} for name in ENDS},
    **{
        name: {
            "UNKNOWN_MEMBER_ID is under way": And(_t.wire(_c) == v.JOIN_REFUSED, _t.error(_c) == v.UNKNOWN)
        }
        for name in ("join_of_unknown", "join_of_removed")
    },
    "partitions_lost": {"it owns nothing": Not(owns(_t, _c, v.P))},
    **{
        name: {"it claims nothing of a membership that is lost": Not(And(_s.generation(_c) == v.none, lost))}
        for name in ("join", "join_with_any_claim")
        for lost in [owns(_s, _c, v.P)]
    },
}
"""What comes of a step."""

BY_ITSELF = Implies(
    And(participates(_s, v.M), Not(participates(_t, v.M))), _t.generation(v.of(v.M)) == v.none
)
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
    goal = z3.Exists([v.M, v.P], And(owns(_s, v.of(v.M), v.P), unaware(_s, v.M), _s.life(v.of(v.M)) == v.UP))
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
