"""Hypothesis strategies over the same generator, for tests that people write themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from hypothesis import strategies as st
from rebalance_verifier.gate.scenarios import exclusions
from rebalance_verifier.gate.scenarios.generator import DIMENSIONS, SMALL, Size, generate
from rebalance_verifier.model.values import OF_TASKS, RebalanceProtocol
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
    without: Iterable[str] = (),
) -> st.SearchStrategy[Scenario]:
    """Draw histories of a group as an assignor sees it: members that come and go, claims that become stale.

    Args:
        protocol: "eager" or "cooperative".
        dimensions: what varies, such as ["stale", "racks"]; any combination where none is named.
        size: the largest group.
        without: kinds of input that the assignor is not made for, such as ["unequal"].
    """
    if RebalanceProtocol(protocol) in OF_TASKS:
        raise ValueError(f"{protocol}: histories are of partitions; `check` judges a task assignor")
    named = None if dimensions is None else tuple(dimensions)
    return _histories(RebalanceProtocol(protocol), named, size, exclusions.excluded(without))


@st.composite
def _histories(
    draw: st.DrawFn,
    protocol: RebalanceProtocol,
    dimensions: tuple[str, ...] | None,
    size: Size,
    without: tuple[str, ...],
) -> Scenario:
    left_out = exclusions.not_drawn(without)
    if dimensions is None:
        names = [d.name for d in DIMENSIONS if protocol in d.protocols and d.name not in left_out]
        dimensions = tuple(draw(st.lists(st.sampled_from(names), unique=True, max_size=6)))
    drawn = generate(_Drawn(draw), protocol, dimensions, size)
    return exclusions.without(drawn, without)
