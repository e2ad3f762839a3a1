"""The variables that a program which is not trusted gets to see: what programs need to run, and no more."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

PASSED = frozenset(
    {
        *("PATH", "HOME", "LANG", "LANGUAGE", "TZ", "TERM", "SYSTEMROOT", "XDG_CACHE_HOME"),
        *("PYTHONPATH", "PYTHONHOME", "PYTHONUTF8", "PYTHONPYCACHEPREFIX", "PYTHONDONTWRITEBYTECODE"),
        *("JAVA_HOME", "JDK_JAVA_OPTIONS", "GOROOT", "NODE_PATH", "VIRTUAL_ENV"),
        *("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"),
    }
)
"""What is passed on by its name, besides what begins with ``LC_``: none of them is where secrets are kept.
``TMPDIR`` is of the program's own."""


def minimal(more: Iterable[str] = (), everything: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return those of the variables that are passed on, and ``more`` of these names, as far as they are
    set."""
    wanted = PASSED.union(more)
    return {name: text for name, text in everything.items() if name in wanted or name.startswith("LC_")}
