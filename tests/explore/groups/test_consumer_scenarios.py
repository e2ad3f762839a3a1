"""Consumer groups (KIP-848): as specified everything holds, in larger groups and under more faults too."""

from __future__ import annotations

import pytest
from rebalance_verifier.explore.engine import fast
from rebalance_verifier.explore.engine.search import Limits
from rebalance_verifier.explore.groups.scenarios import SCENARIOS, ScenarioSize
from rebalance_verifier.explore.liveness import liveness
from rebalance_verifier.model.protocols import machine
from rebalance_verifier.properties.group.clauses import rules
from rebalance_verifier.properties.group.consumer import most_heartbeats

GO_ON = Limits(go_on=True)

QUIET = {(1, 2): 2, (2, 1): 5, (2, 2): 8, (2, 3): 8, (3, 1): 9, (3, 2): 12}
"""Members and partitions -> the most heartbeats that change something while they join one after the other."""


@pytest.mark.parametrize(("members", "partitions"), QUIET)
def test_the_bound_on_heartbeats_is_met_without_faults(members: int, partitions: int) -> None:
    setup = SCENARIOS["consumer"].setup(
        ScenarioSize(members=members, partitions=partitions, faults=(), budget=0)
    )
    built, clauses = machine(setup), rules(setup)
    [count] = liveness.judge(built, clauses, fast.explore(built, clauses, GO_ON)).counts
    assert count.reached == QUIET[members, partitions] == most_heartbeats(setup)


def test_orbits_of_a_consumer_group_add_up() -> None:
    setup = SCENARIOS["consumer"].setup(ScenarioSize(members=2, partitions=2))
    built, clauses = machine(setup), rules(setup)
    whole = fast.explore(built, clauses, GO_ON)
    orbits = fast.explore(built, clauses, GO_ON, symmetry=True)
    assert orbits.unreduced == whole.distinct > 3 * orbits.distinct
    assert orbits.breaches == whole.breaches == ()


def test_single_messages_come_to_the_same_verdict() -> None:
    """Every message a step of its own, and what atomic steps leave out is clean, too."""
    setup = SCENARIOS["consumer"].setup(
        ScenarioSize(members=2, partitions=2, faults=(), budget=0, steps="fine")
    )
    built, clauses = machine(setup), rules(setup)
    search = fast.explore(built, clauses, GO_ON)
    assert search.complete
    assert search.breaches == ()
    assert liveness.judge(built, clauses, search).holds


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "distinct"),
    [("consumer", 209288), ("consumer-static", 132978), ("consumer-connections", 236317)],
)
def test_two_members_two_partitions_two_faults(name: str, distinct: int) -> None:
    setup = SCENARIOS[name].setup(ScenarioSize(members=2, partitions=2, budget=2))
    built, clauses = machine(setup), rules(setup)
    search = fast.explore(built, clauses, GO_ON)
    assert search.complete
    assert search.breaches == ()
    assert liveness.judge(built, clauses, search).holds
    assert search.distinct == distinct


@pytest.mark.parametrize(
    ("name", "faults", "distinct"),
    [
        ("consumer-static", ("left behind", "crash", "pause", "unsubscribe", "session timeout"), 40297),
        ("consumer-topics", ("left behind", "resubscribe", "topic grows", "topic deleted"), 58993),
    ],
)
def test_connections_that_break_do_no_harm(name: str, faults: tuple[str, ...], distinct: int) -> None:
    """Of static members, and where subscriptions change."""
    setup = SCENARIOS[name].setup(ScenarioSize(members=2, partitions=2, faults=faults, budget=2))
    built, clauses = machine(setup), rules(setup)
    search = fast.explore(built, clauses, GO_ON)
    assert search.complete
    assert search.breaches == ()
    assert liveness.judge(built, clauses, search).holds
    assert search.distinct == distinct


@pytest.mark.nightly
def test_three_members_three_partitions_on_connections_that_break() -> None:
    setup = SCENARIOS["consumer-connections"].setup(ScenarioSize(members=3, partitions=3))
    search = fast.explore(machine(setup), rules(setup), GO_ON, symmetry=True)
    assert search.complete
    assert search.breaches == ()
    assert (search.distinct, search.generated, search.depth) == (84060, 300323, 25)


@pytest.mark.nightly
def test_three_members_three_partitions_one_fault_of_every_kind() -> None:
    setup = SCENARIOS["consumer"].setup()
    search = fast.explore(machine(setup), rules(setup), GO_ON, symmetry=True)
    assert search.complete
    assert search.breaches == ()
    assert (search.distinct, search.unreduced, search.generated, search.depth) == THREE_BY_THREE


THREE_BY_THREE = (82304, 2673355, 291792, 25)
"""Orbits, the states that they stand for, steps generated from the orbits, depth."""
