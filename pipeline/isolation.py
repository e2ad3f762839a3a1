"""Work that may hang or kill its process, done in a forked child, so that only the culprit is lost.

The child appends each result to a file as soon as it has it, so results outlive the child, and their number
says which piece of work it died of. The parent reads the file a few times a second; whoever takes longer
than its time, or ends the process, is given up, and a new child goes on behind it.

POSIX only. On Linux a child also ends when its parent does, whatever it hangs in.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import os
import pickle
import resource
import select
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import BinaryIO, Generic, TypeVar

T = TypeVar("T")

TICK = 0.1
"""Seconds between two looks at what the child has done."""

START_SECONDS = 60.0
"""How long a child may take to get ready, where the limit is no longer than that."""

_LENGTH = 4
_PR_SET_PDEATHSIG = 1


class CannotStart(RuntimeError):
    """The child does not get ready to work; the text says why."""


def isolated(
    working: Callable[[], AbstractContextManager[Callable[[int], T]]],
    first: int,
    last: int,
    limit: float,
    lost: Callable[[int, str, str], T],
) -> Iterator[list[T]]:
    """The results of the numbers ``first`` to ``last - 1``, in order, in lists as they become known.

    ``working`` is entered in each child and gives the function that does one number; results have to be
    picklable. ``limit``: seconds that one may take. In place of a number that hangs, ends its process twice
    (once may be somebody else's doing) or raises there is ``lost(number, "hung" | "died" | "error", why)``.
    Raises CannotStart.
    """
    suspect = -1
    while first < last:
        with tempfile.TemporaryFile() as log:
            child = _Child[T](log, partial(_work, log, working, first, last, lost))
            try:
                fate, done = None, list[T]()
                while fate is None:
                    fate = child.wait(limit)
                    done = child.results()
                    if done:
                        first += len(done)
                        yield done
            finally:
                child.kill()
        if first == last:
            return
        if fate[0] == "hung" and done:
            continue  # it got on with its work while it was being killed
        if fate[0] == "died" and suspect != first:
            suspect = first
            continue
        yield [lost(first, *fate)]
        first += 1


def _work(
    log: BinaryIO,
    working: Callable[[], AbstractContextManager[Callable[[int], T]]],
    first: int,
    last: int,
    lost: Callable[[int, str, str], T],
) -> None:
    """What the child does: say that it is ready (None) or why it is not, then one result after the other."""
    with contextlib.ExitStack() as stack:
        try:
            work = stack.enter_context(working())
        except BaseException as error:
            _append(log, f"{type(error).__name__}: {error}")
            return
        _append(log, None)
        for number in range(first, last):
            try:
                result = work(number)
            except Exception as error:
                result = lost(number, "error", f"{type(error).__name__}: {error}"[:500])
            _append(log, result)


def _append(log: BinaryIO, value: object) -> None:
    """One write for each value: a process that is killed has written all of it or, at worst, a part."""
    data = pickle.dumps(value)
    os.write(log.fileno(), len(data).to_bytes(_LENGTH, "little") + data)


class _Child(Generic[T]):
    """A forked child at work, and its results so far."""

    def __init__(self, log: BinaryIO, work: Callable[[], None]) -> None:
        self._log, self._read = log, 0
        self._ready = False
        self._progress = time.monotonic()
        # The child alone holds the other end: that this one ends tells us at once that the child did.
        self._alive, held = os.pipe()
        parent = os.getpid()
        with warnings.catch_warnings():
            # Of threads: the child runs Python only, and none of the libraries that have them.
            warnings.simplefilter("ignore", DeprecationWarning)
            self._pid = os.fork()
        if not self._pid:
            status = 1
            try:
                os.close(self._alive)
                _end_with(parent)
                _quiet()
                work()
                status = 0
            finally:
                os._exit(status)
        os.close(held)
        self._ended: int | None = None
        self._queued = 0.0

    def wait(self, limit: float) -> tuple[str, str] | None:
        """Wait a moment; what became of the child ("died" also where all is done), None while it works."""
        with contextlib.suppress(InterruptedError):
            select.select([self._alive], [], [], TICK)
        pid, status = os.waitpid(self._pid, os.WNOHANG)
        if pid:
            self._ended = os.waitstatus_to_exitcode(status)
            how = f"status {self._ended}" if self._ended >= 0 else signal.Signals(-self._ended).name
            return "died", f"its process ended with {how}"
        if self._size() > self._read:
            return None
        allowed = limit if self._ready else max(limit, START_SECONDS)
        # Time in which it waits for a processor is not held against it: a busy machine is no hang.
        if time.monotonic() - self._progress - (queued(self._pid) - self._queued) > allowed:
            self.kill()
            return "hung", f"no result within {limit:g} s"
        return None

    def results(self) -> list[T]:
        """What the child has done since this was last asked. Raises CannotStart."""
        data = os.pread(self._log.fileno(), self._size() - self._read, self._read)
        found: list[T] = []
        at = 0
        while at + _LENGTH <= len(data):
            end = at + _LENGTH + int.from_bytes(data[at : at + _LENGTH], "little")
            if end > len(data):
                break
            value = pickle.loads(data[at + _LENGTH : end])
            at = end
            if self._ready:
                found.append(value)
            elif value is None:
                self._ready = True
            else:
                raise CannotStart(value)
        if at:
            self._read += at
            self._progress, self._queued = time.monotonic(), queued(self._pid)
        if not self._ready and self._ended is not None:
            raise CannotStart("the process ended before it was ready")
        return found

    def kill(self) -> None:
        """End the child with all that it started. Idempotent."""
        if self._alive < 0:
            return
        if self._ended is None:
            for pid in reversed(family(self._pid)):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            self._ended = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
        os.close(self._alive)
        self._alive = -1

    def _size(self) -> int:
        return os.fstat(self._log.fileno()).st_size


def family(pid: int) -> list[int]:
    """A process and its descendants, parents first, as far as /proc tells them."""
    found = [pid]
    for one in found:
        with contextlib.suppress(OSError):
            for children in Path(f"/proc/{one}/task").glob("*/children"):
                found += map(int, children.read_text().split())
    return found


def queued(pid: int) -> float:
    """Seconds that a process was ready to run and did not get to; 0 where /proc does not tell."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0


def _end_with(parent: int) -> None:
    """Let the kernel kill this process when its parent ends, however that does."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)


def _quiet() -> None:
    """What is done here prints nothing where the driver does, leaves no core file, and is deaf to Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(null, number)
    sys.stdout = sys.stderr = open(null, "w", encoding="utf-8")  # noqa: SIM115  # until the end
    faulthandler.disable()
