"""Symmetry of states held as columns of numbers: one state of each orbit stands for all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from rebalance_verifier.explore.engine.memo import Columns
from rebalance_verifier.explore.engine.tables import Array, Column
from rebalance_verifier.model.machine import Machine, Value

ORBIT_ROWS = 2048
"""States whose orbits are hashed at a time, so that the hashes stay in the processor's cache."""

LOW_BITS = 20
HIGH = ~np.uint64((1 << LOW_BITS + 8) - 1)
"""The bits of a key that hash what is read together. The bits below hold the sum of up to 256 numbers of
``LOW_BITS``, which does not reach into these."""


class Orbits:
    """The states that the symmetries make of a state, and which of them stands for all.

    It is the one with the least key: high bits a hash of the components that are read together, low bits
    a hash of all. What such an action reads then differs little among the states that stand for others,
    and it is called less often.
    """

    def __init__(self, machine: Machine, columns: Sequence[Column]) -> None:
        self.machine, self.columns = machine, columns
        self.order = len(machine.symmetries)
        self.sources = np.array([np.argsort(s.columns) for s in machine.symmetries])
        # For each component: what its values become, and what they add to the hash, per symmetry.
        self.images = [np.zeros((0, self.order), np.uint32) for _ in columns]
        self.hashes = [np.zeros((0, self.order), np.uint64) for _ in columns]
        self.keys = [np.zeros((0, self.order), np.uint64) for _ in columns]
        self.known = [np.zeros(0, np.bool_) for _ in columns]
        self.first = read_together(machine)
        # Values that tell the symmetries apart, and each symmetry by what it makes of them; then
        # ``after[g, h]``: which symmetry is ``g`` after ``h``.
        self.examples: list[Value] = []
        self.kinds: list[tuple[Value, ...]] = [(s.columns,) for s in machine.symmetries]
        self.after: NDArray[np.int64] | None = None

    def represent(self, states: Columns) -> tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.int64]]:
        """For each state the hash of the one that stands for its orbit, the symmetry that leads there, and
        how many states the orbit has."""
        for position, ids in enumerate(states):
            self._learn(position, ids)
        # The symmetries with the least key, often several that lead to the same state. Where they do not,
        # the least hash decides, which is that of the state anyway.
        found = [np.zeros(0, np.int64)]
        for number, keys in enumerate(self._keys(states)):
            least = keys[np.arange(len(keys)), keys.argmin(axis=1)]
            found.append(np.flatnonzero(keys == least[:, None]) + number * ORBIT_ROWS * self.order)
        row, by = np.divmod(np.concatenate(found), self.order)
        hashes = np.zeros(len(row), np.uint64)
        for table, ids in zip(self.hashes, states, strict=True):
            hashes += table.ravel()[ids[row].astype(np.int64) * self.order + by]
        if len(row) > len(states[0]):
            starts = np.flatnonzero(np.diff(row, prepend=-1))
            best = np.flatnonzero(hashes == np.minimum.reduceat(hashes, starts)[row])
            one = best[np.diff(row[best], prepend=-1) > 0]
            # As many symmetries lead to one state of an orbit as to any other.
            return hashes[one], by[one], self.order // np.bincount(row[best])
        return hashes, by, np.full(len(row), self.order)

    def _keys(self, states: Columns) -> Iterator[NDArray[np.uint64]]:
        """Yield the keys of ``ORBIT_ROWS`` states at a time, under each symmetry."""
        rows = len(states[0])
        # A component that has one value in all states adds the same to all.
        same = np.zeros(self.order, np.uint64)
        varied = []
        for table, ids in zip(self.keys, states, strict=True):
            if rows and (ids == ids[0]).all():
                same += table[ids[0]]
            else:
                varied.append((table, ids.astype(np.int64)))
        sums = np.empty((ORBIT_ROWS, self.order), np.uint64)
        more = np.empty_like(sums)
        for start in range(0, rows, ORBIT_ROWS):
            these = sums[: min(ORBIT_ROWS, rows - start)]
            these[:] = same
            for table, ids in varied:
                # With ``clip`` it writes in place; the numbers are in range anyway.
                part = ids[start : start + ORBIT_ROWS]
                these += table.take(part, axis=0, out=more[: len(these)], mode="clip")
            yield these

    def apply(self, states: Columns, by: NDArray[np.int64]) -> Columns:
        """Return each state under one symmetry."""
        matrix = np.array(states)
        rows = np.arange(len(by))
        after = []
        for position in range(len(states)):
            source = self.sources[by, position]
            ids = matrix[source, rows]
            moved = np.empty(len(by), np.uint32)
            for origin in range(len(states)):
                here = np.flatnonzero(source == origin)
                if here.size:
                    moved[here] = self.images[origin][ids[here], by[here]]
            after.append(moved)
        return after

    def _learn(self, position: int, ids: Array) -> None:
        """Rename the values that are met for the first time."""
        column = self.columns[position]
        self._room(position, len(column))
        new = np.flatnonzero(~self.known[position][ids])
        if not new.size:
            return
        for number in np.unique(ids[new]).tolist():
            if not self.known[position][number]:
                self._orbit(column, number)

    def _room(self, position: int, size: int) -> None:
        more = 2 * size - len(self.known[position])
        if more > size:
            self.known[position] = np.concatenate((self.known[position], np.zeros(more, np.bool_)))
            images = np.zeros((more, self.order), np.uint32)
            self.images[position] = np.concatenate((self.images[position], images))
            hashes = np.zeros((more, self.order), np.uint64)
            self.hashes[position] = np.concatenate((self.hashes[position], hashes))
            self.keys[position] = np.concatenate((self.keys[position], hashes))

    def _orbit(self, column: Column, number: int) -> None:
        """Rename one value by every symmetry, and so, as they are a group, each value that comes out."""
        value, symmetries = column.values[number], self.machine.symmetries
        values = [symmetry.rename(value) for symmetry in symmetries]
        targets = [self.columns[symmetry.columns[column.position]] for symmetry in symmetries]
        images = np.array([target.id(image) for target, image in zip(targets, values, strict=True)])
        hashes = np.array([c.random[i] for c, i in zip(targets, images.tolist(), strict=True)], np.uint64)
        for target, image in zip(targets, images.tolist(), strict=True):
            if target.used[image] != column.used[number]:
                raise ValueError(f"a symmetry changes the labels of {value!r}")
        if self.after is None:
            self._room(column.position, len(column))
            self._set(column.position, number, images, hashes)
            self._distinguish(value, values)
            return
        points = dict.fromkeys((t.position, i) for t, i in zip(targets, images.tolist(), strict=True))
        for position in dict.fromkeys(position for position, _ in points):
            self._room(position, len(self.columns[position]))
        for h, (target, image) in enumerate(zip(targets, images.tolist(), strict=True)):
            if not self.known[target.position][image]:
                self._set(target.position, image, images[self.after[:, h]], hashes[self.after[:, h]])

    def _set(self, position: int, number: int, images: Array, hashes: Array) -> None:
        self.images[position][number] = images
        self.hashes[position][number] = hashes
        self.keys[position][number] = hashes >> np.uint64(64 - LOW_BITS)
        if position in self.first:
            self.keys[position][number] += hashes & HIGH
        self.known[position][number] = True

    def _distinguish(self, value: Value, renamed: list[Value]) -> None:
        """Find out which symmetry is one after another, once there are values that tell all of them apart.

        Raises ValueError when one after another is none: the symmetries are no group.
        """
        symmetries = self.machine.symmetries
        kinds = [(*kind, image) for kind, image in zip(self.kinds, renamed, strict=True)]
        if len(set(kinds)) == len(set(self.kinds)):
            return
        self.kinds, self.examples = kinds, [*self.examples, value]
        if len(set(kinds)) < self.order:
            return
        numbers = {kind: number for number, kind in enumerate(kinds)}
        self.after = np.empty((self.order, self.order), np.int64)
        for h, first in enumerate(symmetries):
            once = [first.rename(example) for example in self.examples]
            for g, second in enumerate(symmetries):
                columns = tuple(second.columns[position] for position in first.columns)
                kind = (columns, *(second.rename(image) for image in once))
                if kind not in numbers:
                    raise ValueError("the symmetries are no group: one after another is none of them")
                self.after[g, h] = numbers[kind]


def read_together(machine: Machine) -> frozenset[int]:
    """Return the components that no symmetry moves, and of those that are moved among each other the ones of
    which most actions read several."""
    moved = [
        frozenset(s.columns[position] for s in machine.symmetries)
        for position in range(len(machine.components))
    ]
    reads = [{machine.position[name] for name in action.reads} for action in machine.actions]
    together = [sum(len(some & kin) > 1 for some in reads) for kin in moved]
    most = max(together)
    return frozenset(
        position
        for position, kin in enumerate(moved)
        if len(kin) == 1 or together[position] == most or not most
    )
