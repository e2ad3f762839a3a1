"""Prints what librdkafka really writes: the JoinGroup metadata and SyncGroup assignments of its consumers.

Run as a script, in a process of its own. One JSON object per line: {"api", "strategy", "bytes" (hex)}.

    consumer  ->  tap (this process, loopback)  ->  librdkafka's mock cluster (this process, loopback)

The mock cluster advertises the tap's port, so every request passes here. The process ends with
``os._exit``: closing a consumer whose rejoin is still open takes seconds, and nothing is worth them.
"""

import ctypes
import json
import os
import socket
import struct
import sys
import threading
from pathlib import Path

import confluent_kafka

JOIN_GROUP, SYNC_GROUP = 11, 14
TOPICS = {"u": 2, "t": 3}
SECONDS = 20  # a limit, the run takes less than one


def mock_cluster(tap_port: int) -> tuple[str, int]:
    """Start a one-broker mock cluster that advertises the tap; its own address."""
    folder = Path(confluent_kafka.__file__).parent.with_name("confluent_kafka.libs")
    library = ctypes.CDLL(str(next(folder.glob("librdkafka-*"))))
    pointer, number, text = ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p

    def call(name, result, arguments, *values):
        function = getattr(library, f"rd_kafka_{name}")
        function.restype, function.argtypes = result, arguments
        return function(*values)

    new = [number, pointer, text, ctypes.c_size_t]
    client = call("new", pointer, new, 0, None, ctypes.create_string_buffer(512), 512)
    cluster = call("mock_cluster_new", pointer, [pointer, number], client, 1)
    for topic, count in TOPICS.items():
        create = [pointer, text, number, number]
        call("mock_topic_create", number, create, cluster, topic.encode(), count, 1)
    call("mock_group_initial_rebalance_delay_ms", None, [pointer, number], cluster, 10)
    advertise = [pointer, number, text, number]
    call("mock_broker_set_host_port", number, advertise, cluster, 1, b"127.0.0.1", tap_port)
    host, port = call("mock_cluster_bootstraps", text, [pointer], cluster).decode().split(":")
    return host, int(port)


class Frame:
    """A cursor over one request (non-flexible versions only)."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def number(self, form: str) -> int:
        value: int
        (value,) = struct.unpack_from(form, self.data, self.at)
        self.at += struct.calcsize(form)
        return value

    def field(self, form: str) -> bytes:
        size = max(self.number(form), 0)
        self.at += size
        return self.data[self.at - size : self.at]


def show(frame: Frame, strategies: dict[bytes, str]) -> None:
    api, version = frame.number(">h"), frame.number(">h")
    frame.number(">i")  # correlation id
    frame.field(">h")  # client id
    if api not in (JOIN_GROUP, SYNC_GROUP):
        return
    group = frame.field(">h")
    if api == JOIN_GROUP:
        assert 1 <= version <= 5, version
        frame.at += 8  # session and rebalance timeout
        frame.field(">h")  # member id
        if version >= 5:
            frame.field(">h")  # group instance id
        frame.field(">h")  # protocol type
    else:
        assert version <= 3, version
        frame.at += 4  # generation id
        frame.field(">h")  # member id
        if version >= 3:
            frame.field(">h")  # group instance id
    for _ in range(frame.number(">i")):
        name, data = frame.field(">h").decode(), frame.field(">i")
        strategy = name if api == JOIN_GROUP else strategies[group]
        line = {"api": api, "strategy": strategy, "bytes": data.hex()}
        sys.stdout.write(json.dumps(line) + "\n")


def pump(source: socket.socket, sink: socket.socket, strategies: dict[bytes, str] | None) -> None:
    pending = b""
    while data := source.recv(65536):
        if strategies is not None:
            pending += data
            while len(pending) >= 4 and len(pending) >= (end := 4 + struct.unpack(">i", pending[:4])[0]):
                show(Frame(pending[4:end]), strategies)
                pending = pending[end:]
        sink.sendall(data)


def main() -> None:
    threading.Timer(SECONDS, os._exit, [3]).start()
    server = socket.create_server(("127.0.0.1", 0))
    port = server.getsockname()[1]
    address = mock_cluster(port)
    # A consumer that lists several eager assignors sends the metadata of each; the mock takes the first.
    strategies = {b"g-eager": "range", b"g-cooperative": "cooperative-sticky"}

    def accept() -> None:
        while True:
            near, _ = server.accept()
            far = socket.create_connection(address)
            threading.Thread(target=pump, args=(near, far, strategies), daemon=True).start()
            threading.Thread(target=pump, args=(far, near, None), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    for group, strategy in (("g-eager", "range,roundrobin"), ("g-cooperative", "cooperative-sticky")):
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": f"127.0.0.1:{port}",
                "group.id": group,
                "partition.assignment.strategy": strategy,
                "client.rack": "r1",
            }
        )
        consumer.subscribe(sorted(TOPICS))
        while len(consumer.assignment()) != sum(TOPICS.values()):
            consumer.poll(0.05)
        if strategy == "cooperative-sticky":  # rejoin with claims, then once more after the revocation
            consumer.subscribe(["t"])
            while len(consumer.assignment()) != TOPICS["t"]:
                consumer.poll(0.05)
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
