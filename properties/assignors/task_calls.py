"""One call of a task assignor as the judge sees it: what was asked, and where each task and copy went."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from rebalance_verifier.base.lazy import lazy
from rebalance_verifier.base.processes.failure import FailureKind
from rebalance_verifier.model.assignor import Promise
from rebalance_verifier.model.tasks import (
    RUNNING_LAG,
    Application,
    StoreKind,
    TaskAssignment,
    TaskClient,
    TaskId,
)
from rebalance_verifier.model.values import RebalanceProtocol
from rebalance_verifier.properties.assignors.calls import Failure

MAX_TASKS = 100_000
"""So many tasks and copies may an answer give, or ten times as many as there could be."""


@dataclass(frozen=True, slots=True)
class TaskAnswer:
    """A well-formed reply. ``mutated`` says what the target changed in its input, if it did."""

    assignment: TaskAssignment
    mutated: str | None = None


TaskReply = TaskAnswer | Failure


class TaskQuestion(NamedTuple):
    """Question for the tasks of these clients; ``again``: of another process of the target."""

    protocol: RebalanceProtocol
    application: Application
    again: bool = False

    def bounded(self, reply: TaskReply) -> TaskReply:
        """Return a reply, or that it is none when it is so large that nobody should have to judge it."""
        if isinstance(reply, Failure):
            return reply
        given = sum([1 + len(one.active) + len(one.standby) for one in reply.assignment.clients])
        if given <= MAX_TASKS:
            return reply
        clients = len(self.application.clients)
        most = max(MAX_TASKS, 10 * (1 + len(self.application.tasks)) * (1 + clients))
        if given > most:
            text = f"{given:,} clients and tasks, at most {most:,} are read"
            return Failure(FailureKind.GARBAGE, text, slow=True)
        return reply


@dataclass(frozen=True, kw_only=True)
class TaskCall:
    """One answered call. ``unknown_ends``: end offsets could not be fetched for it."""

    protocol: RebalanceProtocol
    application: Application
    assignment: TaskAssignment
    promises: frozenset[Promise] = frozenset()
    unknown_ends: bool = False

    @lazy
    def clients(self) -> dict[str, TaskClient]:
        """Return the clients by id."""
        return {client.id: client for client in self.application.clients}

    @lazy
    def existing(self) -> frozenset[TaskId]:
        """Return the tasks that there are."""
        return frozenset(self.application.tasks)

    @lazy
    def listed(self) -> Mapping[str, int]:
        """Return how often the answer names each client."""
        found: dict[str, int] = {}
        for one in self.assignment.clients:
            found[one.id] = found.get(one.id, 0) + 1
        return found

    @lazy
    def actives(self) -> dict[TaskId, list[str]]:
        """Return for each task the clients that shall run it, each as often as it is said."""
        found: dict[TaskId, list[str]] = {}
        for one in self.assignment.clients:
            for task in one.active:
                found.setdefault(task, []).append(one.id)
        return found

    @lazy
    def standbys(self) -> dict[TaskId, list[str]]:
        """Return for each task the clients that shall keep a copy of its store, each as often as it is
        said."""
        found: dict[TaskId, list[str]] = {}
        for one in self.assignment.clients:
            for task in one.standby:
                found.setdefault(task, []).append(one.id)
        return found

    def process(self, client: str) -> str:
        """Return the process of a client; an unknown client is one of its own."""
        known = self.clients.get(client)
        return client if known is None else known.process

    @lazy
    def threads(self) -> dict[str, int]:
        """Return the number of threads of each process."""
        found: dict[str, int] = {}
        for client in self.application.clients:
            found[client.process] = found.get(client.process, 0) + client.threads
        return found

    @lazy
    def owners(self) -> dict[TaskId, str]:
        """Return for each task the first client that says that it runs there now."""
        found: dict[TaskId, str] = {}
        for client in self.application.clients:
            for task in client.active:
                found.setdefault(task, client.id)
        return found

    def is_logged(self, task: TaskId) -> bool:
        """Check whether copies of a task can be made."""
        return self.application.stores.get(task.topic) is StoreKind.LOGGED

    def is_stateful(self, task: TaskId) -> bool:
        """Check whether a task has a store of any kind."""
        return self.application.stores.get(task.topic, StoreKind.NONE) is not StoreKind.NONE

    def is_caught_up(self, client: TaskClient, task: TaskId) -> bool:
        """Check whether a client's copy is within ``acceptable.recovery.lag``, or the task runs there."""
        lag = client.lags.get(task)
        return lag is not None and (lag == RUNNING_LAG or 0 <= lag <= self.application.configs.recovery_lag)

    def caught_up(self, task: TaskId) -> list[str]:
        """Return the clients where a task is caught up."""
        return [client.id for client in self.application.clients if self.is_caught_up(client, task)]

    @lazy
    def revoked(self) -> bool:
        """Check whether a task leaves a client that runs it: another rebalance follows at once."""
        actives = self.actives
        return any(client not in actives.get(task, ()) for task, client in self.owners.items())


@dataclass(frozen=True, slots=True)
class TaskHistory:
    """All calls of one scenario; those from ``alone`` on are undisturbed. ``settled``: index of the first of
    these after which nothing moves and nobody asks for a follow-up, ``None``: never. One more call follows
    it, with nothing changed."""

    calls: tuple[TaskCall, ...]
    alone: int
    settled: int | None
    allowed: int
    """Undisturbed calls that it may take to settle."""


Situation = Callable[[TaskCall], bool]


def _lagging(call: TaskCall) -> bool:
    return any(lag > 0 for client in call.application.clients for lag in client.lags.values())


ASKED_SITUATIONS: dict[str, Situation] = {
    "stateless tasks": lambda call: StoreKind.NONE in call.application.stores.values(),
    "store without a changelog": lambda call: StoreKind.MEMORY in call.application.stores.values(),
    "standbys asked for": lambda call: (
        call.application.configs.standbys > 0
        and len(call.threads) > 1
        and any(call.is_logged(task) for task in call.existing)
    ),
    "several threads": lambda call: any(count > 1 for count in call.threads.values()),
    "client tags": lambda call: bool(call.application.configs.tags),
    "racks": lambda call: any(client.rack for client in call.application.clients),
    "unknown end offsets": lambda call: call.unknown_ends,
}
"""What makes a call worth asking, by name, as it is until something happens to the application."""

TASK_SITUATIONS: Mapping[str, Situation] = ASKED_SITUATIONS | {
    "copy that lags": _lagging,
    "standbys in the answer": lambda call: bool(call.standbys),
    "tasks with an owner": lambda call: bool(call.owners),
    "task that moves": lambda call: call.revoked,
    "follow-up asked for": lambda call: call.assignment.followup,
}
"""What makes a call worth asking, by name."""

_EVENTS = ("process joins", "process leaves", "restart with its disk", "restart without its disk")

TASK_FLOORS: dict[RebalanceProtocol, tuple[str, ...]] = {
    RebalanceProtocol.TASKS: (
        *("stateless tasks", "store without a changelog", "standbys asked for", "copy that lags"),
        *("several threads", "client tags", "racks", "unknown end offsets", *_EVENTS),
    ),
    RebalanceProtocol.STREAMS: (
        *("stateless tasks", "standbys asked for", "several threads", "client tags", *_EVENTS),
    ),
}
"""Situations that a search of some size must reach."""
