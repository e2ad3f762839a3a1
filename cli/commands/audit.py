"""``rebalance audit``: what the logs of consumer groups that ran say against them."""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import time
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rebalance_verifier.base.names import unknown
from rebalance_verifier.base.saved import ROOT
from rebalance_verifier.base.verdict import Exit
from rebalance_verifier.cli.console.progress import counted, polled
from rebalance_verifier.cli.console.terminal import (
    UsageError,
    color,
    json_text,
    make_directory,
    print_err,
    print_json,
    print_out,
    print_text,
    usage_errors,
)
from rebalance_verifier.cli.shared.options import add_format, add_options
from rebalance_verifier.cli.shared.reports import Reports, results_directory
from rebalance_verifier.cli.shared.values import amount, duration, unless_all, whole
from rebalance_verifier.traces.recognise import EVENTS, LOG, LOGS, RECORDED, right_command

if TYPE_CHECKING:
    from rebalance_verifier.pipeline.audit.kernel.findings import Thresholds
    from rebalance_verifier.pipeline.audit.records import Recording
    from rebalance_verifier.pipeline.audit.result import Audited, AuditPlan
    from rebalance_verifier.pipeline.audit.run import TaskCount

SOURCES = (
    *("java", "librdkafka", "python", "kgo", "kafkajs", "sarama", "kafka-go", "connect", "share"),
    *("broker", "offsets", "events"),
)
"""``pipeline.audit.sources.parsing.KINDS``, which is heavy to import; a test compares them."""

REPORTS = ("text", "json", "html")
"""Formats of its own; those of CI systems come to these."""

TRACES = "traces"
"""The directory of traces in that of an audit."""


