"""The tables of log lines, each read as the product reads it."""

from __future__ import annotations

from rebalance_verifier.pipeline.audit.sources.patterns import Line, Source, UnrecognisedTail


def match(source: Source, message: str) -> tuple[Line, dict[str, str]] | None:
    """What ``message`` says: the row that takes it, and what that catches."""
    try:
        line, caught = source.match(message)
    except UnrecognisedTail:
        return None
    return None if line is None else (line, caught)
