"""The assignors of kafka-python, driven as its own coordinator drives them.

``ConsumerCoordinator._perform_assignment`` decodes the metadata bytes of each member, hands the members to
the assignor and encodes what comes back; so does `KafkaPythonAssignor.assign`. Nothing is repaired and
no exception is caught: what the client would do to its group is what the caller sees.
"""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any

from rebalance.model import wire
from rebalance.model.assignor import Promise
from rebalance.model.values import (
    NO_GENERATION,
    Cluster,
    GroupAssignment,
    GroupSubscription,
    Partitions,
    RebalanceProtocol,
    TopicPartition,
)

PROMISES = {
    "range": frozenset({Promise.BALANCED_PER_TOPIC}),
    "roundrobin": frozenset({Promise.BALANCED_EQUAL}),
    "sticky": frozenset({Promise.BALANCED, Promise.STICKY}),
    "cooperative-sticky": frozenset({Promise.BALANCED, Promise.STICKY}),
}
"""What the documentation of these assignors claims, by protocol name; the same for both Python clients."""

_ASSIGNORS = {
    "range": ("kafka.coordinator.assignors.range", "RangePartitionAssignor"),
    "roundrobin": ("kafka.coordinator.assignors.roundrobin", "RoundRobinPartitionAssignor"),
    "sticky": ("kafka.coordinator.assignors.sticky.sticky_assignor", "StickyPartitionAssignor"),
    "cooperative-sticky": ("kafka.coordinator.assignors.cooperative_sticky", "CooperativeStickyAssignor"),
}


def load(spec: str) -> KafkaPythonAssignor:
    """The assignor of kafka-python with the protocol name ``spec``.

    Raises ValueError for an unknown name and ImportError when the library is not installed.
    """
    return KafkaPythonAssignor(import_assignor(_ASSIGNORS, spec, "kafka-python"))


def import_assignor(known: dict[str, tuple[str, str]], spec: str, package: str) -> Any:
    """The class that ``known`` lists (module, name) for ``spec``; errors as in `load`."""
    if spec not in known:
        raise ValueError(f"{package} has no assignor {spec!r}, it has: {', '.join(sorted(known))}")
    module, name = known[spec]
    try:
        return getattr(import_client(module), name)
    except ModuleNotFoundError as error:
        raise ImportError(f"cannot import {error.name}: pip install {package}") from error


def import_client(module: str) -> Any:
    """A module of a client. Deprecations that it uses while loading are not ours to turn into errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return import_module(module)


class ClusterView:
    """What assignors ask of the clients' ``ClusterMetadata``; as there, every answer is a new set."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.internal_topics: set[str] = set()

    def topics(self, exclude_internal_topics: bool = True) -> set[str]:
        return set(self._cluster.topics)

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        known = self._cluster.topics.get(topic)
        return None if known is None else set(range(len(known)))

    available_partitions_for_topic = partitions_for_topic


class KafkaPythonAssignor:
    """One consumer of kafka-python that leads its group (`model.assignor.Assignor`).

    ``assign`` keeps using one instance of the client's assignor, as a leader does that leads one rebalance
    after another. ``user_data`` asks a new instance each time: a member that knows only what it was last
    assigned. ``metadata_version`` is the version this client's own members write. ``mutated`` says what
    the last ``assign`` changed in the metadata it was given, None if nothing.
    """

    homepage = "https://github.com/dpkp/kafka-python"
    issues = "https://github.com/dpkp/kafka-python/issues"

    def __init__(self, assignor: Any) -> None:
        self._assignor = assignor
        self._leader = assignor()
        self._join = import_client("kafka.protocol.consumer.group").JoinGroupResponse
        self._metadata = import_client("kafka.protocol.consumer.metadata")
        self.name: str = assignor.name
        self.protocols = tuple(
            RebalanceProtocol(protocol.name.lower()) for protocol in self._leader.supported_protocols()
        )
        self.promises = PROMISES[self.name]
        self.version: str = import_client("kafka").__version__
        self.metadata_version: int = assignor.version
        self.mutated: str | None = None

    def assign(self, cluster: Cluster, group: GroupSubscription) -> GroupAssignment:
        """One call of the client's assignor; its exceptions pass through."""
        decode = self._metadata.ConsumerProtocolSubscription.decode
        members = [
            self._join.JoinGroupResponseMember(
                member_id=member,
                group_instance_id=subscription.group_instance_id,
                metadata=decode(wire.encode_subscription(subscription)),
            )
            for member, subscription in group.items()
        ]
        self.mutated = None
        before = _seen(members)
        result = self._leader.assign(ClusterView(cluster), members)
        self.mutated = difference(before, _seen(members))
        return {member: self._received(assignment.encode()) for member, assignment in result.items()}

    def user_data(self, owned: Partitions, generation: int) -> bytes | None:
        """What a member that was last assigned ``owned`` in ``generation`` writes into its subscription."""
        member = self._assignor()
        if owned or generation != NO_GENERATION:
            assigned = wire.encode_assignment(owned, b"", self.metadata_version)
            member.on_assignment(self._metadata.ConsumerProtocolAssignment.decode(assigned), generation)
        metadata = member.metadata({partition.topic for partition in owned})
        return wire.decode_subscription(bytes(metadata.encode())).user_data

    def _received(self, assignment: bytes) -> Partitions:
        decoded = self._metadata.ConsumerProtocolAssignment.decode(bytes(assignment))
        return tuple(TopicPartition(*partition) for partition in decoded.partitions())


Seen = list[tuple[str, bytes]]
"""Member ids and their metadata as bytes, in the order in which the assignor was given them."""


def _seen(members: list[Any]) -> Seen:
    return [(member.member_id, bytes(member.metadata.encode())) for member in members]


def difference(before: Seen, after: Seen) -> str | None:
    """The first change that ``assign`` made to its input, in words."""
    ids, ids_after = [member for member, _ in before], [member for member, _ in after]
    if ids != ids_after:
        return f"members were {ids}, became {ids_after}"
    for (member, metadata), (_, metadata_after) in zip(before, after, strict=True):
        if metadata != metadata_after:
            return f"metadata of {member} was {metadata.hex()}, became {metadata_after.hex()}"
    return None
