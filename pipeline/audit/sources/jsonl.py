"""Our own event log: one JSON object a line (``events``), read strictly."""

from __future__ import annotations

import json
from typing import Any

from rebalance_verifier.pipeline.audit.sources.events import AT_CONSUMER, LISTS, TEXTS, Kind
from rebalance_verifier.pipeline.audit.sources.rows import LineRow, NoPartition, named
from rebalance_verifier.pipeline.audit.sources.times import iso

NAME = "events"
BESIDE = frozenset(("polled", "owned", "owns", "error", "request", "answer", "target", "state", "converted"))
"""What `rebalance record` writes of reads and messages, which says nothing of a membership."""


class NotOurs(ValueError):
    """A line that is no event; the text says why."""


def claimed(text: str) -> bool:
    """Check whether a line may be of our log, a truncated one too: an object with an event and its time."""
    return text.startswith("{") and (('"event"' in text and '"at"' in text) or text.startswith('{"at"'))


def read(text: str, zone: str, file: str = "", line: int = 0) -> list[LineRow]:
    """Return the event of a line, a row for each topic and partition; none of what a recording says beside
    the membership. Raises NotOurs.

    >>> read('{"at": 1, "event": "stable", "group": "g", "generation": 2}', "UTC")[0].generation
    2
    """
    try:
        value = _decode(text)
    except (ValueError, RecursionError):
        raise NotOurs("not JSON") from None
    if not isinstance(value, dict):
        raise NotOurs("not JSON")
    get = value.get
    kind, group, consumer, member, instance, detail, host, protocol = [_text(get(name)) for name in TEXTS]
    topics, partitions = [_texts(get(name)) for name in LISTS]
    generation, stamp = get("generation"), _text(get("at"))
    if generation is not None and (type(generation) is not int or abs(generation) >= 2**31):
        raise NotOurs("a field is not of its type")
    if not kind:
        raise NotOurs("event is missing")
    if kind not in _KINDS and kind not in BESIDE:
        raise NotOurs(f"no such event: {kind[:100]}")
    if not stamp:
        raise NotOurs("at is missing")
    at = iso(stamp, zone)
    if at is None:
        raise NotOurs(f"at is neither ISO 8601 nor seconds since 1970: {stamp[:100]}")
    if kind in BESIDE:
        return []
    if not group:
        raise NotOurs("group is missing")
    if not consumer and kind in AT_CONSUMER:
        raise NotOurs("consumer is missing")
    try:
        parts = [*[(topic, None) for topic in topics], *[named(name)[:2] for name in partitions]]
    except NoPartition:
        raise NotOurs("a partition that is not topic-number") from None
    who = at, kind, group, consumer, member, instance, generation
    where = host, NAME, file, line, protocol, None, ""
    return [
        LineRow._make((*who, topic, partition, detail, None, "", "", *where))
        for topic, partition in parts or _NOTHING
    ]


def when(text: str, zone: str) -> int | None:
    """Return the time of a line that can be read.

    >>> when('{"at": 1, "event": "polled"}', "UTC")
    1000000
    """
    return iso(_text(_decode(text)["at"]) or "", zone)


_decode = json.JSONDecoder().decode
_NOTHING: list[tuple[str | None, int | None]] = [(None, None)]
_KINDS = frozenset(map(str, Kind))


def _text(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, str):
        if "\0" in value or not (value.isascii() or value.isprintable() or _is_text(value)):
            raise NotOurs("characters that no text has")
        return value
    if isinstance(value, (dict, list)):
        raise NotOurs("a field is not of its type")
    return json.dumps(value)


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _texts(value: Any) -> list[str]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise NotOurs("a field is not of its type")
    return [text for one in value if (text := _text(one)) is not None]
