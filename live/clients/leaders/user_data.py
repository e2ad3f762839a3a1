"""What a client writes as user data: learnt from its own JoinGroups.

It joins, is assigned partitions, joins again: what it wrote then is held against the formats that are known
of Kafka's clients. Where one of them is its own the rest is written by that; otherwise each is asked of the
client.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from rebalance_verifier.base.processes.tools import cache, key
from rebalance_verifier.live.clients.leaders.leader import LeaderClient, LeaderLost, LossKind
from rebalance_verifier.model import wire
from rebalance_verifier.model.values import NO_GENERATION, Partitions, TopicPartition
from rebalance_verifier.model.written import FORMATS, UserDataFormat

LEARNT_FROM = ((1, 6), (3, 9))
"""Partitions of the one topic that the client is assigned, and the generation."""
SHORT = (
    "its JoinGroup for {!r} has a subscription that cannot be read: it says version 1 and ends where owned "
    "partitions should follow (bug Q1, `rebalance bugs Q1`: which leaders cope with that)"
)
MEMBER = "member"
LEARNT = "2"
"""Changes where something else is learnt than before, so that what was remembered is not taken."""
LEARN = "learn"
"""Argument upon which the program of a client learns what it writes, for later processes, and ends."""


def remembered(settings: str) -> Path:
    """Return where it lies what the client of these settings was seen to write."""
    return cache() / "leaders" / f"{key(settings, str(len(FORMATS)), LEARNT)}.json"


class Unwritable(Exception):
    """User data of the client that is not known; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LearntUserData:
    """Of an ``assignor``. ``first``: before anything was assigned; ``format``: afterwards, None where it is
    not known. ``keeps``: members join with what they own, so they are COOPERATIVE;
    ``short``: what they write ends before the fields that its version has (Q1)."""

    assignor: str
    first: bytes | None
    format: UserDataFormat | None
    keeps: bool
    short: bool = False

    @classmethod
    def of(cls, client: LeaderClient, topic: str) -> Self:
        """Return what a client that subscribes to ``topic`` writes. Raises LeaderLost."""
        assert client.first
        first = client.first.user_data
        seen: list[tuple[Partitions, int, bytes | None]] = []
        keeps = True
        for count, generation in LEARNT_FROM:
            joined, _ = client.rejoined({topic: ((),) * count}, MEMBER, generation)
            owned = tuple(TopicPartition(topic, index) for index in range(count))
            # On a busy machine it may have joined once more in between, for metadata.
            seen.append((owned, client.generation, joined.user_data))
            keeps = keeps and sorted(joined.owned_partitions) == list(owned)
        fits = (one for one in FORMATS if all(one(owned, since) == data for owned, since, data in seen))
        return cls(
            assignor=client.assignor,
            first=first,
            format=next(fits, None),
            keeps=keeps,
            short=client.short,
        )

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Read what `to_text` wrote. Raises ValueError and the like for other text."""
        data = json.loads(text)
        known = {**data, "first": None if data["first"] is None else bytes.fromhex(data["first"])}
        return cls(**{**known, "format": None if data["format"] is None else FORMATS[data["format"]]})

    def to_text(self) -> str:
        """To be read by another process of the same release."""
        first = None if self.first is None else self.first.hex()
        data: dict[str, object] = {"first": first, "keeps": self.keeps, "assignor": self.assignor}
        data["short"] = self.short
        return json.dumps(data | {"format": FORMATS.index(self.format) if self.format else None})

    @property
    def writes(self) -> bool:
        """Check whether there is any."""
        return self.short or self.first is not None or self.format is not FORMATS[0]

    def written(self, client: Callable[[], LeaderClient], owned: Partitions, generation: int) -> bytes | None:
        """Return what a member writes that was last assigned ``owned`` in ``generation``; ``client`` is one
        to ask. Raises LeaderLost, Unwritable."""
        if self.short:
            raise LeaderLost(SHORT.format(self.assignor), kind=LossKind.UNREADABLE)
        if not owned and generation == NO_GENERATION:
            return self.first
        if self.format:
            return self.format(owned, generation)
        counts: dict[str, int] = {}
        for topic, _ in owned:
            counts[topic] = counts.get(topic, 0) + 1
        every = {(topic, index) for topic, count in counts.items() for index in range(count)}
        if set(owned) != every or not owned or generation < 0:
            raise Unwritable("user data of a format that is not known, of what no leader would assign")
        joined, assigned = client().rejoined(
            {topic: ((),) * count for topic, count in counts.items()}, MEMBER, generation
        )
        if set(wire.decode_assignment(assigned).partitions) != every:
            raise Unwritable("user data of a format that is not known, of what this leader does not assign")
        return joined.user_data
