"""Random runs of the executable model, from each state of which every step is checked against the logic.

All that a group can do is too much for a proof that one waits for; so each run is of a seed, and a sample
ends after a number of different steps. It goes where it has not been: half of the time to what a step that
nobody has seen leads to. A fault is rare in some runs and frequent in others, since one that comes early ends
what others would have come to. As long as two kinds of faults have not met, a run is on the way to two such:
it goes where the one was possible before, and takes the other one meanwhile.

A sample says something only if it is large enough: it has met each action of the model, and nearly each two
kinds of faults in one run (``coverage``).

Where a step is none of the logic, the theorems are not about this model. Then the sample goes on, to see
whether what they say of the logic also breaks in the model.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise
from random import Random
from typing import Protocol

from rebalance_verifier.model.classic.describe import event_text
from rebalance_verifier.model.classic.group import machine
from rebalance_verifier.model.group.setup import Setup
from rebalance_verifier.model.machine import Event, Machine
from rebalance_verifier.specs.classic.refinement.abstraction import StructureSize
from rebalance_verifier.specs.classic.refinement.coverage import (
    NOTHING,
    Course,
    CoverageSoFar,
    SampleCoverage,
    costs,
    wanted,
)
from rebalance_verifier.specs.classic.refinement.refinement import Refinement, RefinementFailure, Report
from rebalance_verifier.specs.logic.specification import Specification
from rebalance_verifier.specs.logic.transitions import NumberedMachine, Numbers, Transition

RUN = 80
"""How many steps a run has at most."""

RARE = (4, 12, 40)
"""One of so many steps of a run is a fault, where one is possible."""

THOROUGH, FEW = 5, 15
"""In one of so many states every fault is checked, not only what is new of it; in each of them where there
are so few pairs of faults."""

FREE = 4
"""One of so many runs goes anywhere, also while two kinds of faults have not met: some never do."""

IDLE = 20
"""Runs without anything new after which a group is known."""

SIZE = StructureSize(3, 6)
"""What the universe begins with; it would grow to it anyhow."""


@dataclass(frozen=True, kw_only=True)
class ModelSample:
    """Sample to check: ``steps`` different ones of a group, in runs of that seed. ``ways``: events on which a
    rare action becomes possible."""

    group: str
    setup: Setup
    seed: int
    steps: int
    ways: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ModelDeviation:
    """A step of the model that is none of the logic, or a state that breaks something, and the events of the
    run to it, the last one included."""

    failure: RefinementFailure
    run: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class SampledModel:
    """Result of a sample. ``steps`` are different ones, of ``runs`` runs; ``met`` is what they came to of
    what the group has, ``wanted``; ``deviation`` is the first; ``breach`` is a state in which a property of
    the theorems does not hold."""

    group: str
    seed: int
    steps: int
    runs: int
    met: SampleCoverage = NOTHING
    wanted: SampleCoverage = NOTHING
    deviation: ModelDeviation | None = None
    breach: ModelDeviation | None = None


class ChecksSteps(Protocol):
    """Check of the steps and the states of a model against a logic: ``Refinement``, and others like it."""

    numbered: NumberedMachine
    report: Report

    def anew(self) -> None: ...
    def kind(self, transition: Transition) -> Hashable: ...
    def begin(self) -> RefinementFailure | None: ...
    def check(self, transition: Transition) -> RefinementFailure | None: ...
    def judge(self, state: Numbers, event: str = "") -> RefinementFailure | None: ...
    def breach(self, state: Numbers, event: str = "") -> RefinementFailure | None: ...


@dataclass(kw_only=True)
class _Sampling:
    """A sample as it is taken; ``run`` are the events of the present run, ``faults`` its faults. ``ways`` are
    the events to where an action was possible for the first time, the action's included; ``known`` are those
    that the sample brings along, and ``tried`` of which of them a run has gone."""

    refinement: ChecksSteps
    random: Random
    budget: int
    wanted: SampleCoverage
    deviation: ModelDeviation | None = None
    breach: ModelDeviation | None = None
    run: list[Event] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    met: CoverageSoFar = field(default_factory=CoverageSoFar)
    ways: dict[str, tuple[str, ...]] = field(default_factory=dict)
    known: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    tried: set[str] = field(default_factory=set)

    @property
    def ended(self) -> bool:
        """All is checked, or the worst is known. What is seen again counts too, four times over."""
        report = self.refinement.report
        return (
            self.breach is not None or report.distinct >= self.budget or report.transitions >= 4 * self.budget
        )

    def play(self, state: Numbers) -> None:
        """One run from the beginning, on the way to two faults that have not met."""
        self.run, self.faults = [], []
        course = self._course()
        while not self.ended and len(self.run) < RUN:
            self._judge(state)
            found = self._checked(state)
            if not found:
                return
            step = course.next(found) or self._chosen(found, course.rare)
            self._check(step)
            self.run.append(step.event)
            if self._costs(step.event):
                self.faults.append(step.event.action)
            [state] = self.refinement.numbered.normal(step.after)

    def _course(self) -> Course:
        """On the known way to an action that was not possible yet; or to one of two faults that have not met,
        and the other one before; or anywhere."""
        rare = RARE[self.random.randrange(len(RARE))]
        if untried := sorted(self.known.keys() - self.tried - self.met.actions):
            self.tried.add(untried[0])
            return Course(rare=rare, route=self.known[untried[0]])
        pairs = self.met.lacking(self.wanted)
        if not pairs or self.random.randrange(FREE) == 0:
            return Course(rare=rare)
        one, other = self.random.sample(pairs[self.random.randrange(len(pairs))], 2)
        if (one in self.ways) > (other in self.ways):
            one, other = other, one
        ways = self.ways.get(other) or self.ways[self.random.choice([*self.ways])] if self.ways else ()
        return Course(rare=rare, fault=one, since=self.random.randrange(len(ways) + 1), route=ways)

    def _checked(self, state: Numbers) -> list[tuple[bool, Transition]]:
        """Return every step from the state, and whether it is new. Of faults those are checked that are so
        for the first time; now and then all."""
        few = len(self.wanted.pairs) <= FEW
        found, every = [], few or self.random.randrange(THOROUGH) == 0
        for transition in self.refinement.numbered.steps(state):
            before, event = self.refinement.report.distinct, transition.event
            first = self.met.meets(event.action, self._costs(event), self.faults)
            if event.action not in self.ways:
                self.ways[event.action] = tuple(map(event_text, (*self.run, event)))
            first |= self.met.kind(self.refinement.kind(transition))
            if first or every or not self._costs(event):
                self._check(transition)
            found.append((self.refinement.report.distinct > before, transition))
        return found

    def _check(self, transition: Transition) -> None:
        failure = self.refinement.check(transition)
        if failure is not None and self.deviation is None:
            self.deviation = self._deviation(failure, transition.event)

    def _judge(self, state: Numbers) -> None:
        """Judge each statement of the logic: anything at first, and after a wrong step a property."""
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
        return costs(self.refinement.numbered.machine.by_name[event.action, event.who])

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
    """Check the sample by what is known of its protocol; what ``refinement`` has seen before is forgotten."""
    refinement.anew()
    sampling = _Sampling(
        refinement=refinement,
        random=Random(sample.seed),
        budget=sample.steps,
        wanted=wanted(refinement.numbered.machine),
        known=sample.ways,
    )
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
        met=sampling.met.taken(),
        wanted=sampling.wanted,
        deviation=sampling.deviation,
        breach=sampling.breach,
    )


def shares(samples: Sequence[ModelSample], steps: int, parts: Sequence[int] = ()) -> tuple[ModelSample, ...]:
    """Return the samples with as many ``steps`` together, by their ``parts``; evenly without any."""
    parts = parts or [1] * len(samples)
    ends = [steps * part // sum(parts) for part in accumulate(parts, initial=0)]
    return tuple(
        replace(sample, steps=end - start)
        for sample, (start, end) in zip(samples, pairwise(ends), strict=True)
    )


def _last(run: list[Event]) -> str:
    return event_text(run[-1]) if run else "at first"
