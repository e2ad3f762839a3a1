"""What an audit costs and what it finds, into tools/benchmarks/audit.md.

``python -m tools.benchmarks.audit [--events 1,10,50] [--text 1] [--keep DIR]``: millions of events of
``ted.logs``, written once as Parquet. Each measurement is a process of its own. The query that the
audit rests on, who owned a partition while another did, is put to Spark, DuckDB (``pip install duckdb``) and
plain Python in the same run on the same file, and their answers are compared. The machine may be shared:
CPU seconds and ratios count.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
MASTER, MEMORY = "local[2]", "4g"
PER_MILLION = 340
"""Groups, each of about 3,000 events."""
REBALANCES = 50
NEAR = 10_000_000
"""A finding is the planted one when it begins within so many microseconds of it."""

PAGE, TICK = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_CLK_TCK")


class Meter:
    """Seconds, CPU seconds and the peak memory of this process and all below it, while the block runs."""

    def __enter__(self) -> Meter:
        self.began, self.cpu_before, self.peak = time.monotonic(), self._tree()[0], 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self.seconds, self.cpu = time.monotonic() - self.began, self._tree()[0] - self.cpu_before

    def _watch(self) -> None:
        while not self._stop.wait(0.2):
            self.peak = max(self.peak, self._tree()[1])

    @staticmethod
    def _tree() -> tuple[float, int]:
        """CPU seconds with those of children that have ended, and bytes of resident memory."""
        below: dict[int, list[int]] = defaultdict(list)
        used: dict[int, tuple[float, int]] = {}
        space: dict[int, str] = {}  # size of the address space
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            with contextlib.suppress(OSError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                below[int(fields[1])].append(int(entry.name))
                used[int(entry.name)] = sum(map(int, fields[11:15])) / TICK, int(fields[21]) * PAGE
                space[int(entry.name)] = fields[20]
        todo, cpu, memory = [os.getpid()], 0.0, 0
        while todo:
            one = todo.pop()
            seconds, resident = used.get(one, (0.0, 0))
            cpu, memory = cpu + seconds, memory + resident
            # A JVM that starts a program is there twice for a moment, with the same memory.
            todo += [child for child in below[one] if space.get(child) != space.get(one)]
        return cpu, memory

    def row(self, **more: Any) -> dict[str, Any]:
        return {"seconds": self.seconds, "cpu": self.cpu, "mib": self.peak // 2**20, **more}


# The jobs, each in a process of its own. A directory has events, truth, and what comes of them.


@contextlib.contextmanager
def _spark() -> Iterator[Any]:
    from rebalance.pipeline.session import session

    with session(MASTER, memory=MEMORY) as spark:
        yield spark


def generate(directory: Path, millions: str) -> dict[str, Any]:
    """Write events and truth."""
    from rebalance.pipeline.audit.kernel.findings import CHECKS

    from tools.planted.logs import planted

    groups = max(20, round(float(millions) * PER_MILLION))
    with _spark() as spark:
        events, truth = planted(
            spark, groups, REBALANCES, 1, dict.fromkeys(CHECKS, max(8, groups // 40)), partitions=64
        )
        with Meter() as meter:
            truth.coalesce(1).write.parquet(str(directory / "truth"))
            events.write.parquet(str(directory / "events"))
        return meter.row(events=spark.read.parquet(str(directory / "events")).count())


def write(directory: Path, form: str) -> dict[str, Any]:
    """Write the events as text; ``form`` as in ``planted_text``."""
    from tools.planted.text import lines

    with _spark() as spark, Meter() as meter:
        events = spark.read.parquet(str(directory / "events"))
        lines(events, form).write.partitionBy("file").text(str(directory / form))
    return meter.row(bytes=sum(path.stat().st_size for path in (directory / form).rglob("*.txt")))


def audited(directory: Path, form: str) -> dict[str, Any]:
    """The whole audit, its four tables written: of Parquet, or from text on."""
    from rebalance.pipeline.audit.audit import audit
    from rebalance.pipeline.audit.sources.distributed import read

    out = directory / f"audited-{form}"
    shutil.rmtree(out, ignore_errors=True)
    with _spark() as spark, Meter() as meter:
        if form == "parquet":
            events = spark.read.parquet(str(directory / "events"))
        else:
            events = read(spark, [str(directory / form)], staging=str(out / "staged")).events
        done = audit(events)
        for name in ("findings", "groups", "pauses", "clocks"):
            getattr(done, name).write.parquet(str(out / name))
    return meter.row(**score(directory / "truth", out / "findings"))


def score(truth: Path, findings: Path) -> dict[str, Any]:
    """Of what is planted, what was found; of what was found and is certain, what was not planted."""
    import pyarrow.parquet as pq

    columns = ["check", "group", "topic", "partition", "began"]

    def rows(path: Path, *more: str) -> list[dict[str, Any]]:
        return pq.read_table(path, columns=[*columns, *more]).to_pylist()  # type: ignore[no-any-return]

    def key(row: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(row[name] for name in columns[:-1])

    planted: dict[tuple[Any, ...], list[Any]] = defaultdict(list)
    for row in rows(truth):
        planted[key(row)].append(row["began"])
    found: dict[tuple[Any, ...], list[Any]] = defaultdict(list)
    uncertain, invented = 0, []
    near = NEAR / 1e6
    for row in rows(findings, "certain"):
        found[key(row)].append(row["began"])
        if not any(abs((row["began"] - other).total_seconds()) <= near for other in planted[key(row)]):
            uncertain += not row["certain"]
            if row["certain"]:
                invented.append([*map(str, key(row)), str(row["began"])])
    missed = [
        [*map(str, where), str(began)]
        for where, several in planted.items()
        for began in several
        if not any(abs((began - other).total_seconds()) <= near for other in found[where])
    ]
    return {
        "planted": sum(map(len, planted.values())),
        "missed": len(missed),
        "invented": len(invented),
        "uncertain": uncertain,
        "which": sorted(missed)[:5] + sorted(invented)[:5],
    }


# One query, three ways: each interval that began while an earlier one of its partition went on, and until
# when both did. An interval ends with the next change of its consumer; at one instant what ends goes first.

CHANGES = "('assigned', 'revoked', 'lost')"
QUERY = f"""
WITH changes AS (
    SELECT "group", topic, "partition", consumer, "at", kind,
        lead("at") OVER (PARTITION BY "group", topic, "partition", consumer ORDER BY "at", line) AS ended
    FROM events WHERE kind IN {CHANGES}
), owned AS (
    SELECT *, max(coalesce(ended, TIMESTAMP '9999-01-01')) OVER (
        PARTITION BY "group", topic, "partition" ORDER BY "at", consumer
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS reach
    FROM changes WHERE kind = 'assigned'
)
SELECT "group", topic, "partition", "at" AS began, least(reach, ended) AS ended FROM owned WHERE reach > "at"
"""

Overlaps = list[tuple[Any, ...]]


def _answer(meter: Meter, rows: Overlaps) -> dict[str, Any]:
    """What every engine says: how many, and a number that is the same when the rows are."""
    import hashlib

    text = "\n".join(sorted("|".join(map(str, row)) for row in rows))
    return meter.row(overlaps=len(rows), digest=hashlib.sha256(text.encode()).hexdigest()[:12])


def by_spark(directory: Path, _: str) -> dict[str, Any]:
    """As the audit does it: what is out of order first, ownership of that only."""
    from pyspark.sql import functions as F
    from rebalance.pipeline.audit.ownership import KEY, intervals, meetings, screen
    from rebalance.pipeline.audit.rebalances import consumers

    with _spark() as spark, Meter() as meter:
        events = spark.read.parquet(str(directory / "events"))
        owned = intervals(events, screen(events).where("odd"), consumers(events)).where("start is not null")
        met = meetings(owned)
        rows = (
            met.where("a.ended is null or a.ended > b.began")
            .groupBy(*KEY, "b.began", "b.consumer", "b.ended")
            .agg(F.max(F.coalesce("a.ended", F.lit("9999-01-01").cast("timestamp"))).alias("reach"))
            .select(*KEY, F.unix_micros("began"), F.unix_micros(F.least("reach", "ended")))
            .collect()
        )
    return _answer(meter, [tuple(row) for row in rows])


def by_spark_sql(directory: Path, _: str) -> dict[str, Any]:
    """The text of the query, as DuckDB has it."""
    with _spark() as spark, Meter() as meter:
        spark.read.parquet(str(directory / "events")).createOrReplaceTempView("events")
        spark.conf.set("spark.sql.ansi.enabled", "true")
        spark.conf.set("spark.sql.ansi.doubleQuotedIdentifiers", "true")
        rows = spark.sql(
            f'SELECT "group", topic, "partition", unix_micros(began), unix_micros(ended) FROM ({QUERY})'
        ).collect()
    return _answer(meter, [tuple(row) for row in rows])


def by_duckdb(directory: Path, _: str) -> dict[str, Any]:
    """On two threads, with the memory that Spark's driver has."""
    try:
        import duckdb  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        sys.exit("the benchmark compares with DuckDB: pip install duckdb")
    with Meter() as meter:
        connection = duckdb.connect(config={"threads": 2, "memory_limit": "4GB"})
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(f"CREATE VIEW events AS FROM read_parquet('{directory / 'events'}/*.parquet')")
        rows = connection.execute(
            f'SELECT "group", topic, "partition", epoch_us(began), epoch_us(ended) FROM ({QUERY})'
        ).fetchall()
    return _answer(meter, rows)


def by_python(directory: Path, _: str) -> dict[str, Any]:
    """Dictionaries and lists, one process."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.dataset as ds

    with Meter() as meter:
        wanted = ds.field("kind").isin(["assigned", "revoked", "lost"])
        columns = {name: ds.field(name) for name in ("group", "topic", "partition", "consumer", "line")}
        at_micros = ds.field("at").cast(pa.timestamp("us", "UTC")).cast("int64")
        columns |= {"at": at_micros, "begins": pc.equal(ds.field("kind"), "assigned")}
        changes: dict[tuple[Any, ...], list[tuple[Any, ...]]] = defaultdict(list)
        for batch in ds.dataset(directory / "events").to_batches(columns=columns, filter=wanted):
            group, topic, partition, consumer, line, at, begins = (c.to_pylist() for c in batch.columns)
            keys = zip(group, topic, partition, strict=True)
            for key, *change in zip(keys, at, line, begins, consumer, strict=True):
                changes[key].append(tuple(change))
        rows: Overlaps = []
        for key, several in changes.items():
            several.sort()
            ended: dict[str, int] = {}
            owned = []
            for at, _line, begins, who in reversed(several):
                if begins:
                    owned.append((at, who, ended.get(who, END)))
                ended[who] = at
            reach = 0
            for at, _who, until in sorted(owned):
                if reach > at:
                    rows.append((*key, at, min(reach, until)))
                reach = max(reach, until)
    return _answer(meter, rows)


END = 253370764800 * 1_000_000
"""Later than all, in microseconds."""

JOBS: dict[str, Callable[[Path, str], dict[str, Any]]] = {
    "generate": generate,
    "write": write,
    "audit": audited,
    "Spark, as the audit": by_spark,
    "Spark, the SQL": by_spark_sql,
    "DuckDB": by_duckdb,
    "plain Python": by_python,
}
ENGINES = ("Spark, as the audit", "Spark, the SQL", "DuckDB", "plain Python")


def run(job: str, directory: Path, argument: str = "") -> dict[str, Any]:
    """A job in a process of its own; what it costs and says. Raises RuntimeError with what it wrote."""
    command = [sys.executable, "-m", "tools.benchmarks.audit", "--job", job, str(directory), argument]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=HERE.parent)
    if done.returncode:
        raise RuntimeError(f"{job}: {(done.stderr.strip().splitlines() or ['?'])[-1][:2000]}")
    row: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    print(f"{directory.name} {job} {argument}: {row}", flush=True)
    return row


HEAD = f"""# The audit, measured

Made by `python -m tools.benchmarks.audit` ({platform.machine()}, {os.cpu_count()} cores, Python
{platform.python_version()}, `{MASTER}`, driver memory {MEMORY}). Events of `pipeline.planted`: groups of 2 to
50 members that live as real ones do, with violations of every check planted in known places and a near miss
beside each. Every row is a process of its own. *CPU* is that of all processes, *memory* the peak of the
sum of their resident memory. The machine is shared: ratios and CPU seconds count, seconds less so.
"""

AUDITS = (
    *("events", "source", "seconds", "CPU s", "CPU us per event", "memory MiB"),
    *("planted", "missed", "invented", "not certain"),
)


def table(columns: tuple[str, ...], rows: list[tuple[Any, ...]]) -> str:
    body = [columns, ("---",) * len(columns), *rows]
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in body) + "\n"


def report(audits: list[tuple[Any, ...]], queries: list[tuple[Any, ...]]) -> None:
    text = [HEAD, "## The whole audit\n"]
    text.append("All checks and tables, of Parquet or from the text on. *Missed*: planted and not found.")
    text.append(
        "*Invented*: found, said to be certain, and not planted. *Not certain*: found, not planted, and"
    )
    text.append("said to be within what the clocks of the hosts may differ.\n")
    text.append(table(AUDITS, audits))
    text.append("## One query, three engines\n")
    text.append("Which partitions were owned by two at a time and for how long, of the same Parquet files.\n")
    columns = ("events", "engine", "seconds", "CPU s", "memory MiB", "overlaps", "seconds to DuckDB's")
    text.append(table(columns, queries))
    Path(__file__).with_suffix(".md").write_text("\n".join(text), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--events", default="1,10,50", help="sizes in millions (default: %(default)s)")
    parser.add_argument(
        "--text", default="1", help="those that are audited from text too (default: %(default)s)"
    )
    parser.add_argument("--keep", type=Path, help="where the logs are and stay (default: deleted at the end)")
    parser.add_argument("--job", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.job:
        job, directory, argument = given.job
        print(json.dumps(JOBS[job](Path(directory), argument)))
        return
    with contextlib.ExitStack() as stack:
        base = given.keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="audit-")))
        audits: list[tuple[Any, ...]] = []
        queries: list[tuple[Any, ...]] = []
        for millions in filter(None, given.events.split(",")):
            measure(base / f"events-{millions}", millions, millions in given.text.split(","), audits, queries)
            report(audits, queries)


def measure(
    directory: Path, millions: str, text: bool, audits: list[tuple[Any, ...]], queries: list[tuple[Any, ...]]
) -> None:
    """All rows of one size."""
    noted = directory / "generated.json"
    if not noted.exists():
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        noted.write_text(json.dumps(run("generate", directory, millions)))
    count = json.loads(noted.read_text())["events"]
    answers = {engine: run(engine, directory) for engine in ENGINES}
    for engine, row in answers.items():
        same = row["digest"] == answers["DuckDB"]["digest"]
        ratio = f"{row['seconds'] / answers['DuckDB']['seconds']:.1f}"
        cost = (f"{row['seconds']:.1f}", f"{row['cpu']:.1f}", row["mib"])
        overlaps = f"{row['overlaps']:,}" + ("" if same else " **(other rows)**")
        queries.append((f"{count:,}", engine, *cost, overlaps, ratio))
    forms = ["parquet"]
    if text:
        forms += ["events", "java-2.4", "java-4.0"]
    for form in forms:
        if form != "parquet" and not (directory / form / "_SUCCESS").exists():
            shutil.rmtree(directory / form, ignore_errors=True)
            run("write", directory, form)
        row = run("audit", directory, form)
        audits.append(
            (
                *(f"{count:,}", form, f"{row['seconds']:.1f}", f"{row['cpu']:.1f}"),
                *(f"{row['cpu'] / count * 1e6:.2f}", row["mib"]),
                *(row["planted"], row["missed"], row["invented"], row["uncertain"]),
            )
        )


if __name__ == "__main__":
    main()
