"""What the coordinator answers to members of the classic protocol: in a classic group, and in a consumer
group.

The classic group is small here, as much as conversions need: one join phase after the other, a leader that
any member may be, and cooperative-sticky's rule that what another member claims is withheld
(``model.classic`` has all of it).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rebalance_verifier.model.consumer import coordinator
from rebalance_verifier.model.consumer.conversion import (
    Book,
    admits_classic,
    chosen,
    downgraded,
    following,
    goes_down,
    rebalancing,
    removed,
    too_many,
    without,
    written,
)
from rebalance_verifier.model.consumer.coordinator import (
    Handled,
    held_by_others,
    news,
    reconciled,
    retarget,
    returned,
    spelled,
    target_members,
    targets,
    with_record,
)
from rebalance_verifier.model.consumer.state import (
    AnyWire,
    Beat,
    BeatKind,
    BeatOk,
    ClassicMember,
    ClassicMessage,
    ClassicStep,
    ConsumerGroup,
    ConsumerRecord,
    ConsumerRecords,
    GroupKind,
    RecordState,
    find,
    put,
)
from rebalance_verifier.model.group.observations import Noted, Seen, TurnedAway
from rebalance_verifier.model.group.parts import (
    NONE,
    NOTHING,
    ClusterState,
    Error,
    Generation,
    GroupState,
    Late,
    Parts,
    Topics,
)
from rebalance_verifier.model.group.setup import MemberContext, Setup
from rebalance_verifier.model.machine import Outcome


def _only(protocol: str) -> tuple[str, ...]:
    """Return the one assignor that an answer names, where that is kept."""
    return (protocol,) if protocol else ()


Answer = tuple[ConsumerGroup, Book, ClassicMessage, Seen, str]
Answers = Iterator[Answer]


def refusal(message: ClassicMessage, error: Error) -> ClassicMessage:
    """Return an error response to ``message``."""
    return ClassicMessage(ClassicStep.REFUSED, message.id, message.generation, error=error)


def arrives(
    me: MemberContext, wire: AnyWire, group: ConsumerGroup, cluster: ClusterState, *book: ConsumerRecords
) -> Iterator[Outcome]:
    """A JoinGroup or a SyncGroup reaches the coordinator."""
    assert isinstance(wire, ClassicMessage)
    handle = _join if wire.step is ClassicStep.JOIN else _sync
    for after, records, answer, seen, choice in handle(me, wire, group, book, cluster.parts):
        yield Outcome((answer, after, *records), choice, seen)


def _join(
    me: MemberContext, message: ClassicMessage, group: ConsumerGroup, book: Book, cluster: Parts
) -> Answers:
    """Of a member, a new one, or a static one that comes in the name of the process before, whatever that
    spoke. An id that is not known is not admitted: its sender still has what it had under it."""
    served = group.kind is GroupKind.CONSUMER and any(book)
    record = find(book[me.slot], message.id)
    if served and not admits_classic(me.setup):
        seen = (Noted("classic member turned away"),)
        yield group, book, refusal(message, Error.INCONSISTENT_GROUP_PROTOCOL), seen, ""
        return
    if too_many(me, book, record) if served else _crowded(me, message, group, book):
        yield _turned_away(me, message, group, book)
        return
    before = book[me.slot][0] if me.static and book[me.slot] and record is None else None
    admits = served and not me.static and "unknown_member_admitted" in me.setup.coordinator
    if record is None and message.generation != NONE and not admits:
        if group.kind is GroupKind.CONSUMER and not any(book):  # maybeDeleteEmptyConsumerGroup
            group = group._replace(kind=GroupKind.NONE)
        yield group, book, refusal(message, Error.UNKNOWN_MEMBER_ID), (), ""
        return
    if before is not None:
        book, record = without(book, me.slot, before.id), returned(before, message.id)
    record = (record or ConsumerRecord(message.id))._replace(classic=True, protocols=message.protocols)
    if served:
        yield from _join_consumer_group(me, message, group, book, cluster, record, before)
        return
    forms = group.phase is GroupState.EMPTY and "upgrade_needs_protocol" in me.setup.coordinator
    first = group.first or forms
    group = group._replace(kind=GroupKind.CLASSIC, first=first)
    record = record._replace(topics=message.topics, claim=message.parts)
    owes = before is not None and bool(before.claim & ~before.assigned)
    if "static_replace_drops_revocation" in me.setup.coordinator:
        owes = False
    if before is not None and group.phase is GroupState.STABLE and not owes:
        book = with_record(book, me.slot, record)
        answer = ClassicMessage(ClassicStep.JOIN_OK, message.id, group.epoch, protocols=_only(group.protocol))
        yield written(me.setup, group, book), book, answer, (Noted("static member returns"),), ""
        return
    group, book = rebalancing(group, with_record(book, me.slot, record))
    waits = find(book[me.slot], message.id)
    assert waits is not None
    book = with_record(book, me.slot, waits._replace(joined=True))
    yield group, book, message._replace(step=ClassicStep.JOIN_WAITS), (), ""


def _crowded(me: MemberContext, message: ClassicMessage, group: ConsumerGroup, book: Book) -> bool:
    """``acceptJoiningMember`` of a classic group: while it joins, whoever comes last is one too many."""
    most, record = me.setup.max_size, find(book[me.slot], message.id)
    if most is None or group.kind is not GroupKind.CLASSIC or group.phase is GroupState.EMPTY:
        return False
    if group.phase is GroupState.PREPARING:
        waiting = sum(one.joined for records in book for one in records)
        return waiting >= most and not (record is not None and record.joined)
    return too_many(me, book, record, "full_classic_refuses_static")


def _turned_away(me: MemberContext, message: ClassicMessage, group: ConsumerGroup, book: Book) -> Answer:
    """Return the refusal of a member too many; one that comes too late to join again has lost its place."""
    member = me.static and bool(book[me.slot]) and group.phase is not GroupState.PREPARING
    seen: Seen = (TurnedAway(me.slot, member),)
    if group.kind is GroupKind.CLASSIC:
        group, book, _ = removed(me.setup, group, book, me.slot, message.id)
    return group, book, refusal(message, Error.GROUP_MAX_SIZE_REACHED), seen, ""


def _join_consumer_group(
    me: MemberContext,
    message: ClassicMessage,
    group: ConsumerGroup,
    book: Book,
    cluster: Parts,
    record: ConsumerRecord,
    before: ConsumerRecord | None,
) -> Answers:
    """It takes its next step to the target, as by a heartbeat that has everything; nobody is waited for. One
    that comes in the name of the last member of the other protocol takes the group back. Where the target is
    not of the group's epoch then, it is left to the classic group's rebalance, in the generation of the epoch
    before this JoinGroup. The answer names generation 0, here none: SyncGroup is refused, and the member
    joins again."""
    kept = record.pattern if "replaced_keeps_pattern" in me.setup.coordinator else Topics(0)
    beat = Beat(BeatKind.STEADY, message.id, record.epoch, message.parts, True, message.topics, kept)
    known = group.epoch
    group, record = news(me.setup, group, book, record, beat, cluster)
    book = with_record(book, me.slot, record)
    seen: Seen = (Noted("classic member in a consumer group"),)
    first = record.protocols[:1]
    down = before is not None and not before.classic and goes_down(me.setup, book)
    down = down and "no_downgrade_on_replace" not in me.setup.coordinator
    due = group.epoch != group.assigned
    changed = before is not None and (before.topics, before.pattern) != (record.topics, record.pattern)
    if down and due and _rebalances(me.setup, changed=changed):
        left, as_it_was, noted = downgraded(me.setup, group._replace(epoch=known), book, rebalances=True)
        answer = ClassicMessage(ClassicStep.JOIN_OK, message.id, NONE, protocols=first)
        yield left, as_it_was, answer, (*seen, *noted), ""
        return
    computes = not (down and due) or "downgrade_computes_in_vain" in me.setup.coordinator
    towards = retarget(me.setup, group, book, cluster) if computes else iter([(group, book, "")])
    for after, computed, choice in towards:
        done: Handled = reconciled(me, beat, after, computed, cluster, seen, choice)
        assert isinstance(done.answer, BeatOk)
        answer = ClassicMessage(ClassicStep.JOIN_OK, message.id, done.answer.epoch, protocols=first)
        if not down:
            yield done.group, done.book, answer, done.seen, choice
            continue
        if due:
            left, as_it_was, noted = downgraded(me.setup, group._replace(epoch=known), book, rebalances=False)
            yield left, as_it_was, answer, (*done.seen, *noted), choice
            continue
        rest = [record for records in done.book for record in records]
        there = all(r.state is RecordState.STABLE and r.epoch == done.group.assigned for r in rest)
        rebalances = not there and "static_downgrade_without_rebalance" not in me.setup.coordinator
        ended, records, noted = downgraded(me.setup, done.group, done.book, rebalances=rebalances)
        yield ended, records, answer, (*done.seen, *noted), choice


def _rebalances(setup: Setup, *, changed: bool) -> bool:
    """Check whether a group that is taken back while a target is due rebalances; ``changed``: by a member
    with another subscription. In some releases it does for that reason alone (KAFKA-20273), or never, and a
    target is computed that is thrown away (KAFKA-19546). Its member is told another generation than the
    group's then, so that it joins once more."""
    if "downgrade_computes_in_vain" in setup.coordinator:
        return False
    return changed or "downgrade_misses_due_target" not in setup.coordinator


