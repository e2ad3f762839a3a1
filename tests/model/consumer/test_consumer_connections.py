"""Connections of a consumer group that break: a heartbeat of one arrives after those of the next."""

from __future__ import annotations

from typing import Any

import pytest
from rebalance_verifier.explore.groups.scenarios import SCENARIOS, ScenarioSize
from rebalance_verifier.model.consumer import state as s
from rebalance_verifier.model.consumer.connections import connection_of, not_overtaken, which
from rebalance_verifier.model.consumer.group import consumer_machine
from rebalance_verifier.model.group import parts as p
from rebalance_verifier.model.group.setup import MemberContext, Setup
from rebalance_verifier.model.machine import Event, State

BELIEVED = "overtaken_heartbeat_believed"


def group(*switches: str, name: str = "consumer-connections", steps: str = "fine", **size: Any) -> Setup:
    chosen: dict[str, Any] = {"members": 2, "partitions": 2, "faults": ("left behind", "crash"), "budget": 3}
    return SCENARIOS[name].setup(ScenarioSize(switches=switches, steps=steps, **chosen | size))


class Run:
    """A run of a machine, event by event."""

    def __init__(self, of: Setup) -> None:
        self.built = consumer_machine(of)
        self.state: State = self.built.initial[0]

    def does(self, *steps: str) -> Run:
        """Steps such as ``A heartbeat``; of several outcomes the one whose choice is behind a slash."""
        for step in steps:
            text, _, choice = step.partition(" / ")
            who, _, action = text.partition(" ")
            self.state = self.built.step(self.state, Event(action, ord(who) - ord("A"), choice))
        return self

    def can(self, action: str) -> bool:
        return any(event.action == action for event in self.built.enabled(self.state))

    def value(self, name: str) -> Any:
        return self.built.value(self.state, name)


LEFT = ("A start", "A heartbeat", "A left behind", "A answer")
JOINS = ("A heartbeat", "A heartbeat arrives / A t-0 t-1", "A answer", "A reconcile", "A assign")
COMES = ("B start", "B heartbeat", "B heartbeat arrives / A t-0, B t-1", "B answer")


def test_where_connections_hold_nothing_is_known_of_them():
    assert "behind A" not in consumer_machine(group(faults=("disconnect",))).components


def test_what_is_left_behind_is_still_under_way_and_its_sender_sends_again():
    run = Run(group()).does(*LEFT)
    [left] = run.value("behind A")
    assert left.kind is s.BeatKind.JOIN
    assert run.value("wire A") is None
    run.does("A heartbeat")
    assert isinstance(run.value("wire A"), s.Beat)
    assert run.value("behind A") == (left,)


def test_it_has_its_effect_and_nobody_hears_the_answer():
    run = Run(group()).does(*LEFT, "A left heartbeat arrives / A t-0 t-1")
    [record] = run.value("record A")
    assert (record.epoch, record.assigned) == (1, 3)
    assert (run.value("wire A"), run.value("behind A")) == (None, ())
    assert run.value("member A").epoch == p.NONE


def test_as_specified_a_later_one_overtakes_it():
    run = Run(group()).does(*LEFT, *JOINS)
    assert run.value("behind A") == ()
    assert not run.can("left heartbeat arrives")


def test_no_kafka_notices():
    run = Run(group(BELIEVED)).does(*LEFT, *JOINS, *COMES)
    assert (run.value("member A").owned, run.value("record B")[0].assigned) == (3, 0)
    run.does("A left heartbeat arrives")
    [record] = run.value("record A")
    assert (record.state, record.assigned, record.pending) == (s.RecordState.STABLE, 1, 0)
    run.does("B heartbeat", "B heartbeat arrives")
    assert run.value("record B")[0].assigned & run.value("member A").owned == 2


