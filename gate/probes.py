"""One smallest scenario for each assignor-level mistake of the catalogue: does a target show it?

A probe breaks its clause on the reference assignor with the switch on, and on the reference itself nothing.
Whether a target shows the same is found by playing it. ``probes.json`` holds the scenarios as traces do.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources

from rebalance.gate.plan import crowd
from rebalance.model.switches import SWITCHES
from rebalance.model.values import RebalanceProtocol
from rebalance.properties.clauses import CLAUSES, Clause, Level
from rebalance.properties.histories import Record
from rebalance.properties.scenarios import Scenario, from_json

CROWD = 2100
"""Members and partitions of the group whose assignment took minutes (KAFKA-9987)."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A scenario on which whoever makes the mistake ``switch`` breaks ``clause``, and of the other clauses
    of safety and liveness at most those in ``also``: who breaks more makes another mistake."""

    switch: str
    clause: Clause
    scenario: Scenario
    also: frozenset[str] = frozenset()

    def shows(self, record: Record) -> bool | None:
        """Whether the mistake is seen in this play of the scenario; None where another one hides it."""
        if not record.breach_of(self.clause.id):
            return False
        found = {f.clause.id for f in record.found if f.clause.level is not Level.QUALITY}
        return None if found - self.also - {self.clause.id} else True

    @property
    def assignor(self) -> str:
        """Name of the assignors that are asked."""
        return SWITCHES[self.switch].assignor


@cache
def probes() -> tuple[Probe, ...]:
    """All probes, in the order of the switches; a switch may have several, any of which shows it."""
    text = resources.files("rebalance.gate").joinpath("probes.json").read_text("utf-8")
    found = [
        Probe(
            item["switch"],
            CLAUSES[item["clause"]],
            from_json(item["scenario"]),
            frozenset(item.get("also", ())),
        )
        for item in json.loads(text)["probes"]
    ]
    crowded = crowd(RebalanceProtocol.COOPERATIVE, CROWD)
    found.append(Probe("quadratic_general", CLAUSES["assign/4"], crowded))
    order = list(SWITCHES)
    return tuple(sorted(found, key=lambda probe: order.index(probe.switch)))
