"""``rebalance upgrade``: which way from one assignor to another is safe, and what it costs."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rebalance.gate.cli import report_options
from rebalance.gate.cli.console.terminal import (
    ROOT,
    UsageError,
    amount,
    color,
    comma_separated,
    print_err,
    print_out,
    usage,
    whole,
)

if TYPE_CHECKING:
    from rebalance.explore.groups.runs import SavedRun
    from rebalance.explore.groups.upgrades import UpgradeOutcome


def add(commands: Any) -> None:
    """Add the command to the parser's ``commands``."""
    parser = commands.add_parser(
        "upgrade",
        help="find the safe way from one assignor list to another",
        epilog="exit codes: 0 there is a safe path, 1 there is none, 2 usage, 3 inconclusive, "
        "4 internal error, 130 interrupted",
        description="Explore every interleaving of a rolling upgrade, path by path: which of them are "
        "safe, a counterexample for those that are not, what each costs, and the plan to follow.",
    )
    parser.set_defaults(run=run)
    parser.add_argument("--from", dest="old", required=True, metavar="ASSIGNOR",
                        help="range, roundrobin, sticky, cooperative-sticky, default, streams")  # fmt: skip
    parser.add_argument("--to", dest="new", required=True, metavar="ASSIGNOR", help="the same; for a "
                        "downgrade name them the other way round")  # fmt: skip
    parser.add_argument("--path", metavar="NAME", help="this path only, such as double-bounce (all)")
    parser.add_argument("--members", type=whole, default=2, metavar="N", help="how many consumers (2)")
    parser.add_argument("--partitions", type=whole, default=2, metavar="N", help="of one topic (2)")
    parser.add_argument("--profile", default="as-specified", metavar="P", help="release of the clients")
    parser.add_argument("--broker", default="as-specified", metavar="B", help="release of the coordinator")
    parser.add_argument("--faults", type=comma_separated, default=(), metavar="F[,F...]",
                        help="kinds of faults besides the bounces (none)")  # fmt: skip
    parser.add_argument("--budget", type=whole, metavar="N", help="how many of them in one run (1)")
    parser.add_argument("--states", type=whole, metavar="N", help="stop a path after so many states")
    parser.add_argument(
        "--memory", type=amount, metavar="SIZE", help="stop before this is exceeded: 500M, 4G"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="where traces go (.rebalance/failures)")
    parser.add_argument("--format", choices=("text", "json"), default="text")
    report_options.add(parser, "files for programs and CI systems: json, junit, sarif, markdown")
    parser.add_argument("--no-color", action="store_true", help="also by the variable NO_COLOR")


def run(options: argparse.Namespace) -> int:
    """The command."""
    from rebalance.explore.groups.scenarios import ScenarioError
    from rebalance.explore.groups.upgrades import UpgradeVerdict
    from rebalance.gate.cli.writers import CI_WRITERS
    from rebalance.gate.report.ci import ci_reports

    formats = report_options.formats(options, ("json", *CI_WRITERS))
    directory = report_options.directory(formats, options)
    try:
        outcomes = _judged(options)
    except (ScenarioError, ValueError) as error:
        raise usage(error) from error
    saved = {outcome.path.name: _run_of(outcome, options) for outcome in outcomes}
    paths = _save([run for run in saved.values() if run is not None], options.out)
    if options.format == "json":
        print_out(json.dumps(_data(outcomes, saved, paths, options), indent=2))
    else:
        print_out("\n".join(_lines(outcomes, saved, paths, options)))
    verdicts = [outcome.verdict for outcome in outcomes]
    # Without --path the question is whether there is a safe way.
    code = 0 if UpgradeVerdict.SAFE in verdicts else 3 if UpgradeVerdict.UNKNOWN in verdicts else 1
    own = {
        "json": (
            "report.json",
            lambda: json.dumps(_data(outcomes, saved, paths, options), indent=2) + "\n",
        )
    }
    report_options.finish(
        lambda: ci_reports.upgraded(outcomes, saved, paths, code),
        directory,
        formats,
        own,
        options,
        noted=True,
    )
    return code


def _judged(options: argparse.Namespace) -> list[UpgradeOutcome]:
    from rebalance.explore.engine.search import Limits, Stop
    from rebalance.explore.groups.upgrades import judge, paths, setup
    from rebalance.model.bugs.profiles import broker, client

    client(options.profile)
    broker(options.broker)
    if options.members > 6 or options.partitions > 12:
        raise UsageError(
            f"{options.members} members x {options.partitions} partitions: at most 6 x 12 can be explored"
        )
    upgrade_paths = paths(options.old, options.new, options.profile)
    if options.path:
        known = [path.name for path in upgrade_paths]
        upgrade_paths = tuple(path for path in upgrade_paths if path.name == options.path)
        if not upgrade_paths:
            raise UsageError(f"--path: no path {options.path!r} from {options.old} to {options.new}; "
                             f"there are: {', '.join(known)}")  # fmt: skip
    faults = tuple(fault.replace("-", " ") for fault in options.faults)
    if options.budget and not faults:
        raise UsageError("--budget is how many of --faults may happen: name some")
    limits = Limits(states=options.states, memory=options.memory, go_on=True)
    outcomes = []
    for path in upgrade_paths:
        group = setup(
            path, options.members, options.partitions,
            faults=faults, budget=(options.budget or 1) if faults else 0, broker_profile=options.broker,
        )  # fmt: skip
        outcomes.append(judge(path, group, limits))
        if outcomes[-1].search.stop is Stop.INTERRUPTED:
            raise KeyboardInterrupt
    return outcomes


