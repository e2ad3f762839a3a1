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
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from functools import partial
from importlib.metadata import version as distribution_version
from pathlib import Path
from typing import Any

from rebalance.gate import traces
from rebalance.gate.adapters.java import KAFKA
from rebalance.gate.check import Subject, check, describe
from rebalance.gate.plan import PROFILES, Plan
from rebalance.gate.probes import Probe, Shown, probes
from rebalance.gate.result import ClauseResult, Finding, Status, TargetInfo
from rebalance.gate.session import Session
from rebalance.gate.targets import JAVA, TargetError, resolve
from rebalance.model.catalogue import entries_of
from rebalance.model.releases import parse
from rebalance.model.releases import version as as_version
from rebalance.model.switches import SWITCHES
from rebalance.properties.clauses import CLAUSES, TABLE, Clause, Level
from rebalance.properties.histories import Record
from rebalance.properties.scenarios import Scenario, to_json

SCHEMA = 2

MOST_KNOWN = 6
"""Counterexamples of one clause and protocol that every target is asked, the smallest; and the probes."""

KAFKAS = f"{JAVA}{KAFKA}."
"""How the specs of Kafka's own assignors begin."""


class Mark(StrEnum):
    """What one cell says."""

    HOLDS = "."
    BROKEN = "X"
    OTHERWISE = "o"  # broken, and more than that: by another mistake, which hides whether this one is made
    UNASKED = "-"  # the target does not promise it, does not speak the protocol, or has another assignor
    UNKNOWN = "?"  # no verdict


@dataclass(frozen=True, slots=True)
class Cell:
    """One target and one row. ``trace`` is the path of the counterexample in a red cell; ``expected`` what
    the catalogue says of this release, where it says anything."""

    mark: Mark
    summary: str = ""
    trace: str = ""
    expected: bool | None = None

    @property
    def agrees(self) -> bool:
        """Whether it is as the catalogue says."""
        if self.expected is None or self.mark in (Mark.UNASKED, Mark.UNKNOWN, Mark.OTHERWISE):
            return True
        return (self.mark is Mark.BROKEN) is self.expected


@dataclass(frozen=True, slots=True)
class Column:
    """A target as it is asked for: one ``assignor`` of a ``client``, ``label`` being its release and ``page``
    the name of the client's page; a target that somebody names has its own spec as label, and no client."""

    spec: str
    label: str
    client: str = ""
    assignor: str = ""
    page: str = "targets"

    @property
    def group(self) -> str:
        """Those of one group are shown in one table."""
        return f"{self.assignor} of {self.client}" if self.client else ""


@dataclass(slots=True)
class Judged:
    """What is known of one target. ``clauses`` are rows by clause-protocol id, ``entries`` by switch.

    ``searched`` is its own search, which ``clauses`` begin as; ``played`` says which counterexamples of all
    targets were played since.
    """

    column: Column
    info: TargetInfo | None = None
    error: str = ""
    clauses: dict[str, Cell] = field(default_factory=dict)
    entries: dict[str, Cell] = field(default_factory=dict)
    searched: dict[str, Cell] = field(default_factory=dict)
    scenarios: int = 0
    played: str = ""

    @property
    def cells(self) -> tuple[Cell, ...]:
        """All of its cells."""
        return (*self.clauses.values(), *self.entries.values())

    @property
    def release(self) -> str:
        """The release as it is asked for, or as the target says."""
        return self.column.label or (self.info.version if self.info else "") or "-"


@dataclass(frozen=True)
class Comparison:
    """What to compare, and where it is kept."""

    columns: tuple[Column, ...]
    directory: Path
    plan: Plan = field(default_factory=lambda: Plan(profile=PROFILES["smoke"], level=Level.QUALITY))
    call_seconds: float = 10.0
    memory_mib: int = 2048
    known: tuple[traces.Trace, ...] = ()
    """Counterexamples from elsewhere, to be played on all."""

    def identity(self) -> dict[str, Any]:
        """What the cells depend on, beside the target."""
        asked = [
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
            "probes": _digest(asked),
        }


class CompareError(ValueError):
    """A directory that holds something else; the text says what to do."""


Tell = Callable[[int, int, str], None]
"""Called before each step with the number of steps done, of all, and what is done next."""

