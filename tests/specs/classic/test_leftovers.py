"""What faults leave: steps that leave something by themselves, or end nothing, are noticed."""

from __future__ import annotations

import pytest
from rebalance_verifier.specs.classic import heartbeats, member, process
from rebalance_verifier.specs.classic.leftovers import leftovers
from rebalance_verifier.specs.classic.safety import specification
from rebalance_verifier.specs.classic.vocabulary import HEARTBEAT, HUNG, IDLE, VOCABULARY, C
from rebalance_verifier.specs.classic.wire import put_stray
from rebalance_verifier.specs.logic.language import After, State, Term
from rebalance_verifier.specs.logic.prover import ProofVerdict, discharge
from rebalance_verifier.specs.logic.specification import Specification


def broken(spec: Specification, case: str) -> set[str]:
    """The goals of that case that are not proved."""
    [one] = [one for one in leftovers(spec).cases if one.name == case]
    answers = discharge(VOCABULARY, one, limit=3_000_000)
    return {answer.goal for answer in answers if answer.verdict is not ProofVerdict.PROVED}


def told_to_rejoin(s: State, t: After, c: Term) -> None:
    """It hangs then, and sends what stays under way."""
    member.told_to_rejoin(s, t, c)
    t.life[c] = HUNG
    t.left_new[c] = True


def late_answer(s: State, t: After, c: Term) -> None:
    """It answers to the answer."""
    heartbeats.late_answer(s, t, c)
    put_stray(s, t, c, HEARTBEAT)


def refresh(s: State, t: After, c: Term) -> None:
    """It sees nothing, and finds it outdated."""
    process.refresh(s, t, c)
    t.unseen[C] = s.unseen(C)


def resume(s: State, t: After, c: Term) -> None:
    """Only who has nothing under way goes on."""
    process.resume(s, t, c)
    t.when(s.wire(c) == IDLE)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("instead", "case", "goals"),
    [
        (
            told_to_rejoin,
            "told_to_rejoin leaves nothing",
            {"no more: hung", "no more: left behind without one"},
        ),
        (late_answer, "late_answer leaves nothing", {"no more: late"}),
        (refresh, "refresh leaves nothing", {"no more: metadata out of date (1)"}),
    ],
)
def test_a_step_that_leaves_something_is_noticed(instead, case, goals):
    assert broken(specification(instead), case) == goals


def test_who_is_paused_and_cannot_go_on_is_noticed():
    assert not broken(specification(), "who is paused goes on")
    assert broken(specification(resume), "who is paused goes on") == {"who is paused goes on"}
