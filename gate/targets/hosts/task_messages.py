"""The part of the stdio protocol that is about tasks: questions and answers to JSON objects and back.

A task is ``"0_1"``. Everything of a reply is checked here; whether tasks and clients exist is for the
clauses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from rebalance_verifier.base.processes.lines import (
    Garbage,
    Json,
    encode,
    field_of,
    of_kind,
    only_known,
    show,
    to_text,
)
from rebalance_verifier.gate.targets.hosts.messages import MAX_MEMBERS, request_line
from rebalance_verifier.model.tasks import (
    Application,
    ClientTasks,
    RackStrategy,
    StoreKind,
    Subtopology,
    TaskAssignment,
    TaskClient,
    TaskConfigs,
    TaskId,
    Tasks,
)
from rebalance_verifier.model.values import RebalanceProtocol
from rebalance_verifier.properties.assignors.task_calls import TaskAnswer, TaskQuestion

MAX_INDEX = 2**31 - 1


def tasks_request(seq: int, question: TaskQuestion, history: int = 0) -> bytes:
    """Ask for an assignment of tasks; the order of everything is kept."""
    application = question.application
    clients = ",".join([_client(client) for client in application.clients])
    about = _about(application.configs, application.subtopologies)
    return request_line(
        seq, f'"assign_tasks","protocol":"{question.protocol}",{about},"clients":[{clients}]', history
    )


@lru_cache(maxsize=1024)
def _about(configs: TaskConfigs, subtopologies: tuple[Subtopology, ...]) -> str:
    """Return the fields of settings and subtopologies, which most questions of a history share."""
    written = {
        "standbys": configs.standbys,
        "warmups": configs.warmups,
        "recovery_lag": configs.recovery_lag,
        "tags": configs.tags,
        "rack_strategy": configs.rack_strategy.value,
    }
    parts = [
        {"id": one.id, "store": one.store.value, "end": one.end, "racks": one.racks}
        | ({"topic": one.topic} if one.topic else {})
        for one in subtopologies
    ]
    return f'"configs":{encode(written)},"subtopologies":{encode(parts)}'


@lru_cache(maxsize=4096)
def _word(text: str) -> str:
    return encode(text)


@lru_cache(maxsize=4096)
def _keys(tasks: Tasks) -> tuple[str, ...]:
    return tuple([f"{encode(str(task))}:" for task in tasks])


@lru_cache(maxsize=4096)
def _list(tasks: Tasks) -> str:
    return encode([*map(str, tasks)])


def _client(client: TaskClient) -> str:
    name, process, lags = _word(client.id), _word(client.process), client.lags
    behind = ",".join([f"{key}{lag}" for key, lag in zip(_keys(tuple(lags)), lags.values(), strict=True)])
    head = f'{{"id":{name},"process":{process},"threads":{client.threads}'
    copies = f'"active":{_list(client.active)},"standby":{_list(client.standby)},"lags":{{{behind}}}'
    rack = "null" if client.rack is None else _word(client.rack)
    return f'{head},{copies},"tags":{encode(client.tags) if client.tags else "{}"},"rack":{rack}}}'


def decode_application(request: Json) -> tuple[RebalanceProtocol, Application]:
    """Return what `tasks_request` wrote; only what it wrote itself is read."""
    configs = request["configs"]
    application = Application(
        configs=TaskConfigs(
            standbys=configs["standbys"],
            warmups=configs["warmups"],
            recovery_lag=configs["recovery_lag"],
            tags=tuple(configs["tags"]),
            rack_strategy=RackStrategy(configs["rack_strategy"]),
        ),
        subtopologies=tuple(
            Subtopology(
                id=one["id"],
                store=StoreKind(one["store"]),
                racks=tuple(map(tuple, one["racks"])),
                end=one["end"],
                topic=one.get("topic", ""),
            )
            for one in request["subtopologies"]
        ),
        clients=tuple(
            TaskClient(
                id=one["id"],
                process=one["process"],
                threads=one["threads"],
                active=tuple(map(TaskId.parse, one["active"])),
                standby=tuple(map(TaskId.parse, one["standby"])),
                lags={TaskId.parse(task): lag for task, lag in one["lags"].items()},
                tags=one["tags"],
                rack=one["rack"],
            )
            for one in request["clients"]
        ),
    )
    return RebalanceProtocol(request["protocol"]), application


def encode_tasks(assignment: TaskAssignment, mutated: str | None) -> Json:
    """Return the result of ``assign_tasks``."""
    clients = [
        {"id": one.id, "active": list(map(str, one.active)), "standby": list(map(str, one.standby))}
        for one in assignment.clients
    ]
    result: Json = {"clients": clients, "followup": assignment.followup}
    return result if mutated is None else result | {"mutated": mutated}


def decode_tasks(result: Json) -> TaskAnswer:
    """Return the answer in a reply. Raises Garbage."""
    only_known(result, ("clients", "followup", "mutated"), "assign_tasks")
    given = of_kind(list, field_of(result, "clients", "assign_tasks"), "clients")
    if len(given) > MAX_MEMBERS:
        raise Garbage(f"clients: {len(given):,} of them, at most {MAX_MEMBERS:,} are read")
    clients = []
    for number, value in enumerate(given):
        where = f"clients[{number}]"
        one: Mapping[str, Any] = of_kind(dict, value, where)
        only_known(one, ("id", "active", "standby"), where)
        name = to_text(field_of(one, "id", where), where, "id")
        active, standby = (
            tuple([_task(text) for text in of_kind(list, one.get(kind, []), where, kind)])
            for kind in ("active", "standby")
        )
        clients.append(ClientTasks(name, active, standby))
    followup = of_kind(bool, result.get("followup", False), "followup")
    mutated = result.get("mutated")
    change = None if mutated is None else to_text(mutated, "mutated", limit=None)[:20_000]
    return TaskAnswer(TaskAssignment(tuple(clients), followup), change)


_KNOWN: dict[str, TaskId] = {}
"""Tasks by how they are spelled: most of a run are the same few."""


def _task(text: object) -> TaskId:
    if type(text) is str and text in _KNOWN:
        return _KNOWN[text]
    try:
        task = TaskId.parse(to_text(text, "task"))
    except ValueError as error:
        raise Garbage(f"{show(text)} is no task: write SUBTOPOLOGY_PARTITION, such as 0_1") from error
    if task.partition > MAX_INDEX:
        raise Garbage(f"{show(text)} is no task: partitions end with {MAX_INDEX:,}")
    if len(_KNOWN) < MAX_MEMBERS and len(str(text)) < 40:
        _KNOWN[str(text)] = task
    return task


# -- what Python assignors return --------------------------------------------------------------------------


def tasks_of(result: object) -> TaskAssignment:
    """Return what a Python task assignor has returned: a ``TaskAssignment``, or for each client its active
    tasks and its standbys, as a mapping or as ``(client, active, standby)``. Raises Garbage."""
    if isinstance(result, TaskAssignment):
        entries: Iterable[Any] = [(one.id, one.active, one.standby) for one in result.clients]
        followup = result.followup
    elif isinstance(result, Mapping):
        entries, followup = [_entry(client, value) for client, value in result.items()], False
    elif isinstance(result, Iterable) and not isinstance(result, str | bytes):
        entries, followup = result, False
    else:
        raise Garbage(f"assign_tasks returned {show(result)}, expected a TaskAssignment or a dict")
    clients = []
    for entry in entries:
        if not isinstance(entry, tuple | list) or len(entry) != 3:
            raise Garbage(f"assign_tasks returned {show(entry)}, expected (client, active, standby)")
        client, active, standby = entry
        name = to_text(client, "assign_tasks returned a client")
        clients.append(ClientTasks(name, _each(active, name, "active"), _each(standby, name, "standby")))
    return TaskAssignment(tuple(clients), bool(followup))


def _entry(client: object, value: object) -> tuple[object, object, object]:
    if isinstance(value, Mapping):
        return client, value.get("active", ()), value.get("standby", ())
    if isinstance(value, tuple | list) and len(value) == 2:
        return client, value[0], value[1]
    raise Garbage(f"tasks of {show(client)}: {show(value)}, expected (active, standby)")


def _each(tasks: object, client: str, kind: str) -> Tasks:
    if isinstance(tasks, str | bytes) or not isinstance(tasks, Iterable):
        raise Garbage(f"{kind} tasks of {show(client)}: expected an iterable of tasks, got {show(tasks)}")
    found = tuple([task if type(task) is TaskId else _loose(task) for task in tasks])
    # The order of a set depends on the hash seed; ours must not.
    return tuple(sorted(found)) if isinstance(tasks, set | frozenset) else found


def _loose(task: object) -> TaskId:
    if isinstance(task, tuple | list) and len(task) == 2:
        return _task(f"{task[0]}_{task[1]}")
    return _task(task)


def change_of(before: Application, after: Application) -> str | None:
    """Return what has been changed in an application that is a copy of ``before``, None if nothing."""
    for was, now in zip(before.clients, after.clients, strict=True):
        for name in ("lags", "tags"):
            if getattr(was, name) != getattr(now, name):
                return f"{name} of {was.id}"
    return None


def copy_of(application: Application) -> Application:
    """Return a copy whose mappings are its own: an assignor may be careless with them."""
    clients = tuple([replace(one, lags=dict(one.lags), tags=dict(one.tags)) for one in application.clients])
    return replace(application, clients=clients)
