"""A member of the consumer protocol that is played: what the Java client does with heartbeats, no more."""

from __future__ import annotations

from dataclasses import dataclass

from rebalance_verifier.base.processes.program import JsonLine
from rebalance_verifier.live.code.answers import Partitions, SimulationResponse

REBALANCE_MS = 60_000

LEAVE, LEAVE_STATIC = -1, -2

AGAIN = frozenset({"COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE"})
"""Answers after which the client sends the same again."""

FENCED = frozenset({"FENCED_MEMBER_EPOCH", "UNKNOWN_MEMBER_ID"})
"""Answers after which it gives up what it has and joins again (transitionToFenced)."""


@dataclass(slots=True, kw_only=True)
class PlayedConsumer:
    """One consumer with ``group.protocol=consumer``: epoch, what it owns, what it was last assigned.

    It revokes before it says so, says so in its next heartbeat, has one request under way, and repeats
    everything after an answer that was lost, as ``ConsumerMembershipManager`` of Java 4.0 to 4.4 does.
    ``target``: what it was last assigned. ``waiting``: its request is under way. ``whole``, ``changed``:
    what the next one says. ``dead``: the error after which the client throws and never joins again.
    ``gone``: it has left.
    """

    member_id: str
    topics: tuple[str, ...] = ("t",)
    instance: str | None = None
    epoch: int = 0
    owned: Partitions = frozenset()
    target: Partitions = frozenset()
    waiting: bool = False
    whole: bool = True
    changed: bool = False
    dead: str = ""
    gone: bool = False
    up: bool = False

    @property
    def can_send(self) -> bool:
        """Check whether it would send a heartbeat now."""
        return self.up and not (self.waiting or self.dead or self.gone)

    def heartbeat(self) -> JsonLine:
        """Return the next heartbeat, as the command ``send`` has it."""
        self.waiting = True
        fields: JsonLine = {"member_id": self.member_id, "generation": self.epoch, "instance": self.instance}
        if self.whole or self.epoch == 0:
            fields |= {"topics": list(self.topics), "rebalance_ms": REBALANCE_MS}
        if self.whole or self.changed or self.epoch == 0:
            fields["partitions"] = sorted(self.owned)
        self.whole = self.changed = False
        return fields

    def leave(self) -> JsonLine:
        """Return its last heartbeat: what it owns is given up first."""
        self.owned = self.target = frozenset()
        self.gone = True
        leaving = LEAVE if self.instance is None else LEAVE_STATIC
        return {"member_id": self.member_id, "generation": leaving, "instance": self.instance}

    def hear(self, answer: SimulationResponse) -> None:
        """An answer arrives."""
        self.waiting = False
        if self.gone:
            return
        if answer.error == "NONE":
            self.epoch = answer.generation or 0
            if answer.assignment is not None:
                self.target = answer.assignment
                self.changed |= self.target == self.owned
        elif answer.error in AGAIN:
            self.whole = True
        elif answer.error in FENCED:
            self.owned = self.target = frozenset()
            self.epoch, self.whole = 0, True
        else:
            self.dead = answer.error
            self.owned = self.target = frozenset()

    def lose(self) -> None:
        """The answer does not come."""
        self.waiting = False
        self.whole = True

    @property
    def can_reconcile(self) -> bool:
        """Check whether it was assigned other than what it owns."""
        return self.up and not self.gone and not self.dead and self.target != self.owned

    def reconcile(self) -> None:
        """It revokes what goes, and takes what comes; the next heartbeat says so."""
        self.owned = self.target
        self.changed = True
