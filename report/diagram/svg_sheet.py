"""The sheet that an ownership diagram is drawn on: style, measured text, title, legend, steps in words."""

from __future__ import annotations

import unicodedata
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

from rebalance_verifier.base.text import clean, columns, fold, listed, shorten
from rebalance_verifier.report.diagram.diagram import OwnershipDiagram, OwnershipState

WIDTH = 1200
"""User units, which are CSS pixels at full size."""

EM = 0.62
"""Width of a character of the font for each unit of its size, at least."""

NAME = 22
"""Columns of the names at the left."""

SIDE = 14
TEXT, SMALL, TITLE = 12, 10, 15


BARS = {
    OwnershipState.OWNED: ("owned", "on"),
    OwnershipState.TIED: ("leaving", ""),
    OwnershipState.LEAVING: ("leaving", ""),
    OwnershipState.STALE: ("claim", "d"),
    OwnershipState.PAST: ("claim", "d"),
    OwnershipState.REMOVED: ("removed", "h"),
    OwnershipState.ACTIVE: ("owned", "on"),
    OwnershipState.STANDBY: ("leaving", ""),
    OwnershipState.COPY: ("claim", "d"),
}
"""States that are boxes -> the class of the box, that of the text in it."""


def description(diagram: OwnershipDiagram) -> str:
    """Return the diagram in words, for who cannot see it."""
    lines = [
        f"{shown_name(o.partition)} has two owners{diagram.when(o.start, o.end)}: {o.owners(shown_name)}"
        for o in diagram.overlaps
        if o.bug
    ]
    people = listed(map(shown_name, diagram.members))
    time = f"{len(diagram.columns)} columns of time from left to right"
    return ". ".join([f"Who owned what: members {people or 'none'}; {time}", *lines[:8]]) + "."


def shown_name(text: str, most: int = NAME) -> str:
    """Return a name as it is shown: clean, of characters of a known width, not too long."""
    return shorten(known(text), most)


def known(text: str) -> str:
    """Clean text in which every character is as wide as ``columns`` says: others are escaped."""
    text = clean(text[:20_000])
    if text.isascii():
        return text
    return "".join(c if _is_known(c) else c.encode("unicode_escape").decode() for c in text)


def _is_known(char: str) -> bool:
    code = ord(char)
    wide = unicodedata.east_asian_width(char) in "WF"
    return code < 0x250 or 0x370 <= code < 0x530 or wide or char in "–—‘’“”…→←·"


def wide(text: str, size: float = TEXT) -> float:
    """Return width of a clean text at this size of the font, in user units."""
    return columns(text) * EM * size


def fits(variants: Sequence[str], room: float, size: float) -> str:
    """Return the first of several texts, the longest first, that fits; else as much of the last as does."""
    most = int(room / (EM * size) + 0.001)
    for text in variants:
        if columns(text) <= most:
            return text
    return shorten(variants[-1], most) if most >= 4 else variants[-1] if columns(variants[-1]) <= most else ""


@dataclass
class LaneText:
    """Text beside a line, from ``x`` to no further than ``until``; ``variants`` of it, the longest first."""

    x: float
    variants: tuple[str, ...]
    style: str = "s h"
    until: float = float(WIDTH)


@cache
def _style() -> str:
    """Return the style sheet, with ``ID`` for the selector of the drawing and ``NAME`` for its prefix."""
    return "\n" + resources.files(__package__).joinpath("svg.css").read_text("utf-8")


