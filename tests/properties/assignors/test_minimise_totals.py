"""Breaches that depend on totals: no single thing can be taken away, and they become small all the same.

Each planted bug is in the answers of the reference assignor, and shows where sizes fit each other. A search
of profile ``smoke`` may play 150 scenarios to make one small; that has to be enough for a large group.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import pytest
from rebalance_verifier.gate.scenarios.minimise import minimise
from rebalance_verifier.gate.scenarios.player import play
from rebalance_verifier.gate.search.plan import PROFILES
from rebalance_verifier.model.values import (
    NO_GENERATION,
    Cluster,
    GroupSubscription,
    RebalanceProtocol,
    TopicPartition,
)
from rebalance_verifier.properties.assignors.calls import Answer
from rebalance_verifier.properties.assignors.clauses import CLAUSES
from rebalance_verifier.properties.assignors.scenarios import Scenario, ScenarioMember, uniform

from tests.mutants.spoiled import Hands, Spoiled, claimants, newcomer

COOPERATIVE = RebalanceProtocol.COOPERATIVE

Shows = Callable[[Cluster, GroupSubscription], bool]


def wanted(cluster: Cluster, group: GroupSubscription) -> int:
    """Partitions of the topics that somebody subscribes to."""
    return sum(cluster.partition_count(t) for t in {t for s in group.values() for t in s.topics})


def claimed(group: GroupSubscription) -> int:
    return sum(len(s.owned_partitions) for s in group.values())


def assigned_twice(group: GroupSubscription, hands: Hands) -> None:
    """assign/1: a second member is given a partition too."""
    for member, other in combinations(sorted(hands), 2):
        if both := [p for p in hands[member] if p.topic in group[other].topics]:
            hands[other] += (both[0],)
            return


def revoked_in_vain(group: GroupSubscription, hands: Hands) -> None:
    """kip429/leader/3: a claim is not given back to its only claimant."""
    owners = claimants(group)
    for member in sorted(hands):
        if kept := [p for p in hands[member] if owners.get(p) == [member]]:
            hands[member] = tuple(p for p in hands[member] if p != kept[0])
            return


def group(members: int, *sizes: int, owners: int = 0) -> Scenario:
    """``members`` that subscribe to topics of these ``sizes``; ``owners`` of them hold all partitions
    in turn, and the first claims what the second one holds as well."""
    topics = uniform({f"t{number}": size for number, size in enumerate(sizes)})
    partitions = [
        TopicPartition(topic, index) for topic, size in topics.items() for index in range(len(size))
    ]
    held: list[tuple[TopicPartition, ...]] = [tuple(partitions[n::owners]) for n in range(owners)]
    if owners > 1:
        held[0] += held[1]
    held += [()] * (members - owners)
    there = (
        ScenarioMember(
            id=f"member-{number:02}",
            topics=tuple(topics),
            owned=owned,
            generation=5 if owned else NO_GENERATION,
        )
        for number, owned in enumerate(held)
    )
    return Scenario(protocol=COOPERATIVE, topics=topics, members=tuple(there), rounds=((),))


@dataclass(frozen=True, kw_only=True)
class Planted:
    """A bug that ``shows`` in the answers for some groups, in ``start`` for one, and the ``size`` (members,
    partitions, claims) to which that has to come."""

    clause: str = "assign/1"
    shows: Shows
    start: Scenario
    size: tuple[int, int, int]


PLANTED = {
    "more than three for each": Planted(
        shows=lambda c, g: len(g) > 1 and wanted(c, g) > 3 * len(g),
        start=group(14, 20, 20, 18),
        size=(2, 7, 0),
    ),
    "a remainder of seven": Planted(
        shows=lambda c, g: len(g) > 1 and wanted(c, g) % 7 == 3,
        start=group(11, 33, 41, 27, 35),
        size=(2, 3, 0),
    ),
    "members in threes": Planted(
        shows=lambda c, g: len(g) > 0 and len(g) % 3 == 0, start=group(21, 30, 30), size=(3, 1, 0)
    ),
    "an even split": Planted(
        shows=lambda c, g: len(g) > 1 and wanted(c, g) >= 2 * len(g) and not wanted(c, g) % len(g),
        start=group(9, 31, 23, 9),
        size=(2, 4, 0),
    ),
    "as many topics as members": Planted(
        shows=lambda c, g: len(g) == len(c.topics) > 1, start=group(7, *[9] * 7), size=(2, 1, 0)
    ),
    "topics of one size": Planted(
        shows=lambda c, g: len(g) > 1 and len(c.topics) > 2 and len({*map(len, c.topics.values())}) == 1,
        start=group(10, *[25] * 6),
        size=(2, 3, 0),
    ),
    "topics that differ by two": Planted(
        shows=lambda c, g: len(g) > 1 and {20, 22} <= {len(p) % 20 + 20 for p in c.topics.values()},
        start=group(8, 40, 42, 55),
        size=(2, 2, 0),
    ),
    "as many claims as partitions": Planted(
        shows=lambda c, g: 1 < claimed(g) == wanted(c, g), start=group(6, 24, 26, owners=1), size=(2, 2, 2)
    ),
    "claims to two topics are shared": Planted(
        shows=lambda c, g: len({p[0] for p, who in claimants(g).items() if len(who) > 1}) > 1,
        start=group(12, 30, 30, 30, 30, owners=8),
        size=(2, 3, 4),
    ),
    "revoked in vain, an even split": Planted(
        clause="kip429/leader/3",
        shows=lambda c, g: newcomer(g) and len(g) > 2 and claimed(g) > 1 and not wanted(c, g) % len(g),
        start=group(9, 40, 41, 27, owners=5),
        size=(3, 3, 2),
    ),
    "revoked in vain, an equal claim of two topics": Planted(
        clause="kip429/leader/3",
        shows=lambda c, g: newcomer(g)
        and any(len({Counter(p[0] for p in s.owned_partitions)[t] for t in s.topics} - {0}) == 1
                and len(s.topics) > 1 for s in g.values() if s.owned_partitions),
        start=group(5, 24, 24, owners=1),
        size=(2, 2, 2),
    ),
}  # fmt: skip


class Shown(Spoiled):
    """The reference with a planted bug, and how often it was asked."""

    def __init__(self, planted: Planted) -> None:
        super().__init__()
        self.planted, self.asked = planted, 0

    def spoil(self, cluster: Cluster, group: GroupSubscription, hands: Hands) -> None:
        self.asked += 1
        if self.planted.shows(cluster, group):
            (assigned_twice if self.planted.clause == "assign/1" else revoked_in_vain)(group, hands)

    def breaks(self, scenario: Scenario) -> bool:
        def ask(protocol: RebalanceProtocol, cluster: Cluster, group: GroupSubscription) -> Answer:
            return Answer(self.assign(cluster, group))

        clause = CLAUSES[self.planted.clause]
        return play(scenario, ask, None, (clause,), ()).breach_of(clause.id) is not None


@pytest.mark.parametrize("name", PLANTED)
def test_what_depends_on_totals_becomes_small_within_a_smoke_search(name: str):
    planted, played = PLANTED[name], 0
    assignor = Shown(planted)
    assert assignor.breaks(planted.start)
    known: dict[str, bool] = {}

    def breaks(s: Scenario) -> bool:
        nonlocal played
        if (key := repr(s)) not in known:
            played += 1
            known[key] = assignor.breaks(s)
        return known[key]

    small = minimise(planted.start, breaks, may_go_on=lambda: played < PROFILES["smoke"].shrink)
    assert small.size[:3] <= planted.size, (small.size, played)
    assert breaks(small)


def test_who_of_two_members_claims_may_decide():
    """Partitions are dealt out in turn: A has the first one, so alone it moves only where it is B's."""
    a = ScenarioMember(id="A", topics=("t0",), owned=(TopicPartition("t0", 1),), generation=1)
    start = Scenario(
        protocol=COOPERATIVE,
        topics=uniform({"t0": 2}),
        members=(a, ScenarioMember(id="B", topics=("t0",))),
        rounds=((),),
    )

    def breaks(s: Scenario) -> bool:
        dealt = {
            p: m.id
            for t in s.topics
            for i in range(len(s.topics[t]))
            for p in [(t, i)]
            for n, m in enumerate(s.members)
            if n == i % len(s.members)
        }
        return any(dealt.get(p, m.id) != m.id for m in s.members for p in m.owned)

    small = minimise(start, breaks)
    assert small.size[:3] == (2, 1, 1)
    assert [m.owned for m in small.members] == [(), (TopicPartition("t0", 0),)]
