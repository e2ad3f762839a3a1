"""The values that cross a task assignor of Kafka Streams: tasks, processes, their copies of stores, answers.

One model for two interfaces. A client decides for processes (KIP-924, ``TaskAssignor`` of kafka-streams); the
coordinator of a streams group decides for members, several of which may be threads of one process (KIP-1357).
What a decision is made for is a ``TaskClient`` in both. Names follow
``org.apache.kafka.streams.processor.assignment``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import Protocol

from rebalance_verifier.base.lazy import lazy
from rebalance_verifier.model.assignor import Promise
from rebalance_verifier.model.values import Racks, RebalanceProtocol, TopicPartition

RUNNING_LAG = -2
"""Lag of a task where it runs (``Task.LATEST_OFFSET``)."""

UNKNOWN_LAG = -3
"""Lag of what does not run while end offsets cannot be fetched (``SubscriptionInfo.UNKNOWN_OFFSET_SUM``)."""


class TaskId(TopicPartition):
    """One task: a subtopology (as ``topic``) and a partition; prints as Kafka prints it, ``0_1``."""

    __slots__ = ()

    @property
    def subtopology(self) -> str:
        """Return the id of its subtopology."""
        return self.topic

    def __str__(self) -> str:
        return f"{self.topic}_{self.partition}"

    @classmethod
    def parse(cls, text: str) -> TaskId:
        """Return the task that prints so. Raises ValueError.

        >>> TaskId.parse("0_1")
        TaskId(topic='0', partition=1)
        """
        subtopology, line, index = text.rpartition("_")
        if not line or not index.isdecimal() or not index.isascii():
            raise ValueError(f"{text!r} is not a task such as '0_1'")
        return cls(subtopology, int(index))


Tasks = tuple[TaskId, ...]


@lru_cache(maxsize=4096)
def tasks_of(subtopology: str, count: int) -> Tasks:
    """Return tasks 0 to count-1 of a subtopology.

    >>> [str(task) for task in tasks_of("0", 2)]
    ['0_0', '0_1']
    """
    return tuple([TaskId(subtopology, index) for index in range(count)])


class StoreKind(StrEnum):
    """Kind of state that the tasks of a subtopology keep."""

    NONE = "none"
    LOGGED = "logged"  # a store with a changelog, from which a copy can be made
    MEMORY = "memory"  # a store without one: stateful, and no copy of it is worth anything


class RackStrategy(StrEnum):
    """``rack.aware.assignment.strategy`` (KIP-925)."""

    NONE = "none"
    MIN_TRAFFIC = "min_traffic"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskConfigs:
    """The settings of an application that an assignor is told of."""

    standbys: int = 0
    """``num.standby.replicas``."""
    warmups: int = 2
    """``max.warmup.replicas``."""
    recovery_lag: int = 10_000
    """``acceptable.recovery.lag``."""
    tags: tuple[str, ...] = ()
    """``rack.aware.assignment.tags``."""
    rack_strategy: RackStrategy = RackStrategy.NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Subtopology:
    """A part of a topology that reads the same partitions: a task for each, with its replicas' racks.
    ``end``: the end offset of each partition of its changelog. ``topic``: the name of what it reads, where
    that matters."""

    id: str
    store: StoreKind = StoreKind.LOGGED
    racks: tuple[Racks, ...] = ()
    end: int = 0
    topic: str = ""

    @property
    def tasks(self) -> Tasks:
        """Return its tasks."""
        return tasks_of(self.id, len(self.racks))


@dataclass(frozen=True, kw_only=True)
class TaskClient:
    """A process, or in a streams group a member of one, as an assignor is told of it.

    ``standby`` of a process is whatever lies on its disk and does not run there. ``lags``: for each task with
    a changelog how far its copy here is behind, ``RUNNING_LAG`` where it runs, or ``UNKNOWN_LAG``. In a
    streams group only what is on disk has one.
    """

    id: str
    process: str
    threads: int = 1
    active: Tasks = ()
    standby: Tasks = ()
    lags: Mapping[TaskId, int] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    rack: str | None = None


@dataclass(frozen=True, kw_only=True)
class Application:
    """All that a task assignor is told: ``ApplicationState`` of a client, ``GroupSpec`` of a coordinator."""

    configs: TaskConfigs
    subtopologies: tuple[Subtopology, ...]
    clients: tuple[TaskClient, ...]

    @lazy
    def tasks(self) -> Tasks:
        """Return all tasks, in the order of subtopologies."""
        return tuple([task for subtopology in self.subtopologies for task in subtopology.tasks])

    @lazy
    def stores(self) -> dict[str, StoreKind]:
        """Return for each subtopology what its tasks keep."""
        return {subtopology.id: subtopology.store for subtopology in self.subtopologies}

    @lazy
    def logged(self) -> Tasks:
        """Return the tasks of which copies can be made."""
        stores = self.stores
        return tuple([task for task in self.tasks if stores[task.topic] is StoreKind.LOGGED])

    def racks_of(self, task: TaskId) -> Racks:
        """Return the racks of the replicas that a task reads."""
        return next(one.racks[task.partition] for one in self.subtopologies if one.id == task.topic)


@dataclass(frozen=True, slots=True)
class ClientTasks:
    """Tasks that one client is assigned. An answer may name a client twice, which Kafka does not see."""

    id: str
    active: Tasks = ()
    standby: Tasks = ()


@dataclass(frozen=True, slots=True)
class TaskAssignment:
    """An answer. ``followup``: some client shall ask for another rebalance after a while (KIP-441)."""

    clients: tuple[ClientTasks, ...]
    followup: bool = False

    @classmethod
    def of(
        cls,
        active: Mapping[str, Iterable[TaskId]],
        standby: Mapping[str, Iterable[TaskId]] | None = None,
        *,
        followup: bool = False,
    ) -> TaskAssignment:
        """Return an answer that has each client once."""
        copies = standby or {}
        ids = dict.fromkeys((*active, *copies))
        clients = (ClientTasks(i, tuple(active.get(i, ())), tuple(copies.get(i, ()))) for i in ids)
        return cls(tuple(clients), followup)


class TaskAssignor(Protocol):
    """A task assignor, pure: equal input, equal output, input untouched."""

    @property
    def name(self) -> str: ...
    @property
    def protocols(self) -> tuple[RebalanceProtocol, ...]: ...
    @property
    def promises(self) -> frozenset[Promise]: ...
    def assign_tasks(self, application: Application) -> TaskAssignment: ...
