"""Targets beside each other: which clauses each breaks, and which mistakes of the catalogue each makes.

Every target is checked, and every counterexample that any of them gave is played on all others: a cell is
red when some scenario found anywhere breaks the clause there. So a clean cell says more than a check alone,
and the columns do not depend on which scenarios one search happened to come across.

What is known of a target is a file; what is in it is not done again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from importlib.metadata import version as distribution_version
from pathlib import Path
from typing import Any

from rebalance.gate import traces
from rebalance.gate.adapters import java
from rebalance.gate.check import Subject, check, describe
from rebalance.gate.plan import PROFILES, Plan
from rebalance.gate.probes import Probe, probes
from rebalance.gate.result import ClauseResult, Finding, Result, Status, TargetInfo
from rebalance.gate.session import Session
from rebalance.gate.targets import TargetError, resolve
from rebalance.model.catalogue import entries_of
from rebalance.model.releases import parse
from rebalance.model.releases import version as as_version
from rebalance.model.switches import SWITCHES
from rebalance.properties.clauses import CLAUSES, TABLE, Clause, Level
from rebalance.properties.histories import Record
from rebalance.properties.scenarios import Scenario, to_json

SCHEMA = 1

MOST_KNOWN = 12
"""Counterexamples of one clause and protocol that every target is asked."""

KAFKA = f"{java.PREFIX}{java.KAFKA}."
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
    """A target as it is asked for: ``group`` are those that are shown in one table, ``label`` its head."""

    spec: str
    label: str
    group: str = ""


@dataclass(slots=True)
class Judged:
    """What is known of one target. ``clauses`` are rows by clause-protocol id, ``entries`` by switch;
    ``asked`` are the scenarios of others that were played, ``searched`` whether its own search is done."""

    column: Column
    info: TargetInfo | None = None
    error: str = ""
    clauses: dict[str, Cell] = field(default_factory=dict)
    entries: dict[str, Cell] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    scenarios: int = 0
    searched: bool = False


@dataclass(frozen=True)
class Comparison:
    """What to compare, and where it is kept."""

    columns: tuple[Column, ...]
    directory: Path
    plan: Plan = field(default_factory=lambda: Plan(profile=PROFILES["smoke"], level=Level.QUALITY))
    call_seconds: float = 10.0
    memory_mib: int = 2048

    def identity(self) -> dict[str, Any]:
        """What the cells depend on, beside the target."""
        asked = [(p.switch, p.clause.id, to_json(p.scenario)) for p in probes()]
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


Tell = Callable[[str], None]
"""Called with what is being done."""

Corpus = dict[str, list[Scenario]]
"""Clause-protocol id -> scenarios that break it on some target."""


def run(comparison: Comparison, tell: Tell = lambda text: None) -> list[Judged]:
    """Fill all cells, in two passes: each target's own search, then the counterexamples of the others.

    Everything is saved as soon as it is known, so that Ctrl-C (which goes on up) loses the search of one
    target at most. Raises CompareError, OSError.
    """
    _enlist(comparison)
    corpus: Corpus = {}
    for probe in probes():
        if probe.clause in comparison.plan.clauses:
            _learn(corpus, f"{probe.clause.id}-{probe.scenario.protocol}", probe.scenario)
    judged = [load(comparison, column) for column in comparison.columns]
    for one in judged:  # what is known already is known to the first that is searched now
        _harvest(corpus, one)
    for number, one in enumerate(judged, 1):
        if not one.searched and not one.error:
            tell(f"{number}/{len(judged)} {one.column.spec}")
            _ask(comparison, one, corpus)
            _harvest(corpus, one)
    for number, one in enumerate(judged, 1):
        if one.searched and any(_open(one, corpus)):
            tell(f"{number}/{len(judged)} again {one.column.spec}")
            _ask(comparison, one, corpus)
    return judged


def stored(comparison: Comparison) -> list[Judged]:
    """What is known of each target by now, without asking any."""
    return [load(comparison, column) for column in comparison.columns]


# --- one target ------------------------------------------------------------------------------------------


def _ask(comparison: Comparison, one: Judged, corpus: Corpus) -> None:
    """Fill the cells of one target: its search if that is not done, and what others were caught by."""
    try:
        target = resolve(one.column.spec)
        with Session(target, comparison.call_seconds, memory_mib=comparison.memory_mib) as session:
            one.info = info = describe(target.spec, session.hello)
            subject = Subject.of(session)
            _probe(comparison, one, subject)
            _known(comparison, one, subject, corpus)
            _save(comparison, one)
            if not one.searched:
                broken = frozenset(key for key, cell in one.clauses.items() if cell.mark is Mark.BROKEN)
                plan = replace(comparison.plan, expected=broken.__contains__)
                result = check(plan, session, info, fresh=session.close)
                if result.interrupted:
                    raise KeyboardInterrupt
                _take(comparison, one, result)
    except TargetError as error:
        one.error = str(error).splitlines()[0]
    _save(comparison, one)


def _probe(comparison: Comparison, one: Judged, subject: Subject) -> None:
    """Play the probes of the catalogue for the clauses that are compared, left out those for another
    assignor and those of what the target does not promise."""
    assert one.info
    asked = [probe for probe in probes() if probe.clause in comparison.plan.clauses]
    for switch in dict.fromkeys(probe.switch for probe in asked):
        if switch in one.entries:
            continue
        mine = [probe for probe in asked if probe.switch == switch and _concerns(probe, one.info)]
        expected = expectation(switch, one.column.spec, one.info.version)
        cell = Cell(Mark.HOLDS if mine else Mark.UNASKED, expected=expected)
        for probe in mine:
            record = subject.play(probe.scenario, TABLE)
            if (shown := probe.shows(record)) is not False:
                cell = replace(_red(comparison, one, probe.clause, record), expected=expected)
                if shown:
                    break
                cell = replace(cell, mark=Mark.OTHERWISE)
            if record.skipped is not None:
                cell = Cell(Mark.UNKNOWN, record.skipped, expected=expected)
        one.entries[switch] = cell


def _concerns(probe: Probe, info: TargetInfo) -> bool:
    return (
        info.name == probe.assignor
        and probe.scenario.protocol in info.protocols
        and probe.clause.promises <= frozenset(info.promises)
    )


def _known(comparison: Comparison, one: Judged, subject: Subject, corpus: Corpus) -> None:
    """Play what broke a clause elsewhere, as long as it is not broken here."""
    for key, scenario in list(_open(one, corpus)):
        if _is_red(one, key):
            continue
        clause = CLAUSES[key.rpartition("-")[0]]
        record = subject.play(scenario, (clause,))
        one.asked.append(_digest([key, to_json(scenario)]))
        if record.breach_of(clause.id):
            one.clauses[key] = _red(comparison, one, clause, record)


def _open(one: Judged, corpus: Corpus) -> Iterator[tuple[str, Scenario]]:
    """The counterexamples of others that this target was not asked, of clauses that it may still keep."""
    assert one.info
    asked = frozenset(one.asked)
    for key, scenarios in corpus.items():
        clause_id, _, protocol = key.rpartition("-")
        if _is_red(one, key) or protocol not in one.info.protocols:
            continue
        if not CLAUSES[clause_id].promises <= frozenset(one.info.promises):
            continue
        for scenario in scenarios:
            if _digest([key, to_json(scenario)]) not in asked:
                yield key, scenario


def _is_red(one: Judged, key: str) -> bool:
    return key in one.clauses and one.clauses[key].mark is Mark.BROKEN


def _red(comparison: Comparison, one: Judged, clause: Clause, record: Record) -> Cell:
    """A red cell for what was just played, with its trace."""
    assert one.info
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
    return _traced(comparison, one.info, finding)


def _take(comparison: Comparison, one: Judged, result: Result) -> None:
    """The rows of the target's own search, where they say more than is known."""
    assert one.info
    for row in result.clauses:
        if not _is_red(one, row.id):
            one.clauses[row.id] = _cell(comparison, one.info, row)
    one.scenarios, one.searched = result.scenarios, True