Corpus = Mapping[str, Sequence[Scenario]]
"""Clause-protocol id -> scenarios that break it on some target, or on a known mistake; the smallest first."""


def run(comparison: Comparison, tell: Tell = lambda done, total, what: None) -> list[Judged]:
    """Fill all cells, in two passes: each target's own search, then the counterexamples of all.

    Everything is saved as soon as it is known, so that Ctrl-C (which goes on up) loses the work on one target
    at most. Raises CompareError, OSError.
    """
    _enlist(comparison)
    judged = [load(comparison, column) for column in comparison.columns]
    total = 2 * len(judged)
    for number, one in enumerate(judged):
        if not one.info:
            tell(number, total, f"search {one.column.spec}")
            _with_target(comparison, one, _search)
    corpus = _corpus(comparison, judged)
    digest = _digest([[key, *map(to_json, scenarios)] for key, scenarios in corpus.items()])
    for number, one in enumerate(judged, len(judged)):
        if one.info and one.played != digest:
            tell(number, total, f"counterexamples of all on {one.column.spec}")
            _with_target(comparison, one, partial(_play, corpus=corpus))
            one.played = digest
            _save(comparison, one)
    return judged


def stored(comparison: Comparison) -> list[Judged]:
    """What is known of each target by now, without asking any."""
    return [load(comparison, column) for column in comparison.columns]


# --- one target ------------------------------------------------------------------------------------------


def _with_target(
    comparison: Comparison, one: Judged, act: Callable[[Comparison, Judged, Session], None]
) -> None:
    """Do something with a target that runs, and save what is known then."""
    try:
        target = resolve(one.column.spec)
        with Session(target, comparison.call_seconds, memory_mib=comparison.memory_mib) as session:
            act(comparison, one, session)
    except TargetError as error:
        one.error = str(error).splitlines()[0]
    _save(comparison, one)


def _search(comparison: Comparison, one: Judged, session: Session) -> None:
    """The target's own search, and the probes; a clause that a probe breaks is broken."""
    info = describe(one.column.spec, session.hello)
    red = _probe(comparison, one, info, Subject.of(session))
    result = check(replace(comparison.plan, repeatable=True), session, info, fresh=session.close)
    if result.interrupted:
        raise KeyboardInterrupt
    own = {row.id: _cell(comparison, info, row, result.missed) for row in result.clauses}
    found = {key for key, cell in own.items() if cell.mark is Mark.BROKEN}
    one.searched = own | {key: cell for key, cell in red.items() if key not in found}
    one.clauses, one.scenarios, one.info = dict(one.searched), result.scenarios, info


def _probe(comparison: Comparison, one: Judged, info: TargetInfo, subject: Subject) -> dict[str, Cell]:
    """Play the probes of the catalogue for the clauses that are compared, left out those for another
    assignor and those of what the target does not promise. What they break, by clause-protocol id."""
    red: dict[str, Cell] = {}
    asked = [probe for probe in probes() if probe.clause in comparison.plan.clauses]
    for switch in dict.fromkeys(probe.switch for probe in asked):
        mine = [probe for probe in asked if probe.switch == switch and _concerns(probe, info)]
        cells = [_probed(comparison, info, probe, subject) for probe in mine]
        for probe, cell in zip(mine, cells, strict=True):
            if cell.mark in (Mark.BROKEN, Mark.OTHERWISE):
                key = f"{probe.clause.id}-{probe.scenario.protocol}"
                red.setdefault(key, replace(cell, mark=Mark.BROKEN))
        cell = min(cells, key=lambda cell: _TELLING.index(cell.mark), default=Cell(Mark.UNASKED))
        one.entries[switch] = replace(cell, expected=expectation(switch, one.column.spec, info.version))
    return red


_TELLING = (Mark.BROKEN, Mark.OTHERWISE, Mark.UNKNOWN, Mark.HOLDS)
"""Of several probes for one mistake, what counts first: any of them shows it, all must hold."""


