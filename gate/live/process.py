"""A program of ours that speaks lines of JSON: commands in, events or answers out."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from rebalance.gate.live.cluster import Refused, Unavailable

Line = dict[str, Any]

GRACE = 5.0
"""Seconds that a program gets to end by itself."""
TAIL = 2000
"""Bytes of what it wrote to stderr that a message quotes."""

TIED = Path(__file__).with_name("tied.py")


class Process:
    """A running program, in a process group of its own, that does not outlive the thread that starts it.

    ``heard`` is called with each line that is a JSON object, in the order written, by a thread of ours, and
    with None when there will be no more. ``log``: where its stderr goes (a temporary file). Raises
    Unavailable when it cannot be started.
    """

    def __init__(
        self,
        command: Sequence[str],
        heard: Callable[[Line | None], None],
        *,
        log: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.command = tuple(command)
        self._log: BinaryIO = log.open("ab+") if log else tempfile.TemporaryFile()  # noqa: SIM115
        tied = [sys.executable, "-I", "-S", str(TIED), str(os.getpid()), *command]
        try:
            self._process = subprocess.Popen(
                tied,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                start_new_session=True,
                env={**os.environ, **(environment or {})},
            )
        except OSError as error:
            self._log.close()
            raise Unavailable(f"{command[0]} cannot be started: {error}") from error
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        self._heard = heard
        self._reader = threading.Thread(target=self._read, name=f"lines of {self.pid}", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """Its process id, also of its process group."""
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """How it ended; None while it runs."""
        return self._process.poll()

    def _read(self) -> None:
        for line in self._stdout:
            try:
                said = json.loads(line)
            except ValueError:
                continue  # a library that prints
            if isinstance(said, dict):
                self._heard(said)
        self._heard(None)

    def send(self, line: Line) -> None:
        """Write a line; nothing happens when it does not listen any more."""
        with contextlib.suppress(OSError, ValueError):
            self._stdin.write(json.dumps(line).encode() + b"\n")
            self._stdin.flush()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to it and whatever it has started."""
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, number)

    def status(self, seconds: float) -> int | None:
        """How it ended, within so many seconds; negative: by that signal."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(seconds)
        return None

    def wait(self, seconds: float) -> bool:
        """Whether it has ended, within so many seconds, and all that it said was heard."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
            self._reader.join(seconds)
            return True
        return False

    def end(self, grace: float = GRACE) -> None:
        """Close its stdin, give it a moment, then kill it."""
        with contextlib.suppress(OSError):
            self._stdin.close()
        if not self.wait(grace if self.returncode is None else 0.1):
            self.signal(signal.SIGKILL)
            self._process.wait()
        self._reader.join(GRACE)
        if not self._reader.is_alive():  # else somebody has its pipe still, and to close it would wait
            with contextlib.suppress(OSError):
                self._stdout.close()
        self._log.close()

    def stderr(self) -> str:
        """The last of what it wrote to stderr."""
        with contextlib.suppress(OSError, ValueError):
            file = self._log.fileno()  # its offset is the program's, too, which may be writing
            said = os.pread(file, TAIL, max(0, os.fstat(file).st_size - TAIL))
            return said.decode("utf-8", "replace").strip()
        return ""


class Server:
    """A program that answers each command with one line, ``{"error": ...}`` when it cannot.

    The first line, which it writes unasked, says that it is ready: ``hello``, after so many seconds at most.
    ``ready`` None: say `await_ready` before anything else.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        ready: float | None = 30.0,
        log: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._answers: queue.Queue[Line | None] = queue.Queue()
        self.process = Process(command, self._answers.put, log=log, environment=environment)
        self.hello: Line = {}
        if ready is not None:
            try:
                self.await_ready(ready)
            except BaseException:
                self.process.end(0.1)
                raise

    def await_ready(self, seconds: float) -> Line:
        """What it said when it was ready. Raises Unavailable."""
        self.hello = self._answer(seconds)
        return self.hello

    def _answer(self, seconds: float) -> Line:
        deadline = time.monotonic() + seconds
        name = " ".join(self.process.command[-2:])
        try:
            said = self._answers.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            raise Unavailable(f"{name} did not answer within {seconds:g} s") from None
        if said is None:
            raise Unavailable(f"{name} has ended: {self.process.stderr() or 'it says nothing'}")
        if "unavailable" in said:
            raise Unavailable(str(said["unavailable"]))
        if "error" in said:
            raise Refused(str(said["error"]))
        return said

    def ask(self, do: str, *, seconds: float = 30.0, **arguments: Any) -> Line:
        """Its answer. Raises Refused when it cannot do it, Unavailable when it does not answer."""
        self.process.send({"do": do, **arguments})
        return self._answer(seconds)
