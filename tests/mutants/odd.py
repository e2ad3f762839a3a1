"""Mutants of assignors that promise less than others: each keeps less than it promises."""

from __future__ import annotations

from importlib import import_module
from typing import Any

examples: Any = import_module("examples.odd_assignors")


def _changed(kind: Any, **attributes: Any) -> Any:
    assignor = kind()
    for name, value in attributes.items():
        setattr(assignor, name, value)
    return assignor


OneTooMany = _changed(examples.Capacity, most=4)
"""partial/limit/1: it carries four, and says three."""

OneMoreAtOnce = _changed(examples.Gradual, moves=3)
"""gradual/moves/1: three move where it says two."""

LeavesItIdle = _changed(examples.Weighted, share=lambda group, wanted: None)
"""weighted/idle/1: who could have something of a member that has much gets nothing."""
