"""``rebalance explore``: every state of a group of consumers, or as many as wanted, and a verdict."""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rebalance.gate.cli import report_options
from rebalance.gate.cli.console.terminal import (
    EXITS,
    ROOT,
    UsageError,
    amount,
    color,
    comma_separated,
    draw,
    natural,
    print_err,
    print_out,
    usage,
    whole,
    write,
)

if TYPE_CHECKING:
    from rebalance.explore.engine.search import Progress
    from rebalance.explore.groups.exploration import ExplorationPlan, Explored
    from rebalance.explore.groups.scenarios import NamedScenario


def add(commands: Any) -> None:
    """Add the command to the parser's ``commands``."""
    parser = commands.add_parser(
        "explore",
        help="search every state of a consumer group for a broken clause",
        epilog=f"{EXITS}. What is saved lies below .rebalance/.",
        description="Explore SCENARIO, a small group of consumers with its coordinator, breadth-first, so "
        "that the trace of a broken clause is a shortest one; then ask whether the group settles.",
    )
    parser.set_defaults(run=run)
    parser.add_argument("scenario", nargs="?", metavar="SCENARIO", help="one of --list")
    parser.add_argument("--list", action="store_true", help="list scenarios, releases and faults")
    parser.add_argument("--clauses", action="store_true", help="list what is asked of a group")

    group = parser.add_argument_group("the group (what is not given is as --list says)")
    group.add_argument("--members", type=whole, metavar="N", help="how many consumers")
    group.add_argument("--partitions", type=whole, metavar="N", help="how many partitions in all")
    group.add_argument("--profiles", type=comma_separated, default=("as-specified",), metavar="P[,P...]",
                       help="releases of the members, in turn (as-specified)")  # fmt: skip
    group.add_argument("--broker", default="as-specified", metavar="B", help="release of the coordinator")
    group.add_argument("--assignor", metavar="TARGET", help="an assignor in place of the reference one: "
                       "NAME, NAME+SWITCH, module:attribute or ADAPTER:NAME")  # fmt: skip
    group.add_argument("--naming", choices=("every", "given"), help="under which names of members and "
                       "partitions a leader's assignor is asked: every, at each rebalance anew, or one all "
                       "the time (every; with --assignor given)")  # fmt: skip
    group.add_argument("--faults", metavar="F[,F...]|all|none", help="kinds of faults that may happen")
    group.add_argument("--budget", type=natural, metavar="N", help="how many faults may happen in one run")
    group.add_argument("--switch", action="append", default=[], metavar="ID",
                       help="a design switch of `rebalance bugs` for everybody; repeatable")  # fmt: skip
    group.add_argument("--steps", choices=("atomic", "fine"), default="atomic",
                       help="fine: every request and response is a step (many more states)")  # fmt: skip

    search = parser.add_argument_group("the search")
    search.add_argument("--engine", choices=("fast", "plain", "spark"), default="fast",
                        help="plain: slow, obvious; spark: when one machine is too small")  # fmt: skip
    search.add_argument("--master", metavar="URL", help="where --engine spark runs: local[N], "
                        "spark://HOST:PORT, sc://HOST:PORT for Spark Connect (local[*])")  # fmt: skip
    search.add_argument("--symmetry", action=argparse.BooleanOptionalAction, default=False,
                        help="one state for all that differ in names only; no liveness (off)")  # fmt: skip
    search.add_argument("--exact", action="store_true", help="compare states, not their hashes only")
    search.add_argument("--depth", type=natural, metavar="N", help="no deeper than N steps")
    search.add_argument("--states", type=whole, metavar="N", help="stop after the level with state N")
    search.add_argument(
        "--memory", type=amount, metavar="SIZE", help="stop before this is exceeded: 500M, 4G"
    )
    search.add_argument("--go-on", action="store_true", help="search on after the first broken clause")
    search.add_argument("--no-liveness", action="store_true", help="do not ask whether the group settles")
    search.add_argument("--resume", action="store_true", help="go on where this search was interrupted or "
                        "met a bound")  # fmt: skip
    order = search.add_mutually_exclusive_group()
    order.add_argument(
        "--dfs", action="store_true", help="depth-first instead, to --depth; traces are made short"
    )
    order.add_argument(
        "--swarm", action="store_true", help="random walks of --depth steps instead, the same way"
    )
    search.add_argument("--seed", type=natural, default=0, metavar="N", help="of --swarm (0)")
    search.add_argument("--walks", type=whole, default=1_000, metavar="N", help="of --swarm (1000)")

    shown = parser.add_argument_group("what is shown")
    shown.add_argument("--all-shortest", type=whole, default=1, metavar="N", help="up to N shortest traces")
    shown.add_argument("--format", choices=("text", "json"), default="text")
    shown.add_argument("--out", metavar="DIR", help="where traces go (.rebalance/failures), and the levels "
                       "of --engine spark (.rebalance/explore); for these it may be a URI")  # fmt: skip
    shown.add_argument(
        "--itf", type=Path, metavar="FILE", help="the first trace in the Informal Trace Format"
    )
    report_options.add(shown, "html (this one, unless --format says otherwise), json, junit, sarif, "
                  "markdown")  # fmt: skip
    shown.add_argument("--no-progress", action="store_true", help="no progress line on the terminal")
    shown.add_argument("--no-color", action="store_true", help="also by the variable NO_COLOR")


