"""The reference assignors against independent oracles: exhaustive search, network flow, random histories."""

from __future__ import annotations

import gc
import os
import random
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from rebalance_verifier.model.assignor import Assignor, Promise
from rebalance_verifier.model.assignors import NAMES, reference
from rebalance_verifier.model.assignors.flow import PartitionClass, blocks, elements
from rebalance_verifier.model.values import (
    Cluster,
    GroupAssignment,
    GroupSubscription,
    Partitions,
    RebalanceProtocol,
    Subscription,
    TopicPartition,
)
from rebalance_verifier.model.wire import encode_cooperative_user_data, encode_sticky_user_data

from tests.work import lines

Score = tuple[tuple[int, ...], int, int]


def tps(text: str) -> Partitions:
    """``"t-0 u-1"`` -> partitions."""
    names = (word.rsplit("-", 1) for word in text.split())
    return tuple(TopicPartition(topic, int(index)) for topic, index in names)


def member(topics: str, own: str = "", generation: int = -1, **more: Any) -> Subscription:
    return replace(
        Subscription(topics=tuple(topics.split()), owned_partitions=tps(own), generation_id=generation),
        **more,
    )


def show(assignment: GroupAssignment) -> dict[str, str]:
    return {m: " ".join(map(str, assignment[m])) for m in sorted(assignment)}


# -- an independent reading of the claims rule, and two independent optima ---------------------------------


def newest_claimants(group: GroupSubscription) -> dict[TopicPartition, set[str]]:
    """For each claimed partition the members whose claim is at its highest generation."""
    ages: dict[TopicPartition, dict[str, int]] = {}
    for m, subscription in group.items():
        for partition in subscription.owned_partitions:
            ages.setdefault(partition, {})[m] = subscription.generation_id
    return {p: {m for m, age in claims.items() if age == max(claims.values())} for p, claims in ages.items()}


def keepable(cluster: Cluster, group: GroupSubscription) -> dict[TopicPartition, str]:
    """Partition -> the member that may keep it."""
    result = {}
    for partition, claimants in newest_claimants(group).items():
        [*rivals] = claimants
        if len(rivals) == 1 and partition in cluster and partition.topic in group[rivals[0]].topics:
            result[partition] = rivals[0]
    return result


def units(cluster: Cluster, group: GroupSubscription) -> dict[TopicPartition, list[str]]:
    """Each partition that has a subscriber, with its subscribers."""
    found = {}
    for topic, racks in cluster.topics.items():
        takers = [m for m in group if topic in group[m].topics]
        if takers:
            found.update({TopicPartition(topic, index): takers for index in range(len(racks))})
    return found


def score(cluster: Cluster, group: GroupSubscription, placed: Iterable[tuple[TopicPartition, str]]) -> Score:
    """Loads descending, rack matches (negative), claims kept (negative): less is better."""
    owners = keepable(cluster, group)
    loads, matched, kept = dict.fromkeys(group, 0), 0, 0
    for partition, m in placed:
        loads[m] += 1
        matched += group[m].rack_id in cluster.topics[partition.topic][partition.partition]
        kept += owners.get(partition) == m
    return tuple(sorted(loads.values(), reverse=True)), -matched, -kept


def exhaustive(cluster: Cluster, group: GroupSubscription) -> Score:
    """The best score of all placements that exist."""
    choices = units(cluster, group)
    return min(
        score(cluster, group, zip(choices, takers, strict=True)) for takers in product(*choices.values())
    )


