"""Bounces of a rolling upgrade: who may be stopped when, and what it is started as."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from rebalance_verifier.model.classic import state as s
from rebalance_verifier.model.group import parts as p
from rebalance_verifier.model.group.setup import Consumer, ConsumerConfig

from tests.model.classic.small_groups import BOTH, COOPERATIVE, EAGER, PlayedGroup, meta, setup, stable

STAGES = (EAGER, BOTH, COOPERATIVE)
DYNAMIC, STATIC = PlayedGroup(setup(lists=STAGES)), PlayedGroup(setup(lists=STAGES, static=True))
GROUP = s.Group(p.GroupState.STABLE, p.Generation(3), p.Id(p.Slot(1), 1), "range")


def knows(assignors: tuple[str, ...], number: int = 1) -> tuple[s.MemberRecord, ...]:
    return (s.MemberRecord(number, meta(assignors), p.Parts(0b01), synced=True),)


def bounced(game: PlayedGroup, stage: int, other: int, **more: Any) -> list[dict[str, Any]]:
    """What a bounce of A in ``stage`` makes of the group, while B has finished ``other`` bounces."""
    values = {"member_A": stable(owned=0b01, stage=stage), "group": GROUP, "rollout_A": stage, **more}
    return [step.after for step in game.steps("bounce", rollout_B=other, **values)]


@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize("stage", [0, 1])
def test_a_bounce_closes_and_starts_as_the_next(stage: int, static: bool):
    game = STATIC if static else DYNAMIC
    [after] = bounced(game, stage, stage, record_A=knows(STAGES[stage]), wire_A=s.Join(1, meta()))
    assert (after["member A"], after["rollout A"]) == (s.Member(stage=stage + 1), stage + 1)
    assert (after["rollout B"], after["wire A"]) == (stage, None)
    assert after["record A"] == (knows(STAGES[stage]) if static else ())
    started = game.step("start", member_A=after["member A"]).after["member A"]
    assert (started.life, started.stage) == (p.Life.UP, stage + 1)
    joins = game.step("join", member_A=started).after["wire A"]
    assert joins.meta.assignors == STAGES[stage + 1]


def test_the_last_stage_is_the_last():
    assert bounced(DYNAMIC, 2, 2) == []


def test_nobody_begins_a_stage_before_all_have_finished_the_one_before():
    assert bounced(DYNAMIC, 1, 0) == []
    assert bounced(DYNAMIC, 1, 1)
    assert bounced(DYNAMIC, 1, 2)
    assert bounced(DYNAMIC, 0, 1)


def test_only_who_runs_is_stopped():
    assert bounced(DYNAMIC, 0, 0, member_A=stable(life=p.Life.PAUSED)) == []
    assert bounced(DYNAMIC, 1, 1, member_A=stable(stage=0)) == []


@pytest.mark.parametrize(
    ("theirs", "possible"),
    [(EAGER, False), (BOTH, True), (COOPERATIVE, True)],
)
def test_a_static_member_that_is_away_holds_up_the_next_stage(theirs: tuple[str, ...], possible: bool):
    """The coordinator still knows it with the list that the others are to leave behind."""
    assert bool(bounced(STATIC, 1, 1, record_A=knows(BOTH), record_B=knows(theirs))) is possible


def test_and_so_does_its_own_record():
    assert bounced(STATIC, 1, 1, record_A=knows(EAGER)) == []
    assert bounced(DYNAMIC, 1, 1, record_A=knows(EAGER), record_B=knows(EAGER))


def test_an_id_that_is_only_pending_holds_up_nothing():
    assert bounced(STATIC, 1, 1, record_A=knows(BOTH), record_B=(s.MemberRecord(1, None),))


@pytest.mark.parametrize("lists", [(EAGER, EAGER, BOTH), (EAGER, BOTH, EAGER)])
def test_a_list_that_stays_holds_up_nothing(lists: tuple[tuple[str, ...], ...]):
    """And before the first bounce there is none to be left."""
    game = PlayedGroup(setup(lists=lists, static=True))
    stage = 1 if lists[0] == lists[1] else 0
    assert bounced(game, stage, stage, record_A=knows(EAGER), record_B=knows(EAGER))


def test_before_its_first_bounce_a_member_has_left_no_list():
    game = PlayedGroup(setup(lists=(EAGER, BOTH, BOTH), static=True))
    assert bounced(game, 0, 1, record_B=knows(BOTH))


# -- the stage that a process is of --------------------------------------------------------------------


@pytest.mark.parametrize("action", ["crash", "close", "unsubscribe"])
def test_who_stops_is_of_its_stage_still(action: str):
    game = PlayedGroup(setup(1, lists=STAGES, faults=(action,)))
    after = game.step(action, member_A=stable(stage=1), group=GROUP, record_A=knows(BOTH)).after["member A"]
    assert after.stage == 1


def test_who_fails_is_of_its_stage_still():
    game = PlayedGroup(setup(1, lists=STAGES))
    refused = s.Refused("join", p.Error.INCONSISTENT_GROUP_PROTOCOL, 1)
    waiting = stable(stage=1, state=p.MemberState.PREPARING, rejoin=True)
    after = game.step("receive", member_A=waiting, wire_A=refused).after["member A"]
    assert (after.life, after.stage) == (p.Life.FAILED, 1)


# -- what a consumer is configured as ------------------------------------------------------------------


def test_assignors_without_a_common_protocol_are_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("rebalance_verifier.model.group.setup._protocols", lambda name: (name,))
    with pytest.raises(ValueError, match="no rebalance protocol in common"):
        _ = ConsumerConfig(assignors=("range", "cooperative-sticky")).eager


def test_upgrade_from_makes_it_eager():
    """KIP-429, the upgrade path of Streams."""
    assert ConsumerConfig(assignors=COOPERATIVE, upgrade_from=True).eager
    assert not ConsumerConfig(assignors=COOPERATIVE).eager


@pytest.mark.parametrize(
    ("instances", "shared"), [((None, None), False), ((1, None), False), ((1, 2), False), ((1, 1), True)]
)
def test_an_instance_id_is_of_one_consumer(instances: tuple[int | None, ...], shared: bool):
    one = setup()
    consumers = tuple(
        Consumer(stages=consumer.stages, subscriptions=(p.Topics(1),), instance=instance)
        for consumer, instance in zip(one.consumers, instances, strict=True)
    )
    if shared:
        with pytest.raises(ValueError, match="share a group"):
            PlayedGroup(replace(one, consumers=consumers))
    else:
        assert PlayedGroup(replace(one, consumers=consumers))
