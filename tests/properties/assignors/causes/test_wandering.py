"""Changes at random: what is reached breaks, is not larger, and is the same for the same start."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from rebalance.model.values import RebalanceProtocol
from rebalance.properties.assignors.causes.wandering import CHANGES, seek, small, thin_out, wander
from rebalance.properties.assignors.scenarios import Scenario, ScenarioMember, uniform

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


def test_it_goes_over_what_is_not_smaller():
    assert not any(breaking([START]))
    found = wander(START, breaking, enough=(2, 5), may_go_on=patience(2000))
    assert found.size[:2] == (2, 5)
    assert found == wander(START, breaking, enough=(2, 5), may_go_on=patience(2000))


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


@pytest.mark.parametrize("number", range(12))
def test_a_change_of_a_scenario_is_a_scenario(number):
    scenario = START
    draw = random.Random(number)
    for _ in range(20):
        scenario = draw.choice(CHANGES)(scenario, draw)
        topics = scenario.topics
        assert all(p.topic in topics for m in scenario.members for p in m.owned)
        assert len({m.id for m in scenario.members}) == len(scenario.members)


def test_small_is_of_members_and_partitions():
    assert small(START, (6, 24))
    assert not small(START, (6, 23))
    assert not small(START, (5, 24))
