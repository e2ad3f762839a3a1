"""Logs on this machine, read in this process: no Spark, no database."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rebalance_verifier.base.names import unknown
from rebalance_verifier.pipeline.audit.sources.events import EventRow
from rebalance_verifier.pipeline.audit.sources.parsing import KINDS, LineParser
from rebalance_verifier.pipeline.audit.sources.reading import TABLE, Content, NoInput, Unread, files
from rebalance_verifier.pipeline.audit.sources.rows import MalformedLine
from rebalance_verifier.pipeline.audit.sources.settling import LoggedClient, Note, settle


class LineCount(NamedTuple):
    """The lines of a file that are of a source (None: of nobody we know), and those that are events."""

    file: str
    source: str | None
    lines: int
    recognised: int


class Logs(NamedTuple):
    """Content of logs."""

    events: list[EventRow]
    """In no order. A consumer of a text log is ``client.id@process``: the pod, host or prefix that stands
    with its lines, or else the file's name below the directory that all have in common, without what rotation
    adds."""
    malformed: list[MalformedLine]
    lines: list[LineCount]
    unread: list[Unread]
    notes: list[Note]
    clients: list[LoggedClient]
    until: int | None
    """The last time in these logs, in microseconds since 1970: of whatever line."""


def listed(paths: Sequence[str]) -> tuple[list[str], list[str], list[Unread]]:
    """Of local paths the logs, the Parquet files, and what cannot be listed. Raises NoInput."""
    if not paths:
        raise NoInput("no paths given")
    found: list[str] = []
    unread: list[Unread] = []
    for path in paths:
        names, failed = files(path)
        found += names
        unread += failed
    names = sorted(dict.fromkeys(found))
    return (
        [name for name in names if not name.endswith(TABLE)],
        [name for name in names if name.endswith(TABLE)],
        unread,
    )


def read(
    paths: Sequence[str], kind: str | None = None, *, zone: str = "UTC", date: str | None = None
) -> Logs:
    """The events of text files, compressed or not: the files themselves, all below directories, and globs.

    ``kind`` is one of ``KINDS``: lines of other sources are then left alone, and of ``events`` every line
    must be one. ``zone`` is that of times which have none, ``date`` (``2024-01-02``) the day of those that
    have none.
    Parquet is left out. Raises NoInput for a path that does not exist or matches nothing, and ValueError.
    """
    logs, _, unread = listed(paths)
    parser = parsed(logs, kind, zone=zone, date=date, unread=unread)
    settled = settle(parser.rows)
    counts = [LineCount(file, source, *counted) for (file, source), counted in parser.counts.items()]
    return Logs(
        events=settled.events,
        malformed=parser.malformed,
        lines=sorted(counts, key=str),
        unread=unread,
        notes=settled.notes,
        clients=settled.clients,
        until=parser.until,
    )


def parsed(
    logs: Sequence[str],
    kind: str | None = None,
    *,
    zone: str = "UTC",
    date: str | None = None,
    unread: list[Unread],
    parent: str | None = None,
) -> LineParser:
    """Return the events and figures of these files; what cannot be read is added to ``unread``."""
    if kind is not None and kind not in KINDS:
        raise ValueError(unknown("kind of log", kind, KINDS))
    around = common(logs[0], logs[-1]) if parent is None and logs else parent or ""
    parser = LineParser(kind, zone=zone, date=date, parent=around)
    for file in logs:
        content = Content(file)
        parser.content(file, content)
        unread += content.unread
    return parser


def common(least: str, most: str) -> str:
    """The directory that all names between two have in common, with its slash.

    >>> common("/logs/a/app.log", "/logs/b/app.log"), common("/logs/a.log", "/logs/a.log")
    ('/logs/', '/logs/')
    """
    same = next((i for i, (a, b) in enumerate(zip(least, most, strict=False)) if a != b), len(least))
    return least[: least[:same].rfind("/") + 1]


@contextlib.contextmanager
def unswept() -> Iterator[None]:
    """Without looking for cycles meanwhile: among millions of rows, which have none, that takes a third."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
