"""The faults of ``setup.RARE_FAULTS`` as commands to a simulation: what is lost, removed or not stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rebalance_verifier.live.clients.replay.client import Diverged
from rebalance_verifier.live.clients.replay.replay_plan import ReplayStep
from rebalance_verifier.live.code.answers import SimulationRequest
from rebalance_verifier.live.code.lockstep.comparison import IdNames
from rebalance_verifier.live.code.replay.steps import CodeSteps
from rebalance_verifier.model.classic.state import Refused
from rebalance_verifier.model.group.observations import Threw

NOT_STORED = "KAFKA_STORAGE_ERROR"
"""With which an append fails, and nobody knows what of it is in the log; members hear NOT_COORDINATOR."""


class RareSteps(CodeSteps):
    """`CodeSteps` with those faults."""

    ids: IdNames

    def _table(self) -> Mapping[str, Callable[[ReplayStep], None]]:
        return {
            **super()._table(),
            "leave lost": self._leave_lost, "member removed": self._member_removed,
            "sync not stored": lambda step: self._not_stored(step, "SyncGroup"),
            "return not stored": lambda step: self._not_stored(step, "JoinGroup"),
            "polls on": self._polls_on, "completes again": self._throws,
            "unsubscribe midway": self._unsubscribe_midway,
        }  # fmt: skip

    def _leave_lost(self, step: ReplayStep) -> None:
        """LeaveGroup is sent, and arrives as little as what was sent before it."""
        self._late_leave(step)
        for one in self._member(step).cut_off_requests.pop():
            self.group.do("drop", id=one.id)

    def _member_removed(self, step: ReplayStep) -> None:
        """An administrator names a static member by its instance id (KIP-345), others by their member id."""
        wanted = self.ids.real(step.event.who, int(step.event.choice.removeprefix("id ")))
        one = next((one for one in self.group.state.coordinator.members if one.id == wanted), None)
        if one is None:
            raise Diverged(f"the coordinator does not know {step.name}")
        named = {"instance": one.instance} if one.instance else {"member_id": one.id}
        events = self.group.do("send", api="LEAVE_GROUP", **named)
        (sent,) = (event for event in events if isinstance(event, SimulationRequest))
        self.group.do("deliver", id=sent.id)

    def _not_stored(self, step: ReplayStep, api: str) -> None:
        """Fail the append of the request."""
        self.group.do("hold", on=True)
        self.group.deliver(self._member(step), api)
        self.group.do("append", error=NOT_STORED, logged=step.event.choice == "logged")
        self.group.do("hold", on=False)

    def _polls_on(self, step: ReplayStep) -> None:
        """Its poll throws, and nobody closes the consumer."""
        member, wire = self._member(step), step.wire()
        assert isinstance(wire, Refused)
        response = self.group.respond(member, "JoinGroup" if wire.api == "join" else "SyncGroup")
        if response.error != wire.error.value:
            raise Diverged(f"its {response.api} is answered with {response.error}, not {wire.error}")
        if not any(isinstance(one, Threw) for one in self.group.seen):
            raise Diverged("poll throws nothing")

    def _unsubscribe_midway(self, step: ReplayStep) -> None:
        """Answer the requests that it had sent all the same."""
        member = self._member(step)
        self.group.do("unsubscribe", member=member.slot)
        self._arrives_at_once(member, "LeaveGroup")
