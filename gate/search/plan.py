"""What a check is going to do: how much of the input space, in which order, and what it must reach."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import cycle

from rebalance_verifier.base.draws import Draw, Seeded
from rebalance_verifier.base.verdict import Level
from rebalance_verifier.gate.scenarios import generator, task_generator
from rebalance_verifier.gate.scenarios.exclusions import not_drawn, without
from rebalance_verifier.gate.scenarios.topics import called, fewer, keeps
from rebalance_verifier.gate.search.causes.attribution import MAX_CAUSES
from rebalance_verifier.model.values import OF_TASKS, RebalanceProtocol
from rebalance_verifier.properties.assignors.clause import Clause
from rebalance_verifier.properties.assignors.clauses import TABLE
from rebalance_verifier.properties.assignors.played import AnyScenario
from rebalance_verifier.properties.assignors.scenarios import AddMember, Scenario


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchProfile:
    """How much is searched. ``each``: scenarios of every kind of ``along`` and every protocol;
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
        SearchProfile(name="smoke", each=4, mixed=12, large=0, crowd=0, shrink=150),
        SearchProfile(name="ci", each=50, mixed=650, large=12, crowd=2100, shrink=1500),
        SearchProfile(name="nightly", each=500, mixed=4000, large=100, crowd=2100, shrink=6000),
        SearchProfile(name="deep", each=20_000, mixed=400_000, large=3000, crowd=4000, shrink=20_000),
    )
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckPlan:
    """Plan of a check. ``level`` is the weakest that fails the run; weaker ones are reported."""

    clauses: tuple[Clause, ...] = TABLE
    protocols: tuple[RebalanceProtocol, ...] | None = None
    profile: SearchProfile = PROFILES["ci"]
    seed: int = 0
    level: Level = Level.LIVENESS
    budget: float | None = None
    """Seconds after which the search stops, inconclusive."""
    began: float | None = None
    """When the command began, in the time of ``time.monotonic``; None: as it searches."""
    fail_fast: bool = False
    expected: Callable[[str], bool] = lambda key: False
    """Whether a clause-protocol id is on a list of known failures: not minimised, does not stop it."""
    without: tuple[str, ...] = ()
    """Dimensions that the assignor is not made for: nothing of their kind is played."""
    topics: tuple[str, ...] = ()
    """Names that topics have; none: any."""
    beside: tuple[str, ...] = ()
    """Clients whose bytes the members write, in turn; the first is the leader's. None: of no client."""
    causes: int = MAX_CAUSES
    """So many causes of one clause are made small and shown, the most real ones."""
    repeatable: bool = False
    """Minimising does not look at the clock: what it comes to is the same everywhere."""

    def plays(self, scenario: AnyScenario) -> bool:
        """Check whether a scenario has nothing in it that the search is without, and topics of its names."""
        return keeps(scenario, self.topics) and (
            not self.without
            or not isinstance(scenario, Scenario)
            or without(scenario, self.without) == scenario
        )


FLOORS_FROM = 20
"""Scenarios per dimension from which on a search must reach every situation of ``FLOORS``."""

SLICE = 1200
"""Scenarios that are played on one process of the target, from one multiple of it to the next: what a target
answers may depend on what it was asked before, and must not depend on how many processes share the work."""


def slices(total: int) -> list[range]:
    """Return the numbers of ``total`` scenarios, cut where a new process begins."""
    return [range(first, min(first + SLICE, total)) for first in range(0, total, SLICE)]


def numbered(plan: CheckPlan, protocols: Sequence[RebalanceProtocol]) -> Iterator[AnyScenario]:
    """Yield all scenarios of a plan in order."""
    return (
        scenario_at(plan, protocols, number) for number in range(count(plan.profile, protocols, plan.without))
    )


