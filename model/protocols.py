"""A group, whichever protocol its members speak."""

from __future__ import annotations

from rebalance_verifier.model.assignors import NAMES
from rebalance_verifier.model.classic import group as classic
from rebalance_verifier.model.consumer import group as consumer
from rebalance_verifier.model.consumer.assignors import SERVER_ASSIGNORS
from rebalance_verifier.model.group.setup import Setup
from rebalance_verifier.model.machine import Machine
from rebalance_verifier.model.migration.group import migration_machine

ASSIGNORS = (*NAMES, *SERVER_ASSIGNORS)
"""Every name that a member's list may have: assignors of clients, and those of the coordinator."""

FAULTS = (*classic.FAULTS, *(kind for kind in consumer.FAULTS if kind not in classic.FAULTS))
"""Every kind of fault of either protocol."""


def faults_of(setup: Setup) -> tuple[str, ...]:
    """Return the kinds of faults that the group of ``setup`` can have."""
    if not setup.modern:
        return classic.FAULTS
    return consumer.MIGRATION_FAULTS if setup.migrates else consumer.FAULTS


def machine(setup: Setup) -> Machine:
    """Return the group of ``setup``: nobody started, no group on the broker.

    Raises ValueError for what no such group has, as the machines of the two protocols do.
    """
    if not setup.modern:
        return classic.machine(setup)
    return migration_machine(setup) if setup.migrates else consumer.consumer_machine(setup)
