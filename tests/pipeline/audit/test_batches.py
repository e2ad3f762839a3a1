"""Logs that grow are audited as they grow, over restarts and crashes too."""

from __future__ import annotations

import json
import os
from datetime import timedelta

import pytest

pytest.importorskip("duckdb")

import duckdb
from rebalance_verifier.base import files
from rebalance_verifier.pipeline import database
from rebalance_verifier.pipeline.audit import batches, tail
from rebalance_verifier.pipeline.audit.kernel.findings import Thresholds

from tests.pipeline.audit.logs_at_hand import BEGIN
from tests.pipeline.audit.sources import shapes
from tests.pipeline.audit.sources.incident import deploy

# -- reading -------------------------------------------------------------------------------------------


def grown(folder, start):
    """How far the files go now, by way of JSON as after a restart, and what was written since."""
    end = tail.ends(str(folder), start)
    kept = tail.positions(json.loads(json.dumps(tail.plain(end))))
    assert kept == end
    return end, texts(folder, start, end)


def texts(folder, start, end):
    return [
        (part.file, number, text)
        for part in tail.stretches(start, end)
        for number, text in tail.lines(str(folder), part)
    ]


def test_a_file_that_grows_is_read_on_from_the_last_whole_line(tmp_path):
    log = tmp_path / "app.log"
    log.write_bytes(b"one\r\ntwo\nthr")
    first, new = grown(tmp_path, {})
    assert new == [(str(log), 1, b"one"), (str(log), 2, b"two")]
    assert grown(tmp_path, first)[1] == []
    with log.open("ab") as stream:
        stream.write(b"ee\n\xff\nfi")
    assert grown(tmp_path, first)[1] == [(str(log), 3, b"three"), (str(log), 4, b"\xff")]


def test_rotation_loses_nothing_and_reads_nothing_twice(tmp_path):
    log = tmp_path / "app.log"
    log.write_text("one\n")
    first, _ = grown(tmp_path, {})
    with log.open("a") as stream:
        stream.write("two\n")
    planned = tail.ends(str(tmp_path), first)
    log.rename(tmp_path / "app.log.1")
    log.write_text("three\n")
    (tmp_path / "app.log.2.gz").write_bytes(b"\x1f\x8b\n")
    (tmp_path / ".app.log.swp").write_text("hidden\n")
    assert [text for _, _, text in texts(tmp_path, first, planned)] == [b"two"]
    after, new = grown(tmp_path, planned)
    assert new == [(str(log), 1, b"three")]
    log.write_text("4\n")  # emptied and begun again
    after, new = grown(tmp_path, after)
    assert new == [(str(log), 1, b"4")]
    log.write_text("5\n6\n")  # by now as long as it was, and longer
    assert grown(tmp_path, after)[1] == [(str(log), 1, b"5"), (str(log), 2, b"6")]


