"""The plain engine: a set of states and a loop. It is the oracle of the fast one.

Breadth-first over normal forms, one state after the other, every action called on every state.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial

import numpy as np
from rebalance_verifier.explore.engine.backtrace import Shows, shown_by, unfold
from rebalance_verifier.explore.engine.memory import resident
from rebalance_verifier.explore.engine.search import (
    DEADLOCK,
    Exploration,
    Graph,
    Limits,
    ModelTrace,
    OrbitGraph,
    Stop,
)
from rebalance_verifier.explore.engine.tally import Tally
from rebalance_verifier.model.machine import Machine, State
from rebalance_verifier.properties.group.rules import Rules

NO_LIMITS = Limits()


def explore(machine: Machine, rules: Rules, limits: Limits = NO_LIMITS) -> Exploration:
    """Search ``machine`` and ask ``rules`` of every state and step.

    On Ctrl-C (KeyboardInterrupt) the level being searched is dropped and what is known is returned.
    """
    started, taken_before = time.process_time(), resident()
    tally = Tally.of(machine, rules)
    frontier = list(dict.fromkeys(machine.normal(state) for state in machine.initial))
    levels = [frontier]
    tally.level(len(frontier), len(frontier))
    _check(machine, rules, frontier, tally, 0)
    seen = set(frontier)
    while (stop := tally.stop(len(frontier), limits)) is None:
        before = tally.copy()
        try:
            frontier = _next_level(machine, rules, levels[-1], seen, tally, len(levels))
        except KeyboardInterrupt:
            stop = Stop.INTERRUPTED
        tally.memory = max(tally.memory, resident() - taken_before)
        if limits.memory is not None and tally.memory > limits.memory:
            stop = Stop.MEMORY
        if stop is not None:
            tally = before
            break
        if frontier:
            levels.append(frontier)
            tally.level(len(frontier), len(frontier))
            _check(machine, rules, frontier, tally, len(levels) - 1)
    return tally.result(stop, PlainHistory(machine, rules, levels), time.process_time() - started)


def _next_level(
    machine: Machine, rules: Rules, frontier: list[State], seen: set[State], tally: Tally, depth: int
) -> list[State]:
    """Return the states one step further that are not in ``seen``, which they are added to."""
    found: list[State] = []
    number = {(action.name, action.who): index for index, action in enumerate(machine.actions)}
    for state in frontier:
        outcomes = list(machine.outcomes(state))
        tally.expand(1, len(outcomes), len(outcomes), len(outcomes), not outcomes, depth - 1)
        taken = [number[event.action, event.who] for event, _ in outcomes]
        for action in dict.fromkeys(taken):
            tally.take(action, 1, taken.count(action))
        for event, outcome in outcomes:
            for clause, sentence in rules.at_step(event, outcome.seen, machine.change(state, event, outcome)):
                tally.breach(clause, sentence, depth)
            for clause in rules.shown(event, outcome.seen):
                tally.witness(clause, depth)
            after = machine.normal(machine.apply(state, event, outcome))
            if after not in seen:
                seen.add(after)
                found.append(after)
    return found


def _check(machine: Machine, rules: Rules, states: list[State], tally: Tally, depth: int) -> None:
    for state in states:
        for clause, sentence in rules.in_state(partial(machine.look, state)):
            tally.breach(clause, sentence, depth)


class PlainHistory:
    """The levels of a search, and the questions that can be asked of them (``search.SearchHistory``)."""

    def __init__(self, machine: Machine, rules: Rules, levels: list[list[State]]) -> None:
        self.machine, self.rules, self.levels = machine, rules, levels

    def traces(self, clause: str, depth: int) -> Iterator[ModelTrace]:
        """Yield every trace of ``depth`` events whose last state, or last step, is about ``clause``."""
        machine, rules = self.machine, self.rules.about(clause)

        def goal(state: State) -> bool:
            if clause == DEADLOCK:
                return next(machine.outcomes(state), None) is None
            return any(rules.in_state(partial(machine.look, state)))

        last = self.levels[depth] if depth < len(self.levels) else []
        return self._traces({state for state in last if goal(state)}, depth, shown_by(machine, rules))

    def traces_to(self, index: int) -> Iterator[ModelTrace]:
        """Yield every shortest trace to the state with this index."""
        depth = 0
        while index >= len(self.levels[depth]):
            index -= len(self.levels[depth])
            depth += 1
        return self._traces({self.levels[depth][index]}, depth, lambda state, event, outcome: False)

    def _traces(self, goals: set[State], depth: int, shows: Shows) -> Iterator[ModelTrace]:
        machine, ways = self.machine, [goals]
        for level in reversed(self.levels[:depth]):
            first = len(ways) == 1
            ways.append(
                {
                    state
                    for state in level
                    if any(
                        (first and shows(state, event, outcome))
                        or machine.normal(machine.apply(state, event, outcome)) in ways[-1]
                        for event, outcome in machine.outcomes(state)
                    )
                }
            )
        ways.reverse()
        return unfold(machine, depth, lambda state, here: machine.normal(state) in ways[here], shows)

    def graph(self) -> OrbitGraph:
        """Return the steps that are no faults; no states are merged."""
        machine, states = self.machine, [state for level in self.levels for state in level]
        index = {state: origin for origin, state in enumerate(states)}
        number = {(action.name, action.who): index for index, action in enumerate(machine.actions)}
        edges = [
            (
                origin,
                index[machine.normal(machine.apply(state, event, outcome))],
                number[event.action, event.who],
            )
            for origin, state in enumerate(states)
            for event, outcome in machine.outcomes(state, faults=False)
        ]
        source, target, action = np.array(edges, dtype=np.int64).reshape(-1, 3).T
        sizes = tuple(len(level) for level in self.levels)
        graph = Graph(
            states=len(states),
            source=source,
            target=target,
            action=action,
            sizes=sizes,
            state=states.__getitem__,
        )
        return OrbitGraph(graph, source == target)
