"""What a drawing of who owned what shows, as data: every renderer draws from this and knows no source.

Time is a row of columns, numbered from 0; a period is a half-open range of them. Diagrams are made by
``scenario_diagram``, ``run_diagram`` and ``log_diagram``; what does not fit they leave out, and it says so.

Names are as the source has them, hostile ones too: a renderer makes them fit to print.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from itertools import groupby
from typing import Any, TypeVar

from rebalance_verifier.base.text import count
from rebalance_verifier.model.machine import StepMessage

MAX_COLUMNS = 64
MAX_PARTITIONS = 12
MAX_MEMBERS = 6
"""Rows of one partition."""
MAX_LINES = 12
"""Members with a line of their own."""


class OwnershipState(StrEnum):
    """Relation of one member to one partition for a while, in words for a legend."""

    OWNED = "owned"
    TIED = "tied claims: equally new"
    LEAVING = "revocation pending"
    STALE = "superseded claim"
    PAST = "revoked to join"
    REMOVED = "owned by a removed member"
    WITHOUT = "not assigned"
    NOBODY = "unowned"
    UNKNOWN = "no answer"
    ACTIVE = "active"
    STANDBY = "standby"
    COPY = "copy on disk"


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagramColumn:
    """One moment: its short ``label``, ``what`` happens in a sentence, the clock time if there was a clock.

    ``at``: seconds since the first one that is shown, None without a clock. ``generation`` is that of the
    group afterwards (of a finding: the number of the round). ``fault``: the environment does it. ``marked``:
    the finding rests on it. ``skipped``: how many moments before it were left out.
    """

    label: str
    what: str = ""
    when: str = ""
    at: float | None = None
    generation: int | None = None
    fault: bool = False
    marked: bool = False
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class Row:
    """One line of bars: a partition and a member that has to do with it; nobody's has the member ``""``."""

    partition: str
    member: str


@dataclass(frozen=True, slots=True)
class Bar:
    """One look of one row, for a while."""

    row: int
    start: int
    end: int
    look: OwnershipState


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """A while in which one partition has more than one owner, or one owner twice: the bug.

    ``zombies`` are those of ``members`` that the coordinator has removed. Where that leaves one, the group
    works as designed (KIP-429: whoever is removed learns of it later), and two clients use the partition.
    """

    partition: str
    start: int
    end: int
    members: tuple[str, ...]
    zombies: tuple[str, ...] = ()

    def owners(self, name: Callable[[str], str], most: int = 3) -> str:
        """Return who owns it, each of the first ``most`` as ``name`` writes it."""
        if len(self.members) == 1:
            return f"{name(self.members[0])} twice"
        # Who works as designed comes first: the others are beside it.
        people = sorted(self.members, key=lambda m: m in self.zombies)
        gone = [" (no longer a member)" if m in self.zombies and not self.bug else "" for m in people]
        named = [f"{name(m)}{note}" for m, note in zip(people[:most], gone, strict=False)]
        rest = [f"{len(people) - most} more"] if len(people) > most else []
        *first, last = named + rest
        return f"{', '.join(first)} and {last}"

    @property
    def bug(self) -> bool:
        """Check whether two members of the group own it, or one was given it twice."""
        return len(self.members) == 1 or len(self.members) - len(self.zombies) > 1


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageArrow(StepMessage):
    """A message where it is drawn."""

    column: int


@dataclass(frozen=True, slots=True)
class EventMark:
    """Something that shows at one member (at the coordinator: ``""``): a callback, a crash."""

    column: int
    member: str
    text: str
    fault: bool = False


