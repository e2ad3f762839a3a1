"""A run of the model as a script for real clients: message by message, each with the state around it.

A trace whose steps are atomic (``model.protocol.atomic``) is taken apart into the steps of the fine model,
in which every request, answer and callback is one. Pure: from the saved run alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

from rebalance.gate.report.steps import CannotHappenError
from rebalance.gate.runs import SavedRun
from rebalance.model.machine import NOBODY, Event, Machine, Outcome, State
from rebalance.model.protocol.group import machine
from rebalance.model.protocol.setup import Setup, letter
from rebalance.model.protocol.state import Group, Member, Records, Refused, Slot, Wire, each

PARTS: dict[str, tuple[str, ...]] = {
    "join": ("join", "join request", "receive error"),
    "join late": ("join",),
    "join lost": ("join", "disconnect"),
    "join unanswered": ("join", "join request", "disconnect"),
    "receive join": ("receive", "sync request", "receive error"),
    "receive sync": ("receive", "complete"),
    "receive error": ("receive",),
    "sync late": ("receive",),
    "sync lost": ("receive", "disconnect"),
    "callback late": ("receive",),
    "callback throws": ("receive", "listener throws"),
    "sync refused": ("sync refused", "receive error"),
    "join refused": ("join refused", "receive error"),
}
"""An atomic step -> the fine ones that it consists of, each where it is possible. "receive error" is
"receive" of an error only. What is not here is one step in both."""

PLENTY = 1000
"""Faults that the fine model may spend: it counts them otherwise."""


@dataclass(frozen=True)
class Step:
    """One step of the fine model: ``number`` is that of the trace's step which it is a part of, from 1."""

    number: int
    event: Event
    outcome: Outcome
    before: State
    after: State
    built: Machine

    @cached_property
    def name(self) -> str:
        """The member's letter, "" for what concerns all."""
        return "" if self.event.who == NOBODY else letter(self.event.who)

    def _part(self, state: State, part: str, name: str = "") -> Any:
        return state[self.built.position[part if part == "group" else f"{part} {name or self.name}"]]

    def member(self, *, after: bool = False, name: str = "") -> Member:
        """The member, as the model has it."""
        return cast(Member, self._part(self.after if after else self.before, "member", name))

    def wire(self, *, after: bool = False, name: str = "") -> Wire:
        """What is under way between it and the coordinator."""
        return cast(Wire, self._part(self.after if after else self.before, "wire", name))

    def records(self, *, after: bool = False, name: str = "") -> Records:
        """What the coordinator knows of it."""
        return cast(Records, self._part(self.after if after else self.before, "record", name))

    def group(self, *, after: bool = False) -> Group:
        """The coordinator's group."""
        return cast(Group, self._part(self.after if after else self.before, "group"))


def script(run: SavedRun) -> tuple[Setup, list[Step]]:
    """The fine setup and the steps of a saved run.

    Raises CannotHappenError where the model does not allow the trace.
    """
    setup = replace(run.setup, steps="fine", budget=PLENTY)
    built = machine(setup)
    steps: list[Step] = []
    state = built.initial[0]
    for number, event in enumerate(run.events, 1):
        names = PARTS.get(event.action, (event.action,)) if run.setup.steps == "atomic" else (event.action,)
        for place, name in enumerate(names):
            found = _take(built, state, Event(name, event.who, event.choice), only=len(names) == 1)
            if found is None:
                if place == 0:
                    raise CannotHappenError(number, event, built.enabled(state))
                continue
            one, outcome = found
            after = built.apply(state, one, outcome)
            steps.append(Step(number, one, outcome, state, after, built))
            state = after
    return setup, steps


def _take(built: Machine, state: State, event: Event, *, only: bool) -> tuple[Event, Outcome] | None:
    name = event.action
    if name == "receive error":
        if not isinstance(state[built.position[f"wire {letter(event.who)}"]], Refused):
            return None
        name = "receive"
    action = built.by_name[name, event.who]
    values = built.read(state, action.reads)
    if action.guard is not None and not action.guard(values[0]):
        return None
    outcomes = list(action.run(*values))
    for outcome in outcomes:
        if outcome.choice == event.choice or (not only and len(outcomes) == 1):
            return Event(name, event.who, outcome.choice), outcome
    return None


def next_of(steps: Sequence[Step], place: int, slot: int) -> Step | None:
    """The next step after number ``place`` that is of this member or ends what it waits for."""
    return next((step for step in steps[place + 1 :] if step.event.who == slot), None)


Decision = tuple[Mapping[str, int], Mapping[str, int]]
"""What a leader decided, in the trace and in truth: member -> partitions as a bit mask."""


def alike(setup: Setup, decisions: Sequence[Decision]) -> bool:
    """Whether one renaming of each topic's partitions turns the trace's decisions into the real ones."""

    def owners(side: int, number: int) -> tuple[str, ...]:
        return tuple(
            "".join(name for name, parts in sorted(both[side].items()) if parts >> number & 1)
            for both in decisions
        )

    return all(
        sorted(owners(0, p) for p in each(parts)) == sorted(owners(1, p) for p in each(parts))
        for parts in setup.topics
    )


def slots(setup: Setup) -> Iterator[tuple[Slot, str]]:
    """Each slot and its letter."""
    return ((Slot(slot), letter(slot)) for slot in setup.slots)
