"""The tables of a campaign, from the rows of its committed slices: what they say is counted by DuckDB where
the command runs, so that neither needs a Java to look at what was played."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rebalance_verifier.base.verdict import Level
from rebalance_verifier.pipeline.campaign.campaign import (
    ALWAYS,
    COLUMNS,
    LOST,
    Campaign,
    CampaignError,
    rows_of,
)
from rebalance_verifier.pipeline.database import literal, reason
from rebalance_verifier.properties.assignors.clauses import CLAUSES
from rebalance_verifier.properties.group.clauses import CLAUSES as GROUP_CLAUSES
from rebalance_verifier.properties.group.own import gravity

SMALLEST = "ORDER BY coalesce(members, 0) + coalesce(partitions, 0), coalesce(steps, 0), number"
"""What the smallest failing scenario is the smallest by."""

KINDS = "unnest(CASE WHEN release IS NULL THEN dimensions ELSE [release] END)"

QUERIES: Mapping[str, str] = {
    "verdicts": """
        SELECT verdict, count(*) AS scenarios, coalesce(sum(micros), 0)::DOUBLE / 1e6 AS seconds
        FROM played GROUP BY verdict ORDER BY scenarios DESC, verdict""",
    "clauses": f"""
        SELECT clause, count(*) AS scenarios, first(number {SMALLEST}) AS number,
            first(seed {SMALLEST}) AS seed, min(number) AS first
        FROM (SELECT unnest(clauses) AS clause, number, seed, members, partitions, steps FROM played)
        GROUP BY clause ORDER BY scenarios DESC, clause""",
    "kinds": f"""
        SELECT kind, count(*) AS scenarios, count_if(verdict = 'violation') AS violations
        FROM (SELECT {KINDS} AS kind, verdict FROM played) GROUP BY kind ORDER BY kind""",
    "clauses by kind": f"""
        SELECT kind, clause, count(*) AS scenarios, first(number {SMALLEST}) AS number,
            first(seed {SMALLEST}) AS seed
        FROM (
            SELECT kind, unnest(clauses) AS clause, number, seed, members, partitions, steps
            FROM (SELECT *, {KINDS} AS kind FROM played)
        )
        GROUP BY kind, clause ORDER BY kind, clause""",
    "coverage": """
        SELECT entry.key AS situation, count(*) AS scenarios, sum(entry.value)::BIGINT AS times
        FROM (SELECT unnest(map_entries(coverage)) AS entry FROM played)
        GROUP BY situation ORDER BY situation""",
    "slowest": """
        SELECT number, seed, micros, verdict, members, partitions, steps
        FROM played WHERE micros IS NOT NULL ORDER BY micros DESC, number LIMIT 5""",
    "quarantine": f"""
        SELECT number, seed, verdict, summary
        FROM played WHERE verdict IN {LOST} ORDER BY number LIMIT 20""",
}
"""Each a query over the rows; what they answer is small."""


def tables(directory: Path, campaign: Campaign) -> dict[str, Sequence[Any]]:
    """Return the answers to ``QUERIES``. Raises CampaignError where rows cannot be read."""
    import duckdb

    files = rows_of(directory, campaign)
    with duckdb.connect(config={"autoinstall_known_extensions": False}) as connection:
        try:
            if files:
                _view(connection, files)
            else:
                listed = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
                connection.execute(f"CREATE TEMP TABLE played ({listed})")
            answers = {name: _answer(connection, query) for name, query in QUERIES.items()}
            return {**answers, "clauses": gravest_first(answers["clauses"])}
        except duckdb.Error as error:
            raise CampaignError(
                f"rows of {directory} cannot be read: {reason(error)}; remove the slice=NNNNN that has them, "
                "and begin the campaign again: that slice alone is played anew"
            ) from error


def gravest_first(rows: Sequence[Any]) -> Sequence[Any]:
    """Sort rows about clauses; those of one gravity stay in their order."""
    return sorted(rows, key=lambda row: _gravity(row.clause))


def _gravity(clause: str) -> tuple[int, int]:
    """Return how bad it is that a clause of a group or of an assignor is broken: the smaller, the worse."""
    of_assignor = CLAUSES.get(clause.rpartition("-")[0])
    if of_assignor is not None:
        return list(Level).index(of_assignor.level), 0
    return gravity(clause) if clause in GROUP_CLAUSES else (0, 0)  # else Kafka's code and the model differ


def _view(connection: Any, files: Sequence[Path]) -> None:
    """The rows as ``played``, with the types that the queries rely on. Raises CampaignError, duckdb.Error."""
    typed = ", ".join(f"CAST({name} AS {kind}) AS {name}" for name, kind in COLUMNS.items())
    rows = f"read_parquet([{', '.join(literal(str(file)) for file in files)}], hive_partitioning = false)"
    connection.execute(f"CREATE TEMP VIEW played AS SELECT {typed} FROM {rows}")
    for name in ALWAYS:
        if connection.execute(f"SELECT 1 FROM played WHERE {name} IS NULL LIMIT 1").fetchall():
            raise CampaignError(f"rows of {files[0].parents[1]} cannot be read: one has no {name}")


def _answer(connection: Any, query: str) -> Sequence[Any]:
    found = connection.execute(query)
    row = namedtuple("Row", [name for name, *_ in found.description])  # type: ignore[misc]
    return [row(*values) for values in found.fetchall()]
