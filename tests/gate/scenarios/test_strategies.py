"""Hypothesis over the generator: valid scenarios, along the dimensions asked for, that shrink."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, find, given, settings
from hypothesis import strategies as st
from rebalance_verifier.gate.scenarios.generator import BY_NAME, DIMENSIONS, SMALL, Size
from rebalance_verifier.gate.scenarios.strategies import histories
from rebalance_verifier.model.values import OF_TASKS, RebalanceProtocol
from rebalance_verifier.properties.assignors.scenarios import Fault, FaultKind, Scenario

EAGER, COOPERATIVE = RebalanceProtocol.EAGER, RebalanceProtocol.COOPERATIVE
QUICK = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
SEARCH = settings(max_examples=2000, deadline=None, database=None, derandomize=True)


@given(st.sampled_from([p for p in RebalanceProtocol if p not in OF_TASKS]).flatmap(histories))
@QUICK
def test_scenarios_are_valid_and_within_their_size(scenario: Scenario):
    ids = [m.id for m in scenario.members]
    assert 1 <= len(ids) == len(set(ids)) <= SMALL.members[1]
    assert len(scenario.topics) <= SMALL.topics[1]
    assert all(len(partitions) <= SMALL.partitions[1] for partitions in scenario.topics.values())
    assert 1 <= len(scenario.rounds) <= SMALL.rounds + 1
    assert set(scenario.dimensions) <= set(BY_NAME)
    assert all(scenario.protocol in BY_NAME[d].protocols for d in scenario.dimensions)


@given(histories(COOPERATIVE, ["claims"], Size((1, 2), (1, 1), (0, 3), 1)))
@QUICK
def test_dimensions_and_size_are_obeyed(scenario: Scenario):
    assert scenario.dimensions == ("claims",)
    assert len(scenario.members) <= 2
    assert scenario.size[1] <= 3
    assert scenario.rounds == ((),)


@given(histories(COOPERATIVE, iter(["claims"])))
@settings(QUICK, max_examples=10)
def test_dimensions_may_be_any_iterable(scenario: Scenario):
    assert scenario.dimensions == ("claims",), "also in the second example"


def test_an_unknown_dimension_is_an_error():
    with pytest.raises(ValueError, match="no dimension is called 'claim'"):
        find(histories(COOPERATIVE, ["claim"]), lambda s: True)


def test_any_combination_is_drawn_where_none_is_named():
    seen: set[str] = set()

    def collect(scenario: Scenario) -> bool:
        seen.update(scenario.dimensions)
        return seen == set(BY_NAME)

    find(histories(), collect, settings=SEARCH)
    assert seen == {d.name for d in DIMENSIONS}


@pytest.mark.parametrize(
    ("wanted", "size"),
    [
        (lambda s: len(s.members) >= 3, (3, 0, 0, 1)),
        (lambda s: any(len(p) >= 2 for p in s.topics.values()), (1, 2, 0, 1)),
        (lambda s: any(p.partition >= 0 for m in s.members for p in m.owned), (1, 1, 1, 1)),
    ],
    ids=["members", "partitions", "claims"],
)
def test_shrinks_to_what_is_needed(wanted, size):
    assert find(histories(), wanted, settings=SEARCH).size == size


def test_shrinks_events_too():
    def lost(scenario: Scenario) -> bool:
        return any(isinstance(e, Fault) and e.kind is FaultKind.LOST_JOIN for r in scenario.rounds for e in r)

    small = find(histories(COOPERATIVE, ["faults"]), lost, settings=SEARCH)
    assert small.size == (1, 0, 0, 3)
