"""Events in Spark's tasks: where they come from, and how they are cut into buckets of whole groups.

A task opens Parquet itself where it lies on disks that all machines see (``Stored``); what Spark has to read
(URLs) is handed to it. Spark carries no rows: what goes from task to task and from tasks to the driver are
slices, each a whole table as one value, which costs it as much as one row.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from rebalance_verifier.base.files import scratch
from rebalance_verifier.pipeline.audit import kernel
from rebalance_verifier.pipeline.audit.kernel.events import COLUMNS, EVERYTHING, REQUIRED, broken, stored
from rebalance_verifier.pipeline.audit.kernel.findings import Thresholds
from rebalance_verifier.pipeline.audit.sources import lines
from rebalance_verifier.pipeline.audit.sources.reading import Unread
from rebalance_verifier.pipeline.audit.sources.schema import EVENTS
from rebalance_verifier.pipeline.database import literal

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

PIECE = 16 << 20
"""Bytes of Parquet that a task opens, about; fewer when there would be too few tasks."""

TASK_MEMORY = "400MiB"
"""Of the database in a task, before it writes to disk."""

PAYLOAD = "name string, rows binary"
"""A table of the kernel's, as an Arrow stream."""

Payload = tuple[str, bytes]

SLICE = "bucket int, rows binary"
"""Events of a bucket, as a Parquet file."""

HANDED = -1
"""In place of the number of a piece, for what Spark has read."""

NEEDED = [name for name in COLUMNS if name not in ("detail",)]
"""What the checks look at."""


@dataclass(frozen=True)
class Opened:
    """The part of a task: its events are the view ``events`` (of ``given``) of ``connection``. ``wrong``:
    which of the files it opened are no tables of events, and why."""

    connection: DuckDBPyConnection
    piece: Piece | None = None
    wrong: dict[str, str] = field(default_factory=dict)


Work = Callable[[Opened], Iterator[pa.RecordBatch]]
"""What a task does with its part of the events."""

Task = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


class Piece(NamedTuple):
    """Piece of the input that a task opens: some whole files, or of one file the ``rows`` from one up to
    another. ``groups``: only these, empty for all; and none of ``without``."""

    number: int
    files: tuple[str, ...]
    rows: tuple[int, int] | None = None
    groups: tuple[str, ...] = ()
    without: tuple[str, ...] = ()


Source = Sequence[Piece] | DataFrame
"""Events: in files that every task can open, or as Spark reads them (``EVENTS``)."""


def over(
    spark: SparkSession,
    source: Source,
    work: Work,
    schema: str,
    limits: Thresholds,
    *,
    columns: Sequence[str] = (),
) -> DataFrame:
    """Yield the results of ``work`` in tasks that have all events of ``source`` between them, with these
    columns or all."""
    if not isinstance(source, DataFrame):
        numbers = spark.range(0, len(source), 1, max(1, len(source)))
        return numbers.mapInArrow(_opening(source, work, limits), schema)
    named = {"moment": F.unix_micros("at").alias("moment")}
    return source.select(*(named.get(name, F.col(f"`{name}`")) for name in columns or COLUMNS)).mapInArrow(
        _handed(work, limits), schema
    )


