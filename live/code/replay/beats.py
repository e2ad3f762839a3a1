"""ConsumerGroupHeartbeat between the model and a simulation: a request as it is sent, an answer as it is
heard."""

from __future__ import annotations

from collections.abc import Sequence

from rebalance_verifier.base.processes.program import JsonLine
from rebalance_verifier.live.code.answers import SimulationResponse
from rebalance_verifier.model.consumer.state import Beat, BeatError, BeatKind, BeatOk, BeatRefused
from rebalance_verifier.model.group.parts import NONE, Generation, Parts

HEARTBEAT, SENT = "ConsumerGroupHeartbeat", "CONSUMER_GROUP_HEARTBEAT"
"""Its name in what a simulation shows, and in the command ``send``."""

REBALANCE_MS = 60_000

AGAIN = frozenset({"COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE"})
"""Errors after which a client looks for its coordinator, and says everything again."""

_EPOCHS = {BeatKind.JOIN: 0, BeatKind.LEAVE: -1, BeatKind.AWAY: -2}
_WITH_FIELDS = (BeatKind.JOIN, BeatKind.STEADY)


def fields_of(
    beat: Beat,
    epoch: int,
    *,
    member_id: str,
    instance: str | None,
    topics: Sequence[str] | None,
    owned: Sequence[str] | None,
    regex: str | None = None,
) -> JsonLine:
    """Return what ``send`` says of a heartbeat: its ``epoch`` as Kafka counts, the rest by Kafka's names.
    ``topics``, ``owned``, ``regex``: None where it leaves the field out."""
    fields: JsonLine = {
        "api": SENT,
        "member_id": member_id,
        "generation": _EPOCHS.get(beat.kind, epoch),
        "instance": instance,
    }
    if beat.kind in _WITH_FIELDS:
        if topics is not None:
            fields["topics"] = list(topics)
        if regex is not None:
            fields["regex"] = regex
        if owned is not None:
            fields["partitions"] = list(owned)
        if beat.full:
            fields["rebalance_ms"] = REBALANCE_MS
    return fields


def heard(beat: Beat, answer: SimulationResponse, parts: Parts | None) -> BeatOk | BeatRefused:
    """Return what the client hears, who has sent ``beat``; ``parts`` is the assignment in the answer."""
    if answer.error == "NONE":
        epoch = NONE if not answer.generation or answer.generation < 0 else Generation(answer.generation)
        return BeatOk(beat.id, epoch, parts)
    return BeatRefused(beat.id, beat_error(answer.error))


def beat_error(name: str) -> BeatError:
    """Return an error as the model has it: one that it does not know ends the client as any other."""
    if name in AGAIN:
        return BeatError.DISCONNECT
    return BeatError(name) if name in BeatError.__members__ else BeatError.UNKNOWN_SERVER_ERROR
