"""What real clients do that the model's member does not: one table, each with a reason, and as steps.

The model's member is the Java client's. A deviation is a step more that `rebalance conform` allows a client,
so that the log goes on being judged after it. What is ``benign`` only comes in another order, or at another
time; everything else is a finding about the client, which an answer that took it names. A deviation was seen
in recordings and confirmed in the client's own log or source; ``evidence`` says where.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from rebalance.live.conformance.search import HEARD
from rebalance.model.machine import Action, Fairness, Machine, Outcome, Value
from rebalance.model.protocol.callbacks import give_up, join_complete, join_prepare, reset, works
from rebalance.model.protocol.member import wants_to_join
from rebalance.model.protocol.observations import Call
from rebalance.model.protocol.setup import MemberContext, Setup
from rebalance.model.protocol.state import (
    NONE,
    JoinOk,
    Member,
    MemberState,
    Parts,
    Slot,
    SyncOk,
    Topics,
    Wire,
)

LIBRDKAFKA, KAFKA_PYTHON, AIOKAFKA, JAVA = "librdkafka", "kafka-python", "aiokafka", "java"


def client_of(profile: str) -> str:
    """Whose deviations a release profile has: ``librdkafka-1.6`` librdkafka's; else the profile itself."""
    known = (LIBRDKAFKA, KAFKA_PYTHON, AIOKAFKA, JAVA)
    return next((one for one in known if profile == one or profile.startswith(f"{one}-")), profile)


@dataclass(frozen=True, kw_only=True)
class Deviation:
    """``id`` is the name of its step in a run of the model; ``steps`` makes the steps of one member."""

    id: str
    client: str
    benign: bool
    sentence: str
    evidence: str
    steps: Callable[[MemberContext], Iterator[Action]]
    timed: bool = False
    """Only where a recording says when: no polls, a stop, a kill."""
    silent: float = 0.0
    """Seconds after it in which the consumer tells nothing."""


def _step(
    id_: str, me: MemberContext, names: Sequence[str], run: Callable[..., Iterator[Outcome]]
) -> Iterator[Action]:
    """A step that reads and writes ``names`` of the member's components."""
    parts = tuple(name if name in ("group", "cluster") else me.name(name) for name in names)
    yield Action(
        name=id_,
        who=me.slot,
        reads=parts,
        writes=parts,
        run=partial(run, me),
        guard=None,
        fault=False,
        fairness=Fairness.NONE,
    )


# -- aiokafka ------------------------------------------------------------------------------------------


def _prepares(me: MemberContext, member: Member, wire: Wire) -> Iterator[Outcome]:
    ready = works(member) and wire is None and member.received is None and member.prepare
    if ready and wants_to_join(me, member):
        after, seen = join_prepare(me, member)
        yield Outcome((after, wire), seen=seen)


def _notices(me: MemberContext, member: Member, topics: Any) -> Iterator[Outcome]:
    """``subscribe()``, also to the same topics: what was asked for before does not count any more."""
    if topics is not None and works(member):
        yield Outcome((member._replace(topics=topics, joined_topics=Topics(0)), None))


def _discards(me: MemberContext, member: Member, wire: Wire) -> Iterator[Outcome]:
    """An answer that comes after ``subscribe()``; of the JoinGroup not even the member id is kept."""
    if not works(member) or member.topics == member.joined_topics:
        return
    if isinstance(wire, JoinOk) and member.state is MemberState.PREPARING:
        yield Outcome((member._replace(state=MemberState.UNJOINED), None))
    elif isinstance(wire, SyncOk) and member.state is MemberState.COMPLETING:
        yield Outcome((member._replace(state=MemberState.STABLE, rejoin=True, prepare=False), None))


# -- Java ----------------------------------------------------------------------------------------------


def _forgets(me: MemberContext, member: Member) -> Iterator[Outcome]:
    leads = member.state is MemberState.STABLE and member.watch is not None
    if works(member) and leads and not member.rejoin and len(me.setup.topics) > 1:
        yield Outcome((member._replace(rejoin=True, watch=None),))


# -- librdkafka ----------------------------------------------------------------------------------------

NEXT = "next"
"""A component that some clients' members have beside the model's: a subscription that waits, as topics."""


def _subscribes(me: MemberContext, member: Member, after: int | None) -> Iterator[Outcome]:
    """``subscribe()``: the new subscription waits until the client takes it up, be it for no time."""
    if works(member) and member.topics:
        for topics in me.consumer.subscriptions:
            yield Outcome((member, topics), f"topics {topics}")


def _idle(member: Member, wire: Wire) -> bool:
    still = member.state in (MemberState.STABLE, MemberState.UNJOINED) or _never_joined(member)
    return works(member) and still and wire is None and member.received is None


