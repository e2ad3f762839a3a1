"""The ownership chart of a finding: who claims and who is given which partition, round by round.

Each round is one rebalance in two halves, a column of the picture each: left what a member claims in
JoinGroup, right what it owns while SyncGroup delivers the assignment. A COOPERATIVE member goes on owning
what it is not given back until it has revoked it, so two bars side by side in a right half are two owners at
one time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, islice
from typing import Any

from rebalance.gate.report.picture import (
    MOST_LINES,
    MOST_MEMBERS,
    Arrow,
    Column,
    Look,
    Overlap,
    Picture,
    Row,
    bars,
    grid,
    joined,
    more,
)
from rebalance.gate.report.words import clean, columns, cut, fold, happens, joins, pad, shorten
from rebalance.gate.result import Finding
from rebalance.gate.traces import Trace, TraceError, field_of
from rebalance.model.values import (
    Cluster,
    Partitions,
    Racks,
    RebalanceProtocol,
    Subscription,
    TopicPartition,
)
from rebalance.properties.calls import Call, Claim
from rebalance.properties.clauses import Breach, Scope
from rebalance.properties.scenarios import (
    Event,
    Fault,
    FaultKind,
    Join,
    Leave,
    Member,
    Scenario,
    SetTopic,
    Subscribe,
)

MOST_ROUNDS = 12
ROUNDS_AFTER = 2  # the breaking one
MOST_PARTITIONS = 8
MOST_NOTES = 4

_SIGNS = {
    Look.OWNED: "█",
    Look.TIED: "█",
    Look.LEAVING: "▒",
    Look.STALE: "░",
    Look.PAST: "░",
    Look.WITHOUT: "·",
    Look.NOBODY: "-",
    Look.UNKNOWN: "?",
    None: " ",
}
_OVERLAP = "◀"
_ALONE = "left alone"
_ASCII = str.maketrans("█▒░·◀", "#~:.<")


@dataclass(frozen=True)
class _Round:
    number: int
    story: str
    """What happened before it and in it."""
    call: Call | None
    """``None``: the target did not answer, or nobody wrote it down."""
    faults: Mapping[str, FaultKind]


def picture(finding: Finding) -> Picture:
    """The finding as a picture, a pair of columns a round.

    At most 12 rounds up to shortly after the breaking one, 8 partitions (those of the breach first) and 6
    members a partition are shown.
    """
    shown, total = _rounds(finding)
    return _picture(finding, shown, total, _concerned(finding, shown))


def _picture(finding: Finding, shown: Sequence[_Round], total: int, everything: Partitions) -> Picture:
    partitions = everything[:MOST_PARTITIONS]
    rows = [row for partition in partitions for row in _rows(partition, shown, finding.round)]
    looks = [[look for r in shown for look in _looks(partition, member, r)] for partition, member in rows]
    twice = tuple(o for partition in partitions for o in _overlaps(partition, shown))
    still = {(o.partition, at, m) for o in twice for at in range(o.start, o.end) for m in o.members}
    for (partition, member), line in zip(rows, looks, strict=True):
        for at, look in enumerate(line):
            if look is Look.TIED and (str(partition), at, member) in still:
                line[at] = Look.OWNED
    inside = dict.fromkeys(m for r in shown if r.call for m in r.call.group)
    first = dict.fromkeys(member for _, member in rows if member)
    lines = set(islice(dict.fromkeys([*first, *inside]), MOST_LINES))
    members = tuple(member for member in inside if member in lines)
    left_out = [
        *_window_said(shown, total),
        *more(len(everything) - len(partitions), "more partition"),
        *more(len(inside) - len(members), "more member"),
    ]
    return Picture(
        f"{finding.clause.id}: {finding.breach.summary}",
        tuple(_columns(shown, finding.round)),
        tuple(Row(str(partition), member) for partition, member in rows),
        bars(looks),
        twice,
        members,
        tuple(arrow for at, r in enumerate(shown) for arrow in _arrows(2 * at, r, members)),
        left_out=tuple(left_out),
        era="round",
        unit="round",
    )


def _columns(shown: Sequence[_Round], breaking: int) -> Iterator[Column]:
    for r in shown:
        marked = r.number == breaking
        yield Column("JoinGroup", r.story, generation=r.number, marked=marked)
        yield Column("SyncGroup", generation=r.number, marked=marked)


def _arrows(column: int, r: _Round, members: Sequence[str]) -> Iterator[Arrow]:
    if r.call is None:
        return
    newest = max((claim.generation for claim in r.call.claims.values() if claim.partitions), default=0)
    for member in members:
        if member not in r.call.group:
            continue
        claim = r.call.claims.get(member)
        old = claim is not None and claim.partitions and claim.generation < newest
        since = f"claims of generation {claim.generation}" if claim and old else ""
        lost = r.faults.get(member)
        yield Arrow(column, member, "JoinGroup", text=since)
        yield Arrow(
            column + 1,
            member,
            "SyncGroup",
            answer=True,
            text="its JoinGroup response is lost" if lost is FaultKind.LOST_JOIN else "",
            lost=lost in (FaultKind.LOST_JOIN, FaultKind.MISSED_SYNC),
        )


def _overlaps(partition: TopicPartition, shown: Sequence[_Round]) -> tuple[Overlap, ...]:
    """Two owners while SyncGroup delivers the assignment, and while those two join again with it."""
    found, before = [], dict[str, None]()
    for at, r in enumerate(shown):
        owners = _at_once(partition, r.call) if r.call else ()
        still = [m for m in r.call.holders.get(partition, ()) if m in before] if r.call else []
        if r.call and r.call.protocol is RebalanceProtocol.COOPERATIVE and len(still) > 1:
            found.append(Overlap(str(partition), 2 * at, 2 * at + 1, tuple(sorted(still))))
        if owners:
            found.append(Overlap(str(partition), 2 * at + 1, 2 * at + 2, tuple(sorted(owners))))
        before = dict.fromkeys(r.call.granted.get(partition, ())) if r.call else {}
    return joined(found)


def _at_once(partition: TopicPartition, call: Call) -> tuple[str, ...]:
    """Who owns it at one time; nobody if that is no more than one, itself if it is given it twice."""
    given = call.granted.get(partition, ())
    held = call.holders.get(partition, ()) if call.protocol is RebalanceProtocol.COOPERATIVE else ()
    owners = given if set(given) <= set(held) else (*given, *held)
    return tuple(dict.fromkeys(owners)) if len(owners) > 1 else ()


def chart(finding: Finding, unicode: bool = True, width: int = 108) -> list[str]:
    """The picture as lines of at most ``width`` columns, the story of the rounds first.

    Rounds and partitions left out are named. Without ``unicode`` all is ASCII.
    """
    shown, total = _rounds(finding)
    lines = _story(shown, finding.round, total, unicode, width)
    everything = _concerned(finding, shown)
    drawn = _picture(finding, shown, total, everything)
    if all(r.call is None for r in shown) or not drawn.rows:
        return lines  # the target failed before anybody held anything
    names = [(clean(row.partition, unicode), clean(row.member, unicode) or "(nobody)") for row in drawn.rows]
    first = max(columns(shorten(name, 24)) for name, _ in names)
    second = max(columns(shorten(name, 24)) for _, name in names)
    half = min(max((width - first - second - 4) // len(shown) - 2, 2) // 2, 5)
    title = " " * (first + second + 4)
    title += "".join(pad(_number(r.number, finding.round), 2 * half + 2) for r in shown)
    lines += ["", title.rstrip()]
    twice = {(o.partition, at, m) for o in drawn.overlaps for at in range(o.start, o.end) for m in o.members}
    previous = None
    for row, looks, (name, who) in zip(drawn.rows, grid(drawn), names, strict=True):
        cells = ""
        for at in range(0, len(looks), 2):
            over = looks[at + 1] is Look.OWNED and (row.partition, at + 1, row.member) in twice
            halves = (_SIGNS[look] * half for look in looks[at : at + 2])
            cells += "".join(halves) + (_OVERLAP if over else " ") + " "
        labels = (
            pad(shorten(name, 24) if row.partition != previous else "", first),
            pad(shorten(who, 24), second),
        )
        lines.append(f"{labels[0]}  {labels[1]}  {cells}".rstrip())
        previous = row.partition
    lines += more(len(everything) - MOST_PARTITIONS, "more partition")
    lines += _notes(everything[:MOST_PARTITIONS], shown, unicode, width)
    used = {Look.OWNED if bar.look is Look.TIED else bar.look for bar in drawn.bars} - {Look.UNKNOWN}
    known = [f"{_SIGNS[look]} {look}" for look in Look if look in used]
    known += [f"{_OVERLAP} two owners"] * any(_OVERLAP in line for line in lines)
    lines += ["left half JoinGroup, right half SyncGroup", *fold("   ".join(known), width)]
    return lines if unicode else [line.translate(_ASCII) for line in lines]


# -- rounds ------------------------------------------------------------------------------------------------


def _rounds(finding: Finding) -> tuple[list[_Round], int]:
    """The rounds to show, what led to the breach and a little of what follows, and how many there are."""
    total = max(len(finding.calls), finding.round, 0)
    window = _window(total, finding.round)
    # An unconfirmed finding has no recording; otherwise a round beyond the last call is one without answer.
    recorded = bool(finding.calls) or finding.confirmed
    before = {index: (story, faults) for index, story, faults, _ in _followed(finding.scenario, window)}
    found = []
    for index in window:
        story, faults = before.get(index, ("", {}))
        call = finding.calls[index] if index < len(finding.calls) else None
        if call is None and recorded:
            story = "; ".join(filter(None, (story, "no answer")))
        found.append(_Round(index + 1, story or _ALONE, call, faults))
    return found, total


def _window(total: int, breaking: int) -> range:
    end = max(0, min(total, breaking + ROUNDS_AFTER))
    return range(max(0, end - MOST_ROUNDS), end)


def _followed(
    scenario: Scenario, window: range
) -> Iterator[tuple[int, str, Mapping[str, FaultKind], Mapping[str, tuple[Racks, ...]]]]:
    """For the rebalances in ``window`` (numbered from 0): what precedes each, its faults, the topics then.

    The last is the first undisturbed one. A round in which nobody joins is none, so the group is followed
    as ``histories.play`` does; events about members that are not there are left out. No longer than the
    scenario is: whoever is asked about again and again costs nothing while nothing happens to him.
    """
    static = {m.id: m.instance is not None for m in scenario.members}
    topics = dict(scenario.topics)
    unknown = {m for m in static if static[m]}  # static members that the coordinator has not seen yet
    joined = [e.member for events in scenario.rounds for e in events if isinstance(e, Join)]
    alike = len({frozenset(m.topics) for m in (*scenario.members, *joined)}) <= 1
    story: list[Member | Event] = list(scenario.members)
    index = 0
    for events in scenario.rounds:
        faults: dict[str, FaultKind] = {}
        for event in events:
            if not _matters(event, static):
                continue
            story.append(event)
            match event:
                case Join(member):
                    static[member.id] = member.instance is not None
                    if static[member.id]:
                        unknown.add(member.id)
                case Leave(member_id):
                    del static[member_id]
                    unknown.discard(member_id)
                case SetTopic(topic, partitions):
                    topics.pop(topic, None)
                    if partitions is not None:
                        topics[topic] = partitions
                case Fault(kind, member_id):
                    faults[member_id] = kind
                case _:
                    pass
        absent = [m for m, kind in faults.items() if kind in _ABSENT and m in static]
        known = [m for m in absent if static[m] and m not in unknown]
        unknown.intersection_update(absent)
        if len(absent) < len(static) or known:
            if index in window:
                yield index, _tell(story, alike), faults, dict(topics)
            elif index >= window.stop:
                return
            story, index = [], index + 1
    if index in window:
        yield index, _tell(story, alike), {}, dict(topics)


def stories(scenario: Scenario, window: range) -> dict[int, str]:
    """What happens before each of the rebalances in ``window`` (numbered from 0) in which anything does."""
    told = {index: story for index, story, _, _ in _followed(scenario, window)}
    return {index: story for index, story in told.items() if story}


_ABSENT = (FaultKind.SILENT, FaultKind.GHOST)


def _tell(story: Sequence[Member | Event], alike: bool) -> str:
    said = (joins(e, alike) if isinstance(e, Member) else happens(e, alike) for e in story)
    return "; ".join(said)


def _matters(event: Event, members: dict[str, bool]) -> bool:
    match event:
        case Join(member):
            return member.id not in members
        case Leave(member_id) | Subscribe(member_id, _) | Fault(_, member_id):
            return member_id in members
        case _:
            return True


def _story(shown: Sequence[_Round], breaking: int, total: int, unicode: bool, width: int) -> list[str]:
    lines = []
    for _, group in groupby(shown, key=lambda r: r.story if r.story == _ALONE else (r.number, r.story)):
        first, *others = group
        number = f"{first.number}-{others[-1].number}" if others else _number(first.number, breaking)
        text = fold(clean(first.story, unicode), width - 12, most=3)
        lines.append(f"round {pad(number, 5)} {text[0]}")
        lines += [" " * 12 + line for line in text[1:]]
    return lines + [f"({said})" for said in _window_said(shown, total)]


def _window_said(shown: Sequence[_Round], total: int) -> list[str]:
    if len(shown) == total:
        return []
    return [f"rounds {shown[0].number} to {shown[-1].number} of {total}"] if shown else []


def _number(number: int, breaking: int) -> str:
    return f"{number}*" if number == breaking else f"{number}"


def _concerned(finding: Finding, shown: Sequence[_Round]) -> Partitions:
    """All partitions of the rounds, in the order of interest: of the breach, moving, the others."""
    first = {p: position for position, p in enumerate(finding.breach.partitions)}
    everything, moving = set(first), set()
    for r in shown:
        if r.call is not None:
            everything.update(r.call.claimants, r.call.granted, r.call.withheld)
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
    if not rows or any(r.number == breaking and r.call and partition in r.call.withheld for r in shown):
        rows.append((partition, ""))
    return rows


def _looks(partition: TopicPartition, member: str, r: _Round) -> tuple[Look | None, Look | None]:
    """What a member has to do with a partition in the two halves of a round. The row of nobody has the
    member ``""``."""
    call = r.call
    if call is None:
        return None, Look.UNKNOWN
    if not member:
        return None, Look.NOBODY if partition in call.withheld else None
    given = member in call.granted.get(partition, ())
    without = Look.WITHOUT if member in call.group else None
    claims = member in call.claimants.get(partition, ())
    # EAGER members revoke everything before they join: a claim tells what was, not what is.
    eager = call.protocol is RebalanceProtocol.EAGER
    holders = () if eager else call.holders.get(partition, ())
    holds = member in holders
    has = Look.OWNED if len(holders) == 1 else Look.TIED
    old = Look.PAST if eager else Look.STALE
    left = has if holds else old if claims else without
    right = Look.OWNED if given else Look.LEAVING if holds else without
    return left, right


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
    grants = [
        (r, r.call, partition, member)
        for r in shown
        if r.call is not None
        for partition in partitions
        if _at_once(partition, r.call)
        for member in _newly(partition, r.call)
    ]
    notes = []
    for r, call, partition, member in grants[:MOST_NOTES]:
        others = _others(partition, member, call)
        who = " and ".join(shorten(clean(m, unicode), 40) for m in others if m != member)
        same = "twice" if member in others else ""
        own = "own" if " and " in who else "owns"
        also = " ".join(filter(None, (same, who and f"while {who} {own} it")))
        name = shorten(clean(str(partition), unicode), 40)
        text = f"round {r.number}: {name} is given to {shorten(clean(member, unicode), 40)} {also}"
        notes.append(cut(f"{_OVERLAP} {text}", width))
    more = [f"and {len(grants) - MOST_NOTES} more"] if len(grants) > MOST_NOTES else []
    return notes + more


def _newly(partition: TopicPartition, call: Call) -> tuple[str, ...]:
    """To whom a partition that has more than one owner is given beside another."""
    given = tuple(dict.fromkeys(call.granted[partition]))
    if len(call.granted[partition]) > 1:
        return given
    return tuple(m for m in given if m not in call.holders.get(partition, ()))


# -- from a file -------------------------------------------------------------------------------------------


def recorded(trace: Trace) -> Finding:
    """The finding that a trace was saved from, as far as the file tells: the target is not asked.

    Only the rounds that a picture shows are read. Raises TraceError that names what is wrong with them.
    """
    window = _window(max(len(trace.calls), trace.round, 0), trace.round)
    topics = {index: known for index, _, _, known in _followed(trace.scenario, window)}
    nothing = Call(trace.protocol, Cluster(), {}, {}, {})
    calls = tuple(
        _call(trace.protocol, data, f"calls[{index}].", topics.get(index, trace.scenario.topics))
        if index in window
        else nothing
        for index, data in enumerate(trace.calls)
    )
    breach = Breach(trace.summary, trace.because, trace.expected, trace.actual)
    if trace.clause.scope is Scope.CALL and 0 < trace.round <= len(calls):
        breach = trace.clause.check(calls[trace.round - 1]) or breach  # for its partitions
    return Finding(
        trace.clause,
        trace.protocol,
        replace(breach, summary=trace.summary),
        trace.scenario,
        trace.round,
        calls,
        trace.seed,
        trace.number,
        trace.found_size,
        trace.confirmed and bool(calls),
        path=str(trace.path or ""),
    )


def _call(
    protocol: RebalanceProtocol, data: Any, where: str, topics: Mapping[str, tuple[Racks, ...]]
) -> Call:
    if not isinstance(data, dict):
        raise TraceError(f"field '{where[:-1]}' is {json.dumps(data)[:60]}, expected an object")
    group, claims = {}, {}
    members = field_of(data, "members", dict, where=where)
    for member in members:
        inside = f"{where}members.{member}."
        said = field_of(members, member, dict, where=f"{where}members.")
        group[member] = Subscription(tuple(map(str, field_of(said, "topics", list, [], inside))))
        claims[member] = Claim(
            _partitions(said, "claims", inside), field_of(said, "generation", int, -1, inside)
        )
    given = field_of(data, "assignment", dict, where=where)
    assignment = {member: _partitions(given, member, f"{where}assignment.") for member in given}
    return Call(protocol, Cluster(topics), group, claims, assignment)


def _partitions(data: Mapping[str, Any], name: str, where: str) -> Partitions:
    found = []
    for text in field_of(data, name, list, [], where):
        topic, dash, index = str(text).rpartition("-")
        if not dash or not index.isdecimal():
            raise TraceError(f"field '{where}{name}' has {json.dumps(text)[:60]}, expected 'orders-0'")
        found.append(TopicPartition(topic, int(index)))
    return tuple(found)
