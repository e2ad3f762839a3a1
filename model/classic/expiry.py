"""How the coordinator loses a member: it leaves, or its session or the rebalance timeout expires.

Timers have no clock. One that nobody can prevent (the owner is dead or paused) may fire at any time; one
that fires although the owner is at work is a fault and draws on the budget.
"""

from __future__ import annotations

from collections.abc import Iterator

from rebalance_verifier.model.classic.callbacks import works
from rebalance_verifier.model.classic.state import (
    Group,
    JoinOk,
    Member,
    MemberRecord,
    Records,
    Wire,
    admitted,
    put,
)
from rebalance_verifier.model.group.observations import Expelled
from rebalance_verifier.model.group.parts import NO_ID, GroupState, Life, MemberState
from rebalance_verifier.model.group.setup import MemberContext
from rebalance_verifier.model.machine import Outcome

SETTLED = (GroupState.STABLE, GroupState.COMPLETING)


def removed(me: MemberContext, group: Group, records: Records, member_id: int) -> tuple[Group, Records]:
    """``removeMemberAndUpdateGroup``: out of the group, which rebalances if it was settled.

    Who leads after the leader is settled at the end of the join phase.
    """
    left = tuple(record for record in records if record.id != member_id)
    if left == records:
        return group, records
    if group.leader == me.id(member_id):
        group = group._replace(leader=None)
    pending = any(record.id == member_id and record.meta is None for record in records)
    if not pending and group.state in (GroupState.STABLE, GroupState.COMPLETING):
        group = group._replace(state=GroupState.PREPARING)
    return group, left


def belongs(member: Member, wire: Wire, record: MemberRecord) -> bool:
    """Check whether the member at work is the one of ``record``; it may learn its id only from the answer."""
    return record.id in (member.id, getattr(wire, "id", NO_ID), getattr(wire, "given", NO_ID))


def able(member: Member, wire: Wire, record: MemberRecord) -> bool:
    """Check whether the owner of ``record`` can still join and sync in time."""
    return works(member) and member.subscribes and belongs(member, wire, record)


def session(
    me: MemberContext, member: Member, wire: Wire, group: Group, records: Records, at_work: bool
) -> Iterator[Outcome]:
    """The session of a member expires. One that is parked counts as alive (``maybeExpire``)."""
    decisions = me.setup.coordinator
    for record in records:
        parked = record.joined and not record.new
        parked = parked or (
            group.state is GroupState.COMPLETING and record.synced and record.meta is not None
        )
        if parked or (record.meta is None and "pending_blocks_join" in decisions):
            continue
        if record.new and "new_member_never_expires" in decisions:
            continue
        alive = able(member, wire, record)
        hung = member.life is Life.HUNG and member.id == record.id
        quiet = "no_heartbeat_in_completing" in me.config(member.stage).decisions
        if hung and member.state in (MemberState.COMPLETING, MemberState.STABLE):
            alive = not (quiet and member.state is MemberState.COMPLETING)
        elif quiet and isinstance(wire, JoinOk) and wire.leader:  # a long assign(), and nobody beats
            alive = False
        if alive is at_work:
            after, left = removed(me, group, records, record.id)
            yield Outcome((after, left), f"id {record.id}")


def session_expires(
    me: MemberContext, records: Records, member: Member, wire: Wire, group: Group
) -> Iterator[Outcome]:
    """The session of an owner that is dead, paused or gone."""
    yield from session(me, member, wire, group, records, at_work=False)


def session_lost(
    me: MemberContext, budget: int, member: Member, wire: Wire, group: Group, records: Records
) -> Iterator[Outcome]:
    """The session of an owner that is at work: its heartbeats did not arrive."""
    for outcome in session(me, member, wire, group, records, at_work=True):
        yield Outcome((budget - 1, *outcome.values), outcome.choice)


def member_removed(me: MemberContext, budget: int, group: Group, records: Records) -> Iterator[Outcome]:
    """An administrator removes a member, by its member id or its instance id (KIP-345, KIP-571): the
    LeaveGroup that the member would send, at any time."""
    for record in admitted(records):
        yield Outcome((budget - 1, *removed(me, group, records, record.id)), f"id {record.id}")


def _give_up(
    me: MemberContext, member: Member, wire: Wire, group: Group, records: Records, at_work: bool
) -> Iterator[Outcome]:
    """The rebalance timeout passes for one member that did not come (join phase), or never synced."""
    for record in admitted(records):
        if able(member, wire, record) is not at_work:
            continue
        if group.state is GroupState.PREPARING and not record.joined and not record.given_up:
            yield Outcome((group, put(records, record._replace(given_up=True))), f"join of id {record.id}")
        elif group.state in SETTLED and not record.synced and _sync_expires(me, record):
            after, left = removed(me, group, records, record.id)
            seen = Expelled(me.slot, "pending sync", at_work, me.static and record.silent)
            yield Outcome((after, left), f"sync of id {record.id}", (seen,))


def _sync_expires(me: MemberContext, record: MemberRecord) -> bool:
    decisions = me.setup.coordinator
    if "no_pending_sync_expiry" in decisions:
        return False
    return not record.silent or "pending_sync_evicts_static" in decisions


def rebalance_timeout(
    me: MemberContext, records: Records, member: Member, wire: Wire, group: Group
) -> Iterator[Outcome]:
    """It passes for a member that cannot come."""
    yield from _give_up(me, member, wire, group, records, at_work=False)


def too_slow(
    me: MemberContext, budget: int, member: Member, wire: Wire, group: Group, records: Records
) -> Iterator[Outcome]:
    """It passes for a member that is at work but slow."""
    for outcome in _give_up(me, member, wire, group, records, at_work=True):
        yield Outcome((budget - 1, *outcome.values), outcome.choice, outcome.seen)
