"""What the mutants are made of: a correct reference assignor, and one thing that is done to it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rebalance_verifier.model.assignor import Assignor
from rebalance_verifier.model.assignors import reference
from rebalance_verifier.model.assignors.design import DesignedAssignor
from rebalance_verifier.model.values import (
    NO_GENERATION,
    Cluster,
    GroupAssignment,
    GroupSubscription,
    Partitions,
    TopicPartition,
)

Hands = dict[str, Partitions]
"""Member id -> what it was given, to be changed."""


class Spoiled:
    """The reference assignor ``of``, whose answers go through ``spoil`` before they are given."""

    of = "cooperative-sticky"

    def __init__(self) -> None:
        self.sound: Assignor = reference(self.of)
        self.name = type(self).__name__
        self.protocols, self.promises = self.sound.protocols, self.sound.promises
        self.user_data = self.sound.user_data

    def assign(self, cluster: Cluster, group: GroupSubscription) -> GroupAssignment:
        """The answer of the reference, spoiled."""
        hands = dict(self.sound.assign(cluster, group))
        self.spoil(cluster, group, hands)
        return hands

    def spoil(self, cluster: Cluster, group: GroupSubscription, hands: Hands) -> None:
        """Do the one thing that is wrong, in place."""


def designed(name: str, **stages: object) -> DesignedAssignor:
    """Cooperative-sticky with some stages of its ``Design`` exchanged."""
    sound = reference("cooperative-sticky")
    assert isinstance(sound, DesignedAssignor)
    return replace(sound, name=name, design=replace(sound.design, **stages))  # type: ignore[arg-type]


def claimants(group: GroupSubscription) -> dict[TopicPartition, list[str]]:
    """Partition -> the members that claim it, sorted, whatever their generations."""
    found: dict[TopicPartition, list[str]] = {}
    for member in sorted(group):
        for partition in dict.fromkeys(group[member].owned_partitions):
            found.setdefault(partition, []).append(member)
    return found


def solely_claimed(group: GroupSubscription) -> Iterator[tuple[TopicPartition, str]]:
    """The partitions that exactly one member claims, sorted, each with that member."""
    for partition, members in sorted(claimants(group).items()):
        if len(members) == 1:
            yield partition, members[0]


def withheld(cluster: Cluster, group: GroupSubscription, hands: Hands) -> list[TopicPartition]:
    """Partitions of subscribed topics that are in no hand, sorted."""
    given = {partition for hand in hands.values() for partition in hand}
    topics = sorted({topic for subscription in group.values() for topic in subscription.topics})
    wanted = (TopicPartition(t, i) for t in topics for i in range(cluster.partition_count(t)))
    return [partition for partition in wanted if partition not in given]


def even(hands: Hands) -> bool:
    """Whether nobody has two more than another."""
    loads = [len(hand) for hand in hands.values()]
    return max(loads) - min(loads) <= 1


def alike(group: GroupSubscription) -> bool:
    """Whether all members subscribe to the same topics."""
    return len({frozenset(subscription.topics) for subscription in group.values()}) == 1


def nobody_claims(group: GroupSubscription) -> bool:
    """Whether the leader learns of no claim at all, as in a new group."""
    return not any(subscription.owned_partitions for subscription in group.values())


def newcomer(group: GroupSubscription) -> bool:
    """Whether a member that would say its generation has none: it was never in the group, or removed."""
    return any(s.version >= 3 and s.generation_id == NO_GENERATION for s in group.values())
