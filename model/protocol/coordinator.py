"""The coordinator: the classic group on the broker, as ``GroupMetadataManager`` and ``ClassicGroup`` do it.

Timers have no clock. One that nobody can prevent (the owner is dead or paused) may fire at any time; one
that fires although the owner is at work is a fault and draws on the budget.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, cast

from rebalance.model.machine import NOBODY, Action, Fairness, Outcome, Value, When
from rebalance.model.protocol.member import Seen, membership_error, removed, works
from rebalance.model.protocol.setup import MemberContext, Setup, letter
from rebalance.model.protocol.state import (
    NO_ID,
    NONE,
    NOTHING,
    Admitted,
    Elected,
    Error,
    Expelled,
    Generation,
    Group,
    GroupState,
    Id,
    Join,
    JoinOk,
    JoinParked,
    Life,
    Member,
    MemberRecord,
    MemberState,
    Metadata,
    Noted,
    Parts,
    Records,
    Refused,
    Repeated,
    Replaced,
    Slot,
    Stray,
    Sync,
    SyncOk,
    SyncParked,
    Wire,
)

SETTLED = (GroupState.STABLE, GroupState.COMPLETING)
GONE = (GroupState.DEAD, GroupState.EMPTY)


def admitted(records: Sequence[MemberRecord]) -> list[MemberRecord]:
    """The records of members, without ids that are only pending."""
    return [record for record in records if record.meta is not None]


def candidates(metas: Sequence[Metadata]) -> list[str]:
    """The protocols that every member supports, in the first one's order."""
    if not metas:
        return []
    return [name for name in metas[0].assignors if all(name in meta.assignors for meta in metas[1:])]


def select_protocol(metas: Sequence[Metadata]) -> list[str]:
    """``ClassicGroup.selectProtocol``: each votes for its first candidate; all winners of a tie are returned,
    since the broker's choice among them is an accident of its map."""
    common = candidates(metas)
    votes = [next(name for name in meta.assignors if name in common) for meta in metas if common]
    most = max((votes.count(name) for name in common), default=0)
    return [name for name in common if votes.count(name) == most]


def prepare(group: Group) -> Group:
    """``prepareRebalance``: parked SyncGroups are answered when their members look (see ``refuse_sync``)."""
    return group._replace(state=GroupState.PREPARING, first=group.state in GONE)


def written(meta: Metadata) -> Metadata:
    """What of it is in the bytes, which is what the coordinator compares."""
    in_user_data = {"sticky", "cooperative-sticky"}.intersection(meta.assignors)
    tells = in_user_data and (meta.tells or "sticky" in meta.assignors)
    return meta if tells and meta.version >= 1 else meta._replace(own_gen=NONE)


def put(records: Records, record: MemberRecord) -> Records:
    """``records`` with the one of the same id replaced, or with a new one."""
    return tuple(sorted((*(r for r in records if r.id != record.id), record), key=lambda r: r.id))


def find(records: Sequence[MemberRecord], member_id: int) -> MemberRecord | None:
    return next((record for record in records if record.id == member_id), None)


# -- JoinGroup -----------------------------------------------------------------------------------------


def refusal(
    setup: Setup, group: Group, join: Join, everybody: Sequence[MemberRecord], mine: MemberRecord | None
) -> Error | None:
    """Why a JoinGroup is turned away before anything else: protocols that do not fit, or a full group."""
    members = admitted(everybody)
    if (
        members
        and group.state not in GONE
        and not candidates([join.meta, *(r.meta for r in members if r.meta)])
    ):
        return Error.INCONSISTENT_GROUP_PROTOCOL
    if setup.max_size is not None:
        known = mine is not None and mine.meta is not None
        if "max_size_counts_members" in setup.coordinator:
            accepted, count = mine is not None, len(members)
        elif group.state is GroupState.PREPARING:
            accepted, count = mine is not None and mine.joined, sum(r.joined for r in members)
        else:
            accepted, count = known, len(members)
        if not accepted and count >= setup.max_size:
            return Error.GROUP_MAX_SIZE_REACHED
    return None


