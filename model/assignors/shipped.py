"""Stages as they were shipped by mistake, one function each; ``model.bugs.switches`` names them.

Each has the type of the stage it replaces (see ``design``) and reproduces the mistake, not the code, of
the release that its switch tells. Entries such as J2 are those of the catalogue of bugs.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import replace

from rebalance_verifier.model.assignors import deal, ranges, roundrobin, sticky
from rebalance_verifier.model.assignors.design import (
    Allocate,
    Encode,
    Rebalance,
    Resolve,
    Withhold,
    newest_claims,
    withhold_nothing,
)
from rebalance_verifier.model.claims import CONTESTED, NOBODY, Claim, Rows, newest, user_data_claim
from rebalance_verifier.model.values import (
    NO_GENERATION,
    GroupAssignment,
    Partitions,
    Subscription,
    TopicPartition,
)
from rebalance_verifier.model.wire import encode_sticky_user_data


class IllegalStateError(RuntimeError):
    """Exception that Java throws as ``IllegalStateException`` out of ``assign`` or its validation."""


# -- reading and settling claims ---------------------------------------------------------------------------


def without_generation(subscription: Subscription) -> Claim:
    """J8: the claim of the user data, as old as any other."""
    return Claim(user_data_claim(subscription).partitions, NO_GENERATION)


def encode_without_generation(owned: Partitions, generation: int) -> bytes:
    """J8: user data version 0."""
    return encode_sticky_user_data(owned, None)


def last_claim(rebalance: Rebalance) -> Rows:
    """Return the claimant that the leader's map yields last has the partition."""
    rows: Rows = {topic: [NOBODY] * size for topic, size in rebalance.sizes.items()}
    number = {member: n for n, member in enumerate(rebalance.members)}
    for member in rebalance.group:
        for topic, index in rebalance.claims[number[member]].partitions:
            if 0 <= index < rebalance.sizes.get(topic, 0):
                rows[topic][index] = number[member]
    return rows


def claims_of_newest_generation(rebalance: Rebalance) -> Rows:
    """J4: one member's newer generation voids all claims of all others."""
    age = max((claim.generation for claim in rebalance.claims), default=NO_GENERATION)
    return newest([c if c.generation == age else Claim() for c in rebalance.claims], rebalance.sizes)


def repeats_are_rivals(rebalance: Rebalance) -> Rows:
    """J30 since 2.8.1: a member that names a partition twice is its own rival."""
    rows = newest_claims(rebalance)
    for member, claim in enumerate(rebalance.claims):
        for (topic, index), times in Counter(claim.partitions).items():
            row = rows.get(topic, [])
            if times > 1 and 0 <= index < len(row) and row[index] == member:
                row[index] = CONTESTED
    return rows


def remembering(resolve: Resolve) -> Resolve:
    """KAFKA-5277: where nobody claims a partition, the claims of the call before still count."""
    before: dict[TopicPartition, str] = {}

    def resolve_with_memory(rebalance: Rebalance) -> Rows:
        rows = resolve(rebalance)
        number = {member: n for n, member in enumerate(rebalance.members)}
        for topic, row in rows.items():
            for index, member in enumerate(row):
                if member == NOBODY:
                    row[index] = number.get(before.get(TopicPartition(topic, index), ""), NOBODY)
        for topic, row in rows.items():
            for index, member in enumerate(row):
                if member >= 0:
                    before[TopicPartition(topic, index)] = rebalance.members[member]
        return rows

    return resolve_with_memory


def only_once(encode: Encode) -> Encode:
    """K1: the encoder reads from an iterator, which is exhausted after the first rebalance."""
    remaining = iter((encode,))

    def encode_once(owned: Partitions, generation: int) -> bytes | None:
        for fresh in remaining:
            return fresh(owned, generation)
        raise IllegalStateError("user data: the iterator over the assignment is exhausted")

    return encode_once


# -- withholding and validation ----------------------------------------------------------------------------


def by_claims(withhold: Withhold) -> Withhold:
    """J2 before 2.5.1: whatever a member claims is its own already, if another one loses it at once, too."""
    return withhold if withhold is withhold_nothing else withhold_revoked


def withhold_revoked(rebalance: Rebalance, held: Rows, placed: GroupAssignment) -> GroupAssignment:
    """Hold back what one member gains and another loses, going by what they say (before 2.8.1)."""
    lost = _lost(rebalance, placed)
    result = {}
    for member, claim in zip(rebalance.members, rebalance.claims, strict=True):
        claimed = frozenset(claim.partitions)
        result[member] = tuple(p for p in placed[member] if p in claimed or p not in lost)
    return result


