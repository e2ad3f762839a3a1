"""The language of the tables that say which line of which client is which event, and how Spark reads by them.

A table is data: rows of ``Line`` in a ``Source``. The regular expressions are written for Python's ``re``, so
that tests and documentation use the same table, and translated for Spark, whose expressions are Java's.

Reading costs one regular expression for each line that a source claims and one more for each that is an
event: ``regexp_replace`` writes what the groups caught into fixed places of one string, which is then split.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import Column
from pyspark.sql import functions as F
from rebalance.pipeline.audit.sources.events import Kind

PLACES = (
    *("group", "member", "instance", "generation", "topics", "partitions", "plan", "detail"),
    *("topic", "number", "members"),
)
"""What a line can say besides its kind: the names of groups, a digit after them aside."""

BETWEEN = "\x01"
"""Separates what was caught. Not a character of any log line that we would understand."""


@dataclass(frozen=True)
class Line:
    """Lines that begin with ``start`` and are described by ``rest``.

    Named groups of ``rest`` are of ``PLACES``; a name may come again in an alternative, a digit after it.
    """

    start: str
    rest: str
    kind: Kind | str | None
    """None: known, and of no interest."""
    releases: str = ""
    """Of whom, for the documentation: ``"2.4 -"``, ``"2.3"``."""

    @cached_property
    def regex(self) -> re.Pattern[str]:
        return re.compile(re.escape(self.start) + self.rest, re.DOTALL)

    def __post_init__(self) -> None:
        wrong = {name for name in self.regex.groupindex if name.rstrip("0123456789") not in PLACES}
        if wrong:
            raise ValueError(f"{self.start!r}: no such places: {sorted(wrong)}")


@dataclass(frozen=True)
class Source:
    """Who writes such lines, and what is the same on all of them."""

    name: str
    marks: tuple[str, ...]
    """A line of this source contains one of these."""
    prefix: str
    """What stands before the message, and the message: groups of ``HEADS``. The time is in ``head``."""
    lines: tuple[Line, ...]

    def __post_init__(self) -> None:
        for number, line in enumerate(self.lines):
            hides = [e.start for e in self.lines[:number] if line.start.startswith(e.start)]
            if any(start != line.start for start in hides):
                raise ValueError(
                    f"{self.name}: {line.start!r} comes after {hides[0]!r}, which takes its lines"
                )

    def choices(self, line: Line) -> bool:
        """Whether another row after this one begins alike, so that ``rest`` decides between them."""
        return any(e.start == line.start for e in self.lines[self.lines.index(line) + 1 :])


HEADS = ("head", "client", "group", "instance", "message")

LOGGER = (
    r"(?: \((?:(?:[\w$]+\.)+[\w$]+|[A-Z]\w*(?:Consumer|Coordinator|Invoker|Metadata))\))?(?:\x1b\[[\d;]*m)*"
)
"""What a layout may write after a message: the logger, as Kafka's own ``%m (%c)``; the end of a colour."""


def claimed(value: Column, source: Source) -> Column:
    """Whether a line may be of a source: cheap, asked of every line."""
    return _any(value.contains(mark) for mark in source.marks)


def split_head(value: Column, source: Source) -> Column:
    """An array with the texts of ``HEADS``; of one element when the line has no such prefix."""
    return F.split(F.regexp_replace(value, java(source.prefix), _places(source.prefix, HEADS)), BETWEEN)


def caught(message: Column, source: Source) -> Column:
    """An array: the number of the row in ``source.lines``, then the texts of ``PLACES``.

    Null when no row begins as the message does; of one element when one does and says something else.
    """
    whole: Column | None = None
    for number, line in enumerate(source.lines):
        pattern = f"^(?s:{line.regex.pattern})$"
        read = F.regexp_replace(message, java(pattern), f"{number}{BETWEEN}" + _places(pattern, PLACES))
        begins = message.startswith(line.start)
        if source.choices(line):
            begins = begins & message.rlike(java(pattern))
        whole = F.when(begins, read) if whole is None else whole.when(begins, read)
    return F.split(whole, BETWEEN) if whole is not None else F.lit(None)


def head(column: str, name: str) -> Column:
    """One of ``HEADS`` from what ``split_head`` made."""
    return F.get(F.col(column), F.lit(HEADS.index(name)))


def row(column: str) -> Column:
    """The number of the row in ``source.lines`` from what ``caught`` made; null when it is none."""
    return F.when(F.size(column) == 1 + len(PLACES), F.get(F.col(column), F.lit(0)).try_cast("int"))


def captured(column: str, name: str) -> Column:
    """One of ``PLACES`` from what ``caught`` made; empty when nothing was caught."""
    return F.get(F.col(column), F.lit(1 + PLACES.index(name)))


def java(pattern: str) -> str:
    """The same regular expression for Java, which writes named groups otherwise."""
    return pattern.replace("(?P<", "(?<")


def _places(pattern: str, names: Sequence[str]) -> str:
    """What ``regexp_replace`` writes: the groups of each name; nothing for one that caught nothing."""
    groups = re.compile(pattern).groupindex
    return BETWEEN.join(
        "".join(f"${{{group}}}" for group in groups if group.rstrip("0123456789") == name) for name in names
    )


def _any(conditions: Iterable[Column]) -> Column:
    first, *others = conditions
    for other in others:
        first = first | other
    return first
