"""An event log as a question to the model: consumers, topics and partitions by number, and the setup.

Reads the JSON lines of ``pipeline/audit/sources/events.py`` without Spark, and beside them, where
`rebalance record` wrote it, ``run.json``: the kind of cluster, the assignors of each stage, what was
done to whom.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from math import inf
from pathlib import Path
from typing import Any

from rebalance.explore.groups.scenarios import runs
from rebalance.live.conformance import deviations
from rebalance.live.conformance.search import (
    AGAINST,
    ALWAYS_LOGGED,
    CALLBACKS,
    OPTIONAL,
    Conformance,
    LogCapabilities,
    Observed,
    Spans,
    UnloggedAction,
    conforms,
)
from rebalance.model.assignors import NAMES
from rebalance.model.bugs.profiles import AS_SPECIFIED, broker, client
from rebalance.model.machine import NOBODY, Action, Machine, Outcome, Value
from rebalance.model.protocol.coordinator import join_phase_ends
from rebalance.model.protocol.group import machine
from rebalance.model.protocol.setup import Consumer, ConsumerConfig, Setup
from rebalance.model.protocol.state import Error, Group, Parts, Refused, SyncOk, Topics

MOCK = "mock"
"""The broker profile of librdkafka's mock cluster, which is not in the catalogue."""

ENDS_UNHEARD = "join phase ends unheard"
"""What only the mock cluster does: a generation of which nobody is told."""

SAYS_ONCE = frozenset({"aiokafka"})
"""Clients that log that they join once for a JoinGroup that is sent several times."""

LOSES: Mapping[str, tuple[str, ...]] = {"kafka-python": ("sync lost", "disconnect")}
"""What a client loses by itself. In kafka-python 3.0.12 a join that was answered between two polls is thrown
away, and the next poll begins another one (coordinator/base.py, where ``_join_task.is_done`` is asked)."""

AIOKAFKA = deviations.AIOKAFKA
"""The client profile of aiokafka, which is not in the catalogue: EAGER, no claims, no
onPartitionsLost, and no callback when it leaves."""

CLIENTS: Mapping[str, str] = {
    "confluent-kafka": "librdkafka",
    "kafka-python": "kafka-python",
    "aiokafka": AIOKAFKA,
    "kafka-clients": "java-current",
}
"""First word of what a recorded consumer says it is -> its profile; Java's follows from its version."""

HIDDEN = ("disconnect", "slow network", "late request", "slow commit", "session timeout", "slow member")
"""Kinds of faults that nobody writes down, for ``budget``."""

SAYS_NOTHING: Mapping[str, frozenset[str]] = {
    "aiokafka": frozenset({"revoked"}),
    "kafka-python": frozenset({"revoked"}),
}
"""Clients whose EAGER members call back with no partitions before their first join too, where Java does not:
such calls are left out."""

MOCK_DECISIONS = frozenset({"ghost_on_retry", "rebalance_timeout_zero", "no_pending_sync_expiry"})
"""The mock cluster knows no KIP-394, ends a join phase by its own short timer, and expels nobody for not
syncing (rdkafka_mock_cgrp.c)."""

SHARES = (0.2, 0.2, 0.7, 1.0)
"""Of the time that is left, what each stage of a search may take."""

NARROW = 0.1
"""Events further apart than this are nearly always in order, so this is asked first; in seconds."""

MAX_CONSUMERS, MAX_PARTITIONS = 26, 64


class LogError(ValueError):
    """A log that is not what this can read; the text says where and why."""


@dataclass(frozen=True, kw_only=True)
class LogLine:
    """One event of the log. ``at`` is in seconds since 1970, ``number`` its line, from 1."""

    number: int
    at: float
    event: str
    consumer: str = ""
    partitions: tuple[str, ...] | None = None
    topics: tuple[str, ...] | None = None
    generation: int | None = None
    member: str = ""
    detail: str = ""

    def __str__(self) -> str:
        names = self.partitions if self.partitions is not None else self.topics
        parts = [self.consumer, self.event]
        parts += [" ".join(names) or "-"] if names is not None else []
        parts += [f"generation {self.generation}"] if self.generation is not None else []
        parts += [f"({self.detail})"] if self.detail else []
        return " ".join(filter(None, parts))


