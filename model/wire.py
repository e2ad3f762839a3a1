"""Kafka's bytes: what members write into JoinGroup and what leaders write into SyncGroup.

``ConsumerProtocolSubscription`` and ``ConsumerProtocolAssignment`` versions 0 to 3 (KIP-429, KIP-792,
KIP-881; class ``ConsumerProtocol``), and the user data of ``StickyAssignor`` (KIP-54, KIP-341) and
``CooperativeStickyAssignor``. None of them uses compact or tagged fields.

Reading is as tolerant as Java where Java's tolerance carries meaning (newer versions are read as the
newest known one, bytes after the last field are ignored) and strict everywhere else: data that does not
hold what it announces is a `WireError`, found before anything of the announced size is allocated.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import NamedTuple

from rebalance_verifier.model.values import (
    NEWEST_VERSION,
    NO_GENERATION,
    Partitions,
    Subscription,
    TopicPartition,
)

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")

# The least that one array element can take: an empty string, an int32, an empty string and an empty array.
_MIN_STRING, _MIN_INT32, _MIN_TOPIC = 2, 4, 6


class WireError(ValueError):
    """Bytes that are not what the format says, or a value that the format cannot hold.

    ``field`` is the dotted name of the field, ``offset`` the byte where it starts (None when encoding),
    ``expected`` what the format asks for there and ``found`` what was there instead.
    """

    def __init__(self, field: str, offset: int | None, expected: str, found: str) -> None:
        self.field, self.offset, self.expected, self.found = field, offset, expected, found
        where = "" if offset is None else f" at byte {offset}"
        super().__init__(f"{field}{where}: expected {expected}, found {found}")


class Assignment(NamedTuple):
    """Assignment that one member gets in SyncGroup (``ConsumerPartitionAssignor.Assignment``)."""

    partitions: Partitions
    user_data: bytes | None = None
    version: int = NEWEST_VERSION


# --- subscription and assignment -------------------------------------------------------------------------


def encode_subscription(sub: Subscription, version: int | None = None) -> bytes:
    """Return the metadata bytes of one member in JoinGroup, written in ``version`` (its own by default).

    Fields that the version lacks are dropped; a version above the newest known is written as the newest
    known. Topics and owned partitions are sorted (KAFKA-12898), so equal subscriptions are equal bytes.
    ``group_instance_id`` is not part of the metadata. Raises WireError for values that do not fit.
    Source: ``ConsumerProtocol.serializeSubscription``.
    """
    version = _known_version(sub.version if version is None else version, None)
    parts = [
        _int16("version", version),
        _array("topics", [_string("topics", topic) for topic in sorted(sub.topics)]),
        _nullable_bytes("user_data", sub.user_data),
    ]
    if sub.short:
        return b"".join(parts)
    if version >= 1:
        parts.append(_topic_partitions("owned_partitions", sorted(sub.owned_partitions)))
    if version >= 2:
        parts.append(_int32("generation_id", sub.generation_id))
    if version >= 3:
        parts.append(_int16("rack_id", -1) if sub.rack_id is None else _string("rack_id", sub.rack_id))
    return b"".join(parts)


def decode_subscription(data: bytes, group_instance_id: str | None = None) -> Subscription:
    """Return what the leader reads of one member's metadata; topics and owned partitions in the order
    written.

    ``group_instance_id`` comes beside the metadata in the JoinGroup response. ``version`` of the result
    is the one read: a newer one is read, and reported, as the newest known. A negative generation
    means none and becomes NO_GENERATION. Raises WireError.
    Source: ``ConsumerProtocol.deserializeSubscription``, ``Subscription.generationId``.
    """
    reader = _Reader(data)
    version = reader.version()
    topics = tuple(reader.string("topics") for _ in range(reader.length("topics", _MIN_STRING)))
    user_data = reader.nullable_bytes("user_data")
    owned = reader.topic_partitions("owned_partitions") if version >= 1 else ()
    generation = reader.int32("generation_id") if version >= 2 else NO_GENERATION
    rack = reader.nullable_string("rack_id") if version >= 3 else None
    return Subscription(
        topics=topics,
        user_data=user_data,
        owned_partitions=owned,
        generation_id=max(generation, NO_GENERATION),
        rack_id=rack,
        group_instance_id=group_instance_id,
        version=version,
    )


def encode_assignment(
    partitions: Iterable[TopicPartition], user_data: bytes | None = None, version: int = NEWEST_VERSION
) -> bytes:
    """Return the bytes one member receives in SyncGroup; all versions are alike but for the number.

    Partitions are grouped by topic and otherwise keep their order, as Java leaves them. Raises WireError
    for values that do not fit. Source: ``ConsumerProtocol.serializeAssignment``.
    """
    return b"".join(
        [
            _int16("version", _known_version(version, None)),
            _topic_partitions("assigned_partitions", partitions),
            _nullable_bytes("user_data", user_data),
        ]
    )


def decode_assignment(data: bytes) -> Assignment:
    """Return what a member reads from SyncGroup. Raises WireError; the empty bytes a broker sends to a member
    that the leader forgot are too short for a version and are refused like any truncated data.
    Source: ``ConsumerProtocol.deserializeAssignment``.
    """
    reader = _Reader(data)
    version = reader.version()
    partitions = reader.topic_partitions("assigned_partitions")
    return Assignment(partitions, reader.nullable_bytes("user_data"), version)


# --- user data of the sticky assignors -------------------------------------------------------------------


def encode_sticky_user_data(owned: Iterable[TopicPartition], generation: int | None) -> bytes:
    """User data of protocol ``sticky``: version 1, or version 0 (KIP-54) when ``generation`` is None.

    There is no version number in it. Partitions are grouped by topic and otherwise keep their order.
    Raises WireError for values that do not fit.
    Source: ``StickyAssignor.serializeTopicPartitionAssignment``, KIP-341.
    """
    claims = _topic_partitions("previous_assignment", owned)
    return claims if generation is None else claims + _int32("generation", generation)


def decode_sticky_user_data(data: bytes) -> tuple[Partitions, int]:
    """Return claims and generation in user data of protocol ``sticky``; NO_GENERATION when it is version 0.

    Version 1 is tried first, then version 0, as nothing in the data tells them apart. Raises WireError
    when it is neither; a Java leader then goes on as if the member claimed nothing.
    Source: ``StickyAssignor.deserializeTopicPartitionAssignment``.
    """
    reader = _Reader(data)
    claims = reader.topic_partitions("previous_assignment")
    try:
        return claims, reader.int32("generation")
    except WireError:
        return claims, NO_GENERATION


def encode_cooperative_user_data(generation: int) -> bytes:
    """User data of protocol ``cooperative-sticky``: the generation in which the member was last assigned.

    Raises WireError for values that do not fit. Source: ``CooperativeStickyAssignor.subscriptionUserData``.
    """
    return _int32("generation", generation)


def decode_cooperative_user_data(data: bytes | None) -> int:
    """Generation in user data of protocol ``cooperative-sticky``; NO_GENERATION when absent or too short.

    Never raises; bytes after the number are ignored, as in Java, which therefore reads the array length
    in what librdkafka writes there. Source: ``CooperativeStickyAssignor.memberData``.
    """
    try:
        return _Reader(data or b"").int32("generation")
    except WireError:
        return NO_GENERATION


# --- writing ---------------------------------------------------------------------------------------------


def _known_version(version: int, offset: int | None) -> int:
    if version < 0:
        raise WireError("version", offset, "0 or more", str(version))
    return min(version, NEWEST_VERSION)


def _int16(field: str, value: int) -> bytes:
    try:
        return _INT16.pack(value)
    except struct.error:
        raise WireError(field, None, "an int16", repr(value)) from None


def _int32(field: str, value: int) -> bytes:
    try:
        return _INT32.pack(value)
    except struct.error:
        raise WireError(field, None, "an int32", repr(value)) from None


def _string(field: str, value: str) -> bytes:
    try:
        encoded = value.encode()
    except UnicodeEncodeError:
        raise WireError(field, None, "text that UTF-8 can hold", ascii(value)) from None
    if len(encoded) > 0x7FFF:
        raise WireError(field, None, "at most 32767 bytes of UTF-8", f"{len(encoded)} bytes")
    return _int16(field, len(encoded)) + encoded


def _nullable_bytes(field: str, value: bytes | None) -> bytes:
    return _int32(field, -1) if value is None else _int32(field, len(value)) + value


def _array(field: str, elements: list[bytes]) -> bytes:
    return _int32(field, len(elements)) + b"".join(elements)


def _topic_partitions(field: str, partitions: Iterable[TopicPartition]) -> bytes:
    """``[]{topic, []partition}``: one element per topic, in the order of first appearance."""
    by_topic: dict[str, list[int]] = {}
    for topic, partition in partitions:
        by_topic.setdefault(topic, []).append(partition)
    return _array(
        field,
        [
            _string(f"{field}.topic", topic) + _int32s(f"{field}.partitions", indexes)
            for topic, indexes in by_topic.items()
        ],
    )


def _int32s(field: str, values: list[int]) -> bytes:
    """Return an array of them, at one go."""
    try:
        return struct.pack(f">i{len(values)}i", len(values), *values)
    except struct.error:
        return _array(field, [_int32(field, value) for value in values])


# --- reading ---------------------------------------------------------------------------------------------


class _Reader:
    """A cursor over bytes that gives one field after the other or says why it cannot."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._offset = 0

    def version(self) -> int:
        return _known_version(self.int16("version"), 0)

    def int16(self, field: str) -> int:
        return int(_INT16.unpack(self._take(field, 2, "an int16"))[0])

    def int32(self, field: str) -> int:
        return int(_INT32.unpack(self._take(field, 4, "an int32"))[0])

    def string(self, field: str) -> str:
        return self._text(field, self._size(field, self.int16, least=0))

    def nullable_string(self, field: str) -> str | None:
        size = self._size(field, self.int16, least=-1)
        return None if size == -1 else self._text(field, size)

    def nullable_bytes(self, field: str) -> bytes | None:
        size = self._size(field, self.int32, least=-1)
        return None if size == -1 else self._take(field, size, f"{size} bytes")

    def length(self, field: str, smallest: int) -> int:
        """Return the length of an array whose elements take at least ``smallest`` bytes each."""
        start = self._offset
        length = self.int32(field)
        room = (len(self._data) - self._offset) // smallest
        if not 0 <= length <= room:
            raise WireError(field, start, f"an array length of 0 to {room}", str(length))
        return length

    def topic_partitions(self, field: str) -> Partitions:
        """``[]{topic, []partition}``, flat and in the order written."""
        partitions: list[TopicPartition] = []
        for _ in range(self.length(field, _MIN_TOPIC)):
            topic = self.string(f"{field}.topic")
            indexes = f"{field}.partitions"
            count = self.length(indexes, _MIN_INT32)
            found = struct.unpack(f">{count}i", self._take(indexes, _MIN_INT32 * count, "int32s"))
            partitions += [TopicPartition(topic, index) for index in found]
        return tuple(partitions)

    def _size(self, field: str, read: Callable[[str], int], least: int) -> int:
        start = self._offset
        size = read(field)
        if size < least:
            raise WireError(field, start, f"a length of {least} or more", str(size))
        return size

    def _text(self, field: str, size: int) -> str:
        start = self._offset
        text = self._take(field, size, f"{size} bytes of text")
        try:
            return text.decode()
        except UnicodeDecodeError as error:
            found = f"byte 0x{text[error.start]:02x}"
            raise WireError(field, start + error.start, "UTF-8", found) from None

    def _take(self, field: str, size: int, expected: str) -> bytes:
        taken = self._data[self._offset : self._offset + size]
        if len(taken) < size:
            raise WireError(field, self._offset, expected, f"{len(taken)} bytes before the end")
        self._offset += size
        return taken
