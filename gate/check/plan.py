"""What a check is going to do: how much of the input space, in which order, and what it must reach."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rebalance.model.values import RebalanceProtocol
from rebalance.properties.clauses import TABLE, Clause, Level
from rebalance.properties.generator import DIMENSIONS, LARGE, SMALL, Draw, Seeded, generate
from rebalance.properties.scenarios import Join, Member, Scenario, uniform


@dataclass(frozen=True, slots=True)
class Profile:
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
        Profile("smoke", 4, 20, 0, 0, 150),
        Profile("ci", 60, 900, 12, 2100, 1500),
        Profile("nightly", 500, 5000, 100, 2100, 6000),
        Profile("deep", 20_000, 500_000, 3000, 4000, 20_000),
    )
}


@dataclass(frozen=True, slots=True)
class Plan:
    """What to check. ``level`` is the weakest that fails the run; weaker ones are reported."""

    clauses: tuple[Clause, ...] = TABLE
    protocols: tuple[RebalanceProtocol, ...] | None = None
    profile: Profile = PROFILES["ci"]
    seed: int = 0
    level: Level = Level.LIVENESS
    budget: float | None = None
    """Seconds after which the search stops, inconclusive."""
    fail_fast: bool = False
    expected: Callable[[str], bool] = lambda key: False
    """Whether a clause-protocol id is on a list of known failures: not minimised, does not stop it."""
    repeatable: bool = False
    """Minimising ends after ``profile.shrink`` scenarios, however long they take: the same everywhere."""


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


def numbered(plan: Plan, protocols: Sequence[RebalanceProtocol]) -> Iterator[Scenario]:
    """All scenarios of a plan in a fixed order: the dimensions in turn, so that a short run is broad.

    The n-th scenario depends on the seed and n alone.
    """
    profile = plan.profile
    for index in range(profile.each):
        for protocol in protocols:
            for names in along(protocol):
                draw = Seeded(f"{plan.seed}/{protocol}/{'+'.join(names)}/{index}")
                yield generate(draw, protocol, names)
    for index in range(profile.mixed + profile.large):
        for protocol in protocols:
            draw = Seeded(f"{plan.seed}/{protocol}/mixed/{index}")
            yield generate(draw, protocol, some(draw), SMALL if index < profile.mixed else LARGE)
    for protocol in protocols if profile.crowd else ():
        yield crowd(protocol, profile.crowd)


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


def count(profile: Profile, protocols: Sequence[RebalanceProtocol]) -> int:
    """How many scenarios ``numbered`` yields."""
    systematic = profile.each * sum(len(along(p)) for p in protocols)
    return systematic + len(protocols) * (profile.mixed + profile.large + bool(profile.crowd))


def crowd(protocol: RebalanceProtocol, members: int) -> Scenario:
    """As many partitions as members, and one member more: what took minutes before KAFKA-9987."""
    topics = uniform({f"t{i}": members // 10 for i in range(10)})
    ids = [f"member-{i:05}" for i in range(members)]
    joiner = Join(Member(f"member-{members:05}", tuple(topics)))
    everybody = tuple(Member(i, tuple(topics)) for i in ids)
    return Scenario(protocol, topics, everybody, ((), (joiner,)), (CROWD,))
