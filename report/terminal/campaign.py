"""What came of a campaign, as text and as JSON, from its tables (``pipeline.campaign.tables``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rebalance_verifier.base.text import clean, count, cut, fold, page_width
from rebalance_verifier.model.bugs.profiles import AS_SPECIFIED, group_options, group_title
from rebalance_verifier.pipeline.campaign.campaign import LOST, Campaign, Tables, exit_of
from rebalance_verifier.report.frame import aligned, labelled

MAX_ROWS = 30
"""Lines of a table that text shows; JSON has all."""

TABLES = {
    "verdicts": ("verdict", ("verdict", "scenarios", "seconds")),
    "clauses": ("broken clause", ("clause", "scenarios", "first", "number", "seed")),
    "kinds": ("{kind}", ("kind", "scenarios", "violations")),
    "clauses by kind": ("in {kind}", ("kind", "clause", "scenarios", "number", "seed")),
    "coverage": ("situation", ("situation", "scenarios", "times")),
}
"""Query -> the title of its first column, and the fields of its rows that text shows."""

_TITLES = {
    "clause": "broken clause",
    "number": "smallest",
    "seed": "seed of the smallest",
    "seconds": "CPU s",
}
"""Of the other columns, where it is not the name of the field."""


def data(campaign: Campaign, directory: Path, found: Tables, paths: Mapping[str, str]) -> dict[str, Any]:
    """Everything, as JSON values."""
    tables = {name.replace(" ", "_"): [row._asdict() for row in rows] for name, rows in found.items()}
    for row in tables["clauses"]:
        if row["clause"] in paths:
            row["trace"] = paths[row["clause"]]
    code = exit_of(campaign, found)
    return {
        "schema": 1,
        "suite_version": campaign.version,
        "directory": str(directory),
        "plays": dict(campaign.identity),
        **({"about": group} if (group := about(campaign.identity)) else {}),
        "seed": campaign.seed,
        "scenarios": campaign.scenarios,
        "played": sum(row.scenarios for row in found["verdicts"]),
        "verdict": code.name.lower(),
        "exit": int(code),
        **tables,
    }


def about(plays: Mapping[str, Any]) -> str:
    """Say of which coordinator and clients the walks of a campaign are; "" of a target."""
    if "mixes" in plays:
        return group_title(*_profiles(plays))
    return f"in step with Kafka's code, {plays['code']}" if plays.get("code") else ""


def _profiles(plays: Mapping[str, Any]) -> tuple[list[str], str]:
    return [name for mix in plays["mixes"] for name in mix], plays.get("broker", AS_SPECIFIED)


def render(campaign: Campaign, directory: Path, found: Tables, paths: Mapping[str, str]) -> str:
    """Return the same as text."""
    plays, played = campaign.identity, sum(row.scenarios for row in found["verdicts"])
    name = plays.get("target") or plays.get("scenario")
    of = "" if played == campaign.scenarios else f" of {campaign.scenarios:,}"
    verdict, where = exit_of(campaign, found).name, clean(str(directory))
    group = about(plays)
    shown = f"{clean(str(name))}{f' ({group})' if group else ''}"
    first = f"{verdict}: {shown}, {played:,}{of} scenarios, seed {campaign.seed}, in {where}"
    lines = fold(first, page_width())
    if "mixes" in plays:
        lines += labelled("other", group_options(*_profiles(plays)))
    kind = "release" if "scenario" in plays else "dimension"
    for query, (first, names) in TABLES.items():
        heads = [_TITLES.get(name, name) for name in names[1:]]
        rows = (tuple(_cell(row, name) for name in names) for row in found[query])
        lines += _table(first.format(kind=kind), heads, rows)
    lines += _table(
        "slowest",
        ("ms", "members", "partitions", "seed"),
        (
            (f"{r.number:,}", f"{r.micros / 1000:,.1f}", *map(str, (r.members, r.partitions, r.seed)))
            for r in found["slowest"]
        ),
    )
    if found["quarantine"]:
        lost = sum(row.scenarios for row in found["verdicts"] if row.verdict in LOST)
        lines += ["", f"{count(lost, 'scenario')} not played to the end:"]
        lines += [
            f"  {r.verdict:<6} scenario {r.number:,}, seed {r.seed}: {cut(clean(r.summary or ''), 70)}"
            for r in found["quarantine"]
        ]
    gravest_first = [*(row.clause for row in found["clauses"]), *sorted(paths)]
    for clause in sorted(paths, key=gravest_first.index):
        path = paths[clause]
        lines += ["", f"{clause}", f"  replay   rebalance replay {Path(path).stem}", f"  trace    {path}"]
    return "\n".join(lines)


def _cell(row: Any, name: str) -> str:
    value = getattr(row, name)
    if value is None:
        return "-"
    if name == "seconds":
        return f"{value:,.1f}"
    return str(value) if name == "seed" or isinstance(value, str) else f"{value:,}"


def _table(first: str, heads: Sequence[str], found: Iterable[tuple[str, ...]]) -> list[str]:
    """Return a table with its first column on the left, the others on the right; nothing for no rows."""
    shown = [tuple(clean(cell) for cell in row) for row in found]
    if not shown:
        return []
    rows = aligned([(first, *heads), *shown[:MAX_ROWS]], range(1, len(heads) + 1))
    more = [f"  and {len(shown) - MAX_ROWS} more (--format json)"] if len(shown) > MAX_ROWS else []
    return ["", *(f"  {row}" for row in rows), *more]
