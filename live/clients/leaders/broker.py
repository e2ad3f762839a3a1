"""A broker whose only group has one real member: it answers what a consumer needs to join, and keeps its
JoinGroup and SyncGroup for whoever plays the rest of the group.

Topics are what the question that is open says, so that none has to be created: a partition's replicas are on
nodes of its racks. All nodes are one port here, but for the coordinator, which has one of its own: an answer
to JoinGroup may wait, and clients want those of one connection in order.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from rebalance_verifier.base.tables import table
from rebalance_verifier.live.clients.proxy.wire import (
    KEYS,
    SCHEMAS,
    Fields,
    FrameError,
    Header,
    Schemas,
    framed,
    header,
    read_message,
    refusal,
    schemas,
    size,
    write_response,
)
from rebalance_verifier.model.values import Racks

HOST = "127.0.0.1"
Topics = Mapping[str, Sequence[Racks]]
"""Topic -> racks of each partition's replicas."""

_TABLE = table(__file__)
_SCHEMAS: Schemas = {**SCHEMAS, **schemas(_TABLE["schemas"])}
_OFFERED = [
    {"api_key": KEYS[api], "min_version": first, "max_version": last}
    for api, (first, last) in (_TABLE["answered"] | _TABLE["offered"]).items()
]
_COORDINATOR, _NODE = 0, 1
"""Node ids: of the coordinator, and of the broker without a rack; those of racks follow."""
_UNKNOWN_TOPIC = 3
_EARLIEST = -2
"""The timestamp of ListOffsets that asks for the beginning."""
_CHUNK = 2**16
BEATS, FETCHES = 8, 4
"""Heartbeats after which a client that fetches nothing has what it was assigned, and fetches after which one
has that keeps what it had: the first ones may be of before."""
POLL_SECONDS = 0.05
"""Seconds after which whoever waits is asked again though nothing arrived."""


