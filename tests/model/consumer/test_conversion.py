"""A group that is converted: who holds what afterwards, and in which epoch."""

from __future__ import annotations

from typing import Any

import pytest
from rebalance_verifier.explore.groups.scenarios import SCENARIOS, ScenarioSize
from rebalance_verifier.model.consumer.conversion import (
    chosen,
    downgraded,
    failed_over,
    keeps_protocols,
    rebalancing,
    removed,
    unreadable,
    upgraded,
)
from rebalance_verifier.model.consumer.state import ConsumerGroup, ConsumerRecord, GroupKind, RecordState
from rebalance_verifier.model.group.parts import Generation, GroupState, Parts, Topics
from rebalance_verifier.model.group.setup import Setup

TWO = Parts(0b11)


def setup(*switches: str, scenario: str = "migration-failover") -> Setup:
    return SCENARIOS[scenario].setup(ScenarioSize(switches=switches))


def member(**fields: Any) -> ConsumerRecord:
    return ConsumerRecord(1, **{"topics": Topics(1), "classic": True} | fields)


def classic(phase: GroupState = GroupState.STABLE, **fields: Any) -> ConsumerGroup:
    return ConsumerGroup(
        kind=GroupKind.CLASSIC, epoch=Generation(2), assigned=Generation(2), phase=phase, **fields
    )


WITHHELD = ((member(assigned=Parts(0b01), claim=TWO),), (member(),))
"""A has both partitions and was assigned one, B waits for the other."""


def held(*switches: str, group: ConsumerGroup, book: Any = WITHHELD) -> list[tuple[int, int]]:
    _, after, _ = upgraded(setup(*switches), group, book, TWO)
    return [(record.assigned, record.pending) for records in after for record in records]


def test_what_was_withheld_is_held_until_it_is_released() -> None:
    assert held(group=classic()) == [(0b01, 0b10), (0, 0)]
    assert held("no_barrier_for_withheld", group=classic()) == [(0b01, 0), (0, 0)]


def test_what_another_member_was_assigned_is_not_held_twice() -> None:
    book = ((member(assigned=Parts(0b01), claim=TWO),), (member(assigned=Parts(0b10)),))
    assert held(group=classic(), book=book) == [(0b01, 0), (0b10, 0)]


def test_after_an_interruption_the_claims_are_what_is_known() -> None:
    group, book = rebalancing(classic(GroupState.COMPLETING), WITHHELD)
    assert (group.phase, group.interrupted) == (GroupState.PREPARING, True)
    assert held(group=group, book=book) == [(0, 0b11), (0, 0)]
    assert held("no_barrier_for_withheld", group=group, book=book) == [(0, 0b11), (0, 0)]
    assert held("interrupted_holds_nothing", group=group, book=book) == [(0, 0), (0, 0)]


def test_as_shipped_a_group_that_forms_cannot_be_converted() -> None:
    forms = classic(GroupState.PREPARING, first=True)
    assert unreadable(setup("upgrade_needs_protocol"), forms, ())
    assert not unreadable(setup("upgrade_needs_protocol"), classic(GroupState.PREPARING), ())
    assert not unreadable(setup(), forms, ())


BOTH, RANGE = ("cooperative-sticky", "range"), ("range",)


@pytest.mark.parametrize(
    ("lists", "protocol"),
    [
        ([BOTH], "cooperative-sticky"),
        ([BOTH, RANGE], "range"),
        ([BOTH, BOTH[::-1], BOTH[::-1]], "range"),
        ([BOTH, BOTH[::-1]], "cooperative-sticky"),
        ([BOTH, ("sticky",)], ""),
        ([()], ""),
        ([], ""),
    ],
)
def test_a_group_chooses_what_most_have_first_of_what_all_have(lists: list[Any], protocol: str) -> None:
    assert chosen(tuple((member(protocols=one),) for one in lists)) == protocol


def test_as_shipped_nor_can_one_that_somebody_has_joined_who_lacks_its_assignor() -> None:
    lists = setup("upgrade_reads_last_protocol", scenario="migration-lists")
    group = classic(GroupState.PREPARING, protocol="cooperative-sticky")
    alone = ((member(protocols=BOTH),), ())
    both = ((member(protocols=BOTH),), (member(protocols=RANGE),))
    assert unreadable(lists, group, both)
    assert not unreadable(lists, group, alone)
    assert not unreadable(lists, group._replace(protocol="range"), both)
    assert not unreadable(setup(scenario="migration-lists"), group, both)


