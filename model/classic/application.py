"""What the application does with its consumer, and what happens to its process."""

from __future__ import annotations

from collections.abc import Iterator

from rebalance_verifier.model.classic.callbacks import (
    drop,
    expelled,
    joined,
    leave_prepare,
    prepared_anew,
    remembers,
    works,
)
from rebalance_verifier.model.classic.errors import beats
from rebalance_verifier.model.classic.expiry import removed
from rebalance_verifier.model.classic.state import (
    Group,
    Join,
    JoinOk,
    LeaveGroup,
    Member,
    Records,
    Refused,
    Stray,
    Sync,
    Wire,
)
from rebalance_verifier.model.group.observations import Left, Noted, Seen
from rebalance_verifier.model.group.parts import (
    NO_ID,
    NONE,
    ClusterState,
    Error,
    GroupState,
    Life,
    MemberState,
    Parts,
    Topics,
)
from rebalance_verifier.model.group.setup import MemberContext
from rebalance_verifier.model.machine import Outcome


def enforce_rebalance(me: MemberContext, budget: int, member: Member) -> Iterator[Outcome]:
    """``enforceRebalance()`` (KIP-568): a flag that the next poll acts on.

    During a rebalance the SyncGroup under way clears it, the "no-op" of the KIP; outside a group it is no
    news; a static member's works as long as its member id is known.
    """
    if not works(member) or member.id == NO_ID:
        return
    if not member.rejoin:
        yield Outcome((budget - 1, member._replace(rejoin=True)), seen=(Noted("enforceRebalance"),))
    elif member.state is MemberState.COMPLETING and not member.enforced:
        yield Outcome((budget - 1, member._replace(enforced=True)))


def resubscribe(me: MemberContext, budget: int, member: Member) -> Iterator[Outcome]:
    """``subscribe()`` with other topics, or by a pattern, which is matched with what the member knows."""
    if works(member) and member.subscribes:
        for names, pattern in me.consumer.choices:
            topics = matched(me, names, pattern, member.view)
            if (topics, pattern) != (member.topics, member.pattern):
                choice = f"topics {names}{f' pattern {pattern}' if pattern else ''}"
                yield Outcome((budget - 1, member._replace(topics=topics, pattern=pattern)), choice)


def matched(me: MemberContext, names: Topics, pattern: Topics, view: Parts) -> Topics:
    """Return the topics of a subscription: those that are named, and those that match and are known."""
    return Topics(names | me.setup.matching(pattern, view))


def refresh(me: MemberContext, member: Member, cluster: ClusterState) -> Iterator[Outcome]:
    """The metadata of the member becomes that of the cluster."""
    if member.life is Life.UP and (member.view, member.view_moved) != cluster:
        after = member._replace(view=cluster.parts, view_moved=cluster.moved)
        yield Outcome((_matched_again(me, after) if member.pattern else after,))


def _matched_again(me: MemberContext, member: Member) -> Member:
    """Return a member whose pattern is matched with its new metadata (``maybeUpdateSubscriptionMetadata``):
    other topics make it join again. By mistake it is matched once, or what matches no more is owned no more,
    which no listener hears."""
    decisions = me.config(member.stage).decisions
    if "pattern_matched_once" in decisions:
        return member
    [names] = {names for names, pattern in me.consumer.choices if pattern == member.pattern}
    topics = matched(me, names, member.pattern, member.view)
    if "subscription_drops_owned" in decisions:
        member = drop(member, me.config(member.stage), member.owned & ~me.setup.parts(topics))
    return member._replace(topics=topics)


