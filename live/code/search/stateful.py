"""A group of Kafka's own code as a Hypothesis state machine, for tests of one's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rebalance_verifier.live.code.replay.group import CodeReleases
from rebalance_verifier.live.code.search.run import BROKEN, CodeBreach, CodePlaying, asked_clauses
from rebalance_verifier.live.code.simulation import Simulation
from rebalance_verifier.model.classic.describe import event_text
from rebalance_verifier.model.group.setup import Setup
from rebalance_verifier.model.machine import Event

MAX_CHOICES = 1 << 16
"""Choices are numbers below it; the remainder counts."""


class CodeBreachError(AssertionError):
    """A clause is broken: ``breach`` says which and how, ``events`` what happened."""

    def __init__(self, breach: CodeBreach, events: Sequence[Event]) -> None:
        run = "".join(f"\n{number:4} {event_text(event)}" for number, event in enumerate(events, 1))
        super().__init__(f"{breach.clause}: {breach.sentence}{run}")
        self.breach, self.events = breach, tuple(events)


def code_machine(
    simulation: Simulation,
    setup: Setup,
    releases: CodeReleases,
    clauses: Sequence[str] | None = None,
) -> type[Any]:
    """Return a RuleBasedStateMachine whose runs are those of a group on ``simulation``, which has to have
    these releases.

    Each step is one of what can happen; after the last one the group is left in peace. Raises
    CodeBreachError from a step that breaks one of ``clauses``, and when the group does not settle. To say
    more, inherit from it: ``playing.group`` has the state of coordinator and consumers after each step.
    """
    from hypothesis import strategies as st
    from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

    play = CodePlaying(simulation, setup, releases)
    wanted = [one for one in asked_clauses(setup) if one != BROKEN] if clauses is None else clauses

    class CodeMachine(RuleBasedStateMachine):
        playing = play

        @initialize()
        def begin(self) -> None:
            self.playing.begin()

        @rule(number=st.integers(0, MAX_CHOICES - 1))
        def step(self, number: int) -> None:
            if options := self.playing.possible():
                self.playing.step(options[number % len(options)])
            self.judge()

        def judge(self) -> None:
            """Raises CodeBreachError."""
            for breach in self.playing.played.breaches:
                if breach.clause in wanted:
                    raise CodeBreachError(breach, self.playing.played.events)

        def teardown(self) -> None:
            if not any(one.clause in wanted for one in self.playing.played.breaches):
                self.playing.rest()
                self.judge()

    return CodeMachine
