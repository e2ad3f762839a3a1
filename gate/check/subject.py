"""The target as scenarios are played on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rebalance.gate.targets.inside import InProcess
from rebalance.gate.targets.session import Lost, Session
from rebalance.model.assignor import Promise
from rebalance.properties.assignors.calls import Reply, Written
from rebalance.properties.assignors.clause import Clause
from rebalance.properties.assignors.histories import PlayedHistory, Writer, history, play
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
        writer = Writer.of(session.user_data_of) if hello.user_data else None
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
        session = self.session
        at_once = min(session.hello.histories, AT_ONCE)
        while numbers:
            batch, numbers = numbers[:at_once], numbers[at_once:]
            if at_once > 1:
                try:
                    yield from self._together({n + 1: scenario(n) for n in batch}, clauses)
                    continue
                except Lost:
                    at_once = 1
            for number in batch:
                session.history = number
                yield self.play(scenario(number), clauses)

    def _together(self, scenarios: Mapping[int, Scenario], clauses: Sequence[Clause]) -> list[PlayedHistory]:
        """Play histories with these numbers, each a question further in every round. Raises Lost."""
        assert isinstance(self.session, Session)
        playing = {n: history(one, self.writer, clauses, self.promises) for n, one in scenarios.items()}
        answers: dict[int, Reply | Written | None] = dict.fromkeys(playing)
        played: dict[int, PlayedHistory] = {}
        while answers:
            asked = []
            for number, answer in answers.items():
                try:
                    asked.append((number, playing[number].send(answer)))
                except StopIteration as end:
                    played[number] = end.value
            replies = self.session.answers(asked)
            answers = {number: reply for (number, _), reply in zip(asked, replies, strict=True)}
        return [played[number] for number in scenarios]

    def play(self, scenario: Scenario, clauses: Sequence[Clause]) -> PlayedHistory:
        """Play one scenario."""
        session = self.session
        session.history += 1
        return play(scenario, session.assign, self.writer, clauses, self.promises, again=session.again)
