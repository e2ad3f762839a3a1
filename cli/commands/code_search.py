"""``rebalance explore --on`` and ``check --in-group``: the clauses asked of Kafka's own code."""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rebalance_verifier.base.text import clean, count
from rebalance_verifier.base.verdict import Exit
from rebalance_verifier.cli.console.progress import counted, progress
from rebalance_verifier.cli.console.terminal import UsageError, answer, print_text, usage_errors
from rebalance_verifier.cli.console.terminal import clean as clean_lines
from rebalance_verifier.cli.shared import traces
from rebalance_verifier.cli.shared.options import refuse
from rebalance_verifier.cli.shared.releases import faults
from rebalance_verifier.cli.shared.reports import Reports
from rebalance_verifier.cli.shared.targets import session
from rebalance_verifier.cli.shared.values import comma_separated

if TYPE_CHECKING:
    from rebalance_verifier.explore.groups.scenarios import NamedScenario
    from rebalance_verifier.gate.targets.resolve import Target
    from rebalance_verifier.live.code.search.findings import Searched
    from rebalance_verifier.live.code.search.walks import CodeSearchPlan, CodeSearchResult
    from rebalance_verifier.model.group.setup import Setup

OF_MODEL = (
    "--release", "--broker", "--target", "--naming", "--switch", "--granularity", "--engine", "--master",
    "--symmetry", "--exact", "--states", "--memory", "--go-on", "--no-liveness", "--resume",
    "--all-shortest",
)  # fmt: skip
"""Options of ``explore`` that say nothing of Kafka's own code."""

WALKS = {"smoke": 10, "ci": 100, "nightly": 3_000, "deep": 1_000_000}
"""How many histories a profile plays."""

OF_ASSIGNOR = (
    "--clause", "--protocol", "--level", "--fail-fast", "--known-failing", "--known-flaky", "--write-known",
    "--without", "--resume", "--validate",
)  # fmt: skip
"""Options of ``check`` that are about the assignor alone."""


def run_on_code(options: argparse.Namespace, chosen: NamedScenario) -> int:
    """Search, and say what came of it. Raises UsageError."""
    from rebalance_verifier.report.terminal.code_search import data, render

    refuse(options, OF_MODEL, "does not go with --on: it is about the model")
    plan = _plan(options, chosen)
    reports = Reports.of_cases(options)
    result = searched(plan, options, f"--on {options.on}")
    paths = saved(result, {"scenario": chosen.name, "seed": plan.seed}, options.out)
    answer(options, lambda: data(result, paths), lambda: render(result, chosen.name, paths))
    _report(reports, result, "explore", chosen.name, paths)
    return Exit.of(result.verdict, interrupted=result.interrupted)


def _report(
    reports: Reports, result: CodeSearchResult, command: str, subject: str, paths: dict[tuple[str, str], str]
) -> None:
    from rebalance_verifier.report.ci import code_reports
    from rebalance_verifier.report.terminal.code_search import data

    reports.finish_cases(
        lambda: code_reports.searched(result, command, subject, paths), lambda: data(result, paths),
        lead="This page shows whether Kafka's own code keeps the rules of a group.",
    )  # fmt: skip


def saved(result: CodeSearchResult, origin: dict[str, Any], out: str | None) -> dict[tuple[str, str], str]:
    """Save the runs of what was found; cause -> path."""
    from rebalance_verifier.live.code.search.runs import saved_run

    paths = {}
    for one in result.findings:
        run = saved_run(one, result.plan, origin)
        if run is not None:
            for path in traces.save_runs([run], Path(out) if out else None).values():
                paths[one.cause] = path
    return paths


def searched(plan: CodeSearchPlan, options: argparse.Namespace, option: str) -> CodeSearchResult:
    """Return what a search comes to. Raises UsageError where there is no simulation."""
    from rebalance_verifier.base.processes.tools import ToolError
    from rebalance_verifier.base.processes.workers import CannotStart
    from rebalance_verifier.live.code.search.exhaustive import search_everything
    from rebalance_verifier.live.code.search.walks import search_walks

    began = time.monotonic()
    search = search_walks if plan.depth is None else search_everything

    def line(seen: Searched) -> str:
        if plan.depth is None:
            return counted("walks", seen.runs, plan.walks, time.monotonic() - began)
        return count(seen.runs, "run")

    try:
        with progress(options) as show:
            return search(plan, lambda seen: show(lambda: line(seen)))
    except (CannotStart, ToolError) as error:
        raise UsageError(f"{option}: {clean(str(error))}") from error


