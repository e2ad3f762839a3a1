"""The target as scenarios are played on it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from rebalance.gate.targets.messages import Hello
from rebalance.model.assignor import Promise
from rebalance.model.values import Cluster, GroupSubscription, RebalanceProtocol
from rebalance.properties.assignors.calls import Failure, Reply, UserDataQuestion
from rebalance.properties.assignors.clause import Clause
from rebalance.properties.assignors.histories import PlayedHistory, Writer, play
from rebalance.properties.assignors.scenarios import Scenario


class TargetSession(Protocol):
    """What the check needs of a target: ``rebalance.gate.targets.session.Session`` or ``InProcess``."""

    call_seconds: float
    history: int

    def assign(self, protocol: RebalanceProtocol, cluster: Cluster, group: GroupSubscription) -> Reply: ...
    def again(self, protocol: RebalanceProtocol, cluster: Cluster, group: GroupSubscription) -> Reply: ...
    def user_data_of(self, questions: Sequence[UserDataQuestion]) -> Sequence[bytes | Failure | None]: ...
    def renew(self) -> None: ...
    def forked(self) -> AbstractContextManager[TargetSession]: ...
    def entered(self) -> AbstractContextManager[TargetSession]: ...
    @property
    def can_be_entered(self) -> bool: ...
    @property
    def hello(self) -> Hello: ...


@dataclass(frozen=True, slots=True)
class Subject:
    """A target as scenarios are played on it: its session, its userData, what it promises."""

    session: TargetSession
    writer: Writer | None
    promises: tuple[Promise, ...]

    @classmethod
    def of(cls, session: TargetSession) -> Subject:
        """Ask the target what it is."""
        hello = session.hello
        writer = Writer.of(session.user_data_of) if hello.user_data else None
        return cls(session, writer, tuple(sorted(hello.promises)))

    @classmethod
    def renewed(cls, session: TargetSession) -> Subject:
        """The same in a new process of the target, where histories count from 1 again."""
        session.renew()
        session.history = 0
        return cls.of(session)

    def play(self, scenario: Scenario, clauses: Sequence[Clause]) -> PlayedHistory:
        """Play one scenario."""
        session = self.session
        session.history += 1
        return play(scenario, session.assign, self.writer, clauses, self.promises, again=session.again)
