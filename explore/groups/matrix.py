"""Releases x bugs, computed: every release is put into the group that shows a bug, and explored.

No table says which release has what is shown here. The catalogue says which releases should have it; where
the two differ, the cell says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from rebalance_verifier.explore.engine import fast
from rebalance_verifier.explore.engine.search import Limits, Stop
from rebalance_verifier.explore.groups.bugs import LASSO, SHOWN, Shown, without
from rebalance_verifier.explore.groups.scenarios import SCENARIOS
from rebalance_verifier.explore.liveness import liveness
from rebalance_verifier.model.bugs.decisions import DECISIONS
from rebalance_verifier.model.bugs.observed import hidden
from rebalance_verifier.model.bugs.profiles import (
    AS_SPECIFIED,
    BROKERS,
    CLIENTS,
    ReleaseProfile,
    consumer_protocol_trouble,
    streams_trouble,
)
from rebalance_verifier.model.group.setup import CLASSIC, Setup
from rebalance_verifier.model.protocols import machine
from rebalance_verifier.properties.group.clauses import rules

STATES = 400_000
"""Most states that one cell may take; the smallest groups that show the bugs have far fewer."""


class Mark(StrEnum):
    """Behaviour of the group of a bug when it runs a release."""

    FINE = "."
    BREAKS = "X"  # breaks the clause, and not without this bug's switch
    OTHERWISE = "o"  # breaks the clause, with or without the switch: another bug shows in the same way
    UNKNOWN = "?"  # more states than may be looked at


@dataclass(frozen=True)
class Cell:
    """One release in the group that shows one switch; ``expected`` is what the catalogue says."""

    switch: str
    profile: ReleaseProfile
    mark: Mark
    expected: bool

    @property
    def agrees(self) -> bool:
        """Check whether running agrees with the catalogue."""
        return (self.mark is Mark.BREAKS) is self.expected or self.mark in (Mark.OTHERWISE, Mark.UNKNOWN)

    @property
    def why(self) -> str:
        """Return why it does not, "" where it does or nobody has said why."""
        return "" if self.agrees else hidden(self.switch, self.profile.name)


def concerns(shown: Shown, profile: ReleaseProfile) -> bool:
    """Check whether the switch is about this kind of program: a broker decides as coordinator, a client
    else."""
    decision = DECISIONS.get(shown.switch)
    coordinator = decision is not None and decision.where == "coordinator"
    return coordinator is (profile.kind == "broker")


def cells(switches: Sequence[str] = (), profiles: Sequence[ReleaseProfile] = ()) -> Iterator[Cell]:
    """Yield the cells of the given switches and releases, all by default, one row after the other.

    A release that no member of a switch's group can be has none.
    """
    for switch in switches or SHOWN:
        shown = SHOWN[switch]
        for profile in profiles or (*CLIENTS.values(), *BROKERS.values()):
            if not _trouble(shown, profile) and profile.name != AS_SPECIFIED and concerns(shown, profile):
                yield cell(shown, profile)


def _trouble(shown: Shown, profile: ReleaseProfile) -> str:
    """Return why no program of that release is in the group that shows a switch, "" where it may be."""
    if shown.protocol != CLASSIC:
        return consumer_protocol_trouble(profile)
    return streams_trouble(profile) if SCENARIOS[shown.scenario].warmups else ""


def cell(shown: Shown, profile: ReleaseProfile) -> Cell:
    """Return one cell, by exploring at most two groups."""
    broker = profile.kind == "broker"
    group = shown.run_by(AS_SPECIFIED, profile.name) if broker else shown.run_by(profile.name, AS_SPECIFIED)
    expected = shown.switch in _mistakes(group)
    broken = breaks(group, shown.clause)
    mark = Mark.UNKNOWN if broken is None else Mark.BREAKS if broken else Mark.FINE
    if broken and breaks(without(group, shown.switch), shown.clause) is not False:
        mark = Mark.OTHERWISE
    return Cell(shown.switch, profile, mark, expected)


def _mistakes(group: Setup) -> frozenset[str]:
    """Return what the members and the coordinator of a group do wrong, by their releases."""
    stages = [stage for consumer in group.consumers for stage in consumer.stages]
    return group.coordinator.union(*(stage.decisions.union(stage.switches) for stage in stages))


def breaks(group: Setup, clause: str) -> bool | None:
    """Check whether the group breaks ``clause``; None when it is too large to say.

    Raises KeyboardInterrupt when the search was interrupted.
    """
    built, clauses = machine(group), rules(group)
    search = fast.explore(built, clauses, Limits(states=STATES, go_on=True))
    if any(breach.clause == clause for breach in search.breaches):
        return True
    if search.stop is Stop.INTERRUPTED:
        raise KeyboardInterrupt
    if not search.complete:
        return None
    if clause != LASSO:
        return False
    return any(settling.lasso for settling in liveness.judge(built, clauses, search).settling)
