"""Values of a machine as JSON and back, for a file or for another process: nothing that is read is code.

A document lists the classes and the parts, each distinct part once and after what it is made of::

    {"classes": [["model.classic.state", "Life"]], "parts": [3, "a", ["t", 0, 1]], "values": [2]}

A part is None, true, false, a number or a text as JSON has it, or a list: ``t`` and the places of its items
for a tuple, ``s`` for a frozenset, ``r`` and the place of its class for a named tuple, ``e`` for a member of
an enumeration, ``f`` a float and ``b`` bytes in hexadecimal digits.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from enum import Enum
from typing import Any

from rebalance_verifier.base.reading import fields, listed, parsed_json, whole, word
from rebalance_verifier.model.machine import Value

MAX_PARTS, MAX_DEEP = 1_000_000, 100
"""Of one value, those that are there twice counted twice: to hash it goes through them all, by recursion."""


class NotValues(ValueError):
    """Raised for what is no document of values; the text says why."""


def dumps(values: Sequence[Value]) -> bytes:
    """Return the document of values. Raises TypeError for one of another kind."""
    writer = _PartsWritten()
    numbers = [writer.number(value) for value in values]
    document = {"classes": [*writer.classes], "parts": writer.parts, "values": numbers}
    return json.dumps(document, separators=(",", ":")).encode()


class _PartsWritten:
    def __init__(self) -> None:
        self.parts: list[Any] = []
        self.classes: dict[tuple[str, str], int] = {}
        self._numbers: dict[tuple[Any, ...], int] = {}
        self._by_identity: dict[int, int] = {}  # of what the caller holds meanwhile

    def number(self, value: Any) -> int:
        """Return the place of a value among the parts."""
        if (known := self._by_identity.get(id(value))) is not None:
            return known
        kind = type(value)
        if kind in (type(None), bool, int, str):
            return self._add((kind, value), value)
        if kind is float:
            return self._add((kind, value.hex()), ["f", value.hex()])
        if kind is bytes:
            return self._add((kind, value), ["b", value.hex()])
        if isinstance(value, Enum):
            return self._add((kind, value.name), ["e", self._class(kind), value.name])
        if kind is tuple:
            part = ["t", *map(self.number, value)]
        elif kind is frozenset:
            part = ["s", *sorted(map(self.number, value))]
        elif _is_record(kind):
            part = ["r", self._class(kind), *map(self.number, value)]
        else:
            raise TypeError(f"{kind.__name__} in a value: it cannot be written")
        self._by_identity[id(value)] = number = self._add((kind, *part), part)
        return number

    def _add(self, key: tuple[Any, ...], part: Any) -> int:
        number = self._numbers.setdefault(key, len(self.parts))
        if number == len(self.parts):
            self.parts.append(part)
        return number

    def _class(self, kind: type) -> int:
        return self.classes.setdefault((kind.__module__, kind.__qualname__), len(self.classes))


def loads(document: bytes) -> list[Any]:
    """Return the values of a document. Raises NotValues."""
    try:
        data = fields(parsed_json(document.decode(), "values"))
        reader = _PartsRead([_class(*listed(one, 2)) for one in listed(data["classes"])])
        for part in listed(data["parts"]):
            reader.add(part)
        return [reader.at(number) for number in listed(data["values"])]
    except (ValueError, LookupError, TypeError) as error:
        raise NotValues(str(error)) from error


def _class(module: Any, name: Any) -> type:
    """Return a class of a loaded module that is nothing but a record."""
    found = vars(sys.modules.get(word(module), object)).get(word(name))
    if (
        isinstance(found, type)
        and found.__module__ == module
        and (_is_record(found) or issubclass(found, Enum))
    ):
        return found
    raise ValueError(f"{module[:80]}.{name[:80]} is no record of the model")


def _is_record(kind: type) -> bool:
    return issubclass(kind, tuple) and hasattr(kind, "_fields") and not issubclass(kind, Enum)


class _PartsRead:
    def __init__(self, classes: Sequence[type]) -> None:
        self._classes = classes
        self._parts: list[Value] = []
        self._sizes: list[tuple[int, int]] = []  # of each, how many parts it has in all, and how deep it goes

    def at(self, number: Any) -> Any:
        """Return a part that was read before."""
        return self._parts[whole(number, 0, len(self._parts) - 1)]

    def add(self, part: Any) -> None:
        """Read one more. Raises ValueError, LookupError, TypeError."""
        if not isinstance(part, list):
            if isinstance(part, float | dict):
                raise ValueError("expected a part")
            self._parts.append(part)
            self._sizes.append((1, 1))
            return
        kind, *rest = part
        numbers = {"t": rest, "s": rest, "r": rest[1:]}.get(word(kind), [])
        items = [self.at(number) for number in numbers]
        known = [self._sizes[number] for number in numbers]
        size, deep = 1 + sum(one for one, _ in known), 1 + max((deep for _, deep in known), default=0)
        if size > MAX_PARTS or deep > MAX_DEEP:
            raise ValueError("a value is larger than any of a search")
        self._parts.append(self._made(kind, rest, items))
        self._sizes.append((size, deep))

    def _made(self, kind: Any, rest: list[Any], items: list[Value]) -> Any:
        match kind:
            case "t":
                return tuple(items)
            case "s":
                return frozenset(items)
            case "r":
                return self._record(rest[0], items)
            case "e":
                kind = self._class(rest[0])
                if issubclass(kind, Enum):
                    return kind[word(rest[1])]
            case "f":
                return float.fromhex(word(rest[0]))
            case "b":
                return bytes.fromhex(word(rest[0]))
        raise ValueError("expected a part")

    def _record(self, number: Any, items: list[Value]) -> Any:
        kind: Any = self._class(number)
        if not _is_record(kind) or len(items) != len(kind._fields):
            raise ValueError(f"{kind.__name__} is no record of so many fields")
        return tuple.__new__(kind, items)  # no code of the class

    def _class(self, number: Any) -> type:
        return self._classes[whole(number, 0, len(self._classes) - 1)]
