"""Mutants that break one liveness clause each, in a corner."""

from __future__ import annotations

import time

from rebalance_verifier.model.assignor import Promise
from rebalance_verifier.model.values import Cluster, GroupAssignment, GroupSubscription

from tests.mutants.spoiled import Hands, Spoiled, alike, claimants, solely_claimed, withheld


class MissesMetadata(Spoiled):
    """assign/4: looks up the size of every claimed topic, also of those without metadata."""

    def spoil(self, cluster: Cluster, group: GroupSubscription, hands: Hands) -> None:
        for subscription in group.values():
            for topic, _ in subscription.owned_partitions:
                if topic in subscription.topics:
                    len(cluster.topics[topic])


class NeverComesBack(Spoiled):
    """assign/4: searches for a member to start with among three or more, none of which can take anything."""

    def assign(self, cluster: Cluster, group: GroupSubscription) -> GroupAssignment:
        """The answer of the reference, if the search ends."""
        known = {topic for topic in cluster.topics if cluster.partition_count(topic)}
        while len(group) > 2 and known and all(known.isdisjoint(s.topics) for s in group.values()):
            time.sleep(0.01)
        return self.sound.assign(cluster, group)


class WaitsForNobody(Spoiled):
    """kip429/leader/5: a member that still claims a deleted topic waits for a partition that is free."""

    def spoil(self, cluster: Cluster, group: GroupSubscription, hands: Hands) -> None:
        claimed = claimants(group)
        for partition, member in solely_claimed(group):
            fresh = [p for p in hands[member] if p not in claimed]
            if partition.topic not in cluster.topics and fresh:
                hands[member] = tuple(p for p in hands[member] if p != fresh[0])
                return


class RevokesOneByOne(Spoiled):
    """kip429/converge/1: of a deleted topic, a member gives up one partition in each rebalance."""

    def spoil(self, cluster: Cluster, group: GroupSubscription, hands: Hands) -> None:
        given_up = set()
        for partition, member in solely_claimed(group):
            if partition.topic in group[member].topics and partition.topic not in cluster.topics:
                if member in given_up:
                    hands[member] = (*hands[member], partition)
                given_up.add(member)


class NeverSatisfied(Spoiled):
    """kip429/converge/1: three equal members with equal loads: there is always one more to take away."""

    def spoil(self, cluster: Cluster, group: GroupSubscription, hands: Hands) -> None:
        loads = {len(hand) for hand in hands.values()}
        claimed = claimants(group)
        if len(group) != 3 or not alike(group) or len(loads) != 1 or withheld(cluster, group, hands):
            return
        for member in sorted(group):
            kept = [p for p in hands[member] if claimed.get(p) == [member]]
            if kept:
                hands[member] = tuple(p for p in hands[member] if p != kept[0])
                return


class TurnsTheTable(Spoiled):
    """kip429/converge/2: once all is in hand, the first two members have to swap one partition each."""

    def __init__(self) -> None:
        super().__init__()
        self.promises = frozenset({Promise.BALANCED})  # it is not called sticky

    def spoil(self, cluster: Cluster, group: GroupSubscription, hands: Hands) -> None:
        settled = all(set(hands[m]) == set(s.owned_partitions) for m, s in group.items())
        first, second, *_ = [*(m for m in sorted(hands) if hands[m]), "", ""]
        if settled and second and set(group[first].topics) == set(group[second].topics):
            hands[first], hands[second] = hands[first][1:], hands[second][1:]


class ForgetsTheIdle(Spoiled):
    """assign/8: a member that loses everything it had is not mentioned any more."""

    def spoil(self, cluster: Cluster, group: GroupSubscription, hands: Hands) -> None:
        for member in [m for m, hand in hands.items() if not hand and group[m].owned_partitions]:
            del hands[member]
