"""The event log: what happened to which member of which group when, whoever wrote it down.

Every source of logs becomes rows of ``EVENTS``, one for each event and partition; everything after that is
the same for all. Our own log holds the same as JSON lines (``JSON``), one object for each event:

    {"at": "2026-11-21T18:00:00.123456Z", "event": "assigned", "group": "orders", "consumer": "orders-1@a",
     "generation": 7, "partitions": ["orders-0", "orders-1"]}

``at`` is ISO 8601, or seconds since 1970 as a number. Only ``at``, ``event`` and ``group`` are required, and
``consumer`` for what happens at a consumer.
"""

from __future__ import annotations

from enum import StrEnum

from pyspark.sql.types import (
    ArrayType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)


class Kind(StrEnum):
    """What an event says. The callbacks have the names that the listener's methods have."""

    STARTED = "started"
    """A consumer starts: it owns nothing, whatever its log said before."""
    SUBSCRIBED = "subscribed"
    """A consumer subscribes to a topic (``topic``, no ``partition``)."""
    JOINING = "joining"
    """A consumer sends JoinGroup."""
    JOINED = "joined"
    """A consumer got its JoinGroup response: ``generation`` and ``member`` are what it was told."""
    PLANNED = "planned"
    """The leader assigned the partition to ``member`` in ``generation``. ``consumer`` is the leader."""
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
    EMPTY = "empty"
    """The coordinator has a group without members."""


AT_CONSUMER = (
    *(Kind.STARTED, Kind.SUBSCRIBED, Kind.JOINING, Kind.JOINED, Kind.PLANNED, Kind.SYNCED),
    *(Kind.ASSIGNED, Kind.REVOKED, Kind.LOST, Kind.RESET, Kind.LEAVING, Kind.CLOSED),
)
AT_COORDINATOR = (Kind.PREPARING, Kind.STABLE, Kind.REMOVED, Kind.EMPTY)

EVENTS = StructType(
    [
        StructField("at", TimestampType(), nullable=False),  # UTC, microseconds
        StructField("kind", StringType(), nullable=False),
        StructField("group", StringType(), nullable=False),
        StructField("consumer", StringType()),  # who: one process, over all the member ids it may be given
        StructField("member", StringType()),  # the id that the coordinator gave
        StructField("instance", StringType()),  # group.instance.id
        StructField("generation", IntegerType()),
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("detail", StringType()),  # the reason, in the words of who logged it
        StructField("host", StringType()),  # whose clock ``at`` is
        StructField("source", StringType(), nullable=False),  # "events", "java", "librdkafka", "broker"
        StructField("file", StringType(), nullable=False),
        StructField("line", LongType(), nullable=False),  # from 1
    ]
)
"""One row for each event and partition. An event about no partition is one row with null in its place."""

JSON = StructType(
    [
        StructField("at", StringType()),
        StructField("event", StringType()),
        StructField("group", StringType()),
        StructField("consumer", StringType()),
        StructField("member", StringType()),
        StructField("instance", StringType()),
        StructField("generation", IntegerType()),
        StructField("topics", ArrayType(StringType())),
        StructField("partitions", ArrayType(StringType())),
        StructField("detail", StringType()),
        StructField("host", StringType()),
    ]
)
"""One line of our own log. Other fields are allowed and ignored."""
