"""A simulation: one JVM with a group coordinator and consumers of Kafka's own code, moved one step at a time.

The commands are those of ``Cell.java``; docs/explanation/simulation.md lists them. Who has one in hand
decides on every message and on every passing of time.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self, TypeVar

from rebalance_verifier.base.processes.child import ProcessGone
from rebalance_verifier.base.processes.program import JsonLine, Program
from rebalance_verifier.base.processes.tools import ToolError
from rebalance_verifier.live.code import releases
from rebalance_verifier.live.code.answers import SimulationEvent, SimulationState, events_of, state_of

STARTS = 60.0
"""Seconds that a JVM gets to be ready, on a busy machine."""

SECONDS = 60.0
"""How long the commands of one line may take, unless the caller says otherwise."""


T = TypeVar("T")

_STATE: JsonLine = {"do": "state", "changes": True}


class SimulationDied(Exception):
    """The JVM ended, hangs, or writes what is no answer; the simulation cannot be used any more. ``why`` is
    the text without what the JVM wrote to stderr."""

    def __init__(self, text: str, why: str = "") -> None:
        super().__init__(text)
        self.why = why or text


class NotEnabled(Exception):
    """The command cannot be as things are: a message that is not there, a timer that is not set."""


class SimulationBroken(Exception):
    """Kafka's code threw where no application sees it: in the coordinator, or while a consumer was made.
    ``why``: what it threw."""

    def __init__(self, text: str, why: str = "") -> None:
        super().__init__(text)
        self.why = why or text


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationMember:
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
        """Return the settings as the command ``create`` has them."""
        made: JsonLine = {
            "release": self.release,
            "assignors": list(self.assignors),
            "topics": list(self.topics),
            "instance": self.instance,
            "config": dict(self.config),
        }
        return made | ({"client": self.client} if self.client is not None else {})


class Simulation:
    """A running simulation; a context manager. It dies with the thread that starts it.

    ``coordinators`` and ``consumers``: the releases that its groups can be made of. ``classpath``: of
    assignors, beside what the consumers need. ``seconds``: how long the commands of one line may take.
    Raises ToolError where a release cannot be had or does not compile, SimulationDied when the JVM does not
    start.
    """

    def __init__(
        self,
        coordinators: Sequence[str],
        consumers: Sequence[str],
        *,
        classpath: Sequence[str] = (),
    ) -> None:
        self.seconds = SECONDS
        command = releases.command(coordinators, consumers, *classpath)
        self._program = Program(command)
        self._over = ""  # why it cannot be used any more
        self._shown: SimulationState | None = None  # what the answers to _STATE come to so far
        try:
            self._line(STARTS)
        except BaseException:
            self._program.kill()
            raise

    def belong(self, other: Simulation) -> None:
        """Use the JVM of another simulation, which ends it."""
        self.seconds, self._program, self._over, self._shown = (
            other.seconds,
            other._program,
            other._over,
            None,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def over(self) -> str:
        """Return why it cannot be used any more, "" while it can."""
        return self._over

    @property
    def pid(self) -> int:
        """Return the process id of the JVM."""
        return self._program.pid

    def create(
        self,
        coordinator: str,
        members: Iterable[SimulationMember],
        topics: Mapping[str, int],
        config: Mapping[str, Any] | None = None,
        racks: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """A new group, in the stead of the one there was: nobody started, an empty log, ids anew.

        ``config``: of the broker, by its names. ``racks``: of the partitions of a topic, in
        their order. Raises what `command` does.
        """
        listed = [member.settings() for member in members]
        given = {"members": listed, "topics": dict(topics), "config": dict(config or {})}
        self.command("create", coordinator=coordinator, **given, racks=dict(racks or {}))

    def reset(self) -> None:
        """Begin the group again. Raises what `command` does."""
        self.command("reset")

    def command(self, do: str, **arguments: Any) -> tuple[SimulationEvent, ...]:
        """Return what happened. Raises NotEnabled, SimulationBroken, SimulationDied."""
        return self._read(events_of, self._checked({"do": do, **arguments}))

    def state(self) -> SimulationState:
        """Return the state of every part, the same object if none has changed. Raises SimulationBroken,
        SimulationDied."""
        return self._stands(self._checked(_STATE))

    def step(self, *commands: JsonLine) -> tuple[tuple[SimulationEvent, ...], SimulationState]:
        """Return what happened in several commands, and the state afterwards.

        One that fails is the last, and is raised: see `command`. What those before it did is lost with it.
        """
        line = [*commands, _STATE]
        found = [self._good(*one) for one in zip(self.batch(line, stop=True), line, strict=False)]
        if len(found) != len(line):
            raise self._dead("answers several commands with something else")
        events = (one for answer in found[:-1] for one in self._read(events_of, answer))
        return tuple(events), self._stands(found[-1])

    def batch(
        self, commands: Sequence[JsonLine], *, stop: bool = False, quiet: bool = False
    ) -> list[JsonLine]:
        """Return the answers to several commands, in one line and raw: ``events``, or ``refused``, or
        ``broken``.

        ``stop``: those behind one that fails are not done, and have no answer. ``quiet``: neither have those
        that do not fail. Raises SimulationDied.
        """
        line: JsonLine = {"do": "batch", "stop": stop, "quiet": quiet, "commands": list(commands)}
        answers = self._ask(line).get("answers")
        if not isinstance(answers, list):
            raise self._dead("answers a batch with something else")
        return answers

    def close(self) -> None:
        """End the JVM. Idempotent."""
        self._over = self._over or "the simulation was closed"
        self._program.close()

    def _stands(self, answer: JsonLine) -> SimulationState:
        self._shown = self._read(lambda line: state_of(line, self._shown), answer)
        return self._shown

    def _checked(self, message: JsonLine) -> JsonLine:
        return self._good(self._ask(message).get("answer"), message)

    def _good(self, answer: object, command: object) -> JsonLine:
        if not isinstance(answer, dict):
            raise self._dead("answers with something else")
        if "refused" in answer:
            raise NotEnabled(str(answer["refused"]))
        if "broken" in answer:
            why = str(answer["broken"])
            raise SimulationBroken(f"{command}: {why}\n{self._program.stderr()}".strip(), why)
        return answer

    def _read(self, read: Callable[[JsonLine], T], answer: JsonLine) -> T:
        """Return an answer, if it is one: an assignor may write to the pipe too."""
        try:
            return read(answer)
        except (LookupError, TypeError, ValueError, AttributeError):
            raise self._dead("answers with something else") from None

    def order(self, line: JsonLine) -> None:
        """Write a line for several cells of its JVM, with a ``number``; see `several`."""
        self._program.order(line)

    def several(self, number: int, count: int) -> list[JsonLine]:
        """Return the answers to such a line, one for each of ``count`` cells. Raises SimulationDied."""
        answers = self._numbered(number).get("cells")
        if not isinstance(answers, list) or len(answers) != count:
            raise self._dead("answers several cells with something else")
        return answers

    def _ask(self, message: JsonLine) -> JsonLine:
        if self._over:
            raise SimulationDied(self._over)
        number = secrets.randbits(62)  # which who writes to the pipe before it is answered does not know
        self._program.order({"number": number, **message})
        return self._numbered(number)

    def _numbered(self, number: int) -> JsonLine:
        """Return the answer to the line of this number."""
        answer = self._line(self.seconds)
        if answer.get("number") != number:
            raise self._dead("answers what was not asked")
        return answer

    def _line(self, seconds: float) -> JsonLine:
        try:
            return self._program.message(time.monotonic() + seconds)
        except ProcessGone as gone:
            hangs = gone.message == "no reply"
            why = f"does not answer within {self.seconds:g} s" if hangs else gone.message
            raise self._dead(why) from None

    def _dead(self, why: str) -> SimulationDied:
        self._over = f"the simulation {why}: {self._program.stderr() or 'its stderr is empty'}"
        self._program.kill()
        return SimulationDied(self._over, f"the simulation {why}")


__all__ = ["NotEnabled", "Simulation", "SimulationBroken", "SimulationDied", "SimulationMember", "ToolError"]
