"""What a listener is told: by whom, for which partitions, and what was owned and believed meanwhile."""

from __future__ import annotations

import pytest
from rebalance_verifier.explore.groups.scenarios import SCENARIOS
from rebalance_verifier.model.group.observations import Call
from rebalance_verifier.specs.classic.refinement.listeners import ENDS, ListenerCall, differs

SETUP = SCENARIOS["dynamic"].setup()
TOLD: ListenerCall = ((Call.REVOKED,), 0b01, 0b11, 0b10)


def test_either_callback_of_an_end_will_do() -> None:
    for call in ENDS:
        assert differs(SETUP, [((call,), *TOLD[1:])], [(ENDS, *TOLD[1:])]) is None
    assert differs(SETUP, [], []) is None


@pytest.mark.parametrize(
    "other",
    [
        ((Call.LOST,), 0b01, 0b11, 0b10),
        ((Call.REVOKED,), 0b10, 0b11, 0b10),
        ((Call.REVOKED,), 0b01, 0b01, 0b10),
        ((Call.REVOKED,), 0b01, 0b11, 0b11),
    ],
    ids=["callback", "partitions", "owned", "believed"],
)
def test_each_part_of_a_callback_is_compared(other: ListenerCall) -> None:
    for seen, called in ((TOLD, other), (other, TOLD)):
        found = differs(SETUP, [TOLD, seen], [TOLD, called])
        assert found is not None
        assert "should be" in found


def test_a_callback_too_many_and_one_too_few_are_told_apart() -> None:
    assert "was also told revoked" in (differs(SETUP, [TOLD, TOLD], [TOLD]) or "")
    assert "was not told revoked" in (differs(SETUP, [TOLD], [TOLD, TOLD]) or "")
