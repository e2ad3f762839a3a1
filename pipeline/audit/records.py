"""What an audit finds, as plain records: a finding, whom it is about, and the events of the log around it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from rebalance_verifier.model.steps import StepView

LEVELS = ("safety", "liveness", "quality")
"""The gravest first."""

COORDINATOR = "coordinator"

KINDS = {
    "started": "starts",
    "subscribed": "subscribes",
    "joining": "sends JoinGroup",
    "joined": "joined",
    "planned": "as leader assigns",
    "synced": "synced",
    "assigned": "assigned",
    "revoked": "revoked",
    "lost": "lost",
    "reset": "learns that its membership is over",
    "rebalancing": "learns that its group rebalances",
    "changed": "finds other partitions in its topics",
    "unwanted": "is assigned what it does not subscribe to:",
    "leaving": "leaves",
    "closed": "ends",
    "preparing": "begins a rebalance",
    "stable": "begins generation",
    "removed": "removes a member",
    "granted": "lets a member own",
    "empty": "has no members left",
}
"""Kind of an event -> what it means."""


NUMBERED = ("joined", "planned", "synced", "stable", "granted")
"""Kinds that are told with the generation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEvent:
    """One event of a log: a row of ``pipeline.audit.sources.schema.EVENTS``, or a place of a finding."""

    at: datetime
    kind: str
    file: str
    line: int
    consumer: str | None = None
    member: str | None = None
    generation: int | None = None
    topic: str | None = None
    partition: int | None = None
    detail: str | None = None
    host: str | None = None

    @property
    def where(self) -> str:
        """``FILE:LINE``."""
        return f"{self.file}:{self.line}"

    @property
    def who(self) -> str:
        """Return the process that the event happens to."""
        return self.consumer or COORDINATOR


@dataclass(frozen=True, slots=True)
class FindingOwner:
    """A consumer that a finding is about, its member id, and the generation in which it was granted it."""

    consumer: str | None
    member: str | None = None
    generation: int | None = None

    @property
    def name(self) -> str:
        """Return a name for the owner."""
        return self.consumer or self.member or "a consumer"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFinding:
    """A row of ``findings``, which ``pipeline.audit.kernel`` leaves.

    ``seconds`` is how long it lasted, to the end of the log where ``ended`` is None. ``skew``: by how many
    seconds the clocks concerned may differ, None for one clock; ``certain``: that does not explain it.
    """

    id: str
    check: str
    level: str
    group: str
    topic: str | None
    partition: int | None
    began: datetime
    ended: datetime | None
    seconds: float
    owners: tuple[FindingOwner, ...]
    skew: float | None
    certain: bool
    places: tuple[LogEvent, ...]
    sentence: str
    doubt: str = ""
    """Why it is not certain, where that is not for the clocks."""

    @property
    def about(self) -> str:
        """The partition or topic as Kafka writes it; empty for what is about the whole group."""
        return partition_name(self.topic, self.partition)

    @property
    def file_name(self) -> str:
        """Return the file name of its recording: the id where it can be one."""
        if re.fullmatch(r"[0-9a-f]{8,64}", self.id):
            return f"{self.id}.json"
        return f"{hashlib.sha256(self.id.encode(errors='replace')).hexdigest()[:16]}.json"


def partition_name(topic: str | None, partition: int | None) -> str:
    """A partition as Kafka writes it, or a topic; empty for neither."""
    return "" if topic is None else topic if partition is None else f"{topic}-{partition}"


@dataclass(frozen=True)
class LogMoment:
    """Something that happens to one consumer, or at the coordinator; ``others``: partitions besides."""

    event: LogEvent
    others: int = 0

    @property
    def sentence(self) -> str:
        """Return the event as a sentence without its subject."""
        event = self.event
        text = KINDS.get(event.kind, event.kind)
        if event.kind in NUMBERED and event.generation is not None:
            text += f" {event.generation}" if event.kind == "stable" else f", generation {event.generation}"
        if about := partition_name(event.topic, event.partition):
            text += f" {about}" if event.kind != "planned" else f": {about} to {event.member or 'a consumer'}"
        if self.others:
            text += f" and {self.others} more"
        if event.kind in ("removed", "granted") and event.member:
            text += f", {event.member}"
        return f"{text}: {event.detail}" if event.detail else text


