"""When the parts of a check with a time limit end: in all it takes at most 1.5 times as long, and 10 seconds.

All parts have one deadline, which counts from when the command began: a target that starts slowly takes of
the time that it is searched, or made small, and adds none.

A search that is cut short has found what it has found. Who reads its verdict wants to know that it comes
again, and to see it small, so there is time for both behind the limit, and no more than that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TimeLimits:
    """Until when a check begins another scenario, when one that takes longer is cut short, when it asks the
    target nothing more, and when what runs the target; in the time of ``time.monotonic``."""

    search: float = math.inf
    cut: float = math.inf
    end: float = math.inf
    consulted: float = math.inf

    @classmethod
    def of(cls, limit: float | None, began: float, now: float | None = None) -> TimeLimits:
        """Return those of a check that may take so many seconds: of a command that ``began`` then, and
        searches from ``now`` on. Reporting takes the rest of the 10."""
        if limit is None:
            return cls()
        searched = began if now is None else now
        return cls(
            min(searched + limit, began + 1.25 * limit + 2),
            min(searched + 1.2 * limit + 1, began + 1.4 * limit + 3),
            began + 1.5 * limit + 4,
            began + 1.5 * limit + 7,
        )


def shrink_until(now: float, end: float) -> float:
    """Until when a counterexample that is found ``now`` may be made small: a quarter of what is left. A large
    one that was confirmed is worth more than a small one that was not, and others come behind it."""
    return end if math.isinf(end) else now + (end - now) / 4
