"""Model and Kafka's own code as one system, which is walked, replayed and shrunk as any other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from random import Random

from rebalance_verifier.explore.random import system as systems
from rebalance_verifier.explore.random.swarm_config import FAULTS_IN, SwarmConfig, drawn_config
from rebalance_verifier.live.clients.replay.scene import NotForcible
from rebalance_verifier.live.code.lockstep.classic import NO_STEPS, Disagreement
from rebalance_verifier.live.code.lockstep.migration import MigratingLockstep
from rebalance_verifier.live.code.lockstep.protocols import AnyLockstep
from rebalance_verifier.model.classic.describe import event_text
from rebalance_verifier.model.machine import Event, Outcome, PossibleStep

IN_VAIN = 8
"""Before one of so many steps something is done that is no step of the model."""

RARE_STEP_EVERY = 4
"""In half of the walks one of so many steps is of the kind that was possible least often."""

CLASSIC_STEPS = (0, 0, 30, 60)
"""For so many steps nobody in a group between the protocols speaks the consumer protocol: what an upgrade
finds is more than one member then."""

BY_ITSELF = ("join refused", "sync refused", "request refused")
"""What Kafka does in the step before."""


NO_STEP = Outcome(())
"""The outcome of what is done to the code and is no step of the model: it is in vain."""


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

    def among(self, *, faults: bool) -> Iterator[PossibleStep]:
        """Yield the steps that can be taken and are not known to be unforced, all faults or all others."""
        unforced = self._unforced
        for one in self.lockstep.possible().among(faults=faults):
            if one.event not in unforced and one.event.action not in BY_ITSELF:
                yield one

    def found(self, event: Event) -> PossibleStep | None:
        if event.action in NO_STEPS:
            return PossibleStep(event, NO_STEP) if event in self.lockstep.in_vain() else None
        outcome = self.lockstep.built.outcome(self.lockstep.state, event)
        return None if outcome is None else PossibleStep(event, outcome)

    def step(self, choice: PossibleStep) -> bool:
        event, outcome = choice
        if outcome is NO_STEP:
            self.disagreement = self.lockstep.try_in_vain(event)
            return False
        try:
            self.disagreement = self.lockstep.step(event, outcome)
        except NotForcible as why:
            self.lockstep.seen.unforced[event.action, str(why)] += 1
            self._unforced.add(event)
            return False
        if self._unforced:
            self._unforced.clear()
        return True

    def rest(self) -> None:
        """Nothing is asked of a group that is left alone: both look alike after each step."""


def walk(lockstep: AnyLockstep, random: Random, steps: int) -> Disagreement | None:
    """At most ``steps`` random steps, up to the first disagreement."""
    both = InStep(lockstep)
    systems.walk(both, _choices(both, random), steps)
    return both.disagreement


def _choices(both: InStep, random: Random) -> Iterator[PossibleStep]:
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
            yield PossibleStep(idle[random.randrange(len(idle))], NO_STEP)
        looked_for = times if curious and random.randrange(RARE_STEP_EVERY) == 0 else None
        position = lockstep.seen.steps
        while lockstep.seen.steps == position:
            chosen = _drawn(both, config, random, looked_for)
            if chosen is None:
                return
            yield chosen


def _drawn(
    both: InStep, config: SwarmConfig, random: Random, times: Counter[str] | None
) -> PossibleStep | None:
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


def drawn(seed: int, number: int) -> Random:
    """Return what walk ``number`` of those of ``seed`` draws from."""
    return Random(f"{seed}/{number}")


def lines_of(disagreement: Disagreement) -> list[str]:
    """Return a disagreement as lines."""
    lines = [f"{number:3} {event_text(event)}" for number, event in enumerate(disagreement.events, 1)]
    return [*lines, *(f"    {sentence}" for sentence in disagreement.sentences)]
