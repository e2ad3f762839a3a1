"""One line that says how far a long job is and how long the rest will take, on a terminal only."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator

from rebalance_verifier.base.text import cut, span
from rebalance_verifier.cli.console.terminal import dumb, print_err

EVERY = 0.3
"""Seconds between two lines."""

ENOUGH, ENOUGH_SECONDS = 0.02, 2.0
"""Which part of a job has to be done, in how much time, before it is said how long the rest takes."""

ENOUGH_WORK = 0.1
"""The same of work that is not alike; before it the estimate of a proof was twice what the rest took."""

Line = Callable[[], str]
"""Makes the line; asked only when one is shown."""


def quiet(options: argparse.Namespace) -> bool:
    """Check whether no progress is shown: nobody looks or wants it, or a line cannot be put in place of
    another."""
    return options.no_progress or not sys.stderr.isatty() or dumb()


def draw(line: str = "") -> None:
    """Put ``line`` in place of the progress line, which is on stderr; nothing takes it away. It ends where
    the terminal does: what is folded cannot be put in place again."""
    with contextlib.suppress(OSError):
        if width := os.get_terminal_size(sys.stderr.fileno()).columns:  # 0 where nobody has set it
            line = cut(line, width - 1)
    print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)


@contextlib.contextmanager
def progress(options: argparse.Namespace) -> Iterator[Callable[[Line], None]]:
    """Yield a function that shows a line, a few times a second at most; the line goes away in the end."""
    if quiet(options):
        yield lambda line: None
        return
    shown = 0.0

    def show(line: Line) -> None:
        nonlocal shown
        if time.monotonic() - shown >= EVERY:
            shown = time.monotonic()
            draw(line())

    try:
        yield show
    finally:
        if shown:
            draw()


class Stages:
    """Current stage of a job of several stages: of a stage how far it is, or else for how long it has run."""

    def __init__(self) -> None:
        self.name, self._since = "", time.monotonic()
        self._line: Line | None = None

    def enter(self, name: str) -> None:
        """A stage begins."""
        if name != self.name:
            self.name, self._since, self._line = name, time.monotonic(), None

    def show(self, line: Line) -> None:
        """How far the stage is."""
        self._line = line

    @property
    def elapsed(self) -> str:
        """For how long the stage has run."""
        return span(time.monotonic() - self._since)

    def line(self) -> str:
        """Return all of it in a line."""
        known = self._line() if self._line else self.elapsed
        return f"{self.name}: {known}" if self.name else known


@contextlib.contextmanager
def polled(options: argparse.Namespace, line: Line) -> Iterator[None]:
    """Show ``line`` again and again meanwhile: for jobs that do not say themselves how far they are."""
    if quiet(options):
        yield
        return
    ended = threading.Event()

    def show() -> None:
        while not ended.wait(EVERY):
            draw(line())

    thread = threading.Thread(target=show, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(5)
        draw()


@contextlib.contextmanager
def staged(options: argparse.Namespace, first: str) -> Iterator[Callable[[str], None]]:
    """Yield a function that says what a job does now, ``first`` until it is called: the line of progress has
    it and for how long; with ``--verbose``, where a command has it, it is printed instead, a line each."""
    if getattr(options, "verbose", 0):
        yield print_err
        return
    stages = Stages()
    stages.enter(first)
    with polled(options, stages.line):
        yield stages.enter


def counted(noun: str, done: int, total: int, seconds: float, before: int = 0) -> str:
    """Show the share of ``total`` done, ``done - before`` of it in so many seconds, and how long the rest
    will take.

    >>> counted("scenarios", 40_000, 100_000, 10.0)
    '40,000 of 100,000 scenarios, 4,000/s, about 15 s left'
    >>> counted("scenarios", 40_000, 100_000, 0.1, before=40_000)
    '40,000 of 100,000 scenarios'

    Before there is enough to judge by, it does not say how long: the first ones wait for what has to start.

    >>> counted("scenarios", 40, 100_000, 10.0), counted("scenarios", 9_000, 100_000, 1.0)
    ('40 of 100,000 scenarios', '9,000 of 100,000 scenarios')
    """
    text = f"{done:,} of {total:,} {noun}"
    if seconds < ENOUGH_SECONDS or done - before < (total - before) * ENOUGH:
        return text
    rate = (done - before) / seconds
    return f"{text}, {rate:,.0f}/s, about {span((total - done) / rate)} left"


def estimated(noun: str, done: float, total: float, seconds: float) -> str:
    """Return which part of the work is done, in so many seconds, and how long the rest will take.

    >>> estimated("of the proof", 30.0, 60.0, 20.0), estimated("of the proof", 0.1, 60.0, 0.1)
    ('50% of the proof, about 20 s left', '0% of the proof')
    """
    text = f"{done / total if total else 1:.0%} {noun}"
    if seconds < ENOUGH_SECONDS or done < total * ENOUGH_WORK:
        return text
    return f"{text}, about {span((total - done) * seconds / done)} left"
