"""Targets beside each other: which clauses each breaks, and which mistakes of the catalogue each makes.

Every target is searched on its own, and asked the probes of the catalogue. Then the counterexamples of all
are played on all: a cell is red when some scenario found anywhere breaks the clause there, and shows the
smallest that does. So a clean cell says more than a check alone, and neither the cells nor what stands behind
them depend on the order of the targets, or on when the run was interrupted.

What is known of a target is a file; what is in it is not done again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from importlib.metadata import version as distribution_version
from pathlib import Path
from typing import Any

from rebalance_verifier.base import saved as files
from rebalance_verifier.base.reading import json_of
from rebalance_verifier.base.verdict import Level
from rebalance_verifier.gate.scenarios.player import PlayedHistory
from rebalance_verifier.gate.scenarios.probes import Probe, ProbeOutcome, probes
from rebalance_verifier.gate.search import counterexamples
from rebalance_verifier.gate.search.plan import PROFILES, CheckPlan
from rebalance_verifier.gate.search.result import MAYBE_UNSAID, ClauseResult, Finding, Status, TargetInfo
from rebalance_verifier.gate.search.search import check, describe
from rebalance_verifier.gate.search.subject import Subject, TargetSession
from rebalance_verifier.gate.targets.hosts.hosted import TargetError
from rebalance_verifier.gate.targets.hosts.java import JAVA
from rebalance_verifier.gate.targets.resolve import resolve
from rebalance_verifier.gate.targets.session import Session
from rebalance_verifier.model import codec
from rebalance_verifier.model.assignors.promises import KAFKA
from rebalance_verifier.model.bugs.catalogue import ships
from rebalance_verifier.model.bugs.switches import SWITCHES
from rebalance_verifier.properties.assignors.clause import Clause, Scope
from rebalance_verifier.properties.assignors.clauses import CLAUSES, TABLE
from rebalance_verifier.properties.assignors.played import AnyScenario, to_json

SCHEMA = 2

MAX_KNOWN = 6
"""Counterexamples of one clause and protocol that every target is asked, the smallest; and the probes."""

ONCE = "broken in the search, and not again"
"""Of a clause that one play broke, and not all of the same scenario."""

UNKNOWN = "?"
"""The newest release of a client whose registry could not be asked."""

KAFKAS = f"{JAVA}{KAFKA}."
"""How the specs of Kafka's own assignors begin."""


class CellMark(StrEnum):
    """Mark of one cell."""

    HOLDS = "."
    BROKEN = "X"
    OTHERWISE = "o"  # broken, and more than that: by another mistake, which hides whether this one is made
    UNASKED = "-"  # the target does not promise it, does not speak the protocol, or has another assignor
    UNKNOWN = "?"  # no verdict


@dataclass(frozen=True, slots=True)
class TargetCell:
    """One target and one row. ``trace`` is the path of the counterexample in a red cell; ``expected`` what
    the catalogue says of this release, where it says anything."""

    mark: CellMark
    summary: str = ""
    trace: str = ""
    expected: bool | None = None

    @property
    def agrees(self) -> bool:
        """Check whether it is as the catalogue says."""
        if self.expected is None or self.mark in (CellMark.UNASKED, CellMark.UNKNOWN, CellMark.OTHERWISE):
            return True
        return (self.mark is CellMark.BROKEN) is self.expected


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetColumn:
    """A target as it is asked for: one ``assignor`` of a ``client``, ``label`` being its release and ``page``
    the name of the client's page; a target that somebody names has its own spec as label, and no client.

    ``newest`` is the newest release of the client that exists, UNKNOWN where its registry could not be asked,
    "" where it is in none; ``profile`` how much of it is searched, "" for as much as of the others."""

    spec: str
    label: str
    client: str = ""
    assignor: str = ""
    page: str = "targets"
    newest: str = ""
    profile: str = ""

    @property
    def group(self) -> str:
        """Those of one group are shown in one table."""
        return f"{self.assignor} of {self.client}" if self.client else ""


