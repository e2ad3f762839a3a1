"""A group with members of the consumer protocol (KIP-848) on Kafka's coordinator, in the values of the model.

So the clauses look at it through the model's own views, and what a heartbeat brought about is told from the
coordinator's records before and after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, cast

from rebalance_verifier.base.processes.program import JsonLine
from rebalance_verifier.live.code.answers import (
    CoordinatorState,
    ServedMember,
    SimulationEvent,
    SimulationRequest,
    SimulationResponse,
    SimulationThrown,
)
from rebalance_verifier.live.code.replay.beats import AGAIN, HEARTBEAT, beat_error
from rebalance_verifier.live.code.replay.coordinator import group_state
from rebalance_verifier.live.code.replay.group import STATES, limits
from rebalance_verifier.live.code.search.group import SearchedGroup, committed
from rebalance_verifier.model.consumer import group as consumer
from rebalance_verifier.model.consumer.observations import Advanced, BeatAnswered, Committed, Ended, Granted
from rebalance_verifier.model.consumer.state import (
    Beat,
    BeatKind,
    ClassicMember,
    ClassicMessage,
    ClassicStep,
    ConsumerGroup,
    ConsumerMember,
    ConsumerRecord,
    ConsumerRecords,
    GroupKind,
    RecordState,
    find,
)
from rebalance_verifier.model.group.observations import Expelled, TurnedAway
from rebalance_verifier.model.group.parts import (
    NO_ID,
    NONE,
    NOTHING,
    ClusterState,
    Error,
    Generation,
    Life,
    MemberState,
    Parts,
    Slot,
    Topics,
    union,
)
from rebalance_verifier.model.group.setup import CONSUMER, MemberContext, letter
from rebalance_verifier.model.machine import View
from rebalance_verifier.model.migration.views import views as migration_views
from rebalance_verifier.properties.group.clauses import rules
from rebalance_verifier.properties.group.consumer import most_heartbeats

_EXPECTED = ("FencedInstanceIdException", "GroupMaxSizeReachedException")
_REFUSED = "InconsistentGroupProtocolException"

AWAY = -2
"""The member epoch of a static member that is away."""

Book = tuple[ConsumerRecords, ...]


class MixedGroup(SearchedGroup):
    """A searched group that has, or may have, members of the consumer protocol."""

    @cached_property
    def _known_views(self) -> Mapping[str, View]:
        """The model's views of the group, by name."""
        mes = [MemberContext(Slot(slot), self.setup) for slot in self.setup.slots]
        made = consumer.views if self.setup.protocol == CONSUMER else migration_views
        return {view.name: view for view in made(self.setup, mes)}

    def broker(self, *, limited: bool) -> JsonLine:
        """Return the config of a coordinator: a target is computed when it is due, as up to 4.2."""
        return super().broker(limited=limited) | {
            **(limits(self.setup) if limited else {}),
            "group.consumer.assignment.interval.ms": 0,
            "group.consumer.migration.policy": self.setup.policy,
        }

    def run(self, *commands: JsonLine) -> tuple[SimulationEvent, ...]:
        """Run as `SearchedGroup.run` does; what an arrival brings about is seen."""
        before, was, first = self.state.coordinator, book(self, self.state.coordinator), len(self.seen)
        events = super().run(*commands)
        # Of a classic group it says something else than of a consumer group.
        self.seen[first:] = [one for one in self.seen[first:] if not isinstance(one, Expelled)]
        self.seen += self._timed_out(commands[0], before)
        if commands[0]["do"] == "deliver" and self.last_arrived is not None:
            request = self.last_arrived
            answer = self.memory.responses.get(request.id)
            self.seen += brought_about(self, request, answer, before, was)
        self.seen += [
            Ended(Slot(one.member), cast(Error, one.error))
            for one in events
            if isinstance(one, SimulationThrown) and self._ends(one)
        ]
        return events

    def _timed_out(self, command: JsonLine, before: CoordinatorState) -> Iterator[Expelled]:
        """Yield the member that a rebalance timeout has removed although it had nothing to revoke."""
        timer = str(command.get("timer", "")) if command["do"] == "expire" else ""
        left = {one.id for one in served_members(self.state.coordinator)}
        for one in served_members(before):
            removed = timer.startswith("rebalance-timeout-") and timer.endswith(f"-{one.id}")
            away = one.epoch == AWAY
            owes = one.state == RecordState.UNREVOKED.value and not away and not one.classic
            if removed and one.id not in left and not owes:
                yield Expelled(Slot(self.slot(one.id)), "rebalance", not away, away)

    def _ends(self, thrown: SimulationThrown) -> bool:
        """Check whether a consumer of the classic protocol throws what joining again would cure: a group that
        turns down its JoinGroup has other members, or a policy."""
        if "rebalance callback" in (thrown.message or "") or thrown.error.endswith(_EXPECTED):
            return False
        answers = [one for one in self.memory.responses.values() if one.member == thrown.member]
        refused = [one for one in answers if one.error == Error.INCONSISTENT_GROUP_PROTOCOL]
        return not (thrown.error.endswith(_REFUSED) and refused and refused[-1].api == "JoinGroup")

    def seen_by_clauses(self, arrived: SimulationRequest | None) -> Callable[[str], Any]:
        """Return the same as of a classic group, through the model's views."""
        values, shown = _values(self), committed(self, arrived)
        for member in self.members:
            if not self.is_played(member.slot):  # its listener has heard what it will only behind its poll
                name = f"listener {letter(member.slot)}"
                shown[name] = super().views(member)[name]

        def value(name: str) -> Any:
            if name in shown:
                return shown[name]
            view = self._known_views[name]
            return view.of(*[values[part] for part in view.reads])

        return value

    @property
    def most_rounds(self) -> int:
        return most_heartbeats(self.setup)

    def settled(self) -> bool:
        """Check whether everybody who runs is a settled member, and every subscribed partition is owned."""
        [goal] = rules(self.setup).finally_
        return not self.state.coordinator.pending_joins and goal.holds(
            *map(self.seen_by_clauses(None), goal.views)
        )


