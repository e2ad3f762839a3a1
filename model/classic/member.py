"""The member: ConsumerCoordinator and AbstractCoordinator of one consumer, from JoinGroup to onJoinComplete.

Every function is one action: it takes the values of what it reads and yields what can happen. The order
inside follows the Java client; what other clients and older releases do differently is a named decision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from rebalance_verifier.model.classic.application import (
    close,
    crash,
    disconnect,
    enforce_rebalance,
    hang,
    leave_lost,
    pause,
    poll_interval,
    poll_too_late,
    refresh,
    resubscribe,
    resume,
    start,
    subscribe,
    unsubscribe,
    unsubscribe_midway,
)
from rebalance_verifier.model.classic.callbacks import (
    expelled,
    join_complete,
    join_prepare,
    join_prepare_unaware,
    joined,
    watches,
    works,
)
from rebalance_verifier.model.classic.environment import start_after
from rebalance_verifier.model.classic.errors import (
    FATAL,
    answer_to,
    beats,
    fail,
    heartbeat,
    late_answer,
    late_arrives,
    refused,
    send_late,
)
from rebalance_verifier.model.classic.state import (
    Group,
    Join,
    JoinOk,
    Member,
    Metadata,
    Records,
    Refused,
    Sync,
    SyncOk,
    Wire,
)
from rebalance_verifier.model.group.observations import Claimed, Noted, Seen, Threw
from rebalance_verifier.model.group.parts import NONE, NOTHING, Error, Life, MemberState, Parts
from rebalance_verifier.model.group.setup import ConsumerConfig, MemberContext
from rebalance_verifier.model.machine import Action, Fairness, Footprint, Outcome, Run, Value, fault


def wants_to_join(me: MemberContext, member: Member) -> bool:
    """``rejoinNeededOrPending``: asked for, other subscription, or other metadata at the leader."""
    if not member.subscribes:
        return False
    watched = (member.view & me.setup.parts(member.watched), member.view_moved)
    changed = member.watch is not None and (member.watch, member.watch_moved) != watched
    return member.rejoin or member.joined_topics != member.topics or changed


def metadata(member: Member, config: ConsumerConfig, *, streams: bool = False) -> Metadata:
    """Return what the next JoinGroup says. As specified a claim is labelled with the generation that assigned
    it; Java writes the one last joined, which is another after a SyncGroup that failed, and librdkafka none
    where its assignor is EAGER."""
    held = member.last if config.claims_last else member.owned
    owned = NOTHING if config.version < 1 or "claims_always_empty" in config.decisions else held
    joined_last = not owned or "keep_owned_on_sync_rip" in config.decisions
    label = member.generation if joined_last else member.own_gen
    unlabelled = config.eager and "members_watch_own_topics" in config.decisions
    return Metadata(
        assignors=config.assignors,
        topics=member.topics,
        owned=owned,
        label=label if config.version >= 2 and not unlabelled else NONE,
        own_gen=member.own_gen,
        last=member.last if "sticky" in config.assignors else NOTHING,
        version=config.version,
        tells=config.tells,
        noise=member.noise,
        caught_up=member.caught_up,
        unique=streams and "probing_subscription_repeated" not in config.decisions,
    )


def join(me: MemberContext, member: Member, wire: Wire) -> Iterator[Outcome]:
    """Send JoinGroup, after onJoinPrepare where that is due."""
    if not _can_send(me, member, wire):
        return
    if member.prepare:
        yield _send(me, *join_prepare(me, member))
    else:
        yield _send(me, member)


def _send(me: MemberContext, member: Member, seen: Seen = ()) -> Outcome:
    """JoinGroup, behind what was ``seen`` of onJoinPrepare."""
    config = me.config(member.stage)
    if "unsorted_metadata" in config.decisions:
        member = member._replace(noise=1 - member.noise)
    if "offset_fetch_not_resumed" in config.decisions:
        member = member._replace(unfetched=member.owned)
    member = member._replace(
        state=MemberState.PREPARING, rejoin=_latched(member, config), joined_topics=member.topics
    )
    if "members_watch_own_topics" in config.decisions:
        member = watches(me.setup, member, member.topics)
    meta = metadata(member, config, streams=me.setup.warmups > 0)
    if meta.owned and meta.label != NONE:
        seen = (*seen, Claimed(me.slot, meta.owned, meta.label, meta.own_gen))
    return Outcome((member, Join(member.id, meta)), seen=seen)


def _latched(member: Member, config: ConsumerConfig) -> bool:
    """Check whether what ``rejoinNeededOrPending`` makes of a rejoin that is called for."""
    return member.rejoin or "rejoin_flag_not_latched" not in config.decisions


def _can_send(me: MemberContext, member: Member, wire: Wire) -> bool:
    ready = works(member) and wire is None and member.received is None
    return ready and not member.committing and wants_to_join(me, member)


def slow_commit(me: MemberContext, budget: int, member: Member, wire: Wire) -> Iterator[Outcome]:
    """The commit of onJoinPrepare takes longer than a poll; EAGER stops fetching until it has revoked."""
    config = me.config(member.stage)
    if _can_send(me, member, wire) and member.prepare and member.owned and member.generation != NONE:
        pauses = config.eager and "fetch_while_pending_revocation" not in config.decisions
        stopped = member.owned if pauses else NOTHING
        after = member._replace(committing=True, unfetched=stopped, rejoin=_latched(member, config))
        yield Outcome((budget - 1, after))


def commit_done(me: MemberContext, member: Member) -> Iterator[Outcome]:
    """The commit of onJoinPrepare came back, or its timer ran out."""
    again = "prepare_commit_never_done" in me.config(member.stage).decisions and member.generation != NONE
    if works(member) and member.committing and not again:
        yield Outcome((member._replace(committing=False),))


def commit_refused(
    me: MemberContext, member: Member, wire: Wire, group: Group, records: Records
) -> Iterator[Outcome]:
    """The commit of onJoinPrepare is answered with what ends the membership; other errors change nothing."""
    if not works(member) or member.generation == NONE:
        return
    error = answer_to(me, "commit", group, records, member.id, member.generation)
    if error not in (Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION):
        return
    after, seen = refused(me, member, Refused("commit", error, member.id, member.generation))
    after = after._replace(committing=False)
    if after.generation == NONE and "join_sent_after_reset" in me.config(member.stage).decisions:
        after, prepared = join_prepare_unaware(me, after)
        yield _send(me, after, (*seen, *prepared))
    else:
        yield Outcome((after, wire), seen=seen)


def prepare(me: MemberContext, member: Member, wire: Wire) -> Iterator[Outcome]:
    """onJoinPrepare of a poll that finds under way what was sent as the membership ended."""
    if works(member) and _prepares_again(member) and wire is not None:
        after, seen = join_prepare(me, member)
        yield Outcome((after,), seen=seen)


def _prepares_again(member: Member) -> bool:
    """Check whether its JoinGroup went out unprepared; any other leaves ``prepare`` off."""
    return member.prepare and member.state in (MemberState.PREPARING, MemberState.COMPLETING)


def receive(me: MemberContext, wire: Wire, member: Member) -> Iterator[Outcome]:
    """A follower's JoinGroup response, or any SyncGroup response, or an error of the two."""
    if not works(member):
        return
    match wire:
        case JoinOk(leader=False):
            if member.state is not MemberState.PREPARING:
                yield Outcome((member, None), seen=(Noted("JoinGroup response after a reset"),))
                return
            member = joined(member, wire, me.config(member.stage))
            yield Outcome((member, Sync(wire.id, wire.generation)))
        case SyncOk(parts=parts, copies=copies):
            valid = member.state is MemberState.COMPLETING and member.id == wire.id
            if not valid or member.generation != wire.generation:
                yield Outcome(
                    (member._replace(rejoin=True), None), seen=(Noted("SyncGroup response after a reset"),)
                )
            elif parts is None:
                member, seen = fail(me, member, "assignment of no bytes")
                yield Outcome((member, None), seen=seen)
            else:
                swallowed = (Noted("enforceRebalance swallowed"),) if member.enforced else ()
                member = member._replace(
                    state=MemberState.STABLE, rejoin=False, received=parts, enforced=False,
                    copies=copies, caught_up=Parts(member.caught_up & (parts | copies.warmups)),
                )  # fmt: skip
                yield Outcome((member, None), seen=swallowed)
        case Refused():
            member, seen = refused(me, member, wire)
            yield Outcome((member, None), seen=seen)


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
            after = expelled(member, config)._replace(received=None)
            yield Outcome((after,), seen=(Noted("reset between SyncGroup and callback"),))
            return
    yield _completed(me, member, member.received)


