"""Static members (KIP-345): of an instance the coordinator serves at most one member id, and fences others.

The member ids of an instance are those of one consumer here, ``of``. Whoever joins as that consumer without
an id is given a new one, be it the same process again or a second one with the same ``group.instance.id``.
The protocol has one process of each consumer. What the second one does to the coordinator are the steps
``SECOND``: it joins in place of the first, which keeps its state and is a member no more, joins again, and
leads. With them every invariant of safety is kept, so what the first one and all others own stays exclusive,
and what the second one may have they do not get. Its own fields are not in the logic.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial

from rebalance_verifier.specs.classic import vocabulary as v
from rebalance_verifier.specs.classic.contract import SAFETY
from rebalance_verifier.specs.classic.coordinator import await_others, fresh, hand_over, log_members, overtake
from rebalance_verifier.specs.classic.heartbeats import beats
from rebalance_verifier.specs.logic.language import ANY, After, SpecAction, State, Term, symbols_of
from rebalance_verifier.specs.logic.specification import IMPLIES, STEP, ProofCase, Specification, Theorem
from rebalance_verifier.specs.logic.theorems import INVARIANTS, inductive, kept_by, taken
from z3 import And, Implies, Not, Or

# -- a second process ----------------------------------------------------------------------------------


def second_joins(s: State, t: After, c: Term, m: Term, n: Term) -> None:
    """Another process joins as the instance ``c``: the record of ``n`` is that of its id ``m`` from now on.

    It owns nothing and claims nothing. That a settled group need not rebalance is left out.
    """
    t.when(v.static(c), fresh(s, c, m), v.of(n) == c, s.member(n))
    hand_over(s, t, m, n)
    _parks(s, t, m)
    t.claim[m, v.P] = v.none


def second_joins_again(s: State, t: After, c: Term, m: Term) -> None:
    """It joins with the id that it was given, and claims no more than it may have."""
    t.when(_of_second(s, c, m))
    _parks(s, t, m)
    t.claim[m, v.P] = ANY
    had = Or(s.claim(m, v.P) != v.none, s.assigned(m, v.P))
    t.where(Implies(t.claim(m, v.P) != v.none, had))
    t.where(Implies(And(t.supports(m, v.A), Not(v.cooperative(v.A))), t.claim(m, v.P) == v.none))


def _parks(s: State, t: After, m: Term) -> None:
    await_others(t, m)
    overtake(s, t, m)
    t.supports[m, v.A] = ANY
    t.topics[m, v.P] = ANY


def _of_second(s: State, c: Term, m: Term) -> Term:
    return And(v.static(c), v.of(m) == c, s.member(m), Not(s.id(m)), Not(s.names(m)))


def second_leads(s: State, t: After, c: Term, m: Term) -> None:
    """It leads, and its SyncGroup is the first: of the assignment the contract is known."""
    t.when(_of_second(s, c, m), s.group == v.COMPLETING, s.leads(m))
    t.group = v.SETTLED
    t.synced[m] = True
    t.assigned[v.M, v.P] = ANY
    for clause in SAFETY.values():
        t.where(clause(s, lambda m, p: t.assigned(m, p)))
    log_members(s, t)
    t.log_assigned[v.M, v.P] = ANY
    t.where(t.log_assigned(v.M, v.P) == t.assigned(v.M, v.P))


SECOND: tuple[SpecAction, ...] = tuple(
    v.VOCABULARY.action(effect, fault=True) for effect in (second_joins, second_joins_again, second_leads)
)
"""What a second process of an instance does to the coordinator."""

# -- what is proved ------------------------------------------------------------------------------------


def _invariants(s: State) -> dict[str, Term]:
    one = And(v.static(v.of(v.M)), v.of(v.M) == v.of(v.N))
    return {
        "an instance is given no id to come with": Not(And(s.pending(v.M), v.static(v.of(v.M)))),
        "one record of an instance": Implies(And(one, s.member(v.M), s.member(v.N)), v.M == v.N),
    }


INVARIANTS_OF_INSTANCES: Mapping[str, Term] = _invariants(v.VOCABULARY.state())

SERVES = (
    "join_with_given_id", "join_of_member", "join_again", "join_answered", "sync_parks", "sync_of_settled",
    "leader_syncs", "sync_parked_answered", "late_request_accepted", "left_join_arrives",
    "left_sync_arrives", "left_decision_arrives",
)  # fmt: skip
"""The steps by which the coordinator does what a request with the member id ``m`` of ``c`` asks for."""


def _fencing(s: State) -> dict[str, tuple[Term, tuple[Term, ...]]]:
    """Return the action by which each request is fenced, and when such a request is there."""
    c, m, n = (v.VOCABULARY.parameter(letter) for letter in "cmn")
    late = And(Or(s.stray(c) == v.HEARTBEAT, s.stray(c) == v.COMMIT), s.stray_names(m))
    return {
        "join_of_fenced": (And(s.wire(c) == v.JOIN, s.names(m)), (c, m)),
        "join_of_replaced": (And(s.wire(c) == v.JOIN_PARKED, s.names(m)), (c, m)),
        "sync_of_fenced": (And(s.wire(c) == v.SYNC, s.names(m)), (c, m)),
        "late_request_of_fenced": (late, (c, m)),
        "heartbeat_of_fenced": (And(beats(s, c), s.id(m)), (c, m, n)),
    }


def instances(spec: Specification) -> Theorem:
    """That an instance has one member, whoever joins as it."""
    with_second = replace(spec, actions=(*spec.actions, *SECOND))
    own = spec.vocabulary.closed(INVARIANTS_OF_INSTANCES)
    return Theorem(
        name="instances",
        sentence="of the ids of an instance at most one is served and every other can be fenced, also where "
        "two processes have it",
        source="KIP-345",
        vocabulary=spec.vocabulary,
        cases=(
            taken(replace(spec, actions=SECOND)),
            *inductive(with_second, own),
            *_safe(with_second),
            *_served(spec, own),
            _fenced(spec, own),
        ),
        upon=(INVARIANTS,),
    )


def _safe(spec: Specification) -> Iterator[ProofCase]:
    """The second process breaks no invariant of safety."""
    symbols = {name: symbols_of(formula) for name, formula in spec.invariants.items()}
    for action in SECOND:
        yield replace(kept_by(spec, action, symbols), kind="safety")


def _served(spec: Specification, own: Mapping[str, Term]) -> Iterator[ProofCase]:
    """State that the sender of a served request is the one member of its instance."""
    s = spec.vocabulary.state()
    m, record = spec.vocabulary.parameter("m"), And(v.static(v.of(v.N)), s.member(v.N))
    for name in SERVES:
        goal = Implies(And(record, v.of(v.N) == v.of(m)), m == v.N)
        wanted = {"no other id of the instance is a member": partial(spec.vocabulary.close, goal)}
        yield spec.case(STEP, wanted, action=spec.action(name), given={**spec.invariants, **own})


def _fenced(spec: Specification, own: Mapping[str, Term]) -> ProofCase:
    """Return who comes with another id of an instance that has a member is fenced."""
    s = spec.vocabulary.state()
    c, m, n = (spec.vocabulary.parameter(letter) for letter in "cmn")
    other = And(v.static(c), v.of(m) == c, Not(s.member(m)), v.of(n) == c, s.member(n))
    goals = {}
    for name, (there, who) in _fencing(s).items():
        guard = spec.action(name).guard_of(*who)
        goals[f"{name} is possible"] = partial(Implies, And(other, there), guard)
    return spec.case(IMPLIES, goals, given={**spec.invariants, **own})
