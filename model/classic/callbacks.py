"""What a member holds and what its listener hears of it: ownership, and the callbacks that change it.

The order inside follows the Java client; what other clients and older releases do differently is a named
decision.
"""

from __future__ import annotations

from collections.abc import Hashable

from rebalance_verifier.model.classic.state import JoinOk, Member
from rebalance_verifier.model.group.observations import Call, Callback, Completed, Noted, Seen, Threw
from rebalance_verifier.model.group.parts import NO_ID, NONE, NOTHING, Life, MemberState, Parts, Topics
from rebalance_verifier.model.group.setup import ConsumerConfig, MemberContext, Setup


def works(member: Member) -> bool:
    """Check whether the application's thread polls."""
    return member.life is Life.UP and not member.stuck


def reset(member: Member, *, keep_id: bool = False) -> Member:
    """``resetStateAndGeneration``: the membership is gone, what it owned is lost at the next poll."""
    return member._replace(
        state=MemberState.UNJOINED,
        generation=NONE,
        id=member.id if keep_id else NO_ID,
        rejoin=True,
        prepare=True,
    )


def expelled(member: Member, config: ConsumerConfig, *, keep_id: bool = False) -> Member:
    """`reset` in the middle of a rebalance."""
    return prepared_anew(reset(member, keep_id=keep_id), member, config)


def prepared_anew(after: Member, before: Member, config: ConsumerConfig) -> Member:
    """``after`` the membership of ``before`` has ended in the middle of a rebalance: older clients do not
    prepare the next one (KAFKA-12983)."""
    return after if _prepares_anew(config) else after._replace(prepare=before.prepare)


def _prepares_anew(config: ConsumerConfig) -> bool:
    once = {"prepare_once_per_rebalance", "prepare_not_repeated_after_reset"}
    return once.isdisjoint(config.decisions)


def joined(member: Member, wire: JoinOk, config: ConsumerConfig) -> Member:
    """JoinGroup was answered: the generation is the new one before anything was assigned in it."""
    if "members_watch_own_topics" not in config.decisions:
        member = member._replace(watch=None, watched=Topics(0), watch_moved=False)
    return member._replace(state=MemberState.COMPLETING, id=wire.id, generation=wire.generation)


def watches(setup: Setup, member: Member, topics: Topics) -> Member:
    """Return ``member`` with a snapshot of its metadata of ``topics``; it rejoins when that has changed."""
    snapshot = Parts(member.view & setup.parts(topics))
    return member._replace(watch=snapshot, watched=topics, watch_moved=member.view_moved)


def remembers(config: ConsumerConfig) -> bool:
    """Check whether user data tells the generation of the last assignment even when nothing of it is left.

    CooperativeStickyAssignor does; since version 2 of the subscription nobody reads it there.
    """
    carried = config.tells and config.version < 2 and "cooperative-sticky" in config.assignors
    return carried or "sticky" in config.assignors


def drop(member: Member, config: ConsumerConfig, parts: int) -> Member:
    """``member`` without ``parts``."""
    owned = Parts(member.owned & ~parts)
    known = member.own_gen if owned or remembers(config) else NONE
    return member._replace(owned=owned, own_gen=known, unfetched=Parts(member.unfetched & owned))


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
        believed=member.believed,
        midway=midway,
    )
    return drop(member, config, parts)._replace(believed=Parts(member.believed & ~parts)), (seen,)


def join_prepare(me: MemberContext, member: Member) -> tuple[Member, Seen]:
    """onJoinPrepare: EAGER revokes everything, COOPERATIVE what left the subscription; lost after a reset."""
    config = me.config(member.stage)
    gone = (member.generation == NONE, member.id == NO_ID)
    if all(gone) if "lost_only_without_id" in config.decisions else any(gone):
        member = member._replace(prepare=False)
        call = Call.REVOKED if "lost_as_revoked" in config.decisions else Call.LOST
        return give_up(me, member, call, member.owned) if member.owned else (member, ())
    return _revoke_to_join(me, member._replace(prepare=False))


def join_prepare_unaware(me: MemberContext, member: Member) -> tuple[Member, Seen]:
    """Return the same for the membership that there was when it was called: one that ended meanwhile is
    prepared for at the next poll."""
    return _revoke_to_join(me, member._replace(prepare=_prepares_anew(me.config(member.stage))))


def _revoke_to_join(me: MemberContext, member: Member) -> tuple[Member, Seen]:
    config = me.config(member.stage)
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
    if assigned & ~me.setup.parts(member.topics | member.pattern):
        return member._replace(rejoin=True), (Noted("assignment of an old subscription ignored"),)
    seen: list[Hashable] = []
    before, believed = member.owned, member.believed
    base = member.last if "eager_revoke_keeps_last_assigned" in config.decisions else before
    added, revoked = Parts(assigned & ~base), Parts(before & ~assigned)
    current = "no_snapshot_before_callback" not in config.decisions or member.generation != NONE
    rejoin = member.rejoin or member.noted_nothing
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
            return member._replace(believed=believed, rejoin=rejoin), tuple(seen)
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
    keeps_last = (
        "sticky" in config.assignors
        or config.claims_last
        or "eager_revoke_keeps_last_assigned" in config.decisions
    )
    member = member._replace(
        owned=assigned,
        own_gen=member.generation if assigned or remembers(config) else NONE,
        last=assigned if keeps_last else NOTHING,
        believed=believed,
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
