"""One child process: write lines to it, read lines from it, and be rid of it, whatever it does.

Knows nothing of what is spoken. Linux and macOS; memory is watched where /proc tells it (Linux).
"""

from __future__ import annotations

import contextlib
import math
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO

from rebalance_verifier.base.files import Kept
from rebalance_verifier.base.processes.failure import FailureKind
from rebalance_verifier.base.processes.supervision import (
    LINUX,
    TimeUsed,
    cpu_seconds,
    end_all,
    family,
    keep,
    marked,
    named,
    remove_segments,
    resident,
    send_signal,
    shared_memory,
    spawn,
    temporary,
)

MAX_LINE = 64 * 2**20
"""Longest line accepted from a child, in bytes."""

MAX_ANSWER = 8 * 2**20
"""The same of one that is not trusted: what it takes to read a line is many times as much."""

TAIL = 64 * 2**10
"""How much of a child's stderr is kept, in bytes."""

_TICK = 0.02  # seconds between two looks at a child that is silent
_LOOKS = 50  # it waits for the next look so many times as long as one takes, as of a JVM with its threads
_RARELY = 1.0  # the same, where only its end is looked for, which its stdout tells mostly
_SELDOM = 0.2  # the same for shared memory that nobody has mapped
_SHARED_MIB = 512  # what can be written in a sandbox, which is memory, at most
_CHUNK = 2**16
_GRACE = 1.0  # seconds a child gets to end by itself
_STACK = 1.0  # seconds it gets to write its stack
_SILENCE = 0.1  # seconds without more of it, after which that is all


class ProcessGone(Exception):
    """The child cannot be used any more. ``kind`` is timeout, crash, memory or garbage."""

    def __init__(self, kind: FailureKind, message: str) -> None:
        super().__init__(message)
        self.kind, self.message = kind, message


