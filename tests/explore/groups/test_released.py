"""The runs that are spelled out for Kafka's own code: the model allows them, and they break their clause."""

from __future__ import annotations

import pytest
from rebalance_verifier.explore.groups.bugs import without
from rebalance_verifier.explore.groups.released import SPELLED, SpelledRun
from rebalance_verifier.explore.groups.runs import play
from rebalance_verifier.live.clients.replay.replay_plan import parting, replay_plan


@pytest.mark.parametrize("spelled", SPELLED, ids=lambda one: one.shown.switch)
def test_each_breaks_its_clause_and_takes_its_switch(spelled: SpelledRun) -> None:
    run = spelled.saved
    found = play(run)
    assert (found.sentence is not None, found.after) == (True, len(run.events))
    _, steps = replay_plan(run)
    assert parting(steps, run.setup) == steps[-1].number + 1
    assert parting(steps, without(run.setup, spelled.shown.switch)) <= steps[-1].number
