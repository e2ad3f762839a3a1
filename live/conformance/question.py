"""An event log as a question to the model: the setup of its group, and the events by number."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from rebalance_verifier.base.names import unknown
from rebalance_verifier.explore.groups.scenarios import runs
from rebalance_verifier.live.conformance.absences import absences_of, between
from rebalance_verifier.live.conformance.clients.table import BY_ID, BY_REPORT
from rebalance_verifier.live.conformance.deviations import RecordedMachine
from rebalance_verifier.live.conformance.listing import ConsumerSlot, Listing, capabilities_of, left_in_time
from rebalance_verifier.live.conformance.log import LogError, LogLine, RecordedLog
from rebalance_verifier.live.conformance.mock import MOCK, MOCK_DECISIONS
from rebalance_verifier.live.conformance.observed import SearchQuestion, UnloggedAction
from rebalance_verifier.model.assignors import NAMES
from rebalance_verifier.model.bugs.profiles import (
    AS_SPECIFIED,
    NEWEST_BROKER,
    broker,
    client,
    profile_of_code,
)
from rebalance_verifier.model.group.parts import Parts, Topics
from rebalance_verifier.model.group.setup import Consumer, Setup, letter
from rebalance_verifier.model.machine import NOBODY

MAX_CONSUMERS, MAX_PARTITIONS = 26, 64


@dataclass(frozen=True, kw_only=True)
class Choices:
    """Choices of the caller. Names of consumers are patterns; the last that fits counts.

    ``profiles`` and ``assignors`` are (pattern, value); ``topics`` how many partitions a topic has where the
    log does not show all. ``assignor``: ``observed`` or ``reference``. ``faults``: how many hidden ones may
    happen at most. ``window`` and ``seconds`` in seconds.
    """

    profiles: tuple[tuple[str, str], ...] = ()
    broker: str | None = None
    assignors: tuple[tuple[str, tuple[str, ...]], ...] = ()
    topics: Mapping[str, int] = field(default_factory=dict)
    assignor: str = "observed"
    faults: int = 0
    window: float = 1.0
    steps: str = "atomic"
    limit: int = 400_000
    seconds: float | None = None


@dataclass(frozen=True, kw_only=True)
class LogQuestion:
    """Question to the model about a log, in the names of the log. ``lines[i]`` is the line of the event
    number ``i`` of the search."""

    recorded: RecordedLog
    slots: tuple[ConsumerSlot, ...]
    broker: str
    topics: tuple[tuple[str, int], ...]
    lines: tuple[LogLine, ...]

    @property
    def unlogged(self) -> Collection[UnloggedAction]:
        """Return what may happen without a line."""
        return ()

    def name(self, slot: int) -> str:
        """Return the consumer in a slot."""
        return "" if slot == NOBODY else self.slots[slot].consumer

    def spelled(self, phrase: str) -> str:
        """Return text of the model with the log's names for consumers and partitions."""
        return spelled(phrase, [name for name, _ in self.topics], [slot.consumer for slot in self.slots])


@dataclass(frozen=True, kw_only=True)
class ConformanceQuestion(LogQuestion):
    """A question about the events of consumers."""

    search: SearchQuestion
    build: RecordedMachine

    @property
    def unlogged(self) -> Collection[UnloggedAction]:
        return self.search.unlogged_actions


def spelled(phrase: str, topics: Sequence[str], consumers: Sequence[str]) -> str:
    """Return text of the model with these names for its topics and consumers."""
    several = len(topics) > 1
    names = {f"t{n if several else ''}-": f"{topic}-" for n, topic in enumerate(topics)}
    letters = {letter(slot): consumer for slot, consumer in enumerate(consumers)}
    made = []
    for word in phrase.split(" "):
        bare = word.rstrip(":,;")
        tail = word[len(bare) :]
        if bare in letters:
            word = letters[bare] + tail
        for old, new in names.items():
            if bare.startswith(old) and bare[len(old) :].isdigit():
                word = new + bare[len(old) :] + tail
        made.append(word)
    return " ".join(made)


def build_question(recorded: RecordedLog, choices: Choices) -> ConformanceQuestion:
    """Return the setup and the events by number.

    Raises LogError for what the log lacks, ValueError for a profile or an assignor that does not exist.
    """
    topics = _topics(recorded, choices)
    lives = _lives(recorded, choices)
    slots = tuple(dict.fromkeys(slot for several in lives.values() for slot in several))
    if not slots:
        raise LogError(f"{recorded.path}: no event of group {recorded.group} is of a consumer")
    check_size(recorded, len(slots), topics, MAX_CONSUMERS)
    where = {slot: number for number, slot in enumerate(slots)}
    listed = Listing(slots, topics)
    owners = {name: [where[slot] for slot in several] for name, several in lives.items()}
    absent = absences_of(recorded, owners)
    for line in sorted((*left_in_time(recorded.lines), *absent.lines), key=lambda line: line.at):
        listed.add(line, owners)
    when = {**absent.when, **between(slots, listed.events)}
    for number, slot in enumerate(slots):
        if slot.client.joins_unpolled:
            when.pop(("slow member", number), None)
    kind = _broker(recorded, choices)
    unlogged_actions = [action for action in when if action[0] not in BY_ID]
    unlogged_actions += [("enforce", number) for number in listed.again]
    unlogged_actions += _loading(kind, recorded, slots)
    unlogged_actions += [(name, number) for number, slot in enumerate(slots) for name in slot.client.loses]
    return ConformanceQuestion(
        recorded=recorded,
        slots=slots,
        broker=kind,
        topics=topics,
        lines=tuple(listed.lines),
        search=SearchQuestion(
            setup=_setup(slots, kind, topics, listed.subscriptions, choices),
            events=tuple(listed.events),
            capabilities=capabilities_of(slots, listed.events),
            unlogged_actions=tuple(dict.fromkeys(unlogged_actions)),
            when=when,
            observed_assignments=choices.assignor == "observed",
            limit=choices.limit,
        ),
        build=RecordedMachine(
            kind == MOCK,
            tuple(slot.client for slot in slots),
            frozenset(action for action in when if action[0] in BY_ID),
        ),
    )


