"""What the coordinator stores of a commit, whichever protocol its group speaks."""

from __future__ import annotations

import pytest
from rebalance_verifier.explore.groups.scenarios import SCENARIOS, ScenarioSize
from rebalance_verifier.model.consumer.state import (
    ClassicMessage,
    ClassicStep,
    ConsumerGroup,
    ConsumerRecord,
    GroupKind,
)
from rebalance_verifier.model.group.parts import (
    NONE,
    NOTHING,
    ClusterState,
    Generation,
    GroupState,
    Late,
    Parts,
    Slot,
    Topics,
)
from rebalance_verifier.model.group.setup import MemberContext
from rebalance_verifier.model.migration.coordinator import accepted, arrives, join_phase_ends

ME = MemberContext(Slot(0), SCENARIOS["migration"].setup())
BOTH = Parts(0b11)


def stored(kind: GroupKind, phase: GroupState, generation: int, member_id: int = 1) -> Parts:
    """Of a commit of both partitions by a member that is assigned one, in a group of generation 3."""
    epoch = Generation(3)
    group = ConsumerGroup(kind=kind, epoch=epoch, assigned=epoch, phase=phase)
    record = ConsumerRecord(1, epoch=epoch, previous=epoch, assigned=Parts(0b01), classic=True)
    return accepted(ME, group, (record,), Late("commit", member_id, Generation(generation), BOTH))


@pytest.mark.parametrize(
    ("phase", "parts"),
    [(GroupState.STABLE, BOTH), (GroupState.PREPARING, BOTH), (GroupState.COMPLETING, 0)],
)
def test_a_classic_group_stores_all_of_a_commit_but_not_while_it_assigns(phase: GroupState, parts: int):
    assert stored(GroupKind.CLASSIC, phase, 3) == parts


def test_a_classic_group_stores_nothing_of_another_generation_or_of_nobody():
    assert stored(GroupKind.CLASSIC, GroupState.STABLE, 2) == 0
    assert stored(GroupKind.CLASSIC, GroupState.STABLE, 3, member_id=2) == 0


JOINS = ClassicMessage(ClassicStep.JOIN, 1, Generation(3), NOTHING, Topics(1))
"""By a member that has been removed."""


def joined(scenario: str, group: ConsumerGroup, message: ClassicMessage = JOINS, *book: ConsumerRecord):
    """The state of ``group`` and the answer, after JoinGroup of the second member."""
    setup = SCENARIOS[scenario].setup(
        ScenarioSize(switches=("unknown_member_admitted", "upgrade_needs_protocol"))
    )
    me = MemberContext(Slot(1), setup)
    records = (book, *((),) * (len(setup.slots) - 1))
    outcome = next(arrives(me, message, group, ClusterState(setup.exist), *records))
    answer, after, *_ = outcome.values
    assert isinstance(answer, ClassicMessage)
    assert isinstance(after, ConsumerGroup)
    return after, answer.step


@pytest.mark.parametrize(
    ("scenario", "step"), [("migration", ClassicStep.JOIN_OK), ("migration-static", ClassicStep.REFUSED)]
)
def test_as_shipped_a_consumer_group_admits_ids_that_it_does_not_know_unless_they_are_static(
    scenario: str, step: ClassicStep
):
    epoch = Generation(3)
    group = ConsumerGroup(kind=GroupKind.CONSUMER, epoch=epoch, assigned=epoch)
    other = ConsumerRecord(1, epoch=epoch, previous=epoch, topics=Topics(1))
    assert joined(scenario, group, JOINS, other)[1] is step


def test_a_refused_join_deletes_a_consumer_group_without_members():
    empty = ConsumerGroup(kind=GroupKind.CONSUMER, epoch=Generation(3), assigned=Generation(3))
    group, step = joined("migration", empty)
    assert (group.kind, step) == (GroupKind.NONE, ClassicStep.REFUSED)
    classic = ConsumerGroup(kind=GroupKind.CLASSIC, epoch=Generation(3), assigned=Generation(3))
    assert joined("migration", classic)[0] == classic


def test_where_groups_never_change_a_consumer_group_turns_classic_members_away():
    epoch = Generation(3)
    group = ConsumerGroup(kind=GroupKind.CONSUMER, epoch=epoch, assigned=epoch)
    other = ConsumerRecord(1, epoch=epoch, previous=epoch, topics=Topics(1))
    joins = JOINS._replace(generation=NONE)
    assert joined("migration-one-way", group, joins, other)[1] is ClassicStep.JOIN_OK
    assert joined("migration-disabled", group, joins, other)[1] is ClassicStep.REFUSED
    assert joined("migration-disabled", ConsumerGroup(), joins)[1] is ClassicStep.JOIN_WAITS


def test_a_classic_group_forms_until_its_first_join_phase_ends():
    group, step = joined("migration", ConsumerGroup(), JOINS._replace(generation=NONE))
    assert (group.first, step) == (True, ClassicStep.JOIN_WAITS)
    setup = SCENARIOS["migration"].setup()
    members = ((), (ConsumerRecord(1, classic=True, joined=True),), ())
    [ended] = join_phase_ends(setup, group, *members, None, None, None)
    after = ended.values[0]
    assert isinstance(after, ConsumerGroup)
    assert not after.first


def test_a_consumer_group_stores_what_the_member_holds():
    assert stored(GroupKind.CONSUMER, GroupState.EMPTY, 3) == 0b01
