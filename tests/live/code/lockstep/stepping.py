"""Model and simulation side by side, and steps by their names, for the tests."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace

from rebalance_verifier.explore.groups.scenarios import SCENARIOS, ScenarioSize
from rebalance_verifier.live.code.lockstep.classic import Lockstep
from rebalance_verifier.live.code.lockstep.setups import lockstep_setup
from rebalance_verifier.live.code.lockstep.system import lines_of
from rebalance_verifier.live.code.lockstep.walks import LockstepPlan, LockstepResult, lockstep
from rebalance_verifier.live.code.replay.group import CodeReleases
from rebalance_verifier.live.code.simulation import Simulation
from rebalance_verifier.model.classic.group import machine
from rebalance_verifier.model.group.setup import Setup

from tests.live.code.played import RELEASE

NOW = CodeReleases(coordinator=RELEASE, consumers=(RELEASE,))
SMALL = ScenarioSize(members=3, partitions=3)


def setup(scenario: str = "dynamic", releases: CodeReleases = NOW, size: ScenarioSize = SMALL) -> Setup:
    return lockstep_setup(SCENARIOS[scenario], size, releases)


def walked(
    of: Setup, walks: int, releases: CodeReleases = NOW, jobs: int = 2, first: int = 0
) -> LockstepResult:
    return lockstep(LockstepPlan(setup=of, releases=releases, walks=walks, jobs=jobs, first=first))


ENTERS = "{0} start, {0} join, {0} join request, {0} receive, {0} join, {0} join request"
LEADS = "{0} leader sync, {0} receive, {0} complete"
JOINED = "A start, A join, A join request, join phase ends, A assign, A leader sync, A receive, A complete"
ALONE = f"{ENTERS.format('A')}, join phase ends, A assign, {LEADS.format('A')}, A enforce"


HELD: list[Simulation] = []
"""What the next test of the module goes on with: a JVM takes longer to start than most tests."""


@contextlib.contextmanager
def simulated(releases: CodeReleases) -> Iterator[Simulation]:
    """A simulation, in which a test makes its group anew; held for the next one if nothing went wrong."""
    if releases == NOW and HELD:
        simulation = HELD.pop()
    else:
        simulation = Simulation([releases.coordinator], releases.consumers)
    with contextlib.ExitStack() as stack:
        stack.callback(simulation.close)
        yield simulation
        if releases == NOW and not simulation.over and not HELD:
            HELD.append(simulation)
            stack.pop_all()


@contextlib.contextmanager
def begun(
    scenario: str = "dynamic",
    releases: CodeReleases = NOW,
    without: str = "",
    faults: tuple[str, ...] | None = None,
) -> Iterator[Lockstep]:
    """Both at their beginning; ``without`` a kind of fault: consumers commit where commits may be slow."""
    of = setup(scenario, releases, replace(SMALL, faults=faults))
    of = replace(of, faults=tuple(fault for fault in of.faults if fault != without))
    with simulated(releases) as simulation:
        one = Lockstep(simulation, of, machine(of), releases)
        assert one.begin() is None
        yield one


def plays(one: Lockstep, run: str) -> None:
    """Take the steps, such as ``A start, topic shrinks t-2``; what leaders decide is Kafka's to say."""
    for written in run.split(", "):
        owner, _, rest = written.partition(" ")
        who, action = ("ABC".index(owner), rest) if owner in "ABC" else (-1, written)
        action, _, choice = action.partition(" t-")
        event, outcome = next(
            (event, outcome)
            for event, outcome in one.built.outcomes(one.state)
            if (event.action, event.who) == (action, who)
            and event.choice.endswith(choice)
            and (event.choice != "commit" or choice == "commit")
        )
        found = one.step(event, outcome)
        assert found is None, "\n".join(lines_of(found))
