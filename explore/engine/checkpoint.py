"""A search at a level boundary, on disk, to be gone on with.

A checkpoint holds values of the model as Python pickles them. It may have come with somebody's directory, and
loading a pickle can run any code, so `loaded` knows none but records: what it calls can do nothing but hold
values.
"""

from __future__ import annotations

import hashlib
import pickle
import sys
from collections.abc import Sequence
from dataclasses import dataclass, is_dataclass, replace
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO

from rebalance.explore.engine.drafts import whole
from rebalance.explore.engine.memo import Columns
from rebalance.explore.engine.space import Space
from rebalance.explore.engine.tally import Tally
from rebalance.model.machine import Value

VERSION = 3
"""Raised when values are pickled under other names of modules or classes."""


def fingerprint(searched: str, packages: Sequence[ModuleType]) -> str:
    """Names a search in a checkpoint: what is searched, as text, and the code that it is searched with.

    What a checkpoint of other code says is not true.
    """
    digest = hashlib.sha256(searched.encode())
    for package in packages:
        for path in sorted(Path(package.__path__[0]).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


OWN = tuple(f"rebalance.{name}." for name in ("model", "properties", "explore"))
"""Where dataclasses may be from."""

ARRAYS = frozenset({"dtype", "ndarray", "_frombuffer", "_reconstruct"})
"""What NumPy makes an array of."""


class CheckpointError(ValueError):
    """What is no checkpoint, or that of another search; the text names the file."""


class NotRecords(ValueError):
    """What was pickled holds something else than records, or nothing that can be read."""


class _Records(pickle.Unpickler):
    """Finds classes of loaded modules that are nothing but records, and what arrays are made of."""

    def find_class(self, module: str, name: str) -> Any:
        found = vars(sys.modules.get(module, object)).get(name)
        if module.partition(".")[0] == "numpy" and name in ARRAYS:
            return found
        if isinstance(found, type) and found.__module__ == module:
            if issubclass(found, Enum) or (issubclass(found, tuple) and hasattr(found, "_fields")):
                return found
            if is_dataclass(found) and module.startswith(OWN):
                return found
        raise pickle.UnpicklingError(f"{module}.{name} is no record of the model")


def loaded(file: BinaryIO) -> Any:
    """A value that was pickled, if it is made of records, arrays and what is built in. Raises NotRecords."""
    try:
        return _Records(file).load()
    except Exception as error:  # any, of bytes that anybody may have written
        raise NotRecords(str(error)) from error


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """What a search needs to go on: of each component the first ``sizes`` of ``values``, which may have
    grown since; the levels; the counts; the processor time so far."""

    values: Sequence[list[Value]]
    sizes: tuple[int, ...]
    levels: list[Columns]
    tally: Tally
    cpu: float

    @classmethod
    def of(cls, space: Space, levels: Sequence[Columns], tally: Tally, cpu: float) -> Snapshot:
        """The search as it stands; later steps of it do not show."""
        values = [column.values for column in space.columns]
        return cls(
            values=values,
            sizes=tuple(len(known) for known in values),
            levels=list(levels),
            tally=tally.copy(),
            cpu=cpu,
        )

    def known(self) -> list[list[Value]]:
        """The values of each component, in order of their numbers."""
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
        """Whether so many seconds after the last time it is time to save."""
        return self.every is not None and seconds >= self.every

    def save(self, snapshot: Snapshot, fingerprint: str) -> None:
        """Write ``snapshot``; a file that is there is replaced when the new one is whole."""
        with whole(self.path) as file:
            pickle.dump((VERSION, fingerprint), file, protocol=5)
            pickle.dump(replace(snapshot, values=snapshot.known()), file, protocol=5)

    def load(self, fingerprint: str) -> Snapshot | None:
        """What was saved; None when there is nothing. Raises CheckpointError when it is of another search, or
        not whole."""
        if not self.path.exists():
            return None
        with self.path.open("rb") as file:
            try:
                head = loaded(file)
                version, of = head if isinstance(head, tuple) and len(head) == 2 else (0, "")
                if version != VERSION:
                    raise CheckpointError(
                        f"{self.path} was saved by another version of rebalance: begin anew"
                    )
                if of != fingerprint:
                    raise CheckpointError(f"{self.path} is a checkpoint of {of}, not of {fingerprint}")
                snapshot = loaded(file)
            except NotRecords as error:
                raise CheckpointError(f"{self.path} is no checkpoint: begin anew ({error})") from error
        if not isinstance(snapshot, Snapshot):
            raise CheckpointError(f"{self.path} is no checkpoint: begin anew")
        return snapshot

    def remove(self) -> None:
        """Forget what was saved."""
        self.path.unlink(missing_ok=True)
