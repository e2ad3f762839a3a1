"""The event log: what happened to which member of which group when, whoever wrote it down.

Every source of logs becomes rows of ``COLUMNS``, one for each event and partition; everything after that is
the same for all. Our own log holds the same as JSON lines, one object for each event:

    {"at": "2026-11-21T18:00:00.123456Z", "event": "assigned", "group": "orders", "consumer": "orders-1@a",
     "generation": 7, "partitions": ["orders-0", "orders-1"]}

``at`` is ISO 8601, or seconds since 1970 as a number. Only ``at``, ``event`` and ``group`` are required, and
``consumer`` for what happens at a consumer.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Kind(StrEnum):
    """Kind of an event. The callbacks have the names that the listener's methods have."""

    STARTED = "started"
    """A consumer starts: it owns nothing, whatever its log said before."""
    SUBSCRIBED = "subscribed"
    """A consumer subscribes to a topic (``topic``, no ``partition``)."""
    JOINING = "joining"
    """A consumer sends JoinGroup."""
    JOINED = "joined"
    """A consumer got its JoinGroup response: ``generation`` and ``member`` are what it was told."""
    PLANNED = "planned"
    """The leader assigned the partition to ``member`` in ``generation``. ``consumer`` is the leader; null
    where the coordinator did."""
    SYNCED = "synced"
    """A consumer got its SyncGroup response, of ``generation``."""
    ASSIGNED = "assigned"
    """onPartitionsAssigned: the consumer owns the partition from here on."""
    REVOKED = "revoked"
    """onPartitionsRevoked: the consumer gives the partition away."""
    LOST = "lost"
    """onPartitionsLost: the partition was taken from the consumer some time before."""
    RESET = "reset"
    """A consumer is told, or finds, that its membership is over."""
    LEAVING = "leaving"
    """A consumer sends LeaveGroup."""
    CLOSED = "closed"
    """A consumer ends: it owns nothing any more."""
    PREPARING = "preparing"
    """The coordinator begins a rebalance; ``generation`` is the old one."""
    STABLE = "stable"
    """The coordinator completes the join phase: ``generation`` is the new one."""
    REMOVED = "removed"
    """The coordinator removes ``member``: it left, or its session ran out."""
    REBALANCING = "rebalancing"
    """A consumer is told, or finds, that its group rebalances, and has not joined yet."""
    CHANGED = "changed"
    """A consumer finds that its topics have other partitions than before: a rebalance follows."""
    UNWANTED = "unwanted"
    """A consumer is assigned a partition of a topic that it does not subscribe to."""
    GRANTED = "granted"
    """The coordinator lets ``member`` own the partition, in the epoch ``generation`` (consumer protocol)."""
    EMPTY = "empty"
    """The coordinator has a group without members."""


AT_CONSUMER = (
    *(Kind.STARTED, Kind.SUBSCRIBED, Kind.JOINING, Kind.JOINED, Kind.PLANNED, Kind.SYNCED),
    *(Kind.ASSIGNED, Kind.REVOKED, Kind.LOST, Kind.RESET, Kind.LEAVING, Kind.CLOSED),
    *(Kind.REBALANCING, Kind.CHANGED, Kind.UNWANTED),
)
AT_COORDINATOR = (Kind.PREPARING, Kind.STABLE, Kind.REMOVED, Kind.GRANTED, Kind.EMPTY)


class EventColumn(NamedTuple):
    """A column. ``type``: ``time`` (microseconds since 1970, UTC), ``text``, ``int``, ``long``."""

    name: str
    type: str
    required: bool = False


COLUMNS = (
    EventColumn("at", "time", True),
    EventColumn("kind", "text", True),
    EventColumn("group", "text", True),
    EventColumn("consumer", "text"),  # who: one process, over all the member ids it may be given
    EventColumn("member", "text"),  # the id that the coordinator gave
    EventColumn("instance", "text"),  # group.instance.id
    EventColumn("generation", "int"),
    EventColumn("topic", "text"),
    EventColumn("partition", "int"),
    EventColumn("detail", "text"),  # the reason, in the words of who logged it
    EventColumn("host", "text"),  # whose clock ``at`` is
    EventColumn("source", "text", True),  # "events", "java", "librdkafka", "broker", ...
    EventColumn("file", "text", True),
    EventColumn("line", "long", True),  # from 1
    EventColumn("protocol", "text"),  # "consumer" of members whose epoch is their own (KIP-848)
    EventColumn("members", "int"),  # how many the generation has, where that is said
    EventColumn(
        "heard", "long"
    ),  # until when its consumer, or the coordinator of one that is to revoke, is heard of
)
"""One row for each event and partition. An event about no partition is one row with null in its place."""

NAMES = tuple(column.name for column in COLUMNS)

TEXTS = ("event", "group", "consumer", "member", "instance", "detail", "host", "protocol")
LISTS = ("topics", "partitions")
"""Fields of our own log besides ``at`` and ``generation``. Other fields are allowed and ignored."""


class EventRow(NamedTuple):
    """A row: the fields are ``COLUMNS``, ``at`` in microseconds since 1970."""

    at: int
    kind: str
    group: str
    consumer: str | None
    member: str | None
    instance: str | None
    generation: int | None
    topic: str | None
    partition: int | None
    detail: str | None
    host: str | None
    source: str
    file: str
    line: int
    protocol: str | None = None
    members: int | None = None
    heard: int | None = None
    """Of JOINED and SYNCED the last time of the consumer before it is told anew, where no line says all that
    it owns until then; of GRANTED that of the coordinator, where the member is to revoke something."""
