"""What Kafka's code is known to do otherwise than the model, and what becomes of the model's state then.

Each is a finding about Kafka, named with the releases that have it; the walk goes on as Kafka did, and counts
how often it was met. Whatever is not here is a disagreement.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rebalance_verifier.live.clients.replay.replay_plan import ReplayStep
from rebalance_verifier.live.code.answers import CoordinatorState
from rebalance_verifier.live.code.lockstep.steps import COMPLETES, LEAVES, commit_of_no_group
from rebalance_verifier.live.code.replay.group import CodeGroup
from rebalance_verifier.model.bugs.releases import version
from rebalance_verifier.model.classic import state as s
from rebalance_verifier.model.classic.callbacks import join_prepare, reset
from rebalance_verifier.model.classic.join_group import prepare
from rebalance_verifier.model.classic.member import wants_to_join
from rebalance_verifier.model.group import parts as p
from rebalance_verifier.model.group.observations import Call, Callback, Seen
from rebalance_verifier.model.group.setup import MemberContext, letter
from rebalance_verifier.model.machine import Machine, State


@dataclass(slots=True, kw_only=True)
class Memory:
    """State that Kafka remembers and the model does not. ``led``: by slot metadata and subscription of who
    led, None when they have changed since; ``before``: the coordinator before the step; ``expected``: what
    the model observes in this step, to be changed; ``full``: whether a join phase goes on for which everybody
    is there; ``unanswered``: whose JoinGroup or SyncGroup waits for ever, and by which deviation."""

    led: dict[int, tuple[int, int, bool] | None] = field(default_factory=dict)
    before: CoordinatorState | None = None
    expected: list[Any] = field(default_factory=list)
    full: bool = False
    unanswered: dict[int, str] = field(default_factory=dict)

    def is_outdated(self, slot: int) -> bool:
        """Check whether a member has led, and its metadata or its subscription has changed since."""
        return slot in self.led and self.led[slot] is None


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeDeviation:
    """``releases`` as the catalogue writes them. ``follow``: the model's state after the step as Kafka has
    it, None where the step is not one of these; not given where it is no step of the model."""

    id: str
    sentence: str
    releases: str
    follow: Callable[[ReplayStep, State, CodeGroup, Memory], State | None] | None = None


def _pending_leave(step: ReplayStep, after: State, code: CodeGroup, memory: Memory) -> State | None:
    """``classicGroupLeaveToClassicGroup`` counts a pending member among those that left."""
    if step.event.action == "left leave arrives":
        left = step.behind()[step.connection][0].id
    elif step.event.action in ("close", "unsubscribe", "unsubscribe midway", "bounce"):
        left = step.member().id
    else:
        return None
    record = s.find(step.records(), left)
    if record is None or record.meta is not None or code.state.coordinator.state != "PREPARING_REBALANCE":
        return None
    group = step.built.value(after, "group")
    if group.state not in (p.GroupState.STABLE, p.GroupState.COMPLETING):
        return None
    return step.built.put(after, "group", prepare(group))


def _throws(step: ReplayStep, after: State, code: CodeGroup, memory: Memory) -> State | None:
    """``joinGroupIfNeeded`` forgets its future only once ``onJoinComplete`` has returned."""
    if step.event.action != "listener throws":
        return None
    member = step.built.value(after, f"member {step.name}")
    again = member._replace(received=member.owned, prepare=False)
    return step.built.put(after, f"member {step.name}", again)


def _snapshot(step: ReplayStep, after: State, code: CodeGroup, memory: Memory) -> State | None:
    """``assignmentSnapshot`` is taken behind what the assignor may throw. Of who does not lead any more it is
    forgotten in ``onJoinComplete`` only, behind ``rejoinNeededOrPending`` of the same poll; and it tells a
    topic without partitions from none."""
    who = step.event.who
    if who < 0:
        return None
    member = step.built.value(after, f"member {step.name}")
    now = (member.view, member.topics, member.view_moved)
    if member.life is p.Life.DOWN:
        memory.led.pop(who, None)
    elif step.event.action == "assign" and "SyncGroup" in code.members[who].open_requests:
        memory.led[who] = now
    elif memory.led.get(who, now) != now:
        memory.led[who] = None
    goes_on = {"JoinGroup", "OffsetCommit"}.intersection(code.members[who].open_requests)
    if step.event.action not in COMPLETES or not goes_on:
        return None
    unneeded = not wants_to_join(MemberContext(p.Slot(who), code.setup), member)
    if not unneeded or not memory.is_outdated(who):
        return None
    return step.built.put(after, f"member {step.name}", member._replace(rejoin=True))


def _arriving(step: ReplayStep) -> s.Join | None:
    """Return the JoinGroup that arrives in a step, however late."""
    found: object = None
    if step.event.action == "join request":
        found = step.wire()
    elif step.event.action == "abandoned join":
        found = step.stray()
    elif step.event.action == "left join arrives":
        found = step.behind()[step.connection][0]
    return found if isinstance(found, s.Join) else None


def _other_bytes(step: ReplayStep, after: State, code: CodeGroup, memory: Memory) -> State | None:
    """Return the coordinator compares bytes, and CooperativeStickyAssignor writes its last generation into
    them, which since version 2 of the subscription (Kafka 3.4) nobody reads."""
    asking, request = _arriving(step), code.last_arrived
    if asking is None or request is None or memory.before is None:
        return None
    if step.built.value(after, "group").state is p.GroupState.PREPARING:
        return None
    record = next((one for one in memory.before.members if one.id == request.member_id), None)
    mine = s.find(step.records(), asking.id)
    if record is None or record.claims == request.claims or mine is None or mine.meta is None:
        return None
    return _with_noise(step, mine, 1 - mine.meta.noise)


def _same_bytes(step: ReplayStep, after: State, code: CodeGroup, memory: Memory) -> State | None:
    """A set without order may still be written down as the last time: no rebalance comes of it."""
    before, now = memory.before, code.state.coordinator
    asking = _arriving(step)
    if asking is None or before is None:
        return None
    if now.state not in ("COMPLETING_REBALANCE", "STABLE") or now.generation != before.generation:
        return None
    record = s.find(step.records(), asking.id)
    if record is None or record.meta is None:
        return None
    if record.meta.noise == asking.meta.noise:
        return None
    return _with_noise(step, record, asking.meta.noise)


def _with_noise(step: ReplayStep, record: s.MemberRecord, noise: int) -> State | None:
    """Return the state after the step if what the coordinator knows of its member had been written down
    so."""
    assert record.meta is not None
    other = record._replace(meta=record.meta._replace(noise=noise))
    before = step.built.put(step.before, f"record {step.name}", s.put(step.records(), other))
    outcome = step.built.outcome(before, step.event)
    return None if outcome is None else step.built.apply(before, step.event, outcome)


def _first_join_refused(step: ReplayStep, after: State, code: CodeGroup, memory: Memory) -> State | None:
    """``generationUnchanged``: what was sent without an id is for whoever has none yet."""
    wire = step.wire() if step.event.action == "receive" else None
    if not isinstance(wire, s.Refused) or wire.api != "join" or wire.error is not p.Error.UNKNOWN_MEMBER_ID:
        return None
    member = step.built.value(after, f"member {step.name}")
    if member.id != p.NO_ID or member.state is not p.MemberState.PREPARING:
        return None
    return step.built.put(after, f"member {step.name}", reset(member))


def _late_id(step: ReplayStep, after: State, code: CodeGroup, memory: Memory) -> State | None:
    """``JoinGroupResponseHandler`` sets the member id without a look at the state."""
    wire = step.wire() if step.event.action == "receive" else None
    if not isinstance(wire, s.Refused) or wire.error is not p.Error.MEMBER_ID_REQUIRED:
        return None
    member = step.built.value(after, f"member {step.name}")
    if member.id == wire.given:
        return None
    return step.built.put(after, f"member {step.name}", member._replace(id=wire.given, generation=p.NONE))


def _unjoined(step: ReplayStep, after: State, code: CodeGroup, memory: Memory) -> State | None:
    """``initiateJoinGroup``: the listener of the future sets the state when it fails, up to Kafka 2.6."""
    threw = step.event.action == "assign" and step.wire(after=True) is None
    hears = step.event.action in ("receive", "polls on") and isinstance(step.wire(), s.Refused)
    if not threw and not hears:
        return None
    mine = code.state.members[step.event.who]
    member = step.built.value(after, f"member {step.name}")
    old = version(code.releases.of(step.event.who)) < (2, 7)
    if not old or mine is None or mine.state != "UNJOINED" or member.state is p.MemberState.UNJOINED:
        return None
    return step.built.put(after, f"member {step.name}", member._replace(state=p.MemberState.UNJOINED))


def _leaves_revoked(step: ReplayStep, after: State, code: CodeGroup, memory: Memory) -> State | None:
    """``onLeavePrepare`` asked for the one object ``NO_GENERATION``, which is not that of who has a member id
    only, and before 2.6 not whether a rebalance is under way."""
    if step.event.action not in (*LEAVES, "receive"):
        return None
    release, member = version(code.releases.of(step.event.who)), step.member()
    if release >= (2, 7) or (release >= (2, 6) and (member.generation != p.NONE or member.id == p.NO_ID)):
        return None
    heard = [one.call for one in code.seen if isinstance(one, Callback)]
    found = None
    for number, one in enumerate(memory.expected):
        if isinstance(one, Callback) and one.call is Call.LOST and heard == [Call.REVOKED]:
            memory.expected[number], found = one._replace(call=Call.REVOKED), after
    return found


def _closes_silently(step: ReplayStep, after: State, code: CodeGroup, memory: Memory) -> State | None:
    """``AbstractCoordinator.close`` asked ``leaveGroupOnClose`` before ``onLeavePrepare`` too."""
    who = step.event.who
    if step.event.action not in ("close", "bounce") or version(code.releases.of(who)) >= (4, 1):
        return None
    if code.setup.consumers[who].stages[step.member().stage].leaves:
        return None
    silent = [one for one in memory.expected if not isinstance(one, Callback)]
    found = None if silent == memory.expected else after
    memory.expected[:] = silent
    return found


def _full(step: ReplayStep, after: State, code: CodeGroup, memory: Memory) -> State | None:
    """``classicGroupJoinToClassicGroup`` removes whom it turns away, and does not look who is left."""
    if code.state.coordinator.state != "PREPARING_REBALANCE":
        memory.full = False
    if step.event.action != "join request":
        return None
    asking, answer = step.wire(), step.wire(after=True)
    if not isinstance(asking, s.Join) or not isinstance(answer, s.Refused):
        return None
    if answer.error is not p.Error.GROUP_MAX_SIZE_REACHED or s.find(step.records(), asking.id) is None:
        return None
    memory.full = code.state.coordinator.state == "PREPARING_REBALANCE"
    left = tuple(record for record in step.records() if record.id != asking.id)
    return step.built.put(after, f"record {step.name}", left)


def _not_new(step: ReplayStep, after: State, code: CodeGroup, memory: Memory) -> State | None:
    """``ClassicGroup.replaceStaticMember`` makes another object, which is not ``isNew``."""
    if step.event.action not in ("join request", "abandoned join", "left join arrives"):
        return None
    before, records = step.records(), step.records(after=True)
    fresh = [r for r in records if r.new and r.meta is not None and s.find(before, r.id) is None]
    old = [one.new for one in code.state.coordinator.members if one.client[-1] == step.name]
    if not fresh or not any(r.new for r in before) or any(old):
        return None
    return step.built.put(after, f"record {step.name}", s.put(records, fresh[0]._replace(new=False)))


def _no_group(step: ReplayStep, after: State, code: CodeGroup, memory: Memory) -> State | None:
    """``validateOffsetCommit`` of a group that does not exist."""
    known = memory.before is not None and memory.before.state is not None  # of an id that was handed out
    if not commit_of_no_group(step) or known:
        return None
    waits = code.members[step.event.who].delayed_request  # or it has heard what it makes nothing of
    answer = step.built.value(after, f"stray {step.name}")
    heard = answer._replace(error=p.Error.ILLEGAL_GENERATION) if waits else None
    return step.built.put(after, f"stray {step.name}", heard)


def _append_forged(step: ReplayStep, after: State, code: CodeGroup, memory: Memory) -> State | None:
    """Of JoinGroup ``GroupMetadataManager`` waits for nothing that is appended, but a new group's own record
    and a static member's return."""
    if step.event.action != "append fails":
        return None
    return step.built.put(after, f"record {step.name}", step.records())


