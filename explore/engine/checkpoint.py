"""A search at a level boundary, on disk, to be gone on with.

It may have come with somebody's directory, so it is data: lines of JSON, and arrays of numbers as they lie in
memory. Each part says how many bytes it has, and together they are all of the file, before any is read. It is
signed with the key of this user, since what it says was searched is believed::

    {"version": 5, "fingerprint": "1f0c..."}
    {"values": 812, "tally": {...}, "cpu": 1.5, "levels": [[["u1", "u2"], 1], [["u1", "u2"], 6]]}
    the values of each component (``model.portable``), then the columns of each level, then the signature
"""

from __future__ import annotations

import hmac
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from rebalance_verifier.base.files import whole
from rebalance_verifier.base.processes.signing import SEAL_BYTES, seal
from rebalance_verifier.base.reading import Unreadable, fields, listed, parsed_json, regular, word
from rebalance_verifier.base.reading import whole as integer
from rebalance_verifier.explore.engine.memo import Columns
from rebalance_verifier.explore.engine.search import ExplorationBreach, Witness
from rebalance_verifier.explore.engine.space import Space
from rebalance_verifier.explore.engine.tally import Tally
from rebalance_verifier.model import portable
from rebalance_verifier.model.machine import Value

VERSION = 5
"""Raised when older readers would misread the file, or values be of classes by other names."""

LONGEST_HEAD, LONGEST_BODY = 4096, 64 * 2**20
"""Bytes of the lines."""


class CheckpointError(ValueError):
    """File that is no checkpoint, or that of another search; the text names the file."""


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """State that a search needs to go on: of each component the first ``sizes`` of ``values``, which may have
    grown since; the levels; the counts; the processor time so far."""

    values: Sequence[list[Value]]
    sizes: tuple[int, ...]
    levels: list[Columns]
    tally: Tally
    cpu: float

    @classmethod
    def of(cls, space: Space, levels: Sequence[Columns], tally: Tally, cpu: float) -> Snapshot:
        """Return the search as it stands; later steps of it do not show."""
        values = [column.values for column in space.columns]
        return cls(
            values=values,
            sizes=tuple(len(known) for known in values),
            levels=list(levels),
            tally=tally.copy(),
            cpu=cpu,
        )

    def known(self) -> list[list[Value]]:
        """Return the values of each component, in order of their numbers."""
        return [known[:size] for known, size in zip(self.values, self.sizes, strict=True)]


@dataclass(frozen=True)
class Checkpoint:
    """Where a search is saved. ``fingerprint`` names the machine and the rules: a search of another is not
    gone on with. ``every``: seconds after which a running search is saved at the end of a level. ``keep``: a
    complete search is saved too, and is complete at once when it is gone on with."""

    path: Path
    fingerprint: str
    every: float | None = None
    keep: bool = False

    def due(self, seconds: float) -> bool:
        """Check whether so many seconds after the last time it is time to save."""
        return self.every is not None and seconds >= self.every

    def save(self, snapshot: Snapshot, fingerprint: str) -> None:
        """Write ``snapshot``; a file that is there is replaced when the new one is whole."""
        values = portable.dumps([tuple(known) for known in snapshot.known()])
        body = {
            "values": len(values),
            "tally": _tally_out(snapshot.tally),
            "cpu": snapshot.cpu,
            "levels": [[[ids.dtype.str[1:] for ids in level], len(level[0])] for level in snapshot.levels],
        }
        lines = ({"version": VERSION, "fingerprint": fingerprint}, body)
        columns = (ids for level in snapshot.levels for ids in level)
        parts: Iterator[Any] = chain(  # bytes, and memory of arrays
            (json.dumps(line).encode() + b"\n" for line in lines),
            (values,),
            (np.ascontiguousarray(ids, ids.dtype.newbyteorder("<")).data for ids in columns),
        )
        signature = seal(self.path.name)
        with whole(self.path) as file:
            for part in parts:
                file.write(part)
                signature.update(part)
            file.write(signature.digest())

    def load(self, fingerprint: str, nothing: Tally, components: int) -> Snapshot | None:
        """Return what was saved; None when there is nothing. ``nothing``: what the search has counted before
        it begins. Raises CheckpointError when it is of another search, or not whole."""
        try:
            with regular(self.path) as file:
                try:
                    self._check_head(file, fingerprint)
                    found = _snapshot(file, nothing, components)
                    self._check_seal(file)
                    return found
                except (ValueError, LookupError, TypeError) as error:
                    if isinstance(error, CheckpointError):
                        raise
                    raise CheckpointError(f"{self.path} is no checkpoint: begin anew ({error})") from error
        except (FileNotFoundError, NotADirectoryError):
            return None
        except Unreadable as error:
            raise CheckpointError(f"{error}: begin anew") from error

    def _check_head(self, file: BinaryIO, fingerprint: str) -> None:
        """Nothing else is read of a file that another version or another search has saved."""
        line = file.readline(LONGEST_HEAD)
        if line.startswith(b"\x80"):  # a pickle, as it was up to version 3
            raise CheckpointError(
                f"{self.path} was saved by another version of rebalance: begin anew, without --resume"
            )
        head = fields(_json(line))
        if integer(head["version"]) != VERSION:
            raise CheckpointError(
                f"{self.path} was saved by another version of rebalance: begin anew, without --resume"
            )
        if (of := word(head["fingerprint"])) != fingerprint:
            raise CheckpointError(f"{self.path} is a checkpoint of {of}, not of {fingerprint}")

    def _check_seal(self, file: BinaryIO) -> None:
        """Check the seal, since a file that reads well may still lie."""
        signature, left = seal(self.path.name), os.fstat(file.fileno()).st_size - SEAL_BYTES
        file.seek(0)
        while left and (part := file.read(min(left, 2**20))):
            signature.update(part)
            left -= len(part)
        if not hmac.compare_digest(signature.digest(), file.read()):
            raise CheckpointError(
                f"{self.path} was not saved by a search of yours: begin anew, without --resume"
            )

    def remove(self) -> None:
        """Forget what was saved."""
        self.path.unlink(missing_ok=True)


