"""An event log of one group: the JSON lines of ``pipeline/audit/events.py``, read without Spark, and beside
them, where `rebalance record` wrote it, ``run.json``: the kind of cluster, the assignors of each stage, what
was done to whom."""

from __future__ import annotations

import json
import math
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from rebalance.model.names import unknown

LONGEST = 4 << 20
"""Characters of a line; what is longer is no event."""


class LogError(ValueError):
    """A log that is not what this can read; the text says where and why."""


@dataclass(frozen=True, kw_only=True)
class LogLine:
    """One event of the log. ``at`` is in seconds since 1970, ``number`` its line, from 1."""

    number: int
    at: float
    event: str
    consumer: str = ""
    partitions: tuple[str, ...] | None = None
    topics: tuple[str, ...] | None = None
    generation: int | None = None
    member: str = ""
    detail: str = ""

    def __str__(self) -> str:
        names = self.partitions if self.partitions is not None else self.topics
        parts = [self.consumer, self.event]
        parts += [" ".join(names) or "-"] if names is not None else []
        parts += [f"generation {self.generation}"] if self.generation is not None else []
        parts += [f"({self.detail})"] if self.detail else []
        return " ".join(filter(None, parts))


@dataclass(frozen=True)
class RecordedLog:
    """A log: the lines of one group in the order of time, and what ``run.json`` says, if there is one."""

    path: Path
    group: str
    lines: tuple[LogLine, ...]
    run: Mapping[str, Any] = field(default_factory=dict)


def read(path: Path, group: str | None = None) -> RecordedLog:
    """The events of ``group`` (the only one, if None) in a file, or in DIR/events.jsonl.

    Raises LogError for what is no event log, OSError.
    """
    file = path / "events.jsonl" if path.is_dir() else path
    found: dict[str, list[LogLine]] = {}
    with _opened(file) as lines:
        for number, text in enumerate(iter(lambda: lines.readline(LONGEST), ""), 1):
            if len(text) == LONGEST:
                raise LogError(f"{file}:{number}: a line of more than {LONGEST:,} characters")
            if text.strip():
                name, line = _line(text, f"{file}:{number}", number)
                found.setdefault(name, []).append(line)
    if not found:
        raise LogError(f"{file}: no events")
    if group is None and len(found) > 1:
        raise LogError(f"{file}: several groups: {', '.join(sorted(found))}; choose one with --group")
    name = group if group is not None else next(iter(found))
    if name not in found:
        raise LogError(f"{file}: {unknown('group', name, sorted(found))}")
    beside = file.parent / "run.json"
    run = _run(beside) if beside.exists() else {}
    return RecordedLog(file, name, tuple(sorted(found[name], key=lambda line: line.at)), run)


def _opened(path: Path) -> IO[str]:
    if not stat.S_ISREG(path.stat().st_mode):
        raise LogError(f"{path}: is no file but a pipe or a device")
    return path.open(encoding="utf-8", errors="replace")


def _json(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise LogError(f"{where}: not JSON: {error}") from error


def _run(path: Path) -> dict[str, Any]:
    with _opened(path) as file:
        run = _json(file.read(), str(path))
    if not isinstance(run, dict):
        raise LogError(f"{path}: not an object")
    for name in ("steps", "rests"):
        value = run.get(name, [])
        if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
            raise LogError(f"{path}: field {name!r} is not a list of objects")
    return run


def _line(text: str, where: str, number: int) -> tuple[str, LogLine]:
    data = _json(text, where)
    if not isinstance(data, dict):
        raise LogError(f"{where}: not an object")
    for name, kind in (("event", str), ("group", str)):
        if not isinstance(data.get(name), kind):
            raise LogError(f"{where}: field {name!r} is {json.dumps(data.get(name))}, expected a string")
    generation = data.get("generation")
    if generation is not None and (isinstance(generation, bool) or not isinstance(generation, int)):
        raise LogError(f"{where}: field 'generation' is {json.dumps(generation)}, expected a whole number")
    line = LogLine(
        number=number,
        at=seconds_of(data.get("at"), where),
        event=data["event"],
        consumer=str(data.get("consumer") or ""),
        partitions=_names(data, "partitions", where),
        topics=_names(data, "topics", where),
        generation=generation,
        member=str(data.get("member") or ""),
        detail=str(data.get("detail") or ""),
    )
    return data["group"], line


def seconds_of(value: Any, where: str) -> float:
    try:
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            return float(value)
        at = datetime.fromisoformat(value)
    except (TypeError, ValueError, OverflowError):
        shown = json.dumps(value)[:60]
        raise LogError(f"{where}: field 'at' is {shown}, expected ISO 8601 or seconds since 1970") from None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


def _names(data: Mapping[str, Any], name: str, where: str) -> tuple[str, ...] | None:
    value = data.get(name)
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise LogError(f"{where}: field {name!r} is {json.dumps(value)[:60]}, expected a list of strings")
    return tuple(value)
