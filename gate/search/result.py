"""What a finished check knows: plain records, made by ``gate.search.search``, read by every report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from rebalance_verifier.base.verdict import Exit, Level, Verdict
from rebalance_verifier.gate.scenarios.player import Found
from rebalance_verifier.gate.search.causes.attribution import Cause
from rebalance_verifier.model.values import RebalanceProtocol
from rebalance_verifier.properties.assignors.clause import Breach, Clause
from rebalance_verifier.properties.assignors.played import AnyCall, AnyScenario


class Status(StrEnum):
    """Outcome of one clause under one protocol."""

    PASSED = "passed"
    VIOLATED = "violated"
    KNOWN = "known"  # violated, and on the list of known failures
    UNCONFIRMED = "unconfirmed"  # broken in the search, and never again
    FLAKY = "flaky"  # on the list of known flaky ones, violated or not
    FIXED = "fixed"  # on the list of known failures, and not violated: the list is stale
    UNSUPPORTED = "unsupported"  # the target does not promise it, or declined
    UNTESTED = "untested"  # never asked in this run


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetInfo:
    """Target that was judged, in its own words (the hello message) and in ours (``spec``)."""

    spec: str
    name: str = ""
    version: str = ""
    language: str = ""
    protocols: tuple[str, ...] = ()
    promises: tuple[str, ...] = ()
    homepage: str = ""
    issues: str = ""
    interface: str = ""
    """Of Kafka, by which it is judged, and in ``also`` others that it has, with what to type."""
    also: str = ""


MAYBE_UNSAID = ("interface", "also")
"""Fields that files of many traces leave out where a target does not say them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One counterexample: a clause broken in round ``round`` (from 1) of ``scenario``.

    ``calls`` are the answered calls of the scenario as played, the last to be looked at in
    ``round``; ``found_size`` is the scenario's size before it was minimised. ``confirmed``: it broke
    again when the minimised scenario was replayed in a fresh process. ``cause`` is why it breaks, None where
    nobody looked, and ``broken`` how many scenarios of the search were seen to break by it.
    """

    clause: Clause
    protocol: RebalanceProtocol
    breach: Breach
    scenario: AnyScenario
    round: int
    calls: tuple[AnyCall, ...]
    seed: int = 0
    number: int = 0
    found_size: tuple[int, int, int, int]
    confirmed: bool = False
    cause: Cause | None = None
    broken: int = 0
    known: str = ""
    """Why the list of known failures allows this cause, if it does."""
    trace_id: str = ""
    path: str = ""

    @classmethod
    def of(cls, found: Found, scenario: AnyScenario, calls: tuple[AnyCall, ...] = ()) -> Finding:
        """Return what a play of ``scenario`` has ``found``, not confirmed yet."""
        return cls(
            clause=found.clause,
            protocol=scenario.protocol,
            breach=found.breach,
            scenario=scenario,
            round=found.round,
            calls=calls,
            found_size=scenario.size,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClauseResult:
    """One row of the clause matrix. ``id`` is the clause id with ``-eager`` or ``-cooperative``."""

    clause: Clause
    protocol: RebalanceProtocol
    status: Status
    scenarios: int = 0
    broken: int = 0
    """Scenarios in which it was broken."""
    searched: int = 0
    """Scenarios of the search, of whatever protocol: findings have their numbers, which begin with 0."""
    finding: Finding | None = None
    """The most real counterexample that is not known."""
    others: tuple[Finding, ...] = ()
    """One for each other cause, the most real first."""
    note: str = ""
    """Why it is unsupported or untested; the issue link of a known failure."""
    hint: str = ""
    """What the author of the target is to read, where that is known."""

    @property
    def id(self) -> str:
        return f"{self.clause.id}-{self.protocol}"

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Return one finding for each cause."""
        return (self.finding, *self.others) if self.finding is not None else ()

    @property
    def unattributed(self) -> int:
        """Return the scenarios that break it by a cause that is not shown, or not known."""
        return max(0, self.broken - sum(found.broken for found in self.findings))


@dataclass(frozen=True, slots=True, kw_only=True)
class Along:
    """Results of the scenarios of one protocol that vary along one dimension; ``""``: along none.

    A scenario along several counts for each of them. Every clause that was asked under the protocol was
    asked in all of these scenarios; ``broken`` and ``witnesses`` say in how many of them what came of it,
    by the id of the clause and the name of the situation.
    """

    protocol: RebalanceProtocol
    dimension: str
    scenarios: int
    broken: Mapping[str, int] = field(default_factory=dict)
    witnesses: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sample:
    """A scenario along one dimension in which every clause held, with its calls: what passing looks like."""

    dimension: str
    scenario: AnyScenario
    calls: tuple[AnyCall, ...]
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One finished (or interrupted) check."""

    suite_version: str
    target: TargetInfo
    profile: str
    seed: int
    level: str
    """The weakest level that fails the run."""
    clauses: tuple[ClauseResult, ...]
    scenarios: int
    questions: int
    """Questions put to the target."""
    seconds: float
    witnesses: Mapping[str, int] = field(default_factory=dict)
    """Situation -> number of scenarios that reached it."""
    missed: tuple[str, ...] = ()
    """Situations that had to be reached and were not, and other reasons to be inconclusive."""
    floors: Mapping[RebalanceProtocol, tuple[str, ...]] = field(default_factory=dict)
    """Situations that a search of this size must reach under each protocol."""
    coverage: tuple[Along, ...] = ()
    """By protocol, then by dimension in the order of the generator."""
    samples: tuple[Sample, ...] = ()
    """One for each protocol and dimension that has any, in the same order."""
    quality: float | None = None
    """Share of the valid claims that could be kept and were; ``None`` when nothing was measured."""
    stale_known: tuple[str, ...] = ()
    """Lines of the known list that match nothing that was run."""
    assumed: bool = False
    """The target declares no promises: those that it is held to are assumed."""
    without: tuple[str, ...] = ()
    """Kinds of input that were not played, as its author wants it."""
    topics: tuple[str, ...] = ()
    """Names that topics had; none: any."""
    beside: tuple[str, ...] = ()
    """Clients whose bytes the members wrote, in turn."""
    interrupted: bool = False
    verdict: Verdict = Verdict.INCONCLUSIVE
    exit: Exit = Exit.INCONCLUSIVE
    run_dir: str = ""
    """Where the reports are."""
    page: str = ""
    """The HTML report, where one is written."""

    @property
    def doubts(self) -> tuple[str, ...]:
        """Return why it would be inconclusive: what was ``missed``, and what was seen once and never
        again."""
        level = Level(self.level)
        once = (r for r in self.clauses if r.status is Status.UNCONFIRMED and r.clause.level.gates(level))
        return (
            *self.missed,
            *(f"{row.id} was broken in the search, and {row.note or 'not again'}" for row in once),
        )