def never_answered(built: Machine, state: State, code: CodeGroup, memory: Memory, slot: int) -> bool:
    """Check whether a SyncGroup waits although its member was removed, or a JoinGroup although a late one of
    its member took its place: nobody completes its future then."""
    wire, records = (built.value(state, f"{part} {letter(slot)}") for part in ("wire", "record"))
    waits = {s.SyncParked: "SyncGroup", s.JoinParked: "JoinGroup"}.get(type(wire), "")
    if waits not in code.members[slot].unanswered_requests:
        memory.unanswered.pop(slot, None)
    elif isinstance(wire, s.SyncParked) and s.find(records, wire.id) is None:
        memory.unanswered[slot] = NEVER_ANSWERED.id
    return slot in memory.unanswered


def still_waiting(built: Machine, before: State, after: State, memory: Memory) -> State | None:
    """``after`` without answers to what is never answered, neither at the end of a join phase nor when the
    coordinator is unloaded; None where there are none."""
    wires = {built.position[f"wire {letter(slot)}"] for slot in memory.unanswered}
    kept = tuple(before[at] if at in wires else value for at, value in enumerate(after))
    return None if kept == after else kept


def _late_join_waits(step: ReplayStep, after: State, code: CodeGroup, memory: Memory) -> State | None:
    """``updateMember`` sets ``awaitingJoinFuture``, and what was there before is nobody's any more."""
    late = _arriving(step)
    if late is None or step.event.action == "join request":
        return None
    wire = step.wire(after=True)
    if not isinstance(wire, s.JoinParked):
        return None
    record = s.find(step.records(after=True), wire.id)
    if late.id != wire.id or record is None or not record.joined:
        return None
    memory.unanswered[step.event.who] = OVERTAKEN.id
    return None


