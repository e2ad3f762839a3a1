"""Random runs of the executable model, from each state of which every step is checked against the logic.

All that a group can do is too much for a proof that one waits for; so each run is of a seed, and a sample
ends after a number of different steps. It goes where it has not been: half of the time to what a step that
nobody has seen leads to. A fault is rare in some runs and frequent in others, since one that comes early ends
what others would have come to.

Where a step is none of the logic, the theorems are not about this model. Then the sample goes on, to see
whether what they say of the logic also breaks in the model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random
from typing import Protocol

from rebalance.model.machine import Event, Machine
from rebalance.model.protocol.describe import event_text
from rebalance.model.protocol.group import machine
from rebalance.model.protocol.setup import Setup
from rebalance.specs.logic.specification import Specification
from rebalance.specs.refinement.abstraction import StructureSize
from rebalance.specs.refinement.refinement import Refinement, RefinementFailure, Report
from rebalance.specs.refinement.transitions import NumberedMachine, Numbers, Transition

RUN = 80
"""How many steps a run has at most."""

RARE = (4, 12, 40)
"""One of so many steps of a run is a fault, where one is possible."""

IDLE = 20
"""Runs without anything new after which a group is known."""

SIZE = StructureSize(3, 6)
"""What the universe begins with; it would grow to it anyhow."""


@dataclass(frozen=True, kw_only=True)
class ModelSample:
    """What is to be checked: ``steps`` different ones of a group, in runs of that seed."""

    group: str
    setup: Setup
    seed: int
    steps: int


@dataclass(frozen=True, kw_only=True)
class ModelDeviation:
    """A step of the model that is none of the logic, or a state that breaks something, and the events of the
    run to it, the last one included."""

    failure: RefinementFailure
    run: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class SampledModel:
    """What came of a sample. ``steps`` are different ones, of ``runs`` runs; ``deviation`` is the first;
    ``breach`` is a state in which a property of the theorems does not hold."""

    group: str
    seed: int
    steps: int
    runs: int
    deviation: ModelDeviation | None = None
    breach: ModelDeviation | None = None


class ChecksSteps(Protocol):
    """What holds the steps and the states of a model against a logic: ``Refinement``, and others like it."""

    numbered: NumberedMachine
    report: Report

    def begin(self) -> RefinementFailure | None: ...
    def check(self, transition: Transition) -> RefinementFailure | None: ...
    def judge(self, state: Numbers, event: str = "") -> RefinementFailure | None: ...
    def breach(self, state: Numbers, event: str = "") -> RefinementFailure | None: ...


@dataclass(kw_only=True)
class _Sampling:
    """A sample as it is taken; ``run`` are the events of the present run."""

    refinement: ChecksSteps
    random: Random
    budget: int
    deviation: ModelDeviation | None = None
    breach: ModelDeviation | None = None
    run: list[Event] = field(default_factory=list)

    @property
    def ended(self) -> bool:
        """All is checked, or the worst is known. What is seen again counts too, four times over."""
        report = self.refinement.report
        return (
            self.breach is not None or report.distinct >= self.budget or report.transitions >= 4 * self.budget
        )

    def play(self, state: Numbers) -> None:
        """One run from the beginning."""
        self.run = []
        rare = RARE[self.random.randrange(len(RARE))]
        while not self.ended and len(self.run) < RUN:
            self._judge(state)
            found = self._checked(state)
            if not found:
                return
            step = self._chosen(found, rare)
            self.run.append(step.event)
            [state] = self.refinement.numbered.normal(step.after)

    def _checked(self, state: Numbers) -> list[tuple[bool, Transition]]:
        """Every step from the state, and whether it is new."""
        found = []
        for transition in self.refinement.numbered.steps(state):
            before = self.refinement.report.distinct
            failure = self.refinement.check(transition)
            if failure is not None:
                self.deviation = self.deviation or self._deviation(failure, transition.event)
            found.append((self.refinement.report.distinct > before, transition))
        return found

    def _judge(self, state: Numbers) -> None:
        """What does not hold: anything at first, and after a wrong step a property."""
        if self.deviation is None:
            failure = self.refinement.judge(state, _last(self.run))
            self.deviation = self._deviation(failure) if failure else None
        if self.deviation is not None and (failure := self.refinement.breach(state, _last(self.run))):
            self.breach = self._deviation(failure)

    def _chosen(self, found: list[tuple[bool, Transition]], rare: int) -> Transition:
        faults = [one for one in found if self._costs(one[1].event)]
        others = [one for one in found if not self._costs(one[1].event)]
        pool = faults if faults and (not others or self.random.randrange(rare) == 0) else others
        fresh = [one for one in pool if one[0]]
        pool = fresh if fresh and self.random.randrange(2) else pool
        return pool[self.random.randrange(len(pool))][1]

    def _costs(self, event: Event) -> bool:
        action = self.refinement.numbered.machine.by_name[event.action, event.who]
        return action.fault and "budget" in action.reads

    def _deviation(self, failure: RefinementFailure, *last: Event) -> ModelDeviation:
        return ModelDeviation(failure=failure, run=tuple(map(event_text, (*self.run, *last))))


def sampled(
    sample: ModelSample,
    spec: Specification | None = None,
    build: Callable[[Setup], Machine] = machine,
) -> SampledModel:
    """Check the sample of the model, or of what ``build`` makes in its place."""
    return sampled_by(sample, Refinement(sample.setup, spec, SIZE, build))


def sampled_by(sample: ModelSample, refinement: ChecksSteps) -> SampledModel:
    """Check the sample by what is known of its protocol."""
    sampling = _Sampling(refinement=refinement, random=Random(sample.seed), budget=sample.steps)
    if failure := refinement.begin():
        sampling.deviation = ModelDeviation(failure=failure, run=())
    initial = list(refinement.numbered.initial)
    runs = idle = 0
    while not sampling.ended and idle < IDLE:
        before = refinement.report.distinct
        sampling.play(initial[sampling.random.randrange(len(initial))])
        runs += 1
        idle = 0 if refinement.report.distinct > before else idle + 1
    return SampledModel(
        group=sample.group,
        seed=sample.seed,
        steps=refinement.report.distinct,
        runs=runs,
        deviation=sampling.deviation,
        breach=sampling.breach,
    )


def shares(samples: tuple[ModelSample, ...], steps: int) -> tuple[ModelSample, ...]:
    """The samples with as many ``steps`` together, the first ones with those that are left over."""
    return tuple(
        replace(sample, steps=steps // len(samples) + (number < steps % len(samples)))
        for number, sample in enumerate(samples)
    )


def _last(run: list[Event]) -> str:
    return event_text(run[-1]) if run else "at first"
