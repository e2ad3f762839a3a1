"""What of a state would be seen next, as text for a mismatch."""

from __future__ import annotations

from collections.abc import Iterator

from rebalance_verifier.live.conformance.wire.group import WireGroup
from rebalance_verifier.model.consumer.state import Beat, BeatOk, BeatRefused, ClassicMessage, ConsumerRecord
from rebalance_verifier.model.group.parts import NONE
from rebalance_verifier.model.machine import State


def under_way(group: WireGroup, state: State, more: int | None) -> Iterator[str]:
    """Yield what the coordinator has answered and nobody has heard, and what it would do next."""
    spell = group.partitions.spell
    for slot, name in enumerate(group.recording.names):
        wire = group.part(state, "wire", slot)
        if isinstance(wire, BeatOk):
            news = "no news" if wire.parts is None else spell(wire.parts)
            yield f"{name}: heartbeat answer, epoch {_kafka(wire.epoch, more)}, {news}"
        elif isinstance(wire, BeatRefused):
            yield f"{name}: heartbeat answer, {wire.error.value}"
        elif isinstance(wire, ClassicMessage):
            what = wire.error or spell(wire.parts)
            yield f"{name}: {wire.step.value}, generation {_kafka(wire.generation, more)}, {what}"
        elif isinstance(wire, Beat):
            for _, _, after in group.outcomes(state, "heartbeat arrives", slot):
                for record in group.part(after, "record", slot):
                    yield f"{name}: state, {_state(group, record, more)}"


def _state(group: WireGroup, record: ConsumerRecord, more: int | None) -> str:
    spell = group.partitions.spell
    epochs = f"epoch {_kafka(record.epoch, more)} from {_kafka(record.previous, more)}"
    revokes = f", to revoke {spell(record.pending)}" if record.pending else ""
    return f"{epochs}, {record.state.value}, {spell(record.assigned)}{revokes}"


def _kafka(epoch: int, more: int | None) -> int:
    return 0 if epoch == NONE else epoch + (more or 0)
