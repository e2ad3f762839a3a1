"""Messages of a group as lines, and what a member of the consumer protocol notes of them."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from rebalance_verifier.live.clients.consumers.member import Log
from rebalance_verifier.live.clients.proxy.frames import Frame
from rebalance_verifier.live.clients.record.judge import judge
from rebalance_verifier.live.clients.record.messages import GroupMessages, with_epochs
from rebalance_verifier.model.values import Subscription, TopicPartition
from rebalance_verifier.model.wire import encode_assignment, encode_subscription

TOPIC = bytes(range(16))
BEAT = {
    "group_id": "g",
    "member_id": "m",
    "member_epoch": 0,
    "group_instance_id": None,
    "rebalance_timeout_ms": 6000,
    "subscribed_topic_names": ["orders"],
    "topic_partitions": [],
}
ANSWER = {"error_code": 0, "member_id": "m", "member_epoch": 1, "assignment": None}


def held(*numbers: int) -> list[dict[str, object]]:
    return [{"topic_id": TOPIC, "partitions": list(numbers)}]


class Wire:
    """A connection of the client "a" that a proxy sees."""

    def __init__(self) -> None:
        self.log = Log()
        self.log.origin = 0
        self.messages = GroupMessages("g", self.log)
        self.messages.name("orders", base64.urlsafe_b64encode(TOPIC).decode().rstrip("="))
        self.number = 0

    def _heard(self, direction: Any, api: str, fields: Mapping[str, object], fate: str = "passed") -> None:
        frame = Frame(
            number=self.number, at=float(self.number), connection=1, direction=direction, api=api,
            version=1, correlation=self.number, client="a", fields=dict(fields), fate=fate,
        )  # fmt: skip
        self.messages.heard(frame)

    def exchange(
        self, api: str, request: Mapping[str, object], answer: Mapping[str, object], **more: str
    ) -> None:
        self.number += 1
        self._heard("request", api, request)
        self._heard("response", api, answer, **more)

    def beat(self, request: Mapping[str, object], answer: Mapping[str, object], **more: str) -> None:
        self.exchange("ConsumerGroupHeartbeat", {**BEAT, **request}, {**ANSWER, **answer}, **more)

    def events(self) -> list[tuple[str, int | None]]:
        lines = [line for line in self.log.lines if line.get("protocol") == "consumer"]
        return [(line["event"], line.get("generation")) for line in lines]


def test_a_heartbeat_and_its_answer_are_two_lines_of_one_number() -> None:
    wire = Wire()
    wire.beat({"topic_partitions": held(1)}, {"assignment": {"topic_partitions": held(0, 2)}})
    request, answer = (line for line in wire.log.lines if "number" in line)
    assert (request["number"], answer["number"]) == (1, 1)
    assert (request["generation"], request["full"], request["topics"]) == (0, True, ["orders"])
    assert request["partitions"] == ["orders-1"]
    assert (answer["error"], answer["generation"]) == ("NONE", 1)
    assert answer["partitions"] == ["orders-0", "orders-2"]


def test_what_a_heartbeat_leaves_out_its_line_leaves_out() -> None:
    wire = Wire()
    absent = {"rebalance_timeout_ms": -1, "subscribed_topic_names": None, "topic_partitions": None}
    wire.beat({"member_epoch": 3, **absent}, {"member_epoch": 3})
    request, answer = (line for line in wire.log.lines if "number" in line)
    assert not {"topics", "partitions"} & set(request)
    assert not request["full"]
    assert "partitions" not in answer


def test_a_member_is_told_its_epoch_once_for_each() -> None:
    wire = Wire()
    wire.beat({}, {})
    for epoch, answered in ((1, 1), (1, 2), (2, 2)):
        wire.beat({"member_epoch": epoch}, {"member_epoch": answered})
    wire.beat({"member_epoch": -1}, {"member_epoch": -1})
    assert wire.events() == [
        ("joining", None),
        *(("joined", 1), ("synced", 1)),
        *(("synced", 2), ("leaving", None)),
    ]


def test_who_is_fenced_joins_anew_in_the_epoch_that_it_had() -> None:
    wire = Wire()
    wire.beat({}, {})
    wire.beat({"member_epoch": 1}, {"error_code": 110, "member_epoch": 0})
    wire.beat({}, {})
    assert [event for event, _ in wire.events()] == [
        *("joining", "joined", "synced", "reset"),
        *("joining", "joined", "synced"),
    ]


def test_an_answer_that_reaches_nobody_tells_nothing() -> None:
    wire = Wire()
    wire.beat({}, {}, fate="dropped")
    assert wire.events() == [("joining", None)]


def test_other_groups_and_other_messages_are_left_out() -> None:
    wire = Wire()
    wire.beat({"group_id": "other"}, {})
    wire.exchange("Fetch", {"group_id": "g"}, {})
    assert wire.log.lines == []


def test_messages_of_classic_members_are_read_too() -> None:
    wire = Wire()
    parts = (TopicPartition("orders", 1),)
    subscription = encode_subscription(
        Subscription(topics=("orders",), owned_partitions=parts, generation_id=4)
    )
    joins = {"group_id": "g", "member_id": "m", "protocols": [{"name": "range", "metadata": subscription}]}
    wire.exchange("JoinGroup", joins, {"error_code": 0, "generation_id": 5, "leader": "m", "member_id": "m"})
    plan = [{"member_id": "m", "assignment": encode_assignment(parts, b"\x00\x05")}]
    syncs = {"group_id": "g", "member_id": "m", "generation_id": 5, "assignments": plan}
    wire.exchange("SyncGroup", syncs, {"error_code": 0, "assignment": b""})
    join, joined, sync, synced = wire.log.lines
    assert (join["topics"], join["partitions"], join["generation"]) == (["orders"], ["orders-1"], 4)
    assert (join["assignors"], joined["generation"], joined["leader"]) == (["range"], 5, "m")
    assert (sync["plan"], synced["partitions"]) == ({"m": ["orders-1"]}, [])
    assert sync["user_data"] == {"m": "0005"}
    assert wire.events() == []


def line(tick: int, event: str, consumer: str = "a", **more: object) -> dict[str, object]:
    at = f"2026-11-21T00:00:{tick:02}.000000Z"
    return {"at": at, "event": event, "group": "g", "consumer": consumer, **more}


def at_epoch(tick: int, epoch: int, consumer: str = "a") -> dict[str, object]:
    return line(tick, "synced", consumer, generation=epoch, member=f"m-{consumer}", protocol="consumer")


def test_callbacks_are_of_the_epoch_that_their_consumer_was_told_last() -> None:
    lines = with_epochs(
        [
            line(0, "started"),
            line(1, "assigned", partitions=[]),
            at_epoch(2, 1),
            line(3, "assigned", partitions=["t-0"]),
            line(4, "closed"),
            line(5, "started"),
            line(6, "assigned", partitions=["t-0"]),
        ]
    )
    assert [one.get("generation") for one in lines if one["event"] == "assigned"] == [None, 1, None]
    assert lines[3]["member"] == "m-a"


def checks(*lines: dict[str, object]) -> list[str]:
    return [one.check for one in judge(with_epochs(sorted(lines, key=lambda one: str(one["at"]))), [])]


OWNED_BY_BOTH = (
    *(line(0, "started", who) for who in "ab"),
    at_epoch(1, 1),
    line(2, "assigned", partitions=["t-0"]),
    at_epoch(3, 2, "b"),
    line(4, "assigned", "b", partitions=["t-0"]),
)


def test_a_member_that_is_not_told_each_epoch_is_a_member_all_the_same() -> None:
    assert checks(*OWNED_BY_BOTH, at_epoch(5, 3), line(6, "revoked", partitions=["t-0"])) == ["owned-twice"]


def test_a_member_that_was_removed_is_a_zombie() -> None:
    assert checks(*OWNED_BY_BOTH, line(6, "lost", partitions=["t-0"])) == ["owned-by-zombie"]


def test_two_that_read_a_partition_in_one_epoch_are_found() -> None:
    reads = [at_epoch(0, 4), at_epoch(0, 4, "b")]
    for tick, who, first in ((1, "a", 0), (2, "b", 5), (3, "b", 9)):
        reads.append(line(tick, "polled", who, ranges={"t-0": [first, first + 4]}))
    assert checks(*reads) == ["read-twice"]
    reads[1] = at_epoch(0, 5, "b")
    assert checks(*reads) == []
