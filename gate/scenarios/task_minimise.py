"""Making a counterexample about tasks small: fewer processes, tasks, copies, events, and plainer ones."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from itertools import combinations

from rebalance_verifier.gate.scenarios.minimise import Ahead, Reduction, fewer, reduced_by
from rebalance_verifier.gate.scenarios.player import PlayedHistory
from rebalance_verifier.gate.scenarios.task_generator import END
from rebalance_verifier.model.tasks import RackStrategy, StoreKind, Subtopology, TaskConfigs, TaskId, Tasks
from rebalance_verifier.properties.assignors.task_calls import TaskCall
from rebalance_verifier.properties.assignors.task_scenarios import (
    Copy,
    ScenarioClient,
    TaskEvent,
    TaskEventKind,
    TaskScenario,
    each_client,
    everyone_in,
    renamed_clients,
)

MAX_PAIRED, TRIES = 14, 20
"""Up to so many things, each pair of them is taken away; of more, some at random, so many times."""


def minimise(
    scenario: TaskScenario,
    breaks: Callable[[TaskScenario], bool],
    *,
    may_go_on: Callable[[], bool] = lambda: True,
    ahead: Ahead[TaskScenario] | None = None,
) -> TaskScenario:
    """Return the smallest scenario reached by single reductions that still ``breaks``, as ``scenario``
    does."""
    return reduced_by(REDUCTIONS, _plainly_named, scenario, breaks, may_go_on=may_go_on, ahead=ahead)


def from_call(record: PlayedHistory, number: int) -> TaskScenario:
    """Return the scenario that begins where the ``number``-th call of ``record`` (from 1) was made: what ran
    and was on disk there is what its clients arrive with."""
    scenario, call = record.scenario, record.calls[number - 1]
    assert isinstance(scenario, TaskScenario)
    assert isinstance(call, TaskCall)
    clients = tuple(
        ScenarioClient(
            id=client.id,
            process="" if client.process == client.id else client.process,
            threads=client.threads,
            active=client.active,
            copies=tuple(Copy(task, max(0, client.lags.get(task, 0))) for task in client.standby),
            tags=client.tags,
            rack=client.rack,
            started=not client.active and not client.standby,
        )
        for client in call.application.clients
    )
    unknown = (TaskEvent(kind=TaskEventKind.UNKNOWN_ENDS),) if call.unknown_ends else ()
    return replace(
        scenario,
        subtopologies=call.application.subtopologies,
        clients=clients,
        rounds=(unknown, *scenario.rounds[number:]),
    )


# -- reductions --------------------------------------------------------------------------------------------


def _fewer_rounds(s: TaskScenario) -> Iterator[TaskScenario]:
    count = len(s.rounds)
    for keep in sorted({0, 1, count // 2} - {count}):
        yield replace(s, rounds=s.rounds[:keep])
    for index in range(count - 1, -1, -1):
        yield replace(s, rounds=s.rounds[:index] + s.rounds[index + 1 :])
    for index in range(count - 1):
        merged = s.rounds[index] + s.rounds[index + 1]
        yield replace(s, rounds=(*s.rounds[:index], merged, *s.rounds[index + 2 :]))


def _fewer_clients(s: TaskScenario) -> Iterator[TaskScenario]:
    for kept in fewer(s.clients):
        yield replace(s, clients=tuple(kept))


def _fewer_events(s: TaskScenario) -> Iterator[TaskScenario]:
    for number, events in enumerate(s.rounds):
        for index, event in enumerate(events):
            rest = (*events[:index], *events[index + 1 :])
            fewer_rounds = (*s.rounds[:number], rest, *s.rounds[number + 1 :])
            yield replace(s, rounds=fewer_rounds)
            if event.client is not None and number == 0:  # there from the start
                yield replace(s, clients=(*s.clients, event.client), rounds=fewer_rounds)
            if event.number > 1:
                less = replace(event, number=1)
                changed = (*events[:index], less, *events[index + 1 :])
                yield replace(s, rounds=(*s.rounds[:number], changed, *s.rounds[number + 1 :]))


def _fewer_subtopologies(s: TaskScenario) -> Iterator[TaskScenario]:
    for kept in fewer(s.subtopologies):
        names = {one.id for one in kept}
        yield _without(s, (task for one in s.subtopologies if one.id not in names for task in one.tasks))


def _fewer_tasks(s: TaskScenario) -> Iterator[TaskScenario]:
    most = max((len(one.racks) for one in s.subtopologies), default=0)
    for count in range(1, most):
        yield _without(s, (task for one in s.subtopologies for task in one.tasks[count:]))
    for one in s.subtopologies:
        for task in one.tasks:
            yield _without(s, (task,))


def _without(s: TaskScenario, gone: Collection[TaskId] | Iterator[TaskId]) -> TaskScenario:
    """Return the scenario without some tasks; the later ones of a subtopology move up, and so do
    subtopologies where one has none left."""
    left = {*gone}
    new: dict[TaskId, TaskId] = {}
    subtopologies: list[Subtopology] = []
    names: dict[str, str] = {}
    for one in s.subtopologies:
        kept = [task for task in one.tasks if task not in left]
        if not kept and one.racks:
            continue
        name = names[one.id] = str(len(subtopologies))
        new |= {task: TaskId(name, at) for at, task in enumerate(kept)}
        racks = tuple(one.racks[task.partition] for task in kept)
        subtopologies.append(replace(one, id=name, racks=racks))
    clients = {client.id: _with_tasks(client, new) for client in everyone_in(s)}
    return each_client(replace(s, subtopologies=tuple(subtopologies)), clients, subtopologies=names)


def _with_tasks(client: ScenarioClient, new: Mapping[TaskId, TaskId]) -> ScenarioClient:
    active: Tasks = tuple(new[task] for task in client.active if task in new)
    copies = tuple(Copy(new[task], lag) for task, lag in client.copies if task in new)
    return replace(client, active=active, copies=copies)


def _fewer_copies(s: TaskScenario) -> Iterator[TaskScenario]:
    for client in everyone_in(s):
        for active in fewer(client.active):
            yield _changed(s, replace(client, active=tuple(active)))
        for copies in fewer(client.copies):
            yield _changed(s, replace(client, copies=tuple(copies)))
        if any(copy.lag for copy in client.copies):
            yield _changed(s, replace(client, copies=tuple(Copy(c.task) for c in client.copies)))


def _changed(s: TaskScenario, client: ScenarioClient) -> TaskScenario:
    return each_client(s, {client.id: client})


def _plainer_clients(s: TaskScenario) -> Iterator[TaskScenario]:
    everyone = everyone_in(s)
    plain: dict[str, dict[str, object]] = {
        "threads": {"threads": 1},
        "tags": {"tags": {}},
        "rack": {"rack": None},
        "process": {"process": ""},
    }
    for name, changes in plain.items():
        if name == "tags" and s.configs.tags:
            continue
        yield each_client(s, {c.id: replace(c, **changes) for c in everyone})  # type: ignore[arg-type]
    for client in everyone:
        for name, changes in plain.items():
            if name == "tags":  # all processes have those that are set, or none
                continue
            yield _changed(s, replace(client, **changes))  # type: ignore[arg-type]
        if client.threads > 2:
            yield _changed(s, replace(client, threads=2))
        if not client.active and not client.copies and not client.started:
            yield _changed(s, replace(client, started=True))


def _plainer_settings(s: TaskScenario) -> Iterator[TaskScenario]:
    configs, plain = s.configs, TaskConfigs(recovery_lag=0)
    for count in range(configs.standbys):
        yield replace(s, configs=replace(configs, standbys=count))
    if configs.warmups != plain.warmups:
        yield replace(s, configs=replace(configs, warmups=plain.warmups))
    if configs.recovery_lag:
        yield replace(s, configs=replace(configs, recovery_lag=0))
    if configs.tags:
        untagged = each_client(s, {c.id: replace(c, tags={}) for c in everyone_in(s)})
        yield replace(untagged, configs=replace(configs, tags=()))
    if configs.rack_strategy is not RackStrategy.NONE:
        yield replace(s, configs=replace(configs, rack_strategy=RackStrategy.NONE))
    if s.slow > 1:
        yield replace(s, slow=1)


def _plainer_subtopologies(s: TaskScenario) -> Iterator[TaskScenario]:
    for at, one in enumerate(s.subtopologies):
        for changed in (
            replace(one, racks=((),) * len(one.racks)),
            replace(one, end=END),
            *(replace(one, store=store) for store in (StoreKind.NONE, StoreKind.LOGGED)[: _rank(one.store)]),
        ):
            if changed != one:
                yield replace(s, subtopologies=(*s.subtopologies[:at], changed, *s.subtopologies[at + 1 :]))
    if len(s.subtopologies) > 1:
        first, *rest = s.subtopologies
        for other in rest:
            yield _joined(s, first, other)


def _rank(store: StoreKind) -> int:
    """Return how many kinds of stores are plainer."""
    return (StoreKind.NONE, StoreKind.LOGGED, StoreKind.MEMORY).index(store)


def _joined(s: TaskScenario, kept: Subtopology, gone: Subtopology) -> TaskScenario:
    """Return the scenario in which the tasks of one subtopology follow those of another."""
    count = len(kept.racks)
    new = {task: task for one in s.subtopologies for task in one.tasks}
    new |= {task: TaskId(kept.id, count + task.partition) for task in gone.tasks}
    clients = {client.id: _with_tasks(client, new) for client in everyone_in(s)}
    joined = replace(kept, racks=(*kept.racks, *gone.racks))
    subtopologies = tuple(
        joined if one.id == kept.id else one for one in s.subtopologies if one.id != gone.id
    )
    changed = each_client(replace(s, subtopologies=subtopologies), clients, subtopologies={gone.id: kept.id})
    return _without(changed, ())


Thing = tuple[str, object]


def _things(s: TaskScenario) -> list[Thing]:
    return [
        *(("client", client.id) for client in s.clients),
        *(("task", task) for one in s.subtopologies for task in one.tasks),
        *(("active", (client.id, task)) for client in everyone_in(s) for task in client.active),
        *(("copy", (client.id, copy.task)) for client in everyone_in(s) for copy in client.copies),
    ]


def _fewer_at_once(s: TaskScenario) -> Iterator[TaskScenario]:
    """Yield two things at once, then several at random: what cannot go alone may go with another."""
    things = _things(s)
    if len(things) <= MAX_PAIRED:
        yield from (_without_things(s, pair) for pair in combinations(things, 2))
    if len(things) > 2:
        draw = random.Random(repr(s.size))
        for number in range(TRIES):
            yield _without_things(s, draw.sample(things, min(2 + number % 3, len(things))))


def _without_things(s: TaskScenario, gone: Collection[Thing]) -> TaskScenario:
    def changed(client: ScenarioClient) -> ScenarioClient:
        return replace(
            client,
            active=tuple(t for t in client.active if ("active", (client.id, t)) not in gone),
            copies=tuple(c for c in client.copies if ("copy", (client.id, c.task)) not in gone),
        )

    kept = each_client(s, {client.id: changed(client) for client in everyone_in(s)})
    kept = replace(kept, clients=tuple(c for c in kept.clients if ("client", c.id) not in gone))
    return _without(kept, [task for task in _tasks(s) if ("task", task) in gone])


def _tasks(s: TaskScenario) -> Iterator[TaskId]:
    return (task for one in s.subtopologies for task in one.tasks)


def _moved(s: TaskScenario) -> Iterator[TaskScenario]:
    """Yield clients in another order, where there are few."""
    if len(s.clients) <= 4:
        for one, other in combinations(range(len(s.clients)), 2):
            order = [*s.clients]
            order[one], order[other] = order[other], order[one]
            if [c.id for c in order] == sorted(c.id for c in order):
                yield replace(s, clients=tuple(order))


def _changing(reduce: Reduction[TaskScenario]) -> Reduction[TaskScenario]:
    """Return a reduction without what leaves a scenario as it is, which would be tried for ever, or without
    a task, which nobody takes for an application."""
    return lambda s: (smaller for smaller in reduce(s) if smaller != s and smaller.size[1])


REDUCTIONS: tuple[Reduction[TaskScenario], ...] = tuple(
    map(
        _changing,
        (  # the boldest first
            _fewer_rounds,
            _fewer_clients,
            _fewer_subtopologies,
            _fewer_tasks,
            _fewer_events,
            _fewer_copies,
            _plainer_settings,
            _plainer_clients,
            _plainer_subtopologies,
            _fewer_at_once,
            _moved,
        ),
    )
)


def _plainly_named(s: TaskScenario) -> Iterator[TaskScenario]:
    """Yield clients A, B, C in order of appearance."""
    ids = dict.fromkeys(
        name for client in everyone_in(s) for name in filter(None, (client.id, client.process))
    )
    plain = {old: chr(ord("A") + i) if i < 26 else f"A{i}" for i, old in enumerate(ids)}
    named = renamed_clients(s, plain)
    if named != s:
        yield named
