"""Tools of the user's machine - Maven, javac, pip - run to their end, and the cache of what they made."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from rebalance.gate.targets import TargetError


def run(words: Sequence[str], seconds: float, what: str) -> subprocess.CompletedProcess[str]:
    """What a program says and how it ends; ``what`` is what it is doing, for messages.

    Raises TargetError where it does not start, or does not end within ``seconds``.
    """
    try:
        return subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise TargetError(f"{what} did not end within {seconds:g} s") from None
    except OSError as error:
        raise TargetError(f"{what}: cannot run {words[0]}: {error.strerror}") from error


def cache() -> Path:
    """The directory of what was downloaded and compiled, which may be deleted at any time."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base, "rebalance-verifier")


def key(*parts: str) -> str:
    """A file name that stands for ``parts``."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
