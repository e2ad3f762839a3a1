"""The best that any assignor could do, by network flow.

One minimum-cost flow answers three questions in the order that the contract ranks them: the best
possible balance (no load can fall without a higher or equal one rising: the optimal semi-matching
of Harvey, Ladner, Lovasz and Tamir), for it the most placements in a replica's rack (KIP-881), and
for these the most valid claims kept (KIP-54). It shares nothing with the assignors it measures. Last there
is what makes a call worth asking: the situations that it can be in.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heapreplace

import networkx as nx
from rebalance_verifier.model.values import SERVED, Racks, RebalanceProtocol, TopicPartition
from rebalance_verifier.properties.assignors.calls import AssignorCall, once


@dataclass(frozen=True, slots=True)
class Optimum:
    """The best load vector (descending), rack matches under it, and claims kept under both."""

    loads: tuple[int, ...]
    matched: int
    kept: int


@once
def rack_matters(call: AssignorCall) -> bool:
    """Check whether racks can make a difference: a member has one, and some replica's rack is known."""
    racks = {subscription.rack_id for subscription in call.group.values()} - {None}
    return bool(racks) and any(
        not racks.isdisjoint(here) for topic in call.subscribers for here in call.cluster.topics[topic]
    )


def matched(call: AssignorCall) -> int:
    """Placements of existing partitions whose member sits in the rack of a replica."""
    return sum(
        1
        for partition, members in call.granted.items()
        for member in members
        if partition in call.cluster
        and member in call.group
        and call.group[member].rack_id in call.cluster.topics[partition.topic][partition.partition]
    )


def matchable(call: AssignorCall) -> int:
    """Return partitions with a subscriber in the rack of a replica: no placement matches more."""
    total = 0
    for topic, members in call.subscribers.items():
        racks = {call.group[member].rack_id for member in members}
        total += sum(not racks.isdisjoint(here) for here in call.cluster.topics[topic])
    return total


MAX_MEMBERS = 32
"""Up to which a search for a better placement is quicker than a flow."""


def best_matched(call: AssignorCall) -> bool:
    """Check whether a sound ``call``, with nothing withheld, surely has the best balance and for it the most
    rack matches; false where it has not, or the group is large.

    A flow is of least cost exactly when its residual graph has no negative cycle. Seen from the members:
    moving a partition from one to another costs the match that is lost, and ending a chain of moves at
    one member and not at another costs the difference of their loads, which outweighs all matches.
    """
    ids = list(call.group)
    if len(ids) > MAX_MEMBERS:
        return False
    loads, racks = [call.loads[m] for m in ids], [call.group[m].rack_id for m in ids]
    heaviest = sum(loads) + 1
    cost = [[heaviest * (fuller + 1 - emptier) for emptier in loads] for fuller in loads]
    takers = {t: [n for n, m in enumerate(ids) if m in members] for t, members in call.subscribers.items()}
    replicas = call.cluster.topics
    for giver, member in enumerate(ids):
        given = call.existing.intersection(call.assignment.get(member, ()))
        for topic, here in {(topic, replicas[topic][index]) for topic, index in given}:
            lost = racks[giver] in here
            for taker in takers[topic]:
                cost[giver][taker] = min(cost[giver][taker], lost - (racks[taker] in here))
    least = [0] * len(ids)
    for _ in ids:  # Bellman and Ford: one round for each edge of a path
        before = list(least)
        for start, costs in zip(before, cost, strict=True):
            least = [min(known, start + step) for known, step in zip(least, costs, strict=True)]
        if least == before:
            return True
    return False


def optimum(call: AssignorCall) -> Optimum:
    """Return the best placement of everything that ``call`` could have placed."""
    if call.equal_subscriptions and not rack_matters(call):
        return _even(call)
    return _by_exchange(call) if len(call.group) <= MAX_MEMBERS else _by_flow(call)


