"""What is known of conversions that break something: ``findings.toml``, each with the run that shows it."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from rebalance_verifier.live.code.simulation import Simulation
from rebalance_verifier.model.bugs.profiles import CONSUMER_SINCE
from rebalance_verifier.model.bugs.releases import KAFKA, dotted, newest_of_minors

from tools.migration.group import MigrationGroup
from tools.migration.search import TWICE, MigrationRun, plan_of, play

RELEASES = newest_of_minors(KAFKA, dotted(CONSUMER_SINCE))
"""The coordinators on which each is tried: the newest of each minor release."""

_EVENTS = {"start": "starts", "leave": "leaves", "crash": "ends", "expire": "is removed: its session ends"}


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationFinding:
    """A way in which a conversion breaks something, as an upstream report has it.

    ``kind`` is what `search.play` finds, ``fault`` what goes wrong besides, "" for nothing.
    """

    id: str
    title: str
    kind: str
    plan: str
    steps: str
    fault: str
    story: str
    cause: str
    fix: str

    @property
    def each_step(self) -> tuple[str, ...]:
        """Its steps, as `MigrationGroup.step` takes them."""
        return tuple(self.steps.split(", "))


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownFinding:
    """A finding as it was played on a release: whether it showed, what was under way, who could commit."""

    run: MigrationRun
    shows: bool
    log: tuple[str, ...]
    commits: tuple[str, ...] = ()


@cache
def findings() -> tuple[MigrationFinding, ...]:
    """Return all of them, in the order of the file."""
    text = Path(__file__).with_name("findings.toml").read_text("utf-8")
    return tuple(MigrationFinding(**one) for one in tomllib.loads(text)["finding"])


def shown(simulation: Simulation, finding: MigrationFinding, coordinator: str) -> ShownFinding:
    """Play a finding on a coordinator of this release, which the simulation must have."""
    run, group = play(simulation, plan_of(finding.plan, coordinator), finding.each_step, finding.kind)
    log = readable(group.log)
    commits: tuple[str, ...] = ()
    if run.kind == TWICE:
        who = [owner.member for owner in group.owners()[run.what]]
        commits = tuple(f"{one} commits {run.what}: {group.commit(one, run.what)}" for one in who)
    return ShownFinding(run=run, shows=run.kind == finding.kind, log=log, commits=commits)


def readable(log: list[str]) -> tuple[str, ...]:
    """Return the log of a group from where it was last at rest before something was done, as one reads it."""
    rests = [number for number, line in enumerate(log) if line == "# settle"]
    begin = rests[-1] if rests else 0
    while begin + 1 < len(log) and rests and not log[begin + 1].startswith("# "):
        begin += 1
    found = []
    for line in log[begin + 1 if rests else 0 :]:
        if not line.startswith("# "):
            found.append(line)
            continue
        verb, _, who = line.removeprefix("# ").partition(" ")
        if verb in _EVENTS:
            found.append(f"-- {who} {_EVENTS[verb]}")
        elif verb == "failover":
            found.append("-- another broker becomes the coordinator")
    return tuple(one for one in found if not one.endswith(": metadata"))


__all__ = ["RELEASES", "MigrationFinding", "MigrationGroup", "ShownFinding", "findings", "shown"]
