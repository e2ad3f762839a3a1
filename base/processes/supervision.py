"""Processes that do not outlive us, and what the system knows of them: started, measured, ended, named.

Linux and macOS. What only /proc knows (Linux) is 0 or empty elsewhere.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import resource
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

_HERE = Path(__file__).parent
TIED = (sys.executable, "-I", "-S", str(_HERE / "parent_death.py"))
KEPT = (sys.executable, "-I", "-S", str(_HERE.parent / "confine" / "keeper.py"))

LINUX = sys.platform == "linux"
SANDBOX = "sandbox"
"""The file that an OSError names which says why there is no sandbox."""

_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICK = 1 / os.sysconf("SC_CLK_TCK")
_MOST_FILES = 10_000  # that are counted
_MOST = 100_000  # processes that are stopped before they are killed


def spawn(command: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
    """Start ``command`` in a session (process group) of its own; it dies with the thread that starts it.

    ``options`` are those of ``subprocess.Popen``. Raises OSError when it cannot be started.
    """
    return _spawn(TIED, (), command, options)


def keep(
    command: Sequence[str], scratch: str, sandbox: Mapping[str, Any] | None = None, **options: Any
) -> subprocess.Popen[bytes]:
    """Start a program that is not trusted, below the two processes of `confined.keeper`: all that it starts
    ends with it and with us, whatever session it is in, and ``scratch`` is removed then.

    ``sandbox``: it runs in one, and this is what `confined.sandbox` is told. The process that is returned is
    the outer keeper, which ends as the program does; where there is none (not Linux) it is the program, as of
    ``spawn``. Raises OSError when it cannot be started, of a file called `SANDBOX` where there can be none.
    """
    if LINUX:
        return _spawn(KEPT, (scratch, json.dumps(sandbox) if sandbox else ""), command, options)
    if sandbox:
        raise OSError(errno.ENOSYS, "only Linux has what it is made of", SANDBOX)
    return spawn(command, **options)


def _spawn(
    starter: Sequence[str], settings: Sequence[str], command: Sequence[str], options: Mapping[str, Any]
) -> subprocess.Popen[bytes]:
    """Start one of our two starters, which say into a pipe why the command does not run."""
    status, its = os.pipe()
    with open(status, "rb") as failed:
        try:
            argv = [*starter, str(os.getpid()), str(its), *settings, *command]
            process = subprocess.Popen(argv, start_new_session=True, pass_fds=(its,), **options)
        finally:
            os.close(its)
        if failure := failed.read():
            process.communicate()
            number, _, no_sandbox = failure.decode("utf-8", "replace").partition(" ")
            why = no_sandbox or os.strerror(int(number))
            raise OSError(int(number), why, SANDBOX if no_sandbox else command[0])
    return process


def family(pid: int, *, kept: bool = True) -> list[int]:
    """Return a process and its descendants, parents first; without ``kept`` none that is below a keeper of
    ours."""
    found = [pid]
    for one in found:
        if not kept and one != pid and _is_keeper(one):
            continue
        with contextlib.suppress(OSError):
            for thread in os.listdir(f"/proc/{one}/task"):
                with open(f"/proc/{one}/task/{thread}/children", "rb") as children:
                    found += map(int, children.read().split())
    return found


def resident(pids: Iterable[int]) -> int:
    """Return bytes of memory that processes have resident, all together."""
    pages = 0
    for pid in pids:
        with contextlib.suppress(OSError, IndexError), open(f"/proc/{pid}/statm", "rb") as statm:
            pages += int(statm.read().split()[1])
    return pages * _PAGE


_MEMORY_FILES = ("/memfd:", "/dev/shm/", "/dev/zero", "/SYSV")
"""How what the links of open files that are memory say begins."""


def shared_memory(pids: Sequence[int]) -> int:
    """Return bytes of shared memory that processes hold and have not mapped, at least: what they have open,
    and what they made by System V; what is mapped is resident."""
    files: dict[tuple[int, int], int] = {}
    mapped = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            for number in os.listdir(f"/proc/{pid}/fd"):
                path = f"/proc/{pid}/fd/{number}"
                with contextlib.suppress(OSError):
                    if os.readlink(path).startswith(_MEMORY_FILES):
                        known = os.stat(path)
                        files[known.st_dev, known.st_ino] = known.st_blocks * 512
    held = sum(files.values()) + sum(size for _, size in segments(pids))
    if held:
        for pid in pids:
            with contextlib.suppress(OSError), open(f"/proc/{pid}/status", "rb") as status:
                mapped += sum(int(line.split()[1]) << 10 for line in status if line.startswith(b"RssShmem"))
    return max(0, held - mapped)


def temporary(pids: Iterable[int], directory: str) -> int:
    """Return bytes on disk of the files in a directory, and of those that processes have open and that were
    there; of a part of them where they are very many."""
    files: dict[tuple[int, int], int] = {}

    def count(known: os.stat_result) -> None:
        if stat.S_ISREG(known.st_mode):
            files[known.st_dev, known.st_ino] = known.st_blocks * 512

    folders = [directory]
    for folder in folders:
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                if len(files) + len(folders) > _MOST_FILES:
                    break
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                else:
                    count(entry.stat(follow_symlinks=False))
    for pid in pids:
        with contextlib.suppress(OSError):
            for number in os.listdir(f"/proc/{pid}/fd"):
                path = f"/proc/{pid}/fd/{number}"
                with contextlib.suppress(OSError):
                    if os.readlink(path).startswith(f"{directory}/"):
                        count(os.stat(path))
    return sum(files.values())


def segments(pids: Iterable[int]) -> list[tuple[int, int]]:
    """Id and resident bytes of the System V segments that these processes made."""
    makers = set(pids)
    with contextlib.suppress(OSError, ValueError), open("/proc/sysvipc/shm", "rb") as table:
        names, *rows = (line.split() for line in table)
        found = [dict(zip(names, map(int, row), strict=True)) for row in rows]
        return [(row[b"shmid"], row[b"rss"]) for row in found if row[b"cpid"] in makers]
    return []


def remove_segments(pids: Iterable[int]) -> None:
    """Remove the System V segments that these processes made, which would outlive them."""
    for number, _ in segments(pids):
        ctypes.CDLL(None).shmctl(number, 0, None)  # IPC_RMID


class TimeUsed:
    """Time that a process and its descendants have used since they were first looked at.

    A busy machine changes none of it: a process that is ready and does not get to run is neither at work nor
    idle. Where /proc does not tell, both are the time that went by.
    """

    def __init__(self, pid: int) -> None:
        self.ran = self.idle = 0.0
        self._pid, self._seen, self._cpu = pid, time.monotonic(), cpu_seconds(family(pid)) or 0.0

    def look(self) -> float:
        """Return the longer of the two by now: seconds that they ran, all together, and seconds of whole
        moments between two looks in which none of them did, or could have. Look often."""
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
    """Return seconds that processes ran, with their children that have ended, to the hundredth; None if /proc
    does not tell."""
    ticks = list[int]()
    for pid in pids:
        with contextlib.suppress(OSError, IndexError):
            ticks += map(int, _stat(f"/proc/{pid}")[11:15])
    return sum(ticks) * _TICK if ticks else None


def ready(pids: Iterable[int]) -> bool:
    """Check whether a thread of these processes runs, or would if the machine had a processor for it."""
    for pid in pids:
        with contextlib.suppress(OSError):
            for thread in os.listdir(f"/proc/{pid}/task"):
                with contextlib.suppress(OSError, IndexError):
                    if _stat(f"/proc/{pid}/task/{thread}")[0] == b"R":
                        return True
    return False


def _stat(directory: str) -> list[bytes]:
    """Return what the system knows of a process or thread, from its state on; what precedes may hold
    anything."""
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
    found = [] if waited_for else frozen(pid)  # those in other sessions are found while their parents live
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    send_signal(signal.SIGKILL, found)


def _is_keeper(pid: int) -> bool:
    """Check whether it is a keeper of ours, which ends what is below it itself when its parent ends."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as arguments:
        return os.fsencode(KEPT[-1]) in arguments.read().split(b"\0")[:5]
    return False


