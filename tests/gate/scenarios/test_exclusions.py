"""What an assignor is not made for is neither drawn nor made while a counterexample is made small."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from rebalance_verifier.base.verdict import Level, Verdict
from rebalance_verifier.gate.scenarios.exclusions import excluded, not_drawn, without
from rebalance_verifier.gate.scenarios.generator import BY_NAME
from rebalance_verifier.gate.scenarios.preconditions import present
from rebalance_verifier.gate.scenarios.strategies import histories
from rebalance_verifier.gate.search.plan import FLOORS_FROM, PROFILES, CheckPlan, SearchProfile, numbered
from rebalance_verifier.gate.search.search import check, describe
from rebalance_verifier.gate.targets.hosts.inside import InProcess
from rebalance_verifier.model.assignors import reference
from rebalance_verifier.model.values import OF_PARTITIONS, Cluster, GroupAssignment, GroupSubscription
from rebalance_verifier.properties.assignors.clauses import select
from rebalance_verifier.properties.assignors.played import of_partitions
from rebalance_verifier.properties.assignors.scenarios import Scenario, Subscribe, everybody

TINY = SearchProfile(name="tiny", each=3, mixed=40, large=1, crowd=20, shrink=400)
INPUT = {
    "claims": "claims", "stale": "stale", "duplicated": "tied", "repeated": "repeated", "racks": "racks",
    "unsubscribed": "unsubscribed", "unknown": "phantom", "versions": "versions", "static": "static",
    "user-data": "user-data", "eager": "eager", "membership": "membership", "topics": "growing",
    "resubscribe": "resubscribing", "faults": "faults", "ghosts": "ghosts", "hostile": "hostile",
    "no-metadata": "unknown-topics", "names": "names", "generations": "unlabelled",
}  # fmt: skip
"""Dimension -> what of it would be there to take out."""


def is_equal(scenario: Scenario) -> bool:
    changes = [e for events in scenario.rounds for e in events if isinstance(e, Subscribe)]
    return not changes and len({frozenset(m.topics) for m in everybody(scenario)}) <= 1


@pytest.mark.parametrize("name", BY_NAME)
def test_nothing_of_its_kind_is_played(name: str) -> None:
    plan = CheckPlan(profile=TINY, without=(name,))
    scenarios = list(map(of_partitions, numbered(plan, OF_PARTITIONS)))
    assert len(scenarios) > 100
    for scenario in scenarios:
        assert not_drawn((name,)).isdisjoint(scenario.dimensions)
        assert plan.plays(scenario)
        assert INPUT.get(name) not in present(scenario)
        assert name != "unequal" or is_equal(scenario)


@pytest.mark.parametrize("name", [*INPUT, "unequal"])
def test_there_is_something_of_it_otherwise(name: str) -> None:
    plan = CheckPlan(profile=replace(TINY, each=6))
    scenarios = list(map(of_partitions, numbered(plan, OF_PARTITIONS)))
    assert any(without(scenario, (name,)) != scenario for scenario in scenarios)


@given(histories("cooperative", without=["unequal", "racks"]))
def test_hypothesis_draws_none(scenario: Scenario) -> None:
    assert is_equal(scenario)
    assert "racks" not in present(scenario)


def test_a_wrong_name_gets_the_list() -> None:
    with pytest.raises(ValueError, match="no kind of input is called 'uneqal': there are unequal, claims"):
        excluded(["uneqal"])
    assert excluded(["racks", "unequal", "racks"]) == ("unequal", "racks")


class Crowded:
    """Cannot stand two members with three subscriptions between them: unequal ones are the fewest."""

    protocols = ("eager",)
    promises: tuple[str, ...] = ()

    def assign(self, cluster: Cluster, group: GroupSubscription) -> GroupAssignment:
        if sum(len(set(one.topics)) for one in group.values()) >= 3 and len(group) == 2:
            raise ValueError("three")
        return reference("range").assign(cluster, group)


def test_a_small_counterexample_has_nothing_of_it() -> None:
    small = {}
    for names in ((), ("unequal",)):
        plan = CheckPlan(profile=TINY, without=names, clauses=tuple(select(["assign/4"])))
        with InProcess(Crowded()) as session:
            rows = check(plan, session, describe("mine", session.hello)).clauses
        [row] = [one for one in rows if one.finding is not None]
        assert row.finding is not None, names
        small[names] = of_partitions(row.finding.scenario)
    assert is_equal(small["unequal",])
    assert sum(len(m.topics) for m in small["unequal",].members) >= 3


@pytest.mark.nightly
@pytest.mark.parametrize("name", BY_NAME)
def test_what_is_left_is_enough_for_a_verdict(name: str) -> None:
    profile = replace(PROFILES["ci"], each=FLOORS_FROM, mixed=200, large=0, crowd=0)
    with InProcess(reference("cooperative-sticky")) as session:
        plan = CheckPlan(profile=profile, without=(name,), level=Level.QUALITY)
        result = check(plan, session, describe("mine", session.hello))
    assert (result.verdict, result.missed) == (Verdict.CONFORMANT, ())
    assert result.without == (name,)
