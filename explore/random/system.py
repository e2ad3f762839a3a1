"""A group that is played one step at a time: the model, Kafka's own code, or both at once.

One walk, one replay and one shrinker serve them all. Lockstep is the product of two systems: a step of it is
the same step of both, and a breach is that they do not look alike afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from random import Random
from typing import Protocol, TypeVar

from rebalance_verifier.explore.random.dropping import left_out
from rebalance_verifier.explore.random.swarm_config import SwarmConfig
from rebalance_verifier.model.machine import NOBODY, Event


class SystemChoice(Protocol):
    """Something that can happen in a system now."""

    @property
    def event(self) -> Event:
        """Return its name, by which it is found again in another run."""
        ...


C = TypeVar("C", bound=SystemChoice)


class System(Protocol[C]):
    """A group in one run after the other, each from its beginning. It judges its own states and steps."""

    @property
    def events(self) -> Sequence[Event]:
        """Return the steps of this run."""
        ...

    @property
    def over(self) -> bool:
        """Check whether this run has ended: by a breach after which nothing more is asked, or by a crash."""
        ...

    @property
    def breaches(self) -> Mapping[Hashable, int]:
        """Return each cause that this run breaks something by, with the number of events that show it."""
        ...

    def begin(self) -> None:
        """Begin a new run."""
        ...

    def found(self, event: Event) -> C | None:
        """Return the choice that an event is now; None where it cannot happen."""
        ...

    def step(self, choice: C) -> bool:
        """Take a step and judge it. Return False where it does not count: nothing has changed."""
        ...

    def rest(self) -> object:
        """Leave the group alone, and judge what becomes of it."""
        ...


class ListedSystem(System[C], Protocol):
    """A system that lists its possible steps, so that any random walk can draw one of them."""

    def possible(self) -> Sequence[C]:
        """Return all that can happen now, in a fixed order."""
        ...

    def is_fault(self, choice: C) -> bool:
        """Check whether a choice is something that goes wrong."""
        ...


def walk(system: System[C], choices: Iterator[C], steps: int) -> None:
    """Play a run of at most ``steps`` steps that count, as ``choices`` draws them."""
    system.begin()
    while steps and not system.over and (choice := next(choices, None)) is not None:
        steps -= system.step(choice)
    system.rest()


def drawn(system: ListedSystem[C], config: SwarmConfig, random: Random) -> Iterator[C]:
    """Yield one of the possible choices after the other, while there is any."""
    while options := system.possible():
        faults = [system.is_fault(one) for one in options] if config.rare else ()
        yield options[config.choose(random, [one.event for one in options], faults)]


def play(
    system: System[C], events: Iterable[Event], unable: Callable[[Event], None] = lambda event: None
) -> None:
    """Play those of ``events`` that can happen, from where the system stands up to the end of its run.

    ``unable`` is called with each of the others.
    """
    for event in events:
        if system.over:
            return
        choice = system.found(event)
        if choice is None:
            unable(event)
        else:
            system.step(choice)


def replay(system: System[C], events: Iterable[Event], *, rest: bool = False) -> None:
    """Play those of ``events`` that can happen in a new run; ``rest``: then leave the group alone."""
    system.begin()
    play(system, events)
    if rest:
        system.rest()


def shortened(
    fresh: Callable[[], System[C]],
    events: Sequence[Event],
    cause: Hashable,
    *,
    rest: bool = False,
    by_part: bool = False,
    may_go_on: Callable[[], bool] = lambda: True,
) -> tuple[Event, ...]:
    """Return a part of ``events`` that breaks something by the same cause; no single one can be left out.

    ``fresh`` gives the system for one more run; ``rest``: in the end it is left alone. ``by_part``: all
    events of a member are left out first, and all of a kind. Stops early, with what it has, when
    ``may_go_on`` says no.
    """

    def still(some: tuple[Event, ...]) -> tuple[Event, ...] | None:
        system = fresh()
        replay(system, some, rest=rest)
        shown = system.breaches.get(cause)
        return None if shown is None else tuple(system.events[:shown])

    best = tuple(events)
    members = sorted({one.who for one in best if one.who != NOBODY})
    for part in (*members, *dict.fromkeys(one.action for one in best)) if by_part else ():
        some = tuple(one for one in best if part not in (one.who, one.action))
        if len(some) < len(best) and may_go_on():
            shorter = still(some)
            best = shorter if shorter is not None and len(shorter) < len(best) else best
    return left_out(best, still, may_go_on)
