"""An audit on Spark: it cuts the events into buckets of whole groups and schedules; the kernel computes.

Each task judges the groups of one bucket, with one thread and so much memory, and returns the tables of
``kernel.FOUND`` as rows ``PAYLOAD``. A group that is too large for a task is parted: its life is judged
once, its partitions in several tasks, each with what came of that. What all tasks have found is put together
here. Nothing in here knows where Spark runs: what tasks need travels with them, what they find comes back by
Spark.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from rebalance_verifier.base.files import scratch
from rebalance_verifier.pipeline import database
from rebalance_verifier.pipeline.audit import kernel, tables, texts
from rebalance_verifier.pipeline.audit.engine import Input, groups_in, load
from rebalance_verifier.pipeline.audit.kernel.events import stored
from rebalance_verifier.pipeline.audit.kernel.findings import Thresholds
from rebalance_verifier.pipeline.audit.records import LogEvent
from rebalance_verifier.pipeline.audit.result import AuditPlan, absolute, literal
from rebalance_verifier.pipeline.audit.slices import (
    HANDED,
    NEEDED,
    PAYLOAD,
    SLICE,
    Opened,
    Payload,
    Piece,
    Source,
    collected,
    cut,
    gathered,
    in_buckets,
    load_payloads,
    over,
    packed,
    payloads,
    payloads_of,
    pieces_of,
    stored_far,
    surveyed,
    unpacked,
)
from rebalance_verifier.pipeline.audit.sources import lines, local
from rebalance_verifier.pipeline.audit.sources.reading import TABLE, NoInput, Unread
from rebalance_verifier.pipeline.session import LOCAL, cores, session

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

BUCKET = 500_000
"""Events that a task judges, about; fewer when there would be too few tasks."""

WHOLE = 4 * BUCKET
"""A group with more events is parted."""

MEMORY = "1g"
"""Of the driver, in local mode of all of Java, which schedules and carries; the kernel computes in tasks."""

CHANGES = "kind IN ('assigned', 'revoked', 'lost') AND partition IS NOT NULL"
OF_LIFE = f"NOT ({CHANGES} AND protocol IS DISTINCT FROM 'consumer')"
OF_PARTITIONS = f"(kind = 'planned' OR {CHANGES})"
"""Events of partitions; all others are of the life of their group."""


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
        plan, connection = self.plan, self.connection
        ours, far = [[path for path in plan.absolute if ("://" in path) == url] for url in (False, True)]
        logs, files, unread = local.listed(ours) if ours or not far else ([], [], [])
        self.pieces: list[Piece] = []
        self.frame: DataFrame | None = None
        connection.execute(SURVEY)
        urls, stored = self._far(far, unread)
        read = self._parsed(logs, urls, unread) if logs or urls else None
        self._ends = {} if read is None else read.ends
        connection.execute("DELETE FROM rows")  # their lines have been counted
        if stored is not None:
            self._hand(stored.where(F.col("group").isin(list(plan.groups))) if plan.groups else stored)
        self._open(files, unread, plan.groups)
        load(
            connection,
            lines=() if read is None else read.lines,
            malformed=() if read is None else read.malformed,
        )
        # A row of a table is a line of its log.
        connection.execute("INSERT INTO lines SELECT file, source, lines, lines FROM rows")
        self.save("malformed", "FROM malformed")
        ((last,),) = connection.execute("SELECT max(last) FROM sizes").fetchall()
        by_source = "SELECT source, sum(events)::BIGINT FROM sizes GROUP BY source"
        return Input(
            events=dict(connection.execute(by_source).fetchall()),
            until=max((end for end in (last, *self._ends.values()) if end is not None), default=None),
            unread=(*unread, *(() if read is None else read.unread)),
            notes=() if read is None else read.notes,
            clients=() if read is None else read.clients,
            groups=self._groups(frozenset() if read is None else read.groups, stored, files),
        )

    def _groups(
        self, parsed: frozenset[str], stored_far: DataFrame | None, files: Sequence[str]
    ) -> tuple[str, ...]:
        """All groups of the logs and the tables, where one that the plan names has no event."""
        names = self.plan.groups
        if not names or set(names) <= set(groups_in(self.connection, "sizes")):
            return ()
        stored(self.connection, files, "stored")
        there = {*parsed, *groups_in(self.connection, "stored")}
        if stored_far is not None:
            there |= {row["group"] for row in stored_far.select("group").distinct().collect()} - {None}
        return tuple(sorted(there))

    def _far(self, paths: Sequence[str], unread: list[Unread]) -> tuple[list[str], DataFrame | None]:
        """Return the URLs of text, and the events of those that are tables. Raises NoInput."""
        urls, found = [], []
        for path in paths:
            names = lines.files(self.spark, path)
            of_tables = [name for name in names if name.endswith(TABLE)]
            if 0 < len(of_tables) < len(names):
                raise NoInput(f"{path}: Parquet and other files in one directory; name them apart, by globs")
            if of_tables:
                found += of_tables
            else:
                urls.append(path)
        return urls, stored_far(self.spark, found, unread) if found else None

    def _parsed(self, logs: Sequence[str], urls: Sequence[str], unread: list[Unread]) -> texts.Read:
        """Read text into the table of events that is saved."""
        plan, where = self.plan, absolute(self.plan.table("events"))
        ours = "://" not in where
        read = texts.read(
            self.spark,
            logs,
            urls,
            texts.How(plan.kind, plan.zone, plan.date),
            groups=plan.groups,
            into=where if ours else "",
        )
        if read.events is None:
            self._open(local.listed([where])[1], unread)
        else:
            read.events.write.mode("overwrite").parquet(where)
            self._hand(self.spark.read.parquet(literal(where)))
        return read

    def _hand(self, events: DataFrame) -> None:
        """Have tasks look at events that they cannot open themselves, too."""
        self.frame = events if self.frame is None else self.frame.unionByName(events)
        load_payloads(self.connection, self._found(events, surveyed))

    def _open(self, files: Sequence[str], unread: list[Unread], groups: tuple[str, ...] = ()) -> None:
        """Those of these files that are tables of events, as more pieces; the others are ``unread``."""
        least = 2 * cores(self.spark.conf.get("spark.master", "") or LOCAL)
        while files:
            pieces = pieces_of(files, least, first=len(self.pieces), groups=groups)
            found = list(self._found(pieces, surveyed))
            wrong = [row for name, table in found if name == "unread" for row in unpacked(table).to_pylist()]
            if not wrong:
                load_payloads(self.connection, found)
                self.pieces += pieces
                return
            reasons = {row["file"]: row["why"] for row in wrong}
            unread += [Unread(file, why) for file, why in sorted(reasons.items())]
            files = [file for file in files if file not in reasons]

    def _found(self, source: Source, work: Any) -> Iterator[Payload]:
        return collected(over(self.spark, source, work, PAYLOAD, self.plan.thresholds))

    def judge(self, end: int) -> None:
        """Judge each group in the task of its bucket; leave the tables of ``kernel.FOUND``."""
        until = LogEnd(end, self._ends)
        spread(self.spark, self.pieces, self.frame, until, self.plan.thresholds, self.connection)

    def around(self, wanted: Sequence[tuple[Any, ...]]) -> Mapping[str, tuple[LogEvent, ...]]:
        """The events around findings: each task looks among its own, and again here among what they found."""

        def work(part: Opened) -> Iterator[pa.RecordBatch]:
            query = tables.around(part.connection, wanted)
            part.connection.execute(
                f"CREATE TEMP TABLE near AS SELECT DISTINCT * EXCLUDE (wanted) FROM ({query})"
            )
            yield from payloads(part.connection, ["near"])

        groups = tuple(sorted({group for _, group, *_ in wanted}))
        seen = 'SELECT DISTINCT piece FROM sizes WHERE list_contains(?, "group")'
        numbers = {number for (number,) in self.connection.execute(seen, [list(groups)]).fetchall()}
        if some := [self.pieces[n]._replace(groups=groups) for n in sorted(numbers) if n >= 0]:
            load_payloads(self.connection, self._found(some, work))
        if self.frame is not None:
            frame = self.frame.where(F.col("group").isin(list(groups)))
            load_payloads(self.connection, self._found(frame, work))
        self.connection.execute("ALTER TABLE near RENAME TO events")
        return tables.events_around(self.connection, tables.around(self.connection, wanted))

    def save(self, name: str, query: str) -> None:
        """Write what a query gives to the table of this name."""
        path = absolute(self.plan.table(name))
        if "://" not in path:
            database.save(self.connection, query, path)
            return
        found = self.connection.sql(query).to_arrow_table()
        self.spark.createDataFrame(found).coalesce(1).write.mode("overwrite").parquet(path)


SURVEY = """
    CREATE TEMP TABLE sizes (piece INTEGER, "group" VARCHAR, source VARCHAR, events BIGINT, last BIGINT);
    CREATE TEMP TABLE rows (file VARCHAR, source VARCHAR, lines BIGINT)
