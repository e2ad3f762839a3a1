"""A scenario of tasks: processes of a Streams application, their disks, and what happens to them, as data.

As ``scenarios`` is for partitions: it is what is generated, minimised, saved in a trace and replayed. What
runs where after the first rebalance follows from the target's answers (``gate.scenarios.task_player``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, NamedTuple

from rebalance_verifier.base.saved import TraceError
from rebalance_verifier.model import codec
from rebalance_verifier.model.tasks import Subtopology, TaskConfigs, TaskId, Tasks
from rebalance_verifier.model.values import OF_TASKS, RebalanceProtocol
from rebalance_verifier.properties.assignors.scenarios import MAX_PARTITIONS


class Copy(NamedTuple):
    """Copy on a disk of the store of a task, and how far it is behind."""

    task: TaskId
    lag: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioClient:
    """A process, or a member of one, as it arrives. ``started``: just now, so that nothing runs there and
    nobody assigned it the copies on its disk."""

    id: str
    process: str = ""
    threads: int = 1
    active: Tasks = ()
    copies: tuple[Copy, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    rack: str | None = None
    started: bool = False

    @property
    def process_id(self) -> str:
        """Return its process: it is one of its own unless it says another."""
        return self.process or self.id


class TaskEventKind(StrEnum):
    """Kind of an event before a rebalance."""

    JOIN = "join"
    LEAVE = "leave"
    RESTART = "restart"  # with its disk
    WIPED = "restart-without-disk"
    GROW = "grow"  # a subtopology reads more partitions
    THREADS = "threads"  # a process goes on with so many
    FALL_BEHIND = "fall-behind"  # the copies of a process, by so many records
    UNKNOWN_ENDS = "unknown-ends"  # end offsets cannot be fetched in this rebalance


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskEvent:
    """One event, about the client or subtopology ``id``; ``client`` is the one that joins."""

    kind: TaskEventKind
    id: str = ""
    number: int = 0
    client: ScenarioClient | None = None


TaskRound = tuple[TaskEvent, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskScenario:
    """``clients`` are there in the first rebalance; each round is one, with its events before it. After the
    last the application is left alone, and each copy that is made is caught up after ``slow`` rebalances."""

    protocol: RebalanceProtocol
    configs: TaskConfigs = TaskConfigs()  # noqa: RUF009 (it is a value)
    subtopologies: tuple[Subtopology, ...]
    clients: tuple[ScenarioClient, ...]
    rounds: tuple[TaskRound, ...] = ((),)
    slow: int = 1
    dimensions: tuple[str, ...] = field(default=(), compare=False)

    @property
    def size(self) -> tuple[int, int, int, int]:
        """Return clients, tasks, what they arrive with, events: smaller is simpler, in this order."""
        everyone = everyone_in(self)
        grown = sum(e.number for r in self.rounds for e in r if e.kind is TaskEventKind.GROW)
        return (
            len(everyone),
            sum(len(one.racks) for one in self.subtopologies) + grown,
            sum(len(c.active) + len(c.copies) for c in everyone),
            len(self.rounds) + sum(map(len, self.rounds)),
        )

    @property
    def nouns(self) -> tuple[str, str, str, str]:
        """Return what ``size`` counts."""
        return _NOUNS[self.protocol]


_NOUNS = {
    RebalanceProtocol.TASKS: ("process", "task", "held task", "event"),
    RebalanceProtocol.STREAMS: ("member", "task", "held task", "event"),
}


def everyone_in(scenario: TaskScenario) -> list[ScenarioClient]:
    """Return its clients, and those that join later."""
    joined = (e.client for events in scenario.rounds for e in events if e.client is not None)
    return [*scenario.clients, *joined]


def each_client(
    scenario: TaskScenario,
    clients: Mapping[str, ScenarioClient],
    *,
    names: Mapping[str, str] | None = None,
    subtopologies: Mapping[str, str] | None = None,
) -> TaskScenario:
    """Return the scenario with these clients in place of those with these ids; events about a client of
    ``names``, or one of ``subtopologies``, are about the one that it is called now."""

    def event(one: TaskEvent) -> TaskEvent:
        joins = one.client and clients.get(one.client.id, one.client)
        called = (subtopologies if one.kind is TaskEventKind.GROW else names) or {}
        return replace(one, client=joins, id=called.get(one.id, one.id))

    return replace(
        scenario,
        clients=tuple(clients.get(client.id, client) for client in scenario.clients),
        rounds=tuple(tuple(map(event, events_of)) for events_of in scenario.rounds),
    )


def renamed_clients(scenario: TaskScenario, names: Mapping[str, str]) -> TaskScenario:
    """Return the scenario with other names of clients and their processes, old to new."""
    clients = {
        client.id: replace(
            client,
            id=names.get(client.id, client.id),
            process=client.process and names.get(client.process, client.process),
        )
        for client in everyone_in(scenario)
    }
    return each_client(scenario, clients, names=names)


def to_json(scenario: TaskScenario) -> dict[str, Any]:
    """Return readable, hand-editable JSON."""
    of_clients = ("process", "threads", "active", "copies", "tags", "rack", "started")
    left_out = (*of_clients, "id", "number", "client", "topic")
    found: dict[str, Any] = codec.to_json(scenario, left_out=left_out)
    return found


def from_json(data: Mapping[str, Any]) -> TaskScenario:
    """Return the scenario that ``to_json`` wrote. Raises ``ValueError`` naming the field that is wrong."""
    try:
        scenario = codec.from_json(TaskScenario, dict(data), readers={TaskId: TaskId.parse})
    except TraceError as error:
        raise ValueError(f"scenario: {error}") from error
    if scenario.protocol not in OF_TASKS:
        raise ValueError(f"scenario: {scenario.protocol} has no tasks")
    ids = [client.id for client in scenario.clients]
    if len(set(ids)) < len(ids):
        raise ValueError(f"scenario: ids of clients are not unique: {', '.join(ids)}")
    for client in everyone_in(scenario):
        if client.threads < 1:
            raise ValueError(f"scenario: {client.id} has {client.threads} threads")
    for one in (scenario.configs.standbys, scenario.configs.warmups, scenario.slow):
        if not 0 <= one <= MAX_PARTITIONS:
            raise ValueError(f"scenario: {one} is no number of copies or rebalances")
    grown = [e.number for r in scenario.rounds for e in r if e.kind is TaskEventKind.GROW]
    if any(number < 0 for number in grown) or scenario.size[1] > MAX_PARTITIONS:
        raise ValueError(f"scenario: no more than {MAX_PARTITIONS:,} tasks")
    return scenario
