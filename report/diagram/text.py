"""An ownership diagram as lines of text: what happened when, and below it the bars.

Time goes from left to right, in strips below each other where it is too long for one. Two bars below each
other in one column are two owners; a row of marks says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby

from rebalance_verifier.base.text import clean, columns, cut, fold, pad, page_width, shorten
from rebalance_verifier.report.diagram.diagram import (
    EventMark,
    MessageArrow,
    OwnershipDiagram,
    OwnershipState,
    grid,
)
from rebalance_verifier.report.frame import packed

NAME = 24
"""Columns of a partition, and of a member."""

MAX_NOTES = 4

_SIGNS = {
    OwnershipState.OWNED: "█",
    OwnershipState.TIED: "▓",
    OwnershipState.LEAVING: "▒",
    OwnershipState.STALE: "░",
    OwnershipState.PAST: "░",
    OwnershipState.REMOVED: "▒",
    OwnershipState.WITHOUT: "·",
    OwnershipState.NOBODY: "-",
    OwnershipState.UNKNOWN: "?",
    OwnershipState.ACTIVE: "█",
    OwnershipState.STANDBY: "▒",
    OwnershipState.COPY: "░",
}
"""What stands for an ownership; those of one sign have no source in common."""

_TWO, _BESIDE = "▲", "△"
_ASCII = str.maketrans("█▓▒░·▲△", "#%~:.^'")

_MARKS = {
    "assigned": "+",
    "revoked": "-",
    "lost": "!",
    "started": "o",
    "generation": "G",
    "rebalances": "p",
    "is": "x",
}
"""First word of what shows at a member -> its sign, if that is not the first letter."""


def draw(diagram: OwnershipDiagram, unicode: bool = True, width: int = 0) -> list[str]:
    """Return what happened and the chart, as lines of at most ``width`` columns (0: of a report), clean to
    print.

    Without ``unicode`` all is ASCII. What the diagram leaves out is named.
    """
    if not diagram.columns:
        return ["nothing was kept of what happened"]
    width = width or page_width() - 2
    lines = story(diagram, unicode, width)
    bars = chart(diagram, unicode, width)
    return [*lines, *([""] if lines and bars else []), *(bars or _left_out(diagram, unicode, width))]


def story(diagram: OwnershipDiagram, unicode: bool = True, width: int = 0) -> list[str]:
    """Return what happens in each column, in words; columns that follow each other with the same words as
    one, but for that on which the finding rests."""
    lines, width = list[str](), width or page_width() - 2
    shown = [(at, column) for at, column in enumerate(diagram.columns) if column.what]
    for (what, *_), same in groupby(shown, key=lambda one: (one[1].what, one[1].when, one[1].marked)):
        (at, first), *others = same
        if first.skipped:
            lines.append(f"({first.skipped:,} left out)")
        if diagram.loop is not None and at == diagram.loop[0]:
            lines.append("(from here again and again)")
        number = diagram.number(first)
        number += f"-{diagram.number(others[-1][1])}" if others else "*" * first.marked
        time = f"{first.when}  " if first.when else ""
        start = f"{diagram.unit} {pad(number, 5)} {time}"
        text, *more = fold(clean(what, unicode), width - len(start), most=3)
        lines += [start + text, *(" " * len(start) + line for line in more)]
    if any(column.when for column in diagram.columns):
        lines.append("(times in UTC; * the finding rests on it)")
    return lines


def chart(diagram: OwnershipDiagram, unicode: bool = True, width: int = 0) -> list[str]:
    """Return the bars alone, and what their signs mean. Nothing if nobody ever had to do with anything."""
    if all(bar.look is OwnershipState.UNKNOWN for bar in diagram.bars) and not _signs(diagram):
        return []
    width = width or page_width() - 2
    lines = _Chart(diagram, unicode, width).lines()
    twice = [o for o in diagram.overlaps if o.bug]
    for overlap in twice[:MAX_NOTES]:
        owners = overlap.owners(lambda name: _name(name, unicode, 40))
        when = diagram.when(overlap.start, overlap.end)
        lines.append(cut(f"{_TWO} {_name(overlap.partition, unicode, 40)} is owned by {owners}{when}", width))
    if len(twice) > MAX_NOTES:
        lines.append(f"and {len(twice) - MAX_NOTES} more")
    lines += _loop(diagram)
    lines += _left_out(diagram, unicode, width)
    if diagram.unit == "round":
        lines.append(f"left half {diagram.columns[0].label}, right half {diagram.columns[1].label}")
    lines += packed(_legend(diagram), width, "   ")
    return lines if unicode else [line.translate(_ASCII) for line in lines]


def _left_out(diagram: OwnershipDiagram, unicode: bool, width: int) -> list[str]:
    if not diagram.left_out:
        return []
    parts = (clean(part, unicode).removeprefix("and ") for part in diagram.left_out)
    return fold(f"not shown: {'; '.join(parts)}", width)


def _loop(diagram: OwnershipDiagram) -> list[str]:
    if diagram.loop is None:
        return []
    first, end = diagram.loop
    if first == end:
        return ["nothing else ever happens"]
    numbers = (diagram.number(diagram.columns[at]) for at in (first, end - 1))
    return [f"{diagram.unit}s {' to '.join(numbers)} come again and again"]


def _legend(diagram: OwnershipDiagram) -> Iterator[str]:
    used = {bar.look for bar in diagram.bars} - {OwnershipState.UNKNOWN}
    yield from (f"{_SIGNS[look]} {look}" for look in OwnershipState if look in used)
    if any(o.bug for o in diagram.overlaps):
        yield f"{_TWO} two owners"
    if any(not o.bug for o in diagram.overlaps):
        yield f"{_BESIDE} two clients use it, one of which is no longer a member"


def _name(text: str, unicode: bool, most: int = NAME) -> str:
    return shorten(clean(text, unicode), most)


class _Chart:
    """The rows and columns of the chart."""

    def __init__(self, diagram: OwnershipDiagram, unicode: bool, width: int) -> None:
        self.diagram, self.unicode = diagram, unicode
        self.looks = grid(diagram)
        self.signs = _signs(diagram)
        self.together = 2 if diagram.unit == "round" else 1
        names = [_name(row.partition, unicode) for row in diagram.rows]
        people = [self.who(row.member) for row in diagram.rows]
        people += [_name(member, unicode) or "coordinator" for member, _ in self.signs]
        people += ["two owners"] * bool(diagram.overlaps)
        self.first = max(map(columns, names), default=0)
        self.margin = self.first + max(map(columns, people), default=0) + 4
        self.heads = list(self._heads())
        self.margin = max(self.margin, *(len(name) + 2 for name, _ in self.heads))
        groups = len(diagram.columns) // self.together
        self.cell, self.gap = self._cell(width - self.margin, groups)
        most = max(1, (width - self.margin) // (self.cell * self.together + self.gap))
        self.length = -(-groups // (-(-groups // most))) * self.together

    def who(self, member: str) -> str:
        return _name(member, self.unicode) or "(nobody)"

    def _heads(self) -> Iterator[tuple[str, Mapping[int, str]]]:
        """Yield lines above the bars: a name, and column -> what to write there."""
        numbers = {
            at: self.diagram.number(column) + "*" * (column.marked and self.together > 1)
            for at, column in enumerate(self.diagram.columns)
            if at % self.together == 0
        }
        yield self.diagram.unit, numbers
        eras = {start: str(number) for number, start, _ in self.diagram.eras() if number is not None}
        if self.diagram.era != self.diagram.unit and eras:
            yield self.diagram.era, eras

    def _cell(self, room: int, groups: int) -> tuple[int, int]:
        """Return width of a column, and of the gap after those that stand together."""
        if self.together > 1:
            return max(1, min(5, (room // groups - 2) // 2)), 2
        written = [text for _, head in self.heads for text in head.values()]
        longest = max(map(columns, [*written, *self.signs.values()]), default=0)
        return max(3 + bool(self.signs), longest + 1), 0

    def lines(self) -> list[str]:
        """Return all strips."""
        total = len(self.diagram.columns)
        lines: list[str] = []
        for start in range(0, total, self.length):
            lines += [*([""] if lines else []), *self._strip(range(start, min(start + self.length, total)))]
        return [line.rstrip() for line in lines]

    def _strip(self, shown: range) -> Iterator[str]:
        for name, written in self.heads:
            there = dict(written)
            if name != self.diagram.unit:  # an era that began before
                before = [at for at in written if at <= shown.start]
                there[shown.start] = written[max(before)] if before else ""
            yield pad(name, self.margin) + self._written(there, shown)
        left = {member for member, _ in self.signs}
        rows = [(n, r) for n, r in enumerate(self.diagram.rows) if any(self.looks[n][at] for at in shown)]
        for partition, group in groupby(rows, key=lambda row: row[1].partition):
            name = _name(partition, self.unicode)
            for number, row in group:
                looks = [self.looks[number][at] for at in shown]
                bar = self._filled(" " if look is None else _SIGNS[look] for look in looks)
                yield self._line(name, self.who(row.member)) + bar
                if row.member in left:
                    left.remove(row.member)
                    yield from self._marked("", row.member, shown)
                name = ""
            twice = self._filled(self._twice(partition, at) for at in shown)
            if twice.strip():
                yield self._line("", "two owners" if _TWO in twice else "two users") + twice
        for member in (*self.diagram.members, ""):
            if member in left:
                yield from self._marked(_name(member, self.unicode) or "coordinator", member, shown)

    def _line(self, first: str, second: str) -> str:
        return pad(f"{pad(first, self.first)}  {second}", self.margin)

    def _marked(self, name: str, member: str, shown: range) -> Iterator[str]:
        signs = {at: sign for (who, at), sign in self.signs.items() if who == member}
        if signs.keys() & set(shown):
            yield self._line("", name) + self._written(signs, shown)

    def _twice(self, partition: str, at: int) -> str:
        found = [o.bug for o in self.diagram.overlaps if o.partition == partition and o.start <= at < o.end]
        return (_TWO if any(found) else _BESIDE) if found else " "

    def _written(self, texts: Mapping[int, str], shown: range) -> str:
        """Return one text for the columns that stand together, by the first of them."""
        width = self.cell * self.together + self.gap
        return "".join(pad(texts.get(at, ""), width) for at in shown[:: self.together])

    def _filled(self, signs: Iterable[str]) -> str:
        """Return one character for each column, as often as it is wide."""
        wide = [sign * self.cell for sign in signs]
        groups = ("".join(wide[at : at + self.together]) for at in range(0, len(wide), self.together))
        return "".join(group + " " * self.gap for group in groups)


def _signs(diagram: OwnershipDiagram) -> dict[tuple[str, int], str]:
    """(member, column) -> sign of its message or mark, where a column is one event."""
    if diagram.unit != "event":
        return {}
    found: dict[tuple[str, int], str] = {}
    events: list[MessageArrow | EventMark] = [*diagram.arrows, *diagram.marks]
    for shown in events:
        found.setdefault((shown.member, shown.column), _sign(shown))
    return found


def _sign(shown: MessageArrow | EventMark) -> str:
    if isinstance(shown, MessageArrow):
        sign = shown.api[:1].upper() if shown.answer else shown.api[:1].lower()
        return sign if shown.generation is None else f"{sign}{shown.generation}"
    first, _, rest = shown.text.partition(" ")
    return _MARKS.get(first, first[:1] or "?") + (rest if first == "generation" else "")
