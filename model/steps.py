"""A run of a machine step by step: what happens in its own words, what shows, who owns what afterwards.

The run is replayed without renaming anything, so the generations of a group are those that it would count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rebalance.model.machine import Event, Machine, StepDetails, StepOwner


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


@dataclass(frozen=True, slots=True, kw_only=True)
class StepView:
    """One moment for who steps through a run, of whatever kind.

    ``label`` is its number (of moment 0, which is the start, "0"), ``what`` happens and ``seen`` shows on the
    way; ``parties`` is (name, one line) of everybody afterwards, in the same order in each moment.
    """

    label: str
    what: str
    seen: tuple[str, ...] = ()
    fault: bool = False
    parties: tuple[tuple[str, str], ...] = ()


def views(built: Machine, events: Sequence[Event]) -> Iterator[StepView]:
    """The start of a run and each of its steps. Raises CannotHappenError as ``walked`` does."""
    describe, before = built.describe, built.initial[0]
    yield StepView(label="0", what="the start", parties=describe.parties(before))
    for number, (event, (after, outcome)) in enumerate(zip(events, built.replay(events), strict=True), 1):
        what, seen = describe.step(before, event, after, outcome.seen)
        fault = built.by_name[event.action, event.who].fault
        yield StepView(label=f"{number}", what=what, seen=seen, fault=fault, parties=describe.parties(after))
        before = after


def walked(
    built: Machine, events: Sequence[Event], wanted: Callable[[int], bool] = lambda number: True
) -> Iterator[tuple[Step, StepDetails]]:
    """The steps of a run whose number, from 1, is wanted, and what a drawing shows of each.

    Raises CannotHappenError when it comes to an event that is not enabled.
    """
    before = built.initial[0]
    for number, (event, (after, outcome)) in enumerate(zip(events, built.replay(events), strict=True), 1):
        if wanted(number):
            scene = before, event, after, outcome.seen
            what, seen = built.describe.step(*scene)
            fault, owners = built.by_name[event.action, event.who].fault, built.describe.owners(after)
            yield (
                Step(number=number, event=event, fault=fault, what=what, seen=seen, owners=owners),
                built.describe.details(*scene),
            )
        before = after


def steps(built: Machine, events: Sequence[Event]) -> tuple[Step, ...]:
    """The run of ``events`` from the start. Raises CannotHappenError."""
    return tuple(one for one, _ in walked(built, events))
