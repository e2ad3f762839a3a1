"""How much work Python does, counted in lines: the same on every machine, however busy."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


class TooMuchWork(Exception):
    """More lines were run than were allowed."""


def lines(work: Callable[[], object], most: float = math.inf) -> int:
    """The lines of Python that ``work`` runs; what C does within a line is not seen.

    Raises TooMuchWork as soon as there are more than ``most``.
    """
    run = 0

    def seen(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal run
        run += event == "line"
        if run > most:
            raise TooMuchWork
        return seen

    before = sys.gettrace()
    sys.settrace(seen)
    try:
        work()
    finally:
        sys.settrace(before)
    return run
