"""An ownership diagram as SVG: one element to put into a page, or a file of its own.

Time goes from left to right, in strips below each other where it is too long for one. Each strip has the
generations as bands, a line for the coordinator and for each member with the messages between them, and for
each partition a bar for each member that owns it. Two owners at one time are hatched, framed and named.

Text is set in a monospaced font, so that its width is known; whatever is too wide is shortened, and of what
clients wrote only characters are shown whose width is known. Nothing is loaded, nothing runs.
"""

from __future__ import annotations

import unicodedata
import xml.etree.ElementTree as ET
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from rebalance.gate.cli.console.text import clean, columns, fold, listed, shorten
from rebalance.gate.report.diagram.diagram import (
    Bar,
    EventMark,
    MessageArrow,
    Overlap,
    OwnershipDiagram,
    OwnershipState,
    Row,
)

WIDTH = 1200
"""User units, which are CSS pixels at full size."""

EM = 0.62
"""Width of a character of the font for each unit of its size, at least."""

NAME = 22
"""Columns of the names at the left."""

TOGETHER = 28
"""Columns of a partition and its owner, to stand in one line."""

_SIDE = 14
_TEXT, _SMALL, _TITLE = 12, 10, 15
_LEAST = {"round": 74, "step": 42, "event": 78}
"""Least width of a column by what it stands for: what is written above it has to fit."""
_WIDEST = 200

_STYLE = """
ID{--ink:#1b1f24;--dim:#59636e;--line:#aab2bb;--paper:#fff;--band:#eef2f6;--own:#2f6690;--on:#fff;
--bug:#c1121f;--veil:#c1121f;--warn:#9a5b00}
@media (prefers-color-scheme:dark){ID{--ink:#e6edf3;--dim:#9aa4af;--line:#5b6570;--paper:#12161b;
--band:#1c232b;--own:#7db7e8;--on:#0b1520;--bug:#ff7b72;--veil:#ff7b72;--warn:#e3a03c}}
ID text{font-family:ui-monospace,Menlo,Consolas,"DejaVu Sans Mono","Liberation Mono",monospace;font-size:12px;
fill:var(--ink)}
ID .s{font-size:10px} ID .t{font-size:15px;font-weight:bold} ID .d{fill:var(--dim)} ID .b{font-weight:bold}
ID .f{fill:var(--warn)} ID .r{fill:var(--bug);font-weight:bold} ID .on{fill:var(--on)}
ID .h{paint-order:stroke;stroke:var(--paper);stroke-width:3px;stroke-linejoin:round}
ID .paper{fill:var(--paper)} ID .band{fill:var(--band)} ID .veil{fill:var(--veil);opacity:.1}
ID .g{stroke:var(--line);stroke-width:1;fill:none} ID .g2{stroke:var(--line);stroke-width:2;fill:none}
ID .cut{stroke:var(--dim);stroke-width:1.5;stroke-dasharray:2 3;fill:none}
ID .gone{stroke:var(--dim);stroke-width:3;stroke-dasharray:6 4;fill:none}
ID .m{stroke:var(--ink);stroke-width:1.2;fill:none} ID .a{stroke-dasharray:4 2.5} ID .dot{fill:var(--ink)}
ID .x{stroke:var(--bug);stroke-width:2;fill:none}
ID .owned{fill:var(--own)} ID .leaving{fill:var(--own);fill-opacity:.3;stroke:var(--own);stroke-width:1.5}
ID .removed{fill:url(#NAME-dots);stroke:var(--warn);stroke-width:1.5;stroke-dasharray:5 3}
ID .claim{fill:none;stroke:var(--dim);stroke-width:1.2;stroke-dasharray:3 3}
ID .without{stroke:var(--line);stroke-width:1.5;stroke-dasharray:1 4} ID .nobody{stroke:var(--dim);
stroke-width:2;stroke-dasharray:8 5} ID .hatch{fill:url(#NAME-hatch)}
ID .frame{fill:none;stroke:var(--bug);stroke-width:2.5} ID .soft{fill:none;stroke:var(--warn);stroke-width:2;
stroke-dasharray:4 3} ID .p{stroke:var(--bug);stroke-width:4} ID .q{fill:var(--warn)}
"""

