"""States by what is different from a default."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rebalance_verifier.specs.logic.universe import Structure, Universe, Value


def structure(
    universe: Universe, values: Mapping[str, Mapping[Any, Value]], default: Mapping[str, Value] | None = None
) -> Structure:
    """The state with these values by symbol and place, ``{"owned": {(0, 1): True}, "group": {(): 3}}``.

    Elsewhere a symbol has its default, a relation without one is false.
    """
    assert {*values, *(default or {})} <= universe.positions.keys()
    state = []
    for name in universe.positions:
        at = {key if isinstance(key, tuple) else (key,): value for key, value in values.get(name, {}).items()}
        assert at.keys() <= universe.places[name].keys()
        default_value = (default or {}).get(name, False)
        state.append(
            tuple(
                universe.element(name, at.get(arguments, default_value))
                for arguments in universe.places[name]
            )
        )
    return tuple(state)
