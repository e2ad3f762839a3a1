"""An ownership diagram as a sequence diagram for Mermaid, as pull requests and step summaries show it.

Members and the coordinator are the participants; while two members own a partition the background is red and
a note says who owns it. Mermaid refuses long texts, so only the last steps are told.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rebalance_verifier.base.text import clean, shorten
from rebalance_verifier.report.diagram.diagram import EventMark, MessageArrow, Overlap, OwnershipDiagram

MAX_STEPS = 40
MAX_TEXT = 20_000
"""Characters; Mermaid's own limit (``maxTextSize``) is 50,000 in all that a page shows of it."""

_RED = "rgba(193, 18, 31, 0.25)"
_UNSAFE = re.compile(r"[^\w .,:()/@+=-]", re.ASCII)


def render(diagram: OwnershipDiagram) -> str:
    """Return the diagram, without the fence around it.

    The steps up to the last one with two owners, or up to the end; fewer where the text would be too long.
    """
    twice = [o.end for o in diagram.overlaps if o.bug]
    end = max(twice) if twice else len(diagram.columns)
    start = max(0, end - MAX_STEPS)
    while True:
        text = "\n".join(_lines(diagram, start, end)) + "\n"
        if len(text) <= MAX_TEXT or start >= end - 1:
            return text
        start += (end - start) // 4 + 1


def _lines(diagram: OwnershipDiagram, start: int, end: int) -> Iterator[str]:
    names = {member: f"m{number}" for number, member in enumerate(diagram.members)} | {"": "c"}
    yield "sequenceDiagram"
    for member in diagram.members:
        yield f"    participant {names[member]} as {_safe(member, 40)}"
    yield "    participant c as coordinator"
    first = names[next(iter(names))]
    yield f"    note over {first},c: {_safe(diagram.title, 200)}"
    if start:
        yield f"    note over {first},c: {diagram.unit}s before this are left out"
    inside: tuple[Overlap, ...] = ()
    generation: int | None = None
    for at in range(start, end):
        column = diagram.columns[at]
        now = tuple(o for o in diagram.overlaps if o.bug and o.start <= at < o.end)
        if inside and now != inside:
            yield "    end"
        if column.skipped and at > start:
            yield f"    note over {first},c: {column.skipped} left out"
        if column.generation not in (generation, None):
            yield f"    note over {first},c: {diagram.era} {column.generation}"
        generation = column.generation or generation
        if diagram.loop is not None and at == diagram.loop[0]:
            yield f"    note over {first},c: from here again and again"
        if now and now != inside:
            yield f"    rect {_RED}"
            for overlap in now:
                yield f"    note over {_over(overlap, names)}: {_owned(overlap)}"
        inside = now
        for arrow in diagram.arrows:
            if arrow.column == at:
                yield "    " + _message(arrow, names)
        for mark in diagram.marks:
            if mark.column == at:
                yield "    " + _note(mark, names)
    if inside:
        yield "    end"
    if diagram.loop is not None and diagram.loop[0] == diagram.loop[1]:
        yield f"    note over {first},c: nothing else ever happens"


def _over(overlap: Overlap, names: dict[str, str]) -> str:
    concerned = sorted((names[m] for m in overlap.members if m in names), key=lambda name: int(name[1:] or 0))
    return ",".join(dict.fromkeys((concerned[0], concerned[-1]))) if concerned else "c"


def _owned(overlap: Overlap) -> str:
    return f"{_safe(overlap.partition, 40)} is owned by {overlap.owners(lambda name: _safe(name, 40))}"


def _message(arrow: MessageArrow, names: dict[str, str]) -> str:
    line = "--" if arrow.answer else "-"
    head = "x" if arrow.lost else ">>"
    ends = (names[arrow.member], "c")
    source, target = reversed(ends) if arrow.answer else ends
    number = "" if arrow.generation is None else f", generation {arrow.generation}"
    text = f": {_safe(arrow.text, 80)}" if arrow.text else ""
    return f"{source}{line}{head}{target}: {arrow.api}{number}{text}"


def _note(mark: EventMark, names: dict[str, str]) -> str:
    return f"note over {names.get(mark.member, 'c')}: {_safe(mark.text, 80)}"


def _safe(text: str, most: int) -> str:
    """Return text that Mermaid reads as such: no markup, no entity, none of its own words as a whole."""
    plain = _UNSAFE.sub("?", shorten(clean(text[:1000], unicode=False), most)).strip() or "(none)"
    return f"({plain})" if plain.lower() in ("end", "as") else plain
