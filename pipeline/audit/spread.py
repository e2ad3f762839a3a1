"""An audit on Spark: it reads, cuts the events into buckets of whole groups and schedules; the kernel
computes.

Each task judges the groups of one bucket, with one thread and so much memory, and returns the tables of
``kernel.FOUND`` as rows ``PAYLOAD``. A group that is too large for a task is parted: its life is judged
once, its partitions in several tasks, each with what came of that. What all tasks have found is put together
here. Nothing in here knows where Spark runs: what tasks need travels with them, what they find comes back by
Spark.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from rebalance.explore.engine.drafts import scratch
from rebalance.pipeline.audit import kernel, tables
from rebalance.pipeline.audit.engine import Input, load
from rebalance.pipeline.audit.kernel.events import COLUMNS
from rebalance.pipeline.audit.kernel.findings import Thresholds
from rebalance.pipeline.audit.records import LogEvent
from rebalance.pipeline.audit.result import AuditPlan, absolute, literal
from rebalance.pipeline.session import LOCAL, cores, session

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

BUCKET = 500_000
"""Events that a task judges, about; fewer when there would be too few tasks."""

WHOLE = 4 * BUCKET
"""A group with more events is parted."""

MEMORY = "1g"
"""Of the driver, in local mode of all of Java: it reads and shuffles, and the kernel computes in tasks. With
more it takes more, for about the same CPU seconds."""

TASK_MEMORY = "400MiB"
"""Of the database in a task, before it writes to disk."""

PAYLOAD = "name string, rows binary"
"""A table of the kernel's, as an Arrow stream."""

NEEDED = [name for name in COLUMNS if name not in ("instance", "detail", "source")]
"""What the checks look at."""

CHANGES = ("assigned", "revoked", "lost")

Task = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


class OnSpark:
    """One audit on Spark. A context manager: a session that it starts it stops."""

    stage = "starting Spark"

    def __init__(self, plan: AuditPlan) -> None:
        self.plan = plan

    def __enter__(self) -> OnSpark:
        with contextlib.ExitStack() as stack:
            self.spark = stack.enter_context(
                session(self.plan.master or LOCAL, memory=self.plan.memory or MEMORY)
            )
            self.connection = kernel.prepared(
                self.plan.thresholds, spill=str(stack.enter_context(scratch("audit")))
            )
            stack.callback(self.connection.close)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: Any) -> bool | None:
        return self._stack.__exit__(*error)

    def tasks(self) -> tuple[int, int]:
        """Tasks that are done and that there are, of what Spark does at the moment."""
        try:
            tracker = self.spark.sparkContext.statusTracker()
            stages = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
        except Exception:  # Spark Connect has no tracker, and a session that stops has none any more
            return 0, 0
        known = [stage for stage in stages if stage is not None]
        return sum(s.numCompletedTasks for s in known), sum(s.numTasks for s in known)

    def read(self) -> Input:
        """Read the logs of the plan; what is no table of events yet is saved as one."""
        from rebalance.pipeline.audit.sources import distributed

        plan = self.plan
        read = distributed.read(
            self.spark,
            plan.absolute,
            plan.kind,
            zone=plan.zone,
            date=plan.date,
            staging=absolute(plan.table("staging")),
        )
        events = read.events
        if plan.groups:
            events = events.where(F.col("group").isin(list(plan.groups)))
        if not self._only_tables():
            events = self._kept(events, "events")
        self._kept(read.malformed, "malformed")
        self.events = events
        sizes = events.groupBy("group", "source").agg(
            F.count("*").alias("events"), F.max(F.unix_micros("at")).alias("last")
        )
        self.sizes: dict[str, int] = {}
        by_source: dict[str, int] = {}
        until = None if read.until is None else tables.micros(read.until)
        for group, source, number, last in sizes.toLocalIterator():
            self.sizes[group] = self.sizes.get(group, 0) + number
            by_source[source] = by_source.get(source, 0) + number
            until = last if until is None else max(until, last)
        lines = read.lines.select("file", "source", "lines", "recognised")
        load(
            self.connection,
            lines=map(tuple, lines.toLocalIterator()),
            malformed=map(tuple, self._table("malformed").toLocalIterator()),
        )
        return Input(
            events=by_source, until=until, unread=read.unread, notes=read.notes, clients=read.clients
        )

    def _only_tables(self) -> bool:
        """Whether the logs are tables of events as they lie there, which need not be written again."""
        from rebalance.pipeline.audit.sources import lines, local
        from rebalance.pipeline.audit.sources.reading import TABLE

        ours = [path for path in self.plan.absolute if "://" not in path]
        if ours and local.listed(ours)[0]:
            return False
        far = (lines.files(self.spark, path) for path in self.plan.absolute if "://" in path)
        return all(name.endswith(TABLE) for names in far for name in names)

    def _kept(self, frame: DataFrame, name: str) -> DataFrame:
        """The same rows, from the table that they are written to."""
        frame.write.mode("overwrite").parquet(absolute(self.plan.table(name)))
        return self._table(name)

    def _table(self, name: str) -> DataFrame:
        return self.spark.read.parquet(literal(absolute(self.plan.table(name))))

    def judge(self, end: int) -> None:
        """Judge each group in the task of its bucket; leave the tables of ``kernel.FOUND``."""
        spread(self.spark, self.events, self.sizes, end, self.plan.thresholds, self.connection)

    def around(self, wanted: Sequence[tuple[Any, ...]]) -> Mapping[str, tuple[LogEvent, ...]]:
        """The events around findings: each task looks among its own, and again here among what they found."""
        groups = sorted({group for _, group, *_ in wanted})
        columns = ["moment", *(f"`{name}`" for name in COLUMNS if name != "moment")]
        near = self.events.where(F.col("group").isin(groups)).withColumn("moment", F.unix_micros("at"))
        limits = self.plan.thresholds

        def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            with _database(batches, limits) as connection:
                query = tables.around(connection, wanted)
                connection.execute(
                    f"CREATE TEMP TABLE near AS SELECT DISTINCT * EXCLUDE (wanted) FROM ({query})"
                )
                yield from _payloads(connection, ["near"])

        _collect(self.connection, near.select(*columns).mapInArrow(task, PAYLOAD))
        self.connection.execute("ALTER TABLE near RENAME TO events")
        return tables.events_around(self.connection, tables.around(self.connection, wanted))

    def save(self, name: str, query: str) -> None:
        """Write what a query gives to the table of this name."""
        path = absolute(self.plan.table(name))
        if "://" not in path:
            tables.save(self.connection, query, path)
            return
        found = self.connection.sql(query).to_arrow_table()
        self.spark.createDataFrame(found).coalesce(1).write.mode("overwrite").parquet(path)


