"""One message a line: JSON, read strictly, and the checks of what is read."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NoReturn, TypeVar

from rebalance_verifier.base.reading import unparsed

STRING_MAX = 2**15 - 1
"""Bytes of a string on Kafka's wire (int16 length)."""

Json = dict[str, Any]
_T = TypeVar("_T")
_E = TypeVar("_E", bound=StrEnum)


class Garbage(ValueError):
    """A message that is not of the form; the text names the place, the rule and what was found."""


encode = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


def to_line(message: Mapping[str, Any]) -> bytes:
    """Return one message as one line of ASCII."""
    return encode(message).encode("ascii") + b"\n"


def from_line(line: bytes) -> Json:
    """Return the JSON object in one line. Stricter than JSON where JSON is vague: UTF-8 only, no duplicate
    keys, no NaN. Raises Garbage."""
    try:
        message = _decode(line.decode("utf-8"))
    except Garbage:
        raise
    except (ValueError, RecursionError) as error:  # UnicodeDecodeError and JSONDecodeError are ValueErrors
        raise Garbage(f"not one line of JSON in UTF-8 ({unparsed(error)}): {show(line)}") from None
    if type(message) is not dict:
        raise Garbage(f"a message must be a JSON object, got {show(message)}")
    return message


_ADDRESS = re.compile(r" at 0x[0-9a-f]+(?=>)")


def show(value: object, limit: int = 200) -> str:
    """Return ``value`` for an error message: its repr, shortened, whatever it is; without the addresses of
    objects, which are others in each process.

    >>> show([object()])
    '[<object object>]'
    """
    try:
        text = value[:limit].decode() if isinstance(value, bytes) else _ADDRESS.sub("", ascii(value))
    except Exception:
        text = f"<{type(value).__name__}>"
    return text if len(text) <= limit else text[:limit] + "..."


def _object(pairs: list[tuple[str, Any]]) -> Json:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = Counter(key for key, _ in pairs)
        raise Garbage(f"key {show(keys.most_common(1)[0][0])} appears twice in one object")
    return found


def _constant(name: str) -> NoReturn:
    raise Garbage(f"{name} is not JSON")


_decode = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant).decode


# --- checks ----------------------------------------------------------------------------------------------

_NAMES: dict[type, str] = {dict: "an object", list: "an array", bool: "true or false", str: "text"}


def garbage(where: tuple[str, ...], text: str) -> Garbage:
    """Return the error that ``text`` says of what is ``where``, from the outside in."""
    return Garbage(": ".join((*where, text)))


def of_kind(kind: type[_T], value: object, *where: str) -> _T:
    """``value`` if it is of exactly this kind. Raises Garbage; ``where`` begins its text."""
    if type(value) is not kind:
        raise garbage(where, f"expected {_NAMES[kind]}, got {show(value)}")
    return value


def field_of(value: Mapping[str, Any], key: str, *where: str) -> Any:
    """Return what ``value`` has under ``key``. Raises Garbage; ``where`` begins its text."""
    try:
        return value[key]
    except KeyError:
        raise garbage(where, f"{key!r} is missing; got {show(list(value))}") from None


def only_known(value: Mapping[str, Any], keys: tuple[str, ...], where: str) -> None:
    """Raises Garbage for a key that is not of ``keys``."""
    # A misspelt "promises" would otherwise mean that nothing is promised and nothing is checked.
    for key in value:
        if key not in keys:
            raise Garbage(f"{where}: unknown key {show(key)}; known are {', '.join(keys)}")


def one_of(kind: type[_E], value: Any, where: str) -> _E:
    """Return the member of an enumeration. Raises Garbage; ``where`` begins its text."""
    try:
        return kind(value)
    except ValueError:
        raise Garbage(f"{where}: expected one of {', '.join(kind)}, got {show(value)}") from None


def integer(value: object, *where: str) -> int:
    """``value`` if it is an integer. Raises Garbage; ``where`` begins its text."""
    if type(value) is not int:
        raise garbage(where, f"expected an integer, got {show(value)}")
    return value


def to_text(value: object, *where: str, limit: int | None = STRING_MAX) -> str:
    """``value`` if it is a string that Kafka's wire can hold. Raises Garbage; ``where`` begins its text."""
    if not isinstance(value, str):
        raise garbage(where, f"expected a string, got {show(value)}")
    try:
        size = len(value) if value.isascii() else len(value.encode())
    except UnicodeEncodeError:  # half of a surrogate pair: legal JSON, no text
        raise garbage(where, f"not valid Unicode: {show(value)}") from None
    if limit is not None and size > limit:
        raise garbage(where, f"longer than {limit} bytes: {show(value)}")
    return value
