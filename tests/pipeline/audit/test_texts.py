"""Spark reads what this process reads: the same rows by the same code, of whole files, stretches and URLs."""

from __future__ import annotations

import pickle
from datetime import UTC
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

import pyarrow as pa
import pyarrow.parquet as pq
from rebalance_verifier.pipeline.audit import texts
from rebalance_verifier.pipeline.audit.slices import stored_far
from rebalance_verifier.pipeline.audit.sources import local, reading
from rebalance_verifier.pipeline.audit.sources.events import EventRow
from rebalance_verifier.pipeline.audit.sources.reading import Content, LineRange, Unread, line_ranges

LOGS = str(Path(__file__).parent / "logs" / "*.log*")


def rows(table):
    """As ``EventRow``, in order."""
    found = []
    for row in table:
        at = row["at"].replace(tzinfo=UTC)
        micros = int(at.replace(microsecond=0).timestamp()) * 1_000_000 + at.microsecond
        found.append(EventRow(*{**row, "at": micros}.values()))
    return sorted(found, key=str)


@pytest.mark.nightly
def test_the_same_events_counts_and_clients(spark, tmp_path, monkeypatch):
    """Read in this process; by tasks, the larger of the plain files cut; and as URLs, by Spark."""
    here = local.read([LOGS], date="2026-11-21")
    logs = local.listed([LOGS])[0]
    how = texts.How(date="2026-11-21")
    into = str(tmp_path / "events")
    small = texts.read(spark, logs, how=how, into=into)
    written = [rows(pq.read_table(into).to_pylist())]
    monkeypatch.setattr(texts, "SMALL", 1000)
    monkeypatch.setattr(texts, "STRETCH", 4000)
    assert any(len(piece) == 1 and piece[0].begin for piece in texts.pieces_of(logs, 4)), "nothing is cut"
    large = texts.read(spark, logs, how=how, into=into)
    written.append(rows(pq.read_table(into).to_pylist()))
    far = texts.read(spark, [], [f"file://{LOGS}"], how)
    assert far.events
    written.append(rows(one.asDict() for one in far.events.collect()))
    assert written == [sorted(here.events, key=str)] * 3
    for there in (small, large, far):
        assert there.lines == sorted(map(tuple, here.lines), key=str)
        assert there.malformed == here.malformed == []
        assert [*there.clients] == here.clients
        assert [*there.notes] == here.notes == []
        assert max(there.ends.values()) == here.until


def test_stretches_of_a_file_are_its_lines(tmp_path, monkeypatch):
    """Each line once, with its number, whatever the blocks and where they end."""
    monkeypatch.setattr(reading, "BLOCK", 4096)
    log = tmp_path / "a.log"
    lines = [f"{number} {'x' * (number * 37 % 500)}" for number in range(900)]
    for end in ("\n", ""):
        log.write_text("\ufeff" + "\n".join(lines) + end)
        for size in (1, 300, 5000, 1 << 20):
            parts = line_ranges(str(log), size)
            assert [one for part in parts for one in Content(str(log), part)] == [*enumerate(lines, 1)]
            assert size > 5000 or len(parts) > 10
    log.write_text('[\n{"message": "a"},\n{"message": "b"}\n]\n')
    assert line_ranges(str(log), 1) == [], "JSON over many lines is not cut"
    assert texts.pieces_of([str(log)], 1) == [[LineRange(str(log))]]


def _joined(number):
    group = "[Consumer clientId=c, groupId=g] Successfully joined group with generation Generation"
    return f"{group}{{generationId={number}, memberId='c-1', protocol='range'}}"


def _by_java(number):
    clock = f"3:{number // 60:02}:{number % 60:02} AM"
    return f"Jan 02, 2026 {clock} org.apache.kafka.Coordinator joined\nINFO: {_joined(number)}\n"


def _cut_off(number):
    clock = f"2026-01-02T03:{number // 60:02}:{number % 60:02}"
    half, rest = _joined(number)[:50], _joined(number)[50:]
    return f"{clock}.000000000Z stdout P {half}\n{clock}.000000001Z stdout F {rest}\n"


def _among_long_lines(number):
    """Of which a block that is looked through holds none as a whole."""
    return f"{_by_java(number):x<4065}\n"


@pytest.mark.covering
@pytest.mark.parametrize("layout", [_by_java, _cut_off, _among_long_lines])
def test_what_takes_several_lines_is_in_one_stretch_and_in_one_chunk(layout, tmp_path, monkeypatch):
    log = tmp_path / "a.log"
    log.write_text("".join(map(layout, range(600))))
    whole = local.parsed([str(log)], unread=[])
    assert len(whole.rows) >= 600
    assert not whole.malformed
    monkeypatch.setattr(texts, "CHUNK", 1)
    for size in (1, 5000, 9000):
        pieces = [[part] for part in line_ranges(str(log), size)]
        task = texts._reading_files(pieces, texts.How(parent=f"{tmp_path}/"), 1)
        numbers = pa.RecordBatch.from_pydict({"n": [*range(len(pieces))]})
        said = [
            (what, pickle.loads(data))
            for batch in task(iter([numbers]))
            for what, _, data in zip(*(column.to_pylist() for column in batch.columns), strict=True)
        ]
        asides = [value for what, value in said if what == "aside"]
        assert len(asides) == len(pieces) > 5
        assert not [line for aside in asides for line in aside.malformed]
        rows = [row for what, some in said if what == "row" for row in some]
        assert sorted(rows, key=str) == sorted(map(tuple, whole.rows), key=str)


@pytest.mark.slow
def test_tables_at_urls_and_what_is_no_table(spark, tmp_path):
    log = tmp_path / "a.log"
    log.write_text('{"at": 1, "event": "joined", "group": "g", "consumer": "c", "generation": 7}\noops\n')
    texts.read(spark, [str(log)], how=texts.How("events"), into=str(tmp_path / "table"))
    spark.createDataFrame([(1,)], "x int").coalesce(1).write.parquet(str(tmp_path / "other"))
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 and no more")
    files = [
        f"file://{path}"
        for path in (
            tmp_path / "table" / "part-00000.parquet",
            tmp_path / "broken.parquet",
            tmp_path / "other",
        )
    ]
    unread: list[Unread] = []
    (event,) = stored_far(spark, files, unread).collect()
    assert (event.group, event.generation) == ("g", 7)
    assert [(one.file.split("/")[-1], one.why[:28]) for one in unread] == [
        ("broken.parquet", "no Parquet that can be read:"),
        ("other", "not a table of events, witho"),
    ]
