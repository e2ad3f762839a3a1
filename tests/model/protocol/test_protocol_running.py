"""Who acts at all: only a process that runs polls, its heartbeats go on while a call hangs, and so on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from rebalance.model.protocol.state import (
    Error,
    Generation,
    Group,
    GroupState,
    Id,
    Late,
    Life,
    Member,
    MemberRecord,
    MemberState,
    Parts,
    Refused,
    Slot,
    SyncOk,
    Topics,
)

from tests.model.protocol.small_groups import EVERY_FAULT, PlayedGroup, meta, setup, stable

COMPLETING, PREPARING = MemberState.COMPLETING, MemberState.PREPARING
G3 = Generation(3)
ONE = PlayedGroup(setup(1, faults=EVERY_FAULT, budget=2))
CHOOSING = setup(1, topics=(0b01, 0b10), faults=("resubscribe",))
TWO_TOPICS = PlayedGroup(
    replace(CHOOSING, consumers=(replace(CHOOSING.consumers[0], subscriptions=(Topics(3), Topics(1))),))
)
RESTING, WANTING = stable(owned=0b01), stable(owned=0b01, rejoin=True)
SYNCING = stable(state=COMPLETING, rejoin=True, prepare=False)
RECEIVED = stable(owned=0b01, received=Parts(0b10), prepare=False)
SETTLED = {
    "group": Group(GroupState.STABLE, G3, Id(Slot(0), 1), "cooperative-sticky"),
    "record_A": (MemberRecord(1, meta(), Parts(0b01), synced=True),),
}
GONE: dict[str, Any] = {"group": Group(GroupState.EMPTY, G3)}
POLLS, RUNS, BEATS, ANY = (Life.UP,), (Life.UP,), (Life.UP, Life.HUNG), (Life.UP, Life.PAUSED, Life.HUNG)
HEARS = (Life.UP, Life.HUNG, Life.DOWN, Life.FAILED)
"""Nobody is there to be told; the answer goes all the same."""

ACTS: tuple[tuple[str, Member, dict[str, Any], tuple[Life, ...]], ...] = (
    ("join", WANTING, {}, POLLS),
    ("receive", SYNCING, {"wire_A": SyncOk(1, G3, Parts(0b01))}, POLLS),
    ("receive", SYNCING, {"wire_A": Refused("sync", Error.REBALANCE_IN_PROGRESS, 1, G3)}, POLLS),
    ("complete", RECEIVED, {}, POLLS),
    ("listener throws", RECEIVED, {}, POLLS),
    ("slow commit", WANTING, {}, POLLS),
    ("commit done", WANTING._replace(committing=True), {}, POLLS),
    ("commit refused", WANTING._replace(committing=True), GONE, POLLS),
    ("prepare", SYNCING._replace(prepare=True), {"wire_A": SyncOk(1, G3, Parts(0))}, POLLS),
    ("enforce", RESTING, {}, POLLS),
    ("unsubscribe", RESTING, SETTLED, POLLS),
    ("close", RESTING, SETTLED, POLLS),
    ("hang", RESTING, {}, POLLS),
    ("subscribe", RESTING._replace(topics=Topics(0)), {}, POLLS),
    ("refresh", RESTING._replace(view=Parts(0)), {}, RUNS),
    ("pause", RESTING, {}, RUNS),
    ("heartbeat", RESTING, GONE, BEATS),
    ("late request", RESTING, SETTLED, BEATS),
    ("max poll", RESTING, SETTLED, BEATS),
    ("crash", RESTING, {}, ANY),
    ("resume", RESTING, {}, (Life.PAUSED,)),
    ("poll interval", RESTING, SETTLED, (Life.HUNG,)),
    ("start", Member(), {}, (Life.DOWN, Life.FAILED)),
    ("late answer", RESTING, {"stray_A": Refused("heartbeat", Error.UNKNOWN_MEMBER_ID, 1, G3)}, HEARS),
)


@pytest.mark.parametrize(("action", "member", "more", "lives"), ACTS, ids=[one[0] for one in ACTS])
def test_who_acts(action: str, member: Member, more: dict[str, Any], lives: tuple[Life, ...]):
    possible = [life for life in Life if ONE.steps(action, member_A=member._replace(life=life), **more)]
    assert possible == [life for life in Life if life in lives]


STUCK = [one for one in ACTS if one[3] is POLLS and one[0] != "hang"]


@pytest.mark.parametrize(
    ("action", "member", "more"), [one[:3] for one in STUCK], ids=[one[0] for one in STUCK]
)
def test_a_thread_that_waits_for_ever_does_not_act(action: str, member: Member, more: dict[str, Any]):
    assert ONE.steps(action, member_A=member._replace(stuck=True), **more) == []


def test_another_subscription_takes_a_poll_and_a_subscription():
    some = stable(owned=0b01, topics=Topics(0b11), joined_topics=Topics(0b11))
    assert len(TWO_TOPICS.steps("resubscribe", member_A=some)) == 1
    assert TWO_TOPICS.steps("resubscribe", member_A=some._replace(life=Life.PAUSED)) == []
    assert TWO_TOPICS.steps("resubscribe", member_A=some._replace(topics=Topics(0))) == []


# -- what is under way ---------------------------------------------------------------------------------


def test_of_a_member_one_late_request_is_under_way_at_a_time():
    sent = ONE.steps("late request", member_A=RESTING, **SETTLED)
    assert [step.choice for step in sent] == ["heartbeat", "commit"]
    for step in sent:
        assert ONE.steps("late request", member_A=RESTING, stray_A=step.after["stray A"], **SETTLED) == []


def test_only_who_has_nothing_to_wait_for_commits_late():
    sent = ONE.steps("late request", member_A=SYNCING, **SETTLED)
    assert [step.choice for step in sent] == ["heartbeat"]


def test_an_answer_without_an_error_is_none():
    late = Late("heartbeat", 1, G3)
    assert (
        ONE.step("late request arrives", member_A=RESTING, stray_A=late, **SETTLED).after["stray A"] is None
    )


def test_an_enforced_rebalance_asks_once():
    rejoining = ONE.step("enforce", member_A=RESTING).after["member A"]
    assert rejoining.rejoin
    assert ONE.steps("enforce", member_A=rejoining) == []
    swallowed = ONE.step("enforce", member_A=SYNCING).after["member A"]
    assert swallowed.enforced
    assert ONE.steps("enforce", member_A=swallowed) == []
    assert ONE.steps("enforce", member_A=RESTING._replace(id=0)) == []
    assert ONE.steps("enforce", member_A=stable(state=PREPARING, rejoin=True)) == []


def test_a_leader_that_hangs_in_its_assignor_is_left_to_the_coordinator():
    """Its heartbeat thread sees no poll that is late as long as the SyncGroup has not been sent."""
    inside = SYNCING._replace(life=Life.HUNG)
    assigning = {"group": Group(GroupState.COMPLETING, G3, Id(Slot(0), 1), "cooperative-sticky")}
    records = {"record_A": SETTLED["record_A"]}
    assert ONE.steps("poll interval", member_A=inside, **assigning, **records) == []
    assert ONE.steps("poll interval", member_A=inside, **SETTLED)
