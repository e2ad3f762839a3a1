"""The best that any assignor could do, by network flow.

One minimum-cost flow answers three questions in the order that the contract ranks them: the best
possible balance (no load can fall without a higher or equal one rising: the optimal semi-matching
of Harvey, Ladner, Lovasz and Tamir), for it the most placements in a replica's rack (KIP-881), and
for these the most valid claims kept (KIP-54). It shares nothing with the assignors it measures.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from heapq import heapify, heapreplace

import networkx as nx
from rebalance.model.values import Racks
from rebalance.properties.calls import Call


@dataclass(frozen=True, slots=True)
class Optimum:
    """The best load vector (descending), rack matches under it, and claims kept under both."""

    loads: tuple[int, ...]
    matched: int
    kept: int


def rack_matters(call: Call) -> bool:
    """Whether racks can make a difference: a member has one, and some replica's rack is known."""
    racks = {subscription.rack_id for subscription in call.group.values()} - {None}
    return bool(racks) and any(racks & set(r) for t in call.subscribers for r in call.cluster.topics[t])


def matched(call: Call) -> int:
    """Placements of existing partitions whose member sits in the rack of a replica."""
    return sum(
        1
        for partition, members in call.granted.items()
        for member in members
        if partition in call.cluster
        and member in call.group
        and call.group[member].rack_id in call.cluster.topics[partition.topic][partition.partition]
    )


def optimum(call: Call) -> Optimum:
    """The best placement of everything that ``call`` could have placed.

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


def _some_greatest_load(call: Call, units: Counter[tuple[str, Racks]]) -> int:
    """The greatest load of a placement that is easy to find; the best one has none above it."""
    loads = dict.fromkeys(call.group, 0)
    for (topic, _), count in units.items():
        poorest = [(loads[member], member) for member in call.subscribers[topic]]
        heapify(poorest)
        for _ in range(count):
            load, member = poorest[0]
            heapreplace(poorest, (load + 1, member))
        loads.update((member, load) for load, member in poorest)
    return max(loads.values(), default=0)


def transferable(call: Call) -> tuple[str, str, str] | None:
    """A move that evens out the loads, as (from, to, topic), or ``None``: the balance of KIP-54.

    KIP-54 calls an assignment balanced when no member could hand a partition to one that subscribes
    to its topic and has at least two fewer.
    """
    for topic, subscribers in sorted(call.subscribers.items()):
        poorest = min(subscribers, key=lambda m: (call.loads[m], m))
        givers = [m for m in subscribers if any(p.topic == topic for p in call.assignment.get(m, ()))]
        richest = max(givers, key=lambda m: (call.loads[m], m), default=poorest)
        if call.loads[richest] >= call.loads[poorest] + 2:
            return richest, poorest, topic
    return None
