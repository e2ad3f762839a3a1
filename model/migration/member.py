"""A member of the classic protocol, as far as a migration needs it: EAGER or COOPERATIVE, by its assignor
list.

Every function is one action, as in ``model.classic.member``, which has all of it. What a process
does whatever it speaks (pause, resume, commit late) is in ``model.consumer.member``.
"""

from __future__ import annotations

from collections.abc import Iterator

from rebalance_verifier.model.consumer.conversion import keeps_protocols, removed
from rebalance_verifier.model.consumer.observations import Ended
from rebalance_verifier.model.consumer.state import (
    ANSWERS,
    REQUESTS,
    AnyWire,
    ClassicMember,
    ClassicMessage,
    ClassicStep,
    ConsumerGroup,
    ConsumerRecords,
    LateCommit,
    unused,
)
from rebalance_verifier.model.group.observations import Call, Callback, Seen
from rebalance_verifier.model.group.parts import NONE, NOTHING, ClusterState, Error, Life, MemberState, Parts
from rebalance_verifier.model.group.setup import MemberContext
from rebalance_verifier.model.machine import Outcome
from rebalance_verifier.model.migration.coordinator import heartbeat as answered

GONE = (Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION)
"""Errors by which a membership ends."""


def _call(me: MemberContext, member: ClassicMember, call: Call, parts: Parts, *, reset: bool) -> Callback:
    eager = me.config(member.stage).eager
    return Callback(call, me.slot, parts, eager, reset, member.owned, member.believed)


def join(me: MemberContext, member: ClassicMember, wire: AnyWire) -> Iterator[Outcome]:
    """JoinGroup; an EAGER member revokes everything before it and claims nothing."""
    if member.life is not Life.UP or wire is not None or not member.topics or not member.rejoin:
        return
    seen: Seen = ()
    claim = member.owned
    if me.config(member.stage).eager:
        if member.owned:
            seen = (_call(me, member, Call.REVOKED, member.owned, reset=False),)
        member, claim = member._replace(owned=NOTHING, believed=NOTHING), NOTHING
    listed = me.config(member.stage).assignors if keeps_protocols(me.setup) else ()
    message = ClassicMessage(
        ClassicStep.JOIN, member.id, member.generation, claim, member.topics, protocols=listed
    )
    yield Outcome((member._replace(state=MemberState.PREPARING), message), seen=seen)


def receive(me: MemberContext, wire: AnyWire, member: ClassicMember) -> Iterator[Outcome]:
    """The answer to JoinGroup, behind which SyncGroup is sent; that to SyncGroup, which assigns; or an
    error."""
    if member.life is not Life.UP or not isinstance(wire, ClassicMessage) or wire.step not in ANSWERS:
        return
    if wire.id != member.id or member.state in (MemberState.UNJOINED, MemberState.STABLE):
        yield Outcome((member, None))
    elif wire.step is ClassicStep.JOIN_OK:
        joined = member._replace(state=MemberState.COMPLETING, generation=wire.generation, rejoin=False)
        sync = ClassicMessage(ClassicStep.SYNC, member.id, wire.generation, protocols=wire.protocols)
        yield Outcome((joined, sync))
    elif wire.step is ClassicStep.SYNC_OK:
        after, seen = _assigned(me, member, wire.parts)
        yield Outcome((after, None), seen=seen)
    elif wire.error in GONE:
        after, seen = reset(me, member)
        yield Outcome((after, None), seen=seen)
    elif wire.error in (Error.INCONSISTENT_GROUP_PROTOCOL, Error.GROUP_MAX_SIZE_REACHED):
        # poll throws it, and the application ends
        _, seen = reset(me, member)
        if member.state is MemberState.COMPLETING:
            seen = (*seen, Ended(me.slot, Error(wire.error)))
        yield Outcome((ClassicMember(life=Life.FAILED, stage=member.stage), None), seen=seen)
    else:
        yield Outcome((member._replace(state=MemberState.UNJOINED, rejoin=True), None))


