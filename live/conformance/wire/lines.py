"""The lines of ``messages.jsonl``, each with all that a recording has there, and of the types that it has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rebalance_verifier.live.clients.record.coordinator import COORDINATOR
from rebalance_verifier.live.clients.record.messages import APIS, FILE, MESSAGES
from rebalance_verifier.live.conformance.log import (
    TEXT,
    TEXTS,
    WHOLE,
    FieldCheck,
    LogError,
    LogLine,
    checked,
    rows,
    seconds_of,
)

API = FieldCheck(lambda value: value in APIS, f"one of {', '.join(APIS)}")
PLAN = FieldCheck(
    lambda value: isinstance(value, dict) and all(map(TEXTS.holds, value.values())),
    "an object of lists of strings",
)
DATA = FieldCheck(
    lambda value: isinstance(value, dict) and all(map(TEXT.holds, value.values())), "an object of strings"
)

FIELDS: Mapping[str, FieldCheck] = {
    "number": WHOLE,
    "api": API,
    **dict.fromkeys(("consumer", "member", "error", "state", "detail"), TEXT),
    **dict.fromkeys(("generation", "previous"), WHOLE),
    **dict.fromkeys(("topics", "partitions", "pending", "members"), TEXTS),
    "plan": PLAN,
    "user_data": DATA,
}
"""The fields that are read, wherever one stands."""

NEEDED: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("request", ""): ("number", "api"),
    ("request", "ConsumerGroupHeartbeat"): ("generation",),
    ("request", "SyncGroup"): ("generation",),
    ("request", "Heartbeat"): ("generation",),
    ("answer", ""): ("number", "api", "error"),
    ("answer", "ConsumerGroupHeartbeat"): ("generation",),
    ("answer", "JoinGroup"): ("generation",),
    ("answer", "SyncGroup"): ("partitions",),
    ("target", ""): ("generation", "plan"),
    ("state", ""): ("member", "generation", "previous", "state", "partitions", "pending"),
    ("removed", ""): ("member",),
    ("converted", ""): ("detail",),
    ("stable", ""): ("generation",),
}
"""What a line of each event has to have, and of each API besides."""


def messages(path: Path, group: str) -> Iterator[tuple[LogLine, Mapping[str, Any]]]:
    """Yield the lines of ``group``, as people see them and as they are; without fields that are null.

    Raises LogError for what is no message, and where there is none.
    """
    none = True
    try:
        for number, data in rows(path):
            where = f"{path}:{number}"
            if not isinstance(data, dict) or not isinstance(data.get("event"), str):
                raise LogError(f"{where}: no message")
            if data.get("group") == group and data["event"] in (*MESSAGES, *COORDINATOR):
                none = False
                known = _checked(data, where)
                yield _line(number, known), known
    except OSError as error:
        raise LogError(f"{path}: {error}") from error
    if none:
        raise LogError(f"{path}: no messages of group {group}")


def _checked(data: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    event, known = data["event"], {name: value for name, value in data.items() if value is not None}
    for name in dict.fromkeys((*NEEDED[event, ""], *known)):
        if name in FIELDS:
            checked(known, name, FIELDS[name], where)
    for name in NEEDED.get((event, known.get("api", "")), ()):
        checked(known, name, FIELDS[name], where)
    return known


def _line(number: int, data: Mapping[str, Any]) -> LogLine:
    """Return the line as people see it."""
    what = " ".join(filter(None, (data.get("api", ""), data["event"])))
    parts = [f"from {data['previous']}" if "previous" in data else "", data.get("state", "")]
    parts += [data["error"] if data.get("error", "NONE") != "NONE" else ""]
    parts += [f"to revoke {' '.join(data['pending'])}" if data.get("pending") else ""]
    parts += [f"of {data['member']}" if data["event"] in ("state", "removed") else ""]
    return LogLine(
        number=number,
        at=seconds_of(data.get("at"), f"{FILE}:{number}"),
        event=what,
        consumer=data.get("consumer", ""),
        partitions=tuple(data["partitions"]) if "partitions" in data else None,
        generation=data.get("generation"),
        member=data.get("member", ""),
        detail=" ".join(filter(None, (*parts, data.get("detail", ""), f"{FILE}:{number}"))),
    )
