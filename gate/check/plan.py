"""What a check is going to do: how much of the input space, in which order, and what it must reach."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from rebalance.model.values import RebalanceProtocol
from rebalance.properties.assignors.clause import Clause
from rebalance.properties.assignors.clauses import TABLE
from rebalance.properties.assignors.generator import DIMENSIONS, LARGE, SMALL, Draw, Seeded, generate
from rebalance.properties.assignors.scenarios import AddMember, Scenario, ScenarioMember, uniform
from rebalance.properties.verdict import Level


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchProfile:
    """How much is searched. ``each``: scenarios along every single dimension and every protocol;
    ``mixed``: along random combinations; ``large``: of the large size; ``crowd``: members and
    partitions of the one scenario that only an efficient assignor survives (0: leave it out)."""

    name: str
    each: int
    mixed: int
    large: int
    crowd: int
    shrink: int
    """Scenarios that minimising one counterexample may play."""


PROFILES = {
    p.name: p
    for p in (
        SearchProfile(name="smoke", each=4, mixed=20, large=0, crowd=0, shrink=150),
        SearchProfile(name="ci", each=60, mixed=900, large=12, crowd=2100, shrink=1500),
        SearchProfile(name="nightly", each=500, mixed=5000, large=100, crowd=2100, shrink=6000),
        SearchProfile(name="deep", each=20_000, mixed=500_000, large=3000, crowd=4000, shrink=20_000),
    )
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckPlan:
    """What to check. ``level`` is the weakest that fails the run; weaker ones are reported."""

    clauses: tuple[Clause, ...] = TABLE
    protocols: tuple[RebalanceProtocol, ...] | None = None
    profile: SearchProfile = PROFILES["ci"]
    seed: int = 0
    level: Level = Level.LIVENESS
    budget: float | None = None
    """Seconds after which the search stops, inconclusive."""
    fail_fast: bool = False
    expected: Callable[[str], bool] = lambda key: False
    """Whether a clause-protocol id is on a list of known failures: not minimised, does not stop it."""
    repeatable: bool = False
    """Minimising does not look at the clock: what it comes to is the same everywhere."""


PAIRS = (
    ("unequal", "membership"),
    ("unequal", "claims"),
    ("unequal", "faults"),
    ("racks", "membership"),
)
"""Dimensions that do most together: moving partitions is hard only where not everybody may have them."""

ONE_IN_LARGE = 100
"""How many of the scenarios of a campaign there are for one of the large size."""

CROWD = "crowd"
"""The dimension of the one scenario that only an efficient assignor survives."""

FLOORS_FROM = 20
"""Scenarios per dimension from which on a search must reach every situation of ``FLOORS``."""

# Situations that a full search along all dimensions must reach, by protocol: if the target never
# got there, "no violation" would mean little.
FLOORS: dict[RebalanceProtocol, tuple[str, ...]] = {
    RebalanceProtocol.COOPERATIVE: (
        "follow-up rebalance",
        "partition withheld",
        "stale claim",
        "tied claims",
        "claim listed twice",
        "claim to unknown partition",
        "claim to unsubscribed topic",
        "topic without metadata",
        "mixed versions",
        "unequal subscriptions",
        "racks",
        "claims beside none",
        "missed-sync with claims",
        "lost-join with claims",
        "ghost with claims",
        "removed member returns",
        "silent static member",
    ),
    RebalanceProtocol.EAGER: (
        "unequal subscriptions",
        "topic without metadata",
        "mixed versions",
        "racks",
        "missed-sync",
        "lost-join",
        "removed member returns",
        "silent static member",
    ),
}


SLICE = 600
"""Scenarios that are played on one process of the target, from one multiple of it to the next: what a target
answers may depend on what it was asked before, and must not depend on how many processes share the work."""


def slices(total: int) -> list[range]:
    """The numbers of ``total`` scenarios, cut where a new process begins."""
    return [range(first, min(first + SLICE, total)) for first in range(0, total, SLICE)]


def numbered(plan: CheckPlan, protocols: Sequence[RebalanceProtocol]) -> Iterator[Scenario]:
    """All scenarios of a plan in order."""
    return (scenario_at(plan, protocols, number) for number in range(count(plan.profile, protocols)))


def scenario_at(plan: CheckPlan, protocols: Sequence[RebalanceProtocol], number: int) -> Scenario:
    """The scenario with this number, which depends on the seed and the number alone. The dimensions come in
    turn, so that a short run is broad; then random combinations, then the crowd."""
    profile, seed = plan.profile, plan.seed
    systematic = _systematic(tuple(protocols))
    index, which = divmod(number, len(systematic))
    if index < profile.each:
        protocol, names = systematic[which]
        return generate(Seeded(f"{seed}/{protocol}/{'+'.join(names)}/{index}"), protocol, names)
    index, which = divmod(number - profile.each * len(systematic), len(protocols))
    protocol = protocols[which]
    if index < profile.mixed + profile.large:
        draw = Seeded(f"{seed}/{protocol}/mixed/{index}")
        return generate(draw, protocol, some(draw), SMALL if index < profile.mixed else LARGE)
    return crowd(protocol, profile.crowd)


@cache
def _systematic(
    protocols: tuple[RebalanceProtocol, ...],
) -> list[tuple[RebalanceProtocol, tuple[str, ...]]]:
    return [(protocol, names) for protocol in protocols for names in along(protocol)]


def along(protocol: RebalanceProtocol) -> list[tuple[str, ...]]:
    """What is searched systematically: nothing special, every single dimension, and some pairs."""
    single = [(d.name,) for d in DIMENSIONS if protocol in d.protocols]
    return [(), *single, *PAIRS]


def some(draw: Draw) -> tuple[str, ...]:
    """A random combination of dimensions. Swarm: few at once now, many then."""
    one_in = draw.integer(2, 6)
    return tuple(d.name for d in DIMENSIONS if draw.integer(1, one_in) == 1)


def drawn(draw: Draw, protocols: Sequence[RebalanceProtocol]) -> Scenario:
    """A scenario that follows from ``draw`` alone: half along what is systematic, half along combinations."""
    protocol = protocols[draw.integer(0, len(protocols) - 1)]
    ways = along(protocol)
    names = ways[draw.integer(0, len(ways) - 1)] if draw.integer(0, 1) else some(draw)
    return generate(draw, protocol, names, LARGE if draw.integer(1, ONE_IN_LARGE) == 1 else SMALL)


def count(profile: SearchProfile, protocols: Sequence[RebalanceProtocol]) -> int:
    """How many scenarios ``numbered`` yields."""
    systematic = profile.each * sum(len(along(p)) for p in protocols)
    return systematic + len(protocols) * (profile.mixed + profile.large + bool(profile.crowd))


def crowd(protocol: RebalanceProtocol, members: int) -> Scenario:
    """As many partitions as members, and one member more: what took minutes before KAFKA-9987."""
    topics = uniform({f"t{i}": members // 10 for i in range(10)})
    ids = [f"member-{i:05}" for i in range(members)]
    joiner = AddMember(ScenarioMember(id=f"member-{members:05}", topics=tuple(topics)))
    everybody = tuple(ScenarioMember(id=i, topics=tuple(topics)) for i in ids)
    return Scenario(
        protocol=protocol, topics=topics, members=everybody, rounds=((), (joiner,)), dimensions=(CROWD,)
    )