def _probed(comparison: Comparison, info: TargetInfo, probe: Probe, subject: Subject) -> Cell:
    """What one probe says."""
    record = subject.play(probe.scenario, TABLE)
    control = subject.play(probe.control, (probe.clause,)) if probe.control else None
    match probe.shows(record, control):
        case Shown.NO:
            return Cell(Mark.HOLDS)
        case Shown.UNSEEN:
            failed = record.failure.message if record.failure else record.skipped or ""
            return Cell(Mark.UNKNOWN, f"the play ended before it could be seen: {failed}")
        case shown:
            found = _red(comparison, info, probe.clause, record)
            return found if shown is Shown.YES else replace(found, mark=Mark.OTHERWISE)


def _concerns(probe: Probe, info: TargetInfo) -> bool:
    return (
        info.name == probe.assignor
        and probe.scenario.protocol in info.protocols
        and probe.clause.promises <= frozenset(info.promises)
    )


def _play(comparison: Comparison, one: Judged, session: Session, corpus: Corpus) -> None:
    """Play the counterexamples of all, of each clause the smallest first until one breaks it here."""
    assert one.info
    subject = Subject.of(session)
    one.clauses = dict(one.searched)
    for key, scenarios in corpus.items():
        clause_id, _, protocol = key.rpartition("-")
        clause = CLAUSES[clause_id]
        asked = protocol in one.info.protocols and clause.promises <= frozenset(one.info.promises)
        for scenario in scenarios if asked else ():
            record = subject.play(scenario, (clause,))
            if record.breach_of(clause.id):
                one.clauses[key] = _red(comparison, one.info, clause, record)
                break


def _red(comparison: Comparison, info: TargetInfo, clause: Clause, record: Record) -> Cell:
    """A red cell for what was just played, with its trace."""
    found = record.breach_of(clause.id)
    assert found
    scenario = record.scenario
    finding = Finding(
        clause,
        scenario.protocol,
        found.breach,
        scenario,
        found.round,
        record.calls,
        comparison.plan.seed,
        0,
        scenario.size,
        confirmed=False,
    )
    return _traced(comparison, info, finding)


def _cell(comparison: Comparison, info: TargetInfo, row: ClauseResult, missed: Sequence[str]) -> Cell:
    """What the target's own search says; one that did not come to its end clears nothing."""
    if row.finding is not None:
        return _traced(comparison, info, row.finding)
    if row.status is Status.PASSED:
        return Cell(Mark.UNKNOWN, missed[0]) if missed else Cell(Mark.HOLDS)
    return Cell(Mark.UNASKED if row.status is Status.UNSUPPORTED else Mark.UNKNOWN, row.note)


def _traced(comparison: Comparison, info: TargetInfo, finding: Finding) -> Cell:
    trace = traces.of(finding, info, comparison.plan.profile.name, distribution_version("rebalance-verifier"))
    path = traces.save(trace, comparison.directory / "traces")
    return Cell(Mark.BROKEN, finding.breach.summary, str(path))


def expectation(switch: str, spec: str, version: str) -> bool | None:
    """Whether the catalogue says that this release of Kafka's own assignor has the mistake; None where it
    says nothing, as of other projects and other targets."""
    if not spec.startswith(KAFKAS):
        return None
    entries = entries_of(switch)
    try:
        release = as_version(version)
    except ValueError:
        return None
    return any(parse(entry.shipped(switch)).includes("Java", release) for entry in entries)


# --- what others were caught by --------------------------------------------------------------------------


def _corpus(comparison: Comparison, judged: Sequence[Judged]) -> Corpus:
    """The counterexamples that the searches gave, and the probes; their order follows from them alone."""
    found: dict[str, dict[_Order, Scenario]] = {}
    for one in judged:
        for key, cell in one.searched.items():
            if cell.mark is Mark.BROKEN:
                with contextlib.suppress(traces.TraceError):  # deleted since
                    scenario = traces.load(Path(cell.trace)).scenario
                    found.setdefault(key, {})[_order(scenario)] = scenario
    smallest = {key: dict(sorted(scenarios.items())[:MOST_KNOWN]) for key, scenarios in found.items()}
    given = [(probe.clause, probe.scenario) for probe in probes()]
    given += [(trace.clause, trace.scenario) for trace in comparison.known]
    for clause, scenario in given:
        if clause in comparison.plan.clauses:
            smallest.setdefault(f"{clause.id}-{scenario.protocol}", {})[_order(scenario)] = scenario
    return {key: [smallest[key][order] for order in sorted(smallest[key])] for key in sorted(smallest)}


