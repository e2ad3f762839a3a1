"""Conversion of a group between the two protocols (KIP-848, online migration), and how it loses a member.

A classic group becomes a consumer group when a client of the consumer protocol joins, and a classic one again
when the last of these is gone. What a member may still own decides whether that is safe.
"""

from __future__ import annotations

from rebalance_verifier.model.consumer.state import (
    ClassicLog,
    ConsumerGroup,
    ConsumerRecord,
    ConsumerRecords,
    GroupKind,
    RecordState,
    find,
)
from rebalance_verifier.model.group.observations import Noted, Seen
from rebalance_verifier.model.group.parts import NONE, NOTHING, Generation, GroupState, Parts, Topics
from rebalance_verifier.model.group.setup import MemberContext, Setup

Book = tuple[ConsumerRecords, ...]
"""The records of every slot."""


def following(group: ConsumerGroup) -> Generation:
    """Return the next epoch or generation."""
    lost = NONE if group.log is None else group.log.newest
    return Generation(max(group.epoch, lost) + 1)


def bumped(group: ConsumerGroup) -> ConsumerGroup:
    """Return the group in its next epoch."""
    return group._replace(epoch=following(group))


def subscribed(book: Book) -> Topics:
    """Return the topics that somebody subscribes to."""
    topics = 0
    for records in book:
        for record in records:
            topics |= record.subscribed
    return Topics(topics)


def counted(setup: Setup, group: ConsumerGroup, book: Book) -> ConsumerGroup:
    """Return the group with the metadata of its epoch: of the topics that somebody subscribes to now."""
    if not setup.has_patterns:
        return group
    return group._replace(counted=Parts(setup.parts(subscribed(book)) & group.known))


def may_upgrade(setup: Setup) -> bool:
    """Check whether ``group.consumer.migration.policy`` lets a classic group become a consumer group."""
    return setup.policy in ("bidirectional", "upgrade")


def may_downgrade(setup: Setup) -> bool:
    """Check whether that policy lets a consumer group become a classic one."""
    return setup.policy in ("bidirectional", "downgrade")


def too_many(
    me: MemberContext,
    book: Book,
    record: ConsumerRecord | None,
    mistake: str = "full_group_refuses_static",
) -> bool:
    """Check whether a full group turns away the sender of a request, whose record this is. As specified a
    static member that comes back under a new id is none more; by ``mistake`` it is."""
    most = me.setup.max_size
    if most is None or record is not None or sum(map(len, book)) < most:
        return False
    return not (me.static and book[me.slot]) or mistake in me.setup.coordinator


def admits_classic(setup: Setup) -> bool:
    """Check whether a consumer group takes in members of the classic protocol: not where groups never
    change."""
    return setup.policy != "disabled" or "disabled_admits_classic" in setup.coordinator


def keeps_protocols(setup: Setup) -> bool:
    """Check whether it matters which assignors members list, and which one a classic group has chosen."""
    matters = ("upgrade_reads_last_protocol", "sync_names_first_protocol")
    return setup.lists > 1 and not setup.coordinator.isdisjoint(matters)


def chosen(book: Book) -> str:
    """``ClassicGroup.selectProtocol``: of the assignors that all members list, the one that most of them have
    first; of several the first by name."""
    lists = [record.protocols for records in book for record in records]
    common = [name for name in sorted(set().union(*lists)) if all(name in one for one in lists)]
    votes = [next((name for name in one if name in common), "") for one in lists]
    return max(common, key=votes.count, default="")


def unreadable(setup: Setup, group: ConsumerGroup, book: Book) -> bool:
    """Check whether an upgrade of a classic group fails: as shipped it reads what its members say under the
    protocol that they have agreed on, and there is none yet, or somebody who has joined since lacks it."""
    if group.kind is not GroupKind.CLASSIC:
        return False
    if group.first and "upgrade_needs_protocol" in setup.coordinator:
        return True
    lacks = any(group.protocol not in record.protocols for records in book for record in records)
    return bool(group.protocol) and lacks and "upgrade_reads_last_protocol" in setup.coordinator


def goes_down(setup: Setup, book: Book) -> bool:
    """Check whether a consumer group of these members becomes a classic one."""
    rest = [record for records in book for record in records]
    return may_downgrade(setup) and bool(rest) and all(record.classic for record in rest)


# -- up ------------------------------------------------------------------------------------------------


def upgraded(
    setup: Setup, group: ConsumerGroup, book: Book, cluster: Parts
) -> tuple[ConsumerGroup, Book, Seen]:
    """Return the consumer group that a classic one becomes.

    As shipped a member holds its stored assignment. It may own more: what it claimed in its last JoinGroup
    and nobody has been assigned, which it has to revoke and may not have done yet. As specified that is
    held as pending, and its next JoinGroup, which claims it no more, releases it; and the epoch is raised,
    so that there will be a target for everything that the classic group had not assigned.
    """
    decisions = setup.coordinator
    shipped = "interrupted_holds_nothing" if group.interrupted else "no_barrier_for_withheld"
    stored = 0
    for records in book:
        for record in records:
            stored |= record.assigned & cluster
    after: list[ConsumerRecords] = []
    for records in book:
        converted = []
        for record in records:
            pending = NOTHING if shipped in decisions else Parts(record.claim & cluster & ~stored)
            stored |= pending
            there = record._replace(assigned=Parts(record.assigned & cluster))
            converted.append(_converted(there, group.epoch, pending))
        after.append(tuple(converted))
    seen: Seen = (Noted(f"upgrade of a group that is {_condition(group)}"),) if any(book) else ()
    if any(record.pending for records in after for record in records):
        seen = (*seen, Noted("upgrade while partitions are withheld"))
    epoch = group.epoch if "upgrade_keeps_target" in decisions else following(group)
    known = NOTHING if "upgrade_forgets_topics" in decisions else cluster
    group = ConsumerGroup(kind=GroupKind.CONSUMER, epoch=epoch, assigned=group.epoch, known=known)
    return group, tuple(after), seen


