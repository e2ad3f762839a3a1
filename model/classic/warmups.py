"""The assignment of Kafka Streams (KIP-441), as ``HighAvailabilityTaskAssignor`` and
``StreamsPartitionAssignor`` make it: a task stays where its store has caught up, and warms up where it
belongs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rebalance_verifier.model.classic.state import Metadata
from rebalance_verifier.model.group.parts import NOTHING, Ask, Copies, Parts, each, union


class Plan(NamedTuple):
    """Active tasks and further copies of each member, in order; ``asker`` is who has to ask for the next
    rebalance when its deadline has passed."""

    shares: tuple[Parts, ...]
    copies: tuple[Copies, ...]
    asker: int | None = None


def plans(
    target: Sequence[Parts], metas: Sequence[Metadata], most: int, *, at_once: bool = False
) -> Iterator[Plan]:
    """Yield the assignments of a leader that wants each task where ``target`` has it.

    ``most`` is max.warmup.replicas. One plan for each member that may be told to ask again: Kafka Streams
    tells a consumer of the leader's process, which need not be the one that leads, and a TaskAssignor any
    process (KIP-924). ``at_once``: who waits for a task that another has to give up asks at once
    (KAFKA-9821); as specified the member that gives it up does (KIP-429).
    """
    active, warm, waits = _placed(target, metas, most)
    held = _held(metas)
    shares = [
        Parts(parts & ~union([some for other, some in enumerate(held) if other != number]))
        for number, parts in enumerate(active)
    ]
    withheld = [Parts(parts & ~share) for parts, share in zip(active, shares, strict=True)]
    now = [Ask.NOW if at_once and late else Ask.NEVER for late in withheld]
    warm = [Parts(some | late) for some, late in zip(warm, withheld, strict=True)]  # its store is kept
    for asker in range(len(metas)) if waits else (None,):
        asks = [Ask.LATER if number == asker and one is Ask.NEVER else one for number, one in enumerate(now)]
        yield Plan(tuple(shares), tuple(map(Copies, warm, asks)), asker)


def _placed(
    target: Sequence[Parts], metas: Sequence[Metadata], most: int
) -> tuple[list[Parts], list[Parts], bool]:
    """Return the active tasks and the warm-ups of each member, and whether a task runs elsewhere than it
    should."""
    active, warm = [NOTHING] * len(metas), [NOTHING] * len(metas)
    left, waits = most, False
    for there, parts in enumerate(target):
        for number in each(parts):
            task = 1 << number
            ready = [here for here, meta in enumerate(metas) if meta.caught_up & task]
            if not ready or there in ready:
                active[there] = Parts(active[there] | task)
                continue
            here = next((one for one in ready if metas[one].owned & task), ready[0])
            active[here], waits = Parts(active[here] | task), True
            if left:
                warm[there], left = Parts(warm[there] | task), left - 1
    return active, warm, waits


def _held(metas: Sequence[Metadata]) -> list[Parts]:
    """Return the claims that no other member claims newer (KIP-792)."""
    return [
        Parts(meta.owned & ~union([other.owned for other in metas if other.label > meta.label]))
        for meta in metas
    ]
