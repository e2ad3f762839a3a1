"""Below the chart of what has a clock: the same bars on a time axis to scale.

In the chart a millisecond is as wide as an hour, so that every event can be read; here lengths are times.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import groupby

from rebalance_verifier.base.text import span
from rebalance_verifier.report.diagram.diagram import Overlap
from rebalance_verifier.report.diagram.svg_sheet import BARS, SIDE, SMALL, Sheet, shown_name, wide

_UNITS = (
    *(0.001, 0.01, 0.1, 1, 2, 5, 10, 15, 30),
    *(60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 43200, 86400),
)
"""Seconds between two marks of the axis, up to a day."""

LEAST = 100
"""User units between two marks, at least."""

HEIGHT = 10


def draw(sheet: Sheet) -> None:
    """The axis, the numbers of the columns on it, and a bar for each owner. Nothing without a clock, or where
    all happens at once."""
    times = [column.at for column in sheet.diagram.columns if column.at is not None]
    if len(times) == len(sheet.diagram.columns) > 1 and times[-1] > times[0]:
        _Scale(sheet, times).draw()


class _Scale:
    """``times``: of each column the seconds since the first."""

    def __init__(self, sheet: Sheet, times: Sequence[float]) -> None:
        self.sheet, self.diagram, self.times = sheet, sheet.diagram, times
        self.seconds = times[-1] - times[0]

    def x(self, column: int) -> float:
        """Return where a column begins; the last one ends with the axis, as nothing is known of what
        follows."""
        at = self.times[min(column, len(self.times) - 1)]
        return self.sheet.left + (at - self.times[0]) / self.seconds * self.sheet.room

    def draw(self) -> None:
        sheet = self.sheet
        sheet.y += 12
        sheet.write(SIDE, sheet.y, f"to scale: {span(self.seconds)} from {self.diagram.unit} 1 on", "b")
        sheet.y += 16
        self._numbers()
        self._axis()
        for partition, group in groupby(enumerate(self.diagram.rows), key=lambda pair: pair[1].partition):
            rows = list(group)
            tops = {row.member: sheet.y + 16 * at for at, (_, row) in enumerate(rows)}
            for number, row in rows:
                sheet.write(SIDE + 10, sheet.y + 9, shown_name(row.member), "s")
                self._bars(number)
                sheet.y += 16
            for one in self.diagram.overlaps:
                if one.partition == partition:
                    self._overlap(one, [tops[m] for m in one.members if m in tops])
        sheet.y += 10

    def _numbers(self) -> None:
        """The number of each column above its time; of two that are too close, that on which the finding
        rests, or else the first."""
        sheet, taken = self.sheet, list[tuple[float, float]]()
        for at, column in sorted(enumerate(self.diagram.columns), key=lambda pair: not pair[1].marked):
            x, half = self.x(at), wide(column.label, SMALL) / 2 + 2
            sheet.line(x, sheet.y + 4, x, sheet.y + 9, "g")
            if not any(x - half < end and x + half > start for start, end in taken):
                sheet.write(x, sheet.y, column.label, "s b" if column.marked else "s d", "middle")
                taken.append((x - half, x + half))
        sheet.y += 9

    def _axis(self) -> None:
        sheet = self.sheet
        end = sheet.left + sheet.room
        sheet.line(sheet.left, sheet.y, end, sheet.y, "g2")
        sheet.y += 13
        for x, text in self._marks():
            sheet.line(x, sheet.y - 13, x, sheet.y - 8, "g2")
            inside = min(max(x, sheet.left + wide(text, SMALL) / 2), end - wide(text, SMALL) / 2)
            sheet.write(inside, sheet.y, text, "s d", "middle")
        sheet.y += 8

    def _marks(self) -> Iterator[tuple[float, str]]:
        """Yield where on the axis what is written: times since the first column, of one unit."""
        least = self.seconds * LEAST / self.sheet.room
        unit = next((unit for unit in _UNITS if unit >= least), 86400 * int(least / 86400 + 1))
        for number in range(int(self.seconds / unit + 1e-9) + 1):
            at = number * unit
            text = span(at) if unit < 1 else f"+{timedelta(seconds=at)}"
            yield self.sheet.left + at / self.seconds * self.sheet.room, text

    def _bars(self, number: int) -> None:
        for bar in self.diagram.bars:
            if bar.row == number and bar.look in BARS:
                x = self.x(bar.start)
                self.sheet.bar(bar.look, x, self.sheet.y, max(2.0, self.x(bar.end) - x), HEIGHT)

    def _overlap(self, one: Overlap, tops: Sequence[float]) -> None:
        """Frame and length of the time with two owners."""
        if not tops:
            return
        sheet, x = self.sheet, self.x(one.start)
        width = max(2.0, self.x(one.end) - x)
        if one.bug:
            for y in tops:
                sheet.rect(x, y, width, HEIGHT, "hatch")
        top, bottom = min(tops) - 2, max(tops) + HEIGHT + 2
        sheet.rect(x, top, width, bottom - top, "frame" if one.bug else "soft", 2)
        last = min(one.end, len(self.times) - 1)
        text = span(self.times[last] - self.times[one.start]) + (", goes on" if one.end > last else "")
        sheet.write(
            min(x, sheet.left + sheet.room - wide(text, SMALL)),
            bottom + 11,
            text,
            "s r" if one.bug else "s f b",
        )
        sheet.y = max(sheet.y, bottom + 14)
