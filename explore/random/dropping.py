"""Delta debugging: leave out chunks of a sequence while it still breaks (Zeller and Hildebrandt, 2002)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def left_out(
    items: Sequence[T],
    still: Callable[[tuple[T, ...]], Sequence[T] | None],
    may_go_on: Callable[[], bool] = lambda: True,
) -> tuple[T, ...]:
    """``items`` without chunks that are not needed, large chunks first; no single one can go in the end.

    ``still`` is asked with what is left, and says what of it is needed at most, None where it does not break.
    Stops early, with what it has, when ``may_go_on`` says no.

    >>> left_out("needed at all", lambda some: some if "n" in some and "a" in some else None)
    ('n', 'a')
    """
    best = tuple(items)
    size = max(1, len(best) // 2)
    while size and may_go_on():
        position, helped = 0, False
        while position < len(best) and may_go_on():
            shorter = still(best[:position] + best[position + size :])
            if shorter is None or len(shorter) >= len(best):
                position += size
            else:
                best, helped = tuple(shorter), True
        if size > 1 or not helped:
            size //= 2
    return best
