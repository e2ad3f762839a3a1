"""``rebalance conform --code``: model and Kafka's own code, step by step at once."""

from __future__ import annotations

import argparse
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rebalance_verifier.base.names import unknown
from rebalance_verifier.base.text import clean
from rebalance_verifier.base.verdict import Exit
from rebalance_verifier.cli.console.progress import counted, progress
from rebalance_verifier.cli.console.terminal import UsageError, answer, json_text, usage_errors, write
from rebalance_verifier.cli.shared.options import add_options
from rebalance_verifier.cli.shared.releases import faults, of_code
from rebalance_verifier.cli.shared.reports import Reports
from rebalance_verifier.cli.shared.values import natural

if TYPE_CHECKING:
    pass


OF_CODE = (
    "--scenario", "--members", "--partitions", "--faults", "--walks", "--first-walk", "--depth", "--seed",
    "--jobs",
)  # fmt: skip
"""Options that go with ``--code``."""


def add_lockstep(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``--code``."""
    group = parser.add_argument_group(
        "differential testing with Kafka's own code",
        "Each walk takes random steps that the model allows, and takes them in the released code too; both "
        "must look alike after each.",
    )
    add_options(group, "--code", *OF_CODE[:5], scenario="dynamic", walks=200)
    group.add_argument("--first-walk", type=natural, default=0, metavar="N", help="number of the first walk, "
                       "to continue another command (0)")  # fmt: skip
    add_options(group, "--depth", "--seed", "--jobs", depth=100, seed=0)


def run_lockstep(options: argparse.Namespace) -> int:
    """Walk, and say what came of it. Raises UsageError."""
    from rebalance_verifier.base.processes.tools import ToolError
    from rebalance_verifier.base.processes.workers import CannotStart
    from rebalance_verifier.explore.groups.scenarios import SCENARIOS, ScenarioError, ScenarioSize
    from rebalance_verifier.live.code.lockstep.setups import lockstep_setup
    from rebalance_verifier.live.code.lockstep.walks import LockstepPlan, lockstep
    from rebalance_verifier.report.ci import code_reports
    from rebalance_verifier.report.terminal import lockstep as lockstep_text

    if options.scenario not in SCENARIOS:
        raise UsageError(f"--scenario: {unknown('scenario', options.scenario, SCENARIOS)}")
    releases = of_code(options)
    size = ScenarioSize(members=options.members, partitions=options.partitions, faults=faults(options.faults))
    with usage_errors(ScenarioError, ValueError):
        setup = lockstep_setup(SCENARIOS[options.scenario], size, releases)
    plan = LockstepPlan(
        setup=setup, releases=releases, walks=options.walks, steps=options.depth, seed=options.seed,
        first=options.first_walk, jobs=options.jobs,
    )  # fmt: skip
    reports = Reports.of_cases(options)
    began = time.monotonic()
    try:
        with progress(options) as show:
            found = lockstep(
                plan,
                lambda seen: show(lambda: counted("walks", seen.walks, plan.walks, time.monotonic() - began)),
            )
    except (CannotStart, ToolError) as error:
        raise UsageError(f"--code {options.code}: {clean(str(error))}") from error
    document = partial(lockstep_text.data, found)
    if options.out is not None:
        write(Path(options.out), json_text(document()) + "\n", "--out")
    answer(options, document, lambda: lockstep_text.render(found, options.scenario))
    reports.finish_cases(
        lambda: code_reports.in_step(found, options.scenario), document,
        lead="This page shows whether the model of the group and Kafka's own code do the same.",
    )  # fmt: skip
    return Exit.of(found.verdict, interrupted=found.interrupted)
