"""What the events of one run say against the clients: exact, in plain Python, for one group.

The first checks are those of ``rebalance audit``, by the same rules (``pipeline/audit/kernel/checks.sql``);
it judges many groups of many hosts, this one group whose clocks are one. The others need what only a
recording knows: which member was alive, what the client says that it owns, who read which records."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import pairwise
from typing import Any, NamedTuple

from rebalance_verifier.base.tables import table
from rebalance_verifier.model.group.setup import CONSUMER

EventLine = Mapping[str, Any]


class Check(NamedTuple):
    """Something that must not be seen. ``level`` as of a clause."""

    id: str
    level: str
    sentence: str


CHECKS = {id_: Check(id_, **row) for id_, row in table(__file__).items()}
"""In the order in which they are reported."""


@dataclass(frozen=True, kw_only=True)
class QuiescencePoint:
    """A moment at which the group was to be at rest: step ``number`` of the run, at ``at`` (ISO 8601).

    ``live``: who took part; ``wanted``: the partitions of what they subscribe to; ``owned``: what each of
    them said that it has. ``settled``, else ``why`` not.
    """

    number: int
    at: str
    settled: bool
    live: tuple[str, ...]
    wanted: tuple[str, ...]
    owned: Mapping[str, tuple[str, ...]]
    why: str = ""
    agreed: bool = False
    """Not settled, yet all are in one generation and nothing moves."""


@dataclass(frozen=True, kw_only=True)
class CheckFinding:
    """One finding. ``seconds`` is how long it lasted, up to the end of the run; generations are of grants."""

    check: str
    began: str
    seconds: float = 0.0
    consumers: tuple[str, ...]
    detail: str
    partition: str = ""
    generations: tuple[int | None, ...] = ()

    @property
    def level(self) -> str:
        """As of its check."""
        return CHECKS[self.check].level


@dataclass(frozen=True, kw_only=True)
class Owned:
    """A time in which a consumer owned a partition, by its callbacks. ``end``: the event that ended it."""

    consumer: str
    granted: int | None
    began: str
    ended: str | None = None
    end: str | None = None
    held: int | None = None
    served: bool = False
    """As a member of the consumer protocol, who need not be told each epoch."""


@dataclass(frozen=True, kw_only=True)
class HandOver:
    """From the last record that one owner read to the first of the next; ``offsets`` says how many records
    were read again (above 0) or by nobody (below)."""

    partition: str
    before: str
    after: str
    at: str
    first: int
    """The offset at which the next one begins."""
    offsets: int
    killed: bool
    """The earlier one was killed in between: what it read last may not have been told."""


@dataclass(kw_only=True)
class OwnershipHistory:
    """The events of one group, put in order."""

    events: Sequence[EventLine]
    intervals: dict[str, list[Owned]] = field(default_factory=lambda: defaultdict(list))
    disorder: list[CheckFinding] = field(default_factory=list)
    members: dict[int, set[str]] = field(default_factory=lambda: defaultdict(set))
    first: dict[int, str] = field(default_factory=dict)
    end: str = ""


def history(lines: Iterable[EventLine]) -> OwnershipHistory:
    """Return who owned what from when to when, and which callbacks do not fit."""
    timed = [line for line in lines if "at" in line]
    events = sorted(timed, key=lambda line: str(line["at"]))  # of one consumer they are in order already
    made = OwnershipHistory(events=events, end=str(events[-1]["at"]) if events else "")
    open_: dict[str, dict[str, Owned]] = defaultdict(dict)
    for event in events:
        kind, consumer = event["event"], event.get("consumer", "")
        generation, at = event.get("generation"), event["at"]
        if kind in ("joined", "synced") and generation is not None:
            made.members[generation].add(consumer)
            made.first.setdefault(generation, at)
        mine = open_[consumer]
        match kind:
            case "assigned":
                for name in event.get("partitions", ()):
                    if name in mine:
                        made.disorder.append(_order(event, name, f"assigned {name}, which it owned already"))
                        _close(made, mine, name, event)
                    served = event.get("protocol") == CONSUMER
                    mine[name] = Owned(consumer=consumer, granted=generation, began=at, served=served)
            case "revoked" | "lost":
                for name in event.get("partitions", ()):
                    if name in mine:
                        _close(made, mine, name, event)
                    else:
                        made.disorder.append(_order(event, name, f"{kind} {name}, which it did not own"))
            case "started" | "closed":
                for name in sorted(mine):
                    _close(made, mine, name, event)
    for mine in open_.values():
        for name, one in mine.items():
            made.intervals[name].append(_vanished(made, one))
    for several in made.intervals.values():
        several.sort(key=lambda one: (one.began, -1 if one.granted is None else one.granted, one.consumer))
    return made


def _close(made: OwnershipHistory, mine: dict[str, Owned], name: str, event: EventLine) -> None:
    ended = replace(mine.pop(name), ended=event["at"], end=event["event"], held=event.get("generation"))
    made.intervals[name].append(ended)


def _vanished(made: OwnershipHistory, one: Owned) -> Owned:
    """Return what a consumer owned that the group went on without ends when it did."""
    last = max((g for g, who in made.members.items() if one.consumer in who), default=None)
    later = [g for g in made.members if last is not None and g > last]
    return replace(one, ended=max(made.first[min(later)], one.began)) if later else one


def _order(event: EventLine, name: str, detail: str) -> CheckFinding:
    who = event["consumer"]
    return CheckFinding(
        check="callback-order",
        began=event["at"],
        consumers=(who,),
        detail=f"{who}: {detail}",
        partition=name,
        generations=(event.get("generation"),),
    )


def contradictions(made: OwnershipHistory) -> Iterator[CheckFinding]:
    """Owned twice, granted before revoked, owned by a zombie (see ``pipeline/audit/kernel/checks.sql``)."""
    for name in sorted(made.intervals):
        owned = made.intervals[name]
        for number, b in enumerate(owned):
            for back, a in enumerate(reversed(owned[:number])):
                if a.consumer != b.consumer and (found := _meet(made, name, a, b, back == 0)):
                    yield found


def _meet(made: OwnershipHistory, name: str, a: Owned, b: Owned, following: bool) -> CheckFinding | None:
    """Return what is wrong with two owners of which ``a`` began first."""
    overlap = a.ended is None or a.ended > b.began
    granted = [g for g in (a.granted, b.granted) if g is not None]
    older = b if len(granted) == 2 and granted[0] > granted[1] else a
    later = max(granted, default=-1)
    member = later not in made.members or older.consumer in made.members[later]
    if older.served:
        member = older.end not in ("lost", "closed", "started")
    ends = [at for at in (a.ended, b.ended) if at is not None]
    lasted = seconds(b.began, min([*ends, made.end])) if overlap else 0.0
    check = ""
    if overlap and member:
        check = "owned-twice"
    elif following and a.end == "revoked" and len(granted) == 2 and _within(a, b):
        check = "granted-before-revoked"
    elif overlap and older.end in ("revoked", "lost", "closed"):
        check = "owned-by-zombie"
    if not check:
        return None
    still = "never gave it away" if a.ended is None else f"{a.end or 'was gone'} in generation {a.held}"
    detail = (
        f"{b.consumer} was granted it in generation {b.granted}; {a.consumer} had been in generation "
        f"{a.granted}, and {still}"
    )
    who = (a.consumer, b.consumer)
    return CheckFinding(
        check=check,
        began=b.began,
        seconds=lasted,
        consumers=who,
        detail=detail,
        partition=name,
        generations=(a.granted, b.granted),
    )


def _within(a: Owned, b: Owned) -> bool:
    """Check whether ``a`` gave it away in the generation of the later grant to ``b``, or after."""
    return None not in (a.held, a.granted, b.granted) and a.held >= b.granted > a.granted  # type: ignore[operator]


def at_rest(made: OwnershipHistory, rests: Iterable[QuiescencePoint]) -> Iterator[CheckFinding]:
    """Yield what was wrong when the group was to be at rest."""
    for rest in rests:
        answered = dict.fromkeys(rest.live, rest.at)
        for event in made.events:
            if event["event"] == "owns" and event["at"] <= rest.at:
                answered[event["consumer"]] = event["at"]
        believed = {who: _believed(made, who, answered[who]) for who in rest.live}
        midway = {who for who in rest.live if _rebalancing(made, who, answered[who])}
        for who in rest.live:
            if who in midway:
                continue
            if who in rest.owned and set(rest.owned[who]) != believed[who]:
                more = sorted(set(rest.owned[who]) - believed[who])
                less = sorted(believed[who] - set(rest.owned[who]))
                detail = f"{who} owns {_names(more)} that no callback reported" if more else ""
                detail += " and " if more and less else ""
                detail += f"{who} does not own {_names(less)} that its callbacks reported" if less else ""
                yield CheckFinding(
                    check="assignment-differs",
                    began=rest.at,
                    consumers=(who,),
                    detail=detail,
                    partition=(more + less)[0],
                )
        if rest.settled:
            continue
        owned = {name for mine in believed.values() for name in mine}
        missing = [name for name in rest.wanted if name not in owned]
        if rest.agreed and missing:
            detail = _stranded(made, rest, missing)
            yield CheckFinding(
                check="stranded", began=rest.at, consumers=rest.live, detail=detail, partition=missing[0]
            )
        else:
            yield CheckFinding(
                check="never-settles",
                began=rest.at,
                consumers=rest.live,
                detail=f"at step {rest.number}: {rest.why}",
            )


def _believed(made: OwnershipHistory, who: str, at: str) -> set[str]:
    return {
        name
        for name, several in made.intervals.items()
        for one in several
        if one.consumer == who and one.began <= at and (one.ended is None or one.ended > at)
    }


def _rebalancing(made: OwnershipHistory, who: str, at: str) -> bool:
    """Check whether a rebalance had begun for ``who``, and had not told it what it owns: it is not at
    rest."""
    moves = [
        event["event"]
        for event in made.events
        if event.get("consumer") == who and event["event"] in _MOVES and event["at"] <= at
    ]
    return bool(moves) and moves[-1] in ("revoked", "joining", "joined")


_MOVES = ("revoked", "lost", "joining", "joined", "synced", "assigned")


def _stranded(made: OwnershipHistory, rest: QuiescencePoint, missing: Sequence[str]) -> str:
    """Return what is the matter with partitions that no live member owns; one that is not polled may own
    them."""
    owners = {one.consumer for name in missing for one in made.intervals.get(name, ())}
    held = {who: _believed(made, who, rest.at) & {*missing} for who in sorted(owners - {*rest.live})}
    elsewhere = [
        f"{who}, which is not polled, owns {_names(sorted(mine))}" for who, mine in held.items() if mine
    ]
    whose = f"nobody that is polled owns {_names(missing)} ({'; '.join(elsewhere)})"
    which = whose if elsewhere else f"nobody owns {_names(missing)}"
    return f"{which}, and the members agree on their generation"


def _names(names: Sequence[str]) -> str:
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def hand_overs(lines: Iterable[EventLine]) -> list[HandOver]:
    """Return each time that another consumer, or the same one again, goes on reading a partition."""
    reads: dict[str, list[tuple[str, int, int, str]]] = defaultdict(list)
    killed: dict[str, list[str]] = defaultdict(list)
    for line in lines:
        if line["event"] == "polled":
            for name, (first, last) in line["ranges"].items():
                reads[name].append((line["at"], first, last, line["consumer"]))
        elif line["event"] == "closed" and line.get("detail") == "killed":
            killed[line["consumer"]].append(line["at"])
    made = []
    for name in sorted(reads):
        several = sorted(reads[name])
        so_far = several[0][2]
        for (read, _, end, before), (at, first, last, after) in pairwise(several):
            goes_on = first == end + 1
            if not goes_on or before != after:
                made.append(
                    HandOver(
                        partition=name,
                        before=before,
                        after=after,
                        at=at,
                        first=first,
                        offsets=0 if goes_on else so_far + 1 - first,
                        killed=not goes_on and any(read <= end_of_it < at for end_of_it in killed[before]),
                    )
                )
            so_far = max(so_far, last)
    return made


def skipped(handed: Iterable[HandOver], lines: Sequence[EventLine]) -> Iterator[CheckFinding]:
    """Records that nobody read although later ones of the partition were."""
    read: dict[str, set[int]] = defaultdict(set)
    for line in lines:
        if line["event"] == "polled":
            for name, (first, last) in line["ranges"].items():
                read[name].update(range(first, last + 1))
    for one in handed:
        missed = set(range(one.first + one.offsets, one.first)) - read[one.partition]
        if missed and not one.killed:
            detail = f"{one.after} began at {one.first}; offsets from {min(missed)} on were read by nobody"
            yield CheckFinding(
                check="skipped-records",
                began=one.at,
                consumers=(one.before, one.after),
                detail=detail,
                partition=one.partition,
            )


def read_twice(lines: Iterable[EventLine]) -> Iterator[CheckFinding]:
    """Yield partitions that two members have read in one epoch, once somebody speaks the consumer
    protocol."""
    readers: dict[tuple[str, int], str] = {}
    served = False
    for line in lines:
        served = served or line.get("protocol") == CONSUMER
        generation, who = line.get("generation"), line.get("consumer", "")
        if line["event"] != "polled" or generation is None or not served:
            continue
        for name in line["ranges"]:
            first = readers.setdefault((name, generation), who)
            if first != who:
                readers[name, generation] = who
                yield CheckFinding(
                    check="read-twice",
                    began=line["at"],
                    consumers=(first, who),
                    detail=f"{first} and then {who} read it in epoch {generation}",
                    partition=name,
                    generations=(generation, generation),
                )


def died(lines: Iterable[EventLine]) -> Iterator[CheckFinding]:
    """Consumers that ended by themselves."""
    for line in lines:
        if line["event"] == "closed" and str(line.get("detail", "")).startswith("ended with"):
            yield CheckFinding(
                check="died",
                began=line["at"],
                consumers=(line["consumer"],),
                detail=f"{line['consumer']} {line['detail']}",
            )


def judge(lines: Sequence[EventLine], rests: Sequence[QuiescencePoint]) -> list[CheckFinding]:
    """Return all findings of a run, in the order of the checks and of time."""
    made = history(lines)
    found = [
        *contradictions(made),
        *made.disorder,
        *at_rest(made, rests),
        *read_twice(lines),
        *skipped(hand_overs(lines), lines),
        *died(lines),
    ]
    order = list(CHECKS)
    return sorted(found, key=lambda one: (order.index(one.check), one.began, one.partition))


def seconds(start: str, stop: str) -> float:
    """From one time to another, both as events have them."""
    return (datetime.fromisoformat(stop) - datetime.fromisoformat(start)).total_seconds()
