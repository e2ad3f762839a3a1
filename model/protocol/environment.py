"""What happens to the cluster and to the whole group from outside: topics, bounces of a rolling upgrade."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from rebalance.model.machine import NOBODY, Action, Outcome, Value, fault
from rebalance.model.protocol.application import leave
from rebalance.model.protocol.callbacks import works
from rebalance.model.protocol.setup import MemberContext, Setup, letter
from rebalance.model.protocol.state import (
    ClusterState,
    Group,
    Member,
    Parts,
    Records,
    Slot,
    Stray,
    Wire,
    each,
)


def topic_grows(setup: Setup, budget: int, cluster: ClusterState) -> Iterator[Outcome]:
    """A topic gets a partition more; also how a deleted topic comes back. Which number it has is a name."""
    for parts in setup.topics:
        for partition in each(parts & ~cluster.parts):
            more = ClusterState(Parts(cluster.parts | 1 << partition))
            yield Outcome((budget - 1, more), str(setup.partition(partition)))


def topic_shrinks(setup: Setup, budget: int, cluster: ClusterState) -> Iterator[Outcome]:
    """A topic is deleted and created again with a partition less."""
    for parts in setup.topics:
        if len(each(parts & cluster.parts)) > 1:
            for partition in each(parts & cluster.parts):
                less = ClusterState(Parts(cluster.parts & ~(1 << partition)))
                yield Outcome((budget - 1, less), str(setup.partition(partition)))


def topic_deleted(setup: Setup, budget: int, cluster: ClusterState) -> Iterator[Outcome]:
    """A topic is deleted."""
    for topic, parts in enumerate(setup.topics):
        if parts & cluster.parts:
            yield Outcome((budget - 1, ClusterState(Parts(cluster.parts & ~parts))), f"topic {topic}")


def bounce(
    me: MemberContext,
    done: int,
    member: Member,
    wire: Wire,
    stray: Stray,
    group: Group,
    records: Records,
    *rest: Any,
) -> Iterator[Outcome]:
    """One member is stopped, to be started as its next stage.

    A stage begins when all members have finished the one before; that is what "double bounce" means. A
    static member that is away has not, while the coordinator still knows it with its old list.
    """
    last = len(me.consumer.stages) - 1
    others, away = rest[: len(me.setup.consumers) - 1], rest[len(me.setup.consumers) - 1 :]
    lists = [stage.assignors for stage in me.consumer.stages]
    old = lists[done - 1] if done and lists[done - 1] != lists[done] else None
    known = (*(records if me.static else ()), *(record for some in away for record in some))
    if old is not None and any(record.meta and record.meta.assignors == old for record in known):
        return
    if done == last or not works(member) or done > min(others, default=done) or done != member.stage:
        return
    *after, seen = leave(me, member, wire, stray, group, records, close=True)
    left = after[0]
    assert isinstance(left, Member)
    after[0] = left._replace(stage=done + 1)
    yield Outcome((done + 1, *after), seen=tuple(seen))


def actions(setup: Setup) -> tuple[Action, ...]:
    """Topic events, and one bounce for each slot that has a next stage."""
    both = ("budget", "cluster")
    topics = {"topic grows": topic_grows, "topic shrinks": topic_shrinks, "topic deleted": topic_deleted}
    listed = [
        fault(name, NOBODY, both, both, partial(run, setup))
        for name, run in topics.items()
        if name in setup.faults
    ]
    for slot in setup.slots:
        me = MemberContext(Slot(slot), setup)
        if len(me.consumer.stages) > 1:
            own = tuple(me.name(part) for part in ("rollout", "member", "wire", "stray"))
            whole = (*own, "group", me.name("record"))
            others = tuple(f"rollout {letter(s)}" for s in setup.slots if s != slot)
            static = [s for s in setup.slots if s != slot and setup.consumers[s].instance is not None]
            away = tuple(f"record {letter(s)}" for s in static)
            moves = fault("bounce", slot, (*whole, *others, *away), whole, partial(bounce, me))
            listed.append(moves._replace(guard=partial(_goes_on, me)))
    return tuple(listed)


def _goes_on(me: MemberContext, done: Value) -> bool:
    return isinstance(done, int) and done < len(me.consumer.stages) - 1
