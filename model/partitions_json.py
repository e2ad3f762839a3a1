"""Partitions and bytes as JSON: how they cross to another process, whatever it is written in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from itertools import repeat
from typing import Any, TypeVar, cast

from rebalance_verifier.base.processes.lines import garbage, of_kind, show, to_text
from rebalance_verifier.model.values import Partitions, TopicPartition
from rebalance_verifier.model.wire import WireError
from rebalance_verifier.model.wire import decode_assignment as wire_assignment

_INT32_MAX = 2**31 - 1
_T = TypeVar("_T")


def encode_runs(partitions: Iterable[tuple[str, int]]) -> list[list[Any]]:
    """Return partitions as runs of one topic, order and repetitions kept.

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
    """Return bytes as hexadecimal digits."""
    return None if data is None else data.hex()


def partitions_of(runs: list[list[Any]]) -> Partitions:
    """Return partitions that `encode_runs` wrote, where nobody else can have."""
    return tuple([_partition(one) for topic, indexes in runs for one in zip(repeat(topic), indexes)])


def decode_runs(value: object, *where: str) -> Partitions:
    """Return partitions written by `encode_runs`. Raises Garbage; ``where`` begins its text."""
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
    """Check whether all of ``values``, and there are some, can be indexes of partitions."""
    if not values or set(map(type, values)) != {int}:
        return False
    numbers = cast(Sequence[int], values)
    return min(numbers) >= 0 and max(numbers) <= _INT32_MAX


def to_partition(topic: str, index: object, *where: str) -> TopicPartition:
    """Return a partition whose index was read from outside. Raises Garbage; ``where`` begins its text."""
    if type(index) is not int or index < 0:
        raise garbage(where, f"partition must be an integer >= 0, got {show(index)}")
    if index > _INT32_MAX:
        raise garbage(where, f"partition must fit an int32, got {show(index)}")
    return TopicPartition(topic, index)


def decode_bytes(value: object, *where: str) -> bytes | None:
    """Return bytes written by `encode_bytes`. Raises Garbage; ``where`` begins its text."""
    if value is None:
        return None
    if type(value) is str:
        with suppress(ValueError):
            data = bytes.fromhex(value)
            if 2 * len(data) == len(value):  # no blanks between the digits
                return data
    raise garbage(where, f"expected null or an even number of hexadecimal digits, got {show(value)}")


def encoded_partitions(value: object) -> Partitions:
    """Return partitions in a ConsumerProtocolAssignment."""
    return _partitions_in(of_kind(str, value))


@lru_cache(maxsize=8192)
def _partitions_in(value: str) -> Partitions:
    found = decoded(wire_assignment, value).partitions
    for topic, index in {p.topic: p.partition for p in sorted(found, reverse=True)}.items():
        to_partition(to_text(topic), index)  # the least of a topic stands for all: each is an int32
    return found


def decoded(decode: Callable[[bytes], _T], value: object, *where: str) -> _T:
    """Return what bytes of Kafka's wire hold. Raises Garbage; ``where`` begins its text."""
    data = decode_bytes(value, *where)
    if data is None:
        raise garbage(where, "expected bytes, got null")
    try:
        return decode(data)
    except WireError as error:
        raise garbage(where, str(error)) from None
