"""A comparison of targets as text, Markdown and JSON: tables of marks, and what is behind the red ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from rebalance.gate.compare import Cell, Judged, Mark, rows_of, to_json_of
from rebalance.gate.report.words import clean, count, fold
from rebalance.model.catalogue import entries_of
from rebalance.properties.clauses import CLAUSES

LEGEND = "X broken   o by another bug   . holds   - not asked   ? no verdict   ! not as the catalogue says"


def to_json(judged: Sequence[Judged]) -> str:
    """All cells, those of all targets."""
    return json.dumps({"schema": 1, "targets": [to_json_of(one) for one in judged]}, indent=2)


def text(judged: Sequence[Judged], *, verbose: bool = False) -> str:
    """Tables for a terminal; ``verbose`` names the counterexample of every red cell."""
    lines: list[str] = []
    for group, members in _groups(judged):
        lines += [f"{group}: {count(len(members), 'target')}", ""]
        for title, rows in _tables(members):
            lines += _grid(title, rows, members)
        lines += list(_behind(members, verbose))
    lines += [*_summary(judged), LEGEND]
    return "\n".join(line.rstrip() for line in lines)


def markdown(judged: Sequence[Judged], heading: str = "Comparison") -> str:
    """The same for a document."""
    lines = [f"# {heading}", ""]
    for group, members in _groups(judged):
        lines += [f"## {group}", ""]
        for title, rows in _tables(members):
            if not rows:
                continue
            lines += [f"| {title} | {' | '.join(one.column.label for one in members)} |"]
            lines += ["|---" * (len(members) + 1) + "|"]
            for name, cells in rows:
                marks = " | ".join(_mark(cell).replace(".", "·") for cell in cells)
                lines.append(f"| {name} | {marks} |")
            lines.append("")
        if found := list(_red(members)):
            lines += ["| broken | in | by | trace |", "|---|---|---|---|"]
            for name, where, red in found:
                _, first = red[0]
                lines.append(f"| {name} | {where} | {_escaped(first.summary)} | {Path(first.trace).stem} |")
            lines.append("")
        if missing := list(_not_judged(members)):
            lines += [*(f"- {line}" for line in missing), ""]
    lines += [*_summary(judged), "", f"`{LEGEND}`".replace(". holds", "· holds"), ""]
    return "\n".join(lines)


# --- tables ----------------------------------------------------------------------------------------------

Row = tuple[str, list[Cell]]
_NOTHING = Cell(Mark.UNKNOWN)


def _groups(judged: Sequence[Judged]) -> Iterator[tuple[str, list[Judged]]]:
    for group in dict.fromkeys(one.column.group for one in judged):
        yield group or "targets", [one for one in judged if one.column.group == group]


def _tables(members: Sequence[Judged]) -> Iterator[tuple[str, list[Row]]]:
    """The rows that say something: clauses that somebody breaks, mistakes that somebody was asked for."""
    clauses, switches = rows_of(members)
    by_clause = [(f"{key} ({_level(key)})", _cells(members, lambda one: one.clauses, key)) for key in clauses]
    yield "clause", [row for row in by_clause if any(cell.mark is Mark.BROKEN for cell in row[1])]
    by_bug = [(f"{_entry(name)} {name}", _cells(members, lambda one: one.entries, name)) for name in switches]
    yield "bug", [row for row in by_bug if any(cell.mark is not Mark.UNASKED for cell in row[1])]


def _cells(members: Sequence[Judged], of: Callable[[Judged], Mapping[str, Cell]], key: str) -> list[Cell]:
    return [of(one).get(key, _NOTHING) for one in members]


def _grid(title: str, rows: Sequence[Row], members: Sequence[Judged]) -> list[str]:
    """One line per row, one column per target, whose labels stand above it like stairs."""
    if not rows:
        return [f"{title}: nothing is broken", ""]
    width = max(len(name) for name, _ in rows)
    lines = []
    for number, one in enumerate(members):
        bars = "|  " * number
        lines.append(f"{title if not number else '':<{width}}  {bars}{clean(one.column.label)}")
    for name, cells in rows:
        lines.append(f"{name:<{width}}  {' '.join(f'{_mark(cell):<2}' for cell in cells)}")
    return [*lines, ""]


def _mark(cell: Cell) -> str:
    return cell.mark.value + ("" if cell.agrees else "!")


def _level(key: str) -> str:
    return CLAUSES[key.rpartition("-")[0]].level


def _entry(switch: str) -> str:
    entries = entries_of(switch)
    return entries[0].id if entries else "-"


# --- what is behind them ---------------------------------------------------------------------------------


def _red(members: Sequence[Judged]) -> Iterator[tuple[str, str, list[tuple[Judged, Cell]]]]:
    """The red cells of each row, those that say the same together: name, where, cells."""
    labels = [one.column.label for one in members]
    for _, rows in _tables(members):
        for name, cells in rows:
            for summary in dict.fromkeys(cell.summary for cell in cells if cell.mark is Mark.BROKEN):
                red = [cell.mark is Mark.BROKEN and cell.summary == summary for cell in cells]
                found = [
                    pair for pair, is_red in zip(zip(members, cells, strict=True), red, strict=True) if is_red
                ]
                yield name, _ranges(labels, red), found


def _ranges(labels: Sequence[str], red: Sequence[bool]) -> str:
    """The red columns; neighbours are put together if they are releases.

    >>> _ranges(["1.0", "1.1", "2.0", "3.0"], [True, True, False, True])
    '1.0 to 1.1, 3.0'
    >>> _ranges(["sticky", "range"], [True, True])
    'sticky, range'
    """
    if not all(label[:1].isdigit() for label in labels):
        return ", ".join(label for label, is_red in zip(labels, red, strict=True) if is_red)
    parts: list[str] = []
    start: int | None = None
    for place, is_red in enumerate([*red, False]):
        if is_red and start is None:
            start = place
        elif not is_red and start is not None:
            last = place - 1
            parts.append(labels[start] if last == start else f"{labels[start]} to {labels[last]}")
            start = None
    return ", ".join(parts)


def _behind(members: Sequence[Judged], verbose: bool) -> Iterator[str]:
    before = ""
    for name, where, cells in _red(members):
        if name != before:
            yield name
            before = name
        for line in fold(f"in {where}: {clean(cells[0][1].summary)}", 104):
            yield f"  {line}"
        for one, cell in cells if verbose else cells[:1]:
            yield f"    rebalance replay {cell.trace}" + (f"  ({clean(one.column.label)})" if verbose else "")
    yield from _not_judged(members)
    yield ""


def _not_judged(members: Sequence[Judged]) -> Iterator[str]:
    for one in members:
        if one.error:
            yield f"{clean(one.column.label)}: not judged: {clean(one.error)}"


def _summary(judged: Sequence[Judged]) -> list[str]:
    cells = [cell for one in judged for cell in (*one.clauses.values(), *one.entries.values())]
    asked = [
        cell for one in judged for cell in one.entries.values() if cell.mark in (Mark.HOLDS, Mark.BROKEN)
    ]
    known = [cell for cell in asked if cell.expected is not None]
    red = sum(cell.mark is Mark.BROKEN for cell in cells)
    differ = sum(not cell.agrees for cell in known)
    size = f"{count(len(judged), 'target')}, {count(len(cells), 'cell')}, {red} red"
    return [f"{size}; of {len(known)} cells of bugs that the catalogue speaks of, {differ} differ from it"]


def _escaped(text: str) -> str:
    return clean(text).replace("|", "\\|").replace("<", "&lt;")
