"""Work on several processors. The workers are forks, so the work need not be written down for them."""

from __future__ import annotations

import contextlib
import os
import signal
import traceback
import warnings
from collections.abc import Callable, Iterator
from multiprocessing import get_all_start_methods, get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar

T = TypeVar("T")


def spread(work: Callable[[int], T], count: int, jobs: int | None = None) -> Iterator[tuple[int, T | None]]:
    """``work(i)`` for i from 0 to ``count``, each with its number, as they finish.

    ``jobs`` processes do it, by default one for each processor; on systems that cannot fork it is this one.
    None is the result of work during which its process died. An exception of the work ends everything, and
    so does closing the iterator.

    Even one job is done by a worker: z3 in this process would now and then swallow a Ctrl-C.
    """
    jobs = min(jobs or os.cpu_count() or 1, count)
    if "fork" not in get_all_start_methods():
        for number in range(count):
            yield number, work(number)
        return
    waiting = iter(range(count))
    busy: dict[Connection, tuple[BaseProcess, int]] = {}

    def next_to(pipe: Connection, process: BaseProcess) -> None:
        number = next(waiting, None)
        pipe.send(number)
        if number is None:
            pipe.close()
            process.join()
        else:
            busy[pipe] = process, number

    def start() -> None:
        pipe, process = _fork(work, [*busy])
        next_to(pipe, process)

    try:
        for _ in range(jobs):
            start()
        while busy:
            for pipe in wait([*busy]):
                assert isinstance(pipe, Connection)
                process, number = busy.pop(pipe)
                try:
                    failed, result = pipe.recv()
                except EOFError:
                    process.join()
                    yield number, None
                    start()
                    continue
                if failed:
                    raise RuntimeError(f"in a worker:\n{result}")
                next_to(pipe, process)
                yield number, result
    finally:
        for process, _ in busy.values():
            # Nothing less: one that has just begun may still have our handlers, and drop what they would do.
            process.kill()
        for process, _ in busy.values():
            process.join()


def _fork(work: Callable[[int], Any], others: list[Connection]) -> tuple[Connection, BaseProcess]:
    context = get_context("fork")
    mine, its = context.Pipe()
    process = context.Process(target=_serve, args=(work, its, [mine, *others]), daemon=True)
    with warnings.catch_warnings():
        # Some other thread of ours may hold a lock now; the worker takes none but its pipe's.
        warnings.simplefilter("ignore", DeprecationWarning)
        process.start()
    its.close()
    return mine, process


def _serve(work: Callable[[int], Any], pipe: Connection, others: list[Connection]) -> None:
    """What a worker does. Ctrl-C is for the one who started it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for name in ("SIGTERM", "SIGHUP"):  # of whoever ends the whole group of processes
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    for other in others:  # so that they end when we do
        other.close()
    with contextlib.suppress(EOFError, BrokenPipeError):  # nobody is there any more
        while (number := pipe.recv()) is not None:
            try:
                answer = False, work(number)
            except Exception:
                answer = True, traceback.format_exc()
            pipe.send(answer)
