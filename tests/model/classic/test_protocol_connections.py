"""Connections that break: what was sent on them arrives after what is sent on the next, or never."""

from __future__ import annotations

from typing import Any

import pytest
from rebalance_verifier.model.classic import state as s
from rebalance_verifier.model.classic.group import machine
from rebalance_verifier.model.classic.join_group import connection_of, not_overtaken, which
from rebalance_verifier.model.group import parts as p
from rebalance_verifier.model.group.setup import MemberContext, Setup
from rebalance_verifier.model.machine import Event, Machine, State

from tests.model.classic.small_groups import PlayedGroup, meta, setup, stable

A1 = p.Id(p.Slot(0), 1)

BROKEN = (
    "left behind",
    "late leave",
    "crash",
    "close",
    "unsubscribe",
    "max poll",
    "enforce",
    "session timeout",
)


def group(members: int = 1, *decisions: str, static: bool = False, steps: str = "fine") -> Setup:
    made = setup(members, 1, faults=BROKEN, budget=4, coordinator=decisions, static=static, steps=steps)
    assert made.breaks_connections
    return made


class Run:
    """A run of a machine, event by event."""

    def __init__(self, of: Setup) -> None:
        self.built: Machine = machine(of)
        self.state: State = self.built.initial[0]

    def does(self, *steps: str) -> Run:
        """Steps such as ``A join``; of several outcomes the one whose choice is named behind a slash."""
        for step in steps:
            text, _, choice = step.partition(" / ")
            who, _, action = text.partition(" ")
            event = Event(action, ord(who) - ord("A"), choice) if len(who) == 1 else Event(text, -1, choice)
            self.state = self.built.step(self.state, event)
        return self

    def can(self, action: str) -> bool:
        return any(event.action == action for event in self.built.enabled(self.state))

    def value(self, name: str) -> Any:
        return self.built.value(self.state, name)


JOINS = ("A start", "A join", "A join request", "A receive")
LEFT = (*JOINS, "A join", "A left behind", "A receive")
ENDS = "join phase ends / cooperative-sticky, leader A"
OWNS = (ENDS, "A assign / A: t-0", "A leader sync", "A receive", "A complete")


def test_a_group_whose_connections_hold_knows_nothing_of_it():
    assert "behind A" not in machine(setup(1, 1, faults=("disconnect",), budget=1)).components


def test_what_is_left_behind_is_still_under_way_and_its_sender_is_free_to_send_again():
    run = Run(group()).does(*LEFT)
    ((left,),) = run.value("behind A")
    assert isinstance(left, s.Join)
    assert run.value("wire A") is None
    run.does("A join")
    assert isinstance(run.value("wire A"), s.Join)
    assert run.value("behind A") == ((left,),)


def test_it_has_its_effect_and_nobody_hears_the_answer():
    run = Run(group()).does(*LEFT, "A left join arrives")
    (record,) = run.value("record A")
    assert record.joined
    assert record.meta is not None
    assert (run.value("wire A"), run.value("behind A")) == (None, ())
    assert run.value("group").state is p.GroupState.PREPARING


def test_as_specified_a_later_one_overtakes_it():
    run = Run(group()).does(*LEFT, "A join", "A join request")
    assert run.value("behind A") == ()
    assert not run.can("left join arrives")


def test_a_refused_one_overtakes_nothing():
    """The coordinator that does not know the member has nowhere to keep its epoch."""
    run = Run(group()).does(*LEFT, "A join", "A crash", "A session expires / id 1", "A join request")
    assert len(run.value("behind A")) == 1


def test_one_without_an_id_is_overtaken_only_where_the_instance_is_known():
    for static, left in ((False, 1), (True, 0)):
        run = Run(group(static=static)).does("A start", "A join", "A left behind", "A receive", "A join")
        assert len(run.does("A join request").value("behind A")) == left


def test_no_kafka_notices():
    run = Run(group(1, "overtaken_join_believed")).does(*LEFT, "A join", "A join request", *OWNS)
    assert run.value("member A").owned == 1
    run.does("A enforce", "A join", "A join request", "A left join arrives")
    (record,) = run.value("record A")
    assert (record.meta.owned, run.value("member A").owned) == (0, 1)


def test_an_id_that_something_left_behind_names_is_not_given_again():
    run = Run(group()).does(*LEFT, "A crash", "A session expires / id 1")
    assert (run.value("record A"), len(run.value("behind A"))) == ((), 1)
    run.does("A start", "A join", "A join request")
    assert [record.id for record in run.value("record A")] == [2]


def test_nor_is_one_that_its_sender_has_learned():
    run = Run(group()).does("A start", "A join", "A left behind", "A receive", "A join", "A join request")
    run.does("A receive", "A session timeout / id 1", "A left join arrives")
    assert (run.value("member A").id, [record.id for record in run.value("record A")]) == (1, [2])