def leave(
    me: MemberContext,
    member: Member,
    wire: Wire,
    stray: Stray,
    *,
    close: bool,
) -> tuple[Member, Wire, Stray, LeaveGroup | None, Seen]:
    """unsubscribe or close: onLeavePrepare, LeaveGroup of a dynamic member, full reset.

    Static members never send LeaveGroup. One that forgets its id leaves a JoinGroup behind that is still on
    its way; as specified it knows itself by its id until that is answered.
    """
    config = me.config(member.stage)
    known = member.state is not MemberState.UNJOINED and member.id != NO_ID
    ought = known and not me.static and (config.leaves or not close)
    sends = ought and "no_leave_on_unsubscribe" not in config.decisions
    after, seen = leave_prepare(me, member)
    note = Left(me.slot, after.believed, sends, ought)
    forgets = not me.static or "static_forgets_id" in config.decisions
    if forgets and me.static and stray is None and isinstance(wire, Join):
        stray = wire
    if close:
        after, stray = Member(stage=member.stage), stray if isinstance(stray, Join) else None
    else:
        kept = NO_ID if forgets else member.id
        last_gen = member.own_gen if remembers(config) else NONE
        after = Member(
            Life.UP,
            member.stage,
            id=kept,
            own_gen=last_gen,
            view=member.view,
            view_moved=member.view_moved,
            last=member.last,
        )
    return after, None, stray, LeaveGroup(member.id) if sends else None, (*seen, note)


def leave_at_once(
    me: MemberContext,
    member: Member,
    wire: Wire,
    stray: Stray,
    group: Group,
    records: Records,
    *,
    close: bool,
) -> tuple[Member, Wire, Stray, Group, Records, Seen]:
    """`leave` with a LeaveGroup that arrives at once."""
    after, wire, stray, request, seen = leave(me, member, wire, stray, close=close)
    if request is not None:
        group, records = removed(me, group, records, request.id)
    return after, wire, stray, group, records, seen


def unsubscribe(
    me: MemberContext, budget: int, member: Member, wire: Wire, stray: Stray, group: Group, records: Records
) -> Iterator[Outcome]:
    """``unsubscribe()``; the application may subscribe again."""
    if works(member) and member.subscribes:
        *after, seen = leave_at_once(me, member, wire, stray, group, records, close=False)
        yield Outcome((budget - 1, *after), seen=tuple(seen))


def unsubscribe_midway(
    me: MemberContext, budget: int, member: Member, wire: Wire, stray: Stray, group: Group, records: Records
) -> Iterator[Outcome]:
    """``unsubscribe()`` while a join is under way: the future of the join survives that, and the next one
    waits for the answer to the old. What has not reached the coordinator yet does so before LeaveGroup."""
    waits = member.received is not None or not isinstance(wire, Join | Sync | None)
    if works(member) and member.subscribes and waits:
        after, _, late, group, records, seen = leave_at_once(
            me, member, wire, stray, group, records, close=False
        )
        after = prepared_anew(after, member, me.config(member.stage))._replace(received=member.received)
        yield Outcome((budget - 1, after, wire, late, group, records), seen=seen)


def subscribe(me: MemberContext, member: Member) -> Iterator[Outcome]:
    """``subscribe()`` after an unsubscribe."""
    if works(member) and not member.subscribes:
        names, pattern = me.consumer.choices[0]
        topics = matched(me, names, pattern, member.view)
        yield Outcome((member._replace(topics=topics, pattern=pattern),))


def close(
    me: MemberContext, budget: int, member: Member, wire: Wire, stray: Stray, group: Group, records: Records
) -> Iterator[Outcome]:
    """``close()``; a restart may follow."""
    if works(member):
        if member.received is not None and "assign_during_close_hangs" in me.config(member.stage).decisions:
            yield Outcome((budget - 1, member._replace(stuck=True), wire, stray, group, records))
            return
        *after, seen = leave_at_once(me, member, wire, stray, group, records, close=True)
        yield Outcome((budget - 1, *after), seen=tuple(seen))


def leave_lost(me: MemberContext, budget: int, member: Member, wire: Wire, stray: Stray) -> Iterator[Outcome]:
    """A member leaves and its LeaveGroup is lost: its session has to end."""
    if works(member) and member.subscribes:
        for close in (False, True):
            *after, request, seen = leave(me, member, wire, stray, close=close)
            if request is not None:
                yield Outcome((budget - 1, *after), "close" if close else "unsubscribe", tuple(seen))
    if beats(member) and not me.static:
        late, note = too_late(me, member)
        yield Outcome((budget - 1, late, wire, stray), "max poll", note)


