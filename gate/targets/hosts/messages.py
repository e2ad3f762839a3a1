"""The stdio protocol, version 1: values of the model to JSON objects and back.

One JSON object per line (`protocol.schema.json` has the whole form). Requests go to the target,
replies come back in the same order; both sides of the Python host and the driver use this module.
Everything read is checked here, so that no reply, however wrong, gets further than `Garbage`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

from rebalance_verifier.base.processes.lines import (
    Garbage,
    Json,
    encode,
    field_of,
    integer,
    of_kind,
    one_of,
    only_known,
    show,
    to_line,
    to_text,
)
from rebalance_verifier.model.assignor import Limits, Promise, stated
from rebalance_verifier.model.partitions_json import (
    decode_bytes,
    decode_runs,
    decoded,
    encode_bytes,
    encode_runs,
    encoded_partitions,
    partitions_of,
)
from rebalance_verifier.model.values import (
    Cluster,
    GroupAssignment,
    GroupSubscription,
    Partitions,
    Racks,
    RebalanceProtocol,
    Subscription,
)
from rebalance_verifier.model.wire import decode_subscription, encode_subscription
from rebalance_verifier.properties.assignors.calls import Asker

VERSION = 1
"""Version of the protocol, sent in ``hello``."""

NEWEST = 2
"""Newest version that the driver understands, sent too: 2 adds fields to the reply, and what they allow."""

HELLO_SEQ = 0
"""Sequence number of ``hello``, the first request that every process of a target sees."""

MAX_TEXT, MAX_USER_DATA, LONGEST_NAME, MAX_MEMBERS = 20_000, 2**20, 250, 20_000
"""Characters of a message that are kept, bytes of user data, and of what a target is called, members."""

_T = TypeVar("_T")


class Skipped(Exception):
    """Raised by a Python target or adapter that cannot be asked this; ``issue_url`` says why, if known."""

    def __init__(self, message: str, issue_url: str | None = None) -> None:
        super().__init__(message)
        self.message, self.issue_url = message, issue_url


class UserDataSource(StrEnum):
    """Source that user data may follow from."""

    OWNED = "owned"
    GENERATION = "generation"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """A target's description of itself; the suite asks only what is declared here.

    ``promises_assumed``: it declares none, and is held to these. ``user_data`` says whether its members write
    user data, that is, whether it must be asked for it; ``one_process`` that they are consumers of one
    process, which have what they remember in common. ``interface``: of Kafka, by which it is judged, and
    ``also``: others that it has, with what to type.

    Of version 2: ``user_data_from``: which of owned partitions and generation alone it follows from, whoever
    writes it and whatever else happened, so that it need be asked once. ``metadata_only``: of a member it
    reads the bytes alone. ``histories``: in how many histories it can be at once.
    """

    name: str
    protocols: tuple[RebalanceProtocol, ...]
    version: str | None = None
    language: str | None = None
    promises: frozenset[Promise] = frozenset()
    promises_assumed: bool = False
    limits: Limits = field(default_factory=dict)
    user_data: bool = False
    homepage: str | None = None
    issues: str | None = None
    user_data_from: frozenset[UserDataSource] | None = None
    metadata_only: bool = False
    histories: int = 1
    one_process: bool = False
    interface: str | None = None
    also: str | None = None


class RefusalReply(NamedTuple):
    """A reply other than a result: ``kind`` is one of ``_REFUSALS``; ``detail`` URL or traceback."""

    kind: str
    message: str
    detail: str


# --- requests --------------------------------------------------------------------------------------------


def hello_request() -> bytes:
    """Return the first request to a new process."""
    return to_line({"seq": HELLO_SEQ, "cmd": "hello", "version": VERSION, "newest": NEWEST})


def assign_request(
    seq: int,
    protocol: RebalanceProtocol,
    cluster: Cluster,
    group: GroupSubscription,
    history: int = 0,
    metadata_only: bool = False,
) -> bytes:
    """Ask for an assignment; order and repetitions of everything in ``group`` are kept. ``history``: the
    number of the history that it is a part of, 0 for none. ``metadata_only``: each subscription is written
    only as the bytes that the member sent, not as fields beside them."""
    members = ",".join(
        [f'{{"id":{encode(member)},{_subscription(sub, metadata_only)}' for member, sub in group.items()]
    )
    topics = _topics(tuple(cluster.topics.items()))
    return request_line(
        seq, f'"assign","protocol":"{protocol}","cluster":{topics},"members":[{members}]', history
    )


def user_data_request(
    seq: int, owned: Partitions, generation: int, asker: Asker | None = None, history: int = 0
) -> bytes:
    """Ask what a member that was last assigned ``owned`` in ``generation`` writes as user data."""
    member = "" if asker is None else f',"member":{encode({"id": asker.member, "topics": asker.topics})}'
    owned_runs = encode(encode_runs(owned))
    return request_line(seq, f'"user_data","owned":{owned_runs},"generation":{generation}{member}', history)


def bye_request(seq: int) -> bytes:
    """Tell the target to end; there is no reply."""
    return request_line(seq, '"bye"', 0)


def request_line(seq: int, command: str, history: int) -> bytes:
    """Return a line made of text that is JSON already: most of it was in other requests before, and is
    kept."""
    of_history = f',"history":{history}' if history else ""
    return f'{{"seq":{seq},"cmd":{command}{of_history}}}\n'.encode("ascii")


@lru_cache(maxsize=1024)
def _topics(topics: tuple[tuple[str, tuple[Racks, ...]], ...]) -> str:
    """``{"topics": {topic: [racks of partition 0, racks of partition 1, ...]}}``."""
    return encode({"topics": dict(topics)})


@lru_cache(maxsize=8192)
def _subscription(sub: Subscription, metadata_only: bool) -> str:
    """Return a member of a group without its opening brace and id."""
    metadata = f'"instance":{encode(sub.group_instance_id)},"metadata":"{encode_subscription(sub).hex()}"'
    if metadata_only:
        return metadata + "}"
    fields = {
        "topics": sub.topics,
        "owned": encode_runs(sub.owned_partitions),
        "generation": sub.generation_id,
        "rack": sub.rack_id,
        "user_data": encode_bytes(sub.user_data),
        "version": sub.version,
    }
    return f"{metadata},{encode(fields)[1:]}"


def decode_assign(request: Json) -> tuple[Cluster, dict[str, Subscription]]:
    """Return the cluster and the group that `assign_request` wrote; only what it wrote itself is read."""
    racks = request["cluster"]["topics"]
    group = {
        member["id"]: Subscription(
            topics=tuple(member["topics"]),
            user_data=None if member["user_data"] is None else bytes.fromhex(member["user_data"]),
            owned_partitions=partitions_of(member["owned"]),
            generation_id=member["generation"],
            rack_id=member["rack"],
            group_instance_id=member["instance"],
            version=member["version"],
        )
        for member in request["members"]
    }
    return Cluster({topic: tuple(map(tuple, partitions)) for topic, partitions in racks.items()}), group


def decode_user_data_request(request: Json) -> tuple[Partitions, int]:
    """Return the partitions and the generation that `user_data_request` wrote."""
    return partitions_of(request["owned"]), request["generation"]


# --- replies ---------------------------------------------------------------------------------------------

_REFUSALS = {
    "skipped": ("message", "issue_url"),
    "errored": ("message", "traceback"),
    "crash": ("message", "traceback"),
    "garbage": ("message", None),
}


def encode_hello(hello: Hello) -> Json:
    """Return the result of ``hello``."""
    return asdict(hello) | {
        "protocols": [p.value for p in hello.protocols],
        "promises": sorted(p.value for p in hello.promises),
        "user_data_from": None if hello.user_data_from is None else sorted(hello.user_data_from),
    }


def encode_assignment(assignment: GroupAssignment, mutated: str | None) -> Json:
    """Return the result of ``assign``."""
    result: Json = {"assignment": {m: encode_runs(partitions) for m, partitions in assignment.items()}}
    if mutated is not None:
        result["mutated"] = mutated
    return result


def reply_seq(message: Json) -> int:
    """Return the number of the request that a reply answers. Raises Garbage."""
    return integer(field_of(message, "seq", "reply"), "seq")


def decode_reply(message: Json) -> Json | RefusalReply:
    """Return the result in a reply, or why there is none. Raises Garbage."""
    body = {key: value for key, value in message.items() if key != "seq"}
    if len(body) != 1 or not body.keys() <= {"result", *_REFUSALS}:
        raise Garbage(
            f"a reply has seq and exactly one of result, {', '.join(_REFUSALS)}; got {show(list(message))}"
        )
    [(kind, value)] = body.items()
    value = of_kind(dict, value, kind)
    if kind == "result":
        return value
    text, extra = _REFUSALS[kind]
    only_known(value, (text, extra) if extra else (text,), kind)
    message_text = _excerpt(field_of(value, text, kind), f"{kind}: {text}")
    detail = value.get(extra) if extra else None
    return RefusalReply(kind, message_text, "" if detail is None else _excerpt(detail, f"{kind}: {extra}"))


def _excerpt(value: object, *where: str) -> str:
    """Return the beginning of a text of any length, as much as is kept of it. Raises Garbage."""
    return to_text(value, *where, limit=None)[:MAX_TEXT]


_OPTIONAL = ("version", "language", "homepage", "issues", "interface", "also")
_FLAGS = ("user_data", "metadata_only", "one_process", "promises_assumed")


def decode_hello(result: Json) -> Hello:
    """Return what the target says of itself; only ``name`` and ``protocols`` are required. Raises Garbage."""
    only_known(result, tuple(Hello.__dataclass_fields__), "hello")
    protocols = [
        one_of(RebalanceProtocol, p, "hello: protocols")
        for p in of_kind(list, field_of(result, "protocols", "hello"), "hello: protocols")
    ]
    if not protocols or len(set(protocols)) < len(protocols):
        some = ", ".join(RebalanceProtocol)
        raise Garbage(f"hello: protocols must name some of {some}; got {show(result['protocols'])}")
    named = of_kind(list, result.get("promises", []), "hello: promises")
    promises = frozenset([one_of(Promise, p, "hello: promises") for p in named])
    found: dict[str, Any] = {
        name: of_kind(bool, result.get(name, False), f"hello: {name}") for name in _FLAGS
    }
    stated_of = {name: result[name] for name in _OPTIONAL if result.get(name) is not None}
    found |= {name: to_text(text, f"hello: {name}", limit=LONGEST_NAME) for name, text in stated_of.items()}
    if (sources := result.get("user_data_from")) is not None:
        where = "hello: user_data_from"
        found["user_data_from"] = frozenset(
            one_of(UserDataSource, s, where) for s in of_kind(list, sources, where)
        )
    try:
        found["limits"] = stated(promises, of_kind(dict, result.get("limits", {}), "hello: limits"))
    except ValueError as error:
        raise Garbage(f"hello: limits: {error}") from error
    return Hello(
        name=to_text(field_of(result, "name", "hello"), "hello: name", limit=LONGEST_NAME),
        protocols=tuple(protocols),
        promises=promises,
        histories=max(1, integer(result.get("histories", 1), "hello: histories")),
        **found,
    )


def decode_assignment(result: Json) -> tuple[dict[str, Partitions], str | None]:
    """Assignment, as partitions or as the bytes of each member, and what was mutated. Members, topics and
    indexes need not exist: that is for the clauses to judge. Raises Garbage."""
    only_known(result, ("assignment", "encoded", "mutated"), "assign")
    field, decode = ("encoded", encoded_partitions) if "encoded" in result else ("assignment", decode_runs)
    if "encoded" in result and "assignment" in result:
        raise Garbage("assign: assignment and encoded say the same, give one of them")
    found: dict[str, Partitions] = {}
    if len(given := of_kind(dict, field_of(result, field, "assign"), field)) > MAX_MEMBERS:
        raise Garbage(f"{field}: {len(given):,} members, at most {MAX_MEMBERS:,} are read")
    for member, value in given.items():
        to_text(member, field)
        try:
            found[member] = decode(value)
        except Garbage as error:
            raise Garbage(f"{field} of {show(member)}: {error}") from None
    mutated = result.get("mutated")
    return found, None if mutated is None else _excerpt(mutated, "mutated")


def decode_user_data(result: Json) -> bytes | None:
    """Return the user data, by itself or in the bytes of a subscription. Raises Garbage."""
    only_known(result, ("user_data", "encoded"), "user_data")
    if "encoded" not in result:
        data = decode_bytes(field_of(result, "user_data", "user_data"), "user_data")
    elif "user_data" in result:
        raise Garbage("user_data: encoded holds the user data too, give one of them")
    else:
        data = decoded(decode_subscription, result["encoded"], "encoded").user_data
    if data is not None and len(data) > MAX_USER_DATA:
        raise Garbage(f"user_data: {len(data):,} bytes, at most {MAX_USER_DATA:,} are read")
    return data