def join_arrives(
    me: MemberContext,
    wire: Wire,
    group: Group,
    records: Records,
    others: tuple[Records, ...],
    ids: tuple[int, ...],
) -> tuple[Wire, Group, Records, Seen]:
    """One JoinGroup request is handled; ``ids`` are incarnations in use besides those of ``records``."""
    assert isinstance(wire, Join)
    everybody = [record for some in (records, *others) for record in some]
    mine = find(records, wire.id)
    error = refusal(me.setup, group, wire, everybody, mine)
    if error is None and wire.id != NO_ID and mine is None:
        error = membership_error(me, records, wire.id)
    if error is not None:
        return Refused("join", error, wire.id), group, records, ()
    if wire.id == NO_ID:
        fresh = 1 + max((0, *ids, *(r.id for r in records)))
        return _join_new(me, wire, group, records, fresh, everybody)
    assert mine is not None
    return _join_known(me, wire, group, records, mine, len(admitted(everybody)))


def _parked(
    group: Group, records: Records, record: MemberRecord, meta: Metadata
) -> tuple[Wire, Group, Records]:
    """Into the purgatory, and the group into a rebalance if it is not in one."""
    record = record._replace(meta=meta, joined=True, given_up=False, silent=False)
    if group.state is not GroupState.PREPARING:
        group = prepare(group)
    return JoinParked(record.id), group, put(records, record)


def _join_new(
    me: MemberContext,
    wire: Join,
    group: Group,
    records: Records,
    fresh: int,
    everybody: Sequence[MemberRecord],
) -> tuple[Wire, Group, Records, Seen]:
    decisions = me.setup.coordinator
    if me.static:
        old = next((r for r in reversed(records) if r.meta is not None), None)
        both = "static_replace_only_stable" in decisions and group.state is GroupState.PREPARING
        if old is not None and not both:
            kept = [record for record in records if record.id != old.id]
            others = admitted([*kept, *everybody[len(records) :]])
            return _replace_static(me, wire, group, records, old, fresh, others)
    elif "ghost_on_retry" not in decisions:
        given = Refused("join", Error.MEMBER_ID_REQUIRED, NO_ID, given=fresh)
        return given, group, put(records, MemberRecord(fresh, None)), ()
    seen = Admitted(me.slot, me.static, len(admitted(everybody)) + 1, me.setup.max_size)
    return *_parked(group, records, MemberRecord(fresh, None, new=True), wire.meta), (seen,)


def _replace_static(
    me: MemberContext,
    wire: Join,
    group: Group,
    records: Records,
    old: MemberRecord,
    fresh: int,
    others: Sequence[MemberRecord],
) -> tuple[Wire, Group, Records, Seen]:
    """``replaceStaticMember``: the entry moves to the new id and keeps assignment and leadership."""
    decisions = me.setup.coordinator
    metas = [wire.meta, *(record.meta for record in others if record.meta is not None)]
    reselected = group.protocol not in select_protocol(metas)
    moved = old._replace(id=fresh)
    kept = tuple(record for record in records if record.id != old.id)
    leads = group.leader == me.id(old.id)
    if leads:
        group = group._replace(leader=me.id(fresh))
    changed = old.meta is not None and old.meta.topics != wire.meta.topics
    quiet = group.state is GroupState.STABLE and not reselected
    quiet = quiet and (not changed or "static_rejoin_ignores_subscription" in decisions)
    # The new process has nothing to revoke, so nobody would ask for the round that hands it over.
    owed = old.meta is not None and bool(old.meta.owned & ~(old.assigned or 0))
    quiet = quiet and (not owed or "static_replace_drops_revocation" in decisions)
    if group.state is GroupState.COMPLETING and "static_replace_in_completing_no_rebalance" in decisions:
        quiet = True
    tells = leads and "static_leader_returns_as_follower" not in decisions
    seen = Replaced(
        who=me.slot,
        state=group.state,
        rebalances=not quiet,
        changed=changed or reselected,
        owed=owed,
        leader=leads,
        told_leader=tells,
    )
    if not quiet:
        return *_parked(group, kept, moved, wire.meta), (seen,)
    assert group.protocol is not None
    answer = JoinOk(
        fresh, group.generation, group.protocol, tells, skip=tells and group.state is GroupState.STABLE
    )
    return answer, group, put(kept, moved._replace(meta=wire.meta, silent=False)), (seen,)


