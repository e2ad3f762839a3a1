"""Work done by forks of this process, so that it need not be written down for them: in parallel (`spread`,
`stream`), or one piece after the other where a piece may hang or kill its process (`isolated`).

POSIX only. On Linux a worker also ends when the thread that started it does, whatever it hangs in.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import math
import os
import resource
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import Any, TypeVar

from rebalance_verifier.base.processes.parent_death import tie
from rebalance_verifier.base.processes.supervision import TimeUsed, end_all, named

T = TypeVar("T")

POLL_SECONDS = 0.1
"""Seconds for which results of isolated work are gathered, and after which its worker is looked at."""

START_SECONDS = 60.0
"""How long an isolated worker may take to get ready, where the limit is no longer than that."""


_ITEM, _DONE, _RAISED = range(3)
"""What a parallel worker sends: something that its work yields, that it is free, or an error's text."""


def processors() -> int:
    """Return how many processors this process may use."""
    with contextlib.suppress(AttributeError):  # not Linux
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class CannotStart(RuntimeError):
    """The worker does not get ready; the text says why."""


class Worker:
    """A fork of this process in which ``serve`` runs with one end of a ``pipe``; ours is the other.

    ``others``: ends of other workers' pipes, which it closes so that those end when we do. Ctrl-C is for
    the one who started it.
    """

    def __init__(self, serve: Callable[[Connection], None], others: Iterable[Connection] = ()) -> None:
        self.pipe, its = Pipe()
        self._ended: int | None = None
        parent = os.getpid()
        with warnings.catch_warnings():
            # Some other thread of ours may hold a lock now; the worker takes none but its pipe's.
            warnings.simplefilter("ignore", DeprecationWarning)
            self.pid = os.fork()
        if not self.pid:
            status = 1
            try:
                tie(parent)
                signal.signal(signal.SIGINT, signal.SIG_IGN)
                for number in (signal.SIGTERM, signal.SIGHUP):  # of whoever ends the whole group of processes
                    signal.signal(number, signal.SIG_DFL)
                for other in (self.pipe, *others):
                    other.close()
                with contextlib.suppress(EOFError, BrokenPipeError):  # nobody is there any more
                    serve(its)
                status = 0
            finally:
                os._exit(status)
        its.close()

    @property
    def ended(self) -> int | None:
        """Its exit code, negative for a signal; None while it runs."""
        if self._ended is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self._ended = os.waitstatus_to_exitcode(status) if pid else None
        return self._ended

    def join(self) -> int:
        """Wait until it has ended; its exit code."""
        if self._ended is None:
            self._ended = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self._ended

    def kill(self) -> None:
        """End it with all that it started. Idempotent."""
        if self.ended is None:
            end_all(self.pid)
        self.join()
        self.pipe.close()


# -- in parallel ---------------------------------------------------------------------------------------


def spread(work: Callable[[int], T], count: int, jobs: int | None = None) -> Iterator[tuple[int, T | None]]:
    """``work(i)`` for i from 0 to ``count``, each with its number, as they finish: see ``stream``."""
    return stream(lambda: contextlib.nullcontext(lambda number: (work(number),)), count, jobs)


def stream(
    working: Callable[[], AbstractContextManager[Callable[[int], Iterable[T]]]],
    count: int,
    jobs: int | None = None,
    *,
    anew: bool = False,
    silence: float | None = None,
) -> Generator[tuple[int, T | None], None, None]:
    """Yield what ``work(i)`` yields for i from 0 to ``count``, each with its i: in order for each i, as it
    comes.

    ``jobs`` processes do it, by default one for each processor; on systems that cannot fork it is this one.
    ``working`` is entered in each of them first and gives ``work``, and nothing is done before all are ready.
    ``anew``: for each i there is a process of its own. None comes of work during which its process died, or
    nobody said anything for ``silence`` seconds. An exception of the work ends everything, and so does
    closing the iterator. Results have to be picklable. Raises CannotStart where ``working`` raises.

    Even one job is done by a worker: z3 in this process would now and then swallow a Ctrl-C.
    """
    if not hasattr(os, "fork"):
        with working() as work:
            yield from ((number, item) for number in range(count) for item in work(number))
        return
    waiting = iter(range(count))
    busy: dict[Connection, tuple[Worker, int]] = {}

    def serve(pipe: Connection) -> None:
        _seldom_collected()
        with contextlib.ExitStack() as stack:
            try:
                work = stack.enter_context(working())
            except Exception as error:
                pipe.send((_RAISED, str(error)))
                return
            pipe.send((_DONE, None))
            while (number := pipe.recv()) is not None:
                try:
                    for item in work(number):
                        pipe.send((_ITEM, item))
                except Exception:
                    pipe.send((_RAISED, traceback.format_exc()))
                else:
                    pipe.send((_DONE, None))

    def start() -> Worker:
        worker = Worker(serve, busy)
        busy[worker.pipe] = worker, -1
        return worker

    def ready(worker: Worker) -> Worker:
        try:
            kind, error = _heard(worker.pipe, silence)
        except (EOFError, OSError):
            raise CannotStart("the process ended before it was ready") from None
        if kind == _RAISED:
            raise CannotStart(error)
        return worker

    def assign(worker: Worker, number: int | None) -> None:
        with contextlib.suppress(OSError):  # it died since it was done: its pipe says so
            worker.pipe.send(number)

    def next_to(worker: Worker, done: bool = False) -> None:
        number = next(waiting, None)
        used = done and anew
        if number is None or used:
            del busy[worker.pipe]
            if used:  # with whatever its work has left running
                worker.kill()
            else:
                assign(worker, None)
                worker.join()
                worker.pipe.close()
        if number is not None:
            worker = ready(start()) if used else worker
            assign(worker, number)
            busy[worker.pipe] = worker, number

    try:
        for worker in [ready(one) for one in [start() for _ in range(min(jobs or processors(), count))]]:
            next_to(worker)
        while busy:
            for pipe in wait([*busy], silence) or [*busy]:
                assert isinstance(pipe, Connection)
                worker, number = busy[pipe]
                try:
                    kind, item = _heard(pipe, 0)
                except (EOFError, OSError):  # the latter within an answer
                    del busy[pipe]
                    worker.kill()
                    yield number, None
                    next_to(ready(start()))
                    continue
                if kind == _RAISED:
                    raise RuntimeError(f"in a worker:\n{item}")
                if kind == _DONE:
                    next_to(worker, done=True)
                else:
                    yield number, item
    finally:
        for worker, _ in busy.values():
            worker.kill()


