"""The values that a consumer group (KIP-848) is made of: client, coordinator, what is on the wire.

Made as those of the classic protocol (``model.classic.state``), whose names for sets of
partitions, generations and slots are used here too: an epoch is a ``Generation``. Epochs that the wire writes
as 0, -1 and -2 are no numbers here: a heartbeat joins, leaves or goes away.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple

from rebalance_verifier.model.group.parts import (
    NO_ID,
    NONE,
    NOTHING,
    Generation,
    GroupState,
    Late,
    Life,
    MemberState,
    Names,
    Parts,
    Topics,
    rename,
)

# -- the client ----------------------------------------------------------------------------------------


class ClientState(StrEnum):
    """``MemberState`` of the Java client, as far as it is seen between two steps.

    FENCED: the membership is gone, and onPartitionsLost has not run. STALE: the same after the client left
    because its application polled too late.
    """

    UNSUBSCRIBED = "UNSUBSCRIBED"
    JOINING = "JOINING"
    RECONCILING = "RECONCILING"
    ACKNOWLEDGING = "ACKNOWLEDGING"
    STABLE = "STABLE"
    FENCED = "FENCED"
    STALE = "STALE"


INSIDE = (ClientState.RECONCILING, ClientState.ACKNOWLEDGING, ClientState.STABLE)
"""States of a client that believes to be a member."""


class ConsumerMember(NamedTuple):
    """One client, as its own fields show it.

    ``owned`` is what it consumes, ``believed`` what its listener must believe. ``claim`` is the assignment
    that it has reconciled last, which it acknowledges; ``unsent``: it has not. ``target`` is the newest
    assignment it received; ``fresh``: it has not begun to reconcile it. ``goal`` is the one that it is
    reconciling; ``calls``: it consumes that already, and onPartitionsAssigned runs. ``full``: its next
    heartbeat carries every field, since an answer was lost. ``topics`` are those that it subscribes to by
    name, ``pattern`` those that match its pattern, there or not.
    """

    life: Life = Life.DOWN
    stage: int = 0
    state: ClientState = ClientState.UNSUBSCRIBED
    id: int = NO_ID
    epoch: Generation = NONE
    owned: Parts = NOTHING
    believed: Parts = NOTHING
    claim: Parts = NOTHING
    unsent: bool = False
    target: Parts | None = None
    fresh: bool = False
    goal: Parts | None = None
    calls: bool = False
    full: bool = False
    topics: Topics = Topics(0)
    pattern: Topics = Topics(0)

    @property
    def subscribes(self) -> bool:
        """Check whether its application has subscribed to anything."""
        return bool(self.topics | self.pattern)


# -- what is sent --------------------------------------------------------------------------------------


class BeatKind(StrEnum):
    """Purpose of a heartbeat, by its epoch: 0, greater, -1, -2."""

    JOIN = "join"
    STEADY = "steady"
    LEAVE = "leave"
    AWAY = "away"


class BeatError(StrEnum):
    """``org.apache.kafka.common.protocol.Errors``; DISCONNECT is the client's own."""

    UNKNOWN_MEMBER_ID = "UNKNOWN_MEMBER_ID"
    FENCED_MEMBER_EPOCH = "FENCED_MEMBER_EPOCH"
    UNRELEASED_INSTANCE_ID = "UNRELEASED_INSTANCE_ID"
    FENCED_INSTANCE_ID = "FENCED_INSTANCE_ID"
    GROUP_ID_NOT_FOUND = "GROUP_ID_NOT_FOUND"
    UNKNOWN_SERVER_ERROR = "UNKNOWN_SERVER_ERROR"
    GROUP_MAX_SIZE_REACHED = "GROUP_MAX_SIZE_REACHED"
    DISCONNECT = "disconnect"


class Beat(NamedTuple):
    """ConsumerGroupHeartbeat request on its way. ``owned`` is its topicPartitions, None where the field is
    absent; ``full``: it carries every field. ``pattern``: the topics that match its SubscribedTopicRegex."""

    kind: BeatKind
    id: int
    epoch: Generation
    owned: Parts | None
    full: bool
    topics: Topics
    pattern: Topics = Topics(0)