@dataclass(frozen=True)
class RecordedLog:
    """A log: the lines of one group in the order of time, and what ``run.json`` says, if there is one."""

    path: Path
    group: str
    lines: tuple[LogLine, ...]
    run: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Choices:
    """What the caller says. Names of consumers are patterns; the last that fits counts.

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


@dataclass(frozen=True)
class ConsumerSlot:
    """One consumer of the model: a name of the log, started with one list of assignors."""

    consumer: str
    profile: str
    assignors: tuple[str, ...]

    @property
    def client(self) -> str:
        """Whose deviations it has."""
        return deviations.client_of(self.profile)


@dataclass(frozen=True, kw_only=True)
class ConformanceQuestion:
    """What the model is asked. ``lines[i]`` is the line of ``events[i]``."""

    recorded: RecordedLog
    slots: tuple[ConsumerSlot, ...]
    broker: str
    topics: tuple[tuple[str, int], ...]
    setup: Setup
    events: tuple[Observed, ...]
    lines: tuple[LogLine, ...]
    capabilities: Mapping[int, LogCapabilities]
    unlogged_actions: tuple[UnloggedAction, ...]
    when: Mapping[UnloggedAction, Spans]
    build: _Built

    def name(self, slot: int) -> str:
        """The consumer in a slot."""
        return "" if slot == NOBODY else self.slots[slot].consumer


@dataclass(frozen=True)
class ConformanceAnswer:
    """``faults`` is how many hidden faults the explanation takes."""

    question: ConformanceQuestion
    conformance: Conformance
    faults: int

    @property
    def findings(self) -> dict[str, int]:
        """Ids of deviations that are findings, and clauses that leaders broke -> how often each was taken."""
        taken: dict[str, int] = {}
        for step in self.conformance.witness:
            if step.event is None:
                continue
            deviation = deviations.BY_ID.get(step.event.action)
            _, against, clause = step.event.choice.partition(AGAINST)
            name = clause if against else deviation.id if deviation and not deviation.benign else ""
            if name:
                taken[name] = taken.get(name, 0) + 1
        return taken


# -- the log -------------------------------------------------------------------------------------------


def read(path: Path, group: str | None = None) -> RecordedLog:
    """The events of ``group`` (the only one, if None) in a file, or in DIR/events.jsonl.

    Raises LogError for what is no event log, OSError.
    """
    file = path / "events.jsonl" if path.is_dir() else path
    found: dict[str, list[LogLine]] = {}
    with file.open(encoding="utf-8", errors="replace") as lines:
        for number, text in enumerate(lines, 1):
            if text.strip():
                name, line = _line(text, f"{file}:{number}", number)
                found.setdefault(name, []).append(line)
    if not found:
        raise LogError(f"{file}: no events")
    if group is None and len(found) > 1:
        raise LogError(f"{file}: several groups: {', '.join(sorted(found))}; choose one with --group")
    name = group if group is not None else next(iter(found))
    if name not in found:
        raise LogError(f"{file}: no group {name!r}; there are: {', '.join(sorted(found))}")
    beside = file.parent / "run.json"
    run = _run(beside) if beside.exists() else {}
    return RecordedLog(file, name, tuple(sorted(found[name], key=lambda line: line.at)), run)


def _run(path: Path) -> dict[str, Any]:
    try:
        run = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise LogError(f"{path}: not JSON: {error}") from error
    if not isinstance(run, dict):
        raise LogError(f"{path}: not an object")
    for name in ("steps", "rests"):
        value = run.get(name, [])
        if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
            raise LogError(f"{path}: field {name!r} is not a list of objects")
    return run


def _line(text: str, where: str, number: int) -> tuple[str, LogLine]:
    try:
        data = json.loads(text)
    except ValueError as error:
        raise LogError(f"{where}: not JSON: {error}") from error
    if not isinstance(data, dict):
        raise LogError(f"{where}: not an object")
    for name, kind in (("event", str), ("group", str)):
        if not isinstance(data.get(name), kind):
            raise LogError(f"{where}: field {name!r} is {json.dumps(data.get(name))}, expected a string")
    generation = data.get("generation")
    if generation is not None and (isinstance(generation, bool) or not isinstance(generation, int)):
        raise LogError(f"{where}: field 'generation' is {json.dumps(generation)}, expected a whole number")
    line = LogLine(
        number=number,
        at=_seconds(data.get("at"), where),
        event=data["event"],
        consumer=str(data.get("consumer") or ""),
        partitions=_names(data, "partitions", where),
        topics=_names(data, "topics", where),
        generation=generation,
        member=str(data.get("member") or ""),
        detail=str(data.get("detail") or ""),
    )
    return data["group"], line


def _seconds(value: Any, where: str) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    try:
        at = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        shown = json.dumps(value)
        raise LogError(f"{where}: field 'at' is {shown}, expected ISO 8601 or seconds since 1970") from None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


def _names(data: Mapping[str, Any], name: str, where: str) -> tuple[str, ...] | None:
    value = data.get(name)
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise LogError(f"{where}: field {name!r} is {json.dumps(value)[:60]}, expected a list of strings")
    return tuple(value)


# -- what the model is asked ---------------------------------------------------------------------------


def build_question(recorded: RecordedLog, choices: Choices) -> ConformanceQuestion:
    """The setup and the events by number.

    Raises LogError for what the log lacks, ValueError for a profile or an assignor that does not exist.
    """
    topics = _topics(recorded, choices)
    numbers = _numbers(topics)
    lives = _lives(recorded, choices)
    slots = tuple(dict.fromkeys(slot for several in lives.values() for slot in several))
    if not slots:
        raise LogError(f"{recorded.path}: no event of group {recorded.group} is of a consumer")
    if len(slots) > MAX_CONSUMERS or sum(count for _, count in topics) > MAX_PARTITIONS:
        raise LogError(
            f"{recorded.path}: {len(slots)} consumers and {sum(count for _, count in topics)} partitions; "
            f"at most {MAX_CONSUMERS} and {MAX_PARTITIONS} can be asked about"
        )
    where = {slot: number for number, slot in enumerate(slots)}
    listed = _Listing(slots, {name: number for number, (name, _) in enumerate(topics)}, numbers)
    owners = {name: [where[slot] for slot in several] for name, several in lives.items()}
    absent = _absences(recorded, owners)
    for line in sorted((*_left(recorded.lines), *absent.lines), key=lambda line: line.at):
        listed.add(line, owners)
    when = {**absent.when, **_between(slots, listed.events)}
    for slot in (number for number, one in enumerate(slots) if one.client in deviations.JOINS_UNPOLLED):
        when.pop(("slow member", slot), None)
    unlogged_actions = [action for action in when if action[0] not in deviations.BY_ID]
    unlogged_actions += [("enforce", slot) for slot in listed.again]
    kind = _broker(recorded, choices)
    if kind != MOCK:
        broker(kind)
    setup = _setup(slots, kind, topics, listed.subscriptions, choices)
    return ConformanceQuestion(
        recorded=recorded,
        slots=slots,
        broker=kind,
        topics=topics,
        setup=setup,
        events=tuple(listed.events),
        lines=tuple(listed.lines),
        capabilities=_capabilities(slots, listed.events),
        unlogged_actions=tuple(
            dict.fromkeys((*unlogged_actions, *_loading(kind, recorded, slots), *_losing(slots)))
        ),
        when=when,
        build=_Built(
            kind == MOCK,
            tuple(slot.client for slot in slots),
            frozenset(action for action in when if action[0] in deviations.BY_ID),
        ),
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


def _numbers(topics: Iterable[tuple[str, int]]) -> dict[str, int]:
    names = [f"{topic}-{number}" for topic, count in topics for number in range(count)]
    return {name: number for number, name in enumerate(names)}


def _lives(recorded: RecordedLog, choices: Choices) -> dict[str, list[ConsumerSlot]]:
    """Each consumer's slot for each time that it was started."""
    stages = recorded.run.get("assignors")
    steps = [step for step in recorded.run.get("steps", ()) if step.get("do") == "start"]
    lives: dict[str, list[ConsumerSlot]] = {}
    for line in recorded.lines:
        if not line.consumer or (line.event != "started" and line.consumer in lives):
            continue
        several = lives.setdefault(line.consumer, [])
        reported = _profile(line.detail)
        profile = _last(choices.profiles, line.consumer) or reported
        release = client(AS_SPECIFIED if profile == AIOKAFKA else profile)
        mine = [step for step in steps if step.get("member") == line.consumer]
        stage = mine[len(several)].get("stage", 0) if len(several) < len(mine) else 0
        assignors = _last(choices.assignors, line.consumer)
        if assignors is None and isinstance(stages, list) and stages:
            assignors = tuple(stages[min(stage, len(stages) - 1)])
        assignors = assignors or release.default_assignors
        for name in assignors:
            if name not in NAMES:
                known = ", ".join(NAMES)
                raise ValueError(f"assignor {name!r} of {line.consumer} is unknown; known: {known}")
        several.append(ConsumerSlot(line.consumer, profile, assignors))
    return lives


