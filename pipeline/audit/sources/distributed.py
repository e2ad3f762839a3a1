"""The same reading on Spark: lines go through ``parsing`` in its tasks, whole clients through ``settling``.

Files on this machine that are not large are read in this process (``local``), by the same code.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import reduce
from itertools import groupby, islice
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from rebalance_verifier.base.names import unknown
from rebalance_verifier.pipeline.audit.sources import lines as text
from rebalance_verifier.pipeline.audit.sources import local
from rebalance_verifier.pipeline.audit.sources.events import COLUMNS
from rebalance_verifier.pipeline.audit.sources.loggers import RELEASE
from rebalance_verifier.pipeline.audit.sources.parsing import KINDS, LineParser
from rebalance_verifier.pipeline.audit.sources.reading import (
    DAMAGED,
    TABLE,
    Content,
    NoInput,
    Unread,
    decoded,
    lines_only,
)
from rebalance_verifier.pipeline.audit.sources.rows import LineRow, MalformedLine
from rebalance_verifier.pipeline.audit.sources.schema import EVENTS
from rebalance_verifier.pipeline.audit.sources.settling import LoggedClient, Note, settle
from rebalance_verifier.pipeline.session import cores, together

_T = TypeVar("_T")

SMALL = 32 << 20
"""Bytes of files on this machine that are read in this process; of packed files, ``PACKED`` times as many."""
PACKED = 10

_ROW = {"at": "bigint", "generation": "int", "partition": "int", "line": "bigint", "members": "int"}
ROWS = ", ".join(f"`{name}` {_ROW.get(name, 'string')}" for name in LineRow._fields)
"""Rows as Spark sees them; ``at`` in microseconds since 1970."""

_MALFORMED = "file string, line bigint, text string, why string, `group` string, at bigint"
_LINES = "file string, source string, lines bigint, recognised bigint"
_READ = f"what string, {ROWS}, text string, why string, lines bigint, recognised bigint"
"""What tasks return: rows of several tables in one, ``what`` says of which."""


class Read(NamedTuple):
    """Content of logs."""

    events: DataFrame
    """``EVENTS``: see ``local.Logs.events``."""
    malformed: DataFrame
    """file string, line bigint, text string (its beginning), why string."""
    lines: DataFrame
    """file string, source string (null: of nobody we know), lines bigint, recognised bigint (those that are
    events). One row for each file and source in it."""
    unread: tuple[Unread, ...] = ()
    notes: tuple[Note, ...] = ()
    clients: tuple[LoggedClient, ...] = ()
    until: datetime | None = None
    """The last time in these logs: of whatever line."""
    ends: Mapping[str, int] = MappingProxyType({})
    """The same of each file, in microseconds since 1970."""


def read(
    spark: SparkSession,
    paths: Sequence[str],
    kind: str | None = None,
    *,
    zone: str = "UTC",
    date: str | None = None,
    staging: str | None = None,
) -> Read:
    """The events of files, directories and globs, or of URLs that Spark reads: text, compressed or not, or
    Parquet with ``EVENTS``.

    ``kind``, ``zone`` and ``date`` are as in ``local.read``. ``staging`` is a directory for the parsed lines,
    so that text is parsed once; without it Spark caches them. Raises NoInput and ValueError as there.
    """
    if kind is not None and kind not in KINDS:
        raise ValueError(unknown("kind of log", kind, KINDS))
    ours = [path for path in paths if "://" not in path]
    logs, tables, unread = local.listed(ours) if ours or not paths else ([], [], [])
    parts = [_stored(spark, tables, unread)] if tables else []
    for url in (path for path in paths if "://" in path):
        names = text.files(spark, url)
        stored = [name for name in names if name.endswith(TABLE)]
        if 0 < len(stored) < len(names):
            raise NoInput(f"{url}: Parquet and other files in one directory; name them apart, by globs")
        parts.append(
            _stored(spark, stored, unread) if stored else _large(spark, [url], kind, zone, date, staging)
        )
    if logs and sum(map(_size, logs)) <= SMALL:
        parts.append(_small(spark, logs, kind, zone, date, unread))
    elif logs:
        parts.append(_large(spark, logs, kind, zone, date, staging))
    if not parts:
        parts.append(_small(spark, [], kind, zone, date, unread))
    return Read(
        *(reduce(DataFrame.unionByName, (part[n] for part in parts)) for n in range(3)),  # type: ignore[arg-type,misc]
        unread=tuple(unread) + tuple(one for part in parts for one in part.unread),
        notes=tuple(note for part in parts for note in part.notes),
        clients=tuple(client for part in parts for client in part.clients),
        until=max((part.until for part in parts if part.until), default=None),
        ends={file: end for part in parts for file, end in part.ends.items()},
    )


def _size(file: str) -> int:
    try:
        return os.path.getsize(file) * (PACKED if file.endswith((".gz", ".bz2", ".xz")) else 1)
    except OSError:
        return 0


def _small(
    spark: SparkSession,
    logs: Sequence[str],
    kind: str | None,
    zone: str,
    date: str | None,
    unread: list[Unread],
) -> Read:
    parser = local.parsed(logs, kind, zone=zone, date=date, unread=unread)
    settled = settle(parser.rows)
    counts = [(file, source, *counted) for (file, source), counted in parser.counts.items()]
    return Read(
        events_frame(spark, settled.events),
        spark.createDataFrame(parser.malformed, _MALFORMED),
        spark.createDataFrame(counts, _LINES),
        notes=tuple(settled.notes),
        clients=tuple(settled.clients),
        until=_moment(parser.until),
        ends=parser.ends,
    )


def events_frame(spark: SparkSession, events: Iterable[tuple[Any, ...]]) -> DataFrame:
    """``events.EventRow`` as ``EVENTS``."""
    listed = list(events)
    columns = zip(*listed, strict=True) if listed else ([] for _ in COLUMNS)
    table = pa.table(
        {c.name: pa.array(list(v), _ARROW[c.type]) for c, v in zip(COLUMNS, columns, strict=True)}
    )
    frame = spark.createDataFrame(table)
    return together(frame.select(*(F.col(f.name).cast(f.dataType) for f in EVENTS)), len(listed))


_ARROW = {"time": pa.timestamp("us", tz="UTC"), "text": pa.string(), "int": pa.int32(), "long": pa.int64()}


def _large(
    spark: SparkSession,
    paths: Sequence[str],
    kind: str | None,
    zone: str,
    date: str | None,
    staging: str | None,
) -> Read:
    """Large plain files, and all files of URLs, are cut by Spark; any other is read by one task."""
    cut = [path for path in paths if "://" in path or _is_cut(path)]
    whole = [path for path in paths if path not in cut]
    parts, parent, count = [], local.common(whole[0], whole[-1]) if whole else "", None
    if cut:
        found = text.read(spark, [path if "://" in path else text.literal(path) for path in cut])
        totals = found.counts.agg(F.min("file"), F.max("file"), F.coalesce(F.sum("lines"), F.lit(0)))
        ((least, most, count),) = totals.collect()
        parent = local.common(min([least, *whole[:1]]), max([most, *whole[-1:]])) if count else parent
        parts.append(_rows_of_lines(found.lines, kind, zone, date, parent))
    if whole:
        parts.append(_rows_of_files(spark, whole, kind, zone, date, parent))
        count = None
    return _settled_read(reduce(DataFrame.unionByName, parts), staging, count)


def _is_cut(file: str) -> bool:
    try:
        return os.path.getsize(file) > SMALL and os.access(file, os.R_OK) and lines_only(file)
    except OSError:  # it vanished; whoever reads it says so
        return False


def events_of(
    lines: DataFrame,
    kind: str | None = None,
    *,
    zone: str = "UTC",
    date: str | None = None,
    parent: str = "",
    staging: str | None = None,
    settle_them: bool = True,
) -> Read:
    """The events of lines: file string, line bigint, value string. Arguments as for ``read``.

    ``parent`` is the beginning of file names that says nothing. ``settle_them=False`` leaves what needs the
    lines before to ``settled``, for a part of a log: ``events`` is of ``ROWS`` then.
    """
    rows = _rows_of_lines(lines, kind, zone, date, parent)
    if settle_them:
        return _settled_read(rows, staging, None)
    return _tables(_stage(rows, staging))


def _stage(rows: DataFrame, staging: str | None) -> DataFrame:
    if staging is not None:
        rows.write.mode("overwrite").parquet(staging)
        return rows.sparkSession.read.schema(_READ).parquet(staging)
    return rows if rows.isStreaming else rows.persist()


def _tables(rows: DataFrame) -> Read:
    """Of what tasks return: ``events`` of ``ROWS``."""
    return Read(
        rows.where("what = 'row'").select(*LineRow._fields),
        rows.where("what = 'malformed'").select(*MalformedLine._fields),
        rows.where("what = 'lines'")
        .groupBy("file", "source")
        .agg(F.sum("lines").alias("lines"), F.sum("recognised").alias("recognised")),
    )


def _settled_read(rows: DataFrame, staging: str | None, number: int | None) -> Read:
    rows = _stage(rows, staging)
    if number is not None:
        rows = together(rows, number)
    found = _tables(rows)
    events, notes, clients = settled_with_notes(found.events)
    last = rows.where("what = 'until'").groupBy("file").agg(F.max("at").alias("at")).collect()
    ends = {row["file"]: int(row["at"]) for row in last}
    bad = rows.where("what = 'unread'").groupBy("file", "why").agg(F.sum("lines").alias("lines"))
    unread = tuple(Unread(r["file"], r["why"], r["lines"]) for r in bad.orderBy("file", "why").collect())
    until = _moment(max(ends.values(), default=None))
    return Read(events, found.malformed, found.lines, unread, notes, clients, until, ends)


def _moment(micros: int | None) -> datetime | None:
    return None if micros is None else datetime.fromtimestamp(micros / 1e6, UTC)


def _rows_of_lines(lines: DataFrame, kind: str | None, zone: str, date: str | None, parent: str) -> DataFrame:
    def parse(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            parser = LineParser(kind, zone=zone, date=date, parent=parent)
            damaged: dict[str, int] = {}
            numbered = zip(*(column.to_pylist() for column in batch.columns), strict=True)
            for file, of_file in groupby(numbered, key=lambda each: str(each[0])):
                plain = []
                for _, number, value in of_file:
                    line, broken = decoded(value)
                    damaged[file] = damaged.get(file, 0) + broken
                    plain.append((number, line))
                parser.content(file, plain)
            yield from _returned(parser, [Unread(file, DAMAGED, n) for file, n in damaged.items() if n])

    return lines.select("file", "line", F.col("value").cast("binary").alias("value")).mapInArrow(parse, _READ)


def _rows_of_files(
    spark: SparkSession, files: Sequence[str], kind: str | None, zone: str, date: str | None, parent: str
) -> DataFrame:
    def parse(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for file in (name for batch in batches for name in batch.column(0).to_pylist()):
            content = Content(file)
            for chunk in batched(content, CHUNK):
                parser = LineParser(kind, zone=zone, date=date, parent=parent)
                parser.content(file, chunk)
                yield from _returned(parser, ())
            yield from _returned(LineParser(), content.unread)

    tasks = min(len(files), 4 * _cores(spark))
    frame = spark.createDataFrame([(file,) for file in files], "file string").repartition(tasks, "file")
    return frame.mapInArrow(parse, _READ)


CHUNK = 100_000
"""Lines after which a task that reads a file hands over what it found."""


def batched(items: Iterable[_T], size: int) -> Iterator[list[_T]]:
    """Lists of at most so many, in order."""
    remaining = iter(items)
    while chunk := list(islice(remaining, size)):
        yield chunk


def _cores(spark: SparkSession) -> int:
    return cores(spark.conf.get("spark.master", "") or "local[2]")


_TEXT_ARROW = {"bigint": pa.int64(), "int": pa.int32(), "string": pa.string()}
_SCHEMA = pa.schema(
    [
        (name.strip("`"), _TEXT_ARROW[kind])
        for name, kind in (column.strip().split(" ") for column in _READ.split(","))
    ]
)


def _returned(parser: LineParser, unread: Sequence[Unread]) -> Iterator[pa.RecordBatch]:
    tables: tuple[tuple[str, tuple[str, ...], Sequence[tuple[Any, ...]]], ...] = (
        ("row", LineRow._fields, parser.rows),
        ("malformed", MalformedLine._fields, parser.malformed),
        ("lines", _COUNTED, [(*of, *counted) for of, counted in parser.counts.items()]),
        ("until", ("file", "at"), list(parser.ends.items())),
        ("unread", Unread._fields, unread),
    )
    for what, names, rows in tables:
        if rows:
            columns = {"what": [what] * len(rows), **dict(zip(names, zip(*rows, strict=True), strict=True))}
            arrays = [
                pa.array(columns[field.name], field.type)
                if field.name in columns
                else pa.nulls(len(rows), field.type)
                for field in _SCHEMA
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA)


_COUNTED = ("file", "source", "lines", "recognised")


def settled(rows: DataFrame) -> DataFrame:
    """``EVENTS`` of all ``ROWS`` of a log."""
    return settled_with_notes(rows)[0]


def settled_with_notes(rows: DataFrame) -> tuple[DataFrame, tuple[Note, ...], tuple[LoggedClient, ...]]:
    """The events, and what is to be said of the logs. A task settles some whole clients."""
    spark = rows.sparkSession
    running = [LineRow(*row) for row in rows.where(F.col("kind") == RELEASE).distinct().collect()]
    own = rows.where(F.col("kind") != RELEASE).repartition(4 * _cores(spark), F.coalesce("client", F.lit("")))
    columns = ", ".join(f"`{c.name}` {_SQL[c.type]}" for c in COLUMNS)

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found = settle((LineRow(*each) for batch in batches for each in _tuples(batch)), running)
        schema = pa.schema([("what", pa.string()), *((c.name, _MICROS[c.type]) for c in COLUMNS)])
        chunks: list[tuple[Any, ...]] = [("event", *event) for event in found.events]
        empty = (None,) * len(COLUMNS)
        chunks += (
            ("note", None, one.kind, one.group, one.consumer, one.text, *empty[5:]) for one in found.notes
        )
        chunks += (
            (
                *("client", None, None, one.group, one.consumer, one.release, one.assignor, *empty[6:9]),
                *(one.cluster, None, one.source, None, None, None, None),
            )
            for one in found.clients
        )
        for start in range(0, len(chunks), 50_000):
            arrays = zip(*chunks[start : start + 50_000], strict=True)
            yield pa.RecordBatch.from_arrays(
                [pa.array(list(values), field.type) for values, field in zip(arrays, schema, strict=True)],
                schema=schema,
            )

    done = own.mapInArrow(task, f"what string, {columns}").persist()
    aside = done.where("what != 'event'").collect()
    notes = tuple(
        Note(r["kind"], r["group"], r["consumer"], r["member"]) for r in aside if r["what"] == "note"
    )
    clients = {
        LoggedClient(r["group"], r["consumer"], r["source"], r["member"], r["instance"], r["detail"])
        for r in aside
        if r["what"] == "client"
    }
    events = done.where("what = 'event'").select(
        F.timestamp_micros("at").alias("at"), *(c.name for c in COLUMNS[1:])
    )
    return events, tuple(sorted(set(notes))), tuple(sorted(clients, key=str))


_SQL = {"time": "bigint", "text": "string", "int": "int", "long": "bigint"}
_MICROS = {"time": pa.int64(), "text": pa.string(), "int": pa.int32(), "long": pa.int64()}


def _tuples(batch: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    return zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _stored(spark: SparkSession, files: Sequence[str], unread: list[Unread]) -> Read:
    """Parquet files with ``EVENTS``; those that cannot be read are passed over."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for file in files:
        names = _columns(spark, file, unread)
        missing = [c.name for c in COLUMNS if c.required and c.name not in names]
        if names and missing:
            unread.append(Unread(file, f"not a table of events, without {', '.join(missing)}"))
        elif names:
            alike.setdefault(names, []).append(file)
    parts = [spark.createDataFrame([], EVENTS)]
    for names, several in alike.items():
        frame = spark.read.parquet(*map(text.literal, several))
        parts.append(
            frame.select(
                *(
                    (F.col(f.name) if f.name in names else F.lit(None)).cast(f.dataType).alias(f.name)
                    for f in EVENTS
                )
            )
        )
    events = reduce(DataFrame.unionByName, parts[1:] or parts)
    nobody = spark.createDataFrame([], _MALFORMED)
    # A row of a table is a line of its log.
    lines = events.groupBy("file", "source").agg(F.count("*").alias("lines"))
    return Read(events, nobody, lines.select("*", F.col("lines").alias("recognised")))


def _columns(spark: SparkSession, file: str, unread: list[Unread]) -> tuple[str, ...]:
    """The columns of a Parquet file; none where it cannot be read, which is added to ``unread``."""
    try:
        if "://" in file:
            return tuple(spark.read.parquet(text.literal(file)).columns)
        with pq.ParquetFile(file) as content:
            if os.path.getsize(file) <= SMALL:
                for group in range(content.num_row_groups):
                    content.read_row_group(group)
            return tuple(content.schema_arrow.names)
    except Exception as error:
        unread.append(Unread(file, f"no Parquet that can be read: {str(error).splitlines()[0][:200]}"))
        return ()


__all__ = ["KINDS", "NoInput", "Read", "events_of", "read", "settled"]
