"""Java assignors in a JVM: Kafka's own from Maven, and one of a user's jar that misbehaves on demand."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from rebalance_verifier.base.processes.failure import FailureKind
from rebalance_verifier.base.processes.tools import ToolError
from rebalance_verifier.gate.search.plan import PROFILES, CheckPlan, numbered
from rebalance_verifier.gate.search.subject import Subject
from rebalance_verifier.gate.targets.hosts import messages
from rebalance_verifier.gate.targets.hosts.hosted import TargetError
from rebalance_verifier.gate.targets.hosts.java import LAGS
from rebalance_verifier.gate.targets.offsets import OffsetsBroker, offsets
from rebalance_verifier.gate.targets.resolve import resolve
from rebalance_verifier.gate.targets.session import Session
from rebalance_verifier.gate.targets.smoke import smoke
from rebalance_verifier.live.artifacts import jvm, maven
from rebalance_verifier.live.artifacts.maven import CLIENTS
from rebalance_verifier.model import wire
from rebalance_verifier.model.assignors.promises import JAVA, KAFKA
from rebalance_verifier.model.bugs.releases import NEWEST as NEWEST_KAFKA
from rebalance_verifier.model.values import Cluster, RebalanceProtocol, Subscription, TopicPartition
from rebalance_verifier.properties.assignors.calls import (
    Answer,
    Asker,
    Failure,
    UserDataQuestion,
)
from rebalance_verifier.properties.assignors.clauses import TABLE

from tests.processes import alive, left

pytestmark = pytest.mark.slow

NEWEST, OLDEST = f"{CLIENTS}:{NEWEST_KAFKA}", f"{CLIENTS}:2.4.1"
COOPERATIVE = f"java:{KAFKA}.CooperativeStickyAssignor"
EAGER = RebalanceProtocol.EAGER
T = tuple(TopicPartition("t", index) for index in range(4))


@pytest.fixture(scope="session")
def resolved():
    """Skips where a JDK, Maven or what it would download is missing."""
    for program in ("java", "mvn"):
        if shutil.which(program) is None:
            pytest.skip(f"needs {program}")
    try:
        for coordinates in (NEWEST, OLDEST):
            maven.classpath([coordinates])
    except ToolError as error:
        pytest.skip(str(error))
    try:
        resolve(f"{COOPERATIVE}@{NEWEST}")
    except TargetError as error:
        if "a JDK is needed" not in str(error):
            raise
        pytest.skip(str(error))


# In no package, named like our own class, and it wants a key with a = in it.
BRIDGE_OF_MINE = """
import java.util.Map;
import org.apache.kafka.common.Cluster;

public class BridgeOfMine extends acme.Own {
    private Object told;
    @Override public void configure(Map<String, ?> configs) { told = configs.get("a=b"); }
    @Override public GroupAssignment assign(Cluster cluster, GroupSubscription group) {
        throw new IllegalStateException("told " + told);
    }
}
"""


@pytest.fixture(scope="session")
def own(resolved, tmp_path_factory):
    """The spec of the user's assignor, compiled here; add ``?mode=...``."""
    classes = tmp_path_factory.mktemp("own")
    jars = os.pathsep.join(maven.classpath([NEWEST]))
    source = Path(__file__).with_name("Own.java")
    javac = [jvm.program(), "--module", "jdk.compiler/com.sun.tools.javac.Main"]
    other = classes / "BridgeOfMine.java"
    other.write_text(BRIDGE_OF_MINE, encoding="utf-8")
    sources = [source, source.with_name("ByLag.java"), other]
    subprocess.run([*javac, "-cp", jars, "-d", classes, *sources], check=True, timeout=120)
    return f"java:acme.Own@{NEWEST},{classes}"


def ask(session, members="AB", **subscription):
    group = {member: Subscription(topics=("t",), **subscription) for member in members}
    return session.assign(session.hello.protocols[0], Cluster.of({"t": 4}), group)


