"""Parquet of others, damaged or about something else: named with why, and what lies beside it is judged."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rebalance_verifier.base.verdict import Verdict
from rebalance_verifier.pipeline.audit import kernel
from rebalance_verifier.pipeline.audit.kernel.events import EVERYTHING, broken, stored
from rebalance_verifier.pipeline.audit.kernel.findings import Thresholds
from rebalance_verifier.pipeline.audit.result import AuditPlan
from rebalance_verifier.pipeline.audit.run import run_audit

NOON = 1_767_268_800_000_000
UTC_MICROS = pa.timestamp("us", "UTC")


def table(**columns):
    """Two events of one group, with these columns in place of their own."""
    at = [datetime(2026, 1, 1, 12, minute, tzinfo=UTC) for minute in (0, 1)]
    own = {
        "at": pa.array(at, UTC_MICROS), "kind": ["assigned", "revoked"], "group": ["g"] * 2,
        "consumer": ["a"] * 2, "generation": [1, 1], "topic": ["t"] * 2, "partition": [0, 0],
        "source": ["events"] * 2, "file": ["a.log"] * 2, "line": [1, 2],
    }  # fmt: skip
    return pa.table({**own, **columns})


@pytest.fixture
def connection():
    return kernel.prepared(Thresholds())


def whole(path):
    pq.write_table(table(), path)
    return path.read_bytes()


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "no Parquet that can be read: "),
        (b"a line of a log\n" * 20, "no Parquet that can be read: No magic bytes"),
        (lambda sound: sound[: len(sound) // 2], "no Parquet that can be read: No magic bytes"),
        (lambda sound: sound[:-8] + b"\xff\xff\xff\x7fPAR1", "no Parquet that can be read: Footer length"),
        (pa.table({"a": [1]}), "not a table of events, without at, kind, group, source, file, line"),
        (table().drop_columns(["line"]), "not a table of events, without line"),
        (table(at=["noon", "later"]), "not a table of events, at is VARCHAR"),
        (table(partition=[[0], [0]]), "not a table of events, Unimplemented type for cast"),
        (table(generation=["1", "one"]), "not a table of events, Could not convert string 'one' to INT32"),
        (table(at=pa.nulls(2, UTC_MICROS)), "not a table of events, a row without at"),
        (table(at=pa.array([2**62] * 2, UTC_MICROS)), "not a table of events, a row whose at is not in "),
        (table(kind=["assigned", None]), "not a table of events, a row without kind"),
        (table(kind=["assigned", "taken"]), "not a table of events, a row of no such event: taken"),
        (table(group=pa.nulls(2, pa.string())), "not a table of events, a row without group"),
        (table(line=[1, None]), "not a table of events, a row without line"),
    ],
)  # fmt: skip
def test_what_is_no_table_of_events_is_named_with_why(connection, tmp_path, data, why):
    path = tmp_path / "it's.parquet"
    if isinstance(data, pa.Table):
        pq.write_table(data, path)
    else:
        path.write_bytes(data(whole(path)) if callable(data) else data)
    found = stored(connection, [str(path)], "given") or broken(connection, [str(path)])
    assert [*found] == [str(path)]
    assert found[str(path)].startswith(why)
    assert str(path) not in found[str(path)]


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo"])
def test_times_of_any_kind_are_read_beside_each_other_and_those_without_a_zone_are_utc(
    connection, tmp_path, zone
):
    kinds = [pa.timestamp(unit, tz) for unit in ("s", "ms", "us", "ns") for tz in ("UTC", None)]
    files = [str(tmp_path / f"{number}.parquet") for number in range(len(kinds))]
    for file, kind in zip(files, kinds, strict=True):
        pq.write_table(table(at=table()["at"].cast(kind)), file)
    connection.execute(f"SET TimeZone = '{zone}'")
    assert stored(connection, files, "given") == {}
    assert connection.execute("SELECT DISTINCT moment FROM given ORDER BY 1").fetchall() == [
        (NOON,), (NOON + 60_000_000,),
    ]  # fmt: skip


def test_columns_may_be_others_in_each_file(connection, tmp_path):
    """Also where the same name is of types that are none together."""
    some = [
        table(),
        table(group=[7, 7]),
        table(more=[[1], [2]]),
        table(more=["x", "y"]).drop_columns(["topic"]),
    ]
    files = [str(tmp_path / f"{number}.parquet") for number in range(len(some))]
    for file, one in zip(files, some, strict=True):
        pq.write_table(one, file)
    assert stored(connection, files, "given") == {}
    connection.execute(f"SELECT {EVERYTHING} FROM given").fetchall()
    counted = connection.execute(
        'SELECT "group", topic, count(*) FROM given GROUP BY ALL ORDER BY ALL'
    ).fetchall()
    assert counted == [("7", "t", 2), ("g", None, 2), ("g", "t", 4)]


def test_what_lies_beside_it_is_judged_and_nothing_is_called_in_order(tmp_path):
    logs = tmp_path / "logs"
    logs.mkdir()
    whole(logs / "sound.parquet")
    pq.write_table(table(kind=["taken"] * 2), logs / "foreign.parquet")
    found = run_audit(AuditPlan(paths=(str(logs),), out=tmp_path / "out"))
    assert (found.failed, found.events, found.verdict) == ("", 2, Verdict.INCONCLUSIVE)
    assert [(one.file, one.why) for one in found.unread] == [
        (str(logs / "foreign.parquet"), "not a table of events, a row of no such event: taken")
    ]
