"""The hashes of the states that were found."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]

RECENT_BITS = 18
RECENT = np.uint64((1 << RECENT_BITS) - 1)
FREE = np.uint64(0)


class Visited:
    """A set of 64-bit hashes other than 0, by open addressing, at most half full.

    Compared with sorted runs, which take half the memory, it answers five to ten times as fast.
    """

    def __init__(self) -> None:
        self.size = 0
        self.room: Hashes = np.zeros(1 << 10, np.uint64)
        # At first every place holds a hash that belongs elsewhere.
        self.recent: Hashes = ~np.arange(1 << RECENT_BITS, dtype=np.uint64)

    def __len__(self) -> int:
        return self.size

    def add(self, hashes: Hashes) -> None:
        """Add different hashes that are not in the set."""
        self.size += len(hashes)
        if 2 * self.size > len(self.room):
            old = self.room[self.room != FREE]
            self.room = np.zeros(1 << (2 * self.size).bit_length(), np.uint64)
            self._put(old)
        self._put(hashes)

    def contains(self, hashes: Hashes) -> NDArray[np.bool_]:
        """Return which of these hashes are in the set."""
        slots, mask = self._slots(hashes), len(self.room) - 1
        stored = self.room[slots]
        hit: NDArray[np.bool_] = stored == hashes
        rest = np.flatnonzero(~hit & (stored != FREE))
        while rest.size:
            slots[rest] = there = (slots[rest] + 1) & mask
            stored = self.room[there]
            same = stored == hashes[rest]
            hit[rest[same]] = True
            rest = rest[~same & (stored != FREE)]
        return hit

    def remember(self, hashes: Hashes) -> None:
        """Let ``not_recent`` know hashes whose states need not be looked at again."""
        self.recent[hashes & RECENT] = hashes

    def not_recent(self, hashes: Hashes) -> NDArray[np.bool_]:
        """Return false for many of those that were remembered, true for all others."""
        fresh: NDArray[np.bool_] = self.recent[hashes & RECENT] != hashes
        return fresh

    def _put(self, hashes: Hashes) -> None:
        slots, mask = self._slots(hashes), len(self.room) - 1
        while hashes.size:
            free = self.room[slots] == FREE
            self.room[slots[free]] = hashes[free]
            rest = self.room[slots] != hashes
            hashes, slots = hashes[rest], (slots[rest] + 1) & mask

    def _slots(self, hashes: Hashes) -> NDArray[np.int64]:
        # The low bits: under symmetry a hash is the least of many, so its high bits are mostly 0.
        return (hashes & np.uint64(len(self.room) - 1)).view(np.int64)


class Index:
    """A number for each of some 64-bit hashes, in sorted runs."""

    def __init__(self) -> None:
        self.runs: list[tuple[Hashes, NDArray[np.int64]]] = []

    def add(self, hashes: Hashes, numbers: NDArray[np.int64]) -> None:
        """Add hashes that are not there yet, in any order, with their numbers."""
        if not hashes.size:
            return
        order = np.argsort(hashes)
        self.runs.append((hashes[order], numbers[order]))
        while len(self.runs) > 1 and len(self.runs[-2][0]) < 2 * len(self.runs[-1][0]):
            both = np.concatenate((self.runs[-2][0], self.runs[-1][0]))
            numbers = np.concatenate((self.runs[-2][1], self.runs[-1][1]))
            order = np.argsort(both, kind="stable")
            self.runs[-2:] = [(both[order], numbers[order])]

    def find(self, hashes: Hashes) -> NDArray[np.int64]:
        """Return the numbers of these sorted hashes, -1 for those that are not there."""
        result = np.full(len(hashes), -1)
        for run, numbers in self.runs:
            at = np.searchsorted(run, hashes)
            at[at == len(run)] = 0
            hit = run[at] == hashes
            result[hit] = numbers[at[hit]]
        return result


def firsts(hashes: Hashes) -> tuple[Hashes, NDArray[np.int64]]:
    """Return the different hashes, sorted, and the first place of each."""
    unique, at, _, _ = _groups(hashes)
    return unique, at


def grouped(hashes: Hashes) -> tuple[Hashes, NDArray[np.int64], NDArray[np.int64]]:
    """``firsts``, and for each hash which of the different ones it is."""
    unique, at, order, new = _groups(hashes)
    which = np.empty(len(hashes), np.int64)
    which[order] = np.cumsum(new) - 1
    return unique, at, which


def _groups(
    hashes: Hashes,
) -> tuple[Hashes, NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    order = np.argsort(hashes)
    in_order = hashes[order]
    new = np.ones(len(hashes), np.bool_)
    np.not_equal(in_order[1:], in_order[:-1], out=new[1:])
    starts = np.flatnonzero(new)
    # The sort need not be stable, so the first of the equal ones is looked for.
    at = np.minimum.reduceat(order, starts) if len(hashes) else order
    return in_order[starts], at, order, new
