"""Do model and Kafka's code disagree when the model is wrong?

``python -m tools.mutation.in_lockstep`` walks in lockstep with each mutant of `SAMPLE`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from random import Random

from rebalance_verifier.base.processes.workers import stream
from rebalance_verifier.explore.groups.scenarios import SCENARIOS, ScenarioSize
from rebalance_verifier.live.code.lockstep.classic import Disagreement, Lockstep
from rebalance_verifier.live.code.lockstep.setups import lockstep_setup
from rebalance_verifier.live.code.lockstep.system import walk
from rebalance_verifier.live.code.replay.attempts import code_releases
from rebalance_verifier.live.code.simulation import Simulation

from tools.mutation.loading import loaded
from tools.mutation.mutants import Mutant, mutants

SAMPLE = """\
application.crash | element dropped | Life.HUNG of (Life.UP, Life.PAUSED, Life.HUNG)
application.enforce_rebalance | step dropped | yield Outcome((budget - 1, member._replace(rejoin=True)), \
seen=(Noted('enforceRebalance'),))
application.leave | always | sends
callbacks.join_complete | always | assigned or remembers(config)
coordinator._all_here | operand dropped | timeout or not pending
coordinator.join_phase_ends | write dropped | *log of (empty, *kept, *wires, *log)
coordinator.persist_replacement | negated | \
quiet and 'static_replace_not_persisted' not in me.setup.coordinator
coordinator.persist_replacement | update dropped | new, header = (logged(me.setup, group, records), group)
leader._subscription | negated | meta.version >= 1
member.complete | operand dropped | not works(member)
""".splitlines()
"""Ten of those that survived the battery before there were tests of single steps, drawn at random from what a
release of a simulation comes to."""

NOW = "code:newest"
MIXED = "coordinator:newest,consumer:newest,consumer:2.8.1,consumer:2.4.1"

WALKED = (
    ("dynamic", NOW, 3), ("static", NOW, 3), ("failover", NOW, 3), ("static-failover", NOW, 3),
    ("crowded", NOW, 3), ("topics", MIXED, 3), ("connections", MIXED, 3), ("eager", MIXED, 3),
    ("sticky", MIXED, 3), ("static", MIXED, 3), ("static-failover", NOW, 1),
)  # fmt: skip
"""The groups that are walked with in turn: scenario, releases, members. One who is alone comes deeper in as
many steps: it returns to a stable group, which fails over."""


def sample() -> list[Mutant]:
    """The mutants of `SAMPLE`. Raises KeyError when the model has one no more."""
    known = {mutant.key: mutant for mutant in mutants()}
    return [known[key] for key in SAMPLE]


def noticed(mutant: Mutant, simulation: Simulation, walks: int) -> tuple[str, Disagreement] | None:
    """The first group in which a walk with the mutant disagrees with Kafka, and how."""
    with loaded(mutant) as modules:
        groups = []
        for name, code, members in WALKED:
            releases = code_releases(code)
            size = ScenarioSize(members=members, partitions=3)
            setup = lockstep_setup(SCENARIOS[name], size, releases)
            title = f"{name} of {members} with {releases.sentence}"
            groups.append((title, setup, modules["group"].machine(setup), releases))
        for number in range(walks):
            for title, setup, built, releases in groups:
                found = walk(Lockstep(simulation, setup, built, releases), Random(f"0/{number}"), 100)
                if found is not None:
                    return title, found
    return None


@contextmanager
def working(some: Sequence[Mutant], walks: int) -> Iterator[Callable[[int], Sequence[str]]]:
    """What says of one of ``some`` whether it is noticed, in its own simulation."""
    consumers = {one for _, code, _ in WALKED for one in code_releases(code).consumers}
    with Simulation([code_releases(NOW).coordinator], sorted(consumers)) as simulation:

        def attempt(number: int) -> Sequence[str]:
            try:
                found = noticed(some[number], simulation, walks)
            except Exception as error:  # a model that raises is noticed by whoever runs it
                return (f"raises {type(error).__name__}: {error}",)
            return ("" if found is None else f"{found[0]}: {found[1].cause}",)

        yield attempt


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line. Returns 1 when one is not noticed."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutation.in_lockstep")
    parser.add_argument("--walks", type=int, default=100, help="walks with each group (100)")
    parser.add_argument("--jobs", type=int, help="how many processes (as many as processors)")
    given = parser.parse_args(arguments)
    tried = sample()
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
