"""A consumer group of KIP-848 as one machine: components, initial state, actions, views, symmetries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import permutations
from math import factorial, prod
from typing import NamedTuple

from rebalance_verifier.model.classic.group import MAX_NAMINGS, NamingsError, permutation
from rebalance_verifier.model.consumer import connections, coordinator, environment
from rebalance_verifier.model.consumer import member as client
from rebalance_verifier.model.consumer.assignors import SERVER_ASSIGNORS
from rebalance_verifier.model.consumer.atomic import atomic
from rebalance_verifier.model.consumer.describe import description
from rebalance_verifier.model.consumer.member import ACTIVE
from rebalance_verifier.model.consumer.state import (
    INSIDE,
    AnyMember,
    Beat,
    BeatKind,
    BeatOk,
    BeatWire,
    ClientState,
    ConsumerGroup,
    ConsumerMember,
    ConsumerRecord,
    ConsumerRecords,
    GroupKind,
    LateCommit,
    RecordState,
    epochs,
    find,
    participates,
    relabel,
)
from rebalance_verifier.model.group.parts import ClusterState, GroupState, Late, Life, Parts, Slot, each
from rebalance_verifier.model.group.setup import POLICIES, MemberContext, Setup, letter
from rebalance_verifier.model.machine import (
    NOBODY,
    Action,
    Fairness,
    Footprint,
    Labels,
    Machine,
    Permutation,
    Run,
    State,
    Value,
    View,
    fault,
)

FAULTS = (
    *("crash", "pause", "hang", "close", "unsubscribe", "max poll", "resubscribe", "disconnect"),
    *("slow network", "slow callback", "late request", "session timeout", "slow member", "leave lost"),
    *("member removed", "failover", "group expires", "topic grows", "topic deleted", "left behind"),
    "topic made anew",
)
"""Every kind of fault of a consumer group; each draws one on the common budget. Those that the classic
protocol has too are called the same."""


def check(setup: Setup, kinds: Sequence[str] = FAULTS, group: str = "a consumer group") -> None:
    """Raises ValueError for a fault that is none of ``kinds``, an assignor that no broker has, a policy that
    there is not, and a group with too many namings."""
    unknown = [kind for kind in setup.faults if kind not in kinds]
    if unknown:
        raise ValueError(f"{group} has no fault {unknown[0]!r}; there are {', '.join(kinds)}")
    if setup.server_assignor not in SERVER_ASSIGNORS:
        raise ValueError(
            f"no assignor {setup.server_assignor!r} on the broker; there are {', '.join(SERVER_ASSIGNORS)}"
        )
    if setup.lowers:
        raise ValueError(f"{group} has no lower limit of members after a failover in the model")
    if setup.policy not in POLICIES:
        raise ValueError(f"no migration policy {setup.policy!r}; there are {', '.join(POLICIES)}")
    namings = factorial(len(setup.consumers)) * prod(factorial(len(each(t))) for t in setup.topics)
    if setup.naming == "every" and namings > MAX_NAMINGS:
        raise NamingsError(len(setup.consumers), namings)


def consumer_machine(setup: Setup) -> Machine:
    """Return the group of ``setup``: nobody started, no group on the broker. Raises ValueError as ``check``
    does."""
    check(setup)
    names = components(setup)
    mes = [MemberContext(Slot(slot), setup) for slot in setup.slots]
    actions: tuple[Action, ...] = (
        *(action for me in mes for action in member_actions(me)),
        *_of_environment(setup),
    )
    if setup.steps == "atomic":
        actions = tuple(atomic(actions, setup.faults))
    return Machine(
        components=names,
        initial=(tuple(initial_value(setup, name) for name in names),),
        actions=actions,
        views=tuple(views(setup, mes)),
        labels=Labels(epochs, relabel),
        symmetries=tuple(symmetries(setup, names)),
        describe=description(setup, names),
    )


def components(setup: Setup) -> tuple[str, ...]:
    """Return the values that a state has, in order."""
    parts = ("member", "wire", "stray", "record", *(("behind",) if setup.breaks_connections else ()))
    return ("budget", "cluster", "group", *(f"{part} {letter(s)}" for s in setup.slots for part in parts))


class SlotNames(NamedTuple):
    """The components of one slot, and the records of all."""

    member: str
    wire: str
    stray: str
    record: str
    book: Footprint


def slot_names(me: MemberContext) -> SlotNames:
    """Return the components of the slot ``me``."""
    book = tuple(f"record {letter(slot)}" for slot in me.setup.slots)
    member, wire, stray, record = (me.name(part) for part in ("member", "wire", "stray", "record"))
    return SlotNames(member, wire, stray, record, book)


def initial_value(setup: Setup, name: str) -> Value:
    """That of the component ``name`` of a group in which everybody speaks the consumer protocol."""
    values: dict[str, Value] = {
        "budget": setup.budget,
        "cluster": ClusterState(setup.exist),
        "group": ConsumerGroup(),
        "member": ConsumerMember(),
        "wire": None,
        "stray": None,
        "record": (),
        "behind": (),
    }
    return values[name.split()[0]]


# -- actions -------------------------------------------------------------------------------------------


def _up(member: ConsumerMember) -> bool:
    return member.life is Life.UP


def _active(member: ConsumerMember) -> bool:
    return member.life in (Life.UP, Life.HUNG) and (
        member.state in ACTIVE or member.state is ClientState.FENCED
    )


def _request(wire: BeatWire) -> bool:
    return isinstance(wire, Beat)


def _answer(wire: BeatWire) -> bool:
    return wire is not None and not isinstance(wire, Beat)


def _hung(member: ConsumerMember) -> bool:
    return member.life is Life.HUNG


def member_actions(me: MemberContext) -> Iterator[Action]:
    """Yield what a slot does, and what is done to it, one message at a time."""
    m, w, s, r, book = slot_names(me)
    broken = me.setup.breaks_connections
    left = (me.name("behind"),) if broken else ()
    # What it reads, what it writes, what it does, its guard.
    own: tuple[tuple[str, Footprint, Footprint, Run, Callable[..., bool] | None], ...] = (
        ("heartbeat", (m, w), (m, w), client.send, _active),
        (
            "heartbeat arrives", (w, "group", "cluster", *left, *book), (w, "group", *left, *book),
            connections.arrives if broken else coordinator.arrives, _request,
        ),
        ("answer", (w, m), (m, w), client.receive, _answer),
        ("lose", (m,), (m,), client.lose, _up),
        ("reconcile", (m,), (m,), client.begin, _up),
        ("revoke", (m,), (m,), client.revoke, _up),
        ("assign", (m,), (m,), client.assign, _up),
        ("acknowledge", (m,), (m,), client.acknowledge, _up),
        ("resume", (m,), (m,), client.resume, None),
        ("late request arrives", (s, r), (s,), coordinator.late_arrives, bool),
        ("session expires", (r, m, "group"), ("group", r), environment.session_expires, bool),
        (
            "poll interval", (m, w, s, "group", "cluster", *book), (m, w, s, "group", *book),
            client.poll_interval, _hung,
        ),
        (
            "start", (m, w, s, r, *left), (m, w, s, *left),
            connections.start_after if broken else client.start, None,
        ),
        ("subscribe", (m,), (m,), client.subscribe, _up),
    )  # fmt: skip
    if times_by_mistake(me.setup):
        own = (*own, ("stale timeout", (r, m, "group"), ("group", r), environment.stale_timeout, bool))
    if broken:
        behind = (*left, "group", *book)
        reads = (*left, "group", "cluster", *book)
        own = (*own, ("left heartbeat arrives", reads, behind, connections.left_arrives, bool))
    gone = ("budget", m, w, s, "group", *book)
    leaving = ("budget", m, w, s, "group", "cluster", *book)
    costly: tuple[tuple[str, Footprint, Footprint, Run], ...] = (
        ("crash", ("budget", m, w, s), ("budget", m, w, s), client.crash),
        ("pause", ("budget", m), ("budget", m), client.pause),
        ("hang", ("budget", m), ("budget", m), client.hang),
        ("close", leaving, gone, client.close),
        ("unsubscribe", leaving, gone, client.unsubscribe),
        ("max poll", leaving, gone, client.max_poll),
        ("resubscribe", ("budget", m), ("budget", m), client.resubscribe),
        ("disconnect", ("budget", m, w), ("budget", w), client.disconnect),
        ("late request", ("budget", m, s), ("budget", s), client.send_late),
        ("leave lost", ("budget", m, w, s), ("budget", m, w, s), client.leave_lost),
        ("session timeout", ("budget", m, "group", r), ("budget", "group", r), environment.session_lost),
        ("slow member", ("budget", m, "group", r), ("budget", "group", r), environment.too_slow),
        ("member removed", ("budget", "group", r), ("budget", "group", r), environment.member_removed),
        ("left behind", ("budget", m, w, *left), ("budget", w, *left), connections.leave_behind),
    )
    for name, reads, writes, run, guard in own:
        action = Action(name=name, who=me.slot, reads=reads, writes=writes, run=partial(run, me), guard=guard)
        free = name in ("start", "subscribe")
        yield action._replace(fault=True, fairness=Fairness.NONE) if free else action
    for name, reads, writes, run in costly:
        if name in me.setup.faults:
            yield fault(name, me.slot, reads, writes, partial(run, me))


def times_by_mistake(setup: Setup) -> bool:
    """Check whether a failover may set a rebalance timeout where none is due."""
    mistakes = ("failover_times_away", "failover_times_classic")
    return setup.keeps_log and not setup.coordinator.isdisjoint(mistakes)


def _of_environment(setup: Setup) -> Iterator[Action]:
    members, wires, book = (
        tuple(f"{part} {letter(slot)}" for slot in setup.slots) for part in ("member", "wire", "record")
    )
    costly: tuple[tuple[str, Footprint, Footprint, Run], ...] = (
        (
            "failover",
            ("budget", *members, *wires, *book),
            ("budget", *members, *wires, *book),
            environment.failover,
        ),
        ("group expires", ("budget", "group", *book), ("budget", "group"), environment.group_expires),
        ("topic grows", ("budget", "cluster"), ("budget", "cluster"), environment.topic_grows),
        ("topic deleted", ("budget", "cluster"), ("budget", "cluster"), environment.topic_deleted),
        ("topic made anew", ("budget", "cluster"), ("budget", "cluster"), environment.topic_made_anew),
    )
    for name, reads, writes, run in costly:
        if name in setup.faults:
            yield fault(name, -1, reads, writes, partial(run, setup))
    yield from resolves(setup)


def resolves(setup: Setup) -> Iterator[Action]:
    """Yield the step by which the coordinator resolves patterns, where there are any."""
    book = tuple(f"record {letter(slot)}" for slot in setup.slots)
    if setup.has_patterns:
        yield Action(
            name="patterns resolved",
            who=NOBODY,
            reads=("group", "cluster", *book),
            writes=("group", *book),
            run=partial(coordinator.resolve, setup),
        )


# -- views ---------------------------------------------------------------------------------------------


def held(me: AnyMember, records: ConsumerRecords) -> Parts:
    """Return what a participant consumes."""
    return me.owned if participates(me, records) else Parts(0)


def commits(me: MemberContext, m: ConsumerMember, stray: LateCommit, records: ConsumerRecords) -> Parts:
    """Return the partitions for which an offset commit would be stored: sent now, or under way and arriving
    now."""
    total = 0
    if m.state in INSIDE:
        total |= coordinator.accepted(me, records, m.id, m.epoch, m.owned)
    if isinstance(stray, Late):
        total |= coordinator.accepted(me, records, stray.id, stray.generation, stray.parts)
    return Parts(total)


def _idle(m: ConsumerMember, wire: BeatWire) -> bool:
    """Check whether what is under way is nothing, or a heartbeat without news."""
    if isinstance(wire, Beat):
        return wire.kind is BeatKind.STEADY and wire.owned is None and wire.epoch == m.epoch
    return wire is None or (isinstance(wire, BeatOk) and wire.parts is None and wire.epoch == m.epoch)


def settled(m: ConsumerMember, wire: BeatWire, group: ConsumerGroup, records: ConsumerRecords) -> str:
    """Return what this slot has left to do, "" if nothing."""
    if m.life in (Life.DOWN, Life.FAILED) or (m.life is Life.UP and m.state is ClientState.UNSUBSCRIBED):
        return "still in the group" if records else ""
    if m.life is Life.PAUSED:
        return "paused"
    if m.life is Life.HUNG:
        return "still in the group" if records else ""
    record = find(records, m.id)
    if record is None or len(records) > 1:
        return "not in the group, or not alone under its name"
    if m.state is not ClientState.STABLE or m.unsent or m.epoch != record.epoch or not _idle(m, wire):
        return "has something to do"
    if record.state is not RecordState.STABLE or record.epoch != group.epoch:
        return "not at the epoch of the group"
    if not m.owned == record.assigned == record.target or not _is_known(m, record):
        return "owns or subscribes to something else than it was assigned"
    return ""


def _is_known(m: ConsumerMember, record: ConsumerRecord) -> bool:
    """Check whether the coordinator knows what a client subscribes to, and has resolved its pattern."""
    known = (record.topics, record.pattern) == (m.topics, m.pattern)
    return known and (not m.pattern or record.matched is not None)


def crowd(group: ConsumerGroup, *book: ConsumerRecords) -> int:
    """Return how many members the group has; of a classic one when its members have joined."""
    joins = group.kind is GroupKind.CLASSIC and group.phase is GroupState.PREPARING
    return 0 if joins else sum(map(len, book))


def foreign(setup: Setup, group: ConsumerGroup, *book: ConsumerRecords) -> Parts:
    """Return what the newest target gives to members that do not subscribe to it, once patterns are resolved
    and no other target is due."""
    due = group.kind is not GroupKind.CONSUMER or group.epoch != group.assigned
    waits = any(record.pattern and record.matched is None for records in book for record in records)
    return Parts(0) if due or waits else coordinator.others_topics(setup, book)


def group_views(setup: Setup) -> Iterator[View]:
    """Yield views of the group as a whole that are the same whatever its members speak."""
    yield View("cluster", ("cluster",), lambda cluster: cluster.parts)
    yield View("group", ("group",), lambda group: (group.kind, group.epoch == group.assigned))
    if setup.max_size is not None:
        yield View("crowd", ("group", *(f"record {letter(slot)}" for slot in setup.slots)), crowd)
    if setup.has_patterns:
        book = tuple(f"record {letter(slot)}" for slot in setup.slots)
        yield View("foreign", ("group", *book), partial(foreign, setup))


def record_epochs(group: ConsumerGroup, records: ConsumerRecords) -> tuple[tuple[int, int, int, int], ...]:
    """Of each record: its previous epoch, its own, that of the target, that of the group."""
    return tuple((r.previous, r.epoch, group.assigned, group.epoch) for r in records)


def _holds(records: ConsumerRecords) -> tuple[Parts, Parts]:
    """Return what the records of a slot hold: once at least, and more than once."""
    once = twice = 0
    for record in records:
        mine = (record.assigned & record.pending) | ((record.assigned | record.pending) & once)
        once, twice = once | record.held, twice | mine
    return Parts(once), Parts(twice)


def _share(setup: Setup, m: AnyMember) -> tuple[Parts, Parts]:
    """Of a client at work: what it owns, and what it subscribes to."""
    if m.life is not Life.UP:
        return Parts(0), Parts(0)
    pattern = m.pattern if isinstance(m, ConsumerMember) else 0
    return m.owned, setup.parts(m.topics | pattern)


def views(setup: Setup, mes: list[MemberContext]) -> Iterator[View]:
    """Yield all views of a consumer group of ``setup``."""
    yield from group_views(setup)
    for me in mes:
        a = letter(me.slot)
        m, w, s, r, _ = slot_names(me)
        yield View(f"commits {a}", (m, s, r), partial(commits, me))
        yield View(f"epochs {a}", ("group", r), record_epochs)
        yield View(f"settled {a}", (m, w, "group", r), settled)
        yield from slot_views(me)


def slot_views(me: MemberContext) -> Iterator[View]:
    """Views of a slot that are the same whichever protocol its client speaks."""
    a = letter(me.slot)
    m, _, _, r, _ = slot_names(me)
    yield View(f"held {a}", (m, r), held)
    yield View(f"listener {a}", (m,), lambda m: (m.believed, m.owned, m.life))
    yield View(f"records {a}", (r,), _holds)
    yield View(f"share {a}", (m,), partial(_share, me.setup))
    yield View(f"life {a}", (m,), lambda m: m.life)
    yield View(f"owned {a}", (m,), lambda m: m.owned)
    if me.static:
        yield View(f"ids {a}", (r,), len)


# -- symmetry ------------------------------------------------------------------------------------------


def symmetries(setup: Setup, names: tuple[str, ...]) -> Iterator[Permutation]:
    """Yield renamings of equal members and of the partitions of a topic; of members alone where a topic may
    be made anew, which has the partitions that come next."""
    if setup.naming != "every":
        return
    anew = "topic made anew" in setup.faults
    same = {number: number for topic in setup.topics for number in each(topic)}
    for slots in permutations(setup.slots):
        if any(setup.consumers[a] != setup.consumers[b] for a, b in enumerate(slots)):
            continue
        for numbers in [same] if anew else setup.renamings(kept=setup.exist):
            yield permutation(names, slots, numbers)


def initial(setup: Setup) -> State:
    """Return the one initial state."""
    return consumer_machine(setup).initial[0]
