"""Hypothesis strategies over the same generator, for tests that people write themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from hypothesis import strategies as st
from rebalance.model.values import RebalanceProtocol
from rebalance.properties.generator import DIMENSIONS, SMALL, Size, generate
from rebalance.properties.scenarios import Scenario


class _Drawn:
    """``Draw`` on top of Hypothesis: every choice is one integer, shrunk towards its lower bound."""

    def __init__(self, draw: Callable[[st.SearchStrategy[int]], int]) -> None:
        self._draw = draw

    def integer(self, low: int, high: int) -> int:
        return self._draw(st.integers(low, high)) if low < high else low


@st.composite
def scenarios(
    draw: st.DrawFn,
    protocol: RebalanceProtocol = RebalanceProtocol.COOPERATIVE,
    dimensions: Iterable[str] | None = None,
    size: Size = SMALL,
) -> Scenario:
    """Scenarios along the named dimensions of the input space; ``None``: any combination of them."""
    if dimensions is None:
        names = [d.name for d in DIMENSIONS if protocol in d.protocols]
        dimensions = draw(st.lists(st.sampled_from(names), unique=True, max_size=6))
    return generate(_Drawn(draw), protocol, dimensions, size)
