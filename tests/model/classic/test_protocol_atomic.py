"""Larger steps: what an atomic one does, by the fine ones that it is made of."""

from __future__ import annotations

from typing import Any

import pytest
from rebalance_verifier.model.classic import state as s
from rebalance_verifier.model.group import parts as p

from tests.model.classic.small_groups import PlayedGroup, meta, setup, stable

G3 = p.Generation(3)
LATE = ("slow network", "disconnect", "left behind", "listener throws")
ONE, FAULTY = (
    PlayedGroup(setup(1, steps="atomic")),
    PlayedGroup(setup(1, steps="atomic", faults=LATE, budget=1)),
)
FINE = PlayedGroup(setup(1, faults=LATE, budget=1))
A1, B1 = p.Id(p.Slot(0), 1), p.Id(p.Slot(1), 1)
FIRST = s.Member(life=p.Life.UP, topics=p.Topics(1), view=p.Parts(0b11))
WAITING = stable(state=p.MemberState.PREPARING, rejoin=True, prepare=False)
SYNCING = stable(state=p.MemberState.COMPLETING, rejoin=True, prepare=False)
COMPLETING = s.Group(p.GroupState.COMPLETING, G3, B1, "cooperative-sticky")
KNOWN: dict[str, Any] = {"group": COMPLETING, "record_A": (s.MemberRecord(1, meta()),)}
JOIN_OK = {"member_A": WAITING, "wire_A": s.JoinOk(1, G3, "cooperative-sticky")}
SYNC_OK = {"member_A": SYNCING, "wire_A": s.SyncOk(1, G3, p.Parts(0b01))}


def test_what_is_part_of_a_larger_step_is_no_step_but_where_something_is_late():
    """A JoinGroup or SyncGroup that is on its way beside: after a crash, or after a bounce."""
    atomic, fine = ([action.name for action in game.machine.actions] for game in (ONE, PlayedGroup(setup(1))))
    assert sorted({*atomic} - {*fine}) == ["receive error", "receive join", "receive sync"]
    assert sorted({*fine} - {*atomic}) == ["receive"]
    assert len(atomic) == len(set(atomic))


def test_faults_of_the_network_are_larger_steps_too():
    added = {action.name for action in FAULTY.machine.actions} - {
        action.name for action in ONE.machine.actions
    }
    fine = {action.name for action in FINE.machine.actions}
    assert sorted(added - fine) == [
        *("callback late", "callback throws", "join late", "join left behind", "join lost"),
        *("join unanswered", "sync late", "sync left behind", "sync lost"),
    ]


def test_a_join_group_arrives_at_once_and_so_does_its_error():
    """KIP-394: the id that the coordinator gives is there in the same step."""
    after = ONE.step("join", member_A=FIRST).after
    assert (after["member A"].id, after["wire A"]) == (1, None)
    assert after["record A"] == (s.MemberRecord(1, None),)
    again = ONE.step("join", member_A=after["member A"], record_A=after["record A"]).after
    assert again["wire A"] == s.JoinParked(1)
    assert again["group"].state is p.GroupState.PREPARING


def test_sync_group_follows_the_answer_of_join_group():
    after = ONE.step("receive join", **JOIN_OK, **KNOWN).after
    assert (after["member A"].state, after["wire A"]) == (p.MemberState.COMPLETING, s.SyncParked(1, G3))
    assert after["record A"][0].synced


def test_and_is_refused_at_once_where_the_group_has_moved_on():
    later = {**KNOWN, "group": COMPLETING._replace(state=p.GroupState.PREPARING)}
    after = ONE.step("receive join", **JOIN_OK, **later).after
    assert (after["wire A"], after["member A"].rejoin) == (None, True)


def test_what_sync_group_brings_is_owned_at_once():
    step = ONE.step("receive sync", **SYNC_OK, **KNOWN)
    assert (step.after["member A"].owned, step.after["member A"].received) == (0b01, None)
    assert step.after["wire A"] is None


def test_errors_come_one_by_one():
    refused = s.Refused("sync", p.Error.ILLEGAL_GENERATION, 1, G3)
    after = ONE.step("receive error", member_A=SYNCING, wire_A=refused).after
    assert (after["member A"].generation, after["wire A"]) == (-1, None)
    for other in ("receive join", "receive sync"):
        assert ONE.steps(other, member_A=SYNCING, wire_A=refused) == []
    assert ONE.steps("receive error", **SYNC_OK) == []
    assert ONE.steps("receive join", **{**JOIN_OK, "wire_A": s.JoinOk(1, G3, "range", leader=True)}) == []


