"""Every switch of the protocol is found, by the clause that is about it, with a trace that replays."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rebalance_verifier.explore.engine import fast
from rebalance_verifier.explore.engine.search import Limits
from rebalance_verifier.explore.groups.bugs import LASSO, SHOWN, two_owners
from rebalance_verifier.explore.groups.scenarios import SCENARIOS, ScenarioSize
from rebalance_verifier.explore.liveness import liveness
from rebalance_verifier.explore.liveness.lasso import confirm
from rebalance_verifier.explore.random.judge import Judge
from rebalance_verifier.model.bugs.decisions import DECISIONS
from rebalance_verifier.model.bugs.profiles import broker, client
from rebalance_verifier.model.group.setup import CLASSIC, CONSUMER, MIGRATION
from rebalance_verifier.model.protocols import machine
from rebalance_verifier.properties.group.clauses import rules

from tests.tiers import tiered

GO_ON = Limits(go_on=True)


def test_every_decision_has_a_group_that_shows_it() -> None:
    assert set(DECISIONS) <= set(SHOWN)


LARGE = {
    "lost_generation_believed",  # more than a million states
    "classic_static_must_leave",
    "no_downgrade_on_replace",
    "upgrade_keeps_target",
    "trust_all_claims",
    "static_downgrade_without_rebalance",
    "previous_epoch_overwritten",
    "unknown_member_admitted",
    "failover_times_classic",
}
"""Their searches take longest."""

COSTLY = {
    "max_generation_only",
    "validate_raw_claims",
    "commit_error_no_rejoin",
    "commit_any_at_epoch",
    "trust_all_claims",
    "upgrade_keeps_target",
    "unknown_member_admitted",
    "static_downgrade_without_rebalance",
    "no_downgrade_on_replace",
    "classic_static_must_leave",
    "previous_epoch_overwritten",
    "interrupted_holds_nothing",
}
"""Two thirds of the time of all groups without their switch."""


@pytest.mark.slow
@pytest.mark.covering(by=lambda switch: (SHOWN[switch].protocol, SHOWN[switch].clause))
@pytest.mark.parametrize("switch", tiered(SHOWN, set(SHOWN) - LARGE))
def test_found(switch: str) -> None:
    shown = SHOWN[switch]
    setup = shown.setup()
    built, clauses = machine(setup), rules(setup)
    search = fast.explore(built, clauses, GO_ON)
    assert search.complete
    if shown.clause == LASSO:
        settling, *_ = liveness.judge(built, clauses, search).settling
        assert settling.lasso is not None
        assert settling.least
        confirm(built, clauses.finally_[0], settling.lasso)
        return
    trace = search.trace(shown.clause)
    judge, state = Judge(built, clauses, shown.clause), trace.initial
    for number, event in enumerate(trace.events, 1):
        [outcome] = [outcome for one, outcome in built.outcomes(state) if one == event]
        before, state = state, built.apply(state, event, outcome)
        broken = [*judge.step(before, event, outcome), *judge.state(state)]
        assert bool(broken) is (number == len(trace.events)), "the trace breaks its clause at its end"


@pytest.mark.slow
@pytest.mark.covering(by=lambda switch: SHOWN[switch].protocol)
@pytest.mark.parametrize("switch", tiered(SHOWN, set(SHOWN) - LARGE - COSTLY))
def test_without_the_switch_its_clause_holds(switch: str) -> None:
    shown = SHOWN[switch]
    setup = shown.setup(on=False)
    built, clauses = machine(setup), rules(setup)
    search = fast.explore(built, clauses, GO_ON)
    assert search.complete
    assert shown.clause not in [breach.clause for breach in search.breaches]
    if shown.clause == LASSO:
        assert liveness.judge(built, clauses, search).holds


@pytest.mark.parametrize(
    ("release", "protocols", "ids"),
    [
        (client("2.6.3"), {CLASSIC}, {"J1", "J2", "U11", "U13"}),
        (client("3.9.0"), {CLASSIC}, {"U11"}),
        (client("kafka-python"), {CLASSIC}, {"K4", "U1"}),
        (client("as-specified"), {CLASSIC, CONSUMER, MIGRATION}, set()),
        (broker("4.3.1"), {CLASSIC}, {"U6", "U10", "U12"}),
        (broker("4.3.1"), {CONSUMER}, {"N12", "N26"}),
        (broker("3.9.0"), {CLASSIC, CONSUMER, MIGRATION}, {"U6", "U10", "U12"}),
    ],
    ids=lambda one: getattr(one, "title", None),
)
def test_the_bugs_of_a_release_by_which_a_partition_has_two_owners(release, protocols, ids):
    assert set(two_owners(release, protocols)) == ids


@pytest.mark.parametrize(("assignor", "holds"), [("cooperative-sticky", True), ("range", False)])
def test_a_group_of_librdkafka_notices_a_topic_of_a_follower_by_its_claims_alone(
    assignor: str, holds: bool
) -> None:
    """L11: with cooperative-sticky each JoinGroup has another generation; seen so with 2.16.1."""
    size = ScenarioSize(members=2, partitions=2, profiles=("librdkafka",), faults=("topic grows",), budget=1)
    setup = replace(SCENARIOS["apart"], lists=(((assignor,),),)).setup(size)
    built, clauses = machine(setup), rules(setup)
    assert liveness.judge(built, clauses, fast.explore(built, clauses, GO_ON)).holds is holds
