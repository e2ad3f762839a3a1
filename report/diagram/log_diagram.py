"""A recording as a diagram: a column for each event of the log that is shown, with its time and its line.

What happens in a millisecond is as wide as what takes an hour; ``DiagramColumn.at`` says how long it took.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rebalance_verifier.base.text import count
from rebalance_verifier.pipeline.audit.records import (
    COORDINATOR,
    LogEvent,
    LogFinding,
    LogMoment,
    Recording,
    generations,
    holders,
)
from rebalance_verifier.report.diagram.diagram import (
    MAX_LINES,
    DiagramColumn,
    EventMark,
    MessageArrow,
    OwnershipDiagram,
    OwnershipState,
    Row,
    bars,
    more,
    overlaps,
)

MAX_EVENTS = 24
"""Events in a diagram."""

_LOOKS = {True: OwnershipState.OWNED, False: OwnershipState.REMOVED}
"""Whether an owner is a member still -> how it owns."""


def of_recording(recording: Recording) -> OwnershipDiagram:
    """Return the recording as a diagram, a column an event; those that the finding rests on and the
    nearest."""
    finding = recording.finding
    moments = recording.moments()
    shown = _chosen(finding, moments, MAX_EVENTS)
    names = _names(finding, moments)
    states = holders(finding, moments, shown)
    held = [{name: _LOOKS[inside] for name, inside in states[at].items()} for at in shown]
    owners = [name for name in names if any(name in now for now in held)]
    places = {(p.at, p.file, p.line) for p in finding.places}
    numbers = generations(moments)
    others = {who for moment in moments if (who := moment.event.consumer)}
    several_days = len({moments[at].event.at.date() for at in shown}) > 1
    first = moments[shown[0]].event.at if shown else finding.began
    columns: list[DiagramColumn] = []
    before = -1
    for at in shown:
        event = moments[at].event
        columns.append(
            DiagramColumn(
                label=str(len(columns) + 1),
                what=f"{event.who} {moments[at].sentence} ({event.where})",
                when=event.at.strftime("%m-%d %H:%M:%S" if several_days else "%H:%M:%S.%f")[:12],
                at=(event.at - first).total_seconds(),
                generation=numbers[at],
                fault=event.kind in ("removed", "reset", "lost"),
                marked=(event.at, event.file, event.line) in places,
                skipped=at - before - 1,
            )
        )
        before = at
    left = len(moments) - len(shown)
    return OwnershipDiagram(
        title=f"{finding.check}: {finding.about or finding.group}: {finding.sentence}",
        columns=tuple(columns),
        rows=tuple(Row(finding.about, name) for name in owners),
        bars=bars([[now.get(name) for now in held] for name in owners]),
        overlaps=overlaps((finding.about, at, now) for at, now in enumerate(held)),
        members=tuple(names),
        arrows=tuple(a for at, i in enumerate(shown) if (a := _arrow(at, moments[i].event, names))),
        marks=tuple(_marks(shown, moments, names)),
        left_out=(
            *([f"and {count(left, 'event')} around these"] if left else []),
            *more(len(others) - len(names), "more consumer"),
        ),
        unit="event",
    )


_ARROWS = {
    "joining": ("JoinGroup", False),
    "joined": ("JoinGroup", True),
    "planned": ("SyncGroup", False),
    "synced": ("SyncGroup", True),
    "leaving": ("LeaveGroup", False),
}
"""Kind of an event -> the message that it tells of, and whether the coordinator sent it."""


def _arrow(column: int, event: LogEvent, names: Sequence[str]) -> MessageArrow | None:
    message = _ARROWS.get(event.kind)
    if message is None or event.consumer not in names or event.consumer is None:
        return None
    return MessageArrow(
        column=column, member=event.consumer, api=message[0], answer=message[1], generation=event.generation
    )


def _marks(shown: Sequence[int], moments: Sequence[LogMoment], names: Sequence[str]) -> Iterator[EventMark]:
    known = {m.event.member: m.event.consumer for m in moments if m.event.member and m.event.consumer}
    for column, at in enumerate(shown):
        event = moments[at].event
        if event.kind in _ARROWS:
            continue
        who = event.consumer if event.consumer in names else ""
        text = _SHORT.get(event.kind, event.kind)
        if event.kind == "removed" and event.member:
            text = f"removes {known.get(event.member) or event.member}"
        elif event.kind == "stable" and event.generation is not None:
            text = f"generation {event.generation}"
        elif event.kind in ("assigned", "revoked", "lost") and event.topic is not None:
            text += f" {event.topic}" if event.partition is None else f" {event.topic}-{event.partition}"
        yield EventMark(column, who or "", text, event.kind in ("removed", "reset", "lost"))


_SHORT = {"preparing": "rebalances", "reset": "is no member", "empty": "no members", "closed": "ends"}


def _names(finding: LogFinding, moments: Sequence[LogMoment]) -> list[str]:
    """Return who has a line: those that the finding is about, who owned the partition, the first of the
    others."""
    owners = [owner.consumer for owner in finding.owners if owner.consumer]
    holders = [m.event.who for m in moments if m.event.kind in ("assigned", "revoked", "lost")]
    everybody = [m.event.who for m in moments if m.event.consumer]
    names = list(dict.fromkeys([*owners, *holders, *everybody]))
    return [name for name in names if name != COORDINATOR][:MAX_LINES]


def _chosen(finding: LogFinding, moments: Sequence[LogMoment], most: int) -> list[int]:
    """Return which moments are shown: those that the finding rests on, then its consumers', the nearest
    first."""
    places = {(p.at, p.file, p.line) for p in finding.places}
    owners = {owner.consumer for owner in finding.owners}
    times = [finding.began, *([finding.ended] if finding.ended else [])]

    def interest(at: int) -> tuple[bool, bool, float, int]:
        event = moments[at].event
        far = min(abs((event.at - time).total_seconds()) for time in times)
        concerned = event.consumer is None or event.consumer in owners
        return (event.at, event.file, event.line) not in places, not concerned, far, at

    return sorted(sorted(range(len(moments)), key=interest)[:most])