_Order = tuple[tuple[int, int, int, int], str]


def _order(scenario: Scenario) -> _Order:
    return scenario.size, json.dumps(to_json(replace(scenario, dimensions=())))


# --- on disk ---------------------------------------------------------------------------------------------


def _enlist(comparison: Comparison) -> None:
    """Make the directory, or find that it holds the same comparison."""
    path = comparison.directory / "comparison.json"
    wanted = comparison.identity()
    if path.exists():
        try:
            known = json.loads(path.read_text(encoding="utf-8"))
            differing = [name for name, value in wanted.items() if known.get(name) != value]
        except (ValueError, AttributeError) as error:
            raise CompareError(f"{path} is not what was saved there: delete it ({error})") from error
        if differing:
            raise CompareError(
                f"{comparison.directory} holds a comparison with another {differing[0]}: take another --out, "
                "or delete it"
            )
    (comparison.directory / "targets").mkdir(parents=True, exist_ok=True)
    traces.write(path, traces.dump(wanted) + "\n")


def _file(comparison: Comparison, column: Column) -> Path:
    return comparison.directory / "targets" / f"{_digest(column.spec)}.json"


def _save(comparison: Comparison, one: Judged) -> None:
    if not one.error:  # one that does not start is tried again
        kept = to_json_of(one) | {"searched": _cells_out(one.searched), "played": one.played}
        traces.write(_file(comparison, one.column), traces.dump(kept) + "\n")


def load(comparison: Comparison, column: Column) -> Judged:
    """What is known of a target; nothing, if nothing is."""
    path = _file(comparison, column)
    if not path.exists():
        return Judged(column)
    try:
        return _judged_in(column, json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise CompareError(f"{path} is not what was saved there: delete it ({error})") from error


def _judged_in(column: Column, data: Mapping[str, Any]) -> Judged:
    info: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in data["target"].items()}
    return Judged(
        column,
        TargetInfo(**info),
        "",
        {key: _cell_in(cell) for key, cell in data["clauses"].items()},
        {key: _cell_in(cell) for key, cell in data["entries"].items()},
        {key: _cell_in(cell) for key, cell in data["searched"].items()},
        data["scenarios"],
        data["played"],
    )


def to_json_of(one: Judged) -> dict[str, Any]:
    """All that is known of one target, as JSON."""
    return {
        "label": one.column.label,
        "client": one.column.client,
        "assignor": one.column.assignor,
        "spec": one.column.spec,
        "target": asdict(one.info) if one.info else None,
        "error": one.error,
        "scenarios": one.scenarios,
        "clauses": _cells_out(one.clauses),
        "entries": {key: _cell_out(cell) for key, cell in one.entries.items()},
    }


def _cells_out(cells: Mapping[str, Cell]) -> dict[str, Any]:
    return {key: _cell_out(cell) for key, cell in sorted(cells.items(), key=_place)}


def _place(item: tuple[str, Cell]) -> tuple[int, str]:
    order = [clause.id for clause in TABLE]
    return order.index(item[0].rpartition("-")[0]), item[0]


def _cell_out(cell: Cell) -> dict[str, Any]:
    data: dict[str, Any] = {"mark": cell.mark.name.lower()}
    for name in ("summary", "trace"):
        if value := getattr(cell, name):
            data[name] = value
    if cell.expected is not None:
        data |= {"expected": cell.expected, "agrees": cell.agrees}
    return data


def _cell_in(data: Mapping[str, Any]) -> Cell:
    mark = Mark[data["mark"].upper()]
    return Cell(mark, data.get("summary", ""), data.get("trace", ""), data.get("expected"))


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, separators=(",", ":")).encode()).hexdigest()[:16]


def rows_of(judged: Sequence[Judged]) -> tuple[list[str], list[str]]:
    """All clause-protocol ids and all switches that any target was asked, in the order of their tables."""
    keys = {key for one in judged for key in one.clauses}
    clauses = [f"{c.id}-{p}" for c in TABLE for p in c.protocols if f"{c.id}-{p}" in keys]
    return clauses, [switch for switch in SWITCHES if any(switch in one.entries for one in judged)]
