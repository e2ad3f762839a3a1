"""One audit from end to end: logs to events, events to findings, and of these as much as people read.

Everything that can be large stays with Spark and lies in Parquet below the output directory; each stage
reads what the one before has written. What is collected is bounded by the numbers below. Nothing here prints;
``gate.report.terminal.audit`` renders what comes out.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from importlib.metadata import version
from itertools import zip_longest
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from rebalance.gate.traces import recordings
from rebalance.pipeline.audit.findings import CHECKS, AuditCheck, Thresholds
from rebalance.pipeline.audit.records import LEVELS, FindingOwner, LogEvent, LogFinding, Recording
from rebalance.pipeline.session import LOCAL, session
from rebalance.properties.verdict import Exit, Verdict

MOST_FINDINGS = 1_000
"""In the JSON report. OUT/findings has all."""
MOST_TRACES = 100
MOST_EVENTS = 200
"""Events in a trace."""
MOST_ROWS = 50
"""Of groups, pauses and clocks, the worst first."""
MOST_MALFORMED = 5

NEAR_PARTITION, NEAR_GROUP = 3600.0, 120.0
"""Seconds before and after a finding in which events of its partition, and others of its group, matter."""

Frame = Any
"""A DataFrame of Spark, which is imported in functions only."""

TaskCount = Callable[[], tuple[int, int]]
"""Tasks that are done and that there are, of what Spark does at the moment; zeros where it does not tell."""
ReportProgress = Callable[[str, TaskCount], None]


class InputError(ValueError):
    """Logs that cannot be read; the text says which and why."""


@dataclass(frozen=True, kw_only=True)
class AuditPlan:
    """What to audit and how.

    ``out`` is a local directory for reports and traces, ``data`` the directory or URL that Spark writes its
    tables to (``out`` where empty). ``kind``, ``zone`` and ``date`` are those of
    ``rebalance.pipeline.audit.sources.read``. ``groups`` and ``checks``: only these, empty for all.
    ``level``: the weakest that fails a run.
    """

    paths: tuple[str, ...]
    out: Path
    data: str = ""
    master: str = LOCAL
    memory: str = "4g"
    kind: str | None = None
    zone: str = "UTC"
    date: str | None = None
    groups: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    level: str = "liveness"
    thresholds: Thresholds = field(default_factory=Thresholds)

    def table(self, name: str) -> str:
        """Where the table of this name is."""
        return f"{self.data or self.out}/{name}"

    @property
    def absolute(self) -> tuple[str, ...]:
        """The paths, local ones from the root on: Spark need not run in this directory."""
        here = _literal(str(Path.cwd()))
        return tuple(path if "://" in path else os.path.join(here, path) for path in self.paths)

    @property
    def chosen_checks(self) -> tuple[AuditCheck, ...]:
        """The checks, the gravest first."""
        chosen = [c for c in CHECKS.values() if not self.checks or c.id in self.checks]
        return tuple(sorted(chosen, key=lambda c: LEVELS.index(c.level)))

    def gates(self, level: str) -> bool:
        """Whether a finding of this level fails the run."""
        return LEVELS.index(level) <= LEVELS.index(self.level)

    @property
    def origin(self) -> dict[str, Any]:
        """What a trace says about where it comes from."""
        origin: dict[str, Any] = {"paths": list(self.paths), "zone": self.zone}
        if self.kind:
            origin["source"] = self.kind
        return {
            **origin,
            **{name: value for name, value in asdict(self.thresholds).items() if value is not None},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSource:
    """What was read of one kind of log. ``source`` is "" for lines that nothing recognised."""

    source: str
    files: int
    lines: int
    recognised: int
    events: int


@dataclass(frozen=True, slots=True)
class Malformed:
    """A line that should have been an event."""

    file: str
    line: int
    text: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditTally:
    """The findings of one check: how many, how many of them certain, in how many groups, the longest."""

    check: str
    findings: int
    certain: int
    groups: int
    longest: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedGroup:
    """What is to be said of a group. ``settled``: it was, when the log ended."""

    group: str
    consumers: int
    partitions: int
    events: int
    rebalances: int
    first: str | None
    last: str | None
    settled: bool | None
    findings: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """How long the partitions of a group were with nobody when they changed hands, in seconds."""

    group: str
    handovers: int
    p50: float | None
    p95: float | None
    longest: float | None


@dataclass(frozen=True, slots=True)
class Clock:
    """By how many seconds the clock of a host is ahead of the others, and how sure that is."""

    host: str
    ahead: float | None
    spread: float | None
    samples: int


@dataclass(frozen=True, kw_only=True)
class Audited:
    """What came of it. ``findings``: the first, ``traces``: id of a finding -> its file.

    ``broken`` and ``groups`` count groups: those with a finding that fails the run, and all. ``stage`` is
    what was being done when it was ``interrupted`` or ``failed`` (with Spark's words), "" when it ended.
    """

    plan: AuditPlan
    sources: tuple[AuditSource, ...] = ()
    files: int = 0
    events: int = 0
    malformed: int = 0
    first_malformed: tuple[Malformed, ...] = ()
    tallies: tuple[AuditTally, ...] = ()
    broken: int = 0
    groups: int = 0
    findings: tuple[LogFinding, ...] = ()
    worst: tuple[AuditedGroup, ...] = ()
    pauses: tuple[Pause, ...] = ()
    clocks: tuple[Clock, ...] = ()
    traces: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    stage: str = ""
    interrupted: bool = False
    failed: str = ""
    unsaved: str = ""
    """Why traces are missing."""

    @property
    def lines(self) -> int:
        """How many lines were read."""
        return sum(source.lines for source in self.sources)

    @property
    def recognised(self) -> int:
        """How many of them say something."""
        return sum(source.recognised for source in self.sources)

    def count(self, *, gating: bool, certain: bool) -> int:
        """How many findings there are of the levels that fail the run (or the others), certain or not."""
        rows = [t for t in self.tallies if self.plan.gates(CHECKS[t.check].level) == gating]
        return sum(t.certain if certain else t.findings - t.certain for t in rows)

    @property
    def verdict(self) -> Verdict:
        """What is certain first; then whether all was read and judged, and nothing may be there."""
        if self.count(gating=True, certain=True):
            return Verdict.VIOLATION
        unfinished = self.stage or not self.events or self.count(gating=True, certain=False)
        return Verdict.INCONCLUSIVE if unfinished else Verdict.CONFORMANT

    @property
    def exit(self) -> Exit:
        """The exit code."""
        return Exit.of(self.verdict, interrupted=self.interrupted)


def audit(plan: AuditPlan, report_progress: ReportProgress | None = None) -> Audited:
    """Run ``plan``. Ctrl-C or an error of Spark's ends it early; what is known by then is returned.

    Raises SparkMissing, InputError, and OSError where nothing can be written.
    """
    started, signals = time.monotonic(), list[int]()
    found = Audited(plan=plan, stage="starting Spark")
    try:
        if report_progress is not None:
            report_progress(found.stage, lambda: (0, 0))
        with session(plan.master, memory=plan.memory) as spark, noticed(signals):
            for name, stage in STAGES.items():
                found = replace(found, stage=name)
                if report_progress is not None:
                    report_progress(name, lambda: _tasks(spark))
                found = stage(spark, found)
                if not found.events:
                    break
            found = replace(found, stage="")
    except KeyboardInterrupt:
        found = replace(found, interrupted=True)
    except Exception as error:
        if signals:
            found = replace(found, interrupted=True)
        elif of_spark(error):
            found = replace(found, failed=spark_message(error))
        else:
            raise
    return replace(found, seconds=time.monotonic() - started)


def spark_message(error: Exception) -> str:
    """What an error of Spark's says, in one line: what follows is where in Java it came from."""
    lines = [line.strip(": ") for line in str(error).splitlines() if line.strip(": ")]
    messages = [line for line in lines if not line.startswith("An error occurred while calling")]
    return messages[0] if messages else type(error).__name__


@contextlib.contextmanager
def noticed(arrived: list[int]) -> Iterator[None]:
    """Note the signals that arrive: Py4J may make an error of its own of their KeyboardInterrupt."""
    before: dict[int, Callable[[int, Any], Any]] = {}

    def note(number: int, frame: Any) -> None:
        arrived.append(number)
        before[number](number, frame)

    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        handler = signal.getsignal(number) if number else None
        if number and callable(handler):
            with contextlib.suppress(ValueError):  # not in the main thread
                signal.signal(number, note)
                before[number] = handler
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def of_spark(error: Exception) -> bool:
    """Whether Spark gave up while it ran, and not because it was asked for nonsense."""
    kinds = type(error).__mro__
    mistaken = any(kind.__name__ in ("AnalysisException", "ParseException") for kind in kinds)
    return not mistaken and any(kind.__module__.partition(".")[0] in ("pyspark", "py4j") for kind in kinds)


def _tasks(spark: Any) -> tuple[int, int]:
    try:
        tracker = spark.sparkContext.statusTracker()
        stages = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
    except Exception:  # Spark Connect has no tracker, and a session that stops has none any more
        return 0, 0
    known = [stage for stage in stages if stage is not None]
    return sum(s.numCompletedTasks for s in known), sum(s.numTasks for s in known)


# -- the stages ----------------------------------------------------------------------------------------


def _read(spark: Any, found: Audited) -> Audited:
    from pyspark.sql import functions as F
    from rebalance.pipeline.audit import sources

    plan = found.plan
    staging = plan.table("staging")
    try:
        read = sources.read(
            spark, plan.absolute, plan.kind, zone=plan.zone, date=plan.date, staging=_absolute(staging)
        )
    except ValueError as error:
        raise InputError(str(error)) from error
    events = read.events
    if plan.groups:
        events = events.where(F.col("group").isin(list(plan.groups)))
    kept = _kept(spark, plan, events, "events")
    malformed = _kept(spark, plan, read.malformed, "malformed")
    number = malformed.count()
    by_source = {
        row["source"]: row["events"] for row in rows(kept.groupBy("source").agg(F.count("*").alias("events")))
    }
    lines = read.lines.select("file", "lines", "recognised", F.coalesce("source", F.lit("")).alias("source"))
    totals = lines.rollup("source").agg(
        F.count_distinct("file").alias("files"),
        F.sum("lines").alias("lines"),
        F.sum("recognised").alias("recognised"),
    )
    by_lines = {row["source"]: row for row in rows(totals)}
    whole = by_lines.pop(None, {"files": 0})
    nothing = {"files": 0, "lines": 0, "recognised": 0}
    names = sorted({*by_lines, *by_source}, key=lambda name: (not name, name))
    found = replace(
        found,
        sources=tuple(
            _make(
                AuditSource,
                {**nothing, **by_lines.get(name, {}), "source": name, "events": by_source.get(name, 0)},
            )
            for name in names
        ),
        files=whole["files"],
        events=sum(by_source.values()),
        malformed=number,
        first_malformed=tuple(
            Malformed(file_name(row["file"]), int(row["line"]), row["text"] or "", row["why"] or "")
            for row in (rows(malformed.orderBy("file", "line").limit(MOST_MALFORMED)) if number else ())
        ),
    )
    if not plan.data:
        shutil.rmtree(staging, ignore_errors=True)
    return found


def _check(spark: Any, found: Audited) -> Audited:
    from pyspark.sql import functions as F
    from rebalance.pipeline.audit.audit import audit as judge

    plan = found.plan
    judged = judge(_table(spark, plan, "events"), plan.thresholds)
    findings = judged.findings
    if plan.checks:
        findings = findings.where(F.col("check").isin(list(plan.checks)))
    _kept(spark, plan, findings, "findings")
    for name in ("groups", "pauses", "clocks"):
        _kept(spark, plan, getattr(judged, name), name)
    return found


def _summarise(spark: Any, found: Audited) -> Audited:
    from pyspark.sql import functions as F

    plan = found.plan
    findings, groups = _table(spark, plan, "findings"), _table(spark, plan, "groups")
    failing = [check.id for check in plan.chosen_checks if plan.gates(check.level)]
    breaks = F.col("certain") & F.col("check").isin(failing)
    counted = findings.rollup("check").agg(
        F.count("*").alias("findings"),
        F.sum(F.col("certain").cast("int")).alias("certain"),
        F.count_distinct("group").alias("groups"),
        F.max("seconds").alias("longest"),
        F.count_distinct(F.when(breaks, F.col("group"))).alias("broken"),
    )
    tallies = {row["check"]: row for row in rows(counted)}
    whole = tallies.pop(None, {"broken": 0})
    of_group = findings.groupBy("group").agg(F.count("*").alias("findings"))
    worst = (
        groups.join(of_group, "group", "left")
        .withColumn("findings", F.coalesce("findings", F.lit(0)))
        .orderBy(F.desc("findings"), F.desc("rebalances"), "group")
    )
    pauses = _table(spark, plan, "pauses").orderBy(F.desc_nulls_last("longest"), "group")
    clocks = _table(spark, plan, "clocks").orderBy(F.desc_nulls_last(F.abs("ahead")), "host")
    order = [check.id for check in plan.chosen_checks]
    return replace(
        found,
        tallies=tuple(
            AuditTally(
                check=name,
                findings=r["findings"],
                certain=r["certain"],
                groups=r["groups"],
                longest=r["longest"],
            )
            for name, r in sorted(tallies.items(), key=lambda one: order.index(one[0]))
        ),
        broken=whole["broken"],
        groups=groups.count(),
        findings=tuple(map(_finding, rows(_first(findings, order, MOST_FINDINGS)) if tallies else ())),
        worst=tuple(_make(AuditedGroup, row) for row in rows(worst.limit(MOST_ROWS))),
        pauses=tuple(_make(Pause, row) for row in rows(pauses.limit(MOST_ROWS))),
        clocks=tuple(_make(Clock, row) for row in rows(clocks.limit(MOST_ROWS))),
    )


def _record(spark: Any, found: Audited) -> Audited:
    """The traces. A place that cannot be written to does not cost the verdict."""
    plan = found.plan
    chosen = found.findings[:MOST_TRACES]
    if not chosen:
        return found
    around = _around(spark, plan, chosen)
    paths: dict[str, str] = {}
    try:
        for one in chosen:
            check = CHECKS[one.check]
            recording = Recording(
                finding=one,
                rule=check.sentence,
                source=check.source,
                events=around.get(one.id, ()),
                origin=plan.origin,
                suite_version=version("rebalance-verifier"),
            )
            paths[one.id] = str(recordings.save(recording, plan.out / "traces"))
    except OSError as error:
        return replace(found, traces=paths, unsaved=str(error))
    return replace(found, traces=paths)


STAGES: dict[str, Callable[[Any, Audited], Audited]] = {
    "reading": _read,
    "checking": _check,
    "summing up": _summarise,
    "saving traces": _record,
}


# -- tables --------------------------------------------------------------------------------------------


def _kept(spark: Any, plan: AuditPlan, frame: Frame, name: str) -> Frame:
    """The same rows, from the table that they are written to."""
    frame.write.mode("overwrite").parquet(_absolute(plan.table(name)))
    return _table(spark, plan, name)


def _table(spark: Any, plan: AuditPlan, name: str) -> Frame:
    return spark.read.parquet(_literal(_absolute(plan.table(name))))


def _absolute(path: str) -> str:
    return path if "://" in path else os.path.abspath(path)


def _literal(path: str) -> str:
    """A path to read from that is no pattern, whatever is in its name."""
    return re.sub(r"([\[\]{}*?\\])", r"\\\1", path)


def rows(frame: Frame) -> Iterator[dict[str, Any]]:
    """The rows of a frame that is known to be small, as JSON values; times are text, in UTC.

    By way of JSON, because Python's times would be those of the time zone of this machine.
    """
    from pyspark.sql import functions as F

    options = {
        "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
        "timeZone": "UTC",
        "ignoreNullFields": "false",
    }
    for row in frame.select(F.to_json(F.struct("*"), options).alias("json")).collect():
        yield json.loads(row["json"])


def _make(kind: type[Any], row: Mapping[str, Any]) -> Any:
    return kind(**{name: row.get(name) for name in kind.__dataclass_fields__})


def _first(findings: Frame, order: Sequence[str], most: int) -> Frame:
    """The first findings: of each check the first, then of each the second, so that none is crowded out.

    Within a check what is certain comes first, then what lasts longest.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    longest = Window.partitionBy("check").orderBy(F.desc("certain"), F.desc("seconds"), "began", "id")
    gravity = F.array_position(F.array(*map(F.lit, order)), F.col("check"))
    return (
        findings.withColumn("place", F.row_number().over(longest))
        .where(F.col("place") <= most)
        .orderBy("place", gravity)
        .limit(most)
        .drop("place")
    )


def as_findings(frame: Frame) -> list[LogFinding]:
    """The rows of a small frame of ``rebalance.pipeline.audit.findings.FINDINGS``, in its order."""
    return [_finding(row) for row in rows(frame)]


def _finding(row: Mapping[str, Any]) -> LogFinding:
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


def _around(spark: Any, plan: AuditPlan, findings: Sequence[LogFinding]) -> dict[str, tuple[LogEvent, ...]]:
    """Id of a finding -> the events around it, at most MOST_EVENTS, in order.

    Of other partitions nothing; events of the consumers concerned and of the coordinator first, then those
    of others in the group, the nearest in time first.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

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
    events = _table(spark, plan, "events")
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
