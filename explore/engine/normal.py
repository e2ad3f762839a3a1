"""Normal forms of states held as columns of numbers: labels without gaps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from rebalance_verifier.explore.engine.memo import Columns
from rebalance_verifier.explore.engine.tables import Array, Column
from rebalance_verifier.model.machine import Labels, dense

ONE = np.uint64(1)


class Relabeller:
    """``Machine.normal`` for columns. New names are remembered for each mask of labels and each value."""

    def __init__(self, labels: Labels, columns: Sequence[Column]) -> None:
        self.labels, self.columns = labels, columns
        self.renamed: dict[tuple[int, int], Array] = {}

    def gaps(self, states: Columns) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
        """Return the places of the states that are not normal, and the labels that each of them uses."""
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
        known = self.renamed.get((mask, column.position), np.zeros(0, np.int64))
        if len(known) < len(column):
            known = np.concatenate((known, np.full(len(column) - len(known), -1)))
        unknown = np.flatnonzero(known[ids] < 0)
        if unknown.size:
            names = dense(mask)
            for old in np.unique(ids[unknown]).tolist():
                known[old] = column.id(self.labels.relabel(column.values[old], names))
        self.renamed[mask, column.position] = known
        renamed: Array = known[ids]
        return renamed
