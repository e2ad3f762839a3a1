"""The faults that have scenarios of their own, on Kafka's own code."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from rebalance_verifier.explore.groups.scenarios import ScenarioError
from rebalance_verifier.live.clients.replay.scene import NotForcible
from rebalance_verifier.live.code.lockstep.classic import Lockstep
from rebalance_verifier.live.code.lockstep.system import lines_of
from rebalance_verifier.live.code.replay.group import CodeReleases
from rebalance_verifier.live.code.simulation import Simulation
from rebalance_verifier.model.classic.group import machine
from rebalance_verifier.model.classic.state import Refused
from rebalance_verifier.model.group import parts as p
from rebalance_verifier.model.group.observations import Call, Callback, Threw
from rebalance_verifier.model.group.setup import letter
from rebalance_verifier.model.machine import Event

from tests.live.code.lockstep.stepping import ALONE, ENTERS, JOINED, NOW, begun, plays, setup, walked
from tests.live.code.played import RELEASE, needs_java
from tests.tiers import tiered

pytestmark = [needs_java, pytest.mark.slow]

STABLE = ALONE.removesuffix(", A enforce")


@pytest.fixture(scope="module")
def simulation() -> Iterator[Simulation]:
    with Simulation([RELEASE], [RELEASE]) as jvm:
        yield jvm


def group_of(simulation: Simulation, scenario: str, releases: CodeReleases = NOW) -> Lockstep:
    of = setup(scenario, releases)
    one = Lockstep(simulation, of, machine(of), releases)
    assert one.begin() is None
    return one


def known_ids(one: Lockstep) -> list[str]:
    return [member.id for member in one.group.state.coordinator.members]


def part(one: Lockstep, name: str) -> Any:
    return one.built.value(one.state, name)


# -- LeaveGroup that is lost, or another's ---------------------------------------------------------------


@pytest.mark.parametrize("how", ["close", "unsubscribe", "max poll"])
def test_who_leaves_and_is_not_heard_stays_until_its_session_ends(simulation: Simulation, how: str) -> None:
    one = group_of(simulation, "leaving")
    plays(one, f"{STABLE}, A leave lost t-{how}")
    assert len(known_ids(one)) == 1
    back = {"close": "A start, ", "unsubscribe": "A subscribe, ", "max poll": ""}[how]
    plays(one, f"{back}A join, A join request, A receive, A session expires, A join, A join request")


@pytest.mark.parametrize("scenario", ["leaving", "static-appends"])
def test_an_administrator_removes_who_is_at_work(simulation: Simulation, scenario: str) -> None:
    """A dynamic member by its id, a static one by that of its instance."""
    one = group_of(simulation, scenario)
    plays(one, STABLE if scenario == "leaving" else JOINED)
    plays(one, "A member removed, A heartbeat, A join, A join request")
    assert one.seen.taken["member removed"] == 1


def test_who_is_removed_while_its_join_request_waits_hears_of_it(simulation: Simulation) -> None:
    one = group_of(simulation, "leaving")
    plays(one, f"{ENTERS.format('A')}, A member removed")
    assert (known_ids(one), one.seen.taken["join refused"]) == ([], 1)
    plays(one, "A receive, A join, A join request")


# -- what is not stored ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("how", "after"), [("", p.GroupState.DEAD), (" t-logged", p.GroupState.STABLE)])
def test_a_decision_that_is_not_stored_is_in_the_log_or_not(
    simulation: Simulation, how: str, after: p.GroupState
) -> None:
    one = group_of(simulation, "appends")
    plays(one, f"{ENTERS.format('A')}, join phase ends, A assign, A sync not stored{how}")
    assert part(one, "wire A") == Refused("sync", p.Error.NOT_COORDINATOR, 1, p.Generation(1))
    assert part(one, "group").state is p.GroupState.PREPARING
    plays(one, "A receive, failover")
    assert part(one, "group").state is after


@pytest.mark.parametrize(("how", "undone"), [("", True), (" t-logged", False)])
def test_a_return_that_is_not_stored_is_undone_and_may_be_in_the_log(
    simulation: Simulation, how: str, undone: bool
) -> None:
    one = group_of(simulation, "static-appends")
    plays(one, f"{JOINED}, A crash, A start, A join")
    before = known_ids(one)
    plays(one, f"A return not stored{how}")
    assert part(one, "wire A") == Refused("join", p.Error.NOT_COORDINATOR, 0)
    assert known_ids(one) == before
    plays(one, "failover")
    assert (known_ids(one) == before) is undone
    plays(one, "A receive, A join, A join request")


# -- careless applications -------------------------------------------------------------------------------


def test_who_polls_on_after_a_fatal_error_joins_again(simulation: Simulation) -> None:
    one = group_of(simulation, "careless")
    plays(one, f"{ENTERS.format('A')}, {ENTERS.format('B')}, C start, C join, C join request, C polls on")
    assert [seen for seen in one.group.seen if isinstance(seen, Threw)] == [
        Threw(p.Slot(2), p.Error.GROUP_MAX_SIZE_REACHED)
    ]
    assert part(one, "member C").life is p.Life.UP
    plays(one, "C join, C join request")


@pytest.mark.parametrize("then", ["C receive", "C polls on"])
def test_who_has_unsubscribed_hears_of_a_fatal_error_when_it_subscribes_again(
    simulation: Simulation, then: str
) -> None:
    one = group_of(simulation, "careless")
    plays(one, f"{ENTERS.format('A')}, {ENTERS.format('B')}, C start, C join, C join request")
    plays(one, "C unsubscribe midway")
    with pytest.raises(NotForcible, match="does not look whether its join failed"):
        plays(one, then)
    plays(one, f"C subscribe, {then}")
    assert any(isinstance(seen, Threw) for seen in one.group.seen)


def test_a_listener_that_throws_hears_of_nothing_more_at_the_next_poll(simulation: Simulation) -> None:
    one = group_of(simulation, "midway")
    plays(one, f"{ENTERS.format('A')}, join phase ends, A assign, A leader sync, A receive")
    plays(one, "A completes again, A complete")
    calls = [(seen.call, seen.parts) for seen in one.group.seen if isinstance(seen, Callback)]
    assert calls == [(Call.ASSIGNED, 0)]
    assert not one.seen.deviations["completes_again"]  # which the model has here


UNTIL = f"{ENTERS.format('A')}, join phase ends, A assign, A leader sync"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (ENTERS.format("A"), "A receive, A subscribe, A join"),
        (f"{ENTERS.format('A')}, join phase ends", "A assign, A subscribe, A join"),
        (UNTIL, "A receive, A subscribe, A join"),
        (f"{UNTIL}, A receive", "A subscribe, A complete"),
    ],
)
def test_who_unsubscribes_midway_waits_for_the_answer_to_the_old_join(
    simulation: Simulation, before: str, after: str
) -> None:
    one = group_of(simulation, "midway")
    plays(one, f"{before}, A unsubscribe midway")
    assert known_ids(one) == []
    if after.startswith("A receive"):
        plays(one, "A subscribe")
        assert one.try_in_vain(Event("polls in vain", 0)) is None
        after = after.replace("A subscribe, ", "")
    plays(one, f"{after}, A join request")


def test_who_unsubscribes_before_it_has_an_id_takes_it_all_the_same(simulation: Simulation) -> None:
    one = group_of(simulation, "midway")
    plays(one, "A start, A join, A join request, A unsubscribe midway, A receive, A subscribe, A join")
    assert (
        one.group.members[0].open_requests["JoinGroup"].member_id
        == one.group.state.coordinator.pending_joins[0]
    )
    assert one.seen.deviations["late_id_taken"] == 1


@pytest.mark.covering
@pytest.mark.parametrize(("release", "calls"), [("2.8.0", 0), ("3.1.2", 1)])
def test_an_eager_member_that_unsubscribed_midway_prepares_its_next_join_or_not(
    release: str, calls: int
) -> None:
    """KAFKA-12983; and who has unsubscribed prepares nothing in a poll. Since 3.2 nobody could tell."""
    releases = CodeReleases(coordinator=RELEASE, consumers=(release,))
    with begun("eager", releases=releases, faults=("unsubscribe midway",)) as one:
        plays(one, "A start, A join, A join request, A unsubscribe midway")
        assert one.try_in_vain(Event("polls in vain", 0)) is None
        plays(one, "A receive, A subscribe, A join")
        assert sum(isinstance(seen, Callback) for seen in one.group.seen) == calls


# -- a broker that allows fewer ---------------------------------------------------------------------------


def test_a_group_that_is_too_large_for_its_new_broker_rebalances_and_somebody_stays_out(
    simulation: Simulation,
) -> None:
    one = group_of(simulation, "shrinking")
    plays(one, ", ".join(ENTERS.format(name) for name in "ABC"))  # more than the next broker allows
    plays(one, "join phase ends")
    leader = letter(part(one, "group").leader.slot)
    others = [name for name in "ABC" if name != leader]
    plays(one, ", ".join(f"{name} receive, {name} sync request" for name in others))
    plays(one, f"{leader} assign, {leader} leader sync")
    plays(one, ", ".join(f"{name} receive, {name} complete" for name in "ABC"))
    plays(one, "failover")
    assert part(one, "group").state is p.GroupState.PREPARING
    plays(one, ", ".join(f"{name} heartbeat, {name} join, {name} join request" for name in "ABC"))
    assert part(one, "wire C").error is p.Error.GROUP_MAX_SIZE_REACHED


# -- racks -----------------------------------------------------------------------------------------------


def test_a_leader_that_sees_replicas_in_other_racks_joins_again(simulation: Simulation) -> None:
    """KAFKA-14867."""
    one = group_of(simulation, "racks")
    plays(one, f"{STABLE}, racks change")
    assert one.try_in_vain(Event("polls in vain", 0)) is None
    plays(one, "A refresh, A join, A join request, A assign, A leader sync, A receive")
    plays(one, "A complete, racks change, A refresh, A join")


def test_racks_are_not_walked_with_consumers_that_know_none() -> None:
    releases = CodeReleases(coordinator=RELEASE, consumers=(RELEASE, "3.4.1"))
    with pytest.raises(ScenarioError, match=r"not walked with 3\.4\.1: racks are since 3\.5\.0"):
        setup("racks", releases)


# -- walks -----------------------------------------------------------------------------------------------

RARE = ("leaving", "appends", "static-appends", "careless", "midway", "shrinking", "racks")


@pytest.mark.nightly
@pytest.mark.parametrize("scenario", tiered(RARE, {"leaving", "appends"}))
def test_walks_with_these_faults_are_in_step(scenario: str) -> None:
    found = walked(setup(scenario), 20)
    assert found.disagreement is None, "\n".join(lines_of(found.disagreement))


@pytest.mark.nightly
@pytest.mark.parametrize("scenario", RARE[:-1])
@pytest.mark.parametrize("older", ["2.4.1", "2.6.1", "2.8.0", "3.4.1"])
def test_older_consumers_are_in_step_with_these_faults(scenario: str, older: str) -> None:
    releases = CodeReleases(coordinator=RELEASE, consumers=(older, RELEASE))
    found = walked(setup(scenario, releases), 100, releases)
    assert found.disagreement is None, "\n".join(lines_of(found.disagreement))
