"""What the recorders of the Python clients share: the lines they read and write, and the loop.

stdin: a line of settings ``{"bootstrap", "group", "consumer", "host", "topics", "origin", "poll", "config"}``
(``poll``: milliseconds that a poll may wait for records, and a command for a poll), then
commands ``{"do": "subscribe", "topics": [...]}``, ``unsubscribe``, ``pause`` (polling), ``resume``, ``owns``,
``throw`` (in the next callback), ``commit`` (what was read, without waiting), ``close``. ``config`` has
Kafka's own names. Its end ends the program at once.

stdout: events as of ``pipeline/audit/sources/events.py``, and more: ``polled`` with ``ranges`` (partition ->
first and last offset), ``owns`` with the partitions that the client itself says it has, ``owned`` with the
same while partitions are revoked or lost, ``error``.

All processes of a machine share CLOCK_MONOTONIC. ``origin`` is what to add to it for the time since 1970 in
ns, measured once for the whole run, so that no step of the wall clock reorders events.
"""

from __future__ import annotations

import json
import logging
import os
import queue
import re
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

PAUSE = 0.05
"""Seconds before the next poll after one that raised."""

THREW = "the listener throws, as it was told to"
"""What an error says that a listener has thrown on command."""

Ranges = dict[str, tuple[int, int]]
"""topic-partition -> first and last offset of what a poll returned."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def stamp(ns: int) -> str:
    """Nanoseconds since 1970 as ISO 8601, in microseconds.

    >>> stamp(1_500_000_000_123_456_789)
    '2017-07-14T02:40:00.123456Z'
    """
    return f"{_EPOCH + timedelta(microseconds=ns // 1000):%Y-%m-%dT%H:%M:%S.%fZ}"


class Recorder:
    """Writes events, from any thread. ``generation`` and ``member`` are what the client was told last."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.settings = settings
        self.config: dict[str, str] = {name: str(value) for name, value in settings["config"].items()}
        self.generation: int | None = None
        self.member: str | None = None
        self.throws = False
        """Whether the next callback does."""
        self.owned: Callable[[], Iterable[str]] = tuple
        """What the client says that it has."""
        self._common = {name: settings[name] for name in ("group", "consumer", "host") if settings.get(name)}
        self._lock = threading.RLock()

    def write(self, event: str, partitions: Iterable[str] | None = None, **more: Any) -> None:
        """Write an event that happens now."""
        with self._lock:
            at = stamp(time.monotonic_ns() + self.settings["origin"])
            line = {"at": at, "event": event, **self._common}
            if self.generation is not None:
                line["generation"] = self.generation
            if self.member:
                line["member"] = self.member
            if instance := self.config.get("group.instance.id"):
                line["instance"] = instance
            if partitions is not None:
                line["partitions"] = sorted(partitions)
            sys.stdout.write(json.dumps({**line, **more}) + "\n")
            sys.stdout.flush()

    def joined(self, generation: int, member: str) -> None:
        """A JoinGroup response told us this."""
        with self._lock:
            self.generation, self.member = generation, member
            self.write("joined")

    def noting(self, event: str) -> Callable[[object], None]:
        """Return what writes ``event`` whenever it is called, as `LogTap` wants it."""
        return lambda _: self.write(event)

    def callback(self, event: str, partitions: Iterable[Any]) -> None:
        """A callback of the listener. Raises ListenerThrew when that was asked for."""
        if event != "assigned":
            self.write("owned", self.owned())
        self.write(event, map(named, partitions))
        if self.throws:
            self.throws = False
            raise ListenerThrew(THREW)


class ListenerThrew(Exception):
    """Exception that a listener throws on command."""


class Client(ABC):
    """One consumer of some library, which is ``consumer``."""

    consumer: Any

    @abstractmethod
    def subscribe(self, topics: list[str]) -> None: ...

    def unsubscribe(self) -> None:
        self.consumer.unsubscribe()

    @abstractmethod
    def poll(self, seconds: float) -> Ranges:
        """Return what was read; runs callbacks."""

    def owned(self) -> Iterable[str]:
        """Yield what the client says is assigned to it."""
        return map(named, self.consumer.assignment())

    @abstractmethod
    def commit(self) -> None:
        """Commit what was read, without waiting for the answer."""

    def close(self) -> None:
        self.consumer.close()


