"""The sticky assignors: best balance first, then racks, then as few moves as possible (KIP-54, KIP-429).

Both read different claims and place alike; cooperative-sticky also holds back what is still in other
hands, so that the owner revokes it first (``CooperativeStickyAssignor.adjustAssignment``).
"""

from __future__ import annotations

from collections import Counter

from rebalance_verifier.model.assignors import deal, flow
from rebalance_verifier.model.assignors.design import Rebalance
from rebalance_verifier.model.claims import NOBODY, Rows
from rebalance_verifier.model.values import GroupAssignment, Racks


def allocate(rebalance: Rebalance, held: Rows) -> GroupAssignment:
    """Return every partition of every subscribed topic, in the best possible way (see ``flow``)."""
    kept = keepable(rebalance, held)
    if rebalance.alike and not any(rebalance.racks):
        rows = by_quota(rebalance, kept)
    else:
        rows = by_flow(rebalance, kept)
    return deal.assignment(rebalance.members, rows)


def withhold(rebalance: Rebalance, held: Rows, placed: GroupAssignment) -> GroupAssignment:
    """Leave out whatever anyone but its new member may still own: one owner, or several that cancel out."""
    result = {}
    for number, member in enumerate(rebalance.members):
        allowed = (number, NOBODY)
        result[member] = tuple(p for p in placed[member] if held[p[0]][p[1]] in allowed)
    return result


def keepable(rebalance: Rebalance, held: Rows) -> Rows:
    """``held`` without what nobody may keep: contested partitions, and topics the holder left."""
    rows: Rows = {}
    for topic, row in held.items():
        leavers = {m for m in set(row) if m < 0 or topic not in rebalance.subscriptions[m]} - {NOBODY}
        rows[topic] = [NOBODY if m in leavers else m for m in row] if leavers else row[:]
    return rows


def by_quota(rebalance: Rebalance, rows: Rows) -> Rows:
    """Return equal subscriptions, no racks: everyone gets the average, rounded down or up (KAFKA-9987).

    With P partitions and N members, P mod N members get one more. These places go to members that keep
    one more claim through it; no other placement could keep more.
    """
    members = [m for m, topics in enumerate(rebalance.subscriptions) if topics]
    if not members:
        return rows
    loads: Counter[int] = Counter()
    for row in rows.values():
        loads.update(row)
    floor, extra = divmod(sum(rebalance.sizes.values()), len(members))
    heavy = [m for m in members if loads[m] > floor]
    light = [m for m in members if loads[m] <= floor]
    quota = dict.fromkeys(members, floor)
    for member in (heavy + light)[:extra]:
        quota[member] += 1
    surplus: dict[int, list[tuple[int, str]]] = {m: [] for m in heavy if loads[m] > quota[m]}
    if surplus:
        for topic, row in rows.items():
            for index, member in enumerate(row):
                if member in surplus:
                    surplus[member].append((index, topic))
    for member, mine in surplus.items():
        # Lowest indexes stay, across topics: the partitions of a topic spread (KAFKA-16277).
        for index, topic in sorted(mine)[quota[member] :]:
            rows[topic][index] = NOBODY
        loads[member] = quota[member]
    deal.fill(rows, deal.round_robin([(m, quota[m] - loads[m]) for m in members]))
    return rows


def by_flow(rebalance: Rebalance, kept: Rows) -> Rows:
    """Return the general case: a least-cost flow from classes of equal partitions to members."""
    takers = dict.fromkeys(rebalance.topics, 0)
    for member, topics in enumerate(rebalance.subscriptions):
        for topic in topics:
            takers[topic] |= 1 << member
    residents: dict[str, int] = {}
    for member, rack in enumerate(rebalance.racks):
        if rack:
            residents[rack] = residents.get(rack, 0) | 1 << member
    classes: list[flow.PartitionClass] = []
    contents: list[tuple[str, list[int]]] = []
    for topic in rebalance.topics:
        for matching, indexes in _alike(rebalance.topics[topic], residents).items():
            row = kept[topic]
            claims = Counter(row[index] for index in indexes)
            del claims[NOBODY]
            # Where no rack can match, every member is as good as any other.
            near = takers[topic] & matching
            classes.append(flow.PartitionClass(len(indexes), takers[topic], near or takers[topic], claims))
            contents.append((topic, indexes))
    rows: Rows = {topic: [NOBODY] * size for topic, size in rebalance.sizes.items()}
    for (topic, indexes), given in zip(contents, flow.allocate(classes, len(rebalance.members)), strict=True):
        row, old = rows[topic], kept[topic]
        needs = {member: given[member] for member in sorted(given)}
        for index in indexes:
            if needs.get(old[index]):
                row[index] = old[index]
                needs[old[index]] -= 1
        fresh = deal.round_robin(list(needs.items()))
        for index in indexes:
            if row[index] == NOBODY:
                row[index] = next(fresh)
    return rows


def _alike(partitions: tuple[Racks, ...], residents: dict[str, int]) -> dict[int, list[int]]:
    """Return members in a replica's rack -> the indexes of the partitions for which it is them."""
    members_of: dict[Racks, int] = {}
    classes: dict[int, list[int]] = {}
    for index, racks in enumerate(partitions):
        if racks not in members_of:
            members_of[racks] = 0
            for rack in racks:
                members_of[racks] |= residents.get(rack, 0)
        classes.setdefault(members_of[racks], []).append(index)
    return classes
