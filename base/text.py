"""Figures and lists in words, and how text that a target wrote is made fit to print.

Member and topic names, error messages and stderr belong to whoever is judged. Every report passes
them through ``clean`` first: one line, nothing that a terminal, an XML parser or a CI log obeys.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

WIDEST, NARROWEST = 110, 60
"""Columns of a report: where nobody has said how wide the terminal is, and at least."""

_WIDTH = ContextVar("width", default=WIDEST)


def page_width() -> int:
    """Return how many columns a report may take; only a link or a command to copy may be wider."""
    return _WIDTH.get()


@contextmanager
def page_of(width: int) -> Iterator[None]:
    """Make reports that are for a terminal of so many columns."""
    before = _WIDTH.set(max(NARROWEST, min(WIDEST, width)))
    try:
        yield
    finally:
        _WIDTH.reset(before)


def clean(text: str, unicode: bool = True) -> str:
    r"""``text`` with everything unprintable (and, without ``unicode``, everything but ASCII) escaped.

    >>> clean("a\n\x1b[31mb")
    'a\\n\\x1b[31mb'
    """
    text = text.replace("##[", "#\\#[")  # anywhere in a line of a CI log, GitHub's runner obeys it
    if text.isprintable() and (unicode or text.isascii()):
        return text
    return "".join(
        c if c.isprintable() and (unicode or c.isascii()) else c.encode("unicode_escape").decode()
        for c in text
    )


def columns(text: str) -> int:
    """Return columns that clean ``text`` takes on a terminal: East Asian wide ones count twice."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def _columns(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def head(text: str, width: int) -> str:
    """As many characters from the start of ``text`` as fit into ``width`` columns."""
    used = 0
    for position, char in enumerate(text):
        used += _columns(char)
        if used > width:
            return text[:position]
    return text


def cut(text: str, width: int) -> str:
    """``text``, its end replaced by dots where it is wider than ``width``."""
    return text if columns(text) <= width else head(text, width - 3) + "..."


def shorten(text: str, width: int) -> str:
    """``text``, its middle replaced by dots where it is too wide: the ids of clients differ at the end."""
    if columns(text) <= width:
        return text
    end = (width - 2) // 2
    return head(text, width - 2 - end) + ".." + head(text[::-1], end)[::-1]


def pad(text: str, width: int) -> str:
    """``text`` filled up with spaces to ``width`` columns."""
    return text + " " * (width - columns(text))


def fold(text: str, width: int, most: int = 6) -> list[str]:
    """``text`` in lines of at most ``width`` columns, broken at spaces where there are any.

    What does not fit into ``most`` lines is left out, and dots say so.
    """
    lines: list[str] = []
    while text and len(lines) < most:
        line = head(text, width)
        if len(line) < len(text) and text[len(line)] != " " and " " in line.strip():
            line = line[: line.rindex(" ")]
        line = line or text[0]
        lines.append(line.rstrip())
        text = text[len(line) :].lstrip(" ")
    if text:
        lines[-1] = head(lines[-1], width - 4) + " ..."
    return lines or [""]


def fitted(text: str, width: int) -> str:
    """``text`` with each line that is too wide for ``width`` going on below itself, under what follows its
    last gap; no word is broken.

    >>> print(fitted("assign/1  safety  a partition has at most one owner", 40))
    assign/1  safety  a partition has at
                      most one owner
    """
    return "\n".join(part for line in text.split("\n") for part in _fitted(line, width))


def _fitted(line: str, width: int) -> Iterator[str]:
    def wide(text: str) -> int:
        return columns(re.sub("\x1b\\[[0-9;]*m", "", text))

    if wide(line) > width:
        tokens = re.findall(r" *\S+", line)
        gaps = [gap.end() for gap in re.finditer(r"\S  +", line) if gap.end() <= width * 3 // 5]
        indent = gaps[-1] if gaps else len(line) - len(line.lstrip()) + 2
        if max(wide(word.lstrip()) for word in tokens) > width - indent:
            indent = 4
        current = ""
        for word in tokens:
            if current.strip() and wide(current + word) > width:
                yield current
                current = " " * indent + word.lstrip()
            else:
                current += word
        line = current
    yield line


def count(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> count(1, "claim"), count(2, "claim"), count(2, "process")
    ('1 claim', '2 claims', '2 processes')
    """
    plural = f"{noun}es" if noun.endswith(("ss", "ch")) else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"


def size(
    measured: tuple[int, int, int, int],
    nouns: tuple[str, str, str, str] = ("member", "partition", "claim", "event"),
) -> str:
    """Return ``Scenario.size`` in words."""
    return ", ".join(count(n, noun) for n, noun in zip(measured, nouns, strict=True))


def percent(share: float) -> str:
    """Return a share without rounding something to nothing or not quite all to all."""
    if 0 < share < 0.01:
        return "<1%"
    if 0.99 < share < 1:
        return ">99%"
    return f"{share:.0%}"


def listed(items: Iterable[object], most: int = 8) -> str:
    """Return items separated by commas, only the first ``most`` by name."""
    names = [str(item) for item in items]
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def span(seconds: float | None) -> str:
    """Return a stretch of time, with the digits that matter.

    >>> span(0.0123), span(7.9), span(75), span(7300), span(180000)
    ('12 ms', '7.9 s', '75 s', '2 h 2 min', '2 d 2 h')
    """
    if seconds is None or math.isnan(seconds):
        return "unknown"
    if round(seconds, 3) < 1:
        return f"{seconds * 1000:.0f} ms"
    if round(seconds, 1) < 10:
        return f"{seconds:.1f} s"
    if round(seconds) < 120:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 120:
        return f"{minutes} min"
    hours = round(seconds / 3600)
    if hours < 48:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{hours // 24} d {hours % 24} h"
