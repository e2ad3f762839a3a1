"""The clause table as people read it."""

from __future__ import annotations

from collections.abc import Sequence

from rebalance_verifier.properties.assignors.clause import Clause


def render(clauses: Sequence[Clause], *, markdown: bool = False, full: bool = False) -> str:
    """Return a table; ``full`` shows everything about each clause instead."""
    if markdown:
        columns = ("clause", "level", "sentence", "rule", "protocols", "asked of", "checked by")
        head = f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}"
        rows = (
            f"| `{c.id}` | {c.level} | {c.sentence} | [{c.rule}]({c.link}) | {_protocols(c)} "
            f"| {_targets(c)} | {c.scope.by} |"
            for c in clauses
        )
        return "\n".join((head, *rows))
    if full:
        return "\n\n".join(
            f"{c.id}  [{c.level}]\n  {c.sentence}\n"
            f"  rule        {c.rule}\n              {c.link}\n"
            f"  protocols   {_protocols(c)}\n  asked of    {_targets(c)}\n  checked by  {c.scope.by}"
            for c in clauses
        )
    width = max(len(c.id) for c in clauses)
    return "\n".join(f"{c.id:{width}}  {c.level:8}  {_protocols(c):18}  {c.sentence}" for c in clauses)


def _protocols(clause: Clause) -> str:
    return ", ".join(clause.protocols)


def _targets(clause: Clause) -> str:
    promised = " and ".join(sorted(clause.promises))
    targets = f"targets that promise {promised}" if promised else "every target"
    if clause.level_of_shares:
        targets += f" ({clause.level_of_shares} in share groups)"
    return targets + (f", but not {' or '.join(sorted(clause.unless))}" if clause.unless else "")
