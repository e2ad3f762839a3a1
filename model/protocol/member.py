"""The member: ConsumerCoordinator and AbstractCoordinator of one consumer, step by step.

Every function is one action: it takes the values of what it reads and yields what can happen. The order
inside follows the Java client; what other clients and older releases do differently is a named decision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from rebalance.model.machine import Action, Fairness, Outcome
from rebalance.model.protocol.setup import ConsumerConfig, MemberContext
from rebalance.model.protocol.state import (
    NO_ID,
    NONE,
    NOTHING,
    Answered,
    Call,
    Callback,
    Claimed,
    ClusterState,
    Completed,
    Error,
    Group,
    GroupState,
    Join,
    JoinOk,
    Late,
    Left,
    Life,
    Member,
    MemberState,
    Metadata,
    Noted,
    Parts,
    Records,
    Refused,
    Stray,
    Sync,
    SyncOk,
    Threw,
    Topics,
    Wire,
)

RETRIABLE = (Error.NOT_COORDINATOR, Error.DISCONNECT, Error.COORDINATOR_LOAD_IN_PROGRESS)
FATAL = (Error.FENCED_INSTANCE_ID, Error.INCONSISTENT_GROUP_PROTOCOL, Error.GROUP_MAX_SIZE_REACHED)

Seen = tuple[object, ...]


def works(member: Member) -> bool:
    """Whether the application's thread polls."""
    return member.life is Life.UP and not member.stuck


def wants_to_join(me: MemberContext, member: Member) -> bool:
    """``rejoinNeededOrPending``: asked for, other subscription, or other metadata at the leader."""
    if not member.topics:
        return False
    changed = member.watch is not None and member.watch != member.view & me.setup.parts(member.watched)
    return member.rejoin or member.joined_topics != member.topics or changed


def reset(member: Member, *, keep_id: bool = False) -> Member:
    """``resetStateAndGeneration``: the membership is gone, what it owned is lost at the next poll."""
    return member._replace(
        state=MemberState.UNJOINED,
        generation=NONE,
        id=member.id if keep_id else NO_ID,
        rejoin=True,
        prepare=True,
    )


def remembers(config: ConsumerConfig) -> bool:
    """Whether user data tells the generation of the last assignment even when nothing of it is left.

    CooperativeStickyAssignor does; since version 2 of the subscription nobody reads it there.
    """
    carried = config.tells and config.version < 2 and "cooperative-sticky" in config.assignors
    return carried or "sticky" in config.assignors


def drop(member: Member, config: ConsumerConfig, parts: int) -> Member:
    """``member`` without ``parts``."""
    owned = Parts(member.owned & ~parts)
    known = member.own_gen if owned or remembers(config) else NONE
    return member._replace(owned=owned, own_gen=known, unfetched=Parts(member.unfetched & owned))


# -- callbacks -----------------------------------------------------------------------------------------


def give_up(
    me: MemberContext, member: Member, call: Call, parts: Parts, *, midway: bool = False
) -> tuple[Member, Seen]:
    """Run onPartitionsRevoked or onPartitionsLost, then let go of ``parts``."""
    config = me.config(member.stage)
    gone = member.generation == NONE or member.id == NO_ID
    seen = Callback(
        call=call,
        who=me.slot,
        parts=parts,
        eager=config.eager,
        reset=gone,
        owned=member.owned,
        believed=member.told,
        midway=midway,
    )
    return drop(member, config, parts)._replace(told=Parts(member.told & ~parts)), (seen,)


def join_prepare(me: MemberContext, member: Member) -> tuple[Member, Seen]:
    """onJoinPrepare: EAGER revokes everything, COOPERATIVE what left the subscription; lost after a reset."""
    config = me.config(member.stage)
    member = member._replace(prepare=False)
    if member.generation == NONE or member.id == NO_ID:
        call = Call.REVOKED if "lost_as_revoked" in config.decisions else Call.LOST
        return give_up(me, member, call, member.owned) if member.owned else (member, ())
    if config.eager and "protocol_flag_inconsistent" not in config.decisions:
        return give_up(me, member, Call.REVOKED, member.owned)
    unsubscribed = Parts(member.owned & ~me.setup.parts(member.topics))
    return give_up(me, member, Call.REVOKED, unsubscribed) if unsubscribed else (member, ())


