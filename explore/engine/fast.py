"""The fast engine: whole levels as columns of numbers, every action called once per distinct footprint.

A successor that is known already is dropped by its hash before any of its columns exist
(``explore.engine.space``). What remains is built, given its normal form, and looked up again. Two
different states have the same hash with probability 2^-64; the result says what that comes to for all of
them together, and ``exact`` compares the states themselves.

Discovery is in an order that follows from the machine alone, so two runs give the same indices.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from rebalance_verifier.explore.engine.checkpoint import Checkpoint, Snapshot
from rebalance_verifier.explore.engine.history import LevelHistory
from rebalance_verifier.explore.engine.memo import Columns
from rebalance_verifier.explore.engine.memory import resident
from rebalance_verifier.explore.engine.search import Exploration, Limits, Progress, Stop
from rebalance_verifier.explore.engine.space import BLOCK, Candidates, Space
from rebalance_verifier.explore.engine.tables import Growing, narrow
from rebalance_verifier.explore.engine.tally import Tally
from rebalance_verifier.explore.engine.visited import Hashes, Index, Visited, firsts, grouped
from rebalance_verifier.model.machine import Machine
from rebalance_verifier.properties.group.rules import Rules

NO_LIMITS = Limits()


class Collision(Exception):
    """Two different states have the same hash: the search cannot go on (``exact`` only)."""


class Known:
    """The states that were found, by hash. ``exact``: with their columns, to compare."""

    def __init__(self, columns: int, *, exact: bool) -> None:
        self.exact = exact
        self.visited = Visited()
        self.index = Index()
        self.columns = [Growing(np.uint32) for _ in range(columns)]

    def add(self, states: Columns, hashes: Hashes) -> None:
        """Add states that were not known."""
        self.visited.add(hashes)
        if self.exact:
            first = self.columns[0].size
            self.index.add(hashes, np.arange(first, first + len(hashes)))
            for column, ids in zip(self.columns, states, strict=True):
                column.extend(ids)

    def new(self, hashes: Hashes, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return those of ``rows``, in rising order, that hold the first of a hash that is not known."""
        rows = rows[~self.visited.contains(hashes[rows])]
        return np.sort(rows[firsts(hashes[rows])[1]])

    def compare(self, states: Columns, hashes: Hashes) -> None:
        """Raise Collision when a state differs from another of the same hash, here or known."""
        if not hashes.all():
            raise Collision("a state has the hash 0, which stands for none")
        unique, at, which = grouped(hashes)
        there = self.index.find(unique)
        old = np.flatnonzero(there >= 0)
        for column, ids in zip(self.columns, states, strict=True):
            if (ids != ids[at][which]).any() or (column.room[there[old]] != ids[at[old]]).any():
                raise Collision(f"two different states among {self.columns[0].size + len(hashes)}")


