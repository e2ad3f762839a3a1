"""The lines of logs as they stand there, for who reads what was found in them."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path

from rebalance_verifier.pipeline.audit.records import LogEvent

MAX_READ = 2_000_000
"""Lines of a file that are read for the sake of a few of them."""

MAX_SHOWN = 600
"""Characters of one line."""

_PACKED = (".bz2", ".lz4", ".snappy", ".xz", ".zip", ".zst")


def quoted(events: Iterable[LogEvent]) -> Mapping[tuple[str, int], str]:
    """(file, line) of the events -> the line, as far as the file is there to be read, in one pass each."""
    wanted: dict[str, set[int]] = {}
    for event in events:
        wanted.setdefault(event.file, set()).add(event.line)
    return {
        (file, number): line
        for file, numbers in wanted.items()
        for number, line in _lines(Path(file), numbers)
    }


def _lines(path: Path, numbers: set[int]) -> list[tuple[int, str]]:
    if path.suffix in _PACKED or not path.is_file():
        return []
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as lines:
            last = min(max(numbers), MAX_READ)
            numbered = enumerate(islice(lines, last), 1)
            return [(number, _plain(line)) for number, line in numbered if number in numbers]
    except (OSError, EOFError, zlib.error):
        return []


def _plain(line: bytes) -> str:
    return line[: 4 * MAX_SHOWN].decode("utf-8", "replace").rstrip("\r\n")[:MAX_SHOWN]
