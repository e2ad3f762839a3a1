"""JoinGroup at the coordinator: refused, answered at once, or parked until the join phase ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rebalance_verifier.model.classic.errors import membership_error
from rebalance_verifier.model.classic.state import (
    Behind,
    Group,
    Join,
    JoinOk,
    JoinParked,
    LeaveGroup,
    Member,
    MemberRecord,
    Metadata,
    Records,
    Refused,
    Stray,
    Sync,
    Wire,
    admitted,
    find,
    put,
)
from rebalance_verifier.model.group.observations import Admitted, Noted, Repeated, Replaced, Seen, TurnedAway
from rebalance_verifier.model.group.parts import NO_ID, NONE, Error, GroupState, Late
from rebalance_verifier.model.group.setup import MemberContext, Setup
from rebalance_verifier.model.machine import Outcome

GONE = (GroupState.DEAD, GroupState.EMPTY)

ARRIVES = Noted("request of a broken connection")
"""What is seen when something arrives whose connection broke."""


def candidates(metas: Sequence[Metadata]) -> list[str]:
    """Return the protocols that every member supports, in the first one's order."""
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
    """Return what of it is in the bytes, which is what the coordinator compares."""
    in_user_data = {"sticky", "cooperative-sticky"}.intersection(meta.assignors)
    tells = in_user_data and (meta.tells or "sticky" in meta.assignors)
    return meta if tells and meta.version >= 1 else meta._replace(own_gen=NONE)


def refusal(
    setup: Setup, group: Group, join: Join, everybody: Sequence[MemberRecord], record: MemberRecord | None
) -> Error | None:
    """Return why a JoinGroup is turned away before anything else: protocols that do not fit, or a full
    group."""
    members = admitted(everybody)
    if (
        members
        and group.state not in GONE
        and not candidates([join.meta, *(r.meta for r in members if r.meta)])
    ):
        return Error.INCONSISTENT_GROUP_PROTOCOL
    most = _limit(setup, group)
    if most is not None:
        known = record is not None and record.meta is not None
        if "max_size_counts_members" in setup.coordinator:
            accepted, count = record is not None, len(members)
        elif group.state is GroupState.PREPARING:
            accepted, count = record is not None and record.joined, sum(r.joined for r in members)
        else:
            accepted, count = known, len(members)
        if not accepted and count >= most:
            return Error.GROUP_MAX_SIZE_REACHED
    return None


def _limit(setup: Setup, group: Group) -> int | None:
    """group.max.size of the group's broker."""
    return None if setup.lowers and not group.limited else setup.max_size


def _before(me: MemberContext, records: Records) -> MemberRecord | None:
    """Return the record of a static member, which comes back under another id. As shipped the limit of
    members does not know it."""
    if not me.static or "full_classic_refuses_static" in me.setup.coordinator:
        return None
    return next(iter(admitted(records)), None)


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
    known = mine if mine is not None else _before(me, records)
    error = refusal(me.setup, group, wire, everybody, known)
    if error is None and wire.id != NO_ID and mine is None:
        error = membership_error(me, records, wire.id)
    if error is not None:
        member = me.static and bool(admitted(records)) and group.state is not GroupState.PREPARING
        full: Seen = (TurnedAway(me.slot, member),) if error is Error.GROUP_MAX_SIZE_REACHED else ()
        return Refused("join", error, wire.id), group, records, full
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
    seen = Admitted(me.slot, me.static, len(admitted(everybody)) + 1, _limit(me.setup, group))
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
    me: MemberContext, wire: Join, group: Group, records: Records, record: MemberRecord, size: int
) -> tuple[Wire, Group, Records, Seen]:
    if record.meta is None:
        seen = Admitted(me.slot, True, size + 1, _limit(me.setup, group))
        return *_parked(group, records, record._replace(new=True), wire.meta), (seen,)
    leads = group.leader == me.id(record.id)
    same = not wire.meta.unique and written(record.meta) == written(wire.meta)
    completing, stable = group.state is GroupState.COMPLETING, group.state is GroupState.STABLE
    if same and (completing or (stable and not leads)):
        assert group.protocol is not None
        answer = JoinOk(record.id, group.generation, group.protocol, leads)
        return answer, group, records, (Repeated(me.slot, False),)
    alike = written(record.meta._replace(noise=0)) == written(wire.meta._replace(noise=0))
    repeats = stable and not leads and alike and not wire.meta.unique
    seen_again = (Repeated(me.slot, True),) if repeats else ()
    return *_parked(group, records, record, wire.meta), seen_again


