"""Do model and Kafka's code disagree when the model is wrong?

``python -m tools.mutation.in_lockstep --count 10`` walks in lockstep with each of ten mutants that survive in
mutation.md: a sample, the same as long as that page is. Left out of it are mutants of what no release comes
to, by the reasons of `tools.lockstep_coverage`, and those that are shown there to change nothing; the next of
the same random order come in their stead.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from random import Random

from rebalance.explore.groups.scenarios import SCENARIOS, ScenarioSize
from rebalance.live.code.cell import KafkaCell
from rebalance.live.lockstep.both import Disagreement, Lockstep
from rebalance.live.lockstep.walks import lockstep_setup, walk
from rebalance.live.processes.workers import stream
from rebalance.live.replay.attempts import code_releases

from tools.lockstep_coverage import Reasons, equivalent
from tools.mutation.loading import loaded
from tools.mutation.mutants import Mutant, mutants, sources

ROW = re.compile(r"\| `[\w.]+:\d+` (?P<key>.*) \| survived +\| .*\|")
"""One that survives in mutation.md."""

NOW = "code:4.4.0"
MIXED = "coordinator:4.4.0,consumer:4.4.0,consumer:2.8.1,consumer:2.4.1"

WALKED = (
    ("dynamic", NOW), ("static", NOW), ("failover", NOW), ("static-failover", NOW), ("crowded", NOW),
    ("topics", MIXED), ("connections", MIXED), ("eager", MIXED), ("sticky", MIXED), ("static", MIXED),
)  # fmt: skip
"""The groups that are walked with in turn: scenario and releases."""


def chosen(count: int) -> Iterator[tuple[Mutant, str]]:
    """So many of the open mutants that the model still has, in a fixed random order, and between them those
    that are left out, with the reason."""
    page = (Path(__file__).parent / "mutation.md").read_text(encoding="utf-8")
    keys = {match["key"] for match in map(ROW.fullmatch, page.splitlines()) if match}
    found = [mutant for mutant in mutants() if _row(mutant) in keys]
    Random(1).shuffle(found)
    for mutant in found:
        reasons = Reasons(mutant.module, sources()[mutant.module])
        why = equivalent().get(mutant.key, "") or reasons.reason(mutant.line)
        yield mutant, why
        count -= not why
        if not count:
            return


def _row(mutant: Mutant) -> str:
    """A mutant as the page names it, without its module."""
    function, rest = mutant.key.partition(" | ")[::2]
    return f"{function.rpartition('.')[2]}, {rest.replace(' | ', ', ')}"


def noticed(mutant: Mutant, cell: KafkaCell, walks: int) -> tuple[str, Disagreement] | None:
    """The first group in which a walk with the mutant disagrees with Kafka, and how."""
    with loaded(mutant) as modules:
        groups = []
        for name, code in WALKED:
            releases = code_releases(code)
            setup = lockstep_setup(SCENARIOS[name], ScenarioSize(members=3, partitions=3), releases)
            groups.append(
                (f"{name} with {releases.sentence}", setup, modules["group"].machine(setup), releases)
            )
        for number in range(walks):
            for title, setup, built, releases in groups:
                found = walk(Lockstep(cell, setup, built, releases), Random(f"0/{number}"), 100)
                if found is not None:
                    return title, found
    return None


@contextmanager
def working(some: Sequence[Mutant], walks: int) -> Iterator[Callable[[int], Sequence[str]]]:
    """What says of one of ``some`` whether it is noticed, in its own cell."""
    consumers = {one for _, code in WALKED for one in code_releases(code).consumers}
    with KafkaCell([code_releases(NOW).coordinator], sorted(consumers)) as cell:

        def attempt(number: int) -> Sequence[str]:
            try:
                found = noticed(some[number], cell, walks)
            except Exception as error:  # a model that raises is noticed by whoever runs it
                return (f"raises {type(error).__name__}: {error}",)
            return ("" if found is None else f"{found[0]}: {found[1].cause}",)

        yield attempt


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line. Returns 1 when one is not noticed."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutation.in_lockstep")
    parser.add_argument("--count", type=int, default=10, help="how many mutants (10)")
    parser.add_argument("--walks", type=int, default=100, help="walks with each group (100)")
    parser.add_argument("--jobs", type=int, help="how many processes (as many as processors)")
    given = parser.parse_args(arguments)
    sample = list(chosen(given.count))
    tried = [mutant for mutant, why in sample if not why]
    for mutant, why in sample:
        if why:
            print(f"left out {mutant.key}\n         {why}", flush=True)
    missed = 0
    for number, how in stream(partial(working, tried, given.walks), len(tried), given.jobs):
        if how is None:
            raise RuntimeError(f"the worker of {tried[number].key} died")
        missed += not how
        print(f"{'noticed' if how else 'missed '}  {tried[number].key}", flush=True)
        if how:
            print(f"         {how}", flush=True)
    print(f"{len(tried) - missed} of {len(tried)} noticed")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
