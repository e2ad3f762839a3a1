"""Partitions and plans in the notations of clients: as values of structured logs, and as text.

t-0, t-1        [t-0]        {TopicPartition(topic='t', partition=0)}      Java, Python
t[0 1], u[2]    {"t": [0, 1]}    map[{topic:t partition:0}:42]             franz-go, kafkajs, kafka-go
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

_SHARE = re.compile(r"(?:^\{|, )([^,={}]+)=Assignment\(partitions=\[([^\[\]]*)\]")
"""``{consumer-1-uuid=Assignment(partitions=[t-0, t-1]), consumer-2-uuid=Assignment(partitions=[])}``"""

_TIED = re.compile(r"TopicPartition\(topic='([^']*)', partition=(\d+)\)")
_KEYED = re.compile(r"\{topic:([^\s{}]+) partition:(\d+)\}")
_NUMBERED = re.compile(r"([^\s,\[\]{}:\"]+):?\[([\d ,]*)\]")
_NUMBERED_ONLY = re.compile(rf"(?:map\[)?(?:{_NUMBERED.pattern}(?:, ?| |$)?)+\]?")
_TARGET = re.compile(r"(?:^\{|, )([^,={}]+)=(?:Member)?Assignment\((?:target)?[pP]artitions=\{([^{}]*)\}\)")
_OF_TOPIC = re.compile(r"([\w-]+)=\[([\d, ]*)\]")
"""A broker's: ``{m-1=MemberAssignment(partitions={ID=[0, 1]}), m-2=MemberAssignment(partitions={})}``."""

_BRACED = re.compile(r"\{([^{}]*)\}")


def listed(text: str) -> list[str]:
    """Return the names in a list: ``a, b`` or ``[a, b]``, Python's sets, and the notations of Go.

    >>> listed("[t-0, t-1]"), listed("t[0 1], u[2]"), listed("map[{topic:t partition:3}:42]"), listed("")
    (['t-0', 't-1'], ['t-0', 't-1', 'u-2'], ['t-3'], [])
    """
    if "TopicPartition(" in text:
        return [f"{topic}-{number}" for topic, number in _TIED.findall(text)]
    if text.startswith("map[") and (text == "map[]" or _KEYED.search(text)):
        return [f"{topic}-{number}" for topic, number in _KEYED.findall(text)]
    if text[:1] != "[" and text[-1:] == "]" and _NUMBERED_ONLY.fullmatch(text):
        return [
            f"{topic}-{number}"
            for topic, numbers in _NUMBERED.findall(text.removeprefix("map["))
            for number in re.findall(r"\d+", numbers)
        ]
    if text.startswith("[{"):  # as JSON, with the ids of topics
        return listed(written(text) or "")
    bare = text.strip("[] ")
    if bare[-1:] in ("}", ")", "'"):
        return re.findall("'([^']*)'", bare)
    return re.split(", ?", bare) if bare else []


def planned(text: str) -> list[tuple[str, list[str]]]:
    """Return the members of a leader's plan, each with its partitions.

    >>> planned("{m-1=Assignment(partitions=[t-0])}"), planned("m-1{t[0 1]}, m-2{}")
    ([('m-1', ['t-0'])], [('m-1', ['t-0', 't-1']), ('m-2', [])])
    """
    if targets := _TARGET.findall(text):
        return [
            (member, [f"{topic}-{n}" for topic, several in _OF_TOPIC.findall(share) for n in listed(several)])
            for member, share in targets
        ]
    shares = _SHARE.findall(text) or ([] if text.startswith("{") else _of_members(text))
    return [(member, listed(share)) for member, share in shares]


def _of_members(text: str) -> Iterator[tuple[str, str]]:
    """Yield the shares of ``consumer-1-uuid{t[0 1]}, consumer-2-uuid{}``: no name is searched twice, since a
    hostile line may be as long as it likes."""
    end = 0
    for found in _BRACED.finditer(text):
        before = text[end : found.start()]
        member = before.removeprefix(", ")
        if member and (not end or member != before) and not {"{", "}"} & set(member):
            yield member, found[1]
        end = found.end()


def written(value: Any) -> str | None:
    """Return what a field says as text that `listed` reads; None for no list of partitions.

    >>> written({"t": [0, 1]}), written("t[0 1]"), written([{"topic": "t", "partitions": [2]}]), written(7)
    ('t-0, t-1', 't[0 1]', 't-2', None)
    """
    if isinstance(value, str):
        if value[:1] in ("{", "["):
            try:
                return written(json.loads(value))
            except (ValueError, RecursionError):
                pass
        return value
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return ", ".join(value)
    names: list[str] = []
    for topic, numbers in _by_topic(value):
        if not isinstance(topic, str) or not isinstance(numbers, list) or not all(map(_is_number, numbers)):
            return None
        names += [f"{topic}-{number}" for number in numbers]
    return ", ".join(names) if isinstance(value, Mapping | list) else None


def _by_topic(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield topics with their partitions, of a mapping or of a list of objects; None for what is neither."""
    if isinstance(value, Mapping):
        yield from value.items()
    elif isinstance(value, list):
        for one in value:
            named = one if isinstance(one, Mapping) else {}
            yield named.get("topic", named.get("topicId")), named.get("partitions")


def _is_number(value: Any) -> bool:
    """Check whether a value of a log can be the number of a partition."""
    return type(value) is int and 0 <= value < 2**31
