"""``rebalance check``: the verdict on an assignor; with ``--adapter`` first aid for whoever writes one."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rebalance_verifier.base.saved import ROOT
from rebalance_verifier.base.text import count
from rebalance_verifier.cli.commands.code_search import run_in_group
from rebalance_verifier.cli.console.progress import Stages, counted, polled
from rebalance_verifier.cli.console.terminal import (
    UsageError,
    clean,
    color,
    print_err,
    print_text,
    unicode,
    usage_errors,
    write,
)
from rebalance_verifier.cli.shared.options import CONFINED, REPORTS, add_java, add_options
from rebalance_verifier.cli.shared.reports import Reports
from rebalance_verifier.cli.shared.targets import clauses, protocols, resolved, session, target_of

if TYPE_CHECKING:
    from rebalance_verifier.gate.search.known import KnownFailure
    from rebalance_verifier.gate.search.plan import CheckPlan
    from rebalance_verifier.gate.search.progress import CheckProgress
    from rebalance_verifier.gate.search.result import Result
    from rebalance_verifier.gate.targets.resolve import Target
    from rebalance_verifier.gate.targets.session import Session


def add(commands: Any) -> argparse.ArgumentParser:
    """Add the command to the parser's ``commands``."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "check",
        description="Property-based testing: search for groups and histories in which TARGET breaks the "
        "contract of an assignor, and shrink them.",
    )
    parser.add_argument(
        "target",
        nargs="?",
        metavar="TARGET",
        help="reference assignor (cooperative-sticky), +SWITCH for a bug. module:attribute. "
        "ADAPTER:NAME (kafka-python:sticky). java:CLASS. client:NAME:ASSIGNOR or `wire -- "
        "COMMAND ...` over the wire. `-- COMMAND ...` for JSON lines",
    )
    parser.add_argument("--adapter", action="store_true", help="try the adapter only: handshake and "
                        "three assignments")  # fmt: skip
    parser.add_argument("--validate", action="store_true", help="with --adapter: validate messages by "
                        "JSON Schema")  # fmt: skip
    add_options(
        parser, "--clause", "--protocol", "--level", "--profile", "--seed", "--time-limit", profile="ci"
    )
    add_options(parser, "--without")
    parser.add_argument("--topics", action="append", default=[], metavar="NAME[,NAME...]",
                        help="call the topics of all scenarios so, for an assignor that looks for "
                        "names; repeatable")  # fmt: skip
    parser.add_argument("--with", dest="beside", action="append", default=[], metavar="CLIENT[,CLIENT...]",
                        help="let members write in turn what these clients do, client:NAME[==RELEASE] "
                        "(client:... and wire only)")  # fmt: skip
    parser.add_argument("--fail-fast", action="store_true", help="stop at the first violation")
    parser.add_argument("--known-failing", action="append", default=[], metavar="PATTERN|@FILE",
                        help="expect these violations; fail on an entry that is not needed")  # fmt: skip
    parser.add_argument("--known-flaky", action="append", default=[], metavar="PATTERN|@FILE",
                        help="accept these violations, present or absent")  # fmt: skip
    parser.add_argument("--write-known", metavar="FILE", type=Path, help="write the list of known failures "
                        "with which this run passes")  # fmt: skip
    parser.add_argument("--in-group", action="store_true", help="use Kafka's own consumers and "
                        "coordinator (java:CLASS only)")  # fmt: skip
    add_options(parser, *REPORTS, "--resume", "--jobs", *CONFINED, "--verbose", "--no-color", "--no-progress")
    add_java(parser)
    return parser


