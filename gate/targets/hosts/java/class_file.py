"""What a compiled class says of itself: its supertypes, the file of its source, and the line where a method
begins.

The form is that of chapter 4 of the Java Virtual Machine Specification; nothing of the class is run.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress
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
"""Tag of a constant -> the bytes that follow it; text says itself how many."""

TEXT, CLASS = 1, 7


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


class ClassPath:
    """Directories and jars that classes are looked up in; use as a context manager, each jar is opened
    once."""

    def __init__(self, where: Iterable[Path]) -> None:
        self._where = list(where)
        self._jars: list[ZipFile | Path] = []
        self._open = ExitStack()

    def __enter__(self) -> ClassPath:
        for path in self._where:
            if path.is_dir():
                self._jars.append(path)
            elif path.is_file():
                with suppress(BadZipFile, OSError):
                    self._jars.append(self._open.enter_context(ZipFile(path)))
        return self

    def __exit__(self, *error: object) -> None:
        self._open.close()

    def bytes_of(self, name: str) -> bytes | None:
        """Return the class ``name``, with dots, in the first of the directories and jars that has it."""
        inside = f"{name.replace('.', '/')}.class"
        for jar in self._jars:
            if isinstance(jar, ZipFile):
                if inside in jar.NameToInfo:
                    return jar.read(inside)
            elif (jar / inside).is_file():
                return (jar / inside).read_bytes()
        return None


def class_bytes(name: str, where: Iterable[Path]) -> bytes | None:
    """Return the class ``name``, with dots, in the first of the directories and jars that has it."""
    with ClassPath(where) as path:
        return path.bytes_of(name)


def supertypes(name: str, path: ClassPath) -> frozenset[str] | None:
    """Return the classes and interfaces above a class, with dots, as far as the class path has them; None
    where it does not have the class. Those of a class above it that cannot be read are not followed. Raises
    ValueError where the class itself cannot be read."""
    first = path.bytes_of(name)
    if first is None:
        return None
    try:
        left = _parents(first)
    except (struct.error, IndexError, KeyError) as error:
        raise ValueError("this is no class file") from error
    found: set[str] = set()
    while left:
        above = left.pop()
        if above not in found:
            found.add(above)
            with suppress(struct.error, IndexError, KeyError, ValueError):
                left += _parents(path.bytes_of(above) or b"")
    return frozenset(found)


def _parents(data: bytes) -> list[str]:
    """Return the superclass and the interfaces that a class names, with dots."""
    read, texts, classes = _opened(data)
    read.bytes(4)  # access, this class
    numbers = [read.number("H"), *(read.number("H") for _ in range(read.number("H")))]
    return [texts[classes[number]].replace("/", ".") for number in numbers if number]


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


def _opened(data: bytes) -> tuple[_Bytes, dict[int, str], dict[int, int]]:
    """Return a class behind its constants, with those that are text and those that name a class."""
    read = _Bytes(data)
    if read.number("I") != MAGIC:
        raise ValueError("this is no class file")
    read.bytes(4)  # the version
    return read, *_constants(read)


def _source(data: bytes, method: str) -> ClassSource:
    read, texts, _ = _opened(data)
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


def _constants(read: _Bytes) -> tuple[dict[int, str], dict[int, int]]:
    """Return the constants that are text, by number, and those of classes: the number of their name."""
    texts, classes, number, count = dict[int, str](), dict[int, int](), 1, read.number("H")
    while number < count:
        tag = read.number("B")
        if tag == TEXT:
            texts[number] = read.bytes(read.number("H")).decode("utf-8", "replace")
        elif tag == CLASS:
            classes[number] = read.number("H")
        else:
            read.bytes(WIDTHS[tag])
        number += 2 if tag in (5, 6) else 1  # long and double count twice
    return texts, classes


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
