"""Shortest traces, from the levels of a breadth-first search: no engine stores where a state came from.

Going back from the goal, an engine finds in every level the states that lie on a shortest way to it.
Going forward from the initial states, ``unfold`` follows them on the machine itself, with the labels as
the machine gives them. So every trace is a run of the machine, replayed while it is found, and no search
leads into a dead end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rebalance_verifier.explore.engine.search import ModelTrace
from rebalance_verifier.model.machine import Event, Machine, Outcome, State
from rebalance_verifier.properties.group.rules import Rules

Shows = Callable[[State, Event, Outcome], bool]
"""Whether a step out of a state is one that is looked for."""


def shown_by(machine: Machine, rules: Rules) -> Shows:
    """Look for a step that breaks or shows one of ``rules``."""
    return lambda state, event, outcome: rules.concerns(
        event, outcome.seen, machine.change(state, event, outcome)
    )


def unfold(
    machine: Machine, depth: int, on_way: Callable[[State, int], bool], shows: Shows | None
) -> Iterator[ModelTrace]:
    """Yield every run of ``depth`` steps through states that are ``on_way`` at their depth.

    The last state must be on the way too, or the last step must be one that ``shows``.
    """
    for initial in dict.fromkeys(machine.initial):
        if not on_way(initial, 0):
            continue
        if depth == 0:
            yield ModelTrace(initial, ())
            continue
        events: list[Event] = []
        branches = [_steps(machine, initial, 0, depth, on_way, shows)]
        while branches:
            step = next(branches[-1], None)
            if step is None:
                branches.pop()
                if events:
                    events.pop()
            elif len(branches) == depth:
                yield ModelTrace(initial, (*events, step[0]))
            else:
                events.append(step[0])
                branches.append(_steps(machine, step[1], len(events), depth, on_way, shows))


def _steps(
    machine: Machine,
    state: State,
    here: int,
    depth: int,
    on_way: Callable[[State, int], bool],
    shows: Shows | None,
) -> Iterator[tuple[Event, State]]:
    for event, outcome in machine.outcomes(state):
        after = machine.apply(state, event, outcome)
        if (here + 1 == depth and shows is not None and shows(state, event, outcome)) or on_way(
            after, here + 1
        ):
            yield event, after
