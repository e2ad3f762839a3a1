"""A recording with messages as lanes of items: what the model has to show, in which order.

Each consumer has two lanes, of what it sends and is answered, and of what its application sees, since both
run in threads of their own; the coordinator has one. Items of one lane are in order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rebalance_verifier.live.clients.record.coordinator import COORDINATOR
from rebalance_verifier.live.clients.record.messages import ANSWER, FILE, REQUEST
from rebalance_verifier.live.conformance.log import LogError, LogLine, RecordedLog
from rebalance_verifier.live.conformance.wire.lines import messages

CALLBACKS = ("assigned", "revoked", "lost")

Lane = tuple[str, int]
"""``wire`` or ``app`` and a slot, or ``coordinator`` and -1."""


class Item(NamedTuple):
    """One thing that was seen. ``kind``: ``beat``, ``beat answer``, ``join``, ``join answer``, ``sync``,
    ``sync answer``, ``heartbeat`` (of the classic protocol, with its answer), ``leave``, or an event of a
    consumer or of the coordinator. ``data`` is its line, ``line`` where that is."""

    kind: str
    at: float
    data: Mapping[str, Any]
    line: LogLine

    def __str__(self) -> str:
        return str(self.line)


@dataclass(frozen=True, kw_only=True)
class WireRecording:
    """A recording as lanes. ``names``: the consumers by slot; ``members``: member id -> slot; ``stages``:
    of each slot the stages of its lives; ``plans``: what leaders assigned, by generation; ``custom``: those
    generations in which that has user data, as a custom assignor's."""

    log: RecordedLog
    names: tuple[str, ...]
    lanes: Mapping[Lane, Sequence[Item]]
    members: Mapping[str, int]
    stages: Sequence[Sequence[int]]
    plans: Mapping[int, Mapping[str, Sequence[str]]] = field(default_factory=dict)
    custom: frozenset[int] = frozenset()

    @property
    def items(self) -> int:
        """Return how many there are."""
        return sum(map(len, self.lanes.values()))


def has_messages(log: RecordedLog) -> bool:
    """Check whether ``rebalance record`` has kept what the group sent."""
    return (log.path.parent / FILE).is_file()


def read_wire(log: RecordedLog) -> WireRecording:
    """Return the lanes of a recording. Raises LogError for what is none."""
    names = tuple(dict.fromkeys(line.consumer for line in log.lines if line.consumer))
    slots = {name: slot for slot, name in enumerate(names)}
    lines = list(messages(log.path.parent / FILE, log.group))
    lanes: dict[Lane, list[Item]] = {("coordinator", -1): []}
    for slot in slots.values():
        lanes["wire", slot], lanes["app", slot] = [], []
    members: dict[str, int] = {}
    plans: dict[int, dict[str, Sequence[str]]] = {}
    custom: set[int] = set()
    for item in _paired(lines):
        if item.kind in COORDINATOR:
            lanes["coordinator", -1].append(item)
            continue
        slot = slots.get(item.line.consumer, -1)
        if slot < 0:
            continue
        lanes["wire", slot].append(item)
        for name in (item.data.get("member"), *item.data.get("members", ())):
            if name:
                members[name] = slot
        if item.kind == "sync" and item.data.get("plan"):
            plans.setdefault(item.data["generation"], {}).update(item.data["plan"])
            if any(item.data.get("user_data", {}).values()):
                custom.add(item.data["generation"])
    leaves = {slot: [one.at for one in lanes["wire", slot] if one.kind == "leave"] for slot in slots.values()}
    began: dict[str, float] = {}
    for line in log.lines:
        if line.event == "started":
            began[line.consumer] = line.at
        if not line.consumer:
            continue
        of_this_life = [at for at in leaves[slots[line.consumer]] if at > began.get(line.consumer, 0.0)]
        mine = _of_application(line, of_this_life)
        if mine is not None:
            lanes["app", slots[line.consumer]].append(mine)
    for lane in lanes.values():
        lane.sort(key=lambda one: one.at)
    return WireRecording(
        log=log,
        names=names,
        lanes={lane: tuple(several) for lane, several in lanes.items()},
        members=members,
        stages=[_stages(log, name) for name in names],
        plans=plans,
        custom=frozenset(custom),
    )


def _stages(log: RecordedLog, name: str) -> list[int]:
    return [
        step.get("stage", 0)
        for step in log.run.get("steps", ())
        if step.get("do") == "start" and step.get("member") == name
    ]


KINDS = {"ConsumerGroupHeartbeat": "beat", "JoinGroup": "join", "SyncGroup": "sync", "LeaveGroup": "leave"}

UNSEEN = (
    "MEMBER_ID_REQUIRED",
    "NOT_COORDINATOR",
    "COORDINATOR_NOT_AVAILABLE",
    "COORDINATOR_LOAD_IN_PROGRESS",
)
"""Errors of requests that change nothing in the group, and are sent again."""


def _paired(lines: Sequence[tuple[LogLine, Mapping[str, Any]]]) -> Iterator[Item]:
    """Yield the messages and the coordinator's lines as items."""
    answers = {data["number"]: data for _, data in lines if data["event"] == ANSWER}
    unseen = {number for number, data in answers.items() if data["error"] in UNSEEN}
    asks: dict[int, Mapping[str, Any]] = {}
    for line, data in lines:
        if data["event"] in COORDINATOR:
            yield Item(data["event"], line.at, data, line)
            continue
        api, exchange = data["api"], data["number"]
        if exchange in unseen or api == "OffsetCommit":
            continue
        if data["event"] == REQUEST:
            asks[exchange] = data
            if api != "Heartbeat":
                yield Item(_kind(data), line.at, data, line)
        elif exchange in asks:
            request = asks[exchange]
            if request["api"] != api:
                raise LogError(f"{line.detail}: answers request {exchange}, which is of {request['api']}")
            if api == "Heartbeat":
                yield Item("heartbeat", line.at, {**data, "generation": request["generation"]}, line)
            elif (kind := _kind(request)) != "leave":
                yield Item(f"{kind} answer", line.at, data, line)


def _kind(request: Mapping[str, Any]) -> str:
    """That of the item which a request is."""
    kind = KINDS[request["api"]]
    return "leave" if kind == "beat" and request["generation"] < 0 else kind


def _of_application(line: LogLine, leaves: Sequence[float]) -> Item | None:
    """Return what a consumer's own line is about, None for what the wire shows better."""
    kind = line.event
    if kind in CALLBACKS:
        return Item(kind, line.at, {"partitions": line.partitions or ()}, line) if line.partitions else None
    if kind == "closed":
        if line.detail == "killed" or line.detail.startswith("ended with"):
            return Item("killed", line.at, {}, line)
        # Closing may take seconds more than to leave.
        left = [at for at in leaves if at <= line.at]
        return Item("closed", max(left[-1:], default=line.at), {}, line)
    if kind == "started":
        return Item("started", line.at, {}, line)
    if kind == "subscribed":
        return Item("subscribed", line.at, {"topics": line.topics or ()}, line)
    return None
