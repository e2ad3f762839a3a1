"""Clients whose lines are a short message with fields, as structured loggers write them.

[INFO] synced; group: g, assigned: t[0 1]                                 franz-go's own
{"level": "info", "msg": "synced", "group": "g", "assigned": "t[0 1]"}    JSON
INFO    synced  {"group": "g", "assigned": "t[0 1]"}                      zap, winston
level=info msg=synced group=g assigned="t[0 1]"                           logfmt
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

from rebalance_verifier.pipeline.audit.sources.assignments import written
from rebalance_verifier.pipeline.audit.sources.envelopes import INNER, Wrapped, pairs_of
from rebalance_verifier.pipeline.audit.sources.patterns import CAPTURES, KnownLine, Reading, UnrecognisedTail

PLAIN_WORDS = 2
"""A message of so few words may be anybody's: it is the client's where the fields stand with it."""

DEEPER = (*INNER, "extra", "context", "meta", "metadata", "data", "payload", "kafka", "params")
"""Objects of a document in which loggers put the fields."""

_KEYED = re.compile(r"(?:^|, )(\w+):(?: |$)")
_NOTHING = ("", "<nil>", "null", "None", "undefined")


class FieldName(NamedTuple):
    """Where a row finds what: the capture ``name`` in ``field``."""

    name: str
    field: str
    pattern: re.Pattern[str] | None
    """What the field must say."""
    optional: bool


@dataclass(frozen=True)
class FieldLine(KnownLine):
    """A message, the fields that go with it, and the event; without an event it is of no interest.

    ``rest`` names captures: ``member``, ``member=member_id``, ``instance=instance_id?`` where it may be
    missing, ``detail=err~REGEX`` where it must say that.
    """

    @cached_property
    def fields(self) -> tuple[FieldName, ...]:
        """The names in ``rest``. Raises ValueError for a capture that there is not."""
        found = []
        for token in self.rest.split():
            named, _, pattern = token.partition("~")
            name, _, field = named.rstrip("?").partition("=")
            if name not in CAPTURES:
                raise ValueError(f"{self.start!r}: no such capture: {name}")
            wanted = re.compile(pattern) if pattern else None
            found.append(FieldName(name, field or name, wanted, named.endswith("?")))
        return tuple(found)

    def caught(self, fields: Mapping[str, Any]) -> dict[str, str] | None:
        """Return what the fields say; None where one is missing or says something else."""
        found: dict[str, str] = {}
        for name, field, pattern, optional in self.fields:
            value = looked_up(fields, field)
            lists = name in ("partitions", "plan", "topics")
            text = written(value) if lists and value is not None else _text(value)
            if text is None or (not lists and text in _NOTHING):
                if optional:
                    continue
                return None
            if pattern is not None and not pattern.search(text):
                return None
            found[name] = text
        return found


@dataclass(frozen=True, kw_only=True)
class FieldSource:
    """Source of such lines."""

    name: str
    marks: tuple[str, ...]
    lines: tuple[FieldLine, ...]
    client: str
    level: str
    loose: ClassVar[bool] = True
    opening: ClassVar[str] = ""

    @cached_property
    def _by_message(self) -> dict[str, list[FieldLine]]:
        found: dict[str, list[FieldLine]] = {}
        for line in self.lines:
            found.setdefault(line.start, []).append(line)
        return found

    @cached_property
    def _message(self) -> re.Pattern[str]:
        starts = "|".join(re.escape(one) for one in sorted(self._by_message, key=len, reverse=True))
        ends = r"\s*$|\s*\n|[\"']|; \w+:(?: |$)|\s*\{|\s+[\w.]+=|\s\s"
        return re.compile(rf"(?:^|[\s\"'>:|])(?:\[\w+\] )?({starts})(?={ends})")

    def claims(self, text: str) -> bool:
        """Return whether a line may be of this source: cheap, for every line."""
        return any(map(text.__contains__, self.marks))

    def read(self, wrapped: Wrapped) -> Reading | None:
        """Return what a line says; None for one that is not of this source.

        Raises UnrecognisedTail where the message is one of theirs, and its fields are not on the line.
        """
        for head, message, fields in self._spoken(wrapped):
            rows = self._by_message.get(message, ())
            for row in rows:
                if (caught := row.caught(fields)) is not None:
                    return Reading({"head": head}, row, caught, message)
            if rows and len(message.split()) > PLAIN_WORDS:
                wanted = ", ".join(name.field for name in rows[0].fields if not name.optional)
                raise UnrecognisedTail(
                    f"the fields of {message!r} are not on its line ({wanted}): log JSON or logfmt"
                )
        return None

    def _spoken(self, wrapped: Wrapped) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
        text = wrapped.text
        found = self._message.search(text)
        if found is None:
            return
        head, tail = text[: found.start(1)], text[found.end(1) :]
        fields = {**(wrapped.fields or {}), **pairs_of(text), **fields_of(tail)}
        yield head, found[1], fields


def looked_up(fields: Mapping[str, Any], name: str, depth: int = 0) -> Any:
    """Return a field of a document, or of an object in it in which loggers put fields; None for none."""
    if name in fields:
        return fields[name]
    for key in DEEPER if depth < 4 else ():
        inner = fields.get(key)
        if isinstance(inner, dict) and (value := looked_up(inner, name, depth + 1)) is not None:
            return value
    return None


def fields_of(tail: str) -> dict[str, Any]:
    """Return the fields that stand behind a message.

    >>> fields_of("; group: g, added: t[0 1], u[2], lost: ")
    {'group': 'g', 'added': 't[0 1], u[2]', 'lost': ''}
    >>> fields_of('\\t{"group": "g"}'), fields_of(" and so on")
    ({'group': 'g'}, {})
    >>> fields_of(" { group: 'g', share: { t: [ 0, 1 ] }, error: undefined }")
    {'group': 'g', 'share': {'t': [0, 1]}, 'error': None}
    >>> fields_of('\\n    group: "g"\\n    share: {\\n      "t": [\\n        0\\n      ]\\n    }')
    {'group': 'g', 'share': {'t': [0]}}
    """
    if tail.startswith("; "):
        names = _KEYED.split(tail[2:])
        return dict(zip(names[1::2], names[2::2], strict=True))
    bare = tail.lstrip(" \t\n")
    if bare.startswith("{"):
        return _object(bare) or _object(_JS.sub(_quoted, bare)) or {}
    if _PRETTY.match(bare):
        return _object("{" + ",".join(_PRETTY.sub(r'"\1":', one) for one in _BELOW.split(bare)) + "}") or {}
    return {}


_JS = re.compile(
    r"""'((?:[^'\\]|\\.)*)'|"(?:[^"\\]|\\.)*"|([A-Za-z_$][\w$]*)(?=:)|\bundefined\b|\[Object\]"""
)
"""Texts and names in an object as node writes it to its console: ``{ groupId: 'g', isLeader: true }``."""


def _quoted(found: re.Match[str]) -> str:
    whole, text, name = found[0], found[1], found[2]
    if text is not None:
        return json.dumps(text.replace("\\'", "'"))
    return json.dumps(name) if name else whole if whole[0] == '"' else "null"


_PRETTY = re.compile(r"^(\w+): ")
_BELOW = re.compile(r"\n[ \t]*(?=\w+: )")
"""A field on a line of its own below the message, as pino-pretty writes it: ``    groupId: "g"``."""


def _object(text: str) -> dict[str, Any] | None:
    """Return the object that a text begins with, or None."""
    try:
        value, _ = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, (dict, list)):
        return None
    return value if isinstance(value, str) else json.dumps(value)