def _plan(options: argparse.Namespace, chosen: NamedScenario) -> CodeSearchPlan:
    from rebalance_verifier.explore.groups.scenarios import ScenarioError, ScenarioSize
    from rebalance_verifier.live.code.replay.attempts import code_releases
    from rebalance_verifier.live.code.search.setups import search_setup
    from rebalance_verifier.live.code.search.walks import UNLIMITED_FAULTS, CodeSearchPlan

    with usage_errors(ValueError, option="--on"):
        releases = code_releases(options.on)
    most = options.max_faults
    kinds = faults(options.faults)
    size = ScenarioSize(members=options.members, partitions=options.partitions, faults=kinds, budget=most)
    with usage_errors(ScenarioError, ValueError):
        setup = search_setup(chosen, size, releases)
    _refuse_faults(options.faults, setup)
    if not options.dfs and most is None:
        setup = replace(setup, budget=UNLIMITED_FAULTS)
    depth = (6 if options.depth is None else options.depth) if options.dfs else None
    return CodeSearchPlan(
        setup=setup, releases=releases, walks=options.walks, seed=options.seed, depth=depth,
        steps=100 if options.depth is None else options.depth, jobs=options.jobs,
        time_limit=options.time_limit,
    )  # fmt: skip


def _refuse_faults(named: str | None, setup: Setup) -> None:
    """Refuse a fault that was named and that no search on Kafka's code brings about. Raises UsageError."""
    from rebalance_verifier.live.code.search.enabled import faults_of

    played = faults_of(setup)
    if named is not None and "all" not in comma_separated(named):
        for fault in setup.faults:
            if fault not in played:
                raise UsageError(
                    f"--faults: --on does not bring about {fault!r}, the model does: leave --on out, or "
                    "write --faults all for those that it does"
                )


def run_in_group(options: argparse.Namespace, target: Target) -> int:
    """Play, and say what came of it. Raises UsageError."""
    from rebalance_verifier.report.terminal.code_search import render

    refuse(options, OF_ASSIGNOR, "does not go with --in-group")
    plan = _group_plan(options, target)
    reports = Reports.of_cases(options)
    result = searched(plan, options, "--in-group")
    paths = saved(result, {"assignor": target.spec, "seed": plan.seed}, None)
    print_text(clean_lines(render(result, target.spec, paths)))
    _report(reports, result, "check", target.spec, paths)
    return Exit.of(result.verdict, interrupted=result.interrupted)


def _group_plan(options: argparse.Namespace, target: Target) -> CodeSearchPlan:
    from rebalance_verifier.base.processes.tools import ToolError
    from rebalance_verifier.explore.groups.scenarios import SCENARIOS, ScenarioSize
    from rebalance_verifier.gate.targets.hosts.java import JAVA, parse
    from rebalance_verifier.live.artifacts.maven import class_path
    from rebalance_verifier.live.code.releases import coordinators
    from rebalance_verifier.live.code.replay.group import CodeReleases
    from rebalance_verifier.live.code.search.assignor import OF_ASSIGNORS, without_clients
    from rebalance_verifier.live.code.search.group import GroupAssignor
    from rebalance_verifier.live.code.search.walks import UNLIMITED_FAULTS, CodeSearchPlan
    from rebalance_verifier.model.values import RebalanceProtocol

    if not target.spec.startswith(JAVA):
        raise UsageError(f"--in-group takes a java:CLASS, not {target.spec!r}: the consumers are Java's")
    with session(target, options) as talk:
        protocols = talk.hello.protocols
    if RebalanceProtocol.CONSUMER in protocols:
        name = parse(target.spec).class_name
        raise UsageError(
            f"--in-group plays consumers, and no consumer runs {name}: a broker does; "
            "leave --in-group out, and it is judged as a broker calls it"
        )
    cooperative = RebalanceProtocol.COOPERATIVE in protocols
    with usage_errors(ToolError):
        java = parse(target.spec)
        release, jars = without_clients(class_path(java.where))
        newest = coordinators()[-1]
    size = ScenarioSize(members=3, partitions=4, budget=UNLIMITED_FAULTS)
    return CodeSearchPlan(
        setup=SCENARIOS["dynamic" if cooperative else "eager"].setup(size),
        releases=CodeReleases(coordinator=newest, consumers=(release,)),
        walks=WALKS[options.profile],
        seed=options.seed or 0,
        jobs=options.jobs,
        time_limit=options.time_limit,
        assignor=GroupAssignor(class_name=java.class_name, classpath=jars, config=dict(java.config)),
        clauses=OF_ASSIGNORS,
        seconds=options.call_seconds,
    )
