"""The commands of a lockstep: those of a replay, and what a walk needs, which cannot look ahead."""

from __future__ import annotations

import contextlib
from typing import Any

from rebalance_verifier.live.clients.replay.client import Diverged
from rebalance_verifier.live.clients.replay.replay_plan import ReplayStep
from rebalance_verifier.live.clients.replay.scene import NotForcible
from rebalance_verifier.live.clients.replay.verdict import Replayed
from rebalance_verifier.live.code.answers import SimulationResponse
from rebalance_verifier.live.code.lockstep.comparison import IdNames
from rebalance_verifier.live.code.lockstep.faults import RareSteps
from rebalance_verifier.live.code.replay.group import POLLS, RETENTION, CodeGroup, CodeMember, CodeReleases
from rebalance_verifier.live.code.replay.steps import gives_up
from rebalance_verifier.live.code.simulation import NotEnabled
from rebalance_verifier.model.bugs.releases import version
from rebalance_verifier.model.classic import state as s
from rebalance_verifier.model.classic.errors import RETRIABLE, answer_to
from rebalance_verifier.model.group import parts as p
from rebalance_verifier.model.group.observations import Threw
from rebalance_verifier.model.group.setup import MemberContext, letter
from rebalance_verifier.model.machine import Event

POLLING = (
    "join", "complete", "heartbeat", "late request", "listener throws", "close", "unsubscribe", "slow commit",
    "max poll", "poll interval", "late leave", "leave lost", "completes again", "unsubscribe midway",
)  # fmt: skip
"""What a member does that has to know its coordinator."""


LEAVES = ("close", "unsubscribe", "bounce", "late leave", "leave lost", "unsubscribe midway")

COMPLETES = ("complete", "listener throws", "completes again")
"""What takes over an assignment."""

OF_THREAD = (
    "join", "receive", "assign", "complete", "listener throws", "slow commit", "commit done",
    "commit refused", "prepare", "close", "bounce", "unsubscribe", "subscribe", "resubscribe", "enforce",
    "polls on", "completes again", "unsubscribe midway",
)  # fmt: skip
"""What only an application's thread comes to."""

BESIDE_POLLS = ("late leave", "leave lost", "refresh")
"""What either thread comes to, and none within a poll that commits."""

OF_PROCESS = (
    *OF_THREAD, *BESIDE_POLLS, "heartbeat", "late request", "late answer", "max poll", "poll interval",
)  # fmt: skip
"""What takes a process that runs."""

REFUSED = (p.Error.UNKNOWN_MEMBER_ID, p.Error.ILLEGAL_GENERATION, p.Error.FENCED_INSTANCE_ID)
"""Answers to a commit by which a consumer hears that its membership is over."""

UNEXPECTED = "GROUP_ID_NOT_FOUND"
"""What a consumer makes nothing of."""

NO_GROUP = (p.Error.ILLEGAL_GENERATION.value, UNEXPECTED)
"""Answers to a commit where there is no group, up to version 8 of the request and since."""


