"""What happens in a scenario of tasks, rebalance by rebalance, in words."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Protocol

from rebalance_verifier.model.assignor import Promise
from rebalance_verifier.model.steps import StepView
from rebalance_verifier.model.tasks import RackStrategy, StoreKind, TaskId
from rebalance_verifier.model.values import TopicPartition
from rebalance_verifier.properties.assignors.task_calls import TaskCall
from rebalance_verifier.properties.assignors.task_optima import Moves, least_moves, moves_of
from rebalance_verifier.properties.assignors.task_placement import moves_told
from rebalance_verifier.properties.assignors.task_scenarios import (
    ScenarioClient,
    TaskEvent,
    TaskEventKind,
    TaskScenario,
)
from rebalance_verifier.properties.assignors.wording import counted, listed

ALONE = "no further events"

MAX_NAMED = 12
"""Clients whose part of a rebalance is put in words, and tasks of a client."""

MAX_CALLS = 500
"""Rebalances that can be stepped through."""


def stories(scenario: TaskScenario, window: range) -> dict[int, str]:
    """Return what happens before each of the rebalances in ``window`` (numbered from 0) in which anything
    does."""
    here = {client.id for client in scenario.clients}
    phrases = [*_settings(scenario), *(_arrives(client) for client in scenario.clients)]
    found, index = {}, 0
    for events in scenario.rounds:
        for event in events:
            about = event.client.id if event.client else event.id
            if _matters(event, here):
                phrases.append(event_phrase(event))
            if event.kind is TaskEventKind.JOIN:
                here.add(about)
            elif event.kind is TaskEventKind.LEAVE:
                here.discard(about)
        if here:
            if phrases and index in window:
                found[index] = "; ".join(phrases)
            phrases, index = [], index + 1
    if phrases and index in window:
        found[index] = "; ".join(phrases)
    return found


def _matters(event: TaskEvent, here: Collection[str]) -> bool:
    match event.kind:
        case TaskEventKind.JOIN:
            return event.client is not None and event.client.id not in here
        case TaskEventKind.GROW | TaskEventKind.UNKNOWN_ENDS:
            return True
        case _:
            return event.id in here


_KEEPING = {
    StoreKind.NONE: "stateless",
    StoreKind.LOGGED: "stateful",
    StoreKind.MEMORY: "with a store in memory",
}


def _settings(scenario: TaskScenario) -> Iterator[str]:
    """Yield what the application is made of, as far as that is not usual."""
    configs = scenario.configs
    for one in scenario.subtopologies:
        reads = f" of {one.topic}" if one.topic else ""
        yield f"subtopology {one.id} has {counted(len(one.racks), 'task')}{reads}, {_KEEPING[one.store]}"
    if configs.standbys:
        yield f"num.standby.replicas={configs.standbys}"
    if configs.tags:
        yield f"rack.aware.assignment.tags={','.join(configs.tags)}"
    if configs.rack_strategy is not RackStrategy.NONE:
        yield f"rack.aware.assignment.strategy={configs.rack_strategy}"


def _arrives(client: ScenarioClient) -> str:
    """Return how a client is there: what sets it apart.

    >>> _arrives(ScenarioClient(id="A", threads=2, active=(TaskId("0", 0),)))
    'A runs 0_0 [2 threads]'
    """
    behind = {copy.task: copy.lag for copy in client.copies}
    copies = [f"{task}{f' {lag} behind' if lag else ''}" for task, lag in behind.items()]
    does = [
        f"runs {listed(client.active)}" if client.active else "",
        f"has copies of {listed(copies)}" if copies else "",
    ]
    apart = [
        counted(client.threads, "thread") if client.threads > 1 else "",
        f"of process {client.process}" if client.process not in ("", client.id) else "",
        *(f"{key} {value}" for key, value in sorted(client.tags.items())),
        f"rack {client.rack}" if client.rack else "",
    ]
    facts = ", ".join(filter(None, apart))
    doing = " and ".join(filter(None, does)) or ("starts" if client.started else "is there")
    return f"{client.id} {doing}" + (f" [{facts}]" if facts else "")


def event_phrase(event: TaskEvent) -> str:
    """Return one event as half a sentence."""
    match event.kind:
        case TaskEventKind.JOIN if event.client:
            return _arrives(event.client).replace(" starts", " joins", 1)
        case TaskEventKind.LEAVE:
            return f"{event.id} leaves"
        case TaskEventKind.RESTART:
            return f"{event.id} starts again with its disk"
        case TaskEventKind.WIPED:
            return f"{event.id} starts again with an empty disk"
        case TaskEventKind.GROW:
            return f"subtopology {event.id} has {counted(event.number, 'task')} more"
        case TaskEventKind.THREADS:
            return f"{event.id} goes on with {counted(event.number, 'thread')}"
        case TaskEventKind.FALL_BEHIND:
            return f"the copies of {event.id} fall behind by {event.number}"
        case _:
            return "end offsets cannot be fetched"


def rare(scenario: TaskScenario) -> list[str]:
    """Return what applications seldom see, half a sentence for each."""
    events = [event.kind for events in scenario.rounds for event in events]
    return ["end offsets cannot be fetched"] * (TaskEventKind.UNKNOWN_ENDS in events)


def task_views(
    scenario: TaskScenario, calls: Sequence[TaskCall], breaking: int = 0, summary: str = ""
) -> Iterator[StepView]:
    """Yield the rebalances that were answered, for who steps through them. Of very many the last."""
    first = max(0, len(calls) - MAX_CALLS)
    happened = stories(scenario, range(first, len(calls)))
    yield StepView(label=f"{first}", what=f"after rebalance {first}" if first else "the start")
    for index, call in enumerate(calls[first:], first):
        asks = (("follow-up", "asked for"),) if call.assignment.followup else ()
        yield StepView(
            label=f"{index + 1}",
            what=happened.get(index, ALONE),
            seen=(
                *((f"breaks here: {summary}",) if summary and index + 1 == breaking else ()),
                *_moves(call),
            ),
            parties=(*((client, _part(call, client)) for client in call.clients), *asks),
        )


def _moves(call: TaskCall) -> Iterator[str]:
    """Yield what moves, and how much of it had to, where that can be known: not where a task may run only
    where its store is caught up, nor where racks count too."""
    made = moves_of(call)
    racks = call.application.configs.rack_strategy is not RackStrategy.NONE
    if made == Moves(0, 0) or racks or Promise.HIGH_AVAILABILITY in call.promises:
        return
    yield moves_told(made, least_moves(call))


def _part(call: TaskCall, client: str) -> str:
    return f"{_state(call, client)}; is given {_given(call, client)}"


def _state(call: TaskCall, client: str) -> str:
    known = call.clients[client]
    copies = f", copies of {_few(known.standby)}" if known.standby else ""
    return f"runs {_few(known.active)}{copies}"


def _given(call: TaskCall, client: str) -> str:
    own = [one for one in call.assignment.clients if one.id == client]
    if not own:
        return "nothing"
    texts = [_few(one.active) + (f", standby {_few(one.standby)}" if one.standby else "") for one in own]
    return "; and again ".join(texts)


class Changed(Protocol):
    """Change of one client's tasks in a call, in words."""

    def __call__(self, call: TaskCall, client: str) -> str: ...


