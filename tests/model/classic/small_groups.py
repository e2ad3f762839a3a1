"""Small groups for the tests of the protocol: setups, states put together by hand, single actions, walks.

The tests know the machine by the names of its components and actions only, as an engine does.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any, NamedTuple

from rebalance_verifier.model.classic.group import machine
from rebalance_verifier.model.classic.state import Member, Metadata
from rebalance_verifier.model.group.parts import Generation, Life, MemberState, Parts, Topics, union
from rebalance_verifier.model.group.setup import Consumer, ConsumerConfig, Setup
from rebalance_verifier.model.machine import NOBODY, Event, Machine, Outcome, State

COOPERATIVE = ("cooperative-sticky",)
BOTH = ("range", "cooperative-sticky")
EAGER = ("range",)
SUBSCRIBED = Topics(1)

EVERY_FAULT = (
    "crash", "pause", "hang", "close", "unsubscribe", "max poll", "resubscribe", "enforce", "disconnect",
    "slow network", "late request", "slow commit", "listener throws", "session timeout", "slow member",
    "failover", "append fails", "group expires", "topic grows", "topic shrinks", "topic deleted",
    "left behind", "late leave", "leave lost", "member removed", "sync not stored", "return not stored",
    "polls on", "completes again", "unsubscribe midway", "racks change",
)  # fmt: skip


def setup(
    members: int = 2,
    partitions: int = 2,
    *,
    lists: tuple[tuple[str, ...], ...] = (COOPERATIVE,),
    topics: tuple[int, ...] = (),
    exist: int | None = None,
    decisions: tuple[str, ...] = (),
    coordinator: tuple[str, ...] = (),
    static: bool = False,
    version: int = 3,
    tells: bool = True,
    faults: tuple[str, ...] = (),
    budget: int | None = None,
    steps: str = "fine",
    **more: Any,
) -> Setup:
    """Members that are all alike, each with one stage per assignor list; ``topics`` and ``exist`` are
    partition masks."""
    parts = tuple(Parts(mask) for mask in topics) or (Parts((1 << partitions) - 1),)
    stages = tuple(
        ConsumerConfig(
            assignors=names, decisions=frozenset(decisions), switches=(), version=version, tells=tells
        )
        for names in lists
    )
    everything = Topics((1 << len(parts)) - 1)
    return Setup(
        consumers=tuple(
            Consumer(stages=stages, subscriptions=(everything,), instance=slot if static else None)
            for slot in range(members)
        ),
        topics=parts,
        exist=union(parts) if exist is None else Parts(exist),
        faults=faults,
        budget=len(faults) if budget is None else budget,
        coordinator=frozenset(coordinator),
        steps=steps,
        **more,
    )


class Step(NamedTuple):
    """One outcome: the components by name, and what was seen."""

    choice: str
    after: dict[str, Any]
    seen: tuple[Any, ...]

    def saw(self, kind: type) -> list[Any]:
        return [item for item in self.seen if isinstance(item, kind)]


class PlayedGroup:
    """A machine and states of it, written as ``member_A=...``."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.machine: Machine = machine(setup)

    def state(self, **values: Any) -> State:
        """The initial state with some components replaced; ``member_A`` is the component ``member A``."""
        after = list(self.machine.initial[0])
        for name, value in values.items():
            after[self.machine.position[name.replace("_", " ")]] = value
        return tuple(after)

    def steps(self, action: str, who: int = 0, /, **values: Any) -> list[Step]:
        """The outcomes of one action in ``state(**values)``."""
        return self.after(self.state(**values), action, who)

    def after(self, state: State, action: str, who: int = 0) -> list[Step]:
        found = [
            Step(event.choice, dict(zip(self.machine.components, after, strict=True)), outcome.seen)
            for event, outcome in self.machine.outcomes(state)
            if (event.action, event.who) == (action, who)
            for after in [self.machine.apply(state, event, outcome)]
        ]
        for step in found:
            made = self.machine.by_name[action, who]
            cost = int(made.fault and "budget" in made.writes)
            assert self.machine.value(state, "budget") - step.after["budget"] == cost
        return found

    def step(self, action: str, who: int = 0, /, **values: Any) -> Step:
        """The only outcome of one action."""
        (step,) = self.steps(action, who, **values)
        return step


def stable(generation: int = 3, owned: int = 0, own_gen: int | None = None, **more: Any) -> Member:
    """A member at rest in ``generation``, with member id 1; ``more`` are other fields of it."""
    given = own_gen if own_gen is not None else generation if owned else -1
    rest = Member(
        life=Life.UP, stage=0, state=MemberState.STABLE, generation=Generation(generation), id=1, rejoin=False
    )
    holds = rest._replace(owned=Parts(owned), believed=Parts(owned), own_gen=Generation(given))
    subscribed = holds._replace(topics=SUBSCRIBED, joined_topics=SUBSCRIBED, view=Parts(0b11))
    return subscribed._replace(**more)


def meta(assignors: tuple[str, ...] = COOPERATIVE, **more: Any) -> Metadata:
    return Metadata(assignors, SUBSCRIBED)._replace(**more)


def walk(machine: Machine, seed: int, steps: int) -> Iterator[tuple[State, Event, Outcome]]:
    """A random run, not normalised: the state before each step, and the step. Faults are rarer."""
    random = Random(seed)
    state = machine.initial[0]
    for _ in range(steps):
        options = list(machine.outcomes(state))
        if not options:
            return
        faulty = [machine.by_name[event.action, event.who].fault for event, _ in options]
        event, outcome = random.choices(options, [1 if bad else 4 for bad in faulty])[0]
        yield state, event, outcome
        state = machine.apply(state, event, outcome)


__all__ = [
    "BOTH",
    "COOPERATIVE",
    "EAGER",
    "NOBODY",
    "PlayedGroup",
    "Step",
    "meta",
    "setup",
    "stable",
    "walk",
]
