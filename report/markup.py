"""Text from outside as GitHub-flavoured Markdown: no markup of its own, whatever it says."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from rebalance_verifier.base.text import clean

_MARKUP = re.compile(r"[\\`*_\[\]#!|<>&~@$]|:(?=//)|(?<=www)\.", re.IGNORECASE)


def table(titles: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    """Return the lines of a table, an empty one last; the cells are Markdown already."""
    heads = list(titles)
    lines = [heads, ["---"] * len(heads), *rows]
    return [f"| {' | '.join(line)} |" for line in lines] + [""]


def escaped(text: str) -> str:
    """``text`` as words: no markup, link, mention or HTML comes of it, in table cells neither."""
    return _MARKUP.sub(r"\\\g<0>", clean(text))


def code(text: str) -> str:
    """``text`` as code, in a fence that it does not contain."""
    text = clean(text)
    fence = "`" * (_longest_run(text) + 1)
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{space}{text}{space}{fence}"


def fenced(text: str) -> list[str]:
    """``text`` as a block of lines, in fences that it does not contain."""
    fence = "`" * max(3, _longest_run(text) + 1)
    return [f"{fence}text", text, fence]


def _longest_run(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)


def plain(lines: Sequence[str], most: int) -> str:
    """Return lines joined to at most ``most`` characters, with a note where some were left out."""
    text = "\n".join(lines)
    return text if len(text) <= most else text[:most] + "\n(cut)"
