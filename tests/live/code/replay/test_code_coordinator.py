"""What a coordinator does, put into the model's observations: from states and messages that are made up."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from rebalance_verifier.explore.groups.scenarios import SCENARIOS, ScenarioSize
from rebalance_verifier.live.code.answers import (
    CoordinatorState,
    RegisteredMember,
    SimulationClaim,
    SimulationEvent,
    SimulationRequest,
    SimulationResponse,
)
from rebalance_verifier.live.code.replay.coordinator import CoordinatorWatch
from rebalance_verifier.model.group.observations import (
    Admitted,
    Elected,
    Expelled,
    Repeated,
    Replaced,
    TurnedAway,
)
from rebalance_verifier.model.group.parts import GroupState, Slot

A, B = Slot(0), Slot(1)

SETUP = SCENARIOS["dynamic"].setup(ScenarioSize(members=2, partitions=2, faults=()))


def claim(*owned: str, topics: tuple[str, ...] = ("t",)) -> tuple[SimulationClaim, ...]:
    one = SimulationClaim(protocol="cooperative-sticky", version=3, topics=topics, owned=frozenset(owned))
    return (one,)


def member(id_: str, client: str = "0A", **rest: Any) -> RegisteredMember:
    known: dict[str, Any] = {
        "instance": None,
        "new": False,
        "joining": False,
        "syncing": False,
        "claims": claim(),
    }
    return RegisteredMember(id=id_, client=client, **{**known, "assigned": None, **rest})


def group(state: str, generation: int, *members: RegisteredMember, **rest: Any) -> CoordinatorState:
    known: dict[str, Any] = {
        "leader": None,
        "protocol": "cooperative-sticky",
        "pending_joins": (),
        "pending_syncs": (),
    }
    known |= {"timers": {}, "log": 0, "waiting": 0, "held": False, "available": "active", "now": 0}
    return CoordinatorState(state=state, generation=generation, members=members, **{**known, **rest})


def join(member: int, member_id: str = "", **rest: Any) -> SimulationRequest:
    known: dict[str, Any] = {"claims": claim(), **rest}
    return SimulationRequest(member=member, id=1, api="JoinGroup", version=9, member_id=member_id, **known)


def answer(member_id: str, leader: str) -> SimulationResponse:
    return SimulationResponse(
        member=0, id=1, api="JoinGroup", error="NONE", member_id=member_id, leader=leader
    )


def seen(
    watch: CoordinatorWatch,
    request: SimulationRequest,
    before: CoordinatorState,
    after: CoordinatorState,
    *more: SimulationEvent,
) -> list[Any]:
    assert list(watch.sees("poll", {}, before, before, [request])) == []
    return list(watch.sees("deliver", {"id": request.id}, before, after, more))


def test_who_has_shown_an_id_is_known() -> None:
    empty, preparing = group("EMPTY", 0), group("PREPARING_REBALANCE", 0, member("a1", joining=True))
    watch = CoordinatorWatch(SETUP)
    assert seen(watch, join(A, "a1"), empty, preparing) == [Admitted(A, True, 1, None)]
    assert seen(watch, join(A), empty, preparing) == [Admitted(A, False, 1, None)]


def test_a_follower_that_repeats_itself() -> None:
    stable = group("STABLE", 2, member("a1"), member("b1", "1B", claims=claim("t-1", "t-0")), leader="a1")
    same = join(B, "b1", claims=claim("t-0", "t-1"))
    watch = CoordinatorWatch(SETUP)
    assert seen(watch, same, stable, replace(stable, state="PREPARING_REBALANCE")) == [Repeated(B, True)]
    assert seen(watch, same, stable, stable, answer("b1", "a1")) == [Repeated(B, False)]
    assert seen(watch, join(B, "b1"), stable, replace(stable, state="PREPARING_REBALANCE")) == []


def test_a_static_member_that_comes_back() -> None:
    old = member("a1", instance="i", claims=claim("t-0", "t-1"), assigned=frozenset({"t-0"}))
    before = group("STABLE", 2, old, leader="a1")
    after = group("STABLE", 2, replace(old, id="a2"), leader="a2")
    request = join(A, instance="i", claims=claim(topics=("t", "u")))
    expected = Replaced(
        who=A,
        state=GroupState.STABLE,
        rebalances=False,
        changed=True,
        owed=True,
        leader=True,
        told_leader=False,
    )
    watch = CoordinatorWatch(SETUP)
    assert seen(watch, request, before, after, answer("a2", "a1")) == [expected]
    answered = expected._replace(told_leader=True, changed=False)
    assert seen(watch, replace(request, claims=claim()), before, after, answer("a2", "a2")) == [answered]


def test_who_is_away_through_a_join_phase_is_silent_and_may_be_expelled() -> None:
    away, there = member("a1", instance="i"), member("b1", "1B", joining=True)
    preparing = group("PREPARING_REBALANCE", 1, away, there)
    completing = group("COMPLETING_REBALANCE", 2, away, replace(there, joining=False))
    watch = CoordinatorWatch(SETUP)
    both = (("cooperative-sticky",),) * 2
    ended = watch.sees("expire", {"timer": "rebalance"}, preparing, completing, ())
    assert list(ended) == [Elected("cooperative-sticky", both)]
    assert watch.views(completing) == {
        "group": GroupState.COMPLETING, "ids A": 1, "size A": 0, "ids B": 1, "size B": 1
    }  # fmt: skip
    gone = group("PREPARING_REBALANCE", 2, completing.members[1])
    expelled = watch.sees("expire", {"timer": "sync"}, completing, gone, ())
    assert list(expelled) == [Expelled(A, "pending sync", False, True)]


def test_a_dynamic_member_that_is_late_is_not_away() -> None:
    late, there = member("a1"), member("b1", "1B", joining=True)
    before = group("PREPARING_REBALANCE", 1, late, there)
    watch = CoordinatorWatch(SETUP, at_work=lambda member_id: member_id == "a1")
    found = list(watch.sees("expire", {"timer": "rebalance"}, before, replace(before, members=(there,)), ()))
    assert found == [Expelled(A, "rebalance", True, False)]


@pytest.mark.parametrize(
    ("state", "of_it"), [("STABLE", True), ("COMPLETING_REBALANCE", True), ("PREPARING_REBALANCE", False)]
)
def test_a_full_group_turns_away_members_and_others(state: str, of_it: bool) -> None:
    """While it joins nobody has a place."""
    full = replace(answer("", ""), error="GROUP_MAX_SIZE_REACHED")
    before = group(state, 1, member("A-1", instance="i0"), member("B-1", client="1B"))
    asks = join(0, instance="i0")
    assert seen(CoordinatorWatch(SETUP), asks, before, before, full) == [TurnedAway(A, of_it)]
    assert seen(CoordinatorWatch(SETUP), join(1, "B-1"), before, before, full) == [TurnedAway(B, of_it)]
    assert seen(CoordinatorWatch(SETUP), join(1), before, before, full) == [TurnedAway(B, False)]
