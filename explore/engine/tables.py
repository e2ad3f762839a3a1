"""Columns of small numbers for values, and answers remembered by small numbers.

``Column`` numbers the values of one component. ``Lookup`` remembers an answer for
each tuple of such numbers, for whole arrays at a time; what it has not met it asks for once. Both are
exact: no answer depends on a hash alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Sized
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from rebalance_verifier.base.interning import Numbered
from rebalance_verifier.model.machine import Labels, Value

Array = NDArray[Any]

EMPTY = -1
KEY_BITS = 62
DENSE_BITS = 16
GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def splitmix64(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Well-mixed 64-bit numbers, one for each given number (the generator of Steele, Lea and Flood)."""
    z = (numbers + np.uint64(1)) * GOLDEN
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


class Growing:
    """An array that grows at its end."""

    def __init__(self, dtype: DTypeLike) -> None:
        self.room: Array = np.zeros(64, dtype)
        self.size = 0

    def extend(self, values: Sequence[Any] | Array) -> None:
        """Append ``values``."""
        after = self.size + len(values)
        if after > len(self.room):
            room = np.zeros(max(after, 2 * len(self.room)), self.room.dtype)
            room[: self.size] = self.room[: self.size]
            self.room = room
        self.room[self.size : after] = values
        self.size = after


class Column(Numbered):
    """The values of one component, numbered.

    ``random`` holds a fixed random number for each, for the hash of a state; ``used`` the bit mask of its
    labels. Both arrays are longer than the column, and are replaced when it grows.
    """

    def __init__(self, position: int, labels: Labels | None, values: Iterable[Value] = ()) -> None:
        self.position, self.labels = position, labels
        self.random: NDArray[np.uint64] = np.zeros(0, np.uint64)
        self.used: NDArray[np.uint64] = np.zeros(0, np.uint64)
        self.labelled = False
        self._grow()
        super().__init__(values)

    def add(self, number: int, value: Value) -> None:
        """Note the labels of a new value. Raises ValueError when it has labels of 64 or more."""
        if number == len(self.random):
            self._grow()
        if self.labels is not None and (mask := self.labels.used(value)):
            if mask >> 64:
                raise ValueError(f"a label above 63 in {value!r}")
            self.used[number] = mask
            self.labelled = True

    def _grow(self) -> None:
        size = max(64, 2 * len(self.random))
        start = np.uint64(self.position << 40)
        self.random = splitmix64(start + np.arange(size, dtype=np.uint64))
        used = np.zeros(size, np.uint64)
        used[: len(self.used)] = self.used
        self.used = used


def smallest(size: int) -> type[np.unsignedinteger[Any]]:
    """Return the smallest type that holds 0 to ``size`` - 1."""
    return np.uint8 if size <= 1 << 8 else np.uint16 if size <= 1 << 16 else np.uint32


def narrow(ids: Array) -> Array:
    """Return the same numbers in the smallest type that holds them."""
    return ids.astype(smallest(int(ids.max()) + 1))


