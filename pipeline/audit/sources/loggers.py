"""Whose lines an audit knows: consumers in Java, C and Python, and the coordinator on the broker.

Each is a table in the file of its name.
"""

from __future__ import annotations

from rebalance_verifier.base.tables import table
from rebalance_verifier.pipeline.audit.sources.events import Kind
from rebalance_verifier.pipeline.audit.sources.patterns import Line, Source

REBOOTSTRAPPING = "rebootstrapping"
"""The client forgets the cluster, and learns its id again: that is no new client."""

OVERDUE = "overdue"
"""The client leaves because nobody polls it: it goes on owning, for all that it knows."""

LOSING = "losing"
"""What is revoked from here until the client joins again is lost."""

RELEASE = "release"
"""Which release is running, ``detail``. Of a process, where the line names no client."""

EXCHANGED = "exchanged"
"""A consumer revokes some partitions and is assigned others, in one line."""

EPOCH = "epoch"
"""A heartbeat of the consumer protocol is answered: with the epoch of its member, which that may have had."""

TARGETED = "targeted"
"""The coordinator has a new target: a generation, with a plan where that is said."""

MARKS = (REBOOTSTRAPPING, OVERDUE, LOSING, RELEASE, EXCHANGED, EPOCH, TARGETED)
"""What lines say that is no event, and changes what later lines mean."""

_KINDS: dict[str, Kind | str] = {kind: kind for kind in (*Kind, *MARKS)}


def _source(name: str) -> Source:
    logged = table(__file__, name)

    def line(start: str, rest: str, kind: str | None = None, releases: str = "") -> Line:
        for part, pattern in reversed(logged.get("parts", {}).items()):
            rest = rest.replace(f"<<{part}>>", pattern)
        return Line(start, rest, None if kind is None else _KINDS[kind], releases)

    return Source(
        name=name,
        marks=tuple(logged["marks"]),
        prefix=logged["prefix"],
        lines=tuple(line(*row) for row in logged["lines"]),
        client=logged.get("client", ""),
    )


LOGGED = tuple(map(_source, ("java", "librdkafka", "python", "broker")))
JAVA, LIBRDKAFKA, PYTHON, BROKER = LOGGED

RUNNING = Source(
    name="java",
    marks=("Kafka version",),
    prefix=r"(?P<head>.*?)(?=Kafka version ?: )",
    lines=(Line("Kafka version", r" ?: (?P<detail>\d[\w.-]*).*", RELEASE, "2.3 -"),),
)
"""A Java process, client or broker, and which release it is of."""
