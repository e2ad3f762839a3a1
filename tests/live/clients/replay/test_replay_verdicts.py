"""What a replay is judged by: how often a breach counts, and what several runs say of a release."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from rebalance_verifier.explore.groups.scenarios import SCENARIOS, ScenarioSize
from rebalance_verifier.live.clients.replay.judge import ClauseJudge
from rebalance_verifier.live.clients.replay.verdict import BrokenClause, Replayed
from rebalance_verifier.live.code.replay import on_code
from rebalance_verifier.model.bugs.observed import ABSENT, OPEN, SHOWN
from rebalance_verifier.model.machine import Event


def test_what_is_broken_counts_once_and_every_step_is_shown() -> None:
    result = Replayed(clause="group/owner", client="client")
    judge = ClauseJudge(SCENARIOS["dynamic"].setup(ScenarioSize(members=2, partitions=1)), result)
    breaches = [("group/owner", "t-0 has two owners"), ("callback/lost", "A lost t-0")]
    judge.rules = SimpleNamespace(  # type: ignore[assignment]
        at_step=lambda event, seen: breaches[1:], in_state=lambda value: breaches[:1]
    )
    for number in (4, 5):
        judge.ask(SimpleNamespace(number=number, event=Event("join", 1)), (), {}, {"A": "t-0"})  # type: ignore[arg-type]
    breaches.append(("callback/lost", "B lost t-0"))
    judge.ask(SimpleNamespace(number=6, event=Event("join", 0)), (), {}, {})  # type: ignore[arg-type]
    assert result.broken == [
        BrokenClause("callback/lost", 4, "A lost t-0"),
        BrokenClause("group/owner", 4, "t-0 has two owners"),
        BrokenClause("callback/lost", 6, "B lost t-0"),
    ]
    assert [(one["step"], one["owned"]) for one in result.shown] == [
        (4, {"A": "t-0"}),
        (5, {"A": "t-0"}),
        (6, {}),
    ]


SAME = Replayed(clause="a/1", client="x", broken=[BrokenClause("a/1", 1, "is broken")])
NONE = Replayed(clause="group/owner", client="x")
CUT = Replayed(clause="group/owner", client="x", stopped="the simulation ended\nafter a while")
UNFORCED = Replayed(clause="group/owner", client="x", unforced=["step 3: no such request"])


@pytest.mark.parametrize(
    ("results", "found"),
    [
        ([SAME, NONE], (SHOWN, "")),
        ([CUT, SAME], (SHOWN, "")),
        ([NONE, NONE], (ABSENT, "")),
        ([NONE, CUT], (ABSENT, "")),
        ([CUT, NONE], (ABSENT, "")),
        ([NONE, UNFORCED], (ABSENT, "")),
        ([UNFORCED, CUT], (OPEN, "the simulation ended")),
        ([CUT, UNFORCED], (OPEN, "step 3: no such request")),
    ],
)
def test_what_several_runs_say_of_a_release(
    monkeypatch: pytest.MonkeyPatch, results: list[Replayed], found: tuple[str, str]
) -> None:
    """One run that shows it is enough, and one that shows that it is not there where none shows it."""
    coming = iter(results)
    monkeypatch.setattr(on_code, "replay_on_code", lambda *given: next(coming))
    monkeypatch.setattr(on_code, "beside", lambda run, releases: releases)
    nobody: Any = None
    seen = on_code.observe([nobody] * len(results), nobody, nobody)
    assert (seen.seen, seen.why) == found
