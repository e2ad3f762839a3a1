"""Walks in step with Kafka's own code as a campaign: the same walks as those of ``conform --code``."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from rebalance_verifier.live.code.lockstep.walks import LockstepPlan, lockstep
from rebalance_verifier.live.code.replay.group import CodeReleases
from rebalance_verifier.live.code.simulation import Simulation, SimulationDied
from rebalance_verifier.model.group.setup import Setup
from rebalance_verifier.pipeline.campaign import lockstep as pipeline
from rebalance_verifier.pipeline.campaign.campaign import CONFORMANT, VIOLATION, SliceOutcome
from rebalance_verifier.pipeline.campaign.lockstep import LockstepPlayer

from tests.command import Rebalance
from tests.live.code.played import RELEASE, needs_java

pytestmark = [needs_java, pytest.mark.slow]

NOW = CodeReleases(coordinator=RELEASE, consumers=(RELEASE,))
WALKS = 6


class Mistaken(LockstepPlayer):
    """Takes the consumer for one that forgets its id (J5)."""

    def setup(self) -> Setup:
        released = CodeReleases(coordinator=RELEASE, consumers=("3.1.2",))
        return LockstepPlayer(scenario=self.scenario, releases=released).setup()


def outcomes(player: LockstepPlayer, walks: int) -> list[SliceOutcome]:
    with player.playing() as play:
        return [play(0, number) for number in range(walks)]


@pytest.mark.nightly
def test_they_are_the_walks_of_conform() -> None:
    player = LockstepPlayer(scenario="dynamic", releases=NOW, members=2, partitions=2, steps=40, seed=3)
    plan = LockstepPlan(setup=player.setup(), releases=NOW, walks=WALKS, steps=40, seed=3, jobs=1)
    here = lockstep(plan).agreement
    there = outcomes(player, WALKS)
    assert {one.verdict for one in there} == {CONFORMANT}
    assert sum(one.steps or 0 for one in there) == here.steps > 0
    taken = {action: sum(one.coverage.get(f"step: {action}", 0) for one in there) for action in here.taken}
    assert taken == dict(here.taken)


@pytest.mark.nightly
def test_the_first_that_disagrees_is_made_short_as_it_is_locally() -> None:
    player = Mistaken(scenario="dynamic", releases=NOW, seed=1)
    rows = outcomes(player, 10)
    first = next(number for number, row in enumerate(rows) if row.verdict == VIOLATION)
    here = lockstep(LockstepPlan(setup=player.setup(), releases=NOW, walks=10, seed=1, jobs=1))
    again = player.walked_again(first)
    assert here.disagreement is not None
    assert again.disagreement == here.disagreement
    assert (again.seen_again, rows[first].clauses) == (True, (here.disagreement.cause,))
    assert rows[first].summary


def test_a_cell_that_dies_costs_one_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    simulations: list[Simulation] = []

    def watched(*releases: Sequence[str]) -> Simulation:
        simulations.append(Simulation(*releases))
        return simulations[-1]

    monkeypatch.setattr(pipeline, "Simulation", watched)
    with LockstepPlayer(scenario="dynamic", releases=NOW, steps=5).playing() as play:
        os.kill(simulations[0].pid, signal.SIGKILL)
        with pytest.raises(SimulationDied, match="SIGKILL"):
            play(0, 1)
        assert play(0, 1).verdict == CONFORMANT
    assert len(simulations) == 2
    assert all(simulation.over for simulation in simulations)


@pytest.mark.nightly
def test_the_command_goes_on_where_it_was(rebalance: Rebalance, tmp_path: Path) -> None:
    argv = ["campaign", "dynamic", "--code", RELEASE, "--members", "2", "--partitions", "2", "--depth", "20"]
    argv += ["--out", str(tmp_path / "c"), "--master", "local[2]", "--slice", "20", "--format", "json"]
    first = rebalance(*argv, "--scenarios", "20")
    assert (first.code, json.loads(first.out)["played"]) == (0, 20)
    more = rebalance(*argv, "--scenarios", "40")
    found = json.loads(more.out)
    assert (more.code, found["played"], found["verdict"]) == (0, 40, "conformant")
    assert found["plays"]["code"] == f"code:{RELEASE}"
    assert any(row["situation"] == "step: join phase ends" for row in found["coverage"])


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--code", "1.0"], "Kafka 1.0 is not known"),
        (["--code", RELEASE, "--release", "java-3.5"], "--release does not go with --code"),
        (["--faults", "none"], "--faults goes with --code"),
    ],
)
def test_wrong_use_is_one_message(
    rebalance: Rebalance, tmp_path: Path, argv: list[str], message: str
) -> None:
    ran = rebalance("campaign", "dynamic", "--scenarios", "1", "--out", str(tmp_path / "c"), *argv)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err


def test_players_of_other_groups_are_other_campaigns() -> None:
    player = LockstepPlayer(scenario="dynamic", releases=NOW)
    assert player.identity() != replace(player, faults=()).identity()
    assert json.loads(json.dumps(player.identity())) == player.identity()