def _applies(me: MemberContext, member: Member, wire: Wire, topics: Any) -> Iterator[Outcome]:
    if topics is None or not works(member):
        return
    if _idle(member, wire):
        changed = member._replace(topics=topics)
        if topics == member.topics:
            yield Outcome((member, wire, None))
        yield Outcome((changed._replace(rejoin=True), wire, None))
    elif _never_joined(member) and isinstance(wire, JoinOk):
        yield Outcome((member._replace(topics=topics, state=MemberState.UNJOINED, rejoin=True), None, None))


def _unheard(me: MemberContext) -> Iterator[Action]:
    """The model's join, of which nothing was written down: ``with_deviations`` knows it."""
    return iter(())


UNHEARD = "joins unheard"


def _never_joined(member: Member) -> bool:
    return member.state is MemberState.PREPARING and member.generation == NONE and not member.owned


def _loses_topic(me: MemberContext, member: Member, wire: Wire, topics: Any) -> Iterator[Outcome]:
    if topics is None or not _idle(member, wire):
        return
    gone = Parts(member.owned & ~me.setup.parts(topics))
    if gone:
        after, seen = give_up(me, member._replace(topics=topics), Call.LOST, gone)
        yield Outcome((after._replace(rejoin=True), wire, None), seen=seen)
        if not member.rejoin:
            yield Outcome((after._replace(joined_topics=topics), wire, None), "does not rejoin", seen)


def _keeps(me: MemberContext, member: Member) -> Iterator[Outcome]:
    """The callbacks of an assignment that waited while max.poll.interval.ms passed, as if nothing were."""
    if works(member) and member.received is not None and member.generation == NONE:
        after, seen = join_complete(me, member, member.received)
        yield Outcome((after._replace(prepare=False, rejoin=True, own_gen=NONE),), seen=seen)


def _joins_owning(me: MemberContext, member: Member) -> Iterator[Outcome]:
    outside = member.generation == NONE and member.state is MemberState.UNJOINED
    if works(member) and outside and member.owned and member.prepare:
        yield Outcome((member._replace(prepare=False),))


def _times_out(me: MemberContext, member: Member) -> Iterator[Outcome]:
    if works(member) and member.generation != NONE and member.received is None:
        yield Outcome((reset(member),))


def _starts_over(me: MemberContext, member: Member, wire: Wire) -> Iterator[Outcome]:
    if isinstance(wire, JoinOk) and wire.leader and works(member) and member.state is MemberState.PREPARING:
        yield Outcome(
            (member._replace(state=MemberState.UNJOINED, id=wire.id, rejoin=True), None), seen=(HEARD,)
        )


def _loses_late(me: MemberContext, member: Member) -> Iterator[Outcome]:
    outside = member.generation == NONE and member.state is not MemberState.STABLE
    if works(member) and outside and member.owned and not member.prepare:
        after, seen = give_up(me, member, Call.LOST, member.owned)
        yield Outcome((after,), seen=seen)


# -- kafka-python --------------------------------------------------------------------------------------


def _asks_again(me: MemberContext, member: Member) -> Iterator[Outcome]:
    if works(member) and member.state is MemberState.STABLE and not member.rejoin:
        yield Outcome((member._replace(rejoin=True),))


def _abandons(me: MemberContext, member: Member) -> Iterator[Outcome]:
    if works(member) and member.state in (MemberState.PREPARING, MemberState.COMPLETING):
        yield Outcome((member._replace(stuck=True),))


def _takes_up(me: MemberContext, member: Member) -> Iterator[Outcome]:
    if member.stuck:
        yield Outcome((member._replace(stuck=False, rejoin=True),))


