"""One proof from end to end: the theorems, what became of their obligations, whether they say anything at
all, whether they are about the executable model, and the verdict that follows.

Nothing here prints; ``report.terminal.proof`` renders what comes out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any

from rebalance_verifier.base.verdict import Exit, Verdict
from rebalance_verifier.specs.answers import KeptAnswers
from rebalance_verifier.specs.classic.necessity.vacuity import Vacuity, VacuityCheck, examined
from rebalance_verifier.specs.classic.refinement.coverage import NOTHING, SampleCoverage, enough
from rebalance_verifier.specs.classic.refinement.sampling import ModelSample, SampledModel, sampled
from rebalance_verifier.specs.logic.assumptions import ASSIGNOR, Premise
from rebalance_verifier.specs.logic.limit import LIMIT
from rebalance_verifier.specs.logic.prover import (
    ProofOutcome,
    ProofVerdict,
    Spread,
    arranged,
    in_turn,
    prove,
    verdict,
    worst,
)
from rebalance_verifier.specs.logic.specification import ASSUMPTIONS, Theorem

ReportProgress = Callable[[float, float], None]
"""Gets how much of how much work is done, in seconds of some processor."""

OBLIGATION_SECONDS, POSSIBLE_SECONDS, STEP_SECONDS = 0.006, 0.04, 0.001
CHECK_SECONDS = {"assumption": 0.24, "action": 0.12, "lemma": 0.3, "clause": 0.13}
FORMULA_SECONDS = 0.02
"""What an obligation costs, one that a small group shows, a step of the model, a check of some kind and of
another one: as measured of the classic protocol. Only what they are to each other matters."""


@dataclass(frozen=True, kw_only=True)
class Assumption:
    """A clause of the assignor's contract, what it says, and for which theorems it is assumed: for every one,
    for convergence, or both."""

    name: str
    sentence: str
    every: bool
    converging: bool


def clauses(
    every: Mapping[str, Callable[..., Any]], converging: Mapping[str, Callable[..., Any]]
) -> tuple[Assumption, ...]:
    """Return the contract of an assignor: what every theorem assumes, and what convergence does."""
    return tuple(
        Assumption(
            name=name,
            sentence=" ".join((clause.__doc__ or "").split("\n\n")[0].split()),
            every=name in every,
            converging=name in converging,
        )
        for name, clause in {**every, **converging}.items()
    )


@dataclass(frozen=True, kw_only=True)
class ProofPlan:
    """Plan of a proof.

    ``contract``: the clauses that every theorem assumes of the assignor; ``without``: those that it is not
    assumed to keep; ``clauses``: all there are; ``assumptions``: these and others; ``scope``: which groups it
    is about, "" for all. ``checks``: what is asked so that nothing is proved of nothing; ``samples``: runs of
    the executable model, each step of which has to be one of the logic, as ``sample`` finds out.
    """

    theorems: tuple[Theorem, ...]
    contract: tuple[str, ...]
    without: tuple[str, ...] = ()
    clauses: tuple[Assumption, ...] = ()
    assumptions: tuple[Premise, ...] = ()
    scope: str = ""
    checks: tuple[VacuityCheck, ...] = ()
    samples: tuple[ModelSample, ...] = ()
    sample: Callable[[ModelSample], SampledModel] = sampled
    limit: int = LIMIT
    smt2: Path | None = None


@dataclass(frozen=True, kw_only=True)
class Proof:
    """Result of a proof. ``outcomes`` are in the order of the obligations, ``vacuity`` in that of the checks,
    ``model`` in that of the samples; some are missing if interrupted."""

    plan: ProofPlan
    outcomes: tuple[ProofOutcome, ...]
    vacuity: tuple[Vacuity, ...]
    model: tuple[SampledModel, ...] = ()
    seconds: float
    interrupted: bool = False
    kept: KeptAnswers | None = None

    @property
    def besides(self) -> tuple[Premise, ...]:
        """Return what is assumed of others than the assignor."""
        return tuple(one for one in self.plan.assumptions if one.of != ASSIGNOR)

    @property
    def obligations(self) -> int:
        """Return how many there are, done or not."""
        return sum(theorem.obligations for theorem in self.plan.theorems)

    @property
    def doubts(self) -> tuple[Vacuity, ...]:
        """Return what may say nothing, or make everything that was proved say nothing."""
        return tuple(row for row in self.vacuity if row.doubtful)

    @property
    def deviations(self) -> tuple[SampledModel, ...]:
        """Return where the model does what the logic does not: the theorems are not about it."""
        return tuple(row for row in self.model if row.deviation)

    @property
    def breaches(self) -> tuple[SampledModel, ...]:
        """Return where the model breaks what the theorems say."""
        return tuple(row for row in self.model if row.breach)

    def of(self, theorem: Theorem) -> tuple[ProofOutcome, ...]:
        """Return the outcomes of one theorem."""
        return tuple(outcome for outcome in self.outcomes if outcome.theorem == theorem.name)

    def alone(self, theorem: Theorem) -> ProofVerdict:
        """Of a theorem, taken for granted what it rests upon."""
        found = self.of(theorem)
        reached = verdict(found)
        return (
            ProofVerdict.UNKNOWN
            if reached is ProofVerdict.PROVED and len(found) < theorem.obligations
            else reached
        )

    def weak(self, theorem: Theorem) -> tuple[str, ...]:
        """Return which theorems that it rests upon are not proved."""
        upon = [other for other in self.plan.theorems if other.name in theorem.upon]
        return tuple(other.name for other in upon if self.judged(other) is not ProofVerdict.PROVED)

    def judged(self, theorem: Theorem) -> ProofVerdict:
        """Of a theorem: nothing is proved by what is not."""
        reached = self.alone(theorem)
        return ProofVerdict.UNKNOWN if reached is ProofVerdict.PROVED and self.weak(theorem) else reached

    @property
    def met(self) -> SampleCoverage:
        """Return what the samples came to, together."""
        return reduce(or_, (row.met for row in self.model), NOTHING)

    @property
    def wanted(self) -> SampleCoverage:
        """Return what there is in their groups."""
        return reduce(or_, (row.wanted for row in self.model), NOTHING)

    @property
    def held_against_model(self) -> bool:
        """Check whether the sample is large enough to say that the theorems are about the model: every group
        was looked at, every action of the model met, and of the pairs of its faults ``ENOUGH``."""
        done = self.plan.samples and len(self.model) == len(self.plan.samples)
        return bool(done) and enough(self.met, self.wanted)

    @property
    def verdict(self) -> ProofVerdict:
        """Of all theorems together. What may be about nothing, or about something else than the model, is
        not proved; what the model breaks is refuted."""
        found = [self.judged(theorem) for theorem in self.plan.theorems]
        if self.breaches:
            found.append(ProofVerdict.REFUTED)
        if self.deviations or not self.held_against_model:
            found.append(ProofVerdict.UNKNOWN)
        if self.doubts or len(self.vacuity) < sum(len(check.names) for check in self.plan.checks):
            found.append(ProofVerdict.UNKNOWN)
        return worst(found)

    @property
    def judgement(self) -> Verdict:
        """The verdict in the words that all commands share."""
        return self.verdict.judgement

    @property
    def exit(self) -> Exit:
        """The exit code."""
        return Exit.of(self.judgement, interrupted=self.interrupted)


def workload(plan: ProofPlan) -> float:
    """Return what a plan costs, in seconds of some processor."""
    cases = [case for theorem in plan.theorems for case, _ in theorem.goals]
    return (
        sum(_cost(case.kind == ASSUMPTIONS) for case in cases)
        + sum(_checks(check.kind, len(check.names)) for check in plan.checks)
        + STEP_SECONDS * sum(sample.steps for sample in plan.samples)
    )


def _cost(possible: bool) -> float:
    return POSSIBLE_SECONDS if possible else OBLIGATION_SECONDS


def _checks(kind: str, number: int = 1) -> float:
    return CHECK_SECONDS.get(kind, FORMULA_SECONDS) * number


def run_proof(
    plan: ProofPlan,
    report_progress: ReportProgress | None = None,
    spread: Spread = in_turn,
    kept: KeptAnswers | None = None,
) -> Proof:
    """Discharge every obligation of the plan, make its checks and sample the model; Ctrl-C ends it with what
    is known by then.

    ``spread`` does the work; what is ``kept`` of an earlier proof is not asked again, and what succeeds is
    kept.
    """
    began, interrupted = time.monotonic(), False
    known = KeptAnswers(path=None) if kept is None or plan.smt2 is not None else kept
    found: list[ProofOutcome] = []
    theorems = [known.left(theorem, found) for theorem in plan.theorems]
    rows = {number: some for number, check in enumerate(plan.checks) if (some := known.check(check))}
    model = {number: one for number, sample in enumerate(plan.samples) if (one := known.sample(sample))}
    checks = [number for number in range(len(plan.checks)) if number not in rows]
    samples = [number for number in range(len(plan.samples)) if number not in model]
    total = workload(plan)

    def report() -> None:
        if report_progress:
            obligations = sum(_cost(one.kind == ASSUMPTIONS) for one in found)
            checks = sum(_checks(row.kind) for some in rows.values() for row in some)
            steps = STEP_SECONDS * sum(plan.samples[number].steps for number in model)
            report_progress(obligations + checks + steps, total)

    try:
        for outcomes in prove(theorems, limit=plan.limit, smt2=plan.smt2, spread=spread):
            found += outcomes
            report()
        for number, some in examined([plan.checks[number] for number in checks], spread=spread):
            rows[checks[number]] = some
            report()
        for number, one in spread(lambda number: plan.sample(plan.samples[samples[number]]), len(samples)):
            if one is not None:
                model[samples[number]] = one
            report()
    except KeyboardInterrupt:
        interrupted = True
    _keep(known, plan, found, rows, model)
    return Proof(
        plan=plan,
        outcomes=arranged(plan.theorems, found),
        vacuity=tuple(row for number in sorted(rows) for row in rows[number]),
        model=tuple(model[number] for number in sorted(model)),
        seconds=time.monotonic() - began,
        interrupted=interrupted,
        kept=known if known.used else None,
    )


def _keep(
    answers: KeptAnswers,
    plan: ProofPlan,
    found: Sequence[ProofOutcome],
    rows: Mapping[int, Sequence[Vacuity]],
    model: Mapping[int, SampledModel],
) -> None:
    for theorem in plan.theorems:
        answers.proved(theorem, found)
    for number, some in rows.items():
        answers.checked(plan.checks[number], some)
    for number, one in model.items():
        answers.sampled(plan.samples[number], one)
    answers.save()


def listed(theorems: Sequence[Theorem]) -> list[tuple[Theorem, str, str, str]]:
    """Return every obligation: its theorem, the kind and the name of its case, its goal."""
    return [(theorem, case.kind, case.name, goal) for theorem in theorems for case, goal in theorem.goals]
