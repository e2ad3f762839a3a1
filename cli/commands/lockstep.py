"""``rebalance conform --code``: model and Kafka's own code, step by step at once."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from rebalance_verifier.base.names import unknown
from rebalance_verifier.base.text import clean, count, percent
from rebalance_verifier.base.verdict import Exit, Verdict
from rebalance_verifier.cli.console.progress import counted, progress
from rebalance_verifier.cli.console.terminal import UsageError, answer, json_text, usage_errors, write
from rebalance_verifier.cli.shared.options import add_options
from rebalance_verifier.cli.shared.releases import faults, of_code
from rebalance_verifier.cli.shared.values import natural
from rebalance_verifier.report.frame import labelled

if TYPE_CHECKING:
    from rebalance_verifier.live.code.lockstep.walks import LockstepResult


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
    from rebalance_verifier.live.code.lockstep.walks import LockstepPlan, lockstep, lockstep_setup

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
    began = time.monotonic()
    try:
        with progress(options) as show:
            found = lockstep(
                plan,
                lambda seen: show(lambda: counted("walks", seen.walks, plan.walks, time.monotonic() - began)),
            )
    except (CannotStart, ToolError) as error:
        raise UsageError(f"--code {options.code}: {clean(str(error))}") from error
    if options.out is not None:
        write(Path(options.out), json_text(found.data()) + "\n", "--out")
    answer(options, found.data, lambda: "\n".join(text(found, options.scenario)))
    return Exit.of(found.verdict, interrupted=found.interrupted)


def text(found: LockstepResult, scenario: str) -> list[str]:
    """Return the result for people."""
    seen, plan = found.agreement, found.plan
    titles = {Verdict.CONFORMANT: "IN STEP", Verdict.VIOLATION: "OUT OF STEP"}
    word = titles.get(found.verdict, "INTERRUPTED" if found.interrupted else "INCONCLUSIVE")
    lines = [f"{word}  {scenario} with {plan.releases.sentence}", *_rows(found)]
    lines += labelled("stopped", found.stopped, width=10) if found.stopped else []
    if found.disagreement is not None:
        from rebalance_verifier.live.code.lockstep.walks import lines_of

        shortest = map(clean, lines_of(found.disagreement))
        again = "that was found to disagree"
        which = again if found.seen_again else "which a second simulation did not repeat"
        lines += ["", f"the shortest run {which}:", *shortest]
    if found.interrupted:
        lines += ["", f"go on with --seed {plan.seed} --first-walk {plan.first + seen.walks}"]
    return lines


def _rows(found: LockstepResult) -> Iterator[str]:
    from rebalance_verifier.live.code.lockstep.deviations import NAMED

    seen, plan = found.agreement, found.plan
    share = percent(seen.predicted / seen.decisions) if seen.decisions else "none"
    decisions = count(seen.decisions, "leader's decision")
    rows = [
        ("agreed", f"{count(seen.steps, 'step')} of {count(seen.walks, 'walk')}, seed {plan.seed}"),
        ("decided", f"{share} of {decisions} as the model's assignor does"),
        ("in vain", f"{seen.in_vain:,} times tried what is no step of the model"),
        ("never", f"taken: {', '.join(found.never_taken) or 'none'}"),
        *(("threw", f"{name}, {count(times, 'time')}") for name, times in sorted(seen.threw.items())),
    ]
    for name, times in sorted(seen.deviations.items()):
        rows.append(("known", f"{NAMED[name].sentence} ({NAMED[name].releases}; {count(times, 'time')})"))
    for (action, why), times in sorted(seen.unforced.items()):
        rows.append(("unforced", f"{action}: {why} ({count(times, 'time')})"))
    for name, sentence in rows:
        yield from labelled(name, sentence, width=10)
