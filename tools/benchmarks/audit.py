"""What an audit costs and what it finds, into tools/benchmarks/audit.md.

``python -m tools.benchmarks.audit [--events 1,10,50] [--text 1] [--keep DIR]``: millions of events of
``tools.planted.logs`` and of ``tools.planted.second``, which share no code, written once as Parquet. Each
measurement is a process of its own: the audit in one process, and on Spark. The machine may be shared: CPU
seconds and ratios count.
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


def other(directory: Path, millions: str) -> dict[str, Any]:
    """Write events and truth by the second generator."""
    from tools.planted import second

    with Meter() as meter:
        count = second.write(directory, events=round(float(millions) * 1e6), seed=1)
    return meter.row(events=count)


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
    from rebalance.pipeline.audit.result import AuditPlan
    from rebalance.pipeline.audit.run import run_audit

    form, _, driver = argument.partition(":")
    out = directory / "audited"
    shutil.rmtree(out, ignore_errors=True)
    plan = AuditPlan(paths=(str(directory / form),), out=out, master="" if driver == "one" else driver)
    with Meter() as meter:
        found = run_audit(plan)
    if found.failed:
        raise RuntimeError(found.failed)
    return meter.row(events=found.events, **score(directory / "truth", out / "findings"))


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


HEAD = f"""# The audit, measured

Made by `python -m tools.benchmarks.audit` ({platform.machine()}, {os.cpu_count()} cores, Python
{platform.python_version()}, `{MASTER}`). Events of `tools.planted`: groups of 2 to
50 members that live as real ones do, with violations of every check planted in known places and a near miss
beside each. Every row is a process of its own. *CPU* is that of all processes, *memory* the peak of the
sum of their resident memory. The machine is shared: ratios and CPU seconds count, seconds less so.
"""

AUDITS = (
    *("events", "generator", "source", "driver", "seconds", "CPU s", "CPU us per event", "memory MiB"),
    *("planted", "missed", "invented", "not certain"),
)


def table(columns: tuple[str, ...], rows: list[tuple[Any, ...]]) -> str:
    body = [columns, ("---",) * len(columns), *rows]
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in body) + "\n"


def report(audits: list[tuple[Any, ...]]) -> None:
    text = [HEAD]
    text.append("All checks and tables, of Parquet or from the text on. *Missed*: planted and not found.")
    text.append(
        "*Invented*: found, said to be certain, and not planted. *Not certain*: found, not planted, and"
    )
    text.append("said to be within what the clocks of the hosts may differ.\n")
    text.append(table(AUDITS, audits))
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
        for millions in filter(None, given.events.split(",")):
            for generator in GENERATORS:
                directory = base / f"{generator}-{millions}"
                forms = ["events"]
                if millions in given.text.split(",") and generator == "generate":
                    forms += ["text", "java-2.4", "java-4.0"]
                audits += measure(directory, generator, millions, forms)
                report(audits)


GENERATORS = {"generate": "first", "other": "second"}


def measure(directory: Path, generator: str, millions: str, forms: list[str]) -> list[tuple[Any, ...]]:
    """All rows of one size and generator."""
    noted = directory / "generated.json"
    if not noted.exists():
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        noted.write_text(json.dumps(run(generator, directory, millions)))
    rows = []
    for form in forms:
        if form != "events" and not (directory / form / "_SUCCESS").exists():
            shutil.rmtree(directory / form, ignore_errors=True)
            run("write", directory, form)
        for driver in DRIVERS:
            row = run("audit", directory, f"{form}:{driver}")
            count = row["events"]
            rows.append(
                (
                    *(f"{count:,}", GENERATORS[generator], FORMS.get(form, form)),
                    *("one process" if driver == "one" else f"Spark {driver}",),
                    *(f"{row['seconds']:.1f}", f"{row['cpu']:.1f}"),
                    *(f"{row['cpu'] / count * 1e6:.2f}", row["mib"]),
                    *(row["planted"], row["missed"], row["invented"], row["uncertain"]),
                )
            )
    return rows


FORMS = {"events": "Parquet", "text": "JSON lines"}


if __name__ == "__main__":
    main()