DEVIATIONS: tuple[Deviation, ...] = (
    Deviation(
        id="is killed before it joins", client="", benign=True,
        sentence="a consumer is killed between the callback before a JoinGroup and the JoinGroup",
        evidence="any client; the model does both at once",
        steps=lambda me: _step("is killed before it joins", me, ("member", "wire"), _prepares),
        timed=True,
    ),
    Deviation(
        id=UNHEARD, client="", benign=True,
        sentence="a consumer is killed before the line is written that tells of its last JoinGroup",
        evidence="any client: what a process has not written when it is killed is lost",
        steps=_unheard,
        timed=True,
    ),
    Deviation(
        id="takes its subscription", client=AIOKAFKA, benign=True,
        sentence="subscribe() is noticed by the task that joins some milliseconds later",
        evidence="group_coordinator.py, __coordination_routine is a task of its own",
        steps=lambda me: _step("takes its subscription", me, ("member", NEXT), _notices),
    ),
    Deviation(
        id="prepares and waits", client=AIOKAFKA, benign=True,
        sentence="calls on_partitions_revoked some time before it sends JoinGroup: not before it is "
        "polled again",
        evidence="group_coordinator.py, ensure_active_group: returns after _on_join_prepare while the "
        "fetcher is idle for longer than max_poll_interval_ms",
        steps=lambda me: _step("prepares and waits", me, ("member", "wire"), _prepares),
        timed=True,
    ),
    Deviation(
        id="discards an answer", client=AIOKAFKA, benign=True,
        sentence="subscribe() during a rebalance throws the answer of the group away, and the member "
        "joins again",
        evidence="group_coordinator.py, perform_group_join and _do_rejoin_group ask for subscription.active",
        steps=lambda me: _step("discards an answer", me, ("member", "wire"), _discards),
    ),
    Deviation(
        id="forgets a topic", client=JAVA, benign=False,
        sentence="the leader rejoins, and the group rebalances for nothing, when a topic to which nobody "
        "subscribes any more leaves its metadata",
        evidence="its log: 'Request joining group due to: cached metadata has changed from ... at the "
        "beginning of the rebalance to ...', the second with a topic less",
        steps=lambda me: _step("forgets a topic", me, ("member",), _forgets),
    ),
    Deviation(
        id="applies its subscription", client=LIBRDKAFKA, benign=True,
        sentence="subscribe() during a rebalance has its effect when the rebalance is over; before the first "
        "answer to a JoinGroup that answer is thrown away",
        evidence="its log: 'postponing subscribe until previous rebalance completes'; 'discarding outdated "
        "request (now in join-state init)'",
        steps=lambda me: _step("applies its subscription", me, ("member", "wire", NEXT), _applies),
    ),
    Deviation(
        id="loses what it unsubscribed", client=LIBRDKAFKA, benign=False,
        sentence="subscribe() to a topic that it does not know yet, in place of one that it reads, ends in "
        "on_lost where on_revoked is due: the member is in the group, and loses nothing",
        evidence="its log: 'current assignment of 3 partition(s) lost: 3 subscribed topic(s) no longer "
        "exist'",
        steps=lambda me: _step("loses what it unsubscribed", me, ("member", "wire", NEXT), _loses_topic),
    ),
    Deviation(
        id="keeps what it left", client=LIBRDKAFKA, benign=False,
        sentence="max.poll.interval.ms passes while a rebalance waits for the application's callback: the "
        "consumer leaves the group, and goes on owning what it had and joins with it; others have been given "
        "it",
        evidence="its log: 'leaving group', then 'rebalance (COOPERATIVE) already in progress, skipping ... "
        "max.poll.interval.ms exceeded', and no callback for what is lost",
        steps=lambda me: _step("keeps what it left", me, ("member",), _keeps),
        timed=True,
    ),
    Deviation(
        id="joins with what it lost", client=LIBRDKAFKA, benign=False,
        sentence="it joins with the partitions of a membership that is gone: after max.poll.interval.ms "
        "passed while a callback waited, or a JoinGroup was refused with UNKNOWN_MEMBER_ID; the application "
        "is told at the next error (of Apache Kafka MEMBER_ID_REQUIRED, which always comes), or never",
        evidence="its log: 'Rejoining group with 6 owned partition(s): JoinGroup error: Broker: Unknown "
        "member', then 'current assignment of 6 partition(s) lost: JoinGroup error'",
        steps=lambda me: _step("joins with what it lost", me, ("member",), _joins_owning),
    ),
    Deviation(
        id="times out by itself", client=LIBRDKAFKA, benign=False,
        sentence="its own session timer, which a rebalance does not start anew, ends a membership that the "
        "group has just renewed: after a pause of the process it loses what it was given a moment ago",
        evidence="its log: 'Consumer group session timed out (in join-state steady) after 8890 ms without a "
        "successful response from the group coordinator' right after SyncGroup",
        steps=lambda me: _step("times out by itself", me, ("member",), _times_out),
        timed=True,
    ),
    Deviation(
        id="loses it late", client=LIBRDKAFKA, benign=False,
        sentence="on_lost is called some time after the membership was gone, while the consumer joins anew",
        evidence="its log: 'OffsetCommit error: Unknown member' or 'JoinGroup error', then 'current "
        "assignment ... lost'",
        steps=lambda me: _step("loses it late", me, ("member",), _loses_late),
    ),
    Deviation(
        id="starts over as leader", client=LIBRDKAFKA, benign=True,
        sentence="a leader whose metadata changes between JoinGroup and SyncGroup joins again, without "
        "SyncGroup",
        evidence="its log: 'subscription updated from metadata change: rejoining group in state "
        "wait-metadata'",
        steps=lambda me: _step("starts over as leader", me, ("member", "wire"), _starts_over),
    ),
    Deviation(
        id="abandons its join", client=KAFKA_PYTHON, benign=False,
        sentence="a poll() that times out before the group has answered never takes the answer: the member "
        "sends no heartbeat, is removed, goes on owning what it had, and says revoked when it is closed",
        evidence="its log ends with '(Re-)joining' or 'Successfully joined'; coordinator/base.py, "
        "join_group_async",
        steps=lambda me: _step("abandons its join", me, ("member",), _abandons),
        silent=1.0,
    ),
    Deviation(
        id="takes its join up again", client=KAFKA_PYTHON, benign=True,
        sentence="after that, subscribe() or another rebalance makes it join again",
        evidence="its log: '(Re-)joining' some time after the last",
        steps=lambda me: _step("takes its join up again", me, ("member",), _takes_up),
    ),
    Deviation(
        id="joins once more", client=KAFKA_PYTHON, benign=False,
        sentence="an answer to an offset commit of the last generation (REBALANCE_IN_PROGRESS) that comes "
        "after the rebalance begins another one",
        evidence="coordinator/consumer.py, _handle_offset_commit_response calls request_rejoin() whatever "
        "generation the commit was of; its log: 'Pre-rebalance offset commit failed', then '(Re-)joining' at "
        "once",
        steps=lambda me: _step("joins once more", me, ("member",), _asks_again),
    ),
)  # fmt: skip
"""In the order of clients."""

