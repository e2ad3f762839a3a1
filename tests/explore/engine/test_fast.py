"""What only the fast engine has: symmetry, exactness, bounds; and the tables that it is made of."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from itertools import islice, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rebalance_verifier.explore.engine import fast, orbits, plain, tables
from rebalance_verifier.explore.engine.fast import Collision
from rebalance_verifier.explore.engine.search import Exploration, Limits, Progress, Stop
from rebalance_verifier.explore.engine.tables import Lookup
from rebalance_verifier.explore.engine.visited import Index, Visited, firsts, grouped
from rebalance_verifier.model.machine import Action, Labels, Machine, Outcome, Permutation, State, Value, When
from rebalance_verifier.properties.group.rules import Rules

from tests.explore.random_machines import machines
from tests.explore.toys import Member, coordinator, puzzle, replay

GO_ON = Limits(go_on=True)


def count_orbits(machine: Machine, states: list[State]) -> int:
    """How many orbits the states fall into, by renaming each in every way."""
    left, count = set(states), 0
    for state in states:
        if state in left:
            count += 1
            left -= {machine.permuted(state, symmetry) for symmetry in machine.symmetries}
    return count


def all_states(found: Exploration) -> list[State]:
    graph = found.graph()
    return [graph.state(index) for index in range(graph.states)]


def check_symmetry(machine: Machine, rules: Rules, whole: Exploration, reduced: Exploration) -> None:
    """One state of each orbit, at the same depth; the orbits add up; the same clauses are broken."""
    assert reduced.distinct == count_orbits(machine, all_states(whole))
    assert reduced.unreduced == whole.distinct
    assert (reduced.depth, reduced.stop) == (whole.depth, whole.stop)
    assert (reduced.least, reduced.most, reduced.deadlock_depth) == (
        *(whole.least, whole.most),
        whole.deadlock_depth,
    )
    assert {(b.clause, b.depth) for b in reduced.breaches} == {(b.clause, b.depth) for b in whole.breaches}
    assert [(w.clause, w.depth) for w in reduced.witnesses] == [(w.clause, w.depth) for w in whole.witnesses]
    for breach in reduced.breaches:
        ours, theirs = set(reduced.traces(breach.clause)), set(whole.traces(breach.clause))
        assert ours == theirs


@pytest.mark.parametrize(
    "toy", [coordinator(2, 2, 1), coordinator(3, 1, 1), coordinator(2, 2, 1, withhold=False)]
)
@pytest.mark.parametrize("exact", [False, True])
def test_symmetry(toy: tuple[Machine, Rules], exact: bool) -> None:
    whole = plain.explore(*toy, GO_ON)
    reduced = fast.explore(*toy, GO_ON, symmetry=True, exact=exact)
    check_symmetry(*toy, whole, reduced)
    assert reduced.distinct < whole.distinct / 2
    with pytest.raises(ValueError, match="merged by symmetry"):
        reduced.graph()


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(machines())
def test_symmetry_of_random_machines(drawn: tuple[Machine, Rules]) -> None:
    machine, rules = drawn
    whole = fast.explore(machine, rules, Limits(states=500, go_on=True))
    if whole.complete:
        reduced = fast.explore(machine, rules, GO_ON, symmetry=True)
        assert (reduced.distinct, reduced.unreduced) == (
            count_orbits(machine, all_states(whole)),
            whole.distinct,
        )
        for breach in whole.breaches:
            trace = reduced.trace(breach.clause)
            assert len(trace.events) == breach.depth
            replay(machine, *trace)


def test_symmetry_with_ties(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the keys of an orbit's states tie, their hashes decide."""
    monkeypatch.setattr(orbits, "LOW_BITS", 1)
    monkeypatch.setattr(orbits, "HIGH", np.uint64(0))
    toy = coordinator(2, 2, 1)
    check_symmetry(*toy, plain.explore(*toy, GO_ON), fast.explore(*toy, GO_ON, symmetry=True))


def test_symmetry_of_traces_with_own_labels() -> None:
    """A trace under symmetry is a run of the machine, which breaks the clause."""
    machine, rules = coordinator(3, 2, 1, withhold=False)
    found = fast.explore(machine, rules, symmetry=True)
    (breach,) = found.breaches
    for trace in islice(found.traces(breach.clause), 20):
        last = replay(machine, *trace)[-1]
        assert rules.always[0].breach(machine.look(last, "owners")) is not None