def leave_prepare(me: MemberContext, member: Member) -> tuple[Member, Seen]:
    """onLeavePrepare: revoked if the membership stands, lost otherwise; nothing when nothing is owned."""
    config = me.config(member.stage)
    if "clear_before_leave_prepare" in config.decisions:
        return drop(member, config, member.owned), ()
    if not member.owned:
        return member, ()
    rebalancing = member.state in (MemberState.PREPARING, MemberState.COMPLETING)
    lost = member.generation == NONE or member.id == NO_ID or rebalancing
    return give_up(me, member, Call.LOST if lost else Call.REVOKED, member.owned, midway=rebalancing)


def join_complete(
    me: MemberContext, member: Member, assigned: Parts, throws: bool = False
) -> tuple[Member, Seen]:
    """onJoinComplete: revoke, ask for another rebalance if something was revoked, own, assign."""
    config = me.config(member.stage)
    eager = config.eager
    member = member._replace(received=None, prepare=True)
    if assigned & ~me.setup.parts(member.topics):
        return member._replace(rejoin=True), (Noted("assignment of an old subscription ignored"),)
    seen: list[object] = []
    before, believed = member.owned, member.told
    base = member.last if "eager_revoke_keeps_last_assigned" in config.decisions else before
    added, revoked = Parts(assigned & ~base), Parts(before & ~assigned)
    current = "no_snapshot_before_callback" not in config.decisions or member.generation != NONE
    rejoin = member.rejoin
    if revoked:
        early = "assign_before_revoke_cb" in config.decisions
        updated = current and "metadata_after_revoke" not in config.decisions
        owned = assigned if early else before
        seen.append(
            Callback(
                call=Call.REVOKED,
                who=me.slot,
                parts=revoked,
                eager=eager,
                reset=False,
                owned=owned,
                believed=believed,
                current=updated,
            )
        )
        believed = Parts(believed & ~revoked)
        silent = eager or not {"no_rejoin_after_revoke", "protocol_flag_inconsistent"}.isdisjoint(
            config.decisions
        )
        rejoin = rejoin or not silent
        if rejoin:
            seen.append(Noted("follow-up rebalance"))
        if throws and "abort_on_callback_exception" in config.decisions:
            seen.append(Threw(me.slot, "listener"))
            return member._replace(told=believed, rejoin=rejoin), tuple(seen)
    if "assigned_cb_repeated" in config.decisions:
        added = assigned
    if added or "skip_empty_assigned_cb" not in config.decisions:
        seen.append(
            Callback(
                call=Call.ASSIGNED,
                who=me.slot,
                parts=added,
                eager=eager,
                reset=False,
                owned=assigned,
                believed=believed,
                current=current,
            )
        )
        believed = Parts(believed | added)
    if throws:
        seen.append(Threw(me.slot, "listener"))
    keeps_last = "sticky" in config.assignors or "eager_revoke_keeps_last_assigned" in config.decisions
    member = member._replace(
        owned=assigned,
        own_gen=member.generation if assigned or remembers(config) else NONE,
        last=assigned if keeps_last else NOTHING,
        told=believed,
        rejoin=rejoin,
        unfetched=Parts(member.unfetched & assigned & ~added),
    )
    seen.append(
        Completed(
            who=me.slot,
            assigned=assigned,
            owned=member.owned,
            eager=eager,
            revoked=bool(revoked),
            rejoin=rejoin,
            believed=believed,
        )
    )
    if not assigned and "leave_on_empty_assignment" in config.decisions:
        member = reset(member)._replace(stuck=True)
    return member, tuple(seen)


# -- joining -------------------------------------------------------------------------------------------


