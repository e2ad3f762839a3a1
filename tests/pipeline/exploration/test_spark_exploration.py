"""The engine on Spark says what the local ones say, and goes on where it was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from itertools import islice
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rebalance_verifier.explore.engine import fast
from rebalance_verifier.explore.engine.search import DEADLOCK, Exploration, Limits, Stop
from rebalance_verifier.explore.engine.space import Space
from rebalance_verifier.explore.groups.scenarios import SCENARIOS, ScenarioSize
from rebalance_verifier.explore.liveness import liveness
from rebalance_verifier.model.machine import Machine
from rebalance_verifier.pipeline.exploration import exploration as spark_exploration
from rebalance_verifier.pipeline.exploration.exploration import SparkHistory, Store, explore, group
from rebalance_verifier.pipeline.exploration.states import (
    SearchSpec,
    Shared,
    WorkerSpace,
    canonical,
    value_id,
)
from rebalance_verifier.properties.group.rules import Rules

from tests.explore.engine.test_engines import edges
from tests.explore.groups.test_named_scenarios import GOLDEN, THREE_BY_THREE
from tests.explore.toys import coordinator, puzzle, replay

GO_ON = Limits(go_on=True)
BUG = partial(coordinator, 2, 2, 0, withhold=False)
"""70 states in 10 levels, with generations that are renamed."""


def same_traces(machine: Machine, clause: str, one: Exploration, other: Exploration) -> None:
    """Both find the same shortest traces, in the same order."""
    ours, theirs = (list(islice(found.traces(clause), 500)) for found in (one, other))
    assert ours == theirs
    replay(machine, *ours[0])


@pytest.mark.nightly
def test_puzzle(spark, tmp_path):
    """Breaches of states and of steps, witnesses, a deadlock."""
    ours, theirs = fast.explore(*puzzle(), GO_ON), explore(spark, puzzle, str(tmp_path), GO_ON)
    assert ours.counts == theirs.counts
    assert len(ours.breaches) == 3
    assert ours.deadlocks
    for clause in ("not-apart", "no-jump", DEADLOCK):
        same_traces(puzzle()[0], clause, ours, theirs)


@pytest.fixture
def apart(spark):
    """Small levels in several files, so that several workers expand them."""
    name = "spark.sql.adaptive.coalescePartitions.enabled"
    spark.conf.set(name, "false")
    yield spark
    spark.conf.unset(name)


@pytest.mark.nightly
def test_symmetry(apart, tmp_path):
    """Every worker takes the same state of an orbit: else some would be counted twice."""
    build = partial(coordinator, 3, 1, 1, withhold=False)
    ours = fast.explore(*build(), symmetry=True)
    theirs = explore(apart, build, str(tmp_path), symmetry=True)
    assert (ours.stop, ours.levels, ours.unreduced) == (theirs.stop, theirs.levels, theirs.unreduced)
    assert ours.generated == theirs.generated
    assert ours.unreduced > 3 * ours.distinct
    breaches = [[(b.clause, b.depth, b.count) for b in found.breaches] for found in (ours, theirs)]
    assert breaches[0] == breaches[1]
    assert breaches[0]
    same_traces(build()[0], ours.breaches[0].clause, ours, theirs)
    with pytest.raises(ValueError, match="symmetry"):
        theirs.graph()


@pytest.mark.nightly  # by day tests/cli/test_explore_spark.py does so by the command
def test_limits_and_resume(spark, tmp_path):
    """They end a search where they end the local one, and what is there is gone on with."""
    for limits in (Limits(depth=2, go_on=True), Limits(states=20, go_on=True), Limits(), GO_ON):
        written = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/*/*.parquet")}
        theirs = explore(spark, BUG, str(tmp_path), limits, resume=True)
        ours = fast.explore(*BUG(), limits)
        assert theirs.counts == ours.counts
        assert all(path.stat().st_mtime_ns == at for path, at in written.items())
    assert theirs.breaches
    assert theirs.complete
    graph = theirs.graph()
    assert graph.sizes == ours.graph().sizes
    assert edges(graph) == edges(ours.graph())
    last = next(theirs.traces_to(graph.states - 1))
    assert BUG()[0].normal(replay(BUG()[0], *last)[-1]) == graph.state(graph.states - 1)


@pytest.mark.nightly
def test_real_groups_start_alike(apart, tmp_path):
    """The first levels of a group with every kind of fault; to their ends by night."""
    build = partial(group, SCENARIOS["failover"].setup(ScenarioSize(members=2, partitions=2, budget=2)))
    limits = Limits(depth=4, go_on=True)
    theirs = explore(apart, build, str(tmp_path), limits)
    assert theirs.counts == fast.explore(*build(), limits).counts
    assert theirs.distinct > 100
    assert len(list(tmp_path.glob("levels/level=003/*.parquet"))) > 1


def interrupt(*_: object) -> None:
    """Ctrl-C at this moment."""
    raise KeyboardInterrupt


@pytest.mark.nightly
def test_ctrl_c_keeps_whole_levels(spark, tmp_path, monkeypatch):
    ours = fast.explore(*BUG(), Limits(depth=4))
    with monkeypatch.context() as patch:
        expand = Store.expand
        patch.setattr(Store, "expand", lambda *on: expand(*on) if on[1] < 2 else interrupt())
        part = explore(spark, BUG, str(tmp_path), GO_ON)
    whole_levels = fast.explore(*BUG(), Limits(depth=2)).counts
    assert part.stop is Stop.INTERRUPTED
    assert [*part.counts[:3], *part.counts[4:]] == [*whole_levels[:3], *whole_levels[4:]]
    # The level that was begun is not whole, whatever there is of it.
    broken = tmp_path / "levels" / "level=003"
    broken.mkdir(exist_ok=True)
    (broken / "part-0.parquet").write_bytes(b"half of")
    assert explore(spark, BUG, str(tmp_path), Limits(depth=4), resume=True).counts == ours.counts
    # A new start forgets what was counted of levels that it has not written yet.
    part = explore(spark, BUG, str(tmp_path), GO_ON, progress=interrupt)
    assert part.depth == 0
    (tmp_path / "levels" / "level=002").rename(tmp_path / "gone")
    whole = explore(spark, BUG, str(tmp_path), Limits(depth=2), resume=True)
    assert whole.levels == ours.levels[:3]
    assert (tmp_path / "levels" / "level=002").is_dir()


KILLED = """
import os, signal, sys, time
from functools import partial
from rebalance_verifier.pipeline.exploration.exploration import explore
from rebalance_verifier.pipeline.session import session
from rebalance_verifier.explore.engine.search import Limits
from tests.explore.toys import coordinator
with session("local[2]", memory="1g") as spark:
    explore(spark, partial(coordinator, 2, 2, 0, withhold=False), sys.argv[1], Limits(go_on=True))
