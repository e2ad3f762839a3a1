"""librdkafka, as confluent-kafka has it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rebalance_verifier.live.conformance.clients.every import TAKEN_BACK
from rebalance_verifier.live.conformance.clients.traits import HEARD, FindingContext, read_client
from rebalance_verifier.model.classic.callbacks import give_up, join_complete, reset, works
from rebalance_verifier.model.classic.state import JoinOk, Member, Wire
from rebalance_verifier.model.group import parts as p
from rebalance_verifier.model.group.observations import Call
from rebalance_verifier.model.group.setup import MemberContext
from rebalance_verifier.model.machine import Outcome


def _idle(member: Member, wire: Wire) -> bool:
    still = member.state in (p.MemberState.STABLE, p.MemberState.UNJOINED) or _never_joined(member)
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
        yield Outcome((member._replace(topics=topics, state=p.MemberState.UNJOINED, rejoin=True), None, None))


def _never_joined(member: Member) -> bool:
    return member.state is p.MemberState.PREPARING and member.generation == p.NONE and not member.owned


def _loses_topic(me: MemberContext, member: Member, wire: Wire, topics: Any) -> Iterator[Outcome]:
    if topics is None or not _idle(member, wire):
        return
    gone = p.Parts(member.owned & ~me.setup.parts(topics))
    if gone:
        after, seen = give_up(me, member._replace(topics=topics), Call.LOST, gone)
        yield Outcome((after._replace(rejoin=True), wire, None), seen=seen)
        if not member.rejoin:
            yield Outcome((after._replace(joined_topics=topics), wire, None), "does not rejoin", seen)


def _keeps(me: MemberContext, member: Member) -> Iterator[Outcome]:
    """The callbacks of an assignment that waited while max.poll.interval.ms passed, as if nothing were."""
    if works(member) and member.received is not None and member.generation == p.NONE:
        after, seen = join_complete(me, member, member.received)
        yield Outcome((after._replace(prepare=False, rejoin=True, own_gen=p.NONE),), seen=seen)


def _joins_owning(me: MemberContext, member: Member) -> Iterator[Outcome]:
    outside = member.generation == p.NONE and member.state is p.MemberState.UNJOINED
    if works(member) and outside and member.owned and member.prepare:
        yield Outcome((member._replace(prepare=False),))


def _times_out(me: MemberContext, member: Member) -> Iterator[Outcome]:
    if works(member) and member.generation != p.NONE and member.received is None:
        yield Outcome((reset(member),))


def _starts_over(me: MemberContext, member: Member, wire: Wire) -> Iterator[Outcome]:
    if isinstance(wire, JoinOk) and wire.leader and works(member) and member.state is p.MemberState.PREPARING:
        yield Outcome(
            (member._replace(state=p.MemberState.UNJOINED, id=wire.id, rejoin=True), None), seen=(HEARD,)
        )


def _loses_late(me: MemberContext, member: Member) -> Iterator[Outcome]:
    outside = member.generation == p.NONE and member.state is not p.MemberState.STABLE
    if works(member) and outside and member.owned and not member.prepare:
        after, seen = give_up(me, member, Call.LOST, member.owned)
        yield Outcome((after,), seen=seen)


def _lost_and_silent(seen: FindingContext) -> bool:
    """Check whether a live member was told that it lost partitions after it subscribed to others, and did
    nothing since."""
    for name in seen.finding["consumers"]:
        moves = [e for e in seen.before(name) if e["event"] not in ("synced", "assigned", "reset")][-2:]
        if [e["event"] for e in moves] == ["subscribed", "lost"]:
            return True
    return False


def _left_owning(seen: FindingContext) -> bool:
    """Return the earlier owner left the group by itself while it owned, and was not told that it lost
    anything."""
    earlier = seen.finding["consumers"][0]
    moves = [e["event"] for e in seen.before(earlier, "leaving", "lost", "assigned", "reset")]
    return bool(moves) and moves[-1] in ("leaving", "reset")


TRAITS = read_client(
    __file__,
    {
        "applies its subscription": _applies,
        "loses what it unsubscribed": _loses_topic,
        "keeps what it left": _keeps,
        "joins with what it lost": _joins_owning,
        "times out by itself": _times_out,
        "loses it late": _loses_late,
        "starts over as leader": _starts_over,
    },
    {
        "loses what it unsubscribed and does not rejoin": _lost_and_silent,
        "keeps what it left": _left_owning,
        TAKEN_BACK.id: TAKEN_BACK,
        "not polled and never leaves: librdkafka": lambda seen: seen.in_group_without_polls,
    },
)
