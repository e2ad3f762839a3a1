"""What a recording needs of a Kafka cluster, whoever plays it."""

from __future__ import annotations

from types import TracebackType
from typing import Protocol, Self


class Unsupported(Exception):
    """A cluster or a client lacks what was asked of it; the text says what and why. No verdict follows."""


class LiveCluster(Protocol):
    """A cluster on loopback, for the time of a ``with`` block; every call waits until it is done.

    Calls raise Unsupported where this kind of cluster has no such thing, CommandRefused where it will not.
    """

    kind: str
    """``mock`` or ``kafka``."""
    version: str
    """Of what answers: librdkafka's or Apache Kafka's."""
    bootstrap: str
    """``host:port[,...]``, known inside the ``with`` block."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def create_topic(self, name: str, partitions: int) -> None:
        """Make a topic."""

    def add_partitions(self, name: str, partitions: int) -> None:
        """Let a topic have so many partitions."""

    def delete_topic(self, name: str) -> None:
        """Delete a topic."""

    def produce(self, topic: str, partition: int, count: int) -> None:
        """Append so many records to a partition; on return they are readable."""

    def fail_coordinator(self, group: str) -> None:
        """End the broker that coordinates ``group``, without warning; another takes over."""