def by_network_flow(cluster: Cluster, group: GroupSubscription) -> Score:
    """The best score by networkx: one node per partition, the n-th partition of a member costs n."""
    choices, owners = units(cluster, group), keepable(cluster, group)
    total = len(choices)
    graph: nx.DiGraph[object] = nx.DiGraph()
    graph.add_node("source", demand=-total)
    graph.add_node("sink", demand=total)
    for partition, takers in choices.items():
        graph.add_edge("source", partition, capacity=1, weight=0)
        for m in takers:
            near = group[m].rack_id in cluster.topics[partition.topic][partition.partition]
            worth = (total + 1) * near + (owners.get(partition) == m)
            graph.add_edge(partition, m, capacity=1, weight=-worth)
    for m in {m for takers in choices.values() for m in takers}:
        for rank in range(1, total + 1):
            graph.add_edge(m, (m, rank), capacity=1, weight=2 * (total + 1) ** 2 * rank)
            graph.add_edge((m, rank), "sink", capacity=1, weight=0)
    _, flow = nx.network_simplex(graph)
    placed = [(p, m) for p, takers in choices.items() for m in takers if flow[p][m]]
    return score(cluster, group, placed)


def random_input(
    rng: random.Random, members: int, topics: int, most: int
) -> tuple[Cluster, dict[str, Subscription]]:
    """Anything: unknown topics, wild claims, ties, no claims, racks or none, equal subscriptions or not."""
    names = [f"t{n}" for n in range(rng.randint(1, topics))]
    racks = ["a", "b", "c"][: rng.randint(1, 3)] if rng.random() < 0.5 else []
    cluster = Cluster(
        {
            name: tuple(
                tuple(sorted(rng.sample(racks, rng.randint(0, len(racks)))))
                for _ in range(rng.randint(1, most))
            )
            for name in names
        }
    )
    everything = [TopicPartition(t, p) for t in [*names, "unknown"] for p in range(most + 1)]
    alike = rng.random() < 0.3
    group = {}
    for number in range(rng.randint(1, members)):
        wanted = names if alike else rng.sample([*names, "unknown"], rng.randint(0, len(names)))
        claimed = rng.sample(everything, rng.randint(0, len(everything)) if rng.random() < 0.6 else 0)
        group[f"m{number}"] = Subscription(
            topics=tuple(wanted),
            owned_partitions=tuple(claimed),
            generation_id=rng.randint(-1, 3),
            rack_id=rng.choice([*racks, None]),
        )
    return cluster, group


def racked_input(rng: random.Random) -> tuple[Cluster, dict[str, Subscription]]:
    """Few replicas and tight subscriptions: racks, balance and claims all pull in other directions."""
    names, racks = [f"t{n}" for n in range(rng.randint(2, 5))], "abc"
    cluster = Cluster({name: tuple((rng.choice(racks),) for _ in range(rng.randint(2, 7))) for name in names})
    everything = [TopicPartition(t, p) for t in names for p in range(cluster.partition_count(t))]
    claimed = {p: rng.randrange(8) for p in everything}
    group = {
        f"m{number}": Subscription(
            topics=tuple(rng.sample(names, rng.randint(1, 3 if len(names) > 2 else 2))),
            owned_partitions=tuple(p for p in everything if claimed[p] == number),
            generation_id=1,
            rack_id=rng.choice([*racks, None]),
        )
        for number in range(rng.randint(3, 8))
    }
    return cluster, group


def after(group: GroupSubscription, assignment: GroupAssignment, generation: int) -> dict[str, Subscription]:
    """The group's next subscriptions when everyone took what it was assigned."""
    return {
        m: replace(subscription, owned_partitions=assignment[m], generation_id=generation)
        for m, subscription in group.items()
    }


def target(cluster: Cluster, group: GroupSubscription) -> GroupAssignment:
    """What the reference places before it withholds: sticky, told only the valid claims."""
    owners = keepable(cluster, group)
    eager = {
        m: replace(
            subscription,
            owned_partitions=(),
            user_data=encode_sticky_user_data(tuple(sorted(p for p, o in owners.items() if o == m)), 1),
        )
        for m, subscription in group.items()
    }
    return reference("sticky").assign(cluster, eager)


