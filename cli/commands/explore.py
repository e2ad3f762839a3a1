"""``rebalance explore``: every state of a group of consumers, or as many as wanted, and a verdict."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rebalance_verifier.base.names import unknown
from rebalance_verifier.base.removal import remove
from rebalance_verifier.base.saved import ROOT
from rebalance_verifier.cli.commands.code_search import run_on_code
from rebalance_verifier.cli.console.progress import Line, Stages, polled, progress
from rebalance_verifier.cli.console.terminal import (
    UsageError,
    answer,
    color,
    json_text,
    print_err,
    usage_errors,
)
from rebalance_verifier.cli.shared import traces
from rebalance_verifier.cli.shared.checkpoints import checkpoint, fingerprint
from rebalance_verifier.cli.shared.options import (
    REPORTS,
    add_format,
    add_options,
    refuse,
    refuse_protocol,
)
from rebalance_verifier.cli.shared.releases import faults, releases
from rebalance_verifier.cli.shared.reports import Own, Reports
from rebalance_verifier.cli.shared.values import whole
from rebalance_verifier.traces.recognise import GROUP, right_command

if TYPE_CHECKING:
    from rebalance_verifier.explore.engine.search import Progress
    from rebalance_verifier.explore.groups.exploration import ExplorationPlan, Explored
    from rebalance_verifier.explore.groups.scenarios import NamedScenario
    from rebalance_verifier.model.group.setup import Setup


def add(commands: Any) -> argparse.ArgumentParser:
    """Add the command to the parser's ``commands``."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "explore",
        epilog="Results lie below .rebalance/.",
        description="Model checking: search every state of SCENARIO, a small group and its coordinator. A "
        "broken clause has a shortest trace. Then check that the group settles.",
    )
    parser.add_argument("group", nargs="?", metavar="SCENARIO",
                        help="a name of `rebalance list scenarios`, or a group in FILE.toml")  # fmt: skip
    add_options(parser, "--scenario", scenario=None)
    parser.add_argument("--invariant", action="append", default=[], metavar="MODULE:FUNCTION",
                        help="check this function in every state too; repeatable")  # fmt: skip

    group = parser.add_argument_group("group (defaults: those of the scenario)")
    add_options(group, "--members", "--partitions", "--release", "--broker", broker="as-specified")
    add_options(group, "--target")
    group.add_argument("--naming", choices=("every", "given"), help="ask the assignor under every naming "
                       "of members and partitions, or one (every; with --target: given)")  # fmt: skip
    add_options(group, "--faults", "--max-faults", "--switch", "--granularity")

    search = parser.add_argument_group("search")
    search.add_argument("--engine", choices=("fast", "plain", "spark"), default="fast",
                        help="plain: slow and simple; spark: for more than one machine (fast)")  # fmt: skip
    add_options(search, "--master")
    search.add_argument("--symmetry", action=argparse.BooleanOptionalAction, default=False,
                        help="merge states that differ in names only; skips liveness (off)")  # fmt: skip
    search.add_argument("--exact", action="store_true", help="compare whole states instead of hashes")
    add_options(search, "--depth", "--states", "--memory")
    search.add_argument("--go-on", action="store_true", help="continue after the first broken clause")
    search.add_argument(
        "--no-liveness", action="store_true", help="skip the question whether the group settles"
    )
    add_options(search, "--resume")
    order = search.add_mutually_exclusive_group()
    order.add_argument(
        "--dfs", action="store_true", help="search depth-first to --depth, and shrink the traces"
    )
    order.add_argument(
        "--swarm", action="store_true", help="take random walks of --depth steps, and shrink the traces"
    )
    add_options(search, "--seed", seed=0)
    add_options(search, "--walks", walks=1_000)

    code = parser.add_argument_group(
        "Kafka's own code instead of the model (deterministic simulation)",
        "Random walks through released consumers and a released coordinator; with --dfs, all runs of "
        "--depth steps of a settled group. Members of the consumer protocol are clients of the model.",
    )
    add_options(code, "--on", "--jobs", "--time-limit")

    shown = parser.add_argument_group(
        "output",
        "--out: traces (.rebalance/failures), or levels of --engine spark (.rebalance/explore or a URI).",
    )
    shown.add_argument("--witness", action="append", default=[], metavar="NAME", help="show a shortest run "
                       "to this situation of `reached`, or to all; repeatable")  # fmt: skip
    shown.add_argument(
        "--all-shortest", type=whole, default=1, metavar="N", help="show up to N shortest traces (1)"
    )
    add_format(parser)
    add_options(shown, "--out", *REPORTS, "--no-progress", "--no-color")
    return parser


