"""Connections of a consumer group that break: a heartbeat left behind on one may arrive after those of the
next.

As in the classic protocol (``model.classic.environment``): the broker handles the requests of one
connection in order, those of several in any; whose connection broke hears no answer.
"""

from __future__ import annotations

from collections.abc import Iterator

from rebalance_verifier.model.classic.join_group import ARRIVES
from rebalance_verifier.model.consumer import coordinator
from rebalance_verifier.model.consumer import member as client
from rebalance_verifier.model.consumer.observations import BeatAnswered
from rebalance_verifier.model.consumer.state import (
    Beat,
    BeatError,
    BeatOk,
    BeatRefused,
    BeatWire,
    ConsumerGroup,
    ConsumerMember,
    ConsumerRecords,
    LateCommit,
    find,
)
from rebalance_verifier.model.group.observations import Noted
from rebalance_verifier.model.group.parts import ClusterState, Life
from rebalance_verifier.model.group.setup import MemberContext
from rebalance_verifier.model.machine import Outcome

LeftBehind = tuple[Beat, ...]
"""Heartbeats of one slot, each on a connection of its own that broke, the oldest first."""


def leave_behind(
    me: MemberContext, budget: int, member: ConsumerMember, wire: BeatWire, behind: LeftBehind
) -> Iterator[Outcome]:
    """The connection breaks, the client is told so, and its heartbeat stays under way."""
    if isinstance(wire, Beat) and member.life not in (Life.DOWN, Life.FAILED):
        answer = BeatRefused(wire.id, BeatError.DISCONNECT)
        yield Outcome((budget - 1, answer, (*behind, wire)), seen=(Noted("heartbeat left behind"),))


def start_after(
    me: MemberContext,
    member: ConsumerMember,
    wire: BeatWire,
    stray: LateCommit,
    records: ConsumerRecords,
    behind: LeftBehind,
) -> Iterator[Outcome]:
    """``start``, and what the process before had sent is still under way, on its connection."""
    left = (*behind, wire) if isinstance(wire, Beat) else behind
    for outcome in client.start(me, member, wire, stray, records, named=[beat.id for beat in left]):
        yield outcome._replace(values=(*outcome.values, left))


def arrives(
    me: MemberContext,
    wire: BeatWire,
    group: ConsumerGroup,
    cluster: ClusterState,
    behind: LeftBehind,
    *book: ConsumerRecords,
) -> Iterator[Outcome]:
    """A heartbeat reaches the coordinator, before those that its sender has left behind."""
    assert isinstance(wire, Beat)
    for outcome in coordinator.arrives(me, wire, group, cluster, *book):
        answer, after, *records = outcome.values
        assert isinstance(answer, BeatOk | BeatRefused)
        yield outcome._replace(values=(answer, after, not_overtaken(me, behind, wire, answer), *records))


def left_arrives(
    me: MemberContext,
    behind: LeftBehind,
    group: ConsumerGroup,
    cluster: ClusterState,
    *book: ConsumerRecords,
) -> Iterator[Outcome]:
    """A heartbeat arrives whose connection broke, perhaps after later ones, and its sender hears no answer.
    One that does not carry every field says nothing of its subscription."""
    for n, beat in enumerate(behind):
        record = find(book[me.slot], beat.id)
        says = beat
        if record is not None and not beat.full:
            says = beat._replace(topics=record.topics, pattern=record.pattern)
        for done in coordinator.heartbeat(me, says, group, book, cluster.parts):
            kept = (*not_overtaken(me, behind[:n], beat, done.answer), *behind[n + 1 :])
            choice = " ".join(filter(None, (which(behind, n), done.choice)))
            seen = tuple(one for one in done.seen if not isinstance(one, BeatAnswered))
            yield Outcome((kept, done.group, *done.book), choice, (*seen, ARRIVES))


def which(behind: LeftBehind, n: int) -> str:
    """Return which of several broken connections, oldest first."""
    return f"connection {n + 1}" if len(behind) > 1 else ""


def connection_of(choice: str) -> int:
    """Return the number of the connection in a choice that begins with what ``which`` made, 0 for the only
    one.

    >>> connection_of("A t-0"), connection_of("connection 2 A t-0")
    (0, 1)
    """
    first, *rest = choice.split()[:2] or [""]
    return int(rest[0]) - 1 if first == "connection" else 0


def not_overtaken(
    me: MemberContext, behind: LeftBehind, later: Beat, answer: BeatOk | BeatRefused
) -> LeftBehind:
    """Return what is still to be believed of ``behind`` once a ``later`` heartbeat has its ``answer``.

    As specified, unless it was refused, no older one of the same member id or instance is: a heartbeat says
    how many connections of its sender have broken, and the coordinator refuses what was sent on an older one
    than it has heard of. Kafka's says nothing of the kind.
    """
    if isinstance(answer, BeatRefused) or "overtaken_heartbeat_believed" in me.setup.coordinator:
        return behind
    return tuple(beat for beat in behind if not me.static and beat.id != later.id)