"""


@pytest.mark.nightly  # by day a campaign is killed and goes on
def test_kill_and_resume(spark, tmp_path):
    """kill -9 of the driver, its Java and its workers, somewhere in a level."""
    states = tmp_path / "states"
    with subprocess.Popen([sys.executable, "-c", KILLED, str(states)], start_new_session=True) as child:
        while not (states / "surveys" / "level=001" / "_SUCCESS").exists():
            assert child.poll() is None
            time.sleep(0.05)
        os.killpg(child.pid, signal.SIGKILL)
    limits = Limits(depth=4)
    there = len(list((states / "surveys").iterdir()))
    assert 2 <= there < len(fast.explore(*BUG(), GO_ON).levels)
    theirs = explore(spark, BUG, str(states), limits, resume=True)
    assert theirs.counts == fast.explore(*BUG(), limits).counts


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("name", SCENARIOS)
def test_named_scenarios(spark, tmp_path, name):
    build = partial(group, SCENARIOS[name].setup(ScenarioSize(members=2, partitions=2, budget=1)))
    built, required = build()
    theirs = explore(spark, build, str(tmp_path), GO_ON)
    assert theirs.complete
    assert theirs.counts == fast.explore(built, required, GO_ON).counts
    verdict = liveness.judge(built, required, theirs)
    assert verdict.holds, verdict
    [count] = verdict.counts
    assert (theirs.distinct, theirs.generated, theirs.depth, count.reached) == GOLDEN[name]


@pytest.mark.nightly
@pytest.mark.slow
def test_three_by_three(spark, tmp_path):
    setup = SCENARIOS["dynamic"].setup()
    found = explore(spark, partial(group, setup), str(tmp_path), GO_ON, symmetry=True)
    assert (found.distinct, found.unreduced, found.generated, found.depth) == THREE_BY_THREE[1]


# -- how states travel, without Spark -------------------------------------------------------------------


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text("a1(", max_size=2) | st.binary(max_size=2),
    lambda inner: st.lists(inner, max_size=3).map(tuple) | st.frozensets(inner, max_size=3),
)


@given(VALUES, VALUES)
def test_ids_are_of_what_values_are_equal_to(one, other):
    assert (one == other) == (canonical(one) == canonical(other))
    assert (one == other) == (value_id(0, one) == value_id(0, other))


def test_sets_have_one_id_however_they_came_about():
    """Two of the same hash stand in the order in which they came."""
    one, other = frozenset((0, 8)), frozenset((8, 0))
    assert list(one) != list(other)  # else this shows nothing
    assert canonical(one) == canonical(other)


def test_what_the_driver_has_is_not_sent_again_whichever_it_is():
    """It may have met the last of a worker's values first, by another worker."""
    spec = SearchSpec(partial(coordinator, 2, 2, 1), "order")
    worker, machine = WorkerSpace(spec), spec.build()[0]
    after = [machine.apply(machine.initial[0], e, o) for e, o in machine.outcomes(machine.initial[0])]
    worker.space.intern([machine.normal(state) for state in (machine.initial[0], *after)])
    fresh = dict(worker.fresh())
    of_one = [name for name in fresh if name.split()[0] == max(n.split()[0] for n in fresh)]
    assert len(of_one) > 1
    worker.learn(spec.knowing([fresh.pop(of_one[-1])]).values)
    assert dict(worker.fresh()) == fresh


