"""Every step of the executable model of a consumer group is some steps of the logic in a row, or none.

``picture`` maps states. Which steps are meant is read off from the states before and after, and each of them
has to be allowed; the last one has to end where the map says. What a heartbeat does at the coordinator at
once is up to five steps of the logic.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, cast

import z3
from rebalance.model.consumer.client import ACTIVE
from rebalance.model.consumer.group import consumer_machine
from rebalance.model.consumer.observations import Committed
from rebalance.model.consumer.state import Beat, BeatKind, BeatOk, BeatRefused, ConsumerGroup, find
from rebalance.model.machine import Event, Machine
from rebalance.model.protocol.describe import event_text
from rebalance.model.protocol.setup import Setup, letter
from rebalance.model.protocol.state import each
from rebalance.specs.consumer.order import in_step
from rebalance.specs.consumer.picture import GroupPicture, SlotState, ids_in, under_way
from rebalance.specs.logic.concrete import Stepper
from rebalance.specs.logic.specification import Specification
from rebalance.specs.logic.universe import Structure, call
from rebalance.specs.refinement.abstraction import NoCounterpartError
from rebalance.specs.refinement.refinement import RefinementFailure, Report, broken
from rebalance.specs.refinement.sampling import ModelSample, SampledModel, sampled_by
from rebalance.specs.refinement.transitions import NumberedMachine, Numbers, Transition

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
    "close": "ends", "crash": "ends", "unsubscribe": "unsubscribe", "max poll": "poll_too_late",
    "poll interval": "poll_too_late",
}  # fmt: skip
"""And those by which it leaves."""

REMOVES = ("session expires", "session timeout", "slow member", "member removed")
"""Steps by which the coordinator removes a member."""

SILENT = ("pause", "hang", "resume", "resubscribe", "topic grows", "topic deleted", "group expires")
"""Steps that the picture does not show."""


@dataclass(frozen=True, kw_only=True)
class ConsumerMove:
    """A step of the model: group and slots before and after."""

    map: GroupPicture
    event: Event
    before: tuple[SlotState, ...]
    after: tuple[SlotState, ...]
    group: ConsumerGroup
    group_after: ConsumerGroup
    seen: tuple[Hashable, ...]

    @property
    def old(self) -> SlotState:
        return self.before[self.event.who]

    @property
    def new(self) -> SlotState:
        return self.after[self.event.who]

    def id(self, incarnation: int) -> int:
        """The element of a member id of the slot."""
        return self.map.id(self.event.who, incarnation)


# -- which steps ---------------------------------------------------------------------------------------


def steps(move: ConsumerMove) -> Iterator[Step]:
    """The steps of the logic that a step of the model stands for. Raises NoCounterpartError."""
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
        yield from _leaves(move)
    elif name in REMOVES:
        yield from _removed(move)
    elif name in _OTHERS:
        yield from _OTHERS[name](move)
    else:
        raise NoCounterpartError(f"the logic has no {name!r}")


def _sent(move: ConsumerMove) -> Iterator[Step]:
    beat = move.new.wire
    assert isinstance(beat, Beat)
    steady = "heartbeat" if beat.owned is None else "full_heartbeat"
    yield ("join" if beat.kind is BeatKind.JOIN else steady,), (move.id(beat.id),)


def _arrives(move: ConsumerMove) -> Iterator[Step]:
    """A heartbeat at the coordinator; a target is one of the epoch that the group has by then."""
    beat, group, after = move.old.wire, move.group, move.group_after
    assert isinstance(beat, Beat)
    m, record = move.id(beat.id), find(move.old.records, beat.id)
    known = record is not None or beat.kind is BeatKind.JOIN
    if isinstance(move.new.wire, BeatRefused) or not known:
        yield ("unknown",), (m,)
        return
    epoch = move.map.epoch(after.assigned)
    if record is None:
        yield ("joined",), (m, epoch)
    elif record.topics != beat.topics:
        yield ("subscribed",), (m, epoch)
    elif after.assigned not in (group.assigned, group.epoch):
        yield ("raised",), (epoch,)
    if after.assigned != group.assigned:
        yield ("retargeted",), ()
    yield (*HANDLED, "unknown"), (m,)


def _heard(move: ConsumerMove) -> Iterator[Step]:
    wire, me = move.old.wire, move.old.member
    if wire is None or not under_way(wire):
        return
    heard = move.new.member != me or (isinstance(wire, BeatOk) and wire.id == me.id)
    action = "answered" if isinstance(wire, BeatOk) else "refused"
    yield (action if heard else "unheard",), (move.id(wire.id),)


def _leaves(move: ConsumerMove) -> Iterator[Step]:
    """A heartbeat before the leave on the same connection is handled before it, unless it is lost."""
    name, old = move.event.action, move.old
    action = LEAVES.get(name) or LEAVES[move.event.choice]
    arrives = isinstance(old.wire, Beat) and name not in ("crash", "leave lost")
    if arrives:
        yield from _arrives(move)
    if old.wire is not None and under_way(old.wire) and not under_way(move.new.wire):
        yield ("disconnected",), (move.id(old.wire.id),)
    yield (action,), (move.id(old.member.id),)
    yield from _commits_end(move)
    joined = arrives and isinstance(old.wire, Beat) and old.wire.kind is BeatKind.JOIN
    if find(move.new.records, old.member.id) is None and (
        joined or find(old.records, old.member.id) is not None
    ):
        yield ("removed",), (move.id(old.member.id), move.map.epoch(move.group_after.epoch))


def _removed(move: ConsumerMove) -> Iterator[Step]:
    left = {record.id for record in move.new.records}
    for record in move.old.records:
        if record.id not in left:
            yield ("expired", "removed"), (move.id(record.id), move.map.epoch(move.group_after.epoch))


def _started(move: ConsumerMove) -> Iterator[Step]:
    if move.old.wire is not None and under_way(move.old.wire):
        yield ("unheard",), (move.id(move.old.wire.id),)
    yield from _commits_end(move)
    yield ("start",), (move.id(move.new.member.id),)


def _lost(move: ConsumerMove) -> Iterator[Step]:
    wire = move.old.wire
    if wire is not None and under_way(wire):
        yield ("disconnected",), (move.id(wire.id),)


def _commits_end(move: ConsumerMove) -> Iterator[Step]:
    if move.old.stray is not None and move.new.stray is None:
        yield ("commits_end",), (move.id(move.old.stray.id),)


def _committed(move: ConsumerMove) -> Iterator[Step]:
    stray = move.old.stray
    assert stray is not None
    m, g = move.id(stray.id), move.map.epoch(stray.generation)
    accepted = next((one.accepted for one in move.seen if isinstance(one, Committed)), 0)
    for p in each(stray.parts):
        yield ("commit_stored" if accepted >> p & 1 else "commit_refused",), (m, g, p)
    yield from _commits_end(move)


_OTHERS: dict[str, Callable[[ConsumerMove], Iterator[Step]]] = {
    "heartbeat": _sent,
    "heartbeat arrives": _arrives,
    "answer": _heard,
    "start": _started,
    "disconnect": _lost,
    "late request arrives": _committed,
}


# -- the check -----------------------------------------------------------------------------------------


class ConsumerRefinement:
    """Checks states and transitions of one setup, each that looks different once. The universe grows as ids
    and epochs come. Raises ValueError where somebody is static, or speaks the classic protocol."""

    def __init__(
        self,
        setup: Setup,
        spec: Specification | None = None,
        build: Callable[[Setup], Machine] = consumer_machine,
    ) -> None:
        if setup.migrates or any(consumer.instance is not None for consumer in setup.consumers):
            raise ValueError("the logic has dynamic members of the consumer protocol only")
        self.setup = replace(setup, steps="fine")
        self.spec = spec or _protocol()
        self.numbered = NumberedMachine(build(self.setup))
        self.report = Report(taken=Counter(dict.fromkeys((action.name for action in self.spec.actions), 0)))
        position = self.numbered.machine.position
        self._group = position["group"]
        parts = ("member", "wire", "stray", "record")
        self._slots = [[position[f"{part} {letter(slot)}"] for part in parts] for slot in setup.slots]
        self._formulas = {**self.spec.invariants, **self.spec.properties}
        self._together = z3.And(*self._formulas.values())
        self._resize(2, 8)

    def _resize(self, ids: int, epochs: int) -> None:
        self.map = GroupPicture(self.setup, ids, epochs)
        self._stepper = Stepper(self.map.universe, self.spec.actions)
        self._structures: dict[Numbers, Structure] = {}
        self._seen: set[tuple[Structure, tuple[Step, ...], Structure]] = set()
        self._judged: set[Structure] = set()

    def begin(self) -> RefinementFailure | None:
        """Check the initial states."""
        for state in self.numbered.initial:
            if not self._stepper.holds(self.spec.initial, self._structure(state)):
                return RefinementFailure("at first", "initial", "the formula does not hold at first")
        return None

    def check(self, transition: Transition) -> RefinementFailure | None:
        """Check one step."""
        before, _, after, _ = transition
        self.report.transitions += 1
        try:
            self._fit(before, after)
            one, other = self._structure(before), self._structure(after)
            path = tuple(steps(self._move(transition)))
        except NoCounterpartError as reason:
            return RefinementFailure(event_text(transition.event), "", str(reason))
        self.report.silent += not path
        if (one, path, other) in self._seen:
            return None
        self._seen.add((one, path, other))
        self.report.distinct += 1
        wrong = self._wrong(one, path, other)
        return RefinementFailure(event_text(transition.event), *wrong) if wrong else None

    def _wrong(self, state: Structure, path: tuple[Step, ...], after: Structure) -> tuple[str, str] | None:
        """The first step that is not possible, or the last one if it ends elsewhere; and why."""
        for names, parameters in path:
            reasons = []
            for name in names:
                try:
                    state = self._stepper.apply(state, name, parameters, after)
                except ValueError as reason:
                    reasons.append(str(reason))
                    continue
                self.report.taken[name] += 1
                break
            else:
                return names[0], "; ".join(dict.fromkeys(reasons))
        final = path[-1][0][0] if path else "a stutter"
        for symbol, arguments, should, is_ in self.map.universe.differences(state, after):
            return final, f"{final}: {call(symbol, arguments)} is {is_}, should be {should}"
        return None

    def judge(self, state: Numbers, event: str = "") -> RefinementFailure | None:
        """The first invariant or property that does not hold in ``state``."""
        try:
            self._fit(state)
            structure = self._structure(state)
        except NoCounterpartError as reason:
            return RefinementFailure(event, "", str(reason))
        if structure in self._judged:
            return None
        self._judged.add(structure)
        if self._stepper.holds(self._together, structure):
            return None
        return broken(self._stepper, self._formulas, structure, event)

    def breach(self, state: Numbers, event: str = "") -> RefinementFailure | None:
        """The first property that does not hold in ``state``; None also where nothing shows it."""
        try:
            self._fit(state)
            return broken(self._stepper, self.spec.properties, self._structure(state), event)
        except NoCounterpartError:
            return None

    # -- pictures ----------------------------------------------------------------------------------------

    def _slot_states(self, state: Numbers) -> tuple[SlotState, ...]:
        values: list[Any] = self.numbered.values
        return tuple(SlotState(*(values[state[i]] for i in positions)) for positions in self._slots)

    def _fit(self, *states: Numbers) -> None:
        ids, epochs, labels = self.map.ids, self.map.epochs, self.numbered.machine.labels
        assert labels is not None
        for state in states:
            ids = max(ids, *map(ids_in, self._slot_states(state)))
            used = (labels.used(self.numbered.values[number]) for number in state)
            epochs = max(epochs, *(mask.bit_length() for mask in used))
        if (ids, epochs) != (self.map.ids, self.map.epochs):
            self._resize(ids, epochs)

    def _structure(self, state: Numbers) -> Structure:
        known = self._structures.get(state)
        if known is None:
            group = cast(ConsumerGroup, self.numbered.values[state[self._group]])
            known = self._structures[state] = self.map.structure(group, self._slot_states(state))
        return known

    def _move(self, transition: Transition) -> ConsumerMove:
        before, event, after, seen = transition
        values: list[Any] = self.numbered.values
        return ConsumerMove(
            map=self.map,
            event=event,
            before=self._slot_states(before),
            after=self._slot_states(after),
            group=values[before[self._group]],
            group_after=values[after[self._group]],
            seen=seen or (),
        )


def sampled(sample: ModelSample) -> SampledModel:
    """Check the sample of the model."""
    return sampled_by(sample, ConsumerRefinement(sample.setup))


@cache
def _protocol() -> Specification:
    return in_step()
