"""``rebalance audit``: what the logs of consumer groups that ran say against them."""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import sys
import threading
import time
import zoneinfo
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rebalance.gate.cli import report_options
from rebalance.gate.cli.console.terminal import (
    EXITS,
    ROOT,
    UsageError,
    amount,
    color,
    draw,
    positive,
    print_err,
    print_out,
    usage,
    whole,
)

if TYPE_CHECKING:
    from rebalance.pipeline.audit.findings import Thresholds
    from rebalance.pipeline.audit.records import Recording
    from rebalance.pipeline.audit.result import Audited, AuditPlan
    from rebalance.pipeline.audit.run import TaskCount

SOURCES = ("java", "librdkafka", "broker", "events")
"""``rebalance.pipeline.audit.sources.KINDS``, which only Spark can import; a test compares them."""

REPORTS = ("text", "json", "html")
"""Formats of its own; those of CI systems (`rebalance.gate.cli.writers.CI_WRITERS`) come to these."""

TRACES = "traces"
"""The directory of traces in that of an audit."""


def add(commands: Any) -> None:
    """Add the command to the parser's ``commands``."""
    parser = commands.add_parser(
        "audit",
        help="check the logs of groups that ran",
        epilog=f"{EXITS}. An audit is inconclusive when nothing is recognised, and when every finding may be "
        "due to clocks that differ.",
        description="Read the logs of consumers and brokers at PATH (files, directories, globs, or what else "
        "Spark reads, compressed or not), rebuild who owned which partition when, and report what must not "
        "be: two owners, stranded partitions, groups that never settle.",
    )
    parser.set_defaults(run=run)
    parser.add_argument("paths", nargs="*", metavar="PATH")
    parser.add_argument("--list", action="store_true", help="list the checks")

    logs = parser.add_argument_group("the logs")
    logs.add_argument("--source", choices=SOURCES, help="only lines of this kind (each is recognised)")
    logs.add_argument("--zone", type=_zone, default="UTC", metavar="ZONE", help="time zone of times that "
                      "do not say theirs, such as Europe/Berlin (UTC)")  # fmt: skip
    logs.add_argument("--date", type=_date, metavar="YYYY-MM-DD", help="day of times that do not say theirs")
    logs.add_argument("--clock-skew", type=_seconds, metavar="SECONDS", help="by how much the clocks of any "
                      "two hosts may differ (estimated from the logs)")  # fmt: skip
    logs.add_argument(
        "--group", action="append", default=[], metavar="NAME", help="only this group; repeatable"
    )

    judged = parser.add_argument_group("what is judged")
    judged.add_argument(
        "--check", action="append", default=[], metavar="ID", help="only this check; repeatable"
    )
    judged.add_argument("--level", choices=("safety", "liveness", "quality"), default="liveness",
                        help="the weakest level that fails the run; others inform (liveness)")  # fmt: skip
    judged.add_argument("--stranded", type=positive, metavar="SECONDS",
                        help="how long a partition may be without an owner (60)")  # fmt: skip
    judged.add_argument(
        "--settle", type=positive, metavar="SECONDS", help="how long a rebalance may take (300)"
    )
    judged.add_argument("--storm", type=_storm, metavar="COUNT/SECONDS", help="how many rebalances in how "
                        "much time are too many (10/600)")  # fmt: skip
    judged.add_argument("--pause", type=positive, metavar="SECONDS", help="how long a rebalance may keep a "
                        "partition from everybody (300)")  # fmt: skip

    spark = parser.add_argument_group("Spark")
    spark.add_argument("--master", metavar="URL", help="local[N], spark://HOST:PORT, or sc://HOST:PORT for "
                       "Spark Connect (local[*], all cores of this machine)")  # fmt: skip
    spark.add_argument("--memory", type=amount, default=4 * 2**30, metavar="SIZE",
                       help="of the driver, in local mode all there is (4g)")  # fmt: skip

    shown = parser.add_argument_group("what is shown")
    shown.add_argument("--out", metavar="DIR", help="a new directory for tables, traces and reports, or a "
                       "URL for the tables (.rebalance/<time>)")  # fmt: skip
    shown.add_argument("--report", default="text,json,html", metavar="FORMAT[,...]", help="text on "
                       "the terminal; in DIR json, html (these), junit, sarif, markdown")  # fmt: skip
    report_options.add_ci(shown)
    shown.add_argument("--format", choices=("text", "json"), default="text", help="what is printed")
    shown.add_argument(
        "-v", "--verbose", action="store_true", help="every finding, up to 1000, not the first 20"
    )
    live = parser.add_argument_group("while logs are written")
    live.add_argument("--follow", action="store_true", help="go on, and tell what is found as it is found, "
                      "until Ctrl-C; PATH is one directory or file. Run again it goes on")  # fmt: skip
    live.add_argument(
        "--once", action="store_true", help="with --follow: read what was written since, and end"
    )
    live.add_argument("--every", type=positive, default=10.0, metavar="SECONDS", help="with --follow: how "
                      "often to look (10)")  # fmt: skip

    shown.add_argument("--no-progress", action="store_true", help="no progress line on the terminal")
    shown.add_argument("--no-color", action="store_true", help="also by the variable NO_COLOR")


