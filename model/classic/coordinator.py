"""The coordinator: the classic group on the broker, as ``GroupMetadataManager`` and ``ClassicGroup`` do it.

From the end of the join phase over SyncGroup to the log that a failover reads; JoinGroup is in
``join_group``, timeouts are in ``expiry``.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial
from typing import Any, cast

from rebalance_verifier.model.classic.errors import membership_error
from rebalance_verifier.model.classic.expiry import (
    member_removed,
    rebalance_timeout,
    session_expires,
    session_lost,
    too_slow,
)
from rebalance_verifier.model.classic.join_group import (
    GONE,
    abandoned_join,
    append_fails,
    join_request,
    left_join_arrives,
    prepare,
    select_protocol,
)
from rebalance_verifier.model.classic.state import (
    Behind,
    Group,
    Join,
    JoinOk,
    JoinParked,
    MemberRecord,
    Records,
    Refused,
    Sync,
    SyncOk,
    SyncParked,
    Wire,
    admitted,
    find,
    put,
)
from rebalance_verifier.model.group.observations import Elected, Expelled, Noted, Replaced
from rebalance_verifier.model.group.parts import (
    NO_COPIES,
    NO_ID,
    NONE,
    NOTHING,
    Error,
    Generation,
    Grant,
    GroupState,
    Id,
    Parts,
    Slot,
)
from rebalance_verifier.model.group.setup import MemberContext, Setup, letter
from rebalance_verifier.model.machine import NOBODY, Action, Footprint, Outcome, Run, Value, When, fault, is_a

# -- the end of the join phase -------------------------------------------------------------------------


def join_phase_ends(setup: Setup, group: Group, *rest: Any) -> Iterator[Outcome]:
    """``completeClassicGroupJoin``: who did not come is dropped or carried, the generation rises.

    Ends when everybody came or was given up. Any member may come first in the broker's map, so any that
    joined may become the leader when the old one did not.
    """
    if group.state is not GroupState.PREPARING:
        return
    slots = setup.slots
    records, wires = rest[: len(slots)], rest[len(slots) : 2 * len(slots)]
    if not _all_here(setup, group, records):
        return
    seen: list[Hashable] = []
    kept = [_carried(setup, group, Slot(slot), records[slot], seen) for slot in slots]
    members = [(Id(Slot(slot), r.id), r) for slot in slots for r in kept[slot] if r.meta is not None]
    generation = Generation(group.generation + 1)
    if not members:
        empty = Group(GroupState.EMPTY, generation, limited=group.limited)
        log = (empty, *((),) * len(slots)) if setup.keeps_log else ()
        yield Outcome((empty, *kept, *wires, *log), seen=tuple(seen))
        return
    awaiting = [member_id for member_id, record in members if not record.silent]
    leaders = [group.leader] if group.leader in awaiting else awaiting
    metas = [record.meta for _, record in members if record.meta is not None]
    log = rest[2 * len(slots) :]
    for protocol in select_protocol(metas):
        for leader in leaders:
            answers = [
                JoinOk(wire.id, generation, protocol, leader == Id(Slot(slot), wire.id))
                if isinstance(wire, JoinParked) and find(kept[slot], wire.id)
                else wire
                for slot, wire in enumerate(wires)
            ]
            after = Group(GroupState.COMPLETING, generation, leader, protocol, limited=group.limited)
            elected = Elected(protocol, tuple(meta.assignors for meta in metas))
            choice = f"{protocol}, leader {_name(leader, awaiting)}"
            yield Outcome((after, *kept, *answers, *log), choice, (*seen, elected))


def _name(leader: Id | None, awaiting: Sequence[Id]) -> str:
    """Return a leader by its slot, and by its id too where a slot has left an older one behind."""
    assert leader is not None
    alone = sum(member.slot == leader.slot for member in awaiting) == 1
    return letter(leader.slot) + ("" if alone else f" id {leader.incarnation}")


def _all_here(setup: Setup, group: Group, records: Sequence[Records]) -> bool:
    """Check whether the join phase can end: everybody came, or its timeout passed for those who did not.

    With static members who stay and nobody who came, the timer is armed again.
    """
    members = [
        (setup.consumers[slot].instance is not None, r) for slot, some in enumerate(records) for r in some
    ]
    inside = [(static, record) for static, record in members if record.meta is not None]
    evicts = "evict_static_on_rebalance_timeout" in setup.coordinator
    stays = any(static for static, _ in inside) and not evicts
    if stays and not any(record.joined for _, record in inside):
        return False
    if "rebalance_timeout_zero" in setup.coordinator and not group.first:
        return not inside or any(record.joined for _, record in inside)
    pending = len(members) > len(inside)
    timeout = group.first or any(record.given_up for _, record in inside)
    return (timeout or not pending) and all(record.joined or record.given_up for _, record in inside)


def _carried(setup: Setup, group: Group, slot: Slot, records: Records, seen: list[Hashable]) -> Records:
    """Return the records of one slot after the join phase."""
    kept: list[MemberRecord] = []
    static = setup.consumers[slot].instance is not None
    for record in records:
        if record.meta is None:
            kept.append(record)
        elif record.joined:
            # What was assigned before is cleared with the assignments of the generation that ends here.
            fresh = record._replace(joined=False, synced=False, given_up=False, silent=False)
            stays_new = record.new and "new_member_never_expires" in setup.coordinator
            kept.append(fresh._replace(assigned=NOTHING, new=stays_new))
        elif static and "evict_static_on_rebalance_timeout" not in setup.coordinator:
            kept.append(_silent(setup, group, record))
            seen.append(Noted("silent static member"))
        else:
            seen.append(Expelled(slot, "rebalance", False, static))
    return tuple(kept)


def _silent(setup: Setup, group: Group, record: MemberRecord) -> MemberRecord:
    """Return a static member that did not come is represented by the subscription that it sent last, which is
    one assignment too old; as specified, also by what it was assigned since."""
    assert record.meta is not None
    meta = record.meta
    if "silent_static_claims_stale" not in setup.coordinator and record.assigned:
        last = group.generation
        meta = meta._replace(
            owned=Parts(meta.owned | record.assigned),
            label=last if meta.label != NONE else NONE,
            own_gen=last,
        )
    return record._replace(meta=meta, silent=True, synced=False, given_up=False)


# -- SyncGroup -----------------------------------------------------------------------------------------


def sync_request(me: MemberContext, wire: Wire, group: Group, records: Records) -> Iterator[Outcome]:
    """A SyncGroup arrives that decides nothing: a follower's, or one that comes too late."""
    if not isinstance(wire, Sync):
        return
    record = find(admitted(records), wire.id)
    error = None
    if group.state in GONE:
        error = Error.UNKNOWN_MEMBER_ID
    elif record is None:
        error = membership_error(me, records, wire.id)
    elif wire.generation != group.generation:
        error = Error.ILLEGAL_GENERATION
    elif group.state is GroupState.PREPARING:
        error = Error.REBALANCE_IN_PROGRESS
    if error is not None or record is None:
        assert error is not None
        yield Outcome((Refused("sync", error, wire.id, wire.generation), records))
    elif group.state is GroupState.STABLE:
        yield Outcome(
            (
                SyncOk(wire.id, wire.generation, record.assigned, record.copies),
                put(records, record._replace(synced=True)),
            )
        )
    elif group.leader != me.id(wire.id) or wire.grants is None:
        yield Outcome((SyncParked(wire.id, wire.generation), put(records, record._replace(synced=True))))


