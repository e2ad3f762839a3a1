"""A machine whose states are columns of numbers: steps, hashes, normal forms of whole arrays of states.

A state is one number per component (``tables.Column``). Its hash is the sum of fixed random numbers, one
for each component and value, so a step changes the hash by an amount that is remembered with the outcome,
and successors can be told apart before any of their columns exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from rebalance_verifier.explore.engine.memo import ActionTable, AlwaysTable, Columns, Steps
from rebalance_verifier.explore.engine.normal import Relabeller
from rebalance_verifier.explore.engine.orbits import Orbits
from rebalance_verifier.explore.engine.tables import Column
from rebalance_verifier.explore.engine.visited import Hashes, grouped
from rebalance_verifier.model.machine import Machine, State, Value
from rebalance_verifier.properties.group.rules import Rules

BLOCK = 1 << 16
"""States that are expanded at a time."""


class Candidates(NamedTuple):
    """The successors of a block: in the order of the actions, each from a source, by an outcome."""

    tables: list[ActionTable]
    steps: list[Steps]
    bounds: NDArray[np.int64]
    """``bounds[i]`` to ``bounds[i + 1]`` are the steps of ``tables[i]``."""
    source: NDArray[np.int64]
    outcome: NDArray[np.int64]
    hashes: Hashes


class Settled(NamedTuple):
    """Result of ``Space.settle``: the places of the states that had gaps in their labels; under symmetry, for
    each state, the symmetry that leads to the one that stands for its orbit, and the orbit's size."""

    gaps: NDArray[np.int64]
    by: NDArray[np.int64]
    sizes: NDArray[np.int64]


class Space:
    """The tables of one machine, and what can be done with states held as columns."""

    def __init__(
        self,
        machine: Machine,
        rules: Rules,
        *,
        symmetry: bool,
        values: Sequence[Sequence[Value]] = (),
        column: type[Column] = Column,
    ) -> None:
        given = values or [()] * len(machine.components)
        self.machine, self.rules = machine, rules
        self.columns = [column(position, machine.labels, known) for position, known in enumerate(given)]
        self.tables = [ActionTable(action, machine, self.columns, rules) for action in machine.actions]
        self.always = AlwaysTable(machine, self.columns, rules)
        self.relabeller = Relabeller(machine.labels, self.columns) if machine.labels else None
        self.orbits = Orbits(machine, self.columns) if symmetry and machine.symmetries else None

    def intern(self, states: Sequence[State]) -> Columns:
        """Return states as columns."""
        return [
            np.array([column.id(state[position]) for state in states], np.uint32)
            for position, column in enumerate(self.columns)
        ]

    def state(self, states: Columns, row: int) -> State:
        """Return one state as values."""
        return tuple(column.values[int(ids[row])] for column, ids in zip(self.columns, states, strict=True))

    def hashes(self, states: Columns) -> Hashes:
        """Return the hash of each state."""
        total = np.zeros(len(states[0]), np.uint64)
        for column, ids in zip(self.columns, states, strict=True):
            total += column.random[ids]
        return total

    def candidates(self, states: Columns, hashes: Hashes, tables: Sequence[ActionTable]) -> Candidates | None:
        """Return the successors of ``states`` by the actions ``tables``; None when there are none."""
        found: list[tuple[ActionTable, Steps]] = []
        after: list[Hashes] = []
        for table in tables:
            steps = table.steps(states)
            if steps is not None:
                found.append((table, steps))
                change = table.change(states, steps)
                change += hashes[steps.source]
                after.append(change)
        if not found:
            return None
        return Candidates(
            tables=[table for table, _ in found],
            steps=[steps for _, steps in found],
            bounds=np.cumsum([0, *(len(change) for change in after)]),
            source=np.concatenate([steps.source for _, steps in found]),
            outcome=np.concatenate([steps.outcome for _, steps in found]),
            hashes=np.concatenate(after),
        )

    def build(self, states: Columns, candidates: Candidates, pick: NDArray[np.int64]) -> Columns:
        """Return the states after the steps ``pick`` (in rising order), labels as they are."""
        source = candidates.source[pick]
        after = [ids[source].astype(np.uint32) for ids in states]
        outcome = candidates.outcome[pick]
        bounds = np.searchsorted(pick, candidates.bounds)
        for table, start, end in zip(candidates.tables, bounds[:-1], bounds[1:], strict=True):
            for position, written in zip(table.writes, table.written, strict=True):
                after[position][start:end] = written.room[outcome[start:end]]
        return after

    def settle(self, states: Columns, hashes: Hashes) -> Settled:
        """Give states their normal form, and hashes theirs, in place.

        Under symmetry the hash is that of the state that stands for the orbit; ``represent`` makes it.
        """
        gaps = np.zeros(0, np.int64)
        if self.relabeller is not None:
            gaps = self.relabeller.close(states)
            if gaps.size:
                hashes[gaps] = self.hashes([ids[gaps] for ids in states])
        if self.orbits is None:
            return Settled(gaps, gaps, gaps)
        hashes[:], by, sizes = self.orbits.represent(states)
        return Settled(gaps, by, sizes)

    def represent(self, states: Columns, by: NDArray[np.int64]) -> Columns:
        """Return the states that stand for the orbits of ``states``, by the symmetries that ``settle``
        found."""
        return states if self.orbits is None else self.orbits.apply(states, by)

    def key(self, state: State) -> int:
        """Return the hash of a state's normal form, under symmetry of the one that stands for it."""
        states = self.intern([self.machine.normal(state)])
        hashes = self.hashes(states)
        self.settle(states, hashes)
        return int(hashes[0])

    def arrivals(self, states: Columns, candidates: Candidates) -> Hashes:
        """Return the hash of the normal form of each of ``candidates``, the successors of ``states``."""
        unique, at, which = grouped(candidates.hashes)
        order = np.argsort(at)
        after = self.build(states, candidates, at[order])
        hashes = unique[order]
        self.settle(after, hashes)
        settled = np.empty_like(hashes)
        settled[order] = hashes
        arrivals: Hashes = settled[which]
        return arrivals
