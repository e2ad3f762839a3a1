"""What real clients do that the model's member does not: one table, each with a reason, and as steps.

The model's member is the Java client's. A habit is a step more that `rebalance conform` allows a client, so
that the log goes on being judged after it. What is ``usual`` only comes in another order, or at another
time; everything else is a finding about the client, which an answer that took it names. A habit was seen in
recordings and confirmed in the client's own log or source; ``evidence`` says where.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from rebalance.explore.conformance import HEARD
from rebalance.model.machine import Action, Fairness, Machine, Outcome, Value
from rebalance.model.protocol.member import (
    give_up,
    join_complete,
    join_prepare,
    reset,
    wants_to_join,
    works,
)
from rebalance.model.protocol.setup import Me, Setup
from rebalance.model.protocol.state import (
    NONE,
    Call,
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
    """Whose habits a release profile has: ``librdkafka-1.6`` those of librdkafka; the profile if nobody's."""
    known = (LIBRDKAFKA, KAFKA_PYTHON, AIOKAFKA, JAVA)
    return next((one for one in known if profile == one or profile.startswith(f"{one}-")), profile)


@dataclass(frozen=True)
class Habit:
    """``id`` is the name of its step in a run of the model; ``steps`` makes the steps of one member."""

    id: str
    client: str
    usual: bool
    sentence: str
    evidence: str
    steps: Callable[[Me], Iterator[Action]]
    timed: bool = False
    """Only where a recording says when: no polls, a stop, a kill."""
    silent: float = 0.0
    """Seconds after it in which the consumer tells nothing."""


def _step(id_: str, me: Me, names: Sequence[str], run: Callable[..., Iterator[Outcome]]) -> Iterator[Action]:
    """A step that reads and writes ``names`` of the member's components."""
    parts = tuple(name if name in ("group", "cluster") else me.name(name) for name in names)
    yield Action(id_, me.slot, parts, parts, partial(run, me), None, False, Fairness.NONE)


# -- aiokafka ------------------------------------------------------------------------------------------


def _prepares(me: Me, member: Member, wire: Wire) -> Iterator[Outcome]:
    ready = works(member) and wire is None and member.received is None and member.prepare
    if ready and wants_to_join(me, member):
        after, seen = join_prepare(me, member)
        yield Outcome((after, wire), seen=seen)


def _notices(me: Me, member: Member, topics: Any) -> Iterator[Outcome]:
    """``subscribe()``, also to the same topics: what was asked for before does not count any more."""
    if topics is not None and works(member):
        yield Outcome((member._replace(topics=topics, joined_topics=Topics(0)), None))


def _discards(me: Me, member: Member, wire: Wire) -> Iterator[Outcome]:
    """An answer that comes after ``subscribe()``; of the JoinGroup not even the member id is kept."""
    if not works(member) or member.topics == member.joined_topics:
        return
    if isinstance(wire, JoinOk) and member.state is MemberState.PREPARING:
        yield Outcome((member._replace(state=MemberState.UNJOINED), None))
    elif isinstance(wire, SyncOk) and member.state is MemberState.COMPLETING:
        yield Outcome((member._replace(state=MemberState.STABLE, rejoin=True, prepare=False), None))


# -- Java ----------------------------------------------------------------------------------------------


def _forgets(me: Me, member: Member) -> Iterator[Outcome]:
    leads = member.state is MemberState.STABLE and member.watch is not None
    if works(member) and leads and not member.rejoin and len(me.setup.topics) > 1:
        yield Outcome((member._replace(rejoin=True, watch=None),))


# -- librdkafka ----------------------------------------------------------------------------------------

NEXT = "next"
"""A component that some clients' members have beside the model's: a subscription that waits, as topics."""


def _subscribes(me: Me, member: Member, after: int | None) -> Iterator[Outcome]:
    """``subscribe()``: the new subscription waits until the client takes it up, be it for no time."""
    if works(member) and member.topics:
        for topics in me.consumer.subscriptions:
            yield Outcome((member, topics), f"topics {topics}")


def _idle(member: Member, wire: Wire) -> bool:
    still = member.state in (MemberState.STABLE, MemberState.UNJOINED) or _never_joined(member)
    return works(member) and still and wire is None and member.received is None