def _condition(group: ConsumerGroup) -> str:
    if group.phase is GroupState.STABLE:
        return "stable"
    if group.phase is GroupState.COMPLETING:
        return "assigning"
    return "interrupted" if group.interrupted else "joining"


def _converted(record: ConsumerRecord, epoch: Generation, pending: Parts) -> ConsumerRecord:
    return record._replace(
        epoch=epoch,
        previous=epoch,
        state=RecordState.UNREVOKED if pending else RecordState.STABLE,
        pending=pending,
        target=record.assigned,
        joined=False,
        claim=NOTHING,
    )


# -- down ----------------------------------------------------------------------------------------------


def downgraded(
    setup: Setup, group: ConsumerGroup, book: Book, *, rebalances: bool
) -> tuple[ConsumerGroup, Book, Seen]:
    """Return the classic group that a consumer group becomes, in the generation of its epoch.

    As shipped a member's assignment is its target, whatever it holds; as specified it is what it holds, so
    that nobody is given a partition that another one may own. As shipped the log does not know that the group
    rebalances, so a failover ends that.
    """
    decisions = setup.coordinator
    moving = any(record.target != record.assigned or record.pending for rs in book for record in rs)
    after = tuple(
        tuple(
            ConsumerRecord(
                record.id,
                assigned=record.target if "downgrade_to_target" in decisions else record.held,
                topics=record.topics,
                classic=True,
                protocols=record.protocols,
            )
            for record in records
        )
        for records in book
    )
    seen: Seen = (Noted("downgrade while partitions move" if moving else "downgrade"),)
    phase = GroupState.PREPARING if rebalances else GroupState.STABLE
    group = ConsumerGroup(
        kind=GroupKind.CLASSIC,
        epoch=group.epoch,
        assigned=group.epoch,
        known=group.known,
        phase=phase,
        protocol=chosen(after),
    )
    logged = rebalances and "rebalance_not_logged" not in decisions
    return written(setup, group, after, rebalances=logged), after, seen


def written(setup: Setup, group: ConsumerGroup, book: Book, *, rebalances: bool = False) -> ConsumerGroup:
    """``group`` with itself in the log, where that matters."""
    if not setup.keeps_log:
        return group
    kept = tuple(tuple(record._replace(joined=False) for record in records) for records in book)
    return group._replace(log=ClassicLog(group.epoch, rebalances, kept, protocol=group.protocol))


# -- a member goes -------------------------------------------------------------------------------------


def removed(
    setup: Setup, group: ConsumerGroup, book: Book, slot: int, member_id: int, *, converts: bool = True
) -> tuple[ConsumerGroup, Book, Seen]:
    """Remove a member from the group; the target of the others is computed at the next heartbeat of anybody.
    The last member of the consumer protocol takes the group back to the classic one, unless it does not
    ``converts``."""
    gone = find(book[slot], member_id)
    if gone is None:
        return group, book, ()
    book = without(book, slot, member_id)
    if group.kind is GroupKind.CLASSIC:
        if not any(book):
            group = group._replace(phase=GroupState.EMPTY, interrupted=False, first=False, protocol="")
            return written(setup, group, book), book, ()
        return (*rebalancing(group, book), ())
    if converts and not gone.classic and goes_down(setup, book):
        return downgraded(setup, group, book, rebalances=True)
    return counted(setup, bumped(group), book), book, ()


def without(book: Book, slot: int, member_id: int) -> Book:
    """``book`` without the record of a member."""
    left = tuple(record for record in book[slot] if record.id != member_id)
    return (*book[:slot], left, *book[slot + 1 :])


def rebalancing(group: ConsumerGroup, book: Book) -> tuple[ConsumerGroup, Book]:
    """Return a classic group that begins a rebalance. ``resetAndPropagateAssignmentWithError``: one that is
    interrupted while it assigns leaves nobody an assignment."""
    if group.phase is GroupState.COMPLETING:
        group = group._replace(interrupted=True)
        book = tuple(tuple(record._replace(assigned=NOTHING) for record in records) for records in book)
    return group._replace(phase=GroupState.PREPARING), book


def failed_over(group: ConsumerGroup, slots: int) -> tuple[ConsumerGroup, Book]:
    """Return a classic group as another broker loads it; no group where none was ever written."""
    log = group.log
    if log is None:
        return ConsumerGroup(epoch=group.epoch, assigned=group.epoch), ((),) * slots
    phase = GroupState.PREPARING if log.rebalances else GroupState.STABLE
    lost = NONE if group.epoch == log.epoch else group.epoch
    loaded = group._replace(
        epoch=log.epoch,
        assigned=log.epoch,
        phase=phase if any(log.book) else GroupState.EMPTY,
        interrupted=False,
        first=False,
        protocol=log.protocol,
        log=log._replace(newest=Generation(max(log.newest, lost))),
    )
    return loaded, log.book
