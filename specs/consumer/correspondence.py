"""Which steps of the logic a step of the executable model of a consumer group stands for: some in a row, or
none, read off from the states before and after."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass

from rebalance_verifier.model.consumer import state as s
from rebalance_verifier.model.consumer.conversion import may_upgrade
from rebalance_verifier.model.consumer.member import ACTIVE
from rebalance_verifier.model.consumer.observations import Committed
from rebalance_verifier.model.group.parts import Life, Topics, each
from rebalance_verifier.model.machine import Event
from rebalance_verifier.specs.classic.refinement.abstraction import NoCounterpartError
from rebalance_verifier.specs.consumer.picture import GroupPicture, SlotState, under_way

NO_PATTERN = Topics(0)

Step = tuple[tuple[str, ...], tuple[int, ...]]
"""Actions of the logic, one of which it is, and their parameters."""

HANDLED = ("nothing_new", "must_drop", "has_dropped", "must_revoke", "given")
"""What becomes of a heartbeat that is accepted."""

OWN = {
    "lose": "lose", "reconcile": "begin", "revoke": "revoke", "assign": "assign",
    "acknowledge": "acknowledge", "subscribe": "subscribe", "late request": "commit_late",
}  # fmt: skip
"""Steps of the model that are one step of the client in the logic."""

LEAVES = {
    "close": "ends", "bounce": "ends", "crash": "ends", "unsubscribe": "unsubscribe",
    "max poll": "poll_too_late", "poll interval": "poll_too_late",
}  # fmt: skip
"""And those by which it leaves."""

REMOVES = ("session expires", "session timeout", "slow member", "member removed", "stale timeout")
"""Steps by which the coordinator removes a member."""

SILENT = (
    "pause",
    "hang",
    "resume",
    "resubscribe",
    "topic grows",
    "topic deleted",
    "group expires",
    "topic made anew",
)
"""Steps that the picture does not show."""


@dataclass(frozen=True, kw_only=True)
class ConsumerMove:
    """A step of the model: group and slots before and after."""

    map: GroupPicture
    event: Event
    before: tuple[SlotState, ...]
    after: tuple[SlotState, ...]
    group: s.ConsumerGroup
    group_after: s.ConsumerGroup
    seen: tuple[Hashable, ...]

    @property
    def old(self) -> SlotState:
        return self.before[self.event.who]

    @property
    def new(self) -> SlotState:
        return self.after[self.event.who]

    @property
    def static(self) -> bool:
        """Check whether the slot is a static member."""
        return self.map.setup.consumers[self.event.who].instance is not None

    def id(self, incarnation: int) -> int:
        """Return the element of a member id of the slot."""
        return self.map.id(self.event.who, incarnation)


# -- which steps ---------------------------------------------------------------------------------------


def steps(move: ConsumerMove) -> Iterator[Step]:
    """Yield the steps of the logic that a step of the model stands for. Raises NoCounterpartError."""
    name, me = move.event.action, move.old.member
    if name in SILENT:
        return
    if name == "failover":
        for slot, here in enumerate(move.before):
            ids = {here.member.id} if here.member.state in ACTIVE else set()
            ids |= {here.wire.id} if here.wire is not None and under_way(here.wire) else set()
            yield from ((("disconnected",), (move.map.id(slot, one),)) for one in sorted(ids))
    elif name in OWN:
        yield (OWN[name],), (move.id(me.id),)
    elif name in LEAVES or name == "leave lost":
        yield from left(move)
    elif name in REMOVES:
        yield from removed(move)
    elif name == "patterns resolved":
        if move.group_after.epoch != move.group.epoch:
            yield ("resolved",), (move.map.epoch(move.group_after.epoch),)
    elif name in _OTHERS:
        yield from _OTHERS[name](move)
    else:
        raise NoCounterpartError(f"the logic has no {name!r}")


def sent(move: ConsumerMove) -> Iterator[Step]:
    beat = move.new.wire
    assert isinstance(beat, s.Beat)
    steady = "heartbeat" if beat.owned is None else "full_heartbeat"
    yield ("join" if beat.kind is s.BeatKind.JOIN else steady,), (move.id(beat.id),)


def arrives(move: ConsumerMove) -> Iterator[Step]:
    """Yield a heartbeat at the coordinator; a target is one of the epoch that the group has by then."""
    beat = move.old.wire
    assert isinstance(beat, s.Beat)
    m, record, joins = move.id(beat.id), s.find(move.old.records, beat.id), beat.kind is s.BeatKind.JOIN
    if isinstance(move.new.wire, s.BeatRefused) or not (record is not None or joins):
        yield ("unreleased" if joins else "unknown",), (m,)
        return
    before = move.old.records[0] if move.static and move.old.records else None
    if record is None and before is not None:
        if s.find(move.new.records, before.id) is not None:  # of a leave that was behind it
            yield ("unreleased",), (m,)
            return
        yield ("replaces",), (m, move.id(before.id))
        record = before
    yield from handled(move, m, record, beat.topics, beat.pattern)


def handled(
    move: ConsumerMove,
    m: int,
    record: s.ConsumerRecord | None,
    topics: Topics,
    pattern: Topics = NO_PATTERN,
) -> Iterator[Step]:
    """Yield a heartbeat of ``m`` that is accepted, with this subscription; there was this record."""
    group, after = move.group, move.group_after
    epoch = move.map.epoch(after.assigned)
    if record is None:
        yield ("joined",), (m, epoch)
    elif (record.topics, record.pattern) != (topics, pattern):
        yield ("subscribed",), (m, epoch)
    elif after.assigned not in (group.assigned, group.epoch):
        yield ("raised",), (epoch,)
    if after.assigned != group.assigned:
        yield ("retargeted",), ()
    yield (*HANDLED, "unknown"), (m,)


def _ends(move: ConsumerMove, error: s.BeatError) -> bool:
    """Check whether the error is one by which a process ends, as specified, and does."""
    policy = error is s.BeatError.GROUP_ID_NOT_FOUND and not may_upgrade(move.map.setup)
    always = (s.BeatError.FENCED_INSTANCE_ID, s.BeatError.GROUP_MAX_SIZE_REACHED)
    fatal = error in always or policy
    return fatal and move.new.member.life is Life.FAILED


def heard(move: ConsumerMove) -> Iterator[Step]:
    wire, me = move.old.wire, move.old.member
    if wire is None or not under_way(wire):
        return
    if isinstance(wire, s.BeatRefused) and _ends(move, wire.error):
        yield ("ends",), (move.id(me.id),)
        yield ("unheard",), (move.id(wire.id),)
        return
    heard = move.new.member != me or (isinstance(wire, s.BeatOk) and wire.id == me.id)
    action = "answered" if isinstance(wire, s.BeatOk) else "refused"
    yield (action if heard else "unheard",), (move.id(wire.id),)


def removal(move: ConsumerMove, m: int) -> Step:
    """``m`` is removed."""
    return ("expired", "removed"), (m, move.map.epoch(move.group_after.epoch))


def left(
    move: ConsumerMove,
    arriving: Callable[[ConsumerMove], Iterator[Step]] = arrives,
    removal: Callable[[ConsumerMove, int], Step] = removal,
) -> Iterator[Step]:
    """A heartbeat before the leave on the same connection is handled before it, unless it is lost."""
    name, old = move.event.action, move.old
    action = LEAVES.get(name) or LEAVES[move.event.choice]
    before = isinstance(old.wire, s.Beat) and name not in ("crash", "leave lost")
    first = tuple(arriving(move)) if before else ()
    yield from first
    if old.wire is not None and under_way(old.wire) and not under_way(move.new.wire):
        yield ("disconnected",), (move.id(old.wire.id),)
    yield (action,), (move.id(old.member.id),)
    yield from commits_end(move)
    away = s.find(move.new.records, old.member.id)
    if away is not None and away.away and name not in ("crash", "leave lost"):
        yield ("goes_away",), (move.id(old.member.id),)
    joined = any("joined" in names for names, _ in first)
    if s.find(move.new.records, old.member.id) is None and (
        joined or s.find(old.records, old.member.id) is not None
    ):
        yield removal(move, move.id(old.member.id))


def removed(move: ConsumerMove, removal: Callable[[ConsumerMove, int], Step] = removal) -> Iterator[Step]:
    """Members are removed by the coordinator."""
    left = {record.id for record in move.new.records}
    for record in move.old.records:
        if record.id not in left:
            yield removal(move, move.id(record.id))


def started(move: ConsumerMove) -> Iterator[Step]:
    if move.old.wire is not None and under_way(move.old.wire):
        yield ("unheard",), (move.id(move.old.wire.id),)
    yield from commits_end(move)
    yield ("start",), (move.id(move.new.member.id),)


def lost(move: ConsumerMove) -> Iterator[Step]:
    wire = move.old.wire
    if wire is not None and not (isinstance(wire, s.BeatRefused) and wire.error is s.BeatError.DISCONNECT):
        yield ("disconnected",), (move.id(wire.id),)


def commits_end(move: ConsumerMove) -> Iterator[Step]:
    if move.old.stray is not None and move.new.stray is None:
        yield ("commits_end",), (move.id(move.old.stray.id),)


def committed(move: ConsumerMove) -> Iterator[Step]:
    stray = move.old.stray
    assert stray is not None
    m, g = move.id(stray.id), move.map.epoch(stray.generation)
    accepted = next((one.accepted for one in move.seen if isinstance(one, Committed)), 0)
    for p in each(stray.parts):
        yield ("commit_stored" if accepted >> p & 1 else "commit_refused",), (m, g, p)
    yield from commits_end(move)


_OTHERS: dict[str, Callable[[ConsumerMove], Iterator[Step]]] = {
    "heartbeat": sent,
    "heartbeat arrives": arrives,
    "answer": heard,
    "start": started,
    "disconnect": lost,
    "late request arrives": committed,
}
