"""The page of a recorded hour: what is there counts, a cause for each violation, exit 1 without one."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from rebalance_verifier.live.conformance.clients.table import DIAGNOSES, diagnosis
from rebalance_verifier.live.conformance.clients.traits import FindingContext

from tools import hour

AT = "2026-11-22T00:00:{:06.3f}000Z"


def event(at: float, kind: str, who: str = "confluent-1", **more: Any) -> dict[str, Any]:
    return {"at": AT.format(at), "event": kind, "group": "recorded", "consumer": who, **more}


LOST = [
    event(0, "started", detail="confluent-kafka 2.16.1, librdkafka 2.16.0"),
    event(0.1, "subscribed", topics=["orders"]),
    event(0.2, "joining"),
    event(0.21, "joining"),
    event(1, "joined", generation=1),
    event(1.1, "synced", generation=1),
    event(1.2, "assigned", generation=1, partitions=["orders-0"]),
    event(5, "subscribed", topics=["payments"]),
    event(5.5, "lost", generation=1, partitions=["orders-0"]),
]


def finding(check: str, at: float = 36, level: str = "liveness", **more: Any) -> dict[str, Any]:
    common = {"check": check, "began": AT.format(at), "level": level, "consumers": ["confluent-1"]}
    return {
        **common,
        "detail": "nobody owns payments-0",
        "partition": "payments-0",
        "generations": [],
        **more,
    }


def recording(root: Path, name: str, findings: list[Any], events: list[Any]) -> None:
    path = root / name
    path.mkdir(parents=True)
    steps = [{"do": "start", "member": "confluent-1"}, {"do": "settle"}]
    run = {
        "cluster": {"kind": "kafka", "version": "4.1.0"},
        "request": {"cluster": "kafka", "clients": "confluent:3", "seed": 1},
        "assignors": [["cooperative-sticky"]],
        "partitions": 1,
        "steps": steps,
        "rests": [{"number": 2, "at": AT.format(36)}],
    }
    report = {"exit": 1 if findings else 0, "seconds": 90.0, "findings": findings}
    (path / "run.json").write_text(json.dumps(run))
    (path / "report.json").write_text(json.dumps(report))
    (path / "events.jsonl").write_text("".join(json.dumps(one) + "\n" for one in events))


def made(root: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[int, str]:
    page = root / "page.md"
    argv = ["hour", str(root / "runs"), "--answers", str(root / "answers"), "--page", str(page)]
    monkeypatch.setattr(sys, "argv", argv)
    return hour.main(), page.read_text(encoding="utf-8")


def test_a_violation_with_its_cause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recording(tmp_path / "runs", "confluent-kafka-1000", [finding("stranded")], LOST)
    recording(tmp_path / "runs", "confluent-kafka-1001", [], LOST[:7])
    code, text = made(tmp_path, monkeypatch)
    assert code == 0
    assert "| confluent | kafka | 2 | 3.0 | 2 | 1 | 1 | 1 | 0 | 0 |" in text
    assert "| stranded | loses what it unsubscribed and does not rejoin | 1 | 1 | seed 1000 |" in text
    assert "--seed 1000 --steps 16` | 1 x stranded" in text
    assert hour.UNEXPLAINED not in text
    again = (tmp_path / "answers" / "confluent-kafka-1000.json").stat().st_mtime_ns
    assert made(tmp_path, monkeypatch)[0] == 0
    assert (tmp_path / "answers" / "confluent-kafka-1000.json").stat().st_mtime_ns == again


def test_a_run_without_a_recording_is_no_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "runs").mkdir()
    assert made(tmp_path, monkeypatch)[0] == 1
    assert "no recordings" in capsys.readouterr().err
    recording(tmp_path / "runs", "confluent-kafka-1000", [], LOST[:7])
    (tmp_path / "runs" / "confluent-kafka-1000.txt").write_text("seconds 90.0")
    assert made(tmp_path, monkeypatch)[0] == 0
    (tmp_path / "runs" / "java_4.1.0-kafka-1001.txt").write_text("given up after 300 s\n\nseconds 300.0")
    assert made(tmp_path, monkeypatch)[0] == 1
    assert "java_4.1.0-kafka-1001 left no report" in capsys.readouterr().err


def test_what_has_no_cause_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recording(tmp_path / "runs", "confluent-kafka-1000", [finding("skipped-records", level="safety")], LOST)
    code, text = made(tmp_path, monkeypatch)
    assert code == 1
    assert f"| skipped-records | {hour.UNEXPLAINED} |" in text


def test_what_the_model_cannot_do_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = [*LOST[:7], event(9, "assigned", generation=7, partitions=["orders-0"])]
    recording(tmp_path / "runs", "confluent-kafka-1000", [], wrong)
    code, text = made(tmp_path, monkeypatch)
    assert code == 1
    assert (
        "| confluent-kafka-1000 | violation | 6 of 7 | confluent-1 assigned orders-0 generation 7 | " in text
    )


def test_quality_is_no_violation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recording(tmp_path / "runs", "confluent-kafka-1000", [finding("owned-by-zombie", level="quality")], LOST)
    assert made(tmp_path, monkeypatch)[0] == 0


def test_what_cannot_be_recorded_is_neither_played_nor_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording(tmp_path / "runs", "java_4.1.0-mock-2000", [finding("never-settles")], LOST)
    recording(tmp_path / "runs", "confluent-kafka-1000", [], LOST[:7])
    code, text = made(tmp_path, monkeypatch)
    assert code == 0
    assert "| java" not in text
    assert "Left out: java:4.1.0 on mock, 1 runs (the mock cluster refuses" in text
    hour.play(["java:4.1.0"], ["mock"], 3600, tmp_path / "new")  # there is nothing to play
    assert not (tmp_path / "new").exists()


def test_recordings_are_judged_by_the_judge_of_today(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recording(tmp_path / "runs", "confluent-kafka-1000", [finding("skipped-records", level="safety")], LOST)
    path = tmp_path / "runs" / "confluent-kafka-1000"
    (path / "reads.jsonl").write_text("")
    run = json.loads((path / "run.json").read_text())
    rest = {"settled": True, "live": [], "wanted": [], "owned": {}, "why": "", "agreed": True}
    (path / "run.json").write_text(json.dumps({**run, "rests": [{**run["rests"][0], **rest}]}))
    code, text = made(tmp_path, monkeypatch)
    assert (code, "skipped-records" in text) == (0, False)


def test_causes_are_told_apart() -> None:
    def seen(client: str, cluster: str, check: str, events: list[Any], **more: Any) -> str:
        found = diagnosis(
            FindingContext(
                client=client,
                cluster=cluster,
                finding=finding(check, **more),
                events=events,
                run={"steps": [], "rests": []},
            )
        )
        return found.id if found else ""

    assert seen("confluent", "kafka", "stranded", LOST[:7]) == ""
    assert seen("java", "kafka", "never-settles", LOST) == ""
    rejoining = [*LOST, event(6, "joining", generation=1)]
    assert seen("confluent", "kafka", "stranded", rejoining) == ""
    assert seen("kafka-python", "kafka", "never-settles", rejoining) == "abandons its join"
    evidence = {
        "generations": [1, 2],
        "detail": "two was granted it in generation 2; one ... revoked in generation 2",
    }
    assert seen("kafka-python", "kafka", "owned-twice", LOST, **evidence) == "a stale claim wins"
    assert seen("java", "kafka", "owned-twice", LOST, **evidence) == ""


def test_each_cause_has_evidence() -> None:
    assert len({one.id for one in DIAGNOSES}) == len(DIAGNOSES)
    assert all(one.sentence and one.evidence for one in DIAGNOSES)
