"""One run at a time: what a state, a step or a run breaks. For walks and for making traces small."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from rebalance_verifier.model.machine import Event, Machine, Outcome, State, Value
from rebalance_verifier.properties.group.rules import Rules


class Broken(NamedTuple):
    """A clause that a run breaks, and how."""

    clause: str
    sentence: str


class Judge:
    """Asks the rules of the states and steps of runs.

    States are asked once per value of what the views of a rule read. ``only``: the clause to ask, else all.
    ``Finally`` is broken by a run that ends in a state that no step but a fault changes, the goal failing;
    what goes round for ever is for ``explore.liveness.liveness``.
    """

    def __init__(self, machine: Machine, rules: Rules, only: str | None = None) -> None:
        self.machine = machine
        self.rules = rules if only is None else rules.about(only)
        self._known: dict[tuple[int, tuple[Value, ...]], str | None] = {}
        self._positions = [self._read(rule.views) for rule in self.rules.always]

    def _read(self, views: Sequence[str]) -> tuple[int, ...]:
        machine = self.machine
        return tuple(machine.position[name] for view in views for name in machine.view[view].reads)

    def state(self, state: State) -> Iterator[Broken]:
        """Yield the ``Always`` rules that do not hold in ``state``."""
        for number, rule in enumerate(self.rules.always):
            key = (number, tuple([state[position] for position in self._positions[number]]))
            if key not in self._known:
                self._known[key] = rule.breach(*[self.machine.look(state, view) for view in rule.views])
            sentence = self._known[key]
            if sentence is not None:
                yield Broken(rule.clause, sentence)

    def step(self, state: State, event: Event, outcome: Outcome) -> Iterator[Broken]:
        """Yield the ``EachStep`` and ``EachChange`` rules that do not hold at a step out of ``state``."""
        change = self.machine.change(state, event, outcome)
        return (Broken(*found) for found in self.rules.at_step(event, outcome.seen, change))

    def run(self, since_fault: Sequence[Event]) -> Iterator[Broken]:
        """Yield the ``Bounded`` rules that a run breaks with its steps since the last fault."""
        for rule in self.rules.bounded:
            if sum(map(rule.counts, since_fault)) > rule.most:
                yield Broken(rule.clause, f"{rule.most + 1} steps without a fault count, {rule.most} may")

    def rest(self, state: State, outcomes: Iterable[tuple[Event, Outcome]]) -> Iterator[Broken]:
        """Yield the ``Finally`` rules that a run breaks by ending in ``state``; ``outcomes`` is what can
        happen."""
        if self.rules.finally_ and ends(self.machine, state, outcomes):
            for rule in self.rules.finally_:
                if not rule.holds(*[self.machine.look(state, view) for view in rule.views]):
                    yield Broken(rule.clause, "the run ends in a state in which the goal does not hold")


def ends(machine: Machine, state: State, outcomes: Iterable[tuple[Event, Outcome]]) -> bool:
    """Check whether, of all that can happen in ``state`` (a normal form), only faults change it."""
    return all(
        machine.by_name[event.action, event.who].fault
        or machine.normal(machine.apply(state, event, outcome)) == state
        for event, outcome in outcomes
    )


def quiet(machine: Machine, events: Sequence[Event]) -> Sequence[Event]:
    """Return the events after the last fault."""
    start = len(events)
    while start and not machine.by_name[events[start - 1].action, events[start - 1].who].fault:
        start -= 1
    return events[start:]
