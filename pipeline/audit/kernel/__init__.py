"""The audit's checks, written once: SQL for DuckDB over all events of some whole groups.

``judge`` takes a connection that ``prepared`` has made, with ``events`` in it, and leaves the tables of
``FOUND``; ``finish`` takes these, of all groups, and leaves those of ``RESULTS``. One process calls both on
all events. Spark calls ``judge`` in its tasks, one bucket of whole groups each, and ``finish`` once.

``events`` is ``sources.events.EVENTS`` with ``moment`` in place of ``at``: microseconds since 1970, as all
times in here. Tables have fixed names, so a connection serves once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from rebalance_verifier.pipeline.audit.kernel.findings import CHECKS, Thresholds

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

FOUND = ("found", "lives", "parts", "waits", "offsets")
"""What ``judge`` leaves: findings but for what clocks explain; of each group its life, its partitions and how
long these were with nobody; by how much the clocks of hosts are apart. Those of buckets can be added up."""

LIFE = (
    *("consumers", "turns", "participants", "generations", "vanished", "lulls", "subscriptions"),
    *("epochal", "told", "shifts", "crooked", "entered", "spoken", "unnumbered", "unsaid", "stuck"),
)
"""What ``judge_life`` leaves for ``judge_partitions``."""

RESULTS = ("findings", "groups", "pauses", "clocks")
"""What ``finish`` leaves. ``groups``: group, consumers, partitions (that somebody owned), events, rebalances,
silent (consumers of which no line says what they own), first, last, settled. ``pauses``: group, handovers,
p50, p95, longest (seconds without an owner). ``clocks``: host, ahead, spread (seconds), samples."""

AT_ONCE = 5.0
"""Seconds within which a consumer does what its new assignment says."""

ROUNDS = 16
"""In a rolling deploy each host joins only with some of those before it."""

TOLD_WITHIN = 5.0
"""Seconds within which a member that is removed hears of it: clients heartbeat every 3 s by default."""

UNKNOWN_SKEW = 1.0
"""Seconds by which clocks may differ of which nothing is known; with NTP it is a small part of that."""


def prepared(
    thresholds: Thresholds, *, threads: int = 1, memory: str = "1GiB", spill: str = ""
) -> DuckDBPyConnection:
    """A connection in memory, for one bucket. Beyond ``memory`` it writes to the directory ``spill``."""
    import duckdb

    connection = duckdb.connect(
        config={
            "threads": threads,
            "memory_limit": memory,
            "preserve_insertion_order": False,
            "default_null_order": "nulls_first_on_asc_last_on_desc",
            "autoinstall_known_extensions": False,
            **({"temp_directory": spill} if spill else {}),
        }
    )
    for name, value in _variables(thresholds).items():
        connection.execute(f"SET VARIABLE {name} = ?", [value])
    levels = ", ".join(f"('{check.id}', '{check.level}')" for check in CHECKS.values())
    connection.execute(f'CREATE TEMP TABLE levels AS FROM (VALUES {levels}) AS levels("check", level)')
    run(connection, "tables")
    return connection


def amount(memory: str) -> str:
    """An amount of memory as DuckDB writes it.

    >>> amount("4096m"), amount("4g")
    ('4096MiB', '4GiB')
    """
    return memory[:-1] + {"k": "KiB", "m": "MiB", "g": "GiB"}[memory[-1].lower()]


def judge(connection: DuckDBPyConnection, end: int, ends: Mapping[str, int] | None = None) -> None:
    """Judge ``events``, of logs that go up to ``end``, each file up to ``ends``: microseconds since 1970."""
    judge_life(connection, end, ends)
    judge_partitions(connection)


def judge_life(connection: DuckDBPyConnection, end: int, ends: Mapping[str, int] | None = None) -> None:
    """Judge each group as a group, and its consumers.

    A table ``consumers`` that is there already counts: then ``events`` need not be all.
    """
    until(connection, end)
    connection.execute("CREATE TEMP TABLE file_ends (file VARCHAR, moment BIGINT)")
    if ends:
        connection.execute(
            "INSERT INTO file_ends SELECT unnest(?::VARCHAR[]), unnest(?::BIGINT[])",
            [list(ends), list(ends.values())],
        )
    _compare_clocks(connection)
    _time_line(connection)
    counted = connection.execute("SELECT 1 FROM duckdb_tables() WHERE table_name = 'consumers'").fetchall()
    if not counted:
        run(connection, "consumers")
    run(connection, "life", "groups")


def _compare_clocks(connection: DuckDBPyConnection) -> None:
    """Make ``offsets`` and ``shifts``: each round reaches the hosts that joined with those of the last."""
    run(connection, "clock")
    for _ in range(ROUNDS):
        ((reached,),) = connection.execute(text("compared")).fetchall()
        if not reached:
            break
    run(connection, "shifts")


def until(connection: DuckDBPyConnection, end: int) -> None:
    """Say how far the whole log goes."""
    connection.execute('SET VARIABLE "end" = ?', [end])


def judge_partitions(connection: DuckDBPyConnection) -> None:
    """Judge each partition, in the life of its group."""
    _time_line(connection)
    run(connection, "screen", "ownership", "checks", "figures")


def _time_line(connection: DuckDBPyConnection) -> None:
    """Make the view ``timed`` of ``events``, by ``shifts``; of events as they are where no clock is wrong."""
    run(connection, "timeline")
    if not connection.execute("SELECT 1 FROM shifts LIMIT 1").fetchall():
        connection.execute("CREATE OR REPLACE TEMP VIEW timed AS FROM events")


def finish(connection: DuckDBPyConnection) -> None:
    """From the tables of ``FOUND`` to those of ``RESULTS``."""
    run(connection, "finish")


def doubt(connection: DuckDBPyConnection, groups: Iterable[str]) -> None:
    """Nothing is certain in these groups: their logs do not tell who is who."""
    connection.execute(
        'UPDATE findings SET certain = false WHERE list_contains(?::VARCHAR[], "group")', [list(groups)]
    )


def misread(connection: DuckDBPyConnection) -> None:
    """Nothing is certain of which a line of ``malformed`` may say otherwise."""
    run(connection, "misread")


def run(connection: DuckDBPyConnection, *names: str) -> None:
    """Run the statements of these files."""
    for name in names:
        connection.execute(text(name))


@cache
def text(name: str) -> str:
    """The SQL of this name. By way of the package's resources, since it may lie in a zip."""
    return files(__package__).joinpath(f"{name}.sql").read_text(encoding="utf-8")


def _variables(limits: Thresholds) -> dict[str, Any]:
    def micros(seconds: float) -> int:
        return round(seconds * 1_000_000)

    return {
        "stranded": micros(limits.stranded),
        "settle": micros(limits.settle),
        "storm": limits.storm,
        "storm_within": micros(limits.storm_within),
        "storm_within_text": f"{limits.storm_within:g}",
        "pause": micros(limits.pause),
        "clock_skew": limits.clock_skew,
        "at_once": micros(AT_ONCE),
        "unknown_skew": UNKNOWN_SKEW,
        "told_within": micros(TOLD_WITHIN),
    }