class LockSteps(RareSteps):
    """Moves a group as the model's steps say. Before anything is done NotForcible tells what cannot be."""

    def __init__(self, group: CodeGroup, ids: IdNames) -> None:
        super().__init__(group, Replayed(clause="", client=""))
        self.ids = ids
        self.late: dict[int, SimulationResponse] = {}
        self.committed: set[int] = set()
        self.halted: dict[int, str] = {}

    def take(self, step: ReplayStep) -> None:
        """One step; see CodeSteps."""
        self._forbid(step)
        self._runs(step.event)
        if step.event.action in LEAVES and step.event.choice != "max poll" and lost(step.wire()):
            self.group.do("network", member=step.event.who)  # or it would not look for its coordinator
        if step.event.action in POLLING:
            self.group.ready(self._member(step))
        super().take(step)
        if step.event.action == "commit done":
            self.committed.add(step.event.who)
        elif step.event.action in ("join", "start"):
            self.committed.discard(step.event.who)
        if who_fails(step):
            self._gives_up(self._member(step))

    def within_poll(self, step: ReplayStep) -> bool:
        """Check whether a member of before Kafka 3.2 commits, or has committed, in a poll that sends
        JoinGroup."""
        commits = step.member().committing or step.event.who in self.committed
        return commits and self.waits(self._member(step))

    def _runs(self, event: Event) -> None:
        """Nothing is done by a process that was paused, or by a thread that hangs, until it goes on or ends.

        Raises Diverged.
        """
        if event.action in ("pause", "hang"):
            self.halted[event.who] = event.action
        elif event.action in ("resume", "crash", "start"):
            self.halted.pop(event.who, None)
        halted = self.halted.get(event.who)
        if (halted == "pause" and event.action in OF_PROCESS) or (halted and event.action in OF_THREAD):
            raise Diverged(f"{letter(event.who)} does not run")

    def _gives_up(self, member: CodeMember) -> None:
        """Its poll throws what the application cannot handle, which closes it; nothing of that arrives, but
        what it had sent before may."""
        for _ in range(POLLS):
            if any(isinstance(one, Threw) for one in self.group.seen):
                sent = {
                    api: one for api, one in member.open_requests.items() if api in ("JoinGroup", "SyncGroup")
                }
                left = [one for connection in member.cut_off_requests for one in connection]
                left += [*sent.values(), *([member.delayed_request] if member.delayed_request else [])]
                self.group.do("close", member=member.slot, arrive=[one.id for one in left])
                member.forget()
                member.open_requests = sent
                return
            self.group.do("poll", member=member.slot)
        raise Diverged("poll throws nothing")

    def _forbid(self, step: ReplayStep) -> None:
        """Raises NotForcible."""
        action, who = step.event.action, step.event.who
        ends = action in ("disconnect", "left behind", "crash") or (
            gives_up(step) and action == "unsubscribe"
        )
        ends = ends or (action == "receive" and _retriable(step.wire()))
        if ends and isinstance(step.stray(), p.Late | s.Refused):
            raise NotForcible("what is late was sent on the connection that ends")
        if action in ("topic grows", "topic shrinks"):
            cluster: Any = step.built.value(step.after, "cluster")
            if not self.group.are_first(cluster.parts):
                raise NotForcible("partitions have numbers from 0 on")
        if action == "hang" and isinstance(step.wire(), s.JoinOk):
            raise NotForcible("an assignor that never returns would hold the simulation")
        beats = action in ("max poll", "poll interval") or step.event.choice in ("heartbeat", "max poll")
        if beats and self._rests(step):
            raise NotForcible("its heartbeat thread rests until the rebalance is over")
        throws = any(isinstance(one, Threw) for one in step.outcome.seen)
        if action == "listener throws" and not throws:
            raise NotForcible("no listener hears of the assignment of an old subscription")
        if action in ("receive", "polls on") and throws and not step.member().topics:
            raise NotForcible("a consumer that has unsubscribed does not look whether its join failed")
        if action == "enforce" and not can_enforce(self.group.releases, who):
            raise NotForcible("enforceRebalance is there since Kafka 2.6")
        unsubscribes = "unsubscribe" in (action, step.event.choice)
        waits = unsubscribes and step.wire() is not None and not gives_up(step)
        if waits or (gives_up(step) and action not in ("unsubscribe", "close")):
            raise NotForcible("Java sends no second JoinGroup before the first is answered")
        if action == "late request" and step.event.choice == "commit" and not step.member().owned:
            raise NotForcible("a consumer that owns nothing has nothing to commit")
        if who >= 0 and step.member().life is p.Life.HUNG and action in POLLING:
            state = self.group.state.members[who]
            if state is None or not state.coordinator_known:
                raise NotForcible("a consumer that hangs does not look for its coordinator")
        waited = action in COMPLETES and isinstance(step.stray(), p.Late | s.Refused)
        if waited and self.group.commits and self.waits(self._member(step)):
            raise NotForcible("what is late was sent before the commit that a poll waits for")
        if action in LEAVES and lost(step.wire()) and version(self.group.releases.of(who)) < (2, 7):
            raise NotForcible("before Kafka 2.7 who hears that its JoinGroup failed does not leave")
        if action in ("join", "slow commit", "commit done", "commit refused") and self.group.commits:
            self._forbid_commit(step)
        elif who >= 0 and action in (*OF_THREAD, *BESIDE_POLLS) and self.within_poll(step):
            raise NotForcible("its thread is in the poll that commits, and comes back with JoinGroup")
        if (
            action == "group expires"
            and self.group.has_offsets
            and self.group.state.coordinator.pending_joins
        ):
            raise NotForcible("offsets are kept for longer than an id that was never used")

    def _forbid_commit(self, step: ReplayStep) -> None:
        """Of the commit before a join that there is, and which only ``commit refused`` hears of."""
        member, slot = step.member(), step.event.who
        sends = member.prepare and member.state is p.MemberState.STABLE and self.group.fetchable(slot) != 0
        ours = self._member(step)
        late = any(one.api == "LeaveGroup" for connection in ours.cut_off_requests for one in connection)
        late = late or isinstance(step.stray(), p.Late | s.Refused)
        if late and sends and self.waits(ours) and step.event.action != "slow commit":
            raise NotForcible("what is late was sent before the commit that a poll waits for")
        if step.event.action == "commit refused":
            if step.group().state is p.GroupState.DEAD:
                raise NotForcible("a commit that finds no group is answered otherwise")
            return
        if step.event.action == "slow commit" and (not sends or slot in self.committed):
            raise NotForcible("the client commits nothing before it joins")
        if step.event.action == "join" and (not sends or slot in self.committed):
            return
        me = MemberContext(p.Slot(slot), self.setup)
        args = step.group(), step.records(), member.id, member.generation
        if member.generation != p.NONE and answer_to(me, "commit", *args) in REFUSED:
            raise NotForcible("its commit before the join is refused")

    def _disconnect(self, step: ReplayStep) -> None:
        """The client learns of it when it receives nothing."""
        self._cut(self._member(step))

    def _group_expires(self, step: ReplayStep) -> None:
        """Offsets go some time after the last member."""
        if self.group.has_offsets:
            self.group.do("elapse", ms=RETENTION)
        super()._group_expires(step)
        self.group.has_offsets = False

    def _receive(self, step: ReplayStep) -> None:
        wire = step.wire()
        if lost(wire):  # it knows, and has not polled yet
            self.group.do("network", member=step.event.who)
        else:
            super()._receive(step)
        config = self.setup.consumers[step.event.who].stages[step.member().stage]
        if _retriable(wire) and "reset_on_retriable" in config.decisions:
            # The application's thread makes of it what it makes.
            self.group.ready(self._member(step))
            self.group.do("poll", member=step.event.who)

    def _rests(self, step: ReplayStep) -> bool:
        """Check whether its heartbeat thread does not look at the clock (before KAFKA-10134)."""
        member = step.member()
        config = self.setup.consumers[step.event.who].stages[member.stage]
        return member.state is p.MemberState.COMPLETING and "no_heartbeat_in_completing" in config.decisions

    def _session(self, step: ReplayStep) -> None:
        number = int(step.event.choice.removeprefix("id "))
        self.group.do("expire", timer="session", member_id=self.ids.real(step.event.who, number))

    def _rebalance_timeout(self, step: ReplayStep) -> None:
        self.group.do("expire", timer="rebalance" if step.event.choice.startswith("join") else "sync")

    def _late_request(self, step: ReplayStep) -> None:
        member, commit = self._member(step), step.event.choice == "commit"
        api = "OffsetCommit" if commit else "Heartbeat"
        before = member.open_requests.pop(api, None)  # that of onJoinPrepare
        with contextlib.suppress(NotEnabled):
            self.group.do("commit" if commit else "heartbeat", member=member.slot)
        member.delayed_request = member.open_requests.pop(api, None)
        if before is not None:
            member.open_requests[api] = before
        if member.delayed_request is None:
            raise Diverged(f"sends no {api}")

    def _late_arrives(self, step: ReplayStep) -> None:
        member = self._member(step)
        assert member.delayed_request is not None
        self.group.do("deliver", id=member.delayed_request.id)
        if step.event.action == "abandoned join" or step.member().life in (p.Life.DOWN, p.Life.FAILED):
            member.delayed_request = None  # nobody hears the answer
            return
        response = member.undelivered_answers.pop(member.delayed_request.api, None)
        expected = step.stray(after=True)
        if response is None:
            raise Diverged("the coordinator does not answer it")
        wanted = expected.error.value if isinstance(expected, s.Refused) else "NONE"
        none = commit_of_no_group(step) and response.error in NO_GROUP
        if response.error != wanted and not none:
            raise Diverged(f"it is answered with {response.error}, in the model with {wanted}")
        self.late[member.slot] = response
        if wanted == "NONE" or response.error == UNEXPECTED:
            self._late_answer(step)

    def _late_answer(self, step: ReplayStep) -> None:
        member = self._member(step)
        response, member.delayed_request = self.late.pop(member.slot, None), None
        if response is None or step.member().life in (p.Life.DOWN, p.Life.FAILED):
            return
        member.undelivered_answers[response.api] = response
        self.group.respond(member, response.api)

    def _heartbeat(self, step: ReplayStep) -> None:
        member = self._member(step)
        self.group.do("heartbeat", member=member.slot)
        if "Heartbeat" not in member.open_requests:
            raise Diverged(f"{step.name} sends no heartbeat")
        self.group.deliver(member, "Heartbeat")
        self.group.respond(member, "Heartbeat")


def can_enforce(releases: CodeReleases, slot: int) -> bool:
    """Check whether a member's consumer has ``enforceRebalance()`` (KIP-568)."""
    return version(releases.of(slot)) >= (2, 6)


def who_fails(step: ReplayStep) -> bool:
    """Check whether the application of the step's member gives up in it."""
    return step.event.who >= 0 and step.member(after=True).life is p.Life.FAILED is not step.member().life


def commit_of_no_group(step: ReplayStep) -> bool:
    """Check whether a late commit arrives where there is no group any more."""
    late = step.stray() if step.event.action == "late request arrives" else None
    return isinstance(late, p.Late) and late.api == "commit" and step.group().state is p.GroupState.DEAD


def lost(wire: s.Wire) -> bool:
    """Check whether a request, or its answer, went with its connection."""
    return isinstance(wire, s.Refused) and wire.error is p.Error.DISCONNECT


def _retriable(wire: s.Wire) -> bool:
    """Check whether an answer makes the client forget its coordinator, and end the connection to it."""
    return isinstance(wire, s.Refused) and wire.error in RETRIABLE
