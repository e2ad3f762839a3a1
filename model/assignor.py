"""What an assignor is: the part of ``ConsumerPartitionAssignor`` that decides, and nothing else."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import Protocol

from rebalance_verifier.model.values import (
    Cluster,
    GroupAssignment,
    GroupSubscription,
    Partitions,
    RebalanceProtocol,
)


class Promise(StrEnum):
    """A quality that an assignor claims to have; quality clauses are asked only where promised."""

    BALANCED = "balanced"  # best possible balance over the whole group (KIP-54)
    BALANCED_EQUAL = "balanced-equal"  # the same, only when all members subscribe alike (round robin)
    BALANCED_PER_TOPIC = "balanced-per-topic"  # within each topic (range)
    STICKY = "sticky"  # keeps what it can (KIP-54)
    RACK_AWARE = "rack-aware"  # prefers members in a replica's rack (KIP-881)
    CO_PARTITIONED = "co-partitioned"  # equal indexes of equal topics go to one member (range)
    SPREAD = "spread"  # what a member keeps is of all topics that it holds alike (KAFKA-16277)
    # Of tasks (Kafka Streams).
    STANDBYS = "standbys"  # num.standby.replicas copies of each store that has a changelog
    HIGH_AVAILABILITY = "high-availability"  # a task runs where its store is caught up (KIP-441)
    TAGS = "tags"  # copies of a store are spread over client tags (KIP-708)
    LEAST_MOVES = "least-moves"  # no more tasks and standbys move than the other promises need
    FALLBACK = "fallback"  # decides while lags are unknown, and has a rebalance tried again each time
    # Less than others promise, so that less is expected of them. The first two state a limit.
    PARTIAL = "partial"  # partitions wait while nobody may have more: so many for each member at most
    GRADUAL = "gradual"  # so many partitions move in one round at most
    WEIGHTED = "weighted"  # balance is of something else than the number of partitions
    STOP_THE_WORLD = "stop-the-world"  # everything is given back before anything moves, as in EAGER


LESSER = (Promise.PARTIAL, Promise.GRADUAL, Promise.WEIGHTED, Promise.STOP_THE_WORLD)
"""The promises of less than others give."""

TASK_PROMISES = (
    *(Promise.BALANCED, Promise.STICKY, Promise.STANDBYS, Promise.HIGH_AVAILABILITY),
    *(Promise.TAGS, Promise.RACK_AWARE, Promise.LEAST_MOVES, Promise.FALLBACK),
)
"""Those of an assignor of tasks."""

PARTITION_PROMISES = tuple(
    one
    for one in Promise
    if one not in TASK_PROMISES or one in (Promise.BALANCED, Promise.STICKY, Promise.RACK_AWARE)
)
"""Those of an assignor of partitions."""

LIMITED = (Promise.PARTIAL, Promise.GRADUAL)
"""The promises that come with a limit."""

Limits = Mapping[Promise, int]
"""What an assignor states with a promise of ``LIMITED``."""


def stated(promises: Collection[Promise], limits: Mapping[str, object]) -> Limits:
    """Return the limits by promise. Raises ValueError for one that is missing, no count, or without its
    promise."""
    found: dict[Promise, int] = {}
    for name, limit in limits.items():
        if type(limit) is not int or limit < 1:
            raise ValueError(f"the limit of {name} is a number from 1 on, not {limit!r}")
        found[Promise(name)] = limit
    if wrong := sorted(found.keys() ^ (set(LIMITED) & set(promises))):
        raise ValueError(f"{wrong[0]} is promised with a limit, one needs the other")
    return found


class Assignor(Protocol):
    """One client-side assignor, pure: equal input, equal output, input untouched.

    ``name`` is the protocol name in JoinGroup. ``user_data`` is what a member that was last
    assigned ``owned`` in ``generation`` writes into its subscription (``subscriptionUserData``);
    (-1, ()) for a member that was never assigned anything.
    """

    @property
    def name(self) -> str: ...
    @property
    def protocols(self) -> tuple[RebalanceProtocol, ...]: ...
    @property
    def promises(self) -> frozenset[Promise]: ...
    def assign(self, cluster: Cluster, group: GroupSubscription) -> GroupAssignment: ...
    def user_data(self, owned: Partitions, generation: int) -> bytes | None: ...
