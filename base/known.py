"""Lists of what is known and allowed for now: the form that those of all commands have.

One pattern per line, then a comment that says why, best a link to an issue::

    PATTERN    # https://example.org/issues/12 until=2027-01-31

From the day after ``until`` on the line allows nothing. What a pattern looks like and means is for each kind
of list to say.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TypeVar

from rebalance_verifier.base.reading import Unreadable, text

UNTIL = re.compile(r"(?<!\S)until=(\S*)")

MAX_LETTERS = 1000
"""Letters of a pattern."""


class KnownError(ValueError):
    """A list that cannot be read; every wrong line is named, with what to do about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownEntry:
    """One line of a list. ``source`` is the file, or the option for a pattern given there.

    ``until`` is the last day on which it allows anything; ``None``: for ever.
    """

    pattern: str
    comment: str = ""
    until: date | None = None
    source: str = ""
    line: int = 0

    @classmethod
    def check(cls, pattern: str) -> None:
        """Raise ValueError for what is no pattern of this kind of list, with what to write."""

    @classmethod
    def check_typed(cls, pattern: str) -> None:
        """Raise ValueError for a pattern that means nothing there is. In a file such a line may be old, and
        is named when the run has ended; typed as an option it is a mistake, and named at once."""

    @property
    def where(self) -> str:
        """File and line."""
        return f"{self.source}:{self.line}" if self.line else self.source

    def __str__(self) -> str:
        return f"{self.pattern} ({self.where})" if self.where else self.pattern

    def expired(self, today: date) -> bool:
        """Check whether it allows nothing any more."""
        return self.until is not None and today > self.until


_Entry = TypeVar("_Entry", bound=KnownEntry)


def parse(kind: type[_Entry], text: str, source: str) -> tuple[_Entry, ...]:
    """Return the entries of a list. Raises ``KnownError`` naming each wrong line as ``source:line``."""
    entries, wrong = [], []
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), 1):
        pattern, _, comment = (part.strip() for part in line.partition("#"))
        if not pattern:
            continue
        try:
            entries.append(_entry(kind, pattern, comment, source, number))
        except ValueError as error:
            wrong.append(f"{source}:{number}: {error}")
    first = {entry.pattern: entry.line for entry in reversed(entries)}
    wrong += [
        f"{source}:{e.line}: {e.pattern!r} is in line {first[e.pattern]} already: remove one"
        for e in entries
        if e.line != first[e.pattern]
    ]
    if wrong:
        raise KnownError("\n".join(wrong))
    return tuple(entries)


def _entry(kind: type[_Entry], pattern: str, comment: str, source: str, line: int) -> _Entry:
    if len(pattern) > MAX_LETTERS:
        raise ValueError(f"{pattern[:40]!r}... is too long for a pattern")
    kind.check(pattern)
    dates = UNTIL.findall(comment)
    reason = " ".join(UNTIL.sub("", comment).split())
    if not reason:
        raise ValueError(f"{pattern!r} has no reason: add '# <issue url>' behind it")
    if len(dates) > 1:
        raise ValueError("more than one 'until=': keep one")
    try:
        until = date.fromisoformat(dates[0]) if dates else None
    except ValueError:
        raise ValueError(f"'until={dates[0]}' is no date: write until=YYYY-MM-DD") from None
    return kind(pattern=pattern, comment=comment, until=until, source=source, line=line)


def read(kind: type[_Entry], options: Sequence[str], name: str, hint: str = "") -> tuple[_Entry, ...]:
    """Return the entries of several options ``name``, each a pattern or ``@FILE``; ``hint``: what makes a
    file that is missing. Raises ``KnownError``."""
    entries: list[_Entry] = []
    for option in options:
        if option.startswith("@"):
            entries += parse(kind, _read(option[1:], name, hint), option[1:])
            continue
        try:
            kind.check(option)
            kind.check_typed(option)
        except ValueError as error:
            if os.path.isfile(option):
                raise KnownError(f"{name}: {option} is a file: write {name} @{option}") from None
            raise KnownError(f"{name}: {error}") from None
        entries.append(kind(pattern=option, source=name))
    return tuple(entries)


def _read(path: str, name: str, hint: str) -> str:
    try:
        return text(Path(path))
    except (FileNotFoundError, NotADirectoryError):
        missing = f"{name}: no file {path!r}"
        raise KnownError(f"{missing}; {hint.format(path=path)}" if hint else missing) from None
    except Unreadable as error:
        raise KnownError(f"{name}: {error}") from None
