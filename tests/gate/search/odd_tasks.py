"""Task assignors that are right and unlike Kafka's: none of them may be accused of anything.

One decides by a hash of names, one moves a task at a time, one warms copies up in its own way and has the
rebalance retried while it knows no lags, and one lets nothing move that may stay.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from rebalance_verifier.model.assignor import Promise
from rebalance_verifier.model.assignors.tasks import actives, standbys
from rebalance_verifier.model.tasks import (
    RUNNING_LAG,
    UNKNOWN_LAG,
    Application,
    StoreKind,
    TaskAssignment,
    TaskClient,
    TaskId,
)

Given = dict[str, list[TaskId]]


class Rendezvous:
    """Highest random weight: each task goes to the clients whose names, hashed with its own, are greatest.
    Nothing depends on what was, and nothing is balanced."""

    protocols = ("tasks", "streams")
    promises = (Promise.STICKY, Promise.STANDBYS, Promise.TAGS)

    def assign_tasks(self, application: Application) -> TaskAssignment:
        active: Given = {client.id: [] for client in application.clients}
        standby: Given = {client.id: [] for client in application.clients}
        for task in application.tasks:
            ranked = sorted(application.clients, key=lambda client: _weight(client, task))
            copies = [ranked[0]]
            active[ranked[0].id].append(task)
            for _ in range(application.configs.standbys if task in application.logged else 0):
                taken = {client.process for client in copies}
                free = [client for client in ranked if client.process not in taken]
                if not free:
                    break
                copies.append(min(free, key=lambda client: _together(application, client, copies)))
                standby[copies[-1].id].append(task)
        return TaskAssignment.of(active, standby)


def _weight(client: TaskClient, task: TaskId) -> bytes:
    return hashlib.sha256(f"{client.process}/{client.id}/{task}".encode()).digest()


def _together(application: Application, client: TaskClient, copies: Iterable[TaskClient]) -> int:
    tags = application.configs.tags
    return sum(any(client.tags.get(tag) == copy.tags.get(tag) for copy in copies) for tag in tags)


class OneAtATime:
    """Lets one task that runs move in each rebalance, and asks for another as long as more shall move."""

    promises = (Promise.BALANCED, Promise.STICKY, Promise.STANDBYS)

    def assign_tasks(self, application: Application) -> TaskAssignment:
        wanted = actives(application)
        owners = {task: client.id for client in application.clients for task in client.active}
        moves = [(task, to) for to, tasks in wanted.items() for task in tasks if owners.get(task, to) != to]
        late = {task for task, _ in sorted(moves)[1:]}
        active = {
            one: sorted(
                [task for task in tasks if task not in late] + [task for task in late if owners[task] == one]
            )
            for one, tasks in wanted.items()
        }
        return TaskAssignment.of(active, standbys(application, active), followup=bool(late))


class TaskAssignmentException(Exception):
    """As Kafka's: the rebalance is to be tried again."""


class WarmsUp:
    """High availability: what would move to a process without a copy runs where it can, and is copied there
    first, ``max.warmup.replicas`` at a time."""

    promises = (Promise.BALANCED, Promise.STICKY, Promise.STANDBYS, Promise.HIGH_AVAILABILITY)

    def assign_tasks(self, application: Application) -> TaskAssignment:
        clients = sorted(application.clients, key=lambda client: client.id)
        if any(lag == UNKNOWN_LAG for client in clients for lag in client.lags.values()):
            raise TaskAssignmentException("lags are not known")
        active: Given = {client.id: [] for client in clients}
        pending: list[tuple[TaskId, str]] = []
        target = _level(application)
        for task, to in sorted((task, to) for to, tasks in target.items() for task in tasks):
            caught = [client.id for client in clients if _caught_up(application, client, task)]
            if not caught or to in caught:
                active[to].append(task)
            else:
                running = [c.id for c in clients if c.lags.get(task) == RUNNING_LAG]
                active[(running or sorted(caught, key=lambda one: len(active[one])))[0]].append(task)
                pending.append((task, to))
        _fill(clients, active, [task for task in application.tasks if task not in application.logged])
        standby = standbys(application, active)
        new = [(task, to) for task, to in pending if task not in standby[to]]
        for task, to in new[: application.configs.warmups]:
            standby[to].append(task)
        return TaskAssignment.of(active, standby, followup=bool(pending))


def _caught_up(application: Application, client: TaskClient, task: TaskId) -> bool:
    lag = client.lags.get(task, 0)
    return lag == RUNNING_LAG or 0 <= lag <= application.configs.recovery_lag


def _level(application: Application) -> Given:
    """Return an even spread of what has a changelog. A task that has just been stopped counts as where it is
    caught up and least runs: it would be sent to and fro otherwise, for ever (seed 5 of profile ``ci``)."""
    ran: dict[TaskId, str] = {}
    for task in application.logged:
        known = sorted(
            application.clients,
            key=lambda one: (task not in one.active, len(one.active) / one.threads, one.id),
        )
        first = next((client.id for client in known if _caught_up(application, client, task)), None)
        ran |= {task: first} if first else {}
    clients = tuple(
        replace(one, active=tuple(task for task, client in ran.items() if client == one.id))
        for one in application.clients
    )
    logged = tuple(one for one in application.subtopologies if one.store is StoreKind.LOGGED)
    return actives(replace(application, clients=clients, subtopologies=logged))


def _fill(clients: Sequence[TaskClient], active: Given, tasks: Collection[TaskId]) -> None:
    """Give what has no store to whoever has least; it stays where it runs, as far as that is even."""
    for task in sorted(tasks):
        best = min(
            clients,
            key=lambda client: (
                (len(active[client.id]) + 1) / client.threads,
                task not in client.active,
                client.id,
            ),
        )
        active[best.id].append(task)


class Stays:
    """Lets stay what may: a task goes where it runs, or where a copy is, or to the first that is there.
    Standbys are where copies are. Loads do not count."""

    protocols = ("tasks", "streams")
    promises = (Promise.STICKY, Promise.STANDBYS, Promise.LEAST_MOVES)

    def assign_tasks(self, application: Application) -> TaskAssignment:
        active: Given = {client.id: [] for client in application.clients}
        standby: Given = {client.id: [] for client in application.clients}
        for task in application.tasks:
            ranked = sorted(
                application.clients,
                key=lambda client: (
                    task not in client.active,
                    task not in client.standby,
                    client.lags.get(task, 0) > 0,
                    client.id,
                ),
            )
            wanted = 1 + (application.configs.standbys if task in application.logged else 0)
            processes: set[str] = set()
            for client in ranked:
                if client.process not in processes and len(processes) < wanted:
                    (standby if processes else active)[client.id].append(task)
                    processes.add(client.process)
        return TaskAssignment.of(active, standby)


ODD = (Rendezvous, OneAtATime, WarmsUp, Stays)
