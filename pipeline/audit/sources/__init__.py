"""Logs, of whoever wrote them, as rows of ``events.EVENTS``: in SQL expressions, no Python per row.

    read(spark, ["/var/log/app", "s3a://logs/kafka/*.gz"]).events

Sources may be mixed, in one file too: each line is recognised by itself. A line that belongs to a source and
cannot be understood is kept aside in ``malformed``; lines of other loggers are counted and left alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession, Window, WindowSpec
from pyspark.sql import functions as F
from rebalance.model.names import unknown
from rebalance.pipeline.audit.sources import jsonl, logged, patterns
from rebalance.pipeline.audit.sources import lines as text
from rebalance.pipeline.audit.sources.events import EVENTS, Kind
from rebalance.pipeline.audit.sources.lines import NoInput
from rebalance.pipeline.audit.sources.loggers import LOGGED, LOSING, OVERDUE, REBOOTSTRAPPING
from rebalance.pipeline.session import together

__all__ = ["KINDS", "SHOWN", "NoInput", "Read", "events_of", "read", "settled", "stream_of"]

KINDS = (jsonl.NAME, *(source.name for source in LOGGED))
"""What ``kind`` may be."""

SHOWN = 1000
"""Characters of a malformed line that are kept."""

ROTATED = (
    r"[-_.]\d{4}-\d{2}-\d{2}(?:[-_T.]\d{1,2})*(?=\.)"  # app-2024-01-02.0.log
    r"|(?:\.(?:gz|bz2|zst|lz4|snappy|deflate|\d{1,4}|\d{4}-\d{2}-\d{2}(?:[-_T]\d{2}){0,3}|\d{8}))+$"
)
"""What rotation adds to the name of a log: a date, a number, a codec."""


class Read(NamedTuple):
    """What logs say. All three come from the parsed lines, which are cached or staged."""

    events: DataFrame
    """``EVENTS``. A consumer of a text log is ``client.id@stream``, its host the stream: the file's name
    below the directory that all have in common, without what rotation adds. Generation and member are those
    it was told last, where a line does not say them. Without a host in our own log: null."""
    malformed: DataFrame
    """file string, line bigint, text string (its beginning), why string."""
    lines: DataFrame
    """file string, source string (null: of nobody we know), lines bigint, recognised bigint (those that are
    events). One row for each file and source in it."""


def read(
    spark: SparkSession,
    paths: Sequence[str],
    kind: str | None = None,
    *,
    zone: str = "UTC",
    date: str | None = None,
    staging: str | None = None,
) -> Read:
    """The events of files, directories and globs: text, compressed or not, or Parquet with ``EVENTS``.

    ``kind`` is one of ``KINDS``: lines of other sources are then left alone, and of ``events`` every line
    must be one. ``zone`` is that of times which do not say theirs, ``date`` (``2024-01-02``) the day of those
    that have none. ``staging`` is a directory for the parsed lines, so that text is parsed once; without it
    Spark caches them. Raises NoInput for a path that does not exist or matches nothing, and ValueError.
    """
    if kind is not None and kind not in KINDS:
        raise ValueError(unknown("kind of log", kind, KINDS))
    if not paths:
        raise NoInput("no paths given")
    tables = [path for path in paths if _is_table(spark, path)]
    logs = [path for path in paths if path not in tables]
    parts = [_stored(spark, path) for path in tables]
    if logs:
        found = text.read(spark, logs)
        totals = found.counts.agg(F.min("file"), F.max("file"), F.coalesce(F.sum("lines"), F.lit(0)))
        ((least, most, count),) = totals.collect()
        parts.append(
            events_of(
                found.lines,
                kind,
                zone=zone,
                date=date,
                parent=_common(least, most) if count else "",
                staging=staging,
                counts=found.counts,
                number=count,
            )
        )
    return Read(*(reduce(DataFrame.unionByName, frames) for frames in zip(*parts, strict=True)))


def events_of(
    lines: DataFrame,
    kind: str | None = None,
    *,
    zone: str = "UTC",
    date: str | None = None,
    parent: str = "",
    staging: str | None = None,
    counts: DataFrame | None = None,
    number: int | None = None,
    settle: bool = True,
) -> Read:
    """The events of lines: file string, line bigint, value string. Arguments as for ``read``.

    ``parent`` is the beginning of file names that says nothing. ``counts`` (file, lines) says how many lines
    there are, ``number`` how many in all. ``settle=False`` leaves what needs the lines before to ``settled``:
    for a part of a log.
    """
    rows = _rows(lines, kind, zone, date, parent)
    if staging is not None:
        rows.write.mode("overwrite").parquet(staging)
        rows = lines.sparkSession.read.schema(rows.schema).parquet(staging)
    elif not lines.isStreaming:
        rows = rows.persist()
    if number is not None:
        rows = together(rows, number)
    events = _exploded(rows.where("kind is not null and why is null"))
    malformed = rows.where("why is not null").select("file", "line", "text", "why")
    return Read(settled(events) if settle else events, malformed, _counted(rows, counts))


def settled(events: DataFrame) -> DataFrame:
    """What takes the lines before: group, generation and member where a line does not say them; what is lost
    and not revoked; and no start where a client that rebootstraps learns the id of its cluster anew."""
    kind = F.col("kind")
    order = ("at", "file", "line")
    of_client = Window.partitionBy("consumer", "host")
    of_consumer = Window.partitionBy("consumer", "host", "group").orderBy(*order)

    def latest(what: Column, window: WindowSpec = of_consumer) -> Column:
        return F.last(what, ignorenulls=True).over(
            window.rowsBetween(Window.unboundedPreceding, Window.currentRow)
        )

    joins_generation = kind.isin(Kind.JOINED, Kind.SYNCED)
    new = kind == Kind.STARTED
    needs = (F.col("source") != jsonl.NAME) & F.col("consumer").isNotNull()
    group = F.coalesce(
        "group", latest(F.col("group"), of_client.orderBy(*order)), F.max("group").over(of_client)
    )
    generation = latest(F.when(joins_generation, F.col("generation")).when(new, -1))
    member = latest(F.when(joins_generation, F.col("member")).when(new, ""))
    phase = latest(F.when(kind.isin(Kind.JOINED, LOSING, OVERDUE, REBOOTSTRAPPING), kind))
    filled = (
        events.where(needs)
        .withColumn("group", group)
        .where("group is not null")
        .select(
            *(name for name in EVENTS.names if name not in ("generation", "member")),
            F.coalesce("generation", F.when(generation >= 0, generation)).alias("generation"),
            F.coalesce("member", F.when((member != "") & (kind != Kind.PLANNED), member)).alias("member"),
            phase.alias("phase"),
        )
        .where(~new | F.col("phase").isNull() | (F.col("phase") != REBOOTSTRAPPING))
        .withColumn(
            "kind",
            F.when((kind == Kind.REVOKED) & (F.col("phase") == LOSING), Kind.LOST)
            .when((kind == Kind.CLOSED) & (F.col("phase") == OVERDUE), Kind.LEAVING)
            .otherwise(kind),
        )
    )
    return _final(filled.unionByName(events.where(~needs), allowMissingColumns=True))


def stream_of(file: Column, parent: str = "") -> Column:
    """Which log a file is a piece of: its name without the parent directory and what rotation adds."""
    below = F.when(
        file.startswith(parent), F.substring(file, F.lit(len(parent) + 1), F.length(file))
    ).otherwise(file)
    return F.regexp_replace(below, ROTATED, "")


def _rows(lines: DataFrame, kind: str | None, zone: str, date: str | None, parent: str) -> DataFrame:
    """A row for each line that a source claims: ``EVENTS`` with ``parts`` in place of topic and partition."""
    value = F.col("value")
    claimed = lines.select("file", "line", "value", _source(value, kind).alias("source")).where(
        "source is not null"
    )
    ours = F.col("source") == jsonl.NAME
    own = claimed.select("*", F.when(ours, jsonl.parsed(value)).alias("own")).select(
        "*", jsonl.at(F.col("own"), zone).alias("own_at")
    )
    both = logged.with_records(own, LOGGED, zone, date, stream_of(F.col("file"), parent))
    one = both.select(
        *("file", "line", "value", "source"),
        F.when(ours, jsonl.read(value, F.col("own"), F.col("own_at")))
        .otherwise(F.col("logged"))
        .alias("record"),
    )
    return (
        one.select("file", "line", "source", "record.*", value)
        .select(
            "*",
            F.when(F.col("why").isNotNull(), F.make_valid_utf8(F.substring("value", 1, SHOWN))).alias("text"),
        )
        .drop("value")
    )


def _source(value: Column, kind: str | None) -> Column:
    if kind == jsonl.NAME:
        return F.when(F.trim(value) != "", F.lit(kind))
    choice = F.when(F.lit(False), F.lit(None).cast("string"))
    if kind is None:
        choice = choice.when(jsonl.claimed(value), jsonl.NAME)
    for source in LOGGED:
        if kind in (None, source.name):
            choice = choice.when(patterns.claimed(value, source), source.name)
    return choice


def _exploded(rows: DataFrame) -> DataFrame:
    """``EVENTS``, a row for each partition, still with what only ``settled`` knows."""
    parts = rows.select("*", F.explode_outer("parts").alias("part"))
    return parts.select(
        *(name for name in EVENTS.names if name not in ("member", "topic", "partition")),
        F.coalesce("part.member", "member").alias("member"),
        "part.topic",
        "part.partition",
    )


def _final(events: DataFrame) -> DataFrame:
    kind = F.when(F.col("kind").isin(LOSING, OVERDUE), Kind.RESET).otherwise(F.col("kind"))
    return events.where((kind != REBOOTSTRAPPING) & F.col("group").isNotNull()).select(
        *(kind.alias(name) if name == "kind" else name for name in EVENTS.names)
    )


def _counted(rows: DataFrame, counts: DataFrame | None) -> DataFrame:
    recognised = F.count_if(F.col("kind").isNotNull() & F.col("why").isNull())
    known = rows.groupBy("file", "source").agg(F.count("*").alias("lines"), recognised.alias("recognised"))
    if counts is None:
        return known
    ours = known.groupBy("file").agg(F.sum("lines").alias("known"))
    rest = counts.join(ours, "file", "left").select(
        "file",
        F.lit(None).cast("string").alias("source"),
        (F.col("lines") - F.coalesce("known", F.lit(0))).alias("lines"),
        F.lit(0).cast("bigint").alias("recognised"),
    )
    return known.unionByName(rest.where("lines > 0"))


def _is_table(spark: SparkSession, path: str) -> bool:
    names = text.files(spark, path)
    tables = sum(name.endswith(".parquet") for name in names)
    if 0 < tables < len(names):
        raise NoInput(f"{path}: Parquet and other files in one directory; name them apart, by globs")
    return tables > 0


def _stored(spark: SparkSession, path: str) -> Read:
    frame = spark.read.option("recursiveFileLookup", "true").parquet(path)
    missing = [f.name for f in EVENTS if not f.nullable and f.name not in frame.columns]
    if missing:
        raise NoInput(f"{path}: not a table of events, without {', '.join(missing)}")
    events = frame.select(
        *(
            (F.col(f.name) if f.name in frame.columns else F.lit(None)).cast(f.dataType).alias(f.name)
            for f in EVENTS
        )
    )
    nobody = spark.createDataFrame([], "file string, line bigint, text string, why string")
    lines = events.groupBy("file", "source").agg(F.countDistinct("line").alias("lines"))
    return Read(events, nobody, lines.select("*", F.col("lines").alias("recognised")))


def _common(least: str, most: str) -> str:
    """The directory that all names between two have in common, with its slash.

    >>> _common("/logs/a/app.log", "/logs/b/app.log"), _common("/logs/a.log", "/logs/a.log")
    ('/logs/', '/logs/')
    """
    same = next((i for i, (a, b) in enumerate(zip(least, most, strict=False)) if a != b), len(least))
    return least[: least[:same].rfind("/") + 1]