def pieces_of(
    files: Sequence[str], least: int, *, first: int = 0, groups: tuple[str, ...] = ()
) -> list[Piece]:
    """Files put together or cut between row groups, at least so many pieces where that makes sense; the
    ``first`` has this number."""
    sizes = {file: _size(file) for file in files}
    size = min(PIECE, max(PIECE // 16, sum(sizes.values()) // least))
    found: list[Piece] = []
    some: list[str] = []
    for file in files:
        if sizes[file] > 2 * size and (parts := _parts(file, size)):
            found += (Piece(0, (file,), part) for part in parts)
            continue
        some.append(file)
        if sum(map(sizes.__getitem__, some)) >= size:
            found.append(Piece(0, tuple(some)))
            some = []
    found += [Piece(0, tuple(some))] if some else []
    return [one._replace(number=first + i, groups=groups) for i, one in enumerate(found)]


def _size(file: str) -> int:
    try:
        return os.path.getsize(file)
    except OSError:  # whoever opens it finds out why
        return 0


def _parts(file: str, size: int) -> list[tuple[int, int]]:
    """Ranges of rows, each some whole row groups; none where that cannot be seen."""
    try:
        with pq.ParquetFile(file) as content:
            groups = [content.metadata.row_group(i) for i in range(content.num_row_groups)]
            counted = [(group.num_rows, sum(_bytes(group))) for group in groups]
    except Exception:  # whoever reads it finds out why
        return []
    found, first, last, weight = [], 0, 0, 0
    for rows, weighs in counted:
        last, weight = last + rows, weight + weighs
        if weight >= size:
            found.append((first, last))
            first, weight = last, 0
    return [*found, (first, last)] if last > first else found


def _bytes(group: pq.RowGroupMetaData) -> Iterator[int]:
    return (group.column(i).total_compressed_size for i in range(group.num_columns))


def stored_far(spark: SparkSession, files: Sequence[str], unread: list[Unread]) -> DataFrame:
    """Return the events in Parquet at URLs, as ``EVENTS``; files that cannot be read are passed over."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for file in files:
        try:
            names = tuple(spark.read.parquet(lines.literal(file)).columns)
        except Exception as error:  # Spark's, of whatever kind: the file is named
            why = str(error).splitlines()[0][:200]
            unread.append(Unread(file, f"no Parquet that can be read: {why}"))
            continue
        if missing := [name for name in REQUIRED if name not in names]:
            unread.append(Unread(file, f"not a table of events, without {', '.join(missing)}"))
        else:
            alike.setdefault(names, []).append(file)
    parts = [as_events(spark.read.parquet(*map(lines.literal, several))) for several in alike.values()]
    return reduce(DataFrame.unionByName, parts) if parts else spark.createDataFrame([], EVENTS)


def as_events(frame: DataFrame) -> DataFrame:
    """Return rows as ``EVENTS``, with null in the columns that they lack."""
    there = frame.columns
    columns = ((F.col(f"`{f.name}`") if f.name in there else F.lit(None), f) for f in EVENTS)
    return frame.select(*(column.cast(f.dataType).alias(f.name) for column, f in columns))


# -- tasks ---------------------------------------------------------------------------------------------


def _opening(pieces: Sequence[Piece], work: Work, limits: Thresholds) -> Task:
    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number in (number for batch in batches for number in batch.column(0).to_pylist()):
            with database(limits) as connection:
                yield from work(opened(connection, pieces[number]))

    return task


def opened(connection: DuckDBPyConnection, piece: Piece) -> Opened:
    """Make the view ``events`` of a piece."""
    wrong = stored(connection, piece.files, "given", piece.rows)
    conditions = ["true"]
    for name, condition in (("groups", "IN"), ("without", "NOT IN")):
        if names := getattr(piece, name):
            connection.register("names", pa.table({"name": pa.array(names, pa.string())}))
            connection.execute(f"CREATE TEMP TABLE {name}_of_piece AS FROM names")
            connection.unregister("names")
            conditions.append(f'"group" {condition} (FROM {name}_of_piece)')
    where = " AND ".join(conditions)
    connection.execute(f"CREATE TEMP VIEW events AS SELECT * FROM given WHERE {where}")
    return Opened(connection, piece, wrong)


def _handed(work: Work, limits: Thresholds) -> Task:
    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with database(limits) as connection:
            columns = ", ".join(f'"{name}" {kind}' for name, kind in COLUMNS.items())
            connection.execute(f"CREATE TEMP TABLE given ({columns})")
            for batch in batches:
                connection.register("batch", pa.Table.from_batches([batch]))
                connection.execute("INSERT INTO given BY NAME FROM batch")
                connection.unregister("batch")
            connection.execute("CREATE TEMP VIEW events AS FROM given")
            yield from work(Opened(connection))

    return task


@contextlib.contextmanager
def database(limits: Thresholds) -> Iterator[DuckDBPyConnection]:
    """The kernel's, in a task."""
    with scratch("task") as spill:
        connection = kernel.prepared(limits, memory=TASK_MEMORY, spill=str(spill))
        try:
            yield connection
        finally:
            connection.close()


def surveyed(part: Opened) -> Iterator[pa.RecordBatch]:
    """Payloads ``sizes`` (piece, group, source, events, last) and ``rows`` (file, source, lines: of tables,
    as logs have lines); in place of both ``unread`` (file, why) where a file cannot be read to its end."""
    import duckdb

    connection, wrong = part.connection, part.wrong
    files = part.piece.files if part.piece else ()
    try:
        connection.execute("SET VARIABLE piece = ?", [part.piece.number if part.piece else HANDED])
        connection.execute(_COUNT)
    except duckdb.Error:
        wrong = wrong | broken(connection, [file for file in files if file not in wrong])
        if not wrong:
            raise
    if not wrong:
        yield from payloads(connection, ("sizes", "rows"))
        return
    connection.execute("CREATE TEMP TABLE unread (file VARCHAR, why VARCHAR)")
    connection.executemany("INSERT INTO unread VALUES (?, ?)", [*wrong.items()])
    yield from payloads(connection, ("unread",))


_COUNT = f"""
    CREATE TEMP TABLE counted AS
    SELECT "group", source, file, count(*) AS events, max(moment) AS last, {EVERYTHING} AS read
    FROM events GROUP BY "group", source, file;
    CREATE TEMP TABLE sizes AS
    SELECT
        getvariable('piece')::INTEGER AS piece, "group", source,
        sum(events)::BIGINT AS events, max(last) AS last
    FROM counted GROUP BY "group", source;
    CREATE TEMP TABLE rows AS
    SELECT file, source, sum(events)::BIGINT AS lines FROM counted GROUP BY ALL
"""


def cut(part: Opened, bucket: str, where: str = "true") -> Iterator[pa.RecordBatch]:
    """The events of a part ``where`` that is so, as slices; ``bucket``: an expression for which."""
    columns = ", ".join(f'"{name}"' for name in NEEDED)
    query = f"SELECT ({bucket})::INTEGER AS bucket, {columns} FROM events WHERE {where}"
    with scratch("cut") as folder:
        part.connection.execute(
            f"COPY ({query}) TO {literal(str(folder / 'cut'))} "
            "(FORMAT parquet, COMPRESSION lz4_raw, PARTITION_BY (bucket))"
        )
        for file in sorted(folder.glob("cut/*/*.parquet")):
            number = int(file.parent.name.partition("=")[2])
            yield pa.RecordBatch.from_pydict({"bucket": [number], "rows": [file.read_bytes()]}, _SLICE)
            file.unlink()


_SLICE = pa.schema([("bucket", pa.int32()), ("rows", pa.binary())])


def gathered(
    work: Callable[[DuckDBPyConnection], Iterator[pa.RecordBatch]],
    limits: Thresholds,
    *,
    always: bool = False,
) -> Task:
    """A task that has some slices as the view ``events`` for ``work``; without any it does nothing, unless
    it is to work ``always``."""
    columns = ", ".join(f'NULL::{COLUMNS[name]} AS "{name}"' for name in NEEDED)

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with scratch("slices") as folder:
            source, number = f"SELECT {columns} WHERE false", 0
            for batch in batches:
                for rows in batch.column(1):
                    (folder / f"{number}.parquet").write_bytes(rows.as_buffer())
                    number += 1
            if number:
                source = f"FROM read_parquet({literal(str(folder / '*.parquet'))})"
            elif not always:
                return
            with database(limits) as connection:
                connection.execute(f"CREATE TEMP VIEW events AS {source}")
                yield from work(connection)

    return task


def in_buckets(frame: DataFrame, buckets: int) -> DataFrame:
    """Slices, all those of a bucket in one task."""
    if hasattr(frame, "repartitionById"):  # Spark 4.1: or else some tasks have several buckets, others none
        return frame.repartitionById(buckets, "bucket")
    return frame.repartition(buckets, "bucket")


# -- what they return ----------------------------------------------------------------------------------


def payloads(connection: DuckDBPyConnection, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The tables of these names, as ``PAYLOAD``; of an empty one what its columns are."""
    for name in names:
        reader: Any = connection.sql(f"FROM {name}").to_arrow_reader(100_000)
        tables_of = [pa.Table.from_batches([batch]) for batch in reader] or [reader.schema.empty_table()]
        for table in tables_of:
            yield pa.RecordBatch.from_pydict({"name": [name], "rows": [packed(table)]})


def packed(table: pa.Table) -> bytes:
    """A table as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def unpacked(stream: bytes) -> pa.Table:
    """The table again."""
    return pa.ipc.open_stream(stream).read_all()


def payloads_of(batches: Iterator[pa.RecordBatch]) -> Iterator[Payload]:
    """Payloads as names and streams."""
    for batch in batches:
        for row in batch.to_pylist():
            yield row["name"], bytes(row["rows"])


def collected(frame: DataFrame) -> Iterator[Payload]:
    """The payloads of all tasks."""
    for row in frame.collect():
        yield row["name"], bytes(row["rows"])


def load_payloads(connection: DuckDBPyConnection, found: Iterable[Payload]) -> None:
    """Add payloads to the tables that are there, and make those that are not."""
    for name, stream in found:
        connection.register("payload", unpacked(stream))
        connection.execute(f"CREATE TEMP TABLE IF NOT EXISTS {name} AS FROM payload LIMIT 0")
        connection.execute(f"INSERT INTO {name} BY NAME FROM payload")
        connection.unregister("payload")
