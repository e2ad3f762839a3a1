"""Recognise a file or a directory that a command does not take, to name the command that does."""

from __future__ import annotations

import json
import os
import shlex
import stat
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from rebalance_verifier.base.saved import SUITE

MAX_BYTES = 1 << 16
"""Of the beginning of a file, which says what it is."""

MAX_FILES = 100
"""Of a directory, which say what it holds."""

TRACE, REPORT, EVENTS, GROUP, LOG = "a trace", "a report", "an event log", "a group in TOML", "a log"
RECORDED, CAMPAIGN = "what `rebalance record` writes", "a campaign"
TRACES, LOGS = "a directory of traces", "a directory of logs"

_COMMANDS = {
    TRACE: "`rebalance show {0}` draws it, `rebalance replay {0}` plays it again",
    REPORT: "the counterexamples that it names are replayed by their ids, `rebalance replay ID`",
    EVENTS: "`rebalance audit {0}` checks it, `rebalance conform {0}` compares it with the model",
    GROUP: "`rebalance explore --scenario {0}` searches it",
    LOG: "`rebalance audit {0}` checks it",
    RECORDED: "`rebalance conform {0}` asks the model, `rebalance record --again {0}` plays it again",
    CAMPAIGN: "`rebalance campaign --played --out {0}` shows it",
    TRACES: "`rebalance show {0}` draws them, `rebalance replay {0}` plays them again",
    LOGS: "`rebalance audit {0}` checks them",
}

_WHOLE = {"campaign.json": (CAMPAIGN, "legs"), "run.json": (RECORDED, "request")}
"""Files that stand for the directory that they lie in, and a field that they have."""


def kind_of(path: Path) -> str:
    """Return what a file or a directory is, "" for what is none of ours, not ordinary, or not there."""
    if os.path.isdir(path):  # not by its method, which raises for a name that is too long
        return _kind_of_directory(path)
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return ""
        with path.open("rb") as file:
            head = file.read(MAX_BYTES).decode("utf-8-sig", errors="replace")
    except (OSError, ValueError):
        return ""
    if path.suffix == ".toml":
        return GROUP
    if not head.lstrip().startswith("{"):
        return LOG if path.suffix == ".log" or ".log." in path.name else ""
    first, _, rest = head.lstrip().partition("\n")
    line, whole = _object(first), _object(head)
    if whole is None and line is not None and rest.strip():
        return EVENTS if {"event", "group", "consumer"} & line.keys() else ""
    if path.name in _WHOLE and whole is not None and _WHOLE[path.name][1] in whole:
        return _WHOLE[path.name][0]
    if not ('"schema"' in head and f'"{SUITE}"' in head):
        return ""
    return REPORT if '"verdict"' in head and '"exit"' in head else TRACE


def right_command(path: Path, *taken: str) -> str:
    """Return what a file is and which command takes it; "" where it is one of the kinds ``taken`` here."""
    kind = kind_of(path)
    if not kind or kind in taken:
        return ""
    named = path.parent if path.name in _WHOLE and not os.path.isdir(path) else path
    return f"{path} is {kind}: {_COMMANDS[kind].format(shlex.quote(str(named)))}"


def _kind_of_directory(path: Path) -> str:
    """Return what a directory is: by the file that stands for all of it, or by the first of its files."""
    for name in _WHOLE:
        if kind := kind_of(path / name):
            return kind
    held = {kind_of(one) for one in islice(_files(path), MAX_FILES)}
    if TRACE in held and held <= {TRACE, REPORT}:
        return TRACES
    return LOGS if held & {LOG, EVENTS} and TRACE not in held else ""


def _files(path: Path) -> Iterator[Path]:
    """Yield the files below a directory that are not hidden, each folder in order."""
    for folder, below, names in os.walk(path):
        below.sort()
        yield from (Path(folder, name) for name in sorted(names) if not name.startswith("."))


def _object(text: str) -> dict[str, Any] | None:
    """Return the JSON object that a text is, None where it is another thing."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
