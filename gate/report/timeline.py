"""The ownership chart of a recording: consumers by time, and the lines of the log that it was drawn from.

Time goes from left to right, one column for each event that is shown, so that what happens in a millisecond
is as wide as what takes an hour; the list below has the times. Two bars above each other are two owners.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from rebalance.gate.recordings import Finding, Recording, Seen
from rebalance.gate.report.words import clean, columns, count, cut, fold, pad, shorten

WIDTH = 110
MOST_CONSUMERS = 8
LABEL = 28
COORDINATOR = "coordinator"

_OWNS, _REMOVED, _TWICE = "█▒▲"
_ASCII = str.maketrans({_OWNS: "#", _REMOVED: "~", _TWICE: "^"})

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
    states = _states(recording.finding, moments)
    used = ""
    for name, label in zip(rows, labels, strict=True):
        bar = "".join(states[at].get(name, " ") * cell for at in shown)
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
    legend = [(_OWNS, "owns it"), (_REMOVED, "removed from the group, and has not noticed")]
    meanings = [f"{sign} {meaning}" for sign, meaning in legend if sign in used]
    if meanings:
        lines += ["", *(f"  {line}" for line in fold("   ".join(meanings), width - 2))]
    return lines if unicode else [line.translate(_ASCII) for line in lines]


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


def _rows(finding: Finding, moments: Sequence[_Moment]) -> list[str]:
    """Who has a row: those that the finding is about, who owned the partition, the first of the others."""
    owners = [owner.consumer for owner in finding.owners if owner.consumer]
    holders = [_who(m.event) for m in moments if m.event.kind in ("assigned", "revoked", "lost")]
    everybody = [_who(m.event) for m in moments if m.event.consumer]
    names = list(dict.fromkeys([*owners, *holders, *everybody]))[:MOST_CONSUMERS]
    at_coordinator = any(m.event.consumer is None for m in moments)
    return names + [COORDINATOR] * at_coordinator


def _states(finding: Finding, moments: Sequence[_Moment]) -> list[dict[str, str]]:
    """Who owns the partition after each moment, and whether still as a member."""
    known = {owner.member: owner.consumer for owner in finding.owners if owner.member and owner.consumer}
    holds: dict[str, str] = {}
    found = []
    for moment in moments:
        event, who = moment.event, _who(moment.event)
        if event.member and event.consumer:
            known[event.member] = event.consumer
        mine = finding.partition is not None and (event.topic, event.partition) == (
            finding.topic,
            finding.partition,
        )
        match event.kind:
            case "assigned" if mine:
                holds[who] = _OWNS
            case "revoked" | "lost" if mine:
                holds.pop(who, None)
            case "started" | "closed":
                holds.pop(who, None)
            case "reset" if who in holds:
                holds[who] = _REMOVED
            case "removed" if known.get(event.member or "") in holds:
                holds[str(known[event.member or ""])] = _REMOVED
            case _:
                pass
        found.append(dict(holds))
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
