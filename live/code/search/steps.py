"""One choice after the other done to a group, and what it shows, in the observations of the model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from rebalance_verifier.base.processes.program import JsonLine
from rebalance_verifier.live.code.answers import ConsumerState, SimulationRequest
from rebalance_verifier.live.code.replay.group import POLLS, answered_by, led_to, made_of, taken
from rebalance_verifier.live.code.replay.steps import GROUP_EXPIRY
from rebalance_verifier.live.code.search.choice import ARRIVES, OF_ID, CodeChoice, key
from rebalance_verifier.live.code.search.clients import ClientSteps
from rebalance_verifier.live.code.search.enabled import BOUNCE, LOADING, beat, choices, polled
from rebalance_verifier.live.code.search.group import FOUND, JOINING, SearchedGroup
from rebalance_verifier.live.code.simulation import NotEnabled
from rebalance_verifier.model.classic.errors import FATAL
from rebalance_verifier.model.group import parts as p
from rebalance_verifier.model.group.observations import Call, Callback, Left, Threw
from rebalance_verifier.model.machine import Event


class SearchSteps:
    """Does choices to a group. After `take` the group's ``seen`` has what showed, in order."""

    def __init__(self, group: SearchedGroup) -> None:
        self.group, self.setup = group, group.setup
        self.arrived: SimulationRequest | None = None
        self._acts: Mapping[str, Callable[[Event], None]] = {
            "start": self._start, "subscribe": self._subscribe, "poll": self._poll,
            "heartbeat": self._heartbeat, "refresh": self._refresh, "arrive": self._arrive,
            "receive": self._receive, "stray": self._stray, "rebalance": self._rebalance, "sync": self._sync,
            "session": self._session, "crash": self._crash, "close": self._close,
            "unsubscribe": self._unsubscribe, "max poll": self._max_poll, "resubscribe": self._subscribe,
            "enforce": self._enforce, "disconnect": self._disconnect, "late request": self._late_request,
            "listener throws": self._throws, "failover": self._failover, "append fails": self._append_fails,
            "topics": self._topics, "slow": self._slow, "member removed": self._member_removed,
            "group expires": self._group_expires, BOUNCE: self._bounce,
        }  # fmt: skip
        self._clients = ClientSteps(group)

    def found(self, event: Event, faults: Sequence[str]) -> CodeChoice | None:
        """Return the choice that an event is now, by whatever name; None where it cannot be."""
        wanted = key(event)
        return next((one for one in choices(self.group, faults) if one.key == wanted), None)

    def take(self, choice: CodeChoice) -> bool:
        """Do it; whether anything has changed. Raises SimulationBroken, SimulationDied."""
        group, memory = self.group, self.group.memory
        before = group.look()
        group.seen, group.refreshed = [], []
        self.arrived = None
        try:
            self._act(choice)(choice.event)
        except NotEnabled:
            memory.without_effect |= {choice.event}
            return False
        for slot in group.refreshed:
            memory.stale_metadata -= {slot}
        for one in group.seen:
            if isinstance(one, Threw) and one.error != "listener":
                self._gives_up(one.who)
        if group.look() == before and not group.seen:
            memory.without_effect |= {choice.event}
            return False
        memory.without_effect = frozenset()
        if choice.act != "poll" and choice.event.who >= 0:
            memory.polled_without_effect -= {choice.event.who}
        return True

    def _act(self, choice: CodeChoice) -> Callable[[Event], None]:
        own = choice.act in self._clients.acts and choice.event.who >= 0
        if own and self.group.is_played(choice.event.who):
            return self._clients.acts[choice.act]
        return self._acts[choice.act]

    def _consumer(self, slot: int) -> ConsumerState:
        found = self.group.state.members[slot]
        assert found is not None
        return found

    # -- processes and what applications ask for -------------------------------------------------------

    def _start(self, event: Event) -> None:
        member = self.group.members[event.who]
        member.forget()
        self.group.memory.disconnected.pop(event.who, None)
        self.group.memory.last_heartbeat_views.pop(event.who, None)
        self.group.do("start", member=event.who, **self.group.changed_settings(event.who))

    def _crash(self, event: Event) -> None:
        self.group.do("crash", member=event.who, arrive=event.choice == ARRIVES)
        self.group.members[event.who].believed_partitions = 0

    def _bounce(self, event: Event) -> None:
        """Close the process, and let the next one of this slot have another configuration."""
        self._act(CodeChoice("close", Event("close", event.who)))(event)
        self.group.bounced(event.who)

    def _gives_up(self, slot: int) -> None:
        """Its poll threw what the application cannot handle, which closes it."""
        if self.group.state.members[slot] is not None:
            self.group.do("close", member=slot, arrive=True)
        self.group.memory.given_up |= {slot}

    def _close(self, event: Event) -> None:
        before = self._consumer(event.who)
        self._left(event.who, before, self.group.do("close", member=event.who, arrive=True))
        self.group.members[event.who].believed_partitions = 0

    def _unsubscribe(self, event: Event) -> None:
        before = self._consumer(event.who)
        self.group.memory.disconnected.pop(event.who, None)
        self._left(event.who, before, self.group.do("unsubscribe", member=event.who))

    def _left(self, slot: int, before: ConsumerState, events: Sequence[object]) -> None:
        static = self.setup.consumers[slot].instance is not None
        sent = any(isinstance(one, SimulationRequest) and one.api == "LeaveGroup" for one in events)
        known = before.member_id and before.state != "UNJOINED" and before.coordinator_known
        believed = p.Parts(self.group.members[slot].believed_partitions)
        self.group.seen.append(Left(p.Slot(slot), believed, sent, bool(known) and not static))

    def _subscribe(self, event: Event) -> None:
        number = int(event.choice.rpartition(" ")[2] or 0)
        topics = self.group.names(self.setup.consumers[event.who].subscriptions[number])
        self.group.do("subscribe", member=event.who, topics=topics)

    def _enforce(self, event: Event) -> None:
        self.group.do("enforce", member=event.who)

    def _max_poll(self, event: Event) -> None:
        self.group.memory.disconnected.pop(event.who, None)
        self.group.do("max_poll", member=event.who)

    def _refresh(self, event: Event) -> None:
        self.group.do("refresh", member=event.who)

    # -- polls -----------------------------------------------------------------------------------------

    def _poll(self, event: Event) -> None:
        group, slot = self.group, event.who
        completes = polled(group, slot, self._consumer(slot)) == "complete"
        before, look = self._consumer(slot), group.look()
        asked_for = group.memory.subscriptions.get(slot)
        events = group.do("poll", member=slot)
        for _ in range(POLLS):
            looking = [one for one in group.queue(slot) if one.api == FOUND]
            if not looking:
                break
            group.do("deliver", id=looking[0].id)
            found = [one for one in group.arrived(slot) if one.api == FOUND]
            polls: JsonLine = {"do": "poll", "member": slot}
            group.run({"do": "respond", "id": found[0].id}, polls)
        if slot in group.memory.disconnected and self._consumer(slot).coordinator_known:
            # What the end of a connection did to a request shows when the application has polled.
            api, was = group.memory.disconnected.pop(slot)
            now = self._consumer(slot)
            group.seen.append(made_of(group.members[slot], api, p.Error.DISCONNECT, was, now, same=True))
        if completes and frozenset(before.topics) == asked_for:  # else it is thrown away
            self._completed(slot, before)
        if not events and group.look() == look:
            group.memory.polled_without_effect |= {slot}

    def _completed(self, slot: int, before: ConsumerState) -> None:
        """Note that an assignment was taken."""
        group, after = self.group, self.group.state.members[slot]
        if after is None or before.generation == p.NONE or any(isinstance(one, Threw) for one in group.seen):
            return
        calls = [one for one in group.seen if isinstance(one, Callback) and one.who == slot]
        if any(one.call is Call.LOST for one in calls):
            return
        last = max((at for at, one in enumerate(group.seen) if one in calls), default=-1)
        if any(one.call is Call.ASSIGNED for one in calls):
            last = max(at for at, one in enumerate(group.seen) if one in calls and one.call is Call.ASSIGNED)
        group.seen.insert(last + 1, taken(group, group.members[slot], after))

    def _throws(self, event: Event) -> None:
        self.group.do("throw", member=event.who)
        self.group.do("poll", member=event.who)

    def _heartbeat(self, event: Event) -> None:
        group, slot = self.group, event.who
        about = beat(group, slot)
        group.do("heartbeat", member=slot)
        sent = [one for one in group.queue(slot) if one.api == "Heartbeat"]
        if sent:
            self._delivers(slot, sent[0])
            self._receive(event)
            if not any(getattr(one, "api", "") == "heartbeat" for one in group.seen):
                group.memory.last_heartbeat_views[slot] = about

    def _late_request(self, event: Event) -> None:
        if event.choice == "heartbeat":
            self.group.do("heartbeat", member=event.who)
        else:
            self.group.do("commit", member=event.who, sync=False)

    # -- messages --------------------------------------------------------------------------------------

    def _arrive(self, event: Event) -> None:
        [first, *_] = [one for one in self.group.queue(event.who) if one.api != FOUND]
        self._delivers(event.who, first)
        if first.api == "LeaveGroup":  # whose answer says nothing
            for one in self.group.arrived(event.who):
                if one.api == "LeaveGroup":
                    looks: JsonLine = {"do": "network", "member": event.who}
                    self.group.run({"do": "respond", "id": one.id}, looks)

    def _delivers(self, slot: int, request: SimulationRequest) -> None:
        self.arrived = request
        self.group.memory.pending_requests[slot] = request.id
        self.group.do("deliver", id=request.id)

    def _stray(self, event: Event) -> None:
        self.arrived = self.group.strays(event.who)[0]
        self.group.do("deliver", id=self.arrived.id)

    def _receive(self, event: Event) -> None:
        group, slot = self.group, event.who
        response = next(one for one in group.arrived(slot) if one.api != FOUND)
        group.memory.disconnected.pop(slot, None)
        before = self._consumer(slot)
        looks: JsonLine = {"do": "network", "member": slot}
        # What an answer makes it send leaves with the second.
        group.run({"do": "respond", "id": response.id}, looks, looks)
        member = group.members[slot]
        if response.error != "NONE":
            seen = answered_by(member, response, before, self._consumer(slot))
            group.seen += [] if seen is None else [seen]
            if response.error in FATAL:  # which the application learns when it polls
                group.do("poll", member=slot)
        elif response.api == "JoinGroup" and response.leader == response.member_id:
            self._decided(slot)

    def _decided(self, slot: int) -> None:
        """Return the leader's decision, unless the group has moved on: nobody reads it then."""
        group, known = self.group, self.group.state.coordinator
        sync = next((one for one in group.queue(slot) if one.api == "SyncGroup"), None)
        if sync is None or not sync.assignments:
            return
        if (known.state, known.generation) != ("COMPLETING_REBALANCE", sync.generation):
            return
        group.seen.append(led_to(group, group.members[slot], sync, self._own_gen))

    def _own_gen(self, slot: p.Slot, member_id: str) -> int:
        gens = self.group.memory.claimed_generations
        return gens.get(member_id, gens.get(f"of {slot}", p.NONE))

    def _disconnect(self, event: Event) -> None:
        """The connection to the coordinator ends, and the client notices."""
        group, slot = self.group, event.who
        ids = [one.id for one in group.queue(slot)] if event.choice == ARRIVES else []
        waited = group.waits(slot)
        sent = [*(one.api for one in group.queue(slot)), *([waited.api] if waited else [])]
        joins = [one for one in (*sent, *(one.api for one in group.arrived(slot))) if one in JOINING]
        if joins:
            group.memory.disconnected[slot] = (
                "join" if joins[0] == "JoinGroup" else "sync",
                self._consumer(slot),
            )
        group.memory.pending_requests.pop(slot, None)
        looks: JsonLine = {"do": "network", "member": slot}
        group.run({"do": "disconnect", "member": slot, "arrive": ids}, looks)

    # -- the coordinator -------------------------------------------------------------------------------

    def _rebalance(self, event: Event) -> None:
        look = self.group.look()
        for _ in range(POLLS):  # a first phase goes on for as long as somebody new comes
            self.group.do("expire", timer="rebalance")
            if self.group.look() != look:
                return

    def _sync(self, event: Event) -> None:
        self.group.do("expire", timer="sync")

    def _session(self, event: Event) -> None:
        known = self._whose(event)
        if key := self.group.timer("session", known):
            self.group.do("expire", timer=key)
        else:
            self.group.do("expire", timer="session", member_id=known)

    def _slow(self, event: Event) -> None:
        self.group.do("expire", timer=self.group.timer("rebalance", self._whose(event)))

    def _whose(self, event: Event) -> str:
        """Return the member id that an event is about."""
        return self.group.id_of(event.who, int(event.choice.removeprefix(OF_ID)))

    def _member_removed(self, event: Event) -> None:
        """An administrator sends LeaveGroup."""
        instance = self.group.instance(event.who)
        named = {"instance": instance} if instance else {"member_id": self._whose(event)}
        [sent] = self.group.do("send", api="LEAVE_GROUP", **named)
        assert isinstance(sent, SimulationRequest)
        self.group.run({"do": "deliver", "id": sent.id}, {"do": "respond", "id": sent.id})

    def _group_expires(self, event: Event) -> None:
        self.group.do("expire", timer=GROUP_EXPIRY)

    def _failover(self, event: Event) -> None:
        """Let the requests under way reach the old coordinator, which is not one any more."""
        group = self.group
        for slot in self.setup.slots:
            for one in group.queue(slot):
                if one.api != FOUND:
                    loading = event.choice == LOADING and one.api == "SyncGroup"
                    unavailable: JsonLine = {
                        "do": "coordinator",
                        "available": "loading" if loading else "gone",
                    }
                    group.memory.pending_requests[slot] = one.id
                    group.run(unavailable, {"do": "deliver", "id": one.id})
        group.do("failover", config=group.broker(limited=True))
        group.memory.last_heartbeat_views.clear()

    def _append_fails(self, event: Event) -> None:
        group = self.group
        group.do("hold", on=True)
        sync = next(one for one in group.queue(event.who) if one.api in JOINING)
        self._delivers(event.who, sync)
        if group.state.coordinator.waiting:
            group.do("append", error="NOT_LEADER_OR_FOLLOWER")
        group.do("hold", on=False)

    def _topics(self, event: Event) -> None:
        group, memory = self.group, self.group.memory
        if event.action == "topic deleted":
            memory.partition_count &= ~self.setup.topics[group.topics.index(event.choice)]
        else:
            bit = 1 << group.numbers[event.choice]
            memory.partition_count = (
                memory.partition_count | bit
                if event.action == "topic grows"
                else memory.partition_count & ~bit
            )
        racks = group.racks(memory.partition_count)
        group.do("topics", topics=group.counts(memory.partition_count), racks=racks)
        memory.stale_metadata = frozenset(
            slot for slot in self.setup.slots if group.state.members[slot] is not None
        )
