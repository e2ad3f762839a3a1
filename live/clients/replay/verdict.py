"""What came of a replay: the verdict, what it rests on, and observations in words."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rebalance_verifier.base.processes.program import JsonLine
from rebalance_verifier.base.verdict import Exit

OBSERVABLE_CLAUSES = frozenset({
    "group/owner", "callback/told", "callback/revoked", "callback/lost", "callback/assigned",
    "callback/order", "callback/rejoin", "callback/owned", "callback/fetch", "leader/stale",
    "leader/withhold", "leader/grant", "leader/label", "leave/callback", "leave/sent", "error/retriable",
    "error/membership", "error/old", "error/id", "poll/throws",
})  # fmt: skip
"""The clauses that show in what a client does; the others are the coordinator's, or about what is inside."""

LEADER = "the leader decides"
"""How a decision that is not the trace's begins."""


@dataclass(frozen=True, slots=True)
class BrokenClause:
    """A clause that the real group broke, at which step of the trace, and how."""

    clause: str
    step: int
    sentence: str


@dataclass(kw_only=True)
class Replayed:
    """Result of one replay.

    ``unforced``: steps of the trace that could not be made to happen, and why. ``differs``: where the client
    did otherwise than the model and the trace went on. ``stopped``: why it did not come to its end, or "".
    ``shown``: per step of the trace what the clients did. ``events`` is what they said, ``frames`` what the
    proxy saw. ``due``: for a run that comes to a standstill, who has to do something then: that can be asked.

    Of Kafka's own code: ``parting`` is the first step in which the switch that the run shows matters,
    ``unable`` the first that could not be made to happen, ``otherwise`` where Kafka first did otherwise;
    ``renamed``: a leader decided as in the trace but for which partitions they are.
    """

    clause: str
    client: str
    version: str = ""
    naming: tuple[str, ...] = ()
    steps: int = 0
    done: int = 0
    broken: list[BrokenClause] = field(default_factory=list)
    unforced: list[str] = field(default_factory=list)
    differs: list[str] = field(default_factory=list)
    stopped: str = ""
    interrupted: bool = False
    due: tuple[str, ...] = ()
    parting: int | None = None
    unable: int | None = None
    otherwise: int | None = None
    renamed: bool = False
    shown: list[dict[str, Any]] = field(default_factory=list)
    events: list[JsonLine] = field(default_factory=list)
    frames: list[str] = field(default_factory=list)
    observable_clauses: frozenset[str] = OBSERVABLE_CLAUSES

    @property
    def verdict(self) -> str:
        """Return one of "same", "another", "none"; "inconclusive": nothing broke, and not all could be
        forced."""
        if any(one.clause == self.clause for one in self.broken):
            return "same"
        if self.broken:
            return "another"
        if self.unforced or self.stopped or not self.observable:
            return "inconclusive"
        return "none"

    @property
    def exit(self) -> Exit:
        """Return the exit code; of several the gravest counts, 1 before 3."""
        if self.broken:
            return Exit.VIOLATION
        return Exit.CONFORMANT if self.verdict == "none" else Exit.INCONCLUSIVE

    @property
    def sentence(self) -> str:
        """Return the verdict in words."""
        return {
            "same": "breaks the same clause",
            "another": f"breaks {', '.join(dict.fromkeys(one.clause for one in self.broken))} instead",
            "none": "breaks nothing; every step of the trace was forced",
            "inconclusive": "breaks nothing that was asked, and not all of the trace could be forced or "
            "asked",
        }[self.verdict]

    @property
    def parted(self) -> bool:
        """Check whether it went the trace's way up to where the switch matters, and then another one."""
        if self.parting is None or self.otherwise is None or self.otherwise < self.parting:
            return False
        return self.unable is None or self.otherwise < self.unable

    @property
    def absent(self) -> bool:
        """Check whether this is known not to have the bug that the run shows."""
        forced = self.observable and not self.unforced and not self.stopped
        return self.verdict != "same" and (forced or self.parted)

    @property
    def parts(self) -> str:
        """Return in words that it parted, "" where it did not."""
        if not self.parted:
            return ""
        return f"what the run shows matters from step {self.parting} on, and there this goes another way"

    @property
    def observable(self) -> bool:
        """Check whether the trace's clause shows in what a client does here."""
        return self.clause in self.observable_clauses or bool(self.due)

    @property
    def why_unobservable(self) -> str:
        """Return why the trace's clause is none that a client can break here; "" for one that it can."""
        if self.observable:
            return ""
        if self.clause.startswith(("coordinator/", "group/size", "group/instance")):
            return f"{self.clause} is about the coordinator, and consumers are asked"
        return f"{self.clause} does not show in what a client does during a run that ends"

    @property
    def rank(self) -> tuple[int, int, int]:
        """Return how much a replay tells, the most first: of several attempts the best counts."""
        order = ("same", "another", "none", "inconclusive")
        verdict = "none" if self.verdict == "inconclusive" and self.parted else self.verdict
        return order.index(verdict), len(self.unforced) + bool(self.stopped), -self.done