def test_symmetries_must_be_a_group_that_keeps_labels_and_initial_states() -> None:
    machine, rules = coordinator(3, 2, 1)
    with pytest.raises(ValueError, match="no group"):
        fast.explore(replace(machine, symmetries=machine.symmetries[:3]), rules, symmetry=True)
    budget, group, _, *others = machine.initial[0]
    moved = (budget, group, Member("stable"), *others)
    with pytest.raises(ValueError, match="initial state"):
        fast.explore(replace(machine, initial=(moved,)), rules, symmetry=True)

    odd = Machine(
        components=("a",),
        initial=(("x", 0),),
        actions=(),
        labels=Labels(lambda value: 1, lambda value, names: value),
        symmetries=(Permutation((0,), lambda value: value), Permutation((0,), lambda value: None)),
    )
    mislabelled = replace(odd, initial=(("x",), (None,)), labels=Labels(bool, lambda value, names: value))
    with pytest.raises(ValueError, match="changes the labels"):
        fast.explore(mislabelled, Rules(), symmetry=True)


def test_exact_stops_at_a_collision(monkeypatch: pytest.MonkeyPatch) -> None:
    """With few random bits states collide: the default loses some, ``exact`` says so."""
    machine, rules = coordinator(2, 2, 1)
    mix = tables.splitmix64
    monkeypatch.setattr(tables, "splitmix64", lambda numbers: mix(numbers) >> np.uint64(54) << np.uint64(54))
    whole = plain.explore(machine, rules)
    assert fast.explore(machine, rules).distinct < whole.distinct
    with pytest.raises(Collision):
        fast.explore(machine, rules, exact=True)


def test_bounds() -> None:
    """A bound says which it was; the level in which memory runs out is dropped."""
    machine, rules = coordinator(3, 2, 2)
    whole = fast.explore(machine, rules)
    assert (whole.stop, whole.complete) == (Stop.COMPLETE, True)
    few = fast.explore(machine, rules, Limits(states=100))
    assert (few.stop, few.levels) == (Stop.STATES, whole.levels[: few.depth + 1])
    assert sum(few.levels[:-1]) < 100 <= few.distinct
    none = fast.explore(machine, rules, Limits(memory=-1))
    assert (none.stop, none.distinct, none.generated) == (Stop.MEMORY, 1, 0)
    assert 0 < whole.collision < 1e-9
    assert whole.mean == whole.generated / whole.distinct


def test_progress() -> None:
    machine, rules = puzzle()
    seen: list[Progress] = []
    whole = fast.explore(machine, rules, GO_ON, progress=seen.append)
    assert [p.distinct - q.distinct for q, p in pairwise(seen)][:3] == [3, 3, 4]
    assert (seen[-1].distinct, seen[-1].generated, seen[-1].frontier) == (36, whole.generated, 0)


def test_progress_within_a_level(monkeypatch: pytest.MonkeyPatch) -> None:
    machine, rules = puzzle()
    whole: list[Progress] = []
    fast.explore(machine, rules, GO_ON, progress=whole.append)
    monkeypatch.setattr(fast, "BLOCK", 2)
    seen: list[Progress] = []
    fast.explore(machine, rules, GO_ON, progress=seen.append)
    assert [p.distinct for p in seen] == sorted(p.distinct for p in seen), "it only grows"
    assert {p.distinct for p in seen} > {p.distinct for p in whole}
    assert {p._replace(seconds=0) for p in seen} > {p._replace(seconds=0) for p in whole}


@pytest.mark.parametrize("exact", [False, True])
def test_a_level_in_several_blocks_is_that_level(monkeypatch: pytest.MonkeyPatch, exact: bool) -> None:
    toy = coordinator(2, 2, 1, withhold=False)
    whole = fast.explore(*toy, GO_ON, symmetry=True, exact=exact)
    monkeypatch.setattr(fast, "BLOCK", 3)
    parts = fast.explore(*toy, GO_ON, symmetry=True, exact=exact)
    assert (parts.distinct, parts.generated, parts.levels) == (whole.distinct, whole.generated, whole.levels)
    assert parts.unreduced == whole.unreduced > whole.distinct


def test_actions_are_called_once_per_footprint() -> None:
    calls: list[tuple[int, int]] = []

    def add(a: int, b: int) -> list[Outcome]:
        calls.append((a, b))
        return [Outcome(((a + b) % 3,))] if b else []

    spin = Action(name="spin", who=-1, reads=("c",), writes=("c",), run=lambda c: [Outcome(((c + 1) % 50,))])
    start = tuple((0, b, 0) for b in range(3))
    machine = Machine(
        components=("a", "b", "c"),
        initial=start,
        actions=(Action(name="add", who=-1, reads=("a", "b"), writes=("a",), run=add), spin),
    )
    assert fast.explore(machine, Rules()).distinct == 50 * (1 + 3 + 3)
    assert sorted(calls) == [(a, b) for a in range(3) for b in range(3) if b or not a]


