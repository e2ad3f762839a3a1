"""Groups of the model that a proof looks at, to see that it is about them.

The broad ones have all kinds of faults that the logic knows, so that every two of them can come together;
the others come deeper with fewer kinds. Together they have dynamic and static members, EAGER and COOPERATIVE
ones and both at once, with and without a failover, on connections that hold and on some that break.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from rebalance_verifier.explore.groups.scenarios import (
    ALWAYS_POSSIBLE,
    CONSUMER_FAULTS,
    SCENARIOS,
    NamedScenario,
    ScenarioSize,
)
from rebalance_verifier.model.group.setup import Setup
from rebalance_verifier.model.protocols import PROTOCOLS

CLASSIC_KINDS, CONSUMER_KINDS, MIGRATION_KINDS = (protocol.faults for protocol in PROTOCOLS.values())

BROAD = 3
"""How many times as many steps a broad group gets as another one."""

_WAYS: Mapping[str, Mapping[str, str]] = json.loads(Path(__file__).with_name("ways.json").read_text())
"""By the title of a group and the action; the shortest, as a search with a few kinds of faults found them."""


@dataclass(frozen=True, kw_only=True)
class SampledGroup:
    """A scenario in one size. ``budget`` faults may happen in one run, of the kinds ``faults`` (None: those
    of the scenario); ``share``: how large its part of the steps is."""

    scenario: NamedScenario
    members: int = 2
    partitions: int = 2
    budget: int = 4
    faults: tuple[str, ...] | None = None
    share: int = 1

    @property
    def title(self) -> str:
        return f"{self.scenario.name}, {self.members} x {self.partitions}"

    @property
    def ways(self) -> Mapping[str, tuple[str, ...]]:
        """Events on which actions become possible that random runs seldom come to."""
        return {action: tuple(events.split("; ")) for action, events in _WAYS.get(self.title, {}).items()}

    def setup(self) -> Setup:
        """Return the group, in which members and partitions have one naming."""
        return self.scenario.setup(
            ScenarioSize(
                members=self.members,
                partitions=self.partitions,
                budget=self.budget,
                faults=self.faults,
                naming="given",
            )
        )


def _group(name: str, members: int = 2, partitions: int = 2, budget: int = 4) -> SampledGroup:
    return SampledGroup(
        scenario=SCENARIOS[name], members=members, partitions=partitions, budget=budget
    )  # fmt: skip


def _broad(like: str, title: str, faults: tuple[str, ...], members: int = 2, **given: int) -> SampledGroup:
    scenario = replace(SCENARIOS[like], name=title, **given)  # type: ignore[arg-type]
    return SampledGroup(scenario=scenario, members=members, faults=faults, share=BROAD)


CLASSIC: tuple[SampledGroup, ...] = (
    _broad("dynamic", "all faults", CLASSIC_KINDS, topics=2, spare=1, racks=2),
    _broad("static", "all faults, static", CLASSIC_KINDS, topics=2, spare=1, racks=2),
    _broad("dynamic", "all faults, alone", CLASSIC_KINDS, members=1, topics=2, spare=1, racks=2),
    _broad(
        "static",
        "all faults, static, alone",
        CLASSIC_KINDS,
        members=1,
        topics=2,
        spare=1,
        racks=2,
    ),
    _broad("crowded", "all faults, crowded", CLASSIC_KINDS, topics=2, spare=1, racks=2),
    _group("connections", members=3, budget=3),
    _group("failover"),
    _group("eager"),
    replace(_group("mixed"), faults=(*ALWAYS_POSSIBLE, "failover")),
    replace(_group("static"), faults=(*ALWAYS_POSSIBLE, "failover")),
    _group("static-connections"),
    _group("topics"),
    _group("crowded", partitions=1, budget=3),
    _group("leaving", budget=3),
    _group("static-appends", budget=3),
    _group("careless", budget=3),
    _group("shrinking", budget=2),
    _group("racks", budget=2),
)

_ONE_WAY = ("left behind",)
"""The logic has one heartbeat of a process under way at a time, none that outlives its connection."""
_OF_CONSUMER = tuple(kind for kind in CONSUMER_KINDS if kind not in _ONE_WAY)

CONSUMER: tuple[SampledGroup, ...] = (
    _broad("consumer-topics", "consumer, all faults", _OF_CONSUMER),
    _broad("consumer-topics", "consumer, all faults, static", _OF_CONSUMER, static=True),
    _group("consumer"),
    _group("consumer", members=3, budget=3),
    replace(_group("consumer-topics"), faults=CONSUMER_FAULTS),
    _group("consumer-patterns"),
    replace(
        _group("consumer-static", budget=3),
        faults=("close", "crash", "disconnect", "max poll", "session timeout"),
    ),
)

_OF_MIGRATION = tuple(kind for kind in MIGRATION_KINDS if kind not in ("failover", "topic made anew"))
"""The logic has no failover of a classic group, and no topic that classic members know by its name alone."""

MIGRATION: tuple[SampledGroup, ...] = (
    _broad("migration", "migration, all faults", _OF_MIGRATION, members=3, topics=2),
    _broad("migration-upgrade", "migration-upgrade, all faults", _OF_MIGRATION, topics=2),
    _group("migration", members=3, budget=3),
    _group("migration-upgrade", budget=3),
    _group("migration-downgrade", budget=3),
    _group("migration-disabled", budget=2),
)

SAMPLED: Mapping[str, tuple[SampledGroup, ...]] = {
    "classic": CLASSIC, "consumer": CONSUMER, "migration": MIGRATION,
}  # fmt: skip
"""By the protocol."""
