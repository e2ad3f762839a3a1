"""The language of the tables that say which line of which client is which event, and how they are read.

A table is data: rows of ``Line`` in a ``Source``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, cached_property
from typing import NamedTuple

from rebalance_verifier.pipeline.audit.sources.envelopes import Wrapped
from rebalance_verifier.pipeline.audit.sources.events import Kind

CAPTURES = (
    *("group", "member", "instance", "generation", "topics", "partitions", "plan", "detail"),
    *("topic", "number", "numbers", "members", "client", "assignor", "revoked", "count"),
)
"""What a line can hold besides its kind: the names of groups, a digit after them aside."""

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

    def __post_init__(self) -> None:
        for number, line in enumerate(self.lines):
            hides = [e.start for e in self.lines[:number] if line.start.startswith(e.start)]
            if any(start != line.start for start in hides):
                raise ValueError(
                    f"{self.name}: {line.start!r} comes after {hides[0]!r}, which takes its lines"
                )

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
    def _starts(self) -> frozenset[str]:
        return frozenset(line.start for line in self.lines)

    def claims(self, text: str) -> bool:
        """Check whether a line may be of this source: cheap, for every line."""
        return any(map(text.__contains__, self.marks))

    def match(self, message: str) -> tuple[Line | None, dict[str, str]]:
        """The row that takes a message, and what that catches. No row: none begins as the message does.

        Raises UnrecognisedTail where one does, and the message goes on otherwise.
        """
        size, rows = self._by_start
        if f"{message} " in self._starts:  # nothing follows it, and blanks at the end of a line are nobody's
            message += " "
        begun = [line for line in rows.get(message[:size], ()) if message.startswith(line.start)]
        for line in begun:
            if not line.takes_all and (found := line.regex.fullmatch(message)):
                return line, captures(found)
        # Of a message with something behind it a row that takes the rest of any line would make nothing.
        for line in begun:
            if not line.takes_all and (found := line.first.match(message)):
                return line, captures(found)
        for line in begun:
            if line.takes_all and line.regex.fullmatch(message):
                return line, {}
        if begun or self._is_cut(message):
            raise UnrecognisedTail
        return None, {}

    def _is_cut(self, message: str) -> bool:
        """Return whether a message is the beginning of one of ours, which ends before it says what."""
        return len(message) >= SHORTEST and any(
            len(line.start) > len(message) and line.kind is not None and line.start.startswith(message)
            for line in self.lines
        )


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
        if start >= 0 and LOGGER.fullmatch(message, start):
            return message[:start]
    return message


class Reading(NamedTuple):
    """Reading of a line: what stands before the message, and what its row catches."""

    head: dict[str, str]
    line: KnownLine | None
    caught: dict[str, str]
    message: str


class UnrecognisedTail(ValueError):
    """A message that begins like a line of its source, and goes on otherwise."""


def captures(found: re.Match[str]) -> dict[str, str]:
    """Return the captures of the named groups, without empty ones, and without the digits of their names."""
    return {_plain(name): text for name, text in found.groupdict().items() if text}


@cache
def _plain(name: str) -> str:
    return name.rstrip("0123456789")