def serve(make: Callable[[Recorder], Client], version: str) -> None:
    """Run the program: until it is told to close, or stdin ends."""
    recorder = Recorder(json.loads(sys.stdin.readline()))
    commands: queue.Queue[dict[str, Any]] = queue.Queue()
    threading.Thread(target=_listen, args=(commands,), daemon=True).start()
    recorder.write("started", detail=version)
    client, wait = make(recorder), recorder.settings["poll"] / 1000
    recorder.owned = client.owned
    _subscribe(client, recorder, recorder.settings["topics"])
    polling, subscribed = True, bool(recorder.settings["topics"])
    while True:
        try:
            # Without a subscription poll raises or waits for one, as the client likes.
            given = commands.get(block=not (polling and subscribed))
        except queue.Empty:
            given = {}
        try:
            match given.get("do"):
                case None:
                    if ranges := client.poll(wait):
                        recorder.write("polled", ranges=ranges)
                case "subscribe":
                    subscribed = True
                    _subscribe(client, recorder, given["topics"])
                case "unsubscribe":
                    subscribed = False
                    recorder.write("subscribed", topics=[])
                    client.unsubscribe()
                case "pause" | "resume":
                    polling = given["do"] == "resume"
                case "owns":
                    recorder.write("owns", client.owned())
                case "throw":
                    recorder.throws = True
                case "commit":
                    client.commit()
                case "close":
                    client.close()
                    recorder.write("closed")
                    sys.stdout.flush()
                    os._exit(0)  # some libraries leave threads that nobody ends
        except Exception as error:
            cause = f": {error.__cause__}" if error.__cause__ else ""
            recorder.write("error", detail=f"{type(error).__name__}: {error}{cause}")
            if given.get("do") == "close":
                os._exit(1)
            time.sleep(PAUSE)  # an error that stays must not spin


def _listen(commands: queue.Queue[dict[str, Any]]) -> None:
    for line in sys.stdin:
        commands.put(json.loads(line))
    os._exit(3)


def _subscribe(client: Client, recorder: Recorder, topics: list[str]) -> None:
    recorder.write("subscribed", topics=topics)
    if topics:
        client.subscribe(topics)


NUMBERS = re.compile(r"-?\d+")


def arguments(config: Mapping[str, str], assignors: Mapping[str, Any]) -> dict[str, Any]:
    """Kafka's configuration as the keyword arguments that Python clients make of it.

    ``assignors``: what the client has by its name on the wire. Raises ValueError for one that it has not.

    >>> arguments({"session.timeout.ms": "6000", "enable.auto.commit": "true"}, {})
    {'session_timeout_ms': 6000, 'enable_auto_commit': True}
    """
    given: dict[str, Any] = {}
    for name, value in config.items():
        key = name.replace(".", "_")
        if name == "partition.assignment.strategy":
            names = [one.strip() for one in value.split(",")]
            if missing := [one for one in names if one not in assignors]:
                raise ValueError(f"no assignor {missing[0]!r}; there are: {', '.join(assignors)}")
            given[key] = [assignors[one] for one in names]
        elif NUMBERS.fullmatch(value):
            given[key] = int(value)
        else:
            given[key] = {"true": True, "false": False}.get(value, value)
    return given


class LogTap(logging.Handler):
    """Calls functions for what a library logs: ``callbacks``, by the text before its arguments are put in."""

    def __init__(self, name: str, callbacks: Mapping[str, Callable[[logging.LogRecord], None]]) -> None:
        super().__init__(logging.INFO)
        self._callbacks = callbacks
        logger = logging.getLogger(name)
        logger.setLevel(logging.INFO)
        logger.addHandler(self)
        written = logging.StreamHandler()  # to stderr, for people and for `rebalance audit`
        written.setFormatter(_dated())
        logger.addHandler(written)

    def emit(self, record: logging.LogRecord) -> None:
        if callback := self._callbacks.get(str(record.msg)):
            callback(record)


def _dated() -> logging.Formatter:
    """With the time in UTC."""
    layout = logging.Formatter("%(asctime)s.%(msecs)03dZ %(levelname)s %(name)s: %(message)s", _SECONDS)
    layout.converter = time.gmtime
    return layout


_SECONDS = "%Y-%m-%dT%H:%M:%S"


def named(partition: Any) -> str:
    """topic-partition, of what any client calls a TopicPartition."""
    return f"{partition.topic}-{partition.partition}"


def listener(base: Any, recorder: Recorder) -> Any:
    """Return a listener of a client whose interface of it is ``base``."""

    class Listener(base):  # type: ignore[misc]
        def on_partitions_assigned(self, assigned: Any) -> None:
            recorder.callback("assigned", assigned)

        def on_partitions_revoked(self, revoked: Any) -> None:
            recorder.callback("revoked", revoked)

        def on_partitions_lost(self, lost: Any) -> None:
            recorder.callback("lost", lost)

    return Listener()


def collected(polled: Mapping[Any, Iterable[Any]]) -> Ranges:
    """Return what a poll returned as ranges; ``polled``: TopicPartition -> records."""
    ranges: Ranges = {}
    for partition, records in polled.items():
        for record in records:
            extend(ranges, named(partition), record.offset)
    return ranges


def extend(ranges: Ranges, name: str, offset: int) -> None:
    """Add one record to what a poll returned."""
    first, last = ranges.get(name, (offset, offset))
    ranges[name] = min(first, offset), max(last, offset)
