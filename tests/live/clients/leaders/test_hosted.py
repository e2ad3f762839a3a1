"""Clients that run side by side in one process of their program."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile

import pytest
from rebalance_verifier.live.clients.leaders import hosted
from rebalance_verifier.live.clients.leaders.broker import Network
from rebalance_verifier.live.clients.leaders.hosted import Hosted, Hosts

from tests.processes import left

PROGRAM = Path(__file__).with_name("hosting.py")
SECONDS = 20.0


@contextmanager
def hosts(*command: str) -> Iterator[tuple[Network, Hosts]]:
    network = Network()
    started = Hosts(network, command or (sys.executable, str(PROGRAM)), {})
    try:
        yield network, started
    finally:
        started.close()


def begun(started: Hosts, *arguments: str) -> Hosted:
    with NamedTemporaryFile() as output:
        return started(arguments, output)


def test_clients_share_a_process_and_each_ends_for_itself():
    with hosts() as (network, started):
        first, second, third = (begun(started, habit) for habit in ("wait", "fail", "wait"))
        assert first.pid == second.pid == third.pid
        assert network.serve(lambda: second.poll() is not None, SECONDS)
        assert (first.poll(), second.poll(), third.poll()) == (None, 1, None)
        first.end()
        assert network.serve(lambda: first.poll() is not None, SECONDS)
        assert (first.poll(), third.poll()) == (0, None)
        assert not any(one.orphaned for one in (first, second, third))
    assert not left([third.pid])


def test_arguments_arrive_as_they_are():
    with hosts() as (network, started), NamedTemporaryFile() as output:
        client = started(["fail", "a b", "", "ü%\n"], output)
        assert network.serve(lambda: client.poll() is not None, SECONDS)
        assert output.read().decode() == f"{client.pid} 'a b' '' 'ü%\\n'\n"


def test_who_ends_with_the_process_by_another_is_known_and_the_next_one_has_a_new_process():
    with hosts() as (network, started):
        bystander, failed = begun(started, "wait"), begun(started, "fail")
        assert network.serve(lambda: failed.poll() is not None, SECONDS)
        dying = begun(started, "die")
        assert network.serve(lambda: dying.orphaned, SECONDS)
        assert (bystander.poll(), dying.poll(), failed.poll()) == (3, 3, 1)
        assert (bystander.orphaned, failed.orphaned) == (True, False)
        assert begun(started, "wait").pid != dying.pid


def test_after_a_renewal_clients_have_a_new_process_and_the_old_one_ends_with_its_last():
    with hosts() as (network, started):
        old, other = begun(started, "wait"), begun(started, "wait")
        started.renew()
        new = begun(started, "wait")
        assert new.pid != old.pid
        old.end()
        assert network.serve(lambda: old.poll() is not None, SECONDS)
        assert other.poll() is None
        other.end()
        assert network.serve(lambda: other.poll() is not None, SECONDS)
        assert not left([old.pid])
        assert new.poll() is None


def test_a_process_begins_so_many_clients(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(hosted, "MOST", 2)
    with hosts() as (_, started):
        first, second, third = (begun(started, "wait") for _ in range(3))
        assert first.pid == second.pid != third.pid


def test_a_program_that_ends_starts_nothing():
    refused = pytest.raises(OSError, match="its program ended with status 4")
    with hosts(sys.executable, "-c", "import sys; sys.exit(4)") as (_, started), refused:
        begun(started, "wait")
