"""Changes at random: what is reached breaks, is not larger, and is the same for the same start."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from rebalance_verifier.gate.search.causes.random_search import CHANGES, seek, small, thin_out, wander
from rebalance_verifier.model.values import RebalanceProtocol, TopicPartition
from rebalance_verifier.properties.assignors.scenarios import Scenario, ScenarioMember, uniform

START = Scenario(
    protocol=RebalanceProtocol.COOPERATIVE,
    topics=uniform({f"t{number}": 6 for number in range(4)}),
    members=tuple(ScenarioMember(id=f"m{number}", topics=("t0", "t1", "t2", "t3")) for number in range(6)),
)


def breaking(scenarios: Sequence[Scenario]) -> list[bool]:
    """Two members and five partitions, an odd number of them: one less does not do."""
    sizes = [scenario.size for scenario in scenarios]
    return [members >= 2 and partitions >= 5 and partitions % 2 == 1 for members, partitions, *_ in sizes]


def patience(calls: int):
    left = iter(range(calls))
    return lambda: next(left, None) is not None


def test_it_finds_what_is_small_the_same_every_time():
    assert not any(breaking([START]))
    found = wander(START, breaking, enough=(2, 5), may_go_on=patience(2000))
    assert found.size[:2] == (2, 5)
    assert found == wander(START, breaking, enough=(2, 5), may_go_on=patience(2000))


def test_it_goes_over_what_is_not_smaller():
    """Partitions can go only after topics have become one."""

    def joined(scenarios: Sequence[Scenario]) -> list[bool]:
        return [s.size[0] >= 2 and (s.size[1] == 24 or len(s.topics) == 1) for s in scenarios]

    assert small(wander(START, joined, enough=(2, 5), may_go_on=patience(2000)), (2, 5))


def test_it_ends_when_it_may_not_go_on():
    assert wander(START, breaking, enough=(2, 5), may_go_on=lambda: False) == START


def test_few_members_do_or_all_are_kept():
    found = thin_out(START, lambda some: [len(s.members) == 3 for s in some], 3)
    assert len(found.members) == 3
    assert thin_out(START, lambda some: [False for _ in some], 3) == START
    assert thin_out(START, breaking, 6) is START


def test_what_is_sought_is_come_nearer_to():
    def measured(scenarios: Sequence[Scenario]) -> list[float | None]:
        return [float("inf") if s.size[1] <= 8 else None if s.size[1] > 24 else -s.size[1] for s in scenarios]

    found = seek([START], measured, 3, may_go_on=patience(2000))
    assert found is not None
    assert found.size[1] <= 8
    assert seek([START], lambda some: [None for _ in some], 3, may_go_on=patience(20)) is None


def owned(scenario: Scenario) -> Scenario:
    """Each member has a rack, and owns a partition of each topic that the next one has, too."""
    members = tuple(
        replace(
            m,
            rack=f"r{i % 2}",
            owned=tuple(TopicPartition(t, j) for t in m.topics for j in (i, i - 1) if j >= 0),
        )
        for i, m in enumerate(scenario.members)
    )
    return replace(scenario, members=members)


@pytest.mark.parametrize("number", range(12))
def test_a_change_of_a_scenario_is_a_scenario_and_no_larger(number):
    scenario = owned(START)
    draw = random.Random(number)
    for _ in range(20):
        before, scenario = scenario, draw.choice(CHANGES)(scenario, draw)
        assert all(new <= old for new, old in zip(scenario.size, before.size, strict=True))
        topics = scenario.topics
        assert all(p.topic in topics for m in scenario.members for p in m.owned)
        assert len({m.id for m in scenario.members}) == len(scenario.members)


def test_small_is_of_members_and_partitions():
    assert small(START, (6, 24))
    assert not small(START, (6, 23))
    assert not small(START, (5, 24))