def prepared_in_flight(built: Machine, state: State, me: MemberContext) -> tuple[State, Seen] | None:
    """Return what a poll does of a member whose membership went while its JoinGroup or SyncGroup is under
    way: ``joinGroupIfNeeded`` looks at ``needsJoinPrepare`` before it waits for the answer. None for others;
    who has unsubscribed does not come there."""
    name = f"member {letter(me.slot)}"
    member: s.Member = built.value(state, name)
    waits = built.value(state, f"wire {letter(me.slot)}") is not None
    if not member.prepare or not member.topics or not waits:
        return None
    member, seen = join_prepare(me, member)
    return built.put(state, name, member), seen


PREPARES_IN_FLIGHT = CodeDeviation(
    id="prepares_in_flight",
    sentence="who hears from a heartbeat that its membership is gone while its JoinGroup or SyncGroup is "
    "under way gives its partitions up at the next poll; in the model it does when it joins again",
    releases="Java 2.7.2, since 2.8.1",
)

NEVER_ANSWERED = CodeDeviation(
    id="removed_while_syncing",
    sentence="whose LeaveGroup arrives while its SyncGroup waits is never answered; its client waits for "
    "request.timeout.ms",
    releases="broker since 3.7.0",
)

OVERTAKEN = CodeDeviation(
    id="late_join_takes_the_answer",
    sentence="a JoinGroup that arrives late, while a later one of the same member waits, takes its place: "
    "the later one is never answered, and its client waits for request.timeout.ms",
    releases="broker since 3.7.0",
    follow=_late_join_waits,
)

