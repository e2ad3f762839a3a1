"""A recording with messages as a question to the model, and the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rebalance_verifier.explore.groups.scenarios import runs
from rebalance_verifier.live.conformance.ask import NARROW, ConformanceAnswer
from rebalance_verifier.live.conformance.listing import ConsumerSlot
from rebalance_verifier.live.conformance.log import (
    NATURAL,
    OBJECT,
    TEXT,
    TEXTS,
    LogError,
    RecordedLog,
    checked,
)
from rebalance_verifier.live.conformance.question import (
    Choices,
    LogQuestion,
    check_size,
    last_given,
    profile_of,
)
from rebalance_verifier.live.conformance.wire.frontier import Partitions
from rebalance_verifier.live.conformance.wire.group import BUDGET, FAULTS, WireGroup
from rebalance_verifier.live.conformance.wire.items import Item, WireRecording, has_messages, read_wire
from rebalance_verifier.live.conformance.wire.search import Progress, WireSearch
from rebalance_verifier.model.bugs.profiles import broker, profile_of_code
from rebalance_verifier.model.group.parts import Parts, Topics
from rebalance_verifier.model.group.setup import CLASSIC, CONSUMER, Consumer, ConsumerConfig, Setup

__all__ = ["ask_wire", "build_wire_question", "has_messages"]

MAX_CONSUMERS = 8


@dataclass(frozen=True, kw_only=True)
class WireQuestion(LogQuestion):
    """A question about the items of a recording with messages, lane by lane."""

    recording: WireRecording
    group: WireGroup


def build_wire_question(recorded: RecordedLog, choices: Choices) -> WireQuestion:
    """Return the model of a recorded group. Raises LogError for what the recording lacks, ValueError for a
    profile that does not exist."""
    recording = read_wire(recorded)
    if not recording.names:
        raise LogError(f"{recorded.path}: no event of group {recorded.group} is of a consumer")
    run = recorded.run
    listed, protocols = run.get("assignors", []), run.get("protocols", [])
    if not (
        isinstance(listed, list)
        and TEXTS.holds(protocols)
        and 0 < len(listed) == len(protocols)
        and all(listed)
    ):
        raise LogError(f"{recorded.path}: run.json does not say what each stage speaks")
    if not set(protocols) <= {CLASSIC, CONSUMER}:
        raise LogError(f"{recorded.path}: run.json has other protocols than {CLASSIC} and {CONSUMER}")
    stages = [tuple(one) for one in listed]
    beside = str(recorded.path.with_name("run.json"))
    request = checked(run, "request", OBJECT, beside)
    began = checked(request, "partitions", NATURAL, beside)
    if any(step.get("do") == "fail_coordinator" for step in run.get("steps", ())):
        raise LogError(f"{recorded.path}: a failover is not read from a recording of messages yet")
    topics = _topics(recorded, recording, choices, began)
    check_size(recorded, len(recording.names), topics, MAX_CONSUMERS)
    slots = tuple(_slot(recorded, choices, name, stages[0]) for name in recording.names)
    kind = choices.broker or _broker(run, beside)
    sets, exist, at = [], 0, 0
    for _, count in topics:
        sets.append(Parts((1 << count) - 1 << at))
        exist |= (1 << min(began, count)) - 1 << at
        at += count
    everything = Topics((1 << len(topics)) - 1)
    setup = Setup(
        consumers=tuple(
            Consumer(
                stages=tuple(
                    _config(slot.profile, one, spoken) for one, spoken in zip(stages, protocols, strict=True)
                ),
                subscriptions=_subscriptions(recording, slot.consumer, topics) or (everything,),
                instance=number if request.get("static") else None,
            )
            for number, slot in enumerate(slots)
        ),
        topics=tuple(sets),
        exist=Parts(exist),
        faults=FAULTS if CONSUMER in protocols and len(set(protocols)) == 1 else FAULTS[:-1],
        budget=BUDGET,
        coordinator=broker(kind).decisions,
        steps="fine",
        delays=True,
    )
    names = [f"{topic}-{number}" for topic, count in topics for number in range(count)]
    partitions = Partitions(
        numbers={name: number for number, name in enumerate(names)},
        topics={topic: number for number, (topic, _) in enumerate(topics)},
    )
    return WireQuestion(
        recorded=recorded,
        recording=recording,
        slots=slots,
        broker=kind,
        topics=topics,
        lines=tuple(item.line for several in recording.lanes.values() for item in several),
        group=WireGroup(recording, setup, partitions),
    )


def _config(profile: str, assignors: tuple[str, ...], protocol: str) -> ConsumerConfig:
    return replace(runs(profile, assignors), group_protocol=protocol)


def _slot(recorded: RecordedLog, choices: Choices, name: str, assignors: tuple[str, ...]) -> ConsumerSlot:
    reported = next(
        (line.detail for line in recorded.lines if line.consumer == name and line.event == "started"), ""
    )
    return ConsumerSlot(name, last_given(choices.profiles, name) or profile_of(reported), assignors)


def _broker(run: Mapping[str, Any], where: str) -> str:
    """Return the profile of the broker, which is its release's."""
    release = checked(checked(run, "cluster", OBJECT, where), "version", TEXT, where)
    return profile_of_code("broker", release)


def _topics(
    recorded: RecordedLog, recording: WireRecording, choices: Choices, least: int
) -> tuple[tuple[str, int], ...]:
    """Return the topics that somebody subscribes to, and how many partitions each comes to have at
    ``least``."""
    counts = {
        str(step.get("topic")): step.get("partitions", 0)
        for step in recorded.run.get("steps", ())
        if step.get("do") == "add_partitions"
    }
    found: dict[str, int] = {}
    for several in recording.lanes.values():
        for item in several:
            for topic in item.data.get("topics", ()):
                count = max(least, counts.get(topic, 0), choices.topics.get(topic, 0))
                found.setdefault(topic, count)
    return tuple(found.items()) or (("topic", 1),)


def _subscriptions(
    recording: WireRecording, name: str, topics: Sequence[tuple[str, int]]
) -> tuple[Topics, ...]:
    """Return what a consumer subscribes to, first what it starts with."""
    numbers = {topic: number for number, (topic, _) in enumerate(topics)}
    lane: Sequence[Item] = recording.lanes["app", recording.names.index(name)]
    listed = (item.data["topics"] for item in lane if item.kind == "subscribed")
    sets = (sum({1 << numbers[topic] for topic in several if topic in numbers}) for several in listed)
    return tuple(dict.fromkeys(Topics(one) for one in sets if one))


def ask_wire(question: WireQuestion, choices: Choices, progress: Progress | None = None) -> ConformanceAnswer:
    """Search: the narrow window first."""
    windows = dict.fromkeys((min(NARROW, choices.window), choices.window))
    for window in windows:
        search = WireSearch(question.group, window=window, limit=choices.limit, seconds=choices.seconds)
        found = search.run(progress)
        if found.verdict == "explained":
            break
    return ConformanceAnswer(question, found)