class Child:
    """A running process in a session (process group) of its own, with pipes that never block us.

    It dies with the thread that starts it. ``log``: where its stderr goes, a file that is closed with it;
    without one the last of it is kept. ``memory_mib``: how much it and its descendants may have resident.
    ``kept``: it is not trusted; whatever it starts ends with it, and it has a directory for its temporary
    files, which is removed then. ``sandbox``: it runs in one. Raises OSError when ``command`` cannot be
    started. After `ProcessGone` only `stderr` and `kill` are of use.
    """

    def __init__(
        self,
        command: Sequence[str],
        memory_mib: float = math.inf,
        environment: Mapping[str, str] | None = None,
        log: BinaryIO | None = None,
        *,
        kept: bool = False,
        sandbox: bool = False,
    ) -> None:
        pipe = subprocess.PIPE
        options: dict[str, Any] = {"bufsize": 0, "stdin": pipe, "stdout": pipe, "stderr": log or pipe}
        # Its keepers remove it, and the next of its kind where this process ends before they are there.
        self._kept = Kept("target") if kept else None
        self._scratch = str(self._kept.path) if self._kept else ""
        self._longest = MAX_ANSWER if kept else MAX_LINE
        self._keepers = 0
        if kept:
            environment = {**(os.environ if environment is None else environment), "TMPDIR": self._scratch}
            try:
                world = _world(command, environment, memory_mib) if sandbox else None
                self._process = keep(command, self._scratch, world, env=environment, **options)
            except BaseException:
                if self._kept:
                    self._kept.remove()
                raise
            self._keepers = 2 if LINUX else 0
        else:
            self._process = spawn(command, env=environment, **options)
        # The program is the first child of the inner keeper, which is the first one of the outer.
        self._pid = self._process.pid
        for _ in range(self._keepers):
            self._pid = next(iter(family(self._pid)[1:]), self._pid)
        self._made: set[int] = set()  # descendants that were seen
        self._next_count = 0.0
        self._log = log
        self._pipes = [p for p in (self._process.stdin, self._process.stdout, self._process.stderr) if p]
        self._stdin, self._stdout, *errors = (pipe.fileno() for pipe in self._pipes)
        self._stderr = errors[0] if errors else -1
        self._used: TimeUsed | None = None  # for the line that is waited for
        self._poll = select.poll()
        for number in (self._stdin, self._stdout, *errors):
            os.set_blocking(number, False)
        for number in (self._stdout, *errors):
            self._poll.register(number, select.POLLIN)
        self._unsent = bytearray()
        self._sending = threading.Lock()  # who reads writes, too, what the pipe did not take
        self._deaf = False  # it closed its stdin
        self._received = bytearray()
        self._searched = 0  # bytes of _received known to hold no newline
        self._tail = bytearray()
        self._memory_mib = memory_mib
        self._tick = _TICK if memory_mib < math.inf else _RARELY
        self._next_look = time.monotonic() + self._tick

    @property
    def pid(self) -> int:
        """Return the process id of the program, which is also the id of its process group."""
        return self._pid

    @property
    def returncode(self) -> int | None:
        """Return how it ended, negative for a signal; None while it runs."""
        return self._process.poll()

    @property
    def cpu_seconds(self) -> float:
        """Return the seconds that it and its descendants have run; by the clock where /proc does not tell."""
        seconds = cpu_seconds(self._family())
        return time.monotonic() if seconds is None else seconds

    def send(self, data: bytes) -> None:
        """Write now what the pipe takes; `line` writes the rest while it waits."""
        with self._sending:
            self._unsent += data
            if not self._write():
                self._poll.register(self._stdin, select.POLLOUT)

    def line(self, deadline: float) -> bytes:
        """Return the next line of stdout without its newline; waits until ``deadline`` (``time.monotonic``).

        Later on a busy machine: what counts is the CPU time of the child and its descendants, and the time
        in which they do nothing at all (``TimeUsed``). Raises ProcessGone.
        """
        self._used, seconds = None, deadline - time.monotonic()
        while True:
            end = self._received.find(b"\n", self._searched)
            if 0 <= end <= self._longest:
                line = bytes(self._received[:end])
                del self._received[: end + 1]
                self._searched = 0
                return line
            self._searched = len(self._received)
            if self._searched > self._longest:
                raise ProcessGone(FailureKind.GARBAGE, f"wrote {self._longest >> 20} MiB without a newline")
            self._wait(seconds)

    def stderr(self) -> str:
        """Return the last of what the child wrote to stderr, as far as it is text."""
        if self._log is None:
            self._drain()
            return self._tail[-TAIL:].decode("utf-8", "replace").strip()
        with contextlib.suppress(OSError, ValueError):
            file = self._log.fileno()  # its offset is the child's, too, which may be writing
            tail = os.pread(file, TAIL, max(0, os.fstat(file).st_size - TAIL))
            return tail.decode("utf-8", "replace").strip()
        return ""

    def signal(self, number: int) -> None:
        """Send a signal to it and whatever is in its process group."""
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, number)

    def wait(self, seconds: float) -> int | None:
        """Return how it ended, within so many seconds, negative for a signal; None: it runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(seconds)
        return None

    def ask_for_stack(self, number: int) -> None:
        """Let a child that has a handler for this signal write its stack to stderr; waits until it is
        silent again."""
        send_signal(number, [self.pid])
        end = until = time.monotonic() + _STACK
        while (now := time.monotonic()) < min(until, end):
            time.sleep(_TICK / 4)
            if self._drain():  # a JVM writes its stacks bit by bit
                until = now + _SILENCE

    def close(self, grace: float = _GRACE, *, farewell: bytes = b"") -> None:
        """Send ``farewell``, close its stdin, give it a moment to end by itself, then `kill` what is left.

        Idempotent.
        """
        try:
            self.finish(grace, farewell)
        finally:
            self.kill()

    def finish(self, grace: float, farewell: bytes = b"") -> None:
        """End it as `close` does, and leave the pipes to whoever reads what it said last."""
        if not self._pipes:
            return
        descendants = self._below()  # who outlives it is not found afterwards, so before it may end
        try:
            if farewell:
                self.send(farewell)
            with contextlib.suppress(OSError):
                self._pipes[0].close()
            self.wait(grace)
        finally:
            self._end_all()
            send_signal(signal.SIGKILL, descendants)

    def abandon(self) -> None:
        """Leave the child to the process that started it, from a fork of that one."""
        for pipe in self._pipes:
            pipe.close()
        self._pipes, self._stderr = [], -1
        if self._kept:
            self._kept.let_go()
        self._process.returncode = 0  # nor is it for us to wait for

    def kill(self) -> None:
        """End the process, its process group and its known descendants, and close the pipes. Idempotent."""
        if self._pipes:
            self._end_all()
            self.release()

    def _end_all(self) -> None:
        ended = self._process.poll()
        self._made.update(self._below())
        end_all(self._process.pid, waited_for=ended is not None)
        self.wait(5)
        if self._keepers and ended == -signal.SIGKILL:  # somebody ended the keepers, to get away
            send_signal(signal.SIGKILL, marked(self._scratch))
        if self._kept:
            remove_segments(self._made)
            self._kept.remove()

    def release(self) -> None:
        """Close the pipes to a process that has ended."""
        self._drain()
        for pipe in self._pipes:
            pipe.close()
        if self._log is not None:
            self._log.close()
        self._pipes, self._stderr = [], -1  # the numbers may soon be another's

    # --- waiting ---------------------------------------------------------------------------------------

    def _wait(self, seconds: float) -> None:
        """Wait for something to happen, one tick at most, and deal with it. ``seconds``: what the child may
        use until there is a line. Raises ProcessGone."""
        tick = max(0.0, min(self._tick, seconds))
        heard = False
        for pipe, _ in self._poll.poll(tick * 1000):
            if pipe == self._stdout:
                heard = True
                self._read()
            elif pipe == self._stderr:
                self._drain()
            else:
                with self._sending:
                    if self._write():
                        self._poll.unregister(self._stdin)
        now = time.monotonic()
        if now < self._next_look and seconds > 0:
            return
        began = time.thread_time()
        try:
            self._look(heard)
            # What has been heard may be the whole reply, so time counts only without a newline.
            if self._received.find(b"\n", self._searched) >= 0:
                return
            used, self._used = self._used, self._used or TimeUsed(self._process.pid)
            if (used.look() if used else 0.0) >= seconds:
                raise ProcessGone(FailureKind.TIMEOUT, "no complete line" if self._received else "no reply")
        finally:
            self._next_look = now + max(tick, _LOOKS * (time.thread_time() - began))

    def _look(self, heard: bool) -> None:
        """Has it ended behind an open pipe, is it deaf, is it too big? Raises ProcessGone."""
        if self._memory_mib < math.inf and self._memory_mib < (used := self._memory() >> 20):
            of = "memory and temporary files" if self._keepers else "memory"
            raise ProcessGone(FailureKind.MEMORY, f"uses {used} MiB of {of}, limit {self._memory_mib} MiB")
        if not heard and (self._deaf or self._process.poll() is not None):
            # Its last words may have come since the poll.
            with contextlib.suppress(BlockingIOError):
                while True:
                    self._read()
                    if self._received.find(b"\n", self._searched) >= 0:
                        return
            raise ProcessGone(FailureKind.CRASH, self._ending())

    def _memory(self) -> int:
        """Return bytes that it and its descendants have resident, and now and then what they share unmapped
        and have in temporary files."""
        pids = self._below() if self._keepers else self._family()
        used, now = resident(pids), time.monotonic()
        if self._keepers and now >= self._next_count:
            self._made.update(pids)
            self._next_count = now + _SELDOM
            used += shared_memory(pids) + temporary(pids, self._scratch)
        return used

    def _read(self) -> None:
        data = os.read(self._stdout, _CHUNK)
        if not data:
            raise ProcessGone(FailureKind.CRASH, self._ending())
        self._received += data

    def _write(self) -> bool:
        """Write what the pipe takes; whether that is all."""
        try:
            while self._unsent:
                del self._unsent[: os.write(self._stdin, self._unsent[:_CHUNK])]
        except BlockingIOError:
            return False
        except OSError:  # it reads no more; earlier requests may still be answered
            self._deaf = True
            self._unsent.clear()
        return True

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
        """Return how it ended, in words."""
        try:
            code = self._process.wait(0.5)
        except subprocess.TimeoutExpired:
            return "closed its stdin" if self._deaf else "closed its stdout and is still running"
        how = f"ended with exit {named(code)}" if code >= 0 else f"was ended by {named(code)}"
        return f"{how} instead of answering"

    def _family(self) -> list[int]:
        """Return the process and its descendants, none of one that has ended: its number may be another's."""
        return family(self._process.pid) if self._process.returncode is None else []

    def _below(self) -> list[int]:
        """Return the same without the process that we have started, and without our keepers."""
        return self._family()[max(1, self._keepers) :]


def _world(command: Sequence[str], environment: Mapping[str, str], memory_mib: float) -> dict[str, Any]:
    """Return what a sandbox is told of the program in it."""
    from rebalance_verifier.base.confine.needed import home_of, needed
    from rebalance_verifier.base.processes.tools import cache

    known = [str(cache() / name) for name in ("classes", "pypi", "leaders")]
    return {
        "shared_mib": max(1, int(min(memory_mib, _SHARED_MIB))),
        "home": home_of(environment),
        "shown": needed(command, environment, known),
    }
