"""Small numbers for values: the one way in which engines and checks intern what states are made of."""

from __future__ import annotations

from collections.abc import Hashable, Iterable


class Numbered:
    """Hashables of any kind, numbered from 0 in order of discovery; equal ones share a number."""

    def __init__(self, values: Iterable[Hashable] = ()) -> None:
        self.values: list[Hashable] = []
        self.ids: dict[Hashable, int] = {}
        for value in values:
            self.id(value)

    def __len__(self) -> int:
        return len(self.values)

    def id(self, value: Hashable) -> int:
        """Return the number of ``value``."""
        found = self.ids.get(value)
        if found is None:
            found = len(self.values)
            self.add(found, value)
            self.values.append(value)
            self.ids[value] = found
        return found

    def add(self, number: int, value: Hashable) -> None:
        """Take each value that is new, before it is kept."""
