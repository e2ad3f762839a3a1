"""The interfaces of Kafka that people plug assignors in by, and which of them a class implements.

What a class implements is read off its class file and those of its superclasses: nothing of it is run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rebalance_verifier.base.processes.tools import ToolError
from rebalance_verifier.gate.targets.hosts.java.class_file import ClassPath, supertypes
from rebalance_verifier.live.artifacts import jvm
from rebalance_verifier.model.bugs.releases import NEWEST
from rebalance_verifier.model.values import RebalanceProtocol

API = "org.apache.kafka.coordinator.group.api."


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignorInterface:
    """One row. ``kind`` is its name in a spec (``java:CLASS/KIND``), ``label`` that in a report.

    ``names``: of the interface in the releases that have it, with packages. ``where``: who calls it.
    ``jar``: of Kafka, that has it, where that is another than kafka-clients.
    ``harness``: the class beside ``Bridge`` that answers for it, in a file of its name; "" is Bridge itself.
    ``older``: the one where only a later name of the interface is there. ``besides``: what it needs too.
    ``protocol``: what the harness says to Bridge.
    ``not_yet``: why it is not judged, if it is not.
    """

    kind: str
    label: str
    names: tuple[str, ...]
    where: str
    jar: str = ""
    harness: str = ""
    older: str = ""
    besides: tuple[str, ...] = ()
    protocol: RebalanceProtocol | None = None
    not_yet: str = ""

    def harness_on(self, jars: Sequence[str]) -> str:
        """Return the class that answers for it with what is on a class path."""
        return self.older if self.older and not jvm.holds(jars, class_file(self.names[0])) else self.harness


def class_file(name: str) -> str:
    """Return where a class lies in a jar."""
    return f"{name.replace('.', '/')}.class"


RUNTIME_CLASS = "org.apache.kafka.streams.processor.internals.StreamsPartitionAssignor"

RUNTIME = AssignorInterface(
    kind="streams-runtime",
    label="a whole group of it",
    names=(RUNTIME_CLASS,),
    jar="kafka-streams",
    where="the consumers of a Streams application",
    harness="StreamsRuntime",
    besides=("StreamsMember",),
    protocol=RebalanceProtocol.TASKS,
)
"""What calls task assignors in an application; nobody plugs it in, and it is judged around what they do."""

INTERFACES = (
    AssignorInterface(
        kind="client",
        label="ConsumerPartitionAssignor",
        names=("org.apache.kafka.clients.consumer.ConsumerPartitionAssignor",),
        where="the consumer that leads its group (partition.assignment.strategy)",
    ),
    AssignorInterface(
        kind="broker",
        label="ConsumerGroupPartitionAssignor",
        names=(f"{API}assignor.ConsumerGroupPartitionAssignor",),
        jar="kafka-group-coordinator-api",
        where="the broker, for consumer groups (group.consumer.assignors, KIP-848)",
        harness="ServerSide",
        protocol=RebalanceProtocol.CONSUMER,
    ),
    AssignorInterface(
        kind="share",
        label="ShareGroupPartitionAssignor",
        names=(f"{API}assignor.ShareGroupPartitionAssignor",),
        jar="kafka-group-coordinator-api",
        where="the broker, for share groups (group.share.assignors, KIP-932)",
        harness="ServerSide",
        protocol=RebalanceProtocol.SHARE,
    ),
    AssignorInterface(
        kind="streams",
        label="TaskAssignor of Kafka Streams",
        names=(
            "org.apache.kafka.streams.processor.assignment.TaskAssignor",
            "org.apache.kafka.streams.processor.internals.assignment.LegacyTaskAssignor",
        ),
        jar="kafka-streams",
        where="the Streams application that leads its group (task.assignor.class, KIP-924)",
        harness="StreamsTasks",
        protocol=RebalanceProtocol.TASKS,
    ),
    AssignorInterface(
        kind="streams-broker",
        label="TaskAssignor of a broker",
        names=(
            f"{API}streams.assignor.TaskAssignor",
            "org.apache.kafka.coordinator.group.streams.assignor.TaskAssignor",
        ),
        jar="kafka-group-coordinator-api",
        where="the broker, for streams groups (group.streams.assignors, KIP-1357)",
        harness="GroupTasks44",
        older="GroupTasks41",
        besides=("GroupTasks",),
        protocol=RebalanceProtocol.STREAMS,
    ),
)
"""In the order in which they are taken where a class implements several."""

_BEFORE_2_4 = "org.apache.kafka.clients.consumer.internals.PartitionAssignor"

KINDS: Mapping[str, AssignorInterface] = {one.kind: one for one in INTERFACES}


def judged_list() -> list[str]:
    """Return a line for each interface: what it is called in a spec, and who calls it."""
    lines = {one: f"{one.kind}: {one.label}, called by {one.where}" for one in INTERFACES}
    return [line + (f" (not yet: {one.not_yet})" if one.not_yet else "") for one, line in lines.items()]


def kind_named(name: str) -> AssignorInterface:
    """Return the interface of a kind. Raises ToolError that lists them."""
    if name not in KINDS:
        raise ToolError(f"no kind of assignor is called {name!r}; there are", *judged_list())
    return KINDS[name]


def interfaces_of(class_name: str, jars: Sequence[str]) -> list[AssignorInterface] | None:
    """Return those that a class implements, in their order; None where that cannot be known, since it or a
    class above it is not on the class path. Raises ToolError for what is no class file, and for an assignor
    of before KIP-429."""
    with ClassPath(map(Path, jars)) as path:
        try:
            above = supertypes(class_name, path)
        except ValueError as error:
            file = class_file(class_name)
            raise ToolError(
                f"{file} on the class path is no class file, or not all of it: build it anew"
            ) from error
        if above is None:
            return None
        found = [one for one in INTERFACES if not above.isdisjoint(one.names)]
        if not found and _BEFORE_2_4 in above:
            raise ToolError(
                f"{class_name} has the interface of kafka-clients before 2.4, {_BEFORE_2_4}",
                "compile it against kafka-clients 2.4 or newer, as a ConsumerPartitionAssignor (what extends "
                "AbstractPartitionAssignor is one there), and add that jar",
            )
        whole = all(name.startswith("java") or path.bytes_of(name) for name in above)
        return found if found or whole else None


def chosen(
    class_name: str, kind: str, jars: Sequence[str]
) -> tuple[AssignorInterface, list[AssignorInterface]]:
    """Return the interface by which a class is judged, which ``kind`` names where it is not "", and the
    others that it has. A class that is not found counts as one of the first: Bridge says that it is missing.
    Raises ToolError."""
    if class_name == RUNTIME_CLASS and not kind:
        return RUNTIME, []
    wanted = kind_named(kind) if kind else None
    found = interfaces_of(class_name, jars)
    if found is None:
        return wanted or INTERFACES[0], []
    if not found:
        raise ToolError(f"{class_name} is no assignor; what can be judged is of these kinds", *judged_list())
    if wanted is not None and wanted not in found:
        kinds = " or ".join(f"java:{class_name}/{one.kind}" for one in found)
        raise ToolError(f"{class_name} is no {wanted.label}; as what it is: {kinds}")
    judged = wanted or next((one for one in found if not one.not_yet), found[0])
    if judged.not_yet:
        raise ToolError(
            f"{class_name} is a {judged.label}, called by {judged.where}",
            f"not judged yet: {judged.not_yet}",
        )
    if judged.jar and not any(jvm.holds(jars, class_file(name)) for name in judged.names):
        raise ToolError(
            f"{class_name} is a {judged.label}, which is in no jar of the class path",
            f"add --maven org.apache.kafka:{judged.jar}:{NEWEST}",
        )
    return judged, [one for one in found if one is not judged]
