"""A topic that is made anew in a group between the protocols: what is known by its name, what by its id."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from rebalance_verifier.explore.groups.scenarios import SCENARIOS, ScenarioSize
from rebalance_verifier.model.consumer import state as s
from rebalance_verifier.model.consumer.conversion import upgraded
from rebalance_verifier.model.group.parts import (
    ClusterState,
    Generation,
    GroupState,
    Late,
    Life,
    Parts,
    Slot,
    Topics,
)
from rebalance_verifier.model.group.setup import MemberContext, Setup
from rebalance_verifier.model.machine import Outcome
from rebalance_verifier.model.migration.coordinator import arrives
from rebalance_verifier.model.migration.environment import topic_made_anew
from rebalance_verifier.model.protocols import machine
from rebalance_verifier.specs.migration.refinement import MigrationRefinement

OLD, NEW = Parts(0b0011), Parts(0b1100)
"""t-0 and t-1, and the same of the topic that is made anew."""

OLD0, OLD1, NEW0, NEW1 = (Parts(1 << number) for number in range(4))

A = s.ConsumerMember(life=Life.UP, id=1, epoch=Generation(3), owned=OLD0, believed=OLD0)
B = s.ClassicMember(life=Life.UP, id=1, generation=Generation(3), owned=OLD1, believed=OLD1)
NOBODY = s.ClassicMember()
SENT = s.Beat(s.BeatKind.STEADY, 1, Generation(3), OLD0, True, Topics(1))
CLAIM = s.ClassicMessage(s.ClassicStep.JOIN, 1, Generation(3), OLD1, Topics(1))
LATE = Late("commit", 1, Generation(3), OLD)
HELD = s.ConsumerRecord(1, Generation(3), Generation(3), assigned=OLD0, target=OLD0, topics=Topics(1))
CLASSIC = HELD._replace(assigned=OLD1, pending=OLD0, target=OLD1, classic=True)


def setup(*switches: str) -> Setup:
    """A of the consumer protocol, B of the classic one."""
    return SCENARIOS["migration-anew"].setup(ScenarioSize(naming="given", switches=switches))


def anew(of: Setup, group: s.ConsumerGroup, *book: s.ConsumerRecords, exist: int = OLD) -> list[Outcome]:
    values: tuple[Any, ...] = (A, B, SENT, CLAIM, LATE, LATE, *book)
    return list(topic_made_anew(of, 1, ClusterState(Parts(exist)), group, *values))


@pytest.mark.parametrize("by_id", [False, True])
def test_who_speaks_the_classic_protocol_goes_on_under_the_name(by_id: bool) -> None:
    group = s.ConsumerGroup(s.GroupKind.CONSUMER, Generation(3), Generation(3), OLD)
    of = setup(*["classic_held_by_id"] * by_id)
    [outcome] = anew(of, group, (HELD,), (CLASSIC,))
    budget, cluster, after, *rest = outcome.values
    assert (budget, cluster, after) == (0, ClusterState(NEW), group)
    assert rest[:2] == [A, B._replace(owned=NEW1, believed=NEW1)]
    assert rest[2:4] == [SENT, CLAIM._replace(parts=NEW1)]
    assert rest[4:6] == [LATE, LATE._replace(parts=NEW)]
    named = CLASSIC if by_id else CLASSIC._replace(assigned=NEW1, pending=NEW0, target=NEW1)
    assert rest[6:] == [(HELD,), (named,)]


def test_in_a_classic_group_and_in_its_log_everything_has_a_name() -> None:
    stored = CLASSIC._replace(pending=Parts(0), claim=OLD)
    log = s.ClassicLog(Generation(3), False, ((), (stored,)))
    group = s.ConsumerGroup(
        s.GroupKind.CLASSIC, Generation(3), Generation(3), OLD, GroupState.STABLE, log=log
    )
    [outcome] = anew(setup("classic_held_by_id"), group, (), (stored,))
    _, _, after, *rest = outcome.values
    now = stored._replace(assigned=NEW1, target=NEW1, claim=NEW)
    assert rest[6:] == [(), (now,)]
    assert after == group._replace(log=log._replace(book=((), (now,))))


@pytest.mark.parametrize(
    ("exist", "after"), [(OLD0, [OLD1]), (0b000111, [0b111000]), (0b001111, []), (0b111100, [])]
)
def test_it_has_as_many_partitions_as_before_or_stays(exist: int, after: list[int]) -> None:
    group = s.ConsumerGroup(s.GroupKind.CONSUMER, Generation(3), Generation(3), OLD)
    made = anew(setup(), group, (HELD._replace(target=Parts(exist)),), (), exist=exist)
    assert [outcome.values[1] for outcome in made] == [ClusterState(Parts(parts)) for parts in after]


@pytest.mark.parametrize(
    ("member", "record"),
    [
        (B, None),
        (NOBODY, CLASSIC._replace(assigned=OLD1, pending=Parts(0), target=Parts(0))),
        (NOBODY, CLASSIC._replace(assigned=Parts(0), pending=OLD0, target=Parts(0))),
        (NOBODY, CLASSIC._replace(assigned=Parts(0), pending=Parts(0), target=OLD1)),
        (NOBODY, CLASSIC._replace(assigned=Parts(0), pending=Parts(0), target=Parts(0), claim=OLD0)),
    ],
)
def test_it_is_made_anew_where_somebody_has_something_of_it(
    member: s.ClassicMember, record: s.ConsumerRecord | None
) -> None:
    group = s.ConsumerGroup(s.GroupKind.CONSUMER, Generation(3), Generation(3), OLD)
    for one, records, times in ((member, () if record is None else (record,), 1), (NOBODY, (), 0)):
        values: tuple[Any, ...] = (NOBODY, one, None, None, None, None, (), records)
        assert len(list(topic_made_anew(setup(), 1, ClusterState(OLD), group, *values))) == times


@pytest.mark.parametrize("kind", [s.GroupKind.CONSUMER, s.GroupKind.CLASSIC])
def test_what_is_gone_has_no_name_in_the_answer_to_sync(kind: s.GroupKind) -> None:
    me = MemberContext(Slot(1), setup())
    group = s.ConsumerGroup(kind, Generation(3), Generation(3), OLD, GroupState.STABLE)
    sync = s.ClassicMessage(s.ClassicStep.SYNC, 1, Generation(3))
    record = CLASSIC._replace(assigned=Parts(OLD1 | NEW0), pending=Parts(0))
    [outcome] = arrives(me, sync, group, ClusterState(NEW), (), (record,))
    answer = outcome.values[0]
    assert isinstance(answer, s.ClassicMessage)
    assert (answer.step, answer.parts) == (s.ClassicStep.SYNC_OK, NEW0)


def test_an_upgrade_takes_over_what_there_is() -> None:
    group = s.ConsumerGroup(s.GroupKind.CLASSIC, Generation(3), Generation(3), OLD, GroupState.STABLE)
    record = CLASSIC._replace(assigned=Parts(OLD1 | NEW0), claim=Parts(OLD0 | NEW1), pending=Parts(0))
    _, (_, (after,)), _ = upgraded(setup(), group, ((), (record,)), NEW)
    assert (after.assigned, after.target, after.pending) == (NEW0, NEW0, NEW1)


def test_in_the_first_release_an_upgrade_does_not_note_the_topics() -> None:
    group = s.ConsumerGroup(s.GroupKind.CLASSIC, Generation(3), Generation(3), OLD, GroupState.STABLE)
    for decisions, known in ((frozenset(), OLD), (frozenset({"upgrade_forgets_topics"}), 0)):
        after, _, _ = upgraded(replace(setup(), coordinator=decisions), group, ((), (CLASSIC,)), OLD)
        assert after.known == known


def test_members_are_alike_where_a_topic_is_made_anew_and_partitions_are_not() -> None:
    same = SCENARIOS["migration-anew"].setup(ScenarioSize(naming="every"))
    assert len(machine(same).symmetries) == 1  # A and B speak different protocols
    assert len(machine(replace(same, faults=())).symmetries) == 2 * 24


def test_the_logic_says_that_it_has_no_such_topics() -> None:
    with pytest.raises(ValueError, match="no topics that are made anew"):
        MigrationRefinement(setup())
