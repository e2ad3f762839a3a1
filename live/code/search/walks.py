"""Swarm walks through Kafka's own code, in parallel: each of its own config, in the end left in peace."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from rebalance_verifier.base.processes.gather import gather
from rebalance_verifier.base.verdict import Verdict
from rebalance_verifier.explore.random import system as systems
from rebalance_verifier.explore.random.swarm_config import FAULTS_IN, drawn_config
from rebalance_verifier.live.code.replay.group import CodeReleases
from rebalance_verifier.live.code.search.enabled import actions
from rebalance_verifier.live.code.search.findings import CodeFinding, Searched, shortened, worst_first
from rebalance_verifier.live.code.search.group import GroupAssignor
from rebalance_verifier.live.code.search.run import CodePlaying, PlayedOnCode, asked_clauses, not_asked
from rebalance_verifier.live.code.simulation import SECONDS, Simulation, SimulationDied
from rebalance_verifier.model.group.setup import Setup
from rebalance_verifier.model.machine import Event

UNLIMITED_FAULTS = 1 << 30
"""Faults that a walk may take."""

WALKS_PER_TASK = 10
"""Walks that a worker does before it tells."""

SHORTEN = 400
"""How often a run is played to be made short: counted, so that a busy machine comes to the same run."""


@dataclass(frozen=True, kw_only=True)
class CodeSearchPlan:
    """``walks`` of at most ``steps`` steps; where ``depth`` is given, all runs of so many steps instead.

    ``setup.budget`` is how many faults a run may have; ``time_limit`` in seconds. ``assignor``: of
    somebody's own, in every consumer. ``clauses``: those to ask, None for all. ``seconds``: how
    long one step may take.
    """

    setup: Setup
    releases: CodeReleases
    walks: int = 1000
    steps: int = 100
    seed: int = 0
    depth: int | None = None
    jobs: int | None = None
    time_limit: float | None = None
    assignor: GroupAssignor | None = None
    clauses: tuple[str, ...] | None = None
    seconds: float = SECONDS
    latest: float = math.inf
    """When to begin no other run, in the time of ``time.monotonic``: a part of the work may take long."""

    @property
    def asked_clauses(self) -> tuple[str, ...]:
        """Return the clauses that are asked."""
        return asked_clauses(self.setup) if self.clauses is None else self.clauses

    def begun(self) -> CodeSearchPlan:
        """Return the plan as of now: its time runs."""
        return self if self.time_limit is None else replace(self, latest=time.monotonic() + self.time_limit)

    def simulation(self) -> Simulation:
        """Return a simulation of its releases. Raises ToolError, SimulationDied."""
        paths = self.assignor.classpath if self.assignor else ()
        coordinators = [self.releases.coordinator]
        simulation = Simulation(coordinators, self.releases.consumers, classpath=paths)
        if self.assignor is not None:  # Kafka's classes are loaded before anybody's time is taken
            warm = CodePlaying(simulation, self.setup, self.releases)
            warm.begin()
            warm.gather()
        simulation.seconds = self.seconds
        return simulation

    def playing(self, simulation: Simulation, *, keeps: bool = False) -> CodePlaying:
        """Return what plays its runs on a simulation."""
        return CodePlaying(
            simulation, self.setup, self.releases, keeps=keeps, assignor=self.assignor, clauses=self.clauses
        )


@dataclass(kw_only=True)
class CodeSearchResult:
    """Result of a plan: ``findings`` made short, by clause. ``stopped``: why it ended early, or ""."""

    plan: CodeSearchPlan
    searched: Searched = field(default_factory=Searched)
    findings: list[CodeFinding] = field(default_factory=list)
    stopped: str = ""

    @property
    def interrupted(self) -> bool:
        """Check whether it was Ctrl-C."""
        return self.stopped == "interrupted"

    @property
    def verdict(self) -> Verdict:
        """A finding counts most, then that it ended early."""
        if self.findings:
            return Verdict.VIOLATION
        return Verdict.INCONCLUSIVE if self.stopped else Verdict.CONFORMANT

    @property
    def not_asked(self) -> list[str]:
        """The clauses of a group that the search does not ask."""
        return not_asked(self.plan.setup, self.plan.asked_clauses)


def search_walks(
    plan: CodeSearchPlan, progress: Callable[[Searched], None] = lambda _: None
) -> CodeSearchResult:
    """Walk until the end; Ctrl-C and the time limit end it with what is known.

    Without a time limit the result is the same for any number of jobs. Raises CannotStart where no simulation
    can be had.
    """
    plan = plan.begun()
    return gathered(plan, lambda: _walking(plan), -(-plan.walks // WALKS_PER_TASK), progress)


def gathered(
    plan: CodeSearchPlan,
    working: Callable[[], contextlib.AbstractContextManager[Callable[[int], Sequence[Searched]]]],
    parts: int,
    progress: Callable[[Searched], None],
) -> CodeSearchResult:
    """Return what ``parts`` pieces of work come to, in their order, the findings made short: see
    search_walks."""
    result = CodeSearchResult(plan=plan)

    def take(one: Searched) -> str:
        result.searched.add(one)
        return "the JVM ended" if result.searched.died else ""

    def heard() -> str:
        progress(result.searched)
        return "time limit" if time.monotonic() >= plan.latest else ""

    end = gather(working, parts, plan.jobs, take, heard)
    killed = "a process that plays was killed" if end.killed is not None else ""
    result.stopped = "interrupted" if end.interrupted else end.stopped or killed
    for one in () if result.searched.died else end.behind:
        result.searched.add(one)
    result.findings = worst_first(result.searched.findings.values())
    if result.findings and not result.searched.died:
        with contextlib.suppress(KeyboardInterrupt, SimulationDied):
            _shorten(plan, result)
    return result


def _shorten(plan: CodeSearchPlan, result: CodeSearchResult) -> None:
    """In all a search ends within 1.5 times its limit, and 10 seconds, of which its simulations take some."""
    until = plan.latest + (plan.time_limit or 0) / 2 + 3
    with plan.simulation() as simulation:
        playing = plan.playing(simulation, keeps=True)
        for at, finding in enumerate(result.findings):
            if time.monotonic() < until:
                result.findings[at] = shortened(playing, finding, SHORTEN, until)


@contextlib.contextmanager
def _walking(plan: CodeSearchPlan) -> Iterator[Callable[[int], Sequence[Searched]]]:
    """Yield what does one part of the walks."""
    with contextlib.ExitStack() as stack:
        playing = plan.playing(stack.enter_context(plan.simulation()))

        def part(number: int) -> Sequence[Searched]:
            searched = Searched()
            for one in range(number * WALKS_PER_TASK, min(plan.walks, (number + 1) * WALKS_PER_TASK)):
                if not playing.dead and time.monotonic() < plan.latest:
                    if one == 0 and plan.assignor is not None:
                        searched.note(ordinary(playing))
                    else:
                        searched.note(walk(playing, Random(f"{plan.seed}/{one}"), plan.steps))
            searched.died = playing.dead
            return (searched,)

        yield part


def ordinary(playing: CodePlaying) -> PlayedOnCode:
    """Return the run that every group has: members join one after the other, then leave so, and the group
    comes to rest each time. Random walks seldom let a group settle before the next member joins, and miss
    an assignor that errs only then. Raises SimulationDied."""
    playing.begin()
    memory, slots = playing.group.memory, playing.setup.slots
    memory.given_up = frozenset(slots)  # nobody starts by himself
    for slot in slots:
        memory.given_up -= {slot}
        playing.gather()
    for slot in slots[:-1]:
        systems.play(playing, [Event("close", slot)])
        memory.given_up |= {slot}
        playing.gather()
    playing.rest()
    return playing.played


def walk(playing: CodePlaying, random: Random, steps: int) -> PlayedOnCode:
    """Return a random run of at most ``steps`` steps that change anything, then left in peace. Raises
    SimulationDied."""
    config = drawn_config(random, actions(playing.setup), FAULTS_IN)
    systems.walk(playing, systems.drawn(playing, config, random), steps)
    return playing.played