_BARS = {
    OwnershipState.OWNED: ("owned", "on"),
    OwnershipState.TIED: ("leaving", ""),
    OwnershipState.LEAVING: ("leaving", ""),
    OwnershipState.STALE: ("claim", "d"),
    OwnershipState.PAST: ("claim", "d"),
    OwnershipState.REMOVED: ("removed", "h"),
}
"""States that are boxes -> the class of the box, that of the text in it."""

_LABELS = {
    OwnershipState.OWNED: "owns it",
    OwnershipState.TIED: "claims it, as another does",
    OwnershipState.LEAVING: "owns it until it has revoked it",
    OwnershipState.STALE: "superseded claim",
    OwnershipState.PAST: "gave it up to join",
    OwnershipState.REMOVED: "no longer a member",
}
_APIS = {"JoinGroup": "Join", "SyncGroup": "Sync", "OffsetCommit": "Commit", "LeaveGroup": "Leave"}


def render(
    diagram: OwnershipDiagram, *, prefix: str = "p", steps: bool = True, standalone: bool = False
) -> str:
    """The drawing as one ``<svg>`` element that scales (``viewBox``), for a page in HTML5.

    ``prefix`` begins every id in it, so that several fit into one page: choose another for each (a letter,
    then letters and digits). ``steps``: with the numbered list of what happens below the chart.
    ``standalone``: a file of its own, with a background.
    """
    sheet = _Sheet(diagram, prefix, standalone)
    sheet.head()
    for start, end in _strips(diagram, sheet.room):
        sheet.strip(start, end)
    sheet.legend()
    if steps:
        sheet.steps()
    sheet.left_out()
    text = sheet.text()
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n' if standalone else text


def description(diagram: OwnershipDiagram) -> str:
    """The diagram in words, for who cannot see it."""
    lines = [
        f"{_name(o.partition)} has two owners{_when(diagram, o.start, o.end)}: {o.owners(_name)}"
        for o in diagram.overlaps
        if o.bug
    ]
    people = listed(map(_name, diagram.members))
    time = f"{len(diagram.columns)} columns of time from left to right"
    return ". ".join([f"Who owned what: members {people or 'none'}; {time}", *lines[:8]]) + "."


def _when(diagram: OwnershipDiagram, start: int, end: int) -> str:
    if diagram.unit == "round":
        return f" in round {diagram.columns[start].generation}"
    first, last = diagram.columns[start].label, diagram.columns[end - 1].label
    return f" at {diagram.unit} {first}" if first == last else f" from {diagram.unit} {first} to {last}"


def _name(text: str, most: int = NAME) -> str:
    """A name as it is shown: clean, of characters of a known width, not too long."""
    return shorten(_known(text), most)


def _known(text: str) -> str:
    """Clean text in which every character is as wide as ``columns`` says: others are escaped."""
    text = clean(text[:20_000])
    if text.isascii():
        return text
    return "".join(c if _is_known(c) else c.encode("unicode_escape").decode() for c in text)


def _is_known(char: str) -> bool:
    code = ord(char)
    wide = unicodedata.east_asian_width(char) in "WF"
    return code < 0x250 or 0x370 <= code < 0x530 or wide or char in "–—‘’“”…→←·"


def _wide(text: str, size: float = _TEXT) -> float:
    return columns(text) * EM * size


def _fits(variants: Sequence[str], room: float, size: float) -> str:
    """The first of several texts, the longest first, that fits; else as much of the last as does."""
    most = int(room / (EM * size) + 0.001)
    for text in variants:
        if columns(text) <= most:
            return text
    return shorten(variants[-1], most) if most >= 4 else variants[-1] if columns(variants[-1]) <= most else ""


