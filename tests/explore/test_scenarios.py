"""Scenarios: they build, and as specified every clause holds in them over the whole space."""

from __future__ import annotations

import pytest
from rebalance.explore import fast, liveness, plain
from rebalance.explore.scenarios import SCENARIOS, ScenarioError, Size, scenario
from rebalance.explore.search import Limits
from rebalance.model.protocol.group import machine
from rebalance.properties.protocol import rules

GO_ON = Limits(go_on=True)

# Of 2 members x 2 partitions: distinct states, steps generated, depth, and the most rebalances after the
# last fault. A change of the model changes them, and has to be looked at.
GOLDEN = {name: numbers for name, *numbers in (("apart", 8500, 17637, 30, 4),)}


@pytest.mark.parametrize("name", SCENARIOS)
def test_as_specified_nothing_breaks(name: str) -> None:
    setup = SCENARIOS[name].setup(Size(members=2, partitions=2, budget=1))
    built, asked = machine(setup), rules(setup, 99)
    search = fast.explore(built, asked, GO_ON)
    assert search.complete
    assert search.breaches == ()
    verdict = liveness.judge(built, asked, search)
    assert verdict.holds, verdict
    [count] = verdict.counts
    assert [search.distinct, search.generated, search.depth, count.reached] == GOLDEN[name]


@pytest.mark.parametrize("name", ["static", "apart", "mixed-failover", "crowded"])
def test_both_engines_say_the_same(name: str) -> None:
    setup = SCENARIOS[name].setup(Size(members=2, partitions=2, budget=1))
    built, asked = machine(setup), rules(setup)
    assert plain.explore(built, asked, GO_ON).counts == fast.explore(built, asked, GO_ON).counts


def test_orbits_add_up() -> None:
    """Symmetry merges states into orbits; the sizes of the orbits add up to the states without it."""
    setup = SCENARIOS["dynamic"].setup(Size(faults=()))
    built, asked = machine(setup), rules(setup)
    whole = fast.explore(built, asked, GO_ON)
    orbits = fast.explore(built, asked, GO_ON, symmetry=True)
    assert orbits.unreduced == whole.distinct > 20 * orbits.distinct
    assert orbits.breaches == whole.breaches == ()


@pytest.mark.slow
def test_three_members_three_partitions_one_fault_of_any_kind() -> None:
    setup = SCENARIOS["dynamic"].setup()
    search = fast.explore(machine(setup), rules(setup), GO_ON, symmetry=True)
    assert search.complete
    assert search.breaches == ()
    assert (search.distinct, search.unreduced, search.generated, search.depth) == THREE_BY_THREE


THREE_BY_THREE = (0, 0, 0, 0)
"""Orbits, the states that they stand for, steps generated from the orbits, depth."""


@pytest.mark.parametrize(
    ("name", "size", "says"),
    [
        ("dynamical", Size(), "dynamic"),
        ("dynamic", Size(members=13), "1 to 12"),
        ("dynamic", Size(partitions=0), "1 to 40"),
        ("apart", Size(partitions=1), "2 topics"),
        ("dynamic", Size(faults=("flood",)), "flood"),
        ("dynamic", Size(switches=("no_such",)), "no_such"),
        ("dynamic", Size(profiles=("java-1.0",)), "java-1.0"),
    ],
)
def test_bad_input_is_named(name: str, size: Size, says: str) -> None:
    with pytest.raises((ScenarioError, ValueError), match=says):
        scenario(name).setup(size)
