"""Memory that the solver frees and needs again at once.

Each question has a context of its own, which takes some megabytes and lives for milliseconds. The C library
gives them back to the system every time, and most of what a context costs is to get them again.
"""

from __future__ import annotations

import ctypes
from contextlib import suppress
from functools import cache

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
"""``M_TRIM_THRESHOLD`` and ``M_MMAP_THRESHOLD`` of glibc's ``malloc.h``."""

PLENTY = 1 << 29


@cache
def keep_freed_memory() -> None:
    """Keep freed memory with this process and its children, where the C library can."""
    with suppress(AttributeError, OSError, TypeError):
        libc = ctypes.CDLL(None)
        libc.mallopt(TRIM_THRESHOLD, PLENTY)
        libc.mallopt(MMAP_THRESHOLD, PLENTY)
