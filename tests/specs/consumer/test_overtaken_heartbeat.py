"""Why one heartbeat at a time is assumed: one that arrives behind a later one releases what its sender owns.

The steps are those of the executable model's coordinator. Runs of the model have such a heartbeat where
connections break (N26).
"""

from __future__ import annotations

import pytest
from rebalance_verifier.model.consumer.reconcile import accepts, reconcile
from rebalance_verifier.model.consumer.state import ConsumerRecord, RecordState
from rebalance_verifier.model.group.parts import NOTHING, Generation, Parts

P = Parts(1)
"""The partition."""


def beat(
    record: ConsumerRecord, shown: int, owned: Parts | None, target: Parts, epoch: int, decisions: list[str]
) -> ConsumerRecord:
    """A heartbeat that is accepted, when the member is to have ``target`` at ``epoch``, and nobody else
    holds anything."""
    assert accepts(record, Generation(shown), owned)
    return reconcile(
        record,
        target=target,
        subscribed=P,
        owned=owned,
        epoch=Generation(epoch),
        shown=Generation(shown),
        others=NOTHING,
        decisions=decisions,
    )


@pytest.mark.parametrize("decisions", [[], ["previous_epoch_overwritten"]], ids=["specified", "shipped"])
def test_a_heartbeat_that_was_overtaken_releases_what_is_owned(decisions):
    record = ConsumerRecord(1, epoch=Generation(1), assigned=P)
    record = beat(record, 1, None, NOTHING, 2, decisions)
    assert record.state is RecordState.UNREVOKED
    # It revokes, and says so, at epoch 1 and without partitions; that is left on a connection that breaks.
    # It says so again, and by then the partition is to be its own once more.
    record = beat(record, 1, NOTHING, P, 3, decisions)
    assert (record.assigned, record.epoch, record.previous) == (P, 3, 1)
    # It consumes the partition. The target moves it, and what was left behind arrives first.
    record = beat(record, 1, NOTHING, NOTHING, 4, decisions)
    assert record.held == NOTHING, "and the next member is given what this one consumes"


def test_so_does_one_at_the_members_own_epoch_if_it_was_given_more_since():
    record = ConsumerRecord(1, epoch=Generation(2), state=RecordState.UNRELEASED)
    # It says that it has nothing, and that is left on a connection that breaks; then the partition is free.
    record = beat(record, 2, NOTHING, P, 2, [])
    assert (record.assigned, record.epoch) == (P, 2)
    record = beat(record, 2, NOTHING, NOTHING, 3, [])
    assert record.held == NOTHING


def test_at_its_own_epoch_it_has_to_give_it_up_first():
    record = ConsumerRecord(1, epoch=Generation(3), previous=Generation(1), assigned=P)
    assert beat(record, 3, None, NOTHING, 4, []).held == P