def run(options: argparse.Namespace) -> int:
    """Run the command; return its exit code."""
    from rebalance_verifier.explore.groups.scenarios import ScenarioError
    from rebalance_verifier.report.ci import ci_reports
    from rebalance_verifier.report.html import exploration as html_exploration
    from rebalance_verifier.report.terminal.exploration import data, render

    if options.on:
        refuse(options, ("--invariant", "--witness"), "asks the model: it does not go with --on")
        with usage_errors(ScenarioError):
            return run_on_code(options, _scenario(options, "dynamic"))
    refuse(options, ("--jobs", "--time-limit"), "goes with --on only")
    with usage_errors(ScenarioError):
        chosen = _scenario(options)
        chosen.refuse_renaming(options.naming, options.symmetry)
        plan = _plan(options, chosen)
    _refuse(options)
    reports = Reports.wanted(options, ("html", "json")).open()
    found = _explore(plan, options)
    out = Path(options.out) if options.out and "://" not in options.out else None
    shown = (*found.violations, *found.witnessed)
    paths = traces.save_runs((run for one in shown for run in one.runs), out)
    document = partial(data, found, paths)
    answer(options, document, lambda: render(found, paths, color=color(options), page=reports.page))
    own: Own = {
        "json": lambda: json_text(document()) + "\n",
        "html": partial(html_exploration.render, found, paths),
    }
    reports.finish(lambda: ci_reports.explored(found, paths), own, noted=reports.unseen)
    if found.interrupted and found.checkpoint:
        print_err(
            f"interrupted; saved to {found.checkpoint}: the same command with --resume goes on from there"
        )
    return int(found.exit)


# -- what is to be explored ----------------------------------------------------------------------------


def _scenario(options: argparse.Namespace, usual: str = "") -> NamedScenario:
    """That of the options, or else the ``usual`` one. Raises UsageError and ScenarioError."""
    from rebalance_verifier.explore.groups.scenario_files import scenario_in
    from rebalance_verifier.explore.groups.scenarios import scenario

    if options.group and options.scenario:
        raise UsageError(f"SCENARIO {options.group} and --scenario {options.scenario}: one of them")
    named = options.group or options.scenario or usual
    if "/" in named or "." in named:
        if other := right_command(Path(named), GROUP):
            raise UsageError(f"--scenario: {other}")
        if not named.endswith(".toml"):
            raise UsageError(f"--scenario: write your group to {Path(named).stem}.toml, not to {named}")
        with usage_errors(OSError, option="--scenario"):
            return scenario_in(Path(named))
    if not named:
        raise UsageError("which SCENARIO? `rebalance list scenarios` describes them")
    return scenario(named)


def _witnesses(options: argparse.Namespace, setup: Setup) -> tuple[str, ...]:
    """Return the situations whose runs are wanted. Raises UsageError."""
    from rebalance_verifier.properties.group.clauses import rules

    known = {rule.clause.replace(" ", "-"): rule.clause for rule in rules(setup).sometimes}  # or as completed
    given = [name.replace(" ", "-") for name in options.witness]
    for name, spelled in zip(options.witness, given, strict=True):
        if spelled not in (*known, "all"):
            raise UsageError(f"--witness: {unknown('situation', name, known.values())}")
    return tuple(known.values() if "all" in given else (known[name] for name in given))


def _plan(options: argparse.Namespace, chosen: NamedScenario) -> ExplorationPlan:
    from rebalance_verifier.explore.engine.search import Limits
    from rebalance_verifier.explore.groups.exploration import ExplorationPlan
    from rebalance_verifier.model.classic.group import NamingsError
    from rebalance_verifier.model.protocols import machine
    from rebalance_verifier.properties.group.own import InvariantError, rules

    chosen, size = _sized(options, chosen)
    setup = chosen.setup(size)
    try:
        machine(setup)
    except NamingsError as error:
        raise UsageError(f"{error}, or --naming given") from error
    except ValueError as error:
        raise UsageError(str(error)) from error
    walk = "depth" if options.dfs else "swarm"
    with usage_errors(InvariantError, option="--invariant"):
        rules(setup, options.invariant)
    return ExplorationPlan(
        setup=setup,
        origin=chosen.origin(size, setup),
        engine=options.engine,
        symmetry=options.symmetry,
        exact=options.exact,
        limits=Limits(depth=options.depth, states=options.states, memory=options.memory, go_on=options.go_on),
        asks_liveness=not options.no_liveness,
        most=options.all_shortest,
        strategy=walk if options.dfs or options.swarm else "breadth",
        seed=options.seed,
        walks=options.walks,
        steps=options.depth if options.depth is not None else (40 if options.dfs else 200),
        invariants=tuple(dict.fromkeys(options.invariant)),
        witnesses=_witnesses(options, setup),
    )


def _sized(options: argparse.Namespace, chosen: NamedScenario) -> tuple[NamedScenario, Any]:
    """Return the scenario with the assignor that is wanted, and its size. Raises UsageError."""
    from rebalance_verifier.explore.groups.scenarios import ScenarioSize

    kinds = faults(options.faults)
    size = ScenarioSize(
        members=options.members,
        partitions=options.partitions,
        profiles=releases(options),
        broker=options.broker,
        faults=kinds,
        budget=0 if kinds == () and options.max_faults is None else options.max_faults,
        switches=tuple(dict.fromkeys(options.switch)),
        steps=options.granularity,
        # One that is not sticky may go by names, and would never settle if they changed under it.
        naming=options.naming or ("given" if options.target else "every"),
    )
    return _with_assignor(options, chosen, size) if options.target else (chosen, size)