class Lookup:
    """An answer (a number from 0) for each tuple of numbers, remembered.

    ``parts`` say how many numbers there are at each place of a tuple. ``ask`` is called with the tuples
    that are new, in an order that follows from the numbers alone, and gives an answer for each; without
    it the answers count up, so that a tuple is given a number of its own.

    A tuple is packed into 62 bits. Few bits: the key is an index into the answers. More: open addressing.
    More than 62: both halves of the tuple are numbered by lookups of their own.
    """

    def __init__(
        self, parts: Sequence[Sized], ask: Callable[[list[list[int]]], Sequence[int]] | None = None
    ) -> None:
        self.ask = ask
        self.size = 0
        self.parts: list[Sized] = list(parts)
        self.halves: tuple[Lookup, Lookup] | None = None
        self.middle = 0
        self.bits: list[int] = []
        self.dense = True
        self.keys: NDArray[np.int64] = np.zeros(0, np.int64)
        self.answers: NDArray[np.int32] = np.zeros(0, np.int32)
        self._resize(np.zeros((len(parts), 0), np.int64), np.zeros(0, np.int32))

    def __len__(self) -> int:
        return self.size

    def find(self, ids: Sequence[Array]) -> NDArray[np.int32]:
        """Return the answers for as many tuples as each array of ``ids`` is long (one array for each
        part)."""
        whole = ids
        if self.halves is not None:
            ids = self._by_halves(ids)
        if any(len(part) > 1 << bits for part, bits in zip(self.parts, self.bits, strict=True)):
            self._widen()
            return self.find(whole)
        keys = self._pack(ids)
        answers = self.answers[keys] if self.dense else self._probe(keys)
        missing = np.flatnonzero(answers < 0)
        if missing.size:
            answers[missing] = self._learn(keys[missing], [part[missing] for part in whole])
        return answers

    def _by_halves(self, ids: Sequence[Array]) -> list[Array]:
        assert self.halves is not None
        left, right = self.halves
        return [left.find(ids[: self.middle]), right.find(ids[self.middle :])]

    def _pack(self, ids: Sequence[Array]) -> NDArray[np.int64]:
        keys = ids[0].astype(np.int64)
        for part, bits in zip(ids[1:], self.bits[1:], strict=True):
            keys <<= bits
            keys |= part
        return keys

    def _unpack(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        parts = []
        for bits in reversed(self.bits):
            parts.append(keys & ((1 << bits) - 1))
            keys = keys >> bits
        return np.array(parts[::-1])

    def _learn(self, keys: NDArray[np.int64], ids: list[Array]) -> NDArray[np.int32]:
        """Ask for the answers that are missing. ``keys`` may repeat."""
        order = np.argsort(keys, kind="stable")
        in_order = keys[order]
        new = np.ones(len(keys), np.bool_)
        np.not_equal(in_order[1:], in_order[:-1], out=new[1:])
        unique, example = in_order[new], order[new]
        if self.ask is None:
            answers = np.arange(self.size, self.size + len(unique), dtype=np.int32)
        else:
            tuples = np.array([part[example] for part in ids], np.int64).T.tolist()
            answers = np.array(self.ask(tuples), np.int32)
        self._insert(unique, answers)
        result = np.empty(len(keys), np.int32)
        result[order] = answers[np.cumsum(new) - 1]
        return result

    def _insert(self, keys: NDArray[np.int64], answers: NDArray[np.int32]) -> None:
        """Store answers for ``keys`` that differ from each other and from all that are stored."""
        self.size += len(keys)
        if self.dense:
            self.answers[keys] = answers
            return
        if 2 * self.size > len(self.keys):
            stored = np.flatnonzero(self.keys != EMPTY)
            keys = np.concatenate((self.keys[stored], keys))
            answers = np.concatenate((self.answers[stored], answers))
            self._room()
        slots, mask = self._slots(keys), len(self.keys) - 1
        while keys.size:
            free = self.keys[slots] == EMPTY
            self.keys[slots[free]] = keys[free]
            mine = self.keys[slots] == keys
            self.answers[slots[mine]] = answers[mine]
            rest = ~mine
            keys, answers, slots = keys[rest], answers[rest], (slots[rest] + 1) & mask

    def _slots(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        shift = np.uint64(65 - len(self.keys).bit_length())
        slots = (keys.view(np.uint64) * GOLDEN) >> shift
        return slots.view(np.int64)

    def _probe(self, keys: NDArray[np.int64]) -> NDArray[np.int32]:
        slots = self._slots(keys)
        answers = self.answers[slots]
        stored = self.keys[slots]
        wrong = np.flatnonzero(stored != keys)
        mask = len(self.keys) - 1
        while wrong.size:
            wrong = wrong[stored[wrong] != EMPTY]
            slots[wrong] = (slots[wrong] + 1) & mask
            there = slots[wrong]
            answers[wrong] = self.answers[there]
            stored[wrong] = self.keys[there]
            wrong = wrong[stored[wrong] != keys[wrong]]
        return answers

    def _widen(self) -> None:
        """Give the parts more bits; split the tuple when they are too many."""
        stored = np.flatnonzero(self.answers >= 0) if self.dense else np.flatnonzero(self.keys != EMPTY)
        keys = stored.astype(np.int64) if self.dense else self.keys[stored]
        self._resize(self._unpack(keys), self.answers[stored])

    def _resize(self, ids: NDArray[np.int64], answers: NDArray[np.int32]) -> None:
        bits = [len(part).bit_length() + 1 for part in self.parts]
        if sum(bits) > KEY_BITS:
            # Two numbers of 31 bits always fit, so a lookup by halves never comes here again.
            self.middle = len(self.parts) // 2
            self.halves = Lookup(self.parts[: self.middle]), Lookup(self.parts[self.middle :])
            ids = np.array(self._by_halves(list(ids)), np.int64)
            self.parts = list(self.halves)
            bits = [len(part).bit_length() + 1 for part in self.parts]
        self.bits = bits
        self.dense = sum(bits) <= DENSE_BITS
        self.size = 0
        if self.dense:
            self.answers = np.full(1 << sum(bits), EMPTY, np.int32)
        else:
            self.keys = np.zeros(len(answers), np.int64)
            self.size = len(answers)
            self._room()
            self.size = 0
        self._insert(self._pack(list(ids)), answers)

    def _room(self) -> None:
        """Empty slots, at least twice as many as there are keys."""
        slots = max(64, 1 << (2 * self.size).bit_length())
        self.keys = np.full(slots, EMPTY, np.int64)
        self.answers = np.full(slots, EMPTY, np.int32)
