"""Making a counterexample small: remove whatever is not needed for the same clause to break.

Greedy delta debugging on the scenario itself, not on the choices that produced it, so that a
scenario of any origin (a seed, a campaign row, a trace edited by hand) can be minimised, and the
result is minimal in the user's own terms: no round, event, member, topic, partition or claim can be
taken away from it, alone, without losing the breach.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations, islice
from operator import is_

from rebalance.model.values import NO_GENERATION, Racks, TopicPartition
from rebalance.properties.assignors.scenarios import (
    AddMember,
    Fault,
    Leave,
    Scenario,
    ScenarioEvent,
    ScenarioMember,
    SetTopic,
    Subscribe,
    UserData,
    everybody,
    renamed,
    topics_named,
)

Reduction = Callable[[Scenario], Iterator[Scenario]]


Ahead = Callable[[Sequence[Scenario]], None]
"""Called with what is about to be tried, until one of it breaks: it may be played all at once."""


def minimise(
    scenario: Scenario,
    breaks: Callable[[Scenario], bool],
    *,
    may_go_on: Callable[[], bool] = lambda: True,
    ahead: Ahead | None = None,
) -> Scenario:
    """The smallest scenario reached from ``scenario`` by single reductions that still ``breaks``.

    ``scenario`` itself must break. Stops early, with what it has, when ``may_go_on`` says no.
    """
    before = None
    while scenario != before:
        before = scenario
        for reduce in REDUCTIONS:
            scenario = _exhaust(reduce, scenario, breaks, may_go_on, ahead)
        if scenario == before:
            # And once more: what breaks may depend on names.
            plain = (named for named in _plainly_named(scenario) if may_go_on() and breaks(named))
            scenario = next(plain, scenario)
    return scenario


def _exhaust(
    reduce: Reduction,
    scenario: Scenario,
    breaks: Callable[[Scenario], bool],
    may_go_on: Callable[[], bool],
    ahead: Ahead | None,
) -> Scenario:
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


def _announced(candidates: Iterator[Scenario], ahead: Ahead) -> Iterator[Scenario]:
    """The candidates, the more of them ahead the longer none has helped."""
    count = FIRST_AHEAD
    while several := list(islice(candidates, count)):
        ahead(several)
        yield from several
        count = min(2 * count, MOST_AHEAD)


FIRST_AHEAD, MOST_AHEAD = 4, 32
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


def _fewer_events(s: Scenario) -> Iterator[Scenario]:
    for number, events in enumerate(s.rounds):
        for index, event in enumerate(events):
            rest = events[:index] + events[index + 1 :]
            yield replace(s, rounds=(*s.rounds[:number], rest, *s.rounds[number + 1 :]))
            if isinstance(event, AddMember) and number == 0:  # there from the start
                yield replace(s, members=(*s.members, event.member), rounds=(rest, *s.rounds[1:]))


def _fewer_members(s: Scenario) -> Iterator[Scenario]:
    count = len(s.members)
    for size in sorted({count // 2, count // 4} - {0}, reverse=True):
        for start in range(0, count, size):
            kept = s.members[:start] + s.members[start + size :]
            yield without_events_of(
                replace(s, members=kept), {m.id for m in s.members} - {m.id for m in kept}
            )
    for index, member in enumerate(s.members):
        yield without_events_of(replace(s, members=s.members[:index] + s.members[index + 1 :]), {member.id})


def _smaller_group(s: Scenario) -> Iterator[Scenario]:
    """A member less and partitions less at once: either alone would change who has too many."""
    for index, member in enumerate(s.members):
        fewer = replace(s, members=s.members[:index] + s.members[index + 1 :])
        for count in _counts(max(map(len, s.topics.values()), default=0)):
            yield without_events_of(_cut_all(fewer, count), {member.id})


def without_events_of(s: Scenario, gone: set[str]) -> Scenario:
    def about(event: ScenarioEvent) -> bool:
        return isinstance(event, Leave | Subscribe | Fault) and event.id in gone

    return replace(s, rounds=tuple(tuple(e for e in events if not about(e)) for events in s.rounds))


def _fewer_topics(s: Scenario) -> Iterator[Scenario]:
    for topic in topics_named(s):
        yield each_member(
            replace(
                s,
                topics={t: p for t, p in s.topics.items() if t != topic},
                rounds=tuple(
                    tuple(e for e in events if not (isinstance(e, SetTopic) and e.topic == topic))
                    for events in s.rounds
                ),
            ),
            lambda m, gone=topic: replace(  # type: ignore[misc]
                m,
                topics=tuple(t for t in m.topics if t != gone),
                owned=tuple(p for p in m.owned if p.topic != gone),
            ),
        )


EVERY_COUNT_BELOW = 16
"""Topics smaller than this are tried with every smaller number of partitions, others by halving."""


def _fewer_partitions(s: Scenario) -> Iterator[Scenario]:
    largest = max(map(len, s.topics.values()), default=0)
    for count in _counts(largest):  # all topics at once: those of one size stay so
        yield _cut_all(s, count)
    for topic, partitions in s.topics.items():
        for count in _counts(len(partitions)):
            yield _cut(s, topic, count)
        for index in range(len(partitions)):  # one: what is behind it, or claimed beyond, moves up
            rest = partitions[:index] + partitions[index + 1 :]
            yield each_member(
                replace(s, topics={**s.topics, topic: rest}),
                lambda m, t=topic, i=index: replace(  # type: ignore[misc]
                    m,
                    owned=tuple(
                        p._replace(partition=p.partition - 1) if p.topic == t and p.partition > i else p
                        for p in m.owned
                        if p != (t, i)
                    ),
                ),
            )
    yield from _changed_events(s, _shorter)


def _shorter(event: ScenarioEvent) -> Iterator[ScenarioEvent]:
    if isinstance(event, SetTopic) and event.partitions:
        yield replace(event, partitions=event.partitions[:-1])


def _counts(size: int) -> list[int]:
    """Smaller sizes to try, the boldest first."""
    return list(range(size)) if size < EVERY_COUNT_BELOW else [0, size // 2, size - 1]


def _cut_all(s: Scenario, count: int) -> Scenario:
    for topic, partitions in s.topics.items():
        if len(partitions) > count:
            s = _cut(s, topic, count)
    return s


def _cut(s: Scenario, topic: str, count: int) -> Scenario:
    return each_member(
        replace(s, topics={**s.topics, topic: s.topics[topic][:count]}),
        lambda m: replace(m, owned=tuple(p for p in m.owned if p.topic != topic or p.partition < count)),
    )


def _fewer_claims(s: Scenario) -> Iterator[Scenario]:
    yield from _changed_members(s, _claiming_less)


def _claiming_less(member: ScenarioMember) -> Iterator[ScenarioMember]:
    if member.owned:
        yield replace(member, owned=())
    for position in range(len(member.owned)):
        yield replace(member, owned=member.owned[:position] + member.owned[position + 1 :])


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
    """One member changed at a time, those that join later included."""
    for index, member in enumerate(s.members):
        for changed in changes(member):
            yield replace(s, members=(*s.members[:index], changed, *s.members[index + 1 :]))
    yield from _changed_events(
        s, lambda e: map(AddMember, changes(e.member)) if isinstance(e, AddMember) else iter(())
    )


def _changed_events(
    s: Scenario, changes: Callable[[ScenarioEvent], Iterator[ScenarioEvent]]
) -> Iterator[Scenario]:
    """One event changed at a time."""
    for number, events in enumerate(s.rounds):
        for index, event in enumerate(events):
            for changed in changes(event):
                edited = (*events[:index], changed, *events[index + 1 :])
                yield replace(s, rounds=(*s.rounds[:number], edited, *s.rounds[number + 1 :]))


def each_member(s: Scenario, change: Callable[[ScenarioMember], ScenarioMember]) -> Scenario:
    """The scenario with every member changed, those that join later too; itself if none was: what asks so of
    each of thousands of scenarios finds little to change."""
    members = tuple([change(m) for m in s.members])
    rounds = (
        tuple([tuple([_of_member(e, change) for e in events]) for events in s.rounds])
        if any(s.rounds)
        else s.rounds
    )
    same = all(map(is_, members, s.members)) and (
        rounds is s.rounds or all(all(map(is_, new, old)) for new, old in zip(rounds, s.rounds, strict=True))
    )
    return s if same else replace(s, members=members, rounds=rounds)


def _of_member(e: ScenarioEvent, change: Callable[[ScenarioMember], ScenarioMember]) -> ScenarioEvent:
    if not isinstance(e, AddMember):
        return e
    member = change(e.member)
    return e if member is e.member else AddMember(member)


def _fewer_shares(s: Scenario) -> Iterator[Scenario]:
    """A member with all that it owns, or an owned partition of each: how full members are, beside each other,
    stays as it is."""
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
    """Two things at once, then several, at random: what cannot go alone may go with another."""
    things = things_of(s)
    if len(things) <= MOST_PAIRED:
        yield from (without_things(s, pair) for pair in combinations(things, 2))
    draw = _draw(s)
    for number in range(TRIES * (len(things) > 2)):
        several = 2 + number % 3 if number % 2 else max(2, len(things) // 4)
        yield without_things(s, draw.sample(things, min(several, len(things))))


TRIES = 20
"""How often several things are taken away at random."""

MOST_PAIRED = 16
"""Up to so many things, each pair of them is taken away."""


def _draw(s: Scenario) -> random.Random:
    """The same choices for the same scenario."""
    return random.Random(repr(s.size))


Thing = tuple[str, object]


def things_of(s: Scenario) -> list[Thing]:
    """What a scenario is made of, to be taken away one by one."""
    return [
        *(("member", m.id) for m in s.members),
        *(("partition", TopicPartition(t, i)) for t, ps in s.topics.items() for i in range(len(ps))),
        *(("claim", (m.id, p)) for m in everybody(s) for p in m.owned),
        *(("event", (n, i)) for n, events in enumerate(s.rounds) for i in range(len(events))),
    ]


def deletions(s: Scenario) -> Iterator[Scenario]:
    """The scenario without a member, a partition, a claim, an event: each alone."""
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


def without_partitions(s: Scenario, gone: set[TopicPartition]) -> Scenario:
    """The later ones of a topic move up, and with them what is claimed."""
    topics = {
        topic: tuple(racks for i, racks in enumerate(partitions) if (topic, i) not in gone)
        for topic, partitions in s.topics.items()
    }

    def moved(p: TopicPartition) -> TopicPartition:
        return p._replace(partition=p.partition - sum(g.topic == p.topic and g < p for g in gone))

    return each_member(
        replace(s, topics=topics),
        lambda m: replace(m, owned=tuple(moved(p) for p in m.owned if p not in gone)),
    )


REDUCTIONS: tuple[Reduction, ...] = (  # the boldest first
    _fewer_rounds,
    _fewer_members,
    _fewer_shares,
    _fewer_topics,
    _fewer_partitions,
    _fewer_events,
    _fewer_claims,
    _plainer_members,
    _plainer_topics,
    _smaller_group,
    _fewer_at_once,
)


def plain_names(s: Scenario, members: bool = True, topics: bool = True) -> Scenario:
    """Members A, B, C and topics t0, t1, t2 in order of appearance, so that small traces look alike."""
    ids = dict.fromkeys(m.id for m in everybody(s))
    plain_ids = {old: chr(ord("A") + i) if i < 26 else f"A{i}" for i, old in enumerate(ids)}
    plain_topics = {old: f"t{i}" for i, old in enumerate(topics_named(s))}
    return renamed(s, plain_ids if members else {}, plain_topics if topics else {})


def _plainly_named(s: Scenario) -> Iterator[Scenario]:
    """Only members or only topics where the names of the others matter."""
    candidates = (plain_names(s), plain_names(s, topics=False), plain_names(s, members=False))
    yield from (candidate for candidate in candidates if candidate != s)
