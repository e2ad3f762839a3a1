"""The tables of an audit as they are saved, in Parquet, and of these as much as people read, as plain
records."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from rebalance_verifier.pipeline.audit.kernel.events import COLUMNS
from rebalance_verifier.pipeline.audit.kernel.findings import CHECKS
from rebalance_verifier.pipeline.audit.records import FindingOwner, LogEvent, LogFinding

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MAX_EVENTS = 200
"""Events in a trace."""

NEAR_PARTITION, NEAR_GROUP = 3600.0, 120.0
"""Seconds before and after a finding in which events of its partition, and others of its group, matter."""

COLUMN_LIST = ", ".join(f'"{name}"' for name in COLUMNS)

SAVED = ", ".join('make_timestamptz(moment) AS "at"' if name == "moment" else f'"{name}"' for name in COLUMNS)
"""Events as they are saved: ``sources.events.EVENTS``."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

FINDING = """
    * REPLACE (
        epoch_us(began) AS began,
        epoch_us(ended) AS ended,
        [struct_pack(
            moment := epoch_us(one."at"), kind := one.kind, consumer := one.consumer,
            generation := one.generation, file := one.file, line := one.line
        ) FOR one IN places] AS places
    )
"""
"""The columns of findings as ``finding`` takes them: times are microseconds."""


def rows(connection: DuckDBPyConnection, query: str, values: Any = ()) -> Iterator[dict[str, Any]]:
    """The rows of a query that is known to give few."""
    done = connection.execute(query, values)
    names = [column[0] for column in done.description or ()]
    for row in done.fetchall():
        yield dict(zip(names, row, strict=True))


def make(kind: type[Any], row: Mapping[str, Any]) -> Any:
    """A record of this kind with what a row has of its fields."""
    return kind(**{name: row.get(name) for name in kind.__dataclass_fields__})


def moment(micros: int) -> datetime:
    """A time of the kernel's, in UTC.

    >>> moment(1_500_000).isoformat()
    '1970-01-01T00:00:01.500000+00:00'
    """
    return EPOCH + timedelta(microseconds=micros)


def micros(at: datetime) -> int:
    """Return microseconds for a time."""
    return (at - EPOCH) // timedelta(microseconds=1)


def first(connection: DuckDBPyConnection, order: Sequence[str], most: int) -> Iterator[LogFinding]:
    """The first findings: of each check the first, then of each the second, so that none is crowded out.

    Within a check what is certain comes first, then what lasts longest.
    """
    query = f"""
        SELECT {FINDING}
        FROM (
            SELECT
                *,
                row_number() OVER (
                    PARTITION BY "check" ORDER BY certain DESC, seconds DESC, began, id, places
                ) AS rank,
                list_position(?, "check") AS gravity
            FROM findings
        )
        WHERE rank <= ?
        ORDER BY rank, gravity
        LIMIT ?
    """
    return map(finding, rows(connection, query, [list(order), most, most]))


def finding(row: Mapping[str, Any]) -> LogFinding:
    """A row that ``FINDING`` has made as a record."""
    who = zip_longest(row["consumers"] or (), row["members"] or (), row["generations"] or ())
    ended = row["ended"]
    return LogFinding(
        id=row["id"],
        check=row["check"],
        level=CHECKS[row["check"]].level,
        group=row["group"],
        topic=row["topic"],
        partition=row["partition"],
        began=moment(row["began"]),
        ended=None if ended is None else moment(ended),
        seconds=row["seconds"],
        owners=tuple(FindingOwner(*one) for one in who),
        skew=row["skew"],
        certain=row["certain"],
        places=tuple(map(_seen, row["places"])),
        sentence=row["detail"],
        doubt=row.get("doubt") or "",
    )


def _seen(row: Mapping[str, Any]) -> LogEvent:
    values = {name: row.get(name) for name in LogEvent.__dataclass_fields__}
    return LogEvent(**{**values, "at": moment(row["moment"]), "file": file_name(row["file"])})  # type: ignore[arg-type]


def file_name(file: str) -> str:
    """A file as people name it: a local one as a path, below the working directory a relative one.

    >>> file_name("file:///no/such/a%20log"), file_name("s3a://bucket/a%20log")
    ('/no/such/a log', 's3a://bucket/a%20log')
    """
    uri = re.match(r"file:(?://)?(?=/)", file)
    path = Path(unquote(file[uri.end() :]) if uri else file)
    if not path.is_absolute():
        return file
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def wanted(findings: Sequence[LogFinding]) -> list[tuple[Any, ...]]:
    """Return the facts about findings that ``around`` needs, as rows that can be sent elsewhere."""
    return [
        (
            *(one.id, one.group, one.topic, one.partition),
            [owner.consumer for owner in one.owners if owner.consumer],
            micros(one.began),
            micros(one.ended or one.began),
        )
        for one in findings
    ]


def around(connection: DuckDBPyConnection, findings: Sequence[tuple[Any, ...]]) -> str:
    """A query for the events of ``events`` around findings (``wanted``), at most MAX_EVENTS for each, with
    the id of the finding as ``wanted``; in order.

    Of other partitions nothing; events of the consumers concerned and of the coordinator first, then those of
    others in the group, the nearest in time first.
    """
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE wanted (wanted VARCHAR, of_group VARCHAR, of_topic VARCHAR, "
        "of_partition INTEGER, owners VARCHAR[], began BIGINT, ended BIGINT)"
    )
    connection.executemany("INSERT INTO wanted VALUES (?, ?, ?, ?, ?, ?, ?)", list(findings))
    return f"""
        WITH marked AS (
            SELECT
                *,
                least(abs(moment - began), abs(moment - ended)) AS far,
                topic IS NOT DISTINCT FROM of_topic AS same_topic,
                coalesce(same_topic AND partition = of_partition, false) AS of_its_partition
            FROM events
            JOIN wanted ON "group" = of_group
            WHERE moment BETWEEN began - {int(NEAR_PARTITION * 1e6)} AND ended + {int(NEAR_PARTITION * 1e6)}
        ),
        chosen AS (
            SELECT
                *,
                coalesce(consumer IS NULL OR list_contains(owners, consumer) OR of_its_partition, false)
                    AS concerned
            FROM marked
            WHERE (of_its_partition AND far <= {int(NEAR_PARTITION * 1e6)})
                OR (
                    partition IS NULL AND (kind <> 'subscribed' OR same_topic)
                    AND far <= {int(NEAR_GROUP * 1e6)}
                )
        )
        SELECT wanted, {COLUMN_LIST}
        FROM chosen
        QUALIFY row_number() OVER (
            PARTITION BY wanted ORDER BY concerned DESC, far, file, line, kind, topic, partition
        ) <= {MAX_EVENTS}
        ORDER BY wanted, moment, file, line, kind, topic, partition
    """


def events_around(connection: DuckDBPyConnection, query: str) -> dict[str, tuple[LogEvent, ...]]:
    """Id of a finding -> the events around it, from what ``around`` asks for."""
    found: dict[str, list[LogEvent]] = {}
    for row in rows(connection, query):
        found.setdefault(row["wanted"], []).append(_seen(row))
    return {name: tuple(events) for name, events in found.items()}