def run(options: argparse.Namespace) -> int:
    """Run the command; return its exit code."""
    from rebalance_verifier.base.processes.workers import processors
    from rebalance_verifier.gate.scenarios.exclusions import refuse_tasks
    from rebalance_verifier.gate.scenarios.topics import refuse_names
    from rebalance_verifier.gate.search import counterexamples, resume
    from rebalance_verifier.gate.search.judgement import allow
    from rebalance_verifier.gate.search.progress import CheckProgress
    from rebalance_verifier.gate.search.search import check, describe

    if options.adapter:
        return _try_adapter(target_of(options), options)
    if options.in_group:
        return run_in_group(options, target_of(options))
    if options.validate:
        raise UsageError("--validate goes with --adapter")
    reports = Reports.wanted(options, ("text", "json", "html"), ("text", "html"))
    failing = _known(options.known_failing, "--known-failing")
    flaky = _known(options.known_flaky, "--known-flaky")
    plan = _plan(options, (*failing, *flaky))
    if options.write_known and not options.write_known.parent.is_dir():
        raise UsageError(f"--write-known: no directory {str(options.write_known.parent)!r}")
    target = target_of(options)
    plan = replace(plan, beside=_beside(target.spec, options.beside))
    with session(target, options) as talk:
        with usage_errors(ValueError, option="--without"):
            refuse_tasks(plan.without, talk.hello.protocols)
        with usage_errors(ValueError, option="--topics"):
            refuse_names(plan.topics, plan.protocols or talk.hello.protocols)
        info = describe(target.spec, talk.hello)
        reports.open()  # a target that does not start leaves none
        saved = ROOT / "resume" / f"{resume.key(info, plan)}.json"
        state = _resumed(saved) if options.resume else CheckProgress()
        stages = Stages()
        with polled(options, stages.line):
            jobs = int(options.jobs or processors())
            shown = progress_of(stages)
            result = check(plan, talk, info, progress=state, fresh=talk.close, jobs=jobs, **shown)
    result = allow(result, failing, flaky, date.today())
    result = _consulted(result, options)
    try:
        result = counterexamples.save_all(result, ROOT)
    except OSError as error:  # which does not cost the verdict
        print_err(f"the counterexamples cannot be saved: {error}")
    _report(result, reports, options)
    if options.write_known:
        _write_known(result, failing, options.write_known)
    _keep(saved, state, result, resume.unfinished(state, plan, info))
    return int(result.exit)


def _consulted(result: Result, options: argparse.Namespace) -> Result:
    """Return a result with what the runtime makes of its findings, where they are about tasks."""
    from rebalance_verifier.gate.targets.session import Session
    from rebalance_verifier.model.values import OF_TASKS

    if not any(row.finding and row.protocol in OF_TASKS for row in result.clauses):
        return result  # the runtime is loaded for no other
    from rebalance_verifier.gate.search import second_judge
    from rebalance_verifier.gate.search.time_limit import TimeLimits

    latest = TimeLimits.of(options.time_limit, options.began).consulted

    def opening(spec: str) -> Session:
        target = resolved(spec, (), options)
        talk = Session(target, call_seconds=options.call_seconds, memory_mib=options.memory_mib)
        talk.latest = latest
        return talk

    return second_judge.consult(result, opening, latest)


def progress_of(stages: Stages) -> dict[str, Any]:
    """Return what `check` reports to, so that ``stages`` shows it."""
    stages.enter("searching")
    return {
        "report_progress": lambda now, total: stages.show(partial(_line, now, total)),
        "report_stage": partial(_stage, stages),
    }


def _line(now: CheckProgress, total: int) -> str:
    broken = f", {count(len(now.breaking), 'clause')} broken" if now.breaking else ""
    return counted("scenarios", now.played, total, now.seconds) + broken


def _stage(stages: Stages, name: str, done: int, total: int) -> None:
    if total:
        stages.enter(name)
        stages.show(lambda: f"{done} of {total}, {stages.elapsed}")


def _resumed(saved: Path) -> CheckProgress:
    from rebalance_verifier.gate.search import resume

    with usage_errors(ValueError):
        found = resume.load(saved)
    print_err(f"going on after scenario {found.done}" if found.done else "nothing to resume: a new start")
    return found


def _keep(saved: Path, progress: CheckProgress, result: Result, unfinished: bool) -> None:
    """Leave behind where an unfinished search stands, and nothing of a finished one."""
    from rebalance_verifier.base import saved as files
    from rebalance_verifier.gate.search import resume

    try:
        if not (result.interrupted or unfinished):
            saved.unlink(missing_ok=True)
            return
        files.make_root(ROOT)
        resume.save(saved, progress)
        print_err("interrupted; " * result.interrupted + "the same command with --resume goes on from here")
    except OSError as error:
        print_err(f"where the search stands cannot be saved: {error}")


