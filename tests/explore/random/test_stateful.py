"""Hypothesis plays the group: as specified nothing breaks, what is planted is found and shrinks."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import run_state_machine_as_test
from rebalance_verifier.explore.groups.bugs import SHOWN
from rebalance_verifier.explore.groups.scenarios import SCENARIOS, ScenarioSize
from rebalance_verifier.explore.liveness.lasso import Lasso, confirm
from rebalance_verifier.explore.random import swarm
from rebalance_verifier.explore.random.group_machine import (
    BreachError,
    StatefulFinding,
    find,
    group_machine,
    runs,
    setups,
)
from rebalance_verifier.explore.random.swarm import (
    PlayedRun,
    RandomRun,
    RunContext,
    only,
    run_context,
    swarm_config,
)
from rebalance_verifier.model.group.parts import GroupState
from rebalance_verifier.model.group.setup import Setup
from rebalance_verifier.model.machine import State
from rebalance_verifier.model.protocols import machine
from rebalance_verifier.properties.group.clauses import CLAUSES, rules
from rebalance_verifier.properties.group.rules import Always, Bounded, Rules

from tests.tiers import tiered

QUIET = settings(
    deadline=None, suppress_health_check=list(HealthCheck), phases=(Phase.generate, Phase.shrink)
)

SHORTEST = {"lost_as_revoked": 9, "reset_on_retriable": 4, "new_member_never_expires": 7}
"""Found quickly; with the length of the shortest trace, by the explorer."""

LATER = (
    "unsorted_metadata", "prepare_once_per_rebalance", "max_generation_only", "pending_blocks_join",
    "clear_member_id_on_illegal_generation", "no_sent_generation_check", "no_heartbeat_in_completing",
    "assign_during_close_hangs", "fetch_while_pending_revocation", "static_replace_not_persisted",
    "pending_sync_evicts_static", "rebalance_timeout_zero", "no_rejoin_after_revoke",
)  # fmt: skip

OF_CONSUMER_GROUPS = (
    "upgrade_reads_last_protocol", "commit_epoch_equality", "sync_names_first_protocol",
    "overtaken_heartbeat_believed",
)  # fmt: skip
"""Groups of KIP-848, and between the protocols."""

BY_DAY = ("no_sent_generation_check", "no_rejoin_after_revoke", *OF_CONSUMER_GROUPS[:2])


def _search(name: str, seed: int = 0, max_examples: int = 5_000) -> StatefulFinding:
    found = find(SHOWN[name].setup(), clause=SHOWN[name].clause, seed=seed, max_examples=max_examples)
    assert found is not None, f"{name} was not found"
    return found


def _replay(run: PlayedRun) -> list[State]:
    """The states of a run, taken step by step by the machine itself."""
    group = machine(run.setup)
    states = [group.initial[0]]
    for event in run.events:
        states.append(group.step(states[-1], event))
    return states


def _breaks(run: PlayedRun) -> bool:
    """Whether the machine agrees that the run breaks its clause: asked from scratch."""
    group, clauses = machine(run.setup), only(rules(run.setup), run.clause)
    states = _replay(run)
    if clauses.finally_:
        start = len(run.events) - run.cycle
        lasso = Lasso(states[0], run.events[:start], run.events[start:])
        confirm(group, clauses.finally_[0], lasso)  # raises where it is none
        return True
    seen = next(o.seen for e, o in group.outcomes(states[-2]) if e == run.events[-1])
    return any(rule.breach(run.events[-1], seen) for rule in clauses.each_step) or any(
        rule.breach(*(group.look(states[-1], view) for view in rule.views)) for rule in clauses.always
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", SHORTEST)
def test_finds_what_is_planted_and_shrinks_it(name):
    found = _search(name, max_examples=1_000)
    assert found.run.clause == SHOWN[name].clause
    assert _breaks(found.run)
    assert SHORTEST[name] <= len(found.run.events) <= 1.5 * SHORTEST[name]
    assert 0 < found.examples <= 1_000


@pytest.mark.nightly
@pytest.mark.parametrize("name", tiered((*LATER, *OF_CONSUMER_GROUPS), BY_DAY))
def test_finds_more(name):
    assert _breaks(_search(name).run)


@pytest.mark.parametrize("name", ["lost_as_revoked", "leave_on_empty_assignment"])
def test_nothing_is_found_without_the_switch(name):
    setup = SHOWN[name].setup(on=False)
    assert find(setup, max_examples=50) is None


@pytest.mark.slow
def test_same_seed_same_run():
    once, again, other = (_search("reset_on_retriable", seed=seed) for seed in (1, 1, 2))
    assert once == again
    assert once.examples != other.examples


def test_a_finding_reads_like_a_story():
    run = _search("no_leave_on_unsubscribe", max_examples=500).run
    head, *steps = str(run).splitlines()
    assert head.startswith("leave/sent: A leaves without LeaveGroup")
    assert len(steps) == len(run.events)
    assert steps[0].split(maxsplit=1)[1] == "A start"


def test_a_cycle_is_marked():
    run = _search("no_heartbeat_in_completing").run
    assert run.cycle
    assert "from here again and again" in str(run)
    states = _replay(run)
    group = machine(run.setup)
    assert group.normal(states[-1]) == group.normal(states[-1 - run.cycle])


def test_a_clause_that_is_not_asked_is_refused():
    with pytest.raises(ValueError, match="group/size"):
        find(SCENARIOS["dynamic"].setup(), clause="group/size")


# -- as specified ----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.covering
@pytest.mark.parametrize(
    ("scenario", "size"),
    [
        ("dynamic", ScenarioSize(members=2, partitions=2, budget=3)),
        ("eager", ScenarioSize(members=2, partitions=2, budget=2, steps="fine")),
        ("static", ScenarioSize(members=2, partitions=2)),
    ],
)
def test_as_specified_nothing_breaks(scenario, size):
    assert find(SCENARIOS[scenario].setup(size), max_examples=60) is None


@pytest.mark.nightly
@settings(QUIET, max_examples=15)
@given(runs(setups(), steps=300))
def test_as_specified_nothing_breaks_in_large_groups(run):
    assert not run.clause, str(run)


@pytest.mark.nightly
def test_as_specified_nothing_breaks_in_many_large_groups():
    found = find(setups(), max_examples=1_000, steps=300)
    assert found is None, str(found)


@pytest.mark.slow
@pytest.mark.parametrize(
    "scenario", tiered(("dynamic", "failover", "static", "mixed", "topics", "crowded"), {"dynamic"})
)
def test_as_specified_nothing_breaks_in_any_scenario(scenario):
    found = find(SCENARIOS[scenario].setup(ScenarioSize(budget=4)), max_examples=400, steps=120)
    assert found is None, str(found)


# -- the state machine -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_state_machine_passes():
    group = group_machine(SCENARIOS["dynamic"].setup(ScenarioSize(members=2, partitions=2, budget=2)))
    run_state_machine_as_test(group, settings=settings(QUIET, max_examples=5, stateful_step_count=20))


@pytest.mark.parametrize(
    "name",
    ["ghost_on_retry", "leave_on_empty_assignment"],
)
def test_state_machine_fails_with_the_run(name):
    shown = SHOWN[name]
    group = group_machine(shown.setup(), shown.clause)
    unshrunk = settings(QUIET, max_examples=200, stateful_step_count=25, phases=(Phase.generate,))
    with pytest.raises(BreachError, match=shown.clause) as caught:
        run_state_machine_as_test(group, settings=unshrunk)
    assert _breaks(caught.value.run)


def told(caught: pytest.ExceptionInfo[BaseException]) -> str:
    """All that pytest prints of a failure: its text, and the notes that Hypothesis puts below."""
    return "\n".join([str(caught.value), *getattr(caught.value, "__notes__", ())])


@pytest.mark.parametrize("drawn", [False, True])
def test_a_failing_machine_prints_what_matters_and_not_what_was_drawn(drawn):
    shown = SHOWN["ghost_on_retry"]
    group = group_machine(st.just(shown.setup()) if drawn else shown.setup(), shown.clause)
    unshrunk = settings(QUIET, max_examples=200, stateful_step_count=25, phases=(Phase.generate,))
    with pytest.raises(BreachError) as caught:
        run_state_machine_as_test(group, settings=unshrunk)
    text = told(caught)
    assert text.startswith(f"{shown.clause}: ")
    assert "Draw 1" in text
    assert "with cooperative-sticky" in text or not drawn
    assert max(map(len, text.splitlines())) < 250
    assert len(text) < 5_000, "it was a hundred thousand"


def test_a_failing_test_of_whole_runs_prints_a_line_of_what_was_drawn():
    shown = SHOWN["ghost_on_retry"]

    @settings(QUIET, max_examples=300, phases=(Phase.generate,))
    @given(runs(shown.setup(), clause=shown.clause))
    def test(run: PlayedRun) -> None:
        assert not run.clause, run

    with pytest.raises(AssertionError, match=shown.clause) as caught:
        test()
    (example,) = (note for note in getattr(caught.value, "__notes__", ()) if "run=" in note)
    assert f"run=<run of {len(str(caught.value).splitlines()) - 1} events, {shown.clause}" in example
    assert len(example) < 400


# -- playing by numbers ----------------------------------------------------------------------------------


def _play(setup: Setup, clauses: Rules | None = None) -> RandomRun:
    table = RunContext(setup, rules(setup) if clauses is None else clauses)
    return RandomRun(table, swarm_config(table, 16, 0))


def test_the_simplest_numbers_take_the_first_step_that_can_happen():
    random_run = _play(SCENARIOS["dynamic"].setup(ScenarioSize(members=1, partitions=1, budget=0)))
    while random_run.step(1):
        pass
    assert [event.action for event in random_run.events] == [
        "start", "join", "join", "join phase ends", "assign", "leader sync", "receive sync",
    ]  # fmt: skip


def test_every_number_is_a_step_that_the_machine_has():
    random_run = _play(SCENARIOS["dynamic"].setup(ScenarioSize(members=2, partitions=1, budget=3)))
    for number in range(1, 40):
        if not random_run.step(number * 37 % random_run.top + 1):
            break
    assert len(_replay(random_run.run)) > 10


def test_faults_stop_at_the_budget_and_at_the_mood():
    setup = SCENARIOS["dynamic"].setup(ScenarioSize(members=1, partitions=1, budget=3))
    table = run_context(setup)
    for faults in (0, 2):
        random_run = RandomRun(table, swarm_config(table, 64, 0)._replace(faults=faults))
        for _ in range(60):
            random_run.step(random_run.top)
        costly = [event for event in random_run.events if event.action in setup.faults]
        assert len(costly) <= faults


def test_moods_differ_and_repeat():
    table = run_context(SCENARIOS["dynamic"].setup())
    assert swarm_config(table, 16, 5) == swarm_config(table, 16, 5)
    assert len({swarm_config(table, 16, swarm_seed) for swarm_seed in range(1, 20)}) > 10
    for swarm_seed in range(50):
        one = swarm_config(table, 16, swarm_seed)
        assert set(one.order) == set(table.steps)
        assert set(one.kinds) <= set(table.faults)
        assert swarm_seed == 0 or 1 <= one.faults <= table.setup.budget


def test_rounds_are_counted_after_the_last_fault():
    setup = SCENARIOS["dynamic"].setup(ScenarioSize(members=2, partitions=2, budget=0))
    counts = [Bounded("group/rounds", lambda event: event.action == "join phase ends", n) for n in (4, 0)]
    generous, mean = (_play(setup, Rules(bounded=(rule,))) for rule in counts)
    for random_run in (generous, mean):
        for _ in range(40):
            random_run.step(1)
        random_run.settle()
    assert generous.broken is None
    assert mean.broken is not None
    assert mean.broken[0] == "group/rounds"
    assert mean.events[-1].action == "join phase ends"


def test_a_fault_begins_the_count_of_rounds_again():
    setup = SCENARIOS["dynamic"].setup(ScenarioSize(members=1, partitions=1, faults=("enforce",), budget=1))
    rule = Bounded("group/rounds", lambda event: event.action == "join phase ends", 1)
    random_run = _play(setup, Rules(bounded=(rule,)))
    while random_run.step(1):
        pass
    assert [event.action for event in random_run.events].count("join phase ends") == 2
    assert random_run.broken is None


def test_a_state_is_judged_when_what_it_is_judged_by_changes():
    stable = Always("stable", ("group",), lambda group: "it is" if group is GroupState.STABLE else None)
    random_run = _play(
        SCENARIOS["dynamic"].setup(ScenarioSize(members=1, partitions=1, budget=0)), Rules((stable,))
    )
    while random_run.step(1):
        pass
    assert random_run.run.clause == "stable"
    assert random_run.events[-1].action == "leader sync"
    assert not random_run.step(1)


def test_what_never_settles_within_the_bound_is_a_breach(monkeypatch):
    monkeypatch.setattr(swarm, "BOUND", 0)
    random_run = _play(SCENARIOS["dynamic"].setup(ScenarioSize(members=1, partitions=1, budget=0)))
    random_run.step(1)
    random_run.settle()
    assert random_run.broken is not None
    assert random_run.broken[0] == "group/converges"
    assert "not settled" in random_run.broken[1]


def test_rules_of_one_clause():
    setup = SCENARIOS["dynamic"].setup()
    for clause in ("group/owner", "leader/grant", "group/converges"):
        clauses = only(rules(setup), clause)
        kept = {rule.clause for rule in clauses.always} | {rule.clause for rule in clauses.each_step}
        kept |= {rule.clause for rule in clauses.finally_} | {rule.clause for rule in clauses.bounded}
        assert kept == {clause}
        assert clause in CLAUSES
