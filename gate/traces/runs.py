"""Runs of the group that break a clause, on disk: one JSON file each, readable, editable, replayable.

``gate/traces/schemas/run.schema.json`` describes the file. Setup, clause, events and loop are what is
replayed; the steps are a recording to read, and everything else tells where it came from. Files of this kind
lie beside the counterexamples of assignors (``gate.traces.counterexamples``) and are told from them by their
field ``kind``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rebalance.explore.groups.runs import FOR_EVER, SavedRun
from rebalance.gate.targets.plugged import Plugged, plugged
from rebalance.gate.targets.resolve import TargetError
from rebalance.gate.traces.counterexamples import field_of, is_kind, read_as
from rebalance.gate.traces.files import SUITE, NewerSchema, TraceError, dump, write
from rebalance.model.assignors import NAMES
from rebalance.model.bugs.decisions import DECISIONS
from rebalance.model.bugs.switches import SWITCHES
from rebalance.model.machine import NOBODY, Event
from rebalance.model.protocol.group import machine
from rebalance.model.protocol.setup import AssignorFactory, Consumer, ConsumerConfig, Setup, letter
from rebalance.model.protocol.state import Parts, Topics, each, union
from rebalance.model.steps import Step, steps
from rebalance.properties.group.clauses import CLAUSES

KIND = "group run"
SCHEMA = 1
"""Raised when older readers would misread the file."""


# -- the file ------------------------------------------------------------------------------------------


def to_text(run: SavedRun) -> str:
    """The file. What a reader wants to know comes first, the recording last."""
    clause = CLAUSES[run.clause]
    document = {
        "schema": SCHEMA,
        "kind": KIND,
        "suite": SUITE,
        "suite_version": run.suite_version,
        "clause": clause.id,
        "level": clause.level.value,
        "rule": clause.sentence,
        "source": clause.source,
        "sentence": run.sentence,
        "origin": dict(run.origin),
        "setup": setup_out(run.setup),
        "events": [event_out(event) for event in run.events],
        **({} if run.loop is None else {"loop": run.loop}),
        "steps": [step_out(step) for step in steps(machine(run.setup), run.events)],
    }
    return dump(document) + "\n"


def run_id(run: SavedRun) -> str:
    """Eight hexadecimal digits that follow from what is replayed."""
    played = [run.clause, setup_out(run.setup), [event_out(e) for e in run.events], run.loop]
    text = json.dumps(played, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def save(run: SavedRun, directory: Path) -> Path:
    """Write the run as ``<id>.json``, replacing an equal one. Raises OSError."""
    directory.mkdir(parents=True, exist_ok=True)
    return write(directory / f"{run_id(run)}.json", to_text(run))


def is_run(path: Path) -> bool:
    """Whether a file says that it is a run of the group; false for whatever cannot be read."""
    return is_kind(KIND, path)


def load(path: Path) -> SavedRun:
    """The run in a file.

    Raises ``NewerSchema`` for one of a newer suite, ``TraceError`` for all else that is wrong with it.
    """
    return replace(read_as(_parse, path), path=path)


def _parse(data: Any) -> SavedRun:
    if not isinstance(data, dict) or data.get("kind") != KIND:
        raise TraceError(f"not a run of the group: its field 'kind' is not {KIND!r}")
    schema = field_of(data, "schema", int)
    if schema > SCHEMA:
        raise NewerSchema(f"has schema {schema}, this suite reads up to {SCHEMA}: use a newer suite")
    clause = field_of(data, "clause", str)
    if clause not in CLAUSES:
        raise TraceError(f"clause {clause!r} is unknown; known: {', '.join(CLAUSES)}")
    setup = setup_in(field_of(data, "setup", dict))
    events = tuple(
        event_in(event, number, setup) for number, event in enumerate(field_of(data, "events", list), 1)
    )
    loop = field_of(data, "loop", int, -1)
    if not -1 <= loop <= len(events):
        raise TraceError(f"loop is {loop}, expected the number of events before it, 0 to {len(events)}")
    if loop >= 0 and clause not in FOR_EVER:
        raise TraceError(f"a run with a loop is about {' or '.join(FOR_EVER)}, not about {clause}")
    return SavedRun(
        setup=setup,
        clause=clause,
        events=events,
        loop=None if loop < 0 else loop,
        sentence=field_of(data, "sentence", str, ""),
        origin=field_of(data, "origin", dict, {}),
        suite_version=field_of(data, "suite_version", str, ""),
    )


def step_out(step: Step) -> dict[str, Any]:
    """A step for a trace file or a report."""
    return {
        "step": step.number,
        "what": step.what,
        "seen": list(step.seen),
        "members": {
            owner.name: {"generation": owner.generation, "owns": list(owner.owns)}
            | ({"life": owner.life} if owner.life else {})
            for owner in step.owners
        },
    }


def event_out(event: Event) -> dict[str, str]:
    """An event as JSON, without what it does not have."""
    document = {"action": event.action}
    if event.who != NOBODY:
        document["who"] = letter(event.who)
    if event.choice:
        document["choice"] = event.choice
    return document


def event_in(data: Any, number: int, setup: Setup) -> Event:
    """The inverse of ``event_out``. Raises TraceError."""
    where = f"events[{number - 1}]."
    if not isinstance(data, dict):
        raise TraceError(f"field '{where[:-1]}' is {json.dumps(data)[:60]}, expected an object")
    who = field_of(data, "who", str, "", where)
    names = {letter(slot): slot for slot in setup.slots}
    if who and who not in names:
        raise TraceError(f"field '{where}who' is {who!r}; the members are {', '.join(names)}")
    action = field_of(data, "action", str, where=where)
    return Event(action, names.get(who, NOBODY), field_of(data, "choice", str, "", where))


# -- the setup -----------------------------------------------------------------------------------------


def setup_out(setup: Setup) -> dict[str, Any]:
    """Everything in a setup as JSON values: partitions and topics by name, sets as sorted lists.

    Raises ValueError for a setup whose partitions are not numbered topic by topic, or with a plug that has
    no name.
    """
    numbers = [number for parts in setup.topics for number in each(parts)]
    if numbers != list(range(len(numbers))):
        raise ValueError("partitions have to be numbered topic by topic")
    names = _topic_names(len(setup.topics))
    document: dict[str, Any] = {
        "members": [_consumer_out(letter(s), c, names) for s, c in enumerate(setup.consumers)],
        "topics": {name: len(each(parts)) for name, parts in zip(names, setup.topics, strict=True)},
        "exist": setup.spell(setup.exist).split() if setup.exist else [],
        "faults": list(setup.faults),
        "budget": setup.budget,
        "coordinator": sorted(setup.coordinator),
        "max_size": setup.max_size,
        "naming": setup.naming,
        "steps": setup.steps,
    }
    if setup.racks:
        document["racks"] = [list(racks) for racks in setup.racks]
    if isinstance(setup.factory, Plugged):
        document["assignor"] = {"target": setup.factory.target, "place": setup.factory.replaces}
    elif setup.factory is not Setup.factory:
        raise ValueError("this setup has a plug without a name")
    return document


def _topic_names(count: int) -> list[str]:
    return ["t"] if count == 1 else [f"t{number}" for number in range(count)]


def _consumer_out(name: str, consumer: Consumer, topics: Sequence[str]) -> dict[str, Any]:
    document: dict[str, Any] = {
        "name": name,
        "stages": [_runs_out(stage) for stage in consumer.stages],
        "subscriptions": [[topics[t] for t in each(some)] for some in consumer.subscriptions],
    }
    if consumer.instance is not None:
        document["instance"] = consumer.instance
    if consumer.rack is not None:
        document["rack"] = consumer.rack
    return document


def _runs_out(stage: ConsumerConfig) -> dict[str, Any]:
    return {
        "assignors": list(stage.assignors),
        "decisions": sorted(stage.decisions),
        "switches": list(stage.switches),
        "version": stage.version,
        "tells": stage.tells,
        **({"upgrade_from": True} if stage.upgrade_from else {}),
    }


def setup_in(data: Mapping[str, Any]) -> Setup:
    """The inverse of ``setup_out``. Raises TraceError that names the field."""
    topics, parts, at = field_of(data, "topics", dict, where="setup."), list[Parts](), 0
    for name in topics:
        count = field_of(topics, name, int, where="setup.topics.")
        if not 1 <= count <= 100:
            raise TraceError(f"field 'setup.topics.{name}' is {count}, expected 1 to 100 partitions")
        parts.append(Parts((1 << count) - 1 << at))
        at += count
    names = _topic_names(len(parts))
    if list(topics) != names or not parts:
        raise TraceError(
            f"field 'setup.topics' names {', '.join(topics)}, expected {', '.join(names) or 't'}"
        )
    plug = _plug(field_of(data, "assignor", dict, {}, "setup."))
    members = field_of(data, "members", list, where="setup.")
    if not members:
        raise TraceError("field 'setup.members' is empty")
    setup = Setup(
        consumers=tuple(_consumer_in(one, f"setup.members[{n}].", names) for n, one in enumerate(members)),
        topics=tuple(parts),
        exist=Parts(0),
        faults=_texts(data, "faults", "setup."),
        budget=_natural(data, "budget", "setup.", 0),
        coordinator=frozenset(_known(data, "coordinator", "setup.", DECISIONS)),
        max_size=_natural(data, "max_size", "setup.", 0) or None
        if data.get("max_size") is not None
        else None,
        naming=_one_of(data, "naming", ("every", "given")),
        steps=_one_of(data, "steps", ("atomic", "fine")),
        racks=tuple(tuple(str(r) for r in racks) for racks in field_of(data, "racks", list, [], "setup.")),
        **({"factory": plug} if plug else {}),
    )
    numbers = {str(setup.partition(number)): number for number in range(at)}
    exist = _texts(data, "exist", "setup.")
    if unknown := [name for name in exist if name not in numbers]:
        raise TraceError(f"field 'setup.exist' names {unknown[0]!r}; the partitions are {', '.join(numbers)}")
    setup = replace(setup, exist=union([1 << numbers[name] for name in exist]))
    try:
        machine(setup)
    except ValueError as error:
        raise TraceError(f"setup: {error}") from error
    return setup


def _plug(data: Mapping[str, Any]) -> AssignorFactory | None:
    if not data:
        return None
    target = field_of(data, "target", str, where="setup.assignor.")
    try:
        plug = plugged(target)
    except TargetError as error:
        raise TraceError(f"field 'setup.assignor.target': {error}") from error
    return replace(plug, replaces=field_of(data, "place", str, plug.replaces, "setup.assignor."))


def _consumer_in(data: Any, where: str, topics: Sequence[str]) -> Consumer:
    if not isinstance(data, dict):
        raise TraceError(f"field '{where[:-1]}' is not an object")
    stages = field_of(data, "stages", list, where=where)
    subscriptions = field_of(data, "subscriptions", list, where=where)
    if not stages or not subscriptions:
        raise TraceError(f"fields '{where}stages' and '{where}subscriptions' cannot be empty")
    for some in subscriptions:
        if not isinstance(some, list) or not some or any(name not in topics for name in some):
            raise TraceError(
                f"field '{where}subscriptions' has {json.dumps(some)[:40]}; topics are {', '.join(topics)}"
            )
    return Consumer(
        tuple(_runs_in(stage, f"{where}stages[{n}].") for n, stage in enumerate(stages)),
        tuple(Topics(sum(1 << topics.index(name) for name in dict.fromkeys(some))) for some in subscriptions),
        _natural(data, "instance", where, 0) if data.get("instance") is not None else None,
        field_of(data, "rack", str, "", where) or None,
    )


def _runs_in(data: Any, where: str) -> ConsumerConfig:
    if not isinstance(data, dict):
        raise TraceError(f"field '{where[:-1]}' is not an object")
    assignors = _known(data, "assignors", where, NAMES)
    if not assignors:
        raise TraceError(f"field '{where}assignors' is empty")
    return ConsumerConfig(
        assignors=assignors,
        decisions=frozenset(_known(data, "decisions", where, DECISIONS)),
        switches=_known(data, "switches", where, SWITCHES),
        version=_natural(data, "version", where, 3),
        tells=field_of(data, "tells", bool, True, where),
        upgrade_from=field_of(data, "upgrade_from", bool, False, where),
    )


def _texts(data: Mapping[str, Any], name: str, where: str) -> tuple[str, ...]:
    values = field_of(data, name, list, [], where)
    for value in values:
        if not isinstance(value, str):
            raise TraceError(f"field '{where}{name}' has {json.dumps(value)[:60]}, expected strings")
    return tuple(values)


def _known(data: Mapping[str, Any], name: str, where: str, known: Any) -> tuple[str, ...]:
    values = _texts(data, name, where)
    if unknown := [value for value in values if value not in known]:
        raise TraceError(f"field '{where}{name}' has {unknown[0]!r}; known are {', '.join(known)}")
    return values


def _natural(data: Mapping[str, Any], name: str, where: str, default: int) -> int:
    value = field_of(data, name, int, default, where)
    if value < 0:
        raise TraceError(f"field '{where}{name}' is {value}, expected 0 or more")
    return value


def _one_of(data: Mapping[str, Any], name: str, choices: Sequence[str]) -> str:
    value = field_of(data, name, str, choices[0], "setup.")
    if value not in choices:
        raise TraceError(f"field 'setup.{name}' is {value!r}, expected {' or '.join(choices)}")
    return value
