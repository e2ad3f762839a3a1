"""Kafka's frames, as far as a proxy between clients and brokers has to understand them.

A frame is its length in four bytes and a payload. A request begins with API key, version, correlation id
and client id, a response with the correlation id of its request. Of the messages themselves those of the
group protocols are read and written; ``wire.toml`` is the table (Kafka's message definitions,
``JoinGroupRequest.json`` and its neighbours), and whoever reads others brings ``schemas`` of his own. The
metadata inside them is ``model.wire``'s.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from rebalance_verifier.base.tables import table

MAX_FRAME = 128 * 2**20
"""Longest payload that is believed, in bytes; Kafka's own limit (``socket.request.max.bytes``) is 100 MiB."""

_TABLES = table(__file__)

KEYS: dict[str, int] = _TABLES["apis"]
APIS: dict[int, str] = {key: name for name, key in KEYS.items()}
"""API key -> name, of ``org.apache.kafka.common.protocol.ApiKeys``; others are called by their number."""

CODES: dict[str, int] = _TABLES["errors"]
ERRORS: dict[int, str] = {code: name for name, code in CODES.items()}
"""Error code -> name, of ``org.apache.kafka.common.protocol.Errors``: those of the group protocol."""

Fields = dict[str, Any]
"""A message by field names: int, str, bytes, bool or None, and lists of the same."""


class FrameError(ValueError):
    """Bytes that are no frame of Kafka's, or a message that its schema does not read."""


class Header(NamedTuple):
    """The beginning of a request; ``at`` is the offset of its message in the payload."""

    api: str
    version: int
    correlation: int
    client: str | None
    at: int


NEVER = 99
"""A version that no message has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field: ``kind`` int8, int16, int32, int64, bool, uuid, string, string?, bytes, a list of one of
    these (``int32*``) or of ``Field``, in the versions ``first`` to ``last``. ``nullable``: a list that is
    null is read as None and not as empty. ``single``: its fields are no list, but one struct or null."""

    name: str
    kind: str | tuple[Field, ...]
    first: int = 0
    last: int = NEVER
    nullable: bool = False
    single: bool = False


@dataclass(frozen=True, slots=True)
class Schema:
    """A message in all its versions; from ``flexible`` on lengths are compact and tagged fields follow."""

    fields: tuple[Field, ...]
    flexible: int


Schemas = Mapping[tuple[str, str], Schema]
"""(API, "request" or "response") -> schema."""

_FIELD = re.compile(r"(\w+)(?::([\w?*]+))?(?:@(\d+)(?:-(\d+)|\+))?(\?)?([\[{])?|[\]}]")


def _schema(flexible: int, text: str) -> Schema:
    """Return a message of fields ``name:kind`` and lists ``name[...]``, ``name?[...]`` of one that may be
    null, structs that may be null ``name{...}``; ``@3+`` and ``@2-4``: in these versions."""
    levels: list[list[Field]] = [[]]
    for found in _FIELD.finditer(text):
        if found[0] in "]}":
            inner = tuple(levels.pop())
            levels[-1][-1] = replace(levels[-1][-1], kind=inner)
            continue
        first, last = int(found[3] or 0), int(found[4] or NEVER)
        kind = found[2] or ""
        field = Field(
            name=found[1],
            kind=kind.removesuffix("?") if "*" in kind else kind,
            first=first,
            last=last,
            nullable=bool(found[5]) or kind.endswith("*?"),
            single=found[6] == "{",
        )
        levels[-1].append(field)
        if found[6]:
            levels.append([])
    return Schema(tuple(levels[0]), flexible)


def schemas(rows: Mapping[str, Mapping[str, Any]]) -> Schemas:
    """Return the schemas of a table such as ``wire.toml``."""
    return {
        (api, kind): _schema(row.get("flexible", NEVER), row["fields"])
        for api, kinds in rows.items()
        for kind, row in kinds.items()
    }


SCHEMAS = schemas(_TABLES["schemas"])
"""Those of the group protocol."""


# -- frames ----------------------------------------------------------------------------------------------


def framed(payload: bytes) -> bytes:
    """Return the frame of a payload."""
    return struct.pack(">i", len(payload)) + payload


def size(prefix: bytes) -> int:
    """Return the length of the payload that follows these four bytes. Raises FrameError for what no frame
    has."""
    length = int(struct.unpack(">i", prefix)[0])
    if not 0 <= length <= MAX_FRAME:
        raise FrameError(f"a frame of {length} bytes: this is not Kafka's protocol, or TLS is in use")
    return length


