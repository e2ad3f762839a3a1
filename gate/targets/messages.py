"""The stdio protocol, version 1: values of the model to JSON objects and back.

One JSON object per line (`protocol.schema.json` has the whole form). Requests go to the target,
replies come back in the same order; both sides of the Python host and the driver use this module.
Everything read is checked here, so that no reply, however wrong, gets further than `Garbage`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache, partial
from itertools import repeat
from typing import Any, NamedTuple, TypeVar, cast

from rebalance.live.processes.lines import (
    Garbage,
    Json,
    encode,
    field_of,
    garbage,
    integer,
    of_kind,
    one_of,
    only_known,
    optional_text,
    show,
    to_line,
    to_text,
)
from rebalance.model.assignor import Limits, Promise, stated
from rebalance.model.values import (
    Cluster,
    GroupAssignment,
    GroupSubscription,
    Partitions,
    Racks,
    RebalanceProtocol,
    Subscription,
    TopicPartition,
)
from rebalance.model.wire import WireError, decode_subscription, encode_subscription
from rebalance.model.wire import decode_assignment as wire_assignment
from rebalance.properties.assignors.calls import Asker

VERSION = 1
"""Version of the protocol, sent in ``hello``."""

HELLO_SEQ = 0
"""Sequence number of ``hello``, the first request that every process of a target sees."""

_INT32_MAX = 2**31 - 1
_HEX = re.compile(r"([0-9a-fA-F]{2})*\Z")

_T = TypeVar("_T")


class Skipped(Exception):
    """Raised by a Python target or adapter that cannot be asked this; ``issue_url`` says why, if known."""

    def __init__(self, message: str, issue_url: str | None = None) -> None:
        super().__init__(message)
        self.message, self.issue_url = message, issue_url


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """What a target says of itself; the suite asks only what is declared here.

    ``user_data`` says whether its members write user data, that is, whether it must be asked for it.
    """

    name: str
    protocols: tuple[RebalanceProtocol, ...]
    version: str | None = None
    language: str | None = None
    promises: frozenset[Promise] = frozenset()
    limits: Limits = field(default_factory=dict)
    user_data: bool = False
    homepage: str | None = None
    issues: str | None = None


class RefusalReply(NamedTuple):
    """A reply other than a result: ``kind`` is skipped, errored or garbage; ``detail`` URL or traceback."""

    kind: str
    message: str
    detail: str


# --- requests --------------------------------------------------------------------------------------------


def hello_request() -> bytes:
    """The first request to a new process."""
    return to_line({"seq": HELLO_SEQ, "cmd": "hello", "version": VERSION})


def assign_request(
    seq: int,
    protocol: RebalanceProtocol,
    cluster: Cluster,
    group: GroupSubscription,
    history: int = 0,
    metadata: bool = True,
) -> bytes:
    """Ask for an assignment; order and repetitions of everything in ``group`` are kept. ``history``: the
    number of the history that it is a part of, 0 for none. ``metadata``: whether each subscription is
    written a second time, as the bytes that the member sent."""
    members = ",".join(
        [f'{{"id":{encode(member)},{_subscription(sub, metadata)}' for member, sub in group.items()]
    )
    topics = _topics(tuple(cluster.topics.items()))
    return _request(
        seq, f'"assign","protocol":"{protocol}","cluster":{topics},"members":[{members}]', history
    )


def user_data_request(
    seq: int, owned: Partitions, generation: int, asker: Asker | None = None, history: int = 0
) -> bytes:
    """Ask what a member that was last assigned ``owned`` in ``generation`` writes as user data."""
    member = "" if asker is None else f',"member":{encode({"id": asker.member, "topics": asker.topics})}'
    owned_runs = encode(encode_runs(owned))
    return _request(seq, f'"user_data","owned":{owned_runs},"generation":{generation}{member}', history)


def bye_request(seq: int) -> bytes:
    """Tell the target to end; there is no reply."""
    return _request(seq, '"bye"', 0)


def _request(seq: int, command: str, history: int) -> bytes:
    """A line made of text that is JSON already: most of it was in other requests before, and is kept."""
    of_history = f',"history":{history}' if history else ""
    return f'{{"seq":{seq},"cmd":{command}{of_history}}}\n'.encode("ascii")


@lru_cache(maxsize=1024)
def _topics(topics: tuple[tuple[str, tuple[Racks, ...]], ...]) -> str:
    """``{"topics": {topic: [racks of partition 0, racks of partition 1, ...]}}``."""
    return encode({"topics": dict(topics)})


@lru_cache(maxsize=8192)
def _subscription(sub: Subscription, metadata: bool) -> str:
    """A member of a group without its opening brace and id."""
    fields: Json = {
        "topics": sub.topics,
        "owned": encode_runs(sub.owned_partitions),
        "generation": sub.generation_id,
        "rack": sub.rack_id,
        "instance": sub.group_instance_id,
        "user_data": encode_bytes(sub.user_data),
        "version": sub.version,
    }
    if metadata:
        fields["metadata"] = encode_subscription(sub).hex()
    return encode(fields)[1:]


def encode_runs(partitions: Iterable[tuple[str, int]]) -> list[list[Any]]:
    """Partitions as runs of one topic, order and repetitions kept.

    >>> encode_runs([("t", 0), ("t", 2), ("u", 0), ("t", 0)])
    [['t', [0, 2]], ['u', [0]], ['t', [0]]]
    """
    runs: list[list[Any]] = []
    last: str | None = None
    for topic, index in partitions:
        if topic == last:
            runs[-1][1].append(index)
        else:
            runs.append([topic, [index]])
            last = topic
    return runs


def encode_bytes(data: bytes | None) -> str | None:
    """Bytes as hexadecimal digits."""
    return None if data is None else data.hex()


def decode_assign(request: Json) -> tuple[Cluster, dict[str, Subscription]]:
    """The cluster and the group that `assign_request` wrote; only what it wrote itself is read."""
    racks = request["cluster"]["topics"]
    group = {
        member["id"]: Subscription(
            topics=tuple(member["topics"]),
            user_data=None if member["user_data"] is None else bytes.fromhex(member["user_data"]),
            owned_partitions=_partitions_of(member["owned"]),
            generation_id=member["generation"],
            rack_id=member["rack"],
            group_instance_id=member["instance"],
            version=member["version"],
        )
        for member in request["members"]
    }
    return Cluster({topic: tuple(map(tuple, partitions)) for topic, partitions in racks.items()}), group


def decode_user_data_request(request: Json) -> tuple[Partitions, int]:
    """The partitions and the generation that `user_data_request` wrote."""
    return _partitions_of(request["owned"]), request["generation"]


def _partitions_of(runs: list[list[Any]]) -> Partitions:
    return tuple([_partition(one) for topic, indexes in runs for one in zip(repeat(topic), indexes)])


# --- replies ---------------------------------------------------------------------------------------------

_REFUSALS = {
    "skipped": ("message", "issue_url"),
    "errored": ("message", "traceback"),
    "garbage": ("message", None),
}


def encode_hello(hello: Hello) -> Json:
    """The result of ``hello``."""
    return asdict(hello) | {
        "protocols": [p.value for p in hello.protocols],
        "promises": sorted(p.value for p in hello.promises),
    }


def encode_assignment(assignment: GroupAssignment, mutated: str | None) -> Json:
    """The result of ``assign``."""
    result: Json = {"assignment": {m: encode_runs(partitions) for m, partitions in assignment.items()}}
    if mutated is not None:
        result["mutated"] = mutated
    return result


def reply_seq(message: Json) -> int:
    """The number of the request that a reply answers. Raises Garbage."""
    return integer(field_of(message, "seq", "reply"), "seq")


def decode_reply(message: Json) -> Json | RefusalReply:
    """The result in a reply, or why there is none. Raises Garbage."""
    body = {key: value for key, value in message.items() if key != "seq"}
    if len(body) != 1 or not body.keys() <= {"result", *_REFUSALS}:
        raise Garbage(
            f"a reply has seq and exactly one of result, skipped, errored, garbage; got {show(list(message))}"
        )
    [(kind, value)] = body.items()
    value = of_kind(dict, value, kind)
    if kind == "result":
        return value
    text, extra = _REFUSALS[kind]
    only_known(value, (text, extra) if extra else (text,), kind)
    message_text = to_text(field_of(value, text, kind), f"{kind}: {text}", limit=None)
    detail = value.get(extra) if extra else None
    return RefusalReply(
        kind, message_text, "" if detail is None else to_text(detail, f"{kind}: {extra}", limit=None)
    )


_OPTIONAL = ("version", "language", "homepage", "issues")


def decode_hello(result: Json) -> Hello:
    """What the target says of itself; only ``name`` and ``protocols`` are required. Raises Garbage."""
    only_known(result, tuple(Hello.__dataclass_fields__), "hello")
    protocols = [
        one_of(RebalanceProtocol, p, "hello: protocols")
        for p in of_kind(list, field_of(result, "protocols", "hello"), "hello: protocols")
    ]
    if not protocols or len(set(protocols)) < len(protocols):
        raise Garbage(
            f"hello: protocols must name one or both of eager, cooperative; got {show(result['protocols'])}"
        )
    named = of_kind(list, result.get("promises", []), "hello: promises")
    promises = frozenset([one_of(Promise, p, "hello: promises") for p in named])
    try:
        limits = stated(promises, of_kind(dict, result.get("limits", {}), "hello: limits"))
    except ValueError as error:
        raise Garbage(f"hello: limits: {error}") from error
    return Hello(
        name=to_text(field_of(result, "name", "hello"), "hello: name"),
        protocols=tuple(protocols),
        promises=promises,
        limits=limits,
        user_data=of_kind(bool, result.get("user_data", False), "hello: user_data"),
        **{name: optional_text(result.get(name), f"hello: {name}") for name in _OPTIONAL},
    )


def decode_assignment(result: Json) -> tuple[dict[str, Partitions], str | None]:
    """Assignment, as partitions or as the bytes of each member, and what was mutated. Members, topics and
    indexes need not exist: that is for the clauses to judge. Raises Garbage."""
    only_known(result, ("assignment", "encoded", "mutated"), "assign")
    field, decode = ("encoded", _decode_partitions) if "encoded" in result else ("assignment", decode_runs)
    if "encoded" in result and "assignment" in result:
        raise Garbage("assign: assignment and encoded say the same, give one of them")
    found = {
        to_text(member, field): decode(value, f"{field} of {show(member)}")
        for member, value in of_kind(dict, field_of(result, field, "assign"), field).items()
    }
    mutated = result.get("mutated")
    return found, None if mutated is None else to_text(mutated, "mutated", limit=None)


def decode_user_data(result: Json) -> bytes | None:
    """The user data, by itself or in the bytes of a subscription. Raises Garbage."""
    only_known(result, ("user_data", "encoded"), "user_data")
    if "encoded" not in result:
        return decode_bytes(field_of(result, "user_data", "user_data"), "user_data")
    if "user_data" in result:
        raise Garbage("user_data: encoded holds the user data too, give one of them")
    return _decoded(decode_subscription, result["encoded"], "encoded").user_data


def _decode_partitions(value: object, where: str) -> Partitions:
    """Partitions in a ConsumerProtocolAssignment."""
    found = _decoded(wire_assignment, value, where).partitions
    return tuple([to_partition(to_text(p.topic, where), p.partition, where) for p in found])


def _decoded(decode: Callable[[bytes], _T], value: object, where: str) -> _T:
    data = decode_bytes(value, where)
    if data is None:
        raise Garbage(f"{where}: expected bytes, got null")
    try:
        return decode(data)
    except WireError as error:
        raise Garbage(f"{where}: {error}") from None


def decode_runs(value: object, *where: str) -> Partitions:
    """Partitions written by `encode_runs`. Raises Garbage; ``where`` begins its text."""
    found: list[TopicPartition] = []
    for run in of_kind(list, value, *where):
        if type(run) is not list or len(run) != 2 or type(run[1]) is not list:
            raise garbage(where, f"expected [topic, [partition, ...]], got {show(run)}")
        topic, indexes = run
        to_text(topic, *where, "topic")
        if are_indexes(indexes):
            found += map(_partition, zip(repeat(topic), indexes))
        else:
            found += [to_partition(topic, index, *where) for index in indexes]
    return tuple(found)


_partition = partial(tuple.__new__, TopicPartition)  # half the time of TopicPartition(topic, index)


def are_indexes(values: Sequence[object]) -> bool:
    """Whether all of ``values``, and there are some, can be indexes of partitions."""
    if not values or set(map(type, values)) != {int}:
        return False
    numbers = cast(Sequence[int], values)
    return min(numbers) >= 0 and max(numbers) <= _INT32_MAX


def to_partition(topic: str, index: object, *where: str) -> TopicPartition:
    """A partition whose index was read from outside. Raises Garbage; ``where`` begins its text."""
    if type(index) is not int or index < 0:
        raise garbage(where, f"partition must be an integer >= 0, got {show(index)}")
    if index > _INT32_MAX:
        raise garbage(where, f"partition must fit an int32, got {show(index)}")
    return TopicPartition(topic, index)


def decode_bytes(value: object, *where: str) -> bytes | None:
    """Bytes written by `encode_bytes`. Raises Garbage; ``where`` begins its text."""
    if value is None:
        return None
    if type(value) is not str or not _HEX.match(value):
        raise Garbage(
            f"{': '.join(where)} must be null or an even number of hexadecimal digits, got {show(value)}"
        )
    return bytes.fromhex(value)
