"""Making a long trace short: what a walk found, as near to the shortest as a bounded effort gets.

Two ways in turn, until neither helps. Dropping: leave out a chunk of the events, large chunks first, and of
what follows whatever can no longer happen, or let it happen with another choice (delta debugging; Zeller
and Hildebrandt, 2002). Cutting short: a breadth-first search from each state of the trace, bounded, for a
quicker way to a later state of the trace or to the breach itself; from the start first among the actions
of the trace only, a far smaller space. Where the bound suffices to rule out anything shorter,
``Minimal.shortest`` says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import NamedTuple

from rebalance_verifier.explore.engine.search import ModelTrace
from rebalance_verifier.explore.random.dropping import left_out
from rebalance_verifier.explore.random.judge import Judge
from rebalance_verifier.explore.random.model_system import ModelSystem
from rebalance_verifier.explore.random.system import play
from rebalance_verifier.model.machine import Event, Machine, State
from rebalance_verifier.properties.group.rules import Rules

STATES = 2_000
"""How many states the search from one state of the trace may know; the one from the start, ten times that."""


class Minimal(NamedTuple):
    """A trace that breaks the clause with its last event. ``shortest``: no trace breaks it with fewer."""

    trace: ModelTrace
    shortest: bool


def minimise(
    machine: Machine,
    rules: Rules,
    clause: str,
    trace: ModelTrace,
    *,
    states: int = STATES,
    may_go_on: Callable[[], bool] = lambda: True,
) -> Minimal:
    """Return a short trace that breaks ``clause``, made from ``trace``, which does.

    Stops early, with what it has, when ``may_go_on`` says no. Raises ValueError when ``trace`` does not
    break the clause, or cannot happen.
    """
    run = _Run(Judge(machine, rules, clause))
    events = run.broken_by(trace.initial, trace.events, strict=True)
    if events is None:
        raise ValueError(f"the trace does not break {clause}")
    best, shortest = ModelTrace(trace.initial, events), False
    while may_go_on():
        best = _dropped(run, best, may_go_on)
        shorter, shortest = _cut_short(run, best, states, may_go_on)
        if shortest or shorter == best:
            return Minimal(shorter, shortest)
        best = shorter
    return Minimal(best, shortest)


class _Run:
    """Replays events and stops where they break what the judge asks."""

    def __init__(self, judge: Judge) -> None:
        self.machine, self.judge = judge.machine, judge

    def broken_by(
        self, initial: State, events: Iterable[Event], *, strict: bool = False, loose: bool = False
    ) -> tuple[Event, ...] | None:
        """Return the events up to the first breach, those that cannot happen left out; None without a breach.

        ``loose``: an event whose choice cannot be made is taken with the first one that can, instead.
        Raises ValueError when ``strict`` and an event cannot happen.
        """
        system = ModelSystem(self.judge, initial, loose=loose)

        def unable(event: Event) -> None:
            if strict:
                raise ValueError(f"{event} cannot happen after {len(system.events)} events")

        play(system, events, unable)
        return tuple(system.events) if system.over else None

    def state_broken(self, state: State) -> bool:
        """Check whether ``state``, a normal form, breaks the clause, or a run that ends there does."""
        return any(self.judge.state(state)) or any(self.judge.rest(state, self.machine.outcomes(state)))

    def states(self, trace: ModelTrace) -> list[State]:
        """Return the normal forms of the states of ``trace``, all of whose events can happen."""
        states = [self.machine.normal(trace.initial)]
        for event in trace.events:
            outcome = self.machine.outcome(states[-1], event)
            assert outcome is not None
            states.append(self.machine.normal(self.machine.apply(states[-1], event, outcome)))
        return states


def _dropped(run: _Run, trace: ModelTrace, may_go_on: Callable[[], bool]) -> ModelTrace:
    """``trace`` without chunks of events that the breach does not need; no single one can go in the end."""

    def still(rest: tuple[Event, ...]) -> tuple[Event, ...] | None:
        return run.broken_by(trace.initial, rest) or run.broken_by(trace.initial, rest, loose=True)

    return ModelTrace(trace.initial, left_out(trace.events, still, may_go_on))


def _cut_short(
    run: _Run, trace: ModelTrace, states: int, may_go_on: Callable[[], bool]
) -> tuple[ModelTrace, bool]:
    """``trace`` by the best quicker way from each of its states in turn, and whether it is a shortest one."""
    trace, _ = _quicker(run, trace, 0, 10 * states, _cast(run.machine, trace))
    position = 0
    while position < len(trace.events) and may_go_on():
        shorter, shortest = _quicker(run, trace, position, states if position else 10 * states, run.machine)
        if shortest:
            return shorter, True
        position += shorter == trace
        trace = shorter
    return trace, not trace.events


def _cast(machine: Machine, trace: ModelTrace) -> Machine:
    """Return the machine with only those actions that occur in ``trace``: its space is far smaller."""
    names = {(event.action, event.who) for event in trace.events}
    return replace(machine, actions=tuple(a for a in machine.actions if (a.name, a.who) in names))


def _quicker(
    run: _Run, trace: ModelTrace, position: int, states: int, allowed: Machine
) -> tuple[ModelTrace, bool]:
    """``trace`` by the way from its state at ``position`` that saves most, or itself; and if it is shortest.

    From position 0 the search begins in all initial states. It goes level by level and ends at the first
    breach: no way over a later state of the trace can be quicker than that. ``allowed``: the machine, or
    less of it to search in, and to be shortest in.
    """
    machine, judge = run.machine, run.judge
    visited = run.states(trace)
    spot = {state: number for number, state in enumerate(visited)}
    given = {machine.normal(state): state for state in reversed(machine.initial)}
    came: dict[State, tuple[State, Event] | None] = dict.fromkeys(
        given if position == 0 else visited[position:][:1]
    )

    def over(events: tuple[Event, ...], root: State, onward: int) -> ModelTrace:
        """Return the trace by ``events`` from ``root``, and as before from its state number ``onward``."""
        initial = trace.initial if position or root == visited[0] else given[root]
        return ModelTrace(initial, trace.events[:position] + events + trace.events[onward:])

    best, end = trace, len(trace.events)
    for root in came:
        if position == 0 and run.state_broken(root):
            return over((), root, end), True
        best = _better(run, best, over((), root, spot[root]) if root in spot else best)
    frontier, distance = list(came), 0
    while frontier and position + distance + 1 < end:
        distance += 1
        beyond = []
        for state in frontier:
            for event, outcome in allowed.outcomes(state):
                after = machine.normal(machine.apply(state, event, outcome))
                wrong = any(judge.step(state, event, outcome))
                if after in came and not wrong:
                    continue
                came.setdefault(after, (state, event))
                if wrong or run.state_broken(after):
                    root, path = _path(came, state)
                    return over((*path, event), root, end), position == 0
                beyond.append(after)
                if after in spot:
                    root, path = _path(came, state)
                    best = _better(run, best, over((*path, event), root, spot[after]))
            if len(came) > states:
                return best, False
        frontier = beyond
    return best, position == 0 and not judge.rules.bounded and best == trace


def _path(came: dict[State, tuple[State, Event] | None], state: State) -> tuple[State, tuple[Event, ...]]:
    """Return where the way to ``state`` began, and its events."""
    events: list[Event] = []
    while (step := came[state]) is not None:
        state = step[0]
        events.append(step[1])
    return state, tuple(reversed(events))


def _better(run: _Run, best: ModelTrace, other: ModelTrace) -> ModelTrace:
    """Return the shorter one, if it breaks the clause: what is counted depends on the way, not on the
    state."""
    if len(other.events) >= len(best.events):
        return best
    events = run.broken_by(other.initial, other.events)
    return best if events is None or len(events) >= len(best.events) else ModelTrace(other.initial, events)