def validate_raw(rebalance: Rebalance, placed: GroupAssignment) -> None:
    """``ConsumerCoordinator.validateCooperativeAssignment``: nothing may be gained and lost at once."""
    lost = _lost(rebalance, placed)
    for member in rebalance.members:
        owned = frozenset(rebalance.group[member].owned_partitions)
        for partition in placed[member]:
            if partition in lost and partition not in owned:
                raise IllegalStateError(
                    f"Assignor supporting the COOPERATIVE protocol violates its requirements: {partition} "
                    f"goes to {member} in the round that revokes it"
                )


def _lost(rebalance: Rebalance, placed: GroupAssignment) -> frozenset[TopicPartition]:
    """Return partitions that some member says it owns and does not get."""
    return frozenset(
        partition
        for member in rebalance.members
        for partition in set(rebalance.group[member].owned_partitions).difference(placed[member])
    )


# -- placing: the constrained algorithm of KAFKA-9987, 2.5.1 to 2.8 ----------------------------------------


def steal_once(rebalance: Rebalance, held: Rows) -> GroupAssignment:
    """U2: whoever is still short steals one partition, and only one."""
    return _constrained(rebalance, held, _counting(rebalance, sticky.keepable(rebalance, held)), steals=1)


def trust_everybody(rebalance: Rebalance, held: Rows) -> GroupAssignment:
    """J2: every claim is kept up to the quota, also by two members."""
    owned = [tuple(sorted(set(claim.partitions))) for claim in rebalance.claims]
    return _constrained(rebalance, last_claim(rebalance), owned)


def count_repeats(rebalance: Rebalance, held: Rows) -> GroupAssignment:
    """J30 before 2.8.1: a partition claimed twice by its owner fills two places."""
    return _constrained(rebalance, held, _counting(rebalance, held))


def quota_still_open(rebalance: Rebalance, held: Rows) -> GroupAssignment:
    """J2, part 3: who was found at the floor early stays fillable after all larger places are taken."""
    if not rebalance.alike or any(rebalance.racks):
        return sticky.allocate(rebalance, held)
    rows = sticky.keepable(rebalance, held)
    members = [m for m, topics in enumerate(rebalance.subscriptions) if topics]
    if not members:
        return deal.assignment(rebalance.members, rows)
    floor, extra = divmod(sum(rebalance.sizes.values()), len(members))
    loads = Counter(m for row in rows.values() for m in row)
    keep, needs, larger = {}, [], 0
    for member in members:
        if loads[member] > floor and larger < extra:
            larger += 1
            keep[member] = floor + 1
        else:
            keep[member] = min(loads[member], floor)
            needs.append((member, floor - keep[member] + (larger < extra)))
    for row in rows.values():
        for index, member in enumerate(row):
            if member != NOBODY:
                row[index] = member if keep[member] else NOBODY
                keep[member] -= keep[member] > 0
    deal.fill(rows, deal.round_robin(needs))
    return deal.assignment(rebalance.members, rows)


def _counting(rebalance: Rebalance, held: Rows) -> list[Partitions]:
    """Return each member's valid claims, as often as it makes them."""
    return [
        tuple(p for p in claim.partitions if _holder(held, p) == member)
        for member, claim in enumerate(rebalance.claims)
    ]


def _holder(rows: Rows, partition: TopicPartition) -> int:
    row = rows.get(partition.topic, [])
    return row[partition.partition] if 0 <= partition.partition < len(row) else NOBODY


def _constrained(
    rebalance: Rebalance, held: Rows, owned: list[Partitions], steals: int | None = None
) -> GroupAssignment:
    """Keep up to the larger quota, fill to the smaller one, steal what is missing from the largest.

    ``owned`` are the claims as trusted; whoever is short steals ``steals`` times (None: until it is not).
    Unequal subscriptions and racks went to another algorithm: the reference stands for it.
    """
    if not rebalance.alike or any(rebalance.racks):
        return sticky.allocate(rebalance, held)
    members = [m for m, topics in enumerate(rebalance.subscriptions) if topics]
    hands: list[list[TopicPartition]] = [[] for _ in rebalance.members]
    if members:
        everything = [TopicPartition(t, i) for t, size in rebalance.sizes.items() for i in range(size)]
        floor, extra = divmod(len(everything), len(members))
        for member in members:
            known = [p for p in owned[member] if p.partition < rebalance.sizes.get(p.topic, 0)]
            hands[member] = known[: floor + (extra > 0)]
        kept = {partition for hand in hands for partition in hand}
        spare = deque(partition for partition in everything if partition not in kept)
        largest = deque(m for m in members if len(hands[m]) == floor + (extra > 0))
        short = [m for m in members if len(hands[m]) < floor]
        for member in deal.round_robin([(m, floor - len(hands[m])) for m in short]):
            if spare:
                hands[member].append(spare.popleft())
        for member in short:
            missing = floor - len(hands[member])
            for _ in range(missing if steals is None else min(missing, steals)):
                if not largest:
                    raise IllegalStateError("some consumers are under capacity, but everything is assigned")
                hands[member].append(hands[largest.popleft()].pop(0))
        level = deque(m for m in members if len(hands[m]) == floor)
        while spare:
            if not level:
                raise IllegalStateError("some partitions are left, but no consumer is at minimal capacity")
            hands[level.popleft()].append(spare.popleft())
    return {m: tuple(sorted(hand)) for m, hand in zip(rebalance.members, hands, strict=True)}