def run(options: argparse.Namespace) -> int:
    """The command."""
    from rebalance.explore.groups.scenarios import ScenarioError, scenario
    from rebalance.gate.cli.writers import CI_WRITERS
    from rebalance.gate.report.terminal.exploration import data, exit_code, render

    if options.list or options.clauses:
        _list(options) if options.list else _clauses(options)
        return 0
    if options.scenario is None:
        raise UsageError("which SCENARIO? `rebalance explore --list` describes them")
    try:
        plan = _plan(options, scenario(options.scenario))
    except ScenarioError as error:
        raise usage(error) from error
    _refuse(options)
    unasked = ("html",) if options.format == "text" else ()
    formats = report_options.formats(options, ("html", "json", *CI_WRITERS), unasked)
    directory = report_options.directory(formats, options)
    found = _explore(plan, options)
    paths = _save(found, Path(options.out) if options.out and "://" not in options.out else None)
    if options.format == "json":
        print_out(json.dumps(data(found, paths), indent=2))
    else:
        print_out(render(found, paths, color=color(options), page=report_options.page(directory, formats)))
    _export(found, options)
    _report(found, paths, formats, directory, options)
    if found.interrupted and found.checkpoint:
        print_err(
            f"interrupted; saved to {found.checkpoint}: the same command with --resume goes on from there"
        )
    return int(exit_code(found))


# -- what is to be explored ----------------------------------------------------------------------------


def _plan(options: argparse.Namespace, chosen: NamedScenario) -> ExplorationPlan:
    from rebalance.explore.engine.search import Limits
    from rebalance.explore.groups.exploration import ExplorationPlan
    from rebalance.model.protocol.group import machine

    setup = _setup(options, chosen)
    try:
        machine(setup)
    except ValueError as error:
        raise usage(error) from error
    origin = {
        "scenario": chosen.name,
        "members": len(setup.consumers),
        "partitions": setup.exist.bit_count(),
        "profiles": list(options.profiles),
        "broker": options.broker,
        **({"assignor": options.assignor} if options.assignor else {}),
        **({"switches": options.switch} if options.switch else {}),
        **({"steps": options.steps} if options.steps != "atomic" else {}),
        **({"naming": setup.naming} if setup.naming != "every" else {}),
        "budget": setup.budget,
        "faults": list(setup.faults),
    }
    walk = "depth" if options.dfs else "swarm"
    return ExplorationPlan(
        setup=setup,
        origin=origin,
        engine=options.engine,
        symmetry=options.symmetry,
        exact=options.exact,
        limits=Limits(options.depth, options.states, options.memory, options.go_on),
        asks_liveness=not options.no_liveness,
        most=options.all_shortest,
        strategy=walk if options.dfs or options.swarm else "breadth",
        seed=options.seed,
        walks=options.walks,
        steps=options.depth if options.depth is not None else (40 if options.dfs else 200),
    )


