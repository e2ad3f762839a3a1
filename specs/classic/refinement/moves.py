"""A step of the executable model as one of the logic sees it, and what is read off from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from rebalance_verifier.model.classic.state import Group
from rebalance_verifier.model.group.parts import Slot
from rebalance_verifier.model.group.setup import MemberContext
from rebalance_verifier.model.machine import Event
from rebalance_verifier.specs.classic.refinement.abstraction import Abstraction, Local

SpecStep = tuple[str, tuple[int, ...]]
"""An action of the logic, and its parameters."""


@dataclass(frozen=True, kw_only=True)
class Move:
    """A step of the model, slot by slot."""

    map: Abstraction
    event: Event
    before: tuple[Local, ...]
    after: tuple[Local, ...]
    group: Group
    group_after: Group

    @property
    def c(self) -> int:
        """The consumer."""
        return max(0, self.event.who)

    @property
    def old(self) -> Local:
        """Its slot before."""
        return self.before[self.c]

    @property
    def new(self) -> Local:
        """Its slot after."""
        return self.after[self.c]

    @property
    def me(self) -> MemberContext:
        return MemberContext(Slot(self.c), self.map.setup)

    def id(self, incarnation: int) -> int:
        """Return the element of a member id of the slot."""
        return self.map.id(self.c, incarnation)


Counterpart = Callable[[Move], Iterable[SpecStep]]
"""The actions that a step of one action of the model stands for."""

Name = str | Callable[[Move], str]
"""The action of the logic, or which one it is."""


def of(name: Name, *elements: Callable[[Move], int]) -> Counterpart:
    """Return one action, with these parameters."""
    return lambda move: [
        (name if isinstance(name, str) else name(move), tuple(element(move) for element in elements))
    ]


def consumer(move: Move) -> int:
    """Return whose step it is."""
    return move.c


def requested(move: Move) -> int:
    """Return the member id in the request that is under way."""
    return move.id(move.old.wire.id)


def changed(move: Move) -> int:
    """Return the member id whose record is another one now, or gone."""
    return move.id(next(record.id for record in move.old.records if record not in move.new.records))