def test_a_decision_that_was_left_behind_settles_the_group():
    run = Run(group()).does(*JOINS, "A join", "A join request", ENDS, "A assign / A: t-0")
    run.does("A left behind", "A left decision arrives")
    assert run.value("group").state is p.GroupState.STABLE
    (record,) = run.value("record A")
    assert (record.assigned, record.synced, run.value("behind A")) == (1, True, ())
    assert run.value("wire A") is not None, "that its connection broke it has yet to hear"


def test_a_sync_that_decides_nothing_counts_all_the_same():
    run = Run(group()).does(*JOINS, "A join", "A join request", *OWNS)
    run.does("A enforce", "A join", "A join request", ENDS, "A assign / A: t-0", "A left behind")
    run.does("A receive", "A join", "A left decision arrives", "A join request", ENDS)
    assert all(not isinstance(one, s.Sync) for connection in run.value("behind A") for one in connection)


@pytest.mark.parametrize("how", ["unsubscribe", "close", "max poll"])
def test_a_leave_group_comes_late(how):
    run = Run(group()).does(*JOINS, "A join", "A join request", *OWNS)
    run.does(f"A late leave / {how}")
    assert run.value("behind A") == ((s.LeaveGroup(1),),)
    assert len(run.value("record A")) == 1
    assert (run.value("member A").life is p.Life.DOWN) == (how == "close")
    run.does("A left leave arrives")
    assert (run.value("record A"), run.value("behind A")) == ((), ())


def test_it_comes_behind_what_was_sent_before_on_the_same_connection():
    run = Run(group()).does(*JOINS, "A join", "A late leave / unsubscribe")
    ((first, second),) = run.value("behind A")
    assert (type(first), type(second)) == (s.Join, s.LeaveGroup)
    assert not run.can("left leave arrives")
    run.does("A left join arrives", "A left leave arrives")
    assert run.value("behind A") == ()


def test_what_a_process_had_sent_may_arrive_after_the_next_one_has_started():
    run = Run(group()).does(*JOINS, "A join", "A crash", "A start")
    assert len(run.value("behind A")) == 1
    run.does("A join", "A left join arrives", "A join request")
    assert [record.joined for record in run.value("record A")] == [True, False]


def test_several_connections_are_in_any_order():
    run = Run(group(1, "overtaken_join_believed"))
    run.does(*LEFT, "A join", "A left behind", "A receive")
    choices = {event.choice for event in run.built.enabled(run.state) if event.action == "left join arrives"}
    assert choices == {"connection 1", "connection 2"}
    assert len(run.does("A left join arrives / connection 2").value("behind A")) == 1


def test_as_specified_the_older_of_two_is_overtaken_by_the_younger():
    run = Run(group()).does(*LEFT, "A join", "A left behind", "A receive")
    assert run.does("A left join arrives / connection 2").value("behind A") == ()


# -- what is left behind, connection by connection -------------------------------------------------------


def test_of_several_connections_any_may_be_next_and_the_others_stay():
    """The first request of each, so that the order within one is kept."""
    sync, later, leave = s.Sync(1, p.Generation(3)), s.Sync(1, p.Generation(4)), s.LeaveGroup(1)
    game = PlayedGroup(group())
    behind = ((sync, leave), (later,), (leave,))
    settled = {"group": s.Group(p.GroupState.STABLE, p.Generation(4), A1, "cooperative-sticky")}
    mine = {"record_A": (s.MemberRecord(1, meta(), p.Parts(1), synced=True),)}
    arrived = game.steps("left sync arrives", behind_A=behind, **settled, **mine)
    assert [step.after["behind A"] for step in arrived] == [
        ((leave,), (later,), (leave,)),
        ((sync, leave), (leave,)),
    ]
    [left] = game.steps("left leave arrives", behind_A=behind, **settled, **mine)
    assert left.after["behind A"] == ((sync, leave), (later,))
    assert left.after["record A"] == ()


@pytest.mark.parametrize(
    ("join", "static", "stays"),
    [
        (s.Join(1, meta()), False, "sync leave other"),
        (s.Join(0, meta()), False, "old sync leave other"),
        (s.Join(1, meta()), True, "sync leave"),
    ],
    ids=["dynamic", "without id", "static"],
)
def test_only_joins_of_the_same_member_are_overtaken(join: s.Join, static: bool, stays: str):
    left: dict[str, s.Join | s.Sync | s.LeaveGroup] = {
        "old": s.Join(1, meta(noise=1)),
        "sync": s.Sync(1, p.Generation(3)),
        "leave": s.LeaveGroup(1),
        "other": s.Join(2, meta()),
    }
    behind = tuple((request,) for request in left.values())
    me = MemberContext(p.Slot(0), group(static=static))
    kept = not_overtaken(me, behind, join, s.JoinParked(1))
    assert kept == tuple((left[name],) for name in stays.split())
    assert not_overtaken(me, behind, join, s.Refused("join", p.Error.UNKNOWN_MEMBER_ID, 1)) == behind


def test_of_those_without_an_id_nobody_can_say_whose_they_are():
    me, behind = MemberContext(p.Slot(0), group()), ((s.Join(0, meta(noise=1)),),)
    assert not_overtaken(me, behind, s.Join(0, meta()), s.JoinParked(1)) == behind


