"""Clauses of the whole history of an application: that it settles, and what it settles in."""

from __future__ import annotations

from collections.abc import Callable, Collection

from rebalance_verifier.model.assignor import Promise
from rebalance_verifier.model.tasks import TaskId
from rebalance_verifier.properties.assignors.clause import Breach
from rebalance_verifier.properties.assignors.task_calls import TaskCall, TaskHistory
from rebalance_verifier.properties.assignors.task_placement import everything, placed, spread_over_tags
from rebalance_verifier.properties.assignors.wording import counted, listed


def probing_ends(history: TaskHistory) -> Breach | None:
    if history.settled is not None:
        return None
    last, rounds = history.calls[-1], len(history.calls) - history.alone
    asks = last.assignment.followup
    because = [everything(call.assignment) for call in history.calls[-3:]]
    return Breach(
        kind="asks" if asks else "moves",
        summary=(
            f"a follow-up rebalance is asked for after {counted(rounds, 'rebalance')} with nothing else left"
            if asks
            else f"tasks move after {counted(rounds, 'rebalance')} with nothing else left"
        ),
        because=(*because, f"left alone from rebalance {history.alone + 1} on, with copies that catch up"),
        expected=f"no more to do after {history.allowed} rebalances",
        actual="asks for another" if asks else "tasks change owner",
        partitions=tuple(sorted(_moving(history.calls[-2:]))),
    )


def _moving(calls: Collection[TaskCall]) -> set[TaskId]:
    found = [placed(call.assignment) for call in calls]
    return {task for one in found for task in one if any(one.get(task) != other.get(task) for other in found)}


def settled_stays(history: TaskHistory) -> Breach | None:
    if history.settled is None or history.settled + 1 >= len(history.calls):
        return None
    before, after = history.calls[history.settled], history.calls[history.settled + 1]
    was, now = placed(before.assignment), placed(after.assignment)
    nowhere: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    actives = sorted(t for t in {*was, *now} if was.get(t, nowhere)[0] != now.get(t, nowhere)[0])
    standbys = sorted(t for t in {*was, *now} if was.get(t, nowhere)[1] != now.get(t, nowhere)[1])
    if not actives and not standbys:
        return None
    moved = [*(task for task in actives), *(task for task in standbys if task not in actives)]
    made = sum(len(set(now.get(t, nowhere)[1]) - set(was.get(t, nowhere)[1])) for t in standbys)
    what = f"{listed(actives)} changes owner" if actives else f"the standby of {listed(standbys)} moves"
    return Breach(
        kind="actives" if actives else "standbys",
        summary=f"with nothing changed, {what}",
        because=(f"before {everything(before.assignment)}", f"after {everything(after.assignment)}"),
        expected="the same answer: 0 moves are needed",
        actual=f"moved {counted(len(actives), 'active task')} and {counted(made, 'standby')}, 0 were needed",
        partitions=tuple(moved),
        gap=len(actives) + made,
    )


def balanced_tasks(history: TaskHistory) -> Breach | None:
    if history.settled is None:
        return None
    call = history.calls[history.settled]
    kinds: list[tuple[str, Callable[[TaskId], bool]]] = [("all", lambda task: task in call.existing)]
    if Promise.HIGH_AVAILABILITY in call.promises:
        kinds.insert(0, ("stateful", call.is_logged))
    for kind, counts in kinds:
        loads = {
            one.id: [task for task in one.active if counts(task)]
            for one in call.assignment.clients
            if one.id in call.clients
        }
        threads = {client.id: client.threads for client in call.application.clients}
        for full, tasks in loads.items():
            for idle, few in loads.items():
                # One that moves from one to the other leaves both better, or one better and none worse.
                if (len(tasks) - 1) * threads[idle] >= (len(few) + 1) * threads[full]:
                    return _uneven(call, kind, (full, tasks), (idle, few))
    return None


def _uneven(
    call: TaskCall, kind: str, full: tuple[str, list[TaskId]], idle: tuple[str, list[TaskId]]
) -> Breach:
    (one, tasks), (other, few) = full, idle
    threads = {client.id: client.threads for client in call.application.clients}
    noun = "stateful task" if kind == "stateful" else "active task"
    on = "" if set(threads.values()) == {1} else f" on {counted(threads[one], 'thread')}"
    there = "" if set(threads.values()) == {1} else f" on {counted(threads[other], 'thread')}"
    return Breach(
        kind=kind,
        summary=f"{one} runs {counted(len(tasks), noun)}{on}, {other} {len(few)}{there}",
        because=(everything(call.assignment),),
        expected="no task that could move and leave the two more even",
        actual=f"{len(tasks)}{on} beside {len(few)}{there}",
        partitions=tuple(tasks),
        gap=len(tasks) - len(few) - 1,
    )


def spread_when_settled(history: TaskHistory) -> Breach | None:
    return None if history.settled is None else spread_over_tags(history.calls[history.settled])
