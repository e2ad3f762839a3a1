"""Log files that grow: how far each was read, in bytes and lines, and what was written since.

A file is known by its inode and its first bytes, so that one that is renamed by rotation is read on, and the
new one of its name from its beginning. What is compressed is left out: it was read before it was.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rebalance_verifier.base.reading import whole, word

COMPRESSED = (".gz", ".bz2", ".zst", ".xz", ".zip", ".lz4", ".snappy")
CHUNK = 1 << 20
FIRST = 256
"""Bytes by which a file is known, besides its inode, which the next file may get."""

MAX_BYTES = 64 << 20
"""Bytes of a file that are read at a time."""


@dataclass(frozen=True, kw_only=True)
class Position:
    """How far a file was read: to the end of a whole line."""

    file: str
    bytes: int = 0
    lines: int = 0
    first: str = ""
    """Digest of its first bytes, at most FIRST and at most so many as were read."""
    life: int = 0
    """How often what has this inode was emptied, or was another file."""


@dataclass(frozen=True, kw_only=True)
class Stretch:
    """The bytes of a file to read. ``first`` is the number of the first line in them."""

    file: str
    inode: str
    start: int
    end: int
    first: int


Positions = Mapping[str, Position]
"""By inode."""


def ends(path: str, known: Positions, most: int = MAX_BYTES) -> dict[str, Position]:
    """How far the files at ``path`` go now, to the end of the last whole line; at most so many bytes
    farther."""
    found: dict[str, Position] = {}
    for file in files(path):
        try:
            found.update(_end(file, known, most))
        except FileNotFoundError:  # rotated away just now; it comes again under its next name
            continue
    return found


def _end(file: Path, known: Positions, most: int) -> dict[str, Position]:
    with file.open("rb") as stream:
        inode = _inode(file)
        before = known.get(inode, Position(file=str(file)))
        if file.stat().st_size < before.bytes or before.first != _digest(stream, before.bytes):
            before = Position(file=str(file), life=before.life + 1)
        end, lines = before.bytes, before.lines
        at = stream.seek(end)
        while block := stream.read(CHUNK):
            newlines = block.count(b"\n")
            if newlines:
                lines += newlines
                end = at + block.rindex(b"\n") + 1
            at += len(block)
            if end - before.bytes >= most:
                break
        first = _digest(stream, end)
        return {inode: Position(file=str(file), bytes=end, lines=lines, first=first, life=before.life)}


def _digest(stream: Any, read: int) -> str:
    if not read:
        return ""
    stream.seek(0)
    return hashlib.sha256(stream.read(min(FIRST, read))).hexdigest()[:16]


def stretches(start: Positions, end: Positions) -> list[Stretch]:
    """Yield the stretches between: one for each file that has grown."""
    found = []
    for inode, to in sorted(end.items(), key=lambda item: (item[1].file, item[0])):
        since = start.get(inode, Position(file=to.file))
        if to.life != since.life:
            since = Position(file=to.file)
        if to.bytes > since.bytes:
            found.append(
                Stretch(file=to.file, inode=inode, start=since.bytes, end=to.bytes, first=since.lines + 1)
            )
    return found


def lines(path: str, stretch: Stretch) -> Iterator[tuple[int, bytes]]:
    """The lines of one file with their numbers, without their line ends."""
    file = Path(stretch.file)
    if not file.exists() or _inode(file) != stretch.inode:  # rotated since
        file = next((f for f in files(path) if _inode(f) == stretch.inode), file)
    with file.open("rb") as stream:
        at, number = stream.seek(stretch.start), stretch.first
        while at < stretch.end:
            text = stream.readline()
            if not text:
                return
            at += len(text)
            yield number, text.rstrip(b"\r\n")
            number += 1


def files(path: str) -> list[Path]:
    """The files that are followed."""
    root = Path(path)
    found = [root] if root.is_file() else root.rglob("*")
    return sorted(f for f in found if f.is_file() and not _aside(f, root))


def _aside(file: Path, root: Path) -> bool:
    hidden = any(part.startswith((".", "_")) for part in file.relative_to(root).parts)
    return hidden or file.suffix in COMPRESSED


def _inode(file: Path) -> str:
    status = file.stat()
    return f"{status.st_dev}:{status.st_ino}"


def plain(positions: Positions) -> dict[str, Any]:
    """As JSON keeps them."""
    return {inode: asdict(position) for inode, position in positions.items()}


def positions(kept: Mapping[str, Any]) -> dict[str, Position]:
    """From what JSON kept. Raises ValueError, TypeError or AttributeError."""
    return {inode: _checked(Position(**position)) for inode, position in kept.items()}


def _checked(position: Position) -> Position:
    for number in (position.bytes, position.lines, position.life):
        whole(number, 0)
    for text in (position.file, position.first):
        word(text)
    return position