def metadata(member: Member, config: ConsumerConfig) -> Metadata:
    """What the next JoinGroup says. As specified a claim is labelled with the generation that assigned it;
    Java writes the one last joined, which is another after a SyncGroup that failed."""
    owned = NOTHING if config.version < 1 or "claims_always_empty" in config.decisions else member.owned
    joined_last = not owned or "keep_owned_on_sync_rip" in config.decisions
    label = member.generation if joined_last else member.own_gen
    return Metadata(
        assignors=config.assignors,
        topics=member.topics,
        owned=owned,
        label=label if config.version >= 2 else NONE,
        own_gen=member.own_gen,
        last=member.last if "sticky" in config.assignors else NOTHING,
        version=config.version,
        tells=config.tells,
        noise=member.noise,
    )


def join(me: MemberContext, member: Member, wire: Wire) -> Iterator[Outcome]:
    """onJoinPrepare where it is due, then JoinGroup."""
    if not _can_send(me, member, wire):
        return
    config = me.config(member.stage)
    seen: Seen = ()
    latched = member.rejoin or "rejoin_flag_not_latched" not in config.decisions
    if member.prepare:
        member, seen = join_prepare(me, member)
    if "unsorted_metadata" in config.decisions:
        member = member._replace(noise=1 - member.noise)
    if "offset_fetch_not_resumed" in config.decisions:
        member = member._replace(unfetched=member.owned)
    member = member._replace(
        state=MemberState.PREPARING, rejoin=latched, joined_topics=member.topics, committing=False
    )
    meta = metadata(member, config)
    if meta.owned and meta.label != NONE:
        seen = (*seen, Claimed(me.slot, meta.owned, meta.label, meta.own_gen))
    yield Outcome((member, Join(member.id, meta)), seen=seen)


def _can_send(me: MemberContext, member: Member, wire: Wire) -> bool:
    ready = works(member) and wire is None and member.received is None
    return ready and not member.committing and wants_to_join(me, member)


def slow_commit(me: MemberContext, budget: int, member: Member, wire: Wire) -> Iterator[Outcome]:
    """The commit of onJoinPrepare takes longer than a poll; EAGER stops fetching until it is through."""
    config = me.config(member.stage)
    if _can_send(me, member, wire) and member.prepare and member.owned and member.generation != NONE:
        pauses = config.eager and "fetch_while_pending_revocation" not in config.decisions
        stopped = member.owned if pauses else NOTHING
        yield Outcome((budget - 1, member._replace(committing=True, unfetched=stopped)))


def commit_done(me: MemberContext, member: Member) -> Iterator[Outcome]:
    """The commit of onJoinPrepare came back, or its timer ran out."""
    again = "prepare_commit_never_done" in me.config(member.stage).decisions and member.generation != NONE
    if works(member) and member.committing and not again:
        yield Outcome((member._replace(committing=False, unfetched=NOTHING),))


def receive(me: MemberContext, member: Member, wire: Wire) -> Iterator[Outcome]:
    """A follower's JoinGroup response, or any SyncGroup response, or an error of the two."""
    if not works(member):
        return
    match wire:
        case JoinOk(leader=False):
            if member.state is not MemberState.PREPARING:
                yield Outcome((member, None), seen=(Noted("JoinGroup response after a reset"),))
                return
            member = joined(member, wire)
            yield Outcome((member, Sync(wire.id, wire.generation)))
        case SyncOk(parts=parts):
            valid = member.state is MemberState.COMPLETING and member.id == wire.id
            if not valid or member.generation != wire.generation:
                yield Outcome(
                    (member._replace(rejoin=True), None), seen=(Noted("SyncGroup response after a reset"),)
                )
            elif parts is None:
                member, seen = fail(me, member, "assignment of no bytes")
                yield Outcome((member, None), seen=seen)
            else:
                swallowed = (Noted("enforceRebalance swallowed"),) if member.asked else ()
                member = member._replace(state=MemberState.STABLE, rejoin=False, received=parts, asked=False)
                yield Outcome((member, None), seen=swallowed)
        case Refused():
            member, seen = refused(me, member, wire)
            yield Outcome((member, None), seen=seen)


def joined(member: Member, wire: JoinOk) -> Member:
    """JoinGroup was answered: the generation is the new one before anything was assigned in it."""
    return member._replace(
        state=MemberState.COMPLETING, id=wire.id, generation=wire.generation, watch=None, watched=Topics(0)
    )


