"""Random walks in lockstep, in parallel, and what they come to; the first disagreement is made short."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import NamedTuple

from rebalance_verifier.base.processes.gather import gather
from rebalance_verifier.base.verdict import Verdict
from rebalance_verifier.explore.groups.scenarios import NamedScenario, ScenarioError, ScenarioSize
from rebalance_verifier.explore.random import system as systems
from rebalance_verifier.explore.random.swarm_config import FAULTS_IN, SwarmConfig, drawn_config
from rebalance_verifier.live.clients.replay.scene import NotForcible
from rebalance_verifier.live.code.lockstep.classic import NO_STEPS, Agreement, Disagreement
from rebalance_verifier.live.code.lockstep.migration import MigratingLockstep
from rebalance_verifier.live.code.lockstep.protocols import AnyLockstep, in_step
from rebalance_verifier.live.code.replay.group import CodeReleases
from rebalance_verifier.live.code.simulation import Simulation, SimulationDied
from rebalance_verifier.model.bugs.profiles import profile_of_code
from rebalance_verifier.model.bugs.releases import version
from rebalance_verifier.model.classic.describe import event_text
from rebalance_verifier.model.group.setup import CLASSIC, Setup
from rebalance_verifier.model.machine import Event, Outcome
from rebalance_verifier.model.protocols import machine

NOT_PLAYED = ("slow network",)
"""Kinds of faults that lockstep does not have: its messages are under way for as long as they like."""

ALWAYS = ("session timeout", "slow member")
"""Those that it always has: one timer of Kafka is that of all who are late."""

KNOW_RACKS = "3.5.0"
"""The first release whose consumers look where replicas are (KIP-881)."""

REWRITTEN = "4.0.0"
"""The first release whose broker runs by default the coordinator that a simulation runs of every release."""

FOLLOWS = "4.2.0"
"""The first release in which a member that revokes gives up at once what it does not subscribe to any
more."""

A_HEARTBEAT_LATER = ("4.0.0", "4.0.1", "4.1.0", "4.1.1")
"""Releases in which a partition that returns to who was to revoke it comes a heartbeat later (KAFKA-19449),
which costs time and nothing else, and so is no entry of the catalogue."""

KEEPS_ITS_EPOCH = "4.2.0"
"""The first release in which a member that is to give up more, behind what it has just given up, keeps its
epoch; before, it has the next one, which is no mistake either."""

IN_VAIN = 8
"""Before one of so many steps something is done that is no step of the model."""

RARE_STEP_EVERY = 4
"""In half of the walks one of so many steps is of the kind that was possible least often."""

CLASSIC_STEPS = (0, 0, 30, 60)
"""For so many steps nobody in a group between the protocols speaks the consumer protocol: what an upgrade
finds is more than one member then."""

WALKS_PER_TASK = 20
"""Walks that a worker does before it tells."""

BY_ITSELF = ("join refused", "sync refused", "request refused")
"""What Kafka does in the step before."""

Part = tuple[Agreement, Disagreement | None]
"""What some walks come to, up to the first disagreement."""

UNLIMITED_FAULTS = 1 << 30
"""Faults that a walk may take."""


@dataclass(frozen=True, kw_only=True)
class LockstepPlan:
    """``walks`` from the one numbered ``first`` on, each of at most ``steps`` steps; ``releases`` are run."""

    setup: Setup
    releases: CodeReleases
    walks: int = 1000
    steps: int = 100
    seed: int = 0
    first: int = 0
    jobs: int | None = None


@dataclass(kw_only=True)
class LockstepResult:
    """What came of a plan. ``disagreement`` is that of the first walk that has one, made short.

    ``seen_again``: a simulation of its own came to it too, so that it is not a JVM that somebody killed.
    ``stopped``: why not all was walked, or "".
    """

    plan: LockstepPlan
    agreement: Agreement = field(default_factory=Agreement)
    disagreement: Disagreement | None = None
    seen_again: bool = False
    interrupted: bool = False
    stopped: str = ""

    @property
    def never_taken(self) -> list[str]:
        """The actions of the model that were not taken."""
        names = dict.fromkeys(action.name for action in machine(self.plan.setup).actions)
        return [name for name in names if not self.agreement.taken[name]]

    @property
    def verdict(self) -> Verdict:
        """Return what the walks say."""
        if self.disagreement is not None:
            return Verdict.VIOLATION if self.seen_again else Verdict.INCONCLUSIVE
        return Verdict.INCONCLUSIVE if self.interrupted or self.stopped else Verdict.CONFORMANT


def lockstep_setup(scenario: NamedScenario, size: ScenarioSize, releases: CodeReleases) -> Setup:
    """Return the scenario for walks: each member and the coordinator as its release is known to be.

    Raises ScenarioError for what does not fit or a release does not have, ValueError for a release without a
    profile.
    """
    oldest = min(releases.consumers, key=version)
    if scenario.racks and version(oldest) < version(KNOW_RACKS):
        raise ScenarioError(f"{scenario.name} is not walked with {oldest}: racks are since {KNOW_RACKS}")
    size = replace(
        size,
        profiles=tuple(profile_of_code("client", one) for one in releases.consumers),
        broker=profile_of_code("broker", max(releases.coordinator, REWRITTEN, key=version)),
        steps="fine",
        budget=UNLIMITED_FAULTS,
    )
    if scenario.protocol.name != CLASSIC:
        return served_setup(scenario, size, releases)
    chosen = scenario.setup(replace(size, naming="given"))
    faults = dict.fromkeys((*chosen.faults, *ALWAYS))
    without = (*NOT_PLAYED, *(() if chosen.racks else ("racks change",)))
    return replace(chosen, faults=tuple(fault for fault in faults if fault not in without))


def served_setup(scenario: NamedScenario, size: ScenarioSize, releases: CodeReleases) -> Setup:
    """Return the setup of a consumer group (KIP-848), whose target is Kafka's to choose."""
    refuse_older(scenario.name, releases)
    chosen = scenario.setup(replace(size, naming="every"))
    if "resubscribe" in chosen.faults and version(releases.coordinator) < version(FOLLOWS):
        raise ScenarioError(
            f"{scenario.name}: before {FOLLOWS} what a member holds does not follow its subscription "
            "while it revokes (KAFKA-19431), which the model does not have"
        )
    faults = dict.fromkeys((*chosen.faults, *ALWAYS))
    return replace(
        chosen, faults=tuple(faults), coordinator=decisions_at(chosen.coordinator, releases.coordinator)
    )


