"""A line as it was understood: which client it is of is known, and which process only in part."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple


class LineRow(NamedTuple):
    """One for each event and partition, before it is known who wrote which lines (``settling``)."""

    at: int
    kind: str
    group: str | None = None
    client: str | None = None
    member: str | None = None
    instance: str | None = None
    generation: int | None = None
    topic: str | None = None
    partition: int | None = None
    detail: str | None = None
    assignor: str | None = None
    origin: str = ""
    """What tells the process apart (``envelopes.Origin.name``); empty where only the file does."""
    stream: str = ""
    """Of which log the file is a piece."""
    host: str | None = None
    source: str = ""
    file: str = ""
    line: int = 0
    protocol: str | None = None
    members: int | None = None
    coordinator: str = ""
    """Of a broker's line: the partition of offsets whose coordinator writes it."""


class MalformedLine(NamedTuple):
    """A line that should say something and cannot be understood; ``text`` is its beginning.

    ``group`` and ``at``: of which group and when, as far as that is understood.
    """

    file: str
    line: int
    text: str
    why: str
    group: str | None = None
    at: int | None = None


class EventPart(NamedTuple):
    """Subject of an event; ``member`` where it is another for each."""

    topic: str | None = None
    partition: int | None = None
    member: str | None = None


class NoPartition(ValueError):
    """A name that should be topic-number and is not."""


@lru_cache(maxsize=1 << 16)
def named(name: str, member: str | None = None) -> EventPart:
    """``topic-0`` as a part. Raises NoPartition.

    >>> named("a-b-7")
    EventPart(topic='a-b', partition=7, member=None)
    """
    topic, _, number = name.rpartition("-")
    if not topic or not number.isdecimal() or (index := small(number)) is None:
        raise NoPartition(name)
    return EventPart(topic, index, member)


def small(text: str) -> int | None:
    """Return the number of 32 bits that a text is, or None: Python refuses to read thousands of digits.

    >>> small("-7"), small("2147483648"), small("9" * 5000)
    (-7, None, None)
    """
    digits = text.removeprefix("-")
    if not digits.isdecimal() or not digits.isascii() or len(digits) > 10 or int(digits) >= 2**31:
        return None
    return int(text)