@dataclass(frozen=True, slots=True)
class Away:
    """A while in which a member does not do its work, and why not: "paused", "down" ..."""

    member: str
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnershipDiagram:
    """One drawing. ``era`` names what a column's ``generation`` counts: "generation" or "round".

    ``members`` have a line each, with their arrows and marks. ``loop``: the columns that come again and
    again.
    ``left_out``: sentences about what is not shown.
    """

    title: str
    columns: tuple[DiagramColumn, ...]
    rows: tuple[Row, ...] = ()
    bars: tuple[Bar, ...] = ()
    overlaps: tuple[Overlap, ...] = ()
    members: tuple[str, ...] = ()
    arrows: tuple[MessageArrow, ...] = ()
    marks: tuple[EventMark, ...] = ()
    away: tuple[Away, ...] = ()
    loop: tuple[int, int] | None = None
    left_out: tuple[str, ...] = ()
    era: str = "generation"
    unit: str = "step"

    def eras(self) -> Iterator[tuple[int | None, int, int]]:
        """Return (generation, start, end) for each stretch of columns of one generation."""
        return stretches(column.generation for column in self.columns)

    def number(self, column: DiagramColumn) -> str:
        """Return what a column is called in a sentence about it."""
        return str(column.generation) if self.unit == "round" else column.label

    def when(self, start: int, end: int) -> str:
        """Return the columns as the end of a sentence."""
        first, last = self.columns[start], self.columns[end - 1]
        if self.unit == "round" or first == last:
            return f" {'in' if self.unit == 'round' else 'at'} {self.unit} {self.number(first)}"
        return f" from {self.unit} {first.label} to {last.label}"


def to_json(diagram: OwnershipDiagram) -> dict[str, Any]:
    """Return the diagram as plain JSON values; ``traces/schemas/picture.schema.json`` describes them."""
    return {"schema": 1, "kind": "picture", **asdict(diagram)}


_T = TypeVar("_T")


def stretches(values: Iterable[_T]) -> Iterator[tuple[_T, int, int]]:
    """(value, start, end) for each stretch of equal ones.

    >>> list(stretches("aab"))
    [('a', 0, 2), ('b', 2, 3)]
    """
    at = 0
    for value, group in groupby(values):
        end = at + sum(1 for _ in group)
        yield value, at, end
        at = end


def more(number: int, noun: str) -> list[str]:
    """Return what to say of what is left out.

    >>> more(2, "more partition"), more(0, "more member")
    (['and 2 more partitions'], [])
    """
    return [f"and {count(number, noun)}"] if number > 0 else []


def left_of(total: int, shown: int, noun: str) -> list[str]:
    """Return the same of moments, of which not all are shown."""
    return [f"{count(total - shown, noun)} of {total:,}"] if total > shown else []


def bars(looks: Sequence[Sequence[OwnershipState | None]]) -> tuple[Bar, ...]:
    """Return rows of looks, one for each column, as bars: neighbours that look alike are one."""
    return tuple(
        Bar(row, start, end, look)
        for row, line in enumerate(looks)
        for look, start, end in stretches(line)
        if look is not None
    )


def grid(diagram: OwnershipDiagram) -> list[list[OwnershipState | None]]:
    """Return the inverse of ``bars``."""
    looks: list[list[OwnershipState | None]] = [[None] * len(diagram.columns) for _ in diagram.rows]
    for bar in diagram.bars:
        looks[bar.row][bar.start : bar.end] = [bar.look] * (bar.end - bar.start)
    return looks


def overlaps(moments: Iterable[tuple[str, int, Mapping[str, OwnershipState]]]) -> tuple[Overlap, ...]:
    """(partition, column, look of each owner then) as overlaps: neighbouring columns with the same are one.

    Moments with one owner are left out; those of one partition come in order of their columns.
    """
    found: list[Overlap] = []
    for partition, column, looks in moments:
        if len(looks) < 2:
            continue
        members, zombies = tuple(looks), tuple(m for m in looks if looks[m] is OwnershipState.REMOVED)
        found.append(
            Overlap(partition=partition, start=column, end=column + 1, members=members, zombies=zombies)
        )
    return joined(found)


def joined(overlaps: Iterable[Overlap]) -> tuple[Overlap, ...]:
    """Overlaps that follow each other without a gap, of the same members, as one."""
    result: list[Overlap] = []
    for one in overlaps:
        last = result[-1] if result else None
        if last and replace(one, start=last.start) == replace(last, end=one.end) and last.end == one.start:
            result[-1] = replace(last, end=one.end)
        else:
            result.append(one)
    return tuple(result)
