"""Files on this machine, line by line, whatever is wrong with some of them.

What cannot be read (a file, the rest of one, a line) is named and counted and passed over.
"""

from __future__ import annotations

import bz2
import codecs
import contextlib
import csv
import glob
import gzip
import io
import json
import lzma
import os
import re
import stat
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

from rebalance_verifier.base.reading import unparsed
from rebalance_verifier.pipeline.audit.sources.envelopes import has_message, header, parsed, taken_off
from rebalance_verifier.pipeline.audit.sources.times import stamp

LONGEST = 4 << 20
"""Bytes of a line that are read; of a longer one the rest is passed over."""

SWOLLEN, ROOM = 200, 16 << 20
DENSE, MANY = 4, 1 << 20
"""What is compressed is read while it unpacks to at most so many bytes, and to so many lines, for each of its
own bytes, or to at most so many. Logs with times in them have ten to thirty bytes, and less than one line; a
MiB that unpacks to a GiB of short lines takes an hour."""

BLOCK = 1 << 18
"""Bytes that are decoded at a time."""

WHOLE = 256 << 20
"""Bytes of a file that is one JSON value over many lines; a larger one is not read."""

TABLE = ".parquet"


class NoInput(ValueError):
    """A path that does not exist or matches nothing; the text names it."""


DAMAGED = "lines with NUL bytes, or bytes that are not UTF-8; the rest of them is read"


class Unread(NamedTuple):
    """A file, or a part of one, that could not be read. ``lines``: how many were read, or are concerned."""

    file: str
    why: str
    lines: int = 0

    @property
    def lost(self) -> bool:
        """Check whether something is missing; else all lines were read as well as they can be."""
        return self.why != DAMAGED


def files(path: str) -> tuple[list[str], list[Unread]]:
    """The files that a local path stands for, sorted, and what could not be listed. Raises NoInput.

    A path is a file, a directory with all below it, or a glob; hidden names and those that begin with ``_``
    are left out below a directory. Devices are not read, nor what waits for a writer: they have no end.
    """
    found: list[str] = []
    unread: list[Unread] = []

    def add(name: str) -> None:
        if _is_endless(name):
            unread.append(Unread(name, ENDLESS))
        elif (shown := os.fsencode(name).decode("utf-8", "backslashreplace")) != name:
            unread.append(Unread(shown, "its name is not UTF-8: rename it"))
        else:
            found.append(name)

    named = [path] if os.path.lexists(path) else sorted(glob.glob(path, recursive=True))
    for one in named:
        if os.path.isdir(one):
            for folder, folders, names in os.walk(one, onerror=lambda e: unread.append(_unlisted(e))):
                folders[:] = sorted(name for name in folders if name[0] not in "._")
                for name in sorted(names):
                    if name[0] not in "._":
                        add(os.path.join(folder, name))
        else:
            add(one)
    if not named:
        raise NoInput(f"{path}: no such file or directory, or nothing that matches")
    if not found and not unread:
        raise NoInput(f"{path}: no files there")
    return sorted(dict.fromkeys(found)), unread


ENDLESS = "is no file but a pipe or a device; what comes out of it can be saved to a file first"


def _is_endless(path: str) -> bool:
    try:
        mode = os.stat(path).st_mode
    except OSError:  # whoever opens it says why
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _unlisted(error: OSError) -> Unread:
    return Unread(str(error.filename), _why(error))


class LineRange(NamedTuple):
    """Some whole lines of a plain file: bytes from ``begin`` up to ``end``, after so many lines; or all."""

    file: str
    begin: int = 0
    end: int | None = None
    lines: int = 0


def _cut(block: bytes) -> int:
    """Return where a block of lines is cut: before one with a time of its own, so that a message of several
    lines stays together; before any, where a whole block has none; 0: nowhere."""
    first = at = block.find(b"\n") + 1
    before = None  # a block begins anywhere in a line
    while at and (end := block.find(b"\n", at)) >= 0:
        text = block[at:end].decode("utf-8", "replace")
        begins = not text[:1].isspace() and stamp(text) is not None
        if begins and before is not None and not taken_off(before).partial:
            return at
        before, at = text, end + 1
    return first if len(block) == BLOCK else 0