def test_the_news_in_an_answer_that_nobody_hears_is_not_given_again():
    run = Run(group(BELIEVED)).does("A start", *JOINS, "A acknowledge", "A heartbeat", "A left behind")
    run.does("A answer", "A heartbeat", "A heartbeat arrives", "A answer", *COMES)
    run.does("A left heartbeat arrives")
    assert run.value("record A")[0].state is s.RecordState.UNREVOKED
    run.does("A heartbeat", "A heartbeat arrives")
    assert run.value("wire A").parts is None


def test_it_is_drawn_as_lost_and_when_it_arrives():
    built = consumer_machine(group(BELIEVED, steps="atomic"))
    state, drawn = built.initial[0], []
    for event in (
        *(Event("start", 0), Event("heartbeat", 0, "A t-0 t-1"), Event("heartbeat left behind", 0)),
        Event("left heartbeat arrives", 0),
    ):
        outcome = built.outcome(state, event)
        assert outcome is not None
        after = built.apply(state, event, outcome)
        drawn += [one.sentence for one in built.describe.details(state, event, after, outcome.seen).messages]
        state = after
    assert drawn[-2:] == [
        "ConsumerGroupHeartbeat of generation 1 of A, which gets lost",
        "ConsumerGroupHeartbeat of generation 1 of A: of a broken connection",
    ]


def test_what_a_process_had_sent_is_under_way_when_the_next_one_starts_under_another_id():
    run = Run(group()).does("A start", "A heartbeat", "A crash", "A start")
    assert [beat.id for beat in run.value("behind A")] == [1]
    assert run.value("member A").id == 2


def test_of_two_the_oldest_is_named_first_and_the_younger_overtakes_it():
    run = Run(group()).does(*LEFT, "A heartbeat", "A left behind", "A answer")
    choices = {event.choice for event in run.built.enabled(run.state) if event.action.startswith("left h")}
    assert {connection_of(choice) for choice in choices} == {0, 1}
    assert len(run.does("A left heartbeat arrives / connection 1 A t-0 t-1").value("behind A")) == 1
    run = Run(group()).does(*LEFT, "A heartbeat", "A left behind", "A answer")
    assert run.does("A left heartbeat arrives / connection 2 A t-0 t-1").value("behind A") == ()


def test_without_every_field_it_says_nothing_of_the_subscription():
    faults = ("left behind", "resubscribe")
    size: dict[str, Any] = {"name": "consumer-topics", "members": 1, "partitions": 2, "faults": faults}
    joined: tuple[str, ...] = (
        "A start",
        "A heartbeat",
        "A heartbeat arrives / A t0-0 t1-0",
        "A answer",
        "A reconcile",
    )
    joined += ("A assign", "A acknowledge", "A heartbeat", "A heartbeat arrives", "A answer")
    run = Run(group(BELIEVED, **size)).does(*joined, "A heartbeat", "A left behind", "A answer")
    again = ("A resubscribe / topics 1", "A heartbeat", "A heartbeat arrives / A t0-0", "A answer")
    run.does(*again, "A left heartbeat arrives")
    assert run.value("record A")[0].topics == run.value("member A").topics == 1


def beat(member_id: int) -> s.Beat:
    return s.Beat(s.BeatKind.STEADY, member_id, p.Generation(1), None, True, p.Topics(1))


@pytest.mark.parametrize(
    ("name", "switches", "refused", "left"),
    [
        ("consumer-connections", (), False, [2]),
        ("consumer-connections", (), True, [1, 2]),
        ("consumer-connections", (BELIEVED,), False, [1, 2]),
        ("consumer-static", (), False, []),
    ],
)
def test_only_those_of_the_same_member_or_instance_are_overtaken(name, switches, refused, left):
    me = MemberContext(p.Slot(0), group(*switches, name=name))
    answer = (
        s.BeatRefused(1, s.BeatError.FENCED_MEMBER_EPOCH) if refused else s.BeatOk(1, p.Generation(1), None)
    )
    kept = not_overtaken(me, (beat(1), beat(2)), beat(1), answer)
    assert [one.id for one in kept] == left


def test_a_single_connection_has_no_number():
    assert (which((beat(1),), 0), which((beat(1), beat(2)), 1)) == ("", "connection 2")
