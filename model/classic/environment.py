"""What happens to the group from outside: to its connections, its topics, and by bounces of an upgrade.

A connection keeps the order of its requests (the broker handles one at a time), several do not. A member that
is disconnected sends again on a new connection, and the coordinator may see both requests, in either order;
the answer to what was left behind goes nowhere. That a request is lost altogether is ``disconnect``.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, TypeVar

from rebalance_verifier.model.classic.application import leave, leave_at_once, start, too_late
from rebalance_verifier.model.classic.callbacks import works
from rebalance_verifier.model.classic.coordinator import in_time, settled, sync_request
from rebalance_verifier.model.classic.errors import beats
from rebalance_verifier.model.classic.expiry import removed
from rebalance_verifier.model.classic.join_group import ARRIVES, which
from rebalance_verifier.model.classic.state import (
    Behind,
    Group,
    Join,
    LeaveGroup,
    Member,
    Records,
    Refused,
    Stray,
    Sync,
    Wire,
)
from rebalance_verifier.model.group.observations import Noted
from rebalance_verifier.model.group.parts import ClusterState, Error, Life, Parts, Slot, each
from rebalance_verifier.model.group.setup import MemberContext, Setup, letter
from rebalance_verifier.model.machine import NOBODY, Action, Footprint, Outcome, Run, Value, fault

_Request = TypeVar("_Request", bound=Join | Sync | LeaveGroup)

# -- connections that break ----------------------------------------------------------------------------


def leave_behind(
    me: MemberContext, budget: int, member: Member, wire: Wire, behind: Behind
) -> Iterator[Outcome]:
    """The connection breaks, the member is told so, and its JoinGroup or SyncGroup stays under way."""
    if isinstance(wire, Join | Sync) and member.life not in (Life.DOWN, Life.FAILED):
        api = "join" if isinstance(wire, Join) else "sync"
        answer = Refused(api, Error.DISCONNECT, member.id, member.generation)
        yield Outcome((budget - 1, answer, (*behind, (wire,))), seen=(Noted(f"{api} left behind"),))


def late_leave(
    me: MemberContext, budget: int, member: Member, wire: Wire, stray: Stray, behind: Behind
) -> Iterator[Outcome]:
    """A member leaves and its LeaveGroup takes long, behind what it sent before on the same connection.

    So it is with ``leaveGroupOnClose=false`` too, where the session ends in its place.
    """
    under_way = (wire,) if isinstance(wire, Join | Sync) else ()
    if works(member) and member.subscribes:
        for close in (False, True):
            after, then, late, request, seen = leave(me, member, wire, stray, close=close)
            if request is not None:
                left = (*behind, (*under_way, request))
                yield Outcome(
                    (budget - 1, after, then, late, left), "close" if close else "unsubscribe", seen
                )
    if beats(member) and not me.static:
        left = (*behind, (LeaveGroup(member.id),))
        after, note = too_late(me, member)
        yield Outcome((budget - 1, after, wire, stray, left), "max poll", note)


def start_after(
    me: MemberContext, member: Member, wire: Wire, stray: Stray, cluster: ClusterState, behind: Behind
) -> Iterator[Outcome]:
    """``start``, and what the process before had sent is still under way, on its connection."""
    left = (*behind, (wire,)) if isinstance(wire, Join | Sync) else behind
    for outcome in start(me, member, wire, stray, cluster):
        yield outcome._replace(values=(*outcome.values, left))


def left_sync_arrives(me: MemberContext, behind: Behind, group: Group, records: Records) -> Iterator[Outcome]:
    """A SyncGroup arrives whose connection broke, and decides nothing; its sender hears no answer."""
    for sync, kept, choice in _next(behind, Sync):
        for outcome in sync_request(me, sync, group, records):
            yield Outcome((kept, outcome.values[1]), choice, (ARRIVES,))


def left_decision_arrives(me: MemberContext, behind: Behind, group: Group, *rest: Any) -> Iterator[Outcome]:
    """A leader's SyncGroup arrives in time whose connection broke: as ``leader sync``."""
    size = len(me.setup.slots)
    for sync, kept, choice in _next(behind, Sync):
        if in_time(me, sync, group):
            after = settled(me.setup, me.slot, sync, group, rest[:size], rest[size : 2 * size])
            yield Outcome((kept, *after), choice, (ARRIVES,))


def left_leave_arrives(
    me: MemberContext, behind: Behind, group: Group, records: Records
) -> Iterator[Outcome]:
    """A LeaveGroup arrives whose connection broke."""
    for request, kept, choice in _next(behind, LeaveGroup):
        yield Outcome((kept, *removed(me, group, records, request.id)), choice, (ARRIVES,))