class Search:
    """A search under way: the levels so far, what is known, what was counted."""

    def __init__(self, space: Space, limits: Limits, *, exact: bool = False) -> None:
        self.space, self.limits = space, limits
        self.tally = Tally.of(space.machine, space.rules)
        self.levels: list[Columns] = []
        self.known = Known(len(space.columns), exact=exact)
        self.base = resident()

    def begin(self) -> None:
        """The initial states. Raises ValueError when symmetries lead out of them."""
        space, machine = self.space, self.space.machine
        normal = list(dict.fromkeys(machine.normal(state) for state in machine.initial))
        if space.orbits is not None:
            here = set(normal)
            if any(machine.permuted(s, g) not in here for s in normal for g in machine.symmetries):
                raise ValueError("a symmetry leads from an initial state to one that is none")
        states = space.intern(normal)
        hashes = space.hashes(states)
        settled = space.settle(states, hashes)
        keep = self.known.new(hashes, np.arange(len(hashes)))
        states = space.represent([ids[keep] for ids in states], settled.by[keep] if len(settled.by) else keep)
        self.known.add(states, hashes[keep])
        self._found(states, int(settled.sizes[keep].sum()) if len(settled.sizes) else len(keep))

    def resume(self, snapshot: Snapshot) -> None:
        """Go on from ``snapshot``."""
        self.tally = snapshot.tally
        for level in snapshot.levels:
            self.levels.append(level)
            for states in blocks(level):
                self.known.add(states, self.space.hashes(states))

    def advance(self, tick: Callable[[int], None] = lambda found: None) -> Stop | None:
        """Search one level further. Returns why it could not be; then the level is to be dropped.

        ``tick`` is called between its blocks with how many states were found by then.
        """
        new: list[Columns] = []
        stands_for = 0
        for states in blocks(self.levels[-1]):
            if new:
                tick(sum(len(part[0]) for part in new))
            found, unreduced = self._expand(states, len(self.levels))
            new.append(found)
            stands_for += unreduced
            self.tally.memory = max(self.tally.memory, resident() - self.base)
            if self.limits.memory is not None and self.tally.memory > self.limits.memory:
                return Stop.MEMORY
        joined = [np.concatenate(parts) for parts in zip(*new, strict=True)]
        if len(joined[0]):
            self._found(joined, stands_for)
        return None

    @property
    def frontier(self) -> int:
        """Return how many states are not expanded yet."""
        return self.tally.distinct - self.tally.expanded

    def _found(self, states: Columns, unreduced: int) -> None:
        depth = len(self.levels)
        for part in blocks(states):
            for clause, sentence, where in self.space.always.breaches(part):
                self.tally.breach(clause, sentence, depth, len(where))
        self.tally.level(len(states[0]), unreduced)
        self.levels.append([narrow(ids) for ids in states])

    def _expand(self, states: Columns, depth: int) -> tuple[Columns, int]:
        """Return the states one step after ``states`` that were not known, and how many they stand for."""
        space, known = self.space, self.known
        candidates = space.candidates(states, space.hashes(states), space.tables)
        count(space, self.tally, len(states[0]), candidates, depth)
        if candidates is None:
            return [ids[:0] for ids in states], 0
        if known.exact:
            pick = np.arange(len(candidates.hashes))
        else:
            pick = known.new(candidates.hashes, np.flatnonzero(known.visited.not_recent(candidates.hashes)))
        after = space.build(states, candidates, pick)
        hashes = candidates.hashes[pick]
        settled = space.settle(after, hashes)
        self.tally.relabelled += len(settled.gaps)
        if known.exact:
            known.compare(space.represent(after, settled.by), hashes)
        unreduced = len(hashes)
        if known.exact or space.orbits is not None or len(settled.gaps):
            keep = known.new(hashes, np.arange(len(hashes)))
            after, hashes = [ids[keep] for ids in after], hashes[keep]
            unreduced = len(keep)
            if space.orbits is not None:
                after = space.represent(after, settled.by[keep])
                unreduced = int(settled.sizes[keep].sum())
            # Not states that are known, but their normal forms are.
            known.visited.remember(candidates.hashes[pick])
        known.add(after, hashes)
        return after, unreduced


def count(space: Space, tally: Tally, states: int, candidates: Candidates | None, depth: int) -> None:
    """Add to ``tally`` that so many ``states`` were expanded; their successors are at ``depth``."""
    degrees = np.zeros(states, np.int64)
    if candidates is not None:
        numbers = {id(table): number for number, table in enumerate(space.tables)}
        for table, steps in zip(candidates.tables, candidates.steps, strict=True):
            degrees[steps.states] += 1 if steps.each is None else steps.each
            tally.take(numbers[id(table)], len(steps.states), len(steps.source))
            for remark, times in table.remarked(steps):
                for clause, sentence in remark.breaches:
                    tally.breach(clause, sentence, depth, times)
                for clause in remark.shows:
                    tally.witness(clause, depth, times)
    dead = len(degrees) - np.count_nonzero(degrees)
    tally.expand(
        *(len(degrees), int(degrees.sum()), int(degrees.min()), int(degrees.max())), *(int(dead), depth - 1)
    )


