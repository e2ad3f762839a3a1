"""What taking things away one by one cannot make small: changed at random, again and again.

A group that never settles needs members whose loads, racks and subscriptions fit each other: without any
one of its partitions it settles, and with other racks it does so with half of them. So a scenario is changed
in ways that need not make it smaller, and none makes it larger; what still breaks is changed on.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import replace

from rebalance_verifier.gate.scenarios.minimise import things_of, without_things
from rebalance_verifier.model.values import Racks
from rebalance_verifier.properties.assignors.scenarios import (
    Scenario,
    ScenarioMember,
    each_member,
    with_one_topic,
    without_events_of,
    without_partitions,
)

AT_ONCE = 16
"""Changes of one scenario that are tried before the best of them is changed on."""

MEMBER = 6
"""Partitions that a member less is worth."""

SUBSETS = 64
"""Subsets of the members that are tried at first: partitions go one by one, members hardly ever do."""

LOOSE = 0.3
"""How likely it is that a scenario is changed on that is less near to what is sought."""


def wander(
    start: Scenario,
    breaking: Callable[[Sequence[Scenario]], Sequence[bool]],
    *,
    enough: tuple[int, int],
    may_go_on: Callable[[], bool],
) -> Scenario:
    """Return the smallest scenario reached from ``start``, which breaks, by changes at random that do so too.

    ``breaking`` says it of several scenarios at once. It ends with ``enough`` members and partitions, or when
    ``may_go_on`` says no. The same choices for the same scenario.
    """
    draw = random.Random(repr(start.size))
    best = current = start
    while may_go_on() and not small(best, enough):
        candidates = [_changed(current, draw) for _ in range(AT_ONCE)]
        shown = [s for s, breaks in zip(candidates, breaking(candidates), strict=True) if breaks]
        current = min(shown, key=_weight, default=current)
        best = min(best, current, key=_weight)
    return best


def thin_out(
    start: Scenario, breaking: Callable[[Sequence[Scenario]], Sequence[bool]], members: int
) -> Scenario:
    """Return the smallest of many scenarios with no more than so many of its ``members`` that break, if one
    does."""
    if len(start.members) <= members:
        return start
    draw = random.Random(repr(start.size))
    tried = [_some_members(start, draw, members) for _ in range(SUBSETS)]
    shown = [s for s, breaks in zip(tried, breaking(tried), strict=True) if breaks]
    return min(shown, key=_weight, default=start)


def seek(
    starts: Sequence[Scenario],
    measured: Callable[[Sequence[Scenario]], Sequence[float | None]],
    members: int,
    *,
    may_go_on: Callable[[], bool],
) -> Scenario | None:
    """Return a scenario that is what is sought, reached from one of ``starts``: first without all but so many
    of its ``members``, then by changes at random that come nearer to it.

    ``measured`` says of several scenarios how near each is: infinity is it, None is of no use.
    """
    draw = random.Random(repr(starts[0].size))
    nearest: list[tuple[float, float, Scenario]] = []
    for start in starts:
        if may_go_on():
            subsets = [_some_members(start, draw, members) for _ in range(SUBSETS)]
            nearest += _ranked(subsets, measured(subsets))
    near, _, current = max(nearest, key=lambda one: one[:2], default=(-1.0, 0.0, starts[0]))
    while near < math.inf and may_go_on():
        changed = [_changed(current, draw) for _ in range(AT_ONCE)]
        best = max(_ranked(changed, measured(changed)), key=lambda one: one[:2], default=None)
        if best is not None and (best[0] >= near or draw.random() < LOOSE):
            near, _, current = best
    return current if near == math.inf else None


def _ranked(
    scenarios: Sequence[Scenario], near: Sequence[float | None]
) -> list[tuple[float, float, Scenario]]:
    """Return those of use: how near and how small each is."""
    return [(m, -_weight(s), s) for s, m in zip(scenarios, near, strict=True) if m is not None]


def small(scenario: Scenario, enough: tuple[int, int]) -> bool:
    """Check whether it has no more than ``enough`` members and partitions."""
    members, partitions, _, _ = scenario.size
    return members <= enough[0] and partitions <= enough[1]


def _weight(scenario: Scenario) -> float:
    members, partitions, claims, events = scenario.size
    return MEMBER * members + partitions + (claims + events) / 100


def _changed(scenario: Scenario, draw: random.Random) -> Scenario:
    """Return one change, or two."""
    for _ in range(1 + (draw.random() < 0.3)):
        scenario = draw.choice(CHANGES)(scenario, draw)
    return scenario


def _less(s: Scenario, draw: random.Random) -> Scenario:
    """Return one to three of its things less, or a quarter of its partitions."""
    things = things_of(s)
    if draw.random() < 0.2:
        partitions = [thing for thing in things if thing[0] == "partition"]
        return without_things(s, draw.sample(partitions, len(partitions) // 4))
    large = [thing for thing in things if thing[0] != "claim"] or things
    return without_things(s, draw.sample(large, min(len(large), draw.choice((1, 1, 2, 2, 3)))))


def _few_members(s: Scenario, draw: random.Random) -> Scenario:
    return _some_members(s, draw, draw.randint(2, 4))


def _some_members(s: Scenario, draw: random.Random, most: int) -> Scenario:
    kept = sorted(draw.sample(range(len(s.members)), min(len(s.members), most)))
    members = tuple(s.members[index] for index in kept)
    return without_events_of(replace(s, members=members), {m.id for m in s.members} - {m.id for m in members})


def _without_share(s: Scenario, draw: random.Random) -> Scenario:
    """Return a member less, with all that it owns."""
    if not s.members:
        return s
    gone = draw.choice(s.members)
    kept = replace(s, members=tuple(m for m in s.members if m is not gone))
    return without_events_of(without_partitions(kept, set(gone.owned)), {gone.id})


def _racks_of(s: Scenario) -> list[str]:
    known = {rack for partitions in s.topics.values() for racks in partitions for rack in racks}
    return sorted(known | {m.rack for m in s.members if m.rack is not None})


def _other_replicas(s: Scenario, draw: random.Random) -> Scenario:
    """A partition is in other racks, or in none."""
    racks, topics = _racks_of(s), [topic for topic, partitions in s.topics.items() if partitions]
    if not racks or not topics:
        return s
    topic = draw.choice(topics)
    partitions: list[Racks] = list(s.topics[topic])
    some = draw.sample(racks, min(len(racks), draw.randint(0, 2)))
    partitions[draw.randrange(len(partitions))] = tuple(sorted(some))
    return replace(s, topics={**s.topics, topic: tuple(partitions)})


def _other_rack(s: Scenario, draw: random.Random) -> Scenario:
    """A member is in another rack, or in none."""
    return _one_member(s, draw, lambda m: replace(m, rack=draw.choice((*_racks_of(s), None))))


def _other_topic(s: Scenario, draw: random.Random) -> Scenario:
    """Return a member subscribes to a topic more, or less."""

    def change(m: ScenarioMember) -> ScenarioMember:
        topic = draw.choice(list(s.topics))
        if topic not in m.topics:
            return replace(m, topics=(*m.topics, topic))
        topics = tuple(t for t in m.topics if t != topic)
        return replace(m, topics=topics, owned=tuple(p for p in m.owned if p.topic != topic)) if topics else m

    return _one_member(s, draw, change) if s.topics else s


def _other_owner(s: Scenario, draw: random.Random) -> Scenario:
    """A partition is owned by another member of the same generation, or by nobody."""
    owners = [m for m in s.members if m.owned]
    if not owners:
        return s
    old = draw.choice(owners)
    partition = draw.choice(old.owned)
    others = [m.id for m in s.members if partition.topic in m.topics and m.generation == old.generation]
    new = draw.choice((*others, None))

    def change(m: ScenarioMember) -> ScenarioMember:
        owned = m.owned
        if m.id == old.id:
            owned = tuple(p for p in owned if p != partition)
        return replace(m, owned=(*owned, partition) if m.id == new and partition not in owned else owned)

    return each_member(s, change)


def _one_topic(s: Scenario, draw: random.Random) -> Scenario:
    """Return two topics become one, where nothing happens that is about either."""
    if len(s.topics) < 2 or any(s.rounds):
        return s
    kept, gone = draw.sample(list(s.topics), 2)
    return with_one_topic(s, kept, gone)


def _one_member(
    s: Scenario, draw: random.Random, change: Callable[[ScenarioMember], ScenarioMember]
) -> Scenario:
    if not s.members:
        return s
    index = draw.randrange(len(s.members))
    return replace(s, members=(*s.members[:index], change(s.members[index]), *s.members[index + 1 :]))


CHANGES: tuple[Callable[[Scenario, random.Random], Scenario], ...] = (
    *(_less,) * 4,
    _few_members,
    _without_share,
    _other_replicas,
    _other_rack,
    _other_topic,
    _other_owner,
    _one_topic,
)
