"""One audit from end to end: logs to events, events to findings, and of these as much as people read.

Everything that can be large stays with Spark and lies in Parquet below the output directory; each stage
reads what the one before has written. What is collected is bounded by the numbers below. Nothing here prints;
``gate.report.terminal.audit`` renders what comes out.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.metadata import version

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from rebalance.live.processes.supervision import noticed
from rebalance.pipeline.audit.audit import audit as judge
from rebalance.pipeline.audit.failures import of_spark, spark_message
from rebalance.pipeline.audit.kernel.findings import CHECKS
from rebalance.pipeline.audit.records import LogEvent, LogFinding, Recording
from rebalance.pipeline.audit.result import (
    Audited,
    AuditedGroup,
    AuditPlan,
    AuditSource,
    AuditTally,
    Clock,
    InputError,
    Malformed,
    Pause,
    absolute,
)
from rebalance.pipeline.audit.sources import distributed as sources
from rebalance.pipeline.audit.sources.settling import mixed
from rebalance.pipeline.audit.tables import around, file_name, finding, first, kept, make, rows, table
from rebalance.pipeline.session import session

MOST_FINDINGS = 1_000
"""In the JSON report. OUT/findings has all."""
MOST_TRACES = 100
MOST_ROWS = 50
"""Of groups, pauses and clocks, the worst first."""
MOST_MALFORMED = 5

TaskCount = Callable[[], tuple[int, int]]
"""Tasks that are done and that there are, of what Spark does at the moment; zeros where it does not tell."""
ReportProgress = Callable[[str, TaskCount], None]


def run_audit(plan: AuditPlan, report_progress: ReportProgress | None = None) -> Audited:
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


def _tasks(spark: SparkSession) -> tuple[int, int]:
    try:
        tracker = spark.sparkContext.statusTracker()
        stages = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
    except Exception:  # Spark Connect has no tracker, and a session that stops has none any more
        return 0, 0
    known = [stage for stage in stages if stage is not None]
    return sum(s.numCompletedTasks for s in known), sum(s.numTasks for s in known)


# -- the stages ----------------------------------------------------------------------------------------


def _read(spark: SparkSession, found: Audited) -> Audited:
    plan = found.plan
    staging = plan.table("staging")
    try:
        read = sources.read(
            spark, plan.absolute, plan.kind, zone=plan.zone, date=plan.date, staging=absolute(staging)
        )
    except ValueError as error:
        raise InputError(str(error)) from error
    events = read.events
    if plan.groups:
        events = events.where(F.col("group").isin(list(plan.groups)))
    saved = kept(spark, plan, events, "events")
    malformed = kept(spark, plan, read.malformed, "malformed")
    number = malformed.count()
    by_source = {
        row["source"]: row["events"]
        for row in rows(saved.groupBy("source").agg(F.count("*").alias("events")))
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
            make(
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
    found = replace(
        found,
        unread=tuple(one._replace(file=file_name(one.file)) for one in read.unread),
        notes=tuple(note for note in read.notes if not plan.groups or note.group in plan.groups),
        clients=tuple(one for one in read.clients if not plan.groups or one.group in plan.groups),
        until=read.until,
    )
    if not plan.data:
        shutil.rmtree(staging, ignore_errors=True)
    return found


def _check(spark: SparkSession, found: Audited) -> Audited:
    plan = found.plan
    judged = judge(table(spark, plan, "events"), plan.thresholds, until=found.until)
    unsure = F.col("group").isin(mixed(found.notes))
    findings = judged.findings.withColumn("certain", F.col("certain") & ~unsure)
    if plan.checks:
        findings = findings.where(F.col("check").isin(list(plan.checks)))
    kept(spark, plan, findings, "findings")
    for name in ("groups", "pauses", "clocks"):
        kept(spark, plan, getattr(judged, name), name)
    return found


def _summarise(spark: SparkSession, found: Audited) -> Audited:
    plan = found.plan
    findings, groups = table(spark, plan, "findings"), table(spark, plan, "groups")
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
    pauses = table(spark, plan, "pauses").orderBy(F.desc_nulls_last("longest"), "group")
    clocks = table(spark, plan, "clocks").orderBy(F.desc_nulls_last(F.abs("ahead")), "host")
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
        findings=tuple(map(finding, rows(first(findings, order, MOST_FINDINGS)) if tallies else ())),
        worst=tuple(make(AuditedGroup, row) for row in rows(worst.limit(MOST_ROWS))),
        pauses=tuple(make(Pause, row) for row in rows(pauses.limit(MOST_ROWS))),
        clocks=tuple(make(Clock, row) for row in rows(clocks.limit(MOST_ROWS))),
    )


def _record(spark: SparkSession, found: Audited) -> Audited:
    """What is around the first findings."""
    chosen = found.findings[:MOST_TRACES]
    if not chosen:
        return found
    events = around(spark, found.plan, chosen)
    return replace(
        found, recordings=tuple(recording(found.plan, one, events.get(one.id, ())) for one in chosen)
    )


def recording(plan: AuditPlan, found: LogFinding, events: Sequence[LogEvent]) -> Recording:
    """A finding with ``events`` around it, as it is saved."""
    check = CHECKS[found.check]
    return Recording(
        finding=found,
        rule=check.sentence,
        source=check.source,
        events=tuple(events),
        origin=plan.origin,
        suite_version=version("rebalance-verifier"),
    )


STAGES: dict[str, Callable[[SparkSession, Audited], Audited]] = {
    "reading": _read,
    "checking": _check,
    "summing up": _summarise,
    "saving traces": _record,
}