@pytest.mark.parametrize(
    ("action", "wire", "member", "left"),
    [
        ("sync refused", s.SyncParked(1, G3), SYNCING, {"rejoin": True, "generation": 3}),
        ("join refused", s.JoinParked(7), WAITING._replace(id=7), {"id": 0, "generation": -1}),
    ],
)
def test_who_waits_in_vain_hears_of_it_in_the_same_step(
    action: str, wire: Any, member: s.Member, left: dict[str, Any]
):
    group = s.Group(p.GroupState.PREPARING, p.Generation(4), B1, "cooperative-sticky")
    after = ONE.step(action, member_A=member, wire_A=wire, group=group).after
    assert after["wire A"] is None
    assert {name: getattr(after["member A"], name) for name in left} == left


def test_a_commit_that_is_refused_sends_on_where_nobody_looks_again():
    game = PlayedGroup(
        setup(1, steps="atomic", faults=("slow commit",), decisions=("join_sent_after_reset",))
    )
    committing = stable(owned=0b01, rejoin=True, committing=True, prepare=False)
    after = game.step("commit refused", member_A=committing, group=s.Group(p.GroupState.EMPTY, G3)).after
    assert (after["wire A"], after["member A"].id) == (None, 1)
    assert after["record A"] == (s.MemberRecord(1, None),)


# -- faults: each costs one, the last too ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("action", "values", "left"),
    [
        ("join late", {"member_A": WAITING._replace(state=p.MemberState.UNJOINED)}, {"wire A": s.Join}),
        ("join left behind", {"member_A": FIRST}, {"wire A": s.Refused, "behind A": tuple}),
        ("join lost", {"member_A": FIRST}, {"wire A": s.Refused}),
        ("join unanswered", {"member_A": FIRST}, {"wire A": s.Refused, "record A": tuple}),
        ("sync late", {**JOIN_OK, **KNOWN}, {"wire A": s.Sync}),
        ("sync left behind", {**JOIN_OK, **KNOWN}, {"wire A": s.Refused, "behind A": tuple}),
        ("sync lost", {**JOIN_OK, **KNOWN}, {"wire A": s.Refused}),
        ("callback late", SYNC_OK, {"wire A": type(None)}),
        ("callback throws", SYNC_OK, {"wire A": type(None)}),
    ],
)
def test_a_fault_costs_one(action: str, values: dict[str, Any], left: dict[str, type]):
    step = FAULTY.step(action, **values)
    assert step.after["budget"] == 0
    assert {name: type(step.after[name]) for name in left} == left
    assert FAULTY.steps(action, **values, budget=0) == []
    if "behind A" in left:
        assert len(step.after["behind A"]) == 1


def test_a_request_that_is_lost_has_no_effect_and_one_that_is_unanswered_has():
    assert FAULTY.step("join lost", member_A=FIRST).after["record A"] == ()
    assert len(FAULTY.step("join unanswered", member_A=FIRST).after["record A"]) == 1


def test_a_callback_that_is_late_leaves_the_assignment_waiting():
    after = FAULTY.step("callback late", **SYNC_OK).after["member A"]
    assert (after.received, after.owned) == (0b01, 0)
    after = FAULTY.step("callback throws", **SYNC_OK).after["member A"]
    assert (after.received, after.owned) == (None, 0b01)


def test_what_is_lost_is_of_the_request_that_was_under_way():
    for wire, api in ((s.Join(1, meta()), "join"), (s.JoinParked(1), "join"), (s.Sync(1, G3), "sync"),
                      (s.SyncParked(1, G3), "sync"), (s.SyncOk(1, G3, None), "sync"),
                      (s.Refused("sync", p.Error.NOT_COORDINATOR, 1, G3), "sync"),
                      (s.Refused("join", p.Error.NOT_COORDINATOR, 1), "join")):  # fmt: skip
        after = FINE.step("disconnect", member_A=WAITING, wire_A=wire).after
        assert after["wire A"] == s.Refused(api, p.Error.DISCONNECT, 1, G3)
        assert after["budget"] == 0
    heard = s.Refused("join", p.Error.DISCONNECT, 1, G3)
    assert FINE.steps("disconnect", member_A=WAITING, wire_A=heard) == []
    assert FINE.steps("disconnect", member_A=WAITING) == []
    assert FINE.steps("disconnect", member_A=s.Member(), wire_A=s.Join(1, meta())) == []
