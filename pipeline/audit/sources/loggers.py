"""Whose lines an audit knows: the Java consumer, librdkafka and the coordinator on the broker.

Each is a table in the file of its name.
"""

from __future__ import annotations

from rebalance.model.data import table
from rebalance.pipeline.audit.sources.events import Kind
from rebalance.pipeline.audit.sources.patterns import LOGGER, Line, Source

REBOOTSTRAPPING = "rebootstrapping"
"""The client forgets the cluster, and learns its id again: that is no new client."""

OVERDUE = "overdue"
"""The client leaves because nobody polls it: it goes on owning, for all that it knows."""

LOSING = "losing"
"""What is revoked from here until the client joins again is lost."""

_KINDS: dict[str, Kind | str] = {kind: kind for kind in (*Kind, REBOOTSTRAPPING, OVERDUE, LOSING)}


def _source(name: str) -> Source:
    logged = table(__file__, name)

    def line(start: str, rest: str, kind: str | None = None, releases: str = "") -> Line:
        for part, pattern in reversed(logged.get("parts", {}).items()):
            rest = rest.replace(f"<<{part}>>", pattern)
        return Line(start, rest, None if kind is None else _KINDS[kind], releases)

    return Source(
        name=name,
        marks=logged["marks"],
        prefix=f"^(?s:{logged['prefix']}){LOGGER}$",
        lines=tuple(line(*row) for row in logged["lines"]),
    )


LOGGED = tuple(map(_source, ("java", "librdkafka", "broker")))
JAVA, LIBRDKAFKA, BROKER = LOGGED
