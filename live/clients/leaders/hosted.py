"""Clients that run side by side in one process of their program: it has loaded the library once.

The program, started without arguments, reads lines: ``start OUTPUT ARGUMENT...`` begins a client, which
writes all it has to say into the file OUTPUT, and ``end NUMBER`` ends one. It answers ``+NUMBER`` to the
first, and writes ``-NUMBER CODE`` where a client has ended, by itself or not. Words are separated by single
spaces, and written as in a URL.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Mapping, Sequence
from typing import IO
from urllib.parse import quote

from rebalance_verifier.base.processes.supervision import end_all, named, spawn
from rebalance_verifier.live.clients.leaders.broker import Network

START_SECONDS = 40.0
"""Until a program has loaded everything and begun a client: a JVM on a busy machine."""
MOST = 500
"""Clients that one process begins, at most: what one that has ended leaves behind stays there."""


class HostProcess:
    """A process of the program, with the clients that it has begun."""

    def __init__(self, network: Network, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._network = network
        self.socket, its = socket.socketpair()
        with its, open(os.devnull, "wb") as nothing:
            self.process = spawn(command, stdin=its, stdout=its, stderr=nothing, env=environment)
        self._received = b""
        self.begun: list[int] = []
        self.codes: dict[int, int] = {}
        self.lost = self.retired = False
        network.add(self.socket, self._read)

    @property
    def running(self) -> int:
        """Return how many clients have not ended."""
        return len(self.begun) - len(self.codes)

    def send(self, *fields: str) -> None:
        """Write a line."""
        with contextlib.suppress(OSError):  # it has ended
            self.socket.sendall(" ".join(quote(field, safe="") for field in fields).encode() + b"\n")

    def close(self) -> None:
        """End it, with its clients."""
        self._lose()
        end_all(self.process.pid, waited_for=self.process.poll() is not None)
        self.process.wait()

    def _read(self) -> None:
        data = b""
        with contextlib.suppress(OSError):  # it has ended, with a line unread
            data = self.socket.recv(2**16)
        if not data:
            self._lose()
            self.process.wait()
        *lines, self._received = (self._received + data).split(b"\n")
        for line in lines:
            number, *code = map(int, line[1:].split())
            if code:
                self.codes.setdefault(number, code[0])
            else:
                self.begun.append(number)
        if self.retired and not self.running:
            self.close()

    def _lose(self) -> None:
        if not self.lost:
            self.lost = True
            self._network.remove(self.socket)
            self.socket.close()


class Hosted:
    """One client."""

    def __init__(self, program: HostProcess, number: int) -> None:
        self._program, self._number = program, number

    @property
    def pid(self) -> int:
        """Number of the process that it runs in."""
        return self._program.process.pid

    @property
    def orphaned(self) -> bool:
        """Check whether the process has ended, perhaps by what another client did."""
        return self._program.lost and self._number not in self._program.codes

    def poll(self) -> int | None:
        """Return how it ended, or its process; None while it runs."""
        return self._program.codes.get(self._number, self._program.process.poll())

    def end(self) -> None:
        """Let it end, without waiting for that."""
        if self.poll() is None:
            self._program.send("end", str(self._number))


class Hosts:
    """Starts clients in a process of ``command``, which begins with the first of them, and anew after `renew`
    and many clients. Raises OSError where it cannot."""

    def __init__(self, network: Network, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._network, self._command = network, command
        self._environment = {**os.environ, **environment}
        self._programs: list[HostProcess] = []

    def __call__(self, arguments: Sequence[str], output: IO[bytes]) -> Hosted:
        """Start a client."""
        last = self._programs[-1] if self._programs else None
        if last is None or last.lost or last.retired or len(last.begun) >= MOST:
            self.renew()
            last = HostProcess(self._network, self._command, self._environment)
            self._programs.append(last)
        known = len(last.begun)
        last.send("start", output.name, *arguments)
        self._network.serve(lambda: len(last.begun) > known or last.lost, START_SECONDS)
        if len(last.begun) == known:
            code = last.process.poll()
            last.retired = True
            raise OSError(f"its program {'does not answer' if code is None else f'ended with {named(code)}'}")
        return Hosted(last, last.begun[-1])

    def renew(self) -> None:
        """Let clients that are started from now on run in a new process; the old one ends with its last."""
        for program in self._programs:
            program.retired = True
            if not program.running and not program.lost:
                program.close()
        self._programs = [program for program in self._programs if not program.lost]

    def close(self) -> None:
        """End the processes, and with them their clients."""
        for program in self._programs:
            program.close()
