"""Every step of the executable model of a group between the protocols is some steps of the logic, or none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

from rebalance_verifier.model.consumer import state as s
from rebalance_verifier.model.consumer.conversion import may_upgrade
from rebalance_verifier.model.group import parts as p
from rebalance_verifier.model.group.setup import Setup
from rebalance_verifier.model.machine import Machine
from rebalance_verifier.model.migration.group import migration_machine
from rebalance_verifier.specs.classic.refinement.abstraction import NoCounterpartError
from rebalance_verifier.specs.classic.refinement.sampling import ModelSample, SampledModel, sampled_by
from rebalance_verifier.specs.consumer import correspondence
from rebalance_verifier.specs.consumer.correspondence import (
    REMOVES,
    ConsumerMove,
    Step,
    commits_end,
    committed,
    handled,
    steps,
)
from rebalance_verifier.specs.consumer.refinement import ConsumerRefinement
from rebalance_verifier.specs.logic.specification import Specification
from rebalance_verifier.specs.migration.picture import MigrationPicture
from rebalance_verifier.specs.migration.safety import specification


def migration_steps(move: ConsumerMove) -> Iterator[Step]:
    """Yield the steps of the logic that a step of the model stands for. Raises NoCounterpartError."""
    name = move.event.action
    if name in _OF_GROUP:
        yield from _OF_GROUP[name](move)
    elif name in REMOVES:
        yield from correspondence.removed(move, removal)
    elif isinstance(move.old.member, s.ClassicMember):
        if name not in _OF_CLASSIC:
            raise NoCounterpartError(f"the logic has no {name!r} of a classic member")
        yield from _OF_CLASSIC[name](move)
    elif name == "heartbeat arrives":
        yield from arrives(move)
    elif name in correspondence.LEAVES or name == "leave lost":
        yield from correspondence.left(move, arrives, removal)
    else:
        yield from steps(move)


def removal(move: ConsumerMove, m: int) -> Step:
    """A member is removed: of a classic group, of one that becomes a classic one, or of one that does not."""
    if move.group.kind is s.GroupKind.CLASSIC and move.group_after.kind is s.GroupKind.CLASSIC:
        upgraded = isinstance(move.old.wire, s.Beat) and s.find(move.old.records, move.old.wire.id) is None
        if not (upgraded and move.event.action in correspondence.LEAVES):
            return ("leaves",), (m,)
    if move.group_after.kind is s.GroupKind.CLASSIC:
        return ("downgraded",), (m,)
    return correspondence.removal(move, m)


# -- of clients of the consumer protocol ---------------------------------------------------------------


def arrives(move: ConsumerMove) -> Iterator[Step]:
    """Yield a heartbeat at the coordinator; one that joins makes the group one of its protocol."""
    beat = move.old.wire
    assert isinstance(beat, s.Beat)
    m = move.id(beat.id)
    if beat.kind is s.BeatKind.JOIN and move.group.kind is s.GroupKind.CLASSIC:
        if any(here.records for here in move.before) and not may_upgrade(move.map.setup):
            yield ("not_found",), (m,)
            return
        yield ("upgraded",), (m, move.map.epoch(move.group.epoch + 1))
    elif beat.kind is s.BeatKind.JOIN and move.group.kind is s.GroupKind.NONE:
        yield ("founded",), (m,)
    yield from correspondence.arrives(move)


# -- of classic clients --------------------------------------------------------------------------------


def _me(move: ConsumerMove) -> int:
    return move.id(move.old.member.id)


def _dropped(move: ConsumerMove) -> Iterator[Step]:
    if isinstance(move.old.wire, s.ClassicMessage) and move.new.wire is None:
        yield ("dropped",), (move.id(move.old.wire.id),)


def _joins(move: ConsumerMove) -> Iterator[Step]:
    old, new = move.old.member, move.new.member
    eager = not old.owned or not new.owned
    yield ("join_eager" if eager else "join_claiming",), (_me(move),)


def _request(move: ConsumerMove) -> Iterator[Step]:
    call, answer = move.old.wire, move.new.wire
    assert isinstance(call, s.ClassicMessage)
    assert isinstance(answer, s.ClassicMessage)
    m, step = move.id(call.id), answer.step
    if step is s.ClassicStep.REFUSED:
        yield ("refuses",), (m,)
        if move.group.kind is not move.group_after.kind:
            yield ("dissolved",), ()
    elif call.step is s.ClassicStep.SYNC:
        settled = "sync_of_epoch" if move.group.kind is s.GroupKind.CONSUMER else "sync_of_settled"
        yield ("sync_waits" if step is s.ClassicStep.SYNC_WAITS else settled,), (m,)
    elif step is s.ClassicStep.JOIN_WAITS:
        yield ("enters",), (m,)
    else:
        yield ("presents",), (m,)
        yield from handled(move, m, s.find(move.old.records, call.id), call.topics)
        yield ("returns",), (m,)


def _refused(move: ConsumerMove) -> Iterator[Step]:
    assert isinstance(move.old.wire, s.ClassicMessage)
    yield ("refuses",), (move.id(move.old.wire.id),)


def _response(move: ConsumerMove) -> Iterator[Step]:
    call, old, new = move.old.wire, move.old.member, move.new.member
    assert isinstance(call, s.ClassicMessage)
    assert isinstance(old, s.ClassicMember)
    if new.life is p.Life.FAILED:
        yield ("ends",), (_me(move),)
    elif isinstance(move.new.wire, s.ClassicMessage):
        yield ("join_answered",), (_me(move),)
        return
    elif call.step is s.ClassicStep.SYNC_OK and call.id == old.id and old.state is p.MemberState.COMPLETING:
        yield ("sync_answered",), (_me(move),)
        return
    else:
        yield from _expelled(move)
    yield from _dropped(move)


def _expelled(move: ConsumerMove) -> Iterator[Step]:
    old, new = move.old.member, move.new.member
    assert isinstance(old, s.ClassicMember)
    assert isinstance(new, s.ClassicMember)
    if old.generation != p.NONE and new.generation == p.NONE:
        yield ("expelled",), (_me(move),)


def _started(move: ConsumerMove) -> Iterator[Step]:
    yield from _dropped(move)
    yield from commits_end(move)
    yield ("start_old",), (move.id(move.new.member.id),)


def _ends(move: ConsumerMove) -> Iterator[Step]:
    """It is closed, killed or bounced; if it leaves the group hears of it at once."""
    yield from _dropped(move)
    yield ("ends",), (_me(move),)
    yield from commits_end(move)
    before = s.find(move.old.records, move.old.member.id)
    if before is not None and s.find(move.new.records, before.id) is None:
        yield removal(move, _me(move))


def _nothing(move: ConsumerMove) -> Iterator[Step]:
    return iter(())


def _late(move: ConsumerMove) -> Iterator[Step]:
    yield ("commit_late",), (_me(move),)


_OF_CLASSIC: dict[str, Callable[[ConsumerMove], Iterator[Step]]] = {
    "beat": _expelled,
    "join": _joins,
    "request arrives": _request,
    "request refused": _refused,
    "response": _response,
    "start": _started,
    "crash": _ends,
    "close": _ends,
    "bounce": _ends,
    "disconnect": _refused,
    "late request": _late,
    "pause": _nothing,
    "resume": _nothing,
}

# -- of the group --------------------------------------------------------------------------------------


def _phase_ends(move: ConsumerMove) -> Iterator[Step]:
    yield ("phase_ends",), (move.map.epoch(move.group_after.epoch),)


def _decides(move: ConsumerMove) -> Iterator[Step]:
    yield ("decides",), ()


def _commit_arrives(move: ConsumerMove) -> Iterator[Step]:
    """Yield what the logic leaves open: what a classic group does with it."""
    if move.group.kind is s.GroupKind.CLASSIC:
        yield from commits_end(move)
    else:
        yield from committed(move)


def _expires(move: ConsumerMove) -> Iterator[Step]:
    yield ("dissolved",), ()


_OF_GROUP: dict[str, Callable[[ConsumerMove], Iterator[Step]]] = {
    "join phase ends": _phase_ends,
    "leader decides": _decides,
    "late request arrives": _commit_arrives,
    "group expires": _expires,
}

# -- the check -----------------------------------------------------------------------------------------


class MigrationRefinement(ConsumerRefinement):
    """Checks states and transitions of one setup between the protocols. Raises ValueError where somebody is
    static, subscribes by pattern, where a topic may be made anew, or the coordinator may fail over: what a
    classic group has in its log is not in the logic."""

    picture = MigrationPicture

    def covers(self, setup: Setup) -> None:
        if setup.has_patterns:
            raise ValueError("the logic has no subscriptions by pattern between the protocols")
        if "topic made anew" in setup.faults:
            raise ValueError("the logic has no topics that are made anew between the protocols")
        if setup.keeps_log or any(consumer.instance is not None for consumer in setup.consumers):
            raise ValueError("the logic has dynamic members, and no failover of a classic group")

    def specified(self) -> Specification:
        return _protocol()

    def machine(self, setup: Setup) -> Machine:
        return migration_machine(setup)

    def path(self, move: ConsumerMove) -> Iterator[Step]:
        return migration_steps(move)


def sampled(sample: ModelSample) -> SampledModel:
    """Check the sample of the model."""
    return sampled_by(sample, MigrationRefinement(sample.setup))


@cache
def _protocol() -> Specification:
    return specification()
