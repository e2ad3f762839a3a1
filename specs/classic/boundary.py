"""From the gate to the contract: an assignor that is found conformant keeps what the proof assumes.

Each clause of the contract is proved of those of the gate that stand beside it in
``specs.classic.gate.COUNTERPARTS``. Three need more than these.

- ``complete`` speaks of every partition, the gate of those that the leader knows.
- ``newest_claim`` says that a partition goes to a member whose claim is newer than any other; the gate lets
  any of several members keep it that claim it since one generation, since nobody can tell which one owns it.
  Among honest members there is no such tie, which is proved too. Beside members whose claims are stale or
  invented there may be one. So the decision of a leader whose assignor keeps no more than the gate's clauses
  is proved to keep every invariant, and with them exclusive ownership among the honest; a claim displaces an
  owner then only if it is at least as new as the ownership.
- ``stays`` is what the clauses below ``kip429/converge`` ask of a group that is left alone, in its second
  round. One of them, that two rounds are enough, is a clause of quality, and the COOPERATIVE assignors that
  were released break it now and then where subscriptions differ (KAFKA-8767).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial

import z3
from rebalance_verifier.specs.classic import gate
from rebalance_verifier.specs.classic import vocabulary as v
from rebalance_verifier.specs.classic.contract import LIVENESS, SAFETY
from rebalance_verifier.specs.classic.steps import displaced
from rebalance_verifier.specs.logic.language import NEXT, Term, symbols_of
from rebalance_verifier.specs.logic.specification import (
    ASSUMPTIONS,
    IMPLIES,
    ProofCase,
    Specification,
    Theorem,
)
from rebalance_verifier.specs.logic.theorems import INVARIANTS, kept_by
from z3 import And, Exists, Implies, Not

_offered = z3.Function("offered", v.Member, v.Partition, z3.BoolSort())
_s = v.VOCABULARY.state()
_exists = z3.Function("exists", v.Partition, z3.BoolSort())
_call = replace(gate.call_of(_s, _offered), exists=_exists)

_TIE = And(
    _s.member(v.M), _s.member(v.N), _s.claim(v.M, v.P) != v.none, _s.claim(v.M, v.P) == _s.claim(v.N, v.P)
)

GIVEN: Mapping[str, Mapping[str, Term]] = {
    "newest_claim": {"no two claims are of one generation": Implies(_TIE, v.M == v.N)},
    "complete": {"the leader knows every partition": _exists(v.P)},
    "stays": {
        "a leader asks": _s.group == v.COMPLETING,
        "everybody is honest": v.honest(v.C),
        "nobody is silent": Not(_s.silent(v.M)),
    },
}
"""What a clause of the contract needs besides; what is given for the last two is so in calm groups."""

AMONG_HONEST = {
    "no two claims of honest members are of one generation": Implies(
        And(_TIE, v.honest(v.of(v.M)), v.honest(v.of(v.N))), v.M == v.N
    )
}


def contract(spec: Specification, under_gate: Specification) -> Theorem:
    """That the gate's clauses are enough; ``under_gate`` is ``spec`` with them in place of the contract."""
    return Theorem(
        name="contract",
        sentence="an assignor that keeps the gate's clauses keeps what the proof assumes of it",
        source="properties.assignors.clauses",
        vocabulary=spec.vocabulary,
        cases=(*_clauses(spec), _untied(spec), _decision(under_gate), _possible(spec)),
        upon=(INVARIANTS,),
    )


def _clauses(spec: Specification) -> Iterator[ProofCase]:
    """Yield each clause of the contract from its counterparts, in a state where the invariants hold."""
    close = spec.vocabulary.close
    for name, clause in {**SAFETY, **LIVENESS}.items():
        if counterparts := gate.COUNTERPARTS[name]:
            facts = {other: close(gate.FORMULAS[other](_call)) for other in counterparts}
            besides = {what: close(fact) for what, fact in GIVEN.get(name, {}).items()}
            goal = {name: partial(close, clause(_s, _offered))}
            yield spec.case(IMPLIES, goal, name=" and ".join(counterparts), facts={**facts, **besides})


def _untied(spec: Specification) -> ProofCase:
    goals = {name: partial(spec.vocabulary.close, formula) for name, formula in AMONG_HONEST.items()}
    return spec.case(IMPLIES, goals, name="honest members")


def _decision(spec: Specification) -> ProofCase:
    """Return the leader's step, of an assignor of which the gate's clauses are known and nothing else."""
    lead = spec.action("lead")
    case = kept_by(spec, lead, {name: symbols_of(formula) for name, formula in spec.invariants.items()})
    older = And(displaced(_s, v.VOCABULARY.state(NEXT)), v.lt(_s.claim(v.N, v.P), _s.since(v.of(v.M), v.P)))
    displaces = partial(lead.across, spec.vocabulary, spec.vocabulary.close(Not(older)))
    return replace(case, goals={**case.goals, "no older claim displaces an owner": displaces})


def _possible(spec: Specification) -> ProofCase:
    """The gate's clauses do not contradict each other, nor what else is known when a leader asks."""
    close = spec.vocabulary.close
    facts = {name: close(formula(_call)) for name, formula in gate.FORMULAS.items()}
    facts["a leader asks"] = spec.action("lead").guard
    goal = {"they can be kept, and something be offered": lambda: Exists([v.M, v.P], _offered(v.M, v.P))}
    return spec.case(ASSUMPTIONS, goal, name="the gate", facts=facts, possible=True)
