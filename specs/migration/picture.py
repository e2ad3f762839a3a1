"""The map from ``model.migration`` to the logic: classic members, calls and groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rebalance_verifier.model.consumer import state as s
from rebalance_verifier.model.group.parts import NONE
from rebalance_verifier.specs.classic.refinement.abstraction import NoCounterpartError
from rebalance_verifier.specs.consumer.picture import Entry, GroupPicture, SlotState
from rebalance_verifier.specs.logic.universe import Value
from rebalance_verifier.specs.migration.vocabulary import VOCABULARY

SHOWN = (s.ClassicStep.JOIN, s.ClassicStep.JOIN_WAITS, s.ClassicStep.SYNC_OK)
"""Messages whose partitions matter."""


class MigrationPicture(GroupPicture):
    """The map for one setup."""

    vocabulary = VOCABULARY
    defaults: Mapping[str, Value] = {
        **GroupPicture.defaults, "call": "no call", "kind": "none", "phase": "Empty",
    }  # fmt: skip

    def group(self, group: s.ConsumerGroup) -> Iterator[tuple[str, Value]]:
        yield from super().group(group)
        yield "kind", group.kind.value
        if group.kind is s.GroupKind.CLASSIC:
            yield "phase", group.phase.value

    def _member(self, m: int, here: SlotState) -> Iterator[Entry]:
        if not isinstance(here.member, s.ClassicMember):
            yield from super()._member(m, here)
            return
        inside = here.member.generation != NONE
        yield "old", (m,), True
        yield "state", (m,), "INSIDE" if inside else "JOINING"
        yield "epoch", (m,), self.epoch(here.member.generation)
        yield from self._parts("owned", m, here.member.owned)

    def _wire(self, slot: int, wire: s.BeatWire) -> Iterator[Entry]:
        if not isinstance(wire, s.ClassicMessage):
            yield from super()._wire(slot, wire)
            return
        m = self.id(slot, wire.id)
        yield "call", (m,), "call is refused" if wire.step is s.ClassicStep.REFUSED else wire.step.value
        if wire.step is not s.ClassicStep.REFUSED:
            yield "call_epoch", (m,), self.epoch(wire.generation)
        if wire.step in SHOWN:
            yield from self._parts("call_parts", m, wire.parts)

    def _records(self, slot: int, here: SlotState) -> Iterator[Entry]:
        yield from super()._records(slot, here)
        for record in here.records:
            m = self.id(slot, record.id)
            yield "classic", (m,), record.classic
            yield "joined", (m,), record.joined
            yield from self._parts("claimed", m, record.claim)

    def _covers(self, record: s.ConsumerRecord) -> None:
        if record.away or record.unmarked:
            raise NoCounterpartError("the logic has no static members, and no unmarked parts")
