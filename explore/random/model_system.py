"""The model as a system that is played: a machine and what judges its runs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import NamedTuple

from rebalance_verifier.explore.random.judge import Broken, Judge, quiet
from rebalance_verifier.model.machine import Event, Outcome, State


class ModelChoice(NamedTuple):
    """A step that is possible, with what it does."""

    event: Event
    outcome: Outcome


class ModelSystem:
    """One run of a machine after the other, each from ``initial``; states are normal forms.

    A breach of a clause that is not ``mild`` ends a run; ``broken`` is what it breaks, once for each clause.
    ``loose``: an event whose choice cannot be made is taken with the first one that can. ``looks``: called
    with each state of a run that goes on, what is possible there, and the number of steps so far; ``takes``:
    with each step.
    """

    def __init__(
        self,
        judge: Judge,
        initial: State,
        *,
        mild: frozenset[str] = frozenset(),
        loose: bool = False,
        looks: Callable[[State, Sequence[ModelChoice], int], None] | None = None,
        takes: Callable[[Event, Outcome], None] = lambda event, outcome: None,
    ) -> None:
        self.judge, self.machine = judge, judge.machine
        self.initial, self.mild, self.loose = initial, mild, loose
        self.looks, self.takes = looks, takes
        self._possible: Sequence[ModelChoice] | None = None
        self.begin()

    def begin(self) -> None:
        self.state = self.machine.normal(self.initial)
        self.events: list[Event] = []
        self.broken: list[Broken] = []
        self.breaches: dict[Hashable, int] = {}
        self.over = False
        self._arrive(())

    def possible(self) -> Sequence[ModelChoice]:
        if self._possible is None:
            self._possible = [ModelChoice(*one) for one in self.machine.outcomes(self.state)]
        return self._possible

    def is_fault(self, choice: ModelChoice) -> bool:
        return self.machine.by_name[choice.event.action, choice.event.who].fault

    def found(self, event: Event) -> ModelChoice | None:
        outcome = self.machine.outcome(self.state, event)
        if outcome is None and self.loose:
            action = self.machine.by_name[event.action, event.who]
            outcome = next(iter(self.machine.outcomes_of(action, self.state)), None)
        return None if outcome is None else ModelChoice(event._replace(choice=outcome.choice), outcome)

    def step(self, choice: ModelChoice) -> bool:
        event, outcome = choice
        self.takes(event, outcome)
        before, self.state = self.state, self.machine.normal(self.machine.apply(self.state, event, outcome))
        self.events.append(event)
        self._arrive(self.judge.step(before, event, outcome))
        return True

    def rest(self) -> None:
        """A run of the model is judged as one that may end in each of its states."""

    def _arrive(self, broken: Iterable[Broken]) -> None:
        """The run is in another state: judge it, and what it would be to end there."""
        self._possible = None
        counted = quiet(self.machine, self.events) if self.judge.rules.bounded else ()
        self._meet((*broken, *self.judge.state(self.state), *self.judge.run(counted)))
        if self.over:
            return
        if self.looks is not None:
            self.looks(self.state, self.possible(), len(self.events))
        known = self._possible
        self._meet(self.judge.rest(self.state, self.machine.outcomes(self.state) if known is None else known))

    def _meet(self, found: Iterable[Broken]) -> None:
        new = [one for one in found if one.clause not in self.breaches]
        self.broken += new
        self.breaches.update({one.clause: len(self.events) for one in new})
        self.over = self.over or any(one.clause not in self.mild for one in new)