def complete(me: MemberContext, member: Member) -> Iterator[Outcome]:
    """The poll thread takes over what SyncGroup brought, unless a reset came between."""
    if not works(member) or member.received is None:
        return
    config = me.config(member.stage)
    if member.state is not MemberState.STABLE or member.generation == NONE:
        if "joinfuture_not_cleared" in config.decisions:
            yield Outcome((member._replace(received=None, stuck=True),))
            return
        if "no_snapshot_before_callback" not in config.decisions:
            after = reset(member)._replace(received=None)
            yield Outcome((after,), seen=(Noted("reset between SyncGroup and callback"),))
            return
    member, seen = join_complete(me, member, member.received)
    yield Outcome((member,), seen=seen)


def complete_throwing(me: MemberContext, budget: int, member: Member) -> Iterator[Outcome]:
    """The same with a listener that throws: the steps all run, then poll throws."""
    if works(member) and member.received is not None and member.state is MemberState.STABLE:
        member, seen = join_complete(me, member, member.received, throws=True)
        yield Outcome((budget - 1, member), seen=seen)


def fail(me: MemberContext, member: Member, error: str) -> tuple[Member, Seen]:
    """poll throws what the application cannot handle: it closes the consumer, which loses what it owned."""
    after, seen = leave_prepare(me, member)
    return Member(life=Life.FAILED, stage=after.stage), (Threw(me.slot, error), *seen)


# -- errors --------------------------------------------------------------------------------------------


def refused(me: MemberContext, member: Member, answer: Refused) -> tuple[Member, Seen]:
    """The error table of JoinGroup, SyncGroup, Heartbeat and OffsetCommit.

    An error for another generation than the present one does not touch the present one (KAFKA-9823).
    """
    decisions = me.config(member.stage).decisions
    api, error = answer.api, answer.error
    same = member.id == answer.id and (api == "join" or member.generation == answer.generation)
    if api == "join":
        same = same and member.state is MemberState.PREPARING
    acts = same or "no_sent_generation_check" in decisions

    def answered(after: Member) -> tuple[Member, Seen]:
        was_reset = after.generation == NONE and (member.generation != NONE or member.id != after.id)
        kept = after.id == member.id
        return after, (
            Answered(
                who=me.slot,
                api=api,
                error=error,
                state=member.state,
                same=same,
                reset=was_reset,
                keeps_id=kept,
                rejoin=after.rejoin,
            ),
        )

    if error is Error.MEMBER_ID_REQUIRED:
        if not same:
            return member, ()
        return member._replace(id=answer.given, generation=NONE), ()
    if error in RETRIABLE:
        if api == "sync" and error is Error.COORDINATOR_LOAD_IN_PROGRESS:
            return fail(me, member, error)
        return answered(reset(member) if "reset_on_retriable" in decisions else member)
    if error is Error.REBALANCE_IN_PROGRESS:
        if api == "sync" and same and "reset_on_sync_rip" in decisions:
            return answered(reset(member, keep_id=True))
        if api == "join" and "join_rip_fatal" in decisions:
            return fail(me, member, error)
        if api in ("heartbeat", "commit") and member.state is not MemberState.STABLE:
            return answered(member)
        return answered(member._replace(rejoin=True))
    if error in FATAL:
        if api in ("heartbeat", "commit") and not acts:
            return member, ()
        if api == "heartbeat":
            member = reset(member)  # so that closing finds its partitions lost
        return fail(me, member, error)
    if not acts and not (api == "commit" and _late_commit_resets(member, decisions)):
        return answered(member._replace(rejoin=True) if api in ("join", "sync") else member)
    if api == "commit" and "commit_error_no_rejoin" in decisions:
        return answered(member)
    illegal = error is Error.ILLEGAL_GENERATION
    if illegal and "no_rejoin_after_illegal_generation" in decisions:
        return answered(reset(member, keep_id=True)._replace(rejoin=False, joined_topics=member.topics))
    keep = illegal and "clear_member_id_on_illegal_generation" not in decisions
    after = reset(member, keep_id=keep)
    once = "prepare_once_per_rebalance" in decisions
    if once or (api in ("join", "sync") and "prepare_not_repeated_after_reset" in decisions):
        after = after._replace(prepare=member.prepare)
    return answered(after)


