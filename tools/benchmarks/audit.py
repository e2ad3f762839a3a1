"""What an audit costs and what it finds, into tools/benchmarks/audit.md.

``python -m tools.benchmarks.audit [--events 1,10,50] [--text 1] [--skew 10] [--keep DIR]``: millions of
events of ``tools.planted.logs`` and of ``tools.planted.second``, which share no code, written once as
Parquet. Each measurement is a process of its own: the audit in one process, and on Spark. The machine may be
shared: CPU seconds and ratios count. With ``--keep`` what was measured is not measured again, so that a run
that was interrupted goes on; the page says of which commit each row is.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
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
MASTER, MEMORY = "local[2]", "2g"
PER_MILLION = 340
"""Groups, each of about 3,000 events."""
REBALANCES = 50
NEAR = 10_000_000
"""A finding is the planted one when it begins within so many microseconds of it."""

PAGE, TICK = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_CLK_TCK")


class Meter:
    """Seconds, CPU seconds and the peak memory of this process and all below it, while the block runs; the
    CPU without what looking at them takes."""

    def __enter__(self) -> Meter:
        self.began, self.peak, self._own = time.monotonic(), 0, 0.0
        self._spent: dict[int, float] = {}
        self._look()
        self._before = sum(self._spent.values())
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._look()
        self.seconds = time.monotonic() - self.began
        self.cpu = sum(self._spent.values()) - self._before - self._own

    def _watch(self) -> None:
        while not self._stop.wait(0.2):
            self._look()
            self._own = time.thread_time()

    def _look(self) -> None:
        """Note what each process has used by now: nobody can be asked who has ended, and not all are waited
        for by those above them."""
        below: dict[int, list[int]] = defaultdict(list)
        used: dict[int, tuple[float, int]] = {}
        space: dict[int, str] = {}  # size of the address space
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            with contextlib.suppress(OSError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                below[int(fields[1])].append(int(entry.name))
                used[int(entry.name)] = sum(map(int, fields[11:13])) / TICK, int(fields[21]) * PAGE
                space[int(entry.name)] = fields[20]
        todo, memory = [os.getpid()], 0
        while todo:
            one = todo.pop()
            seconds, resident = used.get(one, (0.0, 0))
            memory += resident
            self._spent[one] = max(seconds, self._spent.get(one, 0.0))
            # A JVM that starts a program is there twice for a moment, with the same memory.
            todo += [child for child in below[one] if space.get(child) != space.get(one)]
        self.peak = max(self.peak, memory)

    def row(self, **more: Any) -> dict[str, Any]:
        return {"seconds": self.seconds, "cpu": self.cpu, "mib": self.peak // 2**20, **more}


# The jobs, each in a process of its own. A directory has events, truth, and what comes of them.


@contextlib.contextmanager
def _spark() -> Iterator[Any]:
    from rebalance_verifier.pipeline.session import session

    with session(MASTER, memory=MEMORY) as spark:
        yield spark


def generate(directory: Path, millions: str) -> dict[str, Any]:
    """Write events and truth."""
    from rebalance_verifier.pipeline.audit.kernel.findings import CHECKS

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


def other(directory: Path, millions: str) -> dict[str, Any]:
    """Write events and truth by the second generator."""
    from tools.planted import second

    with Meter() as meter:
        count = second.write(directory, events=round(float(millions) * 1e6), seed=1)
    return meter.row(events=count)


def skewed(directory: Path, source: str) -> dict[str, Any]:
    """Write the events of ``source`` with nine tenths of all groups under one name, whose consumers are kept
    apart: it has the lives of hundreds."""
    import duckdb

    large = 'hash("group") % 10 < 9'
    renamed = f"""
        SELECT * REPLACE (
            CASE WHEN {large} THEN "group" || '/' || consumer ELSE consumer END AS consumer,
            CASE WHEN {large} THEN 'large' ELSE "group" END AS "group"
        ) FROM read_parquet('{source}/events/*.parquet')
    """
    with Meter() as meter, duckdb.connect(config={"memory_limit": "1GiB"}) as connection:
        connection.execute("SET preserve_insertion_order = false")
        connection.execute(f"COPY ({renamed}) TO '{directory}/events' (FORMAT parquet, PER_THREAD_OUTPUT)")
        counted = "SELECT count(*), count_if(\"group\" = 'large') FROM read_parquet(?)"
        ((events, of_large),) = connection.execute(counted, [f"{directory}/events/*.parquet"]).fetchall()
    return meter.row(events=events, of_large=of_large)


def write(directory: Path, form: str) -> dict[str, Any]:
    """Write the events as text; ``form`` as in ``planted_text``."""
    from tools.planted.text import lines

    with _spark() as spark, Meter() as meter:
        events = spark.read.parquet(str(directory / "events"))
        lines(events, "events" if form == "text" else form).write.partitionBy("file").text(
            str(directory / form)
        )
    return meter.row(bytes=sum(path.stat().st_size for path in (directory / form).rglob("*.txt")))


def audited(directory: Path, argument: str) -> dict[str, Any]:
    """The whole audit with its tables: ``argument`` is FORM:DRIVER, a driver "one" or a master of Spark."""
    from rebalance_verifier.pipeline.audit.result import AuditPlan
    from rebalance_verifier.pipeline.audit.run import run_audit

    form, _, driver = argument.partition(":")
    out = directory / "audited"
    shutil.rmtree(out, ignore_errors=True)
    plan = AuditPlan(paths=(str(directory / form),), out=out, master="" if driver == "one" else driver)
    with Meter() as meter:
        audit = run_audit(plan)
    if audit.failed:
        raise RuntimeError(audit.failed)
    scored = score(directory / "truth", out / "findings") if (directory / "truth").exists() else {}
    return meter.row(events=audit.events, found=fingerprint(out / "findings"), **scored)


def fingerprint(findings: Path) -> str:
    """The same for the same findings."""
    import pyarrow.parquet as pq

    table = pq.read_table(findings).sort_by("id").to_pylist()
    return hashlib.sha256(repr([sorted(row.items()) for row in table]).encode()).hexdigest()[:16]


def score(truth: Path, findings: Path) -> dict[str, Any]:
    """Of what is planted, what was found; of what was found and is certain, what was not planted."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = ["check", "group", "topic", "partition", "began"]

    def rows(path: Path, *more: str) -> list[dict[str, Any]]:
        table = pq.read_table(path, columns=[*columns, *more])
        began = table["began"].cast(pa.timestamp("us")).cast(pa.int64())  # in UTC, whether it says so or not
        changed = table.set_column(table.schema.get_field_index("began"), "began", began)
        return changed.to_pylist()  # type: ignore[no-any-return]

    def key(row: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(row[name] for name in columns[:-1])

    planted: dict[tuple[Any, ...], list[Any]] = defaultdict(list)
    for row in rows(truth):
        planted[key(row)].append(row["began"])
    found: dict[tuple[Any, ...], list[Any]] = defaultdict(list)
    uncertain, invented = 0, []
    for row in rows(findings, "certain"):
        found[key(row)].append(row["began"])
        if not any(abs(row["began"] - other) <= NEAR for other in planted[key(row)]):
            uncertain += not row["certain"]
            if row["certain"]:
                invented.append([*map(str, key(row)), str(row["began"])])
    missed = [
        [*map(str, where), str(began)]
        for where, several in planted.items()
        for began in several
        if not any(abs(began - other) <= NEAR for other in found[where])
    ]
    return {
        "planted": sum(map(len, planted.values())),
        "missed": len(missed),
        "invented": len(invented),
        "uncertain": uncertain,
        "which": sorted(missed)[:5] + sorted(invented)[:5],
    }


JOBS: dict[str, Callable[[Path, str], dict[str, Any]]] = {
    "generate": generate,
    "write": write,
    "other": other,
    "skewed": skewed,
    "audit": audited,
}
DRIVERS = ("one", MASTER)
"""One process, and Spark."""


def run(job: str, directory: Path, argument: str = "") -> dict[str, Any]:
    """A job in a process of its own; what it costs and says. Raises RuntimeError with what it wrote."""
    command = [sys.executable, "-m", "tools.benchmarks.audit", "--job", job, str(directory), argument]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=HERE.parents[1])
    if done.returncode:
        raise RuntimeError(f"{job}: {(done.stderr.strip().splitlines() or ['?'])[-1][:2000]}")
    row: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    print(f"{directory.name} {job} {argument}: {row}", flush=True)
    return row