OUTDATED_SNAPSHOT = CodeDeviation(
    id="snapshot_outlives_leadership",
    sentence="a consumer that has led once asks for one more rebalance when its metadata or its subscription "
    "has changed since, although it does not lead any more or nothing of the assignment changes",
    releases="Java since 2.4.0",
    follow=_snapshot,
)

COUNTED_ANEW = CodeDeviation(
    id="epochs_begin_anew",
    sentence="a group that was deleted, or had nobody left and is converted, counts its epochs from the "
    "beginning, so that a commit from before may show the epoch that its member has now, and is stored; in "
    "the model it counts on",
    releases="broker since 4.0.0",
)

SENT_BACK = CodeDeviation(
    id="full_group_sends_back",
    sentence="a consumer of the consumer protocol that finds a classic group full is turned away, and "
    "members that wait for the answer to a JoinGroup or SyncGroup hear REBALANCE_IN_PROGRESS and join again",
    releases="broker since 4.0.0",
)

DEVIATIONS = (
    COUNTED_ANEW,
    SENT_BACK,
    CodeDeviation(
        id="replaced_is_not_new",
        sentence="a static member that comes back in its first join phase counts as alive while it waits, "
        "and its session does not end",
        releases="broker since 3.7.0",
        follow=_not_new,
    ),
    NEVER_ANSWERED,
    OVERTAKEN,
    PREPARES_IN_FLIGHT,
    CodeDeviation(
        id="full_group_forgets",
        sentence="a member that finds the group full when it joins again is removed, and the others wait for "
        "the end of the rebalance timeout although all have joined",
        releases="broker since 3.7.0",
        follow=_full,
    ),
    CodeDeviation(
        id="midway_leave_revokes",
        sentence="a member that leaves during a rebalance calls onPartitionsRevoked, not onPartitionsLost; "
        "in 2.6 only a member with an id and no generation does, after a JoinGroup that failed",
        releases="Java 2.4.0 to 2.6.3",
        follow=_leaves_revoked,
    ),
    CodeDeviation(
        id="closes_silently",
        sentence="a consumer that is closed and stays in the group (leave.group.on.close=false) calls no "
        "listener",
        releases="Java before 4.1.0",
        follow=_closes_silently,
    ),
    CodeDeviation(
        id="unsorted_yet_equal",
        sentence="a client that writes down sets in any order wrote the same bytes again",
        releases="Java before 2.8.1",
        follow=_same_bytes,
    ),
    CodeDeviation(
        id="failed_join_is_unjoined",
        sentence="whose JoinGroup or SyncGroup failed is outside of the group for itself, whatever the error",
        releases="Java 2.4.0 to 2.6.3",
        follow=_unjoined,
    ),
    CodeDeviation(
        id="first_join_unknown",
        sentence="a static member whose first JoinGroup is answered UNKNOWN_MEMBER_ID begins anew, in the "
        "model it goes on; either way it sends the next one",
        releases="Java since 2.4.0",
        follow=_first_join_refused,
    ),
    CodeDeviation(
        id="late_id_taken",
        sentence="a consumer that has unsubscribed before its first JoinGroup is answered takes the member "
        "id all the same, and joins with it when it subscribes again; in the model it asks for another",
        releases="Java since 2.4.0",
        follow=_late_id,
    ),
    CodeDeviation(
        id="unread_generation_compared",
        sentence="a JoinGroup that says the same but for the generation in CooperativeStickyAssignor's user "
        "data, which nobody reads since version 2 of the subscription, makes the group rebalance",
        releases="Java since 3.4.0",
        follow=_other_bytes,
    ),
    OUTDATED_SNAPSHOT,
    CodeDeviation(
        id="completes_again",
        sentence="after a listener threw, the next poll takes the same assignment once more: "
        "onPartitionsAssigned is called again, with nothing",
        releases="Java since 2.4.0",
        follow=_throws,
    ),
    CodeDeviation(
        id="pending_leave_rebalances",
        sentence="a member that leaves before its second JoinGroup (KIP-394) makes the whole group "
        "rebalance; the old coordinator only forgot its id",
        releases="broker since 3.7.0",
        follow=_pending_leave,
    ),
    CodeDeviation(
        id="commit_of_no_group",
        sentence="a commit that arrives after its group was deleted is answered ILLEGAL_GENERATION, and its "
        "sender keeps its member id, or GROUP_ID_NOT_FOUND since version 9 of the request (Kafka 3.6), which "
        "does nothing to its sender; in the model UNKNOWN_MEMBER_ID",
        releases="broker since 3.7.0",
        follow=_no_group,
    ),
    CodeDeviation(
        id="join_not_appended",
        sentence="no JoinGroup is answered REBALANCE_IN_PROGRESS because an append failed (KAFKA-10870): the "
        "answer is forged, and the coordinator goes on as if its own had been lost",
        releases="broker since 3.7.0",
        follow=_append_forged,
    ),
)
"""All of them."""

NAMED = {one.id: one for one in DEVIATIONS}
"""Each by its id."""