@dataclass(slots=True, kw_only=True)
class Judged:
    """Results of one target. ``clauses`` are rows by clause-protocol id, ``entries`` by switch.

    ``searched`` is its own search, which ``clauses`` begin as; ``played`` says which counterexamples of all
    targets were played since.
    """

    column: TargetColumn
    info: TargetInfo | None = None
    error: str = ""
    clauses: dict[str, TargetCell] = field(default_factory=dict)
    entries: dict[str, TargetCell] = field(default_factory=dict)
    searched: dict[str, TargetCell] = field(default_factory=dict)
    scenarios: int = 0
    played: str = ""

    @property
    def cells(self) -> tuple[TargetCell, ...]:
        """All of its cells."""
        return (*self.clauses.values(), *self.entries.values())

    @property
    def release(self) -> str:
        """The release as it is asked for, or as the target says."""
        return self.column.label or (self.info.version if self.info else "") or "-"


@dataclass(frozen=True, kw_only=True)
class TargetComparison:
    """Plan of a comparison, and the directory where it is kept."""

    columns: tuple[TargetColumn, ...]
    directory: Path
    plan: CheckPlan = field(default_factory=lambda: CheckPlan(profile=PROFILES["smoke"], level=Level.QUALITY))
    call_seconds: float = 10.0
    memory_mib: int = 2048
    known: tuple[counterexamples.Trace, ...] = ()
    """Counterexamples from elsewhere, to be played on all."""
    jobs: int = 1
    """How many processes search one target; the cells do not depend on it."""

    def identity(self) -> dict[str, Any]:
        """Return what the cells depend on, beside the target."""
        played = [
            (p.switch, p.clause.id, *(to_json(s) for s in (p.scenario, p.control) if s)) for p in probes()
        ]
        return {
            "schema": SCHEMA,
            "suite_version": distribution_version("rebalance-verifier"),
            "profile": self.plan.profile.name,
            "seed": self.plan.seed,
            "clauses": [clause.id for clause in self.plan.clauses],
            "call_seconds": self.call_seconds,
            "memory_mib": self.memory_mib,
            "probes": _digest(played),
        }


class CompareError(ValueError):
    """A directory that holds something else; the text says what to do."""


ReportProgress = Callable[[int, int, str], None]
"""Called before each step with the number of steps done, of all of its pass, and what is done next."""

Corpus = Mapping[str, Sequence[AnyScenario]]
"""Clause-protocol id -> scenarios that break it on some target, or on a known mistake; the smallest first."""


def run(
    comparison: TargetComparison, report_progress: ReportProgress = lambda done, total, what: None
) -> list[Judged]:
    """Fill all cells, in two passes: each target's own search, then the counterexamples of all.

    Everything is saved as soon as it is known, so that Ctrl-C (which goes on up) loses the work on one target
    at most. Raises CompareError, OSError.
    """
    _enlist(comparison)
    judged = [load(comparison, column) for column in comparison.columns]
    unsearched = [one for one in judged if not one.info]
    for number, one in enumerate(unsearched):
        report_progress(number, len(unsearched), f"search {one.column.spec}")
        _with_target(comparison, one, _search)
    corpus = _corpus(comparison, judged)
    digest = _digest([[key, *map(to_json, scenarios)] for key, scenarios in corpus.items()])
    unplayed = [one for one in judged if one.info and one.played != digest]
    for number, one in enumerate(unplayed):
        report_progress(number, len(unplayed), f"counterexamples of all on {one.column.spec}")
        _with_target(comparison, one, partial(_play, corpus=corpus))
        one.played = digest
        _save(comparison, one)
    return judged


def stored(comparison: TargetComparison) -> list[Judged]:
    """Return what is known of each target by now, without asking any."""
    return [load(comparison, column) for column in comparison.columns]


# --- one target ------------------------------------------------------------------------------------------