def line_ranges(file: str, size: int) -> list[LineRange]:
    """Return a file of lines in stretches of about so many bytes; none where it is no such file."""
    found: list[LineRange] = []
    try:
        if not lines_only(file):
            return []
        begin = lines = 0
        with open(file, "rb", buffering=0) as raw:
            while begin < (whole := os.fstat(raw.fileno()).st_size):
                end, counted = begin, 0
                while end < whole:
                    left = size - (end - begin)
                    block = raw.read(min(BLOCK, left) if left > 0 else BLOCK)
                    if not block:
                        break
                    last = 0 if left > 0 else _cut(block)
                    counted += block.count(b"\n", 0, last or None)
                    end += last or len(block)
                    if last:
                        break
                found.append(LineRange(file, begin, end, lines))
                begin, lines = raw.seek(end), lines + counted
    except OSError:  # whoever reads it says why
        return []
    return found


class Content:
    """A file, to be iterated once: ``(number, text)`` for lines, or ``(number, value)`` for JSON values that
    go over several lines and rows of CSV. What went wrong is in ``unread`` afterwards."""

    def __init__(self, file: str, stretch: LineRange | None = None) -> None:
        self.file = file
        self._stretch = stretch
        self.unread: list[Unread] = []
        self.lines = 0
        self._damaged = self._cut = 0

    def __iter__(self) -> Iterator[tuple[int, str | dict[str, Any] | list[Any]]]:
        stretch = self._stretch
        try:
            if stretch is not None and stretch.end is not None:
                with open(self.file, "rb") as raw:
                    self.lines = stretch.lines
                    raw.seek(stretch.begin)
                    part = io.BufferedReader(_Part(raw, stretch.end - stretch.begin))
                    yield from self._rest(part) if stretch.begin else self._of(part)
                return
            with _open(self.file) as stream:
                yield from self._of(stream)
        except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
            self.unread.append(Unread(self.file, _why(error), self.lines))
        finally:
            if self._damaged:
                self.unread.append(Unread(self.file, DAMAGED, self._damaged))
            if self._cut:
                why = f"lines longer than {LONGEST:,} bytes, cut off"
                self.unread.append(Unread(self.file, why, self._cut))

    def _of(self, stream: IO[bytes]) -> Iterator[tuple[int, str | dict[str, Any] | list[Any]]]:
        start = self._line(stream)
        if start is None:
            return
        if columns := _columns(start):
            yield from self._table(stream, columns)
            return
        if _begins_json(start):
            yield from self._values(stream, start)
            return
        yield 1, start.lstrip("\ufeff")
        yield from self._rest(stream)

    def _rest(self, stream: IO[bytes]) -> Iterator[tuple[int, str]]:
        """The lines that follow, block by block: to decode each by itself takes five times as long."""
        if not isinstance(stream, io.BufferedReader):
            while (text := self._line(stream)) is not None:
                yield self.lines, text
            return
        begun = b""
        while block := stream.read1(BLOCK):
            lines, end, rest = block.rpartition(b"\n")
            if end:
                yield from self._split(begun + lines)
                begun = rest
            else:
                begun = (begun + block)[:LONGEST]
        if begun:
            yield from self._split(begun)

    def _split(self, data: bytes) -> Iterator[tuple[int, str]]:
        texts: list[str] = []
        with contextlib.suppress(UnicodeDecodeError):
            text = data.decode() if len(data) < LONGEST else "\0"
            if "\0" not in text:
                texts = text.split("\n")
                if "\r" in text:
                    texts = [one.rstrip("\r") for one in texts]
        for line in () if texts else data.split(b"\n"):
            self._cut += len(line) >= LONGEST
            text, damaged = decoded(line[:LONGEST].rstrip(b"\r"))
            self._damaged += damaged
            texts.append(text)
        number = self.lines + 1
        self.lines += len(texts)
        yield from enumerate(texts, number)

    def _line(self, stream: IO[bytes]) -> str | None:
        """The next line without its end; None at the end of the file."""
        data = stream.readline(LONGEST)
        if not data:
            return None
        self.lines += 1
        if len(data) == LONGEST and not data.endswith(b"\n"):
            self._cut += 1
            while (rest := stream.readline(LONGEST)) and not rest.endswith(b"\n"):
                pass
        text, damaged = decoded(data.rstrip(b"\r\n"))
        self._damaged += damaged
        return text

    def _table(
        self, stream: IO[bytes], columns: tuple[str, ...]
    ) -> Iterator[tuple[int, str | dict[str, Any]]]:
        """The rows of CSV. A row that has not a cell for each column is no row of the table, but lines."""
        texts: list[str] = []

        def lines() -> Iterator[str]:
            while (text := self._line(stream)) is not None:
                texts.append(text)
                yield text + "\n"
            yield _END  # in a cell of its own, unless a quote was opened and is not closed

        csv.field_size_limit(LONGEST)
        rows = csv.reader(lines())
        while True:
            number = self.lines + 1
            texts.clear()
            try:
                cells = next(rows)
            except csv.Error as error:
                self.unread.append(Unread(self.file, f"not CSV from line {number} on: {error}", self.lines))
                return
            if cells == [_END]:
                return
            if cells and cells[-1].endswith(_END):
                why = f"a quote that is opened in line {number} is not closed: what follows is not read"
                self.unread.append(Unread(self.file, why, self.lines))
                return
            row = {name: cell for name, cell in zip(columns, cells, strict=False) if cell}
            if len(cells) == len(columns) or (len(cells) < len(columns) and has_message(row)):
                yield number, row
            else:
                yield from enumerate(texts.copy(), number)

    def _values(
        self, stream: IO[bytes], start: str
    ) -> Iterator[tuple[int, str | dict[str, Any] | list[Any]]]:
        """JSON values that are written over several lines, one after the other or in an array; lines, where
        the second shows that the first only looked like it."""
        texts, size = [start], len(start)
        second = self._line(stream)
        if second is not None and not _goes_on(second):
            yield from enumerate([start.lstrip("\ufeff"), second], 1)
            yield from self._rest(stream)
            return
        texts += [] if second is None else [second]
        while (text := self._line(stream)) is not None:
            texts.append(text)
            size += len(text)
            if size > WHOLE:
                self.unread.append(
                    Unread(self.file, f"JSON over many lines, more than {WHOLE:,} bytes", self.lines)
                )
                return
        whole = "\n".join(texts).lstrip("\ufeff")
        decoder, at, number, before = json.JSONDecoder(), 0, 1, 0
        if whole.lstrip().startswith("["):
            at = whole.index("[") + 1
        while found := re.compile(r"[\s,\]]*").match(whole, at):
            at = found.end()
            if at == len(whole):
                return
            number += whole.count("\n", before, at)
            before = at
            try:
                value, at = decoder.raw_decode(whole, at)
            except (ValueError, RecursionError) as error:
                self.unread.append(
                    Unread(self.file, f"not JSON from line {number} on: {unparsed(error)}", self.lines)
                )
                return
            if isinstance(value, (dict, list)):
                yield number, value


