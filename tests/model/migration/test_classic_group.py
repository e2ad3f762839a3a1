"""What the coordinator stores of a commit, whichever protocol its group speaks."""

from __future__ import annotations

import pytest
from rebalance_verifier.explore.groups.scenarios import SCENARIOS, ScenarioSize
from rebalance_verifier.model.consumer import state as s
from rebalance_verifier.model.group import parts as p
from rebalance_verifier.model.group.setup import MemberContext
from rebalance_verifier.model.migration.coordinator import accepted, arrives, join_phase_ends

ME = MemberContext(p.Slot(0), SCENARIOS["migration"].setup())
BOTH = p.Parts(0b11)


def stored(kind: s.GroupKind, phase: p.GroupState, generation: int, member_id: int = 1) -> p.Parts:
    """Of a commit of both partitions by a member that is assigned one, in a group of generation 3."""
    epoch = p.Generation(3)
    group = s.ConsumerGroup(kind=kind, epoch=epoch, assigned=epoch, phase=phase)
    record = s.ConsumerRecord(1, epoch=epoch, previous=epoch, assigned=p.Parts(0b01), classic=True)
    return accepted(ME, group, (record,), p.Late("commit", member_id, p.Generation(generation), BOTH))


@pytest.mark.parametrize(
    ("phase", "parts"),
    [(p.GroupState.STABLE, BOTH), (p.GroupState.PREPARING, BOTH), (p.GroupState.COMPLETING, 0)],
)
def test_a_classic_group_stores_all_of_a_commit_but_not_while_it_assigns(phase: p.GroupState, parts: int):
    assert stored(s.GroupKind.CLASSIC, phase, 3) == parts


def test_a_classic_group_stores_nothing_of_another_generation_or_of_nobody():
    assert stored(s.GroupKind.CLASSIC, p.GroupState.STABLE, 2) == 0
    assert stored(s.GroupKind.CLASSIC, p.GroupState.STABLE, 3, member_id=2) == 0


JOINS = s.ClassicMessage(s.ClassicStep.JOIN, 1, p.Generation(3), p.NOTHING, p.Topics(1))
"""By a member that has been removed."""


def joined(scenario: str, group: s.ConsumerGroup, message: s.ClassicMessage = JOINS, *book: s.ConsumerRecord):
    """The state of ``group`` and the answer, after JoinGroup of the second member."""
    setup = SCENARIOS[scenario].setup(
        ScenarioSize(switches=("unknown_member_admitted", "upgrade_needs_protocol"))
    )
    me = MemberContext(p.Slot(1), setup)
    records = (book, *((),) * (len(setup.slots) - 1))
    outcome = next(arrives(me, message, group, p.ClusterState(setup.exist), *records))
    answer, after, *_ = outcome.values
    assert isinstance(answer, s.ClassicMessage)
    assert isinstance(after, s.ConsumerGroup)
    return after, answer.step


@pytest.mark.parametrize(
    ("scenario", "step"), [("migration", s.ClassicStep.JOIN_OK), ("migration-static", s.ClassicStep.REFUSED)]
)
def test_as_shipped_a_consumer_group_admits_ids_that_it_does_not_know_unless_they_are_static(
    scenario: str, step: s.ClassicStep
):
    epoch = p.Generation(3)
    group = s.ConsumerGroup(kind=s.GroupKind.CONSUMER, epoch=epoch, assigned=epoch)
    other = s.ConsumerRecord(1, epoch=epoch, previous=epoch, topics=p.Topics(1))
    assert joined(scenario, group, JOINS, other)[1] is step


def test_a_refused_join_deletes_a_consumer_group_without_members():
    empty = s.ConsumerGroup(kind=s.GroupKind.CONSUMER, epoch=p.Generation(3), assigned=p.Generation(3))
    group, step = joined("migration", empty)
    assert (group.kind, step) == (s.GroupKind.NONE, s.ClassicStep.REFUSED)
    classic = s.ConsumerGroup(kind=s.GroupKind.CLASSIC, epoch=p.Generation(3), assigned=p.Generation(3))
    assert joined("migration", classic)[0] == classic


def test_where_groups_never_change_a_consumer_group_turns_classic_members_away():
    epoch = p.Generation(3)
    group = s.ConsumerGroup(kind=s.GroupKind.CONSUMER, epoch=epoch, assigned=epoch)
    other = s.ConsumerRecord(1, epoch=epoch, previous=epoch, topics=p.Topics(1))
    joins = JOINS._replace(generation=p.NONE)
    assert joined("migration-one-way", group, joins, other)[1] is s.ClassicStep.JOIN_OK
    assert joined("migration-disabled", group, joins, other)[1] is s.ClassicStep.REFUSED
    assert joined("migration-disabled", s.ConsumerGroup(), joins)[1] is s.ClassicStep.JOIN_WAITS


def test_a_classic_group_forms_until_its_first_join_phase_ends():
    group, step = joined("migration", s.ConsumerGroup(), JOINS._replace(generation=p.NONE))
    assert (group.first, step) == (True, s.ClassicStep.JOIN_WAITS)
    setup = SCENARIOS["migration"].setup()
    members = ((), (s.ConsumerRecord(1, classic=True, joined=True),), ())
    [ended] = join_phase_ends(setup, group, *members, None, None, None)
    after = ended.values[0]
    assert isinstance(after, s.ConsumerGroup)
    assert not after.first


def test_a_consumer_group_stores_what_the_member_holds():
    assert stored(s.GroupKind.CONSUMER, p.GroupState.EMPTY, 3) == 0b01
