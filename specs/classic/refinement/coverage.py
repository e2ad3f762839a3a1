"""Coverage of a sample of the model: actions, two faults in one run, kinds of states."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from rebalance_verifier.model.classic.describe import event_text
from rebalance_verifier.model.machine import Action, Machine
from rebalance_verifier.specs.logic.transitions import Transition

NEVER = frozenset({"abandoned join", "prepare"})
"""Actions that nobody takes: as specified no JoinGroup is given up on, and none goes out unprepared."""

ENOUGH = 0.9
"""Which part of the pairs of faults a sample has to meet."""

Pair = tuple[str, str]
"""Two kinds of faults, in the order of their names."""


@dataclass(frozen=True, kw_only=True)
class SampleCoverage:
    """Actions of the model, and pairs of its faults of which the second was possible after the first, or the
    other way round, in one run."""

    actions: frozenset[str] = frozenset()
    pairs: frozenset[Pair] = frozenset()

    def __or__(self, other: SampleCoverage) -> SampleCoverage:
        return SampleCoverage(actions=self.actions | other.actions, pairs=self.pairs | other.pairs)

    def __sub__(self, other: SampleCoverage) -> SampleCoverage:
        return SampleCoverage(actions=self.actions - other.actions, pairs=self.pairs - other.pairs)

    def __bool__(self) -> bool:
        return bool(self.actions or self.pairs)


NOTHING = SampleCoverage()


def wanted(machine: Machine) -> SampleCoverage:
    """Return what a machine has, but for what it cannot come to."""
    faults = dict.fromkeys(action.name for action in machine.actions if costs(action))
    return SampleCoverage(
        actions=frozenset(action.name for action in machine.actions) - NEVER,
        pairs=frozenset(pair(*two) for two in combinations(faults, 2) if NEVER.isdisjoint(two)),
    )


def enough(met: SampleCoverage, wanted: SampleCoverage) -> bool:
    """Check whether a sample that met so much says that a model does what the logic does: every action is
    there, and of the pairs of faults at most one in ten is missing. Some of these are rare, and some
    impossible."""
    return wanted.actions <= met.actions and len(met.pairs & wanted.pairs) >= ENOUGH * len(wanted.pairs)


def costs(action: Action) -> bool:
    """Check whether it is a fault that the budget pays for."""
    return action.fault and "budget" in action.reads


def pair(one: str, other: str) -> Pair:
    """Return the two in order."""
    return (one, other) if one < other else (other, one)


@dataclass(kw_only=True)
class CoverageSoFar:
    """Coverage so far."""

    actions: set[str] = field(default_factory=set)
    pairs: set[Pair] = field(default_factory=set)
    kinds: set[Hashable] = field(default_factory=set)

    def meets(self, action: str, fault: bool, before: Iterable[str]) -> bool:
        """Note that an action is possible after these faults; return whether that is new."""
        pairs = {pair(action, one) for one in before if one != action} if fault else set[Pair]()
        new = action not in self.actions or not pairs <= self.pairs
        self.actions.add(action)
        self.pairs |= pairs
        return new

    def kind(self, kind: Hashable) -> bool:
        """Note that a step of that kind is possible; return whether it is the first one."""
        new = kind not in self.kinds
        self.kinds.add(kind)
        return new

    def taken(self) -> SampleCoverage:
        """Return all of it but for the kinds of states."""
        return SampleCoverage(actions=frozenset(self.actions), pairs=frozenset(self.pairs))

    def lacking(self, wanted: SampleCoverage) -> list[Pair]:
        """Return the pairs that are missing, in order."""
        return sorted(wanted.pairs - self.pairs)


@dataclass(kw_only=True)
class Course:
    """Where a run goes: along ``route``, as far as its events are possible, and from its event ``since`` on
    to the ``fault``. ``rare``: one of so many steps is a fault once that is taken."""

    rare: int
    fault: str = ""
    since: int = 0
    route: tuple[str, ...] = ()
    at: int = 0

    def next(self, found: Sequence[tuple[bool, Transition]]) -> Transition | None:
        """Return the step to take of those that are possible; None if any will do."""
        if self.fault and self.at >= self.since:
            for _, step in found:
                if step.event.action == self.fault:
                    self.fault = ""
                    return step
        if self.at == len(self.route):
            return None
        possible = {event_text(step.event): step for _, step in found}
        for number, event in enumerate(self.route[self.at :], self.at):
            if event in possible:
                self.at = number + 1
                return possible[event]
        return None
