"""The model of a recorded group, and which items of a recording each of its steps shows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import factorial, prod
from typing import Any, NamedTuple

from rebalance_verifier.live.conformance.wire.frontier import COORDINATOR, Items, Partitions
from rebalance_verifier.live.conformance.wire.intended import IntendedTargets
from rebalance_verifier.live.conformance.wire.items import Item, Lane, WireRecording
from rebalance_verifier.model.classic.group import MAX_NAMINGS
from rebalance_verifier.model.consumer.member import claims
from rebalance_verifier.model.consumer.state import (
    Beat,
    BeatError,
    BeatKind,
    BeatOk,
    BeatRefused,
    ClassicMember,
    ClassicMessage,
    ClassicStep,
    ConsumerGroup,
    ConsumerMember,
    ConsumerRecord,
    ConsumerRecords,
    GroupKind,
    find,
)
from rebalance_verifier.model.group import parts as p
from rebalance_verifier.model.group.observations import Callback
from rebalance_verifier.model.group.setup import MemberContext, Setup, letter
from rebalance_verifier.model.machine import NOBODY, Event, Outcome, State
from rebalance_verifier.model.migration.coordinator import heartbeat as classic_heartbeat
from rebalance_verifier.model.protocols import machine

FAULTS = (
    *("crash", "close", "unsubscribe", "resubscribe", "max poll", "session timeout", "slow member"),
    "topic grows",
)
"""Kinds of faults that a recording may have; they happen where it has them."""

BUDGET = 10_000

EXPIRES = ("session expires", "session timeout", "slow member")


class WireStep(NamedTuple):
    """A step of the model: where it leads, how many epochs Kafka counts more there, what it shows."""

    event: Event
    state: State
    more: int | None
    shows: tuple[tuple[Lane, int], ...]


class WireGroup:
    """A group as the model, held against a recording."""

    def __init__(self, recording: WireRecording, setup: Setup, partitions: Partitions) -> None:
        self.recording, self.partitions = recording, partitions
        namings = factorial(len(setup.consumers)) * prod(factorial(len(p.each(t))) for t in setup.topics)
        if namings > MAX_NAMINGS:
            setup = replace(setup, naming="given")
            setup = replace(setup, targets=IntendedTargets(recording, setup, partitions))
        self.setup = setup
        self.machine = machine(setup)
        self._contexts = [MemberContext(p.Slot(slot), setup) for slot in setup.slots]
        self._logged = bool(recording.lanes[COORDINATOR])

    # -- parts of a state ----------------------------------------------------------------------------------

    def part(self, state: State, part: str, slot: int) -> Any:
        """Return a component of a slot."""
        return self.machine.value(state, f"{part} {letter(slot)}")

    def book(self, state: State) -> tuple[ConsumerRecords, ...]:
        """Return the records of every slot."""
        return tuple(self.part(state, "record", slot) for slot in self.setup.slots)

    def group(self, state: State) -> ConsumerGroup:
        """Return the group."""
        found: ConsumerGroup = self.machine.value(state, "group")
        return found

    # -- steps -------------------------------------------------------------------------------------------

    def steps(self, state: State, items: Items) -> Iterator[WireStep]:
        """Yield what can happen in ``state`` that shows the next items, or nothing."""
        for slot in self.setup.slots:
            member = self.part(state, "member", slot)
            yield from self._inputs(state, items, slot, member)
            yield from self._expires(state, items, slot)
            if member.life is p.Life.DOWN:
                yield from self._unheard(state, items, slot)
            if isinstance(member, ConsumerMember):
                yield from self._served(state, items, slot, member)
                yield from self._overdue(state, items, slot)
            else:
                yield from self._classic(state, items, slot, member)
        yield from self._of_group(state, items)

    def outcomes(self, state: State, name: str, who: int) -> Iterator[tuple[Event, Outcome, State]]:
        """Yield what an action can do in ``state``, and where that leads."""
        action = self.machine.by_name.get((name, who))
        if action is None:
            return
        for outcome in self.machine.outcomes_of(action, state):
            event = Event(name, who, outcome.choice)
            yield event, outcome, self.machine.apply(state, event, outcome)

    def _made(self, event: Event, after: State, items: Items) -> WireStep:
        more = items.more if any(self.book(after)) else None
        return WireStep(event, after, more, items.shows)

    def _callbacks(self, outcome: Outcome, items: Items, slot: int) -> bool:
        """Check whether what the listener is called with is what it was; empty calls are left out."""
        for seen in outcome.seen:
            if isinstance(seen, Callback) and seen.parts:
                item = items.take(("app", slot), seen.call.value)
                if item is None or self.partitions.bits(item.data["partitions"]) != seen.parts:
                    return False
        return True

    # -- what the driver does -------------------------------------------------------------------------------

    def _life(self, items: Items, slot: int) -> int:
        """Return how many times a consumer has been started so far."""
        lane, number = self.recording.lanes["app", slot], 0
        nearest = items.next(("app", slot))
        for item in lane:
            if item is nearest:
                break
            number += item.kind == "started"
        return number

    def _stage(self, items: Items, slot: int) -> int:
        """That of the next life of a consumer."""
        stages = self.recording.stages[slot]
        life = self._life(items, slot)
        return stages[life] if life < len(stages) else -1

    def _inputs(self, state: State, items: Items, slot: int, member: Any) -> Iterator[WireStep]:
        coming = items.next(("app", slot))
        if coming is None:
            return
        if coming.kind == "started":
            if max(0, self._stage(items, slot)) == member.stage:
                for event, _, after in self.outcomes(state, "start", slot):
                    mine = items.again()
                    mine.take(("app", slot), "started")
                    mine.take(("app", slot), "subscribed")
                    yield self._made(event, after, mine)
        elif coming.kind == "killed":
            for event, _, after in self.outcomes(state, "crash", slot):
                mine = items.again()
                mine.take(("app", slot), "killed")
                yield self._made(event, after, mine)
        elif coming.kind == "subscribed":
            yield from self._subscribes(state, items, slot, member, coming)
        following = items.next(("app", slot), 1)
        if "closed" in (coming.kind, following.kind if following else ""):
            yield from self._closes(state, items, slot, member)

    def _subscribes(
        self, state: State, items: Items, slot: int, member: Any, item: Item
    ) -> Iterator[WireStep]:
        topics = self.partitions.subscribed(item.data["topics"])
        if topics and topics == member.topics:
            mine = items.again()
            mine.take(("app", slot), "subscribed")
            yield WireStep(Event("subscribe again", slot), state, items.more, mine.shows)
        for name in ("unsubscribe",) if not topics else ("resubscribe", "subscribe"):
            for event, outcome, after in self.outcomes(state, name, slot):
                if self.part(after, "member", slot).topics != topics:
                    continue
                mine = items.again()
                mine.take(("app", slot), "subscribed")
                if name == "unsubscribe" and not self._leaves(state, outcome, after, mine, slot):
                    continue
                yield self._made(event, after, mine)

    def _closes(self, state: State, items: Items, slot: int, member: Any) -> Iterator[WireStep]:
        """``close()``, with which a consumer goes to its next stage."""
        if isinstance(self.part(state, "wire", slot), Beat):
            return
        stages = self.recording.stages[slot]
        life = self._life(items, slot)
        name = "bounce" if life < len(stages) and stages[life] != member.stage else "close"
        for event, outcome, after in self.outcomes(state, name, slot):
            mine = items.again()
            if self._leaves(state, outcome, after, mine, slot) and mine.take(("app", slot), "closed"):
                yield self._made(event, after, mine)

    def _leaves(self, state: State, outcome: Outcome, after: State, items: Items, slot: int) -> bool:
        """Check whether a consumer that leaves shows what it did: callbacks, its request, what the
        coordinator logs. What it is answered meanwhile it does not heed."""
        if not self._callbacks(outcome, items, slot):
            return False
        wire: Lane = ("wire", slot)
        coming, following = items.next(wire), items.next(wire, 1)
        if coming and following and coming.kind.endswith("answer") and following.kind == "leave":
            items.take(wire, coming.kind)
        sent = items.take(wire, "leave") is not None
        before = {record.id for record in self.part(state, "record", slot)}
        gone = before - {record.id for record in self.part(after, "record", slot)}
        away = any(record.away for record in self.part(after, "record", slot))
        if gone and not sent:
            return False
        if not self._logged:
            return True
        if gone or (away and sent):
            removed = items.take(COORDINATOR, "removed")
            if removed is None or self._slot(removed) != slot:
                return False
        return self._converts(state, after, items)

    def _overdue(self, state: State, items: Items, slot: int) -> Iterator[WireStep]:
        """max.poll.interval.ms passes: its background thread leaves."""
        coming, wire = items.next(("wire", slot)), self.part(state, "wire", slot)
        if coming is None or coming.kind != "leave" or isinstance(wire, Beat):
            return
        for event, outcome, after in self.outcomes(state, "max poll", slot):
            mine = items.again()
            if self._leaves(state, outcome, after, mine, slot):
                yield self._made(event, after, mine)

    def _slot(self, item: Item) -> int:
        return self.recording.members.get(str(item.data.get("member")), -1)

    def _expires(self, state: State, items: Items, slot: int) -> Iterator[WireStep]:
        coming = items.next(COORDINATOR)
        if coming is None or coming.kind != "removed" or self._slot(coming) != slot:
            return
        if "left" in str(coming.data.get("detail")):
            return
        for name in EXPIRES:
            for event, _, after in self.outcomes(state, name, slot):
                mine = items.again()
                mine.take(COORDINATOR, "removed")
                if self._converts(state, after, mine):
                    yield self._made(event, after, mine)

    def _unheard(self, state: State, items: Items, slot: int) -> Iterator[WireStep]:
        """Yield an answer to a process that is gone."""
        coming = items.next(("wire", slot))
        if coming is not None and (coming.kind.endswith("answer") or coming.kind == "heartbeat"):
            mine = items.again()
            mine.take(("wire", slot), coming.kind)
            yield WireStep(Event("unheard", slot), state, items.more, mine.shows)

    # -- the coordinator -----------------------------------------------------------------------------------

    def _converts(self, state: State, after: State, items: Items) -> bool:
        """Check whether a conversion of the group is logged where there is one."""
        before, now = self.group(state), self.group(after)
        if not self._logged or before.kind is now.kind or GroupKind.NONE in (before.kind, now.kind):
            return True
        if not any(self.book(state)):
            return True
        item = items.take(COORDINATOR, "converted")
        return item is not None and item.data["detail"] == now.kind.value

    def _handled(self, state: State, outcome: Outcome, after: State, items: Items, slot: int) -> bool:
        """Check whether the coordinator has logged what a request of a consumer group makes it do."""
        if not self._logged:
            return True
        if self.group(after).kind is not GroupKind.CONSUMER:
            return self._converts(state, after, items)
        if not self._converts(state, after, items):
            return False
        if outcome.choice and not self._targets(after, items):
            return False
        before = {record.id: record for record in self.part(state, "record", slot)}
        for record in self.part(after, "record", slot):
            if _steps_on(before.get(record.id), record, self.group(state).kind):
                item = items.take(COORDINATOR, "state")
                if item is None or self._slot(item) != slot or not self._is(record, item, items):
                    return False
        return True

    def _targets(self, after: State, items: Items) -> bool:
        item = items.take(COORDINATOR, "target")
        if item is None or not items.same(self.group(after).assigned, item.data["generation"]):
            return False
        theirs: dict[int, list[int]] = {slot: [] for slot in self.setup.slots}
        for member, names in item.data["plan"].items():
            slot = self.recording.members.get(member, -1)
            theirs.setdefault(slot, []).append(self.partitions.bits(names))
        ours = {slot: [int(r.target) for r in records] for slot, records in enumerate(self.book(after))}
        return {s: sorted(v) for s, v in theirs.items()} == {s: sorted(v) for s, v in ours.items()}

    def _is(self, record: ConsumerRecord, item: Item, items: Items) -> bool:
        data, bits = item.data, self.partitions.bits
        return (
            items.same(record.epoch, data["generation"])
            and items.same(record.previous, data["previous"])
            and record.state.value == data["state"]
            and record.assigned == bits(data["partitions"])
            and record.pending == bits(data["pending"])
        )

    # -- members of the consumer protocol --------------------------------------------------------------------

    def _served(self, state: State, items: Items, slot: int, member: ConsumerMember) -> Iterator[WireStep]:
        wire = self.part(state, "wire", slot)
        coming = items.next(("wire", slot))
        if wire is None and coming is not None and coming.kind == "beat":
            for event, _, after in self.outcomes(state, "heartbeat", slot):
                mine = items.again()
                mine.take(("wire", slot), "beat")
                beat = self._seen(slot, member, self.part(after, "wire", slot), coming, mine)
                if beat is not None:
                    yield self._made(event, self.machine.put(after, f"wire {letter(slot)}", beat), mine)
        elif isinstance(wire, Beat) and self._stays_classic(state, wire, items):
            refused = BeatRefused(wire.id, BeatError.GROUP_ID_NOT_FOUND)
            after = self.machine.put(state, f"wire {letter(slot)}", refused)
            yield WireStep(Event("not converted", slot), after, items.more, ())
        elif isinstance(wire, Beat):
            for event, outcome, after in self.outcomes(state, "heartbeat arrives", slot):
                mine = items.again()
                if self._handled(state, outcome, after, mine, slot):
                    yield self._made(event, after, mine)
        elif wire is not None and coming is not None and coming.kind == "beat answer":
            for event, outcome, after in self.outcomes(state, "answer", slot):
                mine = items.again()
                mine.take(("wire", slot), "beat answer")
                if self._answers(wire, coming, mine) and self._callbacks(outcome, mine, slot):
                    yield self._made(event, after, mine)
        for name in ("lose", "reconcile", "revoke", "assign", "acknowledge"):
            for event, outcome, after in self.outcomes(state, name, slot):
                mine = items.again()
                if self._callbacks(outcome, mine, slot):
                    yield self._made(event, after, mine)

    def _stays_classic(self, state: State, beat: Beat, items: Items) -> bool:
        """Check whether a broker does not convert the group for who joins, for what its leader has
        assigned."""
        group = self.group(state)
        classic = group.kind is GroupKind.CLASSIC and any(self.book(state)) and items.more is not None
        joins = beat.kind is BeatKind.JOIN
        return classic and joins and group.epoch + (items.more or 0) in self.recording.custom

    def _seen(self, slot: int, member: ConsumerMember, beat: Beat, item: Item, items: Items) -> Beat | None:
        """Return the heartbeat as it was sent, None if the model's client sends none like it. Which fields
        one has that need not be there is the client's own affair."""
        data = item.data
        joins = data["generation"] == 0
        if joins is not (beat.kind is BeatKind.JOIN) or not items.same(beat.epoch, data["generation"]):
            return None
        if "topics" in data and self.partitions.subscribed(data["topics"]) != beat.topics:
            return None
        full = bool(data.get("full")) and "topics" in data and "partitions" in data
        if "partitions" not in data:
            return beat._replace(full=full) if beat.owned is None else None
        owned = self.partitions.bits(data["partitions"])
        decisions = self._contexts[slot].config(member.stage).decisions
        known = (beat.owned, member.claim, claims(member, decisions), claims(member, frozenset()))
        return beat._replace(full=full or joins, owned=p.Parts(owned)) if owned in known else None

    def _answers(self, wire: BeatOk | BeatRefused, item: Item, items: Items) -> bool:
        data = item.data
        if isinstance(wire, BeatRefused):
            return bool(data["error"] == wire.error.value)
        if data["error"] != "NONE" or not items.same(wire.epoch, data["generation"]):
            return False
        theirs = None if data.get("partitions") is None else self.partitions.bits(data["partitions"])
        return theirs == wire.parts

    # -- members of the classic protocol ---------------------------------------------------------------------

    def _classic(self, state: State, items: Items, slot: int, member: ClassicMember) -> Iterator[WireStep]:
        wire, lane = self.part(state, "wire", slot), ("wire", slot)
        coming = items.next(lane)
        kind = coming.kind if coming is not None else ""
        if kind == "heartbeat" and coming is not None:
            yield from self._beats(state, items, slot, member, coming)
        if wire is None and kind == "join" and coming is not None:
            for event, outcome, after in self.outcomes(state, "join", slot):
                mine = items.again()
                mine.take(lane, "join")
                sent = self.part(after, "wire", slot)
                claims_it = self.partitions.bits(coming.data.get("partitions", ())) == sent.parts
                topics = self.partitions.subscribed(coming.data.get("topics", ())) == sent.topics
                if claims_it and topics and self._callbacks(outcome, mine, slot):
                    yield self._made(event, after, mine)
        if not isinstance(wire, ClassicMessage):
            return
        if wire.step is ClassicStep.SYNC and kind == "join":
            yield from self._joins_again(state, items, slot, member)
        if wire.step in (ClassicStep.JOIN, ClassicStep.SYNC):
            for event, outcome, after in self.outcomes(state, "request arrives", slot):
                mine = items.again()
                if not self._syncs(wire, mine, lane):
                    continue
                if self._handled(state, outcome, after, mine, slot):
                    yield self._made(event, after, mine)
        for event, _, after in self.outcomes(state, "request refused", slot):
            yield self._made(event, after, items.again())
        for event, outcome, after in self.outcomes(state, "response", slot):
            mine = items.again()
            if self._response(wire, mine, lane) and self._callbacks(outcome, mine, slot):
                yield self._made(event, after, mine)

    def _joins_again(
        self, state: State, items: Items, slot: int, member: ClassicMember
    ) -> Iterator[WireStep]:
        """Before its SyncGroup it sends its JoinGroup once more, and is answered the same: as a leader of
        librdkafka whose metadata came meanwhile."""
        mine, lane = items.again(), ("wire", slot)
        join, answer = mine.take(lane, "join"), mine.take(lane, "join answer")
        record = find(self.part(state, "record", slot), member.id)
        if join is None or answer is None or record is None:
            return
        same = self.partitions.bits(join.data.get("partitions", ())) == record.claim
        assigns = self.group(state).phase is p.GroupState.COMPLETING
        if same and assigns and mine.same(member.generation, answer.data["generation"]):
            yield WireStep(Event("join again", slot), state, mine.more, mine.shows)

    def _response(self, wire: ClassicMessage, items: Items, lane: Lane) -> bool:
        """Check whether the answer to JoinGroup or to SyncGroup is the model's."""
        coming = items.next(lane)
        if coming is None or coming.kind not in ("join answer", "sync answer"):
            return False
        data = coming.data
        items.take(lane, coming.kind)
        if wire.step is ClassicStep.REFUSED:
            return bool(data["error"] == wire.error)
        if data["error"] != "NONE":
            return False
        if wire.step is ClassicStep.SYNC_OK:
            return coming.kind == "sync answer" and self.partitions.bits(data["partitions"]) == wire.parts
        if wire.step is not ClassicStep.JOIN_OK or coming.kind != "join answer":
            return False
        return items.same(wire.generation, data["generation"])

    def _syncs(self, wire: ClassicMessage, items: Items, lane: Lane) -> bool:
        """Check whether a SyncGroup that arrives was sent: a leader may think between the answer and that."""
        if wire.step is not ClassicStep.SYNC:
            return True
        sync = items.take(lane, "sync")
        return sync is not None and items.same(wire.generation, sync.data["generation"])

    def _beats(
        self, state: State, items: Items, slot: int, member: ClassicMember, item: Item
    ) -> Iterator[WireStep]:
        """Yield a heartbeat of the classic protocol and its answer."""
        mine = items.again()
        mine.take(("wire", slot), "heartbeat")
        theirs = item.data["error"]
        if member.life is not p.Life.UP or member.generation == p.NONE:
            yield WireStep(Event("late heartbeat", slot), state, items.more, mine.shows)
            return
        if mine.same(member.generation, item.data["generation"]):
            error = classic_heartbeat(self._contexts[slot], member, self.group(state), self.book(state))
            if theirs != (error.value if error else "NONE"):
                return
        after = [(event, then) for event, _, then in self.outcomes(state, "beat", slot)]
        if theirs == "NONE" or not after:
            yield WireStep(Event("heartbeat without news", slot), state, mine.more, mine.shows)
        for event, then in after if theirs != "NONE" else ():
            yield self._made(event, then, mine)

    def _of_group(self, state: State, items: Items) -> Iterator[WireStep]:
        for event, _, after in self.outcomes(state, "join phase ends", NOBODY):
            mine = items.again()
            stable = mine.take(COORDINATOR, "stable")
            if self._logged and stable is None:
                continue
            if stable is None or mine.same(self.group(after).epoch, stable.data["generation"]):
                yield self._made(event, after, mine)
        for event, _, after in self.outcomes(state, "leader decides", NOBODY):
            if self._planned(after, items):
                yield self._made(event, after, items.again())
        for event, _, after in self.outcomes(state, "topic grows", NOBODY):
            yield self._made(event, after, items.again())

    def _planned(self, after: State, items: Items) -> bool:
        """Check whether the leader has assigned what its SyncGroup says."""
        if items.more is None:
            return False
        plan = self.recording.plans.get(self.group(after).epoch + items.more)
        if plan is None:
            return False
        theirs: dict[int, int] = {}
        for member, names in plan.items():
            theirs[self.recording.members.get(member, -1)] = self.partitions.bits(names)
        ours = {s: int(r.assigned) for s, records in enumerate(self.book(after)) for r in records}
        return theirs == ours


def _steps_on(before: ConsumerRecord | None, after: ConsumerRecord, kind: GroupKind) -> bool:
    """Check whether a record has taken a step; a conversion of the group alone is none."""
    if before is None:
        return True
    if kind is not GroupKind.CONSUMER:
        return False
    names = ("epoch", "previous", "state", "assigned", "pending")
    return any(getattr(before, name) != getattr(after, name) for name in names)
