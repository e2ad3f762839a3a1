"""``rebalance upgrade``: which way from one assignor to another is safe, and what it costs."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rebalance_verifier.base.names import unknown
from rebalance_verifier.base.verdict import Exit
from rebalance_verifier.cli.commands.explore import speed
from rebalance_verifier.cli.console.progress import Stages, polled
from rebalance_verifier.cli.console.terminal import (
    UsageError,
    answer,
    color,
    json_text,
    usage_errors,
)
from rebalance_verifier.cli.shared import traces
from rebalance_verifier.cli.shared.checkpoints import checkpoint
from rebalance_verifier.cli.shared.options import REPORTS, add_format, add_options
from rebalance_verifier.cli.shared.releases import faults, releases
from rebalance_verifier.cli.shared.reports import Own, Reports

if TYPE_CHECKING:
    from rebalance_verifier.explore.groups.upgrade_paths import Hop
    from rebalance_verifier.explore.groups.upgrades import JudgedHop, UpgradeOutcome
    from rebalance_verifier.report.terminal.upgrade import UpgradeReport


def add(commands: Any) -> argparse.ArgumentParser:
    """Add the command to the parser's ``commands``."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "upgrade",
        epilog="exit codes: 0 there is a safe path, 1 there is none, 3 inconclusive",
        description="Model checking of rolling upgrades: explore every interleaving, path by path. Show "
        "the safe paths, a counterexample for each unsafe one, the costs, and the plan. "
        "Coordinator and clients are of the newest release; --broker and --release name "
        "others, or as-specified. --faults adds faults to the bounces. A large group is "
        "answered by a smaller one and by the proof. Traces go to .rebalance/failures or "
        "--out.",
    )
    parser.add_argument("--from", dest="old", required=True, metavar="ASSIGNOR",
                        help="range, roundrobin, sticky, cooperative-sticky, a list of them such as "
                        "range,cooperative-sticky, default, streams (or streams-RELEASE), or consumer: the "
                        "consumer protocol (KIP-848)")  # fmt: skip
    parser.add_argument("--via", action="append", default=[], metavar="ASSIGNOR", help="go there first, "
                        "such as cooperative-sticky, in one plan; repeatable")  # fmt: skip
    parser.add_argument(
        "--to", dest="new", required=True, metavar="ASSIGNOR", help="as --from; for a downgrade swap the two"
    )
    parser.add_argument("--path", metavar="NAME", help="this path only, such as double-bounce (all)")
    add_options(parser, "--members", "--partitions", "--release", "--broker", "--faults", "--max-faults",
                "--states", "--memory", members=2, partitions=2, broker="broker-current")  # fmt: skip
    add_options(parser, "--resume", "--out")
    add_format(parser)
    add_options(parser, *REPORTS, "--no-progress", "--no-color")
    return parser


def run(options: argparse.Namespace) -> int:
    """Run the command; return its exit code."""
    from rebalance_verifier.explore.groups.upgrades import UpgradeVerdict
    from rebalance_verifier.report.ci import ci_reports
    from rebalance_verifier.report.html import upgrade as html_upgrade
    from rebalance_verifier.report.terminal import upgrade as text

    reports = Reports.wanted(options, ("html", "json"))
    if options.report is not None or options.report_dir is not None:
        reports.open()
    with usage_errors(ValueError):
        clients = _release(options)
        judged = _judged(options, clients)
    if reports.directory is None:  # not before: of what is interrupted there is nothing to report
        reports.open()
    outcomes = [outcome for one in judged for outcome in one.outcomes]
    saved = {one.path.name: one.run(_origin(one, options, clients)) for one in outcomes}
    out = Path(options.out) if options.out else None
    report = text.UpgradeReport(
        clients=clients,
        broker=options.broker,
        members=options.members,
        partitions=options.partitions,
        judged=judged,
        saved=saved,
        paths=traces.save_runs((run for run in saved.values() if run is not None), out),
    )
    document = text.data(report)
    answer(options, lambda: document, lambda: text.render(report, color=color(options), page=reports.page))
    # Each hop needs a safe path; with --path, that one.
    unknown = any(one.verdict is UpgradeVerdict.UNKNOWN for one in judged)
    code = Exit.INCONCLUSIVE if unknown else Exit.VIOLATION
    if all(one.verdict is UpgradeVerdict.SAFE for one in judged):
        code = Exit.CONFORMANT
    ci = ci_reports.upgraded(report, code)
    own: Own = {
        "json": lambda: json_text(document) + "\n",
        "html": lambda: html_upgrade.render(ci.headline, ci.exit, report, _explored(report, options)),
    }
    reports.finish(lambda: ci, own, noted=reports.unseen)
    return code


