"""Scenarios: they build, and as specified every clause holds in them over the whole space."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
from rebalance_verifier.explore.engine import fast, plain
from rebalance_verifier.explore.engine.search import Limits
from rebalance_verifier.explore.groups.scenarios import SCENARIOS, ScenarioError, ScenarioSize, scenario
from rebalance_verifier.explore.liveness import liveness
from rebalance_verifier.model.protocols import FAULTS, machine
from rebalance_verifier.properties.group.clauses import most_rounds, rules

from tests.tiers import tiered

GO_ON = Limits(go_on=True)

# Of 2 members x 2 partitions and one fault: distinct states, steps generated, depth, and the most
# rebalances after the last fault (of a consumer group heartbeats that change something). A change of the
# model changes them, and has to be looked at.
GOLDEN = {
    "dynamic": (27587, 61091, 37, 6),
    "connections": (44787, 110945, 40, 6),
    "failover": (37749, 80143, 38, 6),
    "eager": (13689, 31381, 25, 4),
    "sticky": (22009, 46771, 34, 4),
    "mixed": (20501, 46032, 37, 5),
    "default": (13689, 31381, 25, 4),
    "static": (17475, 38722, 33, 5),
    "static-connections": (12057, 26406, 37, 6),
    "static-failover": (9125, 17963, 36, 5),
    "topics": (15235, 31611, 37, 5),
    "apart": (8591, 18044, 30, 4),
    "growing": (10806, 23110, 35, 6),
    "growing-eager": (5550, 12338, 21, 3),
    "static-growing": (9985, 21688, 33, 6),
    "crowded": (4637, 12884, 21, 3),
    "static-crowded": (960, 2438, 18, 3),
    "static-topics": (4399, 8588, 30, 5),
    "mixed-failover": (12036, 24352, 38, 5),
    "leaving": (15860, 35319, 37, 5),
    "unsent-leave": (14120, 30489, 37, 5),
    "appends": (15616, 30797, 39, 5),
    "static-appends": (15065, 30561, 36, 5),
    "careless": (2329, 6187, 22, 3),
    "midway": (3495, 7477, 31, 4),
    "shrinking": (3206, 7260, 34, 3),
    "racks": (7927, 16341, 39, 6),
    "downgrade": (5137, 10838, 25, 4),
    "streams": (49374, 121554, 61, None),
    "streams-eager": (26450, 60770, 50, None),
    "consumer": (6960, 18634, 17, 11),
    "consumer-static": (6080, 16544, 17, 11),
    "consumer-crowded": (510, 1452, 10, 4),
    "consumer-static-crowded": (206, 510, 11, 4),
    "consumer-connections": (7234, 19712, 17, 11),
    "consumer-topics": (6428, 14664, 17, 10),
    "consumer-anew": (5581, 12954, 17, 10),
    "patterns": (9818, 19452, 35, 7),
    "consumer-patterns": (26202, 72753, 19, 13),
    "migration": (8601, 21400, 21, 10),
    "migration-lists": (7063, 17780, 19, 9),
    "migration-upgrade": (95009, 333300, 33, 12),
    "migration-downgrade": (74725, 233600, 35, 11),
    "migration-static": (450215, 1583184, 37, 12),
    "migration-failover": (8798, 21996, 21, 10),
    "migration-one-way": (7937, 20053, 20, 10),
    "migration-crowded": (523, 1418, 12, 4),
    "migration-patterns": (70358, 236058, 31, 12),
    "migration-anew": (6263, 14157, 21, 9),
    "migration-disabled": (646, 1679, 18, 5),
}


BY_DAY = (
    *(
        "dynamic",
        "static",
        "downgrade",
        "unsent-leave",
        "careless",
        "midway",
        "shrinking",
    ),
    *("consumer", "consumer-static", "consumer-connections", "migration-lists", "migration-disabled"),
    *("consumer-anew", "migration-anew"),
    *("static-crowded", "consumer-crowded", "consumer-static-crowded", "migration-crowded"),
)
PLAIN_BY_DAY = ("unsent-leave", "migration-disabled", "consumer-static-crowded")
BY_NIGHT = tuple(name for name in SCENARIOS if name not in PLAIN_BY_DAY)


@pytest.mark.slow
@pytest.mark.parametrize("name", tiered(SCENARIOS, BY_DAY))
def test_as_specified_nothing_breaks(name: str) -> None:
    """And both engines say the same, the plain one of the larger ones at night."""
    setup = SCENARIOS[name].setup(ScenarioSize(members=2, partitions=2, budget=1))
    built, clauses = machine(setup), rules(setup)
    search = fast.explore(built, clauses, GO_ON)
    assert search.complete
    assert search.breaches == ()
    verdict = liveness.judge(built, clauses, search)
    assert verdict.holds, verdict  # settles, in no more rebalances than ``most_rounds`` says
    [reached] = [count.reached for count in verdict.counts] or [None]  # of Kafka Streams nothing is bounded
    assert (search.distinct, search.generated, search.depth, reached) == GOLDEN[name]
    if name in PLAIN_BY_DAY:
        assert plain.explore(built, clauses, GO_ON).counts == search.counts


@pytest.mark.nightly
@pytest.mark.parametrize("name", BY_NIGHT)
def test_both_engines_say_the_same_of_the_larger_ones(name: str) -> None:
    setup = SCENARIOS[name].setup(ScenarioSize(members=2, partitions=2, budget=1))
    built, clauses = machine(setup), rules(setup)
    assert plain.explore(built, clauses, GO_ON).counts == fast.explore(built, clauses, GO_ON).counts


@pytest.mark.slow
def test_orbits_add_up() -> None:
    """Symmetry merges states into orbits; the sizes of the orbits add up to the states without it."""
    setup = SCENARIOS["dynamic"].setup(ScenarioSize(faults=()))
    built, clauses = machine(setup), rules(setup)
    whole = fast.explore(built, clauses, GO_ON)
    orbits = fast.explore(built, clauses, GO_ON, symmetry=True)
    assert orbits.unreduced == whole.distinct > 20 * orbits.distinct
    assert orbits.breaches == whole.breaches == ()


@pytest.mark.nightly
def test_three_members_three_partitions_one_fault_of_any_kind() -> None:
    setup = SCENARIOS["dynamic"].setup()
    search = fast.explore(machine(setup), rules(setup), GO_ON, symmetry=True)
    assert search.complete
    assert search.breaches == ()
    assert (search.distinct, search.unreduced, search.generated, search.depth) == THREE_BY_THREE[1]


@pytest.mark.nightly
def test_three_members_three_partitions_two_faults_of_any_kind() -> None:
    setup = SCENARIOS["dynamic"].setup(ScenarioSize(budget=2))
    search = fast.explore(machine(setup), rules(setup), GO_ON, symmetry=True)
    assert search.complete
    assert search.breaches == ()
    assert (search.distinct, search.unreduced, search.generated, search.depth) == THREE_BY_THREE[2]


@pytest.mark.nightly
def test_three_by_three_with_failover() -> None:
    setup = SCENARIOS["failover"].setup(ScenarioSize(members=3, partitions=3))
    search = fast.explore(machine(setup), rules(setup), GO_ON, symmetry=True)
    assert search.complete
    assert search.breaches == ()
    assert (search.distinct, search.unreduced, search.generated, search.depth) == WITH_FAILOVER[3, 3]


@pytest.mark.nightly
def test_three_by_three_with_failover_and_two_faults() -> None:
    """About ten minutes and 7 GB."""
    setup = SCENARIOS["failover"].setup(ScenarioSize(members=3, partitions=3, budget=2))
    search = fast.explore(machine(setup), rules(setup), GO_ON, symmetry=True)
    assert search.complete
    assert search.breaches == ()
    found = (search.distinct, search.unreduced, search.generated, search.depth)
    assert found == (94506710, 2718479454, 337439022, 84)


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["dynamic", "failover"])
def test_four_members_two_partitions(name: str) -> None:
    setup = SCENARIOS[name].setup(ScenarioSize(members=4, partitions=2))
    search = fast.explore(machine(setup), rules(setup), GO_ON, symmetry=True)
    assert search.complete
    assert search.breaches == ()
    pinned = FOUR_BY_TWO if name == "dynamic" else WITH_FAILOVER[4, 2]
    assert (search.distinct, search.unreduced, search.generated, search.depth) == pinned


THREE_BY_THREE = {1: (260195, 6304501, 768131, 58), 2: (25922694, 702103095, 98992132, 72)}
WITH_FAILOVER = {(3, 3): (587526, 15298802, 1650565, 66), (4, 2): (9359794, 422293237, 31946340, 80)}
FOUR_BY_TWO = (2672011, 115858717, 9985241, 60)
"""Orbits, the states that they stand for, steps generated from the orbits, depth; by the number of faults."""


# Where connections break, every kind of fault, with symmetry, to the end. As corrected nothing breaks; as
# shipped these clauses do, each in so many steps at the least.
BROKEN_CONNECTIONS = {
    ("connections", 2, 2, 2): ((1138036, 3855933, 4119814, 55), (1454242, 4981620, 5031933, 59)),
    ("connections", 3, 3, 1): ((460488, 11784712, 1432130, 64), (531286, 13648918, 1607382, 64)),
    ("static-connections", 2, 2, 2): ((169828, 293300, 530049, 51), (900856, 1526761, 2956260, 58)),
    ("static-connections", 3, 3, 1): ((888034, 3961696, 2536021, 60), (2265085, 10065091, 6618010, 60)),
}
BREAK = {
    ("connections", 2, 2, 2): "error/old 14, leader/label 14, group/commit 20, group/owner 20",
    ("connections", 3, 3, 1): "error/old 17, leader/label 17, group/commit 20, group/owner 20",
    ("static-connections", 2, 2, 2): "poll/throws 6, coordinator/keep 8, leader/label 15, "
    "coordinator/static 16, group/commit 23, group/owner 23",
    ("static-connections", 3, 3, 1): "poll/throws 6, coordinator/keep 8, leader/label 15, "
    "coordinator/static 16, group/commit 27, group/owner 27",
}


def as_shipped(size: ScenarioSize) -> ScenarioSize:
    return replace(size, profiles=("java-current",), broker="broker-current")


@pytest.mark.nightly
@pytest.mark.parametrize("shipped", [False, True], ids=["corrected", "shipped"])
@pytest.mark.parametrize(("name", "members", "partitions", "faults"), BROKEN_CONNECTIONS)
def test_on_connections_that_break(
    name: str, members: int, partitions: int, faults: int, shipped: bool
) -> None:
    size = ScenarioSize(members=members, partitions=partitions, budget=faults)
    size = as_shipped(size) if shipped else size
    setup = SCENARIOS[name].setup(size)
    search = fast.explore(machine(setup), rules(setup), GO_ON, symmetry=True)
    assert search.complete
    found = (search.distinct, search.unreduced, search.generated, search.depth)
    assert found == BROKEN_CONNECTIONS[name, members, partitions, faults][shipped]
    broken = ", ".join(f"{breach.clause} {breach.depth}" for breach in search.breaches)
    assert broken == (BREAK[name, members, partitions, faults] if shipped else "")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "counts", "says"),
    [
        ("connections", (7688, 21055, 18519, 17), "error/old 17, leader/label 17"),
        ("static-connections", (314, 318, 648, 6), "poll/throws 6"),
    ],
)
def test_as_shipped_something_breaks_soon(name: str, counts: tuple[int, ...], says: str) -> None:
    """The search ends with the first clause that breaks, at the depth at which it does."""
    setup = SCENARIOS[name].setup(as_shipped(ScenarioSize(members=2, partitions=2, budget=1)))
    search = fast.explore(machine(setup), rules(setup), symmetry=True)
    assert (search.distinct, search.unreduced, search.generated, search.depth) == counts
    assert ", ".join(f"{breach.clause} {breach.depth}" for breach in search.breaches) == says


@pytest.mark.parametrize(
    ("name", "size", "says"),
    [
        ("dynamical", ScenarioSize(), "dynamic"),
        ("dynamic", ScenarioSize(members=13), "1 to 12"),
        ("dynamic", ScenarioSize(partitions=0), "1 to 40"),
        ("apart", ScenarioSize(partitions=1), "2 topics"),
        ("dynamic", ScenarioSize(faults=("flood",)), "flood"),
        ("dynamic", ScenarioSize(switches=("no_such",)), "no_such"),
        ("dynamic", ScenarioSize(profiles=("java-1.0",)), "Kafka 1.0 is not known"),
        (
            "consumer",
            ScenarioSize(broker="broker-3.9.1"),
            "--broker: coordinator 3.9.1 is not known to speak",
        ),
        ("consumer", ScenarioSize(profiles=("java-3.9.1",)), "--release: java 3.9.1 is not known to speak"),
        (
            "migration",
            ScenarioSize(profiles=("kafka-python",)),
            "--release: kafka-python 3.0.12 is not known",
        ),
    ],
)
def test_bad_input_is_named(name: str, size: ScenarioSize, says: str) -> None:
    with pytest.raises((ScenarioError, ValueError), match=says):
        scenario(name).setup(size)


@pytest.mark.covering("name")
@pytest.mark.parametrize(
    ("name", "members", "partitions", "faults", "most"),
    [
        ("dynamic", 1, 1, 2, 5),
        ("dynamic", 2, 2, 1, 6),
        ("dynamic", 3, 1, 0, 3),
        ("dynamic", 3, 2, 0, 4),
        ("eager", 1, 1, 1, 3),
        ("eager", 2, 2, 1, 4),
        ("eager", 3, 2, 0, 3),
    ],
)
@pytest.mark.slow
def test_the_bound_on_rebalances_is_met(
    name: str, members: int, partitions: int, faults: int, most: int
) -> None:
    """The bound says no more than what some run needs, in each of these."""
    setup = SCENARIOS[name].setup(ScenarioSize(members=members, partitions=partitions, budget=faults))
    built, clauses = machine(setup), rules(setup)
    search = fast.explore(built, clauses, GO_ON)
    [count] = liveness.judge(built, clauses, search).counts
    assert count.reached == most
    assert most <= most_rounds(setup) <= most + (members > partitions)


def test_a_trace_says_what_was_chosen_and_not_what_always_is() -> None:
    dynamic = SCENARIOS["dynamic"]
    size = ScenarioSize(members=2, partitions=3, budget=1, faults=("crash",))
    plainly = dynamic.origin(size, dynamic.setup(size))
    assert plainly == {
        "scenario": "dynamic",
        "members": 2,
        "partitions": 3,
        "profiles": list(size.profiles),
        "broker": size.broker,
        "budget": 1,
        "faults": ["crash"],
    }
    for other, named in (
        ({"naming": "given"}, {"naming": "given"}),
        ({"steps": "fine"}, {"steps": "fine"}),
        ({"switches": ("max_generation_only",)}, {"switches": ["max_generation_only"]}),
        (
            {"factory": SimpleNamespace(target="mine:Own", replaces="cooperative-sticky")},
            {"assignor": "mine:Own"},
        ),
    ):
        more = replace(size, **other)
        setup = dynamic.setup(replace(more, factory=size.factory))
        assert dynamic.origin(more, setup) == plainly | named


def test_of_all_faults_a_group_has_those_of_its_protocol() -> None:
    """And what does not name them all names none of the other protocol's."""
    for name, foreign in (
        ("dynamic", "slow callback"),
        ("consumer", "enforce"),
        ("migration-one-way", "topic grows"),
        ("migration", "topic deleted"),
        ("dynamic", "topic made anew"),
    ):
        every = SCENARIOS[name].setup(ScenarioSize(members=2, partitions=1, faults=FAULTS))
        assert foreign not in every.faults
        assert machine(every).initial
        with pytest.raises(ScenarioError, match=f"{name}: '{foreign}' is a fault of"):
            SCENARIOS[name].setup(ScenarioSize(faults=(foreign,)))