# --- Kafka's own -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "release"),
    [*((name, NEWEST) for name in JAVA if name.startswith(KAFKA)), (f"{KAFKA}.StickyAssignor", OLDEST)],
)
def test_smoke_of_kafkas_own(name, release, resolved):
    steps = smoke(resolve(f"java:{name}@{release}"), validate=True)
    assert [step.title for step in steps if not step.ok] == []
    racks = "rack-aware" in steps[0].lines[1]
    assert racks is (release == NEWEST and "RoundRobin" not in name)


def test_the_codecs_agree_in_both_directions(resolved, monkeypatch):
    """Java reads what we write in all versions, with text beyond ASCII, and we read what Java writes."""
    with Session(resolve(f"java:{KAFKA}.StickyAssignor@{NEWEST}")) as session:
        for version, rack, instance, owned in itertools.product(
            range(4), (None, "räck-\U0001f600"), (None, "i"), ((), (T[1], T[0], T[1]))
        ):
            subscription = Subscription(
                topics=("tü", "t"),
                user_data=b"\0\xff",
                owned_partitions=owned,
                generation_id=5,
                rack_id=rack,
                group_instance_id=instance,
                version=version,
            )
            group = {"mémber": subscription, "B": replace(subscription, user_data=None)}
            reply = session.assign(EAGER, Cluster({"t": (("räck-\U0001f600",), ()), "tü": ((),)}), group)
            assert isinstance(reply, Answer), reply
            assert len(reply.assignment["mémber"]) + len(reply.assignment["B"]) == 3
        data = session.user_data(T[:2], 6, Asker("A", ("t",)))
        assert data == wire.encode_sticky_user_data(T[:2], 6)

        broken = wire.encode_subscription
        monkeypatch.setattr(
            messages, "encode_subscription", lambda sub: broken(replace(sub, owned_partitions=T[:1]))
        )
        reply = ask(session, owned_partitions=T[1:2])
        assert isinstance(reply, Failure)
        assert reply.kind is FailureKind.GARBAGE
        assert "owned of A is [t-1], and Java reads [t-0]" in reply.message


@pytest.mark.parametrize("release", [NEWEST, OLDEST])
def test_histories_are_answered(release, resolved):
    """No scenario of a search meets anything that the bridge cannot express or does not survive."""
    with Session(resolve(f"{COOPERATIVE}@{release}")) as session:
        subject = Subject.of(session)
        scenarios = itertools.islice(
            numbered(CheckPlan(profile=PROFILES["smoke"]), session.hello.protocols), 50
        )
        records = [subject.play(scenario, TABLE) for scenario in scenarios]
        assert session.starts == 1
    kinds = {record.failure.kind for record in records if record.failure}
    assert kinds <= {FailureKind.ERRORED}  # the assignor throws, in both releases
    assert sum(record.questions for record in records) > 200


def test_what_the_newest_release_does_wrong_is_found_and_replayed(resolved, rebalance):
    options = ["--maven", NEWEST, "--clause", "kip54/sticky/1", "--level", "quality", "--profile", "smoke"]
    found = rebalance("check", COOPERATIVE, *options, "--fail-fast")
    assert found.code == 1
    assert "VIOLATION kip54/sticky/1" in found.out
    assert "confirmed in a fresh process" in " ".join(found.out.split())
    again = rebalance("replay")
    assert again.code == 1
    assert f"failing  {next(Path('.rebalance/failures').iterdir()).stem}" in again.out
    assert f"{COOPERATIVE}@{NEWEST}" in again.out


# --- a user's own ----------------------------------------------------------------------------------------


def test_what_a_users_assignor_says_of_itself(own):
    with Session(resolve(f"{own}?mode=calm#sticky")) as session:
        hello = session.hello
        reply = ask(session)
    assert (hello.name, hello.version, hello.protocols) == ("own-calm", "7", (EAGER,))
    assert hello.promises == {"sticky"}
    assert f"kafka-clients {NEWEST_KAFKA}" in str(hello.language)
    assert hello.user_data
    assert isinstance(reply, Answer)
    assert reply.assignment == {"A": T, "B": ()}