def _join_known(
    me: MemberContext, wire: Join, group: Group, records: Records, mine: MemberRecord, size: int
) -> tuple[Wire, Group, Records, Seen]:
    if mine.meta is None:
        seen = Admitted(me.slot, True, size + 1, me.setup.max_size)
        return *_parked(group, records, mine._replace(new=True), wire.meta), (seen,)
    leads = group.leader == me.id(mine.id)
    same = written(mine.meta) == written(wire.meta)
    completing, stable = group.state is GroupState.COMPLETING, group.state is GroupState.STABLE
    if same and (completing or (stable and not leads)):
        assert group.protocol is not None
        answer = JoinOk(mine.id, group.generation, group.protocol, leads)
        return answer, group, records, (Repeated(me.slot, False),)
    alike = written(mine.meta._replace(noise=0)) == written(wire.meta._replace(noise=0))
    seen_again = (Repeated(me.slot, True),) if stable and not leads and alike else ()
    return *_parked(group, records, mine, wire.meta), seen_again


def join_request(
    me: MemberContext, wire: Wire, group: Group, records: Records, *rest: Any
) -> Iterator[Outcome]:
    """A JoinGroup arrives."""
    if isinstance(wire, Join):
        others, ids = _split(me, rest)
        wire, group, records, seen = join_arrives(me, wire, group, records, others, ids)
        yield Outcome((wire, group, records), seen=seen)


def abandoned_join(
    me: MemberContext, stray: Stray, group: Group, records: Records, *rest: Any
) -> Iterator[Outcome]:
    """A JoinGroup arrives that its sender gave up on: it has its effect, the answer goes nowhere."""
    if isinstance(stray, Join):
        others, ids = _split(me, rest)
        _, group, records, seen = join_arrives(me, stray, group, records, others, ids)
        yield Outcome((None, group, records), seen=(*seen, Noted("abandoned JoinGroup arrives")))


def _split(me: MemberContext, rest: Sequence[Records]) -> tuple[tuple[Records, ...], tuple[int, ...]]:
    """What a JoinGroup's handling reads beside its own slot: records of the others, ids in the log."""
    if not me.setup.keeps_log:
        return tuple(rest), ()
    return tuple(rest[1:]), tuple(record.id for record in rest[0])


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
    seen: list[object] = []
    kept = [_carried(setup, group, Slot(slot), records[slot], seen) for slot in slots]
    members = [(Id(Slot(slot), r.id), r) for slot in slots for r in kept[slot] if r.meta is not None]
    generation = Generation(group.generation + 1)
    if not members:
        empty = Group(GroupState.EMPTY, generation)
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
            after = Group(GroupState.COMPLETING, generation, leader, protocol)
            elected = Elected(protocol, tuple(meta.assignors for meta in metas))
            choice = f"{protocol}, leader {_name(leader, awaiting)}"
            yield Outcome((after, *kept, *answers, *log), choice, (*seen, elected))


def _name(leader: Id | None, awaiting: Sequence[Id]) -> str:
    """A leader by its slot, and by its id too where a slot has left an older one behind."""
    assert leader is not None
    alone = sum(member.slot == leader.slot for member in awaiting) == 1
    return letter(leader.slot) + ("" if alone else f" id {leader.incarnation}")


def _all_here(setup: Setup, group: Group, records: Sequence[Records]) -> bool:
    """Whether the join phase can end: everybody came, or its timeout passed for those who did not.

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


def _carried(setup: Setup, group: Group, slot: Slot, records: Records, seen: list[object]) -> Records:
    """The records of one slot after the join phase."""
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
    """A static member that did not come is represented by the subscription that it sent last, which is one
    assignment too old; as specified, also by what it was assigned since."""
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
            (SyncOk(wire.id, wire.generation, record.assigned), put(records, record._replace(synced=True)))
        )
    elif group.leader != me.id(wire.id) or wire.grants is None:
        yield Outcome((SyncParked(wire.id, wire.generation), put(records, record._replace(synced=True))))


def leader_sync(setup: Setup, slot: int, wire: Wire, group: Group, *rest: Any) -> Iterator[Outcome]:
    """The leader's SyncGroup arrives in time: stored, appended to the log, everybody parked is answered."""
    if (
        not isinstance(wire, Sync)
        or wire.grants is None
        or not _in_time(MemberContext(Slot(slot), setup), wire, group)
    ):
        return
    slots = setup.slots
    records, wires = rest[: len(slots)], list(rest[len(slots) : 2 * len(slots)])
    granted = {grant.id: grant.parts for grant in wire.grants}
    after = [
        tuple(
            record if record.meta is None else record._replace(assigned=granted.get(Id(Slot(s), record.id)))
            for record in records[s]
        )
        for s in slots
    ]
    mine = find(after[slot], wire.id)
    assert mine is not None
    after[slot] = put(after[slot], mine._replace(synced=True))
    wires[slot] = SyncParked(wire.id, wire.generation)
    for s in slots:
        parked = wires[s]
        if isinstance(parked, SyncParked) and parked.generation == group.generation:
            record = find(after[s], parked.id)
            if record is not None:
                wires[s] = SyncOk(parked.id, parked.generation, record.assigned)
    stable = group._replace(state=GroupState.STABLE)
    log = (stable, *(logged(setup, stable, some) for some in after)) if setup.keeps_log else ()
    yield Outcome((stable, *after, *wires, *log))


