"""Runs of the group that break a clause, on disk: one JSON file each, readable, editable, replayable.

``traces/schemas/run.schema.json`` describes the file. Setup, clause, events and loop are what is
replayed; the steps are a recording to read, and everything else tells where it came from. Files of this kind
lie beside the counterexamples of assignors (``gate.search.counterexamples``) and are told from them by their
field ``kind``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from rebalance_verifier.base import saved as files
from rebalance_verifier.base.saved import SUITE, TraceError, dump
from rebalance_verifier.explore.groups.runs import FOR_EVER, SavedRun
from rebalance_verifier.gate.targets import trust
from rebalance_verifier.gate.targets.hosts.hosted import TargetError
from rebalance_verifier.gate.targets.plugged import Plugged, plugged
from rebalance_verifier.model import codec
from rebalance_verifier.model.bugs.decisions import DECISIONS
from rebalance_verifier.model.bugs.switches import SWITCHES
from rebalance_verifier.model.group.parts import Parts, Topics, each, union
from rebalance_verifier.model.group.setup import AssignorFactory, Consumer, ConsumerConfig, Setup, letter
from rebalance_verifier.model.machine import NOBODY, Event, StepOwner
from rebalance_verifier.model.protocols import ASSIGNORS, FAULTS, machine
from rebalance_verifier.model.steps import Step, steps
from rebalance_verifier.properties.group.clauses import CLAUSES
from rebalance_verifier.properties.group.own import OWN, clause_named

KIND, CODE_KIND = "group run", "code run"
SCHEMA = 1
"""Raised when older readers would misread the file."""


_BRIEF = (
    *("who", "choice", "upgrade_from", "leaves", "instance"),
    *(
        "lowers",
        "rack",
        "racks",
        "moved",
        "assignor",
        "group_protocol",
        "policy",
        "rollout",
        "warmups",
        "patterns",
    ),
)
"""Fields that are left out where they are at their default."""


@dataclass(frozen=True, slots=True)
class _SavedEvent:
    """An event, with its member's letter."""

    action: str
    who: str = ""
    choice: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _SavedMember:
    """A consumer, with its letter; ``subscriptions`` name topics, and ``patterns`` those that match the
    pattern beside each."""

    name: str = ""
    stages: tuple[ConsumerConfig, ...]
    subscriptions: tuple[tuple[str, ...], ...]
    instance: int | None = None
    rack: str | None = None
    patterns: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _SavedSetup:
    """A setup with everything by name: topic -> number of partitions, partitions as ``t-0``.

    ``assignor`` is an assignor of somebody's own, ``target``, and the reference one in whose ``place`` it is.
    """

    members: tuple[_SavedMember, ...]
    topics: Mapping[str, int]
    exist: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    budget: int = 0
    coordinator: frozenset[str] = frozenset()
    max_size: int | None = None
    lowers: bool = False
    naming: Literal["every", "given"] = "every"
    steps: Literal["atomic", "fine"] = "atomic"
    racks: tuple[tuple[str, ...], ...] = ()
    moved: tuple[tuple[str, ...], ...] = ()
    policy: str = "bidirectional"
    rollout: str = "any"
    warmups: int = 0
    assignor: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class _SavedOwner:
    """State of a member after a step."""

    generation: int | None = None
    owns: tuple[str, ...] = ()
    life: str = ""


@dataclass(frozen=True, slots=True)
class _SavedStep:
    """Record of a step, for a run that only Kafka's code can play again."""

    what: str
    seen: tuple[str, ...] = ()
    members: Mapping[str, _SavedOwner] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Saved:
    """Content of the file."""

    clause: str
    sentence: str = ""
    origin: Mapping[str, Any] = field(default_factory=dict)
    setup: Any
    events: tuple[_SavedEvent, ...]
    loop: int | None = None
    suite_version: str = ""
    on: str = ""
    peace: int | None = None
    steps: Any = ()


# -- the file ------------------------------------------------------------------------------------------


def to_text(run: SavedRun) -> str:
    """Return the file. What a reader wants to know comes first, the recording last."""
    clause = clause_named(run.clause)
    document = {
        "schema": SCHEMA,
        "kind": CODE_KIND if run.on else KIND,
        "suite": SUITE,
        "suite_version": run.suite_version,
        "clause": clause.id,
        "level": clause.level.value,
        "rule": clause.sentence,
        "source": clause.source,
        "sentence": run.sentence,
        "origin": dict(run.origin),
        **({"on": run.on} if run.on else {}),
        "setup": setup_out(run.setup),
        "events": _events_out(run),
        **({} if run.loop is None else {"loop": run.loop}),
        **({} if run.peace is None else {"peace": run.peace}),
        "steps": [step_out(step) for step in steps_of(run)],
    }
    return dump(document) + "\n"


