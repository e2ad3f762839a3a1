"""What nobody in a group between the protocols decides: a topic that is made anew under its name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from rebalance_verifier.model.consumer import environment
from rebalance_verifier.model.consumer.state import (
    AnyMember,
    ClassicMember,
    ClassicMessage,
    ConsumerGroup,
    ConsumerRecord,
    ConsumerRecords,
    GroupKind,
)
from rebalance_verifier.model.group.parts import ClusterState, Names, Parts, each, rename, union
from rebalance_verifier.model.group.setup import Setup
from rebalance_verifier.model.machine import Outcome

Renaming = Callable[[Any], Any]
"""A value in which each partition of the topic before is the one of its name now."""


def topic_made_anew(
    setup: Setup, budget: int, cluster: ClusterState, group: ConsumerGroup, *parts: Any
) -> Iterator[Outcome]:
    """A topic is deleted and created again with as many partitions. Clients of the consumer protocol know it
    by its id, those of the classic protocol by its name: what these read, claim and are assigned is of the
    new topic from then on. A topic of which nobody has or is to have anything is as good as new already.
    ``parts``: the members, then the wires, the late commits, the records."""
    size = len(setup.slots)
    members, wires, strays, book = (parts[size * at : size * (at + 1)] for at in range(4))
    for outcome in environment.topic_made_anew(setup, budget, cluster):
        left, made = outcome.values
        assert isinstance(made, ClusterState)
        numbers = _numbers(cluster.parts, made.parts)
        if numbers is None or not any(1 << number & _known(members, book) for number in numbers):
            continue
        named = _renaming(numbers)
        yield outcome._replace(
            values=(
                left,
                made,
                group._replace(log=named(group.log)),
                *(named(one) if isinstance(one, ClassicMember) else one for one in members),
                *(named(one) if isinstance(one, ClassicMessage) else one for one in wires),
                *_commits(members, strays, named),
                *(_records(setup, group, records, named) for records in book),
            )
        )


def _numbers(before: Parts, after: Parts) -> Mapping[int, int] | None:
    """Return a partition that is gone -> the one of its name; None where there are not as many."""
    gone, new = each(before & ~after), each(after & ~before)
    return dict(zip(gone, new, strict=True)) if len(gone) == len(new) else None


def _known(members: tuple[AnyMember, ...], book: tuple[ConsumerRecords, ...]) -> Parts:
    """Return what somebody reads, holds, is to hold or claims."""
    records = [record for records in book for record in records]
    theirs = [record.held | record.target | record.claim for record in records]
    return union([*(member.owned for member in members), *theirs])


def _renaming(numbers: Mapping[int, int]) -> Renaming:
    def parts(some: int) -> int:
        return sum(1 << numbers.get(number, number) for number in each(some))

    names = Names(parts, lambda epoch: epoch, lambda slot: slot)
    return lambda value: rename(value, names)


def _commits(members: tuple[AnyMember, ...], strays: tuple[Any, ...], named: Renaming) -> Iterator[Any]:
    """Yield the commits under way, which name partitions as their senders do."""
    for member, stray in zip(members, strays, strict=True):
        yield named(stray) if isinstance(member, ClassicMember) else stray


def _records(
    setup: Setup, group: ConsumerGroup, records: ConsumerRecords, named: Renaming
) -> ConsumerRecords:
    """Return the records of a slot: in a classic group everything is by name. As shipped a consumer group
    knows by id what members of either kind hold; as specified by name what a classic member reads by name."""
    by_id = group.kind is GroupKind.CONSUMER and "classic_held_by_id" in setup.coordinator

    def after(record: ConsumerRecord) -> Any:
        return record if by_id or not record.classic else named(record)

    return tuple(after(record) for record in records)
