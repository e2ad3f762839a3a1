"""Long traces made short: still breaking the clause, and how near to the shortest."""

from __future__ import annotations

from random import Random
from statistics import median

import pytest
from rebalance_verifier.explore.engine.plain import explore
from rebalance_verifier.explore.engine.search import ModelTrace
from rebalance_verifier.explore.random.minimise import minimise
from rebalance_verifier.explore.random.walks import depth_first, swarm
from rebalance_verifier.model.machine import Event, Machine, State
from rebalance_verifier.properties.group.rules import Bounded, EachStep, Rules

from tests.explore.liveness.toys_live import NONE, Row, counts_turns, lock, restless, table, until
from tests.explore.toys import coordinator


def end(machine: Machine, trace: ModelTrace) -> State:
    state = trace.initial
    for event in trace.events:
        state = machine.step(state, event)
    return state


def ratios(toy: tuple[Machine, Rules], states: int) -> list[float]:
    """Length of minimised walks by the length of the shortest trace."""
    machine, rules = toy
    shortest = explore(machine, rules).breaches[0]
    lengths = []
    for one in swarm(machine, rules, 1, walks=60, steps=200):
        if any(broken.clause == shortest.clause for broken in one.broken):
            small = minimise(machine, rules, shortest.clause, one.trace, states=states)
            end(machine, small.trace)  # it can happen
            assert len(small.trace.events) <= len(one.trace.events)
            if small.shortest:
                assert len(small.trace.events) == shortest.depth
            lengths.append(len(small.trace.events) / shortest.depth)
    assert len(lengths) >= 5
    return lengths


@pytest.mark.slow
@pytest.mark.covering
@pytest.mark.parametrize("toy", [lock(digits=6), coordinator(2, 2, withhold=False)], ids=["lock", "group"])
def test_near_the_shortest_with_a_little_effort_and_shortest_with_more(toy: tuple[Machine, Rules]):
    little, more = ratios(toy, 3), ratios(toy, 2000)
    assert median(little) <= 1.5
    assert set(more) == {1.0}


@pytest.mark.slow
def test_choices_that_are_gone_are_made_anew():
    # Dropping alone gets 1.43 in the median here: a plan for fewer members is another choice.
    assert set(ratios(coordinator(4, 3, withhold=False, joins=2), 0)) == {1.0}


def test_the_actions_of_the_trace_are_searched_first():
    go = {0: (1, 50), 1: (2,), 2: (3,), 3: (4,), 4: (9,), 50: (51,), 51: (9,)}
    noise = {at: tuple(range(100 * at + 100, 100 * at + 150)) for at in go}
    machine = table(Row("go", go), Row("noise", noise))
    rules = Rules(each_step=(EachStep("safe", lambda e, seen: "there" if e.choice == "9" else None),))
    long = ModelTrace((0,), tuple(Event("go", 0, choice) for choice in "12349"))
    small = minimise(machine, rules, "safe", long, states=3)
    assert len(small.trace.events) == 3
    assert not small.shortest


def test_a_walk_that_was_lucky_stays():
    machine, rules = lock(digits=3)
    trace = ModelTrace((0, 0), tuple(Event("turn", n % 2) for n in range(3)))
    small = minimise(machine, rules, "safe/closed", trace)
    assert small.trace == trace
    assert small.shortest


def test_the_cut_may_lead_from_another_initial_state():
    machine = table(Row("go", {0: (1,), 1: (2,), 2: (3,), 3: (4,)}), initial=(0, 3))
    rules = Rules(each_step=(EachStep("safe", lambda e, seen: "there" if e.choice == "4" else None),))
    long = ModelTrace((0,), tuple(Event("go", 0, str(n)) for n in range(1, 5)))
    small = minimise(machine, rules, "safe", long)
    assert small == (ModelTrace((3,), (Event("go", 0, "4"),)), True)


def test_without_effort_nothing_is_called_shortest():
    machine, rules = lock(digits=6, noises=9)
    one = next(swarm(machine, rules, 3, walks=200, steps=200))
    assert not minimise(machine, rules, "safe/closed", one.trace, states=0).shortest
    as_it_was = minimise(machine, rules, "safe/closed", one.trace, may_go_on=lambda: False)
    assert as_it_was.trace == one.trace
    assert not as_it_was.shortest


def test_short_from_the_middle_is_not_called_shortest():
    detour = {0: (1, *range(100, 171)), 1: (2,), 2: (3,), 3: (4, 5), 5: (9,), 4: (6,), 6: (9,), 170: (9,)}
    machine = table(Row("go", detour))
    rules = Rules(each_step=(EachStep("safe", lambda e, seen: "there" if e.choice == "9" else None),))
    long = ModelTrace((0,), tuple(Event("go", 0, choice) for choice in "123469"))
    small = minimise(machine, rules, "safe", long, states=4)
    assert [event.choice for event in small.trace.events] == list("12359")
    assert not small.shortest
    assert len(minimise(machine, rules, "safe", long).trace.events) == 2


def test_dead_ends_and_counts_can_be_minimised():
    idle = {n: ((n + 1) % 9,) for n in range(9)}
    machine = table(Row("spin", idle), Row("break", {n: (20 + n,) for n in range(9)}, NONE, True))
    rules = Rules(finally_=(until(),))
    long = ModelTrace((0,), (*(Event("spin", 0, str(n)) for n in range(1, 6)), Event("break", 1, "25")))
    assert minimise(machine, rules, "live/there", long) == (
        ModelTrace((0,), (Event("break", 1, "20"),)),
        True,
    )
    loop, _, bound = restless()
    joins = Rules(bounded=(bound,))
    found = next(swarm(loop, joins, 1, walks=20, steps=30))
    small = minimise(loop, joins, bound.clause, found.trace)
    assert len(small.trace.events) in (3, 4)
    assert not small.shortest  # the way counts, so no search over states can tell
    noisy = Rules(bounded=(Bounded("few", counts_turns, 4),))
    random = Random(1)
    events: list[Event] = []
    state: State = (0, 0)
    locked = lock(digits=20)[0]
    while sum(map(counts_turns, events)) < 9:
        event = random.choice([e for e in locked.enabled(state) if e.action != "shake"])
        state = locked.step(state, event)
        events.append(event)
    small = minimise(locked, noisy, "few", ModelTrace((0, 0), tuple(events)))
    assert len(small.trace.events) == 5


def test_what_does_not_break_is_refused():
    machine, rules = lock()
    with pytest.raises(ValueError, match="does not break safe/closed"):
        minimise(machine, rules, "safe/closed", ModelTrace((0, 0), ()))
    with pytest.raises(ValueError, match="cannot happen after 0 events"):
        minimise(machine, rules, "safe/closed", ModelTrace((0, 0), (Event("shake"),)))


def test_depth_first_runs_get_short():
    machine, rules = coordinator(2, 2, withhold=False)
    one = next(depth_first(machine, rules, 30))
    small = minimise(machine, rules, one.broken[0].clause, one.trace)
    assert len(small.trace.events) < len(one.trace.events)
    assert small.shortest
