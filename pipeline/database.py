"""What audits and campaigns do with DuckDB: rows of Python are handed over, tables are written as Parquet."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rebalance_verifier.base.files import scratch

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

PART = "part-0.parquet"

BATCH = 50_000
"""Rows that are handed over at a time."""


def add(
    connection: DuckDBPyConnection,
    rows: Iterable[Sequence[Any]],
    name: str,
    columns: Mapping[str, str],
) -> None:
    """Add rows (values in the order of ``columns``) to the table of this name, made if there is none."""
    listed = ", ".join(f'"{column}" {kind}' for column, kind in columns.items())
    connection.execute(f"CREATE TEMP TABLE IF NOT EXISTS {name} ({listed})")
    remaining = iter(rows)
    while batch := list(islice(remaining, BATCH)):
        arrays = zip(columns, zip(*batch, strict=True), strict=True)
        connection.register("batch", {column: _array(values) for column, values in arrays})
        connection.execute(f"INSERT INTO {name} FROM batch")
        connection.unregister("batch")


def _array(values: Sequence[Any]) -> np.ndarray[Any, Any]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def save(connection: DuckDBPyConnection, query: str, directory: str) -> None:
    """Write what a query gives to a directory, in place of what is there: all of it, or nothing."""
    path = Path(directory)
    path.mkdir(parents=True, exist_ok=True)
    with scratch("table", path) as draft:
        connection.execute(f"COPY ({query}) TO {literal(str(draft / PART))} (FORMAT parquet)")
        os.replace(draft / PART, path / PART)


def saved(directory: Path) -> str:
    """Return the table that ``save`` has written, as SQL names it. Raises OSError for what may never end."""
    if (directory / PART).exists() and not (directory / PART).is_file():
        raise OSError(f"{directory / PART}: is no file but a pipe or a device")
    return f"read_parquet({literal(str(directory / PART))}, hive_partitioning = false)"


def literal(text: str) -> str:
    """Return a text as SQL writes it."""
    return "'" + text.replace("'", "''") + "'"


def reason(error: Exception) -> str:
    """Return what DuckDB says, in one line, without its kind of error."""
    first, *_ = str(error).splitlines() or [type(error).__name__]
    return first.partition("Error: ")[2] or first
