"""The values that a group's state is made of: member, coordinator, what is on the wire.

Everything is a tuple and hashable. A set of partitions is a bit mask (``Parts``), so that set algebra is
``owned & ~assigned``. Field types carry meaning: ``rename`` finds partitions, generations and slots by
them, which is how states are normalised and symmetries applied; a field of the wrong type would not move.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from rebalance_verifier.model.group.parts import (
    NO_COPIES,
    NO_ID,
    NONE,
    NOTHING,
    Copies,
    Error,
    Generation,
    Grant,
    GroupState,
    Id,
    Late,
    Life,
    MemberState,
    Names,
    Parts,
    Topics,
    rename,
)

# -- the member ----------------------------------------------------------------------------------------


class Member(NamedTuple):
    """One consumer, as its own fields say.

    Two generations: ``generation`` is that of the last JoinGroup answered, ``own_gen`` that in which
    ``owned`` was assigned. ``received`` is an assignment that SyncGroup brought and onJoinComplete has
    not handled. ``view`` is the partitions of its metadata, ``watch`` the leader's snapshot of those of
    the topics ``watched``; ``view_moved`` and ``watch_moved``: replicas have moved there. A leader that has
    skipped the assignment has ``watched`` without ``watch``. ``last`` is
    what StickyAssignor remembers (its last onAssignment, never trimmed). ``believed`` is what the
    listener must believe, from the callbacks alone. ``unfetched`` is owned and not read. ``committing``:
    onJoinPrepare waits for its commit. ``enforced``: enforceRebalance was called during a rebalance.
    ``noise``: the order of its metadata bytes. ``stuck``: its poll makes no progress any more. Of Kafka
    Streams: ``copies`` is from its last assignment, ``caught_up`` the tasks of which it has a store that has
    caught up.

    ``pattern`` are the topics that match its pattern, there or not: of these ``topics`` has those it knows.
    """

    life: Life = Life.DOWN
    stage: int = 0
    state: MemberState = MemberState.UNJOINED
    generation: Generation = NONE
    id: int = NO_ID
    rejoin: bool = True
    prepare: bool = True
    owned: Parts = NOTHING
    own_gen: Generation = NONE
    topics: Topics = Topics(0)
    joined_topics: Topics = Topics(0)
    view: Parts = NOTHING
    watch: Parts | None = None
    watched: Topics = Topics(0)
    received: Parts | None = None
    last: Parts = NOTHING
    believed: Parts = NOTHING
    unfetched: Parts = NOTHING
    committing: bool = False
    enforced: bool = False
    noise: int = 0
    stuck: bool = False
    view_moved: bool = False
    watch_moved: bool = False
    copies: Copies = NO_COPIES
    caught_up: Parts = NOTHING
    pattern: Topics = Topics(0)

    @property
    def subscribes(self) -> bool:
        """Check whether its application has subscribed to anything."""
        return bool(self.topics | self.pattern)

    @property
    def noted_nothing(self) -> bool:
        """Check whether it leads and does not know of which metadata the assignment was made (KIP-814)."""
        return self.watch is None and bool(self.watched)


# -- what is sent --------------------------------------------------------------------------------------


class Metadata(NamedTuple):
    """Metadata that a JoinGroup carries of its sender, equal for each of its ``assignors``.

    ``label`` is the generationId field of KIP-792 (NONE before version 2), ``own_gen`` the generation in
    user data, which CooperativeStickyAssignor writes only where ``tells``; ``last`` is what StickyAssignor
    writes there. ``version`` is that of the subscription. ``caught_up`` are the tasks that Kafka Streams
    says to have caught up, ``unique`` whether no other of its subscriptions has the same bytes (KAFKA-10455).
    """

    assignors: tuple[str, ...]
    topics: Topics
    owned: Parts = NOTHING
    label: Generation = NONE
    own_gen: Generation = NONE
    last: Parts = NOTHING
    version: int = 3
    tells: bool = True
    noise: int = 0
    caught_up: Parts = NOTHING
    unique: bool = False


class Join(NamedTuple):
    """JoinGroup request on its way."""

    id: int
    meta: Metadata


class JoinParked(NamedTuple):
    """JoinGroup request in the coordinator's purgatory."""

    id: int


class JoinOk(NamedTuple):
    """JoinGroup response. The leader's member list is not in it: while this generation lasts it equals
    the coordinator's own, and afterwards the SyncGroup that it leads to is refused unread."""

    id: int
    generation: Generation
    protocol: str
    leader: bool = False
    skip: bool = False


