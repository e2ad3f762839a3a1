"""The assignors of aiokafka, driven as its own coordinator drives them.

``GroupCoordinator._perform_assignment`` decodes the metadata bytes of each member (version 0 fields only,
no ``group.instance.id``), hands them to the assignor and encodes what comes back; so does
`AiokafkaAssignor.assign`. Nothing is repaired and no exception is caught.
"""

from __future__ import annotations

from typing import Any

from rebalance.gate.adapters.kafka_python import (
    PROMISES,
    ClusterView,
    Seen,
    difference,
    import_assignor,
    import_client,
)
from rebalance.model import wire
from rebalance.model.values import (
    NO_GENERATION,
    Cluster,
    GroupAssignment,
    GroupSubscription,
    Partitions,
    RebalanceProtocol,
    TopicPartition,
)

_ASSIGNORS = {
    "range": ("aiokafka.coordinator.assignors.range", "RangePartitionAssignor"),
    "roundrobin": ("aiokafka.coordinator.assignors.roundrobin", "RoundRobinPartitionAssignor"),
    "sticky": ("aiokafka.coordinator.assignors.sticky.sticky_assignor", "StickyPartitionAssignor"),
}


def load(spec: str) -> AiokafkaAssignor:
    """The assignor of aiokafka with the protocol name ``spec``.

    Raises ValueError for an unknown name and ImportError when the library is not installed.
    """
    return AiokafkaAssignor(import_assignor(_ASSIGNORS, spec, "aiokafka"))


def _process(assignor: Any) -> Any:
    """The assignor as a new process would have it.

    aiokafka keeps an assignor's state in class attributes, shared by all consumers of one process. A
    subclass starts from the untouched defaults and keeps what is written to it.
    """
    return type(assignor.__name__, (assignor,), {})


class AiokafkaAssignor:
    """One aiokafka consumer, alone in its process, that leads its group (`model.assignor.Assignor`).

    ``assign`` keeps the class state from call to call, as the process of a leader does. ``user_data`` asks
    a new process each time: a member that knows only what it was last assigned. ``metadata_version`` is
    the version this client's own members write. ``mutated`` says what the last ``assign`` changed in the
    metadata it was given, None if nothing.
    """

    homepage = "https://github.com/aio-libs/aiokafka"
    issues = "https://github.com/aio-libs/aiokafka/issues"
    protocols = (RebalanceProtocol.EAGER,)  # the coordinator knows no other

    def __init__(self, assignor: Any) -> None:
        self._assignor = assignor
        self._leader = _process(assignor)
        self._protocol = import_client("aiokafka.coordinator.protocol").ConsumerProtocol
        self._coordinator = import_client("aiokafka.consumer.group_coordinator").GroupCoordinator
        self.name: str = assignor.name
        self.promises = PROMISES[self.name]
        self.version: str = import_client("aiokafka").__version__
        self.metadata_version: int = assignor.version
        self.mutated: str | None = None

    def assign(self, cluster: Cluster, group: GroupSubscription) -> GroupAssignment:
        """One call of the client's assignor; its exceptions pass through."""
        decode = self._protocol.METADATA.decode
        members = {
            member: decode(wire.encode_subscription(subscription)) for member, subscription in group.items()
        }
        self.mutated = None
        before = _seen(members)
        result = self._leader.assign(ClusterView(cluster), members)
        self.mutated = difference(before, _seen(members))
        return {member: self._received(assignment.encode()) for member, assignment in result.items()}

    def user_data(self, owned: Partitions, generation: int) -> bytes | None:
        """What a member that was last assigned ``owned`` in ``generation`` writes into its subscription.

        The generation is told to the assignor only if the installed version's coordinator does so; up to
        0.14.0 it does not, and members claim with generation -1 (aiokafka issue 1176).
        """
        member = _process(self._assignor)
        if owned or generation != NO_GENERATION:
            assigned = wire.encode_assignment(owned, b"", self.metadata_version)
            member.on_assignment(self._protocol.ASSIGNMENT.decode(assigned))
            if "on_generation_assignment" in self._coordinator._on_join_complete.__code__.co_names:
                member.on_generation_assignment(generation)
        metadata = member.metadata({partition.topic for partition in owned})
        return wire.decode_subscription(metadata.encode()).user_data

    def _received(self, assignment: bytes) -> Partitions:
        decoded = self._protocol.ASSIGNMENT.decode(assignment)
        return tuple(TopicPartition(*partition) for partition in decoded.partitions())


def _seen(members: dict[str, Any]) -> Seen:
    return [(member, metadata.encode()) for member, metadata in members.items()]
