"""Whether processes are there, for tests of what is left behind by whom."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterable
from pathlib import Path

LINUX = sys.platform == "linux"
"""Where processes can be told from their remains."""


def alive(pid: int) -> bool:
    """Whether it runs; one that has ended and that nobody has waited for does not."""
    try:
        if not LINUX:
            os.kill(pid, 0)
            return True
        state = _state(pid)
    except OSError:
        return False
    return state not in ("Z", "X")


def waits(pid: int) -> bool:
    """Whether it sleeps until something comes. Linux only."""
    return _state(pid) == "S"


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def left(pids: Iterable[int], seconds: float = 60.0) -> list[int]:
    """Those that run after so many seconds, which killed ones may take on a busy machine.

    Polled, since they are not our children. An empty list comes at once.
    """
    deadline = time.monotonic() + seconds
    several = [pid for pid in pids if alive(pid)]
    while several and time.monotonic() < deadline:
        time.sleep(0.02)
        several = [pid for pid in several if alive(pid)]
    return several


def worked(pid: int, seconds: float) -> None:
    """Return when its children have used so many seconds of a processor, or it if it has none, or has ended.

    On a busy machine too, where a parent that only waits for its children takes long to use a second.
    """
    if not LINUX:
        time.sleep(seconds)
        return
    while alive(pid):
        used = _used()
        own = used.pop(pid, (0, 0.0))[1]
        children = [spent for parent, spent in used.values() if parent == pid]
        if (sum(children) if children else own) >= seconds:
            return
        time.sleep(0.02)


def _used() -> dict[int, tuple[int, float]]:
    """Of each process its parent and the seconds of a processor that it has used."""
    used = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has just ended
            fields = stat.read_text().rpartition(")")[2].split()
            ticks = int(fields[11]) + int(fields[12])
            used[int(stat.parent.name)] = (int(fields[1]), ticks / os.sysconf("SC_CLK_TCK"))
    return used
