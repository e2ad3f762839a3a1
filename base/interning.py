"""Small numbers for values: the one way in which engines and checks intern what states are made of."""

from __future__ import annotations

from collections.abc import Iterable

from rebalance_verifier.model.machine import Value


class Numbered:
    """Values of any kind, numbered from 0 in order of discovery; equal ones share a number."""

    def __init__(self, values: Iterable[Value] = ()) -> None:
        self.values: list[Value] = []
        self.ids: dict[Value, int] = {}
        for value in values:
            self.id(value)

    def __len__(self) -> int:
        return len(self.values)

    def id(self, value: Value) -> int:
        """The number of ``value``."""
        found = self.ids.get(value)
        if found is None:
            found = len(self.values)
            self.add(found, value)
            self.values.append(value)
            self.ids[value] = found
        return found

    def add(self, number: int, value: Value) -> None:
        """Called with each value that is new, before it is kept."""
