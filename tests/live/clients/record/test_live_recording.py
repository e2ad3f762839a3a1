"""Recordings of real consumers. Slow: on the mock cluster; nightly: on Apache Kafka, with Java consumers."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from rebalance_verifier.base.processes.program import CommandRefused
from rebalance_verifier.base.processes.tools import ToolError
from rebalance_verifier.base.verdict import Verdict
from rebalance_verifier.live.clients.clusters.cluster import Unsupported
from rebalance_verifier.live.clients.clusters.defaults import KAFKA, SESSION
from rebalance_verifier.live.clients.clusters.mock import MockCluster
from rebalance_verifier.live.clients.consumers.member import ClientProfile, LiveMember, Log, command
from rebalance_verifier.live.clients.record.record import play
from rebalance_verifier.live.clients.record.request import Request, again, clients
from rebalance_verifier.live.clients.record.run import RecordingRun
from rebalance_verifier.live.clients.record.scenarios import RecordingStep
from rebalance_verifier.live.conformance.log import read
from rebalance_verifier.live.conformance.question import Choices
from rebalance_verifier.live.conformance.wire.question import ask_wire, build_wire_question
from rebalance_verifier.model.bugs.releases import NEWEST

from tests.processes import LINUX, alive, left

RECORDINGS = Path(__file__).parents[4] / "examples" / "recordings"


def needs(*modules: str) -> pytest.MarkDecorator:
    missing = [name for name in modules if not find_spec(name)]
    return pytest.mark.skipif(bool(missing), reason=f"needs {', '.join(missing)}")


with_mock = needs("confluent_kafka")
with_java = pytest.mark.skipif(
    not (shutil.which("java") and shutil.which("mvn")), reason="needs a JDK and Maven"
)


def record(tmp_path: Path, several: str, scenario: str, **more):
    out = tmp_path / "out"
    more.setdefault("settle", 120.0)  # a machine may be busy
    with MockCluster() as cluster:
        return play(
            Request(cluster="mock", clients=clients(several), scenario=scenario, **more),
            cluster,
            out,
            lambda _: None,
        )


@pytest.mark.slow
@with_mock
def test_librdkafka_scales_out_and_the_record_says_how(tmp_path: Path) -> None:
    made = record(tmp_path, "confluent:3", "scale-out")
    assert (made.verdict, made.unsupported) == (Verdict.CONFORMANT, "")
    last = made.rests[-1]
    assert sorted(name for names in last.owned.values() for name in names) == sorted(last.wanted)
    assert {len(names) for names in last.owned.values()} == {2}
    assert made.unread == 0
    lines = [json.loads(line) for line in (made.out / "events.jsonl").read_text().splitlines()]
    assert [line["at"] for line in lines] == sorted(line["at"] for line in lines)
    # Who joins later is assigned what another has revoked. On a busy machine one may get its own back first.
    handed = [
        (revoked["generation"], gained["generation"])
        for revoked in lines
        for gained in lines
        if (revoked["event"], gained["event"]) == ("revoked", "assigned") and gained["at"] > revoked["at"]
        if gained["consumer"] != revoked["consumer"] and {*revoked["partitions"]} & {*gained["partitions"]}
    ]
    assert handed
    assert all(after > before for before, after in handed)
    run = json.loads((made.out / "run.json").read_text())
    assert run["cluster"]["version"]
    assert "librdkafka" in run["clients"]["confluent-1"]
    assert [step["do"] for step in run["steps"]] == ["start", "settle"] * 3


@pytest.mark.slow
@with_mock
@needs("kafka")
def test_kafka_python_beside_librdkafka_in_one_group(tmp_path: Path) -> None:
    made = record(tmp_path, "kafka-python:1,confluent:1", "scale-out")
    assert made.unsupported == ""
    last = made.rests[-1]
    assert last.settled, last.why
    assert all(len(last.owned[name]) == 3 for name in ("kafka-python-1", "confluent-1"))


@pytest.mark.slow
@with_mock
@needs("aiokafka")
def test_aiokafka_after_a_kill(tmp_path: Path) -> None:
    made = record(tmp_path, "aiokafka:2", "crash", session=1200)
    assert made.unsupported == ""
    assert [rest.settled for rest in made.rests] == [True] * 3
    assert made.rests[1].live == ("aiokafka-2",)
    closed = [line for line in made.lines if line["event"] == "closed" and line.get("detail") == "killed"]
    assert [line["consumer"] for line in closed] == ["aiokafka-1"]
    assert "owned-twice" not in {one.check for one in made.findings}


@pytest.mark.slow
@with_mock
def test_a_planted_overlap_is_found_in_a_real_record(tmp_path: Path) -> None:
    """The judge is not blind on what real clients write: without their revocations it finds two owners."""
    from rebalance_verifier.live.clients.record.judge import judge

    made = record(tmp_path, "confluent:2", "scale-out")
    assert made.gating == []
    spoiled = [line for line in made.lines if line["event"] != "revoked"]
    assert "owned-twice" in {one.check for one in judge(spoiled, made.rests)}


@with_mock
@pytest.mark.slow
def test_the_mock_says_what_it_cannot_do() -> None:
    with MockCluster() as cluster:
        cluster.create_topic("t", 2)
        cluster.produce("t", 1, 3)
        with pytest.raises(CommandRefused):
            cluster.create_topic("t", 2)
        with pytest.raises(Unsupported, match="cannot add partitions"):
            cluster.add_partitions("t", 4)
        pid = cluster.pid
    assert not alive(pid)


@with_mock
@pytest.mark.slow
def test_a_consumer_that_dies_says_so_by_its_end() -> None:
    from rebalance_verifier.live.clients.record.judge import judge

    with MockCluster() as cluster:
        cluster.create_topic("t", 1)
        log = Log()
        member = LiveMember(
            "a", ClientProfile("confluent"), "g", ["t"], {}, bootstrap=cluster.bootstrap, log=log
        )
        try:
            assert member.await_event("subscribed", 120)
            os.kill(member.pid, signal.SIGABRT)
            closed = member.await_event("closed", 120)
        finally:
            member.end()
    assert closed is not None
    assert closed["detail"] == "ended with status -6"
    assert [one.check for one in judge([line for line in log.lines if "at" in line], [])] == ["died"]


PLAYED = """if True:
    import os, signal, sys
    from rebalance_verifier.live.clients.consumers.member import ClientProfile, LiveMember, Log
    from rebalance_verifier.live.clients.clusters.kafka import KafkaCluster
    from rebalance_verifier.live.clients.clusters.mock import MockCluster
    from rebalance_verifier.base.processes.program import Process
    from rebalance_verifier.live.clients.proxy.proxy import Proxy
    from rebalance_verifier.base.processes.supervision import family
    nodes, *clients = sys.argv[1:]
    with KafkaCluster(nodes=int(nodes)) if int(nodes) else MockCluster() as cluster, Proxy():
        cluster.create_topic("t", 2)
        deaf = Process(["sleep", "600"])
        deaf.listen(lambda line: None)
        log = Log()
        several = [
            LiveMember(f"m{n}", profile, "g", ["t"], {}, bootstrap=cluster.bootstrap, log=log)
            for n, profile in enumerate(ClientProfile(*client.split(":")) for client in clients)
        ]
        assert all(member.await_event("subscribed", 120) for member in several)
        several[0].stop()
        print(*family(os.getpid())[1:], flush=True)
        signal.pause()
