"""An assignor as a design: a handful of pure stages, each of which a switch can replace.

The stages follow ``AbstractStickyAssignor`` and ``CooperativeStickyAssignor``: read the claims, settle
which of them count, place every partition, hold back what is still in other hands, check the result.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

from rebalance_verifier.model.assignor import Promise
from rebalance_verifier.model.claims import Claim, ReadClaim, Rows, newest, no_claim
from rebalance_verifier.model.values import (
    Cluster,
    GroupAssignment,
    GroupSubscription,
    Partitions,
    Racks,
    RebalanceProtocol,
)


@dataclass(frozen=True, kw_only=True)
class Rebalance:
    """One call of ``assign``, prepared for the stages. Members are numbered in the order of their ids.

    ``topics`` holds the topics that have metadata and at least one subscriber, sorted by name, each
    with the racks of its partitions. ``subscriptions[m]`` are those of them that member ``m`` subscribes to.
    """

    group: GroupSubscription
    members: tuple[str, ...]
    topics: Mapping[str, tuple[Racks, ...]]
    subscriptions: tuple[frozenset[str], ...]
    claims: tuple[Claim, ...]

    @classmethod
    def of(cls, cluster: Cluster, group: GroupSubscription, read: ReadClaim) -> Rebalance:
        """Return the view that an assignor has of ``group``, with every accident of order removed."""
        members = tuple(sorted(group))
        known = frozenset(topic for topic in cluster.topics if cluster.partition_count(topic))
        subscribed: dict[tuple[str, ...], frozenset[str]] = {}
        for member in members:
            topics = group[member].topics
            if topics not in subscribed:
                subscribed[topics] = known.intersection(topics)
        return cls(
            group=group,
            members=members,
            topics={
                topic: cluster.topics[topic] for topic in sorted(frozenset().union(*subscribed.values()))
            },
            subscriptions=tuple(subscribed[group[member].topics] for member in members),
            claims=tuple(read(group[member]) for member in members),
        )

    @cached_property
    def alike(self) -> bool:
        """Check whether all members that subscribe to any known topic subscribe to the same ones."""
        return all(not subscribed or len(subscribed) == len(self.topics) for subscribed in self.subscriptions)

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Topic -> number of partitions."""
        return {topic: len(racks) for topic, racks in self.topics.items()}

    @cached_property
    def racks(self) -> tuple[str | None, ...]:
        """Return the rack of each member; all None where no choice can change the number of matches
        (KIP-881).

        That is so when no member sits in a replica's rack, or when every member does for every
        partition, as with one replica in each rack.
        """
        racks = tuple(self.group[member].rack_id or None for member in self.members)
        located = {rack for rack in racks if rack}
        combinations = (
            {frozenset(c) for topic in self.topics.values() for c in set(topic)} if located else set()
        )
        if all(located.isdisjoint(c) for c in combinations):
            return (None,) * len(racks)
        if None not in racks and all(located <= c for c in combinations):
            return (None,) * len(racks)
        return racks


Resolve = Callable[[Rebalance], Rows]
Allocate = Callable[[Rebalance, Rows], GroupAssignment]
Withhold = Callable[[Rebalance, Rows, GroupAssignment], GroupAssignment]
Validate = Callable[[Rebalance, GroupAssignment], None]
Encode = Callable[[Partitions, int], bytes | None]


def newest_claims(rebalance: Rebalance) -> Rows:
    """Settle the claims partition by partition, see ``model.claims.newest``."""
    return newest(rebalance.claims, rebalance.sizes)


def withhold_nothing(rebalance: Rebalance, held: Rows, placed: GroupAssignment) -> GroupAssignment:
    """EAGER members gave up everything before they joined: nothing is in other hands."""
    return placed


def accept(rebalance: Rebalance, placed: GroupAssignment) -> None:
    """Built-in assignors are not checked again by the leader (since KAFKA-13406)."""


def no_user_data(owned: Partitions, generation: int) -> bytes | None:
    """Range and roundrobin write no user data."""
    return None


@dataclass(frozen=True, kw_only=True)
class Design:
    """The stages of one assignor; ``allocate`` decides, the others have the EAGER, stateless default."""

    allocate: Allocate
    read: ReadClaim = no_claim
    resolve: Resolve = newest_claims
    withhold: Withhold = withhold_nothing
    validate: Validate = accept
    encode: Encode = no_user_data


@contextmanager
def _without_collector() -> Iterator[None]:
    """No stage makes reference cycles; the collector would only walk a million tuples again and again."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@dataclass(frozen=True)
class DesignedAssignor:
    """An ``model.assignor.Assignor`` that runs the stages of a design in order."""

    name: str
    protocols: tuple[RebalanceProtocol, ...]
    promises: frozenset[Promise]
    design: Design

    def assign(self, cluster: Cluster, group: GroupSubscription) -> GroupAssignment:
        """Member id -> partitions, sorted, for every member of ``group``."""
        with _without_collector():
            rebalance = Rebalance.of(cluster, group, self.design.read)
            held = self.design.resolve(rebalance)
            placed = self.design.allocate(rebalance, held)
            result = self.design.withhold(rebalance, held, placed)
            self.design.validate(rebalance, result)
            return result

    def user_data(self, owned: Partitions, generation: int) -> bytes | None:
        """Return what a member that was last assigned ``owned`` in ``generation`` sends along."""
        return self.design.encode(owned, generation)