class Sheet:
    """The drawing while it is made, from top to bottom; ``y`` is how far it is."""

    def __init__(self, diagram: OwnershipDiagram, prefix: str, standalone: bool) -> None:
        self.diagram, self.prefix = diagram, prefix
        self.root = ET.Element("svg", {"xmlns": "http://www.w3.org/2000/svg", "id": prefix, "role": "img"})
        self.root.set("aria-labelledby", f"{prefix}-title {prefix}-desc")
        ET.SubElement(self.root, "title", {"id": f"{prefix}-title"}).text = known(diagram.title)[:300]
        ET.SubElement(self.root, "desc", {"id": f"{prefix}-desc"}).text = description(diagram)
        style = _style().replace("ID", f"#{prefix}").replace("NAME", prefix)
        ET.SubElement(self.root, "style").text = style
        self._patterns()
        self.paper = self.rect(0, 0, WIDTH, 0, "paper") if standalone else None
        names = [
            "coordinator",
            *(shown_name(m) for m in diagram.members),
            *(shown_name(r.member) for r in diagram.rows),
        ]
        self.left = SIDE + max(map(wide, names)) + 14
        self.room = WIDTH - SIDE - self.left
        self.y = 0.0
        self.used: list[OwnershipState] = []

    def text(self) -> str:
        height = f"{self.y + SIDE:g}"
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

    def hover(self, element: ET.Element, text: str) -> None:
        """Show ``text`` while the pointer is on an element."""
        if text:
            ET.SubElement(element, "title").text = known(text)[:300]

    def line(self, x: float, y: float, to_x: float, to_y: float, style: str) -> None:
        self.path(f"M{x:.1f} {y:.1f}L{to_x:.1f} {to_y:.1f}", style)

    def write(self, x: float, y: float, text: str, style: str = "", anchor: str = "") -> None:
        """``text``, which is clean and fits."""
        if text:
            more = {"text-anchor": anchor} if anchor else {}
            at = {"x": f"{x:.1f}", "y": f"{y:.1f}", **more, **({"class": style} if style else {})}
            ET.SubElement(self.root, "text", at).text = text

    def lane(self, items: Iterable[LaneText], y: float, right: float, size: float = SMALL) -> None:
        """Texts in one line, each as long as there is room before the next; the last may begin earlier."""
        placed = sorted(items, key=lambda item: item.x)
        free = self.left
        for item, then in zip(placed, [*(item.x - 5 for item in placed[1:]), right], strict=True):
            x = item.x
            if item is placed[-1]:
                x = max(free, min(x, right - wide(item.variants[0], size)))
            text = fits(item.variants, min(then, item.until) - x, size)
            self.write(x, y, text, item.style)
            free = x + wide(text, size) + 5

    # -- parts -----------------------------------------------------------------------------------------

    def head(self) -> None:
        """The title."""
        self.y = 8
        for line in fold(known(self.diagram.title), int((WIDTH - 2 * SIDE) / (EM * TITLE)), most=2):
            self.y += 20
            self.write(SIDE, self.y, line, "t")
        self.y += 12

    def legend(self) -> None:
        """Draw the meaning of the bars, as far as they were drawn."""
        entries: list[tuple[str, str]] = [
            (str(look), str(look)) for look in OwnershipState if look in self.used
        ]
        if any(o.bug for o in self.diagram.overlaps):
            entries.append(("hatch", "two owners at one time"))
        if any(not o.bug for o in self.diagram.overlaps):
            entries.append(("soft", "two clients use it, one of which is no longer a member"))
        self.y += 8
        x = float(SIDE)
        for kind, text in entries:
            width = 34 + wide(text, SMALL) + 22
            if x + width > WIDTH - SIDE and x > SIDE:
                x, self.y = SIDE, self.y + 18
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
        if look in BARS:
            inset = 0.0 if look in (OwnershipState.OWNED, OwnershipState.ACTIVE) else 0.75
            self.rect(x + inset, y + inset, width - 2 * inset, height - 2 * inset, BARS[look][0], 2)
        elif look is OwnershipState.UNKNOWN:
            self.write(x + width / 2, y + height / 2 + 4, "?", "d b", "middle")
        else:
            style = "nobody" if look is OwnershipState.NOBODY else "without"
            self.line(x, y + height / 2, x + width, y + height / 2, style)

    def steps(self) -> None:
        """Write the events of each column."""
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
                entries.append((label, known(column.what), "r" if red else "f" if column.fault else ""))
        if not entries:
            return
        self.y += 10
        sides = 2 if len(entries) > 8 else 1
        width = (WIDTH - 2 * SIDE - (sides - 1) * 24) / sides
        most = int((width - 40) / (EM * SMALL))
        half = -(-len(entries) // sides)
        top, lowest = self.y, self.y
        for side in range(sides):
            y, x = top, SIDE + side * (width + 24)
            for label, text, style in entries[side * half : (side + 1) * half]:
                for number, line in enumerate(fold(text, most, most=3)):
                    y += 14
                    if number == 0:
                        self.write(x + 32, y, label, f"s b {style}".strip(), "end")
                    self.write(x + 40, y, line, "s" if style in ("", "r") else f"s {style}")
            lowest = max(lowest, y)
        self.y = lowest + 6

    def left_out(self) -> None:
        """Write what is not shown."""
        if self.diagram.left_out:
            text = "not shown: " + "; ".join(part.removeprefix("and ") for part in self.diagram.left_out)
            for line in fold(known(text), int((WIDTH - 2 * SIDE) / (EM * SMALL)), most=3):
                self.y += 14
                self.write(SIDE, self.y, line, "s d")