def polls_on(me: MemberContext, budget: int, wire: Wire, member: Member) -> Iterator[Outcome]:
    """An error that is not to be retried is thrown by poll, and the application, which should close the
    consumer, polls on: state, generation, member id and what it owns are as they were."""
    if works(member) and isinstance(wire, Refused) and wire.error in FATAL:
        yield Outcome((budget - 1, None, member._replace(rejoin=True)), seen=(Threw(me.slot, wire.error),))


def complete_throwing(me: MemberContext, budget: int, member: Member) -> Iterator[Outcome]:
    """Complete with a listener that throws: the steps all run, then poll throws."""
    if works(member) and member.received is not None and member.state is MemberState.STABLE:
        completed = _completed(me, member, member.received, throws=True)
        yield completed._replace(values=(budget - 1, *completed.values))


def complete_again(me: MemberContext, budget: int, member: Member) -> Iterator[Outcome]:
    """Complete again, as Java does: the future of the join is forgotten once onJoinComplete has returned. So
    the next poll completes it once more, and nothing is prepared before that."""
    for outcome in complete_throwing(me, budget, member):
        left, after = outcome.values
        assert isinstance(after, Member)
        if any(isinstance(one, Threw) for one in outcome.seen):
            yield Outcome((left, after._replace(received=member.received, prepare=False)), seen=outcome.seen)


