"""Every switch of the protocol is found, by the clause that is about it, with a trace that replays."""

from __future__ import annotations

import pytest
from rebalance.explore import fast, liveness
from rebalance.explore.bugs import LASSO, SHOWN
from rebalance.explore.judge import Judge
from rebalance.explore.lasso import confirm
from rebalance.explore.search import Limits
from rebalance.model.decisions import DECISIONS
from rebalance.model.protocol.group import machine
from rebalance.properties.protocol import rules

GO_ON = Limits(go_on=True)
LARGE = {"trust_all_claims"}
SWITCHES = [pytest.param(s, marks=pytest.mark.slow) if s in LARGE else s for s in SHOWN]


def test_every_decision_has_a_group_that_shows_it() -> None:
    assert set(DECISIONS) <= set(SHOWN)


@pytest.mark.parametrize("switch", SWITCHES)
def test_found(switch: str) -> None:
    shown = SHOWN[switch]
    setup = shown.setup()
    built, asked = machine(setup), rules(setup)
    search = fast.explore(built, asked, GO_ON)
    assert search.complete
    if shown.clause == LASSO:
        [settling] = liveness.judge(built, asked, search).settling
        assert settling.lasso is not None
        assert settling.least
        confirm(built, asked.finally_[0], settling.lasso)
        return
    trace = search.trace(shown.clause)
    judge, state = Judge(built, asked, shown.clause), trace.initial
    for place, event in enumerate(trace.events, 1):
        [outcome] = [outcome for one, outcome in built.outcomes(state) if one == event]
        state = built.apply(state, event, outcome)
        broken = [*judge.step(event, outcome.seen), *judge.state(state)]
        assert bool(broken) is (place == len(trace.events)), "the trace breaks its clause at its end"


@pytest.mark.parametrize("switch", SWITCHES)
@pytest.mark.slow
def test_without_the_switch_its_clause_holds(switch: str) -> None:
    shown = SHOWN[switch]
    setup = shown.setup(on=False)
    built, asked = machine(setup), rules(setup)
    search = fast.explore(built, asked, GO_ON)
    assert search.complete
    assert shown.clause not in [breach.clause for breach in search.breaches]
    if shown.clause == LASSO:
        assert liveness.judge(built, asked, search).holds
