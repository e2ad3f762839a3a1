"""What a clause of the protocol is, and the one that every kind of group has."""

from __future__ import annotations

from dataclasses import dataclass

from rebalance_verifier.base.verdict import Level


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtocolClause:
    """One sentence that must hold of every run of a group; ``source`` is where it comes from."""

    id: str
    level: Level
    kind: str
    sentence: str
    source: str


CONVERGES = ProtocolClause(
    id="group/converges", level=Level.LIVENESS, kind="eventually",
    sentence="once nothing goes wrong any more the group settles, and every subscribed partition is owned",
    source="KIP-429",
)  # fmt: skip
