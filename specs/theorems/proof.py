"""Everything that is proved, in the order in which it is told."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import partial

import z3
from rebalance.specs import convergence, steps, upgrade
from rebalance.specs.contract import LIVENESS, SAFETY, Clause
from rebalance.specs.logic import NEXT, Action, Term, symbols_of
from rebalance.specs.outline import RESTS_ON
from rebalance.specs.protocol import Specification, specification
from rebalance.specs.theorems import IMPLIES, INIT, INVARIANTS, STEP, Case, Theorem, theorems

CALM, MEASURE, PROGRESS = "calm", "measure", "progress"
"""Kinds of cases: a calm group stays calm; a step makes the measure smaller; something can be done."""

STALE = ("stale claims",)


def proof(contract: Mapping[str, Clause] = SAFETY) -> tuple[Theorem, ...]:
    """All theorems about the protocol; ``contract`` is what is assumed of an assignor for safety."""
    spec = specification(contract=contract)
    return (
        *theorems(spec),
        _every_step(
            spec,
            "stale claims",
            "a claim displaces an owner only if it is newer than the ownership",
            "KIP-792",
            {name: steps.STEPS[name] for name in STALE},
        ),
        _every_step(
            spec,
            "callbacks",
            "what goes is revoked while it is owned and before anything comes, and nothing in silence",
            "KIP-429, ConsumerRebalanceListener",
            {name: formula for name, formula in steps.STEPS.items() if name not in STALE},
        ),
        _upgrades(contract),
        _convergence(contract),
    )


def _axioms(spec: Specification) -> dict[str, Term]:
    return {f"axiom: {name}": formula for name, formula in spec.axioms.items()}


def _facts(spec: Specification, action: Action) -> dict[str, Term]:
    return {**_axioms(spec), "guard": action.guard, "what is open": action.where(spec.vocabulary)}


# -- every step ----------------------------------------------------------------------------------------


def _every_step(
    spec: Specification, name: str, sentence: str, source: str, formulas: Mapping[str, Term]
) -> Theorem:
    closed = {name: spec.vocabulary.close(formula) for name, formula in formulas.items()}
    cases = []
    for action in (*spec.actions, None):
        goals = {
            name: partial(_across, spec, action, formula)
            for name, formula in closed.items()
            if action is None or _changes(action, formula)
        }
        if goals:
            facts = partial(_facts, spec, action) if action else partial(_axioms, spec)
            what = action.name if action else "any step that changes none of it"
            cases.append(Case(STEP, what, facts, goals, given=spec.invariants, action=action))
    return Theorem(name, sentence, source, spec.vocabulary, tuple(cases), upon=(INVARIANTS,))


def _changes(action: Action, formula: Term) -> bool:
    return any(name + NEXT in symbols_of(formula) for name in action.updates)


def _across(spec: Specification, action: Action | None, formula: Term) -> Term:
    if action is not None:
        return action.across(spec.vocabulary, formula)
    same = [
        (symbol.of(NEXT), symbol.of()(*(z3.Var(i, sort) for i, sort in enumerate(symbol.arguments))))
        for symbol in spec.vocabulary.mutable
    ]
    return z3.substitute_funs(formula, *same)


# -- upgrades ------------------------------------------------------------------------------------------


def _upgrades(clauses: Mapping[str, Clause]) -> Theorem:
    spec = specification(upgrade.reconfigure, contract=clauses)
    close = spec.vocabulary.close
    agree = {name: close(formula) for name, formula in upgrade.INVARIANTS.items()}
    needed = ("nothing is known of others", "only JoinGroup lists", "an empty group in the log")
    given = {**{name: spec.invariants[name] for name in needed}, **agree}
    at_first = Case(
        INIT,
        "",
        lambda: {
            **_axioms(spec),
            "initial state": spec.initial,
            "a first agreement": close(upgrade.AT_FIRST),
        },
        {name: partial(agree.__getitem__, name) for name in agree},
    )
    kept = [
        Case(
            STEP,
            action.name,
            partial(_facts, spec, action),
            {name: partial(action.after, spec.vocabulary, formula) for name, formula in agree.items()},
            given=given,
            action=action,
        )
        for action in spec.actions
        if any(symbols_of(formula) & set(action.updates) for formula in agree.values())
    ]
    follows = Case(
        IMPLIES,
        "",
        partial(_axioms, spec),
        {name: partial(close, formula) for name, formula in upgrade.PROPERTIES.items()},
        given=given,
    )
    return Theorem(
        "upgrades",
        "in a legal rolling upgrade no member is turned away for its list of assignors",
        "KIP-429, consumer upgrade path",
        spec.vocabulary,
        (at_first, *kept, follows),
        upon=(INVARIANTS,),
    )


# -- convergence ---------------------------------------------------------------------------------------


def _convergence(clauses: Mapping[str, Clause]) -> Theorem:
    spec = specification(contract={**clauses, **LIVENESS})
    close = spec.vocabulary.close
    calm = {name: close(formula) for name, formula in convergence.CALM.items()}
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
    cases.append(
        Case(
            IMPLIES,
            "nothing to do",
            lambda: {**_axioms(spec), **at_rest},
            ends,
            given=given,
            near=_near(ends),
        )
    )
    return Theorem(
        "convergence",
        "each step of a calm group makes the measure smaller; where none is possible it is settled",
        "KIP-429; contract.LIVENESS",
        spec.vocabulary,
        tuple(cases),
        upon=(INVARIANTS,),
    )


def _calm_at_first(spec: Specification, calm: Mapping[str, Term]) -> Case:
    facts = {**_axioms(spec), "initial state": spec.initial}
    facts["a common list"] = convergence.at_first(spec.vocabulary.state())
    return Case(INIT, "", lambda: facts, {name: partial(calm.__getitem__, name) for name in calm})


def _stays_calm(
    spec: Specification, action: Action, calm: Mapping[str, Term], given: Mapping[str, Term]
) -> Case:
    kept = {
        name: partial(action.after, spec.vocabulary, formula)
        for name, formula in calm.items()
        if symbols_of(formula) & set(action.updates)
    }
    facts = partial(_facts, spec, action)
    return Case(CALM, action.name, facts, kept, given=given, near=_near(kept), action=action)


def _of_step(
    spec: Specification, action: Action, calm: Mapping[str, Term], given: Mapping[str, Term]
) -> Iterator[Case]:
    facts = partial(_facts, spec, action)
    smaller = convergence.DECREASES.get(action.name)
    if smaller is None:
        never = {f"{action.name} is not possible": partial(z3.BoolVal, False)}
        yield Case(CALM, action.name, facts, never, given=given, near=_near(never), action=action)
        return
    yield _stays_calm(spec, action, calm, given)
    not_yet: list[Term] = []
    waiting = list(smaller)
    goals = {}
    for still in convergence.MEASURE:
        if symbols_of(still.formula) & set(action.updates):
            goals[f"no more of: {still.name}"] = partial(_not_larger, spec, action, still, tuple(not_yet))
        if still.name == waiting[0]:
            not_yet.append(_smaller(spec, action, still))
            waiting.pop(0)
            if not waiting:
                break
    goals[f"less of: {' or '.join(smaller)}"] = partial(z3.Or, *not_yet)
    yield Case(MEASURE, action.name, facts, goals, given=given, near=_near(goals), action=action)


def _not_larger(
    spec: Specification, action: Action, still: convergence.Still, unless: tuple[Term, ...]
) -> Term:
    """The set does not grow, unless a weightier one has shrunk."""
    grows = z3.And(action.after(spec.vocabulary, still.formula), z3.Not(still.formula))
    grown = z3.Exists([*still.letters], grows) if still.letters else grows
    return z3.Or(z3.Not(grown), *unless)


def _smaller(spec: Specification, action: Action, still: convergence.Still) -> Term:
    """Something is in the set before the step and not after it."""
    less = z3.And(still.formula, z3.Not(action.after(spec.vocabulary, still.formula)))
    return z3.Exists([*still.letters], less) if still.letters else less


def _possible(spec: Specification, situation: convergence.Situation, given: Mapping[str, Term]) -> Case:
    guards = [
        z3.substitute(spec.action(name).guard, *zip(spec.action(name).parameters, who, strict=True))
        for name, who in situation.steps.items()
    ]
    goals = {situation.name: partial(z3.Or, *guards)}
    facts = {**_axioms(spec), "given": situation.given}
    return Case(PROGRESS, "", lambda: facts, goals, given=given, near=_near(goals))


def _near(goals: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Which hypotheses each goal rests on: itself before the step, and what the outline says."""
    itself = [{goal} & convergence.CALM.keys() for goal in goals]
    return {goal: (*same, *RESTS_ON.get(goal, ())) for goal, same in zip(goals, itself, strict=True)}