class Network:
    """The sockets of all brokers, and other files: whoever waits serves them all, in one thread."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()

    def add(self, file: Any, readable: Callable[[], None]) -> None:
        """Call ``readable`` whenever there is something to read."""
        self._selector.register(file, selectors.EVENT_READ, readable)

    def remove(self, file: Any) -> None:
        """Look at it no more."""
        self._selector.unregister(file)

    def serve(self, until: Callable[[], object], seconds: float) -> bool:
        """Serve until something is true, for so many seconds at most; whether it is."""
        deadline = time.monotonic() + seconds
        while not until():
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            for key, _ in self._selector.select(min(left, POLL_SECONDS)):
                key.data()
        return True


@dataclass(frozen=True, slots=True, eq=False)
class ClientRequest:
    """A request of the client that was read."""

    connection: _Connection
    head: Header
    fields: Fields


class LeaderBroker:
    """The broker of one client. ``join``, ``sync``: what waits for an answer, None where nothing does.

    ``topics`` is what metadata says; while ``holding`` it is not answered. ``calls``: requests for metadata
    so far. ``heartbeat_error``: once the client has begun to read what it was assigned, its heartbeats are
    answered with this error. ``failure``: what of a client's messages could not be read. ``to_all``: the
    client subscribes to all that there is, and needs no topic of its own beside those of a question, which
    leaders take for one that nobody subscribes to. ``offsets``: of a partition what is committed, -1 for
    nothing, and its end; all begin at 0.
    """

    def __init__(
        self,
        network: Network,
        own_topic: str,
        offsets: Callable[[str, int], tuple[int, int]] = lambda topic, partition: (0, 0),
    ) -> None:
        self._network, self._own_topic, self._offsets = network, own_topic, offsets
        self.topics: Topics = {}
        self.holding = self.to_all = False
        self.heartbeat_error = ""
        self._seen = Counter[str]()
        self.calls = 0
        self.failure = ""
        self._held: list[ClientRequest] = []
        self._join: ClientRequest | None = None
        self._sync: ClientRequest | None = None
        self._sent: dict[str, Any] = {}
        self._processed: dict[str, Any] = {}
        self._known: dict[str, Any] = {}
        self._connections: set[_Connection] = set()
        self._listeners = [socket.create_server((HOST, 0)) for _ in range(2)]
        for listener in self._listeners:
            listener.setblocking(False)
            network.add(listener, partial(self._accept, listener))

    @property
    def bootstrap(self) -> str:
        """``host:port`` for the client."""
        return f"{HOST}:{self._ports[0]}"

    @property
    def _ports(self) -> list[int]:
        return [listener.getsockname()[1] for listener in self._listeners]

    @property
    def join(self) -> ClientRequest | None:
        """The JoinGroup that waits, on a connection that is open."""
        return self._join if self._join and self._join.connection in self._connections else None

    @property
    def sync(self) -> ClientRequest | None:
        """The SyncGroup that waits, on a connection that is open."""
        return self._sync if self._sync and self._sync.connection in self._connections else None

    def close(self) -> None:
        """Close everything."""
        for connection in [*self._connections]:
            self.drop(connection)
        for listener in self._listeners:
            self._network.remove(listener)
            listener.close()

    # --- what the group says --------------------------------------------------------------------------

    def answer_join(self, fields: Fields) -> None:
        """Answer the JoinGroup that waits; from now on `stale` counts what is fetched."""
        assert self.join
        request, self._join = self.join, None
        self._known = dict(self._processed)
        request.connection.answer(request, {"protocol_type": "consumer", **fields})

    def answer_sync(self, fields: Fields) -> None:
        """Answer the SyncGroup that waits."""
        assert self.sync
        self._seen.clear()
        request, self._sync = self.sync, None
        request.connection.answer(request, {"protocol_type": "consumer", **fields})

    def refuse_sync(self, error: str) -> None:
        """Answer the SyncGroup that waits with an error by name."""
        self.answer_sync(refusal("SyncGroup", error, {}))

    @property
    def _took_over(self) -> bool:
        """Check whether the client has what it was assigned last. It asks for offsets where any of it is new;
        librdkafka, where nothing is, fetches nothing either."""
        asks = self._seen["OffsetFetch"] or self._seen["ListOffsets"]
        return bool(asks) or self._seen["Fetch"] >= FETCHES or self._seen["Heartbeat"] >= BEATS

    @property
    def held(self) -> bool:
        """Check whether a request for metadata waits that could be answered."""
        return any(request.connection.first(request) for request in self._held)

    def release(self) -> None:
        """Answer the requests for metadata that are held."""
        held, self._held = self._held, []
        for request in held:
            self._describe(request)

    def stale(self, topics: Sequence[str]) -> list[str]:
        """Return those of which the client may know something else than ``topics`` says: it was not answered
        since it joined, and did not go on after an answer of before."""
        return [topic for topic in topics if self._known.get(topic) != self._shape(topic)]

    def _shape(self, topic: str) -> tuple[Racks, ...] | None:
        found = self.topics.get(topic)
        return None if found is None else tuple(found)

    # --- connections ----------------------------------------------------------------------------------

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):  # it is gone again
            connection = _Connection(self, listener.accept()[0])
            self._connections.add(connection)
            self._network.add(connection.socket, connection.read)

    def drop(self, connection: _Connection) -> None:
        """Close one; what waits on it waits no more."""
        if connection in self._connections:
            self._connections.remove(connection)
            self._network.remove(connection.socket)
            connection.socket.close()

    def handle(self, request: ClientRequest) -> None:
        """Answer a request, or keep it."""
        api, fields, version = request.head.api, request.fields, request.head.version
        answer: Fields
        self._seen[api] += 1
        match api:
            case "JoinGroup":
                self._join = request
                return
            case "SyncGroup":
                self._sync = request
                return
            case "Metadata":
                self.calls += 1
                self._processed = dict(self._sent)  # it asks one after the other
                if self.holding:
                    self._held.append(request)
                else:
                    self._describe(request)
                return
            case "ApiVersions":
                known = version <= _TABLE["answered"][api][1]
                answer = {"api_keys": _OFFERED} if known else refusal(api, "UNSUPPORTED_VERSION", fields)
            case "FindCoordinator":
                found = {"node_id": _COORDINATOR, "host": HOST, "port": self._ports[1]}
                keys = fields.get("coordinator_keys", ())
                answer = {**found, "coordinators": [{"key": key, **found} for key in keys]}
            case "Heartbeat" if self.heartbeat_error and self._took_over:
                answer = refusal(api, self.heartbeat_error, fields)
            case "OffsetFetch":
                groups = [
                    {"group_id": group["group_id"], "topics": self._committed(group["topics"])}
                    for group in fields.get("groups", ())
                ]
                answer = {"topics": self._committed(fields.get("topics")), "groups": groups}
            case "ListOffsets":
                answer = {"topics": self._listed(fields["topics"])}
            case "Fetch":
                answer = {"responses": _each(fields["topics"], "topic", "partition", **_NOTHING)}
            case _:
                answer = refusal(api, "NONE", fields)
        request.connection.answer(request, answer)

    def _committed(self, topics: Sequence[Fields] | None) -> list[Fields]:
        """Return what is committed of these partitions; where none are named, all that is."""
        if topics is None:
            topics = [
                {"name": t, "partition_indexes": [i for i in range(len(p)) if self._offsets(t, i)[0] >= 0]}
                for t, p in self.topics.items()
            ]
        return [
            {
                "name": topic["name"],
                "partitions": [
                    {
                        "partition_index": index,
                        "committed_offset": self._offsets(topic["name"], index)[0],
                        "committed_leader_epoch": -1,
                    }
                    for index in topic["partition_indexes"]
                ],
            }
            for topic in topics
        ]

    def _listed(self, topics: Sequence[Fields]) -> list[Fields]:
        """Return where these partitions begin or end, as a request wants it of each."""
        return [
            {
                "name": topic["name"],
                "partitions": [
                    {
                        "partition_index": (index := one["partition_index"]),
                        "timestamp": -1,
                        "offset": 0
                        if one["timestamp"] == _EARLIEST
                        else self._offsets(topic["name"], index)[1],
                    }
                    for one in topic["partitions"]
                ],
            }
            for topic in topics
        ]

    def _describe(self, request: ClientRequest) -> None:
        """Answer a request for metadata."""
        wanted = request.fields["topics"]
        every = wanted is None or (not wanted and request.head.version == 0)
        names = [one["name"] for one in wanted or () if one["name"] is not None]
        if every:
            own = () if self.to_all and self.topics else (self._own_topic,)
            names = [*dict.fromkeys((*own, *self.topics))]
            self._sent.clear()
        racks = sorted({rack for parts in self.topics.values() for one in parts for rack in one})
        nodes = {rack: number for number, rack in enumerate(racks, _NODE + 1)}
        ports = self._ports
        brokers = [
            {"node_id": number, "host": HOST, "port": ports[number == _COORDINATOR], "rack": rack}
            for rack, number in (*((None, number) for number in (_COORDINATOR, _NODE)), *nodes.items())
        ]
        fields = {
            "brokers": brokers,
            "cluster_id": "rebalance",
            "controller_id": _NODE,
            "topics": [self._topic(name, nodes) for name in names],
        }
        shapes = {name: self._shape(name) for name in names}
        self._sent |= shapes
        self._known = (dict.fromkeys(self._known) if every else self._known) | shapes
        request.connection.answer(request, fields)

    def _topic(self, name: str, nodes: Mapping[str, int]) -> Fields:
        partitions = self.topics.get(name, [()] if name == self._own_topic else None)
        if partitions is None:
            return {"error_code": _UNKNOWN_TOPIC, "name": name}
        described = []
        for index, racks in enumerate(partitions):
            replicas = [nodes[rack] for rack in racks] or [_NODE]
            described.append(
                {
                    "partition_index": index,
                    "leader_id": replicas[0],
                    "replica_nodes": replicas,
                    "isr_nodes": replicas,
                }
            )
        return {"name": name, "partitions": described}


class _Connection:
    """One connection of the client. Answers are sent in the order of the requests."""

    def __init__(self, broker: LeaderBroker, connection: socket.socket) -> None:
        self._broker, self.socket = broker, connection
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._received = bytearray()
        self._waiting: deque[int] = deque()
        self._ready: dict[int, bytes] = {}

    def read(self) -> None:
        """Read what is there, and deal with it."""
        try:
            data = self.socket.recv(_CHUNK)
        except OSError:
            data = b""
        if not data:
            self._broker.drop(self)
            return
        self._received += data
        try:
            while len(self._received) >= 4 and len(self._received) >= 4 + (
                length := size(bytes(self._received[:4]))
            ):
                payload = bytes(self._received[4 : 4 + length])
                del self._received[: 4 + length]
                head = header(payload, _SCHEMAS)
                first, last = _TABLE["answered"].get(head.api, (1, 0))
                known = first <= head.version <= last
                fields = read_message(head, payload, _SCHEMAS) if known else {}
                if not known and head.api != "ApiVersions":
                    raise FrameError(f"a request that was not offered: {head.api} version {head.version}")
                self._waiting.append(head.correlation)
                self._broker.handle(ClientRequest(self, head, fields or {}))
        except FrameError as error:
            self._broker.failure = str(error)
            self._broker.drop(self)

    def first(self, request: ClientRequest) -> bool:
        """Check whether its answer would be sent at once."""
        return bool(self._waiting) and self._waiting[0] == request.head.correlation

    def answer(self, request: ClientRequest, fields: Fields) -> None:
        """Answer a request when its turn comes."""
        head = request.head
        self._ready[head.correlation] = write_response(
            head.api, head.version, head.correlation, fields, _SCHEMAS
        )
        data = bytearray()
        while self._waiting and self._waiting[0] in self._ready:
            data += framed(self._ready.pop(self._waiting.popleft()))
        if data:
            try:
                self.socket.sendall(data)
            except OSError:
                self._broker.drop(self)


_NOTHING = {"high_watermark": 0, "last_stable_offset": 0, "preferred_read_replica": -1}
"""Of a partition that has no records."""


def _each(topics: Sequence[Fields], name: str, index: str, **values: Any) -> list[Fields]:
    """Return the same values for all partitions of a request."""
    return [
        {
            name: topic[name],
            "partitions": [{"partition_index": one[index], **values} for one in topic["partitions"]],
        }
        for topic in topics
    ]
