"""Walks at once on one simulation come to what each comes to alone."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from rebalance_verifier.base.processes.program import JsonLine
from rebalance_verifier.explore.groups.scenarios import SCENARIOS
from rebalance_verifier.live.code.lockstep import walks
from rebalance_verifier.live.code.lockstep.classic import Agreement, Disagreement
from rebalance_verifier.live.code.lockstep.protocols import in_step
from rebalance_verifier.live.code.lockstep.setups import lockstep_setup
from rebalance_verifier.live.code.lockstep.system import drawn, walk
from rebalance_verifier.live.code.lockstep.walks import LockstepPlan
from rebalance_verifier.live.code.replay.group import CodeReleases
from rebalance_verifier.live.code.sharing import Sharing
from rebalance_verifier.live.code.simulation import Simulation, SimulationDied
from rebalance_verifier.model.group.setup import Setup
from rebalance_verifier.model.protocols import machine

from tests.live.code.lockstep.stepping import NOW, SMALL
from tests.live.code.played import needs_java


class Echo(Simulation):
    """Answers each cell with what it has heard so far; ``dies`` with this line."""

    def __init__(self, dies: int = -1) -> None:
        self.seconds, self._over, self._program = 1.0, "", None  # type: ignore[assignment]
        self.dies, self.lines = dies, list[list[int]]()
        self.cells: dict[int, list[int]] = {}

    def order(self, line: JsonLine) -> None:
        for one in line["lines"]:
            self.cells.setdefault(one["cell"], []).append(one["say"])
        self.lines.append([one["cell"] for one in line["lines"]])

    def several(self, number: int, count: int) -> list[JsonLine]:
        if len(self.lines) > self.dies >= 0:
            raise self._dead("dies")
        return [{"heard": list(self.cells[cell])} for cell in self.lines[-1]]

    def _dead(self, why: str) -> SimulationDied:
        self._over = f"the simulation {why}"
        return SimulationDied(self._over)


def says(words: Sequence[int], share: Simulation) -> tuple[int, ...]:
    """What a cell hears of one play."""
    found: JsonLine = {"heard": []}
    begins = len(share._ask({"say": 0})["heard"])
    for one in words:
        found = share._ask({"say": one})
    return tuple(found["heard"][begins:])


PLAYS: list[tuple[int, ...]] = [tuple(range(one, one + 2 + one % 3)) for one in range(1, 12)]


@pytest.mark.parametrize("count", [1, 2, 3, 8, 20])
def test_each_play_hears_its_own_answers_in_the_order_of_the_plays(count: int) -> None:
    shares = Sharing[tuple[int, ...]](echo := Echo(), count, lambda one: False)
    assert shares.run([partial(says, one) for one in PLAYS]) == PLAYS
    assert max(map(len, echo.lines)) == -(-min(count, len(PLAYS)) // 2)
    assert all(len(set(line)) == len(line) for line in echo.lines)


def test_what_shares_a_simulation_once_does_so_again() -> None:
    shares = Sharing[tuple[int, ...]](Echo(), 3, lambda one: False)
    plays = [partial(says, one) for one in PLAYS]
    assert [shares.run(plays) for _ in range(3)] == [PLAYS] * 3


def test_nothing_to_play_is_no_result() -> None:
    assert Sharing[int](Echo(), 4, bool).run([]) == []


def test_one_that_ends_the_rest_is_the_last_result_and_no_other_begins() -> None:
    begun: list[int] = []

    def play(number: int, share: Simulation) -> int:
        begun.append(number)
        says(range(8 if number == 1 else 2), share)
        return number

    found = Sharing[int](Echo(), 3, lambda one: one >= 2).run([partial(play, one) for one in range(9)])
    assert found == [0, 1, 2]
    assert begun in ([0, 1, 2], [0, 1, 2, 3])


def test_what_a_play_raises_is_raised_unless_one_before_it_ends_the_rest() -> None:
    def fails(share: Simulation) -> int:
        says((1,), share)
        raise KeyError("of the play")

    def late(share: Simulation) -> int:
        return sum(says((1, 2, 3, 4), share))

    with pytest.raises(KeyError, match="of the play"):
        Sharing[int](Echo(), 3, lambda one: False).run([late, fails, late])
    assert Sharing[int](Echo(), 3, lambda one: one == 10).run([late, fails, late]) == [10]


@pytest.mark.parametrize("dies", range(6))
def test_all_plays_hear_that_the_simulation_has_died(dies: int) -> None:
    heard: list[int] = []

    def play(number: int, share: Simulation) -> int:
        try:
            says(range(9), share)
        except SimulationDied:
            heard.append(number)
            with pytest.raises(SimulationDied):
                share.state()
        return number

    shares = Sharing[int](Echo(dies), 4, lambda one: False)
    assert shares.run([partial(play, one) for one in range(6)]) == list(range(6))
    assert sorted(heard) == list(range(6))
    assert shares.over


# -- with Kafka ------------------------------------------------------------------------------------------


def walked(of: Setup, number: int, simulation: Simulation) -> tuple[Agreement, Any, Disagreement | None]:
    one = in_step(simulation, of, machine(of), NOW)
    found = walk(one, drawn(0, number), 60)
    return one.seen, one.events, found


OLD = CodeReleases(coordinator=NOW.coordinator, consumers=("2.8.0",))


@needs_java
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "of", "differs"),
    [
        ("failover", NOW, False),
        ("consumer-topics", NOW, False),
        ("migration", NOW, False),
        ("eager", OLD, True),
    ],
)
def test_walks_at_once_are_those_one_after_the_other(name: str, of: CodeReleases, differs: bool) -> None:
    """The model of consumers of 2.8.0 differs from those that run."""
    setup = lockstep_setup(SCENARIOS[name], replace(SMALL, faults=None), of)
    plays = [partial(walked, setup, number) for number in range(7)]
    with Simulation([NOW.coordinator], NOW.consumers) as simulation:
        alone = [one(simulation) for one in plays]
        together = Sharing[Any](simulation, 5, lambda one: False).run(plays)
        assert [one(simulation) for one in plays[:2]] == alone[:2]  # and the cell of before is as it was
    assert together == alone
    assert any(found for _, _, found in alone) is differs


@needs_java
@pytest.mark.slow
def test_a_walk_that_ends_the_jvm_is_found_among_those_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    of = lockstep_setup(SCENARIOS["dynamic"], SMALL, NOW)

    def kills(one: Any, random: Any, steps: int) -> Disagreement | None:
        if random.random() == drawn(0, 3).random():
            os.kill(one.simulation.pid, signal.SIGKILL)
        return walk(one, random, steps)

    def begun(simulation: Simulation, *rest: Any) -> Any:
        found = in_step(simulation, *rest)
        found.simulation = simulation  # type: ignore[union-attr]
        return found

    monkeypatch.setattr(walks, "walk", kills)
    monkeypatch.setattr(walks, "in_step", begun)
    plan = LockstepPlan(setup=of, releases=NOW, walks=6, steps=20, jobs=1)
    with walks._walking(plan) as part:
        [(agreement, found)] = part(0)
    assert (agreement.walks, found is not None) == (4, True)