def _profile(reported: str) -> str:
    """The profile of a client by what it says that it is."""
    name, _, release = reported.partition(" ")
    if name == "kafka-clients" and re.fullmatch(r"\d+\.\d+\.\d+", release):
        return f"java-{release}"
    return CLIENTS.get(name, AS_SPECIFIED)


def _last(given: Sequence[tuple[str, Any]], name: str) -> Any:
    return next((value for pattern, value in reversed(given) if fnmatchcase(name, pattern)), None)


def _broker(recorded: RecordedLog, choices: Choices) -> str:
    if choices.broker is not None:
        return choices.broker
    cluster = recorded.run.get("cluster")
    kind = cluster.get("kind") if isinstance(cluster, dict) else None
    return {MOCK: MOCK, "kafka": "broker-current"}.get(str(kind), AS_SPECIFIED)


class _Listing:
    """The lines as events. A consumer is in its next slot when it is started again."""

    def __init__(
        self, slots: Sequence[ConsumerSlot], topics: Mapping[str, int], numbers: Mapping[str, int]
    ) -> None:
        self.slots, self.topics, self.numbers = slots, topics, numbers
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
        if not line.partitions and kind in SAYS_NOTHING.get(self.slots[slot].profile, ()):
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
        elif topics and (topics != before or self.slots[slot].client in deviations.SUBSCRIBES_AGAIN):
            self._put(line, Observed(line.at, slot, "subscribed", choice=f"topics {topics}"))
        elif topics:
            self.again.append(slot)
        elif before:
            self._put(line, Observed(line.at, slot, "unsubscribed"))


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
                (_runs(slot, more),),
                tuple(Topics(some) for some in subscriptions.get(number, ())) or (everything,),
            )
            for number, slot in enumerate(slots)
        ),
        topics=tuple(sets),
        exist=Parts((1 << at) - 1),
        coordinator=decisions,
        steps=choices.steps,
    )