def _late_commit_resets(member: Member, decisions: frozenset[str]) -> bool:
    if "commit_illegal_generation_always_lost" in decisions:
        return True
    return "late_commit_resets" in decisions and member.state is not MemberState.PREPARING


def membership_error(me: MemberContext, records: Records, member_id: int) -> Error | None:
    """Why the coordinator does not know a member id: it is gone, or its instance has another one now."""
    admitted = [record.id for record in records if record.meta is not None]
    if member_id in admitted:
        return None
    return Error.FENCED_INSTANCE_ID if me.static and admitted else Error.UNKNOWN_MEMBER_ID


def answer_to(
    me: MemberContext, api: str, group: Group, records: Records, member_id: int, generation: int
) -> Error | None:
    """What the coordinator answers to a heartbeat or a commit of ``member_id`` in ``generation``."""
    if group.state in (GroupState.DEAD, GroupState.EMPTY):
        return Error.UNKNOWN_MEMBER_ID
    error = membership_error(me, records, member_id)
    if error is not None:
        return error
    if generation != group.generation:
        return Error.ILLEGAL_GENERATION
    refusing = GroupState.PREPARING if api == "heartbeat" else GroupState.COMPLETING
    return Error.REBALANCE_IN_PROGRESS if group.state is refusing else None


def heartbeat(me: MemberContext, member: Member, group: Group, records: Records) -> Iterator[Outcome]:
    """A heartbeat that is answered at once; those without an effect are not steps."""
    mute = "no_heartbeat_in_completing" in me.config(member.stage).decisions
    if not _beats(member) or (mute and member.state is MemberState.COMPLETING):
        return
    error = answer_to(me, "heartbeat", group, records, member.id, member.generation)
    if error is None or (
        error is Error.REBALANCE_IN_PROGRESS and (member.rejoin or member.state is not MemberState.STABLE)
    ):
        return
    after, seen = refused(me, member, Refused("heartbeat", error, member.id, member.generation))
    if after != member:
        yield Outcome((after,), seen=seen)


def _beats(member: Member) -> bool:
    """Whether the heartbeat thread is at work: since KAFKA-10134 from the JoinGroup response on."""
    if member.life not in (Life.UP, Life.HUNG) or member.generation == NONE or member.id == NO_ID:
        return False
    return member.state is MemberState.STABLE or member.state is MemberState.COMPLETING


def send_late(me: MemberContext, budget: int, member: Member, stray: Stray) -> Iterator[Outcome]:
    """A heartbeat or a commit leaves and does not arrive yet."""
    if not _beats(member) or stray is not None:
        return
    yield Outcome((budget - 1, Late("heartbeat", member.id, member.generation)), "heartbeat")
    if member.state is MemberState.STABLE and works(member):
        yield Outcome((budget - 1, Late("commit", member.id, member.generation, member.owned)), "commit")


def late_arrives(me: MemberContext, stray: Stray, group: Group, records: Records) -> Iterator[Outcome]:
    """The coordinator answers it; an answer without an error has no effect."""
    if isinstance(stray, Late):
        error = answer_to(me, stray.api, group, records, stray.id, stray.generation)
        answer = Refused(stray.api, error, stray.id, stray.generation) if error else None
        yield Outcome((answer,))


def late_answer(me: MemberContext, member: Member, stray: Stray) -> Iterator[Outcome]:
    """The answer reaches the member, whatever that is by now."""
    if isinstance(stray, Refused) and member.life in (Life.UP, Life.HUNG):
        late = member.id != stray.id or member.generation != stray.generation
        after, seen = refused(me, member, stray)
        note = (Noted("late answer of an old generation"),) if late else ()
        yield Outcome((after, None), seen=(*seen, *note))
    elif isinstance(stray, Refused) and member.life is not Life.PAUSED:
        yield Outcome((member, None))


# -- what the application does -------------------------------------------------------------------------


