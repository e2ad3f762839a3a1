"""Recognise a file that was handed to a command that does not take it, to name the one that does."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

from rebalance.gate.traces.files import SUITE

MOST_BYTES = 1 << 16
"""Of the beginning of a file, which says what it is."""

TRACE, REPORT, EVENTS, GROUP, LOG = "a trace", "a report", "an event log", "a group in TOML", "a log"

_COMMANDS = {
    TRACE: "`rebalance show {0}` draws it, `rebalance replay {0}` plays it again",
    REPORT: "the counterexamples that it names are replayed by their ids, `rebalance replay ID`",
    EVENTS: "`rebalance audit {0}` checks it, `rebalance conform {0}` compares it with the model",
    GROUP: "`rebalance explore --scenario {0}` searches it",
    LOG: "`rebalance audit {0}` checks it",
}


def kind_of(path: Path) -> str:
    """Return what a file is, "" for one that is none of ours, no ordinary file, or not there."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return ""
        with path.open("rb") as file:
            head = file.read(MOST_BYTES).decode("utf-8-sig", errors="replace")
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
    if not ('"schema"' in head and f'"{SUITE}"' in head):
        return ""
    return REPORT if '"verdict"' in head and '"exit"' in head else TRACE


def right_command(path: Path, *taken: str) -> str:
    """Return what a file is and which command takes it; "" where it is one of the kinds ``taken`` here."""
    kind = kind_of(path)
    return f"{path} is {kind}: {_COMMANDS[kind].format(path)}" if kind and kind not in taken else ""


def _object(text: str) -> dict[str, Any] | None:
    """Return the JSON object that a text is, None where it is another thing."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
