"""Nothing goes wrong any more: messages arrive, everybody polls, and what is due fires. Is it settled?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import StrEnum

from rebalance_verifier.live.code.search.choice import ARRIVES, CodeChoice
from rebalance_verifier.live.code.search.enabled import beats_on, choices
from rebalance_verifier.live.code.search.group import FOUND, SearchedGroup
from rebalance_verifier.live.code.search.steps import SearchSteps
from rebalance_verifier.model.machine import Event

MAX_STEPS = 600
"""After which a group that goes on rebalancing has not settled yet."""

TIMERS = ("rebalance", "sync", "session", "slow")


class Ending(StrEnum):
    """End of a group in which no further events happen."""

    SETTLED = "settles"
    STILL = "stands still without being settled"
    ROUND = "rebalances again and again"
    NOT_YET = f"is not settled after {MAX_STEPS} steps"


class Peace:
    """Leaves ``group`` in peace; ``step`` takes a choice and says whether anything changed, ``goes_on``
    whether anything can be taken at all."""

    def __init__(
        self,
        group: SearchedGroup,
        steps: SearchSteps,
        step: Callable[[CodeChoice], bool],
        goes_on: Callable[[], bool],
    ) -> None:
        self.group, self.steps, self.step, self.goes_on = group, steps, step, goes_on
        self.taken = 0

    def come(self) -> Ending:
        """Until it is settled, nothing changes any more, or it has gone on for too long. Raises
        SimulationDied."""
        first = self._generation()
        rounds = 4 * (self.group.most_rounds + 2)
        while self.taken < MAX_STEPS and self.goes_on():
            if self._busy():
                continue
            if self.group.settled():
                return Ending.SETTLED
            if self._generation() - first > rounds:
                return Ending.ROUND
            if not self._time_passes():
                return Ending.STILL
        return Ending.NOT_YET

    def _generation(self) -> int:
        """Return the generation of the group, or its epoch."""
        known = self.group.state.coordinator
        return known.generation if known.consumer is None else known.consumer.epoch

    def _busy(self) -> bool:
        """Do everything that happens without time passing, once; return whether anything changed."""
        changed = False
        for one in choices(self.group, ()):
            if (
                self.goes_on()
                and one.act not in TIMERS
                and (again := self.steps.found(one.event, ())) is not None
            ):
                changed |= self._takes(again)
        return changed

    def _takes(self, choice: CodeChoice) -> bool:
        self.taken += 1
        return self.step(choice)

    def _time_passes(self) -> bool:
        """Fire the first timer whose end changes anything.

        A join phase ends before a JoinGroup times out, which the client gives five seconds more; a SyncGroup
        has only request.timeout.ms, far less than the coordinator waits for it. What waits longest is first.
        """
        due = [one for one in choices(self.group, ("slow member", "session timeout")) if one.act in TIMERS]
        order = sorted(due, key=lambda one: (one.fault, TIMERS.index(one.act)))
        plain = [one for one in order if not one.fault]
        late = [one for one in order if one.fault and self._misses(one)]
        joins = [one for one in late if one.act == "rebalance"]
        others = [one for one in late if one.act != "rebalance"]
        return any(self._takes(one) for one in (*plain, *joins, *self._unanswered(), *others))

    def _unanswered(self) -> Iterator[CodeChoice]:
        """request.timeout.ms of who waits for an answer."""
        for _, slot in sorted((number, slot) for slot, number in self.group.memory.pending_requests.items()):
            if self.group.waits(slot) is not None:
                queue = [one for one in self.group.queue(slot) if one.api != FOUND]
                yield CodeChoice("disconnect", Event("disconnect", slot, ARRIVES if queue else ""), True)

    def _misses(self, one: CodeChoice) -> bool:
        """Check whether who is at work lets a timer pass: heartbeats of who polls keep its session."""
        return one.act != "session" or not beats_on(self.group, one.event.who)