def _applies(me: Me, member: Member, wire: Wire, topics: Any) -> Iterator[Outcome]:
    if topics is None or not works(member):
        return
    if _idle(member, wire):
        changed = member._replace(topics=topics)
        if topics == member.topics:
            yield Outcome((member, wire, None))
        yield Outcome((changed._replace(rejoin=True), wire, None))
    elif _never_joined(member) and isinstance(wire, JoinOk):
        yield Outcome((member._replace(topics=topics, state=MemberState.UNJOINED, rejoin=True), None, None))


def _unheard(me: Me) -> Iterator[Action]:
    """The model's join, of which nothing was written down: ``with_habits`` knows it."""
    return iter(())


UNHEARD = "joins unheard"


def _never_joined(member: Member) -> bool:
    return member.state is MemberState.PREPARING and member.generation == NONE and not member.owned


def _loses_topic(me: Me, member: Member, wire: Wire, topics: Any) -> Iterator[Outcome]:
    if topics is None or not _idle(member, wire):
        return
    gone = Parts(member.owned & ~me.setup.parts(topics))
    if gone:
        after, seen = give_up(me, member._replace(topics=topics), Call.LOST, gone)
        yield Outcome((after._replace(rejoin=True), wire, None), seen=seen)
        if not member.rejoin:
            yield Outcome((after._replace(joined_topics=topics), wire, None), "does not rejoin", seen)


def _keeps(me: Me, member: Member) -> Iterator[Outcome]:
    """The callbacks of an assignment that waited while max.poll.interval.ms passed, as if nothing were."""
    if works(member) and member.received is not None and member.generation == NONE:
        after, seen = join_complete(me, member, member.received)
        yield Outcome((after._replace(prepare=False, rejoin=True, own_gen=NONE),), seen=seen)


def _joins_owning(me: Me, member: Member) -> Iterator[Outcome]:
    outside = member.generation == NONE and member.state is MemberState.UNJOINED
    if works(member) and outside and member.owned and member.prepare:
        yield Outcome((member._replace(prepare=False),))


def _times_out(me: Me, member: Member) -> Iterator[Outcome]:
    if works(member) and member.generation != NONE and member.received is None:
        yield Outcome((reset(member),))


def _starts_over(me: Me, member: Member, wire: Wire) -> Iterator[Outcome]:
    if isinstance(wire, JoinOk) and wire.leader and works(member) and member.state is MemberState.PREPARING:
        yield Outcome(
            (member._replace(state=MemberState.UNJOINED, id=wire.id, rejoin=True), None), seen=(HEARD,)
        )


def _loses_late(me: Me, member: Member) -> Iterator[Outcome]:
    outside = member.generation == NONE and member.state is not MemberState.STABLE
    if works(member) and outside and member.owned and not member.prepare:
        after, seen = give_up(me, member, Call.LOST, member.owned)
        yield Outcome((after,), seen=seen)


# -- kafka-python --------------------------------------------------------------------------------------


def _asks_again(me: Me, member: Member) -> Iterator[Outcome]:
    if works(member) and member.state is MemberState.STABLE and not member.rejoin:
        yield Outcome((member._replace(rejoin=True),))


def _abandons(me: Me, member: Member) -> Iterator[Outcome]:
    if works(member) and member.state in (MemberState.PREPARING, MemberState.COMPLETING):
        yield Outcome((member._replace(stuck=True),))


def _takes_up(me: Me, member: Member) -> Iterator[Outcome]:
    if member.stuck:
        yield Outcome((member._replace(stuck=False, rejoin=True),))


