"""When a line was written: whatever layout the logger has, as long as the date is there.

Times are microseconds since 1970, UTC.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

_CLOCK = r"(\d{2}):(\d{2}):(\d{2})(?:[.,](\d{1,9}))?"
_ZONE = r" ?(Z\b|[+-]\d{2}(?::?\d{2})?\b|UTC\b|GMT\b)?"
_HOURS = _CLOCK.replace(r"\d{2}", r"\d{1,2}", 1)
_HALF = r"(?: ?([AP])M\b)?"
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_NAMED = f"({'|'.join(_MONTHS)})"

DATED = re.compile(r"(\d{4})[-/.](\d{2})[-/.](\d{2})[T ]" + _CLOCK + _ZONE + _HALF)
"""``2024-01-02 03:04:05,678``, ``2024-01-02T03:04:05.678Z``, ``2024/01/02 03:04:05.678 +0100``;
``2024-01-02 03:04:05 PM``."""

BASIC = re.compile(r"\b(\d{4})(\d{2})(\d{2})[T ]?(\d{2})(\d{2})(\d{2})[.,]?(\d{3})\b" + _ZONE)
"""``20240102T030405,678``: log4j's ISO8601_BASIC and COMPACT."""

MONTH = re.compile(r"\b(\d{1,2})[ /-]" + _NAMED + r"[ /-](\d{4})[ :]" + _HOURS + _ZONE + _HALF)
"""``02 Jan 2024 03:04:05,678``: log4j's DATE; web servers' ``02/Jan/2024:03:04:05 +0100``."""

AMERICAN = re.compile(r"\b" + _NAMED + r"[a-z]* (\d{1,2}), (\d{4})(?: @|,)? " + _HOURS + _ZONE + _HALF)
"""``Jan 2, 2024 @ 03:04:05.678``: Kibana's; ``Jan 2, 2024 3:04:05 PM``: what Java writes for America."""

UNIX = re.compile(r"\b" + _NAMED + r" {1,2}(\d{1,2}) " + _CLOCK + _ZONE + r"(?: [A-Z]{3,4})? (\d{4})\b")
"""``Tue Jan 02 03:04:05 UTC 2024``: that of ``date``, and of Java's ``Date``. The names of other zones mean
several each, so with them it counts as without a zone."""

DOTTED = re.compile(r"(?<![\d.])(\d{1,2})\.(\d{1,2})\.(\d{4})[ T,]{1,2}" + _CLOCK + _ZONE)
"""``02.03.2026 03:04:05,678``: the day first, wherever dots are written."""

SLASHED = re.compile(r"(?<![\d/.:-])(\d{1,2})([/-])(\d{1,2})\2(\d{4})(?:, ?| |T)" + _HOURS + _ZONE + _HALF)
"""``17/11/2026 03:04:05``, ``11/17/2026, 3:04:05 PM``: which is the day is known where one is no month."""

AMBIGUOUS = re.compile(
    r"(?<![\d/.:-])(?:\d{1,2}/\d{1,2}/\d{4}|\d{1,2}-\d{1,2}-\d{4}|\d{1,2}([-/.])\d{1,2}\1\d{2}"
    r"|\d{1,2}\.\d{1,2}\.|\d{1,2}[/-]\d{1,2})[ T,]{1,2}\d{1,2}:\d{2}:\d{2}"
)
"""``02/03/2026 03:04:05``, ``02.03.26 03:04:05``, ``02-03 03:04:05``: nobody knows which is the day, or the
year."""

MILLIS = re.compile(r"(?<![\w.])(\d{13}|\d{16}|\d{19})(?![\w.])")
SECONDS = re.compile(r"(?<![\w.])(\d{10}(?:\.\d{1,9})?)(?![\w.])")
"""Since 1970: milliseconds, microseconds, nanoseconds; seconds."""

SYSLOG = re.compile(r"\b" + _NAMED + r" {1,2}(\d{1,2}) " + _CLOCK)
"""``Jan  2 03:04:05``: no year."""

DAY_FIRST = re.compile(r"\b(\d{1,2})[ -]" + _NAMED + r" " + _CLOCK)
"""``02-Jan 03:04:05``: the same."""

KLOG = re.compile(r"(?<!\w)[IWEF](\d{2})(\d{2}) " + _CLOCK)
"""``I0102 03:04:05.678901``: month and day, as Kubernetes' logger for Go has it."""

CLOCK = re.compile(r"(?<![\d:])" + _CLOCK + _HALF + r"(?![\d:])")
"""No date."""