@pytest.mark.parametrize(("depth", "asked"), [(0, [0]), (2, [2, 1, 0]), (3, [2, 1, 0])])
def test_traces_are_sought_in_the_levels_that_there_are(monkeypatch, depth, asked):
    """What the steps out of the deepest level break is about no state of a deeper one."""
    levels: list[int] = []

    def keys(self: SparkHistory, level: int, predicate: object) -> list[int]:
        levels.append(level)
        return [level]

    monkeypatch.setattr(SparkHistory, "_keys", keys)
    monkeypatch.setattr(spark_exploration, "follow", lambda space, ways, clause: iter(ways))
    found = SparkHistory(Mock(), SearchSpec(BUG, "levels"), 3).traces("c", depth)
    assert len(list(found)) == depth + 1
    assert levels == asked


def test_ids_differ_by_component():
    assert value_id(0, "a") != value_id(1, "a")


def test_what_cannot_travel_is_named():
    with pytest.raises(TypeError, match="object in a state"):
        canonical((1, object()))


def test_hashes_are_of_values_not_of_their_order():
    """A worker that met the values in another order makes the same rows."""
    build: Callable[[], tuple[Machine, Rules]] = partial(coordinator, 3, 1, 1)
    machine, rules = build()
    states = []
    frontier = [machine.initial[0]]
    for _ in range(5):
        frontier = [machine.apply(s, e, o) for s in frontier for e, o in machine.outcomes(s)][:200]
        states += [machine.normal(state) for state in frontier]
    one, other = (Space(machine, rules, symmetry=True, column=Shared) for _ in range(2))
    other.intern(states[::-1])
    assert [one.key(s) for s in states] == [other.key(s) for s in states]
    plain, reverse = (Space(machine, rules, symmetry=True) for _ in range(2))
    reverse.intern(states[::-1])
    assert [plain.key(s) for s in states] != [reverse.key(s) for s in states]  # else this shows nothing


@pytest.mark.slow
def test_rows_are_read_by_another_desk():
    spec = SearchSpec(partial(coordinator, 2, 2, 1), "one")
    worker = spec.worker_space()
    states = worker.space.intern(list(worker.space.machine.initial))
    keys = worker.space.hashes(states)
    rows = worker.rows(states, keys)
    spec = spec.knowing(value for _, value in worker.fresh())
    worker.learn(spec.values)
    assert not list(worker.fresh())
    there = SearchSpec(spec.build, "other", values=spec.values).worker_space()
    assert there is not worker
    read = there.states(rows)
    assert there.space.state(read, 0) == worker.space.state(states, 0)
    assert np.array_equal(there.space.hashes(read), keys)
    assert not list(there.fresh())
