"""Our own event log, a line at a time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rebalance_verifier.pipeline.audit.sources.events import Kind
from rebalance_verifier.pipeline.audit.sources.jsonl import BESIDE, NotOurs, read
from rebalance_verifier.pipeline.audit.sources.local import read as read_logs

SCHEMAS = Path(__file__).parents[4] / "traces" / "schemas"
LINE = '{{"at": 1, "event": "stable", "group": "g", "generation": {}}}'


@pytest.mark.parametrize("generation", [2**31 - 1, -(2**31) + 1, -1, 0])
def test_a_generation_is_as_large_as_kafkas(generation: int) -> None:
    assert [row.generation for row in read(LINE.format(generation), "UTC")] == [generation]


@pytest.mark.parametrize("generation", [2**31, -(2**31) - 1, 2**64, "1.0", "true", "[]"])
def test_a_generation_that_no_table_holds_is_refused(generation: object) -> None:
    with pytest.raises(NotOurs, match="a field is not of its type"):
        read(LINE.format(generation), "UTC")


def test_a_recording_says_what_the_audit_takes_and_what_it_passes_over() -> None:
    schema = json.loads((SCHEMAS / "record-event.schema.json").read_text())
    written = set(schema["properties"]["event"]["enum"])
    assert written - set(Kind) == BESIDE


def test_the_reads_of_a_recording_are_no_malformed_events(tmp_path: Path) -> None:
    """Its whole folder is audited: what is beside the membership counts as other lines, with its time."""
    started = {"at": "2026-11-29T01:00:00Z", "event": "started", "group": "g", "consumer": "c"}
    polled = {**started, "at": "2026-11-29T01:00:05Z", "event": "polled", "ranges": {"t-0": [0, 9]}}
    unfinished = json.dumps(polled)[:-3]
    (tmp_path / "events.jsonl").write_text(json.dumps(started) + "\n")
    (tmp_path / "reads.jsonl").write_text("\n".join([json.dumps(polled), unfinished]) + "\n")
    logs = read_logs([str(tmp_path)])
    assert [row.kind for row in logs.events] == ["started"]
    assert [(Path(one.file).name, one.line) for one in logs.malformed] == [("reads.jsonl", 2)]
    assert {(Path(one.file).name, one.source, one.lines) for one in logs.lines} == {
        ("events.jsonl", "events", 1),
        ("reads.jsonl", None, 1),
        ("reads.jsonl", "events", 1),
    }
    assert logs.until is not None
    assert logs.until - logs.events[0].at == 5_000_000
