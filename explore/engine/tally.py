"""What a search has counted so far; the engines add to it level by level."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field

from rebalance_verifier.explore.engine.search import (
    Exploration,
    ExplorationBreach,
    Limits,
    SearchHistory,
    Stop,
    Taken,
    Witness,
)
from rebalance_verifier.model.machine import Machine
from rebalance_verifier.properties.group.rules import Rules


@dataclass(kw_only=True)
class Tally:
    """Counts at some moment of a search. ``taken`` holds states and outcomes per action of the machine."""

    machine_actions: tuple[tuple[str, int], ...]
    witnesses: dict[str, Witness]
    taken: list[tuple[int, int]]
    breaches: dict[str, ExplorationBreach] = field(default_factory=dict)
    levels: list[int] = field(default_factory=list)
    generated: int = 0
    expanded: int = 0
    least: int = 0
    most: int = 0
    deadlocks: int = 0
    deadlock_depth: int = -1
    unreduced: int = 0
    relabelled: int = 0
    memory: int = 0

    @classmethod
    def of(cls, machine: Machine, rules: Rules) -> Tally:
        """Return the counts of a search that has not begun."""
        return cls(
            machine_actions=tuple((action.name, action.who) for action in machine.actions),
            witnesses={rule.clause: Witness(rule.clause, -1, 0) for rule in rules.sometimes},
            taken=[(0, 0)] * len(machine.actions),
        )

    def copy(self) -> Tally:
        """Return the same counts, not affected by what is added to these."""
        return deepcopy(self)

    @property
    def distinct(self) -> int:
        """Return how many states were found."""
        return sum(self.levels)

    def level(self, size: int, unreduced: int) -> None:
        """Count a level of ``size`` states, which stand for ``unreduced``."""
        self.levels.append(size)
        self.unreduced += unreduced

    def expand(self, states: int, outcomes: int, least: int, most: int, deadlocks: int, depth: int) -> None:
        """``states`` at ``depth`` were expanded, with so many outcomes in all, ``least`` to ``most`` each."""
        self.least = least if not self.expanded else min(self.least, least)
        self.most = max(self.most, most)
        self.expanded += states
        self.generated += outcomes
        self.deadlocks += deadlocks
        if deadlocks and self.deadlock_depth < 0:
            self.deadlock_depth = depth

    def take(self, action: int, states: int, outcomes: int) -> None:
        """Count the outcomes of an action of the machine, by its place there, in some states."""
        before = self.taken[action]
        self.taken[action] = before[0] + states, before[1] + outcomes

    def breach(self, clause: str, sentence: str, depth: int, count: int = 1) -> None:
        """Count a clause that is broken ``count`` times at ``depth``; the depths must not fall."""
        before = self.breaches.get(clause, ExplorationBreach(clause, sentence, depth, 0))
        if before.depth == depth and sentence < before.sentence:
            before = ExplorationBreach(clause, sentence, depth, before.count)
        self.breaches[clause] = ExplorationBreach(clause, before.sentence, before.depth, before.count + count)

    def witness(self, clause: str, depth: int, count: int = 1) -> None:
        """A ``Sometimes`` clause shows ``count`` times at ``depth``; the depths must not fall."""
        before = self.witnesses[clause]
        self.witnesses[clause] = Witness(
            clause, before.depth if before.count else depth, before.count + count
        )

    def stop(self, frontier: int, limits: Limits) -> Stop | None:
        """Check whether to stop before ``frontier`` states are expanded, and why."""
        if not frontier:
            return Stop.COMPLETE
        if limits.ends(self.breaches, self.distinct):
            return Stop.BREACH
        if limits.depth is not None and len(self.levels) > limits.depth:
            return Stop.DEPTH
        if limits.states is not None and self.distinct >= limits.states:
            return Stop.STATES
        return None

    def result(self, stop: Stop, history: SearchHistory, cpu: float, collision: float = 0.0) -> Exploration:
        """Return the counts as a result."""
        return Exploration(
            distinct=self.distinct,
            generated=self.generated,
            stop=stop,
            levels=tuple(self.levels),
            expanded=self.expanded,
            least=self.least,
            most=self.most,
            deadlocks=self.deadlocks,
            deadlock_depth=self.deadlock_depth,
            taken={key: Taken(*n) for key, n in zip(self.machine_actions, self.taken, strict=True)},
            witnesses=tuple(self.witnesses.values()),
            breaches=in_order(tuple(self.breaches.values())),
            unreduced=self.unreduced,
            collision=collision,
            memory=self.memory,
            cpu=cpu,
            history=history,
        )


def in_order(breaches: Sequence[ExplorationBreach]) -> tuple[ExplorationBreach, ...]:
    """Breaches by depth, then clause."""
    return tuple(sorted(breaches, key=lambda breach: (breach.depth, breach.clause)))
