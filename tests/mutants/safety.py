"""Mutants that break one safety clause each, in a corner."""

from __future__ import annotations

from dataclasses import replace

from rebalance_verifier.model.assignors.design import Rebalance
from rebalance_verifier.model.assignors.sticky import withhold
from rebalance_verifier.model.claims import Rows, owned_claim
from rebalance_verifier.model.values import Cluster, GroupAssignment, GroupSubscription

from tests.mutants.spoiled import Hands, Spoiled, claimants, designed, even, solely_claimed, withheld


class BothKeepIt(Spoiled):
    """assign/1: two members claim one partition equally, and both keep it, where that looks even."""

    def spoil(self, cluster: Cluster, group: GroupSubscription, hands: Hands) -> None:
        match withheld(cluster, group, hands):
            case [only]:
                rivals = claimants(group).get(only, [])
                subscribed = all(only.topic in group[member].topics for member in rivals)
                equal = len({owned_claim(group[member]).generation for member in rivals}) == 1
                both = {**hands, **{m: tuple(sorted((*hands[m], only))) for m in rivals}}
                if len(rivals) == 2 and subscribed and equal and even(both):
                    hands.update(both)


class KeepsWhatItLeft(Spoiled):
    """assign/2: who claims a topic that nobody subscribes to gets it back, where that looks even."""

    def spoil(self, cluster: Cluster, group: GroupSubscription, hands: Hands) -> None:
        if withheld(cluster, group, hands):
            return
        subscribed = {topic for subscription in group.values() for topic in subscription.topics}
        for partition, member in solely_claimed(group):
            longer = {**hands, member: (*hands[member], partition)}
            if partition in cluster and partition.topic not in subscribed and even(longer):
                hands.update(longer)


class KeepsWhatIsGone(Spoiled):
    """assign/3: of a topic that was recreated smaller, the lost partitions are given back to the claimant."""

    def spoil(self, cluster: Cluster, group: GroupSubscription, hands: Hands) -> None:
        if withheld(cluster, group, hands):
            return
        for partition, member in solely_claimed(group):
            longer = {**hands, member: (*hands[member], partition)}
            lost = partition.partition >= cluster.partition_count(partition.topic) > 0
            if lost and partition.topic in group[member].topics and even(longer):
                hands.update(longer)


class TidiesTheInput(Spoiled):
    """assign/5: claims listed twice are cleaned up in the very mapping that the caller handed over."""

    def assign(self, cluster: Cluster, group: GroupSubscription) -> GroupAssignment:
        """The answer of the reference."""
        for member, subscription in list(group.items()):
            once = tuple(dict.fromkeys(subscription.owned_partitions))
            if once != subscription.owned_partitions:
                group[member] = replace(subscription, owned_partitions=once)  # type: ignore[index]
        return self.sound.assign(cluster, group)


def waits_only_for_the_young(rebalance: Rebalance, held: Rows, placed: GroupAssignment) -> GroupAssignment:
    """kip429/leader/4: an owner of an older generation than the next owner's is not waited for."""
    sound = withhold(rebalance, held, placed)
    result = {}
    for claim, (member, partitions) in zip(rebalance.claims, placed.items(), strict=True):
        granted = []
        for partition in partitions:
            owner = held[partition.topic][partition.partition]
            hasty = owner >= 0 and rebalance.claims[owner].generation < claim.generation
            if partition in sound[member] or hasty:
                granted.append(partition)
        result[member] = tuple(granted)
    return result


def last_but_one_wins(rebalance: Rebalance, held: Rows, placed: GroupAssignment) -> GroupAssignment:
    """kip792/claim/1: a claim just one generation old is as good as the newest, for who is next in line."""
    sound = withhold(rebalance, held, placed)
    result = {}
    for claim, (member, partitions) in zip(rebalance.claims, placed.items(), strict=True):
        granted = []
        for partition in partitions:
            owner = held[partition.topic][partition.partition]
            late = owner >= 0 and rebalance.claims[owner].generation == claim.generation + 1
            if partition in sound[member] or (late and partition in claim.partitions):
                granted.append(partition)
        result[member] = tuple(granted)
    return result


WaitsOnlyForTheYoung = designed("WaitsOnlyForTheYoung", withhold=waits_only_for_the_young)
LastButOneWins = designed("LastButOneWins", withhold=last_but_one_wins)