def test_a_large_file_is_read_piece_by_piece(tmp_path):
    (tmp_path / "app.log").write_bytes(b"0123456789\n" * (3 * tail.CHUNK // 11))
    first = tail.ends(str(tmp_path), {}, most=tail.CHUNK)
    (position,) = first.values()
    assert tail.CHUNK <= position.bytes <= 2 * tail.CHUNK
    assert position.bytes == 11 * position.lines


def test_deleted_files_are_forgotten(tmp_path):
    log = tmp_path / "app.log"
    log.write_text("one\n")
    first, _ = grown(tmp_path, {})
    log.unlink()
    assert tail.ends(str(tmp_path), first) == {}


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
def follow_once(tmp_path):
    """Reads what was written since and returns the findings that it reported."""

    def run(**options):
        reported: list[tuple[str, int | None]] = []
        watch = batches.Watch(
            path=str(tmp_path / "logs"),
            out=tmp_path / "out",
            thresholds=Thresholds(),
            report=lambda new: reported.extend((one.check, one.partition) for one in new),
            now=False,
            **options,
        )
        watch.state.mkdir(parents=True, exist_ok=True)
        while batches.batch(watch):
            pass
        return reported

    (tmp_path / "logs").mkdir()
    return run


def table(tmp_path, columns='"check", partition', name="findings"):
    files = tmp_path / "out" / name / "**" / "*.parquet"
    query = f"SELECT {columns} FROM read_parquet('{files}', hive_partitioning = false) ORDER BY ALL"
    return duckdb.execute(query).fetchall()


def test_findings_are_reported_once_and_again_when_they_end(tmp_path, follow_once):
    a, b = tmp_path / "logs" / "a.jsonl", tmp_path / "logs" / "b.jsonl"
    write(a, *(row for row in JOINED if row[1] == "a"), (2, "a", "assigned", 1, "t-0", "t-1"))
    write(b, *(row for row in JOINED if row[1] == "b"))
    write(b, (3, "b", "assigned", 1, "t-0"))
    assert follow_once() == [("owned-twice", 0)]
    write(b, (5, "b", "assigned", 1, "t-1"))  # while another has it, as was written before the restart
    with b.open("a") as stream:
        stream.write('{"at": 1, "event": "nonsense", "group": "g"}\n')
    assert follow_once() == [("owned-twice", 1)]
    write(a, (6, "a", "revoked", 1, "t-0"))
    assert follow_once() == [("owned-twice", 0)]  # has ended
    assert follow_once() == []
    assert table(tmp_path, "partition, seconds, ended IS NULL") == [(0, 3.0, False), (1, 1.0, True)]
    assert table(tmp_path, "file, line", "malformed") == [(str(b), 5)]


def test_of_groups_on_two_clusters_nothing_is_certain(tmp_path, follow_once):
    files = shapes.per_pod(deploy())
    shapes.write(files, tmp_path / "logs")
    assert ("owned-twice", 0) not in follow_once()
    staging = {f"staging-{name}": shapes.in_another_cluster(text) for name, text in files.items()}
    shapes.write(staging, tmp_path / "logs")
    assert ("owned-twice", 0) in follow_once()
    assert set(table(tmp_path, "certain")) == {(False,)}


def test_a_rebalance_that_ends_after_all_is_no_longer_open(tmp_path, follow_once):
    log = tmp_path / "logs" / "a.jsonl"
    write(log, *JOINED, (10, "a", "joining", None), (900, "z", "assigned", 1, "u-0"))
    assert follow_once() == [("never-settles", None)]
    write(log, (1000, "a", "joined", 2), (1000, "a", "synced", 2), (1001, "z", "revoked", 1, "u-0"))
    assert follow_once() == [("never-settles", None)]
    assert table(tmp_path, '"check", ended IS NULL') == [("never-settles", False)]


@pytest.mark.covering
@pytest.mark.parametrize("moment", ["rows", "findings", "reporting", "done"])
def test_a_batch_that_is_run_again_after_a_crash_leaves_no_double(tmp_path, follow_once, monkeypatch, moment):
    """It ends where this is written, then starts again."""

    class Killed(BaseException):
        pass

    def dies(*_, **__):
        raise Killed

    a = tmp_path / "logs" / "a.jsonl"
    write(a, *JOINED, (2, "a", "assigned", 1, "t-0"))
    assert follow_once() == []
    write(a, (3, "b", "assigned", 1, "t-0"))
    with monkeypatch.context() as patched:
        save, write_whole = database.save, files.write_whole

        def saving(connection, query, directory):
            save(connection, query, directory)
            if f"{os.sep}{moment}" in directory:
                raise Killed

        def writing(path, text):
            if path.name == f"{moment}.json":
                raise Killed
            return write_whole(path, text)

        patched.setattr(batches, "save", saving)
        patched.setattr(batches, "write_whole", writing)
        if moment == "reporting":
            patched.setattr(batches, "finding", dies)
        with pytest.raises(Killed):
            follow_once()
    write(a, (4, "b", "revoked", 1, "t-0"))
    assert follow_once() == [("owned-twice", 0), ("owned-twice", 0)]  # it began, and it ended
    assert table(tmp_path) == [("owned-twice", 0)]
    assert table(tmp_path, "count(*), count(DISTINCT line)", "state/rows") == [(7, 7)]


def test_what_still_matters_survives_compaction(tmp_path, follow_once):
    log = tmp_path / "logs" / "a.jsonl"
    write(log, *JOINED, (2, "a", "assigned", 1, "t-0"))
    for second in (10, 20):
        write(log, (second, "a", "assigned", 1, "t-7"), (second + 1, "a", "revoked", 1, "t-7"))
        assert follow_once(horizon=1.0, compact=1) == []
    write(log, (9000, "z", "started", None))
    assert follow_once(horizon=1.0, compact=1) == [("stranded", 7)]
    write(log, (9001, "z", "started", None))
    follow_once(horizon=1.0, compact=1)
    last = sorted((tmp_path / "out" / "state" / "bases").iterdir())[-1]
    assert table(tmp_path, "count(*) FILTER (partition = 7)", f"state/bases/{last.name}") == [(2,)]  # of four
    write(log, (9010, "b", "assigned", 1, "t-0"))
    assert follow_once(horizon=1.0, compact=1) == [("owned-twice", 0)]


@pytest.mark.nightly
def test_the_state_does_not_grow(tmp_path, follow_once):
    """Of weeks there is what still matters, in few files."""
    log = tmp_path / "logs" / "a.jsonl"
    sizes = []
    for hour in range(12):
        second = 3600 * hour
        write(log, *((second + n, "a", "joined", hour) for n in range(50)))
        follow_once(horizon=1.0, compact=2)
        state = tmp_path / "out" / "state"
        kept = sum(1 for _ in state.rglob("*.parquet"))
        sizes.append((kept, table(tmp_path, "count(*)", "state/rows")[0][0]))
    assert max(kept for kept, _ in sizes[4:]) <= 6
    assert max(rows for _, rows in sizes[4:]) <= 250
