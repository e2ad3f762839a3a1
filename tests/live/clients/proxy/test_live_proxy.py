"""The proxy between clients and brokers: frames, what rules do to them, and real clients behind it."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from rebalance_verifier.live.clients.proxy.frames import lines
from rebalance_verifier.live.clients.proxy.proxy import Proxy, ProxyTimeout
from rebalance_verifier.live.clients.proxy.rules import ProxyRule
from rebalance_verifier.live.clients.proxy.wire import (
    APIS,
    CODES,
    KEYS,
    MAX_FRAME,
    SCHEMAS,
    Fields,
    FrameError,
    correlation,
    error_of,
    framed,
    header,
    read_fields,
    read_response,
    refusal,
    size,
    write_request,
    write_response,
)

NEWEST = {
    "JoinGroup": 9,
    "SyncGroup": 5,
    "Heartbeat": 4,
    "LeaveGroup": 5,
    "OffsetCommit": 10,
    "ApiVersions": 2,
    "ConsumerGroupHeartbeat": 1,
}

COMMIT = [
    {
        "name": "t",
        "topic_id": b"0123456789abcdef",
        "partitions": [
            {
                "partition_index": 1,
                "committed_offset": 2**40,
                "committed_leader_epoch": 3,
                "commit_timestamp": 4,
                "committed_metadata": None,
                "error_code": 22,
            }
        ],
    }
]
VALUES: dict[str, Any] = {
    "group_id": "g",
    "session_timeout_ms": 6000,
    "rebalance_timeout_ms": 7000,
    "member_id": "m-1",
    "group_instance_id": None,
    "protocol_type": "consumer",
    "protocols": [{"name": "range", "metadata": b"\x00\x01"}, {"name": "sticky", "metadata": b""}],
    "reason": "ü" * 100,
    "generation_id": 5,
    "assignments": [{"member_id": "m-1", "assignment": b"x" * 200}],
    "assignment": b"x" * 200,
    "throttle_time_ms": 1,
    "error_code": 27,
    "protocol_name": "range",
    "leader": "m-2",
    "skip_assignment": True,
    "members": [
        {"member_id": "m-1", "group_instance_id": "i", "metadata": b"y", "reason": None, "error_code": 0}
    ],
    "retention_time_ms": -1,
    "topics": COMMIT,
    "api_keys": [{"api_key": 18, "min_version": 0, "max_version": 2}],
}

HELD = [{"topic_id": bytes(range(16)), "partitions": [0, 2]}]
SERVED: dict[str, Any] = {
    **VALUES,
    "member_epoch": -2,
    "rack_id": None,
    "subscribed_topic_names": ["t", "ü"],
    "subscribed_topic_regex": None,
    "server_assignor": "uniform",
    "topic_partitions": HELD,
    "error_message": "why",
    "heartbeat_interval_ms": 500,
    "assignment": {"topic_partitions": HELD},
}
NOTHING = dict.fromkeys(("subscribed_topic_names", "server_assignor", "topic_partitions", "assignment"))
"""In a heartbeat of the consumer protocol, where nothing is no empty list."""


# -- the wire --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("api", "kind"), SCHEMAS)
def test_every_version_reads_back(api, kind):
    values = SERVED if api == "ConsumerGroupHeartbeat" else VALUES
    for version in range(NEWEST[api] + 1):
        schema = SCHEMAS[api, kind]
        names = [f.name for f in schema.fields if f.first <= version <= f.last]
        if kind == "request":
            payload = write_request(api, version, 7, "someone", values)
            assert header(payload)[:4] == (api, version, 7, "someone")
            fields = read_fields(payload)
        else:
            payload = write_response(api, version, 7, values)
            assert correlation(payload) == 7
            fields = read_response(api, version, payload)
        assert fields is not None
        assert list(fields) == names, version
        assert fields == {name: _kept(fields[name], values[name]) for name in names}, version


def test_nothing_is_no_empty_list_in_a_heartbeat_of_the_consumer_protocol():
    api = "ConsumerGroupHeartbeat"
    empty: dict[str, Any] = {"subscribed_topic_names": [], "topic_partitions": []}
    for values in (NOTHING, empty):
        fields = read_fields(write_request(api, 1, 7, "someone", {**SERVED, **values}))
        assert fields is not None
        assert {name: fields[name] for name in values if name in fields} == {
            name: value for name, value in values.items() if name in fields
        }
    assignments: tuple[Any, ...] = (None, {"topic_partitions": []}, {"topic_partitions": HELD})
    for assignment in assignments:
        fields = read_response(api, 1, write_response(api, 1, 7, {**SERVED, "assignment": assignment}))
        assert fields is not None
        assert fields["assignment"] == assignment
    # As on the wire: a struct begins with 1, or is the byte -1.
    assert write_response(api, 0, 7, {**SERVED, "assignment": None}).endswith(b"\xff\x00")


def _kept(read: Any, value: Any) -> Any:
    """``value`` without the fields that this version does not have."""
    if isinstance(value, list) and all(isinstance(one, dict) for one in value):
        return [
            {key: _kept(one[key], other[key]) for key in one} for one, other in zip(read, value, strict=True)
        ]
    return value


@pytest.mark.parametrize(
    ("api", "version"), [("JoinGroup", 5), ("JoinGroup", 7), ("SyncGroup", 2), ("SyncGroup", 3),
                         ("SyncGroup", 5),
                         ("Heartbeat", 3), ("LeaveGroup", 1), ("OffsetCommit", 2), ("OffsetCommit", 7)]
)  # fmt: skip
def test_requests_are_those_of_kafka_python(api, version):
    """Written by another hand: kafka-python's own classes read what we write, to the last byte."""
    messages = pytest.importorskip("kafka.protocol.consumer")
    kind = getattr(messages, f"{api}Request")
    payload = write_request(api, version, 3, "me", VALUES)
    read = kind.decode(payload, version=version, header=True)
    assert read.encode(version=version, header=True) == payload
    assert read.group_id == "g"


