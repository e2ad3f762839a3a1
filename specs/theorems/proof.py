"""Everything that is proved, in the order in which it is told."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import partial
from typing import Protocol

import z3
from rebalance.specs.logic.language import SpecAction, Term, symbols_of
from rebalance.specs.logic.specification import (
    IMPLIES,
    INIT,
    PROGRESS,
    STEP,
    ProofCase,
    Specification,
    Theorem,
)
from rebalance.specs.protocol import gate
from rebalance.specs.protocol.contract import LIVENESS, SAFETY, ContractClause
from rebalance.specs.protocol.protocol import Effect
from rebalance.specs.theorems import (
    boundary,
    convergence,
    instances,
    leftovers,
    steps,
    upgrade,
    zombies,
)
from rebalance.specs.theorems.outline import RESTS_ON
from rebalance.specs.theorems.safety import specification
from rebalance.specs.theorems.theorems import INVARIANTS, every_step, theorems

CALM, MEASURE = "calm", "measure"
"""Kinds of cases: a calm group stays calm; a step makes the measure smaller."""

STALE = ("stale claims",)


class Build(Protocol):
    """What makes a specification: of actions ``instead`` of others and a contract of the assignor."""

    def __call__(self, *instead: Effect, contract: Mapping[str, ContractClause]) -> Specification: ...


def proof(
    contract: Mapping[str, ContractClause] = SAFETY,
    build: Build = specification,
    calm: Mapping[str, Term] = convergence.CALM,
) -> tuple[Theorem, ...]:
    """All theorems about the protocol that ``build`` makes; ``contract`` is what is assumed of an assignor
    for safety, ``calm`` what holds of a calm group."""
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
    agree = {name: close(formula) for name, formula in upgrade.INVARIANTS.items()}
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
    calm = {name: close(formula) for name, formula in holds.items()}
    given = {**spec.invariants, **calm}
    cases = [_calm_at_first(spec, calm)]
    for action in spec.actions:
        if action.name in convergence.GENTLE:
            cases.append(_stays_calm(spec, action, calm, given))
        elif not action.fault:
            cases += _of_step(spec, action, calm, given)
    cases += [_possible(spec, situation, given) for situation in convergence.SITUATIONS]
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


def _stays_calm(
    spec: Specification, action: SpecAction, calm: Mapping[str, Term], given: Mapping[str, Term]
) -> ProofCase:
    kept = {
        name: partial(action.after, spec.vocabulary, formula)
        for name, formula in calm.items()
        if symbols_of(formula) & set(action.updates)
    }
    return spec.case(CALM, kept, action=action, given=given, near=_near(kept))


def _of_step(
    spec: Specification, action: SpecAction, calm: Mapping[str, Term], given: Mapping[str, Term]
) -> Iterator[ProofCase]:
    smaller = convergence.DECREASES.get(action.name)
    if smaller is None:
        never = {f"{action.name} is not possible": partial(z3.BoolVal, False)}
        yield spec.case(CALM, never, action=action, given=given, near=_near(never))
        return
    yield _stays_calm(spec, action, calm, given)
    not_yet: list[Term] = []
    waiting = list(smaller)
    goals = {}
    for ranking in convergence.MEASURE:
        if symbols_of(ranking.formula) & set(action.updates):
            goals[f"no more of: {ranking.name}"] = partial(_not_larger, spec, action, ranking, tuple(not_yet))
        if ranking.name == waiting[0]:
            not_yet.append(_smaller(spec, action, ranking))
            waiting.pop(0)
            if not waiting:
                break
    goals[f"less of: {' or '.join(smaller)}"] = partial(z3.Or, *not_yet)
    yield spec.case(MEASURE, goals, action=action, given=given, near=_near(goals))


def _not_larger(
    spec: Specification, action: SpecAction, ranking: convergence.RankingSet, unless: tuple[Term, ...]
) -> Term:
    """The set does not grow, unless a weightier one has shrunk."""
    grows = z3.And(action.after(spec.vocabulary, ranking.formula), z3.Not(ranking.formula))
    grown = z3.Exists([*ranking.letters], grows) if ranking.letters else grows
    return z3.Or(z3.Not(grown), *unless)


def _smaller(spec: Specification, action: SpecAction, ranking: convergence.RankingSet) -> Term:
    """Something is in the set before the step and not after it."""
    less = z3.And(ranking.formula, z3.Not(action.after(spec.vocabulary, ranking.formula)))
    return z3.Exists([*ranking.letters], less) if ranking.letters else less


def _possible(spec: Specification, situation: convergence.Situation, given: Mapping[str, Term]) -> ProofCase:
    guards = [spec.action(name).guard_of(*who) for name, who in situation.steps.items()]
    goals = {situation.name: partial(z3.Or, *guards)}
    return spec.case(PROGRESS, goals, facts={"given": situation.given}, given=given, near=_near(goals))


def _near(goals: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Which hypotheses each goal rests on: itself before the step, and what the outline says."""
    itself = [{goal} & convergence.CALM.keys() for goal in goals]
    return {goal: (*same, *RESTS_ON.get(goal, ())) for goal, same in zip(goals, itself, strict=True)}