class BeatOk(NamedTuple):
    """ConsumerGroupHeartbeat response; ``parts`` is None for no news of the assignment."""

    id: int
    epoch: Generation
    parts: Parts | None


class BeatRefused(NamedTuple):
    """An error response to a heartbeat of ``id``."""

    id: int
    error: BeatError


BeatWire = Beat | BeatOk | BeatRefused | None
"""The heartbeat of one client: at most one is outstanding."""

LateCommit = Late | None
"""Beside it: a commit that takes long."""


# -- members of the classic protocol -------------------------------------------------------------------


class ClassicMember(NamedTuple):
    """One consumer of the classic protocol, as far as a migration needs it (``model.classic`` has all of
    it).

    ``state`` as there; ``rejoin``: it has been called to a rebalance. ``generation`` NONE: it is in no group.
    """

    life: Life = Life.DOWN
    stage: int = 0
    state: MemberState = MemberState.UNJOINED
    id: int = NO_ID
    generation: Generation = NONE
    owned: Parts = NOTHING
    believed: Parts = NOTHING
    rejoin: bool = True
    topics: Topics = Topics(0)


class ClassicStep(StrEnum):
    """Kind of a message of the classic protocol, and whether it waits at the coordinator."""

    JOIN = "JoinGroup"
    JOIN_WAITS = "JoinGroup waits"
    JOIN_OK = "JoinGroup is answered"
    SYNC = "SyncGroup"
    SYNC_WAITS = "SyncGroup waits"
    SYNC_OK = "SyncGroup is answered"
    REFUSED = "refused"


REQUESTS = (ClassicStep.JOIN, ClassicStep.SYNC)
"""On their way to the coordinator."""

WAITING = (ClassicStep.JOIN_WAITS, ClassicStep.SYNC_WAITS)
"""There, and answered later."""

ANSWERS = (ClassicStep.JOIN_OK, ClassicStep.SYNC_OK, ClassicStep.REFUSED)
"""On their way back."""


class ClassicMessage(NamedTuple):
    """JoinGroup or SyncGroup of a member. ``parts`` is what it claims, or is assigned; ``generation`` that of
    its sender, or of the answer; ``error`` of a refusal. ``protocols``: its list of assignors, or the one
    that it is about, kept only where that matters."""

    step: ClassicStep
    id: int
    generation: Generation
    parts: Parts = NOTHING
    topics: Topics = Topics(0)
    error: str = ""
    protocols: tuple[str, ...] = ()


AnyMember = ConsumerMember | ClassicMember
AnyWire = BeatWire | ClassicMessage


# -- the coordinator -----------------------------------------------------------------------------------


class RecordState(StrEnum):
    """``modern.MemberState``: UNREVOKED waits for the member, UNRELEASED for others."""

    STABLE = "STABLE"
    UNREVOKED = "UNREVOKED_PARTITIONS"
    UNRELEASED = "UNRELEASED_PARTITIONS"


class ConsumerRecord(NamedTuple):
    """The coordinator's record of one member id.

    ``epoch`` is that of the last target it reached, NONE while it joins or is ``away`` (a static member that
    left with epoch -2). ``previous`` is the epoch that it may still show after a lost answer. ``assigned``
    and ``pending`` (to be revoked) are disjoint. ``unmarked`` is held and looks free: a mistake makes it so.
    ``classic``: it speaks the classic protocol. In a classic group ``assigned`` is its stored assignment,
    ``claim`` what its last JoinGroup claimed, and ``joined`` that this waits; there is no epoch and no
    target. ``protocols``: its list of assignors, where that matters. ``timed``: by mistake a failover has
    set a rebalance timeout for it, in this epoch; what it had to revoke then. ``pattern``: the topics that
    match its SubscribedTopicRegex; ``matched``: those that the coordinator has found, None where it has yet
    to look.
    """

    id: int
    epoch: Generation = NONE
    previous: Generation = NONE
    state: RecordState = RecordState.STABLE
    assigned: Parts = NOTHING
    pending: Parts = NOTHING
    target: Parts = NOTHING
    topics: Topics = Topics(0)
    away: bool = False
    unmarked: Parts = NOTHING
    classic: bool = False
    joined: bool = False
    claim: Parts = NOTHING
    protocols: tuple[str, ...] = ()
    timed: Parts | None = None
    pattern: Topics = Topics(0)
    matched: Topics | None = None

    @property
    def subscribed(self) -> Topics:
        """Return the topics that it subscribes to by name, and by pattern as far as that is resolved."""
        return Topics(self.topics | (self.matched or 0))

    @property
    def overdue(self) -> bool:
        """Check whether that timeout runs on, although what it is about has been revoked."""
        return self.timed is not None and not self.pending & self.timed

    @property
    def held(self) -> Parts:
        """Return what nobody else may be given."""
        return Parts(self.assigned | self.pending)


