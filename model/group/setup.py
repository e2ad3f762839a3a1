"""What is fixed in a scenario: who takes part, as what release, on which topics, with which faults."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import permutations, product, zip_longest
from typing import Any

from rebalance_verifier.model.assignor import Assignor
from rebalance_verifier.model.assignors import reference
from rebalance_verifier.model.bugs.switches import switched
from rebalance_verifier.model.group.parts import Id, Parts, Slot, Topics, each, union
from rebalance_verifier.model.values import RebalanceProtocol, TopicPartition

CONNECTION_FAULTS = ("left behind", "late leave")
"""Kinds of faults by which a request outlives its connection."""

RARE_FAULTS = (
    *("leave lost", "member removed", "sync not stored", "return not stored"),
    *("polls on", "completes again", "unsubscribe midway", "racks change"),
)
"""Kinds of faults that have scenarios of their own."""

CLASSIC, CONSUMER = "classic", "consumer"
"""What ``group.protocol`` of a consumer may be."""

MIGRATION = "migration"
"""The group protocol of a group between the two: some member speaks the one, some member the other."""


def group_protocol(spoken: Iterable[str]) -> str:
    """Return the protocol of a group whose members speak these; CLASSIC of a group without members.

    >>> group_protocol(["consumer", "consumer"]), group_protocol(["classic", "consumer"])
    ('consumer', 'migration')
    """
    several = set(spoken)
    return MIGRATION if len(several) > 1 else next(iter(several), CLASSIC)


POLICIES = ("bidirectional", "upgrade", "downgrade", "disabled")
"""What ``group.consumer.migration.policy`` of a broker may be."""

ROLLOUTS = ("any", "settled", "stopped")
"""How members are bounced: at any time, each stopped and started only when the rest of the group has
settled, or all stopped before the first is started."""

AssignorFactory = Callable[[str, tuple[str, ...]], Assignor]
"""Protocol name and assignor switches to the assignor that the leader runs; ``switched`` by default."""

Targets = Callable[[Sequence[Any]], Iterable[tuple[Parts, ...]]]
"""Members of a consumer group (``TargetMember``) to the targets that the coordinator may compute for them."""


@dataclass(frozen=True, kw_only=True)
class ConsumerConfig:
    """Configuration of a consumer between two bounces: its assignor list and its release.

    ``decisions`` are ids of ``model.bugs.decisions`` (member and leader), ``switches`` of
    ``model.bugs.switches`` (its assignor). ``version`` is the subscription version it writes; ``tells``
    whether CooperativeStickyAssignor's user data carries a generation. ``upgrade_from``: a Streams
    application with that setting is EAGER whatever its assignor can do (KIP-429, upgrade path for Streams).
    ``leaves``: it sends LeaveGroup when it is closed; Streams turns that off
    (``internal.leave.group.on.close``). ``group_protocol`` is ``group.protocol``; where it is "consumer"
    (KIP-848), the first of ``assignors`` is the one of the coordinator (``group.remote.assignor``).
    """

    assignors: tuple[str, ...]
    decisions: frozenset[str] = frozenset()
    switches: tuple[str, ...] = ()
    version: int = 3
    tells: bool = True
    upgrade_from: bool = False
    leaves: bool = True
    group_protocol: str = CLASSIC

    @cached_property
    def eager(self) -> bool:
        """EAGER unless every assignor can do COOPERATIVE (``ConsumerCoordinator``'s constructor).

        Raises ValueError for a list without a common protocol, as the constructor throws.
        """
        common = [p for p in RebalanceProtocol if all(p in _protocols(name) for name in self.assignors)]
        if not common:
            raise ValueError(f"assignors {list(self.assignors)} have no rebalance protocol in common")
        if "no_revoke_on_protocol_downgrade" in self.decisions:
            return not any(RebalanceProtocol.COOPERATIVE in _protocols(name) for name in self.assignors)
        return self.upgrade_from or RebalanceProtocol.COOPERATIVE not in common

    @property
    def claims_last(self) -> bool:
        """Check whether it claims what it was assigned last. The client that does, kafka-python, writes
        version 0 where it is EAGER (docs/reference/client-metadata.md)."""
        return "claims_last_assigned" in self.decisions and not self.eager


@cache
def _protocols(name: str) -> tuple[RebalanceProtocol, ...]:
    return reference(name).protocols


@dataclass(frozen=True, kw_only=True)
class Consumer:
    """One slot: the stages it is bounced through, and the subscriptions that it may change among.

    ``subscriptions`` are topics by name. ``patterns`` are the topics, there or not, that match the pattern
    beside each of them; empty where it has none.
    """

    stages: tuple[ConsumerConfig, ...]
    subscriptions: tuple[Topics, ...]
    instance: int | None = None
    rack: str | None = None
    patterns: tuple[Topics, ...] = ()

    @property
    def choices(self) -> tuple[tuple[Topics, Topics], ...]:
        """Return each subscription: topics by name, and those that match its pattern."""
        return tuple(zip_longest(self.subscriptions, self.patterns, fillvalue=Topics(0)))


@dataclass(frozen=True, kw_only=True)
class Setup:
    """A scenario. ``topics[t]`` is the set of partitions that topic ``t`` can have, ``exist`` those at first.

    ``budget`` is how many faults may happen in all, of the kinds in ``faults``. ``naming``: "every" lets
    the leader's assignor see the members and partitions under every naming, since ids are random
    (sound for symmetry); "given" under one. ``steps``: "atomic" (``protocol.atomic``) or "fine".
    ``max_size`` is group.max.size; where it ``lowers``, only of a broker that a failover moves the group to.
    ``racks[p]`` are the racks of partition ``p``, as long as they do not change, and ``moved[p]`` afterwards.
    ``policy`` is group.consumer.migration.policy: which conversions between the two protocols there are.
    ``rollout`` is how members go from one protocol to the other, of ``ROLLOUTS``. ``delays``: a consumer
    group may get its target later than that is due (group.consumer.assignment.interval.ms, KIP-1263).
    ``targets``: what the assignor of a consumer group may compute, where that is known. ``warmups`` is
    max.warmup.replicas of a Kafka Streams application, whose tasks move once their stores have caught up
    (KIP-441); 0 where the consumers are no application of Kafka Streams.
    """

    consumers: tuple[Consumer, ...]
    topics: tuple[Parts, ...]
    exist: Parts
    faults: tuple[str, ...] = ()
    budget: int = 0
    coordinator: frozenset[str] = frozenset()
    max_size: int | None = None
    lowers: bool = False
    naming: str = "every"
    steps: str = "atomic"
    racks: tuple[tuple[str, ...], ...] = ()
    moved: tuple[tuple[str, ...], ...] = ()
    policy: str = "bidirectional"
    rollout: str = "any"
    delays: bool = False
    warmups: int = 0
    targets: Targets | None = None
    factory: AssignorFactory = switched

    @property
    def slots(self) -> range:
        return range(len(self.consumers))

    @cached_property
    def protocol(self) -> str:
        """Return the group protocol, by which every table of the three protocols is read."""
        return group_protocol(
            stage.group_protocol for consumer in self.consumers for stage in consumer.stages
        )

    @property
    def server_assignor(self) -> str:
        """The assignor that the coordinator uses: the one that the first member of KIP-848 names."""
        return self._server_assignors[0]

    @property
    def _server_assignors(self) -> tuple[str, ...]:
        stages = [stage for consumer in self.consumers for stage in consumer.stages]
        return tuple(stage.assignors[0] for stage in stages if stage.group_protocol == CONSUMER)

    @property
    def mixed(self) -> bool:
        """Check whether members may offer different assignor lists, so that the coordinator has to
        compare."""
        return len({stage.assignors for consumer in self.consumers for stage in consumer.stages}) > 1

    @property
    def lists(self) -> int:
        """Return how many different assignor lists members of the classic protocol may offer."""
        stages = (stage for consumer in self.consumers for stage in consumer.stages)
        return len({stage.assignors for stage in stages if stage.group_protocol == CLASSIC})

    @property
    def keeps_log(self) -> bool:
        """Check whether a failover can happen, so that what the coordinator has appended to its log
        matters."""
        return "failover" in self.faults

    @property
    def breaks_connections(self) -> bool:
        """Check whether a request may outlive its connection, and so be overtaken by those of the next
        one."""
        return not set(CONNECTION_FAULTS).isdisjoint(self.faults)

    @property
    def compares(self) -> bool:
        """Check whether one member's JoinGroup can be refused because of the others."""
        return self.mixed or self.max_size is not None

    @property
    def has_patterns(self) -> bool:
        """Check whether a member may subscribe by pattern."""
        return any(any(consumer.patterns) for consumer in self.consumers)

    def matching(self, pattern: int, cluster: int) -> Topics:
        """Return the topics of a pattern that there are."""
        return Topics(union([1 << topic for topic in each(pattern) if self.topics[topic] & cluster]))

    def parts(self, topics: int) -> Parts:
        """Return all partitions that the ``topics`` can have."""
        return union([self.topics[topic] for topic in each(topics)])

    def partition(self, number: int) -> TopicPartition:
        """Partition ``number`` by name; topics are t0, t1 ... unless there is only one, t."""
        for index, parts in enumerate(self.topics):
            if parts >> number & 1:
                name = "t" if len(self.topics) == 1 else f"t{index}"
                return TopicPartition(name, each(parts).index(number))
        raise ValueError(f"no topic has partition number {number}")

    def renamings(self, *, kept: int = 0) -> list[dict[int, int]]:
        """Return renamings of the partitions within their topics, those in ``kept`` among each other; only
        the one that changes nothing where partitions have racks."""
        if self.racks:
            return [{p: p for parts in self.topics for p in each(parts)}]
        return [
            {
                p: q
                for parts, order in zip(self.topics, choice, strict=True)
                for p, q in zip(each(parts), order, strict=True)
            }
            for choice in product(*(_orders(parts, kept) for parts in self.topics))
        ]

    def spell(self, parts: int | None) -> str:
        """Return a set of partitions as text.

        >>> Setup(consumers=(), topics=(Parts(0b11),), exist=Parts(0b11)).spell(0b11)
        't-0 t-1'
        """
        names = self._partition_names
        return " ".join(names[p] for p in each(parts or 0)) or "-"

    @cached_property
    def _partition_names(self) -> Mapping[int, str]:
        return {number: str(self.partition(number)) for parts in self.topics for number in each(parts)}


def _orders(parts: Parts, kept: int) -> Iterator[tuple[int, ...]]:
    """Yield the orders of one topic's partitions in which the ``kept`` ones stand where such stood."""
    numbers = each(parts)
    for order in permutations(numbers):
        if all((kept >> a & 1) == (kept >> b & 1) for a, b in zip(numbers, order, strict=True)):
            yield order


@dataclass(frozen=True)
class MemberContext:
    """One slot of a setup: what a member's actions know besides the state."""

    slot: Slot
    setup: Setup

    @property
    def consumer(self) -> Consumer:
        return self.setup.consumers[self.slot]

    @property
    def static(self) -> bool:
        return self.consumer.instance is not None

    def config(self, stage: int) -> ConsumerConfig:
        return self.consumer.stages[stage]

    def name(self, component: str) -> str:
        """Return the component of this slot: ``member`` is ``member A``."""
        return f"{component} {letter(self.slot)}"

    def id(self, incarnation: int) -> Id:
        return Id(self.slot, incarnation)


@cache
def letter(slot: int) -> str:
    """Return the letter of a slot: A, B, C, and so on. for slots.

    >>> letter(2), letter(27)
    ('C', 'B1')
    """
    return chr(ord("A") + slot % 26) + (str(slot // 26) if slot >= 26 else "")
