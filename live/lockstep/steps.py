"""The commands of a lockstep: those of a replay, and what a walk needs, which cannot look ahead."""

from __future__ import annotations

import contextlib
from typing import Any

from rebalance.live.code.answers import CellResponse
from rebalance.live.code.cell import CellRefused
from rebalance.live.lockstep.observed import IdNames
from rebalance.live.replay.client import WentAnotherWay
from rebalance.live.replay.code_group import POLLS, CodeGroup, CodeMember, CodeReleases
from rebalance.live.replay.code_steps import CodeSteps, gives_up
from rebalance.live.replay.replay_plan import ReplayStep
from rebalance.live.replay.scene import CannotForce
from rebalance.live.replay.verdict import Replayed
from rebalance.model.bugs.releases import version
from rebalance.model.protocol.errors import RETRIABLE
from rebalance.model.protocol.observations import Threw
from rebalance.model.protocol.state import Error, JoinOk, Late, Life, MemberState, Refused, Wire, each

POLLING = (
    "join", "complete", "heartbeat", "late request", "listener throws", "close", "unsubscribe", "slow commit",
    "max poll", "poll interval",
)  # fmt: skip
"""What a member does that has to know its coordinator."""


class LockSteps(CodeSteps):
    """Moves a group as the model's steps say. Before anything is done CannotForce tells what cannot be."""

    def __init__(self, group: CodeGroup, ids: IdNames) -> None:
        super().__init__(group, Replayed(clause="", client=""))
        self.ids = ids
        self.late: dict[int, CellResponse] = {}

    def take(self, step: ReplayStep) -> None:
        """One step; see CodeSteps."""
        self._forbid(step)
        if step.event.action in POLLING:
            self.group.ready(self._member(step))
        super().take(step)
        if who_fails(step):
            self._gives_up(self._member(step))

    def _gives_up(self, member: CodeMember) -> None:
        """Its poll throws what the application cannot handle, which closes it; nothing of that arrives, but
        what it had sent before may."""
        for _ in range(POLLS):
            if any(isinstance(one, Threw) for one in self.group.seen):
                sent = {api: one for api, one in member.open.items() if api in ("JoinGroup", "SyncGroup")}
                self.group.do("close", member=member.slot, arrive=[one.id for one in sent.values()])
                member.forget()
                member.open = sent
                return
            self.group.do("poll", member=member.slot)
        raise WentAnotherWay("poll throws nothing")

    def _forbid(self, step: ReplayStep) -> None:
        """Raises CannotForce."""
        action, who = step.event.action, step.event.who
        ends = action in ("disconnect", "left behind", "crash") or (
            gives_up(step) and action == "unsubscribe"
        )
        ends = ends or (action == "receive" and _retriable(step.wire()))
        if ends and isinstance(step.stray(), Late | Refused):
            raise CannotForce("what is late was sent on the connection that ends")
        if action in ("topic grows", "topic shrinks") and not self._numbered(step):
            raise CannotForce("partitions have numbers from 0 on")
        if action == "hang" and isinstance(step.wire(), JoinOk):
            raise CannotForce("an assignor that never returns would hold the cell")
        beats = action in ("max poll", "poll interval") or step.event.choice == "heartbeat"
        if beats and self._rests(step):
            raise CannotForce("its heartbeat thread rests until the rebalance is over")
        if action == "enforce" and not can_enforce(self.group.releases, who):
            raise CannotForce("enforceRebalance is there since Kafka 2.6")
        waits = action == "unsubscribe" and step.wire() is not None and not gives_up(step)
        if waits or (gives_up(step) and action not in ("unsubscribe", "close")):
            raise CannotForce("Java sends no second JoinGroup before the first is answered")
        if action == "late request" and step.event.choice == "commit" and not step.member().owned:
            raise CannotForce("who owns nothing has nothing to commit")
        if who >= 0 and step.member().life is Life.HUNG and action in POLLING:
            state = self.group.state.members[who]
            if state is None or not state.coordinator_known:
                raise CannotForce("who hangs does not look for its coordinator")

    def _disconnect(self, step: ReplayStep) -> None:
        """The client learns of it when it receives nothing."""
        self._member(step).cut_off()
        self.group.do("disconnect", member=step.event.who, arrive=False)

    def _receive(self, step: ReplayStep) -> None:
        wire = step.wire()
        if isinstance(wire, Refused) and wire.error is Error.DISCONNECT:  # it knows, and has not polled yet
            self.group.do("network", member=step.event.who)
        else:
            super()._receive(step)
        config = self.setup.consumers[step.event.who].stages[step.member().stage]
        if _retriable(wire) and "reset_on_retriable" in config.decisions:
            # The application's thread makes of it what it makes.
            self.group.ready(self._member(step))
            self.group.do("poll", member=step.event.who)

    def _rests(self, step: ReplayStep) -> bool:
        """Whether its heartbeat thread does not look at the clock (before KAFKA-10134)."""
        member = step.member()
        config = self.setup.consumers[step.event.who].stages[member.stage]
        return member.state is MemberState.COMPLETING and "no_heartbeat_in_completing" in config.decisions

    def _numbered(self, step: ReplayStep) -> bool:
        """Whether the partitions of each topic are its first ones after the step."""
        cluster: Any = step.built.value(step.after, "cluster")
        counts = (each(parts & cluster.parts) for parts in self.setup.topics)
        return all(
            some == each(parts)[: len(some)] for some, parts in zip(counts, self.setup.topics, strict=True)
        )

    def _session(self, step: ReplayStep) -> None:
        number = int(step.event.choice.removeprefix("id "))
        self.group.do("expire", timer="session", member_id=self.ids.real(step.event.who, number))

    def _rebalance_timeout(self, step: ReplayStep) -> None:
        self.group.do("expire", timer="rebalance" if step.event.choice.startswith("join") else "sync")

    def _late_request(self, step: ReplayStep) -> None:
        member, commit = self._member(step), step.event.choice == "commit"
        api = "OffsetCommit" if commit else "Heartbeat"
        with contextlib.suppress(CellRefused):
            self.group.do("commit" if commit else "heartbeat", member=member.slot)
        member.late = member.open.pop(api, None)
        if member.late is None:
            raise WentAnotherWay(f"sends no {api}")

    def _late_arrives(self, step: ReplayStep) -> None:
        member = self._member(step)
        assert member.late is not None
        self.group.do("deliver", id=member.late.id)
        if step.event.action == "abandoned join":  # nobody hears the answer
            member.late = None
            return
        response = member.answers.pop(member.late.api, None)
        expected = step.stray(after=True)
        if response is None:
            raise WentAnotherWay("the coordinator does not answer it")
        wanted = expected.error.value if isinstance(expected, Refused) else "NONE"
        if response.error != wanted:
            raise WentAnotherWay(f"it is answered with {response.error}, in the model with {wanted}")
        self.late[member.slot] = response
        if wanted == "NONE":
            self._late_answer(step)

    def _late_answer(self, step: ReplayStep) -> None:
        member = self._member(step)
        response, member.late = self.late.pop(member.slot), None
        member.answers[response.api] = response
        self.group.respond(member, response.api)

    def _heartbeat(self, step: ReplayStep) -> None:
        member = self._member(step)
        self.group.do("heartbeat", member=member.slot)
        if "Heartbeat" not in member.open:
            raise WentAnotherWay(f"{step.name} sends no heartbeat")
        self.group.deliver(member, "Heartbeat")
        self.group.respond(member, "Heartbeat")


def can_enforce(releases: CodeReleases, slot: int) -> bool:
    """Whether a member's consumer has ``enforceRebalance()`` (KIP-568)."""
    return version(releases.of(slot)) >= (2, 6)


def who_fails(step: ReplayStep) -> bool:
    """Whether the application of the step's member gives up in it."""
    return step.event.who >= 0 and step.member(after=True).life is Life.FAILED is not step.member().life


def _retriable(wire: Wire) -> bool:
    """Whether an answer makes the client forget its coordinator, and end the connection to it."""
    return isinstance(wire, Refused) and wire.error in RETRIABLE