def steps_of(run: SavedRun) -> tuple[Step, ...]:
    """Return what happens in a run: as it was recorded, or as the model plays it. Raises
    CannotHappenError."""
    return run.recorded if run.on else steps(machine(run.setup), run.events)


def run_id(run: SavedRun) -> str:
    """Return eight hexadecimal digits that follow from what is replayed."""
    played = [run.clause, setup_out(run.setup), _events_out(run), run.loop, *([run.on] if run.on else [])]
    text = json.dumps(played, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def save(run: SavedRun, directory: Path) -> Path:
    """Write the run as ``<id>.json``, replacing an equal one, and sign what it ran. Raises OSError."""
    if run.path is None:
        for code in code_in({"clause": run.clause, "setup": setup_out(run.setup)}):
            trust.sign(code)
    return files.save(directory, f"{run_id(run)}.json", to_text(run))


def code_in(data: Mapping[str, Any]) -> list[str]:
    """Return the modules that a run imports as soon as it is read or played: its assignor, its invariant."""
    clause, setup = data.get("clause"), data.get("setup")
    plug = setup.get("assignor") if isinstance(setup, dict) else None
    target = plug.get("target") if isinstance(plug, dict) else None
    own = clause.removeprefix(OWN) if isinstance(clause, str) and clause.startswith(OWN) else None
    return [code for code in (target, own) if isinstance(code, str)]


def _parse(data: dict[str, Any]) -> SavedRun:
    read = codec.from_json(_Saved, data)
    try:
        clause_named(read.clause)
    except KeyError:
        _known("clause", [read.clause], CLAUSES)
    setup = setup_in(read.setup)
    letters = {letter(slot): slot for slot in setup.slots} | {"": NOBODY}
    for number, event in enumerate(read.events):
        _known(f"events[{number}].who", [event.who], letters)
    if read.loop is not None and not 0 <= read.loop <= len(read.events):
        expected = f"the number of events before it, 0 to {len(read.events)}"
        raise codec.unexpected("loop", expected, read.loop)
    if read.loop is not None and read.clause not in FOR_EVER:
        raise TraceError(f"a run with a loop is about {' or '.join(FOR_EVER)}, not about {read.clause}")
    events = tuple(Event(event.action, letters[event.who], event.choice) for event in read.events)
    return SavedRun(
        setup=setup,
        clause=read.clause,
        events=events,
        on=read.on,
        recorded=_steps_in(events, read.steps) if read.on else (),
        peace=read.peace,
        loop=read.loop,
        sentence=read.sentence,
        origin=read.origin,
        suite_version=read.suite_version,
    )


FILE = files.FileKind("a run of the group", SCHEMA, _parse, (KIND, CODE_KIND))
load = FILE.load


def step_out(step: Step) -> dict[str, Any]:
    """Return a step for a trace file or a report."""
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


def _steps_in(events: Sequence[Event], data: Any) -> tuple[Step, ...]:
    """Return the inverse of ``step_out``, for each of ``events``. Raises TraceError."""
    read = codec.from_json(tuple[_SavedStep, ...], data, "steps")
    return tuple(
        Step(
            number=number, event=event, fault=event.action in FAULTS, what=step.what, seen=step.seen,
            owners=tuple(StepOwner(n, m.life, m.generation, m.owns) for n, m in step.members.items()),
        )
        for number, (event, step) in enumerate(zip(events, read, strict=False), 1)
    )  # fmt: skip


def _events_out(run: SavedRun) -> list[dict[str, str]]:
    events = [_SavedEvent(e.action, "" if e.who == NOBODY else letter(e.who), e.choice) for e in run.events]
    written: list[dict[str, str]] = codec.to_json(events, left_out=_BRIEF)
    return written


# -- the setup -----------------------------------------------------------------------------------------


def setup_out(setup: Setup) -> dict[str, Any]:
    """Return everything in a setup as JSON values: partitions and topics by name, sets as sorted lists.

    Raises ValueError for a setup whose partitions are not numbered topic by topic, or with a plug that has
    no name.
    """
    numbers = [number for parts in setup.topics for number in each(parts)]
    if numbers != list(range(len(numbers))):
        raise ValueError("partitions have to be numbered topic by topic")
    if not isinstance(setup.factory, Plugged) and setup.factory is not Setup.factory:
        raise ValueError("this setup has a plug without a name")
    names = _topic_names(len(setup.topics))
    saved = _SavedSetup(
        members=tuple(
            _SavedMember(
                name=letter(slot),
                stages=consumer.stages,
                subscriptions=tuple(tuple(names[t] for t in each(some)) for some in consumer.subscriptions),
                instance=consumer.instance,
                rack=consumer.rack,
                patterns=tuple(tuple(names[t] for t in each(some)) for some in consumer.patterns),
            )
            for slot, consumer in enumerate(setup.consumers)
        ),
        topics={name: len(each(parts)) for name, parts in zip(names, setup.topics, strict=True)},
        exist=tuple(setup.spell(setup.exist).split()) if setup.exist else (),
        faults=setup.faults,
        budget=setup.budget,
        coordinator=setup.coordinator,
        max_size=setup.max_size,
        lowers=setup.lowers,
        naming=setup.naming,  # type: ignore[arg-type]
        steps=setup.steps,  # type: ignore[arg-type]
        racks=setup.racks,
        policy=setup.policy,
        rollout=setup.rollout,
        warmups=setup.warmups,
        moved=setup.moved,
        assignor={"target": setup.factory.target, "place": setup.factory.replaces}
        if isinstance(setup.factory, Plugged)
        else None,
    )
    written: dict[str, Any] = codec.to_json(saved, left_out=_BRIEF)
    return written


def _topic_names(count: int) -> list[str]:
    return ["t"] if count == 1 else [f"t{number}" for number in range(count)]


def setup_in(data: Any) -> Setup:
    """Return the inverse of ``setup_out``. Raises TraceError that names the path in the file."""
    saved = codec.from_json(_SavedSetup, data, "setup")
    topics, at = list[Parts](), 0
    for name, count in saved.topics.items():
        if not 1 <= count <= 100:
            raise codec.unexpected(f"setup.topics.{name}", "1 to 100 partitions", count)
        topics.append(Parts((1 << count) - 1 << at))
        at += count
    names = _topic_names(len(topics))
    if list(saved.topics) != names or not topics:
        raise codec.unexpected("setup.topics", ", ".join(names) or "t", list(saved.topics))
    for name, value in (
        ("budget", saved.budget),
        ("max_size", saved.max_size or 0),
        ("warmups", saved.warmups),
    ):
        if value < 0:
            raise codec.unexpected(f"setup.{name}", "0 or more", value)
    _known("setup.coordinator", saved.coordinator, DECISIONS)
    setup = Setup(
        consumers=tuple(_consumer(m, f"setup.members[{n}]", names) for n, m in enumerate(saved.members)),
        topics=tuple(topics),
        exist=Parts(0),
        faults=saved.faults,
        budget=saved.budget,
        coordinator=saved.coordinator,
        max_size=saved.max_size or None,
        lowers=saved.lowers,
        naming=saved.naming,
        steps=saved.steps,
        racks=saved.racks,
        policy=saved.policy,
        rollout=saved.rollout,
        warmups=saved.warmups,
        moved=saved.moved,
    )
    if saved.assignor:
        setup = replace(setup, factory=_plug(saved.assignor))
    if not setup.consumers:
        raise codec.wrong("setup.members", "is empty")
    numbers = {str(setup.partition(number)): number for number in range(at)}
    _known("setup.exist", saved.exist, numbers)
    setup = replace(setup, exist=union([1 << numbers[name] for name in saved.exist]))
    try:
        machine(setup)
    except ValueError as error:
        raise codec.wrong("setup", str(error)) from error
    return setup


def _plug(saved: Mapping[str, str]) -> AssignorFactory:
    if "target" not in saved:
        raise codec.wrong("setup.assignor.target", "is missing")
    try:
        plug = plugged(saved["target"])
    except TargetError as error:
        raise codec.wrong("setup.assignor.target", str(error)) from error
    return replace(plug, replaces=saved.get("place", plug.replaces))


def _consumer(saved: _SavedMember, where: str, topics: Sequence[str]) -> Consumer:
    for name in ("stages", "subscriptions"):
        if not getattr(saved, name):
            raise codec.wrong(f"{where}.{name}", "is empty")
    for number, stage in enumerate(saved.stages):
        inside = f"{where}.stages[{number}]"
        _known(f"{inside}.assignors", stage.assignors, ASSIGNORS)
        _known(f"{inside}.decisions", stage.decisions, DECISIONS)
        _known(f"{inside}.switches", stage.switches, SWITCHES)
        if not stage.assignors:
            raise codec.wrong(f"{inside}.assignors", "is empty")
        if stage.version < 0:
            raise codec.unexpected(f"{inside}.version", "0 or more", stage.version)
    listed: dict[str, tuple[Topics, ...]] = {}
    for name in ("subscriptions", "patterns"):
        for number, some in enumerate(getattr(saved, name)):
            _known(f"{where}.{name}[{number}]", some, topics)
        bits = (sum(1 << topics.index(one) for one in set(some)) for some in getattr(saved, name))
        listed[name] = tuple(map(Topics, bits))
    consumer = Consumer(stages=saved.stages, instance=saved.instance, rack=saved.rack or None, **listed)
    for number, (names, pattern) in enumerate(consumer.choices):
        if not names | pattern:
            raise codec.wrong(f"{where}.subscriptions[{number}]", "is empty")
    return consumer


def _known(where: str, names: Iterable[str], known: Collection[str]) -> None:
    """Raises TraceError for a name that is none of those known."""
    for name in names:
        if name not in known:
            raise codec.unexpected(where, f"one of {', '.join(filter(None, known))}", name)
