"""The audit of logs while they are written: the same checks, again with each micro-batch of a stream.

What Spark keeps from one micro-batch to the next lies below the output directory: its checkpoint says how
far each file was read, ``state`` holds the events that may still matter, a directory for each micro-batch.
A micro-batch that is run again after a crash overwrites what it wrote, so no event and no finding is there
twice.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from rebalance.pipeline.audit.audit import audit
from rebalance.pipeline.audit.frames import FINDINGS
from rebalance.pipeline.audit.kernel.findings import Thresholds
from rebalance.pipeline.audit.sources.distributed import events_of, settled
from rebalance.pipeline.audit.tail import Tail

HORIZON = 3600.0
"""Seconds of event time that are kept as they are; of what is older, only what may still matter."""

COMPACT = 20
"""Micro-batches after which older events are gone through."""

LATEST = ("group", "client", "origin", "stream", "instance", "topic", "partition", "kind")
"""Of events that are alike in this, only the last matters once they are old."""


@dataclass(frozen=True, kw_only=True)
class Watch:
    """What to follow and how. ``tell`` gets the new ``frames.FINDINGS`` of a micro-batch, if there are any.

    ``every``: seconds between micro-batches. ``now``: the log is of this moment, so that what does not happen
    (a partition that nobody takes) is found when nothing is written either.
    """

    path: str
    out: Path
    thresholds: Thresholds
    report: Callable[[DataFrame], None]
    kind: str | None = None
    zone: str = "UTC"
    every: float = 10.0
    now: bool = True
    horizon: float = HORIZON
    compact: int = COMPACT

    @property
    def state(self) -> Path:
        """What Spark keeps between micro-batches."""
        return self.out / "state"


def follow(spark: SparkSession, watch: Watch, *, once: bool = False) -> StreamingQuery:
    """Begin to follow, or go on where a former query with the same ``out`` had come to.

    ``once``: read what is there and stop. The query runs until it is stopped; ``awaitTermination`` raises
    what went wrong in it.
    """
    spark.dataSource.register(Tail)
    reader = spark.readStream.format(Tail.name()).option("path", watch.path)
    if watch.now and not once:
        reader = reader.option("tick", str(watch.every))
    writer = reader.load().writeStream.foreachBatch(lambda lines, number: _batch(lines, number, watch))
    writer = writer.option("checkpointLocation", str(watch.state / "checkpoint"))
    return (
        writer.trigger(availableNow=True) if once else writer.trigger(processingTime=f"{watch.every} seconds")
    ).start()


def _batch(lines: DataFrame, number: int, watch: Watch) -> None:
    """One micro-batch: its events are kept, then everything that is kept is audited."""
    spark = lines.sparkSession
    read = events_of(
        lines,
        watch.kind,
        zone=watch.zone,
        parent=watch.path.rstrip("/") + "/",
        staging=str(watch.state / "parsed"),
        settle_them=False,
    )
    read.malformed.write.mode("overwrite").parquet(str(watch.out / "malformed" / f"batch={number:09}"))
    read.events.write.mode("overwrite").parquet(str(watch.state / "events" / f"batch={number:09}"))
    kept, cut = _kept(spark, watch.state, number)
    if kept.isEmpty():
        return
    found = audit(settled(kept), watch.thresholds, until=datetime.now(UTC) if watch.now else None)
    try:
        _write(found.findings, spark, watch, number, cut)
    finally:
        found.release()
    if number and number % watch.compact == 0:
        _compact(kept, number, watch)


def _write(findings: DataFrame, spark: SparkSession, watch: Watch, number: int, cut: datetime | None) -> None:
    """Save what no earlier micro-batch has found, and tell what this one has not told before a crash."""
    earlier = [path for path in _whole(watch.out / "findings") if _number(path) < number]
    if earlier:
        known = spark.read.parquet(*map(str, earlier)).select("id")
        findings = findings.join(known, "id", "left_anti")
    if cut is not None:  # what is older has gaps now
        findings = findings.where(F.col("ended").isNull() | (F.col("ended") >= F.lit(cut)))
    here = watch.out / "findings" / f"batch={number:09}"
    reported: list[str] = []
    if (here / "_SUCCESS").exists():
        reported = [row["id"] for row in spark.read.parquet(str(here)).select("id").collect()]
    findings.select(*FINDINGS.names).coalesce(1).write.mode("overwrite").parquet(str(here))
    new = spark.read.parquet(str(here)).where(~F.col("id").isin(reported)).orderBy("began", "id")
    if not new.isEmpty():
        watch.report(new)


def _kept(spark: SparkSession, state: Path, number: int) -> tuple[DataFrame, datetime | None]:
    """The events that a micro-batch is to know, and since when they are complete."""
    bases = [path for path in _whole(state / "bases") if _number(path) < number]
    first, cut = -1, None
    paths = []
    if bases:
        paths = [bases[-1]]
        first = _number(bases[-1])
        cut = datetime.fromtimestamp(int(bases[-1].name.split("-")[1]), UTC)
    paths += [path for path in _whole(state / "events") if first < _number(path) <= number]
    return spark.read.parquet(*map(str, paths)), cut


def _compact(kept: DataFrame, number: int, watch: Watch) -> None:
    """Keep of old events only what may still matter; remove what a former compaction has replaced."""
    end = kept.agg(F.max("at")).collect()[0][0]
    cut = datetime.fromtimestamp(end / 1e6, UTC) - timedelta(seconds=watch.horizon)
    order = Window.partitionBy(*LATEST).orderBy(F.col("at").desc(), F.col("file"), F.col("line").desc())
    (
        kept.withColumn("_age", F.row_number().over(order))
        .where((F.col("_age") == 1) | (F.timestamp_micros("at") >= F.lit(cut)))
        .drop("_age")
        .write.mode("overwrite")
        .parquet(str(watch.state / "bases" / f"batch={number:09}-{int(cut.timestamp())}"))
    )
    former = [path for path in _whole(watch.state / "bases") if _number(path) < number]
    if former:
        events = _whole(watch.state / "events")
        gone = [*former[:-1], *(path for path in events if _number(path) <= _number(former[-1]))]
        for path in gone:
            shutil.rmtree(path, ignore_errors=True)


def _whole(directory: Path) -> list[Path]:
    """The tables in a directory, by number; without those that a crash left half written."""
    return sorted(path.parent for path in directory.glob("batch=*/_SUCCESS"))


def _number(path: Path) -> int:
    return int(path.name.removeprefix("batch=").split("-")[0])
