"""Every example in a docstring runs.

Not pytest's ``--doctest-modules``: it would import ``model/values.py`` a second time, as
``model.values``, and so compare classes that are not the same.
"""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

import pytest

from tests.test_layers import FLOORS, TOP

ROOT = Path(__file__).parents[1]


def modules() -> list[str]:
    """Import names of all modules, from the files: an editable package cannot be walked."""
    found = []
    for folder in FLOORS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            if parts[-1] != "__main__":
                found.append(".".join([TOP, *parts]).removesuffix(".__init__"))
    return found


@pytest.mark.parametrize("name", modules())
def test_examples_in(name: str) -> None:
    result = doctest.testmod(import_module(name))
    assert result.failed == 0, "the failing examples are in the captured output"
