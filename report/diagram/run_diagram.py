"""The ownership chart of a run of the group: who owns what after each step, and the messages of each.

A run of the model is played again, and the model says of each step what is to be drawn. Two owners are two
members of the group, as in the clause ``group/owner``; one that was removed and goes on owning something is
drawn as such.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field

from rebalance_verifier.base.text import count
from rebalance_verifier.explore.groups.runs import SavedRun
from rebalance_verifier.model.classic.describe import ASKS, event_text
from rebalance_verifier.model.group.parts import each
from rebalance_verifier.model.group.setup import letter
from rebalance_verifier.model.machine import NOBODY, Event, StepDetails, StepMark, StepMessage, StepOwner
from rebalance_verifier.model.protocols import machine
from rebalance_verifier.model.steps import Step, walked
from rebalance_verifier.report.diagram.diagram import (
    MAX_COLUMNS,
    MAX_LINES,
    MAX_MEMBERS,
    MAX_PARTITIONS,
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

FIRST = 4
"""Steps from the start that are shown of a run that is too long."""

MAX_PLAYED = 50_000
"""Steps x members beyond which a run is drawn without being played again, which takes seconds."""

Held = Mapping[tuple[str, str], OwnershipState]
"""(partition, member) -> how it owns it."""


@dataclass(frozen=True, kw_only=True)
class _RunMoment:
    """One step as it is drawn. ``marks`` of nobody who has a line are the coordinator's if ``fault``."""

    what: str
    fault: bool = False
    generation: int | None = None
    held: Held = field(default_factory=dict)
    unowned: tuple[str, ...] = ()
    away: Mapping[str, str] = field(default_factory=dict)
    messages: tuple[StepMessage, ...] = ()
    marks: tuple[StepMark, ...] = ()


def of_run(run: SavedRun) -> OwnershipDiagram:
    """Return the run as a diagram, a column a step; of a long one the first steps and those up to the
    finding.

    Raises CannotHappenError when the model does not allow a step.
    """
    total, size = len(run.recorded) if run.on else len(run.events), len(run.setup.consumers)
    chosen = _chosen(total, run.loop)
    large = not run.on and total * size > MAX_PLAYED
    if run.on:
        moments = [_seen(run.recorded[at]) for at in chosen]
    elif large:
        moments = [_unplayed(run.events[at]) for at in chosen]
    else:
        wanted = {at + 1 for at in chosen}
        moments = [_played(*one) for one in walked(machine(run.setup), run.events, wanted.__contains__)]
    shown, every, held = _partitions(run, moments)
    rows = [
        (p, who)
        for p in shown
        for who in list(dict.fromkeys(w for now in held for q, w in now if q == p))[:MAX_MEMBERS]
    ]
    people = dict.fromkeys([*(who for _, who in rows if who), *map(letter, run.setup.slots)])
    names = sorted(list(people)[:MAX_LINES])
    not_played = f"who owned what: {count(total, 'step')} of {count(size, 'member')} are not played again"
    return OwnershipDiagram(
        title=f"{run.clause}: {run.sentence}" if run.sentence else run.clause,
        columns=tuple(_columns(run, chosen, moments)),
        rows=tuple(Row(*row) for row in rows),
        bars=bars([[now.get(row) for now in held] for row in rows]),
        overlaps=overlaps(
            (p, at, {who: look for (q, who), look in moment.held.items() if q == p})
            for p in shown
            for at, moment in enumerate(moments)
        ),
        members=tuple(names),
        arrows=tuple(
            MessageArrow(column=at, **asdict(one))
            for at, moment in enumerate(moments)
            for one in moment.messages
            if one.member in names
        ),
        marks=tuple(mark for at, moment in enumerate(moments) for mark in _marks(at, moment, names)),
        away=tuple(
            Away(name, start, end, text)
            for name in names
            for text, start, end in stretches(moment.away.get(name, "") for moment in moments)
            if text
        ),
        loop=None if run.loop is None else (sum(at < run.loop for at in chosen), len(chosen)),
        left_out=(
            *([f"{not_played} for a picture"] if large else []),
            *more(every - len(shown), "more partition"),
            *more(size - len(names), "more member"),
            *left_of(total, len(chosen), "step"),
        ),
    )


