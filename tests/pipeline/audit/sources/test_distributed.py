"""Spark reads what this process reads: the same rows by the same code, from lines, files and tables."""

from __future__ import annotations

from datetime import UTC
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from rebalance_verifier.pipeline.audit.sources import distributed, local
from rebalance_verifier.pipeline.audit.sources.events import EventRow

pytestmark = pytest.mark.slow

LOGS = str(Path(__file__).parents[1] / "logs" / "*.log*")


def rows(frame):
    """As ``EventRow``, in order."""
    found = []
    for row in frame.collect():
        at = row["at"].replace(tzinfo=UTC)
        micros = int(at.replace(microsecond=0).timestamp()) * 1_000_000 + at.microsecond
        found.append(EventRow(*{**row.asDict(), "at": micros}.values()))
    return sorted(found, key=str)


@pytest.mark.parametrize("small", [distributed.SMALL, 4000])
def test_the_same_events_counts_and_clients(spark, tmp_path, monkeypatch, small):
    """Read in this process; by tasks, the larger of the plain files cut by Spark."""
    monkeypatch.setattr(distributed, "SMALL", small)
    here = local.read([LOGS], date="2026-11-21")
    there = distributed.read(spark, [LOGS], date="2026-11-21", staging=str(tmp_path / "staged"))
    assert rows(there.events) == sorted(here.events, key=str)
    assert not here.malformed
    assert not there.malformed.collect()
    counted = {(r["file"], r["source"]): (r["lines"], r["recognised"]) for r in there.lines.collect()}
    assert counted == {(one.file, one.source): (one.lines, one.recognised) for one in here.lines}
    assert [one for one in there.clients if one.release] == [one for one in here.clients if one.release]
    assert there.notes == tuple(here.notes) == ()
    assert there.until
    assert there.until.timestamp() == pytest.approx((here.until or 0) / 1e6)


def test_tables_beside_logs_and_what_is_no_table(spark, tmp_path):
    log = tmp_path / "logs" / "a.log"
    log.parent.mkdir()
    log.write_text('{"at": 1, "event": "joined", "group": "g", "consumer": "c", "generation": 7}\noops\n')
    logs = distributed.read(spark, [str(log)], "events")
    logs.events.write.parquet(str(log.parent / "table"))
    spark.createDataFrame([(1,)], "x int").write.parquet(str(log.parent / "other"))
    (log.parent / "broken.parquet").write_bytes(b"PAR1 and no more")
    again = distributed.read(spark, [str(log.parent)], "events")
    first, second = again.events.collect()
    assert first == second
    assert sorted((one.file.split("/")[-1][:6], one.why[:30]) for one in again.unread) == [
        ("broken", "no Parquet that can be read: P"),
        *[("part-0", "not a table of events, without")] * (len(again.unread) - 1),
    ]
    assert len(again.unread) > 1