"""
"""What ``surveyed`` finds."""


def spread(
    spark: SparkSession,
    pieces: Sequence[Piece],
    frame: DataFrame | None,
    end: LogEnd,
    limits: Thresholds,
    connection: DuckDBPyConnection,
) -> None:
    """Judge the events of ``pieces`` and of ``frame``, whose ``sizes`` are a table of ``connection``, into
    tables there.

    Groups that lie in one piece are judged there; others are cut out and put together; large ones are parted.
    """
    plan = _planned(connection)
    large = sorted(plan.large)

    def judged(parts: int, bucket: str, where: str, work: Any) -> list[Payload]:
        """Return the results of ``work`` on the events ``where`` that is so, in tasks that have a bucket
        each."""
        slices = each(partial(cut, bucket=f"{bucket} % {parts}", where=where), SLICE)
        return list(collected(in_buckets(slices, parts).mapInArrow(gathered(work, limits), PAYLOAD)))

    def each(work: Any, schema: str) -> DataFrame:
        """In all parts, but for what is judged where it lies."""
        some = [
            pieces[number]._replace(without=plan.homes.get(number, ())) for number in sorted(plan.scattered)
        ]
        sources: list[Source] = [*([some] if some else []), *([] if frame is None else [frame])]
        frames = [over(spark, source, work, schema, limits, columns=NEEDED) for source in sources]
        return reduce(DataFrame.unionByName, frames)

    if plan.homes:
        own = [
            pieces[number]._replace(groups=names) if number in plan.scattered else pieces[number]
            for number, names in sorted(plan.homes.items())
        ]
        load_payloads(connection, collected(over(spark, own, partial(_at_home, end=end), PAYLOAD, limits)))
    of_large = f'"group" IN ({", ".join(map(database.literal, large))})'
    if plan.rest:
        where = f"NOT {of_large}" if large else "true"
        load_payloads(
            connection, judged(_tasks(spark, plan.rest), 'hash("group")', where, partial(_judging, end=end))
        )
    if not large:
        return
    # What is parted: who there is is counted from all events; the life takes those that are of no partition.
    # In the consumer protocol it takes them too: who has one says that its former owner has acknowledged it.
    seen = packed(_counted(collected(each(partial(_seen, where=of_large), PAYLOAD))))
    number = f'list_position([{", ".join(map(database.literal, large))}], "group") - 1'
    lives = judged(
        len(large), f"({number})", f"{of_large} AND {OF_LIFE}", partial(_living, end=end, seen=seen)
    )
    lived = {
        group for name, rows in lives if name == "lived" for group in unpacked(rows)["group"].to_pylist()
    }
    if silent := [group for group in large if group not in lived]:
        everybody = unpacked(seen)
        only = packed(everybody.filter(pc.is_in(everybody["group"], pa.array(silent))))
        none = gathered(partial(_living, end=end, seen=only, silent=True), limits, always=True)
        lives += payloads_of(none(iter(())))
    life = [(name, rows) for name, rows in lives if name in kernel.LIFE]
    load_payloads(connection, ((name, rows) for name, rows in lives if name in kernel.FOUND))
    parts = _tasks(spark, sum(plan.large.values()))
    key = 'hash("group", topic, partition)'
    owned = judged(parts, key, f"{of_large} AND {OF_PARTITIONS}", partial(_owning, end=end, life=life))
    load_payloads(connection, owned)


class LogEnd(NamedTuple):
    """Until when the logs go: all of them, and each file of text."""

    moment: int
    files: Mapping[str, int]


class BucketPlan(NamedTuple):
    """``homes``: number of a piece -> its groups that are judged there, since they are nowhere else;
    ``scattered``: the numbers of pieces that have others; ``large``: group -> how many events, of those that
    are parted; ``rest``: how many events all others have."""

    homes: dict[int, tuple[str, ...]]
    scattered: set[int]
    large: dict[str, int]
    rest: int


def _planned(connection: DuckDBPyConnection) -> BucketPlan:
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE whereabouts AS
        WITH groups AS (
            SELECT
                "group", sum(events)::BIGINT AS total, total > {WHOLE} AS large,
                NOT large AND min(piece) = max(piece) AND min(piece) > {HANDED} AS settled
            FROM sizes
            GROUP BY "group"
        ),
        shares AS (
            SELECT
                piece, "group", total, large,
                -- Where few are at home, the piece is taken apart anyway.
                settled AND sum(CASE WHEN settled THEN events ELSE 0 END) OVER (PARTITION BY piece) * 2
                    >= sum(events) OVER (PARTITION BY piece) AS home
            FROM sizes
            JOIN groups USING ("group")
        )
        SELECT DISTINCT * FROM shares
        """
    )

    def rows(query: str) -> list[Any]:
        return connection.execute(query).fetchall()

    ((rest,),) = rows(
        "SELECT coalesce(sum(total), 0)::BIGINT FROM "
        '(SELECT DISTINCT "group", total FROM whereabouts WHERE NOT home AND NOT large)'
    )
    homes = 'SELECT piece, list("group" ORDER BY "group") FROM whereabouts WHERE home GROUP BY piece'
    return BucketPlan(
        homes={piece: tuple(names) for piece, names in rows(homes)},
        scattered={number for (number,) in rows("SELECT DISTINCT piece FROM whereabouts WHERE NOT home")}
        - {HANDED},
        large=dict(rows('SELECT DISTINCT "group", total FROM whereabouts WHERE large')),
        rest=rest,
    )


