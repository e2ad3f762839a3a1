"""One call of an assignor as the judge sees it: what was asked, what came back, who validly held what.

The rule of valid claims is written here a second time on purpose, independent of ``model``:
an oracle that shared the assignors' code would share their mistakes.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, NamedTuple, TypeVar

from rebalance_verifier.base.lazy import lazy
from rebalance_verifier.base.processes.failure import FailureKind
from rebalance_verifier.model import wire
from rebalance_verifier.model.assignor import Limits, Promise
from rebalance_verifier.model.values import (
    Cluster,
    GroupAssignment,
    GroupSubscription,
    Partitions,
    RebalanceProtocol,
    TopicPartition,
)

MORE_MEMBERS = 1000
"""So many members may an answer name besides those of the group: what it costs to judge one is bounded."""

MAX_PARTITIONS = 100_000
"""So many partitions may it give, or ten times as many as there are, with those that it gives repeatedly."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A well-formed reply. ``mutated`` says what the target changed in its input, if it did."""

    assignment: GroupAssignment
    mutated: str | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """No answer: why, in one line, and what the target left behind (traceback, stderr)."""

    kind: FailureKind
    message: str
    detail: str = ""
    slow: bool = False
    """It takes long to find out: an answer of a size that is refused, a process that goes on without one."""

    @property
    def costly(self) -> bool:
        """Check whether it takes so long to come that nobody can wait for many of them."""
        return self.slow or self.kind in (FailureKind.TIMEOUT, FailureKind.MEMORY)


class Asker(NamedTuple):
    """The member on whose behalf user data is asked for: its id, and what it subscribes to."""

    member: str
    topics: tuple[str, ...]


class UserDataQuestion(NamedTuple):
    """Question for the user data of a member that was last assigned ``owned`` in ``generation``. ``asker`` is
    None where nobody in particular asks."""

    owned: Partitions
    generation: int
    asker: Asker | None = None


class AssignQuestion(NamedTuple):
    """Question for the assignment of this group. ``again``: of another process of the target. ``moment``:
    which of the lags that change as time goes on the partitions have."""

    protocol: RebalanceProtocol
    cluster: Cluster
    group: GroupSubscription
    again: bool = False
    moment: int = 0

    def bounded(self, reply: Reply) -> Reply:
        """Return a reply, or that it is none when it is so large that nobody should have to judge it."""
        if isinstance(reply, Failure):
            return reply
        members, most = len(reply.assignment), len(self.group) + MORE_MEMBERS
        if members > most:
            return Failure(FailureKind.GARBAGE, f"{members:,} members, at most {most:,} are read", slow=True)
        given = sum(map(len, reply.assignment.values()))
        most = max(MAX_PARTITIONS, 10 * sum(map(len, self.cluster.topics.values())))
        if given > most:
            text = f"{given:,} partitions, at most {most:,} are read"
            return Failure(FailureKind.GARBAGE, text, slow=True)
        return reply


Question = AssignQuestion | tuple[UserDataQuestion, ...]
"""What a history wants to know next: a `Reply`, or what some members write (`Written`)."""

Reply = Answer | Failure
Ask = Callable[[RebalanceProtocol, Cluster, GroupSubscription], Reply]

Written = Sequence[bytes | Failure | None]
"""The target's own subscriptionUserData of some members, in order; nothing that follows a Failure counts."""


