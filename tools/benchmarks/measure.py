"""One measurement in a process of its own: ``python measure.py TARGET CASE`` prints one JSON line.

The time is that of ``assign`` alone: building the input is left out, and so are the conversions of an
adapter, where it has a client's assignor inside.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

from rebalance_verifier.gate.targets.hosts.hosted import load
from rebalance_verifier.model.assignors import reference
from rebalance_verifier.model.values import Cluster, GroupSubscription, Subscription

# name: members, topics, partitions per topic, who subscribes to what, what happens before the measured call
CASES: dict[str, tuple[int, int, int, str, str]] = {
    "equal 2,100 x 2,100, fresh": (2100, 10, 210, "equal", "fresh"),
    "equal 2,100 x 2,100, one joins": (2100, 10, 210, "equal", "join"),
    "equal 2,000 x 1,000,000, fresh": (2000, 500, 2000, "equal", "fresh"),
    "equal 2,000 x 1,000,000, one leaves": (2000, 500, 2000, "equal", "leave"),
    "half of the topics each, 2,000 x 200,000, fresh": (2000, 200, 1000, "half", "fresh"),
    "half of the topics each, 2,000 x 200,000, one leaves": (2000, 200, 1000, "half", "leave"),
    "all but one equal, 2,000 x 200,000, fresh": (2000, 500, 400, "but-one", "fresh"),
    "all but one equal, 2,000 x 200,000, one leaves": (2000, 500, 400, "but-one", "leave"),
    "half of the topics each, 100 x 1,000, fresh": (100, 20, 50, "half", "fresh"),
    "half of the topics each, 100 x 1,000, one leaves": (100, 20, 50, "half", "leave"),
}


def build(case: str) -> tuple[Cluster, dict[str, Subscription]]:
    """The input of the measured call; claims come from a call of the reference before it."""
    members, topics, partitions, kind, before = CASES[case]
    names = tuple(f"t{i:03}" for i in range(topics))
    cluster = Cluster.of(dict.fromkeys(names, partitions))

    def topics_of(index: int) -> tuple[str, ...]:
        if kind == "equal" or (kind == "but-one" and index):
            return names
        if kind == "but-one":
            return names[:1]
        # Half of the topics, a different half for each member: a fixed scramble, no randomness.
        return tuple(n for t, n in enumerate(names) if (index * 2654435761 + t * 40503) >> 7 & 1) or names[:1]

    group = {f"member-{i:05}": Subscription(topics=topics_of(i)) for i in range(members)}
    if before == "fresh":
        return cluster, group
    assignment = reference("cooperative-sticky").assign(cluster, group)
    owned = {
        m: Subscription(
            topics=s.topics, user_data=None, owned_partitions=tuple(assignment[m]), generation_id=1
        )
        for m, s in group.items()
    }
    if before == "leave":
        owned.pop(f"member-{members // 2:05}")
    else:
        owned[f"member-{members:05}"] = Subscription(topics=topics_of(members))
    return cluster, owned


def timed(target: Any) -> tuple[Callable[[Cluster, GroupSubscription], Any], list[float]]:
    """A callable that assigns and notes the seconds of the innermost assign()."""
    seconds: list[float] = []

    def clock(assign: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any) -> Any:
            started = time.perf_counter()
            try:
                return assign(*arguments)
            finally:
                seconds.append(time.perf_counter() - started)

        return run

    inner = getattr(target, "_leader", None)
    if inner is None:
        return clock(target.assign), seconds
    inner.assign = clock(inner.assign)
    return target.assign, seconds


def main() -> None:
    spec, case = sys.argv[1:3]
    cluster, group = build(case)
    target = load(spec)
    assign, seconds = timed(target)
    calls = 1 if sum(len(p) for p in cluster.topics.values()) > 100_000 else 5
    for _ in range(calls):
        assign(cluster, group)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(json.dumps({"seconds": min(seconds), "mib": peak}))


if __name__ == "__main__":
    main()
