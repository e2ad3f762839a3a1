"""Recordings on disk: what is written reads back, what is damaged is named."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import jsonschema
import pytest
from rebalance_verifier.base.saved import NewerSchema, TraceError
from rebalance_verifier.pipeline.audit.records import FindingOwner, LogEvent, LogFinding, Recording
from rebalance_verifier.traces import kinds, recordings

ROOT = Path(__file__).parents[2]
SCHEMAS = ROOT / "traces" / "schemas"
BEGAN = datetime(2026, 11, 21, 18, tzinfo=UTC)
A, B = "orders-1@a", "orders-2@b"


def seen(seconds, kind, line, consumer=A, **fields):
    return LogEvent(
        at=BEGAN + timedelta(seconds=seconds),
        kind=kind,
        file="app.log",
        line=line,
        consumer=consumer,
        **fields,
    )


def on(seconds, kind, line, consumer=A, partition=1, **fields):
    return seen(seconds, kind, line, consumer, topic="orders", partition=partition, **fields)


@pytest.fixture
def twice() -> Recording:
    """B is assigned orders-1 before A has lost it: A was removed, and does not know."""
    events = (
        seen(0, "joining", 1),
        seen(0.1, "joined", 2, generation=7, member="m-a"),
        on(0.3, "assigned", 3, generation=7),
        seen(60, "preparing", 61, None, generation=7),
        seen(63, "stable", 6, None, generation=8),
        seen(63, "joined", 7, B, generation=8, member="m-b"),
        on(63.3, "assigned", 9, B, generation=8),
        seen(64, "removed", 63, None, member="m-a", detail="session timed out"),
        on(71.2, "lost", 11),
    )
    finding = LogFinding(
        id="1f2e3d4c5b6a7988", check="owned-twice", level="safety", group="orders", topic="orders",
        partition=1,
        began=BEGAN + timedelta(seconds=63.3), ended=BEGAN + timedelta(seconds=71.2), seconds=7.9,
        owners=(FindingOwner(A, "m-a", 7), FindingOwner(B, "m-b", 8)), skew=None, certain=True,
        places=(events[2], events[6]),
        sentence="orders-1 is owned by two",
    )  # fmt: skip
    return Recording(
        finding=finding,
        rule="No partition twice.",
        source="KIP-429",
        events=events,
        origin={"paths": ["app.log"]},
        suite_version="0.1.0",
    )


def test_what_is_written_reads_back_and_is_as_its_schema_says(twice, tmp_path):
    schema = json.loads((SCHEMAS / "recording.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    lasting = replace(twice.finding, id="no file name", topic=None, partition=None, ended=None, skew=0.8)
    doubted = replace(twice.finding, certain=False, doubt="one of three logs is missing")
    for one in (
        *(twice, replace(twice, finding=lasting), replace(twice, events=())),
        replace(twice, finding=doubted),
    ):
        path = recordings.save(one, tmp_path)
        assert kinds.load(path) == recordings.load(path)
        back = replace(recordings.load(path), path=None)
        # A place is written without what its finding says once and for all.
        short = tuple(replace(event, topic=None, partition=None, member=None) for event in one.finding.places)
        assert back == replace(one, finding=replace(one.finding, places=short))
        written = json.loads(path.read_text())
        validator.validate(written)
        assert list(written) == list(schema["properties"])
        fields = [
            name for name in schema["$defs"]["finding"]["properties"] if name != "doubt" or one.finding.doubt
        ]
        assert list(written["finding"]) == fields
    assert (tmp_path / "1f2e3d4c5b6a7988.json").exists()
    with pytest.raises(jsonschema.ValidationError):
        validator.validate({**written, "events": [{"kind": "joined"}]})


def test_a_hostile_id_is_no_file_name(twice, tmp_path):
    path = recordings.save(replace(twice, finding=replace(twice.finding, id="../../x")), tmp_path / "in")
    assert path.parent == tmp_path / "in"
    assert ".." not in path.name


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.pop("schema"), "it has no field 'schema'"),
        (lambda d: d.update(kind="group run"), "field 'kind' is not 'recording'"),
        (lambda d: d["finding"].pop("group"), r"finding\.group: is missing"),
        (lambda d: d["finding"].pop("seconds"), r"finding\.seconds: is missing"),
        (
            lambda d: d["finding"].update(seconds=-1),
            "seconds: expected seconds, 0 or more, found -1",
        ),
        (
            lambda d: d["finding"].update(level="grave"),
            r"level: expected one of safety, .*, found .grave",
        ),
        (
            lambda d: d["finding"].update(began="yesterday"),
            r"finding\.began: expected a time in ISO 8601",
        ),
        (
            lambda d: d["finding"].update(owners=["A"]),
            r"finding\.owners\[0\]: expected an object",
        ),
        (
            lambda d: d["events"][2].update(line="3"),
            r"events\[2\]\.line: expected a whole number",
        ),
        (lambda d: d["events"][2].pop("at"), r"events\[2\]\.at: is missing"),
    ],
)
def test_what_is_wrong_is_named(twice, tmp_path, change, message):
    path = recordings.save(twice, tmp_path)
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))
    with pytest.raises(TraceError, match=message) as raised:
        recordings.load(path)
    assert str(path) in str(raised.value)


def test_a_newer_file_is_told_from_a_broken_one(twice, tmp_path):
    path = recordings.save(twice, tmp_path)
    path.write_text(path.read_text().replace('"schema": 1', '"schema": 2'))
    with pytest.raises(NewerSchema, match="use a newer suite"):
        recordings.load(path)
    for text, message in (("{", "not JSON"), ("[]", "not a recording"), ("\xff", "is not UTF-8")):
        path.write_text(text, encoding="latin-1")
        with pytest.raises(TraceError, match=message):
            recordings.load(path)


def test_show_draws_a_recording(rebalance, twice, tmp_path):
    path = recordings.save(twice, tmp_path / ".rebalance" / "latest" / "traces")
    for name in (path, "1f2e3d4c", "1f2e3d4c5b6a7988"):
        ran = rebalance("show", name)
        assert ran.code == 0
        assert ran.out.startswith(
            "1f2e3d4c5b6a7988  owned-twice  orders-1 is owned by two\n  rule     No partition"
        )
        assert "group orders  orders-1  7.9 s from 2026-11-21 18:01:03.300  certain" in ran.out
        assert "▲▲▲▲" in ran.out


def test_a_recording_is_no_run(rebalance, twice, tmp_path):
    path = recordings.save(twice, tmp_path)
    assert (rebalance("show", "--metrics", path)).code == 2
    replayed = rebalance("replay", path)
    assert replayed.code == 2
    assert "is a recording of a log, which `rebalance show` draws" in replayed.err
    path.write_text(path.read_text().replace('"group": "orders"', '"group": 7'))
    shown = rebalance("show", path)
    assert shown.code == 2
    assert "finding.group: expected a string, found 7" in shown.err
