"""Dealing partitions to members, and turning rows of member numbers into an assignment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import repeat

from rebalance_verifier.model.claims import NOBODY, Rows
from rebalance_verifier.model.values import GroupAssignment, TopicPartition

_partition = partial(tuple.__new__, TopicPartition)  # twice as fast as TopicPartition(topic, index)


def assignment(members: Sequence[str], rows: Rows) -> GroupAssignment:
    """Member id -> the partitions whose row entry is the member's number, sorted."""
    hands: list[list[TopicPartition]] = [[] for _ in range(len(members) + 1)]  # the last one is NOBODY's
    for topic in sorted(rows):
        row = rows[topic]
        for partition, member in zip(map(_partition, zip(repeat(topic), range(len(row)))), row, strict=True):
            hands[member].append(partition)
    return {member: tuple(hand) for member, hand in zip(members, hands, strict=False)}


def round_robin(needs: Sequence[tuple[int, int]]) -> Iterator[int]:
    """Member numbers in dealing order: one each per round to all whose need is not yet met.

    >>> list(round_robin([(7, 2), (8, 0), (9, 1)]))
    [7, 9, 7]
    """
    hungry = [(member, need) for member, need in needs if need > 0]
    dealt = 0
    while hungry:
        yield from (member for member, _ in hungry)
        dealt += 1
        if any(need == dealt for _, need in hungry):
            hungry = [(member, need) for member, need in hungry if need > dealt]


def fill(rows: Rows, members: Iterator[int]) -> None:
    """Give the free partitions, topic by topic in index order, to ``members`` in their order."""
    for topic in sorted(rows):
        row = rows[topic]
        index = -1
        for _ in range(row.count(NOBODY)):
            index = row.index(NOBODY, index + 1)
            row[index] = next(members)
