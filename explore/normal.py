"""Normal forms of states held as columns of numbers: labels without gaps, and one state of each orbit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from rebalance.explore.memo import Columns
from rebalance.explore.tables import Array, Column
from rebalance.model.machine import Labels, Machine, Value, dense

ONE = np.uint64(1)
ORBIT_ROWS = 2048
"""States whose orbits are hashed at a time, so that the hashes stay in the processor's cache."""


class Relabeller:
    """``Machine.normal`` for columns. New names are remembered for each mask of labels and each value."""

    def __init__(self, labels: Labels, columns: Sequence[Column]) -> None:
        self.labels, self.columns = labels, columns
        self.renamed: dict[tuple[int, int], Array] = {}

    def gaps(self, states: Columns) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
        """The places of the states that are not normal, and the labels that each of them uses."""
        used = np.zeros(len(states[0]), np.uint64)
        for column, ids in zip(self.columns, states, strict=True):
            if column.labelled:
                used |= column.used[ids]
        gaps = np.flatnonzero(used & (used + ONE))
        return gaps, used[gaps]

    def close(self, states: Columns) -> NDArray[np.int64]:
        """Make ``states`` normal, in place. Returns the places of those that were not."""
        gaps, used = self.gaps(states)
        order = np.argsort(used, kind="stable")
        in_order = used[order]
        for mask in np.unique(used).tolist():
            here = gaps[order[slice(*np.searchsorted(in_order, np.array([mask, mask + 1], np.uint64)))]]
            for column, ids in zip(self.columns, states, strict=True):
                if column.labelled:
                    ids[here] = self._rename(mask, column, ids[here])
        return gaps

    def _rename(self, mask: int, column: Column, ids: Array) -> Array:
        known = self.renamed.get((mask, column.place), np.zeros(0, np.int64))
        if len(known) < len(column):
            known = np.concatenate((known, np.full(len(column) - len(known), -1)))
        unknown = np.flatnonzero(known[ids] < 0)
        if unknown.size:
            names = dense(mask)
            for old in np.unique(ids[unknown]).tolist():
                known[old] = column.id(self.labels.relabel(column.values[old], names))
        self.renamed[mask, column.place] = known
        renamed: Array = known[ids]
        return renamed


class Orbits:
    """The states that the symmetries make of a state, and which of them stands for all: the least hash."""

    def __init__(self, machine: Machine, columns: Sequence[Column]) -> None:
        self.machine, self.columns = machine, columns
        self.order = len(machine.symmetries)
        self.sources = np.array([np.argsort(s.columns) for s in machine.symmetries])
        # For each component: what its values become, and what they add to the hash, per symmetry.
        self.images = [np.zeros((0, self.order), np.uint32) for _ in columns]
        self.hashes = [np.zeros((0, self.order), np.uint64) for _ in columns]
        self.known = [np.zeros(0, np.bool_) for _ in columns]
        # Values that tell the symmetries apart, and each symmetry by what it makes of them; then
        # ``after[g, h]``: which symmetry is ``g`` after ``h``.
        self.examples: list[Value] = []
        self.kinds: list[tuple[Value, ...]] = [(s.columns,) for s in machine.symmetries]
        self.after: NDArray[np.int64] | None = None

    def least(self, states: Columns) -> tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.int64]]:
        """For each state the least hash in its orbit, the symmetry that leads there, the orbit's size."""
        for place, ids in enumerate(states):
            self._learn(place, ids)
        rows = len(states[0])
        hashes, by = np.empty(rows, np.uint64), np.empty(rows, np.int64)
        sizes = np.empty(rows, np.int64)
        for start in range(0, rows, ORBIT_ROWS):
            part = slice(start, start + ORBIT_ROWS)
            orbit = np.zeros((len(states[0][part]), self.order), np.uint64)
            for place, ids in enumerate(states):
                orbit += self.hashes[place][ids[part]]
            by[part] = orbit.argmin(axis=1)
            hashes[part] = orbit[np.arange(len(orbit)), by[part]]
            # Symmetries that leave a state as it is are as many for each state of an orbit.
            sizes[part] = self.order // (orbit == orbit[:, :1]).sum(axis=1)
        return hashes, by, sizes

    def apply(self, states: Columns, by: NDArray[np.int64]) -> Columns:
        """Each state under one symmetry."""
        matrix = np.array(states)
        rows = np.arange(len(by))
        after = []
        for place in range(len(states)):
            source = self.sources[by, place]
            ids = matrix[source, rows]
            moved = np.empty(len(by), np.uint32)
            for origin in range(len(states)):
                here = np.flatnonzero(source == origin)
                if here.size:
                    moved[here] = self.images[origin][ids[here], by[here]]
            after.append(moved)
        return after

    def _learn(self, place: int, ids: Array) -> None:
        """Rename the values that are met for the first time."""
        column = self.columns[place]
        self._room(place, len(column))
        new = np.flatnonzero(~self.known[place][ids])
        if not new.size:
            return
        for number in np.unique(ids[new]).tolist():
            if not self.known[place][number]:
                self._orbit(column, number)

    def _room(self, place: int, size: int) -> None:
        more = 2 * size - len(self.known[place])
        if more > size:
            self.known[place] = np.concatenate((self.known[place], np.zeros(more, np.bool_)))
            images = np.zeros((more, self.order), np.uint32)
            self.images[place] = np.concatenate((self.images[place], images))
            hashes = np.zeros((more, self.order), np.uint64)
            self.hashes[place] = np.concatenate((self.hashes[place], hashes))

    def _orbit(self, column: Column, number: int) -> None:
        """Rename one value by every symmetry, and so, as they are a group, each value that comes out."""
        value, symmetries = column.values[number], self.machine.symmetries
        values = [symmetry.rename(value) for symmetry in symmetries]
        targets = [self.columns[symmetry.columns[column.place]] for symmetry in symmetries]
        images = np.array([target.id(image) for target, image in zip(targets, values, strict=True)])
        hashes = np.array([c.random[i] for c, i in zip(targets, images.tolist(), strict=True)], np.uint64)
        for target, image in zip(targets, images.tolist(), strict=True):
            if target.used[image] != column.used[number]:
                raise ValueError(f"a symmetry changes the labels of {value!r}")
        if self.after is None:
            self._room(column.place, len(column))
            self._set(column.place, number, images, hashes)
            self._distinguish(value, values)
            return
        points = dict.fromkeys((t.place, i) for t, i in zip(targets, images.tolist(), strict=True))
        for place in dict.fromkeys(place for place, _ in points):
            self._room(place, len(self.columns[place]))
        for h, (target, image) in enumerate(zip(targets, images.tolist(), strict=True)):
            if not self.known[target.place][image]:
                self._set(target.place, image, images[self.after[:, h]], hashes[self.after[:, h]])

    def _set(self, place: int, number: int, images: Array, hashes: Array) -> None:
        self.images[place][number] = images
        self.hashes[place][number] = hashes
        self.known[place][number] = True

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
                columns = tuple(second.columns[place] for place in first.columns)
                kind = (columns, *(second.rename(image) for image in once))
                if kind not in numbers:
                    raise ValueError("the symmetries are no group: one after another is none of them")
                self.after[g, h] = numbers[kind]
