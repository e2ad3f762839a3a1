"""Steps of a run as lines: one step to a line, one column for each member."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rebalance_verifier.base.text import columns, fold, pad, page_width
from rebalance_verifier.model.machine import StepOwner
from rebalance_verifier.model.steps import Step

CELL = "generation: owned"
"""What a cell shows."""

LEAST = 48
"""Columns that a sentence needs at least; where members leave less, they get lines of their own."""


def table(steps: Sequence[Step], loop: int | None = None, width: int = 0) -> list[str]:
    """Return the steps as a table. ``loop``: after how many of them those begin that come again and again;
    ``width``: of a line, 0 for that of a report.

    ``*`` marks what the environment does. A cell is the member's generation and what it owns.
    """
    width = width or page_width() - 1
    names = [owner.name for owner in steps[0].owners] if steps else []
    cells = [[_cell(owner) for owner in step.owners] for step in steps]
    sizes = [max(columns(row[index]) for row in cells) for index in range(len(names))]
    room = width - 8 - sum(size + 2 for size in sizes)
    beside = room >= LEAST
    if beside:
        longest = max((columns(text) for step in steps for text in _texts(step)), default=0)
        room = min(room, max(longest + 2, LEAST))
    else:
        room = width - 8
    lines = []
    if beside and names:
        head = pad("  step  what happens", room + 10)
        lines.append((head + "  ".join(pad(n, s) for n, s in zip(names, sizes, strict=True))).rstrip())
        lines.append(CELL.rjust(min(room + 10 + len(CELL), width)))
    elif names:
        lines.append(f"  step  what happens; below, each member, {CELL}")
    before: list[str] = []
    for step, row in zip(steps, cells, strict=True):
        if loop == step.number - 1:
            lines.append("        ---- from here again and again ----")
        first, *rest = _wrapped(step, room)
        mark = "*" if step.fault else " "
        start = f"{step.number:>6}{mark} {first}"
        if beside:
            owners = "  ".join(pad(cell, size) for cell, size in zip(row, sizes, strict=True))
            lines.append((pad(start, room + 10) + owners).rstrip())
        else:
            lines.append(start)
        lines += [f"        {line}" for line in rest]
        if not beside and row != before:
            owned = "   ".join(f"{name} {cell}" for name, cell in zip(names, row, strict=True))
            lines += [f"          {line}" for line in fold(owned, width - 10, most=9)]
        before = row
    if loop is not None:
        end = f"back to where step {loop} led" if loop < len(steps) else "nothing else ever happens"
        lines.append(f"        ---- {end} ----")
    return lines


def _texts(step: Step) -> Iterator[str]:
    yield step.what
    yield from (f"  {line}" for line in step.seen)


def _wrapped(step: Step, room: int) -> list[str]:
    lines = []
    for text in _texts(step):
        indent = len(text) - len(text.lstrip())
        first, *more = fold(text.lstrip(), room - indent - 2)
        lines += [" " * indent + first, *(" " * (indent + 2) + line for line in more)]
    return lines


def _cell(owner: StepOwner) -> str:
    """Return a member in short: generation and partitions, or that it is down."""
    if owner.life in ("down", "failed"):
        return owner.life
    generation = "-" if owner.generation is None else str(owner.generation)
    life = f" ({owner.life})" if owner.life else ""
    return f"{generation}: {' '.join(owner.owns) or '-'}{life}"
