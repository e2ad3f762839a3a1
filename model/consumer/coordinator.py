"""The coordinator's consumer group: heartbeats, targets, removals. ``GroupMetadataManager`` of KIP-848.

One heartbeat is one atomic step that writes one batch of records, so a failover loses none of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import cache
from itertools import permutations
from typing import NamedTuple

from rebalance_verifier.model.consumer.assignors import SERVER_ASSIGNORS, Subscriber
from rebalance_verifier.model.consumer.conversion import (
    Book,
    bumped,
    counted,
    may_upgrade,
    removed,
    subscribed,
    too_many,
    unreadable,
    upgraded,
    without,
)
from rebalance_verifier.model.consumer.observations import (
    Advanced,
    BeatAnswered,
    Committed,
    Granted,
    Targeted,
)
from rebalance_verifier.model.consumer.reconcile import accepts, drops_anew, reconcile
from rebalance_verifier.model.consumer.state import (
    Beat,
    BeatError,
    BeatKind,
    BeatOk,
    BeatRefused,
    BeatWire,
    ConsumerGroup,
    ConsumerRecord,
    ConsumerRecords,
    GroupKind,
    LateCommit,
    RecordState,
    find,
    put,
)
from rebalance_verifier.model.group.observations import Noted, Seen, TurnedAway
from rebalance_verifier.model.group.parts import (
    NONE,
    NOTHING,
    ClusterState,
    Generation,
    Late,
    Parts,
    Slot,
    each,
    union,
)
from rebalance_verifier.model.group.setup import MemberContext, Setup, letter
from rebalance_verifier.model.machine import Outcome


class Handled(NamedTuple):
    """Effect of a heartbeat: group and records afterwards, the answer, what was seen, which target."""

    group: ConsumerGroup
    book: Book
    answer: BeatOk | BeatRefused
    seen: Seen = ()
    choice: str = ""


# -- the target ----------------------------------------------------------------------------------------


class TargetMember(NamedTuple):
    """One member as the target is computed for it."""

    slot: Slot
    id: int
    subscribed: Parts
    before: Parts


def target_members(setup: Setup, book: Book, cluster: Parts) -> tuple[TargetMember, ...]:
    """Return the members of the group, and what there is for each."""
    return tuple(
        TargetMember(Slot(slot), r.id, Parts(setup.parts(r.subscribed) & cluster), Parts(r.target & cluster))
        for slot, records in enumerate(book)
        for r in records
    )


def targets(setup: Setup, members: tuple[TargetMember, ...]) -> tuple[tuple[Parts, ...], ...]:
    """Return every target that the group's assignor may compute, since ids are random and decide the order;
    under given names one."""
    if setup.targets is not None:
        return tuple(setup.targets(members))
    switches = setup.coordinator & {"extra_by_iteration_order"}
    return _targets(setup.topics, setup.server_assignor, setup.naming, members, switches)


@cache
def _targets(
    topics: tuple[Parts, ...],
    name: str,
    naming: str,
    members: tuple[TargetMember, ...],
    switches: Collection[str],
) -> tuple[tuple[Parts, ...], ...]:
    assign = SERVER_ASSIGNORS[name]
    groups = [Parts(0)] if name == "uniform" else list(topics)
    every = each(union([member.subscribed | member.before for member in members]))
    orders: Sequence[Sequence[int]] = [every]
    lines: Sequence[Sequence[int]] = [range(len(members))]
    if naming == "every":
        orders, lines = list(permutations(every)), list(permutations(range(len(members))))
    found: dict[tuple[Parts, ...], None] = {}
    for line in lines:
        for order in orders:
            result = [0] * len(members)
            for group in groups:
                within = group or union(topics)
                seen = [Subscriber(Parts(members[i].subscribed & within), members[i].before) for i in line]
                parts = assign(seen, [p for p in order if within >> p & 1], switches)
                for i, some in zip(line, parts, strict=True):
                    result[i] |= some
            found[tuple(map(Parts, result))] = None
    return tuple(sorted(found))


def spelled(setup: Setup, members: Sequence[TargetMember], parts: Sequence[Parts]) -> str:
    """Return a target as text: ``A t-0, B t-1 t-2``."""
    return ", ".join(
        f"{letter(member.slot)} {setup.spell(some)}" for member, some in zip(members, parts, strict=True)
    )


def alike(book: Book) -> bool:
    """``ConsumerGroup.subscriptionType``: all members subscribe to the same, by name or by pattern alone."""
    pairs = {(record.topics, record.pattern) for records in book for record in records}
    return len(pairs) < 2 and not any(topics and pattern for topics, pattern in pairs)


def retarget(
    setup: Setup, group: ConsumerGroup, book: Book, cluster: Parts, *, stale: bool = False
) -> Iterator[tuple[ConsumerGroup, Book, str]]:
    """Yield the group with a target of its epoch; several where the assignor has a choice, or it is
    delayed. By mistake members pass for alike where the group was so before (``stale``): each is given what
    any one of them subscribes to. (Not where it had topics of a pattern that ended with its last member.)"""
    if group.epoch == group.assigned:
        yield group, book, ""
        return
    if setup.delays:
        yield group, book, ""
    members = target_members(setup, book, cluster)
    group = group._replace(assigned=group.epoch)
    inputs = [members]
    if stale and "stale_subscription_type" in setup.coordinator:
        subscriptions = dict.fromkeys(member.subscribed for member in members)
        inputs += [tuple(one._replace(subscribed=some) for one in members) for some in subscriptions]
    for parts in dict.fromkeys(parts for some in inputs for parts in targets(setup, some)):
        after = list(book)
        for member, some in zip(members, parts, strict=True):
            record = find(after[member.slot], member.id)
            assert record is not None
            after[member.slot] = put(after[member.slot], record._replace(target=some))
        yield group, tuple(after), spelled(setup, members, parts)


def others_topics(setup: Setup, book: Book) -> Parts:
    """Return what a target gives to members that do not subscribe to it. Those of the classic protocol
    subscribe by name."""
    return union(
        [
            record.target & ~setup.parts(record.topics if record.classic else record.subscribed)
            for records in book
            for record in records
        ]
    )


def held_by_others(book: Book, slot: int, member_id: int) -> Parts:
    """Return what members other than this one hold, and what looks so: partitions that have an epoch."""
    held = 0
    for other, records in enumerate(book):
        for record in records:
            if (other, record.id) != (slot, member_id):
                held |= record.held & ~record.unmarked
    return Parts(held)


# -- heartbeats ----------------------------------------------------------------------------------------


def heartbeat(
    me: MemberContext, beat: Beat, group: ConsumerGroup, book: Book, cluster: Parts
) -> Iterator[Handled]:
    """``consumerGroupHeartbeat``."""
    record = find(book[me.slot], beat.id)
    if beat.kind in (BeatKind.LEAVE, BeatKind.AWAY):
        yield _leaves(me, beat, group, book, record)
        return
    error = _refusal(me, beat, group, book, record)
    if error is not None:
        yield _refused(me, beat, group, book, error)
        return
    seen: Seen = ()
    if unreadable(me.setup, group, book):
        book = tuple(tuple(r._replace(joined=False) for r in records) for records in book)  # they are refused
        yield _refused(me, beat, group, book, BeatError.UNKNOWN_SERVER_ERROR)
        return
    if group.kind is GroupKind.CLASSIC and too_many(me, book, record):
        yield _refused(me, beat, group, book, BeatError.GROUP_MAX_SIZE_REACHED)
        return
    if group.kind is GroupKind.CLASSIC:
        group, book, seen = upgraded(me.setup, group, book, cluster)
    if record is None:
        record, book, noted = _joins(me, beat, book)
        seen = (*seen, *noted)
    elif beat.kind is BeatKind.STEADY and beat.epoch != record.epoch:
        seen = (*seen, Noted("heartbeat at the previous epoch"))
    elif beat.kind is BeatKind.JOIN and record.away:
        record, seen = returned(record, beat.id), (*seen, *comes_back(book))
    elif beat.kind is BeatKind.JOIN:
        seen = (*seen, Noted("known member joins again"))
    known, before = group.epoch, record
    group, record = news(me.setup, group, book, record, beat, cluster)
    stale = group.epoch == known and record.pattern != before.pattern and alike(book)
    book = with_record(book, me.slot, record)
    for after, computed, choice in retarget(me.setup, group, book, cluster, stale=stale):
        yield reconciled(me, beat, after, computed, cluster, seen, choice)


def _refusal(
    me: MemberContext, beat: Beat, group: ConsumerGroup, book: Book, record: ConsumerRecord | None
) -> BeatError | None:
    """Return why a heartbeat that joins or goes on is refused, None if it is not."""
    records = book[me.slot]
    other = next((r for r in records if r.id != beat.id), None) if me.static else None
    if group.kind is GroupKind.CONSUMER and too_many(me, book, record):
        return BeatError.GROUP_MAX_SIZE_REACHED
    if beat.kind is BeatKind.JOIN:
        if other is not None and not _replaceable(other, me.setup.coordinator):
            return BeatError.UNRELEASED_INSTANCE_ID
        if record is not None and me.static and not _comes_back(record, me.setup.coordinator):
            return BeatError.UNRELEASED_INSTANCE_ID
        if group.kind is GroupKind.CLASSIC and any(book) and not may_upgrade(me.setup):
            return BeatError.GROUP_ID_NOT_FOUND
        if record is None or "reject_epoch0_of_known" not in me.setup.coordinator:
            return None
        return None if record.previous == NONE else BeatError.FENCED_MEMBER_EPOCH
    if group.kind is not GroupKind.CONSUMER:
        return BeatError.GROUP_ID_NOT_FOUND
    if record is None:
        return BeatError.FENCED_INSTANCE_ID if other is not None else BeatError.UNKNOWN_MEMBER_ID
    return None if accepts(record, beat.epoch, beat.owned) else BeatError.FENCED_MEMBER_EPOCH


def _replaceable(record: ConsumerRecord, decisions: Collection[str]) -> bool:
    """Check whether another process may come in the name of this static member: it has left, or cannot say
    so."""
    return record.away or (record.classic and "classic_static_must_leave" not in decisions)


def _comes_back(record: ConsumerRecord, decisions: Collection[str]) -> bool:
    """Check whether a static member may join again under its own id."""
    return "static_rejoin_unreleased" not in decisions or _replaceable(record, decisions)


def _refused(me: MemberContext, beat: Beat, group: ConsumerGroup, book: Book, error: BeatError) -> Handled:
    inside = find(book[me.slot], beat.id) is not None
    classic = me.static and any(record.classic for record in book[me.slot])
    seen: Seen = (BeatAnswered(me.slot, beat.kind, error, inside, classic),)
    if error is BeatError.GROUP_MAX_SIZE_REACHED:
        seen = (*seen, TurnedAway(me.slot, me.static and bool(book[me.slot])))
    return Handled(group, book, BeatRefused(beat.id, error), seen)


def _joins(me: MemberContext, beat: Beat, book: Book) -> tuple[ConsumerRecord, Book, Seen]:
    """Return a new member id: a new member, or a static one that comes back in the name of the one before."""
    if not me.static or not book[me.slot]:
        return ConsumerRecord(beat.id), book, (Noted("member joins"),)
    before = book[me.slot][0]
    return returned(before, beat.id), without(book, me.slot, before.id), comes_back(book)


def comes_back(book: Book) -> Seen:
    """Return what is seen of a static member that comes back."""
    seen: Seen = (Noted("static member returns"),)
    return (*seen, Noted("static member returns while something is unreleased")) if _moves(book) else seen


def _moves(book: Book) -> bool:
    """Check whether somebody has to give something up, or waits for it."""
    return any(record.state is not RecordState.STABLE for records in book for record in records)


def returned(before: ConsumerRecord, member_id: int) -> ConsumerRecord:
    """Return a static member that comes back: what the process before had, and nothing that this one has
    shown."""
    return before._replace(id=member_id, epoch=NONE, previous=NONE, away=False, classic=False, timed=None)


def news(
    setup: Setup, group: ConsumerGroup, book: Book, record: ConsumerRecord, beat: Beat, cluster: Parts
) -> tuple[ConsumerGroup, ConsumerRecord]:
    """Return the group's epoch after what the heartbeat brings: another subscription; and other metadata of
    the topics that somebody subscribes to."""
    if group.kind is GroupKind.NONE:
        group = group._replace(kind=GroupKind.CONSUMER, known=cluster)
    after = subscribed_anew(record, beat, book)
    changed = (group.known ^ cluster) & ~unwatched(setup, book)
    called = _calls(setup, record, after) or changed & setup.parts(beat.topics | subscribed(book))
    group = group._replace(known=Parts(group.known ^ changed))
    if called:
        others = tuple(tuple(one for one in records if one is not record) for records in book)
        group = counted(setup, bumped(group), (*others, (after,)))
    elif _has_nothing_now(group, record, after) and drops_anew(setup.coordinator):
        after = after._replace(previous=after.epoch)
    return group, after


def subscribed_anew(record: ConsumerRecord, beat: Beat, book: Book) -> ConsumerRecord:
    """Return a record with the subscription of a heartbeat; a pattern of another member is resolved
    already."""
    if record.pattern == beat.pattern:
        return record._replace(topics=beat.topics)
    same = (one.matched for records in book for one in records if one.pattern == beat.pattern)
    matched = next(same, None) if beat.pattern else None
    return record._replace(topics=beat.topics, pattern=beat.pattern, matched=matched)


def _calls(setup: Setup, before: ConsumerRecord, after: ConsumerRecord) -> bool:
    """Check whether another subscription needs another target. As shipped one by a pattern that is not
    resolved yet does not, nor in some releases the end of one."""
    if before.topics != after.topics or before.pattern == after.pattern:
        return before.topics != after.topics
    if not after.pattern:
        return "ended_pattern_keeps_target" not in setup.coordinator
    return after.matched is not None or "new_pattern_keeps_target" not in setup.coordinator


def _has_nothing_now(group: ConsumerGroup, before: ConsumerRecord, after: ConsumerRecord) -> bool:
    """Check whether a member at the epoch of the target subscribes to nothing any more: its pattern has yet
    to be resolved. That is a step of its record, even if it held nothing."""
    there = before.state is RecordState.STABLE and before.epoch == group.assigned
    return there and before.pattern != after.pattern and not (after.subscribed or after.pending)


def unwatched(setup: Setup, book: Book) -> Parts:
    """Return the partitions of topics that, by mistake, no heartbeat looks at: nobody names them."""
    if "pattern_topics_unwatched" not in setup.coordinator:
        return NOTHING
    named = union([record.topics for records in book for record in records])
    return setup.parts(subscribed(book) & ~named)


def resolve(
    setup: Setup, group: ConsumerGroup, cluster: ClusterState, *book: ConsumerRecords
) -> Iterator[Outcome]:
    """The coordinator looks which topics match the patterns, on a thread of its own: for a new pattern, and
    after a topic was created. Where that changes something the group has a new epoch. (From 4.1 on it looks
    every ten minutes too; that a topic is gone is known before, by its metadata.)"""
    due = any(_unresolved(setup, record, cluster.parts) for records in book for record in records)
    if group.kind is not GroupKind.CONSUMER or not due:
        return
    after = tuple(tuple(_resolved(setup, record, cluster.parts) for record in records) for records in book)
    before, now = ([r.matched or 0 for records in some for r in records] for some in (book, after))
    looked = counted(setup, group._replace(known=cluster.parts), after)
    if before != now or looked.counted != group.counted:
        group = bumped(looked)
    yield Outcome((group, *after), seen=(Noted("patterns resolved"),))


def _unresolved(setup: Setup, record: ConsumerRecord, cluster: Parts) -> bool:
    """Check whether a topic that matches the pattern of a member has not been found, or nobody has looked."""
    missed = setup.matching(record.pattern, cluster) & ~(record.matched or 0)
    return bool(missed) or (record.pattern != 0 and record.matched is None)


def _resolved(setup: Setup, record: ConsumerRecord, cluster: Parts) -> ConsumerRecord:
    return record._replace(matched=setup.matching(record.pattern, cluster)) if record.pattern else record


def reconciled(
    me: MemberContext,
    beat: Beat,
    group: ConsumerGroup,
    book: Book,
    cluster: Parts,
    seen: Seen,
    choice: str,
) -> Handled:
    """The member that calls takes its next step to the target, and is answered."""
    record = find(book[me.slot], beat.id)
    assert record is not None
    wanted = me.setup.parts(record.subscribed)
    kept = Parts(-1) if "subscription_not_followed" in me.setup.coordinator else wanted
    others = held_by_others(book, me.slot, beat.id)
    after = reconcile(
        record,
        target=Parts(record.target & kept),
        subscribed=kept,
        owned=beat.owned,
        epoch=group.assigned,
        shown=beat.epoch,
        others=others,
        decisions=me.setup.coordinator,
    )
    foreign = others_topics(me.setup, book) if choice else NOTHING
    gained = Parts(after.assigned & ~record.held)
    truly_held = union([r.held for s, rs in enumerate(book) for r in rs if (s, r.id) != (me.slot, beat.id)])
    notes: list[object] = [] if not foreign else [Targeted(me.slot, foreign)]
    if gained:
        notes.append(Granted(me.slot, gained, truly_held, Parts(gained & ~wanted)))
    if after.assigned & record.pending:
        notes.append(Noted("partition returns to its owner"))
    if after.state is not record.state:
        notes.append(Noted(f"member is {after.state}"))
    before = (record.epoch, group.assigned, group.epoch)
    notes.append(Advanced(me.slot, before, (after.epoch, group.assigned, group.epoch)))
    news = beat.full or after.assigned != record.assigned
    answer = BeatOk(beat.id, after.epoch, after.assigned if news else None)
    return Handled(group, with_record(book, me.slot, after), answer, (*seen, *notes), choice)


def _leaves(
    me: MemberContext, beat: Beat, group: ConsumerGroup, book: Book, record: ConsumerRecord | None
) -> Handled:
    """Epoch -1: out of the group. Epoch -2: a static member that keeps what it has."""
    if record is None:
        return _refused(me, beat, group, book, BeatError.UNKNOWN_MEMBER_ID)
    answer = BeatOk(beat.id, NONE, None)
    if beat.kind is BeatKind.AWAY:
        gone = record._replace(epoch=NONE, previous=NONE, pending=NOTHING, away=True)
        seen: Seen = (Noted("static member goes away while something is unreleased"),) if _moves(book) else ()
        return Handled(group, with_record(book, me.slot, gone), answer, seen)
    group, book, seen = removed(me.setup, group, book, me.slot, beat.id)
    return Handled(group, book, answer, seen)


def with_record(book: Book, slot: int, record: ConsumerRecord) -> Book:
    """``book`` with the record of one slot replaced, or with a new one."""
    return (*book[:slot], put(book[slot], record), *book[slot + 1 :])


# -- commits -------------------------------------------------------------------------------------------


def accepted(
    me: MemberContext, records: ConsumerRecords, member_id: int, epoch: Generation, parts: Parts
) -> Parts:
    """Return the partitions of a commit that are stored (KIP-1251): those that the member still holds. As
    shipped all at its epoch, which stays when a revocation is followed by another one."""
    record = find(records, member_id)
    if record is None or epoch == NONE or epoch > record.epoch:
        return NOTHING
    if epoch == record.epoch:
        return parts if "commit_any_at_epoch" in me.setup.coordinator else Parts(parts & record.held)
    return NOTHING if "commit_epoch_equality" in me.setup.coordinator else Parts(parts & record.held)


def late_arrives(me: MemberContext, stray: LateCommit, records: ConsumerRecords) -> Iterator[Outcome]:
    """A commit that took long arrives; its answer changes nothing at the client."""
    assert isinstance(stray, Late)
    stored = accepted(me, records, stray.id, stray.generation, stray.parts)
    record = find(records, stray.id)
    held = NOTHING if record is None or record.away else Parts(stray.parts & record.held)
    yield Outcome((None,), seen=(Committed(me.slot, stray.parts, stored, held),))


# -- as actions ----------------------------------------------------------------------------------------


def arrives(
    me: MemberContext,
    wire: BeatWire,
    group: ConsumerGroup,
    cluster: ClusterState,
    *book: ConsumerRecords,
) -> Iterator[Outcome]:
    """A heartbeat reaches the coordinator."""
    assert isinstance(wire, Beat)
    for done in heartbeat(me, wire, group, book, cluster.parts):
        yield Outcome((done.answer, done.group, *done.book), done.choice, done.seen)
