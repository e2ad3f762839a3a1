"""The two engines say the same of every machine."""

from __future__ import annotations

from collections import Counter
from itertools import islice

import pytest
from hypothesis import given, settings
from rebalance_verifier.explore.engine import fast, plain
from rebalance_verifier.explore.engine.search import (
    DEADLOCK,
    Exploration,
    Graph,
    Limits,
    ModelTrace,
    Stop,
    merge,
)
from rebalance_verifier.model.machine import Machine, State
from rebalance_verifier.properties.group.rules import Rules

from tests.explore.random_machines import machines
from tests.explore.toys import coordinator, puzzle, replay

GO_ON = Limits(go_on=True)
TOYS = {
    "puzzle": puzzle(),
    "2 members": coordinator(2, 2, 2),
    "3 members": coordinator(3, 1, 2),
    "2 members, bug": coordinator(2, 2, 1, withhold=False),
    "3 members, bug": coordinator(3, 1, 1, withhold=False),
}


def same_traces(machine: Machine, one: Exploration, other: Exploration, most: int = 2000) -> None:
    """Both find the same shortest traces, and these are runs of the machine."""
    clauses = [b.clause for b in one.breaches] + [w.clause for w in one.witnesses if w.count]
    clauses += [DEADLOCK] if one.deadlocks else []
    for clause in clauses:
        ours, theirs = list(islice(one.traces(clause), most)), list(islice(other.traces(clause), most))
        assert ours
        if len(ours) < most:
            assert sorted(ours, key=repr) == sorted(theirs, key=repr), clause
        assert len(set(ours)) == len(ours)
        for trace in theirs[:50]:
            assert trace.initial in machine.initial
            replay(machine, *trace)


def edges(graph: Graph) -> Counter[tuple[State, State, int]]:
    rows = zip(graph.source.tolist(), graph.target.tolist(), graph.action.tolist(), strict=True)
    return Counter((graph.state(a), graph.state(b), action) for a, b, action in rows)


@pytest.mark.parametrize("toy", TOYS)
@pytest.mark.parametrize("limits", [GO_ON, Limits(), Limits(depth=4), Limits(states=20)], ids=str)
def test_counts(toy: str, limits: Limits) -> None:
    machine, rules = TOYS[toy]
    assert fast.explore(machine, rules, limits).counts == plain.explore(machine, rules, limits).counts


@pytest.mark.parametrize("toy", TOYS)
def test_traces(toy: str) -> None:
    machine, rules = TOYS[toy]
    same_traces(machine, plain.explore(machine, rules, GO_ON), fast.explore(machine, rules, GO_ON))


@pytest.mark.parametrize("engine", [plain, fast])
@pytest.mark.parametrize("toy", ["puzzle", "2 members, bug"])
def test_all_shortest_traces(engine: object, toy: str) -> None:
    """Every run of that length that breaks the rule in its last state, by trying all of them."""
    machine, rules = TOYS[toy]
    found = engine.explore(machine, rules, GO_ON)  # type: ignore[attr-defined]
    rule = rules.always[0]
    runs = [(ModelTrace(state, ()), state) for state in machine.initial]
    depth = next(breach.depth for breach in found.breaches if breach.clause == rule.clause)
    for _ in range(depth):
        runs = [
            (ModelTrace(trace.initial, (*trace.events, event)), machine.apply(state, event, outcome))
            for trace, state in runs
            for event, outcome in machine.outcomes(state)
        ]
    bad = {t for t, state in runs if rule.breach(*(machine.look(state, view) for view in rule.views))}
    assert len(bad) > 1
    assert sorted(found.traces(rule.clause), key=repr) == sorted(bad, key=repr)


@pytest.mark.parametrize("toy", ["puzzle", "2 members"])
def test_graph(toy: str) -> None:
    machine, rules = TOYS[toy]
    ours, theirs = (engine.explore(machine, rules, GO_ON).graph() for engine in (plain, fast))
    assert (ours.states, ours.sizes) == (theirs.states, theirs.sizes)
    assert edges(ours) == edges(theirs)
    for graph in (ours, theirs):
        assert graph.depth(0) == 0
        assert graph.depth(graph.states - 1) == len(graph.sizes) - 1
        assert not any(machine.actions[action].fault for action in graph.action.tolist())


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(machines())
def test_random_machines(drawn: tuple[Machine, Rules]) -> None:
    machine, rules = drawn
    ours = plain.explore(machine, rules, Limits(states=500, go_on=True))
    theirs = fast.explore(machine, rules, Limits(states=500, go_on=True))
    assert ours.counts == theirs.counts
    same_traces(machine, ours, theirs, 200)
    if ours.complete:
        assert edges(ours.graph()) == edges(theirs.graph())
        assert fast.explore(machine, rules, GO_ON, exact=True).counts == ours.counts


@pytest.mark.parametrize("engine", [plain, fast])
def test_traces_to_a_state(engine: object) -> None:
    machine, rules = TOYS["2 members"]
    found = engine.explore(machine, rules, GO_ON)  # type: ignore[attr-defined]
    graph = found.graph()
    for index in (0, 7, graph.states - 1):
        traces = list(islice(found.traces_to(index), 20))
        assert traces
        for trace in traces:
            assert len(trace.events) == graph.depth(index)
            assert machine.normal(replay(machine, *trace)[-1]) == graph.state(index)


@pytest.mark.parametrize("engine", [plain, fast])
def test_what_is_found(engine: object) -> None:
    """The puzzle is small enough to know the answers."""
    machine, rules = puzzle(5)
    found = engine.explore(machine, rules, GO_ON)  # type: ignore[attr-defined]
    assert (found.distinct, found.complete, found.levels[0], found.deadlocks) == (36, True, 2, 1)
    assert found.coverage.never_taken == (("never", -1),)
    assert [(b.clause, b.sentence, b.depth) for b in found.breaches] == [
        ("not-apart", "0 < 3", 2),
        ("no-jump", "jumped", 6),
        ("not-at-top", "both are there", 8),
    ]
    assert len(found.trace("not-apart").events) == 2
    first = engine.explore(machine, rules)  # type: ignore[attr-defined]
    assert (first.stop, first.depth, len(first.breaches)) == (Stop.BREACH, 2, 1)
    with pytest.raises(ValueError, match="was not met"):
        first.traces("not-at-top")
    with pytest.raises(ValueError, match="no graph"):
        first.graph()


@pytest.mark.parametrize("engine", [plain, fast])
def test_what_was_never_shown_has_no_traces(engine: object) -> None:
    machine, rules = TOYS["2 members"]
    found = engine.explore(machine, rules, Limits(depth=1, go_on=True))  # type: ignore[attr-defined]
    missed = [witness.clause for witness in found.witnesses if not witness.count]
    assert missed
    for clause in missed:
        with pytest.raises(ValueError, match="was not met"):
            found.traces(clause)


def test_coverage_merges() -> None:
    """What one run leaves out another may cover."""
    machine, rules = puzzle(5)
    short, whole = (plain.explore(machine, rules, Limits(depth=d, go_on=True)).coverage for d in (1, 100))
    both = merge([short, whole])
    assert ("jump", 1) in short.never_taken
    assert ("jump", 1) not in both.never_taken
    assert both.never_taken == (("never", -1),)
    assert both.generated == short.generated + whole.generated
    assert (both.runs, both.depth, both.missed) == (2, whole.depth, ())