def enforce_rebalance(me: MemberContext, budget: int, member: Member) -> Iterator[Outcome]:
    """``enforceRebalance()`` (KIP-568): a flag that the next poll acts on.

    During a rebalance the SyncGroup under way clears it, the "no-op" of the KIP; outside a group it is no
    news; a static member's works as long as its member id is known.
    """
    if not works(member) or member.id == NO_ID:
        return
    if not member.rejoin:
        yield Outcome((budget - 1, member._replace(rejoin=True)), seen=(Noted("enforceRebalance"),))
    elif member.state is MemberState.COMPLETING and not member.asked:
        yield Outcome((budget - 1, member._replace(asked=True)))


def resubscribe(me: MemberContext, budget: int, member: Member) -> Iterator[Outcome]:
    """``subscribe()`` with other topics."""
    if works(member) and member.topics:
        for topics in me.consumer.subscriptions:
            if topics != member.topics:
                yield Outcome((budget - 1, member._replace(topics=topics)), f"topics {topics}")


def refresh(me: MemberContext, member: Member, cluster: ClusterState) -> Iterator[Outcome]:
    """The metadata of the member becomes that of the cluster."""
    if member.life is Life.UP and member.view != cluster.parts:
        yield Outcome((member._replace(view=cluster.parts),))


def leave(
    me: MemberContext,
    member: Member,
    wire: Wire,
    stray: Stray,
    group: Group,
    records: Records,
    *,
    close: bool,
) -> tuple[Member, Wire, Stray, Group, Records, Seen]:
    """unsubscribe or close: onLeavePrepare, LeaveGroup of a dynamic member, full reset.

    Static members never send LeaveGroup. One that forgets its id leaves a JoinGroup behind that is still on
    its way; as specified it knows itself by its id until that is answered.
    """
    config = me.config(member.stage)
    known = member.state is not MemberState.UNJOINED and member.id != NO_ID
    ought = known and not me.static
    sends = ought and "no_leave_on_unsubscribe" not in config.decisions
    after, seen = leave_prepare(me, member)
    note = Left(me.slot, after.told, sends, ought)
    if sends:
        group, records = removed(me, group, records, member.id)
    forgets = not me.static or "static_forgets_id" in config.decisions
    if forgets and me.static and stray is None and isinstance(wire, Join):
        stray = wire
    if close:
        after, stray = Member(stage=member.stage), stray if isinstance(stray, Join) else None
    else:
        kept = NO_ID if forgets else member.id
        last_gen = member.own_gen if remembers(config) else NONE
        after = Member(Life.UP, member.stage, id=kept, own_gen=last_gen, view=member.view, last=member.last)
    return after, None, stray, group, records, (*seen, note)


def removed(me: MemberContext, group: Group, records: Records, member_id: int) -> tuple[Group, Records]:
    """``removeMemberAndUpdateGroup``: out of the group, which rebalances if it was settled.

    Who leads after the leader is settled at the end of the join phase.
    """
    left = tuple(record for record in records if record.id != member_id)
    if left == records:
        return group, records
    if group.leader == me.id(member_id):
        group = group._replace(leader=None)
    pending = any(record.id == member_id and record.meta is None for record in records)
    if not pending and group.state in (GroupState.STABLE, GroupState.COMPLETING):
        group = group._replace(state=GroupState.PREPARING)
    return group, left


def unsubscribe(
    me: MemberContext, budget: int, member: Member, wire: Wire, stray: Stray, group: Group, records: Records
) -> Iterator[Outcome]:
    """``unsubscribe()``; the application may subscribe again."""
    if works(member) and member.topics:
        *after, seen = leave(me, member, wire, stray, group, records, close=False)
        yield Outcome((budget - 1, *after), seen=tuple(seen))


def subscribe(me: MemberContext, member: Member) -> Iterator[Outcome]:
    """``subscribe()`` after an unsubscribe."""
    if works(member) and not member.topics:
        yield Outcome((member._replace(topics=me.consumer.subscriptions[0]),))


def close(
    me: MemberContext, budget: int, member: Member, wire: Wire, stray: Stray, group: Group, records: Records
) -> Iterator[Outcome]:
    """``close()``; a restart may follow."""
    if works(member):
        if member.received is not None and "assign_during_close_hangs" in me.config(member.stage).decisions:
            yield Outcome((budget - 1, member._replace(stuck=True), wire, stray, group, records))
            return
        *after, seen = leave(me, member, wire, stray, group, records, close=True)
        yield Outcome((budget - 1, *after), seen=tuple(seen))


