"""The ownership chart of a run of the model: who owns what after each step, and the messages of each.

The run is played again on the model, as ``steps`` does. Two owners are two members of the group, as in the
clause ``group/owner``; one that was removed and goes on owning something is drawn as such.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from rebalance.explore.groups.runs import SavedRun
from rebalance.gate.cli.console.text import count
from rebalance.gate.report.diagram.diagram import (
    MOST_COLUMNS,
    MOST_LINES,
    MOST_MEMBERS,
    MOST_PARTITIONS,
    Away,
    DiagramColumn,
    EventMark,
    MessageArrow,
    OwnershipDiagram,
    OwnershipState,
    Row,
    bars,
    left_of,
    more,
    overlaps,
    stretches,
)
from rebalance.model.machine import NOBODY, Machine, State
from rebalance.model.protocol.describe import event_text
from rebalance.model.protocol.group import machine, participates
from rebalance.model.protocol.observations import Answered, Call, Callback, Expelled, Replaced, Threw
from rebalance.model.protocol.setup import letter
from rebalance.model.protocol.state import (
    NO_ID,
    ClusterState,
    Group,
    JoinOk,
    Life,
    Member,
    Records,
    Sync,
    SyncOk,
    SyncParked,
    Wire,
    each,
    union,
)
from rebalance.model.steps import Step, step

FIRST = 4
"""Steps from the start that are shown of a run that is too long."""

MOST_PLAYED = 50_000
"""Steps x members beyond which a run is drawn without being played again, which takes seconds."""

_CALLBACK = {Call.REVOKED: "revoked", Call.ASSIGNED: "assigned", Call.LOST: "lost"}
_API = {"join": "JoinGroup", "sync": "SyncGroup", "heartbeat": "Heartbeat", "commit": "OffsetCommit"}
_AT_COORDINATOR = {
    "rebalance timeout": "rebalance timeout of",
    "session expires": "session expires:",
    "sync refused": "refuses SyncGroup of",
    "join refused": "refuses JoinGroup of",
}
_ASKS = {
    "join": "JoinGroup",
    "join late": "JoinGroup",
    "join lost": "JoinGroup",
    "join unanswered": "JoinGroup",
    "heartbeat": "Heartbeat",
}


@dataclass(frozen=True)
class _PlayedStep:
    """One step with the states around it."""

    step: Step
    before: State
    after: State
    seen: tuple[Any, ...]


class _RunStates:
    """The states of one run, read by name."""

    def __init__(self, run: SavedRun, built: Machine) -> None:
        self.setup, self.built = run.setup, built

    def generation(self, state: State) -> int:
        return int(cast(Group, state[self.built.position["group"]]).generation)

    def member(self, state: State, slot: int) -> Member:
        return cast(Member, state[self.built.position[f"member {letter(slot)}"]])

    def wire(self, state: State, slot: int) -> Wire:
        return cast(Wire, state[self.built.position[f"wire {letter(slot)}"]])

    def held(self, state: State) -> dict[tuple[int, int], OwnershipState]:
        """(partition, slot) -> how it owns it."""
        found = {}
        for slot in self.setup.slots:
            me = self.member(state, slot)
            if me.owned:
                records = cast(Records, state[self.built.position[f"record {letter(slot)}"]])
                look = OwnershipState.OWNED if participates(me, records) else OwnershipState.REMOVED
                found.update({(p, slot): look for p in each(me.owned)})
        return found

    def unowned(self, state: State) -> list[int]:
        """The partitions that exist and that nobody owns, once there is a generation."""
        owned = union([self.member(state, slot).owned for slot in self.setup.slots])
        cluster = cast(ClusterState, state[self.built.position["cluster"]])
        return each(cluster.parts & ~owned) if self.generation(state) else []

    def away(self, state: State, slot: int) -> str:
        """Empty while it is at work."""
        me = self.member(state, slot)
        return "stuck" if me.stuck else "" if me.life is Life.UP else me.life.value


def of_run(run: SavedRun) -> OwnershipDiagram:
    """The run as a diagram, a column a step; of a long one the first steps and those up to the finding.

    Raises CannotHappenError when the model does not allow a step.
    """
    chosen = _chosen(len(run.recorded) if run.on else len(run.events), run.loop)
    if run.on:
        return _recorded(run, chosen)
    if len(run.events) * len(run.setup.consumers) > MOST_PLAYED:
        return _unplayed(run, chosen)
    built = machine(run.setup)
    group = _RunStates(run, built)
    scenes = list(_scenes(run, built, chosen))
    held = [group.held(scene.after) for scene in scenes]
    idle = [group.unowned(scene.after) if run.loop is not None else [] for scene in scenes]
    numbers = sorted({p for now in held for p, _ in now} | set(idle[-1] if idle else []))
    owners = {
        p: [{letter(s): look for (q, s), look in now.items() if q == p} for now in held] for p in numbers
    }
    shown = sorted(numbers, key=lambda p: not any(len(now) > 1 for now in owners[p]))
    for now, unowned in zip(held, idle, strict=True):
        now.update({(p, NOBODY): OwnershipState.NOBODY for p in unowned if p in idle[-1]})
    rows = [
        (p, slot)
        for p in shown[:MOST_PARTITIONS]
        for slot in list(dict.fromkeys(s for now in held for q, s in now if q == p))[:MOST_MEMBERS]
    ]
    names = {p: str(run.setup.partition(p)) for p in shown}
    members = _members(run, [slot for _, slot in rows if slot != NOBODY])
    return OwnershipDiagram(
        title=f"{run.clause}: {run.sentence}" if run.sentence else run.clause,
        columns=tuple(
            _columns(
                run, chosen, [(_sentence(s.step), s.step.fault, group.generation(s.after)) for s in scenes]
            )
        ),
        rows=tuple(Row(names[p], "" if slot == NOBODY else letter(slot)) for p, slot in rows),
        bars=bars([[now.get(row) for now in held] for row in rows]),
        overlaps=overlaps(
            (names[p], at, now) for p in shown[:MOST_PARTITIONS] for at, now in enumerate(owners[p])
        ),
        members=tuple(map(letter, members)),
        arrows=tuple(a for at, scene in enumerate(scenes) for a in _arrows(group, at, scene, members)),
        marks=tuple(m for at, scene in enumerate(scenes) for m in _marks(group, at, scene, members)),
        away=tuple(
            Away(letter(slot), start, end, text)
            for slot in members
            for text, start, end in stretches(group.away(scene.after, slot) for scene in scenes)
            if text
        ),
        loop=_loop(run, chosen),
        left_out=(
            *more(len(shown) - MOST_PARTITIONS, "more partition"),
            *more(len(run.setup.consumers) - len(members), "more member"),
            *left_of(len(run.events), len(chosen), "step"),
        ),
    )


def _chosen(total: int, loop: int | None) -> list[int]:
    """The steps to show, numbered from 0: where the run is too long, its start and what leads to its end."""
    if total <= MOST_COLUMNS:
        return list(range(total))
    rest = MOST_COLUMNS - FIRST
    end = total if loop is None else loop + rest - FIRST
    tail = min(max(end - rest, FIRST), total - rest)
    return [*range(FIRST), *range(tail, tail + rest)]


def _loop(run: SavedRun, chosen: Sequence[int]) -> tuple[int, int] | None:
    if run.loop is None:
        return None
    return sum(at < run.loop for at in chosen), len(chosen)


def _scenes(run: SavedRun, built: Machine, chosen: Sequence[int]) -> Iterator[_PlayedStep]:
    before, wanted = built.initial[0], frozenset(chosen)
    played = built.replay(run.events)
    for at, (event, (after, outcome)) in enumerate(zip(run.events, played, strict=True)):
        if at in wanted:
            now = step(built, at + 1, event, before, after, outcome.seen)
            yield _PlayedStep(now, before, after, outcome.seen)
        before = after


def _members(run: SavedRun, owning: Sequence[int]) -> list[int]:
    """Who has a line: all, or those that own something first."""
    return sorted(list(dict.fromkeys([*owning, *run.setup.slots]))[:MOST_LINES])


def _sentence(step: Step) -> str:
    return "; ".join((step.what, *step.seen))


def _columns(
    run: SavedRun, chosen: Sequence[int], contents: Sequence[tuple[str, bool, int | None]]
) -> Iterator[DiagramColumn]:
    before = -1
    for at, (what, fault, generation) in zip(chosen, contents, strict=True):
        last = run.loop is None and at == len(run.events) - 1
        yield DiagramColumn(
            label=str(at + 1),
            what=what,
            generation=generation or None,
            fault=fault,
            marked=last,
            skipped=at - before - 1,
        )
        before = at


def _arrows(group: _RunStates, at: int, scene: _PlayedStep, members: Sequence[int]) -> Iterator[MessageArrow]:
    """The messages of a step, as far as its member sees them: what it receives, then what it sends."""
    event = scene.step.event
    slot, name = event.who, "" if event.who == NOBODY else letter(event.who)
    if slot in members:
        before, after = group.wire(scene.before, slot), group.wire(scene.after, slot)
        match before:
            case JoinOk(generation=generation) if after is not before:
                yield MessageArrow(
                    column=at, member=name, api="JoinGroup", answer=True, generation=int(generation)
                )
                lost = event.action == "sync lost"
                if lost or isinstance(after, Sync | SyncParked) or event.action == "assign":
                    yield MessageArrow(column=at, member=name, api="SyncGroup", text=event.choice, lost=lost)
            case SyncOk(generation=generation) if after is not before:
                yield MessageArrow(
                    column=at, member=name, api="SyncGroup", answer=True, generation=int(generation)
                )
            case _ if api := _ASKS.get(event.action):
                yield MessageArrow(column=at, member=name, api=api, lost=event.action == "join lost")
        was, given = (group.member(state, slot).id for state in (scene.before, scene.after))
        if event.action.startswith("join") and after is None and given not in (was, NO_ID):
            yield MessageArrow(column=at, member=name, api="JoinGroup", answer=True, text="member id")
    for one in scene.seen:
        if isinstance(one, Answered) and one.who in members:
            api = _API.get(one.api, one.api)
            yield MessageArrow(column=at, member=letter(one.who), api=api, answer=True, text=str(one.error))


def _marks(group: _RunStates, at: int, scene: _PlayedStep, members: Sequence[int]) -> Iterator[EventMark]:
    event, fault = scene.step.event, scene.step.fault
    if fault:
        yield EventMark(at, "" if event.who not in members else letter(event.who), event.action, fault=True)
    elif text := _AT_COORDINATOR.get(event.action):
        yield EventMark(at, "", f"{text} {letter(event.who)}")
    elif event.action == "leader sync":
        yield EventMark(at, "", "stable")
    elif event.who in members and event.action == "resume":
        yield EventMark(at, letter(event.who), "goes on")
    for one in scene.seen:
        match one:
            case Callback(call=call, who=who, parts=parts) if who in members:
                yield EventMark(
                    at, letter(who), f"{_CALLBACK[call]} {group.setup.spell(parts) if parts else '-'}"
                )
            case Threw(who=who) if who in members:
                yield EventMark(at, letter(who), "poll() throws", fault=True)
            case Expelled(who=who):
                yield EventMark(at, "", f"removes {letter(who)}")
            case Replaced(who=who):
                yield EventMark(at, "", f"replaces {letter(who)}")


def _recorded(run: SavedRun, chosen: Sequence[int]) -> OwnershipDiagram:
    """A run of Kafka's code, as it was seen: who has an assignment and no generation was removed."""
    steps = [run.recorded[at] for at in chosen]
    held = [{(p, one.name): one.generation for one in step.owners for p in one.owns} for step in steps]
    rows = sorted({row for now in held for row in now})[: MOST_PARTITIONS * MOST_MEMBERS]
    look: dict[int | None, OwnershipState] = {None: OwnershipState.REMOVED}
    members = _members(run, [ord(name) - ord("A") for _, name in rows])
    names = list(map(letter, members))
    owners = {
        p: [{n: look.get(g, OwnershipState.OWNED) for (q, n), g in now.items() if q == p} for now in held]
        for p in dict.fromkeys(p for p, _ in rows)
    }
    contents = [
        (_sentence(one), one.fault, max((o.generation or 0 for o in one.owners), default=0)) for one in steps
    ]
    return OwnershipDiagram(
        title=f"{run.clause}: {run.sentence}",
        columns=tuple(_columns(run, chosen, contents)),
        rows=tuple(Row(*row) for row in rows),
        bars=bars([[owners[p][at].get(n) for at in range(len(steps))] for p, n in rows]),
        overlaps=overlaps((p, at, now) for p, moments in owners.items() for at, now in enumerate(moments)),
        members=tuple(names),
        arrows=tuple(arrow for at, one in enumerate(steps) for arrow in _sent(at, one, names)),
        marks=tuple(mark for at, one in enumerate(steps) for mark in _noted(at, one, names)),
        left_out=tuple(left_of(len(run.recorded), len(chosen), "step")),
    )