def _even(call: AssignorCall) -> Optimum:
    """Return equal subscriptions, no racks: everybody gets the average, rounded down or up. Those who claim
    more than that keep as much, as far as there are parts rounded up."""
    total = sum(call.cluster.partition_count(topic) for topic in call.subscribers)
    floor, larger = divmod(total, max(1, len(call.group)))
    claims = Counter(call.valid.values()).values()
    kept = sum(min(claimed, floor) for claimed in claims)
    kept += min(larger, sum(claimed > floor for claimed in claims))
    return Optimum((floor + 1,) * larger + (floor,) * (len(call.group) - larger), 0, kept)


def _by_exchange(call: AssignorCall) -> Optimum:
    """Return what `_by_flow` comes to, quicker where members are few: it begins with what was placed, and
    moves partitions round a circle of members as long as that costs less.

    The circles are those of the residual graph of the flow, seen from its members, with the costs there. The
    sink is one more node: it takes a unit of load from where a chain of moves begins to where it ends.
    """
    ids = list(call.group)
    sink = len(ids)
    placed, held = _by_unit(call, ids)
    total, keep = sum(map(sum, placed.values())), 1
    match = total + 1 if rack_matters(call) else 0
    load = (total + 1) * (match + keep)
    racks = [call.group[member].rack_id for member in ids]
    takers = {t: [n for n, m in enumerate(ids) if m in members] for t, members in call.subscribers.items()}
    missed = {unit: [match * (rack not in unit[1]) for rack in racks] for unit in placed}
    loads = [sum(given) for given in zip(*placed.values(), strict=True)] or [0] * sink
    while True:
        cost = [[math.inf] * (sink + 1) for _ in range(sink + 1)]
        moved: list[list[Unit]] = [[("", ())] * sink for _ in ids]
        for unit, given in placed.items():
            miss, own, takes = missed[unit], held[unit], takers[unit[0]]
            more = [(taker, miss[taker] + keep * (given[taker] >= own[taker])) for taker in takes]
            for giver in takes:
                if given[giver]:
                    less = miss[giver] + keep * (given[giver] > own[giver])
                    row, units = cost[giver], moved[giver]
                    for taker, price in more:
                        if price - less < row[taker] and taker != giver:
                            row[taker], units[taker] = price - less, unit
        for member, count in enumerate(loads):
            cost[member][sink] = load * (count + 1)
            if count:
                cost[sink][member] = -load * count
        circle = _negative_circle(cost)
        for giver, taker in circle:
            if taker == sink:
                loads[giver] += 1
            elif giver == sink:
                loads[taker] -= 1
            else:
                placed[moved[giver][taker]][giver] -= 1
                placed[moved[giver][taker]][taker] += 1
        if not circle:
            break
    hits = sum(
        n for (_, here), given in placed.items() for r, n in zip(racks, given, strict=True) if r in here
    )
    kept = sum(sum(map(min, given, held[unit])) for unit, given in placed.items())
    return Optimum(tuple(sorted(loads, reverse=True)), hits, kept)


Unit = tuple[str, Racks]
"""Partitions of one topic with equal racks."""


def _by_unit(call: AssignorCall, ids: Sequence[str]) -> tuple[dict[Unit, list[int]], dict[Unit, list[int]]]:
    """Return how many of each unit each member has: as ``call`` places them, what it does not with who has
    least; and how many it validly claims."""
    numbers = {member: number for number, member in enumerate(ids)}
    placed: dict[Unit, list[int]] = {}
    held: dict[Unit, list[int]] = {}
    loads = dict.fromkeys(ids, 0)
    for topic, members in call.subscribers.items():
        for index, here in enumerate(call.cluster.topics[topic]):
            partition, unit = TopicPartition(topic, index), (topic, here)
            given = [m for m in call.granted.get(partition, ()) if m in members]
            member = given[0] if given else min(members, key=loads.__getitem__)
            loads[member] += 1
            for counts, owner in ((placed, member), (held, call.valid.get(partition))):
                count = counts.setdefault(unit, [0] * len(ids))
                if owner is not None:
                    count[numbers[owner]] += 1
    return placed, held


