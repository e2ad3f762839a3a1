"""The assignors of the coordinator, ``uniform`` and ``range``, as pure functions of sets of partitions.

They see members in the order in which the coordinator iterates them, what each subscribes to, and the target
before this one. Read in kafka-group-coordinator 4.3.1; what ``uniform`` does for members of unequal
subscriptions is best effort there, and here in the same spirit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from rebalance_verifier.model.group.parts import Parts, each


class Subscriber(NamedTuple):
    """One member as an assignor sees it: what it subscribes to, of what exists, and its target so far."""

    subscribed: Parts
    before: Parts


Order = Sequence[int]
"""The numbers of partitions in the order in which they are iterated."""

ServerAssignor = Callable[[Sequence[Subscriber], Order, Collection[str]], tuple[Parts, ...]]
"""Members, partitions and switches to each member's part."""


def uniform(members: Sequence[Subscriber], order: Order, switches: Collection[str] = ()) -> tuple[Parts, ...]:
    """``UniformAssignor``: even, with as few changes as that allows.

    >>> uniform([Subscriber(Parts(0b11), Parts(0b11)), Subscriber(Parts(0b11), Parts(0))], [0, 1])
    (1, 2)
    """
    if len({member.subscribed for member in members}) > 1:
        return _unequal(members, order)
    every = members[0].subscribed if members else Parts(0)
    quota, extra = divmod(every.bit_count(), max(len(members), 1))
    kept: list[int] = []
    for member in members:
        mine = [p for p in order if member.before & every & 1 << p]
        most = quota
        first_come = "extra_by_iteration_order" in switches
        if extra and (first_come or len(mine) > quota):
            most, extra = quota + 1, extra - 1
        kept.append(_mask(mine[:most]))
    free = [p for p in order if every & ~_union(kept) & 1 << p]
    for at, mask in enumerate(kept):
        while free and mask.bit_count() < quota:
            mask |= 1 << free.pop(0)
        kept[at] = mask
    for at, mask in enumerate(kept):
        if free and mask.bit_count() == quota:
            kept[at] = mask | 1 << free.pop(0)
    return tuple(Parts(mask) for mask in kept)


def _unequal(members: Sequence[Subscriber], order: Order) -> tuple[Parts, ...]:
    """Return what is free goes to the least loaded subscriber, then single moves even it out."""
    kept = [member.before & member.subscribed for member in members]
    subscribers = {p: [i for i, m in enumerate(members) if m.subscribed >> p & 1] for p in order}
    for p in sorted(order, key=lambda p: len(subscribers[p])):
        if subscribers[p] and not any(mask >> p & 1 for mask in kept):
            least = min(subscribers[p], key=lambda i: kept[i].bit_count())
            kept[least] |= 1 << p
    moved = True
    while moved:
        moved = False
        for p in order:
            owner = next((i for i in subscribers[p] if kept[i] >> p & 1), None)
            if owner is None:
                continue
            least = min(subscribers[p], key=lambda i: kept[i].bit_count())
            if kept[owner].bit_count() > kept[least].bit_count() + 1:
                kept[owner] &= ~(1 << p)
                kept[least] |= 1 << p
                moved = True
    return tuple(Parts(mask) for mask in kept)


def ranges(members: Sequence[Subscriber], order: Order, switches: Collection[str] = ()) -> tuple[Parts, ...]:
    """``RangeAssignor`` for one topic: stretches in the order of the members, whatever was before.

    >>> ranges([Subscriber(Parts(0b111), Parts(0))] * 2, [0, 1, 2])
    (3, 4)
    """
    kept = [0] * len(members)
    takers = [i for i, member in enumerate(members) if member.subscribed]
    parts = [p for p in order if any(member.subscribed >> p & 1 for member in members)]
    quota, extra = divmod(len(parts), max(len(takers), 1))
    at = 0
    for number, i in enumerate(takers):
        size = quota + (number < extra)
        kept[i] = _mask(parts[at : at + size])
        at += size
    return tuple(Parts(mask) for mask in kept)


def _mask(parts: Sequence[int]) -> int:
    return sum(1 << p for p in parts)


def _union(masks: Sequence[int]) -> int:
    total = 0
    for mask in masks:
        total |= mask
    return total


SERVER_ASSIGNORS: dict[str, ServerAssignor] = {"uniform": uniform, "range": ranges}
"""The built-in ones by name (``group.consumer.assignors``)."""


def numbers(parts: int) -> Order:
    """Return partitions in the order of their numbers."""
    return each(parts)