def poll_interval(
    me: MemberContext, member: Member, wire: Wire, group: Group, records: Records
) -> Iterator[Outcome]:
    """max.poll.interval.ms passes for a member that hangs; one that hangs in assign() is left to the
    coordinator's timeout for those that do not sync."""
    inside = member.state is MemberState.COMPLETING and wire is None
    inside = inside and group.state is GroupState.COMPLETING
    if member.life is Life.HUNG and not inside:
        for outcome in poll_too_late(me, 0, member, group, records):
            yield Outcome(outcome.values[1:], seen=outcome.seen)


def poll_too_late(
    me: MemberContext, budget: int, member: Member, group: Group, records: Records
) -> Iterator[Outcome]:
    """max.poll.interval.ms exceeded: the heartbeat thread leaves and resets; lost at the next poll."""
    if not beats(member):
        return
    if not me.static:
        group, records = removed(me, group, records, member.id)
    after, note = too_late(me, member)
    yield Outcome((budget - 1, after, group, records), seen=note)


def too_late(me: MemberContext, member: Member) -> tuple[Member, Seen]:
    """Return the member after max.poll.interval.ms; a dynamic one has sent LeaveGroup."""
    config = me.config(member.stage)
    forgets = not me.static or "static_forgets_id" in config.decisions
    return expelled(member, config, keep_id=not forgets), (Noted("max.poll.interval exceeded"),)


def start(
    me: MemberContext, member: Member, wire: Wire, stray: Stray, cluster: ClusterState
) -> Iterator[Outcome]:
    """The process starts, for the first time or again; a static member presents its instance id.

    What the process before had sent has arrived by then or is lost.
    """
    if member.life in (Life.DOWN, Life.FAILED):
        names, pattern = me.consumer.choices[0]
        fresh = Member(
            life=Life.UP,
            stage=member.stage,
            topics=matched(me, names, pattern, cluster.parts),
            view=cluster.parts,
            view_moved=cluster.moved,
            pattern=pattern,
        )
        yield Outcome((fresh, None, None))


def crash(me: MemberContext, budget: int, member: Member, wire: Wire, stray: Stray) -> Iterator[Outcome]:
    """The process is killed. A request that left still arrives, its answer goes nowhere."""
    if member.life in (Life.UP, Life.PAUSED, Life.HUNG):
        note = (
            (Noted("owner crashed between join and sync"),) if member.state is MemberState.COMPLETING else ()
        )
        under_way = wire if isinstance(wire, Join | Sync) else None
        left = stray if isinstance(stray, Join) else None
        yield Outcome((budget - 1, Member(stage=member.stage), under_way, left), seen=note)


def pause(me: MemberContext, budget: int, member: Member) -> Iterator[Outcome]:
    """The process stops without noticing it, for as long as it takes."""
    if member.life is Life.UP:
        yield Outcome((budget - 1, member._replace(life=Life.PAUSED)))


def resume(me: MemberContext, member: Member) -> Iterator[Outcome]:
    """It goes on where it stopped."""
    if member.life is Life.PAUSED:
        yield Outcome((member._replace(life=Life.UP),))


def hang(me: MemberContext, budget: int, member: Member, wire: Wire) -> Iterator[Outcome]:
    """The application's thread never comes back from a call, a leader's from assign(); heartbeats go on."""
    if not works(member):
        return
    if isinstance(wire, JoinOk) and member.state is MemberState.PREPARING:
        member, wire = joined(member, wire, me.config(member.stage)), None
    yield Outcome((budget - 1, member._replace(life=Life.HUNG), wire))


def disconnect(me: MemberContext, budget: int, member: Member, wire: Wire) -> Iterator[Outcome]:
    """The connection breaks: the request or its response is lost, and the member is told so."""
    if wire is None or (isinstance(wire, Refused) and wire.error is Error.DISCONNECT):
        return
    if member.life is not Life.DOWN:
        api = "sync" if "Sync" in type(wire).__name__ or getattr(wire, "api", "") == "sync" else "join"
        lost = Refused(api, Error.DISCONNECT, member.id, member.generation)
        yield Outcome((budget - 1, lost), seen=(Noted(f"{api} lost"),))