def _sent(at: int, step: Step, names: Sequence[str]) -> Iterator[MessageArrow]:
    event = step.event
    if event.who != NOBODY and (name := letter(event.who)) in names:
        if event.action == "receive" or event.action == "assign":
            yield MessageArrow(column=at, member=name, api=event.choice or "JoinGroup", answer=True)
        if event.action in ("assign", *_ASKS):
            yield MessageArrow(column=at, member=name, api=_ASKS.get(event.action, "SyncGroup"))


def _noted(at: int, step: Step, names: Sequence[str]) -> Iterator[EventMark]:
    who = "" if step.event.who == NOBODY else letter(step.event.who)
    if step.fault:
        yield EventMark(at, who if who in names else "", step.event.action, fault=True)
    for text in step.seen:
        name, _, rest = text.partition(": ")
        if name in names:
            yield EventMark(at, name, rest, fault="throws" in rest)


def _unplayed(run: SavedRun, chosen: Sequence[int]) -> OwnershipDiagram:
    """A run too large to play: its events, and no bars."""
    concerned = [run.events[at].who for at in chosen if run.events[at].who != NOBODY]
    members = _members(run, concerned)
    contents = [(event_text(run.events[at]), False, None) for at in chosen]
    total, people = len(run.events), count(len(run.setup.consumers), "member")
    return OwnershipDiagram(
        title=f"{run.clause}: {run.sentence}" if run.sentence else run.clause,
        columns=tuple(_columns(run, chosen, contents)),
        members=tuple(map(letter, members)),
        marks=tuple(
            EventMark(at, letter(event.who) if event.who in members else "", event.action)
            for at, event in ((at, run.events[number]) for at, number in enumerate(chosen))
        ),
        loop=_loop(run, chosen),
        left_out=(
            f"who owned what: {count(total, 'step')} of {people} are not played again for a picture",
            *more(len(run.setup.consumers) - len(members), "more member"),
            *left_of(total, len(chosen), "step"),
        ),
    )
