"""A piece of work that hangs, dies or raises costs itself and nothing else."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest
from rebalance_verifier.base.processes import workers
from rebalance_verifier.base.processes.workers import CannotStart, isolated, spread, stream

from tests.processes import LINUX, left, waits

Result = int | tuple[int, str, str]


def lost(number: int, verdict: str, why: str) -> Result:
    return number, verdict, why


def working(
    work: Callable[[int], Result],
) -> Callable[[], contextlib.AbstractContextManager[Callable[[int], Result]]]:
    return lambda: contextlib.nullcontext(work)


def results(work: Callable[[int], Result], first: int, last: int, limit: float = 30.0) -> list[Result]:
    return [one for some in isolated(working(work), first, last, limit, lost) for one in some]


def test_results_come_in_order_and_none_is_missing():
    assert results(lambda n: n * n, 3, 2000) == [n * n for n in range(3, 2000)]
    assert results(lambda n: n, 5, 5) == []


def test_it_is_done_elsewhere_and_prints_nothing(capfd):
    def work(number: int) -> int:
        print("noise")  # noqa: T201
        os.write(2, b"noise")
        return os.getpid()

    (child,) = set(results(work, 0, 5))
    assert child != os.getpid()
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("end", "why"),
    [
        (lambda: os._exit(7), "its process ended with status 7"),
        (lambda: os._exit(0), "its process ended with status 0"),
        (lambda: sys.exit(), "its process ended with status 1"),
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "its process ended with SIGKILL"),
        (lambda: os.abort(), "its process ended with SIGABRT"),
    ],
)
def test_one_that_ends_its_process_is_named_and_the_rest_goes_on(end, why):
    found = results(lambda n: end() if n in (0, 4, 5, 9) else n, 0, 10)
    assert found == [lost(n, "died", why) if n in (0, 4, 5, 9) else n for n in range(10)]


@pytest.mark.slow
def test_one_that_hangs_is_given_up_with_what_it_started(tmp_path):
    pids = tmp_path / "pids"

    def work(number: int) -> int:
        if number == 2:
            sleeper = subprocess.Popen(["sleep", "1000"], start_new_session=True)
            pids.write_text(f"{os.getpid()} {sleeper.pid}")
            sleeper.wait()
        return number

    assert results(work, 0, 4, limit=1.0) == [0, 1, (2, "hung", "no result within 1 s"), 3]
    assert not left(map(int, pids.read_text().split()))


def test_one_that_raises_costs_no_process():
    def work(number: int) -> int:
        return os.getpid() if number != 1 else 1 // 0

    before, error, after = results(work, 0, 3)
    assert error == (1, "error", "ZeroDivisionError: integer division or modulo by zero")
    assert before == after


def test_nothing_is_done_twice_but_what_died(tmp_path):
    log = tmp_path / "log"

    def work(number: int) -> int:
        with log.open("a") as file:
            file.write(f"{number}\n")
        if number == 50:
            os._exit(1)
        return number

    results(work, 0, 100)
    assert log.read_text().split() == [str(n) for n in (*range(51), *range(50, 100))]


def test_a_process_that_somebody_else_kills_costs_nothing(tmp_path):
    killed = tmp_path / "killed"

    def work(number: int) -> int:
        if number == 3 and not killed.exists():
            killed.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return number

    assert results(work, 0, 6) == [0, 1, 2, 3, 4, 5]


@pytest.mark.slow
def test_results_are_known_before_all_are_there(monkeypatch):
    monkeypatch.setattr(workers, "POLL_SECONDS", 0.01)

    def work(number: int) -> int:
        time.sleep(0.02)
        return number

    assert len(list(isolated(working(work), 0, 50, 30.0, lost))) > 1


def test_who_is_asked_for_no_more_ends_the_child(tmp_path):
    pid = tmp_path / "pid"

    def work(number: int) -> int:
        pid.write_text(str(os.getpid()))
        if number:
            time.sleep(1000)
        return number

    some = isolated(working(work), 0, 3, 2000.0, lost)
    assert next(some) == [0]
    some.close()  # type: ignore[attr-defined]  # it is a generator
    assert not left([int(pid.read_text())])


@pytest.mark.parametrize(
    ("start", "message"),
    [
        (lambda: 1 // 0, "ZeroDivisionError"),
        (lambda: sys.exit("no licence"), "no licence"),
        (lambda: os._exit(3), "ended before it was ready"),
    ],
)
def test_a_child_that_does_not_get_ready_is_an_error(start, message):
    @contextlib.contextmanager
    def broken() -> Iterator[Callable[[int], Result]]:
        start()
        yield lambda n: n

    with pytest.raises(CannotStart, match=message):
        list(isolated(broken, 0, 3, 5.0, lost))


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel does it on Linux only")
def test_a_child_ends_with_its_parent_whatever_it_hangs_in(tmp_path):
    program = f"""
