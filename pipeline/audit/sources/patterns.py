"""The language of the tables that say which line of which client is which event, and how they are read.

A table is data: rows of ``Line`` in a ``Source``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import NamedTuple

from rebalance_verifier.pipeline.audit.sources.envelopes import Wrapped
from rebalance_verifier.pipeline.audit.sources.events import Kind

CAPTURES = (
    *("group", "member", "instance", "generation", "topics", "partitions", "plan", "detail"),
    *("topic", "number", "numbers", "members", "client", "assignor", "revoked", "count"),
)
"""What a line can hold besides its kind: the names of groups, a digit after them aside."""

BEHIND = "behind"
"""Among what is caught: what a layout writes behind a message."""

HEADS = ("head", "client", "group", "instance")

LOGGER = re.compile(
    r" \((?:(?:[\w$]+\.)+[\w$]+|[A-Z]\w*(?:Consumer|Coordinator|Invoker|Metadata|LineParser))(?::\d+)?\)"
    r"(?: \[[^\[\]]*\])?"
)
COLOUR = re.compile(r"(?:\x1b\[[\d;]*m)+$")
"""What a layout may write after a message: the logger, as Kafka's own ``%m (%c)``, with its line
(Connect) or thread (Strimzi); the end of a colour."""


FOLLOWED = r"(?=[\s\"'\[\](){}<>])"
"""Layouts write more after a message (a logger and its line, a thread, an MDC), and envelopes close."""


@dataclass(frozen=True)
class KnownLine:
    """A row of a table: how a message begins, what ``rest`` says of the rest of it, and the event."""

    start: str
    rest: str
    kind: Kind | str | None
    """None: known, and of no interest."""
    releases: str = ""
    """Of whom, for the documentation: ``"2.4 -"``, ``"2.3"``."""

    @cached_property
    def protocol(self) -> str | None:
        """Return "consumer" for a line of that protocol's members alone: each has an epoch of its own."""
        return "consumer" if "(consumer protocol)" in self.releases else None


@dataclass(frozen=True)
class Line(KnownLine):
    """Lines that begin with ``start`` and are described by ``rest``.

    Named groups of ``rest`` are of ``CAPTURES``; a name may come again in an alternative, a digit after it.
    """

    @cached_property
    def takes_all(self) -> bool:
        """Return whether it takes all lines that begin so and are of no interest, but for what it excepts:
        lines of interest that were cut off."""
        return self.kind is None and re.fullmatch(r"(?:\(\?!.*\))?\.\*", self.rest) is not None

    @cached_property
    def regex(self) -> re.Pattern[str]:
        return re.compile(re.escape(self.start) + self.rest, re.DOTALL)

    @cached_property
    def first(self) -> re.Pattern[str]:
        """Match the message where something follows it: a message ends where it ends."""
        return re.compile(f"(?:{self.regex.pattern}){FOLLOWED}", re.DOTALL)

    def __post_init__(self) -> None:
        wrong = {name for name in self.regex.groupindex if name.rstrip("0123456789") not in CAPTURES}
        if wrong:
            raise ValueError(f"{self.start!r}: no such captures: {sorted(wrong)}")


