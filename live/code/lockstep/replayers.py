"""What plays saved runs: on real clients, or on Kafka's own code as the model or a search has them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

from rebalance_verifier.explore.groups.runs import SavedRun
from rebalance_verifier.live.clients.clusters.defaults import PATIENCE
from rebalance_verifier.live.clients.consumers.member import ClientProfile
from rebalance_verifier.live.clients.replay.verdict import Replayed
from rebalance_verifier.live.code.lockstep.replay import replay_in_step
from rebalance_verifier.live.code.replay.attempts import replay
from rebalance_verifier.live.code.replay.group import CodeReleases
from rebalance_verifier.live.code.replay.on_code import replay_on_code
from rebalance_verifier.live.code.search.runs import replay_searched
from rebalance_verifier.live.code.simulation import Simulation
from rebalance_verifier.model.group.setup import CLASSIC, CONSUMER, MIGRATION

_OF_MODEL = {CLASSIC: replay_on_code, CONSUMER: replay_in_step, MIGRATION: replay_in_step}
"""What plays a run of the model on Kafka's code, by the group protocol."""


@contextlib.contextmanager
def player(
    on: ClientProfile | CodeReleases,
    *,
    patience: float = PATIENCE,
    attempts: int | None = None,
    log_dir: Path | None = None,
    report_progress: Callable[[str], None] = lambda text: None,
) -> Iterator[Callable[[SavedRun], Replayed]]:
    """Yield what plays a run on ``on``, with one simulation for all runs on Kafka's code.

    Raises ToolError when that cannot be had.
    """
    if isinstance(on, CodeReleases):
        with Simulation([on.coordinator], on.consumers) as simulation:

            def on_code(run: SavedRun) -> Replayed:
                if run.on:
                    return replay_searched(run, on, simulation)
                return _OF_MODEL[run.setup.protocol](run, on, simulation, attempts=attempts)

            yield on_code
        return
    yield lambda run: replay(
        run, on, patience=patience, attempts=attempts, log_dir=log_dir, report_progress=report_progress
    )