class Sync(NamedTuple):
    """SyncGroup request on its way; ``grants`` from the leader only."""

    id: int
    generation: Generation
    grants: tuple[Grant, ...] | None = None

    def __eq__(self, other: object) -> bool:
        """As tuples an empty one and an answer of no bytes are equal; engines would take them for one."""
        return type(other) is Sync and tuple.__eq__(self, other)

    def __hash__(self) -> int:
        return tuple.__hash__(self)


class SyncParked(NamedTuple):
    """SyncGroup request in the coordinator's purgatory."""

    id: int
    generation: Generation


class SyncOk(NamedTuple):
    """SyncGroup response; ``parts`` is None for an assignment of no bytes."""

    id: int
    generation: Generation
    parts: Parts | None
    copies: Copies = NO_COPIES

    def __eq__(self, other: object) -> bool:
        return type(other) is SyncOk and tuple.__eq__(self, other)

    def __hash__(self) -> int:
        return tuple.__hash__(self)


class Refused(NamedTuple):
    """An error response to ``api``, sent with ``id`` and ``generation``; ``given`` is a new member id."""

    api: str
    error: Error
    id: int
    generation: Generation = NONE
    given: int = NO_ID


class LeaveGroup(NamedTuple):
    """LeaveGroup request on its way."""

    id: int


Wire = Join | JoinParked | JoinOk | Sync | SyncParked | SyncOk | Refused | None
"""JoinGroup and SyncGroup of one member: at most one is outstanding."""

Stray = Late | Refused | Join | None
"""Beside it: a late heartbeat or commit or its answer, or a JoinGroup that its sender gave up on."""

Behind = tuple[tuple[Join | Sync | LeaveGroup, ...], ...]
"""What one member left under way on connections that broke: a bag of connections, the oldest first, each with
its requests in the order in which they were sent."""


# -- the coordinator -----------------------------------------------------------------------------------


class MemberRecord(NamedTuple):
    """The coordinator's record of one member id. ``meta`` is None while the id is only pending (KIP-394).

    ``joined``: its JoinGroup is parked. ``synced``: its SyncGroup of this generation came. ``silent``: a
    static member that was carried through the last join phase. ``given_up``: the rebalance timeout passed
    for it. ``assigned`` is from the last SyncGroup of a leader, None if that left the member out, as are
    ``copies``. ``new``: it has not been through a join phase yet.
    """

    id: int
    meta: Metadata | None
    assigned: Parts | None = NOTHING
    joined: bool = False
    synced: bool = False
    silent: bool = False
    given_up: bool = False
    new: bool = False
    copies: Copies = NO_COPIES


Records = tuple[MemberRecord, ...]
"""Of one slot, by incarnation: usually none or one; ids left behind are ghosts."""


class Group(NamedTuple):
    """The coordinator's group. ``first``: the initial delay runs, only its end completes the join phase.
    ``limited``: its broker is one with the lower group.max.size (``Setup.lowers``)."""

    state: GroupState = GroupState.DEAD
    generation: Generation = Generation(0)
    leader: Id | None = None
    protocol: str | None = None
    first: bool = False
    limited: bool = False


# -- renaming ------------------------------------------------------------------------------------------


def generations(value: Any) -> int:
    """Return the generations in ``value`` as a bit mask; of a ``Group``, all from its own on.

    Those after the group's own are kept apart because the next generation is its own plus one, and after
    a failover a member may hold one that the group does not remember.
    """
    found = 0

    def note(generation: int) -> int:
        nonlocal found
        found |= 1 << generation
        return generation

    rename(value, Names(lambda p: p, note, lambda s: s))
    if isinstance(value, Group):
        found |= LATER & -(1 << value.generation)
    return found


LATER = (1 << 24) - 1
"""Most generations that one state can tell apart."""


def participates(me: Member, records: Records) -> bool:
    """Check for a member of the group that has not been reset. One that was removed and has not noticed is a
    zombie."""
    inside = any(record.id == me.id and record.meta is not None for record in records)
    return me.generation != NONE and me.id != NO_ID and inside


def admitted(records: Sequence[MemberRecord]) -> list[MemberRecord]:
    """Return the records of members, without ids that are only pending."""
    return [record for record in records if record.meta is not None]


def put(records: Records, record: MemberRecord) -> Records:
    """``records`` with the one of the same id replaced, or with a new one."""
    return tuple(sorted((*(r for r in records if r.id != record.id), record), key=lambda r: r.id))


def find(records: Sequence[MemberRecord], member_id: int) -> MemberRecord | None:
    return next((record for record in records if record.id == member_id), None)
