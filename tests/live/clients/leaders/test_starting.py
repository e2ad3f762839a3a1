"""Clients that are forks of one process, and lanes that answer side by side."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from threading import Event

import pytest
from rebalance_verifier.base.processes.lines import Json
from rebalance_verifier.base.processes.supervision import end_all
from rebalance_verifier.live.clients.leaders.broker import Network
from rebalance_verifier.live.clients.leaders.lane import Lane
from rebalance_verifier.live.clients.leaders.starting import FORKING, Forks

from tests.processes import LINUX, left

PROGRAM = """
import os, sys

def main():
    import loaded
    what, word = sys.argv[1:]
    print(word, loaded.PID == os.getppid(), flush=True)
    if what == "crash":
        os.kill(os.getpid(), 11)
    if what == "wait":
        sys.stdin.read()
        import time; time.sleep(600)
    if what == "raise":
        raise ValueError("no")
"""
"""Says what it is given, and whether the module was loaded by the process that it is a fork of."""


@contextmanager
def forks(tmp_path: Path, *modules: str) -> Iterator[tuple[Network, Forks]]:
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "loaded.py").write_text("import os\nPID = os.getpid()\n")
    network = Network()
    command = [sys.executable, FORKING, str(tmp_path / "program.py"), *modules]
    started = Forks(network, command, {"PYTHONPATH": str(tmp_path)})
    try:
        yield network, started
    finally:
        started.close()


def test_each_is_a_fork_of_what_has_loaded_all_and_its_end_is_known(tmp_path: Path):
    with forks(tmp_path, "loaded") as (_, started):
        for what, ended, shown in (
            ("end", 0, ""),
            ("crash", -signal.SIGSEGV, ""),
            ("raise", 1, "ValueError: no"),
            ("end", 0, ""),
        ):
            with TemporaryFile() as output:
                one = started([what, "here"], output)
                assert one.wait() == one.poll() == ended
                output.seek(0)
                first, *rest = output.read().decode().splitlines()
                assert first == "here True"
                assert (rest[-1] if rest else "") == shown


def test_one_that_is_killed_has_ended_and_others_go_on(tmp_path: Path):
    with forks(tmp_path, "loaded") as (_, started), TemporaryFile() as output:
        first, second = (started(["wait", name], output) for name in "ab")
        end_all(first.pid)
        assert first.wait() == -signal.SIGKILL
        assert second.poll() is None
        os.kill(second.pid, 0)


@pytest.mark.skipif(not LINUX, reason="the kernel does it on Linux only")
def test_one_ends_with_what_it_is_a_fork_of(tmp_path: Path):
    with forks(tmp_path, "loaded") as (_, started), TemporaryFile() as output:
        pid = started(["wait", "a"], output).pid
        os.kill(started._process.pid, signal.SIGKILL)
        assert not left([pid])


def test_what_cannot_load_a_module_starts_nothing(tmp_path: Path):
    refused = pytest.raises(OSError, match="what it is a fork of ended with status 1")
    with forks(tmp_path, "no_such_module") as (_, started), TemporaryFile() as output, refused:
        started(["end", "here"], output)


# --- lanes -----------------------------------------------------------------------------------------------


def test_lanes_answer_side_by_side_each_in_order():
    go_on = Event()
    threads = set()

    @contextmanager
    def answering(network: Network) -> Iterator[object]:
        def answer(request: Json) -> Json:
            threads.add(threading.get_ident())
            if request["n"] == 0:
                assert go_on.wait(20)
            if request["n"] == 2:
                raise KeyError("two")
            return {"result": request["n"]}

        yield answer

    with Lane(answering) as one, Lane(answering) as other:  # type: ignore[arg-type]
        replies = [lane.ask({"n": n}) for n, lane in enumerate((one, other, one, one))]
        assert replies[1].result(20) == {"result": 1}
        assert not replies[0].done()
        assert not replies[3].done()
        go_on.set()
        assert [replies[n].result(20) for n in (0, 3)] == [{"result": 0}, {"result": 3}]
        with pytest.raises(KeyError, match="two"):
            replies[2].result(20)
    assert len(threads) == 2


def test_a_lane_serves_its_network_while_nothing_is_asked():
    woken, wake = os.pipe()
    seen = Event()

    @contextmanager
    def answering(network: Network) -> Iterator[object]:
        network.add(woken, lambda: seen.set() if os.read(woken, 1) else None)
        yield lambda request: {"result": request}

    with Lane(answering):  # type: ignore[arg-type]
        os.write(wake, b"x")
        assert seen.wait(20)
    os.close(woken)
    os.close(wake)
