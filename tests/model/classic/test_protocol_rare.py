"""Faults that have scenarios of their own: LeaveGroup lost or unsent, members removed, appends that fail,
applications that do what they should not, a lower group.max.size, racks that change."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from rebalance_verifier.explore.groups.scenarios import SCENARIOS
from rebalance_verifier.model.classic.errors import answer_to
from rebalance_verifier.model.classic.leader import Question, ask
from rebalance_verifier.model.classic.state import (
    Group,
    Join,
    JoinOk,
    JoinParked,
    LeaveGroup,
    Member,
    MemberRecord,
    Refused,
    Sync,
    SyncParked,
)
from rebalance_verifier.model.group import parts as p
from rebalance_verifier.model.group.observations import Left, Threw
from rebalance_verifier.model.group.setup import MemberContext
from rebalance_verifier.model.machine import NOBODY

from tests.model.classic.small_groups import SUBSCRIBED, PlayedGroup, meta, setup, stable

RARE = ("leave lost", "member removed", "sync not stored", "return not stored")
G4 = p.Generation(4)
A1, B1 = p.Id(p.Slot(0), 1), p.Id(p.Slot(1), 1)
SETTLED: dict[str, Any] = {
    "group": Group(p.GroupState.STABLE, G4, A1, "cooperative-sticky"),
    "record_A": (MemberRecord(1, meta(), p.Parts(0b01), synced=True),),
}
DYNAMIC = PlayedGroup(setup(faults=(*RARE, "close", "unsubscribe")))
STATIC = PlayedGroup(setup(faults=RARE, static=True))
LOGGED = PlayedGroup(setup(faults=(*RARE, "failover"), static=True))


# -- LeaveGroup ----------------------------------------------------------------------------------------


def test_a_leave_group_that_is_lost_leaves_the_member_in_the_group():
    steps = DYNAMIC.steps("leave lost", member_A=stable(4, 0b01), **SETTLED)
    assert [step.choice for step in steps] == ["unsubscribe", "close", "max poll"]
    for step in steps:
        assert step.after["record A"] == SETTLED["record_A"]
        assert step.after["group"] == SETTLED["group"]
        assert step.after["member A"].generation == -1
    assert [one.owned for step in steps for one in [step.after["member A"]]] == [0, 0, 0b01]


@pytest.mark.parametrize("member", [Member(p.Life.UP), stable(4, life=p.Life.PAUSED), Member()])
def test_who_has_not_joined_or_does_not_run_sends_none(member: Member):
    assert DYNAMIC.steps("leave lost", member_A=member, **SETTLED) == []


def test_who_is_subscribed_to_nothing_only_leaves_by_its_timer():
    steps = DYNAMIC.steps("leave lost", member_A=stable(4, topics=p.Topics(0)), **SETTLED)
    assert [step.choice for step in steps] == ["max poll"]


def test_a_static_member_sends_none():
    assert STATIC.steps("leave lost", member_A=stable(4, 0b01), **SETTLED) == []


def test_who_leaves_nothing_on_close_is_in_the_group_until_its_session_ends():
    """As Streams has it; unsubscribe sends LeaveGroup all the same."""
    [alike] = {*DYNAMIC.setup.consumers}
    quiet = replace(alike, stages=(replace(alike.stages[0], leaves=False),))
    game = PlayedGroup(replace(DYNAMIC.setup, consumers=(quiet, quiet)))
    closed = game.step("close", member_A=stable(4, 0b01), **SETTLED)
    assert closed.after["record A"] == SETTLED["record_A"]
    assert [(one.sent, one.ought) for one in closed.saw(Left)] == [(False, False)]
    assert game.step("unsubscribe", member_A=stable(4, 0b01), **SETTLED).after["record A"] == ()
    assert DYNAMIC.step("close", member_A=stable(4, 0b01), **SETTLED).after["record A"] == ()


# -- an administrator ----------------------------------------------------------------------------------


@pytest.mark.parametrize("game", [DYNAMIC, STATIC], ids=["dynamic", "static"])
def test_a_member_is_removed_whatever_it_does(game: PlayedGroup):
    """Also one that waits in the purgatory, whose session would not end there."""
    parked = {"record_A": (MemberRecord(1, meta(), joined=True),), "wire_A": JoinParked(1)}
    joining = {"group": Group(p.GroupState.PREPARING, G4, A1), **parked}
    member = stable(4, state=p.MemberState.PREPARING, prepare=False, rejoin=True)
    step = game.step("member removed", member_A=member, **joining)
    assert step.after["record A"] == ()
    assert step.after["group"].state is p.GroupState.PREPARING
    removed = game.step("member removed", member_A=stable(4, 0b01), **SETTLED)
    assert (removed.after["record A"], removed.after["group"].state) == ((), p.GroupState.PREPARING)
    assert removed.after["group"].leader is None


def test_an_id_that_was_never_shown_is_no_member():
    pending = {**SETTLED, "record_A": (MemberRecord(1, None),)}
    assert DYNAMIC.steps("member removed", member_A=stable(4), **pending) == []


# -- appends that fail -----------------------------------------------------------------------------------

GRANTS = (p.Grant(A1, p.Parts(0b01)), p.Grant(B1, p.Parts(0b10)))
DECIDING: dict[str, Any] = {
    "group": Group(p.GroupState.COMPLETING, G4, A1, "cooperative-sticky"),
    "record_A": (MemberRecord(1, meta()),),
    "record_B": (MemberRecord(1, meta(), synced=True),),
    "wire_A": Sync(1, G4, GRANTS),
    "wire_B": SyncParked(1, G4),
}
REFUSED = Refused("sync", p.Error.NOT_COORDINATOR, 1, G4)


def test_a_decision_that_is_not_stored_reaches_nobody_and_the_group_rebalances():
    step = DYNAMIC.step("sync not stored", **DECIDING)
    assert step.after["group"] == DECIDING["group"]._replace(state=p.GroupState.PREPARING)
    assert (step.after["wire A"], step.after["wire B"]) == (REFUSED, REFUSED)
    assert (step.after["record A"], step.after["record B"]) == (DECIDING["record_A"], DECIDING["record_B"])


def test_who_waits_for_something_else_goes_on_waiting():
    step = DYNAMIC.step("sync not stored", **{**DECIDING, "wire_B": JoinParked(1)})
    assert step.after["wire B"] == JoinParked(1)
    old = SyncParked(1, p.Generation(3))
    assert DYNAMIC.step("sync not stored", **{**DECIDING, "wire_B": old}).after["wire B"] == old


def test_a_decision_that_is_not_in_time_is_not_appended_at_all():
    for group in (DECIDING["group"]._replace(generation=p.Generation(5)), SETTLED["group"]):
        assert DYNAMIC.steps("sync not stored", **{**DECIDING, "group": group}) == []


def test_an_append_that_takes_too_long_is_in_the_log_all_the_same():
    failed, logged = LOGGED.steps("sync not stored", **DECIDING)
    assert (failed.choice, logged.choice) == ("", "logged")
    assert failed.after["log"] == Group()
    assert logged.after["log"] == DECIDING["group"]._replace(state=p.GroupState.STABLE)
    assert [record.assigned for record in logged.after["log B"]] == [0b10]
    assert logged.after["group"].state is p.GroupState.PREPARING
    assert logged.after["wire B"] == REFUSED


RETURNING = {**SETTLED, "member_A": Member(p.Life.UP, topics=SUBSCRIBED), "wire_A": Join(0, meta())}


def test_a_return_that_is_not_stored_is_undone():
    step = STATIC.step("return not stored", **RETURNING)
    assert step.choice == ""
    assert step.after["wire A"] == Refused("join", p.Error.NOT_COORDINATOR, 0)
    assert (step.after["group"], step.after["record A"]) == (SETTLED["group"], SETTLED["record_A"])


def test_a_return_that_is_undone_may_be_in_the_log():
    failed, logged = LOGGED.steps("return not stored", **RETURNING)
    assert (failed.after["log A"], failed.after["log"]) == ((), Group())
    assert [record.id for record in logged.after["log A"]] == [2]
    assert logged.after["log"].leader == p.Id(p.Slot(0), 2)
    assert logged.after["record A"] == failed.after["record A"] == SETTLED["record_A"]


def test_only_a_return_that_starts_no_rebalance_is_stored():
    for group in (SETTLED["group"]._replace(state=state) for state in p.GroupState if state != "Stable"):
        assert STATIC.steps("return not stored", **{**RETURNING, "group": group}) == []
    assert STATIC.steps("return not stored", **{**RETURNING, "record_A": ()}) == []
    assert DYNAMIC.steps("return not stored", **RETURNING) == []


def test_in_larger_steps_the_member_hears_of_it_at_once():
    game = PlayedGroup(setup(faults=RARE, static=True, steps="atomic"))
    member = Member(p.Life.UP, topics=SUBSCRIBED)
    step = game.step("join not stored", member_A=member, **SETTLED)
    assert (step.after["wire A"], step.after["record A"]) == (None, SETTLED["record_A"])
    assert step.after["member A"].state is p.MemberState.PREPARING
    assert game.steps("join not stored", member_A=member, group=Group(p.GroupState.PREPARING, G4)) == []


# -- applications --------------------------------------------------------------------------------------

CARELESS = PlayedGroup(setup(faults=("polls on", "unsubscribe midway")))
FULL = Refused("join", p.Error.GROUP_MAX_SIZE_REACHED, 1)


def test_who_polls_on_after_a_fatal_error_keeps_all_and_joins_again():
    joining = stable(3, 0b01, state=p.MemberState.PREPARING, prepare=False, rejoin=True)
    step = CARELESS.step("polls on", member_A=joining, wire_A=FULL)
    assert (step.after["member A"], step.after["wire A"]) == (joining, None)
    assert [one.error for one in step.saw(Threw)] == [p.Error.GROUP_MAX_SIZE_REACHED]
    [again] = CARELESS.steps("join", member_A=step.after["member A"])
    assert again.after["wire A"].meta.owned == 0b01


def test_only_a_process_that_polls_hears_of_it_and_it_asks_for_a_rebalance():
    assert CARELESS.steps("polls on", member_A=stable(life=p.Life.PAUSED), wire_A=FULL) == []
    assert CARELESS.step("polls on", member_A=stable(), wire_A=FULL).after["member A"].rejoin


def test_only_fatal_errors_are_thrown():
    for error in (p.Error.REBALANCE_IN_PROGRESS, p.Error.NOT_COORDINATOR, p.Error.UNKNOWN_MEMBER_ID):
        refused = FULL._replace(error=error)
        assert CARELESS.steps("polls on", member_A=stable(), wire_A=refused) == []


def test_the_join_that_was_under_way_is_waited_for_after_unsubscribe():
    """``maybeLeaveGroup`` resets the member and not its future."""
    joining = stable(4, state=p.MemberState.PREPARING, prepare=False, rejoin=True)
    parked = {"record_A": (MemberRecord(1, meta(), joined=True),), "wire_A": JoinParked(1)}
    step = CARELESS.step(
        "unsubscribe midway", member_A=joining, group=Group(p.GroupState.PREPARING, G4), **parked
    )
    assert (step.after["record A"], step.after["wire A"]) == ((), JoinParked(1))
    again = step.after["member A"]._replace(topics=SUBSCRIBED)
    assert CARELESS.steps("join", member_A=again, wire_A=JoinParked(1)) == []
    late = CARELESS.step("receive", member_A=again, wire_A=JoinOk(1, G4, "cooperative-sticky"))
    assert (late.after["wire A"], late.after["member A"]) == (None, again)


def test_an_assignment_that_waits_for_a_poll_is_given_up_by_it():
    received = stable(4, prepare=False, received=p.Parts(0b01))
    left = CARELESS.step("unsubscribe midway", member_A=received, **SETTLED).after
    after = left["member A"]
    assert (after.received, left["group"].state) == (0b01, p.GroupState.PREPARING)
    step = CARELESS.step("complete", member_A=after._replace(topics=SUBSCRIBED))
    assert (step.after["member A"].owned, step.after["member A"].received) == (0, None)


@pytest.mark.parametrize(
    ("decisions", "prepares"),
    [((), True), (("prepare_once_per_rebalance",), False), (("prepare_not_repeated_after_reset",), False)],
)
def test_the_join_after_an_unsubscribe_is_prepared_anew_but_by_older_clients(
    decisions: tuple[str, ...], prepares: bool
):
    group = PlayedGroup(setup(faults=("unsubscribe midway",), decisions=decisions))
    joining = stable(4, state=p.MemberState.PREPARING, prepare=False, rejoin=True)
    left = group.step("unsubscribe midway", member_A=joining, wire_A=JoinParked(1)).after
    assert left["member A"].prepare is prepares


@pytest.mark.parametrize("member", [stable(4, topics=p.Topics(0)), stable(4, life=p.Life.PAUSED)])
def test_who_is_subscribed_to_nothing_or_does_not_run_does_not_unsubscribe(member: Member):
    received = member._replace(prepare=False, received=p.Parts(0b01))
    assert CARELESS.steps("unsubscribe midway", member_A=received, **SETTLED) == []


def test_what_is_still_to_arrive_arrives_first():
    for request in (Join(1, meta()), Sync(1, G4), None):
        assert CARELESS.steps("unsubscribe midway", member_A=stable(4), wire_A=request, **SETTLED) == []


# -- a lower group.max.size ------------------------------------------------------------------------------

SMALLER = PlayedGroup(setup(faults=("failover",), max_size=1, lowers=True))
LOG: dict[str, Any] = {
    "log": SETTLED["group"],
    "log_A": SETTLED["record_A"],
    "log_B": SETTLED["record_A"],
}


def test_a_group_that_was_loaded_with_too_many_members_rebalances_and_refuses_who_comes_late():
    steps = SMALLER.steps("failover", NOBODY, **SETTLED, **LOG)
    [group] = [step.after["group"] for step in steps]
    assert (group.state, group.limited) == (p.GroupState.PREPARING, True)
    here = (MemberRecord(1, meta(), joined=True),)
    late = {"record_A": here, "record_B": SETTLED["record_A"], "wire_B": Join(1, meta())}
    refused = SMALLER.step("join request", 1, group=group, **late).after["wire B"]
    assert refused.error is p.Error.GROUP_MAX_SIZE_REACHED
    before = SMALLER.step("join request", 1, group=group._replace(limited=False), **late)
    assert before.after["wire B"] == JoinParked(1)


def test_one_that_fits_is_as_it_was():
    [step] = SMALLER.steps("failover", NOBODY, **SETTLED, **{**LOG, "log_B": ()})
    assert step.after["group"] == SETTLED["group"]._replace(limited=True)


def test_the_limit_stays_when_the_generation_rises_and_when_the_group_is_gone():
    game = PlayedGroup(setup(faults=("failover", "group expires"), max_size=1, lowers=True))
    group = Group(p.GroupState.PREPARING, G4, limited=True)
    [empty] = game.steps("join phase ends", NOBODY, group=group)
    assert empty.after["group"] == Group(p.GroupState.EMPTY, p.Generation(5), limited=True)
    here = {"record_A": (MemberRecord(1, meta(), joined=True),), "wire_A": JoinParked(1)}
    assert all(s.after["group"].limited for s in game.steps("join phase ends", NOBODY, group=group, **here))
    [gone] = game.steps("group expires", NOBODY, group=empty.after["group"])
    assert gone.after["group"] == Group(limited=True)


@pytest.mark.parametrize("logs", [False, True])
def test_a_group_that_is_gone_is_forgotten_in_the_log_too(logs: bool):
    game = PlayedGroup(setup(faults=("group expires", "failover") if logs else ("group expires",)))
    log = LOG if logs else {}
    handed_out = {"record_A": (MemberRecord(1, None),), "group": Group(p.GroupState.EMPTY, G4)}
    after = game.step("group expires", NOBODY, **handed_out, **log).after
    assert (after["group"], after["record A"]) == (Group(), ())
    assert [after[name.replace("_", " ")] for name in log] == ([Group(), (), ()] if logs else [])


# -- a generation that is counted twice ------------------------------------------------------------------


@pytest.mark.parametrize("believed", [False, True])
def test_what_a_leader_decided_before_a_failover_decides_nothing_after_it(believed: bool):
    decisions = ("lost_generation_believed",) if believed else ()
    game = PlayedGroup(setup(faults=("failover", "left behind"), coordinator=decisions))
    left = ((Join(1, meta()),), (Sync(1, G4, GRANTS), LeaveGroup(1)))
    [step] = game.steps("failover", NOBODY, behind_A=left, **SETTLED, **LOG)
    [joins, [sync, leave]] = step.after["behind A"]
    assert (joins, leave) == ((Join(1, meta()),), LeaveGroup(1))
    assert sync == (Sync(1, G4, GRANTS) if believed else Sync(1, G4))
    late = {**DECIDING, "wire_A": None, "behind_A": step.after["behind A"]}
    assert bool(game.steps("left decision arrives", **late)) is believed


# -- commits of a transaction ----------------------------------------------------------------------------


def test_a_commit_of_a_transaction_is_accepted_while_the_leader_assigns():
    me = MemberContext(p.Slot(0), DYNAMIC.setup)
    answers = {
        api: answer_to(me, api, DECIDING["group"], DECIDING["record_A"], 1, G4)
        for api in ("commit", "transactional commit", "heartbeat")
    }
    refused = p.Error.REBALANCE_IN_PROGRESS
    assert answers == {"commit": refused, "transactional commit": None, "heartbeat": None}
    for commit in ("commit", "transactional commit"):
        old = answer_to(me, commit, DECIDING["group"], DECIDING["record_A"], 1, p.Generation(3))
        assert old is p.Error.ILLEGAL_GENERATION


def test_a_late_commit_counts_as_one_of_a_transaction():
    """``group/commit`` asks for the partitions of every commit that somebody may have accepted."""
    view = next(view for view in DYNAMIC.machine.views if view.name == "commits A")
    late = p.Late("commit", 1, G4, p.Parts(0b01))
    assert view.of(stable(4), late, DECIDING["group"], DECIDING["record_A"]) == 0b01


# -- racks ---------------------------------------------------------------------------------------------


def test_a_leader_that_sees_that_replicas_have_moved_rejoins():
    game = PlayedGroup(setup(faults=("racks change",)))
    [moved] = game.steps("racks change", NOBODY)
    assert moved.after["cluster"].moved
    leader = stable(4, 0b01, watch=p.Parts(0b11), watched=SUBSCRIBED)
    assert game.steps("join", member_A=leader) == []
    seen = game.step("refresh", member_A=leader, cluster=moved.after["cluster"]).after["member A"]
    assert seen.view_moved
    started = game.step("start", member_A=Member(), cluster=moved.after["cluster"]).after["member A"]
    assert started.view_moved
    assert len(game.steps("join", member_A=seen)) == 1
    assert game.steps("join", member_A=seen._replace(watch=None)) == []


@pytest.mark.parametrize("moved", [False, True])
def test_a_leader_remembers_where_replicas_were_until_it_joins_again(moved: bool):
    joining = stable(3, state=p.MemberState.PREPARING, prepare=False, rejoin=True, view_moved=moved)
    deciding = {**DECIDING, "wire_A": JoinOk(1, G4, "cooperative-sticky", leader=True)}
    [step, *_] = DYNAMIC.steps("assign", member_A=joining, **deciding)
    assert step.after["member A"].watch_moved is moved
    led = joining._replace(watch=p.Parts(0b11), watched=SUBSCRIBED, watch_moved=moved)
    follows = {**DECIDING, "wire_A": JoinOk(1, G4, "cooperative-sticky")}
    after = DYNAMIC.step("receive", member_A=led, **follows).after["member A"]
    assert (after.watch, after.watch_moved) == (None, False)


def test_who_unsubscribes_knows_the_cluster_still_and_its_id_if_it_is_static():
    for game, known in ((DYNAMIC, 0), (PlayedGroup(setup(faults=("unsubscribe",), static=True)), 1)):
        member = stable(4, 0b01, view_moved=True)
        after = game.step("unsubscribe", member_A=member, **SETTLED).after["member A"]
        assert (after.id, after.view, after.view_moved) == (known, 0b11, True)


def test_the_assignor_is_asked_with_the_racks_that_the_leader_sees():
    """One partition in each rack, and a member in each: who is in which rack has its partition."""
    spread = SCENARIOS["racks"].setup()
    metas = (meta(), meta())
    racks = tuple(consumer.rack for consumer in spread.consumers)
    shares = []
    for moved in (False, True):
        question = Question("range", (), p.Parts(0b11), metas, racks, (None, None), moved)
        shares.append(ask(spread, question))
    assert shares == [(0b01, 0b10), (0b10, 0b01)]
