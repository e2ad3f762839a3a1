"""What a compiled class says of its source: the file's name, and the line where a method begins.

The form is that of chapter 4 of the Java Virtual Machine Specification; nothing of the class is run.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile, ZipFile

MAGIC = 0xCAFEBABE
WIDTHS = {
    **dict.fromkeys((7, 8, 16, 19, 20), 2),
    15: 3,
    **dict.fromkeys((3, 4, 9, 10, 11, 12, 17, 18), 4),
    **dict.fromkeys((5, 6), 8),
}
"""Tag of a constant -> the bytes that follow it; that of text, 1, says itself how many."""


@dataclass(frozen=True, slots=True)
class ClassSource:
    """``file`` is a name without folders. It is "", and ``line`` 0, where the class was compiled without."""

    file: str
    line: int


def source_of(class_bytes: bytes, method: str) -> ClassSource:
    """Return where a class is, and its method ``method``, or else the first of its methods.

    Raises ValueError for what is no class.
    """
    try:
        return _source(class_bytes, method)
    except (struct.error, IndexError, KeyError) as error:
        raise ValueError("this is no class file") from error


def class_bytes(name: str, where: Iterable[Path]) -> bytes | None:
    """Return the class ``name``, with dots, in the first of the directories and jars that has it."""
    inside = f"{name.replace('.', '/')}.class"
    for path in where:
        if path.is_dir() and (path / inside).is_file():
            return (path / inside).read_bytes()
        if path.is_file():
            try:
                with ZipFile(path) as jar:
                    return jar.read(inside)
            except (BadZipFile, KeyError):
                continue
    return None


class _Bytes:
    """A class file, read from its beginning on."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def number(self, form: str) -> int:
        (found,) = struct.unpack_from(f">{form}", self._data, self._at)
        self._at += struct.calcsize(f">{form}")
        return int(found)

    def bytes(self, count: int) -> bytes:
        self._at += count
        if self._at > len(self._data):
            raise IndexError(self._at)
        return self._data[self._at - count : self._at]


def _source(data: bytes, method: str) -> ClassSource:
    read = _Bytes(data)
    if read.number("I") != MAGIC:
        raise ValueError("this is no class file")
    read.bytes(4)  # the version
    texts = _texts(read)
    read.bytes(6)  # access, this class, its super class
    read.bytes(2 * read.number("H"))  # interfaces
    line = first = 0
    for methods in (False, True):  # fields have the same form
        for _ in range(read.number("H")):
            read.bytes(2)
            name = texts[read.number("H")]
            read.bytes(2)
            for attribute, content in _attributes(read, texts):
                if methods and attribute == "Code":
                    found = _first_line(content, texts)
                    first = min(first or found, found or first)
                    if name == method:
                        line = min(line or found, found or line)
    file = next((content for name, content in _attributes(read, texts) if name == "SourceFile"), b"")
    return ClassSource(texts[struct.unpack(">H", file)[0]] if file else "", line or first)


def _texts(read: _Bytes) -> dict[int, str]:
    """Return the constants that are text, by number."""
    texts, number, count = {}, 1, read.number("H")
    while number < count:
        tag = read.number("B")
        if tag == 1:
            texts[number] = read.bytes(read.number("H")).decode("utf-8", "replace")
        else:
            read.bytes(WIDTHS[tag])
        number += 2 if tag in (5, 6) else 1  # long and double count twice
    return texts


def _attributes(read: _Bytes, texts: dict[int, str]) -> Iterator[tuple[str, bytes]]:
    for _ in range(read.number("H")):
        name = texts[read.number("H")]
        yield name, read.bytes(read.number("I"))


def _first_line(code: bytes, texts: dict[int, str]) -> int:
    """Return the least line of a method's code."""
    read = _Bytes(code)
    read.bytes(4)
    read.bytes(read.number("I"))
    read.bytes(8 * read.number("H"))  # exception table
    lines = [0]
    for name, content in _attributes(read, texts):
        if name == "LineNumberTable":
            table = struct.unpack(f">{len(content) // 2}H", content)[1:]
            lines += table[1::2]
    return min(filter(None, lines), default=0)
