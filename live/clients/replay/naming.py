"""Topics and partitions of a run under the names that Kafka has for them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from rebalance_verifier.model.group.parts import Topics, each, union
from rebalance_verifier.model.group.setup import Setup


class RunNames:
    """Protocol of an object that has a ``setup`` and speaks to Kafka: numbers and bit masks of the model, and
    names."""

    setup: Setup

    @cached_property
    def numbers(self) -> dict[str, int]:
        """Partition by name -> its number in the model."""
        return {str(self.setup.partition(p)): p for parts in self.setup.topics for p in each(parts)}

    @cached_property
    def topics(self) -> list[str]:
        """All topics by name, in the order of the setup."""
        return list(dict.fromkeys(name.rpartition("-")[0] for name in self.numbers))

    def names(self, topics: Topics | int) -> list[str]:
        """Return topics by name."""
        return [self.topics[number] for number in each(topics)]

    def bits(self, names: Iterable[object]) -> int:
        """Return partitions by name as a bit mask, those that the run does not have left out."""
        return union([1 << self.numbers[name] for name in map(str, names) if name in self.numbers])

    def counts(self, exist: int) -> dict[str, int]:
        """Return how many partitions each topic has, of those that there are."""
        sizes = (len(each(exist & parts)) for parts in self.setup.topics)
        return {name: size for name, size in zip(self.topics, sizes, strict=True) if size}

    def are_first(self, exist: int) -> bool:
        """Check whether the partitions that there are of each topic are its first ones, as Kafka numbers
        them."""
        of_each = [(each(parts), each(exist & parts)) for parts in self.setup.topics]
        return all(some == every[: len(some)] for every, some in of_each)

    def racks(self, exist: int, *, moved: bool = False) -> dict[str, list[str]]:
        """Return the rack of each partition that there is, by topic, before or after they ``moved``; none
        without racks."""
        racks = self.setup.moved if moved else self.setup.racks
        known = zip(self.topics, self.setup.topics, strict=True)
        return {name: [racks[p][0] for p in each(exist & parts)] for name, parts in known} if racks else {}

    def spell(self, parts: int) -> str:
        """Return partitions as text."""
        return self.setup.spell(parts) if parts else "nothing"
