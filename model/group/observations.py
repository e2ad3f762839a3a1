"""What can be observed of a group while it steps: callbacks, decisions, answers, situations of note."""

from __future__ import annotations

from collections.abc import Hashable
from enum import StrEnum
from typing import NamedTuple

from rebalance_verifier.model.group.parts import (
    Error,
    Generation,
    Grant,
    GroupState,
    Id,
    MemberState,
    Parts,
    Slot,
)


class Call(StrEnum):
    """The callbacks of ``ConsumerRebalanceListener``."""

    REVOKED = "revoked"
    ASSIGNED = "assigned"
    LOST = "lost"


class Callback(NamedTuple):
    """One listener callback: the set it receives and the circumstances that decide whether it is right.

    ``reset``: generation or member id were reset. ``owned``: what the consumer owned while it ran.
    ``believed``: what the listener believed before. ``current``: the group metadata showed the generation
    that the callback belongs to. ``midway``: the member leaves in the middle of a rebalance.
    """

    call: Call
    who: Slot
    parts: Parts
    eager: bool
    reset: bool
    owned: Parts
    believed: Parts
    current: bool = True
    midway: bool = False


class Completed(NamedTuple):
    """onJoinComplete ran to its end: ``assigned`` was received, ``owned`` is what the consumer holds."""

    who: Slot
    assigned: Parts
    owned: Parts
    eager: bool
    revoked: bool
    rejoin: bool
    believed: Parts


class Left(NamedTuple):
    """unsubscribe or close; ``believed`` is what the listener still believes to hold, ``sent`` LeaveGroup."""

    who: Slot
    believed: Parts
    sent: bool
    ought: bool


class Decided(NamedTuple):
    """The leader's decision: for each member of the generation its claim and what it was granted.

    ``claims`` are (id, partitions, generation in which they were assigned, subscribed partitions).
    """

    eager: bool
    claims: tuple[tuple[Id, Parts, Generation, Parts], ...]
    grants: tuple[Grant, ...]


class Claimed(NamedTuple):
    """A JoinGroup that says in which generation its claim was assigned: ``label``, in truth ``own_gen``."""

    who: Slot
    parts: Parts
    label: Generation
    own_gen: Generation


class Threw(NamedTuple):
    """poll() of ``who`` threw ``error`` at the application. ``message``: of an exception of Java that is no
    error of the protocol."""

    who: Slot
    error: str
    message: str = ""


class Answered(NamedTuple):
    """An error answer and what the member made of it. ``same``: it was for the present membership.

    ``reset``: the membership was given up; ``keeps_id``: the member id stayed; ``rejoin``: it will rejoin.
    """

    who: Slot
    api: str
    error: Error
    state: MemberState
    same: bool
    reset: bool
    keeps_id: bool
    rejoin: bool


class Admitted(NamedTuple):
    """The coordinator took a member id into the group. ``known``: its owner had shown it, or is static."""

    who: Slot
    known: bool
    size: int
    limit: int | None


class Elected(NamedTuple):
    """The protocol of a generation, and the assignor list of each of its members."""

    protocol: str
    lists: tuple[tuple[str, ...], ...]


class Repeated(NamedTuple):
    """A follower said again what it had said; ``rebalances`` whether that started a rebalance."""

    who: Slot
    rebalances: bool


class Replaced(NamedTuple):
    """A static member came back with a new id. ``changed``: it subscribes to something else, or makes the
    group select another protocol. ``owed``: the old process was still to give something up."""

    who: Slot
    state: GroupState
    rebalances: bool
    changed: bool
    owed: bool
    leader: bool
    told_leader: bool


class TurnedAway(NamedTuple):
    """The coordinator answered GROUP_MAX_SIZE_REACHED. ``member``: the sender is of the group, by its member
    id or its instance id, and its place is not given to others while they join."""

    who: Slot
    member: bool


class Expelled(NamedTuple):
    """The coordinator removed a member id for ``cause``, the timeout of a rebalance or of a pending sync.

    ``able``: its owner was at work. ``away``: it is a static member that took no part in this rebalance.
    """

    who: Slot
    cause: str
    able: bool
    away: bool


class Noted(NamedTuple):
    """A situation worth a witness, by name."""

    what: str


Seen = tuple[Hashable, ...]
"""What could be observed on the way, in order."""
