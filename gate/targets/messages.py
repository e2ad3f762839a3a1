"""The stdio protocol, version 1: values of the model to JSON objects and back.

One JSON object per line (`protocol.schema.json` has the whole form). Requests go to the target,
replies come back in the same order; both sides of the Python host and the driver use this module.
Everything read is checked here, so that no reply, however wrong, gets further than `Garbage`.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache, partial
from itertools import repeat
from typing import Any, NamedTuple, NoReturn, TypeVar, cast

from rebalance.model.assignor import Promise
from rebalance.model.values import (
    NEWEST_VERSION,
    NO_GENERATION,
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
_STRING_MAX = 2**15 - 1  # bytes of a string on Kafka's wire (int16 length)
_HEX = re.compile(r"([0-9a-fA-F]{2})*\Z")

Json = dict[str, Any]
_T = TypeVar("_T")


class Garbage(ValueError):
    """A message that is not of the form; the text names the place, the rule and what was found."""


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
    user_data: bool = False
    homepage: str | None = None
    issues: str | None = None


class RefusalReply(NamedTuple):
    """A reply other than a result: ``kind`` is skipped, errored or garbage; ``detail`` URL or traceback."""

    kind: str
    message: str
    detail: str


# --- lines -----------------------------------------------------------------------------------------------

_encode = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


def to_line(message: Mapping[str, Any]) -> bytes:
    """One message as one line of ASCII."""
    return _encode(message).encode("ascii") + b"\n"


def from_line(line: bytes) -> Json:
    """The JSON object in one line. Stricter than JSON where JSON is vague: UTF-8 only, no duplicate
    keys, no NaN. Raises Garbage."""
    try:
        message = _decode(line.decode("utf-8"))
    except Garbage:
        raise
    except (ValueError, RecursionError) as error:  # UnicodeDecodeError and JSONDecodeError are ValueErrors
        raise Garbage(f"not one line of JSON in UTF-8 ({error}): {show(line)}") from None
    if type(message) is not dict:
        raise Garbage(f"a message must be a JSON object, got {show(message)}")
    return message


def show(value: object, limit: int = 200) -> str:
    """``value`` for an error message: its repr, shortened, whatever it is."""
    try:
        text = value[:limit].decode() if isinstance(value, bytes) else ascii(value)
    except Exception:
        text = f"<{type(value).__name__}>"
    return text if len(text) <= limit else text[:limit] + "..."


def _object(pairs: list[tuple[str, Any]]) -> Json:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise Garbage(f"key {show(next(k for k in keys if keys.count(k) > 1))} appears twice in one object")
    return found


def _constant(name: str) -> NoReturn:
    raise Garbage(f"{name} is not JSON")


_decode = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant).decode


# --- requests --------------------------------------------------------------------------------------------


def hello_request() -> bytes:
    """The first request to a new process."""
    return to_line({"seq": HELLO_SEQ, "cmd": "hello", "version": VERSION})


def assign_request(
    seq: int, protocol: RebalanceProtocol, cluster: Cluster, group: GroupSubscription, history: int = 0
) -> bytes:
    """Ask for an assignment; order and repetitions of everything in ``group`` are kept. ``history``: the
    number of the history that it is a part of, 0 for none."""
    members = ",".join([f'{{"id":{_encode(member)},{_subscription(sub)}' for member, sub in group.items()])
    topics = _topics(tuple(cluster.topics.items()))
    return _request(
        seq, f'"assign","protocol":"{protocol}","cluster":{topics},"members":[{members}]', history
    )


def user_data_request(
    seq: int, owned: Partitions, generation: int, asker: Asker | None = None, history: int = 0
) -> bytes:
    """Ask what a member that was last assigned ``owned`` in ``generation`` writes as user data."""
    member = "" if asker is None else f',"member":{_encode({"id": asker.member, "topics": asker.topics})}'
    owned_runs = _encode(encode_runs(owned))
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
    return _encode({"topics": dict(topics)})


@lru_cache(maxsize=8192)
def _subscription(sub: Subscription) -> str:
    """A member of a group without its opening brace and id."""
    fields = {
        "topics": sub.topics,
        "owned": encode_runs(sub.owned_partitions),
        "generation": sub.generation_id,
        "rack": sub.rack_id,
        "instance": sub.group_instance_id,
        "user_data": encode_bytes(sub.user_data),
        "version": sub.version,
        "metadata": encode_subscription(sub).hex(),
    }
    return _encode(fields)[1:]


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


def decode_assign(request: Json) -> tuple[RebalanceProtocol, Cluster, dict[str, Subscription]]:
    """What an ``assign`` request asks: protocol, cluster, group. Raises Garbage."""
    protocol = _one_of(RebalanceProtocol, _field(request, "protocol", "assign"), "protocol")
    return (
        protocol,
        decode_cluster(_field(request, "cluster", "assign")),
        decode_group(_field(request, "members", "assign")),
    )


def decode_cluster(value: object) -> Cluster:
    """The cluster that `assign_request` wrote. Raises Garbage."""
    topics = _of(dict, _field(_of(dict, value, "cluster"), "topics", "cluster"), "cluster topics")
    found: dict[str, tuple[Racks, ...]] = {}
    for topic, partitions in topics.items():
        try:
            racks = tuple([_texts(racks) if racks else () for racks in _of(list, partitions)])
        except Garbage as garbage:
            raise Garbage(f"cluster topic {show(topic)}: {garbage}") from None
        found[to_text(topic, "cluster")] = racks
    return Cluster(found)


def decode_group(value: object) -> dict[str, Subscription]:
    """The group that `assign_request` wrote; ``metadata`` says the same in bytes and is not read.

    Raises Garbage."""
    group: dict[str, Subscription] = {}
    for item in _of(list, value, "members"):
        member = to_text(_field(_of(dict, item, "member"), "id", "member"), "member id")
        if member in group:
            raise Garbage(f"member {show(member)} appears twice")
        try:
            group[member] = Subscription(
                topics=_texts(_field(item, "topics"), "topics"),
                user_data=decode_bytes(item.get("user_data"), "user_data"),
                owned_partitions=decode_runs(_field(item, "owned"), "owned"),
                generation_id=_integer(item.get("generation", NO_GENERATION), "generation"),
                rack_id=_optional_text(item.get("rack"), "rack"),
                group_instance_id=_optional_text(item.get("instance"), "instance"),
                version=_integer(item.get("version", NEWEST_VERSION), "version"),
            )
        except Garbage as garbage:
            raise Garbage(f"member {show(member)}: {garbage}") from None
    return group


def decode_user_data_request(request: Json) -> tuple[Partitions, int]:
    """What a ``user_data`` request asks: partitions last assigned, and their generation. Raises Garbage."""
    owned = decode_runs(_field(request, "owned", "user_data"), "owned")
    return owned, _integer(_field(request, "generation", "user_data"), "generation")


# --- replies ---------------------------------------------------------------------------------------------

_REFUSALS = {
    "skipped": ("message", "issue_url"),
    "errored": ("message", "traceback"),
    "garbage": ("message", None),
}


def encode_hello(hello: Hello) -> Json:
    """The result of ``hello``."""
    return {
        "name": hello.name,
        "version": hello.version,
        "language": hello.language,
        "protocols": [p.value for p in hello.protocols],
        "promises": sorted(p.value for p in hello.promises),
        "user_data": hello.user_data,
        "homepage": hello.homepage,
        "issues": hello.issues,
    }


def encode_assignment(assignment: GroupAssignment, mutated: str | None) -> Json:
    """The result of ``assign``."""
    result: Json = {"assignment": {m: encode_runs(partitions) for m, partitions in assignment.items()}}
    if mutated is not None:
        result["mutated"] = mutated
    return result


def reply_seq(message: Json) -> int:
    """The number of the request that a reply answers. Raises Garbage."""
    return _integer(_field(message, "seq", "reply"), "seq")


def decode_reply(message: Json) -> Json | RefusalReply:
    """The result in a reply, or why there is none. Raises Garbage."""
    body = {key: value for key, value in message.items() if key != "seq"}
    if len(body) != 1 or not body.keys() <= {"result", *_REFUSALS}:
        raise Garbage(
            f"a reply has seq and exactly one of result, skipped, errored, garbage; got {show(list(message))}"
        )
    [(kind, value)] = body.items()
    value = _of(dict, value, kind)
    if kind == "result":
        return value
    text, extra = _REFUSALS[kind]
    _known(value, (text, extra) if extra else (text,), kind)
    message_text = to_text(_field(value, text, kind), f"{kind}: {text}", limit=None)
    detail = value.get(extra) if extra else None
    return RefusalReply(
        kind, message_text, "" if detail is None else to_text(detail, f"{kind}: {extra}", limit=None)
    )


def decode_hello(result: Json) -> Hello:
    """What the target says of itself; only ``name`` and ``protocols`` are required. Raises Garbage."""
    _known(result, tuple(Hello.__dataclass_fields__), "hello")
    protocols = [
        _one_of(RebalanceProtocol, p, "hello: protocols")
        for p in _of(list, _field(result, "protocols", "hello"), "hello: protocols")
    ]
    if not protocols or len(set(protocols)) < len(protocols):
        raise Garbage(
            f"hello: protocols must name one or both of eager, cooperative; got {show(result['protocols'])}"
        )
    promises = _of(list, result.get("promises", []), "hello: promises")
    return Hello(
        name=to_text(_field(result, "name", "hello"), "hello: name"),
        protocols=tuple(protocols),
        version=_optional_text(result.get("version"), "hello: version"),
        language=_optional_text(result.get("language"), "hello: language"),
        promises=frozenset([_one_of(Promise, p, "hello: promises") for p in promises]),
        user_data=_of(bool, result.get("user_data", False), "hello: user_data"),
        homepage=_optional_text(result.get("homepage"), "hello: homepage"),
        issues=_optional_text(result.get("issues"), "hello: issues"),
    )


def decode_assignment(result: Json) -> tuple[dict[str, Partitions], str | None]:
    """Assignment, as partitions or as the bytes of each member, and what was mutated. Members, topics and
    indexes need not exist: that is for the clauses to judge. Raises Garbage."""
    _known(result, ("assignment", "encoded", "mutated"), "assign")
    field, decode = ("encoded", _decode_partitions) if "encoded" in result else ("assignment", decode_runs)
    if "encoded" in result and "assignment" in result:
        raise Garbage("assign: assignment and encoded say the same, give one of them")
    found = {
        to_text(member, field): decode(value, f"{field} of {show(member)}")
        for member, value in _of(dict, _field(result, field, "assign"), field).items()
    }
    mutated = result.get("mutated")
    return found, None if mutated is None else to_text(mutated, "mutated", limit=None)


def decode_user_data(result: Json) -> bytes | None:
    """The user data, by itself or in the bytes of a subscription. Raises Garbage."""
    _known(result, ("user_data", "encoded"), "user_data")
    if "encoded" not in result:
        return decode_bytes(_field(result, "user_data", "user_data"), "user_data")
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
    for run in _of(list, value, *where):
        if type(run) is not list or len(run) != 2 or type(run[1]) is not list:
            raise _garbage(where, f"expected [topic, [partition, ...]], got {show(run)}")
        topic, indexes = run
        to_text(topic, *where, "topic")
        if (
            set(map(type, indexes)) <= {int}
            and 0 <= min(indexes, default=0) <= max(indexes, default=0) <= _INT32_MAX
        ):
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
        raise _garbage(where, f"partition must be an integer >= 0, got {show(index)}")
    if index > _INT32_MAX:
        raise _garbage(where, f"partition must fit an int32, got {show(index)}")
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


# --- checks ----------------------------------------------------------------------------------------------

_E = TypeVar("_E", bound=StrEnum)
_NAMES: dict[type, str] = {dict: "an object", list: "an array", bool: "true or false"}


def _garbage(where: tuple[str, ...], text: str) -> Garbage:
    """The error that ``text`` says of what is ``where``, from the outside in."""
    return Garbage(": ".join((*where, text)))


def _of(kind: type[_T], value: object, *where: str) -> _T:
    if type(value) is not kind:
        raise _garbage(where, f"expected {_NAMES[kind]}, got {show(value)}")
    return value


def _field(value: Mapping[str, Any], key: str, *where: str) -> Any:
    try:
        return value[key]
    except KeyError:
        raise _garbage(where, f"{key!r} is missing; got {show(list(value))}") from None


def _known(value: Mapping[str, Any], keys: tuple[str, ...], where: str) -> None:
    # A misspelt "promises" would otherwise mean that nothing is promised and nothing is checked.
    for key in value:
        if key not in keys:
            raise Garbage(f"{where}: unknown key {show(key)}; known are {', '.join(keys)}")


def _one_of(kind: type[_E], value: Any, where: str) -> _E:
    try:
        return kind(value)
    except ValueError:
        raise Garbage(f"{where}: expected one of {', '.join(kind)}, got {show(value)}") from None


def _integer(value: object, *where: str) -> int:
    if type(value) is not int:
        raise _garbage(where, f"expected an integer, got {show(value)}")
    return value


def to_text(value: object, *where: str, limit: int | None = _STRING_MAX) -> str:
    """``value`` if it is a string that Kafka's wire can hold. Raises Garbage; ``where`` begins its text."""
    if not isinstance(value, str):
        raise _garbage(where, f"expected a string, got {show(value)}")
    try:
        size = len(value) if value.isascii() else len(value.encode())
    except UnicodeEncodeError:  # half of a surrogate pair: legal JSON, no text
        raise _garbage(where, f"not valid Unicode: {show(value)}") from None
    if limit is not None and size > limit:
        raise _garbage(where, f"longer than {limit} bytes: {show(value)}")
    return value


def _texts(value: object, *where: str) -> tuple[str, ...]:
    texts = _of(list, value, *where)
    with contextlib.suppress(TypeError):
        together = "".join(texts)
        if together.isascii() and len(together) <= _STRING_MAX:
            return tuple(texts)
    return tuple([to_text(text, *where) for text in texts])


def _optional_text(value: object, *where: str) -> str | None:
    return None if value is None else to_text(value, *where)
