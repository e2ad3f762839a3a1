"""The values that cross an assignor: partitions, subscriptions, cluster metadata, assignments.

Names follow ``org.apache.kafka.clients.consumer.ConsumerPartitionAssignor`` (Subscription,
GroupSubscription, Assignment) and ``org.apache.kafka.common`` (TopicPartition, Cluster).
Everything here is an immutable value; the two mappings are plain dicts because their iteration
order is itself an input (the broker's member map decides in which order a leader sees the group).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

NO_GENERATION = -1
"""What a member that belongs to no generation sends (``DEFAULT_GENERATION`` in the Java client)."""

NEWEST_VERSION = 3
"""Newest ConsumerProtocolSubscription and ConsumerProtocolAssignment version known here."""


class RebalanceProtocol(StrEnum):
    """How a member behaves in a rebalance (KIP-429, ``ConsumerPartitionAssignor``); or that none decides
    anything, since the coordinator assigns: in a consumer group (``group.protocol=consumer``, KIP-848), or in
    a share group, where several members may have one partition (KIP-932). Of Kafka Streams: whether a client
    assigns the tasks (KIP-924), or the coordinator of a streams group (KIP-1071)."""

    EAGER = "eager"
    COOPERATIVE = "cooperative"
    CONSUMER = "consumer"
    SHARE = "share"
    TASKS = "tasks"
    STREAMS = "streams"


class TopicPartition(NamedTuple):
    """One partition of one topic; prints as Kafka prints it, ``topic-0``."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


CLASSIC = (RebalanceProtocol.EAGER, RebalanceProtocol.COOPERATIVE)
"""Those of the classic protocol, in which a member leads and assigns."""

SERVED = (RebalanceProtocol.CONSUMER, RebalanceProtocol.SHARE)
"""Those in which a broker assigns."""

EXCLUSIVE = (*CLASSIC, RebalanceProtocol.CONSUMER)
"""Those in which a partition has one owner."""

OF_PARTITIONS = (*EXCLUSIVE, RebalanceProtocol.SHARE)
"""Those in which members are assigned partitions."""

OF_TASKS = (RebalanceProtocol.TASKS, RebalanceProtocol.STREAMS)
"""Those in which processes, or members of them, are assigned tasks."""

FAMILY = {protocol: CLASSIC if protocol in CLASSIC else (protocol,) for protocol in RebalanceProtocol}
"""Those that an assignor of a protocol may support beside it, since its interface has them too."""

Partitions = tuple[TopicPartition, ...]


@lru_cache(maxsize=4096)
def partitions_of(topic: str, count: int) -> Partitions:
    """Return partitions 0 to count-1 of ``topic``.

    >>> [str(partition) for partition in partitions_of("t", 2)]
    ['t-0', 't-1']
    """
    return tuple([TopicPartition(topic, index) for index in range(count)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """A member's subscription as the leader reads it from JoinGroup metadata.

    ``owned_partitions`` exists on the wire since version 1 (KIP-429), ``generation_id`` since 2
    (KIP-792, -1 when absent), ``rack_id`` since 3 (KIP-881). ``group_instance_id`` (KIP-345) comes
    beside the metadata, in the JoinGroup response. ``version`` is the one the member wrote; ``short``: and
    ended before owned partitions all the same (bug Q1).
    """

    topics: tuple[str, ...]
    user_data: bytes | None = None
    owned_partitions: Partitions = ()
    generation_id: int = NO_GENERATION
    rack_id: str | None = None
    group_instance_id: str | None = None
    version: int = NEWEST_VERSION
    short: bool = False


Racks = tuple[str, ...]
"""Racks that hold a replica of one partition, sorted; empty when unknown."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """The leader's view of the cluster: for each known topic, one ``Racks`` per partition.

    Partition indexes are 0 to n-1. A topic that the leader has no metadata for is absent.
    """

    topics: Mapping[str, tuple[Racks, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, counts: Mapping[str, int]) -> Cluster:
        """Return a cluster without rack information: topic name -> number of partitions.

        >>> Cluster.of({"t": 2}).partition_count("t")
        2
        """
        return cls({topic: ((),) * count for topic, count in counts.items()})

    def partition_count(self, topic: str) -> int:
        """Return number of partitions of ``topic``, 0 when the leader does not know it."""
        return len(self.topics.get(topic, ()))

    def partitions(self) -> Iterator[TopicPartition]:
        """Yield all partitions of all topics, topic by topic."""
        for topic, racks in self.topics.items():
            yield from partitions_of(topic, len(racks))

    def __contains__(self, partition: object) -> bool:
        return isinstance(partition, tuple) and 0 <= partition[1] < self.partition_count(partition[0])


GroupSubscription = Mapping[str, Subscription]
"""Member id -> subscription, in the order in which the leader's client iterates them."""

GroupAssignment = Mapping[str, Partitions]
"""Member id -> assigned partitions."""