def poll_interval(
    me: MemberContext, member: Member, wire: Wire, group: Group, records: Records
) -> Iterator[Outcome]:
    """max.poll.interval.ms passes for a member that hangs; one that hangs in assign() is left to the
    coordinator's timeout for those that do not sync."""
    inside = member.state is MemberState.COMPLETING and wire is None
    inside = inside and group.state is GroupState.COMPLETING
    if member.life is Life.HUNG and not inside:
        for outcome in poll_too_late(me, 0, member, group, records):
            yield Outcome(outcome.values[1:], seen=outcome.seen)


def poll_too_late(
    me: MemberContext, budget: int, member: Member, group: Group, records: Records
) -> Iterator[Outcome]:
    """max.poll.interval.ms exceeded: the heartbeat thread leaves and resets; lost at the next poll."""
    if member.life not in (Life.UP, Life.HUNG) or member.state not in (
        MemberState.COMPLETING,
        MemberState.STABLE,
    ):
        return
    forgets = not me.static or "static_forgets_id" in me.config(member.stage).decisions
    after = reset(member, keep_id=not forgets)
    if "prepare_once_per_rebalance" in me.config(member.stage).decisions:
        after = after._replace(prepare=member.prepare)
    if not me.static:
        group, records = removed(me, group, records, member.id)
    yield Outcome((budget - 1, after, group, records), seen=(Noted("max.poll.interval exceeded"),))


# -- the process ---------------------------------------------------------------------------------------


def start(
    me: MemberContext, member: Member, wire: Wire, stray: Stray, cluster: ClusterState
) -> Iterator[Outcome]:
    """The process starts, for the first time or again; a static member presents its instance id.

    What the process before had sent has arrived by then or is lost.
    """
    if member.life in (Life.DOWN, Life.FAILED):
        topics = me.consumer.subscriptions[0]
        fresh = Member(life=Life.UP, stage=member.stage, topics=topics, view=cluster.parts)
        yield Outcome((fresh, None, None))


def crash(me: MemberContext, budget: int, member: Member, wire: Wire, stray: Stray) -> Iterator[Outcome]:
    """The process is killed. A request that left still arrives, its answer goes nowhere."""
    if member.life in (Life.UP, Life.PAUSED, Life.HUNG):
        note = (
            (Noted("owner crashed between join and sync"),) if member.state is MemberState.COMPLETING else ()
        )
        under_way = wire if isinstance(wire, Join | Sync) else None
        left = stray if isinstance(stray, Join) else None
        yield Outcome((budget - 1, Member(stage=member.stage), under_way, left), seen=note)


def pause(me: MemberContext, budget: int, member: Member) -> Iterator[Outcome]:
    """The process stops without noticing it, for as long as it takes."""
    if member.life is Life.UP:
        yield Outcome((budget - 1, member._replace(life=Life.PAUSED)))


def resume(me: MemberContext, member: Member) -> Iterator[Outcome]:
    """It goes on where it stopped."""
    if member.life is Life.PAUSED:
        yield Outcome((member._replace(life=Life.UP),))


def hang(me: MemberContext, budget: int, member: Member, wire: Wire) -> Iterator[Outcome]:
    """The application's thread never comes back from a call, a leader's from assign(); heartbeats go on."""
    if not works(member):
        return
    if isinstance(wire, JoinOk) and member.state is MemberState.PREPARING:
        member, wire = joined(member, wire), None
    yield Outcome((budget - 1, member._replace(life=Life.HUNG), wire))


def disconnect(me: MemberContext, budget: int, member: Member, wire: Wire) -> Iterator[Outcome]:
    """The connection breaks: the request or its response is lost, and the member is told so."""
    if wire is None or (isinstance(wire, Refused) and wire.error is Error.DISCONNECT):
        return
    if member.life is not Life.DOWN:
        api = "sync" if "Sync" in type(wire).__name__ or getattr(wire, "api", "") == "sync" else "join"
        lost = Refused(api, Error.DISCONNECT, member.id, member.generation)
        yield Outcome((budget - 1, lost), seen=(Noted(f"{api} lost"),))