def _in_time(me: MemberContext, wire: Wire, group: Group) -> bool:
    """Whether a SyncGroup is the one that the group waits for."""
    if not isinstance(wire, Sync) or wire.grants is None or group.state is not GroupState.COMPLETING:
        return False
    return wire.generation == group.generation and group.leader == me.id(wire.id)


def logged(setup: Setup, group: Group, records: Records) -> Records:
    """The members of one slot as GroupMetadataValue keeps them: of their protocols only the selected one,
    in every release; as specified, all."""
    kept = []
    for record in admitted(records):
        assert record.meta is not None
        meta = record.meta
        if "persist_selected_protocol_only" in setup.coordinator and group.protocol:
            meta = meta._replace(assignors=(group.protocol,))
        kept.append(MemberRecord(record.id, meta, record.assigned, synced=True))
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


# -- timeouts ------------------------------------------------------------------------------------------


def belongs(member: Member, wire: Wire, record: MemberRecord) -> bool:
    """Whether the member at work is the one of ``record``; it may learn its id only from the answer."""
    return record.id in (member.id, getattr(wire, "id", NO_ID), getattr(wire, "given", NO_ID))


def able(member: Member, wire: Wire, record: MemberRecord) -> bool:
    """Whether the owner of ``record`` can still join and sync in time."""
    return works(member) and bool(member.topics) and belongs(member, wire, record)


def append_fails(me: MemberContext, budget: int, wire: Wire, records: Records) -> Iterator[Outcome]:
    """The append to the log takes too long, and a JoinGroup is told to try again (KAFKA-10870)."""
    if isinstance(wire, JoinParked):
        record = find(records, wire.id)
        left = put(records, record._replace(joined=False)) if record is not None else records
        yield Outcome((budget - 1, Refused("join", Error.REBALANCE_IN_PROGRESS, wire.id), left))


def session(
    me: MemberContext, member: Member, wire: Wire, group: Group, records: Records, at_work: bool
) -> Iterator[Outcome]:
    """The session of a member expires. One that is parked counts as alive (``maybeExpire``)."""
    decisions = me.setup.coordinator
    for record in records:
        parked = record.joined and not record.new
        parked = parked or (
            group.state is GroupState.COMPLETING and record.synced and record.meta is not None
        )
        if parked or (record.meta is None and "pending_blocks_join" in decisions):
            continue
        if record.new and "new_member_never_expires" in decisions:
            continue
        alive = able(member, wire, record)
        hung = member.life is Life.HUNG and member.id == record.id
        quiet = "no_heartbeat_in_completing" in me.config(member.stage).decisions
        if hung and member.state in (MemberState.COMPLETING, MemberState.STABLE):
            alive = not (quiet and member.state is MemberState.COMPLETING)
        elif quiet and isinstance(wire, JoinOk) and wire.leader:  # a long assign(), and nobody beats
            alive = False
        if alive is at_work:
            after, left = removed(me, group, records, record.id)
            yield Outcome((after, left), f"id {record.id}")


def session_expires(
    me: MemberContext, member: Member, wire: Wire, group: Group, records: Records
) -> Iterator[Outcome]:
    """The session of an owner that is dead, paused or gone."""
    yield from session(me, member, wire, group, records, at_work=False)


def session_lost(
    me: MemberContext, budget: int, member: Member, wire: Wire, group: Group, records: Records
) -> Iterator[Outcome]:
    """The session of an owner that is at work: its heartbeats did not arrive."""
    for outcome in session(me, member, wire, group, records, at_work=True):
        yield Outcome((budget - 1, *outcome.values), outcome.choice)


