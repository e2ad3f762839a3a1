"""Where a search stands: what its scenarios showed so far, in figures and in the few that are worth keeping.

What the scenarios of one range of numbers show is a value of its own, and two of them add up. So it is the
same whether one process plays all scenarios, or several of them a range each.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from rebalance_verifier.gate.scenarios.generator import CROWD
from rebalance_verifier.gate.scenarios.player import PlayedHistory
from rebalance_verifier.gate.search.causes.attribution import BreakingScenario
from rebalance_verifier.model.assignor import Promise
from rebalance_verifier.model.values import RebalanceProtocol
from rebalance_verifier.properties.assignors.clause import Clause, Scope
from rebalance_verifier.properties.assignors.clauses import UNANSWERED
from rebalance_verifier.properties.assignors.played import AnyCall, AnyScenario

COUNTERS = ("skipped", "witnesses", "judged", "broken", "hung")
"""The fields of ``CheckProgress`` that count by name."""


MAX_KEPT = 500
"""Scenarios of one clause whose causes are looked for."""


@dataclass(slots=True)
class CheckTally:
    """The figures of one ``Along`` while they grow."""

    scenarios: int = 0
    broken: Counter[str] = field(default_factory=Counter)
    witnesses: Counter[str] = field(default_factory=Counter)

    def absorb(self, other: CheckTally) -> None:
        """Add what other scenarios showed."""
        self.scenarios += other.scenarios
        self.broken.update(other.broken)
        self.witnesses.update(other.witnesses)


@dataclass(slots=True)
class Passing:
    """A scenario in which every clause held. ``calls`` is None after a resume, until it is played again."""

    scenario: AnyScenario
    number: int
    worth: int
    calls: tuple[AnyCall, ...] | None = None


@dataclass(slots=True, kw_only=True)
class CheckProgress:
    """Results of the scenarios from number ``first`` to before ``done``.

    That of a whole search is saved when it is interrupted, and taken up again by ``--resume``.
    """

    first: int = 0
    done: int = 0
    questions: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    witnesses: Counter[str] = field(default_factory=Counter)
    judged: Counter[str] = field(default_factory=Counter)
    broken: Counter[str] = field(default_factory=Counter)
    hung: Counter[str] = field(default_factory=Counter)
    """Per protocol: calls that did not return, or took so long or so much as if."""
    claims: int = 0
    moved: int = 0
    breaking: dict[str, list[BreakingScenario]] = field(default_factory=dict)
    """Per clause-protocol id: the first scenarios that break it, ``MAX_KEPT`` at most."""
    seconds: float = 0.0
    along: dict[str, CheckTally] = field(default_factory=dict)
    """By ``along_key``."""
    samples: dict[str, Passing] = field(default_factory=dict)
    """By ``along_key``: the passing scenario to show."""
    ahead: list[CheckProgress] = field(default_factory=list)
    """What is known already of scenarios behind some that have not been played yet."""

    @property
    def played(self) -> int:
        """Return how many scenarios were played, those ahead included."""
        return self.done - self.first + sum(part.played for part in self.ahead)

    def add(self, record: PlayedHistory, keys: Mapping[Scope, Sequence[str]]) -> None:
        """Add what the next scenario showed. ``keys``: the clause-protocol ids that are asked in it, if it
        comes so far."""
        number, protocol = self.done, record.scenario.protocol
        self.done += 1
        self.questions += record.questions
        self.claims += record.claims
        if record.failure is not None and record.failure.costly:
            self.hung[protocol] += 1
        if record.skipped is not None:
            self.skipped[record.skipped] += 1
            return
        self.witnesses.update([f"{w}-{protocol}" for w in sorted(record.witnesses)])
        for scope in record.judged | {found.clause.scope for found in record.found}:
            self.judged.update(keys.get(scope, ()))
        for found in record.found:
            key = f"{found.clause.id}-{protocol}"
            self.broken[key] += 1
            self.moved += found.breach.gap if found.clause.id == "kip54/sticky/1" else 0
            self._keep(key, [BreakingScenario(record.scenario, found, number)])
        self._cover(record, number)

    def absorb(self, part: CheckProgress) -> None:
        """Add what other scenarios showed: the next ones."""
        self.done += part.done - part.first
        self.questions += part.questions
        self.claims += part.claims
        self.moved += part.moved
        for name in COUNTERS:
            getattr(self, name).update(getattr(part, name))
        for key, broken in part.breaking.items():
            self._keep(key, broken)
        for key, tally in part.along.items():
            self.along.setdefault(key, CheckTally()).absorb(tally)
        for key, passing in part.samples.items():
            self._show(key, passing)

    def whole(self) -> CheckProgress:
        """Return all that is known, with what lies ahead: the sum of a search that ends here."""
        total = CheckProgress(seconds=self.seconds)
        for part in (self, *self.ahead):
            total.absorb(part)
        return total

    def _keep(self, key: str, broken: Sequence[BreakingScenario]) -> None:
        kept = self.breaking.setdefault(key, [])
        kept.extend(broken[: MAX_KEPT - len(kept)])

    def _show(self, key: str, passing: Passing) -> None:
        known = self.samples.get(key)
        if known is None or passing.worth > known.worth:
            self.samples[key] = passing

    def _cover(self, record: PlayedHistory, number: int) -> None:
        """Add the scenario to the figures of its dimensions, and note whether it is worth showing."""
        protocol, dimensions = record.scenario.protocol, record.scenario.dimensions or ("",)
        tally = CheckTally(1, Counter([f.clause.id for f in record.found]), Counter(sorted(record.witnesses)))
        for dimension in dimensions:
            key = along_key(protocol, dimension)
            self.along.setdefault(key, CheckTally()).absorb(tally)
        if len(dimensions) > 1 or dimensions[0] == CROWD or record.found or record.failure is not None:
            return
        self._show(key, Passing(record.scenario, number, _worth(record), record.calls))


ReportProgress = Callable[[CheckProgress, int], None]
"""Called with where the search stands, and the total, after every scenario or a few of them."""


def along_key(protocol: RebalanceProtocol, dimension: str) -> str:
    """Return names one ``Along``."""
    return f"{protocol}/{dimension}"


def judged_keys(
    clauses: Sequence[Clause], protocol: RebalanceProtocol, promises: Sequence[Promise]
) -> dict[Scope, list[str]]:
    """Return the clause-protocol ids that a target with these promises is asked for, by the scope that a
    scenario must come to: of those about a reply, a missing one breaks ``UNANSWERED`` alone."""
    keys = defaultdict[Scope, list[str]](list)
    for clause in clauses:
        if clause.applies(protocol, promises):
            answered = clause.scope is Scope.REPLY and clause.id not in UNANSWERED
            keys[Scope.CALL if answered else clause.scope].append(f"{clause.id}-{protocol}")
    return keys


def _worth(record: PlayedHistory) -> int:
    """Return how well a scenario shows what passing is: small enough to be read, and something happens in
    it."""
    members, partitions, _, events = record.scenario.size
    legible = 2 <= members <= 4 and 2 <= partitions <= 6 and events <= 4
    return 10_000 * legible + 100 * min(len(record.witnesses), 3) - members - partitions - events
