"""Discharging obligations: does each goal follow from its hypotheses, in groups of any size?

Each case gets solvers of its own, so that an answer depends on nothing that was asked elsewhere, nor on
which process asked. In order of what it costs, until one way succeeds or the time is up:

1. the facts and what is ``near`` the goal, for most goals the invariant itself before the step;
2. all hypotheses;
3. a small group that fulfils them and not the goal, which refutes it: ``specs.counterexample``;
4. all hypotheses again, alone and with other seeds.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from pathlib import Path

import z3
from rebalance.specs.counterexample import MOST, SIZES, Counterexample, counterexample
from rebalance.specs.finite import Finite
from rebalance.specs.limit import check
from rebalance.specs.logic import Term, Vocabulary
from rebalance.specs.parallel import spread
from rebalance.specs.theorems import Case, Theorem

LIMIT = 10.0
"""Seconds for one obligation."""

SOON = 2.0
"""Seconds after which the quick ways give up."""

SEEDS = (0, 1, 2)


class Verdict(StrEnum):
    """What became of an obligation, or of a theorem."""

    PROVED = "proved"
    REFUTED = "refuted"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Outcome:
    """What became of one obligation. ``hypotheses``: how many were used; ``seconds`` of a processor."""

    theorem: str
    kind: str
    case: str
    goal: str
    verdict: Verdict
    seconds: float
    hypotheses: int
    counterexample: Counterexample | None = None


def prove(
    theorems: Sequence[Theorem],
    *,
    limit: float = LIMIT,
    jobs: int | None = None,
    smt2: Path | None = None,
) -> Iterator[tuple[Outcome, ...]]:
    """The outcomes case by case, as they come; ``arranged`` brings them into order.

    ``limit``: seconds for one obligation; ``smt2``: a directory into which each is written, as it was
    proved or could not be.
    """
    cases = [(theorem, case) for theorem in theorems for case in theorem.cases]

    def work(number: int) -> tuple[Outcome, ...]:
        theorem, case = cases[number]
        outcomes = []
        for answer in discharge(theorem.vocabulary, case, limit):
            outcomes.append(_outcome(theorem, case, answer))
            if smt2 is not None:
                path = smt2 / file_name(theorem, case, answer.goal)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(written(theorem, case, answer), encoding="utf-8")
        return tuple(outcomes)

    for number, outcomes in spread(work, len(cases), jobs):
        theorem, case = cases[number]
        lost = (Answer(goal, Verdict.UNKNOWN) for goal in case.goals)
        yield outcomes or tuple(_outcome(theorem, case, answer) for answer in lost)


def arranged(theorems: Sequence[Theorem], outcomes: Sequence[Outcome]) -> tuple[Outcome, ...]:
    """The outcomes in the order of the obligations, whichever came first."""
    keys = [
        (theorem.name, case.kind, case.name, goal)
        for theorem in theorems
        for case in theorem.cases
        for goal in case.goals
    ]
    known = {(one.theorem, one.kind, one.case, one.goal): one for one in outcomes}
    return tuple(known[key] for key in keys if key in known)


def verdict(outcomes: Sequence[Outcome]) -> Verdict:
    """Of all of them together: refuted if one is, proved if all are."""
    found = {outcome.verdict for outcome in outcomes}
    return next((one for one in (Verdict.REFUTED, Verdict.UNKNOWN) if one in found), Verdict.PROVED)


def solver_version() -> str:
    """Of z3."""
    return str(z3.get_version_string())


# -- one case ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Answer:
    """What is known of one goal, and the formulas that it was asked with. ``used``: the hypotheses."""

    goal: str
    verdict: Verdict
    formula: Term = None
    used: Mapping[str, Term] = field(default_factory=dict)
    counterexample: Counterexample | None = None
    seconds: float = 0.0


def discharge(vocabulary: Vocabulary, case: Case, limit: float = LIMIT) -> Iterator[Answer]:
    """The obligations of one case, in their order."""
    one = _Possible(vocabulary, case) if case.possible else _Following(vocabulary, case)
    for name in case.goals:
        began = time.process_time()
        answer = one.answer(name, time.monotonic() + limit)
        yield replace(answer, seconds=time.process_time() - began)


class _Following:
    """Goals that are to follow from the hypotheses."""

    def __init__(self, vocabulary: Vocabulary, case: Case) -> None:
        self.vocabulary = vocabulary
        self.case = case

    @cached_property
    def facts(self) -> Mapping[str, Term]:
        return self.case.facts()

    @cached_property
    def every(self) -> Mapping[str, Term]:
        """All hypotheses."""
        return {**self.facts, **self.case.given}

    @cached_property
    def knows_facts(self) -> _Solver:
        return _Solver(self.facts)

    @cached_property
    def knows_everything(self) -> _Solver:
        return _Solver(self.every)

    def answer(self, name: str, until: float) -> Answer:
        """What becomes of the goal of that name until then."""
        case, goal = self.case, self.case.goals[name]()
        near = {other: case.given[other] for other in case.near.get(name, ()) if other in case.given}
        if near and self.knows_facts.shows(goal, _soon(until), near) is Verdict.PROVED:
            return Answer(name, Verdict.PROVED, goal, {**self.facts, **near})
        answer = Answer(name, self.knows_everything.shows(goal, _soon(until)), goal, self.every)
        if answer.verdict is Verdict.PROVED:
            return answer
        half = (time.monotonic() + until) / 2
        if found := counterexample(self.vocabulary, self.every.values(), name, goal, case.action, half):
            return replace(answer, verdict=Verdict.REFUTED, counterexample=found)
        if answer.verdict is Verdict.UNKNOWN:
            answer = replace(answer, verdict=self._alone(goal, until))
        return answer

    def _alone(self, goal: Term, until: float) -> Verdict:
        for turn, seed in enumerate(SEEDS):
            now = time.monotonic()
            share = (until - now) / (len(SEEDS) - turn)
            answer = _Solver(self.every, seed).shows(goal, now + share)
            if answer is not Verdict.UNKNOWN:
                return answer
        return Verdict.UNKNOWN


class _Possible:
    """Goals that are to be consistent with the hypotheses: a small group shows it."""

    def __init__(self, vocabulary: Vocabulary, case: Case) -> None:
        self.vocabulary = vocabulary
        self.case = case
        self.every = {**case.facts(), **case.given}
        self.finite = Finite(vocabulary, {sort: SIZES.get(sort, MOST) for sort in vocabulary.sorts})
        self.finite.add(*self.every.values())

    def answer(self, name: str, until: float) -> Answer:
        """What becomes of the goal of that name until then."""
        goal = self.case.goals[name]()
        answer = Answer(name, Verdict.PROVED, goal, self.every)
        with self.finite.supposing(goal):
            if self.finite.possible((time.monotonic() + until) / 2):
                return answer
        # It contradicts them in groups of any size, or nobody knows.
        shown = _Solver({**self.every, name: goal}).shows(z3.BoolVal(False), until)
        contradicts = shown is Verdict.PROVED
        return replace(answer, verdict=Verdict.REFUTED if contradicts else Verdict.UNKNOWN)


class _Solver:
    """z3 with some hypotheses, in a context of its own."""

    def __init__(self, hypotheses: Mapping[str, Term], seed: int = 0) -> None:
        self.context = z3.Context()
        self.solver = z3.SimpleSolver(ctx=self.context)
        self.solver.set("random_seed", seed)
        self.solver.set("ctrl_c", False)  # or Ctrl-C would be an unknown
        self._add(hypotheses.values())

    def shows(self, goal: Term, until: float, more: Mapping[str, Term] | None = None) -> Verdict:
        """Whether the goal follows, with ``more`` hypotheses; unknown when ``time.monotonic()`` is there."""
        left = until - time.monotonic()
        if left <= 0:
            return Verdict.UNKNOWN
        self.solver.push()
        try:
            self._add([*(more or {}).values(), z3.Not(goal)])
            said = check(self.solver, left)
        finally:
            self.solver.pop()
        if said == z3.unsat:
            return Verdict.PROVED
        return Verdict.REFUTED if said == z3.sat else Verdict.UNKNOWN

    def _add(self, formulas: Iterable[Term]) -> None:
        self.solver.add(*(formula.translate(self.context) for formula in formulas))


def _soon(until: float) -> float:
    return min(until, time.monotonic() + SOON)


# -- written out ---------------------------------------------------------------------------------------


def file_name(theorem: Theorem, case: Case, goal: str) -> Path:
    """Where an obligation is written to, below some directory; the same in every run."""
    words = " ".join(filter(None, (case.kind, case.name, goal)))
    return Path(_slug(theorem.name)) / f"{_slug(words)}.smt2"


def written(theorem: Theorem, case: Case, answer: Answer) -> str:
    """One obligation in SMT-LIB 2, with the hypotheses that were used."""
    status = "sat" if case.possible else "unsat"
    asked = answer.formula if case.possible else z3.Not(answer.formula)
    context = z3.Context()  # of its own, so that the names in it are the same each time
    solver = z3.Solver(ctx=context)
    solver.add(*(formula.translate(context) for formula in (*answer.used.values(), asked)))
    wanted = "the goal is consistent with them" if case.possible else "the goal, negated here, follows"
    comments = [
        f"{theorem.name}: {theorem.sentence}",
        " ".join(filter(None, ("obligation:", case.kind, case.name, answer.goal))),
        f"{len(answer.used)} hypotheses: {', '.join(answer.used)}",
        f"expected: {status}, {wanted}; rebalance prove says: {answer.verdict}",
    ]
    text = re.sub(r"^;.*\n|^\(set-info :status.*\n", "", solver.to_smt2(), flags=re.M)
    text = re.sub(r"\(_ (\w+) \1\)", r"\1", text)  # so z3 writes a value of an enumeration, for itself only
    header = "".join(f"; {comment}\n" for comment in comments)
    return f"{header}(set-info :status {status})\n(set-logic ALL)\n{text}"


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _outcome(theorem: Theorem, case: Case, answer: Answer) -> Outcome:
    return Outcome(
        theorem.name,
        case.kind,
        case.name,
        answer.goal,
        answer.verdict,
        answer.seconds,
        len(answer.used),
        answer.counterexample,
    )
