"""Logs that grow are audited as they grow, over restarts too."""

from __future__ import annotations

import json
import os
from datetime import timedelta

import pytest

from tests.gate.cli import quick_audit
from tests.pipeline.audit.logs_at_hand import BEGIN

# -- reading -------------------------------------------------------------------------------------------


def reader(path):
    from rebalance.pipeline.audit.tail import TailReader

    return TailReader(str(path))


def lines(tail, start, end):
    return [row for part in tail.partitions(start, end) for row in tail.read(part)]


def test_a_file_that_grows_is_read_on_from_the_last_whole_line(tmp_path):
    log = tmp_path / "app.log"
    log.write_bytes(b"one\r\ntwo\nthr")
    tail = reader(tmp_path)
    first = tail.latestOffset({}, None)
    assert lines(tail, {}, first) == [(str(log), 1, "one"), (str(log), 2, "two")]
    assert lines(tail, first, tail.latestOffset(first, None)) == []
    with log.open("ab") as stream:
        stream.write(b"ee\n\xff\nfi")
    again = reader(tmp_path)  # as after a restart
    second = again.latestOffset(json.loads(json.dumps(first)), None)
    assert lines(again, first, second) == [(str(log), 3, "three"), (str(log), 4, "�")]


def test_rotation_loses_nothing_and_reads_nothing_twice(tmp_path):
    log = tmp_path / "app.log"
    log.write_text("one\n")
    tail = reader(tmp_path)
    first = tail.latestOffset({}, None)
    with log.open("a") as stream:
        stream.write("two\n")
    planned = tail.latestOffset(first, None)
    log.rename(tmp_path / "app.log.1")
    log.write_text("three\n")
    (tmp_path / "app.log.2.gz").write_bytes(b"\x1f\x8b\n")
    (tmp_path / ".app.log.swp").write_text("hidden\n")
    assert [text for _, _, text in lines(tail, first, planned)] == ["two"]
    after = tail.latestOffset(planned, None)
    assert lines(tail, planned, after) == [(str(log), 1, "three")]
    log.write_text("4\n")  # emptied and begun again
    os.utime(log)
    assert lines(tail, after, tail.latestOffset(after, None)) == [(str(log), 1, "4")]


def test_deleted_files_are_forgotten(tmp_path):
    log = tmp_path / "app.log"
    log.write_text("one\n")
    tail = reader(tmp_path)
    first = tail.latestOffset({}, None)
    log.unlink()
    assert tail.latestOffset(first, None) == {}


# -- the audit -----------------------------------------------------------------------------------------


def write(path, *events):
    """Append events of our own log: seconds, consumer, event, generation, partitions."""
    with path.open("a") as stream:
        for second, consumer, event, generation, *partitions in events:
            at = (BEGIN + timedelta(seconds=second)).isoformat()
            row = {"at": at, "group": "g", "consumer": consumer, "event": event, "generation": generation}
            stream.write(json.dumps({**row, "partitions": partitions}) + "\n")


JOINED = [(1, c, event, 1) for c in "ab" for event in ("joined", "synced")]


@pytest.fixture
def follow_once(spark, tmp_path):
    """Reads what was written since and returns the findings that it told."""
    from rebalance.pipeline.audit.batches import Watch, follow
    from rebalance.pipeline.audit.kernel.findings import Thresholds

    def run(**options):
        reported: list[tuple[str, int]] = []

        def report(new):
            reported.extend((row["check"], row["partition"]) for row in new.collect())

        watch = Watch(
            path=str(tmp_path / "logs"),
            out=tmp_path / "out",
            thresholds=Thresholds(),
            report=report,
            now=False,
            **options,
        )
        follow(spark, watch, once=True).awaitTermination()
        return reported

    (tmp_path / "logs").mkdir()
    return run


def table(spark, tmp_path):
    rows = spark.read.parquet(str(tmp_path / "out" / "findings")).orderBy("began").collect()
    return [(row["check"], row["partition"]) for row in rows]


@pytest.mark.nightly  # three minutes; by day test_audit_cli_follow follows a log
def test_findings_are_told_once_and_over_restarts(spark, tmp_path, follow_once):
    a, b = tmp_path / "logs" / "a.jsonl", tmp_path / "logs" / "b.jsonl"
    write(a, *(row for row in JOINED if row[1] == "a"), (2, "a", "assigned", 1, "t-0", "t-1"))
    write(b, *(row for row in JOINED if row[1] == "b"))
    write(b, (3, "b", "assigned", 1, "t-0"))
    assert follow_once() == [("owned-twice", 0)]
    write(a, (4, "a", "revoked", 1, "t-0"))
    write(b, (5, "b", "assigned", 1, "t-1"))  # while another has it, as was said before the restart
    with b.open("a") as stream:
        stream.write('{"at": 1, "event": "nonsense", "group": "g"}\n')
    assert follow_once() == [("owned-twice", 1)]  # and not the first again, although more is known of it
    assert table(spark, tmp_path) == [("owned-twice", 0), ("owned-twice", 1)]
    malformed = spark.read.parquet(str(tmp_path / "out" / "malformed")).collect()
    assert [(row["file"], row["line"]) for row in malformed] == [(str(b), 5)]


@pytest.mark.nightly
def test_a_batch_that_is_run_again_after_a_crash_leaves_no_double(spark, tmp_path, follow_once, monkeypatch):
    from rebalance.pipeline.audit import batches

    monkeypatch.setattr(batches, "audit", quick_audit.audit)
    write(tmp_path / "logs" / "a.jsonl", (2, "a", "assigned", 1, "t-0"))
    assert follow_once() == [("never-settles", None)]
    commits = sorted((tmp_path / "out" / "state" / "checkpoint" / "commits").glob("[0-9]*"))
    commits[-1].unlink()  # it was killed after writing, before Spark noted that the batch was over
    for sum_file in commits[-1].parent.glob(f".{commits[-1].name}.crc"):
        sum_file.unlink()
    assert follow_once() == []
    assert table(spark, tmp_path) == [("never-settles", None)]


@pytest.mark.nightly
def test_what_still_matters_survives_compaction(spark, tmp_path, follow_once):
    log = tmp_path / "logs" / "a.jsonl"
    write(log, *JOINED, (2, "a", "assigned", 1, "t-0"))
    for second in (10, 20):
        write(log, (second, "a", "assigned", 1, "t-7"), (second + 1, "a", "revoked", 1, "t-7"))
        assert follow_once(horizon=1.0, compact=1) == []
    write(log, (9000, "z", "started", None))
    assert follow_once(horizon=1.0, compact=1) == [("stranded", 7)]
    write(log, (9001, "z", "started", None))
    follow_once(horizon=1.0, compact=1)
    bases = spark.read.parquet(str(sorted((tmp_path / "out" / "state" / "bases").iterdir())[-1]))
    assert bases.where("partition = 7").count() == 2  # of four
    write(log, (9010, "b", "assigned", 1, "t-0"))
    assert follow_once(horizon=1.0, compact=1) == [("owned-twice", 0)]