def _setup(options: argparse.Namespace, chosen: NamedScenario) -> Any:
    from rebalance.explore.groups.scenarios import ScenarioSize
    from rebalance.model.bugs.profiles import broker, client

    if not options.profiles:
        raise UsageError("--profiles names no release")
    try:
        for name in options.profiles:
            client(name)
        broker(options.broker)
    except ValueError as error:
        raise usage(error) from error
    faults = _faults(options.faults)
    size = ScenarioSize(
        members=options.members,
        partitions=options.partitions,
        profiles=tuple(options.profiles),
        broker=options.broker,
        faults=faults,
        budget=0 if faults == () and options.budget is None else options.budget,
        switches=tuple(dict.fromkeys(options.switch)),
        steps=options.steps,
        # One that is not sticky may go by names, and would never settle if they changed under it.
        naming=options.naming or ("given" if options.assignor else "every"),
    )
    if options.assignor:
        chosen, size = _with_assignor(options, chosen, size)
    return chosen.setup(size)


def _faults(text: str | None) -> tuple[str, ...] | None:
    from rebalance.model.protocol.group import FAULTS

    if text is None:
        return None
    if text in ("all", "none"):
        return FAULTS if text == "all" else ()
    wanted = [word.replace("-", " ") for word in comma_separated(text)]
    if unknown := [word for word in wanted if word not in FAULTS]:
        raise UsageError(f"--faults: no fault {unknown[0]!r}; there are: {', '.join(FAULTS)}; all; none")
    return tuple(fault for fault in FAULTS if fault in wanted)


def _with_assignor(
    options: argparse.Namespace, chosen: NamedScenario, size: Any
) -> tuple[NamedScenario, Any]:
    """The scenario with the target wherever it lists an assignor of the same protocol."""
    from dataclasses import replace

    from rebalance.gate.targets.plugged import plugged
    from rebalance.gate.targets.resolve import TargetError
    from rebalance.model.assignors import reference
    from rebalance.model.bugs.switches import SWITCHES

    try:
        plug = plugged(options.assignor)
    except TargetError as error:
        raise usage(error) from error
    if on := [switch for switch in options.switch if switch in SWITCHES]:
        raise UsageError(
            f"--switch {on[0]} is one of assignors: write --assignor NAME+{on[0]}, or leave one out"
        )
    kind = reference(plug.replaces).protocols
    lists = tuple(
        tuple(
            tuple(plug.replaces if reference(n).protocols == kind else n for n in stage) for stage in stages
        )
        for stages in chosen.lists
    )
    if not any(plug.replaces in stage for stages in lists for stage in stages):
        names = sorted({name for stages in chosen.lists for stage in stages for name in stage})
        protocols = "cooperative" if len(kind) > 1 else "eager"
        raise UsageError(
            f"--assignor {options.assignor} is {protocols}; {chosen.name} has {', '.join(names)} only"
        )
    return replace(chosen, lists=lists), replace(size, factory=plug)


def _refuse(options: argparse.Namespace) -> None:
    """Options that do not go together."""
    fast_only = [n for n in ("symmetry", "exact", "resume") if getattr(options, n)]
    if fast_only and (options.engine == "plain" or options.dfs or options.swarm):
        with_ = "--engine plain" if options.engine == "plain" else "--dfs" if options.dfs else "--swarm"
        raise UsageError(f"--{fast_only[0]} does not go with {with_}")
    _refuse_of_spark(options)
    if options.symmetry and (options.naming or ("given" if options.assignor else "every")) == "given":
        raise UsageError("--symmetry needs --naming every: under given names nothing is symmetric")
    if options.swarm and options.states:
        raise UsageError("--states does not go with --swarm: say --walks")
    if options.itf is not None and not options.itf.parent.is_dir():
        raise UsageError(f"--itf: no directory {str(options.itf.parent)!r}")


def _refuse_of_spark(options: argparse.Namespace) -> None:
    if options.engine != "spark":
        if options.master is not None:
            raise UsageError("--master goes with --engine spark only")
        return
    for name in ("exact", "memory", "dfs", "swarm"):
        if getattr(options, name):
            raise UsageError(f"--{name} does not go with --engine spark")
    if options.master is not None and not options.master.startswith("local") and options.out is None:
        raise UsageError(
            f"--master {options.master} needs --out DIR: a directory or a URI that this process and all "
            "workers reach"
        )


