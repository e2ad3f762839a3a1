"""The frame of every report for a terminal: its width, named lines, colours, the order of its parts."""

from __future__ import annotations

from collections.abc import Iterable

from rebalance.gate.cli.console.text import columns, fold


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
