"""A comparison of targets as text, Markdown and JSON: tables of marks, and what is behind red ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version as distribution_version
from pathlib import Path

from rebalance_verifier.base import saved as files
from rebalance_verifier.base.text import clean, count, fold
from rebalance_verifier.gate.compare.compare import (
    CellMark,
    Judged,
    TargetCell,
    TargetComparison,
    rows_of,
    to_json_of,
)
from rebalance_verifier.gate.compare.newest import newest
from rebalance_verifier.gate.scenarios.round_view import unusual_preconditions
from rebalance_verifier.gate.search import counterexamples
from rebalance_verifier.model.bugs.catalogue import entries_of
from rebalance_verifier.model.bugs.releases import ranges
from rebalance_verifier.model.values import CLASSIC, FAMILY, RebalanceProtocol
from rebalance_verifier.properties.assignors.clause import Clause, Scope
from rebalance_verifier.properties.assignors.clauses import CLAUSES
from rebalance_verifier.report.diagram.scenario_diagram import of_trace
from rebalance_verifier.report.diagram.text import draw
from rebalance_verifier.report.frame import stairs
from rebalance_verifier.report.markup import code, escaped, fenced, table

LEGEND = "X broken   o by another bug   . holds   - not asked   ? no verdict   ! not as the catalogue says"

MAX_MEMBERS = 100
"""Members of a trace that is kept with the pages; a larger one is where it was found."""

SILENT = "A target that breaks assign/4 gives some groups no answer, so its other faults there are not seen."

_UNPUBLISHED = "The question is not published, since it ends or blocks the process that is asked."

_WORST = (
    CellMark.BROKEN,
    CellMark.OTHERWISE,
    CellMark.UNKNOWN,
    CellMark.HOLDS,
    CellMark.UNASKED,
)
_NOTHING = TargetCell(CellMark.UNKNOWN, "not judged")
_OTHER_SIDE = TargetCell(CellMark.UNASKED, "of members alone, or of coordinators")


@dataclass(frozen=True, slots=True)
class About:
    """Conditions of a comparison; ``trace`` gives the counterexample of a red cell, if it is there."""

    suite_version: str
    profile: str
    seed: int
    trace: Callable[[TargetCell], counterexamples.Trace | None]

    @classmethod
    def of(cls, comparison: TargetComparison) -> About:
        """That of a comparison, which reads its traces from the disk."""
        plan = comparison.plan
        return cls(distribution_version("rebalance-verifier"), plan.profile.name, plan.seed, _saved)

    @property
    def line(self) -> str:
        """All of it as a sentence."""
        return f"rebalance-verifier {self.suite_version}, profile {self.profile}, seed {self.seed}"


def _saved(cell: TargetCell) -> counterexamples.Trace | None:
    try:
        trace = counterexamples.load(Path(cell.trace))
    except files.TraceError:
        return None
    # The stack of a target that raises has paths of this machine in it.
    return replace(trace, because=()) if trace.clause.scope is Scope.REPLY else trace


def is_small(trace: counterexamples.Trace) -> bool:
    """Check whether it is kept with the pages."""
    return trace.scenario.size[0] <= MAX_MEMBERS


def to_json(judged: Sequence[Judged]) -> str:
    """Return all cells, those of all targets, and the newest release of each client."""
    clients = [one.to_json() for one in newest(judged)]
    targets = [to_json_of(one) for one in judged]
    return json.dumps({"schema": 2, "clients": clients, "targets": targets}, indent=2)


# --- text ------------------------------------------------------------------------------------------------


def text(judged: Sequence[Judged], *, verbose: bool = False) -> str:
    """Tables for a terminal; ``verbose`` names the counterexample of every red cell."""
    lines: list[str] = []
    for members in by_group(judged):
        lines += [f"{members[0].column.group or 'targets'}: {count(len(members), 'target')}", ""]
        for title, rows in _tables(members):
            labels, marks = [one.release for one in members], [(r.name, [*map(mark, r.cells)]) for r in rows]
            lines += [*(stairs(title, labels, marks, 2) if rows else [f"{title}: nothing is broken"]), ""]
        lines += list(_listed(members, verbose))
    lines += [*(one.line for one in newest(judged)), *totals(judged), LEGEND]
    return "\n".join(line.rstrip() for line in lines)


def _listed(members: Sequence[Judged], verbose: bool) -> Iterator[str]:
    before = ""
    for found in red_cells(members):
        if found.row.name != before:
            yield found.row.name
            before = found.row.name
        for line in fold(f"in {found.where}: {clean(found.cell.summary)}", 104):
            yield f"  {line}"
        for one, cell in found.cells if verbose else found.cells[-1:]:
            yield f"    rebalance replay {cell.trace}" + (f"  ({clean(one.release)})" if verbose else "")
    yield from _not_judged(members)
    yield ""


# --- Markdown --------------------------------------------------------------------------------------------


def markdown(judged: Sequence[Judged], about: About) -> str:
    """Return one page: all that is known of each client and target."""
    lines: list[str] = []
    for client, members in clients(judged):
        lines += client_lines(client or "Targets", members, about, "")
    return "\n".join([*lines, *totals(judged), ""])


def client_lines(client: str, members: Sequence[Judged], about: About, where: str) -> list[str]:
    """Return all that is known of one client: a table of releases for each assignor, and what is behind it.

    ``where`` is the directory of the small counterexamples, with a slash at its end; "" for where each was
    found.
    """
    several = len({one.release for one in members}) > 1
    lines = [f"# {escaped(client)}", "", f"By {about.line}.", ""]
    lines += [f"{escaped(one.line)}\n" for one in newest(members)]
    blocks: dict[str, list[str]] = {}
    for group in by_group(members):
        lines += [f"## {escaped(group[0].column.assignor or 'targets')}", ""]
        for title, rows in _tables(group):
            if rows:
                lines += table([title, *(escaped(one.release) for one in group)], _marked(rows, group))
            else:
                lines += [f"{title}: nothing is broken", ""]
        if missing := list(_not_judged(group)):
            lines += [*(f"- {escaped(line)}" for line in missing), ""]
        for found in red_cells(group):
            if found.id not in blocks:
                blocks[found.id] = _block(found, about, where, several)
            else:
                blocks[found.id][1] += f", {found.row.name}"
    if any(is_red(one, "assign/4") for one in members):
        lines += [SILENT, ""]
    if blocks:
        lines += ["## Counterexamples", ""]
    for block in blocks.values():
        lines += block
    return [*lines, f"`{LEGEND}`".replace(". holds", "· holds"), ""]


def _marked(rows: Iterable[MarkRow], members: Sequence[Judged]) -> Iterator[list[str]]:
    shown = anchors(members)
    for row in rows:
        marks = []
        for one, cell in zip(members, row.cells, strict=True):
            word = mark(cell).replace(".", "·")
            anchor = shown.get((one.column.spec, row.key), "")
            marks.append(f"[{word}](#{anchor})" if anchor else word)
        yield [row.name, *marks]


def _block(found: RedCells, about: About, where: str, several: bool) -> list[str]:
    """Return one counterexample: what is broken, where, how to see it, and the chart."""
    assignor = found.cells[0][0].column.assignor
    label = f"{assignor} {found.where}" if several and assignor else found.where
    lines = [f'<a id="{found.id}"></a>', f"### {found.row.name}", ""]
    lines += [f"{escaped(label)}: {escaped(found.cell.summary)}", ""]
    path = found.cell.trace
    trace = about.trace(found.cell)
    if where and trace and trace.is_harmful:
        search = f"rebalance check {trace.target.spec} --profile {trace.profile} --seed {trace.seed}"
        return [*lines, f"{_UNPUBLISHED} {code(search)} finds it.", ""]
    if trace:
        reasons = [
            *trace.because,
            *(f"rare in practice: {what}" for what in unusual_preconditions(trace.scenario)),
        ]
        lines += [*(f"- {escaped(reason)}" for reason in reasons), ""] if reasons else []
        lines += [*fenced("\n".join(draw(of_trace(trace)))), ""]
        path = f"{where}{trace.id}.json" if where and is_small(trace) else path
    ran = f", in {escaped(found.shown.release)}" if len(found.cells) > 1 else ""
    return [*lines, code(f"rebalance replay {path}") + ran, ""]


# --- tables ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MarkRow:
    """One row: ``key`` is the clause-protocol id, or the switch of a bug."""

    key: str
    name: str
    cells: tuple[TargetCell, ...]


@dataclass(frozen=True, slots=True)
class RedCells:
    """Red cells of one row that say the same, of which one counterexample is shown: that of the newest
    release, since an older one may break the clause in another way."""

    row: MarkRow
    where: str
    cells: tuple[tuple[Judged, TargetCell], ...]

    @property
    def shown(self) -> Judged:
        """The target whose counterexample is shown."""
        return self.cells[-1][0]

    @property
    def cell(self) -> TargetCell:
        """The one that is shown."""
        return self.cells[-1][1]

    @property
    def id(self) -> str:
        """That of its trace."""
        return Path(self.cell.trace).stem


def clients(judged: Sequence[Judged]) -> Iterator[tuple[str, list[Judged]]]:
    """Yield each client and its targets; "" with those that are no client's."""
    for client in dict.fromkeys(one.column.client for one in judged):
        yield client, [one for one in judged if one.column.client == client]