def measured(directory: Path, argument: str) -> dict[str, Any]:
    """An audit (``audited``), measured once in this directory, with its commit and the load when it began."""
    noted = directory / f"{argument.replace(':', '-')}.json"
    if not noted.exists():
        git = ("git", "rev-parse", "--short=8", "HEAD")
        commit = subprocess.run(git, capture_output=True, text=True, check=False, cwd=HERE).stdout.strip()
        row = {"commit": commit, "load": os.getloadavg()[0], **run("audit", directory, argument)}
        noted.write_text(json.dumps(row))
    return json.loads(noted.read_text())  # type: ignore[no-any-return]


HEAD = f"""# The audit, measured

Made by `python -m tools.benchmarks.audit` ({platform.machine()}, {os.cpu_count()} cores, Python
{platform.python_version()}, `{MASTER}`). Events of `tools.planted`: groups of 2 to
50 members that live as real ones do, with violations of every check planted in known places and a near miss
beside each. Every row is a process of its own. *CPU* is that of all processes, *memory* the peak of the
sum of their resident memory. The machine is shared: *load* is its average when a row began, and CPU seconds
grow with it, so that only rows of about the same load compare.

All checks and tables, of Parquet or from the text on. *Missed*: planted and not found.
*Invented*: found, said to be certain, and not planted. *Not certain*: found, not planted, and
said to be within what the clocks of the hosts may differ.
"""

AUDITS = (
    *("events", "generator", "source", "driver", "seconds", "CPU s", "CPU us per event", "memory MiB"),
    *("load", "commit", "planted", "missed", "invented", "not certain"),
)
COSTS = AUDITS[:10]