def _seldom_collected() -> None:
    """Freeze the objects that are here already, and collect new ones less often."""
    gc.freeze()
    gc.set_threshold(50_000)


def _heard(pipe: Connection, seconds: float | None) -> tuple[int, Any]:
    """Return what a worker says within so many seconds. Raises EOFError for silence as for its end."""
    if not pipe.poll(seconds):
        raise EOFError
    kind, item = pipe.recv()
    return kind, item


# -- one after the other -------------------------------------------------------------------------------


def isolated(
    working: Callable[[], AbstractContextManager[Callable[[int], T]]],
    first: int,
    last: int,
    limit: float,
    lost: Callable[[int, str, str], T],
) -> Iterator[list[T]]:
    """Yield the results of the numbers ``first`` to ``last - 1``, in order, in lists as they become known.

    ``working`` is entered in each worker and gives the function that does one number; results have to be
    picklable. ``limit``: seconds that one may take. In place of a number that hangs, ends its process twice
    (once may be somebody else's doing) or raises there is ``lost(number, "hung" | "died" | "error", why)``.
    Raises CannotStart.
    """
    suspect = -1
    while first < last:
        begin = first

        def serve(pipe: Connection, begin: int = begin) -> None:
            quiet()
            _seldom_collected()
            with contextlib.ExitStack() as stack:
                try:
                    work = stack.enter_context(working())
                except BaseException as error:
                    pipe.send(f"{type(error).__name__}: {error}")
                    return
                pipe.send(None)
                for number in range(begin, last):
                    try:
                        result = work(number)
                    except Exception as error:
                        result = lost(number, "error", f"{type(error).__name__}: {error}"[:500])
                    pipe.send(result)

        worker = Worker(serve)
        done = list[T]()
        try:
            watch = _Watch(worker, limit)
            while watch.fate is None:
                if done := watch.results():
                    first += len(done)
                    yield done
        finally:
            worker.kill()
        if first == last:
            return
        if watch.fate[0] == "hung" and done:
            continue  # it got on with its work while it was being killed
        if watch.fate[0] == "died" and suspect != first:
            suspect = first
            continue
        yield [lost(first, *watch.fate)]
        first += 1


class _Watch:
    """An isolated worker's task and its outcome: its ``fate``, None while it works."""

    def __init__(self, worker: Worker, limit: float) -> None:
        self.fate: tuple[str, str] | None = None
        self._worker, self._limit = worker, limit
        self._allowed = max(limit, START_SECONDS)
        self._ready = False
        self._advance()

    def _advance(self) -> None:
        self._used: TimeUsed | None = None

    def results(self) -> list[Any]:
        """Return what it does in a moment. Raises CannotStart."""
        found = self._read(POLL_SECONDS)
        self._used = self._used or TimeUsed(self._worker.pid)
        if self.fate is None and self._used.look() > self._allowed:
            end_all(self._worker.pid)
            found += self._read(math.inf)
            self.fate = "hung", f"no result within {self._limit:g} s"
        return found

    def _read(self, seconds: float) -> list[Any]:
        """Return what it sends in this time, up to its end."""
        until, found = time.monotonic() + seconds, list[Any]()
        try:
            while (left := until - time.monotonic()) > 0 and self._worker.pipe.poll(min(left, 3600)):
                message = self._worker.pipe.recv()
                if self._ready:
                    found.append(message)
                elif message is not None:
                    raise CannotStart(message)
                self._ready, self._allowed = True, self._limit
                self._advance()
        except (EOFError, OSError):  # the latter within a message
            self.fate = "died", f"its process ended with {named(self._worker.join())}"
            if not self._ready:
                raise CannotStart("the process ended before it was ready") from None
        return found


def quiet() -> None:
    """Print nothing where the driver does not, and leave no core file."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(null, number)
    sys.stdout = sys.stderr = open(null, "w", encoding="utf-8")  # noqa: SIM115  # until the end
    faulthandler.disable()
