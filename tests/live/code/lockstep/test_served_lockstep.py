"""Consumer groups (KIP-848) in lockstep with the shipped coordinator."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from rebalance_verifier.base.verdict import Verdict
from rebalance_verifier.explore.groups.bugs import without
from rebalance_verifier.explore.groups.scenarios import SCENARIOS, ScenarioError, ScenarioSize
from rebalance_verifier.live.code.lockstep.classic import LEFT
from rebalance_verifier.live.code.lockstep.consumer import ServedLockstep
from rebalance_verifier.live.code.lockstep.setups import lockstep_setup
from rebalance_verifier.live.code.lockstep.system import drawn, walk
from rebalance_verifier.live.code.lockstep.walks import LockstepPlan, lockstep
from rebalance_verifier.live.code.replay.group import CodeReleases
from rebalance_verifier.live.code.simulation import Simulation
from rebalance_verifier.model.bugs.releases import NEWEST
from rebalance_verifier.model.consumer.state import ConsumerRecord, RecordState
from rebalance_verifier.model.group.parts import Generation, Parts
from rebalance_verifier.model.group.setup import Setup
from rebalance_verifier.model.protocols import machine

from tests.live.code.lockstep.stepping import NOW
from tests.live.code.played import needs_java


@pytest.fixture(scope="module")
def jvm() -> Iterator[Simulation]:
    with Simulation([NOW.coordinator], NOW.consumers) as simulation:
        yield simulation


def setup_of(name: str, releases: CodeReleases = NOW, members: int = 2, partitions: int = 2) -> Setup:
    size = ScenarioSize(members=members, partitions=partitions)
    return lockstep_setup(SCENARIOS[name], size, releases)


def walked(
    simulation: Simulation,
    setup: Setup,
    walks: int,
    kind: type[ServedLockstep] = ServedLockstep,
    first: int = 0,
) -> ServedLockstep | None:
    """The first walk that disagrees."""
    built = machine(setup)
    for number in range(first, first + walks):
        one = kind(simulation, setup, built, NOW)
        if walk(one, drawn(0, number), 100) is not None:
            return one
        assert one.seen.steps > 0
    return None


@pytest.mark.parametrize(
    ("record", "seen"),
    [
        (ConsumerRecord(1, epoch=Generation(3), previous=Generation(2)), (103, 102)),
        (ConsumerRecord(1, epoch=Generation(3)), (103, 0)),
        (ConsumerRecord(1), (0, 0)),
        (ConsumerRecord(1, previous=Generation(2), away=True), (-2, 0)),
    ],
)
def test_the_epochs_of_a_member_are_as_kafka_counts(record: ConsumerRecord, seen: tuple[int, int]) -> None:
    """Of a static member that is away Kafka has epoch -2, and nothing before it."""
    setup = setup_of("consumer")
    nobody: Any = None
    group = ServedLockstep(nobody, setup, machine(setup), NOW)
    group._lives = ((0, 100),)
    record = record._replace(
        assigned=Parts(1), pending=Parts(2), target=Parts(3), state=RecordState.UNREVOKED
    )
    (lone, other), both = setup.spell(Parts(3)).split(), setup.spell(Parts(3))
    assert group._record(record) == {
        "epoch": seen[0],
        "previous": seen[1],
        "state": "UNREVOKED_PARTITIONS",
        "assigned": lone,
        "pending": other,
        "target": both,
    }


@needs_java
@pytest.mark.slow
@pytest.mark.parametrize("name", ["consumer", "consumer-static", "consumer-connections", "consumer-topics"])
def test_the_model_is_in_step_with_the_newest_coordinator(name: str, jvm: Simulation) -> None:
    assert walked(jvm, setup_of(name, members=3 if name == "consumer" else 2), 15) is None


@needs_java
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "switch"),
    [
        ("consumer", "previous_epoch_overwritten"),
        ("consumer-static", "static_rejoin_unreleased"),
    ],
)
def test_a_model_without_what_is_known_of_it_is_not(name: str, switch: str, jvm: Simulation) -> None:
    assert walked(jvm, without(setup_of(name, members=2), switch), 40) is not None


@needs_java
@pytest.mark.slow
def test_a_model_that_refuses_what_was_overtaken_is_not_either(jvm: Simulation) -> None:
    setup = without(setup_of("consumer-connections"), "overtaken_heartbeat_believed")
    found = walked(jvm, setup, 10, first=100)
    assert found is not None
    assert found.events[-1].action == LEFT


@needs_java
@pytest.mark.slow
def test_a_disagreement_is_made_short_and_seen_again() -> None:
    setup = without(setup_of("consumer-static"), "static_rejoin_unreleased")
    result = lockstep(LockstepPlan(setup=setup, releases=NOW, walks=40, jobs=1))
    assert result.verdict is Verdict.VIOLATION
    assert result.disagreement is not None
    assert result.disagreement.events[-1].action == "heartbeat arrives"
    assert "UNRELEASED_INSTANCE_ID" in result.disagreement.sentences[0]


@needs_java
@pytest.mark.nightly
@pytest.mark.parametrize("release", ["4.0.2", "4.1.2", "4.2.2", "4.3.1", NEWEST])
@pytest.mark.parametrize("name", ["consumer", "consumer-static"])
def test_a_hundred_thousand_steps_with_each_release(name: str, release: str) -> None:
    releases = CodeReleases(coordinator=release, consumers=(release,))
    size = 3 if name == "consumer" else 2
    setup = setup_of(name, releases, size, size)
    result = lockstep(LockstepPlan(setup=setup, releases=releases, walks=1000))
    assert result.verdict is Verdict.CONFORMANT
    assert result.agreement.steps >= 99_000


def test_what_has_no_such_walks_is_refused() -> None:
    old = replace(NOW, coordinator="3.9.1")
    with pytest.raises(ScenarioError, match="has no such groups"):
        setup_of("consumer", old)
    with pytest.raises(ScenarioError, match=r"a consumer of 3\.9\.1 has no such groups"):
        setup_of("consumer", replace(NOW, consumers=("3.9.1", *NOW.consumers)))
    with pytest.raises(ScenarioError, match="KAFKA-19431"):
        setup_of("consumer-topics", replace(NOW, coordinator="4.1.1"))
