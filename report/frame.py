"""The frame of every report for a terminal: named lines, tables, colours."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from rebalance_verifier.base.text import clean, columns, fold, pad, page_width

_RED, _GREEN, _YELLOW, _CYAN = "31;1", "32;1", "33;1", "36;1"
_COLOURS = {
    **dict.fromkeys(("VIOLATION", "REFUTED"), _RED),
    **dict.fromkeys(("CONFORMANT", "PROVED"), _GREEN),
    **dict.fromkeys(("INCONCLUSIVE", "UNKNOWN", "VACUOUS", "STALE", "fixed", "stale", "missed"), _YELLOW),
    **dict.fromkeys(("FINDING", "KNOWN"), _CYAN),
}


def labelled(name: str, text: str, most: int = 20, width: int = 9) -> list[str]:
    """``text``, folded into at most ``most`` lines, beside its name, which takes ``width`` columns, or more.

    >>> labelled("not shown", "no group has it")
    ['  not shown no group has it']
    """
    width = max(width, len(name) + 1)
    first, *rest = fold(clean(text), page_width() - 2 - width, most)
    return [f"  {name:<{width}}{first}".rstrip(), *(" " * (2 + width) + line for line in rest)]


def aligned(rows: Iterable[Sequence[str]], right: Collection[int] = (), gap: str = "  ") -> list[str]:
    """Return rows of clean cells with their columns below each other; those numbered in ``right`` end at one
    column.

    >>> aligned([("clause", "broken"), ("a", "12")], {1})
    ['clause  broken', 'a           12']
    """
    kept = list(rows)
    widths = [max(map(columns, column)) for column in zip(*kept, strict=True)]
    lines = []
    for row in kept:
        cells = (
            " " * (width - columns(cell)) + cell if at in right else pad(cell, width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        lines.append(gap.join(cells).rstrip())
    return lines


def stairs(
    title: str, labels: Sequence[str], rows: Sequence[tuple[str, Sequence[str]]], size: int = 1
) -> list[str]:
    """Return a table of marks of ``size`` columns: a line per named row, a column per label, which stand
    above it like stairs.

    >>> stairs("", ["one", "two"], [("a", "X.")])
    ['   one', '   | two', 'a  X .']
    """
    width = max(map(len, (title, *(name for name, _ in rows))))
    bar = f"{'|':<{size}} "
    lines = [f"{title * (not at):<{width}}  {bar * at}{clean(label)}" for at, label in enumerate(labels)]
    lines += [f"{name:<{width}}  " + " ".join(f"{m:<{size}}" for m in marks) for name, marks in rows]
    return [line.rstrip() for line in lines]


def painted(lines: Iterable[str], color: bool) -> str:
    """Return the whole text: with ``color``, the word that a line begins with is coloured if it is a
    verdict."""
    return "\n".join(map(_paint, lines) if color else lines)


def _paint(line: str) -> str:
    first = re.match(r" *(\w+)", line)
    if first is None or first[1] not in _COLOURS:
        first = re.search(r"(?<=; )([A-Z]+)(?=, exit)", line)
    if first is None or first[1] not in _COLOURS:
        return line
    start, end = first.span(1)
    return f"{line[:start]}\x1b[{_COLOURS[first[1]]}m{first[1]}\x1b[0m{line[end:]}"


def packed(parts: Iterable[str], width: int, gap: str = "  ") -> list[str]:
    """Parts beside each other, as many in a line as fit into ``width`` columns; a longer one is folded.

    >>> packed(["one", "two", "three"], 9)
    ['one  two', 'three']
    """
    lines: list[str] = []
    for part in parts:
        if lines and columns(lines[-1]) + len(gap) + columns(part) <= width:
            lines[-1] += gap + part
        else:
            lines += fold(part, width)
    return lines
