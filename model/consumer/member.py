"""The client: ``ConsumerMembershipManager`` and its heartbeats, reconciliation and callbacks.

Every function is one action: it takes the values of what it reads and yields what can happen. The order
inside follows the Java client; what other releases do differently is a named decision of the member.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rebalance_verifier.model.consumer.conversion import may_upgrade
from rebalance_verifier.model.consumer.coordinator import heartbeat as handled
from rebalance_verifier.model.consumer.observations import Acknowledged, Ended
from rebalance_verifier.model.consumer.state import (
    INSIDE,
    AnyMember,
    Beat,
    BeatError,
    BeatKind,
    BeatOk,
    BeatRefused,
    BeatWire,
    ClientState,
    ConsumerGroup,
    ConsumerMember,
    ConsumerRecords,
    LateCommit,
    epoch_of,
    unused,
)
from rebalance_verifier.model.group.observations import Call, Callback, Noted, Seen
from rebalance_verifier.model.group.parts import NONE, NOTHING, ClusterState, Late, Life, Parts, Topics
from rebalance_verifier.model.group.setup import MemberContext
from rebalance_verifier.model.machine import Outcome

ACTIVE = (ClientState.JOINING, *INSIDE)
"""States in which heartbeats are sent, and their answers heard."""


def works(member: AnyMember) -> bool:
    """Check whether its application polls."""
    return member.life is Life.UP


def beats(member: ConsumerMember) -> bool:
    """Check whether its background thread runs."""
    return member.life in (Life.UP, Life.HUNG)


# -- heartbeats ----------------------------------------------------------------------------------------


def send(me: MemberContext, member: ConsumerMember, wire: BeatWire) -> Iterator[Outcome]:
    """The next heartbeat. One that acknowledges carries the assignment; so does one after a lost answer."""
    early = member.state is ClientState.FENCED and "heartbeat_while_fenced" in _decisions(me, member)
    if not beats(member) or wire is not None or not (member.state in ACTIVE or early):
        return
    if member.state is ClientState.JOINING or early:
        beat = Beat(BeatKind.JOIN, member.id, NONE, NOTHING, True, member.topics, member.pattern)
        yield Outcome((member._replace(full=False, unsent=False), beat))
        return
    carries = member.full or member.unsent
    owned = claims(member, _decisions(me, member)) if carries else None
    beat = Beat(BeatKind.STEADY, member.id, member.epoch, owned, member.full, member.topics, member.pattern)
    state = member.state
    if state is ClientState.ACKNOWLEDGING:
        state = ClientState.RECONCILING if member.fresh else ClientState.STABLE
    seen = () if owned is None else (Acknowledged(me.slot, owned, member.owned),)
    yield Outcome((member._replace(full=False, unsent=False, state=state), beat), seen=seen)


def claims(member: ConsumerMember, decisions: frozenset[str]) -> Parts:
    """Return what a heartbeat gives as its sender's. The coordinator takes what is left out for revoked, so
    as specified that is everything the client has or may come to have: the target that it has received, too,
    as it may be reconciled before the answer is here. As shipped it is what was reconciled last."""
    if "claims_reconciled_only" in decisions:
        return member.claim
    return Parts(member.claim | member.owned | (member.goal or 0) | (member.target or 0))


def receive(me: MemberContext, wire: BeatWire, member: ConsumerMember) -> Iterator[Outcome]:
    """The answer to the outstanding heartbeat."""
    if not beats(member) or not isinstance(wire, BeatOk | BeatRefused):
        return
    early = member.state is ClientState.FENCED and "heartbeat_while_fenced" in _decisions(me, member)
    if wire.id != member.id or not (member.state in ACTIVE or early):
        yield Outcome((member, None))
    elif isinstance(wire, BeatOk):
        yield Outcome((_taken(member, wire), None))
    else:
        after, seen = _refused(me, member, wire.error)
        yield Outcome((after, None), seen=seen)


def _taken(member: ConsumerMember, answer: BeatOk) -> ConsumerMember:
    """``onHeartbeatSuccess``; a new target is stored, and never interrupts a reconciliation."""
    if answer.epoch == NONE:  # of a leave: it is about a membership that has ended
        return member
    member = member._replace(epoch=answer.epoch)
    if answer.parts is None:
        return member
    if answer.parts != member.target:
        member = member._replace(target=answer.parts, fresh=True)
    if member.fresh or member.goal is not None:
        return member._replace(state=ClientState.RECONCILING)
    if member.state in (ClientState.JOINING, ClientState.RECONCILING):
        return member._replace(state=ClientState.STABLE)
    return member


FENCING = (BeatError.UNKNOWN_MEMBER_ID, BeatError.FENCED_MEMBER_EPOCH)
"""Errors by which a membership ends, and after which the client joins again."""


def _refused(me: MemberContext, member: ConsumerMember, error: BeatError) -> tuple[ConsumerMember, Seen]:
    decisions = _decisions(me, member)
    if error is BeatError.DISCONNECT:
        return member._replace(full=True), ()
    if error is BeatError.UNRELEASED_INSTANCE_ID and "unreleased_fatal" not in decisions:
        return member, ()
    gone = error in FENCING or (
        error is BeatError.GROUP_ID_NOT_FOUND
        and "group_not_found_fatal" not in decisions
        and may_upgrade(me.setup)
    )
    if gone:
        return fenced(me, member, ClientState.FENCED), (Noted("member is fenced"),)
    calls, after = lost(me, member)
    failed = ConsumerMember(life=Life.FAILED, stage=after.stage)
    return failed, (*calls, Ended(me.slot, error))


def fenced(me: MemberContext, member: ConsumerMember, state: ClientState) -> ConsumerMember:
    """The membership is gone; what is consumed stays until onPartitionsLost has run."""
    goal = member.goal if "no_rejoin_flag" in _decisions(me, member) else None
    return member._replace(
        state=state,
        epoch=NONE,
        target=None,
        fresh=False,
        goal=goal,
        calls=member.calls and goal is not None,
        unsent=False,
        full=False,
    )


def lose(me: MemberContext, member: ConsumerMember) -> Iterator[Outcome]:
    """onPartitionsLost of everything; then it joins again, with the same id."""
    if works(member) and member.state in (ClientState.FENCED, ClientState.STALE):
        calls, after = lost(me, member)
        yield Outcome((after._replace(state=ClientState.JOINING),), seen=calls)


def lost(me: MemberContext, member: ConsumerMember) -> tuple[Seen, ConsumerMember]:
    """onPartitionsLost where there is something to lose."""
    calls = (_call(me, member, Call.LOST, member.owned, reset=True),) if member.owned else ()
    return calls, member._replace(owned=NOTHING, believed=NOTHING, claim=NOTHING)


def _call(me: MemberContext, member: ConsumerMember, call: Call, parts: Parts, *, reset: bool) -> Callback:
    return Callback(call, me.slot, parts, False, reset, member.owned, member.believed)


def _decisions(me: MemberContext, member: ConsumerMember) -> frozenset[str]:
    return me.config(member.stage).decisions


# -- reconciliation ------------------------------------------------------------------------------------


def begin(me: MemberContext, member: ConsumerMember) -> Iterator[Outcome]:
    """``maybeReconcile``: takes the newest target, if none is being reconciled."""
    if works(member) and member.state is ClientState.RECONCILING and member.goal is None:
        yield Outcome((member._replace(goal=member.target or NOTHING, fresh=False),))


def revoke(me: MemberContext, member: ConsumerMember) -> Iterator[Outcome]:
    """onPartitionsRevoked of what the goal leaves out, behind its commit."""
    if works(member) and member.goal is not None and _goes_on(me, member) and member.owned & ~member.goal:
        call = _call(me, member, Call.REVOKED, Parts(member.owned & ~member.goal), reset=False)
        kept = Parts(member.owned & member.goal)
        yield Outcome((member._replace(owned=kept, believed=kept),), seen=(call,))


def assign(me: MemberContext, member: ConsumerMember) -> Iterator[Outcome]:
    """It consumes what is new, and onPartitionsAssigned begins, even if that is nothing."""
    ready = works(member) and _goes_on(me, member) and not member.calls
    if ready and member.goal is not None and not member.owned & ~member.goal:
        call = _call(me, member, Call.ASSIGNED, Parts(member.goal & ~member.owned), reset=False)
        yield Outcome((member._replace(owned=member.goal, believed=member.goal, calls=True),), seen=(call,))


def acknowledge(me: MemberContext, member: ConsumerMember) -> Iterator[Outcome]:
    """onPartitionsAssigned ends: the assignment is reconciled, and the next heartbeat carries it."""
    if works(member) and member.goal is not None and _goes_on(me, member) and member.calls:
        state = ClientState.ACKNOWLEDGING
        after = member._replace(claim=member.goal, goal=None, calls=False, unsent=True, state=state)
        yield Outcome((after,))


def _goes_on(me: MemberContext, member: ConsumerMember) -> bool:
    """Check whether a reconciliation that was begun may go on."""
    if "no_rejoin_flag" in _decisions(me, member):
        return member.state in ACTIVE
    return member.state is ClientState.RECONCILING


# -- the application and its process -------------------------------------------------------------------


def start(
    me: MemberContext,
    member: ConsumerMember,
    wire: BeatWire,
    stray: LateCommit,
    records: ConsumerRecords,
    named: Iterable[int] = (),
) -> Iterator[Outcome]:
    """The process starts, with a member id of its own making; what the one before had sent has arrived or
    is lost. ``named``: ids that something late names."""
    if member.life not in (Life.DOWN, Life.FAILED):
        return
    topics, pattern = me.consumer.choices[0]
    fresh = ConsumerMember(
        life=Life.UP,
        stage=member.stage,
        state=ClientState.JOINING,
        id=unused(records, named),
        topics=topics,
        pattern=pattern,
    )
    yield Outcome((fresh, None, None))


def crash(
    me: MemberContext, budget: int, member: ConsumerMember, wire: BeatWire, stray: LateCommit
) -> Iterator[Outcome]:
    """The process is killed. A heartbeat that left still arrives."""
    if member.life in (Life.UP, Life.PAUSED, Life.HUNG):
        seen = (Noted("crash with a revocation under way"),) if member.goal is not None else ()
        under_way = wire if isinstance(wire, Beat) else None
        yield Outcome((budget - 1, ConsumerMember(stage=member.stage), under_way, None), seen=seen)


def pause(me: MemberContext, budget: int, member: AnyMember) -> Iterator[Outcome]:
    """The process stops without noticing it, for as long as it takes."""
    if member.life is Life.UP:
        yield Outcome((budget - 1, member._replace(life=Life.PAUSED)))


def resume(me: MemberContext, member: AnyMember) -> Iterator[Outcome]:
    """It goes on where it stopped."""
    if member.life is Life.PAUSED:
        yield Outcome((member._replace(life=Life.UP),))


def hang(me: MemberContext, budget: int, member: ConsumerMember) -> Iterator[Outcome]:
    """The application never comes back from a call; the background thread sends heartbeats."""
    if works(member) and member.state in ACTIVE:
        yield Outcome((budget - 1, member._replace(life=Life.HUNG)))


def resubscribe(me: MemberContext, budget: int, member: ConsumerMember) -> Iterator[Outcome]:
    """``subscribe()`` with other topics, or another pattern."""
    if works(member) and member.subscribes:
        for topics, pattern in me.consumer.choices:
            if (topics, pattern) != (member.topics, member.pattern):
                choice = f"topics {topics}{f' pattern {pattern}' if pattern else ''}"
                yield Outcome((budget - 1, member._replace(topics=topics, pattern=pattern)), choice)


def subscribe(me: MemberContext, member: ConsumerMember) -> Iterator[Outcome]:
    """``subscribe()`` after an unsubscribe."""
    if works(member) and member.state is ClientState.UNSUBSCRIBED:
        topics, pattern = me.consumer.choices[0]
        yield Outcome((member._replace(state=ClientState.JOINING, topics=topics, pattern=pattern),))


def departs(me: MemberContext, member: ConsumerMember, *, close: bool) -> tuple[ConsumerMember, Seen]:
    """onPartitionsRevoked of everything, lost where there is no membership; then nothing is owned."""
    reset = member.epoch == NONE
    call = Call.LOST if reset else Call.REVOKED
    calls = (_call(me, member, call, member.owned, reset=reset),) if member.owned else ()
    if close:
        return ConsumerMember(stage=member.stage), calls
    return ConsumerMember(life=Life.UP, stage=member.stage, id=member.id), calls


def leaving(me: MemberContext, member: ConsumerMember, *, static: bool) -> Beat | None:
    """Return the heartbeat that leaves; a static member goes away with -2. One that has no epoch sends
    none."""
    if member.epoch == NONE and member.state is not ClientState.JOINING:
        return None
    kind = BeatKind.AWAY if static else BeatKind.LEAVE
    return Beat(kind, member.id, NONE, None, True, Topics(0))


Leaves = Iterator[Outcome]


def _left(
    me: MemberContext,
    wire: BeatWire,
    beat: Beat | None,
    group: ConsumerGroup,
    cluster: ClusterState,
    book: tuple[ConsumerRecords, ...],
) -> Iterator[tuple[ConsumerGroup, tuple[ConsumerRecords, ...], str, Seen]]:
    """Yield the coordinator behind a leave that arrives at once, and behind a heartbeat that was before it on
    the same connection."""
    first = [wire] if isinstance(wire, Beat) else []
    states: list[tuple[ConsumerGroup, tuple[ConsumerRecords, ...], str, Seen]] = [(group, book, "", ())]
    for request in (*first, *([beat] if beat is not None else [])):
        states = [
            (done.group, done.book, " ".join(filter(None, (choice, done.choice))), (*seen, *done.seen))
            for here, records, choice, seen in states
            for done in handled(me, request, here, records, cluster.parts)
        ]
    yield from states


def close(
    me: MemberContext,
    budget: int,
    member: ConsumerMember,
    wire: BeatWire,
    stray: LateCommit,
    group: ConsumerGroup,
    cluster: ClusterState,
    *book: ConsumerRecords,
) -> Leaves:
    """``close()``; a restart may follow."""
    if works(member):
        after, calls = departs(me, member, close=True)
        beat = leaving(me, member, static=me.static)
        for now, records, choice, seen in _left(me, wire, beat, group, cluster, book):
            yield Outcome((budget - 1, after, None, None, now, *records), choice, (*calls, *seen))


def unsubscribe(
    me: MemberContext,
    budget: int,
    member: ConsumerMember,
    wire: BeatWire,
    stray: LateCommit,
    group: ConsumerGroup,
    cluster: ClusterState,
    *book: ConsumerRecords,
) -> Leaves:
    """``unsubscribe()``; the application may subscribe again."""
    if works(member) and member.subscribes:
        after, calls = departs(me, member, close=False)
        beat = leaving(me, member, static=me.static)
        for now, records, choice, seen in _left(me, wire, beat, group, cluster, book):
            yield Outcome((budget - 1, after, None, stray, now, *records), choice, (*calls, *seen))


def max_poll(
    me: MemberContext,
    budget: int,
    member: ConsumerMember,
    wire: BeatWire,
    stray: LateCommit,
    group: ConsumerGroup,
    cluster: ClusterState,
    *book: ConsumerRecords,
) -> Leaves:
    """max.poll.interval.ms passes: the background thread leaves, the application hears of it as it polls."""
    if not beats(member) or member.state not in INSIDE:
        return
    after = fenced(me, member, ClientState.STALE)
    beat = leaving(me, member, static=me.static)
    for now, records, choice, seen in _left(me, wire, beat, group, cluster, book):
        yield Outcome((budget - 1, after, None, stray, now, *records), choice, seen)


def poll_interval(
    me: MemberContext,
    member: ConsumerMember,
    wire: BeatWire,
    stray: LateCommit,
    group: ConsumerGroup,
    cluster: ClusterState,
    *book: ConsumerRecords,
) -> Leaves:
    """It passes for an application that hangs."""
    if member.life is Life.HUNG:
        for outcome in max_poll(me, 0, member, wire, stray, group, cluster, *book):
            yield Outcome(outcome.values[1:], outcome.choice, outcome.seen)


def leave_lost(
    me: MemberContext, budget: int, member: ConsumerMember, wire: BeatWire, stray: LateCommit
) -> Iterator[Outcome]:
    """It leaves, and nobody hears of it: its session has to end, or it joins again before that."""
    if works(member) and member.epoch != NONE:
        for closes in (False, True):
            after, calls = departs(me, member, close=closes)
            kept = None if closes else stray
            yield Outcome((budget - 1, after, None, kept), "close" if closes else "unsubscribe", calls)
        late = fenced(me, member, ClientState.STALE)
        yield Outcome((budget - 1, late, None, stray), "max poll")


def disconnect(me: MemberContext, budget: int, member: ConsumerMember, wire: BeatWire) -> Iterator[Outcome]:
    """The heartbeat under way, or its answer, is lost, and the client hears so."""
    lost_already = isinstance(wire, BeatRefused) and wire.error is BeatError.DISCONNECT
    if wire is None or lost_already or member.life is Life.DOWN:
        return
    what = "heartbeat" if isinstance(wire, Beat) else "answer"
    refused = BeatRefused(wire.id, BeatError.DISCONNECT)
    yield Outcome((budget - 1, refused), seen=(Noted(f"{what} lost"),))


def send_late(me: MemberContext, budget: int, member: AnyMember, stray: LateCommit) -> Iterator[Outcome]:
    """A commit for everything that is consumed takes long."""
    if works(member) and epoch_of(member) != NONE and member.owned and stray is None:
        yield Outcome((budget - 1, Late("commit", member.id, epoch_of(member), member.owned)))