def frozen(pid: int) -> list[int]:
    """Return a process and its descendants, each stopped: none of them starts another any more. Keepers below
    it are left out, with what is below them: they end that and themselves, and remove what it left."""
    found: dict[int, None] = {}
    kept = _is_keeper(pid)
    while new := [one for one in family(pid, kept=kept) if one not in found]:
        if not kept:
            new = [one for one in new if one == pid or not _is_keeper(one)]
        if not new or len(found) > _MOST:  # in the end somebody is quicker than we are
            break
        send_signal(signal.SIGSTOP, new)
        found.update(dict.fromkeys(new))
    return [*found]


def marked(mark: str) -> list[int]:
    """Return the processes that have this text in their environment: what has left its family is known by
    it."""
    found = []
    for entry in os.listdir("/proc") if LINUX else ():
        if entry.isdigit() and int(entry) != os.getpid():
            with contextlib.suppress(OSError), open(f"/proc/{entry}/environ", "rb") as environment:
                if os.fsencode(mark) in environment.read():
                    found.append(int(entry))
    return found


def named(code: int) -> str:
    """Return how a process ended, by its exit code, negative for a signal.

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


def hide_process_memory() -> None:
    """Keep this process' environment, memory and open files from other processes of the user, as what we
    start and do not trust is one (Linux; root sees them)."""
    if LINUX:
        ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)  # PR_SET_DUMPABLE


def limit_memory(mib: int) -> None:
    """Let this process take no more than so much, as far as the system tells what it has (Linux)."""
    with contextlib.suppress(OSError, ValueError):
        pages = [int(number) for number in Path("/proc/self/statm").read_text().split()[:2]]
        all_, used = (number * _PAGE for number in pages)
        most = all_ + max(0, (mib << 20) - used)
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


@contextlib.contextmanager
def defer_interrupt() -> Iterator[None]:
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
def record_signals(arrived: list[int]) -> Iterator[None]:
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