WriteUserData = Callable[[Sequence[UserDataQuestion]], Written]


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """User data that members of the target's kind write, and the content that can be read from it.

    ``tells_claims``: it says what was owned, as the sticky assignor's does, so that an EAGER leader
    can be sticky. ``tells_generation``: it is the four bytes of the cooperative assignor before KIP-792,
    the age of the claims beside it. ``sticky_too``: members of another client may write StickyAssignor
    userData into the same group (librdkafka does, on cooperative-sticky); true unless the format is the
    target's own. ``one_process``: they are consumers of one process, and each writes what the one would that
    was assigned something last.
    """

    write: WriteUserData
    tells_claims: bool
    tells_generation: bool
    sticky_too: bool
    one_process: bool = False

    @classmethod
    def of(cls, write: WriteUserData, *, one_process: bool = False) -> Writer:
        """Find out by asking for the userData of two members that differ in what they owned."""
        owned = (TopicPartition("t", 0),)
        [some], [none] = write([UserDataQuestion(owned, 1)]), write([UserDataQuestion((), 1)])
        generation = wire.encode_cooperative_user_data(1)
        known = (None, generation, wire.encode_sticky_user_data(owned, 1))
        return cls(
            write=write,
            tells_claims=some != none,
            tells_generation=some == generation,
            sticky_too=some in known,
            one_process=one_process,
        )


@dataclass(frozen=True, slots=True)
class StatedClaim:
    """Claim of a member, repeated partitions included, and the generation it is for."""

    partitions: Partitions
    generation: int


@dataclass(frozen=True, kw_only=True)
class AssignorCall:
    """One answered call with the claims that the judge knows to be in it."""

    protocol: RebalanceProtocol
    cluster: Cluster
    group: GroupSubscription
    claims: Mapping[str, StatedClaim]
    assignment: GroupAssignment
    limits: Limits = field(default_factory=dict)
    """What the target states with its promises."""

    @lazy
    def existing(self) -> frozenset[TopicPartition]:
        """The partitions that the leader knows."""
        return frozenset(self.cluster.partitions())

    @lazy
    def claimants(self) -> dict[TopicPartition, dict[str, int]]:
        """Partition -> member -> generation, for every claim whatever its worth."""
        found: dict[TopicPartition, dict[str, int]] = {}
        for member, claim in self.claims.items():
            for partition in claim.partitions:
                found.setdefault(partition, {})[member] = claim.generation
        return found

    @lazy
    def holders(self) -> dict[TopicPartition, tuple[str, ...]]:
        """Partition -> the members whose claim is the newest; more than one is a tie (KIP-792)."""
        return {
            partition: tuple(claims) if len(claims) == 1 else _newest(claims)
            for partition, claims in self.claimants.items()
        }

    @lazy
    def valid(self) -> dict[TopicPartition, str]:
        """Partition -> the one member that may keep it: newest sole claimant, subscribed, existing."""
        return {
            partition: holders[0]
            for partition, holders in self.holders.items()
            if len(holders) == 1
            and partition in self.existing
            and partition.topic in self.group[holders[0]].topics
        }

    @lazy
    def granted(self) -> dict[TopicPartition, tuple[str, ...]]:
        """Partition -> the members that were given it, once per mention."""
        found: dict[TopicPartition, tuple[str, ...]] = {}
        several: dict[TopicPartition, list[str]] = {}
        for member, partitions in self.assignment.items():
            alone = (member,)
            for partition in partitions:
                if partition in found:
                    several.setdefault(partition, [*found[partition]]).append(member)
                else:
                    found[partition] = alone
        return found | {partition: tuple(members) for partition, members in several.items()}

    @lazy
    def subscribers(self) -> dict[str, tuple[str, ...]]:
        """Topic known to the leader -> members subscribed to it, in the order of the group."""
        known, found = self.cluster.topics, dict[str, list[str]]()
        for member, subscription in self.group.items():
            for topic in dict.fromkeys(subscription.topics):
                if topic in known:
                    found.setdefault(topic, []).append(member)
        return {topic: tuple(members) for topic, members in found.items()}

    @lazy
    def withheld(self) -> tuple[TopicPartition, ...]:
        """Return existing partitions with a subscriber that no member was given, sorted."""
        missing = self.existing - self.granted.keys()
        return tuple(sorted([partition for partition in missing if partition.topic in self.subscribers]))

    @lazy
    def loads(self) -> dict[str, int]:
        """Member -> number of partitions it was given; what is only given back to it does not count."""
        given = {member: self.assignment.get(member, ()) for member in self.group}
        if self.granted.keys() <= self.existing:
            return {member: len(partitions) for member, partitions in given.items()}
        return {
            member: sum(partition in self.existing for partition in partitions)
            for member, partitions in given.items()
        }

    @lazy
    def revoked(self) -> dict[str, Partitions]:
        """Member -> what it claims and was not given back; it revokes these and rejoins (KIP-429)."""
        revoked = {}
        for member, claim in self.claims.items():
            if lost := set(claim.partitions).difference(self.assignment.get(member, ())):
                revoked[member] = tuple(sorted(lost))
        return revoked

    @lazy
    def kept(self) -> int:
        """Number of valid claims that were honoured."""
        granted = self.granted
        return sum([member in granted.get(partition, ()) for partition, member in self.valid.items()])

    @lazy
    def waiting(self) -> tuple[TopicPartition, ...]:
        """Return the withheld partitions for which a member has room: all, unless a limit is promised. Room
        for partitions that have to be revoked first may be kept."""
        most = self.limits.get(Promise.PARTIAL)
        if most is None:
            return self.withheld
        room = {member: max(0, most - load) for member, load in self.loads.items()}
        kept = sum(partition in self.claimants for partition in self.withheld)
        return tuple([p for p in self.withheld if sum(room[m] for m in self.subscribers[p.topic]) > kept])

    def owners_at_once(self, partition: TopicPartition) -> tuple[str, ...]:
        """Return who owns it while SyncGroup delivers the assignment: nobody if that is no more than one, or
        if several may; one alone if it is given it twice."""
        if self.protocol is RebalanceProtocol.SHARE:
            return ()
        given = self.granted.get(partition, ())
        held = self.holders.get(partition, ()) if self.protocol is RebalanceProtocol.COOPERATIVE else ()
        owners = given if set(given) <= set(held) else (*given, *held)
        return tuple(dict.fromkeys(owners)) if len(owners) > 1 else ()

    @lazy
    def equal_subscriptions(self) -> bool:
        """Check whether all members subscribe to the same of the topics that the leader knows."""
        subscribed = {subscription.topics for subscription in self.group.values()}
        if len(subscribed) <= 1:
            return True
        known = self.cluster.topics.keys()
        return len({frozenset(known & topics) for topics in subscribed}) <= 1


