"""Four assignors that are right and promise less than others: not all at once, not all, not by number.

Each says what it does otherwise in ``promises``, and is asked what follows from that:
``rebalance check odd_assignors:Capacity``.
"""

WEIGHTS = {"t0": 5, "t1": 2}
"""Of the partitions of these topics; others weigh 1."""


class Capacity:
    """Nobody gets more than it can carry; what is left waits for another member, if need be for ever."""

    most = 3
    promises, limits = ("partial",), {"partial": most}

    def assign(self, cluster, group):
        hands, free, _ = kept(cluster, group, self.most)
        for partition in free:
            if room := [m for m in takers(group, partition) if len(hands[m]) < self.most]:
                hands[least(hands, room)].append(partition)
        return hands


class Gradual:
    """Two partitions move in one round, the others in the next ones: a cache is warmed up by each."""

    moves = 2
    protocols, promises, limits = ("cooperative",), ("balanced", "gradual"), {"gradual": moves}

    def assign(self, cluster, group):
        hands, free, contested = kept(cluster, group)
        for partition in free:
            hands[least(hands, takers(group, partition))].append(partition)
        planned = {member: list(hand) for member, hand in hands.items()}
        # What rivals claim comes first: they all give it up, and the next round knows more.
        left = 0 if contested else self.moves
        while move := self.improvement(group, planned, free if left == 0 else existing(cluster)):
            giver, taker, partition = move
            planned[giver].remove(partition)
            planned[taker].append(partition)
            hands[giver].remove(partition)
            if partition in free:
                hands[taker].append(partition)
            else:
                left -= 1
        return hands

    def improvement(self, group, planned, movable):
        """The partition that evens out most: a member with at least two fewer could have it."""
        found, most = None, 1
        for giver in sorted(planned):
            for partition in sorted(set(planned[giver]) & set(movable), reverse=True):
                taker = least(planned, takers(group, partition))
                if len(planned[giver]) - len(planned[taker]) > most:
                    found, most = (giver, taker, partition), len(planned[giver]) - len(planned[taker])
        return found


class Weighted:
    """A partition weighs as much as its topic: ``t0`` is read by everybody who pays."""

    promises = ("weighted",)

    def assign(self, cluster, group):
        wanted = {member: [] for member in sorted(group)}
        loads = dict.fromkeys(wanted, 0)
        partitions = sorted(existing(cluster), key=lambda p: (-WEIGHTS.get(p[0], 1), p))
        for partition in partitions:
            if able := takers(group, partition):
                member = min(able, key=lambda m: (loads[m], m))
                wanted[member].append(partition)
                loads[member] += WEIGHTS.get(partition[0], 1)
        self.share(group, wanted)
        hands, free, _ = kept(cluster, group)
        return {
            member: [p for p in mine if p in free or p in hands[member]] for member, mine in wanted.items()
        }

    def share(self, group, wanted):
        """Nobody is left with nothing who could have one of another's several."""
        for idle in [member for member in wanted if not wanted[member]]:
            for mine in wanted.values():
                spare = [p for p in mine if idle in takers(group, p)]
                if len(mine) > 1 and spare and not wanted[idle]:
                    mine.remove(spare[-1])
                    wanted[idle].append(spare[-1])


class StopTheWorld:
    """Where anything has to move, everybody gives back everything, and the next round deals it out anew."""

    promises = ("balanced-equal", "stop-the-world")

    def assign(self, cluster, group):
        wanted = {member: [] for member in sorted(group)}
        for partition in existing(cluster):
            if able := takers(group, partition):
                wanted[least(wanted, able)].append(partition)
        hands, _, contested = kept(cluster, group)
        moving = [p for member, mine in hands.items() for p in mine if p not in wanted[member]]
        return self.before(hands) if moving or contested else wanted

    def before(self, hands):
        """What is assigned in the round before: nothing. All revoke, so all join again."""
        return dict.fromkeys(hands, ())


def existing(cluster):
    """All partitions."""
    return sorted((topic, index) for topic, racks in cluster.topics.items() for index in range(len(racks)))


def takers(group, partition):
    """The members that subscribe to its topic."""
    return [member for member in sorted(group) if partition[0] in group[member].topics]


def least(hands, members):
    """The one of ``members`` with the fewest partitions."""
    return min(members, key=lambda m: (len(hands[m]), m))


def kept(cluster, group, most=float("inf")):
    """What stays where it is, what nobody holds, and what has to be given up by all who claim it: the newest
    claim to a partition counts (KIP-792), and two that are equally new do not (KIP-429)."""
    claims = {}
    for member, subscription in group.items():
        for topic, index in set(subscription.owned_partitions):
            claims.setdefault((topic, index), []).append((subscription.generation_id, member))
    hands, free, contested = {member: [] for member in sorted(group)}, [], []
    for partition in existing(cluster):
        rivals = sorted(claims.get(partition, ()))
        newest = [member for generation, member in rivals if generation == rivals[-1][0]]
        able = takers(group, partition)
        if not rivals:
            free += [partition] if able else []
        elif len(newest) == 1 and newest[0] in able and len(hands[newest[0]]) < most:
            hands[newest[0]].append(partition)
        else:
            contested += [partition] if able else []
    return hands, free, contested
