"""One child process that is not trusted: write lines to it, read lines from it, and be rid of it.

Knows nothing of the protocol. Linux and macOS; memory is watched where /proc tells it (Linux).
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence

from rebalance.properties.calls import FailureKind

MAX_LINE = 64 * 2**20
"""Longest line accepted from a child, in bytes."""

TAIL = 64 * 2**10
"""How much of a child's stderr is kept, in bytes."""

_TICK = 0.02  # seconds between two looks at a child that is silent
_CHUNK = 2**16
_GRACE = 1.0  # seconds a child gets to end by itself
_STACK = 1.0  # seconds it gets to write its stack
_SILENCE = 0.1  # seconds without more of it, after which that is all
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Gone(Exception):
    """The child cannot be used any more. ``kind`` is timeout, crash, memory or garbage."""

    def __init__(self, kind: FailureKind, message: str) -> None:
        super().__init__(message)
        self.kind, self.message = kind, message


class Child:
    """A running process in a session (process group) of its own, with pipes that never block us.

    Raises OSError when ``command`` cannot be started. After `Gone` only `stderr` and `kill` are of use.
    """

    def __init__(
        self, command: Sequence[str], memory_mib: int, environment: Mapping[str, str] | None = None
    ) -> None:
        self._process = subprocess.Popen(
            command,
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            env=environment,
        )
        self._pipes = [p for p in (self._process.stdin, self._process.stdout, self._process.stderr) if p]
        self._stdin, self._stdout, self._stderr = (pipe.fileno() for pipe in self._pipes)
        self._queued_before: float | None = None
        self._poll = select.poll()
        for pipe in (self._stdin, self._stdout, self._stderr):
            os.set_blocking(pipe, False)
        for pipe in (self._stdout, self._stderr):
            self._poll.register(pipe, select.POLLIN)
        self._unsent = bytearray()
        self._deaf = False  # it closed its stdin
        self._received = bytearray()
        self._searched = 0  # bytes of _received known to hold no newline
        self._tail = bytearray()
        self._memory_mib = memory_mib
        self._next_look = time.monotonic() + _TICK

    @property
    def pid(self) -> int:
        """Process id, which is also the id of the process group."""
        return self._process.pid

    def send(self, data: bytes) -> None:
        """Write now what the pipe takes; `line` writes the rest while it waits."""
        self._unsent += data
        self._write()
        if self._unsent:
            self._poll.register(self._stdin, select.POLLOUT)

    def line(self, deadline: float) -> bytes:
        """The next line of stdout without its newline; waits until ``deadline`` (``time.monotonic``).

        Time that the child spends waiting for a processor is not held against it: a busy machine is no
        hang. Raises Gone.
        """
        self._queued_before = None
        while True:
            end = self._received.find(b"\n", self._searched)
            if end >= 0:
                line = bytes(self._received[:end])
                del self._received[: end + 1]
                self._searched = 0
                return line
            self._searched = len(self._received)
            if self._searched > MAX_LINE:
                raise Gone(FailureKind.GARBAGE, f"wrote {MAX_LINE >> 20} MiB without a newline")
            self._wait(deadline)

    def stderr(self) -> str:
        """The last of what the child wrote to stderr, as far as it is text."""
        self._drain()
        return self._tail[-TAIL:].decode("utf-8", "replace").strip()

    def ask_for_stack(self, number: int) -> None:
        """Let a child that has a handler for this signal write its stack to stderr; waits until it is
        silent again."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)
        end = until = time.monotonic() + _STACK
        while (now := time.monotonic()) < min(until, end):
            time.sleep(_TICK / 4)
            if self._drain():  # a JVM writes its stacks bit by bit
                until = now + _SILENCE

    def close(self) -> None:
        """Close its stdin, give it a moment to end by itself, then `kill` what is left."""
        family = self._family()[1:] if self._pipes else []  # who outlives it is not found afterwards
        try:
            if self._pipes:
                self._pipes[0].close()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(_GRACE)
        finally:
            self.kill()
            for pid in family:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)

    def kill(self) -> None:
        """End the process, its process group and its known descendants, and close the pipes. Idempotent."""
        if not self._pipes:
            return
        # Descendants first: those in sessions of their own can only be found while their parents live.
        for pid in self._family()[1:]:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        self._drain()
        for pipe in self._pipes:
            pipe.close()
        self._pipes, self._stderr = [], -1  # the numbers may soon be another's

    # --- waiting ---------------------------------------------------------------------------------------

    def _wait(self, deadline: float) -> None:
        """Wait for something to happen, one tick at most, and deal with it. Raises Gone."""
        now = time.monotonic()
        heard = False
        for pipe, _ in self._poll.poll(max(0.0, min(_TICK, deadline - now)) * 1000):
            if pipe == self._stdout:
                heard = True
                self._read()
            elif pipe == self._stderr:
                self._drain()
            else:
                self._write()
        now = time.monotonic()
        if now >= self._next_look:
            self._next_look = now + _TICK
            self._look(heard)
            if self._queued_before is None:
                self._queued()
        # What has been heard may be the whole reply, so the clock is asked only without a newline.
        if now >= deadline + self._queued() and self._received.find(b"\n", self._searched) < 0:
            raise Gone(FailureKind.TIMEOUT, "no complete line" if self._received else "no reply")

    def _look(self, heard: bool) -> None:
        """Has it ended behind an open pipe, is it deaf, is it too big? Raises Gone."""
        if self._memory_mib < (used := self._resident() >> 20):
            raise Gone(FailureKind.MEMORY, f"uses {used} MiB of memory, limit {self._memory_mib} MiB")
        if not heard and (self._deaf or self._process.poll() is not None):
            # Its last words may have come since the poll.
            with contextlib.suppress(BlockingIOError):
                while True:
                    self._read()
                    if self._received.find(b"\n", self._searched) >= 0:
                        return
            raise Gone(FailureKind.CRASH, self._ending())

    def _queued(self) -> float:
        """Seconds that the child was ready to run and did not get to, since this was first asked.

        Source: the second field of /proc/PID/schedstat; 0 where there is none.
        """
        try:
            with open(f"/proc/{self.pid}/schedstat", "rb") as file:
                waited = int(file.read().split()[1]) / 1e9
        except (OSError, ValueError, IndexError):
            return 0.0
        if self._queued_before is None:
            self._queued_before = waited
        return waited - self._queued_before

    def _read(self) -> None:
        data = os.read(self._stdout, _CHUNK)
        if not data:
            raise Gone(FailureKind.CRASH, self._ending())
        self._received += data

    def _write(self) -> None:
        try:
            while self._unsent:
                del self._unsent[: os.write(self._stdin, self._unsent[:_CHUNK])]
        except BlockingIOError:
            return
        except OSError:  # it reads no more; earlier requests may still be answered
            self._deaf = True
            self._unsent.clear()
        with contextlib.suppress(KeyError):
            self._poll.unregister(self._stdin)

    def _drain(self) -> bool:
        """Read the stderr that is there, a bounded amount of it, so that a flood cannot hold us here; whether
        there was any."""
        heard = False
        with contextlib.suppress(OSError, KeyError):  # nothing there, or closed before
            for _ in range(16):
                data = os.read(self._stderr, _CHUNK)
                if not data:
                    self._poll.unregister(self._stderr)
                    break
                heard = True
                self._tail += data
                if len(self._tail) > 2 * TAIL:
                    del self._tail[:-TAIL]
        return heard

    def _ending(self) -> str:
        """How it ended, in words."""
        try:
            code = self._process.wait(0.5)
        except subprocess.TimeoutExpired:
            return "closed its stdin" if self._deaf else "closed its stdout and is still running"
        if code >= 0:
            return f"ended with exit status {code} instead of answering"
        return f"was ended by {_signal_name(-code)} instead of answering"

    # --- what /proc knows ------------------------------------------------------------------------------

    def _family(self) -> list[int]:
        """The process and its descendants, as far as /proc/PID/task/PID/children tells them."""
        family = [self.pid] if self._process.returncode is None else []  # its number may be another's
        for pid in family:
            try:
                with open(f"/proc/{pid}/task/{pid}/children", "rb") as children:
                    family += map(int, children.read().split())
            except OSError:
                continue
        return family

    def _resident(self) -> int:
        """Bytes of memory that the family has resident; 0 where /proc does not tell."""
        pages = 0
        for pid in self._family():
            try:
                with open(f"/proc/{pid}/statm", "rb") as statm:
                    pages += int(statm.read().split()[1])
            except (OSError, IndexError):
                continue
        return pages * _PAGE


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