def run(options: argparse.Namespace) -> int:
    """The command."""
    from rebalance.gate.cli.writers import CI_WRITERS

    if options.list:
        print_out(_listed(options.format))
        return 0
    if not options.paths:
        raise UsageError("which logs? `rebalance audit PATH...`; `--list` describes the checks")
    reports = report_options.formats(options, (*REPORTS, *CI_WRITERS))
    if options.follow:
        return _follow(options)
    if options.once:
        raise UsageError("--once goes with --follow")
    found = _saved(_audit(_plan(options), options))
    # The files first: who pipes the text into `head` has them all the same.
    _write(found, reports, options)
    if options.format == "json":
        from rebalance.gate.report.terminal.audit import data

        print_out(json.dumps(data(found), indent=2))
    elif "text" in reports:
        from rebalance.gate.report.terminal.audit import render

        print_out(render(found, verbose=options.verbose, color=color(options)))
    if found.interrupted:
        print_err(f"interrupted while {found.stage}; what is known by then is in {found.plan.out}")
    return int(found.exit)


# -- what is asked -------------------------------------------------------------------------------------


def _plan(options: argparse.Namespace) -> AuditPlan:
    from rebalance.pipeline.audit.findings import CHECKS
    from rebalance.pipeline.audit.result import AuditPlan
    from rebalance.pipeline.session import LOCAL

    if unknown := [name for name in options.check if name not in CHECKS]:
        raise UsageError(f"--check: no check is called {unknown[0]!r}; there are: {', '.join(CHECKS)}")
    _apart(options.out, options.paths)
    out, data = _directory_to_follow(options) if options.follow else _directory(options.out)
    return AuditPlan(
        paths=tuple(options.paths),
        out=out,
        data=data,
        master=options.master or LOCAL,
        memory=f"{max(1, options.memory // 2**20)}m",
        kind=options.source,
        zone=options.zone,
        date=options.date,
        groups=tuple(dict.fromkeys(options.group)),
        checks=tuple(dict.fromkeys(options.check)),
        level=options.level,
        thresholds=_thresholds(options),
    )


def _thresholds(options: argparse.Namespace) -> Thresholds:
    from rebalance.pipeline.audit.findings import Thresholds

    storm, within = options.storm or (None, None)
    chosen = {
        "stranded": options.stranded,
        "settle": options.settle,
        "storm": storm,
        "storm_within": within,
        "pause": options.pause,
        "clock_skew": options.clock_skew,
    }
    return Thresholds(**{name: value for name, value in chosen.items() if value is not None})


def _apart(out: str | None, paths: Sequence[str]) -> None:
    """Refuse results among the logs: the next audit would read them. Spark passes over hidden directories."""
    for path in paths if out is not None and "://" not in out else ():
        results, logs = Path(str(out)).resolve(), Path(path).resolve()
        if not logs.is_dir() or not results.is_relative_to(logs):
            continue
        if not any(part.startswith((".", "_")) for part in results.relative_to(logs).parts):
            raise UsageError(f"--out: {out} is within {path}, which is read; name another directory")


def _directory(out: str | None) -> tuple[Path, str]:
    """Where reports and traces go, and the URL for the tables, if there is one.

    Made before anything is read: that it cannot be made is better known now.
    """
    from rebalance.gate.traces import files

    remote = out if out is not None and "://" in out else ""
    try:
        if out is None or remote:
            return files.run_directory(ROOT, datetime.now(UTC)), remote.rstrip("/")
        directory = Path(out)
        directory.mkdir(parents=True, exist_ok=True)
        if any(directory.iterdir()):
            raise UsageError(
                f"--out: {out} is not empty; name a new directory, so that nothing is overwritten"
            )
    except OSError as error:
        raise UsageError(f"no directory for the results: {error}") from error
    return directory, ""


def _directory_to_follow(options: argparse.Namespace) -> tuple[Path, str]:
    """Where everything is kept, so that the next run goes on: it need not be new."""
    out = Path(options.out or ROOT / "follow")
    if "://" in str(options.out):
        raise UsageError(f"--out: {options.out} is no local directory, which --follow needs")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"no directory for the results: {error}") from error
    return out, ""


def _seconds(text: str) -> float:
    return 0.0 if re.fullmatch(r"0+(\.0*)?", text) else positive(text)


def _storm(text: str) -> tuple[int, float]:
    number, slash, within = text.partition("/")
    if not slash:
        raise argparse.ArgumentTypeError(f"{text!r} is not COUNT/SECONDS, such as 10/600")
    return whole(number), positive(within)


def _zone(text: str) -> str:
    if re.fullmatch(r"[+-]\d\d:\d\d", text) or text == "UTC":
        return text
    with contextlib.suppress(KeyError, ValueError, OSError):
        return zoneinfo.ZoneInfo(text).key
    raise argparse.ArgumentTypeError(f"{text!r} is no time zone, such as Europe/Berlin or +02:00")


