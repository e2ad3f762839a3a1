"""A group of a simulation, played by hand, for the tests."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from rebalance_verifier.live.code.answers import SimulationCallback, SimulationEvent
from rebalance_verifier.live.code.simulation import NotEnabled, Simulation, SimulationMember
from rebalance_verifier.model.bugs.releases import NEWEST

RELEASE = NEWEST

needs_java = pytest.mark.skipif(
    not (shutil.which("java") and shutil.which("mvn")), reason="needs a JDK and Maven"
)

Events = list[SimulationEvent]


class Played:
    """A group of a simulation, played by hand: what happened so far is in ``events``."""

    def __init__(
        self,
        simulation: Simulation,
        members: Sequence[SimulationMember],
        topics: Mapping[str, int],
        coordinator: str = RELEASE,
        **config: Any,
    ) -> None:
        self.simulation, self.count, self.events = simulation, len(members), Events()
        simulation.create(coordinator, members, topics, config)
        for number in range(self.count):
            self.do("start", member=number)

    def do(self, name: str, **arguments: Any) -> Events:
        found = list(self.simulation.command(name, **arguments))
        self.events += found
        return found

    def maybe(self, name: str, **arguments: Any) -> Events:
        try:
            return self.do(name, **arguments)
        except NotEnabled:
            return []

    def round(self, *members: int) -> Events:
        """Each polls, and what it sends arrives, and what it is sent."""
        before = len(self.events)
        for number in members or self.up():
            self.do("poll", member=number)
            self.maybe("deliver", member=number)
            self.maybe("respond", member=number)
        return self.events[before:]

    def settle(self) -> None:
        """Rounds until nothing but heartbeats happens; a join phase that waits for who is gone is ended."""
        for _ in range(40):
            happened = [*self.round(), *self.round()]  # what arrives in one shows in the next
            if happened:
                continue
            for number in self.up():
                self.maybe("heartbeat", member=number)
            beats = [*self.round(), *self.round(), *self.round()]  # the third joins after the second looked
            if {getattr(one, "api", "") for one in beats} - {"Heartbeat"}:
                continue
            if self.simulation.state().coordinator.state != "PREPARING_REBALANCE":
                return
            self.do("expire", timer="rebalance")
        raise AssertionError("it does not settle")

    def up(self) -> list[int]:
        return [number for number, one in enumerate(self.simulation.state().members) if one]

    def callbacks(self, member: int) -> list[tuple[str, str]]:
        return [
            (one.call, " ".join(sorted(one.partitions)))
            for one in self.events
            if isinstance(one, SimulationCallback) and one.member == member
        ]

    def owned(self) -> list[str]:
        return [" ".join(sorted(one.owned)) if one else "-" for one in self.simulation.state().members]