def _explored(report: UpgradeReport, options: argparse.Namespace) -> dict[str, object]:
    """Return what was explored, by name."""
    return {
        "from": report.title.partition(" to ")[0],
        "to": report.judged[-1].hop.new,
        "of": report.about,
        "other": report.other,
        "searched": report.size,
        "faults": ", ".join(faults(options.faults) or ()) or "none but the bounces",
    }


def _release(options: argparse.Namespace) -> str:
    """Return the profile of all members. Raises UsageError."""
    from rebalance_verifier.explore.groups.upgrade_paths import eager_alone
    from rebalance_verifier.model.bugs.profiles import NEWEST_CLIENT

    for name in (name for several in options.release for name in several):
        if trouble := eager_alone(options.old, name):
            raise UsageError(f"--release: {trouble}")
    first, *others = releases(options, NEWEST_CLIENT)
    if others:
        raise UsageError("--release: all members are of one release in an upgrade")
    return first


def _hops(options: argparse.Namespace, clients: str) -> tuple[Hop, ...]:
    """Return the hops with those paths that are wanted. Raises UsageError."""
    from dataclasses import replace

    from rebalance_verifier.explore.groups.upgrade_paths import hops

    found = hops(options.old, options.new, options.via, clients)
    if not options.path:
        return found
    known = [path.name for hop in found for path in hop.paths]
    if options.path not in known:
        kind = f"path from {options.old} to {options.new}"
        raise UsageError(f"--path: {unknown(kind, options.path, known)}")
    chosen = (tuple(path for path in hop.paths if path.name == options.path) for hop in found)
    return tuple(replace(hop, paths=paths or hop.paths) for hop, paths in zip(found, chosen, strict=True))


def _judged(options: argparse.Namespace, clients: str) -> tuple[JudgedHop, ...]:
    from rebalance_verifier.explore.engine.checkpoint import CheckpointError
    from rebalance_verifier.explore.engine.search import Limits
    from rebalance_verifier.explore.groups.upgrades import JudgedHop, judge, searched, setup

    hops = _hops(options, clients)
    upgrade_paths = [path for hop in hops for path in hop.paths]
    kinds = faults(options.faults) or ()
    if options.max_faults and not kinds:
        raise UsageError("--max-faults is how many of --faults may happen: name some")
    most = 1 if options.max_faults is None else options.max_faults
    limits = Limits(states=options.states, memory=options.memory, go_on=True)
    groups = [
        setup(
            path, *searched(options.members, options.partitions),
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
            raise KeyboardInterrupt("interrupted; the same command with --resume goes on from here") from None
        raise
    for one, saved in zip(outcomes, kept, strict=True):
        if saved is not None and one.search.complete:
            saved.remove()
    made = iter(outcomes)
    return tuple(JudgedHop(hop=hop, outcomes=tuple(next(made) for _ in hop.paths)) for hop in hops)


def _origin(outcome: UpgradeOutcome, options: argparse.Namespace, clients: str) -> dict[str, Any]:
    """Return where the counterexample of a path comes from."""
    via = "".join(f" by way of {name}" for name in options.via)
    return {
        "scenario": f"upgrade {options.old}{via} to {options.new}",
        "path": outcome.path.name,
        "members": len(outcome.setup.consumers),
        "partitions": outcome.setup.exist.bit_count(),
        "profiles": [clients],
        "broker": options.broker,
    }