def _sync(
    me: MemberContext, message: ClassicMessage, group: ConsumerGroup, book: Book, cluster: Parts
) -> Answers:
    """Partitions of a topic that is gone have no name any more, so they are in no answer."""
    record = find(book[me.slot], message.id)
    error: Error | None = None
    named = "sync_names_first_protocol" in me.setup.coordinator
    answer = message._replace(step=ClassicStep.SYNC_WAITS)
    if record is None or not record.classic:
        error = Error.UNKNOWN_MEMBER_ID
    elif group.kind is GroupKind.CONSUMER:
        behind = record.epoch < _newest(me, group) and record.state is not RecordState.UNREVOKED
        if message.generation != record.epoch:
            error = Error.ILLEGAL_GENERATION
        elif named and message.protocols != record.protocols[:1]:
            error = Error.INCONSISTENT_GROUP_PROTOCOL
        elif behind:
            error = Error.REBALANCE_IN_PROGRESS
        answer = message._replace(step=ClassicStep.SYNC_OK, parts=Parts(record.assigned & cluster))
    elif message.generation != group.epoch:
        error = Error.ILLEGAL_GENERATION
    elif named and message.protocols != _only(group.protocol):
        error = Error.INCONSISTENT_GROUP_PROTOCOL
    elif group.phase is GroupState.PREPARING:
        error = Error.REBALANCE_IN_PROGRESS
    elif group.phase is GroupState.STABLE:
        answer = message._replace(step=ClassicStep.SYNC_OK, parts=Parts(record.assigned & cluster))
    yield group, book, answer if error is None else refusal(message, error), (), ""


