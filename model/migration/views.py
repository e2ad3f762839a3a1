"""What is looked at in a group on its way between the protocols: of members of both kinds."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from rebalance_verifier.model.consumer import group as consumer
from rebalance_verifier.model.consumer.conversion import goes_down
from rebalance_verifier.model.consumer.state import (
    INSIDE,
    AnyMember,
    ClientState,
    ConsumerGroup,
    ConsumerMember,
    ConsumerRecords,
    GroupKind,
    LateCommit,
    RecordState,
    epoch_of,
    find,
    participates,
)
from rebalance_verifier.model.group.parts import NONE, NOTHING, GroupState, Late, Life, MemberState, Parts
from rebalance_verifier.model.group.setup import MemberContext, Setup, letter
from rebalance_verifier.model.machine import View
from rebalance_verifier.model.migration.coordinator import accepted


def _beyond(me: AnyMember, records: ConsumerRecords) -> Parts:
    """Return what a participant reads, and the coordinator does not know of: holds, or in a classic group has
    assigned or heard the claim of."""
    record = find(records, me.id)
    if record is None or not participates(me, records):
        return NOTHING
    return Parts(me.owned & ~(record.held | record.claim))


def _stays_up(setup: Setup, group: ConsumerGroup, *book: ConsumerRecords) -> bool:
    """Check whether it is a consumer group although nobody speaks that protocol, and ought to be a classic
    one."""
    return group.kind is GroupKind.CONSUMER and goes_down(setup, book)


def _mixed(group: ConsumerGroup, *book: ConsumerRecords) -> bool:
    """Check whether it is a consumer group with members of the classic protocol."""
    classic = any(record.classic for records in book for record in records)
    return group.kind is GroupKind.CONSUMER and classic


def _commits(
    me: MemberContext, m: AnyMember, stray: LateCommit, records: ConsumerRecords, group: ConsumerGroup
) -> Parts:
    """Return the partitions for which an offset commit would be stored: sent now, or under way and arriving
    now."""
    total = 0
    inside = m.state in INSIDE if isinstance(m, ConsumerMember) else m.generation != NONE
    if inside:
        total |= accepted(me, group, records, Late("commit", m.id, epoch_of(m), m.owned))
    if isinstance(stray, Late):
        total |= accepted(me, group, records, stray)
    return Parts(total)


def settled(m: AnyMember, wire: Any, group: ConsumerGroup, records: ConsumerRecords) -> str:
    """Return what this slot has left to do, "" if nothing."""
    if isinstance(m, ConsumerMember):
        if group.kind is GroupKind.CLASSIC and m.life is Life.UP and m.state is not ClientState.UNSUBSCRIBED:
            return "not in a classic group"
        return consumer.settled(m, wire, group, records)
    if m.life is not Life.UP:
        return "paused" if m.life is Life.PAUSED else "still in the group" if records else ""
    record = find(records, m.id)
    if record is None or len(records) > 1:
        return "not in the group, or not alone under its name"
    if m.state is not MemberState.STABLE or m.rejoin or wire is not None or m.generation != group.epoch:
        return "has something to do"
    if m.owned != record.assigned:
        return "owns something else than it was assigned"
    if group.kind is GroupKind.CLASSIC:
        return "" if group.phase is GroupState.STABLE else "the group rebalances"
    there = record.state is RecordState.STABLE and record.epoch == group.epoch and m.owned == record.target
    return "" if there else "not at the epoch of the group"


def _epochs(group: ConsumerGroup, records: ConsumerRecords) -> tuple[tuple[int, int, int, int], ...]:
    """Of each record: its previous epoch, its own, that of the target, that of the group."""
    return () if group.kind is GroupKind.CLASSIC else consumer.record_epochs(group, records)


def views(setup: Setup, mes: list[MemberContext]) -> Iterator[View]:
    """Yield all views of a group of ``setup``."""
    yield from consumer.group_views(setup)
    book = tuple(f"record {letter(slot)}" for slot in setup.slots)
    yield View("stays up", ("group", *book), partial(_stays_up, setup))
    if setup.policy == "disabled":
        yield View("mixed", ("group", *book), _mixed)
    for me in mes:
        a = letter(me.slot)
        m, w, s, r, _ = consumer.slot_names(me)
        yield View(f"beyond {a}", (m, r), _beyond)
        yield View(f"commits {a}", (m, s, r, "group"), partial(_commits, me))
        yield View(f"epochs {a}", ("group", r), _epochs)
        yield View(f"settled {a}", (m, w, "group", r), settled)
        yield from consumer.slot_views(me)
