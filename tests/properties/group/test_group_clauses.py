"""Each clause of a group on what breaks it and on what nearly does; nothing of the model but its words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from rebalance_verifier.explore.groups.scenarios import SCENARIOS
from rebalance_verifier.model.classic.group import FAULTS, machine
from rebalance_verifier.model.group.observations import (
    Admitted,
    Answered,
    Call,
    Callback,
    Claimed,
    Completed,
    Decided,
    Elected,
    Expelled,
    Left,
    Noted,
    Repeated,
    Replaced,
    Threw,
    TurnedAway,
)
from rebalance_verifier.model.group.parts import (
    Error,
    Generation,
    Grant,
    GroupState,
    Id,
    Life,
    MemberState,
    Parts,
    Slot,
    Topics,
)
from rebalance_verifier.model.group.setup import Consumer, ConsumerConfig, Setup
from rebalance_verifier.model.machine import Event
from rebalance_verifier.properties.group import checks, consumer
from rebalance_verifier.properties.group.clauses import TABLE, WITNESSES, most_rounds, rules

A, B, C = Slot(0), Slot(1), Slot(2)
REVOKED_FOR_LOST = "and its listener gets onPartitionsRevoked, not onPartitionsLost"

STEP = Event("complete", 0, "")


def group(
    assignor: str = "cooperative-sticky", members: int = 2, instances: tuple[int, ...] = (), **more: Any
) -> Setup:
    stages = (ConsumerConfig(assignors=(assignor,)),)
    consumers = tuple(
        Consumer(
            stages=stages,
            subscriptions=(Topics(1),),
            instance=instances[slot] if instances else None,
        )
        for slot in range(members)
    )
    return Setup(consumers=consumers, topics=(Parts(0b111),), exist=Parts(0b111), **more)


GROUP = group()


def broken(*seen: Any) -> list[str]:
    """The clauses that a step breaks."""
    return [clause for clause, _ in rules(GROUP).at_step(STEP, seen)]


def call(kind: Call, parts: int = 0, **more: Any) -> Callback:
    usual: dict[str, Any] = {"eager": False, "reset": False, "owned": Parts(0b111), "believed": Parts(0b111)}
    return Callback(call=kind, who=A, parts=Parts(parts), **{**usual, **more})


def decided(claims: tuple[tuple[int, int], ...], grants: tuple[int, ...], wanted: int = 0b111) -> Decided:
    """``claims``: partitions and generation of each member."""
    ids = [Id(Slot(slot), 1) for slot in range(len(claims))]
    listed = tuple(
        (member, Parts(parts), Generation(generation), Parts(wanted))
        for member, (parts, generation) in zip(ids, claims, strict=True)
    )
    return Decided(False, listed, tuple(Grant(i, Parts(g)) for i, g in zip(ids, grants, strict=True)))


ASSIGNED = call(Call.ASSIGNED, believed=Parts(0))
DONE = Completed(
    who=A, assigned=Parts(0), owned=Parts(0), eager=False, revoked=True, rejoin=True, believed=Parts(0)
)
ANSWER = Answered(
    who=A, api="sync", error=Error.UNKNOWN_MEMBER_ID, state=MemberState.COMPLETING, same=True, reset=True,
    keeps_id=False, rejoin=True,
)  # fmt: skip
RETURNED = Replaced(
    who=A, state=GroupState.STABLE, rebalances=False, changed=False, owed=False, leader=False,
    told_leader=False,
)  # fmt: skip
AWAY = Expelled(A, "rebalance", able=False, away=True)
ILLEGAL = Error.ILLEGAL_GENERATION
REVOKED, LOST = Call.REVOKED, Call.LOST
COMPLETING = GroupState.COMPLETING

STEPS: tuple[tuple[tuple[Any, ...], list[str]], ...] = (
    # -- the leader --
    ((decided(((0b01, 3), (0b01, 2)), (0b01, 0)),), []),
    ((decided(((0b01, 3), (0b01, 2)), (0, 0b01)),), ["leader/stale", "leader/withhold"]),
    ((decided(((0b01, 2), (0b01, 3)), (0b01, 0)),), ["leader/stale", "leader/withhold"]),
    ((decided(((0b01, 3), (0b10, 2)), (0b01, 0b10)),), []),
    ((decided(((0b11, 3), (0, -1)), (0b01, 0b10)),), ["leader/withhold"]),
    ((decided(((0b11, 3), (0, -1)), (0b01, 0)),), []),
    ((decided(((0b01, 3), (0b10, 2)), (0, 0b01)),), ["leader/withhold"]),  # it never claimed that one
    ((decided(((0b01, 3), (0b11, 2)), (0b01, 0b10)),), []),
    ((decided(((0b01, 3), (0b01, 3)), (0b01, 0)),), ["leader/withhold"]),
    ((decided(((0b01, 3), (0b01, 3)), (0, 0)),), []),
    ((decided(((0, -1), (0, -1)), (0b011, 0b100)),), []),
    ((decided(((0, -1), (0, -1)), (0b011, 0b010)),), ["leader/grant"]),
    ((decided(((0, -1), (0, -1)), (0b01, 0b10), wanted=0b01),), ["leader/grant"]),
    ((decided(((0b100, 2), (0b110, 3), (0, -1)), (0, 0b110, 0b001)),), []),
    ((decided(((0b100, 2), (0b110, 3), (0, -1)), (0, 0b010, 0b100)),), ["leader/withhold"]),
    ((Claimed(A, Parts(1), Generation(3), Generation(3)),), []),
    ((Claimed(A, Parts(1), Generation(4), Generation(3)),), ["leader/label"]),
    # -- callbacks --
    ((call(REVOKED, 0b01),), []),
    ((call(REVOKED),), ["callback/revoked"]),
    ((call(REVOKED, 0b01, eager=True),), ["callback/revoked"]),
    ((call(REVOKED, 0b111, eager=True),), []),
    ((call(REVOKED, 0, eager=True, believed=Parts(0)),), []),
    ((call(REVOKED, 0b11, believed=Parts(0b01)),), ["callback/revoked"]),
    ((call(LOST, 0b01, reset=True, believed=Parts(0)),), []),
    ((call(LOST, 0b01, midway=True),), []),
    ((call(LOST, 0b01),), ["callback/lost"]),
    ((call(REVOKED, 0b01, reset=True),), ["callback/lost"]),
    ((call(REVOKED, 0b01, midway=True),), ["callback/lost"]),
    ((call(REVOKED, 0b11, owned=Parts(0b01)),), ["callback/owned"]),
    ((call(LOST, 0b11, reset=True, owned=Parts(0b01)),), ["callback/owned"]),
    ((ASSIGNED,), []),
    ((call(Call.ASSIGNED, 0b11, believed=Parts(0b100), owned=Parts(0)),), []),
    ((call(Call.ASSIGNED, 0b11, believed=Parts(0b10)),), ["callback/assigned"]),
    ((ASSIGNED, DONE), []),
    ((DONE,), ["callback/assigned"]),
    ((call(REVOKED, 0b01), DONE), ["callback/assigned"]),
    ((Threw(A, "listener"),), ["callback/assigned"]),
    ((ASSIGNED, Threw(A, "listener")), []),
    ((call(REVOKED, 0b01), ASSIGNED), []),
    ((ASSIGNED, call(REVOKED, 0b01)), ["callback/order"]),
    ((call(REVOKED, 0b01, current=False),), ["callback/generation"]),
    ((ASSIGNED, DONE._replace(rejoin=False)), ["callback/rejoin"]),
    ((ASSIGNED, DONE._replace(rejoin=False, revoked=False)), []),
    # -- leaving --
    ((Left(A, Parts(0), sent=True, ought=True),), []),
    ((Left(A, Parts(0b01), sent=True, ought=True),), ["leave/callback"]),
    ((Left(A, Parts(0), sent=False, ought=True),), ["leave/sent"]),
    ((Left(A, Parts(0), sent=False, ought=False),), []),
    # -- errors --
    ((ANSWER,), []),
    ((ANSWER._replace(error=ILLEGAL, keeps_id=True),), []),
    ((ANSWER._replace(error=ILLEGAL),), ["error/id"]),
    ((ANSWER._replace(error=ILLEGAL, reset=False, rejoin=True),), ["error/membership"]),
    ((ANSWER._replace(reset=False),), ["error/membership"]),
    ((ANSWER._replace(rejoin=False),), ["error/membership"]),
    ((ANSWER._replace(same=False, reset=False),), []),
    ((ANSWER._replace(same=False),), ["error/old"]),
    ((ANSWER._replace(error=Error.DISCONNECT),), ["error/retriable"]),
    ((ANSWER._replace(error=Error.DISCONNECT, reset=False, rejoin=False),), []),
    ((Threw(A, Error.FENCED_INSTANCE_ID),), ["poll/throws"]),
    ((Threw(A, Error.GROUP_MAX_SIZE_REACHED),), []),
    # -- the coordinator --
    ((Admitted(A, True, 1, None),), []),
    ((Admitted(A, False, 1, None),), ["coordinator/admit"]),
    ((TurnedAway(A, False),), []),
    ((TurnedAway(A, True),), ["coordinator/full"]),
    ((Elected("range", (("range", "sticky"), ("range",))),), []),
    ((Elected("sticky", (("range", "sticky"), ("range",))),), ["coordinator/vote"]),
    ((Elected("sticky", (("range", "sticky"), ("range", "sticky"))),), ["coordinator/vote"]),
    ((Elected("sticky", (("range", "sticky"), ("sticky", "range"))),), []),
    ((Elected("sticky", (("range", "sticky"), ("other", "sticky"))),), []),
    ((Repeated(A, False),), []),
    ((Repeated(A, True),), ["coordinator/repeat"]),
    ((RETURNED,), []),
    ((RETURNED._replace(rebalances=True),), ["coordinator/static"]),
    ((RETURNED._replace(changed=True),), ["coordinator/static"]),
    ((RETURNED._replace(owed=True),), ["coordinator/static"]),
    ((RETURNED._replace(changed=True, rebalances=True),), []),
    ((RETURNED._replace(owed=True, rebalances=True),), []),
    ((RETURNED._replace(state=COMPLETING, rebalances=True),), []),
    ((RETURNED._replace(state=COMPLETING),), ["coordinator/static"]),
    ((RETURNED._replace(state=GroupState.PREPARING),), []),
    ((RETURNED._replace(leader=True, told_leader=True),), []),
    ((RETURNED._replace(leader=True),), ["coordinator/leader"]),
    ((RETURNED._replace(leader=True, changed=True, rebalances=True),), []),
    ((AWAY,), ["coordinator/keep"]),
    ((AWAY._replace(away=False),), []),
    ((AWAY._replace(able=True),), []),
    ((Noted("follow-up rebalance"), AWAY._replace(away=False), AWAY), ["coordinator/keep"]),
)


@pytest.mark.parametrize(("seen", "clauses"), STEPS)
def test_what_a_step_breaks(seen: tuple[Any, ...], clauses: list[str]):
    assert broken(*seen) == clauses


def test_each_clause_of_a_step_is_broken_by_something():
    states = {
        "group/owner",
        "group/commit",
        "group/size",
        "group/instance",
        "callback/told",
        "callback/fetch",
    }
    states |= {"coordinator/log", "member/runs", "member/reads", "member/enforce", "leave/static"}
    states |= {"group/converges", "group/rounds", "streams/probing"}
    states |= {clause.id for clause in consumer.TABLE}  # switches break those: tests/explore/groups
    assert {name for _, names in STEPS for name in names} == {clause.id for clause in TABLE} - states


# -- in every state --------------------------------------------------------------------------------------

VIEWS: dict[str, Any] = {
    "group": GroupState.STABLE,
    **{f"held {s}": 0 for s in "AB"},
    **{f"commits {s}": 0 for s in "AB"},
    **{f"listener {s}": (0b01, 0b01, Life.UP) for s in "AB"},
    **{f"reads {s}": (True, False, 0b01) for s in "AB"},
    **{f"ids {s}": 1 for s in "AB"},
    **{f"size {s}": 1 for s in "AB"},
    **{f"unlogged {s}": 0 for s in "AB"},
}


def test_a_consumer_group_has_no_more_members_than_it_may() -> None:
    """Of a classic group on its way only those count who have joined: the view has no others."""
    for name in ("consumer-crowded", "migration-crowded"):
        setup = SCENARIOS[name].setup()
        [rule] = [rule for rule in rules(setup).always if rule.clause == "group/size"]
        assert (rule.views, rule.breach(2)) == (("crowd",), None)
        assert rule.breach(3) == "3 members, the limit is 2"


LIMITED = group(instances=(1, 2), max_size=2, faults=("failover",))


@pytest.mark.parametrize(
    ("views", "clauses"),
    [
        ({}, []),
        ({"held A": 0b01, "held B": 0b10}, []),
        ({"held A": 0b11, "held B": 0b10}, ["group/owner"]),
        ({"commits A": 0b01, "held B": 0b10}, []),
        ({"commits A": 0b01, "held B": 0b01}, ["group/commit"]),
        ({"commits B": 0b01, "held A": 0b01}, ["group/commit"]),
        ({"size A": 2}, ["group/size"]),
        ({"size A": 2, "group": GroupState.COMPLETING}, ["group/size"]),
        ({"size A": 2, "group": GroupState.PREPARING}, []),
        ({"size A": 0}, []),
        ({"ids B": 2}, ["group/instance"]),
        ({"ids A": 0}, []),
        ({"listener A": (0b01, 0b11, Life.UP)}, ["callback/told"]),
        ({"listener B": (0b11, 0b01, Life.UP)}, ["callback/told"]),
        ({"reads A": (True, True, 0b01)}, ["callback/fetch"]),
        ({"reads A": (True, True, 0)}, []),
        ({"reads A": (False, True, 0b01)}, []),
        ({"unlogged B": 1}, ["coordinator/log"]),
        ({"unlogged B": 1, "group": GroupState.PREPARING}, []),
    ],
)
def test_what_a_state_breaks(views: dict[str, Any], clauses: list[str]):
    assert [clause for clause, _ in rules(LIMITED).in_state({**VIEWS, **views}.__getitem__)] == clauses


def test_size_and_instance_are_asked_where_there_is_a_limit_and_an_instance():
    usual = {rule.clause for rule in rules(GROUP).always}
    found = {rule.clause for rule in rules(LIMITED).always} - usual
    assert found == {"group/size", "group/instance", "coordinator/log"}
    unlogged = replace(LIMITED, faults=())
    assert {rule.clause for rule in rules(unlogged).always} - usual == {"group/size", "group/instance"}
    lowered = replace(LIMITED, lowers=True)  # it may be too large when it is loaded
    assert {rule.clause for rule in rules(lowered).always} - usual == {"group/instance", "coordinator/log"}


# -- what a step changes ---------------------------------------------------------------------------------

READS = ((False, False, 0b11), (False, False, 0b11))


@pytest.mark.parametrize(
    ("action", "views", "clauses"),
    [
        ("join", {}, []),
        ("join", {"life A": (Life.DOWN, Life.UP)}, ["member/runs"]),
        ("receive sync", {"life A": (Life.HUNG, Life.HUNG)}, ["member/runs"]),
        ("close", {"life A": (Life.PAUSED, Life.DOWN)}, ["member/runs"]),
        ("hang", {"life A": (Life.PAUSED, Life.HUNG)}, ["member/runs"]),
        ("join", {"life A": (Life.UP, Life.FAILED)}, []),
        ("start", {"life A": (Life.DOWN, Life.UP)}, []),
        ("join", {"reads A": (READS[0], (False, False, 0b01))}, ["member/reads"]),
        ("join", {"reads A": (READS[0], (False, False, 0b01)), "owned A": (0b11, 0b01)}, []),
        ("join", {"reads A": ((True, False, 0b11), (True, True, 0))}, []),
        ("join", {"reads A": ((False, False, 0b01), (False, False, 0b01))}, []),
        ("receive sync", {"reads A": (READS[0], (False, False, 0b111))}, []),
        ("enforce", {}, ["member/enforce"]),
        ("enforce", {"wants A": ((False, False), (True, False))}, []),
        ("close", {"ids A": (1, 0)}, ["leave/static"]),
        ("poll interval", {"ids A": (1, 0)}, ["leave/static"]),
        ("session expires", {"ids A": (1, 0)}, []),
        ("close", {"ids A": (0, 0)}, []),
    ],
)
def test_what_a_change_breaks(action: str, views: dict[str, Any], clauses: list[str]):
    before_and_after: dict[str, Any] = {
        "life A": (Life.UP, Life.UP),
        "reads A": READS,
        "owned A": (0b11, 0b11),
        "wants A": ((False, False), (False, False)),
        "ids A": (1, 1),
    }
    change = {**before_and_after, **views}.__getitem__
    assert [clause for clause, _ in rules(LIMITED).at_step(Event(action, 0), (), change)] == clauses
    assert not list(rules(LIMITED).at_step(Event(action, 0), ()))  # where nobody knows what it changed


def test_who_leaves_and_is_dynamic_may_go():
    change = {"ids A": (1, 0), "life A": (Life.UP, Life.UP)}.__getitem__
    assert not list(rules(GROUP).at_step(Event("close", 0), (), change))


@pytest.mark.parametrize("steps", ["atomic", "fine"])
def test_changes_are_asked_of_actions_that_there_are(steps: str):
    of = group(instances=(1, 2), faults=FAULTS, budget=1, steps=steps)
    names = {(action.name, action.who) for action in machine(of).actions}
    for rule in rules(of).each_change:
        assert {who for name, who in names if name in rule.actions} == {0, 1}


def test_every_name_of_an_action_is_one_in_either_granularity():
    named = {name for rule in rules(LIMITED).each_change for name in rule.actions}
    some: dict[str, Any] = {"instances": (1, 2), "faults": FAULTS, "budget": 1}
    both = [machine(group(**some, steps=steps)).actions for steps in ("atomic", "fine")]
    assert named <= {action.name for actions in both for action in actions}


# -- in the end ------------------------------------------------------------------------------------------

NOBODY = (0, 0, 0, 0, False)
LEADS, FOLLOWS = (0b001, 0b111, 0b111, 0b111, False), (0b110, 0b111, 0, 0, False)


@pytest.mark.parametrize(
    ("cluster", "state", "amiss", "shares", "settled"),
    [
        (0b111, GroupState.STABLE, ("", ""), (LEADS, FOLLOWS), True),
        (0b111, GroupState.STABLE, ("", "paused"), (LEADS, FOLLOWS), False),
        (0b111, GroupState.PREPARING, ("", ""), (LEADS, FOLLOWS), False),
        (0b111, GroupState.COMPLETING, ("", ""), (LEADS, FOLLOWS), False),
        (0, GroupState.EMPTY, ("", ""), (NOBODY, NOBODY), True),
        (0b111, GroupState.DEAD, ("", ""), (NOBODY, NOBODY), True),
        (0b111, GroupState.STABLE, ("", ""), (LEADS, NOBODY), False),  # nobody has the rest
        (0b011, GroupState.STABLE, ("", ""), (LEADS, FOLLOWS), False),  # one does not exist any more
        (0b011, GroupState.STABLE, ("", ""), ((0b001, 0b111, 0b011, 0b111, False), FOLLOWS), False),
        (0b001, GroupState.STABLE, ("", ""), ((1, 1, 1, 1, False), (0b110, 0, 0, 0, False)), True),
        (0b111, GroupState.STABLE, ("", ""), (FOLLOWS, (0b001, 0b111, 0, 0, False)), False),  # nobody watches
        (0b111, GroupState.STABLE, ("", ""), (FOLLOWS, (0b001, 0b111, 0, 0, True)), True),  # who would, hangs
        (0b111, GroupState.STABLE, ("", ""), ((0b001, 0b111, 0, 0, True), FOLLOWS), True),
        (0b111, GroupState.STABLE, ("", ""), ((0b001, 0b111, 0b111, 0b011, False), FOLLOWS), False),
        (0b111, GroupState.STABLE, ("", ""), ((0b001, 0b111, 0b011, 0b111, False), FOLLOWS), False),
        (0b111, GroupState.STABLE, ("", ""), ((0b001, 0b111, 0b011, 0b011, False), FOLLOWS), False),
        (0b111, GroupState.STABLE, ("", ""), ((0b001, 0b001, 0b001, 0b001, False), NOBODY), True),
        (0b111, GroupState.STABLE, ("", ""), ((0b001, 0b001, 0b111, 0b111, False), NOBODY), True),
        (0b101, GroupState.STABLE, ("", ""), ((0b101, 0b111, 0b101, 0b111, False), NOBODY), True),
    ],
)
def test_when_a_group_has_settled(
    cluster: int, state: GroupState, amiss: tuple[str, ...], shares: tuple[Any, ...], settled: bool
):
    [rule] = rules(GROUP).finally_
    assert rule.views == ("cluster", "group", "settled A", "settled B", "share A", "share B")
    assert rule.holds(cluster, state, *amiss, *shares) is settled


@pytest.mark.parametrize(
    ("assignor", "members", "budget", "most"),
    [
        ("cooperative-sticky", 1, 0, 1),
        ("cooperative-sticky", 2, 0, 3),
        ("cooperative-sticky", 4, 0, 6),
        ("cooperative-sticky", 1, 2, 5),
        ("cooperative-sticky", 2, 2, 9),
        ("range", 2, 0, 2),
        ("range", 2, 2, 6),
    ],
)
def test_most_rounds(assignor: str, members: int, budget: int, most: int):
    of = replace(group(assignor, members), budget=budget)
    assert most_rounds(of) == most
    [rule] = rules(of).bounded
    assert rule.most == most
    assert [rule.counts(Event(name, -1, "")) for name in ("join phase ends", "failover")] == [True, False]


@pytest.mark.parametrize("name", WITNESSES)
def test_a_witness_is_shown_by_what_is_noted_and_by_nothing_else(name: str):
    other = (Noted("something"), call(Call.REVOKED, 0b01), Repeated(A, False))
    special = {"partitions lost": call(Call.LOST), "static member replaced": RETURNED}
    assert list(rules(GROUP).shown(STEP, other)) == []
    assert list(rules(GROUP).shown(STEP, (*other, special.get(name, Noted(name))))) == [name]


# -- what is written of it -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (checks.owner(GROUP, "A", "B", 0b011, 0b110), "t-1 is owned by A and by B"),
        (checks.commit(GROUP, "A", "B", 0b011, 0b110), "A can commit for t-1, which B owns"),
        (
            checks.lost(GROUP, call(REVOKED, 1, reset=True)),
            f"A has no membership, {REVOKED_FOR_LOST}",
        ),
        (
            checks.lost(GROUP, call(REVOKED, 1, midway=True)),
            f"A leaves in the middle of a rebalance, {REVOKED_FOR_LOST}",
        ),
        (
            checks.assigned(GROUP, (call(Call.ASSIGNED, 0b011, believed=Parts(0b110)),)),
            "A is assigned t-1 a second time",
        ),
        (
            checks.vote(GROUP, Elected("sticky", (("range", "sticky"), ("range",)))),
            "sticky is selected, which not every member supports",
        ),
        (
            checks.withhold(GROUP, decided(((0b01, 3), (0b01, 3)), (0b01, 0))),
            "t-0 goes to A while B holds it",
        ),
        (
            checks.stale(GROUP, decided(((0b01, 3), (0b01, 2)), (0, 0b01))),
            "B claims t-0 from generation 2 and gets it, A has it from generation 3",
        ),
        (checks.grant(GROUP, decided(((0, -1), (0, -1)), (0b011, 0b110))), "t-1 is granted twice"),
        (
            checks.grant(GROUP, decided(((0, -1),), (0b001,), wanted=0b100)),
            "A gets t-0 without subscribing to it",
        ),
        (
            checks.revoked(GROUP, call(REVOKED, 0b11, believed=Parts(0b01))),
            "A revokes t-1, which it was never given",
        ),
        (
            checks.static(GROUP, RETURNED._replace(owed=True)),
            "A returns with the same subscription, a revocation pending, and starts no rebalance",
        ),
        (
            checks.static(GROUP, RETURNED._replace(changed=True)),
            "A returns with another subscription and starts no rebalance",
        ),
        (
            checks.static(GROUP, RETURNED._replace(rebalances=True)),
            "A returns with the same subscription and starts rebalance",
        ),
        (
            checks.membership(GROUP, ANSWER._replace(rejoin=False)),
            "A hears sync UNKNOWN_MEMBER_ID and does not rejoin",
        ),
        (
            checks.membership(GROUP, ANSWER._replace(reset=False)),
            "A hears sync UNKNOWN_MEMBER_ID and stays a member",
        ),
    ],
)
def test_a_breach_says_who_and_what(text: str | None, says: str):
    assert text == says
