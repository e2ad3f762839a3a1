"""What is looked at in a group on its way between the protocols: of members of both kinds."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

from rebalance.model.consumer import coordinator
from rebalance.model.consumer.conversion import goes_down
from rebalance.model.consumer.group import holds
from rebalance.model.consumer.group import settled as settled_modern
from rebalance.model.consumer.state import (
    INSIDE,
    AnyMember,
    ClientState,
    ConsumerGroup,
    ConsumerMember,
    ConsumerRecords,
    GroupKind,
    LateCommit,
    RecordState,
    find,
    participates,
)
from rebalance.model.machine import (
    Footprint,
    View,
)
from rebalance.model.protocol.setup import MemberContext, Setup, letter
from rebalance.model.protocol.state import (
    NONE,
    NOTHING,
    Generation,
    GroupState,
    Late,
    Life,
    MemberState,
    Parts,
)


class SlotNames(NamedTuple):
    """The components of one slot, and the records of all."""

    member: str
    wire: str
    stray: str
    record: str
    book: Footprint


def slot_names(me: MemberContext) -> SlotNames:
    """The components of the slot ``me``."""
    book = tuple(f"record {letter(slot)}" for slot in me.setup.slots)
    member, wire, stray, record = (me.name(part) for part in ("member", "wire", "stray", "record"))
    return SlotNames(member, wire, stray, record, book)


def accepted(me: MemberContext, group: ConsumerGroup, records: ConsumerRecords, commit: Late) -> Parts:
    """What of a commit is stored: in a classic group all of it, in its generation."""
    if group.kind is not GroupKind.CLASSIC:
        return coordinator.accepted(me, records, commit.id, commit.generation, commit.parts)
    known = find(records, commit.id) is not None and group.phase is not GroupState.COMPLETING
    return commit.parts if known and commit.generation == group.epoch else NOTHING


def _held(me: AnyMember, records: ConsumerRecords) -> Parts:
    """What a participant reads."""
    return me.owned if participates(me, records) else NOTHING


def _beyond(me: AnyMember, records: ConsumerRecords) -> Parts:
    """What a participant reads, and the coordinator does not know of: holds, or in a classic group has
    assigned or heard the claim of."""
    record = find(records, me.id)
    if record is None or not participates(me, records):
        return NOTHING
    return Parts(me.owned & ~(record.held | record.claim))


def _stays_up(setup: Setup, group: ConsumerGroup, *book: ConsumerRecords) -> bool:
    """Whether it is a consumer group although nobody speaks that protocol, and ought to be a classic one."""
    return group.kind is GroupKind.CONSUMER and goes_down(setup, book)


def _commits(
    me: MemberContext, m: AnyMember, stray: LateCommit, records: ConsumerRecords, group: ConsumerGroup
) -> Parts:
    """The partitions for which an offset commit would be stored: sent now, or under way and arriving now."""
    total = 0
    inside = m.state in INSIDE if isinstance(m, ConsumerMember) else m.generation != NONE
    epoch = m.epoch if isinstance(m, ConsumerMember) else m.generation
    if inside:
        total |= accepted(me, group, records, Late("commit", m.id, Generation(epoch), m.owned))
    if isinstance(stray, Late):
        total |= accepted(me, group, records, stray)
    return Parts(total)


def settled(m: AnyMember, wire: Any, group: ConsumerGroup, records: ConsumerRecords) -> str:
    """Empty if this slot has nothing left to do, else what is amiss."""
    if isinstance(m, ConsumerMember):
        if group.kind is GroupKind.CLASSIC and m.life is Life.UP and m.state is not ClientState.UNSUBSCRIBED:
            return "not in a classic group"
        return settled_modern(m, wire, group, records)
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
    if group.kind is GroupKind.CLASSIC:
        return ()
    return tuple((r.previous, r.epoch, group.assigned, group.epoch) for r in records)


def _share(setup: Setup, m: AnyMember) -> tuple[Parts, Parts]:
    """Of a client at work: what it owns, and what it subscribes to."""
    return (m.owned, setup.parts(m.topics)) if m.life is Life.UP else (NOTHING, NOTHING)


def views(setup: Setup, mes: list[MemberContext]) -> Iterator[View]:
    """All views of a group of ``setup``."""
    yield View("cluster", ("cluster",), lambda cluster: cluster.parts)
    yield View("group", ("group",), lambda group: (group.kind, group.epoch == group.assigned))
    book = tuple(f"record {letter(slot)}" for slot in setup.slots)
    yield View("stays up", ("group", *book), partial(_stays_up, setup))
    for me in mes:
        a = letter(me.slot)
        m, w, s, r, _ = slot_names(me)
        yield View(f"held {a}", (m, r), _held)
        yield View(f"beyond {a}", (m, r), _beyond)
        yield View(f"commits {a}", (m, s, r, "group"), partial(_commits, me))
        yield View(f"listener {a}", (m,), lambda m: (m.believed, m.owned, m.life))
        yield View(f"records {a}", (r,), holds)
        yield View(f"epochs {a}", ("group", r), _epochs)
        yield View(f"settled {a}", (m, w, "group", r), settled)
        yield View(f"share {a}", (m,), partial(_share, setup))
        yield View(f"life {a}", (m,), lambda m: m.life)
        yield View(f"owned {a}", (m,), lambda m: m.owned)
        if me.static:
            yield View(f"ids {a}", (r,), len)