def _cell(comparison: Comparison, info: TargetInfo, row: ClauseResult) -> Cell:
    if row.finding is not None:
        return _traced(comparison, info, row.finding)
    if row.status is Status.PASSED:
        return Cell(Mark.HOLDS)
    return Cell(Mark.UNASKED if row.status is Status.UNSUPPORTED else Mark.UNKNOWN, row.note)


def _traced(comparison: Comparison, info: TargetInfo, finding: Finding) -> Cell:
    trace = traces.of(finding, info, comparison.plan.profile.name, distribution_version("rebalance-verifier"))
    path = traces.save(trace, comparison.directory / "traces")
    return Cell(Mark.BROKEN, finding.breach.summary, str(path))


def expectation(switch: str, spec: str, version: str) -> bool | None:
    """Whether the catalogue says that this release of Kafka's own assignor has the mistake; None where it
    says nothing, as of other projects and other targets."""
    if not spec.startswith(KAFKA):
        return None
    entries = entries_of(switch)
    try:
        release = as_version(version)
    except ValueError:
        return None
    return any(parse(entry.shipped(switch)).includes("Java", release) for entry in entries)


# --- what others were caught by --------------------------------------------------------------------------


def _learn(corpus: Corpus, key: str, scenario: Scenario) -> None:
    known = corpus.setdefault(key, [])
    if len(known) < MOST_KNOWN and scenario not in known:
        known.append(scenario)


def _harvest(corpus: Corpus, one: Judged) -> None:
    """Learn the counterexamples of one target from its traces."""
    for key, cell in one.clauses.items():
        if cell.mark is Mark.BROKEN:
            try:
                _learn(corpus, key, traces.load(Path(cell.trace)).scenario)
            except ValueError:  # deleted since
                continue


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
        traces.write(_file(comparison, one.column), traces.dump(to_json_of(one)) + "\n")


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
        list(data["asked"]),
        data["scenarios"],
        data["searched"],
    )


def to_json_of(one: Judged) -> dict[str, Any]:
    """All that is known of one target, as JSON."""
    return {
        "label": one.column.label,
        "group": one.column.group,
        "spec": one.column.spec,
        "target": asdict(one.info) if one.info else None,
        "error": one.error,
        "searched": one.searched,
        "scenarios": one.scenarios,
        "clauses": {key: _cell_out(cell) for key, cell in sorted(one.clauses.items(), key=_place)},
        "entries": {key: _cell_out(cell) for key, cell in one.entries.items()},
        "asked": one.asked,
    }


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
