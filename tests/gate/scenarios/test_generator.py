"""The generator: reproducible anywhere, and every dimension brings what its sentence says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import pairwise

import pytest
from rebalance_verifier.base.draws import Seeded
from rebalance_verifier.gate.scenarios.generator import (
    BY_NAME,
    DIMENSIONS,
    EVENTS,
    HOSTILE,
    LARGE,
    MEDIUM,
    SMALL,
    Size,
    along,
    generate,
    some,
)
from rebalance_verifier.gate.scenarios.round_view import unusual_preconditions
from rebalance_verifier.model.values import CLASSIC, NO_GENERATION, Cluster, RebalanceProtocol
from rebalance_verifier.properties.assignors.scenarios import (
    AddMember,
    Fault,
    FaultKind,
    Leave,
    Scenario,
    ScenarioEvent,
    SetTopic,
    Subscribe,
    UserData,
    to_json,
)

EAGER, COOPERATIVE = RebalanceProtocol.EAGER, RebalanceProtocol.COOPERATIVE
SEEDS = range(200)


def scenario(seed: int | str, *dimensions: str, protocol: RebalanceProtocol = COOPERATIVE) -> Scenario:
    return generate(Seeded(seed), protocol, dimensions)


def events(s: Scenario, kind: type[ScenarioEvent]) -> list[ScenarioEvent]:
    return [e for events in s.rounds for e in events if isinstance(e, kind)]


# --- reproducible ---------------------------------------------------------------------------------

DIGEST = """
import hashlib, json
from rebalance_verifier.model.values import RebalanceProtocol
from rebalance_verifier.gate.scenarios.generator import DIMENSIONS, LARGE, SMALL, generate
from rebalance_verifier.gate.scenarios.round_view import unusual_preconditions
from rebalance_verifier.base.draws import Seeded
from rebalance_verifier.properties.assignors.scenarios import to_json
digest = hashlib.sha256()
for protocol in RebalanceProtocol:
    for size, seeds in ((SMALL, 60), (LARGE, 3)):
        for seed in range(seeds):
            names = {d.name for i, d in enumerate(DIMENSIONS) if (seed * 7919 >> i) & 1}
            digest.update(json.dumps(to_json(generate(Seeded(seed), protocol, names, size))).encode())
