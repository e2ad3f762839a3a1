"""A Kafka cluster for the time of a block, whoever plays it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self


class Unsupported(Exception):
    """A cluster or a client lacks what was asked of it; the text says what and why. No verdict follows."""


class LiveCluster(ABC):
    """A cluster on loopback, for the time of a ``with`` block; every call waits until it is done.

    Calls raise Unsupported where this kind of cluster has no such thing, CommandRefused where it will not.
    ``kind``: ``mock`` or ``kafka``; ``version``: of what answers, librdkafka's or Apache Kafka's;
    ``bootstrap``: ``host:port[,...]``, known inside the ``with`` block.
    """

    kind: str
    version: str = ""
    bootstrap: str = ""

    @abstractmethod
    def __enter__(self) -> Self: ...

    @abstractmethod
    def __exit__(self, *_: object) -> None: ...

    @abstractmethod
    def _ask(self, do: str, **arguments: Any) -> Any:
        """Return the answer of a process of the cluster."""

    def create_topic(self, name: str, partitions: int) -> str:
        """Make a topic; its id as Kafka writes it (KIP-516), "" where topics have none."""
        return str(self._ask("create_topic", name=name, partitions=partitions).get("id", ""))

    def add_partitions(self, name: str, partitions: int) -> None:
        """Let a topic have so many partitions."""
        self._ask("add_partitions", name=name, partitions=partitions)

    def delete_topic(self, name: str) -> None:
        """Delete a topic."""
        self._ask("delete_topic", name=name)

    def produce(self, topic: str, partition: int, count: int) -> None:
        """Append so many records to a partition; on return they are readable."""
        self._ask("produce", topic=topic, partition=partition, count=count)

    @abstractmethod
    def fail_coordinator(self, group: str) -> None:
        """End the broker that coordinates ``group``, without warning; another takes over."""
