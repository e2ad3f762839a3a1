"""Events in the database of the kernel: from rows, or where they lie in Parquet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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

_QUOTED = ", ".join(f'"{column}"' for column in COLUMNS)

EVERYTHING = f"bit_xor(hash({_QUOTED}))"
"""An aggregate for which each value has to be read: what is damaged is seen, wherever it is."""

REQUIRED = ("at", "kind", "group", "source", "file", "line")

BATCH = 50_000
"""Rows that are handed over at a time."""


def add(
    connection: DuckDBPyConnection,
    rows: Iterable[Sequence[Any]],
    name: str = "events",
    columns: Mapping[str, str] = COLUMNS,
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


def stored(
    connection: DuckDBPyConnection, files: Sequence[str], name: str, rows: tuple[int, int] | None = None
) -> dict[str, str]:
    """Make a view of this name of Parquet files with ``EVENTS``. Returns which files are no such, and why.

    ``rows``: of each file only those from a number up to another.
    """
    sound, wrong = [], {}
    for file in files:
        if why := _flaw(connection, file):
            wrong[file] = why
        else:
            sound.append(file)
    listed = ", ".join("'" + file.replace("'", "''") + "'" for file in sound)
    columns = ", ".join(
        'epoch_us("at") AS moment' if column == "moment" else f'TRY_CAST("{column}" AS {kind}) AS "{column}"'
        for column, kind in COLUMNS.items()
    )
    nothing = ", ".join(
        f'NULL::{"TIMESTAMP" if c == "moment" else k} AS "{_at(c)}"' for c, k in COLUMNS.items()
    )
    # The row of nulls has all columns, which the files need not have.
    source = f"SELECT {nothing} WHERE false"
    if sound:
        options = "union_by_name = true, hive_partitioning = false"
        part = "" if rows is None else f"WHERE file_row_number >= {rows[0]} AND file_row_number < {rows[1]}"
        source += f" UNION ALL BY NAME SELECT * FROM read_parquet([{listed}], {options}) {part}"
    connection.execute(f"CREATE OR REPLACE TEMP VIEW {name} AS SELECT {columns} FROM ({source})")
    return wrong


def _at(column: str) -> str:
    return "at" if column == "moment" else column


def _flaw(connection: DuckDBPyConnection, file: str) -> str:
    """Why a file is no table of events; nothing if it is one, as far as its footer says."""
    import duckdb

    try:
        rows = connection.execute(
            "DESCRIBE SELECT * FROM read_parquet(?, hive_partitioning = false)", [file]
        ).fetchall()
    except duckdb.Error as error:
        return reason(error)
    types = {name: kind for name, kind, *_ in rows}
    if missing := [name for name in REQUIRED if name not in types]:
        return f"not a table of events, without {', '.join(missing)}"
    return "" if types["at"].startswith("TIMESTAMP") else f"not a table of events: at is {types['at']}"


def broken(connection: DuckDBPyConnection, files: Sequence[str]) -> dict[str, str]:
    """Which of these files cannot be read to their end, and why."""
    import duckdb

    found = {}
    for file in files:
        try:
            # To count values the statistics would do.
            connection.execute("SELECT bit_xor(hash(COLUMNS(*))) FROM read_parquet(?)", [file]).fetchall()
        except duckdb.Error as error:
            found[file] = reason(error)
    return found


def reason(error: Exception) -> str:
    """What DuckDB says, in one line, without its kind of error."""
    first, *_ = str(error).splitlines() or [type(error).__name__]
    return first.partition("Error: ")[2] or first