def add(commands: Any) -> argparse.ArgumentParser:
    """Add the command to the parser's ``commands``."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "audit",
        epilog="An audit is inconclusive when nothing is recognised, and when every finding may be "
        "due to clocks that differ.",
        description="Read the logs of consumers and brokers at PATH: files, directories, globs, "
        "compressed or not, or a URL of Spark. Rebuild which member owned which partition "
        "when. Report two owners, stranded partitions, and groups that never settle.",
    )
    parser.add_argument("paths", nargs="*", metavar="PATH")

    logs = parser.add_argument_group("the logs")
    logs.add_argument("--source", choices=SOURCES, help="only lines of this kind (each is recognised)")
    logs.add_argument("--zone", type=_zone, default="UTC", metavar="ZONE", help="time zone of times that "
                      "do not say theirs, such as Europe/Berlin (UTC)")  # fmt: skip
    logs.add_argument("--date", type=_date, metavar="YYYY-MM-DD", help="day of times that do not say theirs")
    logs.add_argument("--clock-skew", type=_skew, metavar="TIME", help="by how much the clocks of any "
                      "two hosts may differ (estimated from the logs)")  # fmt: skip
    add_options(logs, "--group")

    judged = parser.add_argument_group("what is judged")
    judged.add_argument("--check", action="append", default=[], metavar="ID",
                        help="only this one of `rebalance list checks`; repeatable")  # fmt: skip
    add_options(judged, "--level")
    judged.add_argument("--known", action="append", default=[], metavar="PATTERN|@FILE", help="findings "
                        "to expect: ids, or CHECK [group=NAME] [partition=NAME]; repeatable")  # fmt: skip
    judged.add_argument("--stranded", type=duration, metavar="TIME",
                        help="how long a partition may be without an owner (60 s)")  # fmt: skip
    add_options(judged, "--settle", settle=300.0)
    judged.add_argument("--storm", type=_storm, metavar="COUNT/TIME", help="how many rebalances in how "
                        "much time are too many (10/600 s)")  # fmt: skip
    judged.add_argument("--pause", type=duration, metavar="TIME", help="how long a rebalance may keep a "
                        "partition from everybody (300 s)")  # fmt: skip

    spark = parser.add_argument_group("Spark")
    add_options(spark, "--master")
    spark.add_argument("--driver-memory", type=amount, metavar="SIZE",
                       help="of the driver, in local mode all there is (1g)")  # fmt: skip

    shown = parser.add_argument_group(
        "what is shown",
        "Tables, traces and reports go to .rebalance/<time>, or to --out: a new directory, or a URL for the "
        "tables. report.html is the page for the incident review. Reports are text on the terminal, json "
        "and html, unless --report says otherwise; -v shows every finding, up to 1000, not the first 20.",
    )
    add_options(shown, "--out", "--report", "--ci", report="text,json,html")
    add_format(parser)
    add_options(shown, "--verbose", "--no-progress", "--no-color")
    live = parser.add_argument_group("while logs are written")
    live.add_argument("--follow", action="store_true", help="follow the logs and report each finding as it "
                      "is found, until Ctrl-C; PATH is a directory or file. Run again to go on")  # fmt: skip
    live.add_argument(
        "--once", action="store_true", help="with --follow: read what was written since, and end"
    )
    live.add_argument("--every", type=duration, default=10.0, metavar="TIME", help="with --follow: how "
                      "often to look (10 s)")  # fmt: skip
    return parser


def run(options: argparse.Namespace) -> int:
    """Run the command; return its exit code."""
    if not options.paths:
        raise UsageError("which logs? `rebalance audit PATH...`; `rebalance list checks` says what is asked")
    for path in options.paths:
        if other := right_command(Path(path), EVENTS, LOG, LOGS, RECORDED):
            raise UsageError(other)
    reports = Reports.wanted(options, REPORTS)
    if options.follow:
        return _follow(options)
    if options.once:
        raise UsageError("--once goes with --follow")
    from rebalance_verifier.report.ci import ci_reports
    from rebalance_verifier.report.html import audit as html
    from rebalance_verifier.report.terminal import audit

    found = saved(_audit(_plan(options), options))
    # The files first: who pipes the text into `head` has them all the same.
    own = {"json": lambda: json_text(audit.data(found)) + "\n", "html": lambda: html.render(found)}
    reports.directory = found.plan.out
    reports.finish(lambda: ci_reports.audited(found), own, noted=False)
    if options.format == "json":
        print_json(audit.data(found))
    elif "text" in reports.chosen:
        print_text(
            audit.render(found, verbose=bool(options.verbose), color=color(options), page=reports.page)
        )
    if found.interrupted:
        print_err(f"interrupted while {found.stage}; what is known by then is in {found.plan.out}")
    return int(found.exit)


# -- what is asked -------------------------------------------------------------------------------------


def _plan(options: argparse.Namespace) -> AuditPlan:
    from rebalance_verifier.base.known import KnownError
    from rebalance_verifier.pipeline.audit import known
    from rebalance_verifier.pipeline.audit.kernel.findings import CHECKS
    from rebalance_verifier.pipeline.audit.result import AuditPlan, InputError, keep_apart

    checks = unless_all(options.check)
    if others := [name for name in checks if name not in CHECKS]:
        raise UsageError(f"--check: {unknown('check', others[0], CHECKS, 'rebalance list checks')}")
    with usage_errors(InputError, option="--out"):
        keep_apart(options.out, options.paths)
    with usage_errors(KnownError):
        expected = known.read(options.known)
    out, data = _directory_to_follow(options) if options.follow else _directory(options.out)
    return AuditPlan(
        paths=tuple(options.paths),
        out=out,
        data=data,
        master=options.master or "",
        memory=f"{max(1, options.driver_memory // 2**20)}m" if options.driver_memory else "",
        kind=options.source,
        zone=options.zone,
        date=options.date,
        groups=tuple(dict.fromkeys(options.group)),
        checks=tuple(dict.fromkeys(checks)),
        level=options.level,
        known=expected,
        thresholds=_thresholds(options),
    )


def _thresholds(options: argparse.Namespace) -> Thresholds:
    from rebalance_verifier.pipeline.audit.kernel.findings import Thresholds

    storm, within = options.storm or (None, None)
    chosen = {**vars(options), "storm": storm, "storm_within": within}
    names = [one.name for one in fields(Thresholds)]
    return Thresholds(**{name: chosen[name] for name in names if chosen[name] is not None})


def _directory(out: str | None) -> tuple[Path, str]:
    """Where reports and traces go, and the URL for the tables, if there is one.

    Made before anything is read: that it cannot be made is better known now.
    """
    remote = out if out is not None and "://" in out else ""
    return results_directory(None if remote else out), remote.rstrip("/")


def _directory_to_follow(options: argparse.Namespace) -> tuple[Path, str]:
    """Where everything is kept, so that the next run goes on: it need not be new."""
    if "://" in str(options.out):
        raise UsageError(f"--out: {options.out} is no local directory, which --follow needs")
    return make_directory(Path(options.out or ROOT / "follow"), "--out"), ""


def _skew(text: str) -> float:
    return 0.0 if re.fullmatch(r"0+(\.0*)?", text) else duration(text)


def _storm(text: str) -> tuple[int, float]:
    number, slash, within = text.partition("/")
    if not slash:
        raise argparse.ArgumentTypeError(f"{text!r} is not COUNT/TIME, such as 10/600")
    return whole(number), duration(within)


def _zone(text: str) -> str:
    from rebalance_verifier.pipeline.audit.result import InputError, zone_of

    try:
        return zone_of(text)
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _date(text: str) -> str:
    from rebalance_verifier.pipeline.audit.result import InputError, day_of

    try:
        return day_of(text)
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


# -- running -------------------------------------------------------------------------------------------


def _audit(plan: AuditPlan, options: argparse.Namespace) -> Audited:
    from rebalance_verifier.pipeline.audit.result import InputError
    from rebalance_verifier.pipeline.audit.run import run_audit
    from rebalance_verifier.pipeline.session import Missing

    stage = _StageProgress()
    try:
        with polled(options, stage.line):
            return run_audit(plan, stage.begin)
    except (InputError, Missing) as error:
        _forget(plan)
        raise UsageError(str(error)) from error
    except OSError as error:
        raise UsageError(f"the results cannot be written: {error}") from error


class _StageProgress:
    """Stage of the work, and how many of Spark's tasks it has."""

    def __init__(self) -> None:
        self._name = ""
        self._probe: TaskCount = lambda: (0, 0)
        self._seen, self._began = ("", 0), time.monotonic()

    def begin(self, name: str, probe: TaskCount) -> None:
        """Begin a stage."""
        self._name, self._probe = name, probe

    def line(self) -> str:
        """The line of progress; the estimate is of this stage."""
        done, total = self._probe()
        if (self._name, total) != self._seen:
            self._seen, self._began = (self._name, total), time.monotonic()
        if not total:
            return self._name
        return f"{self._name}: {counted('tasks', done, total, time.monotonic() - self._began)}"