@pytest.mark.parametrize("guard", [None, lambda a: a < 9])
def test_conditions_save_calls_and_change_nothing(guard: Callable[[Value], bool] | None) -> None:
    """What ``when`` says is not asked of ``run``; the plain engine, which asks all, finds the same."""
    calls: list[tuple[int, int]] = []

    def add(a: int, b: int) -> list[Outcome]:
        calls.append((a, b))
        return [Outcome(((a + 1) % 9, (a + b) % 4))] if b < 2 else []

    up = Action(name="up", who=-1, reads=("b",), writes=("b",), run=lambda b: [Outcome(((b + 1) % 4,))])
    adds = Action(
        name="add",
        who=-1,
        reads=("a", "b"),
        writes=("a", "b"),
        run=add,
        guard=guard,
        when=(When(("b",), lambda b: b < 2),),
    )
    machine = Machine(components=("a", "b"), initial=((0, 0),), actions=(adds, up))
    assert fast.explore(machine, Rules()).counts == plain.explore(machine, Rules()).counts
    calls.clear()
    fast.explore(machine, Rules())
    assert len(calls) == 18
    assert all(b < 2 for _, b in calls)


def test_labels_must_fit_64_bits() -> None:
    up = Action(name="up", who=-1, reads=("a",), writes=("a",), run=lambda a: [Outcome((a + 32,))])
    labels = Labels(lambda a: 1 << int(str(a)), lambda a, names: a)
    machine = Machine(components=("a",), initial=((0,),), actions=(up,), labels=labels)
    with pytest.raises(ValueError, match="label above 63"):
        fast.explore(machine, Rules())


# -- tables --------------------------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(st.lists(st.sampled_from([1, 3, 40, 5000, 2**20, 2**28]), min_size=1, max_size=7), st.integers(0, 99))
def test_lookup(limits: list[int], seed: int) -> None:
    """Every tuple is asked for once, whichever way it is stored, while the parts grow."""
    rng = random.Random(seed)
    parts = [range(1)] * len(limits)
    numbers: dict[tuple[int, ...], int] = {}

    def ask(tuples: list[list[int]]) -> list[int]:
        for one in tuples:
            assert numbers.setdefault(tuple(one), len(numbers)) == len(numbers) - 1
        return [numbers[tuple(one)] for one in tuples]

    lookup = Lookup(parts, ask)
    for share in (0.001, 0.1, 0.3, 1.0):
        if lookup.halves is None:
            lookup.parts[:] = parts[:] = [range(1 + int(limit * share)) for limit in limits]
        else:
            _grow(lookup, iter([range(1 + int(limit * share)) for limit in limits]))
        rows = [[rng.randrange(1 + int(limit * share)) for limit in limits] for _ in range(300)]
        found = lookup.find([np.array(part, np.uint32) for part in zip(*rows, strict=True)])
        assert found.tolist() == [numbers[tuple(row)] for row in rows]
    assert len(lookup) == len(numbers)


def _grow(lookup: Lookup, sizes: object) -> None:
    if lookup.halves is None:
        lookup.parts[:] = list(islice(sizes, len(lookup.parts)))  # type: ignore[call-overload]
    else:
        for half in lookup.halves:
            _grow(half, sizes)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.lists(st.integers(1, 2**64 - 1), max_size=20), max_size=9))
def test_visited(batches: list[list[int]]) -> None:
    visited, index = Visited(), Index()
    known: dict[int, int] = {}
    for batch in batches:
        hashes = np.array(batch, np.uint64)
        unique, at, which = grouped(hashes)
        assert unique.tolist() == sorted(set(batch))
        assert [batch[i] for i in at.tolist()] == unique.tolist()
        assert [unique.tolist()[i] for i in which.tolist()] == batch
        assert at.tolist() == [batch.index(h) for h in unique.tolist()] == firsts(hashes)[1].tolist()
        there = visited.contains(unique)
        assert there.tolist() == [h in known for h in unique.tolist()]
        assert index.find(unique).tolist() == [known.get(h, -1) for h in unique.tolist()]
        assert all(h in known for h in unique[~visited.not_recent(unique)].tolist())
        new = unique[~there]
        index.add(new, np.arange(len(known), len(known) + len(new)))
        known |= {h: len(known) + i for i, h in enumerate(new.tolist())}
        visited.add(new)
    assert len(visited) == len(known)