def _write_known(result: Result, old: Sequence[KnownFailure], path: Path) -> None:
    from rebalance_verifier.base.verdict import Level
    from rebalance_verifier.gate.search import known
    from rebalance_verifier.gate.search.result import Status

    if result.interrupted or result.missed:
        print_err(f"{path} is not written: the search did not come to its end")
        return
    # What only informs passes without being on the list.
    level = Level(result.level)
    rows = [r for r in result.clauses if r.status is not Status.VIOLATED or r.clause.level.gates(level)]
    write(path, known.write(rows, old, date.today()), "--write-known")
    print_err(f"known failures written to {path}")


def _plan(options: argparse.Namespace, expected: Sequence[KnownFailure]) -> CheckPlan:
    from rebalance_verifier.base.verdict import Level
    from rebalance_verifier.gate.search.known import match
    from rebalance_verifier.gate.search.plan import PROFILES, CheckPlan

    seed = options.seed
    if seed is None:
        seed = 0 if options.profile in ("smoke", "ci") else int.from_bytes(os.urandom(4))
    today = date.today()
    return CheckPlan(
        clauses=clauses(options.clause),
        protocols=None if options.protocol == "auto" else protocols(options),
        profile=PROFILES[options.profile],
        seed=seed,
        level=Level(options.level),
        budget=options.time_limit,
        began=options.began,
        fail_fast=options.fail_fast,
        without=_without(options.without),
        topics=_topics(options.topics),
        expected=lambda key: match(expected, key, today) is not None,
    )


def _without(given: Sequence[str]) -> tuple[str, ...]:
    from rebalance_verifier.gate.scenarios.exclusions import excluded

    with usage_errors(ValueError, option="--without"):
        return excluded(given)


def _topics(given: Sequence[str]) -> tuple[str, ...]:
    from rebalance_verifier.gate.scenarios.topics import names_given

    with usage_errors(ValueError, option="--topics"):
        return names_given(given)


def _beside(spec: str, given: Sequence[str]) -> tuple[str, ...]:
    if not given:
        return ()
    from rebalance_verifier.base.processes.tools import ToolError
    from rebalance_verifier.live.clients.leaders.targets import beside

    with usage_errors(ToolError, option="--with"):
        return beside(spec, [name for names in given for name in names.split(",")])


def _known(given: list[str], name: str) -> tuple[KnownFailure, ...]:
    from rebalance_verifier.gate.search import known

    with usage_errors(ValueError, OSError):
        return known.read(given, name)


def _report(result: Result, reports: Reports, options: argparse.Namespace) -> None:
    from rebalance_verifier.report import data
    from rebalance_verifier.report.ci import ci_reports
    from rebalance_verifier.report.html import check as page
    from rebalance_verifier.report.terminal import check as text

    result = replace(result, run_dir=str(reports.directory or ""), page=reports.page)
    if "text" in reports.chosen:
        verbose = options.verbose
        shown = text.render(
            result, color=color(options), verbose=verbose, unicode=unicode(), brief=not verbose
        )
        print_text(shown.rstrip("\n"))
    own = {
        "text": partial(text.render, result),
        "json": partial(data.render, result),
        "html": partial(page.render, result),
    }
    reports.finish(lambda: ci_reports.result(result), own, noted="text" not in reports.chosen)


def _try_adapter(target: Target, options: argparse.Namespace) -> int:
    from rebalance_verifier.gate.targets.smoke import smoke

    limits = {"call_seconds": options.call_seconds, "memory_mib": options.memory_mib}
    steps = smoke(target, options.validate, **limits)
    for step in steps:
        lines = [f"{'ok  ' if step.ok else 'FAIL'}  {step.title}", *step.lines]
        print_text("\n      ".join(map(clean, lines)))
    return 0 if all(step.ok for step in steps) else 1
