"""Processes that do not outlive us, and what the system knows of them: started, measured, ended, named.

Linux and macOS. What only /proc knows (Linux) is 0 or empty elsewhere.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

TIED = (sys.executable, "-I", "-S", str(Path(__file__).with_name("tied.py")))

_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICK = 1 / os.sysconf("SC_CLK_TCK")


def spawn(command: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
    """Start ``command`` in a session (process group) of its own; it dies with the thread that starts it.

    ``options`` are those of ``subprocess.Popen``. Raises OSError when it cannot be started.
    """
    status, its = os.pipe()
    with open(status, "rb") as failed:
        try:
            tied = [*TIED, str(os.getpid()), str(its), *command]
            process = subprocess.Popen(tied, start_new_session=True, pass_fds=(its,), **options)
        finally:
            os.close(its)
        if number := failed.read():
            process.communicate()
            raise OSError(int(number), os.strerror(int(number)), command[0])
    return process


def family(pid: int) -> list[int]:
    """A process and its descendants, parents first."""
    found = [pid]
    for one in found:
        with contextlib.suppress(OSError):
            for thread in os.listdir(f"/proc/{one}/task"):
                with open(f"/proc/{one}/task/{thread}/children", "rb") as children:
                    found += map(int, children.read().split())
    return found


def resident(pids: Iterable[int]) -> int:
    """Bytes of memory that processes have resident, all together."""
    pages = 0
    for pid in pids:
        with contextlib.suppress(OSError, IndexError), open(f"/proc/{pid}/statm", "rb") as statm:
            pages += int(statm.read().split()[1])
    return pages * _PAGE


class TimeUsed:
    """What a process and its descendants have made of the time since they were first looked at.

    A busy machine changes none of it: a process that is ready and does not get to run is neither at work nor
    idle. Where /proc does not tell, both are the time that went by.
    """

    def __init__(self, pid: int) -> None:
        self.ran = self.idle = 0.0
        self._pid, self._seen, self._cpu = pid, time.monotonic(), cpu_seconds(family(pid)) or 0.0

    def look(self) -> float:
        """The longer of the two by now: seconds that they ran, all together, and seconds of whole moments
        between two looks in which none of them did, or could have. Look often."""
        everybody, now = family(self._pid), time.monotonic()
        cpu, passed = cpu_seconds(everybody), now - self._seen
        if cpu is None:
            self.ran, self.idle = self.ran + passed, self.idle + passed
        else:
            if cpu > self._cpu:
                self.ran += cpu - self._cpu
            elif not ready(everybody):
                self.idle += passed
            self._cpu = cpu
        self._seen = now
        return max(self.ran, self.idle)


def cpu_seconds(pids: Iterable[int]) -> float | None:
    """Seconds that processes ran, with their children that have ended, to the hundredth; None if /proc does
    not tell."""
    ticks = list[int]()
    for pid in pids:
        with contextlib.suppress(OSError, IndexError):
            ticks += map(int, _stat(f"/proc/{pid}")[11:15])
    return sum(ticks) * _TICK if ticks else None


def ready(pids: Iterable[int]) -> bool:
    """Whether a thread of these processes runs, or would if the machine had a processor for it."""
    for pid in pids:
        with contextlib.suppress(OSError):
            for thread in os.listdir(f"/proc/{pid}/task"):
                with contextlib.suppress(OSError, IndexError):
                    if _stat(f"/proc/{pid}/task/{thread}")[0] == b"R":
                        return True
    return False


def _stat(directory: str) -> list[bytes]:
    """What the system knows of a process or thread, from its state on; what precedes may hold anything."""
    with open(f"{directory}/stat", "rb") as stat:
        return stat.read().rpartition(b")")[2].split()


def send_signal(number: int, pids: Iterable[int]) -> None:
    """Send a signal to processes, those that are gone by now among them."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def end_all(pid: int, *, waited_for: bool = False) -> None:
    """Kill a process, its descendants, and the process group that it leads, if it does.

    Of one that has been ``waited_for`` the group only: its number may be another's.
    """
    found = [] if waited_for else family(pid)  # those in other sessions are found while their parents live
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    send_signal(signal.SIGKILL, found)


def named(code: int) -> str:
    """How a process ended, by its exit code, negative for a signal.

    >>> named(3), named(-9)
    ('status 3', 'SIGKILL')
    """
    if code >= 0:
        return f"status {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


# -- this process --------------------------------------------------------------------------------------


WAITING = 3
"""So many times as long as it may run a call in this process may take in all."""

_TIMERS = (
    (signal.ITIMER_PROF, signal.SIGPROF, 1),
    (signal.ITIMER_REAL, signal.SIGALRM, WAITING),
)


class ended_after:  # noqa: N801  # a statement, quicker than a generator: it is around each call
    """The process ends, wherever it hangs, if the block takes more than so many seconds of its CPU time, or
    ``WAITING`` times as long by the clock: it does not see itself whether it is idle or has to wait."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def __enter__(self) -> None:
        for timer, number, times in _TIMERS:
            signal.signal(number, signal.SIG_DFL)
            signal.setitimer(timer, times * self._seconds)

    def __exit__(self, *error: object) -> None:
        for timer, _, _ in _TIMERS:
            signal.setitimer(timer, 0)


def limit_memory(mib: int) -> None:
    """Let this process take no more than so much, as far as the system tells what it has (Linux)."""
    with contextlib.suppress(OSError, ValueError):
        pages = [int(number) for number in Path("/proc/self/statm").read_text().split()[:2]]
        all_, used = (number * _PAGE for number in pages)
        most = all_ + max(0, (mib << 20) - used)
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


@contextlib.contextmanager
def held_back() -> Iterator[None]:
    """Ctrl-C and the like wait until the end of the block: z3's bindings would make another error of it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def noted() -> Iterator[Callable[[], None]]:
    """Ctrl-C is noted, and raised by the function that this gives: elsewhere z3's bindings may swallow it."""
    arrived: list[int] = []
    before = signal.getsignal(signal.SIGINT)

    def raise_it() -> None:
        if arrived:
            raise KeyboardInterrupt

    with contextlib.suppress(ValueError):  # not in the main thread
        signal.signal(signal.SIGINT, lambda number, _: arrived.append(number))
    try:
        yield raise_it
    finally:
        with contextlib.suppress(ValueError):
            signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def noticed(arrived: list[int]) -> Iterator[None]:
    """Note the signals that arrive: Py4J may make an error of its own of their KeyboardInterrupt."""
    before: dict[int, Callable[[int, Any], Any]] = {}

    def note(number: int, frame: Any) -> None:
        arrived.append(number)
        before[number](number, frame)

    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        handler = signal.getsignal(number) if number else None
        if number and callable(handler):
            with contextlib.suppress(ValueError):  # not in the main thread
                signal.signal(number, note)
                before[number] = handler
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