def refuse_older(what: str, releases: CodeReleases) -> None:
    """Raise ScenarioError for releases that have no consumer groups; ``what`` is to be played on them."""
    for side, oldest in (
        ("a coordinator", releases.coordinator),
        ("a consumer", min(releases.consumers, key=version)),
    ):
        if version(oldest) < version(REWRITTEN):
            raise ScenarioError(f"{what}: {side} of {oldest} has no such groups")


def decisions_at(decisions: frozenset[str], coordinator: str) -> frozenset[str]:
    """Return what a coordinator of this release decides otherwise, with what is no mistake."""
    if coordinator in A_HEARTBEAT_LATER:
        decisions |= {"own_pending_is_unreleased"}
    if version(coordinator) < version(KEEPS_ITS_EPOCH):
        decisions |= {"revocation_counts"}
    return decisions


def lockstep(plan: LockstepPlan, progress: Callable[[Agreement], None] = lambda _: None) -> LockstepResult:
    """Walk until the end or the first disagreement; Ctrl-C ends it with what is known.

    The result is the same for any number of jobs. Raises CannotStart where no simulation can be had.
    """
    result = LockstepResult(plan=plan)

    def take(part: Part) -> str:
        agreement, result.disagreement = part
        result.agreement.add(agreement)
        return "" if result.disagreement is None else "a disagreement"

    def heard() -> str:
        progress(result.agreement)
        return ""

    end = gather(lambda: _walking(plan), -(-plan.walks // WALKS_PER_TASK), plan.jobs, take, heard)
    result.interrupted = end.interrupted
    if end.killed is not None:
        number = plan.first + end.killed * WALKS_PER_TASK
        result.stopped = f"the worker of the walks from {number} on was killed"
    if result.disagreement is not None:
        with contextlib.suppress(KeyboardInterrupt, SimulationDied), _simulation(plan) as simulation:
            fresh = _fresh(plan, simulation)
            second = again(fresh(), result.disagreement.events)
            result.seen_again = second is not None and second.cause == result.disagreement.cause
            result.disagreement = shortened(fresh, result.disagreement)
    return result


def _simulation(plan: LockstepPlan) -> Simulation:
    return Simulation([plan.releases.coordinator], plan.releases.consumers)


def _fresh(plan: LockstepPlan, simulation: Simulation) -> Callable[[], AnyLockstep]:
    built = machine(plan.setup)
    return lambda: in_step(simulation, plan.setup, built, plan.releases)


@contextlib.contextmanager
def _walking(plan: LockstepPlan) -> Iterator[Callable[[int], Sequence[Part]]]:
    """Yield what does one part of the walks, up to its first disagreement."""
    with _simulation(plan) as simulation:
        fresh = _fresh(plan, simulation)

        def part(number: int) -> Sequence[Part]:
            agreement = Agreement()
            for walk_number in range(number * WALKS_PER_TASK, min(plan.walks, (number + 1) * WALKS_PER_TASK)):
                one = fresh()
                disagreement = walk(one, drawn(plan.seed, plan.first + walk_number), plan.steps)
                agreement.add(one.seen)
                if disagreement is not None:
                    return ((agreement, disagreement),)
            return ((agreement, None),)

        yield part


def drawn(seed: int, number: int) -> Random:
    """Return what walk ``number`` of those of ``seed`` draws from."""
    return Random(f"{seed}/{number}")


# -- both as one system ------------------------------------------------------------------------------------


class StepInBoth(NamedTuple):
    """A step of the model that the code takes too; without an outcome one that is in vain."""

    event: Event
    outcome: Outcome | None


class InStep:
    """A lockstep as a system that is played: its breach is the disagreement, which ends a run.

    A step that the code cannot be made to take does not count, nor does one in vain.
    """

    def __init__(self, lockstep: AnyLockstep) -> None:
        self.lockstep = lockstep
        self.disagreement: Disagreement | None = None
        self._unforced: set[Event] = set()

    @property
    def events(self) -> Sequence[Event]:
        return self.lockstep.events

    @property
    def over(self) -> bool:
        return self.disagreement is not None

    @property
    def breaches(self) -> Mapping[Hashable, int]:
        found = self.disagreement
        return {} if found is None else {found.cause: len(found.events)}

    def begin(self) -> None:
        self.disagreement = self.lockstep.begin()

    def among(self, *, faults: bool) -> Iterator[StepInBoth]:
        """Yield the steps that can be taken and are not known to be unforced, all faults or all others."""
        for event, outcome in self.lockstep.possible().among(faults=faults):
            if event not in self._unforced and event.action not in BY_ITSELF:
                yield StepInBoth(event, outcome)

    def found(self, event: Event) -> StepInBoth | None:
        if event.action in NO_STEPS:
            return StepInBoth(event, None) if event in self.lockstep.in_vain() else None
        outcome = self.lockstep.built.outcome(self.lockstep.state, event)
        return None if outcome is None else StepInBoth(event, outcome)

    def step(self, choice: StepInBoth) -> bool:
        event, outcome = choice
        if outcome is None:
            self.disagreement = self.lockstep.try_in_vain(event)
            return False
        try:
            self.disagreement = self.lockstep.step(event, outcome)
        except NotForcible as why:
            self.lockstep.seen.unforced[event.action, str(why)] += 1
            self._unforced.add(event)
            return False
        self._unforced.clear()
        return True

    def rest(self) -> None:
        """Nothing is asked of a group that is left alone: both look alike after each step."""


def walk(lockstep: AnyLockstep, random: Random, steps: int) -> Disagreement | None:
    """At most ``steps`` random steps, up to the first disagreement."""
    both = InStep(lockstep)
    systems.walk(both, _choices(both, random), steps)
    return both.disagreement


def _choices(both: InStep, random: Random) -> Iterator[StepInBoth]:
    """Yield the steps of a random walk; of several that cannot be forced all are at one position of it."""
    lockstep = both.lockstep
    if isinstance(lockstep, MigratingLockstep):
        lockstep.classic = random.choice(CLASSIC_STEPS)
    actions = ((action.name, action.who, action.fault) for action in lockstep.built.actions)
    config = drawn_config(random, actions, FAULTS_IN)
    times: Counter[str] = Counter()
    curious = random.randrange(2) == 0
    while True:
        if random.randrange(IN_VAIN) == 0 and (idle := lockstep.in_vain()):
            yield StepInBoth(idle[random.randrange(len(idle))], None)
        looked_for = times if curious and random.randrange(RARE_STEP_EVERY) == 0 else None
        position = lockstep.seen.steps
        while lockstep.seen.steps == position:
            chosen = _drawn(both, config, random, looked_for)
            if chosen is None:
                return
            yield chosen


def _drawn(
    both: InStep, config: SwarmConfig, random: Random, times: Counter[str] | None
) -> StepInBoth | None:
    """Return one of the steps that are possible, None where there is none.

    Which faults there are is asked when there is to be one. ``times``: how often each action was possible
    when somebody looked; given, one of those with the least is taken.
    """
    right = list(both.among(faults=False))
    if times is not None:
        every = [*right, *both.among(faults=True)]
        times.update({one.event.action for one in every})
        fewest = min((times[one.event.action] for one in every), default=0)
        pool = [one for one in every if times[one.event.action] == fewest]
        return pool[random.randrange(len(pool))] if pool else None
    wrong = any(True for _ in both.among(faults=True))
    pool = list(both.among(faults=True)) if config.goes_wrong(random, wrong, bool(right)) else right
    return pool[config.pick(random, [one.event for one in pool])] if pool else None


def again(lockstep: AnyLockstep, events: Sequence[Event]) -> Disagreement | None:
    """Return those of ``events`` that are possible, up to the first disagreement."""
    both = InStep(lockstep)
    systems.replay(both, events)
    return both.disagreement


def shortened(fresh: Callable[[], AnyLockstep], first: Disagreement) -> Disagreement:
    """Return a disagreement of the same cause with as few events as leaving out parts of it comes to.

    ``fresh`` makes a new Lockstep of the same group.
    """
    events = systems.shortened(lambda: InStep(fresh()), first.events, first.cause)
    if events == first.events:
        return first
    shortest = again(fresh(), events)
    return first if shortest is None or shortest.cause != first.cause else shortest


def lines_of(found: Disagreement) -> list[str]:
    """Return a disagreement as lines."""
    lines = [f"{number:3} {event_text(event)}" for number, event in enumerate(found.events, 1)]
    return [*lines, *(f"    {sentence}" for sentence in found.sentences)]
