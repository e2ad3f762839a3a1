"""How much memory this process takes."""

from __future__ import annotations

import sys
from pathlib import Path

STATM = Path("/proc/self/statm")


def resident() -> int:
    """Return bytes of memory that the process holds now; where the system does not say, the most it ever
    held.

    0 on a system that says neither.
    """
    if STATM.exists():
        import resource

        return int(STATM.read_text().split()[1]) * resource.getpagesize()
    if sys.platform == "win32":
        return 0
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024
