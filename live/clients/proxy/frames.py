"""The messages that a proxy saw, kept and as lines of a log."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from rebalance_verifier.live.clients.proxy.wire import Fields, error_of

KEPT = 50_000
"""Messages that are kept, or up to twice as many: an hour of heartbeats must not fill the memory."""
Direction = Literal["request", "response"]


@dataclass(slots=True, kw_only=True)
class Frame:
    """One message that the proxy saw.

    ``number`` counts all of them, ``at`` is its time (monotonic, seconds), ``connection`` counts the
    clients' connections. ``fields`` are there for the group protocol (``wire.SCHEMAS``), ``error`` is that
    of a response by name. ``fate``: "passed", or what a rule made of it: "answered", "taken"; "ours" for what
    the proxy itself sent to a client, "dropped" for the answer to one that is not connected any more.
    """

    number: int
    at: float
    connection: int
    direction: Direction
    api: str
    version: int
    correlation: int
    client: str | None
    fields: Fields | None = None
    fate: str = "passed"
    broker: int = 0

    @property
    def error(self) -> str:
        """Return the error of a response, "NONE" for none, "" for a request or an unknown message."""
        return error_of(self.fields) if self.direction == "response" else ""


def trim(frames: list[Frame]) -> None:
    """Forget the older half of twice as many as are kept."""
    if len(frames) >= 2 * KEPT:
        del frames[:KEPT]


LOGGED = ("number", "at", "broker", "connection", "direction", "api", "version", "client", "fate")


def lines(frames: Sequence[Frame]) -> Iterator[str]:
    """Yield the log as JSON lines; bytes are hexadecimal."""
    for frame in frames:
        more = {"error": frame.error or None, "fields": frame.fields}
        data = {name: getattr(frame, name) for name in LOGGED}
        data |= {name: value for name, value in more.items() if value is not None}
        yield json.dumps(data, default=bytes.hex)
