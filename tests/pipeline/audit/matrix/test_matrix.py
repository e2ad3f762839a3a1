"""Each client in each layout: an incident is found, a healthy group is conformant, or it says why not."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("duckdb")

from rebalance_verifier.base.verdict import Verdict
from rebalance_verifier.pipeline.audit.result import AuditPlan
from rebalance_verifier.pipeline.audit.run import run_audit
from rebalance_verifier.pipeline.audit.sources import local
from rebalance_verifier.report.terminal.audit import headline

from tests.pipeline.audit.matrix.clients import CLIENTS, told_by
from tests.pipeline.audit.matrix.layouts import LAYOUTS, OF_NODE, own
from tests.pipeline.audit.matrix.stories import BEGIN, QUIET, STORIES, Step, rebalance


def written(files, folder):
    folder.mkdir(exist_ok=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return str(folder)


UNCERTAIN = {(client, "endless") for client in CLIENTS if client not in ("java", "franz-go", "kafka-go")}
"""Only these log the leader's plan, which tells who came and went."""


@pytest.mark.covering("client", "story")
@pytest.mark.parametrize("story", STORIES)
@pytest.mark.parametrize("client", CLIENTS)
def test_the_answer_is_right(client, story, tmp_path):
    path = written(own(told_by(client, STORIES[story].steps)), tmp_path / "logs")
    found = run_audit(AuditPlan(paths=(path,), out=tmp_path / "out"))
    checks = {one.check for one in found.findings if found.plan.gates(one.level)}
    expected = STORIES[story]
    verdict = Verdict.INCONCLUSIVE if (client, story) in UNCERTAIN else expected.verdict
    assert (found.verdict, checks) == (verdict, set(expected.checks)), headline(found)


def test_tasks_of_connect_are_owned_as_partitions_are(tmp_path):
    """Cooperative: another worker gets a task in the generation after the one in which it was given up."""
    for name, shares, checks in (
        ("healthy", ((1, "012", ""), (2, "02", ""), (3, "02", "1")), set()),
        ("two owners", ((1, "012", ""), (2, "012", "1"), (3, "02", "1")), {"owned-twice"}),
    ):
        steps = [
            step
            for generation, *both in shares
            for pod, numbers in zip("ab", both, strict=True)
            if generation > 1 or pod == "a"
            for step in (
                Step(30.0 * generation, pod, "join", generation),
                Step(30.0 * generation + 0.1, pod, "get", generation, tuple(map(int, numbers))),
            )
        ]
        path = written(own(told_by("connect", steps)), tmp_path / name)
        found = run_audit(AuditPlan(paths=(path,), out=tmp_path / f"{name} out"))
        assert {one.check for one in found.findings if found.plan.gates(one.level)} == checks
        assert found.verdict is (Verdict.VIOLATION if checks else Verdict.CONFORMANT), headline(found)


def test_an_eager_worker_of_connect_stops_all_before_it_joins_again(tmp_path):
    """Version 0 of its protocol: no line says what is revoked, and tasks move within one generation."""

    def line(worker, at, text):
        return f"2026-03-02 10:{at},000 INFO [Worker clientId={worker}, groupId=c] {text}"

    def joins(worker, at, generation, tasks):
        who = f"Generation{{generationId={generation}, memberId='{worker}-1', protocol='default'}}"
        given = f"Assignment{{error=0, leader='x', connectorIds=[c], taskIds=[{tasks}], delay=0}}"
        joined = (
            f"Joined group at generation {generation} with protocol version 0 and got assignment: {given}"
        )
        return [
            line(worker, at, f"Successfully joined group with generation {who}"),
            line(worker, at, f"{joined} with rebalance delay: 0"),
        ]

    again = [line("a", "01:00", "(Re-)joining group")]
    for name, stops, checks in (("healthy", again, set()), ("goes on", [], {"owned-twice"})):
        files = {
            "a.log": [*joins("a", "00:03", 1, "t-0, t-1"), *stops, *joins("a", "01:04", 2, "t-0")],
            "b.log": [*joins("b", "01:02", 2, "t-1"), "2026-03-02 10:09:00,000 INFO something else"],
        }
        path = written({name: "\n".join(lines).encode() for name, lines in files.items()}, tmp_path / name)
        found = run_audit(AuditPlan(paths=(path,), out=tmp_path / f"{name} out"))
        assert {one.check for one in found.findings if found.plan.gates(one.level)} == checks
        assert (found.verdict is Verdict.CONFORMANT) == (not checks), headline(found)


