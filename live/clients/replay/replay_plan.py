"""A run of the model as a script for real clients: message by message, each with the state around it.

A trace whose steps are atomic (``model.classic.atomic``) is taken apart into the steps of the fine model,
in which every request, answer and callback is one. Pure: from the saved run alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from itertools import takewhile
from typing import Any, cast

from rebalance_verifier.base.tables import table
from rebalance_verifier.explore.groups.runs import SavedRun
from rebalance_verifier.model.classic import state as s
from rebalance_verifier.model.classic.describe import event_text
from rebalance_verifier.model.classic.group import machine
from rebalance_verifier.model.classic.join_group import connection_of
from rebalance_verifier.model.group.parts import Life, MemberState, Slot, each
from rebalance_verifier.model.group.setup import Setup, letter
from rebalance_verifier.model.machine import NOBODY, Event, Machine, Outcome, State
from rebalance_verifier.properties.group.clauses import CONVERGES

PARTS: Mapping[str, Sequence[str]] = table(__file__)
"""An atomic step -> the fine ones that it consists of."""

PLENTY = 1000
"""Faults that the fine model may spend: it counts them otherwise."""


class Due(StrEnum):
    """Next thing that a client has to do, whatever the coordinator does."""

    JOIN = "join"
    READ = "read"
    END = "end"


class SendTime(StrEnum):
    """When a request has to leave its client to be answered where the trace answers it."""

    NOW = "now"
    BEHIND = "behind its next JoinGroup"
    NEVER = "a connection keeps the order of its requests and answers"


HEARD = ("receive", "assign", "heartbeat")
"""Steps in which a member is answered."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ReplayStep:
    """One step of the fine model: ``number`` is that of the trace's step which it is a part of, from 1.

    ``position`` is its own in ``plan``, all steps of the replay.
    """

    number: int
    event: Event
    outcome: Outcome
    before: State
    after: State
    built: Machine
    position: int
    plan: Sequence[ReplayStep] = field(repr=False)

    @cached_property
    def name(self) -> str:
        """The member's letter, "" for what concerns all."""
        return "" if self.event.who == NOBODY else letter(self.event.who)

    def _part(self, state: State, part: str, name: str = "") -> Any:
        return self.built.value(state, part if part == "group" else f"{part} {name or self.name}")

    def member(self, *, after: bool = False, name: str = "") -> s.Member:
        """Return the member, as the model has it."""
        return cast(s.Member, self._part(self.after if after else self.before, "member", name))

    def wire(self, *, after: bool = False, name: str = "") -> s.Wire:
        """Return what is under way between it and the coordinator."""
        return cast(s.Wire, self._part(self.after if after else self.before, "wire", name))

    def records(self, *, after: bool = False, name: str = "") -> s.Records:
        """Return what the coordinator knows of it."""
        return cast(s.Records, self._part(self.after if after else self.before, "record", name))

    def stray(self, *, after: bool = False) -> s.Stray:
        """Return its heartbeat or commit on the way, or the answer to that."""
        return cast(s.Stray, self._part(self.after if after else self.before, "stray"))

    @property
    def connection(self) -> int:
        """Return the connection on which this request was sent, of several broken ones: 0 for the oldest."""
        return connection_of(self.event.choice)

    def behind(self, *, after: bool = False) -> s.Behind:
        """Return what it left under way on connections that broke."""
        if f"behind {self.name}" not in self.built.position:
            return ()
        return cast(s.Behind, self._part(self.after if after else self.before, "behind"))

    def group(self, *, after: bool = False) -> s.Group:
        """Return the coordinator's group."""
        return cast(s.Group, self._part(self.after if after else self.before, "group"))

    @property
    def title(self) -> str:
        """Return its number and event, as the reports name it."""
        return f"step {self.number}, {event_text(self.event)}"

    @property
    def later(self) -> Sequence[ReplayStep]:
        """Return the steps behind it that are of its member."""
        return [step for step in self.plan[self.position + 1 :] if step.event.who == self.event.who]

    @property
    def following(self) -> str:
        """Return what its member does next, "" for nothing more."""
        return self.later[0].event.action if self.later else ""

    @property
    def send_time(self) -> SendTime:
        """Return the time at which a late request has to be sent.

        What is answered later was sent later. A commit may follow a JoinGroup that waits for others: a broker
        does not read it before it has answered that, and it still shows the generation before.
        """
        actions = [step.event.action for step in self.later]
        actions = list(takewhile(lambda action: action != "late answer", actions))
        behind = self.event.choice == "commit" and "join" in actions
        if behind:
            actions = actions[actions.index("join") :]
        if sum(action in HEARD for action in actions) > behind:
            return SendTime.NEVER
        return SendTime.BEHIND if behind else SendTime.NOW