# -- running -------------------------------------------------------------------------------------------


def _explore(plan: ExplorationPlan, options: argparse.Namespace) -> Explored:
    from rebalance.explore.engine.checkpoint import Checkpoint
    from rebalance.explore.engine.fast import Collision
    from rebalance.explore.groups.exploration import run_exploration
    from rebalance.gate.targets.plugged import UserDataError
    from rebalance.gate.traces import files

    if plan.engine == "spark":
        return _on_spark(plan, options)
    saved = None
    if plan.strategy == "breadth" and plan.engine == "fast":
        saved = ROOT / "explore" / f"{_fingerprint(plan)}{'-symmetry' * plan.symmetry}.checkpoint"
        try:
            files.make_root(ROOT)
            saved.parent.mkdir(exist_ok=True)
            if not options.resume:
                saved.unlink(missing_ok=True)
        except OSError as error:
            print_err(f"an interrupted search cannot be saved: {error}")
            saved = None
        if options.resume and (saved is None or not saved.exists()):
            print_err("nothing to resume: a new start")
    try:
        with _ticker(options) as report_progress:
            kept = None if saved is None else Checkpoint(saved, _fingerprint(plan))
            return run_exploration(plan, report_progress=report_progress, checkpoint=kept)
    except UserDataError as error:
        raise UsageError(f"--assignor: {error}") from error
    except Collision as error:
        raise UsageError(f"--exact: {error}; the hashes do not do for this search") from error


def _on_spark(plan: ExplorationPlan, options: argparse.Namespace) -> Explored:
    """With all levels in one directory, which is removed in the end unless it was asked for by name."""
    from pyspark.errors import AnalysisException, PythonException
    from rebalance.explore.groups.exploration import run_exploration
    from rebalance.gate.traces import files
    from rebalance.pipeline.exploration.exploration import engine
    from rebalance.pipeline.session import LOCAL, SparkMissing

    where = f"{options.out or ROOT / 'explore'}/{_fingerprint(plan)}{'-symmetry' * plan.symmetry}"
    if options.out is None:
        files.make_root(ROOT)
    try:
        with _ticker(options) as report_progress:
            other = engine(options.master or LOCAL, where, resume=options.resume)
            found = run_exploration(plan, report_progress=report_progress, other=other)
    except SparkMissing as error:
        raise usage(error) from error
    except AnalysisException as error:
        raise UsageError(f"--out: {where}: {str(error).splitlines()[0]}") from error
    except PythonException as error:
        complaints = [line for line in str(error).splitlines() if "UserDataError: " in line]
        if complaints:
            raise UsageError(f"--assignor: {complaints[-1].partition('UserDataError: ')[2]}") from error
        raise
    if options.out is None and not found.checkpoint:
        shutil.rmtree(where, ignore_errors=True)
    return found


def _fingerprint(plan: ExplorationPlan) -> str:
    """Names the search and the code in what an unfinished search is saved to."""
    import rebalance.explore
    import rebalance.model
    import rebalance.properties
    from rebalance.explore.engine.checkpoint import fingerprint
    from rebalance.gate.traces.runs import setup_out

    packages = [rebalance.model, rebalance.properties, rebalance.explore]
    if plan.engine == "spark":
        import rebalance.pipeline

        packages.append(rebalance.pipeline)
    return fingerprint(str(setup_out(plan.setup)), packages)


@contextlib.contextmanager
def _ticker(options: argparse.Namespace) -> Iterator[Callable[[Progress], None] | None]:
    """A progress line with rate and queue, on a terminal only, a few times a second."""
    if options.no_progress or not sys.stderr.isatty():
        yield None
        return
    began, shown = time.monotonic(), 0.0

    def report_progress(progress: Progress) -> None:
        nonlocal shown
        now = time.monotonic()
        if now - shown < 0.3:
            return
        shown = now
        rate = progress.distinct / max(now - began, 1e-9)
        line = f"depth {progress.depth}, {progress.distinct:,} states, {rate:,.0f}/s"
        draw(f"{line}, {progress.frontier:,} queued")

    try:
        yield report_progress
    finally:
        if shown:
            draw()


