"""What nobody in the group decides: timers, a coordinator that fails over, topics that change.

Timers have no clock. One that nobody can prevent may run out at any time; one that runs out although the
client is at work is a fault.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rebalance_verifier.model.consumer.conversion import Book, removed
from rebalance_verifier.model.consumer.member import ACTIVE, beats, works
from rebalance_verifier.model.consumer.state import (
    BeatError,
    BeatRefused,
    BeatWire,
    ConsumerGroup,
    ConsumerMember,
    ConsumerRecord,
    ConsumerRecords,
    GroupKind,
    RecordState,
)
from rebalance_verifier.model.group.observations import Expelled, Noted, Seen
from rebalance_verifier.model.group.parts import ClusterState, Parts, each, union
from rebalance_verifier.model.group.setup import MemberContext, Setup
from rebalance_verifier.model.machine import Outcome


def able(member: ConsumerMember, record: ConsumerRecord) -> bool:
    """Check whether the client of ``record`` goes on sending heartbeats."""
    comes_back = works(member) or (beats(member) and member.state in ACTIVE)
    return comes_back and member.id == record.id and member.subscribes


def _without(
    me: MemberContext, group: ConsumerGroup, records: ConsumerRecords, member_id: int
) -> tuple[ConsumerGroup, ConsumerRecords]:
    """Out of a group in which nobody speaks the classic protocol: nothing else changes."""
    group, [left], _ = removed(me.setup, group, (records,), 0, member_id)
    return group, left


def _session(
    me: MemberContext,
    member: ConsumerMember,
    group: ConsumerGroup,
    records: ConsumerRecords,
    *,
    at_work: bool,
) -> Iterator[Outcome]:
    for record in records:
        if able(member, record) is at_work:
            yield Outcome(_without(me, group, records, record.id), f"id {record.id}")


def session_expires(
    me: MemberContext, records: ConsumerRecords, member: ConsumerMember, group: ConsumerGroup
) -> Iterator[Outcome]:
    """The session of a client that is dead, paused or gone, or of a static member that is away."""
    yield from _session(me, member, group, records, at_work=False)


def session_lost(
    me: MemberContext, budget: int, member: ConsumerMember, group: ConsumerGroup, records: ConsumerRecords
) -> Iterator[Outcome]:
    """The session of a client that is at work: its heartbeats did not arrive."""
    for outcome in _session(me, member, group, records, at_work=True):
        yield Outcome((budget - 1, *outcome.values), outcome.choice)


def too_slow(
    me: MemberContext, budget: int, member: ConsumerMember, group: ConsumerGroup, records: ConsumerRecords
) -> Iterator[Outcome]:
    """The rebalance timeout passes for a client that is slow to revoke."""
    for record in records:
        if record.state is RecordState.UNREVOKED and able(member, record) and not record.away:
            group, left = _without(me, group, records, record.id)
            yield Outcome((budget - 1, group, left), f"id {record.id}", (Noted("revocation took too long"),))


def stale_timeout(
    me: MemberContext, records: ConsumerRecords, member: ConsumerMember, group: ConsumerGroup
) -> Iterator[Outcome]:
    """The rebalance timeout that a failover has set passes for a member that has nothing more to revoke of
    it."""
    for record in records:
        if record.overdue:
            yield Outcome(_without(me, group, records, record.id), f"id {record.id}", (expelled(me, record),))


def expelled(me: MemberContext, record: ConsumerRecord) -> Expelled:
    """Return what is seen of a removal by such a timeout."""
    return Expelled(me.slot, "rebalance", not record.away, record.away)


def member_removed(
    me: MemberContext, budget: int, group: ConsumerGroup, records: ConsumerRecords
) -> Iterator[Outcome]:
    """An administrator removes a member (LeaveGroup)."""
    for record in records:
        yield Outcome((budget - 1, *_without(me, group, records, record.id)), f"id {record.id}")


def failover(setup: Setup, budget: int, *parts: Any) -> Iterator[Outcome]:
    """The coordinator moves: its log has everything, what is under way is lost, and every client sends all
    fields again. ``parts``: the members, then the wires, then the records."""
    size = len(setup.slots)
    members, wires, book = parts[:size], parts[size : 2 * size], parts[2 * size :]
    after = [disconnected(member, wire) for member, wire in zip(members, wires, strict=True)]
    moved, lost = (member for member, _ in after), (wire for _, wire in after)
    loaded = timed(setup, book)
    yield Outcome((budget - 1, *moved, *lost, *loaded), seen=pending_revocations(book))


def pending_revocations(book: Book) -> Seen:
    """Return what is to be seen of a failover: who has yet to revoke then, a static member that is away as
    well."""
    waits = [record for records in book for record in records if record.state is RecordState.UNREVOKED]
    seen: Seen = (Noted("failover with a revocation pending"),) if waits else ()
    return (
        (*seen, Noted("failover after a revoking member went away")) if any(r.away for r in waits) else seen
    )


def timed(setup: Setup, book: Book) -> Book:
    """``onLoaded``. As specified only clients of the consumer protocol that are there have a rebalance
    timeout, which is set anew with each step, or ends. As shipped members of the classic protocol get one
    too, which nobody sets anew or ends, and static members that are away and have nothing to revoke."""
    away = "failover_times_away" in setup.coordinator
    classic = "failover_times_classic" in setup.coordinator

    def loaded(record: ConsumerRecord) -> ConsumerRecord:
        waits = record.state is RecordState.UNREVOKED
        set_by_mistake = waits and (away if record.away else classic and record.classic)
        return record._replace(timed=record.pending if set_by_mistake else None)

    return tuple(tuple(map(loaded, records)) for records in book)


def disconnected(member: ConsumerMember, wire: BeatWire) -> tuple[ConsumerMember, BeatWire]:
    """Return a client and what it has under way, after its connection broke."""
    after = member._replace(full=True) if member.state in ACTIVE else member
    return after, BeatRefused(wire.id, BeatError.DISCONNECT) if wire is not None and beats(member) else None


def group_expires(
    setup: Setup, budget: int, group: ConsumerGroup, *book: ConsumerRecords
) -> Iterator[Outcome]:
    """An empty group is deleted."""
    if group.kind is not GroupKind.NONE and not any(book):
        yield Outcome((budget - 1, group._replace(kind=GroupKind.NONE)))


def topic_grows(setup: Setup, budget: int, cluster: ClusterState) -> Iterator[Outcome]:
    """One more partition of a topic."""
    for number in each(union(setup.topics) & ~cluster.parts):
        if _is_gone(setup, cluster, number):
            continue
        more = cluster._replace(parts=Parts(cluster.parts | 1 << number))
        yield Outcome((budget - 1, more), str(setup.partition(number)))


def topic_deleted(setup: Setup, budget: int, cluster: ClusterState) -> Iterator[Outcome]:
    """A topic goes, with all its partitions."""
    for topic, parts in enumerate(setup.topics):
        if cluster.parts & parts:
            gone = cluster._replace(parts=Parts(cluster.parts & ~parts))
            yield Outcome((budget - 1, gone), f"topic {topic}")


def _is_gone(setup: Setup, cluster: ClusterState, number: int) -> bool:
    """Check whether a partition was one of a topic before that was made anew."""
    if "topic made anew" not in setup.faults:
        return False
    [there] = [cluster.parts & parts for parts in setup.topics if parts >> number & 1]
    return bool(there) and number < each(there)[0]


def topic_made_anew(setup: Setup, budget: int, cluster: ClusterState) -> Iterator[Outcome]:
    """A topic is deleted and created again between two heartbeats: its name stays, its id is another one, and
    so are its partitions, as many as before or as there are numbers left for."""
    for topic, parts in enumerate(setup.topics):
        there = each(cluster.parts & parts)
        left = [number for number in each(parts) if there and number > there[-1]][: len(there)]
        if left:
            anew = Parts(cluster.parts & ~parts | union([Parts(1 << number) for number in left]))
            yield Outcome((budget - 1, cluster._replace(parts=anew)), f"topic {topic}")