def by_group(judged: Sequence[Judged]) -> Iterator[list[Judged]]:
    """Yield the releases of each assignor of each client."""
    for group in dict.fromkeys(one.column.group for one in judged):
        yield [one for one in judged if one.column.group == group]


def merged(one: Judged, clause: Clause) -> tuple[str, TargetCell]:
    """Return the worst cell of a clause over the protocols, and its row."""
    protocols = {RebalanceProtocol(key.rpartition("-")[2]) for key in one.clauses}
    families = {FAMILY[protocol] for protocol in protocols} or {CLASSIC}
    keys = (f"{clause.id}-{p}" for p in clause.protocols if FAMILY[p] in families)
    pairs = [(key, one.clauses.get(key, _NOTHING)) for key in keys]
    return min(pairs, key=lambda pair: _WORST.index(pair[1].mark), default=(clause.id, _OTHER_SIDE))


def is_red(one: Judged, clause_id: str) -> bool:
    """Check whether the target breaks the clause."""
    return merged(one, CLAUSES[clause_id])[1].mark is CellMark.BROKEN


def anchors(judged: Sequence[Judged]) -> dict[tuple[str, str], str]:
    """(spec, row) of each red cell -> the id of the counterexample that is shown for it."""
    return {
        (one.column.spec, found.row.key): found.id
        for members in by_group(judged)
        for found in red_cells(members)
        for one, _ in found.cells
    }


