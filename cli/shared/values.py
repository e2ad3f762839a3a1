"""The kinds of values that options take."""

from __future__ import annotations

import argparse
import contextlib
import re
from collections.abc import Sequence

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}


def duration(text: str) -> float:
    """Return a stretch of time above 0, in seconds.

    >>> duration("90"), duration("1.5s"), duration("5m"), duration("2h")
    (90.0, 1.5, 300.0, 7200.0)
    """
    number, unit = (text[:-1], text[-1]) if text[-1:] in _UNITS else (text, "s")
    with contextlib.suppress(ValueError):
        if 0 < (seconds := float(number) * _UNITS[unit]) < float("inf"):
            return seconds
    raise argparse.ArgumentTypeError(f"{text!r} is no time above 0, such as 90, 90s, 5m or 2h")


def natural(text: str) -> int:
    """0, 1, 2 ..."""
    if not re.fullmatch(r"\d{1,12}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 on")
    return int(text)


def whole(text: str) -> int:
    """Parse a whole number from 1 on."""
    with contextlib.suppress(argparse.ArgumentTypeError):
        if value := natural(text):
            return value
    raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on")


def amount(text: str) -> int:
    """So many bytes, as 500M or 4G."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kKmMgG]?)(?:i?[bB])?", text)
    if not match or not float(match[1]):
        raise argparse.ArgumentTypeError(f"{text!r} is not an amount of memory, such as 500M or 4G")
    return int(float(match[1]) * 1024 ** " kmg".index(match[2].lower() or " "))


def comma_separated(text: str) -> tuple[str, ...]:
    """Return several words, separated by commas."""
    return tuple(word.strip() for word in text.split(",") if word.strip())


def unless_all(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of a list that is about everything where it names nothing; none where ``all`` is one
    of them.

    >>> unless_all(["a", "b"]), unless_all(["a", "all"])
    (('a', 'b'), ())
    """
    return () if "all" in names else tuple(names)
