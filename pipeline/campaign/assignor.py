"""What a campaign plays on a target, histories of an assignor, and how those that fail are made small.

The player is sent to the workers of Spark; histories are made small where the command runs.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from rebalance_verifier.base.draws import Seeded
from rebalance_verifier.base.verdict import Level
from rebalance_verifier.gate.scenarios.player import Found, PlayedHistory
from rebalance_verifier.gate.search.causes.attribution import BreakingScenario
from rebalance_verifier.gate.search.plan import PROFILES, CheckPlan, SearchProfile, drawn
from rebalance_verifier.gate.search.progress import CheckProgress
from rebalance_verifier.gate.search.result import Result
from rebalance_verifier.gate.search.search import check, describe
from rebalance_verifier.gate.search.subject import Subject
from rebalance_verifier.gate.targets.hosts.hosted import load, look_here
from rebalance_verifier.gate.targets.hosts.inside import InProcess
from rebalance_verifier.gate.targets.resolve import resolve
from rebalance_verifier.gate.targets.session import Session
from rebalance_verifier.model.values import RebalanceProtocol
from rebalance_verifier.pipeline.campaign.campaign import (
    CONFORMANT,
    DECLINED,
    VIOLATION,
    Failing,
    PlaySeed,
    SliceOutcome,
)
from rebalance_verifier.properties.assignors.clause import Breach
from rebalance_verifier.properties.assignors.clauses import CLAUSES, TABLE, select

SHRINK = SearchProfile(name="campaign", each=0, mixed=0, large=0, crowd=0, shrink=PROFILES["ci"].shrink)
"""A check that plays nothing but what it is given, to make it small."""


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
        """Return what the rows depend on."""
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

            def play(seed: int, number: int) -> SliceOutcome:
                return self._outcome(subject.play(drawn(Seeded(seed), self.protocols), clauses))

            yield play

    def _session(self) -> InProcess | Session:
        target = resolve(self.spec)
        if not target.hosted:
            return Session(target, self.call_seconds, memory_mib=self.memory_mib)
        look_here(self.spec)
        return InProcess(load(self.spec))

    def _outcome(self, record: PlayedHistory) -> SliceOutcome:
        scenario = record.scenario
        members, partitions, _, _ = scenario.size
        broken = any(found.clause.level.gates(self.level) for found in record.found)
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


def shrink_histories(
    player: TargetPlayer,
    failing: Sequence[Failing],
    lost: Sequence[tuple[int, int]],
    *,
    seed: int,
    played: int,
) -> Result:
    """Make the failing histories small on the target in its own process, as ``rebalance check`` does.

    ``lost``: number and seed of histories that hang or end their process; in one of its own they break the
    clauses about answers. Raises TargetError.
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
            progress.breaking[one.clause] = [BreakingScenario(scenario, found, one.number)]
            progress.broken[one.clause] = progress.judged[one.clause] = one.scenarios
        for number, own in lost:
            scenario = drawn(Seeded(own), player.protocols)
            for found in subject.play(scenario, TABLE).found:
                key = f"{found.clause.id}-{scenario.protocol}"
                progress.breaking.setdefault(key, [BreakingScenario(scenario, found, number)])
        plan = CheckPlan(profile=SHRINK, seed=seed, level=player.level)
        info = describe(player.spec, session.hello)
        return check(plan, session, info, progress=progress, fresh=session.close)
