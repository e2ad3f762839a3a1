"""What a campaign plays on Kafka's own code: walks in step with the model, those of ``conform --code``.

The player is sent to the workers of Spark, and has a simulation in each; the first walk that disagrees is
made short where the command runs.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rebalance_verifier.base.processes.tools import ToolError
from rebalance_verifier.base.processes.workers import CannotStart
from rebalance_verifier.explore.groups.scenarios import ScenarioSize, scenario
from rebalance_verifier.live.code.lockstep.protocols import in_step
from rebalance_verifier.live.code.lockstep.setups import lockstep_setup
from rebalance_verifier.live.code.lockstep.system import drawn, walk
from rebalance_verifier.live.code.lockstep.walks import LockstepPlan, LockstepResult, lockstep
from rebalance_verifier.live.code.replay.group import CodeReleases
from rebalance_verifier.live.code.simulation import Simulation, SimulationDied
from rebalance_verifier.model.group.setup import Setup
from rebalance_verifier.model.protocols import machine
from rebalance_verifier.pipeline.campaign.campaign import CONFORMANT, VIOLATION, PlaySeed, SliceOutcome


@dataclass(frozen=True, kw_only=True)
class LockstepPlayer:
    """Walks of a group of these ``releases``; what is not given of its size is as the scenario has it.

    ``seed``: that of the campaign, from which ``conform --code`` draws too.
    """

    scenario: str
    releases: CodeReleases
    members: int | None = None
    partitions: int | None = None
    faults: tuple[str, ...] | None = None
    steps: int = 100
    seed: int = 0

    def identity(self) -> dict[str, Any]:
        """Return what the rows depend on."""
        return {
            "scenario": self.scenario,
            "code": str(self.releases),
            "members": self.members,
            "partitions": self.partitions,
            "faults": None if self.faults is None else list(self.faults),
            "steps": self.steps,
        }

    def setup(self) -> Setup:
        """Return the group. Raises ScenarioError, ValueError."""
        size = ScenarioSize(members=self.members, partitions=self.partitions, faults=self.faults)
        return lockstep_setup(scenario(self.scenario), size, self.releases)

    @contextlib.contextmanager
    def playing(self) -> Iterator[PlaySeed]:
        """Yield one simulation for all walks; another where it died. Raises CannotStart."""
        setup, simulations = self.setup(), contextlib.ExitStack()
        built = machine(setup)

        def started() -> Simulation:
            try:
                return simulations.enter_context(
                    Simulation([self.releases.coordinator], self.releases.consumers)
                )
            except (SimulationDied, ToolError) as error:
                raise CannotStart(str(error)) from error

        with simulations:
            simulation = started()

            def play(seed: int, number: int) -> SliceOutcome:
                nonlocal simulation
                both = in_step(simulation, setup, built, self.releases)
                found = walk(both, drawn(self.seed, number), self.steps)
                if why := simulation.over:
                    simulations.close()
                    simulation = started()
                    raise SimulationDied(why)
                coverage = Counter({f"step: {action}": times for action, times in both.seen.taken.items()})
                coverage |= {f"known: {name}": times for name, times in both.seen.deviations.items()}
                coverage |= {f"unforced: {name}": times for (name, _), times in both.seen.unforced.items()}
                return SliceOutcome(
                    CONFORMANT if found is None else VIOLATION,
                    () if found is None else (found.cause,),
                    None if found is None else "; ".join(found.sentences),
                    str(self.releases),
                    members=len(setup.consumers),
                    partitions=setup.exist.bit_count(),
                    steps=both.seen.steps,
                    coverage=coverage,
                )

            yield play

    def walked_again(self, number: int) -> LockstepResult:
        """Walk ``number`` here, as ``conform --code`` does; its disagreement is made short. Raises
        CannotStart.
        """
        plan = LockstepPlan(
            setup=self.setup(), releases=self.releases, walks=1, steps=self.steps, seed=self.seed,
            first=number, jobs=1,
        )  # fmt: skip
        return lockstep(plan)