def _date(text: str) -> str:
    with contextlib.suppress(ValueError):
        return date.fromisoformat(text).isoformat()
    raise argparse.ArgumentTypeError(f"{text!r} is not a day, such as 2026-11-21")


# -- running -------------------------------------------------------------------------------------------


def _audit(plan: AuditPlan, options: argparse.Namespace) -> Audited:
    from rebalance.pipeline.audit.result import InputError
    from rebalance.pipeline.audit.run import run_audit
    from rebalance.pipeline.session import SparkMissing

    try:
        with _ticker(options) as report_progress:
            return run_audit(plan, report_progress)
    except (SparkMissing, InputError) as error:
        _forget(plan)
        raise usage(error) from error
    except OSError as error:
        raise UsageError(f"the results cannot be written: {error}") from error


def _follow(options: argparse.Namespace) -> int:
    if len(options.paths) != 1:
        raise UsageError("--follow takes one directory, read with all below it, or one file")
    from rebalance.gate.report.terminal.audit import finding_text
    from rebalance.gate.traces import recordings
    from rebalance.pipeline.audit.following import follow_logs
    from rebalance.pipeline.audit.result import InputError
    from rebalance.pipeline.session import SparkMissing

    plan = _plan(options)

    def report(found: Sequence[Recording]) -> None:
        for one in found:
            recordings.save(one, plan.out / TRACES)
        for one in found:
            as_json = options.format == "json"
            print_out(
                json.dumps(recordings.finding_out(one.finding))
                if as_json
                else finding_text(one.finding, plan)
            )

    try:
        ended = follow_logs(plan, options.every, once=options.once, report=report)
    except (SparkMissing, InputError) as error:
        raise usage(error) from error
    except KeyboardInterrupt:
        print_err(f"interrupted; the same command goes on from here, with what is in {plan.out}")
        return 130
    if ended.failed:
        print_err(f"ended: {ended.failed}; the same command goes on from here, with what is in {plan.out}")
    return int(ended.exit)


def _saved(found: Audited) -> Audited:
    """With the traces on disk; a directory that cannot be written to does not cost the verdict."""
    from rebalance.gate.traces import recordings

    paths: dict[str, str] = {}
    try:
        for one in found.recordings:
            paths[one.finding.id] = str(recordings.save(one, found.plan.out / TRACES))
    except OSError as error:
        return replace(found, traces=paths, unsaved=str(error))
    return replace(found, traces=paths)


def _forget(plan: AuditPlan) -> None:
    """Nothing was read: leave no empty directory behind."""
    with contextlib.suppress(OSError):
        plan.out.rmdir()


def _write(found: Audited, reports: tuple[str, ...], options: argparse.Namespace) -> None:
    """The reports; a place that cannot be written to does not cost the verdict."""
    from rebalance.gate.report.ci import ci_reports
    from rebalance.gate.report.html import audit as audit_html
    from rebalance.gate.report.terminal import audit

    own = {
        "json": ("report.json", lambda: json.dumps(audit.data(found), indent=2) + "\n"),
        "html": ("report.html", lambda: audit_html.render(found)),
    }
    report_options.finish(
        lambda: ci_reports.audited(found), found.plan.out, reports, own, options, noted=False
    )


@contextlib.contextmanager
def _ticker(options: argparse.Namespace) -> Iterator[Callable[[str, TaskCount], None] | None]:
    """A progress line on a terminal only: the stage, and how many of Spark's tasks are done."""
    if options.no_progress or not sys.stderr.isatty():
        yield None
        return
    now: list[tuple[str, TaskCount]] = []
    ended = threading.Event()

    def show() -> None:
        seen, began = ("", 0), time.monotonic()
        while not ended.wait(0.5):
            if not now:
                continue
            stage, probe = now[-1]
            done, total = probe()
            if (stage, total) != seen:
                seen, began = (stage, total), time.monotonic()
            line = stage
            if total:
                left = (total - done) * (time.monotonic() - began) / max(done, 1)
                line += f": {done:,} of {total:,} tasks" + (
                    f", about {left:.0f} s left of this step" if done else ""
                )
            draw(line)

    thread = threading.Thread(target=show, daemon=True)
    thread.start()
    try:
        yield lambda stage, probe: now.append((stage, probe))
    finally:
        ended.set()
        thread.join(5)
        draw()


# -- the list ------------------------------------------------------------------------------------------


def _listed(form: str) -> str:
    from rebalance.gate.cli.console.text import fold
    from rebalance.pipeline.audit.findings import CHECKS

    if form == "json":
        checks = [
            {"check": c.id, "level": c.level, "sentence": c.sentence, "source": c.source}
            for c in CHECKS.values()
        ]
        return json.dumps(checks, indent=2)
    lines = []
    for check in CHECKS.values():
        first, *rest = fold(f"{check.sentence} ({check.source})", 72)
        lines += [f"{check.id:<24}{check.level:<10}{first}", *(f"{'':<34}{line}" for line in rest)]
    return "\n".join(lines)
