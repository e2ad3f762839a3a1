"""What an assignor is: the part of ``ConsumerPartitionAssignor`` that decides, and nothing else."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol

from rebalance.model.values import (
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
