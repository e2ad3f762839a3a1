"""``rebalance campaign``: any number of scenarios, here or on Spark, until they are played."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rebalance_verifier.base.verdict import Exit
from rebalance_verifier.cli.console.progress import counted, progress
from rebalance_verifier.cli.console.terminal import UsageError, answer, print_err, usage_errors
from rebalance_verifier.cli.shared import traces
from rebalance_verifier.cli.shared.options import LIMITS, add_format, add_java, add_options, refuse
from rebalance_verifier.cli.shared.releases import AS_SPECIFIED, faults, of_code, releases
from rebalance_verifier.cli.shared.targets import clauses, protocols, refuse_files, resolved, session, spec
from rebalance_verifier.cli.shared.values import unless_all, whole

if TYPE_CHECKING:
    from rebalance_verifier.live.code.lockstep.walks import LockstepResult
    from rebalance_verifier.pipeline.campaign.assignor import TargetPlayer
    from rebalance_verifier.pipeline.campaign.campaign import Campaign
    from rebalance_verifier.pipeline.campaign.lockstep import LockstepPlayer
    from rebalance_verifier.pipeline.campaign.walks import WalkPlayer

    AnyPlayer = TargetPlayer | WalkPlayer | LockstepPlayer

SLICE, SLICE_OF_PROGRAM = 20_000, 2_000
"""Scenarios that a kill may cost; a program answers about a tenth as fast as a Python target, and so does
Kafka's own code."""

DEPTH, DEPTH_IN_STEP = 200, 100
"""Steps of a walk, and of one in step with Kafka's own code."""