def _tasks(spark: SparkSession, events: int) -> int:
    """As many as keep all cores busy to the end, or as hold ``BUCKET`` events each."""
    most = cores(spark.conf.get("spark.master", "") or LOCAL) * 2
    return max(1, -(-events // BUCKET), min(most, events // (BUCKET // 10)))


def _counted(found: Iterator[Payload]) -> pa.Table:
    """The consumers of all tasks, each once."""
    several = pa.concat_tables([unpacked(rows) for _, rows in found])
    grouped = several.group_by(["group", "consumer"])
    summed = grouped.aggregate(
        [
            ("events", "sum"),
            ("first", "min"),
            ("last", "max"),
            ("synced", "max"),
            ("owns", "max"),
            ("taken", "max"),
            ("besides", "max"),
        ]
    )
    return summed.rename_columns(
        [name.removesuffix("_sum").removesuffix("_min").removesuffix("_max") for name in summed.column_names]
    ).select(several.column_names)


# -- tasks ---------------------------------------------------------------------------------------------


def _judging(connection: DuckDBPyConnection, end: LogEnd) -> Iterator[pa.RecordBatch]:
    kernel.judge(connection, *end)
    yield from payloads(connection, kernel.FOUND)


def _at_home(part: Opened, end: LogEnd) -> Iterator[pa.RecordBatch]:
    yield from _judging(part.connection, end)


def _seen(part: Opened, where: str) -> Iterator[pa.RecordBatch]:
    """Return the consumers that there are, as ``kernel`` has it."""
    part.connection.execute(f"CREATE OR REPLACE TEMP VIEW events AS FROM given WHERE {where}")
    part.connection.execute("CREATE OR REPLACE TEMP VIEW timed AS FROM events")
    kernel.run(part.connection, "consumers")
    yield from payloads(part.connection, ["consumers"])


def _living(
    connection: DuckDBPyConnection, end: LogEnd, seen: bytes, silent: bool = False
) -> Iterator[pa.RecordBatch]:
    """Of the groups ``seen`` those that have events here; ``silent`` ones have none but of partitions."""
    among = "" if silent else 'SEMI JOIN events USING ("group")'
    connection.register("seen", unpacked(seen))
    connection.execute(f"CREATE TEMP TABLE consumers AS FROM seen {among}")
    connection.execute('CREATE TEMP TABLE lived AS SELECT DISTINCT "group" FROM consumers')
    kernel.judge_life(connection, *end)
    yield from payloads(connection, ("lived", "found", "lives", "offsets", *kernel.LIFE))


def _owning(connection: DuckDBPyConnection, end: LogEnd, life: Sequence[Payload]) -> Iterator[pa.RecordBatch]:
    kernel.until(connection, end.moment)
    load_payloads(connection, life)
    kernel.judge_partitions(connection)
    yield from payloads(connection, ("found", "parts", "waits"))
