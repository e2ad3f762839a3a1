"""One member's next step to its target: ``CurrentAssignmentBuilder``, case by case."""

from __future__ import annotations

from typing import Any

import pytest
from rebalance_verifier.model.consumer.reconcile import accepts, reconcile
from rebalance_verifier.model.consumer.state import ConsumerRecord, RecordState
from rebalance_verifier.model.group import parts as p

STABLE, UNREVOKED, UNRELEASED = RecordState


def record(**fields: Any) -> ConsumerRecord:
    """A member at epoch 1 that holds partition 0 and 1."""
    return ConsumerRecord(1, **{"epoch": p.Generation(1), "assigned": p.Parts(0b011)} | fields)


def step(before: ConsumerRecord, target: int, owned: int | None, others: int = 0, *decisions: str) -> Any:
    """A heartbeat at epoch 2, as (state, epoch, assigned, pending)."""
    after = reconcile(
        before,
        target=p.Parts(target),
        subscribed=p.Parts(0b111),
        owned=None if owned is None else p.Parts(owned),
        epoch=p.Generation(2),
        shown=before.epoch,
        others=p.Parts(others),
        decisions=decisions,
    )
    return after.state, after.epoch, after.assigned, after.pending


def test_what_has_to_go_is_revoked_before_anything_is_given() -> None:
    assert step(record(), 0b101, None) == (UNREVOKED, 1, 0b001, 0b010)
    assert step(record(), 0b101, 0b011) == (UNREVOKED, 1, 0b001, 0b010)


def test_what_the_member_does_not_have_any_more_goes_at_once() -> None:
    assert step(record(), 0b101, 0b001) == (STABLE, 2, 0b101, 0)


def test_it_waits_for_the_acknowledgement() -> None:
    waits = record(state=UNREVOKED, assigned=p.Parts(0b001), pending=p.Parts(0b010))
    assert step(waits, 0b001, None) == (UNREVOKED, 1, 0b001, 0b010)
    assert step(waits, 0b001, 0b011) == (UNREVOKED, 1, 0b001, 0b010)
    assert step(waits, 0b001, 0b001) == (STABLE, 2, 0b001, 0)


def test_who_gives_up_more_behind_a_revocation_keeps_its_epoch_since_kafka_4_2() -> None:
    waits = record(state=UNREVOKED, assigned=p.Parts(0b001), pending=p.Parts(0b010))
    assert step(waits, 0b100, 0b001) == (UNREVOKED, 1, 0, 0b001)
    assert step(waits, 0b100, 0b001, 0, "revocation_counts") == (UNREVOKED, 2, 0, 0b001)
    assert step(record(), 0b100, None, 0, "revocation_counts") == (UNREVOKED, 1, 0, 0b011)


def test_what_others_hold_is_waited_for_at_the_new_epoch() -> None:
    assert step(record(), 0b111, None, 0b100) == (UNRELEASED, 2, 0b011, 0)
    waits = record(state=UNRELEASED, epoch=p.Generation(2))
    assert step(waits, 0b111, None, 0) == (STABLE, 2, 0b111, 0)


def test_a_partition_that_returns_while_it_is_revoked_is_given_again() -> None:
    waits = record(state=UNREVOKED, assigned=p.Parts(0b001), pending=p.Parts(0b010))
    assert step(waits, 0b011, 0b001) == (STABLE, 2, 0b011, 0)
    assert step(waits, 0b011, 0b001, 0, "own_pending_is_unreleased") == (UNRELEASED, 2, 0b001, 0)


def test_at_the_targets_epoch_only_a_subscription_changes_anything() -> None:
    there = record(epoch=p.Generation(2))
    assert step(there, 0b011, None) == (STABLE, 2, 0b011, 0)
    assert step(there, 0b001, None) == (UNREVOKED, 2, 0b001, 0b010)
    assert step(there, 0b001, 0b001) == (STABLE, 2, 0b001, 0)


@pytest.mark.parametrize(("decisions", "previous"), [((), 1), (("previous_epoch_overwritten",), 2)])
def test_the_previous_epoch_is_what_the_member_has_shown(decisions: tuple[str, ...], previous: int) -> None:
    before = record(state=UNRELEASED, epoch=p.Generation(2), previous=p.Generation(1))
    after = reconcile(
        before,
        target=p.Parts(0b111),
        subscribed=p.Parts(0b111),
        owned=p.Parts(0b011),
        epoch=p.Generation(2),
        shown=p.Generation(1),
        others=p.Parts(0b100),
        decisions=decisions,
    )
    assert after.previous == previous
    assert accepts(after, p.Generation(1), p.Parts(0b011)) is (previous == 1)


def test_an_epoch_is_accepted_if_it_is_the_members_or_the_one_before_with_what_it_was_given() -> None:
    one = record(epoch=p.Generation(2), previous=p.Generation(1))
    assert accepts(one, p.Generation(2), None)
    assert accepts(one, p.Generation(1), p.Parts(0b001))
    assert not accepts(one, p.Generation(1), None)
    assert not accepts(one, p.Generation(1), p.Parts(0b100))
    assert not accepts(one, p.Generation(3), p.Parts(0))
    assert not accepts(record(epoch=p.NONE, previous=p.NONE), p.NONE, p.Parts(0))


def test_a_timeout_of_a_failover_lasts_as_long_as_the_epoch() -> None:
    """By mistake: a second revocation keeps the epoch, the target has another one."""
    waits = record(state=UNREVOKED, assigned=p.Parts(0b011), pending=p.Parts(0b100), timed=p.Parts(0b100))
    fields: Any = {"subscribed": p.Parts(0b111), "epoch": p.Generation(2), "shown": p.Generation(1)}
    again = reconcile(waits, target=p.Parts(0b001), owned=p.Parts(0b011), others=p.Parts(0), **fields)
    assert (again.epoch, again.pending, again.timed, again.overdue) == (1, 0b010, 0b100, True)
    there = reconcile(waits, target=p.Parts(0b011), owned=p.Parts(0b011), others=p.Parts(0), **fields)
    assert (there.epoch, there.timed, there.overdue) == (2, None, False)
