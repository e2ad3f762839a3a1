"""``rebalance upgrade``: which way from one assignor to another is safe, and what it costs."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rebalance.gate.cli.commands.explore import speed
from rebalance.gate.cli.console.progress import Stages, polled
from rebalance.gate.cli.console.terminal import (
    UsageError,
    answer,
    color,
    json_text,
    print_err,
    usage_errors,
)
from rebalance.gate.cli.console.text import count
from rebalance.gate.cli.shared import traces
from rebalance.gate.cli.shared.checkpoints import checkpoint
from rebalance.gate.cli.shared.options import REPORTS, add_format, add_options
from rebalance.gate.cli.shared.releases import faults, releases
from rebalance.gate.cli.shared.reports import Own, Reports
from rebalance.model.names import unknown
from rebalance.properties.verdict import Exit

if TYPE_CHECKING:
    from rebalance.explore.groups.runs import SavedRun
    from rebalance.explore.groups.upgrades import UpgradeOutcome


def add(commands: Any) -> argparse.ArgumentParser:
    """Add the command to the parser's ``commands``."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "upgrade",
        help="find the safe way from one assignor list to another",
        epilog="exit codes: 0 there is a safe path, 1 there is none, 3 inconclusive",
        description="Explore every interleaving of a rolling upgrade, path by path: which of them are "
        "safe, a counterexample for those that are not, what each costs, and the plan to follow. Faults "
        "besides the bounces happen where --faults names some. Traces go to .rebalance/failures or --out.",
    )
    parser.add_argument("--from", dest="old", required=True, metavar="ASSIGNOR",
                        help="range, roundrobin, sticky, cooperative-sticky, default, streams, or "
                        "consumer: the consumer protocol (KIP-848)")  # fmt: skip
    parser.add_argument("--to", dest="new", required=True, metavar="ASSIGNOR", help="the same; for a "
                        "downgrade name them the other way round")  # fmt: skip
    parser.add_argument("--path", metavar="NAME", help="this path only, such as double-bounce (all)")
    add_options(parser, "--members", "--partitions", "--release", "--broker", "--faults", "--max-faults",
                "--states", "--memory", members=2, partitions=2, broker="as-specified")  # fmt: skip
    add_options(parser, "--resume", "--out")
    add_format(parser)
    add_options(parser, *REPORTS, "--no-progress", "--no-color")
    return parser


def run(options: argparse.Namespace) -> int:
    """The command."""
    from rebalance.explore.groups.upgrades import UpgradeVerdict
    from rebalance.gate.report.ci import ci_reports
    from rebalance.gate.report.html import upgrade as html_upgrade

    reports = Reports.wanted(options, ("html", "json"))
    if options.report is not None or options.report_dir is not None:
        reports.open()
    with usage_errors(ValueError):
        outcomes = _judged(options)
    if reports.directory is None:  # not before: of what is interrupted there is nothing to report
        reports.open()
    saved = {one.path.name: one.run(_origin(one, options)) for one in outcomes}
    out = Path(options.out) if options.out else None
    paths = traces.save_runs((run for run in saved.values() if run is not None), out)
    document = _data(outcomes, saved, paths, options)
    page = ["", f"report: {reports.page}"] if reports.page else []
    answer(options, lambda: document, lambda: "\n".join([*_lines(outcomes, saved, paths, options), *page]))
    verdicts = [outcome.verdict for outcome in outcomes]
    # Without --path the question is whether there is a safe way.
    unknown = Exit.INCONCLUSIVE if UpgradeVerdict.UNKNOWN in verdicts else Exit.VIOLATION
    code = Exit.CONFORMANT if UpgradeVerdict.SAFE in verdicts else unknown
    report = ci_reports.upgraded(outcomes, saved, paths, code)
    own: Own = {
        "json": lambda: json_text(document) + "\n",
        "html": lambda: html_upgrade.render(
            report.headline, report.exit, outcomes, saved, paths, _explored(options)
        ),
    }
    reports.finish(lambda: report, own, noted=reports.unseen)
    return code


def _explored(options: argparse.Namespace) -> dict[str, object]:
    """What was explored, by name."""
    return {
        "from": options.old,
        "to": options.new,
        "members": options.members,
        "partitions": options.partitions,
        "clients": _release(options),
        "broker": options.broker,
        "faults": ", ".join(faults(options.faults) or ()) or "none but the bounces",
    }


def _release(options: argparse.Namespace) -> str:
    """The release of all members. Raises UsageError."""
    first, *others = releases(options)
    if others:
        raise UsageError("--release: all members are of one release in an upgrade")
    return first


def _judged(options: argparse.Namespace) -> list[UpgradeOutcome]:
    from rebalance.explore.engine.checkpoint import CheckpointError
    from rebalance.explore.engine.search import Limits
    from rebalance.explore.groups.upgrades import judge, paths, setup

    upgrade_paths = paths(options.old, options.new, _release(options))
    if options.path:
        known = [path.name for path in upgrade_paths]
        upgrade_paths = tuple(path for path in upgrade_paths if path.name == options.path)
        if not upgrade_paths:
            kind = f"path from {options.old} to {options.new}"
            raise UsageError(f"--path: {unknown(kind, options.path, known)}")
    kinds = faults(options.faults) or ()
    if options.max_faults and not kinds:
        raise UsageError("--max-faults is how many of --faults may happen: name some")
    most = 1 if options.max_faults is None else options.max_faults
    limits = Limits(states=options.states, memory=options.memory, go_on=True)
    groups = [
        setup(
            path, options.members, options.partitions,
            faults=kinds, budget=most if kinds else 0, broker_profile=options.broker,
        )
        for path in upgrade_paths
    ]  # fmt: skip
    stages = Stages()
    outcomes: list[UpgradeOutcome] = []

    def enter(path: str, stage: str) -> None:
        stages.enter(f"path {len(outcomes) + 1} of {len(groups)}, {path}: {stage}")

    kept = [checkpoint(group, resume=options.resume, keep=True) for group in groups]
    try:
        with polled(options, stages.line), usage_errors(CheckpointError):
            for path, group, saved in zip(upgrade_paths, groups, kept, strict=True):
                enter(path.name, "searching")
                stage = partial(enter, path.name)
                shown = speed(stages.show)
                outcomes.append(
                    judge(path, group, limits, report_progress=shown, report_stage=stage, checkpoint=saved)
                )
    except KeyboardInterrupt:
        if any(saved is not None and saved.path.exists() for saved in kept):
            print_err("interrupted; the same command with --resume goes on from here")
        raise
    for one, saved in zip(outcomes, kept, strict=True):
        if saved is not None and one.search.complete:
            saved.remove()
    return outcomes


def _origin(outcome: UpgradeOutcome, options: argparse.Namespace) -> dict[str, Any]:
    """Where the counterexample of a path comes from."""
    return {
        "scenario": f"upgrade {options.old} to {options.new}",
        "path": outcome.path.name,
        "members": options.members,
        "partitions": options.partitions,
        "profiles": [_release(options)],
        "broker": options.broker,
    }


def _lines(
    outcomes: Sequence[UpgradeOutcome],
    saved: dict[str, SavedRun | None],
    paths: dict[str, str],
    options: argparse.Namespace,
) -> list[str]:
    from rebalance.explore.groups.upgrades import UpgradeVerdict
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
    from rebalance.gate.traces.runs import run_id, step_out, steps_of

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
            row["steps"] = [step_out(step) for step in steps_of(found)]
        rows.append(row)
    return {
        "schema": 1,
        "from": options.old,
        "to": options.new,
        "members": options.members,
        "partitions": options.partitions,
        "paths": rows,
    }
