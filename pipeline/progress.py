"""One line that says how far a long job is and how long the rest will take, on a terminal only."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

EVERY = 0.3
"""Seconds between two lines; the last one is always shown."""


@contextlib.contextmanager
def progress(noun: str, total: int, done: int = 0, *, quiet: bool = False) -> Iterator[Callable[[int], None]]:
    """A function to call with how many of ``total`` are done; it draws the line on standard error.

    ``done``: how many were done before, so that the estimate is of this run. The line goes away in the end.
    """
    terminal = sys.stderr
    if quiet or not terminal.isatty():
        yield lambda now: None
        return
    began, before, shown = time.monotonic(), done, 0.0

    def report_progress(now: int) -> None:
        nonlocal shown
        clock = time.monotonic()
        if clock - shown >= EVERY or now >= total:
            shown = clock
            terminal.write(f"\r\x1b[K{line(noun, total, now, before, clock - began)}")
            terminal.flush()

    report_progress(done)
    try:
        yield report_progress
    finally:
        terminal.write("\r\x1b[K")
        terminal.flush()


def line(noun: str, total: int, done: int, before: int, seconds: float) -> str:
    """The line.

    >>> line("scenarios", 100_000, 40_000, 0, 10.0)
    '40,000 of 100,000 scenarios, 4,000/s, about 15 s left'
    >>> line("scenarios", 100_000, 40_000, 40_000, 0.1)
    '40,000 of 100,000 scenarios'
    """
    text = f"{done:,} of {total:,} {noun}"
    if done <= before or seconds <= 0:
        return text
    rate = (done - before) / seconds
    return f"{text}, {rate:,.0f}/s, about {span((total - done) / rate)} left"


def span(seconds: float) -> str:
    """A stretch of time, roughly.

    >>> span(15), span(150), span(9000)
    ('15 s', '2 min', '2.5 h')
    """
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
