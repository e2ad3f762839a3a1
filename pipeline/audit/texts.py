"""Text in Spark's tasks: slices of whole files are parsed where they lie, and whole clients are settled.

Spark carries no line and no row: a task opens its files itself and hands over what they say as slices, each
many rows in one value. Lines of URLs alone are read by Spark. Small files are read in this process.
"""

from __future__ import annotations

import os
import pickle
import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, partial, reduce
from itertools import groupby, islice
from typing import Any, NamedTuple, TypeVar
from zlib import crc32

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from rebalance_verifier.base.names import unknown
from rebalance_verifier.base.removal import remove
from rebalance_verifier.pipeline.audit.slices import Task, as_events, in_buckets, packed, unpacked
from rebalance_verifier.pipeline.audit.sources import lines as text
from rebalance_verifier.pipeline.audit.sources import local
from rebalance_verifier.pipeline.audit.sources.events import COLUMNS, EventRow
from rebalance_verifier.pipeline.audit.sources.loggers import RELEASE
from rebalance_verifier.pipeline.audit.sources.parsing import KINDS, LineParser
from rebalance_verifier.pipeline.audit.sources.reading import (
    DAMAGED,
    Content,
    LineRange,
    Unread,
    decoded,
    line_ranges,
)
from rebalance_verifier.pipeline.audit.sources.rows import LineRow, MalformedLine
from rebalance_verifier.pipeline.audit.sources.schema import EVENTS
from rebalance_verifier.pipeline.audit.sources.settling import LoggedClient, Note, SettledRows, settle
from rebalance_verifier.pipeline.session import cores

_T = TypeVar("_T")

SMALL = 32 << 20
"""Bytes of files on this machine that are read in this process; of packed files, ``PACKED`` times as many."""
PACKED = 10

STRETCH = 64 << 20
"""Bytes of text that a task reads, about: larger plain files are cut. Fewer where tasks would be too few."""

CHUNK = 100_000
"""Lines after which a task hands over what they say."""

ROW_GROUP = 122_880
"""Rows of a group in a table of events, as DuckDB writes them: tables are cut between groups."""

_SLICES = "what string, bucket int, rows binary"
"""What tasks return: as ``row`` some clients' ``LineRow``, as ``aside`` one, as ``events`` a table."""
_SLICE = pa.schema([("what", pa.string()), ("bucket", pa.int32()), ("rows", pa.binary())])


class How(NamedTuple):
    """How lines are read: see ``local.read``. ``parent`` is the beginning of file names that says nothing."""

    kind: str | None = None
    zone: str = "UTC"
    date: str | None = None
    parent: str = ""

    def parser(self) -> LineParser:
        """Return a parser that reads lines so."""
        return LineParser(self.kind, zone=self.zone, date=self.date, parent=self.parent)


class _Aside(NamedTuple):
    """Findings of tasks beside rows and events."""

    counts: Mapping[tuple[str, str | None], Sequence[int]] = {}
    malformed: Sequence[MalformedLine] = ()
    ends: Mapping[str, int] = {}
    unread: Sequence[Unread] = ()
    running: Sequence[LineRow] = ()
    notes: Sequence[Note] = ()
    clients: Sequence[LoggedClient] = ()
    groups: frozenset[str] = frozenset()


class Read(NamedTuple):
    """Content of logs. ``events`` are ``EVENTS``, None where tasks have written them."""

    events: DataFrame | None
    malformed: list[MalformedLine]
    lines: list[tuple[str, str | None, int, int]]
    """As ``local.LineCount``."""
    unread: tuple[Unread, ...]
    notes: tuple[Note, ...]
    clients: tuple[LoggedClient, ...]
    ends: Mapping[str, int]
    """The last time of each file, in microseconds since 1970: of whatever line."""
    groups: frozenset[str]
    """All groups that have events, wanted or not."""


