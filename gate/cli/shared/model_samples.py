"""Which groups of the executable model a proof looks at, to see that it is about them.

Together they take every kind of fault, with dynamic and static members, EAGER and COOPERATIVE ones and both
at once, with and without a failover, on connections that hold and on some that break.
"""

from __future__ import annotations

from rebalance.explore.groups.scenarios import ALWAYS_POSSIBLE, SCENARIOS, ScenarioSize
from rebalance.specs.refinement.sampling import ModelSample, shares

EVERY_FAULT = (*ALWAYS_POSSIBLE, "failover")

GROUPS: tuple[tuple[str, int, int, int, tuple[str, ...] | None], ...] = (
    ("connections", 3, 2, 3, None),
    ("failover", 2, 2, 4, None),
    ("eager", 2, 2, 4, None),
    ("mixed", 2, 2, 4, EVERY_FAULT),
    ("static", 2, 2, 4, EVERY_FAULT),
    ("static-connections", 2, 2, 4, None),
    ("topics", 2, 2, 4, None),
    ("crowded", 2, 1, 3, None),
)
"""Scenario, members, partitions, faults in one run, and their kinds, None for those of the scenario."""


def model_samples(steps: int, seed: int) -> tuple[ModelSample, ...]:
    """Samples of so many steps together, evenly; none of no steps."""
    samples = tuple(
        ModelSample(
            group=f"{name}, {members} x {partitions}",
            setup=SCENARIOS[name].setup(
                ScenarioSize(
                    members=members, partitions=partitions, budget=budget, faults=faults, naming="given"
                )
            ),
            seed=seed,
            steps=0,
        )
        for name, members, partitions, budget, faults in GROUPS
    )
    return shares(samples, steps) if steps else ()
