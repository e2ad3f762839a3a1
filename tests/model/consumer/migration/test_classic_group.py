"""What the coordinator stores of a commit, whichever protocol its group speaks."""

from __future__ import annotations

import pytest
from rebalance.explore.groups.scenarios import SCENARIOS
from rebalance.model.consumer.migration.classic_group import accepted
from rebalance.model.consumer.state import ConsumerGroup, ConsumerRecord, GroupKind
from rebalance.model.protocol.setup import MemberContext
from rebalance.model.protocol.state import Generation, GroupState, Late, Parts, Slot

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


def test_a_consumer_group_stores_what_the_member_holds():
    assert stored(GroupKind.CONSUMER, GroupState.EMPTY, 3) == 0b01
