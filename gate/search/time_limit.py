"""When the parts of a check with a time limit end: in all it takes at most 1.5 times as long, and 10 seconds.

A search that is cut short has found what it has found. Who reads its verdict wants to know that it comes
again, and to see it small, so there is time for both behind the limit, and no more than that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TimeLimits:
    """Until when a check begins another scenario, when one that takes longer is cut short, and when it asks
    the target nothing more; in the time of ``time.monotonic``."""

    search: float = math.inf
    cut: float = math.inf
    end: float = math.inf

    @classmethod
    def of(cls, limit: float | None, began: float) -> TimeLimits:
        """Return those of a check that ``began`` then and may take so many seconds. Starting and reporting
        take the rest of the 10."""
        return (
            cls() if limit is None else cls(began + limit, began + 1.2 * limit + 1, began + 1.5 * limit + 4)
        )


def shrink_until(now: float, end: float) -> float:
    """Until when a counterexample that is found ``now`` may be made small: a quarter of what is left. A large
    one that was confirmed is worth more than a small one that was not, and others come behind it."""
    return end if math.isinf(end) else now + (end - now) / 4
