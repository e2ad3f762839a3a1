"""The tables of log lines read in Python, as Spark reads by them."""

from __future__ import annotations

from rebalance.pipeline.audit.sources.patterns import Line, Source


def match(source: Source, message: str) -> tuple[Line, dict[str, str]] | None:
    """What ``message`` says: the row that takes it, and what that catches."""
    for line in source.lines:
        if message.startswith(line.start):
            found = line.regex.fullmatch(message)
            if found is not None:
                caught = {name.rstrip("0123456789"): text for name, text in found.groupdict().items() if text}
                return line, caught
            if not source.choices(line):
                return None
    return None
