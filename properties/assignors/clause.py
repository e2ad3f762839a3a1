"""What a clause of an assignor is, what breaks one, and what it is shown."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from typing import Any

from rebalance_verifier.base.verdict import Level
from rebalance_verifier.model.assignor import Promise
from rebalance_verifier.model.values import EXCLUSIVE, SERVED, RebalanceProtocol, TopicPartition
from rebalance_verifier.properties.assignors.calls import AssignorCall, AssignQuestion, Reply
from rebalance_verifier.properties.assignors.played import AnyScenario

EAGER = RebalanceProtocol.EAGER

COOPERATIVE = RebalanceProtocol.COOPERATIVE

CONSUMER = RebalanceProtocol.CONSUMER

SHARE = RebalanceProtocol.SHARE


class Scope(StrEnum):
    """Input that a clause is shown, and so the way it is checked."""

    CALL = "call"  # every answered call
    REPLY = "reply"  # every reply, answered or not
    RELATION = "relation"  # a call and further questions about it
    REPEAT = "repeat"  # a call and the right to put it to another process of the target
    HISTORY = "history"  # all calls of a scenario, the undisturbed ones at its end included

    @property
    def by(self) -> str:
        """Return by what a clause is checked, in words."""
        return _CHECKED_BY[self]


_CHECKED_BY = {
    Scope.CALL: "every answer",
    Scope.REPLY: "every reply, and every missing one",
    Scope.RELATION: "asking again, with the input changed in a way that must not matter",
    Scope.REPEAT: "putting the same question to a second process, with another hash seed",
    Scope.HISTORY: "playing the group on until it settles, and once more",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Breach:
    """One way in which a clause does not hold; ``partitions`` are those to look at in a chart.

    ``kind`` tells ways apart that are no variants of each other, in one or two words.
    """

    summary: str
    kind: str = ""
    because: tuple[str, ...] = ()
    expected: str = ""
    actual: str = ""
    partitions: tuple[TopicPartition, ...] = ()
    gap: int = 0
    """Distance from the optimum, where the clause measures one."""


Asking = Generator[AssignQuestion, Reply, Breach | None]
"""A clause that asks the target, and comes to a breach or none."""


@dataclass(frozen=True, slots=True)
class History:
    """All calls of one scenario; those from ``settling`` on are undisturbed."""

    calls: tuple[AssignorCall, ...]
    settling: int
    settled: int | None
    """Index of the first undisturbed call after which nobody has to revoke; ``None``: never."""


OF_SHARES = (
    ("ConsumerGroupPartitionAssignor", "ShareGroupPartitionAssignor"),
    ("group.consumer.assignors", "group.share.assignors"),
    ("KIP-848, server-side assignors", "KIP-932, share group assignment"),
    (
        "KIP-848%3A+The+Next+Generation+of+the+Consumer+Rebalance+Protocol",
        "KIP-932%3A+Queues+for+Kafka",
    ),
)
"""How the sources of consumer groups are called of share groups."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedText:
    """Where a clause comes from where a broker assigns, and its ``sentence`` if that is another then."""

    rule: str
    link: str
    sentence: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause:
    """One sentence that must hold of an assignor.

    ``promises``: asked only of targets that promise all of these (``Promise``), and none of ``unless``,
    which is to promise less. ``check`` takes what ``scope`` says and returns the breach or ``None``; where
    it has further questions it is a generator of these that returns as much (``Asking``).
    """

    id: str
    level: Level
    scope: Scope
    sentence: str
    rule: str
    """Where the sentence comes from: KIP and section."""
    link: str
    check: Callable[..., Any]
    protocols: tuple[RebalanceProtocol, ...] = EXCLUSIVE
    promises: frozenset[Promise] = frozenset()
    unless: frozenset[Promise] = frozenset()
    by_chance: bool = False
    """It is about answers that stay: one that breaks it in one of several plays does so."""
    needs: str = ""
    """A situation that a search has to reach, or nothing was asked: without it nothing breaks the clause."""
    served: ServedText | None = None
    """Its source in groups whose broker assigns, where leaders, claims and generations mean nothing."""
    level_of_shares: Level | None = None
    """Its level in share groups, where that is another."""

    def under(self, protocol: RebalanceProtocol) -> Clause:
        """Return the clause as it is said of ``protocol``."""
        served = self.served
        if served is None or protocol not in SERVED:
            return self
        sentence, rule, link = served.sentence or self.sentence, served.rule, served.link
        for name, of_shares in OF_SHARES if protocol is SHARE else ():
            rule, link = rule.replace(name, of_shares), link.replace(name, of_shares)
        level = (self.level_of_shares if protocol is SHARE else None) or self.level
        return replace(self, sentence=sentence, rule=rule, link=link, level=level)

    def applies(self, protocol: RebalanceProtocol, promises: Iterable[Promise]) -> bool:
        """Check whether a target with these promises is asked for this clause under ``protocol``."""
        promised = frozenset(promises)
        return protocol in self.protocols and self.promises <= promised and not self.unless & promised

    def missing(self, promises: Iterable[Promise]) -> str:
        """Return why a target with these promises is not asked for this clause."""
        promised = frozenset(promises)
        if less := sorted(self.unless & promised):
            return f"does not apply to an assignor that promises to be {', '.join(less)}"
        return f"not promised: {', '.join(sorted(self.promises - promised))}"

    def to_json(self) -> dict[str, Any]:
        """Return all that is said of it, as JSON values."""
        return {
            "id": self.id,
            "level": str(self.level),
            "sentence": self.sentence,
            "rule": self.rule,
            "link": self.link,
            "protocols": [str(p) for p in self.protocols],
            "promises": sorted(str(p) for p in self.promises),
            "unless": sorted(str(p) for p in self.unless),
            "checked_by": self.scope.by,
        }


class Violation(AssertionError):
    """A clause broken by a target, raised with everything that is needed to show and replay it.

    Raise through ``violation``: one subclass per clause, so that Hypothesis keeps two broken clauses
    apart and never shrinks from one into the other.
    """

    def __init__(self, clause: Clause, breach: Breach, scenario: AnyScenario) -> None:
        sentence = clause.under(scenario.protocol).sentence
        lines = [f"{clause.id} {breach.summary}", f"  rule     {sentence}"]
        lines += [f"  because  {line}" for line in breach.because]
        super().__init__("\n".join(lines))
        self.clause, self.breach, self.scenario = clause, breach, scenario


@cache
def _violation_type(clause_id: str) -> type[Violation]:
    prefix = re.sub("[/-]", " ", clause_id).title().replace(" ", "")
    return type(f"{prefix}Violation", (Violation,), {"__module__": __name__})


def violation(clause: Clause, breach: Breach, scenario: AnyScenario) -> Violation:
    """Return the exception for one breach."""
    return _violation_type(clause.id)(clause, breach, scenario)
