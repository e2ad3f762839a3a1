"""What a search has found: by clause and cause, the smallest run of each; and how a run is made short."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from rebalance_verifier.explore.random import system as systems
from rebalance_verifier.live.code.search.run import CodeBreach, CodePlaying, PlayedOnCode
from rebalance_verifier.model.machine import Event
from rebalance_verifier.model.steps import Step
from rebalance_verifier.properties.group.clauses import CLAUSES, CONVERGES
from rebalance_verifier.properties.group.own import gravity


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeFinding:
    """A clause that Kafka's code breaks. ``events``: a run that breaks it, before it is left in peace where
    that shows it; ``times``: in how many runs. ``steps``: what was seen, with those in peace."""

    breach: CodeBreach
    events: tuple[Event, ...]
    times: int = 1
    steps: tuple[Step, ...] = ()

    @property
    def cause(self) -> tuple[str, str]:
        """Return the key by which findings count as one."""
        return self.breach.clause, self.breach.cause

    @property
    def in_peace(self) -> bool:
        """Check whether it shows only when nothing goes wrong any more."""
        return self.breach.clause == CONVERGES.id


@dataclass(kw_only=True)
class Searched:
    """Findings of a search so far: ``runs`` of ``steps`` in all, by what was ``taken``, how they ended.

    ``died``: the JVM has ended or hangs, and the search with it.
    """

    runs: int = 0
    steps: int = 0
    taken: Counter[str] = field(default_factory=Counter)
    endings: Counter[str] = field(default_factory=Counter)
    findings: dict[tuple[str, str], CodeFinding] = field(default_factory=dict)
    died: bool = False

    def note(self, run: PlayedOnCode) -> None:
        """One run more."""
        self.runs += 1
        self.steps += len(run.events)
        self.taken.update(one.action for one in run.events)
        if run.ending is not None:
            self.endings[run.ending.value] += 1
        for finding in found_in(run):
            self._found(finding)

    def add(self, other: Searched) -> None:
        """Add the findings of another search; of equally small runs ours is kept."""
        self.runs += other.runs
        self.steps += other.steps
        self.taken.update(other.taken)
        self.endings.update(other.endings)
        self.died |= other.died
        for finding in other.findings.values():
            self._found(finding)

    def _found(self, one: CodeFinding) -> None:
        known = self.findings.get(one.cause)
        smaller = one if known is None or len(one.events) < len(known.events) else known
        times = one.times + (known.times if known else 0)
        self.findings[one.cause] = CodeFinding(breach=smaller.breach, events=smaller.events, times=times)


def found_in(run: PlayedOnCode) -> list[CodeFinding]:
    """Return what a run breaks."""
    return [
        CodeFinding(
            breach=breach, events=tuple(run.events[: run.peace if breach.clause == CONVERGES.id else at])
        )
        for breach, at in run.breaches.items()
    ]


def worst_first(findings: Iterable[CodeFinding]) -> list[CodeFinding]:
    """Findings by the level of their clauses, then by cause; a simulation that broke down is as bad as
    any."""

    def order(one: CodeFinding) -> tuple[tuple[int, int], tuple[str, str]]:
        return (gravity(one.breach.clause) if one.breach.clause in CLAUSES else (0, 0), one.cause)

    return sorted(findings, key=order)


def shortened(
    playing: CodePlaying, finding: CodeFinding, plays: int = 1 << 30, until: float = math.inf
) -> CodeFinding:
    """Return the finding with as few events as leaving out parts of it comes to, in so many ``plays`` and
    ``until`` that moment of ``time.monotonic``: all of a member, all of a kind, then chunks. ``playing``
    keeps steps. Raises SimulationDied."""

    def fresh() -> CodePlaying:
        nonlocal plays
        plays -= 1
        return playing

    events = systems.shortened(
        fresh, finding.events, finding.cause, rest=finding.in_peace, by_part=True,
        may_go_on=lambda: plays > 0 and time.monotonic() < until,
    )  # fmt: skip
    systems.replay(playing, events, rest=finding.in_peace)
    last = next((one for one in found_in(playing.played) if one.cause == finding.cause), None)
    if last is None:  # it does not come again
        return finding
    steps = playing.played.steps if finding.in_peace else playing.played.steps[: len(last.events)]
    return CodeFinding(breach=last.breach, events=last.events, times=finding.times, steps=tuple(steps))