REAL = {
    "franz-go-1.22.3": {"owned-by-zombie"},
    "sarama-1.61.1": {"owned-by-zombie"},
    "kafkajs-2.2.4": {"owned-by-zombie"},
    "kafka-go-0.4.51": set(),
}


@pytest.mark.covering
@pytest.mark.parametrize(("client", "checks"), REAL.items())
def test_a_member_that_was_stopped_is_a_zombie_in_its_real_log(client, checks, tmp_path):
    path = Path(__file__).parents[1] / "logs" / "clients" / client
    found = run_audit(AuditPlan(paths=(str(path),), out=tmp_path / "out"))
    assert {one.check for one in found.findings if found.plan.gates(one.level)} == checks
    assert found.verdict is (Verdict.VIOLATION if checks else Verdict.CONFORMANT), headline(found)


INFO = "2026-03-02 10:15:00,000 INFO "
OF_STREAMS = "[Consumer clientId=c, groupId=g] "
JOINED = "[ConsumerGroup] Consumer has joined the group"
WHY_NOT = {
    "kafkajs at WARN": (
        [{"message": "[Runner] The group is rebalancing, re-joining", "groupId": "g", "memberId": "m"}],
        "no line says who owns which partition; kafkajs says it at logLevel.INFO",
    ),
    "kafkajs, its fields on the lines below": (
        ["2026-03-02 10:15:00.000 INFO (7): [ConsumerGroup] Consumer has joined the group"],
        "nothing recognised",
    ),
    "two consumers of kafkajs in a process": (
        [
            {"message": JOINED, "groupId": "g", "memberId": member, "memberAssignment": {"t": [number]}}
            for number, member in enumerate(("m-1", "m-2"))
        ],
        "1 client id of several processes, not separable",
    ),
    "two groups of sarama in a process": (
        [
            f"2026/03/02 10:15:00.00{number} {text}"
            for number, text in enumerate(
                (
                    "client/coordinator coordinator for g is #1 (b:9092)",
                    "client/coordinator coordinator for h is #1 (b:9092)",
                    "consumer/broker/1 added subscription to t/0",
                )
            )
        ],
        "2 client ids of several processes, not separable",
    ),
    "kafka-go 0.3, which does not say of which topic": (
        [
            "2026/03/02 10:15:00 joined group g as member m in generation 1",
            "2026/03/02 10:15:01 sync group finished for group, g",
            "2026/03/02 10:15:01 subscribed to partitions: map[0:5]",
        ],
        "no line says who owns which partition; kafka-go says it at Logger of ReaderConfig",
    ),
    "a share group": (
        [f"{INFO}[ShareConsumer clientId=c, groupId=g] Kafka share consumer initialized"],
        "g is a share group: its members share partitions",
    ),
    "a Streams group": (
        [
            f"{INFO}{OF_STREAMS}Member m with epoch 1 transitioned from JOINING to RECONCILING.",
            f"{INFO}{OF_STREAMS}Assigned tasks with local epoch 0 and group g",
        ],
        "g is a Streams group (KIP-1071): its members own tasks",
    ),
}


@pytest.mark.parametrize(("lines", "why"), WHY_NOT.values(), ids=WHY_NOT)
def test_what_a_log_cannot_tell_is_named(lines, why, tmp_path):
    more = {"level": "INFO", "timestamp": "2026-03-02T10:15:00.000Z"}
    texts = [line if isinstance(line, str) else json.dumps({**more, **line}) for line in lines]
    path = written({"a.log": "\n".join(texts).encode()}, tmp_path / "logs")
    found = run_audit(AuditPlan(paths=(path,), out=tmp_path / "out"))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert why in headline(found)


