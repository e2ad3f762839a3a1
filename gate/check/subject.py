"""The target as scenarios are played on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rebalance.gate.targets.inside import InProcess
from rebalance.gate.targets.session import Session
from rebalance.model.assignor import Promise
from rebalance.properties.assignors.clause import Clause
from rebalance.properties.assignors.histories import PlayedHistory, Writer, play
from rebalance.properties.assignors.scenarios import Scenario

TargetSession = Session | InProcess
"""Whatever answers for a target."""


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
        session, limits = self.session, self.session.hello.limits
        session.history += 1
        ask, again = session.assign, session.again
        return play(scenario, ask, self.writer, clauses, self.promises, again=again, limits=limits)
