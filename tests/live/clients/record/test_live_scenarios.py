"""Scenarios as data, what is recorded of whom, and what the command refuses. Nearly nothing is started."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from rebalance_verifier.base.processes.tools import ToolError
from rebalance_verifier.live.clients.clusters.defaults import KAFKA
from rebalance_verifier.live.clients.clusters.mock import MockCluster
from rebalance_verifier.live.clients.consumers.clients.recorder import arguments
from rebalance_verifier.live.clients.consumers.member import ClientProfile, LiveMember, Log
from rebalance_verifier.live.clients.record.record import Recorded, run_data
from rebalance_verifier.live.clients.record.request import Request, again, clients
from rebalance_verifier.live.clients.record.scenarios import (
    SCENARIOS,
    SETTLE,
    RecordingPlan,
    RecordingStep,
    step,
)
from rebalance_verifier.live.conformance.clients.table import BY_RECORDER
from rebalance_verifier.model.bugs.releases import NEWEST

from tests.command import Rebalance

THREE = RecordingPlan(members=("a", "b", "c"))


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_scenario_can_be_played(name: str) -> None:
    """Who is told something runs, who starts does not; it ends at rest."""
    up: dict[str, str] = {}
    played = list(SCENARIOS[name].steps(RecordingPlan(members=THREE.members, stages=3)))
    for one in played:
        if one.do in ("settle", "next", "add_partitions", "fail_coordinator"):
            continue
        assert (one.member in up) == (one.do != "start"), one
        allowed = {"cont": "stopped", "resume": "stalled", "subscribe": "up", "stop": "up", "pause": "up"}
        assert one.do not in allowed or up[one.member] == allowed[one.do], one
        match one.do:
            case "close" | "kill":
                del up[one.member]
            case "stop" | "pause":
                up[one.member] = "stopped" if one.do == "stop" else "stalled"
            case _:
                up[one.member] = "up"
    assert played[-1] == SETTLE
    assert set(up.values()) == {"up"}


def test_a_seed_is_a_scenario() -> None:
    first, same, other = (
        list(SCENARIOS["random"].steps(RecordingPlan(members=THREE.members, seed=seed))) for seed in (1, 1, 2)
    )
    assert first == same != other


def test_random_scenarios_reach_every_step_within_a_few_seeds() -> None:
    reached = {
        one.do
        for seed in range(20)
        for one in SCENARIOS["random"].steps(RecordingPlan(members=THREE.members, seed=seed))
    }
    wanted = {"start", "close", "kill", "stop", "cont", "pause", "resume", "subscribe", "settle", "next"}
    assert reached == wanted


def test_an_endless_scenario_goes_on() -> None:
    endless = SCENARIOS["random"].steps(RecordingPlan(members=THREE.members, length=None))
    assert len([next(endless) for _ in range(500)]) == 500


def test_steps_survive_json() -> None:
    played = list(SCENARIOS["resubscribe"].steps(THREE))
    assert [step(one.data()) for one in played] == played
    with pytest.raises(ValueError, match="no such step"):
        step({"do": "explode"})
    with pytest.raises(ValueError, match="no such step"):
        step({"do": "start", "who": "a"})


def test_an_upgrade_is_rolled_member_by_member_where_clients_can() -> None:
    java = Request(cluster="kafka", clients=clients("java:4.1.0:2"), scenario="rolling-upgrade")
    assert not java.together
    assert java.stages == (("range",), ("cooperative-sticky", "range"), ("cooperative-sticky",))
    plan = RecordingPlan(members=tuple(java.members), stages=3)
    bounced = [
        (one.member, one.stage) for one in SCENARIOS["rolling-upgrade"].steps(plan) if one.do == "start"
    ]
    assert bounced == [(name, stage) for stage in range(3) for name in ("java-4.1.0-1", "java-4.1.0-2")]


@pytest.mark.parametrize(
    ("cluster", "several", "note"),
    [
        ("kafka", "confluent:2", 'confluent says "online migration between assignors with different'),
        ("mock", "kafka-python:2", 'kafka-python says "Mixing EAGER and COOPERATIVE assignors'),
    ],
)
def test_where_they_cannot_all_stop_first_and_the_report_says_so(
    cluster: str, several: str, note: str
) -> None:
    request = Request(cluster=cluster, clients=clients(several), scenario="rolling-upgrade")
    assert request.together
    assert len(request.stages) == 2
    assert note in request.notes()[0]
    order = [
        one.do
        for one in SCENARIOS["rolling-upgrade"].steps(
            RecordingPlan(members=("a", "b"), stages=2, together=True)
        )
    ]
    assert order == ["start", "start", "settle", "close", "close", "start", "start", "settle"]


@pytest.mark.parametrize(
    ("several", "last"),
    [("aiokafka:2", "sticky"), ("java:4.1.0,kafka-python", "sticky"), ("confluent,aiokafka", "roundrobin")],
)
def test_every_client_can_change_from_one_eager_assignor_to_another(several: str, last: str) -> None:
    request = Request(
        cluster="kafka", clients=clients(several.replace("4.1.0", "4.1.0:1")), scenario="change-assignor"
    )
    assert (request.problem(), request.together, request.notes()) == ("", False, [])
    assert request.stages == (("range",), (last, "range"), (last,))


def modern(several: str = "java:newest:3", **more) -> Request:
    more = {"cluster": "kafka", "scenario": "scale-out", "kafka": NEWEST, "protocol": "consumer", **more}
    return Request(clients=clients(several), **more)


def test_a_migration_goes_to_the_consumer_protocol_and_back() -> None:
    request = modern(scenario="migration", assignor="range", protocol="classic")
    assert request.protocols == ("classic", "consumer", "classic")
    assert request.stages == (("range",), ("uniform",), ("range",))
    assert modern(scenario="migration").stages[0] == ("cooperative-sticky",)
    assert (request.config(0)["partition.assignment.strategy"], request.config(0) == request.config(2)) == (
        "range",
        True,
    )
    plan = RecordingPlan(members=("a", "b"), stages=3)
    rolled = [(one.member, one.stage) for one in SCENARIOS["migration"].steps(plan) if one.do == "start"]
    assert rolled == [(name, stage) for stage in range(3) for name in ("a", "b")]


def test_a_group_that_no_broker_converts_goes_from_range_and_a_note_says_why() -> None:
    request = modern("confluent:2,java:newest:1", scenario="migration")
    assert (request.stages[0], request.notes()) == (("range",), [])
    asked = replace(request, assignor="cooperative-sticky")
    assert asked.stages[0] == ("cooperative-sticky",)
    [note] = asked.notes()
    assert "confluent's group is not converted: what its leader assigns has user data" in note
    assert modern("java:newest:3", scenario="migration").notes() == []


def test_a_member_of_the_consumer_protocol_leaves_to_the_broker_what_the_broker_sets() -> None:
    config = modern(assignor="range").config(0)
    assert (config["group.protocol"], config["group.remote.assignor"]) == ("consumer", "range")
    theirs = {"session.timeout.ms", "heartbeat.interval.ms", "partition.assignment.strategy"}
    assert not theirs & config.keys()
    assert "group.protocol" not in modern(protocol="classic").config(0)


@pytest.mark.parametrize(
    ("request_", "problem"),
    [
        (modern(), ""),
        (modern("confluent:2,java:4.0.0:1"), ""),
        (modern(scenario="migration", protocol="classic", assignor="cooperative-sticky"), ""),
        (
            modern("confluent:2", cluster="mock"),
            "record --cluster mock is not for consumer groups (KIP-848): the mock cluster has none",
        ),
        (modern("confluent:2", cluster="mock", scenario="migration"), "--cluster kafka"),
        (modern(kafka="3.9.1"), "Kafka 3.9.1 has no groups of the consumer protocol: 4.0.0 or newer"),
        (modern("aiokafka:2"), "aiokafka does not speak the consumer protocol"),
        (modern("java:3.9.1:2"), "java:3.9.1 does not speak the consumer protocol: kafka-clients 4.0.0"),
        (modern(scenario="rolling-upgrade"), "a consumer group has the broker's"),
        (modern(assignor="sticky"), "sticky is no assignor of the broker: uniform, range"),
        (modern(protocol="classic", assignor="uniform"), "--group-protocol consumer"),
    ],
)
def test_who_can_be_a_member_of_the_consumer_protocol(request_: Request, problem: str) -> None:
    reason = request_.problem()
    assert problem in reason
    assert bool(problem) == bool(reason)


@pytest.mark.slow
@pytest.mark.parametrize("client", ["confluent", "kafka-python"])
def test_that_is_what_clients_say_to_a_mixed_list(client: str) -> None:
    pytest.importorskip("confluent_kafka", reason="the mock cluster comes with confluent-kafka")
    pytest.importorskip(BY_RECORDER[client].module)
    config = {"partition.assignment.strategy": "cooperative-sticky,range"}
    with MockCluster() as cluster:
        member = LiveMember(
            "a", ClientProfile(client), "g", ["t"], config, bootstrap=cluster.bootstrap, log=Log()
        )
        try:
            assert member.await_event("subscribed", 60) is None
            assert BY_RECORDER[client].refuses_mixed in member.stderr()
        finally:
            member.end()


@pytest.mark.parametrize(
    ("request_", "problem"),
    [
        (
            Request(cluster="kafka", clients=clients("aiokafka:2"), scenario="rolling-upgrade"),
            "aiokafka has no cooperative assignor",
        ),
        (
            Request(
                cluster="mock",
                clients=clients("aiokafka"),
                scenario="scale-out",
                assignor="cooperative-sticky",
            ),
            "aiokafka has no",
        ),
        (Request(cluster="mock", clients=clients("confluent:2"), scenario="failover"), "--cluster kafka"),
        (Request(cluster="mock", clients=clients("confluent:2"), scenario="partitions"), "--cluster kafka"),
        (
            Request(cluster="mock", clients=clients("confluent:2"), scenario="change-assignor"),
            "takes the first assignor of the leader",
        ),
        (
            Request(cluster="mock", clients=clients("confluent:2,java:4.1.0:1"), scenario="crash"),
            "Java consumers misread",
        ),
        (Request(cluster="mock", clients=clients("confluent:2"), scenario="crash"), ""),
    ],
)
def test_what_cannot_be_recorded_is_said_and_is_no_pass(request_: Request, problem: str) -> None:
    reason = request_.problem()
    assert problem in reason
    assert bool(problem) == bool(reason)
    if problem:
        assert Recorded(request=request_, out=Path(), unsupported=request_.problem()).exit == 3


def test_mixed_groups_use_an_assignor_that_all_have() -> None:
    assert Request(cluster="mock", clients=clients("confluent,kafka-python"), scenario="mixed").stages == (
        ("cooperative-sticky",),
    )
    assert Request(cluster="mock", clients=clients("confluent,aiokafka"), scenario="mixed").stages == (
        ("range",),
    )


def test_clients_are_named_with_a_count() -> None:
    made = clients("java:3.9.1:2, confluent")
    assert made == ((ClientProfile("java", "3.9.1"), 2), (ClientProfile("confluent"), 1))
    assert list(Request(cluster="mock", clients=made, scenario="mixed").members) == [
        "java-3.9.1-1",
        "java-3.9.1-2",
        "confluent-1",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--clients", "sarama:2"), "no client is called 'sarama': there are confluent, kafka-python"),
        (("--clients", "confluent:none"), "'confluent:none' is not of the form confluent:COUNT"),
        (("--clients", "java:2"), "'java:2' is not of the form java:VERSION:COUNT"),
        (("--clients", "confluent:1,confluent:2"), "named twice"),
        (("--clients", ""), "no clients"),
        (("--scenario", "earthquake"), "no scenario is called 'earthquake': there are"),
        (("--scenario", "crash", "--clients", "confluent:1"), "crash takes 2 members or more"),
        (("--duration", "5"), "goes with --scenario random"),
        (("--group-protocol", "migration"), "a migration is recorded by --scenario migration"),
        (("--assignor", "best"), "no assignor is called 'best'"),
        (("--kafka-version", "new"), "'new' is no release"),
    ],
)
def test_usage(rebalance: Rebalance, arguments: tuple[str, ...], message: str) -> None:
    ran = rebalance("record", *arguments)
    assert ran.code == 2
    assert message in ran.err


def test_a_client_that_is_missing_is_wrong_usage(
    rebalance: Rebalance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rebalance_verifier.live.clients.consumers.member.find_spec", lambda name: None)
    ran = rebalance("record", "--clients", "aiokafka:1", "--out", tmp_path / "out")
    assert (ran.code, "pip install aiokafka" in ran.err) == (2, True)


def test_a_directory_with_something_in_it_is_refused(rebalance: Rebalance, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    ran = rebalance("record", "--out", str(tmp_path / "full"))
    assert (ran.code, "not empty" in ran.err) == (2, True)


def test_list_names_scenarios_and_checks(rebalance: Rebalance) -> None:
    listed = rebalance("list", "scenarios", "--of", "recording").out.splitlines()
    assert [line.split()[0] for line in listed] == list(SCENARIOS)
    assert "owned-twice" in rebalance("list", "checks", "--of", "recording").out


def test_kafkas_names_become_those_of_python_clients() -> None:
    config = {
        "session.timeout.ms": "1500",
        "partition.assignment.strategy": "range, sticky",
        "client.id": "x",
    }
    made = arguments(config, {"range": 1, "sticky": 2})
    assert made == {"session_timeout_ms": 1500, "partition_assignment_strategy": [1, 2], "client_id": "x"}
    with pytest.raises(ValueError, match="no assignor 'sticky'; there are: range"):
        arguments(config, {"range": 1})


def test_what_was_recorded_can_be_asked_for_again(tmp_path: Path) -> None:
    two = clients("java:4.1.0:1,confluent:2")
    request = Request(
        cluster="mock", clients=two, scenario="crash", seed=3, session=1200, kafka="3.9.1", nodes=3
    )
    played = list(SCENARIOS["crash"].steps(RecordingPlan(members=tuple(request.members))))
    kept = json.loads(json.dumps(run_data(Recorded(request=request, out=tmp_path, played=played))))
    assert again(kept) == replace(request, steps=tuple(played))
    assert kept["protocols"] == ["classic"]
    for name in ("kafka", "nodes", "protocol"):  # as recordings once were
        del kept["request"][name]
    assert (again(kept).kafka, again(kept).nodes, again(kept).protocol) == (KAFKA, 1, "classic")
    kept["cluster"] = {"kind": "kafka", "version": "3.7.0"}
    kept["request"]["scenario"] = "failover"
    assert (again(kept).kafka, again(kept).nodes) == ("3.7.0", 3)


def test_what_is_played_again_runs_on_the_cluster_that_it_ran_on(
    rebalance: Rebalance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[tuple[str, int]] = []

    class Cluster:
        def __init__(self, version: str, nodes: int, logs: Path) -> None:
            started.append((version, nodes))
            raise ToolError("not here")

    monkeypatch.setattr("rebalance_verifier.live.clients.consumers.member.find_spec", lambda name: True)
    monkeypatch.setattr("rebalance_verifier.live.clients.record.request.KafkaCluster", Cluster)
    request = Request(
        cluster="kafka", clients=clients("confluent:2"), scenario="crash", kafka="3.9.1", nodes=3
    )
    (tmp_path / "run.json").write_text(json.dumps(run_data(Recorded(request=request, out=tmp_path))))
    assert rebalance("record", "--again", tmp_path, "--out", tmp_path / "1").code == 2
    other = ("--kafka-version", "4.0.0", "--nodes", "1")
    assert rebalance("record", "--again", tmp_path, *other, "--out", tmp_path / "2").code == 2
    assert started == [("3.9.1", 3), ("4.0.0", 1)]
    assert "is no release" in rebalance("record", "--again", tmp_path, "--kafka-version", "4").err


def test_of_what_cannot_be_recorded_nothing_is_saved(rebalance: Rebalance, tmp_path: Path) -> None:
    ran = rebalance("record", "--clients", "confluent:2", "--scenario", "failover", "--out", tmp_path / "out")
    assert (ran.code, "saved" in ran.out, (tmp_path / "out").exists()) == (3, False, False)
    assert "unsupported  the mock cluster cannot do" in ran.out


def test_the_examples_can_be_played() -> None:
    paths = sorted((Path(__file__).parents[4] / "examples" / "recordings").glob("*.json"))
    assert paths
    for path in paths:
        request = again(json.loads(path.read_text()))
        assert request.problem() == ""
        assert {one.member for one in request.steps if one.member} <= set(request.members), path.name


def test_a_directory_without_a_recording_is_refused(rebalance: Rebalance, tmp_path: Path) -> None:
    assert "run.json" in rebalance("record", "--again", tmp_path).err
    (tmp_path / "run.json").write_text('{"request": {}}')
    ran = rebalance("record", "--again", tmp_path)
    assert ran.code == 2
    assert "is not what a recording writes" in ran.err


def test_a_step_reads_well() -> None:
    assert (
        str(RecordingStep(do="add_partitions", topic="orders", partitions=9))
        == "add partitions orders 9 partitions"
    )
    assert str(RecordingStep(do="start", member="a", stage=1)) == "start a stage 1"
