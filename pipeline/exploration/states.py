"""How states travel: as ids of their values that mean the same in every process.

The numbers of ``explore.engine.tables`` follow the order in which one process met the values. Here a value
has an id, 64 bits of a digest of what it is equal to, and a state is a row of ids (``schema``). The sum of
the ids is the state's key: that is its hash in ``explore.engine.space``, with the ids as random numbers. So
whoever makes a state, and whichever of its orbit stands for it under symmetry, the row is the same.

The values behind the ids are few (17,576 for 587,526 states of the 3 x 3 group). They are handed to every
worker with the job, as JSON (``model.portable``).
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from hashlib import blake2b

import numpy as np
import pyarrow as pa
from pyspark.sql.types import LongType, StructField, StructType
from rebalance_verifier.explore.engine.memo import Columns
from rebalance_verifier.explore.engine.space import Candidates, Space
from rebalance_verifier.explore.engine.tables import Array, Column
from rebalance_verifier.explore.engine.visited import Hashes, Visited, firsts
from rebalance_verifier.model import portable
from rebalance_verifier.model.machine import Machine, Value
from rebalance_verifier.properties.group.rules import Rules

KEY = "key"


def canonical(value: Value) -> bytes:
    """Return bytes that are equal exactly when the values are.

    Raises TypeError for a value that holds anything but None, numbers, text, bytes, tuples, frozensets.

    >>> canonical((1, "a", None)) == canonical((True, "a", None)), canonical("1") == canonical(1)
    (True, False)
    """
    match value:
        case None:
            return b"n"
        case int():
            return b"i%d;" % value
        case float():
            return b"i%d;" % value if value.is_integer() else b"f%s;" % float.hex(value).encode()
        case str():
            text = value.encode()
            return b"s%d:%s" % (len(text), text)
        case bytes():
            return b"b%d:%s" % (len(value), value)
        case tuple():
            return b"(%s)" % b"".join(map(canonical, value))
        case frozenset():
            return b"{%s}" % b"".join(sorted(map(canonical, value)))
        case Enum():
            return b"e" + canonical((type(value).__qualname__, value.name))
    raise TypeError(f"{type(value).__name__} in a state: it cannot be told apart in another process")


def value_id(component: int, value: Value) -> int:
    """Return the id of a value of the numbered ``component``: -2^63 to 2^63 - 1."""
    digest = blake2b(canonical(value), digest_size=8, person=component.to_bytes(4, "big")).digest()
    return int.from_bytes(digest, "big", signed=True)


class Shared(Column):
    """A column whose random numbers are the ids of its values; ``numbers`` leads back from an id."""

    numbers: dict[int, int]

    def add(self, number: int, value: Value) -> None:
        """Note the id of a new value. Raises RuntimeError when another has the same."""
        super().add(number, value)
        name = value_id(self.position, value)
        if self.numbers.setdefault(name, number) != number:
            other = self.values[self.numbers[name]]
            raise RuntimeError(f"two values have the same 64 bits: {value!r} and {other!r}")
        self.random.view(np.int64)[number] = name

    def _grow(self) -> None:
        known = self.random
        super()._grow()
        self.random[: len(known)] = known
        if not len(known):
            self.numbers = {}


class WorkerSpace:
    """A worker's space of one search. It is kept from task to task, since its tables are dear to fill."""

    def __init__(self, spec: SearchSpec) -> None:
        self.space = Space(*spec.build(), symmetry=spec.symmetry, column=Shared)
        self.read = 0
        # Of each component the numbers of the values that the driver has.
        self.shared: list[set[int]] = [set() for _ in self.space.columns]

    def learn(self, values: tuple[bytes, ...]) -> None:
        """Read what of ``SearchSpec.values`` is new."""
        for chunk in values[self.read :]:
            for line in zlib.decompress(chunk).splitlines():
                component, value = portable.loads(line)
                self.shared[component].add(self.space.columns[component].id(value))
        self.read = max(self.read, len(values))

    def fresh(self) -> Iterator[tuple[str, bytes]]:
        """Yield the values that the driver has not got: a name of each, and what ``learn`` reads."""
        for column, shared in zip(self.space.columns, self.shared, strict=True):
            for number in range(len(column)):
                if number not in shared:
                    value = column.values[number]
                    name = f"{column.position} {value_id(column.position, value)}"
                    yield name, portable.dumps([column.position, value])

    def states(self, rows: pa.RecordBatch | pa.Table) -> Columns:
        """Return rows as columns of this space."""
        return [
            self._column(component, rows.column(component + 1))
            for component in range(len(self.space.columns))
        ]

    def _column(self, component: int, ids: pa.Array | pa.ChunkedArray) -> Array:
        if isinstance(ids, pa.ChunkedArray):
            ids = ids.combine_chunks()
        encoded = ids.dictionary_encode()
        known = self.space.columns[component]
        assert isinstance(known, Shared)
        numbers = np.array([known.numbers[name] for name in encoded.dictionary.to_pylist()], np.uint32)
        column: Array = numbers[encoded.indices.to_numpy()]
        return column

    def rows(self, states: Columns, keys: Hashes) -> pa.RecordBatch:
        """Return the opposite of ``states``, with the keys."""
        ids = [column.random[numbers] for column, numbers in zip(self.space.columns, states, strict=True)]
        arrays = [pa.array(one.view(np.int64)) for one in (keys, *ids)]
        return pa.RecordBatch.from_arrays(arrays, names=_names(len(ids)))

    def after(self, states: Columns, candidates: Candidates, handled: Visited) -> tuple[Columns, Hashes]:
        """Return the different states after ``states`` but for those ``handled``, which they are added to."""
        raw, at = firsts(candidates.hashes)
        at = np.sort(at[~handled.contains(raw)])
        raw = candidates.hashes[at]
        after, keys = self.space.build(states, candidates, at), raw.copy()
        settled = self.space.settle(after, keys)
        first = firsts(keys)[1]
        first = np.sort(first[~handled.contains(keys[first])])
        by = settled.by[first] if self.space.orbits is not None else first
        handled.add(keys[first])
        handled.add(raw[~handled.contains(raw)])
        return self.space.represent([ids[first] for ids in after], by), keys[first]


_worker_spaces: dict[str, WorkerSpace] = {}
"""The space of this process; Spark uses a worker for many tasks."""


@dataclass(frozen=True)
class SearchSpec:
    """Settings that every worker has to know: sent with each job, so it is data and can be pickled.

    ``build`` makes the machine and its rules; ``search`` is unique to one run of one search. ``values``
    are those that may occur in a row, in the order in which they came up.
    """

    build: Callable[[], tuple[Machine, Rules]]
    search: str
    symmetry: bool = False
    values: tuple[bytes, ...] = ()

    def knowing(self, values: Iterable[bytes]) -> SearchSpec:
        """With more values, as ``WorkerSpace.fresh`` gives them."""
        more = b"\n".join(values)
        return replace(self, values=(*self.values, zlib.compress(more))) if more else self

    def worker_space(self) -> WorkerSpace:
        """Return the space of this process, which knows all ``values``."""
        if self.search not in _worker_spaces:
            _worker_spaces.clear()
            _worker_spaces[self.search] = WorkerSpace(self)
        _worker_spaces[self.search].learn(self.values)
        return _worker_spaces[self.search]


def schema(components: int) -> StructType:
    """Return a row: the key, then the id of each component's value."""
    return StructType([StructField(name, LongType(), nullable=False) for name in _names(components)])


def _names(components: int) -> list[str]:
    return [KEY, *(f"c{component}" for component in range(components))]
