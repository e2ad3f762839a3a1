"""How each bug of the catalogue is shown; for every switch of the protocol the smallest group that was found.

The catalogue (``model.bugs.catalogue``) says what happened, this says where to look: a scenario, its size,
and which faults it takes. ``clause`` is the clause that has to catch it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from rebalance_verifier.base.tables import table
from rebalance_verifier.explore.groups.scenarios import SCENARIOS, ScenarioSize
from rebalance_verifier.model.bugs import decisions, switches
from rebalance_verifier.model.bugs.catalogue import CATALOGUE, Entry
from rebalance_verifier.model.bugs.profiles import AS_SPECIFIED, ReleaseProfile, client
from rebalance_verifier.model.group.setup import CLASSIC, CONSUMER, Setup
from rebalance_verifier.properties.group.clauses import CLAUSES

LASSO = "group/converges"


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A group in which ``switch`` breaks ``clause``; ``also`` are switches that it takes besides.

    ``client`` is a release that has what the bug needs from its surroundings, such as older metadata; several
    are those of the members in turn. Where one of them has ``switch`` itself, the others have it not.
    """

    switch: str
    clause: str
    scenario: str
    members: int = 2
    partitions: int = 2
    faults: tuple[str, ...] = ()
    budget: int | None = None
    also: tuple[str, ...] = ()
    client: str = AS_SPECIFIED

    @property
    def protocol(self) -> str:
        """Return the group protocol of the group in which it shows."""
        return SCENARIOS[self.scenario].protocol.name

    def setup(self, *, on: bool = True) -> Setup:
        """Return the group; with ``on`` false everything is the same but the switch."""
        shipped = any(self.switch in client(one).decisions for one in self.client.split(","))
        switches = (*((self.switch,) if on and not shipped else ()), *self.also)
        made = self.run_by(self.client, AS_SPECIFIED, switches)
        return made if on else without(made, self.switch)

    def run_by(self, member: str, coordinator: str, switches: tuple[str, ...] = ()) -> Setup:
        """Return the group with members and a coordinator of these releases, and ``switches`` besides."""
        size = ScenarioSize(
            members=self.members,
            partitions=self.partitions,
            profiles=tuple(member.split(",")),
            broker=coordinator,
            faults=self.faults,
            budget=len(self.faults) if self.budget is None else self.budget,
            switches=switches,
        )
        return SCENARIOS[self.scenario].setup(size)


SHOWN: Mapping[str, Shown] = {switch: Shown(switch=switch, **row) for switch, row in table(__file__).items()}
"""Where each switch shows, by switch."""

CLASSIC_SHOWN: Mapping[str, Shown] = {
    s: shown
    for s, shown in SHOWN.items()
    if shown.protocol == CLASSIC and not SCENARIOS[shown.scenario].patterns
}
"""Those that show in a group of the classic protocol whose members subscribe by name: the logic has no
others, nor are they played on Kafka's code."""

SERVED_SHOWN: Mapping[str, Shown] = {
    s: shown for s, shown in SHOWN.items() if shown.protocol == CONSUMER and shown.clause != LASSO
}
"""Those that show in a consumer group whose members all speak that protocol, and at a step of it."""

assert all(shown.clause in CLAUSES for shown in SHOWN.values())


def two_owners(profile: ReleaseProfile, protocols: Collection[str]) -> tuple[str, ...]:
    """Return the ids of the entries by which a partition can have two owners, where one program is of this
    release, in groups of these protocols. Entries of assignors are of the classic one."""
    return tuple(
        entry.id
        for entry in CATALOGUE.values()
        if "DO" in entry.breaks and entry.releases.includes(profile.project, profile.release)
        if not {SHOWN[s].protocol if s in SHOWN else CLASSIC for s in entry.switches}.isdisjoint(protocols)
    )


def shown_by(entry: Entry) -> Iterator[tuple[str, str, str]]:
    """For each switch of an entry how it is shown: "model", "check" or "not", and the clause or the reason.

    An entry without switches has one row without a switch.
    """
    for switch in entry.switches:
        if switch in SHOWN:
            yield switch, "model", SHOWN[switch].clause
        if switch in switches.SWITCHES:
            yield switch, "check", f"{switches.SWITCHES[switch].assignor}+{switch}"
    reasons = {**switches.NOT_EXPRESSED, **decisions.NOT_EXPRESSED}
    for key, reason in reasons.items():
        if key.split(",")[0] == entry.id:
            yield "", "not", (f"{key.partition(', ')[2]}: " if "," in key else "") + reason


def without(group: Setup, switch: str) -> Setup:
    """Return the same group, in which nobody has ``switch``."""
    consumers = tuple(
        replace(
            consumer,
            stages=tuple(
                replace(
                    stage,
                    decisions=stage.decisions - {switch},
                    switches=tuple(s for s in stage.switches if s != switch),
                )
                for stage in consumer.stages
            ),
        )
        for consumer in group.consumers
    )
    return replace(group, consumers=consumers, coordinator=group.coordinator - {switch})
