"""A task assignor of our own: balanced, sticky, with standbys where they cost least. What it gives is final.

Its aims, in this order: a task runs where its store is caught up already, or else where it ran; active tasks
per thread differ by at most one; standbys keep their place, spread over client tags, then over load. Ties are
broken by names, so that whoever asks gets the same answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rebalance_verifier.model.assignor import Promise
from rebalance_verifier.model.tasks import Application, TaskAssignment, TaskClient, TaskId
from rebalance_verifier.model.values import OF_TASKS, RebalanceProtocol


@dataclass(frozen=True)
class StickyTasks:
    """The reference: ``tasks-sticky``."""

    name: str = "tasks-sticky"
    protocols: tuple[RebalanceProtocol, ...] = OF_TASKS
    promises: frozenset[Promise] = frozenset(
        {Promise.BALANCED, Promise.STICKY, Promise.STANDBYS, Promise.TAGS}
    )

    def assign_tasks(self, application: Application) -> TaskAssignment:
        """Return the assignment of an application."""
        active = actives(application)
        return TaskAssignment.of(active, standbys(application, active))


def actives(application: Application) -> dict[str, list[TaskId]]:
    """Return the tasks that each client runs: what it ran, as far as the balance has room for it."""
    clients = sorted(application.clients, key=lambda client: client.id)
    given: dict[str, list[TaskId]] = {client.id: [] for client in clients}
    owners = {task: client.id for client in clients for task in client.active}
    waiting = []
    for task in sorted(application.tasks):
        owner = owners.get(task)
        if owner is None:
            waiting.append(task)
        else:
            given[owner].append(task)
    for task in waiting:
        best = min(clients, key=lambda client: _cost(client, given[client.id], task))
        given[best.id].append(task)
    _level(clients, given)
    return given


def _cost(client: TaskClient, has: list[TaskId], task: TaskId) -> tuple[float, bool, str]:
    return (len(has) + 1) / client.threads, client.lags.get(task, 1) > 0, client.id


def _level(clients: list[TaskClient], given: dict[str, list[TaskId]]) -> None:
    """Let tasks move as long as one that does leaves its client no emptier, per thread, than it makes the
    other: each move makes the sum of squares smaller."""
    while pair := _uneven(clients, given):
        full, empty = given[pair[0].id], given[pair[1].id]
        # What the other has a copy of moves first, then what came last.
        lags = pair[1].lags
        moved = min(full, key=lambda task: (lags.get(task, 1) > 0, -task.partition, task))
        full.remove(moved)
        empty.append(moved)


def _uneven(
    clients: list[TaskClient], given: dict[str, list[TaskId]]
) -> tuple[TaskClient, TaskClient] | None:
    """Return the fullest client that could hand on a task, and the emptiest that could take it."""
    by_load = sorted(clients, key=lambda client: (len(given[client.id]) / client.threads, client.id))
    return next(
        (
            (full, empty)
            for full in reversed(by_load)
            for empty in by_load
            if (len(given[full.id]) - 1) * empty.threads >= (len(given[empty.id]) + 1) * full.threads
        ),
        None,
    )


def standbys(application: Application, active: dict[str, list[TaskId]]) -> dict[str, list[TaskId]]:
    """Return the copies that each client keeps."""
    given: dict[str, list[TaskId]] = {client.id: [] for client in application.clients}
    at = {task: client for client, tasks in active.items() for task in tasks}
    known = {client.id: client for client in application.clients}
    loads = {client.id: len(active[client.id]) for client in application.clients}
    for task in sorted(application.logged):
        copies = [known[at[task]]]
        for _ in range(application.configs.standbys):
            processes = {client.process for client in copies}
            free = [client for client in application.clients if client.process not in processes]
            if not free:
                break
            best = min(free, key=_standby_cost(application, copies, task, loads))
            copies.append(best)
            given[best.id].append(task)
            loads[best.id] += 1
    return given


def _standby_cost(
    application: Application, copies: list[TaskClient], task: TaskId, loads: dict[str, int]
) -> Callable[[TaskClient], tuple[int, bool, float, str]]:
    """Return how little a client is worth as the next place of a copy."""

    def cost(client: TaskClient) -> tuple[int, bool, float, str]:
        same = sum(
            any(client.tags.get(tag) == copy.tags.get(tag) for copy in copies)
            for tag in application.configs.tags
        )
        kept = task in client.standby or task in client.active
        return same, not kept, loads[client.id] / client.threads, client.id

    return cost


TASK_ASSIGNORS = {assignor.name: assignor for assignor in (StickyTasks(),)}
"""The reference task assignors by name."""
