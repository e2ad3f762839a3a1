"""How a campaign is cut, and how many slices there may be."""

from __future__ import annotations

import pytest
from rebalance_verifier.pipeline.campaign.campaign import MAX_SLICES, Campaign


def of(*legs: tuple[int, int]) -> Campaign:
    return Campaign({}, 0, legs, "1")


@pytest.mark.parametrize(
    "legs", [((MAX_SLICES, 1),), ((10 * MAX_SLICES - 9, 10),), ((5, 1), (5 + 2 * (MAX_SLICES - 5), 2))]
)
def test_there_may_be_so_many_slices_and_not_one_more(legs: tuple[tuple[int, int], ...]) -> None:
    of(*legs).check()
    assert len(of(*legs).slices()) == MAX_SLICES
    (last, size) = legs[-1]
    with pytest.raises(ValueError, match=r"100,000 slices are more than 99,999: say --slice"):
        of(*legs[:-1], (last + size, size)).check()