@pytest.mark.parametrize("wire", [s.Join(1, meta()), s.Sync(1, p.Generation(3)), s.JoinParked(1), None])
@pytest.mark.parametrize("life", [p.Life.DOWN, p.Life.FAILED])
def test_what_a_process_had_under_way_stays_so_when_the_next_one_starts(life: p.Life, wire: Any):
    step = PlayedGroup(group()).step("start", member_A=s.Member(life=life), wire_A=wire)
    kept = ((wire,),) if isinstance(wire, s.Join | s.Sync) else ()
    assert (step.after["wire A"], step.after["behind A"]) == (None, kept)
    assert step.after["member A"].life is p.Life.UP
    assert PlayedGroup(group()).steps("left behind", member_A=s.Member(life=life), wire_A=wire) == []


def test_a_sync_group_without_a_decision_decides_nothing_when_it_arrives_late():
    leads = {"group": s.Group(p.GroupState.COMPLETING, p.Generation(3), A1, "cooperative-sticky")}
    mine = {"record_A": (s.MemberRecord(1, meta()),)}
    game, empty = PlayedGroup(group()), ((s.Sync(1, p.Generation(3)),),)
    assert game.steps("left decision arrives", behind_A=empty, **leads, **mine) == []
    assert game.step("left sync arrives", behind_A=empty, **leads, **mine).after["record A"][0].synced


def test_faults_of_connections_are_those_that_the_group_has():
    for name, other in (("left behind", "late leave"), ("late leave", "left behind")):
        names = {action.name for action in machine(setup(1, 1, faults=(name,))).actions}
        assert name in names
        assert other not in names


@pytest.mark.parametrize(("wire", "api"), [(s.Join(1, meta()), "join"), (s.Sync(1, p.Generation(3)), "sync")])
def test_the_sender_is_told_what_was_left_behind(wire: s.Join | s.Sync, api: str):
    game = PlayedGroup(group())
    step = game.step("left behind", member_A=stable(), wire_A=wire)
    assert step.after["wire A"] == s.Refused(api, p.Error.DISCONNECT, 1, p.Generation(3))
    assert (step.after["behind A"], step.after["budget"]) == (((wire,),), 3)
    assert game.steps("left behind", member_A=stable(), wire_A=s.JoinParked(1)) == []


def test_who_leaves_late_is_gone_and_its_request_is_not():
    game = PlayedGroup(group())
    steps = {step.choice: step.after for step in game.steps("late leave", member_A=stable())}
    assert sorted(steps) == ["close", "max poll", "unsubscribe"]
    lives = {
        choice: (after["member A"].life, after["member A"].generation) for choice, after in steps.items()
    }
    assert lives == {"close": (p.Life.DOWN, -1), "max poll": (p.Life.UP, -1), "unsubscribe": (p.Life.UP, -1)}
    assert {(after["behind A"], after["budget"]) for after in steps.values()} == {(((s.LeaveGroup(1),),), 3)}
    join = s.Join(1, meta())
    for step in game.steps("late leave", member_A=stable(), wire_A=join):
        behind = ((s.LeaveGroup(1),),) if step.choice == "max poll" else ((join, s.LeaveGroup(1)),)
        wire = join if step.choice == "max poll" else None
        assert (step.after["behind A"], step.after["wire A"]) == (behind, wire)
    hung = game.steps("late leave", member_A=stable(life=p.Life.HUNG))
    assert [step.choice for step in hung] == ["max poll"]
    late = p.Late("heartbeat", 1, p.Generation(3))
    for step in game.steps("late leave", member_A=stable(), stray_A=late):
        assert step.after["stray A"] == (None if step.choice == "close" else late)


def test_in_a_group_that_keeps_a_log_a_decision_that_was_left_behind_is_written():
    game = PlayedGroup(setup(1, 1, faults=("left behind", "failover")))
    decision = s.Sync(1, p.Generation(3), (p.Grant(A1, p.Parts(1)),))
    leads = s.Group(p.GroupState.COMPLETING, p.Generation(3), A1, "cooperative-sticky")
    record = (s.MemberRecord(1, meta()),)
    step = game.step("left decision arrives", behind_A=((decision,),), group=leads, record_A=record)
    assert [kept.assigned for kept in step.after["log A"]] == [1]
    assert step.after["log"].state is p.GroupState.STABLE


def test_connections_are_numbered():
    assert [connection_of(text) for text in ("", "connection 1", "connection 3")] == [0, 0, 2]
    assert which((), 0) == "connection 1"


def test_a_leave_that_was_not_sent_is_not_left_behind():
    """A static member sends none, and who has no id has nobody to name."""
    for game, member in ((PlayedGroup(group(static=True)), stable()), (PlayedGroup(group()), stable(id=0))):
        assert game.steps("late leave", member_A=member) == []


def test_who_is_subscribed_to_nothing_only_leaves_by_its_timer():
    steps = PlayedGroup(group()).steps("late leave", member_A=stable(topics=p.Topics(0)))
    assert [step.choice for step in steps] == ["max poll"]
