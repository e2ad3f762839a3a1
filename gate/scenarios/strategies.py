"""Hypothesis strategies over the same generator, for tests that people write themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from hypothesis import strategies as st
from rebalance_verifier.gate.scenarios.generator import DIMENSIONS, SMALL, Size, generate
from rebalance_verifier.model.values import RebalanceProtocol
from rebalance_verifier.properties.assignors.scenarios import Scenario


class _Drawn:
    """``Draw`` on top of Hypothesis: every choice is one integer, shrunk towards its lower bound."""

    def __init__(self, draw: Callable[[st.SearchStrategy[int]], int]) -> None:
        self._draw = draw

    def integer(self, low: int, high: int) -> int:
        return self._draw(st.integers(low, high)) if low < high else low


def scenarios(
    protocol: RebalanceProtocol = RebalanceProtocol.COOPERATIVE,
    dimensions: Iterable[str] | None = None,
    size: Size = SMALL,
) -> st.SearchStrategy[Scenario]:
    """Return scenarios along the named dimensions of the input space; ``None``: any combination of them."""
    return _scenarios(protocol, None if dimensions is None else tuple(dimensions), size)


@st.composite
def _scenarios(
    draw: st.DrawFn, protocol: RebalanceProtocol, dimensions: tuple[str, ...] | None, size: Size
) -> Scenario:
    if dimensions is None:
        names = [d.name for d in DIMENSIONS if protocol in d.protocols]
        dimensions = tuple(draw(st.lists(st.sampled_from(names), unique=True, max_size=6)))
    return generate(_Drawn(draw), protocol, dimensions, size)