def _runs(slot: ConsumerSlot, more: tuple[str, ...]) -> ConsumerConfig:
    if slot.profile == AIOKAFKA:
        decisions = ("lost_as_revoked", "clear_before_leave_prepare", *more)
        return replace(runs(AS_SPECIFIED, slot.assignors, decisions), version=0)
    return runs(slot.profile, slot.assignors, more)


def _capabilities(slots: Sequence[ConsumerSlot], events: Sequence[Observed]) -> dict[int, LogCapabilities]:
    """What each client tells, as this log shows: one that tells a kind once tells it always."""
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
            slot.profile in SAYS_ONCE,
        )
        for number, slot in enumerate(slots)
    }


def _left(lines: Sequence[LogLine]) -> list[LogLine]:
    """The lines with ``closed`` at the time of the LeaveGroup before it: closing may take seconds more."""
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


@dataclass
class _Absences:
    """What the driver did to consumers without a line in the log.

    ``lines``: stops and continuations where ``run.json`` tells when; ``when``: what may happen unseen, and
    in which times.
    """

    lines: list[LogLine] = field(default_factory=list)
    when: dict[UnloggedAction, Spans] = field(default_factory=dict)

    def may(self, actions: Iterable[str], slot: int, span: tuple[float, float]) -> None:
        """Each of ``actions`` may happen to ``slot`` in ``span``; what it does about it, some time after."""
        for action in actions:
            until = span[1] + AFTERWARDS if action in deviations.BY_ID else span[1]
            self.when[action, slot] = (*self.when.get((action, slot), ()), (span[0], until))


