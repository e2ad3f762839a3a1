"""How far a recording is explained: the next items of its lanes, and epochs as Kafka counts them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rebalance_verifier.live.conformance.wire.items import Item, Lane
from rebalance_verifier.model.group.parts import NONE
from rebalance_verifier.model.machine import NOBODY

COORDINATOR: Lane = ("coordinator", NOBODY)


class Items:
    """The items that a step may show, from where those before are explained; and epochs as Kafka counts."""

    def __init__(self, lanes: Mapping[Lane, Sequence[Item]], counts: Mapping[Lane, int], more: int | None):
        self._lanes, self._counts = lanes, counts
        self._taken: dict[Lane, int] = {}
        self.more = more

    def again(self) -> Items:
        """Return the same, of another step."""
        return Items(self._lanes, self._counts, self.more)

    def next(self, lane: Lane, ahead: int = 0) -> Item | None:
        """Return the next item of a lane."""
        number = self._counts[lane] + self._taken.get(lane, 0) + ahead
        several = self._lanes[lane]
        return several[number] if number < len(several) else None

    def take(self, lane: Lane, kind: str) -> Item | None:
        """Return the next item of a lane, if it is of this kind: it is shown."""
        found = self.next(lane)
        if found is None or found.kind != kind:
            return None
        self._taken[lane] = self._taken.get(lane, 0) + 1
        return found

    def same(self, epoch: int, theirs: int) -> bool:
        """Check whether an epoch of the model is Kafka's; the first of a group says how many that counts
        more."""
        if epoch == NONE:
            return theirs <= 0
        if self.more is None:
            self.more = theirs - epoch
        return epoch + self.more == theirs

    @property
    def shows(self) -> tuple[tuple[Lane, int], ...]:
        """Return what is taken."""
        return tuple(self._taken.items())


@dataclass(frozen=True, kw_only=True)
class Partitions:
    """Names of partitions and topics, and their bits."""

    numbers: Mapping[str, int]
    topics: Mapping[str, int]

    def bits(self, names: Iterable[str]) -> int:
        """Return the partitions ``names``; those that the group does not have are beyond all."""
        beyond = 1 << len(self.numbers)
        return sum({1 << self.numbers[name] if name in self.numbers else beyond for name in names})

    def spell(self, parts: int) -> str:
        """Return partitions as text."""
        return " ".join(name for name, number in self.numbers.items() if parts >> number & 1) or "-"

    def subscribed(self, names: Iterable[str]) -> int:
        """Return the topics ``names``."""
        return sum({1 << self.topics[name] for name in names if name in self.topics})
