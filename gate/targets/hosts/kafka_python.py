"""The assignors of kafka-python, driven as its own coordinator drives them.

``ConsumerCoordinator._perform_assignment`` decodes the metadata bytes of each member, hands the members to
the assignor and encodes what comes back; so does `KafkaPythonAssignor.assign`. Nothing is repaired and
no exception is caught: what the client would do to its group is what the caller sees. Releases before 3.0
are driven by `classic`.
"""

from __future__ import annotations

from typing import Any

from rebalance_verifier.gate.targets.hosts.classic import ONE_PROCESS, ClassicAssignor
from rebalance_verifier.gate.targets.hosts.python_client import (
    EncodedMembers,
    import_assignor,
    import_client,
    led,
    partitions,
)
from rebalance_verifier.model import wire
from rebalance_verifier.model.assignors.promises import PYTHON
from rebalance_verifier.model.values import (
    NO_GENERATION,
    Cluster,
    GroupAssignment,
    GroupSubscription,
    Partitions,
    RebalanceProtocol,
)

HOMEPAGE = "https://github.com/dpkp/kafka-python"

_ASSIGNORS = {
    "range": ("kafka.coordinator.assignors.range", "RangePartitionAssignor"),
    "roundrobin": ("kafka.coordinator.assignors.roundrobin", "RoundRobinPartitionAssignor"),
    "sticky": ("kafka.coordinator.assignors.sticky.sticky_assignor", "StickyPartitionAssignor"),
    "cooperative-sticky": ("kafka.coordinator.assignors.cooperative_sticky", "CooperativeStickyAssignor"),
}


def load(spec: str) -> KafkaPythonAssignor | ClassicAssignor:
    """Return the assignor of kafka-python with the protocol name ``spec``.

    Raises ValueError for an unknown name and ImportError when the library, or this release of it, has none.
    """
    name = spec.removesuffix(ONE_PROCESS)
    assignor = import_assignor(_ASSIGNORS, name, "kafka-python")
    version: str = import_client("kafka").__version__
    if version.startswith(("0.", "1.", "2.")):
        return _classic(assignor, version, one_process=name != spec)
    if name != spec:
        raise ValueError(f"kafka-python {version} keeps nothing in its classes: leave out {ONE_PROCESS}")
    return KafkaPythonAssignor(assignor, version)


def _classic(assignor: Any, version: str, *, one_process: bool) -> ClassicAssignor:
    """Return the same before 3.0; since 2.3 a member is an object that knows its ``group.instance.id``
    too."""
    protocol = import_client("kafka.coordinator.protocol").ConsumerProtocol
    coordinator = import_client("kafka.coordinator.consumer").ConsumerCoordinator
    if not isinstance(protocol, list):
        return ClassicAssignor(assignor, protocol, coordinator, version, HOMEPAGE, one_process=one_process)
    member = import_client("kafka.coordinator.subscription").Subscription
    return ClassicAssignor(
        assignor, protocol[0], coordinator, version, HOMEPAGE, member, one_process=one_process
    )


class KafkaPythonAssignor:
    """One consumer of kafka-python that leads its group (`model.assignor.Assignor`).

    ``assign`` keeps using one instance of the client's assignor, as a leader does that leads one rebalance
    after another. ``user_data`` asks a new instance each time: a member that knows only what it was last
    assigned. ``metadata_version`` is the version this client's own members write. ``mutated`` says what
    the last ``assign`` changed in the metadata it was given, None if nothing.
    """

    homepage, issues = HOMEPAGE, f"{HOMEPAGE}/issues"

    def __init__(self, assignor: Any, version: str) -> None:
        self._assignor = assignor
        self._leader = assignor()
        self._join = import_client("kafka.protocol.consumer.group").JoinGroupResponse
        self._metadata = import_client("kafka.protocol.consumer.metadata")
        self.name: str = assignor.name
        self.protocols = tuple(
            RebalanceProtocol(protocol.name.lower()) for protocol in self._leader.supported_protocols()
        )
        self.promises = PYTHON[self.name]
        self.version = version
        self.metadata_version: int = assignor.version
        self.mutated: str | None = None

    def assign(self, cluster: Cluster, group: GroupSubscription) -> GroupAssignment:
        """Return one call of the client's assignor; its exceptions pass through."""
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
        assigned, self.mutated = led(self._leader, cluster, members, _seen)
        received = self._metadata.ConsumerProtocolAssignment.decode
        return {member: partitions(received(bytes(sent))) for member, sent in assigned.items()}

    def user_data(self, owned: Partitions, generation: int) -> bytes | None:
        """Return what a member that was last assigned ``owned`` in ``generation`` writes into its
        subscription."""
        member = self._assignor()
        if owned or generation != NO_GENERATION:
            assigned = wire.encode_assignment(owned, b"", self.metadata_version)
            member.on_assignment(self._metadata.ConsumerProtocolAssignment.decode(assigned), generation)
        metadata = member.metadata({partition.topic for partition in owned})
        return wire.decode_subscription(bytes(metadata.encode())).user_data


def _seen(members: list[Any]) -> EncodedMembers:
    return [(member.member_id, bytes(member.metadata.encode())) for member in members]
