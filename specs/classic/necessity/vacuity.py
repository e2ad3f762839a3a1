"""Is the proof about something? Assumptions that contradict each other prove everything, an action that is
never possible breaks nothing, an invariant that cannot be false says nothing.

So every assumption is shown to be consistent, every action to be taken in a run from the beginning or proved
to be impossible for ever, and every formula to fail in some state, of the invariants even in one where all
others hold. What is shown to be possible is shown by a group; the runs are checked step by step by the
explicit evaluator, which shares nothing with the solver.

``checks`` are all of them in pieces of work, each about some names; ``specs.proving`` makes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial

import z3
from rebalance_verifier.specs.classic.contract import LIVENESS, SAFETY, ContractClause
from rebalance_verifier.specs.classic.necessity.witnesses import LEMMAS, NEVER, WITNESSES, path_to
from rebalance_verifier.specs.classic.vocabulary import M, Member, P, Partition
from rebalance_verifier.specs.logic.bounded import StepRelations, run_by
from rebalance_verifier.specs.logic.finite import Finite
from rebalance_verifier.specs.logic.language import SpecAction, Term
from rebalance_verifier.specs.logic.limit import LIMIT, Budget
from rebalance_verifier.specs.logic.prover import ProofVerdict, Spread, discharge, in_turn
from rebalance_verifier.specs.logic.specification import IMPLIES, Specification
from rebalance_verifier.specs.logic.theorems import INVARIANTS, theorems

SIZES = {"Consumer": 2, "Member": 3, "Partition": 2, "Generation": 5, "Assignor": 2}
"""Groups in which something is shown to be possible."""


KINDS = ("assumption", "action", "lemma", "invariant", "property", "clause")
"""Of what it is asked."""


class VacuityFinding(StrEnum):
    """Result of a search for vacuity. Only the last two are bad news."""

    CONSISTENT = "consistent"
    REACHED = "reached"
    NEVER = "never possible"
    PROVED = "proved"
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
    finding: VacuityFinding
    because: tuple[str, ...] = ()

    @property
    def doubtful(self) -> bool:
        """It says nothing, or nobody knows."""
        return self.finding in (VacuityFinding.VACUOUS, VacuityFinding.UNKNOWN)


@dataclass(frozen=True)
class VacuityCheck:
    """A piece of the work: a row for each of the names comes of it."""

    kind: str
    names: tuple[str, ...]
    ask: Callable[[], Iterable[Vacuity]]


def checks(
    spec: Specification, contract: Mapping[str, ContractClause] = {**SAFETY, **LIVENESS}
) -> tuple[VacuityCheck, ...]:
    """Return everything that is asked of a specification whose assignors keep ``contract``."""
    return (
        VacuityCheck("assumption", ASSUMED, lambda: assumptions(spec)),
        *actions(spec),
        VacuityCheck("lemma", tuple(LEMMAS), lambda: lemmas(spec)),
        VacuityCheck(
            "invariant", tuple(spec.invariants), lambda: formulas(spec, "invariant", spec.invariants)
        ),
        VacuityCheck("property", tuple(spec.properties), lambda: formulas(spec, "property", spec.properties)),
        VacuityCheck("clause", (TOGETHER, *contract), lambda: clauses(spec, contract)),
    )


def of_protocol(
    spec: Specification, witnesses: Mapping[str, str], besides: Mapping[str, Term] = {}
) -> tuple[VacuityCheck, ...]:
    """Return what is asked of a protocol with these runs; ``besides`` are invariants that rest on its own."""
    invariants = [*spec.invariants.values()]
    assumed = {"axioms": [], "initial state": [spec.initial], "invariants": invariants}
    rows: list[tuple[str, Mapping[str, Term], Mapping[str, Term]]] = [
        ("invariant", spec.invariants, {}), ("property", spec.properties, {}),
    ]  # fmt: skip
    if besides:
        assumed["in step"] = [*invariants, *besides.values()]
        rows.insert(1, ("invariant", besides, spec.invariants))
    return (
        VacuityCheck("assumption", tuple(assumed), lambda: consistent(spec, assumed)),
        *actions(spec, witnesses, {}),
        *(
            VacuityCheck(kind, tuple(among), partial(formulas, spec, kind, among, given))
            for kind, among, given in rows
        ),
    )


def examined(
    asked_of: Sequence[VacuityCheck], *, spread: Spread = in_turn
) -> Iterator[tuple[int, tuple[Vacuity, ...]]]:
    """Yield the number of each check and what came of it, as they come."""
    for number, rows in spread(lambda i: tuple(asked_of[i].ask()), len(asked_of)):
        check = asked_of[number]
        lost = (Vacuity(check.kind, name, VacuityFinding.UNKNOWN) for name in check.names)
        yield number, tuple(lost) if rows is None else rows


# -- assumptions ---------------------------------------------------------------------------------------


ASSUMED = ("axioms", "initial state", "invariants", "contract")


def assumptions(spec: Specification) -> Iterator[Vacuity]:
    """Yield the axioms, alone and with what is assumed besides."""
    lead, invariants = spec.action("lead"), [*spec.invariants.values()]
    asked_first = [lead.guard, lead.where(spec.vocabulary)]
    besides = (list[Term](), [spec.initial], invariants, [*invariants, *asked_first])
    return consistent(spec, dict(zip(ASSUMED, besides, strict=True)))


def consistent(spec: Specification, besides: Mapping[str, Iterable[Term]]) -> Iterator[Vacuity]:
    """By name, what is to be consistent with the axioms."""
    group = _SmallGroup(spec)
    for name, together in besides.items():
        yield Vacuity("assumption", name, _finding(group.possible(*together), VacuityFinding.CONSISTENT))


# -- actions -------------------------------------------------------------------------------------------


def actions(
    spec: Specification,
    witnesses: Mapping[str, str] = WITNESSES,
    never: Mapping[str, tuple[str, ...]] = NEVER,
) -> Iterator[VacuityCheck]:
    """That each action is taken in a run from the beginning, or never; one run is for all that it takes."""
    names = [action.name for action in spec.actions]
    steps = StepRelations(spec, SIZES)
    for path in covering([name for name in names if name in witnesses], witnesses):
        taken = tuple(path[1])
        yield VacuityCheck("action", taken, partial(_taken, path[0], taken, steps))
    for name in names:
        if name not in witnesses:
            yield VacuityCheck("action", (name,), partial(_never, spec, name, never.get(name, ())))


def covering(
    names: Sequence[str], witnesses: Mapping[str, str] = WITNESSES
) -> Iterator[tuple[tuple[str, ...], list[str]]]:
    """Few runs by which all of these actions are taken; each with those that no run before it takes."""
    paths = [(*path_to(name, witnesses), name) for name in names]
    left = dict.fromkeys(names)
    for path in sorted(paths, key=len, reverse=True):
        if path[-1] in left:
            new = [name for name in left if name in path]
            for name in new:
                del left[name]
            yield path, new


def _taken(path: tuple[str, ...], names: Iterable[str], steps: StepRelations) -> Iterator[Vacuity]:
    found = run_by(steps, path) is not None
    for name in names:
        yield Vacuity("action", name, _finding(found, VacuityFinding.REACHED), path[: path.index(name)])


def _never(spec: Specification, name: str, lemmas: tuple[str, ...]) -> Iterator[Vacuity]:
    excluded = bool(lemmas) and impossible(spec, spec.action(name), lemmas)
    yield Vacuity("action", name, _finding(excluded, VacuityFinding.NEVER), lemmas)


def impossible(spec: Specification, action: SpecAction, lemmas: tuple[str, ...]) -> bool:
    """Check whether the lemmas, with the invariants, exclude the action in groups of any size."""
    known = {**spec.invariants, **{name: spec.vocabulary.close(LEMMAS[name]) for name in lemmas}}
    case = spec.case(IMPLIES, {action.name: lambda: z3.BoolVal(False)}, action=action, given=known)
    return all(answer.verdict is ProofVerdict.PROVED for answer in discharge(spec.vocabulary, case))


def lemmas(spec: Specification) -> Iterator[Vacuity]:
    """That each lemma holds at first, and that every action keeps it."""
    closed = spec.vocabulary.closed(LEMMAS)
    every = replace(spec, invariants=spec.invariants | closed)
    theorem = next(one for one in theorems(every) if one.name == INVARIANTS)
    cases = [
        replace(case, goals={name: goal for name, goal in case.goals.items() if name in LEMMAS})
        for case in theorem.cases
    ]
    open_ = {
        answer.goal
        for case in cases
        for answer in discharge(spec.vocabulary, case)
        if answer.verdict is not ProofVerdict.PROVED
    }
    for name in LEMMAS:
        yield Vacuity("lemma", name, _finding(name not in open_, VacuityFinding.PROVED))


# -- invariants and properties -------------------------------------------------------------------------


def formulas(
    spec: Specification, kind: str, among: Mapping[str, Term], given: Mapping[str, Term] | None = None
) -> Iterator[Vacuity]:
    """Each fails in some state, and in one where all others ``among`` them hold; else these imply it.

    What is ``given`` holds in all of these states.
    """
    group = _SmallGroup(spec)
    group.require(*(given or {}).values())
    group.track(among)
    for name, formula in among.items():
        others = {other: among[other] for other in among if other != name}
        if group.possible(z3.Not(formula), holding=others):
            yield Vacuity(kind, name, VacuityFinding.INDEPENDENT)
        elif (because := implied(spec, formula, {**(given or {}), **others})) is None:
            yield Vacuity(kind, name, VacuityFinding.UNKNOWN)
        else:
            vacuous = not any(other in others for other in because)
            yield Vacuity(kind, name, VacuityFinding.VACUOUS if vacuous else VacuityFinding.IMPLIED, because)


def implied(
    spec: Specification, formula: Term, others: Mapping[str, Term], limit: int = LIMIT
) -> tuple[str, ...] | None:
    """Return those of the others that imply the formula in states of any size, none too many; None if they do
    not, or nobody knows."""

    def follows(names: list[str]) -> list[str] | None:
        context = z3.Context()  # of its own, so that nothing that was asked before changes the core
        solver = z3.Solver(ctx=context)
        solver.set("random_seed", 0)
        solver.add(*(known.translate(context) for known in (*spec.axioms.values(), z3.Not(formula))))
        marks = {name: z3.Bool(f"given {name}", context) for name in names}
        solver.add(*(z3.Implies(marks[name], others[name].translate(context)) for name in names))
        if Budget(limit).check(solver, *marks.values()) != z3.unsat:
            return None
        core = {str(mark) for mark in solver.unsat_core()}
        return [name for name in names if str(marks[name]) in core]

    needed = follows(list(others))
    for name in needed or ():
        fewer = follows([other for other in needed or () if other != name])
        needed = needed if fewer is None else fewer
    return None if needed is None else tuple(needed)


# -- the contract --------------------------------------------------------------------------------------


TOGETHER = "all together"


def clauses(spec: Specification, contract: Mapping[str, ContractClause]) -> Iterator[Vacuity]:
    """State that an assignor that offers something can keep the whole contract where it is asked, and that
    each clause forbids something that all others would allow."""
    offer = z3.Function("offer?", Member, Partition, z3.BoolSort())
    state = spec.vocabulary.state()
    kept = {name: spec.vocabulary.close(clause(state, offer)) for name, clause in contract.items()}
    situation = {
        **spec.invariants,
        "the leader asks": spec.action("lead").guard,
        "something is offered": z3.Exists([M, P], offer(M, P)),
    }
    group = _SmallGroup(spec)
    possible = group.possible(*situation.values(), *kept.values())
    yield Vacuity("clause", TOGETHER, _finding(possible, VacuityFinding.CONSISTENT))
    yield from formulas(spec, "clause", kept, situation)


class _SmallGroup:
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
        """Check whether there is such a group; False also if the solver does not know."""
        marks = [self._marks[name] for name in holding]
        with self._finite.supposing(*formulas):
            return self._finite.possible(Budget(LIMIT), *marks)


def _finding(possible: bool, finding: VacuityFinding) -> VacuityFinding:
    return finding if possible else VacuityFinding.UNKNOWN