def table(columns: tuple[str, ...], rows: list[tuple[Any, ...]]) -> str:
    body = [columns, ("---",) * len(columns), *rows]
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in body) + "\n"


Rows = list[dict[str, Any]]


def report(audits: Rows, skew: Rows) -> None:
    """Write the page."""
    text = [HEAD, table(AUDITS, [(*costs(row), *marks(row)) for row in audits])]
    if lines := [*beside(audits), *flat(audits)]:
        text += ["## Spark beside one process, and many events beside few", "", *lines, ""]
    if skew:
        text += ["## Skew", "", f"One group has {skew[0]['of_large']:,} of the events; without truth.", ""]
        text += [table(COSTS, [costs(row) for row in skew])]
        alike = len({row["found"] for row in skew}) == 1
        text += [f"The findings are {'the same' if alike else 'NOT the same'} in all of these rows.", ""]
    Path(__file__).with_suffix(".md").write_text("\n".join(text).rstrip() + "\n", encoding="utf-8")


def costs(row: dict[str, Any]) -> tuple[Any, ...]:
    return (
        *(f"{row['events']:,}", row["generator"], FORMS.get(row["form"], row["form"])),
        *("one process" if row["driver"] == "one" else f"Spark {row['driver']}",),
        *(f"{row['seconds']:.1f}", f"{row['cpu']:.1f}", f"{each(row):.2f}", row["mib"]),
        *(f"{row['load']:.0f}", row["commit"]),
    )


def marks(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["planted"], row["missed"], row["invented"], row["uncertain"]


def each(row: dict[str, Any]) -> float:
    """CPU microseconds per event."""
    return float(row["cpu"]) / int(row["events"]) * 1e6


def beside(rows: Rows) -> Iterator[str]:
    """Of the same events: Spark beside one process."""
    alone = {(row["directory"], row["form"]): row for row in rows if row["driver"] == "one"}
    for row in rows:
        other = alone.get((row["directory"], row["form"]))
        if row["driver"] != "one" and other is not None:
            form = FORMS.get(row["form"], row["form"])
            yield (
                f"- {row['events']:,} events, {row['generator']} generator, {form}: "
                f"{row['cpu']:.1f} CPU s on Spark, {other['cpu']:.1f} in one process, "
                f"{row['cpu'] / other['cpu']:.2f} times."
            )


def flat(rows: Rows) -> Iterator[str]:
    """Of the same generator and driver: what an event costs beside one of ten millions."""
    parquet = [row for row in rows if row["form"] == "events" and row["events"] > 5e6]
    few = {(row["generator"], row["driver"]): row for row in reversed(parquet)}
    for row in parquet:
        first = few[row["generator"], row["driver"]]
        if row is not first:
            yield (
                f"- {row['generator']} generator, {row['driver']}: an event of {row['events']:,} costs "
                f"{each(row) / each(first):.2f} times one of {first['events']:,}."
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--events", default="1,10,50", help="sizes in millions (default: %(default)s)")
    parser.add_argument(
        "--text", default="1", help="those that are audited from text too (default: %(default)s)"
    )
    parser.add_argument(
        "--skew", default="10", help="those of which one group has nine tenths, too (default: %(default)s)"
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
        audits: Rows = []
        skew: Rows = []
        for millions in filter(None, given.events.split(",")):
            for generator in GENERATORS:
                directory = base / f"{generator}-{millions}"
                forms = ["events"]
                if millions in given.text.split(",") and generator == "generate":
                    forms += ["text", "java-2.4", "java-4.0"]
                made(directory, generator, millions)
                audits += measure(directory, generator, forms)
                report(audits, skew)
            if millions in given.skew.split(","):
                directory = base / f"skewed-{millions}"
                of_large = made(directory, "skewed", str(base / f"generate-{millions}"))["of_large"]
                skew += [{**row, "of_large": of_large} for row in measure(directory, "generate", ["events"])]
                report(audits, skew)


GENERATORS = {"generate": "first", "other": "second"}


def made(directory: Path, job: str, argument: str) -> dict[str, Any]:
    """The events of a directory, written once."""
    noted = directory / "generated.json"
    if not noted.exists():
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        noted.write_text(json.dumps(run(job, directory, argument)))
    return json.loads(noted.read_text())  # type: ignore[no-any-return]


def measure(directory: Path, generator: str, forms: list[str]) -> Rows:
    """All rows of the events of a directory."""
    rows = []
    for form in forms:
        if form != "events" and not (directory / form / "_SUCCESS").exists():
            shutil.rmtree(directory / form, ignore_errors=True)
            run("write", directory, form)
        for driver in DRIVERS:
            what = {"directory": str(directory), "generator": GENERATORS[generator]}
            rows.append({**measured(directory, f"{form}:{driver}"), **what, "form": form, "driver": driver})
    return rows


FORMS = {"events": "Parquet", "text": "JSON lines"}


if __name__ == "__main__":
    main()
