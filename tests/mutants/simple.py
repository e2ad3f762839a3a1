"""Mutants of range and roundrobin that break one quality clause each, in a corner."""

from __future__ import annotations

from itertools import groupby

from rebalance_verifier.model.values import Cluster, GroupAssignment, GroupSubscription, TopicPartition

from tests.mutants.spoiled import Hands, Spoiled


class WideRange(Spoiled):
    """range/balance/1: of two partitions left over in a topic, the first range gets both."""

    of = "range"

    def spoil(self, cluster: Cluster, group: GroupSubscription, hands: Hands) -> None:
        for topic, sizes in _ranges(hands).items():
            takers = [member for member in sorted(group) if topic in group[member].topics]
            most = max(len(partitions) for partitions in sizes.values())
            rich = [member for member in takers if len(sizes.get(member, ())) == most]
            if len(rich) == 2 < len(takers):
                first, second = rich
                moved = sizes[second][-1]
                hands[first] = (*hands[first], moved)
                hands[second] = tuple(p for p in hands[second] if p != moved)


class ThirdTopicApart(Spoiled):
    """range/copartition/1: from the third topic of a member on, the first two owners swap their ranges."""

    of = "range"

    def spoil(self, cluster: Cluster, group: GroupSubscription, hands: Hands) -> None:
        for topic, ranges in _ranges(hands).items():
            takers = [member for member in sorted(group) if topic in group[member].topics]
            known = sorted(t for t in cluster.topics if t in group[takers[0]].topics)
            if known.index(topic) < 2 or len(takers) < 2:
                continue
            one, other = takers[:2]
            mine, theirs = ranges.get(one, ()), ranges.get(other, ())
            hands[one] = (*(p for p in hands[one] if p not in mine), *theirs)
            hands[other] = (*(p for p in hands[other] if p not in theirs), *mine)


class StartsAnew(Spoiled):
    """roundrobin/balance/1: behind a topic without partitions the dealing starts at the first seat again."""

    of = "roundrobin"

    def assign(self, cluster: Cluster, group: GroupSubscription) -> GroupAssignment:
        """The answers of the reference to each run of topics between two empty ones, put together."""
        hands: Hands = dict.fromkeys(group, ())
        subscribed = sorted({topic for s in group.values() for topic in s.topics} & set(cluster.topics))
        for full, run in groupby(subscribed, key=lambda topic: cluster.partition_count(topic) > 0):
            part = Cluster({topic: cluster.topics[topic] for topic in run if full})
            for member, hand in self.sound.assign(part, group).items():
                hands[member] += hand
        return hands


def _ranges(hands: Hands) -> dict[str, dict[str, tuple[TopicPartition, ...]]]:
    """Topic -> member -> what it has of it."""
    found: dict[str, dict[str, tuple[TopicPartition, ...]]] = {}
    for member in sorted(hands):
        for topic, partitions in groupby(sorted(hands[member]), key=lambda p: p.topic):
            found.setdefault(topic, {})[member] = tuple(partitions)
    return found
