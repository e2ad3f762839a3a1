"""A Python target in this process: quick, and as safe as this process is from it."""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from itertools import starmap
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

from rebalance_verifier.base.processes.failure import FailureKind
from rebalance_verifier.base.processes.lines import Garbage
from rebalance_verifier.base.processes.supervision import ended_after
from rebalance_verifier.gate.targets.hosts.host import ask, ask_tasks, ask_user_data, name_of, trace_of
from rebalance_verifier.gate.targets.hosts.hosted import adopt, describe, load
from rebalance_verifier.gate.targets.hosts.messages import Skipped
from rebalance_verifier.model.values import Cluster, GroupSubscription, Partitions, RebalanceProtocol
from rebalance_verifier.properties.assignors.calls import (
    Answer,
    Asker,
    Failure,
    Reply,
    UserDataQuestion,
)
from rebalance_verifier.properties.assignors.task_calls import TaskAnswer, TaskQuestion, TaskReply

_T = TypeVar("_T")


class OutOfTime(Exception):
    """Raised instead of an answer where a session may ask nothing more: its ``latest`` is past."""


class InProcess:
    """The interface of `Session` for an assignor in this process: quick, and without any protection.

    ``assignor`` is what a Python target may be: an object, a class or a function. Raises TargetError when
    it is none. What it raises is a Failure; KeyboardInterrupt and the like pass through.
    """

    def __init__(self, assignor: Any) -> None:
        self.call_seconds = math.inf  # nothing here could end a call
        self.history = 0
        self.latest = math.inf
        self._assignor = adopt(assignor, type(assignor).__name__)
        self.hello = describe(self._assignor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def cpu_seconds(self) -> float:
        """Return the seconds that this process has run."""
        return time.process_time()

    def assign(self, protocol: RebalanceProtocol, cluster: Cluster, group: GroupSubscription) -> Reply:
        """Ask for one assignment. Raises OutOfTime."""
        check_time(self.latest)
        outcome = _attempt(lambda: ask(self._assignor, cluster, group))
        return outcome if isinstance(outcome, Failure) else Answer(*outcome)

    again = assign
    """There is no second process: the same one is asked."""

    def assign_tasks(self, question: TaskQuestion) -> TaskReply:
        """Ask for one assignment of tasks. Raises OutOfTime."""
        check_time(self.latest)
        outcome = _attempt(lambda: ask_tasks(self._assignor, question.application))
        return outcome if isinstance(outcome, Failure) else question.bounded(TaskAnswer(*outcome))

    def user_data(
        self, owned: Partitions, generation: int, asker: Asker | None = None
    ) -> bytes | Failure | None:
        """Return what a member that was last assigned ``owned`` in ``generation`` writes as user data."""
        return _attempt(lambda: ask_user_data(self._assignor, owned, generation))

    def user_data_of(self, questions: Sequence[UserDataQuestion]) -> list[bytes | Failure | None]:
        """Return what these members write, in order, up to the first Failure."""
        return until_failure(starmap(self.user_data, questions))

    def renew(self) -> None:
        """Keep the process, since there is none to replace."""

    can_be_entered = False

    def forked(self) -> AbstractContextManager[Self]:
        """Use the copy of the assignor that a fork has."""
        return contextlib.nullcontext(self)

    entered = forked

    def close(self) -> None:
        """Do nothing."""


class Conversation(Protocol):
    """Part of the session that `Entered` needs for its target: ``gate.targets.session.Session``."""

    call_seconds: float
    history: int
    latest: float

    def second(self) -> Self | None: ...
    def assign(self, protocol: RebalanceProtocol, cluster: Cluster, group: GroupSubscription) -> Reply: ...
    def assign_tasks(self, question: TaskQuestion) -> TaskReply: ...


class Entered(InProcess):
    """The target of a session in this process, which it may end: a fork that is there for nothing else.

    A call that takes too long, or memory that runs out, ends the process; a conversation with the target
    tells them apart. The second process of the target, with which answers are compared, is the session's.
    """

    def __init__(self, spec: str, session: Conversation, start_seconds: float) -> None:
        with ended_after(start_seconds):
            super().__init__(load(spec))
        self._session = session
        self.call_seconds, self.history, self.latest = session.call_seconds, session.history, session.latest

    def assign(self, protocol: RebalanceProtocol, cluster: Cluster, group: GroupSubscription) -> Reply:
        """Ask for one assignment."""
        with ended_after(self.call_seconds):
            reply = super().assign(protocol, cluster, group)
        _survived(reply)
        return reply

    def again(self, protocol: RebalanceProtocol, cluster: Cluster, group: GroupSubscription) -> Reply:
        """Ask the same of a second process."""
        return (self._second() or self).assign(protocol, cluster, group)

    def assign_tasks(self, question: TaskQuestion) -> TaskReply:
        """Ask for one assignment of tasks, of a second process where the question wants one."""
        if question.again and (second := self._second()) is not None:
            return second.assign_tasks(question._replace(again=False))
        with ended_after(self.call_seconds):
            reply = super().assign_tasks(question)
        _survived(reply)
        return reply

    def _second(self) -> Conversation | None:
        self._session.call_seconds, self._session.history = self.call_seconds, self.history
        return self._session.second()

    def user_data_of(self, questions: Sequence[UserDataQuestion]) -> list[bytes | Failure | None]:
        """Return what these members write, in order, up to the first Failure."""
        with ended_after(self.call_seconds):
            return super().user_data_of(questions)


def _survived(reply: object) -> None:
    """End the process where memory ran out: nothing that follows would be worth much."""
    if isinstance(reply, Failure) and reply.message.startswith(MemoryError.__name__):
        os._exit(1)


def check_time(latest: float) -> None:
    """Raise OutOfTime from this moment of ``time.monotonic`` on."""
    if time.monotonic() >= latest:
        raise OutOfTime


def _attempt(action: Callable[[], _T]) -> _T | Failure:
    try:
        return action()
    except Skipped as skipped:
        return Failure(FailureKind.SKIPPED, skipped.message, skipped.issue_url or "")
    except Garbage as garbage:
        return Failure(FailureKind.GARBAGE, str(garbage))
    except (Exception, SystemExit) as error:
        return Failure(FailureKind.ERRORED, name_of(error), trace_of(error))


def until_failure(outcomes: Iterable[_T | Failure]) -> list[_T | Failure]:
    """``outcomes`` up to the first Failure and with it."""
    found: list[_T | Failure] = []
    for outcome in outcomes:
        found.append(outcome)
        if isinstance(outcome, Failure):
            break
    return found
