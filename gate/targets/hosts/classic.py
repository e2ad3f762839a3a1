"""The assignors of kafka-python up to 2.x, and of aiokafka, which began as a copy of it.

``_perform_assignment`` of both coordinators decodes the metadata bytes of each member (version 0 fields
only), hands them to the assignor by member id and encodes what comes back; so does `ClassicAssignor.assign`.
Nothing is repaired and no exception is caught: what the client would do to its group is what the caller sees.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rebalance_verifier.gate.targets.hosts.python_client import EncodedMembers, led, partitions
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

ONE_PROCESS = "+one_process"
"""Behind the name of an assignor: all members of a group are consumers of one process."""


def _process(assignor: Any) -> Any:
    """Return the assignor as a new process would have it.

    Its state is in class attributes, shared by all consumers of one process. A subclass starts from the
    untouched defaults and keeps what is written to it.
    """
    return type(assignor.__name__, (assignor,), {})


class ClassicAssignor:
    """One consumer, alone in its process, that leads its group (`model.assignor.Assignor`).

    ``assignor`` is the client's class, ``protocol`` its ``ConsumerProtocol``, ``coordinator`` the class that
    calls the assignor, ``member`` what it makes of a member's metadata and ``group.instance.id``.

    ``assign`` keeps the class state from call to call, as the process of a leader does. ``user_data`` asks
    a new process each time: a member that knows only what it was last assigned. ``metadata_version`` is
    the version this client's own members write. ``mutated`` says what the last ``assign`` changed in the
    metadata it was given, None if nothing. ``one_process``: the members of a group are consumers of the same
    process, and the class state is that of whoever was assigned something last.
    """

    protocols = (RebalanceProtocol.EAGER,)  # the coordinators know no other

    def __init__(
        self,
        assignor: Any,
        protocol: Any,
        coordinator: Any,
        version: str,
        homepage: str,
        member: Callable[[Any, str | None], Any] = lambda metadata, instance: metadata,
        *,
        one_process: bool = False,
    ) -> None:
        self._assignor = assignor
        self._leader = _process(assignor)
        self._protocol = protocol
        self._coordinator = coordinator
        self._member = member
        self.name: str = assignor.name
        self.promises = PYTHON[self.name]
        self.version = version
        self.homepage, self.issues = homepage, f"{homepage}/issues"
        self.metadata_version: int = assignor.version
        self.mutated: str | None = None
        self.one_process = one_process

    def assign(self, cluster: Cluster, group: GroupSubscription) -> GroupAssignment:
        """Return one call of the client's assignor; its exceptions pass through."""
        decode = self._protocol.METADATA.decode
        members = {
            member: self._member(
                decode(wire.encode_subscription(subscription)), subscription.group_instance_id
            )
            for member, subscription in group.items()
        }
        self.mutated = None
        assigned, self.mutated = led(self._leader, cluster, members, _seen)
        received = self._protocol.ASSIGNMENT.decode
        return {member: partitions(received(sent)) for member, sent in assigned.items()}

    def user_data(self, owned: Partitions, generation: int) -> bytes | None:
        """Return what a member that was last assigned ``owned`` in ``generation`` writes into its
        subscription.

        The generation is told to the assignor only if the installed release's coordinator does so: that of
        kafka-python tells the sticky one, that of aiokafka up to 0.14.0 none, and members claim with
        generation -1 (aiokafka issue 1176).
        """
        member = _process(self._assignor)
        if owned or generation != NO_GENERATION:
            assigned = wire.encode_assignment(owned, b"", self.metadata_version)
            member.on_assignment(self._protocol.ASSIGNMENT.decode(assigned))
            if (
                "on_generation_assignment" in self._coordinator._on_join_complete.__code__.co_names
                and self.name == "sticky"
            ):
                member.on_generation_assignment(generation)
        metadata = member.metadata({partition.topic for partition in owned})
        return wire.decode_subscription(metadata.encode()).user_data


def _seen(members: dict[str, Any]) -> EncodedMembers:
    return [(member, metadata.encode()) for member, metadata in members.items()]