def _tables(members: Sequence[Judged]) -> Iterator[tuple[str, list[MarkRow]]]:
    """Yield the rows that say something: clauses that somebody breaks, mistakes that somebody was asked
    for."""
    clauses, switches = rows_of(members)
    by_clause = [_row(key, f"{key} ({_level(key)})", [one.clauses for one in members]) for key in clauses]
    yield "clause", [row for row in by_clause if any(_WORST.index(c.mark) < 3 for c in row.cells)]
    by_bug = [_row(name, f"{_entry(name)} {name}", [one.entries for one in members]) for name in switches]
    yield "bug", [row for row in by_bug if any(cell.mark is not CellMark.UNASKED for cell in row.cells)]


def _row(key: str, name: str, known: Sequence[Mapping[str, TargetCell]]) -> MarkRow:
    return MarkRow(key, name, tuple(cells.get(key, _NOTHING) for cells in known))


def mark(cell: TargetCell) -> str:
    return cell.mark.value + ("" if cell.agrees else "!")


def _level(key: str) -> str:
    return CLAUSES[key.rpartition("-")[0]].level


def _entry(switch: str) -> str:
    entries = entries_of(switch)
    return entries[0].id if entries else "-"


# --- what is behind them ---------------------------------------------------------------------------------


def red_cells(members: Sequence[Judged]) -> Iterator[RedCells]:
    """Yield the red cells of each row, those that say the same together."""
    labels = [one.release for one in members]
    for _, rows in _tables(members):
        for row in rows:
            for summary in dict.fromkeys(cell.summary for cell in row.cells if cell.mark is CellMark.BROKEN):
                red = [cell.mark is CellMark.BROKEN and cell.summary == summary for cell in row.cells]
                pairs = zip(members, row.cells, red, strict=True)
                found = tuple((one, cell) for one, cell, is_red in pairs if is_red)
                yield RedCells(row, ranges(labels, red), found)


def _not_judged(members: Sequence[Judged]) -> Iterator[str]:
    """Targets without a verdict, and why a cell has none."""
    for one in members:
        if one.error:
            yield f"{clean(one.release)}: not judged: {clean(one.error)}"
    for _, rows in _tables(members):
        for row in rows:
            unknown = [cell.mark is CellMark.UNKNOWN and cell is not _NOTHING for cell in row.cells]
            for summary in dict.fromkeys(c.summary for c, u in zip(row.cells, unknown, strict=True) if u):
                alike = [u and c.summary == summary for c, u in zip(row.cells, unknown, strict=True)]
                where = ranges([one.release for one in members], alike)
                yield f"? {row.name} in {clean(where)}: {clean(summary)}"


def totals(judged: Sequence[Judged]) -> list[str]:
    """Return how many targets and cells there are, how many are red, how many differ from the catalogue."""
    cells = [cell for one in judged for cell in one.cells]
    in_question = [
        cell
        for one in judged
        for cell in one.entries.values()
        if cell.mark in (CellMark.HOLDS, CellMark.BROKEN)
    ]
    known = [cell for cell in in_question if cell.expected is not None]
    red, unknown = (sum(cell.mark is mark for cell in cells) for mark in (CellMark.BROKEN, CellMark.UNKNOWN))
    differ = sum(not cell.agrees for cell in known)
    size = (
        f"{count(len(judged), 'target')}, {count(len(cells), 'cell')}, {red} red, {unknown} without a verdict"
    )
    return [f"{size}; of {len(known)} cells of bugs that the catalogue speaks of, {differ} differ from it"]