import os, time
from contextlib import nullcontext
from pathlib import Path
from rebalance_verifier.base.processes.workers import isolated

def work(number):
    Path({str(tmp_path / "draft")!r}).write_text(str(os.getpid()))
    Path({str(tmp_path / "draft")!r}).rename({str(tmp_path / "pid")!r})
    time.sleep(1000)

list(isolated(lambda: nullcontext(work), 0, 1, 2000.0, lambda *all: all))
"""
    with subprocess.Popen([sys.executable, "-c", program]) as parent:
        while not (tmp_path / "pid").exists():
            assert parent.poll() is None
            time.sleep(0.02)
        parent.kill()
    assert not left([int((tmp_path / "pid").read_text())])


# -- in parallel ---------------------------------------------------------------------------------------


def test_work_is_spread():
    assert sorted(spread(lambda i: i * i, 7, 3)) == [(i, i * i) for i in range(7)]
    assert list(spread(lambda i: i * i, 3, 1)) == [(0, 0), (1, 1), (2, 4)]
    assert list(spread(lambda i: i, 0, 2)) == []


def test_a_worker_that_dies_costs_its_own_work_only():
    def work(number: int) -> int:
        if number == 2:
            os._exit(9)
        return number

    assert sorted(spread(work, 6, 2)) == [(i, None if i == 2 else i) for i in range(6)]


@pytest.mark.slow
@pytest.mark.skipif(not LINUX, reason="reads the state of a process in /proc")
@pytest.mark.parametrize("count", [1, 3])
def test_a_worker_that_dies_between_two_pieces_of_work_ends_nothing(count):
    found = list[tuple[int, bool]]()
    for number, worker in spread(lambda number: os.getpid(), count, jobs=1):
        if not found:
            assert worker is not None
            while not waits(worker):  # it has said that it is free
                time.sleep(0.01)
            os.kill(worker, signal.SIGKILL)
            assert not left([worker])
        found.append((number, worker is not None))
    assert found == [(0, True), (1, False), (2, True)][:count]


def test_workers_end_with_a_handler_that_they_inherit():
    """As the command has one; a signal that comes before the worker is ready was lost, one time in many."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        for _ in range(30):
            next(spread(lambda i: i, 4, 2))  # which closes it
    finally:
        signal.signal(signal.SIGTERM, before)


def test_an_exception_in_a_worker_is_told():
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        list(spread(lambda i: 1 // i, 4, 2))


def test_workers_that_are_not_wanted_any_more_are_ended_with_what_they_started(tmp_path):
    def work(number: int) -> int:
        if number:
            sleeper = subprocess.Popen(["sleep", "1000"], start_new_session=True)
            (tmp_path / "draft").write_text(f"{os.getpid()} {sleeper.pid}")
            (tmp_path / "draft").rename(tmp_path / "pids")
            sleeper.wait()
        while not (tmp_path / "pids").exists():
            time.sleep(0.01)
        return number

    some = spread(work, 2, 2)
    assert next(some) == (0, 0)
    some.close()  # type: ignore[attr-defined]  # it is a generator
    assert not left(map(int, (tmp_path / "pids").read_text().split()))


def test_a_stream_comes_in_order_from_workers_that_are_ready():
    entered: list[int] = []

    @contextlib.contextmanager
    def working() -> Iterator[Callable[[int], Iterator[int]]]:
        entered.append(os.getpid())
        yield work

    def work(number: int) -> Iterator[int]:
        assert entered == [os.getpid()]
        yield from range(number)

    for anew in (False, True):
        found = list(stream(working, 5, 2, anew=anew))
        assert sorted(found) == [(i, item) for i in range(5) for item in range(i)]
        assert all([item for i, item in found if i == number] == [*range(number)] for number in range(5))
    assert not entered  # in the workers only


def test_a_worker_that_cannot_start_ends_all_before_anything_is_done(tmp_path):
    @contextlib.contextmanager
    def working() -> Iterator[Callable[[int], Iterator[int]]]:
        with contextlib.suppress(FileExistsError):
            (tmp_path / "one").touch(exist_ok=False)
            yield work
            return
        raise OSError("one is enough")

    def work(number: int) -> Iterator[int]:
        (tmp_path / "done").touch()
        yield number

    with pytest.raises(CannotStart, match="one is enough"):
        list(stream(working, 4, 2))
    assert not (tmp_path / "done").exists()


@pytest.mark.parametrize(("anew", "processes"), [(False, 2), (True, 6)])
def test_a_worker_does_one_thing_after_the_other_or_one_only(anew: bool, processes: int) -> None:
    def working() -> contextlib.AbstractContextManager[Callable[[int], list[int]]]:
        return contextlib.nullcontext(lambda number: [os.getpid()])

    assert len({pid for _, pid in stream(working, 6, 2, anew=anew)}) == processes
