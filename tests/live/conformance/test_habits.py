"""What clients do that the model's member does not: explained by name, and by nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from rebalance_verifier.live.conformance.ask import ConformanceAnswer, ask
from rebalance_verifier.live.conformance.clients.table import BY_ID, DEVIATIONS
from rebalance_verifier.live.conformance.log import read
from rebalance_verifier.live.conformance.question import Choices, build_question

T0, CLUSTER = 1_000.0, {"kind": "kafka", "version": "4.1.0"}


def line(at: float, kind: str, consumer: str, **more: Any) -> dict[str, Any]:
    return {"at": T0 + at, "event": kind, "group": "g", "consumer": consumer, **more}


def member(at: float, name: str, client: str, generation: int, parts: list[str], **more: Any) -> list[Any]:
    """A consumer starts and is assigned ``parts`` in ``generation``, alone; ``joining`` twice (KIP-394)."""
    lines: list[Any] = [
        line(at, "started", name, detail=client),
        line(at + 0.1, "subscribed", name, topics=["a"]),
        line(at + 0.2, "joining", name),
        line(at + 0.21, "joining", name),
        line(at + 0.5, "joined", name, generation=generation),
        line(at + 0.52, "synced", name, generation=generation),
        line(at + 0.53, "assigned", name, generation=generation, partitions=parts, **more),
    ]
    return lines


def answer_for(
    lines: list[Any], tmp_path: Path, assignor: str = "cooperative-sticky", **run: Any
) -> ConformanceAnswer:
    text = "".join(json.dumps(one) + "\n" for one in lines)
    (tmp_path / "events.jsonl").write_text(text, encoding="utf-8")
    recorded = {"cluster": CLUSTER, "assignors": [[assignor]], "partitions": 2, **run}
    (tmp_path / "run.json").write_text(json.dumps(recorded), encoding="utf-8")
    choices = Choices(topics={"a": 2, "b": 2})
    return ask(build_question(read(tmp_path), choices), choices)


LIB, KPY, AIO = "confluent-kafka 2.16.1, librdkafka 2.16.0", "kafka-python 3.0.12", "aiokafka 0.14.0"
JAVA = "kafka-clients 4.1.0"
BOTH = ["a-0", "a-1"]


def test_librdkafka_loses_what_it_unsubscribed(tmp_path: Path) -> None:
    lines = member(0, "one", LIB, 1, BOTH)
    lines += [line(5, "subscribed", "one", topics=["b"]), line(5.5, "lost", "one", partitions=BOTH)]
    found = answer_for(lines, tmp_path)
    assert found.conformance.verdict == "explained"
    assert found.findings == {"loses what it unsubscribed": 1}
    lines[-1] = line(5.5, "revoked", "one", partitions=BOTH)
    lines.append(line(5.6, "joining", "one", generation=1))
    found = answer_for(lines, tmp_path)
    assert (found.conformance.verdict, found.findings) == ("explained", {})


def test_librdkafka_subscribes_when_the_rebalance_is_over(tmp_path: Path) -> None:
    """The assignment for the old subscription is taken first; Java would leave it out."""
    lines = [*member(0, "one", LIB, 1, BOTH), line(0.3, "subscribed", "one", topics=["b"])]
    lines += [line(0.54, "revoked", "one", partitions=BOTH), line(0.55, "joining", "one", generation=1)]
    lines += [line(0.6, "joined", "one", generation=2), line(0.61, "synced", "one", generation=2)]
    lines += [line(0.62, "assigned", "one", generation=2, partitions=["b-0", "b-1"])]
    lines.sort(key=lambda one: one["at"])
    assert answer_for(lines, tmp_path).conformance.verdict == "explained"
    for one in lines:
        one["detail"] = JAVA if one["event"] == "started" else ""
    assert answer_for(lines, tmp_path).conformance.verdict == "mismatch"


@pytest.mark.parametrize(("client", "verdict"), [(AIO, "explained"), (KPY, "mismatch")])
def test_aiokafka_throws_an_answer_away(client: str, verdict: str, tmp_path: Path) -> None:
    """joining, subscribed to what it was, joining again: the first answer of the group was not taken."""
    lines = [line(0, "started", "one", detail=client), line(0.1, "subscribed", "one", topics=["a"])]
    lines += [line(0.2, "joining", "one"), line(0.3, "subscribed", "one", topics=["a"])]
    lines += [line(0.7, "joining", "one"), line(1.2, "joined", "one", generation=5)]
    lines += [line(1.3, "synced", "one", generation=5)]
    lines += [line(1.4, "assigned", "one", generation=5, partitions=BOTH)]
    lines += [line(1.5, "joining", "one", generation=5), line(1.6, "joined", "one", generation=7)]
    if client == AIO:
        lines = lines[:-2]
    found = answer_for(lines, tmp_path, "range", cluster={"kind": "mock"})
    assert found.conformance.verdict == verdict


def test_kafka_python_is_silent_and_closes_as_an_owner(tmp_path: Path) -> None:
    """It joins, is silent for longer than its session, and two is given what it still owns."""
    lines = member(0, "one", KPY, 1, BOTH)
    lines += [line(2, "started", "two", detail=KPY), line(2.1, "subscribed", "two", topics=["a"])]
    lines += [line(2.2, "joining", "two"), line(2.21, "joining", "two")]
    lines += [line(2.5, "joining", "one", generation=1)]
    lines += [line(6, "joined", "two", generation=3), line(6.1, "synced", "two", generation=3)]
    lines += [line(6.2, "assigned", "two", generation=3, partitions=BOTH)]
    lines += [line(20, "revoked", "one", partitions=BOTH), line(20.1, "closed", "one")]
    found = answer_for(lines, tmp_path)
    assert found.conformance.verdict == "explained"
    for one in lines:
        if one["event"] == "started":
            one["detail"] = JAVA
    assert answer_for(lines, tmp_path).conformance.verdict == "mismatch"


def test_kafka_python_abandons_what_it_was_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """one leads and decides, never takes the answer to SyncGroup, is removed, and says revoked at its end."""
    lines = member(0, "one", KPY, 1, BOTH)
    lines += [line(2, "started", "two", detail=KPY), line(2.1, "subscribed", "two", topics=["a"])]
    lines += [line(2.2, "joining", "two"), line(2.21, "joining", "two")]
    lines += [line(2.5, "joining", "one", generation=1), line(2.6, "joined", "one", generation=2)]
    lines += [line(2.61, "joined", "two", generation=2), line(2.7, "synced", "two", generation=2)]
    lines += [line(6, "joining", "two", generation=2), line(6.1, "joined", "two", generation=3)]
    lines += [line(6.2, "synced", "two", generation=3)]
    lines += [line(6.3, "assigned", "two", generation=3, partitions=BOTH)]
    lines += [line(20, "revoked", "one", partitions=BOTH), line(20.1, "closed", "one")]
    found = answer_for(lines, tmp_path)
    assert found.conformance.verdict == "explained"
    assert found.findings["abandons its join"] == 1
    others = [one for one in DEVIATIONS if one.id != "abandons its join"]
    monkeypatch.setattr("rebalance_verifier.live.conformance.deviations.DEVIATIONS", others)
    assert answer_for(lines, tmp_path).conformance.verdict == "mismatch"


@pytest.mark.parametrize(("kind", "verdict"), [("mock", "explained"), ("kafka", "mismatch")])
def test_the_mock_cluster_ends_a_join_phase_in_which_nobody_came(
    kind: str, verdict: str, tmp_path: Path
) -> None:
    """one, the leader, is killed; two is told generation 3, and 5 next: nobody was told generation 4."""
    lines = member(0, "one", LIB, 2, BOTH)
    lines += [line(2, "started", "two", detail=LIB), line(2.1, "subscribed", "two", topics=["a"])]
    lines += [line(2.2, "joining", "two"), line(2.3, "closed", "one", detail="killed")]
    lines += [line(2.7, "joined", "two", generation=3), line(4, "joining", "two", generation=3)]
    lines += [line(4.5, "joined", "two", generation=5), line(4.6, "synced", "two", generation=5)]
    lines += [line(4.7, "assigned", "two", generation=5, partitions=BOTH)]
    if kind == "kafka":
        lines.insert(-6, line(2.21, "joining", "two"))
    else:
        del lines[3]
    assert answer_for(lines, tmp_path, cluster={"kind": kind}).conformance.verdict == verdict


def test_java_forgets_a_topic(tmp_path: Path) -> None:
    lines = member(0, "one", JAVA, 1, BOTH)
    lines += [line(2, "joining", "one", generation=1), line(2.1, "joined", "one", generation=2)]
    lines += [line(2.2, "synced", "one", generation=2)]
    lines += [line(2.3, "assigned", "one", generation=2, partitions=[])]
    found = answer_for(lines, tmp_path)
    assert (found.conformance.verdict, found.findings) == ("explained", {"forgets a topic": 1})


def test_a_kill_takes_the_last_line_with_it(tmp_path: Path) -> None:
    """two is killed after ``started``; that one joins again shows that two's JoinGroup had arrived."""
    lines = member(0, "one", LIB, 1, BOTH)
    lines += [line(2, "started", "two", detail=LIB), line(2.1, "subscribed", "two", topics=["a"])]
    lines += [line(2.2, "joining", "two"), line(2.4, "closed", "two", detail="killed")]
    lines += [line(3, "joining", "one", generation=1), line(3.1, "joined", "one", generation=2)]
    assert answer_for(lines, tmp_path).conformance.verdict == "explained"
    lines[-3] = line(2.4, "closed", "two")  # it left, and was no member yet
    assert answer_for(lines, tmp_path).conformance.verdict == "mismatch"


def test_a_finding_is_said(rebalance: Any, tmp_path: Path) -> None:
    lines = member(0, "one", LIB, 1, BOTH)
    lines += [line(5, "subscribed", "one", topics=["b"]), line(5.5, "lost", "one", partitions=BOTH)]
    answer_for(lines, tmp_path)
    ran = rebalance("conform", tmp_path)
    assert ran.code == 0
    assert "findings about clients that the run takes" in ran.out
    assert "loses what it unsubscribed (1 time): librdkafka: " in ran.out


def test_each_habit_has_a_reason() -> None:
    assert len(BY_ID) == len(DEVIATIONS)
    assert all(deviation.sentence and deviation.evidence for deviation in DEVIATIONS)