def states_changed(
    call: TaskCall, before: TaskCall | None, decisive: Collection[TopicPartition] = ()
) -> list[str]:
    """Return what runs and is on disk where, as far as it was not so before or is about ``decisive``
    tasks."""
    return _differing(call, before, decisive, _state)


def answers_changed(
    call: TaskCall, before: TaskCall | None, decisive: Collection[TopicPartition] = ()
) -> list[str]:
    """Return what the answer gives whom, as far as it was not so before or is about ``decisive`` tasks."""
    strange = [name for name in call.listed if name not in call.clients]
    unknown = [f"{name}, who is not there: {_given(call, name)}" for name in strange]
    nobody = [task for task in call.application.tasks if task not in call.actives]
    missing = [f"nobody: {_few(nobody)}"] if nobody else []
    return [*_differing(call, before, decisive, _given), *unknown, *missing]


def _differing(
    call: TaskCall, before: TaskCall | None, decisive: Collection[TopicPartition], describe: Changed
) -> list[str]:
    wanted = {client for task in decisive for client in _concerned(call, task)}
    changed = [
        client
        for client in call.clients
        if before is None
        or client not in before.clients
        or describe(call, client) != describe(before, client)
        or client in wanted
    ]
    more = [f"and {len(changed) - MAX_NAMED:,} more"] if len(changed) > MAX_NAMED else []
    return [*(f"{client}: {describe(call, client)}" for client in changed[:MAX_NAMED]), *more]


def _concerned(call: TaskCall, task: TopicPartition) -> Iterable[str]:
    """Return the clients that a task runs on, or shall."""
    known = TaskId(*task)
    return [*call.actives.get(known, ()), *call.standbys.get(known, ()), call.owners.get(known, "")]


def _few(tasks: Sequence[TopicPartition]) -> str:
    more = f" and {len(tasks) - MAX_NAMED:,} more" if len(tasks) > MAX_NAMED else ""
    return " ".join(map(str, tasks[:MAX_NAMED])) + more or "nothing"