def _up(member: object) -> bool:
    return isinstance(member, Member) and member.life is Life.UP


def _hung(member: object) -> bool:
    return isinstance(member, Member) and member.life is Life.HUNG


def _beating(member: object) -> bool:
    return isinstance(member, Member) and _beats(member)


def _answered(wire: object) -> bool:
    return isinstance(wire, SyncOk | Refused) or (isinstance(wire, JoinOk) and not wire.leader)


def _received(member: object) -> bool:
    return isinstance(member, Member) and member.received is not None


def actions(me: MemberContext) -> tuple[Action, ...]:
    """All actions of this slot's member and of its process."""
    m, w, s, r = (me.name(part) for part in ("member", "wire", "stray", "record"))
    free = Fairness.NONE
    own = (
        Action(name="join", who=me.slot, reads=(m, w), writes=(m, w), run=partial(join, me), guard=_up),
        Action(
            name="receive",
            who=me.slot,
            reads=(w, m),
            writes=(m, w),
            run=lambda w, m: receive(me, m, w),
            guard=_answered,
        ),
        Action(
            name="complete", who=me.slot, reads=(m,), writes=(m,), run=partial(complete, me), guard=_received
        ),
        Action(
            name="heartbeat",
            who=me.slot,
            reads=(m, "group", r),
            writes=(m,),
            run=partial(heartbeat, me),
            guard=_beating,
        ),
        Action(
            name="commit done", who=me.slot, reads=(m,), writes=(m,), run=partial(commit_done, me), guard=_up
        ),
        Action(
            name="refresh",
            who=me.slot,
            reads=(m, "cluster"),
            writes=(m,),
            run=partial(refresh, me),
            guard=_up,
        ),
        Action(name="resume", who=me.slot, reads=(m,), writes=(m,), run=partial(resume, me)),
        Action(
            name="late request arrives",
            who=me.slot,
            reads=(s, "group", r),
            writes=(s,),
            run=partial(late_arrives, me),
            guard=bool,
        ),
        Action(
            name="poll interval",
            who=me.slot,
            reads=(m, w, "group", r),
            writes=(m, "group", r),
            run=partial(poll_interval, me),
            guard=_hung,
        ),
        Action(
            name="late answer",
            who=me.slot,
            reads=(s, m),
            writes=(m, s),
            run=lambda s, m: late_answer(me, m, s),
            guard=bool,
        ),
        Action(
            name="start",
            who=me.slot,
            reads=(m, w, s, "cluster"),
            writes=(m, w, s),
            run=partial(start, me),
            fault=True,
            fairness=free,
        ),
        Action(
            name="subscribe",
            who=me.slot,
            reads=(m,),
            writes=(m,),
            run=partial(subscribe, me),
            guard=_up,
            fault=True,
            fairness=free,
        ),
    )
    whole = ("budget", m, w, s, "group", r)
    costly: dict[str, tuple[tuple[str, ...], tuple[str, ...], Callable[..., Iterator[Outcome]]]] = {
        "crash": (("budget", m, w, s), ("budget", m, w, s), crash),
        "pause": (("budget", m), ("budget", m), pause),
        "hang": (("budget", m, w), ("budget", m, w), hang),
        "close": (whole, whole, close),
        "unsubscribe": (whole, whole, unsubscribe),
        "max poll": (("budget", m, "group", r), ("budget", m, "group", r), poll_too_late),
        "resubscribe": (("budget", m), ("budget", m), resubscribe),
        "enforce": (("budget", m), ("budget", m), enforce_rebalance),
        "disconnect": (("budget", m, w), ("budget", w), disconnect),
        "late request": (("budget", m, s), ("budget", s), send_late),
        "slow commit": (("budget", m, w), ("budget", m), slow_commit),
        "listener throws": (("budget", m), ("budget", m), complete_throwing),
    }
    faults = tuple(
        Action(
            name=name,
            who=me.slot,
            reads=reads,
            writes=writes,
            run=partial(run, me),
            guard=bool,
            fault=True,
            fairness=free,
        )
        for name, (reads, writes, run) in costly.items()
        if name in me.setup.faults
    )
    return own + faults
