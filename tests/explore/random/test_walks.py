"""Walks and depth-first search: what they find, that they repeat, and what they say they covered."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from rebalance_verifier.explore.engine.plain import explore
from rebalance_verifier.explore.engine.search import Coverage, Limits, ModelTrace, merge
from rebalance_verifier.explore.random.walks import SEARCH_ON, Walk, depth_first, swarm, walk
from rebalance_verifier.model.machine import Event, Machine
from rebalance_verifier.properties.group.rules import Bounded, EachStep, Rules

from tests.explore.liveness.toys_live import NONE, Row, counts_turns, lock, restless, table, until


def replayed(machine: Machine, trace: ModelTrace) -> None:
    """Every event can happen, labels as they come."""
    assert trace.initial in machine.initial
    state = trace.initial
    for event in trace.events:
        state = machine.step(state, event)


def test_a_walk_repeats_and_differs_by_seed():
    machine, rules = lock()
    assert walk(machine, rules, 7, 100) == walk(machine, rules, 7, 100)
    assert len({walk(machine, rules, seed, 100).trace for seed in range(20)}) > 15
    assert {walk(machine, rules, seed, 5).trace.initial for seed in range(20)} == set(machine.initial)


def test_a_walk_is_the_same_under_any_hash_seed():
    code = (
        "from rebalance_verifier.explore.random.walks import walk;"
        "from tests.explore.liveness.toys_live import lock;"
        "print([walk(*lock(), seed, 60).trace for seed in range(5)])"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed},
            cwd=Path(__file__).parents[3],
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1


def shaken(machine: Machine, rules: Rules) -> Rules:
    """With a clause that breaks early, when the lock is shaken, beside the one that breaks when it opens."""
    shows = rules.sometimes[0].shows
    mild = EachStep("mild/shaken", lambda event, seen: "shaken" if shows(event, seen) else None)
    return rules._replace(each_step=(mild,))


MILD = frozenset({"mild/shaken"})


def test_a_mild_breach_does_not_hide_a_worse_one():
    machine, rules = lock(digits=4)
    rules = shaken(machine, rules)
    hidden = [walk(machine, rules, seed, 60) for seed in range(60)]
    shown = [walk(machine, rules, seed, 60, mild=MILD) for seed in range(60)]
    names = [[b.clause for b in one.broken] for one in shown]
    assert ["safe/closed", "mild/shaken"] in names, "the worse one first"
    opened = [
        sum(b.clause == "safe/closed" for one in walks for b in one.broken) for walks in (hidden, shown)
    ]
    assert opened[1] > opened[0]
    for one in shown:
        replayed(machine, one.trace)
        assert len(one.trace.events) == 60 or one.broken[0].clause == "safe/closed"
    assert [one.broken for one in swarm(machine, rules, 1, walks=20, steps=60, mild=MILD)]
    found = list(depth_first(machine, rules, 8, mild=MILD))
    assert {b.clause for one in found for b in one.broken} == {"safe/closed", "mild/shaken"}


def test_after_a_mild_breach_depth_first_search_looks_at_so_many_states():
    """At least at as many as before it: those count that are met again, too."""
    machine = table(Row("on", {at: (at + 1,) for at in range(9)}))
    rules = Rules(each_step=(EachStep("mild/step", lambda event, seen: "a step"),))
    seen: list[Coverage] = []
    for most in (2, SEARCH_ON, None):
        mild = frozenset({"mild/step"})
        (first,) = depth_first(machine, rules, 20, mild=mild, search_on=most, progress=seen.append)
        assert len(first.trace.events) == 1, "a longer one is not given again"
    assert [coverage.distinct for coverage in seen] == [4, 10, 10]
    assert len(list(depth_first(machine, rules, 20))) == 1


def test_a_walk_ends_at_its_breach_or_its_bound():
    machine, rules = lock(digits=4)
    walks = [walk(machine, rules, seed, 40) for seed in range(60)]
    broken = [one for one in walks if one.broken]
    assert 10 < len(broken) < 60
    for one in walks:
        replayed(machine, one.trace)
        assert bool(one.broken) is (len(one.trace.events) < 40) or len(one.trace.events) == 40
    assert {b.clause for one in broken for b in one.broken} == {"safe/closed"}
    assert {b.sentence for one in broken for b in one.broken} == {"the lock is open"}


@pytest.mark.slow
def test_swarms_open_locks_that_a_fair_coin_leaves_shut():
    machine, rules = lock(digits=8, noises=3)
    swarmed = sum(bool(walk(machine, rules, seed, 150).broken) for seed in range(100))
    fair = sum(bool(walk(machine, rules, seed, 150, swarm=False).broken) for seed in range(100))
    assert swarmed > 2 * fair


def test_swarm_yields_breaches_and_reports_all_walks():
    machine, rules = lock(digits=4)
    so_far: list[Coverage] = []
    found = list(swarm(machine, rules, 1, walks=30, steps=40, progress=so_far.append))
    assert 0 < len(found) < 30
    assert all(one.broken for one in found)
    assert [coverage.runs for coverage in so_far] == list(range(1, 31))
    assert so_far[-1].witnesses["sometimes/shaken"] > 0
    assert so_far[-1].never_taken == ()
    assert found == list(swarm(machine, rules, 1, walks=30, steps=40))


def test_coverage_of_walks_merges_with_that_of_searches():
    machine, rules = lock()
    one, two = walk(machine, rules, 1, 50).coverage, explore(machine, rules).coverage
    both = merge([one, two])
    assert both.runs == 2
    assert both.generated == one.generated + two.generated
    assert both.taken["shake", -1].states == one.taken["shake", -1].states + two.taken["shake", -1].states


def test_ends_and_counts_are_judged():
    stuck = table(Row("go", {0: (1,)}), Row("break", {0: (3,)}, NONE, True))
    ends = {walk(stuck, Rules(finally_=(until(1),)), seed, 9).broken[0:1] for seed in range(9)}
    assert {broken[0].clause for broken in ends if broken} == {"live/there"}
    assert () in ends
    idle = table(Row("nod", {0: (0,)}))
    assert walk(idle, Rules(finally_=(until(1),)), 1, 9).broken  # it may nod for ever
    machine, _, bound = restless()
    one = walk(machine, Rules(bounded=(bound,)), 1, 50)
    assert [b.clause for b in one.broken] == ["live/joins"]
    replayed(machine, one.trace)
    click = EachStep("safe/quiet", lambda event, seen: "clicked" if "click" in seen else None)
    assert walk(lock()[0], Rules(each_step=(click,)), 1, 50).broken


def depth_first_of(depth: int, states: int | None = None) -> tuple[list[Walk], Coverage]:
    machine, rules = lock(digits=5)
    last: list[Coverage] = []
    found = list(depth_first(machine, rules, depth, states=states, progress=last.append))
    for one in found:
        replayed(machine, one.trace)
    return found, last[-1]


def test_depth_first_finds_what_is_within_the_bound_and_nothing_else():
    assert depth_first_of(4)[0] == []
    found, _ = depth_first_of(5)
    assert {len(one.trace.events) for one in found} == {5}
    assert {b.clause for one in found for b in one.broken} == {"safe/closed"}


@pytest.mark.parametrize("depth", [0, 1, 3, 6, 30])
def test_depth_first_sees_every_state_within_the_bound(depth: int):
    machine, rules = lock(digits=5)
    silent = Rules(sometimes=rules.sometimes)
    last: list[Coverage] = []
    assert not list(depth_first(machine, silent, depth, progress=last.append))
    search = explore(machine, silent, Limits(depth=depth))
    assert last[-1].distinct == search.distinct


def test_depth_first_stops_at_its_states():
    _, coverage = depth_first_of(30, states=7)
    assert coverage.distinct == 7


def test_depth_first_judges_runs():
    rules = Rules(bounded=(Bounded("few", counts_turns, 2),))
    found = next(depth_first(lock(digits=5)[0], rules, 6))
    assert sum(map(counts_turns, found.trace.events)) >= 3
    assert [b.clause for b in found.broken] == ["few"]
    assert Event("turn", 0) in found.trace.events