@dataclass(frozen=True, kw_only=True)
class Source:
    """Source of such lines, and what all of them have in common."""

    name: str
    marks: tuple[str, ...]
    """A line of this source contains one of these."""
    prefix: str
    """What stands before the message: groups of ``HEADS``. The time is in ``head``."""
    lines: tuple[Line, ...]
    client: str = ""
    """What a client is called whose lines do not name it."""
    level: str = ""
    """Where a user says that the client logs who owns what."""
    loose: bool = False
    """A mark alone says nothing: a line that is none of these is nobody's."""
    open_ended: bool = False
    """Messages end with the name of a group, and nothing says where that ends."""

    def __post_init__(self) -> None:
        for number, line in enumerate(self.lines):
            hides = [e.start for e in self.lines[:number] if line.start.startswith(e.start)]
            if any(start != line.start for start in hides):
                raise ValueError(
                    f"{self.name}: {line.start!r} comes after {hides[0]!r}, which takes its lines"
                )

    @cached_property
    def opening(self) -> str:
        """Return how the name of a client begins, where all lines of this source begin with it."""
        openings = {mark.partition(" ")[0] for mark in self.marks}
        first = self.prefix.startswith(r"(?P<head>.*?)\[")
        return f"{min(openings)} " if first and len(openings) == 1 else ""

    @cached_property
    def head(self) -> re.Pattern[str]:
        return re.compile(self.prefix, re.DOTALL)

    def split(self, text: str) -> tuple[dict[str, str], str] | None:
        """Return the captures of a line's prefix, and the message; None for a line without such a prefix."""
        found = self.head.match(text)
        return None if found is None else (captures(found), bare(text[found.end() :]))

    def read(self, wrapped: Wrapped) -> Reading | None:
        """Return what a line says; None for one without the prefix. Raises what `match` does."""
        split = self.split(wrapped.text)
        return None if split is None else Reading(split[0], *self.match(split[1]), split[1])

    @cached_property
    def _by_start(self) -> tuple[int, dict[str, list[Line]]]:
        size = min(len(line.start) for line in self.lines)
        found: dict[str, list[Line]] = {}
        for line in self.lines:
            found.setdefault(line.start[:size], []).append(line)
        return size, found

    @cached_property
    def _alone(self) -> frozenset[str]:
        return frozenset(line.start[:-1] for line in self.lines if line.start.endswith(" "))

    def claims(self, text: str) -> bool:
        """Check whether a line may be of this source: cheap, for every line."""
        return any(map(text.__contains__, self.marks))

    def match(self, message: str) -> tuple[Line | None, dict[str, str]]:
        """The row that takes a message, and what that catches. No row: none begins as the message does.

        Raises UnrecognisedTail where one does, and the message goes on otherwise.
        """
        size, rows = self._by_start
        if message in self._alone:  # nothing follows it, and blanks at the end of a line are nobody's
            message += " "
        begun = [line for line in rows.get(message[:size], ()) if message.startswith(line.start)]
        for line in begun:
            if not line.takes_all and (found := line.regex.fullmatch(message)):
                return line, captures(found)
        # Of a message with something behind it a row that takes the rest of any line would make nothing.
        for line in begun:
            if not line.takes_all and (found := line.first.match(message)):
                return line, {BEHIND: message[found.end() :], **captures(found)}
        for line in begun:
            if line.takes_all and line.regex.fullmatch(message):
                return line, {}
        if begun or message in self._beginnings:
            raise UnrecognisedTail
        return None, {}

    @cached_property
    def _beginnings(self) -> frozenset[str]:
        """The beginnings of messages that end before they say what."""
        starts = [line.start for line in self.lines if line.kind is not None]
        return frozenset(start[:size] for start in starts for size in range(SHORTEST, len(start)))


SHORTEST = 12
"""Characters of a message that is cut off by which it is known: shippers cut at hundreds."""


def bare(message: str) -> str:
    """A message without what a layout writes after it.

    >>> bare("(Re-)joining group (org.apache.kafka.clients.consumer.internals.AbstractCoordinator)")
    '(Re-)joining group'
    """
    if "\x1b" in message:
        message = COLOUR.sub("", message)
    if message[-1:] in (")", "]"):
        start = message.rfind(" (")
        if start >= 0 and _is_logger(message[start:]):
            return message[:start]
    return message


@lru_cache(maxsize=1024)
def _is_logger(text: str) -> bool:
    return LOGGER.fullmatch(text) is not None


class Reading(NamedTuple):
    """Reading of a line: what stands before the message, and what its row catches."""

    head: dict[str, str]
    line: KnownLine | None
    caught: dict[str, str]
    message: str


class UnrecognisedTail(ValueError):
    """A message that begins like a line of its source, and goes on otherwise."""


def captures(found: re.Match[str]) -> dict[str, str]:
    """Return the text of each named group that matched, without the digits of its name."""
    return {name: text for name, number in _names(found.re) if (text := found[number])}


@cache
def _names(pattern: re.Pattern[str]) -> tuple[tuple[str, int], ...]:
    return tuple((name.rstrip("0123456789"), number) for name, number in pattern.groupindex.items())