"""


@pytest.mark.skipif(not LINUX, reason="looks at /proc")
@pytest.mark.parametrize(
    ("nodes", "several"),
    [
        pytest.param(0, ["confluent", "confluent"], marks=[pytest.mark.slow, with_mock]),
        pytest.param(
            3,
            ["java:4.1.0", "java:4.1.0", "confluent", "kafka-python", "aiokafka"],
            marks=[pytest.mark.nightly, with_java, with_mock, needs("kafka", "aiokafka")],
        ),
    ],
)
def test_nothing_is_left_when_the_suite_is_killed(tmp_path: Path, nodes: int, several: list[str]) -> None:
    """Not a node of the cluster, not a consumer, not one that is stopped, not a program that is deaf."""
    program = [sys.executable, "-c", PLAYED, str(nodes), *several]
    running = subprocess.Popen(program, stdout=subprocess.PIPE, cwd=tmp_path)
    assert running.stdout is not None
    try:
        pids = [int(word) for word in running.stdout.readline().split()]
        assert len(pids) == max(1, nodes) + 1 + len(several)
        assert all(map(alive, pids))
        os.kill(running.pid, signal.SIGKILL)
        running.wait()
        assert not left(pids)
    finally:
        running.kill()
        running.wait()
        running.stdout.close()


def test_a_client_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rebalance_verifier.live.clients.consumers.member.find_spec", lambda name: None)
    with pytest.raises(ToolError, match="clients 'confluent' need the package confluent-kafka: pip install"):
        command(ClientProfile("confluent"))


def test_a_log_wakes_whoever_waits_for_a_line() -> None:
    log = Log()
    assert not log.wait(0.0, lambda lines: lines)
    log.add({"event": "joined"})
    assert log.wait(0.0, lambda lines: lines[0]["event"] == "joined")


def test_nobody_waits_for_a_consumer_that_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rebalance_verifier.live.clients.consumers.member.command", lambda profile: ["false"])
    member = LiveMember("a", ClientProfile("confluent"), "g", ["t"], {}, bootstrap="", log=Log())
    try:
        assert member.await_event("subscribed", 3600) is None
        closed = member.await_event("closed", 3600)
        assert closed is not None
        assert closed["detail"] == "ended with status 1"
    finally:
        member.end()


def test_who_has_ended_before_anybody_listens_is_heard_of(monkeypatch: pytest.MonkeyPatch) -> None:
    start = threading.Thread.start

    def late(thread: threading.Thread) -> None:
        start(thread)
        time.sleep(0.2)  # the thread is well under way before whoever started it goes on

    monkeypatch.setattr(threading.Thread, "start", late)
    monkeypatch.setattr("rebalance_verifier.live.clients.consumers.member.command", lambda profile: ["false"])
    member = LiveMember("a", ClientProfile("confluent"), "g", ["t"], {}, bootstrap="", log=Log())
    try:
        assert member.await_event("closed", 60) is not None
    finally:
        member.end()


class Standing:
    """A member that is there and owns all; it does not close."""

    name, running, stopped, killed = "a", True, False, False

    def owned(self, seconds: float) -> list[str]:
        return ["orders-0"]

    def close(self) -> bool:
        self.killed = True
        return False


class Restless(Log):
    """Whoever waits is told of one more rebalance."""

    def wait(self, seconds, true) -> bool:
        self.add({"event": "synced", "consumer": "a", "generation": 2})
        return bool(true(self.lines))


def standing(tmp_path: Path) -> tuple[RecordingRun, Any]:
    cluster: Any = None
    member: Any = Standing()
    request = Request(
        cluster="mock", clients=clients("confluent:1"), scenario="scale-out", partitions=1, settle=0.05
    )
    doing = RecordingRun(request, cluster, tmp_path)
    doing.members, doing.subscribed = {"a": member}, {"a": ("orders",)}
    return doing, member


@pytest.mark.parametrize(("log", "why"), [(Log(), ""), (Restless(), "it goes on rebalancing")])
def test_a_group_that_never_stands_still_is_not_at_rest(monkeypatch, tmp_path, log, why) -> None:
    monkeypatch.setattr("rebalance_verifier.live.clients.record.run.QUIET", 0.01)
    doing, _ = standing(tmp_path)
    doing.log = log
    log.add({"event": "synced", "consumer": "a", "generation": 1})
    log.add({"event": "assigned", "consumer": "a", "generation": 1, "partitions": ["orders-0"]})
    rest = doing.settle(1)
    assert (rest.settled, rest.why) == (not why, why)


def test_a_member_that_does_not_close_is_among_the_errors(tmp_path) -> None:
    doing, member = standing(tmp_path)
    doing.leave(member)
    assert [(line["event"], line["consumer"]) for line in doing.log.lines] == [("error", "a")]


# -- nightly: a real broker, Java consumers, the audit on Spark -----------------------------------------


def record_on_kafka(
    tmp_path: Path, several: str, scenario: str, nodes: int = 1, release: str = KAFKA, **more
):
    from rebalance_verifier.live.clients.clusters.kafka import KafkaCluster

    out = tmp_path / "out"
    request = Request(
        cluster="kafka",
        clients=clients(several),
        scenario=scenario,
        session=SESSION["kafka"],
        settle=120.0,
        **more,
    )
    with KafkaCluster(release, nodes, logs=tmp_path / "brokers") as cluster:
        return play(request, cluster, out, lambda _: None)


def test_a_kafka_without_kraft_is_not_started():
    from rebalance_verifier.live.clients.clusters.kafka import KafkaCluster

    with pytest.raises(ToolError, match=r"Kafka 2\.7\.2 has no KRaft mode: .* 2\.8\.0 or newer"):
        KafkaCluster("2.7.2").__enter__()


@pytest.mark.nightly
@with_java
@pytest.mark.parametrize(
    ("broker", "several"), [("2.8.0", "java:2.4.0:1,java:2.6.3:1"), (NEWEST, f"java:3.4.0:1,java:{NEWEST}:1")]
)
def test_brokers_and_clients_of_other_releases(broker: str, several: str, tmp_path: Path) -> None:
    made = record_on_kafka(tmp_path, several, "scale-out", release=broker)
    assert (made.verdict, made.unsupported, made.version) == (Verdict.CONFORMANT, "", broker)
    assert sorted(made.versions.values()) == [
        f"kafka-clients {part.split(':')[1]}" for part in several.split(",")
    ]


@pytest.mark.nightly
@with_java
def test_java_consumers_roll_from_eager_to_cooperative_on_kafka(tmp_path: Path) -> None:
    made = record_on_kafka(tmp_path, "java:4.1.0:2", "rolling-upgrade")
    assert (made.verdict, made.unsupported) == (Verdict.CONFORMANT, "")
    assert [rest.settled for rest in made.rests] == [True] * 5


@pytest.mark.nightly
@with_java
@with_mock
@needs("kafka", "aiokafka")
@pytest.mark.parametrize(
    "several", ["confluent:2", "kafka-python:2", "aiokafka:2", "confluent:1,kafka-python:1,java:4.1.0:1"]
)
def test_any_client_goes_from_one_eager_assignor_to_another_member_by_member(
    tmp_path: Path, several: str
) -> None:
    made = record_on_kafka(tmp_path, several, "change-assignor")
    assert (made.gating, made.unsupported, made.request.notes()) == ([], "", [])
    assert [rest.settled for rest in made.rests] == [True] * (1 + 2 * len(made.request.members))


@pytest.mark.nightly
@with_java
def test_kafka_says_what_it_did_not_take() -> None:
    from rebalance_verifier.live.clients.clusters.kafka import KafkaCluster

    with KafkaCluster() as cluster:
        cluster.create_topic("t", 1)
        cluster.produce("t", 0, 3)
        with pytest.raises(CommandRefused, match="not present in metadata"):
            cluster.produce("t", 7, 1)


@pytest.mark.nightly
@with_java
@with_mock
def test_java_and_librdkafka_in_one_group_when_a_topic_grows(tmp_path: Path) -> None:
    made = record_on_kafka(tmp_path, "java:4.1.0:1,confluent:1", "partitions")
    assert made.unsupported == ""
    assert made.rests[-1].settled, made.rests[-1].why
    assert len(made.rests[-1].wanted) == 9


@pytest.mark.nightly
@with_java
def test_the_coordinator_of_three_nodes_is_killed(tmp_path: Path) -> None:
    made = record_on_kafka(tmp_path, "java:4.1.0:2", "failover", nodes=3)
    assert made.unsupported == ""
    assert [rest.settled for rest in made.rests] == [True] * 3


def modern_request(several: str, scenario: str, **more) -> Request:
    return Request(
        cluster="kafka",
        clients=clients(several),
        scenario=scenario,
        session=SESSION["kafka"],
        kafka=NEWEST,
        **{"settle": 120.0, **more},
    )


def record_served(tmp_path: Path, several: str, scenario: str, **more):
    request = modern_request(several, scenario, **more)
    assert request.problem() == ""
    with request.start(tmp_path / "brokers") as cluster:
        return play(request, cluster, tmp_path / "out", lambda _: None)


@pytest.mark.nightly
@with_java
@with_mock
@pytest.mark.parametrize("scenario", ["scale-out", "mixed", "partitions"])
def test_java_and_librdkafka_in_a_group_of_the_consumer_protocol(tmp_path: Path, scenario: str) -> None:
    made = record_served(tmp_path, "java:newest:1,confluent:2", scenario, protocol="consumer")
    assert (made.gating, made.unsupported) == ([], "")
    assert all(rest.settled for rest in made.rests), [rest.why for rest in made.rests]
    beats = [line for line in made.messages if line.get("api") == "ConsumerGroupHeartbeat"]
    assert {line["consumer"] for line in beats} == set(made.request.members)
    assert not [line for line in made.messages if line.get("api") in ("JoinGroup", "SyncGroup", "Heartbeat")]
    granted = [line for line in made.lines if line["event"] == "assigned" and line["partitions"]]
    assert granted
    assert all(line["generation"] > 0 and line["protocol"] == "consumer" for line in granted)
    found = ask_wire(build_wire_question(read(made.out), Choices()), Choices()).conformance
    assert (found.verdict, found.longest) == ("explained", found.events)


@pytest.mark.nightly
@with_java
@with_mock
@pytest.mark.parametrize(
    ("several", "assignor"),
    [("java:newest:3", "range"), ("java:newest:3", "cooperative-sticky"), ("confluent:3", "range")],
)
def test_a_group_of_real_clients_goes_to_the_consumer_protocol_and_back(
    tmp_path: Path, several: str, assignor: str
) -> None:
    made = record_served(tmp_path, several, "migration", assignor=assignor)
    assert (made.verdict, made.unsupported) == (Verdict.CONFORMANT, "")
    assert [rest.settled for rest in made.rests] == [True] * 7
    conversions = [line["detail"] for line in made.messages if line["event"] == "converted"]
    assert conversions == ["consumer", "classic"]
    found = ask_wire(build_wire_question(read(made.out), Choices()), Choices()).conformance
    assert (found.verdict, found.longest) == ("explained", found.events)


@pytest.mark.nightly
@with_java
@with_mock
def test_with_what_librdkafkas_cooperative_sticky_assigns_no_group_is_converted(tmp_path: Path) -> None:
    request = modern_request("confluent:2", "migration", assignor="cooperative-sticky")
    steps = tuple(
        RecordingStep(do=do, member=name, stage=stage)
        for do, name, stage in (
            *(("start", "confluent-1", 0), ("start", "confluent-2", 0), ("settle", "", 0)),
            *(("close", "confluent-1", 0), ("start", "confluent-1", 1), ("settle", "", 0)),
        )
    )
    request = replace(request, steps=steps, settle=15.0)
    with request.start(tmp_path / "brokers") as cluster:
        made = play(request, cluster, tmp_path / "out", lambda _: None)
    assert [rest.settled for rest in made.rests] == [True, False]
    assert any(any(line.get("user_data", {}).values()) for line in made.messages)
    beats = [line for line in made.messages if line.get("api") == "ConsumerGroupHeartbeat"]
    assert {line["error"] for line in beats if "error" in line} == {"GROUP_ID_NOT_FOUND"}


FOUND = {
    "kafka-python-revokes-twice": ("kafka-python", "3.0.12", "callback-order"),
    "kafka-python-abandons-its-join": ("kafka-python", "3.0.12", "never-settles"),
    "kafka-python-unsubscribes-silently": ("kafka-python", "3.0.12", "callback-order"),
}


@pytest.mark.nightly
@with_java
@pytest.mark.parametrize("name", FOUND)
def test_what_was_found_is_found_again(tmp_path: Path, name: str) -> None:
    from rebalance_verifier.live.clients.clusters.kafka import KafkaCluster

    package, release, check = FOUND[name]
    try:
        installed = version(package)
    except PackageNotFoundError:
        pytest.skip(f"needs {package}")
    if installed != release:
        pytest.skip(f"found in {package} {release}, here is {installed}")
    request = again(json.loads((RECORDINGS / f"{name}.json").read_text()))
    with KafkaCluster("4.1.0") as cluster:
        made = play(request, cluster, tmp_path / "out", lambda _: None)
    assert check in {one.check for one in made.gating}


@pytest.mark.nightly
@with_java
@pytest.mark.parametrize("name", FOUND)
def test_java_does_none_of_it(tmp_path: Path, name: str) -> None:
    from rebalance_verifier.live.clients.clusters.kafka import KafkaCluster

    run = json.loads((RECORDINGS / f"{name}.json").read_text())
    for client in ("confluent", "kafka-python"):
        run = json.loads(
            json.dumps(run).replace(f'"{client}:', '"java:4.1.0:').replace(f'"{client}-', '"java-4.1.0-')
        )
    with KafkaCluster("4.1.0") as cluster:
        made = play(again(run), cluster, tmp_path / "out", lambda _: None)
    assert (made.unsupported, made.gating) == ("", [])


@pytest.mark.nightly
@with_java
@with_mock
@pytest.mark.parametrize("seed", range(5))
def test_random_runs_of_librdkafka(tmp_path: Path, seed: int) -> None:
    """On Kafka: the mock cluster lets a member that has left in again with what it had."""
    made = record_on_kafka(tmp_path, "confluent:3", "random", seed=seed)
    assert made.unsupported == ""
    assert [one for one in made.gating if one.check in ("owned-twice", "granted-before-revoked")] == []


@pytest.mark.nightly
@with_mock
@with_java
@pytest.mark.parametrize(
    ("clients", "cluster"),
    [("confluent", "mock"), ("kafka-python", "mock"), ("aiokafka", "mock"), ("java:3.9.2", "kafka")],
)
def test_what_the_clients_log_says_the_same_to_the_audit(tmp_path: Path, clients: str, cluster: str) -> None:
    from tools.raw_logs import compared

    play = record if cluster == "mock" else record_on_kafka
    run = compared(play(tmp_path, f"{clients}:3", "scale-out").out)
    assert run is not None
    assert run.lines > 20
    assert run.malformed == 0
    assert run.alike


@pytest.mark.nightly
@with_mock
@with_java
def test_the_audit_on_spark_reads_the_record_and_agrees(tmp_path: Path) -> None:
    from rebalance_verifier.pipeline.audit.result import AuditPlan
    from rebalance_verifier.pipeline.audit.run import run_audit

    made = record(tmp_path, "confluent:3", "pause")
    shared = ("owned-twice", "granted-before-revoked", "owned-by-zombie")
    found = run_audit(
        AuditPlan(paths=(str(made.out / "events.jsonl"),), out=tmp_path / "audit", checks=shared)
    )
    assert found.malformed == 0
    assert found.events > 0
    assert {(one.check, one.topic, one.partition) for one in found.findings} == {
        (one.check, one.partition.rpartition("-")[0], int(one.partition.rpartition("-")[2]))
        for one in made.findings
        if one.check in shared
    }