def leader_sync(setup: Setup, slot: int, wire: Wire, group: Group, *rest: Any) -> Iterator[Outcome]:
    """The leader's SyncGroup arrives in time: stored, appended to the log, everybody parked is answered."""
    if isinstance(wire, Sync) and in_time(MemberContext(Slot(slot), setup), wire, group):
        size = len(setup.slots)
        records, wires = rest[:size], list(rest[size : 2 * size])
        wires[slot] = SyncParked(wire.id, wire.generation)
        yield Outcome(settled(setup, slot, wire, group, records, wires))


def settled(
    setup: Setup, slot: int, sync: Sync, group: Group, records: Sequence[Records], wires: Sequence[Wire]
) -> tuple[Value, ...]:
    """Group, records, wires and, where there is one, log once the leader's ``sync`` has decided."""
    slots, wires = setup.slots, list(wires)
    granted = {grant.id: grant for grant in sync.grants or ()}
    after = [
        tuple(
            record if record.meta is None else _granted(record, granted.get(Id(Slot(s), record.id)))
            for record in records[s]
        )
        for s in slots
    ]
    mine = find(after[slot], sync.id)
    assert mine is not None
    after[slot] = put(after[slot], mine._replace(synced=True))
    for s in slots:
        parked = wires[s]
        if isinstance(parked, SyncParked) and parked.generation == group.generation:
            record = find(after[s], parked.id)
            if record is not None:
                wires[s] = SyncOk(parked.id, parked.generation, record.assigned, record.copies)
    stable = group._replace(state=GroupState.STABLE)
    log = (stable, *(logged(setup, stable, some) for some in after)) if setup.keeps_log else ()
    return stable, *after, *wires, *log


