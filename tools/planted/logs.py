"""Event logs of groups that live as real ones do, with violations planted in known places.

To measure an audit with: everything that it should find is in the second table, and nothing else is there to
be found. Groups join, leave, restart, crash and grow; each planted violation has a near miss somewhere that
is none. The clocks of hosts differ. A group is simulated in one Python process from the seed and its number,
so the rows do not depend on how Spark divides the work, and memory is that of one group.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import ArrayType, IntegerType, StringType, StructField, StructType, TimestampType
from rebalance_verifier.pipeline.audit.kernel.findings import CHECKS, Thresholds
from rebalance_verifier.pipeline.audit.sources.events import Kind
from rebalance_verifier.pipeline.audit.sources.schema import EVENTS

TRUTH = StructType(
    [
        StructField("check", StringType(), nullable=False),
        StructField("group", StringType(), nullable=False),
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("began", TimestampType(), nullable=False),  # by the clock of who logged it
        StructField("ended", TimestampType()),  # null: it had not when the log did
        StructField("consumers", ArrayType(StringType())),  # the earlier first; empty: the whole group
    ]
)
"""One row for each thing that an audit with the default thresholds should find."""

SECOND = 1_000_000
BEGIN = 1_767_312_000 * SECOND
"""2 January 2026, when all logs begin, give or take an hour."""

SKEW = 0.02
"""By how much the clocks of most hosts are off, either way; seconds. One host in twenty is much worse."""

KINDS = tuple(str(kind) for kind in Kind)
CODE = {kind: code for code, kind in enumerate(Kind)}

NEAR = "near "
"""Before the id of a check: what is nearly a violation of it and is none."""

PlantedEvent = tuple[int, int, int, int, int, int, int]
"""at, kind, consumer, member, generation, slot, detail; -1 is none. A slot is a partition, or after the last
partition a topic."""

PlantedMark = tuple[str, int, int, int, int, int, tuple[int, ...]]
"""check, slot, began, at which consumer's clock, ended, at which consumer's clock, consumers."""

Int64Array = np.ndarray[Any, np.dtype[np.int64]]

LINES = 1_000_000
"""A file has the lines of many groups; those of one begin at its number times this."""

BROKER = -1
"""In place of a consumer."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What a log is made from. All groups share ``hosts``; each has at least so many ``rebalances``."""

    seed: int
    rebalances: int
    hosts: int = 64
    skew: float = SKEW
    thresholds: Thresholds = field(default_factory=Thresholds)

    def offset(self, host: int) -> int:
        """How far the clock of a host is ahead, microseconds. Every fourth is exact, every twentieth bad."""
        if host % 4 == 0:
            return 0
        worst = self.skew * (50 if host % 20 == 7 else 1)
        return int(Random(f"{self.seed}/host/{host}").uniform(-worst, worst) * SECOND)