def header(payload: bytes, schemas: Schemas = SCHEMAS) -> Header:
    """Return the header of a request. Raises FrameError."""
    reader = _FrameReader(payload, compact=False)
    key, version, correlation = reader.number("h"), reader.number("h"), reader.number("i")
    client = reader.string()
    api = APIS.get(key, str(key))
    schema = schemas.get((api, "request"))
    if schema is not None and version >= schema.flexible:
        reader.tags()
    return Header(api=api, version=version, correlation=correlation, client=client, at=reader.at)


def correlation(payload: bytes) -> int:
    """Return the correlation id of a response. Raises FrameError."""
    return _FrameReader(payload, compact=False).number("i")


# -- messages --------------------------------------------------------------------------------------------


def read_fields(payload: bytes, schemas: Schemas = SCHEMAS) -> Fields | None:
    """Return the fields of a request; None where there is no schema. Raises FrameError."""
    head = header(payload, schemas)
    return read_message(head, payload, schemas)


def read_message(head: Header, payload: bytes, schemas: Schemas = SCHEMAS) -> Fields | None:
    """Return the fields of a request whose header was read; None where there is no schema. Raises
    FrameError."""
    schema = schemas.get((head.api, "request"))
    return None if schema is None else _read(schema, head.api, "request", head.version, payload, head.at)


def read_response(api: str, version: int, payload: bytes) -> Fields | None:
    """Return the fields of a response to ``api``; None where there is no schema. Raises FrameError."""
    schema = SCHEMAS.get((api, "response"))
    if schema is None or (api == "ApiVersions" and version > 2):  # in which version, only a look would tell
        return None
    reader = _FrameReader(payload, compact=False)
    reader.number("i")
    if version >= schema.flexible:
        reader.tags()
    return _read(schema, api, "response", version, payload, reader.at)


def write_request(api: str, version: int, correlation: int, client: str | None, fields: Fields) -> bytes:
    """Return the payload of a request; fields that are left out are empty. Raises KeyError without a
    schema."""
    flexible = version >= SCHEMAS[api, "request"].flexible
    name = client.encode() if client is not None else None
    head = struct.pack(">hhih", KEYS[api], version, correlation, -1 if name is None else len(name))
    return head + (name or b"") + b"\0" * flexible + _written(SCHEMAS[api, "request"], version, fields)


def write_response(
    api: str, version: int, correlation: int, fields: Fields, schemas: Schemas = SCHEMAS
) -> bytes:
    """Return the payload of a response; fields that are left out are empty. Raises KeyError without a schema.

    A version of ApiVersions that is not supported is answered in version 0, and its header is never flexible
    (KIP-511).
    """
    if api == "ApiVersions" and fields.get("error_code") == CODES["UNSUPPORTED_VERSION"]:
        version = 0
    schema = schemas[api, "response"]
    flexible = version >= schema.flexible and api != "ApiVersions"
    return struct.pack(">i", correlation) + b"\0" * flexible + _written(schema, version, fields)


def refusal(api: str, error: str, request: Fields) -> Fields:
    """Return the fields of the answer to ``request`` that says ``error`` and nothing else."""
    code = CODES[error]
    if api == "JoinGroup":
        return {"error_code": code, "generation_id": -1, "member_id": request["member_id"]}
    if api == "ApiVersions":
        return {"error_code": code, "api_keys": [{"api_key": KEYS[api], "min_version": 0, "max_version": 2}]}
    if api == "LeaveGroup" and "members" in request:
        return {"error_code": code, "members": [{**one, "error_code": code} for one in request["members"]]}
    if api == "OffsetCommit":
        topics = [
            {
                **{key: topic[key] for key in ("name", "topic_id") if key in topic},
                "partitions": [
                    {"partition_index": one["partition_index"], "error_code": code}
                    for one in topic["partitions"]
                ],
            }
            for topic in request["topics"]
        ]
        return {"topics": topics}
    return {"error_code": code}


def error_of(fields: Fields | None) -> str:
    """Return the error that a response tells, by name: the first that is not NONE; "" for one without any."""
    if fields is None:
        return ""
    codes = [fields["error_code"]] if "error_code" in fields else []
    for topic in fields.get("topics", []):
        codes += [one["error_code"] for one in topic["partitions"]]
    wrong = next((code for code in codes if code), 0)
    return ERRORS.get(wrong, str(wrong)) if codes else ""


def _read(schema: Schema, api: str, kind: str, version: int, payload: bytes, at: int) -> Fields:
    reader = _FrameReader(payload, compact=version >= schema.flexible, at=at)
    try:
        return reader.fields(schema.fields, version)
    except FrameError as error:
        raise FrameError(f"{api} {kind} version {version}: {error}") from None


