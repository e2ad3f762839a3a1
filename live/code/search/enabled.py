"""What can happen next in a group of Kafka's own code, read off the simulation alone.

A choice has the name that the model has for it. What is done (``act``) is the same whatever it is called: a
poll is a ``join`` or a ``complete`` by what the consumer is about to do, and a timer that fires although who
is late is at work is a fault.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rebalance_verifier.live.code.answers import ConsumerState, ServedGroup
from rebalance_verifier.live.code.replay.beats import HEARTBEAT
from rebalance_verifier.live.code.search import clients
from rebalance_verifier.live.code.search.choice import ARRIVES, OF_ID, CodeChoice
from rebalance_verifier.live.code.search.clients import client_choices
from rebalance_verifier.live.code.search.group import FOUND, SearchedGroup
from rebalance_verifier.model.bugs.releases import version
from rebalance_verifier.model.group.parts import NONE, each
from rebalance_verifier.model.group.setup import CLASSIC, Setup, letter
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

SERVED_STEPS = (
    "heartbeat arrives", "left heartbeat arrives", "answer", "lose", "reconcile", "revoke", "acknowledge",
    "bounce",
)  # fmt: skip
"""What else a group with members of the consumer protocol does; that they are bounced is no fault."""

SERVED_FAULTS = ("member removed", "group expires", "left behind")

BOUNCE = "bounce"
"""A step of its own kind: it is none of a group that is left in peace."""

OLD = "abandoned join"
LOADING = "loading"
_OTHERS = {"Heartbeat": "heartbeat", "OffsetCommit": "commit"}


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
            yield CodeChoice("stray", _stray(slot, stray.api))
        if not group.is_up(slot):
            if slot not in group.memory.given_up:
                yield CodeChoice("start", Event("start", slot))
            continue
        if BOUNCE in faults and _is_next(group, slot):
            yield CodeChoice(BOUNCE, Event(BOUNCE, slot))
        if group.is_played(slot):
            yield from client_choices(group, slot, faults)
            continue
        consumer = group.state.members[slot]
        assert consumer is not None
        yield from _messages(group, slot)
        yield from _application(group, slot, consumer)
        if faults:
            yield from _trouble(group, slot, consumer)


def _stray(slot: int, api: str) -> Event:
    if api == HEARTBEAT:
        return Event("left heartbeat arrives", slot)
    return Event(OLD, slot, "" if api == "JoinGroup" else api)


def _is_next(group: SearchedGroup, slot: int) -> bool:
    """Check whether a member may be bounced: a round begins when all have finished the one before."""
    done = [group.memory.stages.get(one, 0) for one in group.setup.slots]
    return done[slot] == min(done) and done[slot] + 1 < len(group.setup.consumers[slot].stages)


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
    served = None if known.consumer is None else (known.consumer, group.memory.partition_count)
    own = consumer.state, consumer.generation, consumer.member_id
    return known.state, known.generation, ids, *own, served


def beats_on(group: SearchedGroup, slot: int) -> bool:
    """Check whether a member sends heartbeats as long as it runs."""
    if group.is_played(slot):
        return slot in group.memory.clients and clients.beats_on(group.memory.clients[slot])
    consumer = group.state.members[slot]
    return consumer is not None and consumer.heartbeats and consumer.coordinator_known


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
    if coordinator.consumer is not None:
        yield from _served(group, coordinator.consumer)
        return
    if coordinator.state == "PREPARING_REBALANCE":
        missing = [one.id for one in coordinator.members if not one.joining]
        yield _phase("join", group, [*missing, *coordinator.pending_joins])
    elif coordinator.state == "COMPLETING_REBALANCE" and coordinator.pending_syncs:
        yield _phase("sync", group, coordinator.pending_syncs)
    for one in (*(member.id for member in coordinator.members), *coordinator.pending_joins):
        yield _session(group, one)
    if coordinator.state is not None:
        yield CodeChoice("failover", Event("failover"), True)
        if any(one.api == "SyncGroup" for slot in group.setup.slots for one in group.queue(slot)):
            yield CodeChoice("failover", Event("failover", NOBODY, LOADING), True)


def _session(group: SearchedGroup, member_id: str) -> CodeChoice:
    busy = group.at_work(member_id)
    return CodeChoice(
        "session", _of_id(group, "session timeout" if busy else "session expires", member_id), busy
    )


def _of_id(group: SearchedGroup, action: str, member_id: str) -> Event:
    return Event(action, group.slot(member_id), f"{OF_ID}{group.number(member_id)}")


def _served(group: SearchedGroup, known: ServedGroup) -> Iterator[CodeChoice]:
    """Yield what may happen to a consumer group: each timer of a member that is set, and faults."""
    for one in known.members:
        if group.timer("session", one.id):
            yield _session(group, one.id)
        if group.timer("rebalance", one.id):
            busy = group.at_work(one.id)
            name = "slow member" if busy else "rebalance timeout"
            yield CodeChoice("slow", _of_id(group, name, one.id), busy)
        yield CodeChoice("member removed", _of_id(group, "member removed", one.id), True)
    if not known.members:
        yield CodeChoice("group expires", Event("group expires"), True)
    yield CodeChoice("failover", Event("failover"), True)


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
        # A topic that is made again is another one to Kafka; here it has the id of the one before.
        if len(some) < len(every) and (some or setup.protocol == CLASSIC):
            name = str(setup.partition(every[len(some)]))
            yield CodeChoice("topics", Event("topic grows", NOBODY, name), True)
        if len(some) > 1:
            yield CodeChoice("topics", Event("topic shrinks", NOBODY, str(setup.partition(some[-1]))), True)
        if some:
            yield CodeChoice("topics", Event("topic deleted", NOBODY, group.topics[number]), True)


def faults_of(setup: Setup) -> tuple[str, ...]:
    """Return the kinds of faults of a group that a search can bring about, and that members are bounced."""
    known = FAULTS if setup.protocol == CLASSIC else (*FAULTS, *SERVED_FAULTS)
    bounced = any(len(consumer.stages) > 1 for consumer in setup.consumers)
    return (*(one for one in setup.faults if one in known), *((BOUNCE,) if bounced else ()))


def actions(setup: Setup) -> list[tuple[str, int, bool]]:
    """Return all names that choices of a group have, by member: what a mood is about."""
    everybody = [NOBODY, *setup.slots]
    served = setup.protocol != CLASSIC
    steps = (*STEPS, *(SERVED_STEPS if served else ()))
    faults = (*FAULTS, *(SERVED_FAULTS if served else ()))
    return [(name, who, name in faults) for name in (*steps, *faults) for who in everybody]


def title(event: Event) -> str:
    """Return who and what, without the choice."""
    return event.action if event.who == NOBODY else f"{letter(event.who)} {event.action}"
