"""Files that are read as a whole: regular ones, bounded in size, as text, JSON or TOML.

A pipe may never answer, a sparse file is longer than the memory, deep nesting or too many digits end a
parser. Each is an ``Unreadable``, which names the file in one line; a file that is not there stays a
FileNotFoundError, or a NotADirectoryError.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import stat
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

MAX_BYTES = 256 * 2**20
"""Of a file, unless a reader has a limit of its own."""


class Unreadable(ValueError):
    """Raised for a file that cannot be read as what it is to be; the text names it."""


class Unparsed(Unreadable):
    """Raised for a regular file that holds something else."""


def reason(error: Exception) -> str:
    """Return the text of an error that is about what a user gave: of a file its name and the trouble with it.

    >>> reason(FileNotFoundError(2, "No such file or directory", "a.log"))
    'a.log: No such file or directory'
    """
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return str(error.args[0] if error.args and not isinstance(error, OSError) else error)


def contents(path: Path, most: int = MAX_BYTES) -> bytes:
    """Return the bytes of a regular file of at most so many. Raises Unreadable, FileNotFoundError."""
    with regular(path) as file:
        found = file.read(most + 1) if os.fstat(file.fileno()).st_size <= most else None
        if found is None or len(found) > most:
            raise Unreadable(f"{path}: has more than {most >> 20} MiB")
        return found


@contextlib.contextmanager
def regular(path: Path) -> Iterator[BinaryIO]:
    """Open a regular file to be read. Raises Unreadable, FileNotFoundError."""
    try:
        # Looked at first, since opening a device may do something; and again, for another may be there now.
        _check(path, path.stat())
        number = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with os.fdopen(number, "rb") as file:
            _check(path, os.fstat(number))
            yield file
    except (FileNotFoundError, NotADirectoryError):
        raise
    except OSError as error:
        raise Unreadable(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        if "\0" in str(path):  # a name that no file can have
            raise Unreadable(f"{str(path)!r}: {error}") from error
        raise


def _check(path: Path, known: os.stat_result) -> None:
    if not stat.S_ISREG(known.st_mode):
        raise Unreadable(f"{path}: is no file but a {_kind(known.st_mode)}")


def _kind(mode: int) -> str:
    kinds = {stat.S_IFDIR: "directory", stat.S_IFIFO: "pipe", stat.S_IFSOCK: "socket"}
    return kinds.get(stat.S_IFMT(mode), "device")


def text(path: Path, most: int = MAX_BYTES) -> str:
    """Return the text of a file in UTF-8. Raises as ``contents`` does, and Unparsed."""
    found = contents(path, most)
    try:
        return found.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unparsed(f"{path}: is not UTF-8: {error.reason} at byte {error.start}") from error


def json_of(path: Path, most: int = MAX_BYTES) -> Any:
    """Return the JSON value in a file. Raises as ``contents`` does, and Unparsed."""
    return parsed_json(text(path, most), str(path))


def toml_of(path: Path, most: int = MAX_BYTES) -> dict[str, Any]:
    """Return the tables of a file in TOML. Raises as ``contents`` does, and Unparsed."""
    read = text(path, most)
    try:
        return tomllib.loads(read)
    except RecursionError as error:
        raise Unparsed(f"{path}: not TOML that can be read: {unparsed(error)}") from error
    except ValueError as error:  # also a number of too many digits
        raise Unparsed(f"{path}: {error}") from error


def parsed_json(read: str, where: str) -> Any:
    """Return the value that a text is, from the place ``where``: every number finite, every key of an object
    once, since readers differ in which of two they take. Raises Unparsed."""
    try:
        return json.loads(
            read, parse_constant=_finite, parse_float=_finite, object_pairs_hook=_object_of_distinct_keys
        )
    except json.JSONDecodeError as error:
        at = f"{where}:{error.lineno}:{error.colno}"
        raise Unparsed(f"{at}: not JSON: {error.msg}") from error
    except (RecursionError, ValueError) as error:
        raise Unparsed(f"{where}: not JSON that can be read: {unparsed(error)}") from error


def unparsed(error: Exception) -> str:
    """Return why a parser gave up, in words that name no setting of Python.

    >>> unparsed(RecursionError("maximum recursion depth exceeded while decoding a JSON array"))
    'nested too deeply'
    """
    if isinstance(error, RecursionError):
        return "nested too deeply"
    return "a number has too many digits" if "set_int_max_str_digits" in str(error) else str(error)


def _finite(digits: str) -> float:
    if not math.isfinite(number := float(digits)):
        raise ValueError(f"{digits[:40]} is no number")
    return number


def _object_of_distinct_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for at, key in enumerate(keys) if key in keys[:at])
        raise ValueError(f"the key {twice[:40]!r} is there twice")
    return found


def whole(value: Any, least: int = -(2**63), most: int = 2**63 - 1) -> int:
    """Return a whole number between these, as JSON has it. Raises ValueError."""
    if type(value) is not int:
        raise ValueError(f"expected a whole number, found {json.dumps(value)[:60]}")
    if not least <= value <= most:
        shown = f"{value:,}" if abs(value) < 10**30 else "one of many digits"
        raise ValueError(f"expected a whole number from {least:,} to {most:,}, found {shown}")
    return value


def word(value: Any) -> str:
    """Return a text, as JSON has it. Raises ValueError."""
    if not isinstance(value, str):
        raise ValueError(f"expected a text, found {json.dumps(value)[:60]}")
    return value


def fields(value: Any) -> dict[str, Any]:
    """Return an object, as JSON has it. Raises ValueError."""
    if not isinstance(value, dict):
        raise ValueError(f"expected an object, found {json.dumps(value)[:60]}")
    return value


def listed(value: Any, most: int = 2**31) -> list[Any]:
    """Return a list of at most so many, as JSON has it. Raises ValueError."""
    if not isinstance(value, list) or len(value) > most:
        raise ValueError(f"expected a list of at most {most:,}, found {json.dumps(value)[:60]}")
    return value