def test_each_member_has_an_assignor_of_its_own(own):
    with Session(resolve(own)) as session:
        first = Asker("A", ("t", "u"))
        session.history = 1
        assert session.user_data((), -1, first) == b"|[t, u]"
        ask(session)
        assert session.user_data(T, 1, first) == b"A1[t-0, t-1, t-2, t-3]hi|[t, u]"
        assert session.user_data(T, 1, first) == b"A1[t-0, t-1, t-2, t-3]hi|[t, u]"  # told once
        assert session.user_data(T[:1], 2, first) == b"A1[t-0, t-1, t-2, t-3]hiA2[t-0]|[t, u]"
        assert session.user_data((), 2, Asker("B", ("t",))) == b"B2[]hi|[t]"
        session.history = 2
        assert session.user_data(T[:1], 3, first) == b"A3[t-0]|[t, u]"
        assert session.user_data(T[:1], 4) == b"A4[t-0]|[t]"  # nobody in particular


def test_histories_that_are_played_at_once_are_kept_apart(own):
    def written(*asked):
        return [
            (n, (UserDataQuestion(owned, generation, Asker("A", ("t",))),)) for n, owned, generation in asked
        ]

    with Session(resolve(own)) as session:
        assert (session.hello.metadata_only, session.hello.user_data_from) == (True, None)
        assert session.hello.histories > 2
        data = session.answers(written((1, T[:1], 1), (2, T[1:2], 1), (1, T[:2], 2), (3, (), 1), (2, T, 2)))
        assert data == [
            [b"A1[t-0]|[t]"],
            [b"A1[t-1]|[t]"],
            [b"A1[t-0]A2[t-0, t-1]|[t]"],
            [b"A1[]|[t]"],
            [b"A1[t-1]A2[t-0, t-1, t-2, t-3]|[t]"],
        ]
        session.answers(written(*((n, (), 1) for n in range(10, 10 + session.hello.histories))))
        assert session.answers(written((1, T[:1], 3))) == [[b"A3[t-0]|[t]"]]  # so many ago that it may forget


@pytest.mark.parametrize(
    ("name", "sources"),
    [("StickyAssignor", {"owned", "generation"}), ("CooperativeStickyAssignor", {"generation"})],
)
def test_what_kafkas_own_write_follows_from(name, sources, resolved, monkeypatch):
    """Asked of one member after the other in any order it is what a member writes that is asked alone."""
    asked = [(T[:2], 3), ((), 7), (T[2:], 3), (T[:2], 8), ((), 3)]
    found = []
    with Session(resolve(f"java:{KAFKA}.{name}@{NEWEST}")) as session:
        assert session.hello.user_data_from == sources
        session._hello = replace(session.hello, user_data_from=None)
        for one in asked:
            session.history += 1
            found.append(session.user_data(*one, Asker("A", ("t",))))
        session.history += 1
        assert [session.user_data(*one, Asker("A", ("t", "u"))) for one in asked] == found
    keys = [one if "owned" in sources else one[1] for one in asked]
    assert len(set(found)) == len(set(keys)) == len(set(zip(keys, found, strict=True)))


def test_a_driver_of_version_1_is_answered_in_its_words(own):
    with Session(resolve(own)) as session:
        child = session._child
        assert child is not None
        child.send(b'{"seq":0,"cmd":"hello","version":1}\n')
        result = json.loads(child.line(time.monotonic() + 60))["result"]
    assert {"name", "user_data"} <= result.keys()
    assert {"user_data_from", "metadata_only", "histories"}.isdisjoint(result)


