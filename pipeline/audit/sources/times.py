"""When a line was written: whatever layout the logger has, as long as it says the date."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

_CLOCK = r"(\d{2}:\d{2}:\d{2})(?:[.,](\d{1,9}))?"
_ZONE = r" ?(Z\b|[+-]\d{2}(?::?\d{2})?\b|UTC\b|GMT\b)?"

DATED = r"(\d{4})[-/](\d{2})[-/](\d{2})[T ]" + _CLOCK + _ZONE
"""``2024-01-02 03:04:05,678``, ``2024-01-02T03:04:05.678Z``, ``2024/01/02 03:04:05.678 +0100``."""

BASIC = r"\b(\d{4})(\d{2})(\d{2})[T ]?(\d{2})(\d{2})(\d{2})[.,]?(\d{3})\b" + _ZONE
"""``20240102T030405,678``: log4j's ISO8601_BASIC and COMPACT."""

MONTH = r"\b(\d{2})[ /-](Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[ /-](\d{4})[ :]" + _CLOCK + _ZONE
"""``02 Jan 2024 03:04:05,678``: log4j's DATE."""

MILLIS = r"(?<![\w.])(\d{13})(?![\w.])"
SECONDS = r"(?<![\w.])(\d{10}(?:\.\d{1,9})?)(?![\w.])"
"""Since 1970."""

CLOCK = r"(?<![\d:])" + _CLOCK + r"(?![\d:])"
"""Without a date."""

_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]


def moment(text: Column, zone: str, date: str | None = None) -> Column:
    """The first time with a date that a text says, as a timestamp; null when there is none.

    ``zone`` is that of times which do not say theirs, ``date`` (``2024-01-02``) of those without one.
    """
    basic = _written(text, BASIC, "$1-$2-$3T$4:$5:$6", 7, 8, zone)
    month = F.array_position(F.array(*map(F.lit, _MONTHS)), _group(text, MONTH, 2))
    named = F.concat(
        _group(text, MONTH, 3),
        F.lit("-"),
        F.lpad(month.cast("string"), 2, "0"),
        F.regexp_replace(F.regexp_substr(text, F.lit(MONTH)), MONTH, "-$1T$4."),
        _fraction(_group(text, MONTH, 5)),
        _zone(_group(text, MONTH, 6), zone),
    ).try_cast("timestamp")
    millis = F.timestamp_millis(_group(text, MILLIS, 1).try_cast("bigint"))
    choice = (
        F.when(text.rlike(DATED), iso(text, zone))
        .when(text.rlike(BASIC), basic)
        .when(text.rlike(MONTH), named)
        .when(text.rlike(MILLIS), millis)
        .when(text.rlike(SECONDS), seconds(_group(text, SECONDS, 1)))
    )
    if date is not None:
        choice = choice.when(text.rlike(CLOCK), _written(text, CLOCK, f"{date}T$1", 2, None, zone))
    return choice


def iso(text: Column, zone: str) -> Column:
    """The first time of the form ``DATED``; null when there is no such time."""
    return _written(text, DATED, "$1-$2-$3T$4", 5, 6, zone)


def seconds(text: Column) -> Column:
    """Seconds since 1970, to the microsecond; null when it is no such number."""
    return F.timestamp_micros((text.try_cast("decimal(20, 6)") * 1_000_000).try_cast("bigint"))


def _written(text: Column, layout: str, form: str, fraction: int, at_zone: int | None, zone: str) -> Column:
    found = F.regexp_substr(text, F.lit(layout))
    zone_text = F.lit(zone) if at_zone is None else _zone(_group(text, layout, at_zone), zone)
    whole = F.concat(
        F.regexp_replace(found, layout, form),
        F.lit("."),
        _fraction(_group(text, layout, fraction)),
        zone_text,
    )
    return whole.try_cast("timestamp")


def _fraction(digits: Column) -> Column:
    return F.when(digits == "", F.lit("0")).otherwise(digits)


def _zone(text: Column, zone: str) -> Column:
    return F.when(text == "", F.lit(zone)).otherwise(text)


def _group(text: Column, layout: str, number: int) -> Column:
    return F.regexp_extract(text, layout, number)
