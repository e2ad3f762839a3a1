"""The coordinator of librdkafka's mock cluster as a machine: what it does otherwise than Apache Kafka's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from rebalance_verifier.model.classic import state as s
from rebalance_verifier.model.classic.coordinator import join_phase_ends
from rebalance_verifier.model.classic.group import machine
from rebalance_verifier.model.group.parts import Error
from rebalance_verifier.model.group.setup import Setup
from rebalance_verifier.model.machine import NOBODY, Action, Machine, Outcome, Value

MOCK = "mock"
"""The broker profile of librdkafka's mock cluster, which is not in the catalogue."""

ENDS_UNHEARD = "join phase ends unheard"
"""What only the mock cluster does: a generation of which nobody is told."""

MOCK_DECISIONS = frozenset({"ghost_on_retry", "rebalance_timeout_zero", "no_pending_sync_expiry"})
"""The mock cluster knows no KIP-394, ends a join phase by its own short timer, and expels nobody for not
syncing (rdkafka_mock_cgrp.c)."""


def mock(setup: Setup, findings: bool = True) -> Machine:
    """Return the group on librdkafka's mock cluster (rdkafka_mock_cgrp.c).

    Who misses a join phase stays a member, with its old claims. That is what the model does for static
    members, so the phase ends as if all were. The leader is the first in a list, whoever led before; here
    anyone. A SyncGroup that comes after the leader's is refused. A join phase in which nobody came ends by
    its timer too (rd_kafka_mock_cgrp_classic_fsm_timeout): a generation of which no member is told; with
    ``findings`` only.
    """
    built = machine(setup)
    static = replace(
        setup,
        consumers=tuple(replace(consumer, instance=n) for n, consumer in enumerate(setup.consumers)),
        coordinator=setup.coordinator | {"silent_static_claims_stale"},
    )

    def ends(group: s.Group, *rest: Any) -> Iterator[Outcome]:
        return join_phase_ends(static, group._replace(leader=None), *rest)

    def ends_unheard(group: s.Group, *rest: Any) -> Iterator[Outcome]:
        records = rest[: len(setup.slots)]
        inside = [
            (slot, n) for slot in setup.slots for n, r in enumerate(records[slot]) if r.meta is not None
        ]
        if inside and not any(record.joined for several in records for record in several):
            slot, n = inside[0]  # whoever leads cannot know it
            several = records[slot]
            came = (*several[:n], several[n]._replace(joined=True), *several[n + 1 :])
            yield from ends(group, *rest[:slot], came, *rest[slot + 1 :])

    def mocked(action: Action) -> Iterator[Action]:
        match action.name:
            case "join phase ends":
                yield action._replace(run=ends, when=())
            case "receive join" | "sync request":
                yield action._replace(run=_refusing(action), when=())
            case "rebalance timeout":
                pass
            case _:
                yield action

    actions = [changed for action in built.actions for changed in mocked(action)]
    unheard = built.by_name["join phase ends", NOBODY]._replace(name=ENDS_UNHEARD, run=ends_unheard, when=())
    return replace(built, actions=(*actions, *([unheard] if findings else [])))


def _refusing(action: Action) -> Callable[..., Iterator[Outcome]]:
    """``action`` where a SyncGroup that is not parked is refused."""

    def run(*values: Any) -> Iterator[Outcome]:
        for outcome in action.run(*values):
            yield outcome._replace(values=tuple([_refused(value) for value in outcome.values]))

    return run


def _refused(value: Value) -> Value:
    if isinstance(value, s.SyncOk):
        return s.Refused("sync", Error.REBALANCE_IN_PROGRESS, value.id, value.generation)
    return value