def served_members(known: CoordinatorState) -> tuple[ServedMember, ...]:
    """Return the members of a consumer group."""
    return known.consumer.members if known.consumer else ()


# -- in the values of the model ----------------------------------------------------------------------------


def _values(group: SearchedGroup) -> dict[str, Any]:
    """Return the components of a state of the model that views read."""
    values: dict[str, Any] = {
        "cluster": ClusterState(Parts(group.memory.partition_count)),
        "group": _group(group.state.coordinator),
    }
    for slot, records in enumerate(book(group, group.state.coordinator)):
        name = letter(slot)
        values[f"record {name}"] = records
        values[f"member {name}"] = _member(group, slot)
        values[f"wire {name}"] = _wire(group, slot)
        values[f"stray {name}"] = None
    return values


def _group(known: CoordinatorState) -> ConsumerGroup:
    if (served := known.consumer) is not None:
        epoch, assigned = Generation(served.epoch), Generation(served.assignment_epoch)
        # Without members the epoch of the target is an older one before 4.4 (KAFKA-20442).
        return ConsumerGroup(GroupKind.CONSUMER, epoch, assigned if served.members else epoch)
    if known.state is None:
        return ConsumerGroup()
    generation = Generation(known.generation)
    return ConsumerGroup(GroupKind.CLASSIC, generation, generation, phase=group_state(known))


def book(group: SearchedGroup, known: CoordinatorState) -> Book:
    """Return the coordinator's records of every slot."""
    found: list[dict[int, ConsumerRecord]] = [{} for _ in group.setup.slots]
    for one in served_members(known):
        slot, number = group.memory.member_ids[one.id]
        away = one.epoch == AWAY
        unsettled = one.state in (RecordState.UNREVOKED.value, RecordState.UNRELEASED.value)
        found[slot][number] = ConsumerRecord(
            number,
            epoch=NONE if away else Generation(one.epoch),
            previous=NONE if away else Generation(one.previous),
            state=RecordState(one.state) if unsettled else RecordState.STABLE,
            assigned=_bits(group, one.assigned),
            pending=_bits(group, one.pending),
            target=_bits(group, one.target),
            topics=_topics(group, slot, number),
            away=away,
            classic=one.classic,
        )
    for each in known.members:
        slot, number = group.memory.member_ids[each.id]
        claim = each.claims[0].owned if each.claims else ()
        found[slot][number] = ConsumerRecord(
            number, assigned=_bits(group, each.assigned or ()), classic=True, joined=each.joining,
            claim=_bits(group, claim),
        )  # fmt: skip
    return tuple(tuple(records[number] for number in sorted(records)) for records in found)


def _topics(group: SearchedGroup, slot: int, number: int) -> Topics:
    """Return the topics that the coordinator was last told of; it does not show them."""
    member = group.memory.clients.get(slot)
    return member.topics if member is not None and member.id == number else Topics(0)


