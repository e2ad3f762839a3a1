"""Making a counterexample small: remove whatever is not needed for the same clause to break.

Delta debugging on the scenario itself, not on the choices that produced it, so that a
scenario of any origin (a seed, a campaign row, a trace edited by hand) can be minimised, and the
result is minimal in the user's own terms: no round, event, member, topic, partition or claim can be
taken away from it, alone, without losing the breach. Few of a kind are kept first, then all but a run of
them, halves before single ones. A breach may depend on totals, which no single thing leaves as they are: so
members, topics and partitions also go together, topics become one, a member inherits another's claims.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, islice, pairwise, permutations
from typing import TypeVar

from rebalance_verifier.model.values import NO_GENERATION, Partitions, Racks, TopicPartition
from rebalance_verifier.properties.assignors.scenarios import (
    AddMember,
    Scenario,
    ScenarioEvent,
    ScenarioMember,
    SetTopic,
    Subscribe,
    UserData,
    each_member,
    everybody,
    renamed,
    topics_named,
    with_one_topic,
    without_events_of,
    without_partitions,
    without_topics,
)

T = TypeVar("T")

Reduction = Callable[[T], Iterator[T]]
"""What can be made of a scenario, of any kind, by taking one thing from it."""

Ahead = Callable[[Sequence[T]], None]
"""Called with what is about to be tried, until one of it breaks: it may be played all at once."""


def minimise(
    scenario: Scenario,
    breaks: Callable[[Scenario], bool],
    *,
    may_go_on: Callable[[], bool] = lambda: True,
    ahead: Ahead[Scenario] | None = None,
) -> Scenario:
    """Return the smallest scenario reached from ``scenario`` by single reductions that still ``breaks``.

    ``scenario`` itself must break. Stops early, with what it has, when ``may_go_on`` says no.
    """
    return reduced_by(REDUCTIONS, _plainly_named, scenario, breaks, may_go_on=may_go_on, ahead=ahead)


def reduced_by(
    reductions: Sequence[Reduction[T]],
    plainly_named: Reduction[T],
    scenario: T,
    breaks: Callable[[T], bool],
    *,
    may_go_on: Callable[[], bool] = lambda: True,
    ahead: Ahead[T] | None = None,
) -> T:
    """Return the smallest that these reductions reach, the boldest of which come first."""
    before = None
    while scenario != before:
        before = scenario
        for reduce in reductions:
            scenario = _exhaust(reduce, scenario, breaks, may_go_on, ahead)
        if scenario == before:
            # And once more: what breaks may depend on names.
            plain = (named for named in plainly_named(scenario) if may_go_on() and breaks(named))
            scenario = next(plain, scenario)
    return scenario


def _exhaust(
    reduce: Reduction[T],
    scenario: T,
    breaks: Callable[[T], bool],
    may_go_on: Callable[[], bool],
    ahead: Ahead[T] | None,
) -> T:
    """Apply one kind of reduction while it helps. After a success go on at the same place: what comes
    before it has just been tried, on a scenario that differs in one thing only."""
    index = 0
    progress = True
    while progress:
        progress = False
        candidates = islice(reduce(scenario), index, None)
        for candidate in candidates if ahead is None else _announced(candidates, ahead):
            if not may_go_on():
                return scenario
            if breaks(candidate):
                scenario, progress = candidate, True
                break
            index += 1
    return scenario


def _announced(candidates: Iterator[T], ahead: Ahead[T]) -> Iterator[T]:
    """Yield the candidates, the more of them ahead the longer none has helped."""
    count = FIRST_AHEAD
    while several := list(islice(candidates, count)):
        ahead(several)
        yield from several
        count = min(2 * count, MAX_AHEAD)


FIRST_AHEAD, MAX_AHEAD = 4, 32
"""Candidates that are announced at once, at first and at most."""


def _fewer_rounds(s: Scenario) -> Iterator[Scenario]:
    count = len(s.rounds)
    for keep in sorted({0, 1, count // 2} - {count}):
        if keep < count:
            yield replace(s, rounds=s.rounds[:keep])
    for index in range(count - 1, -1, -1):
        yield replace(s, rounds=s.rounds[:index] + s.rounds[index + 1 :])
    for index in range(count - 1):  # one rebalance instead of two, with the events of both
        merged = s.rounds[index] + s.rounds[index + 1]
        yield replace(s, rounds=(*s.rounds[:index], merged, *s.rounds[index + 2 :]))


def fewer(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """Yield what to keep of several things: few of them, then all but a run, halves first and each alone
    last."""
    count = len(items)
    for kept in range(min(FEW, count // 2)):
        yield items[:kept]
    for size in _runs(count):
        for start in range(0, count, size):
            yield [*items[:start], *items[start + size :]]


FEW = 5
"""Fewer than so many of a kind are tried at first."""

EVERY_RUN_BELOW = 32
"""Of fewer things runs of many lengths are taken away, so that totals keep their remainders."""


def _runs(count: int) -> Iterator[int]:
    """Lengths of runs, the longest first."""
    size = count // 2 if count > 1 else count
    while size:
        yield size
        size = size - 1 if size <= 2 * FEW and count < EVERY_RUN_BELOW else size // 2


def _fewer_events(s: Scenario) -> Iterator[Scenario]:
    events = [(number, index) for number, events in enumerate(s.rounds) for index in range(len(events))]
    for kept in fewer(events):
        yield without_things(s, (("event", gone) for gone in {*events}.difference(kept)))
    if s.rounds:
        for index, event in enumerate(first := s.rounds[0]):
            if isinstance(event, AddMember):  # there from the start
                rest = first[:index] + first[index + 1 :]
                yield replace(s, members=(*s.members, event.member), rounds=(rest, *s.rounds[1:]))


def _fewer_members(s: Scenario) -> Iterator[Scenario]:
    for kept in fewer(s.members):
        yield _only_members(s, kept)
    alike: dict[object, list[ScenarioMember]] = {}
    for member in s.members:
        kind = frozenset(member.topics), member.generation, member.rack, bool(member.owned)
        alike.setdefault(kind, []).append(member)
    if len(alike) > 1:
        for members in alike.values():
            for kept in (members[:0], members[:1])[: len(members)]:
                yield _only_members(s, [m for m in s.members if m in kept or m not in members])


def _only_members(s: Scenario, kept: Sequence[ScenarioMember]) -> Scenario:
    gone = {m.id for m in s.members} - {m.id for m in kept}
    return without_events_of(replace(s, members=tuple(kept)), gone)


def _joined_members(s: Scenario) -> Iterator[Scenario]:
    """Leave out a member, whose claims another one inherits."""
    claiming = [m for m in s.members if m.owned]
    pairs = permutations(s.members, 2) if len(s.members) <= FEW else pairwise(claiming)
    for gone, heir in pairs:
        if gone.owned:
            joined = _heir(heir, gone, gone.owned)
            yield _only_members(s, [joined if m is heir else m for m in s.members if m is not gone])


def _heir(member: ScenarioMember, giver: ScenarioMember, claims: Partitions) -> ScenarioMember:
    return replace(
        member,
        topics=tuple(dict.fromkeys((*member.topics, *giver.topics))),
        owned=tuple(dict.fromkeys((*member.owned, *claims))),
        generation=max(member.generation, giver.generation),
    )


def _moved_claims(s: Scenario) -> Iterator[Scenario]:
    """Leave out a partition; another member claims what one did: who of them has it may decide."""
    claimed = {p for m in everybody(s) for p in m.owned}
    free = [p for kind, p in things_of(s) if kind == "partition" and p not in claimed]
    if len(s.members) > FEW or len(free) > 2 * FEW:
        return
    for giver, taker in permutations(s.members, 2):
        for moved in dict.fromkeys((giver.owned, *((p,) for p in giver.owned[:FEW]))):
            left = replace(giver, owned=tuple(p for p in giver.owned if p not in moved))
            changed = {giver.id: left, taker.id: _heir(taker, giver, moved)}
            members = tuple(changed.get(m.id, m) for m in s.members)
            for gone in free if moved else ():
                yield without_things(replace(s, members=members), (("partition", gone),))


def _tiny_group(s: Scenario) -> Iterator[Scenario]:
    """Few members and few partitions of each topic."""
    largest = max(map(len, s.topics.values()), default=0)
    for kept in range(2, min(FEW, len(s.members))):
        for count in range(1, min(FEW, largest)):
            yield _cut_all(_only_members(s, s.members[:kept]), count)


def _smaller_group(s: Scenario) -> Iterator[Scenario]:
    """Leave out members and partitions, or topics, at once: either alone would change who has too many."""
    largest = max(map(len, s.topics.values()), default=0)
    for gone in s.members:
        fewer = _only_members(s, [m for m in s.members if m is not gone])
        for topic in s.topics:
            yield without_topics(fewer, {topic})
        for count in _counts(largest):
            yield _cut_all(fewer, count)


def _fewer_topics(s: Scenario) -> Iterator[Scenario]:
    topics = topics_named(s)
    for kept in fewer(topics):
        yield without_topics(s, {*topics}.difference(kept))


def _joined_topics(s: Scenario) -> Iterator[Scenario]:
    """Make one topic of all, or of two."""
    still = [
        t for t in s.topics if not any(isinstance(e, SetTopic) and e.topic == t for r in s.rounds for e in r)
    ]
    if len(still) > 2:
        kept, *others = still
        joined = s
        for gone in others:
            joined = with_one_topic(joined, kept, gone)
        yield joined
    for kept, gone in combinations(still, 2) if len(still) <= 2 * FEW else pairwise(still):
        yield with_one_topic(s, kept, gone)


EVERY_COUNT_BELOW = 16
"""Topics smaller than this are tried with every smaller number of partitions, others with few, or halves."""


def _fewer_partitions(s: Scenario) -> Iterator[Scenario]:
    yield from _claimed_first(s)
    largest = max(map(len, s.topics.values()), default=0)
    for count in _counts(largest):  # all topics at once: those of one size stay so
        yield _cut_all(s, count)
    if len(s.topics) > 1:
        for less in _runs(largest):  # and their differences too
            yield _cut_each(s, {topic: max(0, len(p) - less) for topic, p in s.topics.items()})
    for topic, partitions in s.topics.items():
        for count in _counts(len(partitions)):
            yield _cut_each(s, {topic: count})
        for index in range(len(partitions)):  # one: what is behind it, or claimed beyond, moves up
            yield without_partitions(s, {TopicPartition(topic, index)})
    yield from _changed_events(s, _shorter)


def _claimed_first(s: Scenario) -> Iterator[Scenario]:
    """Whatever is claimed comes first in its topic, so that the rest can be cut off."""
    claimed = {p for m in everybody(s) for p in m.owned}
    new: dict[TopicPartition, TopicPartition] = {}
    topics: dict[str, tuple[Racks, ...]] = {}
    for topic, partitions in s.topics.items():
        order = sorted(range(len(partitions)), key=lambda i, t=topic: (t, i) not in claimed)  # type: ignore[misc]
        topics[topic] = tuple(partitions[index] for index in order)
        new |= {TopicPartition(topic, i): TopicPartition(topic, n) for n, i in enumerate(order) if n != i}
    if new:
        yield each_member(
            replace(s, topics=topics), lambda m: replace(m, owned=tuple(new.get(p, p) for p in m.owned))
        )


def _shorter(event: ScenarioEvent) -> Iterator[ScenarioEvent]:
    if isinstance(event, SetTopic) and event.partitions:
        yield replace(event, partitions=event.partitions[:-1])


def _counts(size: int) -> Sequence[int]:
    """Smaller sizes to try, the boldest first."""
    if size < EVERY_COUNT_BELOW:
        return range(size)
    return [*range(2 * FEW), *sorted({size - less for less in _runs(size)} - {*range(2 * FEW)})]


def _cut_all(s: Scenario, count: int) -> Scenario:
    return _cut_each(s, dict.fromkeys(s.topics, count))


def _cut_each(s: Scenario, counts: Mapping[str, int]) -> Scenario:
    """Return the scenario with no more than so many partitions of each topic."""
    left = {topic: count for topic, count in counts.items() if len(s.topics[topic]) > count}
    return each_member(
        replace(s, topics={**s.topics, **{topic: s.topics[topic][:count] for topic, count in left.items()}}),
        lambda m: replace(m, owned=tuple(p for p in m.owned if p.partition < left.get(p.topic, math.inf))),
    )


def _fewer_claims(s: Scenario) -> Iterator[Scenario]:
    claims = [*dict.fromkeys((m.id, p) for m in everybody(s) for p in m.owned)]
    for kept in fewer(claims):
        yield without_things(s, (("claim", gone) for gone in {*claims}.difference(kept)))
    yield from _changed_members(s, _claiming_less)


def _claiming_less(member: ScenarioMember) -> Iterator[ScenarioMember]:
    if member.owned:
        yield replace(member, owned=())
    if len({*member.owned}) < len(member.owned):
        yield replace(member, owned=tuple(dict.fromkeys(member.owned)))


def _plainer_members(s: Scenario) -> Iterator[Scenario]:
    yield from _changed_members(s, _plainer)
    yield from _changed_events(s, _narrower)


def _narrower(event: ScenarioEvent) -> Iterator[ScenarioEvent]:
    if isinstance(event, Subscribe) and len(event.topics) > 1:
        for topic in event.topics:
            yield replace(event, topics=tuple(t for t in event.topics if t != topic))


def _plainer(member: ScenarioMember) -> Iterator[ScenarioMember]:
    plain = ScenarioMember(id=member.id, topics=member.topics)
    for name in ("rack", "instance", "eager", "user_data", "version"):
        if getattr(member, name) != getattr(plain, name):
            yield replace(member, **{name: getattr(plain, name)})
    if member.user_data not in (UserData.OWN, UserData.NONE):
        yield replace(member, user_data=UserData.NONE)
    if not member.owned and member.generation != NO_GENERATION:
        yield replace(member, generation=NO_GENERATION)
    for topic in member.topics:
        if len(member.topics) > 1:
            yield replace(
                member,
                topics=tuple(t for t in member.topics if t != topic),
                owned=tuple(p for p in member.owned if p.topic != topic),
            )
    owned = set(member.owned)
    for position, (topic, index) in enumerate(member.owned):  # lower indexes, so that partitions can go
        free = (p for p in (TopicPartition(topic, i) for i in range(index)) if p not in owned)
        if lower := next(free, None):
            yield replace(member, owned=(*member.owned[:position], lower, *member.owned[position + 1 :]))


def _plainer_topics(s: Scenario) -> Iterator[Scenario]:
    for topic, partitions in s.topics.items():
        if any(partitions):
            none: tuple[Racks, ...] = ((),) * len(partitions)
            yield replace(s, topics={**s.topics, topic: none})
            for index, racks in enumerate(partitions):
                for rack in racks:
                    fewer = tuple(r for r in racks if r != rack)
                    changed = (*partitions[:index], fewer, *partitions[index + 1 :])
                    yield replace(s, topics={**s.topics, topic: changed})


def _changed_members(
    s: Scenario, changes: Callable[[ScenarioMember], Iterator[ScenarioMember]]
) -> Iterator[Scenario]:
    """Yield one member changed at a time, those that join later included."""
    for index, member in enumerate(s.members):
        for changed in changes(member):
            yield replace(s, members=(*s.members[:index], changed, *s.members[index + 1 :]))
    yield from _changed_events(
        s, lambda e: map(AddMember, changes(e.member)) if isinstance(e, AddMember) else iter(())
    )


def _changed_events(
    s: Scenario, changes: Callable[[ScenarioEvent], Iterator[ScenarioEvent]]
) -> Iterator[Scenario]:
    """Yield one event changed at a time."""
    for number, events in enumerate(s.rounds):
        for index, event in enumerate(events):
            for changed in changes(event):
                edited = (*events[:index], changed, *events[index + 1 :])
                yield replace(s, rounds=(*s.rounds[:number], edited, *s.rounds[number + 1 :]))


def _fewer_shares(s: Scenario) -> Iterator[Scenario]:
    """Yield a member with all that it owns, or an owned partition of each: how full members are, beside each
    other, stays as it is."""
    for index, member in enumerate(s.members):
        if member.owned:
            kept = replace(s, members=s.members[:index] + s.members[index + 1 :])
            yield without_events_of(without_partitions(kept, set(member.owned)), {member.id})
    owners = [m.owned for m in s.members if m.owned]
    if len(owners) > 1:
        draw = _draw(s)
        yield without_partitions(s, {owned[-1] for owned in owners})
        for _ in range(TRIES):
            yield without_partitions(s, {draw.choice(owned) for owned in owners})


def _fewer_at_once(s: Scenario) -> Iterator[Scenario]:
    """Yield two things at once, then several, at random: what cannot go alone may go with another."""
    things = things_of(s)
    if len(things) <= MAX_PAIRED:
        yield from (without_things(s, pair) for pair in combinations(things, 2))
    draw = _draw(s)
    for number in range(TRIES * (len(things) > 2)):
        several = 2 + number % 3 if number % 2 else max(2, len(things) // 4)
        yield without_things(s, draw.sample(things, min(several, len(things))))


TRIES = 20
"""How often several things are taken away at random."""

MAX_PAIRED = 16
"""Up to so many things, each pair of them is taken away."""


def _draw(s: Scenario) -> random.Random:
    """Return the same choices for the same scenario."""
    return random.Random(repr(s.size))


Thing = tuple[str, object]


def things_of(s: Scenario) -> list[Thing]:
    """Return what a scenario is made of, to be taken away one by one."""
    return [
        *(("member", m.id) for m in s.members),
        *(("partition", TopicPartition(t, i)) for t, ps in s.topics.items() for i in range(len(ps))),
        *(("claim", (m.id, p)) for m in everybody(s) for p in m.owned),
        *(("event", (n, i)) for n, events in enumerate(s.rounds) for i in range(len(events))),
    ]


def deletions(s: Scenario) -> Iterator[Scenario]:
    """Yield the scenario without a member, a partition, a claim, an event: each alone."""
    return (without_things(s, (thing,)) for thing in things_of(s))


def without_things(s: Scenario, things: Iterable[Thing]) -> Scenario:
    gone = frozenset(things)
    s = each_member(
        s, lambda m: replace(m, owned=tuple(p for p in m.owned if ("claim", (m.id, p)) not in gone))
    )
    rounds = (
        tuple(e for i, e in enumerate(events) if ("event", (n, i)) not in gone)
        for n, events in enumerate(s.rounds)
    )
    kept = replace(
        s, members=tuple(m for m in s.members if ("member", m.id) not in gone), rounds=tuple(rounds)
    )
    kept = without_partitions(kept, {p for kind, p in gone if kind == "partition"})  # type: ignore[misc]
    return without_events_of(kept, {str(name) for kind, name in gone if kind == "member"})


REDUCTIONS: tuple[Reduction[Scenario], ...] = (  # the boldest first
    _fewer_rounds,
    _tiny_group,
    _fewer_members,
    _fewer_shares,
    _fewer_topics,
    _fewer_partitions,
    _fewer_events,
    _fewer_claims,
    _plainer_members,
    _plainer_topics,
    _joined_members,
    _moved_claims,
    _joined_topics,
    _smaller_group,
    _fewer_at_once,
)


def plain_names(s: Scenario, members: bool = True, topics: bool = True) -> Scenario:
    """Return members A, B, C and topics t0, t1, t2 in order of appearance, so that small traces look
    alike."""
    ids = dict.fromkeys(m.id for m in everybody(s))
    plain_ids = {old: chr(ord("A") + i) if i < 26 else f"A{i}" for i, old in enumerate(ids)}
    plain_topics = {old: f"t{i}" for i, old in enumerate(topics_named(s))}
    return renamed(s, plain_ids if members else {}, plain_topics if topics else {})


def _plainly_named(s: Scenario) -> Iterator[Scenario]:
    """Yield only members or only topics where the names of the others matter."""
    candidates = (plain_names(s), plain_names(s, topics=False), plain_names(s, members=False))
    yield from (candidate for candidate in candidates if candidate != s)
