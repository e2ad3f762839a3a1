"""Events in the database of the kernel: from rows, or where they lie in Parquet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

COLUMNS = {
    "moment": "BIGINT",
    "kind": "VARCHAR",
    "group": "VARCHAR",
    "consumer": "VARCHAR",
    "member": "VARCHAR",
    "instance": "VARCHAR",
    "generation": "INTEGER",
    "topic": "VARCHAR",
    "partition": "INTEGER",
    "detail": "VARCHAR",
    "host": "VARCHAR",
    "source": "VARCHAR",
    "file": "VARCHAR",
    "line": "BIGINT",
}
"""``sources.events.EVENTS`` with ``moment``, microseconds since 1970, for ``at``."""

BATCH = 50_000
"""Rows that are handed over at a time."""


def add(connection: DuckDBPyConnection, rows: Iterable[Sequence[Any]], name: str = "events") -> None:
    """Add rows (values in the order of ``COLUMNS``) to the table of this name, made if there is none."""
    listed = ", ".join(f'"{column}" {kind}' for column, kind in COLUMNS.items())
    connection.execute(f"CREATE TABLE IF NOT EXISTS {name} ({listed})")
    remaining = iter(rows)
    while batch := list(islice(remaining, BATCH)):
        columns = zip(COLUMNS, zip(*batch, strict=True), strict=True)
        connection.register("batch", {column: np.array(values, dtype=object) for column, values in columns})
        connection.execute(f"INSERT INTO {name} FROM batch")
        connection.unregister("batch")


def stored(connection: DuckDBPyConnection, files: Sequence[str], name: str = "events") -> None:
    """Make a view of this name of Parquet files with ``EVENTS``."""
    listed = ", ".join("'" + file.replace("'", "''") + "'" for file in files)
    columns = ", ".join(
        'epoch_us("at") AS moment' if column == "moment" else f'"{column}"::{kind} AS "{column}"'
        for column, kind in COLUMNS.items()
    )
    connection.execute(
        f"CREATE OR REPLACE TEMP VIEW {name} AS SELECT {columns} "
        f"FROM read_parquet([{listed}], union_by_name = true)"
    )
