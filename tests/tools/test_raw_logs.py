"""Text of clients beside the recorder's own events: what counts as alike, and what the page says."""

from __future__ import annotations

import json
import sys

import pytest

pytest.importorskip("duckdb")

from tests.pipeline.audit.sources import shapes
from tests.pipeline.audit.sources.incident import incident
from tools import raw_logs


@pytest.fixture
def run(tmp_path):
    """A run whose clients logged the incident, and whose recorder noted what is read of that text."""
    from rebalance_verifier.pipeline.audit.sources import local
    from rebalance_verifier.pipeline.audit.sources.times import text_of

    out = tmp_path / "java_3.4.0-kafka-mixed-1"
    shapes.write(shapes.per_pod(incident()), out / "clients")
    with (out / "events.jsonl").open("w") as stream:
        for event in local.read([str(out / "clients")]).events:
            row: dict[str, object] = {
                "at": text_of(event.at), "event": event.kind, "group": event.group,
                "consumer": event.consumer, "member": event.member, "generation": event.generation,
            }  # fmt: skip
            if event.partition is not None:
                row["partitions"] = [f"{event.topic}-{event.partition}"]
            if event.kind != "planned":
                stream.write(json.dumps(row) + "\n")
    request = {"cluster": "kafka", "clients": "java:3.4.0:3", "scenario": "mixed"}
    (out / "run.json").write_text(json.dumps({"request": request}))
    return out


def called(monkeypatch, *argv):
    monkeypatch.setattr(sys, "argv", ["raw_logs", *map(str, argv)])
    return raw_logs.main()


def test_text_and_events_that_say_the_same_are_alike(run, tmp_path, monkeypatch):
    page = tmp_path / "page.md"
    assert called(monkeypatch, run, "--page", page) == 0
    text = page.read_text()
    assert "**1 of 1 runs are alike (100%).**" in text
    assert "| java:3.4.0 | kafka | 1 | 1 | 1 | 48 | 0 |" in text
    assert text.endswith("Nothing.\n")


def test_what_the_text_does_not_show_is_named_and_counts(run, tmp_path, monkeypatch):
    for log in (run / "clients").iterdir():
        log.write_text(
            "".join(line for line in log.read_text().splitlines(True) if "Revoke previously" not in line)
        )
    page = tmp_path / "page.md"
    assert called(monkeypatch, run, "--page", page) == 1
    assert "0 of 1 runs are alike" in page.read_text()
    found = raw_logs.compared(run)
    assert found is not None
    assert not found.alike
    assert found.of_events == "violation"
    assert set(found.text_only) - set(found.events_only)


def test_a_run_that_did_not_end_is_left_out(run, tmp_path, monkeypatch, capsys):
    (run / "events.jsonl").write_text("")
    assert called(monkeypatch, run, tmp_path, "--page", tmp_path / "page.md") == 1
    assert "0 of 0 runs alike; 2 did not come to an end" in capsys.readouterr().out
    assert not (tmp_path / "page.md").exists()


@pytest.mark.parametrize("text", ["", "\0", "[]", "{}"])
def test_so_is_one_that_cannot_be_read(run, text):
    (run / "run.json").write_text(text)
    assert raw_logs.compared(run) is None
