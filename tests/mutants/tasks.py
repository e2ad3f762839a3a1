"""Task assignors that break one clause each, in a corner. Each is the reference but for that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from rebalance_verifier.model.assignor import Promise
from rebalance_verifier.model.assignors.tasks import StickyTasks
from rebalance_verifier.model.assignors.tasks import standbys as copies
from rebalance_verifier.model.tasks import (
    RUNNING_LAG,
    Application,
    ClientTasks,
    RackStrategy,
    StoreKind,
    TaskAssignment,
    TaskClient,
    TaskId,
)

Change = Callable[[Application, TaskAssignment], Any]


class _Reference:
    protocols = ("tasks",)
    promises: tuple[Promise, ...] = (Promise.BALANCED, Promise.STICKY, Promise.STANDBYS, Promise.TAGS)

    def assign_tasks(self, application: Application) -> Any:
        return self.change(application, StickyTasks().assign_tasks(application))

    def change(self, application: Application, right: TaskAssignment) -> Any:
        raise NotImplementedError


def _with(right: TaskAssignment, at: int, **changes: Any) -> TaskAssignment:
    clients = list(right.clients)
    clients[at] = replace(clients[at], **changes)
    return replace(right, clients=tuple(clients))


class Forgets(_Reference):
    """Forgets the last task of a subtopology of three tasks."""

    def change(self, application: Application, right: TaskAssignment) -> Any:
        gone = {one.tasks[-1] for one in application.subtopologies if len(one.tasks) == 3}
        return [
            (one.id, [task for task in one.active if task not in gone], one.standby) for one in right.clients
        ]


class RunsTwice(_Reference):
    """Runs a task where it was, beside where it goes."""

    def change(self, application: Application, right: TaskAssignment) -> Any:
        for at, one in enumerate(right.clients):
            had = next(client for client in application.clients if client.id == one.id).active
            for task in had:
                if task not in one.active:
                    standby = tuple(copy for copy in one.standby if copy != task)
                    return _with(right, at, active=(*one.active, task), standby=standby)
        return right


class ListsTwice(_Reference):
    """Lists a process once for what runs there, and once for its standbys."""

    def change(self, application: Application, right: TaskAssignment) -> Any:
        return [
            (one.id, *part)
            for one in right.clients
            for part in ([(one.active, ()), ((), one.standby)] if one.standby else [(one.active, ())])
        ]


class LeavesOutTheIdle(_Reference):
    """Leaves out processes that get nothing."""

    def change(self, application: Application, right: TaskAssignment) -> Any:
        return replace(right, clients=tuple(one for one in right.clients if one.active or one.standby))


class RemembersTheGone(_Reference):
    """Names a process that three or more processes make up."""

    def change(self, application: Application, right: TaskAssignment) -> Any:
        gone = [ClientTasks("gone")] if len(application.clients) > 2 else []
        return replace(right, clients=(*right.clients, *gone))


class OneTaskMore(_Reference):
    """Counts the tasks of a third subtopology from 1."""

    def change(self, application: Application, right: TaskAssignment) -> Any:
        if len(application.subtopologies) < 3:
            return right
        last = application.subtopologies[-1]
        one = right.clients[-1]
        return _with(right, -1, active=(*one.active, TaskId(last.id, len(last.tasks))))


class StandbyBesideTheActive(_Reference):
    """Makes the only process its own standby."""

    def change(self, application: Application, right: TaskAssignment) -> Any:
        logged = [task for task in right.clients[0].active if task in application.logged]
        if len(application.clients) > 1 or not application.configs.standbys:
            return right
        return _with(right, 0, standby=tuple(logged))


class StandbyOfNothing(_Reference):
    """Gives stateless tasks standbys too."""

    def change(self, application: Application, right: TaskAssignment) -> Any:
        stores = tuple(
            replace(one, store=StoreKind.LOGGED if one.store is StoreKind.NONE else one.store)
            for one in application.subtopologies
        )
        return StickyTasks().assign_tasks(replace(application, subtopologies=stores))


class StandbyOfTheSameProcess(_Reference):
    """Sees that standbys are with other members, and not that they are of another process."""

    protocols = ("streams",)

    def change(self, application: Application, right: TaskAssignment) -> Any:
        alone = tuple(replace(client, process=client.id) for client in application.clients)
        return StickyTasks().assign_tasks(replace(application, clients=alone))


class DividesByZero(_Reference):
    """Takes the share of tasks that have a copy somewhere, of no tasks."""

    def change(self, application: Application, right: TaskAssignment) -> Any:
        has = sum(len(client.standby) for client in application.clients)
        assert 1 // len(application.logged) >= 0 or has
        return right


class SortsByUnknownLags(_Reference):
    """Looks up in a table what to do with a lag, which has no line for -3."""

    def change(self, application: Application, right: TaskAssignment) -> Any:
        lines = {RUNNING_LAG: "runs"} | dict.fromkeys(range(3), "lags")
        for client in application.clients:
            for lag in client.lags.values():
                lines[min(lag, 2)]
        return right


class TidiesLags(_Reference):
    """Takes lags of 0 out of what it is told."""

    def change(self, application: Application, right: TaskAssignment) -> Any:
        for client in application.clients:
            lags: Any = client.lags
            for task in [task for task, lag in lags.items() if lag == 0]:
                del lags[task]
        return right


class FirstProcessFirst(_Reference):
    """Starts with the process that it is told of first."""

    def change(self, application: Application, right: TaskAssignment) -> Any:
        if any(client.active or client.standby for client in application.clients):
            return right
        names = {client.id: f"{at:03}" for at, client in enumerate(application.clients)}
        back = {name: client for client, name in names.items()}
        told = replace(
            application,
            clients=tuple(
                replace(client, id=names[client.id], process=names[client.id])
                for client in application.clients
            ),
        )
        given = StickyTasks().assign_tasks(told)
        return replace(given, clients=tuple(replace(one, id=back[one.id]) for one in given.clients))


class OneStandbyAtMost(_Reference):
    """Makes one standby, however many are asked for."""

    def change(self, application: Application, right: TaskAssignment) -> Any:
        few = replace(application.configs, standbys=min(1, application.configs.standbys))
        return StickyTasks().assign_tasks(replace(application, configs=few))


class OneStandbyMore(_Reference):
    """Makes a standby for each other process where two are asked for."""

    def change(self, application: Application, right: TaskAssignment) -> Any:
        wanted = application.configs.standbys
        many = replace(application.configs, standbys=9 if wanted == 2 else wanted)
        return StickyTasks().assign_tasks(replace(application, configs=many))


class StandbyInMemory(_Reference):
    """Makes standbys of what has no changelog."""

    def change(self, application: Application, right: TaskAssignment) -> Any:
        stores = tuple(
            replace(one, store=StoreKind.LOGGED if one.store is StoreKind.MEMORY else one.store)
            for one in application.subtopologies
        )
        return StickyTasks().assign_tasks(replace(application, subtopologies=stores))


class Available(_Reference):
    """Right, and never balanced: a task stays where it is caught up, or goes to the emptiest of those that
    are; nothing is warmed up, so no follow-up is needed."""

    promises: tuple[Promise, ...] = (Promise.STICKY, Promise.STANDBYS, Promise.HIGH_AVAILABILITY)

    def assign_tasks(self, application: Application) -> Any:
        running: dict[str, list[TaskId]] = {client.id: [] for client in application.clients}
        ran = {task: client.id for client in application.clients for task in client.active}
        for task in application.tasks:
            ready = [client.id for client in application.clients if self.ready(application, client, task)]
            free = ready or sorted(running)
            best = min(free, key=lambda client: (ran.get(task) != client, len(running[client]), client))
            running[best].append(task)
        return self.finished(application, running)

    def ready(self, application: Application, client: TaskClient, task: TaskId) -> bool:
        lag = client.lags.get(task, -3)
        return lag == RUNNING_LAG or 0 <= lag <= application.configs.recovery_lag

    def finished(self, application: Application, running: dict[str, list[TaskId]]) -> Any:
        return TaskAssignment.of(running, copies(application, running))


class WarmsUpEverything(Available):
    """Makes a copy of each task on the first process that has none, of however many."""

    promises = (Promise.STICKY, Promise.HIGH_AVAILABILITY)

    def finished(self, application: Application, running: dict[str, list[TaskId]]) -> Any:
        given = copies(application, running)
        for task in application.logged:
            free = [one for one in sorted(running) if task not in running[one] and task not in given[one]]
            if free and len(application.clients) > 2:
                given[free[0]].append(task)
        return TaskAssignment.of(running, given)


class CopiesAreNotLookedAt(Available):
    """Takes a process for caught up where the task ran, and no other."""

    def ready(self, application: Application, client: TaskClient, task: TaskId) -> bool:
        return task in client.active or not any(client.active for client in application.clients)


class ProbesForEver(_Reference):
    """Asks for follow-ups as long as there are standbys."""

    def change(self, application: Application, right: TaskAssignment) -> Any:
        return replace(right, followup=any(one.standby for one in right.clients))


class TurnsAround(_Reference):
    """Lets the only tasks of two processes change places whenever it is asked."""

    promises = (Promise.BALANCED, Promise.STANDBYS)

    def change(self, application: Application, right: TaskAssignment) -> Any:
        one, *others = right.clients
        if len(others) != 1 or len(one.active) != 1 or len(others[0].active) != 1:
            return right
        other = others[0]
        return [(one.id, other.active, other.standby), (other.id, one.active, one.standby)]


class MovesStandbys(_Reference):
    """Gives a standby to another process of three or more whenever it is asked."""

    def change(self, application: Application, right: TaskAssignment) -> Any:
        given = {one.id: [list(one.active), list(one.standby)] for one in right.clients}
        before = {client.id: client.standby for client in application.clients}
        for task in application.logged if application.configs.standbys == 1 else ():
            has = [one for one in given if task in given[one][1]]
            free = [
                one for one in sorted(given) if task not in [*given[one][0], *given[one][1], *before[one]]
            ]
            if has and free and not application.configs.tags and task.partition == 2:
                given[has[0]][1].remove(task)
                given[free[0]][1].append(task)
        return {one: tuple(map(tuple, both)) for one, both in given.items()}


class OneTooMany(_Reference):
    """Lets one process have one task too many of five or more."""

    def change(self, application: Application, right: TaskAssignment) -> Any:
        given = {one.id: (list(one.active), one.standby) for one in right.clients}
        if len(application.tasks) < 5 or application.configs.standbys or len(given) < 2:
            return right
        first, *_, last = sorted(given)
        for task in list(given[last][0])[:1]:
            given[last][0].remove(task)
            given[first][0].append(task)
        return {one: tuple(map(tuple, both)) for one, both in given.items()}


class ForgetsTags(_Reference):
    """Knows nothing of client tags where there are four processes or more."""

    def change(self, application: Application, right: TaskAssignment) -> Any:
        if len(application.clients) < 4:
            return right
        blind = replace(application, configs=replace(application.configs, tags=()))
        return StickyTasks().assign_tasks(blind)


class RacksTheWrongWayRound(_Reference):
    """Lets two processes that have just started change places where that is further from the replicas."""

    promises = (Promise.BALANCED, Promise.STICKY, Promise.STANDBYS, Promise.RACK_AWARE)

    def change(self, application: Application, right: TaskAssignment) -> Any:
        fresh = not any(client.active or client.standby for client in application.clients)
        if application.configs.rack_strategy is RackStrategy.NONE or len(right.clients) != 2 or not fresh:
            return right
        one, other = right.clients
        racks = {client.id: client.rack for client in application.clients}

        def far(client: str, tasks: tuple[TaskId, ...]) -> int:
            return sum(racks[client] not in application.racks_of(task) for task in tasks)

        near = far(one.id, one.active) + far(other.id, other.active)
        if far(one.id, other.active) + far(other.id, one.active) <= near or application.configs.standbys:
            return right
        return [(one.id, other.active, other.standby), (other.id, one.active, one.standby)]


class StartsWhereNothingIs(_Reference):
    """Promises that the least moves, and looks at loads where a copy would do."""

    promises = (Promise.BALANCED, Promise.STICKY, Promise.STANDBYS, Promise.TAGS, Promise.LEAST_MOVES)

    def change(self, application: Application, right: TaskAssignment) -> Any:
        return right
