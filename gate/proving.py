"""One proof from end to end: the theorems, what became of their obligations, and the verdict that follows.

Nothing here prints; ``gate.report.proof`` renders what comes out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rebalance.gate.result import Exit
from rebalance.specs.prover import Outcome, Verdict, arranged, prove, verdict
from rebalance.specs.theorems import Theorem

Tell = Callable[[int, int], None]
"""Told how many obligations of how many are done."""


@dataclass(frozen=True)
class Plan:
    """What to prove and how. ``without``: the clauses that the assignor is not assumed to keep."""

    theorems: tuple[Theorem, ...]
    contract: tuple[str, ...]
    without: tuple[str, ...] = ()
    limit: float = 10.0
    jobs: int | None = None
    smt2: Path | None = None


@dataclass(frozen=True)
class Proof:
    """What came of it. ``outcomes`` are in the order of the obligations; some are missing if interrupted."""

    plan: Plan
    outcomes: tuple[Outcome, ...]
    seconds: float
    interrupted: bool = False

    @property
    def obligations(self) -> int:
        """How many there are, done or not."""
        return sum(theorem.obligations for theorem in self.plan.theorems)

    def of(self, theorem: Theorem) -> tuple[Outcome, ...]:
        """The outcomes of one theorem."""
        return tuple(outcome for outcome in self.outcomes if outcome.theorem == theorem.name)

    def alone(self, theorem: Theorem) -> Verdict:
        """Of a theorem, taken for granted what it rests upon."""
        found = self.of(theorem)
        said = verdict(found)
        return Verdict.UNKNOWN if said is Verdict.PROVED and len(found) < theorem.obligations else said

    def weak(self, theorem: Theorem) -> tuple[str, ...]:
        """Which theorems that it rests upon are not proved."""
        upon = [other for other in self.plan.theorems if other.name in theorem.upon]
        return tuple(other.name for other in upon if self.judged(other) is not Verdict.PROVED)

    def judged(self, theorem: Theorem) -> Verdict:
        """Of a theorem: nothing is proved by what is not."""
        said = self.alone(theorem)
        return Verdict.UNKNOWN if said is Verdict.PROVED and self.weak(theorem) else said

    @property
    def verdict(self) -> Verdict:
        """Of all theorems together."""
        found = {self.judged(theorem) for theorem in self.plan.theorems}
        return next((one for one in (Verdict.REFUTED, Verdict.UNKNOWN) if one in found), Verdict.PROVED)

    @property
    def exit(self) -> Exit:
        """The exit code."""
        if self.interrupted:
            return Exit.INTERRUPTED
        return {
            Verdict.PROVED: Exit.CONFORMANT,
            Verdict.REFUTED: Exit.VIOLATION,
            Verdict.UNKNOWN: Exit.INCONCLUSIVE,
        }[self.verdict]


def carry_out(plan: Plan, tell: Tell | None = None) -> Proof:
    """Discharge every obligation of the plan; Ctrl-C ends it with what is known by then."""
    began, interrupted = time.monotonic(), False
    found: list[Outcome] = []
    total = sum(theorem.obligations for theorem in plan.theorems)
    try:
        for outcomes in prove(plan.theorems, limit=plan.limit, jobs=plan.jobs, smt2=plan.smt2):
            found += outcomes
            if tell:
                tell(len(found), total)
    except KeyboardInterrupt:
        interrupted = True
    return Proof(plan, arranged(plan.theorems, found), time.monotonic() - began, interrupted)


def listed(theorems: Sequence[Theorem]) -> list[tuple[Theorem, str, str, str]]:
    """Every obligation: its theorem, the kind and the name of its case, its goal."""
    return [
        (theorem, case.kind, case.name, goal)
        for theorem in theorems
        for case in theorem.cases
        for goal in case.goals
    ]
