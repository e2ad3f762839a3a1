"""The verdict of an exploration: a search is worth what it has seen."""

from __future__ import annotations

import pytest
from rebalance_verifier.base.verdict import Exit, Verdict
from rebalance_verifier.explore.engine.search import Limits
from rebalance_verifier.explore.groups import exploration
from rebalance_verifier.explore.groups.exploration import ExplorationPlan, Explored, run_exploration
from rebalance_verifier.explore.groups.scenarios import SCENARIOS, ScenarioSize

NEVER = "partitions lost by a fence"
"""What a group without faults does not come to."""


def explored(depth: int | None = None) -> Explored:
    """What a search of a member on its own finds."""
    setup = SCENARIOS["consumer"].setup(ScenarioSize(members=1, partitions=1, faults=()))
    return run_exploration(ExplorationPlan(setup=setup, origin={}, limits=Limits(depth=depth)))


def test_all_that_is_searched_and_seen_conforms() -> None:
    found = explored()
    assert (found.verdict, found.exit, found.missed) == (Verdict.CONFORMANT, Exit.CONFORMANT, ())


def test_a_whole_search_that_misses_what_is_due_is_inconclusive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exploration, "due", lambda setup: (NEVER,))
    found = explored()
    assert found.search is not None
    assert found.search.complete
    assert (found.verdict, found.exit, found.missed) == (Verdict.INCONCLUSIVE, Exit.INCONCLUSIVE, (NEVER,))


def test_a_search_that_ends_early_is_inconclusive_and_owes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exploration, "due", lambda setup: (NEVER,))
    found = explored(depth=2)
    assert (found.verdict, found.exit, found.missed) == (Verdict.INCONCLUSIVE, Exit.INCONCLUSIVE, ())
