"""The table of lockstep by group protocol: how a group of each is played as model and as Kafka's code."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rebalance_verifier.live.code.lockstep.classic import Lockstep
from rebalance_verifier.live.code.lockstep.consumer import ServedLockstep
from rebalance_verifier.live.code.lockstep.migration import MigratingLockstep
from rebalance_verifier.live.code.replay.group import CodeReleases
from rebalance_verifier.live.code.simulation import Simulation
from rebalance_verifier.model.group.setup import CLASSIC, CONSUMER, MIGRATION, Setup
from rebalance_verifier.model.machine import Machine

AnyLockstep = Lockstep | ServedLockstep
"""A group of the classic protocol; or one with consumer group coordinators, as of a migration."""

_STEPS: Mapping[str, Callable[[Simulation, Setup, Machine, CodeReleases], AnyLockstep]] = {
    CLASSIC: Lockstep,
    CONSUMER: ServedLockstep,
    MIGRATION: MigratingLockstep,
}


def in_step(simulation: Simulation, setup: Setup, built: Machine, releases: CodeReleases) -> AnyLockstep:
    """Return the group of ``setup``, of which ``built`` is the machine, in step with the code of
    ``simulation``."""
    return _STEPS[setup.protocol](simulation, setup, built, releases)