def _written(schema: Schema, version: int, fields: Fields) -> bytes:
    return _FrameWriter(version >= schema.flexible).fields(schema.fields, version, fields)


_NUMBERS = {"int8": "b", "int16": "h", "int32": "i", "int64": "q", "bool": "?"}


class _FrameReader:
    """A cursor over a payload. Raises FrameError where it holds less than it announces."""

    def __init__(self, payload: bytes, *, compact: bool, at: int = 0) -> None:
        self.payload, self.compact, self.at = payload, compact, at

    def fields(self, fields: Sequence[Field], version: int) -> Fields:
        found: Fields = {}
        for field in fields:
            if field.first <= version <= field.last:
                found[field.name] = self._field(field, version)
        if self.compact:
            self.tags()
        return found

    def _field(self, field: Field, version: int) -> Any:
        kind = field.kind
        if field.single and not isinstance(kind, str):
            return None if self.number("b") < 0 else self.fields(kind, version)
        if isinstance(kind, str) and not kind.endswith("*"):
            return self._value(kind)
        length = self._length("i", nullable=field.nullable)
        if length < 0:
            return None
        if isinstance(kind, str):
            return [self._value(kind[:-1]) for _ in range(length)]
        return [self.fields(kind, version) for _ in range(length)]

    def _value(self, kind: str) -> Any:
        if kind in _NUMBERS:
            value = self.number(_NUMBERS[kind])
            return bool(value) if kind == "bool" else value
        if kind == "uuid":
            return self.take(16)
        if kind == "bytes":
            return self.take(self._length("i"))
        text = self.string()
        return text if kind == "string?" else text or ""

    def string(self) -> str | None:
        length = self._length("h", nullable=True)
        try:
            return None if length < 0 else self.take(length).decode()
        except UnicodeDecodeError:
            raise FrameError(f"a string at byte {self.at} is not UTF-8") from None

    def _length(self, code: str, *, nullable: bool = False) -> int:
        length = self.varint() - 1 if self.compact else self.number(code)
        # A null array or null bytes read as empty: nobody here makes a difference.
        return length if nullable else max(length, 0)

    def number(self, code: str) -> int:
        return int(struct.unpack(f">{code}", self.take(struct.calcsize(f">{code}")))[0])

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            if (shift := shift + 7) > 28:
                raise FrameError(f"a varint at byte {self.at} is longer than five bytes")

    def tags(self) -> None:
        for _ in range(self.varint()):
            self.varint()
            self.take(self.varint())

    def take(self, count: int) -> bytes:
        taken = self.payload[self.at : self.at + count]
        if count < 0 or len(taken) < count:
            raise FrameError(f"{count} bytes are due at byte {self.at}, {len(taken)} are left")
        self.at += count
        return taken


class _FrameWriter:
    """Values as bytes, in the order of a schema."""

    def __init__(self, compact: bool) -> None:
        self.compact = compact

    def fields(self, fields: Sequence[Field], version: int, values: Mapping[str, Any]) -> bytes:
        parts = [
            self._field(field, version, values.get(field.name))
            for field in fields
            if field.first <= version <= field.last
        ]
        return b"".join(parts) + b"\0" * self.compact

    def _field(self, field: Field, version: int, value: Any) -> bytes:
        kind = field.kind
        if field.single and not isinstance(kind, str):
            return b"\xff" if value is None else b"\x01" + self.fields(kind, version, value)
        if isinstance(kind, str) and not kind.endswith("*"):
            return self._value(kind, value)
        if value is None and field.nullable:
            return self._length("i", -1)
        items = value or ()
        return self._length("i", len(items)) + b"".join(
            self._value(kind[:-1], one) if isinstance(kind, str) else self.fields(kind, version, one)
            for one in items
        )

    def _value(self, kind: str, value: Any) -> bytes:
        if kind in _NUMBERS:
            return struct.pack(f">{_NUMBERS[kind]}", value or 0)
        if kind == "uuid":
            return value or bytes(16)
        if kind == "bytes":
            return self._length("i", len(value or b"")) + (value or b"")
        if value is None and kind == "string?":
            return b"\0" if self.compact else struct.pack(">h", -1)
        text = (value or "").encode()
        return self._length("h", len(text)) + text

    def _length(self, code: str, length: int) -> bytes:
        return _varint(length + 1) if self.compact else struct.pack(f">{code}", length)


def _varint(value: int) -> bytes:
    parts = bytearray()
    while value >= 0x80:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*parts, value])
