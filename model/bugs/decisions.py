"""Design switches of the protocol: what a member, a leader or a coordinator was made to do wrongly.

A decision is only a name and a sentence here; the state machine (``model.classic``) asks whether
it is on. Which bug it stands for and where it was shipped is told by ``model.bugs.catalogue``.
Mistakes inside an assignor are in ``model.bugs.switches``; ``claims_always_empty`` and
``validate_raw_claims`` are in both, because member and leader can make them whatever the assignor does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from rebalance_verifier.base.tables import table
from rebalance_verifier.model.bugs import catalogue

Where = Literal["member", "leader", "coordinator"]


@dataclass(frozen=True, slots=True)
class Decision:
    """One named decision: who makes it, and what is done."""

    id: str
    where: Where
    sentence: str

    @property
    def entry(self) -> str:
        """The entry of the catalogue that it stands for, ``none`` for one that was never shipped."""
        entries = catalogue.entries_of(self.id)
        return entries[0].id if entries else "none"

    @property
    def shipped(self) -> str:
        """The releases that have it, in the form of ``model.bugs.releases``."""
        return catalogue.shipped(self.id)


_TEXTS: dict[str, dict[str, str]] = table(__file__)

DECISIONS: dict[str, Decision] = {
    id_: Decision(id_, where, sentence)
    for where in get_args(Where)
    for id_, sentence in _TEXTS[where].items()
}
"""All decisions by id, grouped by who makes them."""

NOT_EXPRESSED: dict[str, str] = _TEXTS["not_expressed"]
"""Entries, or parts of them, that the state machine cannot show, with the reason."""