def moment(text: str, zone: str = "UTC", date: str | None = None) -> int | None:
    """The first time with a date in a text; None when there is none.

    ``zone`` is that of times which have none (``Europe/Berlin``, ``+02:00``), ``date`` (``2024-01-02``) of
    those without one.

    >>> moment("at 1970-01-01 00:00:01,5 and 1970-01-01T01:00:02+01:00")
    1500000
    >>> moment("03:04:05") is None, moment("00:00:01", date="1970-01-01")
    (True, 1000000)
    """
    for layout, read in _LAYOUTS:
        if found := layout.search(text):
            return read(found, zone)
    if date is None or AMBIGUOUS.search(text):  # its own day counts, and nobody knows it
        return None
    year, month, day = date.split("-")
    if found := SYSLOG.search(text):
        named, number, hour, minute, second, fraction = found.groups()
        month = _month(named)
        return _micros(_year(date, month), month, number, hour, minute, second, fraction, "", zone)
    if found := DAY_FIRST.search(text):
        number, named, hour, minute, second, fraction = found.groups()
        month = _month(named)
        return _micros(_year(date, month), month, number, hour, minute, second, fraction, "", zone)
    if found := KLOG.search(text):
        month, number, hour, minute, second, fraction = found.groups()
        return _micros(_year(date, month), month, number, hour, minute, second, fraction, "", zone)
    if found := CLOCK.search(text):
        hour, minute, second, fraction, half = found.groups()
        return _micros(year, month, day, _of_24(hour, half), minute, second, fraction, "", zone)
    return None


def _year(date: str, month: str) -> str:
    """Return the year of a month that stands there without one: that of the date, or the one beside it over
    the turn of the year."""
    year, around = int(date[:4]), int(date[5:7])
    return str(year + {(12, 1): 1, (1, 12): -1}.get((around, int(month)), 0))


def undated(text: str) -> bool:
    """Check whether a text has a time of the day, and no date with it.

    >>> undated("03:04:05"), undated("Jan  2 03:04:05"), undated("2024-01-02 03:04:05"), undated("")
    (True, True, False, False)
    """
    return CLOCK.search(text) is not None and not any(layout.search(text) for layout, _ in _LAYOUTS)


def yearless(text: str) -> bool:
    """Check whether a text has a day, and no year with it.

    >>> yearless("Jan  2 03:04:05"), yearless("I0102 03:04:05.678901"), yearless("03:04:05")
    (True, True, False)
    """
    return undated(text) and any(layout.search(text) for layout in (SYSLOG, DAY_FIRST, KLOG))


def zoned(text: str) -> bool:
    """Check whether the first time with a date has a zone, or counts since 1970."""
    found = DATED.search(text)
    return bool(found[8]) if found else bool(MILLIS.search(text) or SECONDS.search(text))


def stamp(text: str, zone: str = "UTC", date: str | None = None) -> int | None:
    """When a line was written of which nothing else is known: what its beginning says; None: nothing.

    A number may be anything, unless it is the first on the line.

    >>> stamp("order 1704164645678") is None, stamp("1704164645678 an order")
    (True, 1704164645678000)
    """
    start = text[:_NEAR]
    first = next((layout for layout, _ in _LAYOUTS if layout.search(start)), None)
    if first in (BASIC, MILLIS, SECONDS) and not re.match(r"[^\w]{0,3}(?:\d\|)?\d", start):
        return None
    return moment(start, zone, date)


def iso(text: str, zone: str = "UTC") -> int | None:
    """A text that is ISO 8601 and nothing else, or seconds since 1970; None for anything else.

    >>> iso("1970-01-01T00:00:01Z"), iso("1.5"), iso("at 1970-01-01T00:00:01Z")
    (1000000, 1500000, None)
    """
    # The fifth character of what is ISO 8601 is in no number.
    if text[4:5] not in ("-", "/") and _NUMBER.fullmatch(text):
        try:
            micros = round(float(text) * 1_000_000) if "e" in text.lower() else _decimal(text)
        except (OverflowError, ValueError):  # of more digits than Python reads
            return None
        return micros if FIRST <= micros <= LAST else None
    found = DATED.fullmatch(text)
    return _dated(found, zone) if found else None


def text_of(micros: int) -> str:
    """ISO 8601, in UTC."""
    return (_EPOCH + timedelta(microseconds=micros)).isoformat(timespec="microseconds").replace("+00:00", "Z")


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

