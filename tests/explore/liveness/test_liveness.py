"""Liveness: verdicts and least lassos against brute force, and every lasso confirmed by replay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from random import Random
from typing import cast

import networkx as nx
import pytest
from rebalance_verifier.explore.engine import fast
from rebalance_verifier.explore.engine.plain import explore
from rebalance_verifier.explore.engine.search import Exploration, Limits
from rebalance_verifier.explore.liveness import liveness
from rebalance_verifier.explore.liveness.lasso import Lasso, confirm
from rebalance_verifier.explore.liveness.liveness import counts, dead_ends, settles
from rebalance_verifier.model.machine import Event, Fairness, Machine, Permutation, State
from rebalance_verifier.properties.group.rules import Bounded, Finally, Rules

from tests.explore.liveness.toys_live import NONE, STRONG, WEAK, Row, random_table, restless, table, until

NO_RULES = Rules()


def searched(machine: Machine) -> Exploration:
    return explore(machine, NO_RULES, Limits(go_on=True))


def verdict(machine: Machine, rule: Finally) -> liveness.Settling:
    answer = settles(machine, rule, searched(machine))
    if answer.lasso is not None:
        confirm(machine, rule, answer.lasso)
    return answer


# By hand: the cases in which checkers went wrong.


def test_settles_when_it_must():
    machine = table(Row("go", {0: (1,), 1: (2,)}))
    answer = verdict(machine, until(2))
    assert answer.holds
    assert answer.left == 0


def test_a_dead_end_is_for_ever():
    machine = table(Row("go", {0: (1,)}), Row("break", {0: (3,)}, NONE, fault=True))
    answer = verdict(machine, until(1))
    assert answer.lasso == Lasso((0,), (Event("break", 1, "3"),), ())
    assert answer.stuck == 1
    assert answer.least


def test_nobody_has_to_take_an_unfair_step():
    machine = table(Row("go", {0: (1,)}, NONE))
    assert verdict(machine, until(1)).lasso == Lasso((0,), (), ())


def test_faults_need_not_happen():
    machine = table(Row("repair", {0: (1,)}, NONE, fault=True))
    assert verdict(machine, until(1)).lasso == Lasso((0,), (), ())
    assert verdict(machine, until(0, 1)).holds


def test_weak_fairness_leaves_a_cycle_that_is_enabled_all_the_time():
    spin, out = Row("spin", {0: (1,), 1: (0,)}), {0: (2,), 1: (2,)}
    assert verdict(table(spin, Row("out", out)), until(2)).holds
    assert not verdict(table(spin, Row("out", out, NONE)), until(2)).holds


def test_strong_fairness_is_needed_where_the_way_out_comes_and_goes():
    spin, out = Row("spin", {0: (1,), 1: (0,)}), {0: (2,)}
    assert verdict(table(spin, Row("out", out, STRONG)), until(2)).holds
    answer = verdict(table(spin, Row("out", out, WEAK)), until(2))
    assert answer.lasso is not None
    assert len(answer.lasso.cycle) == 2


def test_strong_fairness_inside_a_component_that_is_unfair_as_a_whole():
    # 0 <-> 1 <-> 2, the way out is open in 0 only: the run can keep to 1 <-> 2.
    machine = table(Row("spin", {0: (1,), 1: (0, 2), 2: (1,)}), Row("out", {0: (9,)}, STRONG))
    answer = verdict(machine, until(9))
    assert answer.lasso == Lasso(
        (0,), (Event("spin", 0, "1"),), (Event("spin", 0, "2"), Event("spin", 0, "1"))
    )


def test_what_strong_fairness_leaves_may_be_within_the_goal():
    machine = table(Row("spin", {0: (1,), 1: (0, 2), 2: (1,)}), Row("out", {0: (9,)}, STRONG))
    answer = settles(machine, until(1, 2, 9), searched(machine), effort=0)
    assert answer.holds
    assert answer.parts == 0
    assert answer.left == 3


def test_trimming_alone_proves_what_passes_from_goal_to_goal():
    machine = table(Row("go", {0: (1,), 1: (0, 2), 2: (3,), 3: (4,), 4: (5,), 5: (4,)}))
    assert verdict(machine, until(0, 1, 4, 5)).left == 0
    leads_to_goal = table(Row("go", {0: (1,), 1: (0, 2), 2: (3,), 3: (2,)}))
    assert verdict(leads_to_goal, until(2, 3)).left == 2


def test_a_cycle_that_passes_through_the_goal_does_not_stay_there():
    machine = table(Row("spin", {0: (1,), 1: (0,)}))
    assert not verdict(machine, until(1)).holds
    assert verdict(machine, until(0, 1)).holds


def test_a_step_that_changes_nothing_is_a_cycle():
    answer = verdict(table(Row("idle", {0: (0,)}), Row("nod", {0: (0,)})), until(1))
    assert answer.lasso is not None
    assert len(answer.lasso.cycle) == 2  # fair to both


def test_the_cycle_visits_what_fairness_asks_for():
    # Fair only when "b" is taken, three steps off the short cycle.
    moves = {0: (1,), 1: (0, 2), 2: (3,), 4: (0,)}
    machine = table(Row("a", moves), Row("b", {0: (5,), 1: (5,), 2: (5,), 3: (4,), 4: (5,)}))
    answer = verdict(machine, until(5))
    assert answer.lasso is not None
    assert len(answer.lasso.cycle) == 5
    assert Event("b", 1, "4") in answer.lasso.cycle


def test_labels_make_the_cycle_close_in_normal_form_only():
    machine, goal, _ = restless()
    answer = verdict(machine, goal)
    assert answer.lasso is not None
    state = answer.lasso.initial
    for event in answer.lasso.trace.events:
        state = machine.step(state, event)
    assert machine.normal(state) != state
    assert verdict(restless(quiet=True)[0], goal).holds


def test_symmetry_is_refused():
    machine, goal, bound = restless()
    rules = Rules(finally_=(goal,), bounded=(bound,))
    merged = replace(searched(machine), unreduced=99)
    questions: list[Callable[[], object]] = [
        lambda: settles(machine, goal, merged),
        lambda: counts(machine, bound, merged),
        lambda: dead_ends(machine, merged),
        lambda: liveness.judge(machine, rules, merged),
    ]
    for ask in questions:
        with pytest.raises(ValueError, match="symmetry"):
            ask()


def mirrored(at: int) -> int:
    """The other state of its orbit; 0 stands for itself."""
    return -at


MIRROR = (Permutation((0,), lambda at: at), Permutation((0,), lambda at: mirrored(cast(int, at))))


def by_orbits(machine: Machine, rule: Finally) -> bool:
    found = fast.explore(machine, NO_RULES, Limits(go_on=True), symmetry=True)
    return liveness.settles_by_orbits(machine, Rules(finally_=(rule,)), found)


def test_a_step_to_another_state_of_the_orbit_may_go_round_for_ever():
    # A token goes to and fro. Each may take it out, but neither has it long enough to be obliged to.
    out = (Row("out A", {1: (0,)}), Row("out B", {-1: (0,)}))
    to_and_fro = Row("pass", {1: (-1,), -1: (1,)}, NONE)
    machine = replace(table(*out, to_and_fro, initial=(1, -1)), symmetries=MIRROR)
    answer = verdict(machine, until(0))
    assert answer.lasso is not None
    assert len(answer.lasso.cycle) == 2
    assert not by_orbits(machine, until(0))
    assert by_orbits(replace(table(*out, initial=(1, -1)), symmetries=MIRROR), until(0))


def test_a_step_that_changes_nothing_and_need_not_be_taken_keeps_no_orbit_from_settling():
    out = (Row("out A", {1: (0,)}), Row("out B", {-1: (0,)}))
    nod = Row("nod", {1: (1,), -1: (-1,), 0: (0,)}, NONE)
    machine = replace(table(*out, nod, initial=(1, -1)), symmetries=MIRROR)
    assert verdict(machine, until(0)).holds
    assert by_orbits(machine, until(0))


@pytest.mark.nightly
def test_what_settles_by_orbits_settles():
    said = Counter[tuple[bool, bool]]()
    for seed in range(300):
        random = Random(seed)
        rows = []
        for number in range(3):
            drawn = {at: (random.randint(-3, 3),) for at in range(-3, 4) if random.randrange(5) < 2}
            both = {mirrored(at): tuple(map(mirrored, targets)) for at, targets in drawn.items()}
            fairness = random.choice((NONE, WEAK, STRONG))
            rows += [Row(f"a{number}", drawn, fairness), Row(f"b{number}", both, fairness)]
        machine = replace(table(*rows, initial=(1, -1)), symmetries=MIRROR)
        goal = [at for at in range(4) if random.randrange(3)]
        rule = until(*goal, *map(mirrored, goal))
        said[by_orbits(machine, rule), settles(machine, rule, searched(machine)).holds] += 1
    assert not said[True, False]
    assert said[True, True] > 20
    assert said[False, False] > 20


def test_an_unfinished_search_is_refused():
    machine, goal, _ = restless()
    with pytest.raises(ValueError, match="ended by"):
        settles(machine, goal, explore(machine, NO_RULES, Limits(depth=1)))


# By brute force: every set of states a run may visit for ever, every closed walk.


def steps_of(machine: Machine) -> tuple[dict[State, int], list[tuple[State, Event, State]]]:
    """All reachable states with their depth, and the steps that are no faults."""
    depth = dict.fromkeys(machine.initial, 0)
    frontier, steps = list(machine.initial), []
    while frontier:
        state = frontier.pop(0)
        for event, outcome in machine.outcomes(state):
            after = machine.apply(state, event, outcome)
            if after not in depth:
                depth[after] = depth[state] + 1
                frontier.append(after)
            if not machine.by_name[event.action, event.who].fault:
                steps.append((state, event, after))
    return depth, steps


def fair_set(machine: Machine, states: set[State], taken: set[str], steps) -> bool:
    for action in machine.actions:
        enabled = {source for source, event, _ in steps if event.action == action.name}
        if action.name in taken or action.fault:
            continue
        if action.fairness is Fairness.WEAK and states <= enabled:
            return False
        if action.fairness is Fairness.STRONG and states & enabled:
            return False
    return True


def breaks_by_force(machine: Machine, rule: Finally) -> bool:
    depth, steps = steps_of(machine)
    for size in range(1, len(depth) + 1):
        for chosen in combinations(depth, size):
            states = set(chosen)
            inner = [s for s in steps if s[0] in states and s[2] in states]
            if all(rule.holds(*state) for state in states):
                continue
            graph: nx.DiGraph[State] = nx.DiGraph()
            graph.add_nodes_from(states)
            graph.add_edges_from((a, b) for a, _, b in inner)
            if (inner or size == 1) and nx.is_strongly_connected(graph):
                taken = {event.action for _, event, _ in inner}
                if fair_set(machine, states, taken, steps) and (inner or rests(machine, chosen[0])):
                    return True
    return False


def rests(machine: Machine, state: State) -> bool:
    return not any(
        machine.by_name[event.action, event.who].fairness is not NONE
        for event, _ in machine.outcomes(state, faults=False)
    )


def least_by_force(machine: Machine, rule: Finally) -> int | None:
    """The least depth + length over all fair closed walks and resting states in which the goal fails."""
    depth, steps = steps_of(machine)
    sums = [depth[s] for s in depth if rests(machine, s) and not rule.holds(*s)]
    for start in depth:
        walks = {(start, frozenset([start]), frozenset[str]())}
        known, length, found = set(walks), 0, False
        while walks and not found:
            length += 1
            beyond = set()
            for at, states, taken in walks:
                for source, event, target in steps:
                    if source == at:
                        beyond.add((target, states | {target}, taken | {event.action}))
            found = any(
                at == start
                and not all(rule.holds(*s) for s in states)
                and fair_set(machine, set(states), set(taken), steps)
                for at, states, taken in beyond
            )
            walks, known = beyond - known, known | beyond
        if found:
            sums.append(depth[start] + length)
    return min(sums, default=None)


@pytest.mark.parametrize("block", range(3))
def test_verdict_and_least_lasso_against_brute_force(block: int):
    broken = 0
    for seed in range(block * 100, block * 100 + 100):
        machine, rule = random_table(seed)
        answer = verdict(machine, rule)
        assert answer.holds is not breaks_by_force(machine, rule), seed
        if answer.lasso is not None:
            broken += 1
            assert answer.least
            assert len(answer.lasso.trace.events) == least_by_force(machine, rule), seed
            rough = settles(machine, rule, searched(machine), effort=0)
            assert rough.lasso is not None
            confirm(machine, rule, rough.lasso)
    assert 20 < broken < 90  # both verdicts occur


def test_the_fast_engine_gives_the_same_verdicts():
    for seed in range(40):
        machine, rule = random_table(seed)
        bound = steps_named("a1", 2)
        one, other = (
            liveness.judge(machine, Rules(finally_=(rule,), bounded=(bound,)), search)
            for search in (searched(machine), fast.explore(machine, NO_RULES))
        )
        assert one.settling[0]._replace(lasso=None) == other.settling[0]._replace(lasso=None)
        assert one.counts[0].reached == other.counts[0].reached
        assert one.dead_ends.states == other.dead_ends.states
        if other.settling[0].lasso is not None:
            confirm(machine, rule, other.settling[0].lasso)


# The replay does not believe everything.


def test_confirm_refuses_what_is_no_lasso():
    spin = Row("spin", {0: (1,), 1: (0,), 3: (3,)})
    machine = table(
        spin, Row("out", {0: (2,), 1: (2,)}), Row("odd", {0: (3,)}, STRONG), Row("hit", {1: (0,)}, NONE, True)
    )
    rule = until(2)
    there, back = Event("spin", 0, "1"), Event("spin", 0, "0")

    def refused(lasso: Lasso, why: str, goal: Finally | Bounded = rule) -> None:
        with pytest.raises(ValueError, match=why):
            confirm(machine, goal, lasso)

    refused(Lasso((7,), (), ()), "initial")
    refused(Lasso((0,), (), (there,)), "does not end")
    refused(Lasso((0,), (back,), ()), "not enabled")
    refused(Lasso((0,), (), (there, Event("hit", 3, "0"))), "fault")
    refused(Lasso((0,), (), (there, back)), r"\('out', 1\) is weakly fair")
    refused(Lasso((0,), (there,), ()), "'spin', 0.* is weakly fair")
    refused(Lasso((0,), (Event("odd", 2, "3"),), (Event("spin", 0, "3"),)), "holds in every state", until(3))
    refused(Lasso((0,), (), (there, back)), "no step", Bounded("never", lambda event: False, 0))
    strong = table(spin, Row("odd", {0: (2,)}, STRONG))
    with pytest.raises(ValueError, match="strongly fair"):
        confirm(strong, rule, Lasso((0,), (), (there, back)))
    confirm(machine, rule, Lasso((0,), (Event("odd", 2, "3"),), (Event("spin", 0, "3"),)))


# Counting.


def steps_named(name: str, most: int) -> Bounded:
    return Bounded("live/few", lambda event: event.action == name, most)


def test_the_longest_run_counts():
    machine = table(
        Row("count", {0: (1,), 1: (2,), 5: (6,), 6: (7,), 7: (8,)}),
        Row("skip", {0: (2,), 2: (3,), 3: (2,), 8: (0,)}),
        Row("fall", {1: (5,)}, NONE, fault=True),
    )
    answer = counts(machine, steps_named("count", 4), searched(machine))
    assert answer.reached == 5  # 5, 6, 7, 8, 0, 1, 2: the cycle of 2 and 3 does not count
    assert not answer.holds
    assert answer.trace is not None
    assert [event.choice for event in answer.trace.events] == ["1", "5", "6", "7", "8", "0", "1", "2"]
    assert answer.faulty == 2
    assert counts(machine, steps_named("count", 5), searched(machine)).holds


def test_a_counted_cycle_has_no_bound():
    machine = table(Row("count", {0: (1,), 1: (2,)}), Row("back", {2: (1,)}, NONE))
    answer = counts(machine, steps_named("count", 9), searched(machine))
    assert answer.reached is None
    assert not answer.holds
    assert answer.lasso is not None
    assert [event.choice for event in answer.lasso.stem + answer.lasso.cycle] == ["1", "2", "1"]
    confirm(machine, steps_named("count", 9), answer.lasso)
    assert answer.fair
    escape = table(Row("count", {0: (1,), 1: (0,)}), Row("out", {0: (2,), 1: (2,)}))
    assert not counts(escape, steps_named("count", 9), searched(escape)).fair


def longest_by_force(machine: Machine, rule: Bounded) -> int | None:
    """Longest path by relaxation; a machine of n states with a count beyond n has none."""
    depth, steps = steps_of(machine)
    best = dict.fromkeys(depth, 0)
    for _ in range(2 * len(depth) ** 2):
        for source, event, target in steps:
            best[source] = max(best[source], best[target] + rule.counts(event))
    most = max(best.values())
    return most if most <= len(depth) else None


def test_counts_against_brute_force():
    seen = set()
    for seed in range(150):
        machine, _ = random_table(seed, states=6)
        rule = steps_named("a1", 2)
        answer = counts(machine, rule, searched(machine))
        assert answer.reached == longest_by_force(machine, rule), seed
        seen.add(answer.reached)
        if answer.lasso is not None:
            confirm(machine, rule, answer.lasso)
        else:
            assert answer.trace is not None
            assert sum(map(rule.counts, answer.trace.events[answer.faulty :])) == answer.reached
    assert {None, 0, 1, 2} <= seen


def test_counting_by_choice_is_refused():
    machine = table(Row("count", {0: (1,)}))
    with pytest.raises(ValueError, match="choice"):
        counts(machine, Bounded("odd", lambda event: event.choice != "1", 2), searched(machine))


# Dead ends.


def test_dead_ends():
    machine = table(
        Row("go", {0: (1,), 1: (2,), 4: (4,)}),
        Row("break", {1: (3, 4)}, NONE, True),
        Row("fix", {3: (0,)}, NONE, True),
    )
    every = dead_ends(machine, searched(machine))
    assert every.states == 3  # 2, 3 and 4
    others = dead_ends(machine, searched(machine), [until(2)])
    assert others.states == 2
    assert others.nearest is not None
    assert len(others.nearest.events) == 2
    assert dead_ends(machine, searched(machine), [until(2, 3, 4)]) == (0, None)
    assert dead_ends(machine, searched(machine), [until(2, 3), until(2, 4)]).states == 2


def test_all_rules_from_one_graph():
    machine, goal, bound = restless()
    search = searched(machine)
    both = liveness.judge(machine, Rules(finally_=(goal,), bounded=(bound,)), search)
    assert both.settling == (settles(machine, goal, search),)
    assert both.counts == (counts(machine, bound, search),)
    assert both.dead_ends.states == 0
    assert not both.holds
    quiet, goal, bound = restless(quiet=True)
    assert liveness.judge(quiet, Rules(finally_=(goal,), bounded=(bound,)), searched(quiet)).holds