def _absences(recorded: RecordedLog, owners: Mapping[str, Sequence[int]]) -> _Absences:
    """Stops, continuations, and times without polls.

    A step that follows a rest happens right after it. Of another one it is known before and after which
    events it came, and it may have happened at any time between.
    """
    made = _Absences()
    logged = {line.event for line in recorded.lines}
    lives: dict[str, int] = {}
    began: dict[tuple[str, int], float] = {}
    stops: list[tuple[int, LogLine]] = []
    untimed: set[int] = set()
    steps = recorded.run.get("steps", ())
    for number, (step, (earliest, latest)) in enumerate(zip(steps, _times(recorded), strict=True), 1):
        name, does = str(step.get("member", "")), str(step.get("do"))
        if name not in owners:
            continue
        lives[name] = lives.get(name, 0) + (does == "start")
        slot = owners[name][min(max(0, lives[name] - 1), len(owners[name]) - 1)]
        if does in _UNSEEN:
            began[does, slot] = earliest
        for what in _ENDS.get(does, ()):
            if (what, slot) in began:
                made.may(_UNSEEN[what], slot, (began.pop((what, slot)), latest))
        if does not in ("stop", "cont") or "paused" in logged:
            continue
        if earliest < latest:
            untimed.add(slot)
            made.may(("pause", "resume"), slot, (earliest, latest))
        else:
            kind = "paused" if does == "stop" else "resumed"
            stops.append(
                (
                    slot,
                    LogLine(
                        number=0, at=earliest, event=kind, consumer=name, detail=f"step {number} of run.json"
                    ),
                )
            )
    for (what, slot), start in began.items():
        made.may(_UNSEEN[what], slot, (start, inf))
    for slot, line in stops:
        if slot in untimed:
            made.may(("pause", "resume"), slot, (line.at, line.at))
        else:
            made.lines.append(line)
    return made


def _between(slots: Sequence[ConsumerSlot], events: Sequence[Observed]) -> dict[UnloggedAction, Spans]:
    """When consumers were killed right after a callback, and when they may notice a subscription."""
    spans: dict[UnloggedAction, Spans] = {}
    last: dict[int, Observed] = {}
    for event in events:
        before = last.get(event.who)
        if event.kind == "killed" and before is not None:
            name = "is killed before it joins" if before.kind in CALLBACKS else deviations.UNHEARD
            spans[name, event.who] = (*spans.get((name, event.who), ()), (before.at, event.at))
        if event.kind == "subscribed" and slots[event.who].profile == AIOKAFKA:
            name = "takes its subscription"
            spans[name, event.who] = (*spans.get((name, event.who), ()), (event.at, event.at + NOTICED))
        last[event.who] = event
    return spans


AFTERWARDS = 5.0
"""Seconds after a consumer goes on in which it may act as if it had not been away."""

NOTICED = 0.05
"""Seconds after which aiokafka has noticed ``subscribe()``."""