def decoded(data: bytes) -> tuple[str, bool]:
    """A line as text, and whether it has bytes that no text has.

    >>> decoded(b"a\\0b"), decoded(b"\\xff")
    (('ab', True), ('�', True))
    """
    try:
        text, damaged = data.decode("utf-8"), False
    except UnicodeDecodeError:
        text, damaged = data.decode("utf-8", "replace"), True
    return (text.replace("\0", ""), True) if "\0" in text else (text, damaged)


def lines_only(file: str) -> bool:
    """Check whether a file is plain text in which each line is complete."""
    with open(file, "rb") as raw:
        first = raw.readline(LONGEST)
    if first.startswith((b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd", *_UTF16)):
        return False
    text = decoded(first)[0]
    return not (_columns(text) or _begins_json(text))


_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


_END = "\0end"
"""No line has a NUL (``decoded``)."""


def _columns(first: str) -> tuple[str, ...] | None:
    """The columns of a CSV file that exports a log, from its first line; None if it is no such file."""
    text = first.lstrip("\ufeff \t").rstrip()
    if "," not in text:
        return None
    try:
        return header(next(csv.reader([text]), []))
    except csv.Error:  # a carriage return in a cell, or a cell beyond all measure
        return None


def _begins_json(first: str) -> bool:
    """Check whether a line may be the first of a JSON value that goes on in the next."""
    text = first.lstrip("\ufeff \t").rstrip()
    return text[:1] in ("{", "[") and bool(_OPENS.fullmatch(text)) and parsed(text) is None


_OPENS = re.compile(r"[\[{][\s\[{]*|\{\s*\"[^\"]*\"\s*:.*[,\[{]|\[\s*\{.*")
"""Nothing in it can match in two ways: a line may be long."""


def _goes_on(second: str) -> bool:
    """Check whether a line may be the second of a JSON value; of a log it begins with a time or a level."""
    return bool(re.match(r"\s*(?:[\"{}\]]|\[\s*(?:[\"{\[\]]|$)|$)", second))


_ARCHIVES = (b"PK\x03\x04", b"7z\xbc\xaf\x27\x1c", b"Rar!")
_TAR = slice(257, 262)
"""Where a tar archive says that it is one."""


def _open(file: str) -> IO[bytes]:
    suffix = Path(file).suffix.lower()
    with open(file, "rb") as raw:
        magic = raw.read(_TAR.stop)
    if magic.startswith(_ARCHIVES) or magic[_TAR] == b"ustar" or file.lower().endswith((".tgz", ".tar.gz")):
        raise OSError(None, "an archive of several files, which are not told apart: unpack it first")
    if magic.startswith(b"\x1f\x8b"):
        return _unpacked(gzip.open(file), file)
    if magic.startswith(b"BZh") and suffix == ".bz2":
        return _unpacked(bz2.open(file), file)
    if magic.startswith(b"\xfd7zXZ"):
        return _unpacked(lzma.open(file), file)
    if magic.startswith(b"\x28\xb5\x2f\xfd"):
        raise OSError(None, "compressed with zstd, which is not read: unpack it first")
    if magic.startswith(_UTF16):
        return _Recoded(file)  # type: ignore[return-value]
    return open(file, "rb")


class _Part(io.RawIOBase):
    """So many bytes of a file, from where it is."""

    def __init__(self, raw: IO[bytes], size: int) -> None:
        self._raw, self._left = raw, size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._raw.read(min(len(buffer), self._left))
        self._left -= len(data)
        buffer[: len(data)] = data
        return len(data)


class _Unpacked(io.RawIOBase):
    """Content of a compressed file of so many bytes. Raises OSError where that is beyond all measure."""

    def __init__(self, stream: gzip.GzipFile | bz2.BZ2File | lzma.LZMAFile, size: int) -> None:
        self._stream = stream
        self._bytes, self._lines = max(ROOM, SWOLLEN * size), max(MANY, DENSE * size)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._stream.read1(len(buffer))
        self._bytes -= len(data)
        self._lines -= data.count(b"\n")
        if self._bytes < 0 or self._lines < 0:
            limit = f"{SWOLLEN} bytes" if self._bytes < 0 else f"{DENSE} lines"
            raise OSError(None, f"unpacks to more than {limit} for each of its bytes: the rest is not read")
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._stream.close()
        super().close()


def _unpacked(stream: gzip.GzipFile | bz2.BZ2File | lzma.LZMAFile, file: str) -> IO[bytes]:
    return io.BufferedReader(_Unpacked(stream, os.stat(file).st_size))


class _Recoded:
    """UTF-16 as UTF-8: what PowerShell redirects."""

    def __init__(self, file: str) -> None:
        self._file = open(file, encoding="utf-16", errors="replace", newline="\n")  # noqa: SIM115

    def __enter__(self) -> _Recoded:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def readline(self, limit: int) -> bytes:
        return self._file.readline(limit).encode()


def _why(error: BaseException) -> str:
    if isinstance(error, EOFError):
        return "ends in the middle of what is compressed; what comes before is read"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror[:1].lower() + error.strerror[1:]
    return f"not what it is said to be: {error}"