HABITS: tuple[Habit, ...] = (
    Habit(
        "is killed before it joins", "", True,
        "a consumer is killed between the callback before a JoinGroup and the JoinGroup",
        "any client; the model does both at once",
        lambda me: _step("is killed before it joins", me, ("member", "wire"), _prepares),
        timed=True,
    ),
    Habit(
        UNHEARD, "", True,
        "a consumer is killed before the line is written that tells of its last JoinGroup",
        "any client: what a process has not written when it is killed is lost",
        _unheard,
        timed=True,
    ),
    Habit(
        "takes its subscription", AIOKAFKA, True,
        "subscribe() is noticed by the task that joins some milliseconds later",
        "group_coordinator.py, __coordination_routine is a task of its own",
        lambda me: _step("takes its subscription", me, ("member", NEXT), _notices),
    ),
    Habit(
        "prepares and waits", AIOKAFKA, True,
        "calls on_partitions_revoked some time before it sends JoinGroup: not before it is polled again",
        "group_coordinator.py, ensure_active_group: returns after _on_join_prepare while the fetcher is idle "
        "for longer than max_poll_interval_ms",
        lambda me: _step("prepares and waits", me, ("member", "wire"), _prepares),
        timed=True,
    ),
    Habit(
        "discards an answer", AIOKAFKA, True,
        "subscribe() during a rebalance throws the answer of the group away, and the member joins again",
        "group_coordinator.py, perform_group_join and _do_rejoin_group ask for subscription.active",
        lambda me: _step("discards an answer", me, ("member", "wire"), _discards),
    ),
    Habit(
        "forgets a topic", JAVA, False,
        "the leader rejoins, and the group rebalances for nothing, when a topic to which nobody subscribes "
        "any more leaves its metadata",
        "its log: 'Request joining group due to: cached metadata has changed from ... at the beginning of "
        "the rebalance to ...', the second with a topic less",
        lambda me: _step("forgets a topic", me, ("member",), _forgets),
    ),
    Habit(
        "applies its subscription", LIBRDKAFKA, True,
        "subscribe() during a rebalance has its effect when the rebalance is over; before the first answer "
        "to a JoinGroup that answer is thrown away",
        "its log: 'postponing subscribe until previous rebalance completes'; 'discarding outdated request "
        "(now in join-state init)'",
        lambda me: _step("applies its subscription", me, ("member", "wire", NEXT), _applies),
    ),
    Habit(
        "loses what it unsubscribed", LIBRDKAFKA, False,
        "subscribe() to a topic that it does not know yet, in place of one that it reads, ends in "
        "on_lost where on_revoked is due: the member is in the group, and loses nothing",
        "its log: 'current assignment of 3 partition(s) lost: 3 subscribed topic(s) no longer exist'",
        lambda me: _step("loses what it unsubscribed", me, ("member", "wire", NEXT), _loses_topic),
    ),
    Habit(
        "keeps what it left", LIBRDKAFKA, False,
        "max.poll.interval.ms passes while a rebalance waits for the application's callback: the consumer "
        "leaves the group, and goes on owning what it had and joins with it; others have been given it",
        "its log: 'leaving group', then 'rebalance (COOPERATIVE) already in progress, skipping ... "
        "max.poll.interval.ms exceeded', and no callback for what is lost",
        lambda me: _step("keeps what it left", me, ("member",), _keeps),
        timed=True,
    ),
    Habit(
        "joins with what it lost", LIBRDKAFKA, False,
        "it joins with the partitions of a membership that is gone: after max.poll.interval.ms passed while "
        "a callback waited, or a JoinGroup was refused with UNKNOWN_MEMBER_ID; the application is told at "
        "the next error (of Apache Kafka MEMBER_ID_REQUIRED, which always comes), or never",
        "its log: 'Rejoining group with 6 owned partition(s): JoinGroup error: Broker: Unknown member', then "
        "'current assignment of 6 partition(s) lost: JoinGroup error'",
        lambda me: _step("joins with what it lost", me, ("member",), _joins_owning),
    ),
    Habit(
        "times out by itself", LIBRDKAFKA, False,
        "its own session timer, which a rebalance does not start anew, ends a membership that the group has "
        "just renewed: after a pause of the process it loses what it was given a moment ago",
        "its log: 'Consumer group session timed out (in join-state steady) after 8890 ms without a "
        "successful response from the group coordinator' right after SyncGroup",
        lambda me: _step("times out by itself", me, ("member",), _times_out),
        timed=True,
    ),
    Habit(
        "loses it late", LIBRDKAFKA, False,
        "on_lost is called some time after the membership was gone, while the consumer joins anew",
        "its log: 'OffsetCommit error: Unknown member' or 'JoinGroup error', then 'current assignment ... "
        "lost'",
        lambda me: _step("loses it late", me, ("member",), _loses_late),
    ),
    Habit(
        "starts over as leader", LIBRDKAFKA, True,
        "a leader whose metadata changes between JoinGroup and SyncGroup joins again, without SyncGroup",
        "its log: 'subscription updated from metadata change: rejoining group in state wait-metadata'",
        lambda me: _step("starts over as leader", me, ("member", "wire"), _starts_over),
    ),
    Habit(
        "abandons its join", KAFKA_PYTHON, False,
        "a poll() that times out before the group has answered never takes the answer: the member sends no "
        "heartbeat, is removed, goes on owning what it had, and says revoked when it is closed",
        "its log ends with '(Re-)joining' or 'Successfully joined'; coordinator/base.py, join_group_async",
        lambda me: _step("abandons its join", me, ("member",), _abandons),
        silent=1.0,
    ),
    Habit(
        "takes its join up again", KAFKA_PYTHON, True,
        "after that, subscribe() or another rebalance makes it join again",
        "its log: '(Re-)joining' some time after the last",
        lambda me: _step("takes its join up again", me, ("member",), _takes_up),
    ),
    Habit(
        "joins once more", KAFKA_PYTHON, False,
        "an answer to an offset commit of the last generation (REBALANCE_IN_PROGRESS) that comes after the "
        "rebalance begins another one",
        "coordinator/consumer.py, _handle_offset_commit_response calls request_rejoin() whatever generation "
        "the commit was of; its log: 'Pre-rebalance offset commit failed', then '(Re-)joining' at once",
        lambda me: _step("joins once more", me, ("member",), _asks_again),
    ),
)  # fmt: skip
"""In the order of clients."""

