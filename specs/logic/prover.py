"""Discharging obligations: does each goal follow from its hypotheses, in groups of any size?

The questions of one case share a solver for each set of hypotheses: a context for each question, and equal
hypotheses asserted again, took half of a proof's time. One process asks a case from its first goal to its
last, so neither an answer nor what it costs depends on other cases, nor on which process asked. In order of
what it costs, until one way succeeds or the units of the obligation are used up:

1. the facts and what is ``near`` the goal, for most goals the invariant itself before the step;
2. all hypotheses;
3. a small group that fulfils them and not the goal, which refutes it: ``specs.logic.counterexample``;
4. all hypotheses again, alone and with other seeds.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Protocol, TypeVar

import z3
from rebalance_verifier.base.verdict import Verdict
from rebalance_verifier.specs.logic import smtlib
from rebalance_verifier.specs.logic.counterexample import MAX_ELEMENTS, SIZES, Counterexample, counterexample
from rebalance_verifier.specs.logic.finite import Finite
from rebalance_verifier.specs.logic.language import Term, Vocabulary
from rebalance_verifier.specs.logic.limit import LIMIT, Budget
from rebalance_verifier.specs.logic.memory import keep_freed_memory
from rebalance_verifier.specs.logic.specification import ProofCase, Theorem

SOON = LIMIT // 5
"""Units after which the quick ways give up."""

SEEDS = (0, 1, 2)

KEPT = 4
"""Solvers of a case that are kept at a time: with all of them, memory grew by two fifths."""

MAX_LETTERS = 120
"""In the name of a file; file systems have 255, and some 143."""


T = TypeVar("T")


class Spread(Protocol):
    """How a piece of work is done many times: by other processes, or here (``in_turn``)."""

    def __call__(self, work: Callable[[int], T], count: int) -> Iterator[tuple[int, T | None]]:
        """``work(i)`` for i from 0 to ``count``, each with its number, as they finish; None: lost."""
        ...


def in_turn(work: Callable[[int], T], count: int) -> Iterator[tuple[int, T | None]]:
    """Yield one after the other, in this process: where z3 now and then swallows a Ctrl-C."""
    return ((number, work(number)) for number in range(count))


class ProofVerdict(StrEnum):
    """Verdict on an obligation, or on a theorem."""

    PROVED = "proved"
    REFUTED = "refuted"
    UNKNOWN = "unknown"

    @property
    def judgement(self) -> Verdict:
        """Return what it is among the verdicts that all commands share."""
        known = {"proved": Verdict.CONFORMANT, "refuted": Verdict.VIOLATION}
        return known.get(self.value, Verdict.INCONCLUSIVE)


@dataclass(frozen=True, kw_only=True)
class ProofOutcome:
    """Outcome of one obligation. ``hypotheses``: how many were used; ``units``: what it cost the solver;
    ``seconds`` of a processor."""

    theorem: str
    kind: str
    case: str
    goal: str
    verdict: ProofVerdict
    units: int
    seconds: float
    hypotheses: int
    counterexample: Counterexample | None = None


def prove(
    theorems: Sequence[Theorem],
    *,
    limit: int = LIMIT,
    smt2: Path | None = None,
    spread: Spread = in_turn,
) -> Iterator[tuple[ProofOutcome, ...]]:
    """Yield the outcomes case by case, as they come; ``arranged`` brings them into order.

    ``limit``: the solver's units for one obligation; ``smt2``: a directory into which each is written, as it
    was proved or could not be; ``spread`` does the work.
    """
    cases = [(theorem, case) for theorem in theorems for case in theorem.cases]

    def work(number: int) -> tuple[ProofOutcome, ...]:
        theorem, case = cases[number]
        outcomes = []
        for answer in discharge(theorem.vocabulary, case, limit):
            outcomes.append(_outcome(theorem, case, answer))
            if smt2 is not None:
                path = smt2 / file_name(theorem, case, answer.goal)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(written(theorem, case, answer), encoding="utf-8")
        return tuple(outcomes)

    for number, outcomes in spread(work, len(cases)):
        theorem, case = cases[number]
        lost = (GoalAnswer(goal=goal, verdict=ProofVerdict.UNKNOWN) for goal in case.goals)
        yield outcomes or tuple(_outcome(theorem, case, answer) for answer in lost)


def arranged(theorems: Sequence[Theorem], outcomes: Sequence[ProofOutcome]) -> tuple[ProofOutcome, ...]:
    """Return the outcomes in the order of the obligations, whichever came first."""
    keys = [(one.name, case.kind, case.name, goal) for one in theorems for case, goal in one.goals]
    known = {(one.theorem, one.kind, one.case, one.goal): one for one in outcomes}
    return tuple(known[key] for key in keys if key in known)


def verdict(outcomes: Sequence[ProofOutcome]) -> ProofVerdict:
    """Of all of them together."""
    return worst(outcome.verdict for outcome in outcomes)


def worst(verdicts: Iterable[ProofVerdict]) -> ProofVerdict:
    """Refuted if one is, proved if all are."""
    found = {*verdicts}
    return next(
        (one for one in (ProofVerdict.REFUTED, ProofVerdict.UNKNOWN) if one in found), ProofVerdict.PROVED
    )


def solver_version() -> str:
    """Of z3."""
    return str(z3.get_version_string())


# -- one case ------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class GoalAnswer:
    """Answer about one goal, and the formulas that it was asked with. ``used``: the hypotheses."""

    goal: str
    verdict: ProofVerdict
    formula: Term = None
    used: Mapping[str, Term] = field(default_factory=dict)
    counterexample: Counterexample | None = None
    units: int = 0
    seconds: float = 0.0


def discharge(vocabulary: Vocabulary, case: ProofCase, limit: int = LIMIT) -> Iterator[GoalAnswer]:
    """Yield the obligations of one case, in their order."""
    one = _Possible(vocabulary, case) if case.possible else _Following(vocabulary, case)
    for name in case.goals:
        began, budget = time.process_time(), Budget(limit)
        answer = one.answer(name, budget)
        yield replace(answer, units=budget.used, seconds=time.process_time() - began)


class _Solvers:
    """Solvers of one case, in one context: one for each set of hypotheses and seed."""

    def __init__(self) -> None:
        keep_freed_memory()
        self._context = z3.Context()
        self._solvers: dict[tuple[int, ...], tuple[Sequence[Term], z3.Solver]] = {}

    def shows(
        self, hypotheses: Mapping[str, Term], goal: Term, budget: Budget, seed: int = 0
    ) -> ProofVerdict:
        """Check whether the goal follows from the hypotheses; unknown when the budget is used up."""
        solver = self._with(tuple(hypotheses.values()), seed)
        solver.push()  # z3 takes what comes after it as it is, and finds more
        solver.add(z3.Not(goal).translate(self._context))
        result = budget.check(solver)
        solver.pop()
        if result == z3.unsat:
            return ProofVerdict.PROVED
        return ProofVerdict.REFUTED if result == z3.sat else ProofVerdict.UNKNOWN

    def _with(self, formulas: Sequence[Term], seed: int) -> z3.Solver:
        key = (seed, *(formula.get_id() for formula in formulas))
        if key not in self._solvers:
            if len(self._solvers) == KEPT:
                self._solvers.clear()
            solver = z3.SimpleSolver(ctx=self._context)
            solver.set("random_seed", seed)
            solver.set("ctrl_c", False)  # or Ctrl-C would be an unknown
            solver.add(*(formula.translate(self._context) for formula in formulas))
            self._solvers[key] = (formulas, solver)  # the formulas too: an id is theirs while they live
        return self._solvers[key][1]


def shows(hypotheses: Mapping[str, Term], goal: Term, budget: Budget, seed: int = 0) -> ProofVerdict:
    """Check whether the goal follows from the hypotheses; unknown when the budget is used up."""
    return _Solvers().shows(hypotheses, goal, budget, seed)


class _Following:
    """Goals that are to follow from the hypotheses."""

    def __init__(self, vocabulary: Vocabulary, case: ProofCase) -> None:
        self.vocabulary = vocabulary
        self.case = case
        self.shows = _Solvers().shows
        self.facts = case.facts()
        self.every = {**self.facts, **case.given}
        """All hypotheses."""

    def answer(self, name: str, budget: Budget) -> GoalAnswer:
        """Return what becomes of the goal of that name within the budget."""
        case, goal = self.case, self.case.goals[name]()
        near = {other: case.given[other] for other in case.near.get(name, ()) if other in case.given}
        few = {**self.facts, **near}
        if near and self.shows(few, goal, budget.share(SOON)) is ProofVerdict.PROVED:
            return GoalAnswer(goal=name, verdict=ProofVerdict.PROVED, formula=goal, used=few)
        answer = GoalAnswer(
            goal=name, verdict=self.shows(self.every, goal, budget.share(SOON)), formula=goal, used=self.every
        )
        if answer.verdict is ProofVerdict.PROVED:
            return answer
        half = budget.share(budget.left // 2)
        if found := counterexample(self.vocabulary, self.every.values(), name, goal, case.action, half):
            return replace(answer, verdict=ProofVerdict.REFUTED, counterexample=found)
        if answer.verdict is ProofVerdict.UNKNOWN:
            answer = replace(answer, verdict=self._alone(goal, budget))
        return answer

    def _alone(self, goal: Term, budget: Budget) -> ProofVerdict:
        for turn, seed in enumerate(SEEDS):
            answer = self.shows(self.every, goal, budget.share(budget.left // (len(SEEDS) - turn)), seed)
            if answer is not ProofVerdict.UNKNOWN:
                return answer
        return ProofVerdict.UNKNOWN


class _Possible:
    """Goals that are to be consistent with the hypotheses: a small group shows it."""

    def __init__(self, vocabulary: Vocabulary, case: ProofCase) -> None:
        self.vocabulary = vocabulary
        self.case = case
        self.every = {**case.facts(), **case.given}
        self.finite = Finite(vocabulary, {sort: SIZES.get(sort, MAX_ELEMENTS) for sort in vocabulary.sorts})
        self.finite.add(*self.every.values())

    def answer(self, name: str, budget: Budget) -> GoalAnswer:
        """Return what becomes of the goal of that name within the budget."""
        goal = self.case.goals[name]()
        answer = GoalAnswer(goal=name, verdict=ProofVerdict.PROVED, formula=goal, used=self.every)
        finite = self.finite.copy()
        finite.add(goal)
        if finite.possible(budget.share(budget.left // 2)):
            return answer
        # It contradicts them in groups of any size, or nobody knows.
        shown = shows({**self.every, name: goal}, z3.BoolVal(False), budget)
        contradicts = shown is ProofVerdict.PROVED
        return replace(answer, verdict=ProofVerdict.REFUTED if contradicts else ProofVerdict.UNKNOWN)


# -- written out ---------------------------------------------------------------------------------------


def file_name(theorem: Theorem, case: ProofCase, goal: str) -> Path:
    """Return where an obligation is written to, below some directory; the same in every run."""
    text = _slug(" ".join(filter(None, (case.kind, case.name, goal))))
    if len(text) > MAX_LETTERS:
        end = hashlib.sha256(text.encode()).hexdigest()[:8]
        text = f"{text[: MAX_LETTERS - 9].rstrip('-')}-{end}"
    return Path(_slug(theorem.name)) / f"{text}.smt2"


def written(theorem: Theorem, case: ProofCase, answer: GoalAnswer) -> str:
    """Return one obligation in SMT-LIB 2, with the hypotheses that were used."""
    expected, other = ("sat", "unsat") if case.possible else ("unsat", "sat")
    known = {ProofVerdict.PROVED: expected, ProofVerdict.REFUTED: other}
    assertion = answer.formula if case.possible else z3.Not(answer.formula)
    wanted = "the goal is consistent with them" if case.possible else "the goal, negated here, follows"
    comments = [
        f"{theorem.name}: {theorem.sentence}",
        " ".join(filter(None, ("obligation:", case.kind, case.name, answer.goal))),
        f"{len(answer.used)} hypotheses: {', '.join(answer.used)}",
        f"expected: {expected}, {wanted}; rebalance prove says: {answer.verdict}",
    ]
    text = smtlib.text_of((*answer.used.values(), assertion))
    text = re.sub(r"^;.*\n|^\(set-info :status.*\n", "", text, flags=re.M)
    header = "".join(f"; {comment}\n" for comment in comments)
    status = known.get(answer.verdict, "unknown")
    return f"{header}(set-info :status {status})\n(set-logic ALL)\n{text}"


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _outcome(theorem: Theorem, case: ProofCase, answer: GoalAnswer) -> ProofOutcome:
    return ProofOutcome(
        theorem=theorem.name,
        kind=case.kind,
        case=case.name,
        goal=answer.goal,
        verdict=answer.verdict,
        units=answer.units,
        seconds=answer.seconds,
        hypotheses=len(answer.used),
        counterexample=answer.counterexample,
    )