_UNSEEN = {
    "pause": ("max poll", "callback late", "slow member", "prepares and waits", "keeps what it left"),
    "stop": ("join late", "sync late", "times out by itself"),
}
"""Step of a run -> what may happen to its member from then on until it goes on."""
_ENDS = {"resume": ("pause",), "cont": ("stop",), "close": ("pause", "stop"), "kill": ("pause", "stop")}


def _times(recorded: RecordedLog) -> list[tuple[float, float]]:
    """For each step of ``run.json`` when it was done: at the earliest, at the latest; equal after a rest."""
    steps = list(recorded.run.get("steps", ()))
    rests = {rest.get("number"): rest.get("at") for rest in recorded.run.get("rests", ())}
    shown = {
        "start": ("started",),
        "close": ("leaving", "closed"),
        "kill": ("closed",),
        "subscribe": ("subscribed",),
    }
    known: list[float | None] = []
    left = recorded.lines
    for number, step in enumerate(steps, 1):
        does, who = str(step.get("do")), step.get("member")
        at = None
        if rests.get(number) is not None:
            at = _seconds(rests[number], f"{recorded.path.parent / 'run.json'}")
        for index, line in enumerate(left if does in shown else ()):
            if line.consumer == who and line.event in shown[does]:
                at, left = line.at, left[index + 1 :]
                break
        known.append(at)
    times = []
    for number in range(len(steps)):
        before = next((at for at in reversed(known[:number]) if at is not None), -inf)
        after = next((at for at in known[number:] if at is not None), inf)
        rested = number > 0 and rests.get(number) is not None
        times.append((before, before) if rested else (before, after))
    return times


def _loading(kind: str, recorded: RecordedLog, slots: Sequence[ConsumerSlot]) -> list[UnloggedAction]:
    """A JoinGroup may be refused by a coordinator that is loading, if the log shows that it is sent again."""
    shown = {line.consumer for line in recorded.lines if line.event == "joining"}
    return [
        ("join lost", number) for number, slot in enumerate(slots) if kind != MOCK and slot.consumer in shown
    ]


def _losing(slots: Sequence[ConsumerSlot]) -> list[UnloggedAction]:
    return [(name, number) for number, slot in enumerate(slots) for name in LOSES.get(slot.profile, ())]


@dataclass(frozen=True)
class _Built:
    """Makes the machine of a question: the coordinator's, with the deviations of ``clients`` by slot."""

    mocked: bool
    clients: tuple[str, ...]
    timed: frozenset[UnloggedAction]
    findings: bool = False

    def __call__(self, setup: Setup) -> Machine:
        built = mock(setup, self.findings) if self.mocked else machine(setup)
        losing = [slot for slot, client in enumerate(self.clients) if client in LOSES]
        actions = tuple(
            action._replace(run=_only_synced(action))
            if action.name == "disconnect" and action.who in losing
            else action
            for action in built.actions
        )
        built = replace(built, actions=actions)
        return deviations.with_deviations(
            built, setup, self.clients, timed=self.timed, findings=self.findings
        )


def _only_synced(action: Action) -> Callable[..., Iterable[Outcome]]:
    def run(budget: int, member: Value, wire: Value) -> Iterable[Outcome]:
        return action.run(budget, member, wire) if isinstance(wire, SyncOk) else ()

    return run