BY_ID: Mapping[str, Deviation] = {deviation.id: deviation for deviation in DEVIATIONS}

SUBSCRIBES_AGAIN = frozenset({LIBRDKAFKA, AIOKAFKA})
"""Clients to whom ``subscribe()`` to the same topics is a step."""

JOINS_UNPOLLED = frozenset({LIBRDKAFKA, AIOKAFKA})
"""Clients that take part in a rebalance while nobody polls: never too slow for its timeout."""

LENIENT = frozenset({KAFKA_PYTHON})
"""Clients whose leader is known to break the clauses of a leader (`rebalance check kafka-python:...`)."""


def with_deviations(
    built: Machine,
    setup: Setup,
    clients: Sequence[str],
    *,
    timed: Collection[tuple[str, int]],
    findings: bool,
) -> Machine:
    """``built`` with the deviations of each slot's client (`client_of`): the benign ones; all with
    ``findings``.

    ``timed``: which of those that only happen at times are to be there, by id and slot.
    """
    actions = list(built.actions)
    components, initial = built.components, built.initial
    for slot, client in enumerate(clients):
        me = MemberContext(Slot(slot), setup)
        if client in (KAFKA_PYTHON, LIBRDKAFKA):
            actions = [_closing(me, action) if action.who == slot else action for action in actions]
        if client in SUBSCRIBES_AGAIN:
            components = (*components, me.name(NEXT))
            initial = tuple((*state, None) for state in initial)
            actions = [_postponing(me, action) if action.who == slot else action for action in actions]
        for deviation in DEVIATIONS:
            has = deviation.client in ("", client) and (not deviation.timed or (deviation.id, slot) in timed)
            if has and deviation.id == UNHEARD:
                join = next(action for action in actions if action.name == "join" and action.who == slot)
                actions.append(join._replace(name=UNHEARD))
            elif has and (deviation.benign or findings):
                actions += deviation.steps(me)
    return replace_machine(built, components, initial, tuple(actions))


def _closing(me: MemberContext, action: Action) -> Action:
    """``close()`` of a member during a rebalance, or of one that has abandoned its join, as if at rest."""
    if action.name != "close":
        return action
    index = action.reads.index(me.name("member"))

    def run(*values: Any) -> Iterator[Outcome]:
        yield from action.run(*values)
        member = values[index]
        under_way = member.state in (MemberState.PREPARING, MemberState.COMPLETING)
        if member.stuck or under_way:
            state = MemberState.UNJOINED if member.generation == NONE else MemberState.STABLE
            there = member._replace(stuck=False, state=state)
            yield from action.run(*values[:index], there, *values[index + 1 :])

    return action._replace(run=run)


def _postponing(me: MemberContext, action: Action) -> Action:
    """The driver's steps for a member whose subscriptions wait."""
    waits = me.name(NEXT)
    if action.name == "resubscribe":
        both = (me.name("member"), waits)
        return action._replace(reads=both, writes=both, run=partial(_subscribes, me), guard=None)
    if action.name not in ("start", "close", "crash", "unsubscribe"):
        return action

    def run(*values: Value) -> Iterator[Outcome]:
        for outcome in action.run(*values):
            yield outcome._replace(values=(*outcome.values, None))

    return action._replace(writes=(*action.writes, waits), run=run)


def replace_machine(
    built: Machine, components: tuple[str, ...], initial: tuple[Any, ...], actions: tuple[Action, ...]
) -> Machine:
    """``built`` with more of both; without symmetries, which do not know them."""
    return replace(built, components=components, initial=initial, actions=actions, symmetries=())
