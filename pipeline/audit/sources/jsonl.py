"""Our own event log: one JSON object a line (``events``), read strictly."""

from __future__ import annotations

import json
from typing import Any

from rebalance.pipeline.audit.sources.events import AT_CONSUMER, LISTS, TEXTS, Kind
from rebalance.pipeline.audit.sources.rows import EventPart, LineRow, NoPartition, named
from rebalance.pipeline.audit.sources.times import iso

NAME = "events"


class NotOurs(ValueError):
    """A line that is no event; the text says why."""


def claimed(text: str) -> bool:
    """Whether a line may be of our log, a truncated one too: an object with an event and its time."""
    return text.startswith("{") and (('"event"' in text and '"at"' in text) or text.startswith('{"at"'))


def read(text: str, zone: str) -> list[LineRow]:
    """The event of a line, a row for each topic and partition. Raises NotOurs.

    >>> read('{"at": 1, "event": "stable", "group": "g", "generation": 2}', "UTC")[0].generation
    2
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise NotOurs("not JSON") from None
    if not isinstance(value, dict):
        raise NotOurs("not JSON")
    texts = {name: _text(value.get(name)) for name in TEXTS}
    lists = {name: _texts(value.get(name)) for name in LISTS}
    generation, stamp = value.get("generation"), _text(value.get("at"))
    if generation is not None and (type(generation) is not int or abs(generation) >= 2**31):
        raise NotOurs("a field is not of its type")
    kind = texts["event"]
    if not kind:
        raise NotOurs("event is missing")
    if kind not in _KINDS:
        raise NotOurs(f"no such event: {kind[:100]}")
    if not stamp:
        raise NotOurs("at is missing")
    at = iso(stamp, zone)
    if at is None:
        raise NotOurs(f"at is neither ISO 8601 nor seconds since 1970: {stamp[:100]}")
    if not texts["group"]:
        raise NotOurs("group is missing")
    if kind in AT_CONSUMER and not texts["consumer"]:
        raise NotOurs("consumer is missing")
    try:
        parts = [*map(EventPart, lists["topics"]), *map(named, lists["partitions"])]
    except NoPartition:
        raise NotOurs("a partition that is not topic-number") from None
    row = LineRow(
        at=at,
        kind=kind,
        group=texts["group"],
        client=texts["consumer"],
        member=texts["member"],
        instance=texts["instance"],
        generation=generation,
        detail=texts["detail"],
        host=texts["host"],
        source=NAME,
    )
    return [row._replace(topic=part.topic, partition=part.partition) for part in parts or [EventPart()]]


_KINDS = frozenset(map(str, Kind))


def _text(value: Any) -> str | None:
    if isinstance(value, (dict, list)):
        raise NotOurs("a field is not of its type")
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value)


def _texts(value: Any) -> list[str]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise NotOurs("a field is not of its type")
    return [text for one in value if (text := _text(one)) is not None]
