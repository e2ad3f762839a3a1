"""Errors: which one the coordinator answers, and what it makes of the member; heartbeats and commits."""

from __future__ import annotations

from collections.abc import Iterator

from rebalance_verifier.model.classic.callbacks import expelled, leave_prepare, reset, works
from rebalance_verifier.model.classic.state import Group, Member, Records, Refused, Stray
from rebalance_verifier.model.group.observations import Answered, Noted, Seen, Threw
from rebalance_verifier.model.group.parts import NO_ID, NONE, Error, GroupState, Late, Life, MemberState
from rebalance_verifier.model.group.setup import MemberContext
from rebalance_verifier.model.machine import Outcome

RETRIABLE = (Error.NOT_COORDINATOR, Error.DISCONNECT, Error.COORDINATOR_LOAD_IN_PROGRESS)

FATAL = (Error.FENCED_INSTANCE_ID, Error.INCONSISTENT_GROUP_PROTOCOL, Error.GROUP_MAX_SIZE_REACHED)


def membership_error(me: MemberContext, records: Records, member_id: int) -> Error | None:
    """Return why the coordinator does not know a member id: it is gone, or its instance has another one
    now."""
    admitted = [record.id for record in records if record.meta is not None]
    if member_id in admitted:
        return None
    return Error.FENCED_INSTANCE_ID if me.static and admitted else Error.UNKNOWN_MEMBER_ID


def answer_to(
    me: MemberContext, api: str, group: Group, records: Records, member_id: int, generation: int
) -> Error | None:
    """Return what the coordinator answers to a heartbeat, a commit or a ``"transactional commit"`` of
    ``member_id`` in ``generation``; the last is accepted while the leader assigns."""
    if group.state in (GroupState.DEAD, GroupState.EMPTY):
        return Error.UNKNOWN_MEMBER_ID
    error = membership_error(me, records, member_id)
    if error is not None:
        return error
    if generation != group.generation:
        return Error.ILLEGAL_GENERATION
    refusing = {"heartbeat": GroupState.PREPARING, "commit": GroupState.COMPLETING}
    return Error.REBALANCE_IN_PROGRESS if group.state is refusing.get(api) else None


def fail(me: MemberContext, member: Member, error: str) -> tuple[Member, Seen]:
    """poll throws what the application cannot handle: it closes the consumer, which loses what it owned."""
    after, seen = leave_prepare(me, member)
    return Member(life=Life.FAILED, stage=after.stage), (Threw(me.slot, error), *seen)


def refused(me: MemberContext, member: Member, answer: Refused) -> tuple[Member, Seen]:
    """Return the error table of JoinGroup, SyncGroup, Heartbeat and OffsetCommit.

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
        if not acts:
            return member, ()
        return member._replace(id=answer.given, generation=NONE), ()
    if error in RETRIABLE:
        if api == "sync" and error is Error.COORDINATOR_LOAD_IN_PROGRESS:
            return fail(me, member, error)
        resets = "reset_on_retriable" in decisions
        return answered(expelled(member, me.config(member.stage)) if resets else member)
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
    return answered(expelled(member, me.config(member.stage), keep_id=keep))


def _late_commit_resets(member: Member, decisions: frozenset[str]) -> bool:
    if "commit_illegal_generation_always_lost" in decisions:
        return True
    return "late_commit_resets" in decisions and member.state is not MemberState.PREPARING


def heartbeat(me: MemberContext, member: Member, group: Group, records: Records) -> Iterator[Outcome]:
    """A heartbeat that is answered at once; those without an effect are not steps."""
    if not beats(member) or _mute(me, member):
        return
    error = answer_to(me, "heartbeat", group, records, member.id, member.generation)
    if error is None:
        return
    after, seen = refused(me, member, Refused("heartbeat", error, member.id, member.generation))
    if after != member:
        yield Outcome((after,), seen=seen)


def beats(member: Member) -> bool:
    """Check whether the heartbeat thread is at work: since KAFKA-10134 from the JoinGroup response on."""
    if member.life not in (Life.UP, Life.HUNG) or member.generation == NONE or member.id == NO_ID:
        return False
    return member.state is MemberState.STABLE or member.state is MemberState.COMPLETING


def _mute(me: MemberContext, member: Member) -> bool:
    quiet = "no_heartbeat_in_completing" in me.config(member.stage).decisions
    return quiet and member.state is MemberState.COMPLETING


def send_late(me: MemberContext, budget: int, member: Member, stray: Stray) -> Iterator[Outcome]:
    """A heartbeat or a commit leaves and does not arrive yet."""
    if not beats(member) or _mute(me, member) or stray is not None:
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


def late_answer(me: MemberContext, stray: Stray, member: Member) -> Iterator[Outcome]:
    """The answer reaches the member, whatever that is by now."""
    if isinstance(stray, Refused) and member.life in (Life.UP, Life.HUNG):
        late = member.id != stray.id or member.generation != stray.generation
        after, seen = refused(me, member, stray)
        note = (Noted("late answer of an old generation"),) if late else ()
        yield Outcome((after, None), seen=(*seen, *note))
    elif isinstance(stray, Refused) and member.life is not Life.PAUSED:
        yield Outcome((member, None))