def happened(client, layout, steps, folder):
    """What is read of a story, without who wrote it where."""
    logs = local.read([written(layout(told_by(client, steps)), folder)])
    assert not logs.malformed, logs.malformed[0]
    assert not logs.notes, logs.notes[0]
    assert len({event.consumer for event in logs.events}) == 2
    assert len({event.host for event in logs.events}) == 2
    return Counter(
        (e.at, e.kind, e.group, e.member, e.generation, e.topic, e.partition, e.detail) for e in logs.events
    )


@pytest.mark.covering
@pytest.mark.parametrize("client", CLIENTS)
def test_the_same_is_read_in_every_layout(client, tmp_path):
    for story in ("healthy", "a zombie"):
        steps = STORIES[story].steps
        expected = happened(client, own, steps, tmp_path / f"{story} own")
        for layout in LAYOUTS:
            read = happened(client, layout, steps, tmp_path / f"{story} {layout.__name__}")
            assert read == expected, layout.__name__


@pytest.mark.parametrize("layout", OF_NODE)
@pytest.mark.parametrize("client", ["kafkajs", "kafkajs debug"])
def test_fields_on_a_console_of_node_are_read(client, layout, tmp_path):
    for story in ("healthy", "a zombie"):
        steps = STORIES[story].steps
        expected = happened(client, own, steps, tmp_path / f"{story} own")
        assert happened(client, layout, steps, tmp_path / story) == expected


def test_a_time_on_the_line_above_is_that_of_a_message_of_java_util_logging(tmp_path):
    def jul(entries):
        return {
            f"{pod}.log": "".join(
                f"{one.at.strftime('%b %d, %Y %I:%M:%S %p')} org.apache.kafka.X poll\nINFO: {one.text}\n"
                for one in entries
                if one.pod == pod
            ).encode()
            for pod in "ab"
        }

    path = written(jul(told_by("java", STORIES["two owners"].steps)), tmp_path / "logs")
    found = run_audit(AuditPlan(paths=(path,), out=tmp_path / "out"))
    assert (found.verdict, {one.check for one in found.findings if found.plan.gates(one.level)}) == (
        Verdict.VIOLATION,
        {"owned-twice"},
    )


PAGE = Path(__file__).parents[4] / "docs" / "reference" / "log-formats.md"
NOBODY = [
    *BEGIN,
    *rebalance(61, 2, {"a": (0,), "b": (1,)}),
    *QUIET,
]
ROW_OF = {
    "java": "Java",
    "franz-go": "franz-go",
    "kafka-go": "kafka-go",
    "librdkafka c": "librdkafka: C, C++, .NET, Go, Ruby, Rust, Node.js, Python",
    "aiokafka": "kafka-python, aiokafka",
    "kafkajs": "kafkajs",
    "sarama": "sarama",
}
"""A client -> its row in the page's table of what each can show."""


def shown(row):
    """Return what the page says of partitions that nobody owns."""
    lines = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith(f"| {row} |")]
    return {line.split(" | ")[4] for line in lines}


@pytest.mark.covering
@pytest.mark.parametrize("client", ROW_OF)
def test_the_page_says_who_can_show_that_nobody_owns_a_partition(client, tmp_path):
    path = written(own(told_by(client, NOBODY)), tmp_path / "logs")
    found = run_audit(AuditPlan(paths=(path,), out=tmp_path / "out"))
    stranded = [one for one in found.findings if one.check == "stranded"]
    assert [one.about for one in stranded] == ["orders-2"]
    certain = stranded[0].certain
    assert shown(ROW_OF[client]) <= (
        {"certain", "where the leader's log counts all members"} if certain else {"found"}
    )
    assert shown(ROW_OF[client])
