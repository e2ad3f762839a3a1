"""What is done to a group while it is recorded: steps as data, from a name or a seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from rebalance.live.clusters.defaults import STEPS

TOPICS = ("orders", "payments")
"""The topics there are. All members begin with the first."""

MEMBER_STEPS = ("start", "close", "kill", "stop", "cont", "subscribe", "pause", "resume")
CLUSTER_STEPS = ("create_topic", "add_partitions", "delete_topic", "fail_coordinator")
OTHER_STEPS = ("settle", "next")


@dataclass(frozen=True, kw_only=True)
class RecordingStep:
    """One thing to do.

    ``start`` (with the assignors of ``stage``), ``close``, ``kill`` (SIGKILL), ``stop`` (SIGSTOP), ``cont``,
    ``subscribe`` (to ``topics``; none: unsubscribe), ``pause`` and ``resume`` (polling) concern ``member``.
    ``settle`` waits until the group has come to rest, ``next`` until anything happens in it.
    """

    do: str
    member: str = ""
    topics: tuple[str, ...] = ()
    topic: str = ""
    partitions: int = 0
    stage: int = 0

    def __str__(self) -> str:
        parts = [self.member, self.topic, *self.topics]
        parts += [f"{self.partitions} partitions"] if self.partitions else []
        parts += [f"stage {self.stage}"] if self.stage else []
        return " ".join([self.do.replace("_", " "), *filter(None, parts)])

    def data(self) -> dict[str, Any]:
        """As JSON: only what is not as usual."""
        return {name: value for name, value in asdict(self).items() if value or name == "do"}


def step(data: Mapping[str, Any]) -> RecordingStep:
    """The step that ``RecordingStep.data`` wrote. Raises ValueError for what is none."""
    known = {"do", "member", "topics", "topic", "partitions", "stage"}
    if not set(data) <= known or data.get("do") not in (*MEMBER_STEPS, *CLUSTER_STEPS, *OTHER_STEPS):
        raise ValueError(f"no such step: {dict(data)}")
    return RecordingStep(**{**data, "topics": tuple(data.get("topics", ()))})


@dataclass(frozen=True, kw_only=True)
class RecordingPlan:
    """What a scenario is made of: the names of its members, the stages of their assignors, a seed.

    ``together``: a new stage begins when all have left the one before, since some member cannot mix them.
    """

    members: tuple[str, ...]
    stages: int = 1
    together: bool = False
    seed: int = 0
    length: int | None = STEPS
    """Steps of a random scenario; None: it does not end."""


RecordingSteps = Iterator[RecordingStep]
SETTLE = RecordingStep(do="settle")


def _all(plan: RecordingPlan) -> RecordingSteps:
    yield from (RecordingStep(do="start", member=name) for name in plan.members)
    yield SETTLE


def _settling(*steps: RecordingStep) -> RecordingSteps:
    """Each step, and a rest behind it."""
    for one in steps:
        yield one
        yield SETTLE


def _scale_out(plan: RecordingPlan) -> RecordingSteps:
    return _settling(*(RecordingStep(do="start", member=name) for name in plan.members))


def _scale_in(plan: RecordingPlan) -> RecordingSteps:
    yield from _all(plan)
    yield from _settling(*(RecordingStep(do="close", member=name) for name in plan.members[:-1]))


def _away(do: str, undo: str) -> Callable[[RecordingPlan], RecordingSteps]:
    """The first member is gone until the others have come to rest, then it is back."""

    def steps(plan: RecordingPlan) -> RecordingSteps:
        yield from _all(plan)
        yield from _settling(*(RecordingStep(do=one, member=plan.members[0]) for one in (do, undo)))

    return steps


def _rolling_upgrade(plan: RecordingPlan) -> RecordingSteps:
    yield from _all(plan)
    for stage in range(1, plan.stages):
        if plan.together:
            yield from (RecordingStep(do="close", member=name) for name in plan.members)
            yield from (RecordingStep(do="start", member=name, stage=stage) for name in plan.members)
            yield SETTLE
            continue
        for name in plan.members:
            yield RecordingStep(do="close", member=name)
            yield RecordingStep(do="start", member=name, stage=stage)
            yield SETTLE


def _resubscribe(plan: RecordingPlan) -> RecordingSteps:
    first, last = plan.members[0], plan.members[-1]
    nothing = [(first, ())] if first != last else []
    several = [(first, TOPICS), (last, TOPICS), (first, TOPICS[1:]), *nothing, (first, TOPICS[:1])]
    yield from _all(plan)
    yield from _settling(*(RecordingStep(do="subscribe", member=name, topics=to) for name, to in several))


def _mixed(plan: RecordingPlan) -> RecordingSteps:
    yield from _scale_out(plan)
    yield RecordingStep(do="close", member=plan.members[0])
    yield SETTLE
    yield RecordingStep(do="start", member=plan.members[0])
    yield RecordingStep(do="kill", member=plan.members[-1])
    yield SETTLE
    yield RecordingStep(do="start", member=plan.members[-1])
    yield SETTLE


def _partitions(plan: RecordingPlan) -> RecordingSteps:
    yield from _all(plan)
    yield RecordingStep(do="add_partitions", topic=TOPICS[0], partitions=9)
    yield SETTLE


def _failover(plan: RecordingPlan) -> RecordingSteps:
    yield from _all(plan)
    yield RecordingStep(do="fail_coordinator")
    yield SETTLE
    yield RecordingStep(do="close", member=plan.members[-1])
    yield SETTLE


STATES = {"stop": "stopped", "pause": "stalled"}
"""A step of a random scenario -> where it leaves its member, which runs otherwise."""
BACK = {"stopped": "cont", "stalled": "resume"}


def _random(plan: RecordingPlan) -> RecordingSteps:
    """Steps that are possible where the group is; at least one member runs. The same for the same plan."""
    draw = random.Random(plan.seed)
    up: dict[str, str] = {}  # member -> running, stopped or stalled
    number = 0
    while plan.length is None or number < plan.length:
        number += 1
        running = [name for name in plan.members if up.get(name) == "running"]
        choices: list[RecordingStep] = [
            RecordingStep(do="start", member=name) for name in plan.members if name not in up
        ]
        for state, back in BACK.items():
            choices += [RecordingStep(do=back, member=name) for name in plan.members if up.get(name) == state]
        if len(running) > 1:
            choices += [
                RecordingStep(do=do, member=name)
                for name in running
                for do in ("close", "kill", "stop", "pause")
            ]
        for name in running:
            several = draw.choice((TOPICS, TOPICS[:1], TOPICS[1:]))
            choices.append(RecordingStep(do="subscribe", member=name, topics=several))
        chosen = draw.choice(choices)
        if chosen.do in ("close", "kill"):
            del up[chosen.member]
        elif chosen.do != "subscribe":
            up[chosen.member] = STATES.get(chosen.do, "running")
        yield chosen
        yield SETTLE if draw.random() < 0.5 else RecordingStep(do="next")
    for name, state in list(up.items()):
        if state != "running":
            yield RecordingStep(do=BACK[state], member=name)
    yield SETTLE


@dataclass(frozen=True)
class RecordingScenario:
    """A name, what happens, and how many members it takes at least."""

    name: str
    sentence: str
    steps: Callable[[RecordingPlan], RecordingSteps]
    least: int = 1


SCENARIOS = {
    one.name: one
    for one in (
        RecordingScenario("scale-out", "members join one by one", _scale_out),
        RecordingScenario("scale-in", "all but one leave, one by one", _scale_in, 2),
        RecordingScenario("crash", "a member is killed (SIGKILL), and comes back", _away("kill", "start"), 2),
        RecordingScenario("pause", "a member is stopped (SIGSTOP) beyond its session, and goes on",
                          _away("stop", "cont"), 2),
        RecordingScenario("stall", "a member does not poll for longer than max.poll.interval.ms",
                          _away("pause", "resume"), 2),
        RecordingScenario("rolling-upgrade", "from range to cooperative-sticky, as clients can",
                          _rolling_upgrade),
        RecordingScenario("change-assignor", "from range to another eager assignor, member by member",
                          _rolling_upgrade),
        RecordingScenario("resubscribe", "members subscribe to other topics, and to none", _resubscribe),
        RecordingScenario("mixed", "members join, leave, crash and come back", _mixed, 2),
        RecordingScenario("partitions", "a topic gets more partitions", _partitions),
        RecordingScenario("failover", "the group's coordinator is killed (three nodes)", _failover, 2),
        RecordingScenario("random", "all of the first five and subscriptions, drawn from --seed", _random, 2),
    )
}  # fmt: skip
