"""The oracles against brute force: every placement of a few partitions on up to three members."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import product

import pytest
from rebalance_verifier.model.values import Cluster, RebalanceProtocol, Subscription, TopicPartition
from rebalance_verifier.properties.assignors import oracles
from rebalance_verifier.properties.assignors.calls import AssignorCall, StatedClaim

from tests.work import lines

EAGER = RebalanceProtocol.EAGER
RACKS = ("r1", "r2")


def random_call(seed: int, *, racks: bool, members: str = "ABC", most: int = 6) -> AssignorCall:
    """A small group, its claims, and an arbitrary placement, sound or not."""
    rnd = random.Random(seed)
    topics = [f"t{i}" for i in range(rnd.randint(1, 3))]
    counts = [rnd.randint(0, most // len(topics)) for _ in topics]
    cluster = Cluster(
        {
            topic: tuple(tuple(r for r in RACKS if racks and rnd.random() < 0.5) for _ in range(count))
            for topic, count in zip(topics, counts, strict=True)
        }
    )
    partitions = [TopicPartition(t, i) for t in topics for i in range(cluster.partition_count(t))]
    group, claims = {}, {}
    for member in members[: rnd.randint(1, len(members))]:
        subscribed = tuple(t for t in topics if rnd.random() < 0.7)
        rack = rnd.choice((None, *RACKS)) if racks else None
        owned = tuple(p for p in partitions if rnd.random() < 0.4)
        claims[member] = StatedClaim(owned, rnd.choice((-1, 4, 5, 5)))
        group[member] = Subscription(
            topics=subscribed,
            user_data=None,
            owned_partitions=owned,
            generation_id=claims[member].generation,
            rack_id=rack,
        )
    hands: dict[str, list[TopicPartition]] = {m: [] for m in group}
    for partition in partitions:
        takers = [m for m in group if partition.topic in group[m].topics]
        if takers:
            hands[rnd.choice(takers)].append(partition)
    return AssignorCall(
        protocol=EAGER,
        cluster=cluster,
        group=group,
        claims=claims,
        assignment={m: tuple(ps) for m, ps in hands.items()},
    )


def placements(call: AssignorCall) -> list[AssignorCall]:
    """Every way to give each partition to one of its subscribers."""
    wanted = [
        (TopicPartition(topic, index), members)
        for topic, members in call.subscribers.items()
        for index in range(call.cluster.partition_count(topic))
    ]
    found = []
    for choice in product(*(members for _, members in wanted)):
        hands: dict[str, tuple[TopicPartition, ...]] = dict.fromkeys(call.group, ())
        for (partition, _), member in zip(wanted, choice, strict=True):
            hands[member] += (partition,)
        found.append(
            AssignorCall(
                protocol=call.protocol,
                cluster=call.cluster,
                group=call.group,
                claims=call.claims,
                assignment=hands,
            )
        )
    return found


def matches(call: AssignorCall) -> int:
    return sum(
        call.group[m].rack_id is not None
        and call.group[m].rack_id in call.cluster.topics[p.topic][p.partition]
        for m, ps in call.assignment.items()
        for p in ps
    )


def quality(call: AssignorCall) -> tuple[tuple[int, ...], int, int]:
    """Smaller is better: the loads first, then racks, then claims, as the contract ranks them."""
    kept = sum(call.valid.get(p) == m for m, ps in call.assignment.items() for p in ps)
    loads = sorted((len(ps) for ps in call.assignment.values()), reverse=True)
    return tuple(loads), -matches(call), -kept


@pytest.mark.slow
@pytest.mark.parametrize("racks", [False, True], ids=["no racks", "racks"])
def test_optimum_is_the_best_of_all_placements(racks: bool):
    for seed in range(400):
        call = random_call(seed, racks=racks)
        best = oracles.optimum(call)
        assert (best.loads, -best.matched, -best.kept) == min(map(quality, placements(call))), seed


def test_a_best_placement_is_known_without_a_flow():
    best_ones = 0
    for seed in range(150):
        for call in placements(random_call(seed, racks=True))[::7]:
            best = oracles.optimum(call)
            loads = tuple(sorted(call.loads.values(), reverse=True))
            expected = loads == best.loads and matches(call) == best.matched
            assert oracles.best_matched(call) is expected, seed
            assert matches(call) <= best.matched <= oracles.matchable(call) or loads != best.loads, seed
            best_ones += expected
    assert best_ones > 100


def test_large_groups_are_left_to_the_flow():
    members = [f"m{number}" for number in range(oracles.MAX_MEMBERS + 1)]
    cluster = Cluster({"t": (("r1",),) * len(members)})
    call = AssignorCall(
        protocol=EAGER,
        cluster=cluster,
        group=dict.fromkeys(members, Subscription(topics=("t",), rack_id="r1")),
        claims={},
        assignment={m: (TopicPartition("t", n),) for n, m in enumerate(members)},
    )
    assert not oracles.best_matched(call)
    assert oracles.optimum(call).matched == oracles.matched(call)


def test_the_seeds_cover_what_matters():
    calls = [random_call(seed, racks=True) for seed in range(400)]
    assert sum(not c.equal_subscriptions for c in calls) > 50
    assert sum(oracles.rack_matters(c) for c in calls) > 50
    assert sum(len(c.valid) > 1 for c in calls) > 50
    assert sum(any(len(h) > 1 for h in c.holders.values()) for c in calls) > 20, "ties"


@pytest.mark.parametrize("racks", [False, True])
def test_exchanges_come_to_what_a_flow_does(racks: bool):
    """Two algorithms, wherever the exchanges begin: at what was answered, or at nothing."""
    for seed in range(120):
        call = random_call(seed, racks=racks, members="ABCDEFG", most=24)
        nothing = replace(call, assignment={})
        assert oracles._by_exchange(call) == oracles._by_exchange(nothing) == oracles._by_flow(call), seed


def test_optimum_does_not_depend_on_what_was_answered():
    for seed in range(40):
        call = random_call(seed, racks=True)
        nothing = AssignorCall(
            protocol=call.protocol, cluster=call.cluster, group=call.group, claims=call.claims, assignment={}
        )
        assert oracles.optimum(nothing) == oracles.optimum(call)


def test_transferable_is_a_move_that_evens_out():
    found = 0
    for seed in range(400):
        call = random_call(seed, racks=False)
        moves = {
            (giver, taker, p.topic)
            for giver, ps in call.assignment.items()
            for p in ps
            for taker in call.group
            if p.topic in call.group[taker].topics
            and len(call.assignment[giver]) >= len(call.assignment[taker]) + 2
        }
        move = oracles.transferable(call)
        assert (move in moves) if moves else move is None, seed
        found += bool(moves)
    assert 50 < found < 350


def test_matched_and_rack_matters():
    for seed in range(100):
        call = random_call(seed, racks=True)
        assert oracles.matched(call) == matches(call)
        # Racks matter to nobody: then no placement matches anything.
        if not oracles.rack_matters(call):
            assert all(matches(other) == 0 for other in placements(call))


def test_oracles_are_total_on_nonsense():
    topics = Cluster({"t": (("r1",), ("r2",)), "empty": ()})
    group = {
        "A": Subscription(topics=("t", "gone"), rack_id="r1"),
        "B": Subscription(topics=()),
        "C": Subscription(topics=("t",)),
    }
    strange = (
        TopicPartition("t", 0),
        TopicPartition("t", 0),
        TopicPartition("t", 2**31 - 1),
        TopicPartition("t", -1),
        TopicPartition("gone", 5),
        TopicPartition("", 0),
    )
    for assignment in ({}, {"A": strange, "X": strange}, {"B": strange}):
        call = AssignorCall(
            protocol=EAGER,
            cluster=topics,
            group=group,
            claims={"A": StatedClaim(strange, 5)},
            assignment=assignment,
        )
        best = oracles.optimum(call)
        assert best.loads == (1, 1, 0)
        assert oracles.matched(call) == (2 if "A" in assignment else 0)
        oracles.transferable(call)
        assert sum(call.loads.values()) == (2 if assignment else 0)
    nobody = AssignorCall(protocol=EAGER, cluster=Cluster(), group={}, claims={}, assignment={})
    assert oracles.optimum(nobody) == oracles.Optimum((), 0, 0)
    assert oracles.transferable(nobody) is None


def test_a_crowd_takes_work_by_its_size():
    """Ranks are bounded by what is reachable; all of them would be 40,000 edges, and 62 million lines."""
    size = 200
    ids = [f"m{i:03}" for i in range(size)]
    group = dict.fromkeys(ids, Subscription(topics=("t",))) | {"one": Subscription(topics=("t", "u"))}
    claims = {m: StatedClaim((TopicPartition("t", i),), 5) for i, m in enumerate(ids)}
    cluster = Cluster.of({"t": size, "u": 1})
    call = AssignorCall(protocol=EAGER, cluster=cluster, group=group, claims=claims, assignment={})
    assert oracles.optimum(call) == oracles.Optimum((1,) * (size + 1), 0, size)
    lines(lambda: oracles.optimum(call), 1_000_000)