def _follow(options: argparse.Namespace) -> int:
    if len(options.paths) != 1:
        raise UsageError("--follow takes one directory, read with all below it, or one file")
    from rebalance_verifier.pipeline.audit.follow import follow_logs
    from rebalance_verifier.pipeline.audit.result import InputError
    from rebalance_verifier.pipeline.session import Missing
    from rebalance_verifier.report.terminal.audit import absent_text, finding_text
    from rebalance_verifier.traces import recordings
    from rebalance_verifier.traces.recordings import finding_out

    plan = _plan(options)

    def report(found: Sequence[Recording]) -> None:
        for one in found:
            recordings.save(one, plan.out / TRACES)
        for finding in (one.finding for one in found):
            as_json = options.format == "json"
            print_out(json.dumps(finding_out(finding)) if as_json else finding_text(finding, plan))

    try:
        with usage_errors(InputError, Missing):
            ended = follow_logs(
                plan,
                options.every,
                once=options.once,
                report=report,
                report_absent=lambda absent, there: print_err(absent_text(plan, absent, there)),
            )
    except KeyboardInterrupt:
        print_err(f"interrupted; the same command goes on from here, with what is in {plan.out}")
        return Exit.INTERRUPTED
    if ended.failed:
        print_err(f"ended: {ended.failed}; the same command goes on from here, with what is in {plan.out}")
    if ended.gap and not (ended.failed or ended.broken):
        print_err(f"not judged: {ended.gap}")
    return int(ended.exit)


def saved(audit: Audited) -> Audited:
    """With the traces on disk; a directory that cannot be written to does not cost the verdict."""
    from rebalance_verifier.traces import recordings

    paths: dict[str, str] = {}
    try:
        for one in audit.recordings:
            paths[one.finding.id] = str(recordings.save(one, audit.plan.out / TRACES))
    except OSError as error:
        return replace(audit, traces=paths, unsaved=str(error))
    return replace(audit, traces=paths)


def _forget(plan: AuditPlan) -> None:
    """Nothing was read: leave no empty directory behind."""
    with contextlib.suppress(OSError):
        plan.out.rmdir()