def replay_plan(run: SavedRun) -> tuple[Setup, list[ReplayStep]]:
    """Return the fine setup and the steps of a saved run.

    Raises CannotHappenError where the model does not allow the trace, ValueError where members subscribe by
    pattern.
    """
    if run.setup.has_patterns:
        raise ValueError(
            "real consumers are subscribed by name, and members of this run subscribe by pattern"
        )
    setup = replace(run.setup, steps="fine", budget=PLENTY)
    built = machine(setup)
    steps: list[ReplayStep] = []
    state = built.initial[0]
    for number, event in enumerate(run.events, 1):
        names = PARTS.get(event.action, (event.action,)) if run.setup.steps == "atomic" else (event.action,)
        for position, name in enumerate(names):
            found = _take(built, state, Event(name, event.who, event.choice), only=len(names) == 1)
            if found is None:
                if position == 0:
                    raise built.refusal(number, event, state)
                continue
            one, outcome = found
            after = built.apply(state, one, outcome)
            steps.append(
                ReplayStep(
                    number=number,
                    event=one,
                    outcome=outcome,
                    before=state,
                    after=after,
                    built=built,
                    position=len(steps),
                    plan=steps,
                )
            )
            state = after
    return setup, steps


def _take(built: Machine, state: State, event: Event, *, only: bool) -> tuple[Event, Outcome] | None:
    name = event.action
    if name == "receive error":
        if not isinstance(built.value(state, f"wire {letter(event.who)}"), s.Refused):
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


def parting(steps: Sequence[ReplayStep], without: Setup) -> int:
    """Return the number of the first step of a replay that the group ``without`` the switch does not take, or
    that leaves it in another state; one more than the last where there is none.

    What goes every step up to there, and then another way, does not have the switch's bug.
    """
    built = machine(replace(without, steps="fine", budget=PLENTY))
    state = built.initial[0]
    for step in steps:
        taken = built.outcome(state, step.event)
        if taken is None or taken.seen != step.outcome.seen:
            return step.number
        state = built.apply(state, step.event, taken)
        if state != step.after:
            return step.number
    return steps[-1].number + 1


def due(run: SavedRun, steps: Sequence[ReplayStep]) -> dict[str, Due]:
    """Return what a run that comes to a standstill, and never settles, owes: by the letters of who owes it.

    Nothing is under way, nobody is told anything any more. Who is not in the group has to join, who is has to
    read, and who closes has to end. Empty for other runs, and where only the coordinator is stuck.
    """
    if run.clause != CONVERGES.id or run.loop != len(run.events):
        return {}
    last = steps[-1]
    owed: dict[str, Due] = {}
    for slot, name in slots(run.setup):
        member, group = last.member(after=True, name=name), last.group(after=True)
        if any(one.event == Event("close", slot) and one.member(after=True).stuck for one in steps):
            owed[name] = Due.END
        elif member.life is not Life.UP or not member.topics or last.wire(after=True, name=name) is not None:
            continue
        elif member.state is not MemberState.STABLE or member.generation != group.generation:
            owed[name] = Due.JOIN
        elif member.committing or member.unfetched:
            owed[name] = Due.JOIN if member.committing else Due.READ
    return owed


Decision = tuple[Mapping[str, int], Mapping[str, int]]
"""What a leader decided, in the trace and in truth: member -> partitions as a bit mask."""


def alike(setup: Setup, decisions: Sequence[Decision]) -> bool:
    """Check whether one renaming of each topic's partitions turns the trace's decisions into the real
    ones."""

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
    """Yield each slot and its letter."""
    return ((Slot(slot), letter(slot)) for slot in setup.slots)
