"""Do model and Kafka's code disagree when the model is wrong?

``python -m tools.mutation.in_lockstep --count 10`` walks in lockstep with each of ten mutants that survive in
mutation.md although the model has another number of states with them: a sample, always the same.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random

from rebalance.explore.groups.scenarios import SCENARIOS, ScenarioSize
from rebalance.live.code.cell import KafkaCell
from rebalance.live.lockstep.both import Disagreement, Lockstep
from rebalance.live.lockstep.walks import lockstep_setup, walk
from rebalance.live.replay.attempts import code_releases

from tools.mutation.loading import loaded
from tools.mutation.mutants import Mutant, mutants

ROW = re.compile(r"\| `[\w.]+:\d+` (?P<key>.*) \| survived  \|  \| False \|")
"""One that survives in mutation.md, with other counts than the model."""

NAMES = ("dynamic", "static", "failover", "topics", "static-failover", "crowded", "eager")
"""The scenarios that are walked through in turn."""


def chosen(count: int) -> list[Mutant]:
    """So many of the open mutants that the model still has, in a fixed random order."""
    page = (Path(__file__).parent / "mutation.md").read_text(encoding="utf-8")
    keys = {match["key"] for match in map(ROW.fullmatch, page.splitlines()) if match}
    found = [mutant for mutant in mutants() if _row(mutant) in keys]
    Random(1).shuffle(found)
    return found[:count]


def _row(mutant: Mutant) -> str:
    """A mutant as the page names it, without its module."""
    function, rest = mutant.key.partition(" | ")[::2]
    return f"{function.rpartition('.')[2]}, {rest.replace(' | ', ', ')}"


def noticed(mutant: Mutant, cell: KafkaCell, release: str, walks: int) -> tuple[str, Disagreement] | None:
    """The first scenario in which a walk with the mutant disagrees with Kafka, and how."""
    releases = code_releases(f"code:{release}")
    for name in NAMES:
        setup = lockstep_setup(SCENARIOS[name], ScenarioSize(members=3, partitions=3), releases)
        with loaded(mutant) as modules:
            built = modules["group"].machine(setup)
            for number in range(walks):
                found = walk(Lockstep(cell, setup, built, releases), Random(f"0/{number}"), 100)
                if found is not None:
                    return name, found
    return None


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line. Returns 1 when one is not noticed."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutation.in_lockstep")
    parser.add_argument("--count", type=int, default=10, help="how many mutants (10)")
    parser.add_argument("--walks", type=int, default=100, help="walks in each scenario (100)")
    parser.add_argument("--release", default="4.4.0", help="of Kafka (4.4.0)")
    given = parser.parse_args(arguments)
    missed, some = 0, chosen(given.count)
    with KafkaCell([given.release], [given.release]) as cell:
        for mutant in some:
            try:
                found = noticed(mutant, cell, given.release, given.walks)
            except Exception as error:  # a model that raises is noticed by whoever runs it
                print(f"noticed  {mutant.key}\n         raises {type(error).__name__}: {error}")
                continue
            missed += found is None
            print(f"{'missed ' if found is None else 'noticed'}  {mutant.key}")
            if found is not None:
                print(f"         {found[0]}: {found[1].cause}", flush=True)
    print(f"{len(some) - missed} of {len(some)} noticed")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