@pytest.mark.parametrize(
    ("mode", "kind", "text"),
    [
        ("exit", FailureKind.CRASH, "exit status 7"),
        ("deep", FailureKind.ERRORED, "java.lang.StackOverflowError"),
        ("void", FailureKind.GARBAGE, "assignment of null for the member A"),
        ("throw", FailureKind.ERRORED, "java.lang.IllegalStateException: no"),
        ("heap", FailureKind.ERRORED, "java.lang.OutOfMemoryError: Java heap space"),
    ],
)
def test_what_it_does_is_a_verdict(mode, kind, text, own):
    with Session(resolve(f"{own}?mode={mode}"), memory_mib=512) as session:
        reply = ask(session)
        assert isinstance(reply, Failure)
        assert reply.kind is kind
        assert text in reply.message
        assert "\n" not in reply.message
        if kind is FailureKind.ERRORED:
            assert "at acme.Own.assign(Own.java:" in reply.detail
            assert session.starts == 1  # it can be asked on


def test_frames_and_keys_of_a_user_are_not_taken_for_ours(own):
    with Session(resolve(f"java:BridgeOfMine@{own.partition('@')[2]}?a%3Db=c=d")) as session:
        reply = ask(session)
    assert isinstance(reply, Failure)
    assert reply.message == "java.lang.IllegalStateException: told c=d"
    assert "at BridgeOfMine.assign(BridgeOfMine.java:" in reply.detail
    assert "at Bridge." not in reply.detail


def test_a_hang_is_a_verdict_that_says_where(own):
    with Session(resolve(f"{own}?mode=hang"), call_seconds=1.0) as session:
        pid = session._child.pid if session._child else 0
        reply = ask(session)
    assert isinstance(reply, Failure)
    assert reply.kind is FailureKind.TIMEOUT
    assert "acme.Own.assign" in reply.detail
    assert not left([pid])


def test_what_it_prints_and_changes(own):
    with Session(resolve(f"{own}?mode=print")) as session:
        assert isinstance(ask(session), Answer)
    with Session(resolve(f"{own}?mode=mutate")) as session:
        reply = ask(session, owned_partitions=T[:1])
        assert isinstance(reply, Answer)
        assert "subscription of A was [[t], [t-0], null" in str(reply.mutated)


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ("java:acme.Missing@{where}", "no class acme.Missing in "),
        ("java:java.lang.String@{where}", "java.lang.String is no ConsumerPartitionAssignor"),
        (f"java:{KAFKA}.internals.AbstractPartitionAssignor@{{where}}", "is abstract"),
        ("java:acme.Own@{where}?mode=refuse", "acme.Own does not take its configuration"),
    ],
)
def test_classes_that_do_not_start(spec, text, own):
    where = own.partition("@")[2]
    with pytest.raises(TargetError) as error, Session(resolve(spec.format(where=where))):
        pass
    assert text in str(error.value)


def test_jars_without_kafka(own):
    with pytest.raises(TargetError, match=r"the class path has no kafka-clients, 2\.4 or newer"):
        resolve(f"java:acme.Own@{own.rpartition(',')[2]}")


@pytest.mark.nightly
def test_internals_that_a_release_has_no_more(resolved, tmp_path):
    """The bridge compiles, starts, and says what is gone: it is no verdict on the assignor."""
    jars = maven.classpath([NEWEST])
    gone = tmp_path / "kafka-clients.jar"
    with zipfile.ZipFile(jars[0]) as whole, zipfile.ZipFile(gone, "w") as less:
        for name in whole.namelist():
            if not name.endswith("/ConsumerProtocol.class"):
                less.writestr(name, whole.read(name))
    with pytest.raises(TargetError) as error, Session(resolve(f"{COOPERATIVE}@{gone},{','.join(jars[1:])}")):
        pass
    assert (
        f"kafka-clients {NEWEST_KAFKA} has no org.apache.kafka.clients.consumer.internals.ConsumerProtocol"
        in str(error.value)
    )
    assert "take a newer one, or an older kafka-clients" in str(error.value)


def test_a_release_that_does_not_exist(resolved):
    with pytest.raises(TargetError) as error:
        resolve(f"{COOPERATIVE}@{CLIENTS}:0.0.0")
    assert str(error.value).startswith(f"{CLIENTS}:0.0.0: ")
    assert "\n" not in str(error.value)