def accepted(me: MemberContext, group: ConsumerGroup, records: ConsumerRecords, commit: Late) -> Parts:
    """Return what of a commit is stored: in a classic group all of it, in its generation."""
    if group.kind is not GroupKind.CLASSIC:
        return coordinator.accepted(me, records, commit.id, commit.generation, commit.parts)
    record = find(records, commit.id) is not None and group.phase is not GroupState.COMPLETING
    return commit.parts if record and commit.generation == group.epoch else NOTHING


def heartbeat(me: MemberContext, member: ClassicMember, group: ConsumerGroup, book: Book) -> Error | None:
    """Return the answer to a heartbeat of the classic protocol, None if nothing is the matter."""
    record = find(book[me.slot], member.id)
    if record is None or not record.classic:
        return Error.UNKNOWN_MEMBER_ID
    if group.kind is not GroupKind.CONSUMER:
        if member.generation != group.epoch:
            return Error.ILLEGAL_GENERATION
        return Error.REBALANCE_IN_PROGRESS if group.phase is GroupState.PREPARING else None
    if member.generation != record.epoch:
        return Error.ILLEGAL_GENERATION
    waits = record.state is RecordState.UNRELEASED
    freed = waits and not record.target & ~record.assigned & held_by_others(book, me.slot, record.id)
    moves = record.epoch < _newest(me, group) or record.state is RecordState.UNREVOKED or freed
    return Error.REBALANCE_IN_PROGRESS if moves else None


def _newest(me: MemberContext, group: ConsumerGroup) -> Generation:
    """Return the epoch that a classic member of a consumer group has to reach."""
    return group.assigned if "rejoin_on_target_epoch" in me.setup.coordinator else group.epoch


