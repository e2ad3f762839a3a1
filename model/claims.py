"""Who claims which partition, and which of the claims count (KIP-54, KIP-341, KIP-429, KIP-792).

A claim is what one member says it was last assigned, and in which generation. The rule is the one
that Kafka arrived at after KAFKA-12984, KAFKA-13406 and KAFKA-14639: it is decided per partition. The
newest claim wins, a sole claim counts whatever its age, and equally new claims cancel each other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rebalance_verifier.model.values import NO_GENERATION, Partitions, Subscription
from rebalance_verifier.model.wire import WireError, decode_cooperative_user_data, decode_sticky_user_data

NOBODY = -1
"""Row entry of a partition that no member claims."""

CONTESTED = -2
"""Row entry of a partition whose newest claims cancel each other."""


@dataclass(frozen=True, slots=True)
class Claim:
    """The partitions one member says it was assigned in ``generation`` (-1: it does not say)."""

    partitions: Partitions = ()
    generation: int = NO_GENERATION


ReadClaim = Callable[[Subscription], Claim]

Rows = dict[str, list[int]]
"""Topic -> one entry per partition: the number of a member, ``NOBODY`` or ``CONTESTED``."""


def no_claim(subscription: Subscription) -> Claim:
    """Return what range and roundrobin read: nothing."""
    return Claim()


def owned_claim(subscription: Subscription) -> Claim:
    """Return what cooperative-sticky reads: owned partitions, and the generation from the best source.

    The ``generation_id`` field (KIP-792) comes first. Members older than 3.4 put the generation into
    four bytes of user data instead. User data of any other length is not theirs (librdkafka writes
    StickyAssignor data there) and says nothing.
    """
    generation = subscription.generation_id
    if generation < 0 and subscription.user_data is not None and len(subscription.user_data) == 4:
        generation = decode_cooperative_user_data(subscription.user_data)
    return Claim(subscription.owned_partitions, max(generation, NO_GENERATION))


def user_data_claim(subscription: Subscription) -> Claim:
    """Return what sticky reads: user data version 1, or 0 without generation; unreadable bytes claim
    nothing."""
    if not subscription.user_data:
        return Claim()
    try:
        partitions, generation = decode_sticky_user_data(subscription.user_data)
    except WireError:
        return Claim()
    return Claim(partitions, max(generation, NO_GENERATION))


def newest(claims: Sequence[Claim], sizes: Mapping[str, int]) -> Rows:
    """For every partition of ``sizes`` (topic -> partition count), the number of the member that holds it.

    Claims on partitions outside ``sizes`` are dropped; repeating a partition changes nothing. The
    result does not depend on the order of members, and older claims leave no mark on it.
    """
    rows: Rows = {topic: [NOBODY] * size for topic, size in sizes.items()}
    disputed: dict[tuple[str, int], int] = {}  # partition -> generation of the claims that cancel out
    for member in sorted(range(len(claims)), key=lambda m: claims[m].generation):
        generation = claims[member].generation
        topic_before = None
        row: list[int] = []
        for topic, partition in claims[member].partitions:
            if topic != topic_before:  # claims arrive sorted by topic
                topic_before, row = topic, rows.get(topic, [])
            if not 0 <= partition < len(row):
                continue
            rival = row[partition]
            if rival == NOBODY:
                row[partition] = member
            elif rival != member:
                age = disputed[topic, partition] if rival == CONTESTED else claims[rival].generation
                if age < generation:
                    row[partition] = member
                else:
                    row[partition] = CONTESTED
                    disputed[topic, partition] = generation
    return rows
