"""Values that groups of every protocol are made of, and how they are renamed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from functools import cache
from typing import Any, NamedTuple, NewType, Union, get_args, get_origin, get_type_hints

Parts = NewType("Parts", int)
"""A set of partitions: bit ``p`` for partition number ``p``."""


Topics = NewType("Topics", int)
"""A set of topics: bit ``t`` for topic number ``t``."""


Generation = NewType("Generation", int)
"""A generation, or ``NONE``. Only order, equality and the next one matter."""


Slot = NewType("Slot", int)
"""One consumer of the scenario, in all its restarts: 0 is A, 1 is B."""


NONE = Generation(-1)


NOTHING = Parts(0)


NO_ID = 0
"""Incarnation of a member that has no member id (``memberId == ""``)."""


class Id(NamedTuple):
    """A member id: ``incarnation`` counts the ids that the coordinator gave to this slot."""

    slot: Slot
    incarnation: int


class Life(StrEnum):
    """State of the process. PAUSED: it does nothing (a long collection, SIGSTOP). HUNG: only its heartbeat
    thread does. FAILED: poll threw what nobody handles, and the application closed."""

    DOWN = "down"
    UP = "up"
    PAUSED = "paused"
    HUNG = "hung"
    FAILED = "failed"


class MemberState(StrEnum):
    """``AbstractCoordinator.MemberState``."""

    UNJOINED = "UNJOINED"
    PREPARING = "PREPARING_REBALANCE"
    COMPLETING = "COMPLETING_REBALANCE"
    STABLE = "STABLE"


class Error(StrEnum):
    """``org.apache.kafka.common.protocol.Errors``; DISCONNECT is the client's own."""

    MEMBER_ID_REQUIRED = "MEMBER_ID_REQUIRED"
    UNKNOWN_MEMBER_ID = "UNKNOWN_MEMBER_ID"
    ILLEGAL_GENERATION = "ILLEGAL_GENERATION"
    REBALANCE_IN_PROGRESS = "REBALANCE_IN_PROGRESS"
    FENCED_INSTANCE_ID = "FENCED_INSTANCE_ID"
    INCONSISTENT_GROUP_PROTOCOL = "INCONSISTENT_GROUP_PROTOCOL"
    GROUP_MAX_SIZE_REACHED = "GROUP_MAX_SIZE_REACHED"
    NOT_COORDINATOR = "NOT_COORDINATOR"
    COORDINATOR_LOAD_IN_PROGRESS = "COORDINATOR_LOAD_IN_PROGRESS"
    DISCONNECT = "disconnect"


class Ask(StrEnum):
    """When a member of Kafka Streams asks for the next rebalance, as its assignment says: LATER, once the
    probing interval has passed (KIP-441), or NOW."""

    NEVER = ""
    LATER = "later"
    NOW = "now"


class Copies(NamedTuple):
    """An assignment of Kafka Streams says this beside the active tasks (``AssignmentInfo``): the tasks of
    which a copy is to be warmed up, and when to ask for the next rebalance."""

    warmups: Parts = NOTHING
    asks: Ask = Ask.NEVER


NO_COPIES = Copies()


class Grant(NamedTuple):
    """One member's part of an assignment."""

    id: Id
    parts: Parts
    copies: Copies = NO_COPIES


class Late(NamedTuple):
    """A heartbeat or a commit (for ``parts``) that left with ``id`` and ``generation`` and is on its way."""

    api: str
    id: int
    generation: Generation
    parts: Parts = NOTHING


class GroupState(StrEnum):
    """``ClassicGroupState``; a group that does not exist is DEAD."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


class ClusterState(NamedTuple):
    """The partitions that exist, and whether their replicas have moved to other racks."""

    parts: Parts
    moved: bool = False


class Names(NamedTuple):
    """New names: functions of a partition set, a generation (never NONE) and a slot."""

    parts: Callable[[int], int]
    generation: Callable[[int], int]
    slot: Callable[[int], int]


_Rule = Callable[[Any, Names], Any]


def _keep(value: Any, names: Names) -> Any:
    return value


def rename(value: Any, names: Names) -> Any:
    """``value``, any of the tuples above, with everything in it renamed by the types of its fields."""
    if not isinstance(value, tuple):
        return value
    kind: Any = type(value)
    if hasattr(kind, "_fields"):
        return kind(*(rule(part, names) for rule, part in zip(_rules(kind), value, strict=True)))
    return tuple(rename(part, names) for part in value)


@cache
def _rules(kind: Any) -> tuple[_Rule, ...]:
    hints = get_type_hints(kind)
    return tuple(_rule(hints[field]) for field in kind._fields)


def _rule(hint: Any) -> _Rule:
    options = get_args(hint) if get_origin(hint) in (Union, type(int | None)) else (hint,)
    optional = type(None) in options
    options = tuple(option for option in options if option is not type(None))
    rule = _single(options[0]) if len(options) == 1 else rename
    return (lambda v, n: None if v is None else rule(v, n)) if optional else rule


def _single(hint: Any) -> _Rule:
    if hint is Parts:
        return lambda v, n: n.parts(v)
    if hint is Generation:
        return lambda v, n: v if v == NONE else n.generation(v)
    if hint is Slot:
        return lambda v, n: n.slot(v)
    if get_origin(hint) is tuple:
        inner = get_args(hint)
        if inner[-1] is Ellipsis:
            each = _rule(inner[0])
            # Members have no order of their own: what lists them is sorted again under the new names.
            again: Callable[[Any], Any] = sorted if _lists_ids(inner[0]) else list
            return lambda v, n: tuple(again(each(part, n) for part in v))
        rules = [_rule(part) for part in inner]
        return lambda v, n: tuple(rule(part, n) for rule, part in zip(rules, v, strict=True))
    if isinstance(hint, type) and hasattr(hint, "_fields"):
        return rename
    return _keep


def _lists_ids(hint: Any) -> bool:
    return hint is Grant or (get_origin(hint) is tuple and get_args(hint)[0] is Id)


def relabel(value: Any, names: Mapping[int, int]) -> Any:
    """``value`` with generation ``g`` renamed to ``names[g]``."""
    return rename(value, Names(lambda p: p, names.__getitem__, lambda s: s))


def each(parts: int) -> list[int]:
    """Return the numbers in a bit mask, ascending.

    >>> each(0b1010)
    [1, 3]
    """
    return [number for number in range(parts.bit_length()) if parts >> number & 1]


def union(parts: Sequence[int]) -> Parts:
    """Return the union of several sets."""
    total = 0
    for some in parts:
        total |= some
    return Parts(total)
