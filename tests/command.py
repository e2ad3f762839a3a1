"""The command, run in this process or in one of its own, for tests."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple


class Ran(NamedTuple):
    """What a command did."""

    code: int
    out: str
    err: str


Rebalance = Callable[..., Ran]


def command(*argv: object) -> list[str]:
    """The command as a process."""
    return [sys.executable, "-m", "rebalance_verifier.cli.start", *map(str, argv)]


def process(
    *argv: object, cwd: Path | None = None, encoding: str = "utf-8", **variables: str
) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **variables}
    return subprocess.run(
        command(*argv), cwd=cwd, env=environment, capture_output=True, encoding=encoding, timeout=120
    )
