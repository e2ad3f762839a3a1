"""Search without a memory of everything: random walks, and depth first to a bound.

For machines too large for breadth-first search. What they find is a long trace;
``explore.random.minimise`` makes it short. A walk follows from its seed alone.
Swarm: each walk has a config of its own (``explore.random.swarm_config``).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from random import Random
from typing import NamedTuple

from rebalance_verifier.explore.engine.search import Coverage, ModelTrace, Taken, merge
from rebalance_verifier.explore.random import system as systems
from rebalance_verifier.explore.random.judge import Broken, Judge, quiet
from rebalance_verifier.explore.random.model_system import ModelSystem
from rebalance_verifier.explore.random.swarm_config import SwarmConfig, drawn_config
from rebalance_verifier.model.machine import Event, Machine, Outcome, State
from rebalance_verifier.properties.group.rules import Rules


class Walk(NamedTuple):
    """A run, the clauses that its last state or step breaks, or mild ones before, and what was covered on
    the way.

    ``coverage.distinct`` counts the states of this walk; over several walks they add up, and one state
    seen by two of them counts twice. ``coverage.taken`` is what could be taken in the states visited.
    """

    trace: ModelTrace
    broken: tuple[Broken, ...]
    coverage: Coverage


NONE: frozenset[str] = frozenset()

SEARCH_ON = 20_000
"""States that a search depth first looks at after a mild breach, those that it meets again too, or else as
many as before it: a search of many is not ended by a fraction of it. Some ten seconds, in which breadth first
sees far more, since it meets none again."""


def walk(
    machine: Machine,
    rules: Rules,
    seed: int,
    steps: int,
    *,
    swarm: bool = True,
    mild: frozenset[str] = NONE,
) -> Walk:
    """Return one random run of at most ``steps`` steps; it ends where a clause breaks that is not ``mild``,
    or no step is possible."""
    return _walk(machine, rules, Judge(machine, rules), seed, steps, swarm, mild)


def swarm(
    machine: Machine,
    rules: Rules,
    seed: int,
    *,
    walks: int,
    steps: int,
    mild: frozenset[str] = NONE,
    progress: Callable[[Coverage], None] | None = None,
) -> Iterator[Walk]:
    """Yield the walks among ``walks`` that break a clause, as they are found; ``mild`` ones end no walk.

    ``progress`` is called after every walk with the coverage of all so far.
    """
    judge = Judge(machine, rules)
    seeds = Random(seed)
    so_far: Coverage | None = None
    for _ in range(walks):
        one = _walk(machine, rules, judge, seeds.randrange(1 << 62), steps, True, mild)
        so_far = one.coverage if so_far is None else merge((so_far, one.coverage))
        if progress is not None:
            progress(so_far)
        if one.broken:
            yield one


def depth_first(
    machine: Machine,
    rules: Rules,
    depth: int,
    *,
    states: int | None = None,
    mild: frozenset[str] = NONE,
    search_on: int | None = SEARCH_ON,
    progress: Callable[[Coverage], None] | None = None,
    every: int = 10_000,
) -> Iterator[Walk]:
    """Runs of at most ``depth`` steps that break a clause, deep ones first; none goes on beyond a breach of
    a clause that is not ``mild``. Of a mild one only runs that are shorter than those before are given.

    Every state within ``depth`` steps is seen, unless ``states`` distinct ones are known before, or
    ``search_on`` were looked at after a mild clause broke (None: no limit). One that is met again nearer to
    the start is searched again, since more can be reached from there within the bound. ``progress`` is called
    each ``every`` states and at the end.
    """
    judge, sight = Judge(machine, rules), _Sight(machine, rules)
    nearest: dict[State, int] = {}
    shortest: dict[str, int] = {}
    most = states if states is not None else sys.maxsize
    looked, enough = 0, sys.maxsize

    def ends(broken: Iterable[Broken]) -> bool:
        return any(one.clause not in mild for one in broken)

    for first in dict.fromkeys(machine.initial):
        events: list[Event] = []
        above: list[Iterator[tuple[Event, State, tuple[Broken, ...]]]] = []
        state, broken = machine.normal(first), tuple(judge.state(machine.normal(first)))
        while True:
            if not ends(broken) and nearest.get(state, depth + 1) > len(events):
                if looked >= enough or (state not in nearest and len(nearest) >= most):
                    break
                looked += 1
                outcomes = list(machine.outcomes(state))
                if state not in nearest:
                    sight.visit(outcomes, len(events))
                    if progress is not None and sight.distinct % every == 0:
                        progress(sight.coverage())
                nearest[state] = len(events)
                broken = (*broken, *judge.rest(state, outcomes))
                if len(events) < depth and not ends(broken):
                    above.append(_onward(judge, sight, state, outcomes, list(events)))
            if new := [b.clause for b in broken if len(events) < shortest.get(b.clause, sys.maxsize)]:
                shortest |= {clause: len(events) for clause in new if clause in mild}
                if search_on is not None:
                    enough = min(enough, looked + max(looked, search_on))
                yield Walk(ModelTrace(first, tuple(events)), broken, sight.coverage())
            step = None
            while above and (step := next(above[-1], None)) is None:
                above.pop()
            if step is None:
                break
            event, state, broken = step
            events[len(above) - 1 :] = [event]
    if progress is not None:
        progress(sight.coverage())


def _onward(
    judge: Judge, sight: _Sight, state: State, outcomes: list[tuple[Event, Outcome]], events: list[Event]
) -> Iterator[tuple[Event, State, tuple[Broken, ...]]]:
    """Yield each step out of ``state``, reached by ``events``: where it leads and what it breaks."""
    for event, outcome in outcomes:
        sight.step(event, outcome)
        after = judge.machine.normal(judge.machine.apply(state, event, outcome))
        run = quiet(judge.machine, [*events, event]) if judge.rules.bounded else ()
        yield event, after, (*judge.step(state, event, outcome), *judge.state(after), *judge.run(run))


def _walk(
    machine: Machine, rules: Rules, judge: Judge, seed: int, steps: int, swarm: bool, mild: frozenset[str]
) -> Walk:
    random = Random(seed)
    actions = ((action.name, action.who, action.fault) for action in machine.actions)
    config = drawn_config(random, actions) if swarm else SwarmConfig()
    first = machine.initial[random.randrange(len(machine.initial))]
    sight, known = _Sight(machine, rules), set[State]()

    def looks(state: State, outcomes: Sequence[tuple[Event, Outcome]], depth: int) -> None:
        if state not in known:
            known.add(state)
            sight.visit(outcomes, depth)

    system = ModelSystem(judge, first, mild=mild, looks=looks, takes=sight.step)
    systems.walk(system, systems.drawn(system, config, random), steps)
    worst_first = sorted(system.broken, key=lambda one: one.clause in mild)
    return Walk(ModelTrace(first, tuple(system.events)), tuple(worst_first), sight.coverage())


class _Sight:
    """Coverage so far."""

    def __init__(self, machine: Machine, rules: Rules) -> None:
        self._taken = {(action.name, action.who): [0, 0] for action in machine.actions}
        self._rules = rules
        self._witnesses = {rule.clause: 0 for rule in rules.sometimes}
        self.distinct = self._generated = self._depth = 0

    def visit(self, outcomes: Sequence[tuple[Event, Outcome]], depth: int) -> None:
        """A state that was not seen before, and what can happen in it."""
        self.distinct += 1
        self._generated += len(outcomes)
        self._depth = max(self._depth, depth)
        before = None
        for event, _ in outcomes:
            taken = self._taken[event.action, event.who]
            taken[0] += (event.action, event.who) != before
            taken[1] += 1
            before = (event.action, event.who)

    def step(self, event: Event, outcome: Outcome) -> None:
        """A step that was taken."""
        for clause in self._rules.shown(event, outcome.seen):
            self._witnesses[clause] += 1

    def coverage(self) -> Coverage:
        """Return all of it."""
        taken = {action: Taken(*counts) for action, counts in self._taken.items()}
        return Coverage(
            runs=1,
            distinct=self.distinct,
            generated=self._generated,
            depth=self._depth,
            taken=taken,
            witnesses=dict(self._witnesses),
        )