@dataclass(frozen=True, kw_only=True)
class Recording:
    """A finding and the events around it, in order of time. ``rule`` and ``source`` are the check's.

    ``origin`` says which logs were audited and how; ``path`` where it was read from.
    """

    finding: LogFinding
    rule: str
    source: str
    events: tuple[LogEvent, ...]
    origin: Mapping[str, Any] = field(default_factory=dict)
    suite_version: str = ""
    path: Path | None = None

    def moments(self) -> list[LogMoment]:
        """Return events in order, those of one log line about several partitions as one."""
        finding = self.finding
        found: dict[object, LogMoment] = {}
        for event in self.events:
            key = (event.at, event.kind, event.consumer, event.file, event.line)
            mine = (event.topic, event.partition) == (finding.topic, finding.partition)
            known = found.get(key)
            if known is None:
                found[key] = LogMoment(event)
            else:
                found[key] = LogMoment(event if mine else known.event, known.others + 1)
        return sorted(found.values(), key=lambda m: (m.event.at, m.event.file, m.event.line))


def generations(moments: Sequence[LogMoment]) -> list[int | None]:
    """The generation of the group after each moment, as far as the log tells."""
    found: list[int | None] = []
    last: int | None = None
    for moment in moments:
        event = moment.event
        if event.generation is not None:
            if event.kind == "stable":
                last = event.generation
            elif event.kind in ("joined", "planned", "synced", "assigned"):
                last = max(last or 0, event.generation)
        found.append(last)
    return found


def holders(
    finding: LogFinding, moments: Sequence[LogMoment], wanted: Sequence[int]
) -> dict[int, dict[str, bool]]:
    """Return the owners of the partition after each of the wanted moments, and whether still as members.

    What no line of the log says is known where the finding is about it: whose grant is the older one, is a
    member no longer from its beginning on.
    """
    gone = _zombies(finding)
    chosen = frozenset(wanted)
    known = {owner.member: owner.consumer for owner in finding.owners if owner.member and owner.consumer}
    holds: dict[str, bool] = {}
    found: dict[int, dict[str, bool]] = {}
    for at, moment in enumerate(moments):
        event, who = moment.event, moment.event.who
        if event.member and event.consumer:
            known[event.member] = event.consumer
        mine = finding.partition is not None and (event.topic, event.partition) == (
            finding.topic,
            finding.partition,
        )
        match event.kind:
            case "assigned" if mine:
                holds[who] = True
            case "revoked" | "lost" if mine:
                holds.pop(who, None)
            case "started" | "closed":
                holds.pop(who, None)
            case "reset" if who in holds:
                holds[who] = False
            case "removed" if known.get(event.member or "") in holds:
                holds[str(known[event.member or ""])] = False
            case _:
                pass
        if at in chosen:
            over = gone if event.at >= finding.began else frozenset()
            found[at] = {name: inside and name not in over for name, inside in holds.items()}
    return found


def _zombies(finding: LogFinding) -> frozenset[str]:
    """The owners of whom the finding says that they are members no longer."""
    newest = max((owner.generation or 0 for owner in finding.owners), default=0)
    if finding.check != "owned-by-zombie":
        return frozenset()
    return frozenset(o.consumer for o in finding.owners if o.consumer and (o.generation or 0) < newest)


MAX_FOLLOWED = 24
"""Consumers whose state is told at each moment that is stepped through."""


def recording_views(recording: Recording) -> Iterator[StepView]:
    """The moments of a recording, for who steps through them: generations of the group and of each consumer,
    and who owns the partition of the finding, as far as the log tells."""
    finding, moments = recording.finding, recording.moments()
    numbers, own = generations(moments), dict[str, int]()
    states = holders(finding, moments, range(len(moments)))
    everybody = dict.fromkeys(
        [*(o.consumer for o in finding.owners if o.consumer), *(m.event.who for m in moments)]
    )
    names = [name for name in everybody if name != COORDINATOR][:MAX_FOLLOWED]
    yield StepView(label="0", what="before the first event that is kept")
    for at, moment in enumerate(moments):
        event = moment.event
        if event.generation is not None:
            own[event.who] = event.generation
        yield StepView(
            label=f"{at + 1}",
            what=f"{event.at:%Y-%m-%d %H:%M:%S.%f}"[:23] + f" {event.who} {moment.sentence}",
            seen=(event.where,),
            fault=event.kind in ("removed", "reset", "lost"),
            parties=(
                (COORDINATOR, "no generation yet" if numbers[at] is None else f"generation {numbers[at]}"),
                *((name, _state(finding, own.get(name), states[at].get(name))) for name in names),
            ),
        )


def _state(finding: LogFinding, generation: int | None, holds: bool | None) -> str:
    since = "no generation seen" if generation is None else f"generation {generation}"
    if holds is None:
        return f"{since}, without {finding.about}" if finding.about else since
    return f"{since}, owns {finding.about}" + ("" if holds else ", no longer a member")