def _with_target(
    comparison: TargetComparison, one: Judged, act: Callable[[TargetComparison, Judged, Session], None]
) -> None:
    """Do something with a target that runs, and save what is known then."""
    try:
        target = resolve(one.column.spec)
        with Session(target, comparison.call_seconds, memory_mib=comparison.memory_mib) as session:
            act(comparison, one, session)
    except TargetError as error:
        one.error = str(error).splitlines()[0]
    _save(comparison, one)


def _search(comparison: TargetComparison, one: Judged, session: Session) -> None:
    """The target's own search, and the probes; a clause that a probe breaks is broken."""
    info = describe(one.column.spec, session.hello)
    profile = PROFILES[one.column.profile] if one.column.profile else comparison.plan.profile
    plan = replace(comparison.plan, profile=profile, repeatable=True, causes=1)
    result = check(plan, session, info, fresh=session.close, jobs=comparison.jobs)
    if result.interrupted:
        raise KeyboardInterrupt
    own = {row.id: _cell(comparison, info, row, result.missed) for row in result.clauses}
    red = _probe(comparison, one, info, _subject(session, own))
    found = {key for key, cell in own.items() if cell.mark is CellMark.BROKEN}
    one.searched = own | {key: cell for key, cell in red.items() if key not in found}
    one.clauses, one.scenarios, one.info = dict(one.searched), result.scenarios, info


def _subject(session: TargetSession, searched: Mapping[str, TargetCell]) -> Subject:
    """Return the target in a new process, after its own search."""
    repeated = [one for key, one in searched.items() if CLAUSES[key.rpartition("-")[0]].scope is Scope.REPEAT]
    return replace(Subject.renewed(session), alike=all(one.mark is CellMark.HOLDS for one in repeated))


def _probe(
    comparison: TargetComparison, one: Judged, info: TargetInfo, subject: Subject
) -> dict[str, TargetCell]:
    """Play the probes of the catalogue for the clauses that are compared, left out those for another
    assignor and those of what the target does not promise. What they break, by clause-protocol id."""
    red: dict[str, TargetCell] = {}
    compared = [probe for probe in probes() if probe.clause in comparison.plan.clauses]
    for switch in dict.fromkeys(probe.switch for probe in compared):
        about = (info.name, info.protocols, info.promises)
        mine = [probe for probe in compared if probe.switch == switch and probe.concerns(*about)]
        cells = [_probed(comparison, info, probe, subject) for probe in mine]
        for probe, cell in zip(mine, cells, strict=True):
            if cell.mark in (CellMark.BROKEN, CellMark.OTHERWISE):
                key = f"{probe.clause.id}-{probe.scenario.protocol}"
                red.setdefault(key, replace(cell, mark=CellMark.BROKEN))
        cell = min(cells, key=lambda cell: _TELLING.index(cell.mark), default=TargetCell(CellMark.UNASKED))
        one.entries[switch] = replace(cell, expected=expectation(switch, one.column.spec, info.version))
    return red


_TELLING = (CellMark.BROKEN, CellMark.OTHERWISE, CellMark.UNKNOWN, CellMark.HOLDS)
"""Of several probes for one mistake, what counts first: any of them shows it, all must hold."""


def _probed(comparison: TargetComparison, info: TargetInfo, probe: Probe, subject: Subject) -> TargetCell:
    """Return what one probe says."""
    record = subject.lasting(subject.play(probe.scenario, TABLE), probe.clause)
    control = subject.play(probe.control, (probe.clause,)) if probe.control else None
    match probe.shows(record, control):
        case ProbeOutcome.NO:
            return TargetCell(CellMark.HOLDS)
        case ProbeOutcome.UNSEEN:
            failed = record.failure.message if record.failure else record.skipped or ""
            return TargetCell(CellMark.UNKNOWN, f"the play ended before it could be seen: {failed}")
        case shown:
            found = _red(comparison, info, probe.clause, record)
            return found if shown is ProbeOutcome.YES else replace(found, mark=CellMark.OTHERWISE)


