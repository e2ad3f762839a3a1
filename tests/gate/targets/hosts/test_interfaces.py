"""By which of Kafka's interfaces a class is judged: read off class files, without running anything."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from rebalance_verifier.base.processes.tools import ToolError
from rebalance_verifier.gate.targets.hosts.java.interfaces import (
    INTERFACES,
    chosen,
    interfaces_of,
    judged_list,
)
from rebalance_verifier.live.artifacts import jvm, maven
from rebalance_verifier.model.bugs.releases import NEWEST

COORDINATOR = f"org.apache.kafka:kafka-group-coordinator:{NEWEST}"
CLIENTS = "org.apache.kafka.clients.consumer"
BROKER = "org.apache.kafka.coordinator.group.assignor"

SOURCE = """
package acme;
import org.apache.kafka.coordinator.group.api.assignor.*;
abstract class Base implements ConsumerGroupPartitionAssignor {
    public String name() { return "both"; }
    public GroupAssignment assign(GroupSpec group, SubscribedTopicDescriber topics) { return null; }
}
interface Shares extends ShareGroupPartitionAssignor {}
public class Both extends Base implements Shares {}
class Other implements Comparable<Other> {
    public int compareTo(Other other) { return 0; }
}
"""


@pytest.fixture(scope="module")
def jars() -> list[str]:
    try:
        return [*maven.classpath([COORDINATOR])]
    except ToolError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def own(jars: list[str], tmp_path_factory: pytest.TempPathFactory) -> str:
    made = tmp_path_factory.mktemp("both")
    (made / "Both.java").write_text(SOURCE)
    javac = [jvm.program(), "--module", "jdk.compiler/com.sun.tools.javac.Main", "-cp", os.pathsep.join(jars)]
    subprocess.run([*javac, "-d", made, made / "Both.java"], check=True, timeout=120)
    return str(made)


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        (f"{CLIENTS}.CooperativeStickyAssignor", ["client"]),  # by its superclass
        (f"{CLIENTS}.RangeAssignor", ["client"]),
        (f"{BROKER}.UniformAssignor", ["broker"]),
        (f"{BROKER}.SimpleAssignor", ["share"]),
        ("org.apache.kafka.coordinator.group.streams.assignor.StickyTaskAssignor", ["streams-broker"]),
        (f"{CLIENTS}.KafkaConsumer", []),
        (f"{CLIENTS}.ConsumerPartitionAssignor$Subscription", []),
        ("acme.Both", ["broker", "share"]),  # by a superclass, and by an interface of its own
        ("acme.Other", []),
    ],
)
def test_a_class_is_what_its_supertypes_are(name: str, kinds: list[str], jars: list[str], own: str) -> None:
    found = interfaces_of(name, [*jars, own])
    assert found is not None
    assert [one.kind for one in found] == kinds


def test_what_is_not_on_the_class_path_is_not_known(jars: list[str], own: str) -> None:
    assert interfaces_of("acme.Nothing", [*jars, own]) is None
    without = [one for one in jars if "kafka-group-coordinator" not in os.path.basename(one)]
    [broker] = interfaces_of(f"{BROKER}.UniformAssignor", jars) or []
    assert interfaces_of("acme.Both", [own]) == [broker, *(one for one in INTERFACES if one.kind == "share")]
    with pytest.raises(ToolError, match="in no jar of the class path") as wrong:
        chosen("acme.Both", "", [*without, own])
    assert f"--maven org.apache.kafka:kafka-group-coordinator-api:{NEWEST}" in str(wrong.value)


def test_one_of_several_is_taken_and_the_others_are_named(jars: list[str], own: str) -> None:
    path = [*jars, own]
    judged, others = chosen("acme.Both", "", path)
    assert (judged.kind, [one.kind for one in others]) == ("broker", ["share"])
    with pytest.raises(ToolError, match="no ConsumerPartitionAssignor") as wrong:
        chosen("acme.Both", "client", path)
    assert "java:acme.Both/broker or java:acme.Both/share" in str(wrong.value)


def test_a_class_that_is_none_gets_the_list(jars: list[str], own: str) -> None:
    with pytest.raises(ToolError, match=r"acme\.Other is no assignor") as wrong:
        chosen("acme.Other", "", [*jars, own])
    assert all(line in str(wrong.value) for line in judged_list())
    assert len(judged_list()) == len(INTERFACES) == 5
    with pytest.raises(ToolError, match="no kind of assignor is called 'sharing'"):
        chosen("acme.Other", "sharing", [*jars, own])


def test_a_class_file_that_is_none_is_told_from_a_class_that_is_no_assignor(tmp_path: Path) -> None:
    (tmp_path / "acme").mkdir()
    for name, data in (("Empty", b""), ("Text", b"no class"), ("Cut", b"\xca\xfe\xba\xbe\0\0\0\x37\0\x09\7")):
        (tmp_path / "acme" / f"{name}.class").write_bytes(data)
        with pytest.raises(
            ToolError, match=rf"acme/{name}\.class on the class path is no class file, or not all"
        ):
            interfaces_of(f"acme.{name}", [str(tmp_path)])


def test_an_assignor_of_before_kip_429_is_named_as_that(jars: list[str], tmp_path: Path) -> None:
    old = "org.apache.kafka.clients.consumer.internals"
    (tmp_path / "Old.java").write_text(f"package acme; class Old implements {old}.PartitionAssignor {{}}")
    (tmp_path / "PartitionAssignor.java").write_text(
        f"package {old}; public interface PartitionAssignor {{}}"
    )
    javac = [jvm.program(), "--module", "jdk.compiler/com.sun.tools.javac.Main"]
    subprocess.run([*javac, "-d", tmp_path, *tmp_path.glob("*.java")], check=True, timeout=120)
    with pytest.raises(ToolError, match=r"acme.Old has the interface of kafka-clients before 2\.4"):
        chosen("acme.Old", "", [str(tmp_path), *jars])