def _assigned(me: MemberContext, member: ClassicMember, parts: Parts) -> tuple[ClassicMember, Seen]:
    """onJoinComplete: what is not assigned any more is revoked, and a COOPERATIVE member rejoins then."""
    gone = Parts(member.owned & ~parts)
    calls: Seen = ()
    if gone and not me.config(member.stage).eager:
        calls = (_call(me, member, Call.REVOKED, gone, reset=False),)
    kept = member._replace(owned=Parts(member.owned & parts), believed=Parts(member.believed & parts))
    calls = (*calls, _call(me, kept, Call.ASSIGNED, Parts(parts & ~kept.owned), reset=False))
    return member._replace(state=MemberState.STABLE, owned=parts, believed=parts, rejoin=bool(gone)), calls


def reset(me: MemberContext, member: ClassicMember) -> tuple[ClassicMember, Seen]:
    """The membership is gone: onPartitionsLost, and it joins anew."""
    calls = (_call(me, member, Call.LOST, member.owned, reset=True),) if member.owned else ()
    after = member._replace(
        state=MemberState.UNJOINED, generation=NONE, owned=NOTHING, believed=NOTHING, rejoin=True
    )
    return after, calls


def beat(
    me: MemberContext, member: ClassicMember, group: ConsumerGroup, *book: ConsumerRecords
) -> Iterator[Outcome]:
    """A heartbeat of the classic protocol that has a consequence."""
    if member.life is not Life.UP or member.generation == NONE or member.state is not MemberState.STABLE:
        return
    error = answered(me, member, group, book)
    if error in GONE:
        after, seen = reset(me, member)
        yield Outcome((after,), error, seen)
    elif error is not None and not member.rejoin:
        yield Outcome((member._replace(rejoin=True),), error)


# -- the application and its process -------------------------------------------------------------------


def start(
    me: MemberContext,
    member: ClassicMember,
    wire: AnyWire,
    stray: LateCommit,
    records: ConsumerRecords,
) -> Iterator[Outcome]:
    """The process starts, under a member id of its own. It subscribes by name: a pattern without names is one
    of its own, which it has matched already."""
    if member.life in (Life.DOWN, Life.FAILED):
        names, pattern = me.consumer.choices[0]
        topics = names or me.setup.matching(pattern, me.setup.exist)
        fresh = ClassicMember(life=Life.UP, stage=member.stage, id=unused(records), topics=topics)
        yield Outcome((fresh, None, None))


def crash(
    me: MemberContext, budget: int, member: ClassicMember, wire: AnyWire, stray: LateCommit
) -> Iterator[Outcome]:
    """The process is killed. A request that left still arrives."""
    if member.life in (Life.UP, Life.PAUSED):
        requested = isinstance(wire, ClassicMessage) and wire.step in REQUESTS
        yield Outcome((budget - 1, ClassicMember(stage=member.stage), wire if requested else None, None))


def close(
    me: MemberContext,
    budget: int,
    member: ClassicMember,
    wire: AnyWire,
    stray: LateCommit,
    group: ConsumerGroup,
    cluster: ClusterState,
    *book: ConsumerRecords,
) -> Iterator[Outcome]:
    """``close()``: onPartitionsRevoked of everything, and LeaveGroup unless it is static."""
    if member.life is Life.UP:
        reset_already = member.generation == NONE
        call = Call.LOST if reset_already else Call.REVOKED
        calls: Seen = ()
        if member.owned:
            calls = (_call(me, member, call, member.owned, reset=reset_already),)
        seen: Seen = ()
        if not me.static:
            group, book, seen = removed(me.setup, group, book, me.slot, member.id)
        after = ClassicMember(stage=member.stage)
        yield Outcome((budget - 1, after, None, None, group, *book), seen=(*calls, *seen))


def disconnect(me: MemberContext, budget: int, member: ClassicMember, wire: AnyWire) -> Iterator[Outcome]:
    """Lose the call under way, and let the client notice."""
    if (
        isinstance(wire, ClassicMessage)
        and wire.step is not ClassicStep.REFUSED
        and member.life is not Life.DOWN
    ):
        lost = ClassicMessage(ClassicStep.REFUSED, wire.id, member.generation, error=Error.DISCONNECT)
        yield Outcome((budget - 1, lost))