def mock(setup: Setup, findings: bool = True) -> Machine:
    """The group on librdkafka's mock cluster (rdkafka_mock_cgrp.c).

    Who misses a join phase stays a member, with its old claims. That is what the model does for static
    members, so the phase ends as if all were. The leader is the first in a list, whoever led before; here
    anyone. A SyncGroup that comes after the leader's is refused. A join phase in which nobody came ends by
    its timer too (rd_kafka_mock_cgrp_classic_fsm_timeout): a generation of which no member is told; with
    ``findings`` only.
    """
    built = machine(setup)
    static = replace(
        setup,
        consumers=tuple(replace(consumer, instance=n) for n, consumer in enumerate(setup.consumers)),
        coordinator=setup.coordinator | {"silent_static_claims_stale"},
    )

    def ends(group: Group, *rest: Any) -> Iterator[Outcome]:
        return join_phase_ends(static, group._replace(leader=None), *rest)

    def ends_unheard(group: Group, *rest: Any) -> Iterator[Outcome]:
        records = rest[: len(setup.slots)]
        inside = [
            (slot, n) for slot in setup.slots for n, r in enumerate(records[slot]) if r.meta is not None
        ]
        if inside and not any(record.joined for several in records for record in several):
            slot, n = inside[0]  # whoever leads cannot know it
            several = records[slot]
            came = (*several[:n], several[n]._replace(joined=True), *several[n + 1 :])
            yield from ends(group, *rest[:slot], came, *rest[slot + 1 :])

    changed: dict[str, Callable[[Action], Callable[..., Iterator[Outcome]]]] = {
        "join phase ends": lambda _: ends
    }
    changed |= dict.fromkeys(("receive join", "sync request"), _refusing)
    actions = tuple(
        action._replace(run=changed[action.name](action), when=()) if action.name in changed else action
        for action in built.actions
        if action.name != "rebalance timeout"
    )
    unheard = [
        action._replace(name=ENDS_UNHEARD, run=ends_unheard)
        for action in actions
        if action.name == "join phase ends"
    ]
    return replace(built, actions=(*actions, *(unheard if findings else ())))


def _refusing(action: Action) -> Callable[..., Iterator[Outcome]]:
    """``action`` where a SyncGroup that is not parked is refused."""

    def run(*values: Any) -> Iterator[Outcome]:
        for outcome in action.run(*values):
            yield outcome._replace(values=tuple([_refused(value) for value in outcome.values]))

    return run


def _refused(value: Value) -> Value:
    if isinstance(value, SyncOk):
        return Refused("sync", Error.REBALANCE_IN_PROGRESS, value.id, value.generation)
    return value


def ask(
    question: ConformanceQuestion, choices: Choices, progress: Callable[[int, int, int], None] | None = None
) -> ConformanceAnswer:
    """Search in stages: the narrowest window first, then all of it; then with what is found about clients.

    With no hidden fault, then with one, and so on to as many as may be. What explains the log is taken; a
    mismatch is one of the last stage.
    """
    clients = question.build.clients
    lenient = [slot for slot, client in enumerate(clients) if client in deviations.LENIENT]
    several = lenient or any(
        deviation.client == client and not deviation.benign
        for deviation in deviations.DEVIATIONS
        for client in clients
    )
    ends = None if choices.seconds is None else time.process_time() + choices.seconds
    for faults in range(choices.faults + 1):
        stages = [(min(NARROW, choices.window), False), (choices.window, False)]
        stages += (
            [(min(NARROW, choices.window), True), (choices.window, True)]
            if several or question.build.mocked
            else []
        )
        stages = list(dict.fromkeys(stages))
        for number, (window, findings) in enumerate(stages, len(SHARES) - len(stages)):
            share = SHARES[number if several else max(2, number)]
            left = None if ends is None else (ends - time.process_time()) * share
            found = conforms(
                question.setup,
                question.events,
                capabilities=question.capabilities,
                faults=HIDDEN,
                budget=faults,
                unlogged_actions=question.unlogged_actions,
                when=question.when,
                silent={
                    deviation.id: deviation.silent for deviation in deviations.DEVIATIONS if deviation.silent
                },
                observed_assignments=choices.assignor == "observed",
                build=replace(question.build, findings=findings),
                lenient=lenient if findings else (),
                penalised=(*deviations.BY_ID, ENDS_UNHEARD),
                unlogged=(ENDS_UNHEARD,),
                window=window,
                limit=choices.limit,
                seconds=left,
                progress=progress,
            )
            if found.verdict == "explained":
                return ConformanceAnswer(question, found, faults)
    return ConformanceAnswer(question, found, faults)


__all__ = [
    "MOCK", "Choices", "ConformanceAnswer", "ConformanceQuestion", "LogError", "ask", "build_question",
    "read",
]  # fmt: skip