def _json(line: bytes) -> Any:
    if not line.endswith(b"\n"):
        raise ValueError("a line has no end")
    return parsed_json(line.decode(), "it")


def _snapshot(file: BinaryIO, nothing: Tally, components: int) -> Snapshot:
    """Return what stands behind the head. Raises ValueError, LookupError and TypeError."""
    body = fields(_json(file.readline(LONGEST_BODY)))
    size = integer(body["values"], 0)
    shapes = [_shape(level, components) for level in listed(body["levels"])]
    in_all = size + sum(rows * kind.itemsize for kinds, rows in shapes for kind in kinds)
    if not shapes or in_all != os.fstat(file.fileno()).st_size - file.tell() - SEAL_BYTES:
        raise ValueError("it is not whole")
    values = [list(known) for known in portable.loads(file.read(size)) if isinstance(known, tuple)]
    if len(values) != components:
        raise ValueError("it has values of other components")
    levels = []
    for kinds, rows in shapes:
        levels.append([np.frombuffer(file.read(rows * kind.itemsize), kind) for kind in kinds])
        for ids, known in zip(levels[-1], values, strict=True):
            if int(ids.max()) >= len(known):
                raise ValueError("a state has a value that is not there")
    tally = _tally_in(fields(body["tally"]), nothing)
    if tally.levels != [rows for _, rows in shapes]:
        raise ValueError("its levels are not those that were counted")
    cpu = body["cpu"]
    if not isinstance(cpu, int | float) or not 0 <= cpu < 1e12:
        raise ValueError("cpu: expected seconds")
    return Snapshot(values=values, sizes=tuple(map(len, values)), levels=levels, tally=tally, cpu=float(cpu))


def _shape(level: Any, components: int) -> tuple[list[np.dtype[Any]], int]:
    """Return the types of the columns of a level, and how many states it has."""
    kinds, rows = listed(level, 2)
    types = [np.dtype(f"<{kind}") for kind in map(word, listed(kinds)) if kind in ("u1", "u2", "u4")]
    if len(types) != components or len(types) != len(kinds):
        raise ValueError("a level has columns of other components")
    return types, integer(rows, 1)


_NUMBERS = (
    *("generated", "expanded", "least", "most", "deadlocks", "deadlock_depth", "unreduced", "relabelled"),
    "memory",
)
"""The counts of a tally that are one number each."""


def _tally_out(tally: Tally) -> dict[str, Any]:
    return {
        **{name: getattr(tally, name) for name in _NUMBERS},
        "levels": tally.levels,
        "taken": tally.taken,
        "witnesses": [[one.clause, one.depth, one.count] for one in tally.witnesses.values()],
        "breaches": [[one.clause, one.sentence, one.depth, one.count] for one in tally.breaches.values()],
    }


def _tally_in(data: dict[str, Any], nothing: Tally) -> Tally:
    """Return the counts, of the actions and the witnesses that ``nothing`` has. Raises ValueError,
    LookupError and TypeError."""
    tally = nothing.copy()
    for name in _NUMBERS:
        setattr(tally, name, integer(data[name], -1))
    tally.levels = [integer(size, 1) for size in listed(data["levels"])]
    tally.taken = [(integer(states, 0), integer(steps, 0)) for states, steps in listed(data["taken"])]
    for clause, depth, count in listed(data["witnesses"]):
        tally.witnesses[clause] = Witness(word(clause), integer(depth, -1), integer(count, 0))
    for clause, sentence, depth, count in listed(data["breaches"]):
        breach = ExplorationBreach(word(clause), word(sentence), integer(depth, 0), integer(count, 1))
        tally.breaches[clause] = breach
    if len(tally.taken) != len(nothing.taken) or tally.witnesses.keys() != nothing.witnesses.keys():
        raise ValueError("it counts other actions")
    return tally
