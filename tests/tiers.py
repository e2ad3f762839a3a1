"""Which cases of a test are for every day, and which for the night: CI has minutes, and repeats cost them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def tiered(cases: Iterable[Any], by_day: Collection[Any]) -> list[Any]:
    """``cases`` as parameters; nightly where ``by_day`` has them neither whole nor by their first value."""
    several = [case if isinstance(case, tuple) else (case,) for case in cases]
    return [
        pytest.param(*case, marks=() if case in by_day or case[0] in by_day else pytest.mark.nightly)
        for case in several
    ]
