"""An assignor of a user's jar in real consumers: what it breaks, and that a hostile one is a verdict."""

from __future__ import annotations

import contextlib
import os
import subprocess
import zipfile
from pathlib import Path

import pytest
from rebalance_verifier.base.processes.tools import ToolError
from rebalance_verifier.explore.groups.scenarios import SCENARIOS, ScenarioSize
from rebalance_verifier.live.artifacts import jvm, maven
from rebalance_verifier.live.artifacts.maven import CLIENTS
from rebalance_verifier.live.code.replay.group import CodeReleases
from rebalance_verifier.live.code.search.assignor import OF_ASSIGNORS, without_clients
from rebalance_verifier.live.code.search.group import GroupAssignor
from rebalance_verifier.live.code.search.walks import UNLIMITED_FAULTS, CodeSearchPlan, search_walks
from rebalance_verifier.model.bugs.releases import NEWEST

from tests.command import Rebalance
from tests.live.code.played import RELEASE, needs_java
from tests.processes import left

COORDINATES = f"{CLIENTS}:{RELEASE}"


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("in-group")
    javac = [jvm.program(), "--module", "jdk.compiler/com.sun.tools.javac.Main"]
    jars = os.pathsep.join(maven.classpath([COORDINATES]))
    source = Path(__file__).with_name("InGroup.java")
    subprocess.run([*javac, "-cp", jars, "-d", made, source], check=True, timeout=120)
    return made


def checked(rebalance: Rebalance, classes: Path, mode: str, *more: str) -> tuple[int, str]:
    ran = rebalance(
        "check", "java:acme.InGroup", "--classpath", str(classes), "--maven", COORDINATES, "--in-group",
        "--config", f"mode={mode}", "--profile", "smoke", "--jobs", "1", *more,
    )  # fmt: skip
    return ran.code, ran.out or ran.err


def test_the_release_is_that_of_the_clients_on_the_class_path(tmp_path: Path) -> None:
    clients, other = tmp_path / "a.jar", tmp_path / "b.jar"
    with zipfile.ZipFile(clients, "w") as jar:
        jar.writestr("org/apache/kafka/clients/consumer/KafkaConsumer.class", "")
        jar.writestr("kafka/kafka-version.properties", "commitId=1\nversion=3.9.1\n")
    with zipfile.ZipFile(other, "w") as jar:
        jar.writestr("acme/InGroup.class", "")
    paths = [str(other), str(tmp_path), str(clients)]
    assert without_clients(paths) == ("3.9.1", (str(other), str(tmp_path)))
    with pytest.raises(ToolError, match="no jar of kafka-clients"):
        without_clients(paths[:2])


@needs_java
@pytest.mark.nightly  # docs/how-to/judge-a-java-assignor.md has one that runs by day
def test_a_good_one_holds(rebalance: Rebalance, classes: Path) -> None:
    code, text = checked(rebalance, classes, "good")
    assert (code, text.split()[0]) == (0, "HOLDS"), text


@needs_java
@pytest.mark.nightly
@pytest.mark.parametrize(
    ("mode", "sentences"),
    [
        ("exit", ["cell: the simulation ended with exit status 3", "the JVM ended"]),
        ("twice", ["leader/grant: ", "group/owner: "]),
    ],
)
def test_the_end_of_the_jvm_is_a_verdict_and_so_is_who_grants_twice(
    rebalance: Rebalance, classes: Path, mode: str, sentences: list[str]
) -> None:
    code, text = checked(rebalance, classes, mode)
    assert code == 1
    assert [one for one in sentences if one not in text] == []


@needs_java
@pytest.mark.nightly
@pytest.mark.parametrize(
    ("mode", "sentence"),
    [
        ("throws", "poll throws java.lang.ArrayIndexOutOfBoundsException"),
        ("loop", "cell: the simulation does not answer within 10 s"),
        ("memory", "java.lang.OutOfMemoryError"),
        ("halt", "cell: the simulation ended with exit status 4"),
        ("answers", "cell: the simulation answers what was not asked"),
    ],
)
def test_what_it_throws_what_never_ends_and_what_takes_all_memory(
    rebalance: Rebalance, classes: Path, mode: str, sentence: str
) -> None:
    code, text = checked(rebalance, classes, mode, "--call-seconds", "10")
    assert code == 1
    assert sentence in text


@pytest.mark.covering
@needs_java
@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_first_run_shows_who_forgets_to_withhold_and_tells_what_kafka_says(
    classes: Path, seed: int
) -> None:
    """A random run shows it in four of ten, or one: the first is of members that come one after the other."""
    size = ScenarioSize(members=3, partitions=4, budget=UNLIMITED_FAULTS)
    plan = CodeSearchPlan(
        setup=SCENARIOS["dynamic"].setup(size),
        releases=CodeReleases(coordinator=NEWEST, consumers=(RELEASE,)),
        walks=1,
        seed=seed,
        jobs=1,
        assignor=GroupAssignor(
            class_name="acme.InGroup", classpath=(str(classes),), config={"mode": "forgets"}
        ),
        clauses=OF_ASSIGNORS,
    )
    [found] = search_walks(plan).findings
    assert "IllegalStateException: Assignor supporting the COOPERATIVE protocol" in found.breach.sentence
    assert [one.action for one in found.events].count("start") == 2


@needs_java
def test_an_assignor_of_a_broker_is_in_no_consumer(rebalance: Rebalance) -> None:
    coordinator = f"org.apache.kafka:kafka-group-coordinator:{NEWEST}"
    uniform = "java:org.apache.kafka.coordinator.group.assignor.UniformAssignor"
    ran = rebalance("check", uniform, "--maven", coordinator, "--in-group")
    assert (ran.code, ran.out) == (2, "")
    assert "no consumer runs org.apache.kafka.coordinator.group.assignor.UniformAssignor" in ran.err
    assert "leave --in-group out" in ran.err


@needs_java
@pytest.mark.nightly
def test_who_kills_the_process_that_plays_gets_no_verdict(rebalance: Rebalance, classes: Path) -> None:
    code, text = checked(rebalance, classes, "parent")
    assert (code, text.split()[0]) == (3, "INCONCLUSIVE"), text
    assert "a process that plays was killed" in text


@needs_java
@pytest.mark.nightly
@pytest.mark.parametrize("mode", ["threads", "children"])
def test_what_it_starts_ends_with_it(rebalance: Rebalance, classes: Path, mode: str) -> None:
    code, text = checked(rebalance, classes, mode)
    assert (code, text.split()[0]) == (0, "HOLDS"), text
    assert left(sleeping()) == []


def sleeping() -> list[int]:
    """The children that the assignor starts, in sessions of their own."""
    listed = [int(one.name) for one in Path("/proc").iterdir() if one.name.isdigit()]
    found = []
    for pid in listed:
        with contextlib.suppress(OSError):
            if Path(f"/proc/{pid}/cmdline").read_bytes() == b"sleep\x00987\x00":
                found.append(pid)
    return found


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("cooperative-sticky", "--in-group"), "--in-group takes a java:CLASS"),
        (("cooperative-sticky", "--in-group", "--clause", "assign"), "--clause does not go with --in-group"),
    ],
)
def test_what_cannot_be_played_in_a_group_is_refused(
    rebalance: Rebalance, arguments: tuple[str, ...], message: str
) -> None:
    ran = rebalance("check", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
