"""Round robin: all partitions in order, dealt to the members in a circle (``RoundRobinAssignor``)."""

from __future__ import annotations

from bisect import bisect_left

from rebalance_verifier.model.assignors import deal
from rebalance_verifier.model.assignors.design import Rebalance
from rebalance_verifier.model.claims import Rows
from rebalance_verifier.model.values import GroupAssignment


def seats(rebalance: Rebalance) -> list[int]:
    """Member numbers as range and roundrobin line them up: static members by instance id, then the rest.

    ``AbstractPartitionAssignor.MemberInfo.compareTo``.
    """

    def key(number: int) -> tuple[bool, str, int]:
        instance = rebalance.group[rebalance.members[number]].group_instance_id
        return instance is None, instance or "", number

    return sorted(range(len(rebalance.members)), key=key)


def allocate(rebalance: Rebalance, held: Rows) -> GroupAssignment:
    """Return each partition to the next member in the circle that subscribes to its topic.

    Every topic here has a subscriber, so that the search ends within one turn.
    """
    order = seats(rebalance)
    rows: Rows = {}
    turn = 0
    for topic, size in rebalance.sizes.items():
        takers = [seat for seat, member in enumerate(order) if topic in rebalance.subscriptions[member]]
        row = rows[topic] = []
        for _ in range(size):
            seat = takers[bisect_left(takers, turn) % len(takers)]
            row.append(order[seat])
            turn = seat + 1
    return deal.assignment(rebalance.members, rows)