def blocks(states: Columns) -> list[Columns]:
    """Return the states in blocks that are handled at a time."""
    return [[ids[start : start + BLOCK] for ids in states] for start in range(0, len(states[0]), BLOCK)]


def explore(
    machine: Machine,
    rules: Rules,
    limits: Limits = NO_LIMITS,
    *,
    symmetry: bool = False,
    exact: bool = False,
    progress: Callable[[Progress], None] | None = None,
    checkpoint: Checkpoint | None = None,
) -> Exploration:
    """Search ``machine`` and ask ``rules`` of every state and step.

    ``symmetry`` searches one state of each orbit under ``machine.symmetries``; coverage and the counts of
    breaches and witnesses are then those of the states that were searched. ``exact`` compares states
    whose hashes are equal and raises Collision when they differ. ``progress`` is called again and again,
    also within a level, which may take minutes.

    Ctrl-C (KeyboardInterrupt) drops the level being searched. A search that ends before its end, other
    than by a breach, is saved to ``checkpoint``, and goes on from there when it is given again; a
    complete one removes it, unless it keeps those too. Raises ValueError when the checkpoint is of another
    machine.
    """
    started, clock = time.process_time(), time.monotonic()
    fingerprint = "" if checkpoint is None else f"{checkpoint.fingerprint} symmetry={symmetry}"
    snapshot = None
    if checkpoint is not None:
        snapshot = checkpoint.load(fingerprint, Tally.of(machine, rules), len(machine.components))
    cpu = 0.0
    if snapshot is None:
        search = Search(Space(machine, rules, symmetry=symmetry), limits, exact=exact)
        search.begin()
    else:
        space = Space(machine, rules, symmetry=symmetry, values=snapshot.values)
        search = Search(space, limits, exact=exact)
        search.resume(snapshot)
        cpu = snapshot.cpu

    def spent() -> float:
        return cpu + time.process_time() - started

    def here() -> Snapshot:
        return Snapshot.of(search.space, search.levels, search.tally, spent())

    def report(found: int = 0) -> None:
        if progress is not None:
            t = search.tally
            progress(
                Progress(
                    depth=len(t.levels) - 1,
                    frontier=search.frontier + found,
                    distinct=t.distinct + found,
                    generated=t.generated,
                    seconds=time.monotonic() - clock,
                )
            )

    saved, before = clock, here()
    try:
        while (stop := search.tally.stop(search.frontier, limits)) is None:
            if (stop := search.advance(report)) is not None:
                break
            if checkpoint is not None and checkpoint.due(time.monotonic() - saved):
                checkpoint.save(here(), fingerprint)
                saved = time.monotonic()
            report()
            before = here()
    except KeyboardInterrupt:
        stop = Stop.INTERRUPTED
    if stop in (Stop.INTERRUPTED, Stop.MEMORY):
        # Any table may have been left half written, so they are made anew.
        search.space = Space(machine, rules, symmetry=symmetry, values=before.known())
        search.levels, search.tally = before.levels, before.tally
    if checkpoint is not None:
        if stop is Stop.COMPLETE and not checkpoint.keep:
            checkpoint.remove()
        elif stop is not Stop.BREACH:
            checkpoint.save(Snapshot.of(search.space, search.levels, search.tally, spent()), fingerprint)
    order = 1 if search.space.orbits is None else search.space.orbits.order
    odds = collision(search.tally, order)
    return search.tally.result(stop, LevelHistory(search.space, search.levels), spent(), odds)


def collision(tally: Tally, order: int) -> float:
    """Return an upper bound of the probability that two of the states that were hashed have the same hash.

    Each pair of n states has the same with 2^-64: n^2 / 2^65 for all. Under symmetry so has each pair in
    an orbit of up to ``order`` states.
    """
    hashed = tally.distinct + tally.relabelled
    return min(1.0, (hashed**2 + (hashed * order**2 if order > 1 else 0)) / 2**65)
