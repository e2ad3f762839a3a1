"""``rebalance campaign``: any number of scenarios, on Spark, until they are played."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rebalance.gate.cli import java_options
from rebalance.gate.cli.console.terminal import (
    EXITS,
    ROOT,
    UsageError,
    comma_separated,
    natural,
    positive,
    print_err,
    print_out,
    usage,
    whole,
)

if TYPE_CHECKING:
    from rebalance.gate.check.player import TargetPlayer
    from rebalance.pipeline.campaign.campaign import Campaign
    from rebalance.pipeline.campaign.walks import WalkPlayer

SLICE, SLICE_OF_PROGRAM = 20_000, 2_000
"""Scenarios that a kill may cost; a program answers about a tenth as fast as a Python target."""


def add(commands: Any) -> None:
    """Add the command to the parser's ``commands``."""
    parser = commands.add_parser(
        "campaign",
        help="play any number of scenarios, on Spark",
        epilog=f"{EXITS}. Scenarios that hang or end their process are rows of their own; where nothing "
        "worse was found they make the campaign inconclusive.",
        description="Play scenarios by the thousand or by the million: histories on TARGET, as `rebalance "
        "check` does, or random walks of SCENARIO, as `rebalance explore --swarm` does. The rows are Parquet "
        "below DIR; the same command goes on where a campaign was interrupted or killed, and with more "
        "--scenarios makes it longer.",
    )
    parser.set_defaults(run=run)
    parser.add_argument("what", nargs="?", metavar="TARGET|SCENARIO", help="as `rebalance check` or as "
                        "`rebalance explore` takes it; or `-- COMMAND ...`")  # fmt: skip
    parser.add_argument("--as", dest="kind", choices=("target", "scenario"),
                        help="which of the two, where a name is both (sticky)")  # fmt: skip
    parser.add_argument("--scenarios", type=whole, metavar="N", help="how many in all")
    parser.add_argument("--out", type=Path, metavar="DIR", help="where the campaign is kept")
    parser.add_argument("--report", type=Path, metavar="DIR", help="only show what was played so far")
    parser.add_argument("--seed", type=natural, default=0, metavar="S", help="of the campaign (0)")
    parser.add_argument("--limit", type=positive, default=60.0, metavar="SECONDS",
                        help="how long one scenario may take (60)")  # fmt: skip
    parser.add_argument("--slice", type=whole, metavar="K", help="scenarios that are committed together, and "
                        f"that a kill may cost ({SLICE:,}; of a program {SLICE_OF_PROGRAM:,})")  # fmt: skip
    parser.add_argument("--master", default="local[*]", metavar="URL", help="where Spark runs: local[N], "
                        "spark://HOST:PORT, sc://HOST:PORT (local[*])")  # fmt: skip
    parser.add_argument("--format", choices=("text", "json"), default="text")
    parser.add_argument("--traces", type=Path, metavar="DIR", help="where traces go (.rebalance/failures)")
    parser.add_argument("--no-progress", action="store_true", help="no progress line on the terminal")

    target = parser.add_argument_group("of a TARGET")
    target.add_argument("--clause", action="append", default=[], metavar="PATH", help="only clauses at or "
                        "below this path; repeatable")  # fmt: skip
    target.add_argument("--protocol", choices=("eager", "cooperative", "auto"), default="auto")
    target.add_argument("--level", choices=("safety", "liveness", "quality"), default="liveness",
                        help="the weakest level that is a violation (liveness)")  # fmt: skip
    target.add_argument("--call-seconds", type=positive, default=10.0, metavar="S",
                        help="how long a program may take for one answer (10)")  # fmt: skip
    target.add_argument("--memory-mib", type=whole, default=2048, metavar="N",
                        help="how much memory a program may use (2048)")  # fmt: skip

    java_options.add(parser)
    group = parser.add_argument_group(
        "of a SCENARIO (what is not given is as `rebalance explore --list` says)"
    )
    group.add_argument("--profile", type=comma_separated, action="append", default=[],
                       metavar="RELEASE[,RELEASE...]",
                       help="releases of the members, in turn; repeatable, a walk has one")  # fmt: skip
    group.add_argument("--members", type=whole, metavar="N", help="how many consumers")
    group.add_argument("--partitions", type=whole, metavar="N", help="how many partitions in all")
    group.add_argument("--broker", default="as-specified", metavar="B", help="release of the coordinator")
    group.add_argument("--budget", type=natural, metavar="N", help="how many faults may happen in one walk")
    group.add_argument("--switch", action="append", default=[], metavar="ID",
                       help="a design switch of `rebalance bugs` for everybody; repeatable")  # fmt: skip
    group.add_argument("--depth", type=whole, default=200, metavar="N", help="steps of a walk (200)")


