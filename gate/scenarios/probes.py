"""One smallest scenario for each assignor-level mistake of the catalogue: does a target show it?

A probe breaks its clause on the reference assignor with the switch on, and on the reference itself nothing.
Whether a target shows the same is found by playing it. ``probes.json`` holds the scenarios as traces do.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import Enum, auto
from functools import cache
from importlib import resources

from rebalance_verifier.base.verdict import Level
from rebalance_verifier.gate.scenarios.generator import crowd
from rebalance_verifier.gate.scenarios.player import PlayedHistory
from rebalance_verifier.model.bugs.switches import SWITCHES
from rebalance_verifier.model.values import RebalanceProtocol
from rebalance_verifier.properties.assignors.clause import Clause
from rebalance_verifier.properties.assignors.clauses import CLAUSES
from rebalance_verifier.properties.assignors.scenarios import Scenario, from_json

CROWD, FEW = 2100, 20
"""Members and partitions of the group whose assignment took minutes (KAFKA-9987), and of a small one."""


class ProbeOutcome(Enum):
    """Result of one play of a probe about its bug."""

    YES = auto()
    NO = auto()
    HIDDEN = auto()  # the clause is broken, and more than the mistake would break: another one hides it
    UNSEEN = auto()  # an answer was missing, so that the play ended before it could be seen


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """A scenario on which whoever makes the mistake ``switch`` breaks ``clause``, and of the other clauses
    of safety and liveness at most those in ``also``: who breaks more makes another mistake. So does who
    breaks it on ``control`` too, where the mistake changes nothing."""

    switch: str
    clause: Clause
    scenario: Scenario
    also: frozenset[str] = frozenset()
    control: Scenario | None = None

    def shows(self, record: PlayedHistory, control: PlayedHistory | None = None) -> ProbeOutcome:
        """Check whether the mistake is seen in these plays of the scenario and of ``control``."""
        if not record.breach_of(self.clause.id):
            cut_short = record.skipped is not None or record.failure is not None
            return ProbeOutcome.UNSEEN if cut_short else ProbeOutcome.NO
        if control and control.breach_of(self.clause.id):
            return ProbeOutcome.HIDDEN
        found = {f.clause.id for f in record.found if f.clause.level is not Level.QUALITY}
        return ProbeOutcome.HIDDEN if found - self.also - {self.clause.id} else ProbeOutcome.YES

    @property
    def assignor(self) -> str:
        """Name of the assignors that are asked."""
        return SWITCHES[self.switch].assignor

    def concerns(self, name: str, protocols: Collection[str], promises: Iterable[str]) -> bool:
        """Check whether an assignor of this name, with these protocols and promises, is asked."""
        spoken = name == self.assignor and self.scenario.protocol in protocols
        return spoken and self.clause.promises <= frozenset(promises)


@cache
def probes() -> tuple[Probe, ...]:
    """Return all probes, in the order of the switches; a switch may have several, any of which shows it."""
    text = resources.files("rebalance_verifier.gate.scenarios").joinpath("probes.json").read_text("utf-8")
    found = [
        Probe(
            switch=item["switch"],
            clause=CLAUSES[item["clause"]],
            scenario=from_json(item["scenario"]),
            also=frozenset(item.get("also", ())),
            control=from_json(item["control"]) if "control" in item else None,
        )
        for item in json.loads(text)["probes"]
    ]
    crowded, few = (crowd(RebalanceProtocol.COOPERATIVE, members) for members in (CROWD, FEW))
    found.append(Probe(switch="quadratic_general", clause=CLAUSES["assign/4"], scenario=crowded, control=few))
    order = list(SWITCHES)
    return tuple(sorted(found, key=lambda probe: order.index(probe.switch)))
