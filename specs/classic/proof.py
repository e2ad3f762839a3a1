"""Everything that is proved, in the order in which it is told."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import partial
from typing import Protocol

import z3
from rebalance_verifier.specs.classic import (
    boundary,
    convergence,
    gate,
    instances,
    leftovers,
    steps,
    upgrade,
    zombies,
)
from rebalance_verifier.specs.classic.contract import LIVENESS, SAFETY, ContractClause
from rebalance_verifier.specs.classic.safety import specification
from rebalance_verifier.specs.logic.language import Effect, SpecAction, Term, symbols_of
from rebalance_verifier.specs.logic.outline import RESTS_ON
from rebalance_verifier.specs.logic.ranking import Ranking
from rebalance_verifier.specs.logic.specification import (
    IMPLIES,
    INIT,
    STEP,
    ProofCase,
    Specification,
    Theorem,
)
from rebalance_verifier.specs.logic.theorems import INVARIANTS, every_step, theorems

CALM = "calm"
"""Kind of a case: a calm group stays calm."""

STALE = ("stale claims",)


class Build(Protocol):
    """Parts of a specification: of actions ``instead`` of others and a contract of the assignor."""

    def __call__(self, *instead: Effect, contract: Mapping[str, ContractClause]) -> Specification: ...


def proof(
    contract: Mapping[str, ContractClause] = SAFETY,
    build: Build = specification,
    calm: Mapping[str, Term] = convergence.CALM,
) -> tuple[Theorem, ...]:
    """Return all theorems about the protocol that ``build`` makes; ``contract`` is what is assumed of an
    assignor for safety, ``calm`` what holds of a calm group."""
    spec = build(contract=contract)
    return (
        *theorems(spec),
        every_step(
            spec,
            "stale claims",
            "a claim displaces an owner only if it is newer than the ownership",
            "KIP-792",
            {name: steps.STEPS[name] for name in STALE},
        ),
        every_step(
            spec,
            "callbacks",
            "what goes is revoked while it is owned and before anything comes, and nothing in silence",
            "KIP-429, ConsumerRebalanceListener",
            {name: formula for name, formula in steps.STEPS.items() if name not in STALE},
        ),
        _upgrades(contract, build),
        _convergence(contract, build, calm),
        boundary.contract(build(contract=SAFETY), build(contract=gate.SAFETY)),
        instances.instances(spec),
        zombies.zombies(spec),
        leftovers.leftovers(spec),
    )


# -- upgrades ------------------------------------------------------------------------------------------


def _upgrades(clauses: Mapping[str, ContractClause], build: Build) -> Theorem:
    spec = build(upgrade.reconfigure, contract=clauses)
    close = spec.vocabulary.close
    agree = spec.vocabulary.closed(upgrade.INVARIANTS)
    needed = ("nothing is known of others", "only JoinGroup lists", "an empty group in the log")
    given = {**{name: spec.invariants[name] for name in needed}, **agree}
    first = {"initial state": spec.initial, "a first agreement": close(upgrade.AT_FIRST)}
    at_first = spec.case(
        INIT, {name: partial(agree.__getitem__, name) for name in agree}, facts=first, given={}
    )
    kept = [
        spec.case(
            STEP,
            {name: partial(action.after, spec.vocabulary, formula) for name, formula in agree.items()},
            action=action,
            given=given,
        )
        for action in spec.actions
        if any(symbols_of(formula) & set(action.updates) for formula in agree.values())
    ]
    wanted = {name: partial(close, formula) for name, formula in upgrade.PROPERTIES.items()}
    follows = spec.case(IMPLIES, wanted, given=given)
    return Theorem(
        name="upgrades",
        sentence="in a legal rolling upgrade no member is turned away for its list of assignors",
        source="KIP-429, consumer upgrade path",
        vocabulary=spec.vocabulary,
        cases=(at_first, *kept, follows),
        upon=(INVARIANTS,),
    )


# -- convergence ---------------------------------------------------------------------------------------


def _convergence(clauses: Mapping[str, ContractClause], build: Build, holds: Mapping[str, Term]) -> Theorem:
    spec = build(contract={**clauses, **LIVENESS})
    close = spec.vocabulary.close
    calm = spec.vocabulary.closed(holds)
    given = {**spec.invariants, **calm}
    cases = [_calm_at_first(spec, calm)]
    ranking = Ranking(spec=spec, measure=convergence.MEASURE, given=given, near=_near)
    for action in spec.actions:
        if action.name in convergence.GENTLE:
            cases.append(ranking.keeps(CALM, action, calm))
        elif not action.fault:
            cases += _of_step(ranking, action, calm)
    cases += [ranking.possible(situation) for situation in convergence.SITUATIONS]
    state = spec.vocabulary.state()
    at_rest = {f"at rest {i}": fact for i, fact in enumerate(convergence.nothing_to_do(state))}
    ends = {name: partial(close, formula) for name, formula in convergence.settled(state).items()}
    cases.append(spec.case(IMPLIES, ends, name="nothing to do", facts=at_rest, given=given, near=_near(ends)))
    return Theorem(
        name="convergence",
        sentence="each step of a calm group makes the measure smaller; where none is possible it is settled",
        source="KIP-429; contract.LIVENESS",
        vocabulary=spec.vocabulary,
        cases=tuple(cases),
        upon=(INVARIANTS,),
    )


def _calm_at_first(spec: Specification, calm: Mapping[str, Term]) -> ProofCase:
    first = convergence.at_first(spec.vocabulary.state())
    return spec.case(
        INIT,
        {name: partial(calm.__getitem__, name) for name in calm},
        facts={"initial state": spec.initial, "a common list": first},
        given={},
    )


def _of_step(ranking: Ranking, action: SpecAction, calm: Mapping[str, Term]) -> Iterator[ProofCase]:
    smaller = convergence.DECREASES.get(action.name)
    if smaller is None:
        never = {f"{action.name} is not possible": partial(z3.BoolVal, False)}
        yield ranking.spec.case(CALM, never, action=action, given=ranking.given, near=_near(never))
        return
    yield ranking.keeps(CALM, action, calm)
    yield ranking.decreases(action, smaller)


def _near(goals: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Return which hypotheses each goal rests on: itself before the step, and what the outline says."""
    itself = [{goal} & convergence.CALM.keys() for goal in goals]
    return {goal: (*same, *RESTS_ON.get(goal, ())) for goal, same in zip(goals, itself, strict=True)}