def _save(found: Explored, out: Path | None) -> dict[str, str]:
    """Save every trace; a place that cannot be written to does not cost the verdict."""
    from rebalance.gate.traces import files, runs

    paths: dict[str, str] = {}
    try:
        if found.violations and out is None:
            files.make_root(ROOT)
        for violation in found.violations:
            for one in violation.runs:
                paths[runs.run_id(one)] = str(runs.save(one, out or ROOT / files.FAILURES))
    except OSError as error:
        print_err(f"the traces cannot be saved: {error}")
    return paths


def _report(
    found: Explored,
    paths: dict[str, str],
    formats: tuple[str, ...],
    directory: Path | None,
    options: argparse.Namespace,
) -> None:
    """The reports for programs and CI systems."""
    from rebalance.gate.report.ci import ci_reports
    from rebalance.gate.report.html import exploration as html_exploration
    from rebalance.gate.report.terminal.exploration import data

    own = {
        "json": ("report.json", lambda: json.dumps(data(found, paths), indent=2) + "\n"),
        "html": ("report.html", lambda: html_exploration.render(found, paths)),
    }
    noted = formats != ("html",) or options.format != "text"
    report_options.finish(
        lambda: ci_reports.explored(found, paths), directory, formats, own, options, noted=noted
    )


def _export(found: Explored, options: argparse.Namespace) -> None:
    if not options.itf:
        return
    if not found.violations:
        print_err("--itf: not written, there is no trace of a broken clause")
        return
    from rebalance.gate.traces import itf

    write(options.itf, json.dumps(itf.of_run(found.violations[0].runs[0]), indent=1) + "\n", "--itf")


# -- the list ------------------------------------------------------------------------------------------


def _clauses(options: argparse.Namespace) -> None:
    from rebalance.gate.cli.console.text import fold
    from rebalance.properties.group.clauses import TABLE

    if options.format == "json":
        listed = [
            {"clause": c.id, "level": c.level.value, "rule": c.sentence, "source": c.source} for c in TABLE
        ]
        print_out(json.dumps(listed, indent=2))
        return
    lines = []
    for clause in TABLE:
        first, *rest = fold(f"{clause.sentence} ({clause.source})", 76)
        lines += [f"{clause.id:<21} {clause.level:<9} {first}", *(f"{'':<32}{line}" for line in rest)]
    print_out("\n".join(lines))


def _list(options: argparse.Namespace) -> None:
    from rebalance.explore.groups.scenarios import ALWAYS_POSSIBLE, SCENARIOS
    from rebalance.gate.cli.console.text import count, fold
    from rebalance.model.bugs.profiles import BROKERS, CLIENTS
    from rebalance.model.protocol.group import FAULTS

    if options.format == "json":
        listed = [
            {
                "scenario": s.name,
                "sentence": s.sentence,
                "members": s.members,
                "partitions": s.partitions,
                "budget": s.budget,
                "faults": list(s.faults),
            }
            for s in SCENARIOS.values()
        ]
        print_out(json.dumps({"scenarios": listed, "profiles": list(CLIENTS), "brokers": list(BROKERS),
                        "faults": list(FAULTS)}, indent=2))  # fmt: skip
        return
    lines = []
    for s in SCENARIOS.values():
        lines.append(f"{s.name:<16} {s.sentence}")
        kinds = ", ".join(f for f in s.faults if f not in ALWAYS_POSSIBLE or len(s.faults) < 10)
        if len(s.faults) >= 10:
            kinds = "every kind that is always possible" + (f", {kinds}" if kinds else "")
        shape = f"{s.members} members, {count(s.partitions, 'partition')}"
        first, *rest = fold(f"{shape}, at most {count(s.budget, 'fault')} of: {kinds}", 90)
        lines += [f"{'':<16} {first}", *(f"{'':<18} {line}" for line in rest)]
    for title, names in (
        ("releases for --profiles", CLIENTS),
        ("releases for --broker", BROKERS),
        ("kinds of faults", FAULTS),
    ):
        lines += ["", f"{title}:", *(f"  {line}" for line in fold(", ".join(names), 100))]
    print_out("\n".join(lines))