def test_cut_off_messages_are_named():
    payload = write_request("JoinGroup", 5, 1, "c", VALUES)
    for end in range(header(payload).at, len(payload)):
        with pytest.raises(FrameError, match="JoinGroup request version 5: "):
            read_fields(payload[:end])


def test_what_is_no_frame_is_named():
    with pytest.raises(FrameError, match="not Kafka's protocol"):
        size(b"HTTP")
    with pytest.raises(FrameError):
        size((MAX_FRAME + 1).to_bytes(4, "big"))
    assert size(framed(b"abc")[:4]) == 3


def test_refusals_say_their_error():
    for api in ("JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "OffsetCommit"):
        request = read_fields(write_request(api, 2, 1, None, VALUES))
        assert request is not None
        fields = refusal(api, "REBALANCE_IN_PROGRESS", request)
        answer = read_response(api, 2, write_response(api, 2, 1, fields))
        assert error_of(answer) == "REBALANCE_IN_PROGRESS"
    assert error_of({"error_code": 0}) == "NONE"
    assert error_of(None) == ""


def test_a_version_of_api_versions_that_is_too_new_is_refused_in_version_0():
    payload = write_response("ApiVersions", 4, 5, refusal("ApiVersions", "UNSUPPORTED_VERSION", {}))
    fields = read_response("ApiVersions", 0, payload)
    assert fields == {"error_code": 35, "api_keys": [{"api_key": 18, "min_version": 0, "max_version": 2}]}


def test_a_refused_leave_names_each_member():
    request = read_fields(write_request("LeaveGroup", 3, 1, None, VALUES))
    assert request is not None
    answer = refusal("LeaveGroup", "UNKNOWN_MEMBER_ID", request)
    assert [(one["member_id"], one["error_code"]) for one in answer["members"]] == [("m-1", 25)]


def test_names_are_one_to_one():
    assert len(KEYS) == len(APIS)
    assert CODES["ILLEGAL_GENERATION"] == 22


# -- rules -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"api": "Fetch"}, "Fetch cannot be answered; known: ApiVersions, ConsumerGroupHeartbeat, Heartbeat"),
        ({"api": "JoinGroup", "error": "?"}, r"unknown error '\?'"),
    ],
)
def test_rules_that_mean_nothing_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        ProxyRule(**arguments)


