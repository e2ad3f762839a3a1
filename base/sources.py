"""Names for what code of a given state came to."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

SUFFIXES = (".py", ".toml", ".json")


def fingerprint(text: str, packages: Sequence[ModuleType]) -> str:
    """Name a result: what it is of, as text, and the code that it is made with, tables included.

    A result of other code is not true.
    """
    digest = hashlib.sha256(text.encode())
    for package in packages:
        for path in sorted(Path(package.__path__[0]).rglob("*")):
            if path.suffix in SUFFIXES:
                digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
