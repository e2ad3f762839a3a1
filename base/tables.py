"""What a module knows as a table: the TOML file beside it."""

from __future__ import annotations

import tomllib
import zipfile
from pathlib import Path
from typing import Any


def table(module: str, name: str = "") -> dict[str, Any]:
    """Return the TOML file beside a module, by its ``__file__``: of the module's name, or called ``name``.

    Nobody changes what it says, so arrays are tuples.
    """
    path = Path(module).with_name(f"{name}.toml") if name else Path(module).with_suffix(".toml")
    return {key: _fixed(value) for key, value in tomllib.loads(_text(path)).items()}


def _text(path: Path) -> str:
    """Return what a file holds, also one in a zip archive, as which a package is sent to other machines."""
    try:
        return path.read_text("utf-8")
    except NotADirectoryError:
        archive = next(above for above in path.parents if above.is_file())
        return zipfile.Path(archive, path.relative_to(archive).as_posix()).read_text("utf-8")


def _fixed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _fixed(one) for key, one in value.items()}
    return tuple(map(_fixed, value)) if isinstance(value, list) else value
