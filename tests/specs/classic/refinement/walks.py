"""Random runs of the model, each step of which is checked against the logic."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from rebalance_verifier.explore.random.swarm import (
    DENSITIES,
    SWARM_SEEDS,
    RandomRun,
    run_context,
    swarm_config,
)
from rebalance_verifier.model.classic.describe import event_text
from rebalance_verifier.model.group.setup import Setup
from rebalance_verifier.properties.group.rules import Rules
from rebalance_verifier.specs.classic.refinement.abstraction import StructureSize
from rebalance_verifier.specs.classic.refinement.refinement import Refinement, Report
from rebalance_verifier.specs.logic.transitions import NumberedMachine, Transition

RUN = 80
"""How many steps a random run has at most."""


def check_walks(setup: Setup, seed: int, count: int) -> Report:
    """Check at least ``count`` steps of random runs, and the states after them, to the first failure."""
    refinement = Refinement(setup, size=StructureSize(3, 6))
    failure = refinement.begin()
    random, played = Random(seed), run_context(refinement.setup, no_rules)
    while not failure and refinement.report.transitions < count:
        random_run = RandomRun(
            played, swarm_config(played, random.choice(DENSITIES), random.randrange(SWARM_SEEDS))
        )
        for transition in _run(refinement.numbered, random_run, random):
            failure = failure or refinement.check(transition)
            failure = failure or refinement.judge(transition.after, event_text(transition.event))
    refinement.report.failure = failure
    return refinement.report


def _run(numbered: NumberedMachine, random_run: RandomRun, random: Random) -> Iterator[Transition]:
    machine = random_run.context.machine
    for _ in range(RUN):
        state = random_run.state
        if not random_run.step(random.randint(1, random_run.top)):
            return
        event = random_run.events[-1]
        seen = next(
            outcome.seen
            for outcome in random_run.context.possible(state, machine.by_name[event.action, event.who])
            if outcome.choice == event.choice and machine.apply(state, event, outcome) == random_run.state
        )
        before, after = numbered.normal(numbered.numbers(state), numbered.numbers(random_run.state))
        yield Transition(before, event, after, seen)


def no_rules(setup: Setup) -> Rules:
    """Nothing is asked: the runs are judged elsewhere."""
    return Rules()