def _negative_circle(cost: Sequence[Sequence[float]]) -> list[tuple[int, int]]:
    """Return the edges of a circle whose costs are negative together; none if there is no such circle."""
    count = len(cost)
    least, before = [0.0] * count, [-1] * count
    for _ in range(count + 1):  # Bellman and Ford
        changed = False
        for start, row in enumerate(cost):
            base = least[start]
            for end, step in enumerate(row):
                if base + step < least[end]:
                    least[end], before[end], changed = base + step, start, True
        if not changed:
            return []
        if circle := _circle(before):
            return circle
    raise AssertionError("paths that get cheaper for ever go round a circle")


def _circle(before: Sequence[int]) -> list[tuple[int, int]]:
    """Return the edges of a circle that leads back, each node having one before it at most."""
    seen: dict[int, int] = {}
    for first in range(len(before)):
        node = first
        while node >= 0 and node not in seen:
            seen[node] = first
            node = before[node]
        if node >= 0 and seen[node] == first:
            edges = [(before[node], node)]
            while edges[-1][0] != node:
                edges.append((before[edges[-1][0]], edges[-1][0]))
            return edges
    return []


def _by_flow(call: AssignorCall) -> Optimum:
    """Return the general case, as a flow of least cost.

    Partitions of one topic with equal racks are one node; a member's n-th partition costs n, which
    makes the sum of costs least exactly when the load vector is best.
    """
    units: Counter[tuple[str, Racks]] = Counter(
        (topic, racks) for topic in call.subscribers for racks in call.cluster.topics[topic]
    )
    owned = Counter((m, p.topic, call.cluster.topics[p.topic][p.partition]) for p, m in call.valid.items())
    total = sum(units.values())
    racks_count = rack_matters(call)
    keep = 1
    match = total + 1 if racks_count else 0  # one rack match outweighs every claim
    load = (total + 1) * (match + keep)  # one unit of load outweighs every match
    graph: nx.MultiDiGraph[object] = nx.MultiDiGraph()
    graph.add_node("source", demand=-total)
    graph.add_node("sink", demand=total)
    reach: Counter[str] = Counter()
    for (topic, racks), count in units.items():
        graph.add_edge("source", ("unit", topic, racks), capacity=count, weight=0)
        for member in call.subscribers[topic]:
            miss = match * (racks_count and call.group[member].rack_id not in racks)
            held = owned[member, topic, racks]
            if held:
                graph.add_edge(("unit", topic, racks), ("member", member), capacity=held, weight=miss)
            if held < count:
                graph.add_edge(
                    ("unit", topic, racks), ("member", member), capacity=count - held, weight=miss + keep
                )
            reach[member] += count
    most = _some_greatest_load(call, units)
    for member, count in reach.items():
        for rank in range(1, min(count, most) + 1):
            graph.add_edge(("member", member), "sink", capacity=1, weight=load * rank)
    _, flow = nx.network_simplex(graph)
    loads = {m: sum(flow["member", m]["sink"].values()) for m in reach}
    kept = hits = 0
    for (topic, racks), count in units.items():
        for member in call.subscribers[topic]:
            sent = sum(flow["unit", topic, racks].get(("member", member), {}).values())
            hits += sent * (call.group[member].rack_id in racks)
            kept += min(sent, owned[member, topic, racks])
        assert count == sum(sum(f.values()) for f in flow["unit", topic, racks].values())
    vector = sorted((loads.get(member, 0) for member in call.group), reverse=True)
    return Optimum(tuple(vector), hits, kept)


def _some_greatest_load(call: AssignorCall, units: Counter[tuple[str, Racks]]) -> int:
    """Return the greatest load of a placement that is easy to find; the best one has none above it."""
    loads = dict.fromkeys(call.group, 0)
    for (topic, _), count in units.items():
        poorest = [(loads[member], member) for member in call.subscribers[topic]]
        heapify(poorest)
        for _ in range(count):
            load, member = poorest[0]
            heapreplace(poorest, (load + 1, member))
        loads.update((member, load) for load, member in poorest)
    return max(loads.values(), default=0)


