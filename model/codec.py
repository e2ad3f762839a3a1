"""Records as JSON and back, by the types of their fields: one codec for every kind of file.

A dataclass or named tuple is an object with a key for each field, in their order; sequences are lists, those
of frozen sets sorted; mappings are objects; enumerations their values; a time is ISO 8601 in UTC, a partition
``orders-0``. A field that an object has not takes its default, and keys that no field has are passed over.

What is wrong is a TraceError that names its path in the file:
``steps[3].member: expected a string, found 7``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import UTC, datetime
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from rebalance_verifier.base.saved import TraceError
from rebalance_verifier.model.values import TopicPartition

_T = TypeVar("_T")
_REQUIRED = object()

Readers = Mapping[Any, Callable[[Any], Any]]
"""How what is written in a way of its own is read, by type; ValueError and the like say what is wrong."""

_NAMES: dict[Any, str] = {
    str: "a string",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    dict: "an object",
    list: "a list",
}


def to_json(value: Any, left_out: Collection[str] = ()) -> Any:
    """``value`` as plain JSON. Of the fields named in ``left_out`` those at their default are not written.

    >>> to_json({"began": datetime(2026, 1, 2, tzinfo=UTC), "owned": (TopicPartition("orders", 0),)})
    {'began': '2026-01-02T00:00:00.000000Z', 'owned': ['orders-0']}
    """
    if isinstance(value, Enum):
        return value.value
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    if isinstance(value, TopicPartition):
        return str(value)
    if isinstance(value, Mapping):
        return {str(to_json(key)): to_json(item, left_out) for key, item in value.items()}
    if isinstance(value, frozenset):
        return sorted(to_json(item, left_out) for item in value)
    kind: type = type(value)
    if known := _fields(kind):
        items = {name: getattr(value, name) for name in known}
        return {
            name: to_json(item, left_out)
            for name, item in items.items()
            if name not in left_out or item != known[name][1]
        }
    return [to_json(item, left_out) for item in value]


def from_json(kind: type[_T], data: Any, where: str = "", readers: Readers | None = None) -> _T:
    """Return the inverse: a value of ``kind``; ``where`` is the path of ``data`` in its file. Raises
    TraceError."""
    return cast(_T, _read(kind, data, where, readers or {}))


def wrong(where: str, text: str) -> TraceError:
    """Return the error that ``text`` says of what stands at the path ``where``."""
    return TraceError(f"{where}: {text}" if where else text)


def unexpected(where: str, expected: str, found: Any) -> TraceError:
    """Return the error that something else stands there than what was expected."""
    return wrong(where, f"expected {expected}, found {json.dumps(found)[:60]}")


@cache
def _fields(kind: type) -> dict[str, tuple[Any, Any]]:
    """Name -> type and default of each field of a record; empty for what is none."""
    if is_dataclass(kind):
        defaults = {
            f.name: f.default
            if f.default is not MISSING
            else f.default_factory()
            if f.default_factory is not MISSING
            else _REQUIRED
            for f in fields(kind)
        }
    elif issubclass(kind, tuple) and hasattr(kind, "_fields"):
        named: Any = kind
        defaults = {name: named._field_defaults.get(name, _REQUIRED) for name in named._fields}
    else:
        return {}
    hints = get_type_hints(kind)
    return {name: (hints[name], default) for name, default in defaults.items()}


def _read(kind: Any, data: Any, where: str, readers: Readers) -> Any:
    origin, arguments = get_origin(kind), get_args(kind)
    if kind in readers:
        try:
            return readers[kind](data)
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            raise wrong(where, str(error)) from error
    if kind is Any:
        return data
    if origin in (Union, UnionType):
        (one,) = (argument for argument in arguments if argument is not NoneType)
        return None if data is None else _read(one, data, where, readers)
    if origin is Literal:
        if data not in arguments:
            raise unexpected(where, " or ".join(map(str, arguments)), data)
        return data
    if origin in (tuple, frozenset):
        items = enumerate(_of(list, data, where))
        return origin(_read(arguments[0], item, f"{where}[{number}]", readers) for number, item in items)
    if origin is not None:  # a mapping
        return {
            key: _read(arguments[1], item, f"{where}.{key}", readers)
            for key, item in _of(dict, data, where).items()
        }
    if issubclass(kind, Enum):
        if data not in [one.value for one in kind]:
            raise unexpected(where, "one of " + ", ".join(str(one.value) for one in kind), data)
        return kind(data)
    if kind is datetime:
        return _time(_of(str, data, where), where)
    if kind is TopicPartition:
        topic, dash, index = _of(str, data, where).rpartition("-")
        if not dash or not index.isdecimal():
            raise unexpected(where, "a partition such as orders-0", data)
        return TopicPartition(topic, int(index))
    if known := _fields(kind):
        return kind(**_record(known, _of(dict, data, where), where, readers))
    return float(_of(float, data, where)) if kind is float else _of(kind, data, where)


def _record(
    known: Mapping[str, tuple[Any, Any]], data: Mapping[str, Any], where: str, readers: Readers
) -> dict[str, Any]:
    found = {}
    for name, (kind, default) in known.items():
        inside = f"{where}.{name}" if where else name
        if name in data:
            found[name] = _read(kind, data[name], inside, readers)
        elif default is _REQUIRED:
            raise wrong(inside, "is missing")
    return found


def _of(kind: Any, data: Any, where: str) -> Any:
    """``data`` if it is of this kind: true is no number, and a whole number is one."""
    if isinstance(data, bool) is (kind is bool) and isinstance(data, (int, float) if kind is float else kind):
        return data
    raise unexpected(where, _NAMES[kind], data)


def _time(text: str, where: str) -> datetime:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise unexpected(where, "a time in ISO 8601", text) from None
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
