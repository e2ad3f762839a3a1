"""What stands before the name of a client on its lines: worked out for one line, and known for all others
that differ from it in their time alone.

A client's lines have few layouts. To take a line apart as ``parsing`` does costs ten times as much.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from rebalance_verifier.pipeline.audit.sources.envelopes import Wrapped, taken_off
from rebalance_verifier.pipeline.audit.sources.times import DATED, moment

MINUTE = len("2026-01-02 03:04:")

MANY_LAYOUTS, MANY_TIMES = 1 << 12, 1 << 17
"""Entries after which what is known is forgotten."""

_LONGEST = 300
"""Characters of a head that is learned."""

_OTHER_TIME = re.compile(r"\d:\d|\d{8}")
"""A second time may count instead of the first, or beside it (``parsing``)."""

_ROW = re.compile(r"[\dZ],(?!\d)")
"""A row of CSV begins with a time and a comma: which cell is the message depends on the others."""

_OPEN = ('"', "\x1b", "{", "<", "msg=", "message=")
"""In a head with one of these what follows may decide what it means: JSON, logfmt, a colour, syslog."""

_SECOND = re.compile(r"([0-5]\d)(?:[.,](\d{1,9}))?", re.ASCII)

_PROBE = str.maketrans("0123456789", "1111111111")


class Head(NamedTuple):
    """Facts that all heads of a layout share. ``minutes``: beginnings of times by now, in microseconds."""

    name: str
    host: str
    zone: str
    """What stands directly behind the time and is of it: a zone, AM or PM."""
    minutes: dict[str, int]


class Heads:
    """The layouts by now. ``at`` says when a line was, of what stands before the message inside and outside
    of its envelope. A head with one of ``telling`` is not learned."""

    def __init__(self, zone: str, at: Callable[[str, str], int | None], telling: Sequence[str]) -> None:
        self._zone, self._at, self._telling = zone, at, (*_OPEN, *telling)
        self._first, self._last = 0, 0
        self._known: dict[str, Head | None] = {}
        self._seconds: dict[str, int] = {}

    def read(self, text: str, begins: int) -> tuple[Head, int] | None:
        """Return what stands before ``begins``, and when the line was, in microseconds; None: nobody knows
        yet, or it has to be worked out anew for each line."""
        first, last = self._first, self._last
        head = self._known.get(text[:first] + "\0" + text[last:begins])
        if head is None:
            found = DATED.search(text, 0, begins)
            if found is None:
                return None
            first, last = self._first, self._last = found.start(), found.end(7 if found[7] else 6)
            masked = f"{text[:first]}\0{text[last:begins]}"
            if masked not in self._known:
                if len(self._known) >= MANY_LAYOUTS:
                    self._known.clear()
                self._known[masked] = self._learned(text, begins, found)
            head = self._known[masked]
            if head is None:
                return None
        minute = head.minutes.get(text[first : first + MINUTE])
        second = self._seconds.get(text[first + MINUTE : last])
        if minute is None:
            minute = self._minute(head, text[first : first + MINUTE])
        if second is None:
            second = self._second(text[first + MINUTE : last])
        return None if minute is None or second is None else (head, minute + second)

    def _minute(self, head: Head, text: str) -> int | None:
        known = moment(f"{text}00{head.zone}", self._zone) if DATED.fullmatch(f"{text}00") else None
        if known is not None:
            _noted(head.minutes, text, known)
        return known

    def _second(self, text: str) -> int | None:
        found = _SECOND.fullmatch(text)
        if found is None:
            return None
        known = int(found[1]) * 1_000_000 + int(((found[2] or "") + "000000")[:6])
        _noted(self._seconds, text, known)
        return known

    def _learned(self, text: str, begins: int, found: re.Match[str]) -> Head | None:
        """Return what the head of a line says where that depends on nothing behind it, and of its time on no
        more than when it was."""
        head = text[:begins]
        outside = head[: found.start()] + head[found.end() :]
        if (
            begins > _LONGEST
            or any(map(head.__contains__, self._telling))
            or head.count("[") != head.count("]")
            or _ROW.search(head)
            or _OTHER_TIME.search(outside)
        ):
            return None
        one = taken_off(text)
        same = head[: found.start()] + found[0].translate(_PROBE) + head[found.end() :]
        other = taken_off(same + text[begins:])
        if _without_time(one) != _without_time(other) or not one.text.endswith(text[begins:]):
            return None
        at = self._at(one.text[: -len(text) + begins], one.when)
        if at is None or at != moment(found[0], self._zone) or one.partial:
            return None
        behind = text[found.end(7 if found[7] else 6) : found.end()]
        return Head(one.origin.name, one.origin.host, behind, {})


def _noted(known: dict[str, int], text: str, value: int) -> None:
    if len(known) >= MANY_TIMES:
        known.clear()
    known[text] = value


def _without_time(one: Wrapped) -> tuple[object, ...]:
    return one.origin, one.partial, one.fields, len(one.text)
