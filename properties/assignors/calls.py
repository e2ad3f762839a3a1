"""One call of an assignor as the judge sees it: what was asked, what came back, who validly held what.

The rule of valid claims is written here a second time on purpose, independent of ``rebalance.model``:
an oracle that shared the assignors' code would share their mistakes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

from rebalance.model.values import (
    Cluster,
    GroupAssignment,
    GroupSubscription,
    Partitions,
    RebalanceProtocol,
    TopicPartition,
)


class FailureKind(StrEnum):
    """Ways in which a target can fail to answer."""

    TIMEOUT = "timeout"
    CRASH = "crash"
    MEMORY = "memory"
    GARBAGE = "garbage"
    ERRORED = "errored"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Answer:
    """A well-formed reply. ``mutated`` says what the target changed in its input, if it did."""

    assignment: GroupAssignment
    mutated: str | None = None
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Failure:
    """No answer: why, in one line, and what the target left behind (traceback, stderr)."""

    kind: FailureKind
    message: str
    detail: str = ""
    seconds: float = 0.0


class Asker(NamedTuple):
    """The member on whose behalf user data is asked for: its id, and what it subscribes to."""

    member: str
    topics: tuple[str, ...]


Reply = Answer | Failure
Ask = Callable[[RebalanceProtocol, Cluster, GroupSubscription], Reply]


@dataclass(frozen=True, slots=True)
class Claim:
    """What a member says it holds, as often as it says it, and the generation it says it for."""

    partitions: Partitions
    generation: int


@dataclass(frozen=True)
class Call:
    """One answered call with the claims that the judge knows to be in it."""

    protocol: RebalanceProtocol
    cluster: Cluster
    group: GroupSubscription
    claims: Mapping[str, Claim]
    assignment: GroupAssignment

    @cached_property
    def claimants(self) -> dict[TopicPartition, dict[str, int]]:
        """Partition -> member -> generation, for every claim whatever its worth."""
        found: dict[TopicPartition, dict[str, int]] = {}
        for member, claim in self.claims.items():
            for partition in claim.partitions:
                found.setdefault(partition, {})[member] = claim.generation
        return found

    @cached_property
    def holders(self) -> dict[TopicPartition, tuple[str, ...]]:
        """Partition -> the members whose claim is the newest; more than one is a tie (KIP-792)."""
        return {
            partition: tuple(m for m, g in claims.items() if g == max(claims.values()))
            for partition, claims in self.claimants.items()
        }

    @cached_property
    def valid(self) -> dict[TopicPartition, str]:
        """Partition -> the one member that may keep it: newest sole claimant, subscribed, existing."""
        return {
            partition: holders[0]
            for partition, holders in self.holders.items()
            if len(holders) == 1
            and partition in self.cluster
            and partition.topic in self.group[holders[0]].topics
        }

    @cached_property
    def granted(self) -> dict[TopicPartition, tuple[str, ...]]:
        """Partition -> the members that were given it, once per mention."""
        found: dict[TopicPartition, list[str]] = {}
        for member, partitions in self.assignment.items():
            for partition in partitions:
                found.setdefault(partition, []).append(member)
        return {partition: tuple(members) for partition, members in found.items()}

    @cached_property
    def subscribers(self) -> dict[str, tuple[str, ...]]:
        """Topic known to the leader -> members subscribed to it, in the order of the group."""
        found: dict[str, list[str]] = {}
        for member, subscription in self.group.items():
            for topic in dict.fromkeys(subscription.topics):
                if topic in self.cluster.topics:
                    found.setdefault(topic, []).append(member)
        return {topic: tuple(members) for topic, members in found.items()}

    @cached_property
    def withheld(self) -> tuple[TopicPartition, ...]:
        """Existing partitions with a subscriber that nobody was given, sorted."""
        return tuple(
            TopicPartition(topic, index)
            for topic in sorted(self.subscribers)
            for index in range(self.cluster.partition_count(topic))
            if TopicPartition(topic, index) not in self.granted
        )

    @cached_property
    def loads(self) -> dict[str, int]:
        """Member -> number of partitions it was given; what is only given back to it does not count."""
        return {
            member: sum(partition in self.cluster for partition in self.assignment.get(member, ()))
            for member in self.group
        }

    @cached_property
    def revoked(self) -> dict[str, Partitions]:
        """Member -> what it claims and was not given back; it revokes these and rejoins (KIP-429)."""
        lost = {
            member: tuple(sorted(set(claim.partitions) - set(self.assignment.get(member, ()))))
            for member, claim in self.claims.items()
        }
        return {member: partitions for member, partitions in lost.items() if partitions}

    @cached_property
    def kept(self) -> int:
        """Number of valid claims that were honoured."""
        return sum(1 for p, m in self.valid.items() if m in self.granted.get(p, ()))

    @cached_property
    def equal_subscriptions(self) -> bool:
        """Whether all members subscribe to the same of the topics that the leader knows."""
        known = frozenset(self.cluster.topics)
        return len({frozenset(s.topics) & known for s in self.group.values()}) <= 1
