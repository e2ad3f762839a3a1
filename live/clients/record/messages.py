"""What members and their coordinator say to each other, of what proxies see: lines of ``messages.jsonl``.

A request has the next ``number``, its answer the same. What the answers tell a member of the consumer
protocol is an event besides, as its client would note it: that it joins, its epoch where a classic member
has a generation, that its membership is over, that it leaves.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Any

from rebalance_verifier.base.processes.program import JsonLine
from rebalance_verifier.live.clients.consumers.clients.recorder import stamp
from rebalance_verifier.live.clients.consumers.member import HOST, Log
from rebalance_verifier.live.clients.proxy.frames import Frame
from rebalance_verifier.live.clients.proxy.wire import Fields
from rebalance_verifier.model.wire import WireError, decode_assignment, decode_subscription

FILE = "messages.jsonl"
REQUEST, ANSWER = "request", "answer"
MESSAGES = (REQUEST, ANSWER)
"""Events of ``messages.jsonl``."""

APIS = ("ConsumerGroupHeartbeat", "JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "OffsetCommit")
PROTOCOL = "consumer"

OVER = ("FENCED_MEMBER_EPOCH", "UNKNOWN_MEMBER_ID")
"""Errors by which a membership of the consumer protocol ends."""


class GroupMessages:
    """The messages of one group, as lines of ``log``."""

    def __init__(self, group: str, log: Log) -> None:
        self.group, self.log = group, log
        self.topics: dict[bytes, str] = {}
        """Topic id -> name."""
        self.spelled: dict[str, str] = {}
        """The same, with ids as Kafka writes them."""
        self._number = 0
        self._open: dict[tuple[int, int, int], tuple[int, str]] = {}
        """Connection and correlation id of a request -> its number, and its member id."""
        self._epochs: dict[str, int] = {}
        """Client -> the epoch that it was told last."""

    def name(self, topic: str, identity: str) -> None:
        """Learn the id of a topic, as Kafka writes it."""
        if identity:
            self.topics[base64.urlsafe_b64decode(identity + "==")] = topic
            self.spelled[identity] = topic

    def heard(self, frame: Frame) -> None:
        """One more message that a proxy has seen."""
        if frame.api not in APIS or frame.fields is None or frame.client is None:
            return
        key = (frame.broker, frame.connection, frame.correlation)
        if frame.direction == "request":
            if frame.fields.get("group_id") == self.group:
                self._number += 1
                shown = self._request(frame.api, frame.fields)
                self._open[key] = self._number, shown.get("member", "")
                self._put(frame, REQUEST, self._number, **shown)
                self._notes_request(frame, shown)
        elif key in self._open:
            number, member = self._open.pop(key)
            shown = self._answer(frame, member)
            self._put(frame, ANSWER, number, **shown)
            if frame.fate == "passed":
                self._notes_answer(frame, shown)

    # -- lines -------------------------------------------------------------------------------------------

    def _put(self, frame: Frame, event: str, number: int, **more: Any) -> None:
        self.log.add({**self._line(frame, event), "number": number, "api": frame.api, **more})

    def _line(self, frame: Frame, event: str) -> JsonLine:
        at = stamp(int(frame.at * 1e9) + self.log.origin)
        return {"at": at, "event": event, "group": self.group, "consumer": frame.client, "host": HOST}

    def _event(self, frame: Frame, event: str, **more: Any) -> None:
        self.log.add({**self._line(frame, event), "protocol": PROTOCOL, **more})

    def _request(self, api: str, fields: Fields) -> JsonLine:
        made: JsonLine = {"member": fields.get("member_id", "")}
        if fields.get("group_instance_id"):
            made["instance"] = fields["group_instance_id"]
        match api:
            case "ConsumerGroupHeartbeat":
                made["generation"] = fields["member_epoch"]
                made["full"] = fields["rebalance_timeout_ms"] >= 0
                if fields["subscribed_topic_names"] is not None:
                    made["topics"] = sorted(fields["subscribed_topic_names"])
                if fields["topic_partitions"] is not None:
                    made["partitions"] = self._partitions(fields["topic_partitions"])
            case "JoinGroup":
                made["assignors"] = [one["name"] for one in fields["protocols"]]
                made |= _subscription(fields["protocols"][0]["metadata"] if fields["protocols"] else b"")
            case "SyncGroup":
                made["generation"] = fields["generation_id"]
                if fields["assignments"]:
                    made["plan"] = {
                        one["member_id"]: _assigned(one["assignment"]) for one in fields["assignments"]
                    }
                    data = {one["member_id"]: _user_data(one["assignment"]) for one in fields["assignments"]}
                    if any(data.values()):  # with which no group becomes one of the consumer protocol
                        made["user_data"] = data
            case "LeaveGroup":
                made["members"] = [one["member_id"] for one in fields.get("members", [])]
            case _:
                made["generation"] = fields["generation_id"]
                if api == "OffsetCommit":
                    made["offsets"] = self._offsets(fields["topics"])
        return made

    def _answer(self, frame: Frame, member: str) -> JsonLine:
        fields = frame.fields or {}
        made: JsonLine = {"error": frame.error or "NONE", "member": fields.get("member_id") or member}
        match frame.api:
            case "ConsumerGroupHeartbeat":
                made["generation"] = fields["member_epoch"]
                if fields["assignment"] is not None:
                    made["partitions"] = self._partitions(fields["assignment"]["topic_partitions"])
            case "JoinGroup":
                made |= {"generation": fields["generation_id"], "leader": fields["leader"]}
            case "SyncGroup":
                made["partitions"] = _assigned(fields["assignment"])
        return made

    def _partitions(self, several: Iterable[Mapping[str, Any]]) -> list[str]:
        """Return those of topics by their ids; of one that is not known the id."""
        return sorted(
            f"{self.topics.get(one['topic_id'], one['topic_id'].hex())}-{number}"
            for one in several
            for number in one["partitions"]
        )

    def _offsets(self, topics: Iterable[Mapping[str, Any]]) -> dict[str, int]:
        return {
            f"{one.get('name') or self.topics.get(one.get('topic_id', b''), '')}-{p['partition_index']}": p[
                "committed_offset"
            ]
            for one in topics
            for p in one["partitions"]
        }

    # -- what a member of the consumer protocol notes -------------------------------------------------------

    def _notes_request(self, frame: Frame, shown: JsonLine) -> None:
        if frame.api == "ConsumerGroupHeartbeat" and shown["generation"] <= 0:
            self._epochs.pop(str(frame.client), None)
            self._event(frame, "joining" if shown["generation"] == 0 else "leaving", member=shown["member"])

    def _notes_answer(self, frame: Frame, shown: JsonLine) -> None:
        if frame.api != "ConsumerGroupHeartbeat":
            return
        client, member = str(frame.client), shown["member"]
        if shown["error"] in OVER:
            self._event(frame, "reset", member=member, detail=shown["error"])
        elif shown["error"] == "NONE" and shown["generation"] > 0:
            known, epoch = self._epochs.get(client), shown["generation"]
            self._epochs[client] = epoch
            if known is None:
                self._event(frame, "joined", member=member, generation=epoch)
            if known != epoch:
                self._event(frame, "synced", member=member, generation=epoch)


def _subscription(data: bytes) -> JsonLine:
    """Of a JoinGroup: what it subscribes to, what it owns, in which generation it got that."""
    try:
        found = decode_subscription(data)
    except WireError:
        return {}
    return {
        "topics": sorted(found.topics),
        "partitions": sorted(map(str, found.owned_partitions)),
        "generation": found.generation_id,
    }


def _assigned(data: bytes) -> list[str]:
    """Of a SyncGroup; nothing of a member that the leader forgot."""
    try:
        return sorted(map(str, decode_assignment(data).partitions))
    except WireError:
        return []


def _user_data(data: bytes) -> str:
    """Return what an assignment has beside partitions, hexadecimal."""
    try:
        return (decode_assignment(data).user_data or b"").hex()
    except WireError:
        return ""


def with_epochs(lines: Iterable[JsonLine]) -> list[JsonLine]:
    """Return lines in the order of time; those that consumers of the consumer protocol have written get the
    epoch and the member id of their last heartbeat."""
    known: dict[str, JsonLine] = {}
    made: list[JsonLine] = []
    for line in lines:
        who = line.get("consumer", "")
        if line["event"] in ("started", "closed"):
            known.pop(who, None)
        elif line.get("protocol") == PROTOCOL and "generation" in line:
            known[who] = {name: line[name] for name in ("generation", "member", "protocol")}
        elif line["event"] not in MESSAGES and "generation" not in line:
            line = {**line, **known.get(who, {})}
        made.append(line)
    return made