def _next(behind: Behind, kind: type[_Request]) -> Iterator[tuple[_Request, Behind, str]]:
    """Yield the first request of each connection, if it is of that kind; what is left behind then; which it
    was."""
    for n, (first, *later) in enumerate(behind):
        if isinstance(first, kind):
            yield (
                first,
                (*behind[:n], *((tuple(later),) if later else ()), *behind[n + 1 :]),
                which(behind, n),
            )


def _connections(me: MemberContext) -> Iterator[Action]:
    """Yield what a slot can do when connections break; that JoinGroup arrives is with the others of
    JoinGroup."""
    setup = me.setup
    if not setup.breaks_connections:
        return
    m, w, s, r, b = (me.name(part) for part in ("member", "wire", "stray", "record", "behind"))
    parts = ("record", "wire", *(["log"] if setup.keeps_log else []))
    all_of = {part: tuple(f"{part} {letter(slot)}" for slot in setup.slots) for part in parts}
    logs = ("log", *all_of["log"]) if setup.keeps_log else ()
    wide = (b, "group", *all_of["record"], *all_of["wire"], *logs)
    arrivals: tuple[tuple[str, Footprint, Footprint, Run], ...] = (
        ("left sync arrives", (b, "group", r), (b, r), left_sync_arrives),
        ("left decision arrives", wide, wide, left_decision_arrives),
        ("left leave arrives", (b, "group", r), (b, "group", r), left_leave_arrives),
    )
    for name, reads, writes, run in arrivals:
        yield Action(name=name, who=me.slot, reads=reads, writes=writes, run=partial(run, me), guard=bool)
    costly: tuple[tuple[str, Footprint, Footprint, Run], ...] = (
        ("left behind", ("budget", m, w, b), ("budget", w, b), leave_behind),
        ("late leave", ("budget", m, w, s, b), ("budget", m, w, s, b), late_leave),
    )
    for name, reads, writes, run in costly:
        if name in setup.faults:
            yield fault(name, me.slot, reads, writes, partial(run, me))


# -- topics and bounces --------------------------------------------------------------------------------


def topic_grows(setup: Setup, budget: int, cluster: ClusterState) -> Iterator[Outcome]:
    """A topic gets a partition more; also how a deleted topic comes back. Which number it has is a name."""
    for parts in setup.topics:
        for partition in each(parts & ~cluster.parts):
            more = cluster._replace(parts=Parts(cluster.parts | 1 << partition))
            yield Outcome((budget - 1, more), str(setup.partition(partition)))


def topic_shrinks(setup: Setup, budget: int, cluster: ClusterState) -> Iterator[Outcome]:
    """A topic is deleted and created again with a partition less."""
    for parts in setup.topics:
        if len(each(parts & cluster.parts)) > 1:
            for partition in each(parts & cluster.parts):
                less = cluster._replace(parts=Parts(cluster.parts & ~(1 << partition)))
                yield Outcome((budget - 1, less), str(setup.partition(partition)))


def topic_deleted(setup: Setup, budget: int, cluster: ClusterState) -> Iterator[Outcome]:
    """A topic is deleted."""
    for topic, parts in enumerate(setup.topics):
        if parts & cluster.parts:
            gone = cluster._replace(parts=Parts(cluster.parts & ~parts))
            yield Outcome((budget - 1, gone), f"topic {topic}")


def racks_change(setup: Setup, budget: int, cluster: ClusterState) -> Iterator[Outcome]:
    """Replicas are moved to other racks, or back (KAFKA-14867)."""
    yield Outcome((budget - 1, cluster._replace(moved=not cluster.moved)))


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
    *after, seen = leave_at_once(me, member, wire, stray, group, records, close=True)
    left = after[0]
    assert isinstance(left, Member)
    after[0] = left._replace(stage=done + 1)
    yield Outcome((done + 1, *after), seen=tuple(seen))


def actions(setup: Setup) -> tuple[Action, ...]:
    """Return what connections do, topic events, and one bounce for each slot that has a next stage."""
    both = ("budget", "cluster")
    cluster = {
        "topic grows": topic_grows,
        "topic shrinks": topic_shrinks,
        "topic deleted": topic_deleted,
        "racks change": racks_change,
    }
    listed = [
        fault(name, NOBODY, both, both, partial(run, setup))
        for name, run in cluster.items()
        if name in setup.faults
    ]
    for slot in setup.slots:
        me = MemberContext(Slot(slot), setup)
        listed += _connections(me)
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
