"""The minimiser: what it returns still breaks, nothing can be taken away from it, and it is quick."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from rebalance_verifier.base.draws import Seeded
from rebalance_verifier.gate.scenarios.generator import BY_NAME, LARGE, SMALL, Size, generate
from rebalance_verifier.gate.scenarios.minimise import REDUCTIONS, minimise
from rebalance_verifier.gate.scenarios.player import play
from rebalance_verifier.model.assignors import reference
from rebalance_verifier.model.values import Cluster, GroupSubscription, RebalanceProtocol, TopicPartition
from rebalance_verifier.properties.assignors.calls import Answer
from rebalance_verifier.properties.assignors.clauses import CLAUSES
from rebalance_verifier.properties.assignors.scenarios import (
    AddMember,
    Fault,
    FaultKind,
    Leave,
    Scenario,
    ScenarioMember,
    SetTopic,
    Subscribe,
    UserData,
    from_json,
    to_json,
    uniform,
)

COOPERATIVE = RebalanceProtocol.COOPERATIVE
EVERYTHING = tuple(name for name in BY_NAME if name != "names")

Breaks = Callable[[Scenario], bool]


def drawn(seed: int, size: Size = SMALL) -> Scenario:
    return generate(Seeded(seed), COOPERATIVE, EVERYTHING, size)


def has(s: Scenario, kind: type) -> bool:
    return any(isinstance(e, kind) for events in s.rounds for e in events)


def shared(s: Scenario) -> bool:
    """Two members claim one partition that exists."""
    owned = [set(m.owned) for m in s.members]
    both = set().union(*(a & b for i, a in enumerate(owned) for b in owned[:i])) if owned else set()
    return any(0 <= p.partition < len(s.topics.get(p.topic, ())) for p in both)


PREDICATES: dict[str, Breaks] = {
    "shared claim": shared,
    "three members": lambda s: len(s.members) >= 3,
    "fault": lambda s: has(s, Fault),
    "join and leave": lambda s: has(s, AddMember) and has(s, Leave),
    "unequal": lambda s: len({frozenset(m.topics) for m in s.members}) > 1,
    "sticky user data": lambda s: any(m.user_data.startswith("sticky") for m in s.members),
    "version and rack": lambda s: any(m.version == 1 and m.rack for m in s.members),
    "odd claims": lambda s: sum(len(m.owned) for m in s.members) % 2 == 1,
    "topic grows": lambda s: any(
        isinstance(e, SetTopic) and len(e.partitions or ()) > 2 for events in s.rounds for e in events
    ),
    "resubscribe": lambda s: has(s, Subscribe) and len(s.rounds) >= 2,
    "replica racks": lambda s: any(len(racks) == 2 for ps in s.topics.values() for racks in ps),
    # Breaks by name only: renaming must be refused, and what is left must still be minimal.
    "name": lambda s: any(m.id == "C" for m in s.members) and any(t == "t1" for t in s.topics),
}


def smaller(s: Scenario) -> list[Scenario]:
    return [candidate for reduce in REDUCTIONS for candidate in reduce(s)]


@pytest.mark.parametrize("name", PREDICATES)
def test_result_breaks_and_is_minimal(name: str):
    breaks, found = PREDICATES[name], 0
    for seed in range(25):
        scenario = drawn(seed)
        if not breaks(scenario):
            continue
        found += 1
        small = minimise(scenario, breaks)
        assert breaks(small)
        assert small.size <= scenario.size
        assert not [s for s in smaller(small) if breaks(s)], small
        assert minimise(small, breaks) == small, "nothing is left to do"
        assert to_json(minimise(scenario, breaks)) == to_json(small), "the same every time"
        assert from_json(to_json(small)) == small
    assert found >= 3


EXPECTED = {
    "shared claim": (2, 1, 2, 0),
    "three members": (3, 0, 0, 0),
    "fault": (0, 0, 0, 2),
    "odd claims": (1, 0, 1, 0),
    "unequal": (2, 0, 0, 0),
    "resubscribe": (0, 0, 0, 3),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_result_is_the_smallest_there_is(name: str):
    breaks = PREDICATES[name]
    sizes = {minimise(s, breaks).size for s in map(drawn, range(25)) if breaks(s)}
    # An event of a member that is gone does nothing, and still is an event.
    assert min(sizes) == EXPECTED[name]


def test_reductions_only_reduce():
    def weight(s: Scenario) -> tuple[int, int]:
        """How much there is; then what is said of it, which another thing may inherit from one that goes."""
        everyone = [*s.members, *(e.member for r in s.rounds for e in r if isinstance(e, AddMember))]
        events = [e for r in s.rounds for e in r]
        plain = sum(
            (m.rack is not None)
            + (m.instance is not None)
            + m.eager
            + (m.version != 3)
            + {UserData.OWN: 0, UserData.NONE: 1}.get(m.user_data, 2)
            + (m.generation != -1)
            + len(m.topics)
            + sum(1 + abs(p.partition) for p in m.owned)
            for m in everyone
        )
        partitions = sum(map(len, s.topics.values()))
        structure = 2 * len(events) + len(s.rounds) + len(everyone) + len(s.topics) + partitions
        racks = sum(len(r) for ps in s.topics.values() for r in ps)
        inside = sum(
            len((e.topics if isinstance(e, Subscribe) else e.partitions) or ())
            for e in events
            if isinstance(e, Subscribe | SetTopic)
        )
        return structure, plain + racks + inside

    for seed in range(15):
        scenario = drawn(seed)
        for reduce in REDUCTIONS:
            assert all(weight(s) < weight(scenario) for s in reduce(scenario)), "this is why it ends"


def test_nothing_to_reduce_is_returned_as_it_is():
    bare = Scenario(protocol=COOPERATIVE, topics={}, members=(), rounds=())
    assert minimise(bare, lambda s: True) == bare
    assert minimise(drawn(1), lambda s: True) == bare, "when everything breaks, nothing is needed"
    assert minimise(drawn(1), lambda s: False) == drawn(1)


def test_joined_members_claims_and_labels_go_too():
    late = ScenarioMember(
        id="B",
        topics=("t",),
        owned=(TopicPartition("t", 0), TopicPartition("t", 1)),
        generation=5,
        version=1,
        rack="r",
        instance="i",
    )
    scenario = Scenario(
        protocol=COOPERATIVE,
        topics=uniform({"t": 2}),
        members=(ScenarioMember(id="A", topics=("t",)),),
        rounds=((), (AddMember(late),)),
    )

    def breaks(s: Scenario) -> bool:
        joins = [e.member for r in s.rounds for e in r if isinstance(e, AddMember)]
        return any(TopicPartition("t", 1) in m.owned for m in joins)

    small = minimise(scenario, lambda s: breaks(s) and "t" in s.topics)
    assert small.members == ()
    assert small.topics == uniform({"t": 2}), "a name that matters is not changed"
    [join] = [e for events in small.rounds for e in events]
    assert join == AddMember(
        ScenarioMember(id="A", topics=("t",), owned=(TopicPartition("t", 1),), generation=5)
    )


def test_one_partition_in_the_middle_moves_the_later_ones_up():
    owned = (TopicPartition("t", 0), TopicPartition("t", 3))
    scenario = Scenario(
        protocol=COOPERATIVE,
        topics=uniform({"t": 5}),
        members=(ScenarioMember(id="A", topics=("t",), owned=owned, generation=5),),
    )

    def breaks(s: Scenario) -> bool:
        existing = [p for m in s.members for p in m.owned if p in Cluster(s.topics)]
        return len(existing) == 2

    small = minimise(scenario, breaks)
    assert small.topics == uniform({"t0": 2})
    assert [p.partition for p in small.members[0].owned] == [0, 1]


def test_what_is_claimed_beyond_a_topic_moves_up_with_its_end():
    owned = (TopicPartition("t", 0), TopicPartition("t", 6))
    scenario = Scenario(
        protocol=COOPERATIVE,
        topics=uniform({"t": 5}),
        members=(ScenarioMember(id="A", topics=("t",), owned=owned, generation=5),),
    )

    def breaks(s: Scenario) -> bool:
        """As the claim is next but one to the end, which each partition that only goes would change."""
        claims = [p for m in s.members for p in m.owned]
        return len(claims) == 2 and claims[1].partition == len(s.topics.get(claims[1].topic, ())) + 1

    small = minimise(scenario, breaks)
    assert small.topics == uniform({"t0": 1})
    assert [p.partition for p in small.members[0].owned] == [0, 2]


def test_renamed_in_order_of_appearance():
    scenario = Scenario(
        protocol=COOPERATIVE,
        topics=uniform({"orders": 1, "users": 1}),
        members=(
            ScenarioMember(id="consumer-9", topics=("users", "orders"), instance="x"),
            ScenarioMember(id="consumer-1", topics=("users",)),
        ),
        rounds=((Fault(FaultKind.SILENT, "consumer-1"), Subscribe("consumer-9", ("orders",))),),
    )

    def breaks(s: Scenario) -> bool:
        two = s.size == (2, 2, 0, 3) and len(s.topics) == len(s.rounds[0]) == 2
        return two and bool(s.members[0].instance)

    small = minimise(scenario, breaks)
    assert [m.id for m in small.members] == ["A", "B"]
    assert small.members[0].instance == "i-A"
    assert set(small.topics) == {"t0", "t1"}
    assert small.rounds[0][0] == Fault(FaultKind.SILENT, "B")


def test_not_renamed_where_the_name_matters():
    def breaks(s: Scenario) -> bool:
        return any(m.id == "zoe" for m in s.members)

    two = (ScenarioMember(id="amy", topics=("t",)), ScenarioMember(id="zoe", topics=("t",)))
    small = minimise(Scenario(protocol=COOPERATIVE, topics=uniform({"t": 1}), members=two), breaks)
    assert [m.id for m in small.members] == ["zoe"]


def test_stops_when_told_with_what_it_has():
    scenario, attempts, limit = drawn(3, LARGE), 0, 0

    def breaks(s: Scenario) -> bool:
        nonlocal attempts
        attempts += 1
        return len(s.members) >= 2

    def more() -> bool:
        return attempts < limit

    full = minimise(scenario, breaks)
    total = attempts
    for allowed in (0, 1, 5, total - 1):
        attempts, limit = 0, allowed
        small = minimise(scenario, breaks, may_go_on=more)
        assert attempts == allowed, "the question is put before every attempt"
        assert len(small.members) >= 2
        assert small.size >= full.size
        assert small == scenario or allowed


def test_quick_on_a_large_scenario():
    scenario = next(
        s for s in (drawn(seed, LARGE) for seed in range(100)) if len(s.members) == LARGE.members[1]
    )
    attempts = 0

    def breaks(s: Scenario) -> bool:
        nonlocal attempts
        attempts += 1
        return sum(len(m.owned) for m in s.members) >= 12 and len(s.members) >= 4

    small = minimise(scenario, breaks)
    assert small.size[0] == 4
    assert small.size[2] == 12
    assert attempts < 2000, "under 600 when written; restarting from the boldest each time takes thousands"


def test_a_real_counterexample():
    """Handing over at once, from a large scenario to two members, one partition, one claim, one call."""
    assignor = reference("sticky")

    def no_withholding(protocol: RebalanceProtocol, cluster: Cluster, group: GroupSubscription) -> Answer:
        bare = {m: replace(s, user_data=None, owned_partitions=()) for m, s in group.items()}
        return Answer(assignor.assign(cluster, bare))

    clause = CLAUSES["kip429/leader/4"]

    def breaks(s: Scenario) -> bool:
        return play(s, no_withholding, None, (clause,), ()).breach_of(clause.id) is not None

    scenario = generate(Seeded(1), COOPERATIVE, ("claims", "membership", "faults"), LARGE)
    assert breaks(scenario)
    small = minimise(scenario, breaks)
    assert small.size == (2, 1, 1, 0)
    assert not [s for s in smaller(small) if breaks(s)]