class Broker:
    """Answers each request with what ``answer`` says, and counts what it got."""

    def __init__(self) -> None:
        self.got: list[str] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            while (payload := receive(connection)) is not None:
                head = header(payload)
                fields = read_fields(payload)
                self.got.append(f"{head.client} {head.api} {head.correlation}")
                error = CODES["UNKNOWN_MEMBER_ID"] if fields and fields["member_id"] == "?" else 0
                answer = {"error_code": error, "generation_id": head.correlation}
                connection.sendall(framed(write_response(head.api, head.version, head.correlation, answer)))

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # closed alone it would go on accepting
        self._listener.close()


class Client:
    """Plain sockets that speak as Kafka's clients do."""

    def __init__(self, proxy: Proxy, name: str) -> None:
        self.name, self._count = name, 0
        self.socket = socket.create_connection(proxy.address, timeout=60)

    def send(self, api: str, **fields: Any) -> int:
        self._count += 1
        self.socket.sendall(framed(write_request(api, 2, self._count, self.name, fields)))
        return self._count

    def receive(self, api: str = "Heartbeat") -> tuple[int, Fields] | None:
        """Correlation id and fields; None where the connection has ended."""
        payload = receive(self.socket)
        if payload is None:
            return None
        fields = read_response(api, 2, payload)
        assert fields is not None
        return correlation(payload), fields


def receive(connection: socket.socket) -> bytes | None:
    data = b""
    wanted = 4
    while len(data) < wanted:
        try:
            more = connection.recv(wanted - len(data))
        except OSError:
            return None
        if not more:
            return None
        data += more
        if wanted == 4 and len(data) == 4:
            wanted, data = size(data), b""
            if wanted == 0:
                return b""
    return data


@pytest.fixture
def broker() -> Iterator[Broker]:
    one = Broker()
    yield one
    one.close()


@pytest.fixture
def proxy(broker: Broker) -> Iterator[Proxy]:
    with Proxy() as one:
        one.to("127.0.0.1", broker.port)
        yield one


Connect = Callable[[str], Client]


@pytest.fixture
def connect(proxy: Proxy) -> Iterator[Connect]:
    clients: list[Client] = []

    def make(name: str) -> Client:
        clients.append(Client(proxy, name))
        return clients[-1]

    yield make
    for client in clients:
        client.socket.close()


def test_without_rules_all_passes_and_is_logged(proxy, broker, connect):
    a = connect("a")
    a.send("Heartbeat", member_id="?")
    assert a.receive() == (1, {"throttle_time_ms": 0, "error_code": 25})
    proxy.await_frame(lambda f: f.direction == "response", "an answer")
    request, answer = proxy.frames
    assert (request.api, request.client, request.fate, request.error) == ("Heartbeat", "a", "passed", "")
    assert (answer.api, answer.client, answer.error) == ("Heartbeat", "a", "UNKNOWN_MEMBER_ID")
    assert [json.loads(line)["direction"] for line in lines(proxy.frames)] == ["request", "response"]
    assert broker.got == ["a Heartbeat 1"]


def test_an_hour_of_heartbeats_is_counted_and_not_kept(proxy, connect, monkeypatch):
    monkeypatch.setattr("rebalance_verifier.live.clients.proxy.frames.KEPT", 10)
    polite = proxy.add(ProxyRule(api="Heartbeat", times=None, error="NONE"))
    kept = proxy.add(ProxyRule(api="SyncGroup", times=None))
    a = connect("a")
    for _ in range(50):
        a.send("SyncGroup")
        a.send("Heartbeat")
    last = polite.await_match(50)
    assert last.number == max(frame.number for frame in polite.matched)
    assert proxy.count("Heartbeat", "a") == polite.count == 50
    assert max(len(polite.matched), len(proxy.frames)) < 20
    assert proxy.frames[-1].number == proxy.total - 1
    assert len(kept.matched) == 50  # each is answered some day


