"""A value that several processes want: the first makes it, the others wait for it and read it."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from rebalance_verifier.base.files import whole

_T = TypeVar("_T")


def once(path: Path, make: Callable[[], _T]) -> tuple[_T, bool]:
    """Return what the first caller made, and whether that is this one; ``path`` keeps it, pickled.

    The directory of ``path`` must be one that nobody else writes to. A process that ends before it has
    made anything leaves that to the next, and so does one whose ``make`` raises. Where files cannot be
    locked (Windows), every process makes its own.
    """
    try:
        import fcntl
    except ImportError:
        return make(), True
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # until the file is closed, by whatever end of the process
        if path.exists():
            kept: _T = pickle.loads(path.read_bytes())
            return kept, False
        made = make()
        with whole(path) as file:
            pickle.dump(made, file)
        return made, True
