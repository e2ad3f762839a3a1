"""Groups on their way between the protocols: as specified everything holds, as shipped it does not."""

from __future__ import annotations

import pytest
from rebalance_verifier.explore.engine import fast, plain
from rebalance_verifier.explore.engine.search import Limits
from rebalance_verifier.explore.groups.floors import due
from rebalance_verifier.explore.groups.scenarios import SCENARIOS, ScenarioSize
from rebalance_verifier.explore.liveness import liveness
from rebalance_verifier.model.protocols import machine
from rebalance_verifier.properties.group.clauses import rules

GO_ON = Limits(go_on=True)

THREE = {0: (6804, 16921, 29, 10), 1: (926183, 3028691, 38, 14)}
"""One member of each kind and two partitions, by the number of faults of any kind: distinct states, steps
generated, depth, the most heartbeats and joins after the last fault."""


@pytest.mark.nightly
@pytest.mark.parametrize("budget", [0, 1])
def test_one_of_each_kind(budget: int) -> None:
    setup = SCENARIOS["migration"].setup(ScenarioSize(budget=budget))
    built, clauses = machine(setup), rules(setup)
    search = fast.explore(built, clauses, GO_ON)
    assert search.complete
    assert search.breaches == ()
    verdict = liveness.judge(built, clauses, search)
    assert verdict.holds, verdict
    [count] = verdict.counts
    assert (search.distinct, search.generated, search.depth, count.reached) == THREE[budget]
    assert plain.explore(built, clauses, GO_ON).counts == search.counts


@pytest.mark.slow
def test_single_messages_come_to_the_same_verdict_of_a_migration() -> None:
    setup = SCENARIOS["migration"].setup(ScenarioSize(members=2, faults=(), budget=0, steps="fine"))
    built, clauses = machine(setup), rules(setup)
    search = fast.explore(built, clauses, GO_ON)
    assert search.complete
    assert search.breaches == ()
    assert liveness.judge(built, clauses, search).holds


@pytest.mark.nightly
def test_two_faults_in_a_migration() -> None:
    setup = SCENARIOS["migration-failover"].setup(ScenarioSize(budget=2))
    built, clauses = machine(setup), rules(setup)
    search = fast.explore(built, clauses, GO_ON)
    assert search.complete
    assert search.breaches == ()
    assert liveness.judge(built, clauses, search).holds
    assert search.distinct == 232279


@pytest.mark.covering
@pytest.mark.parametrize("name", ["migration", "migration-failover"])
def test_every_stage_of_a_migration_is_seen(name: str) -> None:
    setup = SCENARIOS[name].setup(ScenarioSize(members=2))
    search = fast.explore(machine(setup), rules(setup), GO_ON)
    seen = {witness.clause for witness in search.witnesses if witness.count}
    assert set(due(setup)) <= seen
    assert {"upgrade of a group that is stable", "downgrade while partitions move"} <= seen


@pytest.mark.nightly
def test_members_of_both_kinds_that_are_alike_have_orbits() -> None:
    setup = SCENARIOS["migration-upgrade"].setup(ScenarioSize(faults=(), budget=0))
    built, clauses = machine(setup), rules(setup)
    whole = fast.explore(built, clauses, GO_ON)
    orbits = fast.explore(built, clauses, GO_ON, symmetry=True)
    assert orbits.unreduced == whole.distinct > 3 * orbits.distinct


@pytest.mark.slow
@pytest.mark.covering
@pytest.mark.parametrize("name", ["migration", "migration-static"])
def test_as_shipped_a_partition_gets_two_owners_without_a_fault(name: str) -> None:
    size = ScenarioSize(faults=(), budget=0, profiles=("java-current",), broker="broker-current")
    setup = SCENARIOS[name].setup(size)
    search = fast.explore(machine(setup), rules(setup), GO_ON)
    broken = {breach.clause for breach in search.breaches}
    assert broken >= {"epoch/covers", "group/owner", "group/commit"}


def test_a_run_is_put_in_words() -> None:
    """Every action of a small migration has a sentence of its own, and a drawing."""
    setup = SCENARIOS["migration-failover"].setup(ScenarioSize(budget=1))
    built = machine(setup)
    todo, known, actions = [built.initial[0]], {built.initial[0]}, set()
    while todo and len(known) < 3000:
        state = todo.pop()
        for event, outcome in built.outcomes(state):
            after = built.normal(built.apply(state, event, outcome))
            sentence, _ = built.describe.step(state, event, after, outcome.seen)
            built.describe.details(state, event, after, outcome.seen)
            assert built.describe.state(after)
            assert sentence not in ("", event.action, built.describe.event(event))
            actions.add(event.action)
            if after not in known:
                known.add(after)
                todo.append(after)
    assert {"join", "beat", "response", "leader decides", "join phase ends", "request refused"} <= actions