def test_an_answer_comes_in_its_turn(proxy, broker, connect):
    taken = proxy.add(ProxyRule(api="JoinGroup"))
    proxy.add(ProxyRule(api="Heartbeat", error="ILLEGAL_GENERATION"))
    a = connect("a")
    a.send("JoinGroup")
    a.send("Heartbeat")
    a.send("SyncGroup")
    proxy.await_frame(lambda f: (f.api, f.direction) == ("SyncGroup", "response"), "the broker's answer")
    proxy.reply(taken.await_match(), {"generation_id": 3})
    assert a.receive("JoinGroup")[0] == 1
    assert a.receive() == (2, {"throttle_time_ms": 0, "error_code": 22})
    assert a.receive("SyncGroup")[0] == 3
    assert broker.got == ["a SyncGroup 3"]


def test_what_is_taken_is_answered_by_whoever_took_it(proxy, broker, connect):
    taken = proxy.add(ProxyRule(api="JoinGroup", times=None))
    a = connect("a")
    a.send("JoinGroup", member_id="m")
    request = taken.await_match()
    assert request.fields["member_id"] == "m"
    assert proxy.reply(request, {"error_code": 0, "generation_id": 9, "member_id": "m"})
    assert a.receive("JoinGroup")[1]["generation_id"] == 9
    a.send("JoinGroup")
    proxy.refuse(taken.await_match(2), "MEMBER_ID_REQUIRED")
    assert a.receive("JoinGroup")[1]["error_code"] == 79
    assert broker.got == []


def test_an_answer_of_ours_that_has_to_wait_says_so(proxy, connect):
    taken = [proxy.add(ProxyRule(api=api)) for api in ("SyncGroup", "Heartbeat")]
    a = connect("a")
    a.send("SyncGroup")
    a.send("Heartbeat")
    first, second = (one.await_match() for one in taken)
    assert not proxy.refuse(second, "ILLEGAL_GENERATION")
    assert proxy.refuse(first, "REBALANCE_IN_PROGRESS")
    assert [a.receive("SyncGroup")[0], a.receive()[0]] == [1, 2]
    a.socket.close()


def test_rules_choose_by_version(proxy, broker, connect):
    proxy.add(ProxyRule(api="Heartbeat", error="FENCED_INSTANCE_ID", since=3))
    a = connect("a")
    a.send("Heartbeat")
    assert a.receive()[1]["error_code"] == 0
    a.socket.sendall(framed(write_request("Heartbeat", 3, 2, "a", {})))
    assert a.receive()[1]["error_code"] == 82
    assert broker.got == ["a Heartbeat 1"]


def test_clients_are_cut_off_by_name(proxy, connect):
    a, b = connect("a"), connect("b")
    for one in (a, b):
        one.send("Heartbeat")
        assert one.receive() is not None
    assert proxy.disconnect("a") == 1
    assert a.receive() is None
    b.send("Heartbeat")
    assert b.receive() is not None


def test_waiting_in_vain_says_for_what(proxy, connect):
    placed = proxy.add(ProxyRule(api="JoinGroup", client="b"))
    a = connect("a")
    a.send("Heartbeat")
    assert a.receive() is not None
    with pytest.raises(ProxyTimeout, match=r"b's JoinGroup request number 1 did not come .* a's Heartbeat"):
        placed.await_match(seconds=0.05)


def test_what_is_not_kafka_ends_that_connection_only(proxy, connect):
    stranger = connect("-")
    stranger.socket.sendall(b"GET / HTTP/1.1\r\n\r\n")
    assert stranger.socket.recv(1) == b""
    a = connect("a")
    a.send("Heartbeat")
    assert a.receive() is not None
    assert "not Kafka's protocol" in proxy.failures[0]


def test_before_it_knows_the_broker_it_turns_clients_away():
    with Proxy() as proxy:
        client = Client(proxy, "a")
        assert client.socket.recv(1) == b""
        client.socket.close()
