"""The map from the executable model (``model.consumer``) to the logic: a state as a structure.

A member id is a slot and an incarnation there, one element here; an epoch is a number in both, ``none`` is
element 0. What the logic leaves out of a client (whether it is paused or hangs, its subscription, which
heartbeat will carry what) is left out of the picture, so such steps stutter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from rebalance_verifier.model.consumer import state as s
from rebalance_verifier.model.consumer.member import ACTIVE, FENCING
from rebalance_verifier.model.group.parts import NONE, Life
from rebalance_verifier.model.group.setup import Setup
from rebalance_verifier.specs.classic.refinement.abstraction import NoCounterpartError
from rebalance_verifier.specs.consumer.vocabulary import VOCABULARY
from rebalance_verifier.specs.logic.universe import Structure, Universe, Value

CLIENT_STATES = {
    s.ClientState.UNSUBSCRIBED: "UNSUBSCRIBED",
    s.ClientState.JOINING: "JOINING",
    **dict.fromkeys(s.INSIDE, "INSIDE"),
    s.ClientState.FENCED: "FENCED",
    s.ClientState.STALE: "FENCED",
}
REFUSALS = (*FENCING, s.BeatError.GROUP_ID_NOT_FOUND, s.BeatError.FENCED_INSTANCE_ID)
"""Errors by which a client is fenced, or ends."""

UNHEARD = (s.BeatError.DISCONNECT, s.BeatError.UNRELEASED_INSTANCE_ID)
"""What changes nothing at the client but that it sends again."""

RUNNING = (Life.UP, Life.PAUSED, Life.HUNG)


Entry = tuple[str, tuple[int, ...], Value]
"""A symbol, where, and its value there."""


class SlotState(NamedTuple):
    """Part of a state that is about one slot."""

    member: s.ConsumerMember
    wire: s.BeatWire
    stray: s.LateCommit
    records: s.ConsumerRecords


class GroupPicture:
    """The map for one setup, into a universe of ``ids`` member ids for each slot and so many epochs."""

    vocabulary = VOCABULARY
    defaults: Mapping[str, Value] = {"state": "UNSUBSCRIBED", "wire": "idle", "record": "STABLE"}
    """What functions that are no epochs are where nothing else is known."""

    def __init__(self, setup: Setup, ids: int, epochs: int) -> None:
        self.setup, self.ids, self.epochs = setup, ids, epochs
        self.partitions = range(sum(setup.topics).bit_length())
        self.universe = Universe(
            self.vocabulary,
            {
                "Member": len(setup.slots) * ids,
                "Partition": len(self.partitions),
                "Generation": 1 + epochs,
            },
            {"lt": lambda g, h: g < h, "none": 0, "zero": 1},
        )
        self._blank = {
            name: dict.fromkeys(self.universe.places[name], self._default(name))
            for name in self.universe.positions
        }

    def _default(self, name: str) -> Value:
        an_epoch = self.vocabulary.symbols[name].value.name() == "Generation"
        return self.defaults.get(name, 0 if an_epoch else False)

    def id(self, slot: int, incarnation: int) -> int:
        """Return the element of a member id."""
        return slot * self.ids + incarnation - 1

    def epoch(self, number: int) -> int:
        """Return the element of an epoch."""
        return 0 if number == NONE else number + 1

    def structure(self, group: s.ConsumerGroup, slots: tuple[SlotState, ...]) -> Structure:
        """Return a whole state. Raises NoCounterpartError for one without a picture."""
        values = {name: dict(entries) for name, entries in self._blank.items()}
        for name, value in self.group(group):
            values[name][()] = value
        for slot, here in enumerate(slots):
            for name, key, value in (*self._client(slot, here), *self._records(slot, here)):
                values[name][key] = value
        return tuple(tuple(values[name].values()) for name in self.universe.positions)

    def group(self, group: s.ConsumerGroup) -> Iterator[tuple[str, Value]]:
        """Yield what there is of the group alone."""
        yield "group_epoch", self.epoch(group.epoch)
        yield "target_epoch", self.epoch(group.assigned)

    def _client(self, slot: int, here: SlotState) -> Iterator[Entry]:
        if here.member.life in RUNNING:
            m = self.id(slot, here.member.id)
            yield "runs", (m,), True
            yield from self._member(m, here)
        if under_way(here.wire):
            yield from self._wire(slot, here.wire)
        if here.stray is not None:
            m, g = self.id(slot, here.stray.id), self.epoch(here.stray.generation)
            yield from (("late", (m, g, p), True) for p in self.partitions if here.stray.parts >> p & 1)

    def _member(self, m: int, here: SlotState) -> Iterator[Entry]:
        member = here.member
        yield "state", (m,), CLIENT_STATES[member.state]
        yield "epoch", (m,), self.epoch(member.epoch)
        yield "reconciling", (m,), member.goal is not None
        yield "fresh", (m,), member.fresh
        yield "unsent", (m,), member.unsent
        yield "full", (m,), member.full or _unheard(here)
        for name, some in (
                ("owned", member.owned), ("received", member.target), ("goal", member.goal),
                ("claim", member.claim),
            ):  # fmt: skip
            yield from self._parts(name, m, some)

    def _wire(self, slot: int, wire: s.BeatWire) -> Iterator[Entry]:
        assert wire is not None
        m = self.id(slot, wire.id)
        if isinstance(wire, s.BeatRefused):
            if wire.error not in REFUSALS:
                raise NoCounterpartError(f"the logic has no {wire.error}")
            yield "wire", (m,), "refusal"
            return
        yield "wire_epoch", (m,), self.epoch(wire.epoch)
        if isinstance(wire, s.BeatOk):
            yield "wire", (m,), "answer"
            yield "carries", (m,), wire.parts is not None
            yield from self._parts("granted", m, wire.parts)
            return
        if wire.kind not in (s.BeatKind.JOIN, s.BeatKind.STEADY):
            raise NoCounterpartError(f"in the logic a heartbeat that is to {wire.kind} arrives at once")
        yield "wire", (m,), "join" if wire.kind is s.BeatKind.JOIN else "heartbeat"
        yield "carries", (m,), wire.owned is not None
        yield "asks", (m,), wire.full and wire.kind is s.BeatKind.STEADY
        yield from self._parts("sent", m, wire.owned)

    def _records(self, slot: int, here: SlotState) -> Iterator[Entry]:
        for record in here.records:
            self._covers(record)
            m = self.id(slot, record.id)
            yield "member", (m,), True
            yield "at", (m,), self.epoch(record.epoch)
            yield "previous", (m,), self.epoch(record.previous)
            yield "record", (m,), record.state.value
            subscribed = self.setup.parts(record.subscribed)
            for name, some in (
                ("assigned", record.assigned), ("pending", record.pending), ("target", record.target),
                ("subscribed", subscribed),
            ):  # fmt: skip
                yield from self._parts(name, m, some)

    def _covers(self, record: s.ConsumerRecord) -> None:
        """Raises NoCounterpartError for what the logic does not have."""
        if record.classic or record.unmarked:
            raise NoCounterpartError("the logic has no classic members, and no unmarked parts")

    def _parts(self, name: str, m: int, some: int | None) -> Iterator[Entry]:
        return ((name, (m, p), True) for p in self.partitions if (some or 0) >> p & 1)


def _unheard(here: SlotState) -> bool:
    """Check whether the client will notice that its connection broke."""
    member, wire = here.member, here.wire
    return (
        isinstance(wire, s.BeatRefused)
        and wire.error is s.BeatError.DISCONNECT
        and wire.id == member.id
        and member.state in ACTIVE
    )


def under_way(wire: s.BeatWire) -> bool:
    """Check whether something is under way; that a client will notice a lost connection is nothing."""
    return wire is not None and not (isinstance(wire, s.BeatRefused) and wire.error in UNHEARD)


def ids_in(here: SlotState) -> int:
    """Return the greatest incarnation in it."""
    found = [here.member.id, *(record.id for record in here.records)]
    found += [one.id for one in (here.wire, here.stray) if one is not None]
    return max(found)
