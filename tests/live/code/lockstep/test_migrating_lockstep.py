"""Groups between the classic and the consumer protocol in lockstep with the shipped coordinator."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from rebalance_verifier.base.verdict import Verdict
from rebalance_verifier.explore.groups.bugs import without
from rebalance_verifier.live.clients.replay.scene import NotForcible
from rebalance_verifier.live.code.lockstep.classic import BEAT
from rebalance_verifier.live.code.lockstep.deviations import SENT_BACK
from rebalance_verifier.live.code.lockstep.migration import MigratingLockstep
from rebalance_verifier.live.code.lockstep.walks import LockstepPlan, lockstep
from rebalance_verifier.live.code.replay.group import CodeReleases
from rebalance_verifier.live.code.simulation import Simulation
from rebalance_verifier.model.bugs.releases import NEWEST
from rebalance_verifier.model.group.parts import Error
from rebalance_verifier.model.machine import Event
from rebalance_verifier.model.protocols import machine

from tests.live.code.lockstep.stepping import NOW
from tests.live.code.lockstep.test_served_lockstep import begun, setup_of, walked
from tests.live.code.played import needs_java

SCENARIOS = (
    *("migration", "migration-lists", "migration-upgrade", "migration-downgrade", "migration-static"),
    *("migration-failover", "migration-one-way", "migration-disabled", "migration-crowded"),
    *("migration-patterns", "migration-anew"),
)


MISSES, IN_VAIN = "downgrade_misses_due_target", "downgrade_computes_in_vain"


@pytest.fixture(scope="module")
def jvm() -> Iterator[Simulation]:
    with Simulation([NOW.coordinator], NOW.consumers) as simulation:
        yield simulation


def size_of(name: str) -> int:
    return 3 if name in ("migration", "migration-lists") else 2


@pytest.mark.covering
@needs_java
@pytest.mark.slow
@pytest.mark.parametrize("name", SCENARIOS)
def test_the_model_is_in_step_with_the_newest_coordinator(name: str, jvm: Simulation) -> None:
    assert walked(jvm, setup_of(name, members=size_of(name)), 6, MigratingLockstep) is None


@needs_java
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "switch", "first"),
    [
        ("migration", "downgrade_to_target", 0),
        ("migration", "upgrade_keeps_target", 0),
        ("migration", "upgrade_needs_protocol", 0),
        ("migration-failover", "rebalance_not_logged", 60),
        ("migration-one-way", "rejoin_on_target_epoch", 0),
        ("migration-anew", "classic_held_by_id", 0),
    ],
)
def test_a_model_without_what_is_known_of_conversions_is_not(
    name: str, switch: str, first: int, jvm: Simulation
) -> None:
    setup = setup_of(name, members=size_of(name))
    assert switch in setup.coordinator
    assert walked(jvm, without(setup, switch), 60, MigratingLockstep, first) is not None


@needs_java
@pytest.mark.slow
@pytest.mark.parametrize("switch", ["upgrade_reads_last_protocol", "sync_names_first_protocol"])
def test_a_model_without_what_is_known_of_lists_is_not(switch: str, jvm: Simulation) -> None:
    setup = setup_of("migration-lists", members=3)
    assert switch in setup.coordinator
    found = walked(jvm, without(setup, switch), 10, MigratingLockstep, first=82)
    assert found is not None


@pytest.mark.parametrize(("release", "later"), [("4.0.1", True), ("4.1.2", False), ("4.2.0", False)])
def test_in_these_releases_what_returns_to_its_member_comes_a_heartbeat_later(release: str, later: bool):
    releases = CodeReleases(coordinator=release, consumers=(release,))
    decisions = setup_of("migration-one-way", releases).coordinator
    assert ("own_pending_is_unreleased" in decisions) is later


@pytest.mark.parametrize(
    ("release", "decided"),
    [
        ("4.0.0", {"upgrade_forgets_topics", "extra_by_iteration_order", MISSES, IN_VAIN}),
        ("4.0.1", {MISSES, IN_VAIN}),
        ("4.0.2", {MISSES}),
        ("4.1.0", {MISSES, IN_VAIN}),
        ("4.1.1", {MISSES}),
        ("4.2.2", {MISSES}),
        ("4.3.0", set()),
        (NEWEST, set()),
    ],
)
def test_in_these_releases_a_group_is_taken_over_and_back_otherwise(release: str, decided: set[str]) -> None:
    releases = CodeReleases(coordinator=release, consumers=(release,))
    decisions = setup_of("migration-patterns", releases).coordinator
    assert decisions & {"upgrade_forgets_topics", "extra_by_iteration_order", MISSES, IN_VAIN} == decided


@needs_java
@pytest.mark.nightly
@pytest.mark.parametrize("release", ["4.0.0", "4.1.0", "4.1.1"])
@pytest.mark.parametrize("name", ["migration-patterns", "migration-static", "migration-anew"])
def test_they_are_in_step_too(name: str, release: str) -> None:
    releases = CodeReleases(coordinator=release, consumers=(release,))
    plan = LockstepPlan(setup=setup_of(name, releases), releases=releases, walks=50)
    assert lockstep(plan).verdict is Verdict.CONFORMANT


@needs_java
@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "release", "decision"),
    [
        ("migration-patterns", "4.0.0", "upgrade_forgets_topics"),
        ("migration-anew", "4.0.0", "extra_by_iteration_order"),
        ("migration-patterns", "4.1.1", MISSES),
        ("migration-patterns", "4.1.0", IN_VAIN),
    ],
)
def test_a_model_of_an_older_release_needs_what_it_decides(name: str, release: str, decision: str) -> None:
    releases = CodeReleases(coordinator=release, consumers=(release,))
    setup = setup_of(name, releases)
    plan = LockstepPlan(setup=without(setup, decision), releases=releases, walks=100)
    assert decision in setup.coordinator
    assert lockstep(plan).disagreement is not None


@pytest.mark.covering
@needs_java
@pytest.mark.slow
@pytest.mark.parametrize(
    ("release", "admits"), [("4.2.1", True), ("4.2.2", False), ("4.3.0", True), ("4.3.1", False)]
)
def test_a_disabled_policy_is_obeyed_by_these_releases(release: str, admits: bool) -> None:
    releases = CodeReleases(coordinator=release, consumers=(release,))
    setup = setup_of("migration-disabled", releases)
    assert ("disabled_admits_classic" in setup.coordinator) is admits
    assert lockstep(LockstepPlan(setup=setup, releases=releases, walks=5, jobs=1)).disagreement is None


@needs_java
@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "switch"),
    [
        ("migration", "no_barrier_for_withheld"),
        ("migration", "interrupted_holds_nothing"),
        ("migration", "unknown_member_admitted"),
        ("migration-static", "static_downgrade_without_rebalance"),
        ("migration-static", "static_replace_drops_revocation"),
    ],
)
def test_what_a_walk_meets_seldom_is_noticed_too(name: str, switch: str, jvm: Simulation) -> None:
    setup = setup_of(name, members=size_of(name))
    assert walked(jvm, without(setup, switch), 2000, MigratingLockstep) is not None


def steps(one: MigratingLockstep, *texts: str) -> None:
    """Take them; a letter and an action each."""
    for text in texts:
        who, _, action = text.partition(" ")
        event = Event(action, ord(who) - ord("A")) if len(who) == 1 else Event(text, -1)
        [outcome, *_] = one.built.outcomes_of(one.built.by_name[event.action, event.who], one.state)
        assert one.step(event._replace(choice=outcome.choice), outcome) is None


@needs_java
@pytest.mark.slow
def test_whom_kafka_made_the_leader_decides_and_at_once(jvm: Simulation) -> None:
    one = begun(MigratingLockstep, jvm, setup_of("migration", members=3))
    steps(one, "B start", "B join", "B request arrives", "C start", "C join", "C request arrives")
    steps(one, "join phase ends", "B response", "C response", "C request arrives")
    outcomes = one.built.outcomes_of(one.built.by_name["leader decides", -1], one.state)
    event, outcome = Event("leader decides", -1), next(iter(outcomes))
    with pytest.raises(NotForcible):  # B leads, who has not sent its SyncGroup
        one.step(event, outcome)
    steps(one, "B request arrives")
    assert {found.action for found, _ in one.possible().among(faults=False)} == {"leader decides"}
    steps(one, "leader decides", "B response", "C response")
    assert one.in_vain() == [Event(BEAT, 1), Event(BEAT, 2)]
    assert one.try_in_vain(Event(BEAT, 2)) is None
    steps(one, "A start", "A heartbeat", "A heartbeat arrives")
    assert one.seen.taken["leader decides"] == one.seen.in_vain == 1
    assert one.in_vain() == []  # both are called, and that is a step of the model


@needs_java
@pytest.mark.slow
def test_a_failover_times_a_classic_member_that_revokes(jvm: Simulation) -> None:
    """Its next step neither ends the timeout nor sets it anew: it is removed in the middle of the second
    revocation."""
    one = begun(MigratingLockstep, jvm, setup_of("migration-failover", members=3, partitions=3))
    steps(one, "B start", "B join", "B request arrives", "join phase ends", "B response")
    steps(one, "B request arrives", "leader decides", "B response", "A start", "A heartbeat")
    steps(one, "A heartbeat arrives", "B beat", "B join", "B request arrives", "B response")
    steps(one, "B request arrives", "B response", "failover", "C start", "C join", "C request arrives")
    [record] = one.built.value(one.state, "record B")
    assert record.timed == record.pending
    steps(one, "B join", "B request arrives")
    [record] = one.built.value(one.state, "record B")
    assert record.pending
    assert record.overdue
    steps(one, "B stale timeout")
    assert one.built.value(one.state, "record B") == ()


def gives_away(jvm: Simulation, releases: CodeReleases) -> None:
    """Check that a topic that is made anew gives what a classic member reads to another: Kafka's coordinator
    knows what B holds by the id of the topic before (N41)."""
    setup = setup_of("migration-anew", releases)
    one = MigratingLockstep(jvm, setup, machine(setup), releases)
    assert one.begin() is None
    steps(one, "B start", "B join", "B request arrives", "join phase ends", "B response")
    steps(one, "B request arrives", "leader decides", "B response", "A start", "A heartbeat")
    steps(one, "A heartbeat arrives", "topic made anew", "A answer", "A heartbeat", "A heartbeat arrives")
    served = one._code.coordinator.consumer
    assert served is not None
    held = {member.id: member.assigned for member in served.members}
    [given] = held[one._real[0, 1]]
    assert given in {"t'-0", "t'-1"}
    assert set(held[one._real[1, 1]]) == {"t-0", "t-1"}
    assert one.built.value(one.state, "member B").owned == 0b1100  # it reads both by their names
    steps(one, "A answer", "A reconcile", "A assign")
    assert one.built.value(one.state, "member A").owned == one._bits(frozenset({given}))
    steps(one, "B late request", "B late request arrives")
    assert one._stored == 2


@needs_java
@pytest.mark.slow
def test_a_topic_that_is_made_anew_gives_what_a_classic_member_reads_to_another(jvm: Simulation) -> None:
    gives_away(jvm, NOW)


@needs_java
@pytest.mark.nightly
@pytest.mark.parametrize("release", ["4.0.0", "4.0.2", "4.1.2", "4.2.2", "4.3.1"])
def test_so_it_does_in_each_release(release: str) -> None:
    releases = CodeReleases(coordinator=release, consumers=(release,))
    with Simulation([release], [release]) as simulation:
        gives_away(simulation, releases)


@needs_java
@pytest.mark.slow
def test_whoever_waits_is_sent_back_where_a_full_classic_group_turns_another_away(jvm: Simulation) -> None:
    one = begun(MigratingLockstep, jvm, setup_of("migration-crowded", members=3))
    steps(one, "B start", "B join", "B request arrives", "C start", "C join", "C request arrives")
    steps(one, "join phase ends", "B response", "C response", "C request arrives")
    steps(one, "A start", "A heartbeat", "A heartbeat arrives")
    assert one.seen.deviations == {SENT_BACK.id: 1}
    assert one.built.value(one.state, "wire C").error is Error.REBALANCE_IN_PROGRESS
    assert one.built.value(one.state, "wire A").error == "GROUP_MAX_SIZE_REACHED"
    steps(one, "A answer", "C response", "C join", "C request arrives", "B request arrives", "B response")


@needs_java
@pytest.mark.nightly
@pytest.mark.parametrize("release", ["4.0.2", "4.1.2", "4.2.2", "4.3.1", NEWEST])
@pytest.mark.parametrize("name", SCENARIOS)
def test_so_many_steps_of_each_migration_with_each_release(name: str, release: str) -> None:
    releases = CodeReleases(coordinator=release, consumers=(release,))
    setup = setup_of(name, releases, size_of(name))
    result = lockstep(LockstepPlan(setup=setup, releases=releases, walks=200))
    assert result.verdict is Verdict.CONFORMANT
    assert result.agreement.steps >= 19_800
