"""The command, run in this process, for tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Ran(NamedTuple):
    """What a command did."""

    code: int
    out: str
    err: str


Rebalance = Callable[..., Ran]
