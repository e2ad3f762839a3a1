"""Events in tasks: files are cut and put together so that each row is in one of them, and what is cut into
slices is put together again."""

from __future__ import annotations

from functools import partial

import pytest

pytest.importorskip("pyspark")

import pyarrow as pa
import pyarrow.parquet as pq
from rebalance_verifier.pipeline.audit import kernel, slices, spread
from rebalance_verifier.pipeline.audit.kernel.findings import Thresholds
from rebalance_verifier.pipeline.audit.result import AuditPlan
from rebalance_verifier.pipeline.audit.run import run_audit
from rebalance_verifier.pipeline.audit.tables import SAVED
from rebalance_verifier.pipeline.database import literal

from tests.pipeline.audit.logs_at_hand import judged
from tests.pipeline.audit.test_audit_reference import logs, row

ROWS = 'SELECT count(*), sum(hash(moment, kind, "group", consumer, topic, partition)) FROM events'


@pytest.fixture(scope="module")
def connection():
    return judged(map(row, logs(1)))


@pytest.fixture
def files(connection, tmp_path):
    """The same events in three small files and a large one of many row groups."""
    for number in range(3):
        where = literal(str(tmp_path / f"small-{number}.parquet"))
        connection.execute(f"COPY (SELECT {SAVED} FROM events WHERE line % 4 = {number}) TO {where}")
    whole = tmp_path / "whole.parquet"
    connection.execute(f"COPY (SELECT {SAVED} FROM events WHERE line % 4 = 3) TO {literal(str(whole))}")
    pq.write_table(pq.read_table(whole), tmp_path / "whole.parquet", row_group_size=40)
    return sorted(map(str, tmp_path.glob("*.parquet")))


def numbers(count):
    return iter([pa.RecordBatch.from_pydict({"id": [number]}) for number in range(count)])


def everything(part):
    table = part.connection.sql("SELECT * FROM events").to_arrow_table()
    yield pa.RecordBatch.from_pydict({"rows": [slices.packed(table)]})


def test_each_row_is_in_one_piece(connection, files, monkeypatch):
    monkeypatch.setattr(slices, "PIECE", 16 << 10)
    pieces = slices.pieces_of(files, 4)
    assert any(piece.rows for piece in pieces)
    assert any(len(piece.files) > 1 for piece in pieces)
    task = slices._opening(pieces, everything, Thresholds())
    found = [slices.unpacked(batch["rows"][0].as_py()) for batch in task(numbers(len(pieces)))]
    connection.register("together", pa.concat_tables(found))
    assert connection.execute(ROWS).fetchall() == connection.execute(f"{ROWS[:-6]}together").fetchall()


def test_slices_are_buckets_of_whole_groups(files):
    pieces, limits = slices.pieces_of(files, 1), Thresholds()
    assert len(pieces) == 1
    work = partial(slices.cut, bucket='hash("group") % 3')
    of_bucket: dict[int, list[pa.RecordBatch]] = {0: [], 1: [], 2: []}
    for batch in slices._opening(pieces, work, limits)(numbers(1)):
        of_bucket[batch["bucket"][0].as_py()].append(batch)

    def groups(connection):
        found = connection.sql('SELECT "group", count(*) AS events FROM events GROUP BY "group"')
        yield from found.to_arrow_table().to_batches()

    counted = {}
    for some in of_bucket.values():
        for batch in slices.gathered(groups, limits)(iter(some)):
            for one in batch.to_pylist():
                assert one["group"] not in counted
                counted[one["group"]] = one["events"]
    assert len(counted) > 3
    assert sum(counted.values()) == sum(pq.read_metadata(file).num_rows for file in files)
    assert [*slices.gathered(groups, limits)(iter(()))] == []


def test_what_cannot_be_read_is_named_and_nothing_is_counted_with_it(files, tmp_path):
    other = tmp_path / "other.parquet"
    pq.write_table(pa.table({"x": [1]}), other)
    broken = tmp_path / "broken.parquet"
    data = bytearray(pq_bytes(files[0]))
    data[4:400] = b"\xff" * 396
    broken.write_bytes(data)
    pieces = slices.pieces_of([*files, str(other), str(broken)], 1)
    task = slices._opening(pieces, slices.surveyed, Thresholds())
    found = dict(slices.payloads_of(task(numbers(len(pieces)))))
    assert [*found] == ["unread"]
    assert sorted(slices.unpacked(found["unread"])["file"].to_pylist()) == [str(broken), str(other)]
    sound = slices._opening(slices.pieces_of(files, 1), slices.surveyed, Thresholds())
    found = dict(slices.payloads_of(sound(numbers(1))))
    sizes, rows = slices.unpacked(found["sizes"]), slices.unpacked(found["rows"])
    assert sum(sizes["events"].to_pylist()) == sum(rows["lines"].to_pylist()) > 0


def pq_bytes(file):
    with open(file, "rb") as stream:
        return stream.read()


def test_one_process_passes_over_what_is_damaged(files, tmp_path):
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "sound.parquet").write_bytes(pq_bytes(files[0]))
    data = bytearray(pq_bytes(files[1]))
    middle = len(data) // 2  # in no column that is looked at to count
    data[middle : middle + 300] = b"\xff" * 300
    (logs / "damaged.parquet").write_bytes(data)
    found = run_audit(AuditPlan(paths=(str(logs),), out=tmp_path / "out"))
    assert not found.failed
    assert [one.file for one in found.unread] == [str(logs / "damaged.parquet")]
    assert found.events == pq.read_metadata(files[0]).num_rows


def test_groups_are_judged_where_they_lie_together():
    connection = kernel.prepared(Thresholds())
    connection.execute(spread.SURVEY)
    large = spread.WHOLE + 1
    sizes = [
        *((0, "at home", "java", 10), (0, "at home", "broker", 10), (0, "in two pieces", "java", 5)),
        *((1, "in two pieces", "java", 5), (1, "with few", "java", 1), (2, "large", "java", large)),
        *((slices.HANDED, "half here", "java", 2), (2, "half here", "java", 2), (3, "alone", "java", 9)),
    ]
    connection.executemany("INSERT INTO sizes VALUES (?, ?, ?, ?, 0)", sizes)
    plan = spread._planned(connection)
    assert plan.homes == {0: ("at home",), 3: ("alone",)}
    assert plan.scattered == {0, 1, 2}
    assert plan.large == {"large": large}
    assert plan.rest == 5 + 5 + 1 + 2 + 2
