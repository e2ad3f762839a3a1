"""The steps of a model machine.

States are tuples of numbers, one for each distinct value of a component, so that they are small, quick to
compare, and every function of a few components can be remembered.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple

from rebalance_verifier.base.interning import Numbered
from rebalance_verifier.model.machine import Event, Machine, State, Value, dense

Numbers = tuple[int, ...]
"""A state; one number per component."""


class Transition(NamedTuple):
    """One step. ``before`` is normal, ``after`` has generations as they come out of it.

    ``seen`` is what could be observed on the way (``Outcome.seen``), None where nobody looked.
    """

    before: Numbers
    event: Event
    after: Numbers
    seen: tuple[Hashable, ...] | None


_Outcome = tuple[Event, Numbers, tuple[Hashable, ...]]
"""A step by what it writes and what was seen."""


class NumberedMachine:
    """``machine`` on numbers."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.values: list[Value] = []
        """Every value seen so far, by its number."""
        self._numbers = Numbered()  # of (type, value): what two components hold may be equal as tuples
        self._used: list[int] = []
        self._relabelled: dict[tuple[int, int], int] = {}
        self._permuted: list[dict[int, int]] = [{} for _ in machine.symmetries]
        self._outcomes: dict[tuple[int, Numbers], tuple[_Outcome, ...]] = {}
        position = machine.position
        self._reads = [[position[name] for name in action.reads] for action in machine.actions]
        self._writes = [[position[name] for name in action.writes] for action in machine.actions]
        self._sources = [_inverse(symmetry.columns) for symmetry in machine.symmetries]

    @property
    def initial(self) -> Iterator[Numbers]:
        return (self.canonical(self.numbers(state)) for state in self.machine.initial)

    def numbers(self, state: State) -> Numbers:
        """Return a state as numbers."""
        return tuple([self.number(value) for value in state])

    def number(self, value: Value) -> int:
        number = self._numbers.id((type(value), value))
        if number == len(self.values):
            self.values.append(value)
            labels = self.machine.labels
            self._used.append(labels.used(value) if labels else 0)
        return number

    def steps(self, state: Numbers) -> Iterator[Transition]:
        """Yield every step from a normal state."""
        for k, places in enumerate(self._reads):
            read = tuple([state[position] for position in places])
            outcomes = self._outcomes.get((k, read))
            if outcomes is None:
                outcomes = self._outcomes[k, read] = tuple(self._run(k, read))
            for event, written, seen in outcomes:
                after = list(state)
                for position, number in zip(self._writes[k], written, strict=True):
                    after[position] = number
                yield Transition(state, event, tuple(after), seen)

    def _run(self, k: int, read: Numbers) -> Iterator[_Outcome]:
        action, values = self.machine.actions[k], [self.values[number] for number in read]
        if action.guard is None or action.guard(values[0]):
            for outcome in action.run(*values):
                event = Event(action.name, action.who, outcome.choice)
                yield event, self.numbers(outcome.values), outcome.seen

    def normal(self, *states: Numbers) -> list[Numbers]:
        """Return the states with their generations renamed to 0, 1, 2 ..., the same in all of them."""
        used = 0
        for state in states:
            used |= self.labels(state)
        if used & (used + 1) == 0 or self.machine.labels is None:
            return list(states)
        return [tuple([self._relabel(used, number) for number in state]) for state in states]

    def labels(self, state: Numbers) -> int:
        """Return the labels in a state, as a bit mask."""
        used = 0
        for number in state:
            used |= self._used[number]
        return used

    def _relabel(self, used: int, number: int) -> int:
        renamed = self._relabelled.get((used, number))
        if renamed is None:
            assert self.machine.labels is not None
            value = self.machine.labels.relabel(self.values[number], dense(used))
            renamed = self._relabelled[used, number] = self.number(value)
        return renamed

    def canonical(self, state: Numbers) -> Numbers:
        """Return a normal state that stands for this one, and for all that equal it but for names."""
        [state] = self.normal(state)
        if not self._sources:
            return state
        return min(
            tuple([self._permute(k, state[source]) for source in sources])
            for k, sources in enumerate(self._sources)
        )

    def _permute(self, k: int, number: int) -> int:
        known = self._permuted[k]
        renamed = known.get(number)
        if renamed is None:
            value = self.machine.symmetries[k].rename(self.values[number])
            renamed = known[number] = self.number(value)
        return renamed


def _inverse(columns: Sequence[int]) -> list[int]:
    """Return where what moves to each place comes from."""
    sources = [0] * len(columns)
    for source, target in enumerate(columns):
        sources[target] = source
    return sources