def join_request(
    me: MemberContext, wire: Wire, group: Group, records: Records, *rest: Any
) -> Iterator[Outcome]:
    """A JoinGroup arrives."""
    if isinstance(wire, Join):
        others, ids, behind = _split(me, rest)
        answer, group, records, seen = join_arrives(me, wire, group, records, others, ids)
        kept = (not_overtaken(me, left, wire, answer) for left in behind)
        yield Outcome((answer, group, records, *kept), seen=seen)


def abandoned_join(
    me: MemberContext, stray: Stray, group: Group, records: Records, *rest: Any
) -> Iterator[Outcome]:
    """A JoinGroup arrives that its sender gave up on: it has its effect, the answer goes nowhere."""
    if isinstance(stray, Join):
        late, member, wire, *beside = rest
        others, ids, _ = _split(me, (late, *beside))
        ids = (*ids, *_learned(member, wire))
        _, group, records, seen = join_arrives(me, stray, group, records, others, ids)
        yield Outcome((None, group, records), seen=(*seen, Noted("abandoned JoinGroup arrives")))


def left_join_arrives(
    me: MemberContext, behind: Behind, group: Group, records: Records, *rest: Any
) -> Iterator[Outcome]:
    """A JoinGroup arrives whose connection broke, perhaps after later ones: as `abandoned_join`."""
    for n, (first, *later) in enumerate(behind):
        if not isinstance(first, Join):
            continue
        stray, member, wire, *beside = rest
        others, ids, _ = _split(me, (stray, behind, *beside))
        ids = (*ids, *_learned(member, wire))
        answer, after, left, seen = join_arrives(me, first, group, records, others, ids)
        older, younger = not_overtaken(me, behind[:n], first, answer), behind[n + 1 :]
        kept = (*older, *((tuple(later),) if later else ()), *younger)
        yield Outcome((kept, after, left), which(behind, n), (*seen, ARRIVES))


def _learned(member: Member, wire: Wire) -> tuple[int, ...]:
    """Return ids that the sender of a late JoinGroup has or hears of meanwhile: they are not given again."""
    return (member.id, getattr(wire, "id", NO_ID), getattr(wire, "given", NO_ID))


def which(behind: Behind, n: int) -> str:
    """Return which of several broken connections, oldest first."""
    return "" if len(behind) == 1 else f"connection {n + 1}"


def connection_of(choice: str) -> int:
    """Return the number that `which` made a choice of.

    >>> connection_of(""), connection_of("connection 2")
    (0, 1)
    """
    return int(choice.removeprefix("connection ") or 1) - 1


def _split(
    me: MemberContext, rest: Sequence[Any]
) -> tuple[tuple[Records, ...], tuple[int, ...], tuple[Behind, ...]]:
    """Return what a JoinGroup's handling reads beside its own slot: records of the others; ids that may not
    be given again, since the log has them or something late names them; what was left behind, if anything can
    be."""
    late, *rest = rest
    behind: list[Behind] = []
    if me.setup.breaks_connections:
        left, *rest = rest
        behind.append(left)
    named = [late.id] if isinstance(late, Join | Late | Refused) else []
    named += [request.id for left in behind for connection in left for request in connection]
    ids = tuple(named)
    if not me.setup.keeps_log:
        return tuple(rest), ids, tuple(behind)
    return tuple(rest[1:]), (*ids, *(record.id for record in rest[0])), tuple(behind)


def not_overtaken(me: MemberContext, behind: Behind, later: Join, answer: Wire) -> Behind:
    """Return what is still to be believed of ``behind`` once a ``later`` JoinGroup has its ``answer``.

    As specified, unless it was refused, no older one of the same member id or instance is: each carries an
    epoch, and the coordinator refuses what is older than it has handled. No JoinGroup of Kafka's has one. Of
    those without id or instance nobody can say whose they are.
    """
    if isinstance(answer, Refused) or "overtaken_join_believed" in me.setup.coordinator:
        return behind

    def old(request: Join | Sync | LeaveGroup) -> bool:
        same = me.static or (request.id == later.id and later.id != NO_ID)
        return isinstance(request, Join) and same

    kept = (tuple(request for request in connection if not old(request)) for connection in behind)
    return tuple(connection for connection in kept if connection)


def append_fails(me: MemberContext, budget: int, wire: Wire, records: Records) -> Iterator[Outcome]:
    """The append to the log takes too long, and a JoinGroup is told to try again (KAFKA-10870)."""
    if isinstance(wire, JoinParked):
        record = find(records, wire.id)
        left = put(records, record._replace(joined=False)) if record is not None else records
        yield Outcome((budget - 1, Refused("join", Error.REBALANCE_IN_PROGRESS, wire.id), left))