def _give_up(
    me: MemberContext, member: Member, wire: Wire, group: Group, records: Records, at_work: bool
) -> Iterator[Outcome]:
    """The rebalance timeout passes for one member that did not come (join phase), or never synced."""
    for record in admitted(records):
        if able(member, wire, record) is not at_work:
            continue
        if group.state is GroupState.PREPARING and not record.joined and not record.given_up:
            yield Outcome((group, put(records, record._replace(given_up=True))), f"join of id {record.id}")
        elif group.state in SETTLED and not record.synced and _sync_expires(me, record):
            after, left = removed(me, group, records, record.id)
            seen = Expelled(me.slot, "pending sync", at_work, me.static and record.silent)
            yield Outcome((after, left), f"sync of id {record.id}", (seen,))


def _sync_expires(me: MemberContext, record: MemberRecord) -> bool:
    decisions = me.setup.coordinator
    if "no_pending_sync_expiry" in decisions:
        return False
    return not record.silent or "pending_sync_evicts_static" in decisions


def rebalance_timeout(
    me: MemberContext, member: Member, wire: Wire, group: Group, records: Records
) -> Iterator[Outcome]:
    """It passes for a member that cannot come."""
    yield from _give_up(me, member, wire, group, records, at_work=False)


def too_slow(
    me: MemberContext, budget: int, member: Member, wire: Wire, group: Group, records: Records
) -> Iterator[Outcome]:
    """It passes for a member that is at work but slow."""
    for outcome in _give_up(me, member, wire, group, records, at_work=True):
        yield Outcome((budget - 1, *outcome.values), outcome.choice, outcome.seen)


# -- failover ------------------------------------------------------------------------------------------


def failover(setup: Setup, budget: int, group: Group, log: Group, *rest: Any) -> Iterator[Outcome]:
    """The group moves to another broker, which knows what is in the log and nothing else.

    Lost: the phase of a rebalance, parked requests, pending members, generations and removals since the
    last append, other protocols' metadata. Responses that were sent may still arrive. As specified the
    removal of a static member's id is not lost, or the process that has a new one would be fenced.
    """
    slots = setup.slots
    wires, logs = rest[: len(slots)], list(rest[len(slots) : 2 * len(slots)])
    loaded = log
    if setup.coordinator.isdisjoint({"static_removal_not_persisted", "static_replace_not_persisted"}):
        for slot, records in zip(slots, rest[2 * len(slots) :], strict=True):
            known = [record.id for record in records]
            there = tuple(record for record in logs[slot] if record.id in known)
            if setup.consumers[slot].instance is not None and there != logs[slot]:
                logs[slot], loaded = there, log._replace(state=GroupState.PREPARING)
    loads = any(isinstance(wire, Sync) for wire in wires)
    between = group.state is GroupState.COMPLETING
    seen = (Noted("failover between join and sync"),) if between else (Noted("failover"),)
    for loading in (False, True) if loads else (False,):
        answers = tuple(_cut(setup, wire, loading) for wire in wires)
        yield Outcome((budget - 1, loaded, *logs, *answers), "loading" if loading else "", seen)


def _cut(setup: Setup, wire: Wire, loading: bool) -> Wire:
    """What becomes of a request when the coordinator moves."""
    if isinstance(wire, Sync) and loading:
        raw = "sync_load_error_raw" in setup.coordinator
        error = Error.COORDINATOR_LOAD_IN_PROGRESS if raw else Error.REBALANCE_IN_PROGRESS
        return Refused("sync", error, wire.id, wire.generation)
    if isinstance(wire, Join | JoinParked):
        return Refused("join", Error.NOT_COORDINATOR, wire.id)
    if isinstance(wire, Sync | SyncParked):
        return Refused("sync", Error.NOT_COORDINATOR, wire.id, wire.generation)
    return wire


def expire_group(budget: int, group: Group) -> Iterator[Outcome]:
    """An empty group without offsets is deleted; the next one of that name starts at generation 0."""
    if group.state is GroupState.EMPTY:
        yield Outcome((budget - 1, Group()))


def persist_replacement(
    join: Callable[..., Iterator[Outcome]], me: MemberContext
) -> Callable[..., Iterator[Outcome]]:
    """``join`` with static replacement written to the log (KAFKA-10284): the log's record gets the new id."""

    def run(*values: Any) -> Iterator[Outcome]:
        log, group_log = values[3], values[4]
        for outcome in join(*values[:4], *values[5:]):
            new: Value = log
            header: Value = group_log
            group, records = cast(tuple[Group, Records], outcome.values[1:])
            quiet = [s for s in outcome.seen if isinstance(s, Replaced) and not s.rebalances]
            if quiet and "static_replace_not_persisted" not in me.setup.coordinator:
                new, header = logged(me.setup, group, records), group
            yield Outcome((*outcome.values, new, header), outcome.choice, outcome.seen)

    return run


