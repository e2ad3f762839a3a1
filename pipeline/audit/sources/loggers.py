"""Whose lines an audit knows: consumers in Java, C, Python, Go and JavaScript, and the coordinator.

Each is a table in the file of its name.
"""

from __future__ import annotations

from rebalance_verifier.base.tables import table
from rebalance_verifier.pipeline.audit.sources.events import Kind
from rebalance_verifier.pipeline.audit.sources.fields import FieldLine, FieldSource
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

HOLDS = "holds"
"""A consumer has joined, and owns these partitions and no others."""

KEEPS = "keeps"
"""A consumer owns these partitions; what it had besides it has given away, what it had it keeps."""

SHARED = "shared"
"""A consumer of a share group, which has no owners."""

TASKS = "tasks"
"""A member of a Streams group (KIP-1071), which owns tasks."""

DROPS = "drops"
"""A consumer gives away all that it owns."""

REJOINS = "rejoins"
"""A consumer gives away all that it owns, and joins again."""

LEAVES = "leaves"
"""A consumer gives away all that it owns, and leaves."""

LOSES = "loses"
"""A consumer learns that it is no member, and has lost all that it owned."""

FETCHES = "fetches"
"""A consumer begins to fetch a partition, or goes on with it at another broker."""

SESSION = "session"
"""A session ends: with its ``member`` when it stops to heartbeat, without when all is given away."""

ALIVE = "alive"
"""The last line that a consumer writes to a file, of no interest but for its time."""

DONE = "done"
"""A member of the consumer protocol owns what it was told to, and tells the coordinator so."""

NAMED = "named"
"""The line names the group that the lines around it are of."""

MARKS = (
    *(REBOOTSTRAPPING, OVERDUE, LOSING, RELEASE, EXCHANGED, EPOCH, TARGETED),
    *(SHARED, TASKS, HOLDS, KEEPS, DROPS, REJOINS, LEAVES, LOSES, FETCHES, SESSION, NAMED, ALIVE, DONE),
)
"""What lines say that is no event, and changes what later lines mean."""

_KINDS: dict[str, Kind | str] = {kind: kind for kind in (*Kind, *MARKS)}


def _fields(name: str) -> FieldSource:
    logged = table(__file__, name)
    kinds = [(row[0], row[1], _KINDS[row[2]] if len(row) > 2 else None, *row[3:]) for row in logged["lines"]]
    return FieldSource(
        name=name,
        marks=tuple(logged["marks"]),
        lines=tuple(FieldLine(*row) for row in kinds),
        client=logged["client"],
        level=logged["level"],
    )


def _source(name: str) -> Source:
    logged = table(__file__, name)

    def spelled(pattern: str) -> str:
        for part, meaning in reversed(logged.get("parts", {}).items()):
            pattern = pattern.replace(f"<<{part}>>", meaning)
        return pattern

    def line(start: str, rest: str, kind: str | None = None, releases: str = "") -> Line:
        return Line(start, spelled(rest), None if kind is None else _KINDS[kind], releases)

    return Source(
        name=name,
        marks=tuple(logged["marks"]),
        prefix=spelled(logged["prefix"]),
        lines=tuple(line(*row) for row in logged["lines"]),
        client=logged.get("client", ""),
        level=logged.get("level", ""),
        loose=logged.get("loose", False),
        open_ended=logged.get("open_ended", False),
    )


JAVA, LIBRDKAFKA, PYTHON, BROKER, OFFSETS, SARAMA, KAFKA_GO, CONNECT, SHARE = map(
    _source, ("java", "librdkafka", "python", "broker", "offsets", "sarama", "kafka-go", "connect", "share")
)
KGO, KAFKAJS = map(_fields, ("kgo", "kafkajs"))
COORDINATORS = frozenset({BROKER.name, OFFSETS.name})
"""Whose lines a coordinator writes: into its log, or into the topic in which it keeps its groups."""

PIECEWISE = frozenset({LIBRDKAFKA.name, SARAMA.name})
"""Who says what it is assigned in a line for each partition, so that nobody knows which is the last."""

LOGGED: tuple[Source | FieldSource, ...] = (
    *(JAVA, LIBRDKAFKA, PYTHON, BROKER, OFFSETS, CONNECT, SHARE, KAFKAJS, SARAMA, KAFKA_GO, KGO),
)
"""In the order in which a line is held against them."""

RUNNING = Source(
    name="java",
    loose=True,
    marks=("Kafka version",),
    prefix=r"(?P<head>.*?)(?=Kafka version ?: )",
    lines=(Line("Kafka version", r" ?: (?P<detail>\d[\w.-]*).*", RELEASE, "2.3 -"),),
)
"""A Java process, client or broker, and which release it is of."""