def _with_assignor(
    options: argparse.Namespace, chosen: NamedScenario, size: Any
) -> tuple[NamedScenario, Any]:
    """Return the scenario with the target wherever it lists an assignor of the same protocol."""
    from rebalance_verifier.gate.targets.hosts.hosted import TargetError
    from rebalance_verifier.gate.targets.plugged import led_by

    refuse_protocol("explore --target", chosen.protocol.name)
    with usage_errors(TargetError):
        return led_by(options.target, chosen, size)


def _refuse(options: argparse.Namespace) -> None:
    """Options that do not go together. Raises UsageError."""
    flags = (f"--{one}" for one in ("dfs", "swarm", "invariant") if vars(options)[one])
    chosen = [f"--engine {options.engine}", *flags]
    for one in chosen:
        refuse(options, _NOT_WITH.get(one, ()), f"does not go with {one}")
    if options.symmetry and (options.naming or ("given" if options.target else "every")) == "given":
        raise UsageError("--symmetry needs --naming every: under given names nothing is symmetric")
    if options.swarm and options.states:
        raise UsageError("--states does not go with --swarm: say --walks")
    if options.master is not None and options.engine != "spark":
        raise UsageError("--master goes with --engine spark only")
    if options.master is not None and not options.master.startswith("local") and options.out is None:
        raise UsageError(
            f"--master {options.master} needs --out DIR: a directory or a URI that this process and all "
            "workers reach"
        )


_NOT_WITH = {
    "--engine plain": ("--symmetry", "--exact", "--resume"),
    **dict.fromkeys(("--dfs", "--swarm"), ("--symmetry", "--exact", "--resume", "--witness")),
    "--engine spark": ("--exact", "--memory", "--dfs", "--swarm", "--invariant"),
    "--invariant": ("--symmetry", "--resume"),
}
"""Engine or order -> options that it does not take."""


# -- running -------------------------------------------------------------------------------------------


def _explore(plan: ExplorationPlan, options: argparse.Namespace) -> Explored:
    from rebalance_verifier.explore.engine.checkpoint import CheckpointError
    from rebalance_verifier.explore.engine.fast import Collision
    from rebalance_verifier.explore.groups.exploration import run_exploration
    from rebalance_verifier.gate.targets.plugged import UserDataError
    from rebalance_verifier.properties.group.own import InvariantError

    if plan.engine == "spark":
        return _on_spark(plan, options)
    kept = None
    if plan.strategy == "breadth" and plan.engine == "fast" and not plan.invariants:
        kept = checkpoint(plan.setup, resume=options.resume, marks="-symmetry" * plan.symmetry)
    stages = Stages()
    try:
        with polled(options, stages.line), usage_errors(CheckpointError):
            stages.enter("searching")
            return run_exploration(
                plan, report_progress=speed(stages.show), report_stage=stages.enter, checkpoint=kept
            )
    except UserDataError as error:
        raise UsageError(f"--target: {error}") from error
    except InvariantError as error:
        raise UsageError(f"--invariant: {error}") from error
    except Collision as error:
        raise UsageError(f"--exact: {error}; the hashes do not do for this search") from error


def _on_spark(plan: ExplorationPlan, options: argparse.Namespace) -> Explored:
    """With all levels in one directory, which is removed in the end unless it was asked for by name."""
    from pyspark.errors import AnalysisException, PythonException
    from rebalance_verifier.base import saved as files
    from rebalance_verifier.explore.groups.exploration import run_exploration
    from rebalance_verifier.pipeline.exploration.exploration import engine
    from rebalance_verifier.pipeline.session import LOCAL, SparkMissing

    where = f"{options.out or ROOT / 'explore'}/{fingerprint(plan.setup, 'pipeline')}"
    where += "-symmetry" * plan.symmetry
    if options.out is None:
        files.make_root(ROOT)
    try:
        with progress(options) as show, usage_errors(SparkMissing):
            other = engine(options.master or LOCAL, where, resume=options.resume)
            exploration = run_exploration(plan, report_progress=speed(show), other=other)
    except AnalysisException as error:
        raise UsageError(f"--out: {where}: {str(error).splitlines()[0]}") from error
    except PythonException as error:
        complaints = [line for line in str(error).splitlines() if "UserDataError: " in line]
        if complaints:
            raise UsageError(f"--target: {complaints[-1].partition('UserDataError: ')[2]}") from error
        raise
    if options.out is None and not exploration.checkpoint:
        remove(where)
    return exploration


def speed(show: Callable[[Line], None]) -> Callable[[Progress], None]:
    """Shows depth, rate and queue."""
    began = time.monotonic()

    def line(now: Progress) -> str:
        rate = now.distinct / max(time.monotonic() - began, 1e-9)
        return f"depth {now.depth}, {now.distinct:,} states, {rate:,.0f}/s, {now.frontier:,} queued"

    return lambda now: show(lambda: line(now))