def actions(setup: Setup) -> tuple[Action, ...]:
    """All actions of the coordinator."""
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
        m, w, s, r = (me.name(part) for part in ("member", "wire", "stray", "record"))
        others = tuple(name for name in all_of["record"] if name != r) if setup.compares else ()
        log = (me.name("log"),) if setup.keeps_log else ()
        run, late = partial(join_request, me), partial(abandoned_join, me)
        if "append fails" in setup.faults:
            touched = ("budget", w, r)
            fails = partial(append_fails, me)
            listed.append(
                Action(
                    name="append fails",
                    who=me.slot,
                    reads=touched,
                    writes=touched,
                    run=fails,
                    guard=bool,
                    fault=True,
                    fairness=Fairness.NONE,
                )
            )
        for name, channel, act in (("join request", w, run), ("abandoned join", s, late)):
            if setup.keeps_log and me.static:
                both = (*log, "log")
                reads, writes = (channel, "group", r, *both, *others), (channel, "group", r, *both)
                listed.append(
                    Action(
                        name=name,
                        who=me.slot,
                        reads=reads,
                        writes=writes,
                        run=persist_replacement(act, me),
                        guard=_is_join,
                    )
                )
            else:
                reads, writes = (channel, "group", r, *log, *others), (channel, "group", r)
                listed.append(
                    Action(name=name, who=me.slot, reads=reads, writes=writes, run=act, guard=_is_join)
                )
        listed += [
            Action(name="sync request", who=me.slot, reads=(w, "group", r), writes=(w, r),
                run=partial(sync_request, me), guard=_is_sync),
            Action(name="leader sync", who=me.slot, reads=(w, *wide), writes=wide,
                   run=partial(leader_sync, setup, me.slot), guard=_decides,
                   when=(When((w, "group"), partial(_in_time, me)),)),
            Action(name="sync refused", who=me.slot, reads=(w, "group"), writes=(w,),
                run=partial(refuse_sync, me), guard=_sync_parked),
            Action(name="join refused", who=me.slot, reads=(w, r), writes=(w,), run=partial(refuse_join, me),
                guard=_join_parked),
            Action(name="session expires", who=me.slot, reads=(r, m, w, "group"), writes=("group", r),
                   run=lambda r, m, w, g, me=me: session_expires(me, m, w, g, r), guard=bool),
            Action(name="rebalance timeout", who=me.slot, reads=(r, m, w, "group"), writes=("group", r),
                   run=lambda r, m, w, g, me=me: rebalance_timeout(me, m, w, g, r), guard=bool),
        ]  # fmt: skip
        costly = {
            "session timeout": partial(session_lost, me),
            "slow member": partial(too_slow, me),
        }
        listed += [
            Action(
                name=name,
                who=me.slot,
                reads=("budget", m, w, "group", r),
                writes=("budget", "group", r),
                run=act,
                guard=bool,
                fault=True,
                fairness=Fairness.NONE,
            )
            for name, act in costly.items()
            if name in setup.faults
        ]
    if setup.keeps_log:
        reads = ("budget", "group", "log", *all_of["wire"], *all_of["log"], *all_of["record"])
        writes = ("budget", "group", *all_of["record"], *all_of["wire"])
        listed.append(
            Action(
                name="failover",
                who=NOBODY,
                reads=reads,
                writes=writes,
                run=partial(failover, setup),
                guard=bool,
                fault=True,
                fairness=Fairness.NONE,
            )
        )
    if "group expires" in setup.faults:
        both = ("budget", "group")
        listed.append(
            Action(
                name="group expires",
                who=NOBODY,
                reads=both,
                writes=both,
                run=expire_group,
                guard=bool,
                fault=True,
                fairness=Fairness.NONE,
            )
        )
    return tuple(listed)


def _preparing(group: object) -> bool:
    return isinstance(group, Group) and group.state is GroupState.PREPARING


def _is_join(wire: object) -> bool:
    return isinstance(wire, Join)


def _is_sync(wire: object) -> bool:
    return isinstance(wire, Sync)


def _decides(wire: object) -> bool:
    return isinstance(wire, Sync) and wire.grants is not None


def _sync_parked(wire: object) -> bool:
    return isinstance(wire, SyncParked)


def _join_parked(wire: object) -> bool:
    return isinstance(wire, JoinParked)
