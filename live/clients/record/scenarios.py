"""What is done to a group while it is recorded: steps as data, from a name or a seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from rebalance_verifier.base.tables import table
from rebalance_verifier.live.clients.clusters.defaults import STEPS

TOPICS = ("orders", "payments")
"""The topics there are. All members begin with the first."""

MEMBER_STEPS = ("start", "close", "kill", "stop", "cont", "subscribe", "pause", "resume")
CLUSTER_STEPS = ("add_partitions", "fail_coordinator")
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
    """Return the step that ``RecordingStep.data`` wrote. Raises ValueError for what is none."""
    known = {"do", "member", "topics", "topic", "partitions", "stage"}
    if not set(data) <= known or data.get("do") not in (*MEMBER_STEPS, *CLUSTER_STEPS, *OTHER_STEPS):
        raise ValueError(f"no such step: {dict(data)}")
    return RecordingStep(**{**data, "topics": tuple(data.get("topics", ()))})


@dataclass(frozen=True, kw_only=True)
class RecordingPlan:
    """Parts of a scenario: the names of its members, the stages of their assignors, a seed.

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


def _listed(rows: Sequence[Mapping[str, Any]], plan: RecordingPlan) -> RecordingSteps:
    """Return the steps of a scenario in ``scenarios.toml``, which says what its rows mean."""
    names = plan.members
    named = {"first": names[:1], "last": names[-1:], "each but last": names[:-1], "each": names, "all": names}
    for row in rows:
        if len(names) < row.get("least", 1):
            continue
        does = {name: value for name, value in row.items() if name not in ("least", "rest")}
        whose = row.get("member", "")
        for name in named.get(whose, ("",)):
            yield step({**does, "member": name})
            if whose != "all" and row.get("rest", True):
                yield SETTLE
        if whose == "all":
            yield SETTLE


def _rolling_upgrade(plan: RecordingPlan) -> RecordingSteps:
    yield from _listed(({"do": "start", "member": "all"},), plan)
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


STATES = {"stop": "stopped", "pause": "stalled"}
"""A step of a random scenario -> where it leaves its member, which runs otherwise."""
BACK = {"stopped": "cont", "stalled": "resume"}


def _random(plan: RecordingPlan) -> RecordingSteps:
    """Return steps that are possible where the group is; at least one member runs. The same for the same
    plan."""
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


_CODED = {
    **dict.fromkeys(("rolling-upgrade", "migration", "change-assignor"), _rolling_upgrade),
    "random": _random,
}

SCENARIOS = {
    name: RecordingScenario(
        name, row["sentence"], _CODED.get(name) or partial(_listed, row["steps"]), row.get("least", 1)
    )
    for name, row in table(__file__).items()
}