def test_it_ends_with_a_parent_that_is_killed(own, tmp_path):
    """Also in the middle of a call that never returns."""
    script = textwrap.dedent(
        f"""
        from rebalance_verifier.gate.targets.session import Session
        from rebalance_verifier.gate.targets.resolve import resolve
        from rebalance_verifier.model.values import Cluster, RebalanceProtocol, Subscription
        with Session(resolve({own + "?mode=hang"!r}), call_seconds=100) as session:
            print(session._child.pid, flush=True)
            session.assign(RebalanceProtocol.EAGER, Cluster.of({{"t": 1}}), {{"A": Subscription(("t",))}})
        """
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, cwd=tmp_path)
    assert parent.stdout
    with parent:
        pid = int(parent.stdout.readline())
        parent.send_signal(signal.SIGKILL)
    try:
        assert not left([pid])
    finally:
        if alive(pid):
            os.kill(pid, signal.SIGKILL)


# --- one that asks a broker ------------------------------------------------------------------------------


def lag(partition: TopicPartition, moment: int = 0) -> int:
    committed, end = offsets(*partition, moment)
    return end - max(committed, 0)


def test_an_assignor_by_lag_asks_a_broker_that_knows_the_topics_of_the_question(own, monkeypatch):
    monkeypatch.setattr("rebalance_verifier.gate.targets.session.MOST_LED", 2)
    target = resolve(own.replace("acme.Own", "acme.ByLag") + f"?{LAGS}")
    with Session(target) as session:
        assert session.hello.histories == 1
        for history, (topic, count) in enumerate((("t", 9), ("other", 5), ("t", 12), ("t", 0)), 1):
            session.history = history
            cluster = Cluster.of({topic: count})
            group = {member: Subscription(topics=(topic,)) for member in "AB"}
            reply = session.assign(EAGER, cluster, group)
            assert isinstance(reply, Answer), reply
            every = [TopicPartition(topic, index) for index in range(count)]
            assert reply.assignment["A"] == tuple(sorted(every, key=lag, reverse=True))
            assert session.again(EAGER, cluster, group) == reply
        session.moment, cluster = 3, Cluster.of({"t": 9})
        group = {member: Subscription(topics=("t",)) for member in "AB"}
        reply = session.assign(EAGER, cluster, group)
        every = [TopicPartition("t", index) for index in range(9)]
        then = [*sorted(every, key=lambda one: lag(one, 3), reverse=True)]
        assert isinstance(reply, Answer)
        assert reply.assignment["A"] == tuple(then) != tuple(sorted(every, key=lag, reverse=True))
        assert session.again(EAGER, cluster, group) == reply
        assert session.starts == 2  # what it left behind is gone from time to time
        assert session._offsets is not None
        host, port = session._offsets.address.split(":")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)), timeout=5)


def test_the_broker_of_a_target_that_does_not_start_is_closed(own):
    session = Session(resolve(f"{own}?mode=refuse,{LAGS}"))
    with pytest.raises(TargetError, match="does not take its configuration"), session:
        pass
    assert session._offsets is None
    assert not [one for one in threading.enumerate() if one.name == OffsetsBroker.__name__]


def test_lags_are_of_every_kind():
    lags = [lag(TopicPartition(topic, index)) for topic in "abcdef" for index in range(50)]
    committed = [offsets(topic, index)[0] for topic in "abcdef" for index in range(50)]
    assert 0 in lags
    assert -1 in committed
    assert len(set(lags)) > 100
    assert all(known == -1 or known >= 0 for known in committed)


def test_lags_change_as_time_goes_on_and_offsets_only_grow():
    for index in range(50):
        ends, commits = zip(*(offsets("t", index, moment)[::-1] for moment in range(4)), strict=True)
        assert list(ends) == sorted({*ends})
        assert list(commits) == sorted(commits)
    assert len({tuple(lag(TopicPartition("t", i), moment) for i in range(9)) for moment in range(4)}) == 4
