"""The tables of an audit, in Parquet, and of these as much as people read, as plain records."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import zip_longest
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from rebalance.pipeline.audit.records import FindingOwner, LogEvent, LogFinding
from rebalance.pipeline.audit.result import AuditPlan, absolute, literal

MOST_EVENTS = 200
"""Events in a trace."""

NEAR_PARTITION, NEAR_GROUP = 3600.0, 120.0
"""Seconds before and after a finding in which events of its partition, and others of its group, matter."""


def kept(spark: SparkSession, plan: AuditPlan, frame: DataFrame, name: str) -> DataFrame:
    """The same rows, from the table that they are written to."""
    frame.write.mode("overwrite").parquet(absolute(plan.table(name)))
    return table(spark, plan, name)


def table(spark: SparkSession, plan: AuditPlan, name: str) -> DataFrame:
    """The table of this name, as a frame."""
    return spark.read.parquet(literal(absolute(plan.table(name))))


def rows(frame: DataFrame) -> Iterator[dict[str, Any]]:
    """The rows of a frame that is known to be small, as JSON values; times are text, in UTC.

    By way of JSON, because Python's times would be those of the time zone of this machine.
    """
    options = {
        "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
        "timeZone": "UTC",
        "ignoreNullFields": "false",
    }
    for row in frame.select(F.to_json(F.struct("*"), options).alias("json")).collect():
        yield json.loads(row["json"])


def make(kind: type[Any], row: Mapping[str, Any]) -> Any:
    """A record of this kind with what a row has of its fields."""
    return kind(**{name: row.get(name) for name in kind.__dataclass_fields__})


def first(findings: DataFrame, order: Sequence[str], most: int) -> DataFrame:
    """The first findings: of each check the first, then of each the second, so that none is crowded out.

    Within a check what is certain comes first, then what lasts longest.
    """
    longest = Window.partitionBy("check").orderBy(F.desc("certain"), F.desc("seconds"), "began", "id")
    gravity = F.array_position(F.array(*map(F.lit, order)), F.col("check"))
    return (
        findings.withColumn("place", F.row_number().over(longest))
        .where(F.col("place") <= most)
        .orderBy("place", gravity)
        .limit(most)
        .drop("place")
    )


def finding(row: Mapping[str, Any]) -> LogFinding:
    """A row of ``frames.FINDINGS`` as a record."""
    who = zip_longest(row["consumers"] or (), row["members"] or (), row["generations"] or ())
    ended = row["ended"]
    return LogFinding(
        id=row["id"],
        check=row["check"],
        level=row["level"],
        group=row["group"],
        topic=row["topic"],
        partition=row["partition"],
        began=datetime.fromisoformat(row["began"]),
        ended=None if ended is None else datetime.fromisoformat(ended),
        seconds=row["seconds"],
        owners=tuple(FindingOwner(*one) for one in who),
        skew=row["skew"],
        certain=row["certain"],
        places=tuple(map(_seen, row["places"])),
        sentence=row["detail"],
    )


def _seen(row: Mapping[str, Any]) -> LogEvent:
    values = {name: row.get(name) for name in LogEvent.__dataclass_fields__}
    return LogEvent(**{**values, "at": datetime.fromisoformat(row["at"]), "file": file_name(row["file"])})  # type: ignore[arg-type]


def file_name(file: str) -> str:
    """A file as people name it: a local one as a path, below the working directory a relative one.

    >>> file_name("file:///no/such/a%20log"), file_name("s3a://bucket/a%20log")
    ('/no/such/a log', 's3a://bucket/a%20log')
    """
    uri = re.match(r"file:(?://)?(?=/)", file)
    path = Path(unquote(file[uri.end() :]) if uri else file)
    if not path.is_absolute():
        return file
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def around(
    spark: SparkSession, plan: AuditPlan, findings: Sequence[LogFinding]
) -> dict[str, tuple[LogEvent, ...]]:
    """Id of a finding -> the events around it, at most MOST_EVENTS, in order.

    Of other partitions nothing; events of the consumers concerned and of the coordinator first, then those
    of others in the group, the nearest in time first.
    """
    wanted = spark.createDataFrame(
        [
            (
                one.id,
                one.group,
                one.topic,
                one.partition,
                [owner.consumer for owner in one.owners if owner.consumer],
                _micros(one.began),
                _micros(one.ended or one.began),
            )
            for one in findings
        ],
        "wanted string, of_group string, of_topic string, of_partition int, owners array<string>, "
        "began bigint, ended bigint",
    )
    at = F.unix_micros("at")
    far = F.least(F.abs(at - F.col("began")), F.abs(at - F.col("ended")))
    same_topic = F.col("topic").eqNullSafe(F.col("of_topic"))
    of_partition = F.col("partition").isNotNull() & same_topic & (F.col("partition") == F.col("of_partition"))
    of_group = F.col("partition").isNull() & ((F.col("kind") != "subscribed") | same_topic)
    near = (of_partition & (far <= int(NEAR_PARTITION * 1e6))) | (of_group & (far <= int(NEAR_GROUP * 1e6)))
    concerned = F.col("consumer").isNull() | F.array_contains("owners", F.col("consumer")) | of_partition
    nearest = Window.partitionBy("wanted").orderBy(F.desc("concerned"), "far", "file", "line", "kind")
    events = table(spark, plan, "events")
    chosen = (
        events.join(F.broadcast(wanted), (F.col("group") == F.col("of_group")) & near)
        .withColumns({"concerned": F.coalesce(concerned, F.lit(False)), "far": far})
        .withColumn("place", F.row_number().over(nearest))
        .where(F.col("place") <= MOST_EVENTS)
        .select("wanted", *events.columns)
        .orderBy("wanted", "at", "file", "line", "kind", "topic", "partition")
    )
    found: dict[str, list[LogEvent]] = {}
    for row in rows(chosen):
        found.setdefault(row["wanted"], []).append(_seen(row))
    return {name: tuple(events) for name, events in found.items()}


def _micros(at: datetime) -> int:
    return round(at.timestamp() * 1_000_000)
