"""An audit in one process: logs are parsed here, and the kernel judges all events at once. No Spark, no
Java."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rebalance_verifier.base.files import scratch
from rebalance_verifier.base.installation import how_to_get
from rebalance_verifier.pipeline import database
from rebalance_verifier.pipeline.audit import kernel, tables
from rebalance_verifier.pipeline.audit.engine import Input, groups_in, load
from rebalance_verifier.pipeline.audit.kernel.events import COLUMNS, EVERYTHING, broken, stored
from rebalance_verifier.pipeline.audit.records import LogEvent
from rebalance_verifier.pipeline.audit.result import AuditPlan, absolute
from rebalance_verifier.pipeline.audit.sources import local
from rebalance_verifier.pipeline.audit.sources.reading import Unread
from rebalance_verifier.pipeline.audit.sources.settling import settle
from rebalance_verifier.pipeline.session import Missing

MEMORY = "4g"
"""Of the database, before it writes to disk."""

THREADS = 4
"""More share so little work badly."""


class Alone:
    """One audit in this process. A context manager: what is not saved by then is gone."""

    stage = ""

    def __init__(self, plan: AuditPlan) -> None:
        self.plan = plan

    def __enter__(self) -> Alone:
        with contextlib.ExitStack() as stack:
            try:
                self.connection = kernel.prepared(
                    self.plan.thresholds,
                    threads=min(THREADS, os.cpu_count() or 1),
                    memory=kernel.amount(self.plan.memory or MEMORY),
                    spill=str(stack.enter_context(scratch("audit"))),
                )
            except ImportError as error:
                raise Missing(f"an audit needs DuckDB: {how_to_get('audit')}") from error
            stack.callback(self.connection.close)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)

    def tasks(self) -> tuple[int, int]:
        """Nothing is known of how far it is."""
        return 0, 0

    def read(self) -> Input:
        """Read the logs of the plan into ``events``."""
        plan = self.plan
        logs, files, unread = local.listed(plan.absolute)
        with local.unswept():
            parser = local.parsed(logs, plan.kind, zone=plan.zone, date=plan.date, unread=unread)
            self._ends = parser.ends
            settled = settle(parser.rows)
            parser.rows.clear()
            database.add(self.connection, settled.events, "parsed", COLUMNS)
            settled.events.clear()
        wrong = stored(self.connection, files, "stored")
        ours = f'WHERE "group" IN ({", ".join(map(database.literal, plan.groups))})' if plan.groups else ""
        everything = "(SELECT * FROM parsed UNION ALL SELECT * FROM stored)"
        self.connection.execute(f"CREATE OR REPLACE TEMP VIEW events AS SELECT * FROM {everything} {ours}")
        counts = self._counts(files, wrong)
        lines = [(file, source, *counted) for (file, source), counted in parser.counts.items()]
        if logs:
            self.save("events", f"SELECT {tables.SAVED} FROM parsed {ours}")
        load(self.connection, malformed=parser.malformed, lines=lines + self._stored_lines(files))
        self.save("malformed", "SELECT * FROM malformed")
        absent = plan.groups and not set(plan.groups) <= set(groups_in(self.connection, "events"))
        unread += [Unread(file, why) for file, why in sorted(wrong.items())]
        return Input(
            events=counts,
            until=max((at for at in (parser.until, self._last()) if at is not None), default=None),
            unread=tuple(unread),
            notes=tuple(settled.notes),
            clients=tuple(settled.clients),
            groups=groups_in(self.connection, everything) if absent else (),
        )

    def _counts(self, files: Sequence[str], wrong: dict[str, str]) -> dict[str, int]:
        """Source -> how many events. What cannot be read to its end is added to ``wrong`` and left out."""
        import duckdb

        query = f"SELECT source, count(*), {EVERYTHING} FROM events GROUP BY source"

        def counts() -> dict[str, int]:
            return {source: number for source, number, _ in self.connection.execute(query).fetchall()}

        try:
            return counts()
        except duckdb.Error:
            found = broken(self.connection, [file for file in files if file not in wrong])
            if not found:
                raise
            wrong |= found
            stored(self.connection, [file for file in files if file not in wrong], "stored")
            return counts()

    def _stored_lines(self, files: Sequence[str]) -> list[tuple[Any, ...]]:
        """A row of a table is a line of its log."""
        if not files:
            return []
        query = "SELECT file, source, count(*), count(*) FROM stored GROUP BY file, source"
        return self.connection.execute(query).fetchall()

    def _last(self) -> int | None:
        ((last,),) = self.connection.execute("SELECT max(moment) FROM events").fetchall()
        return None if last is None else int(last)

    def judge(self, end: int) -> None:
        """Leave the tables of ``kernel.FOUND``."""
        kernel.judge(self.connection, end, self._ends)

    def around(self, wanted: Sequence[tuple[Any, ...]]) -> dict[str, tuple[LogEvent, ...]]:
        """The events around findings (``tables.wanted``)."""
        return tables.events_around(self.connection, tables.around(self.connection, wanted))

    def save(self, name: str, query: str) -> None:
        """Write what a query gives to the table of this name."""
        import duckdb

        try:
            database.save(self.connection, query, absolute(self.plan.table(name)))
        except duckdb.IOException as error:
            raise OSError(database.reason(error)) from error


def fits(plan: AuditPlan, most: int) -> bool:
    """Check whether all logs lie on this machine and have at most so many bytes; Parquet may have more."""
    if plan.data or any("://" in path for path in plan.paths):
        return False
    logs, files, _ = local.listed(plan.absolute)
    return sum(_size(file) for file in logs) + sum(_size(file) for file in files) // 10 <= most


def _size(file: str) -> int:
    try:
        return Path(file).stat().st_size
    except OSError:
        return 0
