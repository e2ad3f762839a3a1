"""The ownership chart of a finding: who claims and who is given which partition, round by round.

Each column is one rebalance in two halves: left what a member claims in JoinGroup, right what it owns
while SyncGroup delivers the assignment. A COOPERATIVE member goes on owning what it is not given back
until it has revoked it, so two bars side by side in a right half are two owners at one time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from rebalance.gate.report.words import clean, columns, count, cut, fold, happens, joins, pad, shorten
from rebalance.gate.result import Finding
from rebalance.model.values import Partitions, RebalanceProtocol, TopicPartition
from rebalance.properties.calls import Call
from rebalance.properties.scenarios import Event, Fault, FaultKind, Join, Leave, Scenario, Subscribe

MOST_ROUNDS = 12
ROUNDS_AFTER = 2  # the breaking one
MOST_PARTITIONS = 8
MOST_MEMBERS = 6  # of one partition
MOST_NOTES = 4

_OWNED, _LEAVING, _STALE, _WITHOUT, _NOBODY, _OVERLAP = "█▒░·-◀"
_ALONE = "left alone"
_ASCII = str.maketrans({_OWNED: "#", _LEAVING: "~", _STALE: ":", _WITHOUT: ".", _OVERLAP: "<"})
_COOPERATIVE_LEGEND = {
    _OWNED: "owned",
    _LEAVING: "not given back: owned until revoked",
    _STALE: "superseded claim",
    _WITHOUT: "without it",
    _NOBODY: "with nobody",
    _OVERLAP: "two owners",
}
_EAGER_LEGEND = _COOPERATIVE_LEGEND | {_STALE: "held before, given up to join"}


@dataclass(frozen=True)
class _Round:
    number: int
    story: str
    """What happened before it and in it."""
    call: Call | None
    """``None``: the target did not answer, or nobody wrote it down."""
    withheld: frozenset[TopicPartition] = frozenset()


def chart(finding: Finding, unicode: bool = True, width: int = 108) -> list[str]:
    """The chart as lines of at most ``width`` columns, the story of the rounds first.

    At most 12 rounds up to shortly after the breaking one, 8 partitions (those of the breach first)
    and 6 members per partition are shown; rounds and partitions left out are named. Without
    ``unicode`` all is ASCII.
    """
    rounds = _rounds(finding)
    shown = rounds[slice(*_window(len(rounds), finding.round))]
    lines = _story(shown, finding.round, len(rounds), unicode, width)
    if all(r.call is None for r in shown):
        return lines
    everything = _concerned(finding, shown)
    partitions = everything[:MOST_PARTITIONS]
    rows = [row for partition in partitions for row in _rows(partition, shown, finding.round)]
    if not rows:
        return lines  # the target failed before anybody held anything
    names = [(clean(str(p), unicode), clean(m, unicode) or "(nobody)") for p, m in rows]
    first = max(columns(shorten(name, 24)) for name, _ in names)
    second = max(columns(shorten(name, 24)) for _, name in names)
    half = min(max((width - first - second - 4) // len(shown) - 2, 2) // 2, 5)
    title = " " * (first + second + 4)
    title += "".join(pad(_number(r.number, finding.round), 2 * half + 2) for r in shown)
    used: set[str] = set()
    lines += ["", title.rstrip()]
    previous = None
    for (partition, member), (name, who) in zip(rows, names, strict=True):
        cells = [_cell(partition, member, r) for r in shown]
        used.update(*cells)
        bars = "".join(f"{left * half}{right * half}{mark} " for left, right, mark in cells)
        labels = pad(shorten(name, 24) if partition != previous else "", first), pad(shorten(who, 24), second)
        lines.append(f"{labels[0]}  {labels[1]}  {bars}".rstrip())
        previous = partition
    if len(everything) > len(partitions):
        lines.append(f"and {count(len(everything) - len(partitions), 'more partition')}")
    lines += _notes(partitions, shown, unicode, width)
    eager = finding.protocol is RebalanceProtocol.EAGER
    legend = _EAGER_LEGEND if eager else _COOPERATIVE_LEGEND
    known = [f"{symbol} {meaning}" for symbol, meaning in legend.items() if symbol in used]
    lines += ["left half JoinGroup, right half SyncGroup", *fold("   ".join(known), width)]
    return lines if unicode else [line.translate(_ASCII) for line in lines]


def _rounds(finding: Finding) -> list[_Round]:
    stories = _stories(finding.scenario)
    # An unconfirmed finding has no recording; otherwise a round beyond the last call is one without answer.
    recorded = bool(finding.calls) or finding.confirmed
    found = []
    for index in range(max(len(finding.calls), finding.round)):
        story = stories[index] if index < len(stories) else ""
        call = finding.calls[index] if index < len(finding.calls) else None
        if call is None and recorded:
            story = "; ".join(filter(None, (story, "no answer")))
        withheld = frozenset(call.withheld) if call else frozenset()
        found.append(_Round(index + 1, story or _ALONE, call, withheld))
    return found


def _stories(scenario: Scenario) -> list[str]:
    """What precedes each disturbed rebalance that takes place, and the first undisturbed one.

    A round in which nobody joins is none, so the group is followed as ``histories.play`` does; events
    about members that are not there are left out.
    """
    stories = []
    static = {m.id: m.instance is not None for m in scenario.members}
    stored: set[str] = set()  # static members that the coordinator remembers
    joined = [e.member for events in scenario.rounds for e in events if isinstance(e, Join)]
    alike = len({frozenset(m.topics) for m in (*scenario.members, *joined)}) <= 1
    story = [joins(m, alike) for m in scenario.members]
    for events in scenario.rounds:
        absent = set()
        for event in events:
            if not _matters(event, static):
                continue
            story.append(happens(event, alike))
            match event:
                case Join(member):
                    static[member.id] = member.instance is not None
                case Leave(member_id):
                    del static[member_id]
                    stored.discard(member_id)
                case Fault(FaultKind.SILENT | FaultKind.GHOST, member_id):
                    absent.add(member_id)
                case Fault(_, member_id):
                    absent.discard(member_id)
                case _:
                    pass
        present = [m for m in static if m not in absent]
        taking_part = present or [m for m in absent if m in stored]
        stored.update(m for m in present if static[m])
        if taking_part:
            stories.append("; ".join(story))
            story = []
    return [*stories, "; ".join(story)]


def _matters(event: Event, members: dict[str, bool]) -> bool:
    match event:
        case Join(member):
            return member.id not in members
        case Leave(member_id) | Subscribe(member_id, _) | Fault(_, member_id):
            return member_id in members
        case _:
            return True


def _window(total: int, breaking: int) -> tuple[int, int]:
    """First and last + 1 of the rounds to show: what led to the breach and a little of what follows."""
    end = min(total, breaking + ROUNDS_AFTER)
    return max(0, end - MOST_ROUNDS), end


def _story(shown: Sequence[_Round], breaking: int, total: int, unicode: bool, width: int) -> list[str]:
    lines = []
    for _, group in groupby(shown, key=lambda r: r.story if r.story == _ALONE else (r.number, r.story)):
        first, *others = group
        number = f"{first.number}-{others[-1].number}" if others else _number(first.number, breaking)
        text = fold(clean(first.story, unicode), width - 12, most=3)
        lines.append(f"round {pad(number, 5)} {text[0]}")
        lines += [" " * 12 + line for line in text[1:]]
    if len(shown) < total:
        lines.append(f"(rounds {shown[0].number} to {shown[-1].number} of {total})")
    return lines


def _number(number: int, breaking: int) -> str:
    return f"{number}*" if number == breaking else f"{number}"


def _concerned(finding: Finding, shown: Sequence[_Round]) -> Partitions:
    """All partitions of the rounds, in the order of interest: of the breach, moving, the others."""
    first = {p: position for position, p in enumerate(finding.breach.partitions)}
    everything, moving = set(first), set()
    for r in shown:
        if r.call is not None:
            everything.update(r.call.claimants, r.call.granted, r.withheld)
            if r.number == finding.round:
                moving = {p for revoked in r.call.revoked.values() for p in revoked}
    key = {p: (first.get(p, len(first)), p not in moving, p) for p in everything}
    return tuple(sorted(everything, key=key.__getitem__))


def _rows(
    partition: TopicPartition, shown: Sequence[_Round], breaking: int
) -> list[tuple[TopicPartition, str]]:
    """(partition, member) for the members that claim or get it, those of the breaking round for sure."""
    members: dict[str, bool] = {}
    for r in shown:
        if r.call is not None:
            concerned = (*r.call.claimants.get(partition, ()), *r.call.granted.get(partition, ()))
            for member in concerned:
                members[member] = members.get(member, False) or r.number == breaking
    chosen = sorted(members, key=lambda m: not members[m])[:MOST_MEMBERS]
    rows = [(partition, m) for m in members if m in chosen]
    if not rows or any(r.number == breaking and partition in r.withheld for r in shown):
        rows.append((partition, ""))
    return rows


def _cell(partition: TopicPartition, member: str, r: _Round) -> tuple[str, str, str]:
    """Symbols of the two halves of a cell, and its mark. The row of nobody has the member ``""``."""
    call = r.call
    if call is None:
        return " ", "?", " "
    if not member:
        return " ", _NOBODY if partition in r.withheld else " ", " "
    given = call.granted.get(partition, ()).count(member)
    without = _WITHOUT if member in call.group else " "
    claims = member in call.claimants.get(partition, ())
    # EAGER members revoke everything before they join: a claim tells what was, not what is.
    holds = call.protocol is RebalanceProtocol.COOPERATIVE and member in call.holders.get(partition, ())
    left = _OWNED if holds else _STALE if claims else without
    right = _OWNED if given else _LEAVING if holds else without
    return left, right, _OVERLAP if given and _others(partition, member, call) else " "


def _others(partition: TopicPartition, member: str, call: Call) -> tuple[str, ...]:
    """Who owns a partition at the moment when ``member`` is given it, itself if it is given it twice.

    Of members whose claims are equally new each may be the owner; giving it to one of them is no grant
    to somebody new.
    """
    others = list(call.granted[partition])
    others.remove(member)
    holders = call.holders.get(partition, ())
    if call.protocol is RebalanceProtocol.COOPERATIVE and member not in holders:
        others += holders
    return tuple(dict.fromkeys(others))


def _notes(partitions: Partitions, shown: Sequence[_Round], unicode: bool, width: int) -> list[str]:
    notes = []
    for r in shown:
        if r.call is None:
            continue
        for partition in partitions:
            for member in dict.fromkeys(r.call.granted.get(partition, ())):
                others = _others(partition, member, r.call)
                if not others:
                    continue
                who = " and ".join(shorten(clean(m, unicode), 40) for m in others if m != member)
                same = "twice" if member in others else ""
                own = "own" if " and " in who else "owns"
                also = " ".join(filter(None, (same, who and f"while {who} {own} it")))
                name = shorten(clean(str(partition), unicode), 40)
                text = f"round {r.number}: {name} is given to {shorten(clean(member, unicode), 40)} {also}"
                notes.append(cut(f"{_OVERLAP} {text}", width))
    more = [f"and {len(notes) - MOST_NOTES} more"] if len(notes) > MOST_NOTES else []
    return notes[:MOST_NOTES] + more
