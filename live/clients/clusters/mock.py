"""librdkafka's mock cluster, which comes in the wheel of confluent-kafka, in a process of its own.

The classic group protocol on loopback: JoinGroup, SyncGroup, Heartbeat, LeaveGroup, OffsetCommit. What it
does otherwise than a broker (rdkafka_mock_cgrp.c): it takes the first assignor of the leader for all and
aborts when a member's first is another; a rebalance of a running group waits ``session.timeout.ms`` less one
second for members to join, also when all have; who does not join stays a member until its session expires.

``python -m ...mock`` is the program, `MockCluster` its handle.
"""

from __future__ import annotations

import ctypes
import json
import sys
from pathlib import Path
from typing import Any, Self

from rebalance_verifier.base.processes.program import GRACE, Server
from rebalance_verifier.live.clients.clusters.cluster import LiveCluster, Unsupported

FIXED = {8: 7, 9: 5, 10: 2, 11: 5, 12: 3, 13: 2, 14: 3}
"""API keys of the group protocol, and their last version that is not flexible (KIP-482): later ones of other
clients the mock cannot read, and hangs up."""
INITIAL_DELAY = 100
"""Milliseconds; Kafka's own default is 3000."""
MISSING = "the mock cluster needs librdkafka: install confluent-kafka"


class MockCluster(LiveCluster):
    """A cluster that needs no broker: its only one has the id 1."""

    kind = "mock"

    def __init__(self) -> None:
        self._server: Server | None = None

    def __enter__(self) -> Self:
        self._server = Server([sys.executable, "-P", "-m", __name__])
        self.bootstrap = self._server.hello["bootstrap"]
        self.version = self._server.hello["version"]
        return self

    def __exit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close(GRACE)

    @property
    def pid(self) -> int:
        """Of the process."""
        assert self._server is not None
        return self._server.pid

    def _ask(self, do: str, **arguments: Any) -> Any:
        assert self._server is not None, "outside of its with block"
        return self._server.ask(do, **arguments)

    def add_partitions(self, name: str, partitions: int) -> None:
        """It cannot."""
        raise Unsupported("librdkafka's mock cluster cannot add partitions to a topic")

    def fail_coordinator(self, group: str) -> None:
        """It cannot: groups live in the cluster, not in a broker, and nothing is forgotten."""
        raise Unsupported("a mock broker has no state to lose: a failover needs --cluster kafka")

    def advertise(self, host: str, port: int) -> None:
        """Let metadata say that the broker is there, which a proxy is."""
        self._ask("advertise", host=host, port=port)


# -- the program ---------------------------------------------------------------------------------------


class _Library:
    """librdkafka by ctypes: ``call(name, result, (type, value)...)``."""

    def __init__(self) -> None:
        import confluent_kafka

        self.version = confluent_kafka.libversion()[0]
        package = Path(confluent_kafka.__file__).parent
        found = [
            *package.with_name("confluent_kafka.libs").glob("librdkafka*"),
            *package.rglob("librdkafka*"),
        ]
        if not found:
            raise ImportError("no librdkafka in the wheel of confluent-kafka")
        self._library = ctypes.CDLL(str(found[0]))
        why = ctypes.create_string_buffer(512)
        client = self("new", ctypes.c_void_p, 0, None, why, ctypes.c_size_t(512))
        self.cluster = ctypes.c_void_p(self("mock_cluster_new", ctypes.c_void_p, ctypes.c_void_p(client), 1))
        self.bootstrap = self("mock_cluster_bootstraps", ctypes.c_char_p, self.cluster).decode()
        self._producer: Any = None

    def __call__(self, name: str, result: Any, *arguments: Any) -> Any:
        function = getattr(self._library, f"rd_kafka_{name}")
        function.restype = result
        return function(*arguments)

    def do(self, name: str, *arguments: Any) -> None:
        """A call that returns an error code or nothing."""
        code = self(name, ctypes.c_int, self.cluster, *arguments)
        if name in ("mock_topic_create", "mock_topic_delete") and code:
            raise RuntimeError(self("err2str", ctypes.c_char_p, code).decode())

    def produce(self, topic: str, partition: int, count: int) -> None:
        import confluent_kafka

        if self._producer is None:
            self._producer = confluent_kafka.Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 0})
        for number in range(count):
            self._producer.produce(topic, value=str(number).encode(), partition=partition)
        if left := self._producer.flush(20):
            raise RuntimeError(f"{left} of {count} records were not accepted")


def _run(library: _Library, do: str, given: dict[str, Any]) -> None:
    match do:
        case "create_topic":
            library.do("mock_topic_create", given["name"].encode(), given["partitions"], 1)
        case "delete_topic":
            library.do("mock_topic_delete", given["name"].encode())
        case "produce":
            library.produce(given["topic"], given["partition"], given["count"])
        case "advertise":
            library.do("mock_broker_set_host_port", 1, given["host"].encode(), given["port"])
        case _:
            raise RuntimeError(f"no such command: {do}")


def main() -> None:
    """Serve until stdin ends."""

    def emit(line: dict[str, Any]) -> None:
        print(json.dumps(line), flush=True)

    try:
        library = _Library()
    except (ImportError, OSError) as error:
        emit({"unavailable": f"{MISSING} ({error})"})
        return
    library("mock_group_initial_rebalance_delay_ms", None, library.cluster, INITIAL_DELAY)
    for key, last in FIXED.items():
        library("mock_set_apiversion", ctypes.c_int, library.cluster, *map(ctypes.c_int16, (key, 0, last)))
    emit({"bootstrap": library.bootstrap, "version": library.version})
    for line in sys.stdin:
        given = json.loads(line)
        try:
            _run(library, given.pop("do"), given)
        except Exception as error:
            emit({"error": str(error) or type(error).__name__})
        else:
            emit({"ok": True})


if __name__ == "__main__":
    main()
