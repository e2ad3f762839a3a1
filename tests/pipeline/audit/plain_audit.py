"""The checks of an audit in plain Python: one group at a time, every partition, no shortcut.

Written from the sentences of the checks to compare the product with; it shares no code with it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, NamedTuple

NEIGHBOURS = 3
"""An interval is compared with so many that began before it."""

STIRS = {
    *("started", "joining", "joined", "synced", "reset", "leaving", "closed"),
    *("preparing", "stable", "removed", "empty"),
}
GONE = ("leaving", "closed", "empty", "removed")
UNDER_WAY = ("joining", "preparing")


class Event(NamedTuple):
    """The columns of EVENTS that say something to a check."""

    at: datetime
    kind: str
    group: str
    consumer: str | None
    member: str | None
    generation: int | None
    topic: str | None
    partition: int | None
    file: str
    line: int


class Found(NamedTuple):
    """The columns of FINDINGS that say what, where, and from when to when."""

    check: str
    group: str
    topic: str | None
    partition: int | None
    began: datetime
    ended: datetime | None
    consumers: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Owned:
    """An interval of ownership. ``end``: the kind of the event that ended it."""

    consumer: str
    granted: int | None
    began: datetime
    ended: datetime | None
    end: str | None
    held: int | None
    begun: bool = True
    """In this log."""

    @property
    def order(self) -> tuple[Any, ...]:
        return self.began, _null_first(self.granted), self.consumer


@dataclass(frozen=True, kw_only=True)
class Limits:
    """As ``findings.Thresholds``, in seconds."""

    stranded: float = 60.0
    settle: float = 300.0
    storm: int = 10
    storm_within: float = 600.0
    pause: float = 300.0


def audit(events: Iterable[Event], limits: Limits) -> set[Found]:
    """What is wrong in all groups."""
    groups: dict[str, list[Event]] = defaultdict(list)
    for event in events:
        groups[event.group].append(event)
    if not groups:
        return set()
    end = max(event.at for several in groups.values() for event in several)
    return {found for name in groups for found in Group(groups[name], end, limits).findings()}


class Group:
    """One group, read once."""

    def __init__(self, events: list[Event], end: datetime, limits: Limits) -> None:
        self.events, self.end, self.limits = events, end, limits
        self.name = events[0].group
        self.members: dict[int, dict[str, str]] = defaultdict(dict)
        self.synced: dict[tuple[int, str], datetime] = {}
        first: dict[int, datetime] = {}
        for event in events:
            if event.kind in ("joined", "synced") and event.generation is not None and event.consumer:
                there = self.members[event.generation]
                there[event.consumer] = max(there.get(event.consumer, ""), event.member or "")
                first[event.generation] = min(first.get(event.generation, event.at), event.at)
                if event.kind == "synced":
                    who = event.generation, event.consumer
                    self.synced[who] = max(self.synced.get(who, event.at), event.at)
        for event in events:  # generations that only the coordinator tells of
            if (
                event.kind == "stable"
                and event.generation is not None
                and event.generation not in self.members
            ):
                first[event.generation] = min(first.get(event.generation, event.at), event.at)
        joins = [e for e in events if e.kind in ("joined", "synced") and e.consumer]
        numbered = {event.consumer for event in joins if event.generation is not None}
        self.unnumbered = {event.consumer for event in joins} - numbered
        self.first = first
        self.order = sorted(first, key=lambda generation: (first[generation], generation))
        self.eras()
        self.stirs = sorted(
            (event for event in events if event.kind in STIRS),
            key=_log_order,
        )
        self.syncs = any(event.kind == "synced" for event in self.stirs)
        self.owned: dict[tuple[str, int], list[Owned]] = {}
        for key in sorted({(e.topic, e.partition) for e in events if e.topic and e.partition is not None}):
            self.owned[key] = sorted(self.intervals(*key), key=lambda one: one.order)

    def eras(self) -> None:
        """Whenever members or subscriptions change, an era begins: ``era`` with a generation, and before."""
        changes = [event.at for event in self.events if event.kind in ("subscribed", "started")]
        self.era: dict[int, int] = {}
        self.changed: dict[int, bool] = {}
        count = 0
        for number, generation in enumerate(self.order):
            previous = self.members.get(self.order[number - 1]) if number else None
            mine = self.members.get(generation)
            self.changed[generation] = previous is None or previous != mine
            count += self.changed[generation]
            earlier = sum(at <= self.first[generation] for at in changes)
            self.era[generation] = count + earlier

    def intervals(self, topic: str, partition: int) -> Iterator[Owned]:
        """Of one partition: to the next change of the same consumer, or its own end."""
        several: dict[str, list[Event]] = defaultdict(list)
        for event in self.events:
            ours = (event.topic, event.partition) == (topic, partition)
            if ours and event.consumer and event.kind in ("assigned", "revoked", "lost"):
                several[event.consumer].append(event)
        for consumer, changes in several.items():
            changes.sort(key=_log_order)
            lives = [e for e in self.events if e.consumer == consumer and e.kind in ("started", "closed")]
            for number, event in enumerate(changes):
                if event.kind != "assigned":
                    if number == 0:  # it began before the log of its consumer did
                        began = min(e.at for e in self.events if e.consumer == consumer)
                        turn = min(
                            (e for e in lives if began < e.at < event.at), key=_log_order, default=event
                        )
                        yield Owned(
                            consumer=consumer,
                            granted=None,
                            began=began,
                            ended=turn.at,
                            end=turn.kind,
                            held=turn.generation,
                            begun=False,
                        )
                    continue
                stop = changes[number + 1] if number + 1 < len(changes) else None
                life = min((e for e in lives if e.at > event.at), key=_log_order, default=None)
                if life is not None and (stop is None or life.at < stop.at):
                    stop = life
                ended = stop.at if stop else None
                gone = self.gone(consumer)
                if ended is None and gone is not None:
                    ended = max(gone, event.at)
                yield Owned(
                    consumer=consumer,
                    granted=event.generation,
                    began=event.at,
                    ended=ended,
                    end=stop.kind if stop else None,
                    held=stop.generation if stop else None,
                )

    def gone(self, consumer: str) -> datetime | None:
        """When the first generation without a consumer began that never came back."""
        last = max((g for g in self.members if consumer in self.members[g]), default=None)
        later = [g for g in self.members if last is not None and g > last]
        return self.first[min(later)] if later else None

    def findings(self) -> Iterator[Found]:
        for key, owned in self.owned.items():
            yield from self.contradictions(key, owned)
            yield from self.unowned(key, owned)
        yield from self.storms()
        yield from self.unsettled()
        yield from self.slow()

    def contradictions(self, key: tuple[str, int], owned: list[Owned]) -> Iterator[Found]:
        """Owned twice, by a zombie, granted before revoked, moved for no reason."""
        for number, b in enumerate(owned):
            for a in owned[max(0, number - NEIGHBOURS) : number]:
                if a.consumer == b.consumer:
                    continue
                following = a is owned[number - 1]
                overlap = a.ended is None or a.ended > b.began
                known = a.granted is not None and b.granted is not None
                older = b if known and a.granted > b.granted else a  # type: ignore[operator]
                later = max((g for g in (a.granted, b.granted) if g is not None), default=None)
                logged = later in self.members
                member = not logged or older.consumer in self.members[later]  # type: ignore[index]
                given = a.end == "revoked" and None not in (a.held, b.granted) and a.held >= b.granted  # type: ignore[operator]
                proved = given and (not a.begun or (known and b.granted > a.granted))  # type: ignore[operator]
                both = a.consumer, b.consumer
                until = min((at for at in (a.ended, b.ended) if at is not None), default=None)
                if {a.consumer, b.consumer} & self.unnumbered:
                    member = self.is_member(older, b.began)
                if overlap and member:
                    yield Found("owned-twice", self.name, *key, b.began, until, both)
                elif proved and following:
                    start, stop = (b.began, until) if overlap else (a.ended, b.began)
                    assert start is not None
                    yield Found("granted-before-revoked", self.name, *key, start, stop, both)
                elif overlap and older.end in ("revoked", "lost", "closed"):
                    yield Found("owned-by-zombie", self.name, *key, b.began, until, both)
                if following and a.end == "revoked" and None not in (a.held, b.granted):
                    same = (
                        a.held in self.era
                        and b.granted in self.era
                        and self.era[a.held] == self.era[b.granted]
                    )
                    synced_at = self.synced.get((a.held, a.consumer))  # type: ignore[arg-type]
                    eager = synced_at is not None and (a.ended - synced_at).total_seconds() > 5  # type: ignore[operator]
                    same = same and (eager or not self.changed[a.held])  # type: ignore[index]
                    if a.held < b.granted and same:  # type: ignore[operator]
                        first, then = sorted((a.ended, b.began))  # type: ignore[type-var]
                        yield Found("needless-movement", self.name, *key, first, then, both)  # type: ignore[arg-type]

    def is_member(self, older: Owned, at: datetime) -> bool:
        """By what its log was told last, and next: clients that log no generation."""
        told = [
            event
            for event in sorted(self.events, key=_log_order)
            if event.consumer == older.consumer
            and event.kind in ("joined", "synced", "reset", "leaving", "closed", "started")
        ]
        before = [event for event in told if event.at <= at]
        after = next((event for event in told if event.at > at), None)
        if before and before[-1].kind not in ("joined", "synced"):
            return False
        ended = older.ended
        if older.end == "lost" or (after and after.kind == "reset" and (ended is None or ended >= after.at)):
            return False
        late = older.end == "closed" or (ended is not None and (ended - at).total_seconds() < 5)
        if late or older.end == "revoked" or (after and after.kind != "reset" and after.kind != "started"):
            return True
        return after is None and older.end is None

    def instants(self) -> list[tuple[datetime, list[str]]]:
        """What each file says last at each instant: which of two files was first nobody knows."""
        found: dict[datetime, dict[str, Event]] = defaultdict(dict)
        for event in sorted(self.stirs, key=lambda e: (e.at, e.line, e.kind != "removed", e.kind)):
            found[event.at][event.file] = event
        return [(at, [event.kind for event in found[at].values()]) for at in sorted(found)]

    def lulls(self) -> Iterator[tuple[datetime, datetime, bool, bool]]:
        """When nothing happened for long; whether nobody may be a member, and whether all is at rest."""
        instants = self.instants()
        times = [at for at, _ in instants[1:]] + [self.end]
        for (at, kinds), until in zip(instants, times, strict=False):
            if (until - at).total_seconds() >= self.limits.stranded:
                gone = any(kind in GONE for kind in kinds)
                stirred = GONE + UNDER_WAY + (("joined",) if self.syncs else ())
                yield at, until, gone, not any(kind in stirred for kind in kinds)

    def unowned(self, key: tuple[str, int], owned: list[Owned]) -> Iterator[Found]:
        """Stranded, or without an owner for long."""
        lulls = list(self.lulls())
        for number, one in enumerate(owned):
            before = owned[: number + 1]
            if any(other.ended is None for other in before):
                return
            # Of two that end at once, whose name is the last.
            last = max(before, key=lambda other: (other.ended, other.consumer, other.order))
            since = last.ended
            after = owned[number + 1] if number + 1 < len(owned) else None
            until = after.began if after else self.end
            if since is None or since >= until or (after and not after.begun):
                continue
            spans = [
                (max(since, calm), min(until, stir))
                for calm, stir, _, alive in lulls
                if alive and (min(until, stir) - max(since, calm)).total_seconds() >= self.limits.stranded
            ]
            if spans:
                start, stop = min(span[0] for span in spans), max(span[1] for span in spans)
                if not self.dropped(key[0], last.began, stop):
                    ended = stop if after else None
                    yield Found("stranded", self.name, *key, start, ended, (last.consumer,))
                    # Where it was stranded, that says it all.
                    if any(a < until and b > since for a, b in [(start, ended or self.end)]) and after:
                        continue
            dead = any(calm < until and stir > since for calm, stir, gone, _ in lulls if gone)
            if after and (until - since).total_seconds() >= self.limits.pause and not dead:
                yield Found("long-pause", self.name, *key, since, until, (last.consumer, after.consumer))
            del one

    def slow(self) -> Iterator[Found]:
        """Rebalances that took the coordinator long."""
        turns = [event for event in self.events if event.kind in ("preparing", "stable", "empty")]
        turns.sort(key=lambda event: (event.at, event.file, event.line))
        for one, after in pairwise(turns):
            lasted = (after.at - one.at).total_seconds()
            if (one.kind, after.kind) == ("preparing", "stable") and lasted >= self.limits.pause:
                yield Found("long-pause", self.name, None, None, one.at, after.at, ())

    def dropped(self, topic: str, start: datetime, stop: datetime) -> bool:
        """Whether the last to subscribe in that time leaves the topic out."""
        subscribed: dict[tuple[datetime, str], set[str | None]] = defaultdict(set)
        for event in self.events:
            if event.kind == "subscribed" and start <= event.at <= stop:
                subscribed[event.at, event.consumer or ""].add(event.topic)
        return bool(subscribed) and topic not in subscribed[max(subscribed)]

    def storms(self) -> Iterator[Found]:
        """Longest runs of generations of which any so many came within so many seconds."""
        began = [self.first[generation] for generation in self.order]
        count, within = self.limits.storm, timedelta(seconds=self.limits.storm_within)
        stormy = {
            number
            for start in range(len(began) - count + 1)
            if began[start + count - 1] - began[start] <= within
            for number in range(start, start + count)
        }
        # Two dense runs that touch are one storm.
        for number in sorted(stormy):
            if number - 1 not in stormy:
                stop = number
                while stop + 1 in stormy:
                    stop += 1
                yield Found(
                    check="rebalance-storm",
                    group=self.name,
                    topic=None,
                    partition=None,
                    began=began[number],
                    ended=began[stop],
                    consumers=(),
                )

    def unsettled(self) -> Iterator[Found]:
        """Not at rest when the log ends."""
        instants = self.instants()
        if not instants:
            return
        limits, settle = self.limits, self.limits.settle
        under_way = UNDER_WAY + (("joined",) if self.syncs else ())
        busy = [(at, [kind in under_way for kind in kinds]) for at, kinds in instants]
        begun = None
        for number in range(len(busy) - 1, -1, -1):
            at, files = busy[number]
            if all(files) or (any(files) and number == len(busy) - 1):
                begun = at
            if not all(files):
                break
        waiting = begun is not None and (self.end - begun).total_seconds() >= settle
        run = instants[-1][0]
        for at, _ in reversed(instants[:-1]):
            if (run - at).total_seconds() >= settle:
                break
            run = at
        quiet = (self.end - instants[-1][0]).total_seconds()
        causeless = [
            number >= 2 and self.era[g] == self.era[self.order[number - 2]]
            for number, g in enumerate(self.order)
        ]
        count = sum(c and self.first[g] >= run for c, g in zip(causeless, self.order, strict=True))
        restless = quiet < settle and (self.end - run).total_seconds() >= settle and count > 1
        # Those at the end that follow each other at once.
        near, rapid = limits.storm_within / limits.storm, list[datetime]()
        for number in range(len(self.order) - 1, -1, -1):
            at = self.first[self.order[number]]
            apart = (at - self.first[self.order[number - 1]]).total_seconds() if number else 0
            if not causeless[number] or apart > near:
                break
            rapid.insert(0, at)
        if rapid:
            rapid = [at for at in rapid if self._after(at, causeless, near)]
        at_once = len(rapid) >= limits.storm and (self.end - rapid[-1]).total_seconds() <= near
        if waiting or at_once or restless:
            began = begun if waiting else rapid[0] if at_once else run
            assert began is not None
            yield Found(
                check="never-settles",
                group=self.name,
                topic=None,
                partition=None,
                began=began,
                ended=None,
                consumers=(),
            )

    def _after(self, at: datetime, causeless: list[bool], near: float) -> bool:
        """Later than each generation that has a cause, or that came after a while."""
        for number, generation in enumerate(self.order):
            began = self.first[generation]
            apart = (began - self.first[self.order[number - 1]]).total_seconds() if number else 0
            if (not causeless[number] or apart > near) and began >= at:
                return False
        return True


def _null_first(number: int | None) -> int:
    return -1 if number is None else number


def _log_order(event: Event) -> tuple[Any, ...]:
    return event.at, event.file, event.line