def scenario_at(plan: CheckPlan, protocols: Sequence[RebalanceProtocol], number: int) -> AnyScenario:
    """Return the scenario with this number, which depends on the seed and the number alone. The dimensions
    come in turn, so that a short run is broad; then random combinations, then the crowd."""
    profile, seed = plan.profile, plan.seed
    systematic = _systematic(tuple(protocols), plan.without)
    index, which = divmod(number, len(systematic))
    if index < profile.each:
        protocol, names, at = systematic[which]
        draw = Seeded(f"{seed}/{protocol}/{'+'.join(names)}/{_kinds(protocol)[at][1]}/{index}")
        return _as_planned(plan, _along(plan, draw, protocol, at), number)
    index, which = divmod(number - profile.each * len(systematic), len(protocols))
    protocol = protocols[which]
    if index < profile.mixed + profile.large:
        draw = Seeded(f"{seed}/{protocol}/mixed/{index}")
        return _as_planned(plan, _mixed(plan, draw, protocol, large=index >= profile.mixed), number)
    if protocol in OF_TASKS:
        return _as_planned(plan, task_generator.crowd(protocol, profile.crowd), number)
    # A share assignor may give everything to everybody, as that of 4.0.0 does: 4 million are no answer.
    many = profile.crowd // 10 if protocol is RebalanceProtocol.SHARE else profile.crowd
    return _as_planned(plan, generator.crowd(protocol, many, len(plan.topics) or generator.CROWDED), number)


def drawn(draw: Draw, protocols: Sequence[RebalanceProtocol]) -> AnyScenario:
    """Return a scenario that follows from ``draw`` alone, for a target of these protocols, which are of
    partitions or of tasks."""
    of_tasks = protocols[0] in OF_TASKS
    return task_generator.drawn(draw, protocols) if of_tasks else generator.drawn(draw, protocols)


def _as_planned(plan: CheckPlan, scenario: AnyScenario, number: int) -> AnyScenario:
    """Return a scenario with the names of topics that the search has; one of partitions without what it
    leaves out, and with members of the clients that it names."""
    scenario = called(scenario, plan.topics, number)
    if not isinstance(scenario, Scenario):
        return scenario
    left = without(scenario, plan.without)
    return beside(left, plan.beside) if plan.beside else left


def beside(scenario: Scenario, clients: Sequence[str]) -> Scenario:
    """Return a scenario whose members write what these clients write, in turn."""
    turn = cycle(clients)
    members = tuple(replace(member, writes=next(turn)) for member in scenario.members)
    rounds = tuple(
        tuple(
            AddMember(replace(event.member, writes=next(turn))) if isinstance(event, AddMember) else event
            for event in events
        )
        for events in scenario.rounds
    )
    return replace(scenario, members=members, rounds=rounds)


def _along(plan: CheckPlan, draw: Seeded, protocol: RebalanceProtocol, at: int) -> AnyScenario:
    """Return a scenario of the kind with this number among the systematic ones of a protocol."""
    if protocol in OF_TASKS:
        return task_generator.generate(draw, protocol, *task_generator.along(protocol)[at])
    names, size = generator.along(protocol)[at]
    return generator.generate(draw, protocol, names, fewer(size, plan.topics))


def _mixed(plan: CheckPlan, draw: Seeded, protocol: RebalanceProtocol, *, large: bool) -> AnyScenario:
    """Return a scenario along a random combination."""
    if protocol in OF_TASKS:
        size = task_generator.LARGE if large else task_generator.SMALL
        return task_generator.generate(draw, protocol, task_generator.some(draw), size)
    left_out = not_drawn(plan.without)
    names = tuple(name for name in generator.some(draw) if name not in left_out)
    most = fewer(generator.LARGE if large else generator.SMALL, plan.topics)
    return generator.generate(draw, protocol, names, most)


@cache
def _systematic(
    protocols: tuple[RebalanceProtocol, ...], leaving: tuple[str, ...]
) -> list[tuple[RebalanceProtocol, tuple[str, ...], int]]:
    """Return what is searched systematically: the dimensions, and their number among those of a protocol."""
    left_out = not_drawn(leaving)
    return [
        (protocol, names, at)
        for protocol in protocols
        for at, (names, _) in enumerate(_kinds(protocol))
        if left_out.isdisjoint(names)
    ]


@cache
def _kinds(protocol: RebalanceProtocol) -> list[tuple[tuple[str, ...], int]]:
    """Return what is searched systematically of one protocol: the dimensions, and members at most."""
    along = task_generator.along(protocol) if protocol in OF_TASKS else generator.along(protocol)
    return [(names, size.members[1]) for names, size in along]


def count(
    profile: SearchProfile, protocols: Sequence[RebalanceProtocol], leaving: tuple[str, ...] = ()
) -> int:
    """Return how many scenarios ``numbered`` yields, without what is left out."""
    systematic = profile.each * len(_systematic(tuple(protocols), leaving))
    return systematic + len(protocols) * (profile.mixed + profile.large + bool(profile.crowd))