def test_lists_are_kept_only_where_they_differ_and_it_matters() -> None:
    assert keeps_protocols(setup("sync_names_first_protocol", scenario="migration-lists"))
    assert not keeps_protocols(setup(scenario="migration-lists"))
    assert not keeps_protocols(setup("sync_names_first_protocol"))


def test_what_a_group_has_chosen_goes_with_its_last_member_and_is_in_the_log() -> None:
    lists = setup("sync_names_first_protocol", scenario="migration-lists")
    group, _, _ = removed(lists, classic(protocol="range"), ((member(protocols=RANGE),),), 0, 1)
    assert group.protocol == ""
    modern = ConsumerGroup(kind=GroupKind.CONSUMER, epoch=Generation(2), assigned=Generation(2))
    book = ((member(protocols=BOTH),), (member(protocols=RANGE),))
    down, after, _ = downgraded(setup("sync_names_first_protocol"), modern, book, rebalances=False)
    assert (down.protocol, after[0][0].protocols) == ("range", BOTH)
    assert failed_over(down, 2)[0].protocol == "range"


@pytest.mark.parametrize(("switches", "epoch"), [((), 3), (("upgrade_keeps_target",), 2)])
def test_the_target_of_an_upgrade_is_older_than_the_group(switches: tuple[str, ...], epoch: int) -> None:
    group, book, _ = upgraded(setup(*switches), classic(), WITHHELD, TWO)
    assert (group.kind, group.epoch, group.assigned) == (GroupKind.CONSUMER, epoch, 2)
    assert {(r.epoch, r.previous) for records in book for r in records} == {(2, 2)}
    assert book[0][0].state is RecordState.UNREVOKED
    assert book[1][0].state is RecordState.STABLE


MOVING = ((member(epoch=2, assigned=Parts(0b01), pending=Parts(0b10), target=Parts(0b01)),), ())
SERVED = ConsumerGroup(kind=GroupKind.CONSUMER, epoch=Generation(3), assigned=Generation(3), known=TWO)


@pytest.mark.parametrize(("switches", "assigned"), [((), 0b11), (("downgrade_to_target",), 0b01)])
def test_a_downgrade_keeps_what_is_held(switches: tuple[str, ...], assigned: int) -> None:
    group, book, _ = downgraded(setup(*switches), SERVED, MOVING, rebalances=True)
    assert (group.kind, group.epoch, group.phase) == (GroupKind.CLASSIC, 3, GroupState.PREPARING)
    assert (book[0][0].assigned, book[0][0].pending, book[0][0].target) == (assigned, 0, 0)


@pytest.mark.parametrize(
    ("switches", "phase"),
    [((), GroupState.PREPARING), (("rebalance_not_logged",), GroupState.STABLE)],
)
def test_a_failover_after_a_downgrade(switches: tuple[str, ...], phase: GroupState) -> None:
    group, _, _ = downgraded(setup(*switches), SERVED, MOVING, rebalances=True)
    loaded, book = failed_over(group, 2)
    assert (loaded.kind, loaded.epoch, loaded.phase) == (GroupKind.CLASSIC, 3, phase)
    assert book[0][0].assigned == TWO


def test_a_group_that_was_never_written_is_gone_after_a_failover() -> None:
    assert failed_over(classic(GroupState.PREPARING), 2)[0].kind is GroupKind.NONE


def test_a_lost_generation_is_not_used_again() -> None:
    down, _, _ = downgraded(setup(), SERVED, MOVING, rebalances=True)
    later = down._replace(epoch=Generation(5))
    loaded, book = failed_over(later, 2)
    group, _, _ = upgraded(setup(), loaded, book, TWO)
    assert (loaded.epoch, group.epoch) == (3, 6)


@pytest.mark.parametrize(
    ("scenario", "kind"), [("migration", GroupKind.CLASSIC), ("migration-one-way", GroupKind.CONSUMER)]
)
def test_the_policy_decides_whether_a_group_goes_back(scenario: str, kind: GroupKind) -> None:
    book = (MOVING[0], (ConsumerRecord(1, epoch=Generation(3)),))
    group, _, _ = removed(setup(scenario=scenario), SERVED, book, 1, 1)
    assert group.kind is kind


def test_who_goes_from_a_mixed_group_leaves_it_as_it_is() -> None:
    book = (MOVING[0], (ConsumerRecord(1, epoch=Generation(3)),), (ConsumerRecord(1, epoch=Generation(3)),))
    group, left, _ = removed(setup(), SERVED, book, 1, 1)
    assert (group.kind, group.epoch, left[1]) == (GroupKind.CONSUMER, 4, ())