def run(options: argparse.Namespace) -> int:
    """The command."""
    from rebalance.pipeline.campaign.campaign import CampaignError
    from rebalance.pipeline.session import SparkMissing

    try:
        if options.report is not None:
            return _report_only(options)
        if options.out is None or options.scenarios is None:
            raise UsageError("a campaign needs --scenarios N and --out DIR (or --report DIR)")
        return _campaign(options)
    except (CampaignError, SparkMissing) as error:
        raise usage(error) from error


def _campaign(options: argparse.Namespace) -> int:
    from importlib.metadata import version

    from rebalance.pipeline.campaign import campaign as pipeline
    from rebalance.pipeline.progress import progress
    from rebalance.pipeline.session import session

    options.what = java_options.spec(options.what, options)
    player = _player(options)
    directory: Path = options.out
    size = options.slice or (SLICE_OF_PROGRAM if _is_program(options) else SLICE)
    legs = ((int(options.scenarios), int(size)),)
    wanted = pipeline.Campaign(player.identity(), options.seed, legs, version("rebalance-verifier"))
    with pipeline.alone(directory):
        campaign = pipeline.enlist(directory, wanted)
        try:
            with (
                session(options.master, memory="2g", settings=pipeline.LIGHT) as spark,
                progress("scenarios", campaign.scenarios, quiet=options.no_progress) as report_progress,
            ):
                pipeline.run(spark, player, campaign, directory, options.limit, report_progress)
                found = pipeline.tables(pipeline.verdicts(spark, directory, campaign))
        except KeyboardInterrupt:
            kept = sum(one.last - one.first for one in pipeline.played(directory, campaign))
            print_err(
                f"interrupted: {kept:,} of {campaign.scenarios:,} scenarios are kept in {directory}; the "
                f"same command goes on from there, `rebalance campaign --report {directory}` shows them"
            )
            return 130
    paths = _shrink(player, found, campaign, options)
    return _show(campaign, directory, found, paths, options)


def _is_program(options: argparse.Namespace) -> bool:
    from rebalance.gate.targets.java import JAVA

    return bool(options.command) or (options.what or "").startswith(JAVA)


def _report_only(options: argparse.Namespace) -> int:
    from rebalance.pipeline.campaign import campaign as pipeline
    from rebalance.pipeline.session import session

    campaign = pipeline.load(options.report)
    if campaign is None:
        raise UsageError(f"--report: there is no campaign in {options.report}")
    with session(options.master, memory="2g", settings=pipeline.LIGHT) as spark:
        found = pipeline.tables(pipeline.verdicts(spark, options.report, campaign))
    return _show(campaign, options.report, found, {}, options)


# -- what is played --------------------------------------------------------------------------------------


def _player(options: argparse.Namespace) -> TargetPlayer | WalkPlayer:
    """What TARGET|SCENARIO names. Raises UsageError."""
    from rebalance.explore.groups.scenarios import SCENARIOS
    from rebalance.gate.targets.resolve import known

    named = options.what in SCENARIOS and not options.command
    if named and options.what in known() and options.kind is None:
        raise UsageError(f"{options.what!r} is an assignor and a scenario: say --as target or --as scenario")
    if options.kind == "scenario" or (named and options.kind is None):
        return _walks(options)
    return _histories(options)


def _walks(options: argparse.Namespace) -> WalkPlayer:
    from rebalance.explore.groups.scenarios import ScenarioError, scenario
    from rebalance.model.bugs.profiles import broker, client
    from rebalance.model.protocol.group import machine
    from rebalance.pipeline.campaign.walks import WalkPlayer

    mixes = tuple(options.profile) or (("as-specified",),)
    try:
        scenario(options.what or "")
        for release in (release for mix in mixes for release in mix):
            client(release)
        broker(options.broker)
        player = WalkPlayer(
            scenario=options.what,
            mixes=mixes,
            members=options.members,
            partitions=options.partitions,
            broker=options.broker,
            budget=options.budget,
            switches=tuple(dict.fromkeys(options.switch)),
            steps=options.depth,
        )
        for mix in mixes:
            if not mix:
                raise UsageError("--profile names no release")
            machine(player.setup(mix))
    except (ScenarioError, ValueError) as error:
        raise usage(error) from error
    return player