def _strips(diagram: OwnershipDiagram, room: float) -> list[tuple[int, int]]:
    """Ranges of columns that are drawn below each other, of about one length."""
    total = len(diagram.columns)
    unit = 2 if diagram.unit == "round" else 1
    most = max(unit, int(room / _LEAST.get(diagram.unit, 60)) // unit * unit)
    number = -(-total // most) or 1
    length = max(unit, -(-total // number // unit) * unit)
    return [(at, min(at + length, total)) for at in range(0, total, length)]


@dataclass
class _Item:
    """Text beside a line, from ``x`` to no further than ``until``; ``variants`` of it, the longest first."""

    x: float
    variants: tuple[str, ...]
    style: str = "s h"
    until: float = float(WIDTH)


class _Sheet:
    """The drawing while it is made, from top to bottom; ``y`` is how far it is."""

    def __init__(self, diagram: OwnershipDiagram, prefix: str, standalone: bool) -> None:
        self.diagram, self.prefix = diagram, prefix
        self.root = ET.Element("svg", {"xmlns": "http://www.w3.org/2000/svg", "id": prefix, "role": "img"})
        self.root.set("aria-labelledby", f"{prefix}-title {prefix}-desc")
        ET.SubElement(self.root, "title", {"id": f"{prefix}-title"}).text = _known(diagram.title)[:300]
        ET.SubElement(self.root, "desc", {"id": f"{prefix}-desc"}).text = description(diagram)
        style = _STYLE.replace("ID", f"#{prefix}").replace("NAME", prefix)
        ET.SubElement(self.root, "style").text = style
        self._patterns()
        self.paper = self.rect(0, 0, WIDTH, 0, "paper") if standalone else None
        names = [
            "coordinator",
            *(_name(m) for m in diagram.members),
            *(_name(r.member) for r in diagram.rows),
        ]
        self.left = _SIDE + max(map(_wide, names)) + 14
        self.room = WIDTH - _SIDE - self.left
        self.y = 0.0
        self.used: list[OwnershipState] = []

    def text(self) -> str:
        height = f"{self.y + _SIDE:g}"
        self.root.set("viewBox", f"0 0 {WIDTH} {height}")
        self.root.set("width", str(WIDTH))
        self.root.set("height", height)
        self.root.set("style", "max-width:100%;height:auto")
        if self.paper is not None:
            self.paper.set("height", height)
        return ET.tostring(self.root, encoding="unicode")

    # -- elements --------------------------------------------------------------------------------------

    def _patterns(self) -> None:
        defs = ET.SubElement(self.root, "defs")

        def pattern(name: str, size: str, **more: str) -> ET.Element:
            made = {"id": f"{self.prefix}-{name}", "width": size, "height": size}
            return ET.SubElement(defs, "pattern", {**made, "patternUnits": "userSpaceOnUse", **more})

        hatch = pattern("hatch", "9", patternTransform="rotate(45)")
        ET.SubElement(hatch, "path", {"d": "M2 0V9", "class": "p"})
        dots = pattern("dots", "6")
        ET.SubElement(dots, "circle", {"cx": "3", "cy": "3", "r": "1.2", "class": "q"})

    def rect(
        self, x: float, y: float, width: float, height: float, style: str, radius: int = 0
    ) -> ET.Element:
        at = {"x": f"{x:.1f}", "y": f"{y:.1f}", "width": f"{width:.1f}", "height": f"{height:.1f}"}
        return ET.SubElement(
            self.root, "rect", {**at, **({"rx": str(radius)} if radius else {}), "class": style}
        )

    def path(self, d: str, style: str) -> None:
        ET.SubElement(self.root, "path", {"d": d, "class": style})

    def line(self, x: float, y: float, to_x: float, to_y: float, style: str) -> None:
        self.path(f"M{x:.1f} {y:.1f}L{to_x:.1f} {to_y:.1f}", style)

    def write(self, x: float, y: float, text: str, style: str = "", anchor: str = "") -> None:
        """``text``, which is clean and fits."""
        if text:
            more = {"text-anchor": anchor} if anchor else {}
            at = {"x": f"{x:.1f}", "y": f"{y:.1f}", **more, **({"class": style} if style else {})}
            ET.SubElement(self.root, "text", at).text = text

    def lane(self, items: Iterable[_Item], y: float, right: float, size: float = _SMALL) -> None:
        """Texts in one line, each as long as there is room before the next; the last may begin earlier."""
        placed = sorted(items, key=lambda item: item.x)
        free = self.left
        for item, then in zip(placed, [*(item.x - 5 for item in placed[1:]), right], strict=True):
            x = item.x
            if item is placed[-1]:
                x = max(free, min(x, right - _wide(item.variants[0], size)))
            text = _fits(item.variants, min(then, item.until) - x, size)
            self.write(x, y, text, item.style)
            free = x + _wide(text, size) + 5

    # -- parts -----------------------------------------------------------------------------------------

    def head(self) -> None:
        """The title."""
        self.y = 8
        for line in fold(_known(self.diagram.title), int((WIDTH - 2 * _SIDE) / (EM * _TITLE)), most=2):
            self.y += 20
            self.write(_SIDE, self.y, line, "t")
        self.y += 12

    def strip(self, start: int, end: int) -> None:
        """The columns from ``start`` to ``end``."""
        _Strip(self, start, end).draw()

    def legend(self) -> None:
        """What the bars mean, as far as they were drawn."""
        entries: list[tuple[str, str]] = [
            (str(look), str(look)) for look in OwnershipState if look in self.used
        ]
        if any(o.bug for o in self.diagram.overlaps):
            entries.append(("hatch", "two owners at one time"))
        if any(not o.bug for o in self.diagram.overlaps):
            entries.append(("soft", "two clients use it, one of which is no longer a member"))
        self.y += 8
        x = float(_SIDE)
        for kind, text in entries:
            width = 34 + _wide(text, _SMALL) + 22
            if x + width > WIDTH - _SIDE and x > _SIDE:
                x, self.y = _SIDE, self.y + 18
            self._sample(x, self.y + 3, kind)
            self.write(x + 34, self.y + 12, text, "s")
            x += width
        self.y += 22 if entries else 0

    def _sample(self, x: float, y: float, kind: str) -> None:
        if kind in ("hatch", "soft"):
            if kind == "hatch":
                self.rect(x, y, 28, 12, "hatch")
            self.rect(x, y, 28, 12, "frame" if kind == "hatch" else "soft")
        else:
            self.bar(OwnershipState(kind), x, y, 28, 12)

    def bar(self, look: OwnershipState, x: float, y: float, width: float, height: float) -> None:
        """One look, without text."""
        if look in _BARS:
            inset = 0.0 if look is OwnershipState.OWNED else 0.75
            self.rect(x + inset, y + inset, width - 2 * inset, height - 2 * inset, _BARS[look][0], 2)
        elif look is OwnershipState.UNKNOWN:
            self.write(x + width / 2, y + height / 2 + 4, "?", "d b", "middle")
        else:
            style = "nobody" if look is OwnershipState.NOBODY else "without"
            self.line(x, y + height / 2, x + width, y + height / 2, style)

    def steps(self) -> None:
        """What happens in each column, in words."""
        columns_ = self.diagram.columns
        rounds = self.diagram.unit == "round"
        twice = {at for o in self.diagram.overlaps if o.bug for at in range(o.start, o.end)}
        entries: list[tuple[str, str, str]] = []
        for at, column in enumerate(columns_):
            if column.skipped:
                entries.append(("...", f"{column.skipped:,} left out", "d"))
            if column.what:
                label = str(column.generation) if rounds else column.label
                red = at in twice or (rounds and at + 1 in twice)
                entries.append((label, _known(column.what), "r" if red else "f" if column.fault else ""))
        if not entries:
            return
        self.y += 10
        sides = 2 if len(entries) > 8 else 1
        width = (WIDTH - 2 * _SIDE - (sides - 1) * 24) / sides
        most = int((width - 40) / (EM * _SMALL))
        half = -(-len(entries) // sides)
        top, lowest = self.y, self.y
        for side in range(sides):
            y, x = top, _SIDE + side * (width + 24)
            for label, text, style in entries[side * half : (side + 1) * half]:
                for number, line in enumerate(fold(text, most, most=3)):
                    y += 14
                    if number == 0:
                        self.write(x + 32, y, label, f"s b {style}".strip(), "end")
                    self.write(x + 40, y, line, "s" if style in ("", "r") else f"s {style}")
            lowest = max(lowest, y)
        self.y = lowest + 6

    def left_out(self) -> None:
        """What is not shown."""
        if self.diagram.left_out:
            text = "not shown: " + "; ".join(part.removeprefix("and ") for part in self.diagram.left_out)
            for line in fold(_known(text), int((WIDTH - 2 * _SIDE) / (EM * _SMALL)), most=3):
                self.y += 14
                self.write(_SIDE, self.y, line, "s d")


class _Strip:
    """Some columns, drawn in full height."""

    def __init__(self, sheet: _Sheet, start: int, end: int) -> None:
        self.sheet, self.diagram, self.start, self.end = sheet, sheet.diagram, start, end
        longest = max((b - a for a, b in _strips(self.diagram, sheet.room)), default=1)
        self.cell = min(_WIDEST, sheet.room / longest)
        self.right = self.x(end)
        self.top = sheet.y

    def x(self, column: float) -> float:
        """The left edge of a column, or the nearest of what is in the strip."""
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
        sheet.root.extend(drawn)
        for column in range(self.start, self.end):
            if self.diagram.columns[column].skipped:
                x = self.x(column)
                sheet.line(x, self.top, x, bottom, "cut")

    def _twice(self) -> list[tuple[int, int]]:
        """Ranges of columns with two owners of anything."""
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
                text = _fits(
                    (f"{word} {generation}, which breaks the rule", *short) if marked else short, room, _TEXT
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
                _fits((_known(column.label),), self.cell - 4, _SMALL),
                style,
                "middle",
            )
        if any(c.when for c in diagram.columns):
            sheet.y += 13
            for at in range(self.start, self.end):
                sheet.write(
                    self.x(at + 0.5),
                    sheet.y,
                    _fits((diagram.columns[at].when,), self.cell - 3, _SMALL),
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
        text = _fits(("from here to there again and again", "again and again", "again"), to - x - 8, _SMALL)
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
        sheet.write(_SIDE, home + 4, "coordinator", "b")
        sheet.line(self.x(self.start), home, self.right, home, "g2")
        sheet.y = home
        levels: dict[str, float] = {}
        texts: list[tuple[list[_Item], float]] = []
        for member in diagram.members:
            mine = [a for a in arrows if a.member == member]
            # Requests above answers: what is answered at once would leave no room for words beside it.
            lanes = [[a for a in mine if not a.answer], [a for a in mine if a.answer]]
            labels = [[self._beside(a, at[a]) for a in lane] for lane in lanes]
            above = [[item for item in lane if item.variants] for lane in labels]
            sheet.y += 17 + 11 * sum(map(bool, above))
            y = levels[member] = sheet.y
            sheet.write(_SIDE, y + 4, _name(member))
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
        """Where each arrow stands: those of one column beside each other."""
        found = {}
        for column, group in groupby(sorted(arrows, key=lambda a: a.column), key=lambda a: a.column):
            together = list(group)
            for number, arrow in enumerate(together, 1):
                found[arrow] = self.x(column + number / (len(together) + 1))
        return found

    def _beside(self, arrow: MessageArrow, x: float) -> _Item:
        """What to write beside an arrow."""
        api = "" if self.diagram.columns[arrow.column].label == arrow.api else arrow.api
        short = _APIS.get(api, api)
        if arrow.text.isupper():  # an error
            error = _known(arrow.text)
            return _Item(x + 4, tuple(filter(None, (f"{api} {error}".strip(), error))), "s h r")
        number = "" if arrow.generation is None else f" {arrow.generation}"
        text = _name(arrow.text, 40)
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
        return _Item(x + 4, variants, until=until)

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

    def _away(self, member: str, y: float, marked: Collection[int]) -> list[_Item]:
        """The member's line, and the words for where it is not drawn through, unless a mark tells why."""
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
                    items.append(_Item(self.x(gone.start) + 4, (gone.text,), "s h d"))
                at = gone.end
        return items

    def _mark(self, mark: EventMark) -> _Item:
        return _Item(self.x(mark.column) + 4, (_name(mark.text, 60),), "s h f" if mark.fault else "s h")

    def _layers(self, items: Sequence[_Item]) -> list[list[_Item]]:
        """Texts in one or two lines: where one would run into the next, that goes into the second."""
        layers: list[list[_Item]] = [[], []]
        ends = [0.0, 0.0]
        for item in sorted(items, key=lambda one: one.x):
            layer = 1 if ends[0] > item.x >= ends[1] else 0
            layers[layer].append(item)
            ends[layer] = item.x + _wide(item.variants[0], _SMALL) + 5
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
            name, beside = _name(partition), _wide(_name(partition)) + 10
            alone = len(rows) == 1 and not met and beside + _wide(_name(rows[0][1].member)) < sheet.left - 18
            sheet.y += 6
            sheet.line(_SIDE, sheet.y, self.right, sheet.y, "g")
            sheet.write(_SIDE, sheet.y + (18 if alone else 15), name, "b")
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
        sheet.write(_SIDE + indent, y + 13, _name(row.member) or "(nobody)", "" if row.member else "d")
        for bar in self.diagram.bars:
            if bar.row == number and self.inside(bar.start, bar.end):
                if bar.look not in sheet.used:
                    sheet.used.append(bar.look)
                self._bar(bar, row, y, met)

    def _bar(self, bar: Bar, row: Row, y: float, met: Sequence[Overlap]) -> None:
        sheet = self.sheet
        x, to = self.x(bar.start), self.x(bar.end)
        sheet.bar(bar.look, x, y, to - x, 18)
        if bar.look in _BARS:
            over = [self.x(o.start) for o in met if row.member in o.members and o.bug and o.end > bar.start]
            room = min([to, *over]) - x - 10
            text = _LABELS[bar.look]
            if _wide(text, _SMALL) <= room:
                sheet.write(x + 5, y + 13, text, f"s {_BARS[bar.look][1]}")

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
        """Who owns it at one time, above the bars, as near as there is room; the bugs first."""
        name = _name(met[0].partition) if met else ""
        taken: list[tuple[float, float]] = []
        for overlap in sorted(met, key=lambda o: not o.bug):
            x = self.x(overlap.start)
            least = max((b for a, b in taken if a <= x), default=self.sheet.left)
            limit = min((a for a, _ in taken if a > x), default=WIDTH - _SIDE)
            who, verb = overlap.owners(_name), "is owned by" if overlap.bug else "is used by"
            text = _fits((f"{name} {verb} {who}", f"{name}: {who}"), limit - least, _TEXT)
            if not overlap.bug and not text.endswith(who):
                continue
            start = min(max(x, least), limit - _wide(text))
            self.sheet.write(start, y, text, "r" if overlap.bug else "f b")
            taken.append((start - 8, start + _wide(text) + 8))