def _completed(me: MemberContext, member: Member, assigned: Parts, *, throws: bool = False) -> Outcome:
    """onJoinComplete, behind the onJoinPrepare that the JoinGroup went without."""
    prepared: Seen = ()
    if member.prepare and member.state is MemberState.STABLE:
        member, prepared = join_prepare(me, member)
    member, seen = join_complete(me, member, assigned, throws=throws)
    return Outcome((member,), seen=(*prepared, *seen))


def _up(member: object) -> bool:
    return isinstance(member, Member) and member.life is Life.UP


def _hung(member: object) -> bool:
    return isinstance(member, Member) and member.life is Life.HUNG


def _beating(member: object) -> bool:
    return isinstance(member, Member) and beats(member)


def _committing(member: object) -> bool:
    return isinstance(member, Member) and member.committing


def _preparing(member: object) -> bool:
    return isinstance(member, Member) and _prepares_again(member)


def _answered(wire: object) -> bool:
    return isinstance(wire, SyncOk | Refused) or (isinstance(wire, JoinOk) and not wire.leader)


def _received(member: object) -> bool:
    return isinstance(member, Member) and member.received is not None


def actions(me: MemberContext) -> tuple[Action, ...]:
    """Return all actions of this slot's member and of its process."""
    m, w, s, r = (me.name(part) for part in ("member", "wire", "stray", "record"))
    whole = ("budget", m, w, s, "group", r)
    both = ("budget", m)
    left = (me.name("behind"),) if me.setup.breaks_connections else ()
    # What it reads, what it writes, what it does, its guard.
    own: tuple[tuple[str, Footprint, Footprint, Run, Callable[[Value], bool] | None], ...] = (
        ("join", (m, w), (m, w), join, _up),
        ("receive", (w, m), (m, w), receive, _answered),
        ("complete", (m,), (m,), complete, _received),
        ("heartbeat", (m, "group", r), (m,), heartbeat, _beating),
        ("commit done", (m,), (m,), commit_done, _committing),
        ("commit refused", (m, w, "group", r), (m, w), commit_refused, _committing),
        ("prepare", (m, w), (m,), prepare, _preparing),
        ("refresh", (m, "cluster"), (m,), refresh, _up),
        ("resume", (m,), (m,), resume, None),
        ("late request arrives", (s, "group", r), (s,), late_arrives, bool),
        ("poll interval", (m, w, "group", r), (m, "group", r), poll_interval, _hung),
        ("late answer", (s, m), (m, s), late_answer, bool),
        ("start", (m, w, s, "cluster", *left), (m, w, s, *left), start_after if left else start, None),
        ("subscribe", (m,), (m,), subscribe, _up),
    )
    costly: tuple[tuple[str, Footprint, Footprint, Run], ...] = (
        ("crash", ("budget", m, w, s), ("budget", m, w, s), crash),
        ("pause", both, both, pause),
        ("hang", ("budget", m, w), ("budget", m, w), hang),
        ("close", whole, whole, close),
        ("unsubscribe", whole, whole, unsubscribe),
        ("max poll", ("budget", m, "group", r), ("budget", m, "group", r), poll_too_late),
        ("resubscribe", both, both, resubscribe),
        ("enforce", both, both, enforce_rebalance),
        ("disconnect", ("budget", m, w), ("budget", w), disconnect),
        ("leave lost", ("budget", m, w, s), ("budget", m, w, s), leave_lost),
        ("late request", ("budget", m, s), ("budget", s), send_late),
        ("slow commit", ("budget", m, w), both, slow_commit),
        ("listener throws", both, both, complete_throwing),
        ("completes again", both, both, complete_again),
        ("polls on", ("budget", w, m), ("budget", w, m), polls_on),
        ("unsubscribe midway", whole, whole, unsubscribe_midway),
    )
    steps = [
        Action(name=name, who=me.slot, reads=reads, writes=writes, run=partial(run, me), guard=guard)
        for name, reads, writes, run, guard in own
    ]
    *fair, start_, subscribe_ = steps
    free = [action._replace(fault=True, fairness=Fairness.NONE) for action in (start_, subscribe_)]
    faults = [
        fault(name, me.slot, reads, writes, partial(run, me))
        for name, reads, writes, run in costly
        if name in me.setup.faults
    ]
    return (*fair, *free, *faults)
