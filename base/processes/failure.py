"""Ways in which a program that we run can fail to answer."""

from __future__ import annotations

from enum import StrEnum


class FailureKind(StrEnum):
    """Ways in which a target can fail to answer."""

    TIMEOUT = "timeout"
    CRASH = "crash"
    MEMORY = "memory"
    GARBAGE = "garbage"
    ERRORED = "errored"
    SKIPPED = "skipped"


HARMFUL = frozenset({FailureKind.TIMEOUT, FailureKind.CRASH, FailureKind.MEMORY})
"""Failures that end or block the whole process of a target, and so the service of all who ask the same."""