FIRST, LAST = ((end - _EPOCH) // timedelta(microseconds=1) for end in (
    datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
))  # fmt: skip
"""Between these a time is one of a calendar."""

_NEAR = 100
"""Characters at the beginning of a line in which its time is."""

_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE]\+?\d+)?")


def _dated(found: re.Match[str], zone: str) -> int | None:
    year, month, day, hour, minute, second, fraction, own, half = found.groups()
    return _micros(year, month, day, _of_24(hour, half), minute, second, fraction, own, zone)


def _basic(found: re.Match[str], zone: str) -> int | None:
    year, month, day, hour, minute, second, fraction, own = found.groups()
    return _micros(year, month, day, hour, minute, second, fraction, own, zone)


def _slashed(found: re.Match[str], zone: str) -> int | None:
    one, _, other, year, hour, minute, second, fraction, own, half = found.groups()
    if (int(one) > 12) == (int(other) > 12):
        return None
    day, month = (one, other) if int(one) > 12 else (other, one)
    return _micros(year, month, day, _of_24(hour, half), minute, second, fraction, own, zone)


def _of_24(hour: str, half: str | None) -> str:
    """Return the hour of the day: ``half`` is A, P or None."""
    return f"{int(hour) % 12 + 12 * (half == 'P'):02}" if half and 1 <= int(hour) <= 12 else hour


def _day_month(found: re.Match[str], zone: str) -> int | None:
    day, month, year, hour, minute, second, fraction, own = found.groups()
    return _micros(year, month, day, hour, minute, second, fraction, own, zone)


def _month_first(found: re.Match[str], zone: str) -> int | None:
    named, day, year, hour, minute, second, fraction, own, half = found.groups()
    return _micros(year, _month(named), day, _of_24(hour, half), minute, second, fraction, own, zone)


def _year_last(found: re.Match[str], zone: str) -> int | None:
    named, day, hour, minute, second, fraction, own, year = found.groups()
    return _micros(year, _month(named), day, hour, minute, second, fraction, own, zone)


def _day_first(found: re.Match[str], zone: str) -> int | None:
    day, named, year, hour, minute, second, fraction, own, half = found.groups()
    return _micros(year, _month(named), day, _of_24(hour, half), minute, second, fraction, own, zone)


def _since_1970(found: re.Match[str], zone: str) -> int | None:
    digits = found[1]
    return int(digits) * 1000 if len(digits) == 13 else int(digits[:16])


def _seconds(found: re.Match[str], zone: str) -> int | None:
    return _decimal(found[1])


_LAYOUTS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], str], int | None]], ...] = (
    (DATED, _dated),
    (BASIC, _basic),
    (MONTH, _day_first),
    (AMERICAN, _month_first),
    (UNIX, _year_last),
    (DOTTED, _day_month),
    (SLASHED, _slashed),
    (MILLIS, _since_1970),
    (SECONDS, _seconds),
)


def _decimal(text: str) -> int:
    whole, _, fraction = text.partition(".")
    micros = int((fraction + "000000")[:6])
    return int(whole) * 1_000_000 + (-micros if whole.startswith("-") else micros)


def _month(name: str) -> str:
    return str(_MONTHS.index(name) + 1)


def _micros(
    year: str,
    month: str,
    day: str,
    hour: str,
    minute: str,
    second: str,
    fraction: str | None,
    own: str | None,
    zone: str,
) -> int | None:
    """``own``: the zone that stands there."""
    start = _minute(year, month, day, hour, minute, own or zone)
    seconds = int(second)
    if start is None or seconds > 59:
        return None
    micros = int((fraction + "000000")[:6]) if fraction else 0
    return (start + seconds) * 1_000_000 + micros


@lru_cache(maxsize=4096)
def _minute(year: str, month: str, day: str, hour: str, minute: str, zone: str) -> int | None:
    try:
        at = datetime(int(year), int(month), int(day), int(hour), int(minute), tzinfo=_zone(zone))
        return int((at.astimezone(UTC) - _EPOCH).total_seconds())
    except (ValueError, OverflowError):
        return None


@lru_cache(maxsize=64)
def _zone(text: str) -> tzinfo:
    if text in ("Z", "UTC", "GMT"):
        return UTC
    if text[0] in "+-":
        hours, minutes = int(text[1:3]), int(text[-2:]) if len(text) > 3 else 0
        return timezone(timedelta(minutes=(hours * 60 + minutes) * (-1 if text[0] == "-" else 1)))
    return ZoneInfo(text)
