"""What the fast engine answers after a search, from the levels alone: shortest traces, and the graph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from rebalance_verifier.explore.engine.backtrace import shown_by, unfold
from rebalance_verifier.explore.engine.memo import Columns, Remark
from rebalance_verifier.explore.engine.search import DEADLOCK, Graph, ModelTrace, OrbitGraph
from rebalance_verifier.explore.engine.space import BLOCK, Candidates, Space
from rebalance_verifier.explore.engine.visited import Hashes, Index
from rebalance_verifier.model.machine import State


class LevelHistory:
    """The levels of a search, and the questions that can be asked of them (``search.SearchHistory``)."""

    def __init__(self, space: Space, levels: Sequence[Columns]) -> None:
        self.space, self.levels = space, levels

    def traces(self, clause: str, depth: int) -> Iterator[ModelTrace]:
        """Yield every trace of ``depth`` events whose last state, or last step, is about ``clause``."""
        goals = np.zeros(0, np.uint64)
        if depth < len(self.levels):
            parts = [goals]
            for states, hashes in self._blocks(depth):
                parts.append(hashes[about(self.space, states, hashes, clause)])
            goals = np.sort(np.concatenate(parts))
        return self._traces(goals, depth, clause)

    def traces_to(self, index: int) -> Iterator[ModelTrace]:
        """Yield every shortest trace to the state with this index."""
        depth, row = self._locate(index)
        goal = self.space.hashes([ids[row : row + 1] for ids in self.levels[depth]])
        return self._traces(goal, depth, "")

    def graph(self) -> OrbitGraph:
        """Return the steps that are no faults, between the states that stand for their orbits."""
        space = self.space
        index, total = Index(), 0
        for depth in range(len(self.levels)):
            for _, hashes in self._blocks(depth):
                index.add(hashes, np.arange(total, total + len(hashes)))
                total += len(hashes)
        parts: list[tuple[NDArray[np.int64], ...]] = [(np.zeros(0, np.int64),) * 3]
        stays: list[NDArray[np.bool_]] = [np.zeros(0, np.bool_)]
        numbers = {id(table): number for number, table in enumerate(space.tables)}
        calm = [table for table in space.tables if not table.action.fault]
        base = 0
        for depth in range(len(self.levels)):
            for states, hashes in self._blocks(depth):
                found = space.candidates(states, hashes, calm)
                if found is not None:
                    arrivals = space.arrivals(states, found)
                    order = np.argsort(arrivals)
                    target = np.empty(len(arrivals), np.int64)
                    target[order] = index.find(arrivals[order])
                    actions = np.array([numbers[id(table)] for table in found.tables])
                    parts.append((found.source + base, target, np.repeat(actions, np.diff(found.bounds))))
                    stays.append(found.hashes == hashes[found.source])
                base += len(hashes)
        source, target, action = (np.concatenate(part) for part in zip(*parts, strict=True))
        sizes = tuple(len(level[0]) for level in self.levels)
        return OrbitGraph(
            Graph(states=total, source=source, target=target, action=action, sizes=sizes, state=self._state),
            np.concatenate(stays),
        )

    def _state(self, index: int) -> State:
        depth, row = self._locate(index)
        return self.space.state(self.levels[depth], row)

    def _locate(self, index: int) -> tuple[int, int]:
        for depth, level in enumerate(self.levels):
            if index < len(level[0]):
                return depth, index
            index -= len(level[0])
        raise IndexError("there are not so many states")

    def _blocks(self, depth: int) -> Iterator[tuple[Columns, Hashes]]:
        level = self.levels[depth]
        for start in range(0, len(level[0]), BLOCK):
            states = [ids[start : start + BLOCK] for ids in level]
            yield states, self.space.hashes(states)

    def _traces(self, goals: Hashes, depth: int, clause: str) -> Iterator[ModelTrace]:
        ways = [goals]
        for here in reversed(range(depth)):
            last = clause if here == depth - 1 else ""
            parts = [np.zeros(0, np.uint64)]
            for states, hashes in self._blocks(here):
                parts.append(hashes[leading(self.space, states, hashes, ways[-1], last)])
            ways.append(np.sort(np.concatenate(parts)))
        ways.reverse()
        return follow(self.space, ways, clause)


def about(space: Space, states: Columns, hashes: Hashes, clause: str) -> NDArray[np.bool_]:
    """Return which of ``states`` break ``clause``, or have no way out where it is DEADLOCK."""
    found = np.zeros(len(hashes), np.bool_)
    if clause == DEADLOCK:
        candidates = space.candidates(states, hashes, space.tables)
        found[:] = True
        found[candidates.source if candidates is not None else []] = False
    for broken, _, where in space.always.breaches(states):
        if broken == clause:
            found[where] = True
    return found


def leading(
    space: Space, states: Columns, hashes: Hashes, goals: Hashes, clause: str = ""
) -> NDArray[np.bool_]:
    """Return which of ``states`` have a step to one of the sorted ``goals``, or one that is about
    ``clause``."""
    leads = np.zeros(len(hashes), np.bool_)
    candidates = space.candidates(states, hashes, space.tables)
    if candidates is not None:
        on = _among(space.arrivals(states, candidates), goals)
        if clause:
            on |= _remarked(candidates, clause)
        leads[candidates.source[on]] = True
    return leads


def follow(space: Space, ways: Sequence[Hashes], clause: str) -> Iterator[ModelTrace]:
    """Yield every trace through states whose hashes are in ``ways``, sorted, for each depth; the last step
    may break or show ``clause`` instead."""
    met: dict[State, int] = {}

    def on_way(state: State, here: int) -> bool:
        if state not in met:
            met[state] = space.key(state)
        return bool(_among(np.array([met[state]], np.uint64), ways[here])[0])

    return unfold(space.machine, len(ways) - 1, on_way, shown_by(space.machine, space.rules.about(clause)))


def _among(hashes: Hashes, some: Hashes) -> NDArray[np.bool_]:
    """Return which of ``hashes`` are in the sorted ``some``."""
    if not len(some):
        return np.zeros(len(hashes), np.bool_)
    at = np.searchsorted(some, hashes)
    at[at == len(some)] = 0
    among: NDArray[np.bool_] = some[at] == hashes
    return among


def _remarked(candidates: Candidates, clause: str) -> NDArray[np.bool_]:
    """Return the steps that break or show ``clause``."""
    parts = []
    for table, steps in zip(candidates.tables, candidates.steps, strict=True):
        about = [
            isinstance(remark, Remark) and (clause in dict(remark.breaches) or clause in remark.shows)
            for remark in table.remarks.values
        ]
        parts.append(np.array(about)[table.remark.room[steps.outcome]])
    return np.concatenate(parts)
