"""A consumer of confluent-kafka (librdkafka), recorded: ``python -m
rebalance_verifier.live.clients.consumers.clients.confluent``.

Callbacks tell what it owns. Generation and member id are in librdkafka's own log only (``debug=cgrp``), which
goes to stderr, and is read here; those of the consumer protocol are seen on the wire.
"""

from __future__ import annotations

import os
import re
import stat
import tempfile
import threading
import time
from typing import Any

from rebalance_verifier.live.clients.consumers.clients.recorder import Client, Ranges, Recorder, extend, serve

JOINED = re.compile(
    r"JoinGroup response: GenerationId (\d+), Protocol .*, my MemberId ([^,]*), .*: \(no error\)"
)
EVENTS = {
    "joining": re.compile(r'Joining group "'),
    "synced": re.compile(r"SyncGroup response: Success"),
    "reset": re.compile(
        r'updating member id "[^"(]+" -> "'
        r"|heartbeat error response in state .*: Broker: "
        r"(?:Unknown member|Specified group generation id is not valid|Static consumer fenced)"
    ),
    "leaving": re.compile(r"leave \(in state"),
}
"""Event -> the line that tells it; the first that fits counts."""
POLL_SECONDS = 0.005
"""Seconds between two looks at the log."""


class LibrdkafkaLog:
    """stderr of this process, a file, read as it grows: nothing of it is lost when librdkafka aborts.

    Whoever wants to know what was logged by now says `drain`.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        if not stat.S_ISREG(os.fstat(2).st_mode):  # started by hand
            with tempfile.TemporaryFile() as file:
                os.dup2(file.fileno(), 2)
        self._at = os.fstat(2).st_size
        self._lock = threading.Lock()
        self._rest = b""
        threading.Thread(target=self._follow, daemon=True).start()

    def _follow(self) -> None:
        while True:
            self.drain()
            time.sleep(POLL_SECONDS)

    def drain(self) -> None:
        """Read all that was written so far."""
        with self._lock:
            while data := os.pread(2, 2**16, self._at):
                self._at += len(data)
                *lines, self._rest = (self._rest + data).split(b"\n")
                for line in lines:
                    self.line(line.decode("utf-8", "replace"))

    def line(self, line: str) -> None:
        """Read what a line says about the membership."""
        if self._recorder.config.get("group.protocol") == "consumer":
            return
        if found := JOINED.search(line):
            self._recorder.joined(int(found[1]), found[2])
        elif event := next((event for event, pattern in EVENTS.items() if pattern.search(line)), None):
            self._recorder.write(event)


class Confluent(Client):
    """One ``confluent_kafka.Consumer``."""

    def __init__(self, recorder: Recorder) -> None:
        import confluent_kafka

        self._recorder, self._log = recorder, LibrdkafkaLog(recorder)
        refresh = recorder.config.get("metadata.max.age.ms")
        self.consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": recorder.settings["bootstrap"],
                "group.id": recorder.settings["group"],
                "client.id": recorder.settings["consumer"],
                "debug": "cgrp",
                # Brokers go away on purpose; the default waits up to 10 s.
                "reconnect.backoff.max.ms": 500,
                **({"topic.metadata.refresh.interval.ms": refresh} if refresh else {}),
                **recorder.config,
            }
        )

    def subscribe(self, topics: list[str]) -> None:
        self.consumer.subscribe(
            topics,
            on_assign=self._callback("assigned"),
            on_revoke=self._callback("revoked"),
            on_lost=self._callback("lost"),
        )

    def _callback(self, event: str) -> Any:
        def callback(consumer: Any, partitions: list[Any]) -> None:
            self._log.drain()
            self._recorder.callback(event, partitions)

        return callback

    def poll(self, seconds: float) -> Ranges:
        ranges: Ranges = {}
        for message in self.consumer.consume(100, seconds):
            if message.error():
                self._recorder.write("error", detail=str(message.error()))
            elif (offset := message.offset()) is not None:
                extend(ranges, f"{message.topic()}-{message.partition()}", offset)
        return ranges

    def commit(self) -> None:
        self.consumer.commit(asynchronous=True)

    def close(self) -> None:
        self.consumer.close()
        self._log.drain()


def main() -> None:
    """The program."""
    import confluent_kafka

    librdkafka = confluent_kafka.libversion()[0]
    serve(Confluent, f"confluent-kafka {confluent_kafka.__version__}, librdkafka {librdkafka}")


if __name__ == "__main__":
    main()
