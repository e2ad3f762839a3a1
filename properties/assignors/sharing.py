"""Clauses of share groups (KIP-932): several members may have one partition, and everybody works."""

from __future__ import annotations

from collections import Counter

from rebalance_verifier.properties.assignors.calls import AssignorCall
from rebalance_verifier.properties.assignors.clause import Breach, History
from rebalance_verifier.properties.assignors.placement import complete, well_placed
from rebalance_verifier.properties.assignors.settling import settled_is_final
from rebalance_verifier.properties.assignors.wording import counted, listed, loads_of, pairs


def all_shared(call: AssignorCall) -> Breach | None:
    """Return a partition of a subscribed topic that nobody has."""
    return complete(call)


def moves_nothing(history: History) -> Breach | None:
    """Return what moves although nothing has changed."""
    return settled_is_final(history)


def once_each(call: AssignorCall) -> Breach | None:
    """Return a partition that a member is given twice."""
    for member, partitions in sorted(call.assignment.items()):
        for partition, times in Counter(partitions).items():
            if times > 1:
                return Breach(
                    summary=f"{partition} is assigned to {member} {times} times",
                    expected=f"{partition} once",
                    actual=f"{member}: {listed(sorted(partitions))}",
                    partitions=(partition,),
                )
    return None


def all_busy(call: AssignorCall) -> Breach | None:
    """Return a member that could have something, and has nothing."""
    for member, subscription in call.group.items():
        topics = [topic for topic in subscription.topics if call.cluster.partition_count(topic)]
        if topics and not call.loads[member]:
            return Breach(
                summary=f"{member} subscribes to {listed(topics)} and is assigned nothing",
                because=(f"numbers of partitions are {loads_of(call)}",),
                expected=f"a partition of {listed(topics)} with {member}",
                actual=f"{member}: nothing",
            )
    return None


def _alike(call: AssignorCall) -> bool:
    """Check whether all subscribe to the same, also of what does not exist: a broker says HETEROGENEOUS where
    they differ in that alone, and the assignor knows no more."""
    return len({frozenset(subscription.topics) for subscription in call.group.values()}) == 1


def evenly_shared(call: AssignorCall) -> Breach | None:
    """Return two partitions of which one has too many members, the other too few."""
    if not _alike(call) or not well_placed(call):
        return None
    subscribed = [p for p in call.cluster.partitions() if p.topic in call.subscribers]
    shared = {partition: len(call.granted.get(partition, ())) for partition in subscribed}
    if not shared or max(shared.values()) - min(shared.values()) <= 1:
        return None
    most, least = max(sorted(shared), key=shared.__getitem__), min(sorted(shared), key=shared.__getitem__)
    return Breach(
        summary=f"{most} has {counted(shared[most], 'member')} and {least} {shared[least]}",
        because=(f"all members subscribe to {listed(sorted(call.subscribers))}",),
        expected="numbers of members that differ by at most one",
        actual=pairs({str(p): number for p, number in shared.items()}),
        partitions=(most, least),
        gap=shared[most] - shared[least] - 1,
    )


def evenly_loaded(call: AssignorCall) -> Breach | None:
    """Return two members of which one has too many partitions, the other too few."""
    if not _alike(call) or not well_placed(call) or not call.loads:
        return None
    most, least = max(call.loads.values()), min(call.loads.values())
    if most - least <= 1:
        return None
    return Breach(
        summary=f"one member has {counted(most, 'partition')} and another {least}",
        because=(f"all members subscribe to {listed(sorted(call.subscribers))}",),
        expected="numbers of partitions that differ by at most one",
        actual=loads_of(call),
        gap=most - least - 1,
    )
