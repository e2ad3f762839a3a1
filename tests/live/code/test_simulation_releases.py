"""Every release of the matrix runs in a simulation, alone and with others in one group."""

from __future__ import annotations

import pytest
from rebalance_verifier.live.code import releases
from rebalance_verifier.live.code.answers import SimulationCallback, SimulationThrown
from rebalance_verifier.live.code.simulation import Simulation, SimulationMember
from rebalance_verifier.model.bugs.releases import NEWEST

from tests.live.code.played import RELEASE, Played, needs_java

MIXED = ("2.4.1", "2.8.2", "3.4.1", RELEASE)


def grow(simulation: Simulation, coordinator: str, *consumers: str) -> Played:
    """They join one after the other, and one leaves again."""
    parts = 2 * len(consumers)
    played = Played(
        simulation, [SimulationMember(release=one) for one in consumers], {"t": parts}, coordinator
    )
    for number in range(1, len(consumers)):
        played.do("crash", member=number)
    played.settle()
    for number in range(1, len(consumers)):
        played.do("start", member=number)
        played.settle()
    played.do("close", member=0, arrive=True)
    played.do("deliver", id=simulation.state().requests[0].id)
    played.settle()
    return played


def shares(played: Played, parts: int) -> list[int]:
    """How many partitions each has; together they are all of them, once."""
    owned = [one.split() for one in played.owned() if one != "-"]
    assert sorted(part for some in owned for part in some) == sorted(f"t-{n}" for n in range(parts))
    return sorted(map(len, owned))


@pytest.mark.nightly
@needs_java
def test_four_releases_in_one_group() -> None:
    with Simulation([RELEASE], MIXED) as simulation:
        played = grow(simulation, RELEASE, *MIXED)
        # The shares are fair in the end, and nobody loses what was not taken from it.
        assert shares(played, 8) == [2, 3, 3]
    assert not [one for one in played.events if isinstance(one, SimulationThrown)]
    assert "lost" not in {one.call for one in played.events if isinstance(one, SimulationCallback)}


@pytest.mark.nightly
@needs_java
def test_every_consumer_since_2_4() -> None:
    known = releases.consumers()
    assert {one[:3] for one in known} >= {"2.4", "2.8", "3.0", "3.9", "4.0", NEWEST[:3]}
    wrong = {}
    for release in known:
        try:
            with Simulation([RELEASE], [release, RELEASE]) as simulation:
                assert shares(grow(simulation, RELEASE, release, RELEASE, release), 6) == [3, 3]
        except Exception as error:  # which, and go on
            wrong[release] = error
    assert wrong == {}


@pytest.mark.nightly
@needs_java
def test_every_coordinator_since_3_8() -> None:
    known = releases.coordinators()
    assert {one[:3] for one in known} >= {"3.8", "3.9", "4.0", NEWEST[:3]}
    wrong = {}
    for release in known:
        try:
            with Simulation([release], [RELEASE, "2.4.1"]) as simulation:
                assert shares(grow(simulation, release, RELEASE, "2.4.1", RELEASE), 6) == [3, 3]
        except Exception as error:  # which, and go on
            wrong[release] = error
    assert wrong == {}