def pairs(assignment: GroupAssignment) -> list[tuple[TopicPartition, str]]:
    return [(p, m) for m, partitions in assignment.items() for p in partitions]


# -- exactness ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_no_placement_is_better(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(60):
        cluster, group = random_input(rng, members=3, topics=3, most=2)
        assert score(cluster, group, pairs(target(cluster, group))) == exhaustive(cluster, group)


@pytest.mark.parametrize("seed", range(4))
def test_no_flow_is_better(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(40):
        cluster, group = random_input(rng, members=9, topics=8, most=9)
        assert score(cluster, group, pairs(target(cluster, group))) == by_network_flow(cluster, group)


@pytest.mark.slow
@pytest.mark.covering
@pytest.mark.parametrize("seed", range(4))
def test_no_flow_is_better_where_racks_are_scarce(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(120):
        cluster, group = racked_input(rng)
        assert score(cluster, group, pairs(target(cluster, group))) == by_network_flow(cluster, group)


@pytest.mark.slow
@pytest.mark.covering
@pytest.mark.parametrize(
    "seed",
    [*range(100, 105), *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(105, 130))],
)
def test_no_flow_is_better_at_length(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(60):
        cluster, group = random_input(rng, members=12, topics=10, most=12)
        assert score(cluster, group, pairs(target(cluster, group))) == by_network_flow(cluster, group)


def test_the_two_oracles_agree() -> None:
    rng = random.Random(7)
    for _ in range(40):
        cluster, group = random_input(rng, members=3, topics=3, most=2)
        assert by_network_flow(cluster, group) == exhaustive(cluster, group)


def test_blocks_split_where_loads_must_differ() -> None:
    """Six partitions only member 0 may have, one that 0 and 1 share, three for 2 and 3."""
    classes = [
        PartitionClass(6, 0b0001, 0b0001),
        PartitionClass(1, 0b0011, 0b0011),
        PartitionClass(3, 0b1100, 0b1100),
    ]
    found = {(b.floor, tuple(elements(b.members))) for b in blocks(classes, 4)}
    assert found == {(6, (0,)), (1, (1, 2, 3))}


def test_long_chains_of_moves_are_found() -> None:
    """Member n shares topic n with member n + 1 only: evening out shifts one partition along all of them."""
    last = 30
    cluster = Cluster.of({f"t{n:02d}": 2 if n == 0 else 1 for n in range(last)})
    group = {
        f"m{n:02d}": member(
            " ".join(f"t{k:02d}" for k in (n - 1, n) if 0 <= k < last),
            "t00-0 t00-1" if n == 0 else f"t{n:02d}-0" if n < last else "",
            1,
        )
        for n in range(last + 1)
    }
    result = reference("cooperative-sticky").assign(cluster, group)
    settled = reference("cooperative-sticky").assign(cluster, after(group, result, 2))
    assert {len(partitions) for partitions in settled.values()} == {1}


# -- claims and withholding --------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_withheld_is_exactly_what_others_may_own(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(250):
        cluster, group = random_input(rng, members=5, topics=3, most=4)
        claimants = newest_claimants(group)
        expected = {
            m: tuple(p for p in partitions if claimants.get(p, {m}) == {m})
            for m, partitions in target(cluster, group).items()
        }
        assert reference("cooperative-sticky").assign(cluster, group) == expected


@pytest.mark.parametrize("seed", range(3))
def test_superseded_claims_leave_no_mark(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(200):
        cluster, group = random_input(rng, members=5, topics=3, most=4)
        claimants = newest_claimants(group)
        cleaned = {
            m: replace(s, owned_partitions=tuple(p for p in s.owned_partitions if m in claimants[p]))
            for m, s in group.items()
        }
        assignor = reference("cooperative-sticky")
        assert assignor.assign(cluster, group) == assignor.assign(cluster, cleaned)


@pytest.mark.parametrize("name", NAMES)
def test_order_does_not_matter(name: str) -> None:
    rng = random.Random(3)
    for _ in range(150):
        cluster, group = random_input(rng, members=5, topics=4, most=4)
        if name == "sticky":
            group = {
                m: replace(s, user_data=encode_sticky_user_data(s.owned_partitions, s.generation_id))
                for m, s in group.items()
            }
        expected = reference(name).assign(cluster, group)
        topics = list(cluster.topics)
        rng.shuffle(topics)
        members = list(group)
        rng.shuffle(members)
        shuffled = {
            m: replace(
                group[m],
                topics=tuple(rng.sample(group[m].topics, len(group[m].topics))) * 2,
                owned_partitions=tuple(rng.sample(group[m].owned_partitions, len(group[m].owned_partitions)))
                * 2,
            )
            for m in members
        }
        assert reference(name).assign(Cluster({t: cluster.topics[t] for t in topics}), shuffled) == expected


HASHED = """
import random, sys
sys.path.insert(0, sys.argv[1])
from test_reference_assignors import NAMES, random_input, reference
rng = random.Random(1)
for _ in range(60):
    cluster, group = random_input(rng, members=6, topics=4, most=4)
    print([reference(name).assign(cluster, group) for name in NAMES])
"""


@pytest.mark.nightly
def test_hash_seeds_do_not_matter() -> None:
    here = str(Path(__file__).parent)
    outputs = {
        subprocess.run(
            [sys.executable, "-c", HASHED, here],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(outputs) == 1


CLAIMS = {
    "a sole claim counts however old it is": (
        {"a": member("t", "t-0", 1), "b": member("t", "t-1", 9)},
        {"a": "t-0", "b": "t-1"},
    ),
    "a newer claim supersedes an older one": (
        {"a": member("t", "t-0", 1), "b": member("t", "t-0", 9)},
        {"a": "t-1", "b": "t-0"},
    ),
    "equally new claims cancel out, and the partition is withheld": (
        {"a": member("t", "t-0 t-1", 9), "b": member("t", "t-0", 9)},
        {"a": "t-1", "b": ""},
    ),
    "a newer claim settles an older tie": (
        {"a": member("t", "t-0", 1), "b": member("t", "t-0", 1), "c": member("t", "t-0", 2)},
        {"a": "t-1", "b": "", "c": "t-0"},
    ),
    "a claim on a topic that its owner left is withheld until it is revoked": (
        {"a": member("u", "t-0", 9), "b": member("t", "", 9)},
        {"a": "", "b": "t-1"},
    ),
    "partitions that do not exist are nobody's": (
        {"a": member("t", "t-2 t-7 x-0 t-0", 9), "b": member("t x", "t-1", 9)},
        {"a": "t-0", "b": "t-1"},
    ),
    "a negative index is no partition": (
        {"a": replace(member("t", "t-0", 9), owned_partitions=(TopicPartition("t", -1),)), "b": member("t")},
        {"a": "t-0", "b": "t-1"},
    ),
    "repeating a claim changes nothing": (
        {"a": member("t", "t-1 t-1 t-1", 9), "b": member("t", "t-0", 9)},
        {"a": "t-1", "b": "t-0"},
    ),
    "generation from four bytes of user data": (
        {
            "a": member("t", "t-0", -1, user_data=encode_cooperative_user_data(9)),
            "b": member("t", "t-0", 8),
        },
        {"a": "t-0", "b": "t-1"},
    ),
    "the field comes before the user data": (
        {
            "a": member("t", "t-0", 7, user_data=encode_cooperative_user_data(9)),
            "b": member("t", "t-0", 8),
        },
        {"a": "t-1", "b": "t-0"},
    ),
    "user data of another layout has no generation": (
        {
            "a": member("t", "t-0", -1, user_data=encode_sticky_user_data(tps("t-0"), 9)),
            "b": member("t", "t-0", 0),  # 1, the number of topics, would be newer
        },
        {"a": "t-1", "b": "t-0"},
    ),
}


@pytest.mark.parametrize(("group", "expected"), CLAIMS.values(), ids=CLAIMS)
def test_claims(group: dict[str, Subscription], expected: dict[str, str]) -> None:
    assert show(reference("cooperative-sticky").assign(Cluster.of({"t": 2}), group)) == expected


def test_sticky_reads_user_data_only() -> None:
    group = {
        "a": member("t", "t-1", 9, user_data=encode_sticky_user_data(tps("t-0"), 3)),
        "b": member("t", "t-0", 9, user_data=encode_sticky_user_data(tps("t-0 t-1"), 2)),
    }
    assert show(reference("sticky").assign(Cluster.of({"t": 2}), group)) == {"a": "t-0", "b": "t-1"}


@pytest.mark.parametrize("junk", [b"", b"\x00", b"\xff" * 9, None])
def test_sticky_shrugs_at_junk(junk: bytes | None) -> None:
    group = {
        "a": member("t", user_data=junk),
        "b": member("t", user_data=encode_sticky_user_data(tps("t-0"), None)),
    }
    assert show(reference("sticky").assign(Cluster.of({"t": 2}), group)) == {"a": "t-1", "b": "t-0"}


# -- rounds ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_two_rounds_settle_any_history(seed: int) -> None:
    """Members come, go, change topics, racks and silence; after each change two rounds are enough."""
    rng = random.Random(seed)
    assignor = reference("cooperative-sticky")
    for _ in range(12):
        cluster, group = random_input(rng, members=6, topics=4, most=5)
        for generation in range(10, 40, 3):
            first = assignor.assign(cluster, group)
            group = after(group, first, generation)
            second = assignor.assign(cluster, group)
            assert all(set(first[m]) <= set(second[m]) for m in group)  # round 2 revokes nothing
            assert sum(map(len, second.values())) == len(units(cluster, group))  # and withholds nothing
            group = after(group, second, generation + 1)
            assert assignor.assign(cluster, group) == second  # round 3 would change nothing
            _, other = random_input(rng, members=6, topics=4, most=5)
            changed = rng.choice(sorted(other))
            known = group.get(changed, other[changed])
            group = {
                **group,
                changed: replace(
                    other[changed], owned_partitions=known.owned_partitions, generation_id=generation
                ),
            }
            if len(group) > 1 and rng.random() < 0.4:
                group.pop(rng.choice(sorted(group)))


def test_kafka_8767_needs_no_third_round() -> None:
    """The group of J23 (KAFKA-8767), where the Java assignor needs three rounds."""
    cluster = Cluster.of({"t0": 4, "t1": 4, "t2": 1, "t3": 6})
    group = {
        "m0": member("t0 t1", "t0-1 t0-2 t0-3 t1-0 t1-1 t1-2 t1-3", 5),
        "m1": member("t0 t1 t2", "t0-0 t2-0", 5),
        "m2": member("t0 t1 t3", " ".join(f"t3-{n}" for n in range(6)), 5),
        "m3": member("t1 t2"),
    }
    assignor = reference("cooperative-sticky")
    first = assignor.assign(cluster, group)
    group = after(group, first, 6)
    second = assignor.assign(cluster, group)
    assert sum(map(len, second.values())) == 15
    assert assignor.assign(cluster, after(group, second, 7)) == second


# -- range and round robin ---------------------------------------------------------------------------------


def test_range_lays_out_each_topic() -> None:
    group = {"c1": member("t0 t1"), "c0": member("t1 t0"), "idle": member("gone")}
    assert show(reference("range").assign(Cluster.of({"t0": 3, "t1": 3}), group)) == {
        "c0": "t0-0 t0-1 t1-0 t1-1",
        "c1": "t0-2 t1-2",
        "idle": "",
    }


@pytest.mark.parametrize("name", ["range", "roundrobin"])
def test_static_members_sit_first(name: str) -> None:
    group = {
        "a": member("t"),
        "b": member("t", group_instance_id="2"),
        "c": member("t", group_instance_id="1"),
    }
    assert show(reference(name).assign(Cluster.of({"t": 3}), group)) == {"a": "t-2", "b": "t-1", "c": "t-0"}


def test_range_prefers_racks_within_its_share() -> None:
    cluster = Cluster({"t": (("b",), ("a",), ("b",), ("a",), ("b",))})
    group = {"m0": member("t", rack_id="a"), "m1": member("t", rack_id="b")}
    assert show(reference("range").assign(cluster, group)) == {"m0": "t-1 t-3", "m1": "t-0 t-2 t-4"}


def test_range_asks_the_racks_of_all_equal_topics() -> None:
    """Index 0 is near both members in t alone, index 1 in both topics: it goes first, to the first member."""
    cluster = Cluster({"t": (("b",), ("b",)), "u": (("a",), ("b",))})
    group = {"m0": member("t u", rack_id="b"), "m1": member("t u", rack_id="b")}
    assert show(reference("range").assign(cluster, group)) == {"m0": "t-1 u-1", "m1": "t-0 u-0"}


def test_range_keeps_equal_topics_together_whatever_their_racks() -> None:
    rng = random.Random(5)
    for _ in range(200):
        cluster, group = random_input(rng, members=5, topics=4, most=4)
        result = reference("range").assign(cluster, group)
        owners = dict(pairs(result))
        assert set(owners) == set(units(cluster, group))
        subscribers = {t: frozenset(m for m in group if t in group[m].topics) for t in cluster.topics}
        for p, m in owners.items():
            for t in cluster.topics:
                if subscribers[t] == subscribers[p.topic] and cluster.partition_count(
                    t
                ) == cluster.partition_count(p.topic):
                    assert owners[TopicPartition(t, p.partition)] == m
        for t in cluster.topics:
            loads = [sum(p.topic == t for p in result[m]) for m in subscribers[t]]
            assert not loads or max(loads) - min(loads) <= 1


def test_round_robin_skips_members_without_the_topic() -> None:
    """The second example in the documentation of ``RoundRobinAssignor``."""
    cluster = Cluster.of({"t0": 1, "t1": 2, "t2": 3})
    group = {"c0": member("t0"), "c1": member("t0 t1"), "c2": member("t0 t1 t2")}
    assert show(reference("roundrobin").assign(cluster, group)) == {
        "c0": "t0-0",
        "c1": "t1-0",
        "c2": "t1-1 t2-0 t2-1 t2-2",
    }


# -- the interface -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("cluster", "group"),
    [
        (Cluster(), {}),
        (Cluster.of({"t": 2}), {}),
        (Cluster(), {"a": member("t", "t-0", 3)}),
        (Cluster.of({"t": 0}), {"a": member("t")}),
        (Cluster.of({"t": 2}), {"a": member(""), "b": member("x")}),
    ],
)
def test_total(name: str, cluster: Cluster, group: Mapping[str, Subscription]) -> None:
    assert reference(name).assign(cluster, group) == dict.fromkeys(group, ())


@pytest.mark.parametrize("name", NAMES)
def test_every_subscribed_partition_goes_to_one_subscriber(name: str) -> None:
    rng = random.Random(11)
    for _ in range(200):
        cluster, group = random_input(rng, members=5, topics=4, most=4)
        group = {m: replace(s, owned_partitions=()) for m, s in group.items()}
        result = reference(name).assign(cluster, group)
        assert list(result) == sorted(group)
        assert sorted(p for p, _ in pairs(result)) == sorted(units(cluster, group))
        for m, partitions in result.items():
            assert isinstance(partitions, tuple)
            assert list(partitions) == sorted(partitions)
            assert all(isinstance(p, TopicPartition) and p.topic in group[m].topics for p in partitions)


def test_names_protocols_promises() -> None:
    described: dict[str, tuple[tuple[str, ...], frozenset[Promise]]] = {}
    for name in NAMES:
        assignor: Assignor = reference(name)
        assert assignor.name == name
        described[name] = assignor.protocols, assignor.promises
    eager, both = (RebalanceProtocol.EAGER,), (RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER)
    sticky = frozenset({Promise.BALANCED, Promise.STICKY, Promise.RACK_AWARE})
    assert described == {
        "range": (
            eager,
            frozenset({Promise.BALANCED_PER_TOPIC, Promise.CO_PARTITIONED, Promise.RACK_AWARE}),
        ),
        "roundrobin": (eager, frozenset({Promise.BALANCED_EQUAL})),
        "sticky": (eager, sticky),
        "cooperative-sticky": (both, sticky),
    }


def test_unknown_name() -> None:
    with pytest.raises(ValueError, match="no reference assignor is called 'coop': did you mean"):
        reference("coop")


def test_user_data() -> None:
    assert reference("range").user_data(tps("t-0"), 4) is None
    assert reference("roundrobin").user_data(tps("t-0"), 4) is None
    assert reference("cooperative-sticky").user_data(tps("t-0"), 4) == b"\x00\x00\x00\x04"
    assert reference("sticky").user_data(tps("t-0"), 4) == encode_sticky_user_data(tps("t-0"), 4)


# -- work --------------------------------------------------------------------------------------------------


def worked(cluster: Cluster, group: GroupSubscription) -> tuple[int, int]:
    """Lines run for a fresh assignment, and for one where all is claimed and one member is new."""
    assignor = reference("cooperative-sticky")
    placed: list[GroupAssignment] = []
    fresh = lines(lambda: placed.append(assignor.assign(cluster, group)))
    later = {**after(group, placed[0], 5), "new": next(iter(group.values()))}
    joined = lines(lambda: assignor.assign(cluster, later))
    assert gc.isenabled()
    return fresh, joined


def test_one_topic_takes_work_by_its_size() -> None:
    """KAFKA-9987 took minutes for 2,100 members of a topic of 2,100 partitions."""
    few, many = (
        worked(Cluster.of({"t": n}), {f"m{i:04d}": member("t") for i in range(n)}) for n in (1050, 2100)
    )
    assert all(more < 2.2 * less for less, more in zip(few, many, strict=True))


def unequal(topics: int, size: int, share: float, members: int) -> tuple[Cluster, GroupSubscription]:
    """So many members, each with a share of the topics, so that the general algorithm has to do it."""
    rng = random.Random(1)
    names = tuple(f"t{n:03d}" for n in range(topics))
    group = {
        f"m{n:04d}": Subscription(topics=tuple(rng.sample(names, int(share * topics))))
        for n in range(members)
    }
    group["m0000"] = Subscription(topics=names[:-1])
    return Cluster.of(dict.fromkeys(names, size)), group


@pytest.mark.slow
@pytest.mark.covering
@pytest.mark.parametrize("share", [0.5, 1])
def test_unequal_subscriptions_take_work_by_their_size(share: float) -> None:
    few = worked(*unequal(20, 50, share, 100))
    for larger in (unequal(40, 50, share, 100), unequal(20, 100, share, 100), unequal(20, 50, share, 200)):
        assert all(more < 2.5 * less for less, more in zip(few, worked(*larger), strict=True))


@pytest.mark.nightly
def test_a_million_partitions() -> None:
    """What is quadratic within one line of Python does not end here."""
    names = tuple(f"t{n:03d}" for n in range(500))
    group = {f"m{n:04d}": Subscription(topics=names) for n in range(2000)}
    cluster = Cluster.of(dict.fromkeys(names, 2000))
    placed = reference("cooperative-sticky").assign(cluster, group)
    assert {len(partitions) for partitions in placed.values()} == {500}