def read(
    spark: SparkSession,
    logs: Sequence[str],
    urls: Sequence[str] = (),
    how: How = How(),  # noqa: B008 - a tuple
    *,
    groups: Sequence[str] = (),
    into: str = "",
) -> Read:
    """Return the events of files on this machine and of URLs that Spark reads; only of ``groups``, or of all.

    ``into`` is a directory that all tasks see, for the events as Parquet; what is there is removed. Raises
    NoInput and ValueError.
    """
    if how.kind is not None and how.kind not in KINDS:
        raise ValueError(unknown("kind of log", how.kind, KINDS))
    if into:
        remove(into)
        os.makedirs(into)
    if not urls and sum(map(_size, logs)) <= SMALL:
        return _here(spark, logs, how, groups, into)
    named, parts = [*logs], []
    if urls:
        found = text.read(spark, urls)
        ((least, most),) = found.counts.agg(F.min("file"), F.max("file")).collect()
        named = sorted({*named, *(name for name in (least, most) if name)})
        parts.append(found.lines.select("file", "line", F.col("value").cast("binary").alias("value")))
    how = how._replace(parent=local.common(named[0], named[-1]) if named else "")
    buckets = max(4 * _cores(spark), sum(map(_size, logs)) // STRETCH)
    sliced = [part.mapInArrow(_reading_lines(how, buckets), _SLICES) for part in parts]
    if logs:
        pieces = pieces_of(logs, 2 * _cores(spark))
        numbers = spark.range(0, len(pieces), 1, len(pieces))
        sliced.append(numbers.mapInArrow(_reading_files(pieces, how, buckets), _SLICES))
    return _settled(reduce(DataFrame.unionByName, sliced), buckets, groups, into)


def _cores(spark: SparkSession) -> int:
    return cores(spark.conf.get("spark.master", "") or "local[2]")


def _size(file: str) -> int:
    try:
        return os.path.getsize(file) * (PACKED if file.endswith((".gz", ".bz2", ".xz")) else 1)
    except OSError:
        return 0


def _here(spark: SparkSession, logs: Sequence[str], how: How, groups: Sequence[str], into: str) -> Read:
    """Read in this process."""
    unread: list[Unread] = []
    with local.unswept():
        parser = local.parsed(logs, how.kind, zone=how.zone, date=how.date, unread=unread)
        settled = settle(parser.rows)
        table = _table(settled, groups)
    if into:
        pq.write_table(table, f"{into}/part-00000.parquet", row_group_size=ROW_GROUP)
    aside = _aside_of(parser, unread)
    # Spark takes the columns' types for the same only where nothing is said of nulls.
    frame = None if into else as_events(spark.createDataFrame(table))
    return _put_together([aside, _aside_of_clients(settled)], frame)


def _settled(sliced: DataFrame, buckets: int, groups: Sequence[str], into: str) -> Read:
    sliced = sliced.persist()
    asides = [pickle.loads(row["rows"]) for row in sliced.where("what = 'aside'").collect()]
    running = [row for aside in asides for row in aside.running]
    rows = in_buckets(sliced.where("what = 'row'").select("bucket", "rows"), buckets)
    done = rows.mapInArrow(_settling(running, groups, into), _SLICES)
    done = done if into else done.persist()
    asides += [pickle.loads(row["rows"]) for row in done.where("what = 'aside'").collect()]
    sliced.unpersist()
    if into and not os.listdir(into):
        pq.write_table(_table(SettledRows([], [], []), ()), f"{into}/part-00000.parquet")
    frame = None
    if not into:
        frame = done.where("what = 'events'").mapInArrow(_unpacking, EVENTS)
    return _put_together(asides, frame)


def _put_together(asides: Sequence[_Aside], frame: DataFrame | None) -> Read:
    counts: dict[tuple[str, str | None], list[int]] = defaultdict(lambda: [0, 0])
    ends: dict[str, int] = {}
    unread: dict[tuple[str, str], int] = defaultdict(int)
    for aside in asides:
        for of, (lines, recognised) in aside.counts.items():
            counts[of][0] += lines
            counts[of][1] += recognised
        for file, end in aside.ends.items():
            ends[file] = max(end, ends.get(file, end))
        for one in aside.unread:
            unread[one.file, one.why] += one.lines
    return Read(
        events=frame,
        malformed=sorted(line for aside in asides for line in aside.malformed),
        lines=sorted(((file, source, *counted) for (file, source), counted in counts.items()), key=str),  # type: ignore[misc]
        unread=tuple(Unread(*where, lines) for where, lines in sorted(unread.items())),
        notes=tuple(sorted({note for aside in asides for note in aside.notes})),
        clients=tuple(sorted({client for aside in asides for client in aside.clients}, key=str)),
        ends=ends,
        groups=frozenset().union(*(aside.groups for aside in asides)),
    )


# -- pieces --------------------------------------------------------------------------------------------


def pieces_of(files: Sequence[str], least: int) -> list[list[LineRange]]:
    """Return files put together or cut between lines, at least so many pieces where that makes sense."""
    size = min(STRETCH, max(STRETCH // 16, sum(map(_size, files)) // least))
    found: list[list[LineRange]] = []
    some: list[LineRange] = []
    weight = 0
    for file in files:
        if _size(file) > 2 * size and (parts := line_ranges(file, size)):
            found += ([part] for part in parts)
            continue
        some.append(LineRange(file))
        weight += _size(file)
        if weight >= size:
            found.append(some)
            some, weight = [], 0
    return [*found, some] if some else found


# -- tasks ---------------------------------------------------------------------------------------------


def _reading_files(pieces: Sequence[Sequence[LineRange]], how: How, buckets: int) -> Task:
    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with local.unswept():
            for stretch in (
                stretch
                for batch in batches
                for number in batch.column(0).to_pylist()
                for stretch in pieces[number]
            ):
                parser, content = how.parser(), Content(stretch.file, stretch)
                for chunk in batched(content, CHUNK):
                    parser.content(stretch.file, chunk, goes_on=True)
                    yield from _handed_over(parser, buckets)
                parser.content(stretch.file, ())
                yield from _handed_over(parser, buckets)
                yield _slice("aside", None, _aside_of(parser, content.unread))

    return task


def _reading_lines(how: How, buckets: int) -> Task:
    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            parser = how.parser()
            damaged: dict[str, int] = defaultdict(int)
            numbered = zip(*(column.to_pylist() for column in batch.columns), strict=True)
            for file, of_file in groupby(numbered, key=lambda each: str(each[0])):
                plain = []
                for _, number, value in of_file:
                    line, broken = decoded(value)
                    damaged[file] += broken
                    plain.append((number, line))
                parser.content(file, plain)
            yield from _handed_over(parser, buckets)
            yield _slice(
                "aside", None, _aside_of(parser, [Unread(f, DAMAGED, n) for f, n in damaged.items() if n])
            )

    return task


def batched(items: Iterable[_T], size: int) -> Iterator[list[_T]]:
    """Yield lists of at most so many, in order."""
    remaining = iter(items)
    while chunk := list(islice(remaining, size)):
        yield chunk


def _handed_over(parser: LineParser, buckets: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the parser but those of releases, and forget them. A client has one bucket."""

    @cache
    def bucket_of(name: str) -> int:
        return crc32(name.encode("utf-8", "surrogatepass")) % buckets

    several: dict[int, list[tuple[Any, ...]]] = defaultdict(list)
    kept = [row for row in parser.rows if row.kind == RELEASE]
    for row in parser.rows:
        if row.kind != RELEASE:
            # Rows without a client are each by itself.
            several[bucket_of(row.client if row.client is not None else row.file)].append(tuple(row))
    parser.rows = kept
    for bucket, rows in several.items():
        yield _slice("row", bucket, rows)


def _slice(what: str, bucket: int | None, value: Any) -> pa.RecordBatch:
    data = value if isinstance(value, bytes) else pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    return pa.RecordBatch.from_pydict({"what": [what], "bucket": [bucket], "rows": [data]}, _SLICE)


def _aside_of(parser: LineParser, unread: Sequence[Unread]) -> _Aside:
    running = [row for row in parser.rows if row.kind == RELEASE]
    return _Aside(parser.counts, parser.malformed, parser.ends, unread, running)


def _aside_of_clients(settled: SettledRows) -> _Aside:
    groups = frozenset(event.group for event in settled.events)
    return _Aside(notes=settled.notes, clients=settled.clients, groups=groups)


def _settling(running: Sequence[LineRow], groups: Sequence[str], into: str) -> Task:
    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows: list[tuple[Any, ...]] = []
        bucket = None
        with local.unswept():
            for batch in batches:
                for number, data in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                    rows += pickle.loads(data)
                    bucket = number
            if bucket is None:
                return
            settled = settle(map(partial(tuple.__new__, LineRow), rows), running)
            rows.clear()
            table = _table(settled, groups)
            yield _slice("aside", None, _aside_of_clients(settled))
            if not into:
                yield from (
                    _slice("events", None, packed(table.slice(start, CHUNK)))
                    for start in range(0, table.num_rows, CHUNK)
                )
            elif table.num_rows:
                draft = f"{into}/.{uuid.uuid4()}"
                pq.write_table(table, draft, row_group_size=ROW_GROUP)
                os.replace(
                    draft, f"{into}/part-{bucket:05}.parquet"
                )  # a task that is run again writes the same

    return task


def _unpacking(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for stream in batch.column(2).to_pylist():
            yield from unpacked(stream).to_batches()


_ARROW = {"time": pa.timestamp("us", tz="UTC"), "text": pa.string(), "int": pa.int32(), "long": pa.int64()}


def _table(settled: SettledRows, groups: Sequence[str]) -> pa.Table:
    """Return the events of these groups, or of all."""
    wanted = set(groups)
    events: list[EventRow] = (
        [event for event in settled.events if event.group in wanted] if wanted else settled.events
    )
    columns = zip(*events, strict=True) if events else ([] for _ in COLUMNS)
    return pa.table(
        {c.name: pa.array(values, _ARROW[c.type]) for c, values in zip(COLUMNS, columns, strict=True)}
    )
