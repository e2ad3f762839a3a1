"""Each step of the model as commands to a simulation: poll, let this request arrive, let that timer fire."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping

from rebalance_verifier.live.clients.replay.client import Diverged
from rebalance_verifier.live.clients.replay.replay_plan import ReplayStep
from rebalance_verifier.live.clients.replay.scene import NotForcible
from rebalance_verifier.live.clients.replay.verdict import LEADER, Replayed
from rebalance_verifier.live.code.answers import SimulationRequest
from rebalance_verifier.live.code.replay.group import (
    POLLS,
    CodeGroup,
    CodeMember,
    led_to,
    taken,
    told_to_lead,
)
from rebalance_verifier.live.code.simulation import NotEnabled
from rebalance_verifier.model.bugs.releases import version
from rebalance_verifier.model.classic import state as s
from rebalance_verifier.model.group import parts as p
from rebalance_verifier.model.group.observations import Decided, Threw
from rebalance_verifier.model.group.setup import letter

WAITS_NOT = (3, 2)
"""Since this release a poll does not wait for the commit before a join, and the next one looks again."""


GROUP_EXPIRY = "expire-group-metadata"
"""The coordinator's timer by which it deletes groups that are empty."""


class CodeSteps:
    """Moves a group of Kafka's own code as the model's steps say; ``result`` learns what is not there."""

    def __init__(self, group: CodeGroup, result: Replayed) -> None:
        self.group, self.setup, self.result = group, group.setup, result
        self._actions = self._table()

    def take(self, step: ReplayStep) -> None:
        """One step. Raises NotForcible where nothing here does it, Diverged where Kafka does otherwise,
        and what a command raises."""
        does = self._actions.get(step.event.action)
        if does is None:
            raise NotForcible("nothing here does it")
        self.group.watch.at_work = lambda member_id: step.event.action == "slow member"
        does(step)
        if step.event.who >= 0:
            self._forget_overtaken(step)

    def _table(self) -> Mapping[str, Callable[[ReplayStep], None]]:
        """Action of the fine model -> what does it to a simulation."""
        by_itself = dict.fromkeys(("join refused", "sync refused"), lambda step: None)
        expiry = dict.fromkeys(("session expires", "session timeout"), self._session)
        rebalance = dict.fromkeys(("rebalance timeout", "slow member"), self._rebalance_timeout)
        leave = dict.fromkeys(("close", "bounce", "unsubscribe"), self._leave)
        polled = dict.fromkeys(("max poll", "poll interval"), self._max_poll)
        changes = ("topic deleted", "topic grows", "topic shrinks", "racks change")
        topics = dict.fromkeys(changes, self._topics)
        # Who does not run gets no command; that is all there is to it.
        idle = dict.fromkeys(("pause", "resume", "hang"), lambda step: None)
        return {
            **by_itself, **expiry, **rebalance, **leave, **polled, **topics, **idle,
            "start": self._start, "crash": self._crash,
            "join": self._join, "join request": self._deliver_join, "join phase ends": self._phase_ends,
            "receive": self._receive, "assign": self._receive, "complete": self._complete,
            "sync request": self._deliver_sync, "leader sync": self._deliver_sync,
            "listener throws": self._throws, "heartbeat": self._heartbeat, "disconnect": self._disconnect,
            "left behind": self._leave_behind, "left join arrives": self._left_arrives,
            "left sync arrives": self._left_arrives, "left decision arrives": self._left_arrives,
            "late leave": self._late_leave, "left leave arrives": self._left_arrives,
            "late request": self._late_request, "late request arrives": self._late_arrives,
            "late answer": self._late_answer, "abandoned join": self._late_arrives,
            "failover": self._failover, "append fails": self._append_fails,
            "group expires": self._group_expires,
            "enforce": self._enforce, "subscribe": self._subscribe, "resubscribe": self._subscribe,
            "refresh": self._refresh, "slow commit": self._slow_commit, "commit done": self._commit_done,
            "commit refused": self._commit_refused, "prepare": self._prepare,
        }  # fmt: skip

    def _member(self, step: ReplayStep) -> CodeMember:
        return self.group.members[step.event.who]

    # -- processes ---------------------------------------------------------------------------------------

    def _start(self, step: ReplayStep) -> None:
        member, stage = self._member(step), step.member(after=True).stage
        if len(step.behind(after=True)) > len(step.behind()):
            member.cut_off_requests.append(
                [member.open_requests.get("JoinGroup") or member.open_requests["SyncGroup"]]
            )
        member.forget()
        member.eager = self.setup.consumers[member.slot].stages[stage].eager
        settings = self.group.settings(member.slot, stage, "").settings()
        changed = {key: settings[key] for key in ("assignors", "topics")}
        self.group.do("start", member=member.slot, **changed)

    def _crash(self, step: ReplayStep) -> None:
        # What was under way may arrive: the trace says.
        self.group.do("crash", member=step.event.who, arrive=True)
        self._member(step).believed_partitions = 0

    def _max_poll(self, step: ReplayStep) -> None:
        self.group.do("max_poll", member=step.event.who)
        self._arrives_at_once(self._member(step), "LeaveGroup")

    def _arrives_at_once(self, member: CodeMember, api: str) -> None:
        """A request that the model has at the coordinator in the same step, and whose answer says nothing."""
        if api in member.open_requests:
            self.group.deliver(member, api)
            if response := member.undelivered_answers.pop(api, None):
                self.group.do("respond", id=response.id)
                self.group.do("network", member=member.slot)

    def _leave(self, step: ReplayStep) -> None:
        member = self._member(step)
        left = member.open_requests.pop("JoinGroup", None)
        member.unanswered_requests.clear()
        if step.event.action == "unsubscribe":
            self.group.do("unsubscribe", member=member.slot)
            self._arrives_at_once(member, "LeaveGroup")
            if gives_up(step) and left is not None:
                # Java sends no other before this one is answered, or its connection ends.
                self._cut(member, left)
                self.group.do("network", member=member.slot)
        else:
            for one in self.group.do("close", member=member.slot, arrive=True):
                if isinstance(one, SimulationRequest) and one.api == "LeaveGroup":
                    self.group.do("deliver", id=one.id)
            member.forget()
        if gives_up(step):
            member.delayed_request = left

    # -- its rebalances ----------------------------------------------------------------------------------

    def _join(self, step: ReplayStep) -> None:
        member = self._member(step)
        self.group.ready(member)
        for _ in range(POLLS):
            if "JoinGroup" in member.open_requests:
                break
            self.group.commit_arrives(member)
            self.group.do("poll", member=member.slot)
        if "JoinGroup" not in member.open_requests:
            raise Diverged(f"{step.name} sends no JoinGroup")
        self._claims(step, member.open_requests["JoinGroup"])
        self._reads(step, member)

    def _reads(self, step: ReplayStep, member: CodeMember) -> None:
        """Change the order of its partitions in the next JoinGroup: that is what reading does to it."""
        after = step.member(after=True)
        stage = self.setup.consumers[member.slot].stages[after.stage]
        now = self.group.state.members[member.slot]
        if "unsorted_metadata" in stage.decisions and now is not None and now.owned:
            owned = sorted(now.owned)
            self.group.do("fetched", member=member.slot, partition=owned[0 if after.noise else -1])

    def _claims(self, step: ReplayStep, request: SimulationRequest) -> None:
        """Check whether it claims as much as in the trace, and says so as old."""
        wire = step.wire(after=True)
        if not isinstance(wire, s.Join) or not request.claims:
            return
        meta, claim = wire.meta, request.claims[0]
        written = meta.own_gen if meta.tells and meta.version >= 1 else p.NONE
        ages = (meta.label if meta.version >= 2 else written) if meta.owned else p.NONE
        aged = claim.user_generation if claim.generation in (None, p.NONE) else claim.generation
        size = self.group.bits(claim.owned).bit_count()
        if size != meta.owned.bit_count() or (size and (p.NONE if aged is None else aged) != ages):
            self.result.otherwise = self.result.otherwise or step.number

    def _deliver_join(self, step: ReplayStep) -> None:
        self.group.deliver(self._member(step), "JoinGroup")

    def _deliver_sync(self, step: ReplayStep) -> None:
        self.group.deliver(self._member(step), "SyncGroup")

    def _phase_ends(self, step: ReplayStep) -> None:
        # It may end without those who have not come: the first one by its delay, others by the timeout.
        records = [one for slot in self.setup.slots for one in step.records(name=letter(slot))]
        over = step.group().first or any(one.given_up for one in records)
        for _ in range(POLLS):  # a first phase goes on for as long as somebody new comes
            coordinator = self.group.state.coordinator
            if coordinator.state != "PREPARING_REBALANCE":
                return
            late = [one.id for one in coordinator.members if not one.joining] + list(
                coordinator.pending_joins
            )
            if late and not over:
                raise Diverged(f"the join phase waits for {' '.join(late)}")
            self.group.do("expire", timer="rebalance")

    def _rebalance_timeout(self, step: ReplayStep) -> None:
        if self.group.state.coordinator.state != "PREPARING_REBALANCE":  # whose end it is part of
            self.group.do("expire", timer="sync")

    def _session(self, step: ReplayStep) -> None:
        if step.event.action == "session expires":
            self._beats_not(step)
        coordinator = self.group.state.coordinator
        ids = [one.id for one in coordinator.members if one.client[-1] == step.name]
        ids += [one for one in coordinator.pending_joins if one[1:2] == step.name]
        if not ids:
            raise Diverged(f"the coordinator does not know {step.name}")
        self.group.do("expire", timer="session", member_id=ids[0])

    def _beats_not(self, step: ReplayStep) -> None:
        """A session ends by itself where nobody sends heartbeats: a leader that assigns may be such a one."""
        member, wire = self._member(step), step.wire()
        if (
            step.member().life is not p.Life.UP
            or not isinstance(wire, s.JoinOk)
            or "JoinGroup" not in member.undelivered_answers
        ):
            return
        member.early_join_answer = self.group.respond(member, "JoinGroup")
        now = self.group.state.members[member.slot]
        if now is not None and now.heartbeats:
            raise Diverged(f"{step.name} sends heartbeats while it assigns")

    def _receive(self, step: ReplayStep) -> None:
        member, wire = self._member(step), step.wire()
        match wire:
            case s.JoinOk():
                joins = step.member().state is p.MemberState.PREPARING  # an answer after a reset is not read
                response = member.early_join_answer or self.group.respond(member, "JoinGroup")
                member.early_join_answer = None
                if response.error != "NONE":
                    raise Diverged(f"its JoinGroup is answered with {response.error}")
                config = self.setup.consumers[step.event.who].stages[step.member().stage]
                if told_to_lead(config, wire) != (response.leader == response.member_id):
                    raise Diverged(f"{LEADER}: {response.leader} leads generation {response.generation}")
                if wire.leader and (sync := member.open_requests.get("SyncGroup")):
                    self._decided(step, member, sync)
                elif wire.leader and "SyncGroup" not in member.open_requests and joins:
                    self.group.do("poll", member=member.slot)  # tells what its assignor threw
            case s.SyncOk():
                response = self.group.respond(member, "SyncGroup")
                if response.error != "NONE":
                    raise Diverged(f"its SyncGroup is answered with {response.error}")
            case s.Refused() as refused:
                api = "JoinGroup" if refused.api == "join" else "SyncGroup"
                if refused.error is p.Error.DISCONNECT:
                    if step.following != "refresh":  # which may come before it polls again
                        self.group.broken_off(member, refused)
                    return
                response = self.group.respond(member, api)
                if response.error != refused.error.value:
                    raise Diverged(f"its {api} is answered with {response.error}, not {refused.error}")
                if any(isinstance(one, Threw) for one in step.outcome.seen):  # which the next poll does
                    self.group.do("poll", member=member.slot)

    def _decided(self, step: ReplayStep, member: CodeMember, sync: SimulationRequest) -> None:
        """Return the leader's decision, on the claims that the coordinator has."""
        decided = next((one for one in step.outcome.seen if isinstance(one, Decided)), None)
        if decided is None and isinstance(step.wire(after=True), s.Sync):
            return  # the group has moved on, and nobody reads what it decides
        real = led_to(self.group, member, sync, lambda slot, _: self.group.members[slot].owned_generation)
        grants = real.grants
        if decided is None or _counts(decided.grants) != _counts(grants):
            spelled = "; ".join(f"{letter(one.id.slot)}: {self.group.spell(one.parts)}" for one in grants)
            self.result.unforced.append(f"{step.title}: {LEADER} {spelled}")
        elif sorted((one.id.slot, one.parts) for one in decided.grants) != sorted(
            (one.id.slot, one.parts) for one in grants
        ):
            self.result.renamed = True
        self.group.seen.append(real)

    def _complete(self, step: ReplayStep) -> None:
        member = self._member(step)
        before = self.group.state.members[member.slot]
        self.group.do("poll", member=member.slot)
        if before is None or before.generation == p.NONE:
            what = "takes no assignment of a membership that is over"
            self.result.differs.append(f"{step.title}: {what}")
            return
        after = self.group.state.members[member.slot]
        if after is None or (after.state != "STABLE" and "JoinGroup" not in member.open_requests):
            raise Diverged(f"{step.name} does not take its assignment")
        self.group.seen.append(taken(self.group, member, after))
        self._reads(step, member)

    def _throws(self, step: ReplayStep) -> None:
        """The first callback throws."""
        member = self._member(step)
        revokes = not member.eager and self.group.owned(member.slot) & ~member.last_assignment
        self.group.do("throw", member=member.slot, call="revoked" if revokes else "assigned")
        self.group.do("poll", member=member.slot)

    # -- errors and loss ---------------------------------------------------------------------------------

    def _heartbeat(self, step: ReplayStep) -> None:
        member = self._member(step)
        with contextlib.suppress(NotEnabled):
            self.group.do("heartbeat", member=member.slot)
        if "Heartbeat" not in member.open_requests:
            raise NotForcible("the client sends no heartbeat now")
        self.group.deliver(member, "Heartbeat")
        self.group.respond(member, "Heartbeat")

    def _late_request(self, step: ReplayStep) -> None:
        member, commit = self._member(step), step.event.choice == "commit"
        api = "OffsetCommit" if commit else "Heartbeat"
        if commit:
            self.group.do("commit", member=member.slot, sync=False)
        else:
            self.group.do("heartbeat", member=member.slot)
        member.delayed_request = member.open_requests.pop(api, None)
        if member.delayed_request is None:
            raise NotForcible(f"the client sends no {api} now")

    def _late_arrives(self, step: ReplayStep) -> None:
        late = self._member(step).delayed_request
        if late is None:
            raise NotForcible("its request was not sent")
        self.group.do("deliver", id=late.id)

    def _late_answer(self, step: ReplayStep) -> None:
        member = self._member(step)
        late, member.delayed_request = member.delayed_request, None
        if late is None or late.api not in member.undelivered_answers:
            raise NotForcible("its request was not sent, or not answered")
        self.group.respond(member, late.api)

    def _slow_commit(self, step: ReplayStep) -> None:
        member = self._member(step)
        if self.waits(member):
            return  # within the poll that ends with JoinGroup
        self.group.do("poll", member=member.slot, help=False)
        if "OffsetCommit" not in member.open_requests:
            raise NotForcible("the client commits nothing before it joins")

    def _commit_done(self, step: ReplayStep) -> None:
        self.group.commit_arrives(self._member(step))

    def _commit_refused(self, step: ReplayStep) -> None:
        """The poll that waits for the commit hears that the membership is over; it may send JoinGroup."""
        member = self._member(step)
        if not self.waits(member):
            self.group.deliver(member, "OffsetCommit")
            answer = member.undelivered_answers.pop("OffsetCommit", None)
            if answer is None:
                raise Diverged(f"{step.name}'s commit is not answered")
            self.group.do("respond", id=answer.id)  # which nobody looks at before the poll
        sends = isinstance(step.wire(after=True), s.Join)
        self.group.do("poll", member=member.slot)
        if sends and "JoinGroup" not in member.open_requests:
            raise Diverged(f"{step.name} sends no JoinGroup")
        if sends:
            self._claims(step, member.open_requests["JoinGroup"])

    def waits(self, member: CodeMember) -> bool:
        """Check whether its poll goes on until the commit before a join is answered."""
        return version(self.group.releases.of(member.slot)) < WAITS_NOT

    def _prepare(self, step: ReplayStep) -> None:
        self.group.do("poll", member=step.event.who)

    def _disconnect(self, step: ReplayStep) -> None:
        self._cut(self._member(step))
        self.group.do("network", member=step.event.who)

    def _cut(self, member: CodeMember, *arrive: SimulationRequest) -> None:
        """The connection ends; only ``arrive`` and what was left behind before may still arrive."""
        member.cut_off()
        behind = [one for connection in member.cut_off_requests for one in connection]
        self.group.do("disconnect", member=member.slot, arrive=[one.id for one in (*arrive, *behind)])

    def _leave_behind(self, step: ReplayStep) -> None:
        """The connection ends, and what was sent on it is still to arrive."""
        member = self._member(step)
        api = "JoinGroup" if isinstance(step.wire(), s.Join) else "SyncGroup"
        request = member.open_requests.get(api)
        if request is None:
            raise NotForcible("its request was not sent")
        member.cut_off_requests.append([request])
        self._disconnect(step)

    def _late_leave(self, step: ReplayStep) -> None:
        """LeaveGroup is sent, behind what was sent before, and is still to arrive."""
        member, how = self._member(step), step.event.choice.replace(" ", "_")
        before = [one for api in ("JoinGroup", "SyncGroup") if (one := member.open_requests.pop(api, None))]
        if how == "max_poll":  # it goes on
            self.group.do("max_poll", member=member.slot)
            member.open_requests |= {one.api: one for one in before}
            before = []
        else:
            member.unanswered_requests.clear()
            self.group.do(how, member=member.slot, **({"arrive": True} if how == "close" else {}))
        leave = member.open_requests.pop("LeaveGroup", None)
        if leave is None:
            raise Diverged(f"{step.name} sends no LeaveGroup")
        member.cut_off_requests.append([*before, leave])
        if how == "close":
            member.forget()

    def _left_arrives(self, step: ReplayStep) -> None:
        member = self._member(step)
        request = member.cut_off_requests[step.connection].pop(0)
        member.cut_off_requests = [connection for connection in member.cut_off_requests if connection]
        self.group.do("deliver", id=request.id)
        if (
            request.api in member.undelivered_answers
            and member.undelivered_answers[request.api].id == request.id
        ):
            self.group.do("lose", id=member.undelivered_answers.pop(request.api).id)

    def _forget_overtaken(self, step: ReplayStep) -> None:
        """Forget requests left behind that the model has lost."""
        before, after = step.behind(), step.behind(after=True)
        if len(after) > len(before):
            return
        there = [request for connection in before for request in connection]
        if step.event.action.startswith("left "):
            there.remove(before[step.connection][0])
        real = [request for connection in self._member(step).cut_off_requests for request in connection]
        pairs = iter(zip(there, real, strict=True))
        self._member(step).cut_off_requests = [
            [next(sent for request, sent in pairs if request == kept) for kept in connection]
            for connection in after
        ]

    # -- the coordinator and its log, topics --------------------------------------------------------------

    def _failover(self, step: ReplayStep) -> None:
        """Let the requests under way reach the old coordinator, which is not one any more."""
        for member in self.group.members:
            for api in ("JoinGroup", "SyncGroup"):
                if api in member.open_requests:
                    loading = step.event.choice == "loading" and api == "SyncGroup"
                    self.group.do("coordinator", available="loading" if loading else "gone")
                    self.group.deliver(member, api)
        self.group.do("failover", config=self.group.broker(limited=True))

    def _append_fails(self, step: ReplayStep) -> None:
        # No coordinator that a simulation has answers so; those that did were Scala's.
        self.group.forge(self._member(step), "JoinGroup", p.Error.REBALANCE_IN_PROGRESS)

    def _group_expires(self, step: ReplayStep) -> None:
        self.group.do("expire", timer=GROUP_EXPIRY)

    def _enforce(self, step: ReplayStep) -> None:
        self.group.do("enforce", member=step.event.who)

    def _subscribe(self, step: ReplayStep) -> None:
        topics = self.group.names(step.member(after=True).topics)
        self.group.do("subscribe", member=step.event.who, topics=topics)

    def _refresh(self, step: ReplayStep) -> None:
        self.group.do("refresh", member=step.event.who)

    def _topics(self, step: ReplayStep) -> None:
        exist = step.built.value(step.after, "cluster")
        assert isinstance(exist, tuple)
        parts, moved = int(exist[0]), bool(exist[1])
        racks = self.group.racks(parts, moved=moved)
        self.group.do("topics", topics=self.group.counts(parts), racks=racks)


def gives_up(step: ReplayStep) -> bool:
    """Check whether the step leaves a JoinGroup behind that nobody waits for any more."""
    return step.event.who >= 0 and isinstance(step.stray(after=True), s.Join) and step.stray() is None


def _counts(grants: Iterable[p.Grant]) -> dict[p.Slot, int]:
    """Return how many partitions each member is given: which they are may differ by their names."""
    return {one.id.slot: one.parts.bit_count() for one in grants}