def planted(
    spark: SparkSession,
    groups: int,
    rebalances: int,
    seed: int,
    violations: Mapping[str, int],
    *,
    partitions: int | None = None,
) -> tuple[DataFrame, DataFrame]:
    """Events of ``groups`` groups, each of at least ``rebalances`` rebalances, and what is planted in them.

    Returns rows of EVENTS and of TRUTH. ``violations``: how many of each check (a key of CHECKS) are planted
    and, beside each, a near miss. One violation may be several rows of the truth: a consumer that loses its
    session loses all that it owns, and who grants a partition that is owned breaks two rules. Neither table
    depends on ``partitions``, the number of tasks. Raises ValueError for a check that does not exist, fewer
    than one group, or more groups that never settle than there are, less one: the first outlives the others,
    so that what never ends has the time to show.
    """
    unknown = sorted(set(violations) - set(CHECKS))
    if unknown:
        raise ValueError(f"no such check: {', '.join(unknown)}; there are {', '.join(CHECKS)}")
    if groups < 1:
        raise ValueError(f"a log has at least one group, not {groups}")
    if violations.get("never-settles", 0) >= groups:
        raise ValueError(
            f"a group can fail to settle once, and the first must not: {groups} groups are too few"
        )
    recipe, plan = Recipe(seed=seed, rebalances=rebalances), places(groups, seed, violations)
    tasks = partitions or max(1, min(groups, 64))
    numbers = spark.range(0, groups, 1, tasks)

    def events(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number in (n for batch in batches for n in batch.column(0).to_pylist()):
            yield from batches_of(PlantedGroup.lived(number, recipe, plan.get(number, ())).table())

    def truth(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number in (n for batch in batches for n in batch.column(0).to_pylist()):
            if number in plan:
                yield from batches_of(PlantedGroup.lived(number, recipe, plan[number]).truth())

    return numbers.mapInArrow(events, EVENTS), numbers.mapInArrow(truth, TRUTH)


def batches_of(table: pa.Table) -> list[pa.RecordBatch]:
    """In pieces that Spark takes."""
    return list(table.to_batches(max_chunksize=20_000))


def places(groups: int, seed: int, violations: Mapping[str, int]) -> dict[int, tuple[str, ...]]:
    """Which group gets which violations and near misses, in which order.

    >>> places(3, 0, {"stranded": 2}) == places(3, 0, {"stranded": 2})
    True
    >>> sorted(what for some in places(3, 0, {"stranded": 2}).values() for what in some)
    ['near stranded', 'near stranded', 'stranded', 'stranded']
    """
    random = Random(f"{seed}/places")
    plan: dict[int, list[str]] = {}
    for check in CHECKS:
        able = range(1 if check == "never-settles" else 0, groups)
        for what in (check, NEAR + check):
            # Every group once before any twice.
            for count in range(violations.get(check, 0)):
                if count % len(able) == 0:
                    order = random.sample(able, len(able))
                plan.setdefault(order[count % len(able)], []).append(what)
    for some in plan.values():
        random.shuffle(some)
    return {group: tuple(some) for group, some in plan.items()}


def balanced(owner: Sequence[int], members: Sequence[int]) -> list[int]:
    """Who should own each slot: nobody moves who need not, and counts differ by one at most.

    >>> balanced([7, 7, 7, -1], [7, 8])
    [7, 7, 8, 8]
    """
    least, more = divmod(len(owner), len(members))
    count = dict.fromkeys(members, 0)
    target = [-1] * len(owner)
    for slot, who in enumerate(owner):
        if who in count and (count[who] < least or (count[who] == least and more > 0)):
            more -= count[who] == least
            count[who] += 1
            target[slot] = who
    free = iter([slot for slot, who in enumerate(target) if who < 0])
    for who in members:
        for _ in range(least - count[who]):
            target[next(free)] = who
            count[who] += 1
    for who in members:
        if more > 0 and count[who] == least:
            more -= 1
            target[next(free)] = who
    return target


def chosen(names: Sequence[str], which: Int64Array) -> pa.Array:
    """The name with that number for each, null for -1."""
    return pa.array(names, pa.string()).take(pa.array(which, mask=which < 0))


def line_numbers(file: Int64Array, *line: Int64Array) -> Int64Array:
    """From 1 in each file; neighbours that agree in all of ``line`` are one: an event of several partitions.

    >>> line_numbers(np.array([1, 0, 0, 1]), np.array([5, 5, 5, 6])).tolist()
    [1, 1, 1, 2]
    """
    order = np.argsort(file, kind="stable")
    key = np.stack([file, *line])[:, order]
    fresh = np.ones(len(file), dtype=np.int64)
    fresh[1:] = (key[:, 1:] != key[:, :-1]).any(axis=0)
    count = np.cumsum(fresh)
    numbers = np.empty(len(file), dtype=np.int64)
    numbers[order] = count - count[np.searchsorted(key[0], key[0])] + 1
    return numbers


class PlantedGroup:
    """One group and its log. Time is in microseconds and goes on with ``wait``."""

    @classmethod
    def lived(cls, number: int, recipe: Recipe, plan: Sequence[str]) -> PlantedGroup:
        """A group that has lived its life, with what ``plan`` names somewhere in it."""
        group = cls(number, recipe, exact=f"{NEAR}owned-twice" in plan)
        group.live(plan)
        return group

    def __init__(self, number: int, recipe: Recipe, exact: bool) -> None:
        self.number, self.recipe = number, recipe
        self.random = Random(f"{recipe.seed}/group/{number}")
        random = self.random
        self.name = f"group-{number:05}"
        self.cooperative = random.random() < 0.6
        self.one_client = random.random() < 0.3  # one client id on all hosts
        self.begins_late = random.random() < 0.5  # the log begins in the middle of the group's life
        self.ends_empty = random.random() < 0.1
        self.most = 2 + int(48 * random.random() ** 3) + 2
        size = random.randint(2, self.most - 2)
        topics = random.randint(1, 5)
        each = -(-size * random.choice((1, 2, 3)) // topics)
        self.topics = [f"topic-{number:05}-{letter}" for letter in "abcde"[:topics]]
        self.slots = [(topic, partition) for topic in self.topics for partition in range(each)]
        # Where every clock is exact, a hand-over can happen within one microsecond.
        step = 4 if exact else 1
        first = random.randrange(recipe.hosts)
        self.pool = [(first + i) * step % recipe.hosts for i in range(min(size, recipe.hosts // step))]
        self.broker = 0 if exact else number % 3
        self.consumers: list[tuple[str, int]] = []  # client id, host
        self.member_ids: list[str] = []
        self.member: dict[int, int] = {}  # who is in the group, by consumer, with the member id
        self.holds: dict[int, set[int]] = {}
        self.owner = [-1] * len(self.slots)  # as the leader sees it
        self.granted: dict[int, tuple[int, int]] = {}  # slot: when and by whom last
        self.given: dict[int, tuple[int, int]] = {}
        self.generation = 0
        self.at = BEGIN + int(random.uniform(0, 3600) * SECOND)
        self.cut = 0
        self.instant = False
        self.rows: list[PlantedEvent] = []
        self.marks: list[PlantedMark] = []
        self.details: list[str] = []
        for _ in range(size):
            self.start(self.add())
        self.balance("new members", phase=3.0)
        if self.begins_late:
            self.wait(30, 60)
            self.cut = self.at

    # What happens, in small.

    def some(self, least: float, most: float) -> int:
        """A latency between so many seconds, in microseconds."""
        return 0 if self.instant else int(self.random.uniform(least, most) * SECOND)

    def wait(self, least: float, most: float) -> None:
        self.at += self.some(least, most)

    def emit(
        self,
        at: int,
        kind: Kind,
        consumer: int = BROKER,
        *,
        member: int = -1,
        generation: int = -1,
        slot: int = -1,
        detail: str = "",
    ) -> None:
        """Log one event that is not about partitions."""
        known = -1
        if detail:
            if detail not in self.details:
                self.details.append(detail)
            known = self.details.index(detail)
        self.rows.append((at, CODE[kind], consumer, member, generation, slot, known))

    def callback(self, at: int, kind: Kind, consumer: int, slots: Sequence[int], generation: int) -> None:
        """Log a callback, and do what it says."""
        code, member = CODE[kind], self.member.get(consumer, -1)
        self.rows.extend([(at, code, consumer, member, generation, slot, -1) for slot in slots])
        if kind is Kind.ASSIGNED:
            self.holds[consumer].update(slots)
            self.granted.update(dict.fromkeys(slots, (at, consumer)))
        else:
            self.holds[consumer].difference_update(slots)
            self.given.update(dict.fromkeys(slots, (at, consumer)))

    def add(self) -> int:
        """A consumer that did not exist before."""
        number = len(self.consumers)
        host = self.pool[number % len(self.pool)]
        client = "app" if self.one_client else f"app-{number}"
        # On one host a client id is used once.
        if self.one_client and number >= len(self.pool):
            client = f"app-{number // len(self.pool)}"
        self.consumers.append((client, host))
        self.holds[number] = set()
        return number

    def start(self, consumer: int) -> None:
        """A process starts and subscribes; it is in the group from the next rebalance on."""
        at = self.at
        self.emit(at, Kind.STARTED, consumer)
        for topic in range(len(self.topics)):
            self.emit(at, Kind.SUBSCRIBED, consumer, slot=len(self.slots) + topic)
        self.enter(consumer)

    def enter(self, consumer: int) -> None:
        bits = self.random.getrandbits(128)
        text = f"{bits:032x}"
        unique = "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
        self.member[consumer] = len(self.member_ids)
        self.member_ids.append(f"{self.consumers[consumer][0]}-{unique}")

    def leave(self, consumer: int) -> None:
        """A process ends in good order; the others have yet to rebalance."""
        at = self.at
        member = self.member[consumer]
        self.callback(at, Kind.REVOKED, consumer, sorted(self.holds[consumer]), self.generation)
        self.emit(at + self.some(0.001, 0.01), Kind.LEAVING, consumer, member=member)
        self.wait(0.01, 0.05)
        self.emit(self.at, Kind.REMOVED, member=member, detail="left")
        self.emit(self.at + self.some(0.001, 0.05), Kind.CLOSED, consumer)
        self.forget(consumer)

    def expire(self, consumer: int) -> int:
        """The session of a consumer runs out; the member id that it had."""
        self.emit(self.at, Kind.REMOVED, member=self.member[consumer], detail="heartbeat expiration")
        return self.forget(consumer)

    def forget(self, consumer: int) -> int:
        member = self.member.pop(consumer)
        self.owner = [-1 if who == consumer else who for who in self.owner]
        return member

    def notice(self, at: int, consumer: int, generation: int) -> None:
        """A consumer that was removed learns of it."""
        self.emit(at, Kind.RESET, consumer, detail="UNKNOWN_MEMBER_ID")
        self.callback(at, Kind.LOST, consumer, sorted(self.holds[consumer]), generation)

    # Rebalances.

    def balance(self, reason: str, *, phase: float = 0.0) -> None:
        """As many rebalances as the protocol needs until the load is even."""
        self.reach(balanced(self.owner, sorted(self.member)), reason, phase=phase)

    def again(self, reason: str, *, phase: float = 0.0, drop: frozenset[int] = frozenset()) -> None:
        """A rebalance for which there is no reason to move anything."""
        self.reach(list(self.owner), reason, phase=phase, drop=drop)

    def reach(
        self, target: list[int], reason: str, *, phase: float = 0.0, drop: frozenset[int] = frozenset()
    ) -> None:
        while self.rebalance(target, reason, phase=phase, drop=drop):
            reason, phase = "partitions revoked", 0.0

    def rebalance(
        self,
        target: list[int],
        reason: str,
        *,
        phase: float = 0.0,
        drop: frozenset[int] = frozenset(),
        early: frozenset[int] = frozenset(),
        hold: frozenset[int] = frozenset(),
    ) -> bool:
        """One rebalance, whether another has to follow.

        ``phase``: how long the slowest member takes to join, seconds. What goes wrong: slots that the leader
        drops, slots granted although another claims them, slots that their owner does not give away.
        """
        members, old, random = sorted(self.member), self.generation, self.random
        new = self.generation = old + 1
        began = self.at
        self.emit(began, Kind.PREPARING, generation=old, detail=reason)
        joined = began
        for consumer in members:
            at = began + self.some(0.001, 2.0)
            if not self.cooperative:
                mine = sorted(self.holds[consumer] - early - hold)
                if mine:
                    self.callback(at, Kind.REVOKED, consumer, mine, old)
                at += self.some(0.001, 0.1)
            if phase and consumer == members[-1]:
                at = max(at, began + int(phase * SECOND))
            self.emit(at, Kind.JOINING, consumer, member=self.member[consumer])
            joined = max(joined, at)
        stable = joined + self.some(0.001, 0.02)
        self.emit(stable, Kind.STABLE, generation=new, detail=f"{len(members)} members")
        for consumer in members:
            at = stable + self.some(0.001, 0.02)
            self.emit(at, Kind.JOINED, consumer, member=self.member[consumer], generation=new)

        claims = {slot: consumer for consumer in members for slot in self.holds[consumer]}
        plan = [
            -1
            if slot in drop or (slot not in early and slot in claims and slot not in self.holds.get(who, ()))
            else who
            for slot, who in enumerate(target)
        ]
        self.owner = [-1 if slot in drop else who for slot, who in enumerate(target)]
        planned = stable + self.some(0.021, 0.05)
        code, leader = CODE[Kind.PLANNED], members[0]
        self.rows.extend(
            [
                (planned, code, leader, self.member[who], new, slot, -1)
                for slot, who in enumerate(plan)
                if who >= 0
            ]
            # A leader names those too that get nothing.
            + [(planned, code, leader, self.member[who], new, -1, -1) for who in members if who not in plan]
        )
        synced = planned + self.some(0.001, 0.01)
        parts: dict[int, list[int]] = {consumer: [] for consumer in members}
        for slot, who in enumerate(plan):
            if who >= 0:
                parts[who].append(slot)
        # Who is granted too early hears of it last: its owner has given it away by then.
        late = {plan[slot] for slot in early if slot not in hold}
        ended, revoked = synced, False
        for consumer in members:
            at = synced + self.some(0.001, 0.02) + (4 * SECOND if consumer in late else 0)
            self.emit(at, Kind.SYNCED, consumer, member=self.member[consumer], generation=new)
            held = self.holds[consumer]
            away = sorted(slot for slot in held.difference(parts[consumer]) if slot not in hold)
            at += self.some(0.0001, 0.005)
            if away:
                self.callback(at, Kind.REVOKED, consumer, away, new)
                revoked = True
                at += self.some(0.001, 0.5)
            fresh = [slot for slot in parts[consumer] if slot not in held]
            if fresh:
                self.callback(at, Kind.ASSIGNED, consumer, fresh, new)
            ended = max(ended, at)
        self.at = ended + (0 if self.instant else random.randrange(1_000, 20_000))
        return revoked

    # Life.

    def live(self, plan: Sequence[str]) -> None:
        """Ordinary days, with what is planned spread evenly among them."""
        ordinary = (self.grow, self.shrink, self.restart, self.crash, self.rejoin, self.roll)
        todo = [what for what in plan if what != "never-settles"]
        last = "never-settles" in plan  # after which there is nothing more
        done = 0
        while todo or self.generation < self.recipe.rebalances:
            if todo and self.generation >= (1 + done) * self.recipe.rebalances // (2 + len(plan)):
                self.wait(630, 800)  # so that what was before does not count towards a storm
                self.plant(todo.pop(0))
                done += 1
                self.wait(630, 800)
            else:
                self.wait(260, 600)
                self.random.choice(ordinary)()
        self.wait(650, 900)
        if self.number == 0:
            self.wait(7200 + 400 * self.recipe.rebalances, 7300 + 400 * self.recipe.rebalances)
            self.rejoin()
        elif last:
            self.plant("never-settles")
        elif self.ends_empty:
            self.stop()

    def grow(self, reason: str = "new member") -> None:
        if len(self.member) >= min(self.most, len(self.slots)):
            self.shrink()
            return
        gone = [c for c in range(len(self.consumers)) if c not in self.member]
        self.start(gone[0] if gone else self.add())
        self.wait(0.01, 0.5)
        self.balance(reason)

    def shrink(self) -> None:
        if len(self.member) <= 2:
            self.rejoin()
            return
        self.leave(self.random.choice(sorted(self.member)))
        self.balance("a member left")

    def roll(self) -> None:
        """A rolling restart, of three members at most."""
        for consumer in sorted(self.member)[:3]:
            self.restart(consumer)
            self.wait(260, 400)

    def restart(self, consumer: int | None = None) -> None:
        if consumer is None:
            consumer = self.random.choice(sorted(self.member))
        self.leave(consumer)
        self.balance("a member left")
        self.wait(5, 40)
        self.start(consumer)
        self.balance("new member")

    def rejoin(self) -> None:
        self.again("metadata of the leader changed")

    def crash(self, late: float = -4.0) -> None:
        """A session runs out, and the consumer notices so long before (or after) others own what it owned."""
        consumer = self.random.choice([c for c in sorted(self.member) if self.holds[c]])
        mine = sorted(self.holds[consumer])
        old = self.generation
        member = self.expire(consumer)
        if late < 0:
            self.member[consumer] = member  # for the row of the callback
            self.notice(self.at + self.some(0.01, 0.2), consumer, old)
            del self.member[consumer]
            self.at += int(-late * SECOND)
        self.balance("heartbeat expiration")
        if late > 0:
            self.at += int(late * SECOND)
            self.notice(self.at, consumer, old)
            for slot in mine:
                at, who = self.granted[slot]
                self.mark("owned-by-zombie", slot, (at, who), self.given[slot], consumer, who)
        self.wait(5, 20)
        self.enter(consumer)
        self.balance("new member")

    def stop(self) -> None:
        """All leave within a second or two."""
        self.emit(self.at, Kind.PREPARING, generation=self.generation, detail="a member left")
        for consumer in sorted(self.member):
            self.leave(consumer)
        self.emit(self.at, Kind.EMPTY, generation=self.generation + 1)

    # What is planted.

    def mark(
        self, check: str, slot: int, began: tuple[int, int], ended: tuple[int, int], *consumers: int
    ) -> None:
        """Note down what an audit should find."""
        self.marks.append((check, slot, *began, *ended, consumers))

    def plant(self, what: str) -> None:
        near, check = what.startswith(NEAR), what.removeprefix(NEAR)
        limits, within = self.recipe.thresholds, self.random.uniform
        if check == "owned-twice":
            if near:
                self.instant = True
                self.grow()
                self.instant = False
            else:
                self.plant_owned_twice()
        elif check == "granted-before-revoked":
            if near:
                self.grow()
            else:
                self.plant_granted_early()
        elif check == "owned-by-zombie":
            # With enough to lose; who notices first is a near miss.
            self.crash(late=-4.0 if near else within(10, 60))
        elif check == "stranded":
            self.plant_stranded(limits.stranded * (within(0.5, 0.8) if near else within(1.4, 4)), near)
        elif check == "never-settles":
            if near:
                # An eager group owns nothing meanwhile, so not so long that this is a finding of its own.
                self.again("slow member", phase=min(limits.settle, limits.pause) * within(0.6, 0.9))
            else:
                self.plant_unsettled()
        elif check == "rebalance-storm":
            began = self.at
            for _ in range(limits.storm - 3 if near else limits.storm + 4):
                last = self.at
                self.again("metadata of the leader changed")
                self.wait(15, limits.storm_within / (limits.storm + 4) - 10)
            if not near:
                self.mark(check, -1, (began, BROKER), (last, BROKER))
        elif check == "needless-movement":
            if near:
                self.restart()
            else:
                self.plant_needless()
        else:
            self.plant_pause(near)

    def two(self) -> tuple[int, int, int]:
        """A slot, its owner, and another member."""
        owned = [slot for slot, who in enumerate(self.owner) if who in self.member]
        slot = self.random.choice(owned)
        one = self.owner[slot]
        other = self.random.choice([c for c in sorted(self.member) if c != one])
        return slot, one, other

    def newcomer(self) -> tuple[list[int], int, int, int]:
        """A member joins: the target, one slot that moves to it, from whom, and who it is."""
        if len(self.member) >= len(self.slots):  # nothing would move
            self.leave(self.random.choice(sorted(self.member)))
            self.balance("a member left")
            self.wait(60, 90)
        gone = [c for c in range(len(self.consumers)) if c not in self.member]
        new = gone[0] if gone else self.add()
        self.start(new)
        self.wait(0.01, 0.5)
        target = balanced(self.owner, sorted(self.member))
        slot = self.random.choice([s for s, who in enumerate(target) if who == new])
        return target, slot, self.owner[slot], new

    def plant_owned_twice(self) -> None:
        """A member does not give up what the leader moves."""
        target, slot, one, new = self.newcomer()
        hold = frozenset([slot])
        if self.cooperative:
            self.rebalance(target, "new member", hold=hold)
        self.rebalance(target, "new member", early=hold, hold=hold)
        began = self.granted[slot]
        self.wait(20, 200)
        self.again("metadata of the leader changed")
        self.mark("owned-twice", slot, began, self.given[slot], one, new)

    def plant_granted_early(self) -> None:
        """The leader grants what another claims, who gives it up just in time."""
        target, slot, one, new = self.newcomer()
        more = self.rebalance(target, "new member", early=frozenset([slot]))
        self.mark("granted-before-revoked", slot, self.given[slot], self.granted[slot], one, new)
        if more:
            self.reach(target, "partitions revoked")

    def plant_stranded(self, seconds: float, near: bool) -> None:
        """The leader forgets a partition, until the next rebalance."""
        slot, one, _ = self.two()
        target = list(self.owner)
        self.again("metadata of the leader changed", drop=frozenset([slot]))
        began = self.given[slot]
        self.at = began[0] + int(seconds * SECOND)
        self.reach(target, "metadata of the leader changed")
        if not near:
            self.mark("stranded", slot, began, self.granted[slot], one)

    def plant_unsettled(self) -> None:
        """Some join, others never answer, and that is the end of the log."""
        began = self.at
        self.emit(began, Kind.PREPARING, generation=self.generation, detail="slow member")
        # An eager member that joins has given everything away. Only a new one has nothing to give.
        if not self.cooperative:
            self.start(self.add())
        for consumer in sorted(self.member)[0 if self.cooperative else -1 :][: len(self.member) - 1]:
            self.emit(began + self.some(0.001, 2.0), Kind.JOINING, consumer, member=self.member[consumer])
        self.mark("never-settles", -1, (began, BROKER), (-1, BROKER))

    def plant_needless(self) -> None:
        """The leader moves a partition for no reason."""
        slot, one, other = self.two()
        target = list(self.owner)
        target[slot] = other
        self.reach(target, "metadata of the leader changed")
        self.mark("needless-movement", slot, self.given[slot], self.granted[slot], one, other)

    def plant_pause(self, near: bool) -> None:
        """One rebalance after another withholds a partition; none is long, nor the calm between them."""
        limits = self.recipe.thresholds
        slot, one, _ = self.two()
        target = list(self.owner)
        phase, calm = 0.7 * limits.stranded, 0.3 * limits.stranded
        rounds = (0.6 if near else 1.3) * limits.pause / (phase + calm)
        for turn in range(1 + round(rounds)):
            self.again("slow member", phase=phase, drop=frozenset([slot]))
            if turn == 0:
                began = self.given[slot]
            self.at += int(calm * SECOND)
        self.reach(target, "slow member")
        if not near:
            self.mark("long-pause", slot, began, self.granted[slot], one)

    # As tables.

    def names(self) -> tuple[list[str], list[str], list[int]]:
        """By consumer, the broker last: its name, the name of its host, the offset of its clock."""
        hosts = [f"host-{host:02}" for _, host in self.consumers]
        broker = f"broker-{self.broker}"
        consumer_names = [f"{client}@{host}" for (client, _), host in zip(self.consumers, hosts, strict=True)]
        offsets = [self.recipe.offset(host) for _, host in self.consumers]
        # The clocks of brokers are as those of the first hosts.
        return [*consumer_names, ""], [*hosts, broker], [*offsets, self.recipe.offset(self.broker)]

    def columns(self) -> Int64Array:
        """The rows in the order of the log, as logged: one column for each part of a Row."""
        rows = np.array(self.rows, dtype=np.int64).reshape(-1, 7)
        rows = rows[rows[:, 0] >= self.cut]
        rows = rows[np.argsort(rows[:, 0], kind="stable")]
        offsets = np.array(self.names()[2], dtype=np.int64)
        rows[:, 0] += offsets[rows[:, 2]]
        return rows.T

    def table(self) -> pa.Table:
        """Rows of EVENTS."""
        at, kind, consumer, member, generation, slot, detail = self.columns()
        consumer_names, hosts, _ = self.names()
        writer = np.where(consumer < 0, len(self.consumers), consumer)
        topics = [*(topic for topic, _ in self.slots), *self.topics]
        numbers = pa.array(
            [*(partition for _, partition in self.slots), *(None for _ in self.topics)], pa.int32()
        )
        file = np.array([*(host for _, host in self.consumers), -1])[writer]
        sources = pa.array([*["java"] * len(self.consumers), "broker"])
        files = pa.array([f"{host}.log" for host in hosts])
        return pa.table(
            [
                pa.array(at).cast(pa.timestamp("us")).cast(pa.timestamp("us", "UTC")),
                pa.array(KINDS).take(pa.array(kind)),
                pa.array([self.name]).take(pa.array(np.zeros(len(at), dtype=np.int64))),
                chosen(consumer_names, consumer),
                chosen(self.member_ids, member),
                pa.nulls(len(at), pa.string()),
                pa.array(generation, pa.int32(), mask=generation < 0),
                chosen(topics, slot),
                numbers.take(pa.array(slot, mask=slot < 0)),
                chosen(self.details, detail),
                pa.array(hosts).take(pa.array(writer)),
                sources.take(pa.array(writer)),
                files.take(pa.array(writer)),
                pa.array(line_numbers(file, writer, at, kind) + self.number * LINES),
                pa.nulls(len(at), pa.string()),  # protocol: classic
                pa.nulls(len(at), pa.int32()),  # members
                pa.nulls(len(at), pa.int64()),  # heard
            ],
            schema=to_arrow_schema(EVENTS, timezone="UTC"),
        )

    def truth(self) -> pa.Table:
        """Rows of TRUTH."""
        consumer_names, _, offsets = self.names()
        rows = []
        for check, slot, began, one, ended, other, consumers in self.marks:
            topic, partition = self.slots[slot] if slot >= 0 else (None, None)
            rows.append(
                {
                    "check": check,
                    "group": self.name,
                    "topic": topic,
                    "partition": partition,
                    "began": began + offsets[one],
                    "ended": ended + offsets[other] if ended >= 0 else None,
                    "consumers": [consumer_names[consumer] for consumer in consumers],
                }
            )
        return pa.Table.from_pylist(rows, schema=to_arrow_schema(TRUTH, timezone="UTC"))
