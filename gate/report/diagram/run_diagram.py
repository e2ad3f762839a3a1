"""The ownership chart of a run of the model: who owns what after each step, and the messages of each.

The run is played again on the model, as ``steps`` does. Two owners are two members of the group, as in the
clause ``group/owner``; one that was removed and goes on owning something is drawn as such.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, cast

from rebalance.gate.report.picture import (
    MOST_COLUMNS,
    MOST_LINES,
    MOST_MEMBERS,
    MOST_PARTITIONS,
    Arrow,
    Away,
    Column,
    Look,
    Mark,
    Picture,
    Row,
    bars,
    grid,
    more,
    overlaps,
    stretches,
)
from rebalance.gate.report.steps import Step, happens, step, tell
from rebalance.gate.report.words import clean, count, pad
from rebalance.gate.runs import SavedRun
from rebalance.model.machine import NOBODY, Machine, State
from rebalance.model.protocol.group import machine, participates
from rebalance.model.protocol.setup import letter
from rebalance.model.protocol.state import (
    NO_ID,
    Answered,
    Call,
    Callback,
    Cluster,
    Expelled,
    Group,
    JoinOk,
    Life,
    Member,
    Records,
    Replaced,
    Sync,
    SyncOk,
    SyncParked,
    Threw,
    Wire,
    each,
    union,
)

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
class _Scene:
    """One step with the states around it."""

    told: Step
    before: State
    after: State
    seen: tuple[Any, ...]


class _Group:
    """The states of one run, read by name."""

    def __init__(self, run: SavedRun, built: Machine) -> None:
        self.setup, self.built = run.setup, built

    def generation(self, state: State) -> int:
        return int(cast(Group, state[self.built.position["group"]]).generation)

    def member(self, state: State, slot: int) -> Member:
        return cast(Member, state[self.built.position[f"member {letter(slot)}"]])

    def wire(self, state: State, slot: int) -> Wire:
        return cast(Wire, state[self.built.position[f"wire {letter(slot)}"]])

    def held(self, state: State) -> dict[tuple[int, int], Look]:
        """(partition, slot) -> how it owns it."""
        found = {}
        for slot in self.setup.slots:
            me = self.member(state, slot)
            if me.owned:
                records = cast(Records, state[self.built.position[f"record {letter(slot)}"]])
                look = Look.OWNED if participates(me, records) else Look.REMOVED
                found.update({(p, slot): look for p in each(me.owned)})
        return found

    def unowned(self, state: State) -> list[int]:
        """The partitions that exist and that nobody owns, once there is a generation."""
        owned = union([self.member(state, slot).owned for slot in self.setup.slots])
        cluster = cast(Cluster, state[self.built.position["cluster"]])
        return each(cluster.parts & ~owned) if self.generation(state) else []

    def away(self, state: State, slot: int) -> str:
        """Empty while it is at work."""
        me = self.member(state, slot)
        return "stuck" if me.stuck else "" if me.life is Life.UP else me.life.value


def picture(run: SavedRun) -> Picture:
    """The run as a picture, a column a step; of a long one the first steps and those up to the finding.

    Raises CannotHappenError when the model does not allow a step.
    """
    chosen = _chosen(len(run.events), run.loop)
    if len(run.events) * len(run.setup.consumers) > MOST_PLAYED:
        return _unplayed(run, chosen)
    built = machine(run.setup)
    group = _Group(run, built)
    scenes = list(_scenes(run, built, chosen))
    held = [group.held(scene.after) for scene in scenes]
    idle = [group.unowned(scene.after) if run.loop is not None else [] for scene in scenes]
    numbers = sorted({p for now in held for p, _ in now} | set(idle[-1] if idle else []))
    owners = {
        p: [{letter(s): look for (q, s), look in now.items() if q == p} for now in held] for p in numbers
    }
    shown = sorted(numbers, key=lambda p: not any(len(now) > 1 for now in owners[p]))
    for now, unowned in zip(held, idle, strict=True):
        now.update({(p, NOBODY): Look.NOBODY for p in unowned if p in idle[-1]})
    rows = [
        (p, slot)
        for p in shown[:MOST_PARTITIONS]
        for slot in list(dict.fromkeys(s for now in held for q, s in now if q == p))[:MOST_MEMBERS]
    ]
    names = {p: str(run.setup.partition(p)) for p in shown}
    members = _members(run, [slot for _, slot in rows if slot != NOBODY])
    return Picture(
        f"{run.clause}: {run.sentence}" if run.sentence else run.clause,
        tuple(
            _columns(run, chosen, [(_said(s.told), s.told.fault, group.generation(s.after)) for s in scenes])
        ),
        tuple(Row(names[p], "" if slot == NOBODY else letter(slot)) for p, slot in rows),
        bars([[now.get(row) for now in held] for row in rows]),
        overlaps((names[p], at, now) for p in shown[:MOST_PARTITIONS] for at, now in enumerate(owners[p])),
        tuple(map(letter, members)),
        tuple(a for at, scene in enumerate(scenes) for a in _arrows(group, at, scene, members)),
        tuple(m for at, scene in enumerate(scenes) for m in _marks(group, at, scene, members)),
        tuple(
            Away(letter(slot), start, end, text)
            for slot in members
            for text, start, end in stretches(group.away(scene.after, slot) for scene in scenes)
            if text
        ),
        _loop(run, chosen),
        (
            *more(len(shown) - MOST_PARTITIONS, "more partition"),
            *more(len(run.setup.consumers) - len(members), "more member"),
            *_skipped(len(run.events), chosen),
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


def _skipped(total: int, chosen: Sequence[int]) -> list[str]:
    left = total - len(chosen)
    return [f"{count(left, 'step')} of {total:,}"] if left else []


def _loop(run: SavedRun, chosen: Sequence[int]) -> tuple[int, int] | None:
    if run.loop is None:
        return None
    return sum(at < run.loop for at in chosen), len(chosen)


def _scenes(run: SavedRun, built: Machine, chosen: Sequence[int]) -> Iterator[_Scene]:
    before, wanted = built.initial[0], frozenset(chosen)
    played = happens(built, before, run.events)
    for at, (event, (after, outcome)) in enumerate(zip(run.events, played, strict=True)):
        if at in wanted:
            told = step(run.setup, built, at + 1, event, before, after, outcome.seen)
            yield _Scene(told, before, after, outcome.seen)
        before = after


def _members(run: SavedRun, owning: Sequence[int]) -> list[int]:
    """Who has a line: all, or those that own something first."""
    return sorted(list(dict.fromkeys([*owning, *run.setup.slots]))[:MOST_LINES])


def _said(told: Step) -> str:
    return "; ".join((told.what, *told.seen))


def _columns(
    run: SavedRun, chosen: Sequence[int], said: Sequence[tuple[str, bool, int | None]]
) -> Iterator[Column]:
    before = -1
    for at, (what, fault, generation) in zip(chosen, said, strict=True):
        last = run.loop is None and at == len(run.events) - 1
        yield Column(
            str(at + 1),
            what,
            generation=generation or None,
            fault=fault,
            marked=last,
            skipped=at - before - 1,
        )
        before = at


def _arrows(group: _Group, at: int, scene: _Scene, members: Sequence[int]) -> Iterator[Arrow]:
    """The messages of a step, as far as its member sees them: what it receives, then what it sends."""
    event = scene.told.event
    slot, name = event.who, "" if event.who == NOBODY else letter(event.who)
    if slot in members:
        before, after = group.wire(scene.before, slot), group.wire(scene.after, slot)
        match before:
            case JoinOk(generation=generation) if after is not before:
                yield Arrow(at, name, "JoinGroup", answer=True, generation=int(generation))
                lost = event.action == "sync lost"
                if lost or isinstance(after, Sync | SyncParked) or event.action == "assign":
                    yield Arrow(at, name, "SyncGroup", text=event.choice, lost=lost)
            case SyncOk(generation=generation) if after is not before:
                yield Arrow(at, name, "SyncGroup", answer=True, generation=int(generation))
            case _ if api := _ASKS.get(event.action):
                yield Arrow(at, name, api, lost=event.action == "join lost")
        was, given = (group.member(state, slot).id for state in (scene.before, scene.after))
        if event.action.startswith("join") and after is None and given not in (was, NO_ID):
            yield Arrow(at, name, "JoinGroup", answer=True, text="member id")
    for one in scene.seen:
        if isinstance(one, Answered) and one.who in members:
            api = _API.get(one.api, one.api)
            yield Arrow(at, letter(one.who), api, answer=True, text=str(one.error))


def _marks(group: _Group, at: int, scene: _Scene, members: Sequence[int]) -> Iterator[Mark]:
    event, fault = scene.told.event, scene.told.fault
    if fault:
        yield Mark(at, "" if event.who not in members else letter(event.who), event.action, fault=True)
    elif text := _AT_COORDINATOR.get(event.action):
        yield Mark(at, "", f"{text} {letter(event.who)}")
    elif event.action == "leader sync":
        yield Mark(at, "", "stable")
    elif event.who in members and event.action == "resume":
        yield Mark(at, letter(event.who), "goes on")
    for one in scene.seen:
        match one:
            case Callback(call=call, who=who, parts=parts) if who in members:
                yield Mark(at, letter(who), f"{_CALLBACK[call]} {group.setup.spell(parts) if parts else '-'}")
            case Threw(who=who) if who in members:
                yield Mark(at, letter(who), "poll() throws", fault=True)
            case Expelled(who=who):
                yield Mark(at, "", f"removes {letter(who)}")
            case Replaced(who=who):
                yield Mark(at, "", f"replaces {letter(who)}")


def _unplayed(run: SavedRun, chosen: Sequence[int]) -> Picture:
    """A run too large to play: its events, and no bars."""
    concerned = [run.events[at].who for at in chosen if run.events[at].who != NOBODY]
    members = _members(run, concerned)
    said = [(tell(run.events[at]), False, None) for at in chosen]
    total, people = len(run.events), count(len(run.setup.consumers), "member")
    return Picture(
        f"{run.clause}: {run.sentence}" if run.sentence else run.clause,
        tuple(_columns(run, chosen, said)),
        members=tuple(map(letter, members)),
        marks=tuple(
            Mark(at, letter(event.who) if event.who in members else "", event.action)
            for at, event in ((at, run.events[number]) for at, number in enumerate(chosen))
        ),
        loop=_loop(run, chosen),
        left_out=(
            f"who owned what: {count(total, 'step')} of {people} are not played again for a picture",
            *more(len(run.setup.consumers) - len(members), "more member"),
            *_skipped(total, chosen),
        ),
    )


# -- for the terminal --------------------------------------------------------------------------------------

_SIGNS = {Look.OWNED: "█", Look.REMOVED: "▒", Look.NOBODY: "-", None: " "}
_TWICE = "▲"
_ASCII = str.maketrans("█▒▲", "#~^")


def chart(run: SavedRun, *, unicode: bool = True, width: int = 110) -> list[str]:
    """The bars of the picture as lines of at most ``width`` columns, below the numbers of the steps.

    Where there is no room for all, the last steps are shown. Nothing if nobody ever owned anything.
    Raises CannotHappenError.
    """
    drawn = picture(run)
    if not drawn.rows:
        return []
    labels = [(row.partition, row.member or "(nobody)") for row in drawn.rows]
    first, second = (max(map(len, names)) for names in zip(*labels, strict=True))
    second = max(second, len("two owners")) if drawn.overlaps else second
    margin = first + second + 6
    cell = max(3, len(drawn.columns[-1].label) + 1)
    start = max(0, len(drawn.columns) - (width - margin) // cell)
    shown = range(start, len(drawn.columns))
    eras = {max(at, start): generation for generation, at, end in drawn.eras() if end > start}
    lines = [
        pad("  step", margin) + "".join(pad(drawn.columns[at].label, cell) for at in shown),
        pad("  generation", margin) + "".join(pad(str(eras.get(at) or ""), cell) for at in shown),
    ]
    looks = grid(drawn)
    for partition, group in groupby(range(len(drawn.rows)), key=lambda row: drawn.rows[row].partition):
        name = partition
        for row in group:
            bar = "".join(_SIGNS[looks[row][at]] * cell for at in shown)
            lines.append(f"  {pad(name, first)}  {pad(labels[row][1], second)}  {bar}")
            name = ""
        twice = [o for o in drawn.overlaps if o.partition == partition and o.bug]
        if twice:
            signs = ((_TWICE if any(o.start <= at < o.end for o in twice) else " ") * cell for at in shown)
            lines.append(f"  {pad('', first)}  {pad('two owners', second)}  {''.join(signs)}")
    used = {bar.look for bar in drawn.bars}
    legend = "   ".join(f"{sign} {look}" for look, sign in _SIGNS.items() if look in used)
    hidden = [part.removeprefix("and ") for part in drawn.left_out]
    hidden += [f"steps before {drawn.columns[start].label}"] if start else []
    lines += ["", f"  {legend}", *([f"  not in the chart: {'; '.join(hidden)}"] if hidden else [])]
    lines = [clean(line.rstrip()) for line in lines]
    return lines if unicode else [line.translate(_ASCII) for line in lines]
