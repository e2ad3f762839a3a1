"""The fast engine: whole levels as columns of numbers, every action called once per distinct footprint.

A state is one number per component (``tables.Column``). Its hash is the sum of fixed random numbers, one
for each component and value, so a step changes the hash by an amount that is remembered with the outcome:
a successor that is known already is dropped by its hash before any of its columns exist. What remains is
built, given its normal form, and looked up again. Two different states have the same hash with
probability 2^-64; the result says what that means for all of them together, and ``exact`` compares the
states themselves.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from rebalance.explore.memo import ActionTable, Columns, Judge, Steps
from rebalance.explore.memory import resident
from rebalance.explore.normal import Orbits, Relabeller
from rebalance.explore.search import Exploration, Limits, Progress, Stop
from rebalance.explore.tables import Array, Column, smallest
from rebalance.explore.tally import Tally
from rebalance.explore.visited import Hashes, Visited, firsts
from rebalance.model.machine import Machine, Value
from rebalance.properties.rules import Rules

BLOCK = 1 << 16
"""States that are expanded at a time."""

NO_LIMITS = Limits()


class Candidates(NamedTuple):
    """The successors of a block: in the order of the actions, each from a source, by an outcome."""

    tables: list[ActionTable]
    steps: list[Steps]
    bounds: NDArray[np.int64]
    """``bounds[i]`` to ``bounds[i + 1]`` are the steps of ``tables[i]``."""
    source: NDArray[np.int64]
    outcome: NDArray[np.int64]
    hashes: Hashes


class Space:
    """The tables of one machine, and what can be done with states held as columns."""

    def __init__(
        self, machine: Machine, rules: Rules, *, symmetry: bool, values: Sequence[Sequence[Value]] = ()
    ) -> None:
        given = values or [()] * len(machine.components)
        self.machine, self.rules = machine, rules
        self.columns = [Column(place, machine.labels, known) for place, known in enumerate(given)]
        self.tables = [ActionTable(action, machine, self.columns, rules) for action in machine.actions]
        self.judge = Judge(machine, self.columns, rules)
        self.relabeller = Relabeller(machine.labels, self.columns) if machine.labels else None
        self.orbits = Orbits(machine, self.columns) if symmetry and machine.symmetries else None

    def intern(self, states: Sequence[tuple[Value, ...]]) -> Columns:
        """States as columns."""
        return [
            np.array([column.id(state[place]) for state in states], np.uint32)
            for place, column in enumerate(self.columns)
        ]

    def state(self, states: Columns, place: int) -> tuple[Value, ...]:
        """One state as values."""
        return tuple(column.values[int(ids[place])] for column, ids in zip(self.columns, states, strict=True))

    def hashes(self, states: Columns) -> Hashes:
        """The hash of each state."""
        total = np.zeros(len(states[0]), np.uint64)
        for column, ids in zip(self.columns, states, strict=True):
            total += column.random[ids]
        return total

    def candidates(self, states: Columns, hashes: Hashes, tables: Sequence[ActionTable]) -> Candidates | None:
        """The successors of ``states`` by the actions ``tables``; None when there are none."""
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
            [table for table, _ in found],
            [steps for _, steps in found],
            np.cumsum([0, *(len(change) for change in after)]),
            np.concatenate([steps.source for _, steps in found]),
            np.concatenate([steps.outcome for _, steps in found]),
            np.concatenate(after),
        )

    def build(self, states: Columns, candidates: Candidates, pick: NDArray[np.int64]) -> Columns:
        """The states after the steps ``pick`` (in rising order), labels as they are."""
        source = candidates.source[pick]
        after = [ids[source].astype(np.uint32) for ids in states]
        outcome = candidates.outcome[pick]
        bounds = np.searchsorted(pick, candidates.bounds)
        for table, start, end in zip(candidates.tables, bounds[:-1], bounds[1:], strict=True):
            for place, written in zip(table.writes, table.written, strict=True):
                after[place][start:end] = written.room[outcome[start:end]]
        return after

    def settle(self, states: Columns, hashes: Hashes) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
        """Give states their normal form, and hashes theirs, in place.

        Under symmetry the hash is the least of the orbit, but the state is left for ``represent``.
        Returns the places of the states that had gaps in their labels, and the sizes of the orbits.
        """
        gaps = np.zeros(0, np.int64)
        if self.relabeller is not None:
            gaps = self.relabeller.close(states)
            if gaps.size:
                hashes[gaps] = self.hashes([ids[gaps] for ids in states])
        return gaps, None


class Search:
    """A search under way."""

    def __init__(self, space: Space, limits: Limits, *, exact: bool) -> None:
        self.space, self.limits, self.exact = space, limits, exact
        self.tally = Tally.of(space.machine, space.rules)
        self.levels: list[Columns] = []
        self.visited = Visited()
        self.base = resident()
        self.gaps = 0

    def begin(self) -> None:
        """The initial states."""
        machine = self.space.machine
        normal = list(dict.fromkeys(machine.normal(state) for state in machine.initial))
        states = self.space.intern(normal)
        hashes = self.space.hashes(states)
        unique, at = firsts(hashes)
        self.visited.add(unique)
        self._found([ids[np.sort(at)] for ids in states])

    def advance(self) -> bool:
        """Search one level further. False when the memory bound was reached; the level is dropped."""
        states, depth = self.levels[-1], len(self.levels)
        new: list[Columns] = []
        for start in range(0, len(states[0]), BLOCK):
            new.append(self._expand([ids[start : start + BLOCK] for ids in states], depth))
            self.tally.memory = max(self.tally.memory, resident() - self.base)
            if self.limits.memory is not None and self.tally.memory > self.limits.memory:
                return False
        joined = [np.concatenate(parts) for parts in zip(*new, strict=True)]
        if len(joined[0]):
            self._found(joined)
        return True

    def _found(self, states: Columns) -> None:
        depth, size = len(self.levels), len(states[0])
        for start in range(0, size, BLOCK):
            part = [ids[start : start + BLOCK] for ids in states]
            for clause, sentence, where in self.space.judge.breaches(part):
                self.tally.breach(clause, sentence, depth, len(where))
        self.tally.level(size, size)
        self.levels.append([narrow(ids) for ids in states])

    def _expand(self, states: Columns, depth: int) -> Columns:
        """The states one step after ``states`` that were not known before."""
        space = self.space
        candidates = space.candidates(states, space.hashes(states), space.tables)
        self._count(states, candidates, depth)
        if candidates is None:
            return [ids[:0] for ids in states]
        pick = self._new(candidates.hashes, np.flatnonzero(self.visited.not_recent(candidates.hashes)))
        after = space.build(states, candidates, pick)
        hashes = candidates.hashes[pick]
        gaps, _ = space.settle(after, hashes)
        if gaps.size:
            self.gaps += len(gaps)
            keep = self._new(hashes, np.arange(len(hashes)))
            after, raw, hashes = [ids[keep] for ids in after], candidates.hashes[pick[gaps]], hashes[keep]
            self.visited.remember(raw)
        self.visited.add(np.sort(hashes))
        return after

    def _new(self, hashes: Hashes, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Those of ``places``, in rising order, that hold the first of a hash that was not visited."""
        unique, at = firsts(hashes[places])
        return np.sort(places[at[~self.visited.contains(unique)]])

    def _count(self, states: Columns, candidates: Candidates | None, depth: int) -> None:
        degrees = np.zeros(len(states[0]), np.int64)
        if candidates is not None:
            numbers = {id(table): number for number, table in enumerate(self.space.tables)}
            for table, steps in zip(candidates.tables, candidates.steps, strict=True):
                degrees[steps.states] += 1 if steps.each is None else steps.each
                self.tally.take(numbers[id(table)], len(steps.states), len(steps.source))
                for remark, count in table.remarked(steps):
                    for clause, sentence in remark.breaches:
                        self.tally.breach(clause, sentence, depth, count)
                    for clause in remark.shows:
                        self.tally.witness(clause, depth, count)
        total = int(degrees.sum())
        dead = len(degrees) - np.count_nonzero(degrees)
        self.tally.expand(len(degrees), total, int(degrees.min()), int(degrees.max()), int(dead), depth - 1)


def narrow(ids: Array) -> Array:
    """The same numbers in the smallest type that holds them."""
    return ids.astype(smallest(int(ids.max()) + 1))


def explore(
    machine: Machine,
    rules: Rules,
    limits: Limits = NO_LIMITS,
    *,
    symmetry: bool = False,
    exact: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> Exploration:
    """Search ``machine`` and ask ``rules`` of every state and step."""
    started = time.process_time()
    clock = time.monotonic()
    search = Search(Space(machine, rules, symmetry=symmetry), limits, exact=exact)
    search.begin()
    while (stop := search.tally.stop(len(search.levels[-1][0]) if search.levels else 0, limits)) is None:
        before = search.tally.copy()
        known = len(search.levels)
        if not search.advance():
            search.tally = before
            stop = Stop.MEMORY
            break
        if progress is not None:
            t = search.tally
            progress(
                Progress(
                    *(len(t.levels) - 1, t.levels[-1], t.distinct, t.generated),
                    *(time.monotonic() - clock,),
                )
            )
        if len(search.levels) == known:
            stop = Stop.COMPLETE
            break
    return search.tally.result(stop, None, time.process_time() - started)