# -- placing: the general algorithm ------------------------------------------------------------------------


def pairwise(rebalance: Rebalance, held: Rows) -> GroupAssignment:
    """J23: hand out what is free, then move single partitions until no two members differ by two.

    That is all the balance KIP-54 asks for, and the result depends on where it started: the partitions
    held back in one round may be placed so in the next that others have to move.
    """
    if rebalance.alike:
        return sticky.allocate(rebalance, held)
    rows = sticky.keepable(rebalance, held)
    takers = {
        t: [m for m, topics in enumerate(rebalance.subscriptions) if t in topics] for t in rebalance.topics
    }
    loads = Counter(m for row in rows.values() for m in row)
    partitions = sorted(
        (TopicPartition(t, i) for t, size in rebalance.sizes.items() for i in range(size)),
        key=lambda p: (len(takers[p.topic]), p),
    )
    moved = True
    while moved:
        moved = False
        for topic, index in partitions:
            owner = rows[topic][index]
            poorest = min(takers[topic], key=lambda m: (loads[m], m))
            if owner == NOBODY or loads[owner] > loads[poorest] + 1:
                loads.subtract((owner,))
                loads.update((poorest,))
                rows[topic][index] = poorest
                moved = True
    return deal.assignment(rebalance.members, rows)


def recounting(rebalance: Rebalance, held: Rows) -> GroupAssignment:
    """J24, KAFKA-9987: the right result, after comparing every partition with every member by recounting."""
    placed = sticky.allocate(rebalance, held)
    owners = {p: m for m, partitions in placed.items() for p in partitions}
    everyone = list(owners.values())
    for poorer, owner in _moves(rebalance, owners):
        if everyone.count(owner) > everyone.count(poorer) + 1:
            break  # cannot be: the placement is balanced
    return placed


def sweeping(rebalance: Rebalance, held: Rows) -> GroupAssignment:
    """J24, KAFKA-15106: a difference of one counts as unbalanced, so every partition costs a full sweep."""
    placed = sticky.allocate(rebalance, held)
    owners = {p: m for m, partitions in placed.items() for p in partitions}
    loads = {member: len(partitions) for member, partitions in placed.items()}
    for _ in owners:
        if not [1 for poorer, owner in _moves(rebalance, owners) if loads[poorer] < loads[owner]]:
            break
    return placed


def _moves(rebalance: Rebalance, owners: dict[TopicPartition, str]) -> Iterator[tuple[str, str]]:
    """For each partition and each other member that could have it: (that member, the owner)."""
    for partition, owner in owners.items():
        for member, topics in zip(rebalance.members, rebalance.subscriptions, strict=True):
            if partition.topic in topics and member != owner:
                yield member, owner


def without_claims(allocate: Allocate) -> Allocate:
    """F4: the placement starts from a map of claims that was cleared before."""

    def allocate_afresh(rebalance: Rebalance, held: Rows) -> GroupAssignment:
        return allocate(rebalance, {topic: [NOBODY] * size for topic, size in rebalance.sizes.items()})

    return allocate_afresh


def alike_if_one_topic(allocate: Allocate) -> Allocate:
    """F5: one topic with metadata, so all members must subscribe to the same."""

    def allocate_one_topic(rebalance: Rebalance, held: Rows) -> GroupAssignment:
        if len(rebalance.topics) == 1:
            topics = frozenset(rebalance.topics)
            rebalance = replace(rebalance, subscriptions=(topics,) * len(rebalance.members))
        return allocate(rebalance, held)

    return allocate_one_topic