def _play(comparison: TargetComparison, one: Judged, session: TargetSession, corpus: Corpus) -> None:
    """Play the counterexamples of all, of each clause the smallest first until one breaks it here."""
    assert one.info
    subject = _subject(session, one.searched)
    one.clauses = dict(one.searched)
    for key, scenarios in corpus.items():
        clause_id, _, protocol = key.rpartition("-")
        clause = CLAUSES[clause_id]
        applies = protocol in one.info.protocols and clause.promises <= frozenset(one.info.promises)
        for scenario in scenarios if applies else ():
            record = subject.play(scenario, (clause,))
            if subject.lasting(record, clause).breach_of(clause.id):
                one.clauses[key] = _red(comparison, one.info, clause, record)
                break
            if record.breach_of(clause.id) and one.clauses[key].mark is CellMark.HOLDS:
                one.clauses[key] = TargetCell(CellMark.UNKNOWN, ONCE)


def _red(comparison: TargetComparison, info: TargetInfo, clause: Clause, record: PlayedHistory) -> TargetCell:
    """Return a red cell for what was just played, with its trace."""
    broken = record.breach_of(clause.id)
    assert broken
    finding = replace(Finding.of(broken, record.scenario, record.calls), seed=comparison.plan.seed)
    return _traced(comparison, info, finding)


def _cell(
    comparison: TargetComparison, info: TargetInfo, row: ClauseResult, missed: Sequence[str]
) -> TargetCell:
    """Return what the target's own search says; one that did not come to its end clears nothing."""
    if row.status is Status.UNCONFIRMED:
        return TargetCell(CellMark.UNKNOWN, ONCE)
    if row.finding is not None:
        return _traced(comparison, info, row.finding)
    if row.status is Status.PASSED:
        return TargetCell(CellMark.UNKNOWN, missed[0]) if missed else TargetCell(CellMark.HOLDS)
    return TargetCell(CellMark.UNASKED if row.status is Status.UNSUPPORTED else CellMark.UNKNOWN, row.note)


def _traced(comparison: TargetComparison, info: TargetInfo, finding: Finding) -> TargetCell:
    trace = counterexamples.of(
        finding, info, comparison.plan.profile.name, distribution_version("rebalance-verifier")
    )
    path = counterexamples.save(trace, comparison.directory / "traces")
    return TargetCell(CellMark.BROKEN, finding.breach.summary, str(path))


def expectation(switch: str, spec: str, version: str) -> bool | None:
    """Check whether the catalogue says that this release of Kafka's own assignor has the mistake; None where
    it says nothing, as of other projects and other targets."""
    return ships(switch, "Java", version) if spec.startswith(KAFKAS) else None


# --- what others were caught by --------------------------------------------------------------------------


def _corpus(comparison: TargetComparison, judged: Sequence[Judged]) -> Corpus:
    """Return the counterexamples that the searches gave, and the probes; their order follows from them
    alone."""
    found: dict[str, dict[_Order, AnyScenario]] = {}
    for one in judged:
        for key, cell in one.searched.items():
            if cell.mark is CellMark.BROKEN:
                with contextlib.suppress(files.TraceError):  # deleted since
                    scenario = counterexamples.load(Path(cell.trace)).scenario
                    found.setdefault(key, {})[_order(scenario)] = scenario
    smallest = {key: dict(sorted(scenarios.items())[:MAX_KNOWN]) for key, scenarios in found.items()}
    given: list[tuple[Clause, AnyScenario]] = [(probe.clause, probe.scenario) for probe in probes()]
    given += [(trace.clause, trace.scenario) for trace in comparison.known]
    for clause, scenario in given:
        if clause in comparison.plan.clauses:
            smallest.setdefault(f"{clause.id}-{scenario.protocol}", {})[_order(scenario)] = scenario
    return {key: [smallest[key][order] for order in sorted(smallest[key])] for key in sorted(smallest)}


