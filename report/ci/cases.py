"""What a run of any command says to a CI system: rules that were asked, and what came of each.

A check, an exploration, an audit and a proof are told in the same words, so that each format of a CI system
(``junit``, ``sarif``, ``markdown``, ``github``) is one module that knows none of them;
``ci_reports`` makes cases of each.

Texts are as they come from the target: a format makes them fit to print (``words.clean``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import version

from rebalance_verifier.base.text import clean
from rebalance_verifier.base.verdict import Exit, Level, Verdict
from rebalance_verifier.gate.search.result import Status
from rebalance_verifier.gate.targets.hosts.source_location import SourceLocation
from rebalance_verifier.report.diagram.diagram import OwnershipDiagram
from rebalance_verifier.report.facts import LEVELS

SUITE_VERSION = version("rebalance-verifier")

Lines = Callable[[], Sequence[str]]
"""Text that is made when a format wants it: most want none, and charts take time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CiRule:
    """One sentence that must hold. ``source`` and ``link``: where it comes from, and where to read it."""

    id: str
    level: Level
    sentence: str
    source: str = ""
    link: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One thing that breaks a rule.

    ``id`` and ``path`` are those of its trace, ``source_location`` is where in a log it shows. ``because``
    leads to it, ``facts`` and ``notes`` are named lines before and after its ``chart``; ``command`` shows it
    again. ``draw`` makes its picture. ``cause`` tells it from others that break the same rule. ``certain`` is
    false of what clocks may explain.
    """

    message: str
    id: str = ""
    path: str = ""
    cause: str = ""
    source_location: SourceLocation | None = None
    because: tuple[str, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    chart: Lines = tuple
    notes: tuple[tuple[str, str], ...] = ()
    command: str = ""
    draw: Callable[[], OwnershipDiagram] | None = None
    certain: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class CiCase:
    """A rule as it was asked once. ``variant``: the protocol, where a rule is asked under several.

    ``gates``: being broken fails the run; ``excuse`` says why it does not, where that is not for its level.
    ``text`` is what the terminal shows of it where it is broken. A case that passes may have ``evidence``:
    it was asked to be shown.
    """

    rule: CiRule
    status: Status
    gates: bool = True
    excuse: str = ""
    variant: str = ""
    note: str = ""
    evidence: tuple[Evidence, ...] = ()
    text: Lines = tuple

    @property
    def lines(self) -> Sequence[str]:
        """``text``, or what is said of each thing that breaks it."""
        return self.text() or [clean(one.message) for one in self.evidence]

    @property
    def id(self) -> str:
        """Return the rule and its variant."""
        return f"{self.rule.id}-{self.variant}" if self.variant else self.rule.id

    @property
    def fails(self) -> bool:
        """Check whether it is broken and that fails the run."""
        return self.status is Status.VIOLATED and self.gates

    @property
    def where(self) -> str:
        """Return level and variant."""
        return ", ".join(filter(None, (self.rule.level, self.variant)))

    @property
    def message(self) -> str:
        """Return in a line what is wrong; what must hold where nothing is known to be wrong."""
        if not self.evidence:
            return self.rule.sentence
        more = f" (and {len(self.evidence) - 1:,} more)" if len(self.evidence) > 1 else ""
        return self.evidence[0].message + more


@dataclass(frozen=True, slots=True, kw_only=True)
class CiReport:
    """One finished run of ``command`` on ``subject``, as its user wrote it.

    ``variants`` says what the variants of its cases are. ``facts`` are named figures for people,
    ``properties`` those for programs, besides version and verdict. ``stale`` are lines of a known list that
    fail the run, ``missed`` reasons to be inconclusive. ``source_location`` is that of the subject.
    """

    command: str
    subject: str
    headline: str
    verdict: Verdict
    exit: Exit
    cases: tuple[CiCase, ...]
    variants: str = "protocol"
    tally: str = ""
    seconds: float = 0.0
    facts: tuple[tuple[str, str], ...] = ()
    properties: tuple[tuple[str, str], ...] = ()
    stale: tuple[str, ...] = ()
    missed: tuple[str, ...] = ()
    reached: tuple[str, ...] = ()
    interrupted: bool = False
    suite_version: str = SUITE_VERSION
    source_location: SourceLocation | None = None

    @property
    def failing(self) -> list[CiCase]:
        """Return the broken rules that fail the run, the worst level first."""
        return _by_level(case for case in self.cases if case.fails)

    @property
    def informing(self) -> list[CiCase]:
        """Return the broken rules that do not."""
        return _by_level(c for c in self.cases if c.status is Status.VIOLATED and not c.gates)

    @property
    def showing(self) -> list[CiCase]:
        """Return the cases that pass by what they show."""
        return _by_level(c for c in self.cases if c.status is Status.PASSED and c.evidence)

    def having(self, *statuses: Status) -> list[CiCase]:
        """Return the cases with one of these statuses, the worst level first."""
        return _by_level(case for case in self.cases if case.status in statuses)

    @property
    def counts(self) -> dict[Level, Counter[Status]]:
        """Return how many cases of each level have which status."""
        table: dict[Level, Counter[Status]] = {level: Counter() for level in LEVELS}
        for case in self.cases:
            table[case.rule.level][case.status] += 1
        return table


def _by_level(cases: Iterable[CiCase]) -> list[CiCase]:
    return sorted(cases, key=lambda case: LEVELS.index(case.rule.level))
