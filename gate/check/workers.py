"""Work on several processors: forked workers that do one task after the other and say what comes of each.

The workers are forks, so that tasks need not be written down for them; what they say is pickled. They leave
nothing behind: whoever ends early ends them first, and they end by themselves when nobody listens any more.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import traceback
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager
from multiprocessing import get_all_start_methods, get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar, cast

T = TypeVar("T")
Task = Callable[[], Iterator[T]]

GRACE = 5.0
"""Seconds that workers get to end what they have started."""

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class CannotShare(Exception):
    """The workers cannot all begin; the text says why. Nothing has been done."""


class _Ended(BaseException):
    """SIGTERM: clean up and go."""


def processors() -> int:
    """How many processors this process may use."""
    with contextlib.suppress(AttributeError):  # not Linux
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def spread(
    tasks: Sequence[Task[T]], jobs: int, working: Callable[[], AbstractContextManager[None]]
) -> Generator[tuple[int, T], None, None]:
    """What the tasks yield, each with the number of its task: in the order of each task, as it comes.

    ``jobs`` workers take the tasks in order; ``working`` is entered in each of them first, and the first task
    begins when all have. An exception of a task ends everything, and so does closing the iterator. One job,
    and any number where the system cannot fork, is done in this process, where nothing is entered.
    Raises CannotShare where ``working`` raises in a worker, before anything is yielded.
    """
    jobs = min(jobs, len(tasks))
    if jobs <= 1 or "fork" not in get_all_start_methods():
        for number, task in enumerate(tasks):
            for item in task():
                yield number, item
        return
    crew: dict[Connection, BaseProcess] = {}
    try:
        for _ in range(jobs):
            _fork(tasks, working, crew)
        for pipe in crew:
            if (failed := _hear(pipe)[1]) is not None:
                raise CannotShare(failed)
        numbers = iter(range(len(tasks)))
        busy = set[Connection]()
        for pipe in crew:
            pipe.send(next(numbers))
            busy.add(pipe)
        while busy:
            for ready in wait(list(busy)):
                pipe = cast(Connection, ready)
                number, item = _hear(pipe)
                if number is not None:
                    yield number, item
                elif (following := next(numbers, None)) is not None:
                    pipe.send(following)
                else:
                    busy.remove(pipe)
    finally:
        _dismiss(crew)


def _hear(pipe: Connection) -> tuple[Any, Any]:
    """What a worker has done: the number of a task and what that yields, or None when it wants another task.

    Raises RuntimeError for what a task raised, and for a worker that died.
    """
    try:
        raised, number, item = pipe.recv()
    except (EOFError, ConnectionResetError):
        raise RuntimeError("a worker ended before its work") from None
    if raised:
        raise RuntimeError(f"in a worker:\n{item}")
    return number, item


def _fork(
    tasks: Sequence[Task[T]],
    working: Callable[[], AbstractContextManager[None]],
    crew: dict[Connection, BaseProcess],
) -> None:
    """One more worker in ``crew``; Ctrl-C while it begins comes when it has begun."""
    context = get_context("fork")
    mine, its = context.Pipe()
    process = context.Process(target=_work, args=(tasks, working, its, [mine, *crew]), daemon=True)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    try:
        with warnings.catch_warnings():
            # Some other thread of ours may hold a lock now; the worker takes none but its pipe's.
            warnings.simplefilter("ignore", DeprecationWarning)
            process.start()
        crew[mine] = process
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        its.close()


def _dismiss(crew: dict[Connection, BaseProcess]) -> None:
    """End the workers, who end what they have started."""
    for process in crew.values():
        process.terminate()
    for pipe, process in crew.items():
        process.join(GRACE)
        process.kill()
        process.join()
        pipe.close()


def _work(
    tasks: Sequence[Task[T]],
    working: Callable[[], AbstractContextManager[None]],
    pipe: Connection,
    others: Sequence[Connection],
) -> None:
    """What a worker does. Ctrl-C is for the one who started it."""
    signal.signal(signal.SIGINT, lambda number, frame: None)
    for ending in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(ending) is not signal.SIG_IGN:  # as nohup wants it
            signal.signal(ending, _end)
    gc.freeze()  # what is here already need not be looked at again
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError, _Ended):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
        for other in others:  # so that they end when we do
            other.close()
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(working())
            except Exception as error:
                pipe.send((False, None, str(error)))
                return
            pipe.send((False, None, None))
            while True:
                number = pipe.recv()
                try:
                    for item in tasks[number]():
                        pipe.send((False, number, item))
                except Exception:
                    pipe.send((True, number, traceback.format_exc()))
                else:
                    pipe.send((False, None, None))


def _end(number: int, frame: object) -> None:
    for other in _ENDING:  # once is enough: from here on it cleans up
        signal.signal(other, signal.SIG_IGN)
    raise _Ended
