"""What a campaign plays on the model, walks of a group, and how those that fail are made short.

The player is sent to the workers of Spark; walks are made short where the command runs.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rebalance_verifier.explore.groups.exploration import saved_run
from rebalance_verifier.explore.groups.runs import SavedRun
from rebalance_verifier.explore.groups.scenarios import ScenarioSize, scenario
from rebalance_verifier.explore.random.minimise import minimise
from rebalance_verifier.explore.random.walks import walk
from rebalance_verifier.model.bugs.profiles import AS_SPECIFIED
from rebalance_verifier.model.group.setup import Setup
from rebalance_verifier.model.protocols import machine
from rebalance_verifier.pipeline.campaign.campaign import (
    CONFORMANT,
    VIOLATION,
    Failing,
    PlaySeed,
    SliceOutcome,
)
from rebalance_verifier.properties.group.clauses import rules
from rebalance_verifier.properties.group.own import gravity, outranked

STATES = 300
"""How far minimising a walk looks for a shorter way; what is shortest, a search of the whole group says."""


@dataclass(frozen=True, kw_only=True)
class WalkPlayer:
    """Random walks of a group. ``mixes``: releases of the members in turn; a seed chooses one of them."""

    scenario: str
    mixes: tuple[tuple[str, ...], ...] = ((AS_SPECIFIED,),)
    members: int | None = None
    partitions: int | None = None
    broker: str = AS_SPECIFIED
    budget: int | None = None
    switches: tuple[str, ...] = ()
    steps: int = 200

    def identity(self) -> dict[str, Any]:
        """Return what the rows depend on."""
        return {**asdict(self), "mixes": [list(mix) for mix in self.mixes], "switches": list(self.switches)}

    def setup(self, mix: Sequence[str]) -> Setup:
        """Return the group with members of these releases. Raises ScenarioError."""
        size = ScenarioSize(
            members=self.members,
            partitions=self.partitions,
            profiles=tuple(mix),
            broker=self.broker,
            budget=self.budget,
            switches=self.switches,
        )
        return scenario(self.scenario).setup(size)

    def mix(self, seed: int) -> tuple[str, ...]:
        """Return the releases that ``seed`` chooses."""
        return self.mixes[seed % len(self.mixes)]

    @contextlib.contextmanager
    def playing(self) -> Iterator[PlaySeed]:
        """Build the groups."""
        setups = {mix: self.setup(mix) for mix in self.mixes}
        built = {mix: (machine(setup), rules(setup)) for mix, setup in setups.items()}
        mild = {mix: outranked(required.broken_by) for mix, (_, required) in built.items()}

        def play(seed: int, number: int) -> SliceOutcome:
            mix = self.mix(seed)
            one = walk(*built[mix], seed, self.steps, mild=mild[mix])
            taken = Counter(f"step: {event.action}" for event in one.trace.events)
            shown = {clause: times for clause, times in one.coverage.witnesses.items() if times}
            sentences = dict(one.broken)
            broken = tuple(sorted(sentences, key=gravity))
            return SliceOutcome(
                VIOLATION if broken else CONFORMANT,
                broken,
                sentences[broken[0]] if broken else None,
                ", ".join(mix),
                members=len(setups[mix].consumers),
                partitions=setups[mix].exist.bit_count(),
                steps=len(one.trace.events),
                coverage={**taken, **shown},
            )

        yield play


def shrink_walks(player: WalkPlayer, failing: Sequence[Failing]) -> Iterator[tuple[str, SavedRun]]:
    """Walk the failing walks again, make them short; yields clause and run."""
    for one in failing:
        mix = player.mix(one.seed)
        setup = player.setup(mix)
        built, required = machine(setup), rules(setup)
        trace = walk(built, required, one.seed, player.steps, mild=outranked(required.broken_by)).trace
        small = minimise(built, required, one.clause, trace, states=STATES)
        origin = {
            "scenario": player.scenario,
            "members": len(setup.consumers),
            "partitions": setup.exist.bit_count(),
            "profiles": list(mix),
            "broker": player.broker,
            **({"switches": list(player.switches)} if player.switches else {}),
            "budget": setup.budget,
            "faults": list(setup.faults),
            "seed": one.seed,
        }
        yield one.clause, saved_run(setup, origin, one.clause, small.trace)
