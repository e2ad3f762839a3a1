"""What to audit and how, and what came of it."""

from __future__ import annotations

import contextlib
import os
import re
import zoneinfo
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date as Day
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from rebalance_verifier.base.verdict import Exit, Level, Verdict
from rebalance_verifier.pipeline.audit.diagnosis import BugLink
from rebalance_verifier.pipeline.audit.kernel.findings import (
    CHECKS,
    OF_GROUPS,
    ZOMBIE,
    AuditCheck,
    Thresholds,
)
from rebalance_verifier.pipeline.audit.known import KnownFinding
from rebalance_verifier.pipeline.audit.records import LEVELS, LogFinding, Recording
from rebalance_verifier.pipeline.audit.sources.loggers import LOGGED
from rebalance_verifier.pipeline.audit.sources.reading import Unread
from rebalance_verifier.pipeline.audit.sources.settling import LoggedClient, Note


class InputError(ValueError):
    """Logs that cannot be read; the text says which and why."""


def zone_of(text: str) -> str:
    """Return the name of a time zone, or an offset such as +02:00, as it is given. Raises InputError."""
    if re.fullmatch(r"[+-]\d\d:\d\d", text) or text == "UTC":
        return text
    with contextlib.suppress(KeyError, ValueError, OSError):
        return zoneinfo.ZoneInfo(text).key
    raise InputError(f"{text!r} is no time zone, such as Europe/Berlin or +02:00")


def day_of(text: str) -> str:
    """Return a day as YYYY-MM-DD. Raises InputError."""
    with contextlib.suppress(ValueError):
        return Day.fromisoformat(text).isoformat()
    raise InputError(f"{text!r} is not a day, such as 2026-11-21")


NO_OWNERS = "no line says who owns which partition"


def keep_apart(out: str | None, paths: Sequence[str]) -> None:
    """Refuse results among the logs: the next audit would read them. Spark passes over hidden directories.

    Raises InputError.
    """
    for path in paths if out is not None and "://" not in out else ():
        results, logs = Path(str(out)).resolve(), Path(path).resolve()
        if not logs.is_dir() or not results.is_relative_to(logs):
            continue
        if not any(part.startswith((".", "_")) for part in results.relative_to(logs).parts):
            raise InputError(f"{out} is within {path}, which is read; name another directory")