def _granted(record: MemberRecord, grant: Grant | None) -> MemberRecord:
    """Return ``record`` with its part of an assignment, or without one."""
    if grant is None:
        return record._replace(assigned=None, copies=NO_COPIES)
    return record._replace(assigned=grant.parts, copies=grant.copies)


def sync_not_stored(
    setup: Setup, slot: int, budget: int, wire: Wire, group: Group, *rest: Any
) -> Iterator[Outcome]:
    """The leader's SyncGroup arrives in time and the append to the log fails, or takes too long and is in the
    log all the same: whoever waits is sent to look for the coordinator, and the group rebalances."""
    if isinstance(wire, Sync) and in_time(MemberContext(Slot(slot), setup), wire, group):
        size = len(setup.slots)
        records, wires, logs = rest[:size], list(rest[size : 2 * size]), rest[2 * size :]
        stored = settled(setup, slot, wire, group, records, wires)[1 + 2 * size :]
        for s, parked in enumerate(wires):
            waits = isinstance(parked, SyncParked) and parked.generation == group.generation
            wires[s] = _cut(setup, parked, False) if s == slot or waits else parked
        yield Outcome((budget - 1, prepare(group), *records, *wires, *logs))
        if stored != logs:
            yield Outcome((budget - 1, prepare(group), *records, *wires, *stored), "logged")


def in_time(me: MemberContext, wire: Wire, group: Group) -> bool:
    """Check whether a SyncGroup is the one that the group waits for."""
    if not isinstance(wire, Sync) or wire.grants is None or group.state is not GroupState.COMPLETING:
        return False
    return wire.generation == group.generation and group.leader == me.id(wire.id)


def logged(setup: Setup, group: Group, records: Records) -> Records:
    """Return the members of one slot as GroupMetadataValue keeps them: of their protocols only the selected
    one, in every release; as specified, all."""
    kept = []
    for record in admitted(records):
        assert record.meta is not None
        meta = record.meta
        if "persist_selected_protocol_only" in setup.coordinator and group.protocol:
            meta = meta._replace(assignors=(group.protocol,))
        kept.append(MemberRecord(record.id, meta, record.assigned, synced=True, copies=record.copies))
    return tuple(kept)


def refuse_sync(me: MemberContext, wire: Wire, group: Group) -> Iterator[Outcome]:
    """A parked SyncGroup whose generation will not be settled any more is answered."""
    if isinstance(wire, SyncParked):
        over = group.state is not GroupState.COMPLETING or group.generation != wire.generation
        if over:
            yield Outcome((Refused("sync", Error.REBALANCE_IN_PROGRESS, wire.id, wire.generation),))


def refuse_join(me: MemberContext, wire: Wire, records: Records) -> Iterator[Outcome]:
    """A parked JoinGroup whose member was removed is answered."""
    if isinstance(wire, JoinParked) and find(records, wire.id) is None:
        error = membership_error(me, records, wire.id)
        assert error is not None
        yield Outcome((Refused("join", error, wire.id),))


# -- failover ------------------------------------------------------------------------------------------


def failover(setup: Setup, budget: int, group: Group, log: Group, *rest: Any) -> Iterator[Outcome]:
    """The group moves to another broker, which knows what is in the log and nothing else.

    Lost: the phase of a rebalance, parked requests, pending members, generations and removals since the
    last append, other protocols' metadata. Responses that were sent may still arrive. As specified the
    removal of a static member's id is not lost, or the process that has a new one would be fenced; and what a
    leader decided in a generation that is lost decides nothing once its number is given again.

    A group with more members than the new broker allows rebalances.
    """
    slots, size = setup.slots, len(setup.slots)
    wires, logs, behinds = rest[:size], list(rest[size : 2 * size]), rest[3 * size :]
    loaded = log._replace(limited=setup.lowers)
    if setup.coordinator.isdisjoint({"static_removal_not_persisted", "static_replace_not_persisted"}):
        for slot, records in zip(slots, rest[2 * size : 3 * size], strict=True):
            known = [record.id for record in records]
            there = tuple(record for record in logs[slot] if record.id in known)
            if setup.consumers[slot].instance is not None and there != logs[slot]:
                logs[slot], loaded = there, loaded._replace(state=GroupState.PREPARING)
    if setup.lowers and over_capacity(setup, logs):
        loaded = loaded._replace(state=GroupState.PREPARING)
    if "lost_generation_believed" not in setup.coordinator:
        behinds = tuple(map(_undecided, behinds))
    loads = any(isinstance(wire, Sync) for wire in wires)
    between = group.state is GroupState.COMPLETING
    seen = (Noted("failover between join and sync"),) if between else (Noted("failover"),)
    for loading in (False, True) if loads else (False,):
        answers = tuple(_cut(setup, wire, loading) for wire in wires)
        yield Outcome((budget - 1, loaded, *logs, *answers, *behinds), "loading" if loading else "", seen)


