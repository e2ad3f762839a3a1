"""What a judgement of any kind comes to, and how bad a breach is: what all commands share."""

from __future__ import annotations

from enum import IntEnum, StrEnum


class Verdict(StrEnum):
    """Verdict of a question: everything held, something broke, or too little was seen to say."""

    CONFORMANT = "conformant"
    VIOLATION = "violation"
    INCONCLUSIVE = "inconclusive"


class Exit(IntEnum):
    """Exit codes of every command."""

    CONFORMANT = 0
    VIOLATION = 1
    USAGE = 2
    INCONCLUSIVE = 3
    INTERNAL = 4
    INTERRUPTED = 130

    @classmethod
    def of(cls, verdict: Verdict, *, interrupted: bool = False) -> Exit:
        """Return the code of a run that ended with ``verdict``, or that Ctrl-C ended."""
        return cls.INTERRUPTED if interrupted else cls[verdict.name]


class Level(StrEnum):
    """How bad a breach is; the first two fail a build by default."""

    SAFETY = "safety"
    LIVENESS = "liveness"
    QUALITY = "quality"

    def gates(self, level: Level) -> bool:
        """Check whether a breach of this level fails a run of that ``level``, its weakest that does."""
        order = list(Level)
        return order.index(self) <= order.index(level)
