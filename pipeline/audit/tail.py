"""Log files that grow, as a stream: Spark's own file stream reads each file once, when it appears.

An offset says how far each file was read, in bytes and lines. A file is known by its inode, so that one that
is renamed by rotation is read on, and the new one of its name from its beginning. What is compressed is left
out: it was read before it was.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

COMPRESSED = (".gz", ".bz2", ".zst", ".xz", ".zip", ".lz4", ".snappy")
CHUNK = 1 << 20
TICK = "tick"
"""Counts time in the offset, so that something comes of it when nothing is written."""


@dataclass(frozen=True, kw_only=True)
class Stretch(InputPartition):
    """The bytes of a file to read. ``first`` is the number of the first line in them."""

    file: str
    inode: str
    start: int
    end: int
    first: int


class Tail(DataSource):
    """``spark.readStream.format("rebalance-tail")``: file string, line bigint, value string.

    Options: ``path`` (a directory, read with all below it, or a file) and ``tick`` (seconds after which there
    is a micro-batch even when nothing was written; none by default).
    """

    @classmethod
    def name(cls) -> str:
        return "rebalance-tail"

    def schema(self) -> str:
        return "file string, line bigint, value string"

    def streamReader(self, schema: Any) -> TailReader:
        return TailReader(self.options["path"], float(self.options.get("tick", 0)))


class TailReader(DataSourceStreamReader):
    """Offsets are ``{inode: {"file": path, "bytes": n, "lines": n}}``."""

    def __init__(self, path: str, tick: float = 0.0) -> None:
        self.path, self.tick = path, tick
        self.known: dict[str, dict[str, Any]] = {}

    def initialOffset(self) -> dict[str, Any]:
        """Nothing was read."""
        return {}

    def latestOffset(self, start: dict[str, Any] | None = None, limit: Any = None) -> dict[str, Any]:
        """How far the files go now, to the end of the last whole line.

        Before Spark 4.2 there is no ``start``; then lines are counted from the beginning of a file, once.
        """
        self.known = {**self.known, **{k: v for k, v in (start or {}).items() if k != TICK}}
        found = {}
        for file in _files(self.path):
            try:
                found.update(self._end(file))
            except FileNotFoundError:  # rotated away just now; it comes again under its next name
                continue
        self.known = found
        return {**found, **({TICK: int(time.time() / self.tick)} if self.tick else {})}

    def _end(self, file: Path) -> dict[str, dict[str, Any]]:
        with file.open("rb") as stream:
            inode = _inode(file)
            before = self.known.get(inode, {"bytes": 0, "lines": 0})
            if file.stat().st_size < before["bytes"]:  # emptied and begun again
                before = {"bytes": 0, "lines": 0}
            end, lines = before["bytes"], before["lines"]
            at = stream.seek(end)
            while block := stream.read(CHUNK):
                newlines = block.count(b"\n")
                if newlines:
                    lines += newlines
                    end = at + block.rindex(b"\n") + 1
                at += len(block)
        return {inode: {"file": str(file), "bytes": end, "lines": lines}}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """One for each file that has grown."""
        stretches = []
        for inode, to in sorted(end.items(), key=lambda item: str(item[1])):
            if inode == TICK:
                continue
            since = start.get(inode, {"bytes": 0, "lines": 0})
            if to["bytes"] < since["bytes"]:
                since = {"bytes": 0, "lines": 0}
            if to["bytes"] > since["bytes"]:
                stretches.append(
                    Stretch(
                        file=to["file"],
                        inode=inode,
                        start=since["bytes"],
                        end=to["bytes"],
                        first=since["lines"] + 1,
                    )
                )
        return stretches

    def read(self, partition: InputPartition) -> Iterator[tuple[str, int, str]]:
        """The lines of one file, without their line ends."""
        assert isinstance(partition, Stretch)
        file = Path(partition.file)
        if not file.exists() or _inode(file) != partition.inode:  # rotated since
            file = next((f for f in _files(self.path) if _inode(f) == partition.inode), file)
        with file.open("rb") as stream:
            at, line = stream.seek(partition.start), partition.first
            while at < partition.end:
                text = stream.readline()
                at += len(text)
                yield partition.file, line, text.rstrip(b"\r\n").decode("utf-8", "replace")
                line += 1


def _files(path: str) -> list[Path]:
    root = Path(path)
    files = [root] if root.is_file() else root.rglob("*")
    return sorted(f for f in files if f.is_file() and not _aside(f, root))


def _aside(file: Path, root: Path) -> bool:
    hidden = any(part.startswith((".", "_")) for part in file.relative_to(root).parts)
    return hidden or file.suffix in COMPRESSED


def _inode(file: Path) -> str:
    status = file.stat()
    return f"{status.st_dev}:{status.st_ino}"
