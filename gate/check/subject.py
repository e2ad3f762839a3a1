"""The target as scenarios are played on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rebalance.gate.targets.session import Lost, Session
from rebalance.live.assignors.inside import InProcess
from rebalance.model.assignor import Promise
from rebalance.properties.assignors.calls import Writer, answered_together
from rebalance.properties.assignors.clause import Clause
from rebalance.properties.assignors.histories import PlayedHistory, history, play
from rebalance.properties.assignors.scenarios import Scenario

AT_ONCE = 32
"""Histories that are played at once, at most: their questions fill a pipe, which holds 64 KiB, once."""

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
        written = session.user_data_of
        writer = Writer.of(written, one_process=hello.one_process) if hello.user_data else None
        return cls(session, writer, tuple(sorted(hello.promises)))

    @classmethod
    def renewed(cls, session: TargetSession) -> Subject:
        """The same in a new process of the target, where histories count from 1 again."""
        session.renew()
        session.history = 0
        return cls.of(session)

    def plays(
        self, numbers: range, scenario: Callable[[int], Scenario], clauses: Sequence[Clause]
    ) -> Iterator[PlayedHistory]:
        """Play the scenarios with these numbers, in order: several at once where the target can, until that
        ends its process; then, and with others, one by one."""
        session, limits = self.session, self.session.hello.limits
        at_once = min(session.hello.histories, AT_ONCE)
        while numbers:
            batch, numbers = numbers[:at_once], numbers[at_once:]
            if isinstance(session, Session) and at_once > 1:
                known = (clauses, self.promises, limits)
                playing = {n + 1: history(scenario(n), self.writer, *known) for n in batch}
                try:
                    played = answered_together(playing, session.answers)
                except Lost:
                    at_once = 1
                else:
                    yield from (played[n] for n in playing)
                    continue
            for number in batch:
                session.history = number
                yield self.play(scenario(number), clauses)

    def play(self, scenario: Scenario, clauses: Sequence[Clause]) -> PlayedHistory:
        """Play one scenario."""
        session, limits = self.session, self.session.hello.limits
        session.history += 1
        ask, again = session.assign, session.again
        return play(scenario, ask, self.writer, clauses, self.promises, again=again, limits=limits)
