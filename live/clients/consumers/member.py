"""A member of a recorded group: one real consumer in a process of its own, and what it said.

All that is said goes through one `Log`, where whoever waits for something waits: nobody sleeps.
"""

from __future__ import annotations

import itertools
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rebalance_verifier.base.processes.program import JsonLine, Process
from rebalance_verifier.base.processes.tools import ToolError
from rebalance_verifier.live.clients.clusters.defaults import CLOSE, POLL
from rebalance_verifier.live.clients.consumers.clients.recorder import stamp
from rebalance_verifier.live.conformance.clients.table import BY_RECORDER

HOST = "localhost"
"""All clocks of a recording are one."""


class Log:
    """Messages of all members, in the order in which they arrived; ``at`` tells the order in which it
    happened."""

    def __init__(self) -> None:
        self.origin = time.time_ns() - time.monotonic_ns()
        """What to add to the monotonic clock for nanoseconds since 1970."""
        self.lines: list[JsonLine] = []
        self._changed = threading.Condition()

    def add(self, line: JsonLine) -> None:
        """Add a line and wake who waits."""
        with self._changed:
            self.lines.append(line)
            self._changed.notify_all()

    def now(self) -> str:
        """Return the time, as it is in events."""
        return stamp(time.monotonic_ns() + self.origin)

    def wait(self, seconds: float, true: Callable[[Sequence[JsonLine]], Any]) -> bool:
        """Check whether ``true`` of all lines, which is asked again after each, within so many seconds."""
        with self._changed:
            return bool(self._changed.wait_for(lambda: true(self.lines), seconds))


@dataclass(frozen=True)
class ClientProfile:
    """A kind of client: ``name`` as in ``--clients``, and for Java the ``version`` of kafka-clients."""

    name: str
    version: str = ""

    def __str__(self) -> str:
        return f"{self.name}:{self.version}" if self.version else self.name


def command(profile: ClientProfile) -> list[str]:
    """Return the program that runs such a client. Raises ToolError when something is missing."""
    if profile.name == "java":
        from rebalance_verifier.live.clients.clusters.java import recorder

        return recorder(profile.version)
    known = BY_RECORDER[profile.name]
    if not find_spec(known.module):
        name = known.distribution
        raise ToolError(f"clients {profile.name!r} need the package {name}: pip install {name}")
    return [
        sys.executable,
        "-P",
        "-m",
        f"rebalance_verifier.live.clients.consumers.clients.{profile.name.replace('-', '_')}",
    ]


class LiveMember:
    """A consumer that runs. Start it from a thread that lives as long as it shall.

    ``config`` has Kafka's own names, such as ``session.timeout.ms``. ``log_file``: where what the client
    logs goes. ``poll``: milliseconds that a poll may take. Raises ToolError when it cannot be started.
    """

    def __init__(
        self,
        name: str,
        profile: ClientProfile,
        group: str,
        topics: Sequence[str],
        config: Mapping[str, Any],
        *,
        bootstrap: str,
        log: Log,
        log_file: Path | None = None,
        poll: int = POLL,
    ) -> None:
        self.name, self.profile, self.config = name, profile, dict(config)
        self.group, self.log = group, log
        self.stopped = self.killed = False
        self._process = Process(command(profile), log_file)
        self._process.order(
            {
                "bootstrap": bootstrap,
                "group": group,
                "consumer": name,
                "host": HOST,
                "topics": list(topics),
                "origin": log.origin,
                "poll": poll,
                "config": {key: str(value) for key, value in config.items()},
            }
        )
        self._process.listen(self._heard)

    def _heard(self, line: JsonLine | None) -> None:
        if line is not None:
            self.log.add(line)
        elif not self.killed:  # all was said; how did it end?
            if status := self._process.wait(5.0):
                self._gone(f"ended with status {status}")
            self.log.add({"event": "ended", "consumer": self.name})

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Check whether its process is there, stopped or not."""
        return self._process.returncode is None

    @property
    def lines(self) -> Iterator[JsonLine]:
        """Yield what it said so far, in its order."""
        return (line for line in tuple(self.log.lines) if line.get("consumer") == self.name)

    def command(self, do: str, **arguments: Any) -> None:
        """Tell it something (``clients/recorder.py``); it does so between two polls."""
        self._process.order({"do": do, **arguments})

    def await_event(self, event: str, seconds: float, *, after: int = 0) -> JsonLine | None:
        """Return the first such event of its lines from number ``after`` on, within so many seconds; or None.

        A process that has ended by itself is not waited for.
        """

        def first(_: Sequence[JsonLine] = ()) -> JsonLine | None:
            later = itertools.islice(self.lines, after, None)
            return next((line for line in later if line["event"] in (event, "ended")), None)

        self.log.wait(seconds, first)
        found = first()
        return found if found is not None and found["event"] == event else None

    def owned(self, seconds: float) -> list[str] | None:
        """Return what the client says that it has; None when it does not answer in time."""
        before = sum(1 for _ in self.lines)
        self.command("owns")
        answer = self.await_event("owns", seconds, after=before)
        return None if answer is None else list(answer["partitions"])

    def stop(self) -> None:
        """SIGSTOP: it is there, and does nothing."""
        self.stopped = True
        self._process.signal(signal.SIGSTOP)

    def cont(self) -> None:
        """SIGCONT."""
        self.stopped = False
        self._process.signal(signal.SIGCONT)

    def kill(self) -> None:
        """SIGKILL. What it owned it owns no more: the log gets its ``closed``."""
        self.killed, self.stopped = True, False
        self._process.signal(signal.SIGKILL)
        self._process.end(5.0)
        self._gone("killed")

    def _gone(self, why: str) -> None:
        line = {"at": self.log.now(), "event": "closed", "group": self.group, "consumer": self.name}
        self.log.add({**line, "host": HOST, "detail": why})

    def close(self, seconds: float = CLOSE) -> bool:
        """Let it leave the group and end; whether it did. If it does not in time it is killed."""
        if self.closes(seconds):
            self._process.end()
            return self._process.returncode == 0
        self.kill()
        return False

    def closes(self, seconds: float) -> bool:
        """Tell it to leave the group and to end; whether it has ended, within so many seconds."""
        self.cont()
        self.command("close")
        return self._process.ended(seconds)

    def end(self) -> None:
        """Be rid of it, whatever it does: for the end of a run."""
        self.killed = True
        self._process.end(0.0)

    def stderr(self) -> str:
        """Return the last of what it wrote to stderr."""
        return self._process.stderr()
