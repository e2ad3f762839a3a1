"""Of each client in a comparison, which release is the newest that was judged, and which that exists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rebalance_verifier.gate.compare.compare import UNKNOWN, Judged
from rebalance_verifier.model.bugs.releases import released


@dataclass(frozen=True, slots=True)
class NewestRelease:
    """``judged`` is the newest release that was, "" without any; ``exists`` the registry's, or UNKNOWN."""

    client: str
    judged: str
    exists: str

    @property
    def line(self) -> str:
        """All of it as a sentence."""
        judged = f"{self.judged} is the newest that was judged" if self.judged else "none was judged"
        exists = f"{self.exists} the newest that exists"
        if self.exists == UNKNOWN:
            exists = "which is the newest that exists is not known"
        return f"{self.client}: {judged}, {exists}"

    def to_json(self) -> dict[str, Any]:
        """Return the same as JSON: null for what there is not, or is not known."""
        return {name: None if value in ("", UNKNOWN) else value for name, value in asdict(self).items()}


def newest(judged: Sequence[Judged]) -> list[NewestRelease]:
    """That of each client which a registry knows."""
    found = []
    for client in dict.fromkeys(one.column.client for one in judged if one.column.newest):
        members = [one for one in judged if one.column.client == client]
        done = released(one.release for one in members if one.clauses and not one.error)
        found.append(NewestRelease(client, done[-1] if done else "", members[0].column.newest))
    return found
