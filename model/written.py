"""Bytes that Kafka's clients write into JoinGroup, as observed: the one place that says what a client writes.

``written.toml`` holds JoinGroups of real clients by release, assignors and situation; ``make clients`` makes
it. What members that are played write, what release profiles say and which user data is known follows from
it, or is held against it by a test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from typing import Any

from rebalance_verifier.base.tables import table
from rebalance_verifier.model import wire
from rebalance_verifier.model.values import NO_GENERATION, Partitions, Subscription, TopicPartition

NAMED = ("c", "e", "a", "d", "b")
"""Topics in the order in which the application names them; each has one partition."""
TWICE = ("c", "e", "c")
"""Topics of an application that names one twice."""
ASSIGNED = tuple(TopicPartition(topic, 0) for topic in sorted(NAMED))
"""What the client was assigned, from the second join on."""


UserDataFormat = Callable[[Partitions, int], bytes | None]
KAFKA_PYTHON = b"\0\1"
"""Version that kafka-python 3 writes before the user data of its sticky assignor."""

FORMATS: tuple[UserDataFormat, ...] = (
    lambda owned, generation: None,
    lambda owned, generation: b"",
    lambda owned, generation: wire.encode_cooperative_user_data(generation),
    wire.encode_sticky_user_data,
    lambda owned, generation: KAFKA_PYTHON + wire.encode_sticky_user_data(owned, generation),
    lambda owned, generation: wire.encode_sticky_user_data(owned, NO_GENERATION),
    lambda owned, generation: wire.encode_sticky_user_data((), generation),
    lambda owned, generation: wire.encode_sticky_user_data(owned, None),
)
"""What the clients that are known write as user data, of partitions assigned and their generation."""


class JoinSituation(StrEnum):
    """Situation in which a client joins. The value of three is what its heartbeat was answered with."""

    FIRST = "first"
    REBALANCED = "REBALANCE_IN_PROGRESS"
    REFUSED = "refused-sync"
    FENCED = "ILLEGAL_GENERATION"
    EXPELLED = "UNKNOWN_MEMBER_ID"
    TWICE = "topic-twice"


GENERATION = {
    JoinSituation.REBALANCED: 6,
    JoinSituation.REFUSED: 7,
    JoinSituation.FENCED: 8,
    JoinSituation.EXPELLED: 9,
}
"""Generation that the client had just joined; in the one that is refused it was assigned nothing."""

STORY = tuple(situation for situation in JoinSituation if situation is not JoinSituation.TWICE)
"""What one client lives through, in this order; to name a topic twice takes another one."""


@dataclass(frozen=True, slots=True)
class WrittenJoin:
    """JoinGroup as a client wrote it: ``version`` of the request, ``metadata`` by assignor."""

    version: int
    reason: str | None
    metadata: Mapping[str, bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenBy:
    """Joins of a ``client`` that was told ``assignors``, with commas between them. ``missing`` says why a
    situation has none."""

    client: str
    release: str
    assignors: str
    joins: Mapping[JoinSituation, WrittenJoin]
    missing: Mapping[JoinSituation, str]

    def read(self, situation: JoinSituation, assignor: str = "") -> ReadMetadata:
        """Return what it writes for one of its assignors, the first without a name. Raises KeyError."""
        name = assignor or self.assignors.partition(",")[0]
        written = self.joins[situation].metadata
        return read_metadata(written[name] if name in written else next(iter(written.values())))

    def to_table(self) -> dict[str, Any]:
        """Return it as the table has it, below client, release and assignors."""
        joins = {
            situation.value: {
                "version": join.version,
                **({} if join.reason is None else {"reason": join.reason}),
                "metadata": {name: data.hex() for name, data in join.metadata.items()},
            }
            for situation, join in self.joins.items()
        }
        return {**joins, **{situation.value: why for situation, why in self.missing.items()}}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadMetadata:
    """Subscription in the bytes of a client."""

    subscription: Subscription

    @property
    def short(self) -> bool:
        """Check whether it ends before the fields that its version has."""
        return self.subscription.short

    @property
    def order(self) -> str:
        """Return the order of its topics: sorted, as named, or another."""
        topics = self.subscription.topics
        named = tuple(topic for topic in NAMED if topic in topics)
        return "sorted" if topics == tuple(sorted(topics)) else "as named" if topics == named else "any"

    @property
    def owned(self) -> str:
        """Return which of the partitions assigned it claims in the field for that."""
        if self.subscription.version < 1 or self.short:
            return "no field"
        return extent(self.subscription.owned_partitions)

    @property
    def generation(self) -> str:
        """Return the generation in the field for that."""
        sub = self.subscription
        return str(sub.generation_id) if sub.version >= 2 and not self.short else "no field"

    @property
    def rack(self) -> str:
        """Return the rack: null and empty are not the same."""
        if self.subscription.version < 3 or self.short:
            return "no field"
        return "null" if self.subscription.rack_id is None else repr(self.subscription.rack_id)

    @property
    def user_data(self) -> str:
        """Return the user data in words."""
        return described(self.subscription.user_data)


def read_metadata(data: bytes) -> ReadMetadata:
    """Read the metadata of a member, that of Q1 too. Raises WireError."""
    try:
        return ReadMetadata(subscription=wire.decode_subscription(data))
    except wire.WireError as error:
        if not error.field.startswith("owned_partitions"):
            raise
        version = int.from_bytes(data[:2], "big")
        sub = wire.decode_subscription(b"\0\0" + data[2:])
        short = Subscription(topics=sub.topics, user_data=sub.user_data, version=version, short=True)
        return ReadMetadata(subscription=short)


def extent(partitions: Partitions) -> str:
    """Say which of the partitions that were assigned these are."""
    if not partitions:
        return "none"
    return "all" if sorted(partitions) == list(ASSIGNED) else " ".join(map(str, partitions))


def described(data: bytes | None) -> str:
    """Say what user data is, of the formats that Kafka's clients have.

    >>> described(None), described(b""), described(b"\\xff" * 4), described(bytes(4))
    ('null', 'empty', 'generation -1', 'no partitions')
    """
    if data is None:
        return "null"
    if not data:
        return "empty"
    if len(data) == 4 and any(data):
        return f"generation {wire.decode_cooperative_user_data(data)}"
    for before in (b"", KAFKA_PYTHON):
        if data.startswith(before):
            try:
                claims, generation = wire.decode_sticky_user_data(data[len(before) :])
            except wire.WireError:
                continue
            known = wire.encode_sticky_user_data(claims, generation)
            age = f", generation {generation}" if before + known == data else ""
            mine = f"{before.hex()} + " if before else ""
            return f"{mine}{extent(claims) if claims else 'no'} partitions{age}"
    return data.hex()


@cache
def written() -> tuple[WrittenBy, ...]:
    """Return the whole table, in its order."""
    return tuple(_rows(table(__file__)))


def from_table(client: str, release: str, assignors: str, row: Mapping[str, Any]) -> WrittenBy:
    """Return what `WrittenBy.to_table` wrote."""
    found = {JoinSituation(name): value for name, value in row.items()}
    return WrittenBy(
        client=client,
        release=release,
        assignors=assignors,
        joins={
            situation: WrittenJoin(
                join["version"],
                join.get("reason"),
                {name: bytes.fromhex(data) for name, data in join["metadata"].items()},
            )
            for situation, join in found.items()
            if not isinstance(join, str)
        },
        missing={situation: join for situation, join in found.items() if isinstance(join, str)},
    )


def _rows(data: Mapping[str, Any]) -> Iterator[WrittenBy]:
    for client, by_release in data.items():
        for release, by_assignors in by_release.items():
            for assignors, row in by_assignors.items():
                yield from_table(client, release, assignors, row)


def written_by(client: str, assignors: str, release: str = "") -> WrittenBy:
    """Return what a client writes; without a release its newest. Raises KeyError where nobody observed it."""
    rows = [
        row
        for row in written()
        if (row.client, row.assignors) == (client, assignors) and release in ("", row.release)
    ]
    if not rows:
        raise KeyError(client, assignors, release)
    return rows[-1]


# -- what a member writes that is played -------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimMade:
    """Fields of JoinGroup about what a member has: ``owned`` and its ``generation``, user data, and the
    claim that can be read from all of it, with its age."""

    owned: Partitions
    generation: int
    user_data: bytes | None
    claimed: Partitions
    since: int


@dataclass(frozen=True, slots=True)
class Dialect:
    """How members of a client write, as it was observed (``row``)."""

    row: WrittenBy

    @property
    def name(self) -> str:
        """Return how it is called in a scenario."""
        return f"{self.row.client}=={self.row.release}:{self.row.assignors}"

    @property
    def protocol(self) -> str:
        """Return the name of its assignor in JoinGroup, the first of a list."""
        return next(iter(self.row.joins[JoinSituation.FIRST].metadata))

    @property
    def first(self) -> ReadMetadata:
        """Return what it writes before it was assigned anything."""
        return self.row.read(JoinSituation.FIRST)

    @property
    def keeps(self) -> bool:
        """Check whether its members join with what they own, so that they are COOPERATIVE."""
        return self.row.read(JoinSituation.REBALANCED).owned == "all"

    def subscription(
        self, topics: tuple[str, ...], made: ClaimMade, rack: str | None = None, instance: str | None = None
    ) -> Subscription:
        """Return what a member writes that makes this claim."""
        like = self.first.subscription
        return replace(
            like,
            topics=topics,
            user_data=made.user_data,
            owned_partitions=made.owned,
            generation_id=made.generation,
            rack_id=(rack or like.rack_id) if like.version >= 3 else None,
            group_instance_id=instance,
        )

    def claim(self, *, owned: Partitions, last: Partitions, joined: int, since: int) -> ClaimMade:
        """Return what a member writes that owns ``owned``, joined the generation ``joined`` last, -1 where it
        was removed since, and was assigned ``last`` in the generation ``since``."""
        lost = self._seen(JoinSituation.FENCED)
        if self.keeps and joined < 0 and lost.owned == "all":
            owned = last  # K4
        held = owned if self.keeps else ()
        generation = self._generation(joined, since)
        user_data, age = self._user_data(held, last, joined, since)
        seen = described(user_data)
        if self.keeps:
            known = generation if self.first.subscription.version >= 2 else NO_GENERATION
            if self.first.subscription.version < 2 and seen.startswith("generation"):
                known = age
            return ClaimMade(
                owned=held, generation=generation, user_data=user_data, claimed=held, since=known
            )
        lists = bool(last) and not seen.startswith(("null", "empty", "no", "generation"))
        known = age if lists and not seen.endswith("generation -1") else NO_GENERATION
        return ClaimMade(
            owned=(),
            generation=generation,
            user_data=user_data,
            claimed=last if lists else (),
            since=known,
        )

    def _generation(self, joined: int, since: int) -> int:
        """Return the field for the generation: of the assignment, or of the last JoinGroup answered."""
        seen = self._seen(JoinSituation.REBALANCED).generation
        if not seen.isdigit():
            return NO_GENERATION
        refused = self._seen(JoinSituation.REFUSED).generation
        age = since if refused == seen else joined
        keeps = self._seen(JoinSituation.FENCED).generation.isdigit()
        return since if age < 0 and keeps else max(age, NO_GENERATION)

    def _user_data(
        self, held: Partitions, last: Partitions, joined: int, since: int
    ) -> tuple[bytes | None, int]:
        """Return the user data, and the generation that can be in it."""
        if not last and since < 0:
            return self.first.subscription.user_data, NO_GENERATION
        refused, fenced = (self._seen(at).user_data for at in (JoinSituation.REFUSED, JoinSituation.FENCED))
        if joined < 0:
            age = since if fenced.endswith(str(GENERATION[JoinSituation.FENCED])) else NO_GENERATION
        else:
            age = joined if refused.endswith(str(GENERATION[JoinSituation.REFUSED])) else since
        forgets = self.keeps and fenced.startswith("no partitions")
        return self._form(held if forgets else last, age), age

    @property
    def _form(self) -> UserDataFormat:
        seen = self._seen(JoinSituation.REBALANCED).user_data
        since = GENERATION[JoinSituation.REBALANCED]
        return next(form for form in FORMATS if described(form(ASSIGNED, since)) == seen)

    def _seen(self, situation: JoinSituation) -> ReadMetadata:
        """Return what it writes in a situation; one that it does not survive is like the one before."""
        order: list[JoinSituation] = list(STORY)
        at = order.index(situation)
        return next(self.row.read(one) for one in reversed(order[: at + 1]) if one in self.row.joins)


@cache
def dialect(name: str) -> Dialect:
    """Return the dialect called ``CLIENT==RELEASE:ASSIGNOR``. Raises ValueError where nobody observed it."""
    pinned, _, assignor = name.rpartition(":")
    client, _, release = pinned.partition("==")
    try:
        return Dialect(written_by(client, assignor, release))
    except KeyError:
        raise ValueError(
            f"nobody observed what {name!r} writes: `make clients` observes {', '.join(observed_clients())}"
        ) from None


def observed_clients() -> tuple[str, ...]:
    """Return the clients in the table."""
    return tuple(dict.fromkeys(row.client for row in written()))
