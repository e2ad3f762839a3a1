"""Where the files of the suite lie, how they are found again, and how they are written: whole or not at all.

Everything is below one directory, ``.rebalance``: counterexamples by their ids, and a directory for the
reports of each run.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

from rebalance_verifier.base import reading
from rebalance_verifier.base.files import write_whole
from rebalance_verifier.base.names import meant
from rebalance_verifier.base.text import listed

SUITE = "rebalance-verifier"

_T = TypeVar("_T")

FAILURES = "failures"
LATEST = "latest"

KEPT = 20
"""Run directories that are left when another is made, of those with nothing but reports in them."""

REPORTS = {
    "text": "report.txt",
    "json": "report.json",
    "html": "report.html",
    "junit": "junit.xml",
    "sarif": "report.sarif",
    "markdown": "report.md",
}
"""The names of reports by their formats."""

_ID = re.compile(r"[0-9a-f]{1,64}\Z")
_RUN = re.compile(r"\d{8}T\d{6}Z(-\d+)?")


class TraceError(ValueError):
    """A trace that cannot be read or found; the text names the file and what is wrong."""


class NewerSchema(TraceError):
    """A trace that a newer suite wrote: to be skipped with a notice, never to be deleted."""


def dump(value: Any, indent: str = "") -> str:
    """JSON with every object and list that fits into a line on one line: small enough to read."""
    flat = json.dumps(value)
    if len(flat) + len(indent) <= 100 or not value or not isinstance(value, dict | list):
        return flat
    inner = indent + "  "
    if isinstance(value, dict):
        parts = [f"{json.dumps(key)}: {dump(item, inner)}" for key, item in value.items()]
    else:
        parts = [dump(item, inner) for item in value]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return f"{opening}\n{inner}" + f",\n{inner}".join(parts) + f"\n{indent}{closing}"


@dataclass(frozen=True)
class FileKind(Generic[_T]):
    """A kind of file: ``name`` it is called by, the newest ``schema`` that is read, what ``parse`` makes of
    its JSON object, and ``kinds``, one of which is in its field ``kind``, if it has one."""

    name: str
    schema: int
    parse: Callable[[dict[str, Any]], _T]
    kinds: tuple[str, ...] = ()

    def load(self, path: Path) -> _T:
        """Return what is in a file. Raises as ``parsed`` does."""
        return parsed(path, read_json(path), self)


def parsed(path: Path, data: Any, kind: FileKind[_T]) -> _T:
    """Return what the ``data`` of a file are, which is a record with a field ``path``.

    Both errors name the file: ``NewerSchema`` for one of a newer suite and ``TraceError`` for all else that
    is wrong with it.
    """
    try:
        if not isinstance(data, dict) or "schema" not in data:
            raise TraceError(f"not {kind.name}: it has no field 'schema'")
        if kind.kinds and data.get("kind") not in kind.kinds:
            raise TraceError(f"not {kind.name}: its field 'kind' is not {kind.kinds[0]!r}")
        found = data["schema"]
        if type(found) is not int or found < 1:
            raise TraceError(f"schema: expected a whole number from 1 on, found {json.dumps(found)[:60]}")
        if found > kind.schema:
            raise NewerSchema(f"has schema {found}, this suite reads up to {kind.schema}: use a newer suite")
        record: Any = kind.parse(data)
        return cast(_T, replace(record, path=path))
    except TraceError as error:
        raise type(error)(f"{path}: {error}") from error


def read_json(path: Path) -> Any:
    """Return the JSON in a file. Raises ``TraceError`` that names the file."""
    try:
        return reading.json_of(path)
    except OSError as error:
        raise TraceError(f"{path}: cannot be read: {error.strerror}") from error
    except reading.Unreadable as error:
        raise TraceError(str(error)) from error


write = write_whole


def save(directory: Path, name: str, text: str) -> Path:
    """Write a file of this name into a directory, which is made if need be. Raises ``OSError``."""
    directory.mkdir(parents=True, exist_ok=True)
    return write(directory / name, text)


def make_root(root: Path) -> None:
    """Make the directory that everything is saved in, with a ``.gitignore``. Raises ``OSError``."""
    root.mkdir(parents=True, exist_ok=True)
    if not (root / ".gitignore").exists():
        write(root / ".gitignore", "# made by rebalance\n*\n")


def find(name: str, root: Path) -> list[Path]:
    """Return the traces that ``name`` stands for, sorted: a file, all below a directory, or the start of an
    id.

    Ids are looked up in the failures and the latest run below ``root``; a start that several ids share
    stands for all of them. Raises ``TraceError`` when there is none.
    """
    path = Path(name)
    if path.is_file():
        return [path]
    if name and path.is_dir():
        if found := _below(path):
            return found
        raise TraceError(f"{path}: no traces (*.json) below this directory")
    known = {p.stem: p for directory in (LATEST, FAILURES) for p in _below(root / directory)}
    found = [p for stem, p in sorted(known.items()) if _ID.match(name) and stem.startswith(name)]
    if found:
        return found
    have = meant(name, known) or (f"known ids: {listed(sorted(known))}" if known else "")
    reason = f"{name!r} is neither a file, a directory, nor the id of a trace below {root}"
    raise TraceError(f"{reason}; {have}" if have else reason)


def _below(directory: Path) -> list[Path]:
    """JSON files below a directory, links to directories not followed, our own reports left out."""
    reports = set(REPORTS.values())
    paths: Iterable[Path] = (Path(folder, name) for folder, _, names in os.walk(directory) for name in names)
    return sorted(
        p for p in paths if p.suffix == ".json" and p.name not in reports and not p.name.startswith(".")
    )


def by_latest(directory: Path) -> Path:
    """Return a run directory by the name that stays: through the link ``latest``, where that leads to it."""
    link = directory.parent / LATEST
    with contextlib.suppress(OSError):
        if link.resolve() == directory.resolve():
            return link
    return directory


def run_directory(root: Path, now: datetime) -> Path:
    """Return a new directory below ``root`` for one run, named after ``now`` in UTC; ``latest`` links to it.

    The first one puts a ``.gitignore`` into ``root``; of earlier ones the newest ``KEPT`` stay. Raises
    ``OSError`` when it cannot be made.
    """
    make_root(root)
    with contextlib.suppress(OSError):
        _forget(root)
    stamp = now.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    number = 1
    while True:
        path = root / (stamp if number == 1 else f"{stamp}-{number}")
        try:
            path.mkdir()
            break
        except FileExistsError:  # another run started in the same second
            number += 1
    link = root / f".{LATEST}-{path.name}"
    # A convenience: file systems without links do without it.
    with contextlib.suppress(OSError, NotImplementedError):
        link.symlink_to(path.name, target_is_directory=True)
        link.replace(root / LATEST)
    with contextlib.suppress(OSError):
        link.unlink(missing_ok=True)
    return path


def _forget(root: Path) -> None:
    """Remove old run directories. One with anything else in it than our reports, such as traces, is
    somebody's, and an empty one may be that of a run that goes on."""
    runs = sorted(
        path
        for path in root.iterdir()
        if _RUN.fullmatch(path.name) and not path.is_symlink() and path.is_dir()
    )
    old = ((path, os.listdir(path)) for path in runs[:-KEPT])
    for path, names in old:
        if names and set(REPORTS.values()).issuperset(names):
            for name in names:
                (path / name).unlink(missing_ok=True)
            path.rmdir()


ROOT = Path(".rebalance")
"""Where everything is saved that is saved."""
