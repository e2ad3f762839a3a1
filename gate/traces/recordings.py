"""What an audit found, with what the log says around it, on disk: one JSON file each, to read and to draw.

``gate/traces/schemas/recording.schema.json`` describes the file. It is a recording of something that ran, not
a run of the model, so it is shown (``rebalance show``) and never replayed. Files of this kind are told from
others by their field ``kind``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rebalance.gate.traces.counterexamples import field_of, is_kind, read_as
from rebalance.gate.traces.files import SUITE, NewerSchema, TraceError, dump, write
from rebalance.pipeline.audit.records import LEVELS, FindingOwner, LogEvent, LogFinding, Recording

KIND = "recording"
SCHEMA = 1
"""Raised when older readers would misread the file."""

# -- JSON ----------------------------------------------------------------------------------------------


def time_out(at: datetime | None) -> str | None:
    """A time as it is written: UTC, to the microsecond."""
    return None if at is None else at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def finding_out(finding: LogFinding) -> dict[str, Any]:
    """A finding as JSON, in reports and recordings alike."""
    return {
        "id": finding.id,
        "check": finding.check,
        "level": finding.level,
        "group": finding.group,
        "topic": finding.topic,
        "partition": finding.partition,
        "began": time_out(finding.began),
        "ended": time_out(finding.ended),
        "seconds": finding.seconds,
        "owners": [
            {"consumer": owner.consumer, "member": owner.member, "generation": owner.generation}
            for owner in finding.owners
        ],
        "skew": finding.skew,
        "certain": finding.certain,
        "sentence": finding.sentence,
        "places": [
            {
                "at": time_out(event.at),
                "kind": event.kind,
                "consumer": event.consumer,
                "generation": event.generation,
                "file": event.file,
                "line": event.line,
            }
            for event in finding.places
        ],
    }


def finding_in(data: Mapping[str, Any], where: str = "") -> LogFinding:
    """The inverse of ``finding_out``. Raises TraceError that names the field."""
    level = field_of(data, "level", str, where=where)
    if level not in LEVELS:
        raise TraceError(f"field '{where}level' is {level!r}, expected {', '.join(LEVELS)}")
    began, ended = _time(data, "began", where), _time(data, "ended", where, needed=False)
    assert began is not None
    return LogFinding(
        id=field_of(data, "id", str, where=where),
        check=field_of(data, "check", str, where=where),
        level=level,
        group=field_of(data, "group", str, where=where),
        topic=_text(data, "topic", where),
        partition=_number(data, "partition", where),
        began=began,
        ended=ended,
        seconds=field_of({"seconds": _seconds(data, "seconds", where)}, "seconds", float, where=where),
        owners=tuple(
            FindingOwner(
                _text(owner, "consumer", inside),
                _text(owner, "member", inside),
                _number(owner, "generation", inside),
            )
            for owner, inside in _objects(data, "owners", where)
        ),
        skew=_seconds(data, "skew", where),
        certain=field_of(data, "certain", bool, where=where),
        places=tuple(_seen(event, inside) for event, inside in _objects(data, "places", where)),
        sentence=field_of(data, "sentence", str, "", where),
    )


def _seen(data: Mapping[str, Any], where: str) -> LogEvent:
    at = _time(data, "at", where)
    assert at is not None
    return LogEvent(
        at=at,
        kind=field_of(data, "kind", str, where=where),
        file=field_of(data, "file", str, where=where),
        line=field_of(data, "line", int, where=where),
        consumer=_text(data, "consumer", where),
        member=_text(data, "member", where),
        generation=_number(data, "generation", where),
        topic=_text(data, "topic", where),
        partition=_number(data, "partition", where),
        detail=_text(data, "detail", where),
        host=_text(data, "host", where),
    )


def _objects(data: Mapping[str, Any], name: str, where: str) -> list[tuple[Mapping[str, Any], str]]:
    """The objects in a list, each with the words by which its fields are named."""
    found: list[tuple[Mapping[str, Any], str]] = []
    for number, item in enumerate(field_of(data, name, list, [], where)):
        if not isinstance(item, dict):
            raise TraceError(
                f"field '{where}{name}[{number}]' is {json.dumps(item)[:60]}, expected an object"
            )
        found.append((item, f"{where}{name}[{number}]."))
    return found


def _time(data: Mapping[str, Any], name: str, where: str, *, needed: bool = True) -> datetime | None:
    if not needed and data.get(name) is None:
        return None
    text = field_of(data, name, str, where=where)
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise TraceError(f"field '{where}{name}' is {text[:60]!r}, expected a time in ISO 8601") from None
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)


def _text(data: Mapping[str, Any], name: str, where: str) -> str | None:
    return None if data.get(name) is None else field_of(data, name, str, where=where)


def _number(data: Mapping[str, Any], name: str, where: str) -> int | None:
    return None if data.get(name) is None else field_of(data, name, int, where=where)


def _seconds(data: Mapping[str, Any], name: str, where: str) -> float | None:
    value = data.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        raise TraceError(f"field '{where}{name}' is {json.dumps(value)[:60]}, expected seconds, 0 or more")
    return float(value)


# -- the file ------------------------------------------------------------------------------------------


def to_text(recording: Recording) -> str:
    """The file. What a reader wants to know comes first, the events last."""
    finding = finding_out(recording.finding)
    document = {
        "schema": SCHEMA,
        "kind": KIND,
        "suite": SUITE,
        "suite_version": recording.suite_version,
        "rule": recording.rule,
        "source": recording.source,
        "origin": dict(recording.origin),
        "finding": finding,
        "events": [_event_out(event) for event in recording.events],
    }
    return dump(document) + "\n"


def _event_out(event: LogEvent) -> dict[str, Any]:
    """An event without what the log does not say."""
    document = {
        "at": time_out(event.at),
        "kind": event.kind,
        "consumer": event.consumer,
        "member": event.member,
        "generation": event.generation,
        "topic": event.topic,
        "partition": event.partition,
        "detail": event.detail,
        "host": event.host,
        "file": event.file,
        "line": event.line,
    }
    return {name: value for name, value in document.items() if value is not None}


def save(recording: Recording, directory: Path) -> Path:
    """Write the recording, replacing one of the same finding. Raises OSError."""
    directory.mkdir(parents=True, exist_ok=True)
    return write(directory / recording.finding.file_name, to_text(recording))


def is_recording(path: Path) -> bool:
    """Whether a file says that it is a recording; false for whatever cannot be read."""
    return is_kind(KIND, path)


def load(path: Path) -> Recording:
    """The recording in a file.

    Raises ``NewerSchema`` for one of a newer suite, ``TraceError`` for all else that is wrong with it.
    """
    return replace(read_as(_parse, path), path=path)


def _parse(data: Any) -> Recording:
    if not isinstance(data, dict) or data.get("kind") != KIND:
        raise TraceError(f"not a recording: its field 'kind' is not {KIND!r}")
    schema = field_of(data, "schema", int)
    if schema > SCHEMA:
        raise NewerSchema(f"has schema {schema}, this suite reads up to {SCHEMA}: use a newer suite")
    if schema < 1:
        raise TraceError(f"schema {schema} does not exist, the first is 1")
    return Recording(
        finding=finding_in(field_of(data, "finding", dict), "finding."),
        rule=field_of(data, "rule", str, ""),
        source=field_of(data, "source", str, ""),
        events=tuple(_seen(event, where) for event, where in _objects(data, "events", "")),
        origin=field_of(data, "origin", dict, {}),
        suite_version=field_of(data, "suite_version", str, ""),
    )