def _chosen(total: int, loop: int | None) -> list[int]:
    """Return the steps to show, numbered from 0: where the run is too long, its start and what leads to its
    end."""
    if total <= MAX_COLUMNS:
        return list(range(total))
    rest = MAX_COLUMNS - FIRST
    end = total if loop is None else loop + rest - FIRST
    tail = min(max(end - rest, FIRST), total - rest)
    return [*range(FIRST), *range(tail, tail + rest)]


def _partitions(run: SavedRun, moments: Sequence[_RunMoment]) -> tuple[list[str], int, Sequence[Held]]:
    """Return the partitions to show, those with two owners first, of how many, and who holds them when;
    nobody those that in the end are nobody's for ever."""
    idle = moments[-1].unowned if moments and run.loop is not None else ()
    held = [{**m.held, **{(p, ""): OwnershipState.NOBODY for p in m.unowned if p in idle}} for m in moments]
    order = [str(run.setup.partition(number)) for topic in run.setup.topics for number in each(topic)]
    there = {p for now in held for p, _ in now}
    numbers = {p: order.index(p) if p in order else len(order) for p in there}
    twice = {p: any(sum(q == p for q, _ in m.held) > 1 for m in moments) for p in there}
    found = sorted(there, key=lambda p: (not twice[p], numbers[p], p))
    return found[:MAX_PARTITIONS], len(found), held


def _columns(run: SavedRun, chosen: Sequence[int], moments: Sequence[_RunMoment]) -> Iterator[DiagramColumn]:
    before = -1
    for at, moment in zip(chosen, moments, strict=True):
        yield DiagramColumn(
            label=str(at + 1),
            what=moment.what,
            generation=moment.generation or None,
            fault=moment.fault,
            marked=run.loop is None and at == len(run.events) - 1,
            skipped=at - before - 1,
        )
        before = at


def _marks(at: int, moment: _RunMoment, names: Sequence[str]) -> Iterator[EventMark]:
    """Yield what shows at those who have a line; the first of a fault at the coordinator, if nobody has."""
    for number, one in enumerate(moment.marks):
        if one.member in (*names, "") or (number == 0 and moment.fault):
            yield EventMark(at, one.member if one.member in names else "", one.text, one.fault)


# -- the moments -----------------------------------------------------------------------------------------


def _sentence(step: Step) -> str:
    return "; ".join((step.what, *step.seen))


def _held(owners: Sequence[StepOwner], removed: frozenset[str]) -> Held:
    states = {
        one.name: OwnershipState.REMOVED if one.name in removed else OwnershipState.OWNED for one in owners
    }
    return {(partition, one.name): states[one.name] for one in owners for partition in one.owns}


def _fault(step: Step) -> tuple[StepMark, ...]:
    return (StepMark(_who(step.event), step.event.action, fault=True),) if step.fault else ()


def _who(event: Event) -> str:
    return "" if event.who == NOBODY else letter(event.who)


def _played(step: Step, details: StepDetails) -> _RunMoment:
    """Return a step of the model, played again."""
    return _RunMoment(
        what=_sentence(step),
        fault=step.fault,
        generation=details.generation,
        held=_held(step.owners, details.removed),
        unowned=details.unowned,
        away={one.name: one.life for one in step.owners},
        messages=details.messages,
        marks=(*_fault(step), *details.marks),
    )


def _seen(step: Step) -> _RunMoment:
    """Return a step of Kafka's code, as it was seen: who has an assignment and no generation was removed."""
    name, action, choice = _who(step.event), step.event.action, step.event.choice
    messages = []
    if name and action in ("receive", "assign"):
        messages.append(StepMessage(member=name, api=choice or "JoinGroup", answer=True))
    if name and action in ("assign", *ASKS):
        messages.append(StepMessage(member=name, api=ASKS.get(action, "SyncGroup")))
    noted = [text.partition(": ") for text in step.seen]
    return _RunMoment(
        what=_sentence(step),
        fault=step.fault,
        generation=max((one.generation or 0 for one in step.owners), default=0),
        held=_held(step.owners, frozenset(one.name for one in step.owners if one.generation is None)),
        messages=tuple(messages),
        marks=(
            *_fault(step),
            *(StepMark(who, text, "throws" in text) for who, colon, text in noted if colon),
        ),
    )


def _unplayed(event: Event) -> _RunMoment:
    """Return a step of a run too large to play."""
    return _RunMoment(what=event_text(event), marks=(StepMark(_who(event), event.action),))
