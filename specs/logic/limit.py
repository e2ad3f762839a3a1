"""What an answer of the solver may cost, in its own resource units.

z3 counts what it does (``rlimit``), and equal questions asked in a context in the same order cost as much on
every machine, however busy: so what is unknown here is unknown everywhere. There is no clock besides; a
question that is given up is given up by its count alone.
"""

from __future__ import annotations

from typing import Any

LIMIT = 20_000_000
"""Units that one obligation, or one question besides, may take: ten times what the hardest takes, or more."""

MAX_UNITS = (1 << 32) - 1
"""The greatest limit that z3 takes."""


class Budget:
    """The units that some questions may take together; ``used`` is what they took.

    What a share takes is also taken from the whole.
    """

    def __init__(self, units: int, whole: Budget | None = None) -> None:
        self.units = units
        self.used = 0
        self._whole = whole

    @property
    def left(self) -> int:
        """Return how many units there still are."""
        return max(0, self.units - self.used)

    def share(self, units: int) -> Budget:
        """Return at most so many of the units that are left."""
        return Budget(min(units, self.left), self)

    def check(self, solver: Any, *assumptions: Any) -> Any:
        """Return what the solver says of the assumptions: ``z3.sat``, ``z3.unsat``; ``z3.unknown`` when the
        units are used up."""
        import z3  # here, so that a command can name its LIMIT without loading the solver

        if not self.left:
            return z3.unknown
        before = _count(solver)
        solver.set("rlimit", min(self.left, MAX_UNITS))
        try:
            return solver.check(*assumptions)
        finally:
            self._take(_count(solver) - before)

    def _take(self, units: int) -> None:
        self.used += units
        if self._whole is not None:
            self._whole._take(units)


def _count(solver: Any) -> int:
    """Return what was counted so far in the solver's context."""
    return int(solver.statistics().get_key_value("rlimit count"))
