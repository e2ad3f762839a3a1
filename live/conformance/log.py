"""An event log of one group: the JSON lines of ``pipeline/audit/sources/events.py``, read without Spark, and
beside them, where `rebalance record` wrote it, ``run.json``: the kind of cluster, the assignors of each
stage, what was done to whom."""

from __future__ import annotations

import contextlib
import json
import math
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, NamedTuple

from rebalance_verifier.base.names import unknown
from rebalance_verifier.base.reading import Unreadable, json_of, unparsed

LONGEST = 4 << 20
"""Characters of a line; what is longer is no event."""


class LogError(ValueError):
    """A log that is not what this can read; the text says where and why."""


class FieldCheck(NamedTuple):
    """Condition on a field: a test, and how it is called."""

    holds: Callable[[Any], bool]
    called: str


def _lists(of: FieldCheck) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(map(of.holds, value))


TEXT = FieldCheck(lambda value: isinstance(value, str), "a string")
WHOLE = FieldCheck(lambda value: isinstance(value, int) and not isinstance(value, bool), "a whole number")
NATURAL = FieldCheck(lambda value: WHOLE.holds(value) and value >= 0, "a whole number from 0 on")
TEXTS = FieldCheck(_lists(TEXT), "a list of strings")
LISTS = FieldCheck(_lists(TEXTS), "a list of lists of strings")
OBJECT = FieldCheck(lambda value: isinstance(value, dict), "an object")

OF_STEP = ("stage", "partitions")
"""Numbers of the steps of ``run.json``."""


def checked(data: Mapping[str, Any], name: str, check: FieldCheck, where: str) -> Any:
    """Return the field ``name``. Raises LogError where it is not as it has to be."""
    value = data.get(name)
    if not check.holds(value):
        raise LogError(f"{where}: field {name!r} is {json.dumps(value)[:60]}, expected {check.called}")
    return value


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
    """Return the events of ``group`` (the only one, if None) in a file, or in DIR/events.jsonl.

    Raises LogError for what is no event log, OSError.
    """
    file = path / "events.jsonl" if path.is_dir() else path
    found: dict[str, list[LogLine]] = {}
    for number, data in rows(file):
        name, line = _line(data, f"{file}:{number}", number)
        found.setdefault(name, []).append(line)
    if not found:
        raise LogError(f"{file}: no events")
    if group is None and len(found) > 1:
        raise LogError(f"{file}: several groups: {', '.join(sorted(found))}; choose one with --group")
    name = group if group is not None else next(iter(found))
    if name not in found:
        raise LogError(f"{file}: {unknown('group', name, sorted(found))}")
    run: Mapping[str, Any] = {}
    with contextlib.suppress(FileNotFoundError):
        run = _run(file.parent / "run.json")
    return RecordedLog(file, name, tuple(sorted(found[name], key=lambda line: line.at)), run)


def rows(file: Path) -> Iterator[tuple[int, Any]]:
    """Yield the JSON values of a file that has one a line, with the number of that. Raises LogError,
    OSError."""
    with _opened(file) as lines:
        for number, text in enumerate(iter(lambda: lines.readline(LONGEST), ""), 1):
            if len(text) == LONGEST:
                raise LogError(f"{file}:{number}: a line of more than {LONGEST:,} characters")
            if text.strip():
                yield number, _json(text, f"{file}:{number}")


def _opened(path: Path) -> IO[str]:
    if not stat.S_ISREG(path.stat().st_mode):
        raise LogError(f"{path}: is no file but a pipe or a device")
    return path.open(encoding="utf-8", errors="replace")


def _json(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise LogError(f"{where}: not JSON: {unparsed(error)}") from error


def _run(path: Path) -> dict[str, Any]:
    try:
        run = json_of(path)
    except Unreadable as error:
        raise LogError(str(error)) from error
    if not isinstance(run, dict):
        raise LogError(f"{path}: not an object")
    for name in ("steps", "rests"):
        value = run.get(name, [])
        if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
            raise LogError(f"{path}: field {name!r} is not a list of objects")
    if isinstance(run.get("assignors"), list):
        checked(run, "assignors", LISTS, str(path))
    for number, step in enumerate(run.get("steps", []), 1):
        for name in filter(step.__contains__, OF_STEP):
            checked(step, name, NATURAL, f"{path}: step {number}")
    return run


def _line(data: Any, where: str, number: int) -> tuple[str, LogLine]:
    if not isinstance(data, dict):
        raise LogError(f"{where}: not an object")
    event, group = (checked(data, name, TEXT, where) for name in ("event", "group"))
    generation = data.get("generation")
    if generation is not None:
        checked(data, "generation", WHOLE, where)
    line = LogLine(
        number=number,
        at=seconds_of(data.get("at"), where),
        event=event,
        consumer=str(data.get("consumer") or ""),
        partitions=_names(data, "partitions", where),
        topics=_names(data, "topics", where),
        generation=generation,
        member=str(data.get("member") or ""),
        detail=str(data.get("detail") or ""),
    )
    return group, line


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
    return None if value is None else tuple(checked(data, name, TEXTS, where))
