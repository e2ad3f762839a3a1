"""Assignors of a coordinator (KIP-848): Kafka's own and a user's in Java, and those in Python that say so."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from rebalance_verifier.base.processes.tools import ToolError
from rebalance_verifier.base.verdict import Level, Verdict
from rebalance_verifier.gate.search.plan import CheckPlan, SearchProfile
from rebalance_verifier.gate.search.result import Status
from rebalance_verifier.gate.search.search import check, describe
from rebalance_verifier.gate.targets.hosts.hosted import TargetError
from rebalance_verifier.gate.targets.hosts.inside import InProcess
from rebalance_verifier.gate.targets.resolve import resolve
from rebalance_verifier.gate.targets.session import Session
from rebalance_verifier.gate.targets.smoke import smoke
from rebalance_verifier.live.artifacts import jvm, maven
from rebalance_verifier.model.assignor import Promise
from rebalance_verifier.model.assignors.promises import JAVA
from rebalance_verifier.model.bugs.releases import NEWEST
from rebalance_verifier.model.values import (
    Cluster,
    GroupSubscription,
    Partitions,
    Subscription,
    TopicPartition,
)
from rebalance_verifier.properties.assignors.calls import Answer, Failure
from rebalance_verifier.properties.assignors.clause import CONSUMER

from tests.tiers import tiered

SERVER = [
    f"org.apache.kafka.coordinator.group.assignor.{name}" for name in ("RangeAssignor", "UniformAssignor")
]
COORDINATOR = "org.apache.kafka:kafka-group-coordinator"
TINY = SearchProfile(name="tiny", each=6, mixed=20, large=0, crowd=0, shrink=200)
T = tuple(TopicPartition("t", index) for index in range(3))


class Servers:
    """A server-side assignor in Python: all of a topic to the first subscriber."""

    protocols = ("consumer",)
    promises: tuple[str, ...] = ()
    keeps = False

    def assign(self, cluster: Cluster, group: GroupSubscription) -> Mapping[str, Partitions]:
        hands: dict[str, list[TopicPartition]] = {member: [] for member in group}
        for partition in cluster.partitions():
            members = sorted(m for m in group if partition.topic in group[m].topics)
            holders = [m for m in members if partition in group[m].owned_partitions]
            for member in holders[:1] if self.keeps and holders else members[:1]:
                hands[member].append(partition)
        return {member: tuple(hand) for member, hand in hands.items() if hand}


class Sticky(Servers):
    promises = ("sticky",)


class Keeping(Sticky):
    keeps = True


def judged(assignor, promises=None, level=Level.QUALITY):
    with InProcess(assignor) as session:
        return check(CheckPlan(profile=TINY, level=level), session, describe("mine", session.hello))


def broken(result):
    return {row.clause.id for row in result.clauses if row.status is Status.VIOLATED}


# --- in Python -------------------------------------------------------------------------------------------


def test_one_in_python_is_asked_what_a_coordinator_asks():
    result = judged(Servers())
    assert (result.verdict, broken(result)) == (Verdict.CONFORMANT, set())
    assert {row.protocol for row in result.clauses} == {CONSUMER}
    asked = {row.clause.id for row in result.clauses if row.status is Status.PASSED}
    assert asked == {f"assign/{number}" for number in (1, 2, 3, 4, 5, 6, 7)} | {"kip429/leader/5"}
    assert result.witnesses.keys() >= set(result.floors.get(CONSUMER, ()))


def test_what_was_assigned_before_is_what_stickiness_is_measured_on():
    assert broken(judged(Sticky())) == {"kip54/sticky/1"}
    assert broken(judged(Keeping())) == set()


def test_one_that_says_nothing_is_client_side():
    with InProcess(lambda cluster, group: {}) as session:
        assert session.hello.protocols == ("cooperative", "eager")


# --- in Java ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def newest():
    """Skips where a JDK, Maven or what it would download is missing."""
    try:
        return f"{COORDINATOR}:{NEWEST}", maven.classpath([f"{COORDINATOR}:{NEWEST}"])
    except ToolError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def shared(newest, tmp_path_factory):
    """The spec of the user's assignor, compiled here; add ``?mode=...``."""
    classes = tmp_path_factory.mktemp("shared")
    where, jars = newest
    javac = [jvm.program(), "--module", "jdk.compiler/com.sun.tools.javac.Main", "-cp", os.pathsep.join(jars)]
    source = Path(__file__).with_name("Shared.java")
    subprocess.run([*javac, "-d", classes, source], check=True, timeout=120)
    return f"java:acme.Shared@{where},{classes}"


