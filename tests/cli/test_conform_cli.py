"""``rebalance conform``: an event log, the model, what is said of it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rebalance_verifier.live.conformance import log

GROUP = "orders"


def event(at: float, kind: str, consumer: str, **more: Any) -> dict[str, Any]:
    return {"at": at, "event": kind, "group": GROUP, "consumer": consumer, **more}


def hand_over() -> list[dict[str, Any]]:
    """What confluent-kafka tells of a member that gets half of the partitions of another one."""
    a, b = "one", "two"
    return [
        event(0.0, "started", a, detail="confluent-kafka 2.16.1, librdkafka 2.16.0"),
        event(0.1, "subscribed", a, topics=["orders"]),
        event(0.2, "joining", a),
        event(0.3, "joining", a),
        event(3.3, "joined", a, generation=1, member="one-1"),
        event(3.4, "synced", a, generation=1),
        event(3.5, "assigned", a, generation=1, partitions=["orders-0", "orders-1"]),
        event(9.0, "started", b, detail="confluent-kafka 2.16.1, librdkafka 2.16.0"),
        event(9.1, "subscribed", b, topics=["orders"]),
        event(9.2, "joining", b),
        event(9.3, "joining", b),
        event(12.0, "joining", a, generation=1),
        event(12.1, "joined", a, generation=2),
        event(12.1, "joined", b, generation=2),
        event(12.2, "synced", a, generation=2),
        event(12.3, "revoked", a, generation=2, partitions=["orders-1"]),
        event(12.4, "assigned", a, generation=2, partitions=[]),
        event(12.4, "synced", b, generation=2),
        event(12.5, "assigned", b, generation=2, partitions=[]),
        event(12.6, "joining", a, generation=2),
        event(15.0, "joining", b, generation=2),
        event(15.1, "joined", a, generation=3),
        event(15.1, "joined", b, generation=3),
        event(15.2, "synced", a, generation=3),
        event(15.2, "synced", b, generation=3),
        event(15.3, "assigned", a, generation=3, partitions=[]),
        event(15.3, "assigned", b, generation=3, partitions=["orders-1"]),
        event(40.0, "closed", b, detail="killed"),
        event(60.0, "joining", a, generation=3),
        event(60.1, "joined", a, generation=4),
        event(60.2, "synced", a, generation=4),
        event(60.3, "assigned", a, generation=4, partitions=["orders-1"]),
        event(80.0, "revoked", a, generation=4, partitions=["orders-0", "orders-1"]),
        event(80.1, "leaving", a, generation=4),
        event(80.2, "closed", a, generation=4),
    ]


def write(lines: list[dict[str, Any]], name: str = "events.jsonl") -> str:
    Path(name).write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return name


CALM = ("--assignors", "cooperative-sticky")


@pytest.mark.parametrize("assignment", ["observed", "reference"])
def test_a_log_that_the_model_explains(rebalance, assignment):
    ran = rebalance("conform", write(hand_over()), *CALM, "--assignment", assignment)
    assert ran.code == 0
    assert "conformant  orders: 32 of 32 events explained by librdkafka on as-specified" in ran.out


def test_the_run_that_explains_it(rebalance):
    ran = rebalance("conform", write(hand_over()), *CALM, "--show", "--out", "answer.json")
    assert "two crash  <- line 28 closed" in ran.out
    assert "one assign (one: orders-0; two: -)" in ran.out
    assert "  <- line 6 synced; line 7 assigned" in ran.out
    answer = json.loads(Path("answer.json").read_text())
    assert answer["verdict"] == "conformant"
    assert answer["hidden_faults"] == 0
    shown = [line for step in answer["witness"] for line in step["lines"]]
    logged = [n for n, line in enumerate(hand_over(), 1) if line["event"] not in ("subscribed", "leaving")]
    assert sorted(shown) == logged


def test_a_line_that_no_run_has(rebalance):
    lines = hand_over()
    del lines[15]  # revoked
    ran = rebalance("conform", write(lines), *CALM)
    assert ran.code == 1
    assert "violation  orders: 16 of 31 events explained" in ran.out
    assert "line 19: one joining generation 2\n    no state of the model allows it there" in ran.out
    assert "the run of the model up to there, its end" in ran.out
    answer = json.loads(rebalance("conform", "events.jsonl", *CALM, "--format", "json").out)
    assert answer["verdict"] == "violation"
    assert answer["exit"] == 1
    assert answer["mismatch"]["pending"]
    assert answer["longest"] < answer["events"] == 31


def test_a_mismatch_is_in_every_report(rebalance):
    lines = hand_over()
    del lines[15]  # revoked
    ran = rebalance("conform", write(lines), *CALM, "--report", "all", "--report-dir", "out")
    assert ran.code == 1
    assert sorted(path.name for path in Path("out").iterdir()) == [
        "junit.xml", "report.html", "report.json", "report.md", "report.sarif",
    ]  # fmt: skip
    for name in ("junit.xml", "report.html", "report.md"):
        assert "line 19: one joining generation 2" in Path("out", name).read_text()
    assert json.loads(Path("out", "report.json").read_text())["verdict"] == "violation"


def test_an_assignment_that_takes_from_an_owner(rebalance):
    """The log of examples/audit: orders-2 is given what orders-1 has yet to give away."""
    a, b, lost = "orders-1", "orders-2", {"partitions": ["orders-1"]}
    lines = [
        event(0.1, "joining", a),
        event(3.2, "joined", a, generation=7),
        event(3.22, "synced", a, generation=7),
        event(3.222, "assigned", a, generation=7, partitions=["orders-0", "orders-1"]),
        event(70.5, "joining", b),
        event(71.4, "joining", a),
        event(71.41, "joined", a, generation=8),
        event(71.412, "joined", b, generation=8),
        event(71.419, "synced", b, generation=8),
        event(71.42, "assigned", b, generation=8, **lost),
        event(79.316, "synced", a, generation=8),
        event(79.317, "revoked", a, generation=8, **lost),
    ]
    arguments = ("conform", write(lines), *CALM, "--release", "java-2.6", "--broker", "mock")
    ran = rebalance(*arguments)
    assert ran.code == 1
    assert "line 10: orders-2 assigned orders-1 generation 8" in ran.out
    lines[9]["partitions"] = []
    lines.append(event(79.318, "assigned", a, generation=8, partitions=[]))
    write(lines)
    assert rebalance(*arguments).code == 0


@pytest.mark.slow
def test_faults_that_nobody_wrote_down(rebalance):
    lines = hand_over()
    lines.insert(30, event(60.15, "joining", "one", generation=4))  # its SyncGroup was not answered
    lines.insert(31, event(60.16, "joined", "one", generation=5))
    for line in lines[32:]:
        if "generation" in line:
            line["generation"] = 5
    assert rebalance("conform", write(lines), *CALM).code == 1
    ran = rebalance("conform", "events.jsonl", *CALM, "--max-faults", 2)
    assert ran.code == 0
    assert ", 1 fault that the recording does not have" in ran.out


def test_what_a_recording_says_of_itself(rebalance):
    """The mock cluster gives a member id at once, ends join phases early, refuses late SyncGroups."""
    lines = [line for line in hand_over() if line["at"] not in (0.3, 9.3)]
    Path("recorded").mkdir()
    write(lines, "recorded/events.jsonl")
    run = {"cluster": {"kind": "mock"}, "assignors": [["cooperative-sticky"]], "partitions": 2}
    Path("recorded/run.json").write_text(json.dumps(run))
    ran = rebalance("conform", "recorded")
    assert ran.code == 0
    assert "explained by librdkafka on mock" in ran.out
    assert rebalance("conform", "recorded", "--broker", "broker-current").code == 1
    assert " on broker-4.1.2" in rebalance("conform", "recorded", "--broker", "4.1").out
    run["cluster"] = {"kind": "kafka", "version": "4.0.1"}
    Path("recorded/run.json").write_text(json.dumps(run))
    assert " on broker-4.0.1" in rebalance("conform", "recorded").out
    ran = rebalance("conform", "recorded", "--release", "java 4.1.0")
    assert "java-4.1.0 on broker-4.0.1" in ran.out, "has the traits of Java's client"


def test_a_stopped_consumer_is_read_from_run_json(rebalance):
    lines = hand_over()
    del lines[27:]
    lines += [
        event(60.0, "joining", "one", generation=3),
        event(60.1, "joined", "one", generation=4),
        event(60.2, "synced", "one", generation=4),
        event(60.3, "assigned", "one", generation=4, partitions=["orders-1"]),
        event(90.0, "lost", "two", generation=3, partitions=["orders-1"]),
        event(90.1, "joining", "two"),
    ]
    name = write(lines)
    assert rebalance("conform", name, *CALM).code == 1
    steps = [
        {"do": "settle"},
        {"do": "stop", "member": "two"},
        {"do": "settle"},
        {"do": "cont", "member": "two"},
    ]
    rests = [{"number": 1, "at": 40.0}, {"number": 3, "at": 80.0}]
    Path("run.json").write_text(json.dumps({"steps": steps, "rests": rests}))
    assert rebalance("conform", name, *CALM).code == 0


def test_a_bound_is_inconclusive(rebalance):
    ran = rebalance("conform", write(hand_over()), *CALM, "--states", 20)
    assert ran.code == 3
    assert "inconclusive" in ran.out
    assert "more than 20" in ran.out


def wrong() -> Iterator[tuple[Any, tuple[str, ...], str]]:
    lines = hand_over()
    yield [], (), "no events"
    yield [{**lines[0], "group": "a"}, lines[1]], (), "several groups: a, orders; choose one with --group"
    yield lines, ("--group", "x"), "no group is called 'x': there are orders"
    yield [{**lines[0], "at": "yesterday"}], (), "events.jsonl:1: field 'at' is \"yesterday\""
    yield [{**lines[0], "event": 3}], (), "field 'event' is 3, expected a string"
    yield [{**lines[6], "generation": "1"}], (), "field 'generation' is \"1\""
    yield [{**lines[6], "partitions": ["orders"]}], (), "'orders' is no partition such as orders-0"
    yield lines, ("--release", "java-1"), "--release: no release of a client is called 'java-1'"
    yield lines, ("--broker", "x"), "--broker: no release of a broker is called 'x'"
    yield lines, ("--assignors", "one=mine"), "one: no assignor is called 'mine': there are "
    yield lines, ("--topic", "orders"), "--topic 'orders' is not of the form NAME=COUNT"


@pytest.mark.parametrize(("lines", "arguments", "message"), list(wrong()))
def test_what_is_wrong_is_said(rebalance, lines, arguments, message):
    ran = rebalance("conform", write(lines), *arguments)
    assert ran.code == 2
    assert message in ran.err


@pytest.mark.parametrize("at", ["NaN", "Infinity", "1e999", "9" * 400, "[1]", "null"])
def test_a_time_that_is_none(rebalance, at):
    Path("events.jsonl").write_text(f'{{"event": "joined", "group": "g", "at": {at}}}\n')
    ran = rebalance("conform", "events.jsonl")
    assert ran.code == 2
    assert "events.jsonl:1: field 'at' is " in ran.err
    assert len(ran.err) < 300


def test_a_pipe_a_device_and_what_has_no_end_are_no_logs(rebalance, monkeypatch):
    """A pipe was waited for, and a device read until the memory was full."""
    os.mkfifo("fifo")
    Path("recorded").mkdir()
    os.mkfifo("recorded/events.jsonl")
    for name in ("fifo", "recorded", "/dev/zero"):
        assert "is no file but a pipe or a device" in rebalance("conform", name).err
    Path("deep.jsonl").write_text("[" * 200_000 + "\n")
    assert "deep.jsonl:1: not JSON" in rebalance("conform", "deep.jsonl").err
    monkeypatch.setattr(log, "LONGEST", 1000)
    Path("long.jsonl").write_text("x" * 5000)
    assert "long.jsonl:1: a line of more than 1,000 characters" in rebalance("conform", "long.jsonl").err
    os.mkfifo("run.json")
    assert "run.json: is no file but a pipe" in rebalance("conform", write(hand_over())).err


def test_files_that_are_no_logs(rebalance):
    assert "No such file" in rebalance("conform", "nothing.jsonl").err
    Path("text.jsonl").write_text("[2026-11-21] INFO\n")
    assert "text.jsonl:1: not JSON" in rebalance("conform", "text.jsonl").err


@pytest.mark.parametrize(
    ("run", "message"),
    [
        ("{", "1:2: not JSON"),
        ("[]", " not an object"),
        ('{"steps": ["stop"]}', " field 'steps' is not a list of objects"),
        ('{"rests": {"number": 1}}', " field 'rests' is not a list of objects"),
    ],
)
def test_a_run_json_that_is_none(rebalance, run, message):
    Path("run.json").write_text(run)
    ran = rebalance("conform", write(hand_over()))
    assert ran.code == 2
    assert f"run.json:{message}" in ran.err
