"""A small assignor of one's own, judged like any other: round robin that works cooperatively.

    rebalance check my_assignor:CooperativeRoundRobin        (from this directory)

It deals all partitions in a fixed order, whoever holds them now, so it is balanced for equal
subscriptions and moves more than a sticky assignor would. It promises no more than that, and is asked
no more. Nothing of the suite is imported: an assignor is any object with a method ``assign``.
"""


class CooperativeRoundRobin:
    """The partitions in order, the members in order, one each in turn."""

    name = "cooperative-roundrobin"
    version = "1.0"
    protocols = ("cooperative", "eager")
    promises = ("balanced-equal",)

    def assign(self, cluster, group):
        """``cluster.topics``: topic -> one entry per partition. ``group``: member id -> its subscription.

        Returns member id -> list of (topic, partition).
        """
        assignment = {member: [] for member in group}
        for partition, member in self.deal(cluster, group):
            # KIP-429: what changes owner is given to nobody until the old owner has revoked it.
            if self.holders(partition, group) <= {member}:
                assignment[member].append(partition)
        return assignment

    def deal(self, cluster, group):
        """Every partition that somebody subscribes to, with the member that shall have it."""
        members, turn = sorted(group), 0
        for topic in sorted(cluster.topics):
            if not any(topic in subscription.topics for subscription in group.values()):
                continue
            for number in range(len(cluster.topics[topic])):
                while topic not in group[members[turn % len(members)]].topics:
                    turn += 1
                yield (topic, number), members[turn % len(members)]
                turn += 1

    def holders(self, partition, group):
        """The members that may hold it now: those with the newest claim (KIP-792).

        Two claims of one generation cannot both be true, but nobody can tell which one is.
        """
        claims = {m: s.generation_id for m, s in group.items() if partition in s.owned_partitions}
        return {member for member, generation in claims.items() if generation == max(claims.values())}