print(digest.hexdigest())
"""


@pytest.mark.nightly
def test_equal_seeds_give_equal_scenarios_under_any_hash_seed():
    digests = {
        subprocess.run(
            [sys.executable, "-c", DIGEST],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("0", "1", "4711")
    }
    assert len(digests) == 1
    assert len(digests.pop().strip()) == 64


def test_other_seeds_give_other_scenarios():
    names = tuple(d.name for d in DIMENSIONS)
    texts = {json.dumps(to_json(scenario(seed, *names))) for seed in SEEDS}
    assert len(texts) == len(SEEDS)


def test_order_and_repetition_of_the_names_mean_nothing():
    names = [d.name for d in DIMENSIONS]
    once = to_json(scenario(3, *names))
    assert to_json(scenario(3, *reversed(names), *names)) == once
    assert once["dimensions"] == names


def test_a_seed_is_drawn_evenly():
    draw = Seeded("even")
    drawn = Counter(draw.integer(-1, 2) for _ in range(4000))
    assert sorted(drawn) == [-1, 0, 1, 2]
    assert min(drawn.values()) > 800
    assert Seeded(1).integer(7, 7) == 7


# --- the plain scenario ---------------------------------------------------------------------------


def test_without_dimensions_a_fresh_group_with_equal_subscriptions():
    for seed in SEEDS:
        plain = scenario(seed)
        assert plain.rounds == ((),)
        assert plain.dimensions == ()
        assert 1 <= len(plain.members) <= SMALL.members[1]
        assert 1 <= len(plain.topics) <= SMALL.topics[1]
        assert all(len(partitions) <= SMALL.partitions[1] for partitions in plain.topics.values())
        for member in plain.members:
            assert member.topics == tuple(plain.topics)
            assert member == type(member)(id=member.id, topics=member.topics)
    assert any(len(scenario(seed).members) == SMALL.members[1] for seed in SEEDS)
    assert any(0 in map(len, scenario(seed).topics.values()) for seed in SEEDS)


def test_sizes_are_bounds():
    names = tuple(BY_NAME)
    for size in (Size((1, 1), (1, 1), (0, 1), 1), Size((2, 3), (2, 2), (3, 4), 2), MEDIUM, LARGE):
        for seed in range(12):
            drawn = generate(Seeded(seed), COOPERATIVE, names, size)
            assert size.members[0] <= len(drawn.members) <= size.members[1]
            assert len(drawn.rounds) <= size.rounds + 1
            sets = [e for e in events(drawn, SetTopic) if isinstance(e, SetTopic)]
            for partitions in [*drawn.topics.values(), *(e.partitions or () for e in sets)]:
                assert len(partitions) <= size.partitions[1]
            plain = generate(Seeded(seed), COOPERATIVE, (), size)
            assert size.topics[0] <= len(plain.topics) <= size.topics[1]
            assert all(size.partitions[0] <= len(partitions) for partitions in plain.topics.values())


def test_smallest_choices_give_the_simplest_scenario():
    class Least:
        def integer(self, low: int, high: int) -> int:
            return low

    simplest = generate(Least(), COOPERATIVE, ("unequal", "claims", "versions", "static", "racks", "eager"))
    assert simplest.size == (1, 0, 0, 1)
    assert simplest.members[0].version == 3
    assert not simplest.members[0].eager


# --- what each dimension brings -------------------------------------------------------------------


def claims(s: Scenario) -> Counter[object]:
    return Counter(p for m in s.members for p in set(m.owned))


def shared_with(s: Scenario, *, newer: bool) -> bool:
    """Whether two members claim one partition, of different or of equal generations."""
    found = False
    for partition, count in claims(s).items():
        if count > 1:
            generations = {m.generation for m in s.members if partition in m.owned}
            found |= (len(generations) > 1) is newer
    return found


def known(s: Scenario, m_topics: tuple[str, ...]) -> bool:
    return set(m_topics) <= set(s.topics)


def grows(s: Scenario) -> bool:
    return any(e.partitions and len(e.partitions) > len(s.topics.get(e.topic, ())) for e in sets(s))


def sets(s: Scenario) -> list[SetTopic]:
    return [e for e in events(s, SetTopic) if isinstance(e, SetTopic)]


def faults(s: Scenario) -> set[FaultKind]:
    return {e.kind for e in events(s, Fault) if isinstance(e, Fault)}


def instances(s: Scenario) -> Counter[str]:
    return Counter(m.instance for m in s.members if m.instance)


def begin_alike(names: Iterable[str]) -> bool:
    return any(one != other and other.startswith(one) for one in names for other in names)


# Dimension, what it is to bring, the least share of 200 seeds that must bring it. With one member or one
# topic at most of these say nothing; that, not chance, is what keeps the shares below one.
BRINGS: list[tuple[str, str, float, Callable[[Scenario], bool]]] = [
    ("unequal", "unequal", 0.5, lambda s: len({m.topics for m in s.members}) > 1),
    ("claims", "claims", 0.8, lambda s: any(m.owned for m in s.members)),
    ("claims", "on partitions that exist, once", 1, lambda s: max(claims(s).values(), default=1) == 1),
    ("claims", "uneven", 0.4, lambda s: len({len(m.owned) for m in s.members}) > 1),
    ("claims", "not all", 0.8, lambda s: len(claims(s)) < s.size[1] or not s.size[1]),
    ("stale", "older generations", 0.6, lambda s: len({m.generation for m in s.members}) > 1),
    ("stale", "superseded claims", 0.3, lambda s: shared_with(s, newer=True)),
    ("duplicated", "ties", 0.5, lambda s: shared_with(s, newer=False)),
    ("repeated", "twice in a list", 0.5, lambda s: any(len(set(m.owned)) < len(m.owned) for m in s.members)),
    (
        "unsubscribed",
        "claims to topics not subscribed",
        0.35,
        lambda s: any(p.topic not in m.topics for m in s.members for p in m.owned),
    ),
    (
        "unknown",
        "claims to topics without metadata",
        0.6,
        lambda s: any(p.topic not in s.topics for m in s.members for p in m.owned),
    ),
    (
        "unknown",
        "claims to indexes that are gone",
        0.6,
        lambda s: any(
            p.topic in s.topics and p.partition >= len(s.topics[p.topic]) for m in s.members for p in m.owned
        ),
    ),
    ("generations", "none", 0.3, lambda s: any(m.owned and m.generation == NO_GENERATION for m in s.members)),
    ("generations", "newer and older", 0.4, lambda s: len({m.generation for m in s.members}) > 2),
    ("versions", "mixed", 0.6, lambda s: len({m.version for m in s.members}) > 1),
    ("versions", "version 0", 0.4, lambda s: any(m.version == 0 for m in s.members)),
    ("user-data", "none at all", 0.4, lambda s: any(m.user_data is UserData.NONE for m in s.members)),
    ("user-data", "another's", 0.6, lambda s: any(m.user_data.startswith("sticky") for m in s.members)),
    ("racks", "of members", 0.8, lambda s: any(m.rack for m in s.members)),
    ("racks", "of replicas", 0.8, lambda s: any(r for ps in s.topics.values() for r in ps)),
    ("racks", "unknown ones", 0.3, lambda s: any(m.rack is None for m in s.members)),
    ("static", "static", 0.6, lambda s: any(m.instance for m in s.members)),
    ("static", "beside dynamic", 0.4, lambda s: len({bool(m.instance) for m in s.members}) > 1),
    ("eager", "beside cooperative", 0.5, lambda s: len({m.eager for m in s.members}) > 1),
    ("order", "members", 0.4, lambda s: [m.id for m in s.members] != sorted(m.id for m in s.members)),
    ("order", "topics", 0.4, lambda s: any(list(m.topics) != sorted(m.topics) for m in s.members)),
    ("membership", "join", 0.5, lambda s: bool(events(s, AddMember))),
    ("membership", "leave", 0.3, lambda s: bool(events(s, Leave))),
    ("membership", "after the first round", 1, lambda s: not s.rounds[0]),
    ("resubscribe", "resubscribe", 1, lambda s: bool(events(s, Subscribe))),
    ("topics", "created", 0.2, lambda s: any(e.topic not in s.topics and e.partitions for e in sets(s))),
    ("topics", "grown", 0.3, grows),
    ("topics", "deleted", 0.1, lambda s: any(e.topic in s.topics and e.partitions is None for e in sets(s))),
    (
        "topics",
        "smaller",
        0.3,
        lambda s: any(
            e.partitions is not None and len(e.partitions) < len(s.topics.get(e.topic, ())) for e in sets(s)
        ),
    ),
    ("faults", "silent", 0.4, lambda s: FaultKind.SILENT in faults(s)),
    ("faults", "lost JoinGroup responses", 0.4, lambda s: FaultKind.LOST_JOIN in faults(s)),
    ("faults", "missed SyncGroups", 0.4, lambda s: FaultKind.MISSED_SYNC in faults(s)),
    ("faults", "with joins and leaves", 0.2, lambda s: bool(events(s, AddMember) or events(s, Leave))),
    ("ghosts", "ghosts", 1, lambda s: faults(s) == {FaultKind.GHOST}),
    ("hostile", "indexes below 0", 0.3, lambda s: any(p.partition < 0 for m in s.members for p in m.owned)),
    ("hostile", "generation 0", 0.3, lambda s: any(m.generation == 0 for m in s.members)),
    ("hostile", "cut bytes", 0.3, lambda s: any(m.user_data is UserData.TRUNCATED for m in s.members)),
    ("hostile", "an instance twice", 0.1, lambda s: max(instances(s).values(), default=0) > 1),
    ("hostile", "a topic twice", 0.3, lambda s: any(len(set(m.topics)) < len(m.topics) for m in s.members)),
    ("hostile", "and that is marked", 0.95, lambda s: bool(unusual_preconditions(s))),
    ("names", "of topics", 0.6, lambda s: not {"t0", "t1", "t2", "t3"} & s.topics.keys()),
    ("names", "with UUIDs", 0.5, lambda s: any(len(m.id) > 36 for m in s.members)),
    ("names", "of members that begin alike", 0.1, lambda s: begin_alike([m.id for m in s.members])),
    ("names", "of topics that begin alike", 0.5, lambda s: begin_alike(s.topics)),
    ("no-metadata", "unknown topics", 0.5, lambda s: not all(known(s, m.topics) for m in s.members)),
]


@pytest.mark.parametrize(
    ("dimension", "share", "has"),
    [(d, s, h) for d, _, s, h in BRINGS],
    ids=[f"{d}: {w}" for d, w, _, _ in BRINGS],
)
def test_dimension_brings(dimension: str, share: float, has: Callable[[Scenario], bool]):
    hits = sum(has(scenario(seed, dimension)) for seed in SEEDS)
    assert hits >= share * len(SEEDS)


def test_every_dimension_is_tested():
    assert {dimension for dimension, _, _, _ in BRINGS} == set(BY_NAME)


@pytest.mark.parametrize("name", BY_NAME)
def test_a_dimension_changes_something_in_many_seeds(name: str):
    changed = sum(
        to_json(scenario(seed, name)) | {"dimensions": []} != to_json(scenario(seed)) for seed in SEEDS
    )
    assert changed >= 0.5 * len(SEEDS)


def test_medium_has_names_and_indexes_that_run_together():
    """Joined without a separator, a topic and an index are those of another partition."""
    drawn = [generate(Seeded(seed), COOPERATIVE, ("names",), MEDIUM) for seed in SEEDS]
    joined = [Counter(f"{p.topic}{p.partition}" for p in Cluster(s.topics).partitions()) for s in drawn]
    assert sum(max(counts.values()) > 1 for counts in joined) > 0.25 * len(SEEDS)
    assert all(8 <= len(s.members) <= 12 and 20 <= s.size[1] <= 60 for s in drawn)


def test_honest_members_have_no_generation_0():
    """The broker counts from 1."""
    for name in BY_NAME.keys() - {"hostile"}:
        assert all(m.generation for seed in SEEDS for m in scenario(seed, name).members), name


# --- the list -------------------------------------------------------------------------------------


def test_subscriptions_before_claims_before_labels_before_events():
    """The order that the comment on DIMENSIONS promises, and why: later ones build on earlier ones."""
    index = {d.name: i for i, d in enumerate(DIMENSIONS)}
    stages = (
        ("unequal",),
        ("claims",),
        ("stale", "duplicated", "repeated", "unsubscribed", "unknown"),
        ("generations", "versions", "user-data", "racks", "static", "eager", "order"),
        ("membership", "resubscribe", "topics", "faults", "ghosts"),
        ("no-metadata", "hostile"),  # late: the others need to know the topics, and to be sound
        ("names",),  # last: the others know the plain ones
    )
    assert sorted(name for stage in stages for name in stage) == sorted(index)
    for before, after in pairwise(stages):
        assert max(index[n] for n in before) < min(index[n] for n in after)


@pytest.mark.parametrize("protocol", list(RebalanceProtocol))
def test_short_calls_come_first_and_hostile_clients_are_never_mixed_with_others(protocol: RebalanceProtocol):
    kinds = along(protocol)
    assert len(set(kinds)) == len(kinds)
    small = [names for names, size in kinds if size is SMALL]
    assert [names for names, _ in kinds[: len(small)]] == small
    histories = [bool(EVENTS.intersection(names)) for names in small]
    assert histories == sorted(histories)
    assert any(histories)
    assert not any(HOSTILE in some(Seeded(seed)) for seed in SEEDS)
    hostile = [(HOSTILE,)] if protocol in CLASSIC else []
    assert [names for names, _ in kinds if HOSTILE in names] == hostile


def test_names_are_unique_and_sentences_are_there():
    assert len(BY_NAME) == len(DIMENSIONS)
    for dimension in DIMENSIONS:
        assert dimension.sentence.endswith("."), dimension.name
        assert "\n" not in dimension.sentence


def test_an_unknown_dimension_is_named_with_those_there_are():
    with pytest.raises(ValueError, match="no dimension is called 'rack'; known: unequal, claims") as error:
        generate(Seeded(0), EAGER, ("claims", "rack"))
    assert all(name in str(error.value) for name in BY_NAME)


def test_a_dimension_without_meaning_under_a_protocol_is_left_out():
    assert scenario(1, "eager", "claims", protocol=EAGER).dimensions == ("claims",)
    assert scenario(1, "eager", "claims").dimensions == ("claims", "eager")


def test_ids_stay_readable_and_unique():
    crowd = generate(Seeded(5), COOPERATIVE, (), Size((40, 80), (1, 1), (0, 1)))
    ids = [m.id for m in crowd.members]
    assert len(set(ids)) == len(ids)
    assert ids[:2] == ["A", "B"]
    assert ids[26] == "A1"
