"""What a campaign plays: histories on an assignor, walks of a group; and what becomes of those that fail.

The players are sent to the workers of Spark; shrinking happens here, where the command runs.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rebalance.explore.groups.exploration import saved_run
from rebalance.explore.groups.scenarios import ScenarioSize, scenario
from rebalance.explore.random.minimise import minimise
from rebalance.explore.random.walks import walk
from rebalance.gate.check.judgement import gates
from rebalance.gate.check.plan import PROFILES, CheckPlan, SearchProfile, drawn
from rebalance.gate.check.progress import CheckProgress
from rebalance.gate.check.search import check, describe
from rebalance.gate.check.subject import Subject
from rebalance.gate.targets.resolve import load, resolve
from rebalance.gate.targets.session import InProcess, Session
from rebalance.gate.traces import counterexamples, runs
from rebalance.model.bugs.profiles import AS_SPECIFIED
from rebalance.model.protocol.group import machine
from rebalance.model.protocol.setup import Setup
from rebalance.model.values import RebalanceProtocol
from rebalance.pipeline.campaign.campaign import CONFORMANT, DECLINED, VIOLATION, PlaySeed, SliceOutcome
from rebalance.properties.assignors.clauses import CLAUSES, TABLE, Breach, select
from rebalance.properties.assignors.generator import Seeded
from rebalance.properties.assignors.histories import Found, PlayedHistory
from rebalance.properties.group.clauses import rules
from rebalance.properties.verdict import Level


@dataclass(frozen=True, kw_only=True)
class TargetPlayer:
    """Histories of an assignor. ``clauses`` are paths as in ``rebalance check --clause``, none means all.

    A Python target runs in the process that plays, which is 10 times as fast as a conversation and leaves
    it to the campaign to survive what the target does; a program runs as it does in a check, from
    ``directory``, with ``call_seconds`` and ``memory_mib``.
    """

    spec: str
    protocols: tuple[RebalanceProtocol, ...]
    version: str = ""
    clauses: tuple[str, ...] = ()
    level: Level = Level.LIVENESS
    directory: str = field(default_factory=os.getcwd)
    call_seconds: float = 10.0
    memory_mib: int = 2048

    def identity(self) -> dict[str, Any]:
        """What the rows depend on."""
        return {
            "target": self.spec,
            "version": self.version,
            "protocols": [protocol.value for protocol in self.protocols],
            "clauses": list(self.clauses),
            "level": self.level.value,
        }

    @contextlib.contextmanager
    def playing(self) -> Iterator[PlaySeed]:
        """Load or start the target."""
        if os.path.isdir(self.directory):
            os.chdir(self.directory)
        clauses = select(self.clauses) if self.clauses else TABLE
        with self._session() as session:
            subject = Subject.of(session)

            def play(seed: int) -> SliceOutcome:
                return self._outcome(subject.play(drawn(Seeded(seed), self.protocols), clauses))

            yield play

    def _session(self) -> InProcess | Session:
        target = resolve(self.spec)
        if not target.hosted:
            return Session(target, self.call_seconds, memory_mib=self.memory_mib)
        if os.getcwd() not in sys.path:
            sys.path.insert(0, os.getcwd())
        return InProcess(load(self.spec))

    def _outcome(self, record: PlayedHistory) -> SliceOutcome:
        scenario = record.scenario
        members, partitions, _, _ = scenario.size
        broken = any(gates(found.clause, self.level) for found in record.found)
        return SliceOutcome(
            DECLINED if record.skipped is not None else VIOLATION if broken else CONFORMANT,
            tuple(f"{found.clause.id}-{scenario.protocol}" for found in record.found),
            record.skipped or (record.found[0].breach.summary if record.found else None),
            dimensions=scenario.dimensions,
            members=members,
            partitions=partitions,
            steps=len(record.calls),
            coverage=dict.fromkeys(record.witnesses, 1),
        )


@dataclass(frozen=True, kw_only=True)
class WalkPlayer:
    """Random walks of a group. ``mixes``: releases of the members in turn; a seed chooses one of them."""

    scenario: str
    mixes: tuple[tuple[str, ...], ...] = ((AS_SPECIFIED,),)
    members: int | None = None
    partitions: int | None = None
    broker: str = AS_SPECIFIED
    budget: int | None = None
    switches: tuple[str, ...] = ()
    steps: int = 200

    def identity(self) -> dict[str, Any]:
        """What the rows depend on."""
        return {**asdict(self), "mixes": [list(mix) for mix in self.mixes], "switches": list(self.switches)}

    def setup(self, mix: Sequence[str]) -> Setup:
        """The group with members of these releases. Raises ScenarioError."""
        size = ScenarioSize(
            members=self.members,
            partitions=self.partitions,
            profiles=tuple(mix),
            broker=self.broker,
            budget=self.budget,
            switches=self.switches,
        )
        return scenario(self.scenario).setup(size)

    def mix(self, seed: int) -> tuple[str, ...]:
        """The releases that ``seed`` chooses."""
        return self.mixes[seed % len(self.mixes)]

    @contextlib.contextmanager
    def playing(self) -> Iterator[PlaySeed]:
        """Build the groups."""
        setups = {mix: self.setup(mix) for mix in self.mixes}
        built = {mix: (machine(setup), rules(setup)) for mix, setup in setups.items()}

        def play(seed: int) -> SliceOutcome:
            mix = self.mix(seed)
            one = walk(*built[mix], seed, self.steps)
            taken = Counter(f"step: {event.action}" for event in one.trace.events)
            shown = {clause: times for clause, times in one.coverage.witnesses.items() if times}
            broken = tuple(dict.fromkeys(broken.clause for broken in one.broken))
            return SliceOutcome(
                VIOLATION if broken else CONFORMANT,
                broken,
                one.broken[0].sentence if one.broken else None,
                ", ".join(mix),
                members=len(setups[mix].consumers),
                partitions=setups[mix].exist.bit_count(),
                steps=len(one.trace.events),
                coverage={**taken, **shown},
            )

        yield play


@dataclass(frozen=True)
class Failing:
    """The smallest scenario of a campaign that breaks ``clause`` (as in its rows), one of ``scenarios``."""

    clause: str
    number: int
    seed: int
    scenarios: int


STATES = 300
"""How far minimising a walk looks for a shorter way; what is shortest, a search of the whole group says."""

SHRINK = SearchProfile(name="campaign", each=0, mixed=0, large=0, crowd=0, shrink=PROFILES["ci"].shrink)
"""A check that plays nothing but what it is given, to make it small."""


def shrink_histories(
    player: TargetPlayer,
    failing: Sequence[Failing],
    lost: Sequence[tuple[int, int]],
    *,
    seed: int,
    played: int,
    out: Path,
) -> Iterator[tuple[str, str]]:
    """Make the failing histories small on the target in its own process, as ``rebalance check`` does, and
    save them as traces below ``out``.

    ``lost``: number and seed of histories that hang or end their process; in one of its own they break the
    clauses about answers. Yields clause and path; raises TargetError, OSError.
    """
    with Session(resolve(player.spec), player.call_seconds, memory_mib=player.memory_mib) as session:
        progress = CheckProgress(done=played)
        subject = Subject.of(session)
        for one in failing:
            scenario = drawn(Seeded(one.seed), player.protocols)
            clause = CLAUSES[one.clause.rpartition("-")[0]]
            found = subject.play(scenario, (clause,)).breach_of(clause.id)
            # What does not show in a process of its own is saved as it is, unconfirmed.
            found = found or Found(clause, Breach(summary="seen in the campaign only"), 1)
            progress.best[one.clause] = (scenario, found, one.number)
            progress.broken[one.clause] = progress.judged[one.clause] = one.scenarios
        for number, own in lost:
            scenario = drawn(Seeded(own), player.protocols)
            for found in subject.play(scenario, TABLE).found:
                key = f"{found.clause.id}-{scenario.protocol}"
                progress.best.setdefault(key, (scenario, found, number))
        plan = CheckPlan(profile=SHRINK, seed=seed, level=player.level)
        info = describe(player.spec, session.hello)
        result = check(plan, session, info, progress=progress, fresh=session.close)
    for row in result.clauses:
        if row.finding is not None:
            trace = counterexamples.of(row.finding, result.target, result.profile, result.suite_version)
            yield row.id, str(counterexamples.save(trace, out))


def shrink_walks(player: WalkPlayer, failing: Sequence[Failing], *, out: Path) -> Iterator[tuple[str, str]]:
    """Walk the failing walks again, make them short, and save them as runs below ``out``.

    Yields clause and path; raises OSError.
    """
    for one in failing:
        mix = player.mix(one.seed)
        setup = player.setup(mix)
        built, required = machine(setup), rules(setup)
        trace = walk(built, required, one.seed, player.steps).trace
        small = minimise(built, required, one.clause, trace, states=STATES)
        origin = {
            "scenario": player.scenario,
            "members": len(setup.consumers),
            "partitions": setup.exist.bit_count(),
            "profiles": list(mix),
            "broker": player.broker,
            **({"switches": list(player.switches)} if player.switches else {}),
            "budget": setup.budget,
            "faults": list(setup.faults),
            "seed": one.seed,
        }
        run = saved_run(setup, origin, one.clause, small.trace)
        yield one.clause, str(runs.save(run, out))
