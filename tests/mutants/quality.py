"""Mutants of the sticky assignors that break one quality clause each, in a corner."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from rebalance_verifier.model.assignor import Promise
from rebalance_verifier.model.assignors.deal import assignment
from rebalance_verifier.model.assignors.design import Rebalance
from rebalance_verifier.model.assignors.sticky import allocate, withhold
from rebalance_verifier.model.claims import Rows
from rebalance_verifier.model.values import Cluster, GroupAssignment, GroupSubscription

from tests.mutants.spoiled import (
    Hands,
    Spoiled,
    alike,
    claimants,
    designed,
    newcomer,
    nobody_claims,
    withheld,
)


class LowestHashFirst(Spoiled):
    """assign/6: in a new group the one partition more goes to a member that the hash seed chooses."""

    def spoil(self, cluster: Cluster, group: GroupSubscription, hands: Hands) -> None:
        lucky = min(sorted(group), key=hash)
        rich = max(sorted(group), key=lambda member: len(hands[member]))
        if nobody_claims(group) and alike(group) and _twins(group, lucky, rich):
            hands[lucky], hands[rich] = hands[rich], hands[lucky]


class FirstComeFirstServed(Spoiled):
    """assign/7: in a new group the one partition more goes to whoever is listed first."""

    def spoil(self, cluster: Cluster, group: GroupSubscription, hands: Hands) -> None:
        first = next(iter(group))
        rich = max(sorted(group), key=lambda member: len(hands[member]))
        if nobody_claims(group) and alike(group) and _twins(group, first, rich):
            hands[first], hands[rich] = hands[rich], hands[first]


class HoldsBackOneMore(Spoiled):
    """kip429/leader/3: whoever gives something up while somebody is new has to revoke one more, in vain."""

    def spoil(self, cluster: Cluster, group: GroupSubscription, hands: Hands) -> None:
        claimed = claimants(group)
        for partition in withheld(cluster, group, hands) if newcomer(group) else ():
            for owner in claimed.get(partition, ()):
                kept = [p for p in hands[owner] if claimed.get(p) == [owner]]
                if kept:
                    hands[owner] = tuple(p for p in hands[owner] if p != kept[0])
                    return


class SupersededClaimsCount(Spoiled):
    """kip792/claim/2: an owner loses a partition to somebody's older claim when there are three to it."""

    def spoil(self, cluster: Cluster, group: GroupSubscription, hands: Hands) -> None:
        for partition, members in claimants(group).items():
            for member in members:
                if len(members) >= 3 and partition in hands[member]:
                    hands[member] = tuple(p for p in hands[member] if p != partition)


def one_after_the_other(rebalance: Rebalance, held: Rows, placed: GroupAssignment) -> GroupAssignment:
    """kip429/converge/3: with unequal subscriptions, of two partitions to move one is moved later."""
    result = dict(withhold(rebalance, held, placed))
    moving = [(p, m) for m, hand in placed.items() for p in hand if p not in result[m]]
    if len(moving) == 2 and len(set(rebalance.subscriptions)) > 1:
        partition, _ = max(moving)
        owner = held[partition.topic][partition.partition]
        if owner >= 0 and partition.topic in rebalance.subscriptions[owner]:
            result[rebalance.members[owner]] += (partition,)
    return result


OneAfterTheOther = designed("OneAfterTheOther", withhold=one_after_the_other)


def close_enough(rebalance: Rebalance, held: Rows) -> GroupAssignment:
    """kip54/balance/1: when every partition has an owner, two more than another is not worth a move."""
    owners = [m for topic in held for m in held[topic]]
    loads = [owners.count(m) for m in range(len(rebalance.members))]
    kept = all(m >= 0 and topic in rebalance.subscriptions[m] for topic in held for m in set(held[topic]))
    if kept and alike(rebalance.group) and max(loads) - min(loads) == 2:
        return assignment(rebalance.members, held)
    return allocate(rebalance, held)


CloseEnough = designed("CloseEnough", allocate=close_enough)


class SwapsForNothing(Spoiled):
    """kip54/sticky/1: when somebody is new, two owners of the same topic swap a partition each."""

    of = "sticky"

    def spoil(self, cluster: Cluster, group: GroupSubscription, hands: Hands) -> None:
        if not newcomer(group) or not alike(group):
            return
        # Only those who will tell that they have it now: the next rebalance shall not undo it.
        settled = [member for member in sorted(group) if hands[member] and group[member].user_data]
        for one, other in pairwise(settled):
            if _twins(group, one, other) and hands[one][0].topic == hands[other][0].topic:
                hands[one], hands[other] = (
                    (hands[other][0], *hands[one][1:]),
                    (hands[one][0], *hands[other][1:]),
                )
                return


class KeepsTopicByTopic(Spoiled):
    """sticky/spread/1: who has to give up some of two equal topics keeps the first, as before KAFKA-16277."""

    def __init__(self) -> None:
        super().__init__()
        self.promises |= {Promise.SPREAD}

    def spoil(self, cluster: Cluster, group: GroupSubscription, hands: Hands) -> None:
        claimed = claimants(group)
        for member in sorted(group) if alike(group) and not any(s.rack_id for s in group.values()) else ():
            topics = group[member].topics
            own = sorted(
                p for p, m in claimed.items() if m == [member] and p in cluster and p.topic in topics
            )
            others = [p for p in hands[member] if p not in own]
            hands[member] = (*own[: len(hands[member]) - len(others)], *others)


class ForgetsRacks(Spoiled):
    """kip881/rack/1: as soon as one member does not say its rack, nobody's counts."""

    def assign(self, cluster: Cluster, group: GroupSubscription) -> GroupAssignment:
        """The answer of the reference, to a group without racks if one is missing."""
        if any(subscription.rack_id is None for subscription in group.values()):
            group = {member: replace(subscription, rack_id=None) for member, subscription in group.items()}
        return self.sound.assign(cluster, group)


def _twins(group: GroupSubscription, one: str, other: str) -> bool:
    """Whether the two could swap all they have, and nobody would be better or worse off."""
    return set(group[one].topics) == set(group[other].topics) and group[one].rack_id == group[other].rack_id
