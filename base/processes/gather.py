"""Work in parts, done in parallel, whose results are taken in the order of the parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Generic, NamedTuple, TypeVar

from rebalance_verifier.base.processes.workers import stream

T = TypeVar("T")


class Gathered(NamedTuple, Generic[T]):
    """How the work ended, early if anything is set, and the results behind a part that is missing.

    ``stopped``: what the taker says; ``killed``: the part whose process was killed.
    """

    stopped: str = ""
    killed: int | None = None
    interrupted: bool = False
    behind: tuple[T, ...] = ()


def gather(
    working: Callable[[], AbstractContextManager[Callable[[int], Iterable[T]]]],
    parts: int,
    jobs: int | None,
    take: Callable[[T], str],
    heard: Callable[[], str] = lambda: "",
) -> Gathered[T]:
    """Do ``parts`` pieces of work, each with one result, and ``take`` the results in the order of the parts.

    So what is taken is the same for any number of jobs. ``take`` and ``heard``, which is called after each
    result, return why to stop, "" to go on. Ctrl-C ends it too. See ``workers.stream``.
    """
    known: dict[int, T] = {}
    so_far, stopped = 0, ""
    killed, interrupted = None, False
    work = stream(working, parts, jobs)
    try:
        for number, one in work:
            if one is None:
                killed = number
                break
            known[number] = one
            while so_far in known and not stopped:
                stopped = take(known.pop(so_far))
                so_far += 1
            if stopped := heard() or stopped:
                break
    except KeyboardInterrupt:
        interrupted = True
    finally:
        work.close()
    return Gathered(stopped, killed, interrupted, tuple(known.values()))
