"""Timers, failovers and topics of a consumer group: which may happen to whom, and what is left behind."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from rebalance_verifier.explore.groups.scenarios import SCENARIOS, ScenarioSize
from rebalance_verifier.model.consumer import environment
from rebalance_verifier.model.consumer import state as s
from rebalance_verifier.model.group.observations import Expelled, Noted
from rebalance_verifier.model.group.parts import NONE, ClusterState, Generation, Life, Parts, Slot, Topics
from rebalance_verifier.model.group.setup import MemberContext
from rebalance_verifier.model.protocols import machine
from rebalance_verifier.properties.group import consumer_checks

BOTH = Parts(0b11)
GROUP = s.ConsumerGroup(s.GroupKind.CONSUMER, Generation(3), Generation(3), BOTH)
SETUP = SCENARIOS["consumer"].setup(ScenarioSize(members=2, partitions=2))
ME = MemberContext(Slot(0), SETUP)


def member(**fields: Any) -> s.ConsumerMember:
    usual: dict[str, Any] = {"life": Life.UP, "state": s.ClientState.STABLE, "id": 1, "epoch": Generation(3)}
    return s.ConsumerMember(**usual | {"owned": BOTH, "topics": Topics(1)} | fields)


def record(number: int = 1, **fields: Any) -> s.ConsumerRecord:
    usual: dict[str, Any] = {"epoch": Generation(3), "assigned": BOTH, "target": BOTH, "topics": Topics(1)}
    return s.ConsumerRecord(number, **usual | fields)


# -- sessions ------------------------------------------------------------------------------------------

AT_WORK = (
    member(),
    member(life=Life.HUNG),
    member(state=s.ClientState.FENCED),
    member(state=s.ClientState.JOINING),
)
SILENT = (
    *(member(life=life) for life in (Life.DOWN, Life.PAUSED, Life.FAILED)),
    member(life=Life.HUNG, state=s.ClientState.STALE),
    member(life=Life.HUNG, state=s.ClientState.FENCED),  # which only its application takes back
    member(id=2),  # a later process: the one that had this id is gone
    member(state=s.ClientState.UNSUBSCRIBED, topics=Topics(0)),
)


@pytest.mark.parametrize("one", AT_WORK)
def test_the_session_of_a_client_at_work_ends_as_a_fault_only(one):
    assert list(environment.session_expires(ME, (record(),), one, GROUP)) == []
    [lost] = environment.session_lost(ME, 1, one, GROUP, (record(),))
    assert (lost.values, lost.choice) == ((0, GROUP._replace(epoch=Generation(4)), ()), "id 1")


@pytest.mark.parametrize("one", SILENT)
def test_the_session_of_a_client_that_is_silent_ends_by_itself(one):
    [ended] = environment.session_expires(ME, (record(),), one, GROUP)
    assert (ended.values, ended.choice) == ((GROUP._replace(epoch=Generation(4)), ()), "id 1")
    assert list(environment.session_lost(ME, 1, one, GROUP, (record(),))) == []


def test_of_two_ids_under_one_name_the_one_left_behind_ends():
    records = (record(), record(2))
    [ended] = environment.session_expires(ME, records, member(id=2), GROUP)
    assert (ended.values[1], ended.choice) == ((record(2),), "id 1")


def test_the_session_of_a_static_member_that_is_away_goes_on_and_ends():
    away = record(epoch=NONE, previous=NONE, away=True)
    [ended] = environment.session_expires(ME, (away,), s.ConsumerMember(), GROUP)
    assert ended.values == (GROUP._replace(epoch=Generation(4)), ())


# -- the rebalance timeout -----------------------------------------------------------------------------

UNREVOKED = record(state=s.RecordState.UNREVOKED, assigned=Parts(0b01), pending=Parts(0b10))


@pytest.mark.parametrize(
    ("of", "one", "fires"),
    [
        (UNREVOKED, member(), True),
        (UNREVOKED, member(life=Life.HUNG), True),  # in its callback, say
        (UNREVOKED, member(life=Life.PAUSED), False),  # whose session ends
        (UNREVOKED._replace(away=True), member(), False),  # its epoch is another one than when it was set
        (record(state=s.RecordState.UNRELEASED), member(), False),  # which waits for others
        (record(), member(), False),
    ],
)
def test_the_rebalance_timeout_is_of_a_member_that_has_not_revoked(of, one, fires):
    outcomes = list(environment.too_slow(ME, 1, one, GROUP, (of,)))
    if not fires:
        assert outcomes == []
        return
    [outcome] = outcomes
    assert outcome.values == (0, GROUP._replace(epoch=Generation(4)), ())
    assert outcome.seen == (Noted("revocation took too long"),)


def test_an_administrator_removes_anybody():
    outcomes = list(environment.member_removed(ME, 1, GROUP, (record(), record(2))))
    assert [outcome.choice for outcome in outcomes] == ["id 1", "id 2"]
    assert outcomes[0].values == (0, GROUP._replace(epoch=Generation(4)), (record(2),))


# -- the coordinator moves -----------------------------------------------------------------------------

SENT = s.Beat(s.BeatKind.STEADY, 1, Generation(3), None, False, Topics(1))
LOST = s.BeatRefused(1, s.BeatError.DISCONNECT)


@pytest.mark.parametrize(
    ("one", "wire", "after", "heard"),
    [
        (member(), None, member(full=True), None),
        (member(), SENT, member(full=True), LOST),
        (member(), s.BeatOk(1, Generation(3), BOTH), member(full=True), LOST),
        (member(life=Life.HUNG), SENT, member(life=Life.HUNG, full=True), LOST),
        (member(life=Life.PAUSED), SENT, member(life=Life.PAUSED, full=True), None),
        (s.ConsumerMember(), SENT, s.ConsumerMember(), None),
        (member(state=s.ClientState.FENCED), SENT, member(state=s.ClientState.FENCED), LOST),
    ],
)
def test_what_is_under_way_is_lost_and_every_client_sends_all_fields_again(one, wire, after, heard):
    assert environment.disconnected(one, wire) == (after, heard)


@pytest.mark.parametrize(("of", "noted"), [(UNREVOKED, True), (record(), False)])
def test_the_log_has_all_of_a_consumer_group(of, noted):
    down = s.ConsumerMember()
    [outcome] = environment.failover(SETUP, 1, member(), down, SENT, None, (of,), ())
    assert outcome.values == (0, member(full=True), down, LOST, None, (of,), ())  # no record is written
    assert bool(outcome.seen) is noted


AWAY = record(epoch=NONE, away=True, state=s.RecordState.UNREVOKED)
CLASSIC = UNREVOKED._replace(classic=True)
TIMES_AWAY, TIMES_CLASSIC = "failover_times_away", "failover_times_classic"


@pytest.mark.parametrize(
    ("of", "switch", "timed"),
    [
        (AWAY, TIMES_AWAY, Parts(0)),
        (AWAY, TIMES_CLASSIC, None),
        (AWAY, "", None),
        (AWAY._replace(state=s.RecordState.UNRELEASED), TIMES_AWAY, None),
        (CLASSIC, TIMES_CLASSIC, CLASSIC.pending),
        (CLASSIC, TIMES_AWAY, None),
        (CLASSIC, "", None),
        (CLASSIC._replace(state=s.RecordState.STABLE, timed=BOTH), TIMES_CLASSIC, None),  # it is lost
        (UNREVOKED, TIMES_CLASSIC, None),  # that of a client of the consumer protocol is set anew or ends
        (UNREVOKED, TIMES_AWAY, None),
    ],
)
def test_a_failover_may_set_a_timeout_by_mistake(of, switch, timed):
    decisions = frozenset({switch} - {""})
    [(after,), ()] = environment.timed(replace(SETUP, coordinator=decisions), ((of,), ()))
    assert after == of._replace(timed=timed)


@pytest.mark.parametrize(
    ("of", "late"),
    [
        (AWAY, False),
        (AWAY._replace(timed=Parts(0)), True),
        (CLASSIC._replace(timed=CLASSIC.pending), False),  # it is still to revoke that
        (CLASSIC._replace(timed=Parts(BOTH & ~CLASSIC.pending)), True),
    ],
)
def test_that_timeout_removes_who_owes_nothing_of_it(of, late):
    outcomes = list(environment.stale_timeout(ME, (of,), member(), GROUP))
    assert of.overdue is late
    if not late:
        assert outcomes == []
        return
    [outcome] = outcomes
    assert outcome.values == (GROUP._replace(epoch=Generation(4)), ())
    [seen] = outcome.seen
    assert isinstance(seen, Expelled)
    assert consumer_checks.timely(SETUP, seen)


def test_who_went_away_while_it_revoked_is_seen_at_a_failover():
    assert environment.pending_revocations(((UNREVOKED,), ())) == (
        Noted("failover with a revocation pending"),
    )
    assert len(environment.pending_revocations(((AWAY,), ()))) == 2
    assert environment.pending_revocations(((record(epoch=NONE, away=True),), ())) == ()


@pytest.mark.parametrize(
    ("group", "book", "expires"),
    [
        (GROUP, ((), ()), True),
        (GROUP, ((record(),), ()), False),
        (GROUP, ((), (record(epoch=NONE, away=True),)), False),
        (s.ConsumerGroup(), ((), ()), False),
    ],
)
def test_an_empty_group_is_deleted(group, book, expires):
    outcomes = list(environment.group_expires(SETUP, 1, group, *book))
    assert [outcome.values for outcome in outcomes] == (
        [(0, group._replace(kind=s.GroupKind.NONE))] if expires else []
    )


# -- topics --------------------------------------------------------------------------------------------

TOPICS = SCENARIOS["consumer-topics"].setup()
"""t0-0, t1-0, and t1-1 that may come."""


def test_a_topic_grows_by_one_of_the_partitions_that_there_may_be():
    grown = [outcome.values[1] for outcome in environment.topic_grows(TOPICS, 1, ClusterState(Parts(0b011)))]
    assert grown == [ClusterState(Parts(0b111))]
    assert list(environment.topic_grows(TOPICS, 1, ClusterState(Parts(0b111)))) == []


def test_a_topic_goes_with_all_its_partitions():
    outcomes = list(environment.topic_deleted(TOPICS, 1, ClusterState(Parts(0b111))))
    assert [outcome.values for outcome in outcomes] == [
        (0, ClusterState(Parts(0b110))),
        (0, ClusterState(Parts(0b001))),
    ]
    [last] = environment.topic_deleted(TOPICS, 1, ClusterState(Parts(0b001)))
    assert last.choice == "topic 0"


ANEW = SCENARIOS["consumer-anew"].setup()
"""t-0 and t-1, and two partitions that the topic has when it is made anew."""


@pytest.mark.parametrize(
    ("exist", "after"),
    [
        (0b0011, [0b1100]),
        (0b0001, [0b0010]),
        (0b0111, [0b1000]),  # it has fewer then
        (0b1100, []),  # and no more after those
        (0b0000, []),  # which is a topic that was deleted
    ],
)
def test_a_topic_that_is_made_anew_has_other_partitions(exist: int, after: list[int]):
    outcomes = list(environment.topic_made_anew(ANEW, 1, ClusterState(Parts(exist))))
    assert [outcome.values for outcome in outcomes] == [(0, ClusterState(Parts(parts))) for parts in after]
    assert [outcome.choice for outcome in outcomes] == ["topic 0"] * len(after)


def test_of_several_topics_one_is_made_anew():
    setup = replace(ANEW, topics=(Parts(0b00111), Parts(0b11000)))
    outcomes = environment.topic_made_anew(setup, 1, ClusterState(Parts(0b01001)))
    assert [outcome.values[1] for outcome in outcomes] == [
        ClusterState(Parts(0b01010)),
        ClusterState(Parts(0b10001)),
    ]


def test_a_partition_of_a_topic_of_before_does_not_come_back():
    grown = [outcome.values[1] for outcome in environment.topic_grows(ANEW, 1, ClusterState(Parts(0b0100)))]
    assert grown == [ClusterState(Parts(0b1100))]
    without = replace(ANEW, faults=())
    assert len(list(environment.topic_grows(without, 1, ClusterState(Parts(0b0100))))) == 3


def test_members_are_alike_where_a_topic_is_made_anew_and_partitions_are_not():
    """Which partitions come next is not the same under any other name of theirs."""
    assert len(machine(ANEW).symmetries) == 2
    assert len(machine(replace(ANEW, faults=())).symmetries) == 2 * 2 * 2