def of(*members: tuple[str, Subscription]) -> dict[str, Subscription]:
    return dict(members)


@pytest.mark.slow
@pytest.mark.parametrize("name", SERVER)
def test_smoke_of_kafkas_own(name, newest):
    steps = smoke(resolve(f"java:{name}@{newest[0]}"), validate=True)
    assert [step.lines for step in steps if not step.ok] == []
    assert steps[0].lines[0] == "protocols: consumer"
    promised = {Promise.STICKY, Promise.BALANCED} if "Uniform" in name else {Promise.CO_PARTITIONED}
    assert promised <= JAVA[name]


@pytest.mark.slow
def test_it_is_given_what_a_coordinator_gives(shared):
    cluster = Cluster({"t": (("r1", "r2"), (), ()), "u": ((),)})
    group = of(
        ("A", Subscription(topics=("t", "gone"), owned_partitions=(*T[:2], TopicPartition("gone", 0)))),
        ("B", Subscription(topics=("t", "gone"), rack_id="r2", group_instance_id="i")),
    )
    with Session(resolve(f"{shared}?mode=show")) as session:
        reply = session.assign(CONSUMER, cluster, group)
        assert isinstance(reply, Failure)
        first, second = reply.message.split(" A")[1].split(" Bi")
        assert "IllegalStateException: Homogeneous" in reply.message
        assert first.startswith("--[3 of which [0, 1] in [r")
        assert first.endswith("true]2")
        assert second.startswith("r2[3 of which [] in [r")
        apart = session.assign(CONSUMER, cluster, group | of(("C", Subscription(topics=("t", "u")))))
        assert isinstance(apart, Failure)
        assert "Heterogeneous" in apart.message


@pytest.mark.slow
@pytest.mark.covering
@pytest.mark.parametrize(
    ("mode", "clauses"),
    tiered((
        ("", set()),
        ("twice", {"assign/1"}),
        ("keep", {"assign/1", "assign/2", "assign/3"}),
        ("mutate", {"assign/5"}),
        ("null", {"assign/4"}),
    ), ("", "twice", "mutate")),
)  # fmt: skip
def test_one_of_a_user_is_judged_by_the_same_clauses(mode, clauses, shared):
    with Session(resolve(f"{shared}?mode={mode}")) as session:
        result = check(CheckPlan(profile=TINY), session, describe("own", session.hello), fresh=session.close)
    assert broken(result) == clauses


@pytest.mark.slow
def test_a_class_that_is_no_assignor_at_all_is_refused(newest):
    with pytest.raises(TargetError, match="String is no ConsumerPartitionAssignor"):
        Session(resolve(f"java:java.lang.String@{newest[0]}")).__enter__()


@pytest.mark.slow
def test_the_order_of_a_request_decides_nothing(newest):
    """What is in maps by hash on a broker is there too: an answer depends on names and ids alone."""
    subscribed = Subscription(topics=("t", "u"))
    found = []
    with Session(resolve(f"java:{SERVER[1]}@{newest[0]}")) as session:
        for members, topics in (("ABC", {"t": 2, "u": 3}), ("CBA", {"u": 3, "t": 2})):
            reply = session.assign(CONSUMER, Cluster.of(topics), dict.fromkeys(members, subscribed))
            assert isinstance(reply, Answer)
            found.append({member: set(parts) for member, parts in reply.assignment.items()})
    assert found[0] == found[1]
