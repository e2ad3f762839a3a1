"""Consumer groups (KIP-848) in lockstep with the shipped coordinator."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any, TypeVar

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
from rebalance_verifier.model.machine import Event
from rebalance_verifier.model.protocols import machine

from tests.live.code.lockstep.stepping import NOW
from tests.live.code.played import needs_java

AnyServed = TypeVar("AnyServed", bound=ServedLockstep)


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


@pytest.mark.covering
@needs_java
@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        *("consumer", "consumer-static", "consumer-connections", "consumer-topics"),
        "consumer-patterns",
    ],
)
def test_the_model_is_in_step_with_the_newest_coordinator(name: str, jvm: Simulation) -> None:
    assert walked(jvm, setup_of(name, members=3 if name == "consumer" else 2), 15) is None


def begun(kind: type[AnyServed], jvm: Simulation, setup: Setup) -> AnyServed:
    """Both at their beginning."""
    one = kind(jvm, setup, machine(setup), NOW)
    assert one.begin() is None
    return one


def plays(one: ServedLockstep, run: str) -> list[str]:
    """Take the steps, such as ``B start``; what is answered where a heartbeat arrives."""
    answers = []
    for text in run.split(", "):
        who, _, action = text.partition(" ")
        event = Event(action, ord(who) - ord("A")) if len(who) == 1 else Event(text)
        outcome = next(iter(one.built.outcomes_of(one.built.by_name[event.action, event.who], one.state)))
        found = one.step(event._replace(choice=outcome.choice), outcome)
        assert found is None, found.sentences
        if action in ("heartbeat arrives", "request arrives"):
            wire = one.built.value(one.state, f"wire {who}")
            answers.append(str(getattr(wire, "error", "") or "ok"))
    return answers


def joins(who: str) -> str:
    return f"{who} start, {who} heartbeat, {who} heartbeat arrives, {who} answer"


@needs_java
@pytest.mark.slow
def test_a_full_group_turns_away_whom_it_does_not_know(jvm: Simulation) -> None:
    """A member that was removed, too, once its place is another's; not a static member that comes back."""
    one = begun(ServedLockstep, jvm, setup_of("consumer-crowded"))
    lost = "A session timeout, B start, B heartbeat, B heartbeat arrives"
    assert plays(one, f"{joins('A')}, {joins('B')}, {lost}, A heartbeat, A heartbeat arrives") == [
        *("ok", "GROUP_MAX_SIZE_REACHED", "ok", "GROUP_MAX_SIZE_REACHED")
    ]
    one = begun(ServedLockstep, jvm, setup_of("consumer-static-crowded"))
    assert plays(one, f"{joins('A')}, A close, {joins('B')}, {joins('A')}") == [
        *("ok", "GROUP_MAX_SIZE_REACHED", "ok")
    ]


REVOKING = (
    f"{joins('A')}, A reconcile, A assign, A acknowledge, A heartbeat, A heartbeat arrives, A answer, "
    f"{joins('B')}, A heartbeat, A heartbeat arrives"
)
"""A, which has everything, is to give something up to B."""


@needs_java
@pytest.mark.slow
def test_a_failover_times_a_static_member_that_is_away(jvm: Simulation) -> None:
    """It left while it had to revoke, and has nothing to revoke any more; Kafka removes it."""
    one = begun(ServedLockstep, jvm, setup_of("consumer-static"))
    plays(one, f"{REVOKING}, A close, failover, A stale timeout")
    assert one.built.value(one.state, "record A") == ()


@needs_java
@pytest.mark.slow
def test_a_topic_that_is_made_anew_has_another_id(jvm: Simulation) -> None:
    """A member claims what it had of the topic before, and is given the partitions of the new one."""
    one = begun(ServedLockstep, jvm, setup_of("consumer-anew"))
    acknowledges = "A assign, A acknowledge, A heartbeat, A heartbeat arrives, A answer"
    plays(
        one, f"{joins('A')}, A reconcile, {acknowledges}, topic made anew, A heartbeat, A heartbeat arrives"
    )
    [record] = one.built.value(one.state, "record A")
    assert (record.target, record.pending) == (0b1100, 0b0011)
    plays(one, f"A answer, A reconcile, A revoke, {acknowledges}")
    assert one._code.coordinator.consumer is not None
    [known] = one._code.coordinator.consumer.members
    assert set(known.assigned) == {"t'-0", "t'-1"}


@needs_java
@pytest.mark.slow
def test_a_pattern_that_matches_nothing_changes_no_target(jvm: Simulation) -> None:
    """A holds a partition of t0, and changes to a pattern for a topic that there is not."""
    one = begun(ServedLockstep, jvm, setup_of("consumer-patterns"))
    says = "A heartbeat, A heartbeat arrives, A answer"
    both = f"{joins('A')}, {joins('B')}, patterns resolved"
    plays(one, f"{both}, {says}, A resubscribe, {says}, patterns resolved")
    served = one._code.coordinator.consumer
    assert served is not None
    assert (served.epoch, len(served.members)) == (served.assignment_epoch, 2)
    for known, letter in zip(served.members, "AB", strict=True):
        [record] = one.built.value(one.state, f"record {letter}")
        assert one._bits(known.target) == record.target
    assert one.built.look(one.state, "foreign")


@needs_java
@pytest.mark.nightly
@pytest.mark.parametrize(
    ("release", "refuses"), [("4.0.2", True), ("4.2.2", True), ("4.3.1", True), (NEWEST, False)]
)
def test_a_full_group_refuses_its_static_member_in_these_releases(release: str, refuses: bool) -> None:
    releases = CodeReleases(coordinator=release, consumers=(release,))
    setup = setup_of("consumer-static-crowded", releases)
    assert ("full_group_refuses_static" in setup.coordinator) is refuses
    assert lockstep(LockstepPlan(setup=setup, releases=releases, walks=100)).disagreement is None
    known = without(setup, "full_group_refuses_static")
    found = lockstep(LockstepPlan(setup=known, releases=releases, walks=100))
    assert (found.disagreement is not None) is refuses


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
    """Kafka moves a member on by a heartbeat that a later one has overtaken."""
    one = begun(
        ServedLockstep, jvm, without(setup_of("consumer-connections"), "overtaken_heartbeat_believed")
    )
    beats = "B heartbeat, B heartbeat arrives, B answer"
    plays(one, f"{joins('B')}, B reconcile, B assign, B acknowledge, {beats}")
    plays(one, f"B heartbeat, B left behind, B answer, {beats}, A start, A heartbeat, A heartbeat arrives")
    [overtaken] = one.in_vain()
    assert overtaken == Event(LEFT, 1)
    found = one.try_in_vain(overtaken)
    assert found is not None
    assert "B id 1 state: the model has STABLE, Kafka UNREVOKED_PARTITIONS" in found.sentences


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
@pytest.mark.parametrize(
    ("name", "release"),
    [
        *product(
            ["consumer", "consumer-static", "consumer-crowded", "consumer-anew"],
            ["4.0.2", "4.1.2", "4.2.2", "4.3.1", NEWEST],
        ),
        *product(["consumer-patterns"], ["4.2.2", "4.3.1", NEWEST]),
    ],
)
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
