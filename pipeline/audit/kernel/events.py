"""Events in the database of the kernel: from rows, or where they lie in Parquet."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rebalance_verifier.pipeline.audit.sources import events
from rebalance_verifier.pipeline.audit.sources.times import FIRST, LAST
from rebalance_verifier.pipeline.database import reason

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_TYPES = {"time": "BIGINT", "text": "VARCHAR", "int": "INTEGER", "long": "BIGINT"}

COLUMNS = {"moment" if one.name == "at" else one.name: _TYPES[one.type] for one in events.COLUMNS}
"""``sources.events.COLUMNS`` with ``moment``, microseconds since 1970, for ``at``."""

_QUOTED = ", ".join(f'"{column}"' for column in COLUMNS)

REQUIRED = tuple(one.name for one in events.COLUMNS if one.required)

_NO_EVENT = "no event: "
_KNOWN = ", ".join(f"'{kind}'" for kind in events.Kind)
_SOUND = " ".join(
    (
        *(
            f"WHEN \"{column}\" IS NULL THEN error('{_NO_EVENT}a row without {one.name}')"
            for column, one in zip(COLUMNS, events.COLUMNS, strict=True)
            if one.required
        ),
        f"WHEN moment NOT BETWEEN {FIRST} AND {LAST}",
        f"THEN error('{_NO_EVENT}a row whose at is not in the years 1 to 9999')",
        f"WHEN kind NOT IN ({_KNOWN}) THEN error('{_NO_EVENT}a row of no such event: ' || kind[:100])",
    )
)

EVERYTHING = f"bit_xor(CASE {_SOUND} ELSE hash({_QUOTED}) END)"
"""An aggregate for which each value has to be read: what is damaged or no event is seen, wherever it is."""


def stored(
    connection: DuckDBPyConnection, files: Sequence[str], name: str, rows: tuple[int, int] | None = None
) -> dict[str, str]:
    """Make a view of this name of Parquet files with ``EVENTS``. Returns which files are no such, and why.

    ``rows``: of each file only those from a number up to another. What the rows say ``EVERYTHING`` looks at.
    """
    import duckdb

    alike: dict[tuple[tuple[str, str], ...], list[str]] = {}
    wrong = {}
    for file in files:
        try:
            types = _types(connection, file)
            if types not in alike:  # whether these types can be read as those of the columns
                connection.execute(f"{_selected(dict(types), [file])} LIMIT 0")
            alike.setdefault(types, []).append(file)
        except (duckdb.Error, _NoTable) as error:
            wrong[file] = _flaw(error, file)
    nothing = ", ".join(f'NULL::{kind} AS "{column}"' for column, kind in COLUMNS.items())
    parts = [_selected(dict(types), several, rows) for types, several in alike.items()]
    selected = " UNION ALL ".join(parts or [f"SELECT {nothing} WHERE false"])
    connection.execute(f"CREATE OR REPLACE TEMP VIEW {name} AS {selected}")
    return wrong


class _NoTable(ValueError):
    """A table of something else."""


def _types(connection: DuckDBPyConnection, file: str) -> tuple[tuple[str, str], ...]:
    """The columns of a file with their types, as its footer has them. Raises _NoTable where those of events
    are not among them."""
    described = connection.execute(
        "DESCRIBE SELECT * FROM read_parquet(?, hive_partitioning = false)", [file]
    ).fetchall()
    types = {name: kind for name, kind, *_ in described}
    if missing := [name for name in REQUIRED if name not in types]:
        raise _NoTable(f"without {', '.join(missing)}")
    if not types["at"].startswith("TIMESTAMP"):
        raise _NoTable(f"at is {types['at']}")
    return tuple(sorted(types.items()))


def _selected(types: Mapping[str, str], files: Sequence[str], rows: tuple[int, int] | None = None) -> str:
    """The query for the columns of files that all have these types. Of several types DuckDB would make
    one, times without a zone those of the machine's zone, and refuse what it cannot."""
    at = '"at"::TIMESTAMPTZ' if types["at"].startswith("TIMESTAMPTZ") else '"at"'  # of nanoseconds
    columns = ", ".join(
        f"epoch_us({at}) AS moment" if column == "moment"
        else f'CAST("{column}" AS {kind}) AS "{column}"' if column in types
        else f'NULL::{kind} AS "{column}"'
        for column, kind in COLUMNS.items()
    )  # fmt: skip
    listed = ", ".join("'" + file.replace("'", "''") + "'" for file in files)
    part = "" if rows is None else f" WHERE file_row_number >= {rows[0]} AND file_row_number < {rows[1]}"
    return f"SELECT {columns} FROM read_parquet([{listed}], hive_partitioning = false){part}"


def broken(connection: DuckDBPyConnection, files: Sequence[str]) -> dict[str, str]:
    """Which of these files cannot be read to their end, or have rows that are no events, and why."""
    import duckdb

    found: dict[str, str] = {}
    for file in files:
        try:
            found |= stored(connection, [file], "probed")
            connection.execute(f"SELECT {EVERYTHING} FROM probed").fetchall()
        except duckdb.Error as error:
            found[file] = _flaw(error, file)
    return found


def _flaw(error: Exception, file: str) -> str:
    """Why a file is no table of events."""
    import duckdb

    text = reason(error)
    no_such = (_NoTable, duckdb.ConversionException, duckdb.BinderException)
    if isinstance(error, no_such) or text.startswith(_NO_EVENT):
        return f"not a table of events, {text.removeprefix(_NO_EVENT)}"
    named = rf"( (in|of))?( file)? '{re.escape(file)}'"
    return f"no Parquet that can be read: {re.sub(named, '', text, flags=re.I)}"
