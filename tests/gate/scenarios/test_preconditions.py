"""What is taken out of a scenario is gone, and nothing of it comes back."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rebalance_verifier.base.draws import Seeded
from rebalance_verifier.gate.scenarios.generator import BY_NAME as DIMENSIONS
from rebalance_verifier.gate.scenarios.generator import generate
from rebalance_verifier.gate.scenarios.preconditions import (
    BY_NAME,
    TABLE,
    Realism,
    ablated,
    is_within,
    present,
    reduced,
)
from rebalance_verifier.gate.search.causes.attribution import realism
from rebalance_verifier.model.values import RebalanceProtocol, TopicPartition
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
    each_member,
    uniform,
)

COOPERATIVE, EAGER = RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER


def claims(text: str) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(t, int(i)) for t, _, i in (p.partition("-") for p in text.split()))


def member(name: str, owned: str = "", generation: int = 5, topics: str = "t0", **more) -> ScenarioMember:
    return ScenarioMember(
        id=name, topics=tuple(topics.split()), owned=claims(owned), generation=generation, **more
    )


def group(*members: ScenarioMember, topics: dict[str, int] | None = None, rounds=((),)) -> Scenario:
    return Scenario(protocol=COOPERATIVE, topics=uniform(topics or {"t0": 3}), members=members, rounds=rounds)


FRESH = (member("A", generation=-1), member("B", generation=-1))

ONLY = {
    "hostile": group(replace(FRESH[0], topics=("t0", "t0"))),
    "repeated": group(member("A", "t0-0 t0-0")),
    "tied": group(member("A", "t0-0"), member("B", "t0-0")),
    "unsubscribed": group(member("A", "t1-0"), topics={"t0": 1, "t1": 1}),
    "unlabelled": group(member("A", "t0-0", -1), member("B", "t0-1")),
    "phantom": group(member("A", "t0-3")),
    "shrinking": group(*FRESH, rounds=((), (SetTopic("t0", ((),)),))),
    "ghosts": group(*FRESH, rounds=((), (Fault(FaultKind.GHOST, "A"),))),
    "user-data": group(replace(FRESH[0], user_data=UserData.STICKY_V1)),
    "clients": group(replace(FRESH[0], writes="kafka-python==3.0.12:cooperative-sticky")),
    "eager": group(replace(FRESH[0], eager=True)),
    "versions": group(replace(FRESH[0], version=1)),
    "stale": group(member("A", "t0-0"), member("B", "t0-0", 4)),
    "generations": group(member("A", "t0-0"), member("B", "t0-1", 4)),
    "faults": group(*FRESH, rounds=((), (Fault(FaultKind.LOST_JOIN, "A"),))),
    "claims": group(member("A", "t0-0")),
    "names": group(replace(FRESH[0], id="consumer-1")),
    "growing": group(*FRESH, rounds=((), (SetTopic("t0", ((),) * 4),))),
    "resubscribing": group(*FRESH, rounds=((), (Subscribe("A", ("t0",)),))),
    "membership": group(FRESH[0], rounds=((), (AddMember(FRESH[1]), Leave("A")))),
    "static": group(replace(FRESH[0], instance="i-A")),
    "unknown-topics": group(replace(FRESH[0], topics=("t0", "t1"))),
    "idle": group(FRESH[0], replace(FRESH[1], topics=())),
    "racks": group(replace(FRESH[0], rack="r1")),
    "unequal": group(FRESH[0], replace(FRESH[1], topics=("t1",)), topics={"t0": 1, "t1": 1}),
}
"""The name of each ablation -> a scenario that has what it takes out; none but the claims that it needs."""


def test_every_ablation_is_here():
    assert ONLY.keys() == BY_NAME.keys()
    assert len(BY_NAME) == len(TABLE)


@pytest.mark.parametrize("name", ONLY)
def test_what_is_there_is_named_and_nothing_else(name):
    beside = {"shrinking": {"growing"}, "unknown-topics": {"unequal"} - {"unequal"}}.get(name, set())
    assert present(ONLY[name]) - {"claims"} - beside == {name} - {"claims"}
    assert name in present(ONLY[name])


def test_a_plain_scenario_has_nothing():
    assert present(group(*FRESH)) == frozenset()
    assert present(generate(Seeded(0), COOPERATIVE)) == frozenset()


@pytest.mark.parametrize("protocol", RebalanceProtocol)
def test_what_is_taken_out_stays_out(protocol):
    for seed in range(60):
        scenario = generate(Seeded(seed), protocol, DIMENSIONS)
        for ablation in TABLE:
            once = ablation.without(scenario)
            assert ablation.without(once) == once, ablation.name
        plain = ablated(scenario, lambda s: True)
        assert present(plain) == frozenset(), seed


def test_the_least_real_goes_first():
    degrees = [ablation.realism for ablation in TABLE]
    assert degrees == sorted(degrees, reverse=True)
    unsubscribed = BY_NAME["unsubscribed"]
    assert unsubscribed.realism_in(COOPERATIVE) is Realism.UNREAL
    assert unsubscribed.realism_in(EAGER) is Realism.LATE


def test_claims_become_those_of_a_history():
    earlier = BY_NAME["claims"].without(group(member("A", "t0-0"), member("B"), rounds=((Leave("A"),),)))
    assert [m.id for m in earlier.members] == ["A"]
    first, second = earlier.rounds
    assert first == ()
    assert [type(event) for event in second] == [AddMember, Leave]
    assert all(not m.owned for m in earlier.members)


def test_what_is_to_be_kept_is_kept():
    both = group(member("A", "t0-0 t0-0 t0-3"))
    assert present(reduced(both, {"repeated", "claims"})) == {"repeated", "claims"}
    assert present(ablated(both, lambda s: "phantom" in present(s), {"claims"})) == {"phantom", "claims"}


def test_another_scenario_where_taking_out_takes_too_much():
    """Not who subscribes to nothing matters here, but that not all subscribe to the same."""

    def breaks(scenario: Scenario) -> bool:
        return len({m.topics for m in scenario.members}) > 1

    assert present(ablated(ONLY["idle"], breaks)) == {"unequal"}
    assert present(ablated(group(FRESH[0], replace(FRESH[1], topics=("t0", "t9"))), breaks)) == {"unequal"}


def test_what_is_within_a_degree_is_no_less_real() -> None:
    for number in range(40):
        scenario = generate(Seeded(number), COOPERATIVE, (list(DIMENSIONS)[number % len(DIMENSIONS)],))
        assert [is_within(scenario, most) for most in Realism] == [realism(scenario) <= m for m in Realism]


def test_what_changes_nobody_gives_the_scenario_itself() -> None:
    scenario = generate(Seeded(1), COOPERATIVE, ("membership",))
    assert each_member(scenario, lambda m: m) is scenario
    assert each_member(scenario, lambda m: replace(m, rack="r9")) != scenario
