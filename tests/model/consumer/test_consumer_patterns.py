"""Subscriptions by pattern in a consumer group: what a heartbeat brings, what is resolved, and what calls for
a new target."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from rebalance_verifier.explore.groups.scenarios import SCENARIOS, ScenarioError
from rebalance_verifier.model.consumer import coordinator, member
from rebalance_verifier.model.consumer import state as s
from rebalance_verifier.model.consumer.conversion import counted, subscribed
from rebalance_verifier.model.consumer.group import foreign, settled
from rebalance_verifier.model.consumer.observations import Targeted
from rebalance_verifier.model.group.parts import NONE, ClusterState, Generation, Life, Parts, Slot, Topics
from rebalance_verifier.model.group.setup import MemberContext, Setup
from rebalance_verifier.model.machine import Event
from rebalance_verifier.model.protocols import machine
from rebalance_verifier.properties.group import consumer_checks

SETUP = SCENARIOS["consumer-patterns"].setup()
"""t0 with two partitions; t1 comes with one."""

T0, T1, BOTH = Topics(0b01), Topics(0b10), Topics(0b11)
EXIST, ALL = Parts(0b011), Parts(0b111)
GROUP = s.ConsumerGroup(s.GroupKind.CONSUMER, Generation(3), Generation(3), EXIST, counted=EXIST)


def record(number: int = 1, **fields: Any) -> s.ConsumerRecord:
    usual: dict[str, Any] = {"epoch": Generation(3), "pattern": BOTH, "matched": T0}
    return s.ConsumerRecord(number, **usual | fields)


def beat(topics: int = 0, pattern: int = 0) -> s.Beat:
    return s.Beat(s.BeatKind.STEADY, 1, Generation(3), Parts(0), True, Topics(topics), Topics(pattern))


def having(*mistakes: str) -> Setup:
    return replace(SETUP, coordinator=frozenset(mistakes))


def test_the_last_topic_of_the_scenario_is_not_there_at_first() -> None:
    assert (SETUP.topics, SETUP.exist) == ((Parts(0b011), Parts(0b100)), EXIST)
    assert SETUP.consumers[0].choices == ((0, BOTH), (0, T1), (T0, 0))
    assert SETUP.consumers[1].choices == ((T0, BOTH), (T0, 0))
    with pytest.raises(ScenarioError, match="at least 2 topics and 1 spare partition"):
        replace(SCENARIOS["consumer-patterns"], spare=0).setup()


@pytest.mark.parametrize(("cluster", "found"), [(EXIST, T0), (ALL, BOTH), (Parts(0b100), T1), (0, 0)])
def test_a_pattern_matches_the_topics_that_there_are(cluster: Parts, found: Topics) -> None:
    assert SETUP.matching(BOTH, cluster) == found
    assert SETUP.matching(T0, cluster) == found & T0


def test_a_client_says_its_pattern_and_may_change_it() -> None:
    me = MemberContext(Slot(0), SETUP)
    client: Any = next(iter(member.start(me, s.ConsumerMember(), None, None, ()))).values[0]
    said: Any = next(iter(member.send(me, client, None))).values[1]
    assert said == s.Beat(s.BeatKind.JOIN, 1, NONE, Parts(0), True, Topics(0), BOTH)
    steady = client._replace(state=s.ClientState.STABLE, epoch=Generation(3), full=True)
    said = next(iter(member.send(me, steady, None))).values[1]
    assert (said.topics, said.pattern) == (0, BOTH)
    others: list[Any] = list(member.resubscribe(me, 1, client))
    assert [(o.values[1].topics, o.values[1].pattern) for o in others] == [(0, T1), (T0, 0)]
    assert [o.choice for o in others] == ["topics 0 pattern 2", "topics 1"]
    assert list(member.unsubscribe(me, 1, client, None, None, GROUP, ClusterState(EXIST), (), ()))


# -- what a heartbeat brings ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "said", "after"),
    [
        (record(), beat(pattern=BOTH), record()),
        (record(), beat(pattern=T1), record(pattern=T1, matched=None)),
        (record(pattern=T1, matched=None), beat(pattern=BOTH), record()),  # B has it, resolved
        (record(), beat(T0), record(topics=T0, pattern=Topics(0), matched=None)),
    ],
)
def test_a_pattern_of_another_member_is_resolved_already(
    before: s.ConsumerRecord, said: s.Beat, after: s.ConsumerRecord
) -> None:
    assert coordinator.subscribed_anew(before, said, ((before,), (record(),))) == after


NEW, RESOLVED, ENDED = beat(pattern=T1), beat(pattern=BOTH), beat()


@pytest.mark.parametrize(
    ("said", "before", "mistake", "raised"),
    [
        (RESOLVED, record(), "", False),
        (NEW, record(), "", True),
        (NEW, record(), "new_pattern_keeps_target", False),
        (RESOLVED, record(pattern=T1), "new_pattern_keeps_target", True),
        (ENDED, record(), "", True),
        (ENDED, record(), "ended_pattern_keeps_target", False),
        (ENDED, record(), "new_pattern_keeps_target", True),
        (beat(T0), record(), "ended_pattern_keeps_target", True),
    ],
)
def test_another_subscription_calls_for_a_target(
    said: s.Beat, before: s.ConsumerRecord, mistake: str, raised: bool
) -> None:
    book = ((before,), (record(),))
    group, _ = coordinator.news(having(mistake), GROUP, book, before, said, EXIST)
    assert group.epoch == GROUP.epoch + raised


def test_a_member_that_has_nothing_now_takes_a_step_as_shipped() -> None:
    shipped = having("new_pattern_keeps_target", "previous_epoch_overwritten")
    for before, previous in (
        (record(previous=Generation(2)), 3),
        (record(previous=Generation(2), topics=T0), 2),
        (record(previous=Generation(2), state=s.RecordState.UNRELEASED), 2),
    ):
        said = beat(before.topics, T1)
        _, after = coordinator.news(shipped, GROUP, ((before,), ()), before, said, EXIST)
        assert after.previous == previous


def test_metadata_of_topics_of_a_pattern_counts_but_for_a_mistake() -> None:
    grown, mine = Parts(0b001), record()
    for mistake, raised, known in (("", True, grown), ("pattern_topics_unwatched", False, EXIST)):
        group, _ = coordinator.news(having(mistake), GROUP, ((mine,), ()), mine, RESOLVED, grown)
        assert (group.epoch, group.known) == (GROUP.epoch + raised, known)
    named = record(topics=T0)
    said = beat(T0, BOTH)
    group, _ = coordinator.news(having("pattern_topics_unwatched"), GROUP, ((named,), ()), named, said, grown)
    assert group.epoch == GROUP.epoch + 1


# -- what is resolved ----------------------------------------------------------------------------------


def resolved(
    mine: s.ConsumerRecord, other: s.ConsumerRecord, cluster: Parts, group: s.ConsumerGroup = GROUP
) -> list[tuple[int, Topics | None, Topics | None]]:
    outcomes: list[Any] = list(coordinator.resolve(SETUP, group, ClusterState(cluster), (mine,), (other,)))
    found = [outcome.values for outcome in outcomes]
    return [(after.epoch - group.epoch, a.matched, b.matched) for after, (a,), (b,) in found]


NAMED = record(topics=T0, pattern=Topics(0), matched=None)
OF_T1 = NAMED._replace(topics=T1)


@pytest.mark.parametrize(
    ("mine", "other", "cluster", "found"),
    [
        (record(), NAMED, EXIST, []),
        (record(), record(), ALL, [(1, BOTH, BOTH)]),  # one epoch for all
        (record(matched=None), NAMED, EXIST, [(1, T0, None)]),
        (record(pattern=T1, matched=None), NAMED, EXIST, [(0, 0, None)]),  # nothing, as before
        (record(pattern=T1, matched=None), OF_T1, EXIST, [(1, 0, None)]),  # nobody has t0 any more
        (record(), NAMED, Parts(0b100), [(1, T1, None)]),
        (record(), NAMED, Parts(0), []),  # a topic that is gone is known by its metadata
    ],
)
def test_patterns_are_resolved_where_they_are_new_and_when_a_topic_comes(
    mine: s.ConsumerRecord, other: s.ConsumerRecord, cluster: Parts, found: list[Any]
) -> None:
    assert resolved(mine, other, cluster) == found


def test_patterns_are_resolved_in_a_consumer_group_only() -> None:
    assert resolved(record(), NAMED, ALL, GROUP._replace(kind=s.GroupKind.NONE)) == []


def test_the_metadata_of_a_group_is_that_of_its_topics() -> None:
    book = ((record(),), (record(topics=T1, pattern=Topics(0), matched=None),))
    assert subscribed(book) == BOTH
    assert counted(SETUP, GROUP._replace(known=ALL), book).counted == ALL
    assert counted(SCENARIOS["consumer"].setup(), GROUP, book) is GROUP


# -- targets -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("book", "same"),
    [
        ((), True),
        (((record(),), (record(2),)), True),
        (((record(topics=T0),), (record(2, topics=T0),)), False),  # by both, which Kafka counts as different
        (((NAMED,), (NAMED,)), True),
        (((NAMED,), (record(),)), False),
    ],
)
def test_members_are_alike_by_name_or_by_pattern(book: Any, same: bool) -> None:
    assert coordinator.alike(book) is same


def test_a_member_with_a_new_pattern_passes_for_one_of_the_others() -> None:
    """B has t0 by name, and a target is due as A joins with a pattern that nothing matches."""
    both = ("new_pattern_keeps_target", "stale_subscription_type")
    joins = s.Beat(s.BeatKind.JOIN, 1, NONE, Parts(0), True, Topics(0), T1)
    due, of_b = GROUP._replace(epoch=Generation(4)), NAMED._replace(target=EXIST)
    targets = {}
    for mistakes in (both[:1], both):
        me = MemberContext(Slot(0), having(*mistakes))
        done = list(coordinator.heartbeat(me, joins, due, ((), (of_b,)), EXIST))
        targets[mistakes] = {tuple(one.target for (one,) in each.book) for each in done}
        wrong = [seen for each in done for seen in each.seen if isinstance(seen, Targeted)]
        told = {consumer_checks.targeted(SETUP, seen) for seen in wrong}
        assert any(told) is (mistakes == both)
    assert targets[both[:1]] == {(0, EXIST)}
    assert targets[both] == {(0, EXIST), (0b01, 0b10), (0b10, 0b01), (0, 0)}


def test_who_has_a_pattern_has_settled_when_it_is_resolved() -> None:
    client = s.ConsumerMember(
        life=Life.UP, state=s.ClientState.STABLE, id=1, epoch=Generation(3), pattern=BOTH
    )
    assert settled(client, None, GROUP, (record(),)) == ""
    assert settled(client, None, GROUP, (record(matched=None),))
    assert settled(client, None, GROUP, (record(pattern=T1),))


@pytest.mark.parametrize(
    ("group", "mine", "parts"),
    [
        (GROUP, record(target=EXIST), 0),
        (GROUP, record(target=ALL), 0b100),
        (GROUP, record(target=EXIST, pattern=T1, matched=Topics(0)), EXIST),
        (GROUP, record(target=EXIST, pattern=T1, matched=None), 0),  # it may match them yet
        (GROUP._replace(epoch=Generation(4)), record(target=ALL), 0),  # another target is due
        (GROUP._replace(kind=s.GroupKind.NONE), record(target=ALL), 0),
    ],
)
def test_what_a_target_keeps_for_a_member_that_does_not_want_it(
    group: s.ConsumerGroup, mine: s.ConsumerRecord, parts: int
) -> None:
    assert foreign(SETUP, group, (mine,), ()) == parts
    assert bool(consumer_checks.called(SETUP, Parts(parts))) is bool(parts)


@pytest.mark.parametrize(
    ("name", "who", "text"),
    [
        ("migration", 0, "A starts, subscribed to t"),
        ("migration", 1, "B starts, subscribed to t"),
        ("consumer-patterns", 0, "A starts, subscribed to a pattern for t0 t1"),
        ("consumer-patterns", 1, "B starts, subscribed to t0 and a pattern for t0 t1"),
    ],
)
def test_a_start_says_what_is_subscribed_to_in_either_protocol(name: str, who: int, text: str) -> None:
    built = machine(SCENARIOS[name].setup())
    state, event = built.initial[0], Event("start", who)
    outcome = built.outcome(state, event)
    assert outcome is not None
    sentence, _ = built.describe.step(state, event, built.apply(state, event, outcome), outcome.seen)
    assert sentence == text