def spread(
    spark: SparkSession,
    events: DataFrame,
    sizes: Mapping[str, int],
    end: int,
    limits: Thresholds,
    connection: DuckDBPyConnection,
) -> None:
    """Judge ``events`` (``EVENTS``), of which groups have these ``sizes``, into tables of ``connection``."""
    large = sorted(group for group, size in sizes.items() if size > WHOLE)
    at = F.unix_micros("at").alias("moment")
    needed = events.select(at, *(f"`{name}`" for name in NEEDED if name != "moment"))
    is_large = F.col("group").isin(large)
    small = sum(size for group, size in sizes.items() if size <= WHOLE)
    if small:
        rest = needed.where(~is_large) if large else needed
        buckets = rest.repartition(_tasks(spark, small), "group")
        _collect(connection, buckets.mapInArrow(_judging(limits, end), PAYLOAD))
    if not large:
        return
    # What is parted: who there is is counted by Spark, from all events; the life takes the others alone.
    of_large = needed.where(is_large)
    seen = of_large.groupBy("group", "consumer").agg(
        F.count("*").alias("events"), F.min("moment").alias("first"), F.max("moment").alias("last")
    )
    counted = seen.toArrow()
    changes = F.col("kind").isin(*CHANGES) & F.col("partition").isNotNull()
    lives = of_large.where(~changes).repartition(len(large), "group")
    found = list(_payload_rows(lives.mapInArrow(_living(limits, end, _packed(counted)), PAYLOAD)))
    lived = {
        group for name, packed in found if name == "lived" for group in _unpacked(packed)["group"].to_pylist()
    }
    if silent := [group for group in large if group not in lived]:
        only = counted.filter(pc.is_in(counted["group"], pa.array(silent)))
        found += _rows(_living(limits, end, _packed(only), silent=True)(iter(())))
    life = [(name, packed) for name, packed in found if name in kernel.LIFE]
    _load(connection, ((name, packed) for name, packed in found if name in kernel.FOUND))
    parts = of_large.where(changes).repartition(
        _tasks(spark, sum(map(sizes.__getitem__, large))), "group", "topic", "partition"
    )
    _collect(connection, parts.mapInArrow(_owning(limits, end, life), PAYLOAD))


