"""One audit from end to end: logs to events, events to findings, and of these as much as people read.

Everything that can be large lies in Parquet below the output directory. What is collected is bounded by the
numbers below. Nothing here prints; ``report.terminal.audit`` renders what comes out.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.util import find_spec

from rebalance_verifier.base.processes.supervision import record_signals
from rebalance_verifier.pipeline.audit import alone, kernel, known
from rebalance_verifier.pipeline.audit.diagnosis import diagnose
from rebalance_verifier.pipeline.audit.engine import Engine, message, of_engine
from rebalance_verifier.pipeline.audit.kernel.findings import CHECKS
from rebalance_verifier.pipeline.audit.pointers import pointer
from rebalance_verifier.pipeline.audit.records import LogEvent, LogFinding, Recording
from rebalance_verifier.pipeline.audit.result import (
    Audited,
    AuditedGroup,
    AuditPlan,
    AuditSource,
    AuditTally,
    Clock,
    InputError,
    Malformed,
    Pause,
    Unlogged,
)
from rebalance_verifier.pipeline.audit.sources.settling import LoggedClient, mixed, on_several_clusters
from rebalance_verifier.pipeline.audit.tables import file_name, first, make, micros, moment, rows, wanted

MAX_FINDINGS = 1_000
"""In the JSON report. OUT/findings has all."""
MAX_TRACES = 100
MAX_ROWS = 50
"""Of groups, pauses and clocks, the worst first."""
MAX_MALFORMED = 5

LARGE = 512 << 20
"""Bytes of logs from which on Spark is used where it is installed, without being asked for."""

TaskCount = Callable[[], tuple[int, int]]
"""Tasks that are done and that there are, of what is done at the moment; zeros where nobody knows."""
ReportProgress = Callable[[str, TaskCount], None]


def run_audit(plan: AuditPlan, report_progress: ReportProgress | None = None) -> Audited:
    """Run ``plan``. Ctrl-C or an error of Spark's ends it early; what is known by then is returned.

    Raises Missing, InputError, and OSError where nothing can be written.
    """
    started, signals = time.monotonic(), list[int]()
    driver = engine(plan)
    found = Audited(plan=plan, stage=driver.stage)
    try:
        if report_progress is not None:
            report_progress(found.stage, lambda: (0, 0))
        with driver as ready, record_signals(signals):
            for name, stage in STAGES.items():
                found = replace(found, stage=name)
                if report_progress is not None:
                    report_progress(name, ready.tasks)
                found = stage(ready, found)
                if not found.events:
                    break
            found = replace(found, stage="")
    except KeyboardInterrupt:
        found = replace(found, interrupted=True)
    except Exception as error:
        if signals:
            found = replace(found, interrupted=True)
        elif of_engine(error):
            found = replace(found, failed=message(error))
        else:
            raise
    return replace(found, seconds=time.monotonic() - started)


def engine(plan: AuditPlan) -> Engine:
    """Spark where the plan asks for it, or where the logs are large or far away; or else this process.

    Raises InputError for logs that are not there.
    """
    try:
        here = not plan.master and (find_spec("pyspark") is None or alone.fits(plan, LARGE))
    except ValueError as error:
        raise InputError(str(error)) from error
    if here:
        return alone.Alone(plan)
    from rebalance_verifier.pipeline.audit.spread import OnSpark

    return OnSpark(plan)


# -- the stages ----------------------------------------------------------------------------------------


def _read(driver: Engine, found: Audited) -> Audited:
    chosen = found.plan.groups
    try:
        read = driver.read()
    except ValueError as error:
        raise InputError(str(error)) from error
    lines = """
        SELECT coalesce(source, '') AS source, count(DISTINCT file) AS files,
            sum(lines)::BIGINT AS lines, sum(recognised)::BIGINT AS recognised
        FROM lines GROUP BY ALL
    """
    by_lines = {row["source"]: row for row in rows(driver.connection, lines)}
    # Of which group a line is that is not understood, its text says at best.
    whole, malformed, ours = driver.connection.execute(
        """
        SELECT
            (SELECT count(DISTINCT file) FROM lines), count(*),
            count_if(len($1::VARCHAR[]) = 0 OR list_bool_or([contains(text, name) FOR name IN $1::VARCHAR[]]))
        FROM malformed
        """,
        [list(chosen)],
    ).fetchall()[0]
    nothing = {"files": 0, "lines": 0, "recognised": 0}
    names = sorted({*by_lines, *read.events}, key=lambda name: (not name, name))
    notes = [*read.notes, *on_several_clusters(read.clients)]
    worst = f"SELECT * FROM malformed ORDER BY file, line LIMIT {MAX_MALFORMED}"
    return replace(
        found,
        sources=tuple(
            make(
                AuditSource,
                {**nothing, **by_lines.get(name, {}), "source": name, "events": read.events.get(name, 0)},
            )
            for name in names
        ),
        files=whole,
        events=sum(read.events.values()),
        malformed=malformed,
        not_understood=ours,
        first_malformed=tuple(
            Malformed(file_name(row["file"]), int(row["line"]), row["text"] or "", row["why"] or "")
            for row in rows(driver.connection, worst)
        ),
        until=None if read.until is None else moment(read.until),
        unread=tuple(one._replace(file=file_name(one.file)) for one in read.unread),
        notes=tuple(note for note in notes if not chosen or note.group in chosen),
        clients=tuple(one for one in read.clients if not chosen or one.group in chosen),
        absent=tuple(name for name in chosen if name not in read.groups) if read.groups else (),
        others=read.groups,
    )


def _check(driver: Engine, found: Audited) -> Audited:
    assert found.until is not None
    driver.judge(micros(found.until))
    kernel.finish(driver.connection)
    kernel.doubt(driver.connection, mixed(found.notes))
    kernel.misread(driver.connection)
    if chosen := found.plan.checks:
        others = 'DELETE FROM findings WHERE NOT list_contains(?, "check")'
        driver.connection.execute(others, [list(chosen)])
    count, unmatched = known.set_aside(driver.connection, found.plan.known, datetime.now(UTC).date())
    if found.plan.known:
        driver.save("known", "SELECT * FROM known ORDER BY id")
    driver.save("findings", "SELECT * FROM findings ORDER BY id")
    for name, order in (("groups", "group"), ("pauses", "group"), ("clocks", "host")):
        driver.save(name, f'SELECT * FROM {name} ORDER BY "{order}"')
    return replace(found, known=count, unmatched=unmatched)


def _summarise(driver: Engine, found: Audited) -> Audited:
    plan, connection = found.plan, driver.connection
    failing = [check.id for check in plan.chosen_checks if plan.gates(check.level)]
    tallies = """
        SELECT "check", count(*) AS findings, count_if(certain) AS certain, count(DISTINCT "group") AS groups,
            max(seconds) AS longest
        FROM findings GROUP BY "check"
    """
    broken = 'SELECT count(DISTINCT "group") FROM findings WHERE certain AND list_contains(?, "check")'
    worst = f"""
        SELECT
            groups.* REPLACE ({_text("first")} AS first, {_text("last")} AS last),
            coalesce(found, 0) AS findings
        FROM groups
        LEFT JOIN (SELECT "group", count(*) AS found FROM findings GROUP BY "group") USING ("group")
        ORDER BY findings DESC, rebalances DESC, "group"
        LIMIT {MAX_ROWS}
    """
    order = [check.id for check in plan.chosen_checks]
    gravity = sorted(rows(connection, tallies), key=lambda row: order.index(row["check"]))
    ((groups, blind, still, silent),) = connection.execute(
        "SELECT count(*), count_if(partitions = 0), "
        """count_if(rebalances = 0 AND "group" NOT IN (SELECT "group" FROM findings)), """
        "coalesce(sum(silent), 0)::BIGINT FROM groups"
    ).fetchall()
    missing = 'SELECT "group", members, missing FROM groups WHERE missing > 0 ORDER BY missing DESC, "group"'
    ((failed,),) = connection.execute(broken, [failing]).fetchall()
    return replace(
        found,
        tallies=tuple(make(AuditTally, row) for row in gravity),
        broken=failed,
        groups=groups,
        blind=blind,
        still=still,
        silent=silent,
        # Whose lines are taken for one member's is not missing.
        unlogged=tuple(
            Unlogged(**row)
            for row in rows(connection, f"{missing} LIMIT {MAX_ROWS}")
            if row["group"] not in mixed(found.notes)
        ),
        findings=tuple(first(connection, order, MAX_FINDINGS)),
        worst=tuple(make(AuditedGroup, row) for row in rows(connection, worst)),
        pauses=tuple(
            make(Pause, row)
            for row in rows(
                connection, f'SELECT * FROM pauses ORDER BY longest DESC, "group" LIMIT {MAX_ROWS}'
            )
        ),
        clocks=tuple(
            make(Clock, row)
            for row in rows(
                connection, f"SELECT * FROM clocks ORDER BY abs(ahead) DESC, host LIMIT {MAX_ROWS}"
            )
        ),
    )


def _text(column: str) -> str:
    return f"strftime(make_timestamp(epoch_us({column})), '%Y-%m-%dT%H:%M:%S.%fZ')"


def _record(driver: Engine, found: Audited) -> Audited:
    """Record the events around the first findings, and the bugs of the catalogue that they are or may be."""
    chosen = found.findings[:MAX_TRACES]
    if not chosen:
        return found
    events = driver.around(wanted(chosen))
    clients: dict[str, list[LoggedClient]] = defaultdict(list)
    for client in found.clients:
        clients[client.group].append(client)
    return replace(
        found,
        recordings=tuple(recording(found.plan, one, events.get(one.id, ())) for one in chosen),
        diagnoses={
            one.id: diagnose(one, events.get(one.id, one.places), clients[one.group])
            for one in found.findings
        },
        pointers={
            one.id: cause for one in found.findings if (cause := pointer(one, events.get(one.id, one.places)))
        },
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


STAGES: dict[str, Callable[[Engine, Audited], Audited]] = {
    "reading": _read,
    "checking": _check,
    "summing up": _summarise,
    "saving traces": _record,
}
