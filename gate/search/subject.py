"""The target as scenarios are played on it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from rebalance_verifier.gate.scenarios import player, task_player
from rebalance_verifier.gate.scenarios.player import PlayedHistory
from rebalance_verifier.gate.targets.hosts.inside import InProcess
from rebalance_verifier.gate.targets.session import Session, TargetLost
from rebalance_verifier.model.assignor import Promise
from rebalance_verifier.properties.assignors.calls import Writer, answered_together
from rebalance_verifier.properties.assignors.clause import Clause, Scope
from rebalance_verifier.properties.assignors.played import AnyScenario
from rebalance_verifier.properties.assignors.task_scenarios import TaskScenario

PLAYS, PLAYS_AT_RANDOM = 5, 40
"""Plays in a row that have to break a clause; the second where equal questions had several answers, or were
not asked. What breaks it in a share p of plays counts, and is missed by the next, with p**40 * (1 - p)."""

AT_ONCE = 32
"""Histories that are played at once, at most: their questions fill a pipe, which holds 64 KiB, once."""

TargetSession = Session | InProcess
"""Whatever answers for a target."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A target as scenarios are played on it: its session, its userData, what it promises."""

    session: TargetSession
    writer: Writer | None
    promises: tuple[Promise, ...]
    alike: bool | None = True
    """Whether it gave the same answer whenever it was asked the same; None if it was not."""
    to_breach: bool = False  # of several at once each is played as ``history`` does with that

    @classmethod
    def of(cls, session: TargetSession) -> Subject:
        """Ask the target what it is."""
        hello = session.hello
        written = session.user_data_of
        writer = Writer.of(written, one_process=hello.one_process) if hello.user_data else None
        return cls(session=session, writer=writer, promises=tuple(sorted(hello.promises)))

    @classmethod
    def renewed(cls, session: TargetSession) -> Subject:
        """Return the same in a new process of the target, where histories count from 1 again."""
        session.renew()
        session.history = 0
        return cls.of(session)

    def plays(
        self, numbers: range, scenario: Callable[[int], AnyScenario], clauses: Sequence[Clause]
    ) -> Iterator[PlayedHistory]:
        """Play the scenarios with these numbers, in order: several at once where the target can, until that
        ends its process; then, and with others, one by one."""
        session = self.session
        at_once = min(session.hello.histories, AT_ONCE)
        while numbers:
            batch, numbers = numbers[:at_once], numbers[at_once:]
            if isinstance(session, Session) and at_once > 1:
                playing = {n + 1: self._history(scenario(n), clauses) for n in batch}
                try:
                    played = answered_together(playing, session.answers)
                except TargetLost:
                    at_once = 1
                else:
                    yield from (played[n] for n in playing)
                    continue
            for number in batch:
                session.history = number
                yield self.play(scenario(number), clauses)

    def _history(
        self, scenario: AnyScenario, clauses: Sequence[Clause]
    ) -> Generator[Any, Any, PlayedHistory]:
        """Return the play of a scenario as a generator of its questions."""
        if isinstance(scenario, TaskScenario):
            return task_player.history(scenario, clauses, self.promises, self.to_breach)
        limits = self.session.hello.limits
        return player.history(scenario, self.writer, clauses, self.promises, limits, self.to_breach)

    def play(self, scenario: AnyScenario, clauses: Sequence[Clause]) -> PlayedHistory:
        """Play one scenario."""
        session = self.session
        session.history += 1
        if isinstance(scenario, TaskScenario):
            return task_player.play(scenario, session.assign_tasks, clauses, self.promises)
        ask, again, limits = session.assign, session.again, session.hello.limits
        at = partial(setattr, session, "moment")
        return player.play(
            scenario, ask, self.writer, clauses, self.promises, again=again, limits=limits, at=at
        )

    def showing(self, scenario: AnyScenario, clause: Clause) -> PlayedHistory:
        """Return the first play that breaks a clause, or the last: there are several where equal questions
        may have several answers, and need not."""
        for _ in range(PLAYS_AT_RANDOM if clause.scope is Scope.REPEAT or clause.by_chance else 1):
            record = self.play(scenario, (clause,))
            if record.found or record.failure is not None:
                break
        return record

    def steady(self, record: PlayedHistory, clause: Clause) -> PlayedHistory:
        """Return a play of a target whose answers change that says whether a clause is broken: by each of a
        few plays, or, of answers that have to stay, by one."""
        if not clause.by_chance:
            return self.lasting(record, clause, PLAYS)
        for _ in range(PLAYS - 1):
            if record.breach_of(clause.id):
                break
            record = self.play(record.scenario, (clause,))
        return record

    def lasting(self, record: PlayedHistory, clause: Clause, plays: int = 0) -> PlayedHistory:
        """Return a play, or, if it breaks a clause, the first of so many (as many as it takes) that does not.
        To answer now so and now otherwise is a breach by itself; what takes long to fail is not waited
        for."""
        if clause.scope is Scope.REPEAT or clause.by_chance:
            return record
        if record.failure is not None or not record.breach_of(clause.id):
            return record
        plays = plays or (PLAYS if self.alike else PLAYS_AT_RANDOM)
        more = (self.play(record.scenario, (clause,)) for _ in range(plays - 1))
        return next((play for play in more if not play.breach_of(clause.id)), record)
