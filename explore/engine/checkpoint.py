"""A search at a level boundary, on disk, to be gone on with.

A checkpoint holds values of the model as Python pickles them, and loading a pickle can run any code: load
none but your own.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType

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
        beside = self.path.with_name(self.path.name + ".part")
        with beside.open("wb") as file:
            pickle.dump((VERSION, fingerprint), file, protocol=5)
            pickle.dump(replace(snapshot, values=snapshot.known()), file, protocol=5)
        beside.replace(self.path)

    def load(self, fingerprint: str) -> Snapshot | None:
        """What was saved; None when there is nothing. Raises ValueError when it is of another search."""
        if not self.path.exists():
            return None
        with self.path.open("rb") as file:
            version, of = pickle.load(file)
            if version != VERSION:
                raise ValueError(f"{self.path} was saved by another version of rebalance: begin anew")
            if of != fingerprint:
                raise ValueError(f"{self.path} is a checkpoint of {of}, not of {fingerprint}")
            snapshot: Snapshot = pickle.load(file)
        return snapshot

    def remove(self) -> None:
        """Forget what was saved."""
        self.path.unlink(missing_ok=True)
