"""``python consumer.py ADDRESS HABIT``: a consumer without a library, which assigns everything to the first.

HABIT: ``fetches`` the metadata of a group that it leads; ``remembers`` what it fetched before it was the
leader; ``keeps`` partitions that metadata does not have any more; ``crashes`` where the second member is
called B; ``waits`` there; ``again``: joins again there, without an answer; ``all``: subscribes to whatever
there is, and assigns that; ``short``: ends its subscription of version 1 where owned partitions should
follow.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import time

from rebalance_verifier.live.clients.leaders.broker import _SCHEMAS
from rebalance_verifier.live.clients.proxy import wire as frames
from rebalance_verifier.model import wire
from rebalance_verifier.model.values import Partitions, Subscription, TopicPartition
from rebalance_verifier.model.written import read_metadata

HABIT = sys.argv[2]
VERSIONS = {"Metadata": 8, "JoinGroup": 5, "SyncGroup": 3, "Heartbeat": 3, "OffsetFetch": 5}


class Connection:
    """Requests and their answers, one after the other."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._number = 0

    def ask(self, api: str, **fields: object) -> frames.Fields:
        self._number += 1
        version = VERSIONS.get(api, 0)
        # None of these versions is flexible.
        body = frames._written(_SCHEMAS[api, "request"], version, fields)
        head = (
            frames.KEYS[api].to_bytes(2, "big") + version.to_bytes(2, "big") + self._number.to_bytes(4, "big")
        )
        self._socket.sendall(frames.framed(head + (1).to_bytes(2, "big") + b"c" + body))
        size = frames.size(self._take(4))
        found = frames._read(_SCHEMAS[api, "response"], api, "response", version, self._take(size), 4)
        assert found is not None
        return found

    def _take(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            data += self._socket.recv(count - len(data)) or sys.exit(3)
        return data


def counts(connection: Connection) -> dict[str, int]:
    topics = connection.ask("Metadata", topics=None)["topics"]
    return {topic["name"]: len(topic["partitions"]) for topic in topics if not topic["error_code"]}


def main() -> None:
    _, _, port = sys.argv[1].partition(":")
    nodes = Connection(int(port))
    found = nodes.ask("FindCoordinator", key="g")
    coordinator = Connection(found["port"])
    known = counts(nodes)
    member, generation = "", -1
    owned: Partitions = ()
    while True:
        subscription = Subscription(
            topics=tuple(known) if HABIT == "all" else ("topic-of-the-leader",),
            user_data=wire.encode_sticky_user_data(owned, generation) if owned else b"",
            owned_partitions=owned,
            generation_id=generation,
        )
        metadata = wire.encode_subscription(subscription)
        if HABIT == "short":
            metadata = wire.encode_subscription(subscription, 1)[:-4]
        joined = coordinator.ask(
            "JoinGroup",
            group_id="g",
            member_id=member,
            protocol_type="consumer",
            protocols=[{"name": "mine", "metadata": metadata}],
        )
        member, generation = joined["member_id"], joined["generation_id"]
        second = joined["members"][1]["member_id"] if len(joined["members"]) > 1 else ""
        if second == "B" and HABIT == "crashes":
            os.kill(os.getpid(), signal.SIGSEGV)
        if second == "B" and HABIT == "waits":
            time.sleep(600)
        if second == "B" and HABIT == "again":
            continue
        if HABIT != "remembers":
            before, known = known, counts(nodes)
            if HABIT == "keeps":
                known = {name: max(count, before.get(name, 0)) for name, count in known.items()}
        wanted = (
            set(known)
            if HABIT == "all"
            else {t for one in joined["members"] for t in read_metadata(one["metadata"]).subscription.topics}
        )
        every = [TopicPartition(t, i) for t in sorted(wanted) for i in range(known.get(t, 0))]
        first = joined["members"][0]["member_id"]
        synced = coordinator.ask(
            "SyncGroup",
            group_id="g",
            member_id=member,
            generation_id=generation,
            assignments=[{"member_id": first, "assignment": wire.encode_assignment(every)}],
        )
        if synced["error_code"]:
            continue
        owned = wire.decode_assignment(synced["assignment"]).partitions
        coordinator.ask("OffsetFetch", group_id="g", topics=[])
        while not coordinator.ask("Heartbeat", group_id="g", member_id=member)["error_code"]:
            time.sleep(0.01)


if __name__ == "__main__":
    main()