@dataclass(frozen=True, kw_only=True)
class AuditPlan:
    """Plan of an audit.

    ``out`` is a local directory for reports and traces, ``data`` the directory or URL that Spark writes its
    tables to (``out`` where empty). ``kind``, ``zone`` and ``date`` are those of
    ``pipeline.audit.sources.local.read``. ``groups`` and ``checks``: only these, empty for all.
    ``level``: the weakest that fails a run. ``known``: what it may find.
    ``master``: of Spark; empty for one process, where the logs fit. ``memory``: of Spark's driver or of the
    database in one process, such as ``4g``; empty for what each needs.
    """

    paths: tuple[str, ...]
    out: Path
    keeps: bool = True
    """False where ``out`` is for temporary files."""
    data: str = ""
    master: str = ""
    memory: str = ""
    kind: str | None = None
    zone: str = "UTC"
    date: str | None = None
    groups: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    level: str = "liveness"
    known: tuple[KnownFinding, ...] = ()
    thresholds: Thresholds = field(default_factory=Thresholds)

    def table(self, name: str) -> str:
        """Return the path of the table of this name."""
        return f"{self.data or self.out}/{name}"

    @property
    def absolute(self) -> tuple[str, ...]:
        """Return the paths, local ones from the root on: Spark need not run in this directory. Raises
        InputError."""
        if not all(self.paths):  # such as "$LOGS" where that is not set
            raise InputError("a path is empty: write . for the current directory")
        here = literal(str(Path.cwd()))
        return tuple(path if "://" in path else os.path.join(here, path) for path in self.paths)

    @property
    def chosen_checks(self) -> tuple[AuditCheck, ...]:
        """Return the checks, the gravest first."""
        chosen = [c for c in CHECKS.values() if not self.checks or c.id in self.checks]
        return tuple(sorted(chosen, key=lambda c: LEVELS.index(c.level)))

    def gates(self, level: str) -> bool:
        """Check whether a finding of this level fails the run."""
        return Level(level).gates(Level(self.level))

    def wants(self, found: LogFinding, today: Day) -> bool:
        """Check whether a finding is of a check and a group that are looked at, and not known today."""
        return (
            (not self.checks or found.check in self.checks)
            and (not self.groups or found.group in self.groups)
            and not any(
                entry.matches(found.id, found.check, found.group, found.about)
                for entry in self.known
                if not entry.expired(today)
            )
        )

    @property
    def origin(self) -> dict[str, Any]:
        """Return a trace's description of where it comes from."""
        origin: dict[str, Any] = {"paths": list(self.paths), "zone": self.zone}
        if self.kind:
            origin["source"] = self.kind
        return {
            **origin,
            **{name: value for name, value in asdict(self.thresholds).items() if value is not None},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSource:
    """Lines and events read of one kind of log. ``source`` is "" for lines that nothing recognised."""

    source: str
    files: int
    lines: int
    recognised: int
    events: int


@dataclass(frozen=True, slots=True)
class Malformed:
    """A line that should have been an event."""

    file: str
    line: int
    text: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditTally:
    """The findings of one check: how many, how many of them certain, in how many groups, the longest."""

    check: str
    findings: int
    certain: int
    groups: int
    longest: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedGroup:
    """Figures of one group. ``settled``: it was, when the log ended."""

    group: str
    consumers: int
    partitions: int
    events: int
    rebalances: int
    first: str | None
    last: str | None
    settled: bool | None
    findings: int


class Unlogged(NamedTuple):
    """A group with how many members a plan, the coordinator or a member names, and how many of their logs are
    not here."""

    group: str
    members: int
    missing: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """How long the partitions of a group were with nobody when they changed hands, in seconds."""

    group: str
    handovers: int
    p50: float | None
    p95: float | None
    longest: float | None


@dataclass(frozen=True, slots=True)
class Clock:
    """By how many seconds the clock of a host is ahead of the others, and how sure that is."""

    host: str
    ahead: float | None
    spread: float | None
    samples: int


@dataclass(frozen=True, kw_only=True)
class Audited:
    """Result of an audit. ``findings``: the first; ``recordings``: of the first of these, with what is around
    them; ``traces``: id of a finding -> the file that whoever has run the audit saved its recording to.

    ``broken`` and ``groups`` count groups: those with a finding that fails the run, and all. ``stage`` is
    what was being done when it was ``interrupted`` or ``failed`` (with Spark's words), "" when it ended.
    """

    plan: AuditPlan
    sources: tuple[AuditSource, ...] = ()
    files: int = 0
    events: int = 0
    malformed: int = 0
    not_understood: int = 0
    """Those of them that may be of the groups that are looked at."""
    first_malformed: tuple[Malformed, ...] = ()
    unread: tuple[Unread, ...] = ()
    notes: tuple[Note, ...] = ()
    clients: tuple[LoggedClient, ...] = ()
    absent: tuple[str, ...] = ()
    """Groups that were asked for and that no event is about; ``others`` are those that the logs have."""
    others: tuple[str, ...] = ()
    until: datetime | None = None
    """The last time in the logs, of whatever line."""
    tallies: tuple[AuditTally, ...] = ()
    known: int = 0
    """Findings that the plan's list allows: the table ``known`` has them, and nothing else counts them."""
    unmatched: tuple[KnownFinding, ...] = ()
    """Of that list, what allows nothing that was found, or nothing any more."""
    broken: int = 0
    groups: int = 0
    blind: int = 0
    """Groups of which no line says who owns which partition."""
    still: int = 0
    """Groups of which no line says that they rebalanced."""
    silent: int = 0
    """Consumers that joined, and of which no line says what they own."""
    unlogged: tuple[Unlogged, ...] = ()
    """Groups of which the logs of some members are not here, those with most first."""
    findings: tuple[LogFinding, ...] = ()
    recordings: tuple[Recording, ...] = ()
    worst: tuple[AuditedGroup, ...] = ()
    pauses: tuple[Pause, ...] = ()
    clocks: tuple[Clock, ...] = ()
    diagnoses: Mapping[str, tuple[BugLink, ...]] = field(default_factory=dict)
    """Id of a finding -> what of the catalogue of bugs it is, or may be."""
    pointers: Mapping[str, str] = field(default_factory=dict)
    """Id of a finding -> what the log itself says of its cause."""
    traces: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    stage: str = ""
    interrupted: bool = False
    failed: str = ""
    unsaved: str = ""
    """Why traces are missing."""

    @property
    def lines(self) -> int:
        """Return how many lines were read."""
        return sum(source.lines for source in self.sources)

    @property
    def recognised(self) -> int:
        """Return how many of them say something."""
        return sum(source.recognised for source in self.sources)

    def tally(self, check: str) -> AuditTally:
        """Return the figures of a check, those without findings too."""
        none = AuditTally(check=check, findings=0, certain=0, groups=0, longest=0.0)
        return next((tally for tally in self.tallies if tally.check == check), none)

    def count(self, *, gating: bool, certain: bool) -> int:
        """Return how many findings there are of the levels that fail the run (or the others), certain or not.

        A zombie within what clocks differ by is none: each hand-over to the next would be one.
        """
        rows = [t for t in self.tallies if self.plan.gates(CHECKS[t.check].level) == gating]
        if certain:
            return sum(t.certain for t in rows)
        return sum(t.findings - t.certain for t in rows if not gating or t.check != ZOMBIE.id)

    @property
    def judged(self) -> tuple[AuditCheck, ...]:
        """Return the checks that could have failed: some line says what they look at."""
        return judgeable(self.plan.chosen_checks, self.groups, self.blind, self.still)

    @property
    def not_judged(self) -> tuple[AuditCheck, ...]:
        """Return the others: nothing in these logs could have broken them."""
        return tuple(check for check in self.plan.chosen_checks if check not in self.judged)

    @property
    def gap(self) -> str:
        """Return why the logs do not show that all is in order, though nothing is found; empty where all was
        judged."""
        if not self.events:
            return ""
        if lacks := lacking(self.plan.chosen_checks, self.judged):
            return lacks + (self._levels if lacks == NO_OWNERS else "")
        if self.silent:
            return silent_text(self.silent) + self._levels
        if self.unlogged:
            return unlogged_text(self.unlogged)
        return misread_text(self.not_understood, self.lines) if self.not_understood else ""

    @property
    def _levels(self) -> str:
        """Where the clients in these logs say who owns what, as far as they do."""
        names = {client.source for client in self.clients if client.consumer}
        levels = (
            f"{source.name} says it at {source.level}"
            for source in LOGGED
            if source.level and source.name in names
        )
        return "".join(f"; {level}" for level in levels)

    @property
    def verdict(self) -> Verdict:
        """Return the verdict. Certain findings come first; then whether all was read and judged, and nothing
        may be there."""
        if self.count(gating=True, certain=True):
            return Verdict.VIOLATION
        unfinished = self.stage or not self.events or self.count(gating=True, certain=False)
        lost = any(part.lost for part in self.unread)
        unclear = self.notes or self.absent or lost or self.gap
        return Verdict.INCONCLUSIVE if unfinished or unclear else Verdict.CONFORMANT

    @property
    def exit(self) -> Exit:
        """Return the exit code."""
        return Exit.of(self.verdict, interrupted=self.interrupted)


def judgeable(checks: Sequence[AuditCheck], groups: int, blind: int, still: int) -> tuple[AuditCheck, ...]:
    """Return the checks that could have failed in so many groups, of which so many say nothing of owners, and
    so many nothing of rebalances."""
    return tuple(check for check in checks if groups > (still if check.id in OF_GROUPS else blind))


def lacking(checks: Sequence[AuditCheck], judged: Sequence[AuditCheck]) -> str:
    """Say which lines are missing where none of the gravest of the checks was judged; "" where one was."""
    gravest = min((LEVELS.index(check.level) for check in checks), default=0)
    of_that = [check for check in checks if LEVELS.index(check.level) == gravest]
    if not of_that or any(check in judged for check in of_that):
        return ""
    of_groups = all(check.id in OF_GROUPS for check in of_that)
    return "no line says that the group rebalances" if of_groups else NO_OWNERS


def silent_text(consumers: int) -> str:
    """Say that so many consumers do not log what they own."""
    return f"of {consumers:,} of its consumers {NO_OWNERS}"


def unlogged_text(groups: Sequence[Unlogged]) -> str:
    """Say that the logs of some members of these groups are missing.

    >>> unlogged_text([Unlogged("orders", 3, 2)])
    'the logs of 2 of the 3 members of group orders are missing or cut short'
    """
    group, members, missing = groups[0]
    logs, are = ("the log", "is") if missing == 1 else ("the logs", "are")
    more = f", and some of {len(groups) - 1:,} more groups" if len(groups) > 1 else ""
    return (
        f"{logs} of {missing:,} of the {members:,} members of group {group} {are} missing or cut short{more}"
    )


def misread_text(count: int, lines: int | None = None) -> str:
    """Say that so many lines are not understood, of all, where that is known.

    >>> misread_text(1), misread_text(1200, 5000)[:33]
    ('1 line begins like one of a client, and is not understood', '1,200 of 5,000 lines begin like t')
    """
    named = f"{count:,} line{'s' * (count != 1)}" if lines is None else f"{count:,} of {lines:,} lines"
    if count == 1:
        return f"{named} begins like one of a client, and is not understood"
    return f"{named} begin like those of a client, and are not understood"


def absolute(path: str) -> str:
    """A local path from the root on; a URL as it is."""
    return path if "://" in path else os.path.abspath(path)


def literal(path: str) -> str:
    """A path to read from that is no pattern, whatever is in its name."""
    return re.sub(r"([\[\]{}*?\\])", r"\\\1", path)