BY_ID: Mapping[str, Habit] = {habit.id: habit for habit in HABITS}

SUBSCRIBES_AGAIN = frozenset({LIBRDKAFKA, AIOKAFKA})
"""Clients to whom ``subscribe()`` to the same topics is a step."""

JOINS_UNPOLLED = frozenset({LIBRDKAFKA, AIOKAFKA})
"""Clients that take part in a rebalance while nobody polls: never too slow for its timeout."""

LENIENT = frozenset({KAFKA_PYTHON})
"""Clients whose leader is known to break the clauses of a leader (`rebalance check kafka-python:...`)."""


def with_habits(
    built: Machine,
    setup: Setup,
    clients: Sequence[str],
    *,
    timed: Collection[tuple[str, int]],
    findings: bool,
) -> Machine:
    """``built`` with the habits of each slot's client (`client_of`): the usual ones, with ``findings`` all.

    ``timed``: which of those that only happen at times are to be there, by id and slot.
    """
    actions = list(built.actions)
    components, initial = built.components, built.initial
    for slot, client in enumerate(clients):
        me = Me(Slot(slot), setup)
        if client in (KAFKA_PYTHON, LIBRDKAFKA):
            actions = [_closing(me, action) if action.who == slot else action for action in actions]
        if client in SUBSCRIBES_AGAIN:
            components = (*components, me.name(NEXT))
            initial = tuple((*state, None) for state in initial)
            actions = [_postponing(me, action) if action.who == slot else action for action in actions]
        for habit in HABITS:
            has = habit.client in ("", client) and (not habit.timed or (habit.id, slot) in timed)
            if has and habit.id == UNHEARD:
                join = next(action for action in actions if action.name == "join" and action.who == slot)
                actions.append(join._replace(name=UNHEARD))
            elif has and (habit.usual or findings):
                actions += habit.steps(me)
    return replace_machine(built, components, initial, tuple(actions))


def _closing(me: Me, action: Action) -> Action:
    """``close()`` of a member during a rebalance, or of one that has abandoned its join, as if at rest."""
    if action.name != "close":
        return action
    place = action.reads.index(me.name("member"))

    def run(*values: Any) -> Iterator[Outcome]:
        yield from action.run(*values)
        member = values[place]
        under_way = member.state in (MemberState.PREPARING, MemberState.COMPLETING)
        if member.stuck or under_way:
            state = MemberState.UNJOINED if member.generation == NONE else MemberState.STABLE
            there = member._replace(stuck=False, state=state)
            yield from action.run(*values[:place], there, *values[place + 1 :])

    return action._replace(run=run)


def _postponing(me: Me, action: Action) -> Action:
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
