"""The class path that ``Bridge.java`` is to judge, and the command that runs it."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Sequence

from rebalance.gate.targets.resolve import TargetError
from rebalance.live.processes import jvm


def command(jars: Sequence[str]) -> tuple[str, ...]:
    """What starts the bridge on these jars; the name of the class and its arguments come behind it.

    Raises ToolError.
    """
    # SIGQUIT writes all stacks there, and not between the replies.
    return jvm.command(__package__, ["Bridge.java"], jars, "-XX:+DisplayVMOutputToStderr")


def checked(paths: Iterable[str]) -> list[str]:
    """``paths`` as a class path, ``DIR/*`` as its jars. Raises TargetError for what is not there."""
    found: list[str] = []
    for path in paths:
        expanded = sorted(glob.glob(f"{glob.escape(path[:-1])}*.jar")) if path.endswith("*") else [path]
        if not expanded or not all(map(os.path.exists, expanded)):
            raise TargetError(f"there is no {path!r}, which should be a part of the class path")
        found += expanded
    return found
