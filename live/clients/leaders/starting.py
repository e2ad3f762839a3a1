"""How the processes of clients are started: each by its command, or as a fork of one that has loaded all.

`hosted` starts those that run side by side in one process."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Protocol

from rebalance_verifier.base.processes.supervision import end_all, named, spawn
from rebalance_verifier.live.clients.leaders.broker import Network

FORKING = str(Path(__file__).with_name("forking.py"))
"""The program whose forks are the clients."""

START_SECONDS = 40.0
"""Until what is forked from has loaded everything."""
END_SECONDS = 20.0
"""Until it is known that what was killed has ended."""


class Running(Protocol):
    """A process, as much of it as its supervisor needs."""

    @property
    def pid(self) -> int:
        """Its number, which is also that of its process group."""

    def poll(self) -> int | None:
        """Return how it ended, negative for a signal; None while it runs."""

    @property
    def orphaned(self) -> bool:
        """Check whether it has ended with what it runs in, perhaps by another's doing."""

    def end(self) -> None:
        """End it, with all that it has started."""


class ClientProcess:
    """A process that was started for one client."""

    orphaned = False

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process, self.pid, self.poll = process, process.pid, process.poll

    def end(self) -> None:
        """End it."""
        end_all(self.pid, waited_for=self.poll() is not None)
        self._process.wait()


Start = Callable[[Sequence[str], IO[bytes]], Running]
"""Starts a process with these arguments, which writes all it has to say into a file. Raises OSError."""


def by_command(environment: Mapping[str, str]) -> Start:
    """The arguments are all of the command."""

    def start(arguments: Sequence[str], output: IO[bytes]) -> Running:
        with open(os.devnull, "rb") as nothing:
            env = {**os.environ, **environment}
            return ClientProcess(spawn(arguments, stdin=nothing, stdout=output, stderr=output, env=env))

    return start


class Fork:
    """One of the forks."""

    orphaned = False

    def __init__(self, network: Network, pid: int, codes: Mapping[int, int]) -> None:
        self.pid, self._network, self._codes = pid, network, codes

    def poll(self) -> int | None:
        """Return how it ended."""
        return self._codes.get(self.pid)

    def wait(self) -> int | None:
        """Return how it ended, when it has."""
        self._network.serve(lambda: self.pid in self._codes, END_SECONDS)
        return self.poll()

    def end(self) -> None:
        """End it."""
        end_all(self.pid, waited_for=self.poll() is not None)
        self.wait()


class Forks:
    """Starts a program in forks of a process of ``command``, which is that of `forking`; that is started with
    the first of them. Raises OSError where it cannot be."""

    def __init__(self, network: Network, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._network, self._command = network, command
        self._environment = {**os.environ, **environment}
        self._socket: socket.socket | None = None
        self._received = b""
        self._started: list[int] = []
        self._codes: dict[int, int] = {}

    def close(self) -> None:
        """End the process, and with it its forks."""
        if self._socket:
            self._lose(self._socket)
            end_all(self._process.pid, waited_for=self._process.poll() is not None)
            self._process.wait()

    def __call__(self, arguments: Sequence[str], output: IO[bytes]) -> Fork:
        """Start one."""
        if self._socket is None:
            self._begin()
        assert self._socket
        known = len(self._started)
        with contextlib.suppress(OSError):  # it has ended: nothing is started below
            socket.send_fds(self._socket, [json.dumps([*arguments]).encode()], [output.fileno()])
        self._network.serve(lambda: len(self._started) > known or self._socket is None, START_SECONDS)
        if len(self._started) == known:
            code = self._process.poll()
            how = "does not answer" if code is None else f"ended with {named(code)}"
            raise OSError(f"what it is a fork of {how}")
        return Fork(self._network, self._started[-1], self._codes)

    def _begin(self) -> None:
        mine, its = socket.socketpair()
        with its:
            self._process = spawn(self._command, stdin=its, stdout=its, env=self._environment)
        self._socket = mine
        self._network.add(mine, lambda: self._read(mine))

    def _read(self, mine: socket.socket) -> None:
        data = b""
        with contextlib.suppress(OSError):  # it has ended, with a message unread
            data = mine.recv(2**16)
        if not data:
            self._lose(mine)
            self._process.wait()
        *lines, self._received = (self._received + data).split(b"\n")
        for line in lines:
            pid, *code = map(int, line[1:].split())
            if code:
                self._codes[pid] = code[0]
            else:
                self._codes.pop(pid, None)  # the number may have been another's
                self._started.append(pid)

    def _lose(self, mine: socket.socket) -> None:
        self._socket = None
        self._network.remove(mine)
        mine.close()
