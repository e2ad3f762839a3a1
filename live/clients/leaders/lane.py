"""Clients that answer side by side: each lane is a thread with a network, and clients, of its own."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager
from threading import Thread
from typing import Self

from rebalance_verifier.base.processes.lines import Json
from rebalance_verifier.live.clients.leaders.broker import Network

IDLE = 60.0
"""Seconds for which an idle lane serves its network before it looks again what there is to do."""

Answering = Callable[[Network], AbstractContextManager[Callable[[Json], Json]]]
"""What answers requests, on a network; it is entered, used and left in one thread."""


class Lane:
    """Answers requests one after the other, in a thread; use as a context manager.

    Clients are tied to the thread that starts them, and their brokers are served by it also while nothing is
    asked.
    """

    def __init__(self, answering: Answering) -> None:
        self._answering = answering
        self._waiting: deque[tuple[Json, Future[Json]] | None] = deque()
        self._woken, self._wake = os.pipe()
        self._thread = Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._add(None)
        self._thread.join()
        os.close(self._woken)
        os.close(self._wake)

    def ask(self, request: Json) -> Future[Json]:
        """Return the reply, once it is there; it raises what was raised instead."""
        reply = Future[Json]()
        self._add((request, reply))
        return reply

    def _add(self, one: tuple[Json, Future[Json]] | None) -> None:
        self._waiting.append(one)
        os.write(self._wake, b"\n")

    def _notice(self) -> None:
        os.read(self._woken, 2**12)

    def _run(self) -> None:
        network = Network()
        network.add(self._woken, self._notice)
        with self._answering(network) as respond:
            while True:
                while not self._waiting:
                    network.serve(lambda: self._waiting, IDLE)
                if (one := self._waiting.popleft()) is None:
                    return
                request, reply = one
                try:
                    reply.set_result(respond(request))
                except BaseException as error:  # for whoever waits for it
                    reply.set_exception(error)
