"""A program of ours that speaks lines of JSON: commands in, events or answers out."""

from __future__ import annotations

import json
import math
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from rebalance.live.processes.child import Child, Gone
from rebalance.live.processes.tools import ToolError
from rebalance.properties.assignors.calls import FailureKind

JsonLine = dict[str, Any]

GRACE = 5.0
"""Seconds that a program gets to end by itself."""
TAIL = 2000
"""Characters of what it wrote to stderr that a message quotes."""


class CommandRefused(RuntimeError):
    """A program, or what it runs, did not do what it can do; the text is its own."""


def started(command: Sequence[str], log: Path | None = None) -> Child:
    """The program as a child whose stderr goes to ``log``, or a temporary file. Raises ToolError."""
    file: BinaryIO = log.open("ab+") if log else tempfile.TemporaryFile()  # noqa: SIM115
    try:
        return Child(command, log=file)
    except OSError as error:
        file.close()
        raise ToolError(f"{command[0]} cannot be started: {error.strerror}") from error


def quoted(child: Child) -> str:
    """The last of what it wrote to stderr, for a message."""
    return child.stderr()[-TAIL:]


def message_of(child: Child, deadline: float) -> JsonLine:
    """The next line that is a JSON object: a library may print others. Raises Gone."""
    while True:
        try:
            message = json.loads(child.line(deadline))
        except ValueError:
            continue
        if isinstance(message, dict):
            return message


def sent(child: Child, message: JsonLine) -> None:
    """Write a line; nothing happens when it does not listen any more."""
    child.send(json.dumps(message).encode() + b"\n")


class Process:
    """A program that speaks when it likes, and does not outlive the thread that starts it.

    ``heard`` is called with each line that is a JSON object, in the order written, by a thread of ours, and
    with None when there will be no more. ``log``: where its stderr goes (a temporary file). Raises ToolError
    when it cannot be started.
    """

    def __init__(
        self,
        command: Sequence[str],
        heard: Callable[[JsonLine | None], None],
        *,
        log: Path | None = None,
    ) -> None:
        self._child = started(command, log)
        self._heard = heard
        self._reader = threading.Thread(target=self._read, name=f"lines of {self.pid}", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """Its process id, also of its process group."""
        return self._child.pid

    @property
    def returncode(self) -> int | None:
        """How it ended; None while it runs."""
        return self._child.returncode

    def _read(self) -> None:
        try:
            while True:
                self._heard(message_of(self._child, math.inf))
        except Gone:
            self._heard(None)

    def send(self, line: JsonLine) -> None:
        """Write a line; nothing happens when it does not listen any more."""
        sent(self._child, line)

    def signal(self, number: int) -> None:
        """Send a signal to it and whatever it has started."""
        self._child.signal(number)

    def status(self, seconds: float) -> int | None:
        """How it ended, within so many seconds; negative: by that signal."""
        return self._child.wait(seconds)

    def wait(self, seconds: float) -> bool:
        """Whether it has ended, within so many seconds, and all that it said was heard."""
        ended = self._child.wait(seconds) is not None
        if ended:
            self._reader.join(seconds)
        return ended

    def end(self, grace: float = GRACE) -> None:
        """Close its stdin, give it a moment, then kill it."""
        self._child.finish(grace)
        self._reader.join(GRACE)
        if not self._reader.is_alive():  # else somebody has its pipe still
            self._child.release()

    def stderr(self) -> str:
        """The last of what it wrote to stderr."""
        return quoted(self._child)


class Server:
    """A program that answers each command with one line, ``{"error": ...}`` when it cannot.

    The first line, which it writes unasked, says that it is ready: ``hello``, after so many seconds at most.
    ``ready`` None: say `await_ready` before anything else.
    """

    def __init__(
        self, command: Sequence[str], *, ready: float | None = 30.0, log: Path | None = None
    ) -> None:
        self.child = started(command, log)
        self._name = " ".join(command[-2:])
        self.hello: JsonLine = {}
        if ready is not None:
            try:
                self.await_ready(ready)
            except BaseException:
                self.child.kill()
                raise

    def await_ready(self, seconds: float) -> JsonLine:
        """What it said when it was ready. Raises ToolError."""
        self.hello = self._answer(seconds)
        return self.hello

    def _answer(self, seconds: float) -> JsonLine:
        try:
            answer = message_of(self.child, time.monotonic() + seconds)
        except Gone as gone:
            if gone.kind is FailureKind.TIMEOUT:
                raise ToolError(f"{self._name} did not answer within {seconds:g} s") from None
            raise ToolError(f"{self._name} has ended: {quoted(self.child) or 'it says nothing'}") from None
        if "unavailable" in answer:
            raise ToolError(str(answer["unavailable"]))
        if "error" in answer:
            raise CommandRefused(str(answer["error"]))
        return answer

    def ask(self, do: str, *, seconds: float = 30.0, **arguments: Any) -> JsonLine:
        """Its answer. Raises CommandRefused when it cannot do it, ToolError when it does not answer."""
        sent(self.child, {"do": do, **arguments})
        return self._answer(seconds)

    def end(self, grace: float = GRACE) -> None:
        """Close its stdin, give it a moment, then kill it."""
        self.child.close(grace)