_Order = tuple[tuple[int, int, int, int], str]


def _order(scenario: AnyScenario) -> _Order:
    return scenario.size, json.dumps(to_json(replace(scenario, dimensions=())))


# --- on disk ---------------------------------------------------------------------------------------------


def _enlist(comparison: TargetComparison) -> None:
    """Make the directory, or find that it holds the same comparison."""
    path = comparison.directory / "comparison.json"
    wanted = comparison.identity()
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        try:
            known = json_of(path)
            differing = [name for name, value in wanted.items() if known.get(name) != value]
        except (ValueError, AttributeError) as error:
            raise CompareError(f"{path} is not what was saved there: delete it ({error})") from error
        if differing:
            raise CompareError(
                f"{comparison.directory} holds a comparison with another {differing[0]}: take another --out, "
                "or delete it"
            )
    (comparison.directory / "targets").mkdir(parents=True, exist_ok=True)
    files.write(path, files.dump(wanted) + "\n")


def _file(comparison: TargetComparison, column: TargetColumn) -> Path:
    return comparison.directory / "targets" / f"{_digest(column.spec + column.profile)}.json"


def _save(comparison: TargetComparison, one: Judged) -> None:
    if not one.error:  # one that does not start is tried again
        kept = to_json_of(one) | {"searched": _cells_out(one.searched), "played": one.played}
        files.write(_file(comparison, one.column), files.dump(kept) + "\n")


def load(comparison: TargetComparison, column: TargetColumn) -> Judged:
    """Return what is known of a target; nothing, if nothing is."""
    path = _file(comparison, column)
    try:
        return _judged_in(column, json_of(path))
    except (FileNotFoundError, NotADirectoryError):
        return Judged(column=column)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise CompareError(f"{path} is not what was saved there: delete it ({error})") from error


def _judged_in(column: TargetColumn, data: Mapping[str, Any]) -> Judged:
    readers = {TargetColumn: lambda _: column, CellMark: lambda name: CellMark[name.upper()]}
    return codec.from_json(Judged, {**data, "column": None, "info": data["target"]}, readers=readers)


def to_json_of(one: Judged) -> dict[str, Any]:
    """Return all that is known of one target, as JSON."""
    return {
        "label": one.column.label,
        "client": one.column.client,
        "assignor": one.column.assignor,
        "spec": one.column.spec,
        "target": codec.to_json(one.info, MAYBE_UNSAID),
        "error": one.error,
        "scenarios": one.scenarios,
        "clauses": _cells_out(one.clauses),
        "entries": {key: _cell_out(cell) for key, cell in one.entries.items()},
    }


def _cells_out(cells: Mapping[str, TargetCell]) -> dict[str, Any]:
    return {key: _cell_out(cell) for key, cell in sorted(cells.items(), key=_cell_order)}


def _cell_order(item: tuple[str, TargetCell]) -> tuple[int, str]:
    order = [clause.id for clause in TABLE]
    return order.index(item[0].rpartition("-")[0]), item[0]


def _cell_out(cell: TargetCell) -> dict[str, Any]:
    written = codec.to_json(cell, ("summary", "trace", "expected")) | {"mark": cell.mark.name.lower()}
    return written if cell.expected is None else {**written, "agrees": cell.agrees}


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, separators=(",", ":")).encode()).hexdigest()[:16]


def rows_of(judged: Sequence[Judged]) -> tuple[list[str], list[str]]:
    """Return all clause-protocol ids and all switches that any target was asked, in the order of their
    tables."""
    keys = {key for one in judged for key in one.clauses}
    clauses = [f"{c.id}-{p}" for c in TABLE for p in c.protocols if f"{c.id}-{p}" in keys]
    return clauses, [switch for switch in SWITCHES if any(switch in one.entries for one in judged)]
