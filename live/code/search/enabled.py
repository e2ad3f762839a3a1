"""What can happen next in a group of Kafka's own code, read off the simulation alone.

A choice has the name that the model has for it. What is done (``act``) is the same whatever it is called: a
poll is a ``join`` or a ``complete`` by what the consumer is about to do, and a timer that fires although who
is late is at work is a fault.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rebalance_verifier.live.code.answers import ConsumerState
from rebalance_verifier.live.code.search.group import FOUND, SearchedGroup
from rebalance_verifier.model.bugs.releases import version
from rebalance_verifier.model.group.parts import NONE, each
from rebalance_verifier.model.group.setup import Setup, letter
from rebalance_verifier.model.machine import NOBODY, Event

STEPS = (
    "start", "subscribe", "join", "complete", "poll", "heartbeat", "refresh", "join request", "sync request",
    "leader sync", "leave request", "late request arrives", "receive", "assign", "late answer",
    "abandoned join", "join phase ends", "rebalance timeout", "session expires",
)  # fmt: skip
"""What a group does by itself."""

FAULTS = (
    "crash", "close", "unsubscribe", "max poll", "resubscribe", "enforce", "disconnect", "late request",
    "listener throws", "session timeout", "slow member", "failover", "append fails", "topic grows",
    "topic shrinks", "topic deleted",
)  # fmt: skip
"""What goes wrong, and what an application asks for."""

_ACTS = {
    **dict.fromkeys(("join", "complete", "poll"), "poll"),
    **dict.fromkeys(("receive", "assign", "late answer"), "receive"),
    **dict.fromkeys(
        ("join request", "sync request", "leader sync", "leave request", "late request arrives"), "arrive"
    ),
    **dict.fromkeys(("session expires", "session timeout"), "session"),
}
_PHASE = {"join phase ends": "rebalance", "rebalance timeout": "sync", "slow member": "sync"}
ARRIVES = "arrives"
"""The choice of an end of a connection: what was sent on it still arrives."""

OLD = "abandoned join"
LOADING = "loading"
_OTHERS = {"Heartbeat": "heartbeat", "OffsetCommit": "commit"}


@dataclass(frozen=True, slots=True)
class CodeChoice:
    """Something that can happen. ``act``: what is done; ``fault``: whether it draws on the budget."""

    act: str
    event: Event
    fault: bool = False

    @property
    def key(self) -> tuple[str, int, str]:
        """Return what it is, whatever it is called."""
        return key(self.event)


def key(event: Event) -> tuple[str, int, str]:
    """Return what an event is, whatever it is called: a run of one release is played on another by it."""
    if event.action in _PHASE:
        return ("rebalance" if event.choice != "sync" else "sync"), NOBODY, ""
    act = _ACTS.get(event.action, event.action)
    return act, event.who, "" if act in ("receive", "arrive", "poll") else event.choice


def choices(group: SearchedGroup, faults: Sequence[str]) -> list[CodeChoice]:
    """Return all that can happen; of what goes wrong, the kinds in ``faults``. What is known to change
    nothing as things are is left out."""
    found = [*_members(group, faults), *_coordinator(group, faults), *_cluster(group.setup, group, faults)]
    futile = group.memory.without_effect
    return [one for one in found if one.event not in futile and (not one.fault or one.event.action in faults)]


# -- members -------------------------------------------------------------------------------------------


def _members(group: SearchedGroup, faults: Sequence[str]) -> Iterator[CodeChoice]:
    for slot in group.setup.slots:
        if (stray := next(iter(group.strays(slot)), None)) is not None:
            yield CodeChoice("stray", Event(OLD, slot, "" if stray.api == "JoinGroup" else stray.api))
        consumer = group.state.members[slot]
        if consumer is None:
            if slot not in group.memory.given_up:
                yield CodeChoice("start", Event("start", slot))
            continue
        yield from _messages(group, slot)
        yield from _application(group, slot, consumer)
        if faults:
            yield from _trouble(group, slot, consumer)


def _messages(group: SearchedGroup, slot: int) -> Iterator[CodeChoice]:
    if arrived := [one for one in group.arrived(slot) if one.api != FOUND]:
        first = arrived[0]
        leads = first.api == "JoinGroup" and first.error == "NONE" and first.leader == first.member_id
        other = _OTHERS.get(first.api, "")
        name = "late answer" if other else "assign" if leads else "receive"
        yield CodeChoice("receive", Event(name, slot, other or ("" if leads else first.api)))
    queue = [one for one in group.queue(slot) if one.api != FOUND]
    if queue and group.waits(slot) is None:
        first_sent = queue[0]
        coordinator = group.state.coordinator
        match first_sent.api:
            case "JoinGroup":
                event = Event("join request", slot)
            case "SyncGroup":
                event = Event("leader sync" if first_sent.assignments else "sync request", slot)
            case "LeaveGroup":
                event = Event("leave request", slot)
            case api:
                event = Event("late request arrives", slot, _OTHERS.get(api, api))
        yield CodeChoice("arrive", event)
        current = (
            coordinator.state == "COMPLETING_REBALANCE" and coordinator.generation == first_sent.generation
        )
        if first_sent.api == "SyncGroup" and current and first_sent.member_id == coordinator.leader:
            yield CodeChoice("append fails", Event("append fails", slot), True)


def _application(group: SearchedGroup, slot: int, consumer: ConsumerState) -> Iterator[CodeChoice]:
    memory = group.memory
    if not consumer.topics:
        yield CodeChoice("subscribe", Event("subscribe", slot))
        return
    if slot not in memory.polled_without_effect:
        yield CodeChoice("poll", Event(polled(group, slot, consumer), slot))
    if slot in memory.stale_metadata:
        yield CodeChoice("refresh", Event("refresh", slot))
    free = not group.queue(slot) and not group.arrived(slot) and group.waits(slot) is None
    beats = consumer.heartbeats and consumer.coordinator_known and free
    if beats and memory.last_heartbeat_views.get(slot) != beat(group, slot):
        yield CodeChoice("heartbeat", Event("heartbeat", slot))


def polled(group: SearchedGroup, slot: int, consumer: ConsumerState) -> str:
    """Return what a poll of a member is called: what it is about to do."""
    if group.joins(slot):
        return "poll"
    if consumer.joining and consumer.state == "STABLE" and consumer.generation != NONE:
        return "complete"
    return "join" if consumer.rejoin or consumer.joining else "poll"


def beat(group: SearchedGroup, slot: int) -> object:
    """Return what a heartbeat asks about."""
    known, consumer = group.state.coordinator, group.state.members[slot]
    assert consumer is not None
    ids = tuple(one.id for one in known.members)
    return known.state, known.generation, ids, consumer.state, consumer.generation, consumer.member_id


def _trouble(group: SearchedGroup, slot: int, consumer: ConsumerState) -> Iterator[CodeChoice]:
    """Yield what may go wrong with a member, and what its application may ask for."""
    config = group.setup.consumers[slot]
    queue = [one for one in group.queue(slot) if one.api != FOUND]
    for name in ("crash", "close"):
        yield CodeChoice(name, Event(name, slot), True)
        if queue and name == "crash":
            yield CodeChoice(name, Event(name, slot, ARRIVES), True)
    if queue or group.waits(slot) or group.arrived(slot):
        yield CodeChoice("disconnect", Event("disconnect", slot), True)
        if queue:
            yield CodeChoice("disconnect", Event("disconnect", slot, ARRIVES), True)
    if not consumer.topics:
        return
    yield CodeChoice("unsubscribe", Event("unsubscribe", slot), True)
    for number, topics in enumerate(config.subscriptions):
        if sorted(group.names(topics)) != sorted(consumer.topics):
            yield CodeChoice("resubscribe", Event("resubscribe", slot, f"subscription {number}"), True)
    if not consumer.rejoin and version(group.releases.of(slot)) >= (2, 6):
        yield CodeChoice("enforce", Event("enforce", slot), True)
    sent = [*(one.api for one in queue), *(one.api for one in group.arrived(slot))]
    if consumer.coordinator_known:
        if consumer.heartbeats:
            yield CodeChoice("max poll", Event("max poll", slot), True)
            if "Heartbeat" not in sent:
                yield CodeChoice("late request", Event("late request", slot, "heartbeat"), True)
        if consumer.owned and "OffsetCommit" not in sent:
            yield CodeChoice("late request", Event("late request", slot, "commit"), True)
    if slot not in group.memory.polled_without_effect and polled(group, slot, consumer) == "complete":
        yield CodeChoice("listener throws", Event("listener throws", slot), True)


# -- the coordinator and its timers, topics --------------------------------------------------------------


def _coordinator(group: SearchedGroup, faults: Sequence[str]) -> Iterator[CodeChoice]:
    coordinator = group.state.coordinator
    if coordinator.state == "PREPARING_REBALANCE":
        missing = [one.id for one in coordinator.members if not one.joining]
        yield _phase("join", group, [*missing, *coordinator.pending_joins])
    elif coordinator.state == "COMPLETING_REBALANCE" and coordinator.pending_syncs:
        yield _phase("sync", group, coordinator.pending_syncs)
    for one in (*(member.id for member in coordinator.members), *coordinator.pending_joins):
        slot, number = group.slot(one), f"id {group.number(one)}"
        busy = group.at_work(one)
        yield CodeChoice(
            "session", Event("session timeout" if busy else "session expires", slot, number), busy
        )
    if coordinator.state is not None:
        yield CodeChoice("failover", Event("failover"), True)
        if any(one.api == "SyncGroup" for slot in group.setup.slots for one in group.queue(slot)):
            yield CodeChoice("failover", Event("failover", NOBODY, LOADING), True)


def _phase(phase: str, group: SearchedGroup, missing: Sequence[str]) -> CodeChoice:
    """Return the end of the time that members have to join, or to sync."""
    busy = [one for one in missing if group.at_work(one)]
    if not missing and phase == "join":
        return CodeChoice("rebalance", Event("join phase ends"))
    late = group.slot((busy or list(missing))[0])
    act = "rebalance" if phase == "join" else "sync"
    return CodeChoice(act, Event("slow member" if busy else "rebalance timeout", late, phase), bool(busy))


def _cluster(setup: Setup, group: SearchedGroup, faults: Sequence[str]) -> Iterator[CodeChoice]:
    if not any(one.startswith("topic") for one in faults):
        return
    for number, parts in enumerate(setup.topics):
        some, every = each(parts & group.memory.partition_count), each(parts)
        if len(some) < len(every):
            name = str(setup.partition(every[len(some)]))
            yield CodeChoice("topics", Event("topic grows", NOBODY, name), True)
        if len(some) > 1:
            yield CodeChoice("topics", Event("topic shrinks", NOBODY, str(setup.partition(some[-1]))), True)
        if some:
            yield CodeChoice("topics", Event("topic deleted", NOBODY, group.topics[number]), True)


def actions(setup: Setup) -> list[tuple[str, int, bool]]:
    """Return all names that choices of a group have, by member: what a mood is about."""
    everybody = [NOBODY, *setup.slots]
    return [(name, who, name in FAULTS) for name in (*STEPS, *FAULTS) for who in everybody]


def title(event: Event) -> str:
    """Return who and what, without the choice."""
    return event.action if event.who == NOBODY else f"{letter(event.who)} {event.action}"
