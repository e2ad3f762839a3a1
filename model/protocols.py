"""The table of the three group protocols: classic, consumer (KIP-848), and groups between the two."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rebalance_verifier.base.tables import table
from rebalance_verifier.model.assignors import NAMES
from rebalance_verifier.model.classic import group as classic
from rebalance_verifier.model.consumer import group as consumer
from rebalance_verifier.model.consumer.assignors import SERVER_ASSIGNORS
from rebalance_verifier.model.group.setup import CLASSIC, CONSUMER, MIGRATION, Setup
from rebalance_verifier.model.machine import Machine
from rebalance_verifier.model.migration import group as migration


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """One group protocol.

    ``group`` and ``groups`` name its groups in a sentence; ``faults`` are the kinds that these can have.
    ``machine`` builds the group of a setup, and raises ValueError for what no such group has.
    """

    name: str
    group: str
    groups: str
    faults: tuple[str, ...]
    machine: Callable[[Setup], Machine]

    def refusal(self, command: str) -> str:
        """Say why ``command``, a key of COMMANDS, does not take such groups; "" where it does."""
        why = COMMANDS[command].get(self.name)
        return f"{command} is not for {self.groups}: {why}" if why else ""


COMMANDS: Mapping[str, Mapping[str, str]] = table(__file__)
"""Command, as it is typed -> protocol whose groups it does not take -> why."""

_TABLE = (
    Protocol(
        name=CLASSIC,
        group="a group of the classic protocol",
        groups="classic groups",
        faults=classic.FAULTS,
        machine=classic.machine,
    ),
    Protocol(
        name=CONSUMER,
        group="a consumer group",
        groups="consumer groups (KIP-848)",
        faults=consumer.FAULTS,
        machine=consumer.consumer_machine,
    ),
    Protocol(
        name=MIGRATION,
        group="a group between the protocols",
        groups="groups between the protocols",
        faults=migration.FAULTS,
        machine=migration.migration_machine,
    ),
)

PROTOCOLS: Mapping[str, Protocol] = {protocol.name: protocol for protocol in _TABLE}
"""By name, as `Setup.protocol` has it."""

ASSIGNORS = (*NAMES, *SERVER_ASSIGNORS)
"""Every name that a member's list may have: assignors of clients, and those of the coordinator."""

FAULTS = tuple(dict.fromkeys(kind for protocol in _TABLE for kind in protocol.faults))
"""Every kind of fault of any protocol."""


def machine(setup: Setup) -> Machine:
    """Build the group of ``setup``: nobody started, no group on the broker.

    Raises ValueError for what no such group has, as the machines of the protocols do.
    """
    return PROTOCOLS[setup.protocol].machine(setup)