def transferable(call: AssignorCall) -> tuple[str, str, str] | None:
    """Return a move that evens out the loads, as (from, to, topic), or ``None``: the balance of KIP-54.

    KIP-54 calls an assignment balanced when no member could hand a partition to one that subscribes
    to its topic and has at least two fewer.
    """
    if max(call.loads.values(), default=0) - min(call.loads.values(), default=0) < 2:
        return None
    for topic, subscribers in sorted(call.subscribers.items()):
        poorest = min(subscribers, key=lambda m: (call.loads[m], m))
        givers = [m for m in subscribers if any(p.topic == topic for p in call.assignment.get(m, ()))]
        richest = max(givers, key=lambda m: (call.loads[m], m), default=poorest)
        if call.loads[richest] >= call.loads[poorest] + 2:
            return richest, poorest, topic
    return None


SITUATIONS: dict[str, Callable[[AssignorCall], bool]] = {
    "partition withheld": lambda call: bool(call.withheld),
    "unequal subscriptions": lambda call: not call.equal_subscriptions,
    "stale claim": lambda call: any(len(c) > len(call.holders[p]) for p, c in call.claimants.items()),
    "tied claims": lambda call: any(len(holders) > 1 for holders in call.holders.values()),
    "claim listed twice": lambda call: any(
        len(set(c.partitions)) < len(c.partitions) for c in call.claims.values()
    ),
    "claim to unknown partition": lambda call: not call.claimants.keys() <= call.existing,
    "claim to unsubscribed topic": lambda call: any(
        not {topic for topic, _ in c.partitions}.issubset(call.group[m].topics)
        for m, c in call.claims.items()
    ),
    "topic without metadata": lambda call: any(
        not call.cluster.topics.keys() >= set(s.topics) for s in call.group.values()
    ),
    "mixed versions": lambda call: len({s.version for s in call.group.values()}) > 1,
    "racks": rack_matters,
    "claims beside none": lambda call: len({bool(c.partitions) for c in call.claims.values()}) > 1,
}
"""Situations that matter, by what is said of the scenarios that reach them: is this call one of them?"""

_SERVED = {
    "unequal subscriptions": "unequal subscriptions",
    "topic without metadata": "topic that does not exist",
    "racks": "racks",
    "partition withheld": "unowned partition",
    "tied claims": "partition owned by two members",
    "claim to unknown partition": "partition that is gone",
    "claim to unsubscribed topic": "topic no longer subscribed",
    "claims beside none": "new members beside old ones",
}
"""The same where a broker assigns, by the names of ``SITUATIONS``: what members had is its own target."""


def situations(protocol: RebalanceProtocol) -> Mapping[str, Callable[[AssignorCall], bool]]:
    """Return the situations that a group of ``protocol`` can be in, by name."""
    if protocol not in SERVED:
        return SITUATIONS
    return {name: SITUATIONS[one] for one, name in _SERVED.items()}


# Situations that a full search along all dimensions must reach, by protocol: if the target never
# got there, "no violation" would mean little.
FLOORS: dict[RebalanceProtocol, tuple[str, ...]] = {
    RebalanceProtocol.COOPERATIVE: (
        "follow-up rebalance",
        "partition withheld",
        "stale claim",
        "tied claims",
        "claim listed twice",
        "claim to unknown partition",
        "claim to unsubscribed topic",
        "topic without metadata",
        "mixed versions",
        "unequal subscriptions",
        "racks",
        "claims beside none",
        "missed-sync with claims",
        "lost-join with claims",
        "ghost with claims",
        "removed member returns",
        "silent static member",
    ),
    RebalanceProtocol.EAGER: (
        "unequal subscriptions",
        "topic without metadata",
        "mixed versions",
        "racks",
        "missed-sync",
        "lost-join",
        "removed member returns",
        "silent static member",
    ),
    RebalanceProtocol.CONSUMER: (
        "partition that is gone",
        "topic no longer subscribed",
        "topic that does not exist",
        "unequal subscriptions",
        "racks",
        "new members beside old ones",
    ),
    RebalanceProtocol.SHARE: (
        "partition that is gone",
        "topic no longer subscribed",
        "topic that does not exist",
        "unequal subscriptions",
        "racks",
        "new members beside old ones",
    ),
}
