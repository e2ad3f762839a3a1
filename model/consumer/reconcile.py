"""What one member may hold next: ``CurrentAssignmentBuilder`` and the epochs of partitions.

Pure functions of one member's record, what others hold, and what the member says that it owns.
"""

from __future__ import annotations

from collections.abc import Collection

from rebalance_verifier.model.consumer.state import ConsumerRecord, RecordState
from rebalance_verifier.model.group.parts import NONE, NOTHING, Generation, Parts


def reconcile(
    record: ConsumerRecord,
    *,
    target: Parts,
    subscribed: Parts,
    owned: Parts | None,
    epoch: Generation,
    shown: Generation,
    others: Parts,
    decisions: Collection[str] = (),
) -> ConsumerRecord:
    """``record`` after a heartbeat of its member, which showed epoch ``shown`` and ``owned``.

    ``target`` is what it is to hold at ``epoch``, of what it subscribes to (``subscribed``); ``others``: what
    others hold. ``owned`` None counts as all.
    """
    if record.state is RecordState.UNREVOKED and (owned is None or owned & record.pending):
        return _drop(record, subscribed, owned, shown, decisions) if record.assigned & ~subscribed else record
    if record.state is RecordState.STABLE and record.epoch == epoch:
        if not record.assigned & ~target:
            return record
        return _drop(record, target, owned, shown, decisions)
    return _next(record, target, owned, epoch, shown, others, decisions)


def _own(record: ConsumerRecord, decisions: Collection[str]) -> Generation:
    """Return the epoch in which it is to give up more: its own. Before Kafka 4.2 the next one, where it has
    just given something up."""
    counts = record.state is RecordState.UNREVOKED and "revocation_counts" in decisions
    return Generation(record.epoch + 1) if counts else record.epoch


def _drop(
    record: ConsumerRecord, target: Parts, owned: Parts | None, shown: Generation, decisions: Collection[str]
) -> ConsumerRecord:
    """It holds what it does not subscribe to any more."""
    kept, gone = Parts(record.assigned & target), Parts(record.assigned & ~target)
    previous = record.epoch if drops_anew(decisions) else record.previous
    if owned is None or owned & gone:
        pending, state = Parts(record.pending | gone), RecordState.UNREVOKED
        after = _at(record, record.epoch, shown, state, decisions, assigned=kept, pending=pending)
        return after._replace(previous=previous)
    return record._replace(assigned=kept, previous=previous)


def drops_anew(decisions: Collection[str]) -> bool:
    """Check whether it counts as a step that a member drops what it does not subscribe to: since Kafka 4.3
    its previous epoch is its own then."""
    return "previous_epoch_overwritten" in decisions and "dropping_is_no_step" not in decisions


def _next(
    record: ConsumerRecord,
    target: Parts,
    owned: Parts | None,
    epoch: Generation,
    shown: Generation,
    others: Parts,
    decisions: Collection[str],
) -> ConsumerRecord:
    """``computeNextAssignment``: first it gives up, then it is given what is free."""
    kept, gone = Parts(record.assigned & target), Parts(record.assigned & ~target)
    if gone and (owned is None or owned & gone):
        own = _own(record, decisions)
        return _at(record, own, shown, RecordState.UNREVOKED, decisions, assigned=kept, pending=gone)
    wanted = target & ~kept
    free = wanted if "ignore_current_epoch" in decisions else wanted & ~others
    if "own_pending_is_unreleased" in decisions:
        free &= ~record.pending
    state = RecordState.UNRELEASED if wanted & ~free else RecordState.STABLE
    given = Parts(kept | free)
    if "epoch_lost_on_reassign" in decisions:
        record = record._replace(unmarked=Parts(record.unmarked | record.pending & given))
    return _at(record, epoch, shown, state, decisions, assigned=given, pending=NOTHING)


def _at(
    record: ConsumerRecord,
    epoch: Generation,
    shown: Generation,
    state: RecordState,
    decisions: Collection[str],
    *,
    assigned: Parts,
    pending: Parts,
) -> ConsumerRecord:
    """``record`` with what it holds now. As specified the previous epoch is the one that its member has
    shown, so that it is known again however many answers are lost; as shipped that of the step before."""
    previous = record.previous
    if "previous_epoch_overwritten" in decisions:
        previous = record.epoch
    elif epoch != record.epoch:
        previous = shown
    return record._replace(
        epoch=epoch,
        previous=previous,
        state=state,
        assigned=assigned,
        pending=pending,
        unmarked=Parts(record.unmarked & (assigned | pending)),
        timed=record.timed if epoch == record.epoch else None,
    )


def accepts(record: ConsumerRecord, epoch: Generation, owned: Parts | None) -> bool:
    """Check whether a heartbeat with ``epoch`` is one of this member: its own epoch, or the one before with a
    claim that it was given."""
    if epoch == record.epoch != NONE:
        return True
    return epoch == record.previous != NONE and owned is not None and not owned & ~record.assigned
