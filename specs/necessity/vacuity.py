"""Is the proof about something? Assumptions that contradict each other prove everything, an action that is
never possible breaks nothing, an invariant that cannot be false says nothing.

So every assumption is shown to be consistent, every action to be taken in a run from the beginning or proved
to be impossible for ever, and every formula to fail in some state, of the invariants even in one where all
others hold. What is shown to be possible is shown by a group; the runs are checked step by step by the
explicit evaluator, which shares nothing with the solver.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

import z3
from rebalance.specs.bounded import LIMIT, Run, Steps, Unrolling
from rebalance.specs.concrete import Stepper
from rebalance.specs.contract import LIVENESS, SAFETY, Clause
from rebalance.specs.finite import Finite
from rebalance.specs.limit import check
from rebalance.specs.logic import Action, Term
from rebalance.specs.protocol import Specification
from rebalance.specs.prover import Verdict, discharge
from rebalance.specs.theorems import IMPLIES, INVARIANTS, Case, theorems
from rebalance.specs.vocabulary import M, Member, P, Partition
from rebalance.specs.witnesses import LEMMAS, NEVER, WITNESSES, path_to

SIZES = {"Consumer": 2, "Member": 3, "Partition": 2, "Generation": 5, "Assignor": 2}
"""Groups in which something is shown to be possible."""


class Finding(StrEnum):
    """What was found. Only the last two are bad news."""

    CONSISTENT = "consistent"
    REACHED = "reached"
    NEVER = "never possible"
    INDEPENDENT = "independent"
    IMPLIED = "implied by others"
    VACUOUS = "vacuous"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Vacuity:
    """One thing that might say nothing. ``because``: the path of actions to it, the formulas that imply it,
    or the lemmas that make it impossible."""

    kind: str
    name: str
    finding: Finding
    because: tuple[str, ...] = ()


def vacuity(spec: Specification, contract: Mapping[str, Clause] | None = None) -> Iterator[Vacuity]:
    """Everything of which it is asked, in this order; the ``contract`` is by default the whole."""
    yield from assumptions(spec)
    yield from actions(spec)
    yield from formulas(spec, "invariant", spec.invariants)
    yield from formulas(spec, "property", spec.properties)
    yield from clauses(spec, {**SAFETY, **LIVENESS} if contract is None else contract)


# -- assumptions ---------------------------------------------------------------------------------------


def assumptions(spec: Specification) -> Iterator[Vacuity]:
    """The axioms, alone and with what is assumed besides."""
    lead = spec.action("lead")
    asked: dict[str, list[Term]] = {
        "axioms": [],
        "initial state": [spec.initial],
        "invariants": [*spec.invariants.values()],
        "contract": [*spec.invariants.values(), lead.guard, lead.where(spec.vocabulary)],
    }
    group = _Group(spec)
    for name, together in asked.items():
        yield Vacuity("assumption", name, _finding(group.possible(*together), Finding.CONSISTENT))


# -- actions -------------------------------------------------------------------------------------------


def actions(
    spec: Specification,
    witnesses: Mapping[str, str] = WITNESSES,
    never: Mapping[str, tuple[str, ...]] = NEVER,
) -> Iterator[Vacuity]:
    """Each action is taken in a run from the beginning, or never."""
    steps = Steps(spec, SIZES)
    for action in spec.actions:
        if action.name in witnesses:
            path = path_to(action.name, witnesses)
            taken = witness(spec, (*path, action.name), steps) is not None
            yield Vacuity("action", action.name, _finding(taken, Finding.REACHED), path)
        else:
            lemmas = never.get(action.name, ())
            verdict = impossible(spec, action, lemmas) if lemmas else False
            yield Vacuity("action", action.name, _finding(verdict, Finding.NEVER), lemmas)


def witness(spec: Specification, path: tuple[str, ...], steps: Steps | None = None) -> Run | None:
    """A run by these actions. The solver finds it, the explicit evaluator checks it.

    Raises ValueError if they contradict each other.
    """
    unrolling = Unrolling(spec, None, steps or Steps(spec, SIZES))
    unrolling.require(spec.initial)
    for name in path:
        unrolling.step(spec.action(name))
    run = unrolling.answer(LIMIT).run
    if run is not None:
        stepper, before = Stepper(run.universe, spec.actions), run.initial
        wrong = None if stepper.holds(spec.initial, before) else "it does not begin as specified"
        for name, parameters, after in run.steps:
            wrong = wrong or stepper.allowed(before, name, parameters, after)
            before = after
        if wrong:
            raise ValueError(f"{' '.join(path)}: {wrong}")
    return run


def impossible(spec: Specification, action: Action, lemmas: tuple[str, ...]) -> bool:
    """Whether the lemmas, with the invariants, exclude the action in groups of any size."""
    known = {**spec.invariants, **{name: spec.vocabulary.close(LEMMAS[name]) for name in lemmas}}
    case = Case(
        IMPLIES,
        action.name,
        lambda: {**spec.axioms, "guard": action.guard},
        {action.name: lambda: z3.BoolVal(False)},
        given=known,
    )
    return all(answer.verdict is Verdict.PROVED for answer in discharge(spec.vocabulary, case))


def lemmas(spec: Specification) -> Iterator[tuple[str, str, Verdict]]:
    """What is asked of the lemmas: that they hold at first, and that every action keeps them."""
    closed = {name: spec.vocabulary.close(formula) for name, formula in LEMMAS.items()}
    every = replace(spec, invariants={**spec.invariants, **closed})
    theorem = next(one for one in theorems(every) if one.name == INVARIANTS)
    for case in theorem.cases:
        case = replace(case, goals={name: goal for name, goal in case.goals.items() if name in LEMMAS})
        for answer in discharge(spec.vocabulary, case):
            yield case.name, answer.goal, answer.verdict


# -- invariants and properties -------------------------------------------------------------------------


def formulas(
    spec: Specification, kind: str, among: Mapping[str, Term], given: Mapping[str, Term] | None = None
) -> Iterator[Vacuity]:
    """Each fails in some state, and in one where all others ``among`` them hold; else these imply it.

    What is ``given`` holds in all of these states.
    """
    group = _Group(spec)
    group.require(*(given or {}).values())
    group.track(among)
    for name, formula in among.items():
        others = {other: among[other] for other in among if other != name}
        if group.possible(z3.Not(formula), holding=others):
            yield Vacuity(kind, name, Finding.INDEPENDENT)
        elif (because := implied(spec, formula, {**(given or {}), **others})) is None:
            yield Vacuity(kind, name, Finding.UNKNOWN)
        else:
            vacuous = not any(other in others for other in because)
            yield Vacuity(kind, name, Finding.VACUOUS if vacuous else Finding.IMPLIED, because)


def implied(
    spec: Specification, formula: Term, others: Mapping[str, Term], limit: float = 10.0
) -> tuple[str, ...] | None:
    """Those of the others that imply the formula in states of any size, none too many; None if they do not,
    or nobody knows."""

    def follows(names: list[str]) -> list[str] | None:
        solver = z3.Solver()
        solver.set("random_seed", 0)
        solver.add(*spec.axioms.values(), z3.Not(formula))
        marks = {name: z3.Bool(f"given {name}") for name in names}
        solver.add(*(z3.Implies(marks[name], others[name]) for name in names))
        if check(solver, limit, *marks.values()) != z3.unsat:
            return None
        core = {str(mark) for mark in solver.unsat_core()}
        return [name for name in names if str(marks[name]) in core]

    needed = follows(list(others))
    for name in needed or ():
        fewer = follows([other for other in needed or () if other != name])
        needed = needed if fewer is None else fewer
    return None if needed is None else tuple(needed)


# -- the contract --------------------------------------------------------------------------------------


def clauses(spec: Specification, contract: Mapping[str, Clause]) -> Iterator[Vacuity]:
    """An assignor that offers something can keep the whole contract where it is asked; and each clause
    forbids something that all others would allow."""
    offer = z3.Function("offer?", Member, Partition, z3.BoolSort())
    state = spec.vocabulary.state()
    kept = {name: spec.vocabulary.close(clause(state, offer)) for name, clause in contract.items()}
    asked = {
        **spec.invariants,
        "the leader asks": spec.action("lead").guard,
        "something is offered": z3.Exists([M, P], offer(M, P)),
    }
    group = _Group(spec)
    possible = group.possible(*asked.values(), *kept.values())
    yield Vacuity("clause", "all together", _finding(possible, Finding.CONSISTENT))
    yield from formulas(spec, "clause", kept, asked)


class _Group:
    """A state of a small group, of which some formulas hold for certain and others when asked."""

    def __init__(self, spec: Specification) -> None:
        self._finite = Finite(spec.vocabulary, {**dict.fromkeys(spec.vocabulary.sorts, 1), **SIZES})
        self._marks: dict[str, Term] = {}
        self.require(*spec.axioms.values())

    def require(self, *formulas: Term) -> None:
        self._finite.add(*formulas)

    def track(self, formulas: Mapping[str, Term]) -> None:
        """These hold when they are named."""
        for name, formula in formulas.items():
            self._marks[name] = z3.Bool(f"given {name}")
            self._finite.add(z3.Implies(self._marks[name], formula))

    def possible(self, *formulas: Term, holding: Iterable[str] = ()) -> bool:
        """Whether there is such a group; False also if the solver does not know."""
        marks = [self._marks[name] for name in holding]
        with self._finite.supposing(*formulas):
            return self._finite.possible(time.monotonic() + LIMIT, *marks)


def _finding(possible: bool, finding: Finding) -> Finding:
    return finding if possible else Finding.UNKNOWN
