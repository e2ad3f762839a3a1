"""What the parts of one replay share: the run, its clients, what came of it so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rebalance_verifier.explore.groups.runs import SavedRun
from rebalance_verifier.live.clients.clusters.defaults import PATIENCE
from rebalance_verifier.live.clients.clusters.mock import MockCluster
from rebalance_verifier.live.clients.consumers.member import ClientProfile, Log
from rebalance_verifier.live.clients.proxy.proxy import Proxy
from rebalance_verifier.live.clients.replay.client import ReplayClient
from rebalance_verifier.live.clients.replay.naming import RunNames
from rebalance_verifier.live.clients.replay.replay_plan import ReplayStep
from rebalance_verifier.live.clients.replay.verdict import Replayed
from rebalance_verifier.model.group.parts import each
from rebalance_verifier.model.group.setup import Setup, letter
from rebalance_verifier.model.wire import WireError, decode_assignment

RECORDS = 20
"""For each partition, where a client has to read something before it can commit."""


class NotForcible(Exception):
    """Nothing here can make this step of the trace happen; the text says why."""


@dataclass(kw_only=True, eq=False)
class ReplayScene(RunNames):
    """One replay. ``order`` is that of the member ids, ``patience`` in seconds.

    ``cluster`` and ``proxy`` are there while the replay runs.
    """

    run: SavedRun
    setup: Setup
    profile: ClientProfile
    order: Sequence[int]
    patience: float = PATIENCE
    log_dir: Path | None = None
    log: Log = field(default_factory=Log)
    clients: list[ReplayClient] = field(default_factory=list)
    cluster: MockCluster = field(init=False)
    proxy: Proxy = field(init=False)

    def __post_init__(self) -> None:
        self.result = Replayed(
            clause=self.run.clause,
            client=str(self.profile),
            naming=tuple(letter(slot) for slot in self.order),
            steps=len(self.run.events),
        )

    def has(self, *actions: str) -> bool:
        """Check whether the run has a step of one of these."""
        return any(event.action in actions for event in self.run.events)

    def assignment(self, data: bytes) -> int:
        """Return the partitions of an assignment in bytes; none of one that cannot be read."""
        try:
            return self.bits(decode_assignment(data).partitions) if data else 0
        except WireError:
            return 0

    def produce(self, parts: int) -> None:
        """Produce some records for each of these partitions."""
        for number in each(parts):
            partition = self.setup.partition(number)
            self.cluster.produce(partition.topic, partition.partition, RECORDS)

    def differs(self, step: ReplayStep, what: str) -> None:
        """Note where a client did otherwise than the model."""
        self.result.differs.append(f"{step.title}: {what}")

    def unforced(self, step: ReplayStep, why: object) -> None:
        """Note a step that could not be made to happen."""
        self.result.unforced.append(f"{step.title}: {why}")