def check_size(recorded: RecordedLog, consumers: int, topics: Sequence[tuple[str, int]], most: int) -> None:
    """Raises LogError for a group that is too large: of more than ``most`` consumers, or of too many
    partitions."""
    partitions = sum(count for _, count in topics)
    if consumers > most or partitions > MAX_PARTITIONS:
        raise LogError(
            f"{recorded.path}: {consumers} consumers and {partitions} partitions; "
            f"at most {most} and {MAX_PARTITIONS} can be asked about"
        )


def _topics(recorded: RecordedLog, choices: Choices) -> tuple[tuple[str, int], ...]:
    found: dict[str, int] = {}
    configured = recorded.run.get("partitions")
    for line in recorded.lines:
        for topic in line.topics or ():
            found.setdefault(topic, configured if isinstance(configured, int) else 1)
        for name in line.partitions or ():
            topic, _, number = name.rpartition("-")
            if not topic or not number.isdigit():
                raise LogError(f"{recorded.path}:{line.number}: {name!r} is no partition such as orders-0")
            found[topic] = max(found.get(topic, 1), int(number) + 1)
    for topic, count in choices.topics.items():
        found[topic] = max(found.get(topic, 1), count)
    return tuple(found.items()) or (("topic", 1),)


def _lives(recorded: RecordedLog, choices: Choices) -> dict[str, list[ConsumerSlot]]:
    """Return each consumer's slot for each time that it was started."""
    stages = recorded.run.get("assignors")
    steps = [step for step in recorded.run.get("steps", ()) if step.get("do") == "start"]
    lives: dict[str, list[ConsumerSlot]] = {}
    for line in recorded.lines:
        if not line.consumer or (line.event != "started" and line.consumer in lives):
            continue
        several = lives.setdefault(line.consumer, [])
        reported = profile_of(line.detail)
        profile = last_given(choices.profiles, line.consumer) or reported
        release = client(profile)
        mine = [step for step in steps if step.get("member") == line.consumer]
        stage = mine[len(several)].get("stage", 0) if len(several) < len(mine) else 0
        assignors = last_given(choices.assignors, line.consumer)
        if assignors is None and isinstance(stages, list) and stages:
            assignors = tuple(stages[min(stage, len(stages) - 1)])
        assignors = assignors or release.default_assignors
        for name in assignors:
            if name not in NAMES:
                raise ValueError(f"{line.consumer}: {unknown('assignor', name, NAMES)}")
        several.append(ConsumerSlot(line.consumer, profile, assignors))
    return lives


_RELEASE = re.compile(r"\d+\.\d+\.\d+")


def profile_of(reported: str) -> str:
    """Return the profile of a client by what it says that it is."""
    name, _, release = reported.partition(" ")
    if name == "kafka-clients" and _RELEASE.fullmatch(release):
        return profile_of_code("client", release)
    return BY_REPORT[name].profile if name in BY_REPORT else AS_SPECIFIED


def last_given(given: Sequence[tuple[str, Any]], name: str) -> Any:
    return next((value for pattern, value in reversed(given) if fnmatchcase(name, pattern)), None)


def _broker(recorded: RecordedLog, choices: Choices) -> str:
    if choices.broker is not None:
        return choices.broker
    cluster = recorded.run.get("cluster")
    kind = cluster.get("kind") if isinstance(cluster, dict) else None
    if kind == MOCK:
        return MOCK
    if kind != "kafka":
        return AS_SPECIFIED
    release = str(cluster.get("version")) if isinstance(cluster, dict) else ""
    return profile_of_code("broker", release) if _RELEASE.fullmatch(release) else NEWEST_BROKER


def _setup(
    slots: Sequence[ConsumerSlot],
    kind: str,
    topics: Sequence[tuple[str, int]],
    subscriptions: Mapping[int, Sequence[int]],
    choices: Choices,
) -> Setup:
    sets, at = [], 0
    for _, count in topics:
        sets.append(Parts((1 << count) - 1 << at))
        at += count
    everything = Topics((1 << len(topics)) - 1)
    # The mock cluster begins a rebalance at each JoinGroup, as if its bytes were always others.
    more = ("unsorted_metadata",) if kind == MOCK else ()
    decisions = MOCK_DECISIONS if kind == MOCK else broker(kind).decisions
    return Setup(
        consumers=tuple(
            Consumer(
                stages=(runs(slot.profile, slot.assignors, more),),
                subscriptions=tuple(Topics(some) for some in subscriptions.get(number, ())) or (everything,),
            )
            for number, slot in enumerate(slots)
        ),
        topics=tuple(sets),
        exist=Parts((1 << at) - 1),
        coordinator=decisions,
        steps=choices.steps,
    )


def _loading(kind: str, recorded: RecordedLog, slots: Sequence[ConsumerSlot]) -> list[UnloggedAction]:
    """Return a refusal of JoinGroup by a coordinator that is loading, if the log shows that it is sent
    again."""
    shown = {line.consumer for line in recorded.lines if line.event == "joining"}
    return [
        ("join lost", number) for number, slot in enumerate(slots) if kind != MOCK and slot.consumer in shown
    ]
