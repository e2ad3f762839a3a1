"""A run of a machine step by step: what happens in its own words, what shows, who owns what afterwards.

The run is replayed without renaming anything, so the generations of a group are those that it would count.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from rebalance.model.machine import Event, Machine, State, StepOwner


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step: what happens, what shows on the way (callbacks first of all), everybody afterwards.

    ``fault`` is true of what the environment does.
    """

    number: int
    event: Event
    fault: bool
    what: str
    seen: tuple[str, ...]
    owners: tuple[StepOwner, ...]


def step(
    built: Machine, number: int, event: Event, before: State, after: State, seen: tuple[Hashable, ...]
) -> Step:
    """Step ``number`` of a run, from 1; ``seen`` is what its outcome showed."""
    what, shown = built.describe.step(before, event, after, seen)
    fault, owners = built.by_name[event.action, event.who].fault, built.describe.owners(after)
    return Step(number=number, event=event, fault=fault, what=what, seen=shown, owners=owners)


def steps(built: Machine, events: Sequence[Event]) -> tuple[Step, ...]:
    """The run of ``events`` from the start. Raises CannotHappenError."""
    before, found = built.initial[0], []
    for number, (event, (after, outcome)) in enumerate(zip(events, built.replay(events), strict=True), 1):
        found.append(step(built, number, event, before, after, outcome.seen))
        before = after
    return tuple(found)
