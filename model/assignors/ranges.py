"""Range: each topic by itself, in contiguous ranges (``RangeAssignor``), rack-aware as of KIP-881."""

from __future__ import annotations

from collections import deque

from rebalance_verifier.model.assignors import deal
from rebalance_verifier.model.assignors.design import Rebalance
from rebalance_verifier.model.assignors.roundrobin import seats
from rebalance_verifier.model.claims import NOBODY, Rows
from rebalance_verifier.model.values import GroupAssignment, Racks


def allocate(rebalance: Rebalance, held: Rows) -> GroupAssignment:
    """Contiguous ranges over the members in seat order; the first ones get one more.

    Topics with equal partition counts and equal subscribers are co-partitioned: equal indexes go to one
    member. Where racks decide, a member first takes the indexes for which it is in a replica's rack in
    all those topics, up to its share; what remains is given out in order.
    """
    order = seats(rebalance)
    subscribers: dict[str, list[int]] = {topic: [] for topic in rebalance.topics}
    for member in order:
        for topic in rebalance.subscriptions[member]:
            subscribers[topic].append(member)
    alike: dict[tuple[int, tuple[int, ...]], list[str]] = {}
    for topic in rebalance.topics:
        alike.setdefault((rebalance.sizes[topic], tuple(subscribers[topic])), []).append(topic)
    rows: Rows = {}
    for (size, members), topics in alike.items():
        row = divide(size, members, [rebalance.topics[topic] for topic in topics], rebalance.racks)
        rows.update(dict.fromkeys(topics, row))
    return deal.assignment(rebalance.members, rows)


def divide(
    size: int, members: tuple[int, ...], topics: list[tuple[Racks, ...]], racks: tuple[str | None, ...]
) -> list[int]:
    """Return one row for all ``topics`` (the racks of their partitions), shared by ``members`` in seat
    order."""
    floor, extra = divmod(size, len(members))
    row = [NOBODY] * size
    taken = dict.fromkeys(members, 0)
    larger = 0  # members that got one more than the floor

    def take(member: int, indexes: deque[int]) -> None:
        """As many of ``indexes`` as are free and in the member's share."""
        nonlocal larger
        while indexes and taken[member] < floor + (larger < extra):
            index = indexes.popleft()
            if row[index] == NOBODY:
                row[index] = member
                taken[member] += 1
                larger += taken[member] > floor

    near = {
        rack: deque(i for i in range(size) if all(rack in partitions[i] for partitions in topics))
        for rack in dict.fromkeys(racks[member] for member in members)
        if rack
    }
    for member in members:
        take(member, near.get(racks[member] or "", deque()))
    rest = deque(index for index in range(size) if row[index] == NOBODY)
    for member in members:
        take(member, rest)
    return row