def _newest(claims: Mapping[str, int]) -> tuple[str, ...]:
    newest = max(claims.values())
    return tuple([member for member, generation in claims.items() if generation == newest])


_T = TypeVar("_T")
_Q = TypeVar("_Q")
_R = TypeVar("_R")


def answered(asking: Generator[_Q, _R, _T], answer: Callable[[_Q], _R]) -> _T:
    """Return what comes of something that asks questions, with the answers to them."""
    try:
        question = next(asking)
        while True:
            question = asking.send(answer(question))
    except StopIteration as end:
        result: _T = end.value
        return result


def answered_together(
    asking: Mapping[int, Generator[_Q, Any, _T]], answer: Callable[[list[tuple[int, _Q]]], Sequence[Any]]
) -> dict[int, _T]:
    """Return the same of many at once, each a question further in every round, in the order of their
    numbers."""
    answers: dict[int, Any] = dict.fromkeys(sorted(asking))
    found: dict[int, _T] = {}
    while answers:
        pending = []
        for number, last in answers.items():
            try:
                pending.append((number, asking[number].send(last)))
            except StopIteration as end:
                found[number] = end.value
        answers = {number: one for (number, _), one in zip(pending, answer(pending), strict=True)}
    return found


def once(ask: Callable[[AssignorCall], _T]) -> Callable[[AssignorCall], _T]:
    """Keep with each call what ``ask`` finds in it: several clauses want to know the same."""
    key = f"{ask.__module__}.{ask.__qualname__}"

    @wraps(ask)
    def kept(call: AssignorCall) -> _T:
        found = call.__dict__
        if key not in found:
            found[key] = ask(call)
        known: _T = found[key]
        return known

    return kept
