"""The lines of a log as events of the model: consumers, topics and partitions by number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from rebalance_verifier.live.conformance.clients.table import client_of
from rebalance_verifier.live.conformance.clients.traits import ClientTraits
from rebalance_verifier.live.conformance.log import LogLine
from rebalance_verifier.live.conformance.observed import (
    ALWAYS_LOGGED,
    CALLBACKS,
    OPTIONAL,
    LogCapabilities,
    Observed,
)
from rebalance_verifier.model.group.parts import Parts


@dataclass(frozen=True)
class ConsumerSlot:
    """One consumer of the model: a name of the log, started with one list of assignors."""

    consumer: str
    profile: str
    assignors: tuple[str, ...]

    @property
    def client(self) -> ClientTraits:
        """Return what is known of its client."""
        return client_of(self.profile)


class Listing:
    """The lines as events. A consumer is in its next slot when it is started again."""

    def __init__(self, slots: Sequence[ConsumerSlot], topics: Sequence[tuple[str, int]]) -> None:
        self.slots = slots
        self.topics = {name: number for number, (name, _) in enumerate(topics)}
        names = [f"{topic}-{number}" for topic, count in topics for number in range(count)]
        self.numbers = {name: number for number, name in enumerate(names)}
        self.again: list[int] = []
        """Slots that subscribed to what they had."""
        self.events: list[Observed] = []
        self.lines: list[LogLine] = []
        self.subscriptions: dict[int, list[int]] = {}
        self._started: dict[str, int] = {}
        self._waits: dict[str, tuple[int, LogLine]] = {}
        self._has: dict[str, int] = {}

    def add(self, line: LogLine, lives: Mapping[str, list[int]]) -> None:
        """One more line."""
        name = line.consumer
        if not name:
            return
        if line.event == "started":
            count = self._started[name] = self._started.get(name, 0) + 1
            self._has[name] = 0
            self._waits[name] = lives[name][count - 1], line
            return
        slot = lives[name][max(0, self._started.get(name, 1) - 1)]
        if line.event == "subscribed":
            self._subscribed(slot, line)
            return
        if name in self._waits or name not in self._started:
            self._started.setdefault(name, 1)
            self._begin(slot, self._waits.pop(name, (slot, line))[1], line.at)
        kind = line.event
        if kind == "closed" and (line.detail == "killed" or line.detail.startswith("ended with")):
            kind = "killed"
        if kind not in ALWAYS_LOGGED and kind not in OPTIONAL:
            return
        parts = None
        if not line.partitions and kind in self.slots[slot].client.calls_before_first_join:
            return
        if kind in CALLBACKS:
            parts = Parts(sum(1 << self.numbers[one] for one in dict.fromkeys(line.partitions or ())))
        generation = line.generation if kind in ("joined", "synced", "assigned") else None
        self._put(line, Observed(at=line.at, who=slot, kind=kind, parts=parts, generation=generation))

    def _put(self, line: LogLine, event: Observed) -> None:
        self.lines.append(line)
        self.events.append(event)

    def _begin(self, slot: int, line: LogLine, at: float, topics: int | None = None) -> None:
        choice = "" if topics is None else f"topics {topics}"
        self._put(line, Observed(at, slot, "started", choice=choice))

    def _subscribed(self, slot: int, line: LogLine) -> None:
        topics = sum(1 << self.topics[topic] for topic in dict.fromkeys(line.topics or ()))
        before = self._has.get(line.consumer, 0)
        self._has[line.consumer] = topics
        if topics and topics not in self.subscriptions.setdefault(slot, []):
            self.subscriptions[slot].append(topics)
        waits = self._waits.pop(line.consumer, None)
        if waits or line.consumer not in self._started:
            self._started.setdefault(line.consumer, 1)
            self._begin(slot, waits[1] if waits else line, line.at, topics or None)
        elif topics and (topics != before or self.slots[slot].client.subscribes_again):
            self._put(line, Observed(line.at, slot, "subscribed", choice=f"topics {topics}"))
        elif topics:
            self.again.append(slot)
        elif before:
            self._put(line, Observed(line.at, slot, "unsubscribed"))


def capabilities_of(slots: Sequence[ConsumerSlot], events: Sequence[Observed]) -> dict[int, LogCapabilities]:
    """Return what each client tells, as this log shows: one that tells a kind once tells it always."""
    kinds: dict[str, set[str]] = {}
    empty: dict[str, set[str]] = {}
    for event in events:
        profile = slots[event.who].profile
        kinds.setdefault(profile, set()).add(event.kind)
        if event.kind in CALLBACKS and not event.parts:
            empty.setdefault(profile, set()).add(event.kind)
    return {
        number: LogCapabilities(
            ALWAYS_LOGGED | kinds.get(slot.profile, set()).intersection(OPTIONAL),
            frozenset(empty.get(slot.profile, ())),
            slot.client.logs_join_once,
        )
        for number, slot in enumerate(slots)
    }


def left_in_time(lines: Sequence[LogLine]) -> list[LogLine]:
    """Return the lines with ``closed`` at the time of the LeaveGroup before it: closing may take seconds
    more."""
    leaving: dict[str, float] = {}
    made = []
    for line in lines:
        if line.event == "leaving":
            leaving[line.consumer] = line.at
        elif line.event == "closed" and line.consumer in leaving:
            line = replace(line, at=leaving.pop(line.consumer))
        elif line.event != "reset":
            leaving.pop(line.consumer, None)
        made.append(line)
    return made
