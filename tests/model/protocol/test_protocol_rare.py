"""Faults that have scenarios of their own: LeaveGroup lost or unsent, members removed, appends that fail."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from rebalance.model.protocol.observations import Left
from rebalance.model.protocol.state import (
    Error,
    Generation,
    Grant,
    Group,
    GroupState,
    Id,
    Join,
    JoinParked,
    Life,
    Member,
    MemberRecord,
    MemberState,
    Parts,
    Refused,
    Slot,
    Sync,
    SyncParked,
)

from tests.model.protocol.small_groups import SUBSCRIBED, Game, meta, setup, stable

RARE = ("leave lost", "member removed", "sync not stored", "return not stored")
G4 = Generation(4)
A1, B1 = Id(Slot(0), 1), Id(Slot(1), 1)
SETTLED: dict[str, Any] = {
    "group": Group(GroupState.STABLE, G4, A1, "cooperative-sticky"),
    "record_A": (MemberRecord(1, meta(), Parts(0b01), synced=True),),
}
DYNAMIC = Game(setup(faults=(*RARE, "close", "unsubscribe")))
STATIC = Game(setup(faults=RARE, static=True))
LOGGED = Game(setup(faults=(*RARE, "failover"), static=True))


# -- LeaveGroup ----------------------------------------------------------------------------------------


def test_a_leave_group_that_is_lost_leaves_the_member_in_the_group():
    steps = DYNAMIC.steps("leave lost", member_A=stable(4, 0b01), **SETTLED)
    assert [step.choice for step in steps] == ["unsubscribe", "close", "max poll"]
    for step in steps:
        assert step.after["record A"] == SETTLED["record_A"]
        assert step.after["group"] == SETTLED["group"]
        assert step.after["member A"].generation == -1
    assert [one.owned for step in steps for one in [step.after["member A"]]] == [0, 0, 0b01]


@pytest.mark.parametrize("member", [Member(Life.UP), stable(4, life=Life.PAUSED), Member()])
def test_who_has_not_joined_or_does_not_run_sends_none(member: Member):
    assert DYNAMIC.steps("leave lost", member_A=member, **SETTLED) == []


def test_a_static_member_sends_none():
    assert STATIC.steps("leave lost", member_A=stable(4, 0b01), **SETTLED) == []


def test_who_leaves_nothing_on_close_is_in_the_group_until_its_session_ends():
    """As Streams has it; unsubscribe sends LeaveGroup all the same."""
    [alike] = {*DYNAMIC.setup.consumers}
    quiet = replace(alike, stages=(replace(alike.stages[0], leaves=False),))
    game = Game(replace(DYNAMIC.setup, consumers=(quiet, quiet)))
    closed = game.step("close", member_A=stable(4, 0b01), **SETTLED)
    assert closed.after["record A"] == SETTLED["record_A"]
    assert [(one.sent, one.ought) for one in closed.saw(Left)] == [(False, False)]
    assert game.step("unsubscribe", member_A=stable(4, 0b01), **SETTLED).after["record A"] == ()
    assert DYNAMIC.step("close", member_A=stable(4, 0b01), **SETTLED).after["record A"] == ()


# -- an administrator ----------------------------------------------------------------------------------


@pytest.mark.parametrize("game", [DYNAMIC, STATIC], ids=["dynamic", "static"])
def test_a_member_is_removed_whatever_it_does(game: Game):
    """Also one that waits in the purgatory, whose session would not end there."""
    parked = {"record_A": (MemberRecord(1, meta(), joined=True),), "wire_A": JoinParked(1)}
    joining = {"group": Group(GroupState.PREPARING, G4, A1), **parked}
    member = stable(4, state=MemberState.PREPARING, prepare=False, rejoin=True)
    step = game.step("member removed", member_A=member, **joining)
    assert step.after["record A"] == ()
    assert step.after["group"].state is GroupState.PREPARING
    removed = game.step("member removed", member_A=stable(4, 0b01), **SETTLED)
    assert (removed.after["record A"], removed.after["group"].state) == ((), GroupState.PREPARING)
    assert removed.after["group"].leader is None


def test_an_id_that_was_never_shown_is_no_member():
    pending = {**SETTLED, "record_A": (MemberRecord(1, None),)}
    assert DYNAMIC.steps("member removed", member_A=stable(4), **pending) == []


# -- appends that fail -----------------------------------------------------------------------------------

GRANTS = (Grant(A1, Parts(0b01)), Grant(B1, Parts(0b10)))
DECIDING: dict[str, Any] = {
    "group": Group(GroupState.COMPLETING, G4, A1, "cooperative-sticky"),
    "record_A": (MemberRecord(1, meta()),),
    "record_B": (MemberRecord(1, meta(), synced=True),),
    "wire_A": Sync(1, G4, GRANTS),
    "wire_B": SyncParked(1, G4),
}
REFUSED = Refused("sync", Error.NOT_COORDINATOR, 1, G4)


def test_a_decision_that_is_not_stored_reaches_nobody_and_the_group_rebalances():
    step = DYNAMIC.step("sync not stored", **DECIDING)
    assert step.after["group"] == DECIDING["group"]._replace(state=GroupState.PREPARING)
    assert (step.after["wire A"], step.after["wire B"]) == (REFUSED, REFUSED)
    assert (step.after["record A"], step.after["record B"]) == (DECIDING["record_A"], DECIDING["record_B"])


def test_who_waits_for_something_else_goes_on_waiting():
    step = DYNAMIC.step("sync not stored", **{**DECIDING, "wire_B": JoinParked(1)})
    assert step.after["wire B"] == JoinParked(1)
    old = SyncParked(1, Generation(3))
    assert DYNAMIC.step("sync not stored", **{**DECIDING, "wire_B": old}).after["wire B"] == old


def test_a_decision_that_is_not_in_time_is_not_appended_at_all():
    for group in (DECIDING["group"]._replace(generation=Generation(5)), SETTLED["group"]):
        assert DYNAMIC.steps("sync not stored", **{**DECIDING, "group": group}) == []


def test_an_append_that_takes_too_long_is_in_the_log_all_the_same():
    failed, logged = LOGGED.steps("sync not stored", **DECIDING)
    assert (failed.choice, logged.choice) == ("", "logged")
    assert failed.after["log"] == Group()
    assert logged.after["log"] == DECIDING["group"]._replace(state=GroupState.STABLE)
    assert [record.assigned for record in logged.after["log B"]] == [0b10]
    assert logged.after["group"].state is GroupState.PREPARING
    assert logged.after["wire B"] == REFUSED


RETURNING = {**SETTLED, "member_A": Member(Life.UP, topics=SUBSCRIBED), "wire_A": Join(0, meta())}


def test_a_return_that_is_not_stored_is_undone():
    step = STATIC.step("return not stored", **RETURNING)
    assert step.after["wire A"] == Refused("join", Error.NOT_COORDINATOR, 0)
    assert (step.after["group"], step.after["record A"]) == (SETTLED["group"], SETTLED["record_A"])


def test_a_return_that_is_undone_may_be_in_the_log():
    failed, logged = LOGGED.steps("return not stored", **RETURNING)
    assert (failed.after["log A"], failed.after["log"]) == ((), Group())
    assert [record.id for record in logged.after["log A"]] == [2]
    assert logged.after["log"].leader == Id(Slot(0), 2)
    assert logged.after["record A"] == failed.after["record A"] == SETTLED["record_A"]


def test_only_a_return_that_starts_no_rebalance_is_stored():
    for group in (SETTLED["group"]._replace(state=state) for state in GroupState if state != "Stable"):
        assert STATIC.steps("return not stored", **{**RETURNING, "group": group}) == []
    assert STATIC.steps("return not stored", **{**RETURNING, "record_A": ()}) == []
    assert DYNAMIC.steps("return not stored", **RETURNING) == []


def test_in_larger_steps_the_member_hears_of_it_at_once():
    game = Game(setup(faults=RARE, static=True, steps="atomic"))
    member = Member(Life.UP, topics=SUBSCRIBED)
    step = game.step("join not stored", member_A=member, **SETTLED)
    assert (step.after["wire A"], step.after["record A"]) == (None, SETTLED["record_A"])
    assert step.after["member A"].state is MemberState.PREPARING
    assert game.steps("join not stored", member_A=member, group=Group(GroupState.PREPARING, G4)) == []