def add(commands: Any) -> argparse.ArgumentParser:
    """Add the command to the parser's ``commands``."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "campaign",
        epilog="A scenario that hangs or ends its process is a row, and makes the campaign inconclusive "
        "unless something worse was found.",
        description="Play scenarios by the million: histories on TARGET like `rebalance check`, or random "
        "walks of SCENARIO like `rebalance explore --swarm`, with --code like `rebalance "
        "conform --code`. Write Parquet below --out. An equal command continues an "
        "interrupted campaign, and with more --scenarios extends it.",
    )
    parser.add_argument("what", nargs="?", metavar="TARGET|SCENARIO", help="as `rebalance check` or as "
                        "`rebalance explore` takes it; or `-- COMMAND ...`")  # fmt: skip
    parser.add_argument("--as", dest="kind", choices=("target", "scenario"),
                        help="read a name that is both as a target or a scenario")  # fmt: skip
    parser.add_argument("--scenarios", type=whole, metavar="N", help="number of scenarios in all")
    add_options(parser, "--out")
    parser.add_argument("--played", action="store_true", help="show the results in --out and play nothing")
    add_options(parser, "--seed", "--each-limit", seed=0, each_limit=60.0)
    parser.add_argument("--slice", type=whole, metavar="K", help="scenarios that are committed together "
                        f"({SLICE:,}; for a program {SLICE_OF_PROGRAM:,})")  # fmt: skip
    add_options(parser, "--jobs", "--master")
    add_format(parser)
    parser.add_argument("--trace-dir", type=Path, metavar="DIR",
                        help="directory of the traces (.rebalance/failures)")  # fmt: skip
    add_options(parser, "--no-progress")

    target = parser.add_argument_group("for a TARGET")
    add_options(target, "--clause", "--protocol", "--level", *LIMITS)
    add_java(parser)
    group = parser.add_argument_group(
        "for a SCENARIO (defaults: those of the scenario)",
        "Each walk takes one of several --release.",
    )
    add_options(group, "--release", "--members", "--partitions", "--broker", "--max-faults", "--switch",
                "--depth", broker=AS_SPECIFIED)  # fmt: skip
    code = parser.add_argument_group(
        "differential testing of a SCENARIO",
        "Walk N is walk N of `rebalance conform --code`. The first that disagrees is shrunk. Takes "
        "--members, --partitions and --depth.",
    )
    add_options(code, "--code", "--faults")
    return parser


def run(options: argparse.Namespace) -> int:
    """Run the command; return its exit code."""
    from rebalance_verifier.pipeline.campaign.campaign import CampaignError
    from rebalance_verifier.pipeline.session import SparkMissing

    refuse_files(options.what)
    with usage_errors(CampaignError, SparkMissing):
        if options.played and options.out:
            return _report_only(options)
        if options.out is None or options.scenarios is None:
            raise UsageError("a campaign needs --scenarios N and --out DIR (or --played --out DIR)")
        if options.master:
            refuse(options, ("--jobs",), "goes without --master")
        return _campaign(options)


def _campaign(options: argparse.Namespace) -> int:
    from importlib.metadata import version

    from rebalance_verifier.pipeline.campaign import campaign as pipeline
    from rebalance_verifier.pipeline.campaign.lockstep import LockstepPlayer
    from rebalance_verifier.pipeline.campaign.tables import tables

    options.what = spec(options.what, options)
    player = _player(options)
    directory = Path(options.out)
    size = options.slice or (SLICE_OF_PROGRAM if _is_program(options) else SLICE)
    legs = ((options.scenarios, size),)
    wanted = pipeline.Campaign(player.identity(), options.seed, legs, version("rebalance-verifier"))
    with pipeline.locked(directory):
        campaign = pipeline.enlist(directory, wanted)
        try:
            if pipeline.played(directory, campaign) != campaign.slices():
                _play(player, campaign, directory, options)
            found = tables(directory, campaign)
        except KeyboardInterrupt:
            print_err(
                f"interrupted: {pipeline.kept(directory, campaign):,} of {campaign.scenarios:,} scenarios "
                f"are kept in {directory}; the same command goes on from there, `rebalance campaign --played "
                f"--out {directory}` shows them"
            )
            return Exit.INTERRUPTED
    if isinstance(player, LockstepPlayer):
        return _show(campaign, directory, found, {}, options, _walked_again(player, found))
    return _show(campaign, directory, found, _shrink(player, found, campaign, options), options)


def _play(player: AnyPlayer, campaign: Campaign, directory: Path, options: argparse.Namespace) -> None:
    """By processes of this machine, or by Spark if its master is named."""
    from rebalance_verifier.pipeline.campaign.campaign import kept

    before, began = kept(directory, campaign), time.monotonic()
    with progress(options) as show:

        def count(done: int) -> None:
            spent = time.monotonic() - began
            show(lambda: counted("scenarios", done, campaign.scenarios, spent, before))

        played = (player, campaign, directory, options.each_limit, count)
        if options.master:
            from rebalance_verifier.pipeline.campaign import spread

            spread.run(options.master, *played)
        else:
            from rebalance_verifier.pipeline.campaign import alone

            alone.run(*played, options.jobs)


def _is_program(options: argparse.Namespace) -> bool:
    from rebalance_verifier.gate.targets.hosts.java import JAVA

    return bool(options.command or options.code) or (options.what or "").startswith(JAVA)


def _report_only(options: argparse.Namespace) -> int:
    from rebalance_verifier.pipeline.campaign import campaign as pipeline
    from rebalance_verifier.pipeline.campaign.tables import tables

    directory = Path(options.out)
    campaign = pipeline.load(directory)
    if campaign is None:
        raise UsageError(f"--played: there is no campaign in {directory}")
    return _show(campaign, directory, tables(directory, campaign), {}, options)


# -- what is played --------------------------------------------------------------------------------------


def _player(options: argparse.Namespace) -> AnyPlayer:
    """Return the player of TARGET|SCENARIO. Raises UsageError."""
    from rebalance_verifier.explore.groups.scenarios import SCENARIOS
    from rebalance_verifier.gate.targets.resolve import known

    if options.code:
        return _in_step(options)
    if options.faults is not None:
        raise UsageError("--faults goes with --code; walks of the model have those of their scenario")
    named = options.what in SCENARIOS and not options.command
    if named and options.what in known() and options.kind is None:
        raise UsageError(f"{options.what!r} is an assignor and a scenario: say --as target or --as scenario")
    if options.kind == "scenario" or (named and options.kind is None):
        return _walks(options)
    return _histories(options)


def _walks(options: argparse.Namespace) -> WalkPlayer:
    from rebalance_verifier.explore.groups.scenarios import scenario
    from rebalance_verifier.model.bugs.profiles import client
    from rebalance_verifier.model.protocols import machine
    from rebalance_verifier.pipeline.campaign.walks import WalkPlayer

    with usage_errors(ValueError):
        scenario(options.what or "")
        releases(options)
        named = tuple(options.release) or ((AS_SPECIFIED,),)
        mixes = tuple(tuple(client(one).name for one in mix) for mix in named)
        player = WalkPlayer(
            scenario=options.what,
            mixes=mixes,
            members=options.members,
            partitions=options.partitions,
            broker=options.broker,
            budget=options.max_faults,
            switches=tuple(dict.fromkeys(options.switch)),
            steps=options.depth or DEPTH,
        )
        for mix in mixes:
            if not mix:
                raise UsageError("--release names no release")
            machine(player.setup(mix))
    return player


def _in_step(options: argparse.Namespace) -> LockstepPlayer:
    from rebalance_verifier.pipeline.campaign.lockstep import LockstepPlayer

    refuse(options, ("--release", "--broker", "--max-faults", "--switch"), "does not go with --code")
    player = LockstepPlayer(
        scenario=options.what or "",
        releases=of_code(options),
        members=options.members,
        partitions=options.partitions,
        faults=faults(options.faults),
        steps=options.depth or DEPTH_IN_STEP,
        seed=options.seed,
    )
    with usage_errors(ValueError):
        player.setup()
    return player


def _histories(options: argparse.Namespace) -> TargetPlayer:
    """The player for a target; starts it once in a process of its own, to hear what it is."""
    from rebalance_verifier.base.verdict import Level
    from rebalance_verifier.pipeline.campaign.assignor import TargetPlayer

    if options.release:
        raise UsageError(f"--release goes with a SCENARIO, and {options.what or 'a command'!r} is a target")
    clauses(options.clause)
    target = resolved(options.what, options.command)
    with session(target, options) as talk:
        hello = talk.hello
    if not (common := tuple(one for one in hello.protocols if one in protocols(options))):
        raise UsageError(f"--protocol: {target.label} does not support {options.protocol}")
    return TargetPlayer(
        spec=target.spec,
        protocols=common,
        version=hello.version or "",
        clauses=unless_all(options.clause),
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
    from rebalance_verifier.gate.search import counterexamples
    from rebalance_verifier.gate.targets.hosts.hosted import TargetError
    from rebalance_verifier.pipeline.campaign.assignor import TargetPlayer, shrink_histories
    from rebalance_verifier.pipeline.campaign.campaign import Failing
    from rebalance_verifier.pipeline.campaign.walks import shrink_walks
    from rebalance_verifier.traces import runs

    failing = [Failing(row.clause, row.number, row.seed, row.scenarios) for row in found["clauses"]]
    lost = {row.verdict: (row.number, row.seed) for row in reversed(found["quarantine"])}
    paths: dict[str, str] = {}
    if not failing and not lost:
        return paths
    try:
        out = traces.directory(options.trace_dir)
        with progress(options) as show:
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
                    show(lambda: f"{len(paths)} of {len(failing)} traces")
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
    first: LockstepResult | None = None,
) -> int:
    """``first``: of walks in step, the first that disagrees, made short."""
    from rebalance_verifier.pipeline.campaign.campaign import exit_of
    from rebalance_verifier.report.terminal import lockstep
    from rebalance_verifier.report.terminal.campaign import data, render

    of = (campaign, directory, found, paths)
    lines = [] if first is None else ["", lockstep.render(first, campaign.identity["scenario"])]
    in_step = {} if first is None else {"in_step": lockstep.data(first)}
    answer(options, lambda: {**data(*of), **in_step}, lambda: "\n".join([render(*of), *lines]))
    return int(exit_of(campaign, found))


def _walked_again(player: LockstepPlayer, found: Mapping[str, Sequence[Any]]) -> LockstepResult | None:
    """The first walk that disagrees, walked here as ``conform --code`` does. Raises UsageError."""
    from rebalance_verifier.base.processes.workers import CannotStart

    first = min((row.first for row in found["clauses"]), default=None)
    with usage_errors(CannotStart, option="--code"):
        return None if first is None else player.walked_again(first)
