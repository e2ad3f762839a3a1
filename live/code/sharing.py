"""Several walks at once on one simulation: each has a cell of its own in the JVM, and they share lines.

A line costs two processes that wake each other, which on a busy machine is most of a step. Here one line
holds a command of half of the walks, and while the JVM answers it, the other half goes on. A walk knows
nothing of that: its cell answers it as if it were alone.

Each walk runs in a thread, for its stack alone: one at a time has its turn, so nothing happens at once in
Python, and what a walk comes to is the same for any number of them.
"""

from __future__ import annotations

import secrets
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar

from rebalance_verifier.base.processes.program import JsonLine
from rebalance_verifier.live.code.simulation import Simulation, SimulationDied

T = TypeVar("T")


class SharedSimulation(Simulation):
    """One cell of the JVM of ``simulation``, with whoever plays in it; ``ask`` exchanges a message of it."""

    def __init__(
        self, simulation: Simulation, number: int, ask: Callable[[SharedSimulation, JsonLine], JsonLine]
    ) -> None:
        self.belong(simulation)
        self.number, self.answer = number, JsonLine()
        self.error: Exception | None = None
        self.turn = threading.Lock()
        self.turn.acquire()
        self._simulation, self._exchange = simulation, ask

    @property
    def over(self) -> str:
        return self._simulation.over

    def _ask(self, message: JsonLine) -> JsonLine:
        return self._exchange(self, message)

    def _dead(self, why: str) -> SimulationDied:
        return self._simulation._dead(why)


class Sharing(Generic[T]):
    """Plays that share one simulation, of which ``count`` are under way at once.

    A play is given its share. One that raises is the last that begins, as is one whose result ``ends`` the
    rest.
    """

    def __init__(self, simulation: Simulation, count: int, ends: Callable[[T], bool]) -> None:
        self._simulation, self._count, self._ends = simulation, count, ends
        self._ready: deque[SharedSimulation] = deque()
        self._waiting: list[tuple[SharedSimulation, JsonLine]] = []  # asked, and not in a line yet
        self._line: tuple[int, list[SharedSimulation]] | None = None  # that the JVM has, by its number
        self._over = threading.Event()
        self._active = 0

    @property
    def over(self) -> str:
        """Return why the simulation cannot be used any more, "" while it can."""
        return self._simulation.over

    def run(self, plays: Sequence[Callable[[Simulation], T]]) -> list[T]:
        """Return the results in the order of the plays, up to the first that ends the rest.

        Raises what that play has raised, if it has.
        """
        results: dict[int, T | BaseException] = {}
        left = iter(enumerate(plays))
        count = min(self._count, len(plays))
        for number in range(1, count + 1):
            share = SharedSimulation(self._simulation, number, self._ask)
            threading.Thread(target=self._plays, args=(share, left, results), daemon=True).start()
            self._ready.append(share)
        self._active = count
        self._over.clear()
        if count:
            self._next().turn.release()
            self._over.wait()
        found: list[T] = []
        for number in sorted(results):
            one = results[number]
            if isinstance(one, BaseException):
                raise one
            found.append(one)
            if self._ends(one):
                break
        return found

    def _plays(
        self,
        share: SharedSimulation,
        left: Iterator[tuple[int, Callable[[Simulation], T]]],
        results: dict[int, T | BaseException],
    ) -> None:
        """Play one after the other in a share, until nothing is left or a play has ended the rest."""
        share.turn.acquire()
        try:
            for number, play in left:
                try:
                    results[number] = found = play(share)
                    ended = self._ends(found)
                except BaseException as error:  # goes on in who waits
                    results[number] = error
                    ended = True
                if ended:
                    for _ in left:
                        pass
        finally:
            self._active -= 1
            following = self._next() if self._active else None
            if following is None:
                self._over.set()
            else:
                following.turn.release()

    def _ask(self, share: SharedSimulation, message: JsonLine) -> JsonLine:
        """Return the answer to a message of a share; the others have their turns meanwhile."""
        if share.over:
            raise SimulationDied(share.over)
        self._waiting.append((share, message))
        if 2 * len(self._waiting) >= self._active:
            self._write()
        following = self._next()
        if following is not share:
            following.turn.release()
            share.turn.acquire()
        if share.error is not None:
            raise share.error
        return share.answer

    def _next(self) -> SharedSimulation:
        """Return whose turn it is; waits for the JVM where it is nobody's."""
        if not self._ready:
            self._write()
            self._read()
            if 2 * len(self._waiting) >= self._active:
                self._write()
        return self._ready.popleft()

    def _write(self) -> None:
        """Write what waits as one line, if the JVM has none."""
        if self._line is not None or not self._waiting:
            return
        number = secrets.randbits(62)
        lines = [{"cell": share.number, **message} for share, message in self._waiting]
        shares = [share for share, _ in self._waiting]
        self._line, self._waiting = (number, shares), []
        try:
            self._simulation.order({"number": number, "do": "cells", "lines": lines})
        except Exception as error:
            self._failed(error)

    def _read(self) -> None:
        """Give each of a line its answer."""
        if self._line is None:
            return
        number, shares = self._line
        try:
            answers = self._simulation.several(number, len(shares))
        except Exception as error:
            self._failed(error)
            return
        for share, answer in zip(shares, answers, strict=True):
            share.answer = answer
        self._ready += shares
        self._line = None

    def _failed(self, error: Exception) -> None:
        """Raise it in each of a line, when it is its turn: whoever notices has to give its turn on."""
        assert self._line is not None
        for share in self._line[1]:
            share.error = error
            self._ready.append(share)
        self._line = None
