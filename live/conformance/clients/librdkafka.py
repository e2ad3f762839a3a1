"""librdkafka, as confluent-kafka has it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rebalance.live.conformance.clients.every import TAKEN_BACK
from rebalance.live.conformance.clients.traits import (
    HEARD,
    NEXT,
    ClientTraits,
    Deviation,
    Diagnosis,
    FindingContext,
)
from rebalance.model.machine import Outcome
from rebalance.model.protocol.callbacks import give_up, join_complete, reset, works
from rebalance.model.protocol.observations import Call
from rebalance.model.protocol.setup import MemberContext
from rebalance.model.protocol.state import NONE, JoinOk, Member, MemberState, Parts, Wire

LIBRDKAFKA = "librdkafka"


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


def _lost_and_silent(seen: FindingContext) -> bool:
    """A live member was told that it lost partitions after it subscribed to others, and did nothing since."""
    for name in seen.finding["consumers"]:
        moves = [e for e in seen.before(name) if e["event"] not in ("synced", "assigned", "reset")][-2:]
        if [e["event"] for e in moves] == ["subscribed", "lost"]:
            return True
    return False


def _left_owning(seen: FindingContext) -> bool:
    """The earlier owner left the group by itself while it owned, and was not told that it lost anything."""
    earlier = seen.finding["consumers"][0]
    moves = [e["event"] for e in seen.before(earlier, "leaving", "lost", "assigned", "reset")]
    return bool(moves) and moves[-1] in ("leaving", "reset")


DEVIATIONS: tuple[Deviation, ...] = (
    Deviation(
        id="applies its subscription", client=LIBRDKAFKA, benign=True,
        sentence="subscribe() during a rebalance has its effect when the rebalance is over; before the first "
        "answer to a JoinGroup that answer is thrown away",
        evidence="its log: 'postponing subscribe until previous rebalance completes'; 'discarding outdated "
        "request (now in join-state init)'",
        parts=("member", "wire", NEXT), run=_applies,
    ),
    Deviation(
        id="loses what it unsubscribed", client=LIBRDKAFKA, benign=False,
        sentence="subscribe() to a topic that it does not know yet, in place of one that it reads, ends in "
        "on_lost where on_revoked is due: the member is in the group, and loses nothing",
        evidence="its log: 'current assignment of 3 partition(s) lost: 3 subscribed topic(s) no longer "
        "exist'",
        parts=("member", "wire", NEXT), run=_loses_topic,
    ),
    Deviation(
        id="keeps what it left", client=LIBRDKAFKA, benign=False,
        sentence="max.poll.interval.ms passes while a rebalance waits for the application's callback: the "
        "consumer leaves the group, and goes on owning what it had and joins with it; others have been given "
        "it",
        evidence="its log: 'leaving group', then 'rebalance (COOPERATIVE) already in progress, skipping ... "
        "max.poll.interval.ms exceeded', and no callback for what is lost",
        parts=("member",), run=_keeps,
        timed="pause",
    ),
    Deviation(
        id="joins with what it lost", client=LIBRDKAFKA, benign=False,
        sentence="it joins with the partitions of a membership that is gone: after max.poll.interval.ms "
        "passed while a callback waited, or a JoinGroup was refused with UNKNOWN_MEMBER_ID; the application "
        "is told at the next error (of Apache Kafka MEMBER_ID_REQUIRED, which always comes), or never",
        evidence="its log: 'Rejoining group with 6 owned partition(s): JoinGroup error: Broker: Unknown "
        "member', then 'current assignment of 6 partition(s) lost: JoinGroup error'",
        parts=("member",), run=_joins_owning,
    ),
    Deviation(
        id="times out by itself", client=LIBRDKAFKA, benign=False,
        sentence="its own session timer, which a rebalance does not start anew, ends a membership that the "
        "group has just renewed: after a pause of the process it loses what it was given a moment ago",
        evidence="its log: 'Consumer group session timed out (in join-state steady) after 8890 ms without a "
        "successful response from the group coordinator' right after SyncGroup",
        parts=("member",), run=_times_out,
        timed="stop",
    ),
    Deviation(
        id="loses it late", client=LIBRDKAFKA, benign=False,
        sentence="on_lost is called some time after the membership was gone, while the consumer joins anew",
        evidence="its log: 'OffsetCommit error: Unknown member' or 'JoinGroup error', then 'current "
        "assignment ... lost'",
        parts=("member",), run=_loses_late,
    ),
    Deviation(
        id="starts over as leader", client=LIBRDKAFKA, benign=True,
        sentence="a leader whose metadata changes between JoinGroup and SyncGroup joins again, without "
        "SyncGroup",
        evidence="its log: 'subscription updated from metadata change: rejoining group in state "
        "wait-metadata'",
        parts=("member", "wire"), run=_starts_over,
    ),
)  # fmt: skip

DIAGNOSES: tuple[Diagnosis, ...] = (
    Diagnosis(
        id="loses what it unsubscribed and does not rejoin",
        sentence="librdkafka: subscribe() to a topic that it does not know yet: what it owned is lost, and "
        "the member stays in the group at rest, owning nothing, until something else begins a rebalance; "
        "neither the old nor the new topic's partitions have an owner",
        evidence="clients/*.log: 'current assignment of N partition(s) lost: N subscribed topic(s) no longer "
        "exist', 'wait-incr-unassign-to-complete -> steady' with 'rebalance rejoin=false', then heartbeats "
        "only",
        checks=("stranded",), fits=_lost_and_silent,
    ),
    Diagnosis(
        id="keeps what it left",
        sentence="librdkafka: max.poll.interval.ms passes while a rebalance waits for the application's "
        "callback: it leaves the group, tells the application nothing, and joins with the partitions that "
        "others have been given",
        evidence="clients/*.log: 'leaving group', 'rebalance (COOPERATIVE) already in progress, skipping ... "
        "max.poll.interval.ms exceeded'",
        checks=("granted-before-revoked", "owned-twice"), fits=_left_owning,
    ),
    TAKEN_BACK,
    Diagnosis(
        id="not polled and never leaves: librdkafka",
        sentence="librdkafka: a consumer that is not polled while its first callback waits is not put out of "
        "the group by max.poll.interval.ms: it goes on sending heartbeats",
        evidence="clients/*.log of the consumer without polls: heartbeats, join-state wait-assign-call, "
        "no MAXPOLL",
        checks=("stranded",), fits=lambda seen: seen.in_group_without_polls,
    ),
)  # fmt: skip

TRAITS = ClientTraits(
    name=LIBRDKAFKA,
    recorder="confluent",
    reports="confluent-kafka",
    profile="librdkafka",
    module="confluent_kafka",
    distribution="confluent-kafka",
    cooperative=True,
    refuses_mixed="online migration between assignors with different protocol types is not supported",
    subscribes_again=True,
    joins_unpolled=True,
    closes_midway=True,
    deviations=DEVIATIONS,
    diagnoses=DIAGNOSES,
)