def _member(group: SearchedGroup, slot: int) -> ConsumerMember | ClassicMember:
    memory = group.memory
    stage = memory.stages.get(slot, 0)
    if group.is_played(slot):
        return memory.clients.get(slot, ConsumerMember(stage=stage))
    process = group.state.members[slot]
    if process is None:
        return ClassicMember(stage=stage)
    own = memory.member_ids.get(process.member_id)
    topics = union([1 << group.topics.index(name) for name in process.topics])
    return ClassicMember(
        life=Life.UP,
        stage=stage,
        state=STATES.get(process.state, MemberState.PREPARING),
        id=NO_ID if own is None else own[1],
        generation=Generation(process.generation),
        owned=_bits(group, process.owned),
        believed=Parts(group.members[slot].believed_partitions),
        rejoin=process.rejoin or process.joining,
        topics=Topics(topics),
    )


def _wire(group: SearchedGroup, slot: int) -> Beat | ClassicMessage | None:
    if group.is_played(slot):
        return group.memory.beats.get(slot)
    return ClassicMessage(ClassicStep.JOIN, NO_ID, NONE) if group.joins(slot) else None


def _bits(group: SearchedGroup, names: Any) -> Parts:
    return Parts(group.bits(names))


# -- what an arrival brought about -------------------------------------------------------------------------


def brought_about(
    group: SearchedGroup,
    request: SimulationRequest,
    answer: SimulationResponse | None,
    before: CoordinatorState,
    was: Book,
) -> Iterator[object]:
    """Yield the observations of a request that has arrived at the coordinator, which stood as ``before``
    with the records ``was``; nobody hears an answer that is abandoned."""
    if answer is None or answer.abandoned or answer.error in AGAIN:
        return
    if request.api == "OffsetCommit":
        yield from _committed(group, request, answer, before, was)
    elif request.api == HEARTBEAT:
        beat = group.memory.sent_beats[request.id]
        if beat.kind in (BeatKind.LEAVE, BeatKind.AWAY):
            return
        if answer.error == "NONE":
            yield from _reconciled(group, Slot(request.member), beat, before, was)
        else:
            yield from _refused(group, Slot(request.member), beat, answer.error, was)


def _committed(
    group: SearchedGroup,
    request: SimulationRequest,
    answer: SimulationResponse,
    before: CoordinatorState,
    was: Book,
) -> Iterator[Committed]:
    parts = _bits(group, request.partitions)
    number = group.memory.member_ids.get(request.member_id, (0, NO_ID))[1]
    record = find(was[request.member], number)
    judged = record is not None and before.consumer is not None and not record.away
    held = Parts(parts & record.held) if judged and record is not None else NOTHING
    yield Committed(Slot(request.member), parts, parts if answer.error == "NONE" else NOTHING, held)


def _refused(
    group: SearchedGroup, slot: Slot, beat: Beat, error: str, was: Book
) -> Iterator[BeatAnswered | TurnedAway]:
    static = group.setup.consumers[slot].instance is not None
    classic = static and any(record.classic for record in was[slot])
    inside = find(was[slot], beat.id) is not None
    yield BeatAnswered(slot, beat.kind, beat_error(error), inside, classic)
    if error == Error.GROUP_MAX_SIZE_REACHED:
        yield TurnedAway(slot, static and bool(was[slot]))


def _reconciled(
    group: SearchedGroup, slot: Slot, beat: Beat, before: CoordinatorState, was: Book
) -> Iterator[Granted | Advanced]:
    """The epochs of a group that this heartbeat has made, or converted, have no order with those before."""
    known, now = group.state.coordinator.consumer, book(group, group.state.coordinator)
    record = find(now[slot], beat.id)
    if known is None or record is None:
        return
    static = group.setup.consumers[slot].instance is not None
    old = find(was[slot], beat.id) or (was[slot][0] if static and was[slot] else None)
    gained = Parts(record.assigned & ~(NOTHING if old is None else old.held))
    others = union([r.held for s, rs in enumerate(now) for r in rs if (s, r.id) != (slot, beat.id)])
    if gained:
        yield Granted(slot, gained, Parts(others), Parts(gained & ~group.setup.parts(beat.topics)))
    if before.consumer is not None:
        own = NONE if old is None else old.epoch
        first, last = before.consumer, (record.epoch, known.assignment_epoch, known.epoch)
        epochs = Generation(first.assignment_epoch), Generation(first.epoch)
        yield Advanced(slot, (own, *epochs), (last[0], Generation(last[1]), Generation(last[2])))
