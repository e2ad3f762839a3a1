"""The ownership chart of a recording: consumers by time, and the lines of the log that it was drawn from.

Time goes from left to right, one column for each event that is shown, so that what happens in a millisecond
is as wide as what takes an hour; the list below has the times. Two bars above each other are two owners.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from rebalance.gate.recordings import Finding, Recording, Seen
from rebalance.gate.report.picture import (
    MOST_LINES,
    Arrow,
    Column,
    Look,
    Mark,
    Picture,
    Row,
    bars,
    more,
    overlaps,
)
from rebalance.gate.report.words import clean, columns, count, cut, fold, pad, shorten

WIDTH = 110
MOST_CONSUMERS = 8
LABEL = 28
COORDINATOR = "coordinator"

MOST_EVENTS = 24
"""Events in a picture."""

_SIGNS = {Look.OWNED: "█", Look.REMOVED: "▒", None: " "}
_TWICE = "▲"
_ASCII = str.maketrans("█▒▲", "#~^")

_KINDS = {
    "started": ("o", "starts", False),
    "subscribed": ("s", "subscribes", False),
    "joining": ("j", "sends JoinGroup", False),
    "joined": ("J", "joined", True),
    "planned": ("P", "as leader assigns", True),
    "synced": ("S", "synced", True),
    "assigned": ("+", "assigned", False),
    "revoked": ("-", "revoked", False),
    "lost": ("!", "lost", False),
    "reset": ("x", "learns that its membership is over", False),
    "leaving": ("l", "leaves", False),
    "closed": ("c", "ends", False),
    "preparing": ("p", "begins a rebalance", False),
    "stable": ("G", "begins generation", True),
    "removed": ("r", "removes a member", False),
    "empty": ("e", "has no members left", False),
}
"""Kind of an event -> its mark, what it means, whether the mark carries the generation."""


@dataclass(frozen=True)
class _Moment:
    """Something that happens to one consumer, or at the coordinator; ``others``: partitions besides."""

    event: Seen
    others: int = 0


def chart(recording: Recording, *, unicode: bool = True, width: int = WIDTH) -> list[str]:
    """The chart, its legend and the list of events, as lines of at most ``width`` columns, clean to print.

    What does not fit in is left out: what is furthest from the finding first, and the list says how much.
    """
    moments = _moments(recording)
    if not moments:
        return ["nothing of the log was kept with this finding"]
    rows = _rows(recording.finding, moments)
    labels = [shorten(clean(name, unicode), LABEL) for name in rows]
    about = shorten(clean(recording.finding.about, unicode), LABEL)
    margin = max(map(columns, [*labels, about, "two owners"])) + 4
    cell = max(4, 1 + max(len(_mark(moment.event)) for moment in moments))
    shown = _chosen(recording.finding, moments, max(4, (width - margin) // cell))
    lines = [(pad(f"  {about}", margin) + "".join(f"{n:<{cell}}" for n in range(1, len(shown) + 1))).rstrip()]
    states = _states(recording.finding, moments, shown)
    used = ""
    for name, label in zip(rows, labels, strict=True):
        bar = "".join(_SIGNS[states[at].get(name)] * cell for at in shown)
        marks = "".join(
            pad(_mark(moments[at].event) if _who(moments[at].event) == name else "", cell) for at in shown
        )
        start = pad(f"  {label}", margin)
        for line in (bar, marks):
            if line.strip():
                lines.append((start + line).rstrip())
                start = " " * margin
        used += bar
    twice = [len(states[at]) > 1 for at in shown]
    if any(twice):
        marks = "".join((_TWICE if two else " ") * cell for two in twice)
        lines.append((pad("  two owners", margin) + marks).rstrip())
    lines += ["", *_list(recording, moments, shown, unicode, width)]
    legend = [(Look.OWNED, "owns it"), (Look.REMOVED, "removed from the group, and has not noticed")]
    meanings = [f"{_SIGNS[look]} {meaning}" for look, meaning in legend if _SIGNS[look] in used]
    if meanings:
        lines += ["", *(f"  {line}" for line in fold("   ".join(meanings), width - 2))]
    return lines if unicode else [line.translate(_ASCII) for line in lines]


def picture(recording: Recording) -> Picture:
    """The recording as a picture, a column an event; those that the finding rests on and the nearest."""
    finding = recording.finding
    moments = _moments(recording)
    shown = _chosen(finding, moments, MOST_EVENTS)
    names = [name for name in _rows(finding, moments, MOST_LINES) if name != COORDINATOR]
    states = _states(finding, moments, shown)
    held = [states[at] for at in shown]
    owners = [name for name in names if any(name in now for now in held)]
    places = {(p.at, p.file, p.line) for p in finding.places}
    generations = _generations(moments)
    others = {who for moment in moments if (who := moment.event.consumer)}
    several_days = len({moments[at].event.at.date() for at in shown}) > 1
    columns: list[Column] = []
    before = -1
    for at in shown:
        event = moments[at].event
        columns.append(
            Column(
                str(len(columns) + 1),
                f"{_who(event)} {_says(moments[at], finding)} ({event.where})",
                event.at.strftime("%m-%d %H:%M:%S" if several_days else "%H:%M:%S.%f")[:12],
                generations[at],
                event.kind in ("removed", "reset", "lost"),
                (event.at, event.file, event.line) in places,
                at - before - 1,
            )
        )
        before = at
    left = len(moments) - len(shown)
    return Picture(
        f"{finding.check}: {finding.about or finding.group}: {finding.sentence}",
        tuple(columns),
        tuple(Row(finding.about, name) for name in owners),
        bars([[now.get(name) for now in held] for name in owners]),
        overlaps((finding.about, at, now) for at, now in enumerate(held)),
        tuple(names),
        tuple(a for at, i in enumerate(shown) if (a := _arrow(at, moments[i].event, names))),
        tuple(_marks(shown, moments, names)),
        left_out=(
            *([f"and {count(left, 'event')} around these"] if left else []),
            *more(len(others) - len(names), "more consumer"),
        ),
        unit="event",
    )


def _generations(moments: Sequence[_Moment]) -> list[int | None]:
    """The generation of the group after each moment, as far as the log tells."""
    found: list[int | None] = []
    last: int | None = None
    for moment in moments:
        event = moment.event
        if event.generation is not None:
            if event.kind == "stable":
                last = event.generation
            elif event.kind in ("joined", "planned", "synced", "assigned"):
                last = max(last or 0, event.generation)
        found.append(last)
    return found


_ARROWS = {
    "joining": ("JoinGroup", False),
    "joined": ("JoinGroup", True),
    "planned": ("SyncGroup", False),
    "synced": ("SyncGroup", True),
    "leaving": ("LeaveGroup", False),
}
"""Kind of an event -> the message that it tells of, and whether the coordinator sent it."""


def _arrow(column: int, event: Seen, names: Sequence[str]) -> Arrow | None:
    message = _ARROWS.get(event.kind)
    if message is None or event.consumer not in names or event.consumer is None:
        return None
    return Arrow(column, event.consumer, message[0], message[1], event.generation)


def _marks(shown: Sequence[int], moments: Sequence[_Moment], names: Sequence[str]) -> Iterator[Mark]:
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
        yield Mark(column, who or "", text, event.kind in ("removed", "reset", "lost"))


_SHORT = {"preparing": "rebalances", "reset": "is no member", "empty": "no members", "closed": "ends"}


def _moments(recording: Recording) -> list[_Moment]:
    """Events in order, those of one log line about several partitions as one."""
    finding = recording.finding
    found: dict[object, _Moment] = {}
    for event in recording.events:
        key = (event.at, event.kind, event.consumer, event.file, event.line)
        mine = (event.topic, event.partition) == (finding.topic, finding.partition)
        known = found.get(key)
        if known is None:
            found[key] = _Moment(event)
        else:
            found[key] = _Moment(event if mine else known.event, known.others + 1)
    return sorted(found.values(), key=lambda m: (m.event.at, m.event.file, m.event.line))


def _who(event: Seen) -> str:
    return event.consumer or COORDINATOR


def _mark(event: Seen) -> str:
    sign, _, numbered = _KINDS.get(event.kind, ("?", "", False))
    return f"{sign}{event.generation}" if numbered and event.generation is not None else sign


def _rows(finding: Finding, moments: Sequence[_Moment], most: int = MOST_CONSUMERS) -> list[str]:
    """Who has a row: those that the finding is about, who owned the partition, the first of the others."""
    owners = [owner.consumer for owner in finding.owners if owner.consumer]
    holders = [_who(m.event) for m in moments if m.event.kind in ("assigned", "revoked", "lost")]
    everybody = [_who(m.event) for m in moments if m.event.consumer]
    names = list(dict.fromkeys([*owners, *holders, *everybody]))[:most]
    at_coordinator = any(m.event.consumer is None for m in moments)
    return names + [COORDINATOR] * at_coordinator


def _states(
    finding: Finding, moments: Sequence[_Moment], wanted: Sequence[int]
) -> Mapping[int, Mapping[str, Look]]:
    """Who owns the partition after each of the wanted moments, and whether still as a member."""
    asked = frozenset(wanted)
    known = {owner.member: owner.consumer for owner in finding.owners if owner.member and owner.consumer}
    holds: dict[str, Look] = {}
    found: dict[int, Mapping[str, Look]] = {}
    for at, moment in enumerate(moments):
        event, who = moment.event, _who(moment.event)
        if event.member and event.consumer:
            known[event.member] = event.consumer
        mine = finding.partition is not None and (event.topic, event.partition) == (
            finding.topic,
            finding.partition,
        )
        match event.kind:
            case "assigned" if mine:
                holds[who] = Look.OWNED
            case "revoked" | "lost" if mine:
                holds.pop(who, None)
            case "started" | "closed":
                holds.pop(who, None)
            case "reset" if who in holds:
                holds[who] = Look.REMOVED
            case "removed" if known.get(event.member or "") in holds:
                holds[str(known[event.member or ""])] = Look.REMOVED
            case _:
                pass
        if at in asked:
            found[at] = dict(holds)
    return found


def _chosen(finding: Finding, moments: Sequence[_Moment], most: int) -> list[int]:
    """Which moments are shown: those that the finding rests on, then its consumers', the nearest first."""
    places = {(p.at, p.file, p.line) for p in finding.places}
    owners = {owner.consumer for owner in finding.owners}
    times = [finding.began, *([finding.ended] if finding.ended else [])]

    def interest(at: int) -> tuple[bool, bool, float, int]:
        event = moments[at].event
        far = min(abs((event.at - time).total_seconds()) for time in times)
        concerned = event.consumer is None or event.consumer in owners
        return (event.at, event.file, event.line) not in places, not concerned, far, at

    return sorted(sorted(range(len(moments)), key=interest)[:most])