def _run_of(outcome: UpgradeOutcome, options: argparse.Namespace) -> SavedRun | None:
    """The counterexample of a path as a run that can be saved."""
    from dataclasses import replace

    from rebalance.explore.groups.exploration import saved_run

    if outcome.trace is None or outcome.clause is None:
        return None
    origin = {
        "scenario": f"upgrade {options.old} to {options.new}",
        "path": outcome.path.name,
        "members": options.members,
        "partitions": options.partitions,
        "profiles": [options.profile],
        "broker": options.broker,
    }
    found = saved_run(outcome.setup, origin, outcome.clause, outcome.trace)
    return replace(found, sentence=found.sentence or outcome.sentence)


def _save(found: Sequence[SavedRun], out: Path | None) -> dict[str, str]:
    from rebalance.gate.traces import files, runs

    paths: dict[str, str] = {}
    try:
        if found and out is None:
            files.make_root(ROOT)
        for one in found:
            paths[runs.run_id(one)] = str(runs.save(one, out or ROOT / files.FAILURES))
    except OSError as error:
        print_err(f"the traces cannot be saved: {error}")
    return paths


def _lines(
    outcomes: Sequence[UpgradeOutcome],
    saved: dict[str, SavedRun | None],
    paths: dict[str, str],
    options: argparse.Namespace,
) -> list[str]:
    from rebalance.explore.groups.upgrades import UpgradeVerdict
    from rebalance.gate.cli.console.text import count
    from rebalance.gate.report.terminal.exploration import run_lines
    from rebalance.gate.traces.runs import run_id

    safe = next((outcome for outcome in outcomes if outcome.verdict is UpgradeVerdict.SAFE), None)
    size = f"{count(options.members, 'member')}, {count(options.partitions, 'partition')}"
    lines = [f"from {options.old} to {options.new}: {size}, every interleaving", ""]
    width = max(len(outcome.path.name) for outcome in outcomes)
    for outcome in outcomes:
        states = f"{count(outcome.search.distinct, 'state')}"
        cost = f"{count(outcome.rebalances, 'rebalance')}, {count(outcome.pauses, 'partition-pause')}"
        word = outcome.verdict.value.upper()
        painted = _paint(f"{word:<16}", outcome.verdict is UpgradeVerdict.SAFE, color(options))
        lines.append(f"  {painted} {outcome.path.name:<{width}}  {cost}; {states}")
        lines.append(f"  {'':<16} {outcome.path.sentence}")
    for outcome in outcomes:
        found = saved[outcome.path.name]
        if found is None:
            continue
        lines += ["", f"{outcome.path.name}: {found.clause}, {found.sentence}", "", *run_lines(found), ""]
        if (name := run_id(found)) in paths:
            lines += [f"  replay   rebalance replay {name}", f"  trace    {paths[name]}"]
    if safe is None:
        return [*lines, "", "no plan: none of these paths is safe"]
    lines += ["", f"plan: {safe.path.name}"]
    return [*lines, *(f"  {number}. {step}" for number, step in enumerate(safe.path.plan, 1))]


def _paint(word: str, safe: bool, painted: bool) -> str:
    return f"\x1b[{'32;1' if safe else '31;1'}m{word}\x1b[0m" if painted else word


def _data(
    outcomes: Sequence[UpgradeOutcome],
    saved: dict[str, SavedRun | None],
    paths: dict[str, str],
    options: argparse.Namespace,
) -> dict[str, Any]:
    from rebalance.gate.traces.runs import run_id, step_out
    from rebalance.model.protocol.group import machine
    from rebalance.model.steps import steps

    rows = []
    for outcome in outcomes:
        row: dict[str, Any] = {
            "path": outcome.path.name,
            "sentence": outcome.path.sentence,
            "verdict": outcome.verdict.value,
            "states": outcome.search.distinct,
            "rebalances": outcome.rebalances,
            "partition_pauses": outcome.pauses,
            "plan": list(outcome.path.plan),
        }
        found = saved[outcome.path.name]
        if found is not None:
            row["clause"], row["what"] = found.clause, found.sentence
            name = run_id(found)
            row["trace"] = {"id": name, "path": paths.get(name, "")}
            row["steps"] = [step_out(step) for step in steps(machine(found.setup), found.events)]
        rows.append(row)
    return {
        "schema": 1,
        "from": options.old,
        "to": options.new,
        "members": options.members,
        "partitions": options.partitions,
        "paths": rows,
    }
