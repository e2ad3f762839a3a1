"""A cell: one JVM with a group coordinator and consumers of Kafka's own code, moved one step at a time.

The commands are those of ``Cell.java``; docs/explanation/cell.md lists them. Who has one in hand decides on
every message and on every passing of time.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from rebalance.live.code import releases
from rebalance.live.code.answers import CellEvent, CellState, events_of, state_of
from rebalance.live.processes.child import Gone
from rebalance.live.processes.program import JsonLine, Program
from rebalance.live.processes.tools import ToolError

STARTS = 60.0
"""Seconds that a JVM gets to be ready, on a busy machine."""

SECONDS = 60.0
"""How long the commands of one line may take."""


_STATE: JsonLine = {"do": "state"}


class CellDied(Exception):
    """The JVM ended, hangs, or writes what is no answer; the cell cannot be used any more."""


class CellRefused(Exception):
    """The command cannot be as things are: a message that is not there, a timer that is not set."""


class CellBroken(Exception):
    """Kafka's code threw where no application sees it: in the coordinator, or while a consumer was made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellMember:
    """A consumer's settings: assignors by Kafka's short names or by class, and any ``config`` of a consumer.

    ``client``: its client id, with which its member ids begin; A, B, C ... without one.
    """

    release: str
    assignors: tuple[str, ...] = ("cooperative-sticky",)
    topics: tuple[str, ...] = ("t",)
    instance: str | None = None
    client: str | None = None
    config: Mapping[str, Any] = field(default_factory=dict)

    def settings(self) -> JsonLine:
        """As the command ``create`` has it."""
        made: JsonLine = {
            "release": self.release,
            "assignors": list(self.assignors),
            "topics": list(self.topics),
            "instance": self.instance,
            "config": dict(self.config),
        }
        return made | ({"client": self.client} if self.client is not None else {})


class KafkaCell:
    """A running cell; a context manager. It dies with the thread that starts it.

    ``coordinators`` and ``consumers``: the releases that its groups can be made of. Raises ToolError where a
    release cannot be had or does not compile, CellDied when the JVM does not start.
    """

    def __init__(
        self, coordinators: Sequence[str], consumers: Sequence[str], *, classpath: Sequence[str] = ()
    ) -> None:
        command = releases.command(coordinators, consumers, *classpath)
        self._program = Program(command)
        self._over = ""  # why it cannot be used any more
        try:
            self._line(STARTS)
        except BaseException:
            self._program.kill()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """The process id of the JVM."""
        return self._program.pid

    def create(
        self,
        coordinator: str,
        members: Iterable[CellMember],
        topics: Mapping[str, int],
        config: Mapping[str, Any] | None = None,
    ) -> None:
        """A new group, in the stead of the one there was: nobody started, an empty log, ids anew.

        ``config``: of the broker, by its names. Raises what `command` does.
        """
        listed = [member.settings() for member in members]
        self.command(
            "create", coordinator=coordinator, members=listed, topics=dict(topics), config=dict(config or {})
        )

    def reset(self) -> None:
        """The same group again, from its beginning. Raises what `command` does."""
        self.command("reset")

    def command(self, do: str, **arguments: Any) -> tuple[CellEvent, ...]:
        """What happened. Raises CellRefused, CellBroken, CellDied."""
        return events_of(self._checked({"do": do, **arguments}))

    def state(self) -> CellState:
        """The state of every part. Raises CellBroken, CellDied."""
        return state_of(self._checked(_STATE))

    def step(self, do: str, **arguments: Any) -> tuple[tuple[CellEvent, ...], CellState]:
        """What happened, and the state afterwards. Raises what `command` does."""
        answers = self._ask({"do": "batch", "stop": True, "commands": [{"do": do, **arguments}, _STATE]})
        found = [self._good(answer, do) for answer in answers.get("answers", ())]
        if len(found) != 2:
            raise self._dead("answers two commands with something else")
        return events_of(found[0]), state_of(found[1])

    def batch(self, commands: Sequence[JsonLine], *, stop: bool = False) -> list[JsonLine]:
        """The answers to several commands, in one line and raw: ``events``, or ``refused``, or ``broken``.

        ``stop``: those behind one that fails are not done, and have no answer. Raises CellDied.
        """
        answers = self._ask({"do": "batch", "stop": stop, "commands": list(commands)}).get("answers")
        if not isinstance(answers, list):
            raise self._dead("answers a batch with something else")
        return answers

    def close(self) -> None:
        """End the JVM. Idempotent."""
        self._over = self._over or "the cell was closed"
        self._program.close()

    def _checked(self, message: JsonLine) -> JsonLine:
        return self._good(self._ask(message), message)

    def _good(self, answer: JsonLine, command: object) -> JsonLine:
        if "refused" in answer:
            raise CellRefused(str(answer["refused"]))
        if "broken" in answer:
            raise CellBroken(f"{command}: {answer['broken']}\n{self._program.stderr()}".strip())
        return answer

    def _ask(self, message: JsonLine) -> JsonLine:
        if self._over:
            raise CellDied(self._over)
        self._program.order(message)
        return self._line(SECONDS)

    def _line(self, seconds: float) -> JsonLine:
        try:
            return self._program.message(time.monotonic() + seconds)
        except Gone as gone:
            raise self._dead(gone.message) from None

    def _dead(self, why: str) -> CellDied:
        self._over = f"the cell {why}: {self._program.stderr() or 'its stderr is empty'}"
        self._program.kill()
        return CellDied(self._over)


__all__ = ["CellBroken", "CellDied", "CellMember", "CellRefused", "KafkaCell", "ToolError"]