def by_detour(rebalance: Rebalance, held: Rows) -> GroupAssignment:
    """F5: what a chain of moves hands on is not the partition that came in, so that two move, not one."""
    placed = sticky.allocate(rebalance, held)
    owners = {p: m for m, partitions in placed.items() for p in partitions}
    number = {member: n for n, member in enumerate(rebalance.members)}
    for partition, taker in sorted(owners.items()):
        loser = _holder(held, partition)
        if loser < 0 or rebalance.members[loser] == taker:
            continue
        for other, between in sorted(owners.items()):
            if (
                between not in (taker, rebalance.members[loser])
                and _holder(held, other) == number[between]
                and partition.topic in rebalance.subscriptions[number[between]]
                and other.topic in rebalance.subscriptions[number[taker]]
            ):
                owners[partition], owners[other] = between, taker
                break
    hands: dict[str, list[TopicPartition]] = {member: [] for member in rebalance.members}
    for partition, member in sorted(owners.items()):
        hands[member].append(partition)
    return {member: tuple(hand) for member, hand in hands.items()}


# -- placing: topics and members ---------------------------------------------------------------------------


def without_null_check(allocate: Allocate) -> Allocate:
    """J29, KAFKA-7962 and KAFKA-3661: a subscribed topic without metadata ends the assignment."""

    def allocate_or_fail(rebalance: Rebalance, held: Rows) -> GroupAssignment:
        for member, subscription in rebalance.group.items():
            for topic in subscription.topics:
                if topic not in rebalance.topics:
                    raise IllegalStateError(f"null: no partitions of topic {topic}, wanted by {member}")
        return allocate(rebalance, held)

    return allocate_or_fail


def as_many_topics_as_members(allocate: Allocate) -> Allocate:
    """L6, 57da62532: topics beyond the number of members are never looked at."""

    def allocate_some(rebalance: Rebalance, held: Rows) -> GroupAssignment:
        return allocate(_restricted(rebalance, list(rebalance.topics)[: len(rebalance.members)]), held)

    return allocate_some


def topics_of_the_leader(allocate: Allocate) -> Allocate:
    """Q3: the leader (here: the first of the group) hands out its own topics, to everybody."""

    def allocate_own(rebalance: Rebalance, held: Rows) -> GroupAssignment:
        leader = next(iter(rebalance.group), None)
        topics = (
            rebalance.subscriptions[rebalance.members.index(leader)] if leader is not None else frozenset()
        )
        own = _restricted(rebalance, sorted(topics))
        return allocate(replace(own, subscriptions=(topics,) * len(rebalance.members)), held)

    return allocate_own


def _restricted(rebalance: Rebalance, topics: list[str]) -> Rebalance:
    """Return the same call if only ``topics`` existed."""
    return replace(
        rebalance,
        topics={topic: rebalance.topics[topic] for topic in topics},
        subscriptions=tuple(subscribed.intersection(topics) for subscribed in rebalance.subscriptions),
    )


def in_order_of_arrival(allocate: Allocate) -> Allocate:
    """S1: members are taken as the map yields them, not sorted."""

    def allocate_unsorted(rebalance: Rebalance, held: Rows) -> GroupAssignment:
        order = {member: f"{n:09}" for n, member in enumerate(rebalance.group)}
        group = {order[m]: replace(s, group_instance_id=None) for m, s in rebalance.group.items()}
        subscribed = dict(zip(rebalance.members, rebalance.subscriptions, strict=True))
        claim = dict(zip(rebalance.members, rebalance.claims, strict=True))
        unsorted = Rebalance(
            group=group,
            members=tuple(group),
            topics=rebalance.topics,
            subscriptions=tuple(subscribed[m] for m in rebalance.group),
            claims=tuple(claim[m] for m in rebalance.group),
        )
        placed = allocate(unsorted, held)
        return {member: placed[order[member]] for member in rebalance.members}

    return allocate_unsorted


def topic_by_topic(rebalance: Rebalance, held: Rows) -> GroupAssignment:
    """J28: racks decide in each topic by itself."""
    rows: Rows = {}
    for topic, racks in rebalance.topics.items():
        members = tuple(m for m in roundrobin.seats(rebalance) if topic in rebalance.subscriptions[m])
        rows[topic] = ranges.divide(len(racks), members, [racks], rebalance.racks)
    return deal.assignment(rebalance.members, rows)


def modulo_eligible(rebalance: Rebalance, held: Rows) -> GroupAssignment:
    """L6, #3159: the next seat is counted modulo the topic's subscribers, among the seats of all members.

    Where none of the seats so reached subscribes, the original never returned. Raises RuntimeError there.
    """
    order = roundrobin.seats(rebalance)
    rows: Rows = {topic: [NOBODY] * size for topic, size in rebalance.sizes.items()}
    seat = -1
    for topic, row in rows.items():
        eligible = [m for m in order if topic in rebalance.subscriptions[m]]
        for index in range(len(row)):
            for _ in eligible:
                seat = (seat + 1) % len(eligible)
                if order[seat] in eligible:
                    row[index] = order[seat]
                    break
            else:
                raise RuntimeError(f"endless loop: no seat that is ever reached subscribes to {topic}")
    return deal.assignment(rebalance.members, rows)