def _list(
    recording: Recording, moments: Sequence[_Moment], shown: Sequence[int], unicode: bool, width: int
) -> list[str]:
    places = {(p.at, p.file, p.line) for p in recording.finding.places}
    several_days = len({moments[at].event.at.date() for at in shown}) > 1
    rows = []
    for number, at in enumerate(shown, 1):
        event = moments[at].event
        stamp = event.at.strftime("%Y-%m-%d %H:%M:%S.%f" if several_days else "%H:%M:%S.%f")
        who = shorten(clean(_who(event), unicode), LABEL)
        mark = "*" if (event.at, event.file, event.line) in places else " "
        what = clean(_says(moments[at], recording.finding), unicode)
        rows.append((f"{number:>3}{mark} {stamp[:-3]}", who, what, clean(event.where, unicode)))
    second = max(columns(row[1]) for row in rows)
    most = width - columns(rows[0][0]) - second - 8
    last = min(max(columns(row[3]) for row in rows), max(16, most // 2))
    third = min(max(columns(row[2]) for row in rows), most - last)
    first = recording.finding.began.strftime("%Y-%m-%d, UTC")
    lines = [f"  {'times in UTC' if several_days else first}; * the finding rests on it"]
    for stamp, who, what, where in rows:
        lines.append(f"{stamp}  {pad(who, second)}  {pad(cut(what, third), third)}  {shorten(where, last)}")
    if len(shown) < len(moments):
        lines.append(f"     and {count(len(moments) - len(shown), 'event')} around them, in the file")
    return lines


def _says(moment: _Moment, finding: Finding) -> str:
    event = moment.event
    _, words, numbered = _KINDS.get(event.kind, ("?", event.kind, False))
    if numbered and event.generation is not None:
        words += f" {event.generation}" if event.kind == "stable" else f", generation {event.generation}"
    about = replace(finding, topic=event.topic, partition=event.partition).about
    if about:
        words += f" {about}" if event.kind != "planned" else f": {about} to {event.member or 'somebody'}"
    if moment.others:
        words += f" and {moment.others} more"
    if event.kind == "removed" and event.member:
        words += f", {event.member}"
    return f"{words}: {event.detail}" if event.detail else words


# -- words -----------------------------------------------------------------------------------------------


def lasted(finding: Finding) -> str:
    """When a finding began, how long it lasted, how sure it is."""
    goes_on = "" if finding.ended else ", and it goes on"
    return f"{span(finding.seconds)} from {moment(finding.began)}{goes_on}  {certainty(finding)}"


def certainty(finding: Finding) -> str:
    """How sure a finding is."""
    if finding.certain:
        return "certain"
    return "uncertain" if finding.skew is None else f"within clock skew of {span(finding.skew)}"


def moment(at: datetime) -> str:
    """A time as the reports write it, in UTC."""
    return at.strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]


def span(seconds: float | None) -> str:
    """A stretch of time, with the digits that matter.

    >>> span(0.0123), span(7.9), span(75), span(7300), span(180000)
    ('12 ms', '7.9 s', '75 s', '2 h 2 min', '2 d 2 h')
    """
    if seconds is None or math.isnan(seconds):
        return "unknown"
    if round(seconds, 3) < 1:
        return f"{seconds * 1000:.0f} ms"
    if round(seconds, 1) < 10:
        return f"{seconds:.1f} s"
    if round(seconds) < 120:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 120:
        return f"{minutes} min"
    hours = round(seconds / 3600)
    if hours < 48:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{hours // 24} d {hours % 24} h"
