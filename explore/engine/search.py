"""What every engine is given and gives back: limits, progress, the result, the graph.

The engines differ in how they search, never in what they say: ``distinct``, ``generated``, ``depth``, the
sizes of the levels, coverage, breaches and witnesses are equal, whichever ran.
``explore.engine.plain`` is the one to read, ``explore.engine.fast`` the one to run.

Depth counts steps: an initial state has depth 0, a step out of a state of depth d arrives at depth d + 1,
and what is wrong with the step is found at depth d + 1 too. So the depth of a breach is the length of its
shortest trace.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import accumulate
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from rebalance_verifier.model.machine import Event, State

DEADLOCK = "deadlock"
"""Name of the goal "a state out of which no step leads", for ``Exploration.traces``."""


SEARCH_ON = 3_000_000
"""Distinct states up to which a search goes on after a mild breach: a minute or so. The two owners of
scenario connections on the current broker are among the first 1.3 million, behind a mild breach."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """When to stop before everything has been seen. None is no limit.

    ``depth``: states this deep are checked and not expanded. ``states``: no further level is begun once
    so many distinct states are known. ``memory``: bytes that the search may take; the level in which
    they run out is dropped. ``go_on``: search to the end even when a clause is broken; else the level of
    the first breach is the last, so that every clause broken at that depth is reported. A breach of a
    ``mild`` clause ends nothing as long as fewer than ``search_on`` distinct states are known: a worse one
    may lie deeper.
    """

    depth: int | None = None
    states: int | None = None
    memory: int | None = None
    go_on: bool = False
    mild: frozenset[str] = frozenset()
    search_on: int = SEARCH_ON

    def ends(self, clauses: Iterable[str], distinct: int) -> bool:
        """Check whether breaches of these clauses end a search that knows so many states."""
        broken = set(clauses)
        enough = distinct >= self.search_on
        return bool(broken) and not self.go_on and (enough or not broken <= self.mild)


class Stop(StrEnum):
    """Why a search ended."""

    COMPLETE = "complete"
    BREACH = "breach"
    DEPTH = "depth bound"
    STATES = "state bound"
    MEMORY = "memory bound"
    INTERRUPTED = "interrupted"


class ModelTrace(NamedTuple):
    """A run: an initial state of the machine, as given there, and the events that follow."""

    initial: State
    events: tuple[Event, ...]


@dataclass(frozen=True)
class ExplorationBreach:
    """A clause that does not hold.

    ``depth`` is the length of the shortest traces that break it, ``sentence`` the least (as a string) of
    what the clause says about them. ``count`` is how many distinct states (``Always``) and generated
    steps (``EachStep``) break it, in all that was searched.
    """

    clause: str
    sentence: str
    depth: int
    count: int


@dataclass(frozen=True)
class Witness:
    """A ``Sometimes`` clause: how many generated steps show it, and the length of the shortest trace.

    Not reached: ``count`` is 0 and ``depth`` is -1.
    """

    clause: str
    depth: int
    count: int


class Taken(NamedTuple):
    """How often an action could be taken: in how many expanded states, with how many outcomes."""

    states: int = 0
    outcomes: int = 0


class Progress(NamedTuple):
    """Where a search stands after a level."""

    depth: int
    frontier: int
    distinct: int
    generated: int
    seconds: float

    @property
    def rate(self) -> float:
        """Return distinct states per second."""
        return self.distinct / self.seconds if self.seconds else 0.0


@dataclass(frozen=True, kw_only=True)
class Graph:
    """The steps that are no faults, over all reachable states; a state's index is its order of discovery.

    The arrays have one entry per outcome: from ``source`` to ``target`` by ``machine.actions[action]``.
    Steps that lead back to the same state are among them. The first ``sizes[0]`` states are the initial
    ones; the states of depth d follow those of depth d - 1. ``state`` gives a state's normal form.
    """

    states: int
    source: NDArray[np.int64]
    target: NDArray[np.int64]
    action: NDArray[np.int64]
    sizes: tuple[int, ...]
    state: Callable[[int], State] = field(repr=False, compare=False)

    def depth(self, index: int) -> int:
        """Return the distance of a state from the nearest initial state."""
        return bisect_right(list(accumulate(self.sizes)), index)


class OrbitGraph(NamedTuple):
    """Graph of the states that stand for their orbits, all states where none were merged. ``stays``: which
    edges leave the state as it is; other loops lead to another state of the orbit."""

    graph: Graph
    stays: NDArray[np.bool_]


class SearchHistory(Protocol):
    """Record of a search that an engine keeps, so that questions can be asked afterwards."""

    def traces(self, clause: str, depth: int) -> Iterator[ModelTrace]:
        """Yield every trace of ``depth`` events whose last state, or last step, is about ``clause``."""

    def traces_to(self, index: int) -> Iterator[ModelTrace]:
        """Yield every shortest trace to the state with this index."""

    def graph(self) -> OrbitGraph:
        """Return the steps that are no faults, between the states that stand for their orbits."""


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """Coverage of several searches together."""

    runs: int
    distinct: int
    generated: int
    depth: int
    taken: Mapping[tuple[str, int], Taken]
    witnesses: Mapping[str, int]

    @property
    def never_taken(self) -> tuple[tuple[str, int], ...]:
        """The actions (name, member) that could be taken in no state of any run."""
        return tuple(action for action, taken in self.taken.items() if not taken.outcomes)

    @property
    def missed(self) -> tuple[str, ...]:
        """The ``Sometimes`` clauses that no step of any run showed."""
        return tuple(clause for clause, count in self.witnesses.items() if not count)


@dataclass(frozen=True, kw_only=True)
class Exploration:
    """Result of a search.

    ``levels``: how many states have depth 0, 1, 2 ... ``expanded``: of how many states the steps are
    known (all, unless the search stopped early). ``least`` and ``most``: out-degrees among them.
    ``unreduced``: how many states the ``distinct`` ones stand for, equal unless symmetry was used.
    ``collision``: an upper bound of the probability that two states were taken for one. ``memory``:
    bytes that the search took, at most. ``cpu``: seconds of processor time.
    """

    distinct: int
    generated: int
    stop: Stop
    levels: tuple[int, ...]
    expanded: int
    least: int
    most: int
    deadlocks: int
    deadlock_depth: int
    taken: Mapping[tuple[str, int], Taken]
    witnesses: tuple[Witness, ...]
    breaches: tuple[ExplorationBreach, ...]
    unreduced: int
    collision: float
    memory: int
    cpu: float
    history: SearchHistory = field(repr=False, compare=False)

    @property
    def depth(self) -> int:
        """Return the greatest depth of a state."""
        return len(self.levels) - 1

    @property
    def complete(self) -> bool:
        """Check whether every reachable state was seen."""
        return self.stop is Stop.COMPLETE

    @property
    def mean(self) -> float:
        """Return the mean out-degree."""
        return self.generated / self.expanded if self.expanded else 0.0

    @property
    def coverage(self) -> Coverage:
        """Return what it covered."""
        witnesses = {witness.clause: witness.count for witness in self.witnesses}
        return Coverage(
            runs=1,
            distinct=self.distinct,
            generated=self.generated,
            depth=self.depth,
            taken=self.taken,
            witnesses=witnesses,
        )

    @property
    def bytes_per_state(self) -> float:
        """Return the memory taken per distinct state."""
        return self.memory / self.distinct

    @property
    def counts(self) -> tuple[Any, ...]:
        """Return all that does not depend on the engine or the machine it ran on."""
        return (
            *(self.distinct, self.generated, self.depth, self.stop, self.levels, self.expanded),
            *(self.least, self.most, self.deadlocks, self.deadlock_depth),
            *(dict(self.taken), self.witnesses, self.breaches),
        )

    def traces(self, clause: str) -> Iterator[ModelTrace]:
        """Yield every shortest trace that breaks (or, for a witness, shows) ``clause``, or ends in a
        deadlock.

        They are found as they are asked for: take one with ``next`` or some with ``itertools.islice``.
        Raises ValueError when the search did not meet the clause.
        """
        depths = {b.clause: b.depth for b in self.breaches}
        depths |= {w.clause: w.depth for w in self.witnesses if w.count}
        if self.deadlocks:
            depths[DEADLOCK] = self.deadlock_depth
        if clause not in depths:
            raise ValueError(f"{clause} was not met; met were {sorted(depths)}")
        return self.history.traces(clause, depths[clause])

    def trace(self, clause: str) -> ModelTrace:
        """Return one of ``traces``."""
        return next(self.traces(clause))

    def traces_to(self, index: int) -> Iterator[ModelTrace]:
        """Yield every shortest trace to the state with this index (see ``Graph``)."""
        return self.history.traces_to(index)

    def graph(self) -> Graph:
        """Return the steps that are no faults, over all reachable states.

        Raises ValueError when the search was not complete, or merged states by symmetry.
        """
        if self.unreduced != self.distinct:
            raise ValueError("no graph: states were merged by symmetry")
        return self.orbit_graph().graph

    def orbit_graph(self) -> OrbitGraph:
        """Return the steps that are no faults, between states that stand for all reachable ones.

        Raises ValueError when the search was not complete.
        """
        if len(self.levels) == 0 or self.expanded != self.distinct:
            raise ValueError(f"no graph of all reachable states: the search ended by {self.stop}")
        return self.history.graph()


def merge(coverages: Iterable[Coverage]) -> Coverage:
    """Coverage over several runs: counts add up, the depth is the greatest."""
    runs = distinct = generated = depth = 0
    taken: dict[tuple[str, int], Taken] = {}
    witnesses: dict[str, int] = {}
    for coverage in coverages:
        runs, distinct, generated = (
            runs + coverage.runs,
            distinct + coverage.distinct,
            generated + coverage.generated,
        )
        depth = max(depth, coverage.depth)
        for action, more in coverage.taken.items():
            so_far = taken.get(action, Taken())
            taken[action] = Taken(so_far.states + more.states, so_far.outcomes + more.outcomes)
        for clause, count in coverage.witnesses.items():
            witnesses[clause] = witnesses.get(clause, 0) + count
    return Coverage(
        runs=runs, distinct=distinct, generated=generated, depth=depth, taken=taken, witnesses=witnesses
    )
