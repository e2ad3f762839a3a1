"""Mutants that take one partition for another, because of what they look it up by."""

from __future__ import annotations

from rebalance_verifier.model.values import Cluster, GroupSubscription

from tests.mutants.spoiled import Hands, Spoiled, claimants


class KeyedByText(Spoiled):
    """kip429/leader/5: topic and index joined are the key: ``t1`` and 11 are those of ``t11`` and 1."""

    def spoil(self, cluster: Cluster, group: GroupSubscription, hands: Hands) -> None:
        claimed = claimants(group)
        known = {f"{p.topic}{p.partition}": p for hand in hands.values() for p in sorted(hand)}
        known |= {f"{p.topic}{p.partition}": p for p in claimed}
        for member, hand in hands.items():
            hands[member] = tuple(p for p in hand if p in claimed or known[f"{p.topic}{p.partition}"] == p)


class KeyedByIndex(Spoiled):
    """kip429/leader/5: the index alone is the key: what somebody claims of one topic is taken of none."""

    def spoil(self, cluster: Cluster, group: GroupSubscription, hands: Hands) -> None:
        claimed = {p for subscription in group.values() for p in subscription.owned_partitions}
        known = {p.partition: member for member in sorted(group) for p in group[member].owned_partitions}
        for member, hand in hands.items():
            hands[member] = tuple(p for p in hand if p in claimed or known.get(p.partition, member) == member)
