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


def histories(
    protocol: RebalanceProtocol | str = "cooperative",
    dimensions: Iterable[str] | None = None,
    size: Size = SMALL,
) -> st.SearchStrategy[Scenario]:
    """Draw histories of a group as an assignor sees it: members that come and go, claims that become stale.

    Args:
        protocol: "eager" or "cooperative".
        dimensions: what varies, such as ["stale", "racks"]; any combination where none is named.
        size: the largest group.
    """
    return _histories(RebalanceProtocol(protocol), None if dimensions is None else tuple(dimensions), size)


@st.composite
def _histories(
    draw: st.DrawFn, protocol: RebalanceProtocol, dimensions: tuple[str, ...] | None, size: Size
) -> Scenario:
    if dimensions is None:
        names = [d.name for d in DIMENSIONS if protocol in d.protocols]
        dimensions = tuple(draw(st.lists(st.sampled_from(names), unique=True, max_size=6)))
    return generate(_Drawn(draw), protocol, dimensions, size)
