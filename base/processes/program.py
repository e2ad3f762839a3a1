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

from rebalance_verifier.base.processes.child import Child, ProcessGone
from rebalance_verifier.base.processes.failure import FailureKind
from rebalance_verifier.base.processes.lines import to_line
from rebalance_verifier.base.processes.tools import ToolError

JsonLine = dict[str, Any]

GRACE = 5.0
"""Seconds that a program gets to end by itself."""
TAIL = 2000
"""Characters of what it wrote to stderr that a message quotes."""


class CommandRefused(RuntimeError):
    """A program, or what it runs, did not do what it can do; the text is its own."""


class Program(Child):
    """It does not outlive the thread that starts it. ``log``: where its stderr goes (a temporary file).

    Raises ToolError when it cannot be started.
    """

    def __init__(self, command: Sequence[str], log: Path | None = None) -> None:
        file: BinaryIO = log.open("ab+") if log else tempfile.TemporaryFile()  # noqa: SIM115
        try:
            super().__init__(command, log=file)
        except OSError as error:
            file.close()
            raise ToolError(f"{command[0]} cannot be started: {error.strerror}") from error

    def order(self, message: JsonLine) -> None:
        """Write a line; nothing happens when it does not listen any more."""
        self.send(to_line(message))

    def message(self, deadline: float) -> JsonLine:
        """Return the next line that is a JSON object: a library may print others. Raises ProcessGone."""
        while True:
            try:
                message = json.loads(self.line(deadline))
            except ValueError:
                continue
            if isinstance(message, dict):
                return message

    def stderr(self) -> str:
        """Return the last of what it wrote to stderr, for a message."""
        return super().stderr()[-TAIL:]


class Process(Program):
    """A program that speaks when it likes, to who has begun to ``listen``."""

    _reader: threading.Thread | None = None

    def listen(self, heard: Callable[[JsonLine | None], None]) -> None:
        """Let a thread of ours call ``heard`` with each line that is a JSON object, in the order written, and
        with None when there will be no more. It may do so at once: whatever it needs has to be there."""

        def read() -> None:
            try:
                while True:
                    heard(self.message(math.inf))
            except ProcessGone:
                heard(None)

        self._reader = threading.Thread(target=read, name=f"lines of {self.pid}", daemon=True)
        self._reader.start()

    def ended(self, seconds: float) -> bool:
        """Check whether it has ended, within so many seconds, and all that it said was heard."""
        ended = self.wait(seconds) is not None
        if ended and self._reader:
            self._reader.join(seconds)
        return ended

    def end(self, grace: float = GRACE) -> None:
        """Close its stdin, give it a moment, then kill it."""
        self.finish(grace)
        if self._reader:
            self._reader.join(GRACE)
            if self._reader.is_alive():  # somebody has its pipe still
                return
        self.release()


class Server(Program):
    """A program that answers each command with one line, ``{"error": ...}`` when it cannot.

    The first line, which it writes unasked, says that it is ready: ``hello``, after so many seconds at most.
    ``ready`` None: call `await_ready` before anything else.
    """

    def __init__(
        self, command: Sequence[str], *, ready: float | None = 30.0, log: Path | None = None
    ) -> None:
        super().__init__(command, log)
        self._name = " ".join(command[-2:])
        self.hello: JsonLine = {}
        if ready is not None:
            try:
                self.await_ready(ready)
            except BaseException:
                self.kill()
                raise

    def await_ready(self, seconds: float) -> JsonLine:
        """Return what it said when it was ready. Raises ToolError."""
        self.hello = self._answer(seconds)
        return self.hello

    def _answer(self, seconds: float) -> JsonLine:
        try:
            answer = self.message(time.monotonic() + seconds)
        except ProcessGone as gone:
            if gone.kind is FailureKind.TIMEOUT:
                raise ToolError(f"{self._name} did not answer within {seconds:g} s") from None
            raise ToolError(f"{self._name} has ended: {self.stderr() or 'it says nothing'}") from None
        if "unavailable" in answer:
            raise ToolError(str(answer["unavailable"]))
        if "error" in answer:
            raise CommandRefused(str(answer["error"]))
        return answer

    def ask(self, do: str, *, seconds: float = 30.0, **arguments: Any) -> JsonLine:
        """Return its answer. Raises CommandRefused when it cannot do it, ToolError when it does not
        answer."""
        self.order({"do": do, **arguments})
        return self._answer(seconds)
