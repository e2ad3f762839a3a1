"""An ownership diagram as SVG: one element to put into a page, or a file of its own.

Time goes from left to right, in strips below each other where it is too long for one. Each strip has the
generations as bands, a line for the coordinator and for each member with the messages between them, and for
each partition a bar for each member that owns it. Two owners at one time are hatched, framed and named.

Text is set in a monospaced font, so that its width is known; whatever is too wide is shortened, and of what
clients wrote only characters are shown whose width is known. Nothing is loaded, nothing runs.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Collection, Sequence
from itertools import groupby

from rebalance_verifier.base.text import columns
from rebalance_verifier.report.diagram import svg_scale
from rebalance_verifier.report.diagram.diagram import (
    Bar,
    EventMark,
    MessageArrow,
    Overlap,
    OwnershipDiagram,
    OwnershipState,
    Row,
)
from rebalance_verifier.report.diagram.svg_sheet import (
    BARS,
    SIDE,
    SMALL,
    TEXT,
    WIDTH,
    LaneText,
    Sheet,
    fits,
    known,
    shown_name,
    wide,
)

_LEAST = {"round": 74, "step": 42, "event": 78}
"""Least width of a column by what it stands for: what is written above it has to fit."""
_WIDEST = 200

_LABELS = {
    OwnershipState.OWNED: "owns it",
    OwnershipState.TIED: "claims it, as another does",
    OwnershipState.LEAVING: "owns it until it has revoked it",
    OwnershipState.STALE: "superseded claim",
    OwnershipState.PAST: "gave it up to join",
    OwnershipState.REMOVED: "no longer a member",
    OwnershipState.ACTIVE: "runs it",
    OwnershipState.STANDBY: "standby of it",
    OwnershipState.COPY: "has a copy on its disk",
}
_APIS = {
    "JoinGroup": "Join", "SyncGroup": "Sync", "OffsetCommit": "Commit", "LeaveGroup": "Leave",
    "ConsumerGroupHeartbeat": "Heartbeat", "ShareGroupHeartbeat": "Heartbeat",
}  # fmt: skip


def render(
    diagram: OwnershipDiagram, *, prefix: str = "p", steps: bool = True, standalone: bool = False
) -> str:
    """Return the drawing as one ``<svg>`` element that scales (``viewBox``), for a page in HTML5.

    ``prefix`` begins every id in it, so that several fit into one page: choose another for each (a letter,
    then letters and digits). ``steps``: with the numbered list of what happens below the chart.
    ``standalone``: a file of its own, with a background.
    """
    sheet = Sheet(diagram, prefix, standalone)
    sheet.head()
    for start, end in _strips(diagram, sheet.room):
        _Strip(sheet, start, end).draw()
    svg_scale.draw(sheet)
    sheet.legend()
    if steps:
        sheet.steps()
    sheet.left_out()
    text = sheet.text()
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n' if standalone else text


def _strips(diagram: OwnershipDiagram, room: float) -> list[tuple[int, int]]:
    """Return ranges of columns that are drawn below each other, of about one length."""
    total = len(diagram.columns)
    unit = 2 if diagram.unit == "round" else 1
    most = max(unit, int(room / _LEAST.get(diagram.unit, 60)) // unit * unit)
    number = -(-total // most) or 1
    length = max(unit, -(-total // number // unit) * unit)
    return [(at, min(at + length, total)) for at in range(0, total, length)]


class _Strip:
    """Some columns, drawn in full height."""

    def __init__(self, sheet: Sheet, start: int, end: int) -> None:
        self.sheet, self.diagram, self.start, self.end = sheet, sheet.diagram, start, end
        longest = max((b - a for a, b in _strips(self.diagram, sheet.room)), default=1)
        self.cell = min(_WIDEST, sheet.room / longest)
        self.right = self.x(end)
        self.top = sheet.y

    def x(self, column: float) -> float:
        """Return the left edge of a column, or the nearest of what is in the strip."""
        return self.sheet.left + (min(max(column, self.start), self.end) - self.start) * self.cell

    def inside(self, start: int, end: int) -> bool:
        return start < self.end and end > self.start

    def draw(self) -> None:
        sheet = self.sheet
        background = len(sheet.root)
        self._header()
        if self.diagram.members:
            self._lines()
        self._partitions()
        self._background(background)
        sheet.y += 16

    def _background(self, first: int) -> None:
        """Bands and the red columns, behind what was drawn since ``first``."""
        sheet, bottom = self.sheet, self.sheet.y
        drawn = list(sheet.root)[first:]
        for element in drawn:
            sheet.root.remove(element)
        for number, (_, start, end) in enumerate(self.diagram.eras()):
            if number % 2 == 0 and self.inside(start, end):
                sheet.rect(self.x(start), self.top, self.x(end) - self.x(start), bottom - self.top, "band")
        for start, end in self._twice():
            sheet.rect(self.x(start), self.top, self.x(end) - self.x(start), bottom - self.top, "veil")
        for at, column in enumerate(self.diagram.columns[self.start : self.end], self.start):
            x = self.x(at)
            if sheet.paper is None:
                style = "col marked" if column.marked else "col"
                area = sheet.rect(x, self.top, self.x(at + 1) - x, bottom - self.top, style)
                area.set("data-at", self.diagram.number(column))
                sheet.hover(area, column.what)
            if column.skipped:
                sheet.line(x, self.top, x, bottom, "cut")
        sheet.root.extend(drawn)

    def _twice(self) -> list[tuple[int, int]]:
        """Return ranges of columns with two owners of anything."""
        columns_ = sorted({at for o in self.diagram.overlaps if o.bug for at in range(o.start, o.end)})
        found = []
        for _, group in groupby(enumerate(columns_), key=lambda pair: pair[1] - pair[0]):
            run = [at for _, at in group]
            if self.inside(run[0], run[-1] + 1):
                found.append((run[0], run[-1] + 1))
        return found

    def _header(self) -> None:
        sheet, diagram = self.sheet, self.diagram
        sheet.y += 16
        for generation, start, end in diagram.eras():
            if generation is not None and self.inside(start, end):
                word = diagram.era
                room = self.x(end) - self.x(start) - 8
                short = (f"{word} {generation}", f"{word[:3]} {generation}", str(generation))
                marked = diagram.unit == "round" and diagram.columns[start].marked
                text = fits(
                    (f"{word} {generation}, which breaks the rule", *short) if marked else short, room, TEXT
                )
                sheet.write(self.x(start) + 5, sheet.y, text, "b")
                sheet.line(self.x(start), self.top, self.x(start), sheet.y + 6, "g")
        sheet.y += 16
        twice = {at for start, end in self._twice() for at in range(start, end)}
        for at in range(self.start, self.end):
            column = diagram.columns[at]
            style = "s r" if at in twice else "s f b" if column.fault else "s b" if column.marked else "s d"
            sheet.write(
                self.x(at + 0.5),
                sheet.y,
                fits((known(column.label),), self.cell - 4, SMALL),
                style,
                "middle",
            )
        if any(c.when for c in diagram.columns):
            sheet.y += 13
            for at in range(self.start, self.end):
                sheet.write(
                    self.x(at + 0.5),
                    sheet.y,
                    fits((diagram.columns[at].when,), self.cell - 3, SMALL),
                    "s d",
                    "middle",
                )
        self._loop()
        sheet.y += 8

    def _loop(self) -> None:
        sheet, loop = self.sheet, self.diagram.loop
        if loop is None or not self.inside(loop[0] - (loop[0] == loop[1]), loop[1]):
            return
        sheet.y += 18
        y = sheet.y
        if loop[0] == loop[1]:
            text = "nothing else ever happens"
            sheet.write(self.right, y, text, "s r", "end")
            sheet.line(self.right - 1, y + 4, self.right - 1, y - 10, "x")
            return
        x, to = self.x(loop[0]) + 2, self.x(loop[1]) - 2
        sheet.path(f"M{x:.1f} {y + 5:.1f}V{y - 6:.1f}H{to:.1f}V{y + 5:.1f}", "x")
        sheet.path(f"M{x - 4:.1f} {y:.1f}L{x:.1f} {y + 6:.1f}L{x + 4:.1f} {y:.1f}", "x")
        text = fits(("from here to there again and again", "again and again", "again"), to - x - 8, SMALL)
        sheet.write(x + 8, y + 5, text, "s r")

    # -- members and messages --------------------------------------------------------------------------

    def _lines(self) -> None:
        sheet, diagram = self.sheet, self.diagram
        arrows = [a for a in diagram.arrows if self.start <= a.column < self.end]
        marks = [m for m in diagram.marks if self.start <= m.column < self.end]
        at = self._places(arrows)
        for items in self._layers([self._mark(m) for m in marks if m.member == ""]):
            sheet.y += 11
            sheet.lane(items, sheet.y, self.right)
        home = sheet.y + 7
        sheet.write(SIDE, home + 4, "coordinator", "b")
        sheet.line(self.x(self.start), home, self.right, home, "g2")
        sheet.y = home
        levels: dict[str, float] = {}
        texts: list[tuple[list[LaneText], float]] = []
        for member in diagram.members:
            arrows_here = [a for a in arrows if a.member == member]
            # Requests above answers: what is answered at once would leave no room for words beside it.
            lanes = [[a for a in arrows_here if not a.answer], [a for a in arrows_here if a.answer]]
            labels = [[self._beside(a, at[a]) for a in lane] for lane in lanes]
            above = [[item for item in lane if item.variants] for lane in labels]
            sheet.y += 17 + 11 * sum(map(bool, above))
            y = levels[member] = sheet.y
            sheet.write(SIDE, y + 4, shown_name(member))
            for number, items in enumerate(reversed([lane for lane in above if lane])):
                texts.append((items, y - 5 - 11 * number))
            marked = [m for m in marks if m.member == member]
            below = self._away(member, y, {m.column for m in marked}) + [self._mark(m) for m in marked]
            for items in self._layers(below):
                sheet.y += 11
                texts.append((items, sheet.y))
            sheet.y += 2
        for arrow in arrows:
            self._arrow(arrow, at[arrow], levels[arrow.member], home)
        for items, y in texts:
            sheet.lane(items, y, self.right)
        sheet.y += 8

    def _places(self, arrows: Sequence[MessageArrow]) -> dict[MessageArrow, float]:
        """Return where each arrow stands: those of one column beside each other."""
        found = {}
        for column, group in groupby(sorted(arrows, key=lambda a: a.column), key=lambda a: a.column):
            together = list(group)
            for number, arrow in enumerate(together, 1):
                found[arrow] = self.x(column + number / (len(together) + 1))
        return found

    def _beside(self, arrow: MessageArrow, x: float) -> LaneText:
        """Return what to write beside an arrow."""
        api = "" if self.diagram.columns[arrow.column].label == arrow.api else arrow.api
        short = _APIS.get(api, api)
        if arrow.text.isupper():  # an error
            error = known(arrow.text)
            return LaneText(x + 4, tuple(filter(None, (f"{api} {error}".strip(), error))), "s h r")
        number = "" if arrow.generation is None else f" {arrow.generation}"
        text = shown_name(arrow.text, 40)
        texts = (
            f"{api}{number}: {text}" if api and text else text,
            text.replace("claims of generation", "gen"),
            f"{api}{number}",
            f"{short}{number}",
            short,
        )
        variants = tuple(sorted(filter(None, dict.fromkeys(texts)), key=columns, reverse=True))
        # Messages of a round stand close together: words about one must not hide the next.
        until = self.x(arrow.column + 1) if self.diagram.unit == "round" else WIDTH
        return LaneText(x + 4, variants, until=until)

    def _arrow(self, arrow: MessageArrow, x: float, y: float, home: float) -> None:
        sheet = self.sheet
        start, end = (home, y) if arrow.answer else (y, home)
        style = "m a" if arrow.answer else "m"
        if arrow.lost:
            end = (start + end) / 2
            sheet.path(f"M{x - 4:.1f} {end - 4:.1f}l8 8m-8 0l8 -8", "x")
        else:
            back = -6 if end > start else 6
            sheet.path(
                f"M{x - 3.5:.1f} {end + back:.1f}L{x:.1f} {end:.1f}L{x + 3.5:.1f} {end + back:.1f}Z", "dot"
            )
        sheet.line(x, start, x, end, style)
        ET.SubElement(
            sheet.root, "circle", {"cx": f"{x:.1f}", "cy": f"{start:.1f}", "r": "2.2", "class": "dot"}
        )
        if sheet.paper is None:
            sheet.line(x, start, x, end, "msg")
            sheet.hover(sheet.root[-1], arrow.sentence)

    def _away(self, member: str, y: float, marked: Collection[int]) -> list[LaneText]:
        """Return the member's line, and the words for where it is not drawn through, unless a mark tells
        why."""
        sheet, items = self.sheet, []
        away = [a for a in self.diagram.away if a.member == member and self.inside(a.start, a.end)]
        at = self.start
        for gone in [*away, None]:
            until = self.end if gone is None else max(gone.start, self.start)
            if until > at:
                sheet.line(self.x(at), y, self.x(until), y, "g2")
            if gone is not None:
                if gone.text != "down":
                    sheet.line(self.x(gone.start), y, self.x(gone.end), y, "gone")
                if gone.start not in marked:
                    items.append(LaneText(self.x(gone.start) + 4, (gone.text,), "s h d"))
                at = gone.end
        return items

    def _mark(self, mark: EventMark) -> LaneText:
        return LaneText(
            self.x(mark.column) + 4, (shown_name(mark.text, 60),), "s h f" if mark.fault else "s h"
        )

    def _layers(self, items: Sequence[LaneText]) -> list[list[LaneText]]:
        """Return texts in one or two lines: where one would run into the next, that goes into the second."""
        layers: list[list[LaneText]] = [[], []]
        ends = [0.0, 0.0]
        for item in sorted(items, key=lambda one: one.x):
            layer = 1 if ends[0] > item.x >= ends[1] else 0
            layers[layer].append(item)
            ends[layer] = item.x + wide(item.variants[0], SMALL) + 5
        return [layer for layer in layers if layer]

    # -- partitions ------------------------------------------------------------------------------------

    def _partitions(self) -> None:
        """Bars, partition by partition; those with which nobody has to do in this strip are left out."""
        sheet, diagram = self.sheet, self.diagram
        seen = {bar.row for bar in diagram.bars if self.inside(bar.start, bar.end)}
        numbered = [(number, row) for number, row in enumerate(diagram.rows) if number in seen]
        for partition, group in groupby(numbered, key=lambda pair: pair[1].partition):
            rows = list(group)
            met = [o for o in diagram.overlaps if o.partition == partition and self.inside(o.start, o.end)]
            name, beside = shown_name(partition), wide(shown_name(partition)) + 10
            alone = (
                len(rows) == 1 and not met and beside + wide(shown_name(rows[0][1].member)) < sheet.left - 18
            )
            sheet.y += 6
            sheet.line(SIDE, sheet.y, self.right, sheet.y, "g")
            sheet.write(SIDE, sheet.y + (18 if alone else 15), name, "b")
            self._names(met, sheet.y + 15)
            sheet.y += 5 if alone else 20
            levels = {}
            for number, row in rows:
                levels[row.member] = sheet.y
                self._row(number, row, met, beside if alone else 10)
                sheet.y += 22
            for overlap in met:
                self._overlap(overlap, levels)

    def _row(self, number: int, row: Row, met: Sequence[Overlap], indent: float) -> None:
        sheet, y = self.sheet, self.sheet.y
        sheet.write(SIDE + indent, y + 13, shown_name(row.member) or "(nobody)", "" if row.member else "d")
        for bar in self.diagram.bars:
            if bar.row == number and self.inside(bar.start, bar.end):
                if bar.look not in sheet.used:
                    sheet.used.append(bar.look)
                self._bar(bar, row, y, met)

    def _bar(self, bar: Bar, row: Row, y: float, met: Sequence[Overlap]) -> None:
        sheet = self.sheet
        x, to = self.x(bar.start), self.x(bar.end)
        sheet.bar(bar.look, x, y, to - x, 18)
        if bar.look in BARS:
            over = [self.x(o.start) for o in met if row.member in o.members and o.bug and o.end > bar.start]
            room = min([to, *over]) - x - 10
            text = _LABELS[bar.look]
            if wide(text, SMALL) <= room:
                sheet.write(x + 5, y + 13, text, f"s {BARS[bar.look][1]}")

    def _overlap(self, overlap: Overlap, levels: dict[str, float]) -> None:
        sheet = self.sheet
        x, to = self.x(overlap.start), self.x(overlap.end)
        owned = [levels[m] for m in overlap.members if m in levels]
        if not owned:
            return
        if overlap.bug:
            for y in owned:
                sheet.rect(x, y, to - x, 18, "hatch")
        top, bottom = min(owned) - 2, max(owned) + 20
        sheet.rect(x, top, to - x, bottom - top, "frame" if overlap.bug else "soft", 2)

    def _names(self, met: Sequence[Overlap], y: float) -> None:
        """Write the owners of a time above the bars, as near as there is room; the bugs first."""
        name = shown_name(met[0].partition) if met else ""
        taken: list[tuple[float, float]] = []
        for overlap in sorted(met, key=lambda o: not o.bug):
            x = self.x(overlap.start)
            least = max((b for a, b in taken if a <= x), default=self.sheet.left)
            limit = min((a for a, _ in taken if a > x), default=WIDTH - SIDE)
            who, verb = overlap.owners(shown_name), "is owned by" if overlap.bug else "is used by"
            text = fits((f"{name} {verb} {who}", f"{name}: {who}"), limit - least, TEXT)
            if not overlap.bug and not text.endswith(who):
                continue
            start = min(max(x, least), limit - wide(text))
            self.sheet.write(start, y, text, "r" if overlap.bug else "f b")
            taken.append((start - 8, start + wide(text) + 8))