def _histories(options: argparse.Namespace) -> TargetPlayer:
    """The player for a target; starts it once in a process of its own, to hear what it is."""
    from rebalance.gate.check.player import TargetPlayer
    from rebalance.gate.targets.resolve import TargetError, resolve
    from rebalance.gate.targets.session import Session
    from rebalance.model.values import RebalanceProtocol
    from rebalance.properties.assignors.clauses import select
    from rebalance.properties.verdict import Level

    if options.profile:
        raise UsageError(f"--profile goes with a SCENARIO, and {options.what or 'a command'!r} is a target")
    try:
        select(options.clause)
    except ValueError as error:
        raise UsageError(f"--clause: {error}") from error
    try:
        target = resolve(options.what, options.command)
        with Session(target, options.call_seconds, memory_mib=options.memory_mib) as session:
            hello = session.hello
    except TargetError as error:
        raise UsageError(str(error)) from error
    wanted = (
        tuple(RebalanceProtocol) if options.protocol == "auto" else (RebalanceProtocol(options.protocol),)
    )
    protocols = tuple(protocol for protocol in hello.protocols if protocol in wanted)
    if not protocols:
        raise UsageError(f"--protocol: {target.label} does not support {options.protocol}")
    return TargetPlayer(
        spec=target.spec,
        protocols=protocols,
        version=hello.version or "",
        clauses=tuple(options.clause),
        level=Level(options.level),
        directory=os.getcwd(),
        call_seconds=options.call_seconds,
        memory_mib=options.memory_mib,
    )


# -- what came of it -------------------------------------------------------------------------------------


def _shrink(
    player: TargetPlayer | WalkPlayer,
    found: Mapping[str, Any],
    campaign: Campaign,
    options: argparse.Namespace,
) -> dict[str, str]:
    """Make the smallest failing scenario of each clause small, and the first of each way to be lost, and
    save them; clause -> path."""
    from rebalance.gate.check.player import TargetPlayer, shrink_histories
    from rebalance.gate.targets.resolve import TargetError
    from rebalance.gate.traces import counterexamples, files, runs
    from rebalance.pipeline.campaign.campaign import Failing
    from rebalance.pipeline.campaign.walks import shrink_walks
    from rebalance.pipeline.progress import progress

    failing = [Failing(row.clause, row.number, row.seed, row.scenarios) for row in found["clauses"]]
    lost = {row.verdict: (row.number, row.seed) for row in reversed(found["quarantine"])}
    paths: dict[str, str] = {}
    if not failing and not lost:
        return paths
    try:
        if options.traces is None:
            files.make_root(ROOT)
        out = options.traces or ROOT / files.FAILURES
        with progress("traces", len(failing), quiet=options.no_progress) as report_progress:
            if isinstance(player, TargetPlayer):
                small = shrink_histories(
                    player, failing, tuple(lost.values()), seed=campaign.seed, played=campaign.scenarios
                )
                for row in small.clauses:
                    if row.finding is not None:
                        trace = counterexamples.of(
                            row.finding, small.target, small.profile, small.suite_version
                        )
                        paths[row.id] = str(counterexamples.save(trace, out))
            else:
                for clause, run in shrink_walks(player, failing):
                    paths[clause] = str(runs.save(run, out))
                    report_progress(len(paths))
    except (OSError, TargetError) as error:
        print_err(f"the traces cannot be made: {error}")
    except KeyboardInterrupt:
        print_err("interrupted while the traces were made; all scenarios are played and kept")
    return paths


def _show(
    campaign: Campaign,
    directory: Path,
    found: Mapping[str, Sequence[Any]],
    paths: Mapping[str, str],
    options: argparse.Namespace,
) -> int:
    from rebalance.gate.report.terminal.campaign import data, exit_code, render

    if options.format == "json":
        print_out(json.dumps(data(campaign, directory, found, paths), indent=2))
    else:
        print_out(render(campaign, directory, found, paths))
    return int(exit_code(campaign, found))
