"""Releases x bugs as text, Markdown, JSON: the catalogue, the model, what was observed of Kafka's code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rebalance_verifier.base.text import count
from rebalance_verifier.explore.groups.matrix import Cell
from rebalance_verifier.model.bugs.catalogue import entries_of
from rebalance_verifier.model.bugs.observed import (
    CLIENT,
    CONSUMER,
    COORDINATOR,
    SERVED,
    Difference,
    Observations,
    Seen,
)
from rebalance_verifier.report.frame import labelled, stairs
from rebalance_verifier.report.markup import table

Observed = Mapping[str, Observations]
"""By part, as ``model.bugs.observed`` has it."""

MARKS: dict[Seen, str] = {"shown": "X", "absent": ".", "open": "?"}


def observed_mark(cell: Cell, observed: Observed) -> Seen | None:
    """Return what was seen of the cell's switch in the cell's release; None where that was not run."""
    release = ".".join(map(str, cell.profile.release))
    if cell.profile.kind == "broker":
        parts = [COORDINATOR, SERVED]
    else:
        parts = [CONSUMER, CLIENT] if cell.profile.name.startswith("java-") else []
    seen = (observed[part].found.get((cell.switch, release)) for part in parts if part in observed)
    return next((one.seen for one in seen if one is not None), None)


def unexplained(cells: Sequence[Cell], observed: Observed) -> bool:
    """Check whether something is not as the catalogue says, and nobody has said why."""
    switches = {cell.switch for cell in cells}
    return any(not cell.agrees and not cell.why for cell in cells) or any(
        not one.why for one in differences(switches, observed)
    )


def differences(switches: set[str], observed: Observed) -> Iterator[Difference]:
    """Yield where what was observed is not as the catalogue says."""
    for part, of in observed.items():
        for switch in of.switches if part != CLIENT else ():
            if switch in switches:
                yield from of.differences(switch)


def data(cells: Sequence[Cell], observed: Observed) -> list[dict[str, Any]]:
    """Return a row for each cell."""
    return [
        {
            "switch": cell.switch,
            "release": cell.profile.name,
            "kind": cell.profile.kind,
            "mark": cell.mark.name.lower(),
            "expected": cell.expected,
            "agrees": cell.agrees,
            "observed": observed_mark(cell, observed),
        }
        for cell in cells
    ]


ABOUT = "one release at a time: clients with a coordinator as specified, and the other way round"
"""Of which groups a matrix speaks."""


def render(cells: Sequence[Cell], observed: Observed, *, markdown: bool = False) -> str:
    """Clients and brokers apart, rows are switches and columns releases; then what differs, and why."""
    lines = [] if markdown else [*labelled("about", ABOUT), ""]
    lines += [*_grids(cells, observed, markdown), *_legend(), ""]
    lines += _observed(list(dict.fromkeys(cell.switch for cell in cells)), observed)
    differing = [cell for cell in cells if not cell.agrees]
    for cell in differing:
        lines += labelled("model" if cell.why else "!", differs(cell))
    for one in differences({cell.switch for cell in cells}, observed):
        lines += labelled("observed" if one.why else "!", observed_text(one, observed))
    return "\n".join([*lines, tally(cells)])


def differs(cell: Cell) -> str:
    """Return how a cell differs from the catalogue, and why where that is known."""
    says = "has it" if cell.expected else "does not have it"
    text = f"{cell.switch} in {cell.profile.name}: the catalogue says that it {says}"
    return text + (f"; {cell.why}" if cell.why else "")


def observed_text(one: Difference, observed: Observed) -> str:
    """Return how Kafka's code differs from the catalogue, and why where that is known."""
    where = f"{one.part} {observed[one.part].spans(one.releases)}"
    return f"{one.switch} is {one.seen} in {where}" + (f": {one.why}" if one.why else "")


def tally(cells: Sequence[Cell]) -> str:
    """Count the cells, and those that differ from the catalogue."""
    differing = [cell for cell in cells if not cell.agrees]
    explained = sum(bool(cell.why) for cell in differing)
    tail = f", {explained} of them explained" if explained else ""
    return f"{count(len(cells), 'cell')}: {len(differing)} differ from the catalogue{tail}"


def _grids(cells: Sequence[Cell], observed: Observed, markdown: bool) -> Iterator[str]:
    for kind in ("client", "broker"):
        of_kind = [cell for cell in cells if cell.profile.kind == kind]
        if not of_kind:
            continue
        columns = list(dict.fromkeys(cell.profile.name for cell in of_kind))
        marks = {(cell.switch, cell.profile.name): _mark(cell, observed) for cell in of_kind}
        rows = [
            (_name(switch), [marks.get((switch, column), "") for column in columns])
            for switch in dict.fromkeys(cell.switch for cell in of_kind)
        ]
        if markdown:
            yield from table([kind, *columns], ((name, *row) for name, row in rows))
        else:
            yield from (*stairs("", columns, rows, 2), "")


def _name(switch: str) -> str:
    entries = entries_of(switch)
    return f"{entries[0].id if entries else '-'} {switch}"


def _mark(cell: Cell, observed: Observed) -> str:
    model = cell.mark.value if cell.agrees or cell.why else "!"
    seen = observed_mark(cell, observed)
    return model + ("" if seen is None else MARKS[seen])


def _legend() -> Iterator[str]:
    yield "first the model: X breaks its clause, and not without this switch   . does not   o another bug"
    yield "shows so too; then Kafka's own code, where it was run: X breaks it   . does not   ? neither"


_PROGRAMS = {SERVED: "coordinator of consumer groups"}
"""Parts whose name says too little."""


def _observed(switches: Sequence[str], observed: Observed) -> Iterator[str]:
    """Of each switch the releases in which it shows, which are more than the columns."""
    for part, of in observed.items():
        for switch in of.switches:
            if switch in switches:
                spans = [
                    f"{seen} in {of.spans(where)}" for seen in MARKS if (where := of.where(switch, seen))
                ]
                yield f"{_PROGRAMS.get(part, part)} {switch}: {'; '.join(spans)}"
    shown = [part for part, of in observed.items() if set(of.switches) & set(switches)]
    for part in shown:
        kind = "consumer" if part in (COORDINATOR, SERVED) else "coordinator"
        releases = count(len(observed[part].releases), "release")
        yield f"({releases} of the {_PROGRAMS.get(part, part)}, with {kind} {observed[part].other})"
    if shown:
        yield ""
