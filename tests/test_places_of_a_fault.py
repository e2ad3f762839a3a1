"""A new kind of fault is written in eight places; where one is missing, a test names the next.

The order is that of the work: the model first, then what is said and proved of it, then Kafka's own code.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import NamedTuple

import pytest
from rebalance_verifier.explore.groups.scenarios import SCENARIOS, ScenarioSize
from rebalance_verifier.live.code.lockstep.setups import NOT_PLAYED
from rebalance_verifier.model.classic.group import FAULTS as CLASSIC_FAULTS
from rebalance_verifier.model.consumer.group import FAULTS as CONSUMER_FAULTS
from rebalance_verifier.model.protocols import machine

from tests.test_layers import ROOT


class FaultPlace(NamedTuple):
    """A place that knows a fault by its name or by that of one of its actions; ``says``: what to write."""

    path: str
    says: str
    but: tuple[str, ...] = ()
    """Faults of which nothing is to be said there."""


class FaultPlaces(NamedTuple):
    """The places of a protocol, and the scenario whose machine is asked for the actions of a fault."""

    faults: tuple[str, ...]
    scenario: str
    places: tuple[FaultPlace, ...]


ONLY_TIMES = ("slow network", "slow callback")
"""Not actions: what takes one step where nothing is slow takes several, as in steps that are fine anyway."""

SCENARIO = "explore/groups/scenarios.py"

PROTOCOLS = {
    "classic": FaultPlaces(
        CLASSIC_FAULTS,
        "static-failover",
        (
            FaultPlace("model/classic/group.py", "its name in FAULTS"),
            FaultPlace("model/classic/describe.py", "the sentence of its action", ONLY_TIMES),
            FaultPlace("specs/classic/refinement/correspondence.py", "the path of its action in the logic",
                       ONLY_TIMES),
            FaultPlace(SCENARIO, "a scenario in which it may happen"),
            FaultPlace("live/code/", "how the code is made to do it, or its name in NOT_PLAYED", NOT_PLAYED),
            FaultPlace("live/clients/replay/", "how clients do it, or why not, in NOT_FORCED", ONLY_TIMES),
            FaultPlace("docs/reference/profiles.md", "nothing by hand: `make docs`"),
        ),
    ),
    "consumer": FaultPlaces(
        CONSUMER_FAULTS,
        "consumer",
        (
            FaultPlace("model/consumer/group.py", "its name in FAULTS"),
            FaultPlace("model/consumer/describe.py", "the sentence of its action", ONLY_TIMES),
            FaultPlace("specs/consumer/correspondence.py", "the path of its action in the logic", (
                *ONLY_TIMES, "left behind")),  # the logic has one connection for each member
            FaultPlace(SCENARIO, "a scenario in which it may happen"),
            FaultPlace("live/code/lockstep/", "how the code is made to do it", ONLY_TIMES),
            FaultPlace("docs/reference/profiles.md", "nothing by hand: `make docs`"),
        ),
    ),
}  # fmt: skip


@cache
def text_of(path: str) -> str:
    """The text of a file, or of all Python files of a folder."""
    files = sorted((ROOT / path).rglob("*.py")) if path.endswith("/") else [ROOT / path]
    shared = [ROOT / "model" / "group" / "setup.py"] if path.endswith("/group.py") else []
    return "\n".join(file.read_text() for file in (*files, *shared))


def actions(protocol: str, fault: str) -> set[str]:
    """The actions of a group that it has with this fault and not without."""
    group = SCENARIOS[PROTOCOLS[protocol].scenario].setup(ScenarioSize(members=2, partitions=2, steps="fine"))
    with_it, without = (
        {action.name for action in machine(replace(group, faults=faults, budget=1)).actions}
        for faults in ((fault,), ())
    )
    return with_it - without


def unwritten(protocol: str, fault: str, acts: set[str]) -> Iterator[str]:
    """What is still to be written, the next first."""
    names = {fault, *acts}
    for place in PROTOCOLS[protocol].places:
        text = text_of(place.path)
        quoted = [f" {fault}", f"{fault},"] if place.path.endswith(".md") else [f'"{name}"' for name in names]
        if place.path == SCENARIO:
            written = any(fault in one.faults for one in SCENARIOS.values())
        else:
            written = fault in place.but or any(name in text for name in quoted)
        if not written:
            yield f"{fault}: next, write into {place.path}: {place.says}"
        if place.path.endswith("/group.py") and not acts and fault not in ONLY_TIMES:
            yield f"{fault}: next, write its action, a step that draws on the budget, in {place.path[:-8]}"


@pytest.mark.parametrize(
    ("protocol", "fault"),
    [(protocol, fault) for protocol, known in PROTOCOLS.items() for fault in known.faults],
)
def test_a_fault_is_written_in_all_of_its_places(protocol: str, fault: str) -> None:
    assert next(unwritten(protocol, fault, actions(protocol, fault)), "") == ""


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_of_a_fault_that_nobody_has_written_each_place_is_named(protocol: str) -> None:
    found = list(unwritten(protocol, "moon phase", set()))
    assert len(found) == len(PROTOCOLS[protocol].places) + 1
    assert f"write into model/{protocol}/group.py: its name in FAULTS" in found[0]
    assert f"write its action, a step that draws on the budget, in model/{protocol}/" in found[1]