ConsumerRecords = tuple[ConsumerRecord, ...]
"""Of one slot, by incarnation: usually none or one; ids left behind are ghosts."""


class GroupKind(StrEnum):
    """``Group.GroupType``; NONE: there is no such group."""

    NONE = "none"
    CLASSIC = "classic"
    CONSUMER = "consumer"


class ClassicLog(NamedTuple):
    """A classic group as it was written last: its generation, whether a rebalance had begun, its members.
    ``newest``: a later generation that a failover lost, whose number is not used again. ``protocol``: the
    assignor it had chosen, where that matters."""

    epoch: Generation
    rebalances: bool
    book: tuple[ConsumerRecords, ...]
    newest: Generation = NONE
    protocol: str = ""


class ConsumerGroup(NamedTuple):
    """The group: its epoch, that of its target, the partitions that were known then. One of the classic
    protocol has a ``phase``, and its generation as the epoch; ``interrupted``: a rebalance left nobody an
    assignment, and the next has begun; ``first``: no join phase has ended since there was nobody, and
    ``protocol``: the assignor that it has chosen, both kept only where that matters; ``log`` is kept only
    where a failover can happen. ``counted``: the partitions by which it has its epoch (the hash of its
    metadata), kept only where members subscribe by pattern.

    One that is made again counts on here and begins anew in Kafka; member ids are unique, so that nobody can
    see the difference.
    """

    kind: GroupKind = GroupKind.NONE
    epoch: Generation = Generation(0)
    assigned: Generation = Generation(0)
    known: Parts = NOTHING
    phase: GroupState = GroupState.EMPTY
    interrupted: bool = False
    first: bool = False
    protocol: str = ""
    log: ClassicLog | None = None
    counted: Parts = NOTHING


# -- renaming ------------------------------------------------------------------------------------------


def epochs(value: object) -> int:
    """Return the epochs in ``value`` as a bit mask. None is beyond the group's, so the next is new to
    everybody."""
    found = 0

    def note(epoch: int) -> int:
        nonlocal found
        found |= 1 << epoch
        return epoch

    rename(value, Names(lambda p: p, note, lambda s: s))
    return found


def relabel(value: object, names: Mapping[int, int]) -> object:
    """``value`` with epoch ``e`` renamed to ``names[e]``."""
    return rename(value, Names(lambda p: p, names.__getitem__, lambda s: s))


def find(records: ConsumerRecords, member_id: int) -> ConsumerRecord | None:
    return next((record for record in records if record.id == member_id), None)


def put(records: ConsumerRecords, record: ConsumerRecord) -> ConsumerRecords:
    """``records`` with the one of the same id replaced, or with a new one."""
    return tuple(sorted((*(r for r in records if r.id != record.id), record), key=lambda r: r.id))


def unused(records: ConsumerRecords, named: Iterable[int] = ()) -> int:
    """Return a member id for a process that starts: the first that neither the coordinator knows nor anything
    late names."""
    taken = {record.id for record in records} | set(named)
    return next(number for number in range(1, len(taken) + 2) if number not in taken)


def epoch_of(me: AnyMember) -> Generation:
    """Return its epoch or generation, NONE outside of the group."""
    return me.generation if isinstance(me, ClassicMember) else me.epoch


def participates(me: AnyMember, records: ConsumerRecords) -> bool:
    """Check for a member of the group that believes to be one, too. One that was removed is a zombie."""
    return epoch_of(me) != NONE and find(records, me.id) is not None