def over_capacity(setup: Setup, logs: Sequence[Records]) -> bool:
    """Check whether the members in the log are more than group.max.size."""
    return sum(map(len, logs)) > (setup.max_size or 0)


def _undecided(behind: Behind) -> Behind:
    """Return what was left under way, without what it decides."""
    return tuple(
        tuple(Sync(one.id, one.generation) if isinstance(one, Sync) else one for one in connection)
        for connection in behind
    )


def _cut(setup: Setup, wire: Wire, loading: bool) -> Wire:
    """Return what becomes of a request when the coordinator moves."""
    if isinstance(wire, Sync) and loading:
        raw = "sync_load_error_raw" in setup.coordinator
        error = Error.COORDINATOR_LOAD_IN_PROGRESS if raw else Error.REBALANCE_IN_PROGRESS
        return Refused("sync", error, wire.id, wire.generation)
    if isinstance(wire, Join | JoinParked):
        return Refused("join", Error.NOT_COORDINATOR, wire.id)
    if isinstance(wire, Sync | SyncParked):
        return Refused("sync", Error.NOT_COORDINATOR, wire.id, wire.generation)
    return wire


def expire_group(setup: Setup, budget: int, group: Group, *_: Any) -> Iterator[Outcome]:
    """An empty group without offsets is deleted, from the log too, and with it the ids that were handed out
    and not used yet; the next one of that name starts at generation 0."""
    if group.state is GroupState.EMPTY:
        nobody = ((),) * len(setup.slots)
        empty = Group(limited=group.limited)
        log = (empty, *nobody) if setup.keeps_log else ()
        yield Outcome((budget - 1, empty, *nobody, *log))


def persist_replacement(join: Run, me: MemberContext, at: int) -> Run:
    """``join`` with static replacement written to the log (KAFKA-10284): the log's record gets the new id.

    ``at`` is where among what is read the log is, of the slot and of the group.
    """

    def run(*values: Any) -> Iterator[Outcome]:
        log, group_log = values[at : at + 2]
        for outcome in join(*values[: at + 1], *values[at + 2 :]):
            new: Value = log
            header: Value = group_log
            group, records = cast(tuple[Group, Records], outcome.values[1:3])
            quiet = [s for s in outcome.seen if isinstance(s, Replaced) and not s.rebalances]
            if quiet and "static_replace_not_persisted" not in me.setup.coordinator:
                new, header = logged(me.setup, group, records), group
            yield Outcome((*outcome.values, new, header), outcome.choice, outcome.seen)

    return run


def return_not_stored(me: MemberContext, join: Action) -> Action:
    """``join`` where a static member returns to a stable group and the append to the log fails, or takes too
    long and is in the log all the same: the replacement is undone, and the member has to try again."""
    wire = me.name("wire")
    in_log = {"log", me.name("log")}

    def run(budget: int, *values: Value) -> Iterator[Outcome]:
        before = dict(zip(join.reads, values, strict=True))
        undone = {**before, wire: Refused("join", Error.NOT_COORDINATOR, NO_ID)}
        for outcome in join.run(*values) if isinstance(before[wire], Join) else ():
            if any(isinstance(one, Replaced) and not one.rebalances for one in outcome.seen):
                after = dict(zip(join.writes, outcome.values, strict=True))
                logged = {name: after[name] if name in in_log else undone[name] for name in after}
                for choice, values_ in {"": undone, "logged": logged}.items():
                    if not choice or setup.keeps_log:
                        yield Outcome((budget - 1, *(values_[name] for name in join.writes)), choice)

    setup = me.setup
    return fault("return not stored", me.slot, ("budget", *join.reads), ("budget", *join.writes), run)