# -- the classic group ---------------------------------------------------------------------------------


def _split(setup: Setup, rest: Sequence[ConsumerRecords | AnyWire]) -> tuple[Book, list[AnyWire]]:
    """Return the records of all slots, and their wires."""
    size = len(setup.slots)
    return tuple(rest[:size]), list(rest[size:])  # type: ignore[arg-type]


def join_phase_ends(
    setup: Setup, group: ConsumerGroup, *rest: ConsumerRecords | AnyWire
) -> Iterator[Outcome]:
    """Every member has joined: a new generation."""
    book, wires = _split(setup, rest)
    members = [record for records in book for record in records]
    if group.kind is not GroupKind.CLASSIC or group.phase is not GroupState.PREPARING:
        return
    if not members or not all(record.joined for record in members):
        return
    generation = following(group)
    protocol = chosen(book)
    group = group._replace(
        epoch=generation,
        assigned=generation,
        phase=GroupState.COMPLETING,
        interrupted=False,
        first=False,
        protocol=protocol,
    )
    book = tuple(tuple(record._replace(joined=False) for record in records) for records in book)
    answers = [
        wire._replace(step=ClassicStep.JOIN_OK, generation=generation, protocols=_only(protocol))
        if isinstance(wire, ClassicMessage) and wire.step is ClassicStep.JOIN_WAITS
        else wire
        for wire in wires
    ]
    yield Outcome((group, *book, *answers), seen=(Noted("classic generation"),))


def decides(
    setup: Setup, group: ConsumerGroup, cluster: ClusterState, *rest: ConsumerRecords | AnyWire
) -> Iterator[Outcome]:
    """The leader's SyncGroup: a balanced assignment, and what another member claims is withheld."""
    book, wires = _split(setup, rest)
    if group.kind is not GroupKind.CLASSIC or group.phase is not GroupState.COMPLETING:
        return
    syncs = [
        wire for wire in wires if isinstance(wire, ClassicMessage) and wire.step is ClassicStep.SYNC_WAITS
    ]
    if not any(wire.generation == group.epoch for wire in syncs):
        return
    claims = tuple(tuple(r._replace(target=r.claim) for r in records) for records in book)
    members = target_members(setup, claims, cluster.parts)
    group = group._replace(phase=GroupState.STABLE)
    for parts in targets(setup, members):
        after = list(book)
        for member, wanted in zip(members, parts, strict=True):
            record = find(after[member.slot], member.id)
            assert record is not None
            others = 0
            for slot, records in enumerate(book):
                for other in records:
                    if (slot, other.id) != (member.slot, member.id):
                        others |= other.claim
            given = record._replace(assigned=Parts(wanted & ~others))
            after[member.slot] = put(after[member.slot], given)
        answers = [_synced(wire, group, after[slot]) for slot, wire in enumerate(wires)]
        stored = written(setup, group, tuple(after))
        yield Outcome((stored, *after, *answers), spelled(setup, members, parts))


def _synced(wire: AnyWire, group: ConsumerGroup, records: ConsumerRecords) -> AnyWire:
    if not isinstance(wire, ClassicMessage) or wire.step is not ClassicStep.SYNC_WAITS:
        return wire
    record = find(records, wire.id)
    if record is None or wire.generation != group.epoch:
        return wire
    return wire._replace(step=ClassicStep.SYNC_OK, parts=record.assigned)


def refuses(
    me: MemberContext, wire: AnyWire, group: ConsumerGroup, records: ConsumerRecords
) -> Iterator[Outcome]:
    """A request that waits is refused: the group has been converted, or rebalances anew."""
    assert isinstance(wire, ClassicMessage)
    record = find(records, wire.id)
    if wire.step is ClassicStep.JOIN_WAITS:
        waits = group.kind is GroupKind.CLASSIC and record is not None and record.joined
    else:
        here = group.kind is GroupKind.CLASSIC and group.phase is GroupState.COMPLETING
        waits = here and record is not None and wire.generation == group.epoch
    if not waits:
        error = Error.UNKNOWN_MEMBER_ID if record is None else Error.REBALANCE_IN_PROGRESS
        yield Outcome((refusal(wire, error),))
