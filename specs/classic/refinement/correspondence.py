"""Which actions of the logic a step of the executable model stands for.

One function for each action of the model. It reads the parameters off from the states before and after, as
the one that wrote the model would: nothing is searched for, and nothing is decided here. Whether the logic
allows these actions is asked in ``refinement``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from rebalance_verifier.model.classic import state as s
from rebalance_verifier.model.classic.coordinator import over_capacity
from rebalance_verifier.model.classic.errors import FATAL, RETRIABLE, answer_to
from rebalance_verifier.model.classic.join_group import connection_of
from rebalance_verifier.model.group import parts as p
from rebalance_verifier.specs.classic.refinement.abstraction import NoCounterpartError
from rebalance_verifier.specs.classic.refinement.moves import (
    Counterpart,
    Move,
    SpecStep,
    changed,
    consumer,
    of,
    requested,
)


def steps(move: Move) -> list[SpecStep]:
    """Return the actions of the logic that ``move`` stands for, the witnesses read off from both states.

    Raises NoCounterpartError when there are none.
    """
    if move.event.action not in COUNTERPARTS:
        raise NoCounterpartError("no action of the logic does this")
    return list(COUNTERPARTS[move.event.action](move))


def _nothing(move: Move) -> Iterable[SpecStep]:
    return ()


def _gone(move: Move, *, late: bool) -> Iterator[SpecStep]:
    """Lose or leave behind what was under way for a process that is gone; ``late``: what is late,
    too."""
    if len(move.new.behind) > len(move.old.behind):
        yield from _left_behind(move)
    elif not move.old.idle and move.new.idle:
        yield "lost", (move.c,)
    if late:
        yield from _stray_lost(move)


def _stray_lost(move: Move) -> Iterator[SpecStep]:
    """Lose what was late, or a JoinGroup that its sender gave up on; nothing if it is still
    there."""
    if move.old.stray is not None and move.new.stray is None:
        yield ("left_lost", ()) if isinstance(move.old.stray, s.Join) else ("stray_lost", (move.c,))


def _join(move: Move) -> Iterator[SpecStep]:
    if move.old.member.prepare:
        yield from _prepare(move)
    yield "join", (move.c,)


def _prepare(move: Move) -> Iterator[SpecStep]:
    lost = move.old.member.generation == p.NONE
    yield "partitions_lost" if lost else "partitions_revoked_to_join", (move.c,)


def _commit_refused(move: Move) -> Iterator[SpecStep]:
    """The logic has no commit that is answered at once; to the member its error is that of a heartbeat."""
    m, c = move.old.member, move.c
    error = answer_to(move.me, "commit", move.group, move.old.records, m.id, m.generation)
    illegal = error is p.Error.ILLEGAL_GENERATION
    yield "heartbeat_of_old" if illegal else "heartbeat_of_unknown", (c, move.id(m.id))
    if not move.old.wire and move.new.wire:
        yield "join", (c,)


def _receive(move: Move) -> str:
    m, answer = move.old.member, move.old.wire
    match answer:
        case s.JoinOk():
            return "follow" if m.state is p.MemberState.PREPARING else "join_answer_too_late"
        case s.SyncOk():
            present = m.state is p.MemberState.COMPLETING and (m.id, m.generation) == answer[:2]
            return "sync_answered" if present else "sync_answer_too_late"
    return _refused(m, answer)


def _refused(m: s.Member, answer: s.Refused) -> str:
    joins = m.state is p.MemberState.PREPARING
    if answer.error is p.Error.MEMBER_ID_REQUIRED:
        return "id_given" if joins and m.id == p.NO_ID else "id_given_too_late"
    if answer.error in RETRIABLE:
        return "try_again"
    if answer.error is p.Error.REBALANCE_IN_PROGRESS:
        return "told_to_rejoin"
    if answer.error in FATAL:
        return "fails"
    right = joins if answer.api == "join" else m.generation == answer.generation
    return "expelled" if right and m.id == answer.id else "expelled_before"


def _complete(move: Move) -> Iterator[SpecStep]:
    m, c = move.old.member, move.c
    assigned = m.received or 0
    if m.state is not p.MemberState.STABLE or m.generation == p.NONE:
        yield "complete_after_reset", (c,)
    elif foreign := p.each(assigned & ~move.map.setup.parts(m.topics)):
        yield "complete_of_old_subscription", (c, foreign[0])
    else:
        if revoked := p.each(m.owned & ~assigned):
            yield "partitions_revoked", (c, revoked[0])
        yield "partitions_assigned", (c,)
        if m.noted_nothing:
            yield "enforce_rebalance", (c,)


def _completes_again(move: Move) -> Iterator[SpecStep]:
    for name, parameters in _complete(move):
        yield "assigned_and_thrown" if name == "partitions_assigned" else name, parameters


def _heartbeat(move: Move) -> Iterator[SpecStep]:
    m, c = move.old.member, move.c
    error = answer_to(move.me, "heartbeat", move.group, move.old.records, m.id, m.generation)
    match error:
        case p.Error.UNKNOWN_MEMBER_ID:
            yield "heartbeat_of_unknown", (c, move.id(m.id))
        case p.Error.ILLEGAL_GENERATION:
            yield "heartbeat_of_old", (c, move.id(m.id))
        case p.Error.REBALANCE_IN_PROGRESS:
            yield "heartbeat_in_rebalance", (c, move.id(m.id))
        case _:
            present = _admitted(move.old.records)[0]
            yield "heartbeat_of_fenced", (c, move.id(m.id), move.id(present.id))
            yield from _gone(move, late=False)


def _late_request_arrives(move: Move) -> Iterator[SpecStep]:
    kinds = {
        p.Error.UNKNOWN_MEMBER_ID: "late_request_of_unknown",
        p.Error.FENCED_INSTANCE_ID: "late_request_of_fenced",
        p.Error.ILLEGAL_GENERATION: "late_request_of_old",
        p.Error.REBALANCE_IN_PROGRESS: "late_request_in_rebalance",
    }
    answer = move.new.stray
    yield kinds[answer.error] if answer else "late_request_accepted", (move.c, move.id(move.old.stray.id))


def _late_answer(move: Move) -> Iterator[SpecStep]:
    m, answer = move.old.member, move.old.stray
    if move.old.gone:
        yield "stray_lost", (move.c,)
    elif answer.error is p.Error.REBALANCE_IN_PROGRESS or (m.id, m.generation) != answer[2:4]:
        yield "late_answer", (move.c,)
    elif answer.error in FATAL:
        yield "late_answer_fails", (move.c,)
        yield from _gone(move, late=False)
    else:
        yield "late_answer_expels", (move.c,)


def _start(move: Move) -> Iterator[SpecStep]:
    yield from _gone(move, late=True)
    yield "start", (move.c,)


# -- connections that break ----------------------------------------------------------------------------


def _left_behind(move: Move) -> Iterator[SpecStep]:
    """Leave requests under way on a connection that broke."""
    request = move.old.wire
    if isinstance(request, s.Sync):
        generation = move.map.generation(request.generation)
        yield "sync_left_behind", (move.c, move.id(request.id), generation)
    elif request.id == p.NO_ID:
        yield "new_join_left_behind", (move.c,)
    else:
        yield "join_left_behind", (move.c, move.id(request.id))


def _late_leave(move: Move) -> Iterator[SpecStep]:
    """The member goes, and its LeaveGroup is as good as the end of its session."""
    if isinstance(move.old.wire, s.Join | s.Sync) and move.event.choice != "max poll":
        yield from _left_behind(move)
    yield from _leave_lost(move)


def _leave_lost(move: Move) -> Iterator[SpecStep]:
    kind = {"max poll": "poll_too_late", "close": "close", "unsubscribe": "unsubscribe"}
    yield f"{kind[move.event.choice]}_unnoticed", (move.c,)
    if move.event.choice == "close":
        yield from _stray_lost(move)


def _arrived(move: Move) -> s.Join | s.Sync | s.LeaveGroup:
    """Return which of the requests that were left behind has arrived: the first of its connection."""
    return move.old.behind[connection_of(move.event.choice)][0]


def _left_join_arrives(move: Move) -> Iterator[SpecStep]:
    arrives = move.old.stray if move.event.action == "abandoned join" else _arrived(move)
    request, old, new = arrives, move.old.records, move.new.records
    changed = [record for record in new if record not in old]
    if not changed:
        yield "left_lost", ()
    elif request.id != p.NO_ID:
        yield "left_join_arrives", (move.id(request.id),)
    else:
        m, gone = move.id(changed[0].id), [record.id for record in _admitted(old) if record not in new]
        if changed[0].meta is None:
            yield "left_join_without_id", (move.c, m)
        elif not gone:
            yield "left_join_of_static", (move.c, m)
        else:
            quiet = not changed[0].joined
            yield "left_static_returns" if quiet else "left_static_replaced", (move.c, m, move.id(gone[0]))


def _left_sync_arrives(move: Move) -> Iterator[SpecStep]:
    if move.old.records != move.new.records:
        yield "left_sync_arrives", (move.id(_arrived(move).id),)
    else:
        yield "left_lost", ()


def _left_decision_arrives(move: Move) -> Iterator[SpecStep]:
    yield "left_decision_arrives", (move.id(_arrived(move).id),)
    yield from _parked_answered(move)


def _left_leave_arrives(move: Move) -> Iterator[SpecStep]:
    gone = [record for record in move.old.records if record not in move.new.records]
    for record in gone:
        yield "session_lost", (move.id(record.id),)


def _crash(move: Move) -> Iterator[SpecStep]:
    yield "crash", (move.c,)
    yield from _gone(move, late=True)


def _hang(move: Move) -> str:
    inside = isinstance(move.old.wire, s.JoinOk) and move.old.member.state is p.MemberState.PREPARING
    return "hang_in_assign" if inside else "hang"


def _close(move: Move) -> Iterator[SpecStep]:
    leaves = move.me.config(move.old.member.stage).leaves
    yield "close" if leaves else "close_unnoticed", (move.c,)
    yield from _stray_lost(move)


def _bounce(move: Move) -> Iterator[SpecStep]:
    yield from _close(move)
    yield "reconfigure", (move.c,)


def _requests_rejoin(move: Move) -> Iterator[SpecStep]:
    """``requestRejoin``, by the application or by a poll that finds other metadata or another subscription.

    Such a poll waits for its commit first; the rejoin stays called for if the change is gone by then.
    """
    if move.new.member.rejoin and not move.old.member.rejoin:
        yield "enforce_rebalance", (move.c,)


def _assign(move: Move) -> str:
    answer, request = move.old.wire, move.new.wire
    if move.old.member.state is not p.MemberState.PREPARING:
        return "join_answer_too_late"
    if answer.skip:
        return "follow"
    if request is None:
        return "lead_in_vain"
    return "lead" if request.grants else "lead_too_late"


def _join_request(move: Move) -> Iterator[SpecStep]:
    request, answer, c = move.old.wire, move.new.wire, move.c
    if isinstance(answer, s.Refused):
        match answer.error:
            case p.Error.MEMBER_ID_REQUIRED:
                yield "join_refused_without_id", (c, move.id(answer.given))
            case p.Error.INCONSISTENT_GROUP_PROTOCOL:
                yield "join_inconsistent", (c,)
            case p.Error.GROUP_MAX_SIZE_REACHED:
                yield "group_full", (c,)
            case p.Error.FENCED_INSTANCE_ID:
                yield "join_of_fenced", (c, move.id(request.id))
            case _:
                yield "join_of_unknown", (c, move.id(request.id))
        return
    m, quiet = move.id(answer.id), isinstance(answer, s.JoinOk)
    if request.id != p.NO_ID:
        pending = any(record.meta is None for record in move.old.records if record.id == request.id)
        yield "join_again" if quiet else "join_with_given_id" if pending else "join_of_member", (c, m)
        return
    left = [record.id for record in _admitted(move.old.records) if record not in move.new.records]
    if left:
        yield "static_returns" if quiet else "static_replaced", (c, m, move.id(left[0]))
    else:
        yield "join_of_static", (c, m)


def _join_phase_ends(move: Move) -> Iterator[SpecStep]:
    group = move.group_after
    generation = move.map.generation(group.generation)
    if group.leader is None or group.protocol is None:
        yield "join_phase_ends_empty", (generation,)
        return
    yield "join_phase_ends", (generation, move.map.id(*group.leader), move.map.assignor(group.protocol))
    for old, new in zip(move.before, move.after, strict=True):
        if isinstance(old.wire, s.JoinParked) and isinstance(new.wire, s.JoinOk):
            yield "join_answered", (old.slot, move.map.id(old.slot, new.wire.id))


def _sync_request(move: Move) -> str:
    match move.new.wire:
        case s.SyncOk():
            return "sync_of_settled"
        case s.SyncParked():
            return "sync_parks"
        case s.Refused(error=p.Error.UNKNOWN_MEMBER_ID):
            return "sync_of_unknown"
        case s.Refused(error=p.Error.FENCED_INSTANCE_ID):
            return "sync_of_fenced"
        case s.Refused(error=p.Error.ILLEGAL_GENERATION):
            return "sync_of_old"
    return "sync_in_rebalance"


def _leader_sync(move: Move) -> Iterator[SpecStep]:
    yield "leader_syncs", (move.c, move.id(move.old.wire.id))
    yield from _parked_answered(move)


def _parked_answered(move: Move) -> Iterator[SpecStep]:
    for old, new in zip(move.before, move.after, strict=True):
        if isinstance(old.wire, s.SyncParked) and isinstance(new.wire, s.SyncOk):
            yield "sync_parked_answered", (old.slot, move.map.id(old.slot, old.wire.id))


def _sync_not_stored(move: Move) -> Iterator[SpecStep]:
    logged = move.event.choice == "logged"
    yield "sync_stored_in_vain" if logged else "sync_not_stored", (move.c, move.id(move.old.wire.id))
    for old, new in zip(move.before, move.after, strict=True):
        if isinstance(old.wire, s.SyncParked) and isinstance(new.wire, s.Refused):
            yield "turned_away", (old.slot,)


def _return_not_stored(move: Move) -> Iterator[SpecStep]:
    if move.event.choice == "logged":
        [stored] = move.new.log
        yield (
            "return_stored_in_vain",
            (move.c, move.id(stored.id), move.id(_admitted(move.old.records)[0].id)),
        )
    else:
        yield "turned_away", (move.c,)


def _join_refused(move: Move) -> str:
    fenced = move.new.wire.error is p.Error.FENCED_INSTANCE_ID
    return "join_of_replaced" if fenced else "join_of_removed"


def _timeout(of_join: str, of_sync: str) -> Counterpart:
    """A member that syncs too late is removed, one that joins too late is given up."""
    return of(lambda move: of_sync if len(move.new.records) < len(move.old.records) else of_join, changed)


def _failover(move: Move) -> Iterator[SpecStep]:
    """The coordinator moves, and every request that is in flight is turned away."""
    yield "failover", ()
    if move.map.setup.lowers and over_capacity(move.map.setup, [old.log for old in move.before]):
        yield "over_capacity", ()
    for old, new in zip(move.before, move.after, strict=True):
        match old.wire, new.wire:
            case s.Sync(), s.Refused(error=p.Error.REBALANCE_IN_PROGRESS):
                yield "sync_while_loading", (old.slot,)
            case (s.Join() | s.Sync(), s.Refused()) if not old.idle:
                yield "turned_away", (old.slot,)


def _admitted(records: s.Records) -> list[s.MemberRecord]:
    return [record for record in records if record.meta is not None]


COUNTERPARTS: Mapping[str, Counterpart] = {
    # -- the member --
    "join": _join,
    "receive": of(_receive, consumer),
    "complete": _complete,
    "listener throws": _complete,
    "completes again": _completes_again,
    "polls on": of("polls_on", consumer),
    "unsubscribe midway": of("unsubscribe_midway", consumer),
    "heartbeat": _heartbeat,
    "slow commit": _requests_rejoin,
    "commit done": _nothing,
    "commit refused": _commit_refused,
    "prepare": _prepare,
    "refresh": of("refresh", consumer),
    "resume": of("resume", consumer),
    "late request arrives": _late_request_arrives,
    "poll interval": of("poll_too_late", consumer),
    "max poll": of("poll_too_late", consumer),
    "late answer": _late_answer,
    "start": _start,
    "subscribe": of("subscribe", consumer),
    "crash": _crash,
    "pause": of("pause", consumer),
    "hang": of(_hang, consumer),
    "close": _close,
    "unsubscribe": of("unsubscribe", consumer),
    "resubscribe": of("resubscribe", consumer),
    "enforce": _requests_rejoin,
    "asks again": _requests_rejoin,
    "catches up": _nothing,
    "disconnect": of(lambda move: "lost" if move.old.gone else "disconnect", consumer),
    "late request": of(lambda move: f"{move.new.stray.api}_late", consumer),
    # -- the leader --
    "assign": of(_assign, consumer),
    # -- the coordinator --
    "join request": _join_request,
    "join phase ends": _join_phase_ends,
    "sync request": of(_sync_request, consumer, requested),
    "leader sync": _leader_sync,
    "sync refused": of("sync_parked_refused", consumer),
    "join refused": of(_join_refused, consumer, requested),
    "append fails": of("append_fails", consumer, requested),
    "session expires": of("session_expires", changed),
    **dict.fromkeys(("session timeout", "member removed"), of("session_lost", changed)),
    "sync not stored": _sync_not_stored,
    "return not stored": _return_not_stored,
    "leave lost": _leave_lost,
    "rebalance timeout": _timeout("rebalance_timeout", "sync_timeout"),
    "slow member": _timeout("too_slow_to_join", "too_slow_to_sync"),
    "left behind": _left_behind,
    "late leave": _late_leave,
    **dict.fromkeys(("left join arrives", "abandoned join"), _left_join_arrives),
    "left sync arrives": _left_sync_arrives,
    "left decision arrives": _left_decision_arrives,
    "left leave arrives": _left_leave_arrives,
    "failover": _failover,
    "group expires": of("group_expires"),
    # -- the environment --
    "bounce": _bounce,
    **dict.fromkeys(("topic grows", "topic shrinks", "topic deleted", "racks change"), of("topics_change")),
}
"""By the model's actions. As specified no JoinGroup is given up on, so none that is abandoned arrives."""
