"""What a consumer of a simulation makes of an error, as the clauses are shown it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rebalance_verifier.live.code.answers import ConsumerState, SimulationRequest, SimulationResponse
from rebalance_verifier.live.code.replay.group import CodeMember, answered_by
from rebalance_verifier.model.group.parts import NONE, Slot

NOTHING = frozenset[str]()
JOINING = ConsumerState(
    state="PREPARING_REBALANCE", generation=NONE, member_id="", protocol=None, owned=NOTHING,
    fetchable=NOTHING, topics=("t",), rejoin=True, joining=True, prepared=True, coordinator_known=True,
    heartbeats=False, now=0,
)  # fmt: skip
STABLE = replace(JOINING, state="STABLE", generation=1, member_id="A-1", rejoin=False, joining=False)


@pytest.mark.parametrize(
    ("api", "before", "error", "same"),
    [
        ("Heartbeat", STABLE, "UNKNOWN_MEMBER_ID", True),
        ("JoinGroup", STABLE, "UNKNOWN_MEMBER_ID", True),
        ("JoinGroup", JOINING, "UNKNOWN_MEMBER_ID", False),  # there was no membership
        ("Heartbeat", STABLE, "FENCED_INSTANCE_ID", None),  # it ends, as poll tells
        ("Heartbeat", STABLE, "GROUP_ID_NOT_FOUND", None),  # none that the model has
    ],
)
def test_an_error_costs_the_membership_that_it_is_of(
    api: str, before: ConsumerState, error: str, same: bool | None
) -> None:
    request = SimulationRequest(
        member=0, id=7, api=api, version=5, member_id=before.member_id, generation=before.generation
    )
    member = CodeMember(slot=Slot(0), sent_requests={7: request})
    response = SimulationResponse(member=0, id=7, api=api, error=error)
    seen = answered_by(member, response, before, JOINING)
    assert (seen and seen.same) == same
    assert seen is None or seen.reset == bool(before.member_id)