def _tasks(spark: SparkSession, events: int) -> int:
    """As many as keep all cores busy to the end, or as hold ``BUCKET`` events each."""
    most = cores(spark.conf.get("spark.master", "") or LOCAL) * 2
    return max(1, -(-events // BUCKET), min(most, events // (BUCKET // 10)))


# -- tasks ---------------------------------------------------------------------------------------------


def _judging(limits: Thresholds, end: int) -> Task:
    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with _database(batches, limits) as connection:
            kernel.judge(connection, end)
            yield from _payloads(connection, kernel.FOUND)

    return task


def _living(limits: Thresholds, end: int, seen: bytes, *, silent: bool = False) -> Task:
    """Of the groups ``seen`` those that have events here; ``silent`` ones have none but of partitions."""
    among = "" if silent else 'SEMI JOIN events USING ("group")'

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with _database(batches, limits) as connection:
            connection.register("seen", _unpacked(seen))
            connection.execute(f"CREATE TEMP TABLE consumers AS FROM seen {among}")
            connection.execute('CREATE TEMP TABLE lived AS SELECT DISTINCT "group" FROM consumers')
            kernel.judge_life(connection, end)
            yield from _payloads(connection, ("lived", "found", "lives", "offsets", *kernel.LIFE))

    return task


def _owning(limits: Thresholds, end: int, life: Sequence[tuple[str, bytes]]) -> Task:
    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with _database(batches, limits) as connection:
            kernel.until(connection, end)
            _load(connection, life)
            kernel.judge_partitions(connection)
            yield from _payloads(connection, ("found", "parts", "waits"))

    return task


@contextlib.contextmanager
def _database(batches: Iterator[pa.RecordBatch], limits: Thresholds) -> Iterator[DuckDBPyConnection]:
    """The kernel's, with the events of a task."""
    columns = ", ".join(f'"{name}" {COLUMNS[name]}' for name in COLUMNS)
    with scratch("task") as spill:
        connection = kernel.prepared(limits, memory=TASK_MEMORY, spill=str(spill))
        try:
            connection.execute(f"CREATE TEMP TABLE events ({columns})")
            for batch in batches:
                connection.register("batch", pa.Table.from_batches([batch]))
                connection.execute("INSERT INTO events BY NAME FROM batch")
                connection.unregister("batch")
            yield connection
        finally:
            connection.close()


# -- what they return ----------------------------------------------------------------------------------


def _payloads(connection: DuckDBPyConnection, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The tables of these names, as ``PAYLOAD``; of an empty one what its columns are."""
    for name in names:
        reader: Any = connection.sql(f"FROM {name}").to_arrow_reader(100_000)
        tables_of = [pa.Table.from_batches([batch]) for batch in reader] or [reader.schema.empty_table()]
        for table in tables_of:
            yield pa.RecordBatch.from_pydict({"name": [name], "rows": [_packed(table)]})


def _packed(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def _unpacked(packed: bytes) -> pa.Table:
    return pa.ipc.open_stream(packed).read_all()


def _rows(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[str, bytes]]:
    for batch in batches:
        for row in batch.to_pylist():
            yield row["name"], bytes(row["rows"])


def _payload_rows(frame: DataFrame) -> Iterator[tuple[str, bytes]]:
    for row in frame.collect():
        yield row["name"], bytes(row["rows"])


def _collect(connection: DuckDBPyConnection, frame: DataFrame) -> None:
    _load(connection, _payload_rows(frame))


def _load(connection: DuckDBPyConnection, payloads: Any) -> None:
    """Add to the tables that are there, and make those that are not."""
    for name, packed in payloads:
        connection.register("payload", _unpacked(packed))
        connection.execute(f"CREATE TEMP TABLE IF NOT EXISTS {name} AS FROM payload LIMIT 0")
        connection.execute(f"INSERT INTO {name} BY NAME FROM payload")
        connection.unregister("payload")