def actions(setup: Setup) -> tuple[Action, ...]:
    """Return all actions of the coordinator."""
    mes = [MemberContext(Slot(slot), setup) for slot in setup.slots]
    all_of = {part: tuple(me.name(part) for me in mes) for part in ("record", "wire", "log")}
    logs = ("log", *all_of["log"]) if setup.keeps_log else ()
    wide = ("group", *all_of["record"], *all_of["wire"], *logs)
    listed = [
        Action(
            name="join phase ends",
            who=NOBODY,
            reads=wide,
            writes=wide,
            run=partial(join_phase_ends, setup),
            guard=_preparing,
            when=(When(("group", *all_of["record"]), lambda g, *r: _all_here(setup, g, r)),),
        ),
    ]
    for me in mes:
        m, w, r = (me.name(part) for part in ("member", "wire", "record"))
        if "append fails" in setup.faults:
            touched = ("budget", w, r)
            listed.append(fault("append fails", me.slot, touched, touched, partial(append_fails, me)))
        others = tuple(name for name in all_of["record"] if name != r) if setup.compares else ()
        joins = list(_joins(me, others))
        listed += joins
        if "return not stored" in setup.faults and me.static:
            listed.append(return_not_stored(me, joins[0]))
        if "sync not stored" in setup.faults:
            reads: Footprint = ("budget", w, *wide)
            act = partial(sync_not_stored, setup, me.slot)
            listed.append(fault("sync not stored", me.slot, reads, ("budget", *wide), act))
        if "member removed" in setup.faults:
            reads = ("budget", "group", r)
            listed.append(fault("member removed", me.slot, reads, reads, partial(member_removed, me)))
        listed += [
            Action(name="sync request", who=me.slot, reads=(w, "group", r), writes=(w, r),
                   run=partial(sync_request, me), guard=is_a(Sync)),
            Action(name="leader sync", who=me.slot, reads=(w, *wide), writes=wide,
                   run=partial(leader_sync, setup, me.slot), guard=_decides,
                   when=(When((w, "group"), partial(in_time, me)),)),
            Action(name="sync refused", who=me.slot, reads=(w, "group"), writes=(w,),
                   run=partial(refuse_sync, me), guard=is_a(SyncParked)),
            Action(name="join refused", who=me.slot, reads=(w, r), writes=(w,),
                   run=partial(refuse_join, me), guard=is_a(JoinParked)),
            Action(name="session expires", who=me.slot, reads=(r, m, w, "group"), writes=("group", r),
                   run=partial(session_expires, me), guard=bool),
            Action(name="rebalance timeout", who=me.slot, reads=(r, m, w, "group"), writes=("group", r),
                   run=partial(rebalance_timeout, me), guard=bool),
        ]  # fmt: skip
        early = {"session timeout": session_lost, "slow member": too_slow}
        listed += [
            fault(name, me.slot, ("budget", m, w, "group", r), ("budget", "group", r), partial(act, me))
            for name, act in early.items()
            if name in setup.faults
        ]
    if setup.keeps_log:
        left = tuple(me.name("behind") for me in mes) if setup.breaks_connections else ()
        reads = ("budget", "group", "log", *all_of["wire"], *all_of["log"], *all_of["record"], *left)
        writes = ("budget", "group", *all_of["record"], *all_of["wire"], *left)
        listed.append(fault("failover", NOBODY, reads, writes, partial(failover, setup)))
    if "group expires" in setup.faults:
        whole = ("budget", "group", *all_of["record"], *logs)
        listed.append(fault("group expires", NOBODY, whole, whole, partial(expire_group, setup)))
    return tuple(listed)


def _joins(me: MemberContext, others: Footprint) -> Iterator[Action]:
    """Yield what handles JoinGroup: the present one, one that was given up, one of a broken connection."""
    m, w, s, r, b = (me.name(part) for part in ("member", "wire", "stray", "record", "behind"))
    setup = me.setup
    log = (me.name("log"),) if setup.keeps_log else ()
    behind = (b,) if setup.breaks_connections else ()
    kinds: list[tuple[str, str, Run, Callable[[Value], bool]]] = [
        ("join request", w, join_request, is_a(Join)),
        ("abandoned join", s, abandoned_join, is_a(Join)),
    ]
    if behind:
        kinds.append(("left join arrives", b, left_join_arrives, bool))
    for name, channel, act, guard in kinds:
        beside = {w: (s, *behind), s: (s, m, w, *behind), b: (s, m, w)}[channel]
        reads: Footprint = (channel, "group", r, *beside, *log, *others)
        writes: Footprint = (channel, "group", r, *(behind if channel == w else ()))
        run: Run = partial(act, me)
        if setup.keeps_log and me.static:
            reads = (channel, "group", r, *beside, *log, "log", *others)
            writes = (*writes, *log, "log")
            run = persist_replacement(run, me, 3 + len(beside))
        yield Action(name=name, who=me.slot, reads=reads, writes=writes, run=run, guard=guard)


def _preparing(group: object) -> bool:
    return isinstance(group, Group) and group.state is GroupState.PREPARING


def _decides(wire: object) -> bool:
    return isinstance(wire, Sync) and wire.grants is not None
